/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longpole/trace.h - read and write longpole's traces. C11 or C++17. Link with -llongpole
 * (pkg-config longpole). What a trace says of a run is asked of longpole/analysis.h.
 *
 *     struct longpole_error error = {.size = sizeof error};
 *     struct longpole_record record = {.size = sizeof record};
 *     struct longpole_trace *trace;
 *     if (longpole_trace_open("a.lpt", NULL, &trace, &error))
 *             complain(error.text);
 *     while (longpole_trace_next(trace, &record, &error) == LONGPOLE_STATUS_OK)
 *             use(record.time_ns, record.kind_name);
 *     longpole_trace_close(trace);
 *
 * Rules, here and in analysis.h:
 *
 * Sizes. Every struct begins with its size, which the caller sets: the library reads and writes so
 * much and no more. So a program that was built with an older header runs with a newer library. What
 * an older library does not know becomes 0; an option that it does not know is an error, unless it
 * is 0.
 *
 * Errors. What can fail returns an enum longpole_status: 0 is success, less than 0 is an error,
 * LONGPOLE_STATUS_END says that there is no more. The last argument gets the text; NULL loses the
 * text only. An argument that must not be NULL and is, is LONGPOLE_STATUS_USAGE. What is given back
 * through a pointer is NULL after an error.
 *
 * Ownership. What _open and _new give is the caller's, who gives it to _close or _free (NULL does
 * nothing). Texts that the library gives are its own: they are valid as long as their handle, unless
 * something else is said. Texts of a trace come from the recorded program: they are as it wrote
 * them, so make them fit before a terminal gets them.
 *
 * Threads. A handle is used by one thread at a time. Different handles have nothing in common. The
 * library has no state of its own, prints nothing and sets no signal handler; it ends the process
 * only where it finds a bug of its own (abort(), after a line on standard error). It may start
 * threads, which block all signals and end with the call or with the handle: do not fork in between.
 * The program's locale changes nothing. A caller's stack of 256 KiB is enough.
 *
 * Units are the last word of a name; times are nanoseconds since the recording's start.
 */
#ifndef LONGPOLE_TRACE_PUBLIC_H
#define LONGPOLE_TRACE_PUBLIC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- statuses and errors --------------------------------------------------------------------- */

enum longpole_status { /* the numbers are for ever */
	LONGPOLE_STATUS_OK = 0,
	LONGPOLE_STATUS_END = 1,        /* no more of them */
	LONGPOLE_STATUS_NOMEM = -1,     /* out of memory */
	LONGPOLE_STATUS_LIMIT = -2,     /* a limit was reached; the text names it */
	LONGPOLE_STATUS_IO = -3,        /* reading or writing failed */
	LONGPOLE_STATUS_CORRUPT = -4,   /* the file's header is damaged */
	LONGPOLE_STATUS_TRUNCATED = -5, /* the file ends within its header */
	LONGPOLE_STATUS_VERSION = -6,   /* a newer longpole made it */
	LONGPOLE_STATUS_FORMAT = -7,    /* no trace */
	LONGPOLE_STATUS_USAGE = -8,     /* an argument is wrong */
	LONGPOLE_STATUS_ENV = -9,       /* this machine refused something: see sys_errno */
	LONGPOLE_STATUS_NOTFOUND = -10, /* no such thing, here or in the trace */
	LONGPOLE_STATUS_FOREIGN = -11,  /* not a file of that format */
	LONGPOLE_STATUS_CLOCK = -12,    /* traces have no clock in common */
	LONGPOLE_STATUS_LACKS = -13     /* the trace was recorded for another question */
};
const char *longpole_status_text(int status); /* one line */

enum { LONGPOLE_ERROR_TEXT_BYTES = 3600 };
struct longpole_error {
	size_t size;       /* sizeof(struct longpole_error); 0: nothing is written */
	int32_t status;    /* of the last call that was given it */
	int32_t sys_errno; /* 0, or why the system refused something */
	/* What went wrong, then a line for each thing that was being done; "" after a success. */
	char text[LONGPOLE_ERROR_TEXT_BYTES];
};

const char *longpole_version(void); /* of the library: "0.1.0" */

