/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2.c - the format of Go 1.22 and newer: generations of about a second, each of which tells anew
 * who stands where; batches of events, a lane a thread (M), which has a P and a goroutine, or not.
 */
#include "gotrace/private.h"

#include <string.h>

enum {
	V2_None,
#define EVENT(name, nr_args) V2_##name,
#include "gotrace/v2.def"
	V2_NR
};
enum { V2_EXPERIMENTS = 128, V2_BATCH_BYTES_MAX = 1 << 20, V2_FIRST_SYNC = 25 };
enum { V2_P_BAD, V2_P_RUNNING, V2_P_IDLE, V2_P_SYSCALL, V2_P_ABANDONED };

static const uint8_t v2_nr_args[V2_NR] = {
#define EVENT(name, nr_args) [V2_##name] = (nr_args),
#include "gotrace/v2.def"
};
/* Of the allocator's experiment: nothing is done with them, but they may stand between others. */
static const uint8_t v2_nr_experiment_args[] = {4, 4, 2, 3, 3, 2, 3, 3, 2};

/* ---- bytes ----------------------------------------------------------------------------------- */

static bool v2_decode(struct gotrace_merge *m, struct gotrace_lane *l, const uint8_t **p,
	const uint8_t *end, struct gotrace_raw *ret)
{
	const uint8_t *at = *p;
	(void)m;
	unsigned type = *at++, experiment = type - V2_EXPERIMENTS;
	if (type < V2_NR)
		ret->nr_args = v2_nr_args[type];
	else if (type >= V2_EXPERIMENTS && experiment < BASE_COUNT(v2_nr_experiment_args))
		ret->nr_args = v2_nr_experiment_args[experiment];
	if (!ret->nr_args)
		return false;
	for (unsigned i = 0; i < ret->nr_args; i++) {
		at = gotrace_number(at, end, &ret->arg[i]);
		if (!at)
			return false;
	}
	*p = at;
	l->ticks += ret->arg[0];
	ret->ticks = l->ticks;
	ret->type = (uint8_t)type;
	return true;
}

/* ---- order ----------------------------------------------------------------------------------- */

static bool v2_follows(const struct base_map *map, uint64_t id, uint64_t sequence, unsigned status)
{
	struct gotrace_standing s;
	return gotrace_standing(map, id, &s) && s.sequence + 1 == sequence &&
	       (!status || s.status == status);
}

static bool v2_is_ready(
	const struct gotrace_merge *m, const struct gotrace_lane *l, const struct gotrace_raw *r)
{
	struct gotrace_standing p;
	switch (r->type) {
	case V2_GoStart:
		return v2_follows(&m->g, r->arg[1], r->arg[2], GOTRACE_STATUS_runnable);
	case V2_GoUnblock:
	case V2_GoSwitch:
	case V2_GoSwitchDestroy:
		return v2_follows(&m->g, r->arg[1], r->arg[2], GOTRACE_STATUS_waiting);
	case V2_ProcStart:
		return v2_follows(&m->p, r->arg[1], r->arg[2], V2_P_IDLE);
	case V2_ProcSteal:
		return v2_follows(&m->p, r->arg[1], r->arg[2], 0);
	case V2_GoSyscallBegin:
		return l->p == GOTRACE_NO_P || v2_follows(&m->p, l->p, r->arg[1], 0);
	case V2_GoSyscallEndBlocked: /* somebody has taken its P */
		return l->p == GOTRACE_NO_P || !gotrace_standing(&m->p, l->p, &p) ||
		       p.status != V2_P_SYSCALL;
	default:
		return true;
	}
}

/* ---- what each event says -------------------------------------------------------------------- */

#define V2_APPLY(name)                                                                             \
	static void v2_##name(                                                                     \
		struct gotrace_merge *m, struct gotrace_lane *l, const struct gotrace_raw *r)

static struct gotrace_event v2_event(struct gotrace_merge *m, const struct gotrace_lane *l,
	enum gotrace_kind kind, uint64_t stack)
{
	return (struct gotrace_event){
		.kind = (uint8_t)kind, .g = l->g, .p = l->p, .stack = gotrace_stack_of(m, stack)};
}

