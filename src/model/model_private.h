/* SPDX-License-Identifier: Apache-2.0 */
/* model_private.h - shared by the model's rules; not for other layers. */
#ifndef LONGPOLE_MODEL_PRIVATE_H
#define LONGPOLE_MODEL_PRIVATE_H

#include "model/findings.h"
#include "model/model.h"
#include "model/object.h"
#include "model/thread.h"

#define MODEL_LEADERS    (1ull << 40)
#define MODEL_FORKS      (1ull << 41)
#define MODEL_BIRTHS     (1ull << 42)
#define MODEL_EXECS      (1ull << 43)
#define MODEL_AFFINITIES (1ull << 44) /* | a token's image, its number -> set of processors + 1 */
enum { MODEL_KINDS = 256 };           /* of records that have rules */

/* ---- findings.c, check.c: are the annotations right? ----------------------------------------- */

struct found { /* see struct model_finding */
	enum model_check check;
	uint32_t site, object, actor, first, second; /* first, second: strings */
	bool near_by;
	uint64_t count, first_ns, a, b;
};
struct findings {
	struct found *found;
	struct model_finding *pub;
	size_t nr, capacity;
	struct base_map by_key; /* (check, site), (actor, what) -> index */
	uint64_t nr_more;
};
enum noting_wait { NOTING_NO, NOTING_DATA, NOTING_SPACE };
struct noting { /* what an actor's annotations said last */
	enum noting_wait waits;
	uint32_t object, site;
	uint64_t n;      /* waited for */
	bool several;    /* waits for another queue, too: either may end it */
	bool identified; /* and has done nothing since */
	uint64_t nr_takes, nr_waits, connection;
	uint64_t take_ns; /* the first one, */
	uint32_t take_site;
};
struct flight {              /* of an annotated queue */
	uint64_t changed_ns; /* its units, last; 0: never */
	uint32_t changed_by; /* stream */
};

/* ---- processor.c: who ran where -------------------------------------------------------------- */

enum { MODEL_HAD_MAX = 8, MODEL_CPU_HISTORY = 64, MODEL_CPUS_MAX = 1 << 16 };
struct cpu_use {
	uint32_t stream, actor;
	uint64_t begin_ns, end_ns;
};
struct cpu {
	uint32_t stream, last; /* runs there now, ran there last; 0: none of ours */
	uint64_t since_ns, last_ns;
	struct cpu_use *use; /* the last MODEL_CPU_HISTORY; NULL: nobody has left it */
	uint32_t nr;
};

struct role { /* actors of one program and start routine, or one kind of context, on one host */
	uint32_t host; /* 0: there is only one */
	uint32_t process_name, site, group_ix, nr_actors;
	enum trace_context_type context;
	bool recorder; /* its threads are longpole's, which recorded this */
	const char *name;
};

/* A function with what was inlined in it: the way to one inlined function. */
struct model_chain {
	uint32_t parent;   /* chain; 0: this is the function itself */
	uint32_t function; /* string */
	bool brought;      /* its code is not the program's own, but a header's of a library */
};
/* What a sample was in, in the upper half of its key: a function's string, else */
enum { MODEL_SAMPLE_module = 1, MODEL_SAMPLE_chain, MODEL_SAMPLE_inside, MODEL_SAMPLE_point };
struct model_line { /* lines.c: that of a function with most of its samples */
	const char *function;
	uint32_t file, line; /* file: string */
	uint32_t caller;     /* of a library's function: the program's that calls it, a string; 0 */
	uint64_t nr_samples;
};
struct sample_point { /* callers.c: one of the others, and who called it */
	uint64_t function;
	uint32_t stack;
};

enum { MODEL_STRATA = 16 }; /* parts of a visit of a state: samples.c */
struct strata {
	uint64_t nr[MODEL_STRATA];
};
#define MODEL_KERNEL_NOT_SAMPLED "the kernel (not sampled)"
struct sample_row {
	uint64_t function, nr; /* function: a key of samples */
	uint32_t stratum;
};
struct function_list { /* where samples were, most first */
	struct model_function_share *function;
	struct strata *strata; /* of each; NULL once the shares are known */
	size_t nr;
	uint64_t nr_samples;
	struct strata all;
	struct sample_row *row;
	size_t nr_rows, row_capacity;
};

struct state_info {
	struct model_state pub;
	uint32_t role, class_ix; /* NONE where it does not apply */
	/* What its cause's {io}, {disk}, {cgroup}, {call}, {waker}, {state} is; of a running one its
	 * stream; of a hand-off without an object its queue's type. An annotated machine is in
	 * `role` (a string). */
	uint32_t detail;
	struct function_list own;
	bool like_role;                   /* its samples may as well be of the role's */
	uint64_t nr_spins, nr_most_spins; /* samples in loops that wait; of them at spin_site */
	uint64_t nr_program_samples;      /* of all, not those that the kernel should have had */
	uint32_t spin_site;
};

struct actor_info {
	struct model_actor pub;
	uint32_t role, thread, number, actor_def;
	uint32_t state;             /* what it entered last; NONE: nothing yet */
	uint32_t clock_site;        /* + 1; 0: not a clock */
	uint32_t clock_of;          /* + 1: of that actor alone, whose name it has */
	enum model_actor_kind kind; /* of one without a role and definition: what it is */
	uint32_t object;            /* ... and of what */
	/* connections.c; of a base actor: */
	uint32_t serves;    /* number + 1 of the connection; 0: none */
	uint32_t speaks_as; /* graph actor of (this, serves) */
	uint32_t *served;   /* indices, ascending */
	size_t nr_served, served_capacity;
	uint64_t last_ns;    /* of an (actor, connection): its last verb but parking */
	uint32_t connection; /* of an (actor, connection): number + 1 */
};

