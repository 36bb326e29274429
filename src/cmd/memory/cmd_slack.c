/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_slack.c - `longpole slack`: how long each instruction may be delayed. */
#include "cmd/memory/slack.h"

#include <inttypes.h>
#include <string.h>

enum { WINDOW = 128, WIDTH = 4, PENALTY_CYCLES = 11, CORE_MOST = 1 << 20 };
enum { CONFIG_LIMIT_BYTES = 1 << 20, SETTINGS_MAX = 48, ROWS = 10 };

static const struct cmd_option option[] = {
	{"format", 'f', "NAME", NULL, "the traces' format (default: found)"},
	{"trace-list", 't', "FILE", "@file", "a file that lists the traces, one a line"},
	{"process", 0, "N", NULL,
		"of a recording of several processes: this one, by number or pid (default: the one "
		"that did most)"},
	{"machine", 'M', "CONFIG", "@file", "the machine, an INI file"},
	{"set", 0, "KEY=VALUE", NULL, "one parameter of the machine (may be given again)"},
	{"list-parameters", 'l', NULL, NULL,
		"no simulation: the machine's parameters with what they mean"},
	{"continuous", 'c', "PROCESSOR", NULL,
		"end with the last instruction of that processor; what does not lead there is not "
		"in the graph"},
	{"from-parallel", 0, NULL, NULL, "the graph begins when the first thread is created"},
	{"from-marker", 0, "N", NULL, "the graph begins at the first marker with that number"},
	{"spins", 0, NULL, NULL,
		"find loops that only wait: they wait anew in the machine, their instructions are "
		"counted apart, and what low power would save there"},
	{"as-recorded", 0, NULL, NULL,
		"with --spins: such loops go round as often as they did when recorded"},
	{"until", 0, "CYCLES", NULL, "stop the machine after so many cycles"},
	{"out-of-order", 'o', NULL, NULL, "on out-of-order processors, as B. Fields models them"},
	{"window", 0, "N", NULL, "with -o: instructions in the reorder buffer (default 128)"},
	{"width", 0, "N", NULL, "with -o: instructions dispatched, and committed, in a cycle (4)"},
	{"penalty", 0, "CYCLES", NULL, "with -o: of a mispredicted branch (default 11)"},
	{"perfect-branches", 0, NULL, NULL, "with -o: no branch is mispredicted"},
	{"instructions", 0, "N", NULL, "with -o: look at the first N (default 2097152)"},
	{"top", 'n', "N", NULL, "rows of each table (default 10)"},
	{"max-memory", 0, "SIZE", NULL,
		"for kept edges, before they go to a temporary file (default 1G)"},
};

const struct cmd_details cmd_details_slack = {
	.usage = "[OPTIONS] TRACE...",
	.about = "Runs recorded instruction streams (longpole record --level 3) through a "
		 "simulated multiprocessor. It says how long each instruction could be delayed "
		 "before the program gets slower, and what the critical path consists of: by "
		 "processor, function, source line, instruction and data.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole slack run.lpt", "longpole slack --set=protocol=dirmosi run.lpt",
		"longpole slack --from-parallel --top=20 run.lpt",
		"longpole slack --out-of-order --window=256 run.lpt"},
};

static int cmd_slack_list_parameters(struct cmd *c)
{
	struct base_str text = {0};
	if (cmd_given(c, "json"))
		return cmd_write_parameters(c, slack_parameters(), NULL, NULL);
	base_str_add(&text, "[machine]\n");
	cmd_add_parameters(&text, slack_parameters(), NULL);
	base_str_add(&text,
		"Caches, nodes and protocols: 'longpole cdat --list-parameters'; here they begin "
		"as data_bytes = 128K, code_bytes = 128K, second_bytes = 4M, each 4 ways, "
		"protocol = mosi, a node for each thread. Latencies there are not used.\n");
	return cmd_write(c, &text);
}

static int cmd_slack_read_machine(struct cmd *c, struct slack_machine_config *k)
{
	const char *path = cmd_value(c, "machine"), *setting[SETTINGS_MAX];
	size_t nr = cmd_values(c, "set", setting, SETTINGS_MAX);
	enum base_status s = BASE_OK;
	if (path) {
		char *text = cmd_read_file(c, path, CONFIG_LIMIT_BYTES);
		if (!text)
			return cmd_exit_of(c->err.status);
		s = slack_machine_config_read(k, text, path, &c->err);
		base_free(text);
	}
	for (size_t i = 0; i < nr && s == BASE_OK; i++)
		s = slack_machine_config_set(k, setting[i], &c->err);
	return s == BASE_OK ? CMD_OK : cmd_fail(c, s);
}

static void cmd_slack_show_progress(void *ctx, unsigned pass, uint64_t instructions)
{
	cmd_progress_show(ctx, pass == 1 ? "simulating" : "again, for slack", instructions, 0,
		"instructions");
}

static bool cmd_slack_read_options(struct cmd *c, struct slack_options *o, uint64_t *rows)
{
	uint64_t endpoint = 0;
	if (!cmd_value_count(c, "continuous", &endpoint) ||
		!cmd_value_count(c, "from-marker", &o->marker) ||
		!cmd_value_count(c, "until", &o->machine.until) ||
		!cmd_value_count(c, "top", rows) ||
		!cmd_value_size(c, "max-memory", &o->memory_bytes))
		return false;
	o->from_marker = cmd_given(c, "from-marker");
	o->continuous = cmd_given(c, "continuous");
	o->endpoint = endpoint < UINT32_MAX ? (uint32_t)endpoint : UINT32_MAX;
	o->from_parallel = cmd_given(c, "from-parallel");
	o->progress = cmd_slack_show_progress;
	o->ctx = c;
	return true;
}

