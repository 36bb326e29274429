/* SPDX-License-Identifier: Apache-2.0 */
/* diff.c - quantities of many runs of many versions; what moved. */
#include "report/diff.h"
#include "report/locks/locks_private.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct report_diff *report_diff_new(void)
{
	return report_answer_new(sizeof(struct report_diff));
}

struct report_diff *report_diff_free(struct report_diff *d)
{
	if (!d)
		return NULL;
	for (size_t i = 0; i < REPORT_DIFF_VERSIONS_MAX; i++)
		base_free(d->path[i]);
	base_free(d->quantity);
	base_map_fini(&d->by_name);
	return report_answer_free(d);
}

enum base_status report_diff_version(struct report_diff *d, const char *label, struct base_err *err)
{
	if (d->nr_versions == REPORT_DIFF_VERSIONS_MAX)
		return base_fail(
			err, BASE_ERR_LIMIT, "more than %d versions", REPORT_DIFF_VERSIONS_MAX);
	d->label[d->nr_versions] = report_clean(d->arena, label);
	if (!d->label[d->nr_versions])
		return report_no_memory(err);
	d->nr_versions++;
	return BASE_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static uint64_t diff_hash_of(const char *text, uint64_t hash)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u; /* FNV-1a */
	return hash;
}

static enum base_status diff_find(struct report_diff *d, const char *key, const char *name,
	enum report_unit unit, bool detail, struct report_quantity **ret, struct base_err *err)
{
	uint64_t at, hi = diff_hash_of(key, 0xcbf29ce484222325u), lo = diff_hash_of(name, hi);
	if (base_map_get(&d->by_name, hi, lo, &at)) {
		*ret = &d->quantity[at];
		return BASE_OK;
	}
	at = d->nr_quantities;
	if (base_grow(&d->quantity, &d->capacity, at + 1, sizeof *d->quantity) != BASE_OK ||
		base_map_put(&d->by_name, hi, lo, at) != BASE_OK)
		return report_no_memory(err);
	struct report_quantity *q = &d->quantity[at];
	*q = (struct report_quantity){.key = report_clean(d->arena, key),
		.name = report_clean(d->arena, name),
		.unit = unit,
		.detail = detail,
		.version = report_array(d->arena, REPORT_DIFF_VERSIONS_MAX, sizeof *q->version)};
	if (!q->key || !q->name || !q->version)
		return report_no_memory(err);
	d->nr_quantities++;
	*ret = q;
	return BASE_OK;
}

enum base_status report_diff_add(struct report_diff *d, const char *key, const char *name,
	enum report_unit unit, bool detail, double value, struct base_err *err)
{
	struct report_quantity *q = NULL;
	enum base_status s = diff_find(d, key, name, unit, detail, &q, err);
	if (s != BASE_OK)
		return s;
	struct report_diff_point *p = &q->version[d->nr_versions - 1];
	if (!p->run)
		p->run = report_array(d->arena, REPORT_DIFF_RUNS_MAX, sizeof *p->run);
	if (!p->run)
		return report_no_memory(err);
	if (p->nr_runs < REPORT_DIFF_RUNS_MAX && isfinite(value))
		p->run[p->nr_runs++] = value;
	return BASE_OK;
}

struct adder {
	struct report_diff *d;
	struct base_err *err;
	enum base_status status;
};

static void diff_number(struct adder *a, const char *key, const char *name, enum report_unit unit,
	bool known, double value)
{
	if (known && a->status == BASE_OK)
		a->status = report_diff_add(a->d, key, name, unit, false, value, a->err);
}

static double diff_mean(const struct report_times *t)
{
	return t->nr ? (double)t->total_ns / (double)t->nr : 0;
}

