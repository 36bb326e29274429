/* SPDX-License-Identifier: Apache-2.0 */
/* tcp.c - RFC 5681 (congestion control), RFC 3465 (byte counting), RFC 1122 section 4.2 (delayed
 * acknowledgements, silly windows). */
#include "platform/tcp.h"

#include "base/base.h"

void platform_tcp_init(struct platform_tcp *t, const struct platform_tcp_options *o)
{
	*t = (struct platform_tcp){
		.o = *o,
		.edge = o->peer_window_bytes,
		.cwnd = (uint64_t)o->initial_window_segments * o->mss_bytes,
		.ssthresh = o->ssthresh_bytes,
		.edge_sent = o->receive_buffer_bytes,
	};
}

uint64_t platform_tcp_new_credit(struct platform_tcp *t)
{
	uint64_t allowed = platform_smaller(t->una + t->cwnd, t->edge), fresh = 0;
	if (allowed > t->credited) {
		fresh = allowed - t->credited;
		t->credited = allowed;
	}
	return fresh;
}

uint64_t platform_tcp_send(struct platform_tcp *t, uint32_t bytes)
{
	uint64_t seq = t->next;
	t->next += bytes;
	BASE_ASSERT(t->next <= t->credited);
	return seq;
}

/* Slow start: as much as was acknowledged, within the limit (RFC 3465 section 2.2); afterwards one
 * segment for each window of acknowledged bytes (section 2.1). */
static void open_window(struct platform_tcp *t, uint64_t acked)
{
	if (t->cwnd < t->ssthresh) {
		t->cwnd +=
			platform_smaller(acked, (uint64_t)t->o.abc_limit_segments * t->o.mss_bytes);
		return;
	}
	t->cwnd_counted += acked;
	if (t->cwnd_counted >= t->cwnd) {
		t->cwnd_counted -= t->cwnd;
		t->cwnd += t->o.mss_bytes;
	}
}

uint64_t platform_tcp_on_ack(struct platform_tcp *t, uint64_t ack, uint64_t edge)
{
	BASE_ASSERT(ack <= t->next);
	if (edge > t->edge)
		t->edge = edge;
	if (ack <= t->una)
		return 0;
	/* A window that the sender does not fill proves nothing (RFC 7661 section 4.1). */
	uint64_t in_flight = t->next - t->una, acked = ack - t->una;
	if (!t->o.validates_window || t->cwnd < 2 * in_flight)
		open_window(t, acked);
	t->una = ack;
	return acked;
}

enum platform_tcp_ack platform_tcp_on_data(struct platform_tcp *t, uint64_t seq, uint32_t bytes)
{
	if (!bytes)
		return PLATFORM_TCP_ACK_NONE;
	BASE_ASSERT(seq == t->received); /* the link keeps the order */
	t->received += bytes;
	BASE_ASSERT(t->received <= t->edge_sent);
	t->unacked_bytes += bytes;
	t->unacked_segments++;
	bool full = t->unacked_bytes >= t->o.ack_every_segments * t->o.mss_bytes;
	return full ? PLATFORM_TCP_ACK_NOW : PLATFORM_TCP_ACK_LATER;
}

bool platform_tcp_on_read(struct platform_tcp *t, uint64_t bytes)
{
	t->read += bytes;
	BASE_ASSERT(t->read <= t->received);
	/* RFC 1122 section 4.2.3.3 asks for at least min(half of the buffer, a segment) */
	return t->read + t->o.receive_buffer_bytes - t->edge_sent >= t->o.receive_buffer_bytes / 2;
}

void platform_tcp_on_sent_ack(struct platform_tcp *t, uint64_t *ret_ack, uint64_t *ret_edge)
{
	t->edge_sent = t->read + t->o.receive_buffer_bytes;
	t->unacked_bytes = t->unacked_segments = 0;
	*ret_ack = t->received;
	*ret_edge = t->edge_sent;
}