struct queue_info {
	struct model_queue pub;
	uint32_t latency_state;
	const char *what; /* before its object's name: "window of "; NULL: nothing */
	uint32_t wakes;   /* stream + 1: it only wakes that thread; 0: no such queue */
	bool anonymous;   /* its units do not tell whose they are */
};

enum { MODEL_NAMED_CLASSES_MAX = 200 }; /* files, connections, pipes: further ones share one */
struct lock_class {
	uint32_t type, name, site,
		object;   /* name: string id, else site of first use and one object */
	const char *text; /* what all of it are called together; NULL: see above */
	struct class_users {
		uint32_t role[2]; /* + 1: of a pipe who writes and who reads, first; of a
				     socket the first two; 0: nobody */
		bool more[2];
		uint32_t site[2]; /* of that one's first call; 0: not known */
	} users;
};

enum { RECENT_STATES = 64 };
struct recent_state { /* by key, beside the map: few states are entered again and again */
	uint64_t hi, lo;
	uint32_t id;
	bool known;
};

struct waker { /* a kind of context; or a kernel thread: TRACE_CONTEXT_none */
	enum trace_context_type type;
	uint32_t name; /* string */
	bool timed;    /* a program that a timer had woken */
};

struct run_time { /* of a process */
	uint64_t run_ns, nr_blocks, nr_unseen;
	uint64_t nr_hidden; /* of nr_unseen: what the kernel does not show may have ended them */
};

/* A wait that nobody was seen to end. */
enum { MODEL_UNSEEN_MAX = 64, MODEL_UNSEEN_KINDS = 64 };
struct unseen {
	uint32_t process;
	uint64_t begin_ns, end_ns; /* 0: no such */
};

/* Which processors there are, who is on them, and who waited for whom there (processor.c, affinity.c). */
struct model_processors {
	struct object *processor; /* by processor number */
	size_t nr_processors, processor_capacity;
	struct cpu *cpu; /* by processor number */
	size_t nr_cpus, cpu_capacity;
	struct model_processor_wait *pair;
	size_t nr_pairs, pair_capacity;
	struct base_map pairs;  /* (waiting actor, who had it) -> pair */
	struct base_map wakers; /* (blocked state << 32 | actor, who ran before) -> count */
	struct base_map away;   /* (actor, state) -> ns that a machine acted for it */
	struct base_map
		processor_sets; /* (list, first processor of its host) -> set + 1; 0: none */
	uint32_t nr_processor_sets;
};

/* Roles, classes, states, actors and queues, as they were made (made.c). */
struct model_made {
	struct role *role;
	size_t nr_roles, role_capacity;
	struct lock_class *class_;
	size_t nr_classes, class_capacity;
	struct state_info *state;
	size_t nr_states, state_capacity;
	struct actor_info *actor;
	size_t nr_actors, actor_capacity;
	struct queue_info *queue;
	size_t nr_queues, queue_capacity;
	struct base_map roles, classes, states; /* keys -> index */
};

/* What samples say of running states (samples.c). */
struct model_sampled {
	struct function_list *pool; /* by (role, site) of running states */
	size_t nr_pools, pool_capacity;
	struct base_map pools;
	struct base_map spins;   /* (state, site of a loop that waits) -> samples */
	struct base_map samples; /* (state; part of its visits, and function string, module or
				       chain) -> count */
	struct base_map lines;   /* (0, site) -> samples */
	struct model_line *line; /* by function */
	size_t nr_lines, line_capacity;
	struct base_map inlined_at; /* (0, site) -> first row of what is inlined there */
	uint32_t nr_inlines;        /* rows that are indexed */
	struct model_chain *chain;
	uint32_t nr_chains;
	size_t chain_capacity;
	struct base_map chains; /* (parent, function string) -> chain */
	struct sample_point *point;
	size_t nr_points, point_capacity;
	struct base_map points; /* (function, stack) -> point */
	const char **inside;    /* texts: a library without names, by its caller */
	size_t nr_insides, inside_capacity;
	struct base_map insides; /* (module, callers' strings) -> of them */
};

/* box.c: a timer that sends a signal, once. */
struct box_timer {
	uint32_t process, site, sent_site;
	uint64_t timer;
	uint64_t set_ns, due_ns;  /* 0: it is not set */
	uint64_t sum_ns, sent_ns; /* how long it had been set when it sent one, of all; the last */
	uint64_t nr_sent;
};

/* rules_turn.c: a task of an event loop. */
struct turn_task {
	uint32_t actor, role, wake_queue, clock; /* clock: an actor that only time moves; NONE */
	uint32_t state;                          /* what it waits in */
	uint32_t run_state, at, site;            /* at, site: as turn_end has them */
	struct run_states runs;
	uint64_t due_ns;               /* of its time; 0: it waits for another thing */
	bool waits, is_ready, is_told; /* told: that its time has come */
};
struct turn_time { /* when a task's time comes, as far as it still waits for that */
	uint64_t due_ns;
	uint32_t task;
};
struct turn_loop {
	uint32_t object;
	struct turn_time *time; /* a heap */
	size_t nr_times, time_capacity;
};
struct model_turns {
	struct turn_task *task;
	size_t nr_tasks, task_capacity;
	struct turn_loop *loop;
	size_t nr_loops, loop_capacity;
	struct base_map tasks; /* (process, number) -> task */
};

