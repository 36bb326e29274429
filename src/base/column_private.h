/* SPDX-License-Identifier: Apache-2.0 */
/* column_private.h - what column.c and column_text.c share: the value of a row in a column. */
#ifndef LONGPOLE_BASE_COLUMN_PRIVATE_H
#define LONGPOLE_BASE_COLUMN_PRIVATE_H

#include "base/column.h"

#include <math.h>

struct column_value {
	enum { COLUMN_OTHER, COLUMN_INTEGER, COLUMN_REAL, COLUMN_TEXT } is;
	bool known;
	int64_t n;     /* beyond INT64_MAX that; of a flag 0 or 1 */
	uint64_t bits; /* the same, all of it */
	double x;
	const char *text;
};
/* Of units that are integers an integer, of the others a real number. */
struct column_value base_column_value(
	const struct base_column *c, const void *row, const void *all);
bool base_column_is_set(struct base_member m, const void *row); /* it is not 0 and no empty text */
/* The struct of a part or object; NULL: it is not there. */
const void *base_column_part(const struct base_column *c, const void *row);

struct column_unit {
	const char *kind; /* in JSON */
	bool is_real;
};
extern const struct column_unit base_unit_of[];

#endif
