/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_platform_run.c - whole platforms: times that can be computed by hand, RFC rules as seen in
 * the trace, conservation, bounds of queues, determinism, and what the analysis says of the trace.
 */
#include "platform/platform.h"
#include "model/model.h"

#include "platform_fixture.h"

#include <math.h>

static char *trace_path;

static int setup(void **state)
{
	(void)state;
	trace_path = temporary_path();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(trace_path);
	free(trace_path);
	return 0;
}

/* ---- the link -------------------------------------------------------------------------------- */

struct line {
	uint64_t begin_ns, transmit_ns[8];
	unsigned nr;
	uint64_t sent_ns, arrived_ns; /* of the first packet */
};

static void hear_line(void *ctx, const struct heard *h)
{
	struct line *l = ctx;
	if (!strcmp(h->actor, "tx line")) {
		if (h->kind == TRACE_note_state && !strcmp(h->object, "transmit")) {
			l->begin_ns = h->time_ns;
		} else if (l->begin_ns && h->kind == TRACE_note_enqueue) {
			if (!l->nr)
				l->sent_ns = h->time_ns;
			if (l->nr < 8)
				l->transmit_ns[l->nr++] = h->time_ns - l->begin_ns;
			l->begin_ns = 0;
		}
	}
	if (!strcmp(h->actor, "tx cable") && h->kind == TRACE_note_dequeue && !l->arrived_ns)
		l->arrived_ns = h->time_ns;
}

static void test_serialisation_and_delay(void **state)
{
	struct line l = {0};
	(void)state;
	/* 1000 bytes of payload, 8 of UDP, 20 of IP, 14 of Ethernet, 24 of overhead: 1066 at 1 Gb/s
	 */
	platform_result_free(run_with(UDP_STREAM, trace_path, "s.transfer_bytes=1000",
		"s.datagram_bytes=1000", "l0.rate_gbps=1", NULL));
	hear(trace_path, hear_line, &l);
	assert_int_equal(l.nr, 1);
	assert_int_equal(l.transmit_ns[0], 1066 * 8);
	assert_int_equal(l.arrived_ns - l.sent_ns, 100000);
	/* two fragments: 1480 and 2008 - 1480 bytes of data; at 10 Gb/s, rounded up */
	l = (struct line){0};
	platform_result_free(run_with(
		UDP_STREAM, trace_path, "s.transfer_bytes=2000", "s.datagram_bytes=2000", NULL));
	hear(trace_path, hear_line, &l);
	assert_int_equal(l.nr, 2);
	assert_int_equal(l.transmit_ns[0], ((1480 + 20 + 14 + 24) * 8 + 9) / 10);
	assert_int_equal(l.transmit_ns[1], ((528 + 20 + 14 + 24) * 8 + 9) / 10);
	/* the smallest frame */
	l = (struct line){0};
	platform_result_free(
		run_with(UDP_STREAM, trace_path, "s.transfer_bytes=1", "s.datagram_bytes=1", NULL));
	hear(trace_path, hear_line, &l);
	assert_int_equal(l.transmit_ns[0], ((60 + 24) * 8 + 9) / 10);
}

/* A packet whose every time is known, from system call to the end of the read. */
static void test_one_datagram_takes_the_sum(void **state)
{
	struct platform_result *r = run_with(
		"[system tx]\nbus_gbps=8\nbus_arbitration_ns=0\nsyscall_ns=100\ncopy_gbps=8\n"
		"udp_send_ns=10\nip_send_ns=20\ndriver_send_ns=30\n"
		"[system rx]\nbus_gbps=8\nbus_arbitration_ns=0\nsyscall_ns=200\ncopy_gbps=8\n"
		"irq_handler_ns=40\ndriver_receive_ns=50\nip_receive_ns=60\nudp_receive_ns=70\n"
		"[link l0]\na=tx\nb=rx\nrate_gbps=1\ndelay_us=1\n"
		"[app s]\nkind=udp_stream\nfrom=tx\nto=rx\ntransfer_bytes=1000\n"
		"datagram_bytes=1000\n",
		NULL, NULL);
	(void)state;
	uint64_t frame = 1000 + 8 + 20 + 14;
	uint64_t sender = 100 + 1000 + 10 + 20 + 30, descriptor = 16;
	uint64_t receiver = 40 + 50 + 60 + 70 + 200 + 1000;
	/* the receiving card has its descriptor before; its write-back is awaited */
	assert_int_equal(r->simulated_ns, sender + descriptor + frame + (frame + 24) * 8 + 1000 +
						  frame + descriptor + receiver);
	platform_result_free(r);
}

