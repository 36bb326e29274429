/* SPDX-License-Identifier: Apache-2.0 */
/* graph_queues.c - pipes and sockets that the same actors use in the same way are drawn as one: a
 * server's connections. Locks keep their names. */
#include "report/graph/graph_private.h"

#include <stdlib.h>
#include <string.h>

struct folding {
	const struct graph_names *n;
	uint32_t *kind;     /* by queue class: type and users */
	uint32_t *members;  /* by kind */
	uint32_t *first;    /* by kind: its first class */
	uint32_t *class_of; /* by queue class */
};

static bool does_put(const struct graph_compact_use *u)
{
	return u->nr_puts || u->nr_waits_space;
}

static bool does_take(const struct graph_compact_use *u)
{
	return u->nr_takes || u->nr_waits_data;
}

static int by_queue_and_actor(const void *pa, const void *pb)
{
	const struct graph_compact_use *a = pa, *b = pb;
	if (a->queue != b->queue)
		return a->queue < b->queue ? -1 : 1;
	return a->actor < b->actor ? -1 : a->actor > b->actor;
}

/* A text for each class: its type, and who puts and takes. u[0..nr) are its uses, by actor. */
static enum base_status find_kind(struct folding *f, const struct graph_compact_use *u, size_t nr,
	struct base_strtab *kinds, struct base_str *key, struct base_err *err)
{
	uint32_t id, queue = u->queue;
	base_str_reset(key);
	base_str_addf(key, "%d", (int)f->n->queue_type[queue]);
	for (size_t i = 0; i < nr; i++)
		base_str_addf(key, " %u%s%s", u[i].actor, does_put(&u[i]) ? "p" : "",
			does_take(&u[i]) ? "t" : "");
	enum base_status s =
		key->failed ? BASE_ERR_NOMEM
			    : base_strtab_intern(kinds, base_str_text(key), key->length, &id);
	if (s != BASE_OK)
		return report_no_memory(err);
	f->kind[queue] = id; /* 0 is "": never used */
	if (!f->members[id]++)
		f->first[id] = queue;
	return BASE_OK;
}

static enum base_status find_all_kinds(
	struct folding *f, struct graph_compact *c, struct base_err *err)
{
	struct base_strtab *kinds = base_strtab_new();
	struct base_str key = {0};
	enum base_status s = kinds ? BASE_OK : report_no_memory(err);
	if (c->nr_uses)
		qsort(c->use, c->nr_uses, sizeof *c->use, by_queue_and_actor);
	for (size_t i = 0, end; i < c->nr_uses && s == BASE_OK; i = end) {
		for (end = i + 1; end < c->nr_uses && c->use[end].queue == c->use[i].queue;)
			end++;
		if (model_object_is(f->n->queue_type[c->use[i].queue], MODEL_TRAIT_alike))
			s = find_kind(f, &c->use[i], end - i, kinds, &key, err);
	}
	base_strtab_free(kinds);
	base_str_fini(&key);
	return s;
}

/* "socket x33 (tcp 127.0.0.1:7778 ...)" of "socket tcp 127.0.0.1:7778": the first stands for all.
 */
static const char *graph_queues_folded_name(struct base_arena *a, const char *first, uint32_t nr)
{
	struct base_str s = {0};
	size_t word = strcspn(first, " ");
	base_str_add_bytes(&s, first, word);
	base_str_addf(&s, " \xc3\x97%u%s%s%s", nr, first[word] ? " (" : "",
		first[word] ? first + word + 1 : "", first[word] ? ", ...)" : "");
	return report_keep(a, &s);
}

static enum base_status choose_classes(
	struct report_graph *g, struct folding *f, bool *ret_any, struct base_err *err)
{
	for (uint32_t q = 0; q < f->n->nr_queue_classes; q++) {
		f->class_of[q] = q;
		if (!model_object_is(f->n->queue_type[q], MODEL_TRAIT_alike) || !f->kind[q] ||
			f->members[f->kind[q]] <= REPORT_GRAPH_HANDFUL)
			continue;
		uint32_t nr = f->members[f->kind[q]];
		f->class_of[q] = f->first[f->kind[q]];
		g->nr_folded_queues++;
		*ret_any = true;
		if (f->class_of[q] != q)
			continue;
		f->n->queue_name[q] = graph_queues_folded_name(g->arena, f->n->queue_name[q], nr);
		if (!f->n->queue_name[q])
			return report_no_memory(err);
	}
	return BASE_OK;
}

enum base_status report_graph_fold_queues(struct report_graph *g, const struct graph_names *n,
	struct graph_compact *c, struct base_err *err)
{
	struct folding f = {
		.n = n,
		.kind = report_array(n->scratch, n->nr_queue_classes, sizeof *f.kind),
		.members = report_array(n->scratch, n->nr_queue_classes + 1, sizeof *f.members),
		.first = report_array(n->scratch, n->nr_queue_classes + 1, sizeof *f.first),
		.class_of = report_array(n->scratch, n->nr_queue_classes, sizeof *f.class_of),
	};
	bool any = false;
	if (!f.kind || !f.members || !f.first || !f.class_of)
		return report_no_memory(err);
	enum base_status s = find_all_kinds(&f, c, err);
	if (s == BASE_OK)
		s = choose_classes(g, &f, &any, err);
	if (s != BASE_OK || !any)
		return s;
	struct graph_compact_classes k = {.queue = f.class_of};
	struct graph_compact folded;
	s = graph_compact_fold(c, &k, &folded, err);
	if (s != BASE_OK)
		return s;
	graph_compact_fini(c);
	*c = folded;
	return BASE_OK;
}
