/* SPDX-License-Identifier: Apache-2.0 */
/* spin.h - proving that a thread spins, and letting its copy out (seed 3.3, 4.2.5). See private.h.
 */
#ifndef LONGPOLE_DEADLOCK_SPIN_H
#define LONGPOLE_DEADLOCK_SPIN_H

#include "deadlock/ahead/decode.h"
#include "deadlock/ahead/snapshot.h"

enum deadlock_spin_result {
	DEADLOCK_SPIN_PROVEN,
	DEADLOCK_SPIN_NO_LOOP, /* its registers did not come back */
	DEADLOCK_SPIN_CHANGES, /* nor did they without its having changed memory */
	DEADLOCK_SPIN_NO_WORD, /* it reads nothing that another thread could change */
	DEADLOCK_SPIN_NO_MEMORY,
};

/* Of a thread that computes; it is stopped for a moment. False: why. */
bool deadlock_spin_registers(pid_t tid, struct deadlock_registers *ret, const char **why);
/* The ghost stands where the thread was. Adds a key to `w` for each word that the loop reads. */
enum deadlock_spin_result deadlock_spin_prove(
	struct deadlock_ghost *g, const struct deadlock_process *process, struct deadlock_wait *w);
/* With a word changed: does the copy leave the loop? */
bool deadlock_spin_escapes(struct deadlock_ghost *g, const struct deadlock_process *process);
/* The values to try in a polled word that has `now`. */
uint64_t deadlock_spin_value(uint64_t now, unsigned way, bool *ret_is_last);

#endif
