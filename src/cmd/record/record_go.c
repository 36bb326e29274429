/* SPDX-License-Identifier: Apache-2.0 */
/* record_go.c - `longpole record` of a Go program that no library can be loaded into: its goroutines are recorded. */
#include "cmd/record/record.h"
#include "config.h"
#include "format/format.h"
#include "golive/golive.h"
#include "os/launch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_BY_SIGNAL = 128 };

/* Whoever is traced gains no rights: such a program would not be the same. */
static bool go_gains_rights(const char *path)
{
	struct stat st;
	return stat(path, &st) || (st.st_mode & (S_ISUID | S_ISGID));
}

bool cmd_record_is_go(const struct session_options *o)
{
	struct base_err ignored = {0};
	char path[PATH_MAX];
	int exit_code;
	return o->argv && !o->attach && !o->emulator && o->level < 2 && !session_counts(o) &&
	       o->system == SYSTEM_LEVEL_none &&
	       os_find_program(o->argv[0], path, &exit_code, &ignored) == BASE_OK &&
	       !go_gains_rights(path) && golive_knows(path);
}

static enum base_status go_to(struct cmd *c, const struct gotrace *t, const struct golive_run *run,
	const char *path, struct base_str *notes)
{
	struct base_str command = {0};
	struct utsname host;
	struct trace_writer *w = NULL;
	struct base_err late = {0};
	for (char *const *word = run->argv; *word; word++) {
		base_str_add(&command, word == run->argv ? "" : " ");
		base_str_add_quoted(&command, *word, strlen(*word));
	}
	struct trace_info info = {.size = sizeof info,
		.host = uname(&host) ? "" : host.nodename,
		.command = base_str_text(&command),
		.tool = "longpole " LONGPOLE_VERSION,
		.origin_mono_ns = run->mono_ns,
		.origin_unix_ns = run->unix_ns,
		.nr_processors = t->nr_processors};
	enum base_status s = trace_writer_open(path, &info, &w, &c->err), closed = s;
	if (s == BASE_OK) {
		s = format_go_write(t, run->argv[0], w, notes, &c->err);
		trace_writer_count(w, TRACE_DIAG_records_lost, run->nr_lost);
		closed = trace_writer_close(w, s == BASE_OK ? &c->err : &late);
	}
	base_str_fini(&command);
	return s == BASE_OK ? closed : s;
}

/* The trace appears whole or not at all. */
static enum base_status go_write_trace(
	struct cmd *c, const struct gotrace *t, const struct golive_run *run, const char *path)
{
	struct base_str temporary = {0}, notes = {0};
	base_str_addf(&temporary, "%s.part", path);
	enum base_status s =
		temporary.failed ? base_fail(&c->err, BASE_ERR_NOMEM, "out of memory for a name")
				 : BASE_OK;
	if (s == BASE_OK) {
		unlink(base_str_text(&temporary));
		s = go_to(c, t, run, base_str_text(&temporary), &notes);
	}
	if (s == BASE_OK && rename(base_str_text(&temporary), path))
		s = base_fail_errno(&c->err, errno, "%s", path);
	if (s != BASE_OK && !temporary.failed)
		unlink(base_str_text(&temporary));
	else
		cmd_note_lines(c, &notes);
	base_str_fini(&temporary);
	base_str_fini(&notes);
	return s;
}

enum base_status cmd_record_go(
	struct cmd *c, const struct session_options *o, const char *path, int *ret_exit_code)
{
	char program[PATH_MAX];
	struct golive_run run = {.path = program, .argv = o->argv, .sample_hz = o->sample_hz};
	struct gotrace *t = NULL;
	struct base_str said = {0};
	enum base_status s = os_find_program(o->argv[0], program, ret_exit_code, &c->err);
	if (s == BASE_OK)
		s = golive_record(&run, &t, &c->err);
	if (s == BASE_OK)
		s = go_write_trace(c, t, &run, path);
	gotrace_free(t);
	if (s != BASE_OK)
		return s;
	*ret_exit_code = WIFEXITED(run.wait_status) ? WEXITSTATUS(run.wait_status)
						    : EXIT_BY_SIGNAL + WTERMSIG(run.wait_status);
	base_str_addf(&said, "recorded %s: ", path);
	base_str_add_ns(&said, run.elapsed_ns);
	base_str_add_counted(
		&said, ", %s {change of a goroutine|changes of goroutines}", run.nr_records);
	if (run.nr_samples)
		base_str_add_counted(&said, ", %s {sample|samples}", run.nr_samples);
	cmd_note(c, "%s", base_str_text(&said));
	base_str_fini(&said);
	if (*run.why_no_samples)
		cmd_note(c, "no samples: %s", run.why_no_samples);
	return s;
}
