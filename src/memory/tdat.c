/* SPDX-License-Identifier: Apache-2.0 */
/* tdat.c - events into bins. */
#include "memory/tdat.h"

#include <math.h>
#include <string.h>

struct memory_tdat {
	struct memory_tdat_options options;
	struct memory_tdat_result result;
	uint64_t *bin;
	size_t nr_bins, capacity;
	uint64_t lines;
	uint64_t short_records; /* of the bad ones: a field that was asked for is missing */
};

enum base_status memory_tdat_new(
	const struct memory_tdat_options *options, struct memory_tdat **ret, struct base_err *err)
{
	*ret = NULL;
	if (!options->bin_clocks || options->field > MEMORY_TDAT_FIELDS_MAX ||
		options->weight_field > MEMORY_TDAT_FIELDS_MAX)
		return base_fail(err, BASE_ERR_USAGE,
			"a bin is at least one clock wide, and fields are 1 to %d",
			MEMORY_TDAT_FIELDS_MAX);
	struct memory_tdat *t = base_alloc(sizeof *t);
	if (!t)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for bins");
	t->options = *options;
	if (!t->options.nr_processors)
		t->options.nr_processors = 1;
	*ret = t;
	return BASE_OK;
}

struct memory_tdat *memory_tdat_free(struct memory_tdat *t)
{
	if (t)
		base_free(t->bin);
	base_free(t);
	return NULL;
}

/* The next whole number of [*at, end); false: none, or not a number. */
static bool tdat_next_number(const char **at, const char *end, int64_t *ret)
{
	const char *p = *at;
	while (p < end && (*p == ' ' || *p == '\t' || *p == ','))
		p++;
	bool minus = p < end && *p == '-';
	p += minus;
	const char *first = p;
	*ret = 0;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(*ret, 10, ret) ||
			__builtin_add_overflow(*ret, *p - '0', ret))
			return false;
	*ret = minus ? -*ret : *ret;
	*at = p;
	return p > first && (p == end || *p == ' ' || *p == '\t' || *p == ',' || *p == '\r');
}

/* Clock and weight of a record. False: it is not one (*ret_short: a field that was asked for is
 * missing). *ret_weight 0: it does not count. */
static bool tdat_parse(const struct memory_tdat *t, const char *text, size_t length,
	uint64_t *ret_clock, uint64_t *ret_weight, bool *ret_short)
{
	const struct memory_tdat_options *o = &t->options;
	const char *end = text + length;
	unsigned last = o->field > o->weight_field ? o->field : o->weight_field;
	*ret_weight = 1;
	for (unsigned i = 1; i <= last || i == 1; i++) {
		int64_t v;
		if (!tdat_next_number(&text, end, &v) || (i == 1 && v < 0)) {
			*ret_short = i > 1;
			return false;
		}
		if (i == 1)
			*ret_clock = (uint64_t)v;
		if (i == o->weight_field)
			*ret_weight = v > 0 ? (uint64_t)v : 0;
		if (i == o->field && v != o->value) {
			*ret_weight = 0;
			return true;
		}
	}
	return true;
}

