/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_deadlock_watch.c - watching: who has newly slept too long is looked at, once; what was found
 * is told once. By a clock of the test's own, over real processes.
 */
#include "deadlock/private.h"
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

/* Locks a mutex twice, or waits for us to write. */
static pid_t child(bool hangs, int read_fd)
{
	const pid_t parent = getpid(), pid = fork();
	if (pid)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	for (int fd = 3; fd < 64; fd++) { /* who could wake another would be looked at, too */
		if (fd != read_fd)
			close(fd);
	}
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	char byte;
	if (hangs) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_lock(&mutex);
	}
	(void)!read(read_fd, &byte, 1);
	_exit(0);
}

/* Until the kernel says that it sleeps. */
static void wait_until_it_sleeps(pid_t pid)
{
	enum { TRIES = 20000 };
	struct os_task_stat stat = {0};
	char text[1024];
	for (int i = 0; i < TRIES && stat.state != 'S'; i++) {
		usleep(500);
		assert_true(os_proc_read(pid, "stat", text, sizeof text) > 0);
		assert_true(os_parse_stat(text, &stat));
	}
	usleep(20000);
}

static void end_child(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

/* A step at each second from `from` on; how many findings were told, all of one thread. */
static size_t steps(struct deadlock_watch *w, uint64_t from, uint64_t to, pid_t expected)
{
	size_t nr = 0;
	for (uint64_t s = from; s < to; s++) {
		struct deadlock_answer *a;
		struct base_err err = {0};
		assert_int_equal(deadlock_watch_step(w, s * SECOND, &a, &err), BASE_OK);
		if (!a)
			continue;
		assert_int_equal(a->nr_findings, 1);
		assert_int_equal(a->finding[0].kind, DEADLOCK_FINDING_SELF);
		assert_int_equal(a->wait[a->finding[0].member[0]].thread.tid, expected);
		nr++;
		deadlock_answer_free(a);
	}
	return nr;
}

static struct deadlock_watch *open_watch(const pid_t *pid, size_t nr)
{
	const struct deadlock_watch_options o = {
		.look = {
			.pid = pid, .nr_pids = nr, .threshold_ns = 10 * SECOND, .is_static = true}};
	struct deadlock_watch *w;
	struct base_err err;
	assert_int_equal(deadlock_watch_open(&o, &w, &err), BASE_OK);
	return w;
}

static void test_told_once(void **state)
{
	int end[2];
	(void)state;
	assert_int_equal(pipe(end), 0);
	const pid_t hangs = child(true, end[0]), idle = child(false, end[0]),
		    other = child(true, end[0]);
	const pid_t asked[] = {hangs, idle};
	wait_until_it_sleeps(hangs);
	wait_until_it_sleeps(idle);
	wait_until_it_sleeps(other);
	struct deadlock_watch *w = open_watch(asked, 2);
	assert_int_equal(steps(w, 1, 9, 0), 0); /* not long enough */
	assert_int_equal(deadlock_watch_stats(w)->nr_looks, 0);
	assert_int_equal(steps(w, 9, 15, hangs), 1);
	assert_int_equal(deadlock_watch_stats(w)->nr_looks, 1);
	assert_int_equal(steps(w, 15, 60, 0), 0); /* nothing is new */
	assert_int_equal(deadlock_watch_stats(w)->nr_looks, 1);
	assert_int_equal(deadlock_watch_stats(w)->nr_passes, 59);
	assert_int_equal(deadlock_watch_stats(w)->nr_findings, 1);
	assert_int_equal(deadlock_watch_stats(w)->nr_put_off, 0);
	deadlock_watch_close(w);
	end_child(hangs);
	end_child(idle);
	end_child(other);
	close(end[0]);
	close(end[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_told_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
