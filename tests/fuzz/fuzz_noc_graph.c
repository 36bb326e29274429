/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_noc_graph.c - any bytes as a network's graph: refused, or every way leads where it should.
 */
#include "noc/network/topology.h"

#include <string.h>

enum { BYTES_MAX = 4096, ROUTERS_MAX = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	char text[BYTES_MAX + 1];
	struct noc_config c;
	struct noc_topology t = {0};
	struct base_err err = {0};
	if (size_bytes > BYTES_MAX)
		return 0;
	memcpy(text, size_bytes ? (const void *)data : "", size_bytes);
	text[size_bytes] = 0;
	noc_config_init(&c);
	enum base_status s = noc_topology_graph_text(&t, &c, text, &err);
	BASE_ASSERT(s == BASE_OK || s == BASE_ERR_USAGE || s == BASE_ERR_LIMIT);
	for (uint32_t a = 0; s == BASE_OK && t.nr_routers < ROUTERS_MAX && a < t.nr_nodes; a++)
		for (uint32_t b = 0; b < t.nr_nodes; b++)
			BASE_ASSERT(noc_topology_distance(&t, a, b) <= t.nr_routers);
	noc_topology_fini(&t);
	return 0;
}
