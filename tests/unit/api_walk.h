/* SPDX-License-Identifier: Apache-2.0 */
/* api_walk.h - a trace from its begin to its end by the public library, for its tests. */
#ifndef LONGPOLE_TESTS_API_WALK_H
#define LONGPOLE_TESTS_API_WALK_H

#include "longpole/analysis.h"
#include "test.h"

#include <string.h>

#define SIZED(type, name) struct type name = {.size = sizeof name}

/* Walks to the end: every field of every record. The status that ends it. */
static inline int walk(struct longpole_trace *t, uint64_t *ret_nr, struct longpole_error *e)
{
	SIZED(longpole_record, r);
	SIZED(longpole_value, v);
	int s;
	for (*ret_nr = 0; (s = longpole_trace_next(t, &r, e)) == LONGPOLE_STATUS_OK; ++*ret_nr)
		for (uint32_t i = 0; i < r.nr_fields; i++) {
			s = longpole_trace_field(t, i, &v);
			if (s != LONGPOLE_STATUS_OK)
				return s;
			assert_int_equal(strnlen(v.text, v.text_bytes + 1), v.text_bytes);
		}
	return s;
}

#endif
