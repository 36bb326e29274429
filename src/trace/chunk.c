/* SPDX-License-Identifier: Apache-2.0 */
/* chunk.c - from a place in the file to a chunk's raw bytes, and the memory that takes. */
#include "trace/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

enum {
	BUFFER_MIN_BYTES = 4 << 10,
	BUFFER_SLACK_BYTES = TRACE_PAD_BYTES + 128 /* what columns add to a full chunk */
};

enum base_status trace_source_read(
	const struct trace_source *s, uint64_t offset, void *to, size_t nr, struct base_err *err)
{
	uint8_t *p = to;

	if (offset > s->size_bytes || nr > s->size_bytes - offset)
		return base_fail(err, BASE_ERR_TRUNCATED,
			"%s: bytes %" PRIu64 " to %" PRIu64 " are not in the file", s->name, offset,
			offset + nr);
	if (s->fd < 0) {
		if (nr)
			memcpy(p, s->memory + offset, nr);
		return BASE_OK;
	}
	/* pread, not mmap: a file that shrinks while we read it must not kill us with SIGBUS. */
	while (nr) {
		ssize_t n = pread(s->fd, p, nr, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return base_fail_errno(
				err, errno, "%s: reading at byte %" PRIu64, s->name, offset);
		if (!n)
			return base_fail(err, BASE_ERR_TRUNCATED,
				"%s: was cut at byte %" PRIu64 " while it was read", s->name,
				offset);
		p += n;
		offset += (uint64_t)n;
		nr -= (size_t)n;
	}
	return BASE_OK;
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* Few sizes, so that buffers can be used again; what a writer fills to the brim just fits. */
static size_t chunk_size_class(size_t need)
{
	size_t size = BUFFER_MIN_BYTES;

	while (size + BUFFER_SLACK_BYTES < need)
		size *= 2;
	return size + BUFFER_SLACK_BYTES;
}

static enum base_status take_buffer(
	struct trace_reader *r, size_t need, struct trace_buffer *ret, struct base_err *err)
{
	size_t capacity = chunk_size_class(need);

	for (unsigned i = r->nr_spare; i-- > 0;) {
		if (r->spare[i].capacity != capacity)
			continue;
		*ret = r->spare[i];
		r->spare[i] = r->spare[--r->nr_spare];
		return BASE_OK;
	}
	if (r->buffers_bytes + capacity > TRACE_READER_BUFFERS_MAX)
		return base_fail(err, BASE_ERR_LIMIT,
			"%s: too many streams are active at one time (limit %d MiB)",
			r->source.name, (int)TRACE_READER_BUFFERS_MAX >> 20);
	ret->bytes = base_alloc(capacity);
	if (!ret->bytes)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for a chunk");
	ret->capacity = capacity;
	r->buffers_bytes += capacity;
	return BASE_OK;
}

void trace_buffer_release(struct trace_reader *r, struct trace_buffer *b)
{
	if (!b->bytes)
		return;
	if (r->nr_spare < TRACE_SPARE_BUFFERS) {
		r->spare[r->nr_spare++] = *b;
	} else {
		r->buffers_bytes -= b->capacity;
		base_free(b->bytes);
	}
	*b = (struct trace_buffer){0};
}

void trace_buffers_fini(struct trace_reader *r)
{
	for (unsigned i = 0; i < r->nr_spare; i++)
		base_free(r->spare[i].bytes);
	r->nr_spare = 0;
	base_free(r->stored.bytes);
	r->stored = (struct trace_buffer){0};
}

/* ---- chunks ---------------------------------------------------------------------------------- */

void trace_chunk_damaged(struct trace_reader *r, uint32_t chunk)
{
	struct trace_chunk *c = &r->chunk[chunk];
	uint64_t end =
		chunk + 1 < r->nr_chunks ? r->chunk[chunk + 1].entry.offset : r->source.size_bytes;
	uint64_t bytes = end - c->entry.offset;

	r->health.count[TRACE_DIAG_chunks_damaged]++;
	r->health.readable_bytes -=
		bytes < r->health.readable_bytes ? bytes : r->health.readable_bytes;
}

static enum base_status chunk_damaged(
	const struct trace_reader *r, uint64_t offset, const char *what, struct base_err *err)
{
	return base_fail(err, BASE_ERR_CORRUPT, "%s: the chunk at byte %" PRIu64 ": %s",
		r->source.name, offset, what);
}

/* The bytes as stored: in place when the source is memory, else in r->stored. */
static enum base_status read_stored(struct trace_reader *r, uint64_t offset, size_t nr,
	const uint8_t **ret, struct base_err *err)
{
	if (r->source.fd < 0) {
		*ret = r->source.memory + offset;
		return BASE_OK;
	}
	if (nr > r->stored.capacity) {
		base_free(r->stored.bytes);
		r->stored = (struct trace_buffer){.bytes = base_alloc(chunk_size_class(nr))};
		if (!r->stored.bytes)
			return base_fail(err, BASE_ERR_NOMEM, "no memory for a chunk");
		r->stored.capacity = chunk_size_class(nr);
	}
	*ret = r->stored.bytes;
	return trace_source_read(&r->source, offset, r->stored.bytes, nr, err);
}

static bool agrees(const struct trace_chunk_header *h, const struct trace_index_entry *e)
{
	return h->stream == e->stream && h->nr_records == e->nr_records &&
	       h->first_ns == e->first_ns && h->last_ns == e->last_ns;
}

/* Its header, which must be what the index says. */
static enum base_status fetch_header(struct trace_reader *r, uint32_t chunk,
	struct trace_chunk_header *ret, struct base_err *err)
{
	const struct trace_index_entry *e = &r->chunk[chunk].entry;
	uint8_t head[TRACE_CHUNK_HEADER_BYTES];
	enum base_status status = trace_source_read(&r->source, e->offset, head, sizeof head, err);

	if (status == BASE_ERR_TRUNCATED)
		return chunk_damaged(r, e->offset, "is cut", err);
	if (status != BASE_OK)
		return status;
	if (!trace_chunk_header_decode(head, ret) || !agrees(ret, e))
		return chunk_damaged(r, e->offset, "its header", err);
	return BASE_OK;
}

/* Its payload as stored, which must be what the header says. */
static enum base_status fetch_stored(struct trace_reader *r, uint32_t chunk,
	const struct trace_chunk_header *h, const uint8_t **ret, struct base_err *err)
{
	const struct trace_index_entry *e = &r->chunk[chunk].entry;
	uint64_t offset = e->offset + TRACE_CHUNK_HEADER_BYTES;

	if (h->stored_bytes > r->source.size_bytes - offset)
		return chunk_damaged(r, e->offset, "is cut", err);
	enum base_status status = read_stored(r, offset, h->stored_bytes, ret, err);
	if (status == BASE_ERR_TRUNCATED)
		return chunk_damaged(r, e->offset, "is cut", err);
	if (status != BASE_OK)
		return status;
	BASE_ASSERT(*ret);
	if (XXH64(*ret, h->stored_bytes, 0) != h->payload_hash)
		return chunk_damaged(r, e->offset, "its checksum is wrong", err);
	return BASE_OK;
}

/* (Of many traces that are read side by side most are a chunk or few: once the last was decompressed
 * they need no more memory for that.) */
static enum base_status chunk_decompress(struct trace_reader *r, uint32_t chunk, uint8_t *to,
	size_t nr_bytes, const uint8_t *stored, size_t stored_bytes, struct base_err *err)
{
	if (!r->zstd)
		r->zstd = ZSTD_createDCtx();
	if (!r->zstd)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to read %s", r->source.name);
	bool is_whole =
		ZSTD_decompressDCtx(r->zstd, to, nr_bytes, stored, stored_bytes) == nr_bytes;
	if (chunk + 1 == r->nr_chunks) {
		ZSTD_freeDCtx(r->zstd);
		r->zstd = NULL;
	}
	return is_whole
		       ? BASE_OK
		       : chunk_damaged(r, r->chunk[chunk].entry.offset, "does not decompress", err);
}

static enum base_status fetch_payload(struct trace_reader *r, uint32_t chunk,
	struct trace_buffer *ret, const struct trace_chunk_header *h, struct base_err *err)
{
	const uint8_t *stored = NULL;
	enum base_status status = fetch_stored(r, chunk, h, &stored, err);
	if (status != BASE_OK)
		return status;
	BASE_ASSUME(stored);
	size_t raw_bytes = h->raw_bytes;
	status = take_buffer(r, raw_bytes + TRACE_PAD_BYTES, ret, err);
	if (status != BASE_OK)
		return status;
	BASE_ASSERT(ret->bytes);
	if (h->codec == TRACE_CODEC_RAW)
		memcpy(ret->bytes, stored, raw_bytes);
	else
		status = chunk_decompress(
			r, chunk, ret->bytes, raw_bytes, stored, h->stored_bytes, err);
	if (status != BASE_OK) {
		trace_buffer_release(r, ret);
		return status;
	}
	memset(ret->bytes + raw_bytes, 0, TRACE_PAD_BYTES);
	return BASE_OK;
}

enum base_status trace_chunk_fetch(struct trace_reader *r, uint32_t chunk, struct trace_buffer *ret,
	struct trace_chunk_header *ret_header, struct base_err *err)
{
	enum base_status status = fetch_header(r, chunk, ret_header, err);

	if (status != BASE_OK)
		return status;
	if (!trace_content_is_records(ret_header->content))
		return BASE_OK; /* not for us: nothing is fetched */
	return fetch_payload(r, chunk, ret, ret_header, err);
}

enum base_status trace_reader_verify(struct trace_reader *r, struct base_err *err)
{
	enum base_status status = BASE_OK;

	pthread_mutex_lock(&r->decoding);
	for (uint32_t i = 0; i < r->nr_chunks && status == BASE_OK; i++) {
		struct trace_chunk_header h = {0};
		const uint8_t *stored = NULL;
		struct base_err why = {0};

		if (r->chunk[i].damaged)
			continue;
		status = fetch_header(r, i, &h, &why);
		if (status == BASE_OK)
			status = fetch_stored(r, i, &h, &stored, &why);
		if (status == BASE_ERR_CORRUPT) {
			r->chunk[i].damaged = true;
			trace_chunk_damaged(r, i);
			status = BASE_OK;
		} else if (status != BASE_OK && err) {
			*err = why;
		}
	}
	pthread_mutex_unlock(&r->decoding);
	r->health_at_open = r->health_told = r->health;
	return status;
}

/* ---- other contents -------------------------------------------------------------------------- */

enum base_status trace_reader_contents(struct trace_reader *r, enum trace_content content,
	struct trace_content_chunk **ret, size_t *ret_nr, struct base_err *err)
{
	size_t capacity = 0;

	*ret = NULL;
	*ret_nr = 0;
	for (uint32_t i = 0; i < r->nr_chunks; i++) {
		const struct trace_index_entry *e = &r->chunk[i].entry;
		uint8_t head[TRACE_CHUNK_HEADER_BYTES];
		struct trace_chunk_header h;
		enum base_status status =
			trace_source_read(&r->source, e->offset, head, sizeof head, err);

		if (status != BASE_OK && status != BASE_ERR_TRUNCATED) {
			base_free(*ret);
			*ret = NULL;
			return status;
		}
		if (status != BASE_OK || !trace_chunk_header_decode(head, &h) || !agrees(&h, e) ||
			h.content != (uint32_t)content || r->chunk[i].damaged)
			continue;
		if (base_grow(ret, &capacity, *ret_nr + 1, sizeof **ret) != BASE_OK) {
			base_free(*ret);
			*ret = NULL;
			return base_fail(err, BASE_ERR_NOMEM, "no memory for the list of chunks");
		}
		(*ret)[(*ret_nr)++] = (struct trace_content_chunk){.chunk = i,
			.stream = h.stream,
			.first_ns = h.first_ns,
			.last_ns = h.last_ns,
			.size_bytes = h.raw_bytes};
	}
	return BASE_OK;
}

enum base_status trace_reader_content(
	struct trace_reader *r, const struct trace_content_chunk *c, void *to, struct base_err *err)
{
	struct trace_chunk_header h = {0};
	struct trace_buffer buffer = {0};
	enum base_status status = fetch_header(r, c->chunk, &h, err);

	if (status == BASE_OK && h.raw_bytes != c->size_bytes)
		status = chunk_damaged(r, r->chunk[c->chunk].entry.offset, "its header", err);
	if (status != BASE_OK)
		return status;
	pthread_mutex_lock(&r->decoding);
	status = fetch_payload(r, c->chunk, &buffer, &h, err);
	if (status == BASE_OK) {
		BASE_ASSUME(to && buffer.bytes);
		memcpy(to, buffer.bytes, h.raw_bytes);
		memset((uint8_t *)to + h.raw_bytes, 0, TRACE_CONTENT_PAD_BYTES);
	}
	trace_buffer_release(r, &buffer);
	pthread_mutex_unlock(&r->decoding);
	return status;
}

const uint8_t *trace_skip_fields(
	const struct trace_schema_kind *k, const uint8_t *p, const uint8_t *end)
{
	for (uint32_t i = 0; p && i < k->nr_fields; i++) {
		uint64_t v;

		p = base_get_uvarint(p, end, &v);
		if (!p || k->type[i] != TRACE_FIELD_TEXT)
			continue;
		if (v > (uint64_t)(end - p))
			return NULL;
		p += v;
	}
	return p;
}
