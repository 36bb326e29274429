/* SPDX-License-Identifier: Apache-2.0 */
/* cdat_home.c - where pages live (allocation policies), and the directory's entries. */
#include "memory/cdat/cdat_private.h"

enum { HPUX_PRIVATE_FROM = 0x40000000, HPUX_PRIVATE_TO = 0x7fffffff };

/* The file's pages have 4 KiB; what is placed as a whole may have several of them. */
static enum base_status cdat_home_add_usage(
	struct memory_cdat *c, const struct memory_ciat_page *one)
{
	uint64_t index, page = one->page * MEMORY_CIAT_PAGE_BYTES >> c->page_shift;
	if (base_map_get(&c->usage.of, 0, page, &index)) {
		struct memory_ciat_page *u = &c->usage.page[index];
		u->code_bytes += one->code_bytes;
		u->owner = u->owner == one->owner ? u->owner : -1;
		return BASE_OK;
	}
	enum base_status s = base_grow(
		&c->usage.page, &c->usage.capacity, c->usage.nr + 1, sizeof *c->usage.page);
	if (s == BASE_OK)
		s = base_map_put(&c->usage.of, 0, page, c->usage.nr);
	if (s == BASE_OK)
		c->usage.page[c->usage.nr++] = *one;
	return s;
}

enum base_status memory_cdat_homes_init(struct memory_cdat *c, struct base_err *err)
{
	c->top = base_alloc(sizeof *c->top << CHUNK_TOP_BITS);
	c->chunks = base_arena_new(0); /* new_chunk() has the limit */
	if (!c->top || !c->chunks)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the directory");
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < c->options.nr_usage && s == BASE_OK; i++)
		s = cdat_home_add_usage(c, &c->options.usage[i]);
	return s == BASE_OK
		       ? s
		       : base_fail(err, s, "no memory for %zu {page|pages}", c->options.nr_usage);
}

void memory_cdat_homes_fini(struct memory_cdat *c)
{
	for (size_t i = 0; i < c->nr_rows; i++)
		base_free(c->row[i]);
	base_free(c->row);
	if (c->chunks)
		base_arena_free(c->chunks);
	base_free(c->top);
	base_free(c->replicas.chunk);
	base_free(c->homes.home);
	base_map_fini(&c->replicas.of);
	base_map_fini(&c->homes.of);
	base_map_fini(&c->usage.of);
	base_free(c->usage.page);
}

/* ---- policies -------------------------------------------------------------------------------- */

static const struct memory_ciat_page *usage_of(const struct memory_cdat *c, uint64_t page)
{
	uint64_t index;
	return base_map_get(&c->usage.of, 0, page, &index) ? &c->usage.page[index] : NULL;
}

static uint32_t in_turn(struct memory_cdat *c)
{
	return (uint32_t)(c->next_node++ % c->config.nodes);
}

static struct cdat_home place_rr1(struct memory_cdat *c, uint64_t page, uint32_t node)
{
	uint64_t address = page << c->page_shift;
	if (c->options.hpux && address >= HPUX_PRIVATE_FROM && address <= HPUX_PRIVATE_TO)
		return (struct cdat_home){.node = node};
	return (struct cdat_home){.node = in_turn(c)};
}

static struct cdat_home place_rr2(struct memory_cdat *c, uint64_t page, uint32_t node)
{
	const struct memory_ciat_page *u = usage_of(c, page);
	if (u && u->code_bytes) /* it is everywhere, so it takes no turn */
		return (struct cdat_home){.node = node, .replicated = true};
	return place_rr1(c, page, node);
}

static struct cdat_home place_oracle(struct memory_cdat *c, uint64_t page, uint32_t node)
{
	const struct memory_ciat_page *u = usage_of(c, page);
	if (u && u->code_bytes)
		return (struct cdat_home){.node = node, .replicated = true};
	if (!u)
		return (struct cdat_home){.node = node};
	if (u->owner >= 0 && (uint32_t)u->owner < c->nr_threads)
		return (struct cdat_home){.node = c->processor[c->processor_of[u->owner]].node};
	return (struct cdat_home){.node = in_turn(c)};
}

static struct cdat_home place_first_touch(struct memory_cdat *c, uint64_t page, uint32_t node)
{
	(void)c;
	(void)page;
	return (struct cdat_home){.node = node};
}

