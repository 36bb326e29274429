/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_top.c - `longpole top`: the critical path of something that goes on, every few seconds. */
#include "cmd/cmd.h"
#include "cmd/top_keys.h"

#include "config.h"
#include "live/live.h"
#include "session/session.h"
#include "report/top.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROWS_TEXT = 10, ROWS_JSON = 50, SAMPLE_HZ = 199, MERGE_BYTES_MAX = 1 << 30 };

static const struct cmd_option option[] = {
	{"interval", 'i', "TIME", NULL, "how long a window is (default 1s)"},
	{"count", 'n', "N", NULL, "stop after N windows"},
	{"limit", 'l', "N", NULL, "rows of each table; 0: all (default 10; with --json 50)"},
	{"pid", 'p', "PID", NULL, "only the path of this process"},
	{"process", 0, "NAME", NULL,
		"only paths of processes of this name (a pattern) or number, as inside a trace"},
	{"cgroup", 0, "PATH", NULL, "only paths of processes in this cgroup or below it"},
	{"output", 'o', "FILE", "@file",
		"write the answers there (default: standard output; with PROG standard error)"},
	{"system", 0, NULL, NULL,
		"with PROG: also what the rest of the machine does to it (needs root)"},
	{"merge", 0, NULL, NULL,
		"the operands are files of JSON lines, of many hosts: rank them together"},
};

const struct cmd_details cmd_details_top = {
	.usage = "[OPTIONS] [TRACE | -- PROG [ARG...]]",
	.about = "Shows, every second (--interval), what the critical path was made of, by "
		 "state, by process and by connection. Without an operand it is about the whole "
		 "system, with one path for each process that did something (needs root). With "
		 "PROG it is about that program while it runs, with TRACE about a recording, "
		 "window by window. --json prints one line for each window, for a collector; "
		 "--merge ranks such lines of many hosts.",
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
	FILE *to;
	const struct live *live;
	struct top_keys keys;
	int exit_status;
};

/* ---- one window ------------------------------------------------------------------------------ */

static int write_text(struct top *t, struct base_str *s)
{
	bool ok = !s->failed && fwrite(base_str_text(s), 1, s->length, t->to) == s->length &&
		  !fflush(t->to);
	int exit_status = CMD_OK;
	if (s->failed)
		exit_status = cmd_fail(t->c,
			base_fail(&t->c->err, BASE_ERR_NOMEM, "out of memory for the answer"));
	else if (!ok)
		exit_status =
			cmd_fail(t->c, base_fail_errno(&t->c->err, errno, "writing the answer"));
	base_str_fini(s);
	return exit_status;
}

static int cmd_top_write_line(struct top *t, json_t *j)
{
	struct base_str s = {0};
	cmd_add_json_line(&s, j);
	return write_text(t, &s);
}

/* What the window says in no more rows than the screen has (`rows`, 0: any number), the last of which is the cursor's: the
 * tables are shortened as far as that needs, and say how many rows more there are. */
static void cmd_top_text(
	const struct top *t, const struct live_window *w, unsigned rows, struct base_str *ret)
{
	struct report_style st = cmd_style(t->c);
	struct report_top_head head = t->head;
	size_t most = w->nr_states;
	most = w->nr_processes > most ? w->nr_processes : most;
	most = w->nr_connections > most ? w->nr_connections : most;
	head.limit = !head.limit || head.limit > most ? most : head.limit;
	for (;; head.limit--) {
		struct base_str window = {0};
		top_keys_text(&window, &t->keys, w, &head, &st);
		base_str_add_shown(ret, base_str_text(&window), window.length, BASE_SHOWN_LINES);
		ret->failed |= window.failed;
		base_str_fini(&window);
		if (!rows || head.limit <= 1 || ret->failed ||
			top_keys_rows(base_str_text(ret), st.columns) < rows)
			break;
		base_str_fini(ret);
	}
	top_keys_cut(ret, st.columns, rows);
}

static enum base_status cmd_top_show(void *ctx, const struct live_window *w, struct base_err *err)
{
	struct top *t = ctx;
	if (t->keys.quit)
		return base_fail(err, BASE_END, "enough");
	if (t->keys.paused)
		return BASE_OK; /* what is on the screen stays */
	if (t->json) {
		t->exit_status = cmd_top_write_line(t, report_top_json(w, &t->head));
	} else {
		struct base_str s = {0}, window = {0};
		if (t->redraw)
			cmd_terminal_measure(&t->c->term, fileno(t->to)); /* it may have changed */
		if (t->redraw)
			base_str_add(&s, "\033[H\033[J"); /* home, and clear what is below */
		else if (t->nr_shown)
			base_str_add(&s, "\n");
		cmd_top_text(t, w, t->redraw ? t->c->term.rows : 0, &window);
		base_str_add_bytes(&s, base_str_text(&window), window.length);
		s.failed |= window.failed;
		base_str_fini(&window);
		t->exit_status = write_text(t, &s);
	}
	t->nr_shown++;
	if (t->exit_status != CMD_OK || (t->count && t->nr_shown >= t->count))
		return base_fail(err, BASE_END, "enough");
	return BASE_OK;
}

