/* SPDX-License-Identifier: Apache-2.0 */
/* cursor.c - loops begin, times pass, batches end. */
#include "memory/order/cursor.h"

enum base_status memory_cursor_fetch(struct memory_cursor *c, struct memory_source *s, int thread,
	const struct memory_item **ret, struct base_err *err)
{
	for (;;) {
		if (c->nr_body) {
			*ret = &c->batch.item[c->at + 1 + c->body_at];
			return BASE_OK;
		}
		if (BASE_LIKELY(c->at < c->batch.nr)) {
			const struct memory_item *t = &c->batch.item[c->at];
			*ret = t;
			if (BASE_LIKELY(t->kind < MEMORY_STAMP))
				return BASE_OK;
			if (t->kind == MEMORY_STAMP) {
				c->time_ns = t->address > c->time_ns ? t->address : c->time_ns;
				c->at++;
			} else {
				c->nr_body = (size_t)t->address;
				c->body_at = 0;
				c->iteration = 0;
			}
			continue;
		}
		enum base_status status = memory_source_next(s, thread, &c->batch, err);
		c->at = 0;
		if (status != BASE_OK) {
			c->batch.nr = 0;
			return status;
		}
		if (!c->batch.nr) {
			*ret = NULL;
			return BASE_OK;
		}
	}
}

bool memory_cursor_iteration(
	const struct memory_cursor *c, uint64_t *ret_instructions, uint64_t *ret_left)
{
	if (!c->nr_body || c->body_at)
		return false;
	*ret_instructions = 0;
	for (size_t i = 0; i < c->nr_body; i++)
		*ret_instructions += c->batch.item[c->at + 1 + i].instructions;
	*ret_left = c->batch.item[c->at].count - c->iteration;
	return true;
}
