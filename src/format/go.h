/* SPDX-License-Identifier: Apache-2.0 */
/* go.h - shared by the files of the import of Go's execution traces. */
#ifndef LONGPOLE_FORMAT_GO_H
#define LONGPOLE_FORMAT_GO_H

#include "format/private.h"
#include "gotrace/gotrace.h"
#include "trace/enums.h"

struct format_go_wait { /* a row of go_waits.def */
	const char *reason, *function, *text;
	enum trace_task how;
};

/* Frames by their place in the stack, innermost first; NULL, "": there is none. */
const struct gotrace_frame *format_go_frame(const struct gotrace *t, uint32_t stack, uint32_t i);
const char *format_go_function(const struct gotrace *t, uint32_t stack, uint32_t i);
/* Of Go's own library, and called to wait, or for I/O. */
bool format_go_is_plumbing(const char *function);
/* Place of the innermost frame that is not such a one; 0 where all are. */
uint32_t format_go_innermost(const struct gotrace *t, uint32_t stack);
/* Place of the outermost one that is not such a one; the stack's last where all are. */
uint32_t format_go_outermost(const struct gotrace *t, uint32_t stack);
/* "github.com/x/y/fs.(*File).Read" is fs.(*File).Read: a part of the text. */
const char *format_go_short(const char *function);
/* Place in `before` of the innermost frame that both have: it ran there in between, or in what that
 * called. UINT32_MAX: they have none. */
uint32_t format_go_common(const struct gotrace *t, uint32_t before, uint32_t after);
/* It is in a select of Go's. */
bool format_go_selects(const struct gotrace *t, uint32_t stack);
const struct format_go_wait *format_go_wait_of(
	const struct gotrace *t, const char *reason, uint32_t stack);

#endif
