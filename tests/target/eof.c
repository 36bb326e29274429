/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eof - a reader waits for the end of file, which a writer makes with --how long after it wrote,
 * and computes on. (--how=silent: it writes nothing, and neither closes its end, which is its
 * standard output, but by ending; the reader polls before it reads.) So does the writer, for 100 ms
 * that nobody waits for. Known answer: until the closing the path is the writer's `produce`, from
 * there on the reader's `conclude`; `linger` is not on it.
 */
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

enum { PARTS = 100, PRODUCE_UNITS = 3000, LINGER_UNITS = 100000, CONCLUDE_UNITS = 130000 };

static const char *how, *program;
static int ends[2], null_fd;
static FILE *stream;
static uint64_t percent;
static volatile uint64_t kept; /* what is computed is not left out */

TARGET_FUNCTION uint64_t produce(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

TARGET_FUNCTION uint64_t linger(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

TARGET_FUNCTION uint64_t conclude(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

static bool by(const char *name)
{
	return !strcmp(how, name);
}

static void end_it(void)
{
	if (by("shutdown"))
		target_must(shutdown(ends[1], SHUT_WR) == 0, "shutdown");
	else if (by("dup2"))
		target_must(dup2(null_fd, ends[1]) == ends[1], "dup2");
	else if (by("close_range"))
		target_must(
			close_range((unsigned)ends[1], (unsigned)ends[1], 0) == 0, "close_range");
	else if (by("fclose"))
		target_must(fclose(stream) == 0, "fclose");
	else if (by("exec"))
		execl(program, program, "--how=linger", (char *)NULL);
	else
		target_must(close(ends[1]) == 0, "close");
}

static void *write_all(void *unused)
{
	uint64_t sum = 1;
	if (by("fclose"))
		target_must((stream = fdopen(ends[1], "w")) != NULL, "fdopen");
	if (by("silent"))
		target_must(dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO, "dup2");
	else if (stream) /* the bytes leave when it is closed */
		target_must(fwrite(&sum, sizeof sum, 1, stream) == 1, "fwrite");
	else
		target_must(write(ends[1], &sum, sizeof sum) == sizeof sum, "write");
	for (uint64_t i = 0; i < PARTS; i++)
		sum = produce(sum, target_vary(1, i, PRODUCE_UNITS) * percent / 100);
	if (by("silent"))
		_exit(0);
	end_it();
	kept = linger(sum, LINGER_UNITS);
	return unused;
}

static uint64_t read_all(void)
{
	uint64_t sum = 0, item;
	ssize_t n;
	if (by("silent"))
		target_must(poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, -1) == 1,
			"poll");
	while ((n = read(ends[0], &item, sizeof item)) == sizeof item)
		sum += item;
	target_must(n == 0, "read");
	return conclude(sum, CONCLUDE_UNITS);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	target_check(argc, argv, "--section-percent --how --writer");
	program = argv[0];
	how = target_text(argc, argv, "--how", "close");
	percent = target_percent(argc, argv);
	null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (by("linger"))
		return linger(1, LINGER_UNITS) == 0;
	if (by("shutdown") || by("socket"))
		target_must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0,
			"socketpair");
	else
		target_must(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
	if (!strcmp(target_text(argc, argv, "--writer", "process"), "thread")) {
		target_must(pthread_create(&thread, NULL, write_all, NULL) == 0, "pthread_create");
		target_print(read_all());
		return pthread_join(thread, NULL);
	}
	pid_t child = fork();
	target_must(child >= 0, "fork");
	if (!child) {
		close(ends[0]);
		write_all(NULL);
		_exit(0);
	}
	close(ends[1]);
	target_print(read_all());
	target_must(waitpid(child, NULL, 0) == child, "waitpid");
	return 0;
}
