/* SPDX-License-Identifier: Apache-2.0 */
/* convert.c - one record, or none, of each event of the kernel. */
#include "system/convert.h"
#include "ring/processor.h"
#include "os/clock.h"
#include "system/full.h"
#include "system/kernel_names.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_SHIFT = 32 };

/* ---- time ------------------------------------------------------------------------------------ */

/* The tightest of a few brackets around a reading of the kernel's clock. */
static void read_clock(const struct os_clock *c, uint64_t *ret_mono_ns, uint64_t *ret_time_ns)
{
	uint64_t best = UINT64_MAX;
	*ret_mono_ns = *ret_time_ns = 0;
	for (int i = 0; i < 3; i++) {
		uint64_t before = os_tsc(), ns = os_time_ns(CLOCK_MONOTONIC),
			 width = os_tsc() - before;
		if (width >= best)
			continue;
		best = width;
		*ret_mono_ns = ns;
		*ret_time_ns = os_clock_ns(c, before + width / 2 - c->tsc_origin);
	}
}

/* One more stretch of the line. Too short a one would have a bad slope. */
static void draw_line(struct system_kernel *k)
{
	enum { STRETCH_MIN_NS = 500000 };
	uint64_t ns, time_ns;
	read_clock(k->converter->clock, &ns, &time_ns);
	if (ns < k->line_mono_ns + STRETCH_MIN_NS || time_ns <= k->line_time_ns)
		return;
	k->line_factor = (uint64_t)(((unsigned __int128)(time_ns - k->line_time_ns) << LINE_SHIFT) /
				    (ns - k->line_mono_ns));
	k->line_mono_ns = ns;
	k->line_time_ns = time_ns;
}

uint64_t system_kernel_time(const struct system_kernel *k, uint64_t ns)
{
	int64_t since = (int64_t)(ns - k->line_mono_ns);
	__int128 t = (((__int128)since * (int64_t)k->line_factor) >> LINE_SHIFT) + k->line_time_ns;
	return t <= 0 ? 0 : t >= INT64_MAX ? INT64_MAX : (uint64_t)t;
}

/* ---- whose record it is ---------------------------------------------------------------------- */

/* A record of the event's actor: the context's, or the task's. */
void system_kernel_put_actor(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, struct trace_record *r)
{
	unsigned context = s->shape & 15;
	if (context) {
		r->stream = system_kernel_context(k, context, s->vector, cpu);
		record_sink_put(&k->converter->sink, r);
		return;
	}
	if (!s->tid) {
		r->stream = system_kernel_context(k, TRACE_CONTEXT_idle, 0, cpu);
		record_sink_put(&k->converter->sink, r);
		return;
	}
	struct system_kernel_task *t = system_kernel_task(k, s->tid);
	if (t)
		system_kernel_put(k, t, r);
}

/* ---- scheduler ------------------------------------------------------------------------------- */

static void convert_leave(
	struct system_kernel *k, uint32_t tid, unsigned cpu, uint64_t time_ns, enum trace_left how)
{
	struct system_kernel_task *t = system_kernel_task(k, tid);
	if (!t)
		return;
	t->on_processor = false;
	k->nr_wakes_early += t->woken_early && how == TRACE_LEFT_asleep;
	t->woken_early = false;
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_cpu_out,
		.u.cpu_out = {.processor = cpu, .preempted = how}};
	system_kernel_put(k, t, &r);
	if (BASE_UNLIKELY(t->dying) && (how == TRACE_LEFT_asleep || how == TRACE_LEFT_unseen))
		system_kernel_end(k, t, time_ns);
}

static void convert_enter(struct system_kernel *k, uint32_t tid, unsigned cpu, uint64_t time_ns)
{
	struct system_kernel_task *t = system_kernel_task(k, tid);
	if (!t)
		return;
	t->on_processor = true;
	t->woken_early = false;
	struct trace_record r = {
		.time_ns = time_ns, .kind = TRACE_cpu_in, .u.cpu_in.processor = cpu};
	system_kernel_put(k, t, &r);
}

