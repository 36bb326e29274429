/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packets.c - which bytes of a flow are under way in which packets. Cards and drivers cut packets
 * (segmentation offload) and put them together (receive offload), so what comes is not always what
 * went: then the sequence numbers tell. Numbers begin anew at 2^32.
 */
#include "model/model_private.h"

#include <string.h>

enum { PACKETS_MAX = 4096 }; /* of one flow; beyond them only whole ones are recognised */

bool model_packet_sent(
	struct model *m, struct packets **packets, const struct trace_packet_queue *p, uint64_t key)
{
	struct packets *f = *packets;
	if (!p->payload || p->payload > INT32_MAX || (f && f->nr == PACKETS_MAX))
		return false;
	if (!f)
		f = *packets = base_alloc(sizeof *f);
	enum base_status s = f ? base_grow(&f->packet, &f->capacity, f->nr + 1, sizeof *f->packet)
			       : BASE_ERR_NOMEM;
	if (s != BASE_OK) {
		m->status = base_fail(m->err, s, "out of memory for packets");
		return false;
	}
	f->packet[f->nr++] = (struct packet){
		.key = key, .begin = (uint32_t)p->seq, .end = (uint32_t)(p->seq + p->payload)};
	return true;
}

static bool overlaps(const struct packet *k, const struct trace_packet_queue *p)
{
	uint32_t begin = (uint32_t)p->seq, end = (uint32_t)(p->seq + p->payload);
	return (int32_t)(k->begin - end) < 0 && (int32_t)(begin - k->end) < 0;
}

/* Those with any of its bytes, in the order in which they were sent; valid until the next call. */
const struct packet *model_packets_covering(
	struct packets *f, const struct trace_packet_queue *p, size_t *ret_nr)
{
	*ret_nr = 0;
	if (!f || !p->payload || p->payload > INT32_MAX)
		return NULL;
	size_t nr = 0;
	for (size_t i = 0; i < f->nr && nr < PACKETS_FOUND_MAX; i++)
		if (overlaps(&f->packet[i], p))
			f->found[nr++] = f->packet[i];
	*ret_nr = nr;
	return f->found;
}

static void packets_forget(struct packets *f, size_t from, size_t nr)
{
	memmove(&f->packet[from], &f->packet[from + nr], (f->nr - from - nr) * sizeof *f->packet);
	f->nr -= nr;
}

/* The oldest with that key; f->nr: none. */
static size_t packets_find(const struct packets *f, uint64_t key)
{
	size_t i = 0;
	while (i < f->nr && f->packet[i].key != key)
		i++;
	return i;
}

bool model_packet_gone(struct packets *f, uint64_t key)
{
	size_t i = f ? packets_find(f, key) : 0;
	if (!f || i == f->nr)
		return false;
	packets_forget(f, i, 1);
	return true;
}

uint64_t model_packets_leave(struct packets *f, const struct trace_packet_queue *p, uint64_t key)
{
	uint64_t bytes = 0;
	size_t at = f ? packets_find(f, key) : 0;
	for (size_t i = 0; f && at == f->nr && i < f->nr; i++)
		if (overlaps(&f->packet[i], p))
			at = i;
	if (!f || at == f->nr)
		return 0;
	for (size_t i = 0; i < at; i++)
		bytes += f->packet[i].end - f->packet[i].begin;
	struct packet *k = &f->packet[at];
	uint32_t end = (uint32_t)(p->seq + p->payload);
	bool whole = k->key == key || (int32_t)(end - k->end) >= 0;
	bytes += (whole ? k->end : end) - k->begin;
	k->begin = end;
	packets_forget(f, 0, at + whole);
	return bytes;
}

void model_packets_gone(struct packets *f)
{
	if (f)
		f->nr = 0;
}

void model_packets_free(struct packets *f)
{
	if (f)
		base_free(f->packet);
	base_free(f);
}
