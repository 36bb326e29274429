/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - the one interface by which analyses get memory and instruction streams.
 *
 * A source has threads 0 .. nr_threads-1. Each thread's stream is a sequence of items, handed out
 * in batches. A reader of a new kind of trace, or a live recorder, is a source: a row of sources.def
 * and the four functions of struct memory_source_ops. The streams' consumer is order.h, which
 * interleaves threads; analyses see only its steps.
 *
 * An item is 32 bytes and stands for one access, one run of straight-line code, one branch, one
 * range, one call record, or for a loop of such items (MEMORY_REPEAT), so that a source whose runs
 * compress need not write them out: a loop of 10 items and 10^6 iterations is 11 items. Sources
 * that do not repeat never use it; consumers that do not care use memory_cursor (cursor.h).
 *
 * Example, one iteration of `for (i...) sum += a[i]` at level 3:
 *	BLOCK  address=0x401000 size_bytes=9 count=3 instructions=0   the code bytes of the block
 *	LOAD   address=&a[i] code=0x401000 size_bytes=8 instructions=1
 *	BRANCH code=0x401006 address=0x401000 instructions=2          add, cmp+jne taken
 * and a thousand of them: REPEAT address=3 count=1000, then those three, LOAD.stride_bytes = 8.
 */
#ifndef LONGPOLE_MEMORY_SOURCE_H
#define LONGPOLE_MEMORY_SOURCE_H

#include "base/base.h"

/* ---- items ----------------------------------------------------------------------------------- */

enum memory_item_kind {
	MEMORY_LOAD,        /* address, size_bytes, reg */
	MEMORY_STORE,       /* address, size_bytes, reg */
	MEMORY_ATOMIC,      /* reads and writes, indivisibly; counted as a load and a store */
	MEMORY_BLOCK,       /* count instructions in size_bytes bytes from address are fetched */
	MEMORY_BRANCH,      /* taken branch at code to address */
	MEMORY_PROC_CALL,   /* call instruction at code to the procedure at address */
	MEMORY_PROC_START,  /* the procedure at address begins */
	MEMORY_PROC_RETURN, /* return instruction at code to address */
	MEMORY_RANGE_LOAD, /* count bytes from address are read by unseen code (memcpy, write(2)) */
	MEMORY_RANGE_STORE, /* count bytes from address are written by unseen code */
	MEMORY_CALL,        /* address = index into the batch's call[] */
	MEMORY_STAMP,       /* address = time_ns at which what follows began */
	MEMORY_REPEAT,      /* the next `address` items, `count` times; see below */
	MEMORY_ITEM_KINDS
};

enum memory_register { /* what a load fills and a store empties */
	MEMORY_REG_UNKNOWN,
	MEMORY_REG_INTEGER,
	MEMORY_REG_FLOAT,  /* scalar floating point */
	MEMORY_REG_VECTOR, /* several elements, of any type */
	MEMORY_REG_KINDS
};

/*
 * struct memory_item - `instructions`: how many instructions this thread executed after the item
 * before this one, up to and including this one (an access is at least 1 when the source sees
 * instructions; the second access of one instruction is 0; a level-2 source gives 1 to each access,
 * which is the seed's pseudo clock, section 3). BLOCK names code bytes and does not itself advance:
 * its accesses and its terminator do, or it carries `instructions` = what they do not.
 *
 * REPEAT: the next `address` items (1 .. MEMORY_REPEAT_BODY_MAX, in the same batch; no REPEAT, CALL
 * or STAMP among them) happen `count` >= 1 times; in iteration i (from 0) an access is at
 * address + i * stride_bytes (modulo 2^64). Outside a REPEAT stride_bytes means nothing.
 */
