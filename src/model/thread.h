/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - what the model knows of a thread: what it does, holds and waits for; parts have the name
 * of the file whose they are. */
#ifndef LONGPOLE_MODEL_THREAD_H
#define LONGPOLE_MODEL_THREAD_H

#include "graph/graph.h"
#include "trace/trace.h"

#define NONE UINT32_MAX
enum { MODEL_HELD_MAX = 32, MODEL_MACHINES_MAX = 32, MODEL_OWED_MAX = 4 };

/* What an actor is doing besides its state: decides how its next record closes the edge. */
enum mode {
	MODE_RUNNING,
	MODE_WAITING,  /* on something that a record will end */
	MODE_RUNNABLE, /* preempted: the next cpu_in ends it */
	MODE_BLOCKED,  /* left the processor inside no recorded call */
};

struct held {
	uint32_t object, state;
	bool shared;
};

struct machine {                   /* an annotated state machine on a thread's stack */
	uint32_t actor_def, actor; /* definition id, graph id */
	uint32_t state;            /* annotated state; NONE: none yet */
	bool linked;               /* hand control back at its end */
	uint64_t begin_ns;         /* since when it acts for the one below, */
	uint32_t below_state;      /* which was in this state */
};

struct standing { /* where a machine was when its stream went on to speak for another (note_act) */
	uint32_t state, graph_state;
	enum mode mode;
	bool known;
};

struct io {
	uint32_t object, queue;
	uint32_t state;            /* of a call that nobody of ours ends; else NONE */
	uint64_t op, n, put_bytes; /* put, or taken, before the call has ended */
	uint64_t begin_ns, out_ns,
		away_ns; /* its processor: left then, 0: has it; was away so long */
	bool preempted, active,
		wants_space; /* preempted: left it so, which is no part of the call */
};

/* A call that puts a message into a queue, or takes one. */
struct message {
	uint64_t key, n;
	uint32_t object, site;
	bool sends, receives;
	bool moved; /* it counts as being there, or as taken */
};

/* A system call under way, as the kernel's records tell it. */
struct call {
	uint32_t object;
	uint32_t queue; /* of bytes that it takes or puts; NONE */
	uint64_t number, op, n;
	uint64_t put_bytes; /* so far; or taken */
	bool active, takes, puts;
	bool reads_socket, writes_socket;
	bool reaps;               /* an io_uring's completions */
	bool sleeps, reads_timer; /* rules_clock.c */
	bool named;               /* the thread's state is the call's */
};

struct awaited { /* a wait, as the verb told it that began it */
	enum graph_verb_kind verb;
	uint32_t queue, state;
	int64_t n;
	bool empty; /* there was nothing (or no room) then: what is there later came meanwhile */
};

