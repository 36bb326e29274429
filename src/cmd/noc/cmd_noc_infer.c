/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_noc_infer.c - `longpole noc infer`: dependencies from several runs. */
#include "cmd/noc/noc_graph.h"

#include "base/column.h"
#include "noc/pdg/infer.h"
#include "noc/pdg/infer_stream.h"
#include "noc/pdg/match.h"

#include <stdlib.h>

/* ---- options --------------------------------------------------------------------------------- */

static const char *const method_words[] = {"robust", "literal"};
static const char *const flag_words[] = {"0", "1"};

static bool read_flag(struct cmd *c, const char *key, bool *flag)
{
	unsigned v = *flag;
	if (!cmd_noc_word(c, key, flag_words, 2, &v))
		return false;
	*flag = v != 0;
	return true;
}

static bool cmd_noc_infer_read_options(struct cmd *c, struct noc_infer_options *o)
{
	static const char *const key[] = {"method", "k", "w", "k_max", "tolerance", "blocked",
		"adaptive", "grade", "reduce", "learn", "threads", "reference", "match",
		"displacement", "window_packets"};
	unsigned method = 0;
	const char *tolerance = cmd_noc_setting(c, "tolerance");
	if (!cmd_noc_only(c, key, BASE_COUNT(key)) ||
		!cmd_noc_word(c, "method", method_words, 2, &method))
		return false;
	if (method)
		noc_infer_literal(o);
	else
		noc_infer_robust(o);
	uint64_t k = o->window_previous, w = 0, k_max = 64, eps = o->tolerance_cycles, threads = 0;
	if (tolerance && !strcmp(tolerance, "auto"))
		eps = NOC_TOLERANCE_AUTO;
	else if (!cmd_noc_number(c, "tolerance", 0, 1000000, &eps))
		return false;
	if (!cmd_noc_number(c, "k", 1, NOC_WINDOW_PREVIOUS_MAX, &k) ||
		!cmd_noc_number(c, "w", 0, 1000000, &w) ||
		!cmd_noc_number(c, "k_max", 1, NOC_WINDOW_PREVIOUS_MAX, &k_max) ||
		!cmd_noc_number(c, "threads", 0, NOC_THREADS_MAX, &threads) ||
		!read_flag(c, "blocked", &o->ignore_blocked) ||
		!read_flag(c, "adaptive", &o->adaptive) || !read_flag(c, "grade", &o->grade) ||
		!read_flag(c, "reduce", &o->reduce) || !read_flag(c, "learn", &o->learn))
		return false;
	o->window_previous = (uint32_t)k;
	o->window_receptions = (uint32_t)w;
	o->window_previous_max = (uint32_t)k_max;
	o->tolerance_cycles = (uint32_t)eps;
	o->nr_threads = (uint32_t)threads;
	return true;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void take_times(struct noc_runs *runs, const struct noc_pdg *g, uint32_t r)
{
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		runs->transmit_cycle[(size_t)i * runs->stride + r] = g->transmit_cycle[i];
		runs->receive_cycle[(size_t)i * runs->stride + r] = g->receive_cycle[i];
	}
}

struct matched {
	uint64_t wanted, in_order, moved, base_only, other_only; /* over all runs that differ */
};

static const char *const match_words[] = {"align", "count"};

static bool read_match(struct cmd *c, unsigned *method, uint64_t *displacement)
{
	return cmd_noc_word(c, "match", match_words, 2, method) &&
	       cmd_noc_number(c, "displacement", 0, 1 << 20, displacement);
}

