/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packets.c - which bytes of a flow are under way in which packets. Cards and drivers cut packets
 * (segmentation offload) and put them together (receive offload), so what comes is not always what
 * went: then the sequence numbers tell. Numbers begin anew at 2^32.
 */
#include "model/model_private.h"

#include <string.h>

enum { PACKETS_MAX = 4096 }; /* of one flow; beyond them only whole ones are recognised */

void model_packet_sent(
	struct model *m, struct object *o, const struct trace_packet_queue *p, uint64_t key)
{
	struct packets *f = o->packets;
	if (!p->payload || p->payload > INT32_MAX || (f && f->nr == PACKETS_MAX))
		return;
	if (!f)
		f = o->packets = base_alloc(sizeof *f);
	enum base_status s = f ? base_grow(&f->packet, &f->capacity, f->nr + 1, sizeof *f->packet)
			       : BASE_ERR_NOMEM;
	if (s != BASE_OK) {
		m->status = base_fail(m->err, s, "out of memory for packets");
		return;
	}
	f->packet[f->nr++] = (struct packet){
		.key = key, .begin = (uint32_t)p->seq, .end = (uint32_t)(p->seq + p->payload)};
}

/* Those with any of its bytes, in the order in which they were sent; valid until the next call. */
const struct packet *model_packets_covering(
	struct object *o, const struct trace_packet_queue *p, size_t *ret_nr)
{
	struct packets *f = o->packets;
	*ret_nr = 0;
	if (!f || !p->payload || p->payload > INT32_MAX)
		return NULL;
	uint32_t begin = (uint32_t)p->seq, end = (uint32_t)(p->seq + p->payload);
	size_t nr = 0;
	for (size_t i = 0; i < f->nr && nr < PACKETS_FOUND_MAX; i++)
		if ((int32_t)(f->packet[i].begin - end) < 0 &&
			(int32_t)(begin - f->packet[i].end) < 0)
			f->found[nr++] = f->packet[i];
	*ret_nr = nr;
	return f->found;
}

void model_packet_gone(struct object *o, uint64_t key)
{
	struct packets *f = o->packets;
	for (size_t i = 0; f && i < f->nr; i++) {
		if (f->packet[i].key != key)
			continue;
		memmove(&f->packet[i], &f->packet[i + 1], (f->nr - i - 1) * sizeof *f->packet);
		f->nr--;
		return;
	}
}

void model_packets_gone(struct object *o)
{
	if (o->packets)
		o->packets->nr = 0;
}

void model_packets_free(struct object *o)
{
	if (o->packets)
		base_free(o->packets->packet);
	base_free(o->packets);
	o->packets = NULL;
}
