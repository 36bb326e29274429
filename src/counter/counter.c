/* SPDX-License-Identifier: Apache-2.0 */
/* counter.c - sets of events: which source counts which, reading, saying so. */
#include "counter/counter_priv.h"
#include "counter/processor.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { NAME_MAX_BYTES = 32, READ_TRIES = 8 };

/* ---- names ----------------------------------------------------------------------------------- */

static const struct counter_event table[] = {
#define EVENT(name, text, unit, how, type, config) {LONGPOLE_##name, text, unit, how, type, config},
#include "counter/events.def"
};
enum { TABLE_NR = sizeof table / sizeof *table };
static const char cycles_or_ticks[] = "cycles-or-ticks";

const struct counter_event *counter_event_of(enum longpole_event id)
{
	for (size_t i = 0; i < TABLE_NR; i++)
		if (table[i].id == id)
			return &table[i];
	return NULL;
}

const char *longpole_event_name(enum longpole_event event)
{
	const struct counter_event *found = counter_event_of(event);
	return found ? found->name : event == LONGPOLE_CYCLES_OR_TICKS ? cycles_or_ticks : NULL;
}

const char *longpole_event_unit(enum longpole_event event)
{
	const struct counter_event *found = counter_event_of(event);
	return found ? found->unit : "";
}

enum longpole_event longpole_event_find(const char *name)
{
	for (size_t i = 0; i < TABLE_NR; i++)
		if (!strcmp(table[i].name, name))
			return table[i].id;
	return strcmp(name, cycles_or_ticks) ? (enum longpole_event)0 : LONGPOLE_CYCLES_OR_TICKS;
}

enum longpole_event longpole_event_at(unsigned i)
{
	return i < TABLE_NR    ? table[i].id
	       : i == TABLE_NR ? LONGPOLE_CYCLES_OR_TICKS
			       : (enum longpole_event)0;
}

static const struct {
	const char *name, *text;
} backend_names[LONGPOLE_BACKEND_NR] = {
	[LONGPOLE_BACKEND_NONE] = {"none", "nobody"},
	[LONGPOLE_BACKEND_PMU] = {"pmu", "reads of the processor's counter in user space (rdpmc)"},
	[LONGPOLE_BACKEND_SENTINEL] = {"sentinel",
		"reads in user space; the restartable-sequence sentinel marks switches"},
	[LONGPOLE_BACKEND_PAGE] = {"page",
		"reads in user space; a perf page's sequence lock marks switches"},
	[LONGPOLE_BACKEND_BPF] = {"bpf", "reads in user space of what a BPF program counts"},
	[LONGPOLE_BACKEND_SYSCALL] = {"syscall", "a system call each read"},
};

const char *longpole_backend_name(enum longpole_backend backend)
{
	const char *name =
		(unsigned)backend < LONGPOLE_BACKEND_NR ? backend_names[backend].name : NULL;
	return name ? name : "?";
}

const char *longpole_counter_error_text(int error)
{
	static const char *const text[] = {
		[-LONGPOLE_COUNTER_OK] = "done",
		[-LONGPOLE_COUNTER_ARGUMENT] = "no such event, or more than 8 of them",
		[-LONGPOLE_COUNTER_NOT_COUNTED] = "an event of the set cannot be counted here",
		[-LONGPOLE_COUNTER_CLOSED] = "the set is not open",
		[-LONGPOLE_COUNTER_THREAD] = "the set was opened by another thread",
		[-LONGPOLE_COUNTER_FORKED] =
			"the set was opened by the parent process: close it and open one here",
		[-LONGPOLE_COUNTER_MULTIPLEXED] = "an event did not have a counter all the time",
		[-LONGPOLE_COUNTER_SYSTEM] = "the kernel refused what it gave before",
	};
	if (error > 0 || (size_t)-error >= sizeof text / sizeof *text)
		return "unknown error";
	return text[-error];
}

static const char *reason_text(unsigned reason)
{
	static const char *const text[] = {
#define REASON(name, line) line,
#include "counter/reasons.def"
	};
	return reason < COUNTER_REASON_NR ? text[reason] : "?";
}

/* ---- open ------------------------------------------------------------------------------------ */

