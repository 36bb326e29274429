/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_plot.c - two diagrams as SVG: latency over load, and accepted over offered flits; a line a
 * series. */
#include "cmd/sweep/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 460, HEIGHT = 320, MARGIN = 56, LEGEND_ROW = 16, SERIES_SHOWN = 24, TICKS = 5 };

static const char *const colour[] = {
	"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c564b"};

struct spot {
	const char *series; /* owned by the first of its series */
	uint32_t nr_series; /* number of the series */
	double load, latency, accepted;
	bool saturated;
};
struct frame {
	double left, top, x_most, y_most;
};

static double sweep_plot_x_of(const struct frame *f, double v)
{
	return f->left + MARGIN + v / f->x_most * (WIDTH - MARGIN - 10);
}

static double y_of(const struct frame *f, double v)
{
	return f->top + HEIGHT - MARGIN - v / f->y_most * (HEIGHT - MARGIN - 20);
}

/* The next of 1, 2, 5, 10, ... */
static double round_up(double v)
{
	double unit = pow(10, floor(log10(v > 0 ? v : 1)));
	return v <= unit ? unit : v <= 2 * unit ? 2 * unit : v <= 5 * unit ? 5 * unit : 10 * unit;
}

static void add_axes(struct base_str *out, const struct frame *f, const char *x, const char *y)
{
	base_str_addf(out, "<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n",
		sweep_plot_x_of(f, 0), y_of(f, f->y_most), y_of(f, 0),
		sweep_plot_x_of(f, f->x_most));
	for (int i = 0; i <= TICKS; i++) {
		double vx = f->x_most * i / TICKS, vy = f->y_most * i / TICKS;
		base_str_addf(out,
			"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.4g</text>\n",
			sweep_plot_x_of(f, vx), y_of(f, 0) + 16, vx);
		base_str_addf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n",
			sweep_plot_x_of(f, 0) - 6, y_of(f, vy) + 4, vy);
		base_str_addf(out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n",
			sweep_plot_x_of(f, 0), y_of(f, vy), sweep_plot_x_of(f, f->x_most));
	}
	base_str_addf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
		sweep_plot_x_of(f, f->x_most / 2), y_of(f, 0) + 34, x);
	base_str_addf(out,
		"<text transform=\"translate(%.1f %.1f) rotate(-90)\" "
		"text-anchor=\"middle\">%s</text>\n",
		f->left + 12, y_of(f, f->y_most / 2), y);
}

static void sweep_plot_add_line(struct base_str *out, const struct frame *f,
	const struct spot *spot, size_t nr, bool latency)
{
	bool open = false;
	for (size_t i = 0; i < nr; i++) {
		double v = latency ? spot[i].latency : spot[i].accepted;
		if (isnan(v) || (latency && (spot[i].saturated || v > f->y_most)))
			continue;
		base_str_addf(out, "%s%.1f %.1f", open ? "L" : "<path class=\"line\" d=\"M",
			sweep_plot_x_of(f, spot[i].load), y_of(f, v));
		open = true;
	}
	if (open)
		base_str_addf(
			out, "\" stroke=\"%s\"/>\n", colour[spot->nr_series % BASE_COUNT(colour)]);
	for (size_t i = 0; i < nr; i++) {
		double v = latency ? spot[i].latency : spot[i].accepted;
		if (!isnan(v) && !(latency && (spot[i].saturated || v > f->y_most)))
			base_str_addf(out,
				"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n",
				sweep_plot_x_of(f, spot[i].load), y_of(f, v),
				colour[spot->nr_series % BASE_COUNT(colour)]);
	}
}

static int sweep_plot_compare(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;
	int series = strcmp(x->series, y->series);
	return series ? series : (x->load > y->load) - (x->load < y->load);
}

static void sweep_plot_add_escaped(struct base_str *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<' || *text == '&')
			base_str_add(out, *text == '<' ? "&lt;" : "&amp;");
		else
			base_str_add_bytes(out, text, 1);
	}
}

