/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.c - records to columns, and records out of columns.
 *
 * Nothing is bounds-checked while records are taken out: trace_columns_open() has counted that each
 * column holds as many varints as there are records of its kind, and each record taken is counted
 * down from that number.
 */
#include "trace/columns.h"
#include "trace/reader.h"

/* What is known of a kind. */
static const struct kind_columns {
	uint16_t first; /* enum trace_column: of its times */
	uint8_t nr;     /* times and fields; 0: no such kind, or a definition */
} kind_columns[TRACE_KINDS_MAX] = {
#define FIELD_ONE(kind_, type_, name_, unit_, doc_) +1
#define REC(kind_, since_, FIELDS, doc_)                                                           \
	[TRACE_##kind_] = {.first = TRACE_COLUMN_##kind_,                                          \
		.nr = (int)TRACE_##kind_ < (int)TRACE_FIRST_DATA_KIND                              \
			      ? 0                                                                  \
			      : 1 FIELDS(FIELD_ONE, kind_)},
#include "trace/records.def"
};

/* All kinds that there are fit into a chunk. */
enum {
#define REC(kind_, since_, FIELDS, doc_) NUMBER_##kind_,
#include "trace/records.def"
	NR_KINDS
};
_Static_assert((int)NR_KINDS <= (int)TRACE_COLUMNS_KINDS_MAX, "a kind's number is a byte");

/* ---- writing --------------------------------------------------------------------------------- */

enum {
	/* No column is longer than the records. */
	COLUMN_BYTES = TRACE_CHUNK_RAW_MAX,
	HEAD_BYTES = 4 + NR_KINDS * (2 + TRACE_KIND_FIELDS_MAX + 1) * 4,
	PARTS_MAX = 2 + TRACE_COLUMNS_NR,
};

struct trace_splitter {
	uint8_t *number, *column[TRACE_COLUMNS_NR]; /* COLUMN_BYTES each, when first needed */
	uint8_t *end[TRACE_COLUMNS_NR];
	uint8_t number_of[TRACE_KINDS_MAX]; /* in this chunk, from 1; 0: not seen yet */
	uint16_t kind[NR_KINDS];            /* those that were */
	uint32_t nr_records[NR_KINDS];
	unsigned nr_kinds;
	uint8_t head[HEAD_BYTES];
	struct trace_column_part part[PARTS_MAX];
};

struct trace_splitter *trace_splitter_new(void)
{
	struct trace_splitter *s = base_alloc(sizeof *s);

	if (s)
		s->number = base_alloc(COLUMN_BYTES);
	if (s && !s->number) {
		base_free(s);
		return NULL;
	}
	return s;
}

void trace_splitter_free(struct trace_splitter *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < TRACE_COLUMNS_NR; i++)
		base_free(s->column[i]);
	base_free(s->number);
	base_free(s);
}

/* A kind's first record in this chunk. false: no memory. */
static __attribute__((noinline)) bool columns_add_kind(struct trace_splitter *s, unsigned kind)
{
	const struct kind_columns *k = &kind_columns[kind];

	BASE_ASSERT(k->nr);
	for (unsigned i = k->first; i < (unsigned)k->first + k->nr; i++) {
		if (!s->column[i])
			s->column[i] = base_alloc(COLUMN_BYTES);
		if (!s->column[i])
			return false;
		s->end[i] = s->column[i];
	}
	s->kind[s->nr_kinds] = (uint16_t)kind;
	s->nr_records[s->nr_kinds] = 0;
	s->number_of[kind] = (uint8_t)++s->nr_kinds;
	return true;
}

/* A varint to a column's end. */
static TRACE_INLINE const uint8_t *columns_move(const uint8_t *p, uint8_t **to)
{
	uint8_t *q = *to, byte = *p++;

	*q++ = byte;
	while (BASE_UNLIKELY(byte & 0x80))
		byte = *q++ = *p++;
	*to = q;
	return p;
}

/* The records' varints to the columns' ends; returns how many records, 0: no memory. */
static size_t columns_scatter(struct trace_splitter *s, const uint8_t *p, const uint8_t *end)
{
	uint8_t *number = s->number;

	while (p < end) {
		unsigned kind = *p++;
		if (BASE_UNLIKELY(kind & 0x80))
			kind = (kind & 0x7f) | (unsigned)*p++ << 7;
		if (BASE_UNLIKELY(!s->number_of[kind]) && !columns_add_kind(s, kind))
			return 0;
		uint8_t n = (uint8_t)(s->number_of[kind] - 1);
		*number++ = n;
		s->nr_records[n]++;
		uint8_t **to = s->end + kind_columns[kind].first;
		switch (kind_columns[kind].nr) {
		case 3: /* of locks */
			p = columns_move(p, to++);
			p = columns_move(p, to++);
			p = columns_move(p, to++);
			break;
		default:
			for (unsigned left = kind_columns[kind].nr; left; left--)
				p = columns_move(p, to++);
		}
	}
	return (size_t)(number - s->number);
}

