/* SPDX-License-Identifier: Apache-2.0 */
/* term.c - what the terminal can do; progress, errors, results. */
#include "cmd/cmd.h"

#include "config.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
	COLUMNS_PIPED = 120,
	COLUMNS_MIN = 60,
	COLUMNS_MAX = 400,
	ROWS_MAX = 1000,
	DRAW_AFTER_NS = 500 * 1000 * 1000,
	DRAW_EVERY_NS = 100 * 1000 * 1000,
};

/* ---- what it can do -------------------------------------------------------------------------- */

/* A size that the environment gives (COLUMNS, LINES); 0: none, or what is no number ("-5"). */
static unsigned long term_size_given(const char *name)
{
	const char *given = getenv(name);
	return given && cmd_value_is_count(given) ? strtoul(given, NULL, 10) : 0;
}

void cmd_terminal_measure(struct cmd_terminal *t, int fd)
{
	unsigned long columns = term_size_given("COLUMNS"), rows = term_size_given("LINES");
	struct winsize w = {0};
	if (isatty(fd) && !ioctl(fd, TIOCGWINSZ, &w)) {
		columns = columns ? columns : w.ws_col;
		rows = rows ? rows : w.ws_row;
	}
	columns = columns ? columns : COLUMNS_PIPED;
	t->columns = columns < COLUMNS_MIN   ? COLUMNS_MIN
		     : columns > COLUMNS_MAX ? COLUMNS_MAX
					     : (unsigned)columns;
	t->rows = rows > ROWS_MAX ? ROWS_MAX : (unsigned)rows;
}

static bool colored(enum cmd_when when, int fd, bool dumb)
{
	const char *no = getenv("NO_COLOR");
	if (when != CMD_AUTO)
		return when == CMD_ALWAYS;
	return isatty(fd) && !dumb && !(no && *no);
}

void cmd_terminal_init(struct cmd_terminal *t, enum cmd_when color)
{
	const char *term = getenv("TERM");
	bool dumb = term && !strcmp(term, "dumb");
	*t = (struct cmd_terminal){
		.dumb = dumb,
		.color_out = colored(color, STDOUT_FILENO, dumb),
		.color_err = colored(color, STDERR_FILENO, dumb),
		.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8"),
		.err_is_tty = isatty(STDERR_FILENO),
	};
	cmd_terminal_measure(t, STDOUT_FILENO);
}

struct report_style cmd_style(const struct cmd *c)
{
	return (struct report_style){.utf8 = c->term.utf8,
		.color = c->answer_on_stderr ? c->term.color_err : c->term.color_out,
		.columns = c->term.columns};
}

/* ---- messages -------------------------------------------------------------------------------- */

static void message(
	struct cmd *c, const char *label, const char *color, const char *fmt, va_list ap)
{
	char text[1024];
	struct base_str s = {0};
	cmd_progress_clear(c);
	(void)base_vformat(text, sizeof text, fmt, ap);
	base_str_add(&s, "longpole: ");
	base_str_addf(&s, "%s%s%s", c->term.color_err ? color : "", label,
		c->term.color_err && *color ? "\033[0m" : "");
	report_clean_add(&s, text);
	fprintf(stderr, "%s\n", base_str_text(&s));
	base_str_fini(&s);
}

void cmd_note(struct cmd *c, const char *fmt, ...)
{
	va_list ap;
	if (c->spec->flags & CMD_PROGRESS && cmd_given(c, "quiet"))
		return;
	va_start(ap, fmt);
	message(c, "", "", fmt, ap);
	va_end(ap);
}

void cmd_warn(struct cmd *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	message(c, "warning: ", "\033[1;33m", fmt, ap);
	va_end(ap);
}

void cmd_note_lines(struct cmd *c, const struct base_str *lines)
{
	const char *p = base_str_text(lines);
	while (p && *p) {
		size_t length = strcspn(p, "\n");
		cmd_note(c, "%.*s", (int)length, p);
		p += length + (p[length] == '\n');
	}
}

int cmd_usage(struct cmd *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	message(c, "error: ", "\033[1;31m", fmt, ap);
	va_end(ap);
	fprintf(stderr, "    try: longpole %s%s--help\n", c->spec->name, *c->spec->name ? " " : "");
	return CMD_USAGE;
}

