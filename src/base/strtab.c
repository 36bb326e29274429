/* SPDX-License-Identifier: Apache-2.0 */
/* strtab.c - each distinct text once. Texts live in an arena, so their addresses stay. */
#include "base/base.h"

#include <string.h>

struct entry {
	const char *text;
	size_t length;
	uint64_t hash;
};

/* bucket[] holds id + 1, 0 for empty; linear probing, at most three quarters full. */
struct base_strtab {
	struct base_arena *texts;
	struct entry *entry;
	size_t capacity;
	uint32_t nr_entries;
	uint32_t *bucket;
	size_t nr_buckets; /* 0 or a power of two */
};

/* FNV-1a, finished with base_hash_u64 since its low bits alone are weak. */
static uint64_t strtab_hash_text(const char *s, size_t length)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < length; i++)
		h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
	return base_hash_u64(h);
}

struct base_strtab *base_strtab_new(void)
{
	struct base_strtab *t = base_alloc(sizeof *t);
	uint32_t id;

	if (!t)
		return NULL;
	t->texts = base_arena_new(BASE_STRTAB_LIMIT_BYTES);
	if (!t->texts || base_strtab_intern(t, "", 0, &id) != BASE_OK)
		return base_strtab_free(t);
	return t;
}

struct base_strtab *base_strtab_free(struct base_strtab *t)
{
	if (!t)
		return NULL;
	base_arena_free(t->texts);
	base_free(t->entry);
	base_free(t->bucket);
	base_free(t);
	return NULL;
}

/* The bucket of that text, or the empty one where it belongs. */
static uint32_t *find_bucket(
	const struct base_strtab *t, const char *s, size_t length, uint64_t hash)
{
	size_t mask = t->nr_buckets - 1;

	for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
		uint32_t *bucket = &t->bucket[i];
		if (!*bucket)
			return bucket;
		const struct entry *e = &t->entry[*bucket - 1];
		if (e->hash == hash && e->length == length &&
			(!length || !memcmp(e->text, s, length)))
			return bucket;
	}
}

static enum base_status grow_buckets(struct base_strtab *t)
{
	size_t nr_buckets = t->nr_buckets ? t->nr_buckets * 2 : 64;
	uint32_t *bucket = base_alloc(nr_buckets * sizeof *bucket);

	if (!bucket)
		return BASE_ERR_NOMEM;
	for (uint32_t id = 0; id < t->nr_entries; id++) {
		size_t i = (size_t)t->entry[id].hash & (nr_buckets - 1);
		while (bucket[i])
			i = (i + 1) & (nr_buckets - 1);
		bucket[i] = id + 1;
	}
	base_free(t->bucket);
	t->bucket = bucket;
	t->nr_buckets = nr_buckets;
	return BASE_OK;
}

/* Makes room for one more text of that length; on failure the table is as it was. */
static enum base_status strtab_reserve(struct base_strtab *t, size_t length)
{
	if (t->nr_entries >= BASE_STRTAB_LIMIT_TEXTS || length >= BASE_STRTAB_LIMIT_BYTES ||
		length + 16 > BASE_STRTAB_LIMIT_BYTES - base_arena_used_bytes(t->texts))
		return BASE_ERR_LIMIT;
	if (base_grow(&t->entry, &t->capacity, (size_t)t->nr_entries + 1, sizeof *t->entry) !=
		BASE_OK)
		return BASE_ERR_NOMEM;
	if ((size_t)t->nr_entries + 1 > t->nr_buckets / 4 * 3)
		return grow_buckets(t);
	return BASE_OK;
}

enum base_status base_strtab_intern(
	struct base_strtab *t, const char *s, size_t length, uint32_t *ret_id)
{
	uint64_t hash = strtab_hash_text(s, length);

	if (t->nr_buckets) {
		uint32_t *bucket = find_bucket(t, s, length, hash);
		if (*bucket) {
			*ret_id = *bucket - 1;
			return BASE_OK;
		}
	}
	enum base_status status = strtab_reserve(t, length);
	if (status != BASE_OK)
		return status;
	const char *text = base_arena_strndup(t->texts, s, length);
	if (!text)
		return BASE_ERR_NOMEM;
	t->entry[t->nr_entries] = (struct entry){.text = text, .length = length, .hash = hash};
	*ret_id = t->nr_entries++;
	*find_bucket(t, s, length, hash) = *ret_id + 1;
	return BASE_OK;
}

const char *base_strtab_get(const struct base_strtab *t, uint32_t id)
{
	return id < t->nr_entries ? t->entry[id].text : "";
}

uint32_t base_strtab_count(const struct base_strtab *t)
{
	return t->nr_entries;
}
