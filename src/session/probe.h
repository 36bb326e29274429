/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - what the recorder's library adds to a program's start, to a thread, a fork, a
 * record: measured with a program of ours that does nothing else, with the library and without. */
#ifndef LONGPOLE_SESSION_PROBE_H
#define LONGPOLE_SESSION_PROBE_H

#include "os/launch.h"

#include <stdint.h>

enum session_probe {
	SESSION_PROBE_start,
	SESSION_PROBE_fork,
	SESSION_PROBE_thread,
	/* of these: what a record takes */
	SESSION_PROBE_lock,
	SESSION_PROBE_call, /* of the kernel, about a descriptor */
	SESSION_PROBE_record,
};

/* What one costs, in ps of processor time. The ring is that of
 * `environment`, in which recording is to be on; nobody needs what it gets. false: our program is
 * not there, or others disturbed it too much. */
bool session_probe_measure(
	enum session_probe what, const struct os_child_environment *environment, uint64_t *ret_ps);

#endif
