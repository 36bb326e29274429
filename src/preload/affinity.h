/* SPDX-License-Identifier: Apache-2.0 */
/* affinity.h - processors that a program limits its threads to. */
#ifndef LONGPOLE_PRELOAD_AFFINITY_H
#define LONGPOLE_PRELOAD_AFFINITY_H

#include <pthread.h>
#include <stdint.h>

/* The thread that is about to be created with that token: what its attributes limit it to. */
void preload_affinity_of_new(const pthread_attr_t *attributes /* may be NULL */, uint64_t token);

/* Called by the assembly of syscall() only (preload/futex.c). */
long preload_affinity_call(long number, long tid, long bytes, long mask)
	__attribute__((used, visibility("hidden")));

#endif
