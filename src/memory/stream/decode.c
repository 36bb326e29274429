/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c - tokens into words: the encoder's predictors, the other way round. */
#include "memory/stream/decode.h"
#include "memory/stream/context.h"
#include "memory/stream/predict.h"

#include <string.h>

enum { COPIES_MAX = MEMORY_PIECE_WORDS / 4, PAD_WORDS = 8 };

struct block_state {
	struct memory_successor successor;
	uint32_t chunk;
	uint16_t bits; /* of its head's word */
};

struct memory_decoder {
	const struct memory_tables *tables;
	struct block_state *block;
	struct memory_slot_state *slot;
	unsigned version;
	uint32_t chunk; /* epoch */
	uint32_t previous, path;
	uint64_t near; /* differences below need no context: context.h. 0: version 1 */
	uint64_t stack, tick, before; /* the last plain one; until version 2 that was coded */
	struct memory_contexts contexts;
	uint64_t word[MEMORY_PIECE_WORDS + PAD_WORDS];
	struct memory_copy copy[COPIES_MAX];
	const uint8_t *p, *end; /* of the chunk */
	uint64_t first_ticks;
	size_t blocks_capacity, slots_capacity;
};

/* The tables may have grown. */
static bool room_for_states(struct memory_decoder *d)
{
	const struct memory_tables *t = d->tables;
	return base_grow(&d->block, &d->blocks_capacity, (size_t)t->nr_blocks + 1,
		       sizeof *d->block) == BASE_OK &&
	       base_grow(&d->slot, &d->slots_capacity, (size_t)t->nr_slots + 1, sizeof *d->slot) ==
		       BASE_OK;
}

struct memory_decoder *memory_decoder_new(const struct memory_tables *t)
{
	struct memory_decoder *d = base_alloc(sizeof *d);
	if (!d)
		return NULL;
	d->tables = t;
	if (!room_for_states(d)) {
		memory_decoder_free(d);
		return NULL;
	}
	return d;
}

void memory_decoder_free(struct memory_decoder *d)
{
	if (!d)
		return;
	base_free(d->block);
	base_free(d->slot);
	base_free(d);
}

static enum base_status damaged(struct base_err *err, const char *what)
{
	return base_fail(err, BASE_ERR_CORRUPT, "a chunk of a memory stream: %s", what);
}

enum base_status memory_decoder_chunk(
	struct memory_decoder *d, const uint8_t *chunk, size_t size_bytes, struct base_err *err)
{
	struct memory_chunk_head head;
	d->p = d->end = NULL;
	if (!room_for_states(d))
		return base_fail(err, BASE_ERR_NOMEM, "no memory to decode a thread's stream");
	if (size_bytes < sizeof head)
		return damaged(err, "is too short");
	memcpy(&head, chunk, sizeof head);
	if (head.magic != MEMORY_CHUNK_MAGIC || !memory_stream_known(head.version) ||
		head.type != MEMORY_CHUNK_STREAM || head.bytes != size_bytes)
		return damaged(err, "its head");
	d->p = chunk + sizeof head;
	d->end = chunk + size_bytes;
	d->first_ticks = head.first_ticks;
	d->near = head.version == 1 ? 0 : UINT64_C(1) << MEMORY_CONTEXT_NEAR_BITS;
	d->chunk++;
	d->previous = d->path = 0;
	d->version = head.version;
	d->block[0].successor = (struct memory_successor){0};
	d->stack = d->before = 0;
	memory_contexts_start(&d->contexts);
	d->tick = head.first_ticks >> MEMORY_TICK_SHIFT;
	return BASE_OK;
}

/* ---- one block ------------------------------------------------------------------------------- */

struct plane {
	const uint8_t *p, *end;
};

struct piece {
	struct plane plane[MEMORY_PLANES];
	struct plane *tokens, *how, *slots, *ticks; /* up to version 3: all the same one */
	uint64_t *word;
	uint32_t nr, at, nr_copies;
};

static bool get_number(struct plane *from, uint64_t *ret)
{
	const uint8_t *p = base_get_uvarint(from->p, from->end, ret);
	from->p = p ? p : from->end;
	return p;
}

static const struct memory_table_block *known(const struct memory_decoder *d, uint64_t index)
{
	const struct memory_tables *t = d->tables;
	if (BASE_UNLIKELY(!index || index >= t->nr_blocks || !t->block[index].exists))
		return NULL;
	return &t->block[index];
}

