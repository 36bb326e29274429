/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - contention-aware what-if: the recorded service times, simulated again.
 *
 * The path method (graph.h) keeps the recorded order of service and only changes weights. Replay
 * keeps what each actor did, and how long it took when nothing held it up, and finds out anew who
 * waits for whom: units and space are given to the first to ask in simulated time, and actors
 * that execute share a finite number of processors where the trace shows the kernel's switches. So
 * it sees what the path cannot: contention that a change makes or ends, larger queues, more
 * processors, a deadlock that a change brings.
 *
 * An actor is its recorded sequence of verbs. Its own time between two of them is multiplied by its
 * state's factor. A take lasts until its queue has what it needs; when the actor has to wait, the
 * communication latency follows: the recorded one where it waited in the run too, else the usual
 * one (median) of the queue's latency state after a wait of about that length. A wait that nothing
 * explained, and one that needs no dependence (GRAPH_EXPLAINED), keep their length. With no edit
 * the replay of a log gives the recorded times again as far as the log explains them; the
 * difference is the method's own error, so run it first and say so.
 *
 * Times are ns since the trace's origin. One struct is for one thread at a time; graph_replay_run()
 * does not change it, so several threads may run scenarios of one log.
 */
#ifndef LONGPOLE_GRAPH_REPLAY_H
#define LONGPOLE_GRAPH_REPLAY_H

#include "graph/graph.h"

struct graph_replay_options {
	size_t size;
	size_t max_memory_bytes; /* 0: 2 GiB; log and simulation together; beyond it ERR_LIMIT */
	/* That the program could run on. 0: as many as it was seen on, which is known late: until
	 * then waits for a processor are taken for those of its own threads. Without effect when
	 * the log has no switches. */
	uint32_t nr_processors;
	/* All actors together may execute so long in each such period (a control group's quota):
	 * what they waited for that is found out anew. Either 0: there is none. */
	uint64_t quota_ns, quota_period_ns;
};

/* A log of all declarations and verbs of a run: 32 bytes a verb, more for unusual ones. */
struct graph_replay;
enum base_status graph_replay_new(const struct graph_replay_options *opts /* NULL: defaults */,
	struct graph_replay **ret, struct base_err *err) BASE_MUST_CHECK;
struct graph_replay *graph_replay_free(struct graph_replay *r); /* NULL-safe */

/* What fills the log: give it to model_options.sink, or call it. Borrowed; lives as long as r. */
const struct graph_sink *graph_replay_sink(struct graph_replay *r);

/* The actor whose last verb is the end (model_end_actor()); GRAPH_ANY_ACTOR (default): the latest
 * of all. */
void graph_replay_set_end(struct graph_replay *r, uint32_t end_actor);

/* The actor of that number in what graph_replay_run() tells its sink: an actor that was forgotten
 * (GRAPH_VERB_forget) has begun anew there, as another one. GRAPH_ANY_ACTOR when none was set. */
uint32_t graph_replay_end_actor(const struct graph_replay *r);

/* What was measured on the machine that recorded, as it recorded; 0: it was not. */
struct graph_replay_measured {
	uint64_t wake_ns;      /* what waking a sleeper takes its waker when it runs at once */
	uint64_t wake_busy_ns; /* ... when no processor is free for it */
	uint64_t record_ns;    /* by how much later recording makes who is woken */
	double samples_share;  /* of all executing: samples were taken */
};

/*
 * When the log is whole, of recorded threads: learns from it how hand-offs depend on the length of
 * the wait, and what waking a sleeper costs its waker: where states came after puts that woke
 * somebody and after others, their difference; else what was measured, at most what a state took
 * that came after such a put. Waking costs less when all processors are taken, since none has to be
 * interrupted; whether they are is the simulation's own. From then on a wait that
 * a change makes shorter or longer has the latency that others of that length had, and a wait that
 * it makes or ends changes its waker's time. That is without effect on an unedited replay that
 * repeats the run, and on a log that shows no processors. And what condition variables count
 * (replay_counts.c). Errors: ERR_NOMEM.
 */
enum base_status graph_replay_learn(struct graph_replay *r,
	const struct graph_replay_measured *measured, struct base_err *err) BASE_MUST_CHECK;
uint64_t graph_replay_wake_ns(const struct graph_replay *r); /* 0: not known */

/*
 * For logs in which verbs are missing, since records were dropped or never shown: simulates the run
 * without an edit, and where everything stands still gives the first one that waits, in the log's
 * order, what it waits for. From then on these waits keep their recorded length (within an eighth)
 * and take nothing, and simulations do not stand still for ever: each ends, and says in nr_given
 * how often it gave once more. Without effect on a log that lacks nothing. Errors: ERR_NOMEM,
 * ERR_LIMIT.
 */
