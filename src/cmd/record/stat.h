/* SPDX-License-Identifier: Apache-2.0 */
/* stat.h - what `longpole stat` says, as text and as JSON. */
#ifndef LONGPOLE_CMD_STAT_H
#define LONGPOLE_CMD_STAT_H

#include "cmd/cmd.h"
#include "stat/stat.h"

struct cmd_stat {
	struct stat_result *s;
	const struct stat_options *options;
	const char *program;
	size_t limit; /* rows of a table; 0: all */
};

void cmd_stat_text(struct base_str *out, const struct cmd_stat *c);
json_t *cmd_stat_json(const struct cmd_stat *c);

#endif
