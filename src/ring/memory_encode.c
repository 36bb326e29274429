/* SPDX-License-Identifier: Apache-2.0 */
/* memory_encode.c - predictors, and copies by linear extrapolation. */
#include "ring/memory_encode.h"
#include "ring/processor.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum {
	COPY_ITERATIONS_MIN = 2,
	COPY_WORDS_MIN = 16,
	COPY_WAIT_MAX = 127,
	/* Beyond that what is learnt after a copy costs more than the copy saves: inner loops are
	 * long enough by themselves. */
	COPY_DISTANCE_MAX = 512,
	NOT_FOLLOWED = UINT8_MAX,
};

static inline uint8_t *memory_encode_put(uint8_t *p, uint64_t v)
{
	for (; v > 127; v >>= 7)
		*p++ = (uint8_t)(v | 128);
	*p++ = (uint8_t)v;
	return p;
}

static inline uint64_t zigzag(uint64_t v)
{
	return v << 1 ^ (uint64_t)((int64_t)v >> 63);
}

void longpole_target_encode_start(struct target_encoder *e, uint64_t first_ticks)
{
	e->first_piece = e->piece + 1;
	e->previous = e->path = 0;
	e->block[0] = (struct target_block_state){.nr_followed = NOT_FOLLOWED};
	e->stack = e->word = 0;
	memory_contexts_start(&e->room->contexts);
	e->tick = first_ticks >> MEMORY_TICK_SHIFT;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* How far does w[k] - w[k-L] == w[k-L] - w[k-2L] hold? */
static size_t extrapolates(const uint64_t *w, const uint64_t *end, size_t distance)
{
	const uint64_t *k = w;
	while (k < end && k[0] - *(k - distance) == *(k - distance) - *(k - 2 * distance))
		k++;
	return (size_t)(k - w);
}

/* The same, four words at a time, where the processor can (e->avx2). */
#if defined(__x86_64__)
__attribute__((target("avx2"))) static size_t extrapolates_wide(
	const uint64_t *w, const uint64_t *end, size_t distance)
{
	const uint64_t *k = w;
	for (; k + 4 <= end; k += 4) {
		__m256i x = _mm256_loadu_si256((const void *)k);
		__m256i y = _mm256_loadu_si256((const void *)(k - distance));
		__m256i z = _mm256_loadu_si256((const void *)(k - 2 * distance));
		__m256i same = _mm256_cmpeq_epi64(_mm256_sub_epi64(x, y), _mm256_sub_epi64(y, z));
		unsigned mask = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(same));
		if (mask != 15)
			return (size_t)(k - w) + (size_t)__builtin_ctz(~mask);
	}
	while (k < end && k[0] - *(k - distance) == *(k - distance) - *(k - 2 * distance))
		k++;
	return (size_t)(k - w);
}
#else
#define extrapolates_wide extrapolates
#endif

/* Which of the current module's heads; nr_heads or more: none of them. (What is not a whole number
 * of heads away is far away, too.) */
static inline uintptr_t head_number(uintptr_t heads, uint64_t word)
{
	enum { SHIFT = 4 };
	_Static_assert(sizeof(struct memory_block_head) == 1 << SHIFT, "");
	const uintptr_t away = (uintptr_t)memory_word_head(word) - heads;
	return away >> SHIFT | away << (sizeof away * 8 - SHIFT);
}

/* NULL: it is none of a block that we know. */
static inline const struct memory_block_head *head_at(struct target_encoder *e, const uint64_t *p)
{
	const uintptr_t n = head_number(e->heads, *p);
	const struct memory_block_head *h =
		LIKELY(n < e->nr_heads) ? &e->head[n] : e->find(e, (uintptr_t)memory_word_head(*p));
	return LIKELY(h && h->index && h->index < e->nr_blocks) ? h : NULL;
}

/* The words from p on that are whole records within the next m. */
static size_t whole_records(struct target_encoder *e, const uint64_t *p, size_t m, size_t distance)
{
	const uint64_t *at = p + m / distance * distance, *limit = p + m;
	while (at < limit) {
		const struct memory_block_head *h = head_at(e, at);
		if (!h || at + 1 + h->nr_slots > limit)
			break;
		at += 1 + h->nr_slots;
	}
	return (size_t)(at - p);
}

