/* SPDX-License-Identifier: Apache-2.0 */
/* test_format_ranks.c - `import pytorch` of several ranks: collectives as meetings, on one clock. Answers by hand. */
#include "gpu_fixture.h"

#include "format/format.h"

enum { RANKS_MAX = 3, COMM = 20 };
static const double ORIGIN_US = 1e10; /* what is behind is not before 0 */

struct job {
	struct gpu_bench rank[RANKS_MAX];
	unsigned nr;
	double behind_us[RANKS_MAX]; /* their clocks */
	const char *name[RANKS_MAX]; /* of the files; NULL: the file says its rank itself */
	char path[32];
	struct gpu_bench all;
};

/* A collective of all, on a stream of its own, launched at `begin` - 8. */
static void meet_as(
	struct job *j, unsigned rank, const char *what, double begin, double end, const char *more)
{
	struct gpu_bench *b = &j->rank[rank];
	double behind = j->behind_us[rank] - ORIGIN_US;
	char args[300];
	int c = ++b->correlation;
	call_of(b, MAIN, "cudaLaunchKernel", c, begin - 8 - behind, begin - 3 - behind);
	snprintf(args, sizeof args,
		"\"device\": %u, \"stream\": %d, \"correlation\": %d, \"Collective name\": \"%s\", "
		"\"In msg nelems\": 1000, \"Out msg nelems\": 1000, \"dtype\": \"Float\", "
		"\"Group size\": %u, \"Process Group Name\": \"0\"%s",
		rank, COMM, c, what, j->nr, more);
	slice(b, "kernel", "ncclKernel", (int)rank, COMM, begin - behind, end - behind, args);
}

static void meet(struct job *j, unsigned rank, double begin, double end)
{
	meet_as(j, rank, "allreduce", begin, end, "");
}

static void work(struct job *j, unsigned rank, const char *name, double begin, double end)
{
	double behind = j->behind_us[rank] - ORIGIN_US;
	op(&j->rank[rank], MAIN, name, begin - behind, end - behind);
}

static void step(struct job *j, unsigned rank, const char *name, double begin, double end)
{
	double behind = j->behind_us[rank] - ORIGIN_US;
	note(&j->rank[rank], MAIN, name, begin - behind, end - behind);
}

static enum base_status job_import(struct job *j)
{
	struct base_str text[RANKS_MAX] = {0};
	struct memory bytes[RANKS_MAX];
	struct format_source from[RANKS_MAX];
	strcpy(j->path, "/tmp/longpole-gpu-XXXXXX");
	close(mkstemp(j->path));
	for (unsigned r = 0; r < j->nr; r++) {
		base_str_add(&text[r], "{");
		if (!j->name[r])
			base_str_addf(&text[r],
				"\"distributedInfo\": {\"backend\": \"nccl\", \"rank\": %u}, ", r);
		base_str_addf(&text[r], "\"traceEvents\": [%s]}", base_str_text(&j->rank[r].json));
		bytes[r] =
			(struct memory){(const uint8_t *)base_str_text(&text[r]), text[r].length};
		from[r] = memory_source(&bytes[r], j->name[r] ? j->name[r] : "some.json");
	}
	for (unsigned r = 0; r + 1 < j->nr; r++)
		from[r].next = &from[r + 1];
	base_str_reset(&j->all.notes);
	enum base_status s = gpu_bench_import_from(&j->all, "pytorch", from, j->path);
	for (unsigned r = 0; r < j->nr; r++)
		base_str_fini(&text[r]);
	return s;
}

static void job_run(struct job *j)
{
	enum base_status s = job_import(j);
	if (s != BASE_OK)
		print_message("%s\n", j->all.err.cause[0]);
	assert_int_equal(s, BASE_OK);
	gpu_bench_model(&j->all, j->path, NULL, 0);
}

static double job_scaled(struct job *j, const char *name, double factor)
{
	struct graph_edit edit[EDITS_MAX];
	struct graph_scenario s = {edit, gpu_bench_edits(&j->all, name, factor, edit)};
	gpu_bench_model(&j->all, j->path, &s, 1);
	return gpu_bench_length(&j->all, 1);
}

