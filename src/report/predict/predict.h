/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.h - a run and passes over it, the edit grammar, and what a change of the program would do.
 */
#ifndef LONGPOLE_REPORT_PREDICT_H
#define LONGPOLE_REPORT_PREDICT_H

#include "graph/replay.h"
#include "model/model.h"
#include "report/draw/draw.h"

/* ---- what every builder needs ---------------------------------------------------------------- */

struct report_run {
	struct trace_reader *reader;
	const char *trace_path;                /* as the user gave it; for "next" lines and JSON */
	size_t max_memory_bytes;               /* of the graph; 0: its default */
	uint64_t from_ns, to_ns;               /* the window to analyse; to 0: to the end */
	const struct model_place *start, *end; /* of the path; NULL: the program's */
	const char *start_text, *end_text;     /* as the user gave them; NULL: not at all */
	uint64_t connection;                   /* only its path; 0: the whole program's */
	const char *process; /* whose last moment ends the path; NULL: see model.h */
	/* May be NULL. A new pass begins with done 0 and says what it is for. */
	void (*progress)(void *ctx, const char *what, uint64_t done_records, uint64_t all_records);
	void *progress_ctx;
	/* What predictions rest on, learned once for several builders (predict.c); NULL: each
	 * learns it anew. */
	struct report_learned *learned;
	/* The pass over the trace that asks for nothing special, made once for several builders
	 * (index.c), the path's pieces kept; NULL: each makes it anew. */
	struct report_shared_pass *shared;
};

/* Where a path starts and ends, by pattern: "ACTOR", "ACTOR@STATE", "@STATE" (as in whatif). */
struct report_places {
	struct base_arena *arena;
	struct model_place start, end;
};
/* A pass over the trace finds what the patterns (NULL: none) mean: then set run->start, run->end.
 * ERR_NOTFOUND says what is near. Call _fini also after a failure. */
enum base_status report_places_find(struct report_places *p, const struct report_run *run,
	const char *start, const char *end, struct base_err *err) BASE_MUST_CHECK;
void report_places_fini(struct report_places *p);
/* "rank 3 of 8 has no trace: ..." of those that are false; nothing where there are none. */
void report_missing_ranks(struct base_str *out, const bool *recorded, uint32_t nr_ranks);

/* The run, or parts of it, last until a timer's signal (model/box.c): that time does not change. */
struct report_box {
	double fixed_ns;   /* 0: there is none */
	double after_ns;   /* from the last signal to the end */
	bool ends_run;     /* the end followed at once: the signal decided it; false: who knows */
	uint32_t site;     /* where it was set last */
	const char *where; /* ... as a text */
	uint64_t nr;       /* signals */
	int from_outside;  /* model_ended_from_outside(); 0: it was timers */
};
/* An answer to "how much faster is the run then", and its interval; low == high: it has none. */
struct report_best {
	double replay_share; /* of the answer; 0: the path's, 1: replay's */
	bool no_interval;    /* simulated, but too long a log to be simulated otherwise, too */
	bool none;           /* replay alone was asked, and something would wait for ever */
	double speedup, low, high;
	/* By how much more it does in the time that it has: what the speed-up would be if the run
	 * did not last until a timer's signal; 0: it does not. */
	double throughput, throughput_low, throughput_high;
};

/* How much of a state's path time a part has. */
struct report_state_share {
	uint32_t state;
	double share, path_ns; /* share: of the state's visits; path_ns: of the critical path */
	bool follows; /* a wait or a hand-off: counted, but shortened by no edit of its own */
	bool apart;   /* not counted: not the program's doing; but as short as the rest then */
};

/* What is on the path and not the program's doing, by reason (enum report_apart). */
enum report_apart {
	REPORT_APART_PROCESSOR, /* other programs had the processors */
	REPORT_APART_SCHEDULER, /* nobody had the processor: the scheduler took its time */
	REPORT_APART_OUTSIDE,   /* whoever is at the other end was not recorded */
	REPORT_APART_RECORDER,  /* longpole itself */
	REPORT_APART_IDLE,      /* nothing was recorded of what ran */
	REPORT_APART_NR
};
/* A path, and what of it the program can change: of that are all shares (own.c). */
struct report_own {
	double elapsed_ns, apart_ns[REPORT_APART_NR], own_ns; /* own: without what is apart */
};

/* A function that, by its code, only waited for a while: nobody recorded what for. */
enum { REPORT_SPINS_MAX = 4 };
struct report_spin {
	const char *function, *word; /* word: the variable that it reads; "" not known */
	double spun_ns;              /* of all threads, on the path or not */
	double path_ns;              /* of it: on the path */
	double share, path_share;    /* of the elapsed time: may be above 1; of the path */
};
struct report_spins {
	struct report_spin spin[REPORT_SPINS_MAX]; /* longest first, of 1 % and more */
	size_t nr;
};

