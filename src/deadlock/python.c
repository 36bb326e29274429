/* SPDX-License-Identifier: Apache-2.0 */
/* python.c - from _PyRuntime to interpreters, their threads, and a thread's frames. */
#include "deadlock/python.h"
#include "runtime/python/layout.h"

#include <stdio.h>
#include <string.h>

/* Lists that somebody may be changing, or damaged, have an end. */
enum {
	INTERPRETERS_MAX = 64,
	THREADS_MAX = 1 << 16,
	FRAMES_MAX = 1 << 10,
	TEXT_MAX = 1024,
	TABLE_MAX = 1 << 16,
};

struct deadlock_python {
	struct python_layout layout;
	uint64_t runtime;
	const char *why; /* its frames are not known; NULL: they are */
};

struct reader {
	struct deadlock_world *world;
	pid_t pid;
	const struct python_layout *layout;
};

static bool python_read_bytes(const struct reader *r, uint64_t address, void *ret, size_t size)
{
	return address && deadlock_world_read(r->world, r->pid, address, ret, size);
}

/* 0: there is none, or it cannot be read. */
static uint64_t pointer_at(const struct reader *r, uint64_t address, uint32_t offset)
{
	uint64_t value = 0;
	return address && python_read_bytes(r, address + offset, &value, sizeof value) ? value : 0;
}

/* ---- which Python ---------------------------------------------------------------------------- */

static void choose_layout(const struct reader *r, uint32_t version, struct deadlock_python *python)
{
	uint8_t published[PYTHON_PUBLISHED_BYTES];
	if (python_layout_of(version, &python->layout))
		return;
	if (version == PYTHON_SAYS_ITSELF &&
		python_read_bytes(r, python->runtime, published, sizeof published) &&
		python_layout_published(published, &python->layout))
		return;
	char text[128];
	snprintf(text, sizeof text,
		"the layout of Python %u.%u's frames is not known; those of 3.11 to 3.13 are "
		"(3.13 with its global lock)",
		version >> 8, version & 0xff);
	python->why = base_arena_strndup(deadlock_world_arena(r->world), text, strlen(text));
	python->why = python->why ? python->why : "out of memory";
}

/* NULL: it is no Python. */
static const struct deadlock_python *python_of(struct deadlock_world *w, struct deadlock_process *p)
{
	if (p->has_python)
		return p->python;
	p->has_python = true;
	uint64_t runtime, at, version = 0;
	const struct reader r = {.world = w, .pid = p->pid};
	if (!deadlock_symbol_of(w, p, "python", "_PyRuntime", &runtime))
		return NULL;
	struct deadlock_python *python = base_arena_alloc(deadlock_world_arena(w), sizeof *python);
	if (!python)
		return NULL;
	*python = (struct deadlock_python){.runtime = runtime};
	if (!deadlock_symbol_of(w, p, "python", "Py_Version", &at))
		python->why = "it is older than Python 3.11";
	else if (!python_read_bytes(&r, at, &version, sizeof version))
		python->why = "its memory cannot be read";
	else
		choose_layout(&r, (uint32_t)(version >> 16), python);
	p->python = python;
	return python;
}

/* ---- texts and lines ------------------------------------------------------------------------- */

