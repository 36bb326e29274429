/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xla_import.c - `import xla`: an XSpace (*.xplane.pb), which JAX's and TensorFlow's profilers write, as slices in lanes. Its
 * planes are devices and the host, their lines streams and threads. What a stream does and the call that launched it
 * share the stat "correlation_id". (openxla/xprof, xplane.proto.)
 */
#include "runtime/gpu/gpu.h"

#include "format/wire.h"

#include <inttypes.h>
#include <string.h>

enum { XLA_PS_PER_NS = 1000 };
enum { /* fields of the messages that are read */
	XSPACE_PLANE = 1,
	XPLANE_NAME = 2,
	XPLANE_LINE = 3,
	XPLANE_EVENT_NAMES = 4,
	XPLANE_STAT_NAMES = 5,
	XMAP_KEY = 1,
	XMAP_VALUE = 2,
	XNAMED_NAME = 2, /* of both, event and stat metadata */
	XLINE_ID = 1,
	XLINE_NAME = 2,
	XLINE_TIME_NS = 3,
	XLINE_EVENT = 4,
	XEVENT_NAME = 1,
	XEVENT_OFFSET_PS = 2,
	XEVENT_DURATION_PS = 3,
	XEVENT_STAT = 4,
	XSTAT_NAME = 1,
	XSTAT_UNSIGNED = 3,
	XSTAT_SIGNED = 4,
};

struct xla_span { /* a message within another */
	const uint8_t *at, *end;
};
struct xla {
	struct gpu_trace g;
	struct base_map events, stats; /* of the plane: ids -> text */
	uint32_t device;               /* index of the plane */
	bool is_device;
	struct base_str text;
	uint64_t nr_damaged;
};

/* ---- messages ---------------------------------------------------------------------------------- */

/* The next field; false: there is none, or it is damaged, which is counted. */
static bool xla_next(struct xla *x, struct xla_span *m, struct format_wire_field *f)
{
	const uint8_t *next = m->at < m->end ? format_wire_next(m->at, m->end, f) : NULL;
	x->nr_damaged += !next && m->at != m->end;
	m->at = next ? next : m->end;
	return next;
}

static struct xla_span xla_within(const struct format_wire_field *f)
{
	bool is_message = f->type == FORMAT_WIRE_bytes;
	return (struct xla_span){
		is_message ? f->bytes : NULL, is_message ? f->bytes + f->value : NULL};
}

static uint32_t xla_text(struct xla *x, const struct format_wire_field *f)
{
	if (f->type != FORMAT_WIRE_bytes)
		return 0;
	base_str_reset(&x->text);
	base_str_add_bytes(&x->text, (const char *)f->bytes, f->value);
	x->g.failed |= x->text.failed;
	return format_gpu_text(&x->g, base_str_text(&x->text));
}

/* An entry of a map from ids to what has a name. */
static void xla_name(struct xla *x, struct base_map *to, struct xla_span entry)
{
	struct format_wire_field f;
	uint64_t id = 0;
	uint32_t name = 0;
	while (xla_next(x, &entry, &f)) {
		if (f.number == XMAP_KEY && f.type == FORMAT_WIRE_varint)
			id = f.value;
		if (f.number != XMAP_VALUE)
			continue;
		struct xla_span value = xla_within(&f);
		while (xla_next(x, &value, &f))
			if (f.number == XNAMED_NAME)
				name = xla_text(x, &f);
	}
	x->g.failed |= base_map_put(to, 0, id, name) != BASE_OK;
}

static const char *xla_name_of(const struct xla *x, const struct base_map *names, uint64_t id)
{
	uint64_t text;
	return base_map_get(names, 0, id, &text) ? base_strtab_get(x->g.texts, (uint32_t)text) : "";
}

/* ---- events ------------------------------------------------------------------------------------ */

struct xla_event {
	uint64_t name, offset_ps, duration_ps;
	int64_t correlation, step; /* step: -1: none */
};

