/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - export: a trace and its critical path in another tool's format; import: another tool's
 * file as a trace.
 *
 * Units: ns since the trace's origin. For an export the model must have been run over the same
 * reader with keep_path, unless the format writes records only (FORMAT_RECORDS).
 */
#ifndef LONGPOLE_FORMAT_H
#define LONGPOLE_FORMAT_H

#include "model/model.h"

enum {
	FORMAT_BINARY = 1,
	FORMAT_WEIGHTS = 2, /* has --weight */
	FORMAT_RECORDS = 4, /* the trace's records, all of them: no path, no window, no model */
	FORMAT_EVENTS = 8,  /* wants format_input.events */
	FORMAT_FILE = 16,   /* a library writes it: the sink's path */
	FORMAT_FILES = 32,  /* several files: the sink begins each */
	FORMAT_DIRECTORY =
		128,       /* a library writes several files: the sink's path is their directory */
	FORMAT_WHOLE = 64, /* sums of the whole run: no window, and never too many events */
};

struct format_sink { /* takes the bytes in order */
	enum base_status (*write)(
		void *ctx, const void *bytes, size_t length, struct base_err *err);
	/* FORMAT_FILES: what is written from now on is file `name` of the directory. */
	enum base_status (*begin)(void *ctx, const char *name, struct base_err *err);
	void *ctx;
	const char
		*path; /* FORMAT_FILE: does not exist yet; FORMAT_DIRECTORY: is empty; else NULL */
};

/*
 * struct format_events - what the model told the graph, and what that said, gathered while
 * model_run() runs: its options get this listener and this sink. Bounded: of more than
 * FORMAT_EVENTS_MAX of a kind, the rest is counted.
 */
enum { FORMAT_EVENTS_MAX = 1 << 22 };
struct format_dependence {                       /* a wait ended because of what somebody did */
	uint64_t available_ns, begin_ns, end_ns; /* done then; waited from, to */
	uint32_t from_actor, to_actor;
	uint32_t queue; /* UINT32_MAX: a link */
	bool space;     /* room in it was waited for */
};
struct format_level { /* units in a queue from now */
	uint64_t time_ns, units;
	uint32_t queue;
};
struct format_events {
	struct format_dependence *dependence;
	struct format_level *level;
	size_t nr_dependences, nr_levels, dependence_capacity, level_capacity;
	uint64_t nr_left_out;
	uint64_t *units; /* by queue, now */
	size_t *last;    /* by queue: index + 1 of its last level */
	size_t nr_queues, units_capacity, last_capacity;
	struct graph_listener listener;
	struct graph_sink sink;
};
void format_events_init(struct format_events *e); /* must stay where it is */
void format_events_fini(struct format_events *e);

enum format_weight { FORMAT_WEIGHT_path, FORMAT_WEIGHT_wait, FORMAT_WEIGHT_cpu };
struct format_options {
	uint64_t from_ns, to_ns;  /* only what overlaps [from, to); to 0: end */
	uint64_t min_duration_ns; /* shorter slices are left out */
	uint64_t max_events;      /* 0: the format's own limit */
	const char *thread;       /* only threads with that in their name; NULL: all */
	enum format_weight weight;
};
struct format_input {
	struct trace_reader *reader;        /* is rewound */
	struct model *model;                /* NULL for FORMAT_RECORDS */
	const struct format_events *events; /* NULL: dependences and queues are left out */
	const char *name;                   /* of the trace */
	const char *tool;                   /* "longpole 0.1.0" */
	/* Gets a line for everything that the format could not say; NULL: nobody asks. */
	struct base_str *notes;
};

struct format_desc {
	const char *name, *suffix, *doc;
	uint64_t max_events;
	unsigned flags;
	enum base_status (*export)(const struct format_input *in, const struct format_options *opts,
		const struct format_sink *sink, struct base_err *err);
};
const struct format_desc *format_table(size_t *ret_nr);
const struct format_desc *format_find(const char *name); /* NULL: none */

/* ERR_LIMIT when there is more than max_events: its text has the flags to use. */
enum base_status format_export(const struct format_desc *f, const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink,
	struct base_err *err) BASE_MUST_CHECK;

/* ---- goroutines --------------------------------------------------------------------------------- */

struct gotrace;
/* What happened in a Go program, as a recording; name: the program's. A line in `notes` for everything that is not known. */
enum base_status format_go_write(const struct gotrace *t, const char *name, struct trace_writer *to,
	struct base_str *notes, struct base_err *err) BASE_MUST_CHECK;

/* ---- import ---------------------------------------------------------------------------------- */

struct format_source { /* a file's bytes, in any order */
	/* All of [offset, offset + length), which lies within size_bytes. */
	enum base_status (*read)(
		void *ctx, uint64_t offset, void *to, size_t length, struct base_err *err);
	void *ctx;
	uint64_t size_bytes;
	const char *name; /* for messages, and the imported program's name */
	const char *path; /* FORMAT_IMPORT_PATH: for a library that opens it; else NULL */
	/* FORMAT_IMPORT_MANY: the next file of several; NULL: there is none. Files are unpacked by the import. */
	const struct format_source *next;
	bool is_found; /* in a directory, not named: left out if it is no file of that format */
};
enum {
	FORMAT_IMPORT_SYSTEM = 1, /* becomes a recording of a whole system */
	FORMAT_IMPORT_PATH = 2,   /* a library reads it by its path, which may be a directory */
	FORMAT_IMPORT_MANY = 4,   /* of several files, or a directory of them */
	FORMAT_IMPORT_RANKS =
		8, /* of processes that nobody started: the run is over with the last */
};
/* The program that the recorder started: the path is to its end. */
struct format_started {
	uint32_t pid;            /* 0: none is known */
	bool is_program;         /* the file is of programs alone, not of a whole system */
	uint32_t nr_processors;  /* that the program had; 0: not known */
	struct base_str command; /* its line, as it was written */
};
struct format_import_options {
	const struct format_started *started; /* NULL: none */
	uint64_t tick_ps;                     /* a simulator's tick; 0: the format's usual one */
	const char *
		step; /* accelerators: pattern of the annotations that are steps; NULL: the profiler's own */
	void (*progress)(void *ctx, uint64_t done_bytes, uint64_t all_bytes); /* may be NULL */
	void *progress_ctx;
};
struct format_import_desc {
	const char *name, *doc;
	unsigned flags;
	enum base_status (*import)(const struct format_source *from, struct trace_writer *to,
		const struct format_import_options *opts, struct base_str *notes,
		struct base_err *err);
	/* Fills *ret; NULL: the format does not say it. */
	enum base_status (*started)(
		const struct format_source *from, struct format_started *ret, struct base_err *err);
};
const struct format_import_desc *format_import_table(size_t *ret_nr);
const struct format_import_desc *format_import_find(const char *name); /* NULL: none */

/* Before the import, whose options get it; the caller frees ret->command, in any case. Of what is
 * damaged format_import() says more: then none is known. ERR_NOMEM. */
enum base_status format_import_started(const struct format_import_desc *f,
	const struct format_source *from, struct format_started *ret,
	struct base_err *err) BASE_MUST_CHECK;
/* Writes all of `from` to `to`, which stays open. Notes (may be NULL) get a line for each thing
 * that was left out, guessed or cut. ERR_FOREIGN: not a file of that format; a file of it that is
 * cut or damaged further on is imported as far as it goes. */
enum base_status format_import(const struct format_import_desc *f, const struct format_source *from,
	struct trace_writer *to, const struct format_import_options *opts, struct base_str *notes,
	struct base_err *err) BASE_MUST_CHECK;

#endif
