/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - what states, actors and queues are called. Made once, after the run; texts live in the
 * model's arena. */
#include "model/model_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *model_keep_text(struct model *m, struct base_str *s)
{
	char *copy = s->failed ? NULL : base_arena_strndup(m->arena, base_str_text(s), s->length);
	base_str_fini(s);
	return copy ? copy : "?";
}

/* ---- objects --------------------------------------------------------------------------------- */

static const char *io_text(uint64_t op)
{
	static const char *const text[] = {
#define X(name, t) t,
		TRACE_IO_OPS(X)
#undef X
	};
	return op < TRACE_IO_NR ? text[op] : "call";
}

static void users_key(const struct lock_class *c, uint64_t *hi, uint64_t *lo)
{
	*hi = (uint64_t)c->type << 32 | (c->users.more[0] ? 2u : 0) | c->users.more[1];
	*lo = (uint64_t)c->users.role[0] << 32 | c->users.role[1];
}

bool model_has_name(const struct model *m, uint32_t name)
{
	const char *text = trace_text_of(m->defs, name);
	return *text && strcmp(text, "unix - -") != 0;
}

static bool is_of_users(const struct model *m, const struct lock_class *c)
{
	return !model_has_name(m, c->name) && !c->text && (c->users.role[0] || c->users.role[1]);
}

/* How many pipes and sockets have the same users: they need their numbers. */
static enum base_status count_users(struct model *m)
{
	base_map_fini(&m->naming.alike);
	for (size_t i = 0; i < m->made.nr_classes; i++) {
		uint64_t hi, lo, n = 0;
		if (!is_of_users(m, &m->made.class_[i]))
			continue;
		users_key(&m->made.class_[i], &hi, &lo);
		base_map_get(&m->naming.alike, hi, lo, &n);
		if (base_map_put(&m->naming.alike, hi, lo, n + 1) != BASE_OK)
			return base_fail(m->err, BASE_ERR_NOMEM, "out of memory for names");
	}
	return BASE_OK;
}

static bool has_its_users_alone(const struct model *m, const struct lock_class *c)
{
	uint64_t hi, lo, n = 0;
	users_key(c, &hi, &lo);
	return is_of_users(m, c) && base_map_get(&m->naming.alike, hi, lo, &n) && n == 1;
}

/* " from tar to gzip", " between server and client" */
static void add_users(const struct model *m, struct base_str *s, const struct lock_class *c)
{
	static const char *const word[][2] = {{" from ", " to "}, {" between ", " and "}};
	const struct class_users *u = &c->users;
	for (unsigned i = 0; i < 2; i++) {
		if (!u->role[i] || u->role[i] > m->made.nr_roles)
			continue;
		bool alone = !u->role[1] && c->type == TRACE_OBJECT_socket;
		base_str_add(s, alone ? " of " : word[c->type == TRACE_OBJECT_socket][i]);
		base_str_add(s, m->made.role[u->role[i] - 1].name
					? m->made.role[u->role[i] - 1].name
					: "?");
		if (u->more[i])
			base_str_add(s, " and others");
	}
}

/* "mutex counter_lock"; nameless ones are told by who first used them. */
void model_add_class(struct model *m, struct base_str *s, uint32_t class_ix)
{
	const struct lock_class *c = &m->made.class_[class_ix];
	if (c->text) {
		base_str_add(s, c->text);
		return;
	}
	base_str_add(s, trace_object_type_text(c->type));
	if (model_has_name(m, c->name)) {
		base_str_addf(s, " %s", trace_text_of(m->defs, c->name));
		return;
	}
	const struct trace_object *def =
		&m->defs->objects[c->object < m->nr_objects ? c->object : 0];
	switch (c->type) {
	case TRACE_OBJECT_pipe:
	case TRACE_OBJECT_socket:
		if (!has_its_users_alone(m, c))
			base_str_addf(s, " %llu", (unsigned long long)def->address);
		add_users(m, s, c);
		break;
	case TRACE_OBJECT_eventfd:
		base_str_addf(s, " %llu", (unsigned long long)def->address);
		break;
	default:
		if (c->site)
			base_str_addf(s, " of %s", model_site_text(m, c->site));
		else
			base_str_addf(s, " 0x%llx", (unsigned long long)def->address);
	}
}