static void v2_set(struct gotrace_merge *m, uint64_t g, unsigned status)
{
	struct gotrace_standing s = {0};
	(void)gotrace_standing(&m->g, g, &s);
	gotrace_set_standing(m, &m->g, g, s.sequence, status);
}

static void v2_set_p(struct gotrace_merge *m, uint64_t p, unsigned status)
{
	struct gotrace_standing s = {0};
	(void)gotrace_standing(&m->p, p, &s);
	gotrace_set_standing(m, &m->p, p, s.sequence, status);
}

V2_APPLY(ProcsChange)
{
	struct gotrace_event e = v2_event(m, l, GOTRACE_procs, r->arg[2]);
	e.other = r->arg[1];
	gotrace_add(m, r->ticks, e);
}

V2_APPLY(ProcStart)
{
	l->p = (uint32_t)r->arg[1];
	gotrace_set_standing(m, &m->p, r->arg[1], r->arg[2], V2_P_RUNNING);
}

V2_APPLY(ProcStop)
{
	(void)r;
	if (l->p != GOTRACE_NO_P)
		v2_set_p(m, l->p, V2_P_IDLE);
	l->p = GOTRACE_NO_P;
}

/* From a thread that is in a system call. */
V2_APPLY(ProcSteal)
{
	uint64_t known;
	struct gotrace_lane *from = l;
	gotrace_set_standing(m, &m->p, r->arg[1], r->arg[2], V2_P_IDLE);
	if (r->arg[3] != l->key)
		from = base_map_get(&m->lanes, 0, r->arg[3], &known) ? &m->lane[known] : NULL;
	if (!from || from->p != (uint32_t)r->arg[1])
		return;
	if (from->g && from->in_call)
		gotrace_add(m, r->ticks, v2_event(m, from, GOTRACE_call_away, 0));
	from->p = GOTRACE_NO_P;
}

V2_APPLY(ProcStatus)
{
	bool has = r->arg[2] == V2_P_RUNNING || r->arg[2] == V2_P_SYSCALL;
	unsigned status = r->arg[2] == V2_P_ABANDONED ? V2_P_SYSCALL : (unsigned)(r->arg[2] & 7);
	gotrace_set_standing(m, &m->p, r->arg[1], 0, status);
	if (has)
		l->p = (uint32_t)r->arg[1];
}

static void v2_create(struct gotrace_merge *m, struct gotrace_lane *l, const struct gotrace_raw *r,
	enum gotrace_status status)
{
	struct gotrace_event e = v2_event(m, l, GOTRACE_create, r->arg[3]);
	e.other = r->arg[1];
	e.new_stack = gotrace_stack_of(m, r->arg[2]);
	e.status = (uint8_t)status;
	gotrace_set_standing(m, &m->g, e.other, 0, status);
	gotrace_add(m, r->ticks, e);
}
V2_APPLY(GoCreate)
{
	v2_create(m, l, r, GOTRACE_STATUS_runnable);
}
V2_APPLY(GoCreateBlocked)
{
	v2_create(m, l, r, GOTRACE_STATUS_waiting);
}

/* C calls Go from a thread of its own. */
V2_APPLY(GoCreateSyscall)
{
	struct gotrace_event e = {.kind = GOTRACE_exists,
		.g = r->arg[1],
		.p = GOTRACE_NO_P,
		.status = GOTRACE_STATUS_syscall};
	gotrace_set_standing(m, &m->g, e.g, 0, GOTRACE_STATUS_syscall);
	l->g = e.g;
	l->in_call = true;
	gotrace_add(m, r->ticks, e);
}

V2_APPLY(GoStart)
{
	l->g = r->arg[1];
	l->in_call = false;
	gotrace_set_standing(m, &m->g, l->g, r->arg[2], GOTRACE_STATUS_running);
	gotrace_add(m, r->ticks, v2_event(m, l, GOTRACE_start, 0));
}

