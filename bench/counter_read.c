/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counter_read.c - what bench/counters runs: reads of a thread's counts beside the peers', under
 * preemption, and of a PMU page that another thread rewrites.
 *
 *   cost                     ns a read: bare rdtsc, ours, in turns
 *   table READS              user, kernel and wall seconds of READS reads of three values
 *   threads N MS             ns an operation as rdtsc, ours and the kernel see it, N threads
 *   races READS THREADS KIND ours or naive: values that go backwards, jump, were preempted, moved
 *   mock READS               rdpmc's protocol against a page that is rewritten
 */
static unsigned long mock_rdpmc(unsigned index);
#define LONGPOLE_RDPMC(index) mock_rdpmc(index)
#include <longpole/counter.h>

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_PAPI
#include <papi.h>
#endif

enum { THREADS_MAX = 256, BLOCK = 256 };

static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "counter_read: %s\n", what);
	exit(1);
}

static void open_set(struct longpole_counter *c, unsigned nr)
{
	static const enum longpole_event event[] = {
		LONGPOLE_TICKS, LONGPOLE_SWITCHES, LONGPOLE_MIGRATIONS};
	char text[2048];
	if (longpole_counter_open(c, event, nr, NULL))
		die(longpole_counter_explain(c, text, sizeof text));
}

/* ---- cost ------------------------------------------------------------------------------------ */

enum { COST_READS = 20000, COST_ROUNDS = 400 };

static int run_cost(void)
{
	struct longpole_counter one, three;
	uint64_t value[3];
	static volatile uint64_t kept[3]; /* what any design has to add to the stamp, or give */
	double best[4] = {1e9, 1e9, 1e9, 1e9};
	open_set(&one, 1);
	open_set(&three, 3);
	for (int round = 0; round < COST_ROUNDS; round++)
		for (int kind = 0; kind < 4; kind++) {
			uint64_t begin = clock_ns(CLOCK_MONOTONIC_RAW);
			if (kind == 0)
				for (int i = 0; i < COST_READS; i++)
					sink = longpole_rdtsc();
			else if (kind == 1)
				for (int i = 0; i < COST_READS; i++)
					sink = longpole_counter_read1(&one);
			else if (kind == 2)
				for (int i = 0; i < COST_READS; i++) {
					sink = longpole_rdtsc() + kept[0];
					sink = kept[1];
					sink = kept[2];
				}
			else
				for (int i = 0; i < COST_READS; i++) {
					if (longpole_counter_read(&three, value))
						die("read");
					sink = value[0];
					sink = value[1];
					sink = value[2];
				}
			double ns = (double)(clock_ns(CLOCK_MONOTONIC_RAW) - begin) / COST_READS;
			best[kind] = ns < best[kind] ? ns : best[kind];
		}
	printf("%.3f %.3f %.3f %.3f %s\n", best[0], best[1], best[2], best[3],
		longpole_backend_name((enum longpole_backend)one.event[0].backend));
	return 0;
}

/* ---- table 1 --------------------------------------------------------------------------------- */

struct stopwatch {
	struct rusage usage;
	uint64_t wall_ns;
};

static void start(struct stopwatch *s)
{
	getrusage(RUSAGE_SELF, &s->usage);
	s->wall_ns = clock_ns(CLOCK_MONOTONIC_RAW);
}

static double seconds(struct timeval begin, struct timeval end)
{
	return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_usec - begin.tv_usec) * 1e-6;
}

static void stop(const struct stopwatch *s, const char *name)
{
	double wall = (double)(clock_ns(CLOCK_MONOTONIC_RAW) - s->wall_ns) * 1e-9;
	struct rusage now;
	getrusage(RUSAGE_SELF, &now);
	printf("%s %.4f %.4f %.4f\n", name, seconds(s->usage.ru_utime, now.ru_utime),
		seconds(s->usage.ru_stime, now.ru_stime), wall);
}

static int open_perf(uint64_t config, int group)
{
	struct perf_event_attr attr;
	memset(&attr, 0, sizeof attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.size = sizeof attr;
	attr.config = config;
	attr.read_format = PERF_FORMAT_GROUP;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, group, 0);
}

static void table_perf(uint64_t reads)
{
	struct stopwatch watch;
	uint64_t value[8];
	int group = open_perf(PERF_COUNT_SW_TASK_CLOCK, -1);
	if (group < 0 || open_perf(PERF_COUNT_SW_CONTEXT_SWITCHES, group) < 0 ||
		open_perf(PERF_COUNT_SW_CPU_MIGRATIONS, group) < 0)
		return;
	start(&watch);
	for (uint64_t i = 0; i < reads; i++) {
		if (read(group, value, sizeof value) <= 0)
			die("perf read");
		sink = value[1];
	}
	stop(&watch, "perf");
	close(group);
}

