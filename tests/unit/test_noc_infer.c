/* SPDX-License-Identifier: Apache-2.0 */
/* test_noc_infer.c - PDG_GEN: the seed's examples, an independent reference, laws; and what the
 * robust method reaches on all patterns. */
#include "noc/pdg/draw.h"
#include "noc/pdg/gen.h"
#include "noc/pdg/infer.h"
#include "noc/pdg/infer_stream.h"
#include "noc/pdg/sample.h"

#include <limits.h>
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- one set of candidates ------------------------------------------------------------------- */

/* Seed 002, table 1: T13, then T6 to T9. */
static const uint64_t table_1[3][5] = {
	{1000, 900, 950, 980, 990}, {1050, 1020, 1000, 1030, 1100}, {1100, 1045, 1050, 1075, 1095}};

static void test_table_1(void **state)
{
	int64_t slack[4 * 3], delay;
	struct noc_infer_sort scratch[4];
	uint32_t explained;
	bool keep[4];
	(void)state;
	for (unsigned c = 0; c < 4; c++)
		for (unsigned r = 0; r < 3; r++)
			slack[c * 3 + r] = (int64_t)table_1[r][0] - (int64_t)table_1[r][c + 1];
	assert_int_equal(
		noc_infer_prune(slack, 4, 3, NULL, 0, scratch, keep, &delay, &explained), 1);
	assert_true(!keep[0] && keep[1] && !keep[2] && !keep[3]);
	assert_int_equal(delay, 50);
	assert_int_equal(explained, 3);
}

/* The text as it stands: drop what violates causality; estimate the delay from the base run; drop
 * the last arrivals that violate a property; again until nothing changes. */
static unsigned naive(const int64_t *slack, unsigned nr, unsigned runs, bool *keep, int64_t *ret)
{
	unsigned left = 0;
	for (unsigned c = 0; c < nr; c++) {
		keep[c] = true;
		for (unsigned r = 0; r < runs; r++)
			keep[c] = keep[c] && slack[c * runs + r] > 0;
	}
	for (bool changed = true; changed;) {
		int64_t delay = 0;
		changed = false;
		/* the delay is at least the idle time after the last arrival, in any run */
		for (unsigned r = 0; r < runs; r++) {
			int64_t last = INT64_MAX;
			for (unsigned c = 0; c < nr; c++)
				if (keep[c] && slack[c * runs + r] < last)
					last = slack[c * runs + r];
			if (last != INT64_MAX && last > delay)
				delay = last;
		}
		for (unsigned c = 0; c < nr && !changed; c++)
			for (unsigned r = 0; r < runs && keep[c]; r++)
				if (slack[c * runs + r] < delay) {
					keep[c] = false;
					changed = true;
				}
		*ret = delay;
	}
	for (unsigned c = 0; c < nr; c++)
		left += keep[c];
	return left;
}

static void test_prune_is_the_fixed_point(void **state)
{
	struct noc_draw draw;
	(void)state;
	noc_draw_init(&draw, 7);
	for (unsigned trial = 0; trial < 20000; trial++) {
		unsigned nr = noc_draw_below(&draw, 40), runs = 1 + noc_draw_below(&draw, 6);
		int64_t slack[40 * 6], delay, naive_delay;
		struct noc_infer_sort scratch[40];
		bool keep[40], naive_keep[40];
		uint32_t explained;
		uint32_t spread = 1 + noc_draw_below(&draw, 30);
		for (unsigned c = 0; c < nr; c++) {
			int64_t base = 1 + noc_draw_below(&draw, 12);
			for (unsigned r = 0; r < runs; r++)
				slack[c * runs + r] =
					noc_draw_below(&draw, 3)
						? base
						: (int64_t)noc_draw_below(&draw, spread + 10) - 1;
		}
		unsigned left = naive(slack, nr, runs, naive_keep, &naive_delay);
		assert_int_equal(noc_infer_prune(slack, nr, runs, NULL, 0, scratch, keep, &delay,
					 &explained),
			left);
		assert_memory_equal(keep, naive_keep, nr);
		if (left)
			assert_int_equal(delay, naive_delay);
	}
}

/* ---- small graphs by hand -------------------------------------------------------------------- */

