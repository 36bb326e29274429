/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c WHAT - for other processors: accesses whose numbers are known, and hard ends. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 40, THREADS = 2, ADDS = 1000 };

double left[N][N], right[N][N], product[N][N];
atomic_long counted;
long guarded;
struct pair {
	long first, second;
} pairs[N];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t nr_signals;

static void *rows(void *p)
{
	long id = (long)p;
	for (long i = id * N / THREADS; i < (id + 1) * N / THREADS; i++)
		for (int j = 0; j < N; j++) {
			double sum = 0;
			for (int k = 0; k < N; k++)
				sum += left[i][k] * right[k][j];
			product[i][j] = sum;
		}
	return NULL;
}

static void *adds(void *p)
{
	for (int i = 0; i < ADDS; i++) {
		atomic_fetch_add(&counted, 1);
		pthread_mutex_lock(&lock);
		guarded++;
		pthread_mutex_unlock(&lock);
	}
	return p;
}

static void *nothing(void *p)
{
	return p;
}

static void on_signal(int signal)
{
	nr_signals += signal == SIGUSR1;
}

static void run(void *(*function)(void *), int nr)
{
	pthread_t t[THREADS];
	for (long i = 0; i < nr; i++)
		pthread_create(&t[i], NULL, function, (void *)i);
	for (int i = 0; i < nr; i++)
		pthread_join(t[i], NULL);
}

static int matrix(void)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			left[i][j] = i, right[i][j] = j;
	run(rows, THREADS);
	for (volatile int i = 0; i < N; i++) { /* ldp or two loads; stp or two stores */
		struct pair *p = &pairs[i];
		long first = p->first, second = p->second;
		p->first = second;
		p->second = first;
	}
	printf("%g\n", product[3][4]);
	return 0;
}

static int atomics(void)
{
	run(adds, THREADS);
	printf("%ld %ld\n", (long)counted, guarded);
	return 0;
}

static int many(void)
{
	for (int i = 0; i < 100; i++)
		run(nothing, 1);
	puts("many");
	return 0;
}

static int forks(void)
{
	int status;
	pid_t child = fork();
	if (!child)
		_exit(3);
	waitpid(child, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
	return 0;
}

static int execs(void)
{
	execl("/bin/echo", "echo", "another", NULL);
	return 1;
}

static int signals(void)
{
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 100; i++)
		raise(SIGUSR1);
	printf("%d signals\n", (int)nr_signals);
	return 5;
}

static int crashes(void)
{
	fflush(stdout);
	*(volatile int *)16 = 1;
	return 0;
}

static int one(void)
{
	puts("one");
	return 0;
}

static int leaves(void)
{
	pthread_t t;
	pthread_create(&t, NULL, adds, NULL);
	pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} what[] = {{"matrix", matrix}, {"atomics", atomics}, {"many", many}, {"forks", forks},
		{"execs", execs}, {"signals", signals}, {"crashes", crashes}, {"one", one},
		{"leaves", leaves}};
	for (size_t i = 0; argc > 1 && i < sizeof what / sizeof *what; i++)
		if (!strcmp(argv[1], what[i].name))
			return what[i].run();
	return 2;
}
