/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - what was found out about spinning; and starting the program. */
#include "spin/native.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void spin_answer_fini(struct spin_answer *a)
{
	base_free(a->thread);
	base_free(a->loop);
	base_arena_free(a->arena);
	*a = (struct spin_answer){0};
}

struct spin_thread *spin_thread_of(const struct spin_answer *a, uint64_t id)
{
	for (size_t i = 0; i < a->nr_threads; i++)
		if (a->thread[i].id == id)
			return &a->thread[i];
	return NULL;
}

static uint64_t answer_weight(const struct spin_loop *l)
{
	return l->spin_instructions + l->counting_instructions + l->samples_spin + l->samples_count;
}

static int by_weight(const void *x, const void *y)
{
	const struct spin_loop *a = x, *b = y;
	if (answer_weight(a) != answer_weight(b))
		return answer_weight(a) < answer_weight(b) ? 1 : -1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->branch.address < b->branch.address ? -1 : a->branch.address > b->branch.address;
}

static int answer_by_id(const void *x, const void *y)
{
	const struct spin_thread *a = x, *b = y;
	return a->id < b->id ? -1 : a->id > b->id;
}

void spin_sort(struct spin_answer *a)
{
	if (a->nr_loops)
		qsort(a->loop, a->nr_loops, sizeof *a->loop, by_weight);
	if (a->nr_threads)
		qsort(a->thread, a->nr_threads, sizeof *a->thread, answer_by_id);
}

/* ---- programs -------------------------------------------------------------------------------- */

_Noreturn static void become(
	char *const *argv, const char *const *environment, const sigset_t *before, int fail_fd)
{
	for (const char *const *e = environment; e && *e; e += 2)
		setenv(e[0], e[1], 1);
	sigprocmask(SIG_SETMASK, before, NULL);
	execvp(argv[0], argv);
	int why = errno;
	(void)!write(fail_fd, &why, sizeof why);
	_exit(SPIN_EXIT_NOT_FOUND); /* allowed: the child that becomes the program */
}

enum base_status spin_start(char *const *argv, const char *const *environment,
	const sigset_t *before, pid_t *ret_pid, int *ret_exit_code, struct base_err *err)
{
	int fail[2], why = 0;
	ssize_t n;
	*ret_exit_code = SPIN_EXIT_OURS;
	if (pipe2(fail, O_CLOEXEC))
		return base_fail_errno(err, errno, "cannot make a pipe");
	*ret_pid = fork();
	if (*ret_pid < 0) {
		why = errno;
		close(fail[0]);
		close(fail[1]);
		return base_fail_errno(err, why, "cannot fork");
	}
	if (!*ret_pid)
		become(argv, environment, before, fail[1]);
	close(fail[1]);
	do
		n = read(fail[0], &why, sizeof why);
	while (n < 0 && errno == EINTR);
	close(fail[0]);
	if (n != (ssize_t)sizeof why)
		return BASE_OK;
	*ret_exit_code =
		why == ENOENT || why == ENOTDIR ? SPIN_EXIT_NOT_FOUND : SPIN_EXIT_NOT_EXECUTABLE;
	return base_fail_errno(err, why, "cannot run '%s'", argv[0]);
}
