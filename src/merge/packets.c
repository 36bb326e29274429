/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packets.c - pairs from TCP packets that two machines saw: the same addresses, ports, last byte
 * and acknowledgement.
 *
 * A packet that is sent twice (again, or by a router) is matched from its first sending, which is
 * earlier than any receiving: the bounds may become wider, not wrong. Segments may be cut or joined
 * on the way; those whose last byte is no packet's last byte at the other end stay unmatched.
 */
#include "merge/private.h"

#include <string.h>

struct packet { /* seen at one end so far */
	uint64_t key_hi, key_lo;
	uint64_t at_ns;
	uint32_t input, flow, nr; /* nr 0: gone */
	bool is_sent;
};
struct flow {
	uint64_t nr_sent, nr_received, nr_matched;
};
struct merge_packets {
	struct merge *m;
	struct packet *packet; /* a ring: the oldest make room */
	size_t capacity, next;
	struct base_map by_key;              /* index + 1 */
	uint32_t *flow_of[MERGE_INPUTS_MAX]; /* by object: flow's number; 0: not known; 1: none */
	struct base_strtab *names;
	struct flow *flow;
	size_t flow_capacity;
};

enum { NO_FLOW = 1, FLOW_FIRST = 2 };

/* "tcp FROM:PORT>TO:PORT"; loopback addresses mean something on one machine only. */
static enum base_status name_flow(
	struct merge_packets *p, uint32_t input, uint32_t object, uint32_t *ret)
{
	const struct merge_input *in = &p->m->input[input];
	const struct trace_object *o = &in->defs->objects[object];
	const char *name = trace_text_of(in->defs, o->name);
	struct base_str text = {0};
	uint32_t id;
	*ret = NO_FLOW;
	if (o->type != TRACE_OBJECT_flow || strncmp(name, "tcp ", 4) != 0)
		return BASE_OK;
	base_str_add(&text, name);
	if (!strncmp(name + 4, "127.", 4) || strstr(name, ">127.") || strstr(name, "[::1]"))
		base_str_addf(&text, " on %u", in->host_number);
	enum base_status status =
		text.failed ? BASE_ERR_NOMEM
			    : base_strtab_intern(p->names, base_str_text(&text), text.length, &id);
	base_str_fini(&text);
	if (status == BASE_OK)
		status = base_grow(
			&p->flow, &p->flow_capacity, (size_t)id + FLOW_FIRST + 1, sizeof *p->flow);
	if (status == BASE_OK)
		*ret = id + FLOW_FIRST;
	return status;
}

static enum base_status find_flow(
	struct merge_packets *p, uint32_t input, uint32_t object, uint32_t *ret)
{
	*ret = NO_FLOW;
	if (!object || object >= p->m->input[input].defs->nr_objects)
		return BASE_OK;
	uint32_t *known = &p->flow_of[input][object];
	enum base_status status = *known ? BASE_OK : name_flow(p, input, object, known);
	*ret = *known;
	return status;
}

static void packets_drop(struct merge_packets *p, struct packet *k)
{
	if (k->nr)
		base_map_remove(&p->by_key, k->key_hi, k->key_lo);
	k->nr = 0;
}

static enum base_status packets_keep(struct merge_packets *p, struct packet k)
{
	if (p->next == p->capacity && p->capacity < MERGE_PACKETS_MAX) {
		enum base_status status =
			base_grow(&p->packet, &p->capacity, p->capacity + 1, sizeof *p->packet);
		if (status != BASE_OK)
			return status;
	}
	if (p->next == p->capacity)
		p->next = 0;
	packets_drop(p, &p->packet[p->next]);
	enum base_status status = base_map_put(&p->by_key, k.key_hi, k.key_lo, p->next + 1);
	if (status == BASE_OK)
		p->packet[p->next++] = k;
	return status;
}

static enum base_status saw(struct merge_packets *p, struct packet k)
{
	struct flow *flow = &p->flow[k.flow];
	uint64_t at;
	++*(k.is_sent ? &flow->nr_sent : &flow->nr_received);
	if (!base_map_get(&p->by_key, k.key_hi, k.key_lo, &at))
		return packets_keep(p, k);
	struct packet *other = &p->packet[at - 1];
	if (other->is_sent == k.is_sent) {
		other->nr++; /* once more: the first sending, the last receiving are true for all */
		if (!k.is_sent) {
			other->at_ns = k.at_ns;
			other->input = k.input;
		}
		return BASE_OK;
	}
	flow->nr_matched++;
	struct packet sent = k.is_sent ? k : *other, received = k.is_sent ? *other : k;
	if (!--other->nr)
		base_map_remove(&p->by_key, k.key_hi, k.key_lo);
	return merge_add_pair(p->m, (struct merge_end){sent.input, 0}, sent.at_ns,
		(struct merge_end){received.input, 0}, received.at_ns, MERGE_SOURCE_packets);
}

enum base_status merge_packets_record(
	struct merge_packets *p, uint32_t input, const struct trace_record *r)
{
	if (r->kind != TRACE_packet_transmit && r->kind != TRACE_packet_receive)
		return BASE_OK;
	/* both kinds have the same fields */
	bool is_sent = r->kind == TRACE_packet_transmit;
	uint32_t flow;
	enum base_status status = find_flow(
		p, input, is_sent ? r->u.packet_transmit.flow : r->u.packet_receive.flow, &flow);
	if (status != BASE_OK || flow == NO_FLOW)
		return status;
	uint64_t seq = is_sent ? r->u.packet_transmit.seq : r->u.packet_receive.seq,
		 ack = is_sent ? r->u.packet_transmit.ack : r->u.packet_receive.ack,
		 payload = is_sent ? r->u.packet_transmit.payload : r->u.packet_receive.payload;
	return saw(
		p, (struct packet){.key_hi = (uint64_t)flow << 33 | (uint64_t)(payload == 0) << 32 |
					     ((seq + payload) & UINT32_MAX),
			   .key_lo = ack,
			   .at_ns = r->time_ns,
			   .input = input,
			   .flow = flow,
			   .nr = 1,
			   .is_sent = is_sent});
}

void merge_packets_count(const struct merge_packets *p, struct merge_result *ret)
{
	uint32_t nr = base_strtab_count(p->names) + FLOW_FIRST;
	for (uint32_t i = FLOW_FIRST; i < nr && i < p->flow_capacity; i++) {
		const struct flow *f = &p->flow[i];
		if (!f->nr_sent || !f->nr_received)
			continue; /* the other end is nobody's that was recorded */
		ret->nr_sent += f->nr_sent;
		ret->nr_received += f->nr_received;
		ret->nr_matched += f->nr_matched;
	}
}

struct merge_packets *merge_packets_new(struct merge *m)
{
	struct merge_packets *p = base_alloc(sizeof *p);
	if (!p)
		return NULL;
	p->m = m;
	p->names = base_strtab_new();
	bool failed = !p->names;
	for (uint32_t i = 0; !failed && i < m->nr_inputs; i++) {
		p->flow_of[i] = base_alloc(
			((size_t)m->input[i].defs->nr_objects + 1) * sizeof *p->flow_of[i]);
		failed = !p->flow_of[i];
	}
	return failed ? merge_packets_free(p) : p;
}

struct merge_packets *merge_packets_free(struct merge_packets *p)
{
	for (uint32_t i = 0; p && i < MERGE_INPUTS_MAX; i++)
		base_free(p->flow_of[i]);
	if (p) {
		base_strtab_free(p->names);
		base_map_fini(&p->by_key);
		base_free(p->packet);
		base_free(p->flow);
	}
	base_free(p);
	return NULL;
}
