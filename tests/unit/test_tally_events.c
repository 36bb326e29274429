/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tally_events.c - a thread's events against a processor that is made up: known counts,
 * counters that others have for a while, descriptors that the program closed, forks.
 */
#define preload_syscall preload_syscall_of_kernel
#include "preload/preload.h"
#undef preload_syscall
#define preload_syscall       pretend_syscall
#define LONGPOLE_RDPMC(index) pretend_rdpmc(index)
#include <stdint.h>
static long pretend_syscall(long number, long a, long b, long c, long d, long e, long f);
static uint64_t pretend_rdpmc(uint32_t index);
#include "tally/events.c" // NOLINT(bugprone-suspicious-include)

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* ---- the processor: an event is a descriptor, a page, and perhaps a counter ------------------ */

enum { EVENTS = 16, FD_FIRST = 3, KEPT_FIRST = 1000, ID_FIRST = 500, COUNTER_BITS = 48 };
static _Alignas(PRELOAD_PAGE) struct {
	union {
		struct perf_event_mmap_page page;
		char bytes[PRELOAD_PAGE];
	};
} pages[EVENTS];
static struct pretended {
	bool open, mapped, in_kernel;
	int leader; /* number of its group's */
	uint64_t config, count;
} events[EVENTS];
static struct {
	unsigned nr, nr_foreign_reads, nr_fds, nr_pages;
	bool no_rdpmc, no_kernel, foreign,
		is_event; /* foreign: the leaders' numbers are other files' now; events, too */
	uint64_t now_ns, lost_ns;
	uint64_t reading_costs; /* a reading counts so many of each event in user space */
} processor;

/* What the counter's register says: it did not begin at zero. */
static uint64_t raw_of(unsigned i)
{
	return (events[i].count + 12345) & (((uint64_t)1 << COUNTER_BITS) - 1);
}

static int64_t extended(uint64_t raw)
{
	return (int64_t)(raw << (64 - COUNTER_BITS)) >> (64 - COUNTER_BITS);
}

/* As the kernel keeps the pages. */
static void refresh(void)
{
	for (unsigned i = 0; i < processor.nr; i++) {
		struct perf_event_mmap_page *p = &pages[i].page;
		bool has_counter = !processor.no_rdpmc && p->index;
		p->offset = (int64_t)events[i].count - (has_counter ? extended(raw_of(i)) : 0);
		p->time_enabled = processor.now_ns;
		p->time_running = processor.now_ns - processor.lost_ns;
		p->pmc_width = COUNTER_BITS;
		p->cap_user_rdpmc = !processor.no_rdpmc;
	}
}

/* The program, or the kernel for it, does so much of each event. */
static void happens(bool in_kernel, uint64_t nr)
{
	for (unsigned i = 0; i < processor.nr; i++)
		if (events[i].in_kernel == in_kernel)
			events[i].count += nr * (1 + events[i].config);
	processor.now_ns += nr;
	refresh();
}

static void counters(bool are_ours)
{
	for (unsigned i = 0; i < processor.nr; i++)
		pages[i].page.index = are_ours ? i + 1 : 0;
	if (!are_ours)
		processor.lost_ns += 10, processor.now_ns += 10;
	refresh();
}

static uint64_t pretend_rdpmc(uint32_t index)
{
	if (index == 0)
		happens(false, processor.reading_costs);
	return raw_of(index);
}

static long pretend_open(const struct perf_event_attr *attr, long leader)
{
	unsigned n = processor.nr;
	if ((processor.no_kernel && attr->exclude_user) || n == EVENTS)
		return -EACCES;
	events[n] = (struct pretended){.open = true,
		.in_kernel = attr->exclude_user,
		.leader = leader < 0 ? (int)n : (int)leader - FD_FIRST,
		.config = attr->config};
	memset(&pages[n], 0, sizeof pages[n]);
	pages[n].page.index = n + 1;
	processor.nr++;
	processor.nr_fds++;
	refresh();
	return FD_FIRST + (long)n;
}

static long pretend_read(long fd, uint64_t *to)
{
	unsigned leader = (unsigned)(fd - KEPT_FIRST), nr = 0;
	if (processor.foreign) {
		processor.nr_foreign_reads++;
		return -EBADF;
	}
	for (unsigned i = 0; i < processor.nr; i++)
		if (events[i].leader == (int)leader)
			to[3 + nr++] = events[i].count;
	to[0] = nr;
	to[1] = processor.now_ns;
	to[2] = processor.now_ns - processor.lost_ns;
	if (!events[leader].in_kernel)
		happens(false, processor.reading_costs);
	return (long)(3 + nr) * 8;
}

