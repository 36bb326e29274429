/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory_stream.c - laws: what the encoder of recorded programs writes, the decoder gives
 * back, word by word; damaged chunks end the reading, never the reader. And what items become of
 * blocks. */
#include "memory/stream/decode.h"
#include "record/words.h"
#include "ring/memory_encode.h"
#include "ring/processor.h"
#include "test.h"
#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 40, PIECES = 6, CODE_BYTES = 3 };

/* A program: blocks of one to three accesses by slots. */
struct program {
	struct memory_block_head head[BLOCKS];
	uint8_t info[BLOCKS * 64];
	size_t info_bytes;
	uint32_t slot_base[BLOCKS + 1];
	uint64_t nr_slots;
};
static struct program program;
static uint64_t raw[MEMORY_PIECE_WORDS];
static uint8_t chunk[MEMORY_CHUNK_MAX_BYTES], table[1 << 16];

static uint64_t random_u64(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static void put_info(struct program *p, const void *bytes, size_t nr)
{
	memcpy(p->info + p->info_bytes, bytes, nr);
	p->info_bytes += nr;
}

static void make_program(struct program *p)
{
	memset(p, 0, sizeof *p);
	/* Index 0 is in the section as well: a block without anything. */
	p->head[0].info = 0x20000 - (0x10000 + (int32_t)offsetof(struct memory_block_head, info));
	p->info_bytes = 2;
	for (uint32_t i = 1; i < BLOCKS; i++) {
		struct memory_block_head *h = &p->head[i];
		uint8_t nr = (uint8_t)(i % 4), ticks = i % 7 == 3;
		*h = (struct memory_block_head){.index = i,
			.nr_slots = (uint8_t)(nr + ticks),
			.nr_stack = nr > 1 && i % 3 == 0,
			.flags = (uint8_t)((i % 9 == 0 ? MEMORY_BLOCK_ENTRY : 0) |
					   ticks << MEMORY_BLOCK_TICKS_SHIFT),
			.terminator = i % 5 == 0 ? MEMORY_TERM_BRANCH : MEMORY_TERM_NONE,
			.code = (int32_t)(i * 100)};
		/* relative to the field: the sections are taken to be at 0x10000 and 0x20000 */
		h->info = (int32_t)(0x20000 + p->info_bytes -
				    (0x10000 + i * sizeof *h +
					    offsetof(struct memory_block_head, info)));
		p->slot_base[i] = (uint32_t)p->nr_slots;
		p->nr_slots += h->nr_slots;
		uint8_t nr_instructions = (uint8_t)(nr + 1);
		put_info(p, &nr_instructions, 1);
		put_info(p, &nr, 1);
		for (unsigned k = 0; k <= nr; k++)
			put_info(p, (const uint8_t[]){CODE_BYTES, 1}, 2);
		for (uint8_t k = 0; k < nr; k++) {
			int32_t disp = 8 * k;
			put_info(p, (const uint8_t[]){k, (uint8_t)(k & 1), 8, k}, 4);
			put_info(p, &disp, sizeof disp);
		}
	}
}

static enum base_status add_table(struct memory_tables_builder *b, unsigned section,
	uint64_t address, const void *bytes, size_t nr)
{
	struct memory_chunk_head h = {.magic = MEMORY_CHUNK_MAGIC,
		.version = MEMORY_STREAM_VERSION,
		.type = MEMORY_CHUNK_TABLE,
		.image = 1};
	struct memory_table_head t = {.section = section, .address = address, .bytes = nr};
	h.bytes = (uint32_t)(sizeof h + sizeof t + nr);
	memcpy(table, &h, sizeof h);
	memcpy(table + sizeof h, &t, sizeof t);
	memcpy(table + sizeof h + sizeof t, bytes, nr);
	return memory_tables_add(b, table, h.bytes, NULL);
}

static enum base_status make_tables(struct memory_tables *ret)
{
	struct memory_tables_builder *b = memory_tables_begin(1);
	if (!b)
		return BASE_ERR_NOMEM;
	enum base_status s =
		add_table(b, MEMORY_TABLE_BLOCKS, 0x10000, program.head, sizeof program.head);
	if (s == BASE_OK)
		s = add_table(b, MEMORY_TABLE_INFO, 0x20000, program.info, program.info_bytes);
	if (s != BASE_OK) {
		memory_tables_free(b);
		return s;
	}
	struct base_err err = {0};
	s = memory_tables_end(b, 3, ret, &err);
	if (s == BASE_ERR_CORRUPT)
		fail_msg("%s", err.cause[0]);
	return s;
}

static const struct memory_block_head *no_head(struct target_encoder *e, uintptr_t address)
{
	(void)e;
	(void)address;
	return NULL;
}

static struct target_block_state block_state[BLOCKS];
static struct memory_slot_state slot_state[BLOCKS * 8];

static struct target_encoder make_encoder(bool avx2)
{
	memset(block_state, 0, sizeof block_state);
	memset(slot_state, 0, sizeof slot_state);
	static struct target_encoder_room room;
	return (struct target_encoder){.block = block_state,
		.room = &room,
		.slot = slot_state,
		.slot_base = program.slot_base,
		.nr_blocks = BLOCKS,
		.avx2 = avx2,
		.heads = (uintptr_t)program.head,
		.nr_heads = BLOCKS,
		.head = program.head,
		.find = no_head};
}

/* The head that a word has, and its bits. */
static const struct memory_block_head *head_of(uint64_t word)
{
	return (const void *)(uintptr_t)memory_word_head(word);
}

/* Of a slot that is random among eight, or follows from the word before it. */
static uint64_t following(uint64_t *seed, uint64_t base, unsigned k, uint64_t before)
{
	if (!k)
		return base + random_u64(seed) % 8 * (base % 4 ? 4096 : 200);
	return base % 2 ? before + base % 64 : before * 77777 % (UINT64_C(1) << 40);
}

/* Loops of a few blocks with strides, with noise now and then, or words that follow each other. */
static size_t random_words(uint64_t *seed)
{
	size_t nr = 0;
	uint64_t tick = 1000;
	while (nr + 64 < MEMORY_PIECE_WORDS / 2) {
		unsigned length = 1 + (unsigned)(random_u64(seed) % 5);
		unsigned times = 1 + (unsigned)(random_u64(seed) % 60);
		uint32_t index[5];
		uint64_t base[5], stride = random_u64(seed) % 3 * 8;
		uint64_t bits = random_u64(seed) % 3 ? 0 : random_u64(seed);
		bool noisy = random_u64(seed) % 3 == 0, follows = random_u64(seed) % 4 == 0;
		times *= follows                ? 8
			 : random_u64(seed) % 6 ? 1
						: 100; /* a thread that waits, say */
		for (unsigned i = 0; i < length; i++) {
			index[i] = 1 + (uint32_t)(random_u64(seed) % (BLOCKS - 1));
			base[i] = random_u64(seed) >> (20 + random_u64(seed) % 30);
		}
		for (unsigned n = 0; n < times; n++)
			for (unsigned i = 0; i < length && nr + 16 < MEMORY_PIECE_WORDS; i++) {
				const struct memory_block_head *h = &program.head[index[i]];
				unsigned ticks = h->flags >> MEMORY_BLOCK_TICKS_SHIFT;
				raw[nr] = (uint64_t)(uintptr_t)h;
				if (h->nr_slots > ticks)
					raw[nr] |= (bits + (noisy ? random_u64(seed) % 2 : 0))
						   << MEMORY_WORD_SHIFT;
				nr++;
				for (unsigned k = 0; k < h->nr_slots; k++, nr++)
					if (k + ticks >= h->nr_slots)
						raw[nr] = tick += random_u64(seed) % 5000;
					else if (follows)
						raw[nr] = following(seed, base[i], k, raw[nr - 1]);
					else
						raw[nr] = base[i] + n * stride + k +
							  (noisy ? random_u64(seed) % 4 : 0);
			}
	}
	return nr;
}

/* One chunk of PIECES pieces; what was encoded, piece by piece, is compared by check(). */
static size_t encode(struct target_encoder *e, uint64_t *seed,
	uint64_t (*expected)[MEMORY_PIECE_WORDS], size_t *nr)
{
	struct memory_chunk_head h = {.magic = MEMORY_CHUNK_MAGIC,
		.version = MEMORY_STREAM_VERSION,
		.type = MEMORY_CHUNK_STREAM,
		.image = 1,
		.thread = 1};
	uint8_t *p = chunk + sizeof h;
	longpole_target_encode_start(e, 0);
	for (unsigned i = 0; i < PIECES; i++) {
		nr[i] = random_words(seed);
		struct target_piece piece = {
			.words = raw, .nr = nr[i], .begin_ticks = i * 100, .lasted_ticks = 50};
		uint8_t *end = longpole_target_encode_piece(e, &piece, p);
		assert_int_equal(piece.done, nr[i]);
		assert_true((size_t)(end - p) <= target_piece_bound(nr[i]));
		memcpy(expected[i], raw, nr[i] * sizeof *raw); /* ticks are rounded by now */
		p = end;
	}
	h.bytes = (uint32_t)(p - chunk);
	memcpy(chunk, &h, sizeof h);
	return h.bytes;
}

/* In order, apart, and linear: what takes loops as a whole relies on that. */
static void assert_copies(const struct memory_words *w)
{
	uint32_t end = 0;
	for (uint32_t i = 0; i < w->nr_copies; i++) {
		const struct memory_copy *c = &w->copy[i];
		assert_true(c->at >= end && c->at >= 2 * c->distance);
		end = c->at + c->words;
		assert_true(c->words >= 2 * c->distance && end <= w->nr);
		for (const uint64_t *at = w->word + c->at; at < w->word + end; at++)
			assert_true(at[0] - *(at - c->distance) ==
				    *(at - c->distance) - *(at - 2 * c->distance));
	}
}

static void test_round_trip(void **state)
{
	static uint64_t expected[PIECES][MEMORY_PIECE_WORDS];
	size_t nr[PIECES];
	struct memory_tables t;
	struct memory_words w;
	(void)state;
	make_program(&program);
	assert_int_equal(make_tables(&t), BASE_OK);
	struct memory_decoder *d = memory_decoder_new(&t);
	assert_non_null(d);
	uint64_t seed = 88172645463325252u, copies = 0;
	for (unsigned round = 0; round < 12; round++) {
		struct target_encoder e = make_encoder(round % 2 && processor_has_avx2());
		for (unsigned again = 0; again < 2; again++) { /* a second chunk starts afresh */
			size_t bytes = encode(&e, &seed, expected, nr);
			assert_int_equal(memory_decoder_chunk(d, chunk, bytes, NULL), BASE_OK);
			for (unsigned i = 0; i < PIECES; i++) {
				assert_int_equal(memory_decoder_piece(d, &w, NULL), BASE_OK);
				assert_int_equal(w.nr, nr[i]);
				assert_int_equal(w.begin_ticks, i * 100);
				copies += w.nr_copies;
				assert_copies(&w);
				for (size_t k = 0; k < nr[i];) {
					const struct memory_block_head *h = head_of(expected[i][k]);
					assert_int_equal(memory_word_head(w.word[k]), h->index);
					assert_int_equal(memory_word_bits(w.word[k]),
						memory_word_bits(expected[i][k]));
					assert_memory_equal(w.word + k + 1, expected[i] + k + 1,
						h->nr_slots * sizeof *raw);
					k += 1u + h->nr_slots;
				}
			}
			assert_int_equal(memory_decoder_piece(d, &w, NULL), BASE_END);
		}
	}
	assert_true(copies > 100); /* the loops were found */
	memory_decoder_free(d);
	memory_tables_fini(&t);
}

/* The first nr words of raw as the only piece of a chunk. Returns its bytes without the head; *ret
 * lives as long as the decoder. */
static size_t encode_and_decode(
	struct memory_tables *t, uint64_t nr, struct memory_decoder **d, struct memory_words *ret)
{
	struct memory_chunk_head h = {.magic = MEMORY_CHUNK_MAGIC,
		.version = MEMORY_STREAM_VERSION,
		.type = MEMORY_CHUNK_STREAM,
		.image = 1};
	struct target_encoder e = make_encoder(false);
	struct target_piece piece = {.words = raw, .nr = nr};
	longpole_target_encode_start(&e, 0);
	h.bytes = (uint32_t)(longpole_target_encode_piece(&e, &piece, chunk + sizeof h) - chunk);
	memcpy(chunk, &h, sizeof h);
	*d = memory_decoder_new(t);
	assert_non_null(*d);
	assert_int_equal(memory_decoder_chunk(*d, chunk, h.bytes, NULL), BASE_OK);
	assert_int_equal(memory_decoder_piece(*d, ret, NULL), BASE_OK);
	assert_int_equal(ret->nr, nr);
	return h.bytes - sizeof h;
}

/* Rows of a matrix, of INNER elements each: what the outer loop does again and again needs no more
 * bytes than one of its rounds, and is still told by its inner loops, which are short. */
static void test_nested_loops(void **state)
{
	enum { INNER = 40, OUTER = 30, ROUNDS = 4, ROW = 1, ELEMENT = 2, NEXT = 4 };
	struct memory_tables t;
	struct memory_words w;
	struct memory_decoder *d;
	static uint64_t expected[MEMORY_PIECE_WORDS];
	uint64_t nr = 0, in_loops = 0;
	(void)state;
	make_program(&program);
	assert_int_equal(make_tables(&t), BASE_OK);
	assert_int_equal(program.head[ELEMENT].nr_slots, 2);
	assert_int_equal(program.head[ROW].nr_slots, 1);
	for (uint64_t round = 0; round < ROUNDS; round++)
		for (uint64_t i = 0; i < OUTER; i++) {
			raw[nr++] = (uint64_t)(uintptr_t)&program.head[ROW];
			raw[nr++] = 0x1000 + 8 * i;
			for (uint64_t k = 0; k < INNER; k++) {
				raw[nr++] = (uint64_t)(uintptr_t)&program.head[ELEMENT];
				raw[nr++] = 0x100000 * (round + 1) + 4096 * i + 8 * k;
				raw[nr++] = 0x900000 + 8 * k;
			}
			raw[nr++] = (uint64_t)(uintptr_t)&program.head[NEXT];
		}
	memcpy(expected, raw, nr * sizeof *raw);
	assert_true(encode_and_decode(&t, nr, &d, &w) < ROUNDS * 100);
	for (size_t k = 0; k < nr; k += 1u + head_of(expected[k])->nr_slots) {
		assert_int_equal(memory_word_head(w.word[k]), head_of(expected[k])->index);
		assert_memory_equal(w.word + k + 1, expected + k + 1,
			head_of(expected[k])->nr_slots * sizeof *raw);
	}
	assert_copies(&w);
	for (uint32_t i = 0; i < w.nr_copies; i++)
		in_loops += w.copy[i].distance == 1u + program.head[ELEMENT].nr_slots
				    ? w.copy[i].words
				    : 0;
	assert_true(in_loops > nr * 8 / 10);
	memory_decoder_free(d);
	memory_tables_fini(&t);
}

/* A loop of one block that accesses nothing is a loop, too. */
static void test_shortest_loop(void **state)
{
	enum { TIMES = 100, EMPTY = 4 };
	struct memory_tables t;
	struct memory_words w;
	struct memory_decoder *d;
	(void)state;
	make_program(&program);
	assert_int_equal(make_tables(&t), BASE_OK);
	for (unsigned i = 0; i < TIMES; i++)
		raw[i] = (uint64_t)(uintptr_t)&program.head[EMPTY];
	(void)encode_and_decode(&t, TIMES, &d, &w);
	assert_int_equal(w.nr_copies, 1);
	assert_int_equal(w.copy[0].distance, 1);
	assert_copies(&w);
	memory_decoder_free(d);
	memory_tables_fini(&t);
}

/* Whether a block was coded last time is what the encoder expects, and nothing that is in a stream:
 * neither in the words nor in the bytes. */
static void test_expected_coded(void **state)
{
	static uint8_t first[MEMORY_CHUNK_MAX_BYTES];
	static uint64_t words[2][MEMORY_PIECE_WORDS];
	uint64_t seed = 1234567;
	(void)state;
	make_program(&program);
	for (unsigned round = 0; round < 40; round++) {
		size_t nr[2], bytes = 0;
		for (unsigned i = 0; i < 2; i++) {
			nr[i] = random_words(&seed);
			memcpy(words[i], raw, nr[i] * sizeof *raw);
		}
		for (unsigned how = 0; how < 4; how++) {
			struct target_encoder e = make_encoder(false);
			struct target_piece piece = {.words = raw, .nr = nr[0]};
			uint8_t *to = how ? chunk : first, *end;
			longpole_target_encode_start(&e, 0);
			memcpy(raw, words[0], nr[0] * sizeof *raw);
			end = longpole_target_encode_piece(&e, &piece, to);
			for (unsigned i = 0; how && i < BLOCKS; i++) {
				struct target_block_state *b = &block_state[i];
				bool can = b->nr_plain == b->nr_slots;
				b->nr_followed = can && how > 1 + i % 2 ? b->nr_slots : UINT8_MAX;
			}
			piece.nr = nr[1];
			memcpy(raw, words[1], nr[1] * sizeof *raw);
			end = longpole_target_encode_piece(&e, &piece, end);
			assert_int_equal(piece.done, nr[1]);
			bytes = how ? bytes : (size_t)(end - to);
			assert_int_equal(end - to, bytes);
			assert_memory_equal(to, first, bytes);
		}
	}
}

enum { PLACED_AT = 0x58001000 };
static _Alignas(8) uint8_t raw_chunk[MEMORY_CHUNK_MAX_BYTES];
static uint64_t chunk_ticks; /* the first of chunk[] */

/* Where a block's head is in a table that says so itself. */
static uint32_t place_of(size_t block)
{
	return (uint32_t)(block * 7 % BLOCKS);
}

/* Heads [from, to) of a module that came then: at the program's own addresses, or at their places.
 */
static void learn(struct record_words *w, uint32_t module, uint64_t ticks, size_t from, size_t to,
	bool placed)
{
	struct memory_chunk_head h = {.magic = MEMORY_CHUNK_MAGIC,
		.version = MEMORY_STREAM_VERSION,
		.type = MEMORY_CHUNK_TABLE,
		.image = placed ? 2 : 1,
		.first_ticks = ticks};
	struct memory_table_head t = {.module = module,
		.section = MEMORY_TABLE_BLOCKS,
		.address = placed ? PLACED_AT + module : (uintptr_t)program.head,
		.bytes = (to - from) * sizeof program.head[0],
		.first_index = placed ? (uint32_t)from : module * BLOCKS,
		.flags = placed ? MEMORY_TABLE_IN_PLACE | MEMORY_TABLE_PLACED : 0};
	size_t bytes = (to - from) * sizeof program.head[0];
	if (!placed) {
		t.bytes = sizeof program.head;
		t.offset = from * sizeof program.head[0];
	}
	h.bytes = (uint32_t)(sizeof h + sizeof t + bytes);
	memcpy(table, &h, sizeof h);
	memcpy(table + sizeof h, &t, sizeof t);
	memcpy(table + sizeof h + sizeof t, program.head + from, bytes);
	for (size_t i = from; placed && i < to; i++) {
		uint32_t place = place_of(i);
		memcpy(table + sizeof h + sizeof t + (i - from) * sizeof program.head[0] +
				offsetof(struct memory_block_head, index),
			&place, sizeof place);
	}
	record_words_learn(w, table, h.bytes);
}

/* The words of raw[], as a recorder has them whose heads are at their places. */
static void place_words(uint64_t *to, size_t nr)
{
	for (size_t i = 0; i < nr;) {
		const struct memory_block_head *h = head_of(raw[i]);
		to[i] = raw[i] - (uintptr_t)h + PLACED_AT +
			place_of((size_t)(h - program.head)) * sizeof *h;
		memcpy(to + i + 1, raw + i + 1, h->nr_slots * sizeof *raw);
		i += 1u + h->nr_slots;
	}
}

static size_t write_chunk(
	uint8_t *to, struct memory_chunk_head h, const uint8_t *end, unsigned type)
{
	h.type = (uint16_t)type;
	h.bytes = (uint32_t)(end - to);
	memcpy(to, &h, sizeof h);
	return h.bytes;
}

/* A raw chunk, and behind what is in chunk[] (from *io on; NULL: nothing is) what the target would
 * have made of it. */
static size_t make_raw(
	uint64_t *seed, struct target_encoder *e, uint8_t **io, uint64_t first_ticks, bool placed)
{
	struct memory_chunk_head h = {.magic = MEMORY_CHUNK_MAGIC,
		.version = MEMORY_STREAM_VERSION,
		.type = MEMORY_RING_RAW,
		.image = placed ? 2 : 1,
		.tables = placed ? 2 : 1,
		.thread = 1,
		.first_ticks = first_ticks};
	uint8_t *p = raw_chunk + sizeof h, *to = *io;
	if (!to) {
		chunk_ticks = first_ticks;
		to = chunk + sizeof h;
		longpole_target_encode_start(e, first_ticks);
	}
	for (unsigned i = 0; i < PIECES; i++) {
		size_t nr = random_words(seed);
		struct memory_ring_piece head = {nr, i % 2, i * 100, 50};
		struct target_piece piece = {.words = raw,
			.nr = nr,
			.flags = i % 2,
			.begin_ticks = first_ticks + i * 100 - chunk_ticks,
			.lasted_ticks = 50};
		memcpy(p, &head, sizeof head);
		memcpy(p + sizeof head, raw, nr * sizeof *raw);
		if (placed)
			place_words((uint64_t *)(void *)(p + sizeof head), nr);
		p += sizeof head + nr * sizeof *raw;
		to = longpole_target_encode_piece(e, &piece, to);
	}
	*io = to;
	h.last_ticks = first_ticks + (PIECES - 1) * 100 + 50;
	h.version--; /* of a program that was built by an older longpole: the encoder is ours */
	size_t bytes = write_chunk(raw_chunk, h, p, MEMORY_RING_RAW);
	h.version++;
	h.first_ticks = chunk_ticks;
	(void)write_chunk(chunk, h, to, MEMORY_CHUNK_STREAM);
	return bytes;
}

/* Returns how many words are lost. */
static uint64_t encode_raw(struct record_words *w, struct record_coder *c, size_t bytes)
{
	struct record_raw r = {.chunk = raw_chunk};
	memcpy(&r.head, raw_chunk, sizeof r.head);
	r.head.bytes = (uint32_t)bytes;
	assert_true(record_words_encode(w, c, &r));
	assert_true(r.begun);
	return r.nr_lost;
}

static void assert_chunk(struct record_coder *c)
{
	struct memory_chunk_head h;
	size_t size_bytes = 0;
	const uint8_t *out = record_coder_take(c, &size_bytes);
	assert_non_null(out);
	memcpy(&h, chunk, sizeof h);
	assert_int_equal(size_bytes, h.bytes);
	assert_memory_equal(out, chunk, size_bytes);
	assert_null(record_coder_take(c, &size_bytes));
}

/* What the recorder makes of raw words is what the target would have made of them. */
static void test_raw(void **state)
{
	uint64_t seed = 4711, bad = 8;
	struct memory_chunk_head h;
	struct record_words *w = record_words_new();
	struct record_coder *c = record_coder_new();
	size_t bytes, words, size_bytes;
	(void)state;
	assert_non_null(w);
	assert_non_null(c);
	make_program(&program);
	for (unsigned i = 0; i < 7; i++) {
		struct target_encoder e = make_encoder(false);
		uint8_t *to = NULL;
		bytes = make_raw(&seed, &e, &to, 1000, false);
		if (!i) { /* no tables yet */
			assert_int_equal(encode_raw(w, c, bytes), (bytes - sizeof h) / 8);
			assert_non_null(record_coder_take(c, &size_bytes));
			learn(w, 0, 900, BLOCKS / 2, BLOCKS, false);
			learn(w, 0, 900, 0, BLOCKS / 2, false);
			learn(w, 0, 900, 0, BLOCKS / 2, false);
			learn(w, 1, 2000, 0, BLOCKS, false); /* another in its place, later */
			continue;
		}
		assert_int_equal(encode_raw(w, c, bytes), 0);
		assert_chunk(c);
	}
	/* what is no head, in the first piece */
	struct target_encoder e = make_encoder(false);
	uint8_t *to = NULL;
	bytes = make_raw(&seed, &e, &to, 1000, false);
	memcpy(&words, raw_chunk + sizeof h, sizeof words);
	memcpy(raw_chunk + sizeof h + sizeof(struct memory_ring_piece), &bad, sizeof bad);
	assert_int_equal(encode_raw(w, c, bytes), words);
	assert_non_null(record_coder_take(c, &size_bytes));
	for (unsigned i = 0; i < 300; i++) { /* nonsense */
		to = NULL;
		bytes = make_raw(&seed, &e, &to, 1000, false);
		for (unsigned k = 0; k < 20; k++)
			raw_chunk[sizeof h + random_u64(&seed) % (bytes - sizeof h)] ^=
				(uint8_t)random_u64(&seed);
		bytes -= random_u64(&seed) % 2 ? random_u64(&seed) % (bytes - sizeof h) : 0;
		(void)encode_raw(w, c, bytes);
		assert_non_null(record_coder_take(c, &size_bytes));
		assert_true(size_bytes >= sizeof h && size_bytes <= MEMORY_CHUNK_MAX_BYTES);
	}
	record_coder_free(c);
	record_words_free(w);
}

/* Raw chunks of a thread, put together, are the one that the target would have made of all their
 * words; the next begins where one is full, or with another thread. */
static void test_raw_together(void **state)
{
	uint64_t seed = 1147, ticks = 5000;
	struct record_words *w = record_words_new();
	struct record_coder *c = record_coder_new();
	struct target_encoder e = make_encoder(false);
	struct record_raw r = {.chunk = raw_chunk};
	struct memory_chunk_head h;
	uint8_t *to = NULL;
	size_t size_bytes;
	unsigned nr = 0;
	(void)state;
	assert_non_null(w);
	assert_non_null(c);
	make_program(&program);
	learn(w, 3, 900, BLOCKS / 2, BLOCKS, true); /* module 0 says where all are */
	learn(w, 0, 900, 1, BLOCKS / 2, true);
	for (; !nr || (size_t)(to - chunk) < sizeof chunk / 2; nr++, ticks += 1000) {
		(void)make_raw(&seed, &e, &to, ticks, true);
		r = (struct record_raw){.chunk = raw_chunk};
		memcpy(&r.head, raw_chunk, sizeof r.head);
		assert_true(record_words_encode(w, c, &r));
		assert_int_equal(r.nr_lost, 0);
		assert_true(r.begun == !nr);
	}
	assert_true(nr > 1);
	r.at = 0;
	r.head.thread = 2;
	assert_false(record_words_encode(w, c, &r)); /* another thread */
	assert_chunk(c);
	r.begun = false;
	assert_true(record_words_encode(w, c, &r));
	assert_true(r.begun);
	/* until there is no room */
	for (nr = 0; nr < 1000; nr++) {
		r.at = 0;
		r.begun = false;
		if (!record_words_encode(w, c, &r))
			break;
		assert_false(r.begun);
	}
	assert_true(nr < 1000 && r.at > 0 && r.at < r.head.bytes);
	bool some = r.at > sizeof h;
	assert_non_null(record_coder_take(c, &size_bytes));
	assert_true(size_bytes > sizeof chunk / 2);
	assert_true(record_words_encode(w, c, &r));
	assert_true(r.begun && r.at == r.head.bytes && !r.nr_lost);
	const uint8_t *rest = record_coder_take(c, &size_bytes);
	assert_non_null(rest);
	memcpy(&h, rest, sizeof h);
	assert_true(
		some ? h.first_ticks > r.head.first_ticks : h.first_ticks == r.head.first_ticks);
	assert_int_equal(h.last_ticks, r.head.last_ticks);
	record_coder_free(c);
	record_words_free(w);
}

/* Of a plain slot the neighbour was a stack address in version 1, and is a plain one since; up to
 * version 3 all is in one plane. (What later ones predict better does not come up here.) */
static void test_versions(void **state)
{
	enum { TWICE = 6, BLOCK = 6 /* a stack slot and a plain one */ };
	static const uint8_t slot[][3] = {{MEMORY_SLOT_PREDICTED << 4 | 2, 0x00, 0x20},
		{MEMORY_SLOT_NEIGHBOUR << 4 | 1, 0x10}, {MEMORY_SLOT_LAST << 4},
		{MEMORY_SLOT_NEIGHBOUR << 4 | 1, 0x10}};
	static const uint64_t expect[][TWICE] = {{BLOCK, 0x1000, 0x1008, BLOCK, 0x1000, 0x1008},
		{BLOCK, 0x1000, 8, BLOCK, 0x1000, 16}};
	struct memory_tables t;
	struct memory_words w;
	(void)state;
	make_program(&program);
	assert_int_equal(make_tables(&t), BASE_OK);
	struct memory_decoder *d = memory_decoder_new(&t);
	for (unsigned version = 0; version <= MEMORY_STREAM_VERSION + 1; version++) {
		struct memory_chunk_head h = {.magic = MEMORY_CHUNK_MAGIC,
			.version = (uint16_t)version,
			.type = MEMORY_CHUNK_STREAM,
			.image = 1,
			.thread = 1};
		uint8_t plane[3][32], *end[3] = {plane[0], plane[1], plane[2]};
		uint8_t *tokens = plane[0], *p = chunk + sizeof h;
		uint8_t **how = version < 4 ? &end[0] : &end[1];
		uint8_t **data = version < 4 ? &end[0] : &end[2];
		for (unsigned i = 0; i < 4; i++) {
			if (i % 2 == 0) {
				*end[0]++ = MEMORY_TOKEN_BLOCK;
				*end[0]++ = BLOCK;
			}
			*(*how)++ = slot[i][0];
			memcpy(*data, slot[i] + 1, slot[i][0] & 15);
			*data += slot[i][0] & 15;
		}
		*end[0]++ = MEMORY_TOKEN_END;
		const uint8_t head[] = {TWICE, 0, 0, 0, (uint8_t)(end[0] - tokens),
			(uint8_t)(end[1] - plane[1]), (uint8_t)(end[2] - plane[2]), 0};
		memcpy(p, head, sizeof head);
		p += version < 4 ? 5 : sizeof head;
		for (unsigned i = 0; i < 3; i++) {
			memcpy(p, plane[i], (size_t)(end[i] - plane[i]));
			p += end[i] - plane[i];
		}
		h.bytes = (uint32_t)(p - chunk);
		memcpy(chunk, &h, sizeof h);
		if (version < 1 || version > MEMORY_STREAM_VERSION) {
			assert_int_equal(
				memory_decoder_chunk(d, chunk, h.bytes, NULL), BASE_ERR_CORRUPT);
			continue;
		}
		assert_int_equal(memory_decoder_chunk(d, chunk, h.bytes, NULL), BASE_OK);
		assert_int_equal(memory_decoder_piece(d, &w, NULL), BASE_OK);
		assert_int_equal(w.nr, TWICE);
		assert_memory_equal(w.word, expect[version > 1], sizeof expect[0]);
	}
	memory_decoder_free(d);
	memory_tables_fini(&t);
}

/* What comes after a block: up to version 6 what did last time, since then what did after the same
 * blocks before it. */
static void test_successors(void **state)
{
	enum { ONE = 8, TWO = 12, THREE = 28 }; /* without slots */
	static const uint8_t blocks[] = {
		ONE, TWO, ONE, THREE, ONE, TWO, ONE, THREE, ONE, TWO, ONE}; /* THREE */
	struct memory_tables t;
	struct memory_words w;
	(void)state;
	make_program(&program);
	assert_int_equal(make_tables(&t), BASE_OK);
	struct memory_decoder *d = memory_decoder_new(&t);
	for (unsigned version = 2; version <= MEMORY_STREAM_VERSION; version++) {
		struct memory_chunk_head h = {.magic = MEMORY_CHUNK_MAGIC,
			.version = (uint16_t)version,
			.type = MEMORY_CHUNK_STREAM,
			.image = 1,
			.thread = 1};
		uint8_t tokens[64], *end = tokens, *p = chunk + sizeof h;
		for (unsigned i = 0; i < sizeof blocks; i++) {
			*end++ = MEMORY_TOKEN_BLOCK;
			*end++ = blocks[i];
		}
		*end++ = 1 << 2 | MEMORY_TOKEN_END;
		const uint8_t head[] = {
			sizeof blocks + 1, 0, 0, 0, (uint8_t)(end - tokens), 0, 0, 0};
		size_t head_bytes = version < 4 ? 5 : sizeof head;
		memcpy(p, head, head_bytes);
		memcpy(p + head_bytes, tokens, (size_t)(end - tokens));
		h.bytes = (uint32_t)(sizeof h + head_bytes + (size_t)(end - tokens));
		memcpy(chunk, &h, sizeof h);
		assert_int_equal(memory_decoder_chunk(d, chunk, h.bytes, NULL), BASE_OK);
		assert_int_equal(memory_decoder_piece(d, &w, NULL), BASE_OK);
		assert_int_equal(w.nr, sizeof blocks + 1);
		for (unsigned i = 0; i < sizeof blocks; i++)
			assert_int_equal(w.word[i], blocks[i]);
		assert_int_equal(w.word[sizeof blocks], version < 7 ? TWO : THREE);
	}
	memory_decoder_free(d);
	memory_tables_fini(&t);
}

/* A trace whose streams are of a later version is refused, with the reason. */
static void test_later_version(void **state)
{
	struct memory_chunk_head h = {.magic = MEMORY_CHUNK_MAGIC,
		.version = MEMORY_STREAM_VERSION + 1,
		.type = MEMORY_CHUNK_STREAM,
		.bytes = sizeof h,
		.image = 1,
		.thread = 1};
	const struct trace_info info = {
		.size = sizeof info, .host = "h", .command = "c", .tool = "t"};
	char path[TEMPORARY_PATH];
	const char *paths[] = {path};
	struct trace_writer *w;
	struct memory_source *s;
	struct base_err err = {0};
	(void)state;
	temporary_file(path, NULL, 0);
	assert_int_equal(trace_writer_open(path, &info, &w, NULL), BASE_OK);
	assert_int_equal(
		trace_writer_put_content(w, TRACE_CONTENT_MEMORY, 1, 0, 1, &h, sizeof h, NULL),
		BASE_OK);
	assert_int_equal(trace_writer_close(w, NULL), BASE_OK);
	assert_int_equal(memory_source_open("lpt", paths, 1, &s, &err), BASE_ERR_VERSION);
	assert_int_equal(err.nr_causes, 1);
	unlink(path);
}

static uint64_t walk_all(const struct memory_tables *t, struct memory_decoder *d, size_t bytes)
{
	static struct memory_item item[MEMORY_BATCH_MAX];
	struct memory_call call[MEMORY_WALK_CALLS_MIN];
	struct memory_walk w = {.tables = t, .level = 3};
	struct memory_words words;
	uint64_t accesses = 0;
	if (memory_decoder_chunk(d, chunk, bytes, NULL) != BASE_OK)
		return 0;
	while (memory_decoder_piece(d, &words, NULL) == BASE_OK) {
		size_t nr, nr_calls;
		memory_walk_begin(&w, &words);
		while ((nr = memory_walk_items(&w, item, MEMORY_BATCH_MAX, call,
				MEMORY_WALK_CALLS_MIN, &nr_calls))) {
			struct memory_batch b = {
				.item = item, .nr = nr, .call = call, .nr_calls = nr_calls};
			struct base_err err = {0};
			if (memory_batch_check(&b, &err) != BASE_OK)
				fail_msg("%s", err.cause[0]);
			for (size_t i = 0; i < nr; i++) {
				uint64_t times = 1, body = 0;
				if (item[i].kind == MEMORY_REPEAT)
					times = item[i].count, body = item[i].address, i++;
				for (uint64_t k = 0; k < (body ? body : 1); k++)
					accesses += item[i + k].kind <= MEMORY_ATOMIC ? times : 0;
				i += body ? body - 1 : 0;
			}
		}
	}
	return accesses + w.counts.bad_addresses;
}

/* Atomic accesses: with the time after them alone they happen then; with two, at the first one, and
 * what follows at the other; without any when the piece began. */
static void test_stamps(void **state)
{
	enum { AFTER = 1, TWO, NONE, NR_BLOCKS };
	static const uint8_t slots[NR_BLOCKS][3] = {
		[AFTER] = {1, 255, 0}, [TWO] = {2, 0, 1}, [NONE] = {0, 255, 255}};
	uint64_t word[] = {AFTER, 3000, TWO, 4000, 5000, NONE};
	static const uint64_t expect[] = {
		1000, 3000, MEMORY_ATOMIC, 4000, MEMORY_ATOMIC, 5000, MEMORY_ATOMIC};
	struct memory_item item[MEMORY_BATCH_MAX];
	struct memory_call call[MEMORY_WALK_CALLS_MIN];
	struct memory_tables t;
	size_t nr_calls, n = 0;
	(void)state;
	make_program(&program);
	for (size_t i = AFTER; i < NR_BLOCKS; i++) {
		struct memory_block_head *h = &program.head[i];
		int32_t disp = 0x4000;
		h->nr_slots = slots[i][0];
		h->flags = (uint8_t)(h->nr_slots << MEMORY_BLOCK_TICKS_SHIFT);
		h->nr_stack = 0;
		h->info = (int32_t)(0x20000 + program.info_bytes -
				    (0x10000 + i * sizeof *h +
					    offsetof(struct memory_block_head, info)));
		put_info(&program, (const uint8_t[]){1, 1, CODE_BYTES, 1}, 4);
		put_info(&program,
			(const uint8_t[]){
				0, MEMORY_ACCESS_BOTH | MEMORY_FORM_ABSOLUTE << 4, 8, 255},
			4);
		put_info(&program, &disp, sizeof disp);
		put_info(&program, slots[i] + 1, 2);
	}
	assert_int_equal(make_tables(&t), BASE_OK);
	struct memory_walk w = {.tables = &t, .level = 3, .clock = {.factor = (uint64_t)1 << 40}};
	struct memory_words words = {.word = word, .nr = BASE_COUNT(word), .begin_ticks = 1000};
	memory_walk_begin(&w, &words);
	size_t nr = memory_walk_items(
		&w, item, MEMORY_BATCH_MAX, call, MEMORY_WALK_CALLS_MIN, &nr_calls);
	for (size_t i = 0; i < nr; i++) {
		if (item[i].kind != MEMORY_STAMP && item[i].kind != MEMORY_ATOMIC)
			continue;
		assert_true(n < BASE_COUNT(expect));
		assert_int_equal(
			item[i].kind == MEMORY_STAMP ? item[i].address : item[i].kind, expect[n]);
		n++;
	}
	assert_int_equal(n, BASE_COUNT(expect));
	memory_tables_fini(&t);
}

/* As many accesses as the blocks have, loops or not. */
static void test_items(void **state)
{
	static uint64_t expected[PIECES][MEMORY_PIECE_WORDS];
	size_t nr[PIECES];
	struct memory_tables t;
	(void)state;
	make_program(&program);
	assert_int_equal(make_tables(&t), BASE_OK);
	struct memory_decoder *d = memory_decoder_new(&t);
	uint64_t seed = 99;
	struct target_encoder e = make_encoder(false);
	size_t bytes = encode(&e, &seed, expected, nr);
	uint64_t accesses = 0;
	for (unsigned i = 0; i < PIECES; i++)
		for (size_t k = 0; k < nr[i];) {
			const struct memory_block_head *h = head_of(expected[i][k]);
			accesses += h->index % 4;
			k += 1u + h->nr_slots;
		}
	assert_int_equal(walk_all(&t, d, bytes), accesses);
	memory_decoder_free(d);
	memory_tables_fini(&t);
}

/* Any byte of a chunk may be wrong, and it may end anywhere. */
static void test_damage(void **state)
{
	static uint64_t expected[PIECES][MEMORY_PIECE_WORDS];
	static uint8_t whole[MEMORY_CHUNK_MAX_BYTES];
	size_t nr[PIECES];
	struct memory_tables t;
	(void)state;
	make_program(&program);
	assert_int_equal(make_tables(&t), BASE_OK);
	struct memory_decoder *d = memory_decoder_new(&t);
	uint64_t seed = 7;
	struct target_encoder e = make_encoder(false);
	size_t bytes = encode(&e, &seed, expected, nr);
	memcpy(whole, chunk, bytes);
	for (unsigned i = 0; i < 400; i++) {
		uint64_t at = random_u64(&seed) % bytes;
		memcpy(chunk, whole, bytes);
		chunk[at] ^= (uint8_t)(1 + random_u64(&seed) % 255);
		(void)walk_all(&t, d, bytes);
		memcpy(chunk, whole, bytes);
		struct memory_chunk_head h;
		memcpy(&h, chunk, sizeof h);
		h.bytes = (uint32_t)(at < sizeof h ? sizeof h : at);
		memcpy(chunk, &h, sizeof h);
		(void)walk_all(&t, d, h.bytes);
	}
	memory_decoder_free(d);
	memory_tables_fini(&t);
}

static void test_no_memory(void **state)
{
	unsigned failed = 0;
	(void)state;
	make_program(&program);
	for (uint64_t n = 1; n < 100; n++) {
		struct memory_tables t;
		base_alloc_fail_nth(n);
		enum base_status s = make_tables(&t);
		struct memory_decoder *d = s == BASE_OK ? memory_decoder_new(&t) : NULL;
		base_alloc_fail_nth(0);
		failed += s != BASE_OK || !d;
		if (s != BASE_OK)
			assert_int_equal(s, BASE_ERR_NOMEM);
		memory_decoder_free(d);
		if (s == BASE_OK)
			memory_tables_fini(&t);
		if (s == BASE_OK && d)
			break;
	}
	assert_true(failed > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_nested_loops),
		cmocka_unit_test(test_shortest_loop),
		cmocka_unit_test(test_expected_coded),
		cmocka_unit_test(test_raw),
		cmocka_unit_test(test_raw_together),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_successors),
		cmocka_unit_test(test_later_version),
		cmocka_unit_test(test_stamps),
		cmocka_unit_test(test_items),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
