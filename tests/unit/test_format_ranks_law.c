/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_format_ranks_law.c - jobs of several ranks made by chance, simulated; what the profiler would have written on each rank's
 * clock is imported, a change is predicted, and the changed job simulated: both agree within 1 %.
 */
#include "gpu_fixture.h"

#include "format/format.h"

enum { RANKS = 3, ITEMS = 120, KERNELS = 3, JOBS = 25, COMPUTE = 7, COMM = 20 };
enum item_kind { HOST, LAUNCH, MEET, SYNC };
struct item {
	enum item_kind kind;
	unsigned kernel;
	bool is_waited_for; /* a meeting, by the stream of kernels */
	double us[RANKS];
};
struct change {
	const char *name; /* of the states that it scales */
	double factor;
	double host, meet, kernel[KERNELS];
};
struct machine {                          /* a rank */
	double now, compute, comm, event; /* event: what the stream of kernels must wait for */
	struct gpu_bench *b;              /* NULL: nobody records */
	double behind;                    /* its clock */
	unsigned rank;
};

static const double CALL_US = 4, WAY_US = 2, BETWEEN_US = 0.2, RETURN_US = 1, ORIGIN_US = 1e9;

static double later(double a, double b)
{
	return a > b ? a : b;
}

static int call_until(struct machine *m, const char *name, double end)
{
	int correlation = m->b ? ++m->b->correlation : 0;
	if (m->b)
		call_of(m->b, MAIN, name, correlation, m->now - m->behind, end - m->behind);
	m->now = end;
	return correlation;
}

/* `stream` waits for what `on` has by now. */
static void depend(struct machine *m, int stream, int on)
{
	int record = call_until(m, "cudaEventRecord", m->now + 1);
	int wait = call_until(m, "cudaStreamWaitEvent", m->now + 1);
	if (m->b)
		said(m->b, "Stream Wait Event", wait, stream, on, record);
}

static void launch_kernel(struct machine *m, const struct item *i, const struct change *c)
{
	char name[8];
	int n = call_until(m, "cudaLaunchKernel", m->now + CALL_US);
	double begin = later(m->now + WAY_US, later(m->compute, m->event) + BETWEEN_US);
	double end = begin + i->us[m->rank] * c->kernel[i->kernel];
	snprintf(name, sizeof name, "k%u", i->kernel);
	if (m->b)
		device_of(m->b, "kernel", name, n, COMPUTE, begin - m->behind, end - m->behind);
	m->compute = end;
	m->event = 0;
}

/* All ranks' kernels of one collective end together, so long after the last one has begun. */
static void meet(struct machine *m, const struct item *i, const struct change *c)
{
	double begin[RANKS], last = 0;
	int n[RANKS];
	for (unsigned r = 0; r < RANKS; r++) {
		depend(&m[r], COMM, COMPUTE);
		double ready = later(m[r].comm, m[r].compute);
		n[r] = call_until(&m[r], "cudaLaunchKernel", m[r].now + CALL_US);
		begin[r] = later(m[r].now + WAY_US, ready + BETWEEN_US);
		last = later(last, begin[r]);
	}
	for (unsigned r = 0; r < RANKS; r++) {
		m[r].comm = last + i->us[0] * c->meet;
		if (m[r].b) {
			char args[200];
			snprintf(args, sizeof args,
				"\"device\": 0, \"stream\": %d, \"correlation\": %d, \"Collective "
				"name\": "
				"\"allreduce\", \"Process Group Name\": \"0\"",
				COMM, n[r]);
			slice(m[r].b, "kernel", "ncclKernel", 0, COMM, begin[r] - m[r].behind,
				m[r].comm - m[r].behind, args);
		}
		if (i->is_waited_for) {
			depend(&m[r], COMPUTE, COMM);
			m[r].event = m[r].comm;
		}
	}
}

static void simulate_item(struct machine *m, const struct item *i, const struct change *c)
{
	if (i->kind == MEET) {
		meet(m, i, c);
		return;
	}
	for (unsigned r = 0; r < RANKS; r++) {
		double us = i->us[r] * c->host, until;
		switch (i->kind) {
		case HOST:
			if (m[r].b)
				op(m[r].b, MAIN, "work", m[r].now - m[r].behind,
					m[r].now + us - m[r].behind);
			m[r].now += us;
			break;
		case LAUNCH:
			launch_kernel(&m[r], i, c);
			break;
		case SYNC:
			until = later(m[r].now, later(m[r].compute, m[r].comm));
			call_until(&m[r], "cudaDeviceSynchronize", until + RETURN_US);
			break;
		case MEET:
			break;
		}
	}
}