static void v2_leave(struct gotrace_merge *m, struct gotrace_lane *l, const struct gotrace_raw *r,
	enum gotrace_kind kind, enum gotrace_status status)
{
	struct gotrace_event e = v2_event(m, l, kind, r->nr_args > 2 ? r->arg[2] : 0);
	e.text = r->nr_args > 2 ? gotrace_text_of(m, r->arg[1]) : 0;
	if (!l->g)
		return;
	v2_set(m, l->g, status);
	gotrace_add(m, r->ticks, e);
	l->g = 0;
	l->in_call = false;
}
V2_APPLY(GoDestroy)
{
	v2_leave(m, l, r, GOTRACE_end, GOTRACE_STATUS_dead);
}
V2_APPLY(GoStop)
{
	v2_leave(m, l, r, GOTRACE_stop, GOTRACE_STATUS_runnable);
}
V2_APPLY(GoBlock)
{
	v2_leave(m, l, r, GOTRACE_block, GOTRACE_STATUS_waiting);
}

/* A thread of C's goes; what P it had is free. */
V2_APPLY(GoDestroySyscall)
{
	v2_leave(m, l, r, GOTRACE_end, GOTRACE_STATUS_dead);
	if (l->p != GOTRACE_NO_P)
		v2_set_p(m, l->p, V2_P_IDLE);
	l->p = GOTRACE_NO_P;
}

V2_APPLY(GoUnblock)
{
	struct gotrace_event e = v2_event(m, l, GOTRACE_unblock, r->arg[3]);
	e.other = r->arg[1];
	gotrace_set_standing(m, &m->g, e.other, r->arg[2], GOTRACE_STATUS_runnable);
	gotrace_add(m, r->ticks, e);
}

V2_APPLY(GoSyscallBegin)
{
	l->in_call = true;
	if (l->g)
		v2_set(m, l->g, GOTRACE_STATUS_syscall);
	if (l->p != GOTRACE_NO_P)
		gotrace_set_standing(m, &m->p, l->p, r->arg[1], V2_P_SYSCALL);
	gotrace_add(m, r->ticks, v2_event(m, l, GOTRACE_call_begin, r->arg[2]));
}

V2_APPLY(GoSyscallEnd)
{
	l->in_call = false;
	if (l->g)
		v2_set(m, l->g, GOTRACE_STATUS_running);
	if (l->p != GOTRACE_NO_P)
		v2_set_p(m, l->p, V2_P_RUNNING);
	gotrace_add(m, r->ticks, v2_event(m, l, GOTRACE_call_end, 0));
}

V2_APPLY(GoSyscallEndBlocked)
{
	l->in_call = false;
	if (!l->g)
		return;
	v2_set(m, l->g, GOTRACE_STATUS_runnable);
	gotrace_add(m, r->ticks, v2_event(m, l, GOTRACE_call_return, 0));
	l->g = 0;
}

/* Each generation says of each goroutine how it stands. The first time it is news. */
V2_APPLY(GoStatus)
{
	uint64_t g = r->arg[1], thread = r->arg[2], known;
	unsigned status = (unsigned)(r->arg[3] & 7);
	struct gotrace_standing s;
	struct gotrace_event e = {.kind = GOTRACE_exists,
		.g = g,
		.p = GOTRACE_NO_P,
		.status = (uint8_t)status,
		.stack = r->nr_args > 4 ? gotrace_stack_of(m, r->arg[4]) : 0};
	bool is_new = !gotrace_standing(&m->g, g, &s) || s.status == GOTRACE_STATUS_dead;
	gotrace_set_standing(m, &m->g, g, 0, status);
	if (status == GOTRACE_STATUS_running || status == GOTRACE_STATUS_syscall) {
		struct gotrace_lane *on = l;
		if (thread != l->key && thread != UINT64_MAX)
			on = base_map_get(&m->lanes, 0, thread, &known) ? &m->lane[known] : NULL;
		if (on) {
			on->g = g;
			on->in_call = status == GOTRACE_STATUS_syscall;
			e.p = on->p;
		}
	}
	if (is_new)
		gotrace_add(m, r->ticks, e);
}

