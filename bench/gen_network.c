/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_network.c - lpt-gen-network FILE RANKS ROUNDS L O G [SIZES]: the trace of MPI ranks on a simulated network of LogGP (A.
 * Alexandrov et al., SPAA 1995): latency L and overhead O in ns, G in ps a byte. In each round every
 * rank computes, a message goes through all ranks as through a pipeline (each computes before it hands it
 * on), each exchanges one with its neighbours in a ring, and all meet in MPI_Allreduce (a tree of
 * log2 RANKS messages). Messages have SIZES sizes (default 4), of 1 KiB on, by turns of rounds. It prints
 * how long the run took, so what a change of L, O or G does is known and not predicted.
 */
#include "trace/enums.h"
#include "trace/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORK_NS = 20000, STAGE_NS = 3000, RANKS_MAX = 4096, MEETING_BYTES = 8 };

struct network {
	struct trace_writer *writer;
	struct base_err err;
	uint64_t latency_ns, overhead_ns, ps_per_byte;
	uint32_t nr_ranks, nr_strings;
	uint64_t now_ns[RANKS_MAX], sent_ns[RANKS_MAX];
};

static void put(struct network *g, struct trace_record *r)
{
	if (trace_writer_put(g->writer, r, &g->err) == BASE_OK)
		return;
	fprintf(stderr, "lpt-gen-network: %s\n", g->err.cause[0]);
	exit(4);
}

#define PUT(g, stream_, time_, kind_, ...)                                                         \
	put(g, &(struct trace_record){.time_ns = (time_),                                          \
		       .stream = (stream_),                                                        \
		       .kind = TRACE_##kind_,                                                      \
		       .u.kind_ = {__VA_ARGS__}})

static uint32_t text(struct network *g, const char *s)
{
	PUT(g, 0, 0, string, .string = ++g->nr_strings,
		.text = {.bytes = s, .length = (uint32_t)strlen(s)});
	return g->nr_strings;
}

static void define(struct network *g)
{
	uint32_t app = text(g, "app");
	PUT(g, 0, 0, module, .module = 1, .path = text(g, "/usr/bin/app"));
	PUT(g, 0, 0, site, .site = 1, .module = 1, .offset = 0x1000);
	PUT(g, 0, 0, symbol, .site = 1, .function = text(g, "step"), .file = text(g, "app.c"),
		.line = 10, .function_offset = 0xf00);
	PUT(g, 0, 0, object, .object = 1, .type = TRACE_OBJECT_communicator, .address = 0x77,
		.name = text(g, "MPI_COMM_WORLD"));
	for (uint32_t i = 0; i < g->nr_ranks; i++) {
		PUT(g, 0, 0, process, .process = i + 1, .pid = 1000 + i, .name = app,
			.command = app);
		PUT(g, 0, 0, stream, .stream = i + 1, .process = i + 1, .tid = 1000 + i,
			.name = app);
	}
}

/* A message is there this long after its sender began to send it: o + L + n G + o. */
static uint64_t delay_ns(const struct network *g, uint64_t nr_bytes)
{
	return 2 * g->overhead_ns + g->latency_ns + nr_bytes * g->ps_per_byte / 1000;
}

static void net_send(struct network *g, uint32_t from, uint32_t to, uint64_t nr_bytes)
{
	PUT(g, from + 1, g->now_ns[from], mpi_send, .object = 1, .site = 1, .peer = to, .tag = 1,
		.n = nr_bytes, .op = TRACE_MPI_Send);
	g->sent_ns[from] = g->now_ns[from];
	g->now_ns[from] += g->overhead_ns;
	PUT(g, from + 1, g->now_ns[from], mpi_return, .op = TRACE_MPI_Send, .site = 1);
}

/* Of what `from` sent last. */
static void net_receive(struct network *g, uint32_t to, uint32_t from, uint64_t nr_bytes)
{
	uint64_t there_ns = g->sent_ns[from] + delay_ns(g, nr_bytes),
		 own_ns = g->now_ns[to] + g->overhead_ns;
	PUT(g, to + 1, g->now_ns[to], mpi_receive, .object = 1, .site = 1, .peer = from, .tag = 1,
		.n = nr_bytes, .op = TRACE_MPI_Recv);
	g->now_ns[to] = there_ns > own_ns ? there_ns : own_ns;
	PUT(g, to + 1, g->now_ns[to], mpi_return, .op = TRACE_MPI_Recv, .site = 1);
}