int cmd_exit_of(enum base_status s)
{
	switch (s) {
	case BASE_OK:
	case BASE_END:
		return CMD_OK;
	case BASE_ERR_CORRUPT:
	case BASE_ERR_TRUNCATED:
	case BASE_ERR_VERSION:
	case BASE_ERR_FORMAT:
	case BASE_ERR_FOREIGN:
	case BASE_ERR_CLOCK:
		return CMD_BAD_TRACE;
	case BASE_ERR_USAGE:
	case BASE_ERR_NOTFOUND:
	case BASE_ERR_LACKS:
		return CMD_USAGE;
	default:
		return CMD_ENVIRONMENT;
	}
}

static void error_line(struct cmd *c, const char *fmt, ...) BASE_PRINTF(2, 3);
static void error_line(struct cmd *c, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	message(c, "error: ", "\033[1;31m", fmt, ap);
	va_end(ap);
}

int cmd_fail(struct cmd *c, enum base_status s)
{
	const struct base_err *e = &c->err;
	bool known = e->nr_causes > 0;
	const char *advice = base_status_advice(s);
	const struct base_refusal *refusal = base_refusal_of(e->sys_errno);
	error_line(c, "%s", known ? e->cause[0] : base_status_line(s));
	struct base_str more = {0};
	for (unsigned i = 1; i < e->nr_causes && i < BASE_ERR_CAUSES_MAX; i++) {
		base_str_add(&more, "    ");
		report_clean_add(&more, e->cause[i]);
		base_str_add(&more, "\n");
	}
	/* Usage, limits and what is not the kernel's say all in their first line; anything else
	 * gets a likely cause. */
	if (refusal) {
		base_str_addf(&more, "    likely cause: %s\n", refusal->cause);
		if (*refusal->advice)
			base_str_addf(&more, "    try: %s\n", refusal->advice);
	} else if (s != BASE_ERR_USAGE && s != BASE_ERR_LIMIT && s != BASE_ERR_NOTFOUND &&
		   (s != BASE_ERR_ENV || e->sys_errno || !known)) {
		if (known)
			base_str_addf(&more, "    likely cause: %s\n", base_status_line(s));
		if (*advice)
			base_str_addf(&more, "    try: %s\n", advice);
	} else if (s == BASE_ERR_NOTFOUND && *advice) {
		base_str_addf(&more, "    try: %s\n", advice);
	} else if (s == BASE_ERR_USAGE) {
		base_str_addf(&more, "    try: longpole %s%s--help\n", c->spec->name,
			*c->spec->name ? " " : "");
	}
	fputs(base_str_text(&more), stderr);
	base_str_fini(&more);
	return cmd_exit_of(s);
}

/* ---- results --------------------------------------------------------------------------------- */

int cmd_write_bytes(struct cmd *c, struct base_str *text)
{
	cmd_progress_clear(c);
	if (text->failed) {
		base_str_fini(text);
		return cmd_fail(
			c, base_fail(&c->err, BASE_ERR_NOMEM, "out of memory for the answer"));
	}
	size_t length = text->length;
	FILE *to = c->answer_on_stderr ? stderr : stdout;
	bool written = fwrite(base_str_text(text), 1, length, to) == length && !fflush(to);
	base_str_fini(text);
	if (written || (c->pager.pid && errno == EPIPE))
		return CMD_OK;
	return cmd_fail(c, base_fail_errno(&c->err, errno, "writing the answer"));
}

/* Whatever forgot to look at a name of a trace: it does not reach a terminal. */
int cmd_write(struct cmd *c, struct base_str *text)
{
	base_str_make_shown(text, BASE_SHOWN_LINES);
	if (!text->failed)
		cmd_pager_begin(c);
	return cmd_write_bytes(c, text);
}

void cmd_fold(const struct cmd *c, struct base_str *text)
{
	struct report_style style = cmd_style(c);
	report_fold(text, &style);
}

int cmd_write_prose(struct cmd *c, struct base_str *text)
{
	cmd_fold(c, text);
	return cmd_write(c, text);
}

/* (between quotes only: jansson itself writes nothing that is not shown) */
static int term_add_bytes(const char *bytes, size_t length, void *ctx)
{
	struct base_str *s = ctx;
	base_str_add_shown(s, bytes, length, BASE_SHOWN_JSON);
	return s->failed ? -1 : 0;
}

