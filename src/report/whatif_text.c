/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif_text.c - the answers of whatif, in the terminal and as JSON.
 */
#include "report/private.h"

#include <math.h>

static void match_line(struct base_str *out, const struct report_match *m)
{
	if (!m->nr_queues && !m->nr_states)
		return;
	base_str_add(out, "    matches ");
	if (m->nr_queues)
		base_str_addf(out, "%llu {queue|queues}", (unsigned long long)m->nr_queues);
	else {
		base_str_addf(out, "%llu {state|states}, ", (unsigned long long)m->nr_states);
		report_percent(out, m->path_share);
		base_str_add(out, m->apart_ns > m->path_ns
					  ? " of the whole path, not the program's doing"
					  : " of the path");
	}
	if (m->elided) {
		base_str_add(out, ", ");
		report_ns(out, m->waited_ns);
		base_str_add(out, " of waiting in all");
	}
	base_str_addf(out, ": %s%s", m->example, m->nr_states + m->nr_queues > 1 ? ", ..." : "");
	if (m->size) {
		base_str_add(out, ", which held at most ");
		base_str_add_count(out, m->size);
		base_str_add(out, m->size_inferred ? " (inferred: the most that was in it, while "
						     "somebody waited for room)"
						   : " (recorded)");
	}
	if (m->balance.nr) {
		const struct report_balance *b = &m->balance;
		base_str_addf(
			out, b->of_ranks ? "; %u {rank|ranks} " : "; %u {thread|threads} ", b->nr);
		base_str_add(out, b->nr == 1 ? "spends " : "spend ");
		report_ns(out, b->mean_ns);
		base_str_addf(out, " each on average, %s ", m->most);
		report_ns(out, b->most_ns);
	}
	if (m->nr_never_full)
		base_str_add(out, ", for room in which nobody waited: more changes nothing");
	base_str_add(out, "\n");
}

static void interval_words(struct base_str *out, const struct report_style *st, const char *why,
	double low, double high)
{
	if (high > low)
		base_str_addf(out, " (%s%.2f to %.2f%s)", why, low, high, report_times(st));
}

/* The answer: "842 ms -> 436 ms, 1.93x (1.81 to 2.07x)". */
static void best_words(struct base_str *out, const struct report_style *st,
	const struct report_whatif *w, const struct report_best *b)
{
	if (b->none || b->speedup <= 0)
		return;
	base_str_add(out, ": ");
	report_ns(out, w->elapsed_ns);
	base_str_addf(out, " %s ", report_arrow(st));
	report_ns(out, w->elapsed_ns / b->speedup);
	base_str_add(out, ", ");
	report_color_begin(out, st, REPORT_BOLD);
	report_speedup(out, st, b->speedup);
	report_color_end(out, st);
	if (b->no_interval)
		base_str_add(out, " (no interval, since the trace is long)");
	else
		interval_words(out, st, "", b->low, b->high);
}

static void speedup_words(
	struct base_str *out, const struct report_style *st, double length_ns, double speedup)
{
	report_ns(out, length_ns);
	base_str_add(out, ", ");
	report_speedup(out, st, speedup);
}

static void then_words(struct base_str *out, const char *next, double share)
{
	if (!next || !*next)
		return;
	base_str_addf(out, "; then the longest is %s, ", next);
	report_percent(out, share);
}

static void path_line(
	struct base_str *out, const struct report_style *st, const struct report_prediction *p)
{
	base_str_add(out, "    path    ");
	speedup_words(out, st, p->length_ns, p->speedup);
	interval_words(out, st, "estimated from samples: ", p->speedup_low, p->speedup_high);
	if (p->pool)
		base_str_addf(out, "; then %s is never free", p->pool);
	then_words(out, p->next, p->next_share);
	base_str_add(out, "\n");
}

