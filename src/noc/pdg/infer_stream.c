/* SPDX-License-Identifier: Apache-2.0 */
/* infer_stream.c - inference window by window. */
#include "noc/pdg/infer_stream.h"

#include "noc/pdg/pdg_file.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WINDOW_PACKETS = 2000000, CONTEXT_SHARE = 4 };

void noc_stream_options_init(struct noc_stream_options *o)
{
	*o = (struct noc_stream_options){.window_packets = WINDOW_PACKETS,
		.context_packets = WINDOW_PACKETS / CONTEXT_SHARE};
	noc_infer_robust(&o->infer);
}

/* One run's file, read up to where the window wants it. */
struct source {
	struct stream *stream;
	const char *path;
	uint32_t run;
	struct trace_reader *reader;
	struct trace_batch batch;
	size_t at;            /* in batch */
	struct noc_pdg *head; /* of this file: no packets */
	uint64_t nr_packets;
	uint64_t last;                /* packet that was read last: an address is of it */
	struct noc_pdg_packet before; /* it itself: a receiver is of it; no flits: none yet */
	bool wants_address;           /* the next record is that */
	bool *present;                /* by packet of the buffer */
	uint64_t complete;            /* all numbers below have come */
	enum base_status status;
	struct base_err err;
	pthread_t thread;
	bool started;
};

struct stream {
	const struct noc_stream_options *options;
	struct source *source;
	uint32_t nr_runs;
	uint32_t room;           /* of the buffer: context, window, and one window ahead */
	uint64_t first;          /* number of the buffer's first packet */
	uint64_t wanted;         /* read until all below have come */
	struct noc_pdg *packets; /* the buffer; nr_packets: those of the window at hand */
	struct noc_runs runs;
	const char *output; /* NULL: none */
	struct trace_writer *writer;
	struct noc_infer_result counts;
};

/* ---- reading --------------------------------------------------------------------------------- */

/* *ret_full: it is too far ahead to be kept now. */
static enum base_status take_packet(struct source *s, const struct trace_record *r, bool *ret_full)
{
	struct stream *t = s->stream;
	struct noc_pdg_packet p;
	bool is_copy = r->kind == TRACE_noc_receiver;
	uint64_t number = is_copy ? r->u.noc_receiver.packet : r->u.noc_packet.packet;
	enum base_status st =
		is_copy ? noc_pdg_read_receiver(r, s->head->nr_nodes, s->nr_packets,
				  s->before.size_flits ? &s->before : NULL, &p, &s->err)
			: noc_pdg_read_packet(r, s->head->nr_nodes, s->nr_packets, &p, &s->err);
	if (st != BASE_OK)
		return st;
	*ret_full = number >= t->first + t->room;
	if (*ret_full)
		return BASE_OK;
	if (number < s->complete || s->present[number - t->first])
		return base_fail(&s->err, BASE_ERR_CORRUPT, "packet %llu is there twice",
			(unsigned long long)number);
	uint32_t i = (uint32_t)(number - t->first);
	s->present[i] = true;
	s->last = number;
	s->before = p;
	s->wants_address = s->head->has_addresses && !is_copy;
	t->runs.transmit_cycle[(size_t)i * t->runs.stride + s->run] = p.transmit_cycle;
	t->runs.receive_cycle[(size_t)i * t->runs.stride + s->run] = p.receive_cycle;
	if (!s->run)
		noc_pdg_set(t->packets, i, &p);
	return BASE_OK;
}

static enum base_status take_record(struct source *s, const struct trace_record *r, bool *ret_full)
{
	struct stream *t = s->stream;
	*ret_full = false;
	if (r->kind == TRACE_noc_packet || r->kind == TRACE_noc_receiver)
		return take_packet(s, r, ret_full);
	if (r->kind == TRACE_noc_node) {
		if (!r->stream || r->stream > s->head->nr_nodes)
			return base_fail(&s->err, BASE_ERR_CORRUPT, "a node beyond the last");
		s->head->ordered[r->stream - 1] = r->u.noc_node.ordered != 0;
	} else if (r->kind == TRACE_noc_address && s->wants_address) {
		s->wants_address = false;
		s->before.address = r->u.noc_address.address;
		s->before.units = (uint8_t)r->u.noc_address.units;
		if (!s->run && s->last >= t->first) {
			t->packets->address[s->last - t->first] = r->u.noc_address.address;
			t->packets->units[s->last - t->first] = (uint8_t)r->u.noc_address.units;
		}
	}
	return BASE_OK;
}

