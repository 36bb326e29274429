/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c - what recording took: measured where it can be, else said to be assumed. */
#include "session/cost.h"
#include "ring/processor.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SYSTEM_EVENT_NS = 100 }; /* a BPF program and its slot: 60 to 130 on the machines tried */

/* The best of several rounds, in 1/100 ns: reading the TSC, and that plus writing three words as a
 * wrapper does. */
void session_cost_measure(const struct os_clock *clock, struct session_result *ret)
{
	enum { ROUNDS = 8, TIMES = 512, WORDS = 3 };
	uint64_t words[TIMES * WORDS], *cursor, read = UINT64_MAX, write = UINT64_MAX;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t before = os_tsc();
		for (int i = 0; i < TIMES; i++)
			(void)*(volatile uint64_t *)&(uint64_t){os_tsc()};
		uint64_t middle = os_tsc();
		cursor = words;
		for (int i = 0; i < TIMES; i++) {
			uint64_t tsc = os_tsc(), *from = cursor, *to = from + WORDS;
			(void)PROCESSOR_REPLACE(&cursor, &from, to); /* as preload_reserve() */
			from[1] = from[2] = (uint64_t)i;
			__atomic_store_n(&from[0], tsc << 8, __ATOMIC_RELEASE);
		}
		uint64_t after = os_tsc();
		if (middle - before < read)
			read = middle - before;
		if (after - middle < write)
			write = after - middle;
	}
	ret->tsc_read_ns_x100 = os_clock_ns(clock, read * 100) / TIMES;
	ret->session_write_ns_x100 = os_clock_ns(clock, write * 100) / TIMES;
}

/* ---- waking a sleeper ------------------------------------------------------------------------ */

enum { WAKES = 24, WAKES_MIN = 8, SLEEP_NS = 40000, COME_NS = 400000 };

struct sleeper {
	pthread_t thread;
	atomic_uint word; /* counts wakes */
	atomic_uint tid;
	_Atomic uint64_t woken_tsc; /* when it came last */
	atomic_bool stop;
	int processor; /* stays there and lets others go first; -1: as any thread */
};

struct measured { /* of wakes: what the call took, and how long until the sleeper ran */
	uint64_t took[WAKES], came[WAKES];
	size_t nr_took, nr_came;
};

static void stay_on(int processor)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((size_t)processor, &set);
	(void)sched_setaffinity(0, sizeof set, &set);
}

static void *sleep_on_word(void *arg)
{
	struct sleeper *s = arg;
	if (s->processor >= 0) {
		struct sched_param none = {0};
		stay_on(s->processor);
		(void)sched_setscheduler(0, SCHED_BATCH, &none); /* does not preempt its waker */
	}
	atomic_store(&s->tid, (unsigned)syscall(SYS_gettid));
	while (!atomic_load(&s->stop)) {
		unsigned seen = atomic_load(&s->word);
		if (atomic_load(&s->stop))
			break;
		if (!syscall(SYS_futex, &s->word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0))
			atomic_store(&s->woken_tsc, os_tsc());
	}
	return NULL;
}