static void replay_line(struct base_str *out, const struct report_style *st,
	const struct report_whatif *w, const struct report_prediction *p)
{
	const struct report_replay_prediction *r = &p->replay;
	base_str_add(out, "    replay  ");
	if (r->nr_stuck) {
		base_str_addf(out,
			"no answer: %llu {actor|actors} would wait for ever%s%s%s, since "
			"what they do next is recorded and not decided anew",
			(unsigned long long)r->nr_stuck, r->stuck ? " (" : "",
			r->stuck ? r->stuck : "", r->stuck ? ")" : "");
		if (r->ray_speedup > 0)
			base_str_addf(out, "; nobody does with less of that change, %.2f%s",
				r->ray_speedup, report_times(st));
	} else {
		speedup_words(out, st, r->length_ns, r->speedup);
		interval_words(out, st, "", r->low, r->high);
	}
	if (p->by_path && !r->nr_stuck && report_lacks_too_much(w, p))
		base_str_add(out, ": not believed, since the trace lacks records");
	then_words(out, r->next, r->next_share);
	base_str_add(out, "\n");
}

static void prediction_lines(struct base_str *out, const struct report_style *st, size_t number,
	const struct report_whatif *w, const struct report_prediction *p)
{
	const struct report_best best = report_best_of(w, p);
	const struct report_replay_prediction *r = &p->replay;
	bool of_replay = best.replay_share > 0.5 && r->made;
	base_str_addf(out, "%zu. ", number);
	for (size_t i = 0; i < p->nr_matches; i++)
		base_str_addf(out, "%s%s", i ? ", " : "", p->match[i].edit);
	best_words(out, st, w, &best);
	if (!st->full)
		then_words(out, of_replay ? r->next : p->next,
			of_replay ? r->next_share : p->next_share);
	base_str_add(out, "\n");
	if (p->by_path && st->full)
		path_line(out, st, p);
	if (r->made && (st->full || r->nr_stuck))
		replay_line(out, st, w, p);
	if (r->made && r->others_stay && !r->nr_stuck)
		base_str_add(out, "    other programs keep the processors for as long as in the "
				  "run: for less, replay finds no end\n");
	if (best.throughput > 0) {
		base_str_add(out, "    in that time it does ");
		report_speedup(out, st, best.throughput);
		interval_words(out, st, "", best.throughput_low, best.throughput_high);
		base_str_add(out, " the work\n");
	}
	for (size_t i = 0; i < p->nr_matches; i++)
		match_line(out, &p->match[i]);
}

static void learned_words(struct base_str *s, const struct report_whatif *w)
{
	if (!w->base.learned)
		return;
	base_str_add(s,
		". Modelled after this run are hand-offs after waits that a change makes "
		"longer or shorter, and where woken threads run and whom they preempt (for ");
	report_percent(s, w->base.plain_share);
	base_str_add(s, " of the answer, by how well either model repeats the run, they wait for "
			"any processor instead)");
	if (!w->base.wake_ns)
		return;
	base_str_add(s, "; waking a sleeper costs its waker ");
	report_ns(s, (double)w->base.wake_ns);
}

static void interval_lines(
	struct base_str *out, const struct report_whatif *w, const struct report_style *st)
{
	struct base_str s = {0};
	if (!w->base.nr_variants)
		base_str_add(&s, "none: the log is too long to simulate it often");
	else
		base_str_addf(&s,
			"from %u more {simulation|simulations}. In some of them waking costs more "
			"or less, or latencies stay as they were. Or what writing the records took "
			"(it is taken off) is a third less or half as much again. Or who looks for "
			"something again and again merely ticks, or works between two looks (where "
			"both take about as long). In others one of the two runs, before or after "
			"the change, varies. Sleepers wake later or sooner there, woken threads "
			"preempt others or wait for any processor, work takes up to %.0f %% more "
			"or less. Added are the %.1f %% by which two runs differ anyway (a usual "
			"amount: one recording cannot know this program's), replay's own error and "
			"what else recording cost",
			w->base.nr_variants, GRAPH_REPLAY_JITTER * 100, REPORT_RUNS_DIFFER * 100);
	report_wrap(out, st, "INTERVALS  ", 11, base_str_text(&s));
	base_str_fini(&s);
}

