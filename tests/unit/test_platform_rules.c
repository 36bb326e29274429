/* SPDX-License-Identifier: Apache-2.0 */
/* test_platform_rules.c - what has no time: the heap of events, fragmentation, TCP's windows. */
#include "platform/event.h"
#include "platform/ip.h"
#include "platform/tcp.h"
#include "test.h"

/* ---- events ---------------------------------------------------------------------------------- */

static void test_events_come_in_order(void **state)
{
	struct platform_events e = {0};
	struct platform_event out;
	uint64_t x = 1, last_time = 0, last_order = 0;
	(void)state;
	assert_false(platform_events_pop(&e, &out));
	/* few different times, so that many are equal; pushes between the pops */
	for (int i = 0; i < 20000; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		assert_int_equal(platform_events_push(&e,
					 (struct platform_event){
						 .time_ns = last_time + (x >> 60), .turn = x}),
			BASE_OK);
		if (i % 3)
			continue;
		assert_true(platform_events_pop(&e, &out));
		assert_true(out.time_ns >= last_time);
		if (out.time_ns == last_time && i)
			assert_true(out.order > last_order);
		last_time = out.time_ns;
		last_order = out.order;
	}
	size_t left = e.nr;
	while (platform_events_pop(&e, &out)) {
		assert_true(out.time_ns > last_time ||
			    (out.time_ns == last_time && out.order > last_order));
		last_time = out.time_ns;
		last_order = out.order;
		left--;
	}
	assert_int_equal(left, 0);
	platform_events_fini(&e);
}

static void test_events_without_memory(void **state)
{
	struct platform_events e = {0};
	(void)state;
	base_alloc_fail_nth(1);
	assert_int_equal(
		platform_events_push(&e, (struct platform_event){.time_ns = 1}), BASE_ERR_NOMEM);
	base_alloc_fail_nth(0);
	assert_int_equal(e.nr, 0);
	platform_events_fini(&e);
}

/* ---- RFC 791 --------------------------------------------------------------------------------- */

static void test_fragments_known(void **state)
{
	(void)state;
	/* a UDP datagram of 16 KiB: 16392 bytes with UDP's header, 1480 to a packet */
	assert_int_equal(platform_ip_fragment_bytes(1500), 1480);
	assert_int_equal(platform_ip_nr_fragments(16392, 1500), 12);
	assert_int_equal(platform_ip_fragment_data(16392, 1500, 0), 1480);
	assert_int_equal(platform_ip_fragment_data(16392, 1500, 11), 112);
	assert_int_equal(platform_ip_nr_fragments(1480, 1500), 1);
	assert_int_equal(platform_ip_nr_fragments(1481, 1500), 2);
	/* the last fragment may use what is no multiple of 8 */
	assert_int_equal(platform_ip_fragment_bytes(1499), 1472);
	assert_int_equal(platform_ip_nr_fragments(1479, 1499), 1);
	assert_int_equal(platform_ip_nr_fragments(1472 + 1479, 1499), 2);
	assert_int_equal(platform_ip_fragment_data(1472 + 1479, 1499, 1), 1479);
}

static void test_fragments_law(void **state)
{
	(void)state;
	for (uint32_t mtu = 68; mtu < 9200; mtu += 37) {
		for (uint32_t data = 1; data < 66000; data += 409) {
			uint32_t nr = platform_ip_nr_fragments(data, mtu), sum = 0;
			for (uint32_t i = 0; i < nr; i++) {
				uint32_t n = platform_ip_fragment_data(data, mtu, i);
				assert_true(n > 0 && n + PLATFORM_IP_HEADER <= mtu);
				if (i + 1 < nr)
					assert_int_equal(n % 8, 0);
				sum += n;
			}
			assert_int_equal(sum, data);
		}
	}
}

/* ---- TCP ------------------------------------------------------------------------------------- */

