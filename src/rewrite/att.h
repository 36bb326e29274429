/* SPDX-License-Identifier: Apache-2.0 */
/*
 * att.h - AT&T assembly text: statements, operands. Knows no instruction.
 *
 * What compilers write for the GNU assembler on x86-64: labels, directives, instructions; comments
 * from '#' to the end of the line; several statements a line by ';'; strings; blocks between #APP
 * and #NO_APP that the programmer wrote.
 */
#ifndef LONGPOLE_REWRITE_ATT_H
#define LONGPOLE_REWRITE_ATT_H

#include "base/base.h"

struct att_text { /* borrowed from the assembly text */
	const char *at;
	size_t length;
};

enum att_kind { ATT_LABEL, ATT_DIRECTIVE, ATT_INSTRUCTION };
enum { ATT_IN_APP = 1, ATT_PREFIX_ONLY = 2 };

struct att_statement {
	struct att_text text; /* without comment and blanks around; of a label: its name */
	uint8_t kind;         /* enum att_kind */
	uint8_t flags;        /* ATT_IN_APP | ATT_PREFIX_ONLY (`lock`, whose instruction follows) */
};

struct att_file {
	struct att_statement *statement;
	size_t nr, capacity;
};

/* Splits a whole text, which must outlive the result. BASE_ERR_LIMIT: more than ATT_STATEMENTS_MAX.
 */
enum { ATT_STATEMENTS_MAX = 1 << 27 };
enum base_status rewrite_att_split(const char *text, size_t size_bytes, struct att_file *ret,
	struct base_err *err) BASE_MUST_CHECK;
void rewrite_att_file_fini(struct att_file *f);

/* The first word of a statement: directive or mnemonic (behind prefixes like `lock`). */
struct att_text rewrite_att_word(const struct att_statement *s);
/* What follows the word. */
struct att_text rewrite_att_rest(const struct att_statement *s);
/* Parts separated by commas outside parentheses, braces and quotes. Returns how many there are; at
 * most `max` are stored. */
size_t rewrite_att_parts(struct att_text list, struct att_text *ret, size_t max);

bool rewrite_att_is(struct att_text t, const char *word);
bool rewrite_att_begins(struct att_text t, const char *prefix);
bool rewrite_att_ends(struct att_text t, const char *suffix);
bool rewrite_att_contains(struct att_text t, const char *word);
struct att_text rewrite_att_trim(struct att_text t);

/* struct rewrite_att_memory - a memory operand, [seg:]disp(base,index,scale). */
struct rewrite_att_memory {
	struct att_text segment; /* "fs"; empty: none */
	struct att_text symbol;  /* of the displacement: "x@tpoff"; empty: a number only */
	int64_t number;          /* added to it */
	struct att_text inside;  /* the parentheses and what is in them; empty: none */
};
/* false: not a memory operand (a register, an immediate), or one that is not understood. */
bool rewrite_att_memory(struct att_text operand, struct rewrite_att_memory *ret);

/* Calls visit for each symbol-like word in an expression or operand list; registers are none. */
void rewrite_att_symbols(
	struct att_text t, void (*visit)(void *ctx, struct att_text symbol), void *ctx);

#endif
