/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_noc_import.c - `longpole noc import` and `export`: packets of other tools. */
#include "cmd/noc/noc_graph.h"

#include "noc/pdg/csv.h"
#include "noc/pdg/netrace.h"

#include <stdlib.h>

/* ---- import ---------------------------------------------------------------------------------- */

struct import {
	struct cmd *c;
	struct noc_input *in;
	struct base_str notes;
};

static void cmd_noc_import_note(struct import *m, uint64_t nr, const char *what)
{
	if (!nr)
		return;
	base_str_add(&m->notes, "CAVEAT  ");
	base_str_add_count(&m->notes, nr);
	base_str_addf(&m->notes, " %s\n", what);
}

static enum base_status import_netrace(struct import *m, struct noc_pdg **ret)
{
	static const char *const delay_words[] = {"recorded", "inferred"};
	uint64_t width = 128, latency = 8;
	unsigned delays = 0;
	struct noc_netrace_notes n;
	if (!cmd_noc_number(m->c, "width", 8, 65536, &width) ||
		!cmd_noc_number(m->c, "latency", 0, 1000000, &latency) ||
		!cmd_noc_word(m->c, "delays", delay_words, 2, &delays))
		return base_fail(&m->c->err, BASE_ERR_USAGE, "a setting is wrong");
	struct noc_netrace_options o = {.width_bits = (uint32_t)width,
		.latency_cycles = (uint32_t)latency,
		.delays = delays != 0};
	enum base_status s = noc_netrace_read(m->in, &o, ret, &n, &m->c->err);
	cmd_noc_import_note(
		m, n.truncated, "sign that the file was cut: fewer packets than promised");
	cmd_noc_import_note(m, n.missing, "dependents are not in the file");
	cmd_noc_import_note(
		m, n.elsewhere, "dependencies of a node on what it does not receive: left out");
	cmd_noc_import_note(m, n.backwards, "dependencies on later packets: left out");
	return s;
}

static enum base_status import_csv(struct import *m, struct noc_pdg **ret)
{
	static const char *const number_words[] = {"lines", "kept"};
	unsigned numbers = 0;
	if (!cmd_noc_word(m->c, "numbers", number_words, 2, &numbers))
		return base_fail(&m->c->err, BASE_ERR_USAGE, "a setting is wrong");
	return noc_csv_read(m->in, numbers != 0, ret, &m->c->err);
}

static bool read_sizes(struct cmd *c, struct noc_booksim_sizes *sizes)
{
	const char *p = cmd_noc_setting(c, "sizes");
	*sizes = (struct noc_booksim_sizes){.flits = {1}, .nr = 1};
	if (!p)
		return true;
	sizes->nr = 0;
	for (;;) {
		char *end;
		unsigned long v = strtoul(p, &end, 10);
		if (end == p || (*end && *end != ',') || !v || v > UINT16_MAX ||
			sizes->nr == NOC_BOOKSIM_SIZES_MAX)
			return false;
		sizes->flits[sizes->nr++] = (uint32_t)v;
		if (!*end)
			return true;
		p = end + 1;
	}
}

static enum base_status import_booksim(struct import *m, struct noc_pdg **ret)
{
	struct noc_booksim_sizes sizes;
	if (!read_sizes(m->c, &sizes))
		return base_fail(&m->c->err, BASE_ERR_USAGE,
			"sizes= is up to %d numbers of flits, separated by commas",
			NOC_BOOKSIM_SIZES_MAX);
	return noc_booksim_read(m->in, &sizes, ret, &m->c->err);
}

static const struct {
	const char *name;
	enum base_status (*read)(struct import *m, struct noc_pdg **ret);
} importer[] = {{"netrace", import_netrace}, {"csv", import_csv}, {"booksim", import_booksim}};

static int print_import(struct import *m, const struct noc_pdg *g, const char *path)
{
	struct base_str text = {0};
	if (cmd_given(m->c, "json")) {
		base_str_fini(&m->notes);
		return cmd_write_result(m->c, "longpole/noc-import/1",
			json_pack("{s:I, s:I, s:I, s:b, s:s}", "nodes", (json_int_t)g->nr_nodes,
				"packets", (json_int_t)g->nr_packets, "dependencies",
				(json_int_t)noc_pdg_nr_dependencies(g), "graph", (int)g->has_graph,
				"trace", path));
	}
	base_str_add_counted(&text, "%s {packet|packets}", g->nr_packets);
	base_str_addf(&text, " of %u {node|nodes}", g->nr_nodes);
	if (g->has_graph) {
		base_str_add(&text, " with ");
		base_str_add_counted(
			&text, "%s {dependency|dependencies}", noc_pdg_nr_dependencies(g));
	} else {
		base_str_add(&text, ", times only");
	}
	base_str_addf(&text, "; wrote %s.\n%sNEXT  longpole noc replay %s topology=mesh\n", path,
		base_str_text(&m->notes), path);
	base_str_fini(&m->notes);
	return cmd_write_prose(m->c, &text);
}

static const struct cmd_option import_option[] = {
	NOC_OPTION_OUTPUT("TRACE", "where the packets go")};

const struct cmd_details cmd_details_noc_import = {
	.usage = "netrace|csv|booksim FILE -o TRACE [KEY=VALUE...]",
	.about = "Reads packets of another tool's file: Netrace 1.0, CSV, or a trace of "
		 "BookSim's workloads.",
	.option = import_option,
	.nr_options = BASE_COUNT(import_option),
	.example = {"longpole noc import netrace blackscholes.tra.bz2 -o b.lpt delays=inferred"},
};

