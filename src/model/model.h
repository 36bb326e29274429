/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - from records to actors, states and queues: who waits on which queue. Drives the graph
 * engine.
 *
 * Every record kind has a rule (rules*.c) that turns it into verbs of graph.h. The model also owns
 * all names. Ids of actors, states and queues are those of the graph; they depend on the trace
 * only, so a second pass over the same trace (with scenarios) gives the same ids.
 */
#ifndef LONGPOLE_MODEL_H
#define LONGPOLE_MODEL_H

#include "graph/graph.h"
#include "graph/part.h"
#include "trace/trace.h"
#include "trace/enums.h"

/* What an actor does in a state. `waits` = not executing: counted as waiting share. */
#define MODEL_STATE_KINDS(X)                                                                       \
	X(run, false, "running")                                                                   \
	X(hold, false, "holding a lock")                                                           \
	X(wait, true, "waiting")            /* on a queue that is known */                         \
	X(latency, true, "wake-up latency") /* from available to used */                           \
	X(runnable, true, "waiting for a processor")                                               \
	X(blocked, true, "blocked, not seen in what") /* unexplained */                            \
	X(external, true, "waiting for the outside")  /* network peer, terminal: not recorded */   \
	X(sleep, true, "sleeping")                                                                 \
	X(io, false, "in the kernel") /* file read, write, fsync */                                \
	X(start, false, "starting")                                                                \
	X(elsewhere, true, "serving other connections")                                            \
	X(annotated, false, "annotated state")                                                     \
	X(idle, true, "not started or ended")                                                      \
	X(device, false, "a device works")
enum model_state_kind {
#define X(name, waits, text) MODEL_STATE_##name,
	MODEL_STATE_KINDS(X)
#undef X
		MODEL_STATE_NR
};
const char *model_state_kind_name(enum model_state_kind k); /* "run" (JSON) */
const char *model_state_kind_text(enum model_state_kind k); /* "running" */
bool model_state_kind_waits(enum model_state_kind k);

/* Why it is in the state: states.def. With its arguments it is a state's identity, which its name
 * is the text of: what must know what a state is asks for these, and never reads the name. */
enum model_cause {
#define STATE(cause, kind, lead, phrase, sentence) MODEL_CAUSE_##cause,
#include "model/states.def"
#undef STATE
	MODEL_CAUSE_NR
};
enum model_state_kind model_cause_kind(enum model_cause c);

/* What a cause's phrase may be about. */
#define MODEL_ARGUMENTS(X)                                                                         \
	X(object) /* "mutex counter_lock": all that share the name */                              \
	X(function)                                                                                \
	X(other_function)                                                                          \
	X(place)                                                                                   \
	X(program) /* with its start routine: an actor's group */                                  \
	X(call)    /* of the kernel */                                                             \
	X(waker)   /* "a timer", "kernel thread kswapd0" */                                        \
	X(io)      /* "read", "fsync" */                                                           \
	X(disk)    /* what a disk does: "write" */                                                 \
	X(cgroup)                                                                                  \
	X(machine) /* annotated */                                                                 \
	X(state)   /* annotated */                                                                 \
	X(rank)    /* of MPI: "rank 3" */                                                          \
	X(mpi_call)                                                                                \
	X(communicator) /* by its name alone */                                                    \
	X(library)      /* a function of a runtime's library */
enum model_argument_type {
#define X(name) MODEL_ARGUMENT_##name,
	MODEL_ARGUMENTS(X)
#undef X
		MODEL_ARGUMENT_NR
};
enum { MODEL_ARGUMENTS_MAX = 3 };
/* Texts have numbers: the same number for the same text, of a name, a place, an argument; 0: "". */
struct model_argument {
	enum model_argument_type type;
	uint32_t text;
};

