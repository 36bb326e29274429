/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - shared by the files of gotrace/, not beyond. */
#ifndef LONGPOLE_GOTRACE_PRIVATE_H
#define LONGPOLE_GOTRACE_PRIVATE_H

#include "gotrace/gotrace.h"

enum {
	GOTRACE_HEADER_BYTES = 16,
	GOTRACE_EVENTS_MAX = 1 << 25,
	GOTRACE_ARGS_MAX = 6,
	GOTRACE_FRAMES_MAX = 1024,  /* of one stack */
	GOTRACE_TEXT_MAX = 1 << 16, /* bytes; longer ones are cut */
	GOTRACE_LANES_MAX = 1 << 16,
};

/* One event as it stands in its lane: times still are the recorder's ticks. */
struct gotrace_raw {
	uint64_t ticks, arg[GOTRACE_ARGS_MAX];
	unsigned nr_args;
	uint8_t type;
};
struct gotrace_batch { /* bytes of one lane that stand together */
	const uint8_t *p, *end;
	uint64_t ticks; /* at its beginning */
	uint64_t lane;  /* key: P or M */
};
struct gotrace_lane {
	uint64_t key;      /* P (version 1), M */
	uint64_t g;        /* goroutine that it runs; 0: none */
	uint32_t p;        /* version 2: its P */
	size_t next, last; /* its batches that are to come: an index each into `order` */
	const uint8_t *at, *end;
	uint64_t ticks;
	struct gotrace_raw head;
	bool has_head, in_call; /* in_call: g is in a system call */
};

/* What a reader of one format gives to the merge. */
struct gotrace_merge;
struct gotrace_format {
	/* One event from *p; false: no more can be read of this batch. */
	bool (*decode)(struct gotrace_merge *m, struct gotrace_lane *l, const uint8_t **p,
		const uint8_t *end, struct gotrace_raw *ret);
	bool (*is_ready)(const struct gotrace_merge *m, const struct gotrace_lane *l,
		const struct gotrace_raw *r);
	void (*apply)(struct gotrace_merge *m, struct gotrace_lane *l, const struct gotrace_raw *r);
};
struct gotrace_merge {
	struct gotrace *t;
	const struct gotrace_format *format;
	struct gotrace_batch *batch; /* of a generation */
	size_t nr_batches, batch_capacity;
	struct gotrace_lane *lane;
	size_t nr_lanes, lane_capacity;
	size_t *order;          /* batches by lane */
	struct base_map lanes;  /* key -> index */
	struct base_map g;      /* goroutine -> sequence number << 3 | status */
	struct base_map p;      /* P -> sequence number << 3 | status (version 2) */
	struct base_map stacks; /* (generation, id) -> stack */
	struct base_map texts;  /* (generation, id) -> text */
	struct base_map frames; /* the frame's bytes, hashed -> frame */
	struct base_map timers; /* version 1: goroutines that stand for timers */
	uint64_t generation;
	uint64_t origin_ticks, last_ns;
	double ns_per_tick;           /* 0: not known yet */
	struct gotrace_event *sample; /* in ticks, until they are merged */
	size_t nr_samples, sample_capacity;
	struct base_err *err;
	enum base_status status; /* the first failure: no memory, a limit */
};

enum base_status gotrace_read_v1(struct gotrace *t, const uint8_t *bytes, size_t nr_bytes,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status gotrace_read_v2(struct gotrace *t, const uint8_t *bytes, size_t nr_bytes,
	struct base_err *err) BASE_MUST_CHECK;

/* ---- cursor.c -------------------------------------------------------------------------------- */

/* Go pads some numbers, so overlong ones are read, too. NULL: none ends there. */
const uint8_t *gotrace_number(const uint8_t *p, const uint8_t *end, uint64_t *ret);
void gotrace_merge_fini(struct gotrace_merge *m);
void gotrace_add_batch(struct gotrace_merge *m, const struct gotrace_batch *b);
/* The lane with that key, made when new; NULL: no memory, or too many. Moves with the next one. */
struct gotrace_lane *gotrace_lane_of(struct gotrace_merge *m, uint64_t key);
/* All batches' events, in order; then there are no batches any more. */
void gotrace_merge_batches(struct gotrace_merge *m);
/* Adds an event at r's time, made the last one's if it is before that. */
void gotrace_add(struct gotrace_merge *m, uint64_t ticks, struct gotrace_event e);
/* Adds the samples, and puts all in the order of time. */
void gotrace_merge_samples(struct gotrace_merge *m);

/* A goroutine's or P's sequence number and status. False: it is not known. */
struct gotrace_standing {
	uint64_t sequence;
	unsigned status;
};
bool gotrace_standing(const struct base_map *map, uint64_t id, struct gotrace_standing *ret);
void gotrace_set_standing(struct gotrace_merge *m, struct base_map *map, uint64_t id,
	uint64_t sequence, unsigned status);

/* ---- read.c: tables -------------------------------------------------------------------------- */

void gotrace_fail(struct gotrace_merge *m, enum base_status s, const char *what);
void gotrace_keep_text(
	struct gotrace_merge *m, uint64_t id, const uint8_t *text, uint64_t nr_bytes);
/* args: nr times pc, function, file, line, texts' ids in the file. */
void gotrace_keep_stack(struct gotrace_merge *m, uint64_t id, const uint64_t *args, size_t nr);
uint32_t gotrace_stack_of(const struct gotrace_merge *m, uint64_t id); /* 0: none */
uint32_t gotrace_text_of(struct gotrace_merge *m, uint64_t id);
uint32_t gotrace_own_text(struct gotrace_merge *m, const char *text);

#endif