static const uint32_t all_backends = 1u << LONGPOLE_BACKEND_PMU | 1u << LONGPOLE_BACKEND_SENTINEL |
				     1u << LONGPOLE_BACKEND_PAGE | 1u << LONGPOLE_BACKEND_BPF |
				     1u << LONGPOLE_BACKEND_SYSCALL;

/* "page,syscall" -> bits; unknown names allow nothing. */
static uint32_t backends_of(const char *text)
{
	uint32_t bits = 0;
	while (*text) {
		size_t length = strcspn(text, ",");
		for (unsigned b = 1; b < LONGPOLE_BACKEND_NR; b++) {
			const char *name = backend_names[b].name;
			if (name && strlen(name) == length && !memcmp(name, text, length))
				bits |= 1u << b;
		}
		text += length + (text[length] == ',');
	}
	return bits;
}

static uint32_t allowed_backends(const struct longpole_counter_options *options)
{
	const char *environment = secure_getenv("LONGPOLE_COUNTER_BACKEND");
	uint32_t bits = options && options->backends ? options->backends : all_backends;
	if (environment && *environment)
		bits &= backends_of(environment);
	return bits & all_backends;
}

static void counter_refuse(
	struct longpole_counted *e, enum longpole_backend backend, struct counter_refusal why)
{
	e->refused[backend] = (uint8_t)why.reason;
	e->refused_errno[backend] = (int16_t)why.sys_errno;
}

/* The clock and what moves with it: by the best mark that works, else by the kernel. */
static bool open_kept(
	struct longpole_counted *e, const struct counter_event *event, uint32_t backends)
{
	static const enum longpole_backend order[] = {
		LONGPOLE_BACKEND_SENTINEL, LONGPOLE_BACKEND_PAGE, LONGPOLE_BACKEND_SYSCALL};
	enum counter_kept slot =
		event->how == COUNTER_CLOCK ? COUNTER_KEPT_TICKS : (enum counter_kept)event->config;
	bool steady = counter_clock_init();
	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		struct counter_refusal why = {COUNTER_REASON_not_asked, 0};
		bool marked = order[i] != LONGPOLE_BACKEND_SYSCALL, works = false;
		if (!steady && (marked || slot == COUNTER_KEPT_TICKS))
			why.reason = COUNTER_REASON_no_tsc;
		else if (backends & 1u << order[i])
			works = (!marked || counter_mark_works(order[i], &why)) &&
				counter_thread_use(order[i], slot, &why);
		if (works) {
			e->backend = (uint8_t)order[i];
			e->slot = (uint8_t)slot;
			e->mask = marked && slot == COUNTER_KEPT_TICKS ? UINT64_MAX : 0;
			return true;
		}
		counter_refuse(e, order[i], why);
	}
	return false;
}

static bool open_usage(struct longpole_counted *e, uint32_t backends)
{
	struct rusage usage;
	struct counter_refusal why = {COUNTER_REASON_not_asked, 0};
	if (backends & 1u << LONGPOLE_BACKEND_SYSCALL) {
		if (!getrusage(RUSAGE_THREAD, &usage)) {
			e->backend = LONGPOLE_BACKEND_SYSCALL;
			return true;
		}
		why = (struct counter_refusal){COUNTER_REASON_usage, errno};
	}
	counter_refuse(e, LONGPOLE_BACKEND_SYSCALL, why);
	return false;
}

static bool open_slot(
	struct longpole_counted *e, const struct counter_event *event, uint32_t backends)
{
	struct counter_refusal why = {COUNTER_REASON_not_asked, 0};
	if (backends & 1u << LONGPOLE_BACKEND_BPF)
		e->where = counter_slot_value(event->config != 0, &why);
	if (e->where)
		e->backend = LONGPOLE_BACKEND_BPF;
	else
		counter_refuse(e, LONGPOLE_BACKEND_BPF, why);
	return e->where != NULL;
}

static bool open_pmu(struct longpole_counted *e, const struct counter_event *event,
	uint32_t backends, uint32_t flags)
{
	const struct counter_refusal not_asked = {COUNTER_REASON_not_asked, 0};
	if (!(backends & 1u << LONGPOLE_BACKEND_PMU))
		counter_refuse(e, LONGPOLE_BACKEND_PMU, not_asked);
	if (!(backends & 1u << LONGPOLE_BACKEND_SYSCALL))
		counter_refuse(e, LONGPOLE_BACKEND_SYSCALL, not_asked);
	if (!(backends & (1u << LONGPOLE_BACKEND_PMU | 1u << LONGPOLE_BACKEND_SYSCALL)))
		return false;
	return counter_pmu_open(e, event, backends, flags);
}

