/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.h - one end of an open TCP connection: windows, acknowledgements, what is sent again. Rules
 * only: no queues, and the time is an argument. Sequence numbers count bytes from 0 and do not
 * wrap. Private.
 */
#ifndef LONGPOLE_PLATFORM_TCP_H
#define LONGPOLE_PLATFORM_TCP_H

#include <stdbool.h>
#include <stdint.h>

struct platform_tcp_options {
	uint32_t mss_bytes, initial_window_segments, abc_limit_segments, ack_every_segments;
	bool validates_window;
	uint64_t ssthresh_bytes, receive_buffer_bytes, peer_window_bytes;
	uint64_t least_timeout_ns;
};
/* How lost segments are being made good. */
enum platform_tcp_recovery {
	PLATFORM_TCP_RECOVERY_NONE,
	PLATFORM_TCP_RECOVERY_FAST,    /* after three duplicate acknowledgements: one at a time */
	PLATFORM_TCP_RECOVERY_TIMEOUT, /* all of the window again, in slow start */
};
struct platform_tcp_range {
	uint64_t begin, end;
};
enum { PLATFORM_TCP_RANGES_MAX = 64 }; /* more holes than that: what comes is dropped */
struct platform_tcp {
	struct platform_tcp_options o;
	/* sending */
	uint64_t una, next; /* oldest byte that is not acknowledged; next to send */
	uint64_t edge;      /* the peer's window ends here */
	uint64_t cwnd, ssthresh, cwnd_counted;
	uint64_t credited; /* permission given so far, and not taken back */
	/* losses */
	enum platform_tcp_recovery recovery;
	struct platform_tcp_range resend; /* what is to be sent again */
	uint64_t recover;                 /* sent when the loss was noticed: the recovery's end */
	uint32_t nr_duplicates, nr_timeouts;
	uint64_t smoothed_rtt_ns, rtt_variation_ns, timeout_ns, deadline_ns;
	uint64_t timed_ack, timed_since_ns; /* timed_ack 0: no round trip is being timed */
	/* receiving */
	uint64_t received, read, edge_sent;
	struct platform_tcp_range ahead[PLATFORM_TCP_RANGES_MAX]; /* received behind a hole, in
								     order, disjoint */
	uint32_t nr_ahead;
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
/* Permission that was given and that the congestion window does not cover any more: at most
 * unused_bytes of it are taken back. Returns how many. */
uint64_t platform_tcp_take_back_credit(struct platform_tcp *t, uint64_t unused_bytes);
/* The next segment's sequence number. */
uint64_t platform_tcp_send(struct platform_tcp *t, uint32_t bytes, uint64_t now_ns);
/* An acknowledgement has come, alone or with data; returns the bytes that it is the first to
 * acknowledge. */
uint64_t platform_tcp_on_ack(
	struct platform_tcp *t, uint64_t ack, uint64_t edge, bool has_data, uint64_t now_ns);
/* Nothing was acknowledged until deadline_ns, though something is under way. */
void platform_tcp_on_timeout(struct platform_tcp *t, uint64_t now_ns);
/* Nothing is under way, and the peer's window has been closed until deadline_ns: it is asked. */
void platform_tcp_on_probe(struct platform_tcp *t, uint64_t now_ns);
/* The next segment to be sent again: bytes, 0: there is none, or the window is full. */
uint32_t platform_tcp_resend(struct platform_tcp *t, uint64_t *ret_seq);
bool platform_tcp_resends(const struct platform_tcp *t); /* would it say one? */
/* Data has come: acknowledge it now, later, or (no data) not at all? *ret_new_bytes: what can be
 * read of now, in order. */
enum platform_tcp_ack platform_tcp_on_data(
	struct platform_tcp *t, uint64_t seq, uint32_t bytes, uint64_t *ret_new_bytes);
/* The application has taken that much: is the window so much larger that the peer must know? */
bool platform_tcp_on_read(struct platform_tcp *t, uint64_t bytes);
/* What a segment or acknowledgement that leaves now says; nothing is unacknowledged then. */
void platform_tcp_on_sent_ack(struct platform_tcp *t, uint64_t *ret_ack, uint64_t *ret_edge);

#endif
