/* SPDX-License-Identifier: Apache-2.0 */
/* locks_text.c - struct report_locks for people. */
#include "report/locks/locks_private.h"

#include <math.h>
#include <string.h>

enum { NAME_MIN = 14, NAME_WANTED = 40, BIN_BAR = 18, SITES_SHOWN = 5 };

/* ---- the finding ----------------------------------------------------------------------------- */

static const struct report_lock *worst_of_path(const struct report_locks *l)
{
	const struct report_lock *best = NULL;
	for (size_t i = 0; i < l->nr_locks; i++)
		if (l->lock[i].path_ns > 0 && (!best || l->lock[i].path_ns > best->path_ns))
			best = &l->lock[i];
	return best;
}

/* An interpreter's threads wait for its condition variable, not for the lock behind it. */
static void other_waits(struct base_str *s, const struct report_locks *l)
{
	uint64_t wait_ns = 0;
	for (size_t i = 0; i < l->nr_conds; i++)
		wait_ns += l->cond[i].wait.total_ns;
	if (!wait_ns)
		return;
	base_str_add(s, "; for condition variables and semaphores threads waited ");
	report_ns(s, (double)wait_ns);
	base_str_add(s, ", longest in all for ");
	base_str_add(s, l->cond[0].name);
}

static const struct report_lock *most_waited(const struct report_locks *l)
{
	const struct report_lock *best = NULL;
	for (size_t i = 0; i < l->nr_locks; i++)
		if (!best || l->lock[i].use.wait.total_ns > best->use.wait.total_ns)
			best = &l->lock[i];
	return best;
}

static void gain_words(
	struct base_str *s, const struct report_lock *x, const struct report_style *st)
{
	if (!x->halved.tried)
		return;
	double gain = report_lock_gain(x);
	if (gain < 1.005)
		base_str_add(s, "; held half as long, the run would take as long as now");
	else
		base_str_addf(s, "; held half as long, the run would be %.2f%s as fast", gain,
			report_times(st));
	double share = x->halved.answer.best.replay_share;
	base_str_add(s, share >= 1   ? " (predicted by replay)"
			: share <= 0 ? " (predicted by the path)"
				     : " (predicted by replay and the path)");
}

static void locks_text_finding(
	struct base_str *out, const struct report_locks *l, const struct report_style *st)
{
	struct base_str s = {0};
	const struct report_lock *path = worst_of_path(l), *waited = most_waited(l);
	if (!l->nr_locks)
		base_str_add(&s,
			l->nr_conds ? "No lock was taken that could be seen, only waits "
				      "(locks of Rust's or C++20's "
				      "library are calls only where they wait)."
			: l->has & REPORT_LOCKS_events
				? "No lock was taken that could be seen."
				: "No lock was taken that could be seen. Locks of Rust's or "
				  "C++20's "
				  "library are no calls that can be counted: longpole record sees "
				  "those that are waited for.");
	else if (path && path->path_ns >= REPORT_LOCKS_PATH_LEAST * l->path_ns) {
		base_str_addf(&s, "%s is ", path->name);
		report_percent(&s, report_own_share(&l->own, path->own_path_ns));
		base_str_add(&s, " of the critical path (observed)");
		gain_words(&s, path, st);
		base_str_add(&s, ".");
	} else if (waited->use.wait.nr) {
		base_str_addf(&s, "%s is waited for most: ", waited->name);
		report_percent(
			&s, (double)waited->use.contended /
				    (double)(waited->use.acquired ? waited->use.acquired : 1));
		base_str_add(&s, " of its acquisitions found it taken, ");
		report_ns(&s, (double)waited->use.wait.total_ns);
		base_str_add(&s,
			l->has & REPORT_LOCKS_events ? " in all (observed)" : " in all (counted)");
		if (waited->use.failed)
			base_str_add_counted(&s, ", %s {try|tries} given up", waited->use.failed);
		if (l->has & REPORT_LOCKS_path)
			base_str_add(&s, "; the critical path has hardly any lock");
		base_str_add(&s, ".");
	} else {
		base_str_addf(&s, "No lock was waited for: %zu {kind|kinds} of lock", l->nr_locks);
		if (l->all.failed)
			base_str_add_counted(&s,
				"; %s {try|tries} to take one without waiting failed",
				l->all.failed);
		else
			base_str_add(&s, ", each free whenever it was asked for");
		base_str_addf(&s, " (%s)", l->has & REPORT_LOCKS_events ? "observed" : "counted");
		other_waits(&s, l);
		base_str_add(&s, ".");
	}
	report_color_begin(out, st, REPORT_BOLD);
	base_str_add(out, base_str_text(&s));
	report_color_end(out, st);
	base_str_add(out, "\n");
	base_str_fini(&s);
}