static bool counter_open_event(
	struct longpole_counted *e, enum longpole_event asked, uint32_t backends, uint32_t flags)
{
	const struct counter_event *event = counter_event_of(asked);
	e->asked = (uint16_t)asked;
	e->fd[0] = e->fd[1] = -1;
	if (asked == LONGPOLE_CYCLES_OR_TICKS) {
		e->event = LONGPOLE_CYCLES;
		if (open_pmu(e, counter_event_of(LONGPOLE_CYCLES), backends, flags))
			return true;
		event = counter_event_of(LONGPOLE_TICKS);
		counter_refuse(e, LONGPOLE_BACKEND_SYSCALL, (struct counter_refusal){0});
	}
	e->event = (uint16_t)event->id;
	switch (event->how) {
	case COUNTER_CLOCK:
	case COUNTER_AT_SWITCH:
		return open_kept(e, event, backends);
	case COUNTER_USAGE:
		return open_usage(e, backends);
	case COUNTER_SLOT:
		return open_slot(e, event, backends);
	case COUNTER_PMU:
		return open_pmu(e, event, backends, flags);
	}
	return false;
}

static bool counter_is_mark(enum longpole_backend backend)
{
	return backend == LONGPOLE_BACKEND_SENTINEL || backend == LONGPOLE_BACKEND_PAGE;
}

/* One way for all events: the inline paths; else the library's. BPF's values go with kept ones. */
static void make_plan(struct longpole_counter *c)
{
	const struct longpole_counted *first = &c->event[0];
	enum longpole_backend mark = LONGPOLE_BACKEND_NONE;
	bool kept = true, pmu = true, inlined = first->mask != 0;
	for (uint32_t i = 0; i < c->nr; i++) {
		enum longpole_backend backend = (enum longpole_backend)c->event[i].backend;
		pmu = pmu && backend == LONGPOLE_BACKEND_PMU;
		kept = kept && (counter_is_mark(backend) || backend == LONGPOLE_BACKEND_BPF);
		inlined = inlined && backend == (enum longpole_backend)first->backend &&
			  (!i || !c->event[i].mask);
		mark = counter_is_mark(backend) ? backend : mark;
	}
	c->plan = LONGPOLE_PLAN_CALL;
	c->thread = counter_thread_get(LONGPOLE_BACKEND_SYSCALL);
	if (pmu)
		c->plan = LONGPOLE_PLAN_PMU;
	if (kept && mark) {
		c->plan = LONGPOLE_PLAN_KEPT;
		c->thread = counter_thread_get(mark);
		c->nr_kept = inlined ? c->nr : 0;
	}
	for (uint32_t i = 0; i < c->nr; i++) {
		enum longpole_backend backend = (enum longpole_backend)c->event[i].backend;
		if (counter_is_mark(backend))
			c->event[i].where = &counter_thread_get(backend)->kept[c->event[i].slot];
	}
}

static void close_events(struct longpole_counter *c, bool forked)
{
	for (uint32_t i = 0; i < c->nr; i++) {
		struct longpole_counted *e = &c->event[i];
		const struct counter_event *event = counter_event_of((enum longpole_event)e->event);
		if (!e->backend || !event)
			continue;
		if (event->how == COUNTER_PMU)
			counter_pmu_close(e, forked);
		else if (!forked &&
			 (event->how == COUNTER_CLOCK || event->how == COUNTER_AT_SWITCH))
			counter_thread_drop(
				(enum longpole_backend)e->backend, (enum counter_kept)e->slot);
	}
	c->nr = c->nr_kept = 0;
	c->plan = LONGPOLE_PLAN_CLOSED;
}