static bool infer_stream_is_complete(struct source *s)
{
	const struct stream *t = s->stream;
	while (s->complete < t->first + t->room && s->present[s->complete - t->first])
		s->complete++;
	return s->complete >= t->wanted;
}

static enum base_status next_batch(struct source *s)
{
	enum base_status st = trace_reader_next(s->reader, &s->batch, &s->err);
	s->at = 0;
	if (st == BASE_OK)
		return BASE_OK;
	s->batch.nr = 0;
	if (st != BASE_END)
		return st;
	return base_fail(&s->err, BASE_ERR_TRUNCATED, "packet %llu of %llu is not there",
		(unsigned long long)s->complete, (unsigned long long)s->nr_packets);
}

/* Until all that is wanted has come. */
static enum base_status infer_stream_fill(struct source *s)
{
	while (!infer_stream_is_complete(s) || s->wants_address) {
		enum base_status st = s->at == s->batch.nr ? next_batch(s) : BASE_OK;
		bool full = false;
		while (st == BASE_OK && s->at < s->batch.nr && !full) {
			st = take_record(s, &s->batch.record[s->at], &full);
			s->at += !full;
		}
		if (st != BASE_OK)
			return st;
		if (full && !infer_stream_is_complete(s))
			return base_fail(&s->err, BASE_ERR_LIMIT,
				"packet %llu comes more than a window late: give a larger one",
				(unsigned long long)s->complete);
		if (full)
			return BASE_OK;
	}
	return BASE_OK;
}

static void *fill_thread(void *arg)
{
	struct source *s = arg;
	s->status = infer_stream_fill(s);
	return NULL;
}

/* All runs, side by side. */
static enum base_status infer_stream_fill_all(struct stream *t, struct base_err *err)
{
	bool threads = t->options->infer.nr_threads != 1;
	for (uint32_t r = 1; r < t->nr_runs; r++) {
		struct source *s = &t->source[r];
		s->started = threads && !pthread_create(&s->thread, NULL, fill_thread, s);
	}
	for (uint32_t r = 0; r < t->nr_runs; r++)
		if (!t->source[r].started)
			fill_thread(&t->source[r]);
	for (uint32_t r = 0; r < t->nr_runs; r++) {
		if (t->source[r].started)
			pthread_join(t->source[r].thread, NULL);
		t->source[r].started = false;
	}
	for (uint32_t r = 0; r < t->nr_runs; r++)
		if (t->source[r].status != BASE_OK) {
			if (err)
				*err = t->source[r].err;
			return base_cause(
				err, t->source[r].status, "while reading %s", t->source[r].path);
		}
	return BASE_OK;
}

/* ---- windows --------------------------------------------------------------------------------- */

static void infer_stream_move(void *array, size_t size, uint32_t by, uint32_t nr)
{
	memmove(array, (char *)array + by * size, (nr - by) * size);
}

/* Forgets the first packets of the buffer. */
static void slide(struct stream *t, uint32_t by)
{
	struct noc_pdg *g = t->packets;
	uint32_t nr = t->room;
	if (!by)
		return;
	infer_stream_move(g->source, sizeof *g->source, by, nr);
	infer_stream_move(g->destination, sizeof *g->destination, by, nr);
	infer_stream_move(g->size_flits, sizeof *g->size_flits, by, nr);
	infer_stream_move(g->type, sizeof *g->type, by, nr);
	infer_stream_move(g->inputs, sizeof *g->inputs, by, nr);
	infer_stream_move(g->address, sizeof *g->address, by, nr);
	infer_stream_move(g->units, sizeof *g->units, by, nr);
	infer_stream_move(g->transmit_cycle, sizeof *g->transmit_cycle, by, nr);
	infer_stream_move(g->receive_cycle, sizeof *g->receive_cycle, by, nr);
	infer_stream_move(
		t->runs.transmit_cycle, t->runs.stride * sizeof *t->runs.transmit_cycle, by, nr);
	infer_stream_move(
		t->runs.receive_cycle, t->runs.stride * sizeof *t->runs.receive_cycle, by, nr);
	for (uint32_t r = 0; r < t->nr_runs; r++) {
		infer_stream_move(t->source[r].present, sizeof *t->source[r].present, by, nr);
		memset(t->source[r].present + (nr - by), 0, by * sizeof *t->source[r].present);
	}
	t->first += by;
}