#ifdef WITH_PAPI
static void table_papi(uint64_t reads)
{
	static const char *const name[] = {
		"perf::TASK-CLOCK", "perf::CONTEXT-SWITCHES", "perf::CPU-MIGRATIONS"};
	struct stopwatch watch;
	long long value[3];
	int set = PAPI_NULL;
	if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT ||
		PAPI_create_eventset(&set) != PAPI_OK)
		return;
	for (int i = 0; i < 3; i++) {
		int status = PAPI_add_named_event(set, name[i]);
		if (status != PAPI_OK) {
			const PAPI_component_info_t *perf = PAPI_get_component_info(0);
			printf("papi-refuses %s: %s (%s)\n", name[i], PAPI_strerror(status),
				perf ? perf->disabled_reason : "");
			start(&watch);
			for (uint64_t k = 0; k < reads; k++)
				sink = (uint64_t)PAPI_get_virt_nsec();
			stop(&watch, "papi-virtual-time");
			return;
		}
	}
	if (PAPI_start(set) != PAPI_OK)
		return;
	start(&watch);
	for (uint64_t i = 0; i < reads; i++) {
		if (PAPI_read(set, value) != PAPI_OK)
			die("PAPI_read");
		sink = (uint64_t)value[0];
	}
	stop(&watch, "papi");
	PAPI_stop(set, value);
}
#endif

static int run_table(uint64_t reads)
{
	struct stopwatch watch;
	struct longpole_counter three;
	uint64_t value[3];
	start(&watch);
	for (uint64_t i = 0; i < reads; i++)
		sink = longpole_rdtsc();
	stop(&watch, "rdtsc");
	open_set(&three, 3);
	start(&watch);
	for (uint64_t i = 0; i < reads; i++) {
		if (longpole_counter_read(&three, value))
			die("read");
		sink = value[0];
		sink = value[1];
		sink = value[2];
	}
	stop(&watch, "ours");
	longpole_counter_close(
		&three); /* its migrations are a perf event, which others would pay for */
	table_perf(reads);
#ifdef WITH_PAPI
	table_papi(reads);
#endif
	return 0;
}

/* ---- figure 4b ------------------------------------------------------------------------------- */

struct worker {
	double tsc_ns, ours_ns, kernel_ns;
};
static pthread_barrier_t together;
static uint64_t operations;

static void operation(void)
{
	uint64_t x = 3;
	for (int i = 0; i < 100; i++)
		__asm__ volatile("imulq %0, %0\n\timulq %0, %0" : "+r"(x) : : "cc");
}

static void *operate(void *argument)
{
	struct worker *o = argument;
	struct longpole_counter c;
	open_set(&c, 1);
	pthread_barrier_wait(&together);
	uint64_t kernel = clock_ns(CLOCK_THREAD_CPUTIME_ID), ours = longpole_counter_read1(&c);
	uint64_t tsc = longpole_rdtsc();
	for (uint64_t i = 0; i < operations; i++)
		operation();
	tsc = longpole_rdtsc() - tsc;
	ours = longpole_counter_read1(&c) - ours;
	kernel = clock_ns(CLOCK_THREAD_CPUTIME_ID) - kernel;
	o->tsc_ns = (double)longpole_counter_ticks_to_ns(tsc) / (double)operations;
	o->ours_ns = (double)longpole_counter_ticks_to_ns(ours) / (double)operations;
	o->kernel_ns = (double)kernel / (double)operations;
	longpole_counter_close(&c);
	return NULL;
}

static int run_threads(unsigned nr, uint64_t ms)
{
	static struct worker result[THREADS_MAX];
	pthread_t thread[THREADS_MAX];
	struct worker sum = {0, 0, 0};
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < 20000; i++)
		operation();
	operations = ms * 1000000u * 20000u / (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
	pthread_barrier_init(&together, NULL, nr);
	for (unsigned i = 0; i < nr; i++)
		if (pthread_create(&thread[i], NULL, operate, &result[i]))
			die("pthread_create");
	for (unsigned i = 0; i < nr; i++) {
		pthread_join(thread[i], NULL);
		sum.tsc_ns += result[i].tsc_ns / nr;
		sum.ours_ns += result[i].ours_ns / nr;
		sum.kernel_ns += result[i].kernel_ns / nr;
	}
	printf("%.3f %.3f %.3f\n", sum.tsc_ns, sum.ours_ns, sum.kernel_ns);
	return 0;
}

/* ---- races ----------------------------------------------------------------------------------- */

enum { DISTURB_US = 50, MIGRATE_US = 2000, JUMP_US = 1000 };

