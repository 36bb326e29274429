/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor.h - the items of one stream of a source, one by one: batches are fetched, times pass,
 * loops (MEMORY_REPEAT) go round. For who executes streams item by item.
 *
 *	while ((s = memory_cursor_peek(&c, source, thread, &t, err)) == BASE_OK && t) {
 *		... t->kind, memory_cursor_address(&c, t) ...
 *		memory_cursor_advance(&c);
 *	}
 */
#ifndef LONGPOLE_MEMORY_CURSOR_H
#define LONGPOLE_MEMORY_CURSOR_H

#include "memory/stream/source.h"

struct memory_cursor { /* zeroes: before the first item */
	struct memory_batch batch;
	size_t at;               /* in the batch */
	size_t nr_body, body_at; /* inside a REPEAT: its body is item at+1 .. */
	uint64_t iteration;      /* of batch.item[at].count */
	uint64_t time_ns;        /* last recorded */
};

/* memory_cursor_peek() where it is not simple. */
enum base_status memory_cursor_fetch(struct memory_cursor *c, struct memory_source *s, int thread,
	const struct memory_item **ret, struct base_err *err) BASE_MUST_CHECK;

/* The item that was peeked, again. */
static inline const struct memory_item *memory_cursor_item(const struct memory_cursor *c)
{
	return &c->batch.item[c->at + (c->nr_body ? 1 + c->body_at : 0)];
}

/* The next item into *ret, neither STAMP nor REPEAT; borrowed until the advance. BASE_END: there is
 * none. NULL: none now (LIVE sources only). thread as in struct memory_source_ops.next. */
static inline enum base_status memory_cursor_peek(struct memory_cursor *c, struct memory_source *s,
	int thread, const struct memory_item **ret, struct base_err *err)
{
	BASE_ASSUME(c);
	if (BASE_UNLIKELY(!c->nr_body) &&
		(c->at >= c->batch.nr || c->batch.item[c->at].kind >= MEMORY_STAMP))
		return memory_cursor_fetch(c, s, thread, ret, err);
	*ret = memory_cursor_item(c);
	return BASE_OK;
}

/* Past the item that was peeked. */
static inline void memory_cursor_advance(struct memory_cursor *c)
{
	if (!c->nr_body) {
		c->at++;
	} else if (++c->body_at == c->nr_body) {
		c->body_at = 0;
		if (++c->iteration == c->batch.item[c->at].count) {
			c->at += 1 + c->nr_body;
			c->nr_body = 0;
		}
	}
}

/* Is the item that was peeked the first one of an iteration? Then how many instructions it has, and
 * how many iterations are left with it. */
bool memory_cursor_iteration(
	const struct memory_cursor *c, uint64_t *ret_instructions, uint64_t *ret_left);
/* There: passes over so many iterations, fewer than are left. Peek again. */
static inline void memory_cursor_pass(struct memory_cursor *c, uint64_t nr)
{
	c->iteration += nr;
}

/* Of the item that was peeked: in a loop, of this iteration. */
static inline uint64_t memory_cursor_address(
	const struct memory_cursor *c, const struct memory_item *t)
{
	return c->nr_body && t->kind <= MEMORY_ATOMIC
		       ? t->address + c->iteration * (uint64_t)t->stride_bytes
		       : t->address;
}

#endif
