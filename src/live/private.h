/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - what the files of src/live share. */
#ifndef LONGPOLE_LIVE_PRIVATE_H
#define LONGPOLE_LIVE_PRIVATE_H

#include "graph/part.h"
#include "live/defs.h"
#include "live/live.h"

#define NONE UINT32_MAX

/* ---- late.c: records that wait until no earlier one can come --------------------------------- */

enum { LIVE_BUCKETS = 512 };
struct late_record {
	uint64_t order;
	struct trace_record r;
};
struct bucket { /* one span of time */
	struct late_record *record;
	size_t nr, capacity;
};
struct late {
	struct bucket bucket[LIVE_BUCKETS]; /* a ring over time */
	uint64_t span_ns;
	uint64_t first; /* number of the span that is released next */
	uint64_t order, nr_waiting;
	uint64_t nr_late; /* came when their span had been released */
};

void live_late_init(struct late *q, uint64_t late_ns);
void live_late_fini(struct late *q);
bool live_late_is_full(const struct late *q, uint64_t time_ns);
/* Room for it must be: live_late_is_full(). */
enum base_status live_late_put(struct late *q, const struct trace_record *r) BASE_MUST_CHECK;
/* The next span that ends at or before time_ns, in order of time: *ret_nr 0, NULL: none. Good until
 * the next call of put. */
struct late_record *live_late_take(struct late *q, uint64_t time_ns, size_t *ret_nr);
/* Has been fed. */
void live_late_drop(struct late *q);

/* ---- answer.c: a window's rows --------------------------------------------------------------- */

struct rows {
	struct live_row *row;
	uint64_t *text; /* row's texts by number: process << 32 | name; where */
	uint32_t *where;
	size_t nr, row_capacity, text_capacity, where_capacity;
	struct base_map by_key;
};
struct answer_place {                        /* rows */
	uint32_t state, process, connection; /* connection NONE: it waits for none */
	bool waits;
};
struct answer {
	struct live_window w;
	struct answer_place *place;
	size_t nr_places, place_capacity;
	struct base_map places; /* (actor's group, state) -> place */
	struct base_strtab *texts;
	struct rows state, process, connection;
	enum base_status status;
};
struct answer *live_answer_new(void); /* NULL: no memory */
/* Adds one path's (actor, state) sums. */
enum base_status live_answer_add(struct answer *a, struct model *m, const struct trace_defs *defs,
	const struct graph_path_state *state, size_t nr, double length_ns,
	struct base_err *err) BASE_MUST_CHECK;
/* Sorts the rows into a->w. */
void live_answer_finish(struct answer *a);
struct answer *live_answer_free(struct answer *a);

/* ---- live.c ---------------------------------------------------------------------------------- */

struct part_info {               /* a window that is over */
	struct graph_part *part; /* NULL: none of this generation */
	uint64_t number;
};
struct generation {
	struct live_defs *defs;         /* NULL: the trace's are used */
	const struct trace_defs *names; /* its definitions */
	struct model *model;
	struct part_info *part; /* [nr_parts], consecutive windows */
	size_t nr_parts, part_capacity;
	uint64_t first, last; /* windows that it answers */
	uint64_t nr_seeded;   /* entries when it began */
};
struct window_count {
	uint64_t nr_records, nr_late, nr_lost;
};

/* subjects.c: which paths a window is about: the anchors of part `k` of the generation, and since
 * when each path counts: what led to a process's birth is its parent's. */
struct subject {
	uint32_t anchor;
	uint64_t since_ns; /* 0: all of it */
};
struct subjects {
	struct subject *subject;
	size_t nr, capacity;
};
struct live {
	struct live_options opts;
	char *process, *cgroup, *command;
	struct late late;
	struct generation now, next; /* next.model NULL: none takes over */
	uint64_t window;             /* that is open */
	uint64_t end_ns;             /* its end */
	uint64_t last_ns;            /* of a record that was fed */
	struct window_count *count;  /* of windows from `answered` on */
	size_t nr_counts, count_capacity;
	uint64_t answered; /* the next to answer */
	uint64_t root_pid; /* of the first thread's process */
	struct live_health health;
	struct trace_record batch[TRACE_BATCH_MAX];
	size_t nr_batch;
	bool started; /* a record has come */
	enum base_status status;
};

enum base_status live_subjects(const struct live *l, const struct generation *g, size_t k,
	struct subjects *ret, struct base_err *err) BASE_MUST_CHECK;

#endif
