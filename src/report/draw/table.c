/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - the lines of a table (base/column.h): names as reports write them, then its columns. */
#include "report/draw/draw.h"

enum { MEMBERS_WIDTH = 6 }; /* " x1234" */

size_t report_table_longest(const struct base_table *t, const void *rows, size_t nr)
{
	size_t longest = 0;
	for (size_t i = 0; i < nr; i++) {
		const void *row = (const char *)rows + i * t->row_size_bytes;
		size_t width = base_text_width(base_row_name(t, row)) +
			       (base_row_nr_named(t, row) > 1 ? MEMBERS_WIDTH : 0);
		longest = width > longest ? width : longest;
	}
	return longest;
}

void report_table_head(
	struct base_str *out, const struct base_layout *l, const struct report_style *st)
{
	report_color_begin(out, st, REPORT_DIM);
	report_cell(out, st, l->table->head, l->name_width, true);
	base_layout_titles(out, l);
	report_color_end(out, st);
	base_str_add(out, "\n");
}

void report_table_line(struct base_str *out, const struct base_layout *l, const void *row,
	const struct report_style *st)
{
	report_members_cell(out, st, base_row_name(l->table, row), base_row_nr_named(l->table, row),
		l->name_width);
	base_layout_cells(out, l, row);
	base_str_add(out, "\n");
}

void report_table_lines(struct base_str *out, const struct base_layout *l, const void *rows,
	size_t nr, size_t limit, const struct report_style *st)
{
	report_table_head(out, l, st);
	for (size_t i = 0; i < nr && (!limit || i < limit); i++)
		report_table_line(out, l, (const char *)rows + i * l->table->row_size_bytes, st);
	if (limit && limit < nr)
		base_str_addf(out, "... %zu more (--all shows them)\n", nr - limit);
}
