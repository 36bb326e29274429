/* SPDX-License-Identifier: Apache-2.0 */
/* session_probe.h - what the recorder's library adds to a program's start, to a thread, a fork, a
 * lock: measured with a program of ours that does nothing else, with the library and without. */
#ifndef LONGPOLE_RECORD_SESSION_PROBE_H
#define LONGPOLE_RECORD_SESSION_PROBE_H

#include "record/session_launch.h"

#include <stdint.h>

enum record_probe { RECORD_PROBE_start, RECORD_PROBE_fork, RECORD_PROBE_thread, RECORD_PROBE_lock };

/* What one costs, in ps of processor time; of a lock: one record of it. The ring is that of
 * `environment`, in which recording is to be on; nobody needs what it gets. false: our program is
 * not there, or others disturbed it too much. */
bool record_probe_measure(enum record_probe what,
	const struct record_child_environment *environment, uint64_t *ret_ps);

#endif