/* What times and signals end (rules_clock.c). */
struct model_timing {
	struct clock *clock;
	size_t nr_clocks, clock_capacity;
	uint64_t nr_late_timer_reads;
	struct base_map clocks; /* what it is of -> clock */
	struct base_map
		killers; /* (process, 0) -> the actor that sent it a signal last; (., 1): when;
				    (., 2): when it was told anything */
	struct model_turns turns;
	uint32_t *timer; /* the clocks of timerfds */
	size_t nr_timers, timer_capacity;
	struct box_timer *box_timer;
	size_t box_timer_capacity;
	uint32_t nr_box_timers;
};

/* One path a connection (connections.c). */
struct model_follow {
	bool by_connection;
	struct base_map connection_ids, speakers; /* id -> number; (base, number) -> graph actor */
	struct followed *followed;
	size_t nr_followed, followed_capacity;
	uint64_t nr_not_followed;
};

/* What the program says of itself (rules_note.c). */
struct model_annotated {
	struct standing *standing; /* by actor definition */
	uint32_t nr_standings;
	size_t standing_capacity;
	struct base_map machines; /* (stream, actor definition) -> graph actor */
	struct noting *noting;    /* by actor */
	size_t nr_notings, noting_capacity;
	struct flight *flight; /* by object id; NULL: nothing is annotated */
	size_t flight_capacity;
	uint64_t *passed; /* by site id: annotations there; NULL: none */
	uint32_t nr_passed;
};

/* Recordings of a system: why contexts wake threads, and what nobody was seen to do (rules_kernel*.c, unseen.c). */
struct model_kernel {
	uint32_t put_off; /* queue of the last flush that waits to be sent to a disk */
	bool has_put_off;
	struct waker *waker;
	size_t nr_wakers, waker_capacity;
	struct run_time *run_time; /* by process */
	uint32_t nr_run_times;
	size_t run_time_capacity;
	struct run_time undefined;
	struct unseen unseen[MODEL_UNSEEN_MAX]; /* the last ones that nothing hidden explains */
	uint32_t nr_unseen;
	struct model_unseen unseen_kind[MODEL_UNSEEN_KINDS];
	size_t nr_unseen_kinds;
	uint64_t hidden_until_ns; /* the last stretch whose end was not shown */
};

/* What names are made of (names.c, sites.c). */
struct source_tree {           /* sites.c */
	const char *directory; /* the first `length` bytes, with the slash; borrowed of a file's */
	size_t length;         /* 0: the program's sources have none in common */
	uint32_t nr_symbols, nr_inlines; /* that are looked at */
};
struct model_naming {
	struct source_tree sources;
	const char **site_text; /* by site id, made on demand */
	uint32_t nr_site_texts;
	size_t site_text_capacity;
	uint32_t nr_named_classes; /* so far: of files, connections */
	struct base_map files;     /* (place, operation) -> how many files it was done to */
	/* Users of pipes and sockets -> how many sorts of such have them; users and the calls by
	 * which they use them -> how many such are of that sort. */
	struct base_map alike, equal;
	struct base_strtab *texts;  /* names, places, arguments: what they are called, once */
	struct base_map identities; /* (cause, arguments) -> a state's identity */
	uint32_t nr_identities;
	struct base_map own;     /* (role, name) -> how many threads have given it to themselves */
	enum base_status status; /* a name that could not be kept */
};

/* Which part of the run is looked at, and whose path ends it (ends.c). */
struct model_part {
	uint64_t next_bound_ns; /* of the window: its begin, then its end; UINT64_MAX: passed */
	bool entered, left;     /* the window */
	bool restarts; /* the path begins when the root process does, later than the trace */
	bool path_started;
	uint32_t path_end;  /* whose last verb ends the path when nothing else is said */
	uint32_t end_actor; /* the root process's last; wait_all: of the process that ended last */
	uint32_t end_process; /* image whose last moment ends the path; recordings of the system */
};

/* Threads and things that are known, by their numbers. */
struct model_known {
	struct base_map pipes;    /* inode -> its first definition; a system's */
	struct base_map by_tid;   /* thread number -> its last stream; a system's */
	struct base_map channels; /* side of a channel with a buffer -> queue of arrivals */
	struct base_map owners;   /* (enum owned_how, owner) -> its newest object */
	struct base_map tokens;   /* (what << 32 | image or pid, key) -> queue */
	struct base_map handles;  /* (image, pthread_t) -> stream; (MODEL_LEADERS | image, 0) -> its
				    first stream */
	struct model_mpi *mpi;    /* runtime/mpi/rules_mpi.h; NULL: there is no MPI */
};

struct model_room {
	size_t thread_capacity, object_capacity, connection_capacity, listener_capacity;
};

/* What was read so far. */
struct model_seen {
	struct trace_health health;
	bool tasks;       /* of a language's runtime: its processors are the runtime's, too */
	uint64_t nr_lost; /* as records among the others say */
	uint64_t nr_records, last_ns;
	uint64_t counted_wait_ns; /* of locks, which no event shows */
};

/* What the trace is of. */
struct model_whole {
	uint32_t root_process; /* image that the user started; 0: not yet */
	uint64_t root_pid;
	bool is_merged, wait_all;
	/* Whoever was at work in the process that was cut short last (cut_short.c). */
	uint32_t cut_actor;
	uint64_t cut_ns;        /* 0: none was */
	uint64_t broken_off_ns; /* model_first_broken_off(), whatever timers there are */
	int cut_signal; /* from outside, which ended the program that was started; 0: none did */
};

