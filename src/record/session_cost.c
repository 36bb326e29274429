/* SPDX-License-Identifier: Apache-2.0 */
/* session_cost.c - what recording took: measured where it can be, else said to be assumed. */
#include "record/session_cost.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SYSTEM_EVENT_NS = 100 };  /* a BPF program and its slot: 60 to 130 on the machines tried */
enum { KERNEL_EVENT_NS = 1500 }; /* an interrupt and its callers, or a switch; of all machines */

/* The best of several rounds, in 1/100 ns: reading the TSC, and that plus writing three words as a
 * wrapper does. */
void record_cost_measure(const struct record_clock *clock, struct record_result *ret)
{
	enum { ROUNDS = 8, TIMES = 512, WORDS = 3 };
	uint64_t words[TIMES * WORDS], *cursor, read = UINT64_MAX, write = UINT64_MAX;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t before = record_tsc();
		for (int i = 0; i < TIMES; i++)
			(void)*(volatile uint64_t *)&(uint64_t){record_tsc()};
		uint64_t middle = record_tsc();
		cursor = words;
		for (int i = 0; i < TIMES; i++) {
			uint64_t tsc = record_tsc(), *from = cursor, *to = from + WORDS;
			__asm__ volatile("cmpxchgq %[to], %[cursor]" /* as preload_reserve() */
					 : [cursor] "+m"(cursor), "+a"(from)
					 : [to] "r"(to)
					 : "memory", "cc");
			from[1] = from[2] = (uint64_t)i;
			__atomic_store_n(&from[0], tsc << 8, __ATOMIC_RELEASE);
		}
		uint64_t after = record_tsc();
		if (middle - before < read)
			read = middle - before;
		if (after - middle < write)
			write = after - middle;
	}
	ret->tsc_read_ns_x100 = record_clock_ns(clock, read * 100) / TIMES;
	ret->record_write_ns_x100 = record_clock_ns(clock, write * 100) / TIMES;
}

/* ---- waking a sleeper
 * -------------------------------------------------------------------------------- */

enum { WAKES = 24, WAKES_MIN = 8, SLEEP_NS = 40000 };

struct sleeper {
	atomic_uint word; /* counts wakes */
	atomic_bool stop;
};

static void *sleep_on_word(void *arg)
{
	struct sleeper *s = arg;
	while (!atomic_load(&s->stop)) {
		unsigned seen = atomic_load(&s->word);
		if (atomic_load(&s->stop))
			break;
		(void)syscall(SYS_futex, &s->word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	}
	return NULL;
}

static long wake(struct sleeper *s)
{
	atomic_fetch_add(&s->word, 1);
	return syscall(SYS_futex, &s->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int by_length(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;
	return *a < *b ? -1 : *a > *b;
}

/* What the call takes when somebody sleeps, as a thread does that works between two wakes: a median
 * of few, since programs meet the same machine. 0: nobody fell asleep. */
static uint64_t wake_cost_ns(const struct record_clock *clock, uint64_t *ret_nr)
{
	struct sleeper s = {0};
	uint64_t took[WAKES];
	size_t nr = 0;
	sigset_t all, before_all;
	pthread_t thread;
	*ret_nr = 0;
	sigfillset(&all); /* signals are the recorder's own thread's */
	pthread_sigmask(SIG_SETMASK, &all, &before_all);
	int failed = pthread_create(&thread, NULL, sleep_on_word, &s);
	pthread_sigmask(SIG_SETMASK, &before_all, NULL);
	if (failed)
		return 0;
	for (int i = 0; i < WAKES; i++) {
		uint64_t begin = record_tsc(), before;
		while (record_clock_ns(clock, record_tsc() - begin) < SLEEP_NS)
			;
		before = record_tsc();
		if (wake(&s) == 1)
			took[nr++] = record_clock_ns(clock, record_tsc() - before);
	}
	atomic_store(&s.stop, true);
	(void)wake(&s);
	pthread_join(thread, NULL);
	if (nr < WAKES_MIN)
		return 0;
	qsort(took, nr, sizeof *took, by_length);
	*ret_nr = nr;
	return took[nr / 2];
}

void record_cost_measure_wake(const struct record_clock *clock, struct record_result *ret)
{
	ret->wake_ns = wake_cost_ns(clock, &ret->nr_wakes);
}

static void put_part(struct record_sink *s, uint32_t id, const char *name, uint64_t n,
	uint64_t total_ns, bool beside, const struct record_result *r, const char *method)
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

void record_cost_write(struct record_converter *c, struct record_result *r)
{
	enum { RECORDS = 1, KERNEL, RECORDER, WAKING, SYSTEM };
	r->ring_records = c->nr_ring_records;
	uint64_t records_ns = r->ring_records * r->record_write_ns_x100 / 100;
	put_part(&c->sink, RECORDS, "records", r->ring_records, records_ns, false, r,
		"measured with warm caches and without call paths: at least");
	put_part(&c->sink, KERNEL, "samples and processor switches", c->nr_kernel_events,
		c->nr_kernel_events * KERNEL_EVENT_NS, false, r, "assumed: 1.5 us each");
	put_part(&c->sink, RECORDER, "reading and writing the trace", 1, r->recorder_cpu_ns, true,
		r, "the kernel's count");
	if (r->nr_wakes)
		put_part(&c->sink, WAKING, TRACE_COST_WAKING, r->nr_wakes, r->nr_wakes * r->wake_ns,
			true, r, "the median of as many, measured before the program ran");
	if (r->kernel_events)
		put_part(&c->sink, SYSTEM, "kernel events of all threads", r->kernel_events,
			r->kernel_events * SYSTEM_EVENT_NS, true, r, "assumed: 0.1 us each");
	if (r->target_cpu_ns)
		r->overhead_share = (double)records_ns / (double)r->target_cpu_ns;
}
