/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols.h - names of functions, source lines and variables of ELF files, by elfutils.
 *
 * Done once, in the recording session, so that a trace can be read where the program is not. Files
 * are found by the path that was mapped and must still have the same build id; line information may
 * come from a separate debug file.
 */
#ifndef LONGPOLE_RECORD_SYMBOLS_H
#define LONGPOLE_RECORD_SYMBOLS_H

#include "base/base.h"

enum { RECORD_BUILD_ID_TEXT = 2 * 64 + 1 };

struct record_symbols; /* one ELF file, opened */

struct record_symbol {
	char *function;   /* demangled; borrowed until the next call; NULL: unknown */
	const char *file; /* borrowed until close; NULL: no line information */
	uint64_t line;
	uint64_t function_offset;
	bool exact; /* `function` is a symbol's name; else it was made up ("pigz+0x4a20") */
};

/* NULL: no such file, not ELF, or another build. build_id "": any. */
struct record_symbols *record_symbols_open(const char *path, const char *build_id);
struct record_symbols *record_symbols_close(struct record_symbols *s);
/* The function and line of the code at `offset` (an address as linked). False: nothing is known. */
bool record_symbols_code(struct record_symbols *s, uint64_t offset, struct record_symbol *ret);
/* The variable that covers `offset`: "name" or "name+0x28". False: none. */
bool record_symbols_data(struct record_symbols *s, uint64_t offset, struct base_str *ret);
/* Where `name` is defined, 0: nowhere. For tests. */
uint64_t record_symbols_find(struct record_symbols *s, const char *name);

/* Are C++ names made readable here? */
bool record_demangler_found(void);

/* What to subtract from addresses of a mapping (start, file offset) of `path` to get addresses as
 * linked; and its build id. False: not an ELF file that can be read. */
bool record_elf_bias(const char *path, uint64_t start, uint64_t file_offset, uint64_t *ret_bias,
	char ret_build_id[RECORD_BUILD_ID_TEXT]);

#endif
