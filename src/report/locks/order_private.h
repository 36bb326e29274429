/* SPDX-License-Identifier: Apache-2.0 */
/* order_private.h - shared by order*.c: edges between locks, and segments of threads. */
#ifndef LONGPOLE_REPORT_ORDER_PRIVATE_H
#define LONGPOLE_REPORT_ORDER_PRIVATE_H

#include "report/locks/order.h"
#include "report/predict/predictor.h"

/* Beyond these, threads and edges are counted as lost. */
enum { ORDER_THREADS_MAX = 4096, ORDER_HELD_MAX = 64, ORDER_EDGES_MAX = 1 << 18 };

/* A lock is one life of an object: what is made at the same address later is another lock. */
struct order_held {
	uint32_t lock, object, site;
	bool shared;
};
struct order_edge {
	uint32_t from, to; /* locks */
	uint32_t thread;   /* index */
	uint32_t segment;
	uint32_t from_site, to_site;
	bool from_shared, to_shared;
	uint32_t first_held, nr_held; /* in held_pool: what the thread had, `from` included */
	uint64_t times;
};
/* What a thread does between two of its creations and joins. clock[t]: up to which of its segments
 * thread t had come for certain. */
struct order_segment {
	uint32_t thread, number;
	uint32_t *clock;
	uint32_t nr_clock;
};
struct order_thread {
	uint32_t stream, segment; /* the current one */
	struct order_held held[ORDER_HELD_MAX];
	uint32_t nr_held;
	uint32_t tries; /* object that it takes next without waiting for ever; 0: none */
};
struct order_graph {
	struct order_edge *edge;
	size_t edge_capacity, nr_edges;
	struct order_held *held_pool;
	size_t pool_capacity, nr_pool;
	struct order_segment *segment;
	size_t segment_capacity, nr_segments;
	struct order_thread *thread;
	size_t thread_capacity, nr_threads;
	struct base_map thread_of; /* stream -> index */
	struct base_map edge_of;   /* hash of what makes it distinct -> index */
	struct base_map created;   /* token of thread_create -> segment */
	struct base_map handle_of; /* (process, pthread_t) -> thread index */
	struct base_map lock_of;   /* object -> lock that it is now */
	struct base_map life_of;   /* object -> its life, where one was told */
	uint32_t *object_of;       /* of each lock */
	size_t lock_capacity, nr_locks;
	uint64_t nr_acquired, nr_tried, nr_lost;
	struct base_arena *arena;
};

enum base_status report_order_read(
	struct order_graph *g, const struct report_run *run, struct base_err *err) BASE_MUST_CHECK;
void report_order_read_fini(struct order_graph *g);
/* Can both be at the same time, as far as creations and joins tell? */
bool report_order_concurrent(const struct order_graph *g, uint32_t segment_a, uint32_t segment_b);

#endif