static void given_words(struct base_str *s, const struct report_whatif *w)
{
	if (!w->base.nr_given)
		return;
	base_str_addf(s,
		"; at %llu {place|places} somebody needs what the trace does not have (records "
		"were "
		"dropped, or the kernel did not show it): it is given there",
		(unsigned long long)w->base.nr_given);
	if (!w->base.given_ns)
		return;
	base_str_add(s, " after the wait that was recorded (");
	base_str_add_ns(s, w->base.given_ns);
	base_str_add(s, " in all), and the intervals include that there was none");
}

static void doubts(struct base_str *s, double own_error)
{
	if (fabs(own_error) >= REPORT_OWN_ERROR_REFUTED)
		base_str_add(s, ": it does not understand this run, so the path's answer counts");
	else if (fabs(own_error) > REPORT_OWN_ERROR_DOUBTED)
		base_str_add(s, ": it hardly understands this run, so the answers lie between "
				"replay's and the path's");
	else if (fabs(own_error) > REPORT_OWN_ERROR_WARNS)
		base_str_add(s, ": something that it does not understand is in this run, so the "
				"intervals reach to the path's answer");
}

static void replay_lines(
	struct base_str *out, const struct report_whatif *w, const struct report_style *st)
{
	struct base_str s = {0};
	if (w->too_long)
		base_str_add(&s,
			"the trace is long: replay was left out, since its log would take much "
			"memory; --method=both makes it all the same");
	else if (w->replayed) {
		base_str_add(&s, "replay simulates the run again; without any edit it is ");
		report_percent(&s, w->base.own_error < 0 ? -w->base.own_error : w->base.own_error);
		base_str_addf(&s, " %s than the run was, on ",
			w->base.own_error < 0 ? "shorter" : "longer");
		if (w->base.nr_processors)
			base_str_add_counted(
				&s, "%s {processor|processors}", w->base.nr_processors);
		else
			base_str_add(&s, "as many processors as it wants");
		if (w->base.nr_processors && w->trace.quota_period_ns) {
			base_str_add(&s, "; ");
			report_quota_words(&s, w->trace.quota_ns, w->trace.quota_period_ns);
		}
		doubts(&s, w->base.own_error);
		given_words(&s, w);
		learned_words(&s, w);
		if (report_replays_more(w))
			base_str_add(&s,
				"; it begins with the trace's first record, long before the "
				"path does: its times are not the path's");
	}
	if (s.length)
		report_wrap(out, st, "METHODS    ", 11, base_str_text(&s));
	if (w->replayed && !w->too_long)
		interval_lines(out, w, st);
	base_str_fini(&s);
}

/* How it was made, in a line, and what should make one doubt it. */
static void how_line(
	struct base_str *out, const struct report_whatif *w, const struct report_style *st)
{
	struct base_str s = {0};
	double own_error = fabs(w->base.own_error);
	if (w->replayed && !w->too_long) {
		base_str_add(&s, "the run was simulated again; without a change that gives its "
				 "length within ");
		report_percent(&s, own_error);
	} else {
		base_str_add(&s, "the longest path, with the edits");
		base_str_add(&s, w->too_long ? "; the trace is too long to simulate it again "
					       "unasked (--method=both)"
					     : "");
	}
	if (w->replayed)
		doubts(&s, own_error);
	if (w->base.nr_given)
		base_str_addf(&s,
			"; in %llu {place|places} the trace lacks what somebody waits for",
			(unsigned long long)w->base.nr_given);
	if (report_own_tells(&w->own)) {
		base_str_add(&s, "; ");
		report_own_words(&s, &w->own);
	}
	base_str_add(&s, " (--explain)");
	report_wrap(out, st, "How        ", 11, base_str_text(&s));
	base_str_reset(&s);
	if (w->base.nr_processors && w->trace.quota_period_ns) {
		report_quota_words(&s, w->trace.quota_ns, w->trace.quota_period_ns);
		report_wrap(out, st, "! ", 2, base_str_text(&s));
	}
	base_str_fini(&s);
}

static const char *whatif_caveat(const struct report_style *st)
{
	return st->full ? "CAVEATS    " : "! ";
}

static size_t whatif_indent(const struct report_style *st)
{
	return st->full ? 11 : 2;
}

