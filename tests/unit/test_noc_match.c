/* SPDX-License-Identifier: Apache-2.0 */
/* test_noc_match.c - messages of runs that differ, with edits that are known. */
#include "noc/pdg/draw.h"
#include "noc/pdg/gen.h"
#include "noc/pdg/infer.h"
#include "noc/pdg/match.h"
#include "noc/pdg/sample.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

static void put(struct noc_pdg *g, uint32_t from, uint32_t to, uint8_t type, uint64_t address,
	uint64_t cycle)
{
	struct noc_pdg_packet p = {.source = from,
		.destination = to,
		.size_flits = 1,
		.type = type,
		.address = address,
		.transmit_cycle = cycle,
		.receive_cycle = cycle + 1};
	assert_int_equal(noc_pdg_add(g, &p, NULL), BASE_OK);
}

/* base: a b a c a; other: a x b a a: the second kind of a is the first's place in order. */
static void test_by_hand(void **state)
{
	struct noc_pdg *base = noc_pdg_new(2), *other = noc_pdg_new(2);
	struct noc_match m;
	(void)state;
	const char *from = "abaca", *to = "axbaa";
	for (unsigned i = 0; i < 5; i++) {
		put(base, 0, 1, 1, (uint64_t)from[i], 10 * (i + 1));
		put(other, 0, 1, 1, (uint64_t)to[i], 10 * (i + 1));
	}
	assert_int_equal(noc_match(base, other, NOC_MATCH_ALIGN, 64, &m, NULL), BASE_OK);
	assert_int_equal(m.in_order, 4); /* a b a a */
	assert_int_equal(m.moved, 0);
	assert_int_equal(m.base_only, 1);
	assert_int_equal(m.other_only, 1);
	assert_int_equal(m.other[0], 0);
	assert_int_equal(m.other[1], 2);
	assert_int_equal(m.other[2], 3);
	assert_int_equal(m.other[3], NOC_PDG_NONE);
	assert_int_equal(m.other[4], 4);
	noc_match_fini(&m);
	noc_pdg_free(base);
	noc_pdg_free(other);
}

/* Another pair, type or address is never a match. */
static void test_only_equal_messages_match(void **state)
{
	struct noc_pdg *base = noc_pdg_new(3), *other = noc_pdg_new(3);
	struct noc_match m;
	(void)state;
	put(base, 0, 1, 1, 5, 10);
	put(other, 0, 2, 1, 5, 10);
	put(other, 1, 0, 1, 5, 11);
	put(other, 0, 1, 2, 5, 12);
	put(other, 0, 1, 1, 6, 13);
	for (unsigned method = 0; method < 2; method++) {
		assert_int_equal(
			noc_match(base, other, (enum noc_match_method)method, 64, &m, NULL),
			BASE_OK);
		assert_int_equal(m.base_only, 1);
		assert_int_equal(m.other_only, 4);
		noc_match_fini(&m);
	}
	noc_pdg_free(base);
	noc_pdg_free(other);
}

enum { EDITED = 40000, LINES = 6 };

/* A run from which some messages are missing, and which has others more. truth[]: by base packet.
 */
static struct noc_pdg *edited(const struct noc_pdg *base, uint32_t one_in, uint32_t *truth)
{
	struct noc_pdg *g = noc_pdg_new(base->nr_nodes);
	struct noc_draw draw;
	noc_draw_init(&draw, one_in);
	for (uint32_t i = 0; i < base->nr_packets; i++) {
		uint64_t cycle = base->transmit_cycle[i];
		truth[i] = NOC_PDG_NONE;
		if (!noc_draw_below(&draw, one_in))
			put(g, base->source[i], base->destination[i],
				(uint8_t)(1 + noc_draw_below(&draw, 2)),
				noc_draw_below(&draw, LINES), cycle);
		if (!noc_draw_below(&draw, one_in))
			continue;
		truth[i] = g->nr_packets;
		put(g, base->source[i], base->destination[i], base->type[i], base->address[i],
			cycle);
	}
	return g;
}

static struct noc_pdg *messages(void)
{
	struct noc_gen_config c;
	struct noc_pdg *g;
	struct noc_draw draw;
	noc_gen_config_init(&c);
	c.nodes = 16;
	c.packets = EDITED;
	assert_int_equal(noc_gen(&c, &g, NULL), BASE_OK);
	noc_draw_init(&draw, 5);
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		g->type[i] = (uint8_t)(1 + noc_draw_below(&draw, 2));
		g->address[i] = noc_draw_below(&draw, LINES);
	}
	return g;
}

static uint64_t right(const struct noc_match *m, const uint32_t *truth, uint64_t *ret_wrong)
{
	uint64_t nr = 0;
	*ret_wrong = 0;
	for (uint32_t i = 0; i < EDITED; i++) {
		nr += truth[i] != NOC_PDG_NONE && m->other[i] == truth[i];
		*ret_wrong += m->other[i] != NOC_PDG_NONE && m->other[i] != truth[i];
	}
	return nr;
}

/* A hundredth of the messages missing, a hundredth more: alignment finds nearly all, and the plain
 * count goes wrong after each. */