/* What the kernel's records say of a thread or context (rules_kernel*.c). */
struct kernel_view {
	enum trace_context_type context; /* none: a thread */
	uint32_t wake_queue;             /* a token for each waking by somebody with a path; NONE */
	uint32_t processor;              /* that it is on, or was on last */
	bool on;                         /* a processor */
	bool looked;                     /* for the actor that it was before */
	bool gone;                       /* it goes on as another stream */
	bool unborn;                     /* nothing is known of it before its first record */
	bool early;    /* woken since it came to its processor: maybe while it fell asleep */
	bool server;   /* a kernel thread: as with a context, what it does has to do with the thread
			  that it serves, not with what it did before it slept */
	bool anybodys; /* server: woken by any passing thread (RCU), for nobody's sake */
	bool credited; /* context, server: this run has a known cause, hence a path */
	bool woken;    /* while it waited for something that the library knows */
	bool answered; /* ... and may go on since: it is ready, or runs, and only the record of its
			  call's end is to come (rules_kernel_known.c) */
	struct awaited known;        /* answered: what it waited for */
	bool throttled;              /* runnable, but its cgroup's quota was used up */
	bool guessed;                /* its leaving was not shown: whether it sleeps is not known */
	uint64_t asleep_ns;          /* when it fell asleep */
	uint64_t timer_ns, timed_ns; /* a timer woke it then, and no thread has since; how long it
					had slept, or 0 */
	uint32_t asleep_state;       /* what it waited in before it became ready */
	uint32_t asleep_site;        /* kernel function where it is about to sleep; 0: not known */
	enum graph_verb_kind asleep_on; /* wait, or the one on its call's queue */
	uint32_t packet_by;     /* the actor that put the packet that this stream handed to a device
				   last */
	uint32_t packet_socket; /* ... and whose it is */
	uint64_t packet;        /* its key */
	uint64_t ack;           /* of the segment being handled, while its socket is not known */
	uint32_t fired_site;    /* context: function of the timer that it serves; 0: none */
	uint32_t lock;          /* kernel lock that it waits for; 0: none */
	uint32_t before_lock;   /* state */
	struct call call;
	/* A task: to it its runtime's scheduler is what the kernel is to others (rules_task.c). */
	struct {
		enum trace_task how;
		bool waits;         /* in the wait that its last task_wait began */
		uint32_t arrivals;  /* queue: it has come to a meeting; NONE */
		uint32_t channel;   /* queue: the same at a channel with a buffer, for its next or
				    present wait; NONE */
		uint32_t processor; /* that it had last */
		uint32_t *needs;    /* streams: its wait needs their ends, too */
		size_t nr_needs, needs_capacity;
	} task;
};

/* A stay in a state, with preemptions, and the samples in it: where in it each was is known when it
 * ends. Open from its first sample or preemption on. */
struct visit_sample {
	uint64_t at_ns, function; /* of the time that it executed there; as in model.samples */
};
struct visit {
	uint32_t state, nr;
	uint64_t ran_ns, since_ns; /* it executed so long until then */
	bool open, away;           /* away: preempted */
	struct visit_sample *sample;
	size_t capacity;
};

/* rules_clock.c: of one place where a thread sleeps, or of a timerfd. */
struct clock {
	uint32_t actor, queue, state; /* actor NONE: nobody has set it yet */
	uint32_t site;
	bool is_set, armed; /* is_set: follows from somebody; armed: a timerfd that will expire */
	bool is_known;      /* is in model.timer */
	uint64_t nr_deadlines, deadline_ns, period_ns; /* the last one; 0: not known */
	int64_t remaining_ns;                          /* until it, when it was given */
	uint64_t due_ns, every_ns; /* timerfd: the next expiry, and from then on; 0: once */
	uint32_t process;          /* timerfd: who set it */
};
struct sleep {
	uint32_t clock;     /* NONE: none */
	bool follows, sets; /* waits for that clock; sets it when it awakes */
	bool lasts;         /* nothing has been done since it began ... */
	uint64_t begin_ns;  /* ... then */
	uint64_t due_ns;
};

/* naps.c: the naps of a thread at one place. */
struct nap_row {
	uint32_t state, nr;
	uint64_t end_ns; /* of the last one */
	uint64_t ns;     /* not counted yet */
};
enum { MODEL_NAP_ROWS = 4 }; /* places of a thread */

/* Running states of a thread, or of a task. */
struct run_states {
	uint32_t *by_site; /* site id -> state + 1 */
	size_t capacity;
};

/* A thread (one stream of the trace). Its verbs go to the annotated machine on top, else to its own
 * actor. */
