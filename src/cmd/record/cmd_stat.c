/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_stat.c - `longpole stat`: counts by thread, process and phase. */
#include "cmd/record/stat.h"

#define LONGPOLE_DISABLE
#include "longpole/counter.h"

#include <string.h>

enum { LIMIT_DEFAULT = 20 };

static const struct cmd_option option[] = {
	{"events", 'e', "LIST", NULL,
		"events of the processor, by comma, at most 5; 'list' shows them (default "
		"cycles,instructions,branch-misses,cache-misses)"},
	{"limit", 'n', "N", NULL,
		"show the N threads that ran longest, and as many processes and phases (default "
		"20)"},
	{"all", 'a', NULL, NULL, "show every thread, process and phase"},
	{"kernel-time", 'k', NULL, NULL,
		"count system calls, and the time in them exactly, by BPF (for root; each call "
		"costs "
		"some 300 ns more)"},
	{"whole", 0, NULL, NULL, "the program as a whole, not by thread: without ptrace"},
	{"output", 'o', "FILE", "@file", "write the answer to FILE, not to standard error"},
};

const struct cmd_details cmd_details_stat = {
	.usage = "[OPTIONS] PROG [ARG...]",
	.about = "Runs PROG, unchanged, and says for each thread how long it ran, was ready and "
		 "had no processor, or slept. It counts switches, migrations and page faults, and "
		 "what the processor counts where that is possible. Phases that the program marks "
		 "(longpole_phase() of longpole/counter.h) are counted by thread. The answer goes "
		 "to standard error; the exit status is the program's, or 125, 126, 127.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole stat ./server --threads 8",
		"longpole stat --json -o counts.json make -j8",
		"longpole stat -e cycles,instructions ./solver"},
};

static bool is_of_processor(enum longpole_event event)
{
	return event >= LONGPOLE_CYCLES && event < LONGPOLE_CYCLES_OR_TICKS;
}

static int list_events(struct cmd *c)
{
	struct base_str text = {0};
	enum longpole_event event;
	for (unsigned i = 0; (event = longpole_event_at(i)) != 0; i++)
		if (is_of_processor(event))
			base_str_addf(&text, "%s\n", longpole_event_name(event));
	return cmd_write(c, &text);
}

/* "cycles,instructions" -> events. False: a message was printed. */
static bool parse_events(
	struct cmd *c, const char *list, uint16_t event[STAT_EVENTS_MAX], size_t *ret_nr)
{
	*ret_nr = 0;
	while (*list) {
		char name[40];
		size_t length = strcspn(list, ",");
		snprintf(name, sizeof name, "%.*s", (int)length, list);
		enum longpole_event found = longpole_event_find(name);
		if (!is_of_processor(found)) {
			cmd_usage(c,
				"--events: '%s' is no event of the processor; '-e list' shows "
				"them%s",
				name, found ? " (the others are always counted)" : "");
			return false;
		}
		if (*ret_nr == STAT_EVENTS_MAX) {
			cmd_usage(c, "--events: at most %d", STAT_EVENTS_MAX);
			return false;
		}
		event[(*ret_nr)++] = (uint16_t)found;
		list += length + (list[length] == ',');
	}
	return true;
}

static int cmd_stat_answer(struct cmd *c, const struct cmd_stat *stat)
{
	struct base_str text = {0};
	if (cmd_given(c, "json")) {
		cmd_add_json(&text, cmd_stat_json(stat));
	} else {
		cmd_stat_text(&text, stat);
		cmd_fold(c, &text);
	}
	return cmd_write_output(c, &text);
}

int cmd_run_stat(struct cmd *c)
{
	const char *list = cmd_value(c, "events");
	uint16_t event[STAT_EVENTS_MAX];
	struct stat_options options = {.argv = c->operand,
		.event = event,
		.kernel_time = cmd_given(c, "kernel-time"),
		.by_thread = !cmd_given(c, "whole")};
	size_t limit = LIMIT_DEFAULT;
	struct stat_result s;
	if (list && !strcmp(list, "list"))
		return list_events(c);
	if (!c->nr_operands) {
		cmd_usage(c, "no program given");
		return STAT_EXIT_OURS;
	}
	if (!parse_events(c, list ? list : "cycles,instructions,branch-misses,cache-misses", event,
		    &options.nr_events) ||
		!cmd_value_limit(c, &limit))
		return STAT_EXIT_OURS;
	if (options.kernel_time && (options.nr_events == STAT_EVENTS_MAX || !options.by_thread)) {
		cmd_usage(c,
			options.by_thread
				? "--kernel-time takes the place of an event: at most 4 in --events"
				: "--kernel-time is by thread: not with --whole");
		return STAT_EXIT_OURS;
	}
	enum base_status status = stat_run(&options, &s, &c->err);
	int exit_code = s.exit_code;
	if (status == BASE_OK) {
		const struct cmd_stat stat = {
			.s = &s, .options = &options, .program = c->operand[0], .limit = limit};
		c->answer_on_stderr = true; /* standard output is the program's */
		if (cmd_stat_answer(c, &stat) != CMD_OK && !exit_code)
			exit_code = STAT_EXIT_OURS;
	} else {
		cmd_fail(c, status);
	}
	stat_fini(&s);
	return exit_code;
}
