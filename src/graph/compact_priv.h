/* SPDX-License-Identifier: Apache-2.0 */
/* compact_priv.h - shared by compact.c and compact_shape.c: tables that find their rows by key. */
#ifndef LONGPOLE_GRAPH_COMPACT_PRIV_H
#define LONGPOLE_GRAPH_COMPACT_PRIV_H

#include "graph/compact.h"

struct compact_tables {
	struct graph_compact c;
	struct base_map nodes, edges, crosses, uses;
	size_t limit;
};
void graph_compact_tables_fini(struct compact_tables *t);

/* The row of that key, made when it is new; *ret is its index. */
enum base_status graph_compact_put_node(struct compact_tables *t, uint32_t actor, uint32_t from,
	uint32_t to, uint32_t *ret, struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_compact_put_edge(struct compact_tables *t, uint32_t from, uint32_t to,
	uint32_t state, uint32_t *ret, struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_compact_put_cross(struct compact_tables *t, uint32_t from, uint32_t to,
	uint32_t queue, bool space, uint32_t *ret, struct base_err *err) BASE_MUST_CHECK;
enum base_status graph_compact_put_use(struct compact_tables *t, uint32_t actor, uint32_t queue,
	uint32_t *ret, struct base_err *err) BASE_MUST_CHECK;

static inline enum base_status compact_no_memory(struct base_err *err)
{
	base_fail(err, BASE_ERR_NOMEM, "out of memory for the compact graph");
	return BASE_ERR_NOMEM;
}

#endif
