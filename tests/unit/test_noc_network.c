/* SPDX-License-Identifier: Apache-2.0 */
/* test_noc_network.c - laws of the network simulator, and numbers of another one. */
#include "noc/network/random.h"
#include "noc/network/sim.h"

#include <math.h>
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct noc_config make(const char *settings)
{
	struct noc_config c;
	struct base_err err = {0};
	char copy[1024], *at = copy, *one;
	noc_config_init(&c);
	snprintf(copy, sizeof copy, "%s", settings);
	while ((one = strsep(&at, " ")))
		if (*one && noc_config_set(&c, one, &err) != BASE_OK)
			fail_msg("%s: %s", one, err.cause[0]);
	return c;
}

static struct noc_network *open_network(const struct noc_config *c)
{
	struct noc_network *n = NULL;
	struct base_err err = {0};
	if (noc_network_open(&n, c, &err) != BASE_OK)
		fail_msg("%s", err.cause[0]);
	return n;
}

/* ---- a packet alone takes what the formula says ---------------------------------------------- */

static void zero_load(const char *settings)
{
	struct noc_config c = make(settings);
	struct noc_network *n = open_network(&c);
	struct base_err err = {0};
	uint32_t nodes = noc_network_nodes(n);
	for (uint32_t a = 0; a < nodes; a++) {
		for (uint32_t b = 0; b < nodes; b++) {
			const struct noc_arrival *arrival;
			size_t nr = 0;
			uint64_t expected;
			struct noc_packet p = {.id = a,
				.source = a,
				.destination = b,
				.size_flits = 1 + (a + b) % 5};
			assert_int_equal(noc_network_send(n, &p, &err), BASE_OK);
			assert_int_equal(
				noc_network_run(n, UINT64_MAX, &arrival, &nr, &err), BASE_OK);
			assert_int_equal(nr, 1);
			assert_int_equal(noc_network_zero_load_cycles(
						 n, a, b, p.size_flits, &expected, &err),
				BASE_OK);
			if (arrival->arrival_cycle - arrival->created_cycle != expected)
				fail_msg("%s: %u to %u, %u flits: %llu cycles, not %llu", settings,
					a, b, p.size_flits,
					(unsigned long long)(arrival->arrival_cycle -
							     arrival->created_cycle),
					(unsigned long long)expected);
			assert_int_equal(arrival->hops, noc_network_distance(n, a, b));
			assert_int_equal(arrival->id, a);
			/* All credits come home. */
			assert_int_equal(noc_network_run(n, arrival->arrival_cycle + 20000,
						 &arrival, &nr, &err),
				BASE_OK);
			assert_int_equal(nr, 0);
			assert_int_equal(noc_network_check(n, &err), BASE_OK);
		}
	}
	noc_network_close(n);
}

static void test_zero_load(void **state)
{
	(void)state;
	zero_load("topology=mesh k=4");
	zero_load("topology=mesh dims=5x3x2 routing_delay=3 vc_alloc_delay=2 crossbar_delay=2");
	zero_load("topology=mesh k=3 sw_alloc_delay=3");
	zero_load("topology=torus k=5 routing_delay=0");
	zero_load("topology=torus dims=4x3x2 speculative=1 link_cycles=7 credit_delay=3");
	zero_load("topology=torus k=9 n=1 routing=adaptive vcs=3");
	zero_load("topology=fattree k=3 n=3");
	zero_load("topology=fattree k=2 n=4 link_flit_cycles=3");
	zero_load("topology=cmesh k=3 concentration=2 routing=o1turn");
	zero_load("topology=mesh k=4 link_flits=2 node_flits=2 buffer_flits=64");
	zero_load("topology=mesh k=3 link_flits=4 buffer_flits=64 speculative=1 routing_delay=0");
	zero_load("topology=torus k=4 link_flits=3 node_flits=16 buffer_flits=200 speculative=1");
	zero_load("topology=fattree k=2 n=3 node_flits=3 buffer_flits=64 routing_delay=0");
	zero_load("topology=mesh k=3 link_flit_cycles=2 node_flits=4 buffer_flits=64");
	zero_load("topology=flatfly k=4 concentration=2 vcs=4");
	zero_load("topology=flatfly dims=4x3 concentration=3 routing=adaptive vcs=8");
}

