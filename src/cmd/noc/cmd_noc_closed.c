/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_noc_closed.c - `longpole noc closed`: a recorded program, its misses through the network; and
 * what a trace of it, and a graph inferred from a few, predict instead (seed 002, figures 8 to 10).
 */
#include "cmd/noc/noc_graph.h"

#include "base/column.h"
#include "noc/closed.h"
#include "noc/compare.h"
#include "noc/pdg/infer.h"
#include "noc/pdg/match.h"
#include "noc/pdg/sample.h"
#include "config.h"

#include <math.h>
#include <stdlib.h>

enum { FILES_MAX = 64, MACHINE_PREFIX = 8 /* of "machine." */ };

struct closed {
	struct cmd *c;
	struct noc_closed_options options;
	struct memory_cdat_config *machine;
	struct noc_config network;
	uint64_t runs, slow, uniform, process;
	uint64_t base_cycles; /* latency of all messages in the base run, unless ideal_cycles= says
				 another */
	uint32_t nr_threads;
	struct base_str text;
	json_t *rows;
	double sum[3], sum_latency[3], worst[3]; /* of time stamps, inferred, known: |error| */
	unsigned nr_networks;
	double matched_share;
	struct noc_infer_result inferred;
	struct noc_match_counts counts; /* inferred against known */
	uint64_t accesses, misses, messages;
	bool stopped;
};

static const char *const own_keys[] = {"runs", "slow", "uniform", "on", "accesses", "short_flits",
	"long_flits", "directory_cycles", "memory_cycles", "cache_cycles", "process"};

static bool is_own(const char *operand)
{
	for (size_t i = 0; i < BASE_COUNT(own_keys); i++) {
		size_t length = strlen(own_keys[i]);
		if (!strncmp(operand, own_keys[i], length) && operand[length] == '=')
			return true;
	}
	return false;
}

/* ---- settings -------------------------------------------------------------------------------- */

static bool read_own(struct closed *x)
{
	struct noc_closed_options *o = &x->options;
	uint64_t v[] = {o->short_flits, o->long_flits, o->directory_cycles, o->memory_cycles,
		o->cache_cycles};
	x->runs = 4;
	x->slow = 30;
	x->uniform = 1;
	for (size_t i = 0; i < BASE_COUNT(v); i++)
		if (!cmd_noc_number(x->c, own_keys[5 + i], i < 2, 10000, &v[i]))
			return false;
	o->short_flits = (uint32_t)v[0];
	o->long_flits = (uint32_t)v[1];
	o->directory_cycles = (uint32_t)v[2];
	o->memory_cycles = (uint32_t)v[3];
	o->cache_cycles = (uint32_t)v[4];
	return cmd_noc_number(x->c, "runs", 1, NOC_RUNS_MAX - 1, &x->runs) &&
	       cmd_noc_number(x->c, "process", 1, UINT32_MAX, &x->process) &&
	       cmd_noc_number(x->c, "slow", 1, 50000, &x->slow) &&
	       cmd_noc_number(x->c, "uniform", 0, 1, &x->uniform) &&
	       cmd_noc_number(x->c, "accesses", 0, UINT64_MAX, &o->accesses_max);
}

/* "machine.KEY=VALUE" are the machine's; what is left is the network's. */
static enum base_status cmd_noc_closed_configure(
	struct closed *x, const struct noc_standard *network)
{
	enum base_status s = BASE_OK;
	noc_config_init(&x->network);
	x->network.ideal_cycles = x->base_cycles;
	for (size_t i = 0; i < 3 && *network->setting[i] && s == BASE_OK; i++)
		s = noc_config_set(&x->network, network->setting[i], &x->c->err);
	for (size_t k = 1; k < x->c->nr_operands && s == BASE_OK; k++) {
		const char *operand = x->c->operand[k];
		if (cmd_noc_is_setting(operand) && !is_own(operand) &&
			strncmp(operand, "machine.", MACHINE_PREFIX) != 0)
			s = noc_config_set(&x->network, operand, &x->c->err);
	}
	return s;
}

