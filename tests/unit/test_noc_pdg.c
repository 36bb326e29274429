/* SPDX-License-Identifier: Apache-2.0 */
/* test_noc_pdg.c - graphs in files of all formats, and through networks. */
#include "noc/compare.h"
#include "noc/pdg/csv.h"
#include "noc/pdg/gen.h"
#include "noc/pdg/netrace.h"
#include "noc/replay.h"
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "trace_file.h"

static struct noc_pdg *reference(size_t pattern, double packets, double nodes)
{
	struct noc_gen_config c;
	struct noc_pdg *g;
	noc_gen_config_init(&c);
	c.pattern = (unsigned)pattern;
	c.packets = packets;
	c.nodes = nodes;
	c.long_share = 0.5;
	assert_int_equal(noc_gen(&c, &g, NULL), BASE_OK);
	return g;
}

enum { TIMES = 1, GATES = 2, ADDRESSES = 4, TYPES = 8 };

static void assert_same(const struct noc_pdg *a, const struct noc_pdg *b, unsigned what)
{
	size_t nr = a->nr_packets;
	assert_int_equal(nr, b->nr_packets);
	assert_memory_equal(a->source, b->source, nr * sizeof *a->source);
	assert_memory_equal(a->destination, b->destination, nr * sizeof *a->destination);
	assert_memory_equal(a->size_flits, b->size_flits, nr * sizeof *a->size_flits);
	assert_memory_equal(a->transmit_cycle, b->transmit_cycle, nr * sizeof *a->transmit_cycle);
	if (what & TIMES)
		assert_memory_equal(
			a->receive_cycle, b->receive_cycle, nr * sizeof *a->receive_cycle);
	if (what & TYPES)
		assert_memory_equal(a->type, b->type, nr);
	if (what & ADDRESSES)
		assert_memory_equal(a->address, b->address, nr * sizeof *a->address);
	if (!(what & GATES))
		return;
	assert_memory_equal(a->first, b->first, (nr + 1) * sizeof *a->first);
	assert_memory_equal(
		a->dependency, b->dependency, noc_pdg_nr_dependencies(a) * sizeof *a->dependency);
	assert_memory_equal(a->certainty, b->certainty, noc_pdg_nr_dependencies(a));
	assert_memory_equal(a->delay_cycles, b->delay_cycles, nr * sizeof *a->delay_cycles);
	assert_memory_equal(a->inputs, b->inputs, nr);
}

static void test_trace(void **state)
{
	struct noc_pdg *g = reference(9, 3000, 40), *back;
	char *path = temporary_path();
	(void)state;
	g->has_addresses = true;
	g->ordered[3] = 0;
	g->run = 7;
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		g->address[i] = (uint64_t)i << 30;
		g->units[i] = (uint8_t)(i % 256);
		if (g->first[i + 1] > g->first[i])
			g->certainty[g->first[i]] = (uint8_t)(i % NOC_CERTAINTIES);
	}
	/* times of one cycle on two nodes, and numbers that are not in the order of times */
	g->transmit_cycle[100] += 1000;
	g->receive_cycle[100] += 1001;
	assert_int_equal(noc_pdg_write(g, path, NULL), BASE_OK);
	assert_int_equal(noc_pdg_read(path, &back, NULL), BASE_OK);
	assert_same(g, back, TIMES | GATES | ADDRESSES | TYPES);
	assert_memory_equal(g->ordered, back->ordered, g->nr_nodes);
	assert_memory_equal(g->units, back->units, g->nr_packets);
	assert_string_equal(g->origin, back->origin);
	assert_int_equal(back->run, 7);
	noc_pdg_free(back);
	noc_pdg_free(g);
	unlink(path);
	free(path);
}

