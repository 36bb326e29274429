/* SPDX-License-Identifier: Apache-2.0 */
/*
 * go_import.c - Go's execution trace (src/gotrace) as a recording of tasks: a stream a goroutine, a
 * processor a P. A first pass finds in which function a goroutine runs between two of its stacks;
 * the second writes. Each event has a time of its own, so that records of several streams have an
 * order.
 */
#include "format/go.h"
#include "format/machines.h"

#include <inttypes.h>
#include <string.h>

enum { GO_NEEDS_MAX = 1024, GO_FOREIGN_BIT = 62 };

struct go_routine {
	uint64_t g, last_ns;
	uint32_t role;    /* frame of its start routine; 0: not known */
	uint32_t creator; /* index + 1; 0: not known */
	uint32_t sibling; /* made before, by the same one, of the same role: index + 1 */
	uint32_t p;       /* on it; GOTRACE_NO_P: none */
	uint32_t stack;   /* its last one */
	uint32_t assists; /* text: work for the collector that it does; 0: none */
	uint8_t status;   /* enum gotrace_status */
	const struct format_go_wait *wait;
	bool stopped;                 /* gave its processor up, and has none yet */
	bool written, called, joined; /* joined: somebody has waited for its end */
	/* First pass: event since which it runs, and at which it fell asleep + 1; 0: there is none. */
	size_t open, asleep;
};
struct go_import {
	const struct gotrace *t;
	struct go_routine *routine;
	size_t nr_routines, routine_capacity;
	struct base_map by_g, roles, stacks; /* -> index + 1; (creator, role) -> index + 1 */
	struct base_map sides; /* (reason, channel) -> number of that side of the channel */
	uint64_t nr_sides;
	struct base_strtab *texts; /* ids are the trace's strings */
	uint32_t nr_texts;         /* that are written */
	uint32_t *site_of;         /* by frame */
	uint32_t nr_sites, nr_stacks;
	uint32_t *runs_in; /* by event: frame of the function that its goroutine runs in after it */
	bool *is_chosen;   /* by event: a wait that a select of another goroutine's has ended */
	struct trace_writer *to;
	struct base_err *err;
	enum base_status status;
	uint64_t now_ns;
	uint64_t nr_strays; /* events of goroutines that were not in the status that these need */
};

static void go_put(struct go_import *im, struct trace_record r)
{
	if (im->status == BASE_OK)
		im->status = trace_writer_put(im->to, &r, im->err);
}

#define PUT(im, at, by, what, ...)                                                                 \
	go_put((im), (struct trace_record){.time_ns = (at),                                        \
			     .stream = (by),                                                       \
			     .kind = TRACE_##what,                                                 \
			     .u.what = {__VA_ARGS__}})

static void go_no_memory(struct go_import *im)
{
	if (im->status == BASE_OK)
		im->status = base_fail(im->err, BASE_ERR_NOMEM, "out of memory for goroutines");
}

/* ---- definitions ----------------------------------------------------------------------------- */

static uint32_t go_string(struct go_import *im, const char *text)
{
	struct base_str clean = {0};
	uint32_t id = 0;
	format_clean_add(&clean, text);
	if (clean.failed ||
		base_strtab_intern(im->texts, base_str_text(&clean), clean.length, &id) != BASE_OK)
		go_no_memory(im);
	base_str_fini(&clean);
	for (; im->nr_texts < base_strtab_count(im->texts); im->nr_texts++) {
		const char *new = base_strtab_get(im->texts, im->nr_texts);
		PUT(im, 0, 0, string, .string = im->nr_texts, .text = {new, (uint32_t)strlen(new)});
	}
	return id;
}

