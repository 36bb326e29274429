/* SPDX-License-Identifier: Apache-2.0 */
/* netrace.c - reading Netrace's format. */
#include "noc/pdg/netrace.h"

#include <stdlib.h>
#include <string.h>

enum {
	MAGIC = 0x484a5455,
	HEADER_BYTES = 72,
	REGION_BYTES = 24,
	REGIONS_MAX = 100, /* as its own library has them */
	NOTES_MAX = 8192,
	PACKET_BYTES = 21,
	SHORT_BYTES = 8,
	LONG_BYTES = 72,
	TYPES = 31,
};

uint32_t noc_netrace_bytes(unsigned type)
{
	static const uint8_t bytes[TYPES] = {[1] = SHORT_BYTES,
		[2] = LONG_BYTES,
		[3] = LONG_BYTES,
		[4] = LONG_BYTES,
		[5] = SHORT_BYTES,
		[6] = LONG_BYTES,
		[13] = SHORT_BYTES,
		[14] = SHORT_BYTES,
		[15] = SHORT_BYTES,
		[16] = LONG_BYTES,
		[25] = SHORT_BYTES,
		[27] = SHORT_BYTES,
		[28] = SHORT_BYTES,
		[29] = SHORT_BYTES,
		[30] = LONG_BYTES};
	return type < TYPES ? bytes[type] : 0;
}

