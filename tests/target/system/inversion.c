/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inversion - priority inversion, on one processor with fixed priorities: `low` takes a lock and
 * works 0.5 ms under it; then comes the waiter, with the highest priority, and waits for the lock;
 * then comes `medium`, which needs no lock and works 6 ms, before low can go on. 20 times.
 * Known answer: the waiter's path is low's wait for the processor that medium had; low's own work
 * under the lock is short.
 */
#include "roles.h"

static struct shared {
	uint32_t lock, go_low, go_medium, taken, round_low, round_medium;
} * shared;
static uint64_t rounds;

static void take_priority(int priority)
{
	struct sched_param p = {.sched_priority = priority};
	if (sched_setscheduler(0, SCHED_FIFO, &p)) {
		perror("sched_setscheduler");
		_exit(ROLE_SKIP);
	}
}

static void run_low(void)
{
	take_priority(10);
	for (uint32_t i = 1; i <= rounds; i++) {
		role_futex_wait(&shared->go_low, i - 1);
		__atomic_store_n(&shared->lock, 1, __ATOMIC_RELEASE);
		role_futex_set(&shared->taken, i); /* the waiter goes on at once */
		role_work(500);
		role_futex_set(&shared->lock, 0);
		role_futex_set(&shared->round_low, i);
	}
}

static void run_medium(void)
{
	take_priority(20);
	for (uint32_t i = 1; i <= rounds; i++) {
		role_futex_wait(&shared->go_medium, i - 1);
		role_work(6000);
		role_futex_set(&shared->round_medium, i);
	}
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--rounds");
	rounds = target_number(argc, argv, "--rounds", 20);
	role_is("waiter");
	role_pin(0);
	shared = role_shared(sizeof(*shared));
	take_priority(30);
	pid_t low = role_process("low", run_low), medium = role_process("medium", run_medium);
	for (uint32_t i = 1; i <= rounds; i++) {
		role_futex_set(&shared->go_low, i);
		role_futex_wait(&shared->taken, i - 1);
		role_futex_set(&shared->go_medium, i);
		role_futex_wait(&shared->lock, 1);
		role_futex_wait(&shared->round_low, i - 1);
		role_futex_wait(&shared->round_medium, i - 1);
	}
	role_reap(low);
	role_reap(medium);
	return 0;
}
