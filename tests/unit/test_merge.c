/* SPDX-License-Identifier: Apache-2.0 */
/* test_merge.c - a client and a server, each recorded by its own clock: one trace, in order. */
#include "merge/merge.h"
#include "trace/communicator.h"
#include "trace/enums.h"

#include <string.h>
#include <sys/stat.h>

#include "test.h"
#include "trace_file.h"

enum { ROUNDS = 200, ROUND_NS = 1000000, WORK_NS = 100000, DELAY_NS = 20000 };

/* What time it is: the same moment by the machine's own clock. */
struct machine {
	const char *host, *boot;
	double drift;
	uint64_t mono_ns, unix_ns; /* at the real time 0 */
	uint64_t begin_ns;         /* real time at which its recording begins */
	uint64_t hz;
};

static uint64_t by(const struct machine *k, uint64_t real_ns)
{
	double since = (double)(real_ns - k->begin_ns);
	return (uint64_t)(since + since * k->drift);
}

static void put(struct trace_writer *w, struct trace_record r)
{
	assert_int_equal(trace_writer_put(w, &r, NULL), BASE_OK);
}

static void put_text(struct trace_writer *w, uint32_t id, const char *text)
{
	put(w, (struct trace_record){.kind = TRACE_string,
		       .u.string = {.string = id,
			       .text = {.bytes = text, .length = (uint32_t)strlen(text)}}});
}

static struct trace_writer *start(const struct machine *k, const char *path, const char *program,
	uint64_t pid, const char *socket)
{
	struct trace_writer *w;
	struct trace_info info = {.size = sizeof info,
		.host = k->host,
		.command = program,
		.tool = "test",
		.origin_mono_ns = k->mono_ns + (uint64_t)((double)k->begin_ns * (1 + k->drift)),
		.origin_unix_ns = k->unix_ns + k->begin_ns,
		.tick_hz = k->hz,
		.nr_processors = 2};
	assert_int_equal(trace_writer_open(path, &info, &w, NULL), BASE_OK);
	put_text(w, 1, program);
	put_text(w, 2, socket);
	put_text(w, 3, k->boot);
	if (*k->boot)
		put(w, (struct trace_record){.kind = TRACE_host, .u.host = {.host = 1, .boot = 3}});
	put(w, (struct trace_record){.kind = TRACE_process,
		       .u.process = {.process = 1, .pid = pid, .name = 1, .command = 1}});
	put(w, (struct trace_record){
		       .kind = TRACE_stream, .u.stream = {.stream = 1, .process = 1, .tid = pid}});
	put(w, (struct trace_record){.kind = TRACE_object,
		       .u.object = {.object = 1,
			       .type = TRACE_OBJECT_socket,
			       .address = 77,
			       .name = 2}});
	put(w, (struct trace_record){.time_ns = 0,
		       .stream = 1,
		       .kind = TRACE_thread_begin,
		       .u.thread_begin = {.token = 5, .handle = 9}});
	put(w, (struct trace_record){.time_ns = 0,
		       .stream = 1,
		       .kind = TRACE_cpu_in,
		       .u.cpu_in = {.processor = 1}});
	return w;
}

static void io(struct trace_writer *w, const struct machine *k, uint64_t begin_ns, uint64_t end_ns,
	enum trace_io op, int64_t n)
{
	put(w, (struct trace_record){.time_ns = by(k, begin_ns),
		       .stream = 1,
		       .kind = TRACE_io_begin,
		       .u.io_begin = {.object = 1, .op = op, .n = 4096}});
	put(w, (struct trace_record){.time_ns = by(k, end_ns),
		       .stream = 1,
		       .kind = TRACE_io_end,
		       .u.io_end = {.object = 1, .op = op, .result = n}});
}

struct files {
	char *client, *server, *out;
	struct machine client_machine, server_machine;
};

static const char client_name[] = "tcp 10.0.0.2:4000 10.0.0.1:80",
		  server_name[] = "tcp [0:0:0:0:0:ffff:a00:1]:80 [0:0:0:0:0:ffff:a00:2]:4000";

