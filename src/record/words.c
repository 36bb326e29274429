/* SPDX-License-Identifier: Apache-2.0 */
/* words.c - heads of blocks by their addresses in the target; raw chunks. */
#include "record/words.h"
#include "base/base.h"
#include "ring/memory_encode.h"
#include "ring/processor.h"

#include <string.h>

struct module {
	uint32_t number;
	uint64_t address, first_ticks; /* of the heads in the target; when they came */
	struct memory_block_head *head;
	size_t nr, capacity;
};

/* The image whose tables count. */
struct image {
	uint32_t number;
	struct module *module;
	size_t nr_modules, modules_capacity;
	struct module placed; /* all that are MEMORY_TABLE_PLACED, at their places */
	uint32_t *slot_base;  /* by index */
	size_t nr_blocks, blocks_capacity, nr_slots;
};

struct record_words {
	struct image *image;
	size_t nr_images, images_capacity;
};

/* Predictors start afresh with each chunk: it can go from one thread, or image, to another. */
struct record_coder {
	struct target_encoder encoder; /* first: words_find_head() */
	const struct image *image;     /* of the current piece */
	uint64_t ticks;                /* its end */
	size_t block_states, slot_states;
	struct target_encoder_room room;
	struct memory_chunk_head head; /* magic 0: there is no chunk */
	uint8_t chunk[MEMORY_RING_BLOCK_BYTES], *to;
	uint64_t word[MEMORY_PIECE_WORDS]; /* of a piece: their writer may write again */
};

struct record_words *record_words_new(void)
{
	return base_alloc(sizeof(struct record_words));
}

void record_words_free(struct record_words *w)
{
	for (size_t i = 0; w && i < w->nr_images; i++) {
		struct image *image = &w->image[i];
		for (size_t k = 0; k < image->nr_modules; k++)
			base_free(image->module[k].head);
		base_free(image->placed.head);
		base_free(image->module);
		base_free(image->slot_base);
	}
	if (w)
		base_free(w->image);
	base_free(w);
}