struct model {
	unsigned nr_more_owners; /* beside the one who made it */
	const struct trace_defs *defs;
	struct graph *graph;
	struct model_options own_opts;
	const struct model_options *opts; /* own_opts */
	const struct graph_sink *sink;
	bool is_watched; /* by more than the graph */
	uint64_t
		recording_ns[MODEL_KINDS]; /* by kind of record: what writing one took the thread */
	struct recent_state recent[RECENT_STATES];
	struct base_arena *arena;
	struct base_err *err; /* the present call's, or own_err; NULL between calls */
	struct base_err own_err;
	enum base_status status; /* first failure of a verb: ends the run */

	/* These grow with the definitions (grow_tables()), between batches only. */
	struct thread *thread; /* by stream id */
	uint32_t nr_threads;
	struct object *object; /* by object id */
	uint32_t nr_objects;
	struct connection *connection; /* by pair id */
	uint32_t nr_connections;
	/* by object id: where a listener's queue is, where a socket calls; 0: nowhere */
	uint32_t *listener;

	struct model_made made;
	struct model_processors processors;
	struct model_sampled sampled;
	struct model_timing timing;
	struct model_follow follow;
	struct model_annotated annotated;
	struct model_kernel kernel;
	struct model_naming naming;
	struct model_part part;
	struct model_known known;
	struct model_room room;
	struct model_seen seen;
	struct model_whole run;
	struct findings findings;

	struct ending { /* objects that an end does something to */
		uint32_t *object;
		size_t nr, capacity;
	} ending;

	uint64_t item_key; /* of the verb being made */
	uint64_t came_ns;  /* ... and graph_verb's */
	bool started;
	bool is_system;    /* every thread's switches and wakes are there */
	bool looks_closer; /* is_system, left, restarts or failed: not every record's rule
			      applies */
};

/* tokens' first key */
enum token_kind {
	TOKEN_thread = 1,
	TOKEN_fork,
	TOKEN_spawn,
	TOKEN_exec,
	TOKEN_exit,
	TOKEN_child,
	TOKEN_last_thread,
	TOKEN_signal /* for one thread; a process has them from TOKEN_child: a child's end is one */
};

/* The definition that stands for all of one thing. */
static inline uint32_t model_same_object(const struct model *m, uint32_t id)
{
	return m->object[id].same_as ? m->object[id].same_as : id;
}

/* ---- made.c, verbs.c: actors, queues, states, verbs ------------------------------------------ */

/* A failure is kept; the first one ends the run, and rules need not look. */
void model_keep(struct model *m, enum base_status s);

uint32_t model_make_state(struct model *m, enum model_cause cause, uint32_t role, uint32_t class_ix,
	uint32_t site, uint32_t detail);
uint32_t model_runnable_state(struct model *m);
/* Waits for what is of that class: until there is something in it, or room. */
uint32_t model_wait_state(struct model *m, uint32_t class_ix, uint32_t site, bool for_space);
/* What a thread does after returning from `site`: a state of its own, for what it runs there may be
 * its own. */
uint32_t model_run_state(struct model *m, struct thread *t, uint32_t site);
uint32_t model_make_actor(struct model *m, uint32_t role, uint32_t thread);
uint32_t model_make_queue(struct model *m, uint64_t initial, uint32_t object,
	enum trace_object_type type, uint32_t latency_class, enum graph_discipline discipline);
/* One that helps another queue of the same object: see struct model_queue. */
uint32_t model_make_part(struct model *m, uint32_t object, enum model_queue_part part,
	enum trace_object_type type, uint32_t latency_class);
uint32_t model_class_of(struct model *m, uint32_t object, uint32_t site);
/* The thread writes to, or reads from, a pipe or socket of that class, which is called after those
 * who do. */
/* In a write, which may wait for space: it leaves its processor, or gets one. */
void model_rule_writer_sleeps(struct model *m, struct thread *t, uint64_t time_ns);
void model_rule_writer_wakes(struct model *m, struct thread *t, uint64_t time_ns);
void model_note_user(
	struct model *m, uint32_t class_ix, const struct thread *t, bool reads, uint32_t site);
uint32_t model_role_of(struct model *m, uint32_t host, uint32_t process, uint32_t site);
uint32_t model_role_of_context(
	struct model *m, uint32_t host, enum trace_context_type type, uint32_t name);
/* hosts.c: of a merged trace; 0 when there is only one. */
uint32_t model_host_of(const struct model *m, uint32_t stream);
uint64_t model_first_processor(const struct model *m, uint32_t stream); /* of its host */
/* Hosts number their processes each for itself. */
uint64_t model_pid_key(const struct model *m, uint32_t stream, uint64_t pid);
uint64_t model_pid_of(const struct model *m, const struct thread *t);
/* The program that was started to be recorded, if one was: what the header says was run. */
void model_find_root(struct model *m);
struct object *model_object(struct model *m, uint32_t id);
/* Is it t's process, or one that it descends from? */
bool model_descends(const struct model *m, const struct thread *t, uint64_t pid_key);
uint32_t model_token_queue(
	struct model *m, enum token_kind what, uint64_t who, uint64_t key, bool make);
uint32_t model_queue_of(
	struct model *m, uint32_t object, struct object *o, uint64_t initial, uint32_t site);

/* rules_lock.c: what a thread holds. */
void model_push_held(struct model *m, struct thread *t, struct object *o, uint32_t object,
	uint32_t site, bool shared);
bool model_pop_held(struct thread *t, uint32_t object);
/* announced.c, while t->announced.is_on: the record says how the thread waits, and was accounted.
 */
bool model_is_within_announced(struct model *m, struct thread *t, const struct trace_record *r);
bool model_announces_again(const struct thread *t, enum graph_verb_kind verb, uint32_t queue);
void model_announce(struct model *m, struct thread *t, enum graph_verb_kind verb, uint64_t time_ns,
	uint32_t queue, int64_t n, uint32_t state);
