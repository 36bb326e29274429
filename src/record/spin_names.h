/* SPDX-License-Identifier: Apache-2.0 */
/* spin_names.h - names of addresses in a live process, from its maps and symbol/symbol.h. */
#ifndef LONGPOLE_RECORD_SPIN_NAMES_H
#define LONGPOLE_RECORD_SPIN_NAMES_H

#include "record/spin.h"

struct record_spin_names;
/* Texts go to the arena, which is borrowed. NULL: no memory. */
struct record_spin_names *record_spin_names_new(pid_t pid, struct base_arena *arena);
void record_spin_names_free(struct record_spin_names *n); /* NULL-safe */
/* Fills what is known; ret->address is set. */
void record_spin_names_code(
	struct record_spin_names *n, uint64_t address, struct record_spin_place *ret);
/* name and shared of ret, whose address is set. */
void record_spin_names_data(struct record_spin_names *n, struct record_spin_polled *ret);

#endif
