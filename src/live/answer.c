/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - the paths of a window, summed by state, by process and by connection. Sums go by name,
 * for threads come and go. */
#include "live/private.h"

#include <stdlib.h>
#include <string.h>

struct answer *live_answer_new(void)
{
	struct answer *a = base_alloc(sizeof *a);
	if (!a)
		return NULL;
	a->texts = base_strtab_new();
	return a->texts ? a : live_answer_free(a);
}

static void free_rows(struct rows *r)
{
	base_free(r->row);
	base_free(r->text);
	base_free(r->where);
	base_map_fini(&r->by_key);
}

struct answer *live_answer_free(struct answer *a)
{
	if (!a)
		return NULL;
	free_rows(&a->state);
	free_rows(&a->process);
	free_rows(&a->connection);
	base_free(a->place);
	base_map_fini(&a->places);
	base_strtab_free(a->texts);
	base_free(a);
	return NULL;
}

static void answer_keep(struct answer *a, enum base_status s)
{
	if (s != BASE_OK && a->status == BASE_OK)
		a->status = s;
}

static uint32_t answer_intern(struct answer *a, struct base_str *text)
{
	uint32_t id = 0;
	answer_keep(a, text->failed ? BASE_ERR_NOMEM
				    : base_strtab_intern(
					      a->texts, base_str_text(text), text->length, &id));
	base_str_fini(text);
	return id;
}

/* The row of these texts; any without memory. */
static uint32_t answer_row_of(struct answer *a, struct rows *r, uint32_t process, uint32_t name,
	uint32_t where, enum model_state_kind kind)
{
	uint64_t hi = (uint64_t)process << 32 | name, lo = (uint64_t)where << 8 | (unsigned)kind,
		 at;
	if (base_map_get(&r->by_key, hi, lo, &at))
		return (uint32_t)at;
	answer_keep(a, base_grow(&r->row, &r->row_capacity, r->nr + 1, sizeof *r->row));
	answer_keep(a, base_grow(&r->text, &r->text_capacity, r->nr + 1, sizeof *r->text));
	answer_keep(a, base_grow(&r->where, &r->where_capacity, r->nr + 1, sizeof *r->where));
	answer_keep(a, base_map_put(&r->by_key, hi, lo, r->nr));
	if (a->status != BASE_OK)
		return 0;
	r->text[r->nr] = hi;
	r->where[r->nr] = where;
	r->row[r->nr] = (struct live_row){.kind = kind};
	return (uint32_t)r->nr++;
}

static void add_to(struct live_row *row, const struct graph_path_state *st, bool waits)
{
	row->path_ns += st->path_ns;
	row->unexplained_ns += st->unexplained_ns;
	row->latency_ns += st->latency_ns;
	row->waiting_ns += waits ? st->path_ns : 0;
	row->visits += st->visits;
}

static bool answer_is_connection(const struct trace_defs *d, uint32_t object)
{
	return object && model_object_is((enum trace_object_type)trace_def_object(d, object)->type,
				 MODEL_TRAIT_connects);
}

/* The rows of an actor's group in a state. Made once: many paths go the same ways. */
static const struct answer_place *answer_place_of(struct answer *a, struct model *m,
	const struct trace_defs *defs, const struct graph_path_state *st)
{
	uint64_t group = model_actor_group(m, st->actor), at;
	if (base_map_get(&a->places, group, st->state, &at))
		return &a->place[at];
	const struct model_state *state = model_state(m, st->state);
	struct base_str process = {0}, name = {0}, where = {0}, object = {0}, had = {0};
	model_add_group_name(m, st->actor, &process);
	if (model_add_state_name(m, st->state, &name) == MODEL_CAUSE_processor_had)
		model_add_state_argument(m, st->state, MODEL_ARGUMENT_program, &had);
	model_add_state_where(m, st->state, &where);
	uint32_t p = answer_intern(a, &process), n = answer_intern(a, &name),
		 w = answer_intern(a, &where), h = answer_intern(a, &had);
	struct answer_place place = {
		.state = answer_row_of(a, &a->state, p, n, w, state->kind),
		.process = answer_row_of(a, &a->process, p, 0, 0, 0),
		.connection = NONE,
		.waits = model_state_kind_waits(state->kind),
	};
	if (answer_is_connection(defs, state->object)) {
		model_add_object_name(m, st->state, &object);
		place.connection =
			answer_row_of(a, &a->connection, 0, answer_intern(a, &object), 0, 0);
	}
	answer_keep(
		a, base_grow(&a->place, &a->place_capacity, a->nr_places + 1, sizeof *a->place));
	if (a->status == BASE_OK)
		answer_keep(a, base_map_put(&a->places, group, st->state, a->nr_places));
	if (a->status != BASE_OK)
		return NULL;
	a->state.row[place.state].had = base_strtab_get(a->texts, h);
	a->place[a->nr_places] = place;
	return &a->place[a->nr_places++];
}

static void answer_add_state(struct answer *a, struct model *m, const struct trace_defs *defs,
	const struct graph_path_state *st)
{
	const struct answer_place *at = answer_place_of(a, m, defs, st);
	if (!at)
		return;
	add_to(&a->state.row[at->state], st, at->waits);
	add_to(&a->process.row[at->process], st, at->waits);
	if (at->connection != NONE)
		add_to(&a->connection.row[at->connection], st, at->waits);
	a->w.unexplained_ns += st->unexplained_ns;
}

enum base_status live_answer_add(struct answer *a, struct model *m, const struct trace_defs *defs,
	const struct graph_path_state *state, size_t nr, double length_ns, struct base_err *err)
{
	for (size_t i = 0; i < nr && a->status == BASE_OK; i++)
		if (state[i].path_ns > 0)
			answer_add_state(a, m, defs, &state[i]);
	a->w.nr_paths++;
	a->w.path_ns += length_ns;
	return a->status == BASE_OK
		       ? BASE_OK
		       : base_fail(err, a->status, "out of memory for a window's answer");
}

static int answer_longest_first(const void *pa, const void *pb)
{
	const struct live_row *a = pa, *b = pb;
	if (a->path_ns != b->path_ns)
		return a->path_ns > b->path_ns ? -1 : 1;
	int c = strcmp(a->process, b->process);
	if (!c)
		c = strcmp(a->name, b->name);
	if (!c)
		c = strcmp(a->where, b->where);
	return c ? c : (int)a->kind - (int)b->kind;
}

static const struct live_row *answer_finish_rows(struct answer *a, struct rows *r)
{
	for (size_t i = 0; i < r->nr; i++) {
		r->row[i].process = base_strtab_get(a->texts, (uint32_t)(r->text[i] >> 32));
		r->row[i].name = base_strtab_get(a->texts, (uint32_t)r->text[i]);
		r->row[i].where = base_strtab_get(a->texts, r->where[i]);
	}
	if (r->nr)
		qsort(r->row, r->nr, sizeof *r->row, answer_longest_first);
	return r->row;
}

void live_answer_finish(struct answer *a)
{
	a->w.state = answer_finish_rows(a, &a->state);
	a->w.nr_states = a->state.nr;
	a->w.process = answer_finish_rows(a, &a->process);
	a->w.nr_processes = a->process.nr;
	a->w.connection = answer_finish_rows(a, &a->connection);
	a->w.nr_connections = a->connection.nr;
}