static uint32_t go_site(struct go_import *im, uint32_t frame)
{
	if (!frame || frame >= im->t->nr_frames || im->site_of[frame])
		return frame < im->t->nr_frames ? im->site_of[frame] : 0;
	const struct gotrace_frame *f = &im->t->frame[frame];
	uint32_t function =
		go_string(im, format_go_short(base_strtab_get(im->t->texts, f->function)));
	uint32_t file = go_string(im, base_strtab_get(im->t->texts, f->file));
	uint32_t site = im->site_of[frame] = ++im->nr_sites;
	PUT(im, 0, 0, site, .site = site, .offset = f->pc);
	PUT(im, 0, 0, symbol, .site = site, .function = function, .file = file, .line = f->line,
		.function_offset = f->pc);
	return site;
}

static uint32_t go_site_at(struct go_import *im, uint32_t stack, uint32_t i)
{
	const struct gotrace *t = im->t;
	return stack < t->nr_stacks && i < t->stack[stack].nr
		       ? go_site(im, t->stack_frame[t->stack[stack].first + i])
		       : 0;
}

/* Frames from place `from` outwards. */
static uint32_t go_stack(struct go_import *im, uint32_t stack, uint32_t from)
{
	uint32_t parent = 0;
	uint64_t known;
	for (uint32_t i = stack < im->t->nr_stacks ? im->t->stack[stack].nr : 0; i-- > from;) {
		uint32_t site = go_site_at(im, stack, i);
		if (!base_map_get(&im->stacks, parent, site, &known)) {
			known = ++im->nr_stacks;
			if (base_map_put(&im->stacks, parent, site, known) != BASE_OK)
				go_no_memory(im);
			PUT(im, 0, 0, stack, .stack = (uint32_t)known, .parent = parent,
				.site = site);
		}
		parent = (uint32_t)known;
	}
	return parent;
}

/* ---- goroutines ------------------------------------------------------------------------------ */

static struct go_routine *go_find(struct go_import *im, uint64_t g)
{
	uint64_t ix;
	return g && base_map_get(&im->by_g, 0, g, &ix) ? &im->routine[ix - 1] : NULL;
}

static uint32_t go_index(const struct go_import *im, const struct go_routine *r)
{
	return (uint32_t)(r - im->routine) + 1;
}

/* Places of one function are one: the one that was seen first. */
static uint32_t go_role(struct go_import *im, uint32_t stack)
{
	const struct gotrace *t = im->t;
	uint64_t known;
	if (stack >= t->nr_stacks || !t->stack[stack].nr)
		return 0;
	uint32_t frame = t->stack_frame[t->stack[stack].first + t->stack[stack].nr - 1];
	if (base_map_get(&im->roles, UINT64_MAX, t->frame[frame].function, &known))
		return (uint32_t)known;
	if (base_map_put(&im->roles, UINT64_MAX, t->frame[frame].function, frame) != BASE_OK)
		go_no_memory(im);
	return frame;
}

static struct go_routine *go_make(struct go_import *im, uint64_t g, uint32_t stack)
{
	struct go_routine *r = go_find(im, g);
	if (r || !g)
		return r;
	if (base_grow(&im->routine, &im->routine_capacity, im->nr_routines + 1,
		    sizeof *im->routine) != BASE_OK ||
		base_map_put(&im->by_g, 0, g, im->nr_routines + 1) != BASE_OK) {
		go_no_memory(im);
		return NULL;
	}
	r = &im->routine[im->nr_routines++];
	*r = (struct go_routine){
		.g = g, .p = GOTRACE_NO_P, .role = g == GOTRACE_MAIN ? 0 : go_role(im, stack)};
	return r;
}

/* ---- first pass: where they run -------------------------------------------------------------- */

/* It has run since its last event, and now has this stack (0: not known): in what both have, else
 * where it was before. */
static void go_close_run(struct go_import *im, struct go_routine *r, uint32_t stack)
{
	if (r->open) {
		uint32_t of = r->stack, i = format_go_common(im->t, r->stack, stack);
		if (!of && stack) { /* from its beginning on */
			of = stack;
			i = format_go_outermost(im->t, stack);
		} else if (i == UINT32_MAX && r->g == GOTRACE_MAIN && stack) {
			of = stack; /* runtime.main, of which no stack tells, has called something
				       else */
			i = format_go_outermost(im->t, stack);
		} else if (i == UINT32_MAX) {
			i = format_go_innermost(im->t, of);
		}
		const struct gotrace_stack *s = &im->t->stack[of];
		im->runs_in[r->open - 1] = i < s->nr ? im->t->stack_frame[s->first + i] : r->role;
	}
	if (stack)
		r->stack = stack;
}