/* One skewed run: its times, or those of the messages that match. */
static int read_run(struct cmd *c, const struct noc_pdg *base, struct noc_runs *runs, uint32_t r,
	struct matched *sum)
{
	struct noc_pdg *g = cmd_noc_read(c, cmd_noc_file(c, r));
	struct noc_match m;
	unsigned method = NOC_MATCH_ALIGN;
	uint64_t displacement = NOC_MATCH_DISPLACEMENT;
	if (!g)
		return cmd_exit_of(c->err.status);
	if (cmd_noc_same_packets(base, g)) {
		take_times(runs, g, r);
		noc_pdg_free(g);
		return CMD_OK;
	}
	if (!read_match(c, &method, &displacement)) {
		noc_pdg_free(g);
		return CMD_USAGE;
	}
	enum base_status s = noc_match(
		base, g, (enum noc_match_method)method, (uint32_t)displacement, &m, &c->err);
	if (s == BASE_OK)
		s = noc_fill_out(base, g, &m, runs, r, &c->err);
	noc_pdg_free(g);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	if (base->nr_packets && !m.in_order && !m.moved) {
		noc_match_fini(&m);
		return cmd_usage(c,
			"%s has none of the messages of %s: is it a run of the same program?",
			cmd_noc_file(c, r), cmd_noc_file(c, 0));
	}
	sum->wanted += base->nr_packets;
	sum->in_order += m.in_order;
	sum->moved += m.moved;
	sum->base_only += m.base_only;
	sum->other_only += m.other_only;
	noc_match_fini(&m);
	return CMD_OK;
}

/* Then nothing tells which packet waited for which. */
static bool are_alike(const struct noc_runs *runs, uint32_t nr_packets)
{
	for (size_t i = 0; i < nr_packets; i++)
		for (uint32_t r = 1; r < runs->nr_runs; r++) {
			size_t at = i * runs->stride;
			if (runs->receive_cycle[at] != runs->receive_cycle[at + r] ||
				runs->transmit_cycle[at] != runs->transmit_cycle[at + r])
				return false;
		}
	return nr_packets != 0;
}

/* Reads the other runs into *ret. CMD_OK, or an exit status after a message. */
static int read_runs(
	struct cmd *c, const struct noc_pdg *base, struct noc_runs *ret, struct matched *sum)
{
	uint32_t nr = 1;
	while (cmd_noc_file(c, nr))
		nr++;
	if (nr < 2 || nr > NOC_RUNS_MAX)
		return cmd_usage(c, "give the base run and 1 to %d skewed runs", NOC_RUNS_MAX - 1);
	enum base_status s = noc_runs_init(ret, nr, base->nr_packets, &c->err);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	take_times(ret, base, 0);
	for (uint32_t r = 1; r < nr; r++) {
		int exit_status = read_run(c, base, ret, r, sum);
		if (exit_status != CMD_OK) {
			noc_runs_fini(ret);
			return exit_status;
		}
	}
	if (are_alike(ret, base->nr_packets)) {
		noc_runs_fini(ret);
		return cmd_usage(c,
			"no run differs from %s: nothing tells what waited for what; give runs in "
			"which something was slow, as 'longpole noc sample' makes them",
			cmd_noc_file(c, 0));
	}
	return CMD_OK;
}

/* ---- the answer ------------------------------------------------------------------------------ */

struct answer {
	const struct noc_pdg *inferred;
	const struct noc_infer_result *result;
	const struct noc_infer_options *options;
	const struct noc_match_counts *counts; /* NULL: no reference */
	struct matched matched;
	uint32_t nr_runs;
	uint64_t took_ns;
	const char *path;
};

