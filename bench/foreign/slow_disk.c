/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library for LD_PRELOAD: what is made durable takes as many microseconds as the environment's
 * BENCH_DISK_US says, whatever the disk is and whoever else uses it. (How long a disk takes is
 * another thing in every second; predictions are not to be measured by that.) 0: no time at all, not
 * even a sleep's.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long disk_us;

__attribute__((constructor)) static void slow_disk_begin(void)
{
	const char *us = getenv("BENCH_DISK_US");
	disk_us = us ? atol(us) : 0;
}

static int wait_for_disk(void)
{
	struct timespec time = {.tv_nsec = disk_us * 1000L};
	if (disk_us > 0)
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, NULL);
	return 0;
}

int fsync(int file)
{
	(void)file;
	return wait_for_disk();
}

int fdatasync(int file)
{
	(void)file;
	return wait_for_disk();
}
