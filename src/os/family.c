/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - a program, and all processes that it starts, whoever their parents are by now. */
#include "os/family.h"

#include "os/clock.h"
#include "os/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FAMILY_AT_ONCE = 64 };

struct family_report {
	pid_t program;
	int error;
};

/* ---- the keeper ------------------------------------------------------------------------------ */

/* Ends when the program does: then the orphans are nobody's, as without it. */
static _Noreturn void family_keep(char *const *argv, pid_t parent, int report_fd)
{
	struct family_report report = {0};
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(1); /* allowed: a child of ours */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
		report.error = errno;
	else
		report.error = posix_spawnp(&report.program, argv[0], NULL, NULL, argv, environ);
	const bool is_told = write(report_fd, &report, sizeof report) == sizeof report;
	if (!is_told || report.error)
		_exit(1); /* allowed: a child of ours */
	/* it must not hold what others wait to see closed */
	(void)syscall(__NR_close_range, 0, ~0U, 0);
	/* (with SIGCHLD ignored the program may be gone unseen before this) */
	(void)signal(SIGCHLD, SIG_DFL);
	pid_t ended = kill(report.program, 0) == 0 ? 0 : report.program;
	while (ended != report.program && (ended > 0 || !ended || errno == EINTR))
		ended = waitpid(-1, NULL, 0);
	_exit(0); /* allowed: the same child */
}

enum base_status os_family_start(struct os_family *ret, char *const *argv, struct base_err *err)
{
	struct family_report report = {.error = ECHILD}; /* the keeper was killed */
	const pid_t parent = getpid();
	int report_fd[2];
	*ret = (struct os_family){.has_ended = true};
	if (pipe2(report_fd, O_CLOEXEC) != 0)
		return base_fail_errno(err, errno, "starting %s", argv[0]);
	ret->keeper = fork();
	const int error = errno;
	if (ret->keeper == 0)
		family_keep(argv, parent, report_fd[1]);
	close(report_fd[1]);
	ssize_t n = -1;
	if (ret->keeper > 0)
		while ((n = read(report_fd[0], &report, sizeof report)) < 0 && errno == EINTR)
			;
	else
		report.error = error;
	close(report_fd[0]);
	if (n == sizeof report && !report.error) {
		*ret = (struct os_family){.keeper = ret->keeper, .program = report.program};
		return BASE_OK;
	}
	if (ret->keeper > 0)
		(void)waitpid(ret->keeper, NULL, 0);
	return base_fail_errno(err, report.error, "starting %s", argv[0]);
}

bool os_family_has_ended(struct os_family *f)
{
	if (!f->has_ended)
		f->has_ended = waitpid(f->keeper, NULL, WNOHANG) == f->keeper;
	return f->has_ended;
}

/* ---- the family ------------------------------------------------------------------------------ */

/* Of a process whose first thread has ended others may run on. */
static bool family_lives(pid_t pid, const struct os_task_stat *stat)
{
	pid_t tid[2];
	const bool has_ended = stat->state == 'Z' || stat->state == 'X';
	return !has_ended || os_list_tasks(pid, tid, BASE_COUNT(tid)) > 1;
}

size_t os_family_children(const struct os_family *f, pid_t *ret, size_t max)
{
	size_t nr = 0;
	DIR *dir = f->has_ended ? NULL : opendir("/proc");
	for (const struct dirent *e; dir && nr < max && (e = readdir(dir));) {
		char text[1024], *end;
		struct os_task_stat stat;
		const long pid = strtol(e->d_name, &end, 10);
		if (*end || pid <= 0 || pid > INT32_MAX ||
			os_proc_read((pid_t)pid, "stat", text, sizeof text) <= 0 ||
			!os_parse_stat(text, &stat) || stat.parent != f->keeper ||
			!family_lives((pid_t)pid, &stat))
			continue;
		ret[nr++] = (pid_t)pid;
	}
	if (dir)
		closedir(dir);
	return nr;
}

/* A keeper that is stopped reaps nobody, so that the number of a child of it is no other's. False:
 * the program has ended. */
static bool family_hold(struct os_family *f)
{
	int status;
	if (os_family_has_ended(f) || kill(f->keeper, SIGSTOP) != 0)
		return false;
	while (waitpid(f->keeper, &status, WUNTRACED) < 0)
		if (errno != EINTR)
			return false;
	f->has_ended = !WIFSTOPPED(status);
	return !f->has_ended;
}

size_t os_family_kill(struct os_family *f, uint64_t patience_ns)
{
	static const struct timespec nap = {.tv_nsec = 2000000};
	const uint64_t until_ns = os_time_ns(CLOCK_MONOTONIC) + patience_ns;
	size_t nr = 1, nr_before;
	if (!family_hold(f))
		return 0;
	/* Children of a process that dies come to the keeper, maybe behind where the list was read
	 * by then: nobody is left when two lists in a row say so. */
	do {
		pid_t child[FAMILY_AT_ONCE];
		nr_before = nr;
		nr = os_family_children(f, child, BASE_COUNT(child));
		for (size_t i = 0; i < nr; i++)
			(void)kill(child[i], SIGKILL);
		(void)nanosleep(&nap, NULL);
	} while ((nr || nr_before) && os_time_ns(CLOCK_MONOTONIC) < until_ns);
	(void)kill(f->keeper, SIGKILL);
	while (waitpid(f->keeper, NULL, 0) < 0 && errno == EINTR)
		;
	f->has_ended = true;
	return nr;
}