static struct cdat_home (*const place[])(struct memory_cdat *, uint64_t, uint32_t) = {
	[MEMORY_CDAT_RR1] = place_rr1,
	[MEMORY_CDAT_RR2] = place_rr2,
	[MEMORY_CDAT_ORACLE] = place_oracle,
	[MEMORY_CDAT_FIRST_TOUCH] = place_first_touch,
};

static enum base_status find_home(
	struct memory_cdat *c, uint64_t page, uint32_t node, uint32_t *ret)
{
	uint64_t index;
	if (!base_map_get(&c->homes.of, 0, page, &index)) {
		enum base_status s = base_grow(
			&c->homes.home, &c->homes.capacity, c->homes.nr + 1, sizeof *c->homes.home);
		if (s == BASE_OK)
			s = base_map_put(&c->homes.of, 0, page, c->homes.nr);
		if (s != BASE_OK)
			return s;
		index = c->homes.nr++;
		c->homes.home[index] = place[c->config.allocation](c, page, node);
		if (c->config.nodes == 1)
			c->homes.home[index].replicated = false;
		c->result.replicated_pages += c->homes.home[index].replicated;
	}
	*ret = (uint32_t)index;
	return BASE_OK;
}

/* ---- entries --------------------------------------------------------------------------------- */

static struct cdat_chunk *new_chunk(struct memory_cdat *c)
{
	size_t size_bytes = sizeof(struct cdat_chunk) +
			    ((size_t)CHUNK_BYTES >> c->line_shift) * sizeof(struct cdat_line);
	if (c->used_bytes + size_bytes > c->options.memory_limit_bytes)
		return NULL;
	c->used_bytes += size_bytes;
	return base_arena_alloc(c->chunks, size_bytes);
}

static struct cdat_chunk *cdat_home_find_chunk(
	struct memory_cdat *c, uint64_t number, uint32_t node)
{
	struct cdat_chunk ***middle = &c->top[number >> CHUNK_MIDDLE_BITS];
	if (BASE_UNLIKELY(!*middle)) {
		if (base_grow(&c->row, &c->row_capacity, c->nr_rows + 1, sizeof *c->row) != BASE_OK)
			return NULL;
		*middle = base_alloc(sizeof(**middle) << CHUNK_MIDDLE_BITS);
		if (!*middle)
			return NULL;
		c->row[c->nr_rows++] = *middle;
		c->used_bytes += CHUNK_BYTES;
	}
	struct cdat_chunk **k = &(*middle)[number & ((1u << CHUNK_MIDDLE_BITS) - 1)];
	if (BASE_UNLIKELY(!*k)) {
		uint32_t home;
		if (find_home(c, number << CHUNK_SHIFT >> c->page_shift, node, &home) != BASE_OK)
			return NULL;
		*k = new_chunk(c);
		if (*k) {
			(*k)->home = home;
			(*k)->node = (uint16_t)c->homes.home[home].node;
		}
	}
	return *k;
}

static struct cdat_chunk *known_replica(
	const struct memory_cdat *c, const struct cdat_home *h, uint64_t number, uint32_t node)
{
	uint64_t index;
	if (!base_map_get(&c->replicas.of, node + 1, number, &index))
		return NULL;
	struct cdat_chunk *k = c->replicas.chunk[index];
	return k->copies == h->copies ? k : NULL; /* of an earlier copy: nobody has its lines */
}

static struct cdat_chunk *new_replica(struct memory_cdat *c, uint64_t number, uint32_t node)
{
	uint64_t index;
	if (base_map_get(&c->replicas.of, node + 1, number, &index))
		return c->replicas.chunk[index];
	struct cdat_chunk *k = new_chunk(c);
	if (!k ||
		base_grow(&c->replicas.chunk, &c->replicas.capacity, c->replicas.nr + 1,
			sizeof(struct cdat_chunk *)) != BASE_OK ||
		base_map_put(&c->replicas.of, node + 1, number, c->replicas.nr) != BASE_OK)
		return NULL;
	return c->replicas.chunk[c->replicas.nr++] = k;
}

static struct cdat_chunk *find_replica(struct memory_cdat *c, const struct cdat_home *h,
	const struct cdat_chunk *of, uint64_t number, uint32_t node)
{
	struct cdat_chunk *k = known_replica(c, h, number, node);
	if (k)
		return k;
	k = new_replica(c, number, node);
	if (!k)
		return NULL;
	k->copies = h->copies;
	for (size_t i = 0; i < (size_t)CHUNK_BYTES >> c->line_shift; i++)
		k->line[i] = (struct cdat_line){.state = MEMORY_CDAT_IDLE,
			.version = of->line[i].version,
			.memory_version = of->line[i].version};
	return k;
}

