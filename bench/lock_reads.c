/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock_reads - ns of an uncontended pthread_mutex_lock/unlock pair with two readings of a counter
 * between, as a tool that measures holds has to make them: perf (read() of a software event), papi
 * (PAPI_read, found at run time), papi-time (PAPI_get_virt_nsec), cputime
 * (CLOCK_THREAD_CPUTIME_ID). For bench/counters, beside bench/lock_cost.
 */
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 60, PAIRS = 2000, PAPI_VERSION = 7 << 24, PAPI_NONE = -1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int perf_fd = -1, papi_set = PAPI_NONE;
static int (*papi_read)(int set, long long *values);
static long long (*papi_time)(void);

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void read_perf(void)
{
	uint64_t value;
	if (read(perf_fd, &value, sizeof value) != sizeof value)
		exit(4);
}

static void read_papi(void)
{
	long long value[4];
	papi_read(papi_set, value);
}

static void read_papi_time(void)
{
	papi_time();
}

static void read_cputime(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
}

static const char *open_perf(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
		.size = sizeof attr,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.exclude_kernel = 1};
	perf_fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	return perf_fd < 0 ? "perf_event_open is refused" : NULL;
}

static const char *open_papi(void)
{
	void *papi = dlopen("libpapi.so.7.0", RTLD_NOW | RTLD_GLOBAL);
	if (!papi)
		return "libpapi.so.7.0 is not installed";
	int (*init)(int) = (int (*)(int))dlsym(papi, "PAPI_library_init");
	int (*create)(int *) = (int (*)(int *))dlsym(papi, "PAPI_create_eventset");
	int (*add)(int, const char *) =
		(int (*)(int, const char *))dlsym(papi, "PAPI_add_named_event");
	int (*start)(int) = (int (*)(int))dlsym(papi, "PAPI_start");
	papi_read = (int (*)(int, long long *))dlsym(papi, "PAPI_read");
	if (!init || !create || !add || !start || !papi_read || init(PAPI_VERSION) != PAPI_VERSION)
		return "PAPI_library_init failed";
	if (create(&papi_set) || add(papi_set, "perf::TASK-CLOCK") || start(papi_set))
		return "PAPI has no perf::TASK-CLOCK here";
	return NULL;
}

static const char *open_papi_time(void)
{
	(void)open_papi(); /* its library, whatever events there are */
	papi_time = (long long (*)(void))dlsym(RTLD_DEFAULT, "PAPI_get_virt_nsec");
	return papi_time ? NULL : "libpapi.so.7.0 is not installed";
}

static const struct {
	const char *name;
	const char *(*open)(void);
	void (*read)(void);
} way[] = {{"perf", open_perf, read_perf}, {"papi", open_papi, read_papi},
	{"papi-time", open_papi_time, read_papi_time}, {"cputime", NULL, read_cputime}};

static void *nothing(void *argument)
{
	return argument;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static double ns[ROUNDS];
	size_t w = 0;
	while (argc > 1 && w < sizeof way / sizeof *way && strcmp(way[w].name, argv[1]) != 0)
		w++;
	if (argc < 2 || w == sizeof way / sizeof *way)
		return 2;
	const char *why = way[w].open ? way[w].open() : NULL;
	if (why) {
		fprintf(stderr, "%s\n", why);
		return 3;
	}
	pthread_t thread; /* before there is one, libc takes locks without atomic operations */
	if (pthread_create(&thread, NULL, nothing, NULL))
		return 4;
	pthread_join(thread, NULL);
	for (int r = 0; r < ROUNDS; r++) {
		uint64_t begin = now_ns();
		for (int i = 0; i < PAIRS; i++) {
			pthread_mutex_lock(&lock);
			way[w].read();
			way[w].read();
			pthread_mutex_unlock(&lock);
		}
		ns[r] = (double)(now_ns() - begin) / PAIRS;
	}
	qsort(ns, ROUNDS, sizeof *ns, ascending);
	printf("%.3f %d\n", ns[ROUNDS / 2], ROUNDS * PAIRS);
	return 0;
}
