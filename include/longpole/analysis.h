/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longpole/analysis.h - ask a trace what holds its run back, and what a change would gain. C11 or
 * C++17. Link with -llongpole (pkg-config longpole). The rules of longpole/trace.h hold here, too.
 *
 *     struct longpole_error error = {.size = sizeof error};
 *     struct longpole_answer answer = {.size = sizeof answer};
 *     struct longpole_analysis *analysis;
 *     if (longpole_analysis_open("a.lpt", NULL, &analysis, &error))
 *             complain(error.text);
 *     longpole_analysis_answer(analysis, &answer);
 *     puts(answer.pole);
 *     longpole_analysis_close(analysis);
 *
 * The answers are those of the command line: of `longpole report`, `path`, `queues` and `whatif`,
 * where doc/json.md says more of each value. What takes a pass over the trace is said below; the
 * others cost nothing. The one thing that the library leaves out is whatif's ledger of outcomes,
 * which is a file of the user's: without it intervals do not know how far off predictions were.
 *
 * Texts of an analysis have no control characters and are UTF-8.
 */
#ifndef LONGPOLE_ANALYSIS_PUBLIC_H
#define LONGPOLE_ANALYSIS_PUBLIC_H

#include "trace.h" /* statuses, errors, struct longpole_loss */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- an analysis ----------------------------------------------------------------------------- */

struct longpole_analysis;

struct longpole_analysis_options {
	size_t size;
	uint64_t max_memory_bytes; /* of the graph; 0: 2 GiB; beyond it LONGPOLE_STATUS_LIMIT */
	uint64_t from_ns, to_ns;   /* analyse this part of the run only; to 0: to the end */
	const char *start,
		*end;        /* of the path: "ACTOR", "ACTOR@STATE", "@STATE"; NULL: the run's */
	const char *process; /* of a recording of the system: whose path; NULL: the first's */
	uint64_t connection; /* only its path; 0: the whole run's */
	uint32_t nr_parts;   /* so many are predicted; 0: 5; 15 at most */
	uint32_t reserved;   /* 0 */
	/* Is told how far a pass over the trace is, from the thread that called; NULL: nobody. A new
	 * pass begins with done 0 and says what it is for. */
	void (*progress)(
		void *context, const char *what, uint64_t done_records, uint64_t all_records);
	void *progress_context;
};
/*
 * Analyses a trace: several passes over it, and simulations for the predictions. options: NULL for
 * the defaults. Of a cut or damaged trace the answer is that of the part that can be read, and
 * is_partial says so. LONGPOLE_STATUS_LACKS, LONGPOLE_STATUS_NOTFOUND: it has no path.
 */
int longpole_analysis_open(const char *path, const struct longpole_analysis_options *options,
	struct longpole_analysis **ret, struct longpole_error *error);
/* The same of a trace that is open, without from_ns and to_ns. It stays open, and nothing else is done with it, until the
 * analysis is closed; then it is at its end (longpole_trace_rewind()). */
int longpole_analysis_new(struct longpole_trace *trace,
	const struct longpole_analysis_options *options, struct longpole_analysis **ret,
	struct longpole_error *error);
void longpole_analysis_close(struct longpole_analysis *analysis);

/* A prediction: the run is so many times as fast, and nine times in ten between low and high; where
 * these are equal there is no interval. It is a part of other structs and never becomes larger. */
struct longpole_gain {
	double speedup, low, high; /* 0: not predicted */
	const char *method;        /* "path", "replay", "both"; "" not predicted */
};

struct longpole_answer {
	size_t size;
	const char *pole;      /* "The long pole is ...": what to change */
	const char *finding;   /* what the critical path is in most, changeable or not */
	const char *certainty; /* how sure that is */
	uint64_t start_ns, end_ns;
	uint64_t elapsed_ns;     /* length of the critical path */
	uint64_t unexplained_ns; /* of it: waits that nothing recorded explains */
	double explained_share;  /* of it, 0 to 1 */
	double polled_share;     /* of it: naps again and again at one place */
	uint64_t nr_threads;
	uint32_t is_partial; /* records of the trace are missing: longpole_analysis_loss() */
	uint32_t nr_parts, nr_states;
};
int longpole_analysis_answer(const struct longpole_analysis *analysis, struct longpole_answer *ret);

/* What the critical path is made of, as somebody would change it, longest first. The first is the
 * long pole, and is called "#1" in scenarios. */
struct longpole_part {
	size_t size;
	const char *name;  /* "mutex m", "sleeping", "compress()" */
	const char *where; /* "many_t.c:4"; "" not known */
	const char *text;  /* "mutex m: its holders sleep, in ..."; "" nothing more is known */
	const char *kind;  /* of state: "run", "wait", "sleep", "io", ... */
	uint64_t path_ns;  /* its time on the critical path */
	double share;      /* of the path without what is not the program's doing */
	uint32_t is_lock;
	uint32_t is_predicted; /* the next three are known */
	struct longpole_gain halved, gone;
	const char *
		then; /* the longest part of the path that is left when this one is gone; "" none */
	/* Of a lock, by all threads, on the path or not: */
	uint64_t nr_waits, wait_ns, waiters_max;
};
/* The i-th; LONGPOLE_STATUS_END: no more. */
int longpole_analysis_part(
	const struct longpole_analysis *analysis, uint32_t i, struct longpole_part *ret);