/* Every millisecond the client writes 100 bytes, the server works and answers 300. */
static void write_both(struct files *f, bool answers, const char *server_socket)
{
	const struct machine *c = &f->client_machine, *s = &f->server_machine;
	struct trace_writer *a = start(c, f->client, "client", 100, client_name),
			    *b = start(s, f->server, "server", 100, server_socket);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t t = 5000000 + i * ROUND_NS, there = t + DELAY_NS + i % 7 * 1000,
			 answer = there + WORK_NS, back = answer + DELAY_NS;
		io(a, c, t, t + 3000, TRACE_IO_write, 100);
		io(b, s, t - 1000, there, TRACE_IO_read, 100);
		if (!answers)
			continue;
		io(b, s, answer, answer + 3000, TRACE_IO_write, 300);
		io(a, c, t + 4000, back, TRACE_IO_read, 300);
	}
	trace_writer_count(a, TRACE_DIAG_futex_unseen, 3);
	trace_writer_count(b, TRACE_DIAG_futex_unseen, 4);
	assert_int_equal(trace_writer_close(a, NULL), BASE_OK);
	assert_int_equal(trace_writer_close(b, NULL), BASE_OK);
}

static struct files make_files(void)
{
	return (struct files){.client = temporary_path(),
		.server = temporary_path(),
		.out = temporary_path(),
		.client_machine = {.host = "alpha",
			.boot = "a",
			.mono_ns = 900000000000,
			.unix_ns = 1700000000000000000,
			.hz = 2000000000},
		.server_machine = {.host = "beta",
			.boot = "b",
			.drift = 80e-6,
			.mono_ns = 5000000000,
			.unix_ns = 1700000000400000000,
			.begin_ns = 2000000,
			.hz = 3000000000}};
}

static void remove_files(struct files *f)
{
	char *all[] = {f->client, f->server, f->out};
	for (size_t i = 0; i < BASE_COUNT(all); i++) {
		unlink(all[i]);
		free(all[i]);
	}
}

static enum base_status merge_files(struct files *f, struct merge_result *ret, struct base_err *err)
{
	const char *path[] = {f->client, f->server};
	struct base_arena *names;
	enum base_status status = merge_run(path, 2, f->out, NULL, ret, &names, err);
	base_arena_free(names);
	return status;
}

/* Of the server's receivings, in merged time, real time is known. */
static void check_times(const struct files *f, uint64_t error_ns)
{
	struct trace_reader *r;
	struct trace_batch b;
	uint64_t n = 0;
	assert_int_equal(trace_reader_open(f->out, NULL, &r, NULL), BASE_OK);
	while (trace_reader_next(r, &b, NULL) == BASE_OK)
		for (size_t i = 0; i < b.nr; i++) {
			const struct trace_record *k = &b.record[i];
			const bool is_read =
				k->kind == TRACE_io_end && k->u.io_end.op == TRACE_IO_read;
			if (k->stream != 2 || (!is_read && k->kind != TRACE_mpi_done))
				continue;
			uint64_t t = 5000000 + n * ROUND_NS, there = t + DELAY_NS + n % 7 * 1000;
			int64_t off = (int64_t)(k->time_ns - there);
			assert_true((uint64_t)(off < 0 ? -off : off) <= error_ns + 2);
			n++;
		}
	assert_int_equal(n, ROUNDS);
	trace_reader_close(r);
}

