/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - all streams in the order (time, stream, place in the stream), from the chunks' bytes
 * into the batch, or shown one by one.
 *
 * A loser tree (Knuth, The Art of Computer Programming 3, 5.4.1) over the streams' heads, in two
 * forms. Few streams: each record plays its matches anew, without a branch that depends on the
 * data. Many: a run of records is drained while its head stays below the best of the others, so
 * that a quiet crowd costs nothing.
 */
#include "trace/columns.h"
#include "trace/reader.h"

enum { FIRST_LEAF = 1 }; /* leaf i is cursor[FIRST_LEAF + i]; cursor[0] has the definitions */

/* ---- cursors --------------------------------------------------------------------------------- */

static void go_to_chunk(struct trace_reader *r, struct trace_cursor *c, uint32_t chunk)
{
	while (chunk != TRACE_NO_CHUNK &&
		(r->chunk[chunk].damaged ||
			(c->stream && r->chunk[chunk].entry.last_ns < r->options.from_ns)))
		chunk = r->chunk[chunk].next;
	trace_buffer_release(r, &c->buffer);
	if (r->nr_leaves > TRACE_FEW_LEAVES) { /* of thousands, most are between chunks */
		base_free(c->staged);
		c->staged = NULL;
		trace_columns_free(c->columns);
		c->columns = NULL;
	}
	c->in_columns = false;
	c->p = c->end = NULL;
	c->head = c->head_end = NULL;
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

/* Opens the chunk before which the cursor stands. OK also when it is damaged: the cursor is before
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
	if (!trace_content_is_records(h.content)) { /* somebody else's */
		leave_chunk(r, c, false);
		return BASE_OK;
	}
	c->p = c->buffer.bytes;
	c->end = c->p + h.raw_bytes;
	c->time_ns = h.first_ns;
	c->last_ns = h.last_ns;
	c->nr_left = h.nr_records;
	c->in_columns = h.content == TRACE_CONTENT_COLUMNS;
	status = c->in_columns ? trace_columns_open(r, c, &h) : BASE_OK;
	if (status == BASE_ERR_CORRUPT) {
		leave_chunk(r, c, true);
	} else if (status != BASE_OK) {
		go_to_chunk(r, c, c->chunk);
		return base_fail(err, status, "no memory to decode stream %u", c->stream);
	}
	return BASE_OK;
}

