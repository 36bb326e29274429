/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_noc_compare.c - `longpole noc replay`: one graph through one network; `longpole noc compare`:
 * reference, time stamps only, and inferred graphs, side by side on several networks. */
#include "cmd/noc/noc_graph.h"

#include "base/column.h"
#include "noc/compare.h"

#include <math.h>
#include <stdlib.h>

struct progress {
	struct cmd *c;
	const char *what;
	uint64_t all;
};

static void cmd_noc_compare_show(void *ctx, uint64_t done)
{
	struct progress *p = ctx;
	cmd_progress_show(p->c, p->what, done, p->all, "packets");
}

static bool is_own_setting(const char *operand)
{
	return !strncmp(operand, "on=", 3) || !strncmp(operand, "how=", 4);
}

/* The settings of the command line over `c`'s defaults or a standard network. */
static enum base_status cmd_noc_compare_configure(
	struct cmd *c, struct noc_config *config, const struct noc_standard *standard)
{
	enum base_status s = BASE_OK;
	noc_config_init(config);
	for (size_t i = 0; standard && i < 3 && *standard->setting[i] && s == BASE_OK; i++)
		s = noc_config_set(config, standard->setting[i], &c->err);
	for (size_t k = 1; k < c->nr_operands && s == BASE_OK; k++)
		if (cmd_noc_is_setting(c->operand[k]) && !is_own_setting(c->operand[k]))
			s = noc_config_set(config, c->operand[k], &c->err);
	return s;
}

enum { GRAPHS_MAX = 8 };

struct comparison {
	struct cmd *c;
	struct noc_pdg *graph[GRAPHS_MAX]; /* the first is the reference */
	const char *path[GRAPHS_MAX];
	size_t nr;
	struct base_str text;
	json_t *rows;
	/* of all networks but the ideal one: sums of |execution error|, and the largest; of the
	 * stripped replay [0] and of each graph but the reference */
	double sum[GRAPHS_MAX], worst[GRAPHS_MAX];
	unsigned nr_networks;
	struct {
		const char *network;
		uint64_t cycles;
	} least, most; /* of the reference, on those networks */
};

struct comparison_row {
	const char *network, *replay;
	uint64_t cycles, took_ns;
	double latency;
	struct noc_error error;
};
struct replay_answer {
	const struct noc_replay_result *r;
	const char *how;
	uint64_t took_ns;
};
#include "cmd/noc/noc_compare.def"

/* ---- one replay ------------------------------------------------------------------------------ */

static const char *const how_words[] = {"graph", "stripped"};

static int print_replay(struct cmd *c, const struct noc_replay_result *r,
	const struct noc_config *config, uint32_t nr_nodes, const char *how, uint64_t took_ns)
{
	double latency = noc_replay_mean_latency(r);
	double network = r->packets ? (double)r->network_latency_cycles / (double)r->packets : NAN;
	double hops = r->packets ? (double)r->hops / (double)r->packets : NAN;
	if (cmd_given(c, "json"))
		return cmd_write_result(c, cmd_noc_replay_document.name,
			base_table_json(&cmd_noc_replay_document,
				&(struct replay_answer){r, how, took_ns}, NULL, 0));
	struct base_str text = {0};
	base_str_add_counted(&text, "%s {packet|packets} in ", r->packets);
	base_str_add_counted(&text, "%s {cycle|cycles} on ", r->execution_cycles);
	cmd_noc_describe(&text, config);
	base_str_addf(&text, " (simulated; %s).\n",
		strcmp(how, "graph") ? "sent at their time stamps, whatever has come"
				     : "each sent when what it waits for has come");
	base_str_add(&text, "  mean packet latency ");
	cmd_noc_add_number(&text, latency, 0, 2);
	base_str_add(&text, " cycles, of which ");
	cmd_noc_add_number(&text, network, 0, 2);
	base_str_add(&text, " in the network; ");
	cmd_noc_add_number(&text, hops, 0, 2);
	base_str_add(&text, " hops\n");
	base_str_addf(&text, "  %.2f M packets a second\n",
		took_ns ? (double)r->packets * 1e3 / (double)took_ns : 0);
	if (r->network_nodes > nr_nodes)
		base_str_addf(&text,
			"CAVEAT  the network has %u {node|nodes}, the packets use %u: the others "
			"send nothing. Its shape is set by k, n or dims\n",
			r->network_nodes, nr_nodes);
	if (!strcmp(how, how_words[NOC_REPLAY_GRAPH]))
		base_str_addf(&text, "NEXT  longpole noc compare %s\n", cmd_noc_file(c, 0));
	return cmd_write_prose(c, &text);
}