/* ---- annotations from other languages -------------------------------------------------------- */

struct longpole_hooks;
/* The functions of whoever records this program, as annotate.h has them: for languages that cannot
 * include that. NULL: nobody records now; ask again each time. Places that they are given stay where
 * they are as long as the program. */
const struct longpole_hooks *longpole_annotate_hooks(void);

/* ---- kinds of records ------------------------------------------------------------------------ */

/* Kinds and their fields only ever become more. A kind keeps its number, its name, and its fields in
 * their order. They are described one by one in the installed format.md. */
struct longpole_kind {
	size_t size;
	uint32_t kind;      /* its number */
	uint32_t nr_fields; /* numbered from 0 */
	const char *name;   /* "lock_wait" */
	const char *doc;    /* what it says */
};
/* The i-th kind that the library knows; LONGPOLE_STATUS_END: no more. */
int longpole_kind_at(uint32_t i, struct longpole_kind *ret);
/* LONGPOLE_STATUS_NOTFOUND: there is none. */
int longpole_kind_find(const char *name, struct longpole_kind *ret);

enum longpole_field_type {
	LONGPOLE_FIELD_ID = 0,  /* number of something that the trace defines; 0: none */
	LONGPOLE_FIELD_U64 = 1, /* a number */
	LONGPOLE_FIELD_S64 = 2, /* a number with a sign */
	LONGPOLE_FIELD_TEXT = 3 /* a text; in definitions only */
};
struct longpole_field {
	size_t size;
	int32_t type; /* enum longpole_field_type */
	uint32_t reserved;
	const char *name, *unit; /* "object"; "ns", or of an id what it is of: "object", "string" */
	const char *doc;
};
/* LONGPOLE_STATUS_END: the kind has fewer fields; LONGPOLE_STATUS_NOTFOUND: no such kind. */
int longpole_kind_field(uint32_t kind, uint32_t field, struct longpole_field *ret);
/* The field's number, or -1. Ask once, not for each record. */
int longpole_kind_field_find(uint32_t kind, const char *name);

/* ---- reading --------------------------------------------------------------------------------- */

struct longpole_trace; /* a trace that is open for reading */

struct longpole_trace_options {
	size_t size;
	uint64_t from_ns, to_ns;   /* records of this time only; to 0: to the end */
	uint32_t with_definitions; /* not 0: records that define ids come, too, before the others */
	uint32_t reserved;         /* 0 */
};
/*
 * Opens a trace. options: NULL for the defaults. A cut or damaged file opens as far as it can be
 * read: longpole_trace_info.is_partial and longpole_trace_loss() say so, and so they do of what the
 * recorder lost.
 */
int longpole_trace_open(const char *path, const struct longpole_trace_options *options,
	struct longpole_trace **ret, struct longpole_error *error);
/* The same of bytes in memory, which stay there until it is closed. */
int longpole_trace_open_memory(const void *bytes, size_t nr_bytes,
	const struct longpole_trace_options *options, struct longpole_trace **ret,
	struct longpole_error *error);
void longpole_trace_close(struct longpole_trace *trace);
/* Checks every byte of the file, so that what is damaged is known before the first record is read.
 * Before the first longpole_trace_next(). */
int longpole_trace_verify(struct longpole_trace *trace, struct longpole_error *error);

struct longpole_trace_info {
	size_t size;
	const char *command, *host, *tool;   /* what was recorded, where, by what; "" not known */
	uint64_t origin_unix_ns;             /* wall time at time 0; 0: not known */
	uint64_t origin_mono_ns;             /* CLOCK_MONOTONIC_RAW at time 0 */
	uint64_t clock_hz;                   /* rate of the recorder's clock; 0: not known */
	uint64_t last_ns;                    /* time of the last record */
	uint64_t nr_records;                 /* without definitions */
	uint64_t file_bytes, readable_bytes; /* of the file; equal when it is whole */
	uint32_t nr_processors;              /* 0: not known */
	uint32_t nr_streams;   /* longpole_record.stream is less than that; threads, mostly */
	uint32_t is_partial;   /* records that belong to it are missing, as far as is known now */
	uint32_t is_synthetic; /* nobody recorded it: a simulator or an importer made it */
};
int longpole_trace_get_info(const struct longpole_trace *trace, struct longpole_trace_info *ret);

