/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_cdat.c - `longpole cdat`: what a described machine would do with memory traces. */
#include "cmd/memory/streams.h"
#include "memory/cdat/cdat.h"
#include "memory/cdat/cdat_lpt.h"
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
	CONFIG_LIMIT_BYTES = 1 << 20,
	USAGE_LIMIT_BYTES = 1 << 30,
	SETTINGS_MAX = 48,
	ROWS_SHOWN = 10
};

static const struct cmd_option option[] = {
	CMD_STREAM_OPTIONS,
	{"machine", 'M', "CONFIG", "@file", "the machine, an INI file"},
	{"set", 0, "KEY=VALUE", NULL, "one parameter of the machine (may be given again)"},
	{"list-parameters", 'l', NULL, NULL,
		"no simulation: every parameter and protocol with what it means"},
	{"memory-file", 'm', "FILE", "@file",
		"memory usage file of 'longpole ciat', for allocation rr2 and oracle"},
	{"distributed-io", 0, NULL, NULL, "disk I/O goes through the own node's I/O processor"},
	{"tags", 'T', NULL, NULL, "print the report of the original tool, with tags RrTtLll:"},
	{"report", 0, "FILE", "@file", "write that report to FILE"},
	{"general", 'g', "STEM", NULL,
		"write the general trace: STEM.N for each processor N, and each I/O processor -N"},
	{"detailed", 'd', "FILE", "@file", "write the detailed trace, every transaction"},
	{"output", 'o', "TRACE", "@file",
		"write both traces as records of a .lpt file ('longpole dump' prints it)"},
	{"check", 0, NULL, NULL, "check after each transaction that no copy is stale or unknown"},
	{"max-memory", 0, "SIZE", NULL,
		"give up beyond that much memory for the directory (default 4G)"},
};

static const struct cmd_spelling spelling[] = {
	CMD_STREAM_SPELLINGS, {"-distributed_io", "distributed-io"}, {NULL, NULL}};

const struct cmd_details cmd_details_cdat = {
	.usage = "[OPTIONS] TRACE... [CONFIG]\n[OPTIONS] -- PROG [ARG...]",
	.about = "Configuration dependent analysis of memory traces: simulates caches, a coherence "
		 "protocol, nodes and memory banks. It says what hits, what misses, who then has "
		 "the line, how many transactions flow, and how busy processors are. CONFIG is a "
		 "file whose name ends in .cfg, .conf or .ini. PROG is run and simulated at the "
		 "same time, without a file.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.spelling = spelling,
	.example = {"longpole cdat run.4 dsm.cfg",
		"longpole cdat --set=nodes=4 --set=protocol=mesi run.4",
		"longpole cdat --list-parameters"},
};

/* ---- the machine ----------------------------------------------------------------------------- */

static int cmd_cdat_list_parameters(struct cmd *c)
{
	size_t nr_protocols;
	const struct memory_cdat_protocol *q = memory_cdat_protocols(&nr_protocols);
	struct base_str text = {0};
	if (cmd_given(c, "json")) {
		json_t *protocols = json_array();
		for (size_t i = 0; i < nr_protocols; i++)
			json_array_append_new(protocols,
				json_pack("{s:s, s:s}", "name", q[i].name, "sentence", q[i].line));
		return cmd_write_parameters(c, memory_cdat_parameters(), "protocols", protocols);
	}
	base_str_add(&text, "[machine]\n");
	cmd_add_parameters(&text, memory_cdat_parameters(), NULL);
	base_str_add(&text, "allocation = first_touch\n\twhere a page lives: rr1, rr2, oracle, "
			    "first_touch\nreplacement = lru\n\tof all caches: lru, fifo, random\n"
			    "mapping = fill\n\tthreads to processors: fill, scatter, or a list "
			    "NODE:PROCESSOR ...\nprotocol = dir1\n");
	for (size_t i = 0; i < nr_protocols; i++)
		base_str_addf(&text, "\t%s: %s\n", q[i].name, q[i].line);
	return cmd_write(c, &text);
}