/* Which of its successors; up to version 6 there is one, whatever the path. */
static unsigned place(const struct memory_decoder *d)
{
	return d->version < 7 ? 0 : memory_path_place(d->path);
}

/* A block comes after the one before. */
static void goes_to(struct memory_decoder *d, uint32_t index)
{
	struct memory_successor *s = &d->block[d->previous].successor;
	if (d->version < 7)
		s->next[0] &= ~UINT32_C(1); /* gives way at once */
	if (d->version < 3) {
		s->next[0] = index << 1;
	} else if (index == d->previous) {
		memory_successor_repeats(s, 1);
		return;
	} else {
		memory_successor_leaves(s, place(d), index);
	}
	d->path = memory_path(d->path, d->previous);
	d->previous = index;
}

static uint32_t expected(const struct memory_decoder *d)
{
	return memory_successor(&d->block[d->previous].successor, place(d), d->previous);
}

static struct memory_slot_state *touch(
	struct memory_decoder *d, uint32_t index, const struct memory_table_block *b)
{
	struct memory_slot_state *s = &d->slot[d->tables->slot_base[index]];
	if (BASE_UNLIKELY(d->block[index].chunk != d->chunk)) {
		memset(s, 0, b->nr_slots * sizeof *s);
		d->block[index] = (struct block_state){.chunk = d->chunk};
	}
	return s;
}

static uint64_t decode_word_of(const struct memory_decoder *d, uint32_t index)
{
	return index | (uint64_t)d->block[index].bits << MEMORY_WORD_SHIFT;
}

/* A block as predicted; false: that cannot be. */
static bool predicted(struct memory_decoder *d, struct piece *z)
{
	uint32_t index = expected(d);
	const struct memory_table_block *b = known(d, index);
	if (BASE_UNLIKELY(!b || z->nr - z->at < 1u + b->nr_slots || b->nr_ticks))
		return false;
	struct memory_slot_state *s = touch(d, index, b);
	uint64_t *w = z->word + z->at;
	*w++ = decode_word_of(d, index);
	uint64_t stack = d->stack, word = d->before;
	for (unsigned i = 0; i < b->nr_stack; i++)
		w[i] = stack += s[i].stride;
	d->stack = stack;
	for (unsigned i = b->nr_stack; i < b->nr_slots; i++) {
		w[i] = word = memory_slot_predicted(&s[i], word);
		s[i].stride = word - s[i].last;
		s[i].last = word;
	}
	if (d->version >= 3)
		d->before = word;
	z->at += 1u + b->nr_slots;
	goes_to(d, index);
	return true;
}

struct slot {
	uint64_t z;   /* zigzag difference */
	unsigned how; /* ... to which memory_slot_base */
};

static bool get_slot(const struct memory_decoder *d, struct piece *z, struct slot *ret)
{
	if (BASE_UNLIKELY(z->how->p == z->how->end))
		return false;
	unsigned how = *z->how->p >> 4, length = *z->how->p & 15;
	uint64_t v = 0;
	z->how->p++;
	const uint8_t *p = z->slots->p;
	if (BASE_UNLIKELY(length > 8 || (size_t)(z->slots->end - p) < length))
		return false;
	memcpy(&v, p, length);
	z->slots->p += length;
	*ret = (struct slot){v, how};
	if (how == MEMORY_SLOT_RECENT)
		return length == 1 && d->version >= 4;
	/* canonical: no byte more than needed */
	return how < MEMORY_SLOT_RECENT && (!length || p[length - 1]);
}

/* The bits of the head's word, if they come. */
static bool get_bits(const struct memory_decoder *d, struct piece *z, struct block_state *b)
{
	uint16_t change = 0;
	if (d->version < 6 || z->how->p == z->how->end || *z->how->p >> 4 != MEMORY_SLOT_HEAD)
		return true;
	unsigned length = *z->how->p++ & 15;
	if (BASE_UNLIKELY(!length || length > sizeof change ||
			  (size_t)(z->slots->end - z->slots->p) < length ||
			  !z->slots->p[length - 1]))
		return false;
	memcpy(&change, z->slots->p, length);
	z->slots->p += length;
	b->bits ^= change;
	return true;
}

static uint64_t value_of(const struct slot *s, uint64_t base)
{
	return base + (uint64_t)base_unzigzag(s->z);
}

