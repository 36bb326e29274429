/* SPDX-License-Identifier: Apache-2.0 */
/* calls_text.c - struct report_calls for people and for programs. */
#include "report/calls.h"
#include "report/private.h"

#include <limits.h>
#include <string.h>

enum { LABEL_WIDTH = 11, NAME_WIDTH = 30, PLACES_SHOWN = 5 };

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

static void calls_text_cell_ns(
	struct base_str *out, double ns, uint64_t nr, const char *mark, size_t width)
{
	struct base_str s = {0};
	if (nr)
		base_str_add(&s, mark);
	if (nr)
		report_ns(&s, ns);
	else
		base_str_add(&s, "-");
	report_right(out, base_str_text(&s), width);
	base_str_fini(&s);
}

static void use_cells(
	struct base_str *out, const struct report_calls *c, const struct report_call_use *u)
{
	struct base_str s = {0};
	base_str_add_count(&s, u->calls);
	report_right(out, base_str_text(&s), 13);
	base_str_reset(&s);
	if (u->failed)
		base_str_add_count(&s, u->failed);
	else
		base_str_add(&s, "-");
	report_right(out, base_str_text(&s), 8);
	base_str_reset(&s);
	if (c->cpu_ns && (u->timed || u->special))
		report_percent(&s, calls_text_share_of(c, u));
	else
		base_str_add(&s, "-");
	report_right(out, base_str_text(&s), 8);
	uint64_t nr_kernel = u->kernel_timed + u->kernel_special, nr = u->timed + u->special;
	const char *mark = u->is_estimate ? "~" : "";
	if (c->has_kernel) {
		calls_text_cell_ns(out, u->cpu_ns - u->kernel_ns, nr_kernel, mark, 10);
		calls_text_cell_ns(out, u->kernel_ns, nr_kernel, mark, 10);
	} else {
		calls_text_cell_ns(out, u->cpu_ns, nr, mark, 10);
	}
	calls_text_cell_ns(out, u->ns, nr, mark, 10);
	calls_text_cell_ns(out, u->calls ? u->ns / (double)u->calls : 0, nr, "", 9);
	base_str_reset(&s);
	if (u->bytes)
		base_str_add_size(&s, u->bytes);
	else
		base_str_add(&s, "-");
	report_right(out, base_str_text(&s), 11);
	base_str_add(out, "\n");
	base_str_fini(&s);
}

static void calls_text_heads(struct base_str *out, const struct report_calls *c,
	const struct report_style *st, const char *what)
{
	report_color_begin(out, st, REPORT_DIM);
	report_cell(out, st, what, NAME_WIDTH, true);
	base_str_addf(out, "        calls  failed     cpu%s wall time   a call      bytes",
		c->has_kernel ? "      user    kernel" : "  cpu time");
	report_color_end(out, st);
	base_str_add(out, "\n");
}

static void place_lines(struct base_str *out, const struct report_calls *c,
	const struct report_call_function *f, size_t limit, const struct report_style *st)
{
	for (size_t i = 0; i < f->nr_places && (!limit || i < limit); i++) {
		struct base_str s = {0};
		base_str_addf(&s, "  %s%s%s", *f->place[i].inside ? "in " : "",
			*f->place[i].inside ? f->place[i].inside : f->place[i].where,
			*f->place[i].inside ? "()" : "");
		report_place_cell(out, st, base_str_text(&s), NAME_WIDTH);
		use_cells(out, c, &f->place[i].use);
		base_str_fini(&s);
	}
	if (limit && f->nr_places > limit)
		base_str_add_counted(out, "  ... %s more {place|places} (--all shows {it|them})\n",
			f->nr_places - limit);
}

