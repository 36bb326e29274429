/* SPDX-License-Identifier: Apache-2.0 */
/* test_system.c - the kernel's slots: read, put in order, merged; with fake slots. */
#include "system/format.h"
#include "system/kernel_names.h"
#include "system/order.h"
#include "trace/trace.h"
#include "test.h"

#include <string.h>

enum { CPUS = 3, SLOTS = 64, MASK = SLOTS - 1 };

struct fake { /* what the kernel's side would write */
	struct kernel_control control[CPUS];
	struct kernel_slot slot[CPUS][SLOTS];
};

static void write_event(struct fake *f, unsigned cpu, uint64_t time_ns, unsigned nr, uint64_t a)
{
	for (unsigned i = 0; i < nr; i++) {
		struct kernel_slot *s = &f->slot[cpu][(f->control[cpu].head + i) & MASK];
		assert_true(!s->time_ns && !s->a); /* the reader has made it zero */
		*s = (struct kernel_slot){.time_ns = i ? a + i : time_ns, .a = a, .tid = cpu};
	}
	f->slot[cpu][f->control[cpu].head & MASK].shape = (unsigned char)(nr << 4);
	f->control[cpu].head += nr;
}

static uint64_t read_all(struct fake *f, struct system_order *o, uint64_t now_ns)
{
	uint64_t used, sum = 0;
	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		assert_int_equal(system_slots_read(o, cpu, &f->control[cpu], f->slot[cpu], MASK,
					 now_ns, &used),
			BASE_OK);
		sum += used;
	}
	return sum;
}

/* What the kernel's side has dropped lies between the last event that fitted and the reading. */
static void test_gaps(void **state)
{
	struct fake f = {0};
	struct system_order o;
	(void)state;
	assert_int_equal(system_order_init(&o, CPUS, NULL), BASE_OK);
	write_event(&f, 0, 100, 1, 1);
	write_event(&f, 1, 150, 2, 1);
	read_all(&f, &o, 200);
	assert_int_equal(o.gap_ns, 0);
	f.control[0].dropped = 3;
	f.control[1].dropped = 1;
	read_all(&f, &o, 500); /* of one until 500 from 100, of the other from 150 */
	assert_int_equal(o.gap_ns, 400);
	read_all(&f, &o, 600); /* no more */
	assert_int_equal(o.gap_ns, 400);
	write_event(&f, 1, 700, 3, 1);
	f.control[1].dropped = 2;
	read_all(&f, &o, 750);
	assert_int_equal(o.gap_ns, 450);
	system_order_fini(&o);
}

static void test_merge(void **state)
{
	struct fake f = {0};
	struct system_order o;
	unsigned cpu;
	(void)state;
	assert_int_equal(system_order_init(&o, CPUS, NULL), BASE_OK);
	write_event(&f, 0, 100, 1, 1);
	write_event(&f, 0, 400, 2, 4);
	write_event(&f, 1, 200, 1, 2);
	write_event(&f, 2, 300, 3, 3);
	assert_int_equal(read_all(&f, &o, 1000), 7);
	for (uint64_t i = 1; i <= 4; i++) {
		const struct kernel_slot *s = system_order_next(&o, i == 4 ? 401 : 400, &cpu);
		assert_non_null(s);
		assert_int_equal(s->a, i);
		assert_int_equal(s->tid, cpu);
		if (i == 3)
			assert_int_equal(s[2].time_ns, 5); /* the event's other slots follow */
	}
	assert_null(system_order_next(&o, UINT64_MAX, &cpu));
	assert_int_equal(o.nr_reordered, 0);
	assert_int_equal(o.nr_late, 0);
	system_order_fini(&o);
}