static long pretend_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	(void)f;
	switch (number) {
	case SYS_perf_event_open:
		return pretend_open((const struct perf_event_attr *)a, d);
	case SYS_mmap:
		processor.nr_pages++;
		return (long)&pages[e - FD_FIRST];
	case SYS_munmap:
		processor.nr_pages--;
		return 0;
	case SYS_close:
		processor.nr_fds--;
		return 0;
	case SYS_fcntl:
		assert_int_equal(b, F_DUPFD_CLOEXEC);
		processor.nr_fds++;
		return a - FD_FIRST + KEPT_FIRST;
	case SYS_ioctl:
		if (processor.foreign && !processor.is_event)
			return -ENOTTY;
		*(uint64_t *)c =
			ID_FIRST + (uint64_t)(a - KEPT_FIRST) + (processor.foreign ? 100 : 0);
		return 0;
	case SYS_read:
		return pretend_read(a, (uint64_t *)b);
	default:
		fail_msg("system call %ld", number);
		return -ENOSYS;
	}
}

/* ---- the rest of the library ----------------------------------------------------------------- */

struct preload_fresh preload_fresh;
struct preload_ring preload_ring;
struct preload_sandbox preload_sandbox;
struct preload_thread preload_nobody, preload_ended;
__thread struct preload_thread *preload_self = &preload_nobody;
static struct preload_thread thread;
static struct tally_table table;
static struct ring_head head;

struct preload_thread *preload_self_take(void)
{
	return preload_self = &thread;
}

bool preload_is_vfork_child(void)
{
	return true;
}

static void begin(void)
{
	memset(&thread, 0, sizeof thread);
	memset(&table, 0, sizeof table);
	memset(events, 0, sizeof events);
	memset(&processor, 0, sizeof processor);
	memset(floor_of, 0, sizeof floor_of);
	processor.now_ns = 1000;
	thread.image = 1;
	thread.number = 1;
	thread.place = 1;
	thread.tally = &table;
	preload_self = &thread;
	preload_fresh.head = &head;
	preload_ring = (struct preload_ring){.nr_events = 2,
		.event_modes = 3,
		.event = {{.type = PERF_TYPE_HARDWARE, .config = 0},
			{.type = PERF_TYPE_HARDWARE, .config = 1}}};
}

/* A call that does so much in user space and in the kernel. */
static void one_call(struct tally_event_sums *sums, uint64_t user, uint64_t kernel)
{
	struct tally_event_reading since, now;
	bool has = tally_events_read(&since);
	happens(false, user);
	happens(true, kernel);
	if (has && tally_events_read(&now))
		tally_events_add(&since, &now, 1, sums);
}

