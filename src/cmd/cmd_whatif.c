/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_whatif.c - `longpole whatif`: predict what changes would do. */
#include "cmd/ledger.h"

#include <string.h>

enum { FILES_MAX = 16, FILE_LIMIT_BYTES = 1 << 20 };

static const struct cmd_option option[] = {
	{"scenario", 'f', "FILE", "@file",
		"read scenarios: one edit a line, an empty line between two scenarios, # comments"},
	{"method", 0, "METHOD", "path replay both",
		"the longest path with edited weights; the run simulated again; default: both "
		"where "
		"they apply"},
	{"explain", 0, NULL, NULL,
		"each method's own answer, what replay models, what the intervals are made of"},
	{"self", 0, NULL, NULL, "a function is only what runs in it, not what it calls"},
	{"record-outcome", 0, "TIME", "@file",
		"note in the ledger that the changed program took TIME (as 1.5s), or as long as "
		"this "
		"trace of it"},
	{"ledger", 0, "FILE", "@file",
		"outcomes so far (default: longpole/ledger.jsonl in $XDG_STATE_HOME or "
		"~/.local/state)"},
};

const struct cmd_details cmd_details_whatif = {
	.usage = "[OPTIONS] [TRACE] [EDIT... [-- EDIT...]...]",
	.about = "Predicts the length of the critical path after changes that nobody has made yet. "
		 "Edits of states: #2=AMOUNT (what the report numbers so), scale STATE=AMOUNT "
		 "(-50%, +20%, x0.5), remove STATE, balance STATE (all ranks take the mean), elide "
		 "STATE. Of others: ignore-queue QUEUE, unbound-queue QUEUE, resize-queue "
		 "QUEUE=+N, add-processors +N, link-rate LINK=AMOUNT, link-latency "
		 "LINK=AMOUNT. STATE is a part of a state's name or of the place where it began; "
		 "where some have it as a word, only these count; with * ? [ it is a glob. Or it "
		 "is a function that was sampled, with all that it calls; then the prediction is "
		 "an estimate. '--' separates scenarios. Without an edit, every state of 1 % and "
		 "more is tried.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole whatif server.lpt",
		"longpole whatif server.lpt scale 'cache_mutex'=-50%",
		"longpole whatif server.lpt scale 'parse*'=-30% -- remove 'log_mutex'"},
};

static bool read_scenarios(
	struct cmd *c, struct report_scenarios *scenarios, size_t first, int *ret_exit)
{
	const char *file[FILES_MAX];
	size_t nr_files = cmd_values(c, "scenario", file, FILES_MAX);
	enum base_status s = report_scenarios_words(
		scenarios, c->operand + first, c->nr_operands - first, &c->err);
	for (size_t i = 0; s == BASE_OK && i < nr_files; i++) {
		char *text = cmd_read_file(c, file[i], FILE_LIMIT_BYTES);
		if (!text) {
			*ret_exit = cmd_exit_of(c->err.status);
			return false;
		}
		size_t before = scenarios->nr;
		s = report_scenarios_text(scenarios, text, file[i], &c->err);
		if (s == BASE_OK && scenarios->nr == before)
			s = base_fail(&c->err, BASE_ERR_USAGE, "%s: has no edit", file[i]);
		base_free(text);
	}
	if (s == BASE_OK)
		return true;
	*ret_exit = cmd_fail(c, s);
	return false;
}

static unsigned methods(const struct cmd *c)
{
	const char *method = cmd_value(c, "method");
	if (!method)
		return 0;
	return !strcmp(method, "path")     ? REPORT_METHOD_path
	       : !strcmp(method, "replay") ? REPORT_METHOD_replay
					   : REPORT_METHOD_path | REPORT_METHOD_replay;
}

static int try_scenarios(
	struct cmd *c, struct report_run *run, const struct report_scenarios *scenarios)
{
	struct report_whatif *w = NULL;
	struct cmd_answer a =
		cmd_answer_begin(c, report_whatif_build(run, scenarios, methods(c), &w, &c->err));
	struct report_ledger ledger = {0};
	if (w) {
		cmd_ledger_open(c, &ledger);
		report_ledger_widen(&ledger, w);
	}
	a.style.full = cmd_given(c, "explain");
	if (a.as == CMD_AS_JSON) {
		a.json = report_whatif_json(w);
	} else if (a.as == CMD_AS_TEXT) {
		report_whatif_text(&a.text, w, &a.style);
		report_ledger_text(&a.text, &ledger, w, &a.style);
	}
	report_ledger_fini(&ledger);
	int exit_status = cmd_answer_end(c, &a, run);
	if (exit_status == CMD_OK && cmd_given(c, "record-outcome"))
		exit_status = cmd_ledger_record(c, w);
	report_whatif_free(w);
	return exit_status;
}

static int try_all(struct cmd *c, struct report_run *run)
{
	struct report_options opts = {.nr_opportunities_max = REPORT_OPPORTUNITIES_MAX};
	struct report *r = NULL;
	struct cmd_answer a = cmd_answer_begin(c, report_build(run, &opts, &r, &c->err));
	if (a.as == CMD_AS_JSON)
		a.json = report_json(r);
	else if (a.as == CMD_AS_TEXT)
		report_opportunities_text(&a.text, r, &a.style);
	report_free(r);
	return cmd_answer_end(c, &a, run);
}

int cmd_run_whatif(struct cmd *c)
{
	struct report_run run;
	struct report_scenarios scenarios = {0};
	bool has_trace = c->nr_operands && !report_begins_edit(c->operand[0]) &&
			 strcmp(c->operand[0], "--") != 0;
	int exit_status = CMD_OK;
	scenarios.self = cmd_given(c, "self");
	if (!read_scenarios(c, &scenarios, has_trace, &exit_status))
		goto out;
	c->nr_operands = has_trace; /* the others are in `scenarios` */
	exit_status = cmd_open_operand(c, &run);
	if (exit_status == CMD_OK)
		exit_status = scenarios.nr ? try_scenarios(c, &run, &scenarios) : try_all(c, &run);
out:
	report_scenarios_fini(&scenarios);
	return exit_status;
}