static void job_fini(struct job *j)
{
	for (unsigned r = 0; r < j->nr; r++)
		gpu_bench_fini(&j->rank[r]);
	gpu_bench_fini(&j->all);
	unlink(j->path);
}

static bool said_in(const struct job *j, const char *text)
{
	bool found = strstr(base_str_text(&j->all.notes), text);
	if (!found)
		print_message("not said: %s\n%s", text, base_str_text(&j->all.notes));
	return found;
}

/*
 * Rank 1 works 100 us before its launch, rank 0 only 50: rank 0's kernel begins at 58 and waits until 108, when rank 1 has
 * come; then 20 us of communication for both.
 */
static void straggler_with_clocks(double behind_us)
{
	struct job j = {.nr = 2, .behind_us = {0, behind_us}};
	work(&j, 0, "short", 0, 50);
	work(&j, 1, "long", 0, 100);
	meet(&j, 0, 58, 128);
	meet(&j, 1, 108, 128);
	job_run(&j);
	assert_string_equal(gpu_bench_path(&j.all),
		"long 100 | cudaLaunchKernel 5 | hand-off of queue launches for stream 20 of "
		"device 1, rank 1 3 | "
		"ncclKernel of 3.9 KiB 20");
	assert_true(said_in(&j, "2 ranks; 1 collective operation in which several of them meet"));
	assert_true(fabs(gpu_bench_length(&j.all, 0) - 128) < 0.001);
	/* rank 1 as fast as rank 0, then faster: rank 0 is the last one, from 58 on */
	assert_true(fabs(job_scaled(&j, "long", 0.5) - 78) < 0.001);
	assert_true(fabs(job_scaled(&j, "long", 0.1) - 78) < 0.001);
	assert_true(fabs(job_scaled(&j, "short", 0.1) - 128) < 0.001);
	assert_true(fabs(job_scaled(&j, "short", 3) - 178) < 0.001);
	assert_true(fabs(job_scaled(&j, "ncclKernel of 3.9 KiB", 0) - 108) < 0.001);
	job_fini(&j);
}

static void straggler(void **state)
{
	(void)state;
	straggler_with_clocks(0);
}

/* The same with clocks that are an hour apart, either way. */
static void clocks_apart(void **state)
{
	(void)state;
	straggler_with_clocks(3600e6);
	straggler_with_clocks(-3600e6);
}

/* What each record of a meeting says. */
static void meetings_are_recorded(void **state)
{
	struct job j = {.nr = 2, .behind_us = {0, 5}};
	struct trace_batch batch;
	unsigned nr = 0;
	(void)state;
	work(&j, 0, "short", 0, 50);
	work(&j, 1, "long", 0, 100);
	meet(&j, 0, 58, 128);
	meet(&j, 1, 108, 128);
	job_run(&j);
	assert_int_equal(trace_reader_rewind(j.all.reader, NULL), BASE_OK);
	while (trace_reader_next(j.all.reader, &batch, NULL) == BASE_OK)
		for (size_t i = 0; i < batch.nr; i++) {
			const struct trace_meet *m = &batch.record[i].u.meet;
			if (batch.record[i].kind != TRACE_meet)
				continue;
			assert_int_equal(m->last, 1);
			assert_int_equal(m->waited_ns, m->rank ? 0 : 50000);
			assert_int_equal(batch.record[i].time_ns, 108000);
			nr++;
		}
	assert_int_equal(nr, 2);
	job_fini(&j);
}

/* Rank 1 was recorded from step 4 on, rank 0 from step 3: the collective of a step is matched by the step. */
static void different_steps(void **state)
{
	struct job j = {.nr = 2};
	(void)state;
	step(&j, 0, "ProfilerStep#3", 0, 100);
	meet(&j, 0, 20, 90);
	step(&j, 0, "ProfilerStep#4", 100, 200);
	meet(&j, 0, 120, 190);
	step(&j, 1, "ProfilerStep#4", 100, 210);
	meet(&j, 1, 170, 190);
	step(&j, 1, "ProfilerStep#5", 210, 300);
	meet(&j, 1, 240, 290);
	job_run(&j);
	assert_true(said_in(&j, "1 collective operation in which"));
	assert_true(said_in(&j, "2 collective operations have no counterpart"));
	job_fini(&j);
}