static void add(struct noc_pdg *g, uint32_t from, uint32_t to)
{
	struct noc_pdg_packet p = {.source = from, .destination = to, .size_flits = 1};
	assert_int_equal(noc_pdg_add(g, &p, NULL), BASE_OK);
}

/* Table 1 as packets: node 1 sends four to node 0, which then sends one. */
static void test_table_1_as_packets(void **state)
{
	struct noc_pdg *g = noc_pdg_new(2), *inferred;
	struct noc_infer_options o;
	struct noc_infer_result result;
	struct noc_runs runs;
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		add(g, 1, 0);
	add(g, 0, 1);
	assert_int_equal(noc_runs_init(&runs, 3, 5, NULL), BASE_OK);
	for (unsigned r = 0; r < 3; r++) {
		for (unsigned c = 0; c < 4; c++) {
			runs.receive_cycle[c * 3 + r] = table_1[r][c + 1];
			runs.transmit_cycle[c * 3 + r] = 100 + c;
		}
		runs.transmit_cycle[4 * 3 + r] = table_1[r][0];
		runs.receive_cycle[4 * 3 + r] = table_1[r][0] + 1;
	}
	noc_infer_literal(&o);
	assert_int_equal(noc_infer(g, &runs, &o, &inferred, &result, NULL), BASE_OK);
	assert_int_equal(noc_pdg_nr_dependencies(inferred), 1);
	assert_int_equal(inferred->dependency[inferred->first[4]], 1); /* E7 */
	assert_int_equal(inferred->delay_cycles[4], 50);
	noc_pdg_free(inferred);
	noc_pdg_free(g);
	noc_runs_fini(&runs);
}

static void gate(struct noc_pdg *g, uint32_t from, uint32_t to, uint64_t transmit, uint64_t delay,
	uint8_t inputs, uint32_t on)
{
	struct noc_pdg_packet p = {.source = from,
		.destination = to,
		.size_flits = 1,
		.transmit_cycle = transmit,
		.receive_cycle = transmit + 1,
		.delay_cycles = delay,
		.inputs = inputs};
	assert_int_equal(noc_pdg_add(g, &p, NULL), BASE_OK);
	if (on != NOC_PDG_NONE)
		assert_int_equal(noc_pdg_add_dependency(g, on, NOC_GIVEN, NULL), BASE_OK);
}

/* Seed 002, figure 2: the last packet, of node C, depends on the one before only; those that A and
 * B sent to C earlier look like dependencies whichever node is slow. */
static struct noc_pdg *figure_2(void)
{
	enum { A, B, C };
	struct noc_pdg *g = noc_pdg_new(3);
	gate(g, A, C, 10, 10, 0, NOC_PDG_NONE);                /* 0: "packet 2" */
	gate(g, A, B, 20, 10, NOC_PDG_PREVIOUS, NOC_PDG_NONE); /* 1: "packet 4" */
	gate(g, B, C, 21, 21, 0, NOC_PDG_NONE);                /* 2: "packet 5" */
	gate(g, B, C, 41, 20, 0, 1);                           /* 3: "packet 6" */
	gate(g, C, A, 72, 30, 0, 3);                           /* 4: "packet 7" */
	g->has_graph = true;
	return g;
}

static void infer_from(const struct noc_pdg *g, enum noc_design design,
	const struct noc_infer_options *o, uint32_t nr_skewed, uint32_t noise_cycles,
	struct noc_pdg **ret, struct noc_match_counts *counts)
{
	struct noc_sample_options sample = {.design = design,
		.nr_skewed = nr_skewed,
		.noise_cycles = noise_cycles,
		.seed = 3,
		.nr_threads = 2};
	struct noc_infer_result result;
	struct noc_index x = {0};
	struct noc_runs runs;
	assert_int_equal(noc_sample(g, &sample, &runs, NULL), BASE_OK);
	assert_int_equal(noc_infer(g, &runs, o, ret, &result, NULL), BASE_OK);
	assert_int_equal(noc_index_init(&x, g, g->receive_cycle, 1, NULL), BASE_OK);
	noc_infer_compare(g, *ret, &x, counts);
	assert_int_equal(result.dependencies, noc_pdg_nr_dependencies(*ret));
	noc_index_fini(&x);
	noc_runs_fini(&runs);
}