/* ---- TCP in time ----------------------------------------------------------------------------- */

/* An acknowledgement is delayed by at most 500 ms (RFC 1122), here by 40 or 200. */
static void test_delayed_ack_timer(void **state)
{
	static const struct {
		const char *assignment;
		uint64_t ms;
	} row[] = {{"rx.delayed_ack_ms=40", 40}, {"rx.delayed_ack_ms=200", 200}};
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		/* one segment may be sent, and nobody answers with data: the timer must */
		struct platform_result *r = run_with(TCP_STREAM, NULL, row[i].assignment,
			"tx.initial_window_segments=1", "s.transfer_bytes=2920", NULL);
		assert_true(r->simulated_ns > row[i].ms * 1000000);
		assert_true(r->simulated_ns < row[i].ms * 1000000 + 1000000);
		platform_result_free(r);
	}
	struct base_err err;
	struct platform_config *c = read_config(TCP_STREAM);
	assert_int_equal(platform_config_set(c, "rx.delayed_ack_ms=501", &err), BASE_ERR_USAGE);
	platform_config_free(c);
}

struct acks {
	uint64_t segments, acks;
};

static void hear_acks(void *ctx, const struct heard *h)
{
	struct acks *a = ctx;
	if (h->kind != TRACE_note_state || strcmp(h->actor, "rx interrupt") != 0)
		return;
	a->segments += !strcmp(h->object, "tcp receive");
	a->acks += !strcmp(h->object, "tcp send ack");
}

static void test_every_second_segment_is_acknowledged(void **state)
{
	struct acks a = {0};
	(void)state;
	platform_result_free(run_with(
		TCP_STREAM, trace_path, "s.transfer_bytes=1460000", "s.write_bytes=146000", NULL));
	hear(trace_path, hear_acks, &a);
	assert_int_equal(a.segments, 1000);
	/* but for those that the reader's window updates acknowledge */
	assert_in_range(a.acks, 450, 500);
}

/* Slow start in time: rounds of 100 us and more, each twice as large. */
struct rounds {
	uint64_t round_begin_ns;
	unsigned nr_segments[32], nr;
};

static void hear_rounds(void *ctx, const struct heard *h)
{
	struct rounds *r = ctx;
	if (strcmp(h->actor, "tx line") != 0 || h->kind != TRACE_note_state ||
		strcmp(h->object, "transmit") != 0)
		return;
	if (!r->nr || h->time_ns - r->round_begin_ns > 5000000) {
		r->round_begin_ns = h->time_ns;
		r->nr++;
	}
	if (r->nr <= 32)
		r->nr_segments[r->nr - 1]++;
}

static void test_slow_start_in_time(void **state)
{
	struct rounds r = {0};
	(void)state;
	/* a round trip of 20 ms, much longer than any round takes to send */
	platform_result_free(run_with(TCP_STREAM, trace_path, "s.transfer_bytes=730000",
		"l0.delay_us=10000", "tx.sndbuf_bytes=4000000", "rx.rcvbuf_bytes=4000000",
		"tx.initial_window_segments=4", NULL));
	hear(trace_path, hear_rounds, &r);
	assert_true(r.nr >= 7);
	for (unsigned i = 0; i + 1 < r.nr; i++)
		assert_int_equal(r.nr_segments[i], 4u << i);
}

/* ---- laws ------------------------------------------------------------------------------------ */

static const char web[] =
	TWO_SYSTEMS "[app w]\nkind = web\nfrom = rx\nto = tx\nconnections = 3\n"
		    "transfer_bytes = 700000\nfile_least_bytes = 20000\nfile_most_bytes = 90000\n";
static const char engine[] = TCP_STREAM "transfer_bytes = 600000\n";