struct model_state {
	enum model_state_kind kind;
	enum model_cause cause;
	struct model_argument argument[MODEL_ARGUMENTS_MAX]; /* in the order of the phrase */
	unsigned nr_arguments;
	uint32_t identity; /* one a cause with its arguments, dense from 0: states of one name */
	uint32_t where_text;
	const char *name;  /* "holding counter_lock", "waiting for pipe (sort -> gzip)",
			     "compress_thread()": unique in its actor group */
	const char *what;  /* the end of the name, without "holding ", "running " */
	const char *where; /* "increment (ladder.c:42)": where it began; "" when not known */
	/* A call on a file by the file's own name, also where NAME says "fsync of many files":
	 * "fsync of file /x/log.2", and "fsync /x/log.2". NULL: none. */
	const char *of_file, *on_file;
	bool is_recorders; /* longpole itself: not the program's, and gone without it */
	uint32_t object;   /* definition id; 0: none */
	uint32_t site;     /* definition id; 0: none */
	/* Calls on descriptors: how long all of them took, and how much of that without a
	 * processor, as far as switches were recorded. */
	uint64_t call_ns, away_ns;
	/* Of a sleep: until it ended, and until something ended it before its time. */
	uint64_t slept_ns, broken_ns;
	/* Of it in naps again and again at one place, between which it gives nobody anything: it
	 * may look for what another thread does (naps.c). */
	uint64_t polled_ns;
};
enum model_actor_kind {
	MODEL_ACTOR_thread,
	MODEL_ACTOR_machine, /* annotated */
	MODEL_ACTOR_meeting, /* of a barrier's parties, an rwlock's readers; a clock: nobody */
	MODEL_ACTOR_context, /* an interrupt's or softirq's handler on one processor */
	MODEL_ACTOR_device,  /* a disk, a socket's sender */
};
struct model_actor {
	enum model_actor_kind kind;
	const char *name;  /* "pigz/compress_thread #2", main thread: "pigz" */
	const char *group; /* actors of one program and start routine: "pigz/compress_thread" */
	uint32_t name_text, group_text; /* their numbers */
	uint32_t group_ix;              /* dense from 0 */
	uint32_t base;      /* the actor itself; another when this is it serving a connection */
	uint64_t pid, tid;  /* tid 0: not a thread (annotated machine, barrier) */
	const char *cgroup; /* its path; NULL, "": not known, or not of the whole system */
	uint64_t begin_ns, end_ns; /* end: of its last record */
	bool ended;                /* and it did end then; else it may go on */
};
/* An object is one queue that its users take from, and may have others that help it. */
enum model_queue_part {
	MODEL_QUEUE_whole,
	MODEL_QUEUE_helper,  /* a pipe's end of file, what an rwlock's readers left together */
	MODEL_QUEUE_wake,    /* a system's: one thread is woken through it; nobody thinks of it */
	MODEL_QUEUE_meeting, /* where only a meeting point waits: arrivals, readers' releases */
};
/* What is true of a type of object: object_types.def. */
enum model_trait {
	MODEL_TRAIT_lock = 1 << 0,         /* a thread has it for a while */
	MODEL_TRAIT_tokens = 1 << 1,       /* its units come back */
	MODEL_TRAIT_exchangeable = 1 << 2, /* which unit is whose does not matter */
	MODEL_TRAIT_handed = 1 << 3,       /* given back, it is whose turn it is */
	MODEL_TRAIT_counts = 1 << 4,       /* its units are signals: only sinks hear of them */
	MODEL_TRAIT_frees_locks = 1 << 5,  /* a wait for it gives locks up: the queue's own */
	MODEL_TRAIT_bytes = 1 << 6,        /* of a writer, for a reader */
	MODEL_TRAIT_messages = 1 << 7,     /* of senders, for receivers */
	MODEL_TRAIT_stores = 1 << 8,       /* what is put into it stays until somebody takes it */
	MODEL_TRAIT_tagged = 1 << 9,       /* its units tell whose they are */
	MODEL_TRAIT_sized = 1 << 10,       /* its capacity is known from the first unit on */
	MODEL_TRAIT_limited = 1 << 11,     /* ... is a limit: struct model_queue */
	MODEL_TRAIT_numbered = 1 << 12,    /* each is itself: called by its number */
	MODEL_TRAIT_connects = 1 << 13,    /* processes speak through it */
	MODEL_TRAIT_alike = 1 << 14,       /* drawn as one with others of the same users */
	MODEL_TRAIT_carries = 1 << 15,     /* a hand-off through it is communication */
	MODEL_TRAIT_had_to_run = 1 << 16,  /* whoever runs has it: that is no state of its own */
	MODEL_TRAIT_had_asleep = 1 << 17,  /* ... and sleeps with it */
};
bool model_object_is(enum trace_object_type type, enum model_trait trait);
#define MODEL_TYPE_PROCESSOR TRACE_OBJECT_NR /* a queue's type beside those of objects */

struct model_queue {
	const char *name;   /* "mutex counter_lock", "pipe 8123 (stage1 -> stage2)" */
	uint32_t name_text; /* its number */
	uint32_t object;    /* definition id; 0: thread start, exit, processor */
	uint64_t capacity;  /* units; 0: not known */
	uint64_t limit; /* what else is known to bound it (a pipe's bytes): no path leads through
			      its room before somebody waits for that; 0: nothing */
	bool tokens;    /* its units come back: a lock's, a pool's, a window's credits */
	enum trace_object_type type;
	enum model_queue_part part;
};

