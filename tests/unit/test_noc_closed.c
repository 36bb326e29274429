/* SPDX-License-Identifier: Apache-2.0 */
/* test_noc_closed.c - programs whose misses go through a network: known times, laws. */
#include "memory/cdat/cdat.h"
#include "noc/closed.h"
#include "noc/replay.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

/* ---- a program in memory --------------------------------------------------------------------- */

enum { ITEMS_MAX = 4096, CALLS_MAX = 64, THREADS_MAX = 8 };

struct program {
	struct memory_source source;
	struct {
		struct memory_item item[ITEMS_MAX];
		struct memory_call call[CALLS_MAX];
		size_t nr, nr_calls;
		bool given;
	} thread[THREADS_MAX];
};

static enum base_status next(
	struct memory_source *s, int thread, struct memory_batch *ret, struct base_err *err)
{
	struct program *p = (struct program *)s;
	(void)err;
	if (p->thread[thread].given)
		return BASE_END;
	p->thread[thread].given = true;
	*ret = (struct memory_batch){.item = p->thread[thread].item,
		.nr = p->thread[thread].nr,
		.call = p->thread[thread].call,
		.nr_calls = p->thread[thread].nr_calls,
		.thread = (uint32_t)thread};
	return p->thread[thread].nr ? BASE_OK : BASE_END;
}

static const struct memory_source_ops ops = {.next = next};

static struct program *new_program(uint32_t nr_threads)
{
	struct program *p = calloc(1, sizeof *p);
	assert_non_null(p);
	p->source.ops = &ops;
	p->source.info.nr_threads = nr_threads;
	return p;
}

static void op(struct program *p, uint32_t thread, enum memory_item_kind kind, uint64_t address,
	uint32_t instructions)
{
	p->thread[thread].item[p->thread[thread].nr++] = (struct memory_item){.kind = (uint8_t)kind,
		.address = address,
		.instructions = instructions,
		.size_bytes = 8};
}

static void call(
	struct program *p, uint32_t thread, enum memory_call_kind kind, uint64_t a, uint64_t b)
{
	size_t at = p->thread[thread].nr_calls++;
	p->thread[thread].call[at] =
		(struct memory_call){.kind = (uint8_t)kind, .argument = {a, b}};
	op(p, thread, MEMORY_CALL, at, 1);
}

/* ---- running --------------------------------------------------------------------------------- */

static enum base_status run_on(struct program *p, const char *topology, const char *shape,
	struct noc_closed_result *ret, struct base_err *err)
{
	struct memory_cdat_config *machine = memory_cdat_config_new();
	struct noc_closed_options o;
	struct noc_config network;
	char nodes[32];
	assert_non_null(machine);
	snprintf(nodes, sizeof nodes, "nodes=%u", p->source.info.nr_threads);
	assert_int_equal(memory_cdat_config_set(machine, nodes, NULL), BASE_OK);
	assert_int_equal(memory_cdat_config_set(machine, "processors=1", NULL), BASE_OK);
	assert_int_equal(memory_cdat_config_set(machine, "code_bytes=0", NULL), BASE_OK);
	assert_int_equal(memory_cdat_config_set(machine, "allocation=rr1", NULL), BASE_OK);
	noc_config_init(&network);
	assert_int_equal(noc_config_set(&network, topology, NULL), BASE_OK);
	assert_int_equal(noc_config_set(&network, shape, NULL), BASE_OK);
	noc_closed_options_init(&o);
	o.machine = machine;
	o.network = &network;
	for (unsigned t = 0; t < THREADS_MAX; t++)
		p->thread[t].given = false;
	enum base_status s = noc_closed_run(&p->source, &o, ret, err);
	memory_cdat_config_free(machine);
	return s;
}

/* One load of each of two threads, whose pages are each other's: by hand. Request: 1 cycle after
 * the access, 1 on its way; memory 50; 1 on its way; the thread goes on 1 later. */
static void test_one_miss(void **state)
{
	struct program *p = new_program(2);
	struct noc_closed_result r;
	(void)state;
	op(p, 0, MEMORY_LOAD, 0x1000, 10);
	op(p, 0, MEMORY_LOAD, 0x2000, 10);
	assert_int_equal(run_on(p, "topology=ideal", "nodes=2", &r, NULL), BASE_OK);
	/* pages go round robin: one of the two is at home, and sends nothing */
	uint64_t own = 1 + 50 + 1, other = 1 + 1 + 50 + 1 + 1;
	const struct noc_pdg *g = r.trace;
	uint32_t found[2], nr = 0;
	assert_true(r.execution_cycles >= 10 + 10 + own + other);
	for (uint32_t i = 0; i < g->nr_packets; i++)
		if (g->address[i] == 0x1000 || g->address[i] == 0x2000) {
			assert_true(nr < 2);
			found[nr++] = i;
		}
	assert_int_equal(nr, 2);
	assert_int_equal(g->receive_cycle[found[1]] - g->transmit_cycle[found[0]], 1 + 50 + 1);
	assert_int_equal(g->type[found[0]], MEMORY_CDAT_read_shar_or_priv);
	assert_int_equal(g->size_flits[found[0]], 1);
	assert_int_equal(g->size_flits[found[1]], 5);
	assert_int_equal(g->delay_cycles[found[1]], 50);
	assert_int_equal(g->dependency[g->first[found[1]]], found[0]);
	noc_closed_result_fini(&r);
	free(p);
}