struct scene {
	const char *text, *with[6];
};
static const struct scene scenes[] = {
	{TCP_STREAM "transfer_bytes = 1000001\n", {NULL}},
	{TCP_STREAM "transfer_bytes = 1000000\nconnections = 3\n",
		{"simulation.jitter_percent=20"}},
	/* a reader much slower than the sender: the receive window closes */
	{TCP_STREAM "transfer_bytes = 900000\n",
		{"rx.copy_gbps=0.5", "rx.rcvbuf_bytes=20000", "s.read_bytes=3000"}},
	/* a ring of two descriptors, a cache of one */
	{TCP_STREAM "transfer_bytes = 400000\n",
		{"tx.tx_descriptors=2", "tx.descriptor_cache=1", "rx.rx_descriptors=2",
			"l0.flow_control=1"}},
	{TCP_STREAM "transfer_bytes = 400000\n",
		{"tx.irq_moderation_us=100", "rx.irq_moderation_us=50", "tx.irq_processor=1"}},
	{UDP_STREAM "transfer_bytes = 1000000\n", {"tx.netfilter_defrag=1"}},
	/* losses everywhere */
	{UDP_STREAM "transfer_bytes = 3000000\n", {"rx.bus_gbps=1"}},
	{UDP_STREAM "transfer_bytes = 3000000\n", {"rx.copy_gbps=1", "rx.rcvbuf_bytes=100000"}},
	{UDP_STREAM "transfer_bytes = 3000000\n", {"tx.qdisc_packets=10", "tx.tx_descriptors=8"}},
	{web, {NULL}},
	{web, {"w.server_processes=2", "tx.processors=2", "tx.disk_access_us=30"}},
	{web, {"tx.sndbuf_bytes=12000"}},
	{engine, {"rx.copy_engine=1", "s.read_all=1"}},
	{engine, {"rx.copy_engine=2", "s.read_all=1", "rx.engine_descriptors=3"}},
	/* TCP loses on the cable, in the card, in the device queue, in both directions */
	{TCP_STREAM "transfer_bytes = 900000\n", {"l0.loss_percent=1"}},
	{TCP_STREAM "transfer_bytes = 300000\nconnections = 3\n", {"l0.loss_percent=10"}},
	{TCP_STREAM "transfer_bytes = 9000000\n", {"rx.bus_gbps=0.5", "tx.sndbuf_bytes=1000000"}},
	{TCP_STREAM "transfer_bytes = 3000000\n", {"tx.qdisc_packets=4", "tx.tx_descriptors=4"}},
	{TCP_STREAM "transfer_bytes = 900000\n", {"rx.copy_gbps=0.5", "rx.rcvbuf_bytes=20000",
							 "s.read_bytes=3000", "l0.loss_percent=3"}},
	{web, {"l0.loss_percent=2"}},
	{web, {"tx.sndbuf_bytes=12000", "l0.loss_percent=20"}},
	{TCP_STREAM "transfer_bytes = 100000000\n", {"simulation.duration_ms=3"}},
};
enum { NR_SCENES = BASE_COUNT(scenes), FIRST_LOSSY = NR_SCENES - 8 };

static struct platform_config *config_of(const struct scene *sc)
{
	struct platform_config *c = read_config(sc->text);
	for (size_t i = 0; i < BASE_COUNT(sc->with) && sc->with[i]; i++)
		set(c, sc->with[i]);
	return c;
}

/* platform_run() itself asserts that bytes are conserved and that no queue exceeds its capacity. */
static void test_everything_arrives(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(scenes); i++) {
		struct platform_config *c = config_of(&scenes[i]);
		struct platform_result *r = run_config(c, NULL);
		bool all = true, udp = strstr(scenes[i].text, "udp_stream") != NULL;
		for (size_t k = 0; k < r->nr_connections; k++) {
			const struct platform_connection_result *n = &r->connection[k];
			assert_int_equal(n->sent_bytes,
				n->received_bytes + n->dropped_bytes + n->inside_bytes);
			all = all && !n->inside_bytes;
			assert_true(n->received_bytes > 0);
			if (!udp)
				assert_int_equal(n->dropped_bytes, 0);
		}
		if (i + 1 < BASE_COUNT(scenes))
			assert_true(all);
		else
			assert_int_equal(r->simulated_ns, 3000000);
		platform_result_free(r);
		platform_config_free(c);
	}
}

static void test_losses_are_counted(void **state)
{
	(void)state;
	for (size_t i = 6; i <= 8; i++) {
		struct platform_config *c = config_of(&scenes[i]);
		struct platform_result *r = run_config(c, NULL);
		assert_true(r->dropped_packets > 0 && r->connection[0].dropped_bytes > 0);
		platform_result_free(r);
		platform_config_free(c);
	}
}