enum { MSS = 1460 };
static const struct platform_tcp_options options = {
	.mss_bytes = MSS,
	.initial_window_segments = 3,
	.abc_limit_segments = 2,
	.ack_every_segments = 2,
	.ssthresh_bytes = UINT64_C(1) << 40,
	.receive_buffer_bytes = 1 << 20,
	.peer_window_bytes = 1 << 30,
};

static enum platform_tcp_ack receive(struct platform_tcp *t, uint64_t seq, uint32_t bytes)
{
	uint64_t fresh, before = t->received;
	enum platform_tcp_ack ack = platform_tcp_on_data(t, seq, bytes, &fresh);
	assert_int_equal(t->received, before + fresh);
	return ack;
}

/* A round trip: all that is allowed is sent, and acknowledged every `every` segments. Returns the
 * bytes sent. */
static uint64_t round_trip(struct platform_tcp *t, uint64_t credit, unsigned every)
{
	uint64_t begin = t->next, sent = 0;
	unsigned nr = 0;
	while (sent + MSS <= credit) {
		assert_int_equal(platform_tcp_send(t, MSS, 0), begin + sent);
		sent += MSS;
	}
	for (uint64_t acked = MSS; acked <= sent; acked += MSS)
		if (++nr % every == 0 || acked == sent)
			platform_tcp_on_ack(t, begin + acked, t->edge, false, 0);
	return sent;
}

static void test_slow_start_doubles(void **state)
{
	(void)state;
	for (unsigned every = 1; every <= 2; every++) {
		struct platform_tcp t;
		platform_tcp_init(&t, &options);
		uint64_t credit = platform_tcp_new_credit(&t), last = 0;
		assert_int_equal(credit, 3 * MSS);
		for (int round = 0; round < 8; round++) {
			uint64_t sent = round_trip(&t, credit, every);
			if (last)
				assert_int_equal(sent, 2 * last);
			last = sent;
			credit = platform_tcp_new_credit(&t);
		}
		assert_int_equal(last, 3 * MSS << 7);
	}
}

/* Without byte counting and with delayed acknowledgements: half as much again (RFC 3465 section 1).
 */
static void test_slow_start_without_byte_counting(void **state)
{
	struct platform_tcp_options o = options;
	struct platform_tcp t;
	(void)state;
	o.abc_limit_segments = 1;
	o.initial_window_segments = 4;
	platform_tcp_init(&t, &o);
	round_trip(&t, platform_tcp_new_credit(&t), 2);
	assert_int_equal(t.cwnd, 6 * MSS);
}

static void test_congestion_avoidance_adds_a_segment(void **state)
{
	struct platform_tcp_options o = options;
	struct platform_tcp t;
	(void)state;
	o.ssthresh_bytes = 3 * MSS;
	platform_tcp_init(&t, &o);
	uint64_t credit = platform_tcp_new_credit(&t);
	for (uint64_t round = 0; round < 10; round++) {
		assert_int_equal(round_trip(&t, credit, 1), (3 + round) * MSS);
		credit = platform_tcp_new_credit(&t);
	}
}

static void test_peer_window_bounds(void **state)
{
	struct platform_tcp_options o = options;
	struct platform_tcp t;
	(void)state;
	o.peer_window_bytes = 4 * MSS;
	o.initial_window_segments = 10;
	platform_tcp_init(&t, &o);
	assert_int_equal(platform_tcp_new_credit(&t), 4 * MSS);
	for (int i = 0; i < 4; i++)
		platform_tcp_send(&t, MSS, 0);
	/* acknowledged, but nobody has read: the edge stands still */
	assert_int_equal(platform_tcp_on_ack(&t, 4 * MSS, 4 * MSS, false, 0), 4 * MSS);
	assert_int_equal(platform_tcp_new_credit(&t), 0);
	/* an older edge does not take back what was promised */
	platform_tcp_on_ack(&t, 4 * MSS, 6 * MSS, false, 0);
	platform_tcp_on_ack(&t, 4 * MSS, 5 * MSS, false, 0);
	assert_int_equal(platform_tcp_new_credit(&t), 2 * MSS);
}