static void add_character(struct base_str *out, uint32_t c)
{
	char utf8[4] = {(char)c};
	size_t n = 1;
	if (c >= 0x10000) {
		n = 4;
		utf8[0] = (char)(0xf0 | (c >> 18 & 7));
	} else if (c >= 0x800) {
		n = 3;
		utf8[0] = (char)(0xe0 | c >> 12);
	} else if (c >= 0x80) {
		n = 2;
		utf8[0] = (char)(0xc0 | c >> 6);
	}
	for (size_t i = 1; i < n; i++)
		utf8[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
	base_str_add_bytes(out, utf8, n);
}

/* "": it cannot be read. */
static const char *python_text_of(const struct reader *r, uint64_t object)
{
	uint64_t length;
	uint32_t state;
	uint8_t bytes[TEXT_MAX * 4];
	struct base_str out = {0};
	if (!python_read_bytes(r, object + PYTHON_TEXT_LENGTH, &length, sizeof length) ||
		!python_read_bytes(r, object + PYTHON_TEXT_STATE, &state, sizeof state))
		return "";
	const unsigned kind = state >> 2 & 7; /* bytes of a character */
	const bool is_compact = state >> 5 & 1, is_ascii = state >> 6 & 1;
	if (!is_compact || (kind != 1 && kind != 2 && kind != 4) || !length || length > TEXT_MAX ||
		!python_read_bytes(r, object + (is_ascii ? r->layout->ascii : r->layout->compact),
			bytes, length * kind))
		return "";
	for (size_t i = 0; i < length; i++) {
		uint32_t c = 0;
		memcpy(&c, bytes + i * kind, kind);
		add_character(&out, c);
	}
	const char *text = out.failed ? NULL
				      : base_arena_strndup(deadlock_world_arena(r->world),
						base_str_text(&out), out.length);
	base_str_fini(&out);
	return text ? text : "";
}

uint32_t deadlock_python_line(const uint8_t *table, size_t size, uint32_t first, uint64_t unit)
{
	return python_line(table, size, first, unit);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static uint32_t line_of(const struct reader *r, uint64_t code, uint64_t instruction)
{
	const struct python_layout *l = r->layout;
	const uint64_t table = pointer_at(r, code, l->line_table);
	uint64_t size = 0;
	uint32_t first = 0, line = 0;
	if (!table || instruction < code + l->instructions ||
		!python_read_bytes(r, table + PYTHON_SIZE, &size, sizeof size) || !size ||
		size > TABLE_MAX ||
		!python_read_bytes(r, code + l->first_line, &first, sizeof first))
		return 0;
	uint8_t *bytes = base_alloc(size);
	if (bytes && python_read_bytes(r, table + PYTHON_BYTES, bytes, size))
		line = deadlock_python_line(
			bytes, size, first, (instruction - code - l->instructions) / 2);
	base_free(bytes);
	return line;
}

/* The standard library, and what has no file. */
static bool python_is_runtime(const char *file)
{
	return file[0] == '<' || (strstr(file, "/lib/python3") && !strstr(file, "-packages/"));
}

static bool read_frame(const struct reader *r, uint64_t frame, struct deadlock_frame *ret)
{
	const struct python_layout *l = r->layout;
	const uint64_t code = pointer_at(r, frame, l->code);
	const uint64_t at = pointer_at(r, frame, l->instruction);
	*ret = (struct deadlock_frame){.pc = at, .module = "", .file = "", .function = ""};
	if (!code || !at)
		return false;
	ret->function = python_text_of(r, pointer_at(r, code, l->name));
	ret->file = python_text_of(r, pointer_at(r, code, l->file));
	ret->line = line_of(r, code, at);
	ret->is_runtime = python_is_runtime(ret->file);
	return *ret->function && *ret->file;
}

/* The interpreter puts one where its own C code begins: no function of anybody. */
static bool is_entry(const struct reader *r, uint64_t frame)
{
	enum { OWNED_BY_C_STACK = 3 };
	uint8_t owner = 0;
	return r->layout->version >= 0x030c &&
	       python_read_bytes(r, frame + r->layout->owner, &owner, sizeof owner) &&
	       owner == OWNED_BY_C_STACK;
}

static uint64_t innermost_frame(const struct reader *r, uint64_t thread)
{
	const uint64_t frame = pointer_at(r, thread, r->layout->frame);
	return r->layout->is_behind_cframe ? pointer_at(r, frame, r->layout->cframe) : frame;
}

static void read_frames(const struct reader *r, uint64_t thread, struct deadlock_wait *wait)
{
	struct deadlock_frame *all =
		base_arena_alloc(deadlock_world_arena(r->world), DEADLOCK_FRAMES_MAX * sizeof *all);
	uint64_t frame = innermost_frame(r, thread);
	size_t nr = 0;
	for (int i = 0; all && frame && i < FRAMES_MAX && nr < DEADLOCK_FRAMES_MAX; i++) {
		if (!is_entry(r, frame) && read_frame(r, frame, &all[nr]))
			nr++;
		frame = pointer_at(r, frame, r->layout->previous);
	}
	wait->python = all;
	wait->nr_python = nr;
}

/* By what pthread_self() is, which is the thread's fs_base; else by its tid, which a fork makes
 * old. */
static bool python_is_thread(
	const struct reader *r, uint64_t thread, const struct deadlock_wait *wait)
{
	if (wait->registers_source != DEADLOCK_REGISTERS_NONE && wait->registers.fs_base)
		return pointer_at(r, thread, r->layout->pthread) == wait->registers.fs_base;
	return pointer_at(r, thread, r->layout->native) == (uint64_t)wait->thread.tid;
}

static uint64_t python_find_thread(
	const struct reader *r, uint64_t runtime, const struct deadlock_wait *wait)
{
	const struct python_layout *l = r->layout;
	uint64_t interpreter = pointer_at(r, runtime, l->interpreters);
	for (int i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
		uint64_t thread = pointer_at(r, interpreter, l->threads);
		for (int t = 0; thread && t < THREADS_MAX; t++) {
			if (python_is_thread(r, thread, wait))
				return thread;
			thread = pointer_at(r, thread, l->next_thread);
		}
		interpreter = pointer_at(r, interpreter, l->next_interpreter);
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
	const struct reader r = {.world = w, .pid = p->pid, .layout = &python->layout};
	const uint64_t thread = python_find_thread(&r, python->runtime, wait);
	if (thread) /* else it is none of Python's threads */
		read_frames(&r, thread, wait);
}