/* A coroutine: one goroutine goes on as another, on its P. */
static void v2_switch(struct gotrace_merge *m, struct gotrace_lane *l, const struct gotrace_raw *r,
	enum gotrace_kind kind, enum gotrace_status status)
{
	struct gotrace_event e = v2_event(m, l, GOTRACE_unblock, 0);
	e.other = r->arg[1];
	if (l->g) {
		gotrace_add(m, r->ticks, e);
		e = v2_event(m, l, kind, 0);
		e.text = gotrace_own_text(m, "coroutine switch");
		v2_set(m, l->g, status);
		gotrace_add(m, r->ticks, e);
	}
	l->g = r->arg[1];
	gotrace_set_standing(m, &m->g, l->g, r->arg[2], GOTRACE_STATUS_running);
	gotrace_add(m, r->ticks, v2_event(m, l, GOTRACE_start, 0));
}
V2_APPLY(GoSwitch)
{
	v2_switch(m, l, r, GOTRACE_block, GOTRACE_STATUS_waiting);
}
V2_APPLY(GoSwitchDestroy)
{
	v2_switch(m, l, r, GOTRACE_end, GOTRACE_STATUS_dead);
}

/* The stack is the last argument; a text, if there is one, the second. */
static void v2_range(struct gotrace_merge *m, struct gotrace_lane *l, const struct gotrace_raw *r,
	enum gotrace_kind kind, bool has_text)
{
	struct gotrace_event e = v2_event(m, l, kind, r->nr_args > 1 ? r->arg[r->nr_args - 1] : 0);
	e.text = has_text ? gotrace_text_of(m, r->arg[1]) : 0;
	gotrace_add(m, r->ticks, e);
}
V2_APPLY(STWBegin)
{
	v2_range(m, l, r, GOTRACE_stw_begin, true);
}
V2_APPLY(STWEnd)
{
	v2_range(m, l, r, GOTRACE_stw_end, false);
}
V2_APPLY(GCBegin)
{
	v2_range(m, l, r, GOTRACE_gc_begin, false);
}
V2_APPLY(GCSweepBegin)
{
	v2_range(m, l, r, GOTRACE_sweep_begin, false);
}
V2_APPLY(GCMarkAssistBegin)
{
	v2_range(m, l, r, GOTRACE_assist_begin, false);
}
V2_APPLY(GCMarkAssistEnd)
{
	v2_range(m, l, r, GOTRACE_assist_end, false);
}

V2_APPLY(GCEnd)
{
	gotrace_add(m, r->ticks, v2_event(m, l, GOTRACE_gc_end, 0));
}

V2_APPLY(GCSweepEnd)
{
	gotrace_add(m, r->ticks, v2_event(m, l, GOTRACE_sweep_end, 0));
}

static void v2_region(struct gotrace_merge *m, struct gotrace_lane *l, const struct gotrace_raw *r,
	enum gotrace_kind kind)
{
	struct gotrace_event e = v2_event(m, l, kind, r->arg[3]);
	e.other = r->arg[1];
	e.text = gotrace_text_of(m, r->arg[2]);
	gotrace_add(m, r->ticks, e);
}
V2_APPLY(UserRegionBegin)
{
	v2_region(m, l, r, GOTRACE_region_begin);
}
V2_APPLY(UserRegionEnd)
{
	v2_region(m, l, r, GOTRACE_region_end);
}

