/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - all streams in the order (time, stream, place in the stream), straight from the chunks'
 * bytes into the batch.
 *
 * A loser tree (Knuth, The Art of Computer Programming 3, 5.4.1) over the streams' heads. With few
 * streams each record plays its matches anew, without branches that depend on the data; with many a
 * run of records is drained while its head stays below the best of the others, so that a quiet
 * crowd costs nothing.
 */
#include "trace/reader.h"

enum {
	FEW_LEAVES = 16,
	FIRST_LEAF = 1
}; /* leaf i is cursor FIRST_LEAF + i; cursor 0: definitions */
#define FINISHED (UINT64_C(1) << 32)

static inline bool precedes(struct trace_match a, struct trace_match b)
{
	return (a.time_ns < b.time_ns) | ((a.time_ns == b.time_ns) & (a.cursor < b.cursor));
}

/* ---- cursors --------------------------------------------------------------------------------- */

static void go_to_chunk(struct trace_reader *r, struct trace_cursor *c, uint32_t chunk)
{
	while (chunk != TRACE_NO_CHUNK &&
		(r->chunk[chunk].damaged ||
			(c->stream && r->chunk[chunk].entry.last_ns < r->options.from_ns)))
		chunk = r->chunk[chunk].next;
	trace_buffer_release(r, &c->buffer);
	c->p = c->end = NULL;
	c->chunk = chunk;
	if (chunk != TRACE_NO_CHUNK)
		c->time_ns = r->chunk[chunk].entry.first_ns;
}

static void leave_chunk(struct trace_reader *r, struct trace_cursor *c, bool is_damaged)
{
	if (is_damaged)
		trace_chunk_damaged(r, c->chunk);
	go_to_chunk(r, c, r->chunk[c->chunk].next);
}

/* The data kinds that this version knows, for one look-up in the inner loop. */
static const bool is_data_kind[TRACE_KINDS_MAX] = {
#define REC(kind, id, since, FIELDS, doc) [id] = (id) >= TRACE_FIRST_DATA_KIND,
#include "trace/records.def"
};

/* The uncommon heads: unknown kinds, kinds in the wrong stream, the chunk's end, damage. */
static __attribute__((noinline)) void find_head(struct trace_reader *r, struct trace_cursor *c)
{
	while (c->nr_left) {
		uint64_t kind, delta_ns;
		const uint8_t *p = base_get_uvarint(c->p, c->end, &kind);

		if (p)
			p = base_get_uvarint(p, c->end, &delta_ns);
		if (!p || kind < TRACE_FIRST_DATA_KIND || kind >= TRACE_KINDS_MAX ||
			delta_ns > c->last_ns - c->time_ns)
			break;
		c->time_ns += delta_ns;
		c->p = p;
		if (is_data_kind[kind]) {
			c->kind = (uint16_t)kind;
			return;
		}
		const struct trace_schema_kind *theirs = trace_schema_find(&r->schema, kind);
		c->p = theirs ? trace_skip_fields(theirs, p, c->end) : NULL;
		if (!c->p)
			break;
		r->health.count[TRACE_DIAG_kinds_unknown]++;
		c->nr_left--;
	}
	leave_chunk(r, c, c->nr_left || c->p != c->end || c->time_ns != c->last_ns);
}

/* Kind and time of the record at c->p, which is in [.., c->end]; there are zeros behind. */
static inline void next_head(struct trace_reader *r, struct trace_cursor *c)
{
	uint8_t kind = *c->p;
	uint64_t delta_ns;

	if (BASE_LIKELY(c->nr_left && is_data_kind[kind])) {
		const uint8_t *p = trace_get_padded_mixed(c->p + 1, &delta_ns);
		if (BASE_LIKELY(p && p <= c->end && delta_ns <= c->last_ns - c->time_ns)) {
			c->time_ns += delta_ns;
			c->kind = kind;
			c->p = p;
			return;
		}
	}
	find_head(r, c);
}

/* Steps over the head, whose fields nobody wants. */
static void skip_head(struct trace_reader *r, struct trace_cursor *c)
{
	struct trace_record ignored;
	const uint8_t *p = trace_decode_fields(c->p, c->end, c->kind, &ignored);

	if (!p || p > c->end) {
		leave_chunk(r, c, true);
		return;
	}
	c->p = p;
	c->nr_left--;
	next_head(r, c);
}

/* Opens the chunk before which the cursor stands. OK also when it is damaged: the cursor is at
 * another then. */
static enum base_status enter_chunk(
	struct trace_reader *r, struct trace_cursor *c, struct base_err *err)
{
	struct trace_chunk_header h;
	struct base_err why = {0};
	enum base_status status = trace_chunk_fetch(r, c->chunk, &c->buffer, &h, &why);

