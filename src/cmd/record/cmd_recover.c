/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_recover.c - `longpole recover`: the traces of recordings whose recorder was killed. */
#include "cmd/record/record.h"
#include "session/recover.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct cmd_option option[] = {
	{"output", 'o', "FILE", "@file",
		"the trace to write (default: the name that the recording had; where another file "
		"has it by now, that name with .ID behind it)"},
	{"remove", 0, NULL, NULL, "throw away what is left, without a trace"},
};

const struct cmd_details cmd_details_recover = {
	.usage = "\n[OPTIONS] ID",
	.about = "Lists the recordings whose recorder was killed (kill -9, no memory, a crash). "
		 "With ID, makes the trace of one of them, as far as its memory goes. A program "
		 "that still runs goes on, and is not recorded any more.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole recover", "longpole recover 4711-x3Vq9a",
		"longpole recover --remove 4711-x3Vq9a"},
};

static void cmd_recover_add_time(struct base_str *out, uint64_t unix_ns)
{
	char text[32] = "";
	struct tm at;
	time_t seconds = (time_t)(unix_ns / 1000000000u);
	if (localtime_r(&seconds, &at) && strftime(text, sizeof text, "%F %T", &at))
		base_str_add(out, text);
}

void cmd_recover_hint(struct cmd *c)
{
	struct session_left_recording *left;
	size_t nr;
	if (session_left_list(&left, &nr, &c->err) != BASE_OK)
		nr = 0;
	const struct session_left_recording *last = NULL;
	size_t nr_whole = 0;
	for (size_t i = 0; i < nr; i++) {
		if (left[i].why_not.status != BASE_OK)
			continue;
		nr_whole++;
		if (!last || left[i].cut_unix_ns > last->cut_unix_ns)
			last = &left[i];
	}
	if (last) {
		struct base_str at = {0};
		cmd_recover_add_time(&at, last->cut_unix_ns);
		if (nr_whole > 1)
			base_str_addf(&at, " (and %zu before)", nr_whole - 1);
		cmd_note(c, "a recording of %s was cut off at %s: longpole recover %s",
			last->command, base_str_text(&at), last->name);
		base_str_fini(&at);
	}
	base_free(left);
}

/* ---- the list -------------------------------------------------------------------------------- */

static json_t *left_json(const struct session_left_recording *l)
{
	const char *why = l->why_not.nr_causes ? l->why_not.cause[0] : "";
	return json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:b, s:s}", "id", l->name, "command",
		l->command, "trace", l->trace_path, "trace_is_there", l->trace_is_there,
		"cut_unix_ns", (json_int_t)l->cut_unix_ns, "memory_bytes",
		(json_int_t)l->ring_bytes, "program_runs", l->program_runs, "refused", why);
}

static void add_left(struct base_str *out, const struct session_left_recording *l)
{
	if (l->why_not.status != BASE_OK) {
		base_str_addf(out, "%s  cannot be recovered: %s\n", l->name,
			l->why_not.nr_causes ? l->why_not.cause[0]
					     : base_status_line(l->why_not.status));
		base_str_addf(out, "  to remove it:  longpole recover --remove %s\n", l->name);
		return;
	}
	base_str_addf(out, "%s  %s, cut off at ", l->name, l->command);
	cmd_recover_add_time(out, l->cut_unix_ns);
	base_str_add(out, "; keeps ");
	base_str_add_size(out, l->ring_bytes);
	base_str_addf(out, " of memory%s\n",
		l->program_runs ? "; the program still runs and writes there" : "");
	base_str_addf(out, "  its trace:     longpole recover %s\n", l->name);
	base_str_addf(out, "  to remove it:  longpole recover --remove %s\n", l->name);
}

static int cmd_recover_list(struct cmd *c)
{
	struct session_left_recording *left;
	struct base_str out = {0};
	size_t nr;
	enum base_status status = session_left_list(&left, &nr, &c->err);
	if (status != BASE_OK) {
		base_free(left);
		return cmd_fail(c, status);
	}
	json_t *all = json_array();
	for (size_t i = 0; i < nr; i++) {
		if (cmd_given(c, "json"))
			json_array_append_new(all, left_json(&left[i]));
		else
			add_left(&out, &left[i]);
	}
	base_free(left);
	if (cmd_given(c, "json"))
		return cmd_write_result(c, "longpole/recover/1", json_pack("{s:o}", "left", all));
	json_decref(all);
	if (!nr)
		base_str_add(&out, "No recording was cut off.\n");
	return cmd_write_prose(c, &out);
}

