/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - which trace; opening it with progress; small files. */
#include "cmd/cmd.h"

#include "noc/pdg/pdg_file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool open_is_newer(const struct stat *a, const struct stat *b)
{
	if (a->st_mtim.tv_sec != b->st_mtim.tv_sec)
		return a->st_mtim.tv_sec > b->st_mtim.tv_sec;
	return a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

/* An *.lpt file here. */
struct open_trace {
	struct stat stat;
	char name[NAME_MAX + 1];
};

/* Is `a` to be read rather than `b`? The newer one; of equally old ones the first by name. */
static bool open_is_before(const struct open_trace *a, const struct open_trace *b)
{
	bool newer = open_is_newer(&a->stat, &b->stat), older = open_is_newer(&b->stat, &a->stat);
	return newer || (!older && strcmp(a->name, b->name) < 0);
}

/* The newest *.lpt here; `after`: the newest of those that come after that one. */
static bool open_find_newest(const struct open_trace *after, struct open_trace *ret)
{
	static const char suffix[] = ".lpt";
	const struct dirent *e;
	bool found = false;
	DIR *dir = opendir(".");
	while (dir && (e = readdir(dir))) {
		struct open_trace t;
		size_t length = strlen(e->d_name);
		if (length <= sizeof suffix - 1 || length >= sizeof t.name || *e->d_name == '.' ||
			strcmp(e->d_name + length - (sizeof suffix - 1), suffix) != 0)
			continue;
		if (stat(e->d_name, &t.stat) || !S_ISREG(t.stat.st_mode))
			continue;
		memcpy(t.name, e->d_name, length + 1);
		if ((after && !open_is_before(after, &t)) || (found && !open_is_before(&t, ret)))
			continue;
		*ret = t;
		found = true;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Does it have what the command is about? What cannot be read is for its reader to say. */
static bool open_has_samples(const char *path)
{
	struct trace_reader *r;
	struct trace_batch b;
	bool found = false;
	enum base_status s = trace_reader_open(path, NULL, &r, NULL);
	if (s != BASE_OK)
		return true;
	while (!found && (s = trace_reader_next(r, &b, NULL)) == BASE_OK)
		for (size_t i = 0; i < b.nr && !found; i++)
			found = b.record[i].kind == TRACE_sample;
	trace_reader_close(r);
	return found || s != BASE_END;
}

/* The newest one that will do; where none will, the newest, of which the command says what it lacks. */
static bool open_choose(struct cmd *c, struct open_trace *ret, bool *ret_passed)
{
	struct open_trace t;
	if (!open_find_newest(NULL, ret))
		return false;
	if (!(c->spec->flags & CMD_SAMPLES) || open_has_samples(ret->name))
		return true;
	for (struct open_trace last = *ret; open_find_newest(&last, &t); last = t)
		if (open_has_samples(t.name)) {
			cmd_note(c, "%s is newer, but has no samples of the processor", ret->name);
			*ret = t;
			*ret_passed = true;
			break;
		}
	return true;
}

const char *cmd_trace_path(struct cmd *c)
{
	struct open_trace newest;
	bool passed = false; /* newer ones, which will not do */
	if (c->nr_operands > 1) {
		cmd_usage(c, "one trace at a time");
		return NULL;
	}
	if (c->nr_operands)
		return c->operand[0];
	if (!open_choose(c, &newest, &passed)) {
		cmd_usage(c, "no trace given, and there is no *.lpt in this directory "
			     "('longpole record PROG' makes one)");
		return NULL;
	}
	memcpy(c->found.buf, newest.name, sizeof c->found.buf);
	cmd_note(c, "reading %s, the newest trace here%s", c->found.buf,
		passed ? " with samples" : "");
	cmd_check_trace(c, c->found.buf);
	return c->found.buf;
}

const char *cmd_output_path(
	struct cmd *c, const char *trace, const char *suffix, char buf[CMD_PATH_MAX])
{
	const char *given = cmd_value(c, "output");
	size_t length = strlen(trace);
	if (given)
		return given;
	if (length > 4 && !strcmp(trace + length - 4, ".lpt"))
		length -= 4;
	int n = snprintf(buf, CMD_PATH_MAX, "%.*s%s",
		(int)(length < CMD_PATH_MAX ? length : CMD_PATH_MAX), trace, suffix);
	if (n > 0 && n < CMD_PATH_MAX)
		return buf;
	cmd_usage(c, "the trace's name is too long to make another of it; use -o");
	return NULL;
}

static void open_progress(void *ctx, const char *what, uint64_t done_records, uint64_t all_records)
{
	cmd_progress_show(ctx, what, done_records, all_records, "records");
}

/* Nothing but the whole run needs no window: then the answer says nothing of one. */
static bool open_window(struct cmd *c, struct report_run *run)
{
	uint64_t last_ns = trace_reader_last_ns(run->reader), from_ns = 0, to_ns = UINT64_MAX;
	if (!cmd_value_moment(c, "from", last_ns, &from_ns) ||
		!cmd_value_moment(c, "to", last_ns, &to_ns))
		return false;
	if (from_ns >= to_ns || from_ns > last_ns) {
		struct base_str last = {0};
		base_str_add_ns(&last, last_ns);
		cmd_usage(c,
			"--from=%s --to=%s: nothing lies between them (the trace's last record is "
			"at %s)",
			cmd_given(c, "from") ? cmd_value(c, "from") : "0%",
			cmd_given(c, "to") ? cmd_value(c, "to") : "100%", base_str_text(&last));
		base_str_fini(&last);
		return false;
	}
	run->from_ns = from_ns;
	run->to_ns = to_ns < last_ns ? to_ns : 0;
	return true;
}

bool cmd_is_packets(const char *path)
{
	struct trace_reader *reader;
	if (trace_reader_open(path, NULL, &reader, NULL) != BASE_OK)
		return false; /* the next opening says why */
	bool is = noc_pdg_is_trace(trace_reader_info(reader));
	trace_reader_close(reader);
	return is;
}

int cmd_open(struct cmd *c, const char *path, struct report_run *ret)
{
	uint64_t max_memory = 0;
	if (c->spec->flags & CMD_MEMORY && !cmd_value_size(c, "max-memory", &max_memory))
		return CMD_USAGE;
	*ret = (struct report_run){
		.trace_path = path,
		.max_memory_bytes = max_memory,
		.progress = open_progress,
		.progress_ctx = c,
	};
	if (c->spec->flags & CMD_ENDS && !cmd_value_count(c, "connection", &ret->connection))
		return CMD_USAGE;
	ret->process = c->spec->flags & CMD_ENDS ? cmd_value(c, "process") : NULL;
	cmd_progress_reset(c);
	enum base_status s = trace_reader_open(path, NULL, &ret->reader, &c->err);
	if (s == BASE_ERR_FORMAT && c->spec->flags & CMD_OR_PROGRAM && !access(path, X_OK))
		s = base_cause(&c->err, s, "to run it as a program: longpole %s -- %s",
			c->spec->name, path);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	if (c->spec->flags & CMD_WINDOW && !open_window(c, ret)) {
		trace_reader_close(ret->reader);
		return CMD_USAGE;
	}
	const char *start = c->spec->flags & CMD_ENDS ? cmd_value(c, "start") : NULL;
	const char *end = c->spec->flags & CMD_ENDS ? cmd_value(c, "end") : NULL;
	if (!start && !end)
		return CMD_OK;
	s = report_places_find(&c->places, ret, start, end, &c->err);
	if (s == BASE_OK) {
		ret->start = start ? &c->places.start : NULL;
		ret->end = end ? &c->places.end : NULL;
		ret->start_text = start;
		ret->end_text = end;
		return CMD_OK;
	}
	cmd_close(c, ret);
	return cmd_fail(c, base_cause(&c->err, s, "while analysing %s", path));
}

int cmd_open_threads(struct cmd *c, const char *path, struct report_run *ret)
{
	if (cmd_is_packets(path))
		return cmd_usage(c,
			"%s has packets of an on-chip network, and no threads: 'longpole report' "
			"says what they waited for, 'longpole noc' does more",
			path);
	return cmd_open(c, path, ret);
}

int cmd_open_operand(struct cmd *c, struct report_run *ret)
{
	const char *path = cmd_trace_path(c);
	return path ? cmd_open_threads(c, path, ret) : CMD_USAGE;
}

void cmd_close(struct cmd *c, struct report_run *run)
{
	report_places_fini(&c->places);
	cmd_tell_health(c, run->trace_path, trace_reader_health(run->reader));
	trace_reader_close(run->reader);
}

struct cmd_answer cmd_answer_begin(const struct cmd *c, enum base_status s)
{
	return (struct cmd_answer){
		.status = s,
		.as = s != BASE_OK           ? CMD_AS_NOTHING
		      : cmd_given(c, "json") ? CMD_AS_JSON
					     : CMD_AS_TEXT,
		.style = cmd_style(c),
	};
}

void cmd_answer_set(const struct cmd *c, struct cmd_answer *a, enum base_status s)
{
	*a = cmd_answer_begin(c, s);
}

int cmd_answer_end(struct cmd *c, struct cmd_answer *a, struct report_run *run)
{
	int exit_status = CMD_OK;
	switch (a->as) {
	case CMD_AS_NOTHING:
		exit_status = cmd_fail(
			c, base_cause(&c->err, a->status, "while analysing %s", run->trace_path));
		break;
	case CMD_AS_JSON:
		exit_status = cmd_write_json(c, a->json);
		break;
	case CMD_AS_TEXT:
		exit_status = cmd_write(c, &a->text);
		break;
	}
	cmd_close(c, run);
	return exit_status;
}

char *cmd_read_file(struct cmd *c, const char *path, size_t limit_bytes)
{
	bool is_stdin = !strcmp(path, "-");
	FILE *f = is_stdin ? stdin : fopen(path, "re");
	char *text = NULL;
	if (!f) {
		cmd_fail(c, base_fail_errno(&c->err, errno, "%s", path));
		return NULL;
	}
	size_t capacity = 0, length = 0;
	enum base_status s = BASE_OK;
	while (s == BASE_OK) {
		s = base_grow(&text, &capacity, length + 4096, 1);
		if (s != BASE_OK) {
			s = base_fail(&c->err, s, "%s: out of memory", path);
			break;
		}
		size_t n = fread(text + length, 1, capacity - length - 1, f);
		length += n;
		if (!n)
			break;
		if (length > limit_bytes)
			s = base_fail(&c->err, BASE_ERR_USAGE, "%s: larger than %zu bytes", path,
				limit_bytes);
	}
	if (s == BASE_OK && ferror(f))
		s = base_fail_errno(&c->err, errno, "%s", path);
	if (s == BASE_OK && strlen(text) != length)
		s = base_fail(&c->err, BASE_ERR_USAGE, "%s: has zero bytes: not a text file", path);
	if (!is_stdin)
		fclose(f);
	if (s == BASE_OK)
		return text;
	cmd_fail(c, s);
	base_free(text);
	return NULL;
}

enum base_status cmd_pattern(struct cmd *c, const struct report_run *run, const char *option,
	struct base_str *keep, const char **ret)
{
	*ret = cmd_value(c, option);
	if (!*ret || !run || !report_is_part_number(*ret))
		return BASE_OK;
	enum base_status s = report_part_name(run, *ret, keep, &c->err);
	*ret = base_str_text(keep);
	return s;
}