size_t trace_columns_split(struct trace_splitter *s, const uint8_t *rows, size_t nr_bytes,
	const struct trace_column_part **ret)
{
	BASE_ASSERT(nr_bytes <= COLUMN_BYTES);
	for (unsigned i = 0; i < s->nr_kinds; i++)
		s->number_of[s->kind[i]] = 0;
	s->nr_kinds = 0;
	size_t nr_records = columns_scatter(s, rows, rows + nr_bytes), nr_parts = 2;
	if (!nr_records)
		return 0;

	uint8_t *head = base_put_uvarint(s->head, s->nr_kinds);
	for (unsigned i = 0; i < s->nr_kinds; i++) {
		const struct kind_columns *k = &kind_columns[s->kind[i]];
		head = base_put_uvarint(head, s->kind[i]);
		head = base_put_uvarint(head, s->nr_records[i]);
		for (unsigned j = k->first; j < (unsigned)k->first + k->nr; j++) {
			size_t nr = (size_t)(s->end[j] - s->column[j]);
			head = base_put_uvarint(head, nr);
			s->part[nr_parts++] = (struct trace_column_part){s->column[j], nr};
		}
	}
	s->part[0] = (struct trace_column_part){s->head, (size_t)(head - s->head)};
	s->part[1] = (struct trace_column_part){s->number, nr_records};
	*ret = s->part;
	return nr_parts;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct trace_columns {
	const uint8_t *at[TRACE_COLUMNS_NR]; /* next value of a field, of kinds that are there */
	unsigned nr_kinds;
	struct {
		const uint8_t *time; /* next one */
		uint32_t nr_left;
		uint16_t kind;
		bool is_known;
	} kind[TRACE_COLUMNS_KINDS_MAX];
};

void trace_columns_free(struct trace_columns *columns)
{
	base_free(columns);
}

/* Does [p, p + nr) consist of exactly that many varints, whatever their values? */
static bool holds(const uint8_t *p, size_t nr, uint64_t nr_values)
{
	const uint64_t ones = 0x0101010101010101;
	uint64_t found = 0;

	if (nr < nr_values || !nr || p[nr - 1] & 0x80)
		return false;
	while (nr >= 8) {
		uint64_t sum = 0; /* of each byte's place */
		size_t nr_words = nr / 8 < 255 ? nr / 8 : 255;
		nr -= nr_words * 8;
		for (; nr_words; nr_words--, p += 8) {
			uint64_t x;
			memcpy(&x, p, sizeof x);
			sum += ~x >> 7 & ones;
		}
		/* in pairs, for eight times 255 do not fit into a byte */
		sum = (sum & 0x00ff00ff00ff00ff) + (sum >> 8 & 0x00ff00ff00ff00ff);
		found += sum * 0x0001000100010001 >> 48;
	}
	for (; nr; nr--)
		found += !(*p++ & 0x80);
	return found == nr_values;
}

/* The next of the head's numbers; below what the chunk has bytes, or else NULL. */
static const uint8_t *columns_get_number(const uint8_t *p, const uint8_t *end, uint32_t *ret)
{
	uint64_t v = 0;

	p = p ? base_get_uvarint(p, end, &v) : NULL;
	*ret = (uint32_t)v;
	return v <= TRACE_CONTENT_RAW_MAX ? p : NULL;
}

/* Number of columns; 0: a kind that nobody knows. */
static unsigned nr_columns(const struct trace_reader *r, uint32_t kind, bool *ret_known)
{
	if (kind < TRACE_FIRST_DATA_KIND || kind >= TRACE_KINDS_MAX)
		return 0;
	*ret_known = kind_columns[kind].nr;
	if (*ret_known)
		return kind_columns[kind].nr;
	const struct trace_schema_kind *theirs = trace_schema_find(&r->schema, kind);
	return theirs ? 1 + theirs->nr_fields : 0;
}

/* The head says how long the columns are: passed over, to find where they begin. NULL: damaged. */
static const uint8_t *skip_head(
	const struct trace_reader *r, const uint8_t *p, const uint8_t *end, uint32_t nr_kinds)
{
	for (uint32_t i = 0; p && i < nr_kinds; i++) {
		uint32_t kind, number;
		bool is_known;
		p = columns_get_number(p, end, &kind);
		unsigned nr = p ? nr_columns(r, kind, &is_known) : 0;
		if (!nr)
			return NULL;
		for (p = columns_get_number(p, end, &number); p && nr; nr--)
			p = columns_get_number(p, end, &number);
	}
	return p;
}

/* One kind: its columns begin at *column. Returns the rest of the head, NULL: damaged. */
static const uint8_t *open_kind(const struct trace_reader *r, struct trace_columns *columns,
	const uint8_t *p, const uint8_t **column, const uint8_t *end)
{
	uint32_t kind, nr_records, nr_bytes;
	bool is_known = false;
	const uint8_t *at = *column;

	p = columns_get_number(p, end, &kind);
	p = columns_get_number(p, end, &nr_records);
	unsigned nr = p ? nr_columns(r, kind, &is_known) : 0;
	for (unsigned i = 0; i < columns->nr_kinds; i++)
		if (columns->kind[i].kind == kind)
			return NULL;
	for (unsigned i = 0; i < nr; i++) {
		p = columns_get_number(p, end, &nr_bytes);
		if (!p || nr_bytes > (uint64_t)(end - at))
			return NULL;
		/* The fields of a kind that we do not know are not looked at. */
		if ((is_known || !i) && !holds(at, nr_bytes, nr_records))
			return NULL;
		if (!i)
			columns->kind[columns->nr_kinds].time = at;
		else if (is_known)
			columns->at[kind_columns[kind].first + i] = at;
		at += nr_bytes;
	}
	*column = at;
	columns->kind[columns->nr_kinds].nr_left = nr_records;
	columns->kind[columns->nr_kinds].kind = (uint16_t)kind;
	columns->kind[columns->nr_kinds++].is_known = is_known;
	return p;
}

enum base_status trace_columns_open(
	const struct trace_reader *r, struct trace_cursor *c, const struct trace_chunk_header *h)
{
	const uint8_t *end = c->end;
	uint32_t nr_kinds;

	if (!c->columns)
		c->columns = base_alloc(sizeof *c->columns);
	if (!c->columns)
		return BASE_ERR_NOMEM;
	c->columns->nr_kinds = 0;
	const uint8_t *p = columns_get_number(c->p, end, &nr_kinds);
	if (!p || nr_kinds > TRACE_COLUMNS_KINDS_MAX)
		return BASE_ERR_CORRUPT;
	const uint8_t *number = skip_head(r, p, end, nr_kinds);
	if (!number || h->nr_records > (uint64_t)(end - number))
		return BASE_ERR_CORRUPT;
	const uint8_t *column = number + h->nr_records;
	for (uint32_t i = 0; p && i < nr_kinds; i++)
		p = open_kind(r, c->columns, p, &column, end);
	/* The first record's time is the chunk's. */
	if (!p || column != end || *number >= nr_kinds || *c->columns->kind[*number].time)
		return BASE_ERR_CORRUPT;
	c->p = number;
	return BASE_OK;
}

/* The fields of a kind that is there. false: damaged. */
static TRACE_INLINE bool take_fields(
	const uint8_t **at, const uint8_t *end, unsigned kind, struct trace_record *ret)
{
	const uint8_t *p;

	switch (kind) {
#define FIELD_TAKE(kind_, type_, name_, unit_, doc_)                                               \
	p = trace_get_padded_##type_(                                                              \
		at[TRACE_COLUMN_##kind_##_##name_], end, &ret->u.kind_.name_);                     \
	if (BASE_UNLIKELY(!p))                                                                     \
		return false;                                                                      \
	at[TRACE_COLUMN_##kind_##_##name_] = p;
#define REC(kind_, since_, FIELDS, doc_)                                                           \
	case TRACE_##kind_:                                                                        \
		FIELDS(FIELD_TAKE, kind_)                                                          \
		return true;
#include "trace/records.def"
#undef FIELD_TAKE
	default:
		return false;
	}
}

uint32_t trace_columns_stage(
	struct trace_reader *r, struct trace_cursor *c, uint32_t room, bool *ret_damaged)
{
	struct trace_columns *columns = c->columns;
	const uint8_t *number = c->p, *const end = c->end;
	const uint64_t last_ns = c->last_ns, from_ns = r->options.from_ns;
	const uint32_t stream = c->stream;
	struct trace_record *const staged = c->staged;
	uint64_t time_ns = c->time_ns;
	uint32_t nr = 0, nr_left = c->nr_left;

	*ret_damaged = true; /* for all ways out but the last */
	while (nr < room && nr_left) {
		struct trace_record *to = &staged[nr];
		uint64_t delta_ns;
		unsigned n = *number++;
		if (BASE_UNLIKELY(n >= columns->nr_kinds || !columns->kind[n].nr_left))
			goto done;
		columns->kind[n].nr_left--;
		unsigned kind = columns->kind[n].kind;
		const uint8_t *p = trace_get_padded_mixed(columns->kind[n].time, &delta_ns);
		if (BASE_UNLIKELY(!p || delta_ns > last_ns - time_ns))
			goto done;
		columns->kind[n].time = p;
		time_ns += delta_ns;
		nr_left--;
		if (BASE_UNLIKELY(!columns->kind[n].is_known)) {
			r->health.count[TRACE_DIAG_kinds_unknown]++;
			continue;
		}
		to->time_ns = time_ns;
		to->stream = stream;
		to->kind = (uint16_t)kind;
		if (BASE_UNLIKELY(!take_fields(columns->at, end, kind, to)))
			goto done;
		nr += time_ns >= from_ns;
	}
	*ret_damaged = !nr_left && time_ns != last_ns;
done:
	c->p = number;
	c->nr_left = nr_left;
	c->time_ns = time_ns;
	return nr;
}
