/* SPDX-License-Identifier: Apache-2.0 */
/* system_format.h - tracefs `format` files: where the fields of a tracepoint's record are. */
#ifndef LONGPOLE_RECORD_SYSTEM_FORMAT_H
#define LONGPOLE_RECORD_SYSTEM_FORMAT_H

#include "base/base.h"

enum { RECORD_FORMAT_FIELDS_MAX = 8, RECORD_FORMAT_RECORD_MAX = 1 << 16 };

struct record_format {
	uint32_t id;
	struct record_format_field {
		uint32_t offset, size; /* bytes; size 0: this kernel does not have the field */
		bool is_signed;
	} field[RECORD_FORMAT_FIELDS_MAX]; /* as asked for */
};

/*
 * record_format_parse() - find the fields called names[0..nr) in the text of a format file. Fields
 * that are not there get size 0. False: the text is none, or has no ID. The text is checked, not
 * trusted.
 */
bool record_format_parse(
	const char *text, const char *const *names, unsigned nr, struct record_format *ret);

/* The field's value in a record, extended to 64 bits; an array's first eight bytes. 0: it is not
 * there, or the record is shorter. */
uint64_t record_format_get(
	const struct record_format *f, unsigned field, const uint8_t *record, size_t size);

#endif
