/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock_pair - what recording adds to an uncontended pthread_mutex_lock/unlock pair, with both times
 * and both call sites. Usage: lock_pair LIBRARY [ROUNDS]
 *
 * Three children measure in turns, so that a change of the machine's clock meets all: bare; two
 * rdtsc in place (what any recorder of two times has to pay); the preload library, while this
 * process gives its blocks back. Prints the medians.
 */
#include "../tests/target/ring_host.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { PAIRS = 40000, ROUNDS_MAX = 4000, BLOCKS = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile uint64_t stamps[2];

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

__attribute__((noinline)) static double measure_bare(void)
{
	double begin = now_ns();
	for (int i = 0; i < PAIRS; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	return (now_ns() - begin) / PAIRS;
}

__attribute__((noinline)) static double measure_floor(void)
{
	double begin = now_ns();
	for (int i = 0; i < PAIRS; i++) {
		pthread_mutex_lock(&lock);
		stamps[0] = __rdtsc();
		stamps[1] = __rdtsc();
		pthread_mutex_unlock(&lock);
	}
	return (now_ns() - begin) / PAIRS;
}

/* The child: one number a line on stdout for each byte on stdin. */
static int serve(const char *what)
{
	char byte;
	while (read(0, &byte, 1) == 1) {
		double ns = strcmp(what, "floor") == 0 ? measure_floor() : measure_bare();
		if (write(1, &ns, sizeof ns) != sizeof ns)
			return 1;
	}
	return 0;
}

struct child {
	int to, from;
	double ns[ROUNDS_MAX];
};

static void start(struct child *child, char *self, char *what, const struct ring_host *host,
	const char *library)
{
	int to[2], from[2];
	if (pipe2(to, O_CLOEXEC) < 0 || pipe2(from, O_CLOEXEC) < 0)
		exit(4);
	if (fork() == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		if (host)
			ring_host_setenv(host, library);
		execl(self, self, "--serve", what, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	child->to = to[1];
	child->from = from[0];
}

static uint64_t nr_blocks_given_back;
static volatile bool stop;

static void *drain(void *argument)
{
	struct ring_host *host = argument;
	while (!stop) {
		bool found = false;
		for (uint32_t i = 0; i < host->head->nr_blocks; i++)
			if (__atomic_load_n(&ring_host_block(host, i)->state, __ATOMIC_ACQUIRE) ==
				RING_BLOCK_DONE) {
				ring_host_free(host, i);
				nr_blocks_given_back++;
				found = true;
			}
		if (!found)
			usleep(50);
	}
	return NULL;
}

/* Nothing may be lost in a round: it writes 59 blocks. */
static void wait_for_room(const struct ring_host *host)
{
	int nr_free = 0;
	while (nr_free < BLOCKS * 3 / 4) {
		nr_free = 0;
		for (int i = 0; i < BLOCKS / 64; i++)
			nr_free += __builtin_popcountll(
				__atomic_load_n(&host->head->free_map[i], __ATOMIC_ACQUIRE));
	}
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *of, int rounds)
{
	qsort(of, (size_t)rounds, sizeof(double), ascending);
	return of[rounds / 2];
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--serve") == 0)
		return serve(argv[2]);
	int rounds = argc > 2 ? atoi(argv[2]) : 200;
	static struct child bare, floor, ours;
	struct ring_host host;
	if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX || !ring_host_open(&host, BLOCKS)) {
		fprintf(stderr, "usage: lock_pair LIBRARY [ROUNDS]\n");
		return 2;
	}
	start(&bare, argv[0], "bare", NULL, NULL);
	start(&floor, argv[0], "floor", NULL, NULL);
	start(&ours, argv[0], "bare", &host, argv[1]);
	pthread_t drainer;
	pthread_create(&drainer, NULL, drain, &host);
	struct child *children[] = {&bare, &floor, &ours};
	for (int i = 0; i < rounds; i++) {
		wait_for_room(&host);
		for (int c = 0; c < 3; c++)
			if (write(children[c]->to, "", 1) != 1 ||
				read(children[c]->from, &children[c]->ns[i], sizeof(double)) !=
					sizeof(double))
				return 4;
	}
	stop = true;
	pthread_join(drainer, NULL);
	static double ratio[ROUNDS_MAX];
	for (int i = 0; i < rounds; i++)
		ratio[i] = (ours.ns[i] - bare.ns[i]) / (floor.ns[i] - bare.ns[i]);
	double b = median(bare.ns, rounds), f = median(floor.ns, rounds);
	double o = median(ours.ns, rounds), r = median(ratio, rounds);
	printf("bare             %6.2f ns a pair (least %.2f)\n", b, bare.ns[0]);
	printf("two bare rdtsc   %6.2f ns (%.2f), adds %.2f\n", f, floor.ns[0], f - b);
	printf("recorded         %6.2f ns (%.2f), adds %.2f = %.2f x two bare rdtsc; goal 1.5\n", o,
		ours.ns[0], o - b, r);
	printf("records %llu, lost %llu\n",
		(unsigned long long)nr_blocks_given_back * (RING_BLOCK_BYTES - 40) / 24,
		(unsigned long long)host.head->lost_records);
	ring_host_close(&host);
	return 0;
}
