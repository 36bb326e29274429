/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit.h - code that programs make at run time: which places are in it, and their names from
 * the files that the programs wrote for perf (symbol/jit.h).
 *
 * Such a place belongs to one image: other programs have other code at its address. Of an image
 * that has a jitdump it also belongs to a slice of time, because the code there may be replaced.
 */
#ifndef LONGPOLE_RECORD_JIT_H
#define LONGPOLE_RECORD_JIT_H

#include "record/image.h"

/* Which site: the same for the same address and image (and slice). 0: the sink has failed. */
uint32_t record_jit_site(struct record_world *w, struct record_image *image, uint64_t address);
/*
 * While a process lives, as soon as it is heard of: it ran at an address of no file that is known;
 * it has mapped a file as code (which is its jitdump, if it is called so); the number is that of
 * another process now, or of another program. They read /proc, for places are made later.
 */
void record_jit_sampled(struct record_world *w, uint32_t pid, uint64_t address);
void record_jit_mapped(struct record_world *w, uint32_t pid, const char *path);
void record_jit_forget(struct record_world *w, uint32_t pid);
/* The image says itself that code at `address` stands for a place of its own (RING_place), or for what
 * code at that address has stood for. */
void record_jit_told(struct record_world *w, struct record_image *image, uint64_t address,
	uint64_t nr_bytes, uint64_t stands_for);
/* What the image told last of code that begins there; 0: nothing. */
uint64_t record_jit_place_at(
	const struct record_world *w, const struct record_image *image, uint64_t start);
/* Was it executable memory when the image's process was sampled? */
bool record_jit_is_code(
	const struct record_world *w, const struct record_image *image, uint64_t address);
/* Both clocks at one moment: of the trace, and CLOCK_MONOTONIC. The first and the last count. */
void record_jit_clock(struct record_world *w, uint64_t trace_ns, uint64_t mono_ns);
/* Writes a symbol for each place of the image that has a name now and had none; returns how many.
 * When its process ends, and at the recording's end. */
uint64_t record_jit_name(struct record_world *w, struct record_image *image);
uint64_t record_jit_name_all(struct record_world *w);
/* The same while it goes on: only when places have come since the last time. */
uint64_t record_jit_name_new(struct record_world *w);
/* Says how many places have no name, and why, where they are more than `nr_others`. False: not. */
bool record_jit_say_unnamed(
	const struct record_world *w, uint64_t nr_others, char *text, size_t text_bytes);
void record_jit_fini(struct record_world *w);

#endif
