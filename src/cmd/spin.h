/* SPDX-License-Identifier: Apache-2.0 */
/* spin.h - what `longpole spin` says, as text and as JSON. */
#ifndef LONGPOLE_CMD_SPIN_H
#define LONGPOLE_CMD_SPIN_H

#include "cmd/cmd.h"
#include "spin/native.h"

struct cmd_spin {
	const struct spin_answer *a;
	const char *program; /* NULL: a process that ran already */
	const char *no_tool; /* why Valgrind was not used; NULL: it was, or was not wanted */
	size_t limit;        /* threads and loops that are shown; 0: all */
};
void cmd_spin_text(struct base_str *out, const struct cmd_spin *c);
json_t *cmd_spin_json(const struct cmd_spin *c); /* NULL: no memory */

#endif