/* What is lost of TCP is sent again, wherever it was lost; and nothing else is. */
static void test_lost_segments_are_sent_again(void **state)
{
	(void)state;
	for (size_t i = FIRST_LOSSY; i < NR_SCENES - 1; i++) {
		struct platform_config *c = config_of(&scenes[i]);
		struct platform_result *r = run_config(c, NULL);
		assert_true(r->dropped_packets > 0 && r->resent_packets > 0);
		platform_result_free(r);
		platform_config_free(c);
	}
	struct platform_result *r = run_with(TCP_STREAM, NULL, "s.transfer_bytes=3000000", NULL);
	assert_true(!r->dropped_packets && !r->resent_packets);
	platform_result_free(r);
}

/* Mathis, Semke, Mahdavi, Ott (1997): MSS / RTT * sqrt(3 / 2) / sqrt(p), here with an
 * acknowledgement for each segment. */
static void test_bandwidth_goes_with_the_root_of_the_loss(void **state)
{
	static const double loss_percent[] = {0.25, 0.5, 1};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(loss_percent); i++) {
		char loss[64];
		snprintf(loss, sizeof loss, "l0.loss_percent=%g", loss_percent[i]);
		struct platform_result *r = run_with(TCP_STREAM, NULL, "s.transfer_bytes=30000000",
			"l0.delay_us=5000", "tx.sndbuf_bytes=4000000", "rx.rcvbuf_bytes=4000000",
			"rx.ack_every_segments=1", loss, NULL);
		double mbps = 1460 * 8 / 10e3 * sqrt(1.5 / (loss_percent[i] / 100));
		if (r->goodput_mbps < 0.75 * mbps || r->goodput_mbps > 1.25 * mbps)
			fail_msg("%s: %g Mb/s, not %g", loss, r->goodput_mbps, mbps);
		platform_result_free(r);
	}
}

/* A segment that no other follows makes no duplicates: the timer must. Before a round trip is known
 * it waits a second, then two, then four (RFC 6298 sections 2.1, 5.5). */
static void test_a_timer_ends_the_silence(void **state)
{
	(void)state;
	unsigned nr[4] = {0};
	for (unsigned seed = 1; seed < 60; seed++) {
		char text[64];
		snprintf(text, sizeof text, "simulation.seed=%u", seed);
		struct platform_result *r = run_with(
			TCP_STREAM, NULL, text, "s.transfer_bytes=100", "l0.loss_percent=30", NULL);
		unsigned k = (unsigned)r->resent_packets;
		uint64_t waited_ns = ((UINT64_C(1) << k) - 1) * 1000000000;
		assert_int_equal(r->dropped_packets, k);
		assert_in_range(r->simulated_ns, waited_ns + 100000, waited_ns + 200000);
		if (k < 4)
			nr[k]++;
		platform_result_free(r);
	}
	for (int k = 0; k < 3; k++)
		assert_true(nr[k] > 2);
}

static void test_same_seed_same_bytes(void **state)
{
	char *other = temporary_path();
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(scenes); i += 3) {
		struct platform_config *c = config_of(&scenes[i]);
		uint8_t *bytes[2];
		size_t size[2];
		set(c, "simulation.jitter_percent=10");
		platform_result_free(run_config(c, trace_path));
		platform_result_free(run_config(c, other));
		bytes[0] = read_file(trace_path, &size[0]);
		bytes[1] = read_file(other, &size[1]);
		assert_int_equal(size[0], size[1]);
		assert_memory_equal(bytes[0], bytes[1], size[0]);
		free(bytes[1]);
		set(c, "simulation.seed=2");
		platform_result_free(run_config(c, other));
		bytes[1] = read_file(other, &size[1]);
		assert_true(size[0] != size[1] || memcmp(bytes[0], bytes[1], size[0]) != 0);
		free(bytes[0]);
		free(bytes[1]);
		platform_config_free(c);
	}
	unlink(other);
	free(other);
}

/* ---- the analysis of the trace --------------------------------------------------------------- */

static void check_queues(struct model *m, struct trace_reader *reader)
{
	struct graph *g = model_graph(m);
	for (uint32_t q = 0; q < graph_nr_queues(g); q++) {
		const struct graph_queue_stats *st = graph_queue_stats(g, q);
		const struct model_queue *mq = model_queue(m, q);
		const struct trace_object *o =
			trace_def_object(trace_reader_defs(reader), mq->object);
		if (st->underflows || st->overflows)
			fail_msg("%s: %lu underflows", mq->name, (unsigned long)st->underflows);
		if (o->capacity && st->max_units > o->capacity)
			fail_msg("%s: %lu of %lu", mq->name, (unsigned long)st->max_units,
				(unsigned long)o->capacity);
	}
}

