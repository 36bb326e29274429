/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory_processes.c - several processes' streams as one source: which memory is the same. */
#include "memory/stream/source.h"

#include "memory_fixture.h"
#include "test.h"

#define MAPPED   UINT64_C(0x7f0000000000)
#define MAPPED_3 UINT64_C(0x10000000)
#define OWN      UINT64_C(0x555555561000)
#define CODE     UINT64_C(0x401000)
enum { FILE_ID = 77, PAGE = 4096, PARTS = 3 };

/* A parent with two threads, its fork's child, and what an exec began. */
static struct memory_source *family_of(
	struct fixture *f[PARTS], uint32_t third_pid, struct base_err *err)
{
	const struct memory_process process[PARTS] = {{.number = 1, .pid = 10, .tables = 1},
		{.number = 2, .pid = 11, .tables = 1},
		{.number = 4, .pid = third_pid, .tables = 4}};
	struct memory_source *source[PARTS], *ret;
	for (unsigned i = 0; i < PARTS; i++)
		source[i] = &f[i]->source;
	enum base_status s = memory_source_merge_processes(process, source, PARTS, &ret, err);
	if (s != BASE_OK && s != BASE_ERR_NOMEM)
		fail_msg("%s", err->cause[0]);
	return ret;
}

static struct memory_source *family(struct fixture *f[PARTS], struct base_err *err)
{
	return family_of(f, 12, err);
}

static void make(struct fixture *f[PARTS])
{
	f[0] = fixture_new(2, MEMORY_SOURCE_THREADS | MEMORY_SOURCE_TIMES);
	f[1] = fixture_new(1, MEMORY_SOURCE_THREADS | MEMORY_SOURCE_SERIAL);
	f[2] = fixture_new(1, MEMORY_SOURCE_THREADS | MEMORY_SOURCE_REGISTERS);
	for (unsigned i = 0; i < PARTS; i++)
		f[i]->batch_max = MEMORY_BATCH_MAX;
}

static void map(struct fixture *f, uint32_t thread, uint64_t address, uint64_t bytes,
	uint64_t identity, uint64_t offset)
{
	fixture_call(f, thread, MEMORY_CALL_shared, address, bytes);
	struct fixture_thread *t = &f->thread[thread];
	t->call[t->nr_calls - 1].argument[2] = identity;
	t->call[t->nr_calls - 1].argument[3] = offset;
}

static struct memory_batch next(struct memory_source *s, int thread)
{
	struct memory_batch b;
	struct base_err err = {0};
	if (memory_source_next(s, thread, &b, &err) != BASE_OK)
		fail_msg("%s", err.cause[0]);
	assert_int_equal(memory_batch_check(&b, &err), BASE_OK);
	assert_int_equal(b.thread, thread);
	return b;
}