static void test_figure_2(void **state)
{
	struct noc_pdg *g = figure_2(), *literal, *robust;
	struct noc_infer_options o;
	struct noc_match_counts counts;
	(void)state;
	assert_int_equal(noc_pdg_check(g, NULL), BASE_OK);
	noc_infer_literal(&o);
	infer_from(g, NOC_NODES, &o, 3, 0, &literal, &counts);
	/* packet 7: the true one and both quasi-dependencies of the figure */
	assert_int_equal(literal->first[5] - literal->first[4], 3);
	assert_int_equal(literal->delay_cycles[4], 30);
	noc_infer_robust(&o);
	infer_from(g, NOC_ADAPTIVE, &o, 3, 0, &robust, &counts);
	assert_int_equal(robust->first[5] - robust->first[4], 1);
	assert_int_equal(robust->dependency[robust->first[4]], 3);
	assert_int_equal(robust->certainty[robust->first[4]], NOC_CONFIRMED);
	assert_int_equal(robust->delay_cycles[4], 30);
	noc_pdg_free(literal);
	noc_pdg_free(robust);
	noc_pdg_free(g);
}

/* ---- laws on reference graphs ---------------------------------------------------------------- */

static struct noc_pdg *reference_with(
	size_t pattern, double packets, double nodes, double multicast)
{
	struct noc_gen_config c;
	struct noc_pdg *g;
	noc_gen_config_init(&c);
	c.pattern = (unsigned)pattern;
	c.packets = packets;
	c.nodes = nodes;
	c.multicast = multicast;
	assert_int_equal(noc_gen(&c, &g, NULL), BASE_OK);
	assert_int_equal(noc_pdg_check(g, NULL), BASE_OK);
	return g;
}

static struct noc_pdg *reference(size_t pattern, double packets, double nodes)
{
	return reference_with(pattern, packets, nodes, 0);
}

/* The base run of a graph is the one that it was made in. */
static void test_base_run_is_the_graph(void **state)
{
	size_t nr;
	(void)state;
	noc_gen_patterns(&nr);
	for (size_t p = 0; p < nr; p++) {
		struct noc_pdg *g = reference(p, 5000, 48);
		struct noc_index x = {0};
		struct noc_runs runs;
		assert_int_equal(noc_index_init(&x, g, g->receive_cycle, 1, NULL), BASE_OK);
		assert_int_equal(noc_runs_init(&runs, 1, g->nr_packets, NULL), BASE_OK);
		noc_ideal_replay(g, &x, NULL, &runs, 0);
		assert_memory_equal(runs.transmit_cycle, g->transmit_cycle,
			g->nr_packets * sizeof *g->transmit_cycle);
		assert_memory_equal(runs.receive_cycle, g->receive_cycle,
			g->nr_packets * sizeof *g->receive_cycle);
		noc_runs_fini(&runs);
		noc_index_fini(&x);
		noc_pdg_free(g);
	}
}

/* When delays are exact, nodes are not ordered and the window holds all dependencies, none is lost:
 * neither by the literal method nor by the robust one without grades. */
static void test_no_true_dependency_is_lost(void **state)
{
	(void)state;
	for (size_t p = 0; p < 7; p++) {
		struct noc_pdg *g = reference(p, 20000, 64), *inferred;
		struct noc_infer_options o;
		struct noc_match_counts counts;
		memset(g->ordered, 0, g->nr_nodes);
		noc_infer_literal(&o);
		infer_from(g, NOC_NODES, &o, 4, 0, &inferred, &counts);
		assert_true(counts.reference > 1000);
		assert_int_equal(counts.missed, 0);
		noc_pdg_free(inferred);
		noc_pdg_free(g);
	}
}

static void test_robust_on_all_patterns(void **state)
{
	size_t nr;
	const struct noc_gen_pattern *pattern = noc_gen_patterns(&nr);
	(void)state;
	for (size_t p = 0; p < nr; p++) {
		struct noc_pdg *g = reference(p, 60000, 64), *inferred;
		struct noc_infer_options o;
		struct noc_match_counts c;
		/* inval: an answer waits for four, of which others' come between; four runs are too
		 * few for some */
		double least = strcmp(pattern[p].name, "inval") ? 0.99 : 0.85;
		noc_infer_robust(&o);
		infer_from(g, NOC_ADAPTIVE, &o, 4, 0, &inferred, &c);
		assert_int_equal(noc_pdg_check(inferred, NULL), BASE_OK);
		if ((double)c.found < least * (double)c.reference ||
			(double)c.quasi > 0.02 * (double)c.reference)
			fail_msg("%s: %llu of %llu found, %llu quasi", pattern[p].name,
				(unsigned long long)c.found, (unsigned long long)c.reference,
				(unsigned long long)c.quasi);
		noc_pdg_free(inferred);
		noc_pdg_free(g);
	}
}

