/* SPDX-License-Identifier: Apache-2.0 */
/* predictor.h - what those ask who make answers: passes of the model, topics, simulations, predictions. */
#ifndef LONGPOLE_REPORT_PREDICTOR_H
#define LONGPOLE_REPORT_PREDICTOR_H

#include "report/predict/predict.h"

/* ---- index.c: topics and passes -------------------------------------------------------------- */

/* Topics: states of one identity, which have one kind and name. Ids depend on the trace only, so one index serves every
 * pass over it. */
struct report_index {
	uint32_t nr_states, nr_topics;
	uint32_t *topic_of;    /* by state */
	uint32_t *first_state; /* by topic: its first state, which has its kind and name */
	bool *is_recorders;    /* by topic: longpole itself, which is nothing to improve */
	bool *is_apart;        /* by topic: not the program's doing (report_why_apart()) */
};
enum base_status report_index_init(
	struct report_index *ix, struct model *m, struct base_err *err) BASE_MUST_CHECK;
void report_index_fini(struct report_index *ix);

struct report_pass_options {
	const struct graph_scenario *scenario;
	unsigned nr_scenarios;
	bool keep_path, runner_up;
	bool crossings;
	bool connections; /* end n of the graph is connection n's */
	const struct graph_sink *sink;
	const struct graph_listener *listener;
	struct graph_watch *watch; /* NULL: none */
};
/* One run of the model over the whole trace. */
enum base_status report_pass(const struct report_run *run, const char *what,
	const struct report_pass_options *opts, struct model **ret,
	struct base_err *err) BASE_MUST_CHECK;

enum base_status report_no_path(struct base_err *err);

/* own.c: what of a path is the program's own doing. */
enum report_apart report_why_apart(
	const struct model *m, uint32_t state); /* REPORT_APART_NR: it is its own */
/* A path of that length; then state by state. false: it was set apart. */
void report_own_begin(struct report_own *own, double elapsed_ns);
bool report_own_add(struct report_own *own, const struct model *m, uint32_t state, double path_ns);
enum base_status report_own_path(struct report_own *own, struct model *m,
	struct base_err *err) BASE_MUST_CHECK; /* of the run */
double report_own_share(const struct report_own *own, double path_ns);
/* Is what is apart worth a word? The words: "shares are of the path without the 52 % that ..."; else
 * none. */
bool report_own_tells(const struct report_own *own);
void report_own_words(struct base_str *s, const struct report_own *own);

/* lanes.c: what becomes of the longest path with edits. */
struct report_lane_state { /* of an actor's state on that path */
	uint32_t state;
	double path_ns, observed_ns; /* observed: without the edits */
};
struct report_lane {
	double length_ns;
	const struct report_lane_state *state; /* longest first */
	size_t nr_states;
};
/* As many scenarios as there are, in as few passes as they take: ret[i] is of lane[i], and lives as
 * long as both the arena and what the run shares. ERR_NOMEM, ERR_LIMIT, or why a pass failed. */
enum base_status report_lanes(const struct report_run *run, const char *what,
	const struct graph_scenario *lane, size_t nr, struct report_lane *ret,
	struct base_arena *arena, struct base_err *err) BASE_MUST_CHECK;
/* As report_lane_topics(). */
void report_lane_sums(const struct report_lane *lane, const struct report_index *ix,
	double *topic_ns, double *observed_ns);
/* The pass that is shared is told to a tape as well as to `next` (NULL: nobody). */
struct report_shared_pass;
enum base_status report_shared_tape(struct report_shared_pass *shared, const struct report_run *run,
	const struct graph_sink *next, const struct graph_sink **ret,
	struct base_err *err) BASE_MUST_CHECK;
/* Nobody asks any more: the tape and the answers go. Twice, too. */
void report_shared_lanes_fini(struct report_shared_pass *shared);

/* Path time of each topic in a lane; topic_ns has ix->nr_topics entries, and so has observed_ns:
 * the same states' time without the lane's edits (NULL: not wanted). */
enum base_status report_lane_topics(struct graph *g, const struct report_index *ix, unsigned lane,
	double *topic_ns, double *observed_ns, double *ret_length_ns,
	struct base_err *err) BASE_MUST_CHECK;
/* Largest entry but `except`, of the program's own if there is one; REPORT_NONE when all are 0. */
uint32_t report_largest_topic(
	const double *topic_ns, const struct report_index *ix, uint32_t except);
/* Its part of what is the program's own doing; of all of it when it is none. */
double report_topic_share(
	const double *topic_ns, const struct report_index *ix, uint32_t topic, double length_ns);

enum base_status report_fill_trace(struct report_trace *t, struct base_arena *a,
	const struct report_run *run, struct model *m, struct base_err *err) BASE_MUST_CHECK;

/* ---- replay ---------------------------------------------------------------------------------- */

