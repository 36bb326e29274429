/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v1.c - the format of Go 1.11 to 1.21: batches of events, a lane a P; texts and stacks anywhere.
 * An event's first byte has its type, and in its upper two bits how many arguments there are less
 * one; three there mean that their length in bytes follows.
 */
#include "gotrace/private.h"

enum {
	V1_None,
#define EVENT(name, nr_args, apply, why) V1_##name,
#include "gotrace/v1.def"
	V1_NR
};
enum { V1_INLINE_ARGS = 4, V1_TEXT_MAX = 1000000 };

/* ---- bytes ----------------------------------------------------------------------------------- */

struct v1_event {
	const uint8_t *args, *end; /* the arguments' bytes */
	const uint8_t *text;       /* of a String, and of a UserLog */
	uint64_t text_bytes, text_id;
	uint8_t type;
};

/* A text with its length before it. NULL: it does not end here. */
static const uint8_t *v1_text(const uint8_t *p, const uint8_t *end, struct v1_event *ret)
{
	p = gotrace_number(p, end, &ret->text_bytes);
	if (!p || ret->text_bytes > V1_TEXT_MAX || ret->text_bytes > (uint64_t)(end - p))
		return NULL;
	ret->text = p;
	return p + ret->text_bytes;
}

/* Any event's extent. NULL: it does not end before `end`, or is none. */
static const uint8_t *v1_next(const uint8_t *p, const uint8_t *end, struct v1_event *ret)
{
	uint64_t v = 0;
	*ret = (struct v1_event){0};
	if (p == end)
		return NULL;
	unsigned nr = (*p >> 6) + 1u;
	ret->type = *p++ & 0x3f;
	if (ret->type == V1_String) {
		p = gotrace_number(p, end, &ret->text_id);
		return p ? v1_text(p, end, ret) : NULL;
	}
	if (nr >= V1_INLINE_ARGS) {
		p = gotrace_number(p, end, &v);
		if (!p || v > (uint64_t)(end - p))
			return NULL;
		ret->args = p;
		p += v;
	} else {
		ret->args = p;
		for (unsigned i = 0; i < nr && p; i++)
			p = gotrace_number(p, end, &v);
	}
	ret->end = p;
	return p && ret->type == V1_UserLog ? v1_text(p, end, ret) : p;
}

static unsigned v1_args(const struct v1_event *e, uint64_t arg[GOTRACE_ARGS_MAX])
{
	unsigned nr = 0;
	for (const uint8_t *p = e->args; p && p < e->end && nr < GOTRACE_ARGS_MAX; nr++) {
		p = gotrace_number(p, e->end, &arg[nr]);
		if (!p)
			break;
	}
	return nr;
}

static const uint8_t v1_least[V1_NR] = {
#define EVENT(name, nr_args, apply, why) [V1_##name] = (nr_args),
#include "gotrace/v1.def"
};

static bool v1_decode(struct gotrace_merge *m, struct gotrace_lane *l, const uint8_t **p,
	const uint8_t *end, struct gotrace_raw *ret)
{
	struct v1_event e;
	(void)m;
	while (*p < end) {
		const uint8_t *next = v1_next(*p, end, &e);
		if (!next)
			return false;
		*p = next;
		if (e.type <= V1_Stack || e.type == V1_String || e.type == V1_TimerGoroutine ||
			e.type >= V1_NR)
			continue; /* of the file's structure, or new */
		ret->nr_args = v1_args(&e, ret->arg);
		if (ret->nr_args < v1_least[e.type])
			return false;
		l->ticks += ret->arg[0];
		ret->ticks = l->ticks;
		ret->type = e.type;
		return true;
	}
	return false;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Does the goroutine stand as the event needs it? Events between lanes carry its sequence number,
 * others follow what it was in their own lane. */
static bool v1_is(const struct gotrace_merge *m, uint64_t g, unsigned status, bool numbered,
	uint64_t sequence)
{
	struct gotrace_standing s;
	return gotrace_standing(&m->g, g, &s) && s.status == status &&
	       (!numbered || s.sequence == sequence);
}

static bool v1_is_ready(
	const struct gotrace_merge *m, const struct gotrace_lane *l, const struct gotrace_raw *r)
{
	(void)l;
	switch (r->type) {
	case V1_GoStart:
	case V1_GoStartLabel:
		return v1_is(m, r->arg[1], GOTRACE_STATUS_runnable, true, r->arg[2]);
	case V1_GoStartLocal:
		return v1_is(m, r->arg[1], GOTRACE_STATUS_runnable, false, 0);
	case V1_GoUnblock:
	case V1_GoSysExit:
		return v1_is(m, r->arg[1], GOTRACE_STATUS_waiting, true, r->arg[2]);
	case V1_GoUnblockLocal:
	case V1_GoSysExitLocal:
		return v1_is(m, r->arg[1], GOTRACE_STATUS_waiting, false, 0);
	case V1_GoWaiting:
	case V1_GoInSyscall:
		return v1_is(m, r->arg[1], GOTRACE_STATUS_runnable, false, 0);
	default:
		return true;
	}
}

/* Its next status; with one more in its sequence, or what the event says. */
static void v1_set(struct gotrace_merge *m, uint64_t g, unsigned status, unsigned more)
{
	struct gotrace_standing s = {0};
	(void)gotrace_standing(&m->g, g, &s);
	gotrace_set_standing(m, &m->g, g, s.sequence + more, status);
}

/* ---- what each event says -------------------------------------------------------------------- */

#define V1_APPLY(name)                                                                             \
	static void v1_##name(                                                                     \
		struct gotrace_merge *m, struct gotrace_lane *l, const struct gotrace_raw *r)