static double simulate(struct gpu_bench *b, const struct item *item, const struct change *c)
{
	static const double behind[RANKS] = {0, 17e6, -5e6};
	struct machine m[RANKS] = {0};
	double end = 0;
	for (unsigned r = 0; r < RANKS; r++)
		m[r] = (struct machine){.now = ORIGIN_US,
			.compute = ORIGIN_US,
			.comm = ORIGIN_US,
			.b = b ? &b[r] : NULL,
			.behind = behind[r],
			.rank = r};
	for (unsigned i = 0; i < ITEMS; i++)
		simulate_item(m, &item[i], c);
	for (unsigned r = 0; r < RANKS; r++)
		end = later(end, later(m[r].now, later(m[r].compute, m[r].comm)));
	return end - ORIGIN_US;
}

static unsigned pick(unsigned *seed, unsigned nr)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 16) % nr;
}

static void make(struct item *item, unsigned seed)
{
	static const enum item_kind kinds[] = {
		HOST, HOST, LAUNCH, LAUNCH, LAUNCH, LAUNCH, LAUNCH, MEET};
	for (unsigned i = 0; i < ITEMS; i++) {
		enum item_kind kind = kinds[pick(&seed, BASE_COUNT(kinds))];
		item[i] = (struct item){.kind = i % 30 == 29 ? SYNC : kind,
			.kernel = pick(&seed, KERNELS),
			.is_waited_for = pick(&seed, 3) > 0};
		for (unsigned r = 0; r < RANKS; r++)
			item[i].us[r] = kind == HOST ? 5 + pick(&seed, 60) : 10 + pick(&seed, 150);
	}
}

static void import(struct gpu_bench *rank, struct gpu_bench *all, const char *path)
{
	struct base_str text[RANKS] = {0};
	struct memory bytes[RANKS];
	struct format_source from[RANKS];
	for (unsigned r = 0; r < RANKS; r++) {
		base_str_addf(&text[r],
			"{\"distributedInfo\": {\"rank\": %u}, \"traceEvents\": [%s]}", r,
			base_str_text(&rank[r].json));
		bytes[r] =
			(struct memory){(const uint8_t *)base_str_text(&text[r]), text[r].length};
		from[r] = memory_source(&bytes[r], "rank.json");
	}
	for (unsigned r = 0; r + 1 < RANKS; r++)
		from[r].next = &from[r + 1];
	assert_int_equal(gpu_bench_import_from(all, "pytorch", from, path), BASE_OK);
	for (unsigned r = 0; r < RANKS; r++)
		base_str_fini(&text[r]);
}

static void predicted_as_simulated(void **state)
{
	static const struct change as_it_was = {"", 1, 1, 1, {1, 1, 1}},
				   changes[] = {
					   {"k1", 0.3, 1, 1, {1, 0.3, 1}},
					   {"k2", 0, 1, 1, {1, 1, 0}},
					   {"k0", 2, 1, 1, {2, 1, 1}},
					   {"work", 0.2, 0.2, 1, {1, 1, 1}},
					   {"ncclKernel", 0.1, 1, 0.1, {1, 1, 1}},
					   {"ncclKernel", 4, 1, 4, {1, 1, 1}},
				   };
	struct item item[ITEMS];
	double worst = 0;
	unsigned nr_gained = 0;
	(void)state;
	for (unsigned seed = 1; seed <= JOBS; seed++) {
		struct gpu_bench rank[RANKS] = {0}, all = {0};
		char path[] = "/tmp/longpole-gpu-XXXXXX";
		close(mkstemp(path));
		make(item, seed);
		double was = simulate(rank, item, &as_it_was);
		import(rank, &all, path);
		gpu_bench_model(&all, path, NULL, 0);
		assert_true(fabs(gpu_bench_length(&all, 0) - was) < 0.01);
		assert_null(strstr(base_str_text(&all.notes), "not taken as"));
		for (unsigned i = 0; i < BASE_COUNT(changes); i++) {
			struct graph_edit edit[EDITS_MAX];
			struct graph_scenario s = {edit, 0};
			double is = simulate(NULL, item, &changes[i]);
			s.nr_edits =
				gpu_bench_edits(&all, changes[i].name, changes[i].factor, edit);
			gpu_bench_model(&all, path, &s, 1);
			double said_to_be = gpu_bench_length(&all, 1);
			double error = fabs(said_to_be - is) / is;
			nr_gained += fabs(is - was) > 0.05 * was;
			worst = error > worst ? error : worst;
			if (error > 0.01)
				print_message("job %u, %s: %g, predicted %g, simulated %g\n", seed,
					changes[i].name, was, said_to_be, is);
			assert_true(error <= 0.01);
		}
		for (unsigned r = 0; r < RANKS; r++)
			gpu_bench_fini(&rank[r]);
		gpu_bench_fini(&all);
		unlink(path);
	}
	assert_true(nr_gained > JOBS); /* the changes change something */
	print_message("worst error %.3f %%\n", 100 * worst);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predicted_as_simulated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
