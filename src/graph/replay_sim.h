/* SPDX-License-Identifier: Apache-2.0 */
/* replay_sim.h - one simulation of a log: replay_run.c moves actors, replay_wait.c queues them up,
 * replay_cpu.c gives them processors. */
#ifndef LONGPOLE_GRAPH_REPLAY_SIM_H
#define LONGPOLE_GRAPH_REPLAY_SIM_H

#include "graph/replay_priv.h"

enum sim_phase {
	SIM_RUNS,        /* until its event: own time, or a wait that keeps its length */
	SIM_TRIES,       /* its event: take what the moment needs, or wait for it */
	SIM_WAITS,       /* for units, space or a link; no event */
	SIM_CALLED,      /* what it waits for is there: its event comes after the latency */
	SIM_QUEUES,      /* for a processor, to run; no event */
	SIM_QUEUES_TAKE, /* for a processor, to take; no event */
	SIM_ENDED,
	SIM_UNBORN, /* other lives of its actor have to end first */
};

enum sim_listed { /* among a queue's waiters */
	SIM_UNLISTED,
	SIM_PLAIN,
	SIM_ODD,  /* for more than some units (replay_wait.c) */
	SIM_LOOKS /* odd, too: for a look at units with a key */
};

struct sim_load {
	uint64_t since_ns; /* share is that of then */
	double share;
	bool executes; /* since then */
};

struct sim_actor {
	uint32_t cursor; /* first step of its next moment */
	uint32_t state;
	uint64_t t_last;
	uint64_t left_ns, since_ns, slice_end_ns; /* on a processor: to do, from when; its slice */
	uint64_t wait_begin_ns, takes_then;
	uint64_t switch_ns; /* called: from having a processor to taking */
	uint64_t slow_ns;
	uint32_t wait_queue;        /* the present wait's; REPLAY_NONE */
	uint32_t queue, prev, next; /* in the list of this queue's waiters */
	struct {                    /* of its last moment, in the time until the next one */
		uint64_t wakes_ns, woke_then_ns; /* what its wakes cost; in the run */
		uint64_t owed_ns; /* recording's time that it was too short to give back */
	} left;
	uint32_t nr_overtaken, overtaken_on; /* in the run, since takes_then; on which queue */
	uint32_t processor;                  /* REPLAY_NONE */
	uint32_t home;                       /* in the run, or its first; REPLAY_NONE: neither */
	uint32_t set; /* of processors that it may run on; REPLAY_NONE: any */
	struct sim_load load;
	uint32_t coming_to; /* called, and that one was idle; REPLAY_NONE */
	uint32_t run_next;  /* in a run queue */
	uint64_t ran_ns;    /* when it left its last processor */
	double preempts;    /* sum of its chances that were not taken */
	uint8_t phase;      /* enum sim_phase */
	uint8_t listed;     /* enum sim_listed */
	bool waits, space, queued, counting, early, promised, lent, lent_locks;
	bool given;  /* its moment happens, whatever it lacks (replay_mend.c) */
	bool awake;  /* somebody has woken it, though it may wait on for something else */
	bool elides; /* the wait that it is in does not happen */
	bool elided; /* ... nor did the one before its last moment */
	/* A wait with a time limit: what a later one ends by may come earlier (replay_poll.c). */
	struct sim_row {
		uint32_t of;       /* replay_row() */
		uint32_t target;   /* the step that takes what the row ends with */
		uint32_t searched; /* how far was looked for it; 0: not yet */
		bool mere;         /* until then it sleeps for longer than it does anything */
		bool close;        /* ... or the other way round, but neither by far */
	} row[REPLAY_ROWS];
	uint32_t poll_target;        /* of the present wait */
	uint32_t polls, next_poller; /* the queue whose list it is in; REPLAY_NONE */
	/* What it did until that step it does not do here: it takes no time. 0: there is none. */
	uint32_t hurries_to;
	uint32_t wait_row;                    /* replay_row() of the present wait */
	struct replay_held held[REPLAY_HELD]; /* of pools whose tokens their takers put back */
};

