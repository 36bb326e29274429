/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff.c - `longpole diff`: several runs of several versions. */
#include "cmd/cmd.h"

#include "report/diff.h"

#include <string.h>

enum { BUDGETS_MAX = 32 };

static const struct cmd_option option[] = {
	{"label", 0, "NAME", NULL,
		"what the next version is called (default: its first file's name)"},
	{"fail-on", 0, "BUDGET", NULL,
		"exit with 1 when a quantity of the last version moved further than that from the "
		"first: elapsed=+5%, hold_mean=+10%, ..."},
	{"svg", 0, "FILE", "@file", "also draw the trends into FILE"},
	{"html", 0, "FILE", "@file", "also write a page into FILE: tables and trends"},
	{"junit", 0, "FILE", "@file", "also write the budgets into FILE as JUnit tests, for CI"},
	{"markdown", 0, NULL, NULL, "the answer in Markdown, for a pull request"},
	{"all", 'a', NULL, NULL, "also quantities of single locks that did not move"},
};

const struct cmd_details cmd_details_diff = {
	.usage = "[OPTIONS] TRACE TRACE\n[OPTIONS] TRACE... -- TRACE... [-- TRACE...]...",
	.about = "Compares versions of a program, each recorded several times: how long runs are, "
		 "how "
		 "many locks there are and how often they are taken, how long they are waited for "
		 "and "
		 "held, each lock by itself, and each state of the critical path. Medians with 95 "
		 "% intervals; a change is called "
		 "one "
		 "when chance would not make it.",
	.gate = "a budget of --fail-on was exceeded",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole diff old.lpt new.lpt", "longpole diff old-*.lpt -- new-*.lpt",
		"longpole diff --label=v1 --label=v2 --label=v3 --svg=trend.svg v1-*.lpt -- "
		"v2-*.lpt -- "
		"v3-*.lpt",
		"longpole diff --fail-on=elapsed=+5% base-*.lpt -- change-*.lpt"},
};

static const char *label_of(struct cmd *c, size_t version, const char *path, char buf[256])
{
	const char *given[REPORT_DIFF_VERSIONS_MAX];
	size_t nr = cmd_values(c, "label", given, BASE_COUNT(given));
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');
	size_t length = dot && dot != name ? (size_t)(dot - name) : strlen(name);
	if (version < nr)
		return given[version];
	snprintf(buf, 256, "%.*s", (int)(length < 255 ? length : 255), name);
	return buf;
}

static int cmd_diff_add_run(struct cmd *c, struct report_diff *d, const char *path)
{
	struct report_run run;
	int exit_status = cmd_open_threads(c, path, &run);
	if (exit_status != CMD_OK)
		return exit_status;
	enum base_status s = report_diff_run(d, &run, &c->err);
	if (s != BASE_OK)
		exit_status = cmd_fail(c, base_cause(&c->err, s, "while analysing %s", path));
	cmd_close(c, &run);
	return exit_status;
}

/* Two traces and nothing between them are two versions. */
static bool cmd_diff_is_pair(const struct cmd *c)
{
	return c->nr_operands == 2 && strcmp(c->operand[0], "--") != 0 &&
	       strcmp(c->operand[1], "--") != 0;
}

static int cmd_diff_read_all(struct cmd *c, struct report_diff *d)
{
	char buf[256];
	bool begins = true, is_pair = cmd_diff_is_pair(c);
	for (size_t i = 0; i < c->nr_operands; i++) {
		if (!strcmp(c->operand[i], "--")) {
			if (begins)
				return cmd_usage(c, "a version without a trace");
			begins = true;
			continue;
		}
		enum base_status s =
			begins ? report_diff_version(d,
					 label_of(c, d->nr_versions, c->operand[i], buf), &c->err)
			       : BASE_OK;
		if (s != BASE_OK)
			return cmd_fail(c, s);
		begins = is_pair && !i;
		int exit_status = cmd_diff_add_run(c, d, c->operand[i]);
		if (exit_status != CMD_OK)
			return exit_status;
	}
	if (d->nr_versions < 2 || begins)
		return cmd_usage(c,
			"at least two versions, as: longpole diff old.lpt new.lpt; of several "
			"runs: longpole diff old-*.lpt -- new-*.lpt");
	enum base_status s = report_diff_finish(d, &c->err);
	return s == BASE_OK ? CMD_OK : cmd_fail(c, s);
}

