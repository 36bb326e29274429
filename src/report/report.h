/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - answers as plain data, and their two renderings.
 *
 * Builders read the whole trace, at least once; what they return owns all its texts and outlives
 * the reader. Renderers append to a base_str and cannot fail but for memory (check `failed` once).
 * Units: ns, bytes, shares of 1.
 */
#ifndef LONGPOLE_REPORT_H
#define LONGPOLE_REPORT_H

#include "graph/histogram.h"
#include "model/link.h"
#include "report/predict/predict.h"

/* ---- parts: what the critical path is made of, as somebody would change it ---------------------- */

enum { REPORT_PART_DETAILS = 3 };
enum report_part_level { REPORT_PART_HALVED, REPORT_PART_GONE, REPORT_PART_LEVELS };
struct report_part_detail {
	const char *text;
	double path_ns;
};
/*
 * A lock for which somebody waited, with all that the path does while it is held, its waits and its
 * hand-off; or a topic, without what lies under such locks. Numbered by their time on the path,
 * longest first: #1 is the long pole.
 */
struct report_part {
	bool is_lock;
	enum model_state_kind kind; /* of a lock: of what its holders do for longest */
	enum model_cause cause;     /* not of a lock */
	const char *name;           /* "mutex m", "sleeping", "compress()" */
	const char *place;          /* "many_t.c:4"; "" not known */
	const char *text;      /* "mutex m: its holders sleep, in ..."; NULL: was not asked for */
	uint32_t topic;        /* of a lock: REPORT_NONE */
	double path_ns, share; /* share: of the path without what is set apart */
	uint64_t nr_waits, wait_ns, waiters_max; /* of a lock: all threads' */
	double held_ns;                          /* of a lock: by all threads, on the path or not */
	struct report_part_detail detail[REPORT_PART_DETAILS];
	size_t nr_details;
	struct report_state_share *state;
	size_t nr_states;
	bool predicted;
	struct report_best gain[REPORT_PART_LEVELS];
	const char *
		then; /* the longest part of the path that is left when this one is gone; "" none */
};
struct report_parts {
	struct report_part *part;
	size_t nr;
	struct report_own own;
};

bool report_is_part_number(const char *text); /* "#2" */
/* Of what `number` stands for in the run's report: "mutex m". ERR_NOTFOUND: there is no such. */
enum base_status report_part_name(const struct report_run *run, const char *number,
	struct base_str *ret, struct base_err *err) BASE_MUST_CHECK;

/* ---- report ---------------------------------------------------------------------------------- */

enum {
	REPORT_FUNCTIONS_MAX = 3,
	REPORT_INLINED_MAX = 8,
	REPORT_LEVELS = 4, /* reductions that are looked at: 10, 25, 50, 100 % */
	REPORT_OPPORTUNITIES_MAX = 40,
	REPORT_PARTS_DEFAULT = 5, /* shown, and predicted */
	REPORT_PARTS_MAX = 15,
};
extern const unsigned report_level_percent[REPORT_LEVELS];

