/* SPDX-License-Identifier: Apache-2.0 */
/* column.c - rows by their table: what their values are, as JSON, and the page that explains it. */
#include "base/column_private.h"
#include "base/json.h"

#include <string.h>

/* ---- values ---------------------------------------------------------------------------------- */

static struct column_value column_integer(int64_t n)
{
	return (struct column_value){
		.is = COLUMN_INTEGER, .n = n, .bits = (uint64_t)n, .known = true};
}

static struct column_value column_unsigned(uint64_t n)
{
	struct column_value v = column_integer(n > INT64_MAX ? INT64_MAX : (int64_t)n);
	v.bits = n;
	return v;
}

static struct column_value column_real(double x)
{
	return (struct column_value){.is = COLUMN_REAL, .x = x, .known = !isnan(x)};
}

static struct column_value column_text(const char *text)
{
	return (struct column_value){.is = COLUMN_TEXT, .text = text, .known = text != NULL};
}

static struct column_value column_of_member(struct base_member m, const char *row)
{
	const void *p = row + m.offset;
	switch (m.type) {
	case BASE_MEMBER_u64:
		return column_unsigned(*(const uint64_t *)p);
	case BASE_MEMBER_u32:
		return column_integer(*(const uint32_t *)p);
	case BASE_MEMBER_u16:
		return column_integer(*(const uint16_t *)p);
	case BASE_MEMBER_u8:
		return column_integer(*(const uint8_t *)p);
	case BASE_MEMBER_i32:
		return column_integer(*(const int *)p);
	case BASE_MEMBER_i64:
		return column_integer(*(const int64_t *)p);
	case BASE_MEMBER_real:
		return column_real(*(const double *)p);
	case BASE_MEMBER_bool:
		return column_integer(*(const bool *)p);
	case BASE_MEMBER_text:
		return column_text(*(const char *const *)p);
	case BASE_MEMBER_chars:
		return column_text(p);
	default:
		return (struct column_value){.is = COLUMN_OTHER, .known = true};
	}
}

static struct column_value column_of_function(
	const struct base_column *c, const void *row, const void *all)
{
	switch (c->at.type) {
	case BASE_MEMBER_u64_of:
		return column_unsigned(((uint64_t(*)(const void *, const void *))c->of)(row, all));
	case BASE_MEMBER_bool_of:
		return column_integer(((bool (*)(const void *, const void *))c->of)(row, all));
	case BASE_MEMBER_real_of:
		return column_real(((double (*)(const void *, const void *))c->of)(row, all));
	case BASE_MEMBER_text_of:
		return column_text(((const char *(*)(const void *, const void *))c->of)(row, all));
	default:
		return column_of_member(c->at, row);
	}
}

bool base_column_is_set(struct base_member m, const void *row)
{
	struct column_value v = column_of_member(m, row);
	return v.is == COLUMN_REAL ? v.x != 0 : v.is == COLUMN_TEXT ? v.known && *v.text : v.n != 0;
}

const char *base_row_name(const struct base_table *t, const void *row)
{
	return base_column_value(&t->column[0], row, NULL).text;
}

uint64_t base_row_nr_named(const struct base_table *t, const void *row)
{
	return t->nr_named.type ? (uint64_t)column_of_member(t->nr_named, row).n : 1;
}

static bool column_is_there(const struct base_column *c, const void *row)
{
	return (!c->when.type || base_column_is_set(c->when, row)) &&
	       (!c->unless.type || !base_column_is_set(c->unless, row));
}

static double column_as_real(const struct column_value *v)
{
	return v->is == COLUMN_REAL ? v->x : (double)v->n;
}

struct column_value base_column_value(const struct base_column *c, const void *row, const void *all)
{
	struct column_value v = column_of_function(c, row, all);
	bool is_ratio = base_unit_of[c->unit].is_real;
	if (c->per.type) {
		struct column_value per = column_of_member(c->per, row);
		if (v.is == COLUMN_INTEGER && per.is == COLUMN_INTEGER && !is_ratio)
			v.n = per.n ? v.n / per.n : 0;
		else
			v = column_real(column_as_real(&per) != 0
						? column_as_real(&v) / column_as_real(&per)
						: 0);
	}
	if (v.is == COLUMN_INTEGER && is_ratio)
		v = column_real((double)v.n);
	if (v.is == COLUMN_REAL && !is_ratio)
		v = (struct column_value){
			.is = COLUMN_INTEGER, .n = v.x > 0 ? llround(v.x) : 0, .known = v.known};
	v.known = v.known && column_is_there(c, row);
	return v;
}

uint64_t base_row_integer(const struct base_column *c, const void *row)
{
	return base_column_value(c, row, NULL).bits;
}

const void *base_column_part(const struct base_column *c, const void *row)
{
	const void *part = (const char *)row + c->at.offset;
	if (c->is_behind)
		part = *(const void *const *)part;
	return column_is_there(c, row) ? part : NULL;
}

const struct column_unit base_unit_of[] = {
#define X(name, kind, is_real) [BASE_UNIT_##name] = {kind, is_real},
	BASE_UNITS(X)
#undef X
};

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *column_text_json(const char *text, enum base_unit unit)
{
	struct base_str clean = {0};
	json_t *j = unit == BASE_UNIT_lines ? json_string(text) : NULL; /* NULL: no UTF-8 */
	if (j)
		return j;
	base_str_add_shown(&clean, text, strlen(text),
		unit == BASE_UNIT_lines ? BASE_SHOWN_LINES : BASE_SHOWN_NAME);
	j = clean.failed ? NULL : json_string(base_str_text(&clean));
	base_str_fini(&clean);
	return j;
}