static void test_same_memory(void **state)
{
	(void)state;
	struct fixture *f[PARTS];
	struct base_err err = {0};
	make(f);
	map(f[0], 1, MAPPED, 2 * PAGE, FILE_ID, 0); /* by one thread, for both */
	map(f[2], 0, MAPPED_3, PAGE, FILE_ID, PAGE);
	fixture_call(f[0], 0, MEMORY_CALL_lock, MAPPED + 8, 0);
	fixture_call(f[1], 0, MEMORY_CALL_lock, MAPPED + 8, 0);
	fixture_call(f[1], 0, MEMORY_CALL_lock, OWN, 0);
	fixture_call(f[2], 0, MEMORY_CALL_thread_create, 0, 0);
	static const uint64_t at[PARTS][4] = {{MAPPED + 64, MAPPED + PAGE + 10, OWN, OWN + PAGE},
		{MAPPED + 64, MAPPED + PAGE + 10, OWN, OWN + PAGE},
		{MAPPED_3 - PAGE + 64, MAPPED_3 + 10, OWN, OWN + PAGE}};
	for (unsigned i = 0; i < PARTS; i++) {
		for (unsigned k = 0; k < 4; k++)
			fixture_access(f[i], 0, MEMORY_STORE, at[i][k], 1);
		fixture_put(f[i], 0,
			(struct memory_item){.kind = MEMORY_BLOCK,
				.address = CODE,
				.size_bytes = 4,
				.count = 1});
	}
	struct memory_source *s = family(f, &err);
	assert_int_equal(s->info.nr_threads, 4);
	assert_int_equal(s->info.flags, MEMORY_SOURCE_THREADS);
	uint64_t is[PARTS][5] = {{0}}, lock[PARTS][2] = {{0}}, created = 0;
	static const int thread[PARTS] = {0, 2, 3};
	for (unsigned i = 0; i < PARTS; i++) {
		struct memory_batch b = next(s, thread[i]);
		unsigned nr = 0, locks = 0;
		for (size_t k = 0; k < b.nr; k++)
			if (b.item[k].kind == MEMORY_STORE || b.item[k].kind == MEMORY_BLOCK)
				is[i][nr++] = b.item[k].address;
		for (size_t k = 0; k < b.nr_calls; k++) {
			if (b.call[k].kind == MEMORY_CALL_lock)
				lock[i][locks++] = b.call[k].argument[0];
			if (b.call[k].kind == MEMORY_CALL_thread_create)
				created = b.call[k].argument[0];
			assert_int_not_equal(b.call[k].kind, MEMORY_CALL_shared);
		}
		assert_int_equal(nr, 5);
	}
	/* parent and child: the mapping, and nothing else */
	assert_int_equal(is[0][0], is[1][0]);
	assert_int_equal(is[0][1], is[1][1]);
	assert_int_not_equal(is[0][2], is[1][2]);
	assert_int_equal(lock[0][0], lock[1][0]);
	assert_int_not_equal(lock[0][0], lock[1][1]);
	/* the third maps the second page only, elsewhere */
	assert_int_equal(is[2][1], is[0][1]);
	assert_int_not_equal(is[2][0], is[0][0]);
	assert_int_not_equal(is[2][2], is[0][2]);
	/* distances stay */
	assert_int_equal(is[0][1] - is[0][0], PAGE - 54);
	for (unsigned i = 0; i < PARTS; i++)
		assert_int_equal(is[i][3] - is[i][2], PAGE);
	/* code is that of its tables */
	assert_int_equal(is[0][4], is[1][4]);
	assert_int_not_equal(is[0][4], is[2][4]);
	assert_int_equal(created, 3); /* the third process's first thread */
	/* again from the beginning, to the same addresses */
	assert_int_equal(s->ops->rewind(s, &err), BASE_OK);
	struct memory_batch b = next(s, 3);
	assert_int_equal(b.item[b.nr - 1].address, is[2][4]);
	memory_source_close(s);
}

/* Loops stay loops; those that would leave what is mapped together are cut off, and counted. */
static void test_loops(void **state)
{
	(void)state;
	struct fixture *f[PARTS];
	struct base_err err = {0};
	make(f);
	map(f[1], 0, MAPPED, 2 * PAGE, FILE_ID, 5 * PAGE);
	static const int64_t stride[] = {64, -64, 256};
	for (unsigned i = 0; i < 3; i++) {
		fixture_put(f[1], 0,
			(struct memory_item){.kind = MEMORY_REPEAT, .address = 1, .count = 60});
		fixture_access(f[1], 0, MEMORY_LOAD, MAPPED + (i == 1 ? PAGE : 0), 4);
		f[1]->thread[0].item[f[1]->thread[0].nr - 1].stride_bytes = stride[i];
	}
	struct memory_source *s = family(f, &err);
	struct memory_batch b = next(s, 2);
	uint64_t count[3] = {0}, nr = 0;
	for (size_t k = 0; k < b.nr; k++)
		if (b.item[k].kind == MEMORY_REPEAT)
			count[nr++] = b.item[k].count;
	assert_int_equal(nr, 3);
	assert_int_equal(count[0], 60);
	assert_int_equal(count[1], 60);
	assert_int_equal(count[2], 1);
	assert_int_equal(s->diags.count[MEMORY_DIAG_bad_address], 1);
	assert_int_equal(s->diags.first_thread[MEMORY_DIAG_bad_address], 2);
	memory_source_close(s);
}

/* A fork begins the child's first thread, waiting joins what the child became by exec, and the end
 * of its first image begins that. */