/* Where the processor was while actors were in a state: from samples. */
enum { MODEL_FRAMES_MAX = 33 }; /* a function and what is inlined there */
struct model_inlined_share {    /* samples at one way of inlining */
	uint32_t chain;         /* model_chain_frames() */
	uint64_t nr_samples;
	double share; /* of the state's running time */
};
struct model_function_share {
	const char *function, *where; /* name; module or file */
	uint64_t nr_samples;
	double share, share_low,
		share_high; /* of the state's running time; Wilson interval, 95 % */
	struct model_inlined_share *inlined; /* parts of it, most samples first; the rest is its own
					      */
	size_t nr_inlined;
};

/* A set of moments: one of these actors enters one of these states. Ids of an earlier pass. */
struct model_place {
	const bool *actor, *state; /* by id; NULL: every one */
	uint32_t nr_actors, nr_states;
};

struct model_options {
	size_t size;
	const struct graph_scenario *scenario; /* ids as found by an earlier pass */
	unsigned nr_scenarios;
	bool keep_path, runner_up, crossings;
	size_t max_memory_bytes;
	/* The path leads from the first moment of `start` (NULL: the program's start) to the last
	 * of `end` (NULL: the program's end), as in seed 000 section 6.1. */
	const struct model_place *start, *end;
	/* One path per connection (seed 000 section 5.1.5): end n of the graph is connection n's,
	 * and an actor is (actor, connection). `connection` not 0: only that one's, which is end 0.
	 */
	bool connections;
	uint64_t connection;
	/* Only this part of the run, both ends in it: what came before sets states, queues and
	 * locks; what comes after says what the end depended on. from 0: the beginning; to 0 or
	 * UINT64_MAX: the end. ERR_NOTFOUND when the trace ends before it. The sink hears all. */
	uint64_t from_ns, to_ns;
	/* The path ends at this process's last moment, by pid or by name ("redis-server"; of
	 * several the one that ran most; where no switches were recorded, that lived longest).
	 * NULL: where the program that was started ended; in a recording of the whole system that
	 * started none: at the process that ran most. ERR_NOTFOUND. */
	const char *process;
	bool system;         /* a recording of the whole system; model_run() knows */
	const char *command; /* of it: the program that was started, as its definition has it; NULL:
				none; model_run() knows */
	bool merged;         /* of several recordings; model_run() knows */
	bool wait_all;       /* the path ends where the last process does; model_run() knows */
	bool turns;          /* model_turn() will be used */
	void (*progress)(void *ctx, uint64_t done_records,
		uint64_t all_records); /* may be NULL; called every 100,000 or so */
	void *progress_ctx;
	/* Hears every declaration and verb that the graph gets, after the graph; may be NULL. Must
	 * outlive the run. */
	const struct graph_sink *sink;
	const struct graph_listener *listener; /* hears the moments; the same */
	struct graph_watch
		*watch; /* histograms of chosen queues (graph/histogram.h); may be NULL */
};

struct model;
/* model_run() - read all of r from its current position, to the end, and finish the graph. The
 * names borrow from r: keep it open. BASE_OK also for damaged traces (see model_health). */
enum base_status model_run(struct trace_reader *r, const struct model_options *opts,
	struct model **ret, struct base_err *err) BASE_MUST_CHECK;
/* One more owner, which frees it, too; the last one frees it indeed. Returns m. */
struct model *model_share(struct model *m);
struct model *model_free(struct model *m);

/*
 * The same in pieces, for callers that have records but no trace. `defs` may grow between calls
 * (entries change, tables move, the struct stays), must be there as long as the model, and must
 * define what a batch mentions before it is fed; an id that it does not know is counted. What
 * `opts` points to must outlive the model, opts itself need not.
 */
enum base_status model_new(const struct trace_defs *defs, const struct model_options *opts,
	struct model **ret, struct base_err *err) BASE_MUST_CHECK;
/* The next records, in time order. After an error only model_free() is useful. */
enum base_status model_feed(struct model *m, const struct trace_record *r, size_t nr,
	struct base_err *err) BASE_MUST_CHECK;
/*
 * Without an end: model_turn() ends a window before the first record after time_ns and begins the
 * next one (graph/part.h, where `start_all` is explained). Not with ends, connections or a window
 * in the options. Of the queries below only those of states' and actors' kinds and ids may be used
 * then, and these here: names as they are known now.
 */
