/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python.c - looks into Python programs while they run.
 *
 * The thread that looks writes what it saw into a ring of looks; the session's own thread, which
 * converts samples, finds the look next to each. Both hold the lock for that alone, never while
 * memory of the program is read.
 */
#include "session/python.h"
#include "os/proc.h"
#include "runtime/python/python_outside.h"
#include "symbol/symbol.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	PYTHON_HZ_MAX = 499,
	PYTHON_SHARE = 30, /* of the time between two looks one may last 1/30 */
	PYTHON_PROCESSES_MAX = 1 << 10,
	PYTHON_LOOKS = 1 << 13,
	PYTHON_FRAMES = 62,
	PYTHON_PLACES_MAX = 1 << 18,
	/* A sample's look is not farther away: one at a running thread; one at a thread without a
	 * processor, which saw it as it was when it left that. */
	PYTHON_NEAR_NS = 10000000,
	PYTHON_NEAR_LEAVING_NS = 300000,
	/* Whoever looks may take the processor of the thread that it looks at: it left so shortly
	 * before. If the look began when its time had come, that is as good as at a running one. */
	PYTHON_TAKES_NS = 150000,
	PYTHON_LATE_NS = 200000,
	PYTHON_TRIES = 3,
	PYTHON_MAPS_BYTES = 1 << 20,
	PYTHON_FAILED_MAX = 100, /* looks in a row that saw nothing that could be read */
};
/* A process numbers places itself from one on: ours are behind those. */
#define PYTHON_PLACES_FROM (UINT64_C(1) << 32)
#define PYTHON_TEXTS_MAX   ((size_t)64 << 20)

struct python_process {
	uint32_t pid;
	uint64_t runtime;    /* address of _PyRuntime */
	uint64_t begin, end; /* the interpreter's file in memory */
	struct python_layout layout;
	uint64_t thread; /* that was seen last, and its tid */
	uint32_t tid;
	unsigned nr_failed;
};

struct python_look {
	uint64_t time_ns; /* when the frames were so */
	uint32_t pid, tid, nr;
	bool is_leaving;
	bool is_on_time;     /* the clock decided when it came, not the scheduler */
	uint64_t begin, end; /* the interpreter's file */
	uint64_t place[PYTHON_FRAMES];
};

struct python_place {
	struct python_code_words code;
	const char *function, *file; /* NULL: they cannot be read */
	uint32_t line;
};

struct session_python {
	struct record_converter *converter;
	const struct os_clock *clock;
	uint64_t period_ns;
	pthread_t looker;
	pthread_mutex_t lock;
	bool is_started, stops;
	/* under the lock */
	struct python_process *process;
	size_t nr_processes, process_capacity;
	struct python_look *look; /* PYTHON_LOOKS of them, written in turn */
	uint64_t nr_looks;
	struct base_map left_ns; /* by tid: when it left its processor last */
	struct python_place *place;
	size_t nr_places, place_capacity;
	/* the looker's own */
	struct base_map by_frame; /* (pid, code), instruction -> number of a place */
	struct base_arena *texts;
	struct python_look now;
};

/* ---- processes ------------------------------------------------------------------------------- */

static struct python_process *python_process_of(struct session_python *p, uint32_t pid)
{
	for (size_t i = 0; i < p->nr_processes; i++)
		if (p->process[i].pid == pid)
			return &p->process[i];
	return NULL;
}

static void python_drop_process(struct session_python *p, uint32_t pid)
{
	struct python_process *process = python_process_of(p, pid);
	if (process)
		*process = p->process[--p->nr_processes];
}

static bool python_read_memory(void *ctx, uint64_t address, void *ret, size_t size_bytes)
{
	const struct python_process *process = ctx;
	return address &&
	       os_read_memory((pid_t)process->pid, address, ret, size_bytes) == (ssize_t)size_bytes;
}

static void *python_looker(void *argument);

