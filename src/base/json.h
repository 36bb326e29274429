/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - numbers for jansson, which has no unsigned ones. */
#ifndef LONGPOLE_BASE_JSON_H
#define LONGPOLE_BASE_JSON_H

#include <jansson.h>
#include <math.h>
#include <stdint.h>

/* A new reference; beyond INT64_MAX that. */
static inline json_t *base_json_u64(uint64_t n)
{
	return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

/* A new reference; null where there is no number (NAN). */
static inline json_t *base_json_real(double x)
{
	return isnan(x) ? json_null() : json_real(x);
}

#endif
