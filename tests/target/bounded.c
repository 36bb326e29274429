/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounded - a producer and a consumer with an annotated queue of SLOTS units; by turns each is slow
 * for four items. --built: of what the queue is built.
 *   0  system calls of their own, which only the annotations tell of
 *   1  a mutex and two condition variables; the wait is announced before the lock is taken
 *   2  ... under the lock
 *   3  ... only where somebody waits, each time
 *   4  a mutex, polled
 *   5  two semaphores
 * Known answer, the same for all: what a run with --slots=2, 3, ... takes: less, down to 3 slots;
 * 330, 300, 280 ms of sleep.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "target.h"

#include "longpole/annotate.h"
#include "ring/processor.h"

enum { ITEMS = 40, FAST_US = 2000, SLOW_US = 10000, POLL_US = 200 };
enum { BY_FUTEX, BY_COND, BY_COND_UNDER_LOCK, BY_COND_IN_LOOP, BY_POLLING, BY_SEMAPHORE, BUILT_NR };

static uint32_t units, slots, built;
static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static sem_t counted[2]; /* units; room */

static void announce(bool puts)
{
	if (puts)
		longpole_wait_full("slots", 0, 1, 0);
	else
		longpole_wait_empty("slots", 0, 1, 0);
}

static void tell(bool puts)
{
	if (puts)
		longpole_enqueue("slots", 0, 1, 0);
	else
		longpole_dequeue("slots", 0, 1, 0);
}

/* (as a run-time system of its own would: not through libc) */
static void futex(int op, uint64_t value)
{
	(void)processor_syscall(SYS_futex, (long)&units, op, (long)value, 0, 0, 0);
}

static void pass_by_futex(bool puts)
{
	uint32_t never = puts ? slots : 0;
	announce(puts);
	while (__atomic_load_n(&units, __ATOMIC_SEQ_CST) == never)
		futex(FUTEX_WAIT_PRIVATE, never);
	tell(puts);
	__atomic_add_fetch(&units, puts ? 1 : (uint32_t)-1, __ATOMIC_SEQ_CST);
	futex(FUTEX_WAKE_PRIVATE, 1);
}

static void wait_locked(bool puts)
{
	if (built == BY_COND_IN_LOOP)
		announce(puts);
	if (built != BY_POLLING) {
		pthread_cond_wait(&changed[puts], &queue_mutex);
		return;
	}
	pthread_mutex_unlock(&queue_mutex);
	usleep(POLL_US);
	pthread_mutex_lock(&queue_mutex);
}

static void pass_locked(bool puts)
{
	uint32_t never = puts ? slots : 0;
	if (built == BY_COND || built == BY_POLLING)
		announce(puts);
	pthread_mutex_lock(&queue_mutex);
	if (built == BY_COND_UNDER_LOCK)
		announce(puts);
	while (units == never)
		wait_locked(puts);
	tell(puts);
	units += puts ? 1 : (uint32_t)-1;
	pthread_cond_signal(&changed[!puts]);
	pthread_mutex_unlock(&queue_mutex);
}

static void pass_by_semaphore(bool puts)
{
	announce(puts);
	sem_wait(&counted[puts]);
	tell(puts);
	sem_post(&counted[!puts]);
}

static void (*const pass[BUILT_NR])(bool puts) = {[BY_FUTEX] = pass_by_futex,
	[BY_COND] = pass_locked,
	[BY_COND_UNDER_LOCK] = pass_locked,
	[BY_COND_IN_LOOP] = pass_locked,
	[BY_POLLING] = pass_locked,
	[BY_SEMAPHORE] = pass_by_semaphore};

static void *consume(void *unused)
{
	longpole_begin("consumer", 0, 0);
	for (int i = 0; i < ITEMS; i++) {
		pass[built](false);
		longpole_state("use", 0);
		usleep(i / 4 % 2 ? SLOW_US : FAST_US);
	}
	longpole_end("consumer");
	return unused;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--slots --declared --built");
	slots = (uint32_t)target_number(argc, argv, "--slots", 1);
	built = (uint32_t)target_number(argc, argv, "--built", BY_FUTEX);
	target_must(built < BUILT_NR && !sem_init(&counted[0], 0, 0) &&
			    !sem_init(&counted[1], 0, slots),
		"--built, semaphores");
	if (target_number(argc, argv, "--declared", 0))
		longpole_capacity("slots", 0, slots);
	pthread_t consumer;
	target_must(!pthread_create(&consumer, NULL, consume, NULL), "pthread_create");
	longpole_begin("producer", 0, 0);
	for (int i = 0; i < ITEMS; i++) {
		longpole_state("make", 0);
		usleep(i / 4 % 2 ? FAST_US : SLOW_US);
		pass[built](true);
	}
	longpole_end("producer");
	target_must(!pthread_join(consumer, NULL), "pthread_join");
	return 0;
}