struct thread {
	uint32_t stream, process, actor, role;
	enum mode mode;
	uint32_t graph_state;  /* what the last verb entered */
	uint64_t entered_ns;   /* ... when that was another than before */
	uint32_t run_state;    /* what it returns to when it holds and does nothing */
	uint32_t resume_state; /* while preempted or blocked */
	uint32_t exit_queue;
	uint32_t nr_held, nr_machines;
	struct awaited awaits; /* MODE_WAITING */
	struct {
		struct awaited outer; /* interrupted: by its handler; */
		struct io outer_io;   /* ... active: in that call */
		uint64_t handled_ns;  /* when a handler began in a wait */
		uint64_t sent_ns;     /* when it was sent one (or cancelled) by name, ... */
		uint32_t sender;      /* ... and by whom: an actor */
	} signal;
	struct {                           /* sleeps until a time limit */
		uint64_t begin_ns, end_ns; /* the last of them */
		uint32_t nr;               /* in a row, with next to nothing in between */
		bool held;                 /* a lock meanwhile */
		uint32_t nr_units_held;    /* now: of semaphores that were always used as locks */
		bool broken;               /* the last one ended before its time: by a signal */
		struct nap_row row[MODEL_NAP_ROWS];
		bool gave; /* somebody something, since the last nap */
		/* Since then it has waited for nothing but processors, whatever it did. */
		uint64_t works_ns;
	} naps;
	struct {
		uint32_t site;       /* of its last annotation that has one */
		uint32_t kept_state; /* + 1: whenever it runs (TRACE_NOTE_KEPT); 0: none */
	} note;
	bool seen, ended;
	struct thread_life {
		uint64_t begin_ns, end_ns;
		uint64_t born_ns;   /* begun, or first seen; UINT64_MAX: not yet */
		uint32_t nr_others; /* a process's first: of its other threads, so many are there */
		uint32_t last_ended; /* ... and that one ended last (a stream); 0: none did */
		bool main_thread;
		bool left;       /* said that it ends */
		bool left_alone; /* ended before them: the process ends with the last of them */
	} life;
	struct thread_cpu { /* processor.c, affinity.c */
		struct {
			uint32_t to; /* before its first record, that processor + 1; 0: not seen */
			bool by_switch; /* ... when another of ours had just left it */
			uint64_t ns;
		} came;
		uint32_t processors;      /* set that it may run on, + 1; 0: not known */
		uint32_t processor_queue; /* entered while it waited: another of ours was there
					     before; else NONE */
		/* While it waits: when it got one that none of ours had just left; 0: it did not. */
		uint64_t on_ns;
		uint64_t begin_run_ns; /* when it came to its processor */
		uint64_t ready_ns; /* preempted (or woken: recordings of the system) then; 0: not */
		bool left_in_wait; /* since the present wait began */
	} cpu;
	struct thread_limit {                /* time limits of waits */
		uint64_t cond_wait_ns;       /* when its wait on a condition variable began */
		uint64_t timer_ns, timed_ns; /* one ended its last wait; how long that was, or 0 */
		uint64_t timed_before_ns;    /* the same of the wait before the present one */
	} limit;
	struct run_states runs;
	struct { /* rules_turn.c: an event loop's thread speaks for the task whose turn it is */
		uint32_t task;        /* + 1; 0: for itself */
		uint32_t actor, role; /* its own, meanwhile */
		uint32_t run_state;
		struct run_states runs;
		uint32_t loop; /* of model_turns + 1; 0: it has none */
	} turn;
	bool resumes;              /* the present wait goes on after a signal's handler */
	bool interrupted;          /* and such a one is not over, though its handler does things */
	uint32_t at_barrier;       /* object: has come there and not left; 0: none */
	bool link_next, link_back; /* deferred link across a call */
	bool acts;                 /* for machines in turn (note_act): no actor itself */
	struct kernel_view k;
	struct io io;
	struct sleep sleep;
	struct message message;
	struct {
		uint32_t site; /* of a vfork or posix_spawn since which it has not slept; 0: none */
		bool in_child; /* vfork's, which has not executed a program, nor ended */
	} spawn;
	struct visit visit;
	struct {                     /* a wait that an annotation announced (announced.c) */
		bool is_on, is_told; /* told: the graph knows of it */
		uint32_t actor, queue, state; /* who waits, for what, in which state */
		int64_t n;
		enum graph_verb_kind verb;
		uint32_t nr_owed;
		struct {
			uint32_t object;
			uint64_t n;
		} owed[MODEL_OWED_MAX]; /* taken since then, of which nothing was told */
	} announced;
	struct held *held; /* up to MODEL_HELD_MAX */
	struct machine *machine;
	size_t held_capacity, machine_capacity;
};

#endif