/* Delays that differ by up to 2 cycles in each run: the literal method finds less than 1 %. 97 to
 * 99.9 % are found; a tree's barriers of four inputs want a design that separates them all. */
static void test_noisy_delays(void **state)
{
	static const size_t noisy[] = {0, 5, 8, 9}; /* rand, hot, central, tree */
	size_t nr;
	const struct noc_gen_pattern *pattern = noc_gen_patterns(&nr);
	(void)state;
	for (size_t k = 0; k < BASE_COUNT(noisy); k++) {
		struct noc_pdg *g = reference(noisy[k], 30000, 64), *inferred;
		struct noc_infer_options o;
		struct noc_match_counts c;
		noc_infer_robust(&o);
		infer_from(g, NOC_ADAPTIVE, &o, 4, 2, &inferred, &c);
		if ((double)c.found < 0.95 * (double)c.reference ||
			(double)c.quasi > 0.02 * (double)c.reference)
			fail_msg("%s: %llu of %llu found, %llu quasi", pattern[noisy[k]].name,
				(unsigned long long)c.found, (unsigned long long)c.reference,
				(unsigned long long)c.quasi);
		noc_pdg_free(inferred);
		noc_pdg_free(g);
	}
}

/* Replayed where its base run was, the graph is that run. */
static void check_base_run(const struct noc_pdg *g)
{
	struct noc_index x = {0};
	struct noc_runs runs;
	assert_int_equal(noc_index_init(&x, g, g->receive_cycle, 1, NULL), BASE_OK);
	assert_int_equal(noc_runs_init(&runs, 1, g->nr_packets, NULL), BASE_OK);
	noc_ideal_replay(g, &x, NULL, &runs, 0);
	for (uint32_t i = 0; i < g->nr_packets; i++)
		if (runs.transmit_cycle[i] != g->transmit_cycle[i])
			fail_msg("packet %u is sent at %llu, not %llu", i,
				(unsigned long long)runs.transmit_cycle[i],
				(unsigned long long)g->transmit_cycle[i]);
	noc_runs_fini(&runs);
	noc_index_fini(&x);
}

/* Whatever the method, the noise, and whether nodes are ordered. */
static void test_base_run_holds(void **state)
{
	(void)state;
	for (size_t p = 0; p < 11; p++)
		for (unsigned how = 0; how < 8; how++) {
			struct noc_pdg *g = reference(p, 4000, 36), *inferred;
			struct noc_infer_options o;
			struct noc_match_counts c;
			if (how & 1)
				noc_infer_robust(&o);
			else
				noc_infer_literal(&o);
			if (how & 4)
				memset(g->ordered, 0, g->nr_nodes);
			infer_from(g, NOC_NODES, &o, 3, how & 2 ? 3 : 0, &inferred, &c);
			check_base_run(inferred);
			noc_pdg_free(inferred);
			noc_pdg_free(g);
		}
}

/* Programs that race: other runs' times say nothing, or little. The base run holds all the same. */
static void test_base_run_holds_in_races(void **state)
{
	static const unsigned most_cycles[] = {3, 40, 2000};
	struct noc_draw draw;
	(void)state;
	noc_draw_init(&draw, 11);
	for (size_t k = 0; k < 2 * BASE_COUNT(most_cycles); k++) {
		struct noc_pdg *g = reference(k, 3000, 16), *inferred;
		struct noc_infer_options o;
		struct noc_infer_result result;
		struct noc_runs runs;
		assert_int_equal(noc_runs_init(&runs, 4, g->nr_packets, NULL), BASE_OK);
		for (size_t i = 0; i < g->nr_packets; i++)
			for (unsigned r = 0; r < 4; r++) {
				unsigned most = r ? most_cycles[k / 2] : 1;
				uint64_t at = g->transmit_cycle[i] + noc_draw_below(&draw, most);
				runs.transmit_cycle[i * 4 + r] = at;
				runs.receive_cycle[i * 4 + r] =
					at + 1 + noc_draw_below(&draw, most);
			}
		noc_infer_robust(&o);
		assert_int_equal(noc_infer(g, &runs, &o, &inferred, &result, NULL), BASE_OK);
		assert_true(result.base.done && !result.base.moved);
		assert_int_equal(result.base.replayed_cycle, result.base.end_cycle);
		assert_int_equal(result.base.end_cycle, noc_runs_end(&runs, 0));
		check_base_run(inferred);
		noc_runs_fini(&runs);
		noc_pdg_free(inferred);
		noc_pdg_free(g);
	}
}

