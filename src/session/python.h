/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python.h - what runs in a Python program's threads, seen from outside: beside the kernel's
 * samples, which know the interpreter's functions only, somebody looks into the program's memory as
 * often, at the frames of the thread that has the global lock. A sample gets the frames of the look
 * that is next to it in time.
 *
 * Reads need the right to ptrace the process; nothing there is stopped, changed or run. Which processes
 * run Python is known by the files whose code they map; a fork's child is what its parent is. In
 * another namespace of pids, threads have other numbers than ours: none is found.
 */
#ifndef LONGPOLE_SESSION_PYTHON_H
#define LONGPOLE_SESSION_PYTHON_H

#include "os/clock.h"
#include "record/convert.h"

struct session_python; /* opaque; has a thread of its own once there is a Python */

/* Makes the converter ask. Looks hz times a second, less often where many Pythons run. c, clock:
 * borrowed. NULL: no memory. */
struct session_python *session_python_new(
	struct record_converter *c, const struct os_clock *clock, uint64_t hz);
/* A process that runs already: its mappings will not be told. */
void session_python_join(struct session_python *p, pid_t pid);
/* Looks no more; what was seen is still there for events that come late. NULL-safe. */
void session_python_stop(struct session_python *p);
struct session_python *session_python_free(struct session_python *p); /* NULL-safe; returns NULL */

#endif
