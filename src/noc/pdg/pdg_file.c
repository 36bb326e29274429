/* SPDX-License-Identifier: Apache-2.0 */
/* pdg_file.c - packet dependency graphs as .lpt traces. */
#include "noc/pdg/pdg_file.h"

#include <stdlib.h>
#include <string.h>

enum { HAS_GRAPH = 1, HAS_ADDRESSES = 2 };

/* ---- writing --------------------------------------------------------------------------------- */

static enum base_status pdg_file_put_string(
	struct trace_writer *w, uint32_t id, const char *text, struct base_err *err)
{
	struct trace_record r = {.kind = TRACE_string,
		.u.string = {
			.string = id, .text = {.bytes = text, .length = (uint32_t)strlen(text)}}};
	return trace_writer_put(w, &r, err);
}

enum { STRING_TOOL = 1, STRING_ORIGIN, STRING_NODES };

static enum base_status pdg_file_put_definitions(
	const struct noc_pdg *g, struct trace_writer *w, struct base_err *err)
{
	struct trace_record process = {.kind = TRACE_process,
		.u.process = {
			.process = 1, .pid = 1, .name = STRING_TOOL, .command = STRING_ORIGIN}};
	enum base_status s = pdg_file_put_string(w, STRING_TOOL, "noc", err);
	if (s == BASE_OK)
		s = pdg_file_put_string(w, STRING_ORIGIN, g->origin, err);
	if (s == BASE_OK)
		s = trace_writer_put(w, &process, err);
	for (uint32_t n = 0; n < g->nr_nodes && s == BASE_OK; n++) {
		struct base_str name = {0};
		struct trace_record r = {.kind = TRACE_stream,
			.u.stream = {.stream = n + 1,
				.process = 1,
				.tid = n + 1,
				.name = STRING_NODES + n}};
		base_str_addf(&name, "node %u", n);
		s = pdg_file_put_string(w, STRING_NODES + n, base_str_text(&name), err);
		base_str_fini(&name);
		if (s == BASE_OK)
			s = trace_writer_put(w, &r, err);
	}
	return s;
}

static enum base_status put_header(
	const struct noc_pdg *g, uint64_t nr_packets, struct trace_writer *w, struct base_err *err)
{
	struct trace_record r = {.kind = TRACE_noc_graph, .stream = 1};
	r.u.noc_graph.nodes = g->nr_nodes;
	r.u.noc_graph.packets = nr_packets;
	r.u.noc_graph.run = g->run;
	r.u.noc_graph.has =
		(g->has_graph ? HAS_GRAPH : 0u) | (g->has_addresses ? HAS_ADDRESSES : 0u);
	r.u.noc_graph.origin = STRING_ORIGIN;
	enum base_status s = trace_writer_put(w, &r, err);
	for (uint32_t n = 0; n < g->nr_nodes && s == BASE_OK; n++) {
		struct trace_record o = {.kind = TRACE_noc_node, .stream = n + 1};
		o.u.noc_node.ordered = g->ordered[n];
		s = trace_writer_put(w, &o, err);
	}
	return s;
}

static enum base_status put_gate(const struct noc_pdg *g, uint32_t i, uint64_t number_of_first,
	struct trace_writer *w, struct trace_record *r, struct base_err *err)
{
	r->kind = TRACE_noc_gate;
	memset(&r->u, 0, sizeof r->u);
	r->u.noc_gate.delay = g->delay_cycles[i];
	r->u.noc_gate.inputs = g->inputs[i];
	r->u.noc_gate.dependencies = g->first[i + 1] - g->first[i];
	enum base_status s = trace_writer_put(w, r, err);
	for (uint64_t d = g->first[i]; d < g->first[i + 1] && s == BASE_OK; d++) {
		r->kind = TRACE_noc_dependency;
		memset(&r->u, 0, sizeof r->u);
		r->u.noc_dependency.on = number_of_first + g->dependency[d];
		r->u.noc_dependency.certainty = g->certainty[d];
		s = trace_writer_put(w, r, err);
	}
	return s;
}