static const char *const v1_why[V1_NR] = {
#define EVENT(name, nr_args, apply, why) [V1_##name] = (why),
#include "gotrace/v1.def"
};

static struct gotrace_event v1_event_of(struct gotrace_merge *m, const struct gotrace_lane *l,
	enum gotrace_kind kind, uint64_t stack)
{
	return (struct gotrace_event){.kind = (uint8_t)kind,
		.g = l->g,
		.p = (uint32_t)l->key,
		.stack = gotrace_stack_of(m, stack)};
}

V1_APPLY(nothing)
{
	(void)m;
	(void)l;
	(void)r;
}

V1_APPLY(procs)
{
	struct gotrace_event e = v1_event_of(m, l, GOTRACE_procs, 0);
	e.other = r->arg[1];
	gotrace_add(m, r->ticks, e);
}

static void v1_range(struct gotrace_merge *m, struct gotrace_lane *l, const struct gotrace_raw *r,
	enum gotrace_kind kind, bool has_stack)
{
	struct gotrace_event e =
		v1_event_of(m, l, kind, has_stack && r->nr_args ? r->arg[r->nr_args - 1] : 0);
	e.text = gotrace_own_text(m, v1_why[r->type]);
	gotrace_add(m, r->ticks, e);
}
V1_APPLY(gc_begin)
{
	v1_range(m, l, r, GOTRACE_gc_begin, true);
}
V1_APPLY(gc_end)
{
	v1_range(m, l, r, GOTRACE_gc_end, false);
}
V1_APPLY(stw_begin)
{
	v1_range(m, l, r, GOTRACE_stw_begin, false);
}
V1_APPLY(stw_end)
{
	v1_range(m, l, r, GOTRACE_stw_end, false);
}
V1_APPLY(sweep_begin)
{
	v1_range(m, l, r, GOTRACE_sweep_begin, true);
}
V1_APPLY(sweep_end)
{
	v1_range(m, l, r, GOTRACE_sweep_end, false);
}
V1_APPLY(assist_begin)
{
	v1_range(m, l, r, GOTRACE_assist_begin, true);
}
V1_APPLY(assist_end)
{
	v1_range(m, l, r, GOTRACE_assist_end, false);
}

/* Before a lane's first goroutine runs: the tracer tells of those that there are. */
V1_APPLY(create)
{
	struct gotrace_event e =
		v1_event_of(m, l, l->g ? GOTRACE_create : GOTRACE_exists, r->arg[3]);
	e.other = r->arg[1];
	e.new_stack = gotrace_stack_of(m, r->arg[2]);
	if (!l->g) {
		e.g = e.other;
		e.status = GOTRACE_STATUS_runnable;
		e.p = GOTRACE_NO_P;
	}
	gotrace_set_standing(m, &m->g, r->arg[1], 1, GOTRACE_STATUS_runnable);
	gotrace_add(m, r->ticks, e);
}

