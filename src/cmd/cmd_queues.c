/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_queues.c - `longpole queues`: who waits on what. */
#include "cmd/cmd.h"

enum { LIMIT_DEFAULT = 20 };

static const struct cmd_option option[] = {
	{"name", 0, "PATTERN", NULL,
		"only queues whose name has PATTERN in it (or matches it, with * ? [)"},
	{"limit", 'n', "N", NULL, "show N queues (default 20)"},
	{"all", 'a', NULL, NULL, "show every queue"},
};

const struct cmd_details cmd_details_queues = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Everything that is waited on is a queue: a mutex holds one token, a pipe holds "
		 "bytes. "
		 "For each, most waited for first: time and number of waits for units and for "
		 "space, mean "
		 "latency from available to used, mean residence of a unit, mean and largest "
		 "number of "
		 "units, throughput.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole queues server.lpt",
		"longpole queues --name='mutex *' --all server.lpt",
		"longpole queues --json server.lpt | jq '.result.queues[0]'"},
};

int cmd_run_queues(struct cmd *c)
{
	struct cmd_trace_name name;
	struct report_run run;
	struct report_queues *q = NULL;
	uint64_t limit = LIMIT_DEFAULT;
	if (!cmd_value_count(c, "limit", &limit))
		return CMD_USAGE;
	if (c->nr_operands > 1)
		return cmd_usage(c, "one trace at a time");
	const char *path = cmd_trace_path(c, &name);
	if (!path)
		return CMD_USAGE;
	int exit_status = cmd_open(c, path, &run);
	if (exit_status != CMD_OK)
		return exit_status;
	enum base_status s = report_queues_build(&run, cmd_value(c, "name"), &q, &c->err);
	if (s != BASE_OK) {
		exit_status = cmd_fail(c, base_cause(&c->err, s, "while analysing %s", path));
	} else if (cmd_given(c, "json")) {
		exit_status = cmd_write_json(c, report_queues_json(q));
	} else {
		struct report_style st = cmd_style(c);
		struct base_str text = {0};
		report_queues_text(&text, q, cmd_given(c, "all") ? 0 : (size_t)limit, &st);
		exit_status = cmd_write(c, &text);
	}
	report_queues_free(q);
	cmd_close(c, &run);
	return exit_status;
}