static void go_look(struct go_import *im, size_t at)
{
	const struct gotrace_event *e = &im->t->event[at];
	struct go_routine *r = go_make(
		im, e->g, e->kind == GOTRACE_exists && e->new_stack ? e->new_stack : e->stack);
	uint32_t creator = r ? go_index(im, r) : 0;
	if (e->kind == GOTRACE_create) {
		struct go_routine *child = go_make(im, e->other, e->new_stack);
		uint64_t before = 0;
		r = go_find(im, e->g); /* (they may have moved) */
		if (child && creator && !child->creator) {
			child->creator = creator;
			(void)base_map_get(&im->roles, creator, child->role, &before);
			child->sibling = (uint32_t)before;
			if (base_map_put(&im->roles, creator, child->role, go_index(im, child)) !=
				BASE_OK)
				go_no_memory(im);
		}
	}
	if (e->kind == GOTRACE_unblock) {
		struct go_routine *woken = go_find(im, e->other);
		if (woken && woken->asleep && format_go_selects(im->t, e->stack))
			im->is_chosen[woken->asleep - 1] = true;
	}
	if (!r || e->kind == GOTRACE_sample)
		return;
	r->asleep = e->kind == GOTRACE_block ? at + 1 : 0;
	/* Where it gave its processor up by chance says nothing: what it does goes on. */
	bool goes_on = e->kind == GOTRACE_start && r->stopped;
	r->stopped = e->kind == GOTRACE_stop;
	if (goes_on || r->stopped)
		return;
	go_close_run(im, r, e->stack);
	switch (e->kind) {
	case GOTRACE_block:
	case GOTRACE_end:
	case GOTRACE_call_away:
	case GOTRACE_call_begin:
		r->open = 0;
		break;
	case GOTRACE_call_return:
		break;
	case GOTRACE_exists:
		r->open = e->status == GOTRACE_STATUS_running ? at + 1 : 0;
		break;
	default:
		r->open = at + 1;
	}
}

/* ---- second pass: records -------------------------------------------------------------------- */

static uint64_t go_at(struct go_import *im, struct go_routine *r)
{
	if (r->last_ns < im->now_ns)
		r->last_ns = im->now_ns;
	return r->last_ns;
}

/* Its first record: made with that token. 0: it is the program's first. */
static void go_begin(struct go_import *im, struct go_routine *r, uint64_t token)
{
	uint32_t stream = go_index(im, r);
	if (r->written)
		return;
	r->written = true;
	PUT(im, 0, 0, stream, .stream = stream, .process = 1, .tid = r->g);
	PUT(im, go_at(im, r), stream, thread_begin, .token = token, .handle = r->g,
		.site = go_site(im, r->role));
}

static void go_begin_unseen(struct go_import *im, struct go_routine *r)
{
	go_begin(im, r, UINT64_C(1) << GO_FOREIGN_BIT | r->g);
}

/* is_chosen: the goroutine that ended it could have gone on with another one as well. */
static void go_wait(struct go_import *im, struct go_routine *r, const struct format_go_wait *w,
	uint32_t stack, bool is_chosen)
{
	enum trace_task how = is_chosen && w->how == TRACE_TASK_meeting ? TRACE_TASK_wait : w->how;
	uint32_t i = format_go_innermost(im->t, stack);
	uint32_t what = go_string(im, w->text);
	r->wait = w;
	PUT(im, go_at(im, r), go_index(im, r), task_wait, .what = what, .how = how,
		.site = go_site_at(im, stack, i), .stack = go_stack(im, stack, i + 1));
}

