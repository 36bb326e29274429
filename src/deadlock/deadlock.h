/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadlock.h - deadlocks of running programs: who waits for what, who could end it, and whether
 * anybody will.
 */
#ifndef LONGPOLE_DEADLOCK_DEADLOCK_H
#define LONGPOLE_DEADLOCK_DEADLOCK_H

#include "deadlock/facts/monitor.h"

#include <jansson.h>

/* ---- a look: the general resource graph and what it says ------------------------------------- */

/* How far from certain it is that a waiting thread is never woken. */
enum deadlock_hope {
	DEADLOCK_LIVE,     /* it runs, or somebody who does may wake it, or it wakes by itself */
	DEADLOCK_DOUBTFUL, /* somebody alive could; nobody was seen to (suspect.c) */
	DEADLOCK_HELPABLE, /* only a signal handler, or the kernel, could still help */
	DEADLOCK_STUCK,    /* whoever could wake it is stuck, too */
};

enum deadlock_edge_why {
	DEADLOCK_EDGE_OWNS,  /* it has what is awaited, by the lock's own record */
	DEADLOCK_EDGE_EXITS, /* its end is awaited */
	DEADLOCK_EDGE_WOULD, /* run ahead, it produced what is awaited */
	DEADLOCK_EDGE_MAY,   /* it could; nothing more is known */
};

/* A request edge and a producer edge: `waiter` waits for its key, which `producer` produces. */
struct deadlock_edge {
	uint32_t waiter, producer; /* indices of answer->wait */
	uint32_t key;              /* index of the waiter's keys */
	enum deadlock_edge_why why;
};

enum deadlock_finding_kind {
	DEADLOCK_FINDING_CYCLE,
	DEADLOCK_FINDING_SELF,      /* one thread waits for itself */
	DEADLOCK_FINDING_ORPHANED,  /* the holder of the lock is gone */
	DEADLOCK_FINDING_INHERITED, /* the lock was held in the parent when it forked */
	DEADLOCK_FINDING_STUCK,     /* no cycle is seen, but nobody is left who could wake them */
};

enum deadlock_sure {
	DEADLOCK_CERTAIN,         /* nobody outside of it could end it */
	DEADLOCK_PROBABLE,        /* nobody outside of it was seen to */
	DEADLOCK_UNKNOWN_OUTCOME, /* somebody may, and could not be run ahead */
};

struct deadlock_finding {
	enum deadlock_finding_kind kind;
	enum deadlock_sure sure;
	const uint32_t *member; /* indices of answer->wait; round the cycle where it is one */
	uint32_t nr_members;
	const uint32_t *edge; /* indices of answer->edge, between members */
	uint32_t nr_edges;
	bool is_knot;            /* no edge leaves it: a cycle alone may have another way out */
	bool is_simple;          /* every member waits for the next one only */
	uint32_t nr_behind;      /* others that wait for a member, or for one who does */
	const uint32_t *breaker; /* indices of answer->wait: threads that live, could end it, and
				    run ahead did not */
	uint32_t nr_breakers;
	bool is_lost_wakeup; /* STUCK: a condition variable or semaphore that all who could have
				signalled it went past */
};

struct deadlock_answer {
	struct deadlock_wait *wait; /* all threads of the processes looked at, sorted by tid */
	enum deadlock_hope *hope;   /* of each */
	struct deadlock_run *run;   /* of each; end NONE: it was not run ahead. NULL: none was */
	size_t nr_waits;
	struct deadlock_edge *edge;
	size_t nr_edges;
	struct deadlock_finding *finding; /* the most certain first */
	size_t nr_findings;
	size_t nr_processes, nr_blocked, nr_long; /* long: slept over the threshold */
	size_t nr_blind;           /* processes that may have what is awaited: we cannot know */
	size_t nr_run, nr_not_run; /* threads run ahead; tried in vain */
	pid_t java; /* the first process that is a Java VM, whose monitors are not looked at; 0: none */
	bool finds_spinners; /* those that run were looked at, too */
	uint64_t stopped_ns; /* the longest that any thread was stopped; 0: none was */
	uint64_t elapsed_ns; /* of the look */
	uint64_t now_ns;
	const char *without_bpf;   /* why; NULL: BPF was used */
	const char *without_ahead; /* why no copy could be made at all; NULL: some could, or none
				      was needed */
	struct deadlock_world *world;
	struct deadlock_core *core; /* NULL: of live processes */
};