	if (status == BASE_ERR_CORRUPT) {
		leave_chunk(r, c, true);
		return BASE_OK;
	}
	if (status != BASE_OK) {
		if (err)
			*err = why;
		return status;
	}
	c->p = c->buffer.bytes;
	c->end = c->p + h.raw_bytes;
	c->time_ns = h.first_ns;
	c->last_ns = h.last_ns;
	c->nr_left = h.nr_records;
	return BASE_OK;
}

/* The same for a data stream: afterwards the cursor is at a head, or before another chunk. */
static enum base_status enter_data_chunk(
	struct trace_reader *r, struct trace_cursor *c, struct base_err *err)
{
	uint64_t kind, delta_ns;
	enum base_status status = enter_chunk(r, c, err);

	if (status != BASE_OK || !c->p)
		return status;
	/* The first record's time is the chunk's: its order among the streams was decided by that.
	 */
	const uint8_t *p = base_get_uvarint(c->p, c->end, &kind);
	if (p)
		p = base_get_uvarint(p, c->end, &delta_ns);
	if (!p || delta_ns) {
		leave_chunk(r, c, true);
		return BASE_OK;
	}
	next_head(r, c);
	while (c->p && c->time_ns < r->options.from_ns)
		skip_head(r, c);
	return BASE_OK;
}

/* ---- tree ------------------------------------------------------------------------------------ */

static struct trace_match match_of(const struct trace_reader *r, uint32_t at)
{
	const struct trace_cursor *c = &r->cursor[at];
	bool finished = c->chunk == TRACE_NO_CHUNK;

	return (struct trace_match){
		.time_ns = finished ? UINT64_MAX : c->time_ns,
		.cursor = finished ? at | FINISHED : at,
	};
}

/* The winner's leaf has a new head: play its way up. */
static inline struct trace_match replay(
	struct trace_match *tree, uint32_t nr_leaves, uint32_t leaf, struct trace_match m)
{
	for (uint32_t n = (leaf + nr_leaves) / 2; n; n /= 2) {
		struct trace_match other = tree[n];
		uint64_t swap = -(uint64_t)precedes(other, m);
		uint64_t time_diff = (other.time_ns ^ m.time_ns) & swap;
		uint64_t cursor_diff = (other.cursor ^ m.cursor) & swap;
		tree[n].time_ns = other.time_ns ^ time_diff;
		tree[n].cursor = other.cursor ^ cursor_diff;
		m.time_ns ^= time_diff;
		m.cursor ^= cursor_diff;
	}
	return m;
}

static void build_tree(struct trace_reader *r)
{
	/* A leaf waits in its parent's place for the second child, whose match is then played. */
	struct trace_match *tree = r->tree;
	const struct trace_match empty = {.time_ns = UINT64_MAX, .cursor = UINT64_MAX};

	for (uint32_t n = 1; n < r->nr_leaves; n++)
		tree[n] = empty;
	for (uint32_t leaf = 0; leaf < r->nr_leaves; leaf++) {
		struct trace_match m = match_of(r, FIRST_LEAF + leaf);
		uint32_t n = (leaf + r->nr_leaves) / 2;
		for (; n; n /= 2) {
			if (tree[n].cursor == UINT64_MAX) {
				tree[n] = m;
				break;
			}
			struct trace_match other = tree[n];
			tree[n] = precedes(other, m) ? m : other;
			m = precedes(other, m) ? other : m;
		}
		if (!n)
			r->winner = m;
	}
}

/* The best of those that lost against the winner. */
static struct trace_match second_best(const struct trace_reader *r)
{
	struct trace_match best = {.time_ns = UINT64_MAX, .cursor = UINT64_MAX};
	uint32_t leaf = (uint32_t)r->winner.cursor - FIRST_LEAF;

	for (uint32_t n = (leaf + r->nr_leaves) / 2; n; n /= 2) {
		if (precedes(r->tree[n], best))
			best = r->tree[n];
	}
	return best;
}

/* ---- batches --------------------------------------------------------------------------------- */

/* One record from the head to `to`. false: the chunk is damaged here, and was left. */
static inline bool emit(struct trace_reader *r, struct trace_cursor *c, struct trace_record *to)
{
	const uint8_t *p = trace_decode_fields(c->p, c->end, c->kind, to);

	if (BASE_UNLIKELY(!p || p > c->end)) {
		leave_chunk(r, c, true);
		return false;
	}
	to->time_ns = c->time_ns;
	to->stream = c->stream;
	to->kind = c->kind;
	c->p = p;
	c->nr_left--;
	return true;
}