static void test_window_validation(void **state)
{
	struct platform_tcp_options o = options;
	struct platform_tcp t;
	(void)state;
	o.validates_window = true;
	o.initial_window_segments = 10;
	platform_tcp_init(&t, &o);
	platform_tcp_new_credit(&t);
	platform_tcp_send(&t, MSS, 0); /* one of ten */
	platform_tcp_on_ack(&t, MSS, t.edge, false, 0);
	assert_int_equal(t.cwnd, 10 * MSS);
}

/* RFC 1122 section 4.2.3.2: at least every second full-sized segment. */
static void test_delayed_acknowledgement(void **state)
{
	struct platform_tcp t;
	uint64_t ack, edge;
	(void)state;
	platform_tcp_init(&t, &options);
	assert_int_equal(receive(&t, 0, 0), PLATFORM_TCP_ACK_NONE);
	for (uint64_t pair = 0; pair < 5; pair++) {
		uint64_t seq = pair * 2 * MSS;
		assert_int_equal(receive(&t, seq, MSS), PLATFORM_TCP_ACK_LATER);
		assert_int_equal(t.unacked_segments, 1);
		assert_int_equal(receive(&t, seq + MSS, MSS), PLATFORM_TCP_ACK_NOW);
		platform_tcp_on_sent_ack(&t, &ack, &edge);
		assert_int_equal(ack, seq + 2 * MSS);
		assert_int_equal(edge, 1 << 20); /* nothing was read */
		assert_int_equal(t.unacked_segments, 0);
	}
	/* small ones count by their bytes */
	for (int i = 0; i < 29; i++)
		assert_int_equal(
			receive(&t, 10 * MSS + (uint64_t)i * 100, 100), PLATFORM_TCP_ACK_LATER);
	assert_int_equal(receive(&t, 10 * MSS + 2900, 100), PLATFORM_TCP_ACK_NOW);
}

/* RFC 1122 section 4.2.3.3: no silly windows. */
static void test_window_update(void **state)
{
	struct platform_tcp_options o = options;
	struct platform_tcp t;
	uint64_t ack, edge;
	(void)state;
	o.receive_buffer_bytes = 10 * MSS;
	platform_tcp_init(&t, &o);
	for (uint64_t i = 0; i < 10; i++)
		(void)receive(&t, i * MSS, MSS);
	platform_tcp_on_sent_ack(&t, &ack, &edge);
	assert_int_equal(edge - ack, 0); /* closed */
	assert_false(platform_tcp_on_read(&t, 4 * MSS));
	assert_true(platform_tcp_on_read(&t, MSS)); /* half of it is free */
	platform_tcp_on_sent_ack(&t, &ack, &edge);
	assert_int_equal(edge - ack, 5 * MSS);
}

/* ---- losses ---------------------------------------------------------------------------------- */

enum { MS = 1000000 };

/* `segments` under way, the window as large. */
static void fly(struct platform_tcp *t, uint32_t segments)
{
	struct platform_tcp_options o = options;
	o.initial_window_segments = segments;
	o.least_timeout_ns = 200 * MS;
	platform_tcp_init(t, &o);
	assert_int_equal(platform_tcp_new_credit(t), segments * MSS);
	for (uint32_t i = 0; i < segments; i++)
		platform_tcp_send(t, MSS, 0);
}

static void acknowledge(struct platform_tcp *t, uint32_t segments, uint64_t now_ns)
{
	platform_tcp_on_ack(t, (uint64_t)segments * MSS, t->edge, false, now_ns);
}

static void resends(struct platform_tcp *t, uint32_t segment)
{
	uint64_t seq;
	assert_true(platform_tcp_resends(t));
	assert_int_equal(platform_tcp_resend(t, &seq), MSS);
	assert_int_equal(seq, (uint64_t)segment * MSS);
}