static void net_meet(struct network *g)
{
	uint64_t last_ns = 0, depth = 0;
	for (uint32_t i = 0; i < g->nr_ranks; i++)
		last_ns = g->now_ns[i] > last_ns ? g->now_ns[i] : last_ns;
	while (1u << depth < g->nr_ranks)
		depth++;
	last_ns += depth * delay_ns(g, MEETING_BYTES);
	for (uint32_t i = 0; i < g->nr_ranks; i++) {
		PUT(g, i + 1, g->now_ns[i], mpi_collective, .object = 1, .site = 1,
			.op = TRACE_MPI_Allreduce, .root = -1, .n = MEETING_BYTES);
		g->now_ns[i] = last_ns;
		PUT(g, i + 1, last_ns, mpi_return, .op = TRACE_MPI_Allreduce, .site = 1);
	}
}

static void net_round(struct network *g, uint64_t nr_bytes)
{
	uint32_t nr = g->nr_ranks;
	for (uint32_t i = 0; i < nr; i++)
		g->now_ns[i] += WORK_NS;
	for (uint32_t i = 0; i < nr; i++) { /* the pipeline */
		if (i)
			net_receive(g, i, i - 1, nr_bytes);
		g->now_ns[i] += STAGE_NS;
		if (i + 1 < nr)
			net_send(g, i, i + 1, nr_bytes);
	}
	for (uint32_t i = 0; i < nr; i++)
		net_send(g, i, (i + 1) % nr, nr_bytes / 2);
	for (uint32_t i = 0; i < nr; i++)
		net_receive(g, i, (i + nr - 1) % nr, nr_bytes / 2);
	net_meet(g);
}

int main(int nr, char **argument)
{
	static struct network g;
	unsigned long number[6] = {0, 0, 0, 0, 0, 4};
	for (int i = 2; i < nr && i < 8; i++)
		number[i - 2] = strtoul(argument[i], NULL, 10);
	if (nr < 7 || nr > 8 || number[0] < 2 || number[0] > RANKS_MAX || !number[1] ||
		!number[5] || number[5] > 16) {
		fprintf(stderr,
			"usage: lpt-gen-network FILE RANKS ROUNDS L_NS O_NS G_PS [SIZES]\n");
		return 2;
	}
	g.nr_ranks = (uint32_t)number[0];
	g.latency_ns = number[2];
	g.overhead_ns = number[3];
	g.ps_per_byte = number[4];
	struct trace_info info = {.size = sizeof info,
		.host = "host",
		.command = "app",
		.tool = "lpt-gen-network",
		.nr_processors = g.nr_ranks,
		.flags = TRACE_INFO_SYNTHETIC | TRACE_INFO_MERGED};
	if (trace_writer_open(argument[1], &info, &g.writer, &g.err) != BASE_OK) {
		fprintf(stderr, "lpt-gen-network: %s\n", g.err.cause[0]);
		return 4;
	}
	define(&g);
	for (uint32_t i = 0; i < g.nr_ranks; i++) {
		PUT(&g, i + 1, 0, process_begin, 0);
		PUT(&g, i + 1, 0, thread_begin, 0);
		PUT(&g, i + 1, 0, mpi_comm, .object = 1, .rank = i, .size = g.nr_ranks, .world = 1);
	}
	for (unsigned long i = 0; i < number[1]; i++)
		net_round(&g, UINT64_C(1024) << 2 * (i % number[5]));
	for (uint32_t i = 0; i < g.nr_ranks; i++) {
		PUT(&g, i + 1, g.now_ns[i], mpi_wait, .op = TRACE_MPI_Finalize, .site = 1);
		PUT(&g, i + 1, g.now_ns[i], mpi_return, .op = TRACE_MPI_Finalize, .site = 1);
		PUT(&g, i + 1, g.now_ns[i], thread_end);
		PUT(&g, i + 1, g.now_ns[i], process_end, 0);
	}
	printf("%" PRIu64 "\n", g.now_ns[0]);
	return trace_writer_close(g.writer, &g.err) == BASE_OK ? 0 : 4;
}