/* ---- one of them ----------------------------------------------------------------------------- */

/* BASE_ERR_USAGE after no message: there is none of that name. */
static enum base_status cmd_recover_find(
	struct cmd *c, const char *name, struct session_left_recording *ret)
{
	struct session_left_recording *left;
	size_t nr;
	enum base_status status = session_left_list(&left, &nr, &c->err);
	bool any = false;
	for (size_t i = 0; status == BASE_OK && i < nr && !any; i++) {
		any = !strcmp(left[i].name, name);
		*ret = left[i];
	}
	base_free(left);
	if (status != BASE_OK || any)
		return status;
	return base_fail(&c->err, BASE_ERR_USAGE,
		"no recording '%s' was cut off; 'longpole recover' lists those that were", name);
}

/* NULL: no memory. */
static bool cmd_recover_add_path(
	struct cmd *c, const struct session_left_recording *l, struct base_str *ret)
{
	const char *given = cmd_value(c, "output");
	base_str_add(ret, given ? given : l->trace_path);
	FILE *f = given || l->trace_is_there ? NULL : fopen(l->trace_path, "re");
	if (f) {
		base_str_addf(ret, ".%s", l->name);
		fclose(f);
	}
	return !ret->failed;
}

static int cmd_recover_say(struct cmd *c, const char *path, const struct session_recovered *r)
{
	struct base_str out = {0};
	if (cmd_given(c, "json"))
		return cmd_write_result(c, "longpole/recover/1",
			json_pack("{s:s, s:I, s:I, s:I}", "path", path, "records",
				(json_int_t)r->records, "records_from_memory",
				(json_int_t)r->ring_records, "bytes", (json_int_t)r->trace_bytes));
	base_str_addf(&out, "Recovered %s: ", path);
	base_str_add_counted(&out, "%s {record|records}, ", r->records);
	base_str_add_count(&out, r->ring_records);
	base_str_add(&out, " of them from memory.\n");
	if (r->memory_chunks_left_out)
		base_str_add(&out, "Its memory streams (--level 2, 3) are not recovered.\n");
	base_str_addf(&out, "next: longpole report %s\n", path);
	return cmd_write_prose(c, &out);
}

static int cmd_recover_recover(struct cmd *c, const char *name)
{
	struct base_str path = {0}, real = {0};
	struct session_left_recording *left = base_alloc(sizeof *left);
	struct session_recovered recovered;
	enum base_status status = left ? cmd_recover_find(c, name, left) : BASE_ERR_NOMEM;
	if (status == BASE_OK)
		status = cmd_recover_add_path(c, left, &path)
				 ? base_output_name(path.buf, &real, &c->err)
				 : BASE_ERR_NOMEM;
	if (status == BASE_OK)
		status = session_recover(name, base_str_text(&real), &recovered, &c->err);
	int exit_status = status == BASE_OK ? cmd_recover_say(c, base_str_text(&path), &recovered)
					    : cmd_fail(c, status);
	if (status == BASE_OK)
		session_left_remove(name);
	base_str_fini(&path);
	base_str_fini(&real);
	base_free(left);
	return exit_status;
}

static int cmd_recover_remove_left(struct cmd *c, const char *name)
{
	if (session_left_remove(name))
		return CMD_OK;
	return cmd_fail(c,
		base_fail(&c->err, BASE_ERR_USAGE,
			"no recording '%s' was cut off; 'longpole recover' lists those that were",
			name));
}

int cmd_run_recover(struct cmd *c)
{
	if (c->nr_operands > 1)
		return cmd_usage(c, "one recording at a time");
	if (!c->nr_operands)
		return cmd_given(c, "remove") || cmd_given(c, "output")
			       ? cmd_usage(c, "of which recording? 'longpole recover' lists them")
			       : cmd_recover_list(c);
	return cmd_given(c, "remove") ? cmd_recover_remove_left(c, c->operand[0])
				      : cmd_recover_recover(c, c->operand[0]);
}