/* ---- edits, and what is predicted of them ---------------------------------------------------- */

enum report_edit_verb {
	REPORT_EDIT_scale,
	REPORT_EDIT_balance, /* of states: all ranks take the mean of what they spend in them */
	REPORT_EDIT_elide,   /* of states: no time, and what is waited for in it does not hold */
	REPORT_EDIT_ignore_queue,
	REPORT_EDIT_unbound_queue,
	REPORT_EDIT_resize_queue,
	REPORT_EDIT_add_processors,
	REPORT_EDIT_link_rate,   /* factor: of the time that a link's line transmits */
	REPORT_EDIT_link_latency /* factor: of the delay on its cable */
};
struct report_edit {
	enum report_edit_verb verb;
	const char *text, *pattern; /* the edit as given; what it applies to */
	double factor;
	uint64_t units;
};
struct report_scenario {
	struct report_edit *edit;
	size_t nr_edits;
};
struct report_scenarios {
	struct base_arena *arena;
	struct report_scenario *scenario;
	size_t nr, capacity;
	bool self; /* a function is only what runs in it, not what it calls */
};
enum { REPORT_SCENARIOS_MAX = 256, REPORT_EDITS_MAX = 64 };

void report_scenarios_fini(struct report_scenarios *s);
/* Words of a command line: edits, scenarios separated by "--". ERR_USAGE says which word is wrong.
 */
enum base_status report_scenarios_words(struct report_scenarios *s, char *const *word, size_t nr,
	struct base_err *err) BASE_MUST_CHECK;
/* A file's text: one edit a line, a blank line separates scenarios, # begins a comment. */
enum base_status report_scenarios_text(struct report_scenarios *s, const char *text,
	const char *path, struct base_err *err) BASE_MUST_CHECK;
bool report_begins_edit(const char *word);
/* Case-sensitive: a glob when it has one of *?[, else a substring. */
bool report_pattern_matches(const char *pattern, const char *text);
/* As that, but only as words of their own: 'filter' is in "running filter", not in "filtered". */
bool report_pattern_matches_word(const char *pattern, const char *text);

struct report_balance { /* what ranks, or threads, spend in some states */
	uint32_t nr;    /* that spend any time in them */
	bool of_ranks;
	double mean_ns, most_ns;
	uint32_t most_actor; /* of the one that spends most */
};
struct report_match { /* what an edit applied to */
	const char *edit;
	uint64_t nr_states, nr_queues;
	/* Of the states that were scaled, weighted by function share. Where more of them is not the
	 * program's doing (apart) than is, path_share is of the whole path. */
	double path_ns, apart_ns, path_share;
	double waited_ns; /* in these states, by all, on the path or not */
	bool elided;
	const char *example;
	bool estimated; /* function shares of samples were used */
	/* resize_queue: what the largest of the queues held; 0: tokens. Inferred: nobody said so,
	 * it is the most that it held in the run, in which somebody waited for room. */
	uint64_t size;
	bool size_inferred;
	uint64_t nr_never_full;        /* resize_queue: all of them; nobody waited for room */
	struct report_balance balance; /* nr 0: it is no balance */
	const char *most;              /* of that: the one that spends most */
};
enum { REPORT_METHOD_path = 1, REPORT_METHOD_replay = 2 };
enum { REPORT_VARIANTS = 11 };
/* A run's length is that far off the usual one of its program, at rest (standard deviation), which
 * one recording cannot say; nine of ten pairs of runs differ by less than RUNS_DIFFER. */
#define REPORT_RUN_DEVIATES 0.02
#define REPORT_RUNS_DIFFER  (1.645 * M_SQRT2 * REPORT_RUN_DEVIATES)
#define REPORT_POLLS_FROM                                                                          \
	0.01 /* of the elapsed time: what spins or polls for less is not looked at */
enum { REPORT_SPIN_STATES = 16 };
/* A state with samples in loops that only wait, or that naps again and again: such a share of it
 * would go if it were a wait for what another thread does sooner. */