/* A stage sends to the next one, which has nothing to do before. */
static void pipeline_of_two_stages(void **state)
{
	struct job j = {.nr = 2};
	(void)state;
	work(&j, 0, "stage 0", 0, 80);
	meet_as(&j, 0, "send", 88, 100, ", \"Src Rank\": 0, \"Dst Rank\": 1");
	meet_as(&j, 1, "recv", 10, 100, ", \"Src Rank\": 0, \"Dst Rank\": 1");
	call_of(&j.rank[1], MAIN, "cudaDeviceSynchronize", 99, ORIGIN_US + 10, ORIGIN_US + 101);
	work(&j, 1, "stage 1", 101, 161);
	job_run(&j);
	assert_string_equal(gpu_bench_path(&j.all),
		"stage 0 80 | cudaLaunchKernel 5 | hand-off of queue launches for stream 20 of "
		"device 0, rank 0 3 | "
		"ncclKernel of 3.9 KiB 12 | hand-off of queue work of stream 20 of device 1, rank "
		"1 1 | stage 1 60");
	assert_true(fabs(job_scaled(&j, "stage 0", 0.5) - 121) < 0.001);
	assert_true(fabs(job_scaled(&j, "stage 1", 0.5) - 131) < 0.001);
	job_fini(&j);
}

/* Three ranks, two meetings: another one is late each time. */
static void three_ranks(void **state)
{
	struct job j = {.nr = 3, .behind_us = {0, 1e6, -2e6}};
	(void)state;
	work(&j, 0, "a", 0, 20);
	work(&j, 1, "b", 0, 30);
	work(&j, 2, "c", 0, 60);
	for (unsigned r = 0; r < 3; r++)
		meet(&j, r, (r == 0 ? 28 : r == 1 ? 38 : 68), 78);
	work(&j, 0, "d", 80, 150);
	work(&j, 1, "e", 80, 90);
	work(&j, 2, "f", 80, 100);
	for (unsigned r = 0; r < 3; r++)
		meet(&j, r, (r == 0 ? 158 : r == 1 ? 98 : 108), 168);
	job_run(&j);
	assert_true(said_in(&j, "3 ranks; 2 collective operations"));
	assert_true(fabs(gpu_bench_length(&j.all, 0) - 168) < 0.001);
	/* d gone: rank 2 launches last, at 105 - nobody's host waited for the first meeting */
	assert_true(fabs(job_scaled(&j, "d", 0) - 118) < 0.001);
	/* c longer by 120: its host goes on later, too, with the second launch at 225 */
	assert_true(fabs(job_scaled(&j, "c", 3) - 238) < 0.001);
	job_fini(&j);
}

static void refused_with(struct job *j, const char *why)
{
	assert_int_equal(job_import(j), BASE_ERR_FOREIGN);
	if (!strstr(j->all.err.cause[0], why))
		print_message("says: %s\n", j->all.err.cause[0]);
	assert_non_null(strstr(j->all.err.cause[0], why));
	job_fini(j);
}

static void two_files_of_one_rank(void **state)
{
	struct job j = {.nr = 2, .name = {"a/rank-3.json", "b/rank3.json.gz"}};
	(void)state;
	work(&j, 0, "a", 0, 20);
	work(&j, 1, "a", 0, 20);
	refused_with(&j, "a/rank-3.json and b/rank3.json.gz are both of rank 3");
}

/* No collective says how clocks differ, and the times have nothing in common. */
static void another_run(void **state)
{
	struct job j = {.nr = 2, .behind_us = {0, 10e6}};
	(void)state;
	work(&j, 0, "a", 10e6, 10e6 + 20);
	work(&j, 1, "b", 10e6, 10e6 + 20);
	refused_with(&j, "they are not of one run, or their clocks differ");
}

