/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounded - a producer and a consumer with an annotated queue of SLOTS units; by turns each is slow
 * for four items. They wait by system calls of their own, which only the annotations tell of.
 * Known answer: what a run with --slots=2, 3, ... takes: less, down to 3 slots;
 * 330, 300, 280 ms of sleep.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target.h"

#include "longpole/annotate.h"

enum { ITEMS = 40, FAST_US = 2000, SLOW_US = 10000 };

static uint32_t units;

/* (as a run-time system of its own would: not through libc) */
static void futex(int op, uint64_t value)
{
	register uint64_t timeout __asm__("r10") = 0;
	long result = SYS_futex;
	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(&units), "S"(op), "d"(value), "r"(timeout)
			 : "rcx", "r11", "memory");
}

static void wait_while(uint32_t value)
{
	while (__atomic_load_n(&units, __ATOMIC_SEQ_CST) == value)
		futex(FUTEX_WAIT_PRIVATE, value);
}

static void *consume(void *unused)
{
	longpole_begin("consumer", 0, 0);
	for (int i = 0; i < ITEMS; i++) {
		longpole_wait_empty("slots", 0, 1, 0);
		wait_while(0);
		longpole_dequeue("slots", 0, 1, 0);
		__atomic_sub_fetch(&units, 1, __ATOMIC_SEQ_CST);
		futex(FUTEX_WAKE_PRIVATE, 1);
		longpole_state("use", 0);
		usleep(i / 4 % 2 ? SLOW_US : FAST_US);
	}
	longpole_end("consumer");
	return unused;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--slots --declared");
	uint32_t slots = (uint32_t)target_number(argc, argv, "--slots", 1);
	if (target_number(argc, argv, "--declared", 0))
		longpole_capacity("slots", 0, slots);
	pthread_t consumer;
	target_must(!pthread_create(&consumer, NULL, consume, NULL), "pthread_create");
	longpole_begin("producer", 0, 0);
	for (int i = 0; i < ITEMS; i++) {
		longpole_state("make", 0);
		usleep(i / 4 % 2 ? FAST_US : SLOW_US);
		longpole_wait_full("slots", 0, 1, 0);
		wait_while(slots);
		longpole_enqueue("slots", 0, 1, 0);
		__atomic_add_fetch(&units, 1, __ATOMIC_SEQ_CST);
		futex(FUTEX_WAKE_PRIVATE, 1);
	}
	longpole_end("producer");
	target_must(!pthread_join(consumer, NULL), "pthread_join");
	return 0;
}