static void go_leave(struct go_import *im, struct go_routine *r, bool runnable)
{
	if (r->p != GOTRACE_NO_P)
		PUT(im, go_at(im, r), go_index(im, r), cpu_out, .processor = r->p,
			.preempted = runnable ? TRACE_LEFT_runnable : TRACE_LEFT_asleep);
	r->p = GOTRACE_NO_P;
}

static void go_ready(struct go_import *im, struct go_routine *r)
{
	go_leave(im, r, false);
	PUT(im, go_at(im, r), go_index(im, r), task_ready, .how = 0);
	r->status = GOTRACE_STATUS_runnable;
	r->wait = NULL;
}

/* The text of work for the runtime that it does; 0: it does its own. */
static uint32_t go_work(struct go_import *im, const struct go_routine *r)
{
	const char *role = base_strtab_get(im->t->texts, im->t->frame[r->role].function);
	return r->assists ? r->assists
	       : strcmp(role, "runtime.gcBgMarkWorker") != 0
		       ? 0
		       : go_string(im, "marking for the garbage collector (background)");
}

static void go_run(struct go_import *im, struct go_routine *r, size_t at)
{
	uint32_t what = go_work(im, r);
	PUT(im, go_at(im, r), go_index(im, r), task_run, .what = what,
		.site = go_site(im, im->runs_in[at]));
}

static const struct format_go_wait go_system_call = {.text = "system call", .how = TRACE_TASK_call};

static void go_exists(
	struct go_import *im, struct go_routine *r, const struct gotrace_event *e, size_t at)
{
	if (r->written && r->g != GOTRACE_MAIN && r->status != GOTRACE_STATUS_dead)
		return;
	go_begin_unseen(im, r);
	r->status = e->status;
	if (e->status == GOTRACE_STATUS_waiting) {
		go_wait(im, r, format_go_wait_of(im->t, "before", e->stack), e->stack, false);
	} else if (e->status == GOTRACE_STATUS_syscall) {
		go_wait(im, r, &go_system_call, e->stack, false);
	} else if (e->status == GOTRACE_STATUS_running && e->p != GOTRACE_NO_P) {
		r->p = e->p;
		go_run(im, r, at);
		PUT(im, go_at(im, r), go_index(im, r), cpu_in, .processor = e->p);
	} else {
		go_ready(im, r);
	}
}

static void go_create(
	struct go_import *im, struct go_routine *by, const struct gotrace_event *e, size_t at)
{
	struct go_routine *r = go_find(im, e->other);
	if (!r || r->written)
		return;
	if (by) {
		PUT(im, go_at(im, by), go_index(im, by), thread_create, .token = r->g,
			.site = go_site(im, im->runs_in[at]));
		im->now_ns++;
		go_begin(im, r, r->g);
	} else {
		go_begin_unseen(im, r);
	}
	r->status = e->status;
	if (e->status == GOTRACE_STATUS_waiting)
		go_wait(im, r, format_go_wait_of(im->t, "coroutine switch", 0), 0, false);
	else
		go_ready(im, r);
}

static void go_start(
	struct go_import *im, struct go_routine *r, const struct gotrace_event *e, size_t at)
{
	im->nr_strays += r->status != GOTRACE_STATUS_runnable;
	if (r->status != GOTRACE_STATUS_runnable)
		go_ready(im, r);
	if (!r->stopped)
		go_run(im, r, at);
	r->stopped = false;
	if (e->p != GOTRACE_NO_P)
		PUT(im, go_at(im, r), go_index(im, r), cpu_in, .processor = e->p);
	r->p = e->p;
	r->status = GOTRACE_STATUS_running;
}

/* Does the waker end a WaitGroup's wait? Then each of its siblings had to be done with it, too; of
 * those that have ended that is known. */