/* model_verb() of the verb that ends it. */
void model_end_announced(struct model *m, struct thread *t, enum graph_verb_kind verb,
	uint64_t time_ns, uint32_t queue, int64_t n, uint32_t state, uint32_t flags);
/* The state that a thread is in when it waits for nothing. */
uint32_t model_current_state(const struct thread *t);
/* Flags: a time limit or a signal ended the wait, and not what it was for. */
#define MODEL_NOTHING_CAME (GRAPH_EXPLAINED | GRAPH_TIMED_OUT)
void model_signal_came(struct model *m, struct thread *t, uint64_t time_ns, uint32_t otherwise);
void model_handler_began(struct model *m, struct thread *t, uint64_t time_ns);
/* Before the end of a process is told: has a signal ended it, in a sleep or a wait (cut_short.c)? */
void model_cut_short(struct model *m, struct thread *t, const struct trace_record *r);
/* A signal ended its wait; of nobody, unless a recorded thread sent it. */
void model_broken_off(struct model *m, const struct thread *t, uint64_t time_ns);
/* The same of a thread: cancelled in a sleep or a wait, or by a signal whose handler ended it. */
void model_cancelled(struct model *m, struct thread *t, uint64_t time_ns);
/* In `killers`: of a signal to a group. No process has that number. */
#define MODEL_EVERY_PROCESS ((UINT64_C(1) << 48) - 1)
/* What was in a message queue when it was opened. */
void model_messages_found(struct model *m, struct thread *t, const struct trace_record *r);
/* ends.c: `owner` (0: nobody) has it so from now on. */
void model_own(
	struct model *m, struct object *o, enum owned_how how, uint64_t owner, uint64_t time_ns);
/* Gathers what an owner has had since then, into m->ending; the number, in the order of objects. */
void model_owned_begin(struct model *m);
void model_owned_add(struct model *m, enum owned_how how, uint64_t owner, uint64_t since_ns);
void model_owned_add_inherited(struct model *m, const struct thread *t);
size_t model_owned_sort(struct model *m);
/* When the process of t was forked, by its token. */
void model_note_birth(struct model *m, const struct thread *t, uint64_t token);
void model_give_locks_up(struct model *m, struct thread *t, uint64_t time_ns); /* of files */
/* The actor: the annotated machine on top, else the thread. */
uint32_t model_acting(const struct thread *t);

/* One verb of thread t (or its machine) at time_ns; `state` is what it is in from now. Updates
 * t->mode and t->graph_state. */
void model_verb(struct model *m, struct thread *t, enum graph_verb_kind verb, uint64_t time_ns,
	uint32_t queue, int64_t n, uint32_t state, uint32_t flags);
void model_verb_of(struct model *m, uint32_t actor, enum graph_verb_kind verb, uint64_t time_ns,
	uint32_t queue, int64_t n, uint32_t state, uint32_t flags);
void model_link(
	struct model *m, uint32_t actor, uint64_t time_ns, uint32_t state, uint32_t from_actor);
/* ... and `from_actor` ends whatever the thread did (GRAPH_CUTS). */
void model_link_cuts(
	struct model *m, struct thread *t, uint64_t time_ns, uint32_t state, uint32_t from_actor);
/* What the actor has been in since its last verb gets its name now. */
void model_rename(struct model *m, struct thread *t, uint64_t time_ns, uint32_t state);
/* So much of the actor's time from its last verb to its next one was recording; 0: nothing. */
void model_tell_recording(struct model *m, const struct thread *t, uint64_t ns);
/* ... it slept longer than it had asked for; below 0: something ended the sleep before. */
void model_tell_late(struct model *m, const struct thread *t, int64_t ns);
void model_count(struct model *m, enum trace_diag d);
/* A table of the model's or of a thread's; false: no memory, and the run has failed. */
bool model_grow(struct model *m, void *data, size_t *capacity, size_t need, size_t elem_size_bytes);
/* ... and a map's. */
void model_put(struct model *m, struct base_map *map, uint64_t hi, uint64_t lo, uint64_t value);
/* What a thread needs while it lives. */
void model_free_thread(struct thread *t);
uint32_t model_idle_state(struct model *m);

/* ---- connections.c --------------------------------------------------------------------------- */

struct followed { /* a connection */
	struct model_connection pub;
	uint32_t home; /* base actor that identified it first */
	uint32_t at;   /* base actor that acted for it last */
	bool started, came_home;
};

/* The verb of a base actor becomes that of (actor, connection), which it may make it serve. */
void model_speak(struct model *m, enum graph_verb_kind kind, struct graph_verb *v, uint32_t *from);
/* The base actor serves the connection from now. */
void model_serve(struct model *m, uint32_t actor, uint64_t id, uint64_t time_ns, uint32_t state);
/* Ends each connection's path. */
void model_end_connections(struct model *m);
/* ---- check.c: before (and after) a rule for an annotation acts ------------------------------- */

struct note_queue { /* a queue verb, whichever record it came in */
	uint32_t object, site;
	uint64_t n, key, flags;
};
void model_found(struct model *m, const struct found *f);
void model_check_queue(struct model *m, struct thread *t, uint64_t time_ns,
	const struct note_queue *q, enum graph_verb_kind verb);
void model_check_taken(struct model *m, const struct thread *t, uint64_t time_ns,
	const struct note_queue *q, enum graph_verb_kind verb, uint64_t units_before,
	uint64_t underflows_before);
void model_check_assert(struct model *m, struct thread *t, uint64_t time_ns,
	const struct note_queue *q, uint64_t units);
