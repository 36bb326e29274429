/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_calls.c - `longpole calls`: what the program does in libc, libm and pthreads. */
#include "cmd/record.h"

#include "report/calls.h"

#include <string.h>

enum { LIMIT_DEFAULT = 20 };

static const struct cmd_option option[] = {
	{"site", 0, NULL, NULL, "under each function its callers, and inside which other function"},
	{"kernel-time", 'k', NULL, NULL,
		"with -- PROG: time inside of system calls, by function (needs root; some 300 ns a "
		"system call)"},
	{"output", 'o', "FILE", "@file",
		"with -- PROG: the trace to write (default: longpole-PROG.lpt)"},
	{"limit", 'n', "N", NULL, "show N functions (default 20)"},
	{"all", 'a', NULL, NULL, "show every function and place"},
};

const struct cmd_details cmd_details_calls = {
	.usage = "[OPTIONS] [TRACE | -- PROG [ARG...]]",
	.about = "Runs PROG and counts its calls of libc, libm and pthreads: by category and "
		 "function how "
		 "often, how long, how much processor time, how many bytes, from where. Time is "
		 "inclusive of what a function calls. The answer goes to standard error, PROG's "
		 "exit "
		 "status is passed on; TRACE is that of an earlier run.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole calls -- ./server --threads 8",
		"longpole calls --site longpole-server.lpt",
		"longpole calls --json longpole-server.lpt | jq '.result.categories.io'"},
};

static int answer(struct cmd *c, const struct report_run *run, uint64_t limit)
{
	struct report_calls *calls = NULL;
	struct report_calls_view view = {
		.limit = cmd_given(c, "all") ? 0 : (size_t)limit, .places = cmd_given(c, "site")};
	enum base_status s = report_calls_build(run, &calls, &c->err);
	int exit_status;
	if (s != BASE_OK) {
		exit_status =
			cmd_fail(c, base_cause(&c->err, s, "while analysing %s", run->trace_path));
	} else if (cmd_given(c, "json")) {
		exit_status = cmd_write_json(c, report_calls_json(calls));
	} else {
		struct report_style st = cmd_style(c);
		struct base_str text = {0};
		report_calls_text(&text, calls, &view, &st);
		exit_status = cmd_write(c, &text);
	}
	report_calls_free(calls);
	return exit_status;
}

int cmd_run_calls(struct cmd *c)
{
	struct record_options o = record_options_default();
	struct cmd_recorded recorded;
	struct report_run run;
	uint64_t limit = LIMIT_DEFAULT;
	if (!cmd_value_count(c, "limit", &limit))
		return CMD_USAGE;
	cmd_record_mode(&o, RECORD_LOCKS_count);
	o.measure_floor = false;
	o.calls = true;
	o.kernel_time = cmd_given(c, "kernel-time");
	int exit_status = cmd_open_or_record(c, &o, &recorded, &run);
	if (!recorded.has_trace)
		return exit_status;
	exit_status = answer(c, &run, limit);
	cmd_close(c, &run);
	return cmd_recorded_exit(&recorded, exit_status);
}
