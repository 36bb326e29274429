/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timer - the waiter sleeps 3 ms and works 0.3 ms, 100 times; --beside=1: on its processor a
 * `bystander` works all the time, so each timer interrupt interrupts it and wakes the waiter.
 * Known answer: the wait is for a timer; the bystander is never on the path, for it causes nothing.
 * --sleep=US: another time; 0: it only works.
 * (What the waiter waits for the processor after the interrupt is short: it is the one that slept.)
 */
#include <signal.h>
#include <sys/resource.h>

#include "roles.h"

static void run_bystander(void)
{
	for (;;)
		role_work(50);
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--beside --rounds --sleep");
	uint64_t rounds = target_number(argc, argv, "--rounds", 100);
	long sleep_us = (long)target_number(argc, argv, "--sleep", 3000);
	pid_t bystander = 0;

	role_is("waiter");
	if (target_number(argc, argv, "--beside", 0)) {
		role_pin(0);
		bystander = role_process("bystander", run_bystander);
		if (setpriority(PRIO_PROCESS, 0, -15)) {
			perror("setpriority");
			return ROLE_SKIP;
		}
	}
	for (uint64_t i = 0; i < rounds; i++) {
		if (sleep_us)
			role_sleep(sleep_us);
		role_work(300);
	}
	if (bystander) /* to wait for its end would be to depend on it */
		kill(bystander, SIGKILL);
	return 0;
}
