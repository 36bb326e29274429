/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - records to chunks to a file. Whole chunks only: what a crash of the writer leaves is
 * readable.
 *
 * Each stream has a buffer that starts small and doubles, so that thousands of quiet streams cost
 * little; all buffers together stay below WRITER_BUFFERS_MAX, which also bounds what a reader needs
 * at one time.
 */
#include "trace/codec.h"
#include "trace/columns.h"
#include "trace/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

enum {
	BUFFER_FIRST_BYTES = 4 << 10,
	WRITER_BUFFERS_MAX = 64 << 20,
	ZSTD_LEVEL = 1, /* of everything but records */
	/* A column of as many bytes is compressed apart from the others: its bytes are of its own
	   frequencies. Fewer are not worth a block's head and table. */
	BLOCK_BYTES = 1 << 10,
};

/* Of records: level 1 with a table of hashes that stays in the processor's first cache, and no
 * match shorter than a record of a lock with its time: quicker, at 0 to 5 % more bytes; a recorder
 * shares the machine with what it records. */
static const struct {
	ZSTD_cParameter parameter;
	int value;
} zstd_of_records[] = {{ZSTD_c_compressionLevel, ZSTD_LEVEL}, {ZSTD_c_strategy, ZSTD_fast},
	{ZSTD_c_hashLog, 12}, {ZSTD_c_minMatch, 6}};

/* A stream that has not been written to has capacity 0. */
struct stream_buf {
	uint8_t *bytes;
	uint32_t capacity, used, nr_records;
	bool is_listed; /* in writer.fresh */
	uint64_t first_ns;
	struct trace_codec_state state; /* outlives the chunks: times never decrease */
};

struct trace_writer {
	int fd;
	enum base_status status; /* sticky */
	int sys_errno;
	uint64_t file_bytes; /* whole chunks only */
	uint64_t nr_records;
	uint64_t count[TRACE_DIAG_NR];

	struct stream_buf *stream;
	size_t stream_capacity, buffers_bytes;
	uint32_t nr_streams;
	/* Streams with records since the last flush of all, and those of the flush before: else
	 * each would look at all that there ever were. */
	uint32_t *fresh, *before;
	size_t nr_fresh, nr_before, fresh_capacity, before_capacity;

	struct trace_index_entry *index;
	size_t index_capacity, nr_index;

	ZSTD_CCtx *zstd;
	struct trace_splitter *splitter; /* made when first needed */
	bool plain;                      /* not compressed */
	uint8_t *out;                    /* a chunk header and a compressed payload */
	size_t out_capacity;
	char *path;
	size_t path_bytes;
};

/* ---- file ------------------------------------------------------------------------------------ */

static enum base_status write_bytes(
	struct trace_writer *w, const void *bytes, size_t nr, struct base_err *err)
{
	const uint8_t *p = bytes;
	size_t left = nr;

