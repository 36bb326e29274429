/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.h - the time that the path cannot see: a run is not shorter than any pool's tokens
 * (processors, a bus, locks) are held, divided by how many there are. Nobody waited for a pool that
 * had tokens left, so no path leads through it; after a change that makes its holders come sooner
 * it may be what is longest. The bound is what the maximum cycle ratio says of a token's own loop:
 * the sum of its work over the number of tokens (A. Dasdan, "Experimental analysis of the fastest
 * optimum cycle ratio and mean algorithms", ACM TODAES 9(4), 2004).
 *
 * A sink of the graph's verbs, O(actors + pools * states). A pool counts when its tokens are put
 * back by their takers, so not one of buffers that others free.
 */
#ifndef LONGPOLE_GRAPH_TOKENS_H
#define LONGPOLE_GRAPH_TOKENS_H

#include "graph/graph.h"

struct graph_tokens;

/* `next` hears all verbs, too (borrowed; NULL: nobody). ERR_NOMEM. */
enum base_status graph_tokens_new(const struct graph_sink *next, struct graph_tokens **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct graph_tokens *graph_tokens_free(struct graph_tokens *t); /* NULL is fine; returns NULL */
const struct graph_sink *graph_tokens_sink(struct graph_tokens *t);

struct graph_tokens_bound {
	double length_ns; /* 0: there is no such pool */
	uint32_t queue;   /* the pool that is longest held */
	uint32_t state;   /* in which that is the most */
	double state_ns;  /* of length_ns */
};
/* After the last verb, with these edits (NULL: none). */
struct graph_tokens_bound graph_tokens_bound(
	const struct graph_tokens *t, const struct graph_scenario *edits);

#endif