struct memory_item {
	uint64_t address;
	uint64_t code; /* of the instruction; 0: unknown */
	union {
		int64_t stride_bytes; /* LOAD, STORE, ATOMIC in a REPEAT */
		uint64_t count;       /* BLOCK: instructions; RANGE: bytes; REPEAT: iterations */
	};
	uint32_t instructions;
	uint16_t size_bytes; /* of an access up to MEMORY_ACCESS_MAX_BYTES (0: the seed's zero-byte
				store, which touches nothing); of a BLOCK up to 65535 */
	uint8_t kind;        /* enum memory_item_kind */
	uint8_t reg : 4;     /* enum memory_register */
	uint8_t flags : 4;   /* enum memory_item_flag */
};
enum memory_item_flag {
	MEMORY_ITEM_SILENT = 1, /* STORE, ATOMIC: it stored what was there already */
};

enum { MEMORY_REPEAT_BODY_MAX = 1024, MEMORY_ACCESS_MAX_BYTES = 64 };
/* Addresses are below this (user space of x86-64 and the seed's 32 bits); a source counts items
 * beyond it as bad and leaves them out, so consumers need not look. A REPEAT must not leave the
 * space, either: memory_batch_check(). */
#define MEMORY_ADDRESS_LIMIT (UINT64_C(1) << 47)

/* ---- call records: synchronisation, threads, I/O, markers (seed, table 4) -------------------- */

enum memory_call_kind {
#define CALL(name, number, class, line) MEMORY_CALL_##name = (number),
#include "memory/stream/calls.def"
};
enum memory_call_class { /* what a call kind means to phases, order and reports */
	MEMORY_CLASS_SPAWN,
	MEMORY_CLASS_JOIN,
	MEMORY_CLASS_BARRIER,
	MEMORY_CLASS_SYNC, /* implies synchronisation: cuts slices */
	MEMORY_CLASS_MARKER,
	MEMORY_CLASS_IO,
	MEMORY_CLASS_OTHER,
};
struct memory_call_desc {
	uint8_t number;
	enum memory_call_class class;
	const char *name, *line;
};
const struct memory_call_desc *memory_call_find(unsigned number); /* NULL: no such kind */

/* Arguments as in the seed's A.1: spawn: region, threads spawned; barrier: address, threads
 * waiting; lock: address, 1 with other readers; unlock: address; read, write: buffer address,
 * bytes, file; semaphore: object (stream.h, of those without an address), units, 1 if it may have
 * been made before (and then has those that it has); wait, signal: object; signalled: condition,
 * how often before this (then the lock that it is about); sent, received: channel, units;
 * begin_order: 0, sections that ended before; semop: id, number, operation, flags; allocate:
 * address, bytes, code of the call that asked for it (0: not seen), enum memory_allocation;
 * release: address, bytes (0: all of the block); shared: address, bytes, what is mapped (equal for
 * all who map it), offset in it; process_create, process_wait: pid; thread_create: the thread (in a recorded stream: a
 * token that its thread_begin has, too, or 0 and its handle; UINT64_MAX: one without a stream),
 * thread_join: the thread (there: its handle); marker: command (0 none, 1/2 stop/resume this
 * thread's detail, 3/4 of all), number. */
enum memory_allocation { MEMORY_ALLOCATION_HEAP, MEMORY_ALLOCATION_MAPPING };
struct memory_call {
	uint64_t start_ns, end_ns; /* since the trace began; 0 and 0: unknown */
	uint64_t argument[4];
	uint8_t kind; /* enum memory_call_kind */
};

/* ---- a source -------------------------------------------------------------------------------- */

struct memory_batch {
	const struct memory_item *item; /* borrowed until the next call for the same thread */
	size_t nr;
	const struct memory_call *call; /* of the CALL items; same lifetime */
	size_t nr_calls;
	uint32_t thread;       /* whose */
	uint64_t first_record; /* of the foreign file, for messages; 0: unknown */
};
enum { MEMORY_BATCH_MAX = 4096 }; /* items; larger batches are a bug of the source */