static int counter_open_set(struct longpole_counter *c, const enum longpole_event *event,
	unsigned nr, const struct longpole_counter_options *options)
{
	uint32_t backends = allowed_backends(options), flags = options ? options->flags : 0;
	uint64_t value[LONGPOLE_COUNTER_EVENTS_MAX];
	int error = LONGPOLE_COUNTER_OK;
	memset(c, 0, sizeof *c);
	if (!nr || nr > LONGPOLE_COUNTER_EVENTS_MAX || (options && options->size < sizeof *options))
		return LONGPOLE_COUNTER_ARGUMENT;
	for (unsigned i = 0; i < nr; i++)
		if (!longpole_event_name(event[i]))
			return LONGPOLE_COUNTER_ARGUMENT;
	if (!counter_thread_get(LONGPOLE_BACKEND_SYSCALL))
		return LONGPOLE_COUNTER_SYSTEM;
	c->nr = nr;
	for (unsigned i = 0; i < nr; i++)
		if (!counter_open_event(&c->event[i], event[i], backends, flags))
			error = LONGPOLE_COUNTER_NOT_COUNTED;
	c->reserved[0] = flags;
	if (!error) {
		make_plan(c);
		error = longpole_counter_read(c, value);
	}
	for (unsigned i = 0; !error && i < nr; i++)
		c->event[i].base = c->event[i].backend == LONGPOLE_BACKEND_PMU ? 0 : value[i];
	c->generation = 0;
	if (error)
		close_events(c, false);
	return error;
}

/* Opening makes system calls that a cancelled thread would not return from. */
int longpole_counter_open(struct longpole_counter *c, const enum longpole_event *event, unsigned nr,
	const struct longpole_counter_options *options)
{
	int saved_errno = errno, cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	int error = counter_open_set(c, event, nr, options);
	pthread_setcancelstate(cancel, &cancel);
	errno = saved_errno;
	return error;
}

void longpole_counter_close(struct longpole_counter *c)
{
	int saved_errno = errno, cancel;
	if (c->plan == LONGPOLE_PLAN_CLOSED)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	close_events(c, counter_thread_check(c->thread) != LONGPOLE_COUNTER_OK);
	pthread_setcancelstate(cancel, &cancel);
	errno = saved_errno;
}

/* ---- read ------------------------------------------------------------------------------------ */

static int ask_usage(const struct counter_event *event, uint64_t *value)
{
	struct rusage usage;
	if (getrusage(RUSAGE_THREAD, &usage))
		return LONGPOLE_COUNTER_SYSTEM;
	*value = (uint64_t)usage.ru_majflt + (event->config ? 0 : (uint64_t)usage.ru_minflt);
	return LONGPOLE_COUNTER_OK;
}

/* One event of a set that has no way in common. */
static int counter_read_event(
	struct longpole_counter *c, struct longpole_counted *e, uint64_t *value)
{
	const struct counter_event *event = counter_event_of((enum longpole_event)e->event);
	int error;
	if (event->how == COUNTER_PMU) {
		if (e->page && longpole_pmu_read(e->page, value))
			return LONGPOLE_COUNTER_OK;
		error = counter_pmu_ask(e, (uint32_t)c->reserved[0], value);
	} else if (event->how == COUNTER_USAGE) {
		error = ask_usage(event, value);
	} else if (event->how == COUNTER_SLOT) {
		*value = *(const volatile uint64_t *)e->where;
		error = LONGPOLE_COUNTER_OK;
	} else {
		error = counter_thread_ask(counter_thread_get((enum longpole_backend)e->backend),
			(enum counter_kept)e->slot, value);
	}
	*value -= error ? 0 : e->base;
	return error;
}

/* Kept events of a part that was taken, all of one moment; false: the kernel must be asked. */
static bool read_kept(struct longpole_counter_thread *t, const struct longpole_counted *event,
	uint32_t nr, uint64_t *value)
{
	for (int tries = 0; tries < READ_TRIES; tries++) {
		if (!counter_thread_stands(t) && !counter_thread_renew(t))
			return false;
		uint64_t now = longpole_rdtsc();
		for (uint32_t i = 0; i < nr; i++)
			value[i] = *(const volatile uint64_t *)event[i].where +
				   (now & event[i].mask) - event[i].base;
		if (counter_thread_stands(t)) {
			t->last_tsc = now;
			return true;
		}
	}
	return false;
}

/* For the inline path, until the next renewal. */
static void copy_kept(struct longpole_counter *c)
{
	for (uint32_t i = 0; i < c->nr_kept; i++)
		c->kept[i] = *c->event[i].where - c->event[i].base;
	c->generation = c->thread->generation;
}

