/* SPDX-License-Identifier: Apache-2.0 */
/* trace_text.c - what every answer says of its trace: what was lost or left out, what recording
 * cost, which command comes next. */
#include "report/draw/draw.h"

#include <string.h>

void report_trace_caveats(struct base_str *out, const struct report_trace *t,
	const struct report_style *st, const char **label)
{
	if (t->from_ns || t->to_ns) {
		struct base_str s = {0};
		base_str_add(&s, "only the window from ");
		base_str_add_ns(&s, t->from_ns);
		base_str_add(&s, " to ");
		base_str_add_ns(&s, t->to_ns && t->to_ns < t->last_ns ? t->to_ns : t->last_ns);
		base_str_add(&s, " of ");
		base_str_add_ns(&s, t->last_ns);
		base_str_add(&s, " was analysed (--from, --to)");
		report_wrap(out, st, *label, REPORT_LABEL_WIDTH, base_str_text(&s));
		*label = "";
		base_str_fini(&s);
	}
	for (size_t i = 0; i < t->ranks.nr; i++) {
		const struct report_world *w = &t->ranks.world[i];
		const char *text[] = {w->missing, w->ended, w->unfinished};
		for (size_t k = 0; k < BASE_COUNT(text); k++) {
			if (!*text[k])
				continue;
			report_wrap(out, st, *label, REPORT_LABEL_WIDTH, text[k]);
			*label = "";
		}
	}
	for (size_t i = 0; i < t->nr_diags; i++) {
		report_wrap(out, st, *label, REPORT_LABEL_WIDTH, t->diag[i].text);
		*label = "";
	}
	if (t->readable_bytes < t->file_bytes) {
		struct base_str s = {0};
		base_str_add(&s, "only ");
		base_str_add_size(&s, t->readable_bytes);
		base_str_add(&s, " of the trace's ");
		base_str_add_size(&s, t->file_bytes);
		base_str_add(&s, " could be read");
		report_wrap(out, st, *label, REPORT_LABEL_WIDTH, base_str_text(&s));
		*label = "";
		base_str_fini(&s);
	}
}

void report_trace_text_caveats(
	struct base_str *out, const struct report_trace *t, const struct report_style *style)
{
	const char *label = "CAVEATS";
	report_trace_caveats(out, t, style, &label);
}

/* Where it took the program's processors, it took its time. */
static void trace_own_cost(struct base_str *s, const struct report_trace *t)
{
	static const struct {
		const char *name, *when;
	} part[] = {{TRACE_COST_BEFORE, "before the program"}, {TRACE_COST_BESIDE, "beside it"},
		{TRACE_COST_AFTER, "after its end"}, {TRACE_COST_SYSTEM, "for kernel events"}};
	const char *between = " (";
	base_str_add(s, ". longpole itself took ");
	report_ns(s, (double)t->own_cpu_ns);
	for (size_t k = 0; k < BASE_COUNT(part); k++)
		for (size_t i = 0; i < t->nr_costs; i++) {
			if (strcmp(t->cost[i].name, part[k].name) != 0)
				continue;
			base_str_add(s, between);
			report_ns(s, (double)t->cost[i].total_ns);
			base_str_addf(s, " %s", part[k].when);
			between = ", ";
		}
	if (*between == ',')
		base_str_add(s, ")");
}

static void trace_cost_part(struct base_str *s, const struct report_cost *c)
{
	base_str_add_count(s, c->n);
	base_str_addf(s, " %s, ", c->name);
	if (c->total_ns)
		report_ns(s, (double)c->total_ns);
	else
		base_str_add(s, "too little to be seen");
	base_str_addf(s, " (%s)", c->method);
}

/* Those that are at least a tenth of all; the others together. */
static void trace_cost_parts(struct base_str *s, const struct report_trace *t)
{
	enum { OF_ALL = 10 };
	uint64_t all_ns = 0, rest_ns = 0;
	size_t nr_rest = 0;
	const char *between = ": ";
	for (size_t i = 0; i < t->nr_costs; i++)
		all_ns += t->cost[i].beside ? 0 : t->cost[i].total_ns;
	for (size_t i = 0; i < t->nr_costs; i++) {
		const struct report_cost *c = &t->cost[i];
		if (c->beside || !c->n)
			continue;
		if (c->total_ns < all_ns / OF_ALL) {
			rest_ns += c->total_ns;
			nr_rest++;
			continue;
		}
		base_str_add(s, between);
		trace_cost_part(s, c);
		between = "; ";
	}
	if (!nr_rest || !rest_ns)
		return;
	base_str_add(s, between);
	report_ns(s, (double)rest_ns);
	base_str_add(s, " for everything else (--json has each part)");
}

/* What recording took of the program's processor time, part by part, and how that is known. */
bool report_cost_caveat(struct base_str *out, const struct report_trace *t,
	const struct report_style *st, const char *label)
{
	struct base_str s = {0};
	if (!t->nr_costs || !t->target_cpu_ns)
		return false;
	base_str_add(&s, "recording cost ");
	base_str_add(&s, t->cost_share < 0.001 ? "" : "about "); /* "<0.1 %" */
	report_percent(&s, t->cost_share);
	if (t->cost_share >= 0.001) {
		base_str_add(&s, " (");
		report_percent(&s, t->cost_share_low);
		base_str_add(&s, " to ");
		report_percent(&s, t->cost_share_high);
		base_str_add(&s, ")");
	}
	base_str_add(&s, " of the program's processor time");
	trace_cost_parts(&s, t);
	trace_own_cost(&s, t);
	report_wrap(out, st, label, REPORT_LABEL_WIDTH, base_str_text(&s));
	base_str_fini(&s);
	return true;
}