struct gates {
	struct report_diff_gate gate[BUDGETS_MAX];
	struct base_str found[BUDGETS_MAX];
	size_t nr;
};

static int cmd_diff_judge(struct cmd *c, const struct report_diff *d, struct gates *g)
{
	const char *budget[BUDGETS_MAX];
	g->nr = cmd_values(c, "fail-on", budget, BASE_COUNT(budget));
	for (size_t i = 0; i < g->nr; i++) {
		enum base_status s = report_diff_budget(d, budget[i], &g->gate[i].broken, &c->err);
		if (s != BASE_OK)
			return cmd_fail(c, s);
		report_diff_found(&g->found[i], d, budget[i]);
		g->gate[i].budget = budget[i];
		g->gate[i].unknown = c->is_partial;
		g->gate[i].found = base_str_text(&g->found[i]);
	}
	return CMD_OK;
}

static void svg(struct base_str *out, const struct report_diff *d,
	const struct report_diff_gate *gate, size_t nr_gates)
{
	(void)gate;
	(void)nr_gates;
	report_diff_svg(out, d);
}

static int cmd_diff_write_files(struct cmd *c, const struct report_diff *d, const struct gates *g)
{
	static const struct {
		const char *option;
		void (*render)(struct base_str *out, const struct report_diff *d,
			const struct report_diff_gate *gate, size_t nr_gates);
	} file[] = {{"svg", svg}, {"html", report_diff_page}, {"junit", report_diff_junit}};
	int exit_status = CMD_OK;
	for (size_t i = 0; exit_status == CMD_OK && i < BASE_COUNT(file); i++) {
		struct base_str text = {0};
		if (!cmd_given(c, file[i].option))
			continue;
		file[i].render(&text, d, g->gate, g->nr);
		exit_status = cmd_write_file(c, &text, cmd_value(c, file[i].option));
		base_str_fini(&text);
	}
	return exit_status;
}

static int cmd_diff_answer(struct cmd *c, const struct report_diff *d)
{
	struct report_style st = cmd_style(c);
	struct base_str text = {0};
	if (cmd_given(c, "json"))
		return cmd_write_json(c, report_diff_json(d));
	if (cmd_given(c, "markdown"))
		report_diff_markdown(&text, d, cmd_given(c, "all"));
	else
		report_diff_text(&text, d, cmd_given(c, "all"), &st);
	return cmd_write(c, &text);
}

int cmd_run_diff(struct cmd *c)
{
	struct gates g = {0};
	if (cmd_given(c, "json") && cmd_given(c, "markdown"))
		return cmd_usage(c, "--json or --markdown, not both");
	struct report_diff *d = report_diff_new();
	if (!d)
		return cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "out of memory"));
	int exit_status = cmd_diff_read_all(c, d);
	if (exit_status == CMD_OK)
		exit_status = cmd_diff_judge(c, d, &g);
	if (exit_status == CMD_OK)
		exit_status = cmd_diff_write_files(c, d, &g);
	if (exit_status == CMD_OK)
		exit_status = cmd_diff_answer(c, d);
	/* After the answer: what is over its budget, on standard error. */
	for (size_t i = 0; exit_status != CMD_USAGE && i < g.nr; i++) {
		if (g.gate[i].broken && (exit_status == CMD_OK || exit_status == CMD_GATE)) {
			cmd_note(c, "over the budget: %s (%s)", g.gate[i].budget, g.gate[i].found);
			exit_status = CMD_GATE;
		}
	}
	if (g.nr && (exit_status == CMD_OK || exit_status == CMD_GATE) && c->is_partial)
		exit_status = cmd_gate_partial(c, "--fail-on");
	for (size_t i = 0; i < g.nr; i++)
		base_str_fini(&g.found[i]);
	report_diff_free(d);
	return exit_status;
}
