/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - from the ring's words and the kernel's events to trace records.
 *
 * Two sources know about one thread: its ring blocks and perf_event. Ring records are converted as
 * they are read, each thread's in its own order; the kernel's events wait in a queue of their task
 * (tid) until a ring record of that thread with a later stamp is written, or until nothing earlier
 * can come any more. Events of a tid without ring records get a stream of their own.
 *
 * Everything read here was written by the target, which may have scribbled on it: every length and
 * number is checked.
 */
#ifndef LONGPOLE_RECORD_CONVERT_H
#define LONGPOLE_RECORD_CONVERT_H

#include "os/clock.h"
#include "ring/ring.h"
#include "record/image.h"
#include "record/pids.h"

enum {
	RECORD_FIELDS_MAX = 8,
	RECORD_NOTES_MAX = 64,   /* nested annotated state machines of a thread */
	RECORD_FRAMES_MAX = 127, /* callers of a sample */
	RECORD_NOTED = 256,      /* places of annotations that are remembered; a power of 2 */
	RECORD_REPEATED = 512,   /* records that are remembered; a power of 2 */
	RECORD_REPEATED_WORDS = 3,
	RECORD_OWN_WORDS_MAX = 16 + RING_TEXT_MAX / 8, /* longest record of the ring's own kinds */
	RECORD_MAPS_MAX = 1 << 12,   /* executable mappings of a process, as the kernel says */
	RECORD_EVENTS_MAX = 1 << 22, /* waiting: beyond it they are written without more ado */
};

/* ---- the kernel's events --------------------------------------------------------------------- */

enum record_event_kind {
	RECORD_EVENT_none,
	RECORD_EVENT_sample,
	RECORD_EVENT_out,       /* leaves the processor */
	RECORD_EVENT_preempted, /* the same, but could have run on */
	RECORD_EVENT_out_fault, /* leaves it in a page fault: waits for a disk */
	RECORD_EVENT_out_load,  /* leaves it in exec or the dynamic loader, which read files */
	RECORD_EVENT_in,
	RECORD_EVENT_fault, /* a page fault that had to wait for a disk ends */
	RECORD_EVENT_fork,  /* the task begins; `other` is its parent's pid */
	RECORD_EVENT_exec,
	RECORD_EVENT_exit,        /* of this task */
	RECORD_EVENT_process_end, /* of the last task of the process */
	RECORD_EVENT_comm,
	RECORD_EVENT_map,
	RECORD_EVENT_lost,
	RECORD_EVENT_kernel, /* a record that is complete but for its stream */
};

struct record_event {
	uint64_t time_ns;
	enum record_event_kind kind;
	uint32_t pid, tid;
	uint16_t record_kind; /* RECORD_EVENT_kernel: of the trace */
	uint64_t
		*frame; /* return addresses, innermost first; owned by the queue once handed over */
	union {
		struct {
			uint32_t cpu, other;
			uint32_t nr_frames;
			uint64_t ip; /* of a sample; how many were lost */
		};
		uint64_t word[6]; /* RECORD_EVENT_kernel: the record's fields */
	};
};

/* What was running where a sample was taken, to find its callers by: x86-64's. */
struct record_user_state {
	uint64_t rbx, rbp, rsp, rip, r10, r12, r13, r14, r15; /* in perf's order */
	const uint8_t *stack;                                 /* from rsp; borrowed */
	size_t stack_bytes;                                   /* 0: nothing was kept */
};

struct record_map_event { /* RECORD_EVENT_map: an executable mapping */
	uint64_t start, end, file_offset;
	const char *path;
	size_t path_bytes; /* 0: of no file, what the program makes */
};

struct record_map {
	uint64_t start, end, file_offset;
	uint32_t path;
	uint32_t unwinder; /* record/unwind.c: 0: not asked for; RECORD_UNWINDER_NONE: there is
			     none */
	uint64_t bias;     /* of an unwinder */
};
#define RECORD_UNWINDER_NONE UINT32_MAX