static inline void memory_encode_goes_to(struct target_encoder *e, uint32_t index)
{
	struct memory_successor *s = &e->block[e->previous].successor;
	if (index == e->previous) {
		memory_successor_repeats(s, 1);
		return;
	}
	memory_successor_leaves(s, memory_path_place(e->path), index);
	e->path = memory_path(e->path, e->previous);
	e->previous = index;
}

/* One that this chunk has not had yet. */
static void memory_encode_begin_block(
	struct target_encoder *e, const struct memory_block_head *h, size_t position)
{
	const unsigned nr_ticks = h->flags >> MEMORY_BLOCK_TICKS_SHIFT;
	struct target_block_state *b = &e->block[h->index];
	*b = (struct target_block_state){.slot = e->slot_base[h->index],
		.piece = e->piece,
		.position = (uint32_t)position,
		.nr_slots = h->nr_slots,
		.nr_stack = h->nr_stack,
		.nr_plain = (uint8_t)(h->nr_slots - nr_ticks),
		.nr_followed = nr_ticks ? NOT_FOLLOWED : h->nr_slots};
	memset(&e->slot[b->slot], 0, h->nr_slots * sizeof *e->slot);
}

/* It is there again. */
static inline void reached(
	const struct target_encoder *e, struct target_block_state *b, size_t position)
{
	const size_t distance = position - b->position;
	const bool known = b->piece == e->piece && distance <= COPY_DISTANCE_MAX;
	if (b->distance == distance && b->waited < b->wait)
		b->waited++;
	b->distance = known ? (uint16_t)distance : 0;
	b->piece = e->piece;
	b->position = (uint32_t)position;
}

/* After a copy the predictors know its last two iterations, and how often a block followed itself.
 */
static void memory_encode_learn(struct target_encoder *e, const uint64_t *base, const uint64_t *p,
	size_t m, size_t distance)
{
	const struct memory_block_head *h = head_at(e, p);
	const uint64_t *from = p + (m / distance - 2) * distance, *to = p + m;
	if (h && distance == 1u + h->nr_slots)
		memory_successor_repeats(
			&e->block[h->index].successor, (uint32_t)(m / distance - 2));
	while (from < to && (h = head_at(e, from))) {
		const uint32_t index = h->index;
		struct target_block_state *b = &e->block[index];
		if (UNLIKELY(b->piece < e->first_piece))
			memory_encode_begin_block(e, h, (size_t)(from - base));
		struct memory_slot_state *s = &e->slot[b->slot];
		memory_encode_goes_to(e, index);
		reached(e, b, (size_t)(from - base));
		b->bits = (uint16_t)memory_word_bits(*from++);
		for (unsigned i = 0; i < b->nr_stack; i++) {
			s[i].stride = from[i] - e->stack;
			e->stack = from[i];
		}
		for (unsigned i = b->nr_stack; i < b->nr_plain; i++) {
			s[i].stride = from[i] - s[i].last;
			s[i].last = e->word = from[i];
		}
		if (b->nr_plain < b->nr_slots)
			e->tick = from[b->nr_slots - 1u] >> MEMORY_TICK_SHIFT;
		from += b->nr_slots;
	}
}

static bool is_loop(const uint64_t *w, const uint64_t *end)
{
	enum { DISTANCE_MAX = 64 };
	for (size_t distance = 1; distance <= DISTANCE_MAX; distance++) {
		size_t enough = COPY_ITERATIONS_MIN * distance + COPY_WORDS_MIN;
		const uint64_t *from = w + 2 * distance;
		if ((size_t)(end - w) < 2 * distance + enough)
			return false;
		if (extrapolates(from, from + enough, distance) == enough)
			return true;
	}
	return false;
}

