/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_actors.c - `longpole actors`: what each thread and state machine does. */
#include "cmd/cmd.h"

enum { LIMIT_DEFAULT = 20, STATES_DEFAULT = 5 };

static const struct cmd_option option[] = {
	{"actor", 0, "PATTERN", NULL,
		"only actors whose name or group has PATTERN in it (or matches it, with * ? [)"},
	{"groups", 'g', NULL, NULL, "one entry for all threads of one start routine"},
	{"limit", 'n', "N", NULL, "show N actors (default 20)"},
	{"states", 's', "N", NULL, "show N states of each (default 5)"},
	{"all", 'a', NULL, NULL, "show every actor and every state"},
};

const struct cmd_details cmd_details_actors = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Lists threads and annotated state machines, most critical first. Of each it says "
		 "how long it was active, waited, or was ready while another had the processor, "
		 "and who that was. Below are its states, with time, visits, share of the critical "
		 "path and the functions that samples found it in.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole actors server.lpt",
		"longpole actors --actor=worker --states=10 server.lpt",
		"longpole actors --json server.lpt | jq '.result.actors[0].processor_had_by'"},
};

int cmd_section_actors(struct cmd *c, struct report_run *run, struct cmd_answer *a)
{
	struct report_actors *actors = NULL;
	uint64_t limit = LIMIT_DEFAULT, states = STATES_DEFAULT;
	if (!cmd_value_count(c, "limit", &limit) || !cmd_value_count(c, "states", &states))
		return CMD_USAGE;
	if (!run)
		return CMD_OK;
	bool all = cmd_given(c, "all");
	struct report_actors_options opts = {
		.pattern = cmd_value(c, "actor"),
		.groups = cmd_given(c, "groups"),
		.limit = all ? 0 : (size_t)limit,
		.nr_states = all ? 0 : (size_t)states,
	};
	cmd_answer_set(c, a, report_actors_build(run, &opts, &actors, &c->err));
	if (a->as == CMD_AS_JSON)
		a->json = report_actors_json(actors);
	else if (a->as == CMD_AS_TEXT)
		report_actors_text(&a->text, actors, &opts, &a->style);
	report_actors_free(actors);
	return CMD_OK;
}