static void test_order(void **state)
{
	(void)state;
	struct fixture *f[PARTS];
	struct base_err err = {0};
	struct memory_batch b;
	make(f);
	fixture_call(f[0], 0, MEMORY_CALL_process_create, 11, 0);
	fixture_call(f[0], 0, MEMORY_CALL_process_wait, 11, 0);
	fixture_call(f[0], 0, MEMORY_CALL_process_create, 99, 0); /* nobody recorded it */
	fixture_access(f[1], 0, MEMORY_LOAD, OWN, 4);
	fixture_access(f[2], 0, MEMORY_LOAD, OWN, 4);
	struct memory_source *s = family_of(f, 11, &err);
	for (unsigned round = 0; round < 2; round++) {
		b = next(s, 0);
		assert_int_equal(b.call[0].kind, MEMORY_CALL_thread_create);
		assert_int_equal(b.call[0].argument[0], 2);
		assert_int_equal(b.call[1].kind, MEMORY_CALL_thread_join);
		assert_int_equal(b.call[1].argument[0], 3);
		assert_int_equal(b.call[2].kind, MEMORY_CALL_system);
		(void)next(s, 2);
		b = next(s, 2);
		assert_int_equal(b.nr, 1);
		assert_int_equal(b.call[0].kind, MEMORY_CALL_thread_create);
		assert_int_equal(b.call[0].argument[0], 3);
		assert_int_equal(memory_source_next(s, 2, &b, &err), BASE_END);
		assert_int_equal(memory_source_next(s, 1, &b, &err), BASE_END);
		(void)next(s, 3);
		assert_int_equal(memory_source_next(s, 3, &b, &err), BASE_END);
		assert_int_equal(s->ops->rewind(s, &err), BASE_OK);
	}
	memory_source_close(s);
}

/* A mapping is news when the first process makes it; to unmap it is no end for the others. */
static void test_blocks(void **state)
{
	(void)state;
	struct fixture *f[PARTS];
	struct base_err err = {0};
	make(f);
	map(f[0], 0, MAPPED, PAGE, FILE_ID, 0);
	map(f[2], 0, MAPPED_3, PAGE, FILE_ID, 0);
	fixture_call(f[0], 0, MEMORY_CALL_allocate, MAPPED, PAGE);
	fixture_call(f[0], 0, MEMORY_CALL_allocate, OWN, 64);
	fixture_call(f[0], 0, MEMORY_CALL_release, OWN, 0);
	fixture_call(f[0], 0, MEMORY_CALL_release, MAPPED, PAGE);
	fixture_call(f[2], 0, MEMORY_CALL_allocate, MAPPED_3, PAGE);
	struct memory_source *s = family(f, &err);
	for (unsigned round = 0; round < 2; round++) {
		struct memory_batch b = next(s, 0);
		assert_int_equal(b.call[1].kind, MEMORY_CALL_allocate);
		assert_int_equal(b.call[2].kind, MEMORY_CALL_allocate);
		assert_int_equal(b.call[3].kind, MEMORY_CALL_release);
		assert_int_equal(b.call[3].argument[0], b.call[2].argument[0]);
		assert_int_equal(b.call[4].kind, MEMORY_CALL_system);
		b = next(s, 3);
		assert_int_equal(b.call[1].kind, MEMORY_CALL_system);
		assert_int_equal(s->ops->rewind(s, &err), BASE_OK);
	}
	memory_source_close(s);
}

static void test_too_many_areas(void **state)
{
	(void)state;
	struct fixture *f[PARTS];
	struct base_err err = {0};
	struct memory_batch b;
	make(f);
	for (unsigned i = 0; i < PARTS; i++)
		for (uint64_t k = 0; k < 3000; k++)
			fixture_access(f[i], 0, MEMORY_LOAD, k << 34, 4);
	struct memory_source *s = family(f, &err);
	(void)next(s, 0);
	(void)next(s, 2);
	assert_int_equal(memory_source_next(s, 3, &b, &err), BASE_ERR_LIMIT);
	assert_non_null(strstr(err.cause[0], "--process=N"));
	memory_source_close(s);
}

static void test_survives_lack_of_memory(void **state)
{
	(void)state;
	unsigned refused = 0;
	for (uint64_t n = 1; n < 40; n++) {
		struct fixture *f[PARTS];
		struct base_err err = {0};
		struct memory_batch b;
		make(f);
		map(f[0], 0, MAPPED, PAGE, FILE_ID, 0);
		fixture_access(f[1], 0, MEMORY_LOAD, MAPPED, 4);
		base_alloc_fail_nth(n);
		struct memory_source *s = family(f, &err);
		enum base_status status = s ? memory_source_next(s, 2, &b, &err) : BASE_ERR_NOMEM;
		base_alloc_fail_nth(0);
		assert_true(
			status == BASE_OK || status == BASE_ERR_NOMEM || status == BASE_ERR_LIMIT);
		refused += status != BASE_OK;
		memory_source_close(s);
	}
	assert_true(refused > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_memory),
		cmocka_unit_test(test_loops),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_too_many_areas),
		cmocka_unit_test(test_survives_lack_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