/* The packets with the times that they had in the replay. */
static enum base_status write_replay(
	struct cmd *c, struct noc_pdg *g, const struct noc_replay_result *r, const char *path)
{
	size_t size = g->nr_packets * sizeof *g->transmit_cycle;
	if (size) {
		memcpy(g->transmit_cycle, r->transmit_cycle, size);
		memcpy(g->receive_cycle, r->receive_cycle, size);
	}
	return noc_pdg_write(g, path, &c->err);
}

static const struct cmd_option replay_option[] = {
	NOC_OPTION_OUTPUT("TRACE", "where the packets with their new times go"), NOC_OPTION_LIST};

const struct cmd_details cmd_details_noc_replay = {
	.usage = "[-o TRACE] GRAPH [how=graph|stripped] [KEY=VALUE...]",
	.about = "Sends a graph's packets through a network, each when what it waits for "
		 "has happened; how=stripped: at its time stamp. Other parameters are "
		 "the network's.",
	.option = replay_option,
	.nr_options = BASE_COUNT(replay_option),
	.example = {"longpole noc replay inferred.lpt topology=torus dims=4x4"},
};

int cmd_noc_replay(struct cmd *c)
{
	const char *path = cmd_noc_file(c, 0), *output = cmd_value(c, "output");
	struct noc_replay_result r;
	struct noc_config config;
	unsigned how = NOC_REPLAY_GRAPH;
	if (cmd_given(c, "list-parameters"))
		return cmd_noc_list_parameters(c);
	if (!path || cmd_noc_file(c, 1))
		return cmd_usage(c, "give one graph or trace of packets");
	if (!cmd_noc_word(c, "how", how_words, 2, &how))
		return CMD_USAGE;
	enum base_status s = cmd_noc_compare_configure(c, &config, NULL);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	struct noc_pdg *g = cmd_noc_read(c, path);
	if (!g)
		return cmd_exit_of(c->err.status);
	if (!g->has_graph)
		how = NOC_REPLAY_STRIPPED;
	struct progress p = {c, "replaying", g->nr_packets};
	uint64_t began_ns = cmd_now_ns();
	s = noc_replay(
		g, &config, (enum noc_replay_mode)how, cmd_noc_compare_show, &p, &r, &c->err);
	cmd_progress_clear(c);
	uint64_t took_ns = cmd_now_ns() - began_ns;
	int exit_status;
	if (s == BASE_OK && output)
		s = write_replay(c, g, &r, output);
	exit_status = s == BASE_OK
			      ? print_replay(c, &r, &config, g->nr_nodes, how_words[how], took_ns)
			      : cmd_fail(c, s);
	if (s == BASE_OK)
		noc_replay_result_fini(&r);
	noc_pdg_free(g);
	return exit_status;
}

/* ---- side by side ---------------------------------------------------------------------------- */

static void cmd_noc_compare_add_row(struct comparison *x, const char *network, const char *what,
	const struct noc_replay_result *r, const struct noc_error *e, uint64_t took_ns)
{
	double latency = noc_replay_mean_latency(r);
	base_str_addf(&x->text, "  %-8s %-24s %12llu", network, what,
		(unsigned long long)r->execution_cycles);
	cmd_noc_add_error(&x->text, e->execution, 10, 3);
	cmd_noc_add_number(&x->text, latency, 11, 2);
	cmd_noc_add_error(&x->text, e->latency, 10, 3);
	base_str_add(&x->text, "\n");
	struct comparison_row row = {network, what, r->execution_cycles, took_ns, latency, *e};
	json_array_append_new(x->rows, base_table_json(&comparison_row, &row, NULL, 0));
}

