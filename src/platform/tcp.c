/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.c - RFC 5681 (congestion control), RFC 3465 (byte counting), RFC 6582 (NewReno's recovery),
 * RFC 6298 (timeouts), RFC 1122 section 4.2 (delayed acknowledgements, silly windows).
 */
#include "platform/tcp.h"

#include "base/base.h"

#include <string.h>

/* RFC 6298 section 2.1: before a round trip is known. */
static uint64_t tcp_first_timeout_ns(const struct platform_tcp_options *o)
{
	uint64_t second = 1000000000;
	return o->least_timeout_ns > second ? o->least_timeout_ns : second;
}

void platform_tcp_init(struct platform_tcp *t, const struct platform_tcp_options *o)
{
	*t = (struct platform_tcp){
		.o = *o,
		.edge = o->peer_window_bytes,
		.cwnd = (uint64_t)o->initial_window_segments * o->mss_bytes,
		.ssthresh = o->ssthresh_bytes,
		.edge_sent = o->receive_buffer_bytes,
		.timeout_ns = tcp_first_timeout_ns(o),
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

uint64_t platform_tcp_take_back_credit(struct platform_tcp *t, uint64_t unused_bytes)
{
	uint64_t allowed = platform_smaller(t->una + t->cwnd, t->edge), back = 0;
	if (allowed < t->credited)
		back = platform_smaller(t->credited - allowed, unused_bytes);
	t->credited -= back;
	return back;
}

uint64_t platform_tcp_send(struct platform_tcp *t, uint32_t bytes, uint64_t now_ns)
{
	uint64_t seq = t->next;
	if (t->una == t->next)
		t->deadline_ns = now_ns + t->timeout_ns; /* RFC 6298 section 5.1 */
	t->next += bytes;
	BASE_ASSERT(t->next <= t->credited);
	if (!t->timed_ack) {
		t->timed_ack = t->next;
		t->timed_since_ns = now_ns;
	}
	return seq;
}

/* Slow start: as much as was acknowledged, within the limit (RFC 3465 section 2.2); afterwards one
 * segment for each window of acknowledged bytes (section 2.1). */
static void tcp_open_window(struct platform_tcp *t, uint64_t acked)
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

/* ---- losses: RFC 5681 section 3.2, RFC 6582 (fast), RFC 6298 (timeouts) ---------------------- */

static uint64_t tcp_larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t tcp_half_of_flight(const struct platform_tcp *t)
{
	return tcp_larger((t->next - t->una) / 2, (uint64_t)2 * t->o.mss_bytes);
}

static void tcp_resend_first(struct platform_tcp *t)
{
	t->resend = (struct platform_tcp_range){
		t->una, platform_smaller(t->una + t->o.mss_bytes, t->recover)};
}

static void tcp_on_duplicate(struct platform_tcp *t)
{
	enum { THRESHOLD = 3 };
	if (t->recovery == PLATFORM_TCP_RECOVERY_FAST) {
		t->cwnd += t->o.mss_bytes; /* one has left the network */
		return;
	}
	/* (a window that a timeout sends again makes duplicates, too: RFC 6582 section 4) */
	if (t->recovery != PLATFORM_TCP_RECOVERY_NONE || ++t->nr_duplicates < THRESHOLD)
		return;
	t->recovery = PLATFORM_TCP_RECOVERY_FAST;
	t->recover = t->next;
	t->ssthresh = tcp_half_of_flight(t);
	t->cwnd = t->ssthresh + (uint64_t)THRESHOLD * t->o.mss_bytes;
	t->cwnd_counted = 0;
	tcp_resend_first(t);
}

/* New data was acknowledged up to una. */
static void tcp_recover(struct platform_tcp *t, uint64_t acked)
{
	uint64_t mss = t->o.mss_bytes;
	bool fast = t->recovery == PLATFORM_TCP_RECOVERY_FAST;
	if (t->una >= t->recover) {
		t->recovery = PLATFORM_TCP_RECOVERY_NONE;
		t->resend = (struct platform_tcp_range){0};
		if (fast)
			t->cwnd = platform_smaller(
				t->ssthresh, tcp_larger(t->next - t->una, mss) + mss);
	} else if (fast) { /* a partial acknowledgement: the next hole */
		t->cwnd -= platform_smaller(acked, t->cwnd);
		t->cwnd = tcp_larger(t->cwnd + (acked >= mss ? mss : 0), mss);
		tcp_resend_first(t);
	} else {
		t->resend.begin = tcp_larger(t->resend.begin, t->una);
	}
}

/* RFC 6298 section 5.5; RFC 9293 section 3.8.6.1 for probes. */
static void tcp_back_off(struct platform_tcp *t, uint64_t now_ns)
{
	enum { LONGEST_S = 60 };
	t->nr_timeouts++;
	t->timeout_ns = platform_smaller(2 * t->timeout_ns, LONGEST_S * UINT64_C(1000000000));
	t->deadline_ns = now_ns + t->timeout_ns;
}

void platform_tcp_on_probe(struct platform_tcp *t, uint64_t now_ns)
{
	tcp_back_off(t, now_ns);
}

void platform_tcp_on_timeout(struct platform_tcp *t, uint64_t now_ns)
{
	if (!t->nr_timeouts) /* the first of several: RFC 5681 section 3.1 */
		t->ssthresh = tcp_half_of_flight(t);
	t->cwnd = t->o.mss_bytes;
	t->cwnd_counted = 0;
	t->nr_duplicates = 0;
	t->recovery = PLATFORM_TCP_RECOVERY_TIMEOUT;
	t->recover = t->next;
	t->resend = (struct platform_tcp_range){t->una, t->recover};
	t->timed_ack = 0;
	tcp_back_off(t, now_ns);
}

bool platform_tcp_resends(const struct platform_tcp *t)
{
	return t->resend.begin < t->resend.end && t->resend.begin < t->una + t->cwnd;
}

uint32_t platform_tcp_resend(struct platform_tcp *t, uint64_t *ret_seq)
{
	if (!platform_tcp_resends(t))
		return 0;
	uint64_t n = platform_smaller(t->resend.end - t->resend.begin, t->o.mss_bytes);
	*ret_seq = t->resend.begin;
	t->resend.begin += n;
	t->timed_ack = 0; /* whose acknowledgement would it be? (Karn) */
	return (uint32_t)n;
}

/* RFC 6298 section 2. */
static void tcp_measure_round_trip(struct platform_tcp *t, uint64_t rtt_ns)
{
	uint64_t smoothed = t->smoothed_rtt_ns;
	uint64_t off = smoothed > rtt_ns ? smoothed - rtt_ns : rtt_ns - smoothed;
	if (!smoothed) {
		t->smoothed_rtt_ns = tcp_larger(rtt_ns, 1);
		t->rtt_variation_ns = rtt_ns / 2;
	} else {
		t->rtt_variation_ns = (3 * t->rtt_variation_ns + off) / 4;
		t->smoothed_rtt_ns = tcp_larger((7 * smoothed + rtt_ns) / 8, 1);
	}
	t->timeout_ns =
		tcp_larger(t->smoothed_rtt_ns + 4 * t->rtt_variation_ns, t->o.least_timeout_ns);
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

uint64_t platform_tcp_on_ack(
	struct platform_tcp *t, uint64_t ack, uint64_t edge, bool has_data, uint64_t now_ns)
{
	BASE_ASSERT(ack <= t->next);
	bool same_window = edge == t->edge;
	if (edge > t->edge)
		t->edge = edge;
	if (ack <= t->una) {
		/* RFC 5681 section 2: what a duplicate is */
		if (ack == t->una && t->next > t->una && !has_data && same_window)
			tcp_on_duplicate(t);
		return 0;
	}
	/* A window that the sender does not fill proves nothing (RFC 7661 section 4.1). */
	uint64_t in_flight = t->next - t->una, acked = ack - t->una;
	if (t->recovery != PLATFORM_TCP_RECOVERY_FAST &&
		(!t->o.validates_window || t->cwnd < 2 * in_flight))
		tcp_open_window(t, acked);
	t->una = ack;
	t->nr_duplicates = t->nr_timeouts = 0;
	if (t->timed_ack && ack >= t->timed_ack) {
		tcp_measure_round_trip(t, now_ns - t->timed_since_ns);
		t->timed_ack = 0;
	}
	t->deadline_ns = now_ns + t->timeout_ns; /* RFC 6298 section 5.3 */
	if (t->recovery != PLATFORM_TCP_RECOVERY_NONE)
		tcp_recover(t, acked);
	return acked;
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Kept until what lies before it comes. */
static void tcp_keep_ahead(struct platform_tcp *t, struct platform_tcp_range r)
{
	uint32_t first = 0, last;
	while (first < t->nr_ahead && t->ahead[first].end < r.begin)
		first++;
	for (last = first; last < t->nr_ahead && t->ahead[last].begin <= r.end; last++) {
		r.begin = platform_smaller(r.begin, t->ahead[last].begin);
		r.end = tcp_larger(r.end, t->ahead[last].end);
	}
	if (last == first && t->nr_ahead == PLATFORM_TCP_RANGES_MAX)
		return; /* dropped: it will be sent again */
	memmove(&t->ahead[first + 1], &t->ahead[last], (t->nr_ahead - last) * sizeof *t->ahead);
	t->nr_ahead += 1 + first - last;
	t->ahead[first] = r;
}

/* In order up to `end`, and what was kept behind that. */
static void tcp_receive_to(struct platform_tcp *t, uint64_t end)
{
	uint32_t nr = 0;
	t->received = end;
	while (nr < t->nr_ahead && t->ahead[nr].begin <= t->received)
		t->received = tcp_larger(t->received, t->ahead[nr++].end);
	memmove(t->ahead, &t->ahead[nr], (t->nr_ahead - nr) * sizeof *t->ahead);
	t->nr_ahead -= nr;
}

enum platform_tcp_ack platform_tcp_on_data(
	struct platform_tcp *t, uint64_t seq, uint32_t bytes, uint64_t *ret_new_bytes)
{
	uint64_t before = t->received, end = seq + bytes;
	bool had_hole = t->nr_ahead;
	*ret_new_bytes = 0;
	if (!bytes)
		return PLATFORM_TCP_ACK_NONE;
	BASE_ASSERT(end <= t->edge_sent);
	if (seq > t->received)
		tcp_keep_ahead(t, (struct platform_tcp_range){seq, end});
	else if (end > t->received)
		tcp_receive_to(t, end);
	*ret_new_bytes = t->received - before;
	/* RFC 5681 section 4.2: out of order, known already, or a hole that is filled: at once */
	if (!*ret_new_bytes || had_hole)
		return PLATFORM_TCP_ACK_NOW;
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
