/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lpt_to_ctf.c - the data records of a .lpt trace as a CTF 1.8 trace: the same events with the same
 * fields, so that a CTF reader can be timed on them. One stream file a thread, packets of 256 KiB,
 * as LTTng writes one a processor.
 *
 * Layout: packet header {magic, stream_id}, packet context {timestamp_begin, timestamp_end,
 * content_size, packet_size}, event header {u8 id, u64 timestamp}, fields packed: u32 for ids, 64
 * bits for numbers. Usage: lpt_to_ctf TRACE.lpt DIRECTORY (which exists)
 */
#include "trace/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PACKET_BYTES = 256 * 1024, HEADER_BYTES = 4 + 4 + 4 * 8, EVENT_BYTES_MAX = 256 };

struct ctf_stream {
	FILE *file;
	uint64_t begin_ns, end_ns;
	size_t used;
	unsigned char packet[PACKET_BYTES];
};

static void die(const struct base_err *err, const char *what)
{
	for (unsigned i = 0; err && i < err->nr_causes; i++)
		fprintf(stderr, "lpt_to_ctf: %s\n", err->cause[i]);
	if (what)
		perror(what);
	exit(4);
}

static void write_metadata(const char *directory)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/metadata", directory);
	FILE *f = fopen(path, "w");
	if (!f)
		die(NULL, path);
	fputs("/* CTF 1.8 */\n"
	      "typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
	      "typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
	      "typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
	      "typealias integer { size = 64; align = 8; signed = true; } := int64_t;\n"
	      "trace { major = 1; minor = 8; byte_order = le;\n"
	      "	packet.header := struct { uint32_t magic; uint32_t stream_id; }; };\n"
	      "clock { name = monotonic; freq = 1000000000; };\n"
	      "typealias integer { size = 64; align = 8; signed = false; map = "
	      "clock.monotonic.value; } := stamp_t;\n"
	      "stream { id = 0;\n"
	      "	packet.context := struct { stamp_t timestamp_begin; stamp_t timestamp_end; "
	      "uint64_t content_size; "
	      "uint64_t packet_size; };\n"
	      "	event.header := struct { uint8_t id; stamp_t timestamp; }; };\n",
		f);
	unsigned nr = 0;
	const struct trace_kind_desc *kind = trace_kind_table(&nr);
	for (unsigned i = 0; i < nr; i++) {
		if (kind[i].kind < TRACE_process_begin)
			continue;
		fprintf(f, "event { name = \"%s\"; id = %u; stream_id = 0; fields := struct {",
			kind[i].name, kind[i].kind);
		for (unsigned j = 0; j < kind[i].nr_fields; j++) {
			const struct trace_field_desc *d = &kind[i].field[j];
			const char *type = d->type == TRACE_FIELD_ID    ? "uint32_t"
					   : d->type == TRACE_FIELD_S64 ? "int64_t"
									: "uint64_t";
			fprintf(f, " %s _%s;", type, d->name);
		}
		fputs(" }; };\n", f);
	}
	if (fclose(f))
		die(NULL, path);
}

static void put(unsigned char *at, const void *value, size_t bytes)
{
	memcpy(at, value, bytes);
}

static void flush_packet(struct ctf_stream *s)
{
	uint32_t magic = 0xc1fc1fc1u, stream_id = 0;
	uint64_t content_bits = (uint64_t)s->used * 8, packet_bits = (uint64_t)PACKET_BYTES * 8;
	put(s->packet, &magic, 4);
	put(s->packet + 4, &stream_id, 4);
	put(s->packet + 8, &s->begin_ns, 8);
	put(s->packet + 16, &s->end_ns, 8);
	put(s->packet + 24, &content_bits, 8);
	put(s->packet + 32, &packet_bits, 8);
	memset(s->packet + s->used, 0, sizeof(s->packet) - s->used);
	if (fwrite(s->packet, sizeof(s->packet), 1, s->file) != 1)
		die(NULL, "write");
	s->used = HEADER_BYTES;
}

static void add_event(struct ctf_stream *s, const struct trace_record *r)
{
	const struct trace_kind_desc *kind = trace_kind_find(r->kind);
	if (s->used + EVENT_BYTES_MAX > sizeof(s->packet))
		flush_packet(s);
	if (s->used == HEADER_BYTES)
		s->begin_ns = r->time_ns;
	s->end_ns = r->time_ns;
	s->packet[s->used++] = (unsigned char)r->kind;
	put(s->packet + s->used, &r->time_ns, 8);
	s->used += 8;
	for (unsigned i = 0; kind && i < kind->nr_fields; i++) {
		size_t bytes = kind->field[i].type == TRACE_FIELD_ID ? 4 : 8;
		put(s->packet + s->used, (const unsigned char *)r + kind->field[i].offset, bytes);
		s->used += bytes;
	}
}

int main(int argc, char **argv)
{
	struct base_err err = {0};
	struct trace_reader *reader = NULL;
	if (argc != 3) {
		fputs("usage: lpt_to_ctf TRACE.lpt DIRECTORY\n", stderr);
		return 2;
	}
	if (trace_reader_open(argv[1], NULL, &reader, &err) != BASE_OK)
		die(&err, NULL);
	write_metadata(argv[2]);
	uint32_t nr_streams = trace_reader_defs(reader)->nr_streams;
	struct ctf_stream **stream = calloc(nr_streams, sizeof(struct ctf_stream *));
	if (!stream)
		die(NULL, "calloc");
	struct trace_batch batch;
	enum base_status status;
	uint64_t nr = 0;
	while ((status = trace_reader_next(reader, &batch, &err)) == BASE_OK) {
		for (size_t i = 0; i < batch.nr; i++) {
			const struct trace_record *r = &batch.record[i];
			if (r->stream >= nr_streams)
				die(NULL, NULL);
			if (!stream[r->stream]) {
				char path[4096];
				snprintf(path, sizeof path, "%s/thread_%" PRIu32, argv[2],
					r->stream);
				struct ctf_stream *s = stream[r->stream] =
					calloc(1, sizeof(struct ctf_stream));
				if (!s || !(s->file = fopen(path, "wb")))
					die(NULL, path);
				s->used = HEADER_BYTES;
			}
			add_event(stream[r->stream], r);
			nr++;
		}
	}
	if (status != BASE_END)
		die(&err, NULL);
	for (uint32_t i = 0; i < nr_streams; i++) {
		if (!stream[i])
			continue;
		if (stream[i]->used > HEADER_BYTES)
			flush_packet(stream[i]);
		if (fclose(stream[i]->file))
			die(NULL, "close");
		free(stream[i]);
	}
	free(stream);
	trace_reader_close(reader);
	printf("%" PRIu64 "\n", nr);
	return 0;
}
