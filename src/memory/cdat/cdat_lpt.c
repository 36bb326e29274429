/* SPDX-License-Identifier: Apache-2.0 */
/* cdat_lpt.c - transactions into a trace. */
#include "memory/cdat/cdat_lpt.h"

#include "trace/trace.h"

#include <string.h>

struct memory_cdat_lpt {
	struct trace_writer *writer;
	uint32_t nr_processors;
	uint32_t next_string;
	enum base_status status;
	struct base_err err;
};

static void cdat_lpt_put(struct memory_cdat_lpt *l, const struct trace_record *r)
{
	if (l->status == BASE_OK)
		l->status = trace_writer_put(l->writer, r, &l->err);
}

static uint32_t cdat_lpt_put_string(struct memory_cdat_lpt *l, const char *text)
{
	uint32_t id = l->next_string++;
	cdat_lpt_put(
		l, &(struct trace_record){.kind = TRACE_string,
			   .u.string = {.string = id,
				   .text = {.bytes = text, .length = (uint32_t)strlen(text)}}});
	return id;
}

static void put_streams(struct memory_cdat_lpt *l, const char *command, uint32_t nr_nodes)
{
	cdat_lpt_put(l, &(struct trace_record){.kind = TRACE_process,
				.u.process = {.process = 1,
					.pid = 1,
					.name = cdat_lpt_put_string(l, "cdat"),
					.command = cdat_lpt_put_string(l, command)}});
	for (uint32_t i = 0; i < l->nr_processors + nr_nodes; i++) {
		struct base_str name = {0};
		if (i < l->nr_processors)
			base_str_addf(&name, "processor %u", i);
		else
			base_str_addf(&name, "I/O processor %u", i - l->nr_processors);
		uint32_t id = cdat_lpt_put_string(l, base_str_text(&name));
		cdat_lpt_put(l,
			&(struct trace_record){.kind = TRACE_stream,
				.u.stream = {
					.stream = i + 1, .process = 1, .tid = i + 1, .name = id}});
		base_str_fini(&name);
	}
}

enum base_status memory_cdat_lpt_open(const char *path, const char *command, uint32_t nr_processors,
	uint32_t nr_nodes, struct memory_cdat_lpt **ret, struct base_err *err)
{
	struct trace_info info = {.size = sizeof info,
		.host = "simulated",
		.command = command,
		.tool = "longpole cdat",
		.nr_processors = nr_processors,
		.flags = TRACE_INFO_SYNTHETIC};
	*ret = NULL;
	struct memory_cdat_lpt *l = base_alloc(sizeof *l);
	if (!l)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to write %s", path);
	l->nr_processors = nr_processors;
	l->next_string = 1;
	enum base_status s = trace_writer_open(path, &info, &l->writer, err);
	if (s != BASE_OK) {
		base_free(l);
		return s;
	}
	put_streams(l, command, nr_nodes);
	*ret = l;
	return BASE_OK;
}

static uint32_t cdat_lpt_stream_of(const struct memory_cdat_lpt *l, int32_t processor)
{
	return processor >= 0 ? (uint32_t)processor + 1 : l->nr_processors + (uint32_t)-processor;
}

void memory_cdat_lpt_general(struct memory_cdat_lpt *l, const struct memory_cdat_transaction *t)
{
	uint64_t nr = 0;
	for (uint32_t i = 0; i < (l->nr_processors + 63) / 64; i++)
		nr += (uint64_t)__builtin_popcountll(t->sharers[i]);
	cdat_lpt_put(l, &(struct trace_record){.time_ns = t->clock,
				.stream = cdat_lpt_stream_of(l, t->from),
				.kind = TRACE_memory_request,
				.u.memory_request = {.line = t->line,
					.code = t->code,
					.bank = t->bank,
					.home = t->home,
					.status = t->status,
					.sharers = nr}});
	for (uint32_t i = 0; i < (l->nr_processors + 63) / 64; i++)
		if (t->sharers[i])
			cdat_lpt_put(l, &(struct trace_record){.time_ns = t->clock,
						.stream = cdat_lpt_stream_of(l, t->from),
						.kind = TRACE_memory_sharers,
						.u.memory_sharers = {.first = 64 * (uint64_t)i,
							.processors = t->sharers[i]}});
}

void memory_cdat_lpt_detailed(struct memory_cdat_lpt *l, const struct memory_cdat_transaction *t)
{
	cdat_lpt_put(l, &(struct trace_record){.time_ns = t->clock,
				.stream = cdat_lpt_stream_of(l, t->requester),
				.kind = TRACE_memory_transaction,
				.u.memory_transaction = {.line = t->line,
					.code = t->code,
					.from = t->from,
					.to = t->to,
					.bank = t->bank,
					.home = t->home}});
}

enum base_status memory_cdat_lpt_close(struct memory_cdat_lpt *l, struct base_err *err)
{
	struct base_err ignored;
	enum base_status s = l->status;
	if (s != BASE_OK && err)
		*err = l->err;
	enum base_status closed = trace_writer_close(l->writer, s == BASE_OK ? err : &ignored);
	base_free(l);
	return s == BASE_OK ? closed : s;
}
