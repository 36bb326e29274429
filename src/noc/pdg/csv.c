/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - packets as text, comma separated or as BookSim has them. */
#include "noc/pdg/csv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

/* Decimal digits at *p; *p is then behind them. False: none, or too large. */
static bool number(const char **p, uint64_t *ret)
{
	uint64_t v = 0;
	const char *start = *p;
	for (; **p >= '0' && **p <= '9'; (*p)++) {
		unsigned digit = (unsigned)(**p - '0');
		if (v > (UINT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*ret = v;
	return *p != start;
}

static enum base_status bad_line(uint64_t line, const char *what, struct base_err *err)
{
	return base_fail(err, BASE_ERR_FOREIGN, "line %llu: %s", (unsigned long long)line, what);
}

/* Packets before the number of nodes is known, which the largest one gives. */
static enum base_status csv_finish(struct noc_pdg *g, uint32_t nr_nodes, const char *origin,
	struct noc_pdg **ret, struct base_err *err)
{
	uint8_t *ordered = base_alloc(nr_nodes);
	if (!ordered)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %u {node|nodes}", nr_nodes);
	memset(ordered, 1, nr_nodes);
	base_free(g->ordered);
	g->ordered = ordered;
	g->nr_nodes = nr_nodes;
	memcpy(g->origin, origin, strlen(origin) + 1);
	enum base_status s = noc_pdg_check(g, err);
	if (s == BASE_OK)
		*ret = g;
	return s;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

enum column {
	CYCLE,
	SOURCE,
	DESTINATION,
	FLITS,
	TYPE,
	ADDRESS,
	RECEIVE,
	DELAY,
	PREVIOUS,
	COPY,
	PACKET,
	DEPENDENCIES,
	COLUMNS,
	OTHER = COLUMNS
};
static const char *const column_name[COLUMNS] = {"cycle", "source", "destination", "flits", "type",
	"address", "receive", "delay", "previous", "copy", "packet", "dependencies"};
enum { FIELDS_MAX = 64 };

struct csv {
	struct noc_pdg *g;
	enum column column[FIELDS_MAX];
	unsigned nr_columns;
	bool has[COLUMNS];
	uint64_t line, last_cycle;
	uint32_t nr_nodes;
	bool keep_numbers;
	uint32_t *number; /* by line, where they are kept */
	size_t number_room;
};

static enum base_status read_names(struct csv *c, const char *line, struct base_err *err)
{
	for (const char *p = line;; p++) {
		size_t length = strcspn(p, ",");
		enum column found = OTHER;
		if (c->nr_columns == FIELDS_MAX)
			return bad_line(c->line, "too many columns", err);
		for (unsigned k = 0; k < COLUMNS; k++)
			if (strlen(column_name[k]) == length && !strncmp(column_name[k], p, length))
				found = (enum column)k;
		if (found == PACKET && !c->keep_numbers)
			found = OTHER;
		if (found != OTHER && c->has[found])
			return bad_line(c->line, "a column is there twice", err);
		if (found != OTHER)
			c->has[found] = true;
		c->column[c->nr_columns++] = found;
		p += length;
		if (!*p)
			break;
	}
	if (!c->has[CYCLE] || !c->has[SOURCE] || !c->has[DESTINATION])
		return bad_line(c->line,
			"its first line has to name the columns cycle, source and destination",
			err);
	if (c->keep_numbers && !c->has[PACKET])
		return bad_line(c->line, "numbers are to be kept: there is no column packet", err);
	c->g->has_graph = c->has[DELAY] && c->has[DEPENDENCIES];
	if (c->keep_numbers && c->g->has_graph)
		return bad_line(c->line,
			"a graph's packets are numbered by its lines: leave out numbers=kept", err);
	return BASE_OK;
}

/* Fields of a line; dependencies are left as text. */
static enum base_status read_fields(struct csv *c, const char *line, uint64_t *value,
	const char **dependencies, struct base_err *err)
{
	const char *p = line;
	for (unsigned k = 0; k < c->nr_columns; k++) {
		enum column column = c->column[k];
		if (column == DEPENDENCIES)
			*dependencies = p;
		if (column < DEPENDENCIES && !number(&p, &value[column]))
			return bad_line(c->line, "a number is missing", err);
		if (column >= DEPENDENCIES)
			p += strcspn(p, ",");
		if (k + 1 < c->nr_columns && *p++ != ',')
			return bad_line(c->line, "too few columns, or what is no number", err);
	}
	return *p ? bad_line(c->line, "too many columns", err) : BASE_OK;
}

static enum base_status add_dependencies(struct csv *c, const char *p, struct base_err *err)
{
	while (*p >= '0' && *p <= '9') {
		uint64_t on;
		if (!number(&p, &on) || on + 1 >= c->g->nr_packets)
			return bad_line(c->line, "depends on no earlier line", err);
		enum base_status s = noc_pdg_add_dependency(c->g, (uint32_t)on, NOC_GIVEN, err);
		if (s != BASE_OK)
			return s;
		if (*p == ';')
			p++;
	}
	return *p && *p != ',' ? bad_line(c->line, "dependencies are numbers and ';'", err)
			       : BASE_OK;
}

static enum base_status keep_number(struct csv *c, uint64_t number, struct base_err *err)
{
	if (number > UINT32_MAX)
		return bad_line(c->line, "a number is beyond its limit", err);
	if (base_grow(&c->number, &c->number_room, (size_t)c->g->nr_packets + 1,
		    sizeof *c->number) != BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for packets");
	c->number[c->g->nr_packets] = (uint32_t)number;
	return BASE_OK;
}

static enum base_status read_packet(struct csv *c, const char *line, struct base_err *err)
{
	uint64_t v[COLUMNS] = {[FLITS] = 1};
	const char *dependencies = "";
	enum base_status s = read_fields(c, line, v, &dependencies, err);
	if (s != BASE_OK)
		return s;
	if (!c->has[RECEIVE])
		v[RECEIVE] = v[CYCLE] + 1;
	if (v[SOURCE] >= NOC_PDG_NODES_MAX || v[DESTINATION] >= NOC_PDG_NODES_MAX || !v[FLITS] ||
		v[FLITS] > UINT16_MAX || v[TYPE] > UINT8_MAX || v[CYCLE] > NOC_PDG_CYCLE_MAX)
		return bad_line(c->line, "a number is beyond its limit", err);
	if (v[CYCLE] < c->last_cycle)
		return bad_line(c->line, "its cycle is before that of the line before", err);
	c->last_cycle = v[CYCLE];
	for (unsigned k = SOURCE; k <= DESTINATION; k++)
		c->nr_nodes = v[k] >= c->nr_nodes ? (uint32_t)v[k] + 1 : c->nr_nodes;
	if (c->keep_numbers)
		s = keep_number(c, v[PACKET], err);
	if (s != BASE_OK)
		return s;
	/* addresses that are all the same do not tell which packet answers which */
	if (c->g->nr_packets && v[ADDRESS] != c->g->address[0])
		c->g->has_addresses = true;
	s = noc_pdg_add(c->g,
		&(struct noc_pdg_packet){.source = (uint32_t)v[SOURCE],
			.destination = (uint32_t)v[DESTINATION],
			.size_flits = (uint32_t)v[FLITS],
			.type = (uint8_t)v[TYPE],
			.address = v[ADDRESS],
			.transmit_cycle = v[CYCLE],
			.receive_cycle = v[RECEIVE],
			.delay_cycles = c->g->has_graph ? v[DELAY] : 0,
			.inputs = (v[PREVIOUS] ? NOC_PDG_PREVIOUS : 0) |
				  (v[COPY] ? NOC_PDG_COPY : 0)},
		err);
	return s == BASE_OK && c->g->has_graph ? add_dependencies(c, dependencies, err) : s;
}

enum base_status noc_csv_read(
	struct noc_input *in, bool keep_numbers, struct noc_pdg **ret, struct base_err *err)
{
	struct csv c = {.g = noc_pdg_new(1), .keep_numbers = keep_numbers};
	enum base_status s;
	char *line;
	*ret = NULL;
	if (!c.g)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for packets");
	while ((s = noc_input_line(in, &line, err)) == BASE_OK) {
		c.line++;
		if (!*line)
			continue;
		s = c.nr_columns ? read_packet(&c, line, err) : read_names(&c, line, err);
		if (s != BASE_OK)
			break;
	}
	if (s == BASE_END)
		s = c.g->nr_packets ? csv_finish(c.g, c.nr_nodes, "import csv", ret, err)
				    : base_fail(err, BASE_ERR_FOREIGN, "no packets");
	if (s == BASE_OK && keep_numbers)
		s = noc_pdg_number(c.g, c.number, err);
	if (s != BASE_OK)
		*ret = noc_pdg_free(c.g);
	base_free(c.number);
	return s;
}

static enum base_status csv_close_written(FILE *file, const char *path, struct base_err *err)
{
	bool failed = ferror(file) != 0;
	if (fclose(file) || failed)
		return base_fail_errno(err, errno ? errno : EIO, "cannot write %s", path);
	return BASE_OK;
}

struct moment {
	uint64_t cycle;
	uint32_t packet;
};

static int csv_compare_moments(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;
	if (x->cycle != y->cycle)
		return x->cycle < y->cycle ? -1 : 1;
	return x->packet < y->packet ? -1 : x->packet > y->packet;
}

static void write_line(FILE *file, const struct noc_pdg *g, uint32_t i, bool copies)
{
	fprintf(file, "%u,%llu,%u,%u,%u,%u,%llu,%llu", i, (unsigned long long)g->transmit_cycle[i],
		g->source[i], g->destination[i], g->size_flits[i], g->type[i],
		(unsigned long long)g->address[i], (unsigned long long)g->receive_cycle[i]);
	if (g->has_graph)
		fprintf(file, ",%llu,%d,", (unsigned long long)g->delay_cycles[i],
			g->inputs[i] & NOC_PDG_PREVIOUS);
	if (copies)
		fprintf(file, "%s%d", g->has_graph ? "" : ",", noc_pdg_is_copy(g, i));
	if (copies && g->has_graph)
		fputs(",", file);
	for (uint64_t d = g->first[i]; g->has_graph && d < g->first[i + 1]; d++)
		fprintf(file, "%s%u", d > g->first[i] ? ";" : "", g->dependency[d]);
	fputs("\n", file);
}

/* A graph's lines are in the order of its numbers, by which dependencies name them; a trace's in
 * the order of its times. */
enum base_status noc_csv_write(const struct noc_pdg *g, const char *path, struct base_err *err)
{
	struct moment *m = base_alloc(((size_t)g->nr_packets + 1) * sizeof *m);
	if (!m)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to write %s", path);
	for (uint32_t i = 0; i < g->nr_packets; i++)
		m[i] = (struct moment){g->transmit_cycle[i], i};
	if (!g->has_graph)
		qsort(m, g->nr_packets, sizeof *m, csv_compare_moments);
	struct base_err refused = {0};
	FILE *file = base_output_stream(path, BASE_OUTPUT_PLAIN, err ? err : &refused);
	if (!file) {
		base_free(m);
		return err ? err->status : refused.status;
	}
	bool copies = noc_pdg_nr_copies(g) > 0;
	fprintf(file, "packet,cycle,source,destination,flits,type,address,receive%s%s%s\n",
		g->has_graph ? ",delay,previous" : "", copies ? ",copy" : "",
		g->has_graph ? ",dependencies" : "");
	for (uint32_t i = 0; i < g->nr_packets; i++)
		write_line(file, g, m[i].packet, copies);
	base_free(m);
	return csv_close_written(file, path, err);
}

/* ---- BookSim --------------------------------------------------------------------------------- */

static enum base_status booksim_line(
	struct csv *c, const struct noc_booksim_sizes *sizes, const char *p, struct base_err *err)
{
	uint64_t v[4];
	for (unsigned k = 0; k < 4; k++) {
		p += strspn(p, " \t");
		if (!number(&p, &v[k]))
			return bad_line(c->line, "not DELAY SOURCE DESTINATION TYPE", err);
	}
	p += strspn(p, " \t");
	if (*p)
		return bad_line(c->line, "more than DELAY SOURCE DESTINATION TYPE", err);
	if (v[0] > NOC_PDG_CYCLE_MAX - c->last_cycle || v[1] >= NOC_PDG_NODES_MAX ||
		v[2] >= NOC_PDG_NODES_MAX || v[3] > UINT8_MAX)
		return bad_line(c->line, "a number is beyond its limit", err);
	c->last_cycle += v[0];
	if (c->last_cycle >= NOC_PDG_CYCLE_MAX)
		return bad_line(c->line, "a cycle is beyond its limit", err);
	for (unsigned k = 1; k <= 2; k++)
		c->nr_nodes = v[k] >= c->nr_nodes ? (uint32_t)v[k] + 1 : c->nr_nodes;
	return noc_pdg_add(c->g,
		&(struct noc_pdg_packet){.source = (uint32_t)v[1],
			.destination = (uint32_t)v[2],
			.size_flits = sizes->flits[v[3] < sizes->nr ? v[3] : sizes->nr - 1],
			.type = (uint8_t)v[3],
			.transmit_cycle = c->last_cycle,
			.receive_cycle = c->last_cycle + 1},
		err);
}

enum base_status noc_booksim_read(struct noc_input *in, const struct noc_booksim_sizes *sizes,
	struct noc_pdg **ret, struct base_err *err)
{
	struct csv c = {.g = noc_pdg_new(1)};
	enum base_status s;
	char *line;
	*ret = NULL;
	BASE_ASSERT(sizes->nr && sizes->nr <= NOC_BOOKSIM_SIZES_MAX);
	if (!c.g)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for packets");
	while ((s = noc_input_line(in, &line, err)) == BASE_OK) {
		c.line++;
		if (!line[strspn(line, " \t")])
			continue;
		s = booksim_line(&c, sizes, line, err);
		if (s != BASE_OK)
			break;
	}
	if (s == BASE_END)
		s = c.g->nr_packets ? csv_finish(c.g, c.nr_nodes, "import booksim", ret, err)
				    : base_fail(err, BASE_ERR_FOREIGN, "no packets");
	if (s != BASE_OK)
		noc_pdg_free(c.g);
	return s;
}

/* Place of a size in the list; a new one is added. NOC_BOOKSIM_SIZES_MAX: no room. */
static unsigned size_type(struct noc_booksim_sizes *sizes, uint32_t flits)
{
	unsigned k = 0;
	while (k < sizes->nr && sizes->flits[k] != flits)
		k++;
	if (k == sizes->nr && k < NOC_BOOKSIM_SIZES_MAX)
		sizes->flits[sizes->nr++] = flits;
	return k;
}

enum base_status noc_booksim_write(const struct noc_pdg *g, const char *path,
	struct noc_booksim_sizes *ret_sizes, struct base_err *err)
{
	uint64_t last = 0;
	*ret_sizes = (struct noc_booksim_sizes){0};
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		if (size_type(ret_sizes, g->size_flits[i]) == NOC_BOOKSIM_SIZES_MAX)
			return base_fail(err, BASE_ERR_LIMIT, "more than %d sizes of packets",
				NOC_BOOKSIM_SIZES_MAX);
		if (g->transmit_cycle[i] < last)
			return base_fail(err, BASE_ERR_USAGE,
				"packets are not numbered in the order of their times (a skewed "
				"run?)");
		last = g->transmit_cycle[i];
	}
	struct base_err refused = {0};
	FILE *file = base_output_stream(path, BASE_OUTPUT_PLAIN, err ? err : &refused);
	if (!file)
		return err ? err->status : refused.status;
	last = 0;
	for (uint32_t i = 0; i < g->nr_packets; i++) {
		fprintf(file, "%llu %u %u %u\n", (unsigned long long)(g->transmit_cycle[i] - last),
			g->source[i], g->destination[i], size_type(ret_sizes, g->size_flits[i]));
		last = g->transmit_cycle[i];
	}
	return csv_close_written(file, path, err);
}
