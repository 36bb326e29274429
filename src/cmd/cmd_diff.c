/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff.c - `longpole diff`: several runs of several versions. */
#include "cmd/cmd.h"

#include "report/diff.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { BUDGETS_MAX = 32 };

static const struct cmd_option option[] = {
	{"label", 0, "NAME", NULL,
		"what the next version is called (default: its first file's or directory's name)"},
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
	.about = "Compares versions of a program, each recorded several times (a directory "
		 "stands for its *.lpt files). It compares how long runs are, how many locks "
		 "there are, how often they are taken, and how long they are waited for and "
		 "held. Each lock and each state of the critical path is compared by itself. "
		 "Medians have 95 % intervals; a change is marked when chance alone would hardly "
		 "make it.",
	.gate = "a budget of --fail-on was exceeded",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole diff old.lpt new.lpt", "longpole diff old-*.lpt -- new-*.lpt",
		"longpole diff --label=v1 --label=v2 --label=v3 --svg=trend.svg v1-*.lpt -- "
		"v2-*.lpt -- "
		"v3-*.lpt",
		"longpole diff --fail-on=elapsed=+5% base-*.lpt -- change-*.lpt"},
};

/* ---- which files ----------------------------------------------------------------------------- */

/* A run: its trace, which version it is of, and where the user named it: itself, or its directory. */
struct diff_file {
	char *path;
	const char *operand;
	size_t version;
};
struct diff_files {
	struct diff_file *file;
	size_t nr, capacity, nr_versions;
};

static void diff_files_fini(struct diff_files *f)
{
	for (size_t i = 0; i < f->nr; i++)
		base_free(f->file[i].path);
	base_free(f->file);
}