static void two_machines(void **state)
{
	struct files f = make_files();
	struct merge_result result;
	struct trace_reader *r;
	struct trace_batch b;
	(void)state;
	write_both(&f, true, server_name);
	assert_int_equal(merge_files(&f, &result, NULL), BASE_OK);
	assert_int_equal(result.nr_hosts, 2);
	assert_int_equal(result.nr_connections, 1);
	assert_int_equal(result.nr_unusable, 0);
	assert_int_equal(result.input[1].nr_bytes, 2 * ROUNDS);
	assert_int_equal(result.input[1].how, MERGE_HOW_pairs);
	/* the quickest there and back take 40 us: half of it is the best that can be */
	assert_in_range(result.error_ns, DELAY_NS - 1000, DELAY_NS + 5000);
	check_times(&f, result.error_ns);

	assert_int_equal(trace_reader_open(f.out, NULL, &r, NULL), BASE_OK);
	const struct trace_defs *d = trace_reader_defs(r);
	assert_string_equal(trace_reader_info(r)->host, "alpha + beta");
	assert_int_equal(trace_reader_info(r)->nr_processors, 4);
	assert_int_equal(d->nr_hosts, 3);
	assert_int_equal(d->hosts[1].last_stream, 1);
	assert_int_equal(d->hosts[2].last_stream, 2);
	assert_int_equal(d->hosts[2].end_processor, 4);
	assert_string_equal(trace_text_of(d, d->hosts[2].name), "beta");
	assert_int_equal(d->hosts[2].error_ns, result.error_ns);
	assert_int_equal(d->nr_processes, 3);
	assert_string_equal(trace_text_of(d, d->processes[2].name), "server");
	assert_int_equal(d->streams[2].process, 2);
	assert_int_equal(d->objects[1].pair, 1);
	assert_int_equal(d->objects[2].pair, 1);
	assert_true(d->objects[1].side != d->objects[2].side);
	assert_int_equal(trace_reader_health(r)->count[TRACE_DIAG_futex_unseen], 7);
	assert_int_equal(trace_reader_health(r)->count[TRACE_DIAG_clock_error_ns], result.error_ns);
	/* what pairs records, and processors, are each machine's own; nothing is read before it was
	 * written */
	uint64_t token[3] = {0}, processor[3] = {0}, written = 0, read = 0, nr = 0;
	while (trace_reader_next(r, &b, NULL) == BASE_OK)
		for (size_t i = 0; i < b.nr; i++) {
			const struct trace_record *k = &b.record[i];
			nr++;
			if (k->kind == TRACE_thread_begin)
				token[k->stream] = k->u.thread_begin.token;
			if (k->kind == TRACE_cpu_in)
				processor[k->stream] = k->u.cpu_in.processor;
			if (k->kind == TRACE_io_begin && k->stream == 1 &&
				k->u.io_begin.op == TRACE_IO_write)
				written += 100;
			if (k->kind == TRACE_io_end && k->stream == 2 &&
				k->u.io_end.op == TRACE_IO_read)
				read += (uint64_t)k->u.io_end.result;
			assert_true(read <= written);
		}
	assert_int_equal(nr, result.nr_records);
	assert_true(token[1] && token[2] && token[1] != token[2]);
	assert_int_equal(processor[1], 1);
	assert_int_equal(processor[2], 3);
	trace_reader_close(r);

	/* what is merged is not merged again */
	const char *path[] = {f.out, f.client};
	struct base_arena *names;
	assert_int_equal(merge_run(path, 2, f.server, NULL, &result, &names, NULL), BASE_ERR_USAGE);
	remove_files(&f);
}

static void one_machine(void **state)
{
	struct files f = make_files();
	struct merge_result result;
	(void)state;
	f.server_machine = f.client_machine;
	f.server_machine.begin_ns = 2000000;
	f.server_machine.unix_ns +=
		9000000000; /* somebody set the wall clock: it does not matter */
	write_both(&f, true, server_name);
	assert_int_equal(merge_files(&f, &result, NULL), BASE_OK);
	assert_int_equal(result.nr_hosts, 1);
	assert_int_equal(result.input[1].how, MERGE_HOW_kernel);
	assert_false(result.clock_contradicted);
	assert_true(result.error_ns < 1000);
	check_times(&f, result.error_ns);
	/* one boot id, but a clock 3 ms away: the pairs are believed */
	f.server_machine.mono_ns += 3000000;
	write_both(&f, true, server_name);
	assert_int_equal(merge_files(&f, &result, NULL), BASE_OK);
	assert_true(result.clock_contradicted);
	assert_int_equal(result.input[1].how, MERGE_HOW_pairs);
	check_times(&f, result.error_ns);
	remove_files(&f);
}

static void what_is_refused(void **state)
{
	struct files f = make_files();
	struct merge_result result;
	struct base_err err = {0};
	(void)state;
	write_both(&f, false, server_name);
	assert_int_equal(merge_files(&f, &result, &err), BASE_ERR_CLOCK);
	assert_non_null(strstr(err.cause[1], "one way"));
	write_both(&f, true, "tcp 192.168.1.1:80 10.0.0.2:4000"); /* a NAT */
	assert_int_equal(merge_files(&f, &result, &err), BASE_ERR_CLOCK);
	assert_non_null(strstr(err.cause[1], "nothing passed"));
	write_both(&f, true, "tcp 127.0.0.1:80 127.0.0.1:4000");
	assert_int_equal(merge_files(&f, &result, &err), BASE_ERR_CLOCK);
	remove_files(&f);
}

/* ---- packets --------------------------------------------------------------------------------- */