/* Threads that all write a few lines, with a lock and barriers. */
static struct program *contended(void)
{
	struct program *p = new_program(8);
	for (uint32_t t = 0; t < 8; t++)
		for (unsigned round = 0; round < 6; round++) {
			for (unsigned k = 0; k < 20; k++)
				op(p, t, (k + t) % 3 ? MEMORY_LOAD : MEMORY_STORE,
					0x10000 + 64 * ((k * 7 + round + t) % 40), 1 + (k + t) % 9);
			call(p, t, MEMORY_CALL_lock, 0x50000, 0);
			op(p, t, MEMORY_STORE, 0x51000, 5);
			call(p, t, MEMORY_CALL_unlock, 0x50000, 0);
			call(p, t, MEMORY_CALL_barrier, 0x60000, 8);
		}
	return p;
}

/* What the trace says of its own dependencies is true, on every network; messages are conserved:
 * all are received, and a slower network takes longer. */
static void test_laws(void **state)
{
	static const char *const network[][2] = {{"topology=ideal", "nodes=8"},
		{"topology=mesh", "dims=4x2"}, {"topology=torus", "dims=8"}};
	struct program *p = contended();
	uint64_t cycles[3];
	(void)state;
	for (unsigned n = 0; n < 3; n++) {
		struct noc_closed_result r;
		assert_int_equal(run_on(p, network[n][0], network[n][1], &r, NULL), BASE_OK);
		const struct noc_pdg *g = r.trace;
		assert_int_equal(noc_pdg_check(g, NULL), BASE_OK);
		assert_true(g->nr_packets > 500 && r.misses > 300 && r.accesses > 960);
		for (uint32_t i = 0; i < g->nr_packets; i++) {
			assert_true(g->receive_cycle[i] > g->transmit_cycle[i]);
			for (uint64_t d = g->first[i]; d < g->first[i + 1]; d++)
				assert_true(
					g->receive_cycle[g->dependency[d]] + g->delay_cycles[i] <=
					g->transmit_cycle[i]);
		}
		cycles[n] = r.execution_cycles;
		noc_closed_result_fini(&r);
	}
	assert_true(cycles[0] < cycles[1] && cycles[1] < cycles[2]);
	free(p);
}

/* The graph that is known from inside, replayed where it was made, gives its own times. */
static void test_known_graph_on_its_network(void **state)
{
	struct program *p = contended();
	struct noc_closed_result r;
	struct noc_replay_result replay;
	struct noc_config c;
	(void)state;
	assert_int_equal(run_on(p, "topology=mesh", "dims=4x2", &r, NULL), BASE_OK);
	noc_config_init(&c);
	assert_int_equal(noc_config_set(&c, "topology=mesh", NULL), BASE_OK);
	assert_int_equal(noc_config_set(&c, "dims=4x2", NULL), BASE_OK);
	assert_int_equal(
		noc_replay(r.trace, &c, NOC_REPLAY_GRAPH, NULL, NULL, &replay, NULL), BASE_OK);
	assert_memory_equal(replay.transmit_cycle, r.trace->transmit_cycle,
		r.trace->nr_packets * sizeof *replay.transmit_cycle);
	assert_memory_equal(replay.receive_cycle, r.trace->receive_cycle,
		r.trace->nr_packets * sizeof *replay.receive_cycle);
	noc_replay_result_fini(&replay);
	noc_closed_result_fini(&r);
	free(p);
}

/* A barrier for more threads than come. */
static void test_threads_that_wait_for_ever(void **state)
{
	struct program *p = new_program(2);
	struct noc_closed_result r;
	struct base_err err = {0};
	(void)state;
	call(p, 0, MEMORY_CALL_barrier, 0x1000, 3);
	call(p, 1, MEMORY_CALL_barrier, 0x1000, 3);
	assert_int_equal(run_on(p, "topology=ideal", "nodes=2", &r, &err), BASE_ERR_USAGE);
	assert_non_null(strstr(err.cause[0], "wait for each other"));
	free(p);
}

static void test_allocation_failures(void **state)
{
	struct program *p = new_program(2);
	enum base_status s = BASE_ERR_NOMEM;
	(void)state;
	for (uint32_t t = 0; t < 2; t++)
		op(p, t, MEMORY_STORE, 0x1000, 3);
	for (uint64_t nth = 30; s != BASE_OK;
		nth++) { /* (the first ones are the configuration's) */
		struct noc_closed_result r = {0};
		s = WITHOUT_NTH(nth, run_on(p, "topology=ideal", "nodes=2", &r, NULL));
		if (s == BASE_OK)
			noc_closed_result_fini(&r);
	}
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_miss),
		cmocka_unit_test(test_laws),
		cmocka_unit_test(test_known_graph_on_its_network),
		cmocka_unit_test(test_threads_that_wait_for_ever),
		cmocka_unit_test(test_allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
