/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hide_process - a trace without what one program did: lpt-hide NAME FROM.lpt TO.lpt
 *
 * A relay stands for a wire, and nobody records a wire: what comes out of it must be explained by
 * what went in, not by the program in between. What the kernel did with a packet in the program's
 * own call becomes the doing of a softirq, as it is with a network card.
 */
#include "trace/enums.h"
#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(enum base_status status, const struct base_err *err)
{
	if (status == BASE_OK || status == BASE_END)
		return;
	fprintf(stderr, "lpt-hide: %s: %s\n", base_status_line(status),
		err->nr_causes ? err->cause[0] : "");
	exit(1);
}

static bool is_hidden(const struct trace_defs *d, const struct trace_record *r, const char *name)
{
	uint32_t process = trace_def_stream(d, r->stream)->process;
	return r->stream && process &&
	       !strcmp(trace_text_of(d, trace_def_process(d, process)->name), name);
}

static bool is_the_kernels(unsigned kind)
{
	return kind == TRACE_wake || kind == TRACE_socket_ready || kind == TRACE_tcp_window ||
	       kind == TRACE_socket_buffer || kind == TRACE_packet_receive ||
	       kind == TRACE_packet_queue || kind == TRACE_packet_transmit ||
	       kind == TRACE_qdisc_enqueue || kind == TRACE_qdisc_dequeue;
}

/* Between two calls of the program; whatever else it is seen to do is a part of one. */
static bool is_between(unsigned kind)
{
	return kind == TRACE_call_begin || kind == TRACE_call_end || kind == TRACE_cpu_out;
}

static void put(struct trace_writer *w, struct trace_record r)
{
	struct base_err err = {0};
	must(trace_writer_put(w, &r, &err), &err);
}

/* One softirq for all that the kernel did in one call. */
struct softirq {
	uint32_t stream;
	uint64_t last_ns;
	bool is_open;
};

static void bracket(struct trace_writer *w, struct softirq *s, uint64_t time_ns, bool opens)
{
	if (s->is_open == opens)
		return;
	s->is_open = opens;
	put(w, (struct trace_record){.time_ns = time_ns,
		       .stream = s->stream,
		       .kind = opens ? TRACE_context_begin : TRACE_context_end});
}

static void put_hidden(struct trace_writer *w, struct softirq *s, struct trace_record r)
{
	if (is_between(r.kind))
		bracket(w, s, s->last_ns, false);
	if (!is_the_kernels(r.kind))
		return;
	bracket(w, s, r.time_ns, true);
	s->last_ns = r.time_ns;
	r.stream = s->stream;
	put(w, r);
}

int main(int argc, char **argv)
{
	struct trace_reader_options options = {.size = sizeof options, .with_definitions = true};
	struct trace_reader *from;
	struct trace_writer *to;
	struct trace_batch batch;
	struct base_err err = {0};
	if (argc != 4) {
		fprintf(stderr, "usage: lpt-hide NAME FROM.lpt TO.lpt\n");
		return 2;
	}
	must(trace_reader_open(argv[2], &options, &from, &err), &err);
	must(trace_writer_open(argv[3], trace_reader_info(from), &to, &err), &err);
	const struct trace_defs *d = trace_reader_defs(from);
	struct softirq softirq = {.stream = d->nr_streams};
	uint32_t name = d->nr_texts;
	static const char text[] = "NET_RX";
	put(to, (struct trace_record){.kind = TRACE_string,
			.u.string = {.string = name,
				.text = {.bytes = text, .length = sizeof text - 1}}});
	put(to, (struct trace_record){.kind = TRACE_stream,
			.u.stream = {.stream = softirq.stream, .name = name}});
	put(to, (struct trace_record){.kind = TRACE_context,
			.u.context = {.stream = softirq.stream,
				.type = TRACE_CONTEXT_softirq,
				.number = 3,
				.name = name}});
	enum base_status status;
	while ((status = trace_reader_next(from, &batch, &err)) == BASE_OK)
		for (size_t i = 0; i < batch.nr; i++) {
			const struct trace_record *r = &batch.record[i];
			if (!is_hidden(d, r, argv[1]))
				put(to, *r);
			else
				put_hidden(to, &softirq, *r);
		}
	must(status, &err);
	const struct trace_health *h = trace_reader_health(from);
	for (unsigned i = 0; i < TRACE_DIAG_NR; i++)
		trace_writer_count(to, (enum trace_diag)i, h->count[i]);
	must(trace_writer_close(to, &err), &err);
	trace_reader_close(from);
	return 0;
}
