/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_kernel_io.c - known answers: calls, pipes, disks, packets, windows, made by hand. */
#include "kernel_fixture.h"
#include "model/model.h"

enum { READ = 0, WRITE = 1, SENDTO = 44, RECVFROM = 45, FUTEX = 202 };

/* A fast writer, a slow reader, a pipe of 100 bytes: the writer waits for the reader to make room,
 * and a larger pipe would have helped. */
static void pipe_back_pressure(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "writer";
	uint32_t writer = thread(&b, "writer"), reader = thread(&b, "reader");
	uint32_t pipe = object(&b, TRACE_OBJECT_pipe, "", 100);
	struct graph_edit edit = {GRAPH_EDIT_RESIZE_QUEUE, 0, 0, 100};
	struct graph_scenario larger = {.edit = &edit, .nr_edits = 1};
	IN(&b, 0, writer, 0);
	IN(&b, 0, reader, 1);
	CALLS(&b, 10, writer, WRITE, .object = pipe, .n = 100);
	RETURNS(&b, 12, writer, WRITE, .object = pipe, .result = 100);
	CALLS(&b, 20, writer, WRITE, .object = pipe, .n = 100);
	SLEEPS(&b, 22, writer, 0);
	CALLS(&b, 1000, reader, READ, .object = pipe, .n = 100);
	WAKES(&b, 1002, reader, writer);
	RETURNS(&b, 1003, reader, READ, .object = pipe, .result = 100);
	IN(&b, 1004, writer, 0);
	RETURNS(&b, 1006, writer, WRITE, .object = pipe, .result = 100);
	SLEEPS(&b, 1100, writer, 0);
	SLEEPS(&b, 1500, reader, 1);
	analyse(&b);
	conserved(&b, 1100);
	assert_float_equal(on_path_of(&b, "reader", "running"), 1000, 1e-6);
	assert_float_equal(on_path_of(&b, "reader", "read(pipe"), 2, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	for (uint32_t q = 0; q < graph_nr_queues(model_graph(b.model)); q++)
		if (strstr(model_queue(b.model, q)->name, "pipe"))
			edit.id = q;
	model_free(b.model);
	assert_int_equal(trace_reader_rewind(b.reader, &b.err), BASE_OK);
	b.options.scenario = &larger;
	b.options.nr_scenarios = 1;
	assert_int_equal(model_run(b.reader, &b.options, &b.model, &b.err), BASE_OK);
	/* 10 + 2 + 8 + 2, then on the processor again: 2 + 2, and 94 of its own */
	assert_float_equal(lane(&b, 1).length_ns, 10 + 2 + 8 + 2 + 2 + 94, 4);
	finish(&b);
}

/* The reader has waited for the writer, through the bytes. */
static void pipe_data(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "reader";
	uint32_t writer = thread(&b, "writer"), reader = thread(&b, "reader");
	uint32_t pipe = object(&b, TRACE_OBJECT_pipe, "", 65536);
	IN(&b, 0, writer, 0);
	IN(&b, 0, reader, 1);
	CALLS(&b, 10, reader, READ, .object = pipe, .n = 4096);
	SLEEPS(&b, 12, reader, 1);
	CALLS(&b, 900, writer, WRITE, .object = pipe, .n = 10);
	WAKES(&b, 902, writer, reader);
	RETURNS(&b, 905, writer, WRITE, .object = pipe, .result = 10);
	IN(&b, 910, reader, 1);
	RETURNS(&b, 911, reader, READ, .object = pipe, .result = 10);
	SLEEPS(&b, 1000, reader, 1);
	analyse(&b);
	conserved(&b, 1000);
	assert_float_equal(on_path_of(&b, "writer", "running"), 900, 1e-6);
	assert_float_equal(on_path(&b, "hand-off of pipe"), 2, 1e-6);
	assert_float_equal(on_path_of(&b, "reader", ""), 100, 1e-6); /* with 2 of hand-off */
	finish(&b);
}

/* A futex word in shared memory: who wakes is in another process. */
static void futex_of_another_process(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "a";
	uint32_t a = thread(&b, "a"), c = thread(&b, "c");
	uint32_t word = object(&b, TRACE_OBJECT_futex, "", 0);
	IN(&b, 0, a, 0);
	IN(&b, 0, c, 1);
	CALLS(&b, 50, a, FUTEX, .object = word);
	SLEEPS(&b, 52, a, 0);
	CALLS(&b, 600, c, FUTEX, .object = word, .op = 1, .n = 1);
	WAKES(&b, 603, c, a);
	RETURNS(&b, 604, c, FUTEX, .object = word, .result = 1);
	IN(&b, 610, a, 0);
	RETURNS(&b, 611, a, FUTEX, .object = word);
	SLEEPS(&b, 700, a, 0);
	analyse(&b);
	conserved(&b, 700);
	assert_float_equal(on_path_of(&b, "c", "running"), 600, 1e-6);
	assert_float_equal(on_path_of(&b, "c", "futex"), 3, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* Waits in a call that a timer ends are named by both. */
static void call_and_timer(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "a";
	uint32_t a = thread(&b, "a"), timer = context(&b, TRACE_CONTEXT_timer, 0, "");
	uint32_t function = site(&b, "hrtimer_wakeup");
	IN(&b, 0, a, 0);
	CALLS(&b, 10, a, 230, .n = 500);
	SLEEPS(&b, 12, a, 0);
	PUT(&b, 500, timer, context_begin, .interrupted = 0);
	PUT(&b, 501, timer, timer_fire, .key = 1, .site = function);
	WAKES(&b, 502, timer, a);
	PUT(&b, 503, timer, context_end);
	IN(&b, 510, a, 0);
	RETURNS(&b, 512, a, 230);
	SLEEPS(&b, 600, a, 0);
	analyse(&b);
	conserved(&b, 600);
	assert_float_equal(on_path(&b, "waiting for a timer in clock_nanosleep"), 490, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* A read that has to go to the disk; the interrupt comes while another thread runs. */
static void disk(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "reader";
	uint32_t reader = thread(&b, "reader"), hog = thread(&b, "hog");
	uint32_t irq = context(&b, TRACE_CONTEXT_irq, 0, "nvme0q1");
	uint32_t sda = object(&b, TRACE_OBJECT_disk, "sda", 0);
	struct graph_edit edit = {GRAPH_EDIT_SCALE_STATE, 0, 0.5, 0};
	struct graph_scenario faster = {.edit = &edit, .nr_edits = 1};
	IN(&b, 0, reader, 0);
	CALLS(&b, 100, reader, READ);
	PUT(&b, 110, reader, disk_begin, .object = sda, .key = 77, .n = 4096);
	SLEEPS(&b, 115, reader, 0);
	IN(&b, 115, hog, 0);
	/* another request of nobody's, done before */
	PUT(&b, 300, irq, context_begin, .interrupted = hog);
	PUT(&b, 301, irq, disk_end, .object = sda, .key = 76, .n = 512);
	PUT(&b, 302, irq, context_end);
	PUT(&b, 1000, irq, context_begin, .interrupted = hog);
	PUT(&b, 1010, irq, disk_end, .object = sda, .key = 77, .n = 4096);
	WAKES(&b, 1015, irq, reader);
	PUT(&b, 1016, irq, context_end);
	YIELDS(&b, 1020, hog, 0);
	IN(&b, 1020, reader, 0);
	RETURNS(&b, 1025, reader, READ, .result = 4096);
	SLEEPS(&b, 1100, reader, 0);
	analyse(&b);
	conserved(&b, 1100);
	assert_float_equal(on_path_of(&b, "disk sda", "disk sda busy (read)"), 900, 1e-6);
	assert_float_equal(on_path_of(&b, "interrupt nvme0q1", "handling"), 5, 1e-6);
	assert_float_equal(on_path_of(&b, "hog", ""), 0, 1e-6);
	for (uint32_t s = 0; s < graph_nr_states(model_graph(b.model)); s++)
		if (strstr(model_state(b.model, s)->name, "disk sda busy"))
			edit.id = s;
	model_free(b.model);
	assert_int_equal(trace_reader_rewind(b.reader, &b.err), BASE_OK);
	b.options.scenario = &faster;
	b.options.nr_scenarios = 1;
	assert_int_equal(model_run(b.reader, &b.options, &b.model, &b.err), BASE_OK);
	assert_float_equal(lane(&b, 1).length_ns, 1100 - 450, 1e-6);
	finish(&b);
}

/* A flush that was put off goes to the disk with another program's request: it is not that one's.
 */
static void flush(void **state)
{
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "database";
	uint32_t database = thread(&b, "database"), other = thread(&b, "other");
	uint32_t irq = context(&b, TRACE_CONTEXT_irq, 0, "nvme0q1");
	uint32_t sda = object(&b, TRACE_OBJECT_disk, "sda", 0);
	uint32_t again = site(&b, "blk_mq_requeue_work");
	const uint64_t nowhere = UINT64_MAX;
	enum { FDATASYNC = 75 };
	IN(&b, 0, database, 0);
	IN(&b, 0, other, 1);
	CALLS(&b, 100, database, FDATASYNC);
	PUT(&b, 110, database, work_queue, .key = 5, .site = again);
	SLEEPS(&b, 115, database, 0);
	PUT(&b, 130, other, disk_begin, .object = sda, .op = TRACE_DISK_flush, .key = nowhere);
	PUT(&b, 1000, irq, context_begin, .interrupted = other);
	PUT(&b, 1010, irq, disk_end, .object = sda, .op = TRACE_DISK_flush, .key = nowhere);
	WAKES(&b, 1015, irq, database);
	PUT(&b, 1016, irq, context_end);
	IN(&b, 1020, database, 0);
	RETURNS(&b, 1025, database, FDATASYNC);
	SLEEPS(&b, 1100, database, 0);
	analyse(&b);
	conserved(&b, 1100);
	assert_float_equal(on_path(&b, "disk sda busy (flush)"), 880, 1e-6);
	assert_float_equal(on_path(&b, "hand-off of flushes to kernel workers"), 20, 1e-6);
	assert_float_equal(on_path_of(&b, "other", ""), 0, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

/* ---- the network ----------------------------------------------------------------------------- */

struct wire {
	struct bench b;
	uint32_t client, server, rx, dev, there, back, csock, ssock;
};

#define PACKET(w, at, by, what, on, way, num, acks, bytes, sock)                                   \
	PUT(&(w)->b, at, by, what, .object = (on), .flow = (way), .seq = (num), .ack = (acks),     \
		.payload = (bytes), .n = (bytes) + 40, .socket = (sock))

static void plug(struct wire *w)
{
	start(&w->b, "");
	w->client = thread(&w->b, "client");
	w->server = thread(&w->b, "server");
	w->rx = context(&w->b, TRACE_CONTEXT_softirq, 1, "NET_RX");
	w->dev = object(&w->b, TRACE_OBJECT_netdev, "veth0", 0);
	w->there = object(&w->b, TRACE_OBJECT_flow, "tcp 10.0.0.1:40000>10.0.0.2:80", 0);
	w->back = object(&w->b, TRACE_OBJECT_flow, "tcp 10.0.0.2:80>10.0.0.1:40000", 0);
	w->csock = object(&w->b, TRACE_OBJECT_socket, "tcp 10.0.0.1:40000 10.0.0.2:80", 0);
	w->ssock = object(&w->b, TRACE_OBJECT_socket, "tcp 10.0.0.2:80 10.0.0.1:40000", 0);
}

/* The server has waited for the client's packet, 40 on its way; a packet from outside that came in
 * the same poll has nothing to do with it. */
static void packet_from_its_sender(void **state)
{
	(void)state;
	struct wire w;
	struct bench *b = &w.b;
	plug(&w);
	b->options.process = "server";
	uint32_t strange = object(b, TRACE_OBJECT_flow, "tcp 9.9.9.9:1>10.0.0.2:80", 0);
	IN(b, 0, w.client, 0);
	IN(b, 0, w.server, 1);
	CALLS(b, 20, w.server, RECVFROM, .object = w.ssock, .n = 4096);
	SLEEPS(b, 25, w.server, 1);
	CALLS(b, 400, w.client, SENDTO, .object = w.csock, .n = 100);
	PACKET(&w, 410, w.client, packet_queue, w.dev, w.there, 1, 1, 100, w.csock);
	PUT(b, 440, w.rx, context_begin, .interrupted = 0);
	PACKET(&w, 442, w.rx, packet_receive, w.dev, strange, 5, 5, 10, 0);
	PACKET(&w, 450, w.rx, packet_receive, w.dev, w.there, 1, 1, 100, w.ssock);
	PUT(b, 455, w.rx, socket_ready, .object = w.ssock, .n = 100);
	WAKES(b, 456, w.rx, w.server);
	PUT(b, 460, w.rx, context_end);
	RETURNS(b, 465, w.client, SENDTO, .object = w.csock, .result = 100);
	IN(b, 470, w.server, 1);
	PUT(b, 472, w.server, socket_receive, .object = w.ssock, .n = 100);
	RETURNS(b, 473, w.server, RECVFROM, .object = w.ssock, .result = 100);
	SLEEPS(b, 600, w.server, 1);
	analyse(b);
	conserved(b, 600);
	assert_float_equal(on_path_of(b, "client", "running"), 400, 1e-6);
	assert_float_equal(on_path_of(b, "client", "sendto"), 10, 1e-6);
	assert_float_equal(on_path(b, "hand-off of packet flow"), 40, 1e-6);
	assert_float_equal(on_path_of(b, "NET_RX", "handling"), 5, 1e-6);
	assert_float_equal(unexplained(b), 0, 1e-6);
	finish(b);
}

/* One packet of 200 bytes, its numbers past 2^32, comes as two: each half is known for its
 * sender's, and it is under way until the second. */
static void cut_packet(void **state)
{
	(void)state;
	struct wire w;
	struct bench *b = &w.b;
	const uint64_t seq = UINT32_MAX - 49;
	plug(&w);
	b->options.process = "server";
	IN(b, 0, w.client, 0);
	IN(b, 0, w.server, 1);
	CALLS(b, 20, w.server, RECVFROM, .object = w.ssock, .n = 4096);
	SLEEPS(b, 25, w.server, 1);
	CALLS(b, 400, w.client, SENDTO, .object = w.csock, .n = 200);
	PACKET(&w, 410, w.client, packet_queue, w.dev, w.there, seq, 1, 200, w.csock);
	PUT(b, 440, w.rx, context_begin, .interrupted = 0);
	PACKET(&w, 442, w.rx, packet_receive, w.dev, w.there, seq, 1, 100, w.ssock);
	PUT(b, 443, w.rx, context_end);
	PUT(b, 448, w.rx, context_begin, .interrupted = 0);
	PACKET(&w, 450, w.rx, packet_receive, w.dev, w.there, (seq + 100) & UINT32_MAX, 1, 100,
		w.ssock);
	PUT(b, 455, w.rx, socket_ready, .object = w.ssock, .n = 200);
	WAKES(b, 456, w.rx, w.server);
	PUT(b, 460, w.rx, context_end);
	RETURNS(b, 465, w.client, SENDTO, .object = w.csock, .result = 200);
	IN(b, 470, w.server, 1);
	PUT(b, 472, w.server, socket_receive, .object = w.ssock, .n = 200);
	RETURNS(b, 473, w.server, RECVFROM, .object = w.ssock, .result = 200);
	SLEEPS(b, 600, w.server, 1);
	analyse(b);
	conserved(b, 600);
	assert_float_equal(on_path_of(b, "client", "running"), 400, 1e-6);
	assert_float_equal(on_path(b, "hand-off of packet flow"), 40, 1e-6);
	assert_float_equal(unexplained(b), 0, 1e-6);
	finish(b);
}

/* From another host, nobody knows from whom: the server's wait for the network stays its own. */
static void packet_from_outside(void **state)
{
	(void)state;
	struct wire w;
	struct bench *b = &w.b;
	plug(&w);
	b->options.process = "server";
	IN(b, 0, w.client, 0);
	IN(b, 0, w.server, 1);
	CALLS(b, 20, w.server, RECVFROM, .object = w.ssock, .n = 4096);
	SLEEPS(b, 25, w.server, 1);
	PUT(b, 440, w.rx, context_begin, .interrupted = w.client);
	PACKET(&w, 450, w.rx, packet_receive, w.dev, w.there, 1, 1, 100, w.ssock);
	PUT(b, 455, w.rx, socket_ready, .object = w.ssock, .n = 100);
	WAKES(b, 456, w.rx, w.server);
	PUT(b, 460, w.rx, context_end);
	IN(b, 470, w.server, 1);
	SLEEPS(b, 600, w.server, 1);
	analyse(b);
	conserved(b, 600);
	assert_float_equal(on_path(b, "waiting for the network in recvfrom"), 431, 1e-6);
	assert_float_equal(on_path_of(b, "client", ""), 0, 1e-6);
	assert_float_equal(unexplained(b), 0, 1e-6);
	finish(b);
}

/* Three packets at once into a discipline that lets one go every 100: the rate is the path. */
static void discipline_is_the_path(void **state)
{
	(void)state;
	struct wire w;
	struct bench *b = &w.b;
	plug(&w);
	b->options.process = "server";
	uint32_t tbf = object(b, TRACE_OBJECT_qdisc, "tbf of veth0", 0);
	uint32_t tx = context(b, TRACE_CONTEXT_softirq, 0, "NET_TX");
	IN(b, 0, w.client, 0);
	IN(b, 0, w.server, 1);
	SLEEPS(b, 10, w.server, 1);
	for (uint64_t i = 0; i < 3; i++) {
		PACKET(&w, 50 + i, w.client, packet_queue, w.dev, w.there, 1 + i * 100, 1, 100,
			w.csock);
		PACKET(&w, 50 + i, w.client, qdisc_enqueue, tbf, w.there, 1 + i * 100, 1, 100,
			w.csock);
	}
	for (uint64_t i = 0; i < 3; i++) {
		PUT(b, 150 + i * 100, tx, context_begin, .interrupted = 0);
		PACKET(&w, 150 + i * 100, tx, qdisc_dequeue, tbf, w.there, 1 + i * 100, 1, 100,
			w.csock);
		PUT(b, 152 + i * 100, tx, context_end);
	}
	for (uint64_t i = 0; i < 3; i++) {
		PUT(b, 355 + i, w.rx, context_begin, .interrupted = 0);
		PACKET(&w, 355 + i, w.rx, packet_receive, w.dev, w.there, 1 + i * 100, 1, 100,
			w.ssock);
		if (i == 2)
			WAKES(b, 358, w.rx, w.server);
		PUT(b, 358, w.rx, context_end);
	}
	IN(b, 360, w.server, 1);
	SLEEPS(b, 400, w.server, 1);
	analyse(b);
	conserved(b, 400);
	assert_float_equal(on_path_of(b, "tbf of veth0", "sending"), 300, 1e-6);
	assert_float_equal(on_path_of(b, "client", "running"), 50, 1e-6);
	finish(b);
}

/* The kernel does not show that some leave: they are gone all the same when a later one of their
 * flow leaves. What is then there is what has come since. */
static void departures_not_shown(void **state)
{
	(void)state;
	struct wire w;
	struct bench *b = &w.b;
	enum { PACKETS = 12, BYTES = 100 };
	plug(&w);
	b->options.process = "client";
	uint32_t tbf = object(b, TRACE_OBJECT_qdisc, "tbf of veth0", 0);
	uint32_t tx = context(b, TRACE_CONTEXT_softirq, 0, "NET_TX");
	IN(b, 0, w.client, 0);
	for (uint64_t i = 0; i < PACKETS + 2; i++) {
		uint64_t at = 50 + i * 100, out = i - 2; /* two are always there */
		if (i < PACKETS)
			PACKET(&w, at, w.client, packet_queue, w.dev, w.there, 1 + i * BYTES, 1,
				BYTES, w.csock);
		if (i < PACKETS && i != 5) /* its coming is not shown, either */
			PACKET(&w, at, w.client, qdisc_enqueue, tbf, w.there, 1 + i * BYTES, 1,
				BYTES, w.csock);
		if (i < 2 || out == 3 || out == 4 || out == 8)
			continue;
		PUT(b, at + 50, tx, context_begin, .interrupted = 0);
		PACKET(&w, at + 50, tx, qdisc_dequeue, tbf, w.there, 1 + out * BYTES, 1, BYTES,
			w.csock);
		PUT(b, at + 52, tx, context_end);
	}
	SLEEPS(b, 2000, w.client, 0);
	analyse(b);
	bool found = false;
	for (uint32_t q = 0; q < graph_nr_queues(model_graph(b->model)); q++) {
		if (!strstr(model_queue(b->model, q)->name, "tbf of veth0"))
			continue;
		found = true;
		assert_int_equal(graph_queue_units(model_graph(b->model), q), 0);
		assert_int_equal(graph_queue_stats(model_graph(b->model), q)->underflows, 0);
	}
	assert_true(found);
	finish(b);
}

/*
 * Two packets at once, and a third that comes when the discipline has none: it leaves when the rate
 * allows it all the same, 100 after the second. So its coming is not why; without the rate it is.
 */
static void bucket_fills_meanwhile(void **state)
{
	(void)state;
	enum { US = 1000 };
	struct wire w;
	struct bench *b = &w.b;
	struct graph_edit edit = {GRAPH_EDIT_SCALE_STATE, UINT32_MAX, 0, 0};
	struct graph_scenario no_rate = {.edit = &edit, .nr_edits = 1};
	static const uint64_t comes[] = {50, 51, 290}, leaves[] = {150, 250, 350};
	plug(&w);
	b->options.process = "server";
	uint32_t tbf = object(b, TRACE_OBJECT_qdisc, "tbf of veth0", 0);
	uint32_t tx = context(b, TRACE_CONTEXT_softirq, 0, "NET_TX");
	IN(b, 0, w.client, 0);
	IN(b, 0, w.server, 1);
	SLEEPS(b, 10 * US, w.server, 1);
	for (uint64_t come = 0, leave = 0; leave < 3;) {
		if (come < 3 && comes[come] < leaves[leave]) {
			PACKET(&w, comes[come] * US, w.client, packet_queue, w.dev, w.there,
				1 + come * 100, 1, 100, w.csock);
			PACKET(&w, comes[come] * US, w.client, qdisc_enqueue, tbf, w.there,
				1 + come * 100, 1, 100, w.csock);
			come++;
			continue;
		}
		PUT(b, leaves[leave] * US, tx, context_begin, .interrupted = 0);
		PACKET(&w, leaves[leave] * US, tx, qdisc_dequeue, tbf, w.there, 1 + leave * 100, 1,
			100, w.csock);
		PUT(b, leaves[leave] * US + 1, tx, context_end);
		leave++;
	}
	for (uint64_t i = 0; i < 3; i++) {
		PUT(b, 355 * US + i, w.rx, context_begin, .interrupted = 0);
		PACKET(&w, 355 * US + i, w.rx, packet_receive, w.dev, w.there, 1 + i * 100, 1, 100,
			w.ssock);
		if (i == 2)
			WAKES(b, 355 * US + i, w.rx, w.server);
		PUT(b, 355 * US + i, w.rx, context_end);
	}
	IN(b, 360 * US, w.server, 1);
	SLEEPS(b, 400 * US, w.server, 1);
	analyse(b);
	conserved(b, 400 * US);
	assert_float_equal(on_path_of(b, "tbf of veth0", "sending"), 300 * US, 1e-6);
	for (uint32_t i = 0; i < graph_nr_states(model_graph(b->model)); i++)
		if (strstr(model_state(b->model, i)->name, "tbf of veth0 sending"))
			edit.id = i;
	assert_true(edit.id != UINT32_MAX);
	model_free(b->model);
	assert_int_equal(trace_reader_rewind(b->reader, &b->err), BASE_OK);
	b->options.scenario = &no_rate;
	b->options.nr_scenarios = 1;
	assert_int_equal(model_run(b->reader, &b->options, &b->model, &b->err), BASE_OK);
	assert_float_equal(lane(b, 1).length_ns, 290 * US + 50 * US, 10);
	finish(b);
}

/*
 * A window of 100 bytes, a round trip of 200: every packet after the first goes because an
 * acknowledgement came. With 100 bytes more the sender would not have waited for the last one.
 */
static void window(void **state)
{
	(void)state;
	struct wire w;
	struct bench *b = &w.b;
	struct graph_edit edit = {GRAPH_EDIT_RESIZE_QUEUE, UINT32_MAX, 0, 300};
	struct graph_scenario sc = {.edit = &edit, .nr_edits = 1};
	plug(&w);
	b->options.process = "server";
	uint32_t ack = context(b, TRACE_CONTEXT_softirq, 0, "NET_RX");
	IN(b, 0, w.client, 0);
	IN(b, 0, w.server, 1);
	SLEEPS(b, 5, w.server, 1);
	PACKET(&w, 6, w.client, packet_receive, w.dev, w.back, 1, 1, 0, w.csock);
	PUT(b, 8, w.client, tcp_window, .object = w.csock, .congestion = 100, .peer = 5000,
		.own = 5000, .unacknowledged = 0);
	CALLS(b, 10, w.client, SENDTO, .object = w.csock, .n = 400);
	PACKET(&w, 20, w.client, packet_queue, w.dev, w.there, 1, 1, 100, w.csock);
	PUT(b, 22, w.client, socket_send, .object = w.csock, .n = 400);
	RETURNS(b, 23, w.client, SENDTO, .object = w.csock, .result = 400);
	SLEEPS(b, 30, w.client, 0);
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t at = 120 + i * 200;
		PUT(b, at, w.rx, context_begin, .interrupted = 0);
		PACKET(&w, at, w.rx, packet_receive, w.dev, w.there, 1 + i * 100, 1, 100, w.ssock);
		PACKET(&w, at + 5, w.rx, packet_queue, w.dev, w.back, 1, 101 + i * 100, 0, w.ssock);
		if (i == 3)
			WAKES(b, at + 6, w.rx, w.server);
		PUT(b, at + 7, w.rx, context_end);
		if (i == 3)
			break;
		PUT(b, at + 90, ack, context_begin, .interrupted = 0);
		PACKET(&w, at + 90, ack, packet_receive, w.dev, w.back, 1, 101 + i * 100, 0,
			w.csock);
		PACKET(&w, at + 100, ack, packet_queue, w.dev, w.there, 101 + i * 100, 1, 100,
			w.csock);
		PUT(b, at + 101, ack, context_end);
	}
	IN(b, 730, w.server, 1);
	SLEEPS(b, 800, w.server, 1);
	analyse(b);
	conserved(b, 800);
	assert_true(on_path(b, "hand-off of packet flow") > 600);
	for (uint32_t q = 0; q < graph_nr_queues(model_graph(b->model)); q++)
		if (strstr(model_queue(b->model, q)->name, "window of socket"))
			edit.id = q;
	assert_true(edit.id != UINT32_MAX);
	assert_true(model_queue(b->model, edit.id)->tokens);
	model_free(b->model);
	assert_int_equal(trace_reader_rewind(b->reader, &b->err), BASE_OK);
	b->options.scenario = &sc;
	b->options.nr_scenarios = 1;
	assert_int_equal(model_run(b->reader, &b->options, &b->model, &b->err), BASE_OK);
	/* all four packets at once, then 100 on the wire, and the server's own end */
	assert_true(lane(b, 1).length_ns < 250);
	finish(b);
}

/* Two completions are waited for; a worker of the kernel brings one after the other, and wakes when
 * both are there. A call that finds them there waits for nobody. */
static void ring(void **state)
{
	enum { ENTER = 426, GETEVENTS = 1 };
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "asker";
	uint32_t a = thread(&b, "asker"), w = thread(&b, "worker");
	uint32_t o = object(&b, TRACE_OBJECT_io_uring, "ring", 0);
	IN(&b, 0, a, 0);
	IN(&b, 0, w, 1);
	SLEEPS(&b, 10, w, 1);
	CALLS(&b, 100, a, ENTER, .object = o, .op = GETEVENTS, .n = 2);
	WAKES(&b, 110, a, w);
	IN(&b, 115, w, 1);
	SLEEPS(&b, 120, a, 0);
	PUT(&b, 300, w, ring_complete, .object = o);
	PUT(&b, 500, w, ring_complete, .object = o);
	WAKES(&b, 505, w, a);
	IN(&b, 515, a, 0);
	RETURNS(&b, 520, a, ENTER, .object = o);
	PUT(&b, 540, w, ring_complete, .object = o);
	SLEEPS(&b, 550, w, 1);
	CALLS(&b, 600, a, ENTER, .object = o, .op = GETEVENTS, .n = 1);
	RETURNS(&b, 610, a, ENTER, .object = o);
	SLEEPS(&b, 700, a, 0);
	analyse(&b);
	conserved(&b, 700);
	assert_float_equal(on_path_of(&b, "worker", "running program worker"), 385, 1e-6);
	assert_float_equal(on_path_of(&b, "asker", "hand-off of io_uring ring"), 5, 1e-6);
	assert_float_equal(on_path_of(&b, "asker", "io_uring_enter"), 10 + 5 + 10, 1e-6);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	finish(&b);
}

static const struct graph_queue_stats *queue_called(const struct bench *b, const char *name)
{
	for (uint32_t q = 0; q < graph_nr_queues(model_graph(b->model)); q++)
		if (!strcmp(model_queue(b->model, q)->name, name))
			return graph_queue_stats(model_graph(b->model), q);
	fail_msg("no queue '%s'", name);
	return NULL;
}

/*
 * Three requests of a ring whose calls do not say which it is: one is done at once; one goes to a
 * worker, whose doing the wait is; one waits for a pipe, to which `peer` writes: who waited has
 * waited for peer, though it reads the pipe and completes the request itself.
 */
static void requests(void **state)
{
	enum { ENTER = 426, GETEVENTS = 1 };
	(void)state;
	struct bench b;
	start(&b, "");
	b.options.process = "asker";
	uint32_t a = thread(&b, "asker"), w = thread(&b, "worker"), p = thread(&b, "peer");
	uint32_t o = object(&b, TRACE_OBJECT_io_uring, "ring", 0),
		 pipe = object(&b, TRACE_OBJECT_pipe, "pipe", 0);
	IN(&b, 0, a, 0);
	IN(&b, 0, w, 1);
	SLEEPS(&b, 10, w, 1);
	IN(&b, 10, p, 1);
	SLEEPS(&b, 20, p, 1);
	CALLS(&b, 100, a, ENTER, .op = GETEVENTS, .n = 1);
	PUT(&b, 101, a, ring_submit, .object = o, .key = 1, .op = TRACE_RING_nop);
	PUT(&b, 103, a, ring_complete, .object = o, .key = 1, .op = TRACE_RING_nop);
	RETURNS(&b, 104, a, ENTER, .result = 1);
	CALLS(&b, 110, a, ENTER, .op = GETEVENTS, .n = 1);
	PUT(&b, 112, a, ring_submit, .object = o, .key = 2, .op = TRACE_RING_fsync);
	PUT(&b, 115, a, ring_async, .object = o, .key = 2);
	WAKES(&b, 115, a, w);
	PUT(&b, 116, a, ring_wait, .object = o, .n = 1);
	IN(&b, 117, w, 1);
	SLEEPS(&b, 120, a, 0);
	PUT(&b, 200, w, ring_complete, .object = o, .key = 2, .op = TRACE_RING_fsync);
	WAKES(&b, 201, w, a);
	IN(&b, 203, a, 0);
	SLEEPS(&b, 204, w, 1);
	RETURNS(&b, 205, a, ENTER, .result = 1);
	CALLS(&b, 210, a, ENTER, .op = GETEVENTS, .n = 1);
	PUT(&b, 212, a, ring_submit, .object = o, .key = 2, .op = TRACE_RING_read, .file = pipe);
	PUT(&b, 214, a, ring_arm, .object = o, .key = 2);
	PUT(&b, 216, a, ring_wait, .object = o, .n = 1);
	WAKES(&b, 218, a, p);
	IN(&b, 219, p, 1);
	SLEEPS(&b, 220, a, 0);
	CALLS(&b, 300, p, 1 /* write */, .object = pipe, .n = 8);
	PUT(&b, 301, p, ring_ready, .object = o, .key = 2);
	WAKES(&b, 302, p, a);
	RETURNS(&b, 303, p, 1, .object = pipe, .result = 8);
	IN(&b, 304, a, 0);
	PUT(&b, 306, a, ring_complete, .object = o, .key = 2, .op = TRACE_RING_read, .file = pipe,
		.result = 8);
	RETURNS(&b, 308, a, ENTER, .result = 1);
	SLEEPS(&b, 400, a, 0);
	analyse(&b);
	conserved(&b, 400);
	assert_float_equal(on_path_of(&b, "worker", "running program worker"), 201 - 115 - 2, 1e-6);
	assert_true(on_path_of(&b, "peer", "") >= 302 - 219);
	assert_float_equal(unexplained(&b), 0, 1e-6);
	assert_int_equal(queue_called(&b, "submissions of io_uring ring")->enqueued, 3);
	assert_int_equal(queue_called(&b, "work for threads of io_uring ring")->enqueued, 1);
	assert_int_equal(
		queue_called(&b, "requests for ready files of io_uring ring")->enqueued, 1);
	assert_int_equal(queue_called(&b, "io_uring ring")->enqueued, 3);
	/* all are done, and the pipe is empty */
	assert_int_equal(queue_called(&b, "submissions of io_uring ring")->dequeued, 3);
	assert_int_equal(queue_called(&b, "pipe pipe")->dequeued, 8);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pipe_back_pressure),
		cmocka_unit_test(pipe_data),
		cmocka_unit_test(futex_of_another_process),
		cmocka_unit_test(ring),
		cmocka_unit_test(requests),
		cmocka_unit_test(call_and_timer),
		cmocka_unit_test(disk),
		cmocka_unit_test(flush),
		cmocka_unit_test(packet_from_its_sender),
		cmocka_unit_test(cut_packet),
		cmocka_unit_test(packet_from_outside),
		cmocka_unit_test(discipline_is_the_path),
		cmocka_unit_test(departures_not_shown),
		cmocka_unit_test(bucket_fills_meanwhile),
		cmocka_unit_test(window),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
