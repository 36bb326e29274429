/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_outside.h - the Python frames of another process's thread, from its memory. Nothing of the
 * process is changed or run. It may run meanwhile: what is read may not fit together, is checked,
 * and every list has an end.
 */
#ifndef LONGPOLE_RUNTIME_PYTHON_OUTSIDE_H
#define LONGPOLE_RUNTIME_PYTHON_OUTSIDE_H

#include "base/base.h"
#include "runtime/python/layout.h"

struct python_reader {
	/* The process's memory; false: not all of it can be read. */
	bool (*read)(void *ctx, uint64_t address, void *ret, size_t size_bytes);
	void *ctx;
	const struct python_layout *layout;
};

struct python_frame {
	uint64_t code, instruction; /* addresses */
};

/* False: of this version it is not known where it has what. runtime: address of _PyRuntime; of the
 * reader only `read` is used. */
bool python_outside_layout(const struct python_reader *r, uint64_t runtime, uint32_t version,
	struct python_layout *ret);
/* The pointer at address + offset; 0: there is none, or it cannot be read. */
uint64_t python_outside_pointer(const struct python_reader *r, uint64_t address, uint32_t offset);
/* The state (PyThreadState) of the thread that has the global lock; 0: nobody has. */
uint64_t python_outside_running(const struct python_reader *r, uint64_t runtime);
/* The thread's innermost frame; 0: it has none. */
uint64_t python_outside_innermost(const struct python_reader *r, uint64_t thread);
/* Frames from `frame` on, innermost first, without those that the interpreter puts where its own C
 * code begins. Returns how many, `max` at most. */
size_t python_outside_frames(
	const struct python_reader *r, uint64_t frame, struct python_frame *ret, size_t max);

/* What a code object is known by while it lives: of another at its address at least one differs. */
struct python_code_words {
	uint64_t name, file, line_table;
};
bool python_outside_code(
	const struct python_reader *r, uint64_t code, struct python_code_words *ret);
/* Appends a text (a str object) as UTF-8. False: it is empty, or cannot be read. */
bool python_outside_text(const struct python_reader *r, uint64_t object, struct base_str *out);
/* The line that a frame is in; 0: it is not known. */
uint32_t python_outside_line(const struct python_reader *r, const struct python_frame *frame);

/* Is the file one of the standard library's, or no file at all? */
bool python_outside_is_library(const char *file);

#endif