/* What the order of an ordered node's transmits makes impossible is told: two in one cycle. */
static void test_base_run_that_cannot_be(void **state)
{
	struct noc_pdg *g = noc_pdg_new(2), *inferred;
	struct noc_infer_options o;
	struct noc_infer_result result;
	struct noc_runs runs;
	(void)state;
	add(g, 0, 1);
	add(g, 0, 1);
	assert_int_equal(noc_runs_init(&runs, 2, 2, NULL), BASE_OK);
	for (unsigned i = 0; i < 4; i++) {
		runs.transmit_cycle[i] = 10;
		runs.receive_cycle[i] = 11 + i % 2;
	}
	noc_infer_robust(&o);
	assert_int_equal(noc_infer(g, &runs, &o, &inferred, &result, NULL), BASE_OK);
	assert_int_equal(result.base.moved, 1);
	assert_true(noc_base_error(&result.base) > 0.08); /* 12 instead of 11 */
	noc_runs_fini(&runs);
	noc_pdg_free(inferred);
	noc_pdg_free(g);
}

/* The same answer whatever the number of threads. */
static void test_threads(void **state)
{
	struct noc_pdg *g = reference(0, 40000, 16), *one, *four;
	struct noc_sample_options sample = {.design = NOC_NODES, .nr_skewed = 4};
	struct noc_infer_options o;
	struct noc_infer_result result;
	struct noc_runs runs;
	(void)state;
	assert_int_equal(noc_sample(g, &sample, &runs, NULL), BASE_OK);
	noc_infer_robust(&o);
	o.nr_threads = 1;
	assert_int_equal(noc_infer(g, &runs, &o, &one, &result, NULL), BASE_OK);
	o.nr_threads = 4;
	assert_int_equal(noc_infer(g, &runs, &o, &four, &result, NULL), BASE_OK);
	assert_int_equal(noc_pdg_nr_dependencies(one), noc_pdg_nr_dependencies(four));
	assert_memory_equal(one->dependency, four->dependency,
		noc_pdg_nr_dependencies(one) * sizeof *one->dependency);
	assert_memory_equal(
		one->delay_cycles, four->delay_cycles, g->nr_packets * sizeof *one->delay_cycles);
	noc_pdg_free(one);
	noc_pdg_free(four);
	noc_runs_fini(&runs);
	noc_pdg_free(g);
}

/* ---- window by window ------------------------------------------------------------------------ */

enum { STREAM_RUNS = 4 };
struct files {
	char folder[PATH_MAX], path[STREAM_RUNS + 1][PATH_MAX + 16];
	const char *input[STREAM_RUNS];
};

static void name_files(struct files *f)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(f->folder, sizeof f->folder, "%s/noc-stream-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(f->folder));
	for (unsigned r = 0; r <= STREAM_RUNS; r++)
		snprintf(f->path[r], sizeof f->path[r], "%s/%u.lpt", f->folder, r);
	for (unsigned r = 0; r < STREAM_RUNS; r++)
		f->input[r] = f->path[r];
}

static void remove_files(const struct files *f)
{
	for (unsigned r = 0; r <= STREAM_RUNS; r++)
		unlink(f->path[r]);
	rmdir(f->folder);
}

static void write_runs(const struct noc_pdg *g, const struct noc_runs *runs, const struct files *f)
{
	for (unsigned r = 0; r < STREAM_RUNS; r++) {
		struct noc_pdg *trace = noc_pdg_copy(g);
		for (uint32_t i = 0; i < g->nr_packets; i++) {
			trace->transmit_cycle[i] = runs->transmit_cycle[i * runs->stride + r];
			trace->receive_cycle[i] = runs->receive_cycle[i * runs->stride + r];
		}
		assert_int_equal(noc_pdg_write(trace, f->path[r], NULL), BASE_OK);
		noc_pdg_free(trace);
	}
}