struct sim_list {
	uint32_t head, tail;
};

struct sim_queue {
	int64_t units;
	uint64_t capacity, most;
	uint32_t pollers;     /* a list; REPLAY_NONE */
	uint64_t promised[2]; /* units; space */
	uint64_t last_put_ns;
	uint64_t nr_puts, nr_takes;
	struct sim_list waiters[2];
	uint32_t nr_odd, nr_looking;    /* of those that wait for units */
	struct replay_ring keyed, owed; /* owed: with these keys, taken before they were put */
	bool ignored, edited;
};

struct sim_event {
	uint64_t t;
	uint32_t order, actor;
};

struct sim {
	const struct graph_replay *r;
	const struct graph_sink *out;
	struct base_err *err;
	struct graph_replay_result *res;
	struct graph_replay_assumed assumed;
	uint64_t wake_ns, wake_busy_ns;
	size_t used_bytes;
	uint64_t now;
	struct sim_actor *actor;
	struct sim_queue *queue;
	struct sim_event *heap;
	size_t nr_heap;
	uint32_t current; /* whose event is being handled */
	bool has_next;    /* ... and its next one, not in the heap */
	struct sim_event next;
	uint64_t *link_ns; /* [link]; REPLAY_NOBODY: not yet */
	double *scale;     /* [state] */
	bool *elides;      /* [state] */
	/* (actor, queue) -> 1: it waits for its units in a state that is elided; + 2: for space */
	struct base_map needless;
	struct base_map promised_keys; /* (queue, key) -> units */
	size_t nr_scales;
	enum base_status status;

	bool places;                /* like a kernel, as was learned */
	bool gives;                 /* when nothing can happen any more */
	struct replay_given *given; /* what; NULL: nobody asks */
	uint32_t *unended;          /* actors; NULL until somebody is given something */
	size_t nr_unended;

	uint32_t nr_processors;
	uint32_t nr_recorded; /* of them: in the run; an edit adds the others */
	uint64_t *number;     /* [processor]: the kernel's; UINT64_MAX: an edit's, or not known */
	bool *may;            /* [set * nr_processors + processor] */
	uint32_t *idle;       /* processors, a stack */
	uint32_t nr_idle;
	struct sim_load *load; /* [processor] */
	uint32_t *coming;      /* [processor]: called, and not on it yet */
	bool *left;            /* [processor]: somebody left it before */
	uint32_t *user;        /* [processor]: actor; REPLAY_NONE */
	struct sim_list *run;  /* [processor]: its waiters; all of them in the first one's, when
				 nothing was learned */
	uint32_t runnable_state;
	struct sim_quota {        /* replay_quota.c */
		uint64_t next_ns; /* the period's end, or when all is used up; UINT64_MAX: no quota
				   */
		uint64_t left_ns, since_ns, period_end_ns;
		uint32_t nr_running; /* processors in use, since_ns on */
		bool is_used_up;
	} quota;
};

static inline uint64_t sim_scaled(const struct sim *s, uint32_t state, uint64_t ns)
{
	double f = state < s->nr_scales ? s->scale[state] : 1;

	return f == 1 ? ns : (uint64_t)((double)ns * f + 0.5);
}

static inline bool sim_is_awaited(const struct sim *s, uint32_t queue, bool space)
{
	return s->queue[queue].waiters[space].head != REPLAY_NONE;
}

static inline bool sim_elides(const struct sim *s, uint32_t state)
{
	return state < s->nr_scales && s->elides[state];
}

/* What it takes, or fills, it would not wait for. */
static inline bool sim_needs_nothing(
	const struct sim *s, uint32_t actor, uint32_t queue, bool space)
{
	const struct sim_actor *a = &s->actor[actor];
	uint64_t bits;

	return a->elides ||
	       (!a->waits && s->needless.nr_used &&
		       base_map_get(&s->needless, actor, queue, &bits) && bits & (space ? 2 : 1));
}

/* 0..1, of this simulation and that alone: what a machine decides by chance. */
static inline double sim_dice(const struct sim *s, uint64_t of)
{
	uint64_t dice = base_hash_u64(base_hash_u64(s->assumed.jitter) ^ of) >> 32;

	return (double)dice / 0x100000000;
}