/* ---- states ---------------------------------------------------------------------------------- */

enum { FEW_SAMPLES = 5 };

/* The function that at least half of the samples are in, else the two that have half together;
 * returns how many, 0: none. */
static unsigned main_functions(const struct function_list *l)
{
	const struct model_function_share *f = l->function;
	if (l->nr_samples < FEW_SAMPLES || !*f[0].function)
		return 0;
	if (f[0].nr_samples * 2 >= l->nr_samples)
		return 1;
	return l->nr >= 2 && *f[1].function &&
			       (f[0].nr_samples + f[1].nr_samples) * 2 >= l->nr_samples
		       ? 2
		       : 0;
}

static uint64_t samples_in(const struct function_list *l, const struct model_function_share *f)
{
	for (size_t i = 0; i < l->nr; i++)
		if (!strcmp(l->function[i].function, f->function) &&
			!strcmp(l->function[i].where, f->where))
			return l->function[i].nr_samples;
	return 0;
}

/* Does its thread surely do something else there: are its main functions less than a quarter as
 * much of the other threads' samples as of its own? (Two processes of one program that play
 * ping-pong. Not two workers with other data: they only have other shares of the same.) */
static bool differs(const struct function_list *own, const struct function_list *pool)
{
	unsigned nr = main_functions(own);
	uint64_t nr_others = pool->nr_samples - own->nr_samples, in_own = 0, in_others = 0;
	if (!nr || own->nr_samples < MODEL_ENOUGH_SAMPLES || nr_others < MODEL_ENOUGH_SAMPLES)
		return false;
	for (unsigned k = 0; k < nr; k++) {
		uint64_t seen = samples_in(own, &own->function[k]);
		in_own += seen;
		in_others += samples_in(pool, &own->function[k]) - seen;
	}
	return 4 * in_others * own->nr_samples < in_own * nr_others;
}

/* What all threads of the role run there names it, so that equal threads have equal names. Returns
 * the number of functions; 0: none. */
static unsigned naming_functions(
	const struct model *m, const struct state_info *st, const struct model_function_share **ret)
{
	uint64_t pool;
	if (!base_map_get(&m->sampled.pools, st->role, st->pub.site, &pool))
		return 0;
	const struct function_list *l = &m->sampled.pool[pool];
	if (differs(&st->own, l))
		l = &st->own;
	*ret = l->function;
	return main_functions(l);
}

static bool add_main_functions(
	const struct model *m, struct base_str *s, const struct state_info *st)
{
	const struct model_function_share *f = NULL;
	unsigned nr = naming_functions(m, st, &f);
	for (unsigned i = 0; i < nr; i++)
		base_str_addf(s, "%s%s", i ? " and " : "running ", f[i].function);
	return nr;
}

/* Samples say that it runs elsewhere: `function` only made the last call that was recorded. */
static bool runs_elsewhere(const struct model *m, const struct state_info *st, const char *function)
{
	const uint64_t least = 20; /* one in so many is no run of it */
	uint64_t pool, nr = 0;
	if (!base_map_get(&m->sampled.pools, st->role, st->pub.site, &pool) ||
		m->sampled.pool[pool].nr_samples < FEW_SAMPLES)
		return false;
	for (size_t i = 0; i < m->sampled.pool[pool].nr; i++)
		if (!strcmp(m->sampled.pool[pool].function[i].function, function))
			nr += m->sampled.pool[pool].function[i].nr_samples;
	return nr * least < m->sampled.pool[pool].nr_samples;
}

static void add_annotated(const struct model *m, struct base_str *s, const struct state_info *st)
{
	/* role = machine's name string, class = state's name string: see rules_note.c */
	if (st->aux == 1)
		base_str_addf(s, "%s: ", trace_text_of(m->defs, st->role));
	base_str_add(s, st->class_ix ? trace_text_of(m->defs, st->class_ix) : "begun");
}

/* ---- files ----------------------------------------------------------------------------------- */

enum { FILES_NAMED = 8 }; /* of one place: a tar or a compiler reads thousands, and none matters */

static bool is_of_file(const struct model *m, const struct state_info *st)
{
	return st->pub.kind == MODEL_STATE_io && st->class_ix < m->made.nr_classes &&
	       m->made.class_[st->class_ix].type == TRACE_OBJECT_file;
}