	while (left) {
		ssize_t n = write(w->fd, p, left);
		if (n > 0) {
			p += n;
			left -= (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		w->sys_errno = n < 0 ? errno : ENOSPC;
		w->status = base_fail_errno(err, w->sys_errno, "%s: writing at byte %llu", w->path,
			(unsigned long long)w->file_bytes);
		if (w->sys_errno == ENOSPC || w->sys_errno == EDQUOT || w->sys_errno == EFBIG)
			w->count[TRACE_DIAG_disk_full]++;
		/* Take back the part of a chunk; a pipe or a refusal leaves a cut tail, which
		 * readers know. */
		if (!ftruncate(w->fd, (off_t)w->file_bytes))
			(void)!lseek(w->fd, (off_t)w->file_bytes, SEEK_SET);
		return w->status;
	}
	w->file_bytes += nr;
	return BASE_OK;
}

static enum base_status writer_stuck(const struct trace_writer *w, struct base_err *err)
{
	if (w->sys_errno)
		return base_fail_errno(err, w->sys_errno, "%s: writing stopped at byte %llu",
			w->path, (unsigned long long)w->file_bytes);
	return base_fail(err, w->status, "%s: writing stopped at byte %llu", w->path,
		(unsigned long long)w->file_bytes);
}

static enum base_status writer_no_memory(struct trace_writer *w, struct base_err *err)
{
	w->status = BASE_ERR_NOMEM;
	return writer_stuck(w, err);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* One frame of all parts, large ones in blocks of their own; 0: no room. */
static size_t compress_parts(struct trace_writer *w, const struct trace_column_part *part,
	size_t nr_parts, size_t nr_bytes, ZSTD_outBuffer out)
{
	(void)ZSTD_CCtx_reset(w->zstd, ZSTD_reset_session_only);
	(void)ZSTD_CCtx_setPledgedSrcSize(w->zstd, nr_bytes);
	for (size_t i = 0; i < nr_parts; i++) {
		ZSTD_inBuffer in = {part[i].bytes, part[i].nr, 0};
		bool is_last = i + 1 == nr_parts;
		ZSTD_EndDirective then =
			is_last ? ZSTD_e_end
			: part[i].nr >= BLOCK_BYTES || part[i + 1].nr >= BLOCK_BYTES
				? ZSTD_e_flush
				: ZSTD_e_continue;
		size_t left = ZSTD_compressStream2(w->zstd, &out, &in, then);
		if (ZSTD_isError(left) || in.pos != in.size || (left && then != ZSTD_e_continue))
			return 0;
	}
	return out.pos;
}

/* Records in columns behind the header of w->out; false: better as they are. */
static bool store_columns(
	struct trace_writer *w, const struct stream_buf *b, struct trace_chunk_header *ret)
{
	const struct trace_column_part *part;
	size_t nr_parts = 0, nr_bytes = 0;

	if (!w->splitter)
		w->splitter = trace_splitter_new();
	if (w->splitter)
		nr_parts = trace_columns_split(w->splitter, b->bytes, b->used, &part);
	for (size_t i = 0; i < nr_parts; i++)
		nr_bytes += part[i].nr;
	size_t n = !nr_parts ? 0
			     : compress_parts(w, part, nr_parts, nr_bytes,
				       (ZSTD_outBuffer){w->out + TRACE_CHUNK_HEADER_BYTES,
					       w->out_capacity - TRACE_CHUNK_HEADER_BYTES, 0});
	if (!n || n >= b->used)
		return false;
	ret->content = TRACE_CONTENT_COLUMNS;
	ret->codec = TRACE_CODEC_ZSTD;
	ret->raw_bytes = (uint32_t)nr_bytes;
	ret->stored_bytes = (uint32_t)n;
	return true;
}

/* The payload into w->out behind the header; returns its size and codec. */
static size_t store_payload(struct trace_writer *w, const struct stream_buf *b,
	enum trace_content content, enum trace_codec *ret_codec)
{
	uint8_t *payload = w->out + TRACE_CHUNK_HEADER_BYTES;
	size_t room = w->out_capacity - TRACE_CHUNK_HEADER_BYTES;
	size_t n =
		w->plain ? b->used
		: content == TRACE_CONTENT_RECORDS
			? ZSTD_compress2(w->zstd, payload, room, b->bytes, b->used)
			: ZSTD_compressCCtx(w->zstd, payload, room, b->bytes, b->used, ZSTD_LEVEL);

	*ret_codec = TRACE_CODEC_ZSTD;
	if (!ZSTD_isError(n) && n < b->used)
		return n;
	*ret_codec = TRACE_CODEC_RAW;
	memcpy(payload, b->bytes, b->used);
	return b->used;
}

static enum base_status flush_content(
	struct trace_writer *w, uint32_t stream, enum trace_content content, struct base_err *err)
{
	struct stream_buf *b = &w->stream[stream];

	if (!b->nr_records)
		return BASE_OK;
	if (base_grow(&w->out, &w->out_capacity,
		    TRACE_CHUNK_HEADER_BYTES + ZSTD_compressBound(b->used), 1) != BASE_OK ||
		base_grow(&w->index, &w->index_capacity, w->nr_index + 1, sizeof *w->index) !=
			BASE_OK)
		return writer_no_memory(w, err);

	struct trace_chunk_header h = {
		.stream = stream,
		.nr_records = b->nr_records,
		.content = (uint32_t)content,
		.first_ns = b->first_ns,
		.last_ns = b->state.last_ns,
		.raw_bytes = b->used,
	};
	if (w->plain || !stream || content != TRACE_CONTENT_RECORDS ||
		b->used < TRACE_COLUMNS_MIN_BYTES || !store_columns(w, b, &h))
		h.stored_bytes = (uint32_t)store_payload(w, b, content, &h.codec);
	h.payload_hash = XXH64(w->out + TRACE_CHUNK_HEADER_BYTES, h.stored_bytes, 0);
	trace_chunk_header_encode(w->out, &h);
	uint64_t offset = w->file_bytes;
	enum base_status status =
		write_bytes(w, w->out, TRACE_CHUNK_HEADER_BYTES + h.stored_bytes, err);
	if (status != BASE_OK)
		return status;
	w->index[w->nr_index++] = (struct trace_index_entry){
		.offset = offset,
		.first_ns = h.first_ns,
		.last_ns = h.last_ns,
		.stream = stream,
		.nr_records = h.nr_records,
	};
	b->used = 0;
	b->nr_records = 0;
	return BASE_OK;
}

static enum base_status flush_stream(struct trace_writer *w, uint32_t stream, struct base_err *err)
{
	return flush_content(w, stream, TRACE_CONTENT_RECORDS, err);
}

/* Definitions go first: no chunk in the file mentions an id that is not defined before it. */
static enum base_status flush_after_definitions(
	struct trace_writer *w, uint32_t stream, struct base_err *err)
{
	enum base_status status = flush_stream(w, 0, err);

	return status != BASE_OK || !stream ? status : flush_stream(w, stream, err);
}

static int writer_ascending(const void *pa, const void *pb)
{
	const uint32_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

static enum base_status flush_all(struct trace_writer *w, struct base_err *err)
{
	enum base_status status = flush_stream(w, 0, err);

	if (w->nr_fresh)
		qsort(w->fresh, w->nr_fresh, sizeof *w->fresh, writer_ascending);
	for (size_t i = 0; status == BASE_OK && i < w->nr_fresh; i++)
		status = flush_stream(w, w->fresh[i], err);
	return status;
}

static void writer_free_buffer(struct trace_writer *w, struct stream_buf *b)
{
	base_free(b->bytes);
	w->buffers_bytes -= b->capacity;
	b->bytes = NULL;
	b->capacity = 0;
}

static void free_buffers(struct trace_writer *w)
{
	for (uint32_t i = 0; i < w->nr_streams; i++)
		writer_free_buffer(w, &w->stream[i]);
}

/* ---- buffers --------------------------------------------------------------------------------- */

static enum base_status add_stream(struct trace_writer *w, uint32_t stream, struct base_err *err)
{
	if (stream >= TRACE_STREAM_MAX)
		return base_fail(err, BASE_ERR_LIMIT, "%s: stream %u (limit TRACE_STREAM_MAX, %d)",
			w->path, stream, (int)TRACE_STREAM_MAX);
	if (base_grow(&w->stream, &w->stream_capacity, (size_t)stream + 1, sizeof *w->stream) !=
			BASE_OK ||
		base_grow(&w->fresh, &w->fresh_capacity, w->stream_capacity, sizeof *w->fresh) !=
			BASE_OK ||
		base_grow(&w->before, &w->before_capacity, w->stream_capacity, sizeof *w->before) !=
			BASE_OK)
		return writer_no_memory(w, err);
	w->nr_streams = stream + 1;
	return BASE_OK;
}

static enum base_status resize_buffer(
	struct trace_writer *w, struct stream_buf *b, size_t capacity, struct base_err *err)
{
	uint8_t *bytes = base_realloc(b->bytes, b->capacity, capacity);

	if (!bytes)
		return writer_no_memory(w, err);
	w->buffers_bytes += capacity - b->capacity;
	b->bytes = bytes;
	b->capacity = (uint32_t)capacity;
	return BASE_OK;
}

/* Makes room for `need` bytes: a larger buffer while there is memory for it, else by writing. */
static enum base_status writer_make_room(
	struct trace_writer *w, uint32_t stream, size_t need, struct base_err *err)
{
	struct stream_buf *b = &w->stream[stream];
	size_t grown = b->capacity ? (size_t)b->capacity * 2 : BUFFER_FIRST_BYTES;
	enum base_status status;

	while (grown < b->used + need)
		grown *= 2;
	if (grown <= TRACE_CHUNK_RAW_MAX &&
		w->buffers_bytes + (grown - b->capacity) <= WRITER_BUFFERS_MAX)
		return resize_buffer(w, b, grown, err);

	status = flush_after_definitions(w, stream, err);
	if (status != BASE_OK || need <= b->capacity)
		return status;
	/* A huge text, or so many streams that not even small buffers fit. */
	if (w->buffers_bytes + need > WRITER_BUFFERS_MAX) {
		status = flush_all(w, err);
		if (status != BASE_OK)
			return status;
		free_buffers(w);
	}
	return resize_buffer(w, b, need < BUFFER_FIRST_BYTES ? BUFFER_FIRST_BYTES : need, err);
}

/* ---- interface ------------------------------------------------------------------------------- */

static enum base_status check_put(const struct trace_writer *w, const struct trace_record *r,
	bool is_definition, struct base_err *err)
{
	if (!is_definition)
		return base_fail(err, BASE_ERR_USAGE,
			"%s: a record of kind %u in stream 0, which is for definitions", w->path,
			r->kind);
	if (trace_text_bytes(r) > TRACE_TEXT_MAX - TRACE_RECORD_BYTES_MAX)
		return base_fail(err, BASE_ERR_LIMIT,
			"%s: a text of %llu {byte|bytes} (limit TRACE_TEXT_MAX, %d)", w->path,
			(unsigned long long)trace_text_bytes(r), (int)TRACE_TEXT_MAX);
	return BASE_OK;
}

static bool writer_has_room(const struct trace_writer *w, uint32_t stream, size_t need)
{
	/* A chunk is full, too, when it would be too large for a reader. */
	return BASE_LIKELY(stream < w->nr_streams) &&
	       BASE_LIKELY(need <= w->stream[stream].capacity - w->stream[stream].used);
}

static enum base_status writer_find_room(
	struct trace_writer *w, uint32_t stream, size_t need, struct base_err *err)
{
	enum base_status status = stream < w->nr_streams ? BASE_OK : add_stream(w, stream, err);
	return status != BASE_OK || writer_has_room(w, stream, need)
		       ? status
		       : writer_make_room(w, stream, need, err);
}

/* (apart: once a chunk) */
static __attribute__((noinline)) void begun(struct trace_writer *w, struct stream_buf *b)
{
	b->first_ns = b->state.last_ns;
	if (b->is_listed)
		return;
	b->is_listed = true;
	w->fresh[w->nr_fresh++] = (uint32_t)(b - w->stream);
}

static void added(struct trace_writer *w, struct stream_buf *b, const uint8_t *end)
{
	if (!b->nr_records)
		begun(w, b);
	b->used = (uint32_t)(end - b->bytes);
	b->nr_records++;
	w->nr_records++;
}

static enum base_status writer_append(struct trace_writer *w, struct stream_buf *b,
	const struct trace_record *r, bool is_definition, struct base_err *err)
{
	struct trace_codec_state before = b->state;
	if (!is_definition && !b->nr_records)
		b->state.last_ns = r->time_ns;
	const uint8_t *end = trace_encode_roomy(b->bytes + b->used, &b->state, r);
	if (BASE_UNLIKELY(!end)) {
		b->state = before;
		return base_fail(err, BASE_ERR_USAGE, "%s: no record kind %u", w->path, r->kind);
	}
	added(w, b, end);
	return BASE_OK;
}

/* A time before the stream's last is raised to it. */
static enum base_status append_raised(struct trace_writer *w, struct stream_buf *b,
	const struct trace_record *r, struct base_err *err)
{
	struct trace_record raised = *r;
	raised.time_ns = b->state.last_ns;
	w->count[TRACE_DIAG_time_raised]++;
	return writer_append(w, b, &raised, false, err);
}

enum base_status trace_writer_put(
	struct trace_writer *w, const struct trace_record *r, struct base_err *err)
{
	bool is_definition = r->kind < TRACE_FIRST_DATA_KIND;
	uint32_t stream = is_definition ? 0 : r->stream;
	size_t need = TRACE_RECORD_BYTES_MAX;
	enum base_status status;

	if (BASE_UNLIKELY(w->status != BASE_OK))
		return writer_stuck(w, err);
	if (BASE_UNLIKELY(!stream)) {
		status = check_put(w, r, is_definition, err);
		if (status != BASE_OK)
			return status;
		need += (size_t)trace_text_bytes(r);
	}
	if (BASE_UNLIKELY(!writer_has_room(w, stream, need))) {
		status = writer_find_room(w, stream, need, err);
		if (status != BASE_OK)
			return status;
	}
	struct stream_buf *b = &w->stream[stream];
	if (BASE_UNLIKELY(!is_definition && r->time_ns < b->state.last_ns))
		return append_raised(w, b, r, err);
	return writer_append(w, b, r, is_definition, err);
}

/* As little as can be: most records of a recording come through here. */
static inline void append_form(
	struct trace_writer *w, uint32_t stream, uint64_t time_ns, const struct trace_form *f)
{
	struct stream_buf *b = &w->stream[stream];
	if (BASE_UNLIKELY(time_ns < b->state.last_ns)) {
		time_ns = b->state.last_ns;
		w->count[TRACE_DIAG_time_raised]++;
	}
	if (!b->nr_records)
		b->state.last_ns = time_ns;
	/* As many bytes as there may be, in any case: one instruction. */
	uint8_t *p = b->bytes + b->used;
	memcpy(p, f->kind, sizeof f->kind);
	p = base_put_uvarint(p + f->nr_kind_bytes, time_ns - b->state.last_ns);
	memcpy(p, f->fields, sizeof f->fields);
	b->state.last_ns = time_ns;
	added(w, b, p + f->nr_bytes);
}

/* (apart: else its registers are saved for each record) */
static __attribute__((noinline)) enum base_status put_form_elsewhere(struct trace_writer *w,
	uint32_t stream, uint64_t time_ns, const struct trace_form *f, struct base_err *err)
{
	if (w->status != BASE_OK)
		return writer_stuck(w, err);
	BASE_ASSERT(stream);
	enum base_status status = writer_find_room(w, stream, TRACE_RECORD_BYTES_MAX, err);
	if (status == BASE_OK)
		append_form(w, stream, time_ns, f);
	return status;
}

enum base_status trace_writer_put_form(struct trace_writer *w, uint32_t stream, uint64_t time_ns,
	const struct trace_form *f, struct base_err *err)
{
	if (BASE_UNLIKELY(w->status != BASE_OK || !stream ||
			  !writer_has_room(w, stream, TRACE_RECORD_BYTES_MAX)))
		return put_form_elsewhere(w, stream, time_ns, f, err);
	append_form(w, stream, time_ns, f);
	return BASE_OK;
}

enum base_status trace_writer_put_content(struct trace_writer *w, enum trace_content content,
	uint32_t stream, uint64_t first_ns, uint64_t last_ns, const void *bytes, size_t size_bytes,
	struct base_err *err)
{
	enum base_status status;

	if (BASE_UNLIKELY(w->status != BASE_OK))
		return writer_stuck(w, err);
	if (trace_content_is_records(content) || !stream || !size_bytes ||
		size_bytes > TRACE_CONTENT_RAW_MAX || first_ns > last_ns)
		return base_fail(err, BASE_ERR_USAGE, "%s: a chunk of content %u, %zu {byte|bytes}",
			w->path, content, size_bytes);
	if (stream >= w->nr_streams) {
		status = add_stream(w, stream, err);
		if (status != BASE_OK)
			return status;
	}
	status = flush_stream(w, 0, err);
	if (status != BASE_OK)
		return status;
	struct stream_buf *b = &w->stream[stream];
	if (b->nr_records)
		return base_fail(err, BASE_ERR_USAGE, "%s: stream %u has records", w->path, stream);
	/* The chunk goes out as a buffer of one record would. */
	first_ns = first_ns < b->state.last_ns ? b->state.last_ns : first_ns;
	last_ns = last_ns < first_ns ? first_ns : last_ns;
	struct stream_buf saved = *b;
	b->bytes = (uint8_t *)(uintptr_t)bytes;
	b->used = (uint32_t)size_bytes;
	b->nr_records = 1;
	b->first_ns = first_ns;
	b->state.last_ns = last_ns;
	status = flush_content(w, stream, content, err);
	b = &w->stream[stream];
	*b = saved;
	b->state.last_ns = last_ns;
	return status;
}

enum base_status trace_writer_flush(struct trace_writer *w, struct base_err *err)
{
	if (w->status != BASE_OK)
		return writer_stuck(w, err);
	/* Quiet since the last time: most likely of a thread that has ended. */
	for (size_t i = 0; i < w->nr_before; i++)
		if (!w->stream[w->before[i]].is_listed)
			writer_free_buffer(w, &w->stream[w->before[i]]);
	enum base_status status = flush_all(w, err);
	for (size_t i = 0; i < w->nr_fresh; i++)
		w->stream[w->fresh[i]].is_listed = false;
	uint32_t *before = w->before;
	size_t before_capacity = w->before_capacity;
	w->before = w->fresh;
	w->before_capacity = w->fresh_capacity;
	w->nr_before = w->nr_fresh;
	w->fresh = before;
	w->fresh_capacity = before_capacity;
	w->nr_fresh = 0;
	return status;
}

void trace_writer_count(struct trace_writer *w, enum trace_diag d, uint64_t n)
{
	BASE_ASSERT((unsigned)d < TRACE_DIAG_NR);
	w->count[d] += n;
}

uint64_t trace_writer_bytes(const struct trace_writer *w)
{
	return w->file_bytes;
}

uint64_t trace_writer_records(const struct trace_writer *w)
{
	return w->nr_records;
}

static void free_writer(struct trace_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	free_buffers(w);
	base_free(w->stream);
	base_free(w->fresh);
	base_free(w->before);
	base_free(w->index);
	base_free(w->out);
	base_free(w->path);
	ZSTD_freeCCtx(w->zstd);
	trace_splitter_free(w->splitter);
	base_free(w);
}

void trace_writer_set_plain(struct trace_writer *w)
{
	w->plain = true;
}

enum base_status trace_writer_open(const char *path, const struct trace_info *info,
	struct trace_writer **ret, struct base_err *err)
{
	struct base_str header = {0};
	enum base_status status;

	*ret = NULL;
	if (!strcmp(path, "-"))
		return base_fail(err, BASE_ERR_USAGE,
			"a trace is no stream of bytes: it needs a file with a name ('./-' is "
			"one)");
	struct trace_writer *w = base_alloc(sizeof *w);
	if (!w)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to write %s", path);
	w->fd = -1;
	w->zstd = ZSTD_createCCtx();
	w->path_bytes = strlen(path) + 1;
	w->path = base_alloc(w->path_bytes);
	if (!w->zstd || !w->path) {
		status = base_fail(err, BASE_ERR_NOMEM, "no memory to write %s", path);
		goto done;
	}
	memcpy(w->path, path, w->path_bytes);
	for (size_t i = 0; i < BASE_COUNT(zstd_of_records); i++)
		(void)ZSTD_CCtx_setParameter(
			w->zstd, zstd_of_records[i].parameter, zstd_of_records[i].value);
	status = trace_header_encode(&header, info, err);
	if (status == BASE_OK)
		status = add_stream(w, 0, err);
	if (status != BASE_OK)
		goto done;
	struct base_err refused = {0};
	w->fd = base_output_open(path, BASE_OUTPUT_PRIVATE, &refused);
	if (w->fd < 0) {
		status = refused.status;
		if (err)
			*err = refused;
		goto done;
	}
	status = write_bytes(w, header.buf, header.length, err);
	if (status == BASE_OK) {
		*ret = w;
		w = NULL;
	}
done:
	base_str_fini(&header);
	if (w)
		free_writer(w);
	return status;
}

static enum base_status write_footer(struct trace_writer *w, struct base_err *err)
{
	struct base_str footer = {0};
	enum base_status status;

	trace_footer_encode(&footer, w->file_bytes, w->index, w->nr_index, w->count);
	status = footer.failed ? writer_no_memory(w, err)
			       : write_bytes(w, footer.buf, footer.length, err);
	base_str_fini(&footer);
	return status;
}

enum base_status trace_writer_close(struct trace_writer *w, struct base_err *err)
{
	enum base_status status = w->status != BASE_OK ? writer_stuck(w, err) : flush_all(w, err);

	if (status == BASE_OK) {
		status = write_footer(w, err);
	} else {
		/* The index may still find room, and it says that the disk was full. The first
		 * error counts. */
		enum base_status ignored = write_footer(w, NULL);
		(void)ignored;
	}
	if (close(w->fd) && status == BASE_OK)
		status = base_fail_errno(err, errno, "%s: closing", w->path);
	w->fd = -1;
	free_writer(w);
	return status;
}
