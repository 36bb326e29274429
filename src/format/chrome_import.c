/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chrome_import.c - Trace Event JSON: threads as state machines whose states are their innermost
 * slices, flows as what one hands to the other.
 *
 * A flow that ends where a slice of its thread ends has ended that slice: it was a wait. One that
 * ends while its thread has no slice has ended the gap. Anything else about a wait the format does
 * not say.
 */
#include "format/machines.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 1 << 24, DEPTH_MAX = 128 };

/* At one time in this order: a flow that comes in ends what ends then, before anything begins. */
enum what { FLOW_IN, SLICE_END, SLICE, FLOW_OUT, DROPPED };
struct event {
	uint64_t time_ns, end_ns; /* end: of a slice; 0: an E says it */
	uint64_t key;             /* of a flow */
	uint32_t name, order;
	uint32_t thread;
	enum what what;
};
struct thread {
	uint32_t actor, name, process;
	uint64_t pid, tid;
};
struct chrome {
	struct base_strtab *texts;
	struct event *event;
	size_t nr, capacity;
	struct thread *thread;
	size_t nr_threads, thread_capacity;
	struct base_map by_tid, process_names;
	uint64_t nr_other, nr_damaged, nr_flows, nr_slices;
	bool failed, cut;
	bool own; /* of longpole's: process 0 is its critical path, which is to be found again */
	struct format_machines *machines;
};

