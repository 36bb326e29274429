/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope.c - https://www.speedscope.app/file-format-schema.json: evented profiles, one for the
 * critical path, one a thread; and sampled ones, a thread's call paths with what is inlined.
 *
 * Frames are numbered while profiles are written and listed at the end: a JSON object has no order.
 */
#include "format/private.h"

#include <inttypes.h>
#include <string.h>

struct speedscope {
	struct format_out out;
	const struct format_input *in;
	const struct trace_defs *defs;
	struct format_threads threads;
	struct base_strtab *frames; /* id - 1 = frame index */
	struct base_str label;
	struct format_slices slices;
	struct format_samples samples;
	bool first_profile, first_event;
};

static uint32_t speedscope_frame_of(struct speedscope *w, const char *name)
{
	uint32_t id = 1;
	const char *text = *name ? name : "?"; /* id 0 is "", which is no frame */
	enum base_status s = base_strtab_intern(w->frames, text, strlen(text), &id);
	if (s != BASE_OK && w->out.status == BASE_OK)
		w->out.status = base_fail(w->out.err, s, "out of memory for frames");
	return s == BASE_OK ? id - 1 : 0;
}

static void begin_profile(struct speedscope *w, const char *name, uint64_t from_ns, uint64_t to_ns)
{
	base_str_add(&w->out.text, w->first_profile ? "\n" : ",\n");
	base_str_add(&w->out.text, "{\"type\":\"evented\",\"name\":");
	format_json_text(&w->out.text, name);
	base_str_addf(&w->out.text,
		",\"unit\":\"nanoseconds\",\"startValue\":%" PRIu64 ",\"endValue\":%" PRIu64
		",\"events\":[",
		from_ns, to_ns);
	w->first_profile = false;
	w->first_event = true;
}

static void speedscope_add_event(struct speedscope *w, char type, uint32_t frame, uint64_t at_ns)
{
	base_str_addf(&w->out.text, "%s{\"type\":\"%c\",\"frame\":%" PRIu32 ",\"at\":%" PRIu64 "}",
		w->first_event ? "" : ",", type, frame, at_ns);
	w->first_event = false;
	format_out_check(&w->out);
}

static void end_profile(struct speedscope *w)
{
	base_str_add(&w->out.text, "]}");
}

/* ---- profiles -------------------------------------------------------------------------------- */

static void speedscope_add_path(struct speedscope *w, const struct format_path *p)
{
	if (!p->nr)
		return;
	begin_profile(w, "critical path", p->step[0].begin_ns, p->step[p->nr - 1].end_ns);
	for (size_t i = 0; i < p->nr; i++) {
		const struct format_step *s = &p->step[i];
		const struct model_state *st = model_state(w->in->model, s->state);
		uint32_t actor = speedscope_frame_of(w, model_actor(w->in->model, s->actor)->name);
		uint32_t state = speedscope_frame_of(w, st->name);
		speedscope_add_event(w, 'O', actor, s->begin_ns);
		speedscope_add_event(w, 'O', state, s->begin_ns);
		speedscope_add_event(w, 'C', state, s->end_ns);
		speedscope_add_event(w, 'C', actor, s->end_ns);
	}
	end_profile(w);
}

/* One profile a thread: its name is the outermost frame, whose own time is running. */
static void speedscope_add_threads(struct speedscope *w)
{
	for (size_t i = 0, end; i < w->slices.nr; i = end) {
		for (end = i + 1; end < w->slices.nr &&
				  w->slices.slice[end].stream == w->slices.slice[i].stream;)
			end++;
		base_str_reset(&w->label);
		format_thread_name(&w->label, &w->threads, w->slices.slice[i].stream);
		uint64_t from_ns = w->slices.slice[i].begin_ns,
			 to_ns = w->slices.slice[end - 1].end_ns;
		begin_profile(w, format_out_text(&w->out, &w->label), from_ns, to_ns);
		uint32_t thread = speedscope_frame_of(w, format_out_text(&w->out, &w->label));
		speedscope_add_event(w, 'O', thread, from_ns);
		for (size_t k = i; k < end; k++) {
			base_str_reset(&w->label);
			format_slice_label(&w->label, w->defs, &w->slices.slice[k]);
			uint32_t frame =
				speedscope_frame_of(w, format_out_text(&w->out, &w->label));
			speedscope_add_event(w, 'O', frame, w->slices.slice[k].begin_ns);
			speedscope_add_event(w, 'C', frame, w->slices.slice[k].end_ns);
		}
		speedscope_add_event(w, 'C', thread, to_ns);
		end_profile(w);
	}
}

