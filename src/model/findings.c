/* SPDX-License-Identifier: Apache-2.0 */
/* findings.c - the table of what was found: one row a (check, site, queue, actor). */
#include "model/findings.h"

#include "model/model_private.h"

#include <stdlib.h>
#include <string.h>

static const struct check {
	const char *name;
	enum model_severity severity;
	const char *sentence, *advice;
} check[MODEL_CHECK_NR] = {
#define FINDING(id, severity, sentence, advice) {#id, MODEL_SEVERITY_##severity, sentence, advice},
#include "model/findings.def"
};

const char *model_severity_name(enum model_severity s)
{
	static const char *const name[] = {"error", "warning", "info"};
	return s < BASE_COUNT(name) ? name[s] : "?";
}

const char *model_check_name(enum model_check c)
{
	return c < MODEL_CHECK_NR ? check[c].name : "?";
}

/* ---- while the model runs -------------------------------------------------------------------- */

void model_found(struct model *m, const struct found *f)
{
	struct findings *all = &m->findings;
	/* the names differ only where there is no queue to tell by */
	uint64_t hi = (uint64_t)f->check << 32 | f->site;
	uint64_t lo =
		(uint64_t)f->actor << 32 | (f->object ? f->object : f->first ^ f->second << 16);
	uint64_t ix;
	if (base_map_get(&all->by_key, hi, lo, &ix)) {
		if (ix < all->nr)
			all->found[ix].count++;
		return;
	}
	bool room = all->nr < MODEL_FINDINGS_MAX;
	if (!room && all->nr_more >= MODEL_FINDINGS_MAX) { /* nor remember who they are */
		all->nr_more++;
		return;
	}
	enum base_status s =
		room ? base_grow(&all->found, &all->capacity, all->nr + 1, sizeof *all->found)
		     : BASE_OK;
	if (s == BASE_OK)
		s = base_map_put(&all->by_key, hi, lo, room ? all->nr : UINT64_MAX);
	if (s != BASE_OK) {
		if (m->status == BASE_OK)
			m->status = base_fail(m->err, s, "out of memory for findings");
		return;
	}
	if (!room) {
		all->nr_more++;
		return;
	}
	all->found[all->nr] = *f;
	all->found[all->nr++].count = 1;
}

/* ---- afterwards: texts ----------------------------------------------------------------------- */

static const char *findings_queue_name(const struct model *m, uint32_t object)
{
	return object && object < m->defs->nr_objects
		       ? trace_text_of(m->defs, m->defs->objects[object].name)
		       : "";
}

static void findings_add_queue(const struct model *m, struct base_str *s, uint32_t object)
{
	base_str_addf(s, "queue '%s'", findings_queue_name(m, object));
}

/* Replaces each {word}. */
static const char *findings_fill(struct model *m, const struct found *f, const char *text)
{
	struct base_str s = {0};
	for (const char *p = text; *p;) {
		const char *end = *p == '{' ? strchr(p, '}') : NULL;
		size_t length = end ? (size_t)(end - p) - 1 : 0;
		if (!end) {
			base_str_add_bytes(&s, p++, 1);
			continue;
		}
		if (!strncmp(p + 1, "queue", length))
			findings_add_queue(m, &s, f->object);
		else if (!strncmp(p + 1, "name", length))
			base_str_add(&s, findings_queue_name(m, f->object));
		else if (!strncmp(p + 1, "a", length))
			base_str_add_count(&s, f->a);
		else if (!strncmp(p + 1, "b", length))
			base_str_add_count(&s, f->b);
		else
			base_str_add(&s,
				trace_text_of(m->defs,
					!strncmp(p + 1, "first", length) ? f->first : f->second));
		p = end + 1;
	}
	return model_keep_text(m, &s);
}

/* By passes of its place. */
static bool findings_is_counted(const struct found *f)
{
	return !f->near_by && f->check != MODEL_CHECK_never_waits;
}

static int most_serious_first(const void *pa, const void *pb)
{
	const struct model_finding *a = pa, *b = pb;
	if (a->severity != b->severity)
		return a->severity < b->severity ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	int c = strcmp(a->where, b->where);
	c = c ? c : strcmp(a->sentence, b->sentence);
	return c ? c : strcmp(a->actor, b->actor);
}

enum base_status model_name_findings(struct model *m)
{
	struct findings *all = &m->findings;
	if (!all->nr)
		return BASE_OK;
	all->pub = base_alloc(all->nr * sizeof *all->pub);
	if (!all->pub)
		return base_fail(m->err, BASE_ERR_NOMEM, "out of memory for findings");
	for (size_t i = 0; i < all->nr; i++) {
		const struct found *f = &all->found[i];
		struct base_str queue = {0};
		if (f->object)
			findings_add_queue(m, &queue, f->object);
		all->pub[i] = (struct model_finding){
			.check = f->check,
			.severity = check[f->check].severity,
			.sentence = findings_fill(m, f, check[f->check].sentence),
			.advice = findings_fill(m, f, check[f->check].advice),
			.where = model_site_text(m, f->site),
			.near_by = f->near_by,
			.queue = model_keep_text(m, &queue),
			.actor = f->actor < m->made.nr_actors ? m->made.actor[f->actor].pub.name
							      : "",
			.count = f->count,
			.of = f->site < m->annotated.nr_passed && findings_is_counted(f)
				      ? m->annotated.passed[f->site]
				      : 0,
			.first_ns = f->first_ns,
		};
	}
	qsort(all->pub, all->nr, sizeof *all->pub, most_serious_first);
	return BASE_OK;
}

void model_free_findings(struct model *m)
{
	base_free(m->findings.found);
	base_free(m->findings.pub);
	base_map_fini(&m->findings.by_key);
}

const struct model_finding *model_findings(
	const struct model *m, size_t *ret_nr, uint64_t *ret_more)
{
	*ret_nr = m->findings.nr;
	*ret_more = m->findings.nr_more;
	return m->findings.pub;
}