static void nothing(void)
{
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void counts(void **state)
{
	(void)state;
	for (unsigned by_call = 0; by_call < 2; by_call++) {
		struct tally_event_sums sums = {0};
		begin();
		processor.no_rdpmc = by_call;
		processor.reading_costs = 7;
		tally_events_measure(nothing);
		for (unsigned i = 0; i < 10; i++) {
			happens(false, 1000); /* the program's own */
			one_call(&sums, 30, 5);
		}
		assert_int_equal(sums.nr[TALLY_USER], 10);
		assert_int_equal(sums.nr[TALLY_KERNEL], 10);
		/* one event a unit, and two: less what the readings count */
		assert_int_equal(sums.count[TALLY_USER][0], 300);
		assert_int_equal(sums.count[TALLY_USER][1], 600);
		assert_int_equal(sums.count[TALLY_KERNEL][0], 50);
		assert_int_equal(sums.count[TALLY_KERNEL][1], 100);
		assert_true(table.event_count[TALLY_USER][0] >= 10300);
		assert_true(table.event_count[TALLY_USER][0] < 11000);
		assert_int_equal(table.event_count[TALLY_KERNEL][1], 100);
		assert_int_equal(table.running_ns[TALLY_USER], table.enabled_ns[TALLY_USER]);
		/* by rdpmc no descriptor stays open; else the leaders' */
		assert_int_equal(processor.nr_fds, by_call ? 2 : 0);
		tally_events_leave();
		assert_int_equal(processor.nr_fds, 0);
		assert_int_equal(processor.nr_pages, 0);
	}
}

/* More than counters have bits for. */
static void counters_overflow(void **state)
{
	(void)state;
	struct tally_event_sums sums = {0};
	begin();
	for (unsigned i = 0; i < 4; i++)
		one_call(&sums, (uint64_t)1 << (COUNTER_BITS - 3), 0);
	assert_int_equal(sums.count[TALLY_USER][0], (uint64_t)1 << (COUNTER_BITS - 1));
}

/* One of a sample stands for others. */
static void weights(void **state)
{
	(void)state;
	struct tally_event_sums sums = {0};
	struct tally_event_reading since, now;
	begin();
	assert_true(tally_events_read(&since));
	happens(false, 30);
	assert_true(tally_events_read(&now));
	tally_events_add(&since, &now, 8, &sums);
	assert_int_equal(sums.nr[TALLY_USER], 8);
	assert_int_equal(sums.count[TALLY_USER][1], 8 * 60);
}

/* Two kinds of cores: the page may allow rdpmc, we do not. */
static void never_by_rdpmc(void **state)
{
	(void)state;
	struct tally_event_sums sums = {0};
	begin();
	preload_ring.events_by_call = 1;
	one_call(&sums, 30, 5);
	assert_int_equal(processor.nr_fds, 2);
	assert_int_equal(sums.count[TALLY_USER][0], 30);
}

/* A call during which others had the counters says nothing: neither at its end, nor if it got them
 * back by then. */
static void others_have_the_counters(void **state)
{
	(void)state;
	for (unsigned by_call = 0; by_call < 2; by_call++) {
		struct tally_event_sums sums = {0};
		struct tally_event_reading since, now;
		begin();
		processor.no_rdpmc = by_call;
		one_call(&sums, 30, 5);
		assert_true(tally_events_read(&since));
		counters(false);
		if (!by_call) {
			assert_false(tally_events_read(&now));
		}
		happens(false, 4);
		counters(true);
		assert_true(tally_events_read(&now));
		tally_events_add(&since, &now, 1, &sums);
		assert_int_equal(sums.nr[TALLY_USER], 1);
		one_call(&sums, 30, 5);
		assert_int_equal(sums.nr[TALLY_USER], 2);
		assert_int_equal(sums.count[TALLY_USER][0], 60);
		assert_int_equal(table.enabled_ns[TALLY_USER] - table.running_ns[TALLY_USER], 10);
		tally_events_leave();
	}
}

/* Only user space may be counted, or nothing at all. */
static void not_allowed(void **state)
{
	(void)state;
	struct tally_event_sums sums = {0};
	begin();
	processor.no_kernel = true;
	one_call(&sums, 30, 5);
	assert_int_equal(sums.nr[TALLY_USER], 1);
	assert_int_equal(sums.nr[TALLY_KERNEL], 0);
	tally_events_leave();
	begin();
	preload_ring.event[1].type = 1234; /* what the recorder never asks for */
	one_call(&sums, 30, 5);
	assert_int_equal(sums.nr[TALLY_USER], 1);
	assert_int_equal(processor.nr_fds, 0);
	assert_int_equal(processor.nr_pages, 0);
}

/* The program closed all descriptors, and opened files of its own by these numbers: none of them is
 * read or closed. */
static void descriptors_closed(void **state)
{
	(void)state;
	for (unsigned is_event = 0; is_event < 2; is_event++) {
		struct tally_event_sums sums = {0};
		begin();
		processor.is_event = is_event;
		processor.no_rdpmc = true;
		one_call(&sums, 30, 5);
		processor.foreign = true;
		one_call(&sums, 30, 5);
		tally_events_leave();
		assert_int_equal(sums.nr[TALLY_USER], 1);
		assert_int_equal(processor.nr_foreign_reads, 0);
		assert_int_equal(processor.nr_fds, 2);
		assert_int_equal(processor.nr_pages, 0);
	}
}

/* A fork's child begins anew, and touches none of its parent's pages; a call that the fork was made
 * in is of no child. */
static void forked(void **state)
{
	(void)state;
	struct tally_event_sums sums = {0};
	struct tally_event_reading since, now;
	begin();
	assert_true(tally_events_read(&since));
	preload_fresh.head = NULL; /* the child has not attached yet */
	assert_false(tally_events_read(&now));
	tally_events_leave();
	assert_int_equal(processor.nr_pages, 4);
	preload_fresh.head = &head;
	thread.image = 2;
	assert_true(tally_events_read(&now));
	assert_int_equal(processor.nr, 8);
	assert_int_equal(processor.nr_pages, 8); /* the parent's are not ours to unmap */
	tally_events_add(&since, &now, 1, &sums);
	assert_int_equal(sums.nr[TALLY_USER], 0);
	thread.in_vfork = 1;
	assert_false(tally_events_read(&now));
}

/* A place that a thread left without a word is another's now. */
static void next_thread(void **state)
{
	(void)state;
	struct tally_event_sums sums = {0};
	begin();
	one_call(&sums, 1, 1);
	thread.number = 2;
	one_call(&sums, 1, 1);
	assert_int_equal(processor.nr, 8);
	assert_int_equal(processor.nr_pages, 4);
	assert_int_equal(sums.count[TALLY_USER][0], 2);
	tally_events_leave();
	one_call(&sums, 1, 1); /* it has ended */
	assert_int_equal(sums.count[TALLY_USER][0], 2);
	preload_self = &preload_nobody;
	struct tally_event_reading now;
	assert_false(tally_events_read(&now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),
		cmocka_unit_test(counters_overflow),
		cmocka_unit_test(weights),
		cmocka_unit_test(never_by_rdpmc),
		cmocka_unit_test(others_have_the_counters),
		cmocka_unit_test(not_allowed),
		cmocka_unit_test(descriptors_closed),
		cmocka_unit_test(forked),
		cmocka_unit_test(next_thread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