/* Of a slot that may have one; learns from what was not as predicted. */
static uint64_t by_context(struct memory_decoder *d, uint32_t index, unsigned slot,
	const struct slot *s, uint64_t to, const uint64_t *base)
{
	struct memory_context *c = memory_context_find(&d->contexts, index, slot);
	uint64_t likely = c ? c->last + c->stride : to;
	uint64_t value = value_of(s, s->how == MEMORY_SLOT_CONTEXT ? likely : base[s->how]);
	if (value != to)
		memory_context_learn(&d->contexts, index, slot, c, value);
	return value;
}

/* One that needed more than a byte; learns, too, if its differences are far. */
static uint64_t recent(struct memory_decoder *d, uint32_t index, unsigned slot,
	const struct slot *s, const uint64_t *base)
{
	uint64_t value = *memory_recent(&d->contexts, index, slot, (uint8_t)s->z);
	for (unsigned i = 0; i < MEMORY_SLOT_CONTEXT; i++)
		if (base_zigzag((int64_t)(value - base[i])) < d->near)
			return value;
	memory_context_learn(
		&d->contexts, index, slot, memory_context_find(&d->contexts, index, slot), value);
	return value;
}

static uint64_t plain_value(struct memory_decoder *d, uint32_t index, unsigned slot,
	const struct slot *s, uint64_t to, const uint64_t *base)
{
	if (s->how == MEMORY_SLOT_RECENT)
		return recent(d, index, slot, s, base);
	uint64_t value = s->how == MEMORY_SLOT_CONTEXT || s->z >= d->near
				 ? by_context(d, index, slot, s, to, base)
				 : value_of(s, base[s->how]);
	if (s->z >> MEMORY_RECENT_NEAR_BITS)
		*memory_recent(&d->contexts, index, slot, memory_recent_name(value)) = value;
	return value;
}