/* Seed 001, figure 10 and table 2. */
static void whole_program(struct adder *a, const struct report_locks *l)
{
	const struct report_lock_use *u = &l->all;
	bool held = l->has & REPORT_LOCKS_held;
	double cpu_ms = (double)l->cpu_ns / 1e6, acquired = (double)u->acquired;
	double threads = l->nr_threads_locking ? (double)l->nr_threads_locking : 1;
	diff_number(a, "elapsed", "length of the run", REPORT_UNIT_ns, true, (double)l->elapsed_ns);
	diff_number(a, "cpu", "processor time", REPORT_UNIT_ns, l->cpu_ns, (double)l->cpu_ns);
	diff_number(
		a, "static_locks", "static locks", REPORT_UNIT_count, true, (double)l->nr_static);
	diff_number(a, "static_locks_per_thread", "static locks a thread that locks",
		REPORT_UNIT_rate, true, (double)l->nr_static / threads);
	diff_number(a, "dynamic_locks", "dynamic locks (acquisitions)", REPORT_UNIT_count, true,
		acquired);
	diff_number(a, "dynamic_locks_per_ms", "acquisitions per ms of processor time",
		REPORT_UNIT_rate, cpu_ms > 0, cpu_ms > 0 ? acquired / cpu_ms : 0);
	diff_number(a, "contended", "contended share of acquisitions", REPORT_UNIT_share,
		u->acquired, u->acquired ? (double)u->contended / acquired : 0);
	diff_number(a, "hold_mean", "average hold of a lock", REPORT_UNIT_ns, u->hold.nr,
		report_lock_hold_mean_ns(u));
	diff_number(a, "hold_total", "time of all holds", REPORT_UNIT_ns, u->hold.nr,
		(double)report_lock_hold_ns(u));
	diff_number(a, "held_any", "time with at least one lock held", REPORT_UNIT_ns, held,
		(double)l->held_ns);
	diff_number(a, "wait_mean", "average wait for a lock", REPORT_UNIT_ns, u->wait.nr,
		diff_mean(&u->wait));
	diff_number(
		a, "wait_total", "time waited for locks", REPORT_UNIT_ns, true, (double)l->wait_ns);
	diff_number(a, "acquire_mean", "average time inside a lock function", REPORT_UNIT_ns,
		u->lock_call.nr, diff_mean(&u->lock_call));
	diff_number(a, "acquire_total", "time inside lock functions", REPORT_UNIT_ns,
		u->lock_call.nr, (double)u->lock_call.total_ns);
	diff_number(a, "release_mean", "average time inside an unlock function", REPORT_UNIT_ns,
		u->unlock_call.nr, diff_mean(&u->unlock_call));
}

/* ---- names ----------------------------------------------------------------------------------- */

void report_diff_name(struct base_str *out, const char *name)
{
	for (const char *p = name; *p;) {
		size_t nr_digits = strspn(p + 1, "0123456789");
		char after = p[1 + nr_digits];
		bool padded = p[1] == '0' && nr_digits > 1; /* a file's: binlog.000004 */
		bool line = *p == ':' && after == ')';
		bool local = *p == '.' && p > name &&
			     (isalpha((unsigned char)p[-1]) || p[-1] == '_') && !padded &&
			     (!after || after == '+' || after == ' ');
		if (nr_digits && (line || local))
			p += 1 + nr_digits;
		else
			base_str_add_bytes(out, p++, 1);
	}
}

struct merged { /* locks of one name */
	struct report_lock_use use;
	double path_ns;
};

static void one_number(struct adder *a, const char *of, const char *key, const char *what,
	enum report_unit unit, bool known, double value)
{
	struct base_str name = {0}, full = {0};
	base_str_addf(&name, "%s %s", what, of);
	base_str_addf(&full, "%s:%s", key, of);
	if (name.failed || full.failed)
		a->status = report_no_memory(a->err);
	if (known && a->status == BASE_OK)
		a->status = report_diff_add(a->d, base_str_text(&full), base_str_text(&name), unit,
			true, value, a->err);
	base_str_fini(&name);
	base_str_fini(&full);
}

static void one_lock(
	struct adder *a, const struct report_locks *l, const char *name, const struct merged *x)
{
	one_number(a, name, "acquired", "acquisitions of", REPORT_UNIT_count, true,
		(double)x->use.acquired);
	one_number(a, name, "hold", "average hold of", REPORT_UNIT_ns, x->use.hold.nr,
		diff_mean(&x->use.hold));
	one_number(a, name, "wait", "time waited for", REPORT_UNIT_ns, true,
		(double)x->use.wait.total_ns);
	one_number(a, name, "path", "share of the critical path of", REPORT_UNIT_share,
		l->has & REPORT_LOCKS_path, l->path_ns > 0 ? x->path_ns / l->path_ns : 0);
}

uint32_t report_diff_intern(struct base_strtab *names, const char *name)
{
	struct base_str s = {0};
	uint32_t id = 0;
	report_diff_name(&s, *name ? name : "?");
	if (s.failed || base_strtab_intern(names, base_str_text(&s), s.length, &id) != BASE_OK)
		id = 0;
	base_str_fini(&s);
	return id;
}