/* One's was over before the other had come: whatever these are, they are no meeting. */
static void no_meeting(void **state)
{
	struct job j = {.nr = 2, .name = {"x.json", "y.json"}};
	(void)state;
	for (unsigned i = 0; i < 3; i++) { /* these say how clocks differ */
		meet(&j, 0, 20 + 100 * i, 40 + 100 * i);
		meet(&j, 1, 30 + 100 * i, 40 + 100 * i);
	}
	meet(&j, 0, 400, 420);
	meet(&j, 1, 500, 520);
	meet_as(&j, 0, "allreduce", 600, 620, "");
	meet_as(&j, 1, "broadcast", 600, 620, "");
	job_run(&j);
	assert_true(said_in(&j, "3 collective operations in which"));
	assert_true(said_in(&j, "1 collective operation was over for one rank before"));
	assert_true(said_in(&j, "1 time ranks did different operations"));
	assert_true(said_in(&j, "2 files do not say which rank they are of"));
	job_fini(&j);
}

/* What lies beside them in a directory is left out; what was named is not. */
static void other_files(void **state)
{
	static const char text[] =
		"{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"a\", "
		"\"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 2}]}",
			  other[] = "{\"schema\": 1}";
	struct memory bytes[2] = {{(const uint8_t *)other, sizeof other - 1},
		{(const uint8_t *)text, sizeof text - 1}};
	struct format_source from[2] = {
		memory_source(&bytes[0], "graph.json"), memory_source(&bytes[1], "trace.json")};
	struct gpu_bench b = {0};
	char path[] = "/tmp/longpole-gpu-XXXXXX";
	(void)state;
	close(mkstemp(path));
	from[0].next = &from[1];
	assert_int_equal(gpu_bench_import_from(&b, "pytorch", from, path), BASE_ERR_FOREIGN);
	from[0].is_found = from[1].is_found = true;
	assert_int_equal(gpu_bench_import_from(&b, "pytorch", from, path), BASE_OK);
	assert_non_null(
		strstr(base_str_text(&b.notes), "1 file of the directory is of something else"));
	unlink(path);
	gpu_bench_fini(&b);
}

static void without_memory(void **state)
{
	static const char rank[2][700] = {
#define RANK(n, begin)                                                                             \
	"{\"distributedInfo\": {\"rank\": " n "}, \"traceEvents\": ["                              \
	"{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#1\", \"pid\": 1, " \
	"\"tid\": 1, \"ts\": 0, \"dur\": 90}, "                                                    \
	"{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"l\", \"pid\": 1, \"tid\": 1, "     \
	"\"ts\": 1, \"dur\": 1, \"args\": {\"correlation\": 5}}, "                                 \
	"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"nccl\", \"pid\": 0, \"tid\": 7, "        \
	"\"ts\": " begin                                                                           \
	", \"dur\": 10, \"args\": {\"device\": 0, \"stream\": 7, \"correlation\": 5, "             \
	"\"Process Group Name\": \"0\", \"In msg nelems\": 9, \"dtype\": \"Float\"}}]}"
		RANK("0", "3"), RANK("1", "5")};
#undef RANK
	struct memory bytes[2] = {{(const uint8_t *)rank[0], strlen(rank[0])},
		{(const uint8_t *)rank[1], strlen(rank[1])}};
	struct format_source from[2] = {
		memory_source(&bytes[0], "a.json"), memory_source(&bytes[1], "b.json")};
	(void)state;
	from[0].next = &from[1];
	gpu_bench_without_memory("pytorch", from);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(straggler),
		cmocka_unit_test(clocks_apart),
		cmocka_unit_test(meetings_are_recorded),
		cmocka_unit_test(different_steps),
		cmocka_unit_test(pipeline_of_two_stages),
		cmocka_unit_test(three_ranks),
		cmocka_unit_test(two_files_of_one_rank),
		cmocka_unit_test(another_run),
		cmocka_unit_test(no_meeting),
		cmocka_unit_test(other_files),
		cmocka_unit_test(without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
