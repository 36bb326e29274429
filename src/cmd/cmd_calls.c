/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_calls.c - `longpole calls`: what the program does in libc, libm and pthreads. */
#include "cmd/record/record.h"

#include "report/calls.h"

#include <string.h>

enum { LIMIT_DEFAULT = 20 };

static const struct cmd_option option[] = {
	{"site", 0, NULL, NULL, "under each function its callers, and inside which other function"},
	{"limit", 'n', "N", NULL, "show N functions (default 20)"},
	{"all", 'a', NULL, NULL, "show every function and place"},
	{"kernel-time", 'k', NULL, NULL,
		"with -- PROG: time inside of system calls, by function (needs root; some 300 ns a "
		"system call)"},
	{"events", 'e', "LIST", NULL,
		"with -- PROG: what the processor counts in calls, in user space and the kernel; "
		"at most 4, by comma; 'misses': cycles, instructions, cache-misses and "
		"L1-icache-load-misses; 'list' shows them"},
	{"output", 'o', "FILE", "@file",
		"with -- PROG: the trace to write (default: longpole-PROG.lpt)"},
};

const struct cmd_details cmd_details_calls = {
	.usage = "[OPTIONS] [TRACE | -- PROG [ARG...]]",
	.about = "Runs PROG and counts its calls of libc, libm and pthreads. For each category "
		 "and function it says how often, how long, with how much processor time, for "
		 "how many bytes, and from where. Time is inclusive of what a function calls. "
		 "The answer goes to standard error, PROG's exit status is passed on; TRACE is "
		 "that of an earlier run.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.nr_of_program = 3,
	.example = {"longpole calls -- ./server --threads 8",
		"longpole calls --events=misses -- ./server --threads 8",
		"longpole calls --site longpole-server.lpt",
		"longpole calls --json longpole-server.lpt | jq '.result.categories.io'"},
};

int cmd_section_calls(struct cmd *c, struct report_run *run, struct cmd_answer *a)
{
	struct report_calls *calls = NULL;
	struct report_calls_view view = {.limit = LIMIT_DEFAULT, .places = cmd_given(c, "site")};
	if (!cmd_value_limit(c, &view.limit))
		return CMD_USAGE;
	if (!run)
		return CMD_OK;
	cmd_answer_set(c, a, report_calls_build(run, &calls, &c->err));
	if (a->as == CMD_AS_JSON)
		a->json = report_calls_json(calls);
	else if (a->as == CMD_AS_TEXT)
		report_calls_text(&a->text, calls, &view, &a->style);
	report_calls_free(calls);
	return CMD_OK;
}

int cmd_run_calls(struct cmd *c)
{
	struct session_options o = session_options_default();
	struct cmd_recorded recorded;
	struct report_run run;
	struct cmd_answer a;
	const char *events = cmd_value(c, "events");
	if (events && !strcmp(events, "list"))
		return cmd_hardware_list(c);
	if (cmd_section_calls(c, NULL, NULL) != CMD_OK ||
		!cmd_hardware_parse(c, events, &o.hardware))
		return CMD_USAGE;
	cmd_record_mode(&o, SESSION_LOCKS_count);
	o.measure_floor = false;
	o.calls = true;
	o.kernel_time = cmd_given(c, "kernel-time");
	int exit_status = cmd_open_or_record(c, &o, &recorded, &run);
	if (!recorded.has_trace)
		return exit_status;
	cmd_section_calls(c, &run, &a);
	return cmd_recorded_exit(&recorded, cmd_answer_end(c, &a, &run));
}