static json_t *column_rows_json(
	const struct base_column *c, const char *row, const void *all, unsigned has)
{
	const void *rows = base_column_part(c, row);
	if (c->unit == BASE_UNIT_object)
		return rows ? base_table_json(c->rows, rows, all, has) : json_null();
	rows = row + c->at.offset;
	if (c->unit == BASE_UNIT_list)
		rows = *(const void *const *)rows;
	size_t nr = (size_t)column_of_member(c->nr, row).n;
	return base_table_json_list(c->rows, rows, nr, all, has);
}

static json_t *column_value_json(const struct base_column *c, const struct column_value *v,
	const void *row, const void *all, unsigned has)
{
	if (c->unit == BASE_UNIT_json)
		return ((json_t * (*)(const void *, const void *)) c->of)(row, all);
	if (c->rows)
		return column_rows_json(c, row, all, has);
	if (c->unit == BASE_UNIT_flag)
		return json_boolean(v->n);
	if (c->unit == BASE_UNIT_address)
		return json_sprintf("0x%llx", (unsigned long long)v->bits);
	if (v->is == COLUMN_REAL)
		return base_json_real(c->unit == BASE_UNIT_exact ? v->x : round(v->x * 1e6) / 1e6);
	if (v->is == COLUMN_TEXT)
		return v->text ? column_text_json(v->text, c->unit) : json_null();
	return json_integer(v->n);
}

/* False: no memory. What a function makes of nothing, NULL, is not known. */
static bool column_add_one(
	json_t *to, const struct base_column *c, const void *row, const void *all, unsigned has)
{
	struct column_value v = base_column_value(c, row, all);
	json_t *j = NULL;
	bool is_made = c->unit == BASE_UNIT_json && c->absence != BASE_ALWAYS;
	if (v.known || c->absence == BASE_ALWAYS)
		j = column_value_json(c, &v, row, all, has);
	if (j || (v.known && !is_made) || c->absence == BASE_ALWAYS)
		return !json_object_set_new(to, c->key, j);
	return c->absence != BASE_NULL || !json_object_set_new(to, c->key, json_null());
}

static bool column_add_json(
	json_t *to, const struct base_table *t, const void *row, const void *all, unsigned has)
{
	bool ok = to != NULL;
	for (size_t i = 0; ok && i < t->nr_columns; i++) {
		const struct base_column *c = &t->column[i];
		if ((has & c->needs) != c->needs)
			continue;
		if (c->unit == BASE_UNIT_part) {
			const void *part = base_column_part(c, row);
			ok = !part || column_add_json(to, c->rows, part, all, has);
		} else if (c->key)
			ok = column_add_one(to, c, row, all, has);
	}
	return ok;
}

json_t *base_table_json(const struct base_table *t, const void *row, const void *all, unsigned has)
{
	json_t *o = json_object();
	if (column_add_json(o, t, row, all, has))
		return o;
	json_decref(o);
	return NULL;
}

json_t *base_table_json_list(
	const struct base_table *t, const void *rows, size_t nr, const void *all, unsigned has)
{
	json_t *list = json_array();
	bool ok = list != NULL;
	for (size_t i = 0; ok && i < nr; i++)
		ok = !json_array_append_new(list,
			base_table_json(t, (const char *)rows + i * t->row_size_bytes, all, has));
	if (ok)
		return list;
	json_decref(list);
	return NULL;
}

/* ---- the page -------------------------------------------------------------------------------- */

static void column_add_kind(struct base_str *out, const struct base_column *c)
{
	bool many = c->unit == BASE_UNIT_list || c->unit == BASE_UNIT_array;
	const char *kind = c->kind ? c->kind : c->rows ? c->rows->name : base_unit_of[c->unit].kind;
	base_str_addf(out, many && !c->kind ? "[%s]" : "%s", kind);
	if (c->absence == BASE_NULL)
		base_str_add(out, " or null");
}

static void column_add_rows(struct base_str *out, const struct base_table *t, bool is_optional)
{
	for (size_t i = 0; i < t->nr_columns; i++) {
		const struct base_column *c = &t->column[i];
		bool may_lack = is_optional || c->needs || c->absence == BASE_OPTIONAL;
		if (c->unit == BASE_UNIT_part)
			column_add_rows(out, c->rows, may_lack || c->when.type || c->unless.type);
		if (!c->key)
			continue;
		base_str_addf(out, "| `%s`%s | ", c->key, may_lack ? " ?" : "");
		column_add_kind(out, c);
		base_str_addf(out, " | %s |\n", c->doc);
	}
}

/* The heading, unless the page has it. */
static bool column_add_heading(struct base_str *out, const struct base_table *t)
{
	struct base_str heading = {0};
	base_str_addf(&heading, "\n%s %s\n", t->from ? "##" : "###", t->name);
	bool is_new = !strstr(base_str_text(out), base_str_text(&heading));
	if (is_new)
		base_str_addf(out, "%s\n", base_str_text(&heading));
	out->failed |= heading.failed;
	base_str_fini(&heading);
	return is_new;
}

static void column_add_tables(struct base_str *out, const struct base_table *t)
{
	for (size_t i = 0; i < t->nr_columns; i++) {
		const struct base_table *rows = t->column[i].rows;
		if (rows && t->column[i].unit == BASE_UNIT_part)
			column_add_tables(out, rows);
		else if (rows)
			base_table_page(out, rows);
	}
}

void base_table_page(struct base_str *out, const struct base_table *t)
{
	if (!column_add_heading(out, t))
		return;
	if (t->from)
		base_str_addf(out, "%s\n\n", t->from);
	base_str_add(out, "| key | type | |\n|---|---|---|\n");
	column_add_rows(out, t, false);
	column_add_tables(out, t);
}