static bool is_config(const char *path)
{
	static const char *const suffix[] = {".cfg", ".conf", ".ini"};
	size_t length = strlen(path);
	for (size_t i = 0; i < BASE_COUNT(suffix); i++) {
		size_t n = strlen(suffix[i]);
		if (length > n && !strcmp(path + length - n, suffix[i]))
			return true;
	}
	return false;
}

/* The configuration file given, if any; *ret_operands: 1 when it is the last operand. */
static const char *config_path(const struct cmd *c, size_t *ret_operands)
{
	const char *path = cmd_value(c, "machine");
	*ret_operands = 0;
	if (path || !c->nr_operands || cmd_streams_are_live(c) ||
		!is_config(c->operand[c->nr_operands - 1]))
		return path;
	*ret_operands = 1;
	return c->operand[c->nr_operands - 1];
}

static int cmd_cdat_read_machine(struct cmd *c, const char *path, struct memory_cdat_config *k)
{
	const char *setting[SETTINGS_MAX];
	size_t nr = cmd_values(c, "set", setting, SETTINGS_MAX);
	enum base_status s = BASE_OK;
	if (path) {
		char *text = cmd_read_file(c, path, CONFIG_LIMIT_BYTES);
		if (!text)
			return cmd_exit_of(c->err.status);
		s = memory_cdat_config_read(k, text, path, &c->err);
		base_free(text);
	}
	for (size_t i = 0; i < nr && s == BASE_OK; i++)
		s = memory_cdat_config_set(k, setting[i], &c->err);
	if (s == BASE_OK)
		s = memory_cdat_config_check(k, &c->err);
	return s == BASE_OK ? CMD_OK : cmd_fail(c, s);
}

static int read_usage(struct cmd *c, struct memory_cdat_options *o, struct memory_ciat_page **ret)
{
	const char *path = cmd_value(c, "memory-file");
	*ret = NULL;
	if (!path)
		return CMD_OK;
	char *text = cmd_read_file(c, path, USAGE_LIMIT_BYTES);
	if (!text)
		return cmd_exit_of(c->err.status);
	enum base_status s = memory_ciat_usage_read(text, path, ret, &o->nr_usage, &c->err);
	base_free(text);
	o->usage = *ret;
	return s == BASE_OK ? CMD_OK : cmd_fail(c, s);
}

/* ---- traces ---------------------------------------------------------------------------------- */

struct traces {
	struct cmd_out detailed;
	struct memory_cdat_lpt *lpt;
	struct cmd_out *general; /* per processor, then per I/O processor */
	uint32_t nr_general, nr_processors, per_node;
};

static void on_general(void *ctx, int32_t processor, const struct memory_cdat_transaction *t)
{
	struct traces *x = ctx;
	if (x->lpt)
		memory_cdat_lpt_general(x->lpt, t);
	if (!x->general)
		return;
	uint32_t i =
		processor >= 0 ? (uint32_t)processor : x->nr_processors - 1 - (uint32_t)processor;
	memory_cdat_general_line(&x->general[i].pending, t, x->per_node, x->nr_processors);
	cmd_out_add(&x->general[i]);
}

static void on_detailed(void *ctx, const struct memory_cdat_transaction *t)
{
	struct traces *x = ctx;
	if (x->lpt)
		memory_cdat_lpt_detailed(x->lpt, t);
	if (!x->detailed.file)
		return;
	memory_cdat_detailed_line(&x->detailed.pending, t, x->per_node);
	cmd_out_add(&x->detailed);
}

static int close_traces(struct cmd *c, struct traces *x, char **names)
{
	int status = cmd_out_close(c, &x->detailed);
	if (x->lpt) {
		enum base_status s = memory_cdat_lpt_close(x->lpt, &c->err);
		if (s != BASE_OK && status == CMD_OK)
			status = cmd_fail(c, s);
	}
	for (uint32_t i = 0; i < x->nr_general; i++) {
		int closed = cmd_out_close(c, &x->general[i]);
		status = status == CMD_OK ? closed : status;
		if (names)
			base_free(names[i]);
	}
	base_free(x->general);
	base_free(names);
	return status;
}