static void convert_on_switch(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	static const enum trace_left left[] = {[KERNEL_LEFT_ASLEEP] = TRACE_LEFT_asleep,
		[KERNEL_LEFT_RUNNABLE] = TRACE_LEFT_runnable,
		[KERNEL_LEFT_THROTTLED] = TRACE_LEFT_throttled};
	struct system_kernel_cpu *c = &k->cpu[cpu];
	uint64_t how = s->b >> 32;
	k->nr_switches++;
	if (BASE_UNLIKELY(c->known && c->tid != s->tid)) {
		/* A switch was not shown. When it was is not known: now, so that each task is on
		 * one processor at most. */
		k->nr_switches_lost++;
		if (c->tid)
			convert_leave(k, c->tid, cpu, time_ns, TRACE_LEFT_unseen);
		if (s->tid)
			convert_enter(k, s->tid, cpu, time_ns);
	}
	if (s->tid)
		convert_leave(k, s->tid, cpu, time_ns,
			how < BASE_COUNT(left) ? left[how] : TRACE_LEFT_asleep);
	c->known = true;
	c->tid = (uint32_t)s->a;
	if (c->tid)
		convert_enter(k, c->tid, cpu, time_ns);
}

static void convert_on_wake(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct system_kernel_task *woken = system_kernel_task(k, (uint32_t)s->a);
	if (!woken)
		return;
	woken->woken_early = woken->on_processor;
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_wake,
		.u.wake.woken = system_kernel_stream(k, woken)};
	system_kernel_put_actor(k, s, cpu, &r);
}

/* ---- births, deaths, names ------------------------------------------------------------------- */

static void convert_on_fork(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct system_kernel_task *t = system_kernel_task(k, s->tid);
	(void)cpu;
	if (t)
		system_kernel_fork(k, t, time_ns, s);
}

static void convert_on_exec(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct system_kernel_task *t = system_kernel_task(k, s->tid);
	(void)cpu;
	if (t)
		system_kernel_exec(k, t, time_ns, s);
}

static void on_exit(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct system_kernel_task *t = system_kernel_task(k, s->tid);
	(void)cpu;
	(void)time_ns;
	if (!t)
		return;
	t->dying = true;
	t->status = (int64_t)s->a;
	t->pid = (uint32_t)s->b;
}