struct deadlock_look_options {
	const pid_t *pid; /* processes (and their descendants) to look at; none: all */
	size_t nr_pids;
	bool is_alone;           /* without their descendants */
	const char *const *idle; /* names of processes that are idle by profession (fnmatch) */
	size_t nr_idle;
	uint64_t now_ns, threshold_ns; /* a thread that slept less is not suspicious */
	bool finds_spinners; /* of threads that run, too; each is stopped for microseconds */
	bool is_suspicious;  /* also tell circles of which the outcome is unknown; without it only
				those are looked for that somebody alive may break who sleeps for a
				time, and of chosen processes only */
	bool is_static;      /* never run a copy ahead: tiers 1 and 2 only */
	struct deadlock_ahead_options ahead;
};

/* After at least two passes of the monitor. The answer is the caller's. */
enum base_status deadlock_look(struct deadlock_monitor *m, const struct deadlock_look_options *o,
	struct deadlock_answer **ret, struct base_err *err) BASE_MUST_CHECK;
/* The same of a core file: owners of locks only, there is no more in it. ERR_FOREIGN: no core file.
 */
enum base_status deadlock_look_core(
	const char *path, struct deadlock_answer **ret, struct base_err *err) BASE_MUST_CHECK;
struct deadlock_answer *deadlock_answer_free(struct deadlock_answer *a);
/* The time limit of a member ends it within that time from the look on (UINT64_MAX: nobody knows how
 * long it is). False: none has one. */
bool deadlock_finding_left_ns(
	const struct deadlock_answer *a, const struct deadlock_finding *f, uint64_t *ret_ns);
/* The same number in every look until one of its members has run by itself. */
uint64_t deadlock_finding_print(const struct deadlock_answer *a, const struct deadlock_finding *f);

/* ---- watching -------------------------------------------------------------------------------- */

struct deadlock_watch_options {
	struct deadlock_look_options look; /* now_ns is not used */
	bool use_bpf;
	double share; /* of one processor that looks after the first may cost; 0: any */
};
struct deadlock_watch_stats {
	uint64_t nr_passes, nr_looks, nr_findings;
	uint64_t nr_put_off; /* passes after which no look was affordable */
	uint64_t cpu_ns;     /* ours and our copies' */
};
struct deadlock_watch;
enum base_status deadlock_watch_open(const struct deadlock_watch_options *o,
	struct deadlock_watch **ret, struct base_err *err) BASE_MUST_CHECK;
struct deadlock_watch *deadlock_watch_close(struct deadlock_watch *w);
/* One awakening: a pass, and a look where there is a reason. *ret: the caller's, with findings that
 * were not returned before; NULL: nothing new. */
enum base_status deadlock_watch_step(struct deadlock_watch *w, uint64_t now_ns,
	struct deadlock_answer **ret, struct base_err *err) BASE_MUST_CHECK;
const struct deadlock_watch_stats *deadlock_watch_stats(const struct deadlock_watch *w);

/* ---- the answer in words --------------------------------------------------------------------- */

void deadlock_text(struct base_str *out, const struct deadlock_answer *a);
/* In the DOT language: threads are boxes, events ellipses, as in the source's figures. */
void deadlock_dot(struct base_str *out, const struct deadlock_answer *a);
json_t *deadlock_json(const struct deadlock_answer *a, const char *tool);  /* NULL: no memory */
json_t *deadlock_sarif(const struct deadlock_answer *a, const char *tool); /* SARIF 2.1.0 */

#endif