struct report_inlined { /* what was inlined in a function, there and in what was inlined */
	const char
		*way; /* "longest_match < compress": inlined in compress, which is inlined, too */
	const char *inner;       /* the innermost of them that is the program's own; "": none is */
	const char *inner_where; /* its file and line */
	uint64_t nr_samples;
	double share; /* of the row's running time: part of the function's */
	uint32_t chain;
};
struct report_function {
	const char *name, *where;
	const char *said; /* the name, or that of what is inlined and has nearly all of its samples:
			     what somebody who wrote the program calls it */
	const char *said_where;
	const char *caller,
		*caller_where; /* of a library's: the program's function that calls it; "" */
	uint64_t nr_samples;
	double share, share_low, share_high; /* of the row's running time */
	struct report_inlined inlined[REPORT_INLINED_MAX];
	size_t nr_inlined;
};
struct report_main { /* a function that nearly all of a row's running time is spent in; name NULL:
			none */
	const char *name, *where;
	const char *sampled; /* the same where the samples were: of a library, or what is inlined */
};
struct report_row { /* one (actor group, state, place) of the path */
	enum model_state_kind kind;
	enum model_cause cause;
	const char *state, *where;
	const char *what; /* the end of `state`, without "holding ", "running " */
	const char *group,
		*actor;     /* actor: the one instance that has 90 % of the row, else "group xN" */
	uint32_t nr_actors; /* of the group that are on the path in this row */
	uint32_t nr_topic_actors; /* of all groups, in any row of that state */
	const char *topic_actor;  /* the one instance that has 90 % of these; "" none */
	enum model_noun noun;     /* what these are */
	uint32_t topic;
	double path_ns, waiting_ns, unexplained_ns, share, waiting_share;
	uint64_t visits;
	struct report_function function[REPORT_FUNCTIONS_MAX];
	size_t nr_functions;
	struct report_main main;
};
struct report_opportunity { /* one topic */
	enum model_state_kind kind;
	const char *state;
	uint32_t topic;
	double path_ns, share;
	double predicted_ns[REPORT_LEVELS], speedup[REPORT_LEVELS];
	const char *then[REPORT_LEVELS];   /* longest topic of the path after that reduction */
	const char *method[REPORT_LEVELS]; /* that predicted: "path", "replay" or "both" */
	double useful_reduction; /* until here each percent buys the same; 1: to the end */
	bool useful_exact;       /* false: a lower bound (passes ran out) */
	const char *next;        /* the path's longest other state when this one is gone; "" none */
};
struct report {
	struct base_arena *arena;
	struct report_trace trace;
	struct report_spins spins;
	struct report_parts parts;
	uint64_t start_ns, end_ns;
	double elapsed_ns, unexplained_ns, explained_share;
	double timed_share;  /* of the path: waits that a time limit or a signal ended */
	double polled_share; /* of the path: naps again and again at one place */
	struct {             /* of the path: code without names, at least */
		double share;
		const char *file; /* that has most of it */
	} unnamed;
	struct report_box box;
	/* of ranks, in the part of that number; 0: none worth a word */
	struct report_balance imbalance;
	size_t imbalance_part;
	const char *imbalance_most;
	const char *pole;      /* "The long pole is ...": what to change */
	const char *finding;   /* what the path is in most, changeable or not */
	const char *certainty; /* how sure it is */
	struct report_row *row;
	size_t nr_rows;
	struct report_opportunity *opportunity;
	size_t nr_opportunities;
	uint64_t nr_annotation_findings; /* see `longpole coach` */
	bool opportunities_cut;          /* there are more of 1 % and above */
	struct report_runner_up {
		bool found;
		double length_ns;
		const char *state; /* topic that it has more of than the path; "" none */
		double more_ns;
	} runner_up;
};

struct report_options {
	unsigned nr_opportunities_max; /* 0: none, saves passes */
	unsigned nr_parts_max;         /* whose gains are predicted; 0: none, saves passes */
	bool all_intervals; /* of each gain; else of the one that the screen shows: #1, halved */
};
enum base_status report_build(const struct report_run *run, const struct report_options *opts,
	struct report **ret, struct base_err *err) BASE_MUST_CHECK;
struct report *report_free(struct report *r);
/* The first screen; with style->full all of it. */
void report_text(struct base_str *out, const struct report *r, const struct report_style *style);
json_t *report_json(const struct report *r); /* NULL: no memory */
/* Opportunities alone, each with its curve: `longpole whatif` without an edit. */
void report_opportunities_text(
	struct base_str *out, const struct report *r, const struct report_style *style);

/* ---- whatif ---------------------------------------------------------------------------------- */

/* methods: REPORT_METHOD_*; 0: both where they apply. ERR_NOTFOUND when a pattern matches nothing;
 * says what is near. */
