/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before longpole/annotate.h, in its place: each verb takes a time stamp and writes it
 * down in a line of its thread that is always near. No recorder can do with less: what a program
 * pays for this is the machine's floor, and most of it is not the stamp (bench/record
 * --only=pipeline).
 */
#ifndef LONGPOLE_ANNOTATE_H
#define LONGPOLE_ANNOTATE_H /* the real one finds nothing to say any more */

#include <stdint.h>
#include <x86intrin.h>

enum { LONGPOLE_RESET };

static __thread volatile uint64_t bench_stamp;

static inline void bench_take_stamp(void)
{
	bench_stamp = __rdtsc();
}

#define longpole_begin(...)         bench_take_stamp()
#define longpole_end(...)           bench_take_stamp()
#define longpole_state(...)         bench_take_stamp()
#define longpole_enqueue(...)       bench_take_stamp()
#define longpole_dequeue_state(...) bench_take_stamp()
#define longpole_wait_empty(...)    bench_take_stamp()
#define longpole_wait_full(...)     bench_take_stamp()
#define longpole_resize(...)        bench_take_stamp()
#define longpole_get_id()           bench_take_stamp()

#endif