static void test_netrace(void **state)
{
	struct noc_pdg *g = reference(8, 3000, 40), *back;
	struct noc_netrace_options o = {.width_bits = 128, .latency_cycles = 1, .delays = true};
	struct noc_netrace_losses losses;
	struct noc_netrace_notes notes;
	struct noc_input *in;
	char *path = temporary_path();
	(void)state;
	assert_int_equal(noc_netrace_write_file(g, path, &losses, NULL), BASE_OK);
	assert_true(losses.delays > 1000);
	assert_int_equal(losses.sizes + losses.addresses + losses.dependents, 0);
	assert_int_equal(noc_input_open(path, &in, NULL), BASE_OK);
	assert_int_equal(noc_netrace_read(in, &o, &back, &notes, NULL), BASE_OK);
	noc_input_close(in);
	assert_int_equal(notes.packets, 3000);
	assert_int_equal(notes.promised_packets, 3000);
	assert_int_equal(notes.missing + notes.elsewhere + notes.backwards + notes.truncated, 0);
	assert_same(g, back, TIMES);
	assert_memory_equal(g->first, back->first, 3001 * sizeof *g->first);
	assert_memory_equal(g->dependency, back->dependency,
		noc_pdg_nr_dependencies(g) * sizeof *g->dependency);
	/* with the latency of the network that it comes from, delays can be told again, unless the
	 * transmit had to let its predecessor go first */
	for (uint32_t i = 0, wrong = 0; i < 3000; i++) {
		wrong += g->first[i + 1] > g->first[i] &&
			 g->delay_cycles[i] != back->delay_cycles[i];
		assert_true(wrong < 300);
	}
	noc_pdg_free(back);
	noc_pdg_free(g);
	unlink(path);
	free(path);
}

/* Offsets of the layout, by hand: two packets, the second waits for the first. */
static const uint8_t two_packets[] = "UTJH\0\0\x80\x3f"
				     "name of the benchmark\0\0\0\0\0\0\0\0\0" /* 38 bytes */
				     "\x04\0"
				     "\x2c\1\0\0\0\0\0\0"
				     "\2\0\0\0\0\0\0\0" /* 4 nodes, 300 cycles */
				     "\5\0\0\0"
				     "\1\0\0\0"
				     "\0\0\0\0\0\0\0\0"
				     "note\0" /* notes, a region */
				     "\0\0\0\0\0\0\0\0"
				     "\x2c\1\0\0\0\0\0\0"
				     "\2\0\0\0\0\0\0\0"
				     "\x64\0\0\0\0\0\0\0"
				     "\7\0\0\0"
				     "\x78\x56\x34\x12"
				     "\1\0\3\2\1"
				     "\x09\0\0\0"
				     "\xc8\0\0\0\0\0\0\0"
				     "\x09\0\0\0"
				     "\x78\x56\x34\x12"
				     "\2\3\0\x20\0";

static enum base_status read_netrace(
	size_t size, struct noc_pdg **ret, struct noc_netrace_notes *notes, bool delays)
{
	struct noc_netrace_options o = {.width_bits = 128, .latency_cycles = 8, .delays = delays};
	struct noc_input *in = noc_input_of_memory(two_packets, size);
	assert_non_null(in);
	enum base_status s = noc_netrace_read(in, &o, ret, notes, NULL);
	noc_input_close(in);
	return s;
}

static void test_netrace_layout(void **state)
{
	struct noc_netrace_notes notes;
	struct noc_pdg *g;
	(void)state;
	assert_int_equal(read_netrace(sizeof two_packets - 1, &g, &notes, true), BASE_OK);
	assert_int_equal(g->nr_nodes, 4);
	assert_int_equal(g->nr_packets, 2);
	assert_int_equal(g->source[0], 0);
	assert_int_equal(g->destination[0], 3);
	assert_int_equal(g->size_flits[0], 1);
	assert_int_equal(g->size_flits[1], 5);
	assert_int_equal(g->address[1], 0x12345678);
	assert_int_equal(g->transmit_cycle[1], 200);
	assert_int_equal(noc_pdg_nr_dependencies(g), 1);
	assert_int_equal(g->dependency[0], 0);
	assert_int_equal(g->delay_cycles[1], 200 - 100 - 8);
	noc_pdg_free(g);
	assert_int_equal(read_netrace(sizeof two_packets - 1, &g, &notes, false), BASE_OK);
	assert_int_equal(g->inputs[1], NOC_PDG_NOT_BEFORE);
	noc_pdg_free(g);
	/* cut: within the second packet, and after the first */
	for (size_t cut = 1; cut <= 21; cut += 20) {
		assert_int_equal(
			read_netrace(sizeof two_packets - 1 - cut, &g, &notes, true), BASE_OK);
		assert_int_equal(g->nr_packets, 1);
		assert_true(notes.truncated);
		assert_int_equal(notes.missing, 1);
		noc_pdg_free(g);
	}
	assert_int_equal(read_netrace(60, &g, &notes, true), BASE_ERR_FOREIGN);
}