static void go_needs(struct go_import *im, const struct go_routine *waker, struct go_routine *r)
{
	if (!waker || !waker->creator || !r->wait ||
		strcmp(r->wait->function, "sync.(*WaitGroup)") != 0)
		return;
	uint64_t newest = 0;
	(void)base_map_get(&im->roles, waker->creator, waker->role, &newest);
	for (unsigned n = 0; newest && n < GO_NEEDS_MAX; n++) {
		struct go_routine *sibling = &im->routine[newest - 1];
		newest = sibling->sibling;
		if (sibling->status != GOTRACE_STATUS_dead || !sibling->written ||
			sibling->joined || sibling == waker)
			continue;
		sibling->joined = true;
		PUT(im, im->now_ns - 1, go_index(im, r), task_needs,
			.ended = go_index(im, sibling));
	}
}

static void go_unblock(
	struct go_import *im, struct go_routine *by, const struct gotrace_event *e, size_t at)
{
	struct go_routine *r = go_make(im, e->other, 0);
	by = go_find(im, e->g);
	if (!r)
		return;
	if (!r->written)
		go_begin_unseen(im, r);
	im->nr_strays += r->status != GOTRACE_STATUS_waiting;
	if (r->status != GOTRACE_STATUS_waiting)
		return;
	bool known = by && by->status == GOTRACE_STATUS_running && r->wait &&
		     r->wait->how <= TRACE_TASK_meeting;
	if (!known) {
		go_ready(im, r);
		return;
	}
	go_needs(im, by, r);
	PUT(im, go_at(im, by), go_index(im, by), task_wake, .woken = go_index(im, r),
		.site = go_site(im, im->runs_in[at]));
	r->last_ns = im->now_ns;
	r->status = GOTRACE_STATUS_runnable;
	r->wait = NULL;
}

static void go_call(
	struct go_import *im, struct go_routine *r, const struct gotrace_event *e, size_t at)
{
	bool tells_ends = im->t->tells_calls;
	if (e->kind == GOTRACE_call_begin) {
		r->stack = e->stack;
		if (tells_ends)
			go_wait(im, r, &go_system_call, e->stack, false);
		r->called = tells_ends;
		return;
	}
	if (e->kind == GOTRACE_call_end) {
		r->called = false;
		r->status = GOTRACE_STATUS_running;
		go_run(im, r, at);
		return;
	}
	if (e->kind == GOTRACE_call_away) {
		if (!r->called)
			go_wait(im, r, &go_system_call, r->stack, false);
		r->called = true;
		go_leave(im, r, false);
		r->status = GOTRACE_STATUS_syscall;
		return;
	}
	r->called = false;
	go_ready(im, r);
}

static void go_works(
	struct go_import *im, struct go_routine *r, const struct gotrace_event *e, size_t at)
{
	static const char *const text[GOTRACE_KIND_NR] = {
		[GOTRACE_assist_begin] = "marking for the garbage collector (assist)",
		[GOTRACE_sweep_begin] = "sweeping for the garbage collector",
		[GOTRACE_stw_begin] = "stopping the world, and all that is done then",
	};
	if (r->status != GOTRACE_STATUS_running)
		return;
	r->assists = text[e->kind] ? go_string(im, text[e->kind]) : 0;
	go_run(im, r, at);
}

static void go_sample(struct go_import *im, struct go_routine *r, const struct gotrace_event *e)
{
	if (r->status == GOTRACE_STATUS_running && r->p != GOTRACE_NO_P && e->stack)
		PUT(im, go_at(im, r), go_index(im, r), sample, .site = go_site_at(im, e->stack, 0),
			.stack = go_stack(im, e->stack, 1));
}

/* A side of a channel has a number; of those with a buffer it is told. */
static void go_channel(
	struct go_import *im, struct go_routine *r, const struct gotrace_event *e, bool is_chosen)
{
	uint64_t side;
	if (!e->room || is_chosen)
		return;
	if (!base_map_get(&im->sides, e->text, e->other, &side)) {
		side = ++im->nr_sides;
		if (base_map_put(&im->sides, e->text, e->other, side) != BASE_OK)
			go_no_memory(im);
	}
	PUT(im, go_at(im, r), go_index(im, r), task_channel, .side = side, .room = e->room);
}