enum memory_source_flag {
	MEMORY_SOURCE_TOTAL_ORDER = 1,  /* next(MEMORY_ANY_THREAD) gives batches in the order in
					   which they happened; per-thread next() is refused */
	MEMORY_SOURCE_INSTRUCTIONS = 2, /* BLOCK items describe all fetched code (level 3) */
	MEMORY_SOURCE_THREADS = 4,      /* spawn and join are visible */
	MEMORY_SOURCE_TIMES = 8,        /* STAMPs or calls carry recorded times */
	MEMORY_SOURCE_LIVE = 16,        /* still being produced: next() may have nothing now */
	MEMORY_SOURCE_REGISTERS = 32,   /* reg is known */
	MEMORY_SOURCE_SILENT = 128,     /* MEMORY_ITEM_SILENT is known */
	MEMORY_SOURCE_SERIAL = 64,      /* one thread ran at a time: the order of STAMPs is that of
					   all items between them */
};
enum { MEMORY_THREADS_MAX = 1024, MEMORY_ANY_THREAD = -1 };

/* Where an address belongs, as far as the source knows. Texts live as long as the source. */
struct memory_place {
	const char *name; /* function, or data object: "matrix_a", "malloc at init.c:31" */
	const char *file; /* "" unknown */
	uint32_t line;
	uint64_t start, size_bytes; /* extent of the function or object; 0: unknown */
};

struct memory_linked {
	const char *path; /* of an ELF file */
	uint64_t address; /* in it */
};

/* When a thread lived, as recorded, in the time of stamps and calls. */
struct memory_life {
	uint64_t begin_ns, end_ns; /* of its last record; UINT64_MAX: not known (yet) */
	uint64_t stack;            /* equal for threads on the same one; 0: not known */
};

/* One program of a recording of several: what a fork or an exec began has a number of its own. */
struct memory_process {
	uint32_t number; /* from 1, in the order of their beginning */
	uint32_t pid, nr_threads;
	uint32_t tables; /* equal for those with the same code: a fork's parent and child */
	uint64_t stream_bytes;
	bool shown; /* the source is its */
};

struct memory_source_info {
	uint32_t nr_threads;        /* may grow while a LIVE source is read */
	uint32_t flags;             /* enum memory_source_flag */
	uint32_t instruction_bytes; /* 4: every instruction has that length; 0: lengths vary */
	const char *format;         /* the row of sources.def */
	const char *unseen;         /* "" or a sentence: what the recorder could not see */
	const struct memory_process *process; /* of a recording that tells them apart; lives as long
						 as the source */
	size_t nr_processes;
};

/* Problems that do not end the reading; every report prints those that are not zero. */
enum memory_diag {
#define DIAG(name, sentence) MEMORY_DIAG_##name,
#include "memory/stream/diag.def"
	MEMORY_DIAG_NR
};
struct memory_diags {
	uint64_t count[MEMORY_DIAG_NR];
	uint64_t first_record[MEMORY_DIAG_NR]; /* where it was met first, counted from 1; 0: unknown
						*/
	uint32_t first_thread[MEMORY_DIAG_NR];
};
const char *memory_diag_name(enum memory_diag d);
const char *memory_diag_sentence(enum memory_diag d); /* base_str_add_counted() */
void memory_diag_add(
	struct memory_diags *d, enum memory_diag what, uint32_t thread, uint64_t record);

/* Stores that could be compared with what was there, of a thread, by what they empty. */
enum { MEMORY_SILENT_ATOMIC = MEMORY_REG_KINDS, MEMORY_SILENT_KINDS };
struct memory_silent {
	uint64_t stores[MEMORY_SILENT_KINDS], silent[MEMORY_SILENT_KINDS]; /* of the former */
};

