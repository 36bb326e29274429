/* SPDX-License-Identifier: Apache-2.0 */
/* lock_syscall.c - syscall() as libc has it, but for what limits the process
 * (preload/sandbox.c). */
#include "preload/syscall.h"

PRELOAD_SYSCALL(tally_syscall, "");