enum base_status memory_tdat_line(
	struct memory_tdat *t, const char *text, size_t length, struct base_err *err)
{
	struct memory_tdat_result *r = &t->result;
	uint64_t clock = 0, weight;
	bool is_short = false;
	t->lines++;
	while (length && (*text == ' ' || *text == '\t')) {
		text++;
		length--;
	}
	if (!length || *text == '#' || *text == '\r')
		return BASE_OK;
	if (!tdat_parse(t, text, length, &clock, &weight, &is_short)) {
		t->short_records += is_short;
		if (!r->bad_records++)
			r->first_bad_record = t->lines;
		return BASE_OK;
	}
	uint64_t bin = clock / t->options.bin_clocks;
	if (bin >= MEMORY_TDAT_BINS_MAX)
		return base_fail(err, BASE_ERR_LIMIT,
			"line %llu: clock %llu would need more than %d bins; make them wider",
			(unsigned long long)t->lines, (unsigned long long)clock,
			MEMORY_TDAT_BINS_MAX);
	/* Bins go to the last record, whether or not it counts: the time after the last event of a
	 * kind, in which there was none, is part of the distribution. */
	r->nr_records++;
	r->last_record_clock = clock > r->last_record_clock ? clock : r->last_record_clock;
	if (bin >= t->nr_bins) {
		if (base_grow(&t->bin, &t->capacity, bin + 1, sizeof *t->bin) != BASE_OK)
			return base_fail(err, BASE_ERR_NOMEM, "no memory for %llu {bin|bins}",
				(unsigned long long)bin + 1);
		memset(t->bin + t->nr_bins, 0, (bin + 1 - t->nr_bins) * sizeof *t->bin);
		t->nr_bins = bin + 1;
	}
	if (!weight)
		return BASE_OK;
	t->bin[bin] += weight;
	r->first_clock = !r->nr_events || clock < r->first_clock ? clock : r->first_clock;
	r->last_clock = clock > r->last_clock ? clock : r->last_clock;
	r->nr_events += weight;
	return BASE_OK;
}

static void extremes(struct memory_tdat_result *r)
{
	double squares = 0;
	r->least = r->nr_bins ? r->bin[0] : 0;
	for (size_t i = 0; i < r->nr_bins; i++) {
		if (r->bin[i] < r->least) {
			r->least = r->bin[i];
			r->least_at = i;
		}
		if (r->bin[i] > r->most) {
			r->most = r->bin[i];
			r->most_at = i;
		}
	}
	r->mean = r->nr_bins ? (double)r->nr_events / (double)r->nr_bins : 0;
	for (size_t i = 0; i < r->nr_bins; i++)
		squares += ((double)r->bin[i] - r->mean) * ((double)r->bin[i] - r->mean);
	r->deviation = r->nr_bins ? sqrt(squares / (double)r->nr_bins) : 0;
	r->rate = r->mean / (double)r->bin_clocks;
	r->least_rate = (double)r->least / (double)r->bin_clocks;
	r->most_rate = (double)r->most / (double)r->bin_clocks;
}

/* One class a value when there are few, else classes of equal width. */
static void classes(struct memory_tdat_result *r)
{
	uint64_t range = r->most - r->least;
	uint64_t width = range / MEMORY_TDAT_CLASSES_MAX + 1;
	double sum = 0;
	if (!r->nr_bins)
		return;
	r->nr_classes = (size_t)(range / width) + 1;
	for (size_t i = 0; i < r->nr_bins; i++)
		r->class[(r->bin[i] - r->least) / width].density += 1;
	for (size_t i = 0; i < r->nr_classes; i++) {
		struct memory_tdat_class *k = &r->class[i];
		sum += k->density;
		k->from = r->least + i * width;
		k->to = k->from + width - 1;
		k->density /= (double)r->nr_bins;
		k->distribution = sum / (double)r->nr_bins;
	}
}

enum base_status memory_tdat_finish(
	struct memory_tdat *t, const struct memory_tdat_result **ret, struct base_err *err)
{
	struct memory_tdat_result *r = &t->result;
	r->bin = t->bin;
	r->nr_bins = t->nr_bins;
	r->bin_clocks = t->options.bin_clocks;
	r->nr_processors = t->options.nr_processors;
	if (!r->nr_records && t->short_records)
		return base_fail(err, BASE_ERR_USAGE,
			"no record has the field that was asked for: %u of its fields are "
			"needed",
			t->options.field > t->options.weight_field ? t->options.field
								   : t->options.weight_field);
	if (!r->nr_records && r->bad_records)
		return base_fail(err, BASE_ERR_FOREIGN,
			"line %llu is not a record that begins with a clock, and no other is one",
			(unsigned long long)r->first_bad_record);
	extremes(r);
	classes(r);
	*ret = r;
	return BASE_OK;
}