static void each_lock(struct adder *a, const struct report_locks *l)
{
	struct merged *all = base_alloc((l->nr_locks + 1) * sizeof *all);
	struct base_strtab *names = base_strtab_new();
	for (size_t i = 0; all && names && i < l->nr_locks; i++) {
		uint32_t id = report_diff_intern(names, l->lock[i].name);
		report_lock_use_add(&all[id].use, &l->lock[i].use);
		all[id].path_ns += l->lock[i].path_ns;
		if (!id)
			a->status = report_no_memory(a->err);
	}
	if (!all || !names)
		a->status = report_no_memory(a->err);
	for (uint32_t id = 1; a->status == BASE_OK && id < base_strtab_count(names); id++)
		one_lock(a, l, base_strtab_get(names, id), &all[id]);
	base_strtab_free(names);
	base_free(all);
}

/* "" no lock was seen. What the trace does not say, its records do: such as of a recorder that does
 * not measure the floor. */
static const char *diff_mode_of(const struct report_locks *l)
{
	if (*l->mode)
		return l->mode;
	if (l->has & REPORT_LOCKS_tallies)
		return l->has & REPORT_LOCKS_held ? "holds" : l->all.hold.nr ? "sampled" : "count";
	return l->has & REPORT_LOCKS_calls ? "full" : l->has & REPORT_LOCKS_events ? "stamps" : "";
}

/* Each mode costs something else, and not each knows everything: what moved would be the recorder.
 */
static enum base_status check_mode(
	struct report_diff *d, const struct report_locks *l, const char *path, struct base_err *err)
{
	const char *mode = diff_mode_of(l);
	if (!*mode || (d->mode && !strcmp(d->mode, mode)))
		return BASE_OK;
	if (d->mode)
		return base_fail(err, BASE_ERR_USAGE,
			"%s was recorded with --locks=%s and %s with --locks=%s: what differs "
			"would be the recorder's doing; record both in the same mode",
			d->mode_path, d->mode, path, mode);
	d->mode = report_clean(d->arena, mode);
	d->mode_path = path;
	return d->mode ? BASE_OK : report_no_memory(err);
}

enum base_status report_diff_run(
	struct report_diff *d, const struct report_run *run, struct base_err *err)
{
	struct report_locks_options opts = {.size = sizeof opts, .sort = REPORT_LOCK_SORT_name};
	struct report_locks *l = NULL;
	size_t v = d->nr_versions - 1;
	if (!d->nr_versions || d->nr_runs[v] == REPORT_DIFF_RUNS_MAX)
		return base_fail(err, BASE_ERR_LIMIT, "more than %d runs of a version",
			REPORT_DIFF_RUNS_MAX);
	if (base_grow(&d->path[v], &d->path_capacity[v], d->nr_runs[v] + 1, sizeof **d->path) !=
		BASE_OK)
		return report_no_memory(err);
	enum base_status s = report_locks_build(run, &opts, &l, err);
	if (s != BASE_OK)
		return s;
	const char *path = report_clean(d->arena, run->trace_path);
	struct adder a = {d, err, path ? check_mode(d, l, path, err) : report_no_memory(err)};
	if (a.status != BASE_OK) {
		report_locks_free(l);
		return a.status;
	}
	d->path[v][d->nr_runs[v]++] = path;
	d->counted |= (l->has & REPORT_LOCKS_tallies) != 0;
	whole_program(&a, l);
	each_lock(&a, l);
	report_locks_free(l);
	return a.status == BASE_OK ? report_diff_path(d, run, err) : a.status;
}

/* ---- the comparison -------------------------------------------------------------------------- */

/* A state that a run's path did not come by took no time of it. */
static enum base_status fill_states(
	struct report_diff *d, struct report_quantity *q, struct base_err *err)
{
	if (strncmp(q->key, REPORT_DIFF_STATE_KEY, strlen(REPORT_DIFF_STATE_KEY)) != 0)
		return BASE_OK;
	for (size_t v = 0; v < d->nr_versions; v++) {
		struct report_diff_point *p = &q->version[v];
		if (!p->run) /* zeroed */
			p->run = report_array(d->arena, REPORT_DIFF_RUNS_MAX, sizeof *p->run);
		if (!p->run)
			return report_no_memory(err);
		p->nr_runs = d->nr_runs[v];
	}
	return BASE_OK;
}

/* Of three runs each, one pair of versions in ten is apart by chance alone; of four, one in
 * thirty-five. So with fewer than four nothing is tested. What is the same in all runs is no
 * question. */
