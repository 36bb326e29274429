/* SPDX-License-Identifier: Apache-2.0 */
/* components.c - Tarjan's algorithm with a stack of its own. */
#include "deadlock/components.h"

#include <stdlib.h>

struct tarjan {
	size_t nr_nodes;
	uint32_t *head, *next_arc; /* arcs of each node, linked; indices + 1 */
	const struct deadlock_arc *arc;
	uint32_t *number, *low; /* 0: not seen */
	uint32_t *at;           /* the arc that a node is at; index + 1 */
	uint32_t *stack, *path;
	bool *on_stack;
	uint32_t nr_stack, nr_path, nr_seen;
};

/* for qsort() */
static int by_u32(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

int deadlock_by_u64(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void components_enter(struct tarjan *t, uint32_t node)
{
	t->number[node] = t->low[node] = ++t->nr_seen;
	t->at[node] = t->head[node];
	t->stack[t->nr_stack++] = node;
	t->on_stack[node] = true;
	t->path[t->nr_path++] = node;
}

static void close_part(struct tarjan *t, uint32_t root, struct deadlock_components *c)
{
	uint32_t begin = c->first[c->nr], n = begin, node;
	do {
		node = t->stack[--t->nr_stack];
		t->on_stack[node] = false;
		c->member[n++] = node;
	} while (node != root);
	qsort(c->member + begin, n - begin, sizeof *c->member, by_u32);
	c->first[++c->nr] = n;
}

static void min_low(struct tarjan *t, uint32_t node, uint32_t value)
{
	if (value < t->low[node])
		t->low[node] = value;
}

static void components_walk(struct tarjan *t, uint32_t start, struct deadlock_components *c)
{
	components_enter(t, start);
	while (t->nr_path) {
		uint32_t node = t->path[t->nr_path - 1], arc = t->at[node];
		if (arc) {
			uint32_t to = t->arc[arc - 1].to;
			t->at[node] = t->next_arc[arc - 1];
			if (!t->number[to])
				components_enter(t, to);
			else if (t->on_stack[to])
				min_low(t, node, t->number[to]);
			continue;
		}
		t->nr_path--;
		if (t->nr_path)
			min_low(t, t->path[t->nr_path - 1], t->low[node]);
		if (t->low[node] == t->number[node])
			close_part(t, node, c);
	}
}

static void mark_loops(const struct tarjan *t, size_t nr_arcs, struct deadlock_components *c)
{
	for (size_t i = 0; i < nr_arcs; i++) {
		if (t->arc[i].from == t->arc[i].to)
			t->on_stack[t->arc[i].from] = true; /* all are off it now */
	}
	for (size_t i = 0; i < c->nr; i++) {
		for (uint32_t m = c->first[i]; m < c->first[i + 1]; m++)
			c->has_loop[i] |= t->on_stack[c->member[m]];
	}
}

enum base_status deadlock_components_find(size_t nr_nodes, const struct deadlock_arc *arc,
	size_t nr_arcs, struct deadlock_components *ret)
{
	enum { ARRAYS = 6 };
	struct tarjan t = {.nr_nodes = nr_nodes, .arc = arc};
	size_t n = nr_nodes + 1;
	*ret = (struct deadlock_components){0};
	uint32_t *memory = base_alloc((ARRAYS * n + nr_arcs) * sizeof *memory);
	t.on_stack = base_alloc(n);
	ret->member = base_alloc(n * sizeof *ret->member);
	ret->first = base_alloc((n + 1) * sizeof *ret->first);
	ret->has_loop = base_alloc(n);
	bool ok = memory && t.on_stack && ret->member && ret->first && ret->has_loop;
	if (ok) {
		t.head = memory;
		t.number = memory + n;
		t.low = memory + 2 * n;
		t.at = memory + 3 * n;
		t.stack = memory + 4 * n;
		t.path = memory + 5 * n;
		t.next_arc = memory + ARRAYS * n;
		for (size_t i = nr_arcs; i-- > 0;) {
			t.next_arc[i] = t.head[arc[i].from];
			t.head[arc[i].from] = (uint32_t)i + 1;
		}
		for (uint32_t i = 0; i < nr_nodes; i++) {
			if (!t.number[i])
				components_walk(&t, i, ret);
		}
		mark_loops(&t, nr_arcs, ret);
	} else {
		deadlock_components_fini(ret);
	}
	base_free(memory);
	base_free(t.on_stack);
	return ok ? BASE_OK : BASE_ERR_NOMEM;
}

void deadlock_components_fini(struct deadlock_components *c)
{
	base_free(c->member);
	base_free(c->first);
	base_free(c->has_loop);
	*c = (struct deadlock_components){0};
}