struct report_spin_state {
	uint32_t state;
	double share, spun_ns; /* of all actors */
	bool polls;            /* it naps again and again (model/naps.c) */
};
struct report_replay_run { /* the run simulated as it was */
	double recorded_ns, replayed_ns;
	double bare_ns; /* replayed, if nobody had recorded */
	/* What share of it and of all answers is the model's in which whoever waits for a processor
	 * gets the next one, and how long that one takes if nobody had recorded. */
	double plain_share, plain_ns;
	double usual_ns;  /* both models', so weighted, if nobody had recorded */
	double own_error; /* share: how far replayed_ns is off */
	uint64_t nr_stuck, nr_processors;
	/* Waits whose end is not in the trace: so many, so long; the same if they took no time. */
	uint64_t nr_given, given_ns;
	double at_once_ns;
	uint64_t wake_ns; /* learned: what waking a sleeper costs its waker; 0: it could not be */
	bool learned;   /* hand-offs of waits that a change makes longer or shorter are modelled */
	bool is_system; /* programs that have nothing to do with each other share the processors */
	/* The same under other assumptions; 0 of them: the log is long. */
	unsigned nr_variants;
	double variant_ns[REPORT_VARIANTS];
	double cost_share; /* what recording took, but what is taken off where it was */
	struct report_spin_state spin[REPORT_SPIN_STATES];
	unsigned nr_spins;
	bool spins;                   /* some of these spin */
	double unexplained_ns;        /* of the path: waits that no recorded event ended */
	double polled_ns;             /* of the path: naps again and again (model/naps.c) */
	double ready_ns, ready_share; /* all threads: ready without a processor; by time on one */
};
struct report_replay_prediction {
	bool made;
	double length_ns;          /* of the run, at that speed-up */
	double speedup, low, high; /* ends of its interval; equal: it has none */
	double placed_ns, any_ns;  /* of the changed run, by either model; 0: one model only */
	uint64_t nr_stuck;         /* actors that wait for ever after the change */
	/* What is believed (ray.c): not less than for a smaller reduction of the same states; where
	 * somebody would wait for ever, that smaller one's; 0: it is the speed-up itself. So far
	 * towards this reduction that one is; 1: nobody waits for ever, or does with more of it. */
	double ray_speedup, ray_reach;
	uint32_t stuck_actor, stuck_queue; /* of the graph: one of them, and what it waits for */
	uint64_t stuck_ns;
	bool stuck_anew;   /* in the run it had it at once */
	const char *stuck; /* ... in words; NULL: not known */
	bool others_stay;  /* or would, if other programs had a processor for less time, too */
	const char *next;  /* longest topic of the critical path then; "": none */
	double next_share;
};
struct report_prediction {
	double most_factor;  /* the most that an edit makes a state longer, at least 1 */
	double most_speedup; /* no more can be won; 0: not known */
	bool by_path;        /* length_ns .. next_share are meant */
	bool less_work;      /* the edits only shorten states */
	struct report_replay_prediction replay;
	struct report_match *match;
	size_t nr_matches;
	double length_ns, low_ns, high_ns; /* low == high unless estimated */
	double speedup, speedup_low, speedup_high;
	const char *next; /* longest topic of the path then */
	double next_share;
	const char *pool; /* NULL, or the queue whose tokens are then held all the time (tokens.h):
			     not the path decides, and next is the holders' longest state */
	bool estimated;
	double known_factor; /* report_ledger_widen(): so far off were outcomes so far; 0: not known
			      */
};
/*
 * The answer that is believed: replay's, unless it is far off the run without any edit; and never a
 * jump from one to the other. Its own error moves the answer towards the path's from
 * REPORT_OWN_ERROR_DOUBTED on, all the way at REPORT_OWN_ERROR_REFUTED; before that, from
 * REPORT_OWN_ERROR_WARNS on, the interval reaches towards it, and contains it at twice as much.
 */
#define REPORT_OWN_ERROR_WARNS   0.05
#define REPORT_OWN_ERROR_DOUBTED 0.25
#define REPORT_OWN_ERROR_REFUTED 0.5
struct report_whatif;
struct report_answer { /* to one question (predict.c): what is believed, and what it is made of */
	struct report_best best;
	double path_speedup;
	bool replayed;
	double replay_speedup;
	uint64_t nr_stuck; /* by replay: actors that would wait for ever */
};
struct report_best report_best_of(const struct report_whatif *w, const struct report_prediction *p);
double report_replay_share(double own_error);
double report_between(double path_speedup, double replay_speedup, double replay_share);
/* By which method: "replay", "path" or "both". */
const char *report_method_of(double replay_share);
struct report_whatif {
	struct base_arena *arena;
	struct report_trace trace;
	double elapsed_ns;
	double timed_share;  /* of the path: waits that a time limit or a signal ended */
	double polled_share; /* of the path: naps again and again at one place */
	struct report_own own;
	struct report_box box;
	uint64_t late_timer_reads; /* model_nr_late_timer_reads() */
	struct report_prediction *prediction;
	size_t nr_predictions;
	struct report_replay_run base; /* when a prediction is replay's */
	struct report_spins spins;
	bool replayed, too_long; /* too_long: replay was left out, the log would not fit */
};

#endif
