/* SPDX-License-Identifier: Apache-2.0 */
/* components.h - strongly connected parts of a directed graph (Tarjan 1972), without recursion. */
#ifndef LONGPOLE_DEADLOCK_COMPONENTS_H
#define LONGPOLE_DEADLOCK_COMPONENTS_H

#include "base/base.h"

struct deadlock_arc {
	uint32_t from, to;
};
/* Part i has the nodes member[first[i]] to member[first[i + 1] - 1], ascending. */
struct deadlock_components {
	uint32_t *member, *first;
	bool *has_loop; /* an arc from a node of it to itself */
	size_t nr;
};
/* On failure *ret is empty. Arcs may come in any order, and twice. */
enum base_status deadlock_components_find(size_t nr_nodes, const struct deadlock_arc *arc,
	size_t nr_arcs, struct deadlock_components *ret) BASE_MUST_CHECK;
void deadlock_components_fini(struct deadlock_components *c);

int deadlock_by_u64(const void *a, const void *b);

#endif
