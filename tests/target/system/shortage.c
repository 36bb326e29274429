/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shortage - four `worker` processes (the waiter waits for their ends) with 80 ms of work each, all
 * on one processor. Run in a cgroup with a quota, with --workers=1: it is the quota that takes the
 * processor away.
 * Known answer: the path is one worker's work, and three times as much in which the others had its
 * processor; with a quota it is the time without a processor, which nobody had.
 */
#include "roles.h"

enum { WORKERS_MAX = 16 };
static uint64_t work_us;

static void run_worker(void)
{
	role_work(work_us);
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--workers --work-us");
	uint64_t nr_workers = target_number(argc, argv, "--workers", 4);
	pid_t worker[WORKERS_MAX];

	work_us = target_number(argc, argv, "--work-us", 80000);
	if (nr_workers > WORKERS_MAX)
		return 2;
	role_is("waiter");
	role_pin(0);
	for (uint64_t i = 0; i < nr_workers; i++)
		worker[i] = role_process("worker", run_worker);
	for (uint64_t i = 0; i < nr_workers; i++)
		role_reap(worker[i]);
	return 0;
}
