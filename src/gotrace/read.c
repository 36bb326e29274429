/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - the file's header, and the tables that both formats share: texts, frames, stacks. */
#include "gotrace/private.h"

#include <string.h>

enum { VERSION_FIRST = 11, VERSION_V2 = 22, VERSION_MAX = 99 };

void gotrace_fail(struct gotrace_merge *m, enum base_status s, const char *what)
{
	if (m->status == BASE_OK)
		m->status = base_fail(
			m->err, s, "%s%s", s == BASE_ERR_NOMEM ? "out of memory for " : "", what);
}

struct gotrace *gotrace_free(struct gotrace *t)
{
	if (!t)
		return NULL;
	base_free(t->event);
	base_free(t->frame);
	base_free(t->stack);
	base_free(t->stack_frame);
	base_strtab_free(t->texts);
	base_free(t);
	return NULL;
}

/* ---- texts, frames, stacks ------------------------------------------------------------------- */

static uint32_t gotrace_intern(struct gotrace_merge *m, const char *text, size_t nr_bytes)
{
	uint32_t id = 0;
	enum base_status s = base_strtab_intern(m->t->texts, text, nr_bytes, &id);
	if (s != BASE_OK)
		gotrace_fail(m, s, "texts");
	return id;
}

uint32_t gotrace_own_text(struct gotrace_merge *m, const char *text)
{
	return gotrace_intern(m, text, strlen(text));
}

static void gotrace_put(struct gotrace_merge *m, struct base_map *map, uint64_t id, uint64_t value,
	const char *what)
{
	enum base_status s = base_map_put(map, m->generation, id, value);
	if (s != BASE_OK)
		gotrace_fail(m, s, what);
}

void gotrace_keep_text(struct gotrace_merge *m, uint64_t id, const uint8_t *text, uint64_t nr_bytes)
{
	size_t nr = nr_bytes < GOTRACE_TEXT_MAX ? (size_t)nr_bytes : GOTRACE_TEXT_MAX;
	size_t nul = strnlen((const char *)text, nr);
	gotrace_put(m, &m->texts, id, gotrace_intern(m, (const char *)text, nul), "texts");
}

uint32_t gotrace_text_of(struct gotrace_merge *m, uint64_t id)
{
	uint64_t text = 0;
	if (id && !base_map_get(&m->texts, m->generation, id, &text))
		m->t->nr_texts_missing++;
	return (uint32_t)text;
}

/* Frames that say the same are one. */
static uint32_t gotrace_frame_of(struct gotrace_merge *m, const uint64_t *arg)
{
	struct gotrace *t = m->t;
	struct gotrace_frame f = {.pc = arg[0],
		.function = gotrace_text_of(m, arg[1]),
		.file = gotrace_text_of(m, arg[2]),
		.line = arg[3] < UINT32_MAX ? (uint32_t)arg[3] : 0};
	uint64_t hi = (uint64_t)f.function << 32 | f.line, known;
	uint64_t lo = base_hash_u64(f.pc + f.file);
	for (;; lo++) { /* another one of that hash: the next number */
		if (!base_map_get(&m->frames, hi, lo, &known))
			break;
		if (t->frame[known].pc == f.pc && t->frame[known].file == f.file)
			return (uint32_t)known;
	}
	if (base_grow(&t->frame, &t->frame_capacity, t->nr_frames + 1, sizeof *t->frame) !=
			BASE_OK ||
		base_map_put(&m->frames, hi, lo, t->nr_frames) != BASE_OK) {
		gotrace_fail(m, BASE_ERR_NOMEM, "frames");
		return 0;
	}
	t->frame[t->nr_frames] = f;
	return (uint32_t)t->nr_frames++;
}

void gotrace_keep_stack(struct gotrace_merge *m, uint64_t id, const uint64_t *args, size_t nr)
{
	struct gotrace *t = m->t;
	if (base_grow(&t->stack, &t->stack_capacity, t->nr_stacks + 1, sizeof *t->stack) !=
			BASE_OK ||
		base_grow(&t->stack_frame, &t->stack_frame_capacity, t->nr_stack_frames + nr,
			sizeof *t->stack_frame) != BASE_OK) {
		gotrace_fail(m, BASE_ERR_NOMEM, "stacks");
		return;
	}
	struct gotrace_stack s = {
		.first = (uint32_t)t->nr_stack_frames, .nr = nr ? (uint32_t)nr : 0};
	for (size_t i = 0; i < nr; i++)
		t->stack_frame[t->nr_stack_frames++] = gotrace_frame_of(m, args + 4 * i);
	gotrace_put(m, &m->stacks, id, t->nr_stacks, "stacks");
	t->stack[t->nr_stacks++] = s;
}

uint32_t gotrace_stack_of(const struct gotrace_merge *m, uint64_t id)
{
	uint64_t stack = 0;
	if (id)
		(void)base_map_get(&m->stacks, m->generation, id, &stack);
	return (uint32_t)stack;
}

/* ---- the header ------------------------------------------------------------------------------ */

/* "go 1.22 trace", then zeroes. 0: it is none. */
static unsigned gotrace_version(const uint8_t *p, size_t nr)
{
	unsigned version = 0;
	size_t i = 5;
	if (nr < GOTRACE_HEADER_BYTES || memcmp(p, "go 1.", 5) != 0)
		return 0;
	for (; i < 7 && p[i] >= '0' && p[i] <= '9'; i++)
		version = version * 10 + (unsigned)(p[i] - '0');
	if (i == 5 || memcmp(p + i, " trace", 6) != 0)
		return 0;
	for (i += 6; i < GOTRACE_HEADER_BYTES; i++)
		if (p[i])
			return 0;
	return version;
}

static bool gotrace_begin_tables(struct gotrace *t)
{
	enum { SOME = 16 };
	t->texts = base_strtab_new();
	if (!t->texts ||
		base_grow(&t->frame, &t->frame_capacity, SOME, sizeof *t->frame) != BASE_OK ||
		base_grow(&t->stack, &t->stack_capacity, SOME, sizeof *t->stack) != BASE_OK)
		return false;
	t->nr_frames = t->nr_stacks = 1; /* none */
	return true;
}

struct gotrace *gotrace_new(unsigned version)
{
	struct gotrace *t = base_alloc(sizeof *t);
	if (!t || !gotrace_begin_tables(t))
		return gotrace_free(t);
	t->version = version;
	return t;
}

enum base_status gotrace_read(
	const uint8_t *bytes, size_t nr_bytes, struct gotrace **ret, struct base_err *err)
{
	unsigned version = gotrace_version(bytes, nr_bytes);
	*ret = NULL;
	if (!version)
		return base_fail(err, BASE_ERR_FOREIGN,
			"does not begin as an execution trace of Go (\"go 1.22 trace\")");
	if (version < VERSION_FIRST)
		return base_fail(err, BASE_ERR_FOREIGN,
			"a trace of Go 1.%u: those of Go 1.11 and newer are read", version);
	struct gotrace *t = gotrace_new(version);
	if (!t)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for a trace");
	t->tells_calls = version >= VERSION_V2;
	enum base_status s = version < VERSION_V2 ? gotrace_read_v1(t, bytes, nr_bytes, err)
						  : gotrace_read_v2(t, bytes, nr_bytes, err);
	if (s == BASE_OK && !t->nr_events)
		s = base_fail(err, BASE_ERR_FOREIGN, "there is no event in it");
	if (s != BASE_OK) {
		gotrace_free(t);
		return s;
	}
	*ret = t;
	return BASE_OK;
}
