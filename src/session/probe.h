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
	/* what is in no record of its own, or is much more than one */
	SESSION_PROBE_stack, /* a call path, beside the records that have it */
	SESSION_PROBE_look,  /* at what a descriptor is */
	SESSION_PROBE_end,   /* is somebody waiting for a descriptor's? */
	SESSION_PROBES
};

/* What one costs, in ps of processor time; a record that comes with it takes record_ps. The ring is that of
 * `environment`, in which recording is to be on; nobody needs what it gets. false: our program is
 * not there, or others disturbed it too much. */
bool session_probe_measure(enum session_probe what, uint64_t record_ps,
	const struct os_child_environment *environment, uint64_t *ret_ps);

#endif