static enum base_status replay_one(struct comparison *x, const struct noc_standard *network,
	const struct noc_pdg *g, enum noc_replay_mode mode, const char *what,
	const struct noc_replay_result *reference, struct noc_replay_result *ret,
	struct noc_error *ret_error)
{
	struct noc_config config;
	struct progress p = {x->c, network->name, g->nr_packets};
	enum base_status s = cmd_noc_compare_configure(x->c, &config, network);
	if (s != BASE_OK)
		return s;
	uint64_t began_ns = cmd_now_ns();
	s = noc_replay(g, &config, mode, cmd_noc_compare_show, &p, ret, &x->c->err);
	uint64_t took_ns = cmd_now_ns() - began_ns;
	cmd_progress_clear(x->c);
	if (s != BASE_OK)
		return base_cause(&x->c->err, s, "on %s", network->name);
	s = noc_compare(g, reference ? reference : ret, ret, ret_error, &x->c->err);
	if (s == BASE_OK)
		cmd_noc_compare_add_row(x, network->name, what, ret, ret_error, took_ns);
	else
		noc_replay_result_fini(ret);
	return s;
}

static void note_extremes(struct comparison *x, const char *network, uint64_t cycles)
{
	if (!x->nr_networks || cycles < x->least.cycles) {
		x->least.network = network;
		x->least.cycles = cycles;
	}
	if (!x->nr_networks || cycles > x->most.cycles) {
		x->most.network = network;
		x->most.cycles = cycles;
	}
}

/* All replays on one network: the reference, its time stamps, the other graphs. */
static enum base_status cmd_noc_compare_compare_on(
	struct comparison *x, const struct noc_standard *network)
{
	struct noc_replay_result reference = {0}, other = {0};
	struct noc_error e = {0};
	enum base_status s = replay_one(
		x, network, x->graph[0], NOC_REPLAY_GRAPH, "reference", NULL, &reference, &e);
	if (s != BASE_OK)
		return s;
	bool counts = strcmp(network->name, "ideal") != 0;
	for (size_t i = 0; i < x->nr && s == BASE_OK; i++) {
		s = replay_one(x, network, x->graph[i], i ? NOC_REPLAY_GRAPH : NOC_REPLAY_STRIPPED,
			i ? x->path[i] : "time stamps", &reference, &other, &e);
		if (s != BASE_OK)
			break;
		if (counts) {
			x->sum[i] += fabs(e.execution);
			x->worst[i] = fmax(x->worst[i], fabs(e.execution));
		}
		noc_replay_result_fini(&other);
	}
	if (counts)
		note_extremes(x, network->name, reference.execution_cycles);
	x->nr_networks += counts;
	noc_replay_result_fini(&reference);
	return s;
}

/* Which network is worth it, to a user who waits for the end. */
static void add_extremes(struct base_str *text, const struct comparison *x)
{
	if (x->nr_networks < 2)
		return;
	base_str_addf(text, "  The run is shortest on %s; on %s it takes %.2f %% longer.\n",
		x->least.network, x->most.network,
		100 * ((double)x->most.cycles / (double)(x->least.cycles ? x->least.cycles : 1) -
			      1));
}

static int print_comparison(struct comparison *x)
{
	struct base_str first = {0};
	double nr = x->nr_networks ? (double)x->nr_networks : (double)NAN;
	if (cmd_given(x->c, "json")) {
		base_str_fini(&x->text);
		json_t *result = base_table_json(&cmd_noc_compare_document, x, NULL, 0);
		json_decref(x->rows);
		return cmd_write_result(x->c, cmd_noc_compare_document.name, result);
	}
	json_decref(x->rows);
	if (x->nr_networks)
		base_str_addf(&first,
			"Time stamps alone miss the execution time by %.2f %% on average "
			"(worst %.2f %%)",
			100 * x->sum[0] / nr, 100 * x->worst[0]);
	else
		base_str_add(&first, "No error on average: no network of routers was compared "
				     "(on= names only the ideal one).\n");
	for (size_t i = 1; i < x->nr && x->nr_networks; i++)
		base_str_addf(&first, ", %s by %.3f %% (worst %.3f %%)", x->path[i],
			100 * x->sum[i] / nr, 100 * x->worst[i]);
	if (x->nr_networks)
		base_str_addf(&first, ", on %u simulated {network|networks}.\n", x->nr_networks);
	add_extremes(&first, x);
	cmd_noc_say_left_out(x->c, &first, x->graph[0]->nr_nodes);
	base_str_addf(&first, "  %-8s %-24s %12s %11s %10s %11s\n", "network", "replay", "cycles",
		"error", "latency", "error");
	base_str_add(&first, base_str_text(&x->text));
	base_str_fini(&x->text);
	return cmd_write_prose(x->c, &first);
}

