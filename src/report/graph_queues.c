/* SPDX-License-Identifier: Apache-2.0 */
/* graph_queues.c - pipes and sockets that the same actors use in the same way are drawn as one: a
 * server's connections. Locks keep their names. */
#include "report/graph_private.h"

#include <string.h>

static bool is_connection(enum trace_object_type type)
{
	return type == TRACE_OBJECT_pipe || type == TRACE_OBJECT_socket ||
	       type == TRACE_OBJECT_eventfd || type == TRACE_OBJECT_timerfd ||
	       type == TRACE_OBJECT_file || type == TRACE_OBJECT_other;
}

struct folding {
	const struct graph_names *n;
	uint32_t *kind;     /* by queue class: type and users */
	uint32_t *members;  /* by kind */
	uint32_t *first;    /* by kind: its first class */
	uint32_t *class_of; /* by queue class */
};

/* A text for each class: its type, and who puts and takes. Uses are in the order of first use, the
 * same for all that are used alike. */
static enum base_status find_kinds(struct folding *f, const struct graph_compact *c,
	struct base_strtab *kinds, struct base_str *key, uint32_t queue, struct base_err *err)
{
	uint32_t id;
	base_str_reset(key);
	base_str_addf(key, "%d", (int)f->n->queue_type[queue]);
	for (uint32_t a = 0; a < f->n->nr_actor_classes; a++) {
		bool puts = false, takes = false;
		for (size_t i = 0; i < c->nr_uses; i++) {
			const struct graph_compact_use *u = &c->use[i];
			if (u->queue != queue || u->actor != a)
				continue;
			puts |= u->nr_puts || u->nr_waits_space;
			takes |= u->nr_takes || u->nr_waits_data;
		}
		if (puts || takes)
			base_str_addf(key, " %u%s%s", a, puts ? "p" : "", takes ? "t" : "");
	}
	enum base_status s =
		key->failed ? BASE_ERR_NOMEM
			    : base_strtab_intern(kinds, base_str_text(key), key->length, &id);
	if (s != BASE_OK)
		return report_no_memory(err);
	f->kind[queue] = id - 1; /* id 0 is "" */
	if (!f->members[id - 1]++)
		f->first[id - 1] = queue;
	return BASE_OK;
}

static enum base_status find_all_kinds(
	struct folding *f, const struct graph_compact *c, struct base_err *err)
{
	struct base_strtab *kinds = base_strtab_new();
	struct base_str key = {0};
	enum base_status s = kinds ? BASE_OK : report_no_memory(err);
	for (uint32_t q = 0; q < f->n->nr_queue_classes && s == BASE_OK; q++)
		s = is_connection(f->n->queue_type[q]) ? find_kinds(f, c, kinds, &key, q, err)
						       : BASE_OK;
	base_strtab_free(kinds);
	base_str_fini(&key);
	return s;
}

static const char *folded_name(struct base_arena *a, const char *first, uint32_t nr)
{
	struct base_str s = {0};
	base_str_addf(&s, "%u, such as %s", nr, first);
	return report_keep(a, &s);
}

static enum base_status choose_classes(
	struct report_graph *g, struct folding *f, bool *ret_any, struct base_err *err)
{
	for (uint32_t q = 0; q < f->n->nr_queue_classes; q++) {
		f->class_of[q] = q;
		if (!is_connection(f->n->queue_type[q]) ||
			f->members[f->kind[q]] <= REPORT_GRAPH_HANDFUL)
			continue;
		uint32_t nr = f->members[f->kind[q]];
		f->class_of[q] = f->first[f->kind[q]];
		g->nr_folded_queues++;
		*ret_any = true;
		if (f->class_of[q] != q)
			continue;
		f->n->queue_name[q] = folded_name(g->arena, f->n->queue_name[q], nr);
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
		.members = report_array(n->scratch, n->nr_queue_classes, sizeof *f.members),
		.first = report_array(n->scratch, n->nr_queue_classes, sizeof *f.first),
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