void report_calls_text(struct base_str *out, const struct report_calls *c,
	const struct report_calls_view *view, const struct report_style *style)
{
	calls_text_finding(out, c, style);
	calls_text_heads(out, c, style, "category");
	for (unsigned i = 0; i < TRACE_CALL_NR; i++) {
		if (!c->category[i].calls)
			continue;
		report_cell(out, style, category_name((enum trace_call)i), NAME_WIDTH, true);
		use_cells(out, c, &c->category[i]);
	}
	report_cell(out, style, "all", NAME_WIDTH, true);
	use_cells(out, c, &c->all);
	base_str_add(out, "\n");
	calls_text_heads(out, c, style, "function");
	size_t nr = view->limit && view->limit < c->nr_functions ? view->limit : c->nr_functions;
	for (size_t i = 0; i < nr; i++) {
		report_cell(out, style, c->function[i].name, NAME_WIDTH, true);
		use_cells(out, c, &c->function[i].use);
		if (view->places)
			place_lines(out, c, &c->function[i], view->limit ? PLACES_SHOWN : 0, style);
	}
	if (nr < c->nr_functions)
		base_str_addf(out, "... %zu more (--all shows them)\n", c->nr_functions - nr);
	base_str_add(out, "\n");
	report_calls_events_text(out, c, view, style);
	report_wrap(out, style, "KNOWN BY", LABEL_WIDTH,
		"every call through the dynamic linker was counted; times with a ~ are estimates: "
		"leaf functions that are called "
		"often were timed once in 32 calls (a place's first call, which counts for itself "
		"alone, copies of 64 KiB and more and taken locks always; what took "
		"over 100 us was interrupted and is left out), and the processor time of those "
		"that enter the kernel "
		"measured once in 8, of streams whenever the kernel or another thread's lock was "
		"likely to be met; what slept beside these, and who waits for a lock, had no "
		"processor. What the clocks themselves take, measured in the program before it "
		"starts, is "
		"taken off each time; shares are of the processor time with what "
		"counting takes. A category has what the program itself called; "
		"what these functions call is theirs");
	report_wrap(out, style, "NOT SEEN", LABEL_WIDTH,
		"copies and strings that the compiler put in place of a call (inlined memcpy, "
		"strlen of "
		"a constant), calls inside libc, functions that are not in the list (those that "
		"Debian's programs use most and that take time are), static programs; what returns "
		"twice, never, or looks at its caller: fork, exec, exit, setjmp, dlopen");
	report_wrap(out, style, "KERNEL", LABEL_WIDTH,
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
		report_wrap(out, style, "CAUTION", LABEL_WIDTH,
			"that is more than the program's processor time: leaf functions are timed "
			"by the "
			"clock, and other programs, or the machine's host, had the processor "
			"meanwhile. "
			"Shares are too high; record on a machine with less to do");
	if (c->nr_full) {
		struct base_str s = {0};
		base_str_add_count(&s, c->nr_full);
		base_str_add(&s,
			" calls are of no row: their thread's tables had no place for more "
			"callers");
		report_wrap(out, style, "LOST", LABEL_WIDTH, base_str_text(&s));
		base_str_fini(&s);
	}
	report_trace_text_caveats(out, &c->trace, style);
	if (!view->places)
		report_next_line(out, style, "NEXT", "calls --site", &c->trace, NULL);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *use_json(const struct report_calls *c, const struct report_call_use *u)
{
	json_t *o = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "calls",
		report_json_u64(u->calls), "bytes", report_json_u64(u->bytes), "timed_calls",
		report_json_u64(u->timed + u->special), "wall_ns", report_json_ns(u->ns), "cpu_ns",
		report_json_ns(u->cpu_ns), "max_ns", report_json_u64(u->max_ns),
		"cpu_measured_calls", report_json_u64(u->cpu_timed));
	json_object_set_new(o, "is_estimate", json_boolean(u->is_estimate));
	json_object_set_new(o, "failed_calls", report_json_u64(u->failed));
	const char *error = u->last_error && u->last_error < INT_MAX
				    ? strerrorname_np((int)u->last_error)
				    : NULL;
	if (error)
		json_object_set_new(o, "last_errno", report_json_text(error));
	if (u->kernel_timed + u->kernel_special) {
		json_object_set_new(o, "kernel_ns", report_json_ns(u->kernel_ns));
		json_object_set_new(o, "user_ns", report_json_ns(u->cpu_ns - u->kernel_ns));
		json_object_set_new(o, "kernel_measured_calls",
			report_json_u64(u->kernel_timed + u->kernel_special));
	}
	if (c->cpu_ns)
		json_object_set_new(o, "cpu_share", report_json_share(calls_text_share_of(c, u)));
	json_t *events = report_calls_events_json(c, u);
	if (events)
		json_object_set_new(o, "events", events);
	return o;
}

static json_t *function_json(const struct report_calls *c, const struct report_call_function *f)
{
	json_t *o = use_json(c, &f->use), *places = json_array();
	json_object_set_new(o, "function", report_json_text(f->name));
	json_object_set_new(o, "category", report_json_text(category_key(f->category)));
	json_object_set_new(o, "calls_inside_others", report_json_u64(f->inside.calls));
	for (size_t i = 0; i < f->nr_places; i++) {
		json_t *p = use_json(c, &f->place[i].use);
		json_object_set_new(p, "where", report_json_text(f->place[i].where));
		if (*f->place[i].inside)
			json_object_set_new(p, "inside", report_json_text(f->place[i].inside));
		json_array_append_new(places, p);
	}
	json_object_set_new(o, "places", places);
	return o;
}

json_t *report_calls_json(const struct report_calls *c)
{
	json_t *categories = json_object(), *functions = json_array();
	for (unsigned i = 0; i < TRACE_CALL_NR; i++)
		json_object_set_new(
			categories, category_key((enum trace_call)i), use_json(c, &c->category[i]));
	for (size_t i = 0; i < c->nr_functions; i++)
		json_array_append_new(functions, function_json(c, &c->function[i]));
	json_t *result = json_pack("{s:o, s:o, s:o, s:o, s:o}", "elapsed_ns",
		report_json_u64(c->elapsed_ns), "tick_hz", report_json_u64(c->tick_hz), "all",
		use_json(c, &c->all), "categories", categories, "functions", functions);
	json_object_set_new(
		result, "kernel_time_by", report_json_text(c->has_kernel ? "bpf" : "none"));
	if (c->cpu_ns)
		json_object_set_new(result, "cpu_ns", report_json_u64(c->cpu_ns));
	json_t *events = report_calls_program_events_json(c);
	if (events)
		json_object_set_new(result, "program_events", events);
	if (c->nr_full)
		json_object_set_new(result, "table_full_calls", report_json_u64(c->nr_full));
	return report_envelope("longpole/calls/1", &c->trace, result);
}