static uint64_t little(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

/* ---- the file -------------------------------------------------------------------------------- */

struct edge {
	uint32_t child_id, parent; /* parent: place in the file */
};

struct reading {
	struct noc_input *in;
	const struct noc_netrace_options *options;
	struct noc_netrace_notes notes;
	uint32_t nr_nodes;
	char name[31];
	struct noc_pdg *raw; /* packets in the order of the file, no dependencies */
	struct base_map by_id;
	struct edge *edge;
	size_t nr_edges, edges_capacity;
	uint64_t last_cycle;
};

static enum base_status foreign(const struct reading *r, const char *what, struct base_err *err)
{
	return base_fail(err, BASE_ERR_FOREIGN, "not a Netrace 1.0 trace: %s (byte %llu)", what,
		(unsigned long long)noc_input_offset(r->in));
}

static enum base_status netrace_skip(struct reading *r, uint64_t nr, struct base_err *err)
{
	uint8_t part[512];
	while (nr) {
		size_t want = nr < sizeof part ? (size_t)nr : sizeof part, got;
		enum base_status s = noc_input_read(r->in, part, want, &got, err);
		if (s != BASE_OK)
			return s;
		if (got < want)
			return foreign(r, "it ends within its header", err);
		nr -= got;
	}
	return BASE_OK;
}

static enum base_status netrace_read_header(struct reading *r, struct base_err *err)
{
	static const uint8_t version[4] = {0, 0, 0x80, 0x3f}; /* 1.0f */
	uint8_t h[HEADER_BYTES];
	size_t got;
	enum base_status s = noc_input_read(r->in, h, sizeof h, &got, err);
	if (s != BASE_OK)
		return s;
	if (got < sizeof h || little(h, 4) != MAGIC)
		return foreign(r, "no magic number", err);
	if (memcmp(h + 4, version, sizeof version) != 0)
		return foreign(r, "another version", err);
	memcpy(r->name, h + 8, sizeof r->name - 1);
	for (char *p = r->name; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	r->nr_nodes = h[38];
	r->notes.promised_packets = little(h + 48, 8);
	uint64_t notes = little(h + 56, 4), regions = little(h + 60, 4);
	if (!r->nr_nodes)
		return foreign(r, "no nodes", err);
	if (notes >= NOTES_MAX || regions > REGIONS_MAX)
		return foreign(r, "notes or regions beyond their limits", err);
	return netrace_skip(r, notes + regions * REGION_BYTES, err);
}

static enum base_status netrace_add_edges(struct reading *r, unsigned nr, struct base_err *err)
{
	uint8_t id[4 * UINT8_MAX];
	size_t got;
	enum base_status s = noc_input_read(r->in, id, 4 * (size_t)nr, &got, err);
	if (s != BASE_OK)
		return s;
	r->notes.truncated |= got < 4 * (size_t)nr;
	s = base_grow(&r->edge, &r->edges_capacity, r->nr_edges + nr + 1, sizeof *r->edge);
	if (s != BASE_OK)
		return base_fail(err, s, "no memory for dependencies");
	for (unsigned i = 0; i < got / 4; i++)
		r->edge[r->nr_edges++] =
			(struct edge){(uint32_t)little(id + 4 * i, 4), r->raw->nr_packets - 1};
	return BASE_OK;
}

static enum base_status netrace_add_packet(
	struct reading *r, const uint8_t *p, struct base_err *err)
{
	uint64_t cycle = little(p, 8), id = little(p + 8, 4), other;
	uint32_t bytes = noc_netrace_bytes(p[16]), width = r->options->width_bits;
	BASE_ASSUME(r->raw);
	if (p[17] >= r->nr_nodes || p[18] >= r->nr_nodes)
		return foreign(r, "a packet of a node that is not there", err);
	if (!bytes)
		return foreign(r, "a packet of an unknown type", err);
	if (cycle < r->last_cycle || cycle >= NOC_PDG_CYCLE_MAX)
		return foreign(r, "packets are not in the order of their cycles", err);
	if (base_map_get(&r->by_id, 0, id, &other))
		return foreign(r, "two packets of one number", err);
	enum base_status s = base_map_put(&r->by_id, 0, id, r->raw->nr_packets);
	if (s != BASE_OK)
		return base_fail(err, s, "no memory for packets");
	r->last_cycle = cycle;
	s = noc_pdg_add(r->raw,
		&(struct noc_pdg_packet){.source = p[17],
			.destination = p[18],
			.size_flits = (8 * bytes + width - 1) / width,
			.type = p[16],
			.units = p[19],
			.address = little(p + 12, 4),
			.transmit_cycle = cycle,
			.receive_cycle = cycle + r->options->latency_cycles},
		err);
	return s == BASE_OK && p[20] ? netrace_add_edges(r, p[20], err) : s;
}

static enum base_status netrace_read_packets(struct reading *r, struct base_err *err)
{
	for (;;) {
		uint8_t p[PACKET_BYTES];
		size_t got;
		enum base_status s = noc_input_read(r->in, p, sizeof p, &got, err);
		if (s != BASE_OK)
			return s;
		r->notes.truncated |= got && got < sizeof p;
		if (got < sizeof p)
			break;
		s = netrace_add_packet(r, p, err);
		if (s != BASE_OK)
			return s;
	}
	BASE_ASSUME(r->raw);
	r->notes.packets = r->raw->nr_packets;
	r->notes.truncated |= r->notes.packets < r->notes.promised_packets;
	return BASE_OK;
}

/* ---- the graph ------------------------------------------------------------------------------- */

static int compare_edges(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;
	if (x->child_id != y->child_id)
		return x->child_id < y->child_id ? -1 : 1;
	return x->parent < y->parent ? -1 : x->parent > y->parent;
}

/* Children become places; edges that no graph can have are counted and left out. */
static void netrace_resolve(struct reading *r)
{
	const struct noc_pdg *raw = r->raw;
	size_t nr = 0;
	for (size_t i = 0; i < r->nr_edges; i++) {
		uint64_t child;
		uint32_t parent = r->edge[i].parent;
		if (!base_map_get(&r->by_id, 0, r->edge[i].child_id, &child))
			r->notes.missing++;
		else if (child <= parent)
			r->notes.backwards++;
		else if (raw->destination[parent] != raw->source[child])
			r->notes.elsewhere++;
		else
			r->edge[nr++] = (struct edge){(uint32_t)child, parent};
	}
	r->nr_edges = nr;
	if (nr)
		qsort(r->edge, nr, sizeof *r->edge, compare_edges);
}

static enum base_status netrace_build(struct reading *r, struct noc_pdg *g, struct base_err *err)
{
	const struct noc_pdg *raw = r->raw;
	size_t e = 0;
	for (uint32_t i = 0; i < raw->nr_packets; i++) {
		uint64_t latest = 0, cycle = raw->transmit_cycle[i];
		size_t end = e;
		for (; end < r->nr_edges && r->edge[end].child_id == i; end++)
			if (raw->receive_cycle[r->edge[end].parent] > latest)
				latest = raw->receive_cycle[r->edge[end].parent];
		struct noc_pdg_packet p = {.source = raw->source[i],
			.destination = raw->destination[i],
			.size_flits = raw->size_flits[i],
			.type = raw->type[i],
			.units = raw->units[i],
			.address = raw->address[i],
			.transmit_cycle = cycle,
			.receive_cycle = raw->receive_cycle[i],
			.delay_cycles = cycle};
		if (end > e && r->options->delays) {
			p.delay_cycles = cycle > latest ? cycle - latest : 1;
		} else if (end > e) {
			p.delay_cycles = 1;
			p.inputs = NOC_PDG_NOT_BEFORE;
		}
		enum base_status s = noc_pdg_add(g, &p, err);
		for (; e < end && s == BASE_OK; e++)
			if (!(e && r->edge[e - 1].child_id == i &&
				    r->edge[e - 1].parent == r->edge[e].parent))
				s = noc_pdg_add_dependency(g, r->edge[e].parent, NOC_GIVEN, err);
		if (s != BASE_OK)
			return s;
	}
	g->has_graph = true;
	g->has_addresses = true;
	memset(g->ordered, 0, g->nr_nodes);
	struct base_str origin = {0};
	base_str_addf(&origin, "import netrace benchmark='%s' width=%u delays=%d latency=%u",
		r->name, r->options->width_bits, r->options->delays, r->options->latency_cycles);
	memcpy(g->origin, base_str_text(&origin),
		strnlen(base_str_text(&origin), sizeof g->origin - 1));
	base_str_fini(&origin);
	return BASE_OK;
}

enum base_status noc_netrace_read(struct noc_input *in, const struct noc_netrace_options *o,
	struct noc_pdg **ret, struct noc_netrace_notes *ret_notes, struct base_err *err)
{
	struct reading r = {.in = in, .options = o};
	struct noc_pdg *g = NULL;
	*ret = NULL;
	BASE_ASSERT(o->width_bits);
	enum base_status s = netrace_read_header(&r, err);
	if (s == BASE_OK) {
		r.raw = noc_pdg_new(r.nr_nodes);
		g = noc_pdg_new(r.nr_nodes);
		if (!r.raw || !g)
			s = base_fail(
				err, BASE_ERR_NOMEM, "no memory for %u {node|nodes}", r.nr_nodes);
	}
	if (s == BASE_OK)
		s = netrace_read_packets(&r, err);
	if (s == BASE_OK) {
		netrace_resolve(&r);
		s = netrace_build(&r, g, err);
	}
	noc_pdg_free(r.raw);
	base_map_fini(&r.by_id);
	base_free(r.edge);
	if (s != BASE_OK)
		g = noc_pdg_free(g);
	*ret = g;
	*ret_notes = r.notes;
	return s;
}
