/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_poles.c - `longpole poles`: the poles one after another, drag and slack of the states. */
#include "cmd/cmd.h"

enum {
	POLES_DEFAULT = 5,
	STATES_DEFAULT = 20,
	POLES_MAX = 100,
	STATES_MAX = 10000,
	TOLERANCE_DEFAULT = 1
};

static const struct cmd_option option[] = {
	{"limit", 'n', "N", NULL, "show N poles, a pass over the trace each (default 5)"},
	{"states", 's', "N", NULL, "show drag and slack of N states (default 20)"},
	{"tolerance", 0, "PERCENT", NULL,
		"slack ends where the run is so much longer (0 to 100; default 1)"},
};

const struct cmd_details cmd_details_poles = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Says what holds the program back, what would hold it back without that, and so "
		 "on. No pole has the longest state of one before it. Then it says for each "
		 "state how much shorter the run is without it (drag), and how much longer it "
		 "may take before the run does (slack).",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole poles server.lpt", "longpole poles --limit=10 --from=1s server.lpt",
		"longpole poles --json server.lpt | jq '.result.poles[].state'"},
};

int cmd_section_poles(struct cmd *c, struct report_run *run, struct cmd_answer *a)
{
	struct report_poles *p = NULL;
	uint64_t poles = POLES_DEFAULT, states = STATES_DEFAULT, percent = TOLERANCE_DEFAULT;
	if (!cmd_value_count(c, "limit", &poles) || !cmd_value_count(c, "states", &states) ||
		!cmd_value_count(c, "tolerance", &percent))
		return CMD_USAGE;
	if (percent > 100)
		return cmd_usage(c, "--tolerance: 0 to 100 per cent");
	if (!run)
		return CMD_OK;
	struct report_poles_options opts = {
		.nr_poles = (size_t)(poles < POLES_MAX ? poles : POLES_MAX),
		.nr_states = (size_t)(states < STATES_MAX ? states : STATES_MAX),
		.tolerance = (double)percent / 100,
	};
	cmd_answer_set(c, a, report_poles_build(run, &opts, &p, &c->err));
	if (a->as == CMD_AS_JSON)
		a->json = report_poles_json(p);
	else if (a->as == CMD_AS_TEXT)
		report_poles_text(&a->text, p, &a->style);
	report_poles_free(p);
	return CMD_OK;
}
