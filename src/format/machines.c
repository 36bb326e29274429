/* SPDX-License-Identifier: Apache-2.0 */
/* machines.c - state machines of spans and slices, sorted and written as annotations. */
#include "format/machines.h"

#include "base/sort.h"

#define LONGPOLE_DISABLE /* for the flags only */
#include "longpole/annotate.h"

#include <stdlib.h>
#include <string.h>

enum { STREAM = 1 };
#define FORMAT_NOBODY UINT32_MAX

struct verb {
	uint64_t time_ns, key;
	uint32_t actor, id;
	uint32_t order, verb;
};
struct actor {
	uint32_t system, name;
	uint64_t instance;
};
struct format_machines {
	struct verb *verb;
	struct trace_work *work;
	size_t nr_works, work_capacity;
	struct trace_transfer *transfer;
	size_t nr_transfers, transfer_capacity;
	struct trace_meet *meet;
	size_t nr_meets, meet_capacity;
	size_t nr, capacity;
	struct base_strtab *texts;              /* ids are the trace's strings */
	struct base_map actors, states, queues; /* -> id */
	struct actor *actor;
	uint32_t *state, *queue; /* texts, by id */
	size_t nr_actors, actor_capacity, nr_states, state_capacity, nr_queues, queue_capacity;
	bool failed, too_many;
};

struct format_machines *format_machines_new(void)
{
	struct format_machines *m = base_alloc(sizeof *m);
	if (m)
		m->texts = base_strtab_new();
	return m && !m->texts ? format_machines_free(m) : m;
}

struct format_machines *format_machines_free(struct format_machines *m)
{
	if (!m)
		return NULL;
	base_free(m->verb);
	base_free(m->work);
	base_free(m->transfer);
	base_free(m->meet);
	base_free(m->actor);
	base_free(m->state);
	base_free(m->queue);
	base_strtab_free(m->texts);
	base_map_fini(&m->actors);
	base_map_fini(&m->states);
	base_map_fini(&m->queues);
	base_free(m);
	return NULL;
}

static uint32_t text_of(struct format_machines *m, const char *text)
{
	struct base_str clean = {0};
	uint32_t id = 0;
	format_clean_add(&clean, *text ? text : "?");
	m->failed |= clean.failed || base_strtab_intern(m->texts, base_str_text(&clean),
					     clean.length, &id) != BASE_OK;
	base_str_fini(&clean);
	return id;
}

static uint32_t named(struct format_machines *m, struct base_map *map, const char *name,
	uint32_t **table, size_t *nr, size_t *capacity)
{
	uint32_t text = text_of(m, name);
	uint64_t known;
	if (base_map_get(map, 0, text, &known))
		return (uint32_t)known;
	if (base_grow(table, capacity, *nr + 1, sizeof **table) != BASE_OK ||
		base_map_put(map, 0, text, *nr + 1) != BASE_OK) {
		m->failed = true;
		return 0;
	}
	(*table)[(*nr)++] = text;
	return (uint32_t)*nr;
}

uint32_t format_machines_state(struct format_machines *m, const char *name)
{
	return named(m, &m->states, name, &m->state, &m->nr_states, &m->state_capacity);
}

uint32_t format_machines_queue(struct format_machines *m, const char *name)
{
	return named(m, &m->queues, name, &m->queue, &m->nr_queues, &m->queue_capacity);
}

uint32_t format_machines_actor(
	struct format_machines *m, const char *system, const char *name, uint64_t instance)
{
	struct actor a = {.system = *system ? text_of(m, system) : 0,
		.name = text_of(m, name),
		.instance = instance};
	uint64_t hi = (uint64_t)a.system << 32 | a.name, known;
	if (base_map_get(&m->actors, hi, instance, &known))
		return (uint32_t)known;
	if (base_grow(&m->actor, &m->actor_capacity, m->nr_actors + 1, sizeof *m->actor) !=
			BASE_OK ||
		base_map_put(&m->actors, hi, instance, m->nr_actors + 1) != BASE_OK) {
		m->failed = true;
		return 0;
	}
	m->actor[m->nr_actors++] = a;
	return (uint32_t)m->nr_actors;
}

void format_machines_add(struct format_machines *m, uint64_t time_ns, uint32_t actor,
	enum format_machine_verb verb, uint32_t id, uint64_t key)
{
	m->too_many |= m->nr >= FORMAT_MACHINES_VERBS_MAX;
	if (m->too_many || m->failed)
		return;
	if (base_grow(&m->verb, &m->capacity, m->nr + 1, sizeof *m->verb) != BASE_OK) {
		m->failed = true;
		return;
	}
	m->verb[m->nr] = (struct verb){.time_ns = time_ns,
		.key = key,
		.actor = actor,
		.id = id,
		.order = (uint32_t)m->nr,
		.verb = verb};
	m->nr++;
}

