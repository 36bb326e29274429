/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - header, chunk headers and footer, to bytes and from bytes that nobody vouches for. */
#include "trace/layout.h"

#include <inttypes.h>
#include <xxhash.h>

/* ---- a bounds-checked walk over bytes -------------------------------------------------------- */

struct span {
	const uint8_t *p, *end; /* p is NULL after a read that did not fit */
};

static const uint8_t *layout_take(struct span *s, uint64_t nr)
{
	const uint8_t *p = s->p;

	if (!p || nr > (uint64_t)(s->end - p)) {
		s->p = NULL;
		return NULL;
	}
	s->p += nr;
	return p;
}

static uint64_t take_uvarint(struct span *s)
{
	uint64_t v = 0;

	if (s->p)
		s->p = base_get_uvarint(s->p, s->end, &v);
	return v;
}

static uint8_t take_u8(struct span *s)
{
	const uint8_t *p = layout_take(s, 1);

	return p ? *p : 0;
}

static uint32_t layout_take_u32(struct span *s)
{
	const uint8_t *p = layout_take(s, 4);

	return p ? trace_get_u32(p) : 0;
}

static uint64_t take_u64(struct span *s)
{
	const uint8_t *p = layout_take(s, 8);

	return p ? trace_get_u64(p) : 0;
}

/* A length in one byte, then the text. */
static const uint8_t *take_short_text(struct span *s, size_t *ret_length)
{
	*ret_length = take_u8(s);
	return layout_take(s, *ret_length);
}

static void add_u32(struct base_str *out, uint32_t v)
{
	uint8_t b[4];

	trace_put_u32(b, v);
	base_str_add_bytes(out, b, sizeof b);
}

static void layout_add_u64(struct base_str *out, uint64_t v)
{
	uint8_t b[8];

	trace_put_u64(b, v);
	base_str_add_bytes(out, b, sizeof b);
}

static void add_uvarint(struct base_str *out, uint64_t v)
{
	uint8_t b[BASE_VARINT_MAX];

	base_str_add_bytes(out, b, (size_t)(base_put_uvarint(b, v) - b));
}

static void add_u8(struct base_str *out, uint8_t v)
{
	base_str_add_bytes(out, &v, 1);
}

static void add_short_text(struct base_str *out, const char *text)
{
	size_t length = strlen(text);

	BASE_ASSERT(length <= UINT8_MAX);
	add_u8(out, (uint8_t)length);
	base_str_add_bytes(out, text, length);
}

/* ---- header: the schema block ---------------------------------------------------------------- */

static void add_schema(struct base_str *out)
{
	unsigned nr_kinds;
	const struct trace_kind_desc *k = trace_kind_table(&nr_kinds);

	add_uvarint(out, nr_kinds);
	for (unsigned i = 0; i < nr_kinds; i++, k++) {
		add_uvarint(out, k->kind);
		add_short_text(out, k->name);
		add_uvarint(out, k->nr_fields);
		for (unsigned f = 0; f < k->nr_fields; f++) {
			add_u8(out, (uint8_t)k->field[f].type);
			add_short_text(out, k->field[f].name);
			add_short_text(out, k->field[f].unit);
		}
	}
}

static bool same_fields(const struct trace_schema_kind *theirs, const struct trace_kind_desc *ours)
{
	if (theirs->nr_fields != ours->nr_fields)
		return false;
	for (unsigned i = 0; i < ours->nr_fields; i++) {
		if (theirs->type[i] != (uint8_t)ours->field[i].type)
			return false;
	}
	return true;
}

static void take_schema_kind(
	struct span *s, struct trace_schema_kind *ret, const uint8_t **name, size_t *name_length)
{
	size_t length;
	uint64_t kind = take_uvarint(s);