static uint32_t text_of(struct chrome *c, const char *text)
{
	uint32_t id = 0;
	c->failed |= base_strtab_intern(c->texts, text, strlen(text), &id) != BASE_OK;
	return id;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

/* Numbers, or texts of numbers: both are in use for ids. */
static uint64_t id_of(const json_t *v)
{
	uint64_t hash = 1;
	if (json_is_integer(v))
		return (uint64_t)json_integer_value(v);
	if (json_is_real(v)) { /* of a file with larger integers than jansson's */
		double r = json_real_value(v);
		return r >= 0 && r < 0x1p63 ? (uint64_t)r : 0;
	}
	const char *text = json_is_string(v) ? json_string_value(v) : "";
	for (const char *p = text; *p; p++)
		hash = base_hash_u64(hash ^ (unsigned char)*p);
	return *text ? hash : 0;
}

/* Microseconds, with a fraction. False: no time that a trace can have. */
static bool time_of(const json_t *v, uint64_t *ret_ns)
{
	double us = json_number_value(v);
	if (!json_is_number(v) || !(us >= 0) || us > 1e15)
		return false;
	*ret_ns = json_is_integer(v) ? (uint64_t)json_integer_value(v) * 1000
				     : (uint64_t)llround(us * 1000);
	return true;
}

static uint32_t thread_of(struct chrome *c, const json_t *e)
{
	uint64_t pid = id_of(json_object_get(e, "pid")), tid = id_of(json_object_get(e, "tid")),
		 known;
	if (base_map_get(&c->by_tid, pid, tid, &known))
		return (uint32_t)known;
	if (base_grow(&c->thread, &c->thread_capacity, c->nr_threads + 1, sizeof *c->thread) !=
			BASE_OK ||
		base_map_put(&c->by_tid, pid, tid, c->nr_threads) != BASE_OK) {
		c->failed = true;
		return UINT32_MAX;
	}
	BASE_ASSUME(c->thread != NULL);
	c->thread[c->nr_threads++] = (struct thread){.pid = pid, .tid = tid};
	return (uint32_t)c->nr_threads - 1;
}

static void add(struct chrome *c, struct event e)
{
	if (c->nr >= EVENTS_MAX || e.thread == UINT32_MAX) {
		c->nr_damaged++;
		return;
	}
	if (base_grow(&c->event, &c->capacity, c->nr + 1, sizeof *c->event) != BASE_OK) {
		c->failed = true;
		return;
	}
	e.order = (uint32_t)c->nr;
	c->event[c->nr++] = e;
}

static const char *text_in(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static void read_name(struct chrome *c, const json_t *e)
{
	const char *what = text_in(e, "name"), *name = text_in(json_object_get(e, "args"), "name");
	if (!strcmp(what, "process_name")) {
		c->failed |= base_map_put(&c->process_names, 0, id_of(json_object_get(e, "pid")),
				     text_of(c, name)) != BASE_OK;
	} else if (!strcmp(what, "thread_name")) {
		uint32_t thread = thread_of(c, e), text = text_of(c, name);
		BASE_ASSUME(thread == UINT32_MAX || c->thread);
		if (thread != UINT32_MAX)
			c->thread[thread].name = text;
	}
}

static void read_event(struct chrome *c, const json_t *e)
{
	const char *phase = text_in(e, "ph");
	struct event event = {0};
	uint64_t duration_ns = 0;
	if (*phase == 'M' && !(c->own && !id_of(json_object_get(e, "pid"))))
		read_name(c, e);
	if (*phase == 'M')
		return;
	if (c->own && !id_of(json_object_get(e, "pid")))
		return;
	if (!*phase || !strchr("XBEstf", *phase)) {
		c->nr_other++;
		return;
	}
	if (!time_of(json_object_get(e, "ts"), &event.time_ns) ||
		(*phase == 'X' && !time_of(json_object_get(e, "dur"), &duration_ns))) {
		c->nr_damaged++;
		return;
	}
	event.thread = thread_of(c, e);
	event.name = text_of(c, text_in(e, "name"));
	if (*phase == 'X' || *phase == 'B') {
		event.what = SLICE;
		event.end_ns = *phase == 'X' ? event.time_ns + duration_ns + !duration_ns : 0;
		c->nr_slices++;
		add(c, event);
		return;
	}
	if (*phase == 'E') {
		event.what = SLICE_END;
		add(c, event);
		return;
	}
	event.key = id_of(json_object_get(e, "id"));
	c->nr_flows += *phase == 's';
	if (*phase != 's') { /* a step takes, and hands on */
		event.what = FLOW_IN;
		add(c, event);
	}
	if (*phase != 'f') {
		event.what = FLOW_OUT;
		add(c, event);
	}
}

/* ---- threads as machines -----------------------------------------------------------------------
 */

static int by_thread(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	if (x->what == SLICE && x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1; /* the outer one first */
	return x->order < y->order ? -1 : x->order > y->order;
}

static int by_file(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Each B gets the time of its E, which is then no event any more. They stand in the order of time.
 */
static void match_ends(struct chrome *c)
{
	size_t stack[DEPTH_MAX];
	unsigned nr = 0;
	qsort(c->event, c->nr, sizeof *c->event, by_file);
	for (size_t i = 0; i < c->nr; i++) {
		struct event *e = &c->event[i];
		if (i && e->thread != e[-1].thread)
			nr = 0;
		if (e->what == SLICE && !e->end_ns) {
			e->end_ns = UINT64_MAX; /* as long as nothing ends it */
			if (nr < DEPTH_MAX)
				stack[nr++] = i;
		} else if (e->what == SLICE_END) {
			e->what = DROPPED;
			struct event *b = nr ? &c->event[stack[--nr]] : NULL;
			c->nr_damaged += !b || b->time_ns > e->time_ns;
			if (b && b->time_ns <= e->time_ns)
				b->end_ns = e->time_ns + (e->time_ns == b->time_ns);
		}
	}
}

struct machine { /* a thread, while its events are gone through */
	struct chrome *c;
	const struct thread *t;
	struct {
		uint64_t end_ns;
		uint32_t name;
	} open[DEPTH_MAX];
	unsigned nr_open;
	uint64_t since_ns; /* in the present state */
	uint32_t shown;    /* its name; 0: no slice */
};

static void say(struct machine *m, uint64_t time_ns)
{
	const char *text = m->shown ? base_strtab_get(m->c->texts, m->shown) : "between slices";
	format_machines_add(m->c->machines, time_ns, m->t->actor, FORMAT_MACHINE_state,
		format_machines_state(m->c->machines, text), 0);
	m->since_ns = time_ns;
}

static void show(struct machine *m, uint64_t time_ns)
{
	uint32_t name = m->nr_open ? m->open[m->nr_open - 1].name : 0;
	if (name == m->shown)
		return;
	m->shown = name;
	say(m, time_ns);
}

/* Slices that have ended by then, innermost first. */
static void close_until(struct machine *m, uint64_t time_ns)
{
	while (m->nr_open && m->open[m->nr_open - 1].end_ns <= time_ns) {
		uint64_t end_ns = m->open[--m->nr_open].end_ns;
		show(m, end_ns > m->since_ns ? end_ns : m->since_ns);
	}
}

static uint32_t queue_of(struct chrome *c, uint32_t name)
{
	const char *text = base_strtab_get(c->texts, name);
	return format_machines_queue(c->machines, *text ? text : "flow");
}

static void take_flow(struct machine *m, const struct event *e)
{
	uint32_t queue = queue_of(m->c, e->name);
	/* Does the innermost slice end there, or is there none? Then it waited for the flow. */
	close_until(m, e->time_ns ? e->time_ns - 1 : 0);
	if (m->since_ns < e->time_ns &&
		(!m->nr_open || m->open[m->nr_open - 1].end_ns == e->time_ns))
		format_machines_add(
			m->c->machines, m->since_ns, m->t->actor, FORMAT_MACHINE_wait, queue, 0);
	format_machines_add(
		m->c->machines, e->time_ns, m->t->actor, FORMAT_MACHINE_take, queue, e->key);
	while (m->nr_open && m->open[m->nr_open - 1].end_ns <= e->time_ns)
		m->nr_open--;
	m->shown = m->nr_open ? m->open[m->nr_open - 1].name : 0;
	say(m, e->time_ns);
}

static void convert_event(struct machine *m, const struct event *e)
{
	if (e->what == FLOW_IN) {
		take_flow(m, e);
		return;
	}
	close_until(m, e->time_ns);
	if (e->what == FLOW_OUT) {
		format_machines_add(m->c->machines, e->time_ns, m->t->actor, FORMAT_MACHINE_put,
			queue_of(m->c, e->name), e->key);
		m->since_ns = e->time_ns; /* who hands over does not wait then */
	} else if (e->what == SLICE && m->nr_open < DEPTH_MAX) {
		m->open[m->nr_open].name = e->name;
		m->open[m->nr_open++].end_ns = e->end_ns;
		show(m, e->time_ns);
	}
}

static void convert(struct chrome *c)
{
	for (size_t i = 0; i < c->nr_threads; i++) {
		struct thread *t = &c->thread[i];
		uint64_t process;
		struct base_str name = {0};
		if (t->name)
			base_str_add(&name, base_strtab_get(c->texts, t->name));
		else
			base_str_addf(&name, "thread %" PRIu64, t->tid);
		if (!base_map_get(&c->process_names, 0, t->pid, &process))
			process = 0;
		t->actor = format_machines_actor(c->machines,
			base_strtab_get(c->texts, (uint32_t)process), base_str_text(&name), i + 1);
		c->failed |= name.failed;
		base_str_fini(&name);
	}
	if (!c->nr)
		return;
	match_ends(c);
	qsort(c->event, c->nr, sizeof *c->event, by_thread);
	uint64_t origin_ns = UINT64_MAX;
	for (size_t i = 0; i < c->nr; i++)
		origin_ns = c->event[i].time_ns < origin_ns ? c->event[i].time_ns : origin_ns;
	for (size_t i = 0, end; i < c->nr; i = end) {
		struct machine m = {.c = c, .t = &c->thread[c->event[i].thread]};
		say(&m, origin_ns);
		for (end = i; end < c->nr && c->event[end].thread == c->event[i].thread; end++)
			convert_event(&m, &c->event[end]);
		close_until(&m, UINT64_MAX - 1);
	}
}

/* Bytes up to the end of the last whole event, and how deep the list of events is: 1 an array, 2 in
 * an object; 0: none. */
static size_t whole_events(const char *text, size_t length, unsigned *ret_depth)
{
	size_t end = 0;
	unsigned depth = 0, list = 0;
	bool quoted = false;
	for (size_t i = 0; i < length; i++) {
		char b = text[i];
		if (b == '\\' && quoted)
			i++;
		else if (b == '"')
			quoted = !quoted;
		else if (quoted)
			continue;
		else if (b == '[' || b == '{') {
			depth++;
			if (b == '[' && !list)
				list = depth;
		} else if (b == ']' || b == '}') {
			depth -= depth > 0;
			if (b == '}' && list && depth == list)
				end = i + 1;
		}
	}
	*ret_depth = list;
	return list <= 2 ? end : 0;
}

/* A program that was killed leaves a list without its end, which the format's description allows.
 */
static json_t *load_cut(struct chrome *c, const char *text, size_t length, size_t flags)
{
	unsigned depth;
	struct base_str whole = {0};
	json_error_t why;
	json_t *j = NULL;
	base_str_add_bytes(&whole, text, whole_events(text, length, &depth));
	base_str_add(&whole, depth == 2 ? "]}" : "]");
	if (whole.failed)
		c->failed = true;
	else if (whole.length > 2)
		j = json_loadb(base_str_text(&whole), whole.length, flags, &why);
	base_str_fini(&whole);
	c->cut = j != NULL;
	return j;
}

/* Integers beyond 64 bits with a sign are in Chromium's files: then all numbers are read as real
 * ones. */
static json_t *load(struct chrome *c, const char *text, size_t length, json_error_t *why)
{
	size_t flags = 0;
	json_t *j = json_loadb(text, length, flags, why);
	if (!j && json_error_code(why) == json_error_numeric_overflow) {
		flags = JSON_DECODE_INT_AS_REAL;
		j = json_loadb(text, length, flags, why);
	}
	return j ? j : load_cut(c, text, length, flags);
}

static enum base_status read_json(
	struct chrome *c, const char *text, size_t length, struct base_err *err)
{
	json_error_t why;
	json_t *j = load(c, text, length, &why);
	const json_t *events = json_is_array(j) ? j : json_object_get(j, "traceEvents"), *e;
	size_t i;
	if (!json_is_array(events)) {
		enum base_status s = base_fail(err, BASE_ERR_FOREIGN,
			j ? "has no traceEvents" : "is no JSON: line %d: %s", why.line, why.text);
		json_decref(j);
		return s;
	}
	c->own = !strncmp(text_in(json_object_get(j, "otherData"), "tool"), "longpole ", 9);
	json_array_foreach(events, i, e)
	{
		if (json_is_object(e))
			read_event(c, e);
		else
			c->nr_damaged++;
	}
	json_decref(j);
	return BASE_OK;
}

enum base_status format_import_chrome(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	struct chrome c = {.texts = base_strtab_new(), .machines = format_machines_new()};
	char *text = NULL;
	size_t length = 0;
	(void)opts;
	enum base_status s = c.texts && c.machines
				     ? format_read_all(from, &text, &length, err)
				     : base_fail(err, BASE_ERR_NOMEM, "out of memory");
	if (s == BASE_OK)
		s = read_json(&c, text, length, err);
	base_free(text);
	if (s == BASE_OK && !c.failed)
		convert(&c);
	if (s == BASE_OK && c.failed)
		s = base_fail(err, BASE_ERR_NOMEM, "out of memory for slices");
	if (s == BASE_OK)
		s = format_machines_write(c.machines, from->name, to, err);
	if (s == BASE_OK) {
		base_str_addf(notes, "%llu slices and %llu flows of %zu threads\n",
			(unsigned long long)c.nr_slices, (unsigned long long)c.nr_flows,
			c.nr_threads);
		if (!c.nr_flows)
			base_str_add(notes,
				"there are no flows in it: nothing says who waited for whom\n");
		format_note_count(
			notes, c.nr_other, "%s events are neither slices nor flows: left out");
		format_note_count(notes, c.nr_damaged, "%s events have no sensible time: left out");
		if (c.cut)
			base_str_add(notes, "the file is cut short: imported as far as it goes\n");
		trace_writer_count(to, TRACE_DIAG_import_skipped, c.nr_damaged);
		trace_writer_count(to, TRACE_DIAG_import_cut, c.cut);
	}
	base_free(c.event);
	base_free(c.thread);
	base_strtab_free(c.texts);
	base_map_fini(&c.by_tid);
	base_map_fini(&c.process_names);
	format_machines_free(c.machines);
	return s;
}