static void go_convert(struct go_import *im, size_t at)
{
	const struct gotrace_event *e = &im->t->event[at];
	const struct gotrace_event *next = at + 1 < im->t->nr_events ? e + 1 : NULL;
	struct go_routine *r = go_find(im, e->g);
	im->now_ns = e->time_ns > im->now_ns + 1 ? e->time_ns : im->now_ns + 2;
	if (r && !r->written && e->kind != GOTRACE_exists && e->kind != GOTRACE_sample)
		go_begin_unseen(im, r);
	if (e->kind == GOTRACE_create) {
		go_create(im, r, e, at);
	} else if (e->kind == GOTRACE_unblock) {
		go_unblock(im, r, e, at);
	}
	if (!r)
		return;
	switch (e->kind) {
	case GOTRACE_exists: /* version 1 tells it in two parts */
		if (!next || next->kind != GOTRACE_exists || next->g != e->g)
			go_exists(im, r, e, at);
		break;
	case GOTRACE_start:
		go_start(im, r, e, at);
		break;
	case GOTRACE_stop:
		go_leave(im, r, true);
		r->status = GOTRACE_STATUS_runnable;
		r->stopped = true;
		break;
	case GOTRACE_block:
		go_channel(im, r, e, im->is_chosen[at]);
		go_wait(im, r,
			format_go_wait_of(im->t, base_strtab_get(im->t->texts, e->text), e->stack),
			e->stack, im->is_chosen[at]);
		go_leave(im, r, false);
		r->status = GOTRACE_STATUS_waiting;
		break;
	case GOTRACE_end:
		PUT(im, go_at(im, r), go_index(im, r), thread_end);
		r->status = GOTRACE_STATUS_dead;
		r->p = GOTRACE_NO_P;
		break;
	case GOTRACE_call_begin:
	case GOTRACE_call_end:
	case GOTRACE_call_away:
	case GOTRACE_call_return:
		go_call(im, r, e, at);
		break;
	case GOTRACE_assist_begin:
	case GOTRACE_assist_end:
	case GOTRACE_sweep_begin:
	case GOTRACE_sweep_end:
	case GOTRACE_stw_begin:
	case GOTRACE_stw_end:
		go_works(im, r, e, at);
		break;
	case GOTRACE_sample:
		go_sample(im, r, e);
		break;
	default:
		break;
	}
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* The goroutine whose last moment is the run's: the main one if it runs then, else the one that
 * ended the trace, which is one that runs. */
static struct go_routine *go_end_of(struct go_import *im)
{
	struct go_routine *main = go_find(im, GOTRACE_MAIN), *found = NULL;
	for (size_t i = 0; i < im->nr_routines; i++) {
		struct go_routine *r = &im->routine[i];
		const char *role = base_strtab_get(im->t->texts, im->t->frame[r->role].function);
		if (r->status == GOTRACE_STATUS_running && r->written &&
			(r == main || !format_go_is_plumbing(role)) &&
			(!found || r == main || (found != main && r->last_ns > found->last_ns)))
			found = r;
	}
	if (!found)
		found = main && main->written ? main : NULL;
	return found;
}

/* The trace's name without directories and its ending: whose trace it is Go does not say. */
static uint32_t go_program(struct go_import *im, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	char text[256];
	size_t length = dot && dot != name ? (size_t)(dot - name) : strlen(name);
	length = length < sizeof text ? length : sizeof text - 1;
	memcpy(text, name, length);
	text[length] = '\0';
	return go_string(im, *text ? text : "go");
}

static enum base_status go_write(struct go_import *im, const char *name)
{
	const struct gotrace *t = im->t;
	for (size_t i = 0; i < t->nr_events && im->status == BASE_OK; i++)
		go_look(im, i);
	if (im->status == BASE_OK && !im->nr_routines)
		return base_fail(im->err, BASE_ERR_FOREIGN, "there is no goroutine in it");
	struct go_routine *first = go_find(im, GOTRACE_MAIN);
	uint32_t program = go_program(im, name);
	if (im->status != BASE_OK)
		return im->status;
	first = first ? first : im->routine;
	PUT(im, 0, 0, process, .process = 1, .pid = 1, .name = program, .command = program);
	go_begin(im, first, 0);
	PUT(im, 0, go_index(im, first), task_run, .site = 0);
	for (size_t i = 0; i < im->nr_routines; i++) {
		go_close_run(im, &im->routine[i], 0);
		im->routine[i].stack = 0;
		im->routine[i].stopped = false;
	}
	for (size_t i = 0; i < t->nr_events && im->status == BASE_OK; i++)
		go_convert(im, i);
	struct go_routine *last = go_end_of(im);
	im->now_ns++;
	if (last)
		PUT(im, go_at(im, last), go_index(im, last), process_end, .status = -1);
	return im->status;
}

static void go_note(const struct go_import *im, struct base_str *notes)
{
	const struct gotrace *t = im->t;
	base_str_addf(notes,
		"%zu {goroutine|goroutines} on %" PRIu32
		" {processor|processors} (P), by Go 1.%u\n",
		im->nr_routines, t->nr_processors, t->version);
	base_str_add(notes, "Go's trace does not tell of channel operations and locks that held "
			    "nobody up: a change may bring them into play\n");
	format_note_count(notes, t->nr_disordered,
		"%s {event|events} came before what they follow from: some waits have no cause");
	format_note_count(notes, im->nr_strays,
		"%s {time|times} a goroutine ran or was woken that was not waiting for that");
	format_note_count(notes, t->nr_damaged,
		"%s {part|parts} could not be read to their ends: left out from there");
	if (t->is_cut)
		base_str_add(notes, "the file is cut short: imported as far as it goes\n");
}

static enum base_status go_read(
	const struct format_source *from, struct gotrace **ret, struct base_err *err)
{
	char *bytes = NULL;
	size_t nr = 0;
	enum base_status s = format_read_all(from, &bytes, &nr, err);
	if (s == BASE_OK)
		s = gotrace_read((const uint8_t *)bytes, nr, ret, err);
	base_free(bytes);
	return s;
}

enum base_status format_started_go(
	const struct format_source *from, struct format_started *ret, struct base_err *err)
{
	struct gotrace *t = NULL;
	enum base_status s = go_read(from, &t, err);
	ret->is_program = true;
	if (s == BASE_OK)
		ret->nr_processors = t->nr_processors;
	gotrace_free(t);
	return s;
}

enum base_status format_import_go(const struct format_source *from, struct trace_writer *to,
	const struct format_import_options *opts, struct base_str *notes, struct base_err *err)
{
	struct gotrace *t = NULL;
	(void)opts;
	enum base_status s = go_read(from, &t, err);
	if (s == BASE_OK)
		s = format_go_write(t, from->name, to, notes, err);
	gotrace_free(t);
	return s;
}

enum base_status format_go_write(const struct gotrace *t, const char *name, struct trace_writer *to,
	struct base_str *notes, struct base_err *err)
{
	struct go_import im = {.t = t,
		.to = to,
		.err = err,
		.nr_texts = 1,
		.texts = base_strtab_new(),
		.site_of = base_alloc((t->nr_frames + 1) * sizeof *im.site_of),
		.runs_in = base_alloc((t->nr_events + 1) * sizeof *im.runs_in),
		.is_chosen = base_alloc(t->nr_events + 1)};
	if (!im.texts || !im.site_of || !im.runs_in || !im.is_chosen)
		go_no_memory(&im);
	else
		im.status = go_write(&im, name);
	if (im.status == BASE_OK) {
		go_note(&im, notes);
		trace_writer_count(to, TRACE_DIAG_import_skipped, t->nr_damaged + t->nr_disordered);
		trace_writer_count(to, TRACE_DIAG_import_cut, t->is_cut);
	}
	base_strtab_free(im.texts);
	base_free(im.site_of);
	base_free(im.runs_in);
	base_free(im.is_chosen);
	base_free(im.routine);
	base_map_fini(&im.by_g);
	base_map_fini(&im.roles);
	base_map_fini(&im.sides);
	base_map_fini(&im.stacks);
	return im.status;
}
