/* SPDX-License-Identifier: Apache-2.0 */
/* reach.h - could another process write the word on which a thread spins? */
#ifndef LONGPOLE_SPIN_REACH_H
#define LONGPOLE_SPIN_REACH_H

#include <stdint.h>
#include <sys/types.h>

/* Why it could, a static text; NULL: nobody else maps the word, nor ever can. `tid` is a thread of
 * `pid` that is held. */
const char *spin_reach_of_others(pid_t pid, pid_t tid, uint64_t address);

#endif