/* An interrupt between reservation and stamp; what comes after its time was given out. */
static void test_disorder(void **state)
{
	struct fake f = {0};
	struct system_order o;
	unsigned cpu;
	uint64_t last = 0;
	const struct kernel_slot *s;
	(void)state;
	assert_int_equal(system_order_init(&o, CPUS, NULL), BASE_OK);
	write_event(&f, 0, 500, 1, 1);
	write_event(&f, 0, 300, 1, 2);
	write_event(&f, 0, 400, 1, 3);
	write_event(&f, 1, 350, 1, 4);
	read_all(&f, &o, 1000);
	for (int i = 0; i < 4; i++) {
		s = system_order_next(&o, UINT64_MAX, &cpu);
		assert_non_null(s);
		assert_true(s->time_ns >= last);
		last = s->time_ns;
	}
	assert_int_equal(o.nr_reordered, 2);
	assert_int_equal(o.nr_late, 0);
	write_event(&f, 1, 450, 1, 5);
	read_all(&f, &o, 1000);
	assert_non_null(system_order_next(&o, UINT64_MAX, &cpu));
	assert_int_equal(o.nr_late, 1);
	system_order_fini(&o);
}

/* A slot that is reserved and not yet stamped holds back what is later, but not for ever. */
static void test_unfinished(void **state)
{
	struct fake f = {0};
	struct system_order o;
	unsigned cpu;
	const uint64_t now = 1000000000;
	(void)state;
	assert_int_equal(system_order_init(&o, CPUS, NULL), BASE_OK);
	write_event(&f, 0, now - 5000000, 1, 1);
	f.control[0].head++; /* this one */
	write_event(&f, 0, now - 3000000, 1, 3);
	write_event(&f, 1, now - 4000000, 1, 2);
	read_all(&f, &o, now);
	uint64_t horizon = system_order_horizon(&o, now);
	assert_int_equal(horizon, now - 5000000);
	assert_null(system_order_next(&o, horizon, &cpu));
	f.slot[0][1].a = 9;
	f.slot[0][1].time_ns = now - 4500000;
	read_all(&f, &o, now);
	horizon = system_order_horizon(&o, now);
	assert_int_equal(horizon, now - SYSTEM_ORDER_WINDOW_NS);
	static const uint64_t expected[] = {1, 9, 2, 3};
	for (size_t i = 0; i < 4; i++) {
		const struct kernel_slot *s = system_order_next(&o, horizon, &cpu);
		assert_non_null(s);
		assert_int_equal(s->a, expected[i]);
	}
	f.control[0].head++; /* one that never gets its time */
	write_event(&f, 0, now, 1, 10);
	read_all(&f, &o, now);
	assert_null(system_order_next(&o, UINT64_MAX, &cpu));
	read_all(&f, &o, now + SYSTEM_SLOT_PATIENCE_NS);
	assert_non_null(system_order_next(&o, UINT64_MAX, &cpu));
	assert_int_equal(o.nr_damaged, 1);
	system_order_fini(&o);
}

/* Many events in random portions: all come out, in order, and the buffers do not grow for ever. */
static void test_long(void **state)
{
	static struct fake f;
	struct system_order o;
	uint64_t seed = 1, time_ns = 1, written = 0, seen = 0, last = 0;
	unsigned cpu;
	(void)state;
	memset(&f, 0, sizeof f);
	assert_int_equal(system_order_init(&o, CPUS, NULL), BASE_OK);
	for (int round = 0; round < 20000; round++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		for (unsigned i = 0; i < (seed >> 60); i++) {
			write_event(&f, (unsigned)(seed >> (32 + i)) % CPUS, time_ns += 10,
				1 + (seed >> i & 1), 7);
			written++;
		}
		read_all(&f, &o, time_ns);
		const struct kernel_slot *s;
		while ((s = system_order_next(&o, time_ns - 100, &cpu))) {
			assert_true(s->time_ns > last);
			last = s->time_ns;
			seen++;
		}
	}
	while (system_order_next(&o, UINT64_MAX, &cpu))
		seen++;
	assert_int_equal(seen, written);
	for (unsigned i = 0; i < CPUS; i++)
		assert_true(o.queue[i].slot_capacity < 100000);
	system_order_fini(&o);
}

