/* SPDX-License-Identifier: Apache-2.0 */
/* tdat_text.c - bins as text, characters, SVG and JSON. */
#include "memory/tdat.h"
#include "base/column.h"
#include "base/json.h"

#include <inttypes.h>
#include <math.h>

enum { SVG_WIDTH = 900, SVG_HEIGHT = 300, SVG_LEFT = 60, SVG_BOTTOM = 30, SVG_TOP = 30 };

void memory_tdat_bins(struct base_str *out, const struct memory_tdat_result *r, char separator)
{
	if (separator == ',')
		base_str_add(out, "clock,events\n");
	for (size_t i = 0; i < r->nr_bins; i++)
		base_str_addf(
			out, "%" PRIu64 "%c%" PRIu64 "\n", i * r->bin_clocks, separator, r->bin[i]);
}

/* The mean of the bins that column `x` of `columns` stands for. */
static double column_value(const struct memory_tdat_result *r, size_t x, size_t columns)
{
	size_t from = x * r->nr_bins / columns, to = (x + 1) * r->nr_bins / columns;
	double sum = 0;
	to = to > from ? to : from + 1;
	for (size_t i = from; i < to && i < r->nr_bins; i++)
		sum += (double)r->bin[i];
	return sum / (double)(to - from);
}

void memory_tdat_plot(struct base_str *out, const struct memory_tdat_result *r, unsigned columns,
	unsigned rows, bool utf8)
{
	static const char *const block[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	size_t width = r->nr_bins < columns ? r->nr_bins : columns;
	double top = 0;
	for (size_t x = 0; x < width; x++)
		top = fmax(top, column_value(r, x, width));
	base_str_add(out, "     events a bin");
	if (width && r->nr_bins > width)
		base_str_addf(out, ", the mean of %.4g bins in each column",
			(double)r->nr_bins / (double)width);
	base_str_add(out, "\n");
	for (unsigned y = rows; y-- > 0 && top > 0;) {
		base_str_addf(out, "%11.4g |", top * (y + 1) / rows);
		for (size_t x = 0; x < width; x++) {
			double fill = column_value(r, x, width) / top * rows - y;
			unsigned eighths = fill <= 0   ? 0
					   : fill >= 1 ? 8
						       : (unsigned)(fill * 8 + 0.5);
			base_str_add(out, utf8 ? block[eighths] : eighths >= 4 ? "#" : " ");
		}
		base_str_add(out, "\n");
	}
	base_str_addf(out, "%11s +", "");
	for (size_t x = 0; x < width; x++)
		base_str_add(out, "-");
	base_str_addf(
		out, "\n%13s0 to %" PRIu64 " {clock|clocks}\n", "", r->nr_bins * r->bin_clocks);
}

static void tdat_text_add_escaped(struct base_str *out, const char *text)
{
	for (; *text; text++) {
		const char one[2] = {*text, 0};
		base_str_add(out, *text == '<'                 ? "&lt;"
				  : *text == '&'               ? "&amp;"
				  : (unsigned char)*text < ' ' ? "?"
							       : one);
	}
}

void memory_tdat_svg(struct base_str *out, const struct memory_tdat_result *r, const char *title)
{
	size_t width = r->nr_bins < SVG_WIDTH ? r->nr_bins : SVG_WIDTH;
	double top = 0, step = width ? (double)SVG_WIDTH / (double)width : 0;
	for (size_t x = 0; x < width; x++)
		top = fmax(top, column_value(r, x, width));
	base_str_addf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n<title>",
		SVG_LEFT + SVG_WIDTH + 10, SVG_TOP + SVG_HEIGHT + SVG_BOTTOM);
	tdat_text_add_escaped(out, title);
	base_str_addf(out, "</title>\n<text x=\"%d\" y=\"18\">", SVG_LEFT);
	tdat_text_add_escaped(out, title);
	base_str_addf(out,
		": events a bin of %" PRIu64
		" {clock|clocks}</text>\n<path fill=\"#27c\" d=\"M%d %d",
		r->bin_clocks, SVG_LEFT, SVG_TOP + SVG_HEIGHT);
	for (size_t x = 0; x < width && top > 0; x++)
		base_str_addf(out, "V%.1fH%.2f",
			SVG_TOP + SVG_HEIGHT * (1 - column_value(r, x, width) / top),
			SVG_LEFT + step * (double)(x + 1));
	base_str_addf(out, "V%dz\"/>\n<path stroke=\"#444\" fill=\"none\" d=\"M%d %dV%dH%d\"/>\n",
		SVG_TOP + SVG_HEIGHT, SVG_LEFT, SVG_TOP, SVG_TOP + SVG_HEIGHT,
		SVG_LEFT + SVG_WIDTH);
	base_str_addf(out,
		"<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.4g</text>\n"
		"<text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>\n"
		"<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%" PRIu64
		" {clock|clocks}</text>\n</svg>\n",
		SVG_LEFT - 6, SVG_TOP + 10, top, SVG_LEFT - 6, SVG_TOP + SVG_HEIGHT,
		SVG_LEFT + SVG_WIDTH, SVG_TOP + SVG_HEIGHT + 20, r->nr_bins * r->bin_clocks);
}

static json_t *tdat_bins_json(const struct memory_tdat_result *r)
{
	json_t *bins = json_array();
	for (size_t i = 0; i < r->nr_bins; i++)
		json_array_append_new(bins, base_json_u64(r->bin[i]));
	return bins;
}

#include "memory/tdat.def"

json_t *memory_tdat_json(const struct memory_tdat_result *r)
{
	return base_table_json(&memory_tdat_document, r, NULL, 0);
}
