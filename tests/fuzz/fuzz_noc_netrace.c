/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_noc_netrace.c - any bytes as an uncompressed Netrace trace: a graph that keeps its promises,
 * and that can be written again and gives itself. */
#include "noc/pdg/netrace.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static enum base_status add(void *ctx, const void *bytes, size_t nr, struct base_err *err)
{
	(void)err;
	base_str_add_bytes(ctx, bytes, nr);
	return BASE_OK;
}

static struct noc_pdg *read_bytes(const void *bytes, size_t nr, bool delays)
{
	struct noc_netrace_options o = {.width_bits = 128, .latency_cycles = 8, .delays = delays};
	struct noc_netrace_notes notes;
	struct noc_pdg *g = NULL;
	struct noc_input *in = noc_input_of_memory(bytes, nr);
	BASE_ASSERT(in);
	enum base_status s = noc_netrace_read(in, &o, &g, &notes, NULL);
	BASE_ASSERT(s == BASE_OK || s == BASE_ERR_FOREIGN);
	noc_input_close(in);
	return g;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct noc_netrace_losses losses;
	struct base_str again = {0};
	struct noc_pdg *g = read_bytes(data, size_bytes, size_bytes % 2);
	if (!g)
		return 0;
	enum base_status s = noc_pdg_check(g, NULL);
	BASE_ASSERT(s == BASE_OK);
	s = noc_netrace_write(g, add, &again, &losses, NULL);
	BASE_ASSERT(s == BASE_OK);
	struct noc_pdg *back = read_bytes(base_str_text(&again), again.length, size_bytes % 2);
	BASE_ASSERT(back && back->nr_packets == g->nr_packets);
	BASE_ASSERT(
		losses.dependents || noc_pdg_nr_dependencies(back) == noc_pdg_nr_dependencies(g));
	base_str_fini(&again);
	noc_pdg_free(g);
	noc_pdg_free(back);
	return 0;
}