/* The data kinds that this version knows, for one look-up in the inner loop. */
static const bool is_data_kind[TRACE_KINDS_MAX] = {
#define REC(kind, since, FIELDS, doc)                                                              \
	[TRACE_##kind] = (int)TRACE_##kind >= (int)TRACE_FIRST_DATA_KIND,
#include "trace/records.def"
};

/* The fields of a record of a kind that we do not know. NULL: damaged. */
static __attribute__((noinline)) const uint8_t *skip_unknown(
	struct trace_reader *r, const struct trace_cursor *c, const uint8_t *p, uint64_t kind)
{
	const struct trace_schema_kind *theirs = trace_schema_find(&r->schema, kind);

	if (!theirs || kind < TRACE_FIRST_DATA_KIND || p > c->end)
		return NULL;
	r->health.count[TRACE_DIAG_kinds_unknown]++;
	return trace_skip_fields(theirs, p, c->end);
}

/* Behind the last staged record is one that only has this time. */
#define STAGE_END_NS UINT64_MAX

/* All stages together should stay in the cache. */
static uint32_t stage_size(const struct trace_reader *r)
{
	return r->nr_leaves > TRACE_FEW_LEAVES ? TRACE_STAGE_RECORDS / 8 : TRACE_STAGE_RECORDS;
}

/*
 * The inner loop: decodes records of one chunk until the stage is full. Decoding a stream ahead
 * rather than record by record as the merge asks for them keeps the branch on the kind predictable:
 * a stream repeats itself, the mixture does not. Leaves the chunk when there is nothing left in it.
 */
static uint32_t stage_rows(struct trace_reader *r, struct trace_cursor *c, bool *ret_damaged)
{
	const uint8_t *p = c->p, *const end = c->end;
	const uint64_t last_ns = c->last_ns, from_ns = r->options.from_ns;
	uint64_t time_ns = c->time_ns;
	struct trace_record *const staged = c->staged;
	const uint32_t stage_records = stage_size(r), stream = c->stream;
	uint32_t nr = 0, nr_left = c->nr_left;

	while (nr < stage_records && nr_left) {
		struct trace_record *to = &staged[nr];
		uint64_t kind = *p, delta_ns = 0;
		bool is_short = BASE_LIKELY(kind < 0x80);

		p = is_short ? p + 1 : trace_get_padded(p, &kind);
		if (BASE_LIKELY(p))
			p = trace_get_padded_mixed(p, &delta_ns);
		if (BASE_UNLIKELY(!p || delta_ns > last_ns - time_ns))
			goto damaged;
		time_ns += delta_ns;
		nr_left--;
		if (BASE_UNLIKELY(kind >= TRACE_KINDS_MAX || !is_data_kind[kind])) {
			p = skip_unknown(r, c, p, kind);
			if (!p)
				goto damaged;
			continue;
		}
		p = trace_decode_fields(p, end, (unsigned)kind, to);
		to->time_ns = time_ns;
		to->stream = stream;
		to->kind = (uint16_t)kind;
		if (BASE_UNLIKELY(!p || p > end))
			goto damaged;
		nr += time_ns >= from_ns;
	}
	*ret_damaged = !nr_left && (p != end || time_ns != last_ns);
	c->p = p;
	c->nr_left = nr_left;
	goto done;
damaged:
	*ret_damaged = true;
done:
	c->time_ns = time_ns;
	return nr;
}

static void stage(struct trace_reader *r, struct trace_cursor *c)
{
	bool is_damaged;
	uint32_t nr = c->in_columns ? trace_columns_stage(r, c, stage_size(r), &is_damaged)
				    : stage_rows(r, c, &is_damaged);

	if (is_damaged) {
		/* What came before is good: the chunk ends here. */
		trace_chunk_damaged(r, c->chunk);
		c->nr_left = 0;
	}
	c->staged[nr].time_ns = STAGE_END_NS;
	c->head = c->staged;
	c->head_end = c->staged + nr;
	if (!nr)
		leave_chunk(r, c, false);
}

/* All that was staged is over: the next head of a data stream is a record, or before a chunk. */
static void stage_next(struct trace_reader *r, struct trace_cursor *c)
{
	if (c->nr_left)
		stage(r, c);
	else
		leave_chunk(r, c, false);
}

static inline void merge_advance(struct trace_reader *r, struct trace_cursor *c)
{
	if (BASE_UNLIKELY(++c->head == c->head_end))
		stage_next(r, c);
}

static enum base_status enter_data_chunk(
	struct trace_reader *r, struct trace_cursor *c, struct base_err *err)
{
	uint64_t kind, delta_ns = 0;
	enum base_status status = BASE_OK;

	if (!c->staged)
		c->staged = base_alloc((stage_size(r) + 1) * sizeof *c->staged);
	if (!c->staged)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to decode stream %u", c->stream);
	status = enter_chunk(r, c, err);
	if (status != BASE_OK || !c->p)
		return status;
	/* The first record's time is the chunk's: its order among the streams was decided by that.
	 */
	const uint8_t *p = c->p; /* of columns this was looked at */
	if (!c->in_columns)
		p = base_get_uvarint(p, c->end, &kind);
	if (p && !c->in_columns)
		p = base_get_uvarint(p, c->end, &delta_ns);
	if (!p || delta_ns)
		leave_chunk(r, c, true);
	else
		stage(r, c);
	return BASE_OK;
}

/* ---- few streams ----------------------------------------------------------------------------- */

/*
 * Time and leaf in one number, so that a match is one comparison and no branch. FEW_FINISHED loses
 * against all. The leaves' number is a power of two: every way up is as long as the others.
 *
 * Each leaf has the key of the record after its head at hand: the next leaf is known without
 * waiting for that record.
 */
enum { FEW_BITS = 4, FEW_LEAVES = 1 << FEW_BITS };
#define FEW_FINISHED UINT64_MAX
#define FEW_LAST_NS  ((UINT64_MAX >> FEW_BITS) - 1)
#define FEW_NOT_YET  ((FEW_LAST_NS + 1) << FEW_BITS) /* of a record that is not staged: or more */

_Static_assert((int)FEW_LEAVES == (int)TRACE_FEW_LEAVES, "the tree's size");
_Static_assert(STAGE_END_NS << FEW_BITS >= FEW_NOT_YET, "the end of a stage has such a key");

static inline uint64_t few_key(uint64_t time_ns, uint32_t leaf)
{
	return time_ns << FEW_BITS | leaf;
}

/* The cursor has another head: the leaf takes it; returns its key. */
static uint64_t few_take(struct trace_reader *r, uint32_t leaf)
{
	const struct trace_cursor *c = &r->cursor[FIRST_LEAF + leaf];
	struct trace_few_leaf *l = &r->few_leaf[leaf];

	*l = (struct trace_few_leaf){.next_key = FEW_NOT_YET};
	if (BASE_LIKELY(c->head < c->head_end)) {
		l->head = c->head;
		l->next_key = few_key(c->head[1].time_ns, leaf);
		return few_key(c->head->time_ns, leaf);
	}
	return c->chunk == TRACE_NO_CHUNK ? FEW_FINISHED : few_key(c->time_ns, leaf);
}

static inline uint64_t few_replay(uint64_t *tree, uint32_t nr_leaves, uint32_t leaf, uint64_t key)
{
	for (uint32_t n = (leaf + nr_leaves) / 2; n; n /= 2) {
		uint64_t other = tree[n];
		tree[n] = other < key ? key : other;
		key = other < key ? other : key;
	}
	return key;
}

static void few_start(struct trace_reader *r)
{
	uint32_t nr_leaves = 1;

	while (nr_leaves < r->nr_leaves)
		nr_leaves *= 2;
	r->few_leaves = nr_leaves;
	/* key[n] is the winner below node n; the losers stay. */
	uint64_t key[2 * FEW_LEAVES];
	for (uint32_t leaf = 0; leaf < nr_leaves; leaf++)
		key[nr_leaves + leaf] = leaf < r->nr_leaves ? few_take(r, leaf) : FEW_FINISHED;
	for (uint32_t n = nr_leaves - 1; n; n--) {
		uint64_t a = key[2 * n], b = key[2 * n + 1];
		key[n] = a < b ? a : b;
		r->few_tree[n] = a < b ? b : a;
	}
	r->few_winner = key[1];
}

/* What comes after the leaf's last staged record, which is over, or in the chunk that it is before.
 */
static enum base_status few_refill(
	struct trace_reader *r, uint32_t leaf, uint64_t *ret_key, struct base_err *err)
{
	struct trace_cursor *c = &r->cursor[FIRST_LEAF + leaf];
	enum base_status status = BASE_OK;

	if (!r->few_leaf[leaf].head)
		status = enter_data_chunk(r, c, err);
	else
		stage_next(r, c);
	if (status == BASE_OK)
		*ret_key = few_take(r, leaf);
	return status;
}

/* Shows the records where they lie, at most TRACE_BATCH_MAX of them. The next leaf is found before
 * a record is shown: the processor does both at once. */
static TRACE_INLINE enum base_status few_next(struct trace_reader *r, uint64_t last_ns,
	trace_visit_fn *visit, void *ctx, size_t *ret_nr, struct base_err *err)
{
	uint64_t *tree = r->few_tree, key = r->few_winner;
	const uint64_t last_key =
		last_ns > FEW_LAST_NS ? FEW_FINISHED - 1 : few_key(last_ns, FEW_LEAVES - 1);
	const uint32_t nr_leaves = r->few_leaves;
	enum base_status status = BASE_OK;
	size_t nr = 0;

	while (nr < TRACE_BATCH_MAX && key <= last_key) {
		uint32_t leaf = (uint32_t)key & (FEW_LEAVES - 1);
		struct trace_few_leaf *l = &r->few_leaf[leaf];
		const struct trace_record *head = l->head;
		struct trace_record last;
		uint64_t next = l->next_key;
		if (BASE_LIKELY(next < FEW_NOT_YET)) {
			l->head = head + 1;
			l->next_key = few_key(head[2].time_ns, leaf);
		} else {
			if (head) { /* its place is about to be another's */
				last = *head;
				head = &last;
			}
			status = few_refill(r, leaf, &next, err);
			if (status != BASE_OK)
				break;
		}
		key = few_replay(tree, nr_leaves, leaf, next);
		if (BASE_LIKELY(head != NULL)) {
			visit(ctx, head);
			nr++;
		}
	}
	r->few_winner = key;
	*ret_nr = nr;
	return status;
}

/* ---- many streams ---------------------------------------------------------------------------- */

#define FINISHED (UINT64_C(1) << 32)

static inline bool precedes(struct trace_match a, struct trace_match b)
{
	return a.time_ns < b.time_ns || (a.time_ns == b.time_ns && a.cursor < b.cursor);
}

static inline struct trace_match match_of(const struct trace_reader *r, uint32_t at)
{
	const struct trace_cursor *c = &r->cursor[at];
	bool finished = c->chunk == TRACE_NO_CHUNK;

	if (BASE_LIKELY(c->head < c->head_end))
		return (struct trace_match){.time_ns = c->head->time_ns, .cursor = at};
	return (struct trace_match){
		.time_ns = finished ? UINT64_MAX : c->time_ns,
		.cursor = finished ? at | FINISHED : at,
	};
}

/* The winner's leaf has a new head: play its way up. */
static struct trace_match many_replay(
	struct trace_match *tree, uint32_t nr_leaves, uint32_t leaf, struct trace_match m)
{
	for (uint32_t n = (leaf + nr_leaves) / 2; n; n /= 2) {
		struct trace_match other = tree[n];
		/* Without a branch: with many streams nobody can foresee who wins. */
		uint64_t swap =
			-(uint64_t)((other.time_ns < m.time_ns) |
				    ((other.time_ns == m.time_ns) & (other.cursor < m.cursor)));
		uint64_t time_swap = (other.time_ns ^ m.time_ns) & swap;
		uint64_t cursor_swap = (other.cursor ^ m.cursor) & swap;
		tree[n].time_ns = other.time_ns ^ time_swap;
		tree[n].cursor = other.cursor ^ cursor_swap;
		m.time_ns ^= time_swap;
		m.cursor ^= cursor_swap;
	}
	return m;
}

static void many_start(struct trace_reader *r)
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

static enum base_status many_next(struct trace_reader *r, uint64_t last_ns,
	struct trace_record *batch, size_t *ret_nr, struct base_err *err)
{
	enum base_status status = BASE_OK;
	uint32_t last_at = 0;
	size_t nr = 0;

	while (nr < TRACE_BATCH_MAX && r->winner.cursor < FINISHED &&
		r->winner.time_ns <= last_ns) {
		uint32_t at = (uint32_t)r->winner.cursor;
		struct trace_cursor *c = &r->cursor[at];
		struct trace_match head;
		if (BASE_LIKELY(c->head < c->head_end)) {
			/* A leaf that wins twice may go on winning: worth looking for the second
			 * best. */
			struct trace_match limit = {0};
			if (at == last_at)
				limit = second_best(r);
			do {
				batch[nr++] = *c->head;
				merge_advance(r, c);
				head = match_of(r, at);
			} while (nr < TRACE_BATCH_MAX && c->head < c->head_end &&
				 head.time_ns <= last_ns && precedes(head, limit));
		} else {
			status = enter_data_chunk(r, c, err);
			if (status != BASE_OK)
				break;
			head = match_of(r, at);
		}
		last_at = at;
		r->winner = many_replay(r->tree, r->nr_leaves, at - FIRST_LEAF, head);
	}
	*ret_nr = nr;
	return status;
}

/* ---- batches --------------------------------------------------------------------------------- */

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

static uint64_t last_ns_of(const struct trace_reader *r)
{
	return r->options.to_ns ? r->options.to_ns - 1 : UINT64_MAX;
}

/* Of `nr` records and then `status`: an error will be met again at the next call. */
static enum base_status batch_status(size_t nr, enum base_status status)
{
	if (nr)
		return BASE_OK;
	return status == BASE_OK ? BASE_END : status;
}

static inline void copy_record(void *to, const struct trace_record *r)
{
	struct trace_record **next = to;

	*(*next)++ = *r;
}

enum base_status trace_merge_next(
	struct trace_reader *r, struct trace_record *batch, size_t *ret_nr, struct base_err *err)
{
	enum base_status status = BASE_OK;

	*ret_nr = 0;
	if (r->few_leaves)
		status = few_next(r, last_ns_of(r), copy_record, &batch, ret_nr, err);
	else if (r->nr_leaves)
		status = many_next(r, last_ns_of(r), batch, ret_nr, err);
	return batch_status(*ret_nr, status);
}

enum base_status trace_reader_next(
	struct trace_reader *r, struct trace_batch *ret, struct base_err *err)
{
	enum base_status status = BASE_OK;

	*ret = (struct trace_batch){.record = r->batch};
	if (BASE_UNLIKELY(r->options.with_definitions && r->cursor[0].chunk != TRACE_NO_CHUNK))
		status = next_definitions(r, &ret->nr, err);
	if (status == BASE_OK && !ret->nr) {
		if (r->reads_ahead && !r->ahead)
			status = trace_ahead_start(r, err);
		if (r->ahead)
			return trace_ahead_next(r, ret, err);
		if (status == BASE_OK)
			status = trace_merge_next(r, r->batch, &ret->nr, err);
	}
	r->health_told = r->health;
	return status;
}

enum base_status trace_reader_visit(struct trace_reader *r, trace_visit_fn *visit, void *ctx,
	size_t *ret_nr, struct base_err *err)
{
	bool has_definitions = r->options.with_definitions && r->cursor[0].chunk != TRACE_NO_CHUNK;
	enum base_status status;

	if (r->few_leaves && !r->reads_ahead && !r->ahead && !has_definitions) {
		status = few_next(r, last_ns_of(r), visit, ctx, ret_nr, err);
		r->health_told = r->health;
		return batch_status(*ret_nr, status);
	}

	struct trace_batch batch;
	status = trace_reader_next(r, &batch, err);
	for (size_t i = 0; i < batch.nr; i++)
		visit(ctx, &batch.record[i]);
	*ret_nr = batch.nr;
	return status;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

enum base_status trace_merge_init(struct trace_reader *r, struct base_err *err)
{
	r->nr_leaves = r->nr_cursors - FIRST_LEAF;
	r->tree = base_alloc((size_t)(r->nr_leaves + 1) * sizeof *r->tree);
	r->batch = base_alloc(TRACE_BATCH_MAX * sizeof *r->batch);
	if (!r->tree || !r->batch)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to merge %u {stream|streams}",
			r->nr_leaves);
	trace_merge_start(r);
	return BASE_OK;
}

void trace_merge_start(struct trace_reader *r)
{
	for (uint32_t i = 0; i < r->nr_cursors; i++)
		go_to_chunk(r, &r->cursor[i], r->cursor[i].first_chunk);
	r->few_leaves = 0;
	if (!r->nr_leaves)
		return;
	if (r->nr_leaves <= FEW_LEAVES && r->last_ns <= FEW_LAST_NS)
		few_start(r);
	else
		many_start(r);
}

void trace_merge_fini(struct trace_reader *r)
{
	for (uint32_t i = 0; i < r->nr_cursors; i++) {
		base_free(r->cursor[i].buffer.bytes);
		base_free(r->cursor[i].staged);
		trace_columns_free(r->cursor[i].columns);
	}
	base_free(r->tree);
	base_free(r->batch);
}