/* ---- links wider than a flit ----------------------------------------------------------------- */

/* Serialisation: with w lanes everywhere a packet of F flits takes ceil(F / w) - 1 cycles more than
 * one of one flit. */
static void test_serialisation(void **state)
{
	(void)state;
	for (uint32_t w = 1; w <= 16; w *= 2) {
		char text[128];
		snprintf(text, sizeof text, "topology=mesh k=4 link_flits=%u node_flits=%u", w, w);
		struct noc_config c = make(text);
		struct noc_network *n = open_network(&c);
		uint64_t one, all;
		assert_int_equal(noc_network_zero_load_cycles(n, 0, 15, 1, &one, NULL), BASE_OK);
		for (uint32_t f = 1; f <= 70; f++) {
			assert_int_equal(
				noc_network_zero_load_cycles(n, 0, 15, f, &all, NULL), BASE_OK);
			assert_int_equal(all, one + (f + w - 1) / w - 1);
		}
		noc_network_close(n);
	}
}

/* ---- the ideal network ----------------------------------------------------------------------- */

static void test_ideal(void **state)
{
	(void)state;
	struct noc_config c = make("topology=ideal nodes=16 ideal_cycles=3");
	struct noc_network *n = open_network(&c);
	struct base_err err = {0};
	const struct noc_arrival *arrival;
	size_t nr;
	assert_int_equal(noc_network_set_latency(n, 2, UINT32_MAX, 50000, &err), BASE_OK);
	assert_int_equal(noc_network_send(n,
				 &(struct noc_packet){.id = 7,
					 .source = 1,
					 .destination = 4,
					 .size_flits = 9,
					 .extra_cycles = 10},
				 &err),
		BASE_OK);
	assert_int_equal(noc_network_send(n,
				 &(struct noc_packet){
					 .id = 8, .source = 2, .destination = 2, .size_flits = 1},
				 &err),
		BASE_OK);
	uint32_t to[] = {5, 6, 7};
	assert_int_equal(
		noc_network_send_multicast(n,
			&(struct noc_packet){.id = 9, .source = 3, .size_flits = 1}, to, 3, &err),
		BASE_OK);
	assert_int_equal(noc_network_run(n, 2, &arrival, &nr, &err), BASE_OK);
	assert_int_equal(nr, 0);
	assert_int_equal(noc_network_now_cycle(n), 2);
	assert_int_equal(noc_network_run(n, UINT64_MAX, &arrival, &nr, &err), BASE_OK);
	assert_int_equal(nr, 3);
	assert_int_equal(arrival[2].destination, 7);
	assert_int_equal(noc_network_now_cycle(n), 3);
	assert_int_equal(noc_network_run(n, UINT64_MAX, &arrival, &nr, &err), BASE_OK);
	assert_int_equal(nr, 1);
	assert_int_equal(arrival->arrival_cycle, 13);
	assert_int_equal(noc_network_run(n, UINT64_MAX, &arrival, &nr, &err), BASE_OK);
	assert_int_equal(arrival->arrival_cycle, 50000);
	assert_int_equal(noc_network_pending(n), 0);
	assert_int_equal(
		noc_network_send(n,
			&(struct noc_packet){.source = 2, .size_flits = 1, .extra_cycles = 20000},
			&err),
		BASE_ERR_USAGE);
	assert_int_equal(noc_network_set_latency(n, 0, 0, 0, &err), BASE_ERR_USAGE);
	noc_network_close(n);
}

/* ---- random configurations: everything arrives, and the books are straight ------------------- */

enum { CONFIGS = 300, PACKETS_A_NODE = 12, FULL = 10000 };