/* ---- a trace, window by window --------------------------------------------------------------- */

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
	const char *path = c->operand[0];
	struct trace_reader *r;
	struct live *l = NULL;
	struct base_str what = {0};
	enum base_status s = trace_reader_open(path, NULL, &r, &c->err);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	base_str_addf(&what, "trace %s", path);
	t->head.what = base_str_text(&what);
	t->head.host = trace_reader_info(r)->host;
	t->head.origin_unix_ns = trace_reader_info(r)->origin_unix_ns;
	o->hindsight = LIVE_HINDSIGHT_ALL;
	o->defs = trace_reader_defs(r);
	o->system = trace_reader_info(r)->flags & TRACE_INFO_SYSTEM;
	o->command = trace_reader_info(r)->command;
	s = live_new(o, &l, &c->err);
	if (s == BASE_OK)
		s = replay(t, l, r);
	if (s != BASE_OK && s != BASE_END)
		t->exit_status = cmd_fail(c, base_cause(&c->err, s, "while analysing %s", path));
	live_free(l);
	cmd_tell_health(c, path, trace_reader_health(r));
	trace_reader_close(r);
	base_str_fini(&what);
	return t->exit_status;
}

/* ---- what goes on now ------------------------------------------------------------------------ */

struct going_on {
	struct top *t;
	struct live *live;
	uint64_t nr_lost;
	enum base_status status;
};

static void cmd_top_take_record(void *ctx, const struct trace_record *r)
{
	struct going_on *g = ctx;
	if (g->status == BASE_OK)
		g->status = live_put(g->live, r, &g->t->c->err);
}

static void cmd_top_reach(void *ctx, uint64_t time_ns, uint64_t nr_lost)
{
	struct going_on *g = ctx;
	live_lost(g->live, nr_lost - g->nr_lost);
	g->nr_lost = nr_lost;
	if (g->status == BASE_OK)
		g->status = live_advance(g->live, time_ns, &g->t->c->err);
}

static bool has_enough(void *ctx)
{
	const struct going_on *g = ctx;
	struct top *t = g->t;
	bool was_paused = t->keys.paused;
	if (top_keys_look(&t->keys) && t->keys.paused && !was_paused) {
		struct base_str s = {0};
		base_str_add(&s, "paused; space goes on\n");
		t->exit_status = write_text(t, &s);
	}
	return g->status != BASE_OK || t->keys.quit;
}

static void cmd_top_say_what(struct top *t, const struct session_result *r)
{
	struct live_health h = live_health(t->live);
	struct base_str s = {0};
	base_str_add_counted(&s, "%s {record|records} in ", h.nr_records);
	base_str_add_ns(&s, r->elapsed_ns);
	base_str_addf(&s, "; longpole took %.1f %% of a processor",
		r->elapsed_ns ? 100 * (double)r->recorder_cpu_ns / (double)r->elapsed_ns : 0);
	if (h.nr_models)
		base_str_add_counted(&s, "; %s {time|times} a fresh model took over", h.nr_models);
	cmd_note(t->c, "%s", base_str_text(&s));
	base_str_fini(&s);
	for (unsigned d = 0; d < TRACE_DIAG_NR; d++) {
		const struct trace_diag_desc *desc = trace_diag_describe((enum trace_diag)d);
		if (r->count[d] && desc->severity != TRACE_SEVERITY_info)
			cmd_note(t->c, "caveat: %llu %s", (unsigned long long)r->count[d],
				desc->name);
	}
}

static int cmd_top_watch(struct top *t, struct session_options *ro, struct live_options *o)
{
	struct cmd *c = t->c;
	struct going_on g = {.t = t};
	struct session_listener listener = {.ctx = &g,
		.put = cmd_top_take_record,
		.reached = cmd_top_reach,
		.stop = has_enough};
	struct session_result r = {.wait_status = -1, .exit_code = SESSION_EXIT_OURS};
	enum base_status s = live_new(o, &g.live, &c->err);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	t->live = g.live;
	ro->listener = &listener;
	if (t->redraw && !ro->argv) /* else the keys are the program's */
		top_keys_begin(&t->keys);
	s = session_run(ro, &r, &c->err);
	top_keys_end(&t->keys);
	if (s == BASE_OK && g.status == BASE_OK)
		g.status = live_finish(g.live, &c->err);
	int exit_status = CMD_OK;
	if (s != BASE_OK || (g.status != BASE_OK && g.status != BASE_END))
		exit_status = cmd_fail(c, s != BASE_OK ? s : g.status);
	else
		cmd_top_say_what(t, &r);
	live_free(g.live);
	if (!ro->argv)
		return exit_status ? exit_status : t->exit_status;
	return exit_status == CMD_OK && t->exit_status == CMD_OK ? r.exit_code : SESSION_EXIT_OURS;
}

