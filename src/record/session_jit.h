/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_jit.h - code that programs make at run time: which places are in it, and their names from
 * the files that the programs wrote for perf (symbol/jit.h).
 *
 * Such a place belongs to one image: other programs have other code at its address. Of an image
 * that has a jitdump it also belongs to a slice of time, because the code there may be replaced.
 */
#ifndef LONGPOLE_RECORD_SESSION_JIT_H
#define LONGPOLE_RECORD_SESSION_JIT_H

#include "record/session_image.h"

/* Which site: the same for the same address and image (and slice). 0: the sink has failed. */
uint32_t record_jit_site(struct record_world *w, struct record_image *image, uint64_t address);
/* Is it in executable memory of an image that is known to run code of no file? Asks /proc. */
bool record_jit_is_code(struct record_world *w, struct record_image *image, uint64_t address);
/* A file that is no ELF file is mapped as code: if it is a jitdump, it is the image's. */
void record_jit_mapped(struct record_world *w, struct record_image *image, const char *path);
/* Both clocks at one moment: of the trace, and CLOCK_MONOTONIC. The first and the last count. */
void record_jit_clock(struct record_world *w, uint64_t trace_ns, uint64_t mono_ns);
/* Writes a symbol for each place of the image that has a name now and had none; returns how many.
 * When its process ends, and at the recording's end. */
uint64_t record_jit_name(struct record_world *w, struct record_image *image);
uint64_t record_jit_name_all(struct record_world *w);
/* Where nothing can be named any more: closes files. */
void record_jit_free(struct record_image *image);

#endif
