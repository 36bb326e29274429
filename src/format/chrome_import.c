/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chrome_import.c - Trace Event JSON: threads as state machines whose states are their innermost
 * slices, flows as what one hands to the other.
 *
 * A flow that ends where a slice of its thread ends has ended that slice: it was a wait. One that
 * ends while its thread has no slice has ended the gap. Anything else about a wait the format does
 * not say. Flows of its second version (bind_id) have no times: a slice that flows out hands over
 * when it ends, or when the slice that it flows into begins, whichever is first.
 */
#include "format/json.h"
#include "format/machines.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS_MAX = 1 << 24, DEPTH_MAX = 128, DETAILS_MAX = 200 };
static const double US_MAX = 4e15; /* from 1970: the year 2096; twice that in ns fits 63 bits */

/* At one time in this order: a flow that comes in ends what ends then, before anything begins. */
enum what { FLOW_IN, SLICE_END, SLICE, FLOW_OUT, DROPPED };
struct event {
	uint64_t time_ns, end_ns; /* end: of a slice; 0: an E says it */
	uint64_t key;             /* of a flow */
	uint32_t name, order;
	uint32_t plain; /* of a slice: its name without the detail */
	uint32_t thread;
	enum what what;
	uint64_t bind_key; /* of a slice: its flows of version 2 */
	bool flows_in, flows_out;
};
struct thread {
	uint32_t actor, name;
	uint32_t pid_text, tid_text; /* what stood in the place of a number; 0: a number did */
	uint64_t pid, tid;
};
struct end { /* of a flow of version 2: where a slice begins */
	uint64_t key, time_ns;
	size_t slice;
};
struct chrome {
	struct base_strtab *texts;
	struct event *event;
	size_t nr, capacity;
	struct thread *thread;
	size_t nr_threads, thread_capacity;
	struct base_map by_tid, process_names;
	uint64_t nr_folded; /* details that are not told apart */
	uint64_t nr_device; /* slices as PyTorch's profiler calls what a device did */
	uint64_t nr_other, nr_damaged, nr_flows, nr_slices, nr_unended;
	int64_t first_ns; /* the earliest time */
	bool failed, cut;
	bool own; /* of longpole's: process 0 is its critical path, which is to be found again */
	struct format_machines *machines;
};

