/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_loops.c - `longpole loops`: where the path goes round because something is finite. */
#include "cmd/cmd.h"

enum { LIMIT_DEFAULT = 5 };

static const struct cmd_option option[] = {
	{"limit", 'n', "N", NULL, "show the N loops that hold the path back most (default 5)"},
	{"all", 'a', NULL, NULL, "show every loop"},
};

const struct cmd_details cmd_details_loops = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Finds loops of the critical path. It goes round one where it waits again and "
		 "again for units to come back: room in a bounded queue, a lock's token, a "
		 "window's credit. For each loop it says what is finite, who goes round, how "
		 "often, and what 1, 2, 4 or any number of units more would buy.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole loops server.lpt",
		"longpole loops --json server.lpt | jq '.result.loops[0].more'"},
};

int cmd_section_loops(struct cmd *c, struct report_run *run, struct cmd_answer *a)
{
	struct report_loops *r = NULL;
	size_t limit = LIMIT_DEFAULT;
	if (!cmd_value_limit(c, &limit))
		return CMD_USAGE;
	if (!run)
		return CMD_OK;
	cmd_answer_set(c, a, report_loops_build(run, limit, &r, &c->err));
	if (a->as == CMD_AS_JSON)
		a->json = report_loops_json(r);
	else if (a->as == CMD_AS_TEXT)
		report_loops_text(&a->text, r, &a->style);
	report_loops_free(r);
	return CMD_OK;
}