	*ret = (struct trace_schema_kind){.kind = (uint32_t)kind};
	*name = take_short_text(s, name_length);
	uint64_t nr_fields = take_uvarint(s);
	if (kind == 0 || kind >= TRACE_KINDS_MAX || nr_fields > TRACE_FIELDS_MAX)
		s->p = NULL;
	for (uint64_t i = 0; s->p && i < nr_fields; i++) {
		ret->type[i] = take_u8(s);
		take_short_text(s, &length); /* the field's name: nothing to do with it */
		take_short_text(s, &length); /* its unit */
		if (ret->type[i] > TRACE_FIELD_TEXT)
			s->p = NULL;
	}
	ret->nr_fields = (uint32_t)nr_fields;
}

static enum base_status decode_schema(
	struct span *s, struct base_arena *arena, struct trace_schema *ret, struct base_err *err)
{
	uint64_t nr_kinds = take_uvarint(s);
	uint32_t last_kind = 0;

	*ret = (struct trace_schema){0};
	/* Each takes three bytes at least, so the count cannot ask for more memory than the file
	 * has. */
	if (!s->p || nr_kinds > TRACE_KINDS_MAX || nr_kinds > (uint64_t)(s->end - s->p) / 3)
		return base_fail(err, BASE_ERR_CORRUPT, "the schema block is damaged");
	for (uint64_t i = 0; i < nr_kinds; i++) {
		struct trace_schema_kind k;
		const uint8_t *name;
		size_t name_length;

		take_schema_kind(s, &k, &name, &name_length);
		if (!s->p || k.kind <= last_kind)
			return base_fail(err, BASE_ERR_CORRUPT,
				"the schema block is damaged at its row %" PRIu64, i);
		last_kind = k.kind;
		const struct trace_kind_desc *ours = trace_kind_find(k.kind);
		if (ours && !same_fields(&k, ours))
			return base_fail(err, BASE_ERR_CORRUPT,
				"record kind %u (%s) has other fields in this file than in "
				"longpole",
				k.kind, ours->name);
		if (ours)
			continue;
		if (!ret->kind)
			ret->kind =
				base_arena_alloc(arena, (size_t)(nr_kinds - i) * sizeof *ret->kind);
		k.name = base_arena_strndup(arena, (const char *)name, name_length);
		if (!ret->kind || !k.name)
			return base_fail(err, BASE_ERR_NOMEM, "no memory for the schema");
		ret->kind[ret->nr_kinds++] = k;
	}
	if (s->p != s->end)
		return base_fail(err, BASE_ERR_CORRUPT, "the schema block is too long");
	return BASE_OK;
}

const struct trace_schema_kind *trace_schema_find(const struct trace_schema *s, uint64_t kind)
{
	size_t at = BASE_PARTITION(i, s->nr_kinds, s->kind[i].kind < kind);

	return at < s->nr_kinds && s->kind[at].kind == kind ? &s->kind[at] : NULL;
}

/* ---- header ---------------------------------------------------------------------------------- */

enum base_status trace_header_encode(
	struct base_str *out, const struct trace_info *info, struct base_err *err)
{
	const char *text[] = {info->host, info->command, info->tool};
	uint32_t length[BASE_COUNT(text)];
	size_t start = out->length;

	for (size_t i = 0; i < BASE_COUNT(text); i++) {
		size_t n = text[i] ? strlen(text[i]) : 0;
		if (n > TRACE_HEADER_TEXT_MAX)
			return base_fail(err, BASE_ERR_LIMIT,
				"a text of %zu {byte|bytes} for the header (limit %d)", n,
				(int)TRACE_HEADER_TEXT_MAX);
		length[i] = (uint32_t)n;
	}
	base_str_add_bytes(out, TRACE_MAGIC, 8);
	add_u32(out, TRACE_VERSION);
	add_u32(out, 0); /* header_bytes, below */
	add_u32(out, info->flags);
	add_u32(out, info->nr_processors);
	layout_add_u64(out, info->origin_mono_ns);
	layout_add_u64(out, info->origin_unix_ns);
	layout_add_u64(out, info->tick_hz);
	for (size_t i = 0; i < BASE_COUNT(text); i++)
		add_u32(out, length[i]);
	size_t at_schema_bytes = out->length;
	add_u32(out, 0);
	for (size_t i = 0; i < BASE_COUNT(text); i++)
		base_str_add_bytes(out, text[i], length[i]);
	size_t at_schema = out->length;
	add_schema(out);
	size_t schema_bytes = out->length - at_schema;
	layout_add_u64(out, 0);
	if (out->failed)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the header");