static uint64_t place_key(struct model *m, const struct state_info *st)
{
	uint64_t key = 0;
	for (const char *c = model_site_text(m, st->pub.site); *c; c++)
		key = base_hash_u64(key + (unsigned char)*c);
	return key;
}

/* By the place's text: equal processes have places of their own. */
static enum base_status count_files(struct model *m)
{
	base_map_fini(&m->naming.files);
	for (uint32_t i = 0; i < m->made.nr_states; i++) {
		const struct state_info *st = &m->made.state[i];
		uint64_t n = 0, key;
		if (!is_of_file(m, st))
			continue;
		key = place_key(m, st);
		base_map_get(&m->naming.files, key, st->aux, &n);
		if (base_map_put(&m->naming.files, key, st->aux, n + 1) != BASE_OK)
			return base_fail(m->err, BASE_ERR_NOMEM, "out of memory for names");
	}
	return BASE_OK;
}

static bool is_of_many_files(struct model *m, const struct state_info *st)
{
	uint64_t n = 0;
	return is_of_file(m, st) && base_map_get(&m->naming.files, place_key(m, st), st->aux, &n) &&
	       n > FILES_NAMED;
}

/* However many there are: who asks for one of them finds it. */
static void name_file(struct model *m, struct state_info *st)
{
	struct base_str of = {0}, on = {0};
	if (!is_of_file(m, st))
		return;
	const struct lock_class *c = &m->made.class_[st->class_ix];
	base_str_addf(&of, "%s of ", io_text(st->aux));
	model_add_class(m, &of, st->class_ix);
	st->pub.of_file = model_keep_text(m, &of);
	if (!c->name)
		return;
	base_str_addf(&on, "%s %s", io_text(st->aux), trace_text_of(m->defs, c->name));
	st->pub.on_file = model_keep_text(m, &on);
}

/* What is handed over without an object: the state meanwhile, and the queue. */
static const char *nameless_text(uint32_t type, bool is_state)
{
	static const struct {
		enum trace_object_type type;
		const char *state, *queue;
	} text[] = {
		{TRACE_OBJECT_NR, "waiting for a processor", "processor"},
		{MODEL_TYPE_WAKE, "waking", "waking"},
		{MODEL_TYPE_PUT_OFF, "hand-over of flushes to kernel workers",
			"flushes to kernel workers"},
		{MODEL_TYPE_THREAD, "start of a thread", "start of a thread"},
		{MODEL_TYPE_PROCESS, "start of a process", "start of a process"},
		{MODEL_TYPE_CLOCK, "awaking after a clock's deadline", "deadlines of a clock"},
		{MODEL_TYPE_SIGNAL, "hand-over of a signal or a child's end",
			"signals and children's ends"},
	};
	for (size_t i = 0; i < BASE_COUNT(text); i++)
		if (type == (uint32_t)text[i].type)
			return is_state ? text[i].state : text[i].queue;
	return "end of a thread or process";
}

