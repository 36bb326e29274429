/* SPDX-License-Identifier: Apache-2.0 */
/* silent.c - the table of silent stores. */
#include "memory/stream/silent.h"

#include <inttypes.h>

enum { THREADS_SHOWN = 16 };

static const char *const kind_name[MEMORY_SILENT_KINDS] = {
	"other", "integer", "float", "vector", "atomic"};

static uint64_t silent_sum(const uint64_t *n)
{
	uint64_t all = 0;
	for (unsigned k = 0; k < MEMORY_SILENT_KINDS; k++)
		all += n[k];
	return all;
}

/* Sum of the first nr_threads threads; false: the source does not know. */
static bool silent_total(
	const struct memory_source *s, uint32_t nr_threads, struct memory_silent *ret)
{
	*ret = (struct memory_silent){0};
	if (!(s->info.flags & MEMORY_SOURCE_SILENT) || !s->ops->silent)
		return false;
	for (uint32_t t = 0; t < nr_threads; t++) {
		struct memory_silent one;
		s->ops->silent(s, t, &one);
		for (unsigned k = 0; k < MEMORY_SILENT_KINDS; k++) {
			ret->stores[k] += one.stores[k];
			ret->silent[k] += one.silent[k];
		}
	}
	return true;
}

static void silent_row(
	struct base_str *out, const struct memory_silent *n, const struct memory_silent *all)
{
	base_str_addf(out, " %12" PRIu64 " %8.2f%%", silent_sum(n->stores),
		base_percent(silent_sum(n->silent), silent_sum(n->stores)));
	for (unsigned k = 0; k < MEMORY_SILENT_KINDS; k++) {
		if (!all->stores[k])
			continue;
		if (n->stores[k])
			base_str_addf(out, " %8.2f%%", base_percent(n->silent[k], n->stores[k]));
		else
			base_str_add(out, "         -");
	}
	base_str_add(out, "\n");
}

void memory_silent_text(struct base_str *out, const struct memory_source *s, uint32_t nr_threads)
{
	struct memory_silent all, one;
	if (!silent_total(s, nr_threads, &all))
		return;
	base_str_addf(out, "\n  Silent stores, which write what is there already: %.2f%% of ",
		base_percent(silent_sum(all.silent), silent_sum(all.stores)));
	base_str_add_count(out, silent_sum(all.stores));
	base_str_add(out,
		" that were compared (no string instructions)\n  thread       stores   silent");
	for (unsigned k = 0; k < MEMORY_SILENT_KINDS; k++)
		if (all.stores[k])
			base_str_addf(out, " %9s", kind_name[k]);
	base_str_add(out, "\n");
	for (uint32_t t = 0; nr_threads > 1 && t < nr_threads && t < THREADS_SHOWN; t++) {
		s->ops->silent(s, t, &one);
		base_str_addf(out, "  %6u", t);
		silent_row(out, &one, &all);
	}
	if (nr_threads > THREADS_SHOWN)
		base_str_addf(out, "  (%u more {thread|threads}: --json has them)\n",
			nr_threads - (unsigned)THREADS_SHOWN);
	base_str_add(out, "     all");
	silent_row(out, &all, &all);
}

static json_t *silent_counts_json(const struct memory_silent *n)
{
	json_t *o = json_pack("{s:I, s:I}", "stores", (json_int_t)silent_sum(n->stores), "silent",
		(json_int_t)silent_sum(n->silent));
	for (unsigned k = 0; k < MEMORY_SILENT_KINDS; k++)
		if (n->stores[k])
			json_object_set_new(o, kind_name[k],
				json_pack("{s:I, s:I}", "stores", (json_int_t)n->stores[k],
					"silent", (json_int_t)n->silent[k]));
	return o;
}

json_t *memory_silent_json(const struct memory_source *s, uint32_t nr_threads)
{
	struct memory_silent n;
	if (!silent_total(s, nr_threads, &n))
		return NULL;
	json_t *o = silent_counts_json(&n), *threads = json_array();
	for (uint32_t t = 0; t < nr_threads; t++) {
		s->ops->silent(s, t, &n);
		json_array_append_new(threads, silent_counts_json(&n));
	}
	json_object_set_new(o, "threads", threads);
	return o;
}