static void test_csv(void **state)
{
	struct noc_pdg *g = reference(5, 3000, 40), *back;
	struct noc_booksim_sizes sizes;
	struct noc_input *in;
	char *path = temporary_path();
	(void)state;
	assert_int_equal(noc_csv_write(g, path, NULL), BASE_OK);
	assert_int_equal(noc_input_open(path, &in, NULL), BASE_OK);
	assert_int_equal(noc_csv_read(in, false, &back, NULL), BASE_OK);
	noc_input_close(in);
	assert_same(g, back, TIMES | GATES | TYPES);
	noc_pdg_free(back);
	assert_int_equal(noc_booksim_write(g, path, &sizes, NULL), BASE_OK);
	assert_int_equal(sizes.nr, 2);
	assert_int_equal(noc_input_open(path, &in, NULL), BASE_OK);
	assert_int_equal(noc_booksim_read(in, &sizes, &back, NULL), BASE_OK);
	noc_input_close(in);
	assert_same(g, back, 0);
	noc_pdg_free(back);
	noc_pdg_free(g);
	unlink(path);
	free(path);
}

static enum base_status csv_of(const char *text, struct noc_pdg **ret, struct base_err *err)
{
	struct noc_input *in = noc_input_of_memory(text, strlen(text));
	assert_non_null(in);
	enum base_status s = noc_csv_read(in, false, ret, err);
	noc_input_close(in);
	return s;
}

static void test_csv_by_hand(void **state)
{
	static const char *const wrong[] = {"", "cycle,source\n1,2\n",
		"cycle,source,destination\n1,2\n", "cycle,source,destination\n5,0,1\n4,0,1\n",
		"cycle,source,destination\n1,2,x\n", "cycle,source,destination\n1,2,70000\n",
		"cycle,source,destination,delay,dependencies\n1,2,3,4,0\n",
		"cycle,source,destination,cycle\n", "cycle,source,destination\n1,2,3,4\n"};
	struct base_err err = {0};
	struct noc_pdg *g;
	(void)state;
	assert_int_equal(csv_of("what,destination,cycle,source,delay,dependencies\r\n"
				",1,10,0,10,\r\n"
				"x,0,20,1,9,0\r\n",
				 &g, NULL),
		BASE_OK);
	assert_int_equal(g->nr_nodes, 2);
	assert_int_equal(g->source[1], 1);
	assert_int_equal(g->receive_cycle[0], 11);
	assert_int_equal(g->delay_cycles[1], 9);
	assert_int_equal(g->dependency[0], 0);
	assert_true(g->has_graph);
	noc_pdg_free(g);
	for (size_t i = 0; i < BASE_COUNT(wrong); i++)
		assert_int_equal(csv_of(wrong[i], &g, &err), BASE_ERR_FOREIGN);
}

/* ---- networks -------------------------------------------------------------------------------- */

static void configure(struct noc_config *c, const struct noc_standard *s)
{
	noc_config_init(c);
	for (size_t i = 0; i < 3 && *s->setting[i]; i++)
		assert_int_equal(noc_config_set(c, s->setting[i], NULL), BASE_OK);
}

/* On the network that it was made for, a graph gives its own times; and so do its time stamps. */
static void test_own_network(void **state)
{
	struct noc_standard ideal = {"ideal", {"topology=ideal", "nodes=64", ""}};
	struct noc_config c;
	size_t nr;
	(void)state;
	noc_gen_patterns(&nr);
	configure(&c, &ideal);
	for (size_t p = 0; p < nr; p++) {
		struct noc_pdg *g = reference(p, 5000, 64);
		for (unsigned mode = 0; mode < 2; mode++) {
			struct noc_replay_result r;
			assert_int_equal(
				noc_replay(g, &c, (enum noc_replay_mode)mode, NULL, NULL, &r, NULL),
				BASE_OK);
			assert_memory_equal(r.transmit_cycle, g->transmit_cycle,
				5000 * sizeof *r.transmit_cycle);
			assert_memory_equal(
				r.receive_cycle, g->receive_cycle, 5000 * sizeof *r.receive_cycle);
			noc_replay_result_fini(&r);
		}
		noc_pdg_free(g);
	}
}