static int cmd_slack_answer(struct cmd *c, const struct cmd_slack_view *v)
{
	struct base_str text = {0};
	if (cmd_given(c, "json"))
		return cmd_write_result(c, cmd_slack_document.name, cmd_slack_json(v));
	if (v->fields)
		cmd_slack_fields_text(&text, v);
	else
		cmd_slack_text(&text, v);
	return cmd_write_prose(c, &text);
}

static int cmd_slack_in_order(struct cmd *c, struct memory_source *source, struct cmd_slack_view *v)
{
	struct slack_analysis *a;
	cmd_progress_reset(c);
	enum base_status s = slack_analyse(v->config, source, v->options, &a, &c->err);
	cmd_progress_clear(c);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	v->result = slack_analysis_result(a);
	v->is_in_order = true;
	int status = cmd_slack_answer(c, v);
	slack_analysis_free(a);
	return status;
}

static bool cmd_slack_small_count(struct cmd *c, const char *name, uint64_t least, uint32_t *ret)
{
	uint64_t n = *ret;
	if (!cmd_value_count(c, name, &n))
		return false;
	if (n >= least && n <= CORE_MOST) {
		*ret = (uint32_t)n;
		return true;
	}
	cmd_usage(c, "--%s: %" PRIu64 " to %d", name, least, CORE_MOST);
	return false;
}

static int out_of_order(struct cmd *c, struct memory_source *source, struct cmd_slack_view *v)
{
	struct cmd_slack_decoder d = {.source = source};
	struct slack_core core = {.window = WINDOW,
		.width = WIDTH,
		.penalty_cycles = PENALTY_CYCLES,
		.perfect_branches = cmd_given(c, "perfect-branches"),
		.decode = cmd_slack_decode,
		.decode_ctx = &d};
	struct slack_fields *f;
	if (v->options->continuous)
		return cmd_usage(c, "--continuous goes without --out-of-order");
	if (!cmd_slack_small_count(c, "window", 1, &core.window) ||
		!cmd_slack_small_count(c, "width", 1, &core.width) ||
		!cmd_slack_small_count(c, "penalty", 0, &core.penalty_cycles) ||
		!cmd_value_count(c, "instructions", &core.most))
		return CMD_USAGE;
	enum base_status s = slack_fields_new(v->config, source, v->options, &core, &f, &c->err);
	cmd_slack_decoder_fini(&d);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	v->fields = slack_fields_result(f);
	v->core = &core;
	int status = cmd_slack_answer(c, v);
	v->core = NULL;
	v->fields = NULL;
	slack_fields_free(f);
	return status;
}

static int find_spins(struct cmd *c, struct memory_source *source, struct slack_options *o,
	struct slack_spins **ret, struct slack_waits **ret_waits)
{
	struct cmd_slack_decoder d = {.source = source};
	enum base_status s = slack_spins_find(source, cmd_slack_decode, &d, ret, &c->err);
	if (s == BASE_OK && !cmd_given(c, "as-recorded"))
		s = slack_waits_find(source, *ret, cmd_slack_decode, &d, ret_waits, &c->err);
	cmd_slack_decoder_fini(&d);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	o->machine.spinning = slack_spins_count;
	o->machine.spinning_ctx = *ret;
	o->machine.spins = *ret;
	o->machine.waits = *ret_waits;
	return CMD_OK;
}

static int cmd_slack_run(
	struct cmd *c, struct memory_source *source, const struct slack_machine_config *k)
{
	struct slack_options o = {0};
	uint64_t rows = ROWS;
	if (!cmd_slack_read_options(c, &o, &rows))
		return CMD_USAGE;
	struct cmd_slack_names names = {.source = source};
	struct cmd_slack_view v = {
		.trace = c->nr_operands ? c->operand[0] : cmd_value(c, "trace-list"),
		.source = source,
		.config = k,
		.options = &o,
		.names = &names,
		.rows = (size_t)rows};
	struct slack_spins *spins = NULL;
	struct slack_waits *waits = NULL;
	int status = cmd_given(c, "spins") ? find_spins(c, source, &o, &spins, &waits) : CMD_OK;
	v.spins = spins;
	v.waits = waits;
	if (status == CMD_OK)
		status = cmd_given(c, "out-of-order") ? out_of_order(c, source, &v)
						      : cmd_slack_in_order(c, source, &v);
	slack_waits_free(waits);
	slack_spins_free(spins);
	cmd_slack_names_fini(&names);
	return status;
}

int cmd_run_slack(struct cmd *c)
{
	struct memory_source *source;
	if (cmd_given(c, "list-parameters"))
		return cmd_slack_list_parameters(c);
	int status = cmd_streams_open_source(c, 0, &source);
	if (status != CMD_OK)
		return status;
	struct slack_machine_config *k = slack_machine_config_new(source->info.nr_threads);
	if (!k)
		status = cmd_fail(
			c, base_fail(&c->err, BASE_ERR_NOMEM, "no memory for the machine"));
	else
		status = cmd_slack_read_machine(c, k);
	if (status == CMD_OK)
		status = cmd_slack_run(c, source, k);
	slack_machine_config_free(k);
	memory_source_close(source);
	return status;
}
