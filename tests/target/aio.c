/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aio - a child computes and writes into a pipe, from which its parent reads asynchronously: it
 * waits in aio_suspend(), then computes for a tenth of that. Known answer: the path is `produce`.
 */
#include <aio.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

TARGET_FUNCTION uint64_t produce(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

TARGET_FUNCTION uint64_t conclude(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --units");
	uint64_t percent = target_percent(argc, argv);
	uint64_t units = target_number(argc, argv, "--units", 300000), sum = 0;
	int fds[2];
	target_must(!pipe(fds), "pipe");
	pid_t child = fork();
	target_must(child >= 0, "fork");
	if (!child) {
		sum = produce(1, units * percent / 100);
		target_must(write(fds[1], &sum, sizeof sum) == sizeof sum, "write");
		_exit(0);
	}
	struct aiocb request = {.aio_fildes = fds[0], .aio_buf = &sum, .aio_nbytes = sizeof sum};
	const struct aiocb *list[] = {&request};
	target_must(!aio_read(&request), "aio_read");
	while (aio_error(&request) == EINPROGRESS)
		target_must(!aio_suspend(list, 1, NULL) || errno == EINTR, "aio_suspend");
	target_must(aio_return(&request) == sizeof sum, "aio_return");
	target_print(conclude(sum, units / 10));
	target_must(waitpid(child, NULL, 0) == child, "waitpid");
	return 0;
}
