/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locks.h - how a program uses its locks (seed 001, section 4): counts and times of each lock, each
 * place that takes it and each thread, and what the critical path has of it.
 *
 * Two sources, which a trace may mix. Records of single operations (`lock_acquire` and its kin)
 * tell everything; tallies (`lock_tally`), which a recorder counted inside the program, have exact
 * numbers of operations and a sample of the holds: then what only an order of events can tell
 * (path, convoys, time with a lock held) is absent, and REPORT_LOCKS_* of report_locks.has says so.
 */
#ifndef LONGPOLE_REPORT_LOCKS_H
#define LONGPOLE_REPORT_LOCKS_H

#include "base/histogram.h"
#include "report/predict/predict.h"

#define REPORT_LOCKS_PATH_LEAST                                                                    \
	0.005                   /* of the path: a lock with less is not what holds the run back */
enum { REPORT_CONVOY_MIN = 4 }; /* acquisitions in a row that each had to wait */
enum {
	REPORT_LOCKS_events = 1,  /* single operations were recorded */
	REPORT_LOCKS_tallies = 2, /* counts were recorded */
	REPORT_LOCKS_calls = 4,   /* ... with stamps around the lock and unlock functions */
	REPORT_LOCKS_path = 8,    /* path_ns, halved: there is a critical path */
	REPORT_LOCKS_replay = 16, /* halved.replay */
	REPORT_LOCKS_inner = 64,  /* path_ns has of a hold only what no call and no inner lock took:
				     a long trace */
	REPORT_LOCKS_running = 32, /* threads' running_ns is known */
	REPORT_LOCKS_held = 128,   /* held_ns: time with at least one lock held */
	REPORT_LOCKS_shared = 256, /* a lock was taken by readers */
	REPORT_LOCKS_failed = 512, /* a try failed, or a timed wait was given up */
	REPORT_LOCKS_some = 1024,  /* only of locks of a pattern: all, nr_static, wait_ns */
};

struct report_times { /* of one kind of interval */
	uint64_t nr, total_ns, max_ns;
};
/* What the processor counted, in user space and in the kernel, by an event's place in event_name:
 * while it was held, of `nr` holds (by their weights), and in calls that found it free and took it.
 */