	uint8_t *p = (uint8_t *)out->buf;
	size_t header_bytes = out->length - start;
	trace_put_u32(p + at_schema_bytes, (uint32_t)schema_bytes);
	trace_put_u32(p + start + 12, (uint32_t)header_bytes);
	trace_put_u64(p + out->length - 8, XXH64(p + start, header_bytes - 8, 0));
	return BASE_OK;
}

enum base_status trace_header_probe(
	const uint8_t *bytes, size_t nr, uint32_t *ret_header_bytes, struct base_err *err)
{
	if (nr < 8 || memcmp(bytes, TRACE_MAGIC, 8) != 0) {
		if (nr > 0 && nr < 8 && !memcmp(bytes, TRACE_MAGIC, nr))
			return base_fail(
				err, BASE_ERR_TRUNCATED, "the file has only %zu {byte|bytes}", nr);
		return base_fail(err, BASE_ERR_FORMAT,
			nr ? "the file does not begin with \"" TRACE_MAGIC "\""
			   : "the file is empty");
	}
	if (nr < 16)
		return base_fail(err, BASE_ERR_TRUNCATED, "the file has only %zu {byte|bytes}", nr);
	uint32_t version = trace_get_u32(bytes + 8), header_bytes = trace_get_u32(bytes + 12);
	if (version > TRACE_VERSION)
		return base_fail(err, BASE_ERR_VERSION,
			"the file has format version %u, this longpole reads up to version %d",
			version, (int)TRACE_VERSION);
	if (version == 0 || header_bytes < TRACE_HEADER_FIXED_BYTES + 8 ||
		header_bytes > TRACE_HEADER_MAX_BYTES)
		return base_fail(err, BASE_ERR_CORRUPT,
			"byte 8: the header gives version %u, %u {byte|bytes}", version,
			header_bytes);
	*ret_header_bytes = header_bytes;
	return BASE_OK;
}

enum base_status trace_header_decode(const uint8_t *bytes, size_t nr, struct base_arena *arena,
	struct trace_info *ret_info, struct trace_schema *ret_schema, struct base_err *err)
{
	const char **text[] = {&ret_info->host, &ret_info->command, &ret_info->tool};
	uint32_t length[BASE_COUNT(text)];
	struct span s = {.p = bytes + 16, .end = bytes + nr - 8};