static uint32_t chrome_import_text_of(struct chrome *c, const char *text)
{
	uint32_t id = 0;
	c->failed |= base_strtab_intern(c->texts, text, strlen(text), &id) != BASE_OK;
	return id;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Bare hexadecimal digits and dashes, as of UUIDs: they mean a number, too. */
static bool is_hexadecimal(const char *text)
{
	return *text && !text[strspn(text, "0123456789abcdefABCDEF-")];
}

/* An id's number; that of a text that says none is its hash. */
static uint64_t chrome_import_id_of(const json_t *v)
{
	uint64_t hash = 1, number = 0;
	if (format_json_number(v, &number) || !json_is_string(v))
		return number;
	const char *text = json_string_value(v);
	bool hex = is_hexadecimal(text);
	for (const char *p = text + (hex ? strspn(text, "0") : 0); *p; p++)
		hash = base_hash_u64(
			hash ^
			(unsigned char)(hex && *p >= 'A' && *p <= 'F' ? *p + 'a' - 'A' : *p));
	return *text ? hash : 0;
}

/* Of a process or thread: a text that says no number is its name, in its own case. */
static uint64_t name_or_number(struct chrome *c, const json_t *v, uint32_t *ret_text)
{
	uint64_t number = 0;
	*ret_text = 0;
	if (format_json_number(v, &number) || !json_is_string(v) || !json_string_length(v))
		return number;
	*ret_text = chrome_import_text_of(c, json_string_value(v));
	return base_hash_u64(*ret_text) | 1ull << 63; /* no kernel's number */
}

/* A flow's id may be of one process only ("local"), of all ("global"), or of those of one scope. */
static uint64_t chrome_import_flow_of(const json_t *e)
{
	const json_t *id2 = json_object_get(e, "id2"), *local = json_object_get(id2, "local"),
		     *global = json_object_get(id2, "global");
	if (local)
		return base_hash_u64(chrome_import_id_of(local)) ^
		       chrome_import_id_of(json_object_get(e, "pid"));
	return chrome_import_id_of(global ? global : json_object_get(e, "id"));
}

/* Microseconds, with a fraction that a whole product would lose. False: no time that a trace can
 * have. */
static bool chrome_import_ns_of(const json_t *v, int64_t *ret_ns)
{
	double us;
	if (!format_json_real(v, &us) || !(fabs(us) <= US_MAX))
		return false;
	*ret_ns = (int64_t)floor(us) * 1000 + llround((us - floor(us)) * 1000);
	return true;
}

static bool chrome_import_duration_of(const json_t *v, uint64_t *ret_ns)
{
	int64_t ns;
	if (!chrome_import_ns_of(v, &ns) || ns < 0)
		return false;
	*ret_ns = (uint64_t)ns;
	return true;
}

/* From the earliest time on: some programs count from when they were told to write, and so have
 * negative ones; others from 1970. */
static bool chrome_import_time_of(const struct chrome *c, const json_t *v, uint64_t *ret_ns)
{
	int64_t ns;
	if (!chrome_import_ns_of(v, &ns) || ns < c->first_ns)
		return false;
	*ret_ns = (uint64_t)(ns - c->first_ns);
	return true;
}

static uint32_t chrome_import_thread_of(struct chrome *c, const json_t *e)
{
	uint32_t pid_text, tid_text;
	uint64_t pid = name_or_number(c, json_object_get(e, "pid"), &pid_text), known;
	uint64_t tid = name_or_number(c, json_object_get(e, "tid"), &tid_text);
	if (base_map_get(&c->by_tid, pid, tid, &known))
		return (uint32_t)known;
	if (base_grow(&c->thread, &c->thread_capacity, c->nr_threads + 1, sizeof *c->thread) !=
			BASE_OK ||
		base_map_put(&c->by_tid, pid, tid, c->nr_threads) != BASE_OK) {
		c->failed = true;
		return UINT32_MAX;
	}
	BASE_ASSUME(c->thread != NULL);
	c->thread[c->nr_threads++] =
		(struct thread){.pid = pid, .tid = tid, .pid_text = pid_text, .tid_text = tid_text};
	return (uint32_t)c->nr_threads - 1;
}

static void chrome_import_add(struct chrome *c, struct event e)
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

static const char *chrome_import_text_in(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	return text ? text : "";
}

static void chrome_import_read_name(struct chrome *c, const json_t *e)
{
	const char *what = chrome_import_text_in(e, "name"),
		   *name = chrome_import_text_in(json_object_get(e, "args"), "name");
	uint32_t ignored;
	if (!strcmp(what, "process_name")) {
		uint64_t pid = name_or_number(c, json_object_get(e, "pid"), &ignored);
		c->failed |= base_map_put(&c->process_names, 0, pid,
				     chrome_import_text_of(c, name)) != BASE_OK;
	} else if (!strcmp(what, "thread_name")) {
		uint32_t thread = chrome_import_thread_of(c, e),
			 text = chrome_import_text_of(c, name);
		BASE_ASSUME(thread == UINT32_MAX || c->thread);
		if (thread != UINT32_MAX)
			c->thread[thread].name = text;
	}
}

static bool chrome_import_is_set(const json_t *v)
{
	uint64_t number;
	return json_is_true(v) || (format_json_number(v, &number) && number) ||
	       (json_is_string(v) && !strcmp(json_string_value(v), "true"));
}

/* Its name, which some programs write as a number. */
static uint32_t chrome_import_event_name(struct chrome *c, const json_t *e)
{
	const json_t *v = json_object_get(e, "name");
	char digits[24] = "";
	if (json_is_integer(v))
		snprintf(digits, sizeof digits, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	return chrome_import_text_of(c, *digits ? digits : chrome_import_text_in(e, "name"));
}

/* What a slice does, and to what: clang's -ftime-trace says the file or template in args.detail.
 * A slice that says nothing took its time all the same. */
static void chrome_import_name_slice(struct chrome *c, const json_t *e, struct event *slice)
{
	const char *name = base_strtab_get(c->texts, slice->name),
		   *detail = chrome_import_text_in(json_object_get(e, "args"), "detail");
	struct base_str both = {0};
	base_str_addf(&both, "%s%s%s", name, *name && *detail ? " " : "", detail);
	slice->plain = *name ? slice->name : chrome_import_text_of(c, "slice without a name");
	slice->name = both.length ? chrome_import_text_of(c, base_str_text(&both)) : slice->plain;
	c->failed |= both.failed;
	base_str_fini(&both);
}

/* A slice, its begin or end, or an end of a flow. */
static bool chrome_import_is_read(const json_t *e)
{
	const char *phase = chrome_import_text_in(e, "ph");
	return *phase && strchr("XBEstf", *phase);
}

static int64_t chrome_import_first_ns(const json_t *events)
{
	const json_t *e;
	size_t i;
	int64_t first_ns = INT64_MAX, ns;
	json_array_foreach(events, i, e)
	{
		if (chrome_import_is_read(e) &&
			chrome_import_ns_of(json_object_get(e, "ts"), &ns) && ns < first_ns)
			first_ns = ns;
	}
	return first_ns;
}

static bool chrome_import_is_device(const json_t *e)
{
	static const char *const category[] = {"kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime",
		"hip_runtime", "mtia_ccp_events"};
	const char *own = chrome_import_text_in(e, "cat");
	for (size_t i = 0; i < BASE_COUNT(category); i++)
		if (!strcmp(own, category[i]))
			return true;
	return false;
}

static void chrome_import_read_event(struct chrome *c, const json_t *e)
{
	const char *phase = chrome_import_text_in(e, "ph");
	struct event event = {0};
	uint64_t duration_ns = 0;
	if (*phase == 'M' && !(c->own && !chrome_import_id_of(json_object_get(e, "pid"))))
		chrome_import_read_name(c, e);
	if (*phase == 'M')
		return;
	if (c->own && !chrome_import_id_of(json_object_get(e, "pid")))
		return;
	c->nr_device += chrome_import_is_device(e);
	if (!chrome_import_is_read(e)) {
		c->nr_other++;
		return;
	}
	if (!chrome_import_time_of(c, json_object_get(e, "ts"), &event.time_ns) ||
		(*phase == 'X' &&
			!chrome_import_duration_of(json_object_get(e, "dur"), &duration_ns))) {
		c->nr_damaged++;
		return;
	}
	event.thread = chrome_import_thread_of(c, e);
	event.name = chrome_import_event_name(c, e);
	if (*phase == 'X' || *phase == 'B') {
		chrome_import_name_slice(c, e, &event);
		event.what = SLICE;
		event.end_ns = *phase == 'X' ? event.time_ns + duration_ns + !duration_ns : 0;
		event.flows_in = chrome_import_is_set(json_object_get(e, "flow_in"));
		event.flows_out = chrome_import_is_set(json_object_get(e, "flow_out"));
		if (event.flows_in || event.flows_out)
			event.bind_key = chrome_import_id_of(json_object_get(e, "bind_id"));
		c->nr_slices++;
		chrome_import_add(c, event);
		return;
	}
	if (*phase == 'E') {
		event.what = SLICE_END;
		chrome_import_add(c, event);
		return;
	}
	event.key = chrome_import_flow_of(e);
	c->nr_flows += *phase == 's';
	if (*phase != 's') { /* a step takes, and hands on */
		event.what = FLOW_IN;
		chrome_import_add(c, event);
	}
	if (*phase != 'f') {
		event.what = FLOW_OUT;
		chrome_import_add(c, event);
	}
}

/* ---- slices and their ends ------------------------------------------------------------------- */

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

/* ---- details --------------------------------------------------------------------------------- */

struct chrome_detail { /* one name with its detail */
	uint32_t name;
	uint64_t total_ns;
};

static int chrome_import_longer(const void *a, const void *b)
{
	const struct chrome_detail *x = a, *y = b;
	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* The time of each name with its detail. */
static void chrome_import_sum_details(
	struct chrome *c, struct chrome_detail **detail, size_t *nr, struct base_map *at)
{
	size_t capacity = 0;
	for (size_t i = 0; i < c->nr && !c->failed; i++) {
		const struct event *e = &c->event[i];
		uint64_t k = *nr;
		if (e->what != SLICE || e->name == e->plain)
			continue;
		if (!base_map_get(at, 0, e->name, &k)) {
			c->failed |=
				base_grow(detail, &capacity, *nr + 1, sizeof **detail) != BASE_OK ||
				base_map_put(at, 0, e->name, *nr) != BASE_OK;
			if (c->failed || !*detail)
				return;
			(*detail)[(*nr)++] = (struct chrome_detail){.name = e->name};
		}
		if (*detail)
			(*detail)[k].total_ns += e->end_ns - e->time_ns;
	}
}

/* Those that took longest are told apart. All others are their names alone, or thousands of
 * templates would each have a thousandth of the path, and nothing would stand out. */
static void chrome_import_fold_details(struct chrome *c)
{
	struct base_map at = {0};
	struct chrome_detail *detail = NULL;
	size_t nr = 0;
	chrome_import_sum_details(c, &detail, &nr, &at);
	base_map_fini(&at);
	if (!c->failed && nr > DETAILS_MAX) {
		qsort(detail, nr, sizeof *detail, chrome_import_longer);
		for (size_t i = DETAILS_MAX; i < nr; i++)
			c->failed |= base_map_put(&at, 0, detail[i].name, 1) != BASE_OK;
		c->nr_folded = nr - DETAILS_MAX;
		for (size_t i = 0; i < c->nr; i++) {
			uint64_t found;
			struct event *e = &c->event[i];
			if (e->what == SLICE && base_map_get(&at, 0, e->name, &found))
				e->name = e->plain;
		}
	}
	base_map_fini(&at);
	base_free(detail);
}

/* What nothing has ended lasts as long as the trace. */
static void close_unended(struct chrome *c)
{
	uint64_t last_ns = 0;
	for (size_t i = 0; i < c->nr; i++) {
		const struct event *e = &c->event[i];
		uint64_t end_ns =
			e->what == SLICE && e->end_ns != UINT64_MAX ? e->end_ns : e->time_ns;
		last_ns = end_ns > last_ns ? end_ns : last_ns;
	}
	for (size_t i = 0; i < c->nr; i++) {
		struct event *e = &c->event[i];
		if (e->what != SLICE || e->end_ns != UINT64_MAX)
			continue;
		e->end_ns = last_ns + (last_ns == e->time_ns);
		c->nr_unended++;
	}
}

/* ---- flows of version 2 ---------------------------------------------------------------------- */

static int chrome_import_by_key(const void *a, const void *b)
{
	const struct end *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->slice < y->slice ? -1 : x->slice > y->slice;
}

/* From slice to slice, as two events of their own with a key that no other flow has. */
static void add_bound(struct chrome *c, size_t from, size_t to)
{
	struct event out = c->event[from], in = c->event[to];
	uint64_t key = base_hash_u64(~c->nr_flows);
	out.what = FLOW_OUT;
	out.time_ns = out.end_ns < in.time_ns ? out.end_ns : in.time_ns;
	in.what = FLOW_IN;
	in.name = out.name; /* the queue's */
	out.key = in.key = key;
	out.flows_in = out.flows_out = in.flows_in = in.flows_out = false;
	chrome_import_add(c, out);
	chrome_import_add(c, in);
	c->nr_flows++;
}

/* Each slice that is flowed into, from the last one of its id that began before and flows out. */
static void bind_flows(struct chrome *c)
{
	struct end *end = NULL;
	size_t nr = 0, capacity = 0;
	for (size_t i = 0; i < c->nr && !c->failed; i++) {
		const struct event *e = &c->event[i];
		if (e->what != SLICE || !(e->flows_in || e->flows_out))
			continue;
		if (base_grow(&end, &capacity, nr + 1, sizeof *end) != BASE_OK)
			c->failed = true;
		else
			end[nr++] = (struct end){e->bind_key, e->time_ns, i};
	}
	if (nr)
		qsort(end, nr, sizeof *end, chrome_import_by_key);
	size_t from = SIZE_MAX;
	for (size_t i = 0; i < nr && !c->failed; i++) {
		if (i && end[i].key != end[i - 1].key)
			from = SIZE_MAX;
		if (c->event[end[i].slice].flows_in && from != SIZE_MAX)
			add_bound(c, from, end[i].slice);
		if (!c->failed && c->event[end[i].slice].flows_out)
			from = end[i].slice;
	}
	base_free(end);
}

/* ---- threads as machines --------------------------------------------------------------------- */

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

static void chrome_import_say(struct machine *m, uint64_t time_ns)
{
	const char *text = m->shown ? base_strtab_get(m->c->texts, m->shown) : "between slices";
	format_machines_add(m->c->machines, time_ns, m->t->actor, FORMAT_MACHINE_state,
		format_machines_state(m->c->machines, text), 0);
	m->since_ns = time_ns;
}

static void chrome_import_show(struct machine *m, uint64_t time_ns)
{
	uint32_t name = m->nr_open ? m->open[m->nr_open - 1].name : 0;
	if (name == m->shown)
		return;
	m->shown = name;
	chrome_import_say(m, time_ns);
}

/* Slices that have ended by then, innermost first. */
static void close_until(struct machine *m, uint64_t time_ns)
{
	while (m->nr_open && m->open[m->nr_open - 1].end_ns <= time_ns) {
		uint64_t end_ns = m->open[--m->nr_open].end_ns;
		chrome_import_show(m, end_ns > m->since_ns ? end_ns : m->since_ns);
	}
}

static uint32_t chrome_import_queue_of(struct chrome *c, uint32_t name)
{
	const char *text = base_strtab_get(c->texts, name);
	return format_machines_queue(c->machines, *text ? text : "flow");
}

static void take_flow(struct machine *m, const struct event *e)
{
	uint32_t queue = chrome_import_queue_of(m->c, e->name);
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
	chrome_import_say(m, e->time_ns);
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
			chrome_import_queue_of(m->c, e->name), e->key);
		m->since_ns = e->time_ns; /* the giver does not wait then */
	} else if (e->what == SLICE && m->nr_open < DEPTH_MAX) {
		m->open[m->nr_open].name = e->name;
		m->open[m->nr_open++].end_ns = e->end_ns;
		chrome_import_show(m, e->time_ns);
	}
}

static void chrome_import_convert(struct chrome *c)
{
	for (size_t i = 0; i < c->nr_threads; i++) {
		struct thread *t = &c->thread[i];
		uint64_t process;
		struct base_str name = {0};
		if (t->name || t->tid_text)
			base_str_add(
				&name, base_strtab_get(c->texts, t->name ? t->name : t->tid_text));
		else
			base_str_addf(&name,
				t->tid > UINT64_MAX - UINT32_MAX ? "thread %" PRId64
								 : "thread %" PRIu64,
				t->tid);
		if (!base_map_get(&c->process_names, 0, t->pid, &process))
			process = t->pid_text;
		t->actor = format_machines_actor(c->machines,
			base_strtab_get(c->texts, (uint32_t)process), base_str_text(&name), i + 1);
		c->failed |= name.failed;
		base_str_fini(&name);
	}
	if (!c->nr)
		return;
	match_ends(c);
	close_unended(c);
	chrome_import_fold_details(c);
	bind_flows(c);
	if (c->failed)
		return;
	qsort(c->event, c->nr, sizeof *c->event, by_thread);
	uint64_t origin_ns = UINT64_MAX;
	for (size_t i = 0; i < c->nr; i++)
		origin_ns = c->event[i].time_ns < origin_ns ? c->event[i].time_ns : origin_ns;
	for (size_t i = 0, end; i < c->nr; i = end) {
		struct machine m = {.c = c, .t = &c->thread[c->event[i].thread]};
		chrome_import_say(&m, origin_ns);
		for (end = i; end < c->nr && c->event[end].thread == c->event[i].thread; end++)
			convert_event(&m, &c->event[end]);
		close_until(&m, UINT64_MAX - 1);
	}
}

/* Bytes up to the end of the last whole event, and how deep the list of events is: 1 an array, 2
 * "traceEvents" of an object, whatever stands before it; 0: none. */
static size_t whole_events(const char *text, size_t length, unsigned *ret_depth)
{
	static const char name[] = "\"traceEvents\"";
	size_t end = 0;
	unsigned depth = 0, list = 0;
	bool quoted = false, named = false;
	for (size_t i = 0; i < length; i++) {
		char b = text[i];
		if (b == '\\' && quoted)
			i++;
		else if (b == '"') {
			quoted = !quoted;
			if (quoted && depth == 1)
				named = length - i >= sizeof name &&
					!memcmp(text + i, name, sizeof name - 1);
		} else if (quoted)
			continue;
		else if (b == '[' || b == '{') {
			depth++;
			if (b == '[' && !list && (depth == 1 || (depth == 2 && named)))
				list = depth;
		} else if (b == ']' || b == '}') {
			depth -= depth > 0;
			if (b == '}' && list && depth == list)
				end = i + 1;
			if (b == ']' && depth < list)
				break;
		}
	}
	*ret_depth = list;
	return end;
}

/* A program that was killed leaves a list without its end, which the format's description allows.
 */
static json_t *load_cut(struct chrome *c, const char *text, size_t length)
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
		j = json_loadb(base_str_text(&whole), whole.length, JSON_ALLOW_NUL, &why);
	base_str_fini(&whole);
	c->cut = j != NULL;
	return j;
}