static enum base_status pdg_file_put_packet(const struct noc_pdg *g, uint32_t i,
	uint64_t number_of_first, struct trace_writer *w, struct base_err *err)
{
	struct trace_record r = {.kind = TRACE_noc_packet,
		.stream = g->source[i] + 1,
		.time_ns = g->transmit_cycle[i]};
	r.u.noc_packet.packet = number_of_first + i;
	r.u.noc_packet.destination = g->destination[i] + 1;
	r.u.noc_packet.size = g->size_flits[i];
	r.u.noc_packet.type = g->type[i];
	r.u.noc_packet.latency = g->receive_cycle[i] - g->transmit_cycle[i];
	enum base_status s = trace_writer_put(w, &r, err);
	if (g->has_addresses && s == BASE_OK) {
		r.kind = TRACE_noc_address;
		memset(&r.u, 0, sizeof r.u);
		r.u.noc_address.address = g->address[i];
		r.u.noc_address.units = g->units[i];
		s = trace_writer_put(w, &r, err);
	}
	if (g->has_graph && s == BASE_OK)
		s = put_gate(g, i, number_of_first, w, &r, err);
	return s;
}

static enum base_status put_receiver(const struct noc_pdg *g, uint32_t i, uint64_t number_of_first,
	struct trace_writer *w, struct base_err *err)
{
	struct trace_record r = {.kind = TRACE_noc_receiver,
		.stream = g->source[i] + 1,
		.time_ns = g->transmit_cycle[i]};
	r.u.noc_receiver.packet = number_of_first + i;
	r.u.noc_receiver.destination = g->destination[i] + 1;
	r.u.noc_receiver.latency = g->receive_cycle[i] - g->transmit_cycle[i];
	return trace_writer_put(w, &r, err);
}

struct moment {
	uint64_t cycle;
	uint32_t packet;
};

static int pdg_file_compare_moments(const void *a, const void *b)
{
	const struct moment *x = a, *y = b;
	if (x->cycle != y->cycle)
		return x->cycle < y->cycle ? -1 : 1;
	return x->packet < y->packet ? -1 : x->packet > y->packet;
}

/* In the order of their transmits: a stream's times do not decrease. */
enum base_status noc_pdg_write_packets(const struct noc_pdg *g, uint32_t from, uint32_t to,
	uint64_t number_of_first, struct trace_writer *w, struct base_err *err)
{
	uint32_t nr = to - from;
	struct moment *m = base_alloc(((size_t)nr + 1) * sizeof *m);
	enum base_status s = BASE_OK;
	bool sorted = true;
	if (!m)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to write the packets");
	for (uint32_t i = 0; i < nr; i++) {
		m[i] = (struct moment){g->transmit_cycle[from + i], from + i};
		sorted = sorted && (!i || m[i - 1].cycle <= m[i].cycle);
	}
	if (!sorted)
		qsort(m, nr, sizeof *m, pdg_file_compare_moments);
	for (uint32_t i = 0; i < nr && s == BASE_OK; i++) {
		bool is_copy = noc_pdg_is_copy(g, m[i].packet);
		s = (is_copy ? put_receiver : pdg_file_put_packet)(
			g, m[i].packet, number_of_first, w, err);
	}
	base_free(m);
	return s;
}

static const char tool[] = "longpole noc";

bool noc_pdg_is_trace(const struct trace_info *info)
{
	return info->tool && !strcmp(info->tool, tool);
}

enum base_status noc_pdg_write_begin(const struct noc_pdg *head, uint64_t nr_packets,
	const char *path, struct trace_writer **ret, struct base_err *err)
{
	struct trace_info info = {.size = sizeof info,
		.host = "simulated",
		.command = head->origin,
		.tool = tool,
		.nr_processors = head->nr_nodes,
		.flags = TRACE_INFO_SYNTHETIC};
	struct trace_writer *w;
	enum base_status s = trace_writer_open(path, &info, &w, err);
	if (s != BASE_OK)
		return s;
	s = pdg_file_put_definitions(head, w, err);
	if (s == BASE_OK)
		s = put_header(head, nr_packets, w, err);
	if (s == BASE_OK) {
		*ret = w;
		return s;
	}
	enum base_status closed = trace_writer_close(w, NULL);
	return closed == BASE_OK || s != BASE_OK ? s : closed;
}