static bool read_kept_set(struct longpole_counter *c, uint64_t *value)
{
	if (!counter_thread_take(c->thread))
		return false;
	bool done = read_kept(c->thread, c->event, c->nr, value);
	if (done)
		copy_kept(c);
	counter_thread_give(c->thread);
	return done;
}

/* A kept one of a mixed set. */
static int read_kept_event(struct longpole_counter *c, struct longpole_counted *e, uint64_t *value)
{
	struct longpole_counter_thread *t = counter_thread_get((enum longpole_backend)e->backend);
	bool done = false;
	if (counter_thread_take(t)) {
		done = read_kept(t, e, 1, value);
		counter_thread_give(t);
	}
	return done ? LONGPOLE_COUNTER_OK : counter_read_event(c, e, value);
}

static int counter_read_all(struct longpole_counter *c, uint64_t *value)
{
	int error = counter_thread_check(c->thread);
	if (!error && c->plan == LONGPOLE_PLAN_KEPT && read_kept_set(c, value))
		return LONGPOLE_COUNTER_OK;
	for (uint32_t i = 0; !error && i < c->nr; i++) {
		struct longpole_counted *e = &c->event[i];
		bool kept = c->plan != LONGPOLE_PLAN_KEPT &&
			    counter_is_mark((enum longpole_backend)e->backend);
		error = kept ? read_kept_event(c, e, &value[i])
			     : counter_read_event(c, e, &value[i]);
	}
	return error;
}

int longpole_counter_read_call(struct longpole_counter *c, uint64_t *value)
{
	int saved_errno = errno;
	int error = LONGPOLE_COUNTER_CLOSED;
	if (c->plan != LONGPOLE_PLAN_CLOSED)
		error = counter_read_all(c, value);
	errno = saved_errno;
	return error;
}

/* Takes one event's count up to `now`; 0 when a handler took it meanwhile, and has a later one. */
static int take_event(struct longpole_counted *e, uint64_t now, uint64_t *value)
{
	uint64_t before = *(volatile uint64_t *)&e->taken, seen = before;
	if (now < before)
		return 0;
	counter_replace(&e->taken, &seen, now);
	*value = now - before;
	return seen == before;
}

int longpole_counter_take(struct longpole_counter *c, uint64_t *value)
{
	uint64_t now[LONGPOLE_COUNTER_EVENTS_MAX] = {0};
	int error = longpole_counter_read(c, now);
	for (uint32_t i = 0; !error && i < c->nr;) {
		if (take_event(&c->event[i], now[i], &value[i]))
			i++;
		else
			error = longpole_counter_read(c, now);
	}
	return error;
}

/* ---- explain --------------------------------------------------------------------------------- */

struct text {
	char *buf;
	size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
	__builtin_va_list arguments;
	__builtin_va_start(arguments, format);
	if (text->length < text->size) {
		int n = vsnprintf(
			text->buf + text->length, text->size - text->length, format, arguments);
		text->length += n > 0 ? (size_t)n : 0;
	}
	__builtin_va_end(arguments);
}

static void explain_event(struct text *text, const struct longpole_counted *e)
{
	const char *asked = longpole_event_name((enum longpole_event)e->asked);
	if (!asked)
		return;
	add(text, "%s: %s%s", asked, e->backend ? "counted by " : "CANNOT BE COUNTED",
		e->backend ? backend_names[e->backend].text : "");
	if (e->backend && e->event != e->asked)
		add(text, ", as %s", longpole_event_name((enum longpole_event)e->event));
	if (e->user_only)
		add(text, ", in user space only (perf_event_paranoid hides the kernel's part)");
	add(text, "\n");
	for (unsigned b = 1; b < LONGPOLE_BACKEND_NR; b++) {
		if (!e->refused[b])
			continue;
		add(text, "  not by %s: %s", backend_names[b].name, reason_text(e->refused[b]));
		if (e->refused_errno[b])
			add(text, " (%s)", strerror(e->refused_errno[b]));
		add(text, "\n");
	}
	if (e->scaled)
		add(text, "  an estimate: scaled by the share of time that it had a counter\n");
}

char *longpole_counter_explain(const struct longpole_counter *c, char *buf, size_t size)
{
	struct text text = {buf, size, 0};
	if (size)
		*buf = 0;
	for (uint32_t i = 0; i < LONGPOLE_COUNTER_EVENTS_MAX; i++)
		explain_event(&text, &c->event[i]);
	return buf;
}
