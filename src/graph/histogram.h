/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.h - how a queue's waits, units and times are distributed (seed 000, section 5.8).
 *
 * A watch is made before the graph, told which queue goes to which row (all locks of one name, say,
 * are one row), and given to the graph as graph_options.watch. Queues without a row cost nothing.
 * Memory: rows x measures x at most 15 KiB, and a little an actor.
 */
#ifndef LONGPOLE_GRAPH_HISTOGRAM_H
#define LONGPOLE_GRAPH_HISTOGRAM_H

#include "base/histogram.h"
#include "graph/graph.h"

/* name, what a value is in, what is counted, sentence */
#define GRAPH_MEASURES(X)                                                                          \
	X(occupancy, "units", "ns", "units in the queue, weighted by time")                        \
	X(wait_data, "ns", "waits", "waits for units")                                             \
	X(wait_space, "ns", "waits", "waits for space")                                            \
	X(latency, "ns", "waits", "from when the awaited was there to when the waiter went on")    \
	X(residence, "ns", "units", "from a unit's arrival in the queue to its taking")            \
	X(service, "ns", "takes",                                                                  \
		"from taking a unit to giving it back, passing something on, or coming back here")
enum graph_measure {
#define X(name, value, count, text) GRAPH_MEASURE_##name,
	GRAPH_MEASURES(X)
#undef X
		GRAPH_MEASURE_NR
};

enum { GRAPH_WATCH_SLOTS = 120, GRAPH_WATCH_NONE = UINT32_MAX };

struct graph_watch_options {
	size_t size;
	const uint32_t *row_of_queue; /* GRAPH_WATCH_NONE: not watched. Copied */
	uint32_t nr_queues, nr_rows;
	uint64_t start_ns, end_ns; /* of the rates: their slots divide it evenly */
};
struct graph_watch;
enum base_status graph_watch_new(const struct graph_watch_options *opts, struct graph_watch **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct graph_watch *graph_watch_free(struct graph_watch *w);
/* After graph_finish(), before graph_free(): queues go on as they are until end_ns. */
enum base_status graph_watch_finish(
	struct graph_watch *w, const struct graph *g, struct base_err *err) BASE_MUST_CHECK;

const struct base_histogram *graph_watch_histogram(
	const struct graph_watch *w, uint32_t row, enum graph_measure what);
/* GRAPH_WATCH_SLOTS numbers of units that came, or that were taken. */
const uint64_t *graph_watch_arrived(const struct graph_watch *w, uint32_t row);
const uint64_t *graph_watch_departed(const struct graph_watch *w, uint32_t row);

/* ---- for the engine -------------------------------------------------------------------------- */

struct graph_watch_row;
struct graph_watch_row *graph_watch_queue(
	struct graph_watch *w, uint32_t queue, const struct graph_queue_options *o);
void graph_watch_occupied(struct graph_watch_row *row, uint64_t units, uint64_t duration_ns);
void graph_watch_waited(struct graph_watch_row *row, bool space, uint64_t wait_ns);
void graph_watch_late(struct graph_watch_row *row, uint64_t latency_ns);
void graph_watch_put(struct graph_watch_row *row, uint64_t time_ns, uint64_t n);
void graph_watch_taken(
	struct graph_watch_row *row, uint64_t time_ns, uint64_t n, uint64_t residence_ns);
/* Every verb, before the graph applies it: who takes, holds and gives back. */
void graph_watch_verb(
	struct graph_watch *w, enum graph_verb_kind kind, const struct graph_verb *v, uint64_t t);

#endif
