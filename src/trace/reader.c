/* SPDX-License-Identifier: Apache-2.0 */
/* reader.c - opening: header, index or what can be found without one, the list of streams. */
#include "trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum { FOOTER_MAX_BYTES = 1 << 30, SCAN_BLOCK_BYTES = 64 << 10 };

/* ---- header ---------------------------------------------------------------------------------- */

static enum base_status reader_read_header(
	struct trace_reader *r, uint64_t *ret_header_bytes, struct base_err *err)
{
	const struct trace_source *s = &r->source;
	uint8_t fixed[TRACE_HEADER_FIXED_BYTES];
	size_t nr = s->size_bytes < sizeof fixed ? (size_t)s->size_bytes : sizeof fixed;
	uint32_t header_bytes;

	enum base_status status = trace_source_read(s, 0, fixed, nr, err);
	if (status == BASE_OK)
		status = trace_header_probe(fixed, nr, &header_bytes, err);
	if (status != BASE_OK)
		return status;
	if (header_bytes > s->size_bytes)
		return base_fail(err, BASE_ERR_TRUNCATED,
			"the header has %u {byte|bytes}, the file %" PRIu64, header_bytes,
			s->size_bytes);
	uint8_t *bytes = base_alloc(header_bytes);
	if (!bytes)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the header");
	status = trace_source_read(s, 0, bytes, header_bytes, err);
	if (status == BASE_OK)
		status = trace_header_decode(
			bytes, header_bytes, r->arena, &r->info, &r->schema, err);
	base_free(bytes);
	*ret_header_bytes = header_bytes;
	return status;
}

/* ---- index ----------------------------------------------------------------------------------- */

static enum base_status reader_add_chunk(
	struct trace_reader *r, const struct trace_index_entry *e, struct base_err *err)
{
	if (r->nr_chunks >= TRACE_CHUNKS_MAX)
		return base_fail(err, BASE_ERR_LIMIT, "more than %d chunks", (int)TRACE_CHUNKS_MAX);
	if (base_grow(&r->chunk, &r->chunks_capacity, (size_t)r->nr_chunks + 1, sizeof *r->chunk) !=
		BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the index");
	r->chunk[r->nr_chunks++] = (struct trace_chunk){.entry = *e, .next = TRACE_NO_CHUNK};
	return BASE_OK;
}

/* BASE_END: there is no footer, or a damaged one. */
static enum base_status read_footer(
	struct trace_reader *r, uint64_t header_bytes, struct base_err *err)
{
	const struct trace_source *s = &r->source;
	uint8_t tail[TRACE_TAIL_BYTES], *bytes = NULL;
	struct trace_index_entry *entry = NULL;
	uint64_t offset, nr;
	size_t nr_entries = 0;

	if (s->size_bytes < header_bytes + TRACE_TAIL_BYTES)
		return BASE_END;
	enum base_status status =
		trace_source_read(s, s->size_bytes - TRACE_TAIL_BYTES, tail, sizeof tail, err);
	if (status != BASE_OK)
		return status;
	if (!trace_tail_decode(tail, s->size_bytes, &offset, &nr) || offset < header_bytes ||
		nr > FOOTER_MAX_BYTES)
		return BASE_END;
	bytes = base_alloc((size_t)nr);
	if (!bytes)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the index");
	status = trace_source_read(s, offset, bytes, (size_t)nr, err);
	if (status != BASE_OK)
		goto done;
	if (trace_footer_hash(bytes, (size_t)nr, offset) != trace_tail_hash(tail) ||
		!trace_footer_decode(
			bytes, (size_t)nr, offset, &entry, &nr_entries, r->health.count, &status)) {
		status = status == BASE_OK ? BASE_END
					   : base_fail(err, status, "no memory for the index");
		goto done;
	}
	if (nr_entries && entry[0].offset < header_bytes) {
		status = BASE_END;
		goto done;
	}
	for (size_t i = 0; status == BASE_OK && i < nr_entries; i++)
		status = reader_add_chunk(r, &entry[i], err);
done:
	base_free(entry);
	base_free(bytes);
	return status;
}

/* ---- without an index ------------------------------------------------------------------------ */

/* Is there a whole chunk at offset? *ret_end is where it ends. BASE_END: no. */
static enum base_status chunk_at(const struct trace_source *s, uint64_t offset,
	struct trace_index_entry *ret, uint64_t *ret_end, struct base_err *err)
{
	uint8_t bytes[TRACE_CHUNK_HEADER_BYTES];
	struct trace_chunk_header h;

