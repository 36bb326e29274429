/* SPDX-License-Identifier: Apache-2.0 */
/* calls_text.c - struct report_calls for people and for programs. */
#include "report/calls.h"
#include "base/names.h"
#include "report/private.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum { NAME_WIDTH = 30, PLACES_SHOWN = 5 };

static const char *category_name(enum trace_call c)
{
	static const char *const name[] = {
#define X(id, text) text,
		TRACE_CALLS(X)
#undef X
	};
	return name[c];
}

static const char *category_key(enum trace_call c)
{
	static const char *const name[] = {
#define X(id, text) #id,
		TRACE_CALLS(X)
#undef X
	};
	return name[c];
}

static double calls_text_share_of(const struct report_calls *c, const struct report_call_use *u)
{
	return c->cpu_ns ? u->cpu_ns / (double)c->cpu_ns : 0;
}

/* What was timed by the clock holds time of others: no share of it is to be believed. */
static bool more_than_all(const struct report_calls *c)
{
	return c->cpu_ns && c->all.cpu_ns > 1.02 * (double)c->cpu_ns;
}

/* ---- tables ---------------------------------------------------------------------------------- */

enum { CALLS_KERNEL = 1, CALLS_NO_KERNEL = 2, CALLS_CPU = 4 };

static unsigned calls_text_has(const struct report_calls *c)
{
	return (c->has_kernel ? CALLS_KERNEL : CALLS_NO_KERNEL) | (c->cpu_ns ? CALLS_CPU : 0);
}

static json_t *calls_categories_json(const struct report_calls *c, const struct base_table *use)
{
	json_t *o = json_object();
	for (unsigned i = 0; i < TRACE_CALL_NR; i++)
		json_object_set_new(o, category_key((enum trace_call)i),
			base_table_json(use, &c->category[i], c, calls_text_has(c)));
	return o;
}

#include "report/calls.def"

/* ---- text ------------------------------------------------------------------------------------ */

static void calls_text_finding(
	struct base_str *out, const struct report_calls *c, const struct report_style *st)
{
	struct base_str s = {0};
	enum trace_call most = TRACE_CALL_io;
	for (unsigned i = 0; i < TRACE_CALL_NR; i++)
		if (c->category[i].cpu_ns > c->category[most].cpu_ns)
			most = (enum trace_call)i;
	if (c->cpu_ns) {
		if (more_than_all(c)) /* see the caution */
			base_str_add(&s, "all");
		else
			report_percent(&s, calls_text_share_of(c, &c->all));
		base_str_add(&s, " of the processor time is in library calls");
	} else {
		report_ns(&s, c->all.cpu_ns);
		base_str_add(&s, " of processor time are in library calls");
	}
	base_str_addf(&s, ", most of it in %s", category_name(most));
	if (c->cpu_ns && !more_than_all(c)) {
		base_str_add(&s, " (");
		report_percent(&s, calls_text_share_of(c, &c->category[most]));
		base_str_add(&s, ")");
	}
	if (c->has_kernel && c->all.cpu_ns > 0) {
		base_str_add(&s, ", ");
		report_percent(&s, c->all.kernel_ns / c->all.cpu_ns);
		base_str_add(&s, " of it inside the kernel");
	}
	base_str_addf(&s, "; the costliest function is %s (counted; times estimated from samples).",
		c->function[0].name);
	report_color_begin(out, st, REPORT_BOLD);
	base_str_add(out, base_str_text(&s));
	report_color_end(out, st);
	base_str_add(out, "\n\n");
	base_str_fini(&s);
}

static void category_line(struct base_str *out, const struct base_layout *l, const char *name,
	const struct report_call_use *u, const struct report_style *st)
{
	report_cell(out, st, name, NAME_WIDTH, true);
	base_layout_cells(out, l, u);
	base_str_add(out, "\n");
}

static void place_lines(struct base_str *out, struct base_layout l,
	const struct report_call_function *f, size_t limit, const struct report_style *st)
{
	l.table = &calls_place;
	for (size_t i = 0; i < f->nr_places && (!limit || i < limit); i++) {
		struct base_str s = {0};
		base_str_addf(&s, "  %s%s%s", *f->place[i].inside ? "in " : "",
			*f->place[i].inside ? f->place[i].inside : f->place[i].where,
			*f->place[i].inside ? "()" : "");
		report_place_cell(out, st, base_str_text(&s), NAME_WIDTH);
		base_layout_cells(out, &l, &f->place[i]);
		base_str_add(out, "\n");
		base_str_fini(&s);
	}
	if (limit && f->nr_places > limit)
		base_str_add_counted(out, "  ... %s more {place|places} (--all shows {it|them})\n",
			f->nr_places - limit);
}

