/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.c - where `longpole whatif` keeps what became of its predictions; see report/ledger.h. */
#include "cmd/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEDGER_LIMIT_BYTES = 64 << 20 };

/* --ledger, else $XDG_STATE_HOME or ~/.local/state, in longpole/ledger.jsonl; "" without a home. */
static bool ledger_path(const struct cmd *c, struct base_str *out)
{
	const char *given = cmd_value(c, "ledger"), *state = getenv("XDG_STATE_HOME"),
		   *home = getenv("HOME");
	if (given)
		base_str_add(out, given);
	else if (state && *state)
		base_str_addf(out, "%s/longpole/ledger.jsonl", state);
	else if (home && *home)
		base_str_addf(out, "%s/.local/state/longpole/ledger.jsonl", home);
	return out->length && !out->failed;
}

/* The directories above a file of ours. */
static void make_directories(const char *path)
{
	struct base_str part = {0};
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		base_str_reset(&part);
		base_str_add_bytes(&part, path, (size_t)(slash - path));
		if (mkdir(base_str_text(&part), 0700) && errno != EEXIST)
			break; /* opening the file will say why */
	}
	base_str_fini(&part);
}

void cmd_ledger_open(struct cmd *c, struct report_ledger *ret)
{
	struct base_str path = {0};
	char *file = NULL;
	*ret = (struct report_ledger){0};
	if (ledger_path(c, &path) && !access(base_str_text(&path), R_OK))
		file = cmd_read_file(c, base_str_text(&path), LEDGER_LIMIT_BYTES);
	if (file && report_ledger_read(ret, file, &c->err) == BASE_OK && ret->nr_bad_lines) {
		base_str_add_counted(&path,
			": %s {line is no entry and was|lines are no entries and were} skipped",
			ret->nr_bad_lines);
		cmd_note(c, "%s", base_str_text(&path));
	}
	base_free(file);
	base_str_fini(&path);
}

/* The critical path's length in a trace of the changed program. */
static int length_of_trace(struct cmd *c, const char *path, double *ret_ns)
{
	struct report_run run = {.trace_path = path};
	struct report_options opts = {0};
	struct report *r = NULL;
	enum base_status s = trace_reader_open(path, NULL, &run.reader, &c->err);
	if (s == BASE_OK)
		s = report_build(&run, &opts, &r, &c->err);
	if (s == BASE_OK)
		*ret_ns = r->elapsed_ns;
	report_free(r);
	trace_reader_close(run.reader);
	return s == BASE_OK ? CMD_OK
			    : cmd_fail(c, base_cause(&c->err, s, "while analysing %s", path));
}

static int ledger_append(struct cmd *c, const char *path, const struct base_str *line)
{
	make_directories(path);
	int fd = base_output_continue(path, &c->err);
	FILE *f = fd >= 0 ? fdopen(fd, "a") : NULL;
	if (fd < 0)
		return cmd_fail(c, c->err.status);
	bool failed = !f || fwrite(base_str_text(line), 1, line->length, f) != line->length;
	int why = errno;
	if (f && fclose(f) && !failed) {
		failed = true;
		why = errno;
	}
	return failed ? cmd_fail(c, base_fail_errno(&c->err, why, "%s", path)) : CMD_OK;
}

int cmd_ledger_record(struct cmd *c, const struct report_whatif *w)
{
	const char *outcome = cmd_value(c, "record-outcome");
	struct base_str path = {0}, line = {0};
	uint64_t time_ns = 0;
	double after_ns = 0;
	int exit_status = CMD_OK;
	if (w->nr_predictions != 1)
		return cmd_usage(c, "--record-outcome is of one scenario, and here are %zu",
			w->nr_predictions);
	if (!access(outcome, F_OK))
		exit_status = length_of_trace(c, outcome, &after_ns);
	else if (cmd_value_time(c, "record-outcome", &time_ns))
		after_ns = (double)time_ns;
	else
		exit_status = CMD_USAGE;
	if (exit_status == CMD_OK)
		exit_status = cmd_gate_partial(c, "--record-outcome");
	if (exit_status == CMD_OK && after_ns <= 0)
		exit_status = cmd_usage(c, "--record-outcome: it took no time?");
	if (exit_status == CMD_OK && !ledger_path(c, &path))
		exit_status =
			cmd_usage(c, "no home directory to keep a ledger in; give --ledger=FILE");
	if (exit_status == CMD_OK &&
		report_ledger_entry(&line, w, w->elapsed_ns / after_ns, &c->err) != BASE_OK)
		exit_status = cmd_fail(c, c->err.status);
	if (exit_status == CMD_OK)
		exit_status = ledger_append(c, base_str_text(&path), &line);
	if (exit_status == CMD_OK)
		cmd_note(c, "measured %.2fx; noted in %s", w->elapsed_ns / after_ns,
			base_str_text(&path));
	base_str_fini(&path);
	base_str_fini(&line);
	return exit_status;
}
