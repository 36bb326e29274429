/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_trace_merge.c - any bytes as the records of two or three traces, which are then merged.
 * Whatever they say: no crash, and what is merged can be read, is in order, and has every record.
 * (Any bytes as a file are fuzz_trace_reader's.)
 */
#include "merge/merge.h"
#include "trace/enums.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

enum { INPUTS = 3, OBJECTS = 6, STREAMS = 3, FILES = INPUTS + 1 };

struct bytes {
	const uint8_t *at, *end;
};

static uint64_t take(struct bytes *b, unsigned nr)
{
	uint64_t v = 0;
	for (; nr; nr--)
		v = v << 8 | (b->at < b->end ? *b->at++ : 0);
	return v;
}

/* Small, and now and then anything. */
static uint64_t take_number(struct bytes *b)
{
	uint64_t size = take(b, 1);
	return size < 200 ? size * 100 : take(b, size % 8 + 1);
}

static void put(struct trace_writer *w, struct trace_record r)
{
	enum base_status status = trace_writer_put(w, &r, NULL);
	BASE_ASSERT(status == BASE_OK || status == BASE_ERR_USAGE || status == BASE_ERR_LIMIT);
}

static void put_text(struct trace_writer *w, uint32_t id, const char *text)
{
	put(w, (struct trace_record){.kind = TRACE_string,
		       .u.string = {.string = id,
			       .text = {.bytes = text, .length = (uint32_t)strlen(text)}}});
}

static void put_definitions(struct trace_writer *w, struct bytes *b, unsigned which)
{
	static const char *const name[] = {"tcp 10.0.0.1:1 10.0.0.2:2", "tcp 10.0.0.2:2 10.0.0.1:1",
		"tcp [0:0:0:0:0:ffff:a00:1]:1 [0:0:0:0:0:ffff:a00:2]:2", "tcp - -",
		"tcp 127.0.0.1:1 127.0.0.1:2", "tcp 10.0.0.1:1>10.0.0.2:2",
		"tcp 10.0.0.2:2>10.0.0.1:1", "boot", ""};
	for (uint32_t i = 0; i < BASE_COUNT(name); i++)
		put_text(w, i + 1, name[i]);
	put(w, (struct trace_record){.kind = TRACE_host,
		       .u.host = {.host = 1, .boot = (uint32_t)take(b, 1) % 2 ? 8 : 9 + which}});
	put(w, (struct trace_record){
		       .kind = TRACE_process, .u.process = {.process = 1, .pid = which + 1}});
	for (uint32_t i = 1; i <= STREAMS; i++)
		put(w, (struct trace_record){
			       .kind = TRACE_stream, .u.stream = {.stream = i, .process = 1}});
	for (uint32_t i = 1; i <= OBJECTS; i++)
		put(w, (struct trace_record){.kind = TRACE_object,
			       .u.object = {.object = i,
				       .type = i <= 3   ? TRACE_OBJECT_socket
					       : i == 4 ? TRACE_OBJECT_pipe
							: TRACE_OBJECT_flow,
				       .address = 5,
				       .name = i <= 3 ? (uint32_t)take(b, 1) % 10 : i + 1,
				       .pair = (uint32_t)take(b, 1) % 16 / 15 * 9}});
}

static void put_record(struct trace_writer *w, struct bytes *b, uint64_t *time_ns)
{
	uint64_t op = take(b, 1);
	uint32_t object = (uint32_t)op >> 5;
	struct trace_record r = {.stream = 1 + (uint32_t)(op >> 3) % (STREAMS + 1)};
	*time_ns += take_number(b);
	r.time_ns = *time_ns;
	switch (op & 7) {
	case 0:
	case 1:
		r.kind = TRACE_io_begin;
		r.u.io_begin = (struct trace_io_begin){.object = object, .op = op & 1, .n = 10};
		break;
	case 2:
	case 3:
		r.kind = TRACE_io_end;
		r.u.io_end = (struct trace_io_end){
			.object = object, .op = op & 1, .result = (int64_t)take_number(b)};
		break;
	case 4:
		r.kind = TRACE_packet_transmit;
		r.u.packet_transmit = (struct trace_packet_transmit){
			.flow = object, .seq = take(b, 1), .payload = take(b, 1) % 3};
		break;
	case 5:
		r.kind = TRACE_packet_receive;
		r.u.packet_receive = (struct trace_packet_receive){
			.flow = object, .seq = take(b, 1), .payload = take(b, 1) % 3};
		break;
	case 6:
		r.kind = TRACE_process_fork;
		r.u.process_fork = (struct trace_process_fork){
			.token = take(b, 1), .site = (uint32_t)take(b, 2)};
		break;
	default:
		r.kind = TRACE_cpu_in;
		r.u.cpu_in = (struct trace_cpu_in){.processor = take_number(b)};
	}
	put(w, r);
}

static void path_of(int fd, char path[64])
{
	snprintf(path, 64, "/proc/self/fd/%d", fd);
}

static void write_input(const char *path, struct bytes *b, unsigned which)
{
	struct trace_writer *w;
	struct trace_info info = {.size = sizeof info,
		.host = "host",
		.command = "command",
		.tool = "fuzz",
		.origin_mono_ns = take_number(b),
		.origin_unix_ns = take_number(b),
		.tick_hz = take_number(b),
		.nr_processors = (uint32_t)take(b, 1)};
	uint64_t time_ns = 0;
	BASE_ASSERT(trace_writer_open(path, &info, &w, NULL) == BASE_OK);
	put_definitions(w, b, which);
	for (uint64_t nr = take(b, 1); nr && b->at < b->end; nr--)
		put_record(w, b, &time_ns);
	BASE_ASSERT(trace_writer_close(w, NULL) == BASE_OK);
}

static void check_output(const char *path, const struct merge_result *result)
{
	struct trace_reader *r;
	struct trace_batch batch;
	uint64_t nr = 0, last_ns = 0;
	BASE_ASSERT(trace_reader_open(path, NULL, &r, NULL) == BASE_OK);
	while (trace_reader_next(r, &batch, NULL) == BASE_OK)
		for (size_t i = 0; i < batch.nr; i++, nr++) {
			BASE_ASSERT(batch.record[i].time_ns >= last_ns);
			last_ns = batch.record[i].time_ns;
		}
	BASE_ASSERT(nr == result->nr_records);
	BASE_ASSERT(!trace_reader_health(r)->count[TRACE_DIAG_chunks_damaged]);
	BASE_ASSERT(
		result->nr_matched <= result->nr_sent && result->nr_matched <= result->nr_received);
	trace_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	struct bytes b = {data, data + size_bytes};
	size_t nr_inputs = 2 + take(&b, 1) % 2;
	char path[FILES][64];
	int fd[FILES];
	const char *input[INPUTS];
	struct merge_result result;
	struct base_arena *names;
	for (unsigned i = 0; i < FILES; i++) {
		fd[i] = memfd_create("fuzz", MFD_CLOEXEC);
		BASE_ASSERT(fd[i] >= 0);
		path_of(fd[i], path[i]);
	}
	for (unsigned i = 0; i < nr_inputs; i++) {
		write_input(path[i], &b, i);
		input[i] = path[i];
	}
	enum base_status status =
		merge_run(input, nr_inputs, path[INPUTS], NULL, &result, &names, NULL);
	BASE_ASSERT(status == BASE_OK || status == BASE_ERR_CLOCK);
	if (status == BASE_OK)
		check_output(path[INPUTS], &result);
	base_arena_free(names);
	for (unsigned i = 0; i < FILES; i++)
		close(fd[i]);
	return 0;
}
