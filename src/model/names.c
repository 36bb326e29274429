/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - what states, actors and queues are called. Made once, after the run; texts live in the
 * model's arena. */
#include "model/model_private.h"

#include "symbol/symbol.h"

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

/* The same, as one of the texts that have numbers. */
static const char *names_intern(struct model *m, struct base_str *s, uint32_t *ret_text)
{
	enum base_status status = s->failed ? BASE_ERR_NOMEM
					    : base_strtab_intern(m->naming.texts, base_str_text(s),
						      s->length, ret_text);
	base_str_fini(s);
	if (status != BASE_OK) {
		m->naming.status = status;
		*ret_text = 0;
	}
	return status == BASE_OK ? base_strtab_get(m->naming.texts, *ret_text) : "?";
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

/*
 * Pipes and sockets of one sort: used by the same, by the same calls. Nobody who looks for what to
 * change would tell them apart: they are one row, "8 pipes". Where calls are not known each is a
 * sort of its own.
 */
static void equal_key(const struct lock_class *c, uint64_t *hi, uint64_t *lo)
{
	const struct class_users *u = &c->users;
	bool known = (!u->role[0] || u->site[0]) && (!u->role[1] || u->site[1]);
	uint64_t calls = (uint64_t)u->site[0] << 32 | u->site[1];
	users_key(c, hi, lo);
	*hi ^= base_hash_u64(known ? calls : c->object);
	*lo ^= known ? 0 : (uint64_t)1 << 63;
}

static enum base_status names_add_to(
	struct model *m, struct base_map *map, uint64_t hi, uint64_t lo, uint64_t more)
{
	uint64_t n = 0;
	base_map_get(map, hi, lo, &n);
	if (base_map_put(map, hi, lo, n + more) != BASE_OK)
		return base_fail(m->err, BASE_ERR_NOMEM, "out of memory for names");
	return BASE_OK;
}

/* So many more of its sort; a connection's both ends are one. */
static enum base_status count_users_of(struct model *m, const struct lock_class *c, uint64_t more)
{
	uint64_t hi, lo, nr_equal = 0;
	enum base_status s = BASE_OK;
	equal_key(c, &hi, &lo);
	base_map_get(&m->naming.equal, hi, lo, &nr_equal);
	if (more)
		s = names_add_to(m, &m->naming.equal, hi, lo, more);
	users_key(c, &hi, &lo);
	if (s == BASE_OK && more && !nr_equal)
		s = names_add_to(m, &m->naming.alike, hi, lo, 1);
	return s;
}

/* How many pipes and sockets have the same users, and are of one sort. */
static enum base_status count_users(struct model *m)
{
	uint32_t *nr = base_alloc((m->made.nr_classes + 1) * sizeof *nr);
	enum base_status s = BASE_OK;
	base_map_fini(&m->naming.alike);
	base_map_fini(&m->naming.equal);
	if (!nr)
		return base_fail(m->err, BASE_ERR_NOMEM, "out of memory for names");
	for (uint32_t i = 0; m->object && i < m->nr_objects; i++)
		if (m->object[i].class_ix && m->object[i].class_ix <= m->made.nr_classes)
			nr[m->object[i].class_ix - 1]++;
	for (size_t i = 0; s == BASE_OK && i < m->made.nr_classes; i++) {
		const struct lock_class *c = &m->made.class_[i];
		if (is_of_users(m, c))
			s = count_users_of(m, c, c->type == TRACE_OBJECT_pipe ? nr[i] : 1);
	}
	base_free(nr);
	return s;
}

static uint64_t nr_alike(const struct model *m, const struct lock_class *c)
{
	uint64_t hi, lo, n = 0;
	users_key(c, &hi, &lo);
	if (is_of_users(m, c))
		base_map_get(&m->naming.alike, hi, lo, &n);
	return n;
}

static uint64_t nr_equal(const struct model *m, const struct lock_class *c)
{
	uint64_t hi, lo, n = 0;
	equal_key(c, &hi, &lo);
	if (is_of_users(m, c))
		base_map_get(&m->naming.equal, hi, lo, &n);
	return n;
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

/* "pipe from tar to gzip", "pipe 4711 from make to cc" where there are more of other sorts; where
 * there are more of its own sort: "8 pipes from sort to sort", and of one alone that is of them
 * "pipe from sort to sort". */
static void add_used(
	struct model *m, struct base_str *s, const struct lock_class *c, uint64_t address, bool one)
{
	uint64_t nr = nr_equal(m, c), sorts = nr_alike(m, c);
	uint32_t site = c->users.site[0] ? c->users.site[0] : c->users.site[1];
	const char *text = trace_object_type_text(c->type);
	if (nr > 1 && !one)
		base_str_addf(s, "%llu %ss", (unsigned long long)nr, text);
	else
		base_str_add(s, text);
	if (nr <= 1 && sorts != 1)
		base_str_addf(s, " %llu", (unsigned long long)address);
	add_users(m, s, c);
	if (nr > 1 && sorts > 1)
		base_str_addf(s, ", used at %s", model_site_text(m, site));
}

/* "mutex counter_lock"; nameless ones are told by their first user. */
static void names_add_class(struct model *m, struct base_str *s, uint32_t class_ix, bool one)
{
	const struct lock_class *c = &m->made.class_[class_ix];
	if (c->text) {
		base_str_add(s, c->text);
		return;
	}
	const struct trace_object *def =
		&m->defs->objects[c->object < m->nr_objects ? c->object : 0];
	enum trace_object_type type = (enum trace_object_type)c->type;
	bool is_numbered = model_object_is(type, MODEL_TRAIT_numbered);
	if (!model_has_name(m, c->name) && is_numbered &&
		model_object_is(type, MODEL_TRAIT_bytes)) {
		add_used(m, s, c, def->address, one);
		return;
	}
	base_str_add(s, trace_object_type_text(c->type));
	if (model_has_name(m, c->name)) {
		base_str_addf(s, " %s", trace_text_of(m->defs, c->name));
	} else if (is_numbered) {
		base_str_addf(s, " %llu", (unsigned long long)def->address);
	} else if (c->site) {
		base_str_addf(s, " of %s", model_site_text(m, c->site));
	} else {
		base_str_addf(s, " 0x%llx", (unsigned long long)def->address);
	}
}

void model_add_class(struct model *m, struct base_str *s, uint32_t class_ix)
{
	names_add_class(m, s, class_ix, false);
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

/* Samples find it everywhere: then the call before says less of where it is than the program does. */
static bool runs_all_over(const struct model *m, const struct state_info *st)
{
	const uint64_t least = 20, tenth = 10;
	uint64_t pool;
	if (!base_map_get(&m->sampled.pools, st->role, st->pub.site, &pool))
		return false;
	const struct function_list *l = &m->sampled.pool[pool];
	return l->nr_samples >= least && l->function[0].nr_samples * tenth < l->nr_samples;
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
		base_map_get(&m->naming.files, key, st->detail, &n);
		if (base_map_put(&m->naming.files, key, st->detail, n + 1) != BASE_OK)
			return base_fail(m->err, BASE_ERR_NOMEM, "out of memory for names");
	}
	return BASE_OK;
}

static bool is_of_many_files(struct model *m, const struct state_info *st)
{
	uint64_t n = 0;
	return is_of_file(m, st) &&
	       base_map_get(&m->naming.files, place_key(m, st), st->detail, &n) && n > FILES_NAMED;
}

/* However many there are: a search for one of them finds it. */
static void name_file(struct model *m, struct state_info *st)
{
	struct base_str of = {0}, on = {0};
	if (!is_of_file(m, st))
		return;
	const struct lock_class *c = &m->made.class_[st->class_ix];
	base_str_addf(&of, "%s of ", io_text(st->detail));
	model_add_class(m, &of, st->class_ix);
	st->pub.of_file = model_keep_text(m, &of);
	if (!c->name)
		return;
	base_str_addf(&on, "%s %s", io_text(st->detail), trace_text_of(m->defs, c->name));
	st->pub.on_file = model_keep_text(m, &on);
}

/* ---- states: causes and their arguments ------------------------------------------------------ */

static const struct {
	const char *lead, *phrase;
	enum model_state_kind kind;
} causes[MODEL_CAUSE_NR] = {
#define STATE(cause, kind, lead, phrase, sentence) {lead, phrase, MODEL_STATE_##kind},
#include "model/states.def"
#undef STATE
};

enum model_state_kind model_cause_kind(enum model_cause c)
{
	return causes[c].kind;
}

/* Where the last call was made that was recorded before it ran. */
static uint32_t ran_from(const struct model *m, const struct state_info *st)
{
	return st->pub.site ? st->pub.site : m->made.role[st->role].site;
}

/* A line of what an interpreter runs: samples know the interpreter's functions only. */
static bool is_interpreted(const struct model *m, uint32_t site)
{
	const struct trace_site *s = site < m->defs->nr_sites ? &m->defs->sites[site] : NULL;
	return s && !s->module && TRACE_IS_PLACE(s->offset);
}

/* As it is known now. */
static enum model_cause names_cause(struct model *m, const struct state_info *st)
{
	const struct model_function_share *f;
	unsigned nr;
	if (st->pub.cause == MODEL_CAUSE_io && is_of_many_files(m, st))
		return MODEL_CAUSE_io_many_files;
	if (st->pub.kind != MODEL_STATE_run || st->pub.cause == MODEL_CAUSE_task_work)
		return st->pub.cause;
	if (is_interpreted(m, ran_from(m, st)))
		return MODEL_CAUSE_run_after;
	if ((nr = naming_functions(m, st, &f)))
		return nr > 1 ? MODEL_CAUSE_run_functions : MODEL_CAUSE_run_function;
	if (runs_all_over(m, st))
		return MODEL_CAUSE_run_spread;
	const char *function = model_site_function(m, ran_from(m, st));
	if (*function && !runs_elsewhere(m, st, function))
		return MODEL_CAUSE_run_function;
	if (*function || st->pub.site)
		return MODEL_CAUSE_run_after;
	if (!m->is_system)
		return MODEL_CAUSE_run;
	return m->made.role[st->role].context != TRACE_CONTEXT_none ? MODEL_CAUSE_run_handler
								    : MODEL_CAUSE_run_program;
}

/* Adds nothing where it is not known. */
static void names_add_argument(struct model *m, struct base_str *s, const struct state_info *st,
	enum model_argument_type type)
{
	const struct model_function_share *f = NULL;
	unsigned nr = 0;
	if (st->pub.kind == MODEL_STATE_run)
		nr = naming_functions(m, st, &f);
	switch (type) {
	case MODEL_ARGUMENT_object:
		if (st->class_ix < m->made.nr_classes)
			model_add_class(m, s, st->class_ix);
		break;
	case MODEL_ARGUMENT_function:
		base_str_add(s, nr ? f[0].function : model_site_function(m, ran_from(m, st)));
		break;
	case MODEL_ARGUMENT_other_function:
		base_str_add(s, nr > 1 ? f[1].function : "");
		break;
	case MODEL_ARGUMENT_place: {
		const char *function = model_site_function(m, ran_from(m, st));
		base_str_add(s, *function ? function : model_site_text(m, st->pub.site));
		break;
	}
	case MODEL_ARGUMENT_program:
		base_str_add(s, st->role < m->made.nr_roles ? m->made.role[st->role].name : "");
		break;
	case MODEL_ARGUMENT_call:
		model_add_call(s, st->detail >> MODEL_WAKER_BITS);
		break;
	case MODEL_ARGUMENT_waker:
		model_add_waker(m, s, st->detail % (1u << MODEL_WAKER_BITS));
		break;
	case MODEL_ARGUMENT_io:
		base_str_add(s, io_text(st->detail));
		break;
	case MODEL_ARGUMENT_disk:
		base_str_add(s, model_disk_text(st->detail));
		break;
	case MODEL_ARGUMENT_cgroup:
		base_str_add(s, trace_text_of(m->defs, st->detail));
		break;
	case MODEL_ARGUMENT_rank:
		model_add_mpi_rank(s, st->detail);
		break;
	case MODEL_ARGUMENT_mpi_call:
		model_add_mpi_call(s, st->detail);
		break;
	case MODEL_ARGUMENT_communicator:
		model_add_communicator(m, s, st->class_ix);
		break;
	case MODEL_ARGUMENT_library:
		base_str_add(s, model_site_function(m, st->detail));
		break;
	case MODEL_ARGUMENT_machine:
		base_str_add(s, trace_text_of(m->defs, st->role));
		break;
	default:
		base_str_add(s, st->detail ? trace_text_of(m->defs, st->detail) : "begun");
	}
}

/* ---- states: names --------------------------------------------------------------------------- */

/* A cause's phrase, filled. */
struct phrase {
	struct base_str text;
	struct {
		enum model_argument_type type;
		size_t begin, length; /* in the text */
	} argument[MODEL_ARGUMENTS_MAX];
	unsigned nr_arguments;
};

/* The argument at `form`, which begins with its brace; returns what follows it. */
static const char *names_fill_argument(
	struct model *m, struct phrase *p, const struct state_info *st, const char *form)
{
	static const char *const word[MODEL_ARGUMENT_NR] = {
#define X(name) #name,
		MODEL_ARGUMENTS(X)
#undef X
	};
	size_t length = strcspn(form + 1, "}"), begin = p->text.length;
	unsigned type = 0;
	while (type < MODEL_ARGUMENT_NR - 1 &&
		(strlen(word[type]) != length || memcmp(word[type], form + 1, length) != 0))
		type++;
	names_add_argument(m, &p->text, st, (enum model_argument_type)type);
	p->argument[p->nr_arguments].type = (enum model_argument_type)type;
	p->argument[p->nr_arguments].begin = begin;
	p->argument[p->nr_arguments++].length = p->text.length - begin;
	return form + length + 2;
}

static void names_cut(struct base_str *s, size_t length)
{
	s->length = length;
	if (s->buf)
		s->buf[length] = '\0';
}

static void names_add_phrase(
	struct model *m, struct phrase *p, const struct state_info *st, const char *form)
{
	size_t optional = 0;
	while (*form) {
		size_t plain = strcspn(form, "[{]");
		base_str_add_bytes(&p->text, form, plain);
		form += plain;
		if (*form == '{') {
			form = names_fill_argument(m, p, st, form);
		} else if (*form == '[') {
			optional = p->text.length;
			form++;
		} else if (*form == ']') {
			if (!p->argument[p->nr_arguments - 1].length)
				names_cut(&p->text, optional);
			form++;
		}
	}
}

static enum model_cause names_add_state_name(
	struct model *m, struct phrase *p, const struct state_info *st)
{
	enum model_cause cause = names_cause(m, st);
	base_str_add(&p->text, causes[cause].lead);
	names_add_phrase(m, p, st, causes[cause].phrase);
	return cause;
}

/* States of one cause with the same arguments have one identity, and one name. */
static void names_name_state(struct model *m, struct state_info *st)
{
	struct phrase p = {0};
	struct model_state *pub = &st->pub;
	uint32_t name;
	uint64_t key[MODEL_ARGUMENTS_MAX] = {0}, identity;
	pub->cause = names_add_state_name(m, &p, st);
	pub->nr_arguments = p.nr_arguments;
	for (unsigned i = 0; i < p.nr_arguments; i++) {
		struct base_str argument = {0};
		base_str_add_bytes(&argument, base_str_text(&p.text) + p.argument[i].begin,
			p.argument[i].length);
		pub->argument[i].type = p.argument[i].type;
		names_intern(m, &argument, &pub->argument[i].text);
		key[i] = pub->argument[i].text;
	}
	pub->name = names_intern(m, &p.text, &name);
	pub->what = pub->name + (name ? strlen(causes[pub->cause].lead) : 0);
	uint64_t hi = (uint64_t)pub->cause << 32 | key[0], lo = key[1] << 32 | key[2];
	if (!base_map_get(&m->naming.identities, hi, lo, &identity)) {
		identity = m->naming.nr_identities++;
		model_put(m, &m->naming.identities, hi, lo, identity);
	}
	pub->identity = (uint32_t)identity;
}

/* What a thread is called that begins there; NULL: as the function is. */
static const char *names_start(const struct model *m, uint32_t site)
{
	return symbol_start_words(model_site_function(m, site),
		trace_text_of(m->defs, trace_def_symbol(m->defs, site)->file));
}

static void names_add_where(struct model *m, struct base_str *s, const struct state_info *st)
{
	uint32_t site = st->pub.site;
	if (st->pub.kind == MODEL_STATE_run && !site && m->made.role[st->role].site &&
		!symbol_is_plumbing(model_site_function(m, m->made.role[st->role].site)))
		site = m->made.role[st->role].site;
	if (!site)
		return;
	const char *words = st->pub.site ? NULL : names_start(m, site);
	if (st->pub.kind == MODEL_STATE_run)
		base_str_add(s, st->pub.site ? "after " : "at the start of ");
	base_str_add(s, words ? words : model_site_text(m, site));
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void add_role(struct model *m, struct base_str *s, const struct role *ro)
{
	model_add_program(m, s, ro);
	if (ro->site) {
		const char *f = model_site_function(m, ro->site);
		const char *words = names_start(m, ro->site);
		base_str_addf(s, "/%s",
			words                   ? words
			: symbol_is_plumbing(f) ? "thread"
			: *f                    ? f
						: model_site_text(m, ro->site));
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

/* Threads that a library starts, as Rust's, begin in one function: there the name that a thread has
 * given itself says which it is. "" where it has none. */
static const char *names_own(const struct model *m, const struct actor_info *a)
{
	const struct role *ro = a->role == NONE ? NULL : &m->made.role[a->role];
	if (!ro || !symbol_is_plumbing(model_site_function(m, ro->site)) ||
		a->thread >= m->defs->nr_streams)
		return "";
	const char *name = trace_text_of(m->defs, m->defs->streams[a->thread].name);
	return strncmp(name, ro->name, strlen(name)) != 0 ? name : "";
}

static void names_count_own(struct model *m)
{
	for (size_t i = 0; i < m->made.nr_actors; i++) {
		const struct actor_info *a = &m->made.actor[i];
		uint64_t n = 0;
		if (!*names_own(m, a))
			continue;
		uint32_t name = m->defs->streams[a->thread].name;
		base_map_get(&m->naming.own, a->role, name, &n);
		model_put(m, &m->naming.own, a->role, name, n + 1);
	}
}

/* "prog/renderer"; of several that are called so, "prog/renderer #2" */
static void names_add_own(
	struct model *m, struct base_str *s, const struct actor_info *a, const char *name)
{
	uint64_t n = 0;
	model_add_program(m, s, &m->made.role[a->role]);
	base_str_addf(s, "/%s", name);
	base_map_get(&m->naming.own, a->role, m->defs->streams[a->thread].name, &n);
	if (n > 1)
		base_str_addf(s, " #%u", a->number);
}

static void names_add_thread(struct model *m, struct base_str *s, struct actor_info *a)
{
	const struct role *ro = &m->made.role[a->role];
	const struct trace_context *c = trace_def_context(m->defs, a->thread);
	const char *name = "", *own = names_own(m, a);
	int64_t rank =
		a->thread < m->nr_threads ? model_mpi_rank(m, m->thread[a->thread].process) : -1;
	if (a->thread < m->defs->nr_streams)
		name = trace_text_of(m->defs, m->defs->streams[a->thread].name);
	a->pub.group = ro->name;
	a->pub.group_ix = ro->group_ix;
	if (*own && rank < 0 && ro->context == TRACE_CONTEXT_none) {
		names_add_own(m, s, a, own);
		return;
	}
	base_str_add(s, ro->name);
	if (rank >= 0)
		base_str_addf(s, " rank %lld", (long long)rank);
	if (ro->context != TRACE_CONTEXT_none) {
		a->pub.kind = MODEL_ACTOR_context;
		base_str_addf(s, ", processor %llu", (unsigned long long)c->processor);
		name = "";
	} else if (ro->nr_actors > 1 && (rank < 0 || ro->site))
		base_str_addf(s, " #%u", a->number);
	if (*name && strncmp(name, ro->name, strlen(name)) != 0)
		base_str_addf(s, " '%s'", name);
}

const char *const model_noun_text[MODEL_NOUN_NR] = {
	[MODEL_NOUN_none] = "actor",
	[MODEL_NOUN_thread] = "thread",
	[MODEL_NOUN_goroutine] = "goroutine",
	[MODEL_NOUN_task] = "task",
	[MODEL_NOUN_rank] = "rank",
};

enum model_noun model_actor_noun(const struct model *m, uint32_t actor)
{
	const struct actor_info *a = actor < m->made.nr_actors ? &m->made.actor[actor] : NULL;
	if (a && a->clock_of && a->clock_of <= m->made.nr_actors)
		a = &m->made.actor[a->clock_of - 1];
	if (!a || a->role == NONE || a->pub.kind != MODEL_ACTOR_thread)
		return MODEL_NOUN_none;
	if (m->seen.tasks)
		return MODEL_NOUN_goroutine;
	if (!a->thread) /* it takes turns on one */
		return MODEL_NOUN_task;
	bool is_rank = a->thread < m->nr_threads && !m->made.role[a->role].site &&
		       model_mpi_rank(m, m->thread[a->thread].process) >= 0;
	return is_rank ? MODEL_NOUN_rank : MODEL_NOUN_thread;
}

static void names_name_actor(struct model *m, struct actor_info *a)
{
	struct base_str s = {0}, group = {0};
	if (a->role == NONE) {
		a->pub.group_ix = (uint32_t)m->made.nr_roles;
		a->pub.kind = a->actor_def ? MODEL_ACTOR_machine : MODEL_ACTOR_meeting;
		if (a->actor_def && a->actor_def < m->defs->nr_actors) {
			const struct trace_actor *d = &m->defs->actors[a->actor_def];
			add_machine(m, &s, d);
			a->pub.group = machine_group(m, d);
		} else if (a->kind == MODEL_ACTOR_device) {
			name_device(m, a, &s);
		} else if (a->clock_of) { /* (which was made before it) */
			const struct model_actor *of = &m->made.actor[a->clock_of - 1].pub;
			a->pub.group = of->group;
			a->pub.group_ix = of->group_ix;
			base_str_add(&s, of->name);
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
		names_add_thread(m, &s, a);
	}
	a->pub.name = names_intern(m, &s, &a->pub.name_text);
	base_str_add(&group, a->pub.group);
	a->pub.group = names_intern(m, &group, &a->pub.group_text);
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
		names_add_class(m, &s, latency->class_ix, true);
	} else if (latency->class_ix != NONE && latency->class_ix < m->made.nr_classes)
		names_add_class(m, &s, latency->class_ix, true);
	else
		base_str_add(&s, model_nameless(q->pub.type == MODEL_TYPE_PROCESSOR
							? MODEL_TYPE_PROCESSOR
							: (enum trace_object_type)latency->detail)
					 ->queue);
	q->pub.name = names_intern(m, &s, &q->pub.name_text);
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

enum model_cause model_add_state_name(struct model *m, uint32_t state, struct base_str *ret)
{
	struct phrase p = {0};
	if (state >= m->made.nr_states)
		return MODEL_CAUSE_idle;
	enum model_cause cause = names_add_state_name(m, &p, &m->made.state[state]);
	base_str_add_bytes(ret, base_str_text(&p.text), p.text.length);
	ret->failed |= p.text.failed;
	base_str_fini(&p.text);
	return cause;
}

void model_add_state_argument(
	struct model *m, uint32_t state, enum model_argument_type type, struct base_str *ret)
{
	if (state < m->made.nr_states)
		names_add_argument(m, ret, &m->made.state[state], type);
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
		a->pub.begin_ns = t->life.begin_ns;
		a->pub.end_ns = t->life.end_ns;
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
	m->naming.texts = base_strtab_new();
	if (!m->naming.texts)
		return base_fail(m->err, BASE_ERR_NOMEM, "out of memory for names");
	name_roles(m);
	for (uint32_t i = 0; i < m->made.nr_states; i++) {
		struct state_info *st = &m->made.state[i];
		struct base_str where = {0};
		names_name_state(m, st);
		names_add_where(m, &where, st);
		st->pub.where = names_intern(m, &where, &st->pub.where_text);
		name_file(m, st);
	}
	names_count_own(m);
	for (size_t i = 0; i < m->made.nr_actors; i++)
		names_name_actor(m, &m->made.actor[i]);
	for (uint32_t i = 0; i < m->made.nr_queues; i++)
		name_queue(m, i);
	if (m->naming.status != BASE_OK)
		return base_fail(m->err, m->naming.status, "out of memory for names");
	return m->status == BASE_OK ? model_name_findings(m) : m->status;
}