static void on_comm(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	(void)cpu;
	(void)time_ns;
	system_kernel_comm(k, s);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static void set_running(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint32_t stream)
{
	if ((s->shape & 15) == TRACE_CONTEXT_softirq)
		k->cpu[cpu].soft = stream;
}

static void on_context_begin(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct trace_record r = {.time_ns = time_ns, .kind = TRACE_context_begin};
	struct system_kernel_task *t = NULL;
	if (s->a) /* on top of a softirq */
		r.u.context_begin.interrupted =
			system_kernel_context(k, (unsigned)(s->a >> 16), s->a & 0xffff, cpu);
	else if (!s->tid)
		r.u.context_begin.interrupted =
			system_kernel_context(k, TRACE_CONTEXT_idle, 0, cpu);
	else if ((t = system_kernel_task(k, s->tid)))
		r.u.context_begin.interrupted = system_kernel_stream(k, t);
	system_kernel_put_actor(k, s, cpu, &r);
	set_running(k, s, cpu, r.stream);
}

static void on_context_end(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct trace_record r = {.time_ns = time_ns, .kind = TRACE_context_end};
	system_kernel_put_actor(k, s, cpu, &r);
	set_running(k, s, cpu, 0);
}

static void on_context_raise(
	struct system_kernel *k, const struct kernel_slot *s, unsigned cpu, uint64_t time_ns)
{
	struct trace_record r = {.time_ns = time_ns,
		.kind = TRACE_context_raise,
		.u.context_raise.context = system_kernel_context(
			k, s->a & 0xff, (unsigned)(s->a >> 8) & 0xffff, (unsigned)s->b)};
	system_kernel_put_actor(k, s, cpu, &r);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static system_kernel_handler *const handlers[KERNEL_EVENT_NR] = {
	[KERNEL_switch] = convert_on_switch,
	[KERNEL_wake] = convert_on_wake,
	[KERNEL_fork] = convert_on_fork,
	[KERNEL_exec] = convert_on_exec,
	[KERNEL_exit] = on_exit,
	[KERNEL_comm] = on_comm,
	[KERNEL_context_begin] = on_context_begin,
	[KERNEL_context_end] = on_context_end,
	[KERNEL_context_raise] = on_context_raise,
};

static void convert_convert(struct system_kernel *k, uint64_t horizon_ns)
{
	const struct kernel_slot *s;
	unsigned cpu;
	while ((s = system_order_next(&k->source.order, horizon_ns, &cpu))) {
		system_kernel_handler *h = s->type < KERNEL_EVENT_NR ? handlers[s->type] : NULL;
		if (BASE_UNLIKELY(s->time_ns < k->from_mono_ns)) {
			if (s->type == KERNEL_switch)
				k->cpu[cpu] = (struct system_kernel_cpu){
					.tid = (uint32_t)s->a, .known = true};
			continue;
		}
		k->nr_events++;
		k->event_mono_ns = s->time_ns;
		if (k->samples)
			system_samples_put(k, s->time_ns);
		if (!h)
			h = system_full_handler(s->type);
		if (h)
			h(k, s, cpu, system_kernel_time(k, s->time_ns));
	}
}

enum base_status system_kernel_open(
	struct system_kernel *k, const struct system_options *o, struct base_err *err)
{
	*k = (struct system_kernel){
		.level = o->level, .own_pid = (uint32_t)getpid(), .alone = o->alone};
	if (o->level == SYSTEM_LEVEL_full && !PROCESSOR_IS_X86_64)
		return base_fail(err, BASE_ERR_ENV,
			"--full needs a 64-bit x86 machine: it names system calls by that "
			"one's numbers (--system without it works here)");
	if (o->level == SYSTEM_LEVEL_full)
		(void)system_kernel_is_tick(k, 0); /* reading all names takes a while: not later */
	enum base_status status =
		system_source_open(&k->source, o, k->attempt, &k->nr_attempts, err);
	if (status != BASE_OK)
		return status;
	k->open = true;
	k->task_page = base_alloc(SYSTEM_TID_MAX / SYSTEM_TID_PAGE * sizeof(void *));
	k->cpu = base_alloc(k->source.nr_processors * sizeof *k->cpu);
	if (k->task_page && k->cpu) {
		if (o->sample_hz && o->level == SYSTEM_LEVEL_full)
			system_samples_open(k, o->sample_hz);
		return BASE_OK;
	}
	system_kernel_close(k);
	return base_fail(err, BASE_ERR_NOMEM, "no memory for the system's tasks");
}

void system_kernel_start(struct system_kernel *k, struct record_converter *c)
{
	k->converter = c;
	k->line_factor = 1ull << LINE_SHIFT;
	c->world.described = system_kernel_attached;
	c->world.described_ctx = k;
	system_source_start(&k->source);
	read_clock(c->clock, &k->line_mono_ns, &k->line_time_ns);
	k->from_mono_ns = k->line_mono_ns;
	k->start_ns = k->line_time_ns;
	/* (A listener takes records in the order of their times.) */
	if (k->level == SYSTEM_LEVEL_full && !c->sink.listen && !k->alone)
		system_asleep_read(k);
}

void system_kernel_read(struct system_kernel *k, bool final)
{
	if (!k->open)
		return;
	uint64_t now_ns = os_time_ns(CLOCK_MONOTONIC);
	draw_line(k);
	system_samples_read(k); /* first: no sample then is later than the events that follow */
	enum base_status status = system_source_read(&k->source, now_ns);
	if (status != BASE_OK)
		record_sink_fail(&k->converter->sink, status, "no memory for the kernel's events");
	convert_convert(k, final ? UINT64_MAX : system_order_horizon(&k->source.order, now_ns));
}

void system_kernel_finish(struct system_kernel *k)
{
	if (k->open)
		system_kernel_name_sites(k);
}

void system_kernel_close(struct system_kernel *k)
{
	if (!k || !k->open)
		return;
	system_source_close(&k->source);
	system_kernel_tasks_fini(k);
	base_free(k->cpu);
	base_map_fini(&k->contexts);
	base_map_fini(&k->objects);
	base_map_fini(&k->limits);
	base_map_fini(&k->keys);
	system_kernel_names_fini(k);
	system_samples_close(k);
	system_asleep_close(k);
	k->open = false;
}
