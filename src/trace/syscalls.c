/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls.c - syscalls.def as a table. */
#include "trace/syscalls.h"

enum {
	DESC = TRACE_SYSCALL_DESC,
	ADDR = TRACE_SYSCALL_ADDR,
	TIME = TRACE_SYSCALL_TIME,
	MAKES = TRACE_SYSCALL_MAKES,
	SKIP = TRACE_SYSCALL_SKIP,
};

const struct trace_syscall *trace_syscall_find(uint64_t number)
{
	static const struct trace_syscall table[TRACE_SYSCALLS_MAX] = {
#define SYSCALL(number_, name_, object_, op_, n_, flags_)                                          \
	[number_] = {#name_, object_, op_, n_, flags_},
#include "trace/syscalls.def"
	};
	static const struct trace_syscall unknown;

	return number < TRACE_SYSCALLS_MAX ? &table[number] : &unknown;
}