static bool python_look_begins(struct session_python *p)
{
	if (p->is_started)
		return true;
	if (!p->look)
		p->look = base_alloc(PYTHON_LOOKS * sizeof *p->look);
	p->is_started =
		p->look && !p->stops && pthread_create(&p->looker, NULL, python_looker, p) == 0;
	return p->is_started;
}

static void python_add(struct session_python *p, struct python_process process)
{
	pthread_mutex_lock(&p->lock);
	python_drop_process(p, process.pid);
	if (p->nr_processes < PYTHON_PROCESSES_MAX && python_look_begins(p) &&
		base_grow(&p->process, &p->process_capacity, p->nr_processes + 1,
			sizeof *p->process) == BASE_OK)
		p->process[p->nr_processes++] = process;
	pthread_mutex_unlock(&p->lock);
}

static bool python_is_interpreter(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	return strncmp(name, "python3", 7) == 0 || strncmp(name, "libpython3", 10) == 0;
}

static void python_mapped(
	void *ctx, uint32_t pid, const char *path, uint64_t map_start, uint64_t file_offset)
{
	enum { RUNTIME, VERSION, NR };
	static const char *const name[NR] = {"_PyRuntime", "Py_Version"};
	struct python_process process = {.pid = pid};
	const struct python_reader r = {.read = python_read_memory, .ctx = &process};
	struct symbol_extent at;
	uint64_t address[NR], version;
	if (!python_is_interpreter(path) || !symbol_elf_extent(path, map_start, file_offset, &at) ||
		!symbol_elf_dynamic(path, name, address, NR) || !address[RUNTIME] ||
		!address[VERSION])
		return;
	process.runtime = at.bias + address[RUNTIME];
	process.begin = at.start;
	process.end = at.end;
	if (python_read_memory(&process, at.bias + address[VERSION], &version, sizeof version) &&
		python_outside_layout(
			&r, process.runtime, (uint32_t)(version >> 16), &process.layout))
		python_add(ctx, process);
}

/* ---- a look ---------------------------------------------------------------------------------- */

static const char *python_text(
	struct session_python *p, const struct python_reader *r, uint64_t object)
{
	struct base_str text = {0};
	const char *ret = NULL;
	if (python_outside_text(r, object, &text))
		ret = base_arena_strndup(p->texts, base_str_text(&text), text.length);
	base_str_fini(&text);
	return ret;
}

static uint64_t python_new_place(struct session_python *p, const struct python_reader *r,
	const struct python_frame *frame, const struct python_code_words *code)
{
	struct python_place place = {.code = *code};
	place.function = python_text(p, r, code->name);
	place.file = place.function ? python_text(p, r, code->file) : NULL;
	place.line = python_outside_line(r, frame);
	pthread_mutex_lock(&p->lock);
	size_t number = p->nr_places;
	bool fits = number < PYTHON_PLACES_MAX &&
		    base_grow(&p->place, &p->place_capacity, number + 1, sizeof place) == BASE_OK;
	if (fits)
		p->place[p->nr_places++] = place;
	pthread_mutex_unlock(&p->lock);
	return fits ? number + 1 : 0;
}

/* 0: it has no name. */
static uint64_t python_place_of(struct session_python *p, const struct python_reader *r,
	uint32_t pid, const struct python_frame *frame)
{
	const uint64_t key = (uint64_t)pid << 48 ^ frame->code;
	struct python_code_words code;
	uint64_t number = 0;
	if (!python_outside_code(r, frame->code, &code))
		return 0;
	/* (only the looker writes places: it reads them without the lock) */
	if (!base_map_get(&p->by_frame, key, frame->instruction, &number) ||
		memcmp(&p->place[number - 1].code, &code, sizeof code) != 0) {
		number = python_new_place(p, r, frame, &code);
		if (!number ||
			base_map_put(&p->by_frame, key, frame->instruction, number) != BASE_OK)
			return 0;
	}
	return p->place[number - 1].file ? ring_place(PYTHON_PLACES_FROM + number) : 0;
}