/* What the number of nodes and on= say already, and names in on= that nothing has. False: a message
 * was printed. */
static bool check_settings(struct cmd *c, uint32_t nr_nodes)
{
	static const char *const shape[] = {"topology", "k", "n", "dims", "nodes", "graph"};
	for (size_t i = 0; i < BASE_COUNT(shape); i++)
		if (cmd_noc_setting(c, shape[i])) {
			cmd_usage(c,
				"%s=: compare gives each network the shape that fits the number of "
				"nodes; for one of your own: longpole noc replay",
				shape[i]);
			return false;
		}
	return cmd_noc_check_networks(c, nr_nodes);
}

static int run_comparison(struct comparison *x)
{
	struct noc_standard standard[NOC_STANDARDS_MAX];
	BASE_ASSUME(x->graph[0]);
	size_t nr = noc_standards(x->graph[0]->nr_nodes, standard), nr_run = 0;
	enum base_status s = BASE_OK;
	if (!check_settings(x->c, x->graph[0]->nr_nodes))
		return CMD_USAGE;
	x->rows = json_array();
	for (size_t i = 0; i < nr && s == BASE_OK; i++)
		if (cmd_noc_is_wanted(x->c, standard[i].name)) {
			s = cmd_noc_compare_compare_on(x, &standard[i]);
			nr_run++;
		}
	if (s == BASE_OK && nr_run)
		return print_comparison(x);
	json_decref(x->rows);
	base_str_fini(&x->text);
	return s != BASE_OK ? cmd_fail(x->c, s) : cmd_usage(x->c, "on= names no network");
}

static const struct cmd_option compare_option[] = {NOC_OPTION_LIST};

const struct cmd_details cmd_details_noc_compare = {
	.usage = "REFERENCE [GRAPH...] [on=NAMES] [KEY=VALUE...]",
	.about = "Replays a reference graph, its time stamps alone, and other graphs of "
		 "the same packets on several networks, and says how far execution time "
		 "and latency are off.",
	.option = compare_option,
	.nr_options = BASE_COUNT(compare_option),
	.example = {"longpole noc compare ref.lpt inferred.lpt on=mesh,ring"},
};

int cmd_noc_compare(struct cmd *c)
{
	struct comparison x = {.c = c};
	int exit_status = CMD_OK;
	if (cmd_given(c, "list-parameters"))
		return cmd_noc_list_parameters(c);
	if (!cmd_noc_file(c, 0))
		return cmd_usage(c, "give the reference graph, then inferred ones");
	for (size_t i = 0; cmd_noc_file(c, i) && exit_status == CMD_OK; i++) {
		if (i == GRAPHS_MAX) {
			exit_status = cmd_usage(c, "at most %d graphs", GRAPHS_MAX);
			break;
		}
		x.path[i] = cmd_noc_file(c, i);
		x.graph[i] = cmd_noc_read(c, x.path[i]);
		if (!x.graph[i]) {
			exit_status = cmd_exit_of(c->err.status);
			break;
		}
		x.nr++;
		if (!x.graph[i]->has_graph)
			exit_status = cmd_usage(c, "%s has times only", x.path[i]);
		else if (!cmd_noc_same_packets(x.graph[i], x.graph[0]))
			exit_status = cmd_usage(
				c, "%s is not of the packets of %s", x.path[i], x.path[0]);
	}
	if (exit_status == CMD_OK)
		exit_status = run_comparison(&x);
	for (size_t i = 0; i < x.nr; i++)
		noc_pdg_free(x.graph[i]);
	return exit_status;
}
