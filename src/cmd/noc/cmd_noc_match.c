/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_noc_match.c - `longpole noc match`: which message of one run is which of another. */
#include "cmd/noc/noc_graph.h"

#include "noc/pdg/match.h"

#include <errno.h>
#include <stdlib.h>

static const char *const method_words[] = {"align", "count"};

/* A line for each message of the base run, one for each that only the other has. */
static enum base_status write_csv(struct cmd *c, const struct noc_pdg *base,
	const struct noc_pdg *other, const struct noc_match *m, const char *path)
{
	bool *seen = base_alloc(((size_t)other->nr_packets + 1) * sizeof *seen);
	if (!seen)
		return base_fail(&c->err, BASE_ERR_NOMEM, "no memory to write the match");
	FILE *file = base_output_stream(path, BASE_OUTPUT_PLAIN, &c->err);
	if (!file) {
		base_free(seen);
		return c->err.status;
	}
	fputs("base,other\n", file);
	for (uint32_t i = 0; i < base->nr_packets; i++) {
		if (m->other[i] == NOC_PDG_NONE) {
			fprintf(file, "%u,\n", i);
			continue;
		}
		seen[m->other[i]] = true;
		fprintf(file, "%u,%u\n", i, m->other[i]);
	}
	for (uint32_t o = 0; o < other->nr_packets; o++)
		if (!seen[o])
			fprintf(file, ",%u\n", o);
	base_free(seen);
	bool failed = ferror(file) != 0;
	if (fclose(file) || failed)
		return base_fail_errno(&c->err, errno ? errno : EIO, "cannot write %s", path);
	return BASE_OK;
}

static int cmd_noc_match_print(struct cmd *c, const struct noc_pdg *base,
	const struct noc_pdg *other, const struct noc_match *m, const char *method)
{
	uint64_t matched = m->in_order + m->moved;
	double share = base->nr_packets ? (double)matched / base->nr_packets : 0;
	if (cmd_given(c, "json"))
		return cmd_write_result(c, "longpole/noc-match/1",
			json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "method", method,
				"base_messages", (json_int_t)base->nr_packets, "other_messages",
				(json_int_t)other->nr_packets, "in_order", (json_int_t)m->in_order,
				"moved", (json_int_t)m->moved, "base_only",
				(json_int_t)m->base_only, "other_only", (json_int_t)m->other_only,
				"matched_share", share));
	struct base_str text = {0};
	base_str_addf(&text, "%.2f %% of the base run's ", 100 * share);
	base_str_add_counted(&text, "%s {message is|messages are}", base->nr_packets);
	base_str_add(&text, " in the other run, too, by source, destination, type and "
			    "address.\n  ");
	base_str_add_count(&text, m->in_order);
	base_str_add(&text, " in order, ");
	base_str_add_count(&text, m->moved);
	base_str_add(&text, " moved; only in the base run ");
	base_str_add_count(&text, m->base_only);
	base_str_add(&text, ", only in the other ");
	base_str_add_count(&text, m->other_only);
	base_str_add(&text, "\n");
	if (!base->has_addresses)
		base_str_add(&text, "CAVEAT  the messages have no addresses: those of one type "
				    "cannot be told apart\n");
	return cmd_write_prose(c, &text);
}

static int cmd_noc_match_match(
	struct cmd *c, const struct noc_pdg *base, const struct noc_pdg *other)
{
	static const char *const key[] = {"match", "displacement"};
	const char *output = cmd_value(c, "output");
	uint64_t displacement = NOC_MATCH_DISPLACEMENT;
	unsigned method = NOC_MATCH_ALIGN;
	struct noc_match m;
	if (!cmd_noc_only(c, key, BASE_COUNT(key)) ||
		!cmd_noc_word(c, "match", method_words, 2, &method) ||
		!cmd_noc_number(c, "displacement", 0, 1 << 20, &displacement))
		return CMD_USAGE;
	enum base_status s = noc_match(
		base, other, (enum noc_match_method)method, (uint32_t)displacement, &m, &c->err);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	if (output)
		s = write_csv(c, base, other, &m, output);
	int exit_status = s == BASE_OK
				  ? cmd_noc_match_print(c, base, other, &m, method_words[method])
				  : cmd_fail(c, s);
	noc_match_fini(&m);
	return exit_status;
}

static const struct cmd_option match_option[] = {NOC_OPTION_OUTPUT("CSV", "where the pairs go")};

const struct cmd_details cmd_details_noc_match = {
	.usage = "[-o CSV] BASE RUN [KEY=VALUE...]",
	.about = "Says which message of one run is which of another, when the runs "
		 "differ.",
	.option = match_option,
	.nr_options = BASE_COUNT(match_option),
	.example = {"longpole noc match -o pairs.csv run-0.lpt run-1.lpt"},
};

int cmd_noc_match(struct cmd *c)
{
	const char *base_path = cmd_noc_file(c, 0), *other_path = cmd_noc_file(c, 1);
	if (!other_path || cmd_noc_file(c, 2))
		return cmd_usage(c, "give the base run and one other");
	struct noc_pdg *base = cmd_noc_read(c, base_path);
	struct noc_pdg *other = base ? cmd_noc_read(c, other_path) : NULL;
	int exit_status =
		base && other ? cmd_noc_match_match(c, base, other) : cmd_exit_of(c->err.status);
	noc_pdg_free(base);
	noc_pdg_free(other);
	return exit_status;
}
