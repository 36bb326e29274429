/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_coach.c - `longpole coach`: what to annotate next, and what is annotated wrongly. */
#include "cmd/cmd.h"

enum { LIMIT_DEFAULT = 20 };

static const struct cmd_option option[] = {
	{"limit", 'n', "N", NULL, "show N of them (default 20)"},
	{"all", 'a', NULL, NULL, "show all"},
};

const struct cmd_details cmd_details_coach = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Checks how annotations (longpole/annotate.h) are used, and shows each misuse "
		 "once: where, how often, and what to do. Then come the waits that no recorded "
		 "event explains, those with most of the critical path first, and the actors "
		 "that stay active where all should wait.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole coach server.lpt", "longpole coach -n 3",
		"longpole coach --json server.lpt | jq '.result.advice[0]'"},
};

int cmd_section_coach(struct cmd *c, struct report_run *run, struct cmd_answer *a)
{
	struct report_coach *coach = NULL;
	size_t limit = LIMIT_DEFAULT;
	if (!cmd_value_limit(c, &limit))
		return CMD_USAGE;
	if (!run)
		return CMD_OK;
	cmd_answer_set(c, a, report_coach_build(run, &coach, &c->err));
	if (a->as == CMD_AS_JSON)
		a->json = report_coach_json(coach);
	else if (a->as == CMD_AS_TEXT)
		report_coach_text(&a->text, coach, limit, &a->style);
	report_coach_free(coach);
	return CMD_OK;
}
