/* SPDX-License-Identifier: Apache-2.0 */
/* noc_graph.c - operands of the verbs about packet dependency graphs. */
#include "cmd/noc/noc_graph.h"

#include "noc/compare.h"

#include "noc/compare.h"

#include <errno.h>
#include <stdlib.h>

static const char *noc_graph_value_of(const char *operand, const char *key)
{
	size_t length = strlen(key);
	return !strncmp(operand, key, length) && operand[length] == '=' ? operand + length + 1
									: NULL;
}

const char *cmd_noc_setting(const struct cmd *c, const char *key)
{
	const char *found = NULL;
	for (size_t k = 1; k < c->nr_operands; k++) {
		const char *value = noc_graph_value_of(c->operand[k], key);
		found = value ? value : found;
	}
	return found;
}

bool cmd_noc_number(struct cmd *c, const char *key, uint64_t least, uint64_t most, uint64_t *ret)
{
	const char *value = cmd_noc_setting(c, key);
	char *end;
	if (!value)
		return true;
	errno = 0;
	unsigned long long v = strtoull(value, &end, 10);
	if (end == value || *end || errno || *value == '-' || v < least || v > most) {
		cmd_usage(c, "%s is a number from %llu to %llu", key, (unsigned long long)least,
			(unsigned long long)most);
		return false;
	}
	*ret = v;
	return true;
}

bool cmd_noc_word(struct cmd *c, const char *key, const char *const *word, size_t nr, unsigned *ret)
{
	const char *value = cmd_noc_setting(c, key);
	struct base_str all = {0};
	for (size_t i = 0; value && i < nr; i++) {
		base_str_addf(&all, "%s%s", i ? ", " : "", word[i]);
		if (strcmp(value, word[i]) != 0)
			continue;
		*ret = (unsigned)i;
		value = NULL;
	}
	if (value)
		cmd_usage(c, "%s=%s: it is one of %s", key, value, base_str_text(&all));
	base_str_fini(&all);
	return !value;
}

bool cmd_noc_only(struct cmd *c, const char *const *key, size_t nr)
{
	for (size_t k = 1; k < c->nr_operands; k++) {
		bool known = !cmd_noc_is_setting(c->operand[k]);
		for (size_t i = 0; i < nr && !known; i++)
			known = noc_graph_value_of(c->operand[k], key[i]) != NULL;
		if (!known) {
			cmd_usage(c, "noc %s knows no setting '%s'", c->operand[0], c->operand[k]);
			return false;
		}
	}
	return true;
}

struct noc_pdg *cmd_noc_read(struct cmd *c, const char *path)
{
	struct noc_pdg *g;
	enum base_status s = noc_pdg_read(path, &g, &c->err);
	if (s == BASE_OK)
		return g;
	cmd_fail(c, s);
	return NULL;
}

void cmd_noc_say_left_out(struct cmd *c, struct base_str *out, uint32_t nr_nodes)
{
	struct noc_standard standard[NOC_STANDARDS_MAX];
	if (!cmd_noc_setting(c, "on") && noc_standards(nr_nodes, standard) < NOC_STANDARDS_MAX)
		base_str_addf(out,
			"  those of mesh, torus and fattree that do not come with %u {node|nodes} "
			"are "
			"left out\n",
			nr_nodes);
}

bool cmd_noc_same_packets(const struct noc_pdg *a, const struct noc_pdg *b)
{
	bool same = a->nr_packets == b->nr_packets && a->nr_nodes == b->nr_nodes;
	for (uint32_t i = 0; same && i < a->nr_packets; i++)
		same = a->source[i] == b->source[i] && a->destination[i] == b->destination[i];
	return same;
}

bool cmd_noc_is_wanted(const struct cmd *c, const char *name)
{
	const char *list = cmd_noc_setting(c, "on");
	size_t length = strlen(name);
	if (!list)
		return true;
	for (const char *p = list; *p; p += strspn(p, ",")) {
		size_t n = strcspn(p, ",");
		if (n == length && !strncmp(p, name, n))
			return true;
		p += n;
	}
	return false;
}

bool cmd_noc_check_networks(struct cmd *c, uint32_t nr_nodes)
{
	struct noc_standard standard[NOC_STANDARDS_MAX];
	size_t nr = noc_standards(nr_nodes, standard);
	const char *list = cmd_noc_setting(c, "on");
	for (size_t n; list && *list; list += n + (list[n] == ',')) {
		bool known = false;
		n = strcspn(list, ",");
		for (size_t i = 0; i < nr && !known; i++)
			known = strlen(standard[i].name) == n &&
				!strncmp(standard[i].name, list, n);
		if (known)
			continue;
		struct base_str all = {0};
		for (size_t i = 0; i < nr; i++)
			base_str_addf(&all, "%s%s", i ? ", " : "", standard[i].name);
		cmd_usage(c, "on= has no '%.*s' for %u {node|nodes}; there are: %s", (int)n, list,
			nr_nodes, base_str_text(&all));
		base_str_fini(&all);
		return false;
	}
	return true;
}

void cmd_noc_add_base_check(struct base_str *out, const struct noc_base_check *b)
{
	if (!b->done)
		return;
	base_str_add(out, "  replayed with the base run's own latencies, the graph ");
	if (!b->moved && b->replayed_cycle == b->end_cycle) {
		base_str_add(out, "is the base run, to the cycle\n");
		return;
	}
	base_str_add(out, "misses it: ");
	base_str_add_counted(out, "%s {transmit|transmits}", b->moved);
	base_str_addf(out, " at another cycle, its end at %llu instead of %llu (",
		(unsigned long long)b->replayed_cycle, (unsigned long long)b->end_cycle);
	cmd_noc_add_error(out, noc_base_error(b), 0, 2);
	base_str_add(out, ")\n");
}