void format_machines_work(struct format_machines *m, enum trace_work_type type, uint32_t state,
	uint32_t queue, const char *name, const char *outer)
{
	struct trace_work w = {.work = (uint32_t)m->nr_works + 1,
		.type = type,
		.state = state,
		.object = queue,
		.name = text_of(m, name),
		.operator= * outer ? text_of(m, outer) : 0 };
	if (base_grow(&m->work, &m->work_capacity, m->nr_works + 1, sizeof *m->work) != BASE_OK)
		m->failed = true;
	else
		m->work[m->nr_works++] = w;
}

void format_machines_step(
	struct format_machines *m, uint64_t time_ns, bool begins, const char *name, uint64_t rank)
{
	format_machines_add(m, time_ns, FORMAT_NOBODY,
		begins ? FORMAT_MACHINE_step_begin : FORMAT_MACHINE_step_end, text_of(m, name),
		rank);
}

void format_machines_transfer(struct format_machines *m, uint32_t state, uint64_t nr_bytes,
	uint64_t nr_ranks, const char *operation)
{
	struct trace_transfer t = {.state = state,
		.bytes = nr_bytes,
		.ranks = nr_ranks,
		.name = text_of(m, operation)};
	if (base_grow(&m->transfer, &m->transfer_capacity, m->nr_transfers + 1,
		    sizeof *m->transfer) != BASE_OK)
		m->failed = true;
	else
		m->transfer[m->nr_transfers++] = t;
}

void format_machines_meet(
	struct format_machines *m, uint64_t time_ns, const struct format_meeting *meeting)
{
	struct trace_meet t = {.name = text_of(m, meeting->name),
		.group = text_of(m, meeting->group),
		.rank = meeting->rank,
		.last = meeting->last,
		.waited_ns = meeting->waited_ns};
	if (base_grow(&m->meet, &m->meet_capacity, m->nr_meets + 1, sizeof *m->meet) != BASE_OK) {
		m->failed = true;
		return;
	}
	m->meet[m->nr_meets++] = t;
	format_machines_add(
		m, time_ns, FORMAT_NOBODY, FORMAT_MACHINE_meet, (uint32_t)m->nr_meets - 1, 0);
}