static const char *pick(struct noc_random *r, const char *const *list, size_t nr)
{
	return list[noc_random_below(r, (uint32_t)nr)];
}
#define PICK(r, ...)                                                                               \
	pick(r, (const char *const[]){__VA_ARGS__},                                                \
		sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void random_settings(struct noc_random *r, char *text, size_t size)
{
	const char *shape = PICK(r, "topology=mesh k=4", "topology=mesh dims=3x2x3",
		"topology=torus k=4", "topology=torus k=9 n=1", "topology=torus dims=3x5",
		"topology=torus dims=2x3x4", "topology=cmesh k=3 concentration=3",
		"topology=flatfly k=3 concentration=2", "topology=fattree k=3 n=2",
		"topology=fattree k=2 n=4");
	bool tree = strstr(shape, "fattree"), torus = strstr(shape, "torus");
	const char *routing = tree    ? "auto"
			      : torus ? PICK(r, "dor", "adaptive", "valiant")
				      : PICK(r, "dor", "adaptive", "valiant", "o1turn");
	bool speculative = noc_random_below(r, 3) == 0;
	uint32_t classes = 1 + noc_random_below(r, 2);
	/* links of another width than a flit: narrower, or wider where allocation takes a cycle */
	bool wide = noc_random_below(r, 3) == 0, fast = speculative || wide;
	snprintf(text, size,
		"%s routing=%s classes=%u vcs=%u buffer_flits=%u vc_allocator=%s sw_allocator=%s "
		"iterations=%u speculative=%u routing_delay=%u "
		"vc_alloc_delay=%u sw_alloc_delay=%u crossbar_delay=%u credit_delay=%u "
		"link_cycles=%u link_flit_cycles=%u link_flits=%u node_flits=%u seed=%u",
		shape, routing, classes, (4 + noc_random_below(r, 4)) * classes,
		1 + noc_random_below(r, 9), PICK(r, "islip", "separable", "age"),
		PICK(r, "islip", "separable", "age"), 1 + noc_random_below(r, 3), speculative,
		noc_random_below(r, fast ? 2 : 4), fast ? 1 : 1 + noc_random_below(r, 3),
		fast ? 1 : 1 + noc_random_below(r, 3), noc_random_below(r, 3),
		noc_random_below(r, 4), noc_random_below(r, 6),
		wide ? 1 : 1 + noc_random_below(r, 3), wide ? 1 + noc_random_below(r, 4) : 1,
		wide ? 1 + noc_random_below(r, 3) : 1, noc_random_below(r, 1000000));
}

/* All nodes send at once as much as they can: queues, credits and virtual channels are short. */
static void flood(const char *settings, struct noc_random *r)
{
	struct noc_config c = make(settings);
	struct noc_network *n = open_network(&c);
	struct base_err err = {0};
	uint32_t nodes = noc_network_nodes(n);
	uint64_t sent_flits = 0, got_flits = 0, nr_got = 0,
		 to_go = (uint64_t)nodes * PACKETS_A_NODE;
	for (uint64_t i = 0; i < to_go; i++) {
		struct noc_packet p = {.id = i,
			.source = (uint32_t)(i % nodes),
			.destination = noc_random_below(r, nodes),
			.size_flits = 1 + noc_random_below(r, 12),
			.class = noc_random_below(r, (uint32_t)c.classes)};
		sent_flits += p.size_flits;
		assert_int_equal(noc_network_send(n, &p, &err), BASE_OK);
	}
	for (uint64_t look = 0; nr_got < to_go; look++) {
		const struct noc_arrival *arrival;
		size_t nr;
		if (noc_network_run(n, UINT64_MAX, &arrival, &nr, &err) != BASE_OK)
			fail_msg("%s: %s", settings, err.cause[0]);
		nr_got += nr;
		for (size_t i = 0; i < nr; i++)
			got_flits += arrival[i].size_flits;
		if (look % 64 == 0 && noc_network_check(n, &err) != BASE_OK)
			fail_msg("%s: %s", settings, err.cause[0]);
	}
	assert_int_equal(got_flits, sent_flits);
	assert_int_equal(noc_network_pending(n), 0);
	struct noc_counts counts;
	noc_network_counts(n, &counts);
	assert_int_equal(counts.injected, sent_flits);
	assert_int_equal(counts.ejected, sent_flits);
	assert_int_equal(counts.crossbar, counts.buffer_writes);
	noc_network_close(n);
}

static void test_random_configurations(void **state)
{
	(void)state;
	struct noc_random r;
	char text[512];
	const char *many = getenv("LONGPOLE_NOC_CONFIGS"); /* bench/noc asks for 10,000 */
	unsigned nr = many ? FULL : CONFIGS;
	noc_random_init(&r, 20260);
	for (unsigned i = 0; i < nr; i++) {
		random_settings(&r, text, sizeof text);
		flood(text, &r);
	}
	if (many)
		print_message("%u configurations\n", nr);
}

/* Networks that are more than the nearest caches hold are visited in another way. */
static void test_large(void **state)
{
	(void)state;
	struct noc_random r;
	noc_random_init(&r, 7);
	flood("topology=mesh dims=24x24", &r);
	flood("topology=torus dims=12x12 vcs=16 routing=adaptive", &r);
}

/* ---- BookSim 2's figures --------------------------------------------------------------------- */

/* Mean of three runs of BookSim 2 (commit 28f4329), 15,000 cycles of warm-up and at least as many
 * measured. */
static const struct {
	const char *settings;
	double latency_cycles, bound;
} booksim[] = {
	{"topology=mesh load=0.05", 33.596, 0.02},
	{"topology=mesh load=0.2", 37.043, 0.02},
	{"topology=mesh load=0.2 packet_flits=4", 40.316, 0.02},
	{"topology=mesh load=0.2 packet_flits=4 traffic=tornado", 58.00, 0.02},
	{"topology=torus load=0.2", 36.143, 0.02},
	{"topology=torus load=0.05 traffic=transpose", 32.32, 0.02},
	{"topology=torus load=0.2 traffic=bitcomp packet_flits=4", 41.61, 0.02},
	{"topology=fattree k=4 n=3 load=0.35", 27.914, 0.02},
	{"topology=fattree k=4 n=3 load=0.35 traffic=transpose packet_flits=4", 30.57, 0.02},
	{"topology=torus k=16 n=1 load=0.05 packet_flits=4", 34.70, 0.02},
	{"topology=mesh load=0.35 routing_delay=0 credit_delay=2", 32.72, 0.05},
	{"topology=torus load=0.35 packet_flits=4 routing_delay=0 credit_delay=2 speculative=1",
		34.86, 0.05},
	{"topology=fattree k=4 n=3 load=0.2 routing_delay=0 credit_delay=2 speculative=1", 15.68,
		0.05},
};

static void test_booksim(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(booksim); i++) {
		struct noc_config c = make(booksim[i].settings);
		struct noc_result r;
		struct base_err err = {0};
		c.warmup_cycles = c.measure_cycles = 8000;
		if (noc_simulate(&c, &r, NULL, NULL, &err) != BASE_OK)
			fail_msg("%s: %s", booksim[i].settings, err.cause[0]);
		double off = r.latency_cycles.mean / booksim[i].latency_cycles - 1;
		if (r.saturated || fabs(off) > booksim[i].bound)
			fail_msg("%s: %.3f cycles, BookSim %.3f", booksim[i].settings,
				r.latency_cycles.mean, booksim[i].latency_cycles);
		assert_true(r.latency_cycles.half > 0);
		assert_true(fabs(r.accepted_flits - c.load) < 0.05 * c.load);
		noc_result_fini(&r);
	}
	/* Beyond saturation: what is accepted of one flit a node and cycle. */
	struct noc_config c = make("topology=mesh load=1 warmup_cycles=5000 measure_cycles=5000");
	struct noc_result r;
	struct base_err err = {0};
	assert_int_equal(noc_simulate(&c, &r, NULL, NULL, &err), BASE_OK);
	assert_true(r.saturated);
	assert_true(fabs(r.accepted_flits / 0.29048 - 1) < 0.03);
	noc_result_fini(&r);
}