static enum base_status configure_machine(struct closed *x)
{
	char nodes[32];
	enum base_status s = BASE_OK;
	x->machine = memory_cdat_config_new();
	if (!x->machine)
		return base_fail(&x->c->err, BASE_ERR_NOMEM, "no memory for the machine");
	snprintf(nodes, sizeof nodes, "nodes=%u", x->nr_threads);
	const char *const preset[] = {"processors=1", "code_bytes=0", nodes};
	/* pages in turn: a program's first thread touches most of them first */
	s = memory_cdat_config_set(x->machine, "allocation=rr1", &x->c->err);
	for (size_t k = 1; k < x->c->nr_operands && s == BASE_OK; k++)
		if (!strncmp(x->c->operand[k], "machine.", MACHINE_PREFIX))
			s = memory_cdat_config_set(
				x->machine, x->c->operand[k] + MACHINE_PREFIX, &x->c->err);
	for (size_t i = 0; i < BASE_COUNT(preset) && s == BASE_OK; i++)
		s = memory_cdat_config_set(x->machine, preset[i], &x->c->err);
	return s == BASE_OK ? memory_cdat_config_check(x->machine, &x->c->err) : s;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static enum base_status open_program(struct closed *x, struct memory_source **ret)
{
	const char *path[FILES_MAX];
	size_t nr = 0;
	for (; nr < FILES_MAX && cmd_noc_file(x->c, nr); nr++)
		path[nr] = cmd_noc_file(x->c, nr);
	return memory_source_open_process(NULL, path, nr, x->process, ret, &x->c->err);
}

/* The program on x->network; set NULL: nothing is slow. */
static enum base_status cmd_noc_closed_run(
	struct closed *x, const uint32_t *set, uint32_t slow_set, struct noc_closed_result *ret)
{
	struct memory_source *program;
	*ret = (struct noc_closed_result){0};
	enum base_status s = open_program(x, &program);
	if (s != BASE_OK)
		return s;
	x->options.machine = x->machine;
	x->options.network = &x->network;
	x->options.set = set;
	x->options.slow_set = slow_set;
	x->options.slow_cycles = (uint32_t)x->slow;
	s = noc_closed_run(program, &x->options, ret, &x->c->err);
	memory_source_close(program);
	return s;
}

/* The skewed runs' times, as far as their messages match the base run's. */
static enum base_status cmd_noc_closed_sample(
	struct closed *x, const struct noc_pdg *base, struct noc_runs *runs)
{
	uint32_t *set = base_alloc(base->nr_nodes * sizeof *set);
	uint64_t matched = 0;
	if (!set)
		return base_fail(&x->c->err, BASE_ERR_NOMEM, "no memory for the partition");
	enum base_status s = noc_partition(base, (uint32_t)x->runs, set, &x->c->err);
	for (uint32_t i = 0; i < base->nr_packets; i++) {
		runs->transmit_cycle[(size_t)i * runs->stride] = base->transmit_cycle[i];
		runs->receive_cycle[(size_t)i * runs->stride] = base->receive_cycle[i];
	}
	for (uint32_t r = 1; r < runs->nr_runs && s == BASE_OK; r++) {
		struct noc_closed_result skewed;
		struct noc_match m;
		if (r > x->runs) /* the last one: all is slow */
			memset(set, 0, base->nr_nodes * sizeof *set);
		s = cmd_noc_closed_run(x, set, r > x->runs ? 0 : r - 1, &skewed);
		if (s != BASE_OK)
			break;
		s = noc_match(base, skewed.trace, NOC_MATCH_ALIGN, NOC_MATCH_DISPLACEMENT, &m,
			&x->c->err);
		if (s == BASE_OK) {
			s = noc_fill_out(base, skewed.trace, &m, runs, r, &x->c->err);
			matched += m.in_order + m.moved;
			noc_match_fini(&m);
		}
		noc_closed_result_fini(&skewed);
	}
	if (base->nr_packets)
		x->matched_share =
			(double)matched / ((double)(runs->nr_runs - 1) * base->nr_packets);
	base_free(set);
	return s;
}

static enum base_status cmd_noc_closed_infer(
	struct closed *x, const struct noc_pdg *base, struct noc_pdg **ret)
{
	struct noc_infer_options o;
	struct noc_index index = {0};
	struct noc_runs runs;
	enum base_status s = noc_runs_init(
		&runs, (uint32_t)(x->runs + 1 + x->uniform), base->nr_packets, &x->c->err);
	if (s != BASE_OK)
		return s;
	s = cmd_noc_closed_sample(x, base, &runs);
	noc_infer_robust(&o);
	if (s == BASE_OK)
		s = noc_infer(base, &runs, &o, ret, &x->inferred, &x->c->err);
	noc_runs_fini(&runs);
	if (s == BASE_OK)
		s = noc_index_init(&index, base, base->receive_cycle, 1, &x->c->err);
	if (s == BASE_OK)
		noc_infer_compare(base, *ret, &index, &x->counts);
	noc_index_fini(&index);
	return s;
}

/* ---- comparison ------------------------------------------------------------------------------ */

struct outcome {
	uint64_t cycles;
	double latency;
};

static struct outcome outcome_of_trace(const struct noc_pdg *g)
{
	struct outcome o = {0};
	double sum = 0;
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		o.cycles = g->receive_cycle[i] > o.cycles ? g->receive_cycle[i] : o.cycles;
		sum += (double)(g->receive_cycle[i] - g->transmit_cycle[i]);
	}
	o.latency = g->nr_packets ? sum / g->nr_packets : 0;
	return o;
}