static void v2_apply(struct gotrace_merge *m, struct gotrace_lane *l, const struct gotrace_raw *r)
{
#define DOES(name) [V2_##name] = v2_##name
	static void (*const apply[V2_NR])(struct gotrace_merge *, struct gotrace_lane *,
		const struct gotrace_raw *) = {DOES(ProcsChange), DOES(ProcStart), DOES(ProcStop),
		DOES(ProcSteal), DOES(ProcStatus), DOES(GoCreate), DOES(GoCreateSyscall),
		DOES(GoCreateBlocked), DOES(GoStart), DOES(GoDestroy), DOES(GoDestroySyscall),
		DOES(GoStop), DOES(GoBlock), DOES(GoUnblock), DOES(GoSyscallBegin),
		DOES(GoSyscallEnd), DOES(GoSyscallEndBlocked),
		DOES(GoStatus), [V2_GoStatusStack] = v2_GoStatus, DOES(GoSwitch),
		DOES(GoSwitchDestroy), DOES(STWBegin), DOES(STWEnd), DOES(GCBegin), DOES(GCEnd),
		DOES(GCSweepBegin), DOES(GCSweepEnd), DOES(GCMarkAssistBegin),
		DOES(GCMarkAssistEnd), DOES(UserRegionBegin), DOES(UserRegionEnd)};
#undef DOES
	if (r->type < V2_NR && apply[r->type])
		apply[r->type](m, l, r);
}

/* ---- batches that hold tables ---------------------------------------------------------------- */

static bool v2_strings(struct gotrace_merge *m, const uint8_t *p, const uint8_t *end)
{
	uint64_t id, nr;
	while (p < end) {
		if (*p++ != V2_String || !(p = gotrace_number(p, end, &id)) ||
			!(p = gotrace_number(p, end, &nr)) || nr > (uint64_t)(end - p))
			return false;
		gotrace_keep_text(m, id, p, nr);
		p += nr;
	}
	return true;
}

static bool v2_stacks(struct gotrace_merge *m, const uint8_t *p, const uint8_t *end)
{
	uint64_t id, nr, arg[4 * GOTRACE_FRAMES_MAX];
	while (p < end) {
		if (*p++ != V2_Stack || !(p = gotrace_number(p, end, &id)) ||
			!(p = gotrace_number(p, end, &nr)) || nr > GOTRACE_FRAMES_MAX)
			return false;
		for (size_t i = 0; i < 4 * nr; i++) {
			p = gotrace_number(p, end, &arg[i]);
			if (!p)
				return false;
		}
		gotrace_keep_stack(m, id, arg, (size_t)nr);
	}
	return true;
}

static bool v2_samples(struct gotrace_merge *m, const uint8_t *p, const uint8_t *end)
{
	while (p < end && m->status == BASE_OK) {
		uint64_t arg[5]; /* ticks, M, P, goroutine, stack */
		if (*p++ != V2_CPUSample)
			return false;
		for (size_t i = 0; i < BASE_COUNT(arg); i++) {
			p = gotrace_number(p, end, &arg[i]);
			if (!p)
				return false;
		}
		if (base_grow(&m->sample, &m->sample_capacity, m->nr_samples + 1,
			    sizeof *m->sample) != BASE_OK) {
			gotrace_fail(m, BASE_ERR_NOMEM, "samples");
			return false;
		}
		m->sample[m->nr_samples++] = (struct gotrace_event){.kind = GOTRACE_sample,
			.time_ns = arg[0],
			.p = (uint32_t)arg[2],
			.g = arg[3],
			.stack = gotrace_stack_of(m, arg[4])};
	}
	return true;
}

static bool v2_frequency(struct gotrace_merge *m, const uint8_t *p, const uint8_t *end)
{
	uint64_t hz = 0;
	if (!gotrace_number(p, end, &hz) || !hz)
		return false;
	if (m->ns_per_tick <= 0)
		m->ns_per_tick = 1e9 / (double)hz;
	return true;
}

/* ---- generations ----------------------------------------------------------------------------- */

enum v2_pass { V2_TEXTS, V2_TABLES, V2_EVENTS };