struct record_task { /* a tid, as the kernel sees it */
	uint32_t tid, pid, parent;
	struct record_event *event; /* in time order; [first, nr) wait */
	size_t first, nr, capacity;
	struct record_thread *owner; /* who gets its events; NULL: not known yet */
	bool by_exec;                /* the owner is awaited since an exec, not since a fork */
	bool counted;                /* ... and is in nr_unattached, because it did not come */
	bool since_exec;             /* its present life began with an exec, not with a fork */
	uint64_t await_ns;           /* since when */
	uint32_t nr_marks;           /* that wait: what comes after them is not known yet */
	uint32_t nr_ends;            /* that wait: of lives */
	uint32_t reserved;           /* stream of the one that comes then; 0: not asked for yet */
	uint64_t live;               /* leader: tasks of the process that have not ended */
	uint64_t exit_ns;            /* of its present life, if that was written; 0: not yet */
	struct record_map *map;      /* leader: code that was mapped since the exec */
	size_t nr_maps, map_capacity;
	uint32_t nr_execs; /* leader: how often `map` began anew */
	bool has_all_code; /* leader: nothing else is code; since its exec, and it made none */
	char comm[16];
};

/* ---- threads --------------------------------------------------------------------------------- */

struct record_thread {
	struct record_image *image;
	uint64_t number;           /* within the image; 0: from the kernel's events only */
	uint32_t pid, tid;         /* ours */
	uint32_t own_pid, own_tid; /* in its own pid namespace */
	uint32_t stream;
	uint32_t name;
	struct record_task *task;
	uint64_t last_ns;
	bool started, dead;
	uint32_t nr_frames; /* of the RING_stack just read */
	uint64_t frame[RING_STACK_MAX];
	uint32_t call_object; /* futex word of the system call that it is in */
	uint32_t nr_notes;    /* annotated machines it is in */
	struct record_note {
		uint32_t actor, name;
	} * note; /* RECORD_NOTES_MAX of them; NULL: it has never been in one */
	/* for session/ring.c: its unread blocks, by sequence */
	uint32_t *block;
	size_t nr_blocks, block_capacity;
	uint32_t next_sequence;
	uint32_t stuck_ticks;
	bool listed;
};

/* Whoever reads Python's frames from outside (session/python.h); all NULL: nobody does. */
struct record_python {
	void *ctx;
	/* A file's code was mapped into the process. */
	void (*mapped)(void *ctx, uint32_t pid, const char *path, uint64_t map_start,
		uint64_t file_offset);
	/* The process was forked by one of that pid. */
	void (*forked)(void *ctx, uint32_t pid, uint32_t parent);
	/* The thread got its processor, or left it. */
	void (*switched)(void *ctx, uint32_t tid, uint64_t time_ns, bool in);
	/* Puts what was seen of a sampled thread into its event, in place of the interpreter's
	 * functions. Asked when all switches until some time later are told. */
	void (*sampled)(void *ctx, struct record_event *e);
	/* What one of its places is; false: it is none of them. Texts are borrowed. */
	bool (*named)(void *ctx, uint64_t place, const char **ret_function, const char **ret_file,
		uint32_t *ret_line);
};

