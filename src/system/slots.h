/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots.h - loads bpf/slots.bpf.c: exact time inside of system calls for threads that we, or they
 * themselves, register. For root, on a kernel with BTF; costs each registered thread's system call
 * some 300 ns. While it is open, programs that we start find it through the environment.
 */
#ifndef LONGPOLE_SYSTEM_SLOTS_H
#define LONGPOLE_SYSTEM_SLOTS_H

#include "base/base.h"

#include <sys/types.h>

enum { SYSTEM_SLOTS_WHY = 200, SYSTEM_SLOTS_ENV_BYTES = 32 };

struct system_slots;
struct counter_slot;
/* NULL, and why, where the kernel refuses. */
struct system_slots *system_slots_open(char why[SYSTEM_SLOTS_WHY]);
struct system_slots *system_slots_close(struct system_slots *s);
/* What COUNTER_SLOTS_ENVIRONMENT must be for the library in a program to find the slots. */
void system_slots_environment(const struct system_slots *s, char ret[SYSTEM_SLOTS_ENV_BYTES]);
/* A thread that does not run yet, from zero. False: its place is another thread's. */
bool system_slots_register(struct system_slots *s, pid_t tid);
/* What it did; its place is free afterwards. *ret_lost calls could not be timed, because the kernel
 * did not report a switch: their time is not in *ret_kernel_ns. False: it was not registered. */
bool system_slots_take(struct system_slots *s, pid_t tid, uint64_t *ret_kernel_ns,
	uint64_t *ret_calls, uint32_t *ret_lost);

#endif