/* The counts of the packets from `from` on only: what comes before was counted already. */
static void infer_stream_add_counts(struct stream *t, const struct noc_pdg *g, uint32_t from,
	const struct noc_infer_result *window)
{
	struct noc_infer_result *to = &t->counts;
	for (uint32_t i = from; i < g->nr_packets; i++) {
		uint64_t nr = g->first[i + 1] - g->first[i];
		if (noc_pdg_is_copy(g, i))
			continue;
		to->transmits++;
		to->dependencies += nr;
		to->previous_only += !nr;
		to->unexplained += (g->inputs[i] & NOC_PDG_UNEXPLAINED) != 0;
		for (uint64_t d = g->first[i]; d < g->first[i + 1]; d++)
			to->certainty[g->certainty[d]]++;
	}
	to->candidates += window->candidates;
	if (window->tolerance_cycles > to->tolerance_cycles)
		to->tolerance_cycles = window->tolerance_cycles;
}

static enum base_status begin_output(
	struct stream *t, struct noc_pdg *inferred, struct base_err *err)
{
	const struct noc_infer_options *o = &t->options->infer;
	snprintf(inferred->origin, sizeof inferred->origin,
		"infer method=%s runs=%u k=%u window_packets=%u; base: %.400s",
		o->adaptive ? "robust" : "literal", t->nr_runs, o->window_previous,
		t->options->window_packets, t->source[0].head->origin);
	return noc_pdg_write_begin(inferred, t->source[0].nr_packets, t->output, &t->writer, err);
}

/* Infers packets [from, to) of the trace, which are in the buffer with their context. */
static enum base_status infer_window(
	struct stream *t, uint64_t from, uint64_t to, struct base_err *err)
{
	struct noc_infer_result window;
	struct noc_pdg *inferred;
	memcpy(t->packets->ordered, t->source[0].head->ordered, t->packets->nr_nodes);
	t->packets->nr_packets = t->runs.nr_packets = (uint32_t)(to - t->first);
	enum base_status s = noc_pdg_check(t->packets, err);
	if (s == BASE_OK)
		s = noc_infer(t->packets, &t->runs, &t->options->infer, &inferred, &window, err);
	if (s != BASE_OK)
		return s;
	uint32_t begin = (uint32_t)(from - t->first);
	if (t->output && !t->writer)
		s = begin_output(t, inferred, err);
	infer_stream_add_counts(t, inferred, begin, &window);
	if (t->writer && s == BASE_OK)
		s = noc_pdg_write_packets(
			inferred, begin, inferred->nr_packets, t->first, t->writer, err);
	noc_pdg_free(inferred);
	return s;
}

/* Not within a multicast: all of its receivers are written after its transmit. */
static enum base_status end_of_window(
	const struct stream *t, uint64_t from, uint64_t *to, struct base_err *err)
{
	uint64_t end = *to;
	while (end > from && end < t->source[0].nr_packets &&
		noc_pdg_is_copy(t->packets, (uint32_t)(end - t->first)))
		end--;
	if (end == from)
		return base_fail(err, BASE_ERR_LIMIT,
			"packet %llu has more receivers than a window has packets: give a larger "
			"one",
			(unsigned long long)from);
	*to = end;
	return BASE_OK;
}

static enum base_status all_windows(struct stream *t, struct base_err *err)
{
	const struct noc_stream_options *o = t->options;
	uint64_t all = t->source[0].nr_packets, from = 0;
	enum base_status s = BASE_OK;
	while (from < all && s == BASE_OK) {
		uint64_t to = all - from > o->window_packets ? from + o->window_packets : all;
		t->wanted = to < all ? to + 1 : all;
		s = infer_stream_fill_all(t, err);
		if (s == BASE_OK)
			s = end_of_window(t, from, &to, err);
		if (s == BASE_OK)
			s = infer_window(t, from, to, err);
		uint64_t keep_from = to > o->context_packets ? to - o->context_packets : 0;
		/* no multicast without its transmit */
		while (keep_from > t->first && s == BASE_OK &&
			noc_pdg_is_copy(t->packets, (uint32_t)(keep_from - t->first)))
			keep_from--;
		if (s == BASE_OK)
			slide(t, (uint32_t)(keep_from - t->first));
		from = to;
		if (o->progress)
			o->progress(o->progress_ctx, from, all);
	}
	return s;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum base_status make_buffer(struct stream *t, struct base_err *err)
{
	const struct noc_pdg *head = t->source[0].head;
	t->packets = noc_pdg_new(head->nr_nodes);
	if (!t->packets)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the nodes");
	t->packets->has_addresses = head->has_addresses;
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < t->room && s == BASE_OK; i++)
		s = noc_pdg_add(t->packets,
			&(struct noc_pdg_packet){
				.destination = head->nr_nodes > 1, .size_flits = 1},
			err);
	return s;
}