static void add_json(struct base_str *out, json_t *json, size_t flags)
{
	if (!json || json_dump_callback(json, term_add_bytes, out, flags | JSON_REAL_PRECISION(10)))
		out->failed = true;
	json_decref(json);
	base_str_add(out, "\n");
}

void cmd_add_json(struct base_str *out, json_t *json)
{
	add_json(out, json, JSON_INDENT(2));
}

void cmd_add_json_line(struct base_str *out, json_t *json)
{
	add_json(out, json, JSON_COMPACT);
}

json_t *cmd_result_json(const char *schema, json_t *result)
{
	return json_pack("{s:s, s:s, s:o}", "schema", schema, "tool", "longpole " LONGPOLE_VERSION,
		"result", result);
}

int cmd_write_result(struct cmd *c, const char *schema, json_t *result)
{
	return cmd_write_json(c, cmd_result_json(schema, result));
}

int cmd_write_json(struct cmd *c, json_t *json)
{
	struct base_str s = {0};
	cmd_add_json(&s, json);
	return cmd_write_bytes(c, &s);
}

int cmd_write_output(struct cmd *c, struct base_str *text)
{
	const char *path = cmd_value(c, "output");
	if (!path)
		return cmd_write(c, text);
	int exit_status = cmd_write_file(c, text, path);
	base_str_fini(text);
	return exit_status;
}

/* ---- progress -------------------------------------------------------------------------------- */

uint64_t cmd_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void cmd_progress_reset(struct cmd *c)
{
	c->progress.began_ns = cmd_now_ns();
	c->progress.drawn_ns = 0;
}

static bool term_is_due(struct cmd *c)
{
	struct cmd_progress *p = &c->progress;
	bool on = p->when == CMD_ALWAYS || (p->when == CMD_AUTO && c->term.err_is_tty &&
						   !c->term.dumb && !cmd_given(c, "quiet"));
	if (!on)
		return false;
	uint64_t now_ns = cmd_now_ns();
	uint64_t every_ns = c->term.err_is_tty ? DRAW_EVERY_NS : 10ull * DRAW_EVERY_NS;
	if (now_ns - p->began_ns < DRAW_AFTER_NS || now_ns - p->drawn_ns < every_ns)
		return false;
	p->drawn_ns = now_ns;
	return true;
}

static void term_draw(struct cmd *c, const char *text)
{
	if (c->term.err_is_tty) {
		fprintf(stderr, "\r%s\033[K", text);
		c->progress.visible = true;
	} else {
		fprintf(stderr, "longpole: %s\n", text);
	}
	fflush(stderr);
}

void cmd_progress_text(struct cmd *c, const char *text)
{
	if (term_is_due(c))
		term_draw(c, text);
}

void cmd_progress_show(
	struct cmd *c, const char *what, uint64_t done, uint64_t all, const char *unit)
{
	struct cmd_progress *p = &c->progress;
	if (!done || p->what != what) {
		p->what = what;
		if (!p->visible)
			cmd_progress_reset(c);
		else
			p->began_ns =
				cmd_now_ns() - DRAW_AFTER_NS; /* the next pass goes on at once */
	}
	if (!term_is_due(c))
		return;
	enum { BAR = 20 };
	double share = all ? (double)done / (double)all : 0;
	share = share > 1 ? 1 : share;
	double elapsed_s = (double)(cmd_now_ns() - p->began_ns) / 1e9;
	double rate = elapsed_s > 0 ? (double)done / elapsed_s : 0;
	struct base_str s = {0};
	base_str_add(&s, "[");
	for (unsigned i = 0; i < BAR; i++)
		base_str_add(&s, i < (unsigned)(share * BAR) ? "#" : ".");
	base_str_addf(&s, "] %3.0f %%  %s  ", share * 100, what);
	base_str_add_count(&s, (uint64_t)rate);
	base_str_addf(&s, " %s/s", unit);
	if (rate > 0 && all > done)
		base_str_addf(&s, "  %.0f s left", (double)(all - done) / rate + 0.5);
	term_draw(c, base_str_text(&s));
	base_str_fini(&s);
}

void cmd_progress_clear(struct cmd *c)
{
	if (c->progress.visible)
		fprintf(stderr, "\r\033[K");
	c->progress.visible = false;
}