static double cmd_noc_closed_relative(double value, double reference)
{
	return reference > 0 ? value / reference - 1 : 0;
}

enum { STRIPPED, INFERRED, KNOWN, REPLAYS };
struct closed_row {
	const char *network, *replay;
	uint64_t cycles, messages;
	double execution_error, latency, latency_error;
};
#include "cmd/noc/noc_closed.def"

static void cmd_noc_closed_add_row(struct closed *x, const char *network, const char *what,
	struct outcome o, struct outcome reference, uint64_t messages)
{
	double cycles = cmd_noc_closed_relative((double)o.cycles, (double)reference.cycles);
	double latency = cmd_noc_closed_relative(o.latency, reference.latency);
	base_str_addf(&x->text, "  %-8s %-12s %12llu %+8.2f %% %10.2f %+8.2f %%\n", network, what,
		(unsigned long long)o.cycles, 100 * cycles, o.latency, 100 * latency);
	struct closed_row row = {network, what, o.cycles, messages, cycles, o.latency, latency};
	json_array_append_new(x->rows, base_table_json(&closed_row, &row, NULL, 0));
}

static enum base_status compare_one(struct closed *x, const struct noc_standard *network,
	const struct noc_pdg *graph, unsigned which, struct outcome reference)
{
	static const char *const name[REPLAYS] = {"time stamps", "inferred", "known"};
	enum noc_replay_mode mode = which == STRIPPED ? NOC_REPLAY_STRIPPED : NOC_REPLAY_GRAPH;
	struct noc_replay_result r;
	enum base_status s = noc_replay(graph, &x->network, mode, NULL, NULL, &r, &x->c->err);
	if (s != BASE_OK)
		return s;
	struct outcome o = {r.execution_cycles, noc_replay_mean_latency(&r)};
	double error = fabs(cmd_noc_closed_relative((double)o.cycles, (double)reference.cycles));
	cmd_noc_closed_add_row(x, network->name, name[which], o, reference, r.packets);
	if (strcmp(network->name, "ideal") != 0) {
		x->sum[which] += error;
		x->sum_latency[which] +=
			fabs(cmd_noc_closed_relative(o.latency, reference.latency));
		x->worst[which] = fmax(x->worst[which], error);
	}
	noc_replay_result_fini(&r);
	return BASE_OK;
}

static enum base_status cmd_noc_closed_compare_on(struct closed *x,
	const struct noc_standard *network, const struct noc_pdg *const graph[REPLAYS])
{
	struct noc_closed_result closed;
	enum base_status s = cmd_noc_closed_configure(x, network);
	if (s == BASE_OK)
		s = cmd_noc_closed_run(x, NULL, 0, &closed);
	if (s != BASE_OK)
		return base_cause(&x->c->err, s, "on %s", network->name);
	struct outcome reference = outcome_of_trace(closed.trace);
	cmd_noc_closed_add_row(
		x, network->name, "closed loop", reference, reference, closed.trace->nr_packets);
	noc_closed_result_fini(&closed);
	for (unsigned which = 0; which < REPLAYS && s == BASE_OK; which++)
		s = compare_one(x, network, graph[which], which, reference);
	x->nr_networks += strcmp(network->name, "ideal") != 0;
	return s;
}