static inline bool sim_executes(const struct sim *s, uint32_t state)
{
	return state < s->r->nr_states && s->r->executes[state];
}

static inline bool sim_may_use(const struct sim *s, uint32_t actor, uint32_t processor)
{
	uint32_t set = s->actor[actor].set;

	return set >= s->r->nr_sets || s->may[(size_t)set * s->nr_processors + processor];
}

/* replay_run.c */
void graph_sim_schedule(struct sim *s, uint32_t actor, uint64_t t);
void graph_sim_unschedule(struct sim *s, uint32_t actor); /* not the current one */
void graph_sim_emit(
	struct sim *s, enum graph_verb_kind kind, const struct graph_verb *v, uint32_t from);

/* replay_wait.c */
bool graph_sim_is_met(struct sim *s, uint32_t actor, uint32_t *ret_queue, bool *ret_space);
void graph_sim_wait(struct sim *s, uint32_t actor, uint32_t queue, bool space);
void graph_sim_stop_waiting(struct sim *s, uint32_t actor);
bool graph_sim_promise(struct sim *s, uint32_t actor);
bool graph_sim_end_promise(struct sim *s, uint32_t actor);
void graph_sim_call_others(struct sim *s, uint32_t actor);
bool graph_sim_is_early(struct sim *s, uint32_t actor, uint64_t *ret_ns);
struct sim_woken { /* sleepers: those with an idle processor, and the others */
	unsigned nr_idle, nr_busy;
};
void graph_sim_call(struct sim *s, uint32_t queue, bool space, struct sim_woken *woken);
bool graph_sim_do_step(struct sim *s, uint32_t actor,
	const struct replay_step *step); /* true: wakes the queue's waiters */
void graph_sim_lend(struct sim *s, uint32_t actor, bool locks); /* locks, too */
void graph_sim_take_lent(struct sim *s, uint32_t actor);

bool graph_sim_is_step_met(const struct sim *s, const struct replay_step *step, uint32_t actor);

/* replay_mend.c */
bool graph_sim_give(struct sim *s); /* something can happen again */

/* replay_poll.c */
bool graph_sim_poll(struct sim *s, uint32_t actor); /* true: it need not wait for its time limit */
void graph_sim_end_poll(struct sim *s, uint32_t actor);
void graph_sim_call_pollers(struct sim *s, uint32_t queue);

void *graph_sim_need(struct sim *s, size_t nr, size_t size); /* NULL: s->status is not BASE_OK */

/* replay_place.c */
void graph_sim_init_processors(struct sim *s, uint32_t nr_recorded);
void graph_sim_find_home(struct sim *s, uint32_t actor); /* as in the run, where it may run */
void graph_sim_fini_processors(struct sim *s);

/* replay_cpu.c */
uint32_t graph_sim_idle_for(const struct sim *s, uint32_t actor);
void graph_sim_follow(struct sim *s, uint32_t actor, uint32_t queue);
uint32_t graph_sim_come(struct sim *s, uint32_t actor); /* to an idle one; REPLAY_NONE */
/* true: it has a processor; else it waits for one. */
bool graph_sim_come_on(struct sim *s, uint32_t actor, enum sim_phase queued);
void graph_sim_release_processor(struct sim *s, uint32_t actor);
void graph_sim_run_on(struct sim *s, uint32_t actor);
bool graph_sim_slice_ended(struct sim *s, uint32_t actor);
void graph_sim_stop_all(struct sim *s);         /* whoever runs waits for a processor */
void graph_sim_start_all(struct sim *s);        /* ... and comes to one */
bool graph_sim_is_held_up(const struct sim *s); /* somebody waits though a processor is idle */

/* replay_quota.c */
void graph_sim_init_quota(struct sim *s);               /* after the processors */
void graph_sim_count_running(struct sim *s, bool runs); /* one processor more is in use, or less */
void graph_sim_turn_quota(struct sim *s);               /* quota.next_ns has come */

#endif
