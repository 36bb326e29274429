/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.h - one end of an open TCP connection without losses: windows and acknowledgements. Rules
 * only, no time, no queues. Sequence numbers count bytes from 0 and do not wrap. Private.
 */
#ifndef LONGPOLE_PLATFORM_TCP_H
#define LONGPOLE_PLATFORM_TCP_H

#include <stdbool.h>
#include <stdint.h>

struct platform_tcp_options {
	uint32_t mss_bytes, initial_window_segments, abc_limit_segments, ack_every_segments;
	bool validates_window;
	uint64_t ssthresh_bytes, receive_buffer_bytes, peer_window_bytes;
};
struct platform_tcp {
	struct platform_tcp_options o;
	/* sending */
	uint64_t una, next; /* oldest byte that is not acknowledged; next to send */
	uint64_t edge;      /* the peer's window ends here */
	uint64_t cwnd, ssthresh, cwnd_counted;
	uint64_t credited; /* permission given so far: never shrinks */
	/* receiving */
	uint64_t received, read, edge_sent;
	uint32_t unacked_segments, unacked_bytes;
};
enum platform_tcp_ack { PLATFORM_TCP_ACK_NONE, PLATFORM_TCP_ACK_LATER, PLATFORM_TCP_ACK_NOW };

static inline uint64_t platform_smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void platform_tcp_init(struct platform_tcp *t, const struct platform_tcp_options *o);
/* Permission to send that is new since the last call, bytes: the first call gives the initial
 * window. min(congestion window, peer's window), RFC 5681 section 2. */
uint64_t platform_tcp_new_credit(struct platform_tcp *t);
/* The next segment's sequence number. */
uint64_t platform_tcp_send(struct platform_tcp *t, uint32_t bytes);
/* An acknowledgement has come; returns the bytes that it is the first to acknowledge. */
uint64_t platform_tcp_on_ack(struct platform_tcp *t, uint64_t ack, uint64_t edge);
/* In-order data has come: acknowledge it now, later, or (no data) not at all? */
enum platform_tcp_ack platform_tcp_on_data(struct platform_tcp *t, uint64_t seq, uint32_t bytes);
/* The application has taken that much: is the window so much larger that the peer must know? */
bool platform_tcp_on_read(struct platform_tcp *t, uint64_t bytes);
/* What a segment or acknowledgement that leaves now says; nothing is unacknowledged then. */
void platform_tcp_on_sent_ack(struct platform_tcp *t, uint64_t *ret_ack, uint64_t *ret_edge);

#endif