enum base_status graph_replay_mend(struct graph_replay *r, struct base_err *err) BASE_MUST_CHECK;
uint64_t graph_replay_nr_given(const struct graph_replay *r); /* waits that were mended */
uint64_t graph_replay_given_ns(const struct graph_replay *r); /* their length, in all */
/*
 * So much time of all actors in all the run the edits take away, and what they add; both INFINITY:
 * it is not known, they do not only scale states. Where actors are ever in one of the states
 * `wait` (NULL, nr 0: none), it is what the others of one of them have: the most of any of them.
 * Errors: ERR_NOMEM.
 */
struct graph_replay_change {
	double taken_ns, added_ns;
};
enum base_status graph_replay_change(const struct graph_replay *r,
	const struct graph_scenario *edits, const uint32_t *wait, size_t nr_waits,
	struct graph_replay_change *ret, struct base_err *err) BASE_MUST_CHECK;

struct graph_replay_result {
	uint64_t start_ns;        /* the first verb */
	uint64_t end_ns;          /* simulated */
	uint64_t recorded_end_ns; /* of the same actor in the run */
	uint64_t nr_verbs;        /* re-timed */

	/* What the answer rests on. */
	uint32_t nr_stuck; /* actors that wait for ever: what they needed never came */
	/* One of them, best one that did not wait there in the run; GRAPH_ANY_ACTOR: none. */
	uint32_t first_stuck;
	uint32_t first_stuck_queue;
	uint64_t first_stuck_ns; /* since when */
	bool first_stuck_anew;   /* in the run it did not wait there */
	uint64_t
		nr_unexplained; /* recorded waits that keep their length: nothing seen ended them */
	uint64_t unexplained_ns; /* of them all, as recorded */
	uint64_t nr_rootless;    /* actors that nobody was seen to start: at their recorded time */
	uint64_t nr_waits_new;   /* waits that the run did not have */
	uint64_t nr_waits_gone;  /* waits of the run that the simulation does not have */
	uint64_t nr_given;       /* waits that were ended because nothing else could happen */

	uint32_t nr_processors; /* simulated; 0: not limited (the trace has no switches) */
	uint64_t nr_processor_waits, processor_wait_ns; /* executable, but none was free */
};

/*
 * One simulation of the log, with the scenario's edits (NULL: none). `out`, when not NULL, hears
 * the declarations and then the re-timed verbs in time order: a fresh graph behind it finds the new
 * critical path. Verbs of processor queues in it are those of the simulated processors (declared
 * after the log's queues). Errors: ERR_USAGE (a factor outside 0..1e12), ERR_NOMEM, ERR_LIMIT, and
 * whatever `out` returns.
 */
enum base_status graph_replay_run(const struct graph_replay *r, const struct graph_scenario *edits,
	const struct graph_sink *out, struct graph_replay_result *ret,
	struct base_err *err) BASE_MUST_CHECK;

/*
 * What a simulation assumes that the log does not say. All zero: what graph_replay_run() does. To
 * see how much an answer rests on it, ask again with other assumptions, unedited and edited.
 */
struct graph_replay_assumed {
	double wake_more;   /* what waking costs, times 1 + that; -1: nothing */
	double late_more;   /* how late sleepers come, times 1 + that */
	bool as_recorded;   /* latencies do not depend on the length of the wait */
	bool preempts;      /* a woken actor takes the processor of the one that has run longest,
			       when all are taken; false: it waits for one */
	bool others_stay;   /* other programs keep a processor as long as in the run, although the
			       state that they interrupted is shorter */
	bool any_processor; /* whoever waits for a processor gets the next one that is free: what
			       was learned of placement and preemption is not used */
	bool unrecorded;    /* nobody records: a woken actor comes earlier by record_ns, what is
			       done takes less by what the sink was told of as recording */
	double recording_more; /* ... which is that times 1 + this */
	bool ticks_otherwise;  /* whose waits with a time limit are about as long as what it does in
				  between: read the other way (ticks or work) */
	bool late_scales;      /* an edit of a sleep's state scales how late it ended, too */
	bool given_at_once;    /* waits that graph_replay_mend() mended take no time */
	uint64_t jitter; /* other than 0: executing takes up to JITTER more or less, at random, and
			    an actor that preempts as often as in the run does so at random, not by turns */
};
#define GRAPH_REPLAY_JITTER 0.1

enum base_status graph_replay_run_as(const struct graph_replay *r,
	const struct graph_scenario *edits, const struct graph_replay_assumed *assumed,
	const struct graph_sink *out, struct graph_replay_result *ret,
	struct base_err *err) BASE_MUST_CHECK;

uint64_t graph_replay_nr_verbs(const struct graph_replay *r);
size_t graph_replay_memory_bytes(const struct graph_replay *r); /* of the log */

#endif
