/* SPDX-License-Identifier: Apache-2.0 */
/* session_words.c - heads of blocks by their addresses in the target; raw chunks. */
#include "record/session_words.h"
#include "base/base.h"
#include "record/target_encode.h"

#include <string.h>

struct module {
	uint32_t number;
	uint64_t address, first_ticks; /* of the heads in the target; when they came */
	struct memory_block_head *head;
	size_t nr, capacity;
};

/* Whose tables count. Predictors start afresh with each chunk: one encoder is enough for all
 * threads. */
struct image {
	uint32_t number;
	struct module *module;
	size_t nr_modules, modules_capacity;
	uint32_t *slot_base; /* by index */
	size_t nr_blocks, blocks_capacity, nr_slots;
	struct target_encoder encoder;
	size_t block_states, slot_states;
};

struct record_words {
	struct image *image;
	size_t nr_images, images_capacity;
	struct target_encoder_room room;
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
		base_free(image->module);
		base_free(image->slot_base);
		base_free(image->encoder.block);
		base_free(image->encoder.slot);
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

/* ---- tables -------------------------------------------------------------------------------- */

static struct image *image_of(struct record_words *w, uint32_t number)
{
	struct image *found = find_image(w, number);
	if (found || base_grow(&w->image, &w->images_capacity, w->nr_images + 1,
			     sizeof *w->image) != BASE_OK)
		return found;
	w->image[w->nr_images] = (struct image){.number = number};
	return &w->image[w->nr_images++];
}

static struct module *module_of(
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
	if (t.section != MEMORY_TABLE_BLOCKS || t.flags & MEMORY_TABLE_IN_PLACE ||
		t.first_index >= MEMORY_BLOCKS_MAX || at >= MEMORY_BLOCKS_MAX ||
		t.first_index + at + nr > MEMORY_BLOCKS_MAX)
		return;
	struct image *image = image_of(w, head.image);
	struct module *m = image ? module_of(image, &t, head.first_ticks) : NULL;
	if (!m || base_grow(&m->head, &m->capacity, at + nr, sizeof *m->head) != BASE_OK ||
		base_grow(&image->slot_base, &image->blocks_capacity, t.first_index + at + nr,
			sizeof *image->slot_base) != BASE_OK)
		return;
	m->nr = at + nr > m->nr ? at + nr : m->nr;
	for (size_t i = 0; i < nr; i++) {
		struct memory_block_head h;
		memcpy(&h, chunk + heads + i * sizeof h, sizeof h);
		add_head(image, &m->head[at + i], h, (uint32_t)(t.first_index + at + i));
	}
}

/* ---- words --------------------------------------------------------------------------------- */

static inline bool is_in(const struct module *m, uint64_t address)
{
	return address - m->address < m->nr * sizeof *m->head;
}

/* The one that was there last, as of then. */
static const struct module *find_module(const struct image *image, uint64_t address, uint64_t ticks)
{
	for (size_t i = image->nr_modules; i-- > 0;)
		if (is_in(&image->module[i], address) && image->module[i].first_ticks <= ticks)
			return &image->module[i];
	return NULL;
}

/* Heads are ours from now on. Returns how many words are whole records. */
static size_t translate(const struct image *image, uint64_t *word, size_t nr, uint64_t ticks)
{
	const struct module *m = nr ? find_module(image, *word, ticks) : NULL;
	size_t i = 0;
	while (i < nr) {
		if (m && BASE_UNLIKELY(!is_in(m, word[i])))
			m = find_module(image, word[i], ticks);
		uint64_t at = m ? word[i] - m->address : 1;
		if (at % sizeof *m->head)
			break;
		const struct memory_block_head *h = &m->head[at / sizeof *m->head];
		if (BASE_UNLIKELY(!h->index || nr - i < 1u + h->nr_slots))
			break;
		word[i] = (uint64_t)(uintptr_t)h;
		i += 1u + h->nr_slots;
	}
	return i;
}

static bool any_head(uintptr_t address)
{
	return address != 0; /* translate() has looked */
}

static bool make_ready(struct record_words *w, struct image *image)
{
	struct target_encoder *e = &image->encoder;
	if (base_grow(&e->block, &image->block_states, image->nr_blocks + 1, sizeof *e->block) !=
			BASE_OK ||
		base_grow(&e->slot, &image->slot_states, image->nr_slots + 1, sizeof *e->slot) !=
			BASE_OK)
		return false;
	e->nr_blocks = (uint32_t)image->nr_blocks;
	e->slot_base = image->slot_base;
	e->room = &w->room;
	e->avx2 = __builtin_cpu_supports("avx2");
	e->is_head = any_head;
	return true;
}

/* The piece at *p, which is moved behind it. Returns how many words are lost. */
static uint64_t encode_piece(struct image *image, uint64_t first_ticks, uint8_t **p, uint8_t *end,
	uint8_t **out, const uint8_t *out_end)
{
	struct memory_ring_piece head;
	uint64_t nr_left = (uint64_t)(end - *p) / 8;
	if (!image || (size_t)(end - *p) < sizeof head)
		goto nothing;
	memcpy(&head, *p, sizeof head);
	*p += sizeof head;
	if (head.words > MEMORY_PIECE_WORDS || head.words * 8 > (uint64_t)(end - *p) ||
		target_piece_bound(head.words) > (size_t)(out_end - *out))
		goto nothing;
	/* (Chunks and the heads in them are multiples of 8 bytes.) */
	struct target_piece piece = {.words = (uint64_t *)(void *)*p,
		.flags = (unsigned)head.flags,
		.begin_ticks = head.begin_ticks,
		.lasted_ticks = head.lasted_ticks};
	piece.nr = translate(
		image, piece.words, head.words, first_ticks + head.begin_ticks + head.lasted_ticks);
	*p += head.words * 8;
	*out = longpole_target_encode_piece(&image->encoder, &piece, *out);
	return head.words - piece.done;
nothing:
	*p = end;
	return nr_left;
}

uint64_t record_words_encode(struct record_words *w, uint8_t *raw, size_t size_bytes, uint8_t *out)
{
	struct memory_chunk_head head;
	memcpy(&head, raw, sizeof head);
	struct image *image = find_image(w, head.tables);
	image = image && make_ready(w, image) ? image : NULL;
	if (image)
		longpole_target_encode_start(&image->encoder, head.first_ticks);
	uint8_t *p = raw + sizeof head, *to = out + sizeof head;
	uint64_t nr_lost = 0;
	while (p < raw + size_bytes)
		nr_lost += encode_piece(image, head.first_ticks, &p, raw + size_bytes, &to,
			out + MEMORY_RING_BLOCK_BYTES);
	head.type = MEMORY_CHUNK_STREAM;
	head.bytes = (uint32_t)(to - out);
	memcpy(out, &head, sizeof head);
	return nr_lost;
}