struct racer {
	uint64_t reads, backwards, worst_backwards, jumps, switches, unexplained_ns;
	uint64_t ours_ns, kernel_ns, wanted;
	bool naive;
};
static bool races_over;

/* The check before the read alone, as one would write it: what a preemption between them makes of
 * it is the double counting of section 3. */
static uint64_t naive_read(struct longpole_counter *c)
{
	struct longpole_counter_thread *t = c->thread;
	for (;;) {
		uint64_t kept = t->kept[0];
		if (t->owner && *t->epoch == t->expected)
			return longpole_rdtsc() + kept - c->event[0].base;
		t->last_ticks = t->last_tsc = 0; /* without the clamp, which would hide it */
		longpole_counter_read1(c);
	}
}

static void judge(struct racer *r, struct longpole_counter *c, uint64_t before, uint64_t now,
	uint64_t jump_ticks, uint64_t *kernel_before)
{
	if (now < before) {
		r->backwards++;
		if (before - now > r->worst_backwards)
			r->worst_backwards = before - now;
	} else if (now - before > jump_ticks) {
		/* right if the kernel says that the thread ran that long */
		uint64_t kernel = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		uint64_t jump_ns = longpole_counter_ticks_to_ns(now - before);
		uint64_t ran_ns = kernel - *kernel_before;
		r->jumps++;
		if (jump_ns > ran_ns)
			r->unexplained_ns += jump_ns - ran_ns;
		(void)c;
	}
}

static void *race(void *argument)
{
	struct racer *r = argument;
	struct longpole_counter c;
	struct rusage begin, end;
	open_set(&c, 1);
	uint64_t jump_ticks = longpole_counter_tick_hz() / 1000000u * JUMP_US;
	getrusage(RUSAGE_THREAD, &begin);
	uint64_t kernel = clock_ns(CLOCK_THREAD_CPUTIME_ID), kernel_block = kernel;
	uint64_t first = r->naive ? naive_read(&c) : longpole_counter_read1(&c), before = first;
	while (r->reads < r->wanted) {
		for (int i = 0; i < BLOCK * 16; i++) {
			uint64_t now = r->naive ? naive_read(&c) : longpole_counter_read1(&c);
			if (__builtin_expect(now - before > jump_ticks, 0))
				judge(r, &c, before, now, jump_ticks, &kernel_block);
			before = now;
		}
		r->reads += BLOCK * 16;
		kernel_block = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	}
	r->ours_ns = longpole_counter_ticks_to_ns(before - first);
	r->kernel_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - kernel;
	getrusage(RUSAGE_THREAD, &end);
	r->switches = (uint64_t)(end.ru_nvcsw + end.ru_nivcsw - begin.ru_nvcsw - begin.ru_nivcsw);
	longpole_counter_close(&c);
	return NULL;
}

