/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html_svg.c - the timeline as a picture that needs no JavaScript: a row a lane, what each was
 * doing most, and the critical path's pieces beneath each lane's row.
 */
#include "report/page/html_private.h"

enum {
	BUCKETS = 400,
	LANES = 32,
	LEFT = 210,
	WIDTH = 1000,
	ROW = 22,
	BAR = 13,
	TOP = 24,
	PALETTE = 7
};

struct picture {
	struct base_str *out;
	const struct html_timeline *t;
	uint64_t *sum_ns;
};

static uint64_t bucket_begin(const struct html_timeline *t, unsigned i)
{
	double share = (double)i / BUCKETS;
	return t->start_ns + (uint64_t)(share * (double)(t->end_ns - t->start_ns));
}

static double html_svg_x_of(unsigned bucket)
{
	return LEFT + (double)(WIDTH - LEFT) * bucket / BUCKETS;
}

/* The class says the colour: see ui/src/page.css. */
static void rect(struct picture *p, const char *class, unsigned from, unsigned to, double y,
	double height, const char *title)
{
	base_str_addf(p->out,
		"<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
		"height=\"%.1f\">",
		class, html_svg_x_of(from), y, html_svg_x_of(to) - html_svg_x_of(from), height);
	base_str_add(p->out, "<title>");
	report_html_text(p->out, title);
	base_str_add(p->out, "</title></rect>\n");
}

/* Whatever has more of the bucket; the page with JavaScript shows both. */
static uint32_t html_svg_shown(const struct html_bucket *b)
{
	return b->active_fifteenths >= b->wait_fifteenths ? b->active : b->waiting;
}

/* As the page's code has it: the path's first topics have colours of their own. */
static void add_class(struct base_str *out, const struct html_timeline *t, uint32_t state)
{
	const struct html_state *s = &t->state[state];
	if (s->topic < PALETTE && !t->waits[state])
		base_str_addf(out, "s%u", s->topic);
	else
		base_str_addf(out, "k-%s", model_state_kind_name(s->kind));
}

static void legend(struct picture *p)
{
	const struct html_timeline *t = p->t;
	bool done[PALETTE] = {0};
	base_str_add(p->out, "<ul class=legend>\n");
	for (uint32_t i = 0; i < t->nr_states; i++) {
		uint32_t topic = t->state[i].topic;
		if (topic >= PALETTE || t->waits[i] || done[topic])
			continue;
		done[topic] = true;
		base_str_addf(p->out, "<li><i class=\"sw s%u\"></i> ", topic);
		report_html_text(p->out, t->state[i].name);
		base_str_add(p->out, "</li>\n");
	}
	base_str_add(p->out, "<li><i class=\"sw wait k-wait\"></i> waiting</li>\n<li><i "
			     "class=\"sw path-key\"></i> the critical path is there</li>\n</ul>\n");
}

static void lane(struct picture *p, const struct html_lane *l, double y)
{
	const struct html_timeline *t = p->t;
	struct html_cursor c = report_html_cursor_of(&l->track, t->end_ns);
	uint32_t run = HTML_NOTHING;
	unsigned from = 0;
	for (unsigned i = 0; i <= BUCKETS; i++) {
		uint32_t now = HTML_NOTHING;
		if (i < BUCKETS && bucket_begin(t, i + 1) > bucket_begin(t, i)) {
			struct html_bucket b = report_html_bucket_of(&c, bucket_begin(t, i),
				bucket_begin(t, i + 1), t->waits, p->sum_ns);
			now = html_svg_shown(&b);
		}
		if (i < BUCKETS && i && now == run)
			continue;
		if (i && run != HTML_NOTHING) {
			struct base_str class = {0};
			add_class(&class, t, run);
			rect(p, base_str_text(&class), from, i, y, BAR, t->state[run].name);
			base_str_fini(&class);
		}
		run = now;
		from = i;
	}
}

/* Where the path is for most of a bucket. */
static void path(struct picture *p, size_t nr_lanes)
{
	const struct html_timeline *t = p->t;
	struct html_cursor c = report_html_cursor_of(&t->path, t->end_ns);
	uint32_t run = HTML_NOTHING;
	unsigned from = 0;
	for (unsigned i = 0; i <= BUCKETS; i++) {
		uint32_t now = HTML_NOTHING;
		if (i < BUCKETS && bucket_begin(t, i + 1) > bucket_begin(t, i)) {
			struct html_bucket b = report_html_bucket_of(
				&c, bucket_begin(t, i), bucket_begin(t, i + 1), NULL, p->sum_ns);
			now = b.active == HTML_NOTHING ? HTML_NOTHING : t->step[b.active].lane;
		}
		if (i < BUCKETS && i && now == run)
			continue;
		if (i && run < nr_lanes)
			rect(p, "path", from, i, TOP + (double)run * ROW + BAR + 1, 3,
				"critical path");
		run = now;
		from = i;
	}
}

static void labels(struct picture *p, size_t nr_lanes)
{
	struct base_str end = {0};
	report_ns(&end, (double)(p->t->end_ns - p->t->start_ns));
	base_str_addf(p->out, "<text x=\"%d\" y=\"14\">0</text>", LEFT);
	base_str_addf(p->out, "<text x=\"%d\" y=\"14\" text-anchor=\"end\">%s</text>\n", WIDTH,
		base_str_text(&end));
	base_str_fini(&end);
	for (size_t i = 0; i < nr_lanes; i++) {
		/* what is longer is cut by a clip path, and whole in its title */
		base_str_addf(p->out, "<text class=\"lane\" x=\"0\" y=\"%d\"><title>",
			TOP + (int)i * ROW + BAR - 2);
		report_html_text(p->out, p->t->lane[i].name);
		base_str_add(p->out, "</title>");
		struct base_str cut = {0};
		struct report_style st = {.utf8 = true, .columns = 80};
		report_cell(&cut, &st, p->t->lane[i].name, 30, false);
		report_html_text(p->out, base_str_text(&cut));
		base_str_fini(&cut);
		base_str_add(p->out, "</text>\n");
	}
}

void report_html_static_timeline(struct base_str *out, const struct html_timeline *t)
{
	size_t nr_values = t->nr_states > t->nr_steps ? t->nr_states : t->nr_steps;
	size_t nr_lanes = t->nr_lanes < LANES ? t->nr_lanes : LANES;
	struct picture p = {
		.out = out, .t = t, .sum_ns = base_alloc((nr_values + 1) * sizeof *p.sum_ns)};
	if (!p.sum_ns) {
		out->failed = true;
		return;
	}
	base_str_addf(out,
		"<h2>Timeline</h2>\n<svg class=timeline role=img viewBox=\"0 0 %d %d\" "
		"aria-label=\"what each thread was doing, and where the critical path was\">\n",
		WIDTH, TOP + (int)nr_lanes * ROW + 4);
	base_str_add(out,
		"<defs><pattern id=hatch width=6 height=6 patternUnits=userSpaceOnUse "
		"patternTransform=\"rotate(45)\"><rect width=6 height=6 class=hatch-back />"
		"<rect width=2 height=6 class=hatch-line /></pattern></defs>\n");
	labels(&p, nr_lanes);
	for (size_t i = 0; i < nr_lanes; i++)
		lane(&p, &t->lane[i], TOP + (double)i * ROW);
	path(&p, nr_lanes);
	base_str_add(out, "</svg>\n");
	legend(&p);
	if (t->nr_lanes > nr_lanes)
		base_str_add_counted(out,
			"<p class=more>%s more {lane is|lanes are} not in this picture.</p>\n",
			t->nr_lanes - nr_lanes);
	base_free(p.sum_ns);
}