static long cost_wake(struct sleeper *s)
{
	atomic_fetch_add(&s->word, 1);
	return syscall(SYS_futex, &s->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* A thread of ours; signals are the recorder's own thread's. */
static bool cost_start_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool started = !pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

static void end_sleeper(struct sleeper *s)
{
	atomic_store(&s->stop, true);
	(void)cost_wake(s);
	pthread_join(s->thread, NULL);
}

static int cost_by_length(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;
	return *a < *b ? -1 : *a > *b;
}

static uint64_t quantile(uint64_t *value, size_t nr, size_t of, size_t parts)
{
	qsort(value, nr, sizeof *value, cost_by_length);
	return nr < WAKES_MIN ? 0 : value[nr * of / parts];
}

static void spin(const struct os_clock *clock, uint64_t ns)
{
	uint64_t begin = os_tsc();
	while (os_clock_ns(clock, os_tsc() - begin) < ns)
		;
}

/* One wake of a sleeper that fell asleep a while ago. */
static void wake_once(const struct os_clock *clock, struct sleeper *s, struct measured *m)
{
	spin(clock, SLEEP_NS);
	uint64_t before = os_tsc();
	if (cost_wake(s) != 1)
		return;
	m->took[m->nr_took++] = os_clock_ns(clock, os_tsc() - before);
	uint64_t came = atomic_load(&s->woken_tsc);
	while (came < before && os_clock_ns(clock, os_tsc() - before) < COME_NS)
		came = atomic_load(&s->woken_tsc);
	if (came >= before)
		m->came[m->nr_came++] = os_clock_ns(clock, came - before);
}

/*
 * What the call takes when somebody sleeps, as a thread does that works between two wakes: a median
 * of few, since programs meet the same machine. And how much later the sleeper comes with perf's
 * events than without, in turn: of the least (but two), since others delay
 * some of either kind.
 */
static void measure_wakes(const struct os_clock *clock, const struct session_cost_events *of,
	struct session_result *ret)
{
	struct sleeper s = {.processor = -1};
	struct measured bare = {0}, events = {0};
	if (!cost_start_thread(&s.thread, sleep_on_word, &s))
		return;
	while (!atomic_load(&s.tid))
		sched_yield();
	struct system_perf *probe = NULL;
	bool wide = of->perf && system_perf_is_wide(of->perf);
	if (of->perf && !wide)
		probe = system_perf_open_probe(atomic_load(&s.tid), of->sample_hz, 0, of->switches);
	const struct system_perf *perf = wide ? of->perf : probe;
	for (int i = 0; i < WAKES; i++) {
		if (perf)
			system_perf_enable(perf, false);
		wake_once(clock, &s, &bare);
		if (!perf)
			continue;
		system_perf_enable(perf, true);
		wake_once(clock, &s, &events);
	}
	end_sleeper(&s);
	system_perf_close(probe);
	ret->wake_ns = quantile(bare.took, bare.nr_took, 1, 2);
	ret->nr_wakes = ret->wake_ns ? bare.nr_took : 0;
	uint64_t without = quantile(bare.came, bare.nr_came, 1, 12);
	uint64_t with = quantile(events.came, events.nr_came, 1, 12);
	ret->switch_ns = without && with > without ? with - without : 0;
}

struct waker {
	const struct os_clock *clock;
	struct measured found;
};

/* Beside the sleeper on one processor, where that runs only while we sleep. */
static void *wake_behind(void *arg)
{
	struct waker *w = arg;
	struct sleeper s = {.processor = sched_getcpu()};
	struct timespec moment = {.tv_nsec = SLEEP_NS};
	if (s.processor < 0)
		return NULL;
	stay_on(s.processor);
	if (pthread_create(&s.thread, NULL, sleep_on_word, &s))
		return NULL;
	for (int i = 0; i < WAKES; i++) {
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
		uint64_t before = os_tsc();
		if (cost_wake(&s) == 1)
			w->found.took[w->found.nr_took++] =
				os_clock_ns(w->clock, os_tsc() - before);
	}
	end_sleeper(&s);
	return NULL;
}

static void measure_wakes_busy(const struct os_clock *clock, struct session_result *ret)
{
	struct waker w = {.clock = clock};
	pthread_t thread;
	if (!cost_start_thread(&thread, wake_behind, &w))
		return;
	pthread_join(thread, NULL);
	ret->wake_busy_ns = quantile(w.found.took, w.found.nr_took, 1, 2);
	ret->nr_wakes_busy = ret->wake_busy_ns ? w.found.nr_took : 0;
}

/* ---- a sample -------------------------------------------------------------------------------- */

static uint64_t work_ticks(void)
{
	uint64_t begin = os_tsc(), x = begin;
	for (int i = 0; i < 100000; i++)
		x = x * 6364136223846793005u + 1;
	__asm__ volatile("" : : "r"(x));
	return os_tsc() - begin;
}

/* The same work with many samples and with none, the best of several: others only add to it. */
static void measure_sample(const struct os_clock *clock, struct session_result *ret)
{
	enum { ROUNDS = 8, PERIOD_NS = 50000 };
	struct system_perf *perf =
		system_perf_open_probe((uint32_t)syscall(SYS_gettid), 0, PERIOD_NS, false);
	uint64_t bare = UINT64_MAX, sampled = UINT64_MAX;
	if (!perf)
		return;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t ticks = work_ticks();
		bare = ticks < bare ? ticks : bare;
		system_perf_enable(perf, true);
		ticks = work_ticks();
		system_perf_enable(perf, false);
		sampled = ticks < sampled ? ticks : sampled;
	}
	system_perf_close(perf);
	uint64_t nr = os_clock_ns(clock, sampled) / PERIOD_NS;
	if (nr && sampled > bare)
		ret->sample_ns = os_clock_ns(clock, sampled - bare) / nr;
}

void session_cost_measure_wakes(const struct os_clock *clock, const struct session_cost_events *of,
	struct session_result *ret)
{
	measure_wakes(clock, of, ret);
	measure_wakes_busy(clock, ret);
	if (of->perf && of->sample_hz)
		measure_sample(clock, ret);
}

static void cost_put_part(struct record_sink *s, uint32_t id, const char *name, uint64_t n,
	uint64_t total_ns, bool beside, const struct session_result *r, const char *method)
{
	struct trace_record part = {.kind = TRACE_cost,
		.u.cost = {.cost = id,
			.name = record_sink_text(s, name, strlen(name)),
			.n = n,
			.total_ns = total_ns,
			.beside = beside,
			.target_cpu_ns = r->target_cpu_ns,
			.method = record_sink_text(s, method, strlen(method))}};
	record_sink_put(s, &part);
}

/* ---- what was done in the program ------------------------------------------------------------ */

static const struct cost_kind {
	const char *name;
	uint64_t assumed_ps; /* of one, on a machine of 2024 */
} cost_kinds[] = {
	[SESSION_PROBE_start] = {TRACE_COST_STARTS, 200000000},
	[SESSION_PROBE_fork] = {TRACE_COST_FORKS, 60000000},
	[SESSION_PROBE_thread] = {"threads", 15000000},
	[SESSION_PROBE_lock] = {TRACE_COST_LOCKS, 15000},
	[SESSION_PROBE_call] = {TRACE_COST_CALLS, 60000},
	[SESSION_PROBE_record] = {TRACE_COST_RECORDS, 30000},
	[SESSION_PROBE_stack] = {"call paths", 1000000},
	[SESSION_PROBE_look] = {"descriptors looked at", 2500000},
	[SESSION_PROBE_end] = {"closes of unknown descriptors", 250000},
};
enum { COST_KINDS = BASE_COUNT(cost_kinds), WORTH_NS = 1000000 /* to be measured */ };

/* Not what a record takes by itself, in warm caches (session_write_ns_x100), but with the pages and
 * lines of the ring that it is the first to write to. Returns what all of the kind took. */
static uint64_t put_kind(struct record_converter *c, const struct session_result *r, uint32_t id,
	enum session_probe what, uint64_t n, const struct os_child_environment *environment)
{
	uint64_t one_ps = cost_kinds[what].assumed_ps, least_ps = r->session_write_ns_x100 * 10;
	bool is_record = what >= SESSION_PROBE_lock && what <= SESSION_PROBE_record;
	uint64_t record_ps = cost_kinds[SESSION_PROBE_record].assumed_ps;
	const char *method = "assumed: too little to be measured";
	if (n * one_ps / 1000 >= WORTH_NS && environment &&
		session_probe_measure(what, record_ps, environment, &one_ps))
		method = "measured after the program's end, with a program that does nothing else";
	else if (n * one_ps / 1000 >= WORTH_NS)
		method = "assumed: it could not be measured";
	if (is_record && one_ps < least_ps)
		one_ps = least_ps;
	uint64_t total_ns = (uint64_t)((unsigned __int128)n * one_ps / 1000);
	if (n || what == SESSION_PROBE_record)
		cost_put_part(&c->sink, id, cost_kinds[what].name, n, total_ns, false, r, method);
	return total_ns;
}

/* The kinds whose records are like those of that kind (RING_verb and its kin: annotations, like the
 * rest). */
static enum session_probe probe_of(unsigned kind)
{
	if (kind == RING_stack || kind == RING_descriptor)
		return kind == RING_stack ? SESSION_PROBE_stack : SESSION_PROBE_look;
	const char *name = trace_cost_of_kind(kind);
	for (unsigned k = SESSION_PROBE_lock; name && k <= SESSION_PROBE_record; k++)
		if (!strcmp(cost_kinds[k].name, name))
			return (enum session_probe)k;
	return SESSION_PROBE_record;
}

static uint64_t put_kinds(struct record_converter *c, const struct session_result *r,
	const struct ring_head *head, const struct os_child_environment *environment)
{
	static const uint32_t id[COST_KINDS] = {
		[SESSION_PROBE_record] = 1, /* the others came later */
		[SESSION_PROBE_start] = 9,
		[SESSION_PROBE_fork] = 10,
		[SESSION_PROBE_thread] = 11,
		[SESSION_PROBE_lock] = 13,
		[SESSION_PROBE_call] = 14,
		[SESSION_PROBE_stack] = 15,
		[SESSION_PROBE_look] = 16,
		[SESSION_PROBE_end] = 17};
	uint64_t nr_images = head ? __atomic_load_n(&head->images_attached, __ATOMIC_RELAXED) : 0;
	uint64_t nr_begun = c->nr_threads_begun;
	uint64_t n[COST_KINDS] = {
		[SESSION_PROBE_start] = nr_images > c->nr_forked ? nr_images - c->nr_forked : 0,
		[SESSION_PROBE_fork] = c->nr_forked,
		[SESSION_PROBE_thread] = nr_begun > nr_images ? nr_begun - nr_images : 0,
		[SESSION_PROBE_end] =
			head ? __atomic_load_n(&head->nr_ends_asked, __ATOMIC_RELAXED) : 0};
	uint64_t sum_ns = 0;
	for (unsigned kind = 0; kind < BASE_COUNT(c->nr_of_kind); kind++)
		n[probe_of(kind)] += c->nr_of_kind[kind];
	for (unsigned k = 0; k < COST_KINDS; k++)
		sum_ns += put_kind(c, r, id[k], (enum session_probe)k, n[k], environment);
	return sum_ns;
}

/* One for which the ring had no room took its stamp, and the time to learn that: 27 ns where one
 * that was kept took 9. */
static uint64_t put_lost(
	struct record_converter *c, const struct session_result *r, const struct ring_head *head)
{
	enum { LOST = 18, LOST_NS = 30 };
	uint64_t n = head ? __atomic_load_n(&head->lost_records, __ATOMIC_RELAXED) : 0;
	if (n)
		cost_put_part(&c->sink, LOST, TRACE_COST_LOST, n, n * LOST_NS, false, r,
			"assumed: 30 ns each");
	return n * LOST_NS;
}

/* Of this process, and of children that it has waited for. */
static uint64_t own_cpu_ns(void)
{
	struct rusage of[2];
	uint64_t us = 0;
	getrusage(RUSAGE_SELF, &of[0]);
	getrusage(RUSAGE_CHILDREN, &of[1]);
	for (unsigned i = 0; i < BASE_COUNT(of); i++)
		us += (uint64_t)(of[i].ru_utime.tv_sec + of[i].ru_stime.tv_sec) * 1000000u +
		      (uint64_t)(of[i].ru_utime.tv_usec + of[i].ru_stime.tv_usec);
	return us * 1000;
}

static void put_own(struct record_sink *s, const struct session_result *r)
{
	enum { RECORDER = 3, AFTER = 8, BEFORE = 12 };
	cost_put_part(s, BEFORE, TRACE_COST_BEFORE, 1, r->before_cpu_ns, true, r,
		"the kernel's count, from longpole's start on");
	cost_put_part(s, RECORDER, TRACE_COST_BESIDE, 1, r->beside_cpu_ns, true, r,
		"the kernel's count, while the program ran");
	cost_put_part(s, AFTER, TRACE_COST_AFTER, 1, r->after_cpu_ns, true, r,
		"the kernel's count, up to the last records");
}

/* The kernel counts children only where they are waited for: not those of a tree that was killed, nor
 * who outlives its parent. Samples have seen them; where there are many more of them than can be
 * chance, they count. */
static void add_unwaited(const struct record_converter *c, struct session_result *r)
{
	uint64_t seen_ns = r->sample_hz ? c->nr_samples * UINT64_C(1000000000) / r->sample_hz : 0;
	if (r->target_cpu_ns && seen_ns > r->target_cpu_ns + r->target_cpu_ns / 4)
		r->target_cpu_ns = seen_ns;
}

void session_cost_write(struct record_converter *c, struct session_result *r,
	const struct ring_head *head, const struct os_child_environment *environment)
{
	enum { SAMPLES = 2, WAKING = 4, SYSTEM, SWITCHES, WAKING_BUSY };
	char samples[80];
	uint64_t samples_ns = c->nr_samples * r->sample_ns,
		 switches_ns = c->nr_switches * r->switch_ns;
	snprintf(samples, sizeof samples, TRACE_COST_SAMPLES_METHOD,
		(unsigned long long)r->sample_hz);
	add_unwaited(c, r);
	r->ring_records = record_converter_nr_ring(c);
	uint64_t since_ns = own_cpu_ns();
	r->added_ns = put_kinds(c, r, head, environment) + put_lost(c, r, head) + samples_ns +
		      switches_ns;
	cost_put_part(&c->sink, SAMPLES, TRACE_COST_SAMPLES, c->nr_samples, samples_ns, false, r,
		samples);
	cost_put_part(&c->sink, SWITCHES, TRACE_COST_SWITCHES, c->nr_switches, switches_ns, false,
		r, "measured before the program ran, as what delays a woken thread");
	r->after_cpu_ns += own_cpu_ns() - since_ns;
	put_own(&c->sink, r);
	if (r->nr_wakes)
		cost_put_part(&c->sink, WAKING, TRACE_COST_WAKING, r->nr_wakes,
			r->nr_wakes * r->wake_ns, true, r,
			"the median of as many, measured before the program ran");
	if (r->nr_wakes_busy)
		cost_put_part(&c->sink, WAKING_BUSY, TRACE_COST_WAKING_BUSY, r->nr_wakes_busy,
			r->nr_wakes_busy * r->wake_busy_ns, true, r,
			"the median of as many, measured before the program ran");
	if (r->kernel_events)
		cost_put_part(&c->sink, SYSTEM, TRACE_COST_SYSTEM, r->kernel_events,
			r->kernel_events * SYSTEM_EVENT_NS, true, r, "assumed: 0.1 us each");
	if (r->target_cpu_ns)
		r->overhead_share = (double)r->added_ns / (double)r->target_cpu_ns;
}
