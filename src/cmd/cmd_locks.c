/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_locks.c - `longpole locks`: how the program uses its locks, and what each costs the run. */
#include "cmd/record/record.h"

#include "report/locks/locks.h"

#include <string.h>

enum { LIMIT_DEFAULT = 15, GAINS = 8 };

#define X(name, text) #name " "
#define SORTS         REPORT_LOCK_SORTS(X)
#define RECORD_MODES  SESSION_LOCK_MODES(X)
static const struct cmd_option option[] = {
	{"name", 0, "PATTERN", NULL,
		"only locks whose name has PATTERN in it (or matches it, with * ? [; #2: what the "
		"report numbers so)"},
	{"sort", 0, "KEY", SORTS,
		"by that, most first; gain is the speed when held half as long (default path)"},
	{"site", 0, NULL, NULL, "under each lock the places in the code that took it"},
	{"threads", 0, NULL, NULL, "also a table of the threads"},
	{"histogram", 0, NULL, NULL,
		"also how holds and waits are distributed, by dynamic and by static lock"},
	{"no-replay", 0, NULL, NULL,
		"predict by the longest path alone, without simulating the run again"},
	{"limit", 'n', "N", NULL, "show N locks (default 15)"},
	{"all", 'a', NULL, NULL, "show every lock, place and thread"},
	{"mode", 0, "MODE", RECORD_MODES,
		"with -- PROG: sampled (default) and count are cheap, holds times each hold, "
		"stamps "
		"and full know more"},
	{"events", 'e', "LIST", NULL,
		"with -- PROG: what the processor counts while mutexes are taken and held, in user "
		"space and the kernel; as longpole calls"},
	{"no-heap", 0, NULL, NULL,
		"with -- PROG: do not note allocations, after which locks in allocated memory are "
		"named"},
	{"output", 'o', "FILE", "@file",
		"with -- PROG: the trace to write (default: longpole-PROG.lpt)"},
};
#undef X

const struct cmd_details cmd_details_locks = {
	.usage = "[OPTIONS] [TRACE | -- PROG [ARG...]]",
	.about = "Says of each lock how often it was taken, how often another had it, how long "
		 "threads waited for it and held it, and how many waited at once. Then come its "
		 "longest convoy (acquisitions in a row that each had to wait) and its share of "
		 "the critical path. The last number is how fast the run would be were it held "
		 "half as long. With -- PROG, records PROG first, and answers on standard error; "
		 "its exit status is passed on.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.nr_of_program = 4,
	.example = {"longpole locks server.lpt", "longpole locks -- ./server --threads 8",
		"longpole locks --histogram --sort=hold server.lpt",
		"longpole locks --json server.lpt | jq '.result.locks[0]'"},
};

static enum report_lock_sort sort_of(const char *text)
{
	static const char *const name[] = {
#define X(name, text) #name,
		REPORT_LOCK_SORTS(X)
#undef X
	};
	for (size_t i = 0; text && i < BASE_COUNT(name); i++)
		if (!strcmp(text, name[i]))
			return (enum report_lock_sort)i;
	return REPORT_LOCK_SORT_path;
}

int cmd_section_locks(struct cmd *c, struct report_run *run, struct cmd_answer *a)
{
	struct report_locks *l = NULL;
	struct report_locks_options opts = {.size = sizeof opts,
		.sort = sort_of(cmd_value(c, "sort")),
		.nr_gains_max = GAINS,
		.by_path_only = cmd_given(c, "no-replay")};
	struct report_locks_view view = {.limit = LIMIT_DEFAULT,
		.sites = cmd_given(c, "site"),
		.threads = cmd_given(c, "threads"),
		.histograms = cmd_given(c, "histogram")};
	if (!cmd_value_limit(c, &view.limit))
		return CMD_USAGE;
	if (!run)
		return CMD_OK;
	struct base_str name = {0};
	enum base_status s = cmd_pattern(c, run, "name", &name, &opts.pattern);
	if (s == BASE_OK)
		s = report_locks_build(run, &opts, &l, &c->err);
	cmd_answer_set(c, a, s);
	base_str_fini(&name);
	if (a->as == CMD_AS_JSON)
		a->json = report_locks_json(l);
	else if (a->as == CMD_AS_TEXT)
		report_locks_text(&a->text, l, &view, &a->style);
	report_locks_free(l);
	return CMD_OK;
}

int cmd_run_locks(struct cmd *c)
{
	const char *mode = cmd_value(c, "mode");
	struct session_options o = session_options_default();
	struct cmd_recorded recorded;
	struct report_run run;
	struct cmd_answer a;
	const char *events = cmd_value(c, "events");
	if (events && !strcmp(events, "list"))
		return cmd_hardware_list(c);
	if (cmd_section_locks(c, NULL, NULL) != CMD_OK ||
		!cmd_hardware_parse(c, events, &o.hardware))
		return CMD_USAGE;
	if (events && mode && strcmp(mode, "sampled") != 0)
		return cmd_usage(c, "--events are counted with --mode=sampled");
	cmd_record_mode(&o, mode ? cmd_record_locks(mode) : SESSION_LOCKS_sampled);
	o.heap = !cmd_given(c, "no-heap");
	int exit_status = cmd_open_or_record(c, &o, &recorded, &run);
	if (!recorded.has_trace)
		return exit_status;
	cmd_section_locks(c, &run, &a);
	return cmd_recorded_exit(&recorded, cmd_answer_end(c, &a, &run));
}
