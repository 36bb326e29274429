/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column.h - an answer's rows, described once. A table has a row for each thing that is said of a
 * struct: its key in JSON, its head in text, what it means, its unit, and where it lies in the
 * struct. Text, JSON and the page of documents (doc/json.md, as it is built) come from it, so that
 * none of them can lack what another one has.
 *
 * Tables stand in `<answer>.def`, a row on a line:
 *
 *	#define ROW struct report_queue
 *	static const struct base_column queues_queue_columns[] = {
 *		BASE_COLUMN("type", text, type, "what it is"),
 *		BASE_COLUMN("waits", count, nr_waits, "how many", .title = "waits", .width = 9),
 *		BASE_COLUMN_OF("share", share, queues_share, "part of the run"), (see BASE_VALUE)
 *	};
 *	static const struct base_table queues_queue =
 *		BASE_TABLE("queues queue", queues_queue_columns, .head = "queue");
 *	#undef ROW
 */
#ifndef LONGPOLE_BASE_COLUMN_H
#define LONGPOLE_BASE_COLUMN_H

#include "base/base.h"

#include <jansson.h>
#include <stddef.h>

/* X(name, type in JSON, whether it is a real number): how a value is written. */
#define BASE_UNITS(X)                                                                              \
	X(count, "int", false)      /* 1,234 */                                                    \
	X(number, "int", false)     /* 1234: an id */                                              \
	X(ns, "int", false)         /* 1.23 ms */                                                  \
	X(bytes, "int", false)      /* 1.2 MiB */                                                  \
	X(share, "real", true)      /* 62 %; 0 to 1 in JSON */                                     \
	X(factor, "real", true)     /* 1.25x */                                                    \
	X(real, "real", true)       /* 0.113 */                                                    \
	X(exact, "real", true)      /* the same, in JSON with all its digits */                    \
	X(text, "string", false)    /* a name, made fit to be shown */                             \
	X(lines, "string", false)   /* any text: JSON escapes what is not shown */                 \
	X(address, "string", false) /* 0x1f: not exact as a number in JSON, beyond 2^53 */         \
	X(flag, "bool", false)      /* yes */                                                      \
	X(json, "any", false)       /* what a function makes of it; .kind says what that is */     \
	X(object, NULL, false)      /* a struct in the row, by .rows */                            \
	X(list, NULL, false)        /* .nr structs behind a pointer, by .rows */                   \
	X(array, NULL, false)       /* .nr structs in the row itself, by .rows */                  \
	X(part, NULL, false)        /* a struct whose columns are the row's own */
enum base_unit {
#define X(name, kind, is_real) BASE_UNIT_##name,
	BASE_UNITS(X)
#undef X
};

/* What a member is, or what the function returns that finds the value. */
enum base_member_type {
	BASE_MEMBER_none,
	BASE_MEMBER_u64,
	BASE_MEMBER_u32,
	BASE_MEMBER_u16,
	BASE_MEMBER_u8,
	BASE_MEMBER_i32,
	BASE_MEMBER_i64,
	BASE_MEMBER_real,
	BASE_MEMBER_bool,
	BASE_MEMBER_text,
	BASE_MEMBER_chars, /* char[] */
	BASE_MEMBER_other, /* a struct, or a pointer to structs */
	BASE_MEMBER_u64_of,
	BASE_MEMBER_real_of,
	BASE_MEMBER_bool_of,
	BASE_MEMBER_text_of,
	BASE_MEMBER_json_of
};
struct base_member {
	unsigned offset;
	enum base_member_type type;
};
/* clang-format off */
#define BASE_MEMBER(row, member)                                                                   \
	{ offsetof(row, member),                                                                   \
		__builtin_types_compatible_p(__typeof__(((row *)0)->member), char *)               \
			? BASE_MEMBER_text : _Generic(((row *)0)->member,                          \
		uint64_t : BASE_MEMBER_u64, unsigned : BASE_MEMBER_u32, int : BASE_MEMBER_i32,     \
		uint16_t : BASE_MEMBER_u16, uint8_t : BASE_MEMBER_u8, int64_t : BASE_MEMBER_i64,   \
		double : BASE_MEMBER_real, bool : BASE_MEMBER_bool,                                \
		const char * : BASE_MEMBER_text, char * : BASE_MEMBER_chars,                       \
		default : BASE_MEMBER_other) }
/* Of `row`, a row of the table; `all` is what the caller gave for the whole answer. */
#define BASE_FUNCTION(fn)                                                                          \
	{ 0, _Generic(fn,                                                                          \
		uint64_t (*)(const void *row, const void *all) : BASE_MEMBER_u64_of,               \
		double (*)(const void *row, const void *all) : BASE_MEMBER_real_of,                \
		bool (*)(const void *row, const void *all) : BASE_MEMBER_bool_of,                  \
		const char *(*)(const void *row, const void *all) : BASE_MEMBER_text_of,           \
		json_t *(*)(const void *row, const void *all) : BASE_MEMBER_json_of) }
/* clang-format on */

/* In JSON, where a value is not known: see struct base_column, `when`. */
enum base_absence {
	BASE_ALWAYS,   /* it is there as it is in the struct */
	BASE_OPTIONAL, /* its key is not there */
	BASE_NULL      /* null */
};
struct base_layout;
struct base_table;
struct base_column {
	const char *key; /* in JSON; NULL: it is in text only */
	const char *doc; /* what it says: of a key, always */
	enum base_unit unit;
	struct base_member at;
	void (*of)(void); /* the function, when at.type is one's */