static bool is_question(const struct report_diff_point *a, const struct report_diff_point *b)
{
	if (a->nr_runs < REPORT_DIFF_RUNS_SURE || b->nr_runs < REPORT_DIFF_RUNS_SURE)
		return false;
	for (size_t i = 0; i < a->nr_runs; i++)
		if (a->run[i] != b->run[0])
			return true;
	for (size_t i = 0; i < b->nr_runs; i++)
		if (b->run[i] != a->run[0])
			return true;
	return false;
}

static enum base_status diff_compare(
	struct report_quantity *q, size_t nr_versions, uint64_t seed, struct base_err *err)
{
	const struct report_diff_point *first = &q->version[0];
	for (size_t v = 0; v < nr_versions; v++) {
		struct report_diff_point *p = &q->version[v];
		bool failed = false;
		if (!p->nr_runs)
			continue;
		p->median = report_bootstrap_median(
			p->run, p->nr_runs, seed * REPORT_DIFF_VERSIONS_MAX + v, &failed);
		if (!failed && v && first->nr_runs && first->median.value != 0) {
			p->compared = true;
			p->ratio = report_bootstrap_ratio(first->run, first->nr_runs, p->run,
				p->nr_runs, seed * REPORT_DIFF_VERSIONS_MAX + v, &failed);
		}
		if (failed)
			return report_no_memory(err);
		p->tested = v && is_question(first, p);
		if (p->tested)
			p->p = report_rank_test(
				first->run, first->nr_runs, p->run, p->nr_runs, &failed);
		if (failed)
			return report_no_memory(err);
	}
	return BASE_OK;
}

static int by_p(const void *a, const void *b)
{
	const struct report_diff_point *const *x = a, *const *y = b;
	return ((*x)->p > (*y)->p) - ((*x)->p < (*y)->p);
}

/* The length of the run by itself; the others by Y. Benjamini and Y. Hochberg, "Controlling the
 * false discovery rate" (1995). */
static enum base_status diff_judge(struct report_diff *d, struct base_err *err)
{
	struct report_diff_point **all =
		base_alloc((d->nr_quantities * d->nr_versions + 1) * sizeof(void *));
	size_t nr = 0, nr_moved = 0;
	if (!all)
		return report_no_memory(err);
	for (size_t i = 0; i < d->nr_quantities; i++)
		for (size_t v = 1; v < d->nr_versions; v++) {
			struct report_diff_point *p = &d->quantity[i].version[v];
			if (p->tested && !strcmp(d->quantity[i].key, "elapsed"))
				p->significant =
					p->p * (double)(d->nr_versions - 1) <= REPORT_DIFF_LEVEL;
			else if (p->tested)
				all[nr++] = p;
		}
	d->nr_tested = nr;
	qsort(all, nr, sizeof *all, by_p); /* equal ones are judged alike */
	for (size_t i = 0; i < nr; i++)
		if (all[i]->p <= REPORT_DIFF_LEVEL * (double)(i + 1) / (double)nr)
			nr_moved = i + 1;
	for (size_t i = 0; i < nr_moved; i++)
		all[i]->significant = true;
	base_free(all);
	return BASE_OK;
}

double report_diff_moved(const struct report_diff_point *p, const struct report_diff_point *first)
{
	double a = first->median.value, b = p->median.value;
	if (a > 0 && b > 0)
		return fabs(log(b / a));
	return a == b ? 0 : log(10);
}

/* Of a change that was marked: how much of the first version's run it is, where it is a time or a
 * share. */
static double diff_weight(
	const struct report_quantity *q, const struct report_diff *d, double elapsed_ns)
{
	double most = 0;
	for (size_t v = 1; v < d->nr_versions; v++) {
		double by = fabs(q->version[v].median.value - q->version[0].median.value);
		if (!q->version[v].significant)
			continue;
		if (q->unit == REPORT_UNIT_ns && elapsed_ns > 0)
			most = fmax(most, by / elapsed_ns);
		else if (q->unit == REPORT_UNIT_share)
			most = fmax(most, by);
	}
	return most;
}

static double diff_moved(const struct report_quantity *q, size_t nr_versions)
{
	double most = 0;
	for (size_t v = 1; v < nr_versions; v++)
		if (q->version[v].significant)
			most = fmax(most, report_diff_moved(&q->version[v], &q->version[0]));
	return most;
}

static double elapsed_of(const struct report_diff *d)
{
	for (size_t i = 0; i < d->nr_quantities; i++)
		if (!strcmp(d->quantity[i].key, "elapsed"))
			return d->quantity[i].version[0].median.value;
	return 0;
}