static int cmd_noc_closed_print(struct closed *x)
{
	double nr = x->nr_networks ? (double)x->nr_networks : (double)NAN;
	struct base_str first = {0};
	if (cmd_given(x->c, "json")) {
		base_str_fini(&x->text);
		json_t *result = base_table_json(&cmd_noc_closed_document, x, NULL, 0);
		json_decref(x->rows);
		return cmd_write_result(x->c, cmd_noc_closed_document.name, result);
	}
	json_decref(x->rows);
	if (x->nr_networks)
		base_str_addf(&first,
			"Against the closed loop, the inferred graph misses the execution time by "
			"%.2f %% on average (worst %.2f %%), time stamps by %.2f %%, over %u "
			"simulated {network|networks}.\n",
			100 * x->sum[1] / nr, 100 * x->worst[1], 100 * x->sum[0] / nr,
			x->nr_networks);
	else
		base_str_add(&first, "Nothing was predicted: only the ideal network was run, on "
				     "which the graph was made.\n");
	cmd_noc_say_left_out(x->c, &first, x->nr_threads);
	base_str_addf(&first, "  %-8s %-12s %12s %10s %10s %10s\n", "network", "replay", "cycles",
		"error", "latency", "error");
	base_str_add(&first, base_str_text(&x->text));
	base_str_fini(&x->text);
	if (x->nr_networks)
		base_str_addf(&first,
			"  mean latency error %.2f %%, of time stamps %.2f %%\n"
			"  the graph that is known from inside misses the execution time by %.2f "
			"%%: what one run's graph cannot say\n",
			100 * x->sum_latency[1] / nr, 100 * x->sum_latency[0] / nr,
			100 * x->sum[2] / nr);
	cmd_noc_add_base_check(&first, &x->inferred.base);
	base_str_addf(&first, "  %u {thread|threads}, ", x->nr_threads);
	base_str_add_counted(&first, "%s {access|accesses}, ", x->accesses);
	base_str_add_counted(&first, "%s {miss|misses}, ", x->misses);
	base_str_add_counted(&first, "%s {message|messages}", x->messages);
	base_str_addf(&first,
		" in the base run, of %llu {cycle|cycles} each; %.2f %% of them matched in each "
		"of "
		"%llu slowed {run|runs}\n",
		(unsigned long long)x->base_cycles, 100 * x->matched_share,
		(unsigned long long)x->runs + x->uniform);
	base_str_addf(&first,
		"  %.1f %% of the known graph's dependencies found, %.3f quasi-dependencies each\n",
		x->counts.reference ? 100.0 * (double)x->counts.found / (double)x->counts.reference
				    : 0,
		x->counts.reference ? (double)x->counts.quasi / (double)x->counts.reference : 0);
	if (x->inferred.unexplained) {
		base_str_add(&first, "CAVEAT  ");
		base_str_add_counted(&first,
			"%s {message|messages} that no set of receptions explains in all runs\n",
			x->inferred.unexplained);
	}
	if (x->stopped)
		base_str_add(&first, "CAVEAT  the program was stopped by accesses=\n");
	return cmd_write_prose(x->c, &first);
}

static enum base_status compare_all(
	struct closed *x, const struct noc_pdg *base, const struct noc_pdg *inferred)
{
	const struct noc_pdg *const graph[REPLAYS] = {inferred, inferred, base};
	struct noc_standard standard[NOC_STANDARDS_MAX];
	size_t nr = noc_standards(x->nr_threads, standard);
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < nr && s == BASE_OK; i++) {
		cmd_progress_show(x->c, standard[i].name, i, nr, "networks");
		if (cmd_noc_is_wanted(x->c, standard[i].name))
			s = cmd_noc_closed_compare_on(x, &standard[i], graph);
	}
	cmd_progress_clear(x->c);
	return s;
}

/* Adds the mean latency of a packet of one flit that meets no other; a network whose ways are
 * chosen by chance has none. */
static enum base_status add_zero_load(struct closed *x, double *sum, uint32_t *nr)
{
	struct noc_network *n;
	uint64_t cycles, total = 0, pairs = 0;
	enum base_status s = noc_network_open(&n, &x->network, &x->c->err);
	for (uint32_t i = 0; i < x->nr_threads && s == BASE_OK; i++)
		for (uint32_t k = 0; k < x->nr_threads && s == BASE_OK; k++) {
			if (i == k)
				continue;
			s = noc_network_zero_load_cycles(n, i, k, 1, &cycles, &x->c->err);
			total += s == BASE_OK ? cycles : 0;
			pairs++;
		}
	noc_network_close(n);
	if (s == BASE_OK && pairs) {
		*sum += (double)total / (double)pairs;
		++*nr;
	}
	return s == BASE_ERR_USAGE ? BASE_OK : s;
}

/* Where programs race, the winner depends on how long messages take. So the base run's take about
 * as long as those of the networks that its graph is for. */