struct record_converter {
	const struct os_clock *clock;
	struct record_sink sink;
	struct record_world world;
	uint32_t starter; /* pid of the first image's starter; 0: not known */
	struct record_thread **thread;
	size_t nr_threads, thread_capacity;
	struct base_map threads; /* (image, number) -> index */
	struct record_task **task;
	size_t nr_tasks, task_capacity;
	size_t nr_exited; /* with exit_ns */
	size_t nr_live;   /* leaders with `live`: processes */
	struct record_pids pids;
	struct base_map tasks;  /* tid -> index */
	struct base_map names;  /* (image, RING_name id) -> name << 32 | site */
	struct base_map actors; /* (image << 32 | name, instance) -> id */
	struct base_map states; /* (name, site) -> id */
	struct base_map queues; /* (image << 32 | name, instance) -> object */
	struct record_noted {   /* what a place last meant: most annotations say it again */
		uint64_t name_id, instance;
		uint32_t image, kind, name, id; /* kind 0: nothing yet */
	} noted[RECORD_NOTED];
	struct record_repeated { /* a ring record but for its time, and what it became */
		uint64_t word[RECORD_REPEATED_WORDS];
		uint32_t image, generation; /* of its modules; 0: nothing yet */
		uint8_t kind;               /* the ring's */
		struct trace_form form;
	} repeated[RECORD_REPEATED];
	struct record_unwinders { /* record/unwind.c: of files that were sampled */
		struct symbol_unwinder **unwinder;
		size_t nr, capacity;
		struct base_map by_path; /* text -> index + 1; 0: none */
	} unwinders;
	size_t nr_waiting;                    /* events in all queues */
	uint64_t nr_forked, nr_threads_begun; /* main threads are among these */
	/* (and RING_stack, RING_descriptor, which come with a record) */
	uint64_t nr_of_kind[256]; /* records of the ring, by its kinds; RING_lock_*: by the trace's
				   */
	uint64_t nr_damaged_blocks, nr_unattached, nr_late;
	uint64_t perf_lost, nested_lost, nr_samples, nr_switches; /* nr_switches: to a thread */
	uint32_t main_pid;     /* of the program that was started; its end is written by _finish */
	uint32_t recorder_tid; /* a thread of ours in the program; 0: there is none */
	struct record_python python;
	char *const *main_argv; /* as which it was, while it is that; NULL: not known */
	uint64_t main_exit_ns;  /* 0: not seen */
	uint64_t copy[RECORD_OWN_WORDS_MAX];
	struct record_kind {
		uint8_t nr_fields;
		bool note;
		struct {
			uint8_t role;
			bool wide;
			uint16_t offset;
		} field[RECORD_FIELDS_MAX];
	} kind[128];
};

enum base_status record_converter_init(struct record_converter *c, const struct os_clock *clock,
	struct trace_writer *w, struct base_err *err) BASE_MUST_CHECK;
void record_converter_fini(struct record_converter *c);
/* NULL: there is none of that number. */
struct base_map *record_converter_map(struct record_converter *c, enum record_map_number map);

/* The thread `number` of an image, made on first use. NULL: no memory, or numbers out of bounds. */
struct record_thread *record_converter_thread_of(struct record_converter *c, uint32_t image,
	uint32_t parent_image, uint32_t pid, uint32_t tid, struct ring_ids ids, uint64_t number);
/* The same, in our pid namespace. */
struct record_thread *record_converter_thread(struct record_converter *c, uint32_t image,
	uint32_t parent_image, uint32_t pid, uint32_t tid, uint64_t number);

enum record_stop {
	RECORD_STOP_end,     /* all words are read */
	RECORD_STOP_zero,    /* a record that is not there yet */
	RECORD_STOP_horizon, /* a record later than the horizon */
	RECORD_STOP_damaged, /* what follows makes no sense */
};
/* Convert the thread's records in word[from, nr) with stamps up to horizon; returns how far it
 * came. Stamps after `limit` (ticks, like horizon) are damage. */
size_t record_convert(struct record_converter *c, struct record_thread *t, const uint64_t *word,
	size_t from, size_t nr, uint64_t horizon, uint64_t limit, enum record_stop *ret_stop);
/* How many of them there were, of all kinds. */
uint64_t record_converter_nr_ring(const struct record_converter *c);
/* Take only what is introduced there (modules, names, descriptors). */
void record_convert_introductions(struct record_converter *c, struct record_image *image,
	const uint64_t *word, size_t from, size_t nr);

/* ---- events (record/event.c) ----------------------------------------------------------------- */

