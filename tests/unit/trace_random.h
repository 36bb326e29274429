/* SPDX-License-Identifier: Apache-2.0 */
/* trace_random.h - random records of any kind, made from the table; comparing records. For tests
 * and fuzzers. */
#ifndef LONGPOLE_TESTS_TRACE_RANDOM_H
#define LONGPOLE_TESTS_TRACE_RANDOM_H

#include "trace/trace.h"

#include <string.h>

static inline uint64_t random_u64(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
	return random_u64(state) % limit;
}

/* Every length of varint is as likely as any other. */
static inline uint64_t random_wide(uint64_t *state)
{
	uint64_t nr_bits = random_below(state, 65);

	return nr_bits ? random_u64(state) >> (64 - nr_bits) : 0;
}

/* Fields only. Texts are borrowed from `text`, which has text_bytes bytes. */
static inline void random_fields(uint64_t *state, const struct trace_kind_desc *k, const char *text,
	size_t text_bytes, struct trace_record *ret)
{
	*ret = (struct trace_record){.kind = k->kind};
	for (unsigned i = 0; i < k->nr_fields; i++) {
		char *p = (char *)ret + k->field[i].offset;
		uint64_t v = random_wide(state);
		uint32_t id = (uint32_t)random_wide(state);
		struct trace_text t = {.bytes = text, .length = 0};

		switch (k->field[i].type) {
		case TRACE_FIELD_ID:
			memcpy(p, &id, sizeof id);
			break;
		case TRACE_FIELD_U64:
		case TRACE_FIELD_S64:
			memcpy(p, &v, sizeof v);
			break;
		case TRACE_FIELD_TEXT:
			t.length = (uint32_t)random_below(state, text_bytes + 1);
			memcpy(p, &t, sizeof t);
			break;
		}
	}
}

static inline bool records_equal(const struct trace_record *a, const struct trace_record *b)
{
	const struct trace_kind_desc *k = trace_kind_find(a->kind);

	if (!k || a->kind != b->kind || a->time_ns != b->time_ns || a->stream != b->stream)
		return false;
	for (unsigned i = 0; i < k->nr_fields; i++) {
		const char *p = (const char *)a + k->field[i].offset;
		const char *q = (const char *)b + k->field[i].offset;
		struct trace_text t, u;

		if (k->field[i].type != TRACE_FIELD_TEXT) {
			size_t size = k->field[i].type == TRACE_FIELD_ID ? 4 : 8;
			if (memcmp(p, q, size) != 0)
				return false;
			continue;
		}
		memcpy(&t, p, sizeof t);
		memcpy(&u, q, sizeof u);
		if (t.length != u.length || (t.length && memcmp(t.bytes, u.bytes, t.length) != 0))
			return false;
	}
	return true;
}

#endif