enum base_status report_whatif_build(const struct report_run *run, const struct report_scenarios *s,
	unsigned methods, struct report_whatif **ret, struct base_err *err) BASE_MUST_CHECK;
struct report_whatif *report_whatif_free(struct report_whatif *w);
void report_whatif_text(
	struct base_str *out, const struct report_whatif *w, const struct report_style *style);
json_t *report_whatif_json(const struct report_whatif *w);

/* ---- path ------------------------------------------------------------------------------------ */

struct report_step { /* edges of one actor in one state that follow each other */
	const char *actor, *state, *where;
	const char *queue; /* "" or what was crossed to come here */
	enum model_state_kind kind;
	uint64_t begin_ns, end_ns, nr_edges;
	double weight_ns;
};
struct report_path {
	struct base_arena *arena;
	struct report_trace trace;
	uint64_t start_ns, end_ns;
	double elapsed_ns;
	struct report_step *step;
	size_t nr_steps;
};
struct report_path_options {
	uint64_t from_ns, to_ns; /* steps that overlap [from, to); to 0: end */
	size_t limit;            /* text: only that many, the longest; 0: all */
};
enum base_status report_path_build(const struct report_run *run,
	const struct report_path_options *opts, struct report_path **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct report_path *report_path_free(struct report_path *p);
void report_path_text(struct base_str *out, const struct report_path *p,
	const struct report_path_options *opts, const struct report_style *style);
json_t *report_path_json(const struct report_path *p, const struct report_path_options *opts);

/* ---- queues ---------------------------------------------------------------------------------- */

struct report_queue {
	const char *name, *type;
	uint32_t name_text;     /* the name's number in the model */
	bool is_token, is_lock; /* of threads and processors; one that is held */
	uint64_t nr_members;    /* queues of that name (one class of locks has many instances) */
	struct graph_queue_stats s; /* summed; max_units: the largest */
	double mean_units;
};
struct report_queues {
	struct base_arena *arena;
	struct report_trace trace;
	double elapsed_ns;
	struct report_queue *queue; /* by time waited, descending */
	size_t nr_queues;
};
enum base_status report_queues_build(const struct report_run *run,
	const char *pattern /* or NULL */, struct report_queues **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct report_queues *report_queues_free(struct report_queues *q);
void report_queues_text(struct base_str *out, const struct report_queues *q, size_t limit,
	const struct report_style *style);
json_t *report_queues_json(const struct report_queues *q);

/* ---- messages of MPI ------------------------------------------------------------------------- */

struct report_way {                 /* from one rank to another, over all communicators */
	int64_t from_rank, to_rank; /* -1: not known */
	const char *from, *to;      /* the same in words */
	struct model_mpi_traffic traffic;
};
struct report_messages {
	struct base_arena *arena;
	struct report_trace trace;
	struct report_way *way; /* the one that lets others wait longest first */
	size_t nr_ways;
	struct model_mpi_traffic all;
	struct model_link link; /* nr_messages 0: nobody waited for one */
};
/* ERR_NOTFOUND: there is no MPI in the trace. */
enum base_status report_messages_build(const struct report_run *run, struct report_messages **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct report_messages *report_messages_free(struct report_messages *r);
/* limit 0: all. */
void report_messages_text(struct base_str *out, const struct report_messages *r, size_t limit,
	const struct report_style *style);
json_t *report_messages_json(const struct report_messages *r);

/* ---- connections ----------------------------------------------------------------------------- */

enum { REPORT_CONNECTION_STATES = 3 };
struct report_connection {
	uint64_t id;
	uint32_t end;
	bool found;
	uint64_t start_ns, end_ns, nr_actors;
	double path_ns, unexplained_ns;
	struct report_connection_state {
		const char *name;
		double share;
	} state[REPORT_CONNECTION_STATES]; /* most first */
	size_t nr_states;
};
struct report_connections_sum { /* of all paths */
	double median_ns, p90_ns, max_ns, total_ns;
	struct report_connection_state state[REPORT_CONNECTION_STATES]; /* of all together */
	size_t nr_states, nr_paths;
};
/* An actor, or those of one group that served the same connections; and which. */
struct report_server {
	const char *name, *group;
	uint64_t nr_members;
	uint64_t *connection; /* ids */
	size_t nr_connections;
};
struct report_connections {
	struct base_arena *arena;
	struct report_trace trace;
	struct report_connection *connection;
	size_t nr_connections;
	struct report_server *server;
	size_t nr_servers;
	uint64_t nr_not_followed;
	struct report_connections_sum sum;
};
enum base_status report_connections_build(const struct report_run *run,
	struct report_connections **ret, struct base_err *err) BASE_MUST_CHECK;
struct report_connections *report_connections_free(struct report_connections *c);
void report_connections_text(struct base_str *out, const struct report_connections *c,
	size_t limit /* 0: all */, const struct report_style *style);
json_t *report_connections_json(const struct report_connections *c);

/* ---- loops ----------------------------------------------------------------------------------- */

enum { REPORT_LOOP_LANES = 4 }; /* three sizes more, then without end */
struct report_station {
	const char *actor, *queue; /* who, and through what it goes on; "" a link */
	bool space;                /* ... as room in it */
};
struct report_loop {
	const char *queue; /* what is finite */
	bool space, tokens;
	bool resizable;     /* its size is known or inferred: "k more" means something */
	uint64_t capacity;  /* 0: not known, or tokens */
	bool size_inferred; /* capacity is the most that it held, while somebody waited for room */
	uint64_t nr_queues, nr_rounds;
	uint64_t more[REPORT_LOOP_LANES - 1]; /* units */
	double latency_ns;                    /* of its crossings, on the path */
	struct report_station *station;       /* the receiver first; the last one closes the loop */
	size_t nr_stations;
	double speedup[REPORT_LOOP_LANES];
	const char *next; /* longest topic when there is no end of it */
};
struct report_loops {
	struct base_arena *arena;
	struct report_trace trace;
	double elapsed_ns;
	struct report_loop *loop; /* most gain first */
	size_t nr_loops, nr_found;
};
enum base_status report_loops_build(const struct report_run *run, size_t nr_loops_max /* 0: all */,
	struct report_loops **ret, struct base_err *err) BASE_MUST_CHECK;
struct report_loops *report_loops_free(struct report_loops *l);
void report_loops_text(
	struct base_str *out, const struct report_loops *l, const struct report_style *style);
json_t *report_loops_json(const struct report_loops *l);
/* ---- poles ----------------------------------------------------------------------------------- */

struct report_pole {
	const char *state, *where;
	double length_ns; /* of the critical path, with the poles before this one at no cost */
	double share;     /* of what of it is the program's own, in this state */
	struct report_answer then; /* the run with the poles before this one at no cost */
};
struct report_slack {
	const char *state, *where;
	uint64_t visits;
	double total_ns, path_ns; /* of all actors, without waiting; on the critical path */
	double drag_ns;           /* how much shorter the run is predicted to be without it */
	const char *drag_method;  /* report_method_of() */
	double slack_factor;  /* its visits may take so many times as long, and the run gets longer
				 by  the tolerance */
	bool slack_is_exact;  /* else at most that */
	bool slack_is_beyond; /* more than that was not tried */
};
struct report_poles {
	struct base_arena *arena;
	struct report_trace trace;
	double elapsed_ns, tolerance;
	struct report_own own;
	struct report_pole *pole; /* the longest first */
	size_t nr_poles;
	struct report_slack *slack; /* most time first */
	size_t nr_slacks;
};
struct report_poles_options {
	size_t nr_poles, nr_states; /* at most */
	double tolerance;           /* of slack: 0.01 is 1 % of the run */
};
enum base_status report_poles_build(const struct report_run *run,
	const struct report_poles_options *opts, struct report_poles **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct report_poles *report_poles_free(struct report_poles *p);
void report_poles_text(
	struct base_str *out, const struct report_poles *p, const struct report_style *style);
json_t *report_poles_json(const struct report_poles *p);

/* ---- queues --histogram ---------------------------------------------------------------------- */

struct report_histograms {
	struct report_queues *queues; /* the first nr_rows of them have pages */
	size_t nr_rows;
	struct graph_watch *watch; /* its rows are those of `queues` */
	uint64_t start_ns, end_ns;
};
/* limit 0: all that match the pattern (NULL: all). */
enum base_status report_histograms_build(const struct report_run *run, const char *pattern,
	size_t limit, struct report_histograms **ret, struct base_err *err) BASE_MUST_CHECK;
struct report_histograms *report_histograms_free(struct report_histograms *h);
void report_histograms_text(
	struct base_str *out, const struct report_histograms *h, const struct report_style *style);
json_t *report_histograms_json(const struct report_histograms *h);

/* ---- actors ---------------------------------------------------------------------------------- */

struct report_actor_state {
	enum model_state_kind kind;
	const char *name, *where;
	uint32_t state;
	uint64_t total_ns, visits;
	double path_ns;
	struct report_function function[REPORT_FUNCTIONS_MAX]; /* shares of its running time */
	size_t nr_functions;
};
struct report_had { /* the processor, while the actor was ready */
	const char *name;
	uint64_t wait_ns, nr;
};
struct report_actor { /* or a group of them */
	const char *name;
	bool is_thread;
	const char *cgroup; /* its path; "": not known; "several": members are in different ones */
	uint64_t nr_members;
	/* Its time, idle time and that of its machines aside: active + waiting + ready. */
	uint64_t total_ns, active_ns, waiting_ns, ready_ns;
	double path_ns;                   /* its criticality */
	struct report_actor_state *state; /* longest first */
	struct report_had *had;
	size_t nr_states, nr_had;
};
struct report_actors {
	struct base_arena *arena;
	struct report_trace trace;
	double elapsed_ns;
	struct report_actor *actor; /* by path time, then by active time */
	size_t nr_actors, nr_empty; /* the last nr_empty of them did nothing */
};
struct report_actors_options {
	const char *pattern;     /* of names or groups; NULL: all */
	bool groups;             /* one row a group */
	size_t limit, nr_states; /* text; 0: all */
};
enum base_status report_actors_build(const struct report_run *run,
	const struct report_actors_options *opts, struct report_actors **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct report_actors *report_actors_free(struct report_actors *a);
void report_actors_text(struct base_str *out, const struct report_actors *all,
	const struct report_actors_options *opts, const struct report_style *style);
json_t *report_actors_json(const struct report_actors *all);

/* ---- coach ----------------------------------------------------------------------------------- */

struct report_advice {                /* one thing to do */
	const char *check, *severity; /* "take_empty" ...; error, warning, info */
	const char *what, *todo;
	const char *where;   /* "function (file:line)" or "" */
	bool near_by, after; /* `where` is the last annotation before; is where it went in */
	const char *actor, *queue;
	uint64_t count, of, first_ns;
	double path_ns, total_ns; /* that it would explain; 0: a misuse */
	unsigned rank;
};
struct report_coach {
	struct base_arena *arena;
	struct report_trace trace;
	double elapsed_ns, unexplained_path_ns;
	double light_share;           /* of the path: waits for the outside and sleeps */
	bool light;                   /* lightly loaded: whatever is active lacks a wait */
	struct report_advice *advice; /* most valuable first */
	size_t nr;
	uint64_t nr_findings, nr_more_findings;
};
enum base_status report_coach_build(const struct report_run *run, struct report_coach **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct report_coach *report_coach_free(struct report_coach *c);
void report_coach_text(struct base_str *out, const struct report_coach *c,
	size_t limit /* 0: all */, const struct report_style *style);
json_t *report_coach_json(const struct report_coach *c);

#endif