/* `argv` NULL: the whole system. */
static int top_now(struct top *t, struct live_options *o, char *const *argv)
{
	struct session_options ro = session_options_default();
	struct base_str command = {0}, what = {0};
	char host[256] = "";
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	gethostname(host, sizeof host - 1);
	if (argv) {
		base_str_add_command(&command, argv);
		base_str_addf(&what, "program %s", base_str_text(&command));
	} else {
		base_str_addf(&what, "%s",
			o->process  ? "processes "
			: o->cgroup ? "cgroup "
				    : "the whole system");
		base_str_add(&what, o->process ? o->process : o->cgroup ? o->cgroup : "");
	}
	o->system = !argv || cmd_given(t->c, "system");
	o->whom = argv ? LIVE_WHOM_program : LIVE_WHOM_processes;
	o->command = argv ? base_str_text(&command) : NULL;
	ro.argv = argv;
	ro.tool = "longpole " LONGPOLE_VERSION;
	ro.sample_hz = SAMPLE_HZ;
	ro.stack_depth = 0;
	ro.system = o->system ? SYSTEM_LEVEL_sched : SYSTEM_LEVEL_none;
	if (!argv && t->count)
		ro.for_ns = 0;
	o->late_ns = session_late_ns(&ro);
	t->head.host = host;
	t->head.what = base_str_text(&what);
	t->head.origin_unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	int exit_status = cmd_top_watch(t, &ro, o);
	base_str_fini(&command);
	base_str_fini(&what);
	return exit_status;
}

/* ---- many hosts ------------------------------------------------------------------------------ */

static enum base_status merge_file(
	struct cmd *c, struct report_merge *m, const char *path, const char *text)
{
	unsigned nr = 0;
	for (const char *line = text; *line; nr++) {
		size_t length = strcspn(line, "\n");
		enum base_status s = length ? report_merge_add(m, line, length, &c->err) : BASE_OK;
		if (s != BASE_OK)
			return base_cause(&c->err, s, "%s, line %u", path, nr + 1);
		line += length + (line[length] == '\n');
	}
	return BASE_OK;
}

static int cmd_top_merge(struct top *t, size_t limit)
{
	struct cmd *c = t->c;
	struct report_merge *m = report_merge_new();
	int exit_status = CMD_OK;
	if (!m)
		return cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "out of memory"));
	for (size_t i = 0; i < c->nr_operands && exit_status == CMD_OK; i++) {
		char *text = cmd_read_file(c, c->operand[i], MERGE_BYTES_MAX);
		if (!text)
			exit_status = CMD_ENVIRONMENT;
		else if (merge_file(c, m, c->operand[i], text) != BASE_OK)
			exit_status = cmd_fail(c, c->err.status);
		base_free(text);
	}
	if (exit_status == CMD_OK && t->json) {
		exit_status = cmd_write_json(c, report_merge_json(m, limit));
	} else if (exit_status == CMD_OK) {
		struct report_style st = cmd_style(c);
		struct base_str s = {0};
		report_merge_text(&s, m, limit, &st);
		exit_status = cmd_write(c, &s);
	}
	report_merge_free(m);
	return exit_status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int cmd_top_open_output(struct top *t)
{
	const char *path = cmd_value(t->c, "output");
	if (!path)
		return CMD_OK;
	t->to = base_output_stream(path, BASE_OUTPUT_PRIVATE, &t->c->err);
	return t->to ? CMD_OK : cmd_fail(t->c, t->c->err.status);
}

/* -p NAME, for a release: until then -p was --process. */
static bool cmd_top_process(struct cmd *c, const char **ret)
{
	const char *pid = cmd_value(c, "pid");
	*ret = pid ? pid : cmd_value(c, "process");
	if (pid && cmd_given(c, "process"))
		return cmd_usage(c, "--pid and --process: one of them says which") == CMD_OK;
	if (pid && !cmd_value_is_count(pid))
		cmd_note(c, "-p is a process's number; of names it is --process=%s", pid);
	return true;
}

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
	if (cmd_given(c, "merge"))
		return c->nr_operands ? cmd_top_merge(&t, (size_t)limit)
				      : cmd_usage(c, "--merge: of which files?");
	struct live_options o = {.interval_ns = t.interval_ns,
		.hindsight = 1,
		.cgroup = cmd_value(c, "cgroup"),
		.answer = cmd_top_show,
		.ctx = &t};
	if (!cmd_top_process(c, &o.process))
		return CMD_USAGE;
	bool program = c->nr_operands && !strcmp(c->operand[0], "--");
	if (program && c->nr_operands < 2)
		return cmd_usage(c, "no program given after --");
	if (c->nr_operands > 1 && !program)
		return cmd_usage(c, "one trace at a time; a program comes after --");
	t.to = program ? stderr : stdout; /* the program's own output stays what it is */
	int exit_status = cmd_top_open_output(&t);
	if (exit_status != CMD_OK)
		return exit_status;
	t.redraw = isatty(fileno(t.to)) && !c->term.dumb && !t.json;
	exit_status = program          ? top_now(&t, &o, c->operand + 1)
		      : c->nr_operands ? top_trace(&t, &o)
				       : top_now(&t, &o, NULL);
	if (t.to != stdout && t.to != stderr && fclose(t.to) && exit_status == CMD_OK)
		exit_status = cmd_fail(c, base_fail_errno(&c->err, errno, "writing the answers"));
	return exit_status;
}
