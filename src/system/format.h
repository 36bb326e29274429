/* SPDX-License-Identifier: Apache-2.0 */
/* format.h - tracefs `format` files: where the fields of a tracepoint's record are. */
#ifndef LONGPOLE_SYSTEM_FORMAT_H
#define LONGPOLE_SYSTEM_FORMAT_H

#include "base/base.h"

enum { SYSTEM_FORMAT_FIELDS_MAX = 8, SYSTEM_FORMAT_RECORD_MAX = 1 << 16 };

struct system_format {
	uint32_t id;
	struct system_format_field {
		uint32_t offset, size; /* bytes; size 0: this kernel does not have the field */
		bool is_signed;
	} field[SYSTEM_FORMAT_FIELDS_MAX]; /* as asked for */
};

/*
 * system_format_parse() - find the fields called names[0..nr) in the text of a format file. Fields
 * that are not there get size 0. False: the text is none, or has no ID. The text is checked, not
 * trusted.
 */
bool system_format_parse(
	const char *text, const char *const *names, unsigned nr, struct system_format *ret);

/* The field's value in a record, extended to 64 bits; an array's first eight bytes. 0: it is not
 * there, or the record is shorter. */
uint64_t system_format_get(
	const struct system_format *f, unsigned field, const uint8_t *record, size_t size);

#endif
