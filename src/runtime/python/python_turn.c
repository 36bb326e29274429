/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_turn.c - tasks of asyncio, as actors that take turns on the thread of their event loop.
 *
 * The interpreter's module _asyncio runs a step of a task by one call of PyIter_Send(), and hands
 * what is ready to its loop by one of the loop's call_soon(): PyObject_VectorcallMethod(), before
 * 3.12 PyObject_Vectorcall(). These lead through the module's table of addresses (GOT), where they
 * are led to us; we tell what happens and call on. No
 * Python code is run by us, and no object is changed. What is read are objects that the caller
 * holds, under the interpreter's global lock.
 *
 * Where a task is, its coroutines say: from the outermost on, each that waits has the next one on
 * top of what it computes with.
 */
#include "preload/got.h"
#include "preload/place.h"
#include "runtime/python/python.h"

#ifndef PRELOAD_STATIC

#include <sys/syscall.h>
#include <time.h>

enum {
	TURN_SLOT_BITS = 14, /* tasks that are known at once */
	TURN_PROBES = 8,
	TURN_TASK_WORDS = 64, /* of a task, looked at for its coroutine */
	TURN_DEPTH = RING_STACK_MAX,
	TURN_CALLERS = 12, /* frames above one that makes a task ready */
	TURN_FIRST = 8,    /* tasks that were ready before it was known where their coroutine is */
	TURN_SLEEP_VARIABLES = 5,
	TURN_TRIES_MAX = 1000,
};

/* A task of this process, by its coroutine. */
struct turn_known {
	uintptr_t coroutine, task; /* task: 0: not known */
	uint64_t number, loop;     /* loop: object; 0: not known */
	uint64_t role, site; /* places: of its coroutine, and where it goes on; 0: not known */
};
static struct turn_known turn_table[1 << TURN_SLOT_BITS];
static uint64_t turn_nr;
static uint32_t turn_coroutine_at; /* in a task; 0: not known yet */
static uintptr_t turn_first[TURN_FIRST];
static uint32_t turn_nr_first;
static uint32_t turn_led_in, turn_nr_tries; /* led_in: image, whose calls are led */

/* A turn that the thread is in; others may be within it. */
struct turn {
	struct turn *outer;
	struct turn_known *task;
};

/* ---- objects --------------------------------------------------------------------------------- */

static uintptr_t turn_type(uintptr_t object)
{
	return python_word(object + PYTHON_TYPE);
}

static const char *turn_type_name(uintptr_t object)
{
	const char *name = (const char *)python_word(turn_type(object) + PYTHON_TYPE_NAME);
	const char *dot = strrchr(name, '.');
	return dot ? dot + 1 : name;
}

static size_t turn_words(uintptr_t object)
{
	const size_t nr = python_word(turn_type(object) + PYTHON_TYPE_BYTES) / sizeof(uintptr_t);
	return nr < TURN_TASK_WORDS ? nr : TURN_TASK_WORDS;
}

/* Its frame; 0: it is no coroutine or generator of Python's. */
static uintptr_t turn_frame(uintptr_t object)
{
	const struct python_asyncio *a = &python_found.asyncio;
	const uintptr_t type = object ? turn_type(object) : 0;
	return type && (type == a->coroutine || type == a->generator)
		       ? object + python_found.layout.coroutine_frame
		       : 0;
}