/* Recorded on a mesh, replayed on that mesh: the same times, as a graph and by time stamps. And
 * gates hold in every network: no transmit before its inputs and its delay. */
static void test_any_network(void **state)
{
	struct noc_standard standard[NOC_STANDARDS_MAX];
	size_t nr = noc_standards(64, standard);
	(void)state;
	assert_int_equal(nr, 5);
	for (size_t s = 0; s < nr; s++) {
		struct noc_pdg *g = reference(0, 4000, 64);
		struct noc_replay_result r, again;
		struct noc_error e;
		struct noc_config c;
		configure(&c, &standard[s]);
		assert_int_equal(
			noc_replay(g, &c, NOC_REPLAY_GRAPH, NULL, NULL, &r, NULL), BASE_OK);
		for (uint32_t i = 0; i < g->nr_packets; i++)
			for (uint64_t d = g->first[i]; d < g->first[i + 1]; d++)
				assert_true(r.transmit_cycle[i] >=
					    r.receive_cycle[g->dependency[d]] + g->delay_cycles[i]);
		memcpy(g->transmit_cycle, r.transmit_cycle, 4000 * sizeof *r.transmit_cycle);
		memcpy(g->receive_cycle, r.receive_cycle, 4000 * sizeof *r.receive_cycle);
		for (unsigned mode = 0; mode < 2; mode++) {
			assert_int_equal(noc_replay(g, &c, (enum noc_replay_mode)mode, NULL, NULL,
						 &again, NULL),
				BASE_OK);
			assert_memory_equal(r.receive_cycle, again.receive_cycle,
				4000 * sizeof *r.receive_cycle);
			assert_int_equal(noc_compare(g, &r, &again, &e, NULL), BASE_OK);
			assert_true(e.execution == 0 && e.latency == 0 &&
				    e.worst_node_latency == 0 && e.worst_slice_packets == 0);
			noc_replay_result_fini(&again);
		}
		noc_replay_result_fini(&r);
		noc_pdg_free(g);
	}
}

/* ---- multicast ------------------------------------------------------------------------------- */

static struct noc_pdg *multicasts(const char *pattern)
{
	struct noc_gen_config c;
	struct noc_pdg *g;
	noc_gen_config_init(&c);
	assert_int_equal(noc_gen_config_set(&c, pattern, NULL), BASE_OK);
	c.packets = 4000;
	c.nodes = 36;
	c.multicast = 0.4;
	assert_int_equal(noc_gen(&c, &g, NULL), BASE_OK);
	assert_int_equal(noc_pdg_check(g, NULL), BASE_OK);
	assert_int_equal(g->nr_packets, 4000);
	assert_true(noc_pdg_nr_copies(g) > 1000);
	return g;
}

/* In files: ours hold all of it; Netrace's has packets that wait for the same instead. */
static void test_multicast_files(void **state)
{
	static const char *const pattern[] = {"pattern=inval", "pattern=rand"};
	struct noc_netrace_options o = {.width_bits = 128, .latency_cycles = 1, .delays = true};
	char *path = temporary_path();
	(void)state;
	for (size_t p = 0; p < BASE_COUNT(pattern); p++) {
		struct noc_pdg *g = multicasts(pattern[p]), *back;
		struct noc_netrace_losses losses;
		struct noc_netrace_notes notes;
		struct noc_input *in;
		assert_int_equal(noc_pdg_write(g, path, NULL), BASE_OK);
		assert_int_equal(noc_pdg_read(path, &back, NULL), BASE_OK);
		assert_same(g, back, TIMES | GATES | TYPES | (g->has_addresses ? ADDRESSES : 0));
		noc_pdg_free(back);
		assert_int_equal(noc_csv_write(g, path, NULL), BASE_OK);
		assert_int_equal(noc_input_open(path, &in, NULL), BASE_OK);
		assert_int_equal(noc_csv_read(in, false, &back, NULL), BASE_OK);
		noc_input_close(in);
		assert_same(g, back, TIMES | GATES | TYPES);
		noc_pdg_free(back);
		assert_int_equal(noc_netrace_write_file(g, path, &losses, NULL), BASE_OK);
		assert_int_equal(losses.copies, noc_pdg_nr_copies(g));
		assert_int_equal(noc_input_open(path, &in, NULL), BASE_OK);
		assert_int_equal(noc_netrace_read(in, &o, &back, &notes, NULL), BASE_OK);
		noc_input_close(in);
		assert_same(g, back, 0);
		assert_int_equal(noc_pdg_nr_copies(back), 0);
		for (uint32_t i = 0, gate = 0; i < g->nr_packets; i++) {
			gate = noc_pdg_is_copy(g, i) ? gate : i;
			uint64_t nr = g->first[gate + 1] - g->first[gate];
			assert_int_equal(back->first[i + 1] - back->first[i], nr);
			/* in ascending order there */
			uint64_t sum = 0, sum_back = 0;
			for (uint64_t d = 0; d < nr; d++) {
				sum += g->dependency[g->first[gate] + d];
				sum_back += back->dependency[back->first[i] + d];
			}
			assert_int_equal(sum, sum_back);
		}
		noc_pdg_free(back);
		noc_pdg_free(g);
	}
	unlink(path);
	free(path);
}