static void test_edited_run(void **state)
{
	struct noc_pdg *base = messages();
	uint32_t *truth = malloc(EDITED * sizeof *truth);
	struct noc_pdg *other = edited(base, 100, truth);
	struct noc_match m;
	uint64_t wrong, kept = 0;
	(void)state;
	for (uint32_t i = 0; i < EDITED; i++)
		kept += truth[i] != NOC_PDG_NONE;
	assert_int_equal(
		noc_match(base, other, NOC_MATCH_ALIGN, NOC_MATCH_DISPLACEMENT, &m, NULL), BASE_OK);
	assert_true(right(&m, truth, &wrong) > kept * 99 / 100);
	assert_true(wrong < kept / 100);
	assert_int_equal(m.in_order + m.moved + m.base_only, EDITED);
	assert_int_equal(m.in_order + m.moved + m.other_only, other->nr_packets);
	noc_match_fini(&m);
	assert_int_equal(noc_match(base, other, NOC_MATCH_COUNT, 0, &m, NULL), BASE_OK);
	assert_true(right(&m, truth, &wrong) < kept * 9 / 10);
	noc_match_fini(&m);
	free(truth);
	noc_pdg_free(base);
	noc_pdg_free(other);
}

/* Missing messages are filled out, and do not spoil what is inferred of the others. */
static void test_fill_out(void **state)
{
	struct noc_pdg *base = messages(), *inferred;
	uint32_t *truth = malloc(EDITED * sizeof *truth);
	struct noc_sample_options sample = {.design = NOC_PACKETS, .nr_skewed = 4, .seed = 1};
	struct noc_infer_options o;
	struct noc_infer_result result;
	struct noc_match_counts counts;
	struct noc_index x = {0};
	struct noc_runs whole, runs;
	(void)state;
	assert_int_equal(noc_sample(base, &sample, &whole, NULL), BASE_OK);
	assert_int_equal(noc_runs_init(&runs, 5, EDITED, NULL), BASE_OK);
	for (uint32_t i = 0; i < EDITED; i++) {
		runs.transmit_cycle[i * 5] = whole.transmit_cycle[i * 5];
		runs.receive_cycle[i * 5] = whole.receive_cycle[i * 5];
	}
	for (uint32_t r = 1; r < 5; r++) {
		struct noc_pdg *skewed = noc_pdg_copy(base);
		struct noc_match m;
		for (uint32_t i = 0; i < EDITED; i++) {
			skewed->transmit_cycle[i] = whole.transmit_cycle[i * 5 + r];
			skewed->receive_cycle[i] = whole.receive_cycle[i * 5 + r];
		}
		struct noc_pdg *other = edited(skewed, 200 + r, truth);
		for (uint32_t i = 0; i < EDITED; i++)
			if (truth[i] != NOC_PDG_NONE)
				other->receive_cycle[truth[i]] = skewed->receive_cycle[i];
		assert_int_equal(noc_match(base, other, NOC_MATCH_ALIGN, 64, &m, NULL), BASE_OK);
		assert_int_equal(noc_fill_out(base, other, &m, &runs, r, NULL), BASE_OK);
		noc_match_fini(&m);
		noc_pdg_free(other);
		noc_pdg_free(skewed);
	}
	noc_infer_robust(&o);
	assert_int_equal(noc_infer(base, &runs, &o, &inferred, &result, NULL), BASE_OK);
	assert_int_equal(noc_index_init(&x, base, base->receive_cycle, 1, NULL), BASE_OK);
	noc_infer_compare(base, inferred, &x, &counts);
	assert_true(counts.found > counts.reference * 85 / 100); /* 93 % with whole runs */
	assert_true(counts.quasi < counts.reference / 20);
	noc_pdg_free(inferred);
	noc_index_fini(&x);
	noc_runs_fini(&runs);
	noc_runs_fini(&whole);
	free(truth);
	noc_pdg_free(base);
}

static void test_allocation_failures(void **state)
{
	struct noc_pdg *base = noc_pdg_new(2), *other = noc_pdg_new(2);
	enum base_status s = BASE_ERR_NOMEM;
	(void)state;
	for (unsigned i = 0; i < 30; i++) {
		put(base, 0, 1, 1, i % 3, i + 1);
		put(other, 0, 1, 1, i % 4, i + 1);
	}
	for (uint64_t nth = 1; s != BASE_OK; nth++) {
		struct noc_match m = {0};
		struct noc_runs runs = {0};
		base_alloc_fail_nth(nth);
		s = noc_match(base, other, NOC_MATCH_ALIGN, 64, &m, NULL);
		if (s == BASE_OK)
			s = noc_runs_init(&runs, 2, 30, NULL);
		if (s == BASE_OK)
			s = noc_fill_out(base, other, &m, &runs, 1, NULL);
		base_alloc_fail_nth(0);
		assert_true(s == BASE_OK || s == BASE_ERR_NOMEM);
		noc_match_fini(&m);
		noc_runs_fini(&runs);
	}
	noc_pdg_free(base);
	noc_pdg_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_only_equal_messages_match),
		cmocka_unit_test(test_edited_run),
		cmocka_unit_test(test_fill_out),
		cmocka_unit_test(test_allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
