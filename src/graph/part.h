/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.h - a run as a row of windows, each answered while the next ones go on.
 *
 * graph_turn() ends a window and begins the next one. What the run's end will have depended on is
 * not known then, so the window that it gives back (a part) keeps a path for every place where the
 * run may go on: an anchor for each actor as it is at the turn, one for its last verb, one for each
 * unit in a queue. A path in the next part begins at one of them, and says at which. So from any
 * anchor of a later part one comes back, part by part, to the run's path through each of them. That
 * path is the same as graph_restart() and graph_cut() with the whole run in view would give,
 * clipped.
 *
 * Of lane 0. A part is independent of the graph that made it. Memory: anchors + folds of one
 * window.
 */
#ifndef LONGPOLE_GRAPH_PART_H
#define LONGPOLE_GRAPH_PART_H

#include "graph/graph.h"

struct graph_part;
#define GRAPH_PART_NONE UINT32_MAX

/*
 * Before the first verb after time_ns. Not together with graph_cut(); after a graph_restart() the
 * window begins there, and nothing comes from the ones before it. Ends
 * (graph_end()) are forgotten. With start_all actors that have no path begin one here, where all
 * paths are 0 long: for a run that has no one start. Errors as of verbs. *ret is the caller's:
 * graph_part_free().
 */
enum base_status graph_turn(struct graph *g, uint64_t time_ns, bool start_all,
	struct graph_part **ret, struct base_err *err) BASE_MUST_CHECK;
struct graph_part *graph_part_free(struct graph_part *p);
/* The actor came to be with its last verb: of paths through it parts will tell exactly what comes
 * after (graph_part_path). Costs a node until the window ends. */
enum base_status graph_birth(struct graph *g, uint32_t actor, struct base_err *err) BASE_MUST_CHECK;

uint64_t graph_part_from_ns(const struct graph_part *p); /* 0: the run's beginning */
uint64_t graph_part_to_ns(const struct graph_part *p);
uint32_t graph_part_nr_actors(const struct graph_part *p);
size_t graph_part_memory_bytes(const struct graph_part *p);

/* The anchor of its last verb, at or before the part's end; time before the part's beginning: it
 * did nothing in it. GRAPH_PART_NONE: it has no path. */
uint32_t graph_part_last(const struct graph_part *p, uint32_t actor, uint64_t *ret_time_ns);
/* The anchor of the part before this one at which the path to `anchor` begins; GRAPH_PART_NONE: it
 * began in this part. */
uint32_t graph_part_before(const struct graph_part *p, uint32_t anchor);

/*
 * The path to an anchor, what of it is after since_ns (0: all): its (actor, state) sums, longest
 * first (ties by ids); base_free() them. Exact where the path goes through a birth at that time
 * (graph_birth); else the run of the path in which since_ns lies (between two births, or places
 * where paths part) is taken to be the same mixture throughout. The length is always exact.
 */
enum base_status graph_part_path(const struct graph_part *p, uint32_t anchor, uint64_t since_ns,
	struct graph_path_state **ret, size_t *ret_nr, double *ret_length_ns,
	struct base_err *err) BASE_MUST_CHECK;

#endif