/* What a program means by a time limit no record says. */
static void timed_lines(
	struct base_str *out, const struct report_whatif *w, const struct report_style *st)
{
	const double tells = 0.01;
	struct base_str s = {0};
	if (w->timed_share - w->polled_share < tells)
		return;
	report_percent(&s, w->timed_share);
	base_str_add(&s,
		" of the path are waits that a time limit or a signal ended. A change leaves "
		"them as long as they were. Where the program waits for a fixed time (a "
		"timer, the next tick), the gain is less, or nothing");
	report_wrap(out, st, whatif_caveat(st), whatif_indent(st), base_str_text(&s));
	base_str_fini(&s);
}

static void box_lines(
	struct base_str *out, const struct report_whatif *w, const struct report_style *st)
{
	struct base_str s = {0};
	if (report_box_words(&s, &w->box))
		report_wrap(out, st, whatif_caveat(st), whatif_indent(st), base_str_text(&s));
	base_str_fini(&s);
}

static void polled_lines(
	struct base_str *out, const struct report_whatif *w, const struct report_style *st)
{
	struct base_str s = {0};
	if (w->polled_share < REPORT_POLLS_FROM)
		return;
	report_polled_words(&s, w->polled_share);
	base_str_add(&s, w->replayed && !w->too_long
				 ? ". The intervals reach to what would be if they ended as much "
				   "sooner, or later, as the change allows"
				 : ". The path's answer does not know of it");
	report_wrap(out, st, whatif_caveat(st), whatif_indent(st), base_str_text(&s));
	base_str_fini(&s);
}

/* Does the program count them, or do one piece of work for however many? */
static void late_timer_lines(
	struct base_str *out, const struct report_whatif *w, const struct report_style *st)
{
	struct base_str s = {0};
	if (!w->late_timer_reads)
		return;
	base_str_add_counted(&s,
		"%s {read of a timerfd came late and found|reads of timerfds came late and found} "
		"several periods over. With shorter work the program waits for each period by "
		"itself: the gain is less, or nothing where it counts them",
		w->late_timer_reads);
	report_wrap(out, st, whatif_caveat(st), whatif_indent(st), base_str_text(&s));
	base_str_fini(&s);
}

/* For whom nobody knows. */
static void unexplained_lines(
	struct base_str *out, const struct report_whatif *w, const struct report_style *st)
{
	const double tells = 0.01;
	struct base_str s = {0};
	if (!w->replayed || w->base.unexplained_ns < tells * w->elapsed_ns)
		return;
	report_percent(&s, w->base.unexplained_ns / w->elapsed_ns);
	base_str_add(&s,
		" of the path are waits that no recorded event ended. They may wait for what is "
		"changed: the intervals include that they end sooner, too");
	report_wrap(out, st, whatif_caveat(st), whatif_indent(st), base_str_text(&s));
	base_str_fini(&s);
}

void report_whatif_text(
	struct base_str *out, const struct report_whatif *w, const struct report_style *style)
{
	for (size_t i = 0; i < w->nr_predictions; i++)
		prediction_lines(out, style, i + 1, w, &w->prediction[i]);
	if (style->full)
		replay_lines(out, w, style);
	else
		how_line(out, w, style);
	box_lines(out, w, style);
	polled_lines(out, w, style);
	timed_lines(out, w, style);
	late_timer_lines(out, w, style);
	unexplained_lines(out, w, style);
	report_spins_text(out, &w->spins, style, whatif_caveat(style),
		w->replayed && !w->too_long
			? "Run longpole spin. The intervals reach to what would be if what they "
			  "wait for came as much sooner as the change allows"
			: "Run longpole spin. The path's answer does not know of it: what makes "
			  "the other thread quicker may gain more");
	report_trace_text_caveats(out, &w->trace, style);
}

static json_t *whatif_best_json(const struct report_whatif *w, const struct report_prediction *p,
	const struct base_table *table)
{
	struct report_best b = report_best_of(w, p);
	return base_table_json(table, &b, NULL, 0);
}

#include "report/whatif.def"

json_t *report_whatif_json(const struct report_whatif *w)
{
	return report_envelope(report_whatif_document.name, &w->trace,
		base_table_json(&report_whatif_document, w, w, 0));
}