/* Something that was lost, is damaged, or is to be known for another reason. */
struct longpole_loss {
	size_t size;
	const char *name;     /* "records_lost" */
	const char *severity; /* "info", "data_loss", "error" */
	const char *text;     /* a sentence with the count in it */
	uint64_t count;
	uint32_t is_partial; /* records that belong to the trace are missing */
	uint32_t reserved;
};
/* The i-th, as far as is known now: after the last record all is. LONGPOLE_STATUS_END: no more. */
int longpole_trace_loss(struct longpole_trace *trace, uint32_t i, struct longpole_loss *ret);

struct longpole_record {
	size_t size;
	uint64_t time_ns;      /* definitions: 0 */
	uint32_t stream;       /* who did it; definitions: 0 */
	uint32_t kind;         /* its number */
	const char *kind_name; /* "lock_wait" */
	uint32_t nr_fields;
	uint32_t reserved;
};
/*
 * The next record, in order of time, of all streams together. LONGPOLE_STATUS_END: there is no more.
 * Damaged parts are passed over and counted (longpole_trace_loss()).
 */
int longpole_trace_next(
	struct longpole_trace *trace, struct longpole_record *ret, struct longpole_error *error);
/* From the first record again. */
int longpole_trace_rewind(struct longpole_trace *trace, struct longpole_error *error);

struct longpole_value {
	size_t size;
	int32_t type; /* enum longpole_field_type: says which of the others are meant */
	uint32_t reserved;
	uint64_t u64; /* of an id, too */
	int64_t s64;
	/* The text itself; of an id or an enumeration its name, of a thread, place or queue; "" none.
	 * It ends with a zero byte. Valid until the next longpole_trace_next(). */
	const char *text;
	size_t text_bytes; /* without the zero byte at its end */
};
/* Of the record that longpole_trace_next() gave last. LONGPOLE_STATUS_END: it has fewer fields;
 * LONGPOLE_STATUS_USAGE: there is no record. */
int longpole_trace_field(struct longpole_trace *trace, uint32_t field, struct longpole_value *ret);
/* The name of a stream: a thread's, or its number; "" none. */
const char *longpole_trace_stream_name(struct longpole_trace *trace, uint32_t stream);

/* ---- writing --------------------------------------------------------------------------------- */

/*
 * For simulators, for importers, and for programs that know their own waits best. What is written
 * are actors that enter states and pass units through queues, with the meaning of annotate.h; then
 * all analyses work, predictions too.
 *
 *     struct longpole_writer *w;
 *     longpole_writer_open("sim.lpt", NULL, &w, &error);
 *     uint32_t cpu = longpole_writer_new_actor(w, "node 0", "cpu", 0);
 *     uint32_t link = longpole_writer_new_queue(w, "link", 0, 4);
 *     uint32_t compute = longpole_writer_new_state(w, "compute");
 *     longpole_writer_enter(w, 0, cpu, compute);
 *     longpole_writer_queue(w, 250, cpu, LONGPOLE_ENQUEUE, link, 1, 0);
 *     ...
 *     if (longpole_writer_close(w, end_ns, &error))
 *             complain(error.text);
 *
 * Calls come in order of time, whichever actor acts; of one time, in the order in which things
 * happened: a unit is taken after it was put. The run begins at time 0 and ends with
 * longpole_writer_close().
 *
 * The first error is kept: from then on nothing is written, every call returns it, and
 * longpole_writer_close() says what it was. What was written before can be read.
 */
struct longpole_writer;

struct longpole_writer_options { /* NULL and 0: not known */
	size_t size;
	const char *program;     /* what ran, in a word */
	const char *command;     /* as it was called */
	const char *host, *tool; /* where it ran; what writes this */
	uint64_t origin_unix_ns; /* wall time at time 0 */
	uint32_t nr_processors, reserved;
};
/* Makes the file, or replaces it. options: NULL for the defaults. */
int longpole_writer_open(const char *path, const struct longpole_writer_options *options,
	struct longpole_writer **ret, struct longpole_error *error);