/* The graph of windows is that of the whole, where the tolerance is given and nothing is learned of
 * all: with addresses too. */
static void windows(double multicast)
{
	struct noc_pdg *g = reference_with(0, 20000, 16, multicast), *whole, *parts;
	struct noc_sample_options sample = {.design = NOC_ADAPTIVE, .nr_skewed = STREAM_RUNS - 1};
	struct noc_stream_options o;
	struct noc_infer_result all, sum;
	struct noc_runs runs;
	struct files f;
	g->has_addresses = true;
	for (uint32_t i = 0; i < g->nr_packets; i++)
		g->address[i] = noc_pdg_is_copy(g, i) ? g->address[i - 1] : i * 64;
	assert_int_equal(noc_sample(g, &sample, &runs, NULL), BASE_OK);
	name_files(&f);
	write_runs(g, &runs, &f);
	noc_stream_options_init(&o);
	o.infer.learn = false;
	o.infer.tolerance_cycles = 0;
	o.window_packets = 3001;
	o.context_packets = 3000;
	assert_int_equal(noc_infer(g, &runs, &o.infer, &whole, &all, NULL), BASE_OK);
	assert_int_equal(noc_infer_files(f.input, STREAM_RUNS, &o, f.path[STREAM_RUNS], &sum, NULL),
		BASE_OK);
	assert_int_equal(noc_pdg_read(f.path[STREAM_RUNS], &parts, NULL), BASE_OK);
	assert_int_equal(sum.transmits, g->nr_packets - noc_pdg_nr_copies(g));
	assert_memory_equal(g->destination, parts->destination, g->nr_packets * sizeof(uint32_t));
	assert_int_equal(noc_pdg_nr_copies(parts), noc_pdg_nr_copies(g));
	assert_int_equal(sum.dependencies, all.dependencies);
	assert_int_equal(parts->nr_packets, g->nr_packets);
	assert_memory_equal(
		whole->dependency, parts->dependency, all.dependencies * sizeof *whole->dependency);
	assert_memory_equal(whole->delay_cycles, parts->delay_cycles,
		g->nr_packets * sizeof *whole->delay_cycles);
	assert_memory_equal(g->address, parts->address, g->nr_packets * sizeof *g->address);
	noc_pdg_free(whole);
	noc_pdg_free(parts);
	noc_runs_fini(&runs);
	noc_pdg_free(g);
	remove_files(&f);
}

static void test_windows(void **state)
{
	(void)state;
	windows(0);
	windows(0.5);
}

/* A run of other packets, and one in which packets come too late for the window. */
static void test_windows_refuse(void **state)
{
	struct noc_pdg *g = reference(0, 20000, 16);
	struct noc_stream_options o;
	struct noc_infer_result sum;
	struct noc_runs runs;
	struct files f;
	(void)state;
	assert_int_equal(noc_runs_init(&runs, STREAM_RUNS, g->nr_packets, NULL), BASE_OK);
	for (uint32_t i = 0; i < g->nr_packets; i++)
		for (unsigned r = 0; r < STREAM_RUNS; r++) {
			/* in run 2 a node is late, for ever */
			bool late = r == 2 && g->source[i] == 3;
			runs.transmit_cycle[i * STREAM_RUNS + r] =
				g->transmit_cycle[i] + (late ? 1000000 : 0);
			runs.receive_cycle[i * STREAM_RUNS + r] =
				runs.transmit_cycle[i * STREAM_RUNS + r] + 1;
		}
	name_files(&f);
	write_runs(g, &runs, &f);
	noc_stream_options_init(&o);
	o.window_packets = o.context_packets = 1000;
	assert_int_equal(
		noc_infer_files(f.input, STREAM_RUNS, &o, NULL, &sum, NULL), BASE_ERR_LIMIT);
	struct noc_pdg *less = reference(0, 10000, 16);
	assert_int_equal(noc_pdg_write(less, f.path[1], NULL), BASE_OK);
	assert_int_equal(
		noc_infer_files(f.input, STREAM_RUNS, &o, NULL, &sum, NULL), BASE_ERR_USAGE);
	noc_pdg_free(less);
	noc_runs_fini(&runs);
	noc_pdg_free(g);
	remove_files(&f);
}