/* What a thread calls its tid is its parent's in the first thread of a fork's child. */
static uint32_t python_tid(
	struct python_process *process, const struct python_reader *r, uint64_t thread)
{
	char path[64];
	if (thread == process->thread)
		return process->tid;
	const uint32_t native = (uint32_t)python_outside_pointer(r, thread, process->layout.native);
	snprintf(path, sizeof path, "/proc/%u/task/%u", process->pid, native);
	process->thread = thread;
	process->tid = native && access(path, F_OK) == 0 ? native : process->pid;
	return process->tid;
}

/* False: nothing could be read; else p->now is a look, of no frame where nobody runs Python. */
static bool python_look_at(struct session_python *p, struct python_process *process)
{
	const struct python_reader r = {
		.read = python_read_memory, .ctx = process, .layout = &process->layout};
	struct python_frame frame[PYTHON_FRAMES];
	struct python_look *now = &p->now;
	uint64_t word;
	now->nr = 0;
	if (!python_read_memory(process, process->runtime, &word, sizeof word))
		return false;
	for (int try = 0; try < PYTHON_TRIES; try++) {
		const uint64_t thread = python_outside_running(&r, process->runtime);
		const uint64_t first = python_outside_innermost(&r, thread);
		if (!thread || !first)
			return true;
		now->time_ns = os_clock_ns(p->clock, os_tsc() - p->clock->tsc_origin);
		now->pid = process->pid;
		now->begin = process->begin;
		now->end = process->end;
		now->tid = python_tid(process, &r, thread);
		size_t nr = python_outside_frames(&r, first, frame, PYTHON_FRAMES);
		if (try + 1 < PYTHON_TRIES && python_outside_innermost(&r, thread) != first)
			continue; /* it went on meanwhile */
		for (size_t i = 0; i < nr; i++) {
			uint64_t place = python_place_of(p, &r, process->pid, &frame[i]);
			if (place)
				now->place[now->nr++] = place;
		}
		return true;
	}
	return true;
}

/* The i-th process, by value; false: there are not so many. */
static bool python_take_process(struct session_python *p, size_t i, struct python_process *ret)
{
	pthread_mutex_lock(&p->lock);
	bool any = i < p->nr_processes;
	if (any)
		*ret = p->process[i];
	pthread_mutex_unlock(&p->lock);
	return any;
}

static void python_put_look(
	struct session_python *p, const struct python_process *seen, bool is_read)
{
	pthread_mutex_lock(&p->lock);
	struct python_process *process = python_process_of(p, seen->pid);
	if (process) {
		process->thread = seen->thread;
		process->tid = seen->tid;
		process->nr_failed = is_read ? 0 : process->nr_failed + 1;
		if (process->nr_failed > PYTHON_FAILED_MAX)
			python_drop_process(p, seen->pid);
	}
	if (is_read && p->now.nr)
		p->look[p->nr_looks++ % PYTHON_LOOKS] = p->now;
	pthread_mutex_unlock(&p->lock);
}

static bool python_stops(struct session_python *p)
{
	return __atomic_load_n(&p->stops, __ATOMIC_ACQUIRE);
}

static void *python_looker(void *argument)
{
	struct session_python *p = argument;
	struct python_process process;
	/* Not as the session itself, which lets the program run first: a look is to come while the
	 * program runs, not when it has been made to stop. */
	const struct sched_param normal = {0};
	(void)sched_setscheduler(0, SCHED_OTHER, &normal);
	uint64_t due_ns = 0;
	while (!python_stops(p)) {
		const uint64_t begin_ns = os_time_ns(CLOCK_MONOTONIC);
		p->now.is_on_time = begin_ns < due_ns + PYTHON_LATE_NS;
		for (size_t i = 0; python_take_process(p, i, &process) && !python_stops(p); i++) {
			const bool is_read = python_look_at(p, &process);
			python_put_look(p, &process, is_read);
		}
		const uint64_t rest_ns = (os_time_ns(CLOCK_MONOTONIC) - begin_ns) * PYTHON_SHARE;
		const uint64_t wait_ns = rest_ns > p->period_ns ? rest_ns : p->period_ns;
		const struct timespec wait = {.tv_sec = (time_t)(wait_ns / 1000000000u),
			.tv_nsec = (long)(wait_ns % 1000000000u)};
		due_ns = os_time_ns(CLOCK_MONOTONIC) + wait_ns;
		nanosleep(&wait, NULL);
	}
	return NULL;
}