static void add_state_name(struct model *m, struct base_str *s, uint32_t state)
{
	const struct state_info *st = &m->made.state[state];
	const char *f = NULL;
	uint32_t class_ix = st->class_ix;
	bool messages = class_ix != NONE && class_ix < m->made.nr_classes &&
			model_is_messages(m->made.class_[class_ix].type);
	bool queue = class_ix != NONE && class_ix < m->made.nr_classes &&
		     st->pub.kind == MODEL_STATE_wait &&
		     (m->made.class_[class_ix].type == TRACE_OBJECT_pipe ||
			     m->made.class_[class_ix].type == TRACE_OBJECT_socket ||
			     m->made.class_[class_ix].type == TRACE_OBJECT_queue);
	if (model_add_mpi_state(m, s, st) || model_add_kernel_state(m, s, st))
		return;
	switch (st->pub.kind) {
	case MODEL_STATE_run:
		if (add_main_functions(m, s, st))
			break;
		f = model_site_function(
			m, st->pub.site ? st->pub.site : m->made.role[st->role].site);
		if (*f)
			base_str_addf(
				s, "running %s%s", runs_elsewhere(m, st, f) ? "after " : "", f);
		else if (st->pub.site)
			base_str_addf(s, "running after %s", model_site_text(m, st->pub.site));
		else if (m->is_system && m->made.role[st->role].context != TRACE_CONTEXT_none)
			base_str_addf(s, "handling %s", m->made.role[st->role].name);
		else if (m->is_system)
			base_str_addf(s, "running program %s", m->made.role[st->role].name);
		else
			base_str_add(s, "running from its start");
		break;
	case MODEL_STATE_hold:
		base_str_add(s, st->aux == 1 ? "reading under " : "holding ");
		model_add_class(m, s, class_ix);
		break;
	case MODEL_STATE_wait:
		if (class_ix == NONE) {
			base_str_add(s, st->aux == TRACE_OBJECT_NR ? "waiting for a child process"
								   : "waiting for a thread's end");
			break;
		}
		base_str_add(s, !queue && !messages ? "waiting for "
				: st->aux == 1      ? "waiting for space in "
				: messages          ? "waiting for a message in "
						    : "waiting for data in ");
		model_add_class(m, s, class_ix);
		break;
	case MODEL_STATE_latency:
		if (class_ix == NONE) {
			base_str_add(s, nameless_text(st->aux, true));
			break;
		}
		base_str_add(s, "hand-over of ");
		model_add_class(m, s, class_ix);
		break;
	case MODEL_STATE_device:
		model_add_device_state(m, s, st);
		break;
	case MODEL_STATE_runnable:
		model_add_runnable(m, s, st);
		break;
	case MODEL_STATE_blocked:
		base_str_add(s, st->aux == AUX_HIDDEN ? "away: the kernel does not show since when"
						      : "blocked outside every recorded call");
		break;
	case MODEL_STATE_external:
	case MODEL_STATE_io:
		if (class_ix == NONE && st->aux >= TRACE_IO_msync && st->aux < TRACE_IO_NR) {
			base_str_add(s, io_text(st->aux));
			break;
		}
		if (class_ix == NONE) {
			base_str_add(s, st->aux == MODEL_POLL_NOTHING
						? "waiting for a signal or a time limit"
					: st->aux == AUX_FAULT
						? "reading pages from disk (page faults)"
						: "waiting for readiness");
			break;
		}
		base_str_addf(s, "%s of ", io_text(st->aux));
		if (is_of_many_files(m, st))
			base_str_add(s, "many files");
		else
			model_add_class(m, s, class_ix);
		break;
	case MODEL_STATE_sleep:
		base_str_add(s, st->aux == MODEL_SLEEP_LIMIT      ? "sleeping until a time limit"
				: st->aux == MODEL_SLEEP_DEADLINE ? MODEL_DEADLINE_TEXT
								  : "sleeping");
		break;
	case MODEL_STATE_start:
		base_str_add(s, st->aux == AUX_LOAD ? "loading the program (exec, dynamic loader)"
				: st->aux == AUX_RECORDER ? "longpole itself (starting under it)"
				: st->aux == AUX_CHILD    ? MODEL_CHILD_TEXT
							  : "starting a program");
		break;
	case MODEL_STATE_annotated:
		add_annotated(m, s, st);
		break;
	default:
		base_str_add(s, st->aux == AUX_UNSEEN ? "since before it was first seen" : "idle");
	}
}

static void names_add_where(struct model *m, struct base_str *s, const struct state_info *st)
{
	uint32_t site = st->pub.site;
	if (st->pub.kind == MODEL_STATE_run && !site && m->made.role[st->role].site)
		site = m->made.role[st->role].site;
	if (!site)
		return;
	if (st->pub.kind == MODEL_STATE_run)
		base_str_add(s, st->pub.site ? "after " : "start of ");
	base_str_add(s, model_site_text(m, site));
}