/* Four pairs that talk much and all others little: no pair in one set. */
static void test_partition(void **state)
{
	struct noc_pdg *g = noc_pdg_new(8);
	uint32_t set[8], size[2] = {0};
	(void)state;
	for (uint32_t a = 0; a < 8; a++)
		for (uint32_t b = 0; b < 8; b++)
			for (unsigned k = 0; a != b && k < (a / 2 == b / 2 ? 50u : 1u); k++)
				add(g, a, b);
	assert_int_equal(noc_partition(g, 2, set, NULL), BASE_OK);
	for (uint32_t a = 0; a < 8; a += 2)
		assert_int_not_equal(set[a], set[a + 1]);
	for (uint32_t a = 0; a < 8; a++)
		size[set[a]]++;
	assert_int_equal(size[0], 4);
	noc_pdg_free(g);
}

static void test_allocation_failures(void **state)
{
	enum base_status s = BASE_ERR_NOMEM;
	(void)state;
	for (uint64_t nth = 1; s != BASE_OK; nth++) {
		struct noc_gen_config c;
		struct noc_pdg *g = NULL, *inferred = NULL;
		struct noc_sample_options sample = {
			.design = NOC_ADAPTIVE, .nr_skewed = 2, .nr_threads = 1};
		struct noc_infer_options o;
		struct noc_infer_result result;
		struct noc_runs runs = {0};
		noc_gen_config_init(&c);
		c.packets = 300;
		c.nodes = 8;
		c.pattern = nth % 10 ? 0 : 9;
		noc_infer_robust(&o);
		o.nr_threads = 1;
		base_alloc_fail_nth(nth);
		s = noc_gen(&c, &g, NULL);
		if (s == BASE_OK)
			s = noc_sample(g, &sample, &runs, NULL);
		if (s == BASE_OK)
			s = noc_infer(g, &runs, &o, &inferred, &result, NULL);
		base_alloc_fail_nth(0);
		assert_true(s == BASE_OK || s == BASE_ERR_NOMEM);
		noc_pdg_free(g);
		noc_pdg_free(inferred);
		noc_runs_fini(&runs);
	}
}

static void test_allocation_failures_in_windows(void **state)
{
	struct noc_gen_config c;
	struct noc_pdg *g;
	struct noc_sample_options sample = {
		.design = NOC_NODES, .nr_skewed = STREAM_RUNS - 1, .nr_threads = 1};
	struct noc_stream_options o;
	struct noc_infer_result result;
	struct noc_runs runs;
	struct files f;
	(void)state;
	noc_gen_config_init(&c);
	c.packets = 1500;
	c.nodes = 8;
	assert_int_equal(noc_gen(&c, &g, NULL), BASE_OK);
	assert_int_equal(noc_sample(g, &sample, &runs, NULL), BASE_OK);
	name_files(&f);
	write_runs(g, &runs, &f);
	noc_stream_options_init(&o);
	o.infer.nr_threads = 1;
	o.window_packets = o.context_packets = 1000;
	SWEEP_ALLOCATIONS(
		1, noc_infer_files(f.input, STREAM_RUNS, &o, f.path[STREAM_RUNS], &result, NULL));
	noc_runs_fini(&runs);
	noc_pdg_free(g);
	remove_files(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_1),
		cmocka_unit_test(test_prune_is_the_fixed_point),
		cmocka_unit_test(test_table_1_as_packets),
		cmocka_unit_test(test_figure_2),
		cmocka_unit_test(test_base_run_is_the_graph),
		cmocka_unit_test(test_no_true_dependency_is_lost),
		cmocka_unit_test(test_robust_on_all_patterns),
		cmocka_unit_test(test_noisy_delays),
		cmocka_unit_test(test_base_run_holds),
		cmocka_unit_test(test_base_run_holds_in_races),
		cmocka_unit_test(test_base_run_that_cannot_be),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_windows_refuse),
		cmocka_unit_test(test_partition),
		cmocka_unit_test(test_allocation_failures),
		cmocka_unit_test(test_allocation_failures_in_windows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
