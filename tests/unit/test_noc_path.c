/* SPDX-License-Identifier: Apache-2.0 */
/* test_noc_path.c - what a run of packets went into: a known answer, and laws on all patterns. */
#include "noc/pdg/gen.h"
#include "noc/pdg/path.h"
#include "noc/replay.h"

#include "test.h"

static void add(struct noc_pdg *g, uint32_t from, uint64_t transmit, uint64_t receive,
	uint64_t delay, const uint32_t *on, size_t nr)
{
	const struct noc_pdg_packet p = {.source = from,
		.destination = 1 - from,
		.size_flits = 1,
		.transmit_cycle = transmit,
		.receive_cycle = receive,
		.delay_cycles = delay};
	assert_int_equal(noc_pdg_add(g, &p, NULL), BASE_OK);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(noc_pdg_add_dependency(g, on[i], NOC_GIVEN, NULL), BASE_OK);
}

/* Two nodes. Packet 3 is sent 10 cycles later than its gate says, 4 in the cycle after it. */
static struct noc_pdg *two_nodes(void)
{
	struct noc_pdg *g = noc_pdg_new(2);
	assert_non_null(g);
	g->has_graph = true;
	add(g, 1, 2, 4, 2, NULL, 0);
	add(g, 0, 10, 13, 10, NULL, 0);
	add(g, 1, 18, 25, 5, (const uint32_t[]){1}, 1);
	add(g, 0, 40, 43, 5, (const uint32_t[]){0, 2}, 2);
	add(g, 0, 41, 44, 1, (const uint32_t[]){0}, 1);
	return g;
}

static uint64_t sum_of(const struct noc_path *p)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < NOC_PATH_PARTS; i++)
		sum += p->part_cycles[i];
	return sum;
}

static void test_known(void **state)
{
	struct noc_pdg *g = two_nodes();
	struct noc_path p;
	(void)state;
	assert_int_equal(noc_path_find(g, &p, NULL), BASE_OK);
	assert_int_equal(p.execution_cycles, 44);
	assert_int_equal(p.part_cycles[NOC_PATH_NETWORK], 3 + 7 + 3); /* 4, 2, 1 */
	assert_int_equal(p.part_cycles[NOC_PATH_NODE], 5 + 5 + 10);   /* 3, 2, 1 */
	assert_int_equal(p.part_cycles[NOC_PATH_TURN], 1);
	assert_int_equal(p.part_cycles[NOC_PATH_REST], 10);
	assert_int_equal(p.nr_packets, 3);
	assert_int_equal(p.nr_late, 0);
	assert_int_equal(p.node_cycles[0], 10 + 1 + 5 + 10);
	assert_int_equal(p.node_cycles[1], 5);
	noc_path_fini(&p);

	/* 1 comes too late to be what 2 waited for: nothing else is known of 2 */
	g->receive_cycle[1] = 19;
	g->inputs[2] |= NOC_PDG_NOT_BEFORE;
	assert_int_equal(noc_path_find(g, &p, NULL), BASE_OK);
	assert_int_equal(p.nr_late, 1);
	assert_int_equal(p.part_cycles[NOC_PATH_STAMP], 18 - 5);
	assert_int_equal(sum_of(&p), 44);
	noc_path_fini(&p);
	noc_pdg_free(g);
}

static void test_load(void **state)
{
	struct noc_pdg *g = two_nodes();
	struct noc_load l;
	(void)state;
	assert_int_equal(noc_load_count(g, &l, NULL), BASE_OK);
	assert_int_equal(l.packets, 5);
	assert_int_equal(l.sent_flits[0], 3);
	assert_int_equal(l.received_flits[0], 2);
	assert_int_equal(l.latency_cycles, 2 + 3 + 7 + 3 + 3);
	assert_int_equal(l.latency_max_cycles, 7);
	assert_int_equal(l.excess_cycles, 5); /* 7 - 2, from 1 to 0 */
	assert_int_equal(l.excess_at_cycles[0], 5);
	noc_load_fini(&l);
	noc_pdg_free(g);
}

static uint64_t replayed(const struct noc_pdg *g, const char *nodes, const char *cycles)
{
	struct noc_config c;
	struct noc_replay_result r;
	noc_config_init(&c);
	assert_int_equal(noc_config_set(&c, "topology=ideal", NULL), BASE_OK);
	assert_int_equal(noc_config_set(&c, nodes, NULL), BASE_OK);
	assert_int_equal(noc_config_set(&c, cycles, NULL), BASE_OK);
	assert_int_equal(noc_replay(g, &c, NOC_REPLAY_GRAPH, NULL, NULL, &r, NULL), BASE_OK);
	uint64_t execution = r.execution_cycles;
	noc_replay_result_fini(&r);
	return execution;
}

/* A reference graph explains all of its run, and a chain of n packets bounds the run on any
 * network: what is not in the network stays, and each packet takes at least its latency. */
static void test_laws(void **state)
{
	size_t nr;
	(void)state;
	noc_gen_patterns(&nr);
	for (unsigned pattern = 0; pattern < nr; pattern++) {
		struct noc_gen_config c;
		struct noc_pdg *g;
		struct noc_path p;
		noc_gen_config_init(&c);
		c.pattern = pattern;
		c.packets = 3000;
		c.nodes = 16;
		c.multicast = pattern ? 0 : 0.3;
		assert_int_equal(noc_gen(&c, &g, NULL), BASE_OK);
		assert_int_equal(noc_path_find(g, &p, NULL), BASE_OK);
		uint64_t elsewhere = p.execution_cycles - p.part_cycles[NOC_PATH_NETWORK];
		assert_int_equal(sum_of(&p), p.execution_cycles);
		assert_int_equal(p.part_cycles[NOC_PATH_REST], 0);
		assert_int_equal(p.nr_late, 0);
		assert_true(
			p.nr_packets > 0); /* transpose: the diagonal's wait for nobody else's */
		assert_int_equal(p.part_cycles[NOC_PATH_NETWORK], p.nr_packets);
		assert_int_equal(replayed(g, "nodes=16", "ideal_cycles=1"), p.execution_cycles);
		assert_true(replayed(g, "nodes=16", "ideal_cycles=30") >=
			    elsewhere + 30 * (uint64_t)p.nr_packets);
		noc_path_fini(&p);
		noc_pdg_free(g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_laws),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
