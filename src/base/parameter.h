/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parameter.h - a configuration struct that is described by a table.
 *
 * A room with parameters lists them in a .def file and makes three things of it: the fields of a
 * struct, a constant table of struct base_parameter (which knows the fields' offsets), and the list
 * that users see. Defaults, parsing, limits and printing are here, once.
 *
 *	static const struct base_parameter table[] = {
 *	#define PARAM(key, preset, least, most, unit, sentence) \
 *		{BASE_NUMBER(BASE_INTEGER, struct config, key, preset, least, most, unit, sentence)},
 *	#include "parameters.def"
 *	};
 */
#ifndef LONGPOLE_BASE_PARAMETER_H
#define LONGPOLE_BASE_PARAMETER_H

#include "base/base.h"

enum base_parameter_kind {
	BASE_INTEGER, /* uint64_t; as text also with K, M or G for 2^10, 2^20, 2^30 */
	BASE_REAL,    /* double, finite */
	BASE_CHOICE,  /* uint64_t: the index of a word; the first is the default */
	BASE_TEXT     /* char[size_bytes] */
};
struct base_word {
	const char *name, *sentence;
};
struct base_parameter {
	const char *group, *key, *unit, *sentence, *source; /* group and source may be NULL */
	enum base_parameter_kind kind;
	double preset, least, most;    /* of numbers; a `most` of 2^64 is no limit */
	const char *preset_text;       /* BASE_TEXT */
	const struct base_word *words; /* BASE_CHOICE */
	size_t nr_words;
	size_t offset, size_bytes; /* of the field */
};
struct base_parameters {
	const struct base_parameter *row;
	size_t nr;
};

/* Initialisers of a row, without what is particular to its kind. */
#define BASE_FIELD(kind_, type, key_, unit_, sentence_)                                            \
	.key = #key_, .unit = (unit_), .sentence = (sentence_), .kind = (kind_),                   \
	.offset = offsetof(type, key_), .size_bytes = sizeof(((type *)0)->key_)
#define BASE_NUMBER(kind_, type, key_, preset_, least_, most_, unit_, sentence_)                   \
	BASE_FIELD(kind_, type, key_, unit_, sentence_),                                           \
		.preset = (double)(preset_), .least = (double)(least_), .most = (double)(most_)

/* Every field of the table (of the group, unless NULL) gets its default; others stay. */
void base_parameters_preset(struct base_parameters p, const char *group, void *config);
/* NULL, and BASE_ERR_USAGE with the nearest key, when there is none (in the group, unless NULL). */
const struct base_parameter *base_parameter_find(
	struct base_parameters p, const char *group, const char *key, struct base_err *err);
/* BASE_ERR_USAGE with the limits or the words; the field is then as it was. */
enum base_status base_parameter_set(const struct base_parameter *p, void *config, const char *value,
	struct base_err *err) BASE_MUST_CHECK;
/* The value as text that base_parameter_set() accepts. */
void base_parameter_add_value(
	struct base_str *out, const struct base_parameter *p, const void *config);
void base_parameter_add_preset(struct base_str *out, const struct base_parameter *p);
/* "4 to 10 cycles": what base_parameter_set() demands of a number; nothing of other kinds. */
void base_parameter_add_limits(struct base_str *out, const struct base_parameter *p);

enum { BASE_KEY_MAX = 64, BASE_VALUE_MAX = 8192 };
struct base_assignment {
	char key[BASE_KEY_MAX], value[BASE_VALUE_MAX];
};
/* "key=value"; blanks around both do not count. BASE_ERR_USAGE: not of that form, or too long. */
enum base_status base_assignment_split(
	struct base_assignment *ret, const char *text, struct base_err *err) BASE_MUST_CHECK;

/* base_choose() - the index of the word; BASE_ERR_USAGE lists them all, and names the nearest. */
enum base_status base_choose(const struct base_word *words, size_t nr, const char *key,
	const char *value, uint64_t *ret, struct base_err *err) BASE_MUST_CHECK;
/* base_nearest() - of the candidates next(ctx, 0), next(ctx, 1), ... until NULL, the one that is
 * most like the word (Levenshtein, swapped neighbours one step); NULL: none is like it. */
const char *base_nearest(
	const char *word, const char *(*next)(const void *ctx, size_t i), const void *ctx);

#endif