struct sorting {
	const struct report_diff *d;
	double elapsed_ns;
};
/* The program's in the order of the table above; a lock's and a state's by how much of the run
 * moved, then by how far. */
static int by_move(const void *a, const void *b, void *ctx)
{
	const struct sorting *o = ctx;
	const struct report_quantity *x = a, *y = b;
	if (x->detail != y->detail)
		return x->detail ? 1 : -1;
	if (!x->detail)
		return 0;
	double p = diff_weight(x, o->d, o->elapsed_ns), q = diff_weight(y, o->d, o->elapsed_ns);
	if (p == q) {
		p = diff_moved(x, o->d->nr_versions);
		q = diff_moved(y, o->d->nr_versions);
	}
	return p != q ? (p < q ? 1 : -1) : strcmp(x->name, y->name);
}

enum base_status report_diff_finish(struct report_diff *d, struct base_err *err)
{
	for (size_t i = 0; i < d->nr_quantities; i++) {
		enum base_status s = fill_states(d, &d->quantity[i], err);
		if (s == BASE_OK)
			s = diff_compare(&d->quantity[i], d->nr_versions, i, err);
		if (s != BASE_OK)
			return s;
	}
	enum base_status judged = diff_judge(d, err);
	if (judged != BASE_OK)
		return judged;
	/* glibc's qsort_r is a merge sort, but for want of memory: keep the order all the same */
	size_t nr_whole = 0;
	for (size_t i = 0; i < d->nr_quantities; i++) {
		if (d->quantity[i].detail)
			continue;
		struct report_quantity q = d->quantity[i];
		memmove(&d->quantity[nr_whole + 1], &d->quantity[nr_whole],
			(i - nr_whole) * sizeof q);
		d->quantity[nr_whole++] = q;
	}
	struct sorting o = {d, elapsed_of(d)};
	if (d->nr_quantities > nr_whole)
		qsort_r(d->quantity + nr_whole, d->nr_quantities - nr_whole, sizeof *d->quantity,
			by_move, &o);
	return BASE_OK;
}

enum base_status report_diff_budget(
	const struct report_diff *d, const char *budget, bool *ret_broken, struct base_err *err)
{
	const char *equals = strrchr(budget, '=');
	char *end = NULL;
	double percent = equals ? strtod(equals + 1, &end) : 0;
	bool understood = equals && end != equals + 1 && !strcmp(end, "%") && isfinite(percent) &&
			  (equals[1] == '+' || equals[1] == '-');
	*ret_broken = false;
	if (!understood)
		return base_fail(err, BASE_ERR_USAGE,
			"'%s' is no budget: QUANTITY=+PERCENT%% or -PERCENT%%, as elapsed=+5%%",
			budget);
	for (size_t i = 0; i < d->nr_quantities; i++) {
		const struct report_quantity *q = &d->quantity[i];
		if (strlen(q->key) != (size_t)(equals - budget) ||
			strncmp(q->key, budget, strlen(q->key)) != 0)
			continue;
		const struct report_diff_point *p = &q->version[d->nr_versions - 1];
		/* It was named beforehand, so it is judged by itself. */
		bool sure = (p->tested && p->p <= REPORT_DIFF_LEVEL) ||
			    p->nr_runs < REPORT_DIFF_RUNS_SURE ||
			    q->version[0].nr_runs < REPORT_DIFF_RUNS_SURE;
		bool known = p->nr_runs && q->version[0].nr_runs, rose = p->median.value > 0;
		double change = p->compared ? (p->ratio.value - 1) * 100 : rose ? HUGE_VAL : 0;
		bool beyond = equals[1] == '+' ? change > percent : change < percent;
		*ret_broken = known && sure && beyond;
		return BASE_OK;
	}
	return base_fail(err, BASE_ERR_NOTFOUND,
		"%s: no such quantity; 'longpole diff --all' shows them with their keys in --json",
		budget);
}

void report_diff_found(struct base_str *out, const struct report_diff *d, const char *budget)
{
	const char *equals = strrchr(budget, '=');
	for (size_t i = 0; equals && i < d->nr_quantities; i++) {
		const struct report_quantity *q = &d->quantity[i];
		if (strlen(q->key) != (size_t)(equals - budget) ||
			strncmp(q->key, budget, strlen(q->key)) != 0)
			continue;
		base_str_addf(out, "%s: ", q->name);
		report_diff_change(out, &q->version[d->nr_versions - 1]);
		return;
	}
}