static void packet(struct trace_writer *w, const struct machine *k, uint64_t real_ns, bool sent,
	uint32_t flow, uint64_t seq, uint64_t ack, uint64_t payload)
{
	struct trace_record r = {.time_ns = by(k, real_ns),
		.stream = 1,
		.kind = TRACE_packet_transmit,
		.u.packet_transmit = {.flow = flow, .seq = seq, .ack = ack, .payload = payload}};
	if (!sent) {
		r.kind = TRACE_packet_receive;
		r.u.packet_receive = (struct trace_packet_receive){
			.flow = flow, .seq = seq, .ack = ack, .payload = payload};
	}
	put(w, r);
}

/* Flow 2 is there, 3 is back; from the names on. */
static struct trace_writer *start_kernel(
	const struct machine *k, const char *path, const char *there, const char *back)
{
	struct trace_writer *w = start(k, path, "kernel", 1, "socket - -");
	put_text(w, 4, there);
	put_text(w, 5, back);
	for (uint32_t i = 2; i < 4; i++)
		put(w, (struct trace_record){.kind = TRACE_object,
			       .u.object = {
				       .object = i, .type = TRACE_OBJECT_flow, .name = i + 2}});
	return w;
}

enum { SEGMENT_BYTES = 1000, PACKETS = 400 };

/* A transfer from a to b: segments there, of which some are lost and sent again, acknowledgements
 * back. The ways take 50 us and 30 us at least. Returns how many were lost. */
static uint64_t transfer(struct trace_writer *a, const struct machine *ka, struct trace_writer *b,
	const struct machine *kb, uint64_t from_ns)
{
	uint64_t lost = 0, seq = UINT32_MAX - 50000; /* it goes round */
	for (uint64_t i = 0; i < PACKETS; i++) {
		uint64_t t = from_ns + i * 100000, wire = 50000 + i % 13 * 1000;
		uint64_t end = (seq + SEGMENT_BYTES) & UINT32_MAX;
		packet(a, ka, t, true, 2, seq, 7, SEGMENT_BYTES);
		if (i % 50 == 49) {
			lost++;
			t += 1000;
			packet(a, ka, t, true, 2, seq, 7, SEGMENT_BYTES);
		}
		packet(b, kb, t + wire, false, 2, seq, 7, SEGMENT_BYTES);
		packet(b, kb, t + wire + 500, true, 3, 7, end, 0);
		packet(a, ka, t + wire + 500 + 30000, false, 3, 7, end, 0);
		seq = end;
	}
	return lost;
}

static void packets_of_two_kernels(void **state)
{
	struct files f = make_files();
	struct merge_result result;
	const char *there = "tcp 10.0.0.2:4000>10.0.0.1:80",
		   *back = "tcp 10.0.0.1:80>10.0.0.2:4000";
	(void)state;
	struct trace_writer *a = start_kernel(&f.client_machine, f.client, there, back),
			    *b = start_kernel(&f.server_machine, f.server, there, back);
	uint64_t lost = transfer(a, &f.client_machine, b, &f.server_machine, 3000000);
	assert_int_equal(trace_writer_close(a, NULL), BASE_OK);
	assert_int_equal(trace_writer_close(b, NULL), BASE_OK);
	assert_int_equal(merge_files(&f, &result, NULL), BASE_OK);
	assert_int_equal(result.nr_sent, 2 * PACKETS + lost);
	assert_int_equal(result.nr_received, 2 * PACKETS);
	assert_int_equal(result.nr_matched, 2 * PACKETS);
	assert_int_equal(result.input[1].nr_packets, 2 * PACKETS);
	assert_in_range(result.error_ns, 39000, 45000);
	int64_t off = result.input[1].offset_ns -
		      (int64_t)(f.client_machine.mono_ns - f.server_machine.mono_ns);
	assert_true((uint64_t)(off < 0 ? -off : off) <= result.error_ns + 200);
	remove_files(&f);
}

