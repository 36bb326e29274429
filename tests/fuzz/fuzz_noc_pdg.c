/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_noc_pdg.c - any bytes as a trace of packets: what is read keeps its promises, and inference
 * from it as if it were two runs comes to an end. */
#include "noc/pdg/infer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

enum { INFER_MAX = 5000 };

static void infer(const struct noc_pdg *g)
{
	struct noc_infer_options o;
	struct noc_infer_result result;
	struct noc_pdg *inferred;
	struct noc_runs runs;
	enum base_status s = noc_runs_init(&runs, 2, g->nr_packets, NULL);
	BASE_ASSERT(s == BASE_OK);
	for (uint32_t i = 0; i < g->nr_packets; i++)
		for (unsigned r = 0; r < 2; r++) {
			runs.transmit_cycle[2 * i + r] = g->transmit_cycle[i];
			runs.receive_cycle[2 * i + r] = g->receive_cycle[i] + (r ? i % 7 : 0);
		}
	noc_infer_robust(&o);
	o.nr_threads = 1;
	s = noc_infer(g, &runs, &o, &inferred, &result, NULL);
	BASE_ASSERT(s == BASE_OK && inferred->nr_packets == g->nr_packets);
	noc_pdg_free(inferred);
	noc_runs_fini(&runs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct noc_pdg *g;
	if (noc_pdg_read_memory(data, size_bytes, &g, NULL) != BASE_OK)
		return 0;
	enum base_status s = noc_pdg_check(g, NULL);
	BASE_ASSERT(s == BASE_OK);
	if (g->nr_packets && g->nr_packets <= INFER_MAX)
		infer(g);
	noc_pdg_free(g);
	return 0;
}
