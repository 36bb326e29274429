/* SPDX-License-Identifier: Apache-2.0 */
/* next.h - the function of a name in the libraries that come after ours. */
#ifndef LONGPOLE_PRELOAD_NEXT_H
#define LONGPOLE_PRELOAD_NEXT_H

#include <stdbool.h>

/* What dlsym(RTLD_NEXT, name) finds; NULL: nothing. At any time, also in a signal handler or while
 * another thread loads a library: takes no lock, allocates nothing and leaves dlerror() alone. */
void *preload_next_function(const char *name);

/* Were we brought into a process that ran already? Then "the next library" is libc, and no other:
 * it stays, and only calls of its functions are led to us (got.c). */
bool preload_next_is_late(void);
/* libc as the loader knows it; NULL: there is none. */
struct link_map;
const struct link_map *preload_next_libc(void);

#endif