struct record_task *record_converter_task(struct record_converter *c, uint32_t tid, uint32_t pid);
/* So many tasks of the leader's process have not ended. */
void record_task_set_live(struct record_converter *c, struct record_task *leader, uint64_t live);
/* Code that the kernel saw mapped and the image has not introduced yet: a library whose
 * constructors run. False: there is no news. `ctx` is the converter. */
bool record_converter_introduce_maps(void *ctx, struct record_image *image);
/* The callers of what ran there, innermost first, as far as they can be known: `frame` has nr of
 * them by frame pointers before. Returns how many there are now. */
uint32_t record_converter_unwind(struct record_converter *c, uint32_t pid,
	const struct record_user_state *u, uint64_t frame[static RECORD_FRAMES_MAX], uint32_t nr);
/* Which functions of JavaScript it found in V8's frames: as far as the image has told until now. */
void record_unwind_interpret(
	const struct record_world *w, const struct record_image *image, struct record_event *e);
void record_unwinders_fini(struct record_unwinders *u);
/* e->frame becomes the converter's. `map` for RECORD_EVENT_map, `text` for RECORD_EVENT_comm and
 * exec. */
void record_converter_event(struct record_converter *c, const struct record_event *e,
	const struct record_map_event *map, const char *text);
/* In call_begin.number and call_end.number of a record for record_converter_kernel(): the call is
 * about the futex word at the address in `op`; the real op and number are the lower half. Which
 * object that is depends on the image, which is known when the record is written. */
#define RECORD_CALL_FUTEX  (1ull << 63)
#define RECORD_CALL_SHARED (1ull << 62)
enum { RECORD_CALL_OP_SHIFT = 16 };
/* A record, without its stream, of a task of the program: to be put in order with the ring's. */
void record_converter_kernel(
	struct record_converter *c, uint32_t tid, const struct trace_record *r);
/* The stream that the newest events of a task of the program go to. */
uint32_t record_converter_stream(struct record_converter *c, uint32_t tid);
/* The thread's first record has stamp time_ns: take over what the kernel saw of its tid. */
void record_thread_start(struct record_converter *c, struct record_thread *t, uint64_t time_ns);
/* Write the events of t's task up to time_ns. */
void record_thread_events(struct record_converter *c, struct record_thread *t, uint64_t time_ns);
/* All ring records up to horizon_ns are converted: write the events that cannot be overtaken any
 * more. */
void record_converter_release(struct record_converter *c, uint64_t horizon_ns);
/* The end: write everything that waits; the main program ended with `status` (as waitpid; -1: it
 * has not) at end_ns; `alive` asks about other processes. */
void record_converter_finish(
	struct record_converter *c, int64_t status, uint64_t end_ns, bool (*alive)(uint32_t pid));

/* First waiting event's time; UINT64_MAX: none. */
static inline uint64_t record_thread_next_event_ns(const struct record_thread *t)
{
	const struct record_task *task = t->task;
	return task && task->owner == t && task->first < task->nr ? task->event[task->first].time_ns
								  : UINT64_MAX;
}

/* It is in one more annotated machine; beyond RECORD_NOTES_MAX that is not counted. */
void record_thread_push_note(
	struct record_converter *c, struct record_thread *t, struct record_note note);

/* Put one record of the thread. */
static inline void record_thread_put(
	struct record_converter *c, struct record_thread *t, struct trace_record *r)
{
	r->stream = t->stream;
	if (r->time_ns < t->last_ns)
		c->nr_late++; /* the writer raises and counts it */
	else
		t->last_ns = r->time_ns;
	record_sink_put(&c->sink, r);
}

/* The same of a record that was written before. */
static inline void record_thread_put_form(struct record_converter *c, struct record_thread *t,
	uint64_t time_ns, const struct trace_form *f)
{
	if (time_ns < t->last_ns)
		c->nr_late++;
	else
		t->last_ns = time_ns;
	record_sink_put_form(&c->sink, t->stream, time_ns, f);
}

#endif