int cmd_noc_import(struct cmd *c)
{
	static const char *const key[] = {"width", "latency", "delays", "sizes", "numbers"};
	const char *format = cmd_noc_file(c, 0), *path = cmd_noc_file(c, 1);
	const char *output = cmd_value(c, "output");
	struct import m = {.c = c};
	struct noc_pdg *g = NULL;
	size_t f = 0;
	if (!format || !path || !output || cmd_noc_file(c, 2))
		return cmd_usage(c, "longpole noc import netrace|csv|booksim FILE --output=TRACE");
	while (f < BASE_COUNT(importer) && strcmp(importer[f].name, format) != 0)
		f++;
	if (f == BASE_COUNT(importer))
		return cmd_usage_choice(c, "format", format, "netrace csv booksim");
	if (!cmd_noc_only(c, key, BASE_COUNT(key)))
		return CMD_USAGE;
	enum base_status s = noc_input_open(path, &m.in, &c->err);
	if (s == BASE_OK)
		s = importer[f].read(&m, &g);
	if (s == BASE_OK)
		s = noc_pdg_write(g, output, &c->err);
	int exit_status;
	if (s == BASE_OK) {
		exit_status = print_import(&m, g, output);
	} else {
		base_str_fini(&m.notes);
		exit_status = cmd_fail(c, base_cause(&c->err, s, "while importing %s", path));
	}
	noc_input_close(m.in);
	noc_pdg_free(g);
	return exit_status;
}

/* ---- export ---------------------------------------------------------------------------------- */

static void loss(struct base_str *text, uint64_t nr, const char *what)
{
	if (!nr)
		return;
	base_str_add(text, "LOST  ");
	base_str_add_count(text, nr);
	base_str_addf(text, " %s\n", what);
}

static const char separate[] =
	"receivers of multicasts: the format has none, they are packets of their own there";

static enum base_status export_netrace(
	struct cmd *c, const struct noc_pdg *g, const char *path, struct base_str *text)
{
	struct noc_netrace_losses l;
	enum base_status s = noc_netrace_write_file(g, path, &l, &c->err);
	loss(text, l.delays, "intrinsic delays, for which the format has no place");
	loss(text, l.previous, "inputs that are a node's previous transmit");
	loss(text, l.sizes, "sizes other than 1 and 5 flits");
	loss(text, l.addresses, "addresses of more than 32 bits");
	loss(text, l.dependents, "dependents beyond a packet's 255th");
	loss(text, l.copies, separate);
	return s;
}

static enum base_status export_csv(
	struct cmd *c, const struct noc_pdg *g, const char *path, struct base_str *text)
{
	(void)text;
	return noc_csv_write(g, path, &c->err);
}

static enum base_status export_booksim(
	struct cmd *c, const struct noc_pdg *g, const char *path, struct base_str *text)
{
	struct noc_booksim_sizes sizes;
	enum base_status s = noc_booksim_write(g, path, &sizes, &c->err);
	base_str_addf(text, "  for BookSim: workload = trace(%s,{", path);
	for (unsigned k = 0; s == BASE_OK && k < sizes.nr; k++)
		base_str_addf(text, "%s%u", k ? "," : "", sizes.flits[k]);
	base_str_add(text, "})\n");
	loss(text, noc_pdg_nr_dependencies(g), "dependencies");
	loss(text, noc_pdg_nr_copies(g), separate);
	return s;
}

static const struct {
	const char *name;
	enum base_status (*write)(
		struct cmd *c, const struct noc_pdg *g, const char *path, struct base_str *text);
} exporter[] = {{"netrace", export_netrace}, {"csv", export_csv}, {"booksim", export_booksim}};

static const struct cmd_option export_option[] = {
	NOC_OPTION_OUTPUT("FILE", "where the packets go")};

const struct cmd_details cmd_details_noc_export = {
	.usage = "netrace|csv|booksim TRACE -o FILE",
	.about = "Writes packets for another tool, and counts what its format cannot "
		 "hold.",
	.option = export_option,
	.nr_options = BASE_COUNT(export_option),
	.example = {"longpole noc export netrace ref.lpt -o ref.tra.bz2"},
};

int cmd_noc_export(struct cmd *c)
{
	const char *format = cmd_noc_file(c, 0), *path = cmd_noc_file(c, 1);
	const char *output = cmd_value(c, "output");
	struct base_str text = {0};
	size_t f = 0;
	if (!format || !path || !output || cmd_noc_file(c, 2))
		return cmd_usage(c, "longpole noc export netrace|csv|booksim TRACE --output=FILE");
	while (f < BASE_COUNT(exporter) && strcmp(exporter[f].name, format) != 0)
		f++;
	if (f == BASE_COUNT(exporter))
		return cmd_usage_choice(c, "format", format, "netrace csv booksim");
	if (!cmd_noc_only(c, NULL, 0))
		return CMD_USAGE;
	struct noc_pdg *g = cmd_noc_read(c, path);
	if (!g)
		return cmd_exit_of(c->err.status);
	base_str_add_counted(&text, "%s {packet|packets}", g->nr_packets);
	base_str_addf(&text, "; wrote %s.\n", output);
	enum base_status s = exporter[f].write(c, g, output, &text);
	noc_pdg_free(g);
	if (s != BASE_OK) {
		base_str_fini(&text);
		return cmd_fail(c, s);
	}
	return cmd_write_prose(c, &text);
}
