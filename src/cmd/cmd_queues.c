/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_queues.c - `longpole queues`: who waits on what. */
#include "cmd/cmd.h"

enum { LIMIT_DEFAULT = 20, PAGES_DEFAULT = 3 };

static const struct cmd_option option[] = {
	{"name", 0, "PATTERN", NULL,
		"only queues whose name has PATTERN in it (or matches it, with * ? [; #2: what the "
		"report numbers so)"},
	{"histogram", 0, "[PATTERN]", NULL,
		"a page of histograms for each of these queues instead of a line"},
	{"limit", 'n', "N", NULL, "show N queues (default 20; with --histogram 3)"},
	{"all", 'a', NULL, NULL, "show every queue"},
};

const struct cmd_details cmd_details_queues = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Everything that is waited on is a queue: a mutex holds one token, a pipe holds "
		 "bytes. Queues stand in the order of how long they were waited for. Each has time "
		 "and number of waits for units and for space, mean latency from available to "
		 "used, mean residence of a unit, mean and largest number of units, throughput.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole queues server.lpt",
		"longpole queues --name='mutex *' --all server.lpt",
		"longpole queues --histogram='mutex *' server.lpt",
		"longpole queues --json server.lpt | jq '.result.queues[0]'"},
};

/* A page a queue. */
static void cmd_queues_histograms(struct cmd *c, struct report_run *run, const char *pattern,
	size_t limit, struct cmd_answer *a)
{
	struct report_histograms *h = NULL;
	cmd_answer_set(c, a, report_histograms_build(run, pattern, limit, &h, &c->err));
	if (a->as == CMD_AS_JSON)
		a->json = report_histograms_json(h);
	else if (a->as == CMD_AS_TEXT)
		report_histograms_text(&a->text, h, &a->style);
	report_histograms_free(h);
}

static void cmd_queues_table(struct cmd *c, struct report_run *run, const char *pattern,
	size_t limit, struct cmd_answer *a)
{
	struct report_queues *q = NULL;
	struct base_str name = {0};
	enum base_status s = cmd_pattern(c, run, "name", &name, &pattern);
	if (s == BASE_OK)
		s = report_queues_build(run, pattern, &q, &c->err);
	cmd_answer_set(c, a, s);
	base_str_fini(&name);
	if (a->as == CMD_AS_JSON)
		a->json = report_queues_json(q);
	else if (a->as == CMD_AS_TEXT)
		report_queues_text(&a->text, q, limit, &a->style);
	report_queues_free(q);
}

int cmd_section_queues(struct cmd *c, struct report_run *run, struct cmd_answer *a)
{
	const char *histogram = cmd_value(c, "histogram"), *pattern = cmd_value(c, "name");
	size_t limit = histogram ? PAGES_DEFAULT : LIMIT_DEFAULT;
	if (!cmd_value_limit(c, &limit))
		return CMD_USAGE;
	if (histogram && *histogram && pattern)
		return cmd_usage(c, "--name and --histogram=PATTERN: one of them says which");
	if (run && histogram)
		cmd_queues_histograms(c, run, *histogram ? histogram : pattern, limit, a);
	else if (run)
		cmd_queues_table(c, run, pattern, limit, a);
	return CMD_OK;
}
