/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - from kept edges to slack. Private to the layer. */
#ifndef LONGPOLE_SLACK_PRIVATE_H
#define LONGPOLE_SLACK_PRIVATE_H

#include "slack/machine_private.h"
#include "slack/slack.h"
#include "slack/stack.h"

struct kept_edge {               /* those of one target one after another */
	uint64_t source, target; /* slack_name() */
	uint64_t issue, start;   /* of the target; issue 0: it is its processor's first */
	uint64_t arrival;
};
struct known_node { /* what the second run needs to know, by processor, last node first */
	uint64_t order;
	uint64_t global,
		before; /* slack of the node; of those between the kept node before and it */
	uint64_t local; /* least local slack of its RAW edges; SLACK_NEVER: none */
	uint64_t late;  /* local slack of the program order edge to it */
};
struct stretch { /* of the critical path, on one processor; last one first */
	uint64_t from, to;
};
struct flight { /* a kept edge, by source, last one first: for tautness */
	uint64_t source, target, slack;
};

static inline uint64_t slack_name(uint32_t processor, uint64_t order)
{
	return (uint64_t)processor << ORDER_BITS | order;
}
static inline uint64_t slack_order(uint64_t name)
{
	return name & ((UINT64_C(1) << ORDER_BITS) - 1);
}
static inline uint32_t slack_processor_of(uint64_t name)
{
	return (uint32_t)(name >> ORDER_BITS);
}
static inline uint64_t slack_add(uint64_t a, uint64_t b)
{
	return a == SLACK_NEVER || b == SLACK_NEVER ? SLACK_NEVER : a + b;
}

enum { EARLIER_BITS = 18, GLANCES = 64 };
struct glance { /* of each processor the last node that leads to this one */
	uint64_t order;
	uint64_t seen[];
};
struct earlier { /* the last load of a processor that kept an edge from a store */
	uint64_t store, load;
	uint32_t processor;
};

struct slack_analysis {
	struct slack_options options;
	struct slack_result result;
	uint32_t nr_processors;
	struct slack_budget budget;
	struct slack_stack edges, flights;
	/* first run */
	struct earlier *earlier; /* 1 << EARLIER_BITS */
	uint64_t *last_late;     /* by processor: order */
	uint64_t *seen;          /* [processor][processor]: a vector clock of orders */
	struct glance *glances;  /* [processor][GLANCES]: the last ones */
	uint64_t *nr_glances;    /* so far */
	size_t glance_bytes;
	uint64_t origin_order;
	bool begun; /* the graph has */
	/* backward */
	struct slack_stack *known, *path; /* by processor */
	uint64_t *at_end;                 /* slack of a processor's last node */
	/* second run */
	struct pending_local *pending;
	struct known_node *next;
	struct stretch *stretch;
	bool *has_next, *has_stretch;
	struct base_map code, lines;
	struct base_map heap; /* (0, page) or (1, line of 64 bytes) to the last block's site */
	size_t code_capacity, lines_capacity;
	uint64_t *recent;   /* direct-mapped: code to index + 1 */
	struct flight *air; /* heap: edges whose source has passed, least slack first */
	size_t nr_air, air_capacity;
	struct flight take_off; /* the next one */
	bool has_take_off;
};

/* ---- compress.c: the sink of the first run */
bool slack_begins(const struct slack_options *o, const struct slack_node *n);
enum base_status slack_compress_init(struct slack_analysis *a, struct base_err *err);
enum base_status slack_compress_run(void *ctx, const struct slack_run *r, struct base_err *err);
enum base_status slack_compress_node(void *ctx, const struct slack_node *n, struct base_err *err);
/* ---- sweep.c: backward */
enum base_status slack_sweep(struct slack_analysis *a, struct base_err *err);
/* ---- profile.c: the sink of the second run */
enum base_status slack_profile_init(struct slack_analysis *a, struct base_err *err);
enum base_status slack_profile_run(void *ctx, const struct slack_run *r, struct base_err *err);
enum base_status slack_profile_node(void *ctx, const struct slack_node *n, struct base_err *err);
enum base_status slack_profile_allocated(
	void *ctx, uint64_t address, uint64_t size_bytes, uint64_t code, struct base_err *err);
enum base_status slack_profile_finish(struct slack_analysis *a, struct base_err *err);
void slack_profile_fini(struct slack_analysis *a);

#endif
