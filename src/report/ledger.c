/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c - see ledger.h. */
#include "report/ledger.h"

#include "report/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- kinds ----------------------------------------------------------------------------------- */

enum { KIND_WORDS_MAX = 8, KIND_WORD_BYTES = 24 };

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The edits' first words, each once, in order: "scale+unbound-queue". */
static void ledger_add_kind(struct base_str *out, const struct report_prediction *p)
{
	char word[KIND_WORDS_MAX][KIND_WORD_BYTES] = {""};
	size_t nr = 0;
	for (size_t i = 0; i < p->nr_matches && nr < KIND_WORDS_MAX; i++) {
		size_t length = strcspn(p->match[i].edit, " ");
		if (length < KIND_WORD_BYTES)
			memcpy(word[nr++], p->match[i].edit, length);
	}
	qsort(word, nr, sizeof *word, by_text);
	for (size_t i = 0; i < nr; i++)
		if (!i || strcmp(word[i], word[i - 1]) != 0)
			base_str_addf(out, "%s%s", i ? "+" : "", word[i]);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct outcome {
	uint32_t kind;
	double path_error, replay_error; /* below 0: none */
	double best_factor;              /* measured by predicted, or the other way; 0: none */
};
struct reading {
	struct base_strtab *kinds;
	struct outcome *outcome;
	size_t nr, capacity;
};

static double ledger_error_of(const json_t *entry, const char *method, double measured)
{
	double predicted = json_number_value(json_object_get(entry, method));
	return predicted > 0 ? fabs(predicted / measured - 1) : -1;
}

static double ledger_factor_of(const json_t *entry, double measured)
{
	static const char *const method[] = {"best", "replay", "path"};
	for (size_t i = 0; i < BASE_COUNT(method); i++) {
		double predicted = json_number_value(json_object_get(entry, method[i]));
		if (predicted > 0)
			return fmax(predicted / measured, measured / predicted);
	}
	return 0;
}

/* False: the line is no entry. */
static bool read_entry(struct reading *r, const json_t *entry, enum base_status *ret)
{
	const char *kind = json_string_value(json_object_get(entry, "kind"));
	double measured = json_number_value(json_object_get(entry, "measured"));
	struct outcome o = {0};
	if (!kind || !*kind || !(measured > 0))
		return false;
	o.path_error = ledger_error_of(entry, "path", measured);
	o.replay_error = ledger_error_of(entry, "replay", measured);
	o.best_factor = ledger_factor_of(entry, measured);
	/* nothing was predicted, or numbers beyond all sense */
	if (o.best_factor <= 0 || isinf(o.best_factor) || isinf(o.path_error) ||
		isinf(o.replay_error))
		return false;
	*ret = base_strtab_intern(r->kinds, kind, strlen(kind), &o.kind);
	if (*ret == BASE_OK)
		*ret = base_grow(&r->outcome, &r->capacity, r->nr + 1, sizeof *r->outcome);
	if (*ret == BASE_OK)
		r->outcome[r->nr++] = o;
	return true;
}

static enum base_status read_lines(struct report_ledger *l, struct reading *r, const char *text)
{
	enum base_status s = BASE_OK;
	while (s == BASE_OK && *text) {
		size_t length = strcspn(text, "\n");
		json_t *entry = length ? json_loadb(text, length, 0, NULL) : NULL;
		if (length && !read_entry(r, entry, &s))
			l->nr_bad_lines++;
		json_decref(entry);
		text += length + (text[length] == '\n');
	}
	return s;
}

static int ledger_ascending(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Median and largest of one kind's errors by one method. */
static void ledger_sum_up(const struct reading *r, uint32_t kind, bool replay, double *scratch,
	uint64_t *ret_nr, double *ret_median, double *ret_worst)
{
	size_t nr = 0;
	for (size_t i = 0; i < r->nr; i++) {
		double e = replay ? r->outcome[i].replay_error : r->outcome[i].path_error;
		if (r->outcome[i].kind == kind && e >= 0)
			scratch[nr++] = e;
	}
	*ret_nr = nr;
	if (!nr)
		return;
	qsort(scratch, nr, sizeof *scratch, ledger_ascending);
	*ret_median = nr % 2 ? scratch[nr / 2] : (scratch[nr / 2 - 1] + scratch[nr / 2]) / 2;
	*ret_worst = scratch[nr - 1];
}

/* Of n+1 outcomes of which nothing tells one from another, the next is the k-th or before it with
 * a chance of k / (n+1). */
static void bound_next(
	const struct reading *r, uint32_t kind, double *scratch, struct report_history *h)
{
	size_t nr = 0, k;
	for (size_t i = 0; i < r->nr; i++)
		if (r->outcome[i].kind == kind && r->outcome[i].best_factor > 0)
			scratch[nr++] = r->outcome[i].best_factor;
	h->nr_best = nr;
	k = ((nr + 1) * 9 + 9) / 10;
	if (k > nr)
		return;
	qsort(scratch, nr, sizeof *scratch, ledger_ascending);
	h->best_factor = scratch[k - 1];
}

static int most_outcomes_first(const void *a, const void *b)
{
	const struct report_history *x = a, *y = b;
	if (x->nr_path != y->nr_path)
		return x->nr_path > y->nr_path ? -1 : 1;
	return strcmp(x->kind, y->kind);
}

static enum base_status ledger_fill(
	struct report_ledger *l, const struct reading *r, struct base_err *err)
{
	uint32_t nr_kinds = base_strtab_count(r->kinds);
	double *scratch = report_array(l->arena, r->nr, sizeof *scratch);
	l->history = report_array(l->arena, (size_t)nr_kinds + 1, sizeof *l->history);
	if (!scratch || !l->history)
		return report_no_memory(err);
	for (uint32_t kind = 1; kind <= nr_kinds; kind++) {
		struct report_history *h = &l->history[l->nr];
		const char *name = base_strtab_get(r->kinds, kind);
		if (!*name)
			continue;
		h->kind = report_clean(l->arena, name);
		if (!h->kind)
			return report_no_memory(err);
		ledger_sum_up(
			r, kind, false, scratch, &h->nr_path, &h->path_median, &h->path_worst);
		ledger_sum_up(
			r, kind, true, scratch, &h->nr_replay, &h->replay_median, &h->replay_worst);
		bound_next(r, kind, scratch, h);
		l->nr++;
	}
	if (l->nr > 1)
		qsort(l->history, l->nr, sizeof *l->history, most_outcomes_first);
	return BASE_OK;
}

enum base_status report_ledger_read(struct report_ledger *l, const char *text, struct base_err *err)
{
	struct reading r = {.kinds = base_strtab_new()};
	enum base_status s = BASE_OK;
	*l = (struct report_ledger){.arena = base_arena_new(0)};
	if (!l->arena || !r.kinds || read_lines(l, &r, text) != BASE_OK)
		s = report_no_memory(err);
	if (s == BASE_OK)
		s = ledger_fill(l, &r, err);
	base_strtab_free(r.kinds);
	base_free(r.outcome);
	return s;
}

void report_ledger_fini(struct report_ledger *l)
{
	base_arena_free(l->arena);
	*l = (struct report_ledger){0};
}

/* ---- writing --------------------------------------------------------------------------------- */

static void add_method(struct base_str *out, const char *method, double median, double worst)
{
	base_str_addf(out, "%s ", method);
	report_percent(out, median);
	base_str_add(out, " off in the median, at most ");
	report_percent(out, worst);
}

static bool is_of_kind(const struct report_prediction *p, const char *kind)
{
	struct base_str own = {0};
	ledger_add_kind(&own, p);
	bool is = !strcmp(base_str_text(&own), kind);
	base_str_fini(&own);
	return is;
}

static bool ledger_is_predicted(const struct report_whatif *w, const char *kind)
{
	bool found = false;
	for (size_t i = 0; i < w->nr_predictions && !found; i++)
		found = is_of_kind(&w->prediction[i], kind);
	return found;
}

void report_ledger_widen(const struct report_ledger *l, struct report_whatif *w)
{
	for (size_t i = 0; i < w->nr_predictions; i++)
		for (size_t k = 0; k < l->nr; k++)
			if (is_of_kind(&w->prediction[i], l->history[k].kind))
				w->prediction[i].known_factor = l->history[k].best_factor;
}

void report_ledger_text(struct base_str *out, const struct report_ledger *l,
	const struct report_whatif *w, const struct report_style *style)
{
	const char *label = "LEDGER     ";
	for (size_t i = 0; i < l->nr; i++) {
		const struct report_history *h = &l->history[i];
		struct base_str s = {0};
		if (!ledger_is_predicted(w, h->kind))
			continue;
		base_str_addf(&s, "outcomes of %s so far (%llu): ", h->kind,
			(unsigned long long)(h->nr_path > h->nr_replay ? h->nr_path
								       : h->nr_replay));
		if (h->nr_path)
			add_method(&s, "path", h->path_median, h->path_worst);
		if (h->nr_replay) {
			base_str_add(&s, h->nr_path ? "; " : "");
			add_method(&s, "replay", h->replay_median, h->replay_worst);
		}
		if (h->best_factor > 0)
			base_str_addf(&s,
				"; nine in ten within a factor of %.3f, which the intervals "
				"contain",
				h->best_factor);
		report_wrap(out, style, label, 11, base_str_text(&s));
		label = "           ";
		base_str_fini(&s);
	}
}

enum base_status report_ledger_entry(struct base_str *out, const struct report_whatif *w,
	double measured_speedup, struct base_err *err)
{
	const struct report_prediction *p = &w->prediction[0];
	struct base_str kind = {0};
	json_t *edits = json_array(), *entry;
	ledger_add_kind(&kind, p);
	for (size_t i = 0; i < p->nr_matches; i++)
		json_array_append_new(edits, json_string(p->match[i].edit));
	entry = json_pack("{s:s, s:o, s:s, s:f}", "kind", base_str_text(&kind), "edits", edits,
		"command", w->trace.command, "measured", measured_speedup);
	struct report_best best = report_best_of(w, p);
	if (entry && p->by_path)
		json_object_set_new(entry, "path", json_real(p->speedup));
	if (entry && !best.none)
		json_object_set_new(entry, "best", json_real(best.speedup));
	if (entry && p->replay.made && !p->replay.nr_stuck)
		json_object_set_new(entry, "replay", json_real(p->replay.speedup));
	char *line = entry ? json_dumps(entry, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	if (line)
		base_str_addf(out, "%s\n", line);
	bool failed = !line || out->failed || kind.failed;
	free(line); /* allowed: jansson's */
	json_decref(entry);
	base_str_fini(&kind);
	return failed ? report_no_memory(err) : BASE_OK;
}