	if (XXH64(bytes, nr - 8, 0) != trace_get_u64(bytes + nr - 8))
		return base_fail(err, BASE_ERR_CORRUPT,
			"bytes 0 to %zu: the header's checksum is wrong", nr);
	*ret_info = (struct trace_info){.size = sizeof *ret_info};
	ret_info->flags = layout_take_u32(&s);
	ret_info->nr_processors = layout_take_u32(&s);
	ret_info->origin_mono_ns = take_u64(&s);
	ret_info->origin_unix_ns = take_u64(&s);
	ret_info->tick_hz = take_u64(&s);
	for (size_t i = 0; i < BASE_COUNT(text); i++)
		length[i] = layout_take_u32(&s);
	uint32_t schema_bytes = layout_take_u32(&s);
	for (size_t i = 0; i < BASE_COUNT(text); i++) {
		const uint8_t *p = layout_take(&s, length[i]);
		if (!p || memchr(p, '\0', length[i]))
			return base_fail(err, BASE_ERR_CORRUPT, "byte 48: a text of the header");
		*text[i] = base_arena_strndup(arena, (const char *)p, length[i]);
		if (!*text[i])
			return base_fail(err, BASE_ERR_NOMEM, "no memory for the header");
	}
	if (schema_bytes != (uint64_t)(s.end - s.p))
		return base_fail(err, BASE_ERR_CORRUPT, "byte 60: the schema block's length");
	return decode_schema(&s, arena, ret_schema, err);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

void trace_chunk_header_encode(
	uint8_t out[TRACE_CHUNK_HEADER_BYTES], const struct trace_chunk_header *h)
{
	trace_put_u32(out, TRACE_CHUNK_MAGIC);
	trace_put_u32(out + 4, h->stream);
	trace_put_u32(out + 8, h->nr_records);
	trace_put_u32(out + 12, (uint32_t)h->codec | h->content << TRACE_CONTENT_SHIFT);
	trace_put_u64(out + 16, h->first_ns);
	trace_put_u64(out + 24, h->last_ns);
	trace_put_u32(out + 32, h->raw_bytes);
	trace_put_u32(out + 36, h->stored_bytes);
	trace_put_u64(out + 40, h->payload_hash);
	trace_put_u64(out + 48, XXH64(out, 48, 0));
}

bool trace_chunk_header_decode(
	const uint8_t in[TRACE_CHUNK_HEADER_BYTES], struct trace_chunk_header *ret)
{
	if (trace_get_u32(in) != TRACE_CHUNK_MAGIC || trace_get_u64(in + 48) != XXH64(in, 48, 0))
		return false;
	uint32_t number = trace_get_u32(in + 12), codec = number & (TRACE_CODEC_NR - 1);
	*ret = (struct trace_chunk_header){
		.stream = trace_get_u32(in + 4),
		.nr_records = trace_get_u32(in + 8),
		.codec = codec ? TRACE_CODEC_ZSTD : TRACE_CODEC_RAW,
		.content = number >> TRACE_CONTENT_SHIFT,
		.first_ns = trace_get_u64(in + 16),
		.last_ns = trace_get_u64(in + 24),
		.raw_bytes = trace_get_u32(in + 32),
		.stored_bytes = trace_get_u32(in + 36),
		.payload_hash = trace_get_u64(in + 40),
	};
	uint32_t raw_max = ret->content == TRACE_CONTENT_COLUMNS ? (uint32_t)TRACE_COLUMNS_RAW_MAX
			   : ret->content                        ? (uint32_t)TRACE_CONTENT_RAW_MAX
			   : ret->stream                         ? (uint32_t)TRACE_CHUNK_RAW_MAX
					 : (uint32_t)TRACE_DEFS_CHUNK_RAW_MAX;
	bool stored_fits = codec == TRACE_CODEC_RAW ? ret->stored_bytes == ret->raw_bytes
						    : ret->stored_bytes < ret->raw_bytes;
	return ret->content <= TRACE_CONTENT_MAX && ret->stream < TRACE_STREAM_MAX &&
	       ret->first_ns <= ret->last_ns && ret->raw_bytes > 0 && ret->raw_bytes <= raw_max &&
	       stored_fits && ret->stored_bytes > 0 && ret->nr_records > 0 &&
	       ret->nr_records <= ret->raw_bytes &&
	       (ret->stream || (ret->last_ns == 0 && !ret->content));
}

/* ---- footer ---------------------------------------------------------------------------------- */

uint64_t trace_footer_hash(const uint8_t *bytes, size_t nr, uint64_t offset)
{
	return XXH64(bytes, nr, offset);
}

uint64_t trace_tail_hash(const uint8_t in[TRACE_TAIL_BYTES])
{
	return trace_get_u64(in + 16);
}

void trace_footer_encode(struct base_str *out, uint64_t file_offset,
	const struct trace_index_entry *entry, size_t nr_entries,
	const uint64_t count[TRACE_DIAG_NR])
{
	uint32_t nr_counters = 0;

	add_u32(out, TRACE_INDEX_MAGIC);
	for (int d = 0; d < TRACE_DIAG_NR; d++)
		nr_counters += count[d] != 0;
	add_u32(out, nr_counters);
	layout_add_u64(out, nr_entries);
	for (size_t i = 0; i < nr_entries; i++) {
		uint8_t b[TRACE_INDEX_ENTRY_BYTES];

		trace_put_u64(b, entry[i].offset);
		trace_put_u64(b + 8, entry[i].first_ns);
		trace_put_u64(b + 16, entry[i].last_ns);
		trace_put_u32(b + 24, entry[i].stream);
		trace_put_u32(b + 28, entry[i].nr_records);
		base_str_add_bytes(out, b, sizeof b);
	}
	for (int d = 0; d < TRACE_DIAG_NR; d++) {
		if (!count[d])
			continue;
		add_short_text(out, trace_diag_describe((enum trace_diag)d)->name);
		layout_add_u64(out, count[d]);
	}
	if (out->failed)
		return;
	size_t nr = out->length;
	uint64_t hash = trace_footer_hash((const uint8_t *)out->buf, nr, file_offset);
	layout_add_u64(out, file_offset);
	layout_add_u64(out, nr);
	layout_add_u64(out, hash);
	base_str_add_bytes(out, TRACE_TAIL_MAGIC, 8);
}

bool trace_tail_decode(const uint8_t in[TRACE_TAIL_BYTES], uint64_t file_bytes,
	uint64_t *ret_offset, uint64_t *ret_bytes)
{
	*ret_offset = trace_get_u64(in);
	*ret_bytes = trace_get_u64(in + 8);
	return !memcmp(in + 24, TRACE_TAIL_MAGIC, 8) && *ret_offset <= file_bytes &&
	       *ret_bytes >= TRACE_INDEX_FIXED_BYTES && *ret_bytes <= file_bytes &&
	       *ret_offset + *ret_bytes + TRACE_TAIL_BYTES == file_bytes;
}

static void take_counter(struct span *s, uint64_t count[TRACE_DIAG_NR])
{
	size_t length;
	const uint8_t *name = take_short_text(s, &length);
	uint64_t value = take_u64(s);

	if (!s->p)
		return;
	for (int d = 0; d < TRACE_DIAG_NR; d++) {
		const char *ours = trace_diag_describe((enum trace_diag)d)->name;
		if (strlen(ours) == length && !memcmp(ours, name, length))
			count[d] += value;
	}
}

bool trace_footer_decode(const uint8_t *bytes, size_t nr, uint64_t offset,
	struct trace_index_entry **ret_entry, size_t *ret_nr_entries, uint64_t count[TRACE_DIAG_NR],
	enum base_status *ret_status)
{
	struct span s = {.p = bytes, .end = bytes + nr};
	uint64_t least_offset = 0;