static uint64_t turn_role(uintptr_t coroutine)
{
	const uintptr_t frame = turn_frame(coroutine);
	const uint64_t number = frame ? python_frame_function(frame) & PLACE_NUMBER : 0;
	return number ? ring_place(number) : 0;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static struct turn_known *turn_slot(uintptr_t coroutine, unsigned probe)
{
	const uint64_t hash = (coroutine >> 4) * 0x9e3779b97f4a7c15u >> (64 - TURN_SLOT_BITS);
	return &turn_table[(hash + probe) & ((1 << TURN_SLOT_BITS) - 1)];
}

static struct turn_known *turn_find(uintptr_t coroutine)
{
	for (unsigned i = 0; i < TURN_PROBES; i++)
		if (turn_slot(coroutine, i)->coroutine == coroutine)
			return turn_slot(coroutine, i);
	return NULL;
}

/* NULL: there are too many. */
static struct turn_known *turn_add(uintptr_t coroutine, uintptr_t task)
{
	for (unsigned i = 0; i < TURN_PROBES; i++) {
		struct turn_known *k = turn_slot(coroutine, i);
		if (k->coroutine && k->coroutine != coroutine)
			continue;
		*k = (struct turn_known){coroutine, task, ++turn_nr, .role = turn_role(coroutine)};
		return k;
	}
	return NULL;
}

/* Where in that task is one of the words that say which coroutine it is made of? */
static bool turn_learn(uintptr_t task, uintptr_t coroutine)
{
	for (size_t i = 2; i < turn_words(task); i++)
		if (python_word(task + i * sizeof(uintptr_t)) == coroutine) {
			turn_coroutine_at = (uint32_t)(i * sizeof(uintptr_t));
			return true;
		}
	return false;
}

/* A task that is made ready before any has been seen to run: it is asked again when one runs. */
static void turn_keep_first(uintptr_t task)
{
	for (uint32_t i = 0; i < turn_nr_first; i++)
		if (turn_first[i] == task)
			return;
	if (turn_nr_first < TURN_FIRST)
		turn_first[turn_nr_first++] = task;
}

/* One that was known by its coroutine only, before the first was made ready that is known. */
static bool turn_learn_from_known(uintptr_t task)
{
	for (size_t i = 2; i < turn_words(task); i++) {
		const uintptr_t word = python_word(task + i * sizeof(uintptr_t));
		struct turn_known *k = word ? turn_find(word) : NULL;
		if (k && !k->task) {
			turn_coroutine_at = (uint32_t)(i * sizeof(uintptr_t));
			return true;
		}
	}
	return false;
}

/* NULL: not known. */
static struct turn_known *turn_of_task(uintptr_t task)
{
	if (!turn_coroutine_at && !turn_learn_from_known(task)) {
		turn_keep_first(task);
		return NULL;
	}
	const uintptr_t coroutine = python_word(task + turn_coroutine_at);
	struct turn_known *k = coroutine ? turn_find(coroutine) : NULL;
	if (k && !k->task)
		k->task = task;
	/* (another object may have come to lie there) */
	return k && k->task == task ? k : coroutine ? turn_add(coroutine, task) : NULL;
}

static struct turn_known *turn_of_coroutine(uintptr_t coroutine)
{
	struct turn_known *k = turn_find(coroutine);
	for (uint32_t i = 0; !turn_coroutine_at && i < turn_nr_first; i++)
		(void)turn_learn(turn_first[i], coroutine);
	return k ? k : turn_add(coroutine, 0);
}

/* ---- where a task is ------------------------------------------------------------------------- */

/* What a coroutine that waits waits for: on top of what it computes with. */
static uintptr_t turn_awaits(uintptr_t coroutine, uintptr_t frame)
{
	const struct python_layout *l = &python_found.layout;
	const int32_t top = *(const int32_t *)(frame + l->top);
	if (turn_type(coroutine) != python_found.asyncio.coroutine || top < 1)
		return 0;
	return python_word(frame + l->variables + (size_t)(top - 1) * sizeof(uintptr_t));
}

/* The frames of a task that waits, outermost first. Of more than there is room for the innermost are
 * left out. */
static size_t turn_frames(uintptr_t coroutine, uintptr_t frame[TURN_DEPTH])
{
	size_t nr = 0;
	for (uintptr_t f; nr < TURN_DEPTH && (f = turn_frame(coroutine)); nr++) {
		frame[nr] = f;
		coroutine = turn_awaits(coroutine, f);
	}
	return nr;
}

/* The moment of a timer (TimerHandle), by the loop's clock in seconds; 0: none. */
static double turn_when(uintptr_t timer)
{
	if (strcmp(turn_type_name(timer), "TimerHandle") != 0)
		return 0;
	for (size_t i = 2; i < turn_words(timer); i++) {
		const uintptr_t word = python_word(timer + i * sizeof(uintptr_t));
		double when;
		if (!word || turn_type(word) != python_found.asyncio.number)
			continue;
		memcpy(&when, (const void *)(word + PYTHON_FLOAT), sizeof when);
		return when;
	}
	return 0;
}

/* How long asyncio.sleep() sleeps from now, whose frame that is; 0: not known. */
static uint64_t turn_sleeps_ns(uintptr_t frame)
{
	static const char name[] = "sleep";
	struct timespec now = {0};
	if (!python_frame_is(frame, name, sizeof name - 1) ||
		preload_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0, 0, 0, 0) != 0)
		return 0;
	for (size_t i = 0; i < TURN_SLEEP_VARIABLES; i++) {
		const uintptr_t object = python_word(frame + python_found.layout.variables + i * 8);
		const double when = object ? turn_when(object) : 0;
		const double left = (when - (double)now.tv_sec) * 1e9 - (double)now.tv_nsec;
		if (when > 0)
			return left >= 1 && left < 1e18 ? (uint64_t)left : 1;
	}
	return 0;
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* The thread's loop, which it runs from now on. */
static uint64_t turn_loop(struct preload_thread *self)
{
	if (!self->loop.object)
		preload_loop_begin((const void *)python_thread(), "of asyncio");
	return self->loop.object;
}

static void turn_begins(struct preload_thread *self, struct turn_known *k)
{
	const struct preload_loop_hand hand = {.to = k->site ? k->site : k->role};
	k->loop = turn_loop(self);
	preload_loop_hand(PRELOAD_turn_begin, PRELOAD_WORDS(k->number, k->loop, k->role), &hand);
}

/* A function that others of its library call: its name begins with "_". */
static bool turn_is_private(uintptr_t frame)
{
	const struct python_layout *l = &python_found.layout;
	const uintptr_t name = python_word(python_word(frame + l->code) + l->name);
	const size_t nr_bytes = python_word(name + PYTHON_TEXT_LENGTH);
	const char *text = (const char *)name + l->ascii, *dot = memrchr(text, '.', nr_bytes);
	return nr_bytes && *(dot ? dot + 1 : text) == '_';
}

/* Where a task waits. */
struct turn_place {
	uint64_t at, site; /* as turn_end has them */
	uint64_t remaining_ns;
	struct preload_stack stack;
};

/* Are its frames to be told, too? Of the first, then of one in some. */
static bool turn_wants_stack(struct preload_thread *self)
{
	enum { ALWAYS = 64, ONE_IN = 16 };
	const struct ring_head *head = preload_fresh.head;
	const uint32_t turn = self->nr_stacks++;
	return head && head->stack_depth_max && (turn < ALWAYS || turn % ONE_IN == 0);
}

/* The innermost function of the program's own, and which of the library's that called, without those
 * that are the library's own matter. */
static void turn_locate(uintptr_t coroutine, bool wants_stack, struct turn_place *ret)
{
	uintptr_t frame[TURN_DEPTH];
	const size_t nr = turn_frames(coroutine, frame);
	ret->at = ret->site = ret->stack.nr_frames = 0;
	ret->remaining_ns = nr ? turn_sleeps_ns(frame[nr - 1]) : 0;
	for (size_t i = nr; i-- > 0 && (wants_stack || !ret->site);) {
		const uint64_t known = python_frame_place(frame[i]);
		const uint64_t place = ring_place(known & PLACE_NUMBER);
		if (!(known & PLACE_NUMBER))
			continue;
		if (wants_stack)
			ret->stack.frame[ret->stack.nr_frames++] = place;
		if (ret->site)
			continue;
		if (!(known & PLACE_LIBRARY))
			ret->site = place;
		else if (!ret->at || !turn_is_private(frame[i]))
			ret->at = place;
	}
}

/* Returns where it goes on. */
static uint64_t turn_ends(uintptr_t coroutine, bool has_ended)
{
	struct turn_place p;
	if (has_ended)
		p.at = p.site = p.remaining_ns = p.stack.nr_frames = 0;
	else
		turn_locate(coroutine, turn_wants_stack(preload_own()), &p);
	const struct preload_loop_hand hand = {.from = p.site, .stack = &p.stack};
	preload_loop_hand(PRELOAD_turn_end,
		PRELOAD_WORDS(has_ended ? TRACE_TURN_ends : TRACE_TURN_waits, p.remaining_ns, p.at,
			p.site, 0),
		&hand);
	return p.site;
}

/* Does a timer of the loop do that? */
static bool turn_is_timed(void)
{
	static const char name[] = "Handle._run";
	uintptr_t frame = python_frame_first();
	for (int i = 0; frame && i < TURN_CALLERS; i++) {
		if (python_frame_is(frame, name, sizeof name - 1)) {
			const uintptr_t self = python_word(frame + python_found.layout.variables);
			return self && strcmp(turn_type_name(self), "TimerHandle") == 0;
		}
		frame = python_word(frame + python_found.layout.previous);
	}
	return false;
}

static void turn_is_due(uintptr_t task)
{
	struct preload_thread *self = preload_own();
	struct turn_known *k = turn_of_task(task);
	const uint64_t loop = k && k->loop ? k->loop : self->loop.object;
	if (k && loop)
		PRELOAD_RECORD(
			turn_due, k->number, !self->loop.turn && turn_is_timed(), loop, k->role);
}

/* ---- what _asyncio calls --------------------------------------------------------------------- */

typedef int turn_send(uintptr_t coroutine, uintptr_t value, uintptr_t *result);
typedef uintptr_t turn_call(
	uintptr_t name, const uintptr_t *arguments, size_t nr, uintptr_t keywords);

static int turn_sent(uintptr_t coroutine, uintptr_t value, uintptr_t *result)
{
	enum { SENT_NEXT = 1 };
	turn_send *real = (turn_send *)python_found.asyncio.send;
	struct preload_thread *self = preload_own();
	struct turn turn = {.outer = self->loop.turn};
	if (preload_on() && turn_frame(coroutine))
		turn.task = turn_of_coroutine(coroutine);
	if (!turn.task)
		return real(coroutine, value, result);
	struct turn_known task = *turn.task; /* the table may change meanwhile */
	if (turn.outer)
		(void)turn_ends(turn.outer->task->coroutine, false);
	turn_begins(self, turn.task);
	turn.task = &task;
	self->loop.turn = &turn;
	const int status = real(coroutine, value, result);
	self = preload_own();
	self->loop.turn = turn.outer;
	task.site = turn_ends(coroutine, status != SENT_NEXT);
	struct turn_known *known = turn_find(coroutine);
	if (known && known->number == task.number) {
		known->site = task.site;
		known->coroutine = status == SENT_NEXT ? coroutine : 0;
	}
	if (turn.outer)
		turn_begins(self, turn.outer->task);
	return status;
}

enum { BUILT_IN_WHAT = 16, BUILT_IN_SELF = 24 };

/* The task of what is called soon, where that is a step of one; 0: it is another thing. */
static uintptr_t turn_called(uintptr_t callback)
{
	static const char step[] = "TaskStepMethWrapper", wake[] = "TaskWakeupMethWrapper",
			  wake_function[] = "task_wakeup";
	enum { WRAPPED = 16 };
	if (turn_type(callback) == python_found.asyncio.built_in) {
		const char *const *what =
			(const char *const *)python_word(callback + BUILT_IN_WHAT);
		return what && *what && strcmp(*what, wake_function) == 0
			       ? python_word(callback + BUILT_IN_SELF)
			       : 0;
	}
	const char *name = turn_type_name(callback);
	return strcmp(name, step) == 0 || strcmp(name, wake) == 0 ? python_word(callback + WRAPPED)
								  : 0;
}

static const char turn_call_soon[] = "call_soon";

static bool turn_is_call_soon(uintptr_t name)
{
	return python_word(name + PYTHON_TEXT_LENGTH) == sizeof turn_call_soon - 1 &&
	       memcmp((const char *)name + python_found.layout.ascii, turn_call_soon,
		       sizeof turn_call_soon - 1) == 0;
}

/* A method of an object: a function of Python's, or of a loop that is compiled. */
static bool turn_is_bound_call_soon(uintptr_t method)
{
	enum { BOUND_FUNCTION = 16, FUNCTION_NAME = 32 };
	if (turn_type(method) == python_found.asyncio.built_in) {
		const char *const *what = (const char *const *)python_word(method + BUILT_IN_WHAT);
		return what && *what && strcmp(*what, turn_call_soon) == 0;
	}
	if (turn_type(method) != python_found.asyncio.method)
		return false;
	const uintptr_t function = python_word(method + BOUND_FUNCTION);
	return turn_type(function) == python_found.asyncio.function &&
	       turn_is_call_soon(python_word(function + FUNCTION_NAME));
}

static uintptr_t turn_calls(
	uintptr_t name, const uintptr_t *arguments, size_t nr, uintptr_t keywords)
{
	turn_call *real = (turn_call *)python_found.asyncio.call;
	const size_t given = nr & (SIZE_MAX >> 1); /* (the highest bit is a flag) */
	if (given >= 2 && preload_on() && turn_is_call_soon(name)) {
		const uintptr_t task = turn_called(arguments[1]);
		if (task)
			turn_is_due(task);
	}
	return real(name, arguments, nr, keywords);
}

static uintptr_t turn_calls_bound(
	uintptr_t method, const uintptr_t *arguments, size_t nr, uintptr_t keywords)
{
	turn_call *real = (turn_call *)python_found.asyncio.call_bound;
	const size_t given = nr & (SIZE_MAX >> 1);
	if (given >= 1 && keywords && preload_on()) {
		const uintptr_t task = turn_called(arguments[0]);
		if (task && turn_is_bound_call_soon(method))
			turn_is_due(task);
	}
	return real(method, arguments, nr, keywords);
}

/* ---- finding it ------------------------------------------------------------------------------ */

void python_turn_meets(const struct dl_phdr_info *info)
{
	struct python_asyncio *a = &python_found.asyncio;
	const char *slash = strrchr(info->dlpi_name, '/');
	const uintptr_t needed[] = {a->send, a->call, a->call_bound, a->coroutine, a->generator,
		a->built_in, a->method, a->function, a->number};
	if (!slash || strncmp(slash + 1, "_asyncio.", 9) != 0)
		return;
	for (size_t i = 0; i < PRELOAD_COUNT(needed); i++)
		if (!needed[i])
			return;
	a->bias = info->dlpi_addr;
	a->nr_segments = info->dlpi_phnum;
	__atomic_store_n(&a->segment, info->dlpi_phdr, __ATOMIC_RELEASE);
}

/* Some time after it was loaded: a thread that waits for readiness then may be its first loop. */
static PRELOAD_COLD void turn_lead(void)
{
	const struct python_asyncio *a = &python_found.asyncio;
	const struct preload_got_name names[] = {
		{"PyIter_Send", a->send, (uintptr_t)turn_sent},
		{"PyObject_VectorcallMethod", a->call, (uintptr_t)turn_calls},
		{"PyObject_Vectorcall", a->call_bound, (uintptr_t)turn_calls_bound},
	};
	if (turn_nr_tries++ < TURN_TRIES_MAX &&
		!preload_got_lead_names(
			a->bias, a->segment, a->nr_segments, names, PRELOAD_COUNT(names)))
		__atomic_store_n(&turn_led_in, 0, __ATOMIC_RELEASE);
}

void preload_python_polls(void)
{
	const void *segment = __atomic_load_n(&python_found.asyncio.segment, __ATOMIC_ACQUIRE);
	const uint32_t image = preload_fresh.image;
	if (PRELOAD_RARE(segment && __atomic_load_n(&turn_led_in, __ATOMIC_ACQUIRE) != image) &&
		__atomic_exchange_n(&turn_led_in, image, __ATOMIC_ACQ_REL) != image)
		turn_lead();
}

#endif