static int machines_by_time(const void *a, const void *b)
{
	const struct verb *x = a, *y = b;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct output {
	struct trace_writer *to;
	struct base_err *err;
	enum base_status status;
};

static void machines_put(struct output *o, struct trace_record r)
{
	if (o->status == BASE_OK)
		o->status = trace_writer_put(o->to, &r, o->err);
}

#define PUT(o, at, by, what, ...)                                                                  \
	machines_put(o, (struct trace_record){.time_ns = (at),                                     \
				.stream = (by),                                                    \
				.kind = TRACE_##what,                                              \
				.u.what = {__VA_ARGS__}})

static void define(struct format_machines *m, struct output *o, const char *program)
{
	uint32_t name = text_of(m, program);
	for (uint32_t i = 1; i < base_strtab_count(m->texts); i++) {
		const char *text = base_strtab_get(m->texts, i);
		PUT(o, 0, 0, string, .string = i, .text = {text, (uint32_t)strlen(text)});
	}
	PUT(o, 0, 0, process, .process = 1, .name = name, .command = name);
	PUT(o, 0, 0, stream, .stream = STREAM, .process = 1, .name = name);
	for (uint32_t i = 0; i < m->nr_actors; i++)
		PUT(o, 0, 0, actor, .actor = i + 1, .system = m->actor[i].system,
			.name = m->actor[i].name, .instance = m->actor[i].instance);
	for (uint32_t i = 0; i < m->nr_states; i++)
		PUT(o, 0, 0, state, .state = i + 1, .name = m->state[i]);
	for (uint32_t i = 0; i < m->nr_queues; i++)
		PUT(o, 0, 0, object, .object = i + 1, .type = TRACE_OBJECT_queue,
			.name = m->queue[i]);
	for (size_t i = 0; i < m->nr_works; i++)
		machines_put(o, (struct trace_record){.kind = TRACE_work, .u.work = m->work[i]});
	for (size_t i = 0; i < m->nr_transfers; i++)
		machines_put(o, (struct trace_record){.stream = STREAM,
					.kind = TRACE_transfer,
					.u.transfer = m->transfer[i]});
}

static void write_verb(
	const struct format_machines *m, struct output *o, const struct verb *v, uint64_t at)
{
	switch ((enum format_machine_verb)v->verb) {
	case FORMAT_MACHINE_state:
		PUT(o, at, STREAM, note_state, .state = v->id);
		break;
	case FORMAT_MACHINE_put:
		PUT(o, at, STREAM, note_put_item, .object = v->id, .n = 1, .key = v->key);
		break;
	case FORMAT_MACHINE_take:
		PUT(o, at, STREAM, note_take_item, .object = v->id, .n = 1, .key = v->key);
		break;
	case FORMAT_MACHINE_wait:
		PUT(o, at, STREAM, note_wait_empty, .object = v->id, .n = 1);
		break;
	case FORMAT_MACHINE_identify:
		PUT(o, at, STREAM, note_identify, .connection = v->key);
		break;
	case FORMAT_MACHINE_step_begin:
		PUT(o, at, STREAM, step_begin, .name = v->id, .rank = v->key);
		break;
	case FORMAT_MACHINE_step_end:
		PUT(o, at, STREAM, step_end, .name = v->id, .rank = v->key);
		break;
	case FORMAT_MACHINE_meet:
		machines_put(o, (struct trace_record){.time_ns = at,
					.stream = STREAM,
					.kind = TRACE_meet,
					.u.meet = m->meet[v->id]});
		break;
	}
}

/* What happens at one time, so that nobody takes what is only put after it: a machine's own verbs
 * stay in their order, and a take that finds nothing waits, with what its machine does after it,
 * for its put. Verbs are numbered from 1 here; 0 is none. */
struct moment {
	const struct format_machines *m;
	struct base_map units;   /* (queue, key) -> how many are there */
	struct base_map awaited; /* (queue, key) -> the moment's number, the last take that waits */
	uint32_t *first, *last;  /* by machine: its verbs that wait */
	uint32_t *ready;         /* by machine: what goes on after it */
	uint32_t *next, *before; /* by verb: its machine's next; the next waiter for the same */
	uint32_t number, acting, now_ready;
	uint64_t origin_ns;
};

static void moment_remember(
	struct output *o, struct base_map *map, const struct verb *v, uint64_t value)
{
	enum base_status s = BASE_OK;
	if (value)
		s = base_map_put(map, v->id, v->key, value);
	else
		(void)base_map_remove(map, v->id, v->key);
	if (s != BASE_OK && o->status == BASE_OK)
		o->status = base_fail(o->err, s, "out of memory for queues");
}

static uint32_t moment_awaits(const struct moment *w, const struct verb *v)
{
	uint64_t at = 0;
	(void)base_map_get(&w->awaited, v->id, v->key, &at);
	return at >> 32 == w->number ? (uint32_t)at : 0;
}

static void moment_await(struct moment *w, struct output *o, const struct verb *v, uint32_t k)
{
	w->before[k] = moment_awaits(w, &v[k - 1]);
	moment_remember(o, &w->awaited, &v[k - 1], (uint64_t)w->number << 32 | k);
}

/* One that waits for what was put goes on. */
static void moment_wake(
	struct moment *w, struct output *o, const struct verb *v, const struct verb *put)
{
	uint32_t k = moment_awaits(w, put), left;
	if (!k)
		return;
	while (k && !v[k - 1].actor)
		k = w->before[k];
	left = k ? w->before[k] : 0;
	moment_remember(o, &w->awaited, put, left ? (uint64_t)w->number << 32 | left : 0);
	if (!k)
		return;
	w->ready[v[k - 1].actor] = w->now_ready;
	w->now_ready = v[k - 1].actor;
}

/* False: it would take what is not there, and need not. What is written gets the actor 0. */
static bool moment_write(struct moment *w, struct output *o, struct verb *v, uint32_t k, bool must)
{
	struct verb *one = &v[k - 1];
	uint64_t nr = 0;
	(void)base_map_get(&w->units, one->id, one->key, &nr);
	if (one->verb == FORMAT_MACHINE_take && !nr && !must)
		return false;
	if (one->actor != FORMAT_NOBODY && one->actor != w->acting) {
		PUT(o, one->time_ns - w->origin_ns, STREAM, note_act, .actor = one->actor);
		w->acting = one->actor;
	}
	write_verb(w->m, o, one, one->time_ns - w->origin_ns);
	one->actor = 0;
	if (one->verb == FORMAT_MACHINE_put) {
		moment_remember(o, &w->units, one, nr + 1);
		moment_wake(w, o, v, one);
	} else if (one->verb == FORMAT_MACHINE_take && nr) {
		moment_remember(o, &w->units, one, nr - 1);
	}
	return true;
}

/* All that can go on do, and those that they let go on. */
static void moment_go_on(struct moment *w, struct output *o, struct verb *v)
{
	while (w->now_ready && o->status == BASE_OK) {
		uint32_t actor = w->now_ready, k;
		w->now_ready = w->ready[actor];
		while ((k = w->first[actor]) && moment_write(w, o, v, k, false))
			w->first[actor] = w->next[k];
		if (k)
			moment_await(w, o, v, k);
	}
}

/* Verbs 1 to nr have one time. */
static void write_moment(struct moment *w, struct output *o, struct verb *v, uint32_t nr)
{
	w->number++;
	for (uint32_t k = 1; k <= nr && o->status == BASE_OK; k++) {
		const uint32_t actor = v[k - 1].actor;
		w->next[k] = 0;
		if (actor != FORMAT_NOBODY && w->first[actor]) {
			w->next[w->last[actor]] = k;
			w->last[actor] = k;
		} else if (!moment_write(w, o, v, k, actor == FORMAT_NOBODY)) {
			w->first[actor] = w->last[actor] = k;
			moment_await(w, o, v, k);
		}
		moment_go_on(w, o, v);
	}
	for (uint32_t k = 1; k <= nr && o->status == BASE_OK; k++) {
		const uint32_t actor = v[k - 1].actor;
		if (!actor)
			continue;
		moment_write(w, o, v, k, true); /* nobody can: the first must */
		w->first[actor] = w->next[k];
		w->ready[actor] = w->now_ready;
		w->now_ready = actor;
		moment_go_on(w, o, v);
	}
}

static uint32_t machines_moment_end(const struct format_machines *m, uint32_t from)
{
	uint32_t end = from + 1;
	while (end < m->nr && m->verb[end].time_ns == m->verb[from].time_ns)
		end++;
	return end;
}

static bool moment_init(struct moment *w, const struct format_machines *m)
{
	size_t longest = 0;
	for (uint32_t i = 0, end; i < m->nr; i = end) {
		end = machines_moment_end(m, i);
		longest = end - i > longest ? end - i : longest;
	}
	w->origin_ns = m->verb[0].time_ns;
	w->first = base_alloc((m->nr_actors + 1) * sizeof *w->first);
	w->last = base_alloc((m->nr_actors + 1) * sizeof *w->last);
	w->ready = base_alloc((m->nr_actors + 1) * sizeof *w->ready);
	w->next = base_alloc((longest + 1) * sizeof *w->next);
	w->before = base_alloc((longest + 1) * sizeof *w->before);
	return w->first && w->last && w->ready && w->next && w->before;
}

static void moment_fini(struct moment *w)
{
	base_map_fini(&w->units);
	base_map_fini(&w->awaited);
	base_free(w->first);
	base_free(w->last);
	base_free(w->ready);
	base_free(w->next);
	base_free(w->before);
}

enum base_status format_machines_write(struct format_machines *m, const char *program,
	struct trace_writer *to, struct base_err *err)
{
	struct output o = {.to = to, .err = err};
	if (m->too_many)
		return base_fail(err, BASE_ERR_LIMIT, "more than %d events: import a shorter part",
			FORMAT_MACHINES_VERBS_MAX);
	if (!m->failed && !m->nr)
		return base_fail(err, BASE_ERR_FOREIGN, "there is no event in it");
	define(m, &o, program);
	struct moment w = {.m = m};
	bool ready = !m->failed;
	if (ready) {
		/* (each machine's are a run) */
		base_sort_runs(m->verb, m->nr, sizeof *m->verb, machines_by_time);
		ready = moment_init(&w, m);
	}
	if (!ready) {
		moment_fini(&w);
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for events");
	}
	for (uint32_t i = 0, end; i < m->nr && o.status == BASE_OK; i = end) {
		end = machines_moment_end(m, i);
		write_moment(&w, &o, &m->verb[i], end - i);
	}
	moment_fini(&w);
	return o.status;
}

enum base_status format_read_all(
	const struct format_source *from, char **ret, size_t *ret_length, struct base_err *err)
{
	if (from->size_bytes > FORMAT_JSON_BYTES_MAX)
		return base_fail(err, BASE_ERR_LIMIT,
			"%llu {byte|bytes} of JSON are more than the %d that are read",
			(unsigned long long)from->size_bytes, FORMAT_JSON_BYTES_MAX);
	size_t length = (size_t)from->size_bytes;
	char *text = base_alloc(length + 1);
	if (!text)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for %zu {byte|bytes}", length);
	enum base_status s = length ? from->read(from->ctx, 0, text, length, err) : BASE_OK;
	if (s != BASE_OK) {
		base_free(text);
		return s;
	}
	*ret = text;
	*ret_length = length;
	return BASE_OK;
}
