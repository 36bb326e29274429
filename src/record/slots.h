/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots.h - loads bpf/slots.bpf.c: exact time inside of system calls for threads that we, or they
 * themselves, register. For root, on a kernel with BTF; costs each registered thread's system call
 * some 300 ns. While it is open, programs that we start find it through the environment.
 */
#ifndef LONGPOLE_RECORD_SLOTS_H
#define LONGPOLE_RECORD_SLOTS_H

#include "base/base.h"

#include <sys/types.h>

enum { RECORD_SLOTS_WHY = 200, RECORD_SLOTS_ENV_BYTES = 32 };

struct record_slots;
struct counter_slot;
/* NULL, and why, where the kernel refuses. */
struct record_slots *record_slots_open(char why[RECORD_SLOTS_WHY]);
struct record_slots *record_slots_close(struct record_slots *s);
/* What COUNTER_SLOTS_ENVIRONMENT must be for the library in a program to find the slots. */
void record_slots_environment(const struct record_slots *s, char ret[RECORD_SLOTS_ENV_BYTES]);
/* A thread that does not run yet, from zero. False: its place is another thread's. */
bool record_slots_register(struct record_slots *s, pid_t tid);
/* What it did; its place is free afterwards. *ret_lost calls could not be timed, because the kernel
 * did not report a switch: their time is not in *ret_kernel_ns. False: it was not registered. */
bool record_slots_take(struct record_slots *s, pid_t tid, uint64_t *ret_kernel_ns,
	uint64_t *ret_calls, uint32_t *ret_lost);

#endif