/* The third knows only the second: errors add up along the way. */
static void three_machines_in_a_row(void **state)
{
	struct files f = make_files();
	struct machine third = {.host = "gamma",
		.boot = "c",
		.drift = -50e-6,
		.mono_ns = 77,
		.unix_ns = 1699999999900000000,
		.begin_ns = 1000000};
	const char *ab = "tcp 10.0.0.2:4000>10.0.0.1:80", *ba = "tcp 10.0.0.1:80>10.0.0.2:4000",
		   *bc = "tcp 10.0.0.1:9>10.0.0.3:90", *cb = "tcp 10.0.0.3:90>10.0.0.1:9";
	char *path = temporary_path(), *middle = temporary_path();
	struct merge_result result;
	struct base_arena *names;
	(void)state;
	struct trace_writer *a = start_kernel(&f.client_machine, f.client, ab, ba),
			    *b = start_kernel(&f.server_machine, f.server, ab, ba);
	transfer(a, &f.client_machine, b, &f.server_machine, 3000000);
	assert_int_equal(trace_writer_close(a, NULL), BASE_OK);
	assert_int_equal(trace_writer_close(b, NULL), BASE_OK);
	/* the middle one's other recording, of the same kernel */
	struct trace_writer *m = start_kernel(&f.server_machine, middle, bc, cb),
			    *c = start_kernel(&third, path, bc, cb);
	transfer(m, &f.server_machine, c, &third, 3000000);
	assert_int_equal(trace_writer_close(m, NULL), BASE_OK);
	assert_int_equal(trace_writer_close(c, NULL), BASE_OK);
	const char *all[] = {f.client, path, f.server, middle};
	assert_int_equal(merge_run(all, 4, f.out, NULL, &result, &names, NULL), BASE_OK);
	base_arena_free(names);
	assert_int_equal(result.nr_hosts, 3);
	assert_int_equal(result.input[1].how, MERGE_HOW_pairs);
	assert_int_equal(result.input[1].through, 3);
	assert_int_equal(result.input[3].how, MERGE_HOW_kernel);
	assert_true(result.input[1].error_ns > result.input[2].error_ns + 39000);
	int64_t off = result.input[1].offset_ns - (int64_t)(f.client_machine.mono_ns - 77);
	assert_true((uint64_t)(off < 0 ? -off : off) <= result.input[1].error_ns + 200);
	struct trace_reader *r;
	assert_int_equal(trace_reader_open(f.out, NULL, &r, NULL), BASE_OK);
	const struct trace_defs *d = trace_reader_defs(r);
	/* by host: alpha's, gamma's, both of beta's */
	assert_string_equal(trace_text_of(d, d->hosts[2].name), "gamma");
	assert_int_equal(d->hosts[2].last_stream, 2);
	assert_int_equal(d->hosts[3].last_stream, 4);
	trace_reader_close(r);
	char *more[] = {path, middle};
	for (int i = 0; i < 2; i++) {
		unlink(more[i]);
		free(more[i]);
	}
	remove_files(&f);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Addresses that another machine has as well, as something else. */
static void names_of_one_machine(void **state)
{
	struct files f = make_files();
	struct merge_result result;
	static const char *const name[] = {"tcp 127.0.0.1:5 127.0.0.1:6", "tcp 0.0.0.0:80 -",
		"tcp 0.0.0.0:81 -", "unix /run/x -"};
	(void)state;
	for (int server = 0; server < 2; server++) {
		const struct machine *k = server ? &f.server_machine : &f.client_machine;
		struct trace_writer *w = start(k, server ? f.server : f.client, "p", 7,
			server ? server_name : client_name);
		for (uint32_t i = 0; i < BASE_COUNT(name); i++) {
			if (server && i == 2)
				continue; /* port 81 is alpha's alone */
			put_text(w, 10 + i, name[i]);
			put(w, (struct trace_record){.kind = TRACE_object,
				       .u.object = {.object = 2 + i,
					       .type = i ? TRACE_OBJECT_listener
							 : TRACE_OBJECT_socket,
					       .name = 10 + i}});
		}
		for (uint64_t t = 5000000; t < 20000000; t += 1000000) {
			io(w, k, t + (server ? 100 : 0), t + 200000, TRACE_IO_write, 10);
			io(w, k, t + 300000, t + 400000, TRACE_IO_read, 10);
		}
		assert_int_equal(trace_writer_close(w, NULL), BASE_OK);
	}
	assert_int_equal(merge_files(&f, &result, NULL), BASE_OK);
	struct trace_reader *r;
	assert_int_equal(trace_reader_open(f.out, NULL, &r, NULL), BASE_OK);
	const struct trace_defs *d = trace_reader_defs(r);
	static const char *const expected[] = {"", client_name,
		"tcp 127.0.0.1:5@alpha 127.0.0.1:6@alpha", "tcp 0.0.0.0:80@alpha -",
		"tcp 0.0.0.0:81 -", "unix /run/x@alpha -", server_name,
		"tcp 127.0.0.1:5@beta 127.0.0.1:6@beta", "tcp 0.0.0.0:80@beta -", "",
		"unix /run/x@beta -"};
	assert_int_equal(d->nr_objects, BASE_COUNT(expected));
	for (uint32_t i = 0; i < d->nr_objects; i++)
		assert_string_equal(trace_text_of(d, d->objects[i].name), expected[i]);
	trace_reader_close(r);
	remove_files(&f);
}

/* ---- ranks of MPI ---------------------------------------------------------------------------- */

enum { WORLD = 2, HALF = 3, SITE = 0 };

/* Its world and a communicator made of it, each with the address that its launcher's name gives. */
static struct trace_writer *start_rank(
	const struct machine *k, const char *path, uint32_t rank, uint64_t world_address)
{
	struct trace_writer *w = start(k, path, "app", 100 + rank, "unix /x");
	put_text(w, 4, "MPI_COMM_WORLD");
	put_text(w, 5, "communicator 1 of world rank 0");
	const uint64_t address[] = {world_address, trace_communicator_address(world_address, 1, 0)};
	for (uint32_t i = 0; i < 2; i++)
		put(w, (struct trace_record){.kind = TRACE_object,
			       .u.object = {.object = WORLD + i,
				       .type = TRACE_OBJECT_communicator,
				       .address = address[i],
				       .name = 4 + i}});
	for (uint32_t i = 0; i < 2; i++)
		put(w, (struct trace_record){.time_ns = 1000,
			       .stream = 1,
			       .kind = TRACE_mpi_comm,
			       .u.mpi_comm = {
				       .object = WORLD + i, .rank = rank, .size = 2, .world = !i}});
	return w;
}

static void mpi_returns(struct trace_writer *w, const struct machine *k, uint64_t end_ns)
{
	put(w, (struct trace_record){
		       .time_ns = by(k, end_ns), .stream = 1, .kind = TRACE_mpi_return});
}

static void sends(struct trace_writer *w, const struct machine *k, uint64_t begin_ns,
	uint64_t end_ns, int64_t peer, int64_t tag)
{
	put(w, (struct trace_record){.time_ns = by(k, begin_ns),
		       .stream = 1,
		       .kind = TRACE_mpi_send,
		       .u.mpi_send = {.object = HALF,
			       .peer = peer,
			       .tag = tag,
			       .n = 8,
			       .op = TRACE_MPI_Send}});
	mpi_returns(w, k, end_ns);
}

/* From anybody, if `peer` is -1: who it was, the end says. */
static void receives(struct trace_writer *w, const struct machine *k, uint64_t begin_ns,
	uint64_t end_ns, int64_t peer, int64_t from)
{
	put(w, (struct trace_record){.time_ns = by(k, begin_ns),
		       .stream = 1,
		       .kind = TRACE_mpi_receive,
		       .u.mpi_receive = {.object = HALF,
			       .peer = peer,
			       .tag = -1,
			       .n = 8,
			       .op = TRACE_MPI_Recv}});
	put(w, (struct trace_record){.time_ns = by(k, end_ns),
		       .stream = 1,
		       .kind = TRACE_mpi_done,
		       .u.mpi_done = {.peer = from, .tag = 1, .n = 8}});
	mpi_returns(w, k, end_ns);
}

static void meets(struct trace_writer *w, const struct machine *k, uint64_t begin_ns,
	uint64_t end_ns, enum trace_mpi op)
{
	put(w, (struct trace_record){.time_ns = by(k, begin_ns),
		       .stream = 1,
		       .kind = TRACE_mpi_collective,
		       .u.mpi_collective = {.object = WORLD, .op = op, .root = -1}});
	mpi_returns(w, k, end_ns);
}

enum ranks_do { RANKS_send, RANKS_meet, RANKS_scan };

/* Rank 0 is the client's machine. `nr_unseen`: sends of its that were not recorded. */
static void write_ranks(
	struct files *f, enum ranks_do what, uint64_t other_world, uint64_t nr_unseen)
{
	const struct machine *c = &f->client_machine, *s = &f->server_machine;
	struct trace_writer *a = start_rank(c, f->client, 0, 0x1234),
			    *b = start_rank(s, f->server, 1, other_world);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t t = 5000000 + i * ROUND_NS, there = t + DELAY_NS + i % 7 * 1000,
			 answer = there + WORK_NS, back = answer + DELAY_NS;
		if (what != RANKS_send) {
			enum trace_mpi op = what == RANKS_meet ? TRACE_MPI_Barrier : TRACE_MPI_Scan;
			meets(a, c, t, back, op);
			meets(b, s, answer, back + i % 3 * 500, op);
			continue;
		}
		if (i >= nr_unseen)
			sends(a, c, t, t + 3000, 1, (int64_t)(i % 5));
		receives(b, s, t - 1000, there, i % 2 ? -1 : 0, i % 2 ? 0 : -1);
		sends(b, s, answer, answer + 3000, 0, 1);
		receives(a, c, t + 4000, back, 1, -1);
	}
	assert_int_equal(trace_writer_close(a, NULL), BASE_OK);
	assert_int_equal(trace_writer_close(b, NULL), BASE_OK);
}