static void xla_stat(struct xla *x, struct xla_span m, struct xla_event *e)
{
	struct format_wire_field f;
	uint64_t name = 0, value = 0;
	while (xla_next(x, &m, &f)) {
		if (f.type != FORMAT_WIRE_varint)
			continue;
		if (f.number == XSTAT_NAME)
			name = f.value;
		if (f.number == XSTAT_UNSIGNED || f.number == XSTAT_SIGNED)
			value = f.value;
	}
	const char *what = xla_name_of(x, &x->stats, name);
	if (!strcmp(what, "correlation_id"))
		e->correlation = (int64_t)value;
	else if (!strcmp(what, "step_num"))
		e->step = (int64_t)value;
}

static struct xla_event xla_event_of(struct xla *x, struct xla_span m)
{
	struct xla_event e = {.step = -1};
	struct format_wire_field f;
	while (xla_next(x, &m, &f)) {
		if (f.number == XEVENT_STAT)
			xla_stat(x, xla_within(&f), &e);
		if (f.type != FORMAT_WIRE_varint)
			continue;
		if (f.number == XEVENT_NAME)
			e.name = f.value;
		else if (f.number == XEVENT_OFFSET_PS)
			e.offset_ps = f.value;
		else if (f.number == XEVENT_DURATION_PS)
			e.duration_ps = f.value;
	}
	return e;
}

/* On the host: a call has a correlation, a step has a number, the rest are functions. */
static void xla_of_host(
	struct xla *x, const struct xla_event *e, const char *name, struct gpu_slice *s)
{
	s->kind = e->correlation ? GPU_CALL : GPU_OP;
	s->what = e->correlation ? format_gpu_call_of(name) : 0;
	if (e->step >= 0 || format_gpu_note_of(&x->g, name) == GPU_NOTE_STEP) {
		s->kind = GPU_NOTE;
		s->what = GPU_NOTE_STEP;
	}
	if (e->step < 0)
		return;
	base_str_reset(&x->text);
	base_str_addf(&x->text, "%s#%" PRId64, name, e->step);
	x->g.failed |= x->text.failed;
	s->name = format_gpu_text(&x->g, base_str_text(&x->text));
}

static void xla_of_device(struct xla *x, const char *name, struct gpu_slice *s)
{
	s->kind = GPU_DEVICE;
	s->what = !strncmp(name, "Mem", 3) ? GPU_COPY : GPU_KERNEL;
	if (!format_gpu_is_collective(name))
		return;
	s->what = GPU_COLLECTIVE;
	s->more = format_gpu_add_more(
		&x->g, (struct gpu_more){
			       .operation = s->name, .source = -1, .target = -1, .sequence = -1});
}

static void xla_event(struct xla *x, struct xla_span m, int64_t time_ns, uint32_t lane)
{
	struct xla_event e = xla_event_of(x, m);
	struct gpu_slice s = {.lane = lane, .correlation = e.correlation};
	int64_t offset_ns = (int64_t)(e.offset_ps / XLA_PS_PER_NS),
		end_ns = (int64_t)((e.offset_ps + e.duration_ps) / XLA_PS_PER_NS);
	if (e.offset_ps + e.duration_ps < e.offset_ps || time_ns < 0 ||
		__builtin_add_overflow(time_ns, offset_ns, &s.begin_ns) ||
		__builtin_add_overflow(time_ns, end_ns, &s.end_ns)) {
		x->g.counts.nr_damaged++;
		return;
	}
	const char *name = xla_name_of(x, &x->events, e.name);
	s.name = format_gpu_text(&x->g, *name ? name : "?");
	if (x->is_device)
		xla_of_device(x, name, &s);
	else
		xla_of_host(x, &e, name, &s);
	format_gpu_add(&x->g, s);
}

/* ---- lines and planes -------------------------------------------------------------------------- */

/* Of a device's lines only those that are queues of work: others show the same again, grouped. */
static bool xla_is_stream(const char *name)
{
	return !strncmp(name, "Stream", 6) || !strcmp(name, "XLA Ops");
}

