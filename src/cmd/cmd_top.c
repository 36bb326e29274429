/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_top.c - `longpole top`: the critical path of something that goes on, every few seconds. */
#include "cmd/cmd.h"

#include "live/live.h"
#include "report/top.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_TEXT = 10, ROWS_JSON = 50, LINE_MAX_BYTES = 16 << 20 };

static const struct cmd_option option[] = {
	{"interval", 'i', "TIME", NULL, "how long a window is (default 1s)"},
	{"count", 'n', "N", NULL, "stop after N windows"},
	{"limit", 'l', "N", NULL, "rows of each table; 0: all (default 10; with --json 50)"},
	{"process", 'p', "NAME|PID", NULL,
		"only paths of these processes (a name may be a pattern)"},
	{"cgroup", 0, "PATH", NULL, "only paths of processes in this cgroup or below it"},
	{"merge", 0, NULL, NULL,
		"the operands are files of JSON lines, of many hosts: rank them together"},
};

const struct cmd_details cmd_details_top = {
	.usage = "[OPTIONS] [TRACE | -- PROG [ARG...]]",
	.about = "Every second (--interval): what the critical path was made of, by state, by "
		 "process "
		 "and by connection. Of a recording (TRACE), window by window up to its end. With "
		 "--json one line for each window, for a collector; --merge ranks such lines of "
		 "many hosts.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole top --interval=100ms server.lpt",
		"longpole top --json server.lpt | jq -r .finding",
		"longpole top --merge host1.jsonl host2.jsonl"},
};

struct top {
	struct cmd *c;
	struct report_top_head head;
	uint64_t interval_ns, count, nr_shown;
	bool json, redraw;
	int exit_status;
};

/* ---- one window
 * --------------------------------------------------------------------------------------- */

static int write_line(struct cmd *c, json_t *j)
{
	struct base_str s = {0};
	char *text = j ? json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(10)) : NULL;
	if (text)
		base_str_addf(&s, "%s\n", text);
	else
		s.failed = true;
	free(text);
	json_decref(j);
	return cmd_write(c, &s);
}

static enum base_status show(void *ctx, const struct live_window *w, struct base_err *err)
{
	struct top *t = ctx;
	if (t->json) {
		t->exit_status = write_line(t->c, report_top_json(w, &t->head));
	} else {
		struct report_style st = cmd_style(t->c);
		struct base_str s = {0};
		if (t->redraw)
			base_str_add(&s, "\033[H\033[J"); /* home, and clear what is below */
		else if (t->nr_shown)
			base_str_add(&s, "\n");
		report_top_text(&s, w, &t->head, &st);
		t->exit_status = cmd_write(t->c, &s);
	}
	t->nr_shown++;
	if (t->exit_status != CMD_OK || (t->count && t->nr_shown >= t->count))
		return base_fail(err, BASE_END, "enough");
	return BASE_OK;
}

/* ---- a trace, window by window
 * ---------------------------------------------------------------------- */

static enum base_status feed_batch(
	struct live *l, const struct trace_batch *b, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < b->nr && s == BASE_OK; i++)
		s = live_put(l, &b->record[i], err);
	return s;
}

static enum base_status replay(struct top *t, struct live *l, struct trace_reader *r)
{
	struct base_err *err = &t->c->err;
	for (;;) {
		struct trace_batch b;
		enum base_status s = trace_reader_next(r, &b, err);
		if (s == BASE_END)
			return live_finish(l, err);
		if (s == BASE_OK)
			s = feed_batch(l, &b, err);
		if (s != BASE_OK)
			return s;
	}
}

static int top_trace(struct top *t, struct live_options *o)
{
	struct cmd *c = t->c;
	const char *path = cmd_trace_path(c, &c->found);
	struct trace_reader_options ro = {.size = sizeof ro, .with_definitions = true};
	struct trace_reader *r;
	struct live *l = NULL;
	struct base_str what = {0};
	if (!path)
		return CMD_USAGE;
	enum base_status s = trace_reader_open(path, &ro, &r, &c->err);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	base_str_addf(&what, "trace %s", path);
	t->head.what = base_str_text(&what);
	t->head.host = trace_reader_info(r)->host;
	t->head.origin_unix_ns = trace_reader_info(r)->origin_unix_ns;
	o->hindsight = LIVE_HINDSIGHT_ALL;
	o->system = trace_reader_info(r)->flags & TRACE_INFO_SYSTEM;
	o->command = trace_reader_info(r)->command;
	s = live_new(o, &l, &c->err);
	if (s == BASE_OK)
		s = replay(t, l, r);
	if (s != BASE_OK && s != BASE_END)
		t->exit_status = cmd_fail(c, base_cause(&c->err, s, "while analysing %s", path));
	live_free(l);
	trace_reader_close(r);
	base_str_fini(&what);
	return t->exit_status;
}

/* ---- the command
 * -------------------------------------------------------------------------------------- */

int cmd_run_top(struct cmd *c)
{
	struct top t = {.c = c, .interval_ns = 1000000000, .json = cmd_given(c, "json")};
	uint64_t limit = t.json ? ROWS_JSON : ROWS_TEXT;
	if (!cmd_value_time(c, "interval", &t.interval_ns) ||
		!cmd_value_count(c, "count", &t.count) || !cmd_value_count(c, "limit", &limit))
		return CMD_USAGE;
	if (!t.interval_ns)
		return cmd_usage(c, "--interval: longer than 0");
	t.head.limit = (size_t)limit;
	t.redraw = isatty(STDOUT_FILENO) && !c->term.dumb && !t.json;
	struct live_options o = {.size = sizeof o,
		.interval_ns = t.interval_ns,
		.hindsight = 1,
		.process = cmd_value(c, "process"),
		.cgroup = cmd_value(c, "cgroup"),
		.answer = show,
		.ctx = &t};
	return top_trace(&t, &o);
}
