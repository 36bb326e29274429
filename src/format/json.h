/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - JSON as other programs write it: ids of any type, commas too many, numbers too long. */
#ifndef LONGPOLE_FORMAT_JSON_H
#define LONGPOLE_FORMAT_JSON_H

#include "format/private.h"

#include <jansson.h>

/* The number that v is, or says as text: decimal, or hexadecimal behind 0x; in any case, with
 * zeros or blanks before it. Negative ones as two's complement. False: v is no whole number. */
bool format_json_number(const json_t *v, uint64_t *ret);

/* The same with a fraction, in the machine's own precision; infinite or not a number as it says. */
bool format_json_real(const json_t *v, double *ret);

/* Of the mark that some programs put before UTF-8: 3, or 0 without it. */
size_t format_json_mark_bytes(const char *text, size_t length);

/* Appends the text (NUL-terminated at `length`) so that a strict parser reads what was meant: no
 * mark before it, no comma before an end, integers beyond 64 bits with a sign as texts, no NaN or
 * Infinity (null), strings in UTF-8 without raw control characters, with whole escapes. */
void format_json_mend(struct base_str *out, const char *text, size_t length);

#endif