/* RFC 5681 section 3.2, RFC 6582 section 3.2: of ten the first and the fifth are lost. */
static void test_fast_recovery(void **state)
{
	struct platform_tcp t;
	(void)state;
	fly(&t, 10);
	for (int i = 0; i < 2; i++)
		acknowledge(&t, 0, MS);
	assert_false(platform_tcp_resends(&t)); /* two may be another order */
	acknowledge(&t, 0, MS);
	assert_int_equal(t.ssthresh, 5 * MSS);
	assert_int_equal(t.cwnd, 8 * MSS);
	assert_int_equal(platform_tcp_take_back_credit(&t, 0), 0); /* all of it is under way */
	resends(&t, 0);
	assert_false(platform_tcp_resends(&t));
	assert_int_equal(platform_tcp_new_credit(&t), 0);
	for (int i = 0; i < 5; i++) /* the other eight have come */
		acknowledge(&t, 0, MS);
	assert_int_equal(t.cwnd, 13 * MSS);
	assert_int_equal(platform_tcp_new_credit(&t), 3 * MSS);
	acknowledge(&t, 4, 2 * MS); /* partial: the next hole, and the window less what has come */
	assert_int_equal(t.cwnd, (13 - 4 + 1) * MSS);
	resends(&t, 4);
	acknowledge(&t, 10, 3 * MS);
	assert_int_equal(t.recovery, PLATFORM_TCP_RECOVERY_NONE);
	assert_int_equal(t.cwnd, 2 * MSS); /* min(ssthresh, max(flight, segment) + segment) */
	assert_int_equal(t.nr_duplicates, 0);
}

static void test_what_is_no_duplicate(void **state)
{
	struct platform_tcp t;
	(void)state;
	fly(&t, 10);
	for (int i = 0; i < 5; i++) {
		platform_tcp_on_ack(&t, 0, t.edge, true, 0);        /* has data */
		platform_tcp_on_ack(&t, 0, t.edge + MSS, false, 0); /* a larger window */
	}
	assert_int_equal(t.recovery, PLATFORM_TCP_RECOVERY_NONE);
	acknowledge(&t, 10, MS);
	for (int i = 0; i < 5; i++)
		acknowledge(&t, 10, MS); /* nothing is under way */
	assert_int_equal(t.recovery, PLATFORM_TCP_RECOVERY_NONE);
}

/* RFC 6298: a second at first, then by what was measured; doubled each time; section 5.4 and on. */
static void test_timeouts(void **state)
{
	struct platform_tcp t;
	uint64_t seq;
	(void)state;
	fly(&t, 4);
	assert_int_equal(t.deadline_ns, 1000 * (uint64_t)MS);
	acknowledge(&t, 4, 10 * MS); /* measured: the first segment's */
	assert_int_equal(t.smoothed_rtt_ns, 10 * MS);
	assert_int_equal(t.rtt_variation_ns, 5 * MS);
	assert_int_equal(t.timeout_ns, 200 * MS); /* 30, but 200 is the least */
	platform_tcp_new_credit(&t);
	for (int i = 0; i < 4; i++)
		platform_tcp_send(&t, MSS, 20 * MS);
	assert_int_equal(t.deadline_ns, 220 * MS);
	platform_tcp_on_timeout(&t, 220 * MS);
	assert_int_equal(t.ssthresh, 2 * MSS);
	assert_int_equal(t.cwnd, MSS);
	assert_int_equal(t.deadline_ns, (220 + 400) * MS);
	assert_true(platform_tcp_take_back_credit(&t, 100 * MSS) > 0);
	resends(&t, 4);
	assert_int_equal(platform_tcp_resend(&t, &seq), 0); /* a window of one */
	platform_tcp_on_timeout(&t, 620 * MS);
	assert_int_equal(t.ssthresh, 2 * MSS); /* of the same loss */
	assert_int_equal(t.deadline_ns, (620 + 800) * MS);
	resends(&t, 4);
	for (int i = 0; i < 5; i++)
		acknowledge(&t, 4, 630 * MS); /* no recovery within the recovery */
	assert_int_equal(t.recovery, PLATFORM_TCP_RECOVERY_TIMEOUT);
	acknowledge(&t, 5, 640 * MS);
	assert_int_equal(t.timeout_ns, 800 * MS); /* Karn: not measured by what was sent twice */
	resends(&t, 5);
	resends(&t, 6); /* slow start: two */
	acknowledge(&t, 8, 650 * MS);
	assert_int_equal(t.recovery, PLATFORM_TCP_RECOVERY_NONE);
	assert_false(platform_tcp_resends(&t));
}