static uint32_t frame_of_code(struct speedscope *w, const struct model_frame *f)
{
	base_str_reset(&w->label);
	base_str_addf(&w->label, "%s%s", f->function, f->inlined ? " (inlined)" : "");
	return speedscope_frame_of(w, format_out_text(&w->out, &w->label));
}

/* One thread's samples, in number: how much time each stands for is not known to be equal. */
static void speedscope_add_samples(
	struct speedscope *w, const struct format_sample *sample, size_t nr)
{
	struct model_frame frame[FORMAT_FRAMES_MAX];
	base_str_reset(&w->label);
	format_thread_name(&w->label, &w->threads, sample->stream);
	base_str_add(&w->label, ", samples");
	base_str_add(&w->out.text, w->first_profile ? "\n" : ",\n");
	base_str_add(&w->out.text, "{\"type\":\"sampled\",\"name\":");
	format_json_text(&w->out.text, format_out_text(&w->out, &w->label));
	base_str_addf(&w->out.text,
		",\"unit\":\"none\",\"startValue\":0,\"endValue\":%zu,\"samples\":[", nr);
	for (size_t i = 0; i < nr; i++) {
		size_t nr_frames = format_sample_frames(w->in, &sample[i], frame);
		base_str_add(&w->out.text, i ? ",[" : "[");
		for (size_t k = 0; k < nr_frames; k++)
			base_str_addf(&w->out.text, "%s%" PRIu32, k ? "," : "",
				frame_of_code(w, &frame[k]));
		base_str_add(&w->out.text, "]");
		format_out_check(&w->out);
	}
	base_str_add(&w->out.text, "],\"weights\":[");
	for (size_t i = 0; i < nr; i++)
		base_str_add(&w->out.text, i ? ",1" : "1");
	base_str_add(&w->out.text, "]}");
	w->first_profile = false;
}

static void add_sampled(struct speedscope *w)
{
	const struct format_samples *l = &w->samples;
	for (size_t i = 0, end; i < l->nr; i = end) {
		for (end = i + 1; end < l->nr && l->sample[end].stream == l->sample[i].stream;)
			end++;
		speedscope_add_samples(w, &l->sample[i], end - i);
	}
}

static void speedscope_add_frames(struct speedscope *w)
{
	uint32_t nr = base_strtab_count(w->frames);
	for (uint32_t id = 1; id < nr; id++) {
		base_str_add(&w->out.text, id == 1 ? "{\"name\":" : ",{\"name\":");
		format_json_text(&w->out.text, base_strtab_get(w->frames, id));
		base_str_add(&w->out.text, "}");
		format_out_check(&w->out);
	}
}

enum base_status format_export_speedscope(const struct format_input *in,
	const struct format_options *opts, const struct format_sink *sink, struct base_err *err)
{
	struct speedscope w = {
		.out = {.sink = sink, .err = err},
		.in = in,
		.defs = trace_reader_defs(in->reader),
		.frames = base_strtab_new(),
		.first_profile = true,
	};
	struct format_path path = {0};
	enum base_status s =
		w.frames ? format_path_init(&path, in, opts, err) : format_no_memory(err);
	if (s == BASE_OK)
		s = format_threads_init(&w.threads, in, err);
	if (s == BASE_OK)
		s = format_slices_init(&w.slices, in, opts, err);
	if (s == BASE_OK)
		s = format_samples_init(&w.samples, in, opts, err);
	if (s == BASE_OK) {
		base_str_add(&w.out.text, "{\"$schema\":\"https://www.speedscope.app/"
					  "file-format-schema.json\",\"exporter\":");
		format_json_text(&w.out.text, in->tool);
		base_str_add(&w.out.text, ",\"name\":");
		format_json_text(&w.out.text, in->name);
		base_str_add(&w.out.text, ",\"activeProfileIndex\":0,\"profiles\":[");
		speedscope_add_path(&w, &path);
		speedscope_add_threads(&w);
		add_sampled(&w);
		base_str_add(&w.out.text, "\n],\"shared\":{\"frames\":[");
		speedscope_add_frames(&w);
		base_str_add(&w.out.text, "]}}\n");
	}
	enum base_status closed = format_out_close(&w.out);
	format_path_fini(&path);
	format_threads_fini(&w.threads);
	base_strtab_free(w.frames);
	base_str_fini(&w.label);
	format_slices_fini(&w.slices);
	format_samples_fini(&w.samples);
	return s != BASE_OK ? s : closed;
}
