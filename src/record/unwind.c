/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unwind.c - a sample's callers: by .eh_frame, where code is not described by its frame pointer, at
 * last what the kernel found by those.
 *
 * It is done when a sample comes, by what the kernel has shown to be mapped until then: nothing of
 * the stack has to be kept.
 *
 * V8's interpreter is one machine function for all functions of JavaScript: which of them a frame is
 * of says the bytecode in the frame. Its address is kept beside the machine's until the event has its
 * place among the program's records, for these tell whose it is (runtime/node).
 * Code of V8 that has no frame of its own (what a bytecode does) counts as the function's.
 */
#include "record/convert.h"
#include "record/jit.h"
#include "ring/ring.h"
#include "symbol/symbol.h"
#include "symbol/unwind.h"

#include <string.h>

enum { UNWINDERS_MAX = 4096 };
/* With an object's address: no code has such a one, for the kernel's have the highest bit, too. */
#define UNWIND_BYTECODE          (1ull << 62)
#define UNWIND_IS_BYTECODE(word) ((word) >> 62 == 1)

void record_unwinders_fini(struct record_unwinders *u)
{
	for (size_t i = 0; i < u->nr; i++)
		symbol_unwinder_close(u->unwinder[i]);
	base_free(u->unwinder);
	base_map_fini(&u->by_path);
}

/* Its index + 1; 0: there is none. */
static uint32_t unwinder_of_path(struct record_unwinders *u, uint32_t path, const char *text)
{
	uint64_t known;
	if (base_map_get(&u->by_path, 0, path, &known))
		return (uint32_t)known;
	known = 0;
	if (u->nr < UNWINDERS_MAX &&
		base_grow(&u->unwinder, &u->capacity, u->nr + 1, sizeof(void *)) == BASE_OK &&
		(u->unwinder[u->nr] = symbol_unwinder_open(text)))
		known = ++u->nr;
	(void)!base_map_put(&u->by_path, 0, path, known);
	return (uint32_t)known;
}

static struct symbol_unwinder *unwind_of_map(struct record_converter *c, struct record_map *map)
{
	if (!map->unwinder) {
		const char *path = base_strtab_get(c->sink.strings, map->path);
		struct symbol_extent extent;
		map->unwinder = RECORD_UNWINDER_NONE;
		if (!symbol_elf_extent(path, map->start, map->file_offset, &extent) || extent.copy)
			return NULL;
		uint32_t found = unwinder_of_path(&c->unwinders, map->path, path);
		map->unwinder = found ? found : RECORD_UNWINDER_NONE;
		map->bias = extent.bias;
	}
	return map->unwinder == RECORD_UNWINDER_NONE ? NULL
						     : c->unwinders.unwinder[map->unwinder - 1];
}

/* The newest mapping there. */
static struct record_map *unwind_map_at(const struct record_task *leader, uint64_t address)
{
	for (size_t i = leader->nr_maps; i-- > 0;)
		if (leader->map[i].start <= address && address < leader->map[i].end)
			return &leader->map[i];
	return NULL;
}

static void unwind_begin(struct symbol_frame_state *s, const struct record_user_state *u)
{
	const uint64_t value[SYMBOL_REGISTERS_NR] = {[3] = u->rbx,
		[SYMBOL_REGISTER_RBP] = u->rbp,
		[SYMBOL_REGISTER_RSP] = u->rsp,
		[10] = u->r10,
		[12] = u->r12,
		[13] = u->r13,
		[14] = u->r14,
		[15] = u->r15,
		[SYMBOL_REGISTER_RIP] = u->rip};
	*s = (struct symbol_frame_state){.known = 1u << 3 | 1u << SYMBOL_REGISTER_RBP |
						  1u << SYMBOL_REGISTER_RSP | 1u << 10 |
						  0xfu << 12 | 1u << SYMBOL_REGISTER_RIP,
		.stack = u->stack,
		.stack_begin = u->rsp,
		.stack_bytes = u->stack_bytes};
	memcpy(s->value, value, sizeof value);
}

static bool unwind_load(const struct symbol_frame_state *s, uint64_t address, uint64_t *ret)
{
	const uint64_t at = address - s->stack_begin;
	if (address < s->stack_begin || s->stack_bytes < sizeof *ret ||
		at > s->stack_bytes - sizeof *ret)
		return false;
	memcpy(ret, s->stack + at, sizeof *ret);
	return true;
}

/*
 * V8's frames of the interpreter, and of code that was compiled from bytecode as it is: below the
 * frame pointer are the context and the function (objects: their addresses have the lowest bit set),
 * the number of arguments, and the bytecode. Returns a word for record_unwind_interpret(); 0: it is
 * no such frame. What looks like one is of others' code, too.
 */
static uint64_t unwind_bytecode(const struct symbol_frame_state *s)
{
	enum { CONTEXT = 8, FUNCTION = 16, BYTECODE = 32 };
	const uint64_t frame = s->value[SYMBOL_REGISTER_RBP];
	uint64_t context, function, bytecode;
	if (!(s->known >> SYMBOL_REGISTER_RBP & 1) || !unwind_load(s, frame - CONTEXT, &context) ||
		!unwind_load(s, frame - FUNCTION, &function) ||
		!unwind_load(s, frame - BYTECODE, &bytecode) ||
		!(context & function & bytecode & 1) || bytecode >> TRACE_PLACE_SHIFT)
		return 0;
	return bytecode | UNWIND_BYTECODE;
}