static void test_the_path_explains_the_run(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(scenes); i++) {
		struct platform_config *c = config_of(&scenes[i]);
		struct trace_reader *reader = NULL;
		struct model *m = NULL;
		struct base_err err = {0};
		struct graph_lane_result lane;
		double unexplained = 0;
		struct platform_result *r = run_config(c, trace_path);
		struct model_options o = {.size = sizeof o};
		assert_int_equal(trace_reader_open(trace_path, NULL, &reader, NULL), BASE_OK);
		assert_int_equal(model_run(reader, &o, &m, &err), BASE_OK);
		assert_int_equal(graph_lane(model_graph(m), 0, &lane, &err), BASE_OK);
		assert_true(lane.found);
		/* the last verb may be a little before the end of a run that was cut */
		assert_true(lane.length_ns <= (double)r->simulated_ns);
		assert_true(lane.length_ns >= 0.999 * (double)r->simulated_ns);
		for (size_t k = 0; k < lane.nr_states; k++)
			unexplained += lane.state[k].unexplained_ns;
		assert_true(unexplained <= 0.01 * lane.length_ns);
		for (int d = 0; d < TRACE_DIAG_NR; d++)
			if (model_health(m)->count[d])
				fail_msg("scene %zu: %s", i,
					trace_diag_describe((enum trace_diag)d)->name);
		check_queues(m, reader);
		model_free(m);
		trace_reader_close(reader);
		platform_result_free(r);
		platform_config_free(c);
	}
}

struct consumers {
	unsigned driver, others;
};

static void hear_consumers(void *ctx, const struct heard *h)
{
	struct consumers *c = ctx;
	if (h->kind != TRACE_note_dequeue || strcmp(h->object, "tx device queue") != 0)
		return;
	c->driver += !strcmp(h->actor, "tx driver");
	c->others += strcmp(h->actor, "tx driver") != 0;
}

/* Else a replay would tie two processes to whose packets each found there (README.md). */
static void test_the_device_queue_has_one_consumer(void **state)
{
	struct consumers c = {0};
	(void)state;
	platform_result_free(run_with(web, trace_path, "w.server_processes=2", "tx.processors=2",
		"tx.tx_descriptors=4", NULL));
	hear(trace_path, hear_consumers, &c);
	assert_true(c.driver > 100);
	assert_int_equal(c.others, 0);
}

/* ---- no memory, no disk ---------------------------------------------------------------------- */

static void test_without_memory(void **state)
{
	struct platform_config *c = read_config(TCP_STREAM "transfer_bytes = 30000\n");
	(void)state;
	set(c, "l0.packets_in_flight=64");
	for (uint64_t n = 1; n < 4000; n++) {
		struct platform_result *r = NULL;
		struct base_err err = {0};
		enum base_status s = WITHOUT_NTH(n, platform_run(c, trace_path, &r, &err));
		if (s == BASE_OK) { /* there are no more allocations */
			platform_result_free(r);
			platform_config_free(c);
			assert_true(n > 20);
			return;
		}
		assert_null(r);
		assert_true(err.nr_causes > 0);
	}
	fail_msg("allocations without end");
}

static void test_no_place_for_the_trace(void **state)
{
	struct platform_config *c = read_config(TCP_STREAM);
	struct platform_result *r = NULL;
	struct base_err err = {0};
	(void)state;
	assert_true(platform_run(c, "/nonexistent/t.lpt", &r, &err) != BASE_OK);
	assert_null(r);
	platform_config_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_serialisation_and_delay),
		cmocka_unit_test(test_one_datagram_takes_the_sum),
		cmocka_unit_test(test_delayed_ack_timer),
		cmocka_unit_test(test_every_second_segment_is_acknowledged),
		cmocka_unit_test(test_slow_start_in_time),
		cmocka_unit_test(test_everything_arrives),
		cmocka_unit_test(test_losses_are_counted),
		cmocka_unit_test(test_lost_segments_are_sent_again),
		cmocka_unit_test(test_bandwidth_goes_with_the_root_of_the_loss),
		cmocka_unit_test(test_a_timer_ends_the_silence),
		cmocka_unit_test(test_same_seed_same_bytes),
		cmocka_unit_test(test_the_path_explains_the_run),
		cmocka_unit_test(test_the_device_queue_has_one_consumer),
		cmocka_unit_test(test_without_memory),
		cmocka_unit_test(test_no_place_for_the_trace),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
