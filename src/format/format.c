/* SPDX-License-Identifier: Apache-2.0 */
/* format.c - the table; output through the sink; the path folded into steps. */
#include "format/private.h"

#include <string.h>

static const struct format_desc formats[] = {
#define FORMAT(name, suffix, max_events, flags, doc)                                               \
	{#name, suffix, doc, max_events, flags, format_export_##name},
#include "format/formats.def"
};

const struct format_desc *format_table(size_t *ret_nr)
{
	*ret_nr = BASE_COUNT(formats);
	return formats;
}

const struct format_desc *format_find(const char *name)
{
	for (size_t i = 0; i < BASE_COUNT(formats); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

enum base_status format_export(const struct format_desc *f, const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	enum base_status s = BASE_OK;
	if (!(f->flags & (FORMAT_RECORDS | FORMAT_WHOLE)))
		s = format_guard(in, opts, f->name,
			opts->max_events ? opts->max_events : f->max_events, err);
	if (s == BASE_OK)
		s = f->export(in, opts, sink, err);
	return s == BASE_OK ? s : base_cause(err, s, "while exporting as %s", f->name);
}

/* ---- output ---------------------------------------------------------------------------------- */

enum { HAND_OVER_BYTES = 1 << 16 };

static void format_hand_over(struct format_out *o)
{
	if (o->status == BASE_OK && o->text.failed)
		o->status = base_fail(o->err, BASE_ERR_NOMEM, "out of memory for the export");
	if (o->status == BASE_OK && o->text.length)
		o->status = o->sink->write(
			o->sink->ctx, base_str_text(&o->text), o->text.length, o->err);
	base_str_reset(&o->text);
}

void format_out_check(struct format_out *o)
{
	if (o->text.length >= HAND_OVER_BYTES || o->text.failed)
		format_hand_over(o);
}

enum base_status format_out_close(struct format_out *o)
{
	format_hand_over(o);
	base_str_fini(&o->text);
	return o->status;
}

void format_clean_add(struct base_str *out, const char *text)
{
	base_str_add_shown(out, text, strlen(text), BASE_SHOWN_NAME);
}

void format_json_text(struct base_str *out, const char *text)
{
	struct base_str clean = {0};
	format_clean_add(&clean, text);
	base_str_add(out, "\"");
	for (const char *p = base_str_text(&clean); *p; p++) {
		if (*p == '"' || *p == '\\')
			base_str_add(out, "\\");
		base_str_add_bytes(out, p, 1);
	}
	base_str_add(out, "\"");
	out->failed |= clean.failed;
	base_str_fini(&clean);
}

/* ---- the path -------------------------------------------------------------------------------- */

enum base_status format_path_init(struct format_path *p, const struct format_input *in,
	const struct format_options *opts, struct base_err *err)
{
	const struct graph_path_edge *edge;
	size_t nr;
	*p = (struct format_path){0};
	enum base_status s = graph_path(model_graph(in->model), &edge, &nr, err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		const struct graph_path_edge *e = &edge[i];
		if (e->end_ns <= e->begin_ns || e->end_ns <= opts->from_ns ||
			(opts->to_ns && e->begin_ns >= opts->to_ns))
			continue;
		struct format_step *last = p->nr ? &p->step[p->nr - 1] : NULL;
		if (last && last->actor == e->actor && last->state == e->state &&
			last->end_ns >= e->begin_ns) {
			last->end_ns = e->end_ns;
			continue;
		}
		s = base_grow(&p->step, &p->capacity, p->nr + 1, sizeof *p->step);
		if (s != BASE_OK) {
			s = base_fail(
				err, s, "out of memory for %zu {step|steps} of the path", p->nr);
			break;
		}
		/* A track's slices must not overlap, and the path is one line in time. */
		uint64_t begin_ns = p->nr && p->step[p->nr - 1].end_ns > e->begin_ns
					    ? p->step[p->nr - 1].end_ns
					    : e->begin_ns;
		if (begin_ns < e->end_ns)
			p->step[p->nr++] = (struct format_step){.begin_ns = begin_ns,
				.end_ns = e->end_ns,
				.actor = e->actor,
				.state = e->state};
	}
	if (s != BASE_OK)
		format_path_fini(p);
	return s;
}

void format_path_fini(struct format_path *p)
{
	base_free(p->step);
	*p = (struct format_path){0};
}