static void xla_line(struct xla *x, struct xla_span line)
{
	struct format_wire_field f;
	struct xla_span m = line;
	int64_t id = 0, time_ns = 0;
	uint32_t name = 0;
	while (xla_next(x, &m, &f)) {
		if (f.number == XLINE_NAME)
			name = xla_text(x, &f);
		else if (f.number == XLINE_ID && f.type == FORMAT_WIRE_varint)
			id = (int64_t)f.value;
		else if (f.number == XLINE_TIME_NS && f.type == FORMAT_WIRE_varint)
			time_ns = (int64_t)f.value;
	}
	if (x->is_device && !xla_is_stream(base_strtab_get(x->g.texts, name)))
		return;
	uint32_t lane = format_gpu_lane(&x->g, x->is_device, 0, x->device, id);
	if (lane == GPU_NONE)
		return;
	x->g.lane[lane].name = name;
	for (m = line; xla_next(x, &m, &f) && !x->g.failed;)
		if (f.number == XLINE_EVENT)
			xla_event(x, xla_within(&f), time_ns, lane);
}

/* Names may stand behind the lines that use them. */
static void xla_plane(struct xla *x, struct xla_span plane)
{
	static const char device[] = "/device:", host[] = "/host:";
	struct format_wire_field f;
	struct xla_span m = plane;
	const char *name = "";
	base_map_fini(&x->events);
	base_map_fini(&x->stats);
	x->events = x->stats = (struct base_map){0};
	while (xla_next(x, &m, &f) && !x->g.failed) {
		if (f.number == XPLANE_NAME)
			name = base_strtab_get(x->g.texts, xla_text(x, &f));
		else if (f.number == XPLANE_EVENT_NAMES)
			xla_name(x, &x->events, xla_within(&f));
		else if (f.number == XPLANE_STAT_NAMES)
			xla_name(x, &x->stats, xla_within(&f));
	}
	x->is_device = !strncmp(name, device, sizeof device - 1);
	if (!x->is_device && strncmp(name, host, sizeof host - 1) != 0)
		return;
	for (m = plane; xla_next(x, &m, &f) && !x->g.failed;)
		if (f.number == XPLANE_LINE)
			xla_line(x, xla_within(&f));
	x->device += x->is_device;
}

enum base_status format_import_xla(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	struct xla x = {0};
	struct format_wire_field f;
	char *bytes = NULL;
	size_t length = 0;
	enum base_status s = format_gpu_trace_init(&x.g)
				     ? format_read_all(from, &bytes, &length, err)
				     : base_fail(err, BASE_ERR_NOMEM, "out of memory");
	struct xla_span space = {0};
	if (bytes)
		space = (struct xla_span){(const uint8_t *)bytes, (const uint8_t *)bytes + length};
	x.g.step = opts->step;
	if (s == BASE_OK)
		format_gpu_add_rank(&x.g, 0, from->name);
	while (s == BASE_OK && !x.g.failed && xla_next(&x, &space, &f))
		if (f.number == XSPACE_PLANE)
			xla_plane(&x, xla_within(&f));
	if (s == BASE_OK && !x.g.failed && !x.g.nr)
		s = base_fail(err, BASE_ERR_FOREIGN,
			"has no plane of a device or host with events in it: it is no XSpace "
			"(plugins/profile/*/*.xplane.pb)");
	if (s == BASE_OK)
		s = format_gpu_convert(&x.g, from->name, to, notes, err);
	if (s == BASE_OK) {
		format_note_count(notes, x.nr_damaged,
			"%s {message is|messages are} damaged or cut: imported as far as {it "
			"goes|they go}");
		trace_writer_count(
			to, TRACE_DIAG_import_skipped, x.nr_damaged + x.g.counts.nr_damaged);
	}
	base_map_fini(&x.events);
	base_map_fini(&x.stats);
	base_str_fini(&x.text);
	format_gpu_trace_fini(&x.g);
	base_free(bytes);
	return s;
}