/* Any order of arrival, with repetitions: all bytes once, in order. */
static void test_reassembly(void **state)
{
	(void)state;
	uint64_t random = 1;
	for (int run = 0; run < 2000; run++) {
		enum { UNITS = 200 };
		struct platform_tcp t;
		bool has[UNITS] = {false};
		uint32_t first = 0;
		platform_tcp_init(&t, &options);
		while (first < UNITS) {
			random = base_hash_u64(random);
			uint32_t begin = (uint32_t)(random % UNITS),
				 n = 1 + (uint32_t)(random / 1000 % 9);
			begin = begin < first + 40 ? begin : first;
			n = begin + n > UNITS ? UNITS - begin : n;
			bool was_hole = t.nr_ahead, old = begin + n <= first;
			enum platform_tcp_ack ack = receive(&t, begin * 10u, n * 10);
			for (uint32_t i = begin; i < begin + n; i++)
				has[i] = true;
			bool more = has[first];
			while (first < UNITS && has[first])
				first++;
			assert_int_equal(t.received, first * 10u);
			if (old || was_hole || !more)
				assert_int_equal(ack, PLATFORM_TCP_ACK_NOW);
			for (uint32_t k = 0; k < t.nr_ahead; k++) {
				assert_true(t.ahead[k].begin < t.ahead[k].end);
				assert_true(
					t.ahead[k].begin > (k ? t.ahead[k - 1].end : t.received));
			}
		}
		assert_int_equal(t.nr_ahead, 0);
	}
}

/* More holes than are kept: what does not fit is dropped, not believed. */
static void test_too_many_holes(void **state)
{
	struct platform_tcp t;
	(void)state;
	platform_tcp_init(&t, &options);
	for (uint32_t i = 1; i <= PLATFORM_TCP_RANGES_MAX + 5; i++)
		receive(&t, i * 100, 50);
	assert_int_equal(t.nr_ahead, PLATFORM_TCP_RANGES_MAX);
	receive(&t, 0, 100 * (PLATFORM_TCP_RANGES_MAX + 1));
	assert_int_equal(t.received, 100 * (PLATFORM_TCP_RANGES_MAX + 1));
	assert_int_equal(t.nr_ahead, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_come_in_order),
		cmocka_unit_test(test_events_without_memory),
		cmocka_unit_test(test_fragments_known),
		cmocka_unit_test(test_fragments_law),
		cmocka_unit_test(test_slow_start_doubles),
		cmocka_unit_test(test_slow_start_without_byte_counting),
		cmocka_unit_test(test_congestion_avoidance_adds_a_segment),
		cmocka_unit_test(test_peer_window_bounds),
		cmocka_unit_test(test_window_validation),
		cmocka_unit_test(test_delayed_acknowledgement),
		cmocka_unit_test(test_window_update),
		cmocka_unit_test(test_fast_recovery),
		cmocka_unit_test(test_what_is_no_duplicate),
		cmocka_unit_test(test_timeouts),
		cmocka_unit_test(test_reassembly),
		cmocka_unit_test(test_too_many_holes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
