/* SPDX-License-Identifier: Apache-2.0 */
/* replay_ideal.c - one sweep over a graph. */
#include "noc/pdg/replay_ideal.h"

#include "noc/pdg/draw.h"

enum base_status noc_runs_init(
	struct noc_runs *r, uint32_t nr_runs, uint32_t nr_packets, struct base_err *err)
{
	size_t nr = (size_t)nr_runs * (nr_packets ? nr_packets : 1);
	*r = (struct noc_runs){.nr_runs = nr_runs, .stride = nr_runs, .nr_packets = nr_packets};
	BASE_ASSERT(nr_runs && nr_runs <= NOC_RUNS_MAX);
	r->transmit_cycle = base_alloc(nr * sizeof *r->transmit_cycle);
	r->receive_cycle = base_alloc(nr * sizeof *r->receive_cycle);
	if (r->transmit_cycle && r->receive_cycle)
		return BASE_OK;
	noc_runs_fini(r);
	return base_fail(err, BASE_ERR_NOMEM, "no memory for the times of %u {run|runs}", nr_runs);
}

void noc_runs_fini(struct noc_runs *r)
{
	base_free(r->transmit_cycle);
	base_free(r->receive_cycle);
	base_free(r->filled);
	*r = (struct noc_runs){0};
}

static uint64_t replay_ideal_delay_of(
	const struct noc_pdg *g, const struct noc_plan *plan, uint32_t i, uint32_t run)
{
	uint64_t d = g->delay_cycles[i];
	if (!plan || !plan->noise_cycles)
		return d;
	uint64_t width = 2 * (uint64_t)plan->noise_cycles + 1;
	uint64_t noisy = d + noc_draw_hash(plan->seed + run, i) % width;
	return noisy > plan->noise_cycles ? noisy - plan->noise_cycles : 1;
}

/* Packet i is sent in cycle t. */
static void receive_after(
	const struct noc_plan *plan, struct noc_runs *r, uint32_t i, uint32_t run, uint64_t t)
{
	size_t at = (size_t)i * r->stride + run;
	r->transmit_cycle[at] = t;
	r->receive_cycle[at] = t + 1 + (plan && plan->extra_cycles ? plan->extra_cycles[i] : 0);
}

void noc_ideal_replay(const struct noc_pdg *g, const struct noc_index *x,
	const struct noc_plan *plan, struct noc_runs *r, uint32_t run)
{
	const size_t stride = r->stride;
	uint64_t *transmit = r->transmit_cycle + run, *receive = r->receive_cycle + run;
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		if (plan && plan->hold)
			for (uint64_t h = plan->first_hold[i]; h < plan->first_hold[i + 1]; h++) {
				const struct noc_hold *hold = &plan->hold[h];
				uint64_t until = receive[hold->after * stride] + hold->cycles;
				if (receive[hold->packet * stride] < until)
					receive[hold->packet * stride] = until;
			}
		if (noc_pdg_is_copy(g, i)) {
			receive_after(plan, r, i, run, transmit[(i - 1) * stride]);
			continue;
		}
		uint32_t before = x->previous[i];
		uint64_t previous = before == NOC_PDG_NONE ? 0 : transmit[before * stride];
		uint64_t t = g->inputs[i] & NOC_PDG_PREVIOUS ? previous : 0;
		for (uint64_t d = g->first[i]; d < g->first[i + 1]; d++) {
			uint64_t arrival = receive[g->dependency[d] * stride];
			t = arrival > t ? arrival : t;
		}
		t += replay_ideal_delay_of(g, plan, i, run);
		if (g->inputs[i] & NOC_PDG_NOT_BEFORE && t < g->transmit_cycle[i])
			t = g->transmit_cycle[i];
		if (before != NOC_PDG_NONE && g->ordered[g->source[i]] && t <= previous)
			t = previous + 1;
		receive_after(plan, r, i, run, t);
	}
}

uint64_t noc_runs_end(const struct noc_runs *r, uint32_t run)
{
	uint64_t end = 0;
	for (uint32_t i = 0; i < r->nr_packets; i++) {
		uint64_t t = r->receive_cycle[(size_t)i * r->stride + run];
		end = t > end ? t : end;
	}
	return end;
}
