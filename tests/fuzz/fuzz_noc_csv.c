/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_noc_csv.c - any bytes as CSV, with numbers of its own too, and as BookSim's trace: a graph
 * that keeps its promises. */
#include "noc/pdg/csv.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct noc_booksim_sizes sizes = {.flits = {1, 5}, .nr = 2};
	for (unsigned format = 0; format < 3; format++) {
		struct noc_input *in = noc_input_of_memory(data, size_bytes);
		struct noc_pdg *g = NULL;
		BASE_ASSERT(in);
		enum base_status s = format == 2 ? noc_booksim_read(in, &sizes, &g, NULL)
						 : noc_csv_read(in, format, &g, NULL);
		BASE_ASSERT(s == BASE_OK || s == BASE_ERR_FOREIGN || s == BASE_ERR_LIMIT ||
			    s == BASE_ERR_CORRUPT);
		if (s == BASE_OK) {
			s = noc_pdg_check(g, NULL);
			BASE_ASSERT(s == BASE_OK && g->nr_packets);
		}
		noc_pdg_free(g);
		noc_input_close(in);
	}
	return 0;
}
