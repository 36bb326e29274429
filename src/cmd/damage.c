/* SPDX-License-Identifier: Apache-2.0 */
/*
 * damage.c - the one gate that every trace passes, whoever reads it: what of it is damaged or was
 * lost is said before the answer, and remembered, so that no budget counts as kept by it.
 */
#include "cmd/cmd.h"

#include <string.h>

struct cmd_seen {
	char *path;
	struct trace_health told; /* as much as was said already */
};

static struct cmd_seen *damage_find(struct cmd *c, const char *path)
{
	for (size_t i = 0; i < c->nr_seen; i++)
		if (!strcmp(c->seen[i].path, path))
			return &c->seen[i];
	return NULL;
}

static struct cmd_seen *damage_add(struct cmd *c, const char *path)
{
	size_t size = strlen(path) + 1;
	if (base_grow(&c->seen, &c->seen_capacity, c->nr_seen + 1, sizeof *c->seen) != BASE_OK)
		return NULL;
	char *copy = base_alloc(size);
	if (!copy)
		return NULL;
	memcpy(copy, path, size);
	c->seen[c->nr_seen] = (struct cmd_seen){.path = copy};
	return &c->seen[c->nr_seen++];
}

static void damage_tell(struct cmd *c, struct cmd_seen *seen, const struct trace_health *h)
{
	for (unsigned i = 0; i < TRACE_DIAG_NR; i++) {
		const struct trace_diag_desc *d = trace_diag_describe((enum trace_diag)i);
		struct base_str text = {0};
		if (h->count[i] <= seen->told.count[i] || d->severity == TRACE_SEVERITY_info)
			continue;
		seen->told.count[i] = h->count[i];
		c->is_partial |= d->extent == TRACE_EXTENT_partial;
		base_str_add_counted(&text, d->sentence, h->count[i]);
		cmd_warn(c, "%s: %s", seen->path, base_str_text(&text));
		base_str_fini(&text);
	}
}

void cmd_tell_health(struct cmd *c, const char *path, const struct trace_health *h)
{
	struct cmd_seen *seen = damage_find(c, path);
	if (seen)
		damage_tell(c, seen, h);
}

void cmd_check_trace(struct cmd *c, const char *path)
{
	struct trace_reader *r;
	struct base_err why;
	if (damage_find(c, path) || trace_reader_open(path, NULL, &r, &why) != BASE_OK)
		return; /* no trace, or one of which its reader will say what is wrong */
	struct cmd_seen *seen = damage_add(c, path);
	if (!seen) {
		c->is_partial = true; /* for all that is known */
		cmd_warn(c, "%s: out of memory to look for damage", path);
	} else if (trace_reader_verify(r, &why) != BASE_OK) {
		c->is_partial = true;
		cmd_warn(c, "%s: cannot be read to its end: %s", path, why.cause[0]);
	} else {
		damage_tell(c, seen, trace_reader_health(r));
	}
	trace_reader_close(r);
}

static bool is_of_a_program(const struct cmd_spec *spec)
{
	return spec->flags & CMD_PROGRAM && !(spec->flags & CMD_DASHES);
}

void cmd_check_operands(struct cmd *c)
{
	for (size_t i = 0; i < c->nr_given; i++) {
		const struct cmd_option *o = c->given[i].option;
		if (o->value && strcmp(o->name, "output") != 0 &&
			(!strcmp(o->value, "TRACE") || !strcmp(o->name, "record-outcome")))
			cmd_check_trace(c, c->given[i].value);
	}
	if (is_of_a_program(c->spec))
		return;
	for (size_t i = 0; i < c->nr_operands; i++) {
		if (!strcmp(c->operand[i], "--") && c->spec->flags & (CMD_OR_PROGRAM | CMD_PROGRAM))
			return;
		cmd_check_trace(c, c->operand[i]);
	}
}

int cmd_gate_partial(struct cmd *c, const char *gate)
{
	if (!c->is_partial)
		return CMD_OK;
	cmd_warn(c,
		"%s: cannot be judged, for what was read is not whole (see above); record again",
		gate);
	return CMD_BAD_TRACE;
}

void cmd_seen_fini(struct cmd *c)
{
	for (size_t i = 0; i < c->nr_seen; i++)
		base_free(c->seen[i].path);
	base_free(c->seen);
}
