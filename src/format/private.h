/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - shared by the files of format/, not beyond. */
#ifndef LONGPOLE_FORMAT_PRIVATE_H
#define LONGPOLE_FORMAT_PRIVATE_H

#include "format/format.h"

/* In sight of analysers: it never returns BASE_OK. */
static inline enum base_status format_no_memory(struct base_err *err)
{
	base_fail(err, BASE_ERR_NOMEM, "out of memory for the export");
	return BASE_ERR_NOMEM;
}

/* ---- output: gathered, then given to the sink ------------------------------------------------ */

struct format_out {
	struct base_str text;
	const struct format_sink *sink;
	struct base_err *err;
	enum base_status status; /* the first failure; later calls do nothing */
};
void format_out_check(struct format_out *o); /* hand over when there is much: call between items */
enum base_status format_out_close(struct format_out *o) BASE_MUST_CHECK;

/* A text that was put together in a string of its own; that there was no memory for it counts. */
static inline const char *format_out_text(struct format_out *o, const struct base_str *text)
{
	o->text.failed |= text->failed;
	return base_str_text(text);
}

void format_clean_add(
	struct base_str *out, const char *text); /* valid UTF-8, no control characters */
void format_json_text(struct base_str *out, const char *text); /* quoted */

/* ---- threads' slices ------------------------------------------------------------------------- */

enum format_slice_kind {
	FORMAT_SLICE_none, /* runs */
	FORMAT_SLICE_wait,
	FORMAT_SLICE_io,
	FORMAT_SLICE_poll,
	FORMAT_SLICE_sleep,
	FORMAT_SLICE_runnable,
	FORMAT_SLICE_blocked,
	FORMAT_SLICE_hold,
	FORMAT_SLICE_state,
};
enum { FORMAT_WAIT_object, FORMAT_WAIT_join, FORMAT_WAIT_child, FORMAT_WAIT_space };
struct format_slice {
	uint64_t begin_ns, end_ns;
	uint32_t stream;
	enum format_slice_kind kind;
	uint32_t object,
		detail;       /* detail: FORMAT_WAIT_*, enum trace_io, or an annotated state's id */
	uint32_t site, stack; /* where it began; call path, 0: not taken */
};
/* Calls visit for each slice, when it ends; of one stream in the order of time, without overlap.
 * Stops at the first status that is not BASE_OK. Applies from, to, min_duration and thread. */
typedef enum base_status format_slice_fn(
	void *ctx, const struct format_slice *s, struct base_err *err);
enum base_status format_timeline(const struct format_input *in, const struct format_options *opts,
	format_slice_fn *visit, void *ctx, struct base_err *err) BASE_MUST_CHECK;
/* Refuses when there are more slices and steps than max, with the flags to use. */
enum base_status format_guard(const struct format_input *in, const struct format_options *opts,
	const char *format, uint64_t max_events, struct base_err *err) BASE_MUST_CHECK;

/* "wait: mutex m", "read: pipe 12", "holds mutex m": into an empty string. */
void format_slice_label(
	struct base_str *out, const struct trace_defs *d, const struct format_slice *s);
/* "prog/worker 1234": its own name if it has one, else its start routine's. */
struct format_threads {
	const struct format_input *in;
	struct base_map actor_of; /* (pid, tid) -> actor; of a reused tid the last */
};
enum base_status format_threads_init(struct format_threads *t, const struct format_input *in,
	struct base_err *err) BASE_MUST_CHECK;
void format_threads_fini(struct format_threads *t);
void format_thread_name(struct base_str *out, const struct format_threads *t, uint32_t stream);

/* All of them, sorted by stream and time. */
struct format_slices {
	struct format_slice *slice;
	size_t nr, capacity;
};
enum base_status format_slices_init(struct format_slices *l, const struct format_input *in,
	const struct format_options *opts, struct base_err *err) BASE_MUST_CHECK;
void format_slices_fini(struct format_slices *l);
/* The stream's slice that covers the time (its end included); NULL: none, it runs. */
const struct format_slice *format_slices_at(
	const struct format_slices *l, uint32_t stream, uint64_t time_ns);

/* ---- samples --------------------------------------------------------------------------------- */

struct format_sample {
	uint64_t time_ns;
	uint32_t stream, site, stack;
};
struct format_samples { /* those of the window, sorted by stream and time */
	struct format_sample *sample;
	size_t nr, capacity;
};
enum base_status format_samples_init(struct format_samples *l, const struct format_input *in,
	const struct format_options *opts, struct base_err *err) BASE_MUST_CHECK;
void format_samples_fini(struct format_samples *l);
uint64_t format_sample_period_ns(const struct format_input *in); /* between two, of a thread */
/* Its call path and what is inlined, outermost first; 0: nothing is known. */
enum { FORMAT_FRAMES_MAX = 128 };
size_t format_sample_frames(const struct format_input *in, const struct format_sample *sample,
	struct model_frame ret[static FORMAT_FRAMES_MAX]);

/* "wait", "io", ...: one word a kind. */
const char *format_slice_kind_name(enum format_slice_kind k);

/* ---- dependences and queues ------------------------------------------------------------------ */

/* Is it in the window, long enough, and between two threads (wanted ones)? Their streams. */
bool format_dependence_wanted(const struct format_input *in, const struct format_options *opts,
	const struct format_dependence *d, uint32_t *ret_from, uint32_t *ret_to);
/* "mutex m", "room in pipe 7"; "a link". Into an empty string. */
void format_dependence_label(
	struct base_str *out, const struct format_input *in, const struct format_dependence *d);
/* A queue whose occupancy means something: not a lock's token, not a helper. */
bool format_level_wanted(const struct format_input *in, const struct format_options *opts,
	const struct format_level *l);
/* Notes what format_events left out. */
void format_events_note(const struct format_input *in);

/* ---- the path -------------------------------------------------------------------------------- */

struct format_step { /* neighbouring edges of one actor and state */
	uint64_t begin_ns, end_ns;
	uint32_t actor, state;
};
struct format_path {
	struct format_step *step;
	size_t nr, capacity;
};
enum base_status format_path_init(struct format_path *p, const struct format_input *in,
	const struct format_options *opts, struct base_err *err) BASE_MUST_CHECK;
void format_path_fini(struct format_path *p);

#define FORMAT(name, suffix, max_events, flags, doc)                                               \
	enum base_status format_export_##name(const struct format_input *in,                       \
		const struct format_options *opts, const struct format_sink *sink,                 \
		struct base_err *err) BASE_MUST_CHECK;
#include "format/formats.def"

#define IMPORT(name, flags, started, doc)                                                          \
	enum base_status format_import_##name(const struct format_source *from,                    \
		struct trace_writer *to, const struct format_import_options *opts,                 \
		struct base_str *notes, struct base_err *err) BASE_MUST_CHECK;
#include "format/imports.def"
enum base_status format_started_ctf(const struct format_source *from, struct format_started *ret,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status format_started_go(const struct format_source *from, struct format_started *ret,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status format_started_perf(const struct format_source *from, struct format_started *ret,
	struct base_err *err) BASE_MUST_CHECK;

/* A line of the notes when n is not zero; its %s is the number. */
void format_note_count(struct base_str *notes, uint64_t n, const char *fmt);

#endif