	if (s->size_bytes - offset < sizeof bytes)
		return BASE_END;
	enum base_status status = trace_source_read(s, offset, bytes, sizeof bytes, err);
	if (status != BASE_OK)
		return status;
	if (!trace_chunk_header_decode(bytes, &h) ||
		h.stored_bytes > s->size_bytes - offset - sizeof bytes)
		return BASE_END;
	*ret = (struct trace_index_entry){
		.offset = offset,
		.first_ns = h.first_ns,
		.last_ns = h.last_ns,
		.stream = h.stream,
		.nr_records = h.nr_records,
	};
	*ret_end = offset + sizeof bytes + h.stored_bytes;
	return BASE_OK;
}

/* The first whole chunk at or after *offset. BASE_END: none. */
static enum base_status reader_find_chunk(const struct trace_source *s, uint64_t *offset,
	uint8_t block[SCAN_BLOCK_BYTES], struct base_err *err)
{
	static const uint8_t magic[4] = {'L', 'P', 'C', 'K'};
	struct trace_index_entry e;
	uint64_t end;

	while (s->size_bytes - *offset >= TRACE_CHUNK_HEADER_BYTES) {
		uint64_t left = s->size_bytes - *offset;
		size_t nr = left < SCAN_BLOCK_BYTES ? (size_t)left : SCAN_BLOCK_BYTES;
		enum base_status status = trace_source_read(s, *offset, block, nr, err);
		if (status != BASE_OK)
			return status;
		const uint8_t *p = block, *block_end = block + nr;
		while ((p = memmem(p, (size_t)(block_end - p), magic, sizeof magic))) {
			uint64_t at = *offset + (uint64_t)(p - block);
			status = chunk_at(s, at, &e, &end, err);
			if (status != BASE_END) {
				*offset = at;
				return status;
			}
			p++;
		}
		if (nr < SCAN_BLOCK_BYTES)
			break;
		*offset += nr - (sizeof magic - 1); /* a magic may lie across the border */
	}
	return BASE_END;
}

/* Nothing more of use after offset: a footer that is damaged, or the beginning of a chunk. */
static enum base_status note_tail(struct trace_reader *r, uint64_t offset, struct base_err *err)
{
	const struct trace_source *s = &r->source;
	uint8_t magic[4];

	if (s->size_bytes - offset >= sizeof magic) {
		enum base_status status = trace_source_read(s, offset, magic, sizeof magic, err);
		if (status != BASE_OK)
			return status;
		if (trace_get_u32(magic) == TRACE_INDEX_MAGIC)
			return BASE_OK;
	}
	r->health.count[TRACE_DIAG_tail_cut] += s->size_bytes - offset;
	return BASE_OK;
}

static enum base_status scan_chunks(
	struct trace_reader *r, uint64_t header_bytes, struct base_err *err)
{
	const struct trace_source *s = &r->source;
	uint8_t *block = NULL;
	uint64_t offset = header_bytes, lost_bytes = 0;
	enum base_status status = BASE_OK;

