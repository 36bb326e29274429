/* SPDX-License-Identifier: Apache-2.0 */
/* session_cost.c - what recording took: measured where it can be, else said to be assumed. */
#include "record/session_cost.h"

#include <string.h>

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
	enum { RECORDS = 1, KERNEL, RECORDER, SYSTEM };
	r->ring_records = c->nr_ring_records;
	uint64_t records_ns = r->ring_records * r->record_write_ns_x100 / 100;
	put_part(&c->sink, RECORDS, "records", r->ring_records, records_ns, false, r,
		"measured with warm caches and without call paths: at least");
	put_part(&c->sink, KERNEL, "samples and processor switches", c->nr_kernel_events,
		c->nr_kernel_events * KERNEL_EVENT_NS, false, r, "assumed: 1.5 us each");
	put_part(&c->sink, RECORDER, "reading and writing the trace", 1, r->recorder_cpu_ns, true,
		r, "the kernel's count");
	if (r->kernel_events)
		put_part(&c->sink, SYSTEM, "kernel events of all threads", r->kernel_events,
			r->kernel_events * SYSTEM_EVENT_NS, true, r, "assumed: 0.1 us each");
	if (r->target_cpu_ns)
		r->overhead_share = (double)records_ns / (double)r->target_cpu_ns;
}
