/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tdat.h - distribution over time of the events of an event trace (seed 004, section 6).
 *
 * An event trace is text, a record a line, its first field the clock; lines that begin with # are
 * remarks. Events go into bins of equal width, from clock 0 to the last record, whether that counts
 * or not. The density function says which share of bins has how many events, the distribution
 * function which share has that many or fewer.
 */
#ifndef LONGPOLE_MEMORY_TDAT_H
#define LONGPOLE_MEMORY_TDAT_H

#include "base/base.h"

#include <jansson.h>

enum { MEMORY_TDAT_FIELDS_MAX = 64, MEMORY_TDAT_CLASSES_MAX = 50, MEMORY_TDAT_BINS_MAX = 1 << 26 };

struct memory_tdat_options {
	uint64_t bin_clocks;    /* width of a bin; at least 1 */
	uint32_t nr_processors; /* rates are also given for one of them; 0: 1 */
	unsigned field; /* count only records whose field (1: the clock) is `value`; 0: all */
	int64_t value;
	unsigned weight_field; /* add that field's value instead of 1; 0: none */
};

struct memory_tdat_class {
	uint64_t from, to; /* events in a bin */
	double density, distribution;
};

struct memory_tdat_result {
	uint64_t nr_events, nr_records, first_clock, last_clock, bin_clocks;
	uint64_t last_record_clock; /* of all records, those that do not count, too */
	const uint64_t *bin;
	size_t nr_bins;
	uint64_t least, most, least_at, most_at; /* events in a bin, and which bin first */
	double mean, deviation;                  /* events a bin; of all bins (population) */
	double rate, least_rate, most_rate;      /* events a clock */
	uint32_t nr_processors;
	struct memory_tdat_class class[MEMORY_TDAT_CLASSES_MAX];
	size_t nr_classes;
	uint64_t bad_records, first_bad_record; /* left out; line number */
};

struct memory_tdat;
enum base_status memory_tdat_new(const struct memory_tdat_options *options,
	struct memory_tdat **ret, struct base_err *err) BASE_MUST_CHECK;
struct memory_tdat *memory_tdat_free(struct memory_tdat *t);
/* One line, without its end. ERR_LIMIT: the clock is so late that there would be too many bins. */
enum base_status memory_tdat_line(struct memory_tdat *t, const char *text, size_t length,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status memory_tdat_finish(struct memory_tdat *t, const struct memory_tdat_result **ret,
	struct base_err *err) BASE_MUST_CHECK;

/* ---- tdat_text.c: the seed's output file (bins), and pictures */
void memory_tdat_bins(struct base_str *out, const struct memory_tdat_result *r, char separator);
/* Rows of a plot of at most `columns` x `rows` characters; utf8: block elements. */
void memory_tdat_plot(struct base_str *out, const struct memory_tdat_result *r, unsigned columns,
	unsigned rows, bool utf8);
void memory_tdat_svg(struct base_str *out, const struct memory_tdat_result *r, const char *title);
json_t *memory_tdat_json(const struct memory_tdat_result *r);

#endif
