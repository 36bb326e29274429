/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_report.c - `longpole report`: the answer. */
#include "cmd/cmd.h"

static const struct cmd_option option[] = {
	{"full", 0, NULL, NULL, "every state and fix of 1 % of the path and more"},
	{"html", 0, "FILE", "@file",
		"write it as a page into FILE, with timeline, what-if and all"},
	{"with", 0, "FILE", "@file",
		"show FILE in it, too: what ciat or deadlock said with --json"},
};

const struct cmd_details cmd_details_report = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Says in one sentence what the program's time went into, then what a fix of each "
		 "state "
		 "would buy and until when, the states of the critical path, and what to be "
		 "careful about.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole report", "longpole report --full server.lpt",
		"longpole report --json server.lpt | jq .result.opportunities",
		"longpole report --html=server.html server.lpt"},
};

int cmd_report_trace(struct cmd *c, const char *path, bool full, bool json)
{
	struct report_run run;
	struct report_options opts = {
		.size = sizeof opts,
		.nr_opportunities_max =
			full || json ? REPORT_OPPORTUNITIES_MAX : REPORT_OPPORTUNITIES_DEFAULT,
	};
	struct report *r = NULL;
	int exit_status = cmd_open(c, path, &run);
	if (exit_status != CMD_OK)
		return exit_status;
	enum base_status s = report_build(&run, &opts, &r, &c->err);
	if (s != BASE_OK) {
		exit_status = cmd_fail(c, base_cause(&c->err, s, "while analysing %s", path));
	} else if (json) {
		exit_status = cmd_write_json(c, report_json(r));
	} else {
		struct report_style st = cmd_style(c);
		struct base_str text = {0};
		st.full = full;
		report_text(&text, r, &st);
		exit_status = cmd_write(c, &text);
	}
	report_free(r);
	cmd_close(c, &run);
	return exit_status;
}

int cmd_run_report(struct cmd *c)
{
	struct cmd_trace_name name;
	if (c->nr_operands > 1)
		return cmd_usage(c, "one trace at a time");
	const char *path = cmd_trace_path(c, &name);
	if (path && cmd_given(c, "html") && (cmd_given(c, "json") || cmd_given(c, "full")))
		return cmd_usage(
			c, "--html writes a page, which has all of it: without --json, --full");
	if (path && cmd_given(c, "with") && !cmd_given(c, "html"))
		return cmd_usage(c, "--with is for --html");
	if (path && !cmd_given(c, "html") && cmd_is_packets(path))
		return cmd_report_packets(c, path);
	if (path && cmd_given(c, "html"))
		return cmd_html_trace(c, path, cmd_value(c, "html"));
	return path ? cmd_report_trace(c, path, cmd_given(c, "full"), cmd_given(c, "json"))
		    : CMD_USAGE;
}