static void *disturb(void *argument)
{
	const struct sched_param first = {.sched_priority = 10};
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET((size_t)(uintptr_t)argument, &cpus);
	sched_setaffinity(0, sizeof cpus, &cpus);
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		(void)!nice(-10);
	while (!__atomic_load_n(&races_over, __ATOMIC_RELAXED)) {
		const struct timespec pause = {0, DISTURB_US * 1000};
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void *migrate(void *argument)
{
	const pthread_t *thread = argument;
	unsigned random = 1;
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	while (!__atomic_load_n(&races_over, __ATOMIC_RELAXED)) {
		for (int i = 0; thread[i]; i++) {
			cpu_set_t cpus;
			CPU_ZERO(&cpus);
			random = random * 1103515245u + 12345u;
			CPU_SET((random >> 16) % (unsigned)nr_cpus, &cpus);
			pthread_setaffinity_np(thread[i], sizeof cpus, &cpus);
		}
		usleep(MIGRATE_US);
	}
	return NULL;
}

static uint64_t steal_ns(void)
{
	unsigned long long field[8] = {0};
	FILE *file = fopen("/proc/stat", "r");
	if (!file)
		return 0;
	if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &field[0], &field[1],
		    &field[2], &field[3], &field[4], &field[5], &field[6], &field[7]) != 8)
		field[7] = 0;
	fclose(file);
	return field[7] * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

static int run_races(uint64_t reads, unsigned nr, bool naive)
{
	static struct racer racer[THREADS_MAX];
	static pthread_t thread[THREADS_MAX + 1];
	struct racer sum = {.naive = naive};
	pthread_t helper[65];
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t steal = steal_ns();
	nr_cpus = nr_cpus < 64 ? nr_cpus : 64;
	for (unsigned i = 0; i < nr; i++) {
		racer[i].naive = naive;
		racer[i].wanted = reads / nr;
		if (pthread_create(&thread[i], NULL, race, &racer[i]))
			die("pthread_create");
	}
	for (long i = 0; i < nr_cpus; i++)
		pthread_create(&helper[i], NULL, disturb, (void *)i);
	pthread_create(&helper[nr_cpus], NULL, migrate, thread);
	for (unsigned i = 0; i < nr; i++) {
		struct racer *r = &racer[i];
		while (__atomic_load_n(&r->kernel_ns, __ATOMIC_RELAXED) == 0)
			usleep(1000);
	}
	__atomic_store_n(&races_over, true, __ATOMIC_RELAXED);
	for (long i = 0; i <= nr_cpus; i++)
		pthread_join(helper[i], NULL);
	for (unsigned i = 0; i < nr; i++) {
		struct racer *r = &racer[i];
		pthread_join(thread[i], NULL);
		sum.reads += r->reads;
		sum.backwards += r->backwards;
		sum.jumps += r->jumps;
		sum.switches += r->switches;
		sum.unexplained_ns += r->unexplained_ns;
		sum.ours_ns += r->ours_ns;
		sum.kernel_ns += r->kernel_ns;
		if (r->worst_backwards > sum.worst_backwards)
			sum.worst_backwards = r->worst_backwards;
	}
	printf("%llu %llu %llu %llu %llu %llu %llu %llu %llu\n", (unsigned long long)sum.reads,
		(unsigned long long)sum.switches, (unsigned long long)sum.backwards,
		(unsigned long long)longpole_counter_ticks_to_ns(sum.worst_backwards),
		(unsigned long long)sum.jumps, (unsigned long long)sum.unexplained_ns,
		(unsigned long long)(steal_ns() - steal), (unsigned long long)sum.ours_ns,
		(unsigned long long)sum.kernel_ns);
	return 0;
}

/* ---- the mock page --------------------------------------------------------------------------- */

static struct perf_event_mmap_page page;
static uint64_t mock_raw, mock_count;
static bool mock_over;

static unsigned long mock_rdpmc(unsigned index)
{
	(void)index;
	return *(volatile uint64_t *)&mock_raw;
}

/* As the kernel does it at a switch: the event goes on in a counter just below its overflow. */
static void *mock_kernel(void *argument)
{
	uint64_t random = 1, *rewrites = argument;
	while (!__atomic_load_n(&mock_over, __ATOMIC_RELAXED)) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint64_t raw = (1ull << 48) - 1 - (random >> 40 & 0xffffff);
		__atomic_store_n(&page.lock, page.lock + 1, __ATOMIC_SEQ_CST);
		__atomic_store_n(&mock_count, mock_count + 5, __ATOMIC_SEQ_CST);
		*(volatile __s64 *)&page.offset =
			(int64_t)mock_count - (int64_t)(raw - (1ull << 48));
		*(volatile uint64_t *)&mock_raw = raw;
		__atomic_store_n(&page.lock, page.lock + 1, __ATOMIC_SEQ_CST);
		++*rewrites;
		for (volatile int i = 0; i < 50; i++)
			continue;
	}
	return NULL;
}

static int run_mock(uint64_t reads)
{
	uint64_t rewrites = 0, before = 0, wrong = 0, value;
	pthread_t thread;
	page.cap_user_rdpmc = 1;
	page.index = 1;
	page.pmc_width = 48;
	pthread_create(&thread, NULL, mock_kernel, &rewrites);
	while (__atomic_load_n(&mock_count, __ATOMIC_SEQ_CST) < 5)
		continue;
	for (uint64_t i = 0; i < reads; i++) {
		if (!longpole_pmu_read(&page, &value) || value < before ||
			value > __atomic_load_n(&mock_count, __ATOMIC_SEQ_CST))
			wrong++;
		before = value;
	}
	__atomic_store_n(&mock_over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("%llu %llu %llu\n", (unsigned long long)reads, (unsigned long long)rewrites,
		(unsigned long long)wrong);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	uint64_t m = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	if (!strcmp(what, "cost"))
		return run_cost();
	if (!strcmp(what, "table") && n)
		return run_table(n);
	if (!strcmp(what, "threads") && n && n <= THREADS_MAX && m)
		return run_threads((unsigned)n, m);
	if (!strcmp(what, "races") && n && m && m <= THREADS_MAX && argc > 4)
		return run_races(n, (unsigned)m, !strcmp(argv[4], "naive"));
	if (!strcmp(what, "mock") && n)
		return run_mock(n);
	fprintf(stderr,
		"usage: counter_read cost | table READS | threads N MS | races READS THREADS "
		"ours|naive | mock READS\n");
	return 2;
}