bool report_replay_fits(const struct report_run *run); /* its log, in the memory that is allowed */
/* Of the recorded program's control group; all 0: none. */
const struct trace_quota *report_quota(const struct trace_reader *reader);
enum base_status report_replay_new(const struct report_run *run, struct graph_replay **ret,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status report_replay_base(struct report_replay_run *ret, const struct report_run *run,
	struct graph_replay *log, struct base_err *err) BASE_MUST_CHECK;
/* Under other assumptions, too: as many as so many answers are to have. */
enum base_status report_replay_vary(struct report_replay_run *ret, const struct graph_replay *log,
	size_t nr_answers, struct base_err *err) BASE_MUST_CHECK;
/* For each of so many answers; the more, the fewer. */
unsigned report_replay_nr_variants(const struct graph_replay *log, size_t nr_answers);
/* Which states it is to be widened by: m is the log's model. After report_replay_base(). */
enum base_status report_replay_spins(
	struct report_replay_run *ret, struct model *m, struct base_err *err) BASE_MUST_CHECK;

/* spins.c */
enum base_status report_fill_spins(struct report_spins *ret, struct base_arena *arena,
	struct model *m, struct base_err *err) BASE_MUST_CHECK;
/* Of lane 0's path: naps again and again at one place. */
enum base_status report_polled_path_ns(
	double *ret_ns, struct model *m, struct base_err *err) BASE_MUST_CHECK;
void report_polled_words(struct base_str *s, double share);
/* The caveat, if there is any; returns whether. */
bool report_spins_text(struct base_str *out, const struct report_spins *s,
	const struct report_style *st, const char *label, const char *then);
extern const struct base_table report_spin_table, report_box_table;

/* lane: the estimate, and when it is one the ends of its interval. *ret_path, when not NULL: the
 * graph of the first lane simulated, for report_replay_next(); the caller frees it; NULL: somebody
 * waits for ever. */
enum { REPORT_LANES_MAX = 3 };
struct report_ray;
struct report_simulated;
enum base_status report_replay_predict(struct report_replay_prediction *ret,
	const struct report_replay_run *base, const struct graph_replay *log,
	const struct graph_scenario *lane, unsigned nr_lanes, struct report_ray *ray,
	struct graph **ret_path, struct base_err *err) BASE_MUST_CHECK;
/* Of each lane by itself, without intervals; 0: somebody would wait for ever. */
enum base_status report_replay_speedups(double *ret, const struct report_replay_run *base,
	const struct graph_replay *log, const struct graph_scenario *lane, unsigned nr,
	struct report_simulated *known, struct base_err *err) BASE_MUST_CHECK;
/* ray.c: less of the same work is never faster. {0} is an empty one, for one log; it remembers the
 * last ray, and all that was simulated. */
enum { REPORT_RAY_MAX = 16 };
/* simulate.c: what came out of simulations of one log, by their edits and assumptions. */
struct report_simulated {
	struct base_map number; /* of the result; the key is a hash */
	struct graph_replay_result *result;
	size_t nr, capacity;
};
struct report_ray {
	struct report_simulated known;
	struct graph_edit *edit; /* at its end */
	size_t nr_edits, capacity;
	bool is_fine;
	unsigned nr; /* points of its grid */
	double reduction[REPORT_RAY_MAX], speedup[REPORT_RAY_MAX];
};
enum base_status report_ray_mend(struct report_ray *ray, double *speedup, double *reach,
	const struct report_replay_run *base, const struct graph_replay *log,
	const struct graph_scenario *lane, struct base_err *err) BASE_MUST_CHECK;
void report_ray_fini(struct report_ray *ray);
/* The longest topic of that path. m: of the log. */
enum base_status report_replay_next(struct report_replay_prediction *ret, struct graph *path,
	const struct graph_replay *log, struct model *m, const struct report_index *ix,
	struct base_arena *arena, struct base_err *err) BASE_MUST_CHECK;

/* predict.c: how much faster the run is with edits, the same for whichever command asks. */
struct graph_tokens;
struct report_shared_pass { /* of one run; {0} is empty */
	bool has_all;       /* to be set: the pass is made with all that anybody might ask for */
	struct model *m;
	struct report_pass_options made; /* with which */
	/* lanes.c */
	struct graph_tape *tape; /* NULL: other scenarios need the trace */
	struct base_map number;  /* of the answer; the key is a hash of the edits */
	struct report_lane *lane;
	size_t nr_lanes, lanes_capacity;
	struct base_arena *arena; /* of the answers */
};
void report_shared_pass_fini(struct report_shared_pass *shared); /* twice, too */
/* The run with a pass of its own to share, unless it shares one already. */
struct report_run report_sharing(const struct report_run *run, struct report_shared_pass *own);
struct report_learned { /* of one run; {0} is empty */
	bool recorded;  /* a pass filled the log, or it has none */
	bool read_path; /* these are set */
	double elapsed_ns;
	double *path_ns; /* the run's, by state */
	bool *is_sized;  /* by queue: the path knows what more of it does */
	uint32_t nr_states, nr_queues;
	struct report_box box;
	struct graph_replay *log;    /* NULL: by the path alone */
	struct graph_tokens *tokens; /* NULL: a part of the run, or a long one */
	bool has_base;
	struct report_replay_run base;
	struct report_ray ray;
};
void report_learned_fini(struct report_learned *l); /* twice, too */
struct report_predictor {                           /* of one builder */
	const struct report_run *run;
	struct report_learned *learned, own; /* the run's, or its own */
	const struct graph_replay *log;      /* NULL: by the path alone, with so many answers */
	struct report_replay_run base;       /* varied as often as so many answers allow */
};
/* A pass of the caller's that the predictor learns from (unless that was done; where its log does
 * not fit, one without), and ready, as often as there is another number of answers to ask for.
 * Ready alone: by the path. */
enum base_status report_predictor_ready(struct report_predictor *p, struct model *m,
	size_t nr_answers, struct base_err *err) BASE_MUST_CHECK;
enum base_status report_predictor_pass(struct report_predictor *p, const struct report_run *run,
	const char *what, struct report_pass_options *opts, struct model **ret,
	struct base_err *err) BASE_MUST_CHECK;
/* From now on answers have no intervals, which most simulations are for. */
void report_predictor_leave_intervals(struct report_predictor *p);
/* path_ns: the longest path with these edits. */
enum base_status report_predictor_ask(struct report_predictor *p, const struct graph_scenario *lane,
	double path_ns, struct report_answer *ret, struct base_err *err) BASE_MUST_CHECK;
bool report_path_can(const struct model *m, const struct graph_edit *e);
/* No more can be won than that part of what all of a lock's holds take. */
double report_most_speedup(double elapsed_ns, double held_ns, double reduction);
/* The scenario in which that share of each of these states takes less time: by 0.5, half of it; by
 * 1, none, and nobody waits for what follows. */
enum base_status report_shorter(struct base_arena *a, const struct report_state_share *state,
	size_t nr, double reduction, struct graph_scenario *ret,
	struct base_err *err) BASE_MUST_CHECK;
void report_predictor_fini(struct report_predictor *p); /* also after a failure; twice */
/* Less of some states and no other change. */
bool report_is_less_work(const struct graph_scenario *lane);
/* A change makes nothing slower than by the most that it makes any state; at least 1. */
double report_most_factor(const struct graph_scenario *lane);
/* box.c: does the run last until a timer's signal? lane: lane 0's path. */
void report_find_box(struct report_box *ret, struct model *m, const struct graph_lane_result *lane);
enum base_status report_fill_box(struct report_box *ret, struct base_arena *arena, struct model *m,
	struct base_err *err) BASE_MUST_CHECK; /* and its text */
/* ... then what is predicted is more work in that time. */
void report_best_in_box(struct report_best *b, const struct report_box *box, double elapsed_ns,
	const struct report_prediction *p);
/* ranks.c: what of an MPI program is not in the trace; texts are the arena's. */
enum base_status report_fill_ranks(struct report_ranks *ret, struct base_arena *arena,
	struct model *m, struct base_err *err) BASE_MUST_CHECK;
/* What a table says that a change gains: where the run lasts for a time, of its work. */
double report_best_gain(const struct report_best *b);
/* "the run ends when a timer's signal says so"; false: it has none. */
bool report_box_words(struct base_str *s, const struct report_box *box);
/* The path itself stays a path when its states become shorter: none is shorter than what is left of
 * it then. path_ns: of the run, by state. 0: edits of another kind. */
double report_path_floor(const double *path_ns, uint32_t nr_states, double elapsed_ns,
	const struct graph_scenario *lane);
/* No run is shorter than its pools' tokens are held; 0: nothing is known of them. */
double report_token_bound(
	const struct graph_tokens *tokens, const struct graph_scenario *lane, double elapsed_ns);

/* simulate.c: all of them, on several threads. Errors: the first one's that failed. */
struct report_simulation {
	const struct graph_scenario *edits; /* NULL: none */
	struct graph_replay_assumed assumed;
	const struct graph_sink *out; /* hears what is simulated, on some thread; NULL */
	struct graph_replay_result result;
};
enum base_status report_simulate(const struct graph_replay *log, struct report_simulation *x,
	size_t nr, struct base_err *err) BASE_MUST_CHECK;
/* The same, at most REPORT_SIMULATIONS_MAX; those that are known, and that nobody hears, are not
 * made again. */
enum { REPORT_SIMULATIONS_MAX = 2 * REPORT_RAY_MAX };
enum base_status report_simulate_once(struct report_simulated *known,
	const struct graph_replay *log, struct report_simulation *x, size_t nr,
	struct base_err *err) BASE_MUST_CHECK;
void report_simulated_fini(struct report_simulated *known);

/* ---- whatif_best.c --------------------------------------------------------------------------- */

/* A merged trace, or one of the whole system, begins before the program whose path it is: replay
 * does so, too. */
bool report_replays_more(const struct report_whatif *w);
/* What replay lacks is given to it, in the run's order: where that makes the run longer although
 * the path gets shorter, it says nothing of the change. */
bool report_lacks_too_much(const struct report_whatif *w, const struct report_prediction *p);

#endif