/* Known answer: the middle of a 3x3 mesh sends to its four neighbours, which no link is shared by;
 * its interface sends one copy after the other. One of them answers 10 cycles after. */
static void test_multicast_to_neighbours(void **state)
{
	static const uint32_t neighbour[] = {1, 3, 5, 7};
	struct noc_standard mesh = {"mesh", {"topology=mesh", "dims=3x3", "vcs=4"}};
	struct noc_pdg *g = noc_pdg_new(9);
	struct noc_replay_result r;
	struct noc_network *n;
	struct noc_config c;
	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(noc_pdg_add(g,
					 &(struct noc_pdg_packet){.source = 4,
						 .destination = neighbour[i],
						 .size_flits = 1,
						 .inputs = i ? NOC_PDG_COPY : 0,
						 .transmit_cycle = 5,
						 .receive_cycle = 6,
						 .delay_cycles = i ? 0 : 5},
					 NULL),
			BASE_OK);
	assert_int_equal(noc_pdg_add(g,
				 &(struct noc_pdg_packet){.source = 5,
					 .destination = 2,
					 .size_flits = 1,
					 .transmit_cycle = 16,
					 .receive_cycle = 17,
					 .delay_cycles = 10},
				 NULL),
		BASE_OK);
	/* not on a copy that another node gets */
	assert_int_equal(noc_pdg_add_dependency(g, 1, NOC_GIVEN, NULL), BASE_OK);
	assert_int_equal(noc_pdg_check(g, NULL), BASE_ERR_CORRUPT);
	g->dependency[0] = 2;
	assert_int_equal(noc_pdg_check(g, NULL), BASE_OK);
	g->has_graph = true;
	configure(&c, &mesh);
	assert_int_equal(noc_network_open(&n, &c, NULL), BASE_OK);
	assert_int_equal(noc_replay(g, &c, NOC_REPLAY_GRAPH, NULL, NULL, &r, NULL), BASE_OK);
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t alone;
		assert_int_equal(
			noc_network_zero_load_cycles(n, 4, neighbour[i], 1, &alone, NULL), BASE_OK);
		assert_int_equal(r.transmit_cycle[i], 5);
		assert_int_equal(r.receive_cycle[i], 5 + i + alone);
	}
	assert_int_equal(r.transmit_cycle[4], r.receive_cycle[2] + 10);
	/* receivers ascend; who differs is no copy */
	g->destination[1] = 8;
	assert_int_equal(noc_pdg_check(g, NULL), BASE_ERR_CORRUPT);
	g->destination[1] = 3;
	g->size_flits[1] = 2;
	assert_int_equal(noc_pdg_check(g, NULL), BASE_ERR_CORRUPT);
	noc_network_close(n);
	noc_replay_result_fini(&r);
	noc_pdg_free(g);
}

/* In every network: no transmit before its inputs and its delay, copies are sent with it; what was
 * recorded there gives its own times. */