/* STEM.0 ... of the processors, STEM.-1 ... of the I/O processors. */
static int open_general(struct cmd *c, const struct memory_cdat_config *k, const char *stem,
	struct traces *x, char ***ret_names)
{
	uint32_t nr = (uint32_t)(k->nodes * k->processors + k->nodes);
	x->general = base_alloc(nr * sizeof *x->general);
	char **names = *ret_names = base_alloc(nr * sizeof *names);
	if (!x->general || !names)
		return cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "no memory for traces"));
	for (uint32_t i = 0; i < nr; i++) {
		struct base_str name = {0};
		int32_t number =
			i < x->nr_processors ? (int32_t)i : -1 - (int32_t)(i - x->nr_processors);
		base_str_addf(&name, "%s.%" PRId32, stem, number);
		x->general[i].path = names[i] = name.buf;
		x->nr_general = i + 1;
		if (name.failed)
			return cmd_fail(
				c, base_fail(&c->err, BASE_ERR_NOMEM, "no memory for traces"));
		x->general[i].file = base_output_stream(name.buf, BASE_OUTPUT_PRIVATE, &c->err);
		if (!x->general[i].file)
			return cmd_fail(c, c->err.status);
	}
	return CMD_OK;
}

static int open_traces(struct cmd *c, const struct memory_cdat_config *k,
	struct memory_cdat_options *o, struct traces *x, char ***ret_names)
{
	const char *stem = cmd_value(c, "general");
	x->per_node = (uint32_t)k->processors;
	x->nr_processors = (uint32_t)(k->nodes * k->processors);
	if (!stem && k->general_trace)
		stem = "general_trace";
	if (!cmd_out_open(c, "detailed", &x->detailed))
		return cmd_exit_of(c->err.status);
	if (!x->detailed.file && k->detailed_trace) {
		x->detailed.path = "detailed_trace";
		x->detailed.file =
			base_output_stream(x->detailed.path, BASE_OUTPUT_PRIVATE, &c->err);
		if (!x->detailed.file)
			return cmd_fail(c, c->err.status);
	}
	const char *lpt = cmd_value(c, "output");
	if (lpt) {
		enum base_status s = memory_cdat_lpt_open(lpt, "longpole cdat", x->nr_processors,
			(uint32_t)k->nodes, &x->lpt, &c->err);
		if (s != BASE_OK)
			return cmd_fail(c, s);
	}
	o->trace_ctx = x;
	o->detailed = x->detailed.file || lpt ? on_detailed : NULL;
	o->general = stem || lpt ? on_general : NULL;
	return stem ? open_general(c, k, stem, x, ret_names) : CMD_OK;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* "32.0 KiB", "32.0 KiB and 1.0 MiB": a processor's, level by level. */
static void add_cache_sizes(struct base_str *out, const struct memory_cdat_config *k)
{
	const uint64_t level[] = {k->data_bytes, k->second_bytes, k->third_bytes};
	for (size_t i = 0; i < BASE_COUNT(level); i++) {
		bool last = i + 1 == BASE_COUNT(level) ||
			    !(level[i + 1] | level[BASE_COUNT(level) - 1]);
		if (!level[i])
			continue;
		if (i)
			base_str_add(out, last ? " and " : ", ");
		base_str_add_size(out, level[i]);
	}
}

/* Nodes of which a processor had a thread. */
static uint64_t nodes_used(const struct memory_cdat_config *k, const struct memory_cdat_result *r)
{
	uint64_t nr = 0;
	for (uint64_t node = 0; node < k->nodes; node++) {
		bool used = false;
		for (uint64_t i = 0; i < k->processors; i++)
			used |= r->total.active[node * k->processors + i] != 0;
		nr += used;
	}
	return nr;
}

static void cmd_cdat_finding(struct base_str *out, const struct memory_cdat_config *k,
	const struct memory_cdat_result *r)
{
	const struct memory_cdat_flow *f = &r->total.flow[MEMORY_CDAT_DATA];
	uint64_t all = f->hits + f->misses;
	base_str_addf(out, "%.3g%% of ", base_percent(f->misses, all));
	base_str_add_counted(out, "%s data {access|accesses} miss the caches of ", all);
	add_cache_sizes(out, k);
	if (k->nodes > 1)
		base_str_addf(out, ", and %.0f%% of the misses go to another node",
			base_percent(f->remote, f->misses));
	base_str_addf(out,
		" (%" PRIu64 " {node|nodes} of %" PRIu64
		" {processor|processors}, %s); a request takes %.2f "
		"transactions on average.\n",
		k->nodes, k->processors, k->protocol->name, memory_cdat_average_latency(&r->total));
	uint64_t used = nodes_used(k, r);
	if (used < k->nodes)
		base_str_addf(out,
			"Only %" PRIu64 " {node has|nodes have} threads, of %" PRIu64
			": they fill a node's "
			"processors before the next one's.\n",
			used, k->nodes);
}

static void flow_rows(struct base_str *out, const struct memory_cdat_result *r)
{
	static const char *const name[] = {"data", "instructions", "I/O"};
	base_str_add(out, "\n  stream        accesses    misses  local memory  local cache  remote "
			  "memory  remote cache  upgrades\n");
	for (unsigned s = 0; s < MEMORY_CDAT_STREAMS; s++) {
		const struct memory_cdat_flow *f = &r->total.flow[s];
		if (!(f->hits + f->misses))
			continue;
		base_str_addf(out,
			"  %-12s %9" PRIu64 " %9" PRIu64 " %13" PRIu64 " %12" PRIu64 " %14" PRIu64
			" %13" PRIu64 " %9" PRIu64 "\n",
			name[s], f->hits + f->misses, f->misses, f->local_memory, f->local_cache,
			f->remote_memory, f->remote_cache, f->upgrades);
	}
	const struct memory_cdat_flow *d = &r->total.flow[MEMORY_CDAT_DATA];
	if (d->second_hits || d->third_hits || d->interconnect_hits)
		base_str_addf(out,
			"  Data hits in the second level %" PRIu64 ", in the third %" PRIu64
			", in interconnect caches %" PRIu64 "\n",
			d->second_hits, d->third_hits, d->interconnect_hits);
}

static void cmd_cdat_phase_rows(struct base_str *out, const struct memory_cdat_result *r)
{
	size_t shown = r->nr_phases < ROWS_SHOWN ? r->nr_phases : ROWS_SHOWN;
	base_str_add(out, "\n  phase            clocks      requests  transactions  latency "
			  "(transactions a request)\n");
	for (size_t i = 0; i < shown; i++) {
		const struct memory_cdat_phase *p = &r->phase[i];
		uint64_t sum = 0;
		for (unsigned k = 0; k < MEMORY_CDAT_CODES; k++)
			sum += p->transactions[k];
		base_str_addf(out, "  %zu %-9s %11" PRIu64 " %13" PRIu64 " %13" PRIu64 " %8.2f\n",
			i, memory_phase_name(p->kind), p->end_clock - p->begin_clock, p->requests,
			sum, memory_cdat_average_latency(p));
	}
	if (r->nr_phases > shown)
		base_str_addf(out, "  (%zu more {phase|phases}: --tags has them)\n",
			r->nr_phases - shown);
}

static void transaction_rows(struct base_str *out, const struct memory_cdat_result *r)
{
	base_str_add(out, "\n  transaction             number\n");
	for (unsigned i = 0; i < MEMORY_CDAT_CODES; i++)
		if (r->total.transactions[i])
			base_str_addf(out, "  %02u %-18s %9" PRIu64 "\n", i,
				memory_cdat_code_name(i), r->total.transactions[i]);
}

static void cmd_cdat_processor_rows(struct base_str *out, const struct memory_cdat_config *k,
	const struct memory_cdat_result *r)
{
	uint64_t length = r->total.end_clock;
	unsigned shown = 0;
	base_str_addf(out, "\n  processor  active cycles  utilization%s\n",
		k->cycle_ps ? "   time with waits for others" : "");
	for (uint32_t i = 0; i < r->nr_processors && shown < 2 * ROWS_SHOWN; i++) {
		if (!r->total.active[i])
			continue;
		shown++;
		base_str_addf(out, "  %4u:%-4u %14" PRIu64 " %11.1f%%", i / (uint32_t)k->processors,
			i % (uint32_t)k->processors, r->total.active[i],
			base_percent(r->total.active[i], length));
		if (r->total.time_ps[i]) {
			base_str_add(out, "   ");
			base_str_add_ns(out, r->total.time_ps[i] / 1000);
		}
		base_str_add(out, "\n");
	}
}

static void cmd_cdat_add_option(struct base_str *out, const char *name, const char *value)
{
	if (!value)
		return;
	base_str_addf(out, "--%s=", name);
	report_shell_word(out, value);
	base_str_add(out, " ");
}

/* The same machine with another protocol. */
static void cmd_cdat_next(struct base_str *out, const struct cmd *c, const struct cmd_streams *s,
	const struct memory_cdat_config *k)
{
	const char *setting[SETTINGS_MAX];
	size_t operands, nr = cmd_values(c, "set", setting, SETTINGS_MAX);
	base_str_add(out, "NEXT  longpole cdat ");
	cmd_cdat_add_option(out, "machine", config_path(c, &operands));
	cmd_cdat_add_option(out, "memory-file", cmd_value(c, "memory-file"));
	for (size_t i = 0; i < nr; i++)
		if (strncmp(setting[i], "protocol=", strlen("protocol=")) != 0)
			cmd_cdat_add_option(out, "set", setting[i]);
	cmd_cdat_add_option(out, "set",
		strcmp(k->protocol->name, "moesi") ? "protocol=moesi" : "protocol=dir1");
	cmd_streams_again(out, s);
}

static void cmd_cdat_caveats(struct base_str *out, const struct cmd_streams *s,
	const struct memory_cdat_config *k, const struct memory_cdat_result *r)
{
	cmd_streams_caveats(s, out);
	base_str_addf(out,
		"All of this is modelled. The protocol: %s. An instruction takes a cycle; a "
		"request ends before the next one begins.\n",
		k->protocol->line);
	if (k->cycle_ps)
		base_str_add(out, "Times are sums of the configured latencies: nothing overlaps, "
				  "nobody waits for a busy bank or link. At barriers and ends of "
				  "phases all wait for the last one.\n");
	if (r->total.migrations)
		base_str_addf(out,
			"%" PRIu64 " {page|pages} moved to another node; moving them cost nothing "
			"here.\n",
			r->total.migrations);
	if (r->total.replications)
		base_str_addf(out,
			"%" PRIu64
			" {time|times} a page was copied to the nodes that load from it, %" PRIu64
			" {time|times} a store made it one again; copying cost nothing here.\n",
			r->total.replications, r->total.collapses);
	if (r->replicated_pages)
		base_str_addf(out,
			"%" PRIu64 " {page of code was|pages of code were} replicated, %" PRIu64
			" of them stored to and made one again.\n",
			r->replicated_pages, r->replicated_written);
	if (r->phases_left_out)
		base_str_addf(out, "Caution: %" PRIu64 " {phase is|phases are} only in the sums.\n",
			r->phases_left_out);
	if (r->checks)
		base_str_addf(out,
			"The monitor checked %" PRIu64 " {time|times} and found nothing wrong.\n",
			r->checks);
}

/* ---- running --------------------------------------------------------------------------------- */

static enum base_status cmd_cdat_add(
	void *ctx, const struct memory_steps *steps, struct base_err *err)
{
	return memory_cdat_add(ctx, steps, err);
}

static int cmd_cdat_answer(struct cmd *c, const struct cmd_streams *s,
	const struct memory_cdat_config *k, const struct memory_cdat_result *r)
{
	struct base_str text = {0};
	struct cmd_out report;
	if (!cmd_out_open(c, "report", &report))
		return cmd_exit_of(c->err.status);
	if (report.file)
		memory_cdat_tags(&report.pending, r);
	int status = cmd_out_close(c, &report);
	if (status != CMD_OK)
		return status;
	if (cmd_given(c, "json"))
		return cmd_write_json(
			c, json_pack("{s:s, s:s, s:o, s:o}", "schema", "longpole/cdat/1", "tool",
				   "longpole " LONGPOLE_VERSION, "source", cmd_streams_json(s),
				   "result", memory_cdat_json(r, k)));
	if (cmd_given(c, "tags")) {
		memory_cdat_tags(&text, r);
		return cmd_write(c, &text);
	}
	cmd_cdat_finding(&text, k, r);
	flow_rows(&text, r);
	cmd_cdat_phase_rows(&text, r);
	transaction_rows(&text, r);
	cmd_cdat_processor_rows(&text, k, r);
	cmd_cdat_caveats(&text, s, k, r);
	cmd_cdat_next(&text, c, s, k);
	return cmd_write_prose(c, &text);
}

static int cmd_cdat_simulate(struct cmd *c, struct cmd_streams *s,
	const struct memory_cdat_config *k, const struct memory_cdat_options *o,
	struct memory_cdat **ret, const struct memory_cdat_result **ret_result)
{
	enum base_status ok = memory_cdat_new(k, memory_order_threads(s->order), o, ret, &c->err);
	if (ok == BASE_OK)
		ok = memory_order_allow_runs(s->order, &c->err);
	if (ok != BASE_OK)
		return cmd_fail(c, ok);
	int status = cmd_streams_run(c, s, cmd_cdat_add, *ret);
	if (status != CMD_OK)
		return status;
	ok = memory_cdat_finish(*ret, ret_result, &c->err);
	return ok == BASE_OK ? CMD_OK : cmd_fail(c, ok);
}

static int cmd_cdat_run(struct cmd *c, struct cmd_streams *s, const struct memory_cdat_config *k)
{
	struct memory_cdat_options o = {.hpux = cmd_given(c, "hpux"),
		.distributed_io = cmd_given(c, "distributed-io"),
		.check = cmd_given(c, "check")};
	struct traces x = {0};
	char **names = NULL;
	struct memory_ciat_page *usage = NULL;
	struct memory_cdat *simulation = NULL;
	const struct memory_cdat_result *r = NULL;
	if (!cmd_value_size(c, "max-memory", &o.memory_limit_bytes))
		return CMD_USAGE;
	int status = read_usage(c, &o, &usage);
	if (status == CMD_OK && k->allocation != MEMORY_CDAT_RR1 &&
		k->allocation != MEMORY_CDAT_FIRST_TOUCH && !usage)
		status = cmd_usage(c, "allocation rr2 and oracle need --memory-file (longpole ciat "
				      "--memory-file writes it)");
	if (status == CMD_OK)
		status = open_traces(c, k, &o, &x, &names);
	if (status == CMD_OK)
		status = cmd_cdat_simulate(c, s, k, &o, &simulation, &r);
	int closed = close_traces(c, &x, names);
	status = status == CMD_OK ? closed : status;
	if (status == CMD_OK && r)
		status = cmd_cdat_answer(c, s, k, r);
	memory_cdat_free(simulation);
	base_free(usage);
	return status;
}

int cmd_run_cdat(struct cmd *c)
{
	size_t operands;
	struct cmd_streams s;
	if (cmd_given(c, "list-parameters"))
		return cmd_cdat_list_parameters(c);
	const char *path = config_path(c, &operands);
	struct memory_cdat_config *k = memory_cdat_config_new();
	if (!k)
		return cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "no memory for the machine"));
	int status = cmd_cdat_read_machine(c, path, k);
	if (status == CMD_OK)
		status = cmd_streams_open(c, operands, (uint32_t)(k->nodes * k->processors), &s);
	if (status == CMD_OK) {
		status = cmd_streams_exit(&s, cmd_cdat_run(c, &s, k));
		cmd_streams_close(&s);
	}
	memory_cdat_config_free(k);
	return status;
}
