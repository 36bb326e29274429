/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_lock - a child locks a file, computes, and gives the lock up; its parent waits for the lock
 * and then computes for a tenth of that. Known answer: the path is the child's `keep`.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

TARGET_FUNCTION uint64_t keep(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

TARGET_FUNCTION uint64_t conclude(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

static int change(int fd, const char *by, bool lock)
{
	struct flock whole = {.l_type = lock ? F_WRLCK : F_UNLCK};
	if (!strcmp(by, "lockf"))
		return lockf(fd, lock ? F_LOCK : F_ULOCK, 0);
	if (!strcmp(by, "fcntl"))
		return fcntl(fd, F_SETLKW, &whole);
	if (!strcmp(by, "ofd"))
		return fcntl(fd, lock ? F_OFD_SETLKW : F_OFD_SETLK, &whole);
	return flock(fd, lock ? LOCK_EX : LOCK_UN);
}

static void hold(const char *path, const char *by, int ready, uint64_t units)
{
	int fd = open(path, O_RDWR);
	target_must(fd >= 0 && !change(fd, by, true), "lock");
	target_must(write(ready, "", 1) == 1, "write");
	uint64_t sum = keep(1, units);
	if (!strcmp(by, "close"))
		target_must(!close(fd), "close");
	else if (strcmp(by, "exit") != 0)
		target_must(!change(fd, by, false), "unlock");
	_exit(sum == 0);
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --by --units");
	uint64_t percent = target_percent(argc, argv);
	uint64_t units = target_number(argc, argv, "--units", 300000);
	const char *by = target_text(argc, argv, "--by", "flock");
	const char *directory = getenv("TMPDIR");
	char path[4096], byte;
	int ready[2];
	snprintf(path, sizeof path, "%s/file_lock.XXXXXX", directory ? directory : "/tmp");
	int fd = mkstemp(path);
	target_must(fd >= 0 && !pipe(ready), "mkstemp");
	pid_t child = fork();
	target_must(child >= 0, "fork");
	if (!child)
		hold(path, by, ready[1], units * percent / 100);
	target_must(read(ready[0], &byte, 1) == 1, "read");
	target_must(!change(fd, by, true), "lock");
	target_print(conclude(1, units / 10));
	target_must(!unlink(path), "unlink");
	target_must(waitpid(child, NULL, 0) == child, "waitpid");
	return 0;
}