/* ---- traffic --------------------------------------------------------------------------------- */

/* Requests and replies, long and short packets, bursts: the load is what was asked for. */
static void test_traffic_load(void **state)
{
	(void)state;
	static const char *const settings[] = {
		"load=0.1 injection=bursty burst_on=0.02 burst_off=0.05 packet_flits=2",
		"load=0.1 packet_flits=1 long_flits=5 long_share=0.4",
		"load=0.05 traffic=hotspot hotspots=9,27 hotspot_share=0.1",
		"load=0.1 traffic=ned ned_hops=2",
		"load=0.02 receivers=3 packet_flits=1",
		"load=0.05 reply=1 reply_flits=4 vcs=4 reply_cycles=20",
		"topology=fattree k=4 n=3 load=0.1 traffic=neighbour",
	};
	static const double factor[] = {1, 1, 1, 1, 3, 5, 1};
	for (size_t i = 0; i < BASE_COUNT(settings); i++) {
		struct noc_config c = make(settings[i]);
		struct noc_result r;
		struct base_err err = {0};
		c.measure_cycles = 20000;
		c.warmup_cycles = 2000;
		if (noc_simulate(&c, &r, NULL, NULL, &err) != BASE_OK)
			fail_msg("%s: %s", settings[i], err.cause[0]);
		if (r.saturated || fabs(r.accepted_flits / (c.load * factor[i]) - 1) > 0.04)
			fail_msg("%s: %.4f accepted", settings[i], r.accepted_flits);
		noc_result_fini(&r);
	}
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Two routers with eight nodes each: what goes across takes its number of flits / width at least,
 * and little more; the busiest link says so, too. */
static void across(const char *cycles_a_flit, double flits_a_cycle)
{
	enum { NODES = 8, PACKETS = 100, FLITS = 4 };
	char path[64], text[256];
	snprintf(text, sizeof text,
		"router 0 router 1 1 %s node 0 node 1 node 2 node 3 node 4 node 5 node 6 node 7\n"
		"router 1 node 8 node 9 node 10 node 11 node 12 node 13 node 14 node 15\n",
		cycles_a_flit);
	temporary_file(path, text, strlen(text));
	snprintf(text, sizeof text, "topology=graph vcs=16 iterations=4 buffer_flits=32 graph=%s",
		path);
	struct noc_config c = make(text);
	struct noc_network *n = open_network(&c);
	struct base_err err = {0};
	uint64_t last = 0;
	for (uint64_t i = 0; i < NODES * PACKETS; i++)
		assert_int_equal(noc_network_send(n,
					 &(struct noc_packet){.source = (uint32_t)(i % NODES),
						 .destination = NODES + (uint32_t)(i % NODES),
						 .size_flits = FLITS},
					 &err),
			BASE_OK);
	for (uint64_t got = 0; got < NODES * PACKETS;) {
		const struct noc_arrival *arrival;
		size_t nr;
		assert_int_equal(noc_network_run(n, UINT64_MAX, &arrival, &nr, &err), BASE_OK);
		last = arrival->arrival_cycle;
		got += nr;
		assert_int_equal(noc_network_check(n, &err), BASE_OK);
	}
	double least = NODES * PACKETS * FLITS / flits_a_cycle;
	if ((double)last < least || (double)last > 1.25 * least + 30)
		fail_msg("%s cycles a flit: %llu cycles, at least %.0f", cycles_a_flit,
			(unsigned long long)last, least);
	struct noc_link link[64];
	assert_true(noc_network_links(n) <= 64);
	noc_network_each_link(n, link);
	for (size_t i = 0; i < noc_network_links(n); i++) {
		double busy = (double)link[i].flits * link[i].flit_cycles / link[i].flits_cycle;
		assert_true(busy <= (double)last);
		if (link[i].to_router == 1)
			assert_true(busy == least);
	}
	noc_network_close(n);
	unlink(path);
}

static void test_width(void **state)
{
	(void)state;
	across("2", 0.5);
	across("1", 1);
	across("1/2", 2);
	across("1/4", 4);
	/* nobody is faster than its own link: eight nodes of one flit a cycle */
	across("1/8", 8);
}

static void test_graph(void **state)
{
	(void)state;
	char path[64], text[256];
	struct noc_random r;
	noc_random_init(&r, 5);
	/* A ring of five, one link longer in one direction: shortest ways would close the ring, so
	 * they go up and down. */
	static const char ring[] =
		"router 0 node 0 router 1\nrouter 1 node 1 router 2 3 2 # narrow\nrouter "
		"2 node 2 node 5 router 3\n"
		"// comment\nrouter 3 node 3 router 4\nrouter 4 node 4 router 0\nrouter "
		"2 router 1 9\n";
	temporary_file(path, ring, strlen(ring));
	snprintf(text, sizeof text, "topology=graph graph=%s", path);
	zero_load(text);
	flood(text, &r);
	unlink(path);
	static const char *const wrong[] = {"router", "router 0 node 0 node 0", "router 0 router 0",
		"router 0 node 1", "router 0 node 0\nrouter 1 node 1", "", "router 0 node 0 x",
		"router 0 node 0 router 1 5000\nrouter 1 node 1",
		"router 0 node 0 router 1 1 2/2\nrouter 1 node 1",
		"router 0 node 0 router 1 1 1/17\nrouter 1 node 1"};
	for (size_t i = 0; i < BASE_COUNT(wrong); i++) {
		temporary_file(path, wrong[i], strlen(wrong[i]));
		snprintf(text, sizeof text, "topology=graph graph=%s", path);
		struct noc_config c = make(text);
		struct noc_network *n;
		struct base_err err = {0};
		if (noc_network_open(&n, &c, &err) != BASE_ERR_USAGE)
			fail_msg("accepted: %s", wrong[i]);
		unlink(path);
	}
}

/* ---- refusals and memory --------------------------------------------------------------------- */

static void test_refusals(void **state)
{
	(void)state;
	static const char *const wrong[] = {"topology=torus vcs=1", "routing=nca",
		"topology=torus routing=o1turn vcs=4", "speculative=1 vc_alloc_delay=2",
		"classes=4 vcs=2", "dims=8x", "dims=0x4", "topology=fattree k=1", "k=4096 n=2",
		"topology=flatfly k=40 n=2", "routing=adaptive vcs=1", "topology=graph"};
	for (size_t i = 0; i < BASE_COUNT(wrong); i++) {
		struct noc_config c = make(wrong[i]);
		struct noc_network *n;
		struct base_err err = {0};
		enum base_status s = noc_network_open(&n, &c, &err);
		if (s != BASE_ERR_USAGE && s != BASE_ERR_LIMIT)
			fail_msg("accepted: %s", wrong[i]);
	}
	static const char *const settings[] = {
		"k=0", "k", "load=x", "load=-1", "topology=cube", "nothing=1", "seed=-1"};
	for (size_t i = 0; i < BASE_COUNT(settings); i++) {
		struct noc_config c;
		struct base_err err = {0};
		noc_config_init(&c);
		assert_int_equal(noc_config_set(&c, settings[i], &err), BASE_ERR_USAGE);
	}
	struct noc_config c = make("k=3 traffic=transpose");
	struct noc_result r;
	struct base_err err = {0};
	assert_int_equal(noc_simulate(&c, &r, NULL, NULL, &err), BASE_ERR_USAGE);
	noc_result_fini(&r);
}

static void test_memory(void **state)
{
	(void)state;
	struct noc_config c = make("k=3 load=0.3 reply=1 warmup_cycles=50 measure_cycles=200");
	for (uint64_t nth = 1;; nth++) {
		struct noc_result r;
		struct base_err err = {0};
		enum base_status s = WITHOUT_NTH(nth, noc_simulate(&c, &r, NULL, NULL, &err));
		noc_result_fini(&r);
		if (s == BASE_OK)
			break;
		assert_true(nth < 1000);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zero_load),
		cmocka_unit_test(test_serialisation),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_ideal),
		cmocka_unit_test(test_random_configurations),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_booksim),
		cmocka_unit_test(test_traffic_load),
		cmocka_unit_test(test_graph),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_memory),
	};
	return cmocka_run_group_tests_name("noc_network", tests, NULL, NULL);
}