void model_check_nesting(
	struct model *m, const struct thread *t, uint64_t time_ns, uint32_t actor_def, bool begins);
void model_check_state(
	struct model *m, struct thread *t, uint64_t time_ns, uint32_t state_def, uint64_t flags);
void model_check_end(struct model *m, const struct thread *t, uint64_t time_ns);
void model_check_identify(
	struct model *m, const struct thread *t, uint64_t time_ns, uint64_t connection);
void model_check_all(struct model *m);
enum base_status model_name_findings(struct model *m);
void model_free_findings(struct model *m);

/* ---- processor.c ----------------------------------------------------------------------------- */

/* Both before the rule changes the thread's mode. */
/* The token that the run queue of a processor waits for; NONE: no such processor, or no memory. */
enum { MODEL_PROCESSORS_MAX = 1 << 16 };
uint32_t model_processor_queue(struct model *m, uint64_t number);
/* A thread is on a processor that no rule has met: it tells when it begins. */
void model_unborn_in(struct model *m, struct thread *t, const struct trace_record *r);
/* rules_turn.c: nothing but time ended the wait of an event loop's thread. True: a task's time, which
 * is told. */
bool model_turn_time_came(struct model *m, struct thread *t, uint64_t time_ns);
void model_free_turns(struct model *m);
/* rules_task.c: a task that was ready has a processor. */
void model_task_comes(struct model *m, struct thread *t, const struct trace_record *r);
uint32_t model_make_processor(struct model *m, uint64_t number);

/* affinity.c. A thread begins with the processors that its maker (a stream; 0: not known) was about
 * to make one with that token for. */
void model_inherit_affinity(struct model *m, struct thread *t, uint32_t maker, uint64_t token);
void model_pass_affinity(struct model *m, const struct thread *t, uint32_t leader, uint64_t token);
void model_processor_out(
	struct model *m, struct thread *t, uint64_t number, uint64_t time_ns, bool preempted);
/* On which processor a thread runs; false: on none. */
bool model_processor_of(const struct model *m, const struct thread *t, uint64_t *number);
void model_processor_in(struct model *m, struct thread *t, uint64_t number, uint64_t time_ns);
/* The thread goes on as another stream. */
void model_processor_taken_over(
	struct model *m, const struct thread *before, const struct thread *now, uint64_t time_ns);
/* A wait ended and nobody was seen to end it; a thread ran there whose leaving was not shown (nor,
 * as a rule, what it woke). */
/* The path of its cgroup, a string; 0: not known. A thread that had ended before anybody looked was
 * in its parent's, or the recorder's, which ran it. */
uint32_t model_cgroup(const struct model *m, uint32_t process);
/* unseen.c: the wait, now found to be `state`, is over. */
void model_unseen_wake(struct model *m, const struct thread *t, uint32_t state, uint64_t time_ns);
void model_hidden_run(struct model *m, uint64_t begin_ns, uint64_t end_ns);
struct run_time *model_run_time(struct model *m, uint32_t process);
void model_away(struct model *m, uint32_t actor, uint32_t state, uint64_t duration_ns);
void model_forget_machines(struct model *m, struct thread *t, uint64_t time_ns);
void model_sort_processor_waits(struct model *m);
void model_free_processors(struct model *m);
/* Others than the thread on that processor, in the last known_ns before to_ns: all of the time
 * since from_ns, or as far as is remembered. */
struct model_had {
	uint32_t role; /* who had it longest; NONE: nobody */
	uint64_t had_ns, known_ns;
};
struct model_had model_had_processor(const struct model *m, const struct thread *t, uint64_t number,
	uint64_t from_ns, uint64_t to_ns);

/* ---- rules_clock.c: false where no clock is known -------------------------------------------- */

/* The thread goes on to that state: if its sleep's time is not over, a signal has ended it. */
void model_sleep_is_left(struct model *m, struct thread *t, uint64_t time_ns, uint32_t state);

/* A system call begins; an actor without a path wakes its sleeper: a deadline has come, and was
 * peeked at; it ends. */
void model_call_sleeps(struct model *m, struct thread *t, uint64_t time_ns);
bool model_clock_rings(struct model *m, struct thread *t, uint64_t time_ns, uint32_t state);
bool model_call_slept(struct model *m, struct thread *t, uint64_t time_ns, int64_t result);

bool model_timer_read_begins(struct model *m, struct thread *t, uint32_t object, uint64_t time_ns);
bool model_timer_was_read(struct model *m, struct thread *t, uint32_t object, uint64_t time_ns);
bool model_timer_is_ready(struct model *m, struct thread *t, uint32_t object, uint64_t time_ns);

/* ---- rules_kernel*.c: the whole system ------------------------------------------------------- */

/* a queue's types beside those of objects; of flushes that somebody else is to send to a disk */
#define MODEL_TYPE_WAKE    ((enum trace_object_type)(TRACE_OBJECT_NR + 1))
#define MODEL_TYPE_PUT_OFF ((enum trace_object_type)(TRACE_OBJECT_NR + 2))
/* What a thread or process begins with; a signal or child's end that somebody waits for. */
#define MODEL_TYPE_THREAD  ((enum trace_object_type)(TRACE_OBJECT_NR + 3))
#define MODEL_TYPE_PROCESS ((enum trace_object_type)(TRACE_OBJECT_NR + 4))
#define MODEL_TYPE_SIGNAL  ((enum trace_object_type)(TRACE_OBJECT_NR + 5))
#define MODEL_TYPE_CLOCK   ((enum trace_object_type)(TRACE_OBJECT_NR + 6))
enum { MODEL_TYPE_NR = TRACE_OBJECT_NR + 7 };