static void test_multicast_in_any_network(void **state)
{
	struct noc_standard standard[NOC_STANDARDS_MAX];
	size_t nr = noc_standards(64, standard);
	(void)state;
	for (size_t s = 0; s < nr; s++) {
		struct noc_pdg *g = multicasts("pattern=inval");
		struct noc_replay_result r, again;
		struct noc_config c;
		configure(&c, &standard[s]);
		assert_int_equal(
			noc_replay(g, &c, NOC_REPLAY_GRAPH, NULL, NULL, &r, NULL), BASE_OK);
		assert_int_equal(r.packets, g->nr_packets);
		for (uint32_t i = 0; i < g->nr_packets; i++) {
			assert_true(r.receive_cycle[i] > r.transmit_cycle[i]);
			if (noc_pdg_is_copy(g, i))
				assert_int_equal(r.transmit_cycle[i], r.transmit_cycle[i - 1]);
			for (uint64_t d = g->first[i]; d < g->first[i + 1]; d++)
				assert_true(r.transmit_cycle[i] >=
					    r.receive_cycle[g->dependency[d]] + g->delay_cycles[i]);
		}
		memcpy(g->transmit_cycle, r.transmit_cycle, 4000 * sizeof *r.transmit_cycle);
		assert_int_equal(
			noc_replay(g, &c, NOC_REPLAY_STRIPPED, NULL, NULL, &again, NULL), BASE_OK);
		assert_memory_equal(
			r.receive_cycle, again.receive_cycle, 4000 * sizeof *r.receive_cycle);
		noc_replay_result_fini(&again);
		noc_replay_result_fini(&r);
		noc_pdg_free(g);
	}
}

static void test_too_small_a_network(void **state)
{
	struct noc_standard small = {"mesh", {"topology=mesh", "dims=4x4", ""}};
	struct noc_pdg *g = reference(0, 100, 64);
	struct noc_replay_result r;
	struct noc_config c;
	(void)state;
	configure(&c, &small);
	assert_int_equal(noc_replay(g, &c, NOC_REPLAY_GRAPH, NULL, NULL, &r, NULL), BASE_ERR_USAGE);
	noc_pdg_free(g);
}

static enum base_status one_pass(const char *path)
{
	struct noc_standard mesh = {"mesh", {"topology=mesh", "dims=4x2", ""}};
	struct noc_pdg *g = NULL, *back = NULL, *third = NULL;
	struct noc_replay_result r = {0};
	struct noc_netrace_losses losses;
	struct noc_netrace_notes notes;
	struct noc_netrace_options o = {.width_bits = 64};
	struct noc_gen_config gen;
	struct noc_input *in = NULL;
	struct noc_config c;
	enum base_status s;
	noc_gen_config_init(&gen);
	gen.nodes = 8;
	gen.packets = 60;
	gen.pattern = 10; /* with multicasts */
	configure(&c, &mesh);
	s = noc_gen(&gen, &g, NULL);
	if (s == BASE_OK)
		s = noc_pdg_write(g, path, NULL);
	if (s == BASE_OK)
		s = noc_pdg_read(path, &back, NULL);
	if (s == BASE_OK)
		s = noc_replay(back, &c, NOC_REPLAY_GRAPH, NULL, NULL, &r, NULL);
	noc_replay_result_fini(&r);
	if (s == BASE_OK)
		s = noc_netrace_write_file(g, path, &losses, NULL);
	if (s == BASE_OK)
		s = noc_input_open(path, &in, NULL);
	if (s == BASE_OK)
		s = noc_netrace_read(in, &o, &third, &notes, NULL);
	noc_input_close(in);
	noc_pdg_free(g);
	noc_pdg_free(back);
	noc_pdg_free(third);
	return s;
}

static void test_allocation_failures(void **state)
{
	char *path = temporary_path();
	(void)state;
	SWEEP_ALLOCATIONS(1, one_pass(path));
	unlink(path);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trace),
		cmocka_unit_test(test_netrace),
		cmocka_unit_test(test_netrace_layout),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_csv_by_hand),
		cmocka_unit_test(test_own_network),
		cmocka_unit_test(test_any_network),
		cmocka_unit_test(test_multicast_files),
		cmocka_unit_test(test_multicast_to_neighbours),
		cmocka_unit_test(test_multicast_in_any_network),
		cmocka_unit_test(test_too_small_a_network),
		cmocka_unit_test(test_allocation_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