enum base_status model_turn(struct model *m, uint64_t time_ns, bool start_all,
	struct graph_part **ret, struct base_err *err) BASE_MUST_CHECK;
/* Looks at the samples so far, which name running states. */
enum base_status model_refresh_names(struct model *m, struct base_err *err) BASE_MUST_CHECK;
enum model_cause model_add_state_name(struct model *m, uint32_t state, struct base_str *ret);
/* ... of an argument, which it may not have: then nothing is added. */
void model_add_state_argument(
	struct model *m, uint32_t state, enum model_argument_type type, struct base_str *ret);
void model_add_state_where(
	struct model *m, uint32_t state, struct base_str *ret); /* may add nothing */
void model_add_group_name(struct model *m, uint32_t actor, struct base_str *ret);
void model_add_object_name(
	struct model *m, uint32_t state, struct base_str *ret); /* that it waits for */
/* Actors of one group have one group name; any number. */
uint64_t model_actor_group(const struct model *m, uint32_t actor);
uint32_t model_actor_stream(
	const struct model *m, uint32_t actor); /* definition id; 0: no thread */
/* When its thread began, or was first seen; UINT64_MAX: not yet. 0: it is no thread. */
uint64_t model_actor_born_ns(const struct model *m, uint32_t actor);
/* As model_end_actor() of a run that ended now; GRAPH_ANY_ACTOR also before the first record. */
uint32_t model_end_actor_now(struct model *m);

struct graph *model_graph(struct model *m); /* of model_run(): query results */
const struct model_state *model_state(const struct model *m, uint32_t state);
/* Is that true of the object that the state is about? */
bool model_state_about(const struct model *m, uint32_t state, enum model_trait trait);
/* The number of an argument's text; 0: it has no such, or it is not known. */
uint32_t model_state_argument(const struct model_state *st, enum model_argument_type type);
const char *model_text(const struct model *m, uint32_t text); /* of that number; borrowed */
/* A wait that a time limit or a timer ends, or a signal that may be one's: whether that moves with
 * the work before it is not known. */
double model_state_timed_share(const struct model *m, uint32_t state); /* of its time */
/* Reads of a periodic timerfd that found several periods over. A quicker program would meet each of
 * them; what it then does is not known. */
uint64_t model_nr_late_timer_reads(const struct model *m);
/* A world of MPI, as far as ranks of it were recorded (runtime/mpi/ranks_mpi.c). */
struct model_mpi_world {
	uint32_t object; /* the communicator */
	uint32_t nr_ranks, nr_recorded;
};
struct model_mpi_rank { /* one of its ranks; all 0, and status -1: it was not recorded */
	bool recorded, ended, finalized, aborted; /* aborted: it called MPI_Abort, there: */
	uint32_t process, abort_site;
	int64_t status;  /* as waitpid has it; -1: not known */
	uint64_t end_ns; /* if it ended */
};
/* What one rank sends another, point to point; and calls that waited for it. A late sender lets its
 * receiver wait, until it begins to send; a late receiver its sender, until it asks. */
struct model_mpi_traffic {
	uint64_t nr_messages, nr_bytes;
	uint64_t nr_late_senders, late_senders_ns, nr_late_receivers, late_receivers_ns;
};
/* The i-th way between two ranks of a communicator; *ret_from, *ret_to: ranks in the world, -1 where
 * that is not known. False: there are no more. */
bool model_mpi_way(const struct model *m, size_t i, int64_t *ret_from, int64_t *ret_to,
	struct model_mpi_traffic *ret);
/* The process of an actor that is a thread of a rank; 0: it is none. */
uint32_t model_rank_process(const struct model *m, uint32_t actor);
const struct model_mpi_world *model_mpi_worlds(const struct model *m, size_t *ret_nr);
struct model_mpi_rank model_mpi_rank_of(
	const struct model *m, const struct model_mpi_world *w, uint32_t rank);
/* Timers of the process whose timer sent its signal last before end_ns (box.c); false: none did. */
struct model_box {
	uint64_t set_ns;   /* from when it was set until it sent a signal, of all that it sent */
	uint64_t after_ns; /* from the last of them to end_ns */
	uint64_t nr;       /* signals */
	uint32_t site;     /* where it was set last */
};
bool model_box(struct model *m, uint64_t end_ns, struct model_box *ret);
/* The signal by which somebody who was not recorded ended the program (Ctrl-C, timeout, kill), also
 * where the program took the one that came through the recorder and ended by itself, so that the run
 * was as long as they wanted it to be; MODEL_RECORDING_ENDED: the recording ended while the program
 * ran on (record -p PID --for=TIME); 0: neither. */
