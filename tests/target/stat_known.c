/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stat_known.c - a program whose counts are known: three threads that nap, work, touch pages and
 * take signals as often as they say. Each prints what the kernel tells itself just before its end.
 */
#include <longpole/counter.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NAPS = 100, PAGES = 500, PAGE = 4096, SIGNALS = 10, STAYS = 50 };

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void say(const char *name)
{
	struct rusage u;
	prctl(PR_SET_NAME, name);
	uint64_t ran = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	getrusage(RUSAGE_THREAD, &u);
	printf("%ld %s %llu %ld %ld %ld\n", syscall(SYS_gettid), name, (unsigned long long)ran,
		u.ru_nvcsw, u.ru_nivcsw, u.ru_minflt + u.ru_majflt);
}

static void *nap(void *argument)
{
	const struct timespec ms = {0, 1000000};
	(void)argument;
	for (int i = 0; i < NAPS; i++)
		nanosleep(&ms, NULL);
	say("napper) 1 (x");
	return NULL;
}

static void *touch(void *argument)
{
	char *memory = mmap(
		NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	(void)argument;
	madvise(memory, PAGES * PAGE, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++)
		memory[i * PAGE] = 1;
	say("toucher");
	return NULL;
}

static void burn(uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		continue;
}

static void on_signal(int number)
{
	(void)number;
}

static void *work(void *argument)
{
	(void)argument;
	for (int i = 0; i < STAYS; i++) {
		LONGPOLE_PHASE("busy");
		burn(1000000);
	}
	for (int i = 0; i < SIGNALS; i++)
		pthread_kill(pthread_self(), SIGUSR1);
	longpole_phase("left open");
	say("worker");
	longpole_phase_end();
	return NULL;
}

int main(int argc, char **argv)
{
	static void *(*const routine[])(void *) = {nap, touch, work};
	pthread_t thread[3];
	if (argc > 1 && !strcmp(argv[1], "fork")) {
		pid_t pid = fork();
		LONGPOLE_PHASE("both");
		burn(2000000);
		if (pid)
			waitpid(pid, NULL, 0);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "die")) {
		longpole_phase("never ends");
		burn(1000000);
		raise(SIGKILL);
	}
	signal(SIGUSR1, on_signal);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread[i], NULL, routine[i], NULL))
			return 1;
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return 7;
}
