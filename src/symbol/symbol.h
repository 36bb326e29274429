/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbol.h - names of functions, source lines, inlined callers and variables of ELF files, by
 * elfutils, in this process.
 *
 * Files are found by their path and must still have the same build id; names and lines may come
 * from a separate debug file that is installed here, or from a debuginfod server when the caller
 * allows it and $DEBUGINFOD_URLS names one. A file's symbols are sorted when it is first asked, a
 * compile unit's functions when an address in it is first asked: after that a question is a few
 * binary searches (bench/symbols).
 *
 * Units: offsets are addresses as linked. Texts are borrowed until symbol_close(). One thread a
 * file. Memory: what is asked; at most SYMBOL_TEXT_LIMIT_BYTES of names a file.
 */
#ifndef LONGPOLE_SYMBOL_H
#define LONGPOLE_SYMBOL_H

#include "base/base.h"

enum { SYMBOL_BUILD_ID_TEXT = 2 * 64 + 1, SYMBOL_TEXT_LIMIT_BYTES = 256 << 20 };

/* Why an address has no name or no line (reasons.def). */
enum symbol_why {
#define WHY(name, line, advice) SYMBOL_WHY_##name,
#include "symbol/reasons.def"
	SYMBOL_WHY_NR
};
const char *symbol_why_line(enum symbol_why w);   /* "stripped, and no debug file is here" */
const char *symbol_why_advice(enum symbol_why w); /* what to try; "" when there is nothing */

struct symbol_file; /* one ELF file, opened */

struct symbol_options {
	size_t size;
	bool fetch; /* debuginfod may be asked, if $DEBUGINFOD_URLS says where: may take long */
};

struct symbol_found {
	const char *function; /* demangled; NULL: unknown */
	const char *file;     /* NULL: no line information */
	uint64_t line;
	uint64_t function_offset;
	bool exact; /* `function` is a symbol's name; else it was made up ("pigz+0x4a20") */
};
/* How many bytes of it are the file's name, where the name was made of that and an address since nothing
 * names the code ("pigz+0x4a20": 4); 0: it is a name. */
size_t symbol_made_up(const char *function);
struct symbol_frame {
	const char *function, *file; /* as above */
	uint64_t line;
	bool inlined; /* into the next frame */
};

/* NULL: no such file, not ELF, or another build; ret_why (may be NULL) says which. build_id as
 * symbol_build_of_file() gives it; "": any. opts NULL: nothing is fetched. */
struct symbol_file *symbol_open_with(const char *path, const char *build_id,
	const struct symbol_options *opts, enum symbol_why *ret_why);
struct symbol_file *symbol_open(const char *path, const char *build_id);
struct symbol_file *symbol_close(struct symbol_file *f); /* NULL-safe; returns NULL */

/* The function and line of the code at `offset`. False: nothing is known, symbol_why() says why. */
bool symbol_code(struct symbol_file *f, uint64_t offset, struct symbol_found *ret);
/* The same with the functions that were inlined there, innermost first; the last one is the
 * function that a debugger would stop in. Returns how many there are, max at most; 0: unknown. */
size_t symbol_frames(struct symbol_file *f, uint64_t offset, struct symbol_frame *ret, size_t max);
/* Code of the file around `offset`, up to reach_bytes to both sides, in its section: *ret_from is
 * where it begins. Returns how many bytes; 0: there is none (only a debug file is here). */
size_t symbol_bytes_around(struct symbol_file *f, uint64_t offset, size_t reach_bytes, uint8_t *ret,
	uint64_t *ret_from);
/* The function that the entry of the procedure linkage table at `offset` is for: the symbol's name
 * as the file has it; NULL: it is no such entry. Borrowed. */
const char *symbol_linked(struct symbol_file *f, uint64_t offset);
/* Why the last symbol_code() or symbol_frames() found no name, or no line; none: it found both. */
enum symbol_why symbol_why(const struct symbol_file *f);
/* The variable that covers `offset`, with the member that is there when the file has debug
 * information: "stats.hits", "table[3].count", "table[3].count+0x2"; else "table+0x28". Members
 * that share the byte: "word.{whole|half}"; what belongs to the implementation (reserved names, as
 * in pthread_mutex_t) is not looked into: "lock+0x8". False: none. */
