/* SPDX-License-Identifier: Apache-2.0 */
/* test_noc_plain.c - the short cycle of usual routers decides what the long one decides: the same
 * packets through both, in random networks to which it applies. */
#include "noc/network/network_private.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { NETWORKS = 120, CYCLES = 400 };

static const char *const shapes[] = {"topology=mesh k=4", "topology=mesh dims=3x2x3",
	"topology=mesh k=4 routing=o1turn", "topology=mesh k=3 routing=valiant",
	"topology=torus k=4", "topology=torus k=9 n=1", "topology=torus dims=3x5 routing=valiant",
	"topology=cmesh k=3 concentration=3", "topology=flatfly k=3 concentration=2",
	"topology=fattree k=3 n=2", "topology=fattree k=2 n=4", "topology=mesh k=33"};

static void random_settings(struct noc_random *r, char *text, size_t size)
{
	uint32_t classes = 1 + noc_random_below(r, 2);
	const char *shape = shapes[noc_random_below(r, BASE_COUNT(shapes))];
	uint32_t least = strstr(shape, "torus")     ? strstr(shape, "valiant") ? 4 : 2
			 : strstr(shape, "routing") ? 2
						    : 1;
	snprintf(text, size,
		"%s classes=%u vcs=%u buffer_flits=%u routing_delay=%u crossbar_delay=%u "
		"credit_delay=%u link_cycles=%u seed=%u",
		shape, classes, (least + noc_random_below(r, 3)) * classes,
		1 + noc_random_below(r, 9), noc_random_below(r, 2), noc_random_below(r, 3),
		noc_random_below(r, 4), noc_random_below(r, 4), noc_random_below(r, 1000000));
}

static struct noc_network *open_network(const char *settings)
{
	struct noc_config c;
	struct noc_network *n = NULL;
	struct base_err err = {0};
	char copy[512], *at = copy, *one;
	noc_config_init(&c);
	snprintf(copy, sizeof copy, "%s", settings);
	while ((one = strsep(&at, " ")))
		if (noc_config_set(&c, one, &err) != BASE_OK)
			fail_msg("%s: %s", one, err.cause[0]);
	if (noc_network_open(&n, &c, &err) != BASE_OK)
		fail_msg("%s: %s", settings, err.cause[0]);
	return n;
}

static void send(struct noc_network *n, const struct noc_packet *p)
{
	struct base_err err = {0};
	assert_int_equal(noc_network_send(n, p, &err), BASE_OK);
}

/* Some cycles, in which both deliver the same; false: nothing was delivered. */
static bool run(struct noc_network *a, struct noc_network *b, uint64_t until, const char *settings)
{
	const struct noc_arrival *of_a, *of_b;
	size_t nr_a, nr_b;
	struct base_err err = {0};
	if (noc_network_run(a, until, &of_a, &nr_a, &err) != BASE_OK ||
		noc_network_run(b, until, &of_b, &nr_b, &err) != BASE_OK)
		fail_msg("%s: %s", settings, err.cause[0]);
	if (noc_network_now_cycle(a) != noc_network_now_cycle(b) || nr_a != nr_b)
		fail_msg("%s: %zu arrivals to cycle %llu, and %zu to %llu", settings, nr_a,
			(unsigned long long)noc_network_now_cycle(a), nr_b,
			(unsigned long long)noc_network_now_cycle(b));
	for (size_t i = 0; i < nr_a; i++)
		if (of_a[i].id != of_b[i].id || of_a[i].arrival_cycle != of_b[i].arrival_cycle ||
			of_a[i].sent_cycle != of_b[i].sent_cycle || of_a[i].hops != of_b[i].hops)
			fail_msg("%s: packet %llu, and packet %llu", settings,
				(unsigned long long)of_a[i].id, (unsigned long long)of_b[i].id);
	return nr_a;
}

static void compare(const char *settings, struct noc_random *r)
{
	struct noc_network *shortened = open_network(settings), *whole = open_network(settings);
	struct base_err err = {0};
	assert_true(shortened->plain);
	whole->plain = false;
	uint32_t nodes = noc_network_nodes(shortened), longest = 1 + noc_random_below(r, 6);
	uint32_t sends = 1 + noc_random_below(r, 1 + nodes / 4); /* in four cycles */
	uint64_t id = 0;
	for (uint64_t cycle = 0; cycle < CYCLES; cycle += 4) {
		for (uint32_t i = 0; i < sends; i++) {
			struct noc_packet p = {.id = id++,
				.source = noc_random_below(r, nodes),
				.destination = noc_random_below(r, nodes),
				.size_flits = 1 + noc_random_below(r, longest),
				.class = noc_random_below(r, shortened->classes)};
			send(shortened, &p);
			send(whole, &p);
		}
		while (noc_network_now_cycle(shortened) < cycle + 4)
			run(shortened, whole, cycle + 4, settings);
	}
	while (noc_network_pending(shortened))
		assert_true(run(shortened, whole, UINT64_MAX, settings));
	assert_int_equal(noc_network_pending(whole), 0);
	struct noc_counts a, b;
	noc_network_counts(shortened, &a);
	noc_network_counts(whole, &b);
	assert_memory_equal(&a, &b, sizeof a);
	if (noc_network_check(shortened, &err) != BASE_OK)
		fail_msg("%s: %s", settings, err.cause[0]);
	noc_network_close(shortened);
	noc_network_close(whole);
}

static void test_same_decisions(void **state)
{
	(void)state;
	struct noc_random r;
	char text[512];
	noc_random_init(&r, 909);
	for (unsigned i = 0; i < NETWORKS; i++) {
		random_settings(&r, text, sizeof text);
		compare(text, &r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_decisions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
