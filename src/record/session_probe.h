/* SPDX-License-Identifier: Apache-2.0 */
/* session_probe.h - what the recorder's library adds to a program's start, to a thread, a fork, a
 * record: measured with a program of ours that does nothing else, with the library and without. */
#ifndef LONGPOLE_RECORD_SESSION_PROBE_H
#define LONGPOLE_RECORD_SESSION_PROBE_H

#include "record/session_launch.h"

#include <stdint.h>

enum record_probe {
	RECORD_PROBE_start,
	RECORD_PROBE_fork,
	RECORD_PROBE_thread,
	/* of these: what a record takes */
	RECORD_PROBE_lock,
	RECORD_PROBE_call, /* of the kernel, about a descriptor */
	RECORD_PROBE_record,
};

/* What one costs, in ps of processor time. The ring is that of
 * `environment`, in which recording is to be on; nobody needs what it gets. false: our program is
 * not there, or others disturbed it too much. */
bool record_probe_measure(enum record_probe what,
	const struct record_child_environment *environment, uint64_t *ret_ps);

#endif