/* "DIRECTORY/NAME", or NAME alone. */
static enum base_status diff_files_add(
	struct diff_files *f, const char *operand, const char *name, struct base_err *err)
{
	struct base_str path = {0};
	if (base_grow(&f->file, &f->capacity, f->nr + 1, sizeof *f->file) != BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory");
	base_str_addf(&path, "%s%s%s", operand, name ? "/" : "", name ? name : "");
	if (path.failed)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory");
	f->file[f->nr++] = (struct diff_file){path.buf, operand, f->nr_versions};
	return BASE_OK;
}

static int diff_files_by_path(const void *a, const void *b)
{
	return strcmp(((const struct diff_file *)a)->path, ((const struct diff_file *)b)->path);
}

/* The *.lpt files of a directory, by name: runs of one version. */
static enum base_status diff_files_add_directory(
	struct diff_files *f, DIR *dir, const char *operand, struct base_err *err)
{
	const struct dirent *e;
	size_t before = f->nr;
	enum base_status s = BASE_OK;
	while (s == BASE_OK && (e = readdir(dir))) {
		size_t length = strlen(e->d_name);
		if (*e->d_name != '.' && length > 4 && !strcmp(e->d_name + length - 4, ".lpt"))
			s = diff_files_add(f, operand, e->d_name, err);
	}
	if (s == BASE_OK && f->nr == before)
		s = base_fail(err, BASE_ERR_USAGE, "%s: a directory without a *.lpt file", operand);
	if (f->nr > before)
		qsort(f->file + before, f->nr - before, sizeof *f->file, diff_files_by_path);
	return s;
}

/* Two operands and nothing between them are two versions. */
static bool cmd_diff_is_pair(const struct cmd *c)
{
	return c->nr_operands == 2 && strcmp(c->operand[0], "--") != 0 &&
	       strcmp(c->operand[1], "--") != 0;
}

static int diff_files_list(struct cmd *c, struct diff_files *f)
{
	bool begins = true, is_pair = cmd_diff_is_pair(c);
	for (size_t i = 0; i < c->nr_operands; i++) {
		if (!strcmp(c->operand[i], "--")) {
			if (begins)
				return cmd_usage(c, "a version without a trace");
			begins = true;
			f->nr_versions++;
			continue;
		}
		f->nr_versions += is_pair && i;
		DIR *dir = opendir(c->operand[i]);
		enum base_status s = dir ? diff_files_add_directory(f, dir, c->operand[i], &c->err)
					 : diff_files_add(f, c->operand[i], NULL, &c->err);
		if (dir)
			closedir(dir);
		if (s != BASE_OK)
			return cmd_fail(c, s);
		begins = false;
	}
	f->nr_versions++;
	if (f->nr_versions < 2 || begins)
		return cmd_usage(c,
			"two versions are needed: longpole diff old.lpt new.lpt; with several runs "
			"of each: longpole diff old-*.lpt -- new-*.lpt");
	return CMD_OK;
}

/* ---- what they are called -------------------------------------------------------------------- */

/* The `back`-th name of a path from its end, 0 the last one; its length in *length. Before the first comes ".". */
static const char *diff_label_name(const char *path, unsigned back, size_t *length)
{
	const char *end = path + strlen(path);
	for (;;) {
		while (end > path && end[-1] == '/')
			end--;
		const char *begin = end;
		while (begin > path && begin[-1] != '/')
			begin--;
		*length = (size_t)(end - begin);
		if (!*length) {
			*length = 1;
			return ".";
		}
		if (!back--)
			return begin;
		end = begin;
	}
}

static bool diff_label_same(const char *a, const char *b, unsigned back)
{
	size_t la, lb;
	const char *na = diff_label_name(a, back, &la), *nb = diff_label_name(b, back, &lb);
	return la == lb && !strncmp(na, nb, la);
}

static bool diff_label_unlike_others(
	const struct diff_files *f, const struct diff_file *x, unsigned back)
{
	for (size_t i = 0; i < f->nr; i++) {
		const struct diff_file *y = &f->file[i];
		bool first = !i || f->file[i - 1].version != y->version;
		if (first && y->version != x->version &&
			diff_label_same(x->operand, y->operand, back))
			return false;
	}
	return true;
}

/* The name of the version that begins with this file: as the user said, or the file's or directory's name; where other
 * versions' are called the same, that of the nearest directory that is not. */
static const char *diff_label(
	struct cmd *c, const struct diff_files *f, const struct diff_file *x, char buf[256])
{
	enum { DIRECTORIES_MAX = 64 };
	const char *given[REPORT_DIFF_VERSIONS_MAX];
	size_t nr = cmd_values(c, "label", given, BASE_COUNT(given)), length;
	if (x->version < nr)
		return given[x->version];
	unsigned back = 0;
	while (back < DIRECTORIES_MAX && !diff_label_unlike_others(f, x, back))
		back++;
	back = back < DIRECTORIES_MAX ? back : 0; /* one file twice */
	const char *name = diff_label_name(x->operand, back, &length);
	const char *dot = back ? NULL : memrchr(name, '.', length);
	if (dot && dot != name && strcmp(x->path, x->operand) == 0)
		length = (size_t)(dot - name);
	snprintf(buf, 256, "%.*s", (int)(length < 255 ? length : 255), name);
	return buf;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static int cmd_diff_add_run(struct cmd *c, struct report_diff *d, const char *path)
{
	struct report_run run;
	cmd_check_trace(c, path); /* of a directory's it has not been seen */
	int exit_status = cmd_open_threads(c, path, &run);
	if (exit_status != CMD_OK)
		return exit_status;
	enum base_status s = report_diff_run(d, &run, &c->err);
	if (s != BASE_OK)
		exit_status = cmd_fail(c, base_cause(&c->err, s, "while analysing %s", path));
	cmd_close(c, &run);
	return exit_status;
}

static int cmd_diff_read_all(struct cmd *c, struct report_diff *d)
{
	char buf[256];
	struct diff_files f = {0};
	enum base_status s = BASE_OK;
	int exit_status = diff_files_list(c, &f);
	for (size_t i = 0; i < f.nr && s == BASE_OK && exit_status == CMD_OK; i++) {
		if (!i || f.file[i - 1].version != f.file[i].version)
			s = report_diff_version(d, diff_label(c, &f, &f.file[i], buf), &c->err);
		if (s == BASE_OK)
			exit_status = cmd_diff_add_run(c, d, f.file[i].path);
	}
	diff_files_fini(&f);
	if (exit_status == CMD_OK && s == BASE_OK)
		s = report_diff_finish(d, &c->err);
	return s == BASE_OK ? exit_status : cmd_fail(c, s);
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
