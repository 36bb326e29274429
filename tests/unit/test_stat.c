/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of /proc, a thread's events, and phases that a program wrote, whatever it wrote. */
#include "test.h"
#include "counter/phase.h"
#include "stat/stat.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void test_stat(void **state)
{
	struct stat_counts c = {0};
	char comm[STAT_COMM];
	(void)state;
	/* a name may hold anything, and longer ones than comm's are cut */
	assert_true(stat_parse_stat(
		"7 (a) R (b)) S 1 2 3 4 5 6 70 71 80 81 900 901 1 2 20 0 1 0 55\n", &c, comm));
	assert_string_equal(comm, "a) R (b)");
	assert_int_equal(c.minor_faults, 70);
	assert_int_equal(c.major_faults, 80);
	assert_int_equal(c.user_ticks, 900);
	assert_int_equal(c.kernel_ticks, 901);
	assert_true(stat_parse_stat(
		"7 (kworker/u8:1-events_unbound) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19",
		&c, comm));
	assert_string_equal(comm, "kworker/u8:1-ev");
	assert_false(stat_parse_stat("", &c, comm));
	assert_false(stat_parse_stat("7 (x", &c, comm));
	assert_false(stat_parse_stat(")(", &c, comm));
	assert_false(stat_parse_stat("7 (x) S 1 2 3", &c, comm));
}

static void test_others(void **state)
{
	struct stat_counts c = {0};
	uint64_t migrations = 0;
	(void)state;
	assert_true(stat_parse_schedstat("510053 53480 12\n", &c));
	assert_int_equal(c.task_ns, 510053);
	assert_int_equal(c.runqueue_ns, 53480);
	assert_false(stat_parse_schedstat("510053\n53480", &c));
	assert_true(stat_parse_status(
		"Name:\tvoluntary_ctxt_switches:\t9\n"
		"voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n",
		&c));
	assert_int_equal(c.voluntary, 150);
	assert_int_equal(c.forced, 545);
	assert_false(stat_parse_status("voluntary_ctxt_switches:\t150\n", &c));
	assert_true(stat_parse_sched("x (1, #threads: 1)\n---\nse.nr_migrations_x : 4\n"
				     "se.nr_migrations                             :   17\n",
		&migrations));
	assert_int_equal(migrations, 17);
	assert_false(stat_parse_sched("", &migrations));
}

/* A thread's event through the same code as cycles, where there is no PMU: page faults. */
static void test_event(void **state)
{
	enum { PAGES = 200, PAGE = 4096 };
	bool user_only;
	struct rusage before, after;
	uint64_t faults;
	int fd = stat_event_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, &user_only);
	(void)state;
	if (fd < 0)
		skip();
	getrusage(RUSAGE_THREAD, &before);
	char *memory = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	madvise(memory, (size_t)PAGES * PAGE, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++)
		((volatile char *)memory)[(size_t)i * PAGE] = 1;
	assert_true(stat_event_read(fd, &faults));
	getrusage(RUSAGE_THREAD, &after);
	assert_true(faults >= PAGES);
	assert_true((long)faults <= after.ru_minflt + after.ru_majflt - before.ru_minflt -
					    before.ru_majflt + PAGES);
	munmap(memory, (size_t)PAGES * PAGE);
	close(fd);
	assert_false(stat_event_read(-1, &faults));
}

/* The program's memory: names without end, slots out of range, numbers that cannot be. */
static void test_phases(void **state)
{
	const struct stat_options options = {.by_thread = true};
	struct stat_result s = {0};
	int fd;
	struct phase_file *file = stat_phases_make(&options, &fd);
	(void)state;
	assert_non_null(file);
	assert_int_equal(file->nr_events, 3);
	file->tick_hz = 2000000000;
	memset(file->names, 'x', sizeof file->names);
	memcpy(file->names, "parse", 6);
	file->slot[0] = (struct phase_slot){.pid = 1,
		.tid = 2,
		.entered = 3,
		.wall_ticks = 4000,
		.count = {2000, 5, 6},
		.counted = 7};
	file->slot[1] =
		(struct phase_slot){.pid = 1, .tid = 2, .entered = 1, .name = PHASE_NAME_BYTES - 4};
	file->slot[2] =
		(struct phase_slot){.pid = 1, .tid = 2, .entered = 1, .name = PHASE_NAME_BYTES};
	file->slot[3] = (struct phase_slot){
		.pid = 1, .tid = 2, .entered = 1, .name = 100, .wall_ticks = UINT64_MAX};
	file->next_slot = UINT32_MAX;
	assert_int_equal(stat_phases_read(file, &s, NULL), BASE_OK);
	assert_int_equal(s.nr_phases, 3);
	assert_string_equal(s.phase[0].name, "parse");
	assert_int_equal(s.phase[0].wall_ns, 2000);
	assert_int_equal(s.phase[0].task_ns, 1000);
	assert_int_equal(s.phase[0].count[2], 6);
	assert_string_equal(s.phase[1].name, "xxxx");
	assert_int_equal(strlen(s.phase[2].name), STAT_NAME - 1);
	stat_fini(&s);
	/* no memory is a status */
	base_alloc_fail_nth(1);
	assert_int_equal(stat_phases_read(file, &s, NULL), BASE_ERR_NOMEM);
	base_alloc_fail_nth(0);
	stat_fini(&s);
	stat_phases_free(file, fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_event),
		cmocka_unit_test(test_phases),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
