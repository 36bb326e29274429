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
	.usage = "[SECTION...] [OPTIONS] [TRACE]",
	.about = "Says in one sentence what to change, then what that would gain and how sure it "
		 "is. Below stand the parts of the critical path, what a fix of each would buy, "
		 "and what to be careful about. With sections, prints these instead, one after "
		 "another, with their options. A trace that is called as a section is ./NAME. "
		 "A directory of MPI ranks' traces is joined in DIR/merged.lpt first.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole report queues actors server.lpt", "longpole report --full server.lpt",
		"longpole report --json server.lpt | jq .result.opportunities",
		"longpole report --html=server.html server.lpt"},
};

int cmd_report_trace(struct cmd *c, const char *path)
{
	struct report_run run;
	bool all = cmd_given(c, "full") || cmd_given(c, "json");
	struct report_options opts = {
		.nr_opportunities_max = all ? REPORT_OPPORTUNITIES_MAX : 0,
		.nr_parts_max = all ? REPORT_PARTS_MAX : REPORT_PARTS_DEFAULT,
		.all_intervals = cmd_given(c, "json"),
	};
	struct report *r = NULL;
	int exit_status = cmd_open(c, path, &run);
	if (exit_status != CMD_OK)
		return exit_status;
	struct cmd_answer a = cmd_answer_begin(c, report_build(&run, &opts, &r, &c->err));
	a.style.full = cmd_given(c, "full");
	if (a.as == CMD_AS_JSON)
		a.json = report_json(r);
	else if (a.as == CMD_AS_TEXT)
		report_text(&a.text, r, &a.style);
	report_free(r);
	return cmd_answer_end(c, &a, &run);
}

int cmd_run_report(struct cmd *c)
{
	if (cmd_sections_mistyped(c))
		return CMD_USAGE;
	const char *path = cmd_trace_path(c), *html = cmd_value(c, "html");
	if (!path)
		return CMD_USAGE;
	if (html && (cmd_given(c, "json") || cmd_given(c, "full")))
		return cmd_usage(
			c, "--html writes a page, which has all of it: without --json, --full");
	if (cmd_given(c, "with") && !html)
		return cmd_usage(c, "--with is for --html");
	if (html)
		return cmd_html_trace(c, path, html);
	return cmd_is_packets(path) ? cmd_report_packets(c, path) : cmd_report_trace(c, path);
}