	*ret_status = BASE_OK;
	*ret_entry = NULL;
	uint32_t magic = layout_take_u32(&s), nr_counters = layout_take_u32(&s);
	uint64_t nr_entries = take_u64(&s);
	if (!s.p || magic != TRACE_INDEX_MAGIC || nr_counters > TRACE_COUNTERS_MAX ||
		nr_entries > (uint64_t)(s.end - s.p) / TRACE_INDEX_ENTRY_BYTES)
		return false;
	struct trace_index_entry *entry = base_alloc((size_t)nr_entries * sizeof *entry);
	if (!entry) {
		*ret_status = BASE_ERR_NOMEM;
		return false;
	}
	for (uint64_t i = 0; i < nr_entries; i++) {
		entry[i].offset = take_u64(&s);
		entry[i].first_ns = take_u64(&s);
		entry[i].last_ns = take_u64(&s);
		entry[i].stream = layout_take_u32(&s);
		entry[i].nr_records = layout_take_u32(&s);
		/* In file order and before the footer; more is checked when the chunk is read. */
		if (entry[i].offset < least_offset || entry[i].offset >= offset ||
			offset - entry[i].offset <= TRACE_CHUNK_HEADER_BYTES ||
			entry[i].stream >= TRACE_STREAM_MAX ||
			entry[i].first_ns > entry[i].last_ns || !entry[i].nr_records) {
			base_free(entry);
			return false;
		}
		least_offset = entry[i].offset + TRACE_CHUNK_HEADER_BYTES + 1;
	}
	uint64_t sums[TRACE_DIAG_NR] = {0};
	for (uint32_t i = 0; s.p && i < nr_counters; i++)
		take_counter(&s, sums);
	if (s.p != s.end) {
		base_free(entry);
		return false;
	}
	for (int d = 0; d < TRACE_DIAG_NR; d++)
		count[d] += sums[d];
	*ret_entry = entry;
	*ret_nr_entries = (size_t)nr_entries;
	return true;
}
