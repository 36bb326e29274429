/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_graph.c - `longpole graph`: the compact graph, as DOT, a picture, a table or JSON. */
#include "cmd/cmd.h"

#include "report/graph/graph.h"

#include <string.h>
#include <unistd.h>

enum { LIMIT_DEFAULT = 30, MANY_NODES = 300 };

enum format { FORMAT_dot, FORMAT_svg, FORMAT_png, FORMAT_json, FORMAT_text, FORMAT_NR };
static const char *const format_name[FORMAT_NR] = {"dot", "svg", "png", "json", "text"};

static const struct cmd_option option[] = {
	{"view", 'v', "VIEW", "interaction states",
		"who puts into and takes from which queue (interaction, the default), or every "
		"transition and state"},
	{"actor", 'a', "PATTERN", NULL,
		"the states of one thread or state machine alone, the others as stubs"},
	{"format", 'f', "FORMAT", "dot svg png json text",
		"what to write (default: by the output's ending, else dot)"},
	{"output", 'o', "FILE", "@file", "where to (default: standard output)"},
	{"max-nodes", 0, "N", NULL, "leave out what matters least beyond N nodes (default 1500)"},
	{"each-actor", 0, NULL, NULL,
		"draw each thread of a group, and each pipe and socket, however many"},
	{"limit", 'n', "N", NULL, "text: show N lines (default 30)"},
	{"all", 0, NULL, NULL,
		"show every line of text, and draw also queues that nobody waited for"},
};

const struct cmd_details cmd_details_graph = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Draws the recorded program as a graph that stays small however long it ran. It "
		 "shows threads and the queues between them, or every transition between states "
		 "once, with visits, time, and time on the critical path. Red is critical, blue is "
		 "often used. svg and png need graphviz's dot.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole graph -o server.svg server.lpt",
		"longpole graph --view=states --max-nodes=60 -o server.png server.lpt",
		"longpole graph --actor='*worker*' --format=text server.lpt",
		"longpole graph server.lpt | dot -Tpdf -o server.pdf"},
};

/* --json, --format, else what the file's name ends with. */
static bool format_of(struct cmd *c, enum format *ret)
{
	const char *given = cmd_given(c, "json") ? "json" : cmd_value(c, "format");
	const char *path = cmd_value(c, "output"), *dot = path ? strrchr(path, '.') : NULL;
	if (!given && dot && !strchr(dot, '/'))
		given = !strcmp(dot, ".gv") ? "dot" : !strcmp(dot, ".txt") ? "text" : dot + 1;
	*ret = FORMAT_dot;
	if (!given)
		return true;
	for (unsigned i = 0; i < FORMAT_NR; i++) {
		if (!strcmp(given, format_name[i])) {
			*ret = (enum format)i;
			return true;
		}
	}
	cmd_usage(c, "%s: no format is known by that ending; give one with --format", path);
	return false;
}

static enum base_status add_picture(
	struct cmd *c, struct base_str *out, const struct report_graph *g, enum format format)
{
	struct base_str dot = {0};
	report_graph_dot(&dot, g);
	if (g->nr_nodes > MANY_NODES && !cmd_given(c, "quiet"))
		cmd_note(c,
			"laying out %zu {node|nodes} takes dot a while; --max-nodes=60 is quicker, "
			"and easier to read",
			g->nr_nodes);
	enum base_status s = dot.failed ? base_fail(&c->err, BASE_ERR_NOMEM,
						  "out of memory for the graph's text")
					: cmd_layout(&dot, format_name[format], out, &c->err);
	base_str_fini(&dot);
	return s;
}

static enum base_status render(struct cmd *c, struct base_str *out, const struct report_graph *g,
	enum format format, size_t limit)
{
	struct report_style st = cmd_style(c);
	switch (format) {
	case FORMAT_json:
		cmd_add_json(out, report_graph_json(g));
		return BASE_OK;
	case FORMAT_text:
		st.color &= !cmd_given(c, "output");
		report_graph_text(out, g, limit, &st);
		return BASE_OK;
	case FORMAT_svg:
	case FORMAT_png:
		return add_picture(c, out, g, format);
	case FORMAT_dot:
	case FORMAT_NR:
		break;
	}
	report_graph_dot(out, g);
	return BASE_OK;
}

static int cmd_graph_answer(
	struct cmd *c, const struct report_graph *g, enum format format, size_t limit)
{
	struct base_str text = {0};
	const char *path = cmd_value(c, "output");
	enum base_status s = render(c, &text, g, format, limit);
	cmd_progress_clear(c);
	if (s != BASE_OK) {
		base_str_fini(&text);
		return cmd_fail(c, s);
	}
	if (!path || !strcmp(path, "-"))
		return format == FORMAT_png ? cmd_write_bytes(c, &text) : cmd_write(c, &text);
	int exit_status = format == FORMAT_png ? cmd_write_file_bytes(c, &text, path)
					       : cmd_write_file(c, &text, path);
	base_str_fini(&text);
	if (exit_status == CMD_OK)
		cmd_note(c, "wrote %s (%zu {node|nodes}, %zu {line|lines})", path, g->nr_nodes,
			g->nr_edges);
	return exit_status;
}

static bool cmd_graph_options(
	struct cmd *c, struct report_graph_options *o, enum format *format, size_t *limit)
{
	const char *view = cmd_value(c, "view"), *path = cmd_value(c, "output");
	uint64_t max_nodes = REPORT_GRAPH_NODES_DEFAULT;
	o->actor = cmd_value(c, "actor");
	if (o->actor && view) {
		cmd_usage(c, "--actor is a view of its own: leave --view out");
		return false;
	}
	o->view = o->actor                          ? REPORT_GRAPH_machine
		  : view && !strcmp(view, "states") ? REPORT_GRAPH_states
						    : REPORT_GRAPH_interaction;
	o->each_actor = cmd_given(c, "each-actor");
	o->idle_queues = cmd_given(c, "all");
	if (!format_of(c, format) || !cmd_value_count(c, "max-nodes", &max_nodes) ||
		!cmd_value_limit(c, limit))
		return false;
	if (!max_nodes) {
		cmd_usage(c, "--max-nodes: a graph has at least one node");
		return false;
	}
	o->max_nodes = (size_t)max_nodes;
	if (*format == FORMAT_png && (!path || !strcmp(path, "-")) && isatty(STDOUT_FILENO)) {
		cmd_usage(c, "a png is binary: give a file with -o, or redirect");
		return false;
	}
	return true;
}

int cmd_run_graph(struct cmd *c)
{
	struct report_run run;
	struct report_graph_options o = {0};
	struct report_graph *g = NULL;
	enum format format;
	size_t limit = LIMIT_DEFAULT;
	if (!cmd_graph_options(c, &o, &format, &limit))
		return CMD_USAGE;
	int exit_status = cmd_open_operand(c, &run);
	if (exit_status != CMD_OK)
		return exit_status;
	enum base_status s = report_graph_build(&run, &o, &g, &c->err);
	exit_status =
		s == BASE_OK
			? cmd_graph_answer(c, g, format, limit)
			: cmd_fail(c, base_cause(&c->err, s, "while analysing %s", run.trace_path));
	report_graph_free(g);
	cmd_close(c, &run);
	return exit_status;
}
