/* SPDX-License-Identifier: Apache-2.0 */
/* bus.h - a mapped file that somebody cuts short while it is read reads as zeros from there on. */
#ifndef LONGPOLE_OS_BUS_H
#define LONGPOLE_OS_BUS_H

#include <signal.h>

/* From now on, in this process; *ret_before is what SIGBUS did before: sigaction() it again. */
void os_bus_guard(struct sigaction *ret_before);

#endif