static const char *where_text(struct model *m, const struct state_info *st)
{
	struct base_str s = {0};
	names_add_where(m, &s, st);
	if (s.length || s.failed)
		return model_keep_text(m, &s);
	base_str_fini(&s); /* an empty name may have taken room */
	return "";
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void add_role(struct model *m, struct base_str *s, const struct role *ro)
{
	model_add_program(m, s, ro);
	if (ro->site) {
		const char *f = model_site_function(m, ro->site);
		base_str_addf(s, "/%s", *f ? f : model_site_text(m, ro->site));
	}
}

static void name_roles(struct model *m)
{
	for (size_t i = 0; i < m->made.nr_roles; i++) {
		struct base_str s = {0};
		add_role(m, &s, &m->made.role[i]);
		m->made.role[i].name = model_keep_text(m, &s);
	}
}

enum { SMALL_NUMBER = 1 << 20 };

static const char *machine_group(struct model *m, const struct trace_actor *d)
{
	const char *system = trace_text_of(m->defs, d->system);
	struct base_str s = {0};
	if (!*system)
		return trace_text_of(m->defs, d->name);
	base_str_addf(&s, "%s/%s", system, trace_text_of(m->defs, d->name));
	return model_keep_text(m, &s);
}

/* "host/name 3"; an instance that is an address is shown as one. */
static void add_machine(struct model *m, struct base_str *s, const struct trace_actor *d)
{
	const char *system = trace_text_of(m->defs, d->system);
	if (*system)
		base_str_addf(s, "%s/", system);
	base_str_add(s, trace_text_of(m->defs, d->name));
	if (d->instance >= SMALL_NUMBER)
		base_str_addf(s, " 0x%llx", (unsigned long long)d->instance);
	else if (d->instance)
		base_str_addf(s, " %llu", (unsigned long long)d->instance);
}

/* A disk, a discipline, a socket's sender; of a disk's requests at once the number. */
static void name_device(struct model *m, struct actor_info *a, struct base_str *s)
{
	struct base_str group = {0};
	a->pub.kind = MODEL_ACTOR_device;
	model_add_class(m, &group, model_class_of(m, a->object, 0));
	a->pub.group = model_keep_text(m, &group);
	base_str_add(s, a->pub.group);
	if (a->number)
		base_str_addf(s, " #%u", a->number);
}

static void names_name_actor(struct model *m, struct actor_info *a)
{
	struct base_str s = {0};
	if (a->role == NONE) {
		a->pub.group_ix = (uint32_t)m->made.nr_roles;
		a->pub.kind = a->actor_def ? MODEL_ACTOR_machine : MODEL_ACTOR_meeting;
		if (a->actor_def && a->actor_def < m->defs->nr_actors) {
			const struct trace_actor *d = &m->defs->actors[a->actor_def];
			add_machine(m, &s, d);
			a->pub.group = machine_group(m, d);
		} else if (a->kind == MODEL_ACTOR_device) {
			name_device(m, a, &s);
		} else if (a->clock_site) {
			a->pub.group = "clock";
			base_str_add(&s, "clock");
			if (a->clock_site > 1)
				base_str_addf(&s, " at %s", model_site_text(m, a->clock_site - 1));
		} else {
			a->pub.group = "meeting point";
			base_str_add(&s, "meeting point");
		}
	} else {
		const struct role *ro = &m->made.role[a->role];
		const struct trace_context *c = trace_def_context(m->defs, a->thread);
		const char *name = "";
		int64_t rank = a->thread < m->nr_threads
				       ? model_mpi_rank(m, m->thread[a->thread].process)
				       : -1;
		if (a->thread < m->defs->nr_streams)
			name = trace_text_of(m->defs, m->defs->streams[a->thread].name);
		a->pub.group = ro->name;
		a->pub.group_ix = ro->group_ix;
		base_str_add(&s, ro->name);
		if (rank >= 0)
			base_str_addf(&s, " rank %lld", (long long)rank);
		if (ro->context != TRACE_CONTEXT_none) {
			a->pub.kind = MODEL_ACTOR_context;
			base_str_addf(&s, ", processor %llu", (unsigned long long)c->processor);
			name = "";
		} else if (ro->nr_actors > 1 && (rank < 0 || ro->site))
			base_str_addf(&s, " #%u", a->number);
		if (*name && strncmp(name, ro->name, strlen(name)) != 0)
			base_str_addf(&s, " '%s'", name);
	}
	a->pub.name = model_keep_text(m, &s);
}

static void name_queue(struct model *m, uint32_t id)
{
	struct queue_info *q = &m->made.queue[id];
	struct base_str s = {0};
	const struct state_info *latency = &m->made.state[q->latency_state];
	if (q->wakes && q->wakes - 1 < m->nr_threads)
		base_str_addf(
			&s, "waking of %s", m->made.actor[m->thread[q->wakes - 1].actor].pub.name);
	else if (q->what) {
		base_str_add(&s, q->what);
		model_add_class(m, &s, latency->class_ix);
	} else if (latency->class_ix != NONE && latency->class_ix < m->made.nr_classes)
		model_add_class(m, &s, latency->class_ix);
	else
		base_str_add(&s, nameless_text(q->pub.type == TRACE_OBJECT_NR ? TRACE_OBJECT_NR
									      : latency->aux,
					 false));
	q->pub.name = model_keep_text(m, &s);
}

/* What they are called may become known late. */
static void refresh_roles(struct model *m)
{
	for (size_t i = 0; i < m->made.nr_roles; i++) {
		struct base_str s = {0};
		add_role(m, &s, &m->made.role[i]);
		if (!m->made.role[i].name || strcmp(m->made.role[i].name, base_str_text(&s)) != 0)
			m->made.role[i].name = model_keep_text(m, &s);
		base_str_fini(&s);
	}
}

enum base_status model_refresh_names(struct model *m, struct base_err *err)
{
	m->err = err ? err : &m->own_err;
	enum base_status s = model_list_samples(m, false);
	if (s == BASE_OK)
		s = count_files(m);
	if (s == BASE_OK)
		s = count_users(m);
	refresh_roles(m);
	m->err = NULL;
	return s;
}

void model_add_state_name(struct model *m, uint32_t state, struct base_str *ret)
{
	if (state < m->made.nr_states)
		add_state_name(m, ret, state);
}

void model_add_state_where(struct model *m, uint32_t state, struct base_str *ret)
{
	if (state < m->made.nr_states)
		names_add_where(m, ret, &m->made.state[state]);
}

void model_add_group_name(struct model *m, uint32_t actor, struct base_str *ret)
{
	const struct actor_info *a = actor < m->made.nr_actors ? &m->made.actor[actor] : NULL;
	if (!a)
		return;
	if (a->role != NONE)
		add_role(m, ret, &m->made.role[a->role]);
	else if (a->actor_def && a->actor_def < m->defs->nr_actors)
		base_str_add(ret, machine_group(m, &m->defs->actors[a->actor_def]));
	else
		base_str_add(ret, "meeting point");
}

void model_add_object_name(struct model *m, uint32_t state, struct base_str *ret)
{
	uint32_t class_ix = state < m->made.nr_states ? m->made.state[state].class_ix : NONE;
	if (class_ix != NONE && class_ix < m->made.nr_classes)
		model_add_class(m, ret, class_ix);
}

/* Threads that never said goodbye end with the trace. */
void model_finish_threads(struct model *m)
{
	for (uint32_t i = 1; i < m->nr_threads; i++) {
		struct thread *t = &m->thread[i];
		if (!t->seen)
			continue;
		struct actor_info *a = &m->made.actor[t->actor];
		a->pub.begin_ns = t->begin_ns;
		a->pub.end_ns = t->end_ns;
		a->pub.ended = t->ended;
		if (t->stream < m->defs->nr_streams)
			a->pub.tid = m->defs->streams[t->stream].tid;
		if (t->process < m->defs->nr_processes)
			a->pub.pid = m->defs->processes[t->process].pid;
		if (m->is_system && !model_is_context(t))
			a->pub.cgroup = trace_text_of(m->defs, model_cgroup(m, t->process));
	}
}

enum base_status model_make_names(struct model *m)
{
	enum base_status status = model_list_samples(m, true);
	if (status == BASE_OK)
		status = count_files(m);
	if (status == BASE_OK)
		status = count_users(m);
	if (status != BASE_OK)
		return status;
	name_roles(m);
	for (uint32_t i = 0; i < m->made.nr_states; i++) {
		struct state_info *st = &m->made.state[i];
		struct base_str s = {0};
		add_state_name(m, &s, i);
		const struct model_function_share *named;
		if (st->pub.kind == MODEL_STATE_run)
			st->pub.nr_named = naming_functions(m, st, &named);
		st->pub.name = model_keep_text(m, &s);
		st->pub.where = where_text(m, st);
		name_file(m, st);
	}
	for (size_t i = 0; i < m->made.nr_actors; i++)
		names_name_actor(m, &m->made.actor[i]);
	for (uint32_t i = 0; i < m->made.nr_queues; i++)
		name_queue(m, i);
	return model_name_findings(m);
}