enum { MODEL_RECORDING_ENDED = -1, MODEL_MAY_BE_ENDED = -2 };
int model_ended_from_outside(const struct model *m);
/* When a signal that nobody recorded sent broke off a wait of the program for the first time: a
 * program that ends soon after may do so because of it (MODEL_MAY_BE_ENDED); 0: none did. */
uint64_t model_first_broken_off(const struct model *m);
const struct model_actor *model_actor(const struct model *m, uint32_t actor);
/* What an actor is, in its program's words. */
enum model_noun {
	MODEL_NOUN_none,
	MODEL_NOUN_thread,
	MODEL_NOUN_goroutine,
	MODEL_NOUN_task, /* of an event loop */
	MODEL_NOUN_rank, /* of MPI: its name says so ("ring rank 0") */
	MODEL_NOUN_NR
};
extern const char *const model_noun_text[MODEL_NOUN_NR];
/* (of the clock that an actor sleeps by: that actor's) */
enum model_noun model_actor_noun(const struct model *m, uint32_t actor);
const struct model_queue *model_queue(const struct model *m, uint32_t queue);
/* A semaphore that held one unit at most, in the whole run, which each taker gave back: a lock in all
 * but name. `object` is a definition's id; any may be asked. */
bool model_is_used_as_lock(const struct model *m, uint32_t object);
/* What the queue holds at most, when the run is over; 0: not known. Inferred: somebody waited for
 * room, and more than that was never in it; else the trace says so. */
uint64_t model_queue_size(const struct model *m, uint32_t queue, bool *ret_inferred);
/* The actor that a stream of the trace is; UINT32_MAX: none. */
uint32_t model_stream_actor(const struct model *m, uint32_t stream);
/* ... while that task has its turn on it (records turn_begin, turn_end); 0: none has. */
uint32_t model_turn_actor(const struct model *m, uint32_t stream, uint64_t task);
/* Functions of a state, most samples first; *ret_nr 0 without samples. Borrowed. */
const struct model_function_share *model_functions(
	const struct model *m, uint32_t state, size_t *ret_nr);
/* A state's time by call paths, as its samples say: each is a part of `function`, its chain (0:
 * nothing is inlined) and stack (0: not known). Their shares sum up to 1. False: `take` said so. */
struct model_call_path {
	const char *function, *where; /* as in model_function_share */
	uint32_t stack, chain;
	double share; /* of the state's running time */
};
bool model_each_call_path(struct model *m, uint32_t state,
	bool (*take)(void *ctx, const struct model_call_path *p), void *ctx);
/* What share of a state's samples has a function of a kind among its callers, or runs itself in one:
 * each sample counts once. One match for all states of a question: it remembers answers. */
struct model_match {
	bool (*is_it)(void *ctx, const char *function);
	void *ctx;
	bool self; /* only where it runs itself, or is inlined */
	struct base_map functions, points;
};
/* False: none has, or no memory. ret: its shares and nr_samples. */
bool model_share_in(struct model *m, uint32_t state, struct model_match *match,
	struct model_function_share *ret);
void model_match_fini(struct model_match *match);
/* Of the time that a state executes, what share its samples have in loops that only wait (trace
 * kind wait_loop), and where most of these are (a site); share 0: none are. */
struct model_spin {
	double share;
	uint32_t site;
	const char *word; /* the variable that is read there; "" not known */
};
struct model_spin model_state_spin(const struct model *m, uint32_t state);
/* How long the program's threads waited for locks by their own counts (lock_waits): time that the
 * graph takes for running. */
uint64_t model_counted_wait_ns(const struct model *m);
/* The function that is there, not inlined; "" unknown. */
const char *model_function_at(const struct model *m, uint32_t site);
uint64_t model_nr_records(const struct model *m);
uint64_t model_last_ns(const struct model *m); /* of any record, since the recording's start */