V1_APPLY(start)
{
	l->g = r->arg[1];
	v1_set(m, l->g, GOTRACE_STATUS_running, 1);
	gotrace_add(m, r->ticks, v1_event_of(m, l, GOTRACE_start, 0));
}

static void v1_leave(struct gotrace_merge *m, struct gotrace_lane *l, const struct gotrace_raw *r,
	enum gotrace_kind kind, enum gotrace_status status)
{
	struct gotrace_event e = v1_event_of(m, l, kind, r->nr_args > 1 ? r->arg[1] : 0);
	e.text = gotrace_own_text(m, v1_why[r->type]);
	if (!l->g)
		return;
	v1_set(m, l->g, status, 0);
	gotrace_add(m, r->ticks, e);
	l->g = 0;
}
V1_APPLY(end)
{
	v1_leave(m, l, r, GOTRACE_end, GOTRACE_STATUS_dead);
}
V1_APPLY(stop)
{
	v1_leave(m, l, r, GOTRACE_stop, GOTRACE_STATUS_runnable);
}
V1_APPLY(block)
{
	v1_leave(m, l, r, GOTRACE_block, GOTRACE_STATUS_waiting);
}

V1_APPLY(unblock)
{
	struct gotrace_event e = v1_event_of(m, l, GOTRACE_unblock, r->arg[r->nr_args - 1]);
	uint64_t unused;
	e.other = r->arg[1];
	if (base_map_get(&m->timers, 0, l->g, &unused))
		e.g = 0;
	v1_set(m, e.other, GOTRACE_STATUS_runnable, 1);
	gotrace_add(m, r->ticks, e);
}

/* Told of each call; whether it lasts says only a GoSysBlock after it. */
V1_APPLY(call)
{
	struct gotrace_event e = v1_event_of(m, l, GOTRACE_call_begin, r->arg[1]);
	l->in_call = true;
	gotrace_add(m, r->ticks, e);
}

V1_APPLY(call_away)
{
	if (!l->g)
		return;
	v1_set(m, l->g, GOTRACE_STATUS_waiting, 0);
	gotrace_add(m, r->ticks, v1_event_of(m, l, GOTRACE_call_away, 0));
	l->g = 0;
}

V1_APPLY(call_return)
{
	struct gotrace_event e = v1_event_of(m, l, GOTRACE_call_return, 0);
	uint64_t real_ticks = r->arg[r->nr_args - 1];
	e.g = r->arg[1];
	e.p = GOTRACE_NO_P;
	v1_set(m, e.g, GOTRACE_STATUS_runnable, 1);
	gotrace_add(m, real_ticks && real_ticks < r->ticks ? real_ticks : r->ticks, e);
}

static void v1_told(
	struct gotrace_merge *m, const struct gotrace_raw *r, enum gotrace_status status)
{
	struct gotrace_event e = {.kind = GOTRACE_exists,
		.g = r->arg[1],
		.p = GOTRACE_NO_P,
		.status = (uint8_t)status};
	v1_set(m, e.g, GOTRACE_STATUS_waiting, 1);
	gotrace_add(m, r->ticks, e);
}
V1_APPLY(waiting)
{
	(void)l;
	v1_told(m, r, GOTRACE_STATUS_waiting);
}
V1_APPLY(in_call)
{
	(void)l;
	v1_told(m, r, GOTRACE_STATUS_syscall);
}

V1_APPLY(region)
{
	bool ends = r->arg[2] != 0;
	struct gotrace_event e = v1_event_of(
		m, l, ends ? GOTRACE_region_end : GOTRACE_region_begin, r->arg[r->nr_args - 1]);
	e.other = r->arg[1];
	e.text = gotrace_text_of(m, r->arg[3]);
	gotrace_add(m, r->ticks, e);
}

V1_APPLY(sample)
{
	(void)l;
	if (base_grow(&m->sample, &m->sample_capacity, m->nr_samples + 1, sizeof *m->sample) !=
		BASE_OK) {
		gotrace_fail(m, BASE_ERR_NOMEM, "samples");
		return;
	}
	m->sample[m->nr_samples++] = (struct gotrace_event){.kind = GOTRACE_sample,
		.time_ns = r->arg[1],
		.p = (uint32_t)r->arg[2],
		.g = r->arg[3],
		.stack = gotrace_stack_of(m, r->arg[4])};
}