/* A batch is all of one sort, which its first byte names. */
static void v2_take(struct gotrace_merge *m, const struct gotrace_batch *b, enum v2_pass pass)
{
	unsigned type = b->p < b->end ? *b->p : 0;
	const uint8_t *p = b->p + 1;
	bool whole = true;
	if (type == V2_Strings) {
		whole = pass != V2_TEXTS || v2_strings(m, p, b->end);
	} else if (type == V2_Stacks) {
		whole = pass != V2_TABLES || v2_stacks(m, p, b->end);
	} else if (type == V2_Frequency) {
		whole = pass != V2_TABLES || v2_frequency(m, p, b->end);
	} else if (type == V2_Sync) {
		bool has = p < b->end && *p == V2_Frequency;
		whole = pass != V2_TABLES || (has && v2_frequency(m, p + 1, b->end));
	} else if (type == V2_CPUSamples) {
		whole = pass != V2_EVENTS || v2_samples(m, p, b->end);
	} else if (pass == V2_EVENTS) {
		if (b->ticks < m->origin_ticks && !m->t->nr_events)
			m->origin_ticks = b->ticks;
		gotrace_add_batch(m, b);
	}
	m->t->nr_damaged += !whole;
}

static void v2_generation(struct gotrace_merge *m, const struct gotrace_batch *batch, size_t nr)
{
	for (enum v2_pass pass = V2_TEXTS; pass <= V2_EVENTS; pass++)
		for (size_t i = 0; i < nr && m->status == BASE_OK; i++)
			v2_take(m, &batch[i], pass);
	if (m->ns_per_tick <= 0)
		gotrace_fail(m, BASE_ERR_FOREIGN,
			"it is cut within its first second, before the length of its clock's tick "
			"is "
			"told: trace again, and let trace.Stop() return before the program ends");
	if (m->status == BASE_OK)
		gotrace_merge_batches(m);
}

/* The next batch. NULL: the file ends, or is damaged here. */
static const uint8_t *v2_batch(const uint8_t *p, const uint8_t *end, struct gotrace_batch *ret,
	uint64_t *ret_generation, bool *ret_experiment)
{
	uint64_t nr = 0;
	*ret_experiment = *p == V2_ExperimentalBatch;
	if (*p != V2_EventBatch && !*ret_experiment)
		return NULL;
	p += 1 + *ret_experiment;
	if (p >= end || !(p = gotrace_number(p, end, ret_generation)) ||
		!(p = gotrace_number(p, end, &ret->lane)) ||
		!(p = gotrace_number(p, end, &ret->ticks)) || !(p = gotrace_number(p, end, &nr)) ||
		nr > V2_BATCH_BYTES_MAX || nr > (uint64_t)(end - p))
		return NULL;
	ret->p = p;
	ret->end = p + nr;
	return ret->end;
}

struct v2_batches {
	struct gotrace_batch *batch;
	size_t nr, capacity;
};

static void v2_read(
	struct gotrace_merge *m, struct v2_batches *b, const uint8_t *p, const uint8_t *end)
{
	while (p < end && m->status == BASE_OK) {
		struct gotrace_batch one;
		uint64_t generation = 0;
		bool experiment = false;
		if (*p == V2_EndOfGeneration) {
			p++;
			continue;
		}
		p = v2_batch(p, end, &one, &generation, &experiment);
		if (!p) {
			m->t->is_cut = true;
			break;
		}
		if (generation != m->generation && b->nr) {
			v2_generation(m, b->batch, b->nr);
			b->nr = 0;
		}
		m->generation = generation;
		if (experiment)
			continue;
		if (base_grow(&b->batch, &b->capacity, b->nr + 1, sizeof *b->batch) != BASE_OK)
			gotrace_fail(m, BASE_ERR_NOMEM, "batches");
		else
			b->batch[b->nr++] = one;
	}
	if (m->status == BASE_OK && b->nr)
		v2_generation(m, b->batch, b->nr);
}

enum base_status gotrace_read_v2(
	struct gotrace *t, const uint8_t *bytes, size_t nr_bytes, struct base_err *err)
{
	static const struct gotrace_format format = {v2_decode, v2_is_ready, v2_apply};
	struct gotrace_merge m = {
		.t = t, .format = &format, .err = err, .origin_ticks = UINT64_MAX};
	struct v2_batches batches = {0};
	v2_read(&m, &batches, bytes + GOTRACE_HEADER_BYTES, bytes + nr_bytes);
	base_free(batches.batch);
	if (m.status == BASE_OK)
		gotrace_merge_samples(&m);
	gotrace_merge_fini(&m);
	return m.status;
}