/* Points of one series and load (seeds) become their mean. Returns how many are left. */
static size_t sweep_plot_join(struct spot *spot, size_t nr, double *ret_least)
{
	size_t left = 0;
	uint32_t series = 0;
	*ret_least = INFINITY;
	for (size_t i = 0; i < nr;) {
		struct spot sum = spot[i];
		size_t k = i, nr_latencies = 0;
		sum.latency = sum.accepted = 0;
		for (; k < nr && !sweep_plot_compare(&spot[i], &spot[k]); k++) {
			sum.latency += isnan(spot[k].latency) ? 0 : spot[k].latency;
			nr_latencies += isnan(spot[k].latency) ? 0 : 1;
			sum.accepted += spot[k].accepted;
			sum.saturated |= spot[k].saturated;
		}
		sum.latency = nr_latencies ? sum.latency / (double)nr_latencies : NAN;
		sum.accepted /= (double)(k - i);
		series += left && strcmp(spot[left - 1].series, sum.series) != 0;
		sum.nr_series = series;
		if (!sum.saturated)
			*ret_least = fmin(*ret_least, sum.latency);
		spot[left++] = sum;
		i = k;
	}
	return left;
}

static void sweep_plot_draw(struct base_str *out, struct spot *spot, size_t nr)
{
	double least;
	nr = sweep_plot_join(spot, nr, &least);
	uint32_t nr_series = nr ? spot[nr - 1].nr_series + 1 : 0;
	uint32_t shown = nr_series > SERIES_SHOWN ? SERIES_SHOWN : nr_series;
	struct frame f = {.x_most = 0, .y_most = round_up(isfinite(least) ? 3 * least : 100)};
	double accepted = 0;
	for (size_t i = 0; i < nr; i++) {
		f.x_most = fmax(f.x_most, spot[i].load);
		accepted = fmax(accepted, isnan(spot[i].accepted) ? 0 : spot[i].accepted);
	}
	f.x_most = round_up(f.x_most);
	struct frame g = f;
	g.left = WIDTH;
	g.y_most = round_up(accepted);
	base_str_addf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
		"font-family=\"sans-serif\" font-size=\"11\">\n"
		"<style>.axis{fill:none;stroke:#333}.grid{fill:none;stroke:#ddd}.line{fill:none;"
		"stroke-width:1.5}</style>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		2 * WIDTH, HEIGHT + LEGEND_ROW * (shown + 1));
	add_axes(out, &f, "offered, flits a node and cycle", "mean packet latency, cycles");
	add_axes(out, &g, "offered, flits a node and cycle", "accepted, flits a node and cycle");
	for (size_t i = 0, k; i < nr; i = k) {
		for (k = i; k < nr && spot[k].nr_series == spot[i].nr_series; k++) {
		}
		sweep_plot_add_line(out, &f, spot + i, k - i, true);
		sweep_plot_add_line(out, &g, spot + i, k - i, false);
		if (spot[i].nr_series >= SERIES_SHOWN)
			continue;
		double y = HEIGHT + LEGEND_ROW * (double)spot[i].nr_series;
		base_str_addf(out,
			"<rect x=\"%d\" y=\"%.0f\" width=\"18\" height=\"4\" fill=\"%s\"/>\n",
			MARGIN, y, colour[spot[i].nr_series % BASE_COUNT(colour)]);
		base_str_addf(out, "<text x=\"%d\" y=\"%.0f\">", MARGIN + 24, y + 6);
		sweep_plot_add_escaped(out, spot[i].series);
		base_str_add(out, "</text>\n");
	}
	base_str_add(out, "</svg>\n");
}

void sweep_plot(struct base_str *out, const struct sweep_spec *s, const struct sweep_answer *answer)
{
	struct spot *spot = base_alloc((s->nr_points + 1) * sizeof *spot);
	struct base_str *name = base_alloc((s->nr_points + 1) * sizeof *name);
	size_t nr = 0;
	out->failed |= !spot || !name;
	for (size_t i = 0; spot && name && i < s->nr_points; i++) {
		if (answer[i].status != BASE_OK || s->point[i].saturation)
			continue;
		sweep_point_series(&name[i], s, &s->point[i]);
		out->failed |= name[i].failed;
		spot[nr++] = (struct spot){.series = base_str_text(&name[i]),
			.load = s->point[i].config.load,
			.latency = answer[i].value[SWEEP_latency_cycles],
			.accepted = answer[i].value[SWEEP_accepted_flits_node_cycle],
			.saturated = answer[i].value[SWEEP_saturated] != 0};
	}
	if (!out->failed) {
		qsort(spot, nr, sizeof *spot, sweep_plot_compare);
		sweep_plot_draw(out, spot, nr);
	}
	for (size_t i = 0; name && i < s->nr_points; i++)
		base_str_fini(&name[i]);
	base_free(name);
	base_free(spot);
}