static enum base_status infer_stream_open_source(
	struct stream *t, uint32_t r, const char *path, struct base_err *err)
{
	struct source *s = &t->source[r];
	*s = (struct source){.stream = t, .run = r, .path = path};
	s->present = base_alloc(t->room * sizeof *s->present);
	if (!s->present)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for a window");
	return trace_reader_open(path, NULL, &s->reader, err);
}

/* Before any packet is taken: all files say the same. */
static enum base_status read_heads(struct stream *t, struct base_err *err)
{
	for (uint32_t r = 0; r < t->nr_runs; r++) {
		struct source *s = &t->source[r];
		while (!s->head) {
			struct trace_batch b;
			enum base_status st = trace_reader_next(s->reader, &b, err);
			if (st == BASE_END)
				return base_fail(err, BASE_ERR_NOTFOUND,
					"no packets of a network in %s", s->path);
			if (st != BASE_OK)
				return st;
			for (size_t i = 0; i < b.nr && !s->head && st == BASE_OK; i++)
				if (b.record[i].kind == TRACE_noc_graph)
					st = noc_pdg_read_header(&b.record[i],
						trace_reader_defs(s->reader), &s->head,
						&s->nr_packets, err);
			if (st != BASE_OK)
				return st;
		}
		if (s->nr_packets != t->source[0].nr_packets ||
			s->head->nr_nodes != t->source[0].head->nr_nodes)
			return base_fail(err, BASE_ERR_USAGE,
				"%s is not of the same packets as %s: window by window nothing is "
				"matched",
				s->path, t->source[0].path);
		enum base_status st = trace_reader_rewind(s->reader, err);
		if (st != BASE_OK)
			return st;
	}
	return BASE_OK;
}

static void infer_stream_close_all(struct stream *t)
{
	for (uint32_t r = 0; r < t->nr_runs; r++) {
		trace_reader_close(t->source[r].reader);
		noc_pdg_free(t->source[r].head);
		base_free(t->source[r].present);
	}
	base_free(t->source);
	noc_pdg_free(t->packets);
	noc_runs_fini(&t->runs);
}

static enum base_status infer_stream_run(
	struct stream *t, const char *const *path, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (uint32_t r = 0; r < t->nr_runs && s == BASE_OK; r++)
		s = infer_stream_open_source(t, r, path[r], err);
	if (s == BASE_OK)
		s = read_heads(t, err);
	if (s == BASE_OK)
		s = make_buffer(t, err);
	if (s == BASE_OK)
		s = noc_runs_init(&t->runs, t->nr_runs, t->room, err);
	return s == BASE_OK ? all_windows(t, err) : s;
}

enum base_status noc_infer_files(const char *const *path, uint32_t nr_runs,
	const struct noc_stream_options *o, const char *output, struct noc_infer_result *ret,
	struct base_err *err)
{
	struct stream t = {.options = o, .nr_runs = nr_runs, .output = output};
	if (nr_runs < 2 || nr_runs > NOC_RUNS_MAX)
		return base_fail(err, BASE_ERR_USAGE, "the base run and 1 to %d skewed runs",
			NOC_RUNS_MAX - 1);
	if (o->window_packets < NOC_STREAM_WINDOW_MIN ||
		o->window_packets > NOC_STREAM_WINDOW_MAX || o->context_packets > o->window_packets)
		return base_fail(err, BASE_ERR_USAGE, "a window is %d to %d packets",
			NOC_STREAM_WINDOW_MIN, NOC_STREAM_WINDOW_MAX);
	t.room = o->context_packets + 2 * o->window_packets;
	t.source = base_alloc(nr_runs * sizeof *t.source);
	if (!t.source)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %u {run|runs}", nr_runs);
	enum base_status s = infer_stream_run(&t, path, err);
	if (t.writer) {
		enum base_status closed = trace_writer_close(t.writer, s == BASE_OK ? err : NULL);
		s = s == BASE_OK ? closed : s;
	}
	infer_stream_close_all(&t);
	*ret = t.counts;
	return s;
}