struct memory_source;
struct memory_source_ops {
	/* Next batch of a thread, or of any (thread < 0, only with TOTAL_ORDER). BASE_OK with nr 0:
	 * nothing now (LIVE only: the thread is blocked or its buffer empty; ask others, then
	 * again). BASE_END: this thread, or all, have ended. */
	enum base_status (*next)(struct memory_source *s, int thread, struct memory_batch *ret,
		struct base_err *err);
	/* Start again; NULL: cannot (a pipe, a live recording). */
	enum base_status (*rewind)(struct memory_source *s, struct base_err *err);
	/* Names of code and of data at an address; false: unknown. NULL: the source has no names.
	 * at_thread, at_record: heap blocks come and go; hints, may be ignored. */
	bool (*code_place)(
		const struct memory_source *s, uint64_t address, struct memory_place *ret);
	bool (*data_place)(
		const struct memory_source *s, uint64_t address, struct memory_place *ret);
	/* For callers that have the program's files: where an address of code or data is in them.
	 * Data may be of any module: from 0 on, candidates until false. NULL: not known. */
	bool (*linked)(const struct memory_source *s, uint64_t address, bool code, size_t candidate,
		struct memory_linked *ret);
	/* Of all items that were handed out so far. NULL: the source does not know. */
	void (*silent)(const struct memory_source *s, uint32_t thread, struct memory_silent *ret);
	/* False: not known (yet). NULL: never. */
	bool (*life)(const struct memory_source *s, uint32_t thread, struct memory_life *ret);
	/* Is any of these bytes on a stack that the thread used, as far as it was read? NULL: never
	 * known. */
	bool (*on_stack)(
		const struct memory_source *s, uint32_t thread, uint64_t address, uint64_t bytes);
	void (*close)(struct memory_source *s); /* frees s */
};
/* A source embeds this as its first member. */
struct memory_source {
	const struct memory_source_ops *ops;
	struct memory_source_info info;
	struct memory_diags diags;
};

static inline enum base_status memory_source_next(
	struct memory_source *s, int thread, struct memory_batch *ret, struct base_err *err)
{
	return s->ops->next(s, thread, ret, err);
}
static inline void memory_source_close(struct memory_source *s)
{
	if (s)
		s->ops->close(s);
}

/* ---- opening: rows of sources.def ------------------------------------------------------------ */

enum { MEMORY_PROBE_BYTES = 4096 };
struct memory_source_format {
	const char *name, *line; /* "smait", "SMAIT binary traces, one file a thread" */
	/* Does a file that begins with these bytes look like one? 0 no .. 100 sure. */
	unsigned (*probe)(const uint8_t *bytes, size_t size_bytes, const char *path);
	/* paths: one per thread, or one that stands for all of them (the format's own rule). */
	enum base_status (*open)(const char *const *paths, size_t nr_paths,
		struct memory_source **ret, struct base_err *err);
};
/* format NULL: the best probe decides. ERR_FOREIGN names what was tried. */
enum base_status memory_source_open(const char *format, const char *const *paths, size_t nr_paths,
	struct memory_source **ret, struct base_err *err) BASE_MUST_CHECK;

/* The same of one process of several, by its number or, where only one has it, its pid; 0: the one
 * with most to say. ERR_USAGE: there is none, or the format tells none apart. */
enum base_status memory_source_open_process(const char *format, const char *const *paths,
	size_t nr_paths, uint64_t process, struct memory_source **ret,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status memory_source_lpt_open_process(const char *const *paths, size_t nr_paths,
	uint64_t process, struct memory_source **ret, struct base_err *err) BASE_MUST_CHECK;

/* All processes of a recording as one source (processes.c): what they map together is the same
 * memory, all else is apart. */
#define MEMORY_PROCESSES_ALL UINT64_MAX
/* Takes the sources, also when it fails; they are read to their ends once, and rewound. */
enum base_status memory_source_merge_processes(const struct memory_process *process,
	struct memory_source *const *source, size_t nr, struct memory_source **ret,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status memory_source_lpt_open_all(const char *const *paths, size_t nr_paths,
	struct memory_source **ret, struct base_err *err) BASE_MUST_CHECK;

/* Does a batch keep the promises above? For tests, fuzzers, and sources that trust nobody.
 * ERR_CORRUPT names the item. */
enum base_status memory_batch_check(
	const struct memory_batch *b, struct base_err *err) BASE_MUST_CHECK;

#endif
