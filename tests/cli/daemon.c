/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon.c - makes itself a daemon (fork, setsid, fork, no descriptors) whose three threads take
 * turns at a lock for MS in all; as `daemon killed` it is ended by a signal of its own sending;
 * as `daemon pair` a second, shorter daemon ends before it.
 */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MS = 300, HOLDS = 20, THREADS = 3 };
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void spin_ms(int ms)
{
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	do
		clock_gettime(CLOCK_MONOTONIC, &b);
	while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < ms);
}

static void *daemon_worker(void *unused)
{
	for (int i = 0; i < HOLDS; i++) {
		pthread_mutex_lock(&turn);
		spin_ms(MS / HOLDS / THREADS);
		pthread_mutex_unlock(&turn);
	}
	return unused;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t thread[THREADS];
	if (fork())
		_exit(0);
	setsid();
	if (!strcmp(how, "pair") && !fork()) {
		spin_ms(MS / 10);
		_exit(0);
	}
	if (fork())
		_exit(0);
	if (chdir("/"))
		return 1;
	umask(0);
	for (int i = 0; i < 256; i++)
		close(i);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, daemon_worker, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	if (!strcmp(how, "killed"))
		kill(getpid(), SIGKILL);
	return 0;
}
