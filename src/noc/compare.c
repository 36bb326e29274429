/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c - errors of replays; the usual networks. */
#include "noc/compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double compare_relative(double value, double reference)
{
	if (isnan(value) || isnan(reference))
		return NAN; /* nothing was there to compare */
	return reference > 0 ? value / reference - 1 : 0;
}

static double worst_node(const struct noc_pdg *g, const struct noc_replay_result *a,
	const struct noc_replay_result *b, double *sum_a, double *sum_b)
{
	double worst = 0;
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		sum_a[g->source[i]] += (double)(a->receive_cycle[i] - a->transmit_cycle[i]);
		sum_b[g->source[i]] += (double)(b->receive_cycle[i] - b->transmit_cycle[i]);
	}
	for (uint32_t n = 0; n < g->nr_nodes; n++)
		worst = fmax(worst, fabs(compare_relative(sum_b[n], sum_a[n])));
	return worst;
}

static double worst_slice(const struct noc_pdg *g, const struct noc_replay_result *a,
	const struct noc_replay_result *b)
{
	uint64_t come[2][NOC_SLICES] = {{0}};
	double worst = 0, width = (double)(a->execution_cycles + 1) / NOC_SLICES;
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		double x = (double)a->receive_cycle[i] / width;
		double y = (double)b->receive_cycle[i] / width;
		if (x < NOC_SLICES)
			come[0][(unsigned)x]++;
		if (y < NOC_SLICES)
			come[1][(unsigned)y]++;
	}
	int64_t ahead = 0;
	for (unsigned s = 0; s < NOC_SLICES; s++) {
		ahead += (int64_t)come[1][s] - (int64_t)come[0][s];
		worst = fmax(worst, fabs((double)ahead));
	}
	return g->nr_packets ? worst / g->nr_packets : 0;
}

enum base_status noc_compare(const struct noc_pdg *g, const struct noc_replay_result *reference,
	const struct noc_replay_result *other, struct noc_error *ret, struct base_err *err)
{
	double *sum = base_alloc(2 * (size_t)g->nr_nodes * sizeof *sum);
	if (!sum)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to compare");
	*ret = (struct noc_error){.execution = compare_relative((double)other->execution_cycles,
					  (double)reference->execution_cycles),
		.latency = compare_relative(
			noc_replay_mean_latency(other), noc_replay_mean_latency(reference)),
		.worst_node_latency =
			g->nr_packets ? worst_node(g, reference, other, sum, sum + g->nr_nodes)
				      : NAN,
		.worst_slice_packets = worst_slice(g, reference, other)};
	base_free(sum);
	return BASE_OK;
}

/* ---- networks -------------------------------------------------------------------------------- */

/* k with k^n = nodes; 0: none. */
static uint32_t root_of(uint32_t nodes, unsigned n)
{
	uint32_t k = (uint32_t)lround(pow(nodes, 1.0 / n));
	uint64_t power = 1;
	for (unsigned i = 0; i < n; i++)
		power *= k;
	return power == nodes && k > 1 ? k : 0;
}

static void compare_add(struct noc_standard *s, const char *name, const char *topology)
{
	*s = (struct noc_standard){.name = name};
	snprintf(s->setting[0], sizeof s->setting[0], "topology=%s", topology);
}

size_t noc_standards(uint32_t nr_nodes, struct noc_standard *ret)
{
	static const char *const grid[] = {"mesh", "torus"};
	uint32_t height = (uint32_t)sqrt((double)nr_nodes);
	size_t nr = 0;
	while (height > 1 && nr_nodes % height)
		height--;
	for (size_t i = 0; height > 1 && i < BASE_COUNT(grid); i++) {
		compare_add(&ret[nr], grid[i], grid[i]);
		snprintf(ret[nr].setting[1], sizeof ret[nr].setting[1], "dims=%ux%u",
			nr_nodes / height, height);
		nr++;
	}
	compare_add(&ret[nr], "ring", "torus");
	snprintf(ret[nr].setting[1], sizeof ret[nr].setting[1], "k=%u", nr_nodes);
	snprintf(ret[nr].setting[2], sizeof ret[nr].setting[2], "n=1");
	nr++;
	/* three levels if possible, as the seed's */
	static const unsigned levels[] = {3, 2, 4, 5, 6, 8, 10};
	for (size_t i = 0; i < BASE_COUNT(levels); i++) {
		uint32_t k = root_of(nr_nodes, levels[i]);
		if (!k)
			continue;
		compare_add(&ret[nr], "fattree", "fattree");
		snprintf(ret[nr].setting[1], sizeof ret[nr].setting[1], "k=%u", k);
		snprintf(ret[nr].setting[2], sizeof ret[nr].setting[2], "n=%u", levels[i]);
		nr++;
		break;
	}
	compare_add(&ret[nr], "ideal", "ideal");
	snprintf(ret[nr].setting[1], sizeof ret[nr].setting[1], "nodes=%u", nr_nodes);
	return nr + 1;
}