static uint32_t nr_communicators(const char *path)
{
	struct trace_reader *r;
	uint32_t nr = 0;
	assert_int_equal(trace_reader_open(path, NULL, &r, NULL), BASE_OK);
	const struct trace_defs *d = trace_reader_defs(r);
	for (uint32_t i = 1; i < d->nr_objects; i++)
		nr += d->objects[i].object && d->objects[i].type == TRACE_OBJECT_communicator;
	trace_reader_close(r);
	return nr;
}

static void check_ranks(enum ranks_do what, uint64_t other_world)
{
	struct files f = make_files();
	struct merge_result result;
	struct base_err err = {0};
	write_ranks(&f, what, other_world, 0);
	assert_int_equal(merge_files(&f, &result, &err), BASE_OK);
	const struct merge_input_result *other = &result.input[1];
	assert_int_equal(other->how, MERGE_HOW_pairs);
	assert_int_equal(other->nr_messages, 2 * ROUNDS);
	assert_int_equal(other->nr_bytes + other->nr_packets, 0);
	assert_true(other->error_ns <= WORK_NS + 2 * DELAY_NS + 7000);
	if (what == RANKS_send)
		check_times(&f, other->error_ns);
	assert_int_equal(result.nr_communicators, 2);
	assert_int_equal(nr_communicators(f.out), 2);
	remove_files(&f);
}