static double cmd_noc_infer_share(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

#include "cmd/noc/noc_infer.def"

static void cmd_noc_infer_add_counts(struct base_str *text, const struct noc_match_counts *m)
{
	base_str_addf(text, "  against the reference: %.2f %% of ",
		100 * cmd_noc_infer_share(m->found, m->reference));
	base_str_add_counted(text, "%s true {dependency|dependencies}", m->reference);
	base_str_addf(text,
		" found, %.4f quasi-dependencies (not true, of the same effect) a true one, %.1f "
		"%% of the delays exact\n",
		cmd_noc_infer_share(m->quasi, m->reference),
		100 * cmd_noc_infer_share(m->delays_right, m->packets));
}

static int cmd_noc_infer_print(struct cmd *c, const struct answer *a)
{
	const struct noc_infer_result *r = a->result;
	struct base_str text = {0};
	if (cmd_given(c, "json"))
		return cmd_write_result(c, cmd_noc_infer_document.name,
			base_table_json(&cmd_noc_infer_document, a, NULL, 0));
	base_str_add_counted(&text, "%s {dependency|dependencies} of ", r->dependencies);
	base_str_add_counted(&text, "%s {packet|packets}", r->transmits);
	base_str_addf(&text, ", from %u {run|runs}", a->nr_runs);
	if (a->options->grade)
		base_str_addf(&text, "; runs confirm %.1f %% of them",
			100 * cmd_noc_infer_share(r->certainty[NOC_CONFIRMED], r->dependencies));
	base_str_add(&text, ".\n");
	if (a->counts)
		cmd_noc_infer_add_counts(&text, a->counts);
	base_str_addf(&text,
		"  %.1f %% of the packets wait only for what their node sent before, or for "
		"nothing\n",
		100 * cmd_noc_infer_share(r->previous_only, r->transmits));
	cmd_noc_add_base_check(&text, &r->base);
	if (r->tolerance_cycles)
		base_str_addf(&text,
			"  delays that differ by up to %u {cycle|cycles} between runs count as "
			"equal\n",
			r->tolerance_cycles);
	base_str_addf(&text, "  %.2f M packets a second\n",
		a->took_ns ? (double)r->transmits * 1e3 / (double)a->took_ns : 0);
	if (a->matched.wanted)
		base_str_addf(&text,
			"CAVEAT  the runs differ: %.2f %% of the base run's messages were matched "
			"(%.2f %% out of order), the others filled out\n",
			100 * cmd_noc_infer_share(
				      a->matched.in_order + a->matched.moved, a->matched.wanted),
			100 * cmd_noc_infer_share(a->matched.moved, a->matched.wanted));
	if (r->unexplained || r->empty) {
		base_str_add(&text, "CAVEAT  ");
		base_str_add_counted(
			&text, "%s {packet|packets}", r->unexplained ? r->unexplained : r->empty);
		base_str_add(&text, " that no set of receptions explains in all runs: they wait "
				    "for what explains most of them, is usual, or came last\n");
	}
	if (a->options->ignore_blocked &&
		cmd_noc_infer_share(r->blocked, r->transmits * a->nr_runs) > 0.5)
		base_str_add(&text, "CAVEAT  most transmits were held up by the one before, in "
				    "most runs: slow less down\n");
	if (a->path)
		base_str_addf(
			&text, "  wrote %s\nNEXT  longpole noc compare %s\n", a->path, a->path);
	return cmd_write_prose(c, &text);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int compare_and_print(struct cmd *c, struct answer *a)
{
	const char *reference_path = cmd_noc_setting(c, "reference");
	struct noc_match_counts counts;
	struct noc_index x = {0};
	if (!reference_path)
		return cmd_noc_infer_print(c, a);
	struct noc_pdg *reference = cmd_noc_read(c, reference_path);
	int exit_status;
	if (!reference)
		return cmd_exit_of(c->err.status);
	if (!reference->has_graph || !cmd_noc_same_packets(reference, a->inferred)) {
		exit_status = cmd_usage(c, "%s is no graph of these packets", reference_path);
	} else if (noc_index_init(&x, reference, reference->receive_cycle, 1, &c->err) != BASE_OK) {
		exit_status = cmd_fail(c, c->err.status);
	} else {
		noc_infer_compare(reference, a->inferred, &x, &counts);
		a->counts = &counts;
		exit_status = cmd_noc_infer_print(c, a);
		a->counts = NULL;
	}
	noc_index_fini(&x);
	noc_pdg_free(reference);
	return exit_status;
}

static int cmd_noc_infer_infer(struct cmd *c, const struct noc_pdg *base,
	const struct noc_runs *runs, const struct noc_infer_options *o,
	const struct matched *matched)
{
	struct noc_infer_result result = {0};
	struct noc_pdg *inferred;
	struct answer a = {.result = &result,
		.options = o,
		.nr_runs = runs->nr_runs,
		.matched = *matched,
		.path = cmd_value(c, "output")};
	uint64_t began_ns = cmd_now_ns();
	enum base_status s = noc_infer(base, runs, o, &inferred, &result, &c->err);
	a.took_ns = cmd_now_ns() - began_ns;
	if (s != BASE_OK)
		return cmd_fail(c, s);
	snprintf(inferred->origin, sizeof inferred->origin,
		"infer method=%s runs=%u k=%u tolerance=%u; base: %.400s",
		o->adaptive ? "robust" : "literal", runs->nr_runs, o->window_previous,
		result.tolerance_cycles, base->origin);
	a.inferred = inferred;
	if (a.path)
		s = noc_pdg_write(inferred, a.path, &c->err);
	int exit_status = s == BASE_OK ? compare_and_print(c, &a) : cmd_fail(c, s);
	noc_pdg_free(inferred);
	return exit_status;
}

static void cmd_noc_infer_show_progress(void *ctx, uint64_t done, uint64_t all)
{
	cmd_progress_show(ctx, "inferring", done, all, "packets");
}

/* Window by window: nothing is matched, nothing compared. */
static int infer_stream(struct cmd *c, const struct noc_infer_options *o, uint64_t window_packets)
{
	const char *path[NOC_RUNS_MAX + 1];
	struct noc_stream_options stream;
	struct noc_infer_result result = {0};
	struct answer a = {.result = &result, .options = o, .path = cmd_value(c, "output")};
	if (cmd_noc_setting(c, "reference"))
		return cmd_usage(
			c, "reference= needs all packets at once: leave out window_packets=");
	while (a.nr_runs <= NOC_RUNS_MAX && cmd_noc_file(c, a.nr_runs)) {
		path[a.nr_runs] = cmd_noc_file(c, a.nr_runs);
		a.nr_runs++;
	}
	noc_stream_options_init(&stream);
	stream.infer = *o;
	stream.window_packets = (uint32_t)window_packets;
	stream.context_packets = (uint32_t)window_packets / 4;
	stream.progress = cmd_noc_infer_show_progress;
	stream.progress_ctx = c;
	uint64_t began_ns = cmd_now_ns();
	enum base_status s = noc_infer_files(path, a.nr_runs, &stream, a.path, &result, &c->err);
	a.took_ns = cmd_now_ns() - began_ns;
	cmd_progress_clear(c);
	return s == BASE_OK ? cmd_noc_infer_print(c, &a) : cmd_fail(c, s);
}

static const struct cmd_option infer_option[] = {
	NOC_OPTION_OUTPUT("GRAPH", "where the graph goes")};

const struct cmd_details cmd_details_noc_infer = {
	.usage = "[-o GRAPH] BASE RUN... [KEY=VALUE...]",
	.about = "Finds out from several runs of the same messages which packet waited for "
		 "which. The method is PDG_GEN of Nitta and others (2011), or one that finds "
		 "more.",
	.option = infer_option,
	.nr_options = BASE_COUNT(infer_option),
	.example = {"longpole noc infer -o inferred.lpt run-0.lpt run-1.lpt run-2.lpt run-3.lpt "
		    "run-4.lpt",
		"longpole noc infer run-0.lpt run-1.lpt method=literal k=1"},
};

int cmd_noc_infer(struct cmd *c)
{
	const char *path = cmd_noc_file(c, 0);
	struct noc_infer_options o;
	struct matched matched = {0};
	struct noc_runs runs = {0};
	if (!path)
		return cmd_usage(c, "give the base run, then the skewed runs");
	uint64_t window_packets = 0;
	if (!cmd_noc_infer_read_options(c, &o) ||
		!cmd_noc_number(c, "window_packets", NOC_STREAM_WINDOW_MIN, NOC_STREAM_WINDOW_MAX,
			&window_packets))
		return CMD_USAGE;
	if (window_packets)
		return infer_stream(c, &o, window_packets);
	struct noc_pdg *base = cmd_noc_read(c, path);
	if (!base)
		return cmd_exit_of(c->err.status);
	int exit_status =
		base->run ? cmd_usage(c, "%s is slowed run %u, no base run", path, base->run)
			  : read_runs(c, base, &runs, &matched);
	if (exit_status == CMD_OK) {
		exit_status = cmd_noc_infer_infer(c, base, &runs, &o, &matched);
		noc_runs_fini(&runs);
	}
	noc_pdg_free(base);
	return exit_status;
}
