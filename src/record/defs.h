/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defs.h - the definitions of one trace: every text, module, site, stack, object ... gets
 * its number once and is written to stream 0 then.
 *
 * The first error (no memory, disk full) stays in `status` and `err`; from then on nothing is
 * written and ids are 0, so callers need not check each call: they look at record_sink_failed()
 * once in a while.
 */
#ifndef LONGPOLE_RECORD_DEFS_H
#define LONGPOLE_RECORD_DEFS_H

#include "base/base.h"
#include "os/clock.h"
#include "record/journal.h"
#include "trace/enums.h"
#include "trace/trace.h"

enum {
	RECORD_DEFS_LIMIT = 1 << 26, /* of each kind */
	RECORD_MADE_PATH = 8
};

struct record_sink {
	struct trace_writer *writer; /* borrowed; NULL: there is a listener */
	void (*listen)(void *ctx, const struct trace_record *r);
	void *listen_ctx;
	enum base_status status; /* first error */
	struct base_err err;
	struct base_strtab *strings;
	uint32_t nr_strings_written; /* string ids below this are in the file */
	uint32_t nr_processes, nr_streams, nr_modules, nr_sites, nr_stacks, nr_objects, nr_actors,
		nr_states, nr_pairs, nr_inlined; /* highest id given out */
	struct base_map modules;                 /* (path, build id) -> id */
	const struct os_clock *clock;            /* may be NULL: times of files say nothing */
	struct base_map sums;  /* (path, which file and when changed) -> what a file without a build
				 id is known by */
	struct base_map sites; /* (module, offset) -> id */
	struct base_map stacks; /* (parent, site) -> id */
	struct record_site {
		uint32_t module;
		bool exact;  /* an instruction's own address; else a return address, behind the call
			      */
		bool wanted; /* keep what is found of it: */
		uint32_t function, file, line;
		uint64_t offset;
	} * site; /* by id, for symbols */
	size_t site_capacity;
	struct record_module {
		uint32_t path, build_id;
	} * module; /* by id */
	size_t module_capacity;
	struct trace_object *object; /* by id */
	size_t object_capacity;
	struct record_named { /* objects in static memory: named by their symbol at the end */
		uint32_t object, module;
		uint64_t offset;
	} * named;
	size_t nr_named, named_capacity;
	struct record_made { /* objects whose makers are known: named by them, without a symbol */
		uint32_t object, init_site, heap_site; /* sites 0: not known */
		/* calls, innermost first: of the initialisation; where none is known, of the
		 * first use */
		uint32_t path[RECORD_MADE_PATH], nr_path;
		bool several; /* more than one has been in its place */
	} * made;
	size_t nr_made, made_capacity;
	struct base_map made_of; /* (0, object) -> index into `made` */
	uint64_t nr_records;
	struct record_journal *journal; /* borrowed; NULL: nobody wants to recover this */
};

enum base_status record_sink_init(
	struct record_sink *s, struct trace_writer *w, struct base_err *err) BASE_MUST_CHECK;
void record_sink_fini(struct record_sink *s);

static inline bool record_sink_failed(const struct record_sink *s)
{
	return BASE_UNLIKELY(s->status != BASE_OK);
}
/* Remember a failure of our own (no memory ...); the first one wins. */
void record_sink_fail(struct record_sink *s, enum base_status status, const char *what);

static inline void record_sink_put(struct record_sink *s, const struct trace_record *r)
{
	if (record_sink_failed(s))
		return;
	s->nr_records++;
	if (s->writer)
		s->status = trace_writer_put(s->writer, r, &s->err);
	else
		s->listen(s->listen_ctx, r);
}

/* For writers only. */
static inline void record_sink_put_form(
	struct record_sink *s, uint32_t stream, uint64_t time_ns, const struct trace_form *f)
{
	if (record_sink_failed(s))
		return;
	s->nr_records++;
	s->status = trace_writer_put_form(s->writer, stream, time_ns, f, &s->err);
}

uint32_t record_sink_text(struct record_sink *s, const char *text, size_t length);
/* This machine, by its kernel's boot id: recordings with the same one have the same clock. */
void record_sink_host(struct record_sink *s, const char *name);
void record_sink_quota(struct record_sink *s, uint64_t quota_ns, uint64_t period_ns);
uint32_t record_sink_process(
	struct record_sink *s, uint32_t parent, uint64_t pid, uint32_t name, uint32_t command);
/* The same process again with better texts: the last definition counts. */
void record_sink_process_again(struct record_sink *s, uint32_t process, uint32_t parent,
	uint64_t pid, uint32_t name, uint32_t command);
uint32_t record_sink_stream(struct record_sink *s, uint32_t process, uint64_t tid, uint32_t name);
void record_sink_stream_again(
	struct record_sink *s, uint32_t stream, uint32_t process, uint64_t tid, uint32_t name);
/* What a module is known by that has no build id and was there at `time_ns`: its file's bytes (a
 * string's id; 0: the file cannot be read). What became of a file that was changed since nobody
 * knows: it gets a sum that no file has. Read once for each version of the file. */
uint32_t record_sink_sum(struct record_sink *s, uint32_t path, uint64_t time_ns);
uint32_t record_sink_module(struct record_sink *s, uint32_t path, uint32_t build_id);
uint32_t record_sink_site(struct record_sink *s, uint32_t module, uint64_t offset);
/* A new one every time: of code that is in no file. */
uint32_t record_sink_site_of_no_file(struct record_sink *s, uint64_t address);
static inline void record_sink_site_is_exact(struct record_sink *s, uint32_t site)
{
	if (site && !record_sink_failed(s))
		s->site[site].exact = true;
}
uint32_t record_sink_stack(struct record_sink *s, uint32_t parent, uint32_t site);
/* o->object is ignored: a new one every time. */
uint32_t record_sink_object(struct record_sink *s, struct trace_object o);
/* s->object[object] was changed: write it again. */
void record_sink_object_again(struct record_sink *s, uint32_t object);
/* The object lies at `offset` of `module`'s data: it is named by its symbol at the end. */
void record_sink_object_at(
	struct record_sink *s, uint32_t object, uint32_t module, uint64_t offset);
/* made->object was initialised by a call at init_site, in memory that one at heap_site allocated.
 */
void record_sink_object_made(struct record_sink *s, const struct record_made *made);
uint32_t record_sink_actor(
	struct record_sink *s, uint32_t system, uint32_t name, uint64_t instance);
uint32_t record_sink_state(struct record_sink *s, uint32_t name, uint32_t site);

#endif