/* as_predicted: but for its tick slots. */
static bool coded(struct memory_decoder *d, struct piece *z, uint64_t index, bool as_predicted)
{
	const struct memory_table_block *b = known(d, index);
	if (BASE_UNLIKELY(!b || z->nr - z->at < 1u + b->nr_slots))
		return false;
	struct memory_slot_state *s = touch(d, (uint32_t)index, b);
	uint64_t *w = z->word + z->at, neighbour = d->stack;
	unsigned plain = b->nr_slots - (unsigned)b->nr_ticks;
	if (plain && !as_predicted && !get_bits(d, z, &d->block[index]))
		return false;
	*w++ = decode_word_of(d, (uint32_t)index);
	for (unsigned i = 0; i < b->nr_stack; i++) {
		const uint64_t to = d->stack + s[i].stride, base[] = {to, d->stack, neighbour, to};
		struct slot slot = {0};
		if (!as_predicted && (!get_slot(d, z, &slot) || slot.how == MEMORY_SLOT_RECENT))
			return false;
		w[i] = value_of(&slot, base[slot.how]);
		s[i].stride = w[i] - d->stack;
		d->stack = neighbour = w[i];
	}
	neighbour = d->near ? d->before : neighbour;
	for (unsigned i = b->nr_stack; i < plain; i++) {
		const uint64_t to = memory_slot_predicted(&s[i], neighbour),
			       base[] = {to, s[i].last, neighbour};
		struct slot slot = {0};
		if (!as_predicted && !get_slot(d, z, &slot))
			return false;
		w[i] = plain_value(d, (uint32_t)index, i, &slot, to, base);
		if (d->version >= 3 && w[i] != to) {
			memory_slot_learn(&s[i], neighbour, w[i]);
		} else {
			s[i].stride = w[i] - s[i].last;
			s[i].last = w[i];
		}
		neighbour = d->before = d->contexts.word = w[i];
	}
	for (unsigned i = plain; i < b->nr_slots; i++) {
		uint64_t v;
		if (!get_number(z->ticks, &v))
			return false;
		d->tick += (uint64_t)base_unzigzag(v);
		w[i] = d->tick << MEMORY_TICK_SHIFT;
	}
	z->at += 1u + b->nr_slots;
	goes_to(d, (uint32_t)index);
	return true;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* As the encoder's learn(). */
static bool learn(struct memory_decoder *d, const uint64_t *p, size_t m, size_t distance)
{
	const uint64_t *from = p + (m / distance - 2) * distance, *to = p + m;
	const uint64_t head = memory_word_head(*p);
	const struct memory_table_block *first = known(d, head);
	if (d->version >= 3 && first && distance == 1u + first->nr_slots)
		memory_successor_repeats(&d->block[head].successor, (uint32_t)(m / distance - 2));
	while (from < to) {
		uint64_t index = memory_word_head(*from);
		const struct memory_table_block *b = known(d, index);
		if (!b || (size_t)(to - from) < 1u + b->nr_slots)
			return false;
		struct memory_slot_state *s = touch(d, (uint32_t)index, b);
		unsigned plain = b->nr_slots - (unsigned)b->nr_ticks;
		goes_to(d, (uint32_t)index);
		d->block[index].bits = (uint16_t)memory_word_bits(*from++);
		for (unsigned i = 0; i < b->nr_stack; i++) {
			s[i].stride = from[i] - d->stack;
			d->stack = from[i];
		}
		for (unsigned i = b->nr_stack; i < plain; i++) {
			s[i].stride = from[i] - s[i].last;
			s[i].last = from[i];
			d->before = d->version >= 3 ? from[i] : d->before;
		}
		if (plain < b->nr_slots)
			d->tick = from[b->nr_slots - 1u] >> MEMORY_TICK_SHIFT;
		from += b->nr_slots;
	}
	return true;
}

/* The words of a wait, say: the same again and again. What is written is copied in turn. */
static void repeat(uint64_t *to, size_t distance, size_t m)
{
	enum { AT_ONCE = 4096 }; /* out of the first cache */
	const size_t most = distance < AT_ONCE ? AT_ONCE / distance * distance : distance;
	for (size_t done = 0, n; done < m; done += n) {
		n = done + distance < most ? done + distance : most; /* whole rounds */
		n = n < m - done ? n : m - done;
		memcpy(to + done, to - distance, n * sizeof *to);
	}
}

/* `m` words that go on as the 2 * `distance` before them, linearly. They do so at each multiple of
 * the distance, too: with longer ones no word waits for the one just written. */
static void decode_go_on(uint64_t *to, size_t distance, size_t m)
{
	enum { FAR = 256 };
	const uint64_t *before = to - distance;
	if (!memcmp(before - distance, before, distance * sizeof *to)) {
		repeat(to, distance, m);
		return;
	}
	for (size_t done = 0, step = distance; done < m;) {
		const size_t n = step < m - done ? step : m - done;
		uint64_t *restrict out = to + done;
		const uint64_t *restrict near = out - step, *restrict far = near - step;
		for (size_t i = 0; i < n; i++)
			out[i] = 2 * near[i] - far[i];
		done += n;
		while (step < FAR && 4 * step <= done + 2 * distance)
			step *= 2;
	}
}

static bool note_copy(struct memory_decoder *d, struct piece *z, struct memory_copy c)
{
	if (z->nr_copies == COPIES_MAX)
		return false;
	d->copy[z->nr_copies++] = c;
	return true;
}

/* Do the words at `at` go on from those before them as a copy of that distance would? */
static bool goes_on(const uint64_t *word, uint64_t at, const struct memory_copy *as)
{
	uint64_t differs = 0;
	if (at < 2 * (uint64_t)as->distance)
		return false;
	for (const uint64_t *w = word + at, *end = w + as->words; w < end; w++)
		differs |= w[0] - 2 * *(w - as->distance) + *(w - 2 * as->distance);
	return !differs;
}

/*
 * `m` words from z->at on go on as the 2 * `distance` before. Where most of these are of inner
 * loops, so are the new ones: consumers that take loops as a whole are better off with these, whose
 * bodies are short.
 */
static bool note_loops(struct memory_decoder *d, struct piece *z, uint64_t distance, uint64_t m)
{
	const uint64_t at = z->at, end = at + m;
	uint64_t words = 0;
	uint32_t first = z->nr_copies, nr;
	while (first && d->copy[first - 1].at >= at - distance)
		words += d->copy[--first].words;
	nr = z->nr_copies - first;
	bool same = nr && 2 * words >= distance;
	for (uint32_t i = 0; same && i < nr; i++)
		same = goes_on(z->word, d->copy[first + i].at - distance, &d->copy[first + i]);
	if (!same)
		return note_copy(d, z,
			(struct memory_copy){
				.at = z->at, .distance = (uint32_t)distance, .words = (uint32_t)m});
	for (uint64_t ahead = distance; ahead < m + distance; ahead += distance)
		for (uint32_t i = 0; i < nr; i++) {
			struct memory_copy c = d->copy[first + i];
			c.at += (uint32_t)ahead;
			if (c.at + 2 * c.distance > end)
				return true;
			c.words = c.at + c.words < end ? c.words : (uint32_t)(end - c.at);
			if (!note_copy(d, z, c))
				return false;
		}
	return true;
}

static bool copy(struct memory_decoder *d, struct piece *z)
{
	uint64_t distance, m;
	if (!get_number(z->tokens, &distance) || !get_number(z->tokens, &m) || !distance ||
		distance > MEMORY_COPY_DISTANCE_MAX || distance * 2 > z->at || m > z->nr - z->at ||
		m < distance * 2)
		return false;
	uint64_t *to = z->word + z->at;
	decode_go_on(to, distance, m);
	if (!learn(d, to, m, distance) || !note_loops(d, z, distance, m))
		return false;
	z->at += (uint32_t)m;
	return true;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static bool is_read(const struct piece *z)
{
	for (unsigned i = 0; i < MEMORY_PLANES; i++)
		if (z->plane[i].p != z->plane[i].end)
			return false;
	return true;
}

static bool tokens(struct memory_decoder *d, struct piece *z)
{
	for (;;) {
		uint64_t token, index;
		if (!get_number(z->tokens, &token))
			return false;
		for (uint64_t run = token >> 2; run; run--)
			if (!predicted(d, z))
				return false;
		switch ((enum memory_token)(token & 3)) {
		case MEMORY_TOKEN_SLOTS:
			if (!coded(d, z, expected(d), false))
				return false;
			break;
		case MEMORY_TOKEN_BLOCK:
			if (!get_number(z->tokens, &index) || !known(d, index))
				return false;
			if (!coded(d, z, index, false))
				return false;
			break;
		case MEMORY_TOKEN_COPY:
			if (!copy(d, z))
				return false;
			break;
		case MEMORY_TOKEN_END:
			if (z->at == z->nr)
				return is_read(z);
			if (d->version < 4 || !coded(d, z, expected(d), true))
				return false;
			break;
		}
	}
}

enum base_status memory_decoder_piece(
	struct memory_decoder *d, struct memory_words *ret, struct base_err *err)
{
	uint64_t nr, flags, begin, lasted, bytes[MEMORY_PLANES] = {0};
	struct plane rest = {d->p, d->end};
	if (d->p == d->end)
		return BASE_END;
	const bool one = d->version < 4;
	bool good = get_number(&rest, &nr) && get_number(&rest, &flags) &&
		    get_number(&rest, &begin) && get_number(&rest, &lasted);
	for (unsigned i = 0; good && i < (one ? 1 : MEMORY_PLANES); i++)
		good = get_number(&rest, &bytes[i]);
	d->p = d->end;
	if (!good || nr > MEMORY_PIECE_WORDS || flags > MEMORY_PIECE_HANDLER)
		return damaged(err, "a piece's head");
	struct piece z = {.word = d->word, .nr = (uint32_t)nr};
	for (unsigned i = 0; i < MEMORY_PLANES; i++) {
		if (bytes[i] > (uint64_t)(rest.end - rest.p))
			return damaged(err, "a piece's head");
		z.plane[i] = (struct plane){rest.p, rest.p + bytes[i]};
		rest.p += bytes[i];
	}
	z.tokens = &z.plane[MEMORY_PLANE_TOKENS];
	z.how = one ? z.tokens : &z.plane[MEMORY_PLANE_HOW];
	z.slots = one ? z.tokens : &z.plane[MEMORY_PLANE_SLOTS];
	z.ticks = one ? z.tokens : &z.plane[MEMORY_PLANE_TICKS];
	if (!tokens(d, &z))
		return damaged(err, "a piece's tokens");
	d->p = rest.p;
	*ret = (struct memory_words){.word = d->word,
		.nr = (uint32_t)nr,
		.copy = d->copy,
		.nr_copies = z.nr_copies,
		.begin_ticks = d->first_ticks + begin,
		.end_ticks = d->first_ticks + begin + lasted,
		.handler = flags & MEMORY_PIECE_HANDLER};
	return BASE_OK;
}