/* ---- numbers of the whole program (seed 001, table 2 and figure 5) --------------------------- */

static void locks_text_rate(struct base_str *s, double value)
{
	if (value >= 1000)
		base_str_add_count(s, (uint64_t)llround(value));
	else
		base_str_addf(s, value >= 100 ? "%.0f" : value >= 1 ? "%.2f" : "%.3g", value);
}

static void counts_line(
	struct base_str *out, const struct report_locks *l, const struct report_style *st)
{
	struct base_str s = {0};
	uint64_t nr_threads = l->nr_threads_locking ? l->nr_threads_locking : 1;
	base_str_add_counted(&s, "%s {lock|locks} (static; ", l->nr_static);
	locks_text_rate(&s, (double)l->nr_static / (double)nr_threads);
	base_str_addf(&s, " a thread that locks), ");
	base_str_add_counted(&s, "%s {acquisition|acquisitions} (dynamic)", l->all.acquired);
	if (l->cpu_ns) {
		double ticks = (double)l->cpu_ns * (double)l->tick_hz / 1e9;
		base_str_add(&s, " = ");
		if (ticks > 0) {
			locks_text_rate(&s, (double)l->all.acquired / ticks * 1e4);
			base_str_add(&s, " per 10,000 ticks, ");
		}
		locks_text_rate(&s, (double)l->all.acquired / (double)l->cpu_ns * 1e6);
		base_str_add(&s, " per ms of processor time");
	}
	if (l->all.hold.nr) {
		uint64_t ns = (uint64_t)report_lock_hold_mean_ns(&l->all);
		base_str_add(&s, "; held ");
		report_ns(&s, (double)ns);
		if (l->tick_hz) {
			base_str_add(&s, " (");
			base_str_add_counted(&s, "%s {tick|ticks})",
				(uint64_t)((double)ns * (double)l->tick_hz / 1e9));
		}
		base_str_add(&s, " on average");
	}
	if (l->all.acquired) {
		base_str_add(&s, "; ");
		report_percent(&s, (double)l->all.contended / (double)l->all.acquired);
		base_str_add(&s, " contended");
	}
	report_wrap(out, st, "LOCKS", REPORT_LABEL_WIDTH, base_str_text(&s));
	base_str_fini(&s);
}

static void share_words(struct base_str *s, uint64_t ns, uint64_t of_ns, const char *what)
{
	report_ns(s, (double)ns);
	if (of_ns) {
		base_str_add(s, " (");
		report_percent(s, (double)ns / (double)of_ns);
		base_str_add(s, ")");
	}
	base_str_add(s, what);
}