/* Whatever is in the slots: no loop, nothing read beyond them. */
static void test_garbage(void **state)
{
	static struct fake f;
	struct system_order o;
	uint64_t seed = 7;
	unsigned cpu;
	(void)state;
	assert_int_equal(system_order_init(&o, CPUS, NULL), BASE_OK);
	for (int round = 0; round < 2000; round++) {
		uint8_t *p = (uint8_t *)f.slot;
		for (size_t i = 0; i < sizeof f.slot; i += 8) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			uint64_t v = seed >> 60 ? seed ^ seed >> 29 : 0;
			memcpy(p + i, &v, 8);
		}
		for (unsigned i = 0; i < CPUS; i++)
			f.control[i].head = f.control[i].tail + (seed >> i & MASK);
		read_all(&f, &o, (uint64_t)round * SYSTEM_SLOT_PATIENCE_NS);
		while (system_order_next(&o, UINT64_MAX, &cpu))
			continue;
	}
	system_order_fini(&o);
}

static void test_no_memory(void **state)
{
	(void)state;
	for (uint64_t nth = 1; nth < 20; nth++) {
		struct system_order o;
		struct kernel_slot slot[3] = {{.time_ns = 1}};
		base_alloc_fail_nth(nth);
		enum base_status status = system_order_init(&o, CPUS, NULL);
		for (int i = 0; status == BASE_OK && i < 100; i++)
			status = system_order_push(&o, 1, slot, 3);
		base_alloc_fail_nth(0);
		assert_true(status == BASE_OK || status == BASE_ERR_NOMEM);
		system_order_fini(&o);
	}
}

/* ---- format files, names --------------------------------------------------------------------- */

static void test_format(void **state)
{
	static const char text[] =
		"name: sched_switch\nID: 321\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		"\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		"\tfield:unsigned long args[6];\toffset:32;\tsize:48;\tsigned:0;\n"
		"\nprint fmt: \"field:pid_t prev_pid; offset:1; size:1;\"\n";
	static const char *const names[] = {"prev_pid", "args", "pid", "prev_comm"};
	uint8_t record[80] = {0};
	struct system_format f;
	(void)state;
	assert_true(system_format_parse(text, names, 4, &f));
	assert_int_equal(f.id, 321);
	assert_int_equal(f.field[2].size, 0); /* "pid" is not "prev_pid" */
	assert_int_equal(f.field[3].offset, 8);
	memcpy(record + 24, &(int32_t){-2}, 4);
	memcpy(record + 32, &(uint64_t){0x123456789abcdef0}, 8);
	assert_true(system_format_get(&f, 0, record, sizeof record) == (uint64_t)-2);
	assert_true(system_format_get(&f, 1, record, sizeof record) == 0x123456789abcdef0);
	assert_int_equal(system_format_get(&f, 1, record, 39), 0); /* cut short */
	assert_int_equal(system_format_get(&f, 2, record, sizeof record), 0);
	assert_false(system_format_parse("format:\n", names, 4, &f));
}

static void test_kernel_names(void **state)
{
	static const char *const lines[] = {"ffffffff81000200 T second\n",
		"ffffffff81000100 t first\t[module]\n", "0000000000000000 T hidden\n",
		"ffffffff81000180 D data\n", "nonsense\n", ""};
	struct system_kernel_names n = {0};
	uint64_t start;
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(lines); i++)
		assert_int_equal(system_kernel_names_parse(&n, lines[i]), BASE_OK);
	system_kernel_names_sort(&n);
	assert_int_equal(n.nr, 2);
	assert_null(system_kernel_names_find(&n, 0xffffffff810000ff, &start));
	assert_string_equal(system_kernel_names_find(&n, 0xffffffff810001ff, &start), "first");
	assert_true(start == 0xffffffff81000100);
	assert_string_equal(system_kernel_names_find(&n, 0xffffffff81000200, &start), "second");
	assert_null(system_kernel_names_find(&n, UINT64_MAX, &start));
	base_free(n.name);
	base_free(n.texts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_disorder),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_format),
		cmocka_unit_test(test_kernel_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