bool longpole_target_loops(const uint64_t *words, size_t nr)
{
	enum { PLACES = 8 };
	unsigned nr_loops = 0;
	for (size_t i = 0; i < PLACES; i++)
		nr_loops += is_loop(words + nr / PLACES * i, words + nr);
	return nr_loops >= PLACES / 2;
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Without a branch: which is smaller is a matter of chance where slots are coded often. */
static inline uint64_t smaller(uint64_t z, uint64_t other, unsigned *how, unsigned other_how)
{
	uint64_t mask = -(uint64_t)(other < z);
	*how ^= (*how ^ other_how) & (unsigned)mask;
	return z ^ ((z ^ other) & mask);
}

/* The least of three differences, zigzag. */
static inline uint64_t memory_encode_nearest(
	uint64_t predicted, uint64_t last, uint64_t neighbour, unsigned *how)
{
	*how = MEMORY_SLOT_PREDICTED << 4;
	uint64_t z = smaller(predicted, last, how, MEMORY_SLOT_LAST << 4);
	return smaller(z, neighbour, how, MEMORY_SLOT_NEIGHBOUR << 4);
}

struct output {
	uint8_t *tokens, *how, *slots, *ticks;
};

static inline void put_slot(struct output *out, unsigned how, unsigned length, uint64_t z)
{
	*out->how++ = (uint8_t)(how | length);
	__builtin_memcpy(out->slots, &z, 8); /* (a move: Valgrind's tool has no builtins) */
	out->slots += length;
}

static inline unsigned memory_encode_length_of(uint64_t z)
{
	return ((unsigned)(71 - __builtin_clzll(z | 1)) >> 3) - !z;
}

/* A value that was there lately needs a byte, whatever it is: without a branch, for that is a
 * matter of chance, too. */
static inline void put_far(struct memory_contexts *c, uint32_t block, unsigned slot, uint64_t value,
	unsigned how, uint64_t z, struct output *out)
{
	uint8_t name = memory_recent_name(value);
	uint64_t *recent = memory_recent(c, block, slot, name);
	uint64_t far = -(uint64_t)(z >> MEMORY_RECENT_NEAR_BITS != 0), was = *recent;
	uint64_t hit = far & -(uint64_t)(was == value);
	unsigned length = memory_encode_length_of(z), hit_how = MEMORY_SLOT_RECENT << 4 | 1;
	*recent = was ^ ((was ^ value) & far);
	how = (how | length) ^ (((how | length) ^ hit_how) & (unsigned)hit);
	put_slot(out, how, length ^ ((length ^ 1) & (unsigned)hit), z ^ ((z ^ name) & hit));
}

/* One that is not as predicted. */
static inline void put_plain(struct memory_contexts *c, uint32_t block, unsigned slot,
	struct memory_slot_state *s, uint64_t value, uint64_t word, uint64_t predicted,
	struct output *out)
{
	unsigned how;
	uint64_t z = memory_encode_nearest(
		zigzag(value - predicted), zigzag(value - s->last), zigzag(value - word), &how);
	memory_slot_learn(s, word, value);
	if (z >> MEMORY_CONTEXT_NEAR_BITS) {
		/* What usually follows the word before may be nearer. (What depends on the value
		 * alone repeats byte by byte, which zstd sees: so only if it saves more than a
		 * byte.) */
		struct memory_context *found = memory_context_find(c, block, slot);
		uint64_t other = found ? zigzag(value - found->last - found->stride) : UINT64_MAX;
		memory_context_learn(c, block, slot, found, value);
		if (!other) {
			*out->how++ = MEMORY_SLOT_CONTEXT << 4;
			return;
		}
		if (other < z >> MEMORY_CONTEXT_NEAR_BITS) {
			how = MEMORY_SLOT_CONTEXT << 4;
			z = other;
		}
	}
	put_far(c, block, slot, value, how, z, out);
}

/* All but the tick slots. Returns 0 when all are as predicted. */
static inline uint64_t put_slots(struct target_encoder *e, struct target_block_state *b,
	uint32_t index, const uint64_t *p, struct output *to)
{
	struct memory_slot_state *s = &e->slot[b->slot];
	struct memory_contexts *contexts = &e->room->contexts;
	struct output out = *to;
	uint64_t stack = e->stack, word = e->word;
	unsigned how, nr_stack = b->nr_stack, plain = b->nr_plain;
	const uint64_t *a = p + 1;
	uint64_t miss = plain ? memory_word_bits(*p) ^ b->bits : 0;
	if (UNLIKELY(miss)) {
		put_slot(&out, MEMORY_SLOT_HEAD << 4, memory_encode_length_of(miss), miss);
		b->bits ^= (uint16_t)miss;
	}
	for (unsigned i = 0; i < nr_stack; i++) {
		uint64_t last = zigzag(a[i] - stack),
			 predicted = zigzag(a[i] - stack - s[i].stride);
		uint64_t z = memory_encode_nearest(predicted, last, last, &how);
		miss |= predicted;
		s[i].stride = a[i] - stack;
		stack = a[i];
		put_slot(&out, how, memory_encode_length_of(z), z);
	}
	for (unsigned i = nr_stack; i < plain; i++) {
		uint64_t value = a[i], predicted = memory_slot_predicted(&s[i], word);
		if (value == predicted) {
			s[i].stride = value - s[i].last;
			s[i].last = value;
			*out.how++ = MEMORY_SLOT_PREDICTED << 4;
		} else {
			miss = 1;
			put_plain(contexts, index, i, &s[i], value, word, predicted, &out);
		}
		contexts->word = word = value;
	}
	e->stack = stack;
	e->word = word;
	*to = out;
	return miss;
}

static uint8_t *put_ticks(
	struct target_encoder *e, const struct target_block_state *b, uint64_t *a, uint8_t *out)
{
	for (unsigned i = b->nr_plain; i < b->nr_slots; i++) {
		uint64_t tick = a[i] >> MEMORY_TICK_SHIFT;
		out = memory_encode_put(out, zigzag(tick - e->tick));
		e->tick = tick;
		a[i] = tick << MEMORY_TICK_SHIFT; /* what copies will continue */
	}
	return out;
}

/* ---- all ------------------------------------------------------------------------------------- */

static uint64_t *same_words(uint64_t *p, const uint64_t *end, uint64_t word)
{
	while (p < end && *p == word)
		p++;
	return p;
}

/* A loop that touches no memory: the same word again, as often as predicted. Returns what comes
 * then. */
static uint64_t *same_block(struct target_block_state *b, uint64_t *p, const uint64_t *end)
{
	uint64_t most = b->successor.trips - b->successor.run;
	const uint64_t *to = (uint64_t)(end - p) < most ? end : p + most;
	uint64_t *next = same_words(p, to, p[-1]);
	b->successor.run += (uint32_t)(next - p);
	return next;
}

/* All but the tick slots. */
static inline bool memory_encode_is_predicted(
	const struct target_encoder *e, const struct target_block_state *b, const uint64_t *p)
{
	const struct memory_slot_state *s = &e->slot[b->slot];
	const unsigned nr_stack = b->nr_stack, plain = b->nr_plain;
	uint64_t miss = plain ? memory_word_bits(*p) ^ b->bits : 0;
	uint64_t stack = e->stack, word = e->word;
	const uint64_t *a = p + 1;
	for (unsigned i = 0; i < nr_stack; i++) {
		miss |= (a[i] - stack) ^ s[i].stride;
		stack = a[i];
	}
	for (unsigned i = nr_stack; i < plain; i++) {
		miss |= a[i] ^ memory_slot_predicted(&s[i], word);
		word = a[i];
	}
	return !miss;
}

/* Where the encoder is in a piece. */
struct cursor {
	uint64_t *words, *end;
	uint64_t run; /* blocks as predicted that no token has told yet */
	struct output out;
};

/* The block at p with its slots, and again as long as it follows itself and is not as predicted.
 * Returns what comes then. */
static uint64_t *put_blocks(
	struct target_encoder *e, struct cursor *c, uint32_t index, uint64_t *p, bool jumped)
{
	struct target_block_state *b = &e->block[index];
	struct memory_contexts *contexts = &e->room->contexts;
	struct output out = c->out;
	const uint64_t head = memory_word_head(*p);
	const size_t words = 1 + (size_t)b->nr_slots;
	const unsigned plain = b->nr_plain;
	uint64_t miss, nr_predicted = c->run;
	do {
		uint8_t *how = out.how;
		uint64_t word = contexts->word;
		miss = put_slots(e, b, index, p, &out);
		p += words;
		if (!miss && !jumped && words == 1 + plain) {
			out.how = how;
			contexts->word = word;
			nr_predicted++;
			break;
		}
		out.tokens = memory_encode_put(out.tokens,
			nr_predicted << 2 | (jumped ? MEMORY_TOKEN_BLOCK : MEMORY_TOKEN_SLOTS));
		nr_predicted = 0;
		if (jumped)
			out.tokens = memory_encode_put(out.tokens, index);
		jumped = false;
		if (words > 1 + plain) {
			out.ticks = put_ticks(e, b, p - b->nr_slots, out.ticks);
			break;
		}
	} while (miss && words <= (size_t)(c->end - p) && memory_word_head(*p) == head &&
		 b->successor.run < b->successor.trips && ++b->successor.run);
	if (plain == b->nr_slots)
		b->nr_followed = miss ? NOT_FOLLOWED : b->nr_slots;
	c->run = nr_predicted;
	c->out = out;
	return p;
}

/* Loops go backwards somewhere: only there copies begin. Is one of the words at p worth a try? (Two
 * iterations were equally long; they may have inner loops.) */
static inline bool may_copy(const struct target_encoder *e, const struct cursor *c,
	const struct target_block_state *b, const uint64_t *p)
{
	return b->piece == e->piece && b->distance == p - c->words - b->position &&
	       b->waited >= b->wait;
}

/* Tries that copy. Returns what comes then; p: it would be too short. */
static uint64_t *try_copy(
	struct target_encoder *e, struct cursor *c, struct target_block_state *b, uint64_t *p)
{
	const size_t distance = b->distance;
	size_t m = e->avx2 ? extrapolates_wide(p, c->end, distance)
			   : extrapolates(p, c->end, distance);
	b->waited = 0;
	if (m < COPY_ITERATIONS_MIN * distance + COPY_WORDS_MIN) {
		b->wait = (uint8_t)(b->wait < COPY_WAIT_MAX ? 2 * b->wait + 1 : b->wait);
		return p;
	}
	b->wait = 0;
	m = whole_records(e, p, m, distance);
	c->out.tokens = memory_encode_put(c->out.tokens, c->run << 2 | MEMORY_TOKEN_COPY);
	c->out.tokens = memory_encode_put(c->out.tokens, distance);
	c->out.tokens = memory_encode_put(c->out.tokens, m);
	c->run = 0;
	memory_encode_learn(e, c->words, p, m, distance);
	return p + m;
}

static inline void as_predicted(
	struct target_encoder *e, const struct target_block_state *b, const uint64_t *a)
{
	struct memory_slot_state *s = &e->slot[b->slot];
	const unsigned nr_stack = b->nr_stack, plain = b->nr_plain;
	for (unsigned i = nr_stack; i < plain; i++) {
		s[i].stride = a[i] - s[i].last;
		s[i].last = a[i];
	}
	e->stack = nr_stack ? a[nr_stack - 1] : e->stack;
	e->word = plain > nr_stack ? a[plain - 1] : e->word;
}

/* Any block at p, or a copy. Returns what comes then; NULL: it is none, or is not whole. */
static uint64_t *one_more(struct target_encoder *e, struct cursor *c, uint64_t *p)
{
	const struct memory_block_head *h = head_at(e, p);
	if (UNLIKELY(!h || h->nr_slots >= (size_t)(c->end - p)))
		return NULL;
	const uint32_t index = h->index;
	struct target_block_state *b = &e->block[index];
	const bool jumped = memory_successor(&e->block[e->previous].successor,
				    memory_path_place(e->path), e->previous) != index;
	if (UNLIKELY(b->piece < e->first_piece)) {
		memory_encode_begin_block(e, h, (size_t)(p - c->words));
	} else if (index <= e->previous) {
		uint64_t *next = may_copy(e, c, b, p) ? try_copy(e, c, b, p) : p;
		if (next != p)
			return next;
		reached(e, b, (size_t)(p - c->words));
	}
	memory_encode_goes_to(e, index);
	if (jumped || (b->nr_followed != b->nr_slots && b->nr_plain == b->nr_slots) ||
		!memory_encode_is_predicted(e, b, p)) {
		p = put_blocks(e, c, index, p, jumped);
	} else if (UNLIKELY(b->nr_plain < b->nr_slots)) {
		as_predicted(e, b, p + 1);
		if (b->nr_plain > b->nr_stack)
			e->room->contexts.word = e->word;
		c->out.tokens = memory_encode_put(c->out.tokens, c->run << 2 | MEMORY_TOKEN_END);
		c->out.ticks = put_ticks(e, b, p + 1, c->out.ticks);
		c->run = 0;
		p += 1 + b->nr_slots;
	} else {
		as_predicted(e, b, p + 1);
		c->run++;
		p += 1 + b->nr_slots;
		if (!b->nr_slots && b->successor.run < b->successor.trips) {
			const uint64_t *first = p;
			p = same_block(b, p, c->end);
			c->run += (uint64_t)(p - first);
		}
	}
	return p;
}

/* Blocks without ticks that are as predicted, from p on, but for loops that copies or same_block()
 * may take as a whole. Most are such: nothing here waits for what a head says. */
static uint64_t *memory_encode_follow(struct target_encoder *e, struct cursor *c, uint64_t *p)
{
	struct target_block_state *const block = e->block;
	uint32_t previous = e->previous, path = e->path;
	const uint64_t *const end = c->end;
	const struct memory_block_head *const head = e->head;
	const uintptr_t heads = e->heads, nr_heads = e->nr_heads;
	uint64_t run = c->run;
	for (; p < end; run++) {
		struct memory_successor *before = &block[previous].successor;
		const unsigned place = memory_path_place(path);
		const uint32_t index = memory_successor(before, place, previous);
		struct target_block_state *b = &block[index];
		const unsigned nr_slots = b->nr_slots;
		const uintptr_t n = head_number(heads, *p);
		if (n >= nr_heads || head[n].index != index || nr_slots >= (size_t)(end - p) ||
			b->nr_followed != nr_slots)
			break;
		if (index <= previous && may_copy(e, c, b, p))
			break;
		if (nr_slots ? !memory_encode_is_predicted(e, b, p) : b->successor.trips != 0)
			break;
		if (index <= previous)
			reached(e, b, (size_t)(p - c->words));
		if (nr_slots)
			as_predicted(e, b, p + 1);
		if (index == previous) {
			memory_successor_repeats(before, 1);
		} else {
			before->next[place] |= 1;
			before->trips = before->run;
			before->run = 0;
			path = memory_path(path, previous);
			previous = index;
		}
		p += 1 + nr_slots;
	}
	e->previous = previous;
	e->path = path;
	c->run = run;
	return p;
}

size_t longpole_target_encode(struct target_encoder *e, uint64_t *words, size_t nr)
{
	struct target_planes *planes = &e->room->planes;
	struct cursor c = {.words = words,
		.end = words + nr,
		.out = {planes->byte[MEMORY_PLANE_TOKENS], planes->byte[MEMORY_PLANE_HOW],
			planes->byte[MEMORY_PLANE_SLOTS], planes->byte[MEMORY_PLANE_TICKS]}};
	const struct output *out = &c.out;
	uint64_t *p = words;
	e->piece++;
	while ((p = memory_encode_follow(e, &c, p)) < c.end) {
		uint64_t *next = one_more(e, &c, p);
		if (UNLIKELY(!next))
			break;
		p = next;
	}
	c.out.tokens = memory_encode_put(c.out.tokens, c.run << 2 | MEMORY_TOKEN_END);
	planes->nr[MEMORY_PLANE_TOKENS] = (size_t)(out->tokens - planes->byte[MEMORY_PLANE_TOKENS]);
	planes->nr[MEMORY_PLANE_HOW] = (size_t)(out->how - planes->byte[MEMORY_PLANE_HOW]);
	planes->nr[MEMORY_PLANE_SLOTS] = (size_t)(out->slots - planes->byte[MEMORY_PLANE_SLOTS]);
	planes->nr[MEMORY_PLANE_TICKS] = (size_t)(out->ticks - planes->byte[MEMORY_PLANE_TICKS]);
	return (size_t)(p - words);
}

/* (Valgrind's tool has a memcpy that goes byte by byte.) */
static inline uint8_t *memory_encode_copy(uint8_t *to, const uint8_t *from, size_t nr)
{
	return processor_copy(to, from, nr);
}

uint8_t *longpole_target_encode_piece(
	struct target_encoder *e, struct target_piece *piece, uint8_t *out)
{
	const struct target_planes *planes = &e->room->planes;
	piece->done = longpole_target_encode(e, piece->words, piece->nr);
	out = memory_encode_put(out, piece->done);
	out = memory_encode_put(out, piece->flags);
	out = memory_encode_put(out, piece->begin_ticks);
	out = memory_encode_put(out, piece->lasted_ticks);
	for (unsigned i = 0; i < MEMORY_PLANES; i++)
		out = memory_encode_put(out, planes->nr[i]);
	for (unsigned i = 0; i < MEMORY_PLANES; i++)
		out = memory_encode_copy(out, planes->byte[i], planes->nr[i]);
	return out;
}
