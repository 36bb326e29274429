/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java_code.c - code that the VM's compilers make: for each piece of it the innermost method and line
 * of Java that it stands for (RING_code), also where one method was compiled into another.
 */
#include "runtime/java/java.h"

#include <string.h>

#ifndef PRELOAD_STATIC

static void code_put(const void *begin, const void *end, uint64_t place)
{
	if (place && (uintptr_t)begin < (uintptr_t)end)
		preload_record_at(preload_now(), RING_code,
			PRELOAD_WORDS((uintptr_t)begin, (uintptr_t)end - (uintptr_t)begin, place));
}

/* Each piece ends where HotSpot says what is at work. Pieces of one place in a row are one. */
static void code_inlined(const struct java_inlining *r, const void *begin, const void *end)
{
	const void *from = begin;
	uint64_t place = 0;
	for (int32_t i = 0; i < r->nr; i++) {
		const struct java_pc *pc = &r->pc[i];
		uint64_t next =
			pc->nr_frames > 0 ? java_place(pc->methods[0], pc->locations[0]) : 0;
		if (next != place && i > 0) {
			code_put(from, r->pc[i - 1].pc, place);
			from = r->pc[i - 1].pc;
		}
		place = next;
	}
	code_put(from, end, place);
}

void java_code_loaded(java_env tool, void *method, int32_t size, const void *code, int32_t nr_lines,
	const void *lines, const void *inlining)
{
	(void)tool, (void)nr_lines, (void)lines;
	const struct java_inlining *r = inlining;
	const void *end = (const char *)code + size;
	if (!preload_active())
		return;
	while (r && r->kind != JVMTI_CMLR_INLINE_INFO)
		r = r->next;
	code_put(code, end, java_place(method, 0));
	if (r && r->nr > 0)
		code_inlined(r, code, end);
}

/* The interpreter, and the pieces of machine code that all methods share. */
void java_code_made(java_env tool, const char *name, const void *code, int32_t size)
{
	(void)tool;
	if (!preload_active())
		return;
	bool is_interpreter = strcmp(name, "Interpreter") == 0;
	code_put(code, (const char *)code + size,
		java_place_named(is_interpreter ? "interpreted Java" : name));
}

#endif