static void v1_apply(struct gotrace_merge *m, struct gotrace_lane *l, const struct gotrace_raw *r)
{
	static void (*const apply[V1_NR])(
		struct gotrace_merge *, struct gotrace_lane *, const struct gotrace_raw *) = {
		v1_nothing,
#define EVENT(name, nr_args, apply, why) v1_##apply,
#include "gotrace/v1.def"
	};
	apply[r->type](m, l, r);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* pc, function, file and line of each frame follow the id and their number. */
static void v1_stack(struct gotrace_merge *m, const struct v1_event *e)
{
	uint64_t id = 0, nr = 0, arg[4 * GOTRACE_FRAMES_MAX];
	const uint8_t *p = gotrace_number(e->args, e->end, &id);
	p = p ? gotrace_number(p, e->end, &nr) : NULL;
	if (!p || !id || nr > GOTRACE_FRAMES_MAX)
		return;
	for (size_t i = 0; i < 4 * nr; i++) {
		p = gotrace_number(p, e->end, &arg[i]);
		if (!p)
			return;
	}
	gotrace_keep_stack(m, id, arg, (size_t)nr);
}

static void v1_timer(struct gotrace_merge *m, const struct v1_event *e)
{
	uint64_t arg[GOTRACE_ARGS_MAX];
	if (v1_args(e, arg) && base_map_put(&m->timers, 0, arg[0], 1) != BASE_OK)
		gotrace_fail(m, BASE_ERR_NOMEM, "timers");
}

static void v1_frequency(struct gotrace_merge *m, const struct v1_event *e)
{
	uint64_t arg[GOTRACE_ARGS_MAX];
	if (v1_args(e, arg) && arg[0] && arg[0] < UINT64_MAX / 2)
		m->ns_per_tick = 1e9 / (double)arg[0];
}

/* Texts and timers in a first pass; in a second one batches, stacks and the frequency. */
static void v1_scan(struct gotrace_merge *m, const uint8_t *p, const uint8_t *end, bool first)
{
	struct gotrace_batch b = {0};
	struct v1_event e;
	const uint8_t *next;
	uint64_t arg[GOTRACE_ARGS_MAX];
	for (; p < end && m->status == BASE_OK && (next = v1_next(p, end, &e)); p = next) {
		if (e.type == V1_String && first)
			gotrace_keep_text(m, e.text_id, e.text, e.text_bytes);
		else if (e.type == V1_TimerGoroutine && first)
			v1_timer(m, &e);
		else if (e.type == V1_Stack && !first)
			v1_stack(m, &e);
		else if (e.type == V1_Frequency && !first)
			v1_frequency(m, &e);
		if (e.type != V1_Batch || first || v1_args(&e, arg) < 2)
			continue;
		b.end = p;
		if (b.p)
			gotrace_add_batch(m, &b);
		b = (struct gotrace_batch){.p = next, .lane = arg[0], .ticks = arg[1]};
	}
	b.end = p;
	if (b.p)
		gotrace_add_batch(m, &b);
	if (p < end && !first)
		m->t->is_cut = true;
}

enum base_status gotrace_read_v1(
	struct gotrace *t, const uint8_t *bytes, size_t nr_bytes, struct base_err *err)
{
	static const struct gotrace_format format = {v1_decode, v1_is_ready, v1_apply};
	struct gotrace_merge m = {
		.t = t, .format = &format, .err = err, .origin_ticks = UINT64_MAX};
	const uint8_t *p = bytes + GOTRACE_HEADER_BYTES, *end = bytes + nr_bytes;
	v1_scan(&m, p, end, true);
	v1_scan(&m, p, end, false);
	for (size_t i = 0; i < m.nr_batches; i++)
		if (m.batch[i].ticks < m.origin_ticks)
			m.origin_ticks = m.batch[i].ticks;
	if (m.status == BASE_OK && m.ns_per_tick <= 0)
		gotrace_fail(&m, BASE_ERR_FOREIGN,
			"it is cut before its end, where the length of its clock's tick stands: "
			"trace "
			"again, and let trace.Stop() return before the program ends");
	if (m.status == BASE_OK)
		gotrace_merge_batches(&m);
	if (m.status == BASE_OK)
		gotrace_merge_samples(&m);
	gotrace_merge_fini(&m);
	return m.status;
}
