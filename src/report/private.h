/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - shared by the files of report/, not beyond. */
#ifndef LONGPOLE_REPORT_PRIVATE_H
#define LONGPOLE_REPORT_PRIVATE_H

#include "base/column.h"
#include "report/report.h"

#define REPORT_NONE    UINT32_MAX
#define report_width   base_text_width
#define report_right   base_str_add_right
#define report_percent base_str_add_share

/* Topics: states of one identity, which have one kind and name. Ids depend on the trace only, so one index serves every
 * pass over it. */
struct report_index {
	uint32_t nr_states, nr_topics;
	uint32_t *topic_of;    /* by state */
	uint32_t *first_state; /* by topic: its first state, which has its kind and name */
	bool *is_recorders;    /* by topic: longpole itself, which is nothing to improve */
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

/* Path time of each topic in a lane; topic_ns has ix->nr_topics entries, and so has observed_ns:
 * the same states' time without the lane's edits (NULL: not wanted). */
enum base_status report_lane_topics(struct graph *g, const struct report_index *ix, unsigned lane,
	double *topic_ns, double *observed_ns, double *ret_length_ns,
	struct base_err *err) BASE_MUST_CHECK;
/* Largest entry but `except`; REPORT_NONE when all are 0. */
uint32_t report_largest_topic(
	const double *topic_ns, const struct report_index *ix, uint32_t except);

/* report_queues_build(), and the model that it asked. */
enum base_status report_queues_model(const struct report_run *run, const char *pattern,
	struct report_queues **ret, struct model **ret_model, struct base_err *err) BASE_MUST_CHECK;
enum base_status report_fill_trace(struct report_trace *t, struct base_arena *a,
	const struct report_run *run, struct model *m, struct base_err *err) BASE_MUST_CHECK;
struct report_predictor;
/* parts.c: the parts of m's path, longest first, without predictions; of a trace they are the same
 * whoever asks. */
enum base_status report_fill_parts(struct report_parts *ret, struct base_arena *a,
	const struct report_run *run, struct model *m, const struct report_index *ix,
	struct base_err *err) BASE_MUST_CHECK;
/* What halving and removing the first of them would buy, as many and with as many intervals as opts
 * say: m is of the pass that the predictor began with. */
enum base_status report_predict_parts(struct report_parts *p, struct base_arena *a,
	struct report_predictor *predictor, struct model *m, const struct report_options *opts,
	struct base_err *err) BASE_MUST_CHECK;
/* "mutex m", "#2": which part is meant; NULL: none. */
/* All locks, on the path or not, by name, with the states that `locks` predicts by. */
enum base_status report_fill_lock_parts(struct report_parts *ret, struct base_arena *a,
	const struct report_run *run, struct base_err *err) BASE_MUST_CHECK;
const struct report_part *report_find_part(const struct report_parts *p, const char *name);
/* screen.c: in which place, doing what; after the rows. */
enum base_status report_describe_parts(struct report *r, struct model *m,
	const struct report_index *ix, struct base_err *err) BASE_MUST_CHECK;
/* After the finding. */
enum base_status report_fill_pole(struct report *r, struct base_err *err) BASE_MUST_CHECK;
void report_screen(struct base_str *out, const struct report *r, const struct report_style *style);
/* m is of the pass that the predictor learned from. */
enum base_status report_fill_opportunities(struct report *r, struct report_predictor *predictor,
	struct model *m, const struct report_index *ix, unsigned max,
	struct base_err *err) BASE_MUST_CHECK;
/* From this share of a row's samples on the row is called after the function alone. */
#define REPORT_FUNCTION_ALL 0.9
/* Nearly all of a row's running time is in it: what halving the row gains, halving it does, too.
 * NULL: there is none such. */
const struct report_function *report_main_function(const struct report_row *row);
/* A row that holds a lock: did others wait for it long enough to matter? */
bool report_topic_is_waited_for(
	struct model *m, const struct report_index *ix, const struct report_row *row);
/* What the path is, in a topic: "computing in f() (a.c:7), thread w #2". */
void report_topic_text(struct base_str *out, const struct report *r, struct model *m,
	const struct report_index *ix, uint32_t topic);
enum base_status report_fill_finding(struct report *r, struct model *m,
	const struct report_index *ix, struct base_err *err) BASE_MUST_CHECK;

/* Moves a finished text into the arena, and frees it; NULL: no memory. */
const char *report_keep(struct base_arena *a, struct base_str *s);
/* In sight of analysers: it never returns BASE_OK. */
static inline enum base_status report_no_memory(struct base_err *err)
{
	base_fail(err, BASE_ERR_NOMEM, "out of memory for the report");
	return BASE_ERR_NOMEM;
}

/* A zeroed array of the arena; NULL: no memory. */
void *report_array(struct base_arena *a, size_t nr, size_t elem_size_bytes);

/* Several views of one recording of the graph; ret[nr]. As report_graph_build(). */
enum base_status report_graph_build_views(const struct report_run *run,
	const struct report_graph_options *opts, unsigned nr, struct report_graph **ret,
	struct base_err *err) BASE_MUST_CHECK;

/* ---- replay ---------------------------------------------------------------------------------- */

bool report_replay_fits(const struct report_run *run); /* its log, in the memory that is allowed */
/* Of the recorded program's control group; all 0: none. */
const struct trace_quota *report_quota(const struct trace_reader *reader);
/* "its control group may use 1.5 processors ..." */
void report_quota_words(struct base_str *out, uint64_t quota_ns, uint64_t period_ns);
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
json_t *report_spins_json(const struct report_spins *s);

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
enum base_status report_ray_mend(struct report_ray *ray, double *speedup,
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
	struct model *m;
};
void report_shared_pass_fini(struct report_shared_pass *shared); /* twice, too */
struct report_learned {                                          /* of one run; {0} is empty */
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
/* "the run ends when a timer's signal says so"; false: it has none. */
json_t *report_box_json(const struct report_box *box);
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

/* ---- text ------------------------------------------------------------------------------------ */

enum report_color {
	REPORT_PLAIN,
	REPORT_BOLD,
	REPORT_DIM,
	REPORT_RED,
	REPORT_YELLOW,
	REPORT_GREEN
};
void report_color_begin(struct base_str *out, const struct report_style *st, enum report_color c);
void report_color_end(struct base_str *out, const struct report_style *st);
/* The beginning of a text that is no name, as a command line. */
void report_cut(
	struct base_str *out, const struct report_style *st, const char *text, size_t width);
/* Text shortened (report_add_elided()), then cut to `width` with ".." (or an ellipsis), padded with
 * blanks when `pad`. */
void report_cell(struct base_str *out, const struct report_style *st, const char *text,
	size_t width, bool pad);
/* The same, padded, of a place in the code: its file and line at the end are kept if they can. */
void report_place_cell(
	struct base_str *out, const struct report_style *st, const char *text, size_t width);
/* The same of the name that `nr` have: their number stands behind it, and is never cut off. */
void report_members_cell(struct base_str *out, const struct report_style *st, const char *name,
	uint64_t nr, size_t width);
/* Bar of `share` out of `width` columns, in eighths where the terminal can. Padded. */
void report_bar(struct base_str *out, const struct report_style *st, double share, unsigned width);
/* Lines of a table's rows; name_width and the columns are the layout's. */
size_t report_table_longest(const struct base_table *t, const void *rows, size_t nr);
void report_table_head(
	struct base_str *out, const struct base_layout *l, const struct report_style *st);
void report_table_line(struct base_str *out, const struct base_layout *l, const void *row,
	const struct report_style *st);
/* The head, at most `limit` rows (0: all), how many more there are. */
void report_table_lines(struct base_str *out, const struct base_layout *l, const void *rows,
	size_t nr, size_t limit, const struct report_style *st);

/* ---- crowd.c: all who had the processors that a path waited for ------------------------------ */

enum { REPORT_CROWD_MAX = 64 }; /* named apart; whoever comes later counts in the sum alone */
struct report_crowd {
	double path_ns; /* of all */
	struct report_holder {
		const char *name; /* the caller's */
		double path_ns;
	} had[REPORT_CROWD_MAX];
	size_t nr;
};
/* Counts what one of them had, by its name; NULL: nobody. */
void report_crowd_add(struct report_crowd *c, const char *had, double path_ns);
/* "waiting for a processor (this machine has 2): cc1 had it for 20 %, ld for 5 %, others for 9 %";
 * nr_processors 0: not known. Sorts. */
void report_crowd_text(
	struct base_str *out, struct report_crowd *c, double all_ns, uint64_t nr_processors);
void report_ns(struct base_str *out, double ns);
/* "xN" with a multiplication sign where it can be shown. */
const char *report_times(const struct report_style *st);
/* "1.25x"; of what leaves next to nothing of the run: ">999x". */
void report_speedup(struct base_str *out, const struct report_style *st, double speedup);
/* A paragraph: words wrapped to the style's columns, continuation lines indented. */
void report_wrap(struct base_str *out, const struct report_style *st, const char *label,
	size_t indent, const char *text);
const char *report_more(const struct report_style *st);  /* of what is cut off */
const char *report_arrow(const struct report_style *st); /* of what becomes what */
const char *report_dot(const struct report_style *st);
/* What to be careful about, a paragraph each; the first has the label CAVEATS. */
void report_text_caveats(
	struct base_str *out, const struct report *r, const struct report_style *st);
/* "NEXT  longpole COMMAND TRACE [EDIT]"; edit: quoted for a shell, or NULL */
void report_next_line(struct base_str *out, const struct report_style *st, const char *label,
	const char *command, const struct report_trace *t, const char *edit);

/* ---- JSON ------------------------------------------------------------------------------------ */

json_t *report_json_text(const char *text);
json_t *report_json_share(double share); /* rounded to six places */
json_t *report_json_ns(double ns);       /* rounded to an integer */
json_t *report_json_u64(uint64_t n);

/* ---- calls_events.c: what was counted in something ------------------------------------------- */

/* A column's head for an event. */
const char *report_event_short(const char *event);
/* Its place among the names; -1: it was not counted. */
int report_event_place(const char *const *name, unsigned nr, const char *event);
/* "0.50", "12.3"; '-' where per is 0. */
void report_event_ratio(struct base_str *out, double count, double per, size_t width);

/* ---- functions.c: where the processor was in a state, by samples ----------------------------- */

/* Adds a state's share with a weight to `f`, {0} at first. */
enum base_status report_function_add(struct report_function *f, struct base_arena *a,
	struct model *m, const struct model_function_share *share, double weight) BASE_MUST_CHECK;
/* Sorts them, most first, and makes shares of what was added with this sum of weights. */
void report_functions_finish(struct report_function *f, size_t nr, double weight);
void report_functions_text(struct base_str *out, const struct report_style *st,
	const struct report_function *f, size_t nr, size_t indent);
extern const struct base_table report_function_table;
json_t *report_functions_json(const struct report_function *f, size_t nr);

/* ---- whatif_best.c --------------------------------------------------------------------------- */

/* A merged trace, or one of the whole system, begins before the program whose path it is: replay
 * does so, too. */
bool report_replays_more(const struct report_whatif *w);
/* What replay lacks is given to it, in the run's order: where that makes the run longer although
 * the path gets shorter, it says nothing of the change. */
bool report_lacks_too_much(const struct report_whatif *w, const struct report_prediction *p);

/* ---- top.c ----------------------------------------------------------------------------------- */

struct live_window;
void report_top_finding(struct base_str *out, const struct live_window *w);
void report_top_tables(struct base_str *out, const struct live_window *w, size_t limit,
	const struct report_style *st);
/* With `hosts` a row's where is the host that it weighs most on. */
void report_top_json_tables(json_t *to, const struct live_window *w, size_t limit, bool hosts);

#endif