void report_quota_words(struct base_str *out, uint64_t quota_ns, uint64_t period_ns)
{
	base_str_addf(out, "its control group may use %.3g processors (",
		(double)quota_ns / (double)period_ns);
	base_str_add_ns(out, quota_ns);
	base_str_add(out, " in each ");
	base_str_add_ns(out, period_ns);
	base_str_add(out, ")");
}

/* Fewer processors than the machine has, and nobody would know why. */
bool report_quota_caveat(struct base_str *out, const struct report_trace *t,
	const struct report_style *st, const char *label)
{
	struct base_str s = {0};
	if (!t->quota_period_ns)
		return false;
	base_str_add_counted(&s, "the machine has %s {processor|processors}; ", t->nr_processors);
	report_quota_words(&s, t->quota_ns, t->quota_period_ns);
	base_str_add(&s, ": whoever had to wait for the next period waited for a processor");
	report_wrap(out, st, label, REPORT_LABEL_WIDTH, base_str_text(&s));
	base_str_fini(&s);
	return true;
}

/* What the others waited in, and where to look for one. */
static void trace_unseen_caveat(
	struct base_str *out, const struct report_trace *t, const struct report_style *st)
{
	enum { SHOWN = 3 };
	struct base_str s = {0};
	size_t nr = st->full || t->nr_unseen < SHOWN ? t->nr_unseen : SHOWN;
	const char *between = "those of which nobody was seen to end them: ";
	for (size_t i = 0; i < nr; i++) {
		const struct report_unseen *u = &t->unseen[i];
		base_str_add(&s, between);
		base_str_add_count(&s, u->nr);
		base_str_addf(&s, " %s%s%s%s (", u->wait, *u->place ? ", " : "", u->place,
			u->several ? " and others" : "");
		report_ns(&s, (double)u->total_ns);
		base_str_addf(&s, "%s; %s at ", u->nr > 1 ? " in all" : "", u->longest_actor);
		base_str_add_ns(&s, u->longest_begin_ns);
		base_str_add(&s, ")");
		between = "; ";
	}
	if (nr < t->nr_unseen)
		base_str_add_counted(&s, "; %s more {kind|kinds} (see --full)", t->nr_unseen - nr);
	if (nr)
		report_wrap(out, st, "", REPORT_LABEL_WIDTH, base_str_text(&s));
	base_str_fini(&s);
}

/* Of all waits of the system, how many it is known of what ended them. */
void report_blocked_caveat(struct base_str *out, const struct report_trace *t,
	const struct report_style *st, const char *label)
{
	struct base_str s = {0};
	const struct model_waits *w = &t->waits;
	if (!w->nr)
		return;
	base_str_add(&s, "of all threads' ");
	base_str_add_counted(&s, "%s {wait|waits}", w->nr);
	base_str_addf(&s, " %.2f %% ended by a waker, or for a cause, that was seen",
		100.0 * (double)(w->nr - w->nr_unseen) / (double)w->nr);
	if (w->nr_hidden)
		base_str_addf(&s,
			"; %.2f %% while a thread ran whose events the kernel does not show",
			100.0 * (double)w->nr_hidden / (double)w->nr);
	report_wrap(out, st, label, REPORT_LABEL_WIDTH, base_str_text(&s));
	base_str_fini(&s);
	trace_unseen_caveat(out, t, st);
}

/* Quoted for a POSIX shell. */
static void trace_add_quoted(struct base_str *s, const char *text)
{
	base_str_add(s, "'");
	for (; *text; text++) {
		if (*text == '\'')
			base_str_add(s, "'\\''");
		else
			base_str_add_bytes(s, text, 1);
	}
	base_str_add(s, "'");
}

void report_shell_word(struct base_str *s, const char *word)
{
	bool plain = *word && *word != '-';
	for (const char *p = word; *p && plain; p++)
		plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			(*p >= '0' && *p <= '9') || strchr("._-/+=:@,", *p);
	if (plain)
		base_str_add(s, word);
	else
		trace_add_quoted(s, word);
}

static void trace_add_option(struct base_str *s, const char *name, const char *value)
{
	if (!value)
		return;
	base_str_addf(s, " --%s=", name);
	report_shell_word(s, value);
}

void report_next_line(struct base_str *out, const struct report_style *st, const char *label,
	const char *command, const struct report_trace *t, const char *edit)
{
	struct base_str s = {0};
	base_str_addf(&s, "longpole %s", command);
	if (t->from_ns)
		base_str_addf(&s, " --from=%lluns", (unsigned long long)t->from_ns);
	if (t->to_ns)
		base_str_addf(&s, " --to=%lluns", (unsigned long long)t->to_ns);
	trace_add_option(&s, "start", t->start_text);
	trace_add_option(&s, "end", t->end_text);
	trace_add_option(&s, "process", t->process_text);
	if (t->connection)
		base_str_addf(&s, " --connection=%llu", (unsigned long long)t->connection);
	base_str_add(&s, " ");
	report_shell_word(&s, t->path);
	if (edit)
		base_str_addf(&s, " %s", edit);
	report_heading(out, st, label);
	base_str_addf(
		out, "%*s%s\n", (int)(REPORT_LABEL_WIDTH - strlen(label)), "", base_str_text(&s));
	base_str_fini(&s);
}
