/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls.h - x86-64's system calls: names, and which arguments say what is waited for. */
#ifndef LONGPOLE_TRACE_SYSCALLS_H
#define LONGPOLE_TRACE_SYSCALLS_H

#include "base/base.h"

enum { TRACE_SYSCALLS_MAX = 512 };

enum trace_syscall_flag {
	TRACE_SYSCALL_DESC = 1,  /* the object is a descriptor */
	TRACE_SYSCALL_ADDR = 2,  /* ... a user address (futex word) */
	TRACE_SYSCALL_TIME = 4,  /* n points to a struct timespec */
	TRACE_SYSCALL_MAKES = 8, /* returns a descriptor */
	TRACE_SYSCALL_SKIP = 16, /* not recorded */
};

struct trace_syscall {
	const char *name;      /* NULL: a number that we do not know */
	uint8_t object, op, n; /* numbers of arguments, from 1; 0: none */
	uint8_t flags;
};

/* Never NULL. */
const struct trace_syscall *trace_syscall_find(uint64_t number);

#endif
