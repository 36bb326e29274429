/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - what this machine offers to a recording, what each missing thing costs, and what takes
 * its place. */
#ifndef LONGPOLE_SESSION_DOCTOR_H
#define LONGPOLE_SESSION_DOCTOR_H

#include "base/base.h"

enum { SESSION_PROBE_VALUE = 200 };

struct session_probe {
	const char *name;  /* "clock", "samples" ...: stable, for JSON */
	const char *title; /* for people */
	bool ok;
	bool needed;                     /* without it nothing can be recorded */
	char value[SESSION_PROBE_VALUE]; /* what was found */
	const char *lost;                /* what is lost without it */
	const char *instead;             /* what takes its place, or what to do */
};

enum { SESSION_PROBES_MAX = 32 };
/* Runs all probes (about 50 ms). Returns how many there are. */
size_t session_doctor(struct session_probe probe[SESSION_PROBES_MAX]);

#endif
