/* SPDX-License-Identifier: Apache-2.0 */
/* crowd.c - who had the processors that a path waited for, taken together: on a busy machine they
 * are many, each with a small part, and what they share is what holds the program back. */
#include "report/private.h"

#include <stdlib.h>
#include <string.h>

void report_crowd_add(struct report_crowd *c, const char *had, double path_ns)
{
	size_t i = 0;
	if (!had || !*had)
		return;
	c->path_ns += path_ns;
	while (i < c->nr && strcmp(c->had[i].name, had) != 0)
		i++;
	if (i == REPORT_CROWD_MAX)
		return;
	if (i == c->nr)
		c->had[c->nr++] = (struct report_holder){.name = had};
	c->had[i].path_ns += path_ns;
}

static int crowd_by_path_ns(const void *a, const void *b)
{
	const struct report_holder *x = a, *y = b;
	return (x->path_ns < y->path_ns) - (x->path_ns > y->path_ns);
}

void report_crowd_text(
	struct base_str *out, struct report_crowd *c, double all_ns, uint64_t nr_processors)
{
	enum { NAMED = 2 };
	double named_ns = 0;
	qsort(c->had, c->nr, sizeof *c->had, crowd_by_path_ns);
	base_str_add(out, "waiting for a processor");
	if (nr_processors) /* an imported trace may not say */
		base_str_addf(out, " (this machine has %llu)", (unsigned long long)nr_processors);
	for (size_t i = 0; i < c->nr && i < NAMED; i++) {
		base_str_addf(out, "%s", i ? ", " : ": ");
		report_clean_add(out, c->had[i].name);
		base_str_add(out, i ? " for " : " had it for ");
		report_percent(out, c->had[i].path_ns / all_ns);
		named_ns += c->had[i].path_ns;
	}
	if (c->nr <= NAMED)
		return;
	base_str_add(out, ", others for ");
	report_percent(out, (c->path_ns - named_ns) / all_ns);
}
