/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - the path of something that goes on: records in, one answer per interval out, in bounded
 * memory. Nothing here knows where records come from.
 *
 * Memory is that of two models of what lives and has lived lately (a fresh one takes the place of
 * one that has seen too many threads and objects that are gone), of the records that wait for
 * late ones, and of the windows that wait for their answer.
 */
#ifndef LONGPOLE_LIVE_LIVE_H
#define LONGPOLE_LIVE_LIVE_H

#include "model/model.h"

/* One row of an answer: what of the paths it has. */
struct live_row {
	const char *process; /* program and start routine ("pigz/compress_thread"); "" where it does
				not apply */
	const char *name;    /* state, or connection; "": a process */
	const char *where;
	const char *had; /* who had the processor that it waits for; NULL, "": it does not */
	enum model_state_kind kind; /* of a state */
	double path_ns, unexplained_ns, latency_ns, waiting_ns;
	uint64_t visits;
};

struct live_window {
	uint64_t number; /* from 0 */
	uint64_t from_ns, to_ns;
	/* The paths that this is about: one, or one a process that did something. */
	uint32_t nr_paths;
	uint32_t nr_asleep; /* more processes that did next to nothing but sleep: not summed */
	double path_ns, unexplained_ns;                      /* of all of them together */
	const struct live_row *state, *process, *connection; /* most first */
	size_t nr_states, nr_processes, nr_connections;
	uint64_t nr_records; /* of this window */
	uint64_t nr_lost;    /* that should have been; what depended on them is not explained */
	uint64_t nr_late;    /* of them: came after their time, and count as later than they were */
	unsigned hindsight;  /* later windows that were known when this was answered */
	bool to_the_end;     /* ... up to the end of the run: nothing can change it */
	bool fresh; /* first window of a fresh model: what is older than two windows is not known */
};

enum live_whom {
	LIVE_WHOM_program,   /* one path, to the end of the program that was started: as `report` */
	LIVE_WHOM_processes, /* one for each process */
};

#define LIVE_HINDSIGHT_ALL UINT32_MAX
enum {
	LIVE_WINDOWS_MAX = 4096,         /* that wait for their answer */
	LIVE_LATE_RECORDS_MAX = 1 << 20, /* that wait for others */
	LIVE_ENTRIES_MAX = 1 << 15,      /* of a model: then a fresh one takes over */
};

struct live_options {
	uint64_t interval_ns;
	uint64_t late_ns; /* a record comes at most that much after others of its time; 0: in order
			   */
	unsigned hindsight; /* windows that an answer waits for, since they tell where the path went
			       on */
	enum live_whom whom;
	/* Of a trace, where all are known: no definitions are put, and there is one model only.
	 * NULL: as live_put() has them. */
	const struct trace_defs *defs;
	bool system; /* every thread's switches and wakes will come (TRACE_INFO_SYSTEM) */
	const char
		*command; /* the program that was started, as its definition has it; NULL: none */
	const char *process;     /* only these: a name (shell pattern) or a pid; NULL: all */
	const char *cgroup;      /* only those in this one or below; NULL: all */
	uint64_t max_entries;    /* 0: LIVE_ENTRIES_MAX */
	size_t max_memory_bytes; /* of one model's graph; 0: the engine's default */
	/* A status other than BASE_OK ends it: live_put() or live_advance() return it. */
	enum base_status (*answer)(void *ctx, const struct live_window *w, struct base_err *err);
	void *ctx;
};

struct live;
enum base_status live_new(
	const struct live_options *opts, struct live **ret, struct base_err *err) BASE_MUST_CHECK;
/* Definitions (stream 0) before what mentions them, again when more is known; records of each
 * stream in time order, those of different streams late_ns apart at most. Texts are copied. */
enum base_status live_put(
	struct live *l, const struct trace_record *r, struct base_err *err) BASE_MUST_CHECK;
/* All records before time_ns have been put: windows may end. */
enum base_status live_advance(
	struct live *l, uint64_t time_ns, struct base_err *err) BASE_MUST_CHECK;
/* So many records more than before never came. */
void live_lost(struct live *l, uint64_t n);
/* The end: everything that waits is answered. */
enum base_status live_finish(struct live *l, struct base_err *err) BASE_MUST_CHECK;
struct live *live_free(struct live *l);

struct live_health {
	uint64_t nr_records, nr_late, nr_lost, nr_windows;
	uint64_t nr_models;         /* that took over */
	uint64_t nr_forgotten;      /* objects that nobody had mentioned for a minute then */
	uint64_t nr_entries;        /* of all models now: definitions, actors, states, queues */
	uint64_t memory_peak_bytes; /* graphs, windows and waiting records */
	struct trace_health model;  /* of the present model */
};
struct live_health live_health(const struct live *l);

#endif