static enum base_status choose_base(struct closed *x)
{
	struct noc_standard standard[NOC_STANDARDS_MAX];
	size_t nr_standards = noc_standards(x->nr_threads, standard);
	enum base_status s = BASE_OK;
	double sum = 0;
	uint32_t nr = 0;
	x->base_cycles = 1;
	for (size_t i = 0; i < nr_standards && s == BASE_OK; i++) {
		if (!cmd_noc_is_wanted(x->c, standard[i].name) ||
			!strcmp(standard[i].name, "ideal"))
			continue;
		s = cmd_noc_closed_configure(x, &standard[i]);
		if (s == BASE_OK)
			s = add_zero_load(x, &sum, &nr);
	}
	if (nr)
		x->base_cycles = (uint64_t)lround(sum / nr);
	return s;
}

static enum base_status base_and_graph(
	struct closed *x, struct noc_closed_result *base, struct noc_pdg **graph)
{
	struct noc_standard ideal = {"ideal", {"topology=ideal", "", ""}};
	snprintf(ideal.setting[1], sizeof ideal.setting[1], "nodes=%u", x->nr_threads);
	enum base_status s = choose_base(x);
	if (s == BASE_OK)
		s = cmd_noc_closed_configure(x, &ideal);
	if (s == BASE_OK)
		s = cmd_noc_closed_run(x, NULL, 0, base);
	if (s != BASE_OK)
		return s;
	x->base_cycles = x->network.ideal_cycles;
	x->accesses = base->accesses;
	x->misses = base->misses;
	x->messages = base->trace->nr_packets;
	x->stopped = base->stopped;
	if (!x->messages)
		return base_fail(&x->c->err, BASE_ERR_NOTFOUND,
			"the program sends no messages: one thread, or all in its caches");
	s = cmd_noc_closed_infer(x, base->trace, graph);
	if (s == BASE_OK && cmd_value(x->c, "output"))
		s = noc_pdg_write(*graph, cmd_value(x->c, "output"), &x->c->err);
	return s;
}

static const struct cmd_option closed_option[] = {
	NOC_OPTION_OUTPUT("GRAPH", "where the inferred graph goes"), NOC_OPTION_LIST};

const struct cmd_details cmd_details_noc_closed = {
	.usage = "[-o GRAPH] RECORDING... [KEY=VALUE...]",
	.about = "Runs a program that 'longpole record --level=3' recorded on a coherence "
		 "simulation whose messages travel through a network, so that delay feeds back. "
		 "Beside it stands what its trace, and graphs inferred from it, predict.",
	.option = closed_option,
	.nr_options = BASE_COUNT(closed_option),
	.example = {"longpole noc closed prog.lpt",
		"longpole noc closed prog.lpt on=mesh runs=4 machine.cache_bytes=32768"},
};

int cmd_noc_closed(struct cmd *c)
{
	struct closed x = {.c = c, .rows = json_array()};
	struct noc_closed_result base = {0};
	struct memory_source *program;
	struct noc_pdg *graph = NULL;
	int exit_status = CMD_USAGE;
	noc_closed_options_init(&x.options);
	if (cmd_given(c, "list-parameters")) {
		json_decref(x.rows);
		return cmd_noc_list_parameters(c);
	}
	if (!cmd_noc_file(c, 0)) {
		json_decref(x.rows);
		return cmd_usage(c, "give the recording of a program's accesses, as 'longpole "
				    "record --level=3' writes");
	}
	if (!read_own(&x)) {
		json_decref(x.rows);
		return CMD_USAGE;
	}
	enum base_status s = open_program(&x, &program);
	if (s == BASE_OK) {
		x.nr_threads = program->info.nr_threads;
		memory_source_close(program);
		s = configure_machine(&x);
	}
	if (s == BASE_OK && !cmd_noc_check_networks(c, x.nr_threads)) {
		json_decref(x.rows);
		memory_cdat_config_free(x.machine);
		return CMD_USAGE;
	}
	if (s == BASE_OK)
		s = base_and_graph(&x, &base, &graph);
	if (s == BASE_OK)
		s = compare_all(&x, base.trace, graph);
	if (s == BASE_OK) {
		exit_status = cmd_noc_closed_print(&x);
	} else {
		json_decref(x.rows);
		base_str_fini(&x.text);
		exit_status = cmd_fail(c, s);
	}
	noc_pdg_free(graph);
	noc_closed_result_fini(&base);
	memory_cdat_config_free(x.machine);
	return exit_status;
}
