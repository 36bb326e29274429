/* SPDX-License-Identifier: Apache-2.0 */
/* names.h - names of addresses in a live process, from its maps and symbol/symbol.h. */
#ifndef LONGPOLE_SPIN_NAMES_H
#define LONGPOLE_SPIN_NAMES_H

#include "spin/native.h"

struct spin_names;
/* Texts go to the arena, which is borrowed. NULL: no memory. */
struct spin_names *spin_names_new(pid_t pid, struct base_arena *arena);
void spin_names_free(struct spin_names *n); /* NULL-safe */
/* Fills what is known; ret->address is set. */
void spin_names_code(struct spin_names *n, uint64_t address, struct spin_place *ret);
/* name and shared of ret, whose address is set. */
void spin_names_data(struct spin_names *n, struct spin_polled *ret);

#endif