enum base_status noc_pdg_write(const struct noc_pdg *g, const char *path, struct base_err *err)
{
	struct trace_writer *w;
	enum base_status s = noc_pdg_write_begin(g, g->nr_packets, path, &w, err);
	if (s != BASE_OK)
		return s;
	s = noc_pdg_write_packets(g, 0, g->nr_packets, 0, w, err);
	enum base_status closed = trace_writer_close(w, s == BASE_OK ? err : NULL);
	return s == BASE_OK ? closed : s;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct load {
	struct noc_pdg *g; /* packets in the order of the file */
	uint32_t *number;  /* of them */
	size_t numbers_capacity;
	uint64_t nr_wanted;  /* by the header */
	uint64_t nr_records; /* in the trace, as its index has it */
	uint32_t stream;     /* of the packet before; 0: none */
};
/* Packets that there is room for before they come: the header may lie. */
enum { RESERVED_MAX = 1 << 20 };

static enum base_status bad(struct base_err *err, const char *what)
{
	return base_fail(err, BASE_ERR_CORRUPT, "%s", what);
}

enum base_status noc_pdg_read_header(const struct trace_record *r, const struct trace_defs *defs,
	struct noc_pdg **ret, uint64_t *ret_packets, struct base_err *err)
{
	const struct trace_noc_graph *h = &r->u.noc_graph;
	if (*ret)
		return bad(err, "two noc_graph records");
	if (!h->nodes || h->nodes > NOC_PDG_NODES_MAX || h->packets > NOC_PDG_PACKETS_MAX ||
		h->run > UINT32_MAX)
		return bad(err, "noc_graph: more nodes or packets than there can be");
	struct noc_pdg *g = noc_pdg_new((uint32_t)h->nodes);
	if (!g)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the nodes");
	*ret_packets = h->packets;
	g->run = (uint32_t)h->run;
	g->has_graph = (h->has & HAS_GRAPH) != 0;
	g->has_addresses = (h->has & HAS_ADDRESSES) != 0;
	const char *origin = trace_text_of(defs, h->origin);
	size_t length = strnlen(origin, NOC_PDG_ORIGIN_MAX - 1);
	memcpy(g->origin, origin, length);
	*ret = g;
	return BASE_OK;
}

enum base_status noc_pdg_read_packet(const struct trace_record *r, uint32_t nr_nodes,
	uint64_t nr_packets, struct noc_pdg_packet *ret, struct base_err *err)
{
	const struct trace_noc_packet *p = &r->u.noc_packet;
	if (!r->stream || r->stream > nr_nodes || !p->destination || p->destination > nr_nodes)
		return bad(err, "a packet of a node that is not there");
	if (p->packet >= nr_packets || !p->size || p->size > UINT32_MAX || p->type > UINT8_MAX ||
		p->latency > UINT64_MAX - r->time_ns)
		return bad(err, "a packet's number, size, type or latency is beyond its limit");
	*ret = (struct noc_pdg_packet){.source = r->stream - 1,
		.destination = (uint32_t)p->destination - 1,
		.size_flits = (uint32_t)p->size,
		.type = (uint8_t)p->type,
		.transmit_cycle = r->time_ns,
		.receive_cycle = r->time_ns + p->latency};
	return BASE_OK;
}

enum base_status noc_pdg_read_receiver(const struct trace_record *r, uint32_t nr_nodes,
	uint64_t nr_packets, const struct noc_pdg_packet *before, struct noc_pdg_packet *ret,
	struct base_err *err)
{
	const struct trace_noc_receiver *p = &r->u.noc_receiver;
	if (!before || r->stream != before->source + 1 || r->time_ns != before->transmit_cycle)
		return bad(err, "a receiver of no packet");
	if (!p->destination || p->destination > nr_nodes || p->packet >= nr_packets ||
		p->latency > UINT64_MAX - r->time_ns)
		return bad(err, "a receiver's number, node or latency is beyond its limit");
	*ret = *before;
	ret->destination = (uint32_t)p->destination - 1;
	ret->receive_cycle = r->time_ns + p->latency;
	ret->inputs = NOC_PDG_COPY;
	ret->delay_cycles = 0;
	return BASE_OK;
}

static enum base_status pdg_file_add_packet(
	struct load *l, const struct trace_record *r, struct base_err *err)
{
	struct noc_pdg *g = l->g;
	struct noc_pdg_packet packet, before;
	bool is_copy = r->kind == TRACE_noc_receiver;
	if (is_copy && g->nr_packets)
		before = noc_pdg_packet_at(g, g->nr_packets - 1);
	enum base_status s =
		is_copy ? noc_pdg_read_receiver(r, g->nr_nodes, l->nr_wanted,
				  g->nr_packets ? &before : NULL, &packet, err)
			: noc_pdg_read_packet(r, g->nr_nodes, l->nr_wanted, &packet, err);
	if (s != BASE_OK)
		return s;
	if (l->numbers_capacity <= g->nr_packets) {
		size_t room = g->packets_capacity;
		s = base_grow(&l->number, &l->numbers_capacity,
			room > g->nr_packets ? room : (size_t)g->nr_packets + 1, sizeof *l->number);
		if (s != BASE_OK)
			return base_fail(err, s, "no memory for the packets");
	}
	l->number[g->nr_packets] =
		(uint32_t)(is_copy ? r->u.noc_receiver.packet : r->u.noc_packet.packet);
	l->stream = r->stream;
	return noc_pdg_add(g, &packet, err);
}

static enum base_status pdg_file_add_record(struct load *l, const struct trace_defs *defs,
	const struct trace_record *r, struct base_err *err)
{
	struct noc_pdg *g = l->g;
	if (r->kind == TRACE_noc_graph) {
		enum base_status s = noc_pdg_read_header(r, defs, &l->g, &l->nr_wanted, err);
		uint64_t nr = l->nr_wanted < l->nr_records ? l->nr_wanted : l->nr_records;
		return s == BASE_OK
			       ? noc_pdg_reserve(l->g,
					 (uint32_t)(nr < RESERVED_MAX ? nr : RESERVED_MAX), err)
			       : s;
	}
	if (r->kind < TRACE_noc_graph || r->kind > TRACE_noc_receiver)
		return BASE_OK;
	if (!g)
		return bad(err, "packets before the noc_graph record");
	if (r->kind == TRACE_noc_node) {
		if (r->stream > g->nr_nodes)
			return bad(err, "a node beyond the last");
		g->ordered[r->stream - 1] = r->u.noc_node.ordered != 0;
		return BASE_OK;
	}
	if (r->kind == TRACE_noc_packet || r->kind == TRACE_noc_receiver)
		return pdg_file_add_packet(l, r, err);
	if (!g->nr_packets || r->stream != l->stream)
		return bad(err, "a gate, dependency or address without its packet");
	uint32_t last = g->nr_packets - 1;
	if (r->kind == TRACE_noc_address) {
		g->address[last] = r->u.noc_address.address;
		g->units[last] = (uint8_t)r->u.noc_address.units;
	} else if (r->kind == TRACE_noc_gate) {
		g->delay_cycles[last] = r->u.noc_gate.delay;
		g->inputs[last] = r->u.noc_gate.inputs &
				  (NOC_PDG_PREVIOUS | NOC_PDG_UNEXPLAINED | NOC_PDG_NOT_BEFORE);
	} else {
		if (r->u.noc_dependency.on >= l->nr_wanted ||
			r->u.noc_dependency.certainty >= NOC_CERTAINTIES)
			return bad(err, "a dependency on a packet that is not there");
		return noc_pdg_add_dependency(g, (uint32_t)r->u.noc_dependency.on,
			(enum noc_certainty)r->u.noc_dependency.certainty, err);
	}
	return BASE_OK;
}

static enum base_status pdg_file_load(
	struct trace_reader *reader, struct noc_pdg **ret, struct base_err *err)
{
	struct load l = {.nr_records = trace_reader_record_count(reader)};
	struct trace_batch b;
	enum base_status s;
	while ((s = trace_reader_next(reader, &b, err)) == BASE_OK)
		for (size_t i = 0; i < b.nr && s == BASE_OK; i++) {
			s = pdg_file_add_record(&l, trace_reader_defs(reader), &b.record[i], err);
			if (s != BASE_OK)
				goto out;
		}
	if (s == BASE_END)
		s = BASE_OK;
	if (s == BASE_OK && !l.g)
		s = base_fail(err, BASE_ERR_NOTFOUND, "no packets of a network in this trace");
	BASE_ASSUME(s != BASE_OK || l.g);
	if (s == BASE_OK && l.g->nr_packets != l.nr_wanted)
		s = base_fail(err, BASE_ERR_TRUNCATED, "%u of %llu {packet|packets} are there",
			l.g->nr_packets, (unsigned long long)l.nr_wanted);
	if (s == BASE_OK)
		s = noc_pdg_number(l.g, l.number, err);
out:
	*ret = s == BASE_OK ? l.g : noc_pdg_free(l.g);
	base_free(l.number);
	return s;
}

enum base_status noc_pdg_read(const char *path, struct noc_pdg **ret, struct base_err *err)
{
	struct trace_reader *reader;
	*ret = NULL;
	enum base_status s = trace_reader_open(path, NULL, &reader, err);
	if (s != BASE_OK)
		return s;
	s = pdg_file_load(reader, ret, err);
	trace_reader_close(reader);
	return s == BASE_OK ? s : base_cause(err, s, "while reading %s", path);
}

enum base_status noc_pdg_read_memory(
	const void *bytes, size_t size_bytes, struct noc_pdg **ret, struct base_err *err)
{
	struct trace_reader *reader;
	*ret = NULL;
	enum base_status s = trace_reader_open_memory(bytes, size_bytes, NULL, &reader, err);
	if (s != BASE_OK)
		return s;
	s = pdg_file_load(reader, ret, err);
	trace_reader_close(reader);
	return s;
}
