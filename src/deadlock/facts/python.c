/* SPDX-License-Identifier: Apache-2.0 */
/* python.c - a Python's threads and frames, for findings: by the reader of runtime/python. */
#include "deadlock/facts/python.h"
#include "runtime/python/python_outside.h"

#include <stdio.h>
#include <string.h>

/* Lists that somebody may be changing, or damaged, have an end. */
enum { INTERPRETERS_MAX = 64, THREADS_MAX = 1 << 16 };

struct deadlock_python {
	struct python_layout layout;
	uint64_t runtime;
	const char *why; /* its frames are not known; NULL: they are */
};

struct python_process {
	struct deadlock_world *world;
	pid_t pid;
};

static bool python_read_bytes(void *ctx, uint64_t address, void *ret, size_t size)
{
	const struct python_process *p = ctx;
	return address && deadlock_world_read(p->world, p->pid, address, ret, size);
}

/* ---- which Python ---------------------------------------------------------------------------- */

static void python_choose_layout(struct deadlock_world *w, const struct python_reader *r,
	uint32_t version, struct deadlock_python *python)
{
	if (python_outside_layout(r, python->runtime, version, &python->layout))
		return;
	char text[128];
	snprintf(text, sizeof text,
		"the layout of Python %u.%u's frames is not known; those of 3.11 to 3.13 are "
		"(3.13 with its global lock)",
		version >> 8, version & 0xff);
	python->why = base_arena_strndup(deadlock_world_arena(w), text, strlen(text));
	python->why = python->why ? python->why : "out of memory";
}

/* NULL: it is no Python. */
static const struct deadlock_python *python_of(struct deadlock_world *w, struct deadlock_process *p)
{
	if (p->has_python)
		return p->python;
	p->has_python = true;
	uint64_t runtime, at, version = 0;
	struct python_process process = {w, p->pid};
	const struct python_reader r = {.read = python_read_bytes, .ctx = &process};
	if (!deadlock_symbol_of(w, p, "python", "_PyRuntime", &runtime))
		return NULL;
	struct deadlock_python *python = base_arena_alloc(deadlock_world_arena(w), sizeof *python);
	if (!python)
		return NULL;
	*python = (struct deadlock_python){.runtime = runtime};
	if (!deadlock_symbol_of(w, p, "python", "Py_Version", &at))
		python->why = "it is older than Python 3.11";
	else if (!r.read(r.ctx, at, &version, sizeof version))
		python->why = "its memory cannot be read";
	else
		python_choose_layout(w, &r, (uint32_t)(version >> 16), python);
	p->python = python;
	return python;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* "": it cannot be read. */
static const char *python_text_of(
	struct deadlock_world *w, const struct python_reader *r, uint64_t object)
{
	struct base_str out = {0};
	const char *text = python_outside_text(r, object, &out)
				   ? base_arena_strndup(deadlock_world_arena(w),
					     base_str_text(&out), out.length)
				   : NULL;
	base_str_fini(&out);
	return text ? text : "";
}

static bool python_read_frame(struct deadlock_world *w, const struct python_reader *r,
	const struct python_frame *frame, struct deadlock_frame *ret)
{
	struct python_code_words code;
	*ret = (struct deadlock_frame){
		.pc = frame->instruction, .module = "", .file = "", .function = ""};
	if (!python_outside_code(r, frame->code, &code))
		return false;
	ret->function = python_text_of(w, r, code.name);
	ret->file = python_text_of(w, r, code.file);
	ret->line = python_outside_line(r, frame);
	ret->is_runtime = python_outside_is_library(ret->file);
	return *ret->function && *ret->file;
}

static void python_read_frames(struct deadlock_world *w, const struct python_reader *r,
	uint64_t thread, struct deadlock_wait *wait)
{
	struct python_frame frame[DEADLOCK_FRAMES_MAX];
	struct deadlock_frame *all =
		base_arena_alloc(deadlock_world_arena(w), DEADLOCK_FRAMES_MAX * sizeof *all);
	size_t nr = all ? python_outside_frames(r, python_outside_innermost(r, thread), frame,
				  DEADLOCK_FRAMES_MAX)
			: 0;
	wait->python = all;
	wait->nr_python = 0;
	for (size_t i = 0; i < nr; i++)
		wait->nr_python += python_read_frame(w, r, &frame[i], &all[wait->nr_python]);
}

/* By what pthread_self() is, which is the thread's fs_base; else by its tid, which a fork makes
 * old. */
static bool python_is_thread(
	const struct python_reader *r, uint64_t thread, const struct deadlock_wait *wait)
{
	if (wait->registers_source != DEADLOCK_REGISTERS_NONE && wait->registers.fs_base)
		return python_outside_pointer(r, thread, r->layout->pthread) ==
		       wait->registers.fs_base;
	return python_outside_pointer(r, thread, r->layout->native) == (uint64_t)wait->thread.tid;
}

static uint64_t python_find_thread(
	const struct python_reader *r, uint64_t runtime, const struct deadlock_wait *wait)
{
	const struct python_layout *l = r->layout;
	uint64_t interpreter = python_outside_pointer(r, runtime, l->interpreters);
	for (int i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
		uint64_t thread = python_outside_pointer(r, interpreter, l->threads);
		for (int t = 0; thread && t < THREADS_MAX; t++) {
			if (python_is_thread(r, thread, wait))
				return thread;
			thread = python_outside_pointer(r, thread, l->next_thread);
		}
		interpreter = python_outside_pointer(r, interpreter, l->next_interpreter);
	}
	return 0;
}

void deadlock_python_frames(
	struct deadlock_world *w, struct deadlock_process *p, struct deadlock_wait *wait)
{
	const struct deadlock_python *python = python_of(w, p);
	wait->nr_python = 0;
	wait->without_python = python ? python->why : NULL;
	if (!python || python->why)
		return;
	struct python_process process = {w, p->pid};
	const struct python_reader r = {
		.read = python_read_bytes, .ctx = &process, .layout = &python->layout};
	const uint64_t thread = python_find_thread(&r, python->runtime, wait);
	if (thread) /* else it is none of Python's threads */
		python_read_frames(w, &r, thread, wait);
}
