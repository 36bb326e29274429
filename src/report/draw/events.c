/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - what a processor counted (cycles, cache misses), as a column of a table. */
#include "report/draw/draw.h"

#include <string.h>

/* What a column's head says; others say the event's own name. */
static const struct {
	const char *event, *text;
} shorts[] = {{"cache-misses", "LL"}, {"cache-references", "LLref"},
	{"L1-icache-load-misses", "L1I"}, {"L1-dcache-load-misses", "L1D"},
	{"branch-misses", "br.miss"}, {"branches", "branch"}, {"dTLB-load-misses", "dTLB"},
	{"iTLB-load-misses", "iTLB"}, {"stalled-cycles-frontend", "stall.f"},
	{"stalled-cycles-backend", "stall.b"}, {"page-faults", "faults"}, {"minor-faults", "minor"},
	{"major-faults", "major"}, {"ref-cycles", "ref.cyc"}};

const char *report_event_short(const char *event)
{
	for (size_t i = 0; i < BASE_COUNT(shorts); i++)
		if (!strcmp(shorts[i].event, event))
			return shorts[i].text;
	return event;
}

/* The place of that event; -1: it was not counted. */
int report_event_place(const char *const *name, unsigned nr, const char *event)
{
	for (unsigned i = 0; i < nr; i++)
		if (!strcmp(name[i], event))
			return (int)i;
	return -1;
}

void report_event_ratio(struct base_str *out, double count, double per, size_t width)
{
	struct base_str s = {0};
	double ratio = per > 0 ? count / per : 0;
	if (per > 0)
		base_str_addf(&s, ratio < 10 ? "%.2f" : ratio < 1000 ? "%.1f" : "%.0f", ratio);
	else
		base_str_add(&s, "-");
	report_right(out, base_str_text(&s), width);
	base_str_fini(&s);
}
