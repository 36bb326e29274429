/* SPDX-License-Identifier: Apache-2.0 */
/* kinds.c - the tables made from records.def and diag.def. */
#include "trace/trace.h"

#define FIELD_DESC(kind_, type_, name_, unit_, doc_)                                               \
	{                                                                                          \
		.name = #name_,                                                                    \
		.unit = unit_,                                                                     \
		.doc = doc_,                                                                       \
		.type = TRACE_FIELD_##type_,                                                       \
		.offset = offsetof(struct trace_record, u.kind_.name_),                            \
	},
#define REC(kind_, since_, FIELDS, doc_)                                                           \
	static const struct trace_field_desc kind_##_fields[] = {FIELDS(FIELD_DESC, kind_)};
#include "trace/records.def"

static const struct trace_kind_desc table[] = {
#define REC(kind_, since_, FIELDS, doc_)                                                           \
	{                                                                                          \
		.kind = TRACE_##kind_,                                                             \
		.since = (since_),                                                                 \
		.name = #kind_,                                                                    \
		.doc = doc_,                                                                       \
		.field = kind_##_fields,                                                           \
		.nr_fields = BASE_COUNT(kind_##_fields),                                           \
	},
#include "trace/records.def"
};

/* A kind's place in the table. */
enum {
#define REC(kind_, since_, FIELDS, doc_) AT_##kind_,
#include "trace/records.def"
};

const struct trace_kind_desc *trace_kind_find(unsigned kind)
{
	switch (kind) { /* an id given twice does not compile */
#define REC(kind_, since_, FIELDS, doc_)                                                           \
	case TRACE_##kind_:                                                                        \
		return &table[AT_##kind_];
#include "trace/records.def"
	default:
		return NULL;
	}
}

const struct trace_kind_desc *trace_kind_table(unsigned *ret_nr)
{
	*ret_nr = BASE_COUNT(table);
	return table;
}

const char *trace_cost_of_kind(unsigned kind)
{
	static const struct {
		unsigned first, last;
		const char *cost;
	} range[] = {{TRACE_process_begin, TRACE_BEFORE_48, TRACE_COST_RECORDS},
		{TRACE_lock_wait, TRACE_BEFORE_56, TRACE_COST_LOCKS},
		{TRACE_cond_wait, TRACE_token_take, TRACE_COST_RECORDS},
		{TRACE_io_begin, TRACE_BEFORE_88, TRACE_COST_CALLS},
		{TRACE_note_begin, TRACE_BEFORE_104, TRACE_COST_RECORDS},
		{TRACE_mpi_comm, TRACE_BEFORE_128, TRACE_COST_RECORDS},
		{TRACE_lock_call, TRACE_lock_return, TRACE_COST_LOCKS}};
	for (size_t i = 0; i < BASE_COUNT(range); i++)
		if (kind >= range[i].first && kind <= range[i].last)
			return range[i].cost;
	return NULL;
}

const struct trace_diag_desc *trace_diag_describe(enum trace_diag d)
{
	static const struct trace_diag_desc rows[] = {
#define DIAG(name_, severity_, extent_, source_, sentence_)                                        \
	{                                                                                          \
		.name = #name_,                                                                    \
		.source = source_,                                                                 \
		.sentence = sentence_,                                                             \
		.severity = TRACE_SEVERITY_##severity_,                                            \
		.extent = TRACE_EXTENT_##extent_,                                                  \
	},
#include "trace/diag.def"
	};

	BASE_ASSERT((unsigned)d < BASE_COUNT(rows));
	return &rows[d];
}
