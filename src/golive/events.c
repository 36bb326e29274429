/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - changes of goroutines' statuses, as our code has written them, as the events of Go's own execution trace. */
#include "golive/private.h"
#include "record/convert.h"

#include <stdlib.h>
#include <string.h>

enum { REASON_BYTES = 64, STACK_KEY = 1, FRAME_KEY = 2 };
enum {
	G_IDLE,
	G_RUNNABLE,
	G_RUNNING,
	G_SYSCALL,
	G_WAITING,
	G_DEAD = 6,
	G_WORKS = 0x100, /* (ours: row i of events_work[] begins; + 1: it ends) */
	G_SCAN = 0x1000
}; /* runtime2.go */

/* Work for the collector that a goroutine does in the middle of its own. */
static const struct {
	const char *reason;
	enum gotrace_kind begin, end;
} events_work[] = {
	{"GC assist marking", GOTRACE_assist_begin, GOTRACE_assist_end},
	{"garbage collection", GOTRACE_stw_begin, GOTRACE_stw_end},
	{"stopping the world", GOTRACE_stw_begin, GOTRACE_stw_end},
};
enum { EVENTS_WORKS = BASE_COUNT(events_work) };

struct events {
	const struct golive_image *image;
	const struct os_clock *clock;
	struct gotrace *t;
	struct base_map known;  /* (kind, key) -> frame, stack */
	struct base_map number; /* goroutine's address -> its number now */
	struct base_map status; /* goroutine's number -> its last status */
	struct base_map on;     /* thread -> number of the goroutine that runs there */
	const struct golive_samples *samples;
	size_t nr_sampled; /* samples that were taken or left out */
	struct base_map
		rounds; /* record -> number of the collector's worker whose turn comes then */
	struct base_map
		p; /* goroutine's number -> P + 1 that it had when it entered a system call */
	uint64_t reasons,
		works[EVENTS_WORKS]; /* where their texts are; the number of each of these */
	uint64_t now_ns;
	bool failed;
};

static uint32_t events_text(struct events *e, const char *text)
{
	uint32_t id = 0;
	e->failed |= base_strtab_intern(e->t->texts, text, strlen(text), &id) != BASE_OK;
	return id;
}

