/* SPDX-License-Identifier: Apache-2.0 */
/* next.h - the function of a name in the libraries that come after ours. */
#ifndef LONGPOLE_PRELOAD_NEXT_H
#define LONGPOLE_PRELOAD_NEXT_H

/* What dlsym(RTLD_NEXT, name) finds; NULL: nothing. At any time, also in a signal handler or while
 * another thread loads a library: takes no lock, allocates nothing and leaves dlerror() alone. */
void *preload_next_function(const char *name);

#endif
