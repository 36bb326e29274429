/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_path.c - `longpole path`: the critical path, step by step. */
#include "cmd/cmd.h"

enum { LIMIT_DEFAULT = 40 };

static const struct cmd_option option[] = {
	{"limit", 'n', "N", NULL, "show the N longest steps, in the order of time (default 40)"},
	{"all", 'a', NULL, NULL, "show every step"},
};

const struct cmd_details cmd_details_path = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Prints the longest chain of dependences from the program's start to its end: "
		 "cumulative time, increment, who was in which state, and through which queue "
		 "control "
		 "came there. Times are since the recording's start.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole path -n 10 server.lpt", "longpole path --all --from=20ms --to=30ms",
		"longpole path --json server.lpt | jq '.result.steps | length'"},
};

int cmd_section_path(struct cmd *c, struct report_run *run, struct cmd_answer *a)
{
	struct report_path_options opts = {.limit = LIMIT_DEFAULT};
	struct report_path *p = NULL;
	if (!cmd_value_limit(c, &opts.limit))
		return CMD_USAGE;
	if (!run)
		return CMD_OK;
	if (!opts.limit && !cmd_given(c, "all"))
		opts.limit = 1;
	opts.from_ns = run->from_ns;
	opts.to_ns = run->to_ns;
	cmd_answer_set(c, a, report_path_build(run, &opts, &p, &c->err));
	if (a->as == CMD_AS_JSON)
		a->json = report_path_json(p, &opts);
	else if (a->as == CMD_AS_TEXT)
		report_path_text(&a->text, p, &opts, &a->style);
	report_path_free(p);
	return CMD_OK;
}