static json_t *chrome_import_load(
	struct chrome *c, const char *text, size_t length, json_error_t *why)
{
	struct base_str mended = {0};
	json_t *j = json_loadb(text, length, JSON_ALLOW_NUL, why);
	if (j)
		return j;
	json_error_t ignored; /* what is said of a file is what is wrong in the file */
	format_json_mend(&mended, text, length);
	c->failed |= mended.failed;
	if (!c->failed)
		j = json_loadb(base_str_text(&mended), mended.length, JSON_ALLOW_NUL, &ignored);
	if (!j && !c->failed)
		j = load_cut(c, base_str_text(&mended), mended.length);
	base_str_fini(&mended);
	return j;
}

static enum base_status read_json(
	struct chrome *c, const char *text, size_t length, struct base_err *err)
{
	json_error_t why;
	json_t *j = chrome_import_load(c, text, length, &why);
	const json_t *events = json_is_array(j) ? j : json_object_get(j, "traceEvents"), *e;
	size_t i;
	if (!json_is_array(events)) {
		enum base_status s = base_fail(err, BASE_ERR_FOREIGN,
			j ? "has no traceEvents" : "is no JSON: line %d: %s", why.line, why.text);
		json_decref(j);
		return s;
	}
	c->own = !strncmp(
		chrome_import_text_in(json_object_get(j, "otherData"), "tool"), "longpole ", 9);
	c->first_ns = chrome_import_first_ns(events);
	json_array_foreach(events, i, e)
	{
		if (json_is_object(e))
			chrome_import_read_event(c, e);
		else
			c->nr_damaged++;
	}
	json_decref(j);
	if (!c->nr && !c->failed && c->nr_damaged + c->nr_other)
		return base_fail(err, BASE_ERR_FOREIGN,
			"none of its events is a slice or a flow with a sensible time");
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
		chrome_import_convert(&c);
	if (s == BASE_OK && c.failed)
		s = base_fail(err, BASE_ERR_NOMEM, "out of memory for slices");
	if (s == BASE_OK)
		s = format_machines_write(c.machines, from->name, to, err);
	if (s == BASE_OK) {
		base_str_addf(notes,
			"%llu {slice|slices} and %llu {flow|flows} of %zu {thread|threads}\n",
			(unsigned long long)c.nr_slices, (unsigned long long)c.nr_flows,
			c.nr_threads);
		format_note_count(notes, c.nr_device,
			"%s {event is a call or kernel|events are calls and kernels} of an "
			"accelerator: 'longpole "
			"import pytorch' knows what they wait for");
		if (!c.nr_flows)
			base_str_add(notes,
				"there are no flows in it: nothing says who waited for whom\n");
		format_note_count(notes, c.nr_other,
			"%s {event is|events are} neither slices nor flows: left out");
		format_note_count(notes, c.nr_folded,
			"%s {detail that took little is not told apart from its slice's "
			"name|details that took little are not told apart from their slices' "
			"names}");
		format_note_count(notes, c.nr_unended,
			"%s {slice has|slices have} no end: they last until the trace ends");
		format_note_count(notes, c.nr_damaged,
			"%s {event has|events have} no sensible time: left out");
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
