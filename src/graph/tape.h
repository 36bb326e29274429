/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape.h - what the graph was told, kept, so that other scenarios can be followed without the model
 * reading the trace again. A sink of the graph's verbs; some eight bytes a verb.
 */
#ifndef LONGPOLE_GRAPH_TAPE_H
#define LONGPOLE_GRAPH_TAPE_H

#include "graph/graph.h"

struct graph_tape;

/* `next` hears everything, too (borrowed; NULL: nobody). A tape longer than max_bytes, or without
 * memory, is given up; `next` goes on hearing. ERR_NOMEM. */
enum base_status graph_tape_new(const struct graph_sink *next, size_t max_bytes,
	struct graph_tape **ret, struct base_err *err) BASE_MUST_CHECK;
struct graph_tape *graph_tape_free(struct graph_tape *t); /* NULL is fine; returns NULL */
const struct graph_sink *graph_tape_sink(struct graph_tape *t);
bool graph_tape_is_whole(const struct graph_tape *t); /* not given up */
size_t graph_tape_bytes(const struct graph_tape *t);
/*
 * Tells it all to a new graph, which ends with that actor's last verb (graph_finish()); the caller
 * frees it. A window (graph_restart(), graph_cut()) and ends of the caller's own are not on the
 * tape. ERR_NOMEM, ERR_LIMIT as the graph says. The tape has to be whole.
 */
enum base_status graph_tape_play(const struct graph_tape *t, const struct graph_options *o,
	uint32_t end_actor, struct graph **ret, struct base_err *err) BASE_MUST_CHECK;

#endif
