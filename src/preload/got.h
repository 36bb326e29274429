/* SPDX-License-Identifier: Apache-2.0 */
/* got.h - the tables by which modules call libc, led to our wrappers and back. */
#ifndef LONGPOLE_PRELOAD_GOT_H
#define LONGPOLE_PRELOAD_GOT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All modules that are loaded now. Waits until nobody loads or unloads one, and keeps others from it
 * meanwhile. *entries counts those that lead to us. Not by two threads at once. */
void preload_got_lead_in(uint32_t *entries);
/* As they were, of all modules that are still there. */
void preload_got_lead_out(void);
/* What one module calls by these names, of another module than libc: led to `ours`, where its entry is
 * `real` or not bound yet. False: not one was led; the loader may not be done with the module.
 * preload_got_lead_out() leads them back. */
struct preload_got_name {
	const char *name;
	uintptr_t real, ours;
};
bool preload_got_lead_names(uintptr_t bias, const ElfW(Phdr) * segment, size_t nr_segments,
	const struct preload_got_name *names, size_t nr_names);
/* Has the loader loaded something since the last time? */
bool preload_got_is_old(void);

#endif