bool symbol_data(struct symbol_file *f, uint64_t offset, struct base_str *ret);
/* Where a pointer is when the instruction at `code` is reached, and the structure that it points to
 * by the variable that is there. False: no variable of such a type is known to be there. */
struct symbol_holder {
	enum { SYMBOL_IN_REGISTER, SYMBOL_IN_FRAME, SYMBOL_AT_ADDRESS } kind;
	uint64_t value; /* DWARF's number of the register; offset from the CFA; address */
};
struct symbol_type {
	uint64_t die;
	uint64_t size_bytes; /* > 0 */
	const char *name;    /* "stats"; as long as the file is open */
};
bool symbol_pointee(struct symbol_file *f, uint64_t code, const struct symbol_holder *h,
	struct symbol_type *ret);
/* Adds what is `offset` bytes into one, as symbol_data() does: ".hits". */
void symbol_type_member(
	struct symbol_file *f, const struct symbol_type *t, uint64_t offset, struct base_str *out);
/* The first variable that ends behind `offset`: it covers it, or is the next one. False: none. */
struct symbol_variable {
	const char *name;
	uint64_t offset, size_bytes;
};
bool symbol_variable(struct symbol_file *f, uint64_t offset, struct symbol_variable *ret);
/* The first section in memory that ends behind `offset`, but those of threads: what a variable
 * without a name belongs to. Its name is as the file has it, ".bss". False: none. */
bool symbol_section(struct symbol_file *f, uint64_t offset, struct symbol_variable *ret);

/* A symbol's name as one reads it: C++ and Rust demangled, without a version, and without what compilers add to
 * pieces and copies of a function (".constprop.0"). Of malloc: the caller
 * frees it. NULL: no memory. */
char *symbol_readable(const char *name);
/* What one calls the function of such a name, C++'s or Rust's: folded brackets, no parameters, and
 * not the library's function that calls it (plumbing.def): "ThreadPool::submit<..>::lambda". Other
 * names stay. utf8: with an ellipsis and a lambda of Unicode. */
void symbol_short_add(struct base_str *out, const char *name, bool utf8);
/* The same of every long name that is a word of a text: "running f<..> and g (a.cc:7)". */
void symbol_short_add_text(struct base_str *out, const char *text, bool utf8);
/* Is the function a standard library's that only calls what it is given? */
bool symbol_is_plumbing(const char *name);
/* What a thread is called that begins in such a function of a runtime's (starts.def); NULL: as the
 * function is. */
const char *symbol_start_words(const char *name, const char *file);

/* Where a file lies in memory of which one mapping is known: from its first segment to the end of
 * its last; less the bias these are addresses as linked. */
struct symbol_extent {
	uint64_t bias, start, end;
	bool copy; /* the mapping begins within a segment: it is no loader's, and the file is not
		      around it (V8 maps its built-in code once more beside what it compiles) */
	char build_id[SYMBOL_BUILD_ID_TEXT];
};
/* False: not an ELF file that can be read, or of another mapping. */
bool symbol_elf_extent(
	const char *path, uint64_t map_start, uint64_t file_offset, struct symbol_extent *ret);

/* What tells a file's build from others: its build id; of an ELF file without one "crc32:", the sum
 * of its bytes and their number. False, and "": no ELF file that can be read. */
#define SYMBOL_SUM_PREFIX  "crc32:"
#define SYMBOL_SUM_CHANGED SYMBOL_SUM_PREFIX "changed" /* the file was changed: no file's */
bool symbol_build_of_file(const char *path, char ret[SYMBOL_BUILD_ID_TEXT]);

/* Where a file's dynamic symbols of these names are, as linked; 0: it defines none of that name.
 * False: it is no ELF file that can be read. */
bool symbol_elf_dynamic(const char *path, const char *const *name, uint64_t *ret, size_t nr);

#endif
