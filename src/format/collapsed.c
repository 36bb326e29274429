/* SPDX-License-Identifier: Apache-2.0 */
/* collapsed.c - `frame;frame;frame weight` lines, for flame graphs: of the critical path, or of all
 * waiting. */
#include "format/private.h"
#include "symbol/symbol.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { FRAMES_MAX = 64 };

struct collapsed {
	struct format_out out;
	const struct format_input *in;
	const struct trace_defs *defs;
	struct base_strtab *stacks; /* in order of first use */
	double *weight_ns;          /* by id */
	size_t capacity;
	struct base_str stack, label;
};

/* A frame's text: ';' and blanks at the ends mean something in this format. */
static void collapsed_add_frame(struct base_str *stack, const char *frame, bool inlined)
{
	size_t before = stack->length;
	struct base_str clean = {0};
	format_clean_add(&clean, frame);
	if (stack->length)
		base_str_add(stack, ";");
	for (const char *p = base_str_text(&clean); *p; p++)
		base_str_add_bytes(stack, *p == ';' ? ":" : p, 1);
	if (stack->length == before + (before > 0))
		base_str_add(stack, "?");
	base_str_add(stack, inlined ? MODEL_INLINED_MARK : "");
	stack->failed |= clean.failed;
	base_str_fini(&clean);
}

/* "program/role" is two frames. */
static void collapsed_add_group(struct base_str *stack, const char *group)
{
	const char *slash = strchr(group, '/');
	if (!slash) {
		collapsed_add_frame(stack, group, false);
		collapsed_add_frame(stack, "main", false);
		return;
	}
	struct base_str program = {0};
	base_str_add_bytes(&program, group, (size_t)(slash - group));
	collapsed_add_frame(stack, base_str_text(&program), false);
	collapsed_add_frame(stack, slash + 1, false);
	base_str_fini(&program);
}

static enum base_status collapsed_add_weight(struct collapsed *w, double weight_ns)
{
	uint32_t id;
	enum base_status s =
		base_strtab_intern(w->stacks, base_str_text(&w->stack), w->stack.length, &id);
	if (s == BASE_OK && id >= w->capacity)
		s = base_grow(&w->weight_ns, &w->capacity, (size_t)id + 1, sizeof *w->weight_ns);
	if (s != BASE_OK || w->stack.failed || !w->weight_ns)
		return format_no_memory(w->out.err);
	w->weight_ns[id] += weight_ns;
	return BASE_OK;
}

/* ---- by path --------------------------------------------------------------------------------- */

static void cut_to(struct base_str *stack, size_t length)
{
	if (!stack->buf || stack->length < length)
		return;
	stack->length = length;
	stack->buf[length] = '\0';
}

struct collapsed_state {
	struct collapsed *w;
	size_t length; /* of the stack up to the state */
	double running_ns, rest_ns;
	enum base_status status;
};

/* The callers, outermost first, the function, and what is inlined in it. */
static bool collapsed_add_call_path(void *ctx, const struct model_call_path *p)
{
	struct collapsed_state *to = ctx;
	struct collapsed *w = to->w;
	struct model_frame frame[FRAMES_MAX];
	const char *inlined[MODEL_FRAMES_MAX];
	size_t nr = p->stack ? model_stack_frames(w->in->model, p->stack, frame, FRAMES_MAX) : 0;
	unsigned nr_inlined = p->chain ? model_chain_frames(w->in->model, p->chain, inlined) : 0;
	cut_to(&w->stack, to->length);
	for (size_t i = 0; i < nr; i++)
		if (!symbol_is_plumbing(frame[i].function))
			collapsed_add_frame(&w->stack, frame[i].function, frame[i].inlined);
	collapsed_add_frame(&w->stack, *p->function ? p->function : p->where, false);
	for (unsigned i = 0; i < nr_inlined; i++)
		collapsed_add_frame(&w->stack, inlined[i], true);
	to->rest_ns -= to->running_ns * p->share;
	to->status = collapsed_add_weight(w, to->running_ns * p->share);
	return to->status == BASE_OK;
}

static enum base_status collapsed_add_path_state(
	struct collapsed *w, const struct graph_path_state *p)
{
	base_str_reset(&w->stack);
	collapsed_add_group(&w->stack, model_actor(w->in->model, p->actor)->group);
	collapsed_add_frame(&w->stack, model_state(w->in->model, p->state)->name, false);
	struct collapsed_state to = {.w = w,
		.length = w->stack.length,
		.running_ns = p->path_ns - p->latency_ns - p->unexplained_ns,
		.rest_ns = p->path_ns};
	if (to.running_ns > 0)
		model_each_call_path(w->in->model, p->state, collapsed_add_call_path, &to);
	cut_to(&w->stack, to.length);
	return to.status == BASE_OK && to.rest_ns >= 1 ? collapsed_add_weight(w, to.rest_ns)
						       : to.status;
}