/* ---- samples --------------------------------------------------------------------------------- */

static struct python_look *python_look_before(const struct session_python *p, uint64_t i)
{
	return &p->look[(p->nr_looks - i) % PYTHON_LOOKS];
}

static uint64_t python_nr_kept(const struct session_python *p)
{
	return p->nr_looks < PYTHON_LOOKS ? p->nr_looks : PYTHON_LOOKS;
}

/* Looks at a thread without a processor are of the time when it left that: there is where threads
 * are made to leave it (in system calls), not where they compute. */
static void python_switched(void *ctx, uint32_t tid, uint64_t time_ns, bool in)
{
	struct session_python *p = ctx;
	uint64_t left_ns;
	if (!p->is_started)
		return;
	pthread_mutex_lock(&p->lock);
	if (!in)
		(void)!base_map_put(&p->left_ns, 0, tid, time_ns);
	else if (base_map_get(&p->left_ns, 0, tid, &left_ns))
		for (uint64_t i = 1; i <= python_nr_kept(p); i++) {
			struct python_look *look = python_look_before(p, i);
			if (look->time_ns < left_ns)
				break;
			if (look->tid != tid || look->time_ns > time_ns)
				continue;
			look->is_leaving =
				!look->is_on_time || look->time_ns - left_ns > PYTHON_TAKES_NS;
			look->time_ns = left_ns;
		}
	pthread_mutex_unlock(&p->lock);
}

static uint64_t python_apart_ns(const struct python_look *look, uint64_t time_ns)
{
	return look->time_ns > time_ns ? look->time_ns - time_ns : time_ns - look->time_ns;
}

/* NULL: the thread was not seen to run Python then. (Looks are in order of time but for those of
 * threads that left their processor, which are earlier than they were put.) */
static const struct python_look *python_nearest(
	const struct session_python *p, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	const struct python_look *best = NULL;
	uint64_t apart_ns = UINT64_MAX;
	for (uint64_t i = 1; i <= python_nr_kept(p); i++) {
		const struct python_look *look = python_look_before(p, i);
		const uint64_t most_ns = look->is_leaving ? PYTHON_NEAR_LEAVING_NS : PYTHON_NEAR_NS;
		const uint64_t this_ns = python_apart_ns(look, time_ns);
		if (look->tid == tid && look->pid == pid && this_ns < most_ns &&
			this_ns < apart_ns) {
			apart_ns = this_ns;
			best = look;
		}
		if (!look->is_leaving && look->time_ns + PYTHON_NEAR_NS < time_ns)
			break;
	}
	return best;
}

/* The interpreter's functions, and what is behind them, become Python's: a sample in what it calls
 * keeps that as its innermost. */
static void python_put_frames(const struct python_look *look, struct record_event *e)
{
	const uint64_t nr_bytes = look->end - look->begin;
	const bool is_in_it = e->ip - look->begin < nr_bytes;
	uint64_t *frame = base_alloc(RECORD_FRAMES_MAX * sizeof *frame);
	uint32_t nr = 0, from = is_in_it;
	if (!frame)
		return;
	for (; !is_in_it && nr < e->nr_frames && nr < RECORD_FRAMES_MAX &&
		e->frame[nr] - look->begin >= nr_bytes;
		nr++)
		frame[nr] = e->frame[nr];
	for (; from < look->nr && nr < RECORD_FRAMES_MAX; from++)
		frame[nr++] = look->place[from];
	if (is_in_it)
		e->ip = look->place[0];
	base_free(e->frame);
	e->frame = frame;
	e->nr_frames = nr;
}

