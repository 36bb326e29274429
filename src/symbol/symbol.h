/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol.h - names of functions, source lines and variables of ELF files, by elfutils.
 *
 * Done once, in the recording session, so that a trace can be read where the program is not. Files
 * are found by the path that was mapped and must still have the same build id; line information may
 * come from a separate debug file.
 */
#ifndef LONGPOLE_SYMBOL_H
#define LONGPOLE_SYMBOL_H

#include "base/base.h"

enum { SYMBOL_BUILD_ID_TEXT = 2 * 64 + 1 };

struct symbol_file; /* one ELF file, opened */

struct symbol_found {
	char *function;   /* demangled; borrowed until the next call; NULL: unknown */
	const char *file; /* borrowed until close; NULL: no line information */
	uint64_t line;
	uint64_t function_offset;
	bool exact; /* `function` is a symbol's name; else it was made up ("pigz+0x4a20") */
};

/* NULL: no such file, not ELF, or another build. build_id "": any. */
struct symbol_file *symbol_open(const char *path, const char *build_id);
struct symbol_file *symbol_close(struct symbol_file *s);
/* The function and line of the code at `offset` (an address as linked). False: nothing is known. */
bool symbol_code(struct symbol_file *s, uint64_t offset, struct symbol_found *ret);
/* The variable that covers `offset`: "name" or "name+0x28". False: none. */
bool symbol_data(struct symbol_file *s, uint64_t offset, struct base_str *ret);
/* Where `name` is defined, 0: nowhere. For tests. */
uint64_t symbol_find(struct symbol_file *s, const char *name);

/* Are C++ names made readable here? */
bool symbol_demangler_found(void);

/* What to subtract from addresses of a mapping (start, file offset) of `path` to get addresses as
 * linked; and its build id. False: not an ELF file that can be read. */
bool symbol_elf_bias(const char *path, uint64_t start, uint64_t file_offset, uint64_t *ret_bias,
	char ret_build_id[SYMBOL_BUILD_ID_TEXT]);

#endif