static void ranks_of_two_machines(void **state)
{
	(void)state;
	check_ranks(RANKS_send, 0x1234);
	check_ranks(RANKS_meet, 0x1234);
	/* a launcher that names the job otherwise on each machine */
	check_ranks(RANKS_send, 0x9876);
	check_ranks(RANKS_meet, 0x9876);
}

/* A send that was not recorded would make each later one another's: nothing is taken from there. And
 * who leaves MPI_Scan may have waited for nobody. */
static void what_ranks_do_not_tell(void **state)
{
	struct files f = make_files();
	struct merge_result result;
	struct base_err err = {0};
	(void)state;
	write_ranks(&f, RANKS_send, 0x1234, 1);
	assert_int_equal(merge_files(&f, &result, &err), BASE_ERR_CLOCK);
	assert_int_equal(result.nr_ways_unusable, 1);
	write_ranks(&f, RANKS_scan, 0x1234, 0);
	assert_int_equal(merge_files(&f, &result, &err), BASE_ERR_CLOCK);
	remove_files(&f);
}

static void check_memory_failures(struct files f)
{
	struct merge_result result;
	enum base_status status = BASE_ERR_NOMEM;
	uint64_t n = 0;
	while (status == BASE_ERR_NOMEM) {
		struct base_err err = {0};
		assert_true(++n < 2000);
		status = WITHOUT_NTH(n, merge_files(&f, &result, &err));
		if (status == BASE_ERR_NOMEM)
			assert_true(err.nr_causes > 0);
	}
	assert_int_equal(status, BASE_OK);
	assert_true(n > 50);
	remove_files(&f);
}

static void memory_failures(void **state)
{
	struct files connected = make_files(), ranks = make_files();
	(void)state;
	write_both(&connected, true, server_name);
	check_memory_failures(connected);
	write_ranks(&ranks, RANKS_send, 0x9876, 0);
	check_memory_failures(ranks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_machines),
		cmocka_unit_test(one_machine),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(packets_of_two_kernels),
		cmocka_unit_test(three_machines_in_a_row),
		cmocka_unit_test(names_of_one_machine),
		cmocka_unit_test(ranks_of_two_machines),
		cmocka_unit_test(what_ranks_do_not_tell),
		cmocka_unit_test(memory_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