static void python_sampled(void *ctx, struct record_event *e)
{
	struct session_python *p = ctx;
	if (!p->look)
		return;
	pthread_mutex_lock(&p->lock);
	const struct python_look *look = python_nearest(p, e->pid, e->tid, e->time_ns);
	if (look)
		python_put_frames(look, e);
	pthread_mutex_unlock(&p->lock);
}

/* A fork's child is what its parent is. */
static void python_forked(void *ctx, uint32_t pid, uint32_t parent)
{
	struct session_python *p = ctx;
	struct python_process child = {0};
	pthread_mutex_lock(&p->lock);
	const struct python_process *from = python_process_of(p, parent);
	if (from)
		child = *from;
	pthread_mutex_unlock(&p->lock);
	child.pid = pid;
	child.thread = 0;
	if (from)
		python_add(p, child);
}

static bool python_named(void *ctx, uint64_t place, const char **ret_function,
	const char **ret_file, uint32_t *ret_line)
{
	struct session_python *p = ctx;
	const uint64_t number = place - ring_place(PYTHON_PLACES_FROM) - 1;
	pthread_mutex_lock(&p->lock);
	bool is_ours = number < p->nr_places;
	if (is_ours) {
		*ret_function = p->place[number].function;
		*ret_file = p->place[number].file;
		*ret_line = p->place[number].line;
	}
	pthread_mutex_unlock(&p->lock);
	return is_ours;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

struct session_python *session_python_new(
	struct record_converter *c, const struct os_clock *clock, uint64_t hz)
{
	struct session_python *p = base_alloc(sizeof *p);
	struct base_arena *texts = p ? base_arena_new(PYTHON_TEXTS_MAX) : NULL;
	if (!texts) {
		base_free(p);
		return NULL;
	}
	*p = (struct session_python){.converter = c,
		.clock = clock,
		.period_ns = 1000000000u / (hz < PYTHON_HZ_MAX ? hz + 1 : PYTHON_HZ_MAX),
		.texts = texts};
	pthread_mutex_init(&p->lock, NULL);
	c->python = (struct record_python){.ctx = p,
		.mapped = python_mapped,
		.forked = python_forked,
		.switched = python_switched,
		.sampled = python_sampled,
		.named = python_named};
	return p;
}

/* (A map that is longer than what is read is left out at its end, where no program's file is.) */
void session_python_join(struct session_python *p, pid_t pid)
{
	char path[4096], *text = base_alloc(PYTHON_MAPS_BYTES);
	const char *at = text;
	struct os_region r;
	if (text && os_proc_read(pid, "maps", text, PYTHON_MAPS_BYTES) > 0)
		while (os_parse_region(&at, &r)) {
			if (!r.executable || r.path_length >= sizeof path)
				continue;
			memcpy(path, r.path, r.path_length);
			path[r.path_length] = '\0';
			python_mapped(p, (uint32_t)pid, path, r.start, r.offset);
		}
	base_free(text);
}

void session_python_stop(struct session_python *p)
{
	if (!p || __atomic_exchange_n(&p->stops, true, __ATOMIC_ACQ_REL))
		return;
	if (p->is_started)
		pthread_join(p->looker, NULL);
}

struct session_python *session_python_free(struct session_python *p)
{
	if (!p)
		return NULL;
	session_python_stop(p);
	p->converter->python = (struct record_python){0};
	pthread_mutex_destroy(&p->lock);
	base_map_fini(&p->by_frame);
	base_map_fini(&p->left_ns);
	base_arena_free(p->texts);
	base_free(p->process);
	base_free(p->place);
	base_free(p->look);
	base_free(p);
	return NULL;
}