/* state.detail of a system call, or a wait in one: its number + 1, and who woke it (kernel.waker's
 * index + 1); 0: not known. */
enum { MODEL_WAKER_BITS = 12, MODEL_CALLS_MAX = 1 << 12 };
static inline uint32_t model_call_detail(uint32_t call, uint32_t waker)
{
	return call % MODEL_CALLS_MAX << MODEL_WAKER_BITS | waker % (1u << MODEL_WAKER_BITS);
}
uint32_t model_system_end(struct model *m);
/* A thread's first moment, made known by its own record or its maker's. */
/* It begins, or is seen first: with its last verb. */
void model_born(struct model *m, struct thread *t, uint64_t time_ns);
/* Did the root process start it, or what did? */
bool model_is_of_program(const struct model *m, uint32_t process);
void model_be_born(struct model *m, struct thread *t, uint64_t time_ns, uint32_t queue, bool runs);
void model_follow_exec(struct model *m, struct thread *t, uint64_t time_ns);
void model_seen_running(struct model *m, struct thread *t, const struct trace_record *r);
void model_kernel_out(struct model *m, struct thread *t, const struct trace_record *r);
void model_kernel_in(struct model *m, struct thread *t, const struct trace_record *r);
/* It may run, and waits for a processor: which, and who has it, is known when it gets one. */
void model_be_ready(struct model *m, struct thread *t, uint64_t time_ns, uint32_t flags);
/* rules_kernel_known.c: a wait begins; it waits, the library says, and is woken; leaves its
 * processor; has one. */
void model_begin_wait(
	struct model *m, struct thread *t, enum graph_verb_kind verb, uint32_t queue, int64_t n);
void model_known_woken(struct model *m, struct thread *waker, struct thread *t, uint64_t time_ns);
void model_known_leaves(struct model *m, struct thread *t, uint64_t time_ns, bool preempted);
void model_known_runs(struct thread *t);
/* An object of a recording of the system, if it is of that type; NULL: not. */
struct object *model_kernel_object(struct model *m, uint32_t id, enum trace_object_type type);
bool model_is_context(const struct thread *t);
/* Does the thread serve others, in the kernel? */
void model_find_server(const struct model *m, struct thread *t);
/* Has what it does a cause that is known? A thread's has: the thread. */
bool model_is_credited(const struct thread *t);
/* Does the thread run, as far as all its records say? */
bool model_may_act(struct model *m, struct thread *t, uint64_t time_ns);
/* A context has just taken something that has a path. */
void model_credit(struct thread *t);
/* The state of the present actor: a thread's, a context's handling. */
uint32_t model_busy_state(const struct thread *t);
uint32_t model_wake_queue(struct model *m, struct thread *t);
/* A context about to do something without a cause so far: perhaps somebody sent it. */
/* Whatever its present run was for is over. */
void model_forget_context(struct model *m, struct thread *t, uint64_t time_ns);
/* packets.c */
/* False: it is not kept; it has no payload, or there are too many. */
bool model_packet_sent(struct model *m, struct packets **packets,
	const struct trace_packet_queue *p, uint64_t key);
const struct packet *model_packets_covering(
	struct packets *f, const struct trace_packet_queue *p, size_t *ret_nr);
bool model_packet_gone(struct packets *f, uint64_t key);
/* It leaves a place in which they are in a row: its bytes there, and those of all before it, of
 * which nobody saw that they left. 0: nobody saw it come. */
uint64_t model_packets_leave(struct packets *f, const struct trace_packet_queue *p, uint64_t key);
void model_packets_gone(struct packets *f);
void model_packets_free(struct packets *f);

uint32_t model_tcp_sends(struct model *m, struct thread *t, const struct trace_record *r);
void model_tcp_rests(struct model *m, uint32_t actor, uint32_t object, uint64_t time_ns);
void model_tcp_hears(struct model *m, struct thread *t, const struct trace_record *r);
void model_tcp_left(struct model *m, uint32_t actor, uint32_t state, uint32_t object, uint64_t n,
	uint64_t time_ns);
uint32_t model_tcp_room(struct model *m, struct thread *t, uint32_t object, uint64_t time_ns);
void model_take_raise(struct model *m, struct thread *c, uint64_t time_ns);
enum graph_verb_kind model_call_wait(struct model *m, struct thread *t, uint64_t time_ns);
bool model_call_ready(const struct model *m, const struct thread *t, enum graph_verb_kind wait);
/* ... then it takes note of it: of room by putting what fits. */
void model_call_goes_on(struct model *m, struct thread *t, uint64_t time_ns, uint32_t state);
void model_call_passes(struct model *m, struct thread *t, uint64_t time_ns);

/* ---- listeners.c ----------------------------------------------------------------------------- */

enum base_status model_find_listeners(struct model *m) BASE_MUST_CHECK;

/* ---- names.c --------------------------------------------------------------------------------- */

enum base_status model_make_names(struct model *m);
void model_finish_threads(struct model *m); /* who they are, and their life spans */
/* Moves a finished text into the model's arena, and frees it. */
const char *model_keep_text(struct model *m, struct base_str *s);
void model_add_class(struct model *m, struct base_str *s, uint32_t class_ix);
/* What is handed over without an object. */
struct model_nameless {
	enum trace_object_type type;
	enum model_cause handover;
	const char *queue; /* its queue's name */
};
const struct model_nameless *model_nameless(enum trace_object_type type);
enum graph_discipline model_object_discipline(enum trace_object_type type);
/* names_kernel.c: arguments of causes; of a call its number + 1, of a waker its index + 1, 0 adds
 * nothing. */