/* *ret_bytecode: of the frame that was left; or 0. */
static enum symbol_unwound unwind_step(struct record_converter *c, const struct record_task *leader,
	struct symbol_frame_state *s, uint64_t *ret_bytecode)
{
	struct record_map *map = unwind_map_at(leader, s->value[SYMBOL_REGISTER_RIP]);
	struct symbol_unwinder *u = map ? unwind_of_map(c, map) : NULL;
	enum symbol_unwound step =
		u ? symbol_unwinder_step(u, map->bias, s) : SYMBOL_UNWOUND_nothing;
	*ret_bytecode = 0;
	if (step != SYMBOL_UNWOUND_nothing)
		return step;
	*ret_bytecode = unwind_bytecode(s);
	return symbol_unwind_by_pointer(s);
}

/* What the kernel found goes on from the last caller that both found. */
static uint32_t unwind_go_on(uint64_t *frame, uint32_t nr, const uint64_t *other, uint32_t nr_other)
{
	uint32_t from = 0;
	while (nr && from < nr_other && other[from] != frame[nr - 1])
		from++;
	for (uint32_t i = nr ? from + 1 : 0; i < nr_other && nr < RECORD_FRAMES_MAX; i++)
		frame[nr++] = other[i];
	return nr;
}

/* No call returns to where no code is: what lies behind is not of this stack, either. */
static uint32_t unwind_drop_unmapped(
	const struct record_task *leader, const uint64_t *frame, uint32_t nr)
{
	uint32_t kept = 0;
	if (!leader->has_all_code || !leader->nr_maps)
		return nr;
	while (kept < nr && unwind_map_at(leader, frame[kept] - 1)) /* (a call may be the last) */
		kept++;
	return kept;
}

/* bytecode[0] is behind what ran, others behind callers. */
static uint32_t unwind_put_bytecode(uint64_t *frame, uint32_t nr, const uint64_t *bytecode)
{
	uint64_t all[RECORD_FRAMES_MAX];
	uint32_t nr_all = 0;
	for (uint32_t i = 0; i <= nr && nr_all < RECORD_FRAMES_MAX; i++) {
		if (i > 0)
			all[nr_all++] = frame[i - 1];
		if (bytecode[i] && nr_all < RECORD_FRAMES_MAX)
			all[nr_all++] = bytecode[i];
	}
	memcpy(frame, all, nr_all * sizeof *all);
	return nr_all;
}

uint32_t record_converter_unwind(struct record_converter *c, uint32_t pid,
	const struct record_user_state *u, uint64_t frame[static RECORD_FRAMES_MAX], uint32_t nr)
{
	const struct record_task *leader = record_converter_task(c, pid, pid);
	uint64_t by_pointer[RECORD_FRAMES_MAX], bytecode[RECORD_FRAMES_MAX + 1] = {0};
	struct symbol_frame_state s;
	if (!leader || !u->stack_bytes || nr > RECORD_FRAMES_MAX)
		return nr;
	memcpy(by_pointer, frame, nr * sizeof *frame);
	unwind_begin(&s, u);
	uint32_t nr_found = 0;
	enum symbol_unwound step = SYMBOL_UNWOUND_caller;
	while (nr_found < RECORD_FRAMES_MAX &&
		(step = unwind_step(c, leader, &s, &bytecode[nr_found])) == SYMBOL_UNWOUND_caller)
		frame[nr_found++] = s.value[SYMBOL_REGISTER_RIP];
	if (step == SYMBOL_UNWOUND_nothing)
		nr_found = unwind_go_on(frame, nr_found, by_pointer, nr);
	nr_found = unwind_drop_unmapped(leader, frame, nr_found);
	return unwind_put_bytecode(frame, nr_found, bytecode);
}

/* The bytecode's first byte is behind a header, whose size depends on V8's version. */
static uint64_t unwind_told(
	const struct record_world *w, const struct record_image *image, uint64_t word)
{
	enum { HEADER = 40, HEADER_LAST = 72 };
	const uint64_t object = (word & ~UNWIND_BYTECODE) - 1;
	uint64_t place = 0;
	for (uint64_t header = HEADER; header <= HEADER_LAST && !place; header += 2)
		place = record_jit_place_at(w, image, object + header);
	return place;
}

static bool unwind_interprets(const struct record_image *image, uint64_t code)
{
	return image->jit.interpreter <= code && code < image->jit.interpreter_end;
}

void record_unwind_interpret(
	const struct record_world *w, const struct record_image *image, struct record_event *e)
{
	uint32_t nr = 0;
	for (uint32_t i = 0; i < e->nr_frames; i++) {
		if (!UNWIND_IS_BYTECODE(e->frame[i])) {
			e->frame[nr++] = e->frame[i];
			continue;
		}
		const uint64_t place = unwind_told(w, image, e->frame[i]);
		uint64_t *of = nr ? &e->frame[nr - 1] : &e->ip;
		if (!place)
			continue;
		*of = place;
		of = nr > 1 ? &e->frame[nr - 2] : &e->ip;
		if (nr && unwind_interprets(image, *of)) {
			*of = place;
			nr--;
		}
	}
	e->nr_frames = nr;
}