/* Connections, in the order of their first appearance (model_options.connections). */
struct model_connection {
	uint64_t id;        /* as identified */
	uint32_t end;       /* of the graph: its path */
	uint64_t begin_ns;  /* first identified */
	uint64_t nr_actors; /* that served it */
};
enum { MODEL_CONNECTIONS_MAX = 4096 }; /* of more, the first ones are followed */
uint32_t model_nr_connections(const struct model *m);
const struct model_connection *model_connection(const struct model *m, uint32_t i);
uint64_t model_nr_connections_not_followed(const struct model *m);
/* The connections that an actor served, ascending indices; *ret_nr 0: none. Borrowed. */
const uint32_t *model_actor_connections(const struct model *m, uint32_t actor, size_t *ret_nr);
/* The actor whose last verb ends the path; GRAPH_ANY_ACTOR: whichever comes last. */
uint32_t model_end_actor(const struct model *m);
/* Are its actors tasks that a language's runtime runs on threads of its own: goroutines? */
bool model_has_tasks(const struct model *m);
/* A recording of the whole system: every thread's switches and wakes are there. */
bool model_is_system(const struct model *m);
/* ... then: the program whose last moment ends the path, and its number. */
const char *model_end_process(const struct model *m, uint64_t *ret_pid);
/* Blocked intervals of all threads (recordings of the system). */
struct model_waits {
	uint64_t nr;
	uint64_t nr_unseen; /* ended without a known waker or cause */
	uint64_t nr_hidden; /* of these: while somebody ran whose events the kernel does not show */
};
struct model_waits model_waits(const struct model *m);
/* Those that ended without a known waker or cause, by what was waited for; most frequent first.
 * Owned by the model; call it when all is read. */
struct model_unseen {
	uint32_t state;
	bool several; /* other kinds, too: there were too many */
	uint64_t nr, total_ns, longest_ns, longest_begin_ns;
	uint32_t longest_actor;
};
const struct model_unseen *model_unseen_kinds(struct model *m, size_t *ret_nr);
/* Counters of reading and modelling together. */
const struct trace_health *model_health(const struct model *m);
/* Text of a site: "function (file:line)", "put (q.h:4), inlined in main", "module+0x12ab".
 * Borrowed. */
const char *model_site_text(struct model *m, uint32_t site);
/* The function at a site, then what is inlined in it there, each with the line that it is at.
 * Returns how many; 0: it has no symbol. Borrowed texts, "" where not known. */
struct model_frame {
	const char *function, *file;
	uint64_t line;
	bool inlined; /* into the one before */
};
unsigned model_site_frames(
	const struct model *m, uint32_t site, struct model_frame ret[static MODEL_FRAMES_MAX]);
#define MODEL_INLINED_MARK                                                                         \
	"_[i]" /* behind a name in lines of frames, as stackcollapse-perf.pl does */
/* The functions of a chain without the outermost one, callers first; returns how many. */
unsigned model_chain_frames(
	const struct model *m, uint32_t chain, const char *ret[static MODEL_FRAMES_MAX]);
/* The innermost function of a chain that is the program's own code, not inlined from a library's
 * header; "": none of those that were inlined is. Borrowed. */
const char *model_chain_inner(const struct model *m, uint32_t chain);
/* The line that most samples of a function were in, inlined or not; of one of a library, that of the
 * program's own code that most of them were called from: "src/q.h:40"; "": not known. Kept as long
 * as the model. */
const char *model_function_line(struct model *m, const char *function);
/* The program's own function that nine tenths of the samples in a library's function were called
 * from, by that library or another; "": none, or it is the program's own. Kept as long as the model. */
const char *model_function_caller(const struct model *m, const char *function);

/* Non-active time: preempted and ready, but another had the processor that it got in the end. By
 * waiting actor, longest first. (How long a woken thread waits for a processor nobody records: that
 * is in its hand-off.) */
#define MODEL_OTHERS UINT32_MAX
struct model_processor_wait {
	uint32_t waiting, had; /* actors; had MODEL_OTHERS: programs that are not recorded */
	uint64_t wait_ns, nr;
};
const struct model_processor_wait *model_processor_waits(const struct model *m, size_t *ret_nr);
/* Part of graph_totals()'s time in which an annotated machine acted for the actor. */
uint64_t model_away_ns(const struct model *m, uint32_t actor, uint32_t state);
/* The thread that ran just before the actor left that blocked state: the most frequent one, in
 * *ret_nr of *ret_all times; MODEL_OTHERS: not known. */
uint32_t model_ran_before(
	const struct model *m, uint32_t actor, uint32_t state, uint64_t *ret_nr, uint64_t *ret_all);
/* Call path of a stack definition, outermost first, with inlined functions; returns the number of
 * frames written: the innermost ones, at most max. */
size_t model_stack_frames(struct model *m, uint32_t stack, struct model_frame *frame, size_t max);

#endif