static uint32_t events_reason(struct events *e, uint32_t number)
{
	static const struct {
		const char *runtime, *trace;
	} differs[] = {
#define REASON(runtime, trace) {runtime, trace},
#include "golive/reasons.def"
	};
	char text[REASON_BYTES];
	if (!golive_image_reason(e->image, e->reasons, number, text, sizeof text))
		return 0;
	for (size_t i = 0; i < BASE_COUNT(differs); i++)
		if (!strncmp(text, differs[i].runtime, strlen(differs[i].runtime)))
			return events_text(e, differs[i].trace);
	return events_text(e, text);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* The frames of one place, which stand together: their first one, and how many. pc: within the call, not where it returns to. */
static size_t events_frames(struct events *e, uint64_t pc, uint32_t *ret_first)
{
	enum { INLINED_MAX = 16, NR_BITS = 8 };
	struct gotrace *t = e->t;
	struct golive_place place[INLINED_MAX];
	uint64_t found = 0;
	if (!base_map_get(&e->known, FRAME_KEY, pc, &found)) {
		size_t nr = golive_image_places(e->image, pc, place, INLINED_MAX);
		found = (uint64_t)t->nr_frames << NR_BITS;
		if (base_grow(&t->frame, &t->frame_capacity, t->nr_frames + nr, sizeof *t->frame) !=
			BASE_OK) {
			e->failed = true;
			return 0;
		}
		for (size_t i = 0; i < nr; i++) {
			if (place[i].is_wrapper)
				continue;
			t->frame[t->nr_frames++] = (struct gotrace_frame){.pc = pc,
				.function = events_text(e, place[i].function),
				.file = events_text(e, place[i].file),
				.line = place[i].line};
			found++;
		}
		e->failed |= base_map_put(&e->known, FRAME_KEY, pc, found) != BASE_OK;
	}
	*ret_first = (uint32_t)(found >> NR_BITS);
	return found & ((1u << NR_BITS) - 1);
}

static uint64_t events_hash(const uint32_t *frame, size_t nr)
{
	uint64_t hash = 0xcbf29ce484222325;
	for (size_t i = 0; i < nr; i++)
		hash = (hash ^ frame[i]) * 0x100000001b3 ^ hash >> 29;
	return hash;
}

static uint32_t events_stack_of(struct events *e, const uint32_t *frame, size_t nr)
{
	struct gotrace *t = e->t;
	uint64_t found, key = events_hash(frame, nr);
	if (!nr)
		return 0;
	for (; base_map_get(&e->known, STACK_KEY, key, &found); key++) {
		const struct gotrace_stack *s = &t->stack[found];
		if (s->nr == nr && !memcmp(t->stack_frame + s->first, frame, nr * sizeof *frame))
			return (uint32_t)found;
	}
	if (base_grow(&t->stack, &t->stack_capacity, t->nr_stacks + 1, sizeof *t->stack) !=
			BASE_OK ||
		base_grow(&t->stack_frame, &t->stack_frame_capacity, t->nr_stack_frames + nr,
			sizeof *t->stack_frame) != BASE_OK ||
		base_map_put(&e->known, STACK_KEY, key, t->nr_stacks) != BASE_OK) {
		e->failed = true;
		return 0;
	}
	memcpy(t->stack_frame + t->nr_stack_frames, frame, nr * sizeof *frame);
	t->stack[t->nr_stacks] =
		(struct gotrace_stack){.first = (uint32_t)t->nr_stack_frames, .nr = (uint32_t)nr};
	t->nr_stack_frames += nr;
	return (uint32_t)t->nr_stacks++;
}

/* Where a goroutine was interrupted, not in a call, the frame that it was in may be missing: such a stack is none. */
static bool events_was_interrupted(const char *function)
{
	return !strcmp(function, "runtime.asyncPreempt");
}

/* What the runtime does around a call of the kernel. */
static bool events_is_of_calls(const char *function)
{
	static const char *const known[] = {"runtime.entersyscall", "runtime.reentersyscall",
		"runtime.entersyscallblock", "runtime.exitsyscall"};
	for (size_t i = 0; i < BASE_COUNT(known); i++)
		if (!strcmp(function, known[i]))
			return true;
	return false;
}

/* Up to where a goroutine begins, as Go's own stacks are. is_exact: the first place is no return address. */
static uint32_t events_stack(struct events *e, const uint64_t *pc, size_t nr_pcs, bool is_exact)
{
	enum { FRAMES_MAX = 256 };
	uint32_t frame[FRAMES_MAX], first;
	size_t nr = 0;
	for (size_t i = 0; i < nr_pcs && pc[i]; i++) {
		size_t more = events_frames(e, pc[i] - !(is_exact && !i), &first);
		const char *function =
			more ? base_strtab_get(e->t->texts, e->t->frame[first].function) : "";
		if (!strcmp(function, "runtime.goexit") || !strcmp(function, "runtime.main"))
			break;
		if (events_was_interrupted(function))
			return 0;
		if (!nr && events_is_of_calls(function))
			continue;
		for (size_t k = 0; k < more && nr < FRAMES_MAX; k++)
			frame[nr++] = first + (uint32_t)k;
	}
	return events_stack_of(e, frame, nr);
}

static uint32_t events_beginning(struct events *e, uint64_t start)
{
	uint32_t first = 0;
	start = golive_image_wrapped(e->image, start);
	size_t nr = start ? events_frames(e, start, &first) : 0;
	uint32_t frame = first + (uint32_t)nr - 1;
	return nr ? events_stack_of(e, &frame, 1) : 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void events_add(struct events *e, struct gotrace_event event)
{
	struct gotrace *t = e->t;
	if (base_grow(&t->event, &t->event_capacity, t->nr_events + 1, sizeof *t->event) !=
		BASE_OK) {
		e->failed = true;
		return;
	}
	event.time_ns = e->now_ns;
	t->event[t->nr_events++] = event;
}

static uint64_t events_number(const struct events *e, uint64_t g)
{
	uint64_t number = 0;
	(void)base_map_get(&e->number, 0, g, &number);
	return number;
}

static void events_birth(
	struct events *e, const struct golive_record *r, const struct gotrace_event *by)
{
	uint32_t beginning = events_beginning(e, r->what);
	struct gotrace_event event = {.kind = GOTRACE_create,
		.g = by->g,
		.other = r->goid,
		.stack = by->g ? by->stack : 0,
		.new_stack = beginning,
		.p = GOTRACE_NO_P,
		.status = (uint8_t)r->after};
	if (!by->g) /* nobody's, as the main one */
		event = (struct gotrace_event){.kind = GOTRACE_exists,
			.g = r->goid,
			.new_stack = beginning,
			.p = GOTRACE_NO_P,
			.status = (uint8_t)r->after};
	events_add(e, event);
}

static void events_call(struct events *e, const struct golive_record *r, struct gotrace_event event)
{
	uint64_t before = 0;
	if (r->after == G_SYSCALL) {
		e->failed |= base_map_put(&e->p, 0, r->goid, (uint64_t)event.p + 1) != BASE_OK;
		event.kind = GOTRACE_call_begin;
		events_add(e, event);
		return;
	}
	(void)base_map_get(&e->p, 0, r->goid, &before);
	if (r->after == G_RUNNING && before == (uint64_t)event.p + 1) {
		event.kind = GOTRACE_call_end;
		events_add(e, event);
		return;
	}
	event.kind = GOTRACE_call_away;
	event.p = before ? (uint32_t)(before - 1) : GOTRACE_NO_P;
	events_add(e, event);
	event.kind = GOTRACE_call_return;
	events_add(e, event);
	if (r->after == G_RUNNING) {
		event.kind = GOTRACE_start;
		event.p = r->p < 0 ? GOTRACE_NO_P : (uint32_t)r->p;
		events_add(e, event);
	}
}

/* The collector suspends goroutines that run by another function than the one that is led: that one has come back is seen alone. */
static bool events_was_suspended(struct events *e, const struct golive_record *r)
{
	uint64_t status = G_WAITING;
	(void)base_map_get(&e->status, 0, r->goid, &status);
	return r->before == G_WAITING && r->after == G_RUNNABLE && status == G_RUNNING;
}

static void events_stop(struct events *e, struct gotrace_event event)
{
	event.kind = GOTRACE_stop;
	event.stack = 0;
	event.text = events_text(e, "preempted");
	events_add(e, event);
}

/* What becomes of a goroutine with a number. `event`: it, its P, and the stack. */
static void events_change(
	struct events *e, const struct golive_record *r, struct gotrace_event event)
{
	const struct gotrace_event wake = {.kind = GOTRACE_unblock,
		.g = r->by == r->g ? 0 : events_number(e, r->by),
		.other = r->goid,
		.stack = event.stack,
		.p = event.p};
	if (r->before == G_SYSCALL || r->after == G_SYSCALL) {
		events_call(e, r, event);
	} else if (events_was_suspended(e, r) ||
		   (r->before == G_RUNNING && r->after == G_RUNNABLE)) {
		events_stop(e, event);
	} else if (r->before == G_RUNNING && r->after == G_WAITING) {
		event.kind = GOTRACE_block;
		event.text = events_reason(e, r->reason);
		if (r->room && r->room != UINT32_MAX) {
			event.room = r->room;
			event.other = r->what;
		}
		events_add(e, event);
	} else if (r->after == G_DEAD) {
		event.kind = GOTRACE_end;
		events_add(e, event);
	} else if (r->before == G_WAITING) {
		events_add(e, wake);
	}
	if (r->before != G_SYSCALL && r->after == G_RUNNING) {
		event.kind = GOTRACE_start;
		event.stack = 0;
		events_add(e, event);
	}
}

static bool events_is_birth(const struct golive_record *r)
{
	return (r->before == G_DEAD || r->before == G_IDLE) && r->after != G_DEAD;
}

/* What its thread was found at. */
static uint32_t events_sample_stack(struct events *e, const struct golive_sample *s)
{
	uint64_t pc[RECORD_FRAMES_MAX + 2];
	size_t nr = 0;
	pc[nr++] = e->samples->pc[s->first];
	if (s->top && golive_image_is_frameless(e->image, pc[0]))
		pc[nr++] = s->top;
	for (size_t i = 1; i < s->nr && nr < BASE_COUNT(pc); i++)
		pc[nr++] = e->samples->pc[s->first + i];
	return events_stack(e, pc, nr, true);
}

/* Samples of what ran before that moment: of a goroutine, not of the scheduler. */
static void events_take_samples(struct events *e, uint64_t until_ns)
{
	const struct golive_samples *s = e->samples;
	for (; s && e->nr_sampled < s->nr && s->sample[e->nr_sampled].time_ns < until_ns;
		e->nr_sampled++) {
		const struct golive_sample *sample = &s->sample[e->nr_sampled];
		struct gotrace_event event = {.kind = GOTRACE_sample, .p = GOTRACE_NO_P};
		if (!base_map_get(&e->on, 0, sample->tid, &event.g) || !event.g)
			continue;
		event.stack = events_sample_stack(e, sample);
		e->now_ns = sample->time_ns > e->now_ns ? sample->time_ns : e->now_ns;
		if (event.stack)
			events_add(e, event);
	}
}

static void events_take(struct events *e, const struct golive_record *r, size_t number)
{
	uint64_t worker;
	bool works = (r->before & G_WORKS) && r->before == r->after;
	if (!r->goid || (r->before == r->after && !works) || r->ticks < e->clock->tsc_origin ||
		((r->before | r->after) & G_SCAN) || (r->after == G_DEAD && r->before != G_RUNNING))
		return;
	uint64_t ns = os_clock_ns(e->clock, r->ticks - e->clock->tsc_origin);
	events_take_samples(e, ns);
	e->now_ns = ns > e->now_ns ? ns : e->now_ns;
	if (base_map_put(&e->number, 0, r->g, r->goid) != BASE_OK)
		e->failed = true;
	struct gotrace_event event = {.g = r->goid,
		.p = r->p < 0 ? GOTRACE_NO_P : (uint32_t)r->p,
		.stack = events_stack(e, r->pc, GOLIVE_PCS, false)};
	if (r->p >= 0 && (uint32_t)r->p >= e->t->nr_processors)
		e->t->nr_processors = (uint32_t)r->p + 1;
	if (works) {
		unsigned row = (r->before - G_WORKS) / 2u;
		event.kind =
			(uint8_t)(r->before & 1 ? events_work[row].end : events_work[row].begin);
		events_add(e, event);
		return;
	}
	if (base_map_get(&e->rounds, 0, number + 1, &worker))
		events_add(e, (struct gotrace_event){.kind = GOTRACE_unblock,
				      .g = r->goid,
				      .other = worker,
				      .stack = event.stack,
				      .p = event.p});
	if (events_is_birth(r)) {
		event.g = events_number(e, r->by);
		events_birth(e, r, &event);
	} else {
		events_change(e, r, event);
	}
	e->failed |= base_map_put(&e->status, 0, r->goid, r->after) != BASE_OK;
	if (r->before == G_RUNNING || r->after == G_RUNNING)
		e->failed |= base_map_put(&e->on, 0, r->tid, r->after == G_RUNNING ? r->goid : 0) !=
			     BASE_OK;
}

/* ---- all of them ------------------------------------------------------------------------------ */

static int events_compare(const void *a, const void *b)
{
	const struct golive_record *x = a, *y = b;
	return x->ticks < y->ticks ? -1 : x->ticks > y->ticks;
}

/*
 * A goroutine that marks for the collector, or stops the world, says meanwhile that it waits, so
 * that its own stack may be looked at. It runs on: no wait ends like that. What it did is known at
 * the end: the older runtimes give the reason after the change.
 */
static void events_drop_pretence(
	const struct events *e, struct golive_record *r, struct golive_record *next)
{
	if (r->before != G_RUNNING || r->after != G_WAITING || next->before != G_WAITING ||
		next->after != G_RUNNING)
		return;
	r->after = G_RUNNING;
	next->before = G_RUNNING;
	for (unsigned i = 0; i < EVENTS_WORKS; i++)
		if (next->reason == e->works[i]) {
			r->before = r->after = (uint16_t)(G_WORKS + 2 * i);
			next->before = next->after = (uint16_t)(G_WORKS + 2 * i + 1);
		}
}

/* What a goroutine's next change tells of this one: one that is made gets its number a little later. */
static void events_look_ahead(struct events *e, struct golive_record *r, size_t nr)
{
	struct base_map next = {0};
	for (size_t i = nr; i-- > 0;) {
		uint64_t later = 0;
		bool is_birth = r[i].before == G_DEAD || r[i].before == G_IDLE;
		bool has = base_map_get(&next, 0, r[i].g, &later);
		if (is_birth)
			r[i].goid = has ? r[later - 1].goid : 0; /* 0: it has never run */
		else if (has)
			events_drop_pretence(e, &r[i], &r[later - 1]);
		e->failed |= base_map_put(&next, 0, r[i].g, i + 1) != BASE_OK;
	}
	base_map_fini(&next);
}

/* The collector's worker was idle, and the scheduler has found that there is work for it. */
static bool events_begins_round(const struct golive_record *r, uint64_t idle)
{
	return r->before == G_WAITING && (r->after == G_RUNNABLE || r->after == G_RUNNING) &&
	       r->reason == idle && (!r->by || r->by == r->g) && r->goid;
}

/*
 * What the scheduler gives to the collector's worker is the P that a goroutine has just left: how far that one had come by then decides when the
 * round begins. So that one is said to wake the worker, when it leaves.
 */
static void events_find_rounds(struct events *e, struct golive_record *r, size_t nr)
{
	uint64_t idle = golive_image_reason_number(e->image, "GC worker (idle)");
	struct base_map left = {0}, since = {0}; /* P -> record + 1; worker -> record + 1 */
	for (size_t i = 0; i < nr && !e->failed; i++) {
		uint64_t j = 0, began = 0;
		if (r[i].before == G_RUNNING && r[i].reason == idle && r[i].after == G_WAITING) {
			e->failed |= base_map_put(&since, 0, r[i].g, i + 1) != BASE_OK;
		} else if (r[i].before == G_RUNNING && r[i].goid && r[i].p >= 0 &&
			   (r[i].after == G_RUNNABLE || r[i].after == G_WAITING ||
				   r[i].after == G_DEAD)) {
			e->failed |= base_map_put(&left, 0, (uint64_t)r[i].p, i + 1) != BASE_OK;
		} else if (r[i].p >= 0 && events_begins_round(&r[i], idle) &&
			   base_map_get(&left, 0, (uint64_t)r[i].p, &j) &&
			   base_map_get(&since, 0, r[i].g, &began) && j > began &&
			   !base_map_get(&e->rounds, 0, j, &began)) {
			e->failed |= base_map_put(&e->rounds, 0, j, r[i].goid) != BASE_OK;
			r[i].before = G_RUNNABLE;
		}
	}
	base_map_fini(&left);
	base_map_fini(&since);
}

enum base_status golive_events(
	const struct golive_seen *seen, struct gotrace **ret, struct base_err *err)
{
	struct golive_record *r = seen->record;
	struct events e = {.image = seen->image,
		.clock = seen->clock,
		.samples = seen->samples,
		.t = gotrace_new(seen->image->version),
		.reasons = golive_image_reasons(seen->image)};
	*ret = NULL;
	for (unsigned i = 0; i < EVENTS_WORKS; i++)
		e.works[i] = golive_image_reason_number(seen->image, events_work[i].reason);
	if (e.t) {
		e.t->tells_calls = true;
		qsort(r, seen->nr_records, sizeof *r,
			events_compare); /* allowed: no call of ours allocates in it */
		events_look_ahead(&e, r, seen->nr_records);
		events_find_rounds(&e, r, seen->nr_records);
		for (size_t i = 0; i < seen->nr_records && !e.failed; i++)
			events_take(&e, &r[i], i);
		events_take_samples(&e, UINT64_MAX);
	}
	base_map_fini(&e.known);
	base_map_fini(&e.number);
	base_map_fini(&e.status);
	base_map_fini(&e.on);
	base_map_fini(&e.rounds);
	base_map_fini(&e.p);
	if (!e.t || e.failed || (seen->samples && seen->samples->failed)) {
		gotrace_free(e.t);
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for goroutines");
	}
	*ret = e.t;
	return BASE_OK;
}