static void flush_chunk(struct memory_cdat *c, struct cdat_chunk *k, uint64_t number, uint32_t home)
{
	unsigned lines_shift = CHUNK_SHIFT - c->line_shift;
	for (size_t i = 0; k && i < (size_t)1 << lines_shift; i++)
		memory_cdat_flush(c, &k->line[i], (number << lines_shift) + i, home);
}

/* Each node that loads from the page from now on has a copy of its own. */
static void copy_page(struct memory_cdat *c, struct cdat_home *h, uint64_t page)
{
	unsigned chunks_shift = c->page_shift - CHUNK_SHIFT;
	uint64_t first = page << chunks_shift;
	for (uint64_t n = first; n < first + (UINT64_C(1) << chunks_shift); n++)
		flush_chunk(c, cdat_chunk_at(c, n << CHUNK_SHIFT), n, h->node);
	h->replicated = h->copied = true;
	h->copies++;
	c->open->replications++;
}

/* Somebody stores to a replicated page: from now on it is one, a shared one. */
static void unite(struct memory_cdat *c, struct cdat_home *h, uint64_t page)
{
	unsigned chunks_shift = c->page_shift - CHUNK_SHIFT;
	uint64_t first = page << chunks_shift;
	for (uint32_t node = 0; node < c->config.nodes; node++)
		for (uint64_t n = first; n < first + (UINT64_C(1) << chunks_shift); n++)
			flush_chunk(c, known_replica(c, h, n, node), n, node);
	h->replicated = false;
	if (h->copied) {
		c->open->collapses++;
	} else {
		h->node = in_turn(c);
		c->result.replicated_written++;
	}
	h->copied = false;
}

struct cdat_line *memory_cdat_line(
	struct memory_cdat *c, uint32_t node, uint64_t line, bool store, uint32_t *ret_home)
{
	uint64_t number = line << c->line_shift >> CHUNK_SHIFT;
	struct cdat_chunk *k = cdat_chunk_at(c, line << c->line_shift);
	if (BASE_UNLIKELY(!k))
		k = cdat_home_find_chunk(c, number, node);
	if (BASE_UNLIKELY(!k))
		return NULL;
	struct cdat_home *h = &c->homes.home[k->home];
	if (store) {
		h->loads = 0;
		if (BASE_UNLIKELY(h->replicated))
			unite(c, h, line << c->line_shift >> c->page_shift);
	}
	*ret_home = h->node;
	if (BASE_UNLIKELY(h->replicated)) {
		*ret_home = node;
		k = find_replica(c, h, k, number, node);
		if (!k)
			return NULL;
	}
	return &k->line[cdat_line_index(c, line)];
}

bool memory_cdat_is_replicated(const struct memory_cdat *c, uint64_t line)
{
	uint64_t index, page = line << c->line_shift >> c->page_shift;
	return base_map_get(&c->homes.of, 0, page, &index) && c->homes.home[index].replicated;
}

void memory_cdat_count_miss(struct memory_cdat *c, uint32_t node, uint64_t line)
{
	struct cdat_chunk *k = cdat_home_find_chunk(c, line << c->line_shift >> CHUNK_SHIFT, node);
	struct cdat_home *h = k ? &c->homes.home[k->home] : NULL;
	if (!h || h->replicated)
		return;
	/* The majority vote of Boyer and Moore: lead is how far the rival is ahead of all others.
	 */
	if (h->rival == node) {
		h->lead++;
	} else if (h->lead) {
		h->lead--;
	} else {
		h->rival = (uint16_t)node;
		h->lead = 1;
	}
	if (h->lead >= c->config.migrate_after && h->node != h->rival) {
		h->node = h->rival;
		h->lead = 0;
		c->open->migrations++;
	}
}

void memory_cdat_count_remote_load(struct memory_cdat *c, uint32_t node, uint64_t line)
{
	struct cdat_chunk *k = cdat_home_find_chunk(c, line << c->line_shift >> CHUNK_SHIFT, node);
	struct cdat_home *h = k ? &c->homes.home[k->home] : NULL;
	if (h && !h->replicated && ++h->loads >= c->config.replicate_after)
		copy_page(c, h, line << c->line_shift >> c->page_shift);
}
