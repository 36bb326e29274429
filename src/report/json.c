/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - struct report for programs. Keys are only ever added within a schema version. */
#include "report/private.h"

struct json_reduction { /* one of those that an opportunity was looked at with */
	struct report_opportunity of;
	unsigned level;
};

static json_t *json_opportunities(const struct report *r, const struct base_table *table)
{
	json_t *list = json_array();
	for (size_t i = 0; i < r->nr_opportunities; i++)
		for (unsigned k = 0; k < REPORT_LEVELS; k++) {
			struct json_reduction x = {r->opportunity[i], k};
			json_array_append_new(list, base_table_json(table, &x, NULL, 0));
		}
	return list;
}

/* As the screen shows them: those that somebody would change first. */
static json_t *json_parts(const struct report_parts *p, const struct base_table *table)
{
	size_t nr = p->nr > 0;
	while (nr && nr < p->nr && p->part[nr].predicted)
		nr++;
	return base_table_json_list(table, p->part, nr, p, 0);
}

/* The first part that is a lock; NULL: none is. */
static json_t *json_lock(const struct report_parts *p, const struct base_table *table)
{
	for (size_t i = 0; i < p->nr; i++)
		if (p->part[i].is_lock)
			return base_table_json(table, &p->part[i], p, 0);
	return NULL;
}

#include "report/report.def"

json_t *report_json(const struct report *r)
{
	return report_envelope(
		report_document.name, &r->trace, base_table_json(&report_document, r, NULL, 0));
}