/* Of the file so far, as far as they are written: the last records are not. */
uint64_t longpole_writer_bytes(const struct longpole_writer *writer);
/* Ends the run at end_ns, and the file. Frees the writer, also after an error. */
int longpole_writer_close(
	struct longpole_writer *writer, uint64_t end_ns, struct longpole_error *error);

/* Definitions, at any time before their use. They give a number greater than 0; 0: an error. Texts
 * are copied. */

/* Whoever does one thing after another: a thread, a device, a connection's machine. system: what it
 * is a part of, "" or NULL: nothing. instance: tells actors of one name apart. */
uint32_t longpole_writer_new_actor(
	struct longpole_writer *writer, const char *system, const char *name, uint64_t instance);
/* capacity: the most units that it holds; 0: not bounded. */
uint32_t longpole_writer_new_queue(
	struct longpole_writer *writer, const char *name, uint64_t instance, uint64_t capacity);
uint32_t longpole_writer_new_state(struct longpole_writer *writer, const char *name);

/* Verbs on queues; the numbers are for ever, and those of the kinds of records. What each means is
 * said in annotate.h. */
enum longpole_queue_verb {
	LONGPOLE_ENQUEUE = 91,    /* adds n units */
	LONGPOLE_DEQUEUE = 92,    /* has taken n units: depends on who added them */
	LONGPOLE_PEEK = 93,       /* depends on them, and leaves them */
	LONGPOLE_RESERVE = 94,    /* counts on room for n units: depends on who made it */
	LONGPOLE_RESIZE = 95,     /* the queue holds exactly n units from now */
	LONGPOLE_WAIT_EMPTY = 96, /* begins to wait for n units, until its next dequeue */
	LONGPOLE_WAIT_FULL = 97,  /* begins to wait for room for n units, until its next enqueue */
	LONGPOLE_PUT_ITEM = 102,  /* longpole_writer_item() alone: adds the item with that key */
	LONGPOLE_TAKE_ITEM = 103  /* ... has taken n units of it, wherever in the queue it was */
};
/* Flags of verbs on queues. What kind of queue it is: the first verb decides. Of none of these, the
 * oldest unit is taken first. */
enum longpole_queue_flag {
	LONGPOLE_QUEUE_NEWEST = 8,   /* the newest unit is taken first */
	LONGPOLE_QUEUE_EMPTIED = 16, /* the queue is emptied just before */
	LONGPOLE_QUEUE_TOKENS =
		32, /* free buffers, credits, locks: a taker that did not wait depends on nobody */
	LONGPOLE_QUEUE_SMALLEST = 64,  /* the item with the smallest key is taken first */
	LONGPOLE_QUEUE_ANONYMOUS = 128 /* units carry no connection to their taker */
};

/* The actor enters a state, and is in it until it enters another one. */
int longpole_writer_enter(
	struct longpole_writer *writer, uint64_t time_ns, uint32_t actor, uint32_t state);
int longpole_writer_queue(struct longpole_writer *writer, uint64_t time_ns, uint32_t actor,
	enum longpole_queue_verb verb, uint32_t queue, uint64_t nr_units, uint64_t flags);
/* verb: LONGPOLE_PUT_ITEM or LONGPOLE_TAKE_ITEM. */
int longpole_writer_item(struct longpole_writer *writer, uint64_t time_ns, uint32_t actor,
	enum longpole_queue_verb verb, uint32_t queue, uint64_t key, uint64_t nr_units,
	uint64_t flags);
/* Control passes directly to another actor: what that does next depends on this one. */
int longpole_writer_link(
	struct longpole_writer *writer, uint64_t time_ns, uint32_t actor, uint32_t to);
/* The actor serves this connection (a request, a flow) from now; 0: none. */
int longpole_writer_identify(
	struct longpole_writer *writer, uint64_t time_ns, uint32_t actor, uint64_t connection);
/* The actor does nothing more, unless another verb names it. */
int longpole_writer_end(struct longpole_writer *writer, uint64_t time_ns, uint32_t actor);

#ifdef __cplusplus
}
#endif

#endif
