/* SPDX-License-Identifier: Apache-2.0 */
/* column_text.c - rows by their table, as lines of columns. */
#include "base/column_private.h"

size_t base_text_width(const char *text)
{
	size_t n = 0;
	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

void base_str_add_blanks(struct base_str *s, size_t n)
{
	while (n--)
		base_str_add(s, " ");
}

void base_str_add_right(struct base_str *s, const char *text, size_t width)
{
	size_t have = base_text_width(text);
	base_str_add_blanks(s, have < width ? width - have : 0);
	base_str_add(s, text);
}

void base_str_add_share(struct base_str *s, double share)
{
	double percent = share * 100;
	if (percent >= 9.95 || percent <= 0)
		base_str_addf(s, "%.0f %%", percent > 0 ? percent : 0.0);
	else if (percent >= 0.1)
		base_str_addf(s, "%.1f %%", percent);
	else
		base_str_add(s, "<0.1 %");
}

/* ---- which columns --------------------------------------------------------------------------- */

static bool column_is_shown(const struct base_layout *l, const struct base_column *c)
{
	return c->title && (l->has & c->needs) == c->needs && c->rank <= l->rank_max;
}

static size_t column_width(const struct base_layout *l, const struct base_table *t)
{
	size_t width = 0;
	for (size_t i = 0; i < t->nr_columns; i++) {
		const struct base_column *c = &t->column[i];
		if (c->unit == BASE_UNIT_part)
			width += column_width(l, c->rows);
		else if (column_is_shown(l, c))
			width += c->width;
	}
	return width;
}

size_t base_layout_width(const struct base_layout *l)
{
	return column_width(l, l->table);
}

static unsigned column_highest_rank(const struct base_table *t)
{
	unsigned highest = 0;
	for (size_t i = 0; i < t->nr_columns; i++) {
		const struct base_column *c = &t->column[i];
		unsigned rank = c->unit == BASE_UNIT_part ? column_highest_rank(c->rows) : c->rank;
		highest = rank > highest ? rank : highest;
	}
	return highest;
}

void base_layout_fit(
	struct base_layout *l, size_t line_width, size_t longest, size_t wanted, size_t least)
{
	wanted = longest < wanted ? longest : wanted;
	wanted = wanted < least ? least : wanted;
	for (l->rank_max = column_highest_rank(l->table);; l->rank_max--) {
		size_t width = base_layout_width(l);
		size_t room = line_width > width ? line_width - width : 0;
		l->name_width = room < longest ? room : longest;
		if (room >= wanted || l->rank_max <= 1)
			break;
	}
	l->name_width = l->name_width < least ? least : l->name_width;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void column_add_cell(struct base_str *out, const struct base_column *c, const char *text)
{
	if (!c->left) {
		if (base_text_width(text) >= c->width) /* they never touch */
			base_str_add(out, " ");
		base_str_add_right(out, text, c->width);
		return;
	}
	size_t have = base_text_width(text) + 2;
	base_str_addf(out, "  %s", text);
	base_str_add_blanks(out, have < c->width ? c->width - have : 0);
}

/* Titles of the columns from here on; *width: of those before that have none of their own. */
static void column_titles(struct base_str *out, const struct base_layout *l,
	const struct base_table *t, size_t *width)
{
	for (size_t i = 0; i < t->nr_columns; i++) {
		const struct base_column *c = &t->column[i];
		if (c->unit == BASE_UNIT_part)
			column_titles(out, l, c->rows, width);
		else if (!column_is_shown(l, c))
			continue;
		else if (c->left)
			column_add_cell(out, c, c->title);
		else if (*c->title) {
			base_str_add_right(out, c->title, *width + c->width);
			*width = 0;
		} else
			*width += c->width;
	}
}

void base_layout_titles(struct base_str *out, const struct base_layout *l)
{
	size_t width = 0;
	column_titles(out, l, l->table, &width);
}

static void column_add_number(struct base_str *s, const struct base_column *c,
	const struct column_value *v, const struct base_layout *l)
{
	uint64_t n = v->n > 0 ? (uint64_t)v->n : 0;
	switch (c->unit) {
	case BASE_UNIT_ns:
		base_str_add_ns(s, n);
		break;
	case BASE_UNIT_bytes:
		base_str_add_size(s, n);
		break;
	case BASE_UNIT_share:
		base_str_add_share(s, v->x);
		break;
	case BASE_UNIT_factor:
		base_str_addf(s, "%.2f%s", v->x, l->utf8 ? "\xc3\x97" : "x");
		break;
	case BASE_UNIT_real:
	case BASE_UNIT_exact:
		base_str_addf(s, "%.3g", v->x);
		break;
	case BASE_UNIT_flag:
		base_str_add(s, v->n ? "yes" : "-");
		break;
	case BASE_UNIT_address:
		base_str_addf(s, "0x%llx", (unsigned long long)v->bits);
		break;
	case BASE_UNIT_count:
		base_str_add_count(s, n);
		break;
	default:
		base_str_addf(s, "%lld", (long long)v->n);
	}
}

static void column_cell_text(struct base_str *s, const struct base_layout *l,
	const struct base_column *c, const void *row)
{
	if (c->cell) {
		c->cell(s, row, l);
		return;
	}
	struct column_value v = base_column_value(c, row, l->all);
	if (v.known && c->estimated.type && base_column_is_set(c->estimated, row))
		base_str_add(s, "~");
	if (!v.known)
		base_str_add(s, "-");
	else if (v.is == COLUMN_TEXT)
		base_str_add(s, v.text);
	else
		column_add_number(s, c, &v, l);
}

static void column_cells(struct base_str *out, const struct base_layout *l,
	const struct base_table *t, const void *row)
{
	for (size_t i = 0; i < t->nr_columns; i++) {
		const struct base_column *c = &t->column[i];
		struct base_str cell = {0};
		const void *part = c->unit == BASE_UNIT_part ? base_column_part(c, row) : NULL;
		if (part)
			column_cells(out, l, c->rows, part);
		else if (c->unit != BASE_UNIT_part && column_is_shown(l, c)) {
			column_cell_text(&cell, l, c, row);
			column_add_cell(out, c, base_str_text(&cell));
			out->failed |= cell.failed;
			base_str_fini(&cell);
		}
	}
}

void base_layout_cells(struct base_str *out, const struct base_layout *l, const void *row)
{
	column_cells(out, l, l->table, row);
}