static void time_line(
	struct base_str *out, const struct report_locks *l, const struct report_style *st)
{
	struct base_str s = {0};
	if (l->cpu_ns) {
		base_str_addf(&s, "of ");
		report_ns(&s, (double)l->cpu_ns);
		base_str_add(&s, " of processor time: ");
	}
	bool of_all = !(l->has & REPORT_LOCKS_some);
	if (of_all && l->has & REPORT_LOCKS_events && l->has & REPORT_LOCKS_running) {
		share_words(&s, l->held_running_ns, l->cpu_ns, " with at least one lock held; ");
		report_ns(&s, (double)l->held_ns);
		base_str_add(&s, " of holds by the clock, ");
	} else if (of_all && l->has & REPORT_LOCKS_held) {
		report_ns(&s, (double)l->held_ns);
		base_str_add(&s, " by the clock with at least one lock held, ");
	} else if (l->all.hold.nr) {
		double error_ns = 1.96 * sqrt(l->all.hold_variance);
		report_ns(&s, (double)report_lock_hold_ns(&l->all));
		if (error_ns > 0) {
			base_str_addf(&s, " %s ", st->utf8 ? "\xc2\xb1" : "+-");
			report_ns(&s, error_ns);
		}
		base_str_addf(&s, " of holds by the clock, nested ones counted twice%s, ",
			l->all.hold.nr < report_lock_holds(&l->all) ? " (estimated)" : "");
	}
	if (l->all.lock_call.nr) {
		report_ns(&s, (double)l->all.lock_call.total_ns);
		base_str_add(&s, " inside lock functions, ");
		report_ns(&s, (double)l->all.unlock_call.total_ns);
		base_str_add(&s, " inside unlock functions, ");
	}
	report_ns(&s, (double)l->wait_ns);
	base_str_add(&s, " waited");
	report_wrap(out, st, "TIME", REPORT_LABEL_WIDTH, base_str_text(&s));
	base_str_fini(&s);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void title(struct base_str *out, const struct report_style *st, const char *text)
{
	base_str_add(out, "\n");
	report_color_begin(out, st, REPORT_BOLD);
	base_str_add(out, text);
	report_color_end(out, st);
	base_str_add(out, "\n");
}

static void site_lines(struct base_str *out, struct base_layout l, const struct report_lock *x,
	size_t limit, const struct report_style *st)
{
	l.table = &report_lock_site_table;
	for (size_t i = 0; i < x->nr_sites && (!limit || i < limit); i++) {
		struct base_str name = {0};
		base_str_addf(&name, "  %s", x->site[i].where);
		report_place_cell(out, st, base_str_text(&name), l.name_width);
		base_layout_cells(out, &l, &x->site[i]);
		base_str_add(out, "\n");
		base_str_fini(&name);
	}
	if (limit && x->nr_sites > limit)
		base_str_add_counted(out, "  ... %s more {place|places} (--all shows {it|them})\n",
			x->nr_sites - limit);
}

static struct base_layout locks_text_layout(
	const struct report_locks *l, const struct base_table *table, const struct report_style *st)
{
	return (struct base_layout){
		.table = table, .all = l, .has = l->has, .rank_max = UINT8_MAX, .utf8 = st->utf8};
}

static void lock_table(struct base_str *out, const struct report_locks *l,
	const struct report_locks_view *view, const struct report_style *st)
{
	struct base_layout t = locks_text_layout(l, &report_lock_table, st);
	size_t nr = view->limit && view->limit < l->nr_locks ? view->limit : l->nr_locks;
	size_t longest = NAME_MIN;
	for (size_t i = 0; i < nr; i++) {
		size_t w = report_width(l->lock[i].name) + 6;
		longest = w > longest ? w : longest;
		for (size_t k = 0; view->sites && k < l->lock[i].nr_sites; k++) {
			w = report_width(l->lock[i].site[k].where) + 2;
			longest = w > longest ? w : longest;
		}
	}
	base_layout_fit(&t, st->columns, longest, NAME_WANTED, NAME_MIN);
	base_str_add(out, "\n");
	report_table_head(out, &t, st);
	for (size_t i = 0; i < nr; i++) {
		report_table_line(out, &t, &l->lock[i], st);
		if (view->sites)
			site_lines(out, t, &l->lock[i], view->limit ? SITES_SHOWN : 0, st);
	}
	if (nr < l->nr_locks)
		base_str_addf(out, "... %zu more (--all shows them)\n", l->nr_locks - nr);
}

static void cond_table(struct base_str *out, const struct report_locks *l,
	const struct report_locks_view *view, const struct report_style *st)
{
	struct base_layout t = locks_text_layout(l, &report_lock_cond_table, st);
	size_t numbers = base_layout_width(&t);
	size_t nr = view->limit && view->limit < l->nr_conds ? view->limit : l->nr_conds;
	if (!nr)
		return;
	t.name_width = st->columns > numbers + NAME_MIN ? st->columns - numbers : NAME_MIN;
	base_str_add(out, "\n");
	report_table_lines(out, &t, l->cond, nr, 0, st);
}

static void thread_table(struct base_str *out, const struct report_locks *l,
	const struct report_locks_view *view, const struct report_style *st)
{
	struct base_layout t = locks_text_layout(l, &report_lock_thread_table, st);
	t.name_width = 34;
	title(out, st, l->has & REPORT_LOCKS_some ? "THREADS, with all locks" : "THREADS");
	report_table_lines(out, &t, l->thread, l->nr_threads, view->limit, st);
}

/* ---- histograms (seed 001, figure 6) --------------------------------------------------------- */

static uint64_t locks_text_sum_of(const uint64_t *bin, uint64_t *ret_first, uint64_t *ret_last)
{
	uint64_t sum = 0;
	for (uint64_t i = 0; i < REPORT_LOCK_BINS; i++) {
		if (!bin[i])
			continue;
		if (!sum)
			*ret_first = i;
		*ret_last = i;
		sum += bin[i];
	}
	return sum;
}

static void bin_cell(struct base_str *out, const struct report_style *st, const uint64_t *bin,
	uint64_t i, uint64_t sum)
{
	struct base_str s = {0};
	double share = sum ? (double)bin[i] / (double)sum : 0;
	report_bar(out, st, share, BIN_BAR);
	if (bin[i])
		base_str_add_count(&s, bin[i]);
	report_right(out, base_str_text(&s), 11);
	base_str_fini(&s);
}

static void locks_text_histogram(struct base_str *out, const struct report_style *st,
	const char *what, const uint64_t *dynamic, const uint64_t *by_static)
{
	uint64_t first = 0, last = 0, first2 = REPORT_LOCK_BINS, last2 = 0;
	uint64_t sum = locks_text_sum_of(dynamic, &first, &last);
	uint64_t sum2 = locks_text_sum_of(by_static, &first2, &last2);
	if (!sum)
		return;
	first = sum2 && first2 < first ? first2 : first;
	last = last2 > last ? last2 : last;
	title(out, st, what);
	report_color_begin(out, st, REPORT_DIM);
	base_str_addf(out, "%-12s %-*s     dynamic   %-*s      static\n", "from", BIN_BAR,
		"each time", BIN_BAR, "each lock's mean");
	report_color_end(out, st);
	for (uint64_t i = first; i <= last; i++) {
		struct base_str s = {0};
		base_str_add_ns(&s, i ? (uint64_t)1 << i : 0);
		report_cell(out, st, base_str_text(&s), 12, true);
		base_str_add(out, " ");
		bin_cell(out, st, dynamic, i, sum);
		base_str_add(out, "   ");
		bin_cell(out, st, by_static, i, sum2);
		base_str_add(out, "\n");
		base_str_fini(&s);
	}
}

static void locks_text_histograms(
	struct base_str *out, const struct report_locks *l, const struct report_style *st)
{
	const struct report_lock_bins *d = &l->dynamic, *s = &l->by_static;
	const struct report_lock_use *all = &l->all;
	bool is_sample = !(l->has & REPORT_LOCKS_held) && all->hold.nr < report_lock_holds(all);
	locks_text_histogram(out, st, is_sample ? "HOLDS of the sample that was timed" : "HOLDS",
		d->hold, s->hold);
	locks_text_histogram(out, st, "WAITS", d->wait, s->wait);
	locks_text_histogram(out, st, "INSIDE LOCK FUNCTIONS", d->lock_call, s->lock_call);
	locks_text_histogram(out, st, "INSIDE UNLOCK FUNCTIONS", d->unlock_call, s->unlock_call);
}

/* ---- how it knows ---------------------------------------------------------------------------- */

static void known_line(
	struct base_str *out, const struct report_locks *l, const struct report_style *st)
{
	struct base_str s = {0};
	if (l->has & REPORT_LOCKS_events)
		base_str_add(&s, "every operation was recorded with its time");
	if (l->has & REPORT_LOCKS_tallies)
		base_str_addf(&s,
			"%soperations were counted exactly inside the program%s; every wait "
			"that was seen to begin was timed. Only an order of events could tell "
			"the critical path%s: longpole locks --mode=stamps -- PROG",
			l->has & REPORT_LOCKS_events ? "; " : "",
			l->has & REPORT_LOCKS_held ? ", each hold that ended was timed (what the "
						     "clock itself takes is taken off)"
			: l->all.hold.nr           ? ", of the holds a sample was timed (what the "
						     "clock itself takes is taken off)"
						   : ", holds were not timed",
			l->has & REPORT_LOCKS_held ? " and convoys"
						   : ", convoys and time with any lock held");
	if (l->has & REPORT_LOCKS_path && report_own_tells(&l->own)) {
		base_str_add(&s, "; ");
		report_own_words(&s, &l->own);
	}
	if (l->has & REPORT_LOCKS_path)
		base_str_add(&s,
			"; path: share of the critical path in holds of it, waits for it and "
			"its hand-off; halved: how fast the run would be with half of that");
	if (l->has & REPORT_LOCKS_replay) {
		base_str_add(&s, " (replay, which without a change is ");
		report_percent(&s, fabs(l->own_error));
		base_str_addf(&s, " off%s)",
			report_replay_share(l->own_error) <= 0 ? ": the path is believed instead"
			: report_replay_share(l->own_error) < 1
				? ": between its answer and the path's"
				: "");
	} else if (l->has & REPORT_LOCKS_path)
		base_str_add(&s, " (longest path with shorter holds)");
	if (l->has & REPORT_LOCKS_inner)
		base_str_add(&s,
			"; the trace is long: calls of the kernel and inner locks are not counted "
			"to the lock that is held meanwhile (--max-memory, or a window, makes it "
			"so)");
	if (l->floor_bare_ps && l->floor_stamps_ps) {
		base_str_addf(&s,
			". On this machine lock and unlock take %.1f ns, with two bare time "
			"stamps %.1f ns: no tool that times holds can cost less",
			(double)l->floor_bare_ps / 1e3, (double)l->floor_stamps_ps / 1e3);
	}
	if (s.length)
		report_wrap(out, st, "KNOWN BY", REPORT_LABEL_WIDTH, base_str_text(&s));
	base_str_fini(&s);
}

/* Of a server the path leads through its clients. */
/* The place that had it longest; NULL: none is known. */
static const struct report_lock_site *longest_site(const struct report_lock *r)
{
	const struct report_lock_site *longest = NULL;
	for (size_t i = 0; i < r->nr_sites; i++)
		if (!longest || r->site[i].use.hold.max_ns > longest->use.hold.max_ns)
			longest = &r->site[i];
	return longest && longest->where && *longest->where != '?' ? longest : NULL;
}

/* How long an event loop was held, and by what: meanwhile nothing else has its turn. */
static void locks_text_loop(struct base_str *out, const struct report_locks *l,
	const struct report_lock *r, const struct report_style *st)
{
	struct base_str s = {0};
	const struct report_lock_site *by = longest_site(r);
	base_str_addf(&s, "%s was held for ", r->name);
	report_ns(&s, (double)r->use.hold.total_ns);
	if (l->elapsed_ns) {
		base_str_add(&s, " (");
		report_percent(&s, (double)r->use.hold.total_ns / (double)l->elapsed_ns);
		base_str_add(&s, " of the run)");
	}
	base_str_add(&s, ", at most for ");
	report_ns(&s, (double)r->use.hold.max_ns);
	if (by)
		base_str_addf(&s, ", by %s", by->where);
	if (r->mostly)
		base_str_addf(&s, "; on the critical path mostly %s", r->mostly);
	report_wrap(out, st, "LOOP", REPORT_LABEL_WIDTH, base_str_text(&s));
	base_str_fini(&s);
}

static void locks_text_loops(
	struct base_str *out, const struct report_locks *l, const struct report_style *st)
{
	for (size_t i = 0; i < l->nr_locks; i++)
		if (l->lock[i].is_loop && l->lock[i].use.hold.nr)
			locks_text_loop(out, l, &l->lock[i], st);
}

static void outside_line(
	struct base_str *out, const struct report_locks *l, const struct report_style *st)
{
	struct base_str s = {0};
	if (!(l->has & REPORT_LOCKS_path) || l->outside_ns < 0.2 * l->path_ns)
		return;
	report_percent(&s, l->outside_ns / l->path_ns);
	base_str_add(&s, " of the critical path waits for somebody who was not recorded: to see "
			 "what holds a "
			 "server back, record it together with its clients, or choose the path's "
			 "end (--end)");
	report_wrap(out, st, "CAUTION", REPORT_LABEL_WIDTH, base_str_text(&s));
	base_str_fini(&s);
}

static void full_line(
	struct base_str *out, const struct report_locks *l, const struct report_style *st)
{
	struct base_str s = {0};
	if (!l->nr_full)
		return;
	base_str_add_counted(&s,
		"%s {acquisition is of no row: its|acquisitions are of no row: their} thread used "
		"more locks than its table has places",
		l->nr_full);
	report_wrap(out, st, "LOST", REPORT_LABEL_WIDTH, base_str_text(&s));
	base_str_fini(&s);
}

void report_locks_text(struct base_str *out, const struct report_locks *l,
	const struct report_locks_view *view, const struct report_style *style)
{
	locks_text_finding(out, l, style);
	if (l->nr_locks) {
		counts_line(out, l, style);
		time_line(out, l, style);
		locks_text_loops(out, l, style);
		lock_table(out, l, view, style);
	}
	report_locks_events_text(out, l, view, style);
	cond_table(out, l, view, style);
	if (view->threads)
		thread_table(out, l, view, style);
	if (view->histograms)
		locks_text_histograms(out, l, style);
	base_str_add(out, "\n");
	if (l->nr_locks)
		known_line(out, l, style);
	full_line(out, l, style);
	outside_line(out, l, style);
	report_trace_text_caveats(out, &l->trace, style);
	bool path = worst_of_path(l) &&
		    worst_of_path(l)->path_ns >= REPORT_LOCKS_PATH_LEAST * l->path_ns;
	if (path) {
		struct base_str edit = {0};
		base_str_add(&edit, "scale ");
		report_shell_word(&edit, worst_of_path(l)->name);
		base_str_add(&edit, "=-50%");
		report_next_line(out, style, "NEXT", "whatif", &l->trace, base_str_text(&edit));
		base_str_fini(&edit);
	}
	if (l->nr_locks && !view->sites)
		report_next_line(out, style, path ? "" : "NEXT", "locks --site", &l->trace, NULL);
}