	r->health.count[TRACE_DIAG_index_rebuilt]++;
	while (status == BASE_OK && offset < s->size_bytes) {
		struct trace_index_entry e;
		uint64_t end;

		status = chunk_at(s, offset, &e, &end, err);
		if (status == BASE_OK) {
			status = reader_add_chunk(r, &e, err);
			offset = end;
			continue;
		}
		if (status != BASE_END)
			break;
		if (!block)
			block = base_alloc(SCAN_BLOCK_BYTES);
		if (!block) {
			status = base_fail(err, BASE_ERR_NOMEM, "no memory to look for chunks");
			break;
		}
		uint64_t found = offset;
		status = reader_find_chunk(s, &found, block, err);
		if (status != BASE_OK)
			break;
		/* However many chunks were there, their number is lost with their headers. */
		r->health.count[TRACE_DIAG_chunks_damaged]++;
		lost_bytes += found - offset;
		offset = found;
	}
	if (status == BASE_END)
		status = note_tail(r, offset, err);
	r->health.readable_bytes = offset - lost_bytes;
	base_free(block);
	return status;
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Gives chunk i to its stream's cursor. Within a stream time must not go back. */
static void link_chunk(struct trace_reader *r, uint32_t i, struct trace_cursor *c)
{
	struct trace_chunk *chunk = &r->chunk[i];

	if (c->chunk != TRACE_NO_CHUNK &&
		chunk->entry.first_ns < r->chunk[c->chunk].entry.last_ns) {
		chunk->damaged = true;
		trace_chunk_damaged(r, i);
		return;
	}
	if (c->chunk == TRACE_NO_CHUNK)
		c->first_chunk = i;
	else
		r->chunk[c->chunk].next = i;
	c->chunk = i;
	if (!chunk->entry.stream)
		return;
	r->nr_records += chunk->entry.nr_records;
	if (chunk->entry.last_ns > r->last_ns)
		r->last_ns = chunk->entry.last_ns;
}

/* One cursor a stream, in the order of the streams' numbers; the first is stream 0's. */
static enum base_status link_chunks(struct trace_reader *r, struct base_err *err)
{
	uint32_t highest = 0;
	enum base_status status = BASE_OK;

	for (uint32_t i = 0; i < r->nr_chunks; i++) {
		if (r->chunk[i].entry.stream > highest)
			highest = r->chunk[i].entry.stream;
	}
	uint32_t *place =
		base_alloc(((size_t)highest + 1) * sizeof *place); /* below TRACE_STREAM_MAX */
	if (!place)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the streams");
	for (uint32_t i = 0; i < r->nr_chunks; i++)
		place[r->chunk[i].entry.stream] = 1;
	place[0] = 1;
	for (uint32_t stream = 0; stream <= highest; stream++) {
		if (!place[stream])
			continue;
		place[stream] = r->nr_cursors;
		if (base_grow(&r->cursor, &r->cursors_capacity, (size_t)r->nr_cursors + 1,
			    sizeof *r->cursor) != BASE_OK) {
			status = base_fail(err, BASE_ERR_NOMEM, "no memory for the streams");
			goto done;
		}
		r->cursor[r->nr_cursors++] = (struct trace_cursor){
			.stream = stream,
			.first_chunk = TRACE_NO_CHUNK,
			.chunk = TRACE_NO_CHUNK,
		};
	}
	for (uint32_t i = 0; i < r->nr_chunks; i++)
		link_chunk(r, i, &r->cursor[place[r->chunk[i].entry.stream]]);
done:
	base_free(place);
	return status;
}

/* ---- interface ------------------------------------------------------------------------------- */

static enum base_status reader_load(struct trace_reader *r, struct base_err *err)
{
	uint64_t header_bytes = 0;
	enum base_status status = reader_read_header(r, &header_bytes, err);