static struct image *find_image(struct record_words *w, uint32_t number)
{
	for (size_t i = w->nr_images; i-- > 0;)
		if (w->image[i].number == number)
			return &w->image[i];
	return NULL;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static struct image *words_image_of(struct record_words *w, uint32_t number)
{
	struct image *found = find_image(w, number);
	if (found || base_grow(&w->image, &w->images_capacity, w->nr_images + 1,
			     sizeof *w->image) != BASE_OK)
		return found;
	w->image[w->nr_images] = (struct image){.number = number};
	return &w->image[w->nr_images++];
}

static struct module *words_module_of(
	struct image *image, const struct memory_table_head *t, uint64_t first_ticks)
{
	for (size_t i = 0; i < image->nr_modules; i++)
		if (image->module[i].number == t->module)
			return &image->module[i];
	if (base_grow(&image->module, &image->modules_capacity, image->nr_modules + 1,
		    sizeof *image->module) != BASE_OK)
		return NULL;
	image->module[image->nr_modules] = (struct module){
		.number = t->module, .address = t->address, .first_ticks = first_ticks};
	return &image->module[image->nr_modules++];
}

/* One that contradicts itself stays without an index: its words are lost. */
static void add_head(struct image *image, struct memory_block_head *to, struct memory_block_head h,
	uint32_t index)
{
	unsigned ticks = h.flags >> MEMORY_BLOCK_TICKS_SHIFT;
	if (to->index || h.nr_stack + ticks > h.nr_slots)
		return;
	*to = h;
	to->index = index;
	image->slot_base[index] = (uint32_t)image->nr_slots;
	image->nr_slots += h.nr_slots;
	image->nr_blocks = index + 1 > image->nr_blocks ? index + 1 : image->nr_blocks;
}

static bool room_for_head(struct module *m, size_t place)
{
	if (place >= MEMORY_BLOCKS_MAX ||
		base_grow(&m->head, &m->capacity, place + 1, sizeof *m->head) != BASE_OK)
		return false;
	m->nr = place + 1 > m->nr ? place + 1 : m->nr;
	return true;
}

void record_words_learn(struct record_words *w, const uint8_t *chunk, size_t size_bytes)
{
	struct memory_chunk_head head;
	struct memory_table_head t;
	size_t heads = sizeof head + sizeof t;
	if (size_bytes < heads)
		return;
	memcpy(&head, chunk, sizeof head);
	memcpy(&t, chunk + sizeof head, sizeof t);
	size_t nr = (size_bytes - heads) / sizeof(struct memory_block_head);
	uint64_t at = t.offset / sizeof(struct memory_block_head);
	bool placed = t.flags & MEMORY_TABLE_PLACED;
	if (t.section != MEMORY_TABLE_BLOCKS || (t.flags & MEMORY_TABLE_IN_PLACE && !placed) ||
		t.first_index >= MEMORY_BLOCKS_MAX || at >= MEMORY_BLOCKS_MAX ||
		t.first_index + at + nr > MEMORY_BLOCKS_MAX)
		return;
	struct image *image = words_image_of(w, head.image);
	struct module *m = !image   ? NULL
			   : placed ? &image->placed
				    : words_module_of(image, &t, head.first_ticks);
	if (!m || base_grow(&image->slot_base, &image->blocks_capacity, t.first_index + at + nr,
			  sizeof *image->slot_base) != BASE_OK)
		return;
	if (placed && !t.module)
		m->address = t.address;
	for (size_t i = 0; i < nr; i++) {
		struct memory_block_head h;
		memcpy(&h, chunk + heads + i * sizeof h, sizeof h);
		size_t place = placed ? h.index : at + i;
		if (!room_for_head(m, place))
			return;
		add_head(image, &m->head[place], h, (uint32_t)(t.first_index + at + i));
	}
}

/* ---- words ----------------------------------------------------------------------------------- */

static inline bool words_is_in(const struct module *m, uint64_t address)
{
	return address - m->address < m->nr * sizeof *m->head;
}

/* The one that was there last, as of then. */
static const struct module *words_find_module(
	const struct image *image, uint64_t address, uint64_t ticks)
{
	for (size_t i = image->nr_modules; i-- > 0;)
		if (words_is_in(&image->module[i], address) &&
			image->module[i].first_ticks <= ticks)
			return &image->module[i];
	return words_is_in(&image->placed, address) ? &image->placed : NULL;
}

static const struct memory_block_head *words_find_head(struct target_encoder *e, uintptr_t address)
{
	const struct record_coder *c = (const struct record_coder *)e;
	const struct module *m = words_find_module(c->image, address, c->ticks);
	if (!m || (address - m->address) % sizeof *m->head)
		return NULL;
	e->head = m->head;
	e->heads = m->address;
	e->nr_heads = m->nr;
	return &m->head[(address - m->address) / sizeof *m->head];
}

static bool make_ready(struct record_coder *c, const struct image *image)
{
	struct target_encoder *e = &c->encoder;
	if (base_grow(&e->block, &c->block_states, image->nr_blocks + 1, sizeof *e->block) !=
			BASE_OK ||
		base_grow(&e->slot, &c->slot_states, image->nr_slots + 1, sizeof *e->slot) !=
			BASE_OK)
		return false;
	e->nr_blocks = (uint32_t)image->nr_blocks;
	e->slot_base = image->slot_base;
	return true;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

struct record_coder *record_coder_new(void)
{
	struct record_coder *c = base_alloc(sizeof *c);
	/* (What has no tables begins a chunk, too.) */
	if (!c || base_grow(&c->encoder.block, &c->block_states, 1, sizeof *c->encoder.block) !=
			  BASE_OK) {
		base_free(c);
		return NULL;
	}
	c->encoder.room = &c->room;
	c->encoder.avx2 = processor_has_avx2();
	c->encoder.find = words_find_head;
	return c;
}

void record_coder_free(struct record_coder *c)
{
	if (!c)
		return;
	base_free(c->encoder.block);
	base_free(c->encoder.slot);
	base_free(c);
}

static void words_begin(
	struct record_coder *c, const struct memory_chunk_head *of, uint64_t first_ticks)
{
	c->head = *of;
	c->head.version = MEMORY_STREAM_VERSION; /* ours, whatever the program's is */
	c->head.type = MEMORY_CHUNK_STREAM;
	c->head.first_ticks = c->head.last_ticks = first_ticks;
	c->to = c->chunk + sizeof c->head;
	longpole_target_encode_start(&c->encoder, first_ticks);
}

const uint8_t *record_coder_take(struct record_coder *c, size_t *ret_bytes)
{
	if (!c->head.magic)
		return NULL;
	*ret_bytes = (size_t)(c->to - c->chunk);
	c->head.bytes = (uint32_t)*ret_bytes;
	memcpy(c->chunk, &c->head, sizeof c->head);
	c->head.magic = 0;
	return c->chunk;
}

static bool continues(const struct memory_chunk_head *h, const struct memory_chunk_head *next)
{
	return h->image == next->image && h->thread == next->thread && h->tables == next->tables &&
	       h->pid == next->pid && h->tid == next->tid && h->fs_base == next->fs_base &&
	       h->flags == next->flags && !next->lost;
}

static bool words_has_room(const struct record_coder *c, uint64_t words)
{
	return (size_t)(c->chunk + sizeof c->chunk - c->to) >= target_piece_bound(words);
}

static uint64_t bytes_left(const struct record_raw *r)
{
	return r->head.bytes - r->at;
}

/* The piece at r->at, which is moved behind it. False: there is no room for it. */
static bool encode_piece(const struct image *image, struct record_coder *c, struct record_raw *r)
{
	struct memory_ring_piece head = {0};
	uint64_t nr_left = bytes_left(r) / 8;
	if (bytes_left(r) >= sizeof head)
		memcpy(&head, r->chunk + r->at, sizeof head);
	if (!image || bytes_left(r) < sizeof head || head.words > MEMORY_PIECE_WORDS ||
		head.words * 8 > bytes_left(r) - sizeof head) {
		r->nr_lost += nr_left;
		r->at = r->head.bytes;
		return true;
	}
	uint64_t began = r->head.first_ticks + head.begin_ticks, ended = began + head.lasted_ticks;
	if (!words_has_room(c, head.words))
		return false;
	memcpy(c->word, r->chunk + r->at + sizeof head, head.words * 8);
	c->image = image;
	c->ticks = ended;
	c->encoder.nr_heads = 0; /* they may be elsewhere by now, or others */
	struct target_piece piece = {.words = c->word,
		.nr = head.words,
		.flags = (unsigned)head.flags,
		.begin_ticks = began - c->head.first_ticks,
		.lasted_ticks = head.lasted_ticks};
	c->to = longpole_target_encode_piece(&c->encoder, &piece, c->to);
	if (ended > c->head.last_ticks)
		c->head.last_ticks = ended;
	r->nr_words += piece.done;
	r->nr_lost += head.words - piece.done;
	r->at += sizeof head + head.words * 8;
	return true;
}

bool record_words_encode(struct record_words *w, struct record_coder *c, struct record_raw *r)
{
	const struct image *image = find_image(w, r->head.tables);
	image = image && make_ready(c, image) ? image : NULL;
	if (!r->at && c->head.magic && !continues(&c->head, &r->head))
		return false;
	if (!c->head.magic) {
		struct memory_ring_piece next = {0};
		if (r->at && bytes_left(r) >= sizeof next)
			memcpy(&next, r->chunk + r->at, sizeof next);
		words_begin(c, &r->head, r->head.first_ticks + next.begin_ticks);
		c->head.lost = r->at ? 0 : r->head.lost;
		r->begun = true;
	}
	if (!r->at)
		r->at = sizeof r->head;
	while (r->at < r->head.bytes)
		if (!encode_piece(image, c, r))
			return false;
	return true;
}
