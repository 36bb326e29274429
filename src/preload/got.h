/* SPDX-License-Identifier: Apache-2.0 */
/* got.h - the tables by which modules call libc, led to our wrappers and back. */
#ifndef LONGPOLE_PRELOAD_GOT_H
#define LONGPOLE_PRELOAD_GOT_H

#include <stdbool.h>
#include <stdint.h>

/* All modules that are loaded now. Waits until nobody loads or unloads one, and keeps others from it
 * meanwhile. *entries counts those that lead to us. Not by two threads at once. */
void preload_got_lead_in(uint32_t *entries);
/* As they were, of all modules that are still there. */
void preload_got_lead_out(void);
/* Has the loader loaded something since the last time? */
bool preload_got_is_old(void);

#endif
