/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.h - what a slot of the stream format (stream.h) is likely to be after a certain word: the
 * same state in the encoder and in the decoder. No libc.
 *
 * A table by hash of a slot (its block's index, its number) and a word has which value followed
 * that word last time, and the stride (a "finite context method": Y. Sazeides and J. Smith, 1997;
 * with strides: B. Goeman et al., 2001). The word is that of the coded slot before, in whatever
 * block. Only coded slots that are not as predicted, and far from what else they are compared with,
 * look and learn; stack and tick slots never do. Where more than a quarter of the looks are in
 * vain, a slot goes without for a while.
 *
 * Beside it the values of slots whose differences needed more than a byte, by a hash of the value:
 * of addresses that come in any order but are few (locks, counters) a byte names which.
 */
#ifndef LONGPOLE_MEMORY_CONTEXT_H
#define LONGPOLE_MEMORY_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

enum {
	MEMORY_CONTEXT_BITS = 12,
	MEMORY_CONTEXT_TRUSTS = 512, /* slots share them by hash */
	MEMORY_CONTEXT_TRUST_FIRST = 4096,
	MEMORY_CONTEXT_TRUST_MOST = 4096,
	MEMORY_CONTEXT_VAIN = 3, /* what a look in vain costs; a hit gives one */
	MEMORY_CONTEXT_REST = 16384,
	MEMORY_CONTEXT_NEAR_BITS = 12, /* of a zigzag difference: nearer ones need no context */
	MEMORY_RECENT_SLOTS = 16,      /* slots share them by hash */
	MEMORY_RECENT_NEAR_BITS = 8,   /* nearer ones are neither looked for nor kept */
};
struct memory_context {
	uint64_t last, stride;
};
struct memory_contexts {
	struct memory_context entry[1 << MEMORY_CONTEXT_BITS];
	int32_t trust[MEMORY_CONTEXT_TRUSTS]; /* < 0: rests so often */
	uint64_t word;
	uint64_t recent[MEMORY_RECENT_SLOTS][256];
};

/* A value that has this name. */
static inline uint64_t *memory_recent(
	struct memory_contexts *c, uint32_t block, unsigned slot, uint8_t name)
{
	return &c->recent[(block * 5 + slot) % MEMORY_RECENT_SLOTS][name];
}

static inline uint8_t memory_recent_name(uint64_t value)
{
	return (uint8_t)(value * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

/* A chunk begins. */
static inline void memory_contexts_start(struct memory_contexts *c)
{
	c->word = 0;
	__builtin_memset(c->entry, 0, sizeof c->entry);
	__builtin_memset(c->recent, 0, sizeof c->recent);
	for (size_t i = 0; i < MEMORY_CONTEXT_TRUSTS; i++)
		c->trust[i] = MEMORY_CONTEXT_TRUST_FIRST;
}

static inline int32_t *memory_context_trust(
	struct memory_contexts *c, uint32_t block, unsigned slot)
{
	return &c->trust[(block * 5 + slot) % MEMORY_CONTEXT_TRUSTS];
}

/* NULL: not trusted now. */
static inline struct memory_context *memory_context_find(
	struct memory_contexts *c, uint32_t block, unsigned slot)
{
	if (*memory_context_trust(c, block, slot) < 0)
		return NULL;
	uint64_t key = c->word + ((uint64_t)block << 7 | slot) * UINT64_C(0xd1342543de82ef95);
	return &c->entry[key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - MEMORY_CONTEXT_BITS)];
}

/* After each find, with what it gave, when the value was not as predicted. */
static inline void memory_context_learn(struct memory_contexts *c, uint32_t block, unsigned slot,
	struct memory_context *found, uint64_t value)
{
	int32_t *trust = memory_context_trust(c, block, slot);
	if (!found) {
		if (!++*trust)
			*trust = MEMORY_CONTEXT_TRUST_FIRST;
		return;
	}
	if (found->last + found->stride == value)
		*trust += *trust < MEMORY_CONTEXT_TRUST_MOST;
	else if ((*trust -= MEMORY_CONTEXT_VAIN) <= 0)
		*trust = -MEMORY_CONTEXT_REST;
	found->stride = value - found->last;
	found->last = value;
}

#endif
