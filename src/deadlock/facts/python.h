/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python.h - the frames of CPython's own functions, for threads of which a finding speaks. Read
 * from the interpreter's structures, from outside; nothing of it runs. 3.11 and 3.12 by tables of
 * offsets (from their headers, x86-64), 3.13 by the offsets that it publishes itself
 * (_Py_DebugOffsets, PEP 768). They do not change while a thread sleeps; what is read of a thread
 * that ran meanwhile is not believed.
 */
#ifndef LONGPOLE_DEADLOCK_PYTHON_H
#define LONGPOLE_DEADLOCK_PYTHON_H

#include "deadlock/facts/facts.h"

/* Fills python, nr_python and without_python. No more than that fails where memory does. */
void deadlock_python_frames(
	struct deadlock_world *w, struct deadlock_process *p, struct deadlock_wait *wait);

#endif