/* Definitions, a part of one chunk at a time, since their texts are borrowed from it. Their damage
 * and their unknown kinds were counted at open. */
static enum base_status next_definitions(
	struct trace_reader *r, size_t *ret_nr, struct base_err *err)
{
	struct trace_cursor *c = &r->cursor[0];
	size_t nr = 0;

	while (!nr && c->chunk != TRACE_NO_CHUNK) {
		if (c->p && !c->nr_left) {
			leave_chunk(r, c, false);
			continue;
		}
		if (!c->p) {
			enum base_status status = enter_chunk(r, c, err);
			if (status != BASE_OK)
				return status;
		}
		for (; c->p && nr < TRACE_BATCH_MAX && c->nr_left; c->nr_left--) {
			uint64_t kind;
			const uint8_t *p = base_get_uvarint(c->p, c->end, &kind);
			if (!p || kind >= TRACE_FIRST_DATA_KIND) {
				leave_chunk(r, c, true);
				break;
			}
			const struct trace_schema_kind *theirs =
				trace_schema_find(&r->schema, kind);
			if (theirs) {
				c->p = trace_skip_fields(theirs, p, c->end);
				continue;
			}
			struct trace_record *to = &r->batch[nr++];
			*to = (struct trace_record){.kind = (uint16_t)kind};
			c->p = trace_decode_fields(p, c->end, to->kind, to);
		}
	}
	*ret_nr = nr;
	return BASE_OK;
}

enum base_status trace_reader_next(
	struct trace_reader *r, struct trace_batch *ret, struct base_err *err)
{
	struct trace_record *batch = r->batch;
	const uint64_t last_ns = r->options.to_ns ? r->options.to_ns - 1 : UINT64_MAX;
	size_t nr = 0;

	*ret = (struct trace_batch){.record = batch};
	if (BASE_UNLIKELY(r->options.with_definitions && r->cursor[0].chunk != TRACE_NO_CHUNK)) {
		enum base_status status = next_definitions(r, &ret->nr, err);
		if (status != BASE_OK || ret->nr)
			return status;
	}
	if (!r->nr_leaves)
		return BASE_END;
	while (nr < TRACE_BATCH_MAX && r->winner.cursor < FINISHED &&
		r->winner.time_ns <= last_ns) {
		uint32_t at = (uint32_t)r->winner.cursor;
		struct trace_cursor *c = &r->cursor[at];
		if (BASE_UNLIKELY(!c->p)) {
			enum base_status status = enter_data_chunk(r, c, err);
			if (status != BASE_OK) {
				if (nr)
					break; /* it will say so again at the next call */
				return status;
			}
		} else if (r->nr_leaves <= FEW_LEAVES) {
			if (BASE_LIKELY(emit(r, c, &batch[nr]))) {
				nr++;
				next_head(r, c);
			}
		} else {
			struct trace_match limit = second_best(r), head;
			do {
				if (!emit(r, c, &batch[nr]))
					break;
				nr++;
				next_head(r, c);
				head = (struct trace_match){.time_ns = c->time_ns, .cursor = at};
			} while (nr < TRACE_BATCH_MAX && c->p && c->time_ns <= last_ns &&
				 precedes(head, limit));
		}
		r->winner = replay(r->tree, r->nr_leaves, at - FIRST_LEAF, match_of(r, at));
	}
	ret->nr = nr;
	return nr ? BASE_OK : BASE_END;
}

/* ---- beginning and end ------------------------------------------------------------------------
 */

enum base_status trace_merge_init(struct trace_reader *r, struct base_err *err)
{
	r->nr_leaves = r->nr_cursors - FIRST_LEAF;
	r->tree = base_alloc((size_t)(r->nr_leaves + 1) * sizeof *r->tree);
	r->batch = base_alloc(TRACE_BATCH_MAX * sizeof *r->batch);
	if (!r->tree || !r->batch)
		return base_fail(
			err, BASE_ERR_NOMEM, "no memory to merge %u streams", r->nr_leaves);
	trace_merge_start(r);
	return BASE_OK;
}

void trace_merge_start(struct trace_reader *r)
{
	for (uint32_t i = 0; i < r->nr_cursors; i++)
		go_to_chunk(r, &r->cursor[i], r->cursor[i].first_chunk);
	if (r->nr_leaves)
		build_tree(r);
}

void trace_merge_fini(struct trace_reader *r)
{
	for (uint32_t i = 0; i < r->nr_cursors; i++)
		base_free(r->cursor[i].buffer.bytes);
	base_free(r->tree);
	base_free(r->batch);
}