void model_add_call(struct base_str *s, uint32_t call);
void model_add_waker(const struct model *m, struct base_str *s, uint32_t waker);
const char *model_disk_text(uint32_t op);
/* Of "kworker/u8:3" and "ksoftirqd/1" what is before the slash; 0: it is no such name. */
size_t model_kind_length(const char *name);
void model_add_program(const struct model *m, struct base_str *s, const struct role *ro);
/* Which objects of a recording of the system are one class: its keys, and its text (NULL: the
 * object's own name). */
void model_kernel_class(
	struct model *m, uint32_t object, uint64_t *hi, uint64_t *lo, const char **text);
/* The same for a socket with addresses: all connections with one service are one class. */
void model_service_class(
	struct model *m, uint32_t object, uint64_t *hi, uint64_t *lo, const char **text);
/* Does it tell its object from others? (A socketpair's says that there is no address.) */
bool model_has_name(const struct model *m, uint32_t name);
/* A state's samples; of its role's threads together when its own are few. NULL: no such state. */
enum { MODEL_ENOUGH_SAMPLES = 30 };
const struct function_list *model_function_list(const struct model *m, uint32_t state);
/* anew: states' and pools' */
enum base_status model_list_samples(struct model *m, bool ended) BASE_MUST_CHECK;
void model_forget_samples(struct model *m);
uint32_t model_exit_queue(struct model *m, struct thread *t); /* a token when it has ended */
uint32_t model_by_chance(const struct thread *t, uint64_t slept_ns, uint64_t time_ns); /* flags */
void model_napped(struct thread *t, uint64_t begin_ns, uint64_t end_ns);
void model_nap_was_over(struct thread *t, uint64_t begin_ns, uint64_t end_ns);
/* naps.c: a sleep, or a wait that its time limit ended, is over; something is put into a queue. */
void model_nap_ends(struct model *m, struct thread *t, uint64_t begin_ns, uint64_t end_ns);
void model_nap_gives(const struct model *m, struct thread *t, uint32_t queue);
bool model_is_next_to_nothing(uint64_t time_ns, uint64_t slept_ns);
void model_visit_leaves(struct thread *t, uint64_t time_ns);
void model_count_visit(struct model *m, struct thread *t);
void model_visit_enters(struct model *m, struct thread *t, uint32_t state, uint64_t time_ns);

void model_empty_list(struct function_list *l);
/* A sample's function, without its callers; chain: what is inlined there. */
struct sampled {
	const char *name, *where;
	uint32_t chain; /* 0: nothing */
	unsigned stratum;
};
struct sampled model_sampled_of(const struct model *m, const struct sample_row *row);
double model_row_share(const struct function_list *l, const struct sample_row *row);
void model_share_of(const struct function_list *l, const struct strata *s,
	struct model_function_share *ret); /* of its samples; nr_samples is said */

/* ---- callers.c: samples with their stacks ---------------------------------------------------- */

/* The key of a sample that was in `function` of `module`, called as the stack says. */
uint64_t model_sample_key(struct model *m, uint64_t function, uint32_t module, uint32_t stack);
uint64_t model_sample_function(const struct model *m, uint64_t key); /* without its callers */

/* ---- runtime/mpi: which rank a process is in MPI_COMM_WORLD (below 0: none), and what starts such */

int64_t model_mpi_rank(const struct model *m, uint32_t process);
bool model_is_mpi_launched(const struct model *m); /* by the program that was started */
void model_mpi_process_ends(
	struct model *m, const struct thread *t, int64_t status, uint64_t time_ns);
/* A thread begins, of a process with that first one (a stream). */
void model_mpi_thread_begins(struct model *m, const struct thread *t, uint32_t leader);
/* The launcher, or a thread of the library's own: they wait for the outside, and a thread that they
 * keep from a processor for a moment did not wait for all that. */
bool model_is_beside_mpi(const struct model *m, const struct thread *t);
/* Arguments of causes, from the state's detail (runtime/mpi/rules_mpi.h): a rank that is not known
 * adds nothing. */
void model_add_mpi_rank(struct base_str *s, uint32_t detail);
void model_add_mpi_call(struct base_str *s, uint32_t detail);
void model_add_communicator(const struct model *m, struct base_str *s, uint32_t class_ix);
void model_free_mpi(struct model *m);

/* ---- sites.c: places in the code ------------------------------------------------------------- */

/* The rows of definitions that are new. */
enum base_status model_index_inlined(struct model *m) BASE_MUST_CHECK;
const char *model_site_function(const struct model *m, uint32_t site); /* not inlined; "" unknown */
/* 0: nothing is inlined there; or no memory: m->status. */
uint32_t model_site_chain(struct model *m, uint32_t site);
/* The innermost function at a site that is the program's own code, inlined or not, and where in it:
 * strings; 0: not known. */
struct model_code {
	uint32_t function, file;
	uint64_t line;
};
struct model_code model_site_code(const struct model *m, uint32_t site);
/* "src/q.h:40", from where the program's own sources are. */
const char *model_place_text(struct model *m, uint32_t file, uint64_t line);
/* lines.c */
void model_count_line(struct model *m, uint32_t site, uint32_t stack); /* a sample there */
enum base_status model_find_lines(struct model *m) BASE_MUST_CHECK;
uint32_t model_chain_function(const struct model *m, uint32_t chain); /* string */

/* ---- rules ----------------------------------------------------------------------------------- */

#define RULE(kind)                                                                                 \
	void model_rule_##kind(struct model *m, struct thread *t, const struct trace_record *r);
#include "model/rules.def"

#endif