static enum base_status collapsed_by_path(struct collapsed *w)
{
	struct graph_lane_result lane;
	enum base_status s = graph_lane(model_graph(w->in->model), 0, &lane, w->out.err);
	for (size_t i = 0; s == BASE_OK && i < lane.nr_states; i++)
		s = collapsed_add_path_state(w, &lane.state[i]);
	return s;
}

/* ---- by waiting ------------------------------------------------------------------------------ */

static bool collapsed_is_waiting(enum format_slice_kind k)
{
	return k != FORMAT_SLICE_none && k != FORMAT_SLICE_hold && k != FORMAT_SLICE_state;
}

static void collapsed_add_program(struct collapsed *w, uint32_t stream)
{
	uint32_t process =
		stream < w->defs->nr_streams ? w->defs->streams[stream].process : UINT32_MAX;
	collapsed_add_frame(&w->stack,
		process < w->defs->nr_processes
			? trace_text_of(w->defs, w->defs->processes[process].name)
			: "?",
		false);
}

static enum base_status collapsed_add_wait(
	void *ctx, const struct format_slice *s, struct base_err *err)
{
	struct collapsed *w = ctx;
	struct model_frame frame[FRAMES_MAX];
	(void)err;
	if (!collapsed_is_waiting(s->kind))
		return BASE_OK;
	base_str_reset(&w->stack);
	base_str_reset(&w->label);
	collapsed_add_program(w, s->stream);
	size_t nr = s->stack ? model_stack_frames(w->in->model, s->stack, frame, FRAMES_MAX) : 0;
	for (size_t i = 0; i < nr; i++)
		collapsed_add_frame(&w->stack, frame[i].function, frame[i].inlined);
	if (!nr && s->site)
		collapsed_add_frame(&w->stack, model_site_text(w->in->model, s->site), false);
	base_str_add(&w->label, "[");
	format_slice_label(&w->label, w->defs, s);
	base_str_add(&w->label, "]");
	collapsed_add_frame(&w->stack, base_str_text(&w->label), false);
	return collapsed_add_weight(w, (double)(s->end_ns - s->begin_ns));
}

/* ---- by samples ------------------------------------------------------------------------------ */

static enum base_status collapsed_by_cpu(
	struct collapsed *w, const struct format_options *opts, struct base_err *err)
{
	struct format_samples l = {0};
	struct model_frame frame[FORMAT_FRAMES_MAX];
	enum base_status s = format_samples_init(&l, w->in, opts, err);
	for (size_t i = 0; s == BASE_OK && i < l.nr; i++) {
		size_t nr = format_sample_frames(w->in, &l.sample[i], frame);
		base_str_reset(&w->stack);
		collapsed_add_program(w, l.sample[i].stream);
		for (size_t k = 0; k < nr; k++)
			collapsed_add_frame(&w->stack, frame[k].function, frame[k].inlined);
		s = collapsed_add_weight(w, (double)format_sample_period_ns(w->in));
	}
	format_samples_fini(&l);
	return s;
}

enum base_status format_export_collapsed(const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	struct collapsed w = {
		.out = {.sink = sink, .err = err},
		.in = in,
		.defs = trace_reader_defs(in->reader),
		.stacks = base_strtab_new(),
	};
	enum base_status s = !w.stacks                            ? format_no_memory(err)
			     : opts->weight == FORMAT_WEIGHT_path ? collapsed_by_path(&w)
			     : opts->weight == FORMAT_WEIGHT_cpu
				     ? collapsed_by_cpu(&w, opts, err)
				     : format_timeline(in, opts, collapsed_add_wait, &w, err);
	uint32_t nr = s == BASE_OK && w.weight_ns ? base_strtab_count(w.stacks) : 0;
	for (uint32_t id = 1; id < nr; id++) {
		long long ns = llround(w.weight_ns[id]);
		if (ns <= 0)
			continue;
		base_str_addf(&w.out.text, "%s %lld\n", base_strtab_get(w.stacks, id), ns);
		format_out_check(&w.out);
	}
	enum base_status closed = format_out_close(&w.out);
	base_strtab_free(w.stacks);
	base_free(w.weight_ns);
	base_str_fini(&w.stack);
	base_str_fini(&w.label);
	return s != BASE_OK ? s : closed;
}