/* States of the critical path, longest first: what an actor, or a group of equal ones, was in. */
struct longpole_state {
	size_t size;
	const char *state, *where; /* "running parse()"; where it began, "" not known */
	const char *actor,
		*group;   /* the one that has nearly all of it, else the group; the group */
	const char *kind; /* "run", "wait", "sleep", "io", ... */
	uint64_t path_ns, unexplained_ns;
	double share;         /* of the path */
	double waiting_share; /* of its time: it did not execute */
	uint64_t visits;
	uint32_t nr_actors, reserved;
};
int longpole_analysis_state(
	const struct longpole_analysis *analysis, uint32_t i, struct longpole_state *ret);

/* What was lost, is damaged, or is to be known for another reason: longpole_trace_loss(), and what
 * the analysis found. */
int longpole_analysis_loss(
	const struct longpole_analysis *analysis, uint32_t i, struct longpole_loss *ret);

/* ---- the path, step by step ------------------------------------------------------------------ */

struct longpole_path;
/* A pass over the trace, which must still be there. */
int longpole_path_new(struct longpole_analysis *analysis, struct longpole_path **ret,
	struct longpole_error *error);
void longpole_path_free(struct longpole_path *path);

struct longpole_step {
	size_t size;
	const char *actor, *state, *where; /* as in struct longpole_state */
	const char *kind;
	const char *queue; /* through which the path came here from another actor; "" it did not */
	uint64_t begin_ns, end_ns;
	uint64_t increment_ns; /* its part of the path's length */
	uint64_t nr_edges;     /* edges of the graph that are one step here */
};
uint64_t longpole_path_nr_steps(const struct longpole_path *path);
/* In order of time; LONGPOLE_STATUS_END: no more. */
int longpole_path_step(const struct longpole_path *path, uint64_t i, struct longpole_step *ret);

/* ---- queues ---------------------------------------------------------------------------------- */

struct longpole_queues;
/* A pass over the trace, which must still be there. pattern: part of a name, or a glob; NULL: all.
 * LONGPOLE_STATUS_NOTFOUND: it matches none. */
int longpole_queues_new(struct longpole_analysis *analysis, const char *pattern,
	struct longpole_queues **ret, struct longpole_error *error);
void longpole_queues_free(struct longpole_queues *queues);

struct longpole_queue { /* those of one name together */
	size_t size;
	const char *name, *type; /* type: "mutex", "pipe", "queue", ... */
	uint64_t nr_members;
	uint64_t nr_enqueues, nr_dequeues, enqueued_units, dequeued_units;
	uint64_t nr_waits_for_units, wait_for_units_ns; /* of all actors, on the path or not */
	uint64_t nr_waits_for_room, wait_for_room_ns;
	uint64_t nr_latencies,
		latency_ns;    /* from when the awaited was there to when its waiter went on */
	uint64_t residence_ns; /* that units lay in it */
	uint64_t max_units;
	double mean_units; /* over time */
};
uint64_t longpole_queues_nr(const struct longpole_queues *queues);
/* Those most waited at first; LONGPOLE_STATUS_END: no more. */
int longpole_queues_queue(
	const struct longpole_queues *queues, uint64_t i, struct longpole_queue *ret);

/* ---- predictions ----------------------------------------------------------------------------- */

struct longpole_prediction_options {
	size_t size;
	uint32_t methods; /* bits: 1 the path's, 2 replay's; 0: both where they apply */
	uint32_t is_self; /* a function is only what runs in it, not what it calls */
};
struct longpole_predictions;
/*
 * Predicts scenarios: passes over the trace, which must still be there, and simulations. The text is
 * that of a file for `longpole whatif --scenario`: an edit a line, an empty line between scenarios,
 * as "#1=-50%", "scale 'parse*'=-30%", "remove 'mutex m'"; longpole-whatif(1) lists the edits.
 * options: NULL for the defaults. LONGPOLE_STATUS_USAGE: an edit is wrong; the text names its line.
 * LONGPOLE_STATUS_NOTFOUND: a pattern matches nothing; the text says what is near.
 */
int longpole_predictions_new(struct longpole_analysis *analysis, const char *scenarios,
	const struct longpole_prediction_options *options, struct longpole_predictions **ret,
	struct longpole_error *error);
void longpole_predictions_free(struct longpole_predictions *predictions);

struct longpole_prediction {
	size_t size;
	struct longpole_gain gain; /* what is believed; speedup 0: somebody would wait for ever */
	uint64_t elapsed_ns;       /* the run's length then: that of now, by the speed-up */
	const char *next;          /* what the path is longest in then; "" not known */
	double next_share;         /* of it */
	/* The run lasts until a timer's signal: so much more is done in that time; 0: it does not. */
	double throughput, throughput_low, throughput_high;
	uint64_t nr_stuck; /* actors that would wait for ever, by replay */
	const char *stuck; /* one of them, and for what; "" none */
	double path_speedup,
		replay_speedup; /* each method's own; 0: it was not asked or cannot say */
	uint32_t is_estimated;  /* shares of samples were used */
	uint32_t nr_edits;
};
uint64_t longpole_predictions_nr(const struct longpole_predictions *predictions);
/* Of the i-th scenario; LONGPOLE_STATUS_END: no more. */
int longpole_predictions_prediction(const struct longpole_predictions *predictions, uint64_t i,
	struct longpole_prediction *ret);

#ifdef __cplusplus
}
#endif

#endif