enum { REPORT_LOCK_MODES = 2, REPORT_LOCK_EVENTS = 4 };
struct report_lock_event {
	uint64_t nr, count, taking_nr, taking_count;
};
struct report_lock_use {   /* of a lock, by a site, by a thread: sums are the same things */
	uint64_t acquired; /* calls that took it, readers too; without the re-takings below */
	uint64_t shared;   /* of these as a reader */
	uint64_t retaken;  /* at the end of a condition wait */
	uint64_t nested; /* of acquired: its own thread held it already, so it is no new hold (seen
			    with single operations only) */
	uint64_t contended;             /* of acquired: another had it */
	uint64_t failed;                /* trylocks that found it taken, timed locks that gave up */
	struct report_times wait, hold; /* hold: of those that were timed */
	/* What all holds take, report_lock_hold_ns(), is estimated when hold.nr < acquired +
	 * retaken: of each lock at each place by itself, for a sample may have more of one than of
	 * another. */
	double held_ns;   /* the sum of these estimates */
	uint64_t nr_held; /* how many holds it is of: those of locks and places never timed lack */
	double hold_variance; /* ns^2, of held_ns; 0: it is exact */
	struct report_times lock_call,
		unlock_call; /* REPORT_LOCKS_calls: inside the two functions */
	struct report_lock_event event[REPORT_LOCK_MODES][REPORT_LOCK_EVENTS];
};
struct report_lock_site {
	const char *where;
	struct report_lock_use use;
};
struct report_lock_gain { /* the run, were the lock held half as long */
	bool tried;
	struct report_answer answer;
	double most_speedup; /* were no time at all passed in a half of each hold */
};
struct report_lock { /* locks of one name */
	const char *name, *type;
	bool is_loop;       /* an event loop: the task in its turn has it */
	const char *mostly; /* the state that has most of path_hold_ns; NULL: none */
	uint64_t nr_members, nr_threads;
	struct report_lock_use use;
	uint64_t waiters_max, waited_by_any_ns;         /* at once; while anybody waited */
	uint64_t nr_convoys, convoy_ns, convoy_longest; /* longest: acquisitions */
	double path_ns, path_hold_ns; /* all that is done while it is held, waiting for it and its
					 hand-off; the first alone */
	double own_path_ns;           /* path_ns without what is not the program's doing */
	struct report_state_share *state; /* path_ns, state by state */
	size_t nr_states;
	struct report_lock_gain halved;
	struct report_lock_site *site; /* most acquired first */
	size_t nr_sites;
	struct base_histogram hold, wait; /* ns; empty with tallies */
};
struct report_lock_cond {
	const char *name;
	uint64_t nr_members, waits, timeouts, signals, broadcasts;
	struct report_times wait;
};
struct report_lock_thread {
	const char *name;
	uint64_t acquired, contended, nr_static; /* nr_static: distinct locks */
	uint64_t held_ns;         /* with at least one lock: nested ones are not counted twice */
	uint64_t held_running_ns; /* ... and on a processor (REPORT_LOCKS_running) */
	uint64_t wait_ns, running_ns, alive_ns;
};
/* A distribution over powers of two of ns: bin i has [2^i, 2^(i+1)), bin 0 also 0. */
enum { REPORT_LOCK_BINS = 40 };
struct report_lock_bins {
	uint64_t wait[REPORT_LOCK_BINS], hold[REPORT_LOCK_BINS]; /* each interval is one */
	uint64_t lock_call[REPORT_LOCK_BINS], unlock_call[REPORT_LOCK_BINS];
};
struct report_locks {
	struct base_arena *arena;
	struct report_trace trace;
	unsigned has;                         /* REPORT_LOCKS_* */
	uint64_t tick_hz, elapsed_ns, cpu_ns; /* cpu_ns: the program's, in all; 0: not known */
	double path_ns, outside_ns;           /* outside: of it waiting for what was not recorded */
	struct report_own own;                /* of the path */
	double own_error;                     /* own_error: of replay */
	struct report_lock_use all;
	uint64_t nr_static, held_ns, held_running_ns, wait_ns, nr_threads_locking;
	uint64_t nr_full; /* acquisitions that found no place in a thread's table */
	uint64_t floor_bare_ps,
		floor_stamps_ps; /* of lock and unlock on this machine; 0: not known */
	const char *event_name[REPORT_LOCK_EVENTS];
	unsigned nr_events;
	const char *mode; /* "count", ...: how locks were recorded; "" not known */
	struct report_lock *lock;
	size_t nr_locks;
	struct report_lock_cond *cond;
	size_t nr_conds;
	struct report_lock_thread *thread; /* those that took a lock */
	size_t nr_threads;
	struct report_lock_bins dynamic, by_static; /* by_static: each lock's mean is one */
};

#define REPORT_LOCK_SORTS(X)                                                                       \
	X(path, "time on the critical path")                                                       \
	X(gain, "gain when it is held half as long")                                               \
	X(wait, "time waited for it")                                                              \
	X(hold, "time held")                                                                       \
	X(acquired, "acquisitions")                                                                \
	X(contended, "acquisitions that had to wait")                                              \
	X(convoys, "time in convoys")                                                              \
	X(name, "name")
enum report_lock_sort {
#define X(name, text) REPORT_LOCK_SORT_##name,
	REPORT_LOCK_SORTS(X)
#undef X
};
struct report_locks_options {
	size_t size;
	const char *pattern;        /* of names; NULL: all locks */
	enum report_lock_sort sort; /* path, without a path: wait */
	unsigned nr_gains_max;      /* locks of which `halved` is asked; 0: none */
	bool by_path_only;          /* no replay */
};
enum base_status report_locks_build(const struct report_run *run,
	const struct report_locks_options *opts, struct report_locks **ret,
	struct base_err *err) BASE_MUST_CHECK;
struct report_locks *report_locks_free(struct report_locks *l);
/* Times that it became held: nested acquisitions are of the outermost hold. */
uint64_t report_lock_holds(const struct report_lock_use *u);

struct report_locks_view {
	size_t limit; /* 0: all */
	bool sites, threads, histograms;
};
void report_locks_text(struct base_str *out, const struct report_locks *l,
	const struct report_locks_view *view, const struct report_style *style);
json_t *report_locks_json(const struct report_locks *l);
/* Tables of the events (locks_events.c). */
void report_locks_events_text(struct base_str *out, const struct report_locks *l,
	const struct report_locks_view *view, const struct report_style *style);
json_t *report_lock_events_json(const struct report_locks *l, const struct report_lock_use *u);

/* The believed gain of a lock, as whatif's answers are; 1: none. */
double report_lock_gain(const struct report_lock *l);

#endif