	/* A value is known where `when` is not 0 and `unless` is (if there are such), a text not
	 * NULL, a number not NAN. In text what is not known is a dash. */
	struct base_member when, unless;
	enum base_absence absence;
	unsigned needs;                /* bits: without them all it is left out everywhere */
	struct base_member per;        /* the value is divided by this, and 0 where this is 0 */
	struct base_member estimated;  /* where this is not 0, text has a "~" before the number */
	struct base_member nr;         /* of a list */
	const struct base_table *rows; /* of an object, list or part */
	bool is_behind;                /* of an object or part: the row has a pointer to it */
	const char *kind; /* of BASE_UNIT_json: "[int]", say; .rows, if any, tells what */

	const char *title;   /* in text; NULL: it is in JSON only; "": the next one's is its, too */
	unsigned char width; /* with the blanks before it; what is wider gets one all the same */
	unsigned char rank;  /* the highest is left out first where lines are narrow; 0: never */
	bool left;           /* two blanks, then the text, which no width cuts */
	void (*cell)(struct base_str *out, const void *row, const struct base_layout *l);
};
/* Of the member or function of a ROW; then any of the fields from `when` on. */
#define BASE_COLUMN(k, u, member, d, ...)                                                          \
	{                                                                                          \
		.key = k, .unit = BASE_UNIT_##u, .at = BASE_MEMBER(ROW, member), .doc = d,         \
		__VA_ARGS__                                                                        \
	}
#define BASE_COLUMN_OF(k, u, fn, d, ...)                                                           \
	{                                                                                          \
		.key = k, .unit = BASE_UNIT_##u, .at = BASE_FUNCTION(fn),                          \
		.of = (void (*)(void))fn, .doc = d, __VA_ARGS__                                    \
	}
/* A function for it, where an expression says all: `row` is a ROW; `all` as above. */
#define BASE_VALUE(type, name, expression)                                                         \
	static type name(const void *row_, const void *all)                                        \
	{                                                                                          \
		const ROW *row = row_;                                                             \
		(void)row, (void)all;                                                              \
		return expression;                                                                 \
	}
#define BASE_AT(member) BASE_MEMBER(ROW, member)
/* An object that is made of the row itself. */
#define BASE_COLUMN_SELF(k, table, d, ...)                                                         \
	{                                                                                          \
		.key = k, .unit = BASE_UNIT_object, .at = {0, BASE_MEMBER_other},                  \
		.rows = &(table), .doc = d, __VA_ARGS__                                            \
	}
/* All that another table says of a struct in the row; of the row itself. */
#define BASE_PART(member, table, ...)                                                              \
	{                                                                                          \
		.unit = BASE_UNIT_part, .at = BASE_MEMBER(ROW, member), .rows = &(table),          \
		__VA_ARGS__                                                                        \
	}
#define BASE_PART_SELF(table, ...)                                                                 \
	{                                                                                          \
		.unit = BASE_UNIT_part, .at = {0, BASE_MEMBER_other}, .rows = &(table),            \
		__VA_ARGS__                                                                        \
	}

struct base_table {
	const char *name; /* its heading in the page; of a document, its schema */
	const char *from; /* of a document: what prints it, as a line of the page; else NULL */
	const struct base_column *column;
	size_t nr_columns, row_size_bytes;
	/* In text a line begins with the first column's, a name, under this head; nr_named have it.
	 */
	const char *head;
	struct base_member nr_named;
};
/* clang-format off */
#define BASE_TABLE(n, columns, ...)                                                                \
	{.name = n, .column = columns, .nr_columns = BASE_COUNT(columns),                          \
		.row_size_bytes = sizeof(ROW), __VA_ARGS__}
#define BASE_DOCUMENT(schema, columns, prints) BASE_TABLE(schema, columns, .from = prints)
/* clang-format on */

/* ---- JSON ------------------------------------------------------------------------------------ */

/* One row as an object, or many as a list; new references, NULL: no memory. */
json_t *base_table_json(const struct base_table *t, const void *row, const void *all, unsigned has);
json_t *base_table_json_list(
	const struct base_table *t, const void *rows, size_t nr, const void *all, unsigned has);

/* ---- text ------------------------------------------------------------------------------------ */

size_t base_text_width(const char *text); /* code points */
void base_str_add_blanks(struct base_str *s, size_t n);
void base_str_add_right(struct base_str *s, const char *text, size_t width);
void base_str_add_share(struct base_str *s, double share); /* "62 %", "6.2 %", "<0.1 %" */

/* Which columns a line has. The name that begins it is its printer's: it is cut and shortened in
 * other ways than numbers are. */
struct base_layout {
	const struct base_table *table;
	const void *all;
	unsigned has;
	unsigned rank_max; /* columns of higher ranks are left out */
	size_t name_width;
	bool utf8;
};
const char *base_row_name(const struct base_table *t, const void *row);
uint64_t base_row_nr_named(const struct base_table *t, const void *row); /* 1: it is one */
uint64_t base_row_integer(const struct base_column *c, const void *row); /* of one column */
/* As many columns as leave the name its width, `longest`, of which more than `wanted` (at most
 * that) may be cut. name_width is at least `least`. */
void base_layout_fit(
	struct base_layout *l, size_t line_width, size_t longest, size_t wanted, size_t least);
size_t base_layout_width(const struct base_layout *l); /* of the columns */
void base_layout_titles(struct base_str *out, const struct base_layout *l);
void base_layout_cells(struct base_str *out, const struct base_layout *l, const void *row);

/* ---- the page -------------------------------------------------------------------------------- */

/* Adds the document, and each table that it has and that the page has not yet, in Markdown. */
void base_table_page(struct base_str *out, const struct base_table *document);
/* The same for programs: JSON Schema of what is printed; a new reference. NULL: no memory. */
json_t *base_table_schema(const struct base_table *document);

#endif
