/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewrite.h - put recording code into the assembly that a compiler made.
 *
 * In four steps, because the assembler and Zydis know more about instructions than any table here
 * could:
 *	rewrite_new()        splits the text
 *	rewrite_labelled()   the same text with a label before each instruction; the caller
 *	                     assembles it, keeping local labels (as -L)
 *	rewrite_object()     takes the object: now each instruction's bytes, hence its accesses,
 *	                     are known
 *	rewrite_emit()       the text with recording code and the tables of memory/stream/stream.h
 *
 * The recording code uses mov and lea only, so that flags need no care, and no stack, so that red
 * zones, unwinding and alignment need none. Where a function leaves r10 and r11 alone (gcc is told
 * to, with -ffixed-r10 -ffixed-r11), r10 points to the thread's next free word all the time and r11
 * is scratch. In other functions each block borrows two registers that it does not mention, and
 * keeps their contents in thread-local storage meanwhile.
 */
#ifndef LONGPOLE_REWRITE_REWRITE_H
#define LONGPOLE_REWRITE_REWRITE_H

#include "base/base.h"

struct rewrite_options {
	size_t size;
	unsigned level;          /* 1: calls by name only; 2: blocks with accesses; 3: all blocks */
	bool accesses_are_calls; /* the compiler put a call before each (target/tsan.c):
				    blocks are left alone, whatever the level */
	bool pic; /* for a shared library: thread-local storage by the initial-exec model */
};

struct rewrite_counts {
	uint64_t functions, borrowing, blocks, instructions, accesses, slots;
	uint64_t opaque;  /* places with inline assembly that was not understood */
	uint64_t unknown; /* instructions that access memory in a way that is not recorded */
	uint64_t calls;   /* replaced by calls of the runtime library */
};

struct rewrite;
/* The text must outlive the result. */
enum base_status rewrite_new(const char *text, size_t size_bytes,
	const struct rewrite_options *options, struct rewrite **ret,
	struct base_err *err) BASE_MUST_CHECK;
/* Is it a compiler's output? Hand-written assembly is left alone. */
bool rewrite_is_compiled(const char *text, size_t size_bytes);
/* Check ret->failed. */
void rewrite_labelled(const struct rewrite *w, struct base_str *ret);
enum base_status rewrite_object(struct rewrite *w, const void *bytes, size_t size_bytes,
	struct base_err *err) BASE_MUST_CHECK;
enum base_status rewrite_emit(
	struct rewrite *w, struct base_str *ret, struct base_err *err) BASE_MUST_CHECK;
const struct rewrite_counts *rewrite_counts(const struct rewrite *w);
void rewrite_free(struct rewrite *w); /* NULL-safe */

#endif