/* How the numbers are known, and what they lack. */
static void calls_text_notes(
	struct base_str *out, const struct report_calls *c, const struct report_style *style)
{
	report_wrap(out, style, "KNOWN BY", REPORT_LABEL_WIDTH,
		"every call through the dynamic linker was counted. Times with a ~ are estimates: "
		"of leaf functions that are called often, one call in 32 was timed. (A place's "
		"first call, which counts for itself alone, copies of 64 KiB and more and taken "
		"locks were always timed. What took over 100 us was interrupted and is left out.) "
		"Of functions that enter the kernel, one call in 8 had its processor time "
		"measured; of streams, every call that was likely to meet the kernel or another "
		"thread's lock. What slept beside these, and who waits for a lock, had no "
		"processor. What the clocks themselves take was measured in the program before it "
		"started, and is taken off each time. Shares are of the processor time with what "
		"counting takes. A category has what the program itself called; what these "
		"functions call is theirs");
	report_wrap(out, style, "NOT SEEN", REPORT_LABEL_WIDTH,
		"copies and strings that the compiler put in place of a call (inlined memcpy, "
		"strlen of a constant), calls inside libc, and static programs. Functions that are "
		"not in the list: it has those that Debian's programs use most and that take time. "
		"What returns twice, never, or looks at its caller: fork, exec, exit, setjmp, "
		"dlopen");
	report_wrap(out, style, "KERNEL", REPORT_LABEL_WIDTH,
		c->has_kernel
			? "time with a processor inside of system calls, of each timed call, by "
			  "BPF "
			  "at their begin and end and at switches of threads. The rest is user: "
			  "page faults and interrupts, too, and some 500 ns a system call for "
			  "entering and leaving the kernel and for BPF itself. A '-' was not "
			  "measured"
			: "not told from user time: record with --kernel-time, as root. What the "
			  "kernel "
			  "gives others (getrusage) is sampled at its ticks, too coarse for calls");
	if (more_than_all(c))
		report_wrap(out, style, "CAUTION", REPORT_LABEL_WIDTH,
			"that is more than the program's processor time: leaf functions are timed "
			"by the "
			"clock, and other programs, or the machine's host, had the processor "
			"meanwhile. "
			"Shares are too high; record on a machine with less to do");
	if (c->nr_full) {
		struct base_str s = {0};
		base_str_add_counted(&s,
			"%s {call is|calls are} of no row: the tables of {its thread|their "
			"threads} had no room for more callers",
			c->nr_full);
		report_wrap(out, style, "LOST", REPORT_LABEL_WIDTH, base_str_text(&s));
		base_str_fini(&s);
	}
}

void report_calls_text(struct base_str *out, const struct report_calls *c,
	const struct report_calls_view *view, const struct report_style *style)
{
	struct base_layout l = {.table = &calls_use,
		.all = c,
		.has = calls_text_has(c),
		.name_width = NAME_WIDTH,
		.utf8 = style->utf8};
	calls_text_finding(out, c, style);
	report_table_head(out, &l, style);
	for (unsigned i = 0; i < TRACE_CALL_NR; i++) {
		if (c->category[i].calls)
			category_line(
				out, &l, category_name((enum trace_call)i), &c->category[i], style);
	}
	category_line(out, &l, "all", &c->all, style);
	base_str_add(out, "\n");
	l.table = &calls_function;
	report_table_head(out, &l, style);
	size_t nr = view->limit && view->limit < c->nr_functions ? view->limit : c->nr_functions;
	for (size_t i = 0; i < nr; i++) {
		report_table_line(out, &l, &c->function[i], style);
		if (view->places)
			place_lines(out, l, &c->function[i], view->limit ? PLACES_SHOWN : 0, style);
	}
	if (nr < c->nr_functions)
		base_str_addf(out, "... %zu more (--all shows them)\n", c->nr_functions - nr);
	base_str_add(out, "\n");
	report_calls_events_text(out, c, view, style);
	calls_text_notes(out, c, style);
	report_trace_text_caveats(out, &c->trace, style);
	if (!view->places)
		report_next_line(out, style, "NEXT", "calls --site", &c->trace, NULL);
}

json_t *report_calls_json(const struct report_calls *c)
{
	return report_envelope(report_calls_document.name, &c->trace,
		base_table_json(&report_calls_document, c, c, calls_text_has(c)));
}
