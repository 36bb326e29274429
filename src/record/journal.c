/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - entries to bytes and back. */
#include "record/journal.h"

#include <string.h>

enum { WORD_BYTES_MAX = 10 };

void record_journal_add(
	struct record_journal *j, enum record_journal_kind kind, const uint64_t *word, size_t nr)
{
	if (!j || j->failed)
		return;
	BASE_ASSERT(nr <= RECORD_JOURNAL_WORDS_MAX);
	if (base_grow(&j->bytes, &j->capacity, j->nr + 2 + nr * WORD_BYTES_MAX, 1) != BASE_OK) {
		j->failed = true;
		return;
	}
	uint8_t *p = j->bytes + j->nr;
	*p++ = (uint8_t)kind;
	*p++ = (uint8_t)nr;
	for (size_t i = 0; i < nr; i++)
		p = base_put_uvarint(p, word[i]);
	j->nr = (size_t)(p - j->bytes);
}

void record_journal_fini(struct record_journal *j)
{
	base_free(j->bytes);
	*j = (struct record_journal){.failed = true};
}

const uint8_t *record_journal_read(
	const uint8_t *p, const uint8_t *end, struct record_journal_entry *ret)
{
	*ret = (struct record_journal_entry){.nr = 0};
	if (end - p < 2 || p[0] >= RECORD_JOURNAL_NR || p[1] > RECORD_JOURNAL_WORDS_MAX)
		return NULL;
	ret->kind = (enum record_journal_kind)p[0];
	ret->nr = p[1];
	p += 2;
	for (size_t i = 0; i < ret->nr; i++) {
		p = base_get_uvarint(p, end, &ret->word[i]);
		if (!p)
			return NULL;
	}
	return p;
}