	if (status != BASE_OK)
		return status;
	r->health.file_bytes = r->health.readable_bytes = r->source.size_bytes;
	status = read_footer(r, header_bytes, err);
	if (status == BASE_END)
		status = scan_chunks(r, header_bytes, err);
	if (status == BASE_OK)
		status = link_chunks(r, err);
	if (status == BASE_OK)
		status = trace_defs_load(r, err);
	if (status == BASE_OK)
		status = trace_merge_init(r, err);
	r->health_at_open = r->health_told = r->health;
	r->reads_ahead = trace_ahead_wanted(r);
	return status;
}

static enum base_status reader_open_source(const struct trace_source *source,
	const struct trace_reader_options *opts, struct trace_reader **ret, struct base_err *err)
{
	enum base_status status = BASE_ERR_NOMEM;
	struct trace_reader *r = base_alloc(sizeof *r);

	*ret = NULL;
	if (!r) {
		if (source->fd >= 0)
			close(source->fd);
		return base_fail(err, status, "no memory to read %s", source->name);
	}
	r->source = *source;
	pthread_mutex_init(&r->decoding, NULL);
	if (opts) {
		size_t size = opts->size && opts->size < sizeof r->options ? opts->size
									   : sizeof r->options;
		memcpy(&r->options, opts, size);
	}
	r->arena = base_arena_new(0);
	if (r->arena)
		r->source.name = base_arena_strndup(r->arena, source->name, strlen(source->name));
	if (!r->arena || !r->source.name || trace_defs_init(&r->builder) != BASE_OK) {
		base_fail(err, status, "no memory to read %s", source->name);
		goto done;
	}
	status = reader_load(r, err);
	if (status != BASE_OK)
		base_cause(err, status, "opening %s", source->name);
done:
	if (status != BASE_OK) {
		trace_reader_close(r);
		return status;
	}
	*ret = r;
	return BASE_OK;
}

enum base_status trace_reader_open(const char *path, const struct trace_reader_options *opts,
	struct trace_reader **ret, struct base_err *err)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*ret = NULL;
	if (fd < 0)
		return base_fail_errno(err, errno, "%s: cannot open", path);
	if (fstat(fd, &st)) {
		enum base_status status = base_fail_errno(err, errno, "%s: cannot open", path);
		close(fd);
		return status;
	}
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return base_fail(err, BASE_ERR_FORMAT, "%s: not a regular file", path);
	}
	struct trace_source source = {.fd = fd, .size_bytes = (uint64_t)st.st_size, .name = path};
	return reader_open_source(&source, opts, ret, err);
}

enum base_status trace_reader_open_memory(const void *bytes, size_t size_bytes,
	const struct trace_reader_options *opts, struct trace_reader **ret, struct base_err *err)
{
	struct trace_source source = {
		.fd = -1,
		.memory = bytes,
		.size_bytes = size_bytes,
		.name = "memory",
	};

	return reader_open_source(&source, opts, ret, err);
}

const struct trace_info *trace_reader_info(const struct trace_reader *r)
{
	return &r->info;
}

const struct trace_defs *trace_reader_defs(const struct trace_reader *r)
{
	return &r->builder.defs;
}

const struct trace_health *trace_reader_health(const struct trace_reader *r)
{
	return &r->health_told;
}

uint64_t trace_reader_record_count(const struct trace_reader *r)
{
	return r->nr_records;
}

uint64_t trace_reader_last_ns(const struct trace_reader *r)
{
	return r->last_ns;
}

enum base_status trace_reader_rewind(struct trace_reader *r, struct base_err *err)
{
	(void)err; /* nothing is read before the next record is asked for */
	trace_ahead_stop(r);
	r->health = r->health_told = r->health_at_open;
	trace_merge_start(r);
	return BASE_OK;
}

void trace_reader_close(struct trace_reader *r)
{
	if (!r)
		return;
	trace_ahead_stop(r);
	pthread_mutex_destroy(&r->decoding);
	trace_merge_fini(r);
	trace_buffers_fini(r);
	trace_defs_fini(&r->builder);
	base_free(r->cursor);
	base_free(r->chunk);
	ZSTD_freeDCtx(r->zstd);
	base_arena_free(r->arena);
	if (r->source.fd >= 0)
		close(r->source.fd);
	base_free(r);
}
