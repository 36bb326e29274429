/* SPDX-License-Identifier: Apache-2.0 */
/* noc_repeat.c IN.lpt OUT.lpt TIMES CYCLES - a run's packets, so often one after the other, each
 * CYCLES later than the one before: a trace that is too long to be held, from one that is not. */
#include "noc/pdg/pdg_file.h"

#include <stdio.h>
#include <stdlib.h>

static enum base_status repeat(struct noc_pdg *g, const char *path, uint64_t times,
	uint64_t period_cycles, struct base_err *err)
{
	struct trace_writer *w;
	enum base_status s = noc_pdg_write_begin(g, times * g->nr_packets, path, &w, err);
	if (s != BASE_OK)
		return s;
	for (uint64_t k = 0; k < times && s == BASE_OK; k++) {
		s = noc_pdg_write_packets(g, 0, g->nr_packets, k * g->nr_packets, w, err);
		for (uint32_t i = 0; i < g->nr_packets; i++) {
			g->transmit_cycle[i] += period_cycles;
			g->receive_cycle[i] += period_cycles;
		}
	}
	enum base_status closed = trace_writer_close(w, s == BASE_OK ? err : NULL);
	return s == BASE_OK ? closed : s;
}

int main(int argc, char **argv)
{
	struct base_err err = {0};
	struct noc_pdg *g;
	if (argc != 5)
		return 2;
	enum base_status s = noc_pdg_read(argv[1], &g, &err);
	if (s == BASE_OK) {
		s = repeat(
			g, argv[2], strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10), &err);
		noc_pdg_free(g);
	}
	if (s != BASE_OK)
		fprintf(stderr, "noc_repeat: cannot (%d)\n", (int)s);
	return s == BASE_OK ? 0 : 1;
}
