/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_ranks.c - lpt-gen-ranks DIR RANKS ROUNDS [SKEW_NS]: the traces of so many MPI ranks, one file each, as
 * `mpirun -n RANKS longpole record` leaves them. In each round a rank computes (rank 1 twice as
 * long), exchanges a message with its neighbours in a ring, and meets all others in MPI_Allreduce.
 * So rank 1's step is nearly all of the path. The clock of host n (of 16) is n times SKEW_NS ahead,
 * and then n * 10 ppm fast. For benchmarks and tests of merge and report.
 */
#include "trace/enums.h"
#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORK_NS = 100000, CALL_NS = 2000, HOSTS = 16 };

struct rank_file {
	struct trace_writer *writer;
	struct base_err err;
	uint32_t nr_strings, fast_ppm;
};

static void put(struct rank_file *g, struct trace_record *r)
{
	r->time_ns += r->time_ns * g->fast_ppm / 1000000;
	if (trace_writer_put(g->writer, r, &g->err) == BASE_OK)
		return;
	fprintf(stderr, "lpt-gen-ranks: %s\n", g->err.cause[0]);
	exit(4);
}

#define PUT(g, stream_, time_, kind_, ...)                                                         \
	put(g, &(struct trace_record){.time_ns = (time_),                                          \
		       .stream = (stream_),                                                        \
		       .kind = TRACE_##kind_,                                                      \
		       .u.kind_ = {__VA_ARGS__}})

static uint32_t text(struct rank_file *g, const char *s)
{
	PUT(g, 0, 0, string, .string = ++g->nr_strings,
		.text = {.bytes = s, .length = (uint32_t)strlen(s)});
	return g->nr_strings;
}

static void define(struct rank_file *g, uint32_t rank)
{
	char name[32];
	uint32_t app = text(g, "app");
	snprintf(name, sizeof name, "boot of host %u", rank % HOSTS);
	PUT(g, 0, 0, host, .host = 1, .name = text(g, name + 8), .boot = text(g, name));
	PUT(g, 0, 0, process, .process = 1, .pid = 1000 + rank, .name = app, .command = app);
	PUT(g, 0, 0, module, .module = 1, .path = text(g, "/usr/bin/app"));
	PUT(g, 0, 0, site, .site = 1, .module = 1, .offset = 0x1000);
	PUT(g, 0, 0, symbol, .site = 1, .function = text(g, "step"), .file = text(g, "app.c"),
		.line = 10, .function_offset = 0xf00);
	PUT(g, 0, 0, stream, .stream = 1, .process = 1, .tid = 1000 + rank, .name = app);
	PUT(g, 0, 0, object, .object = 1, .type = TRACE_OBJECT_communicator, .address = 0x77,
		.name = text(g, "MPI_COMM_WORLD"));
}

/* When a rank, in a round, has done its work. */
static uint64_t worked_ns(uint64_t begin_ns, uint32_t rank)
{
	return begin_ns + (rank == 1 ? 2 * WORK_NS : WORK_NS + rank % 7 * 100);
}

/* All begin a round at the same time: they have met. A message is there CALL_NS after it was sent, and
 * all leave CALL_NS after the last has come, which is the one that rank 1 sends to. */
static void run(struct rank_file *g, uint32_t rank, uint32_t nr_ranks, uint32_t nr_rounds)
{
	const uint64_t round_ns = 2 * WORK_NS + 5 * CALL_NS;
	uint32_t next = (rank + 1) % nr_ranks, last = (rank + nr_ranks - 1) % nr_ranks;
	PUT(g, 1, 0, process_begin, 0);
	PUT(g, 1, 0, thread_begin, 0);
	PUT(g, 1, 100, mpi_comm, .object = 1, .rank = rank, .size = nr_ranks, .world = 1);
	for (uint32_t i = 0; i < nr_rounds; i++) {
		uint64_t begin_ns = 1000 + i * round_ns;
		uint64_t now_ns = worked_ns(begin_ns, rank),
			 there_ns = worked_ns(begin_ns, last) + CALL_NS,
			 met_ns = worked_ns(begin_ns, 1) + 2 * CALL_NS + 400;
		PUT(g, 1, now_ns, mpi_send, .object = 1, .site = 1, .peer = next, .tag = 1,
			.n = 1024, .op = TRACE_MPI_Send);
		PUT(g, 1, now_ns + CALL_NS / 2, mpi_return, .op = TRACE_MPI_Send, .site = 1);
		now_ns += CALL_NS / 2 + 100;
		PUT(g, 1, now_ns, mpi_receive, .object = 1, .site = 1, .peer = last, .tag = 1,
			.n = 1024, .op = TRACE_MPI_Recv);
		now_ns = there_ns > now_ns + 100 ? there_ns : now_ns + 100;
		PUT(g, 1, now_ns, mpi_return, .op = TRACE_MPI_Recv, .site = 1);
		PUT(g, 1, now_ns + 200, mpi_collective, .object = 1, .site = 1,
			.op = TRACE_MPI_Allreduce, .root = -1, .n = 8);
		PUT(g, 1, met_ns + CALL_NS, mpi_return, .op = TRACE_MPI_Allreduce, .site = 1);
	}
	PUT(g, 1, 900 + nr_rounds * round_ns, mpi_wait, .op = TRACE_MPI_Finalize, .site = 1);
	PUT(g, 1, 950 + nr_rounds * round_ns, mpi_return, .op = TRACE_MPI_Finalize, .site = 1);
	PUT(g, 1, 1000 + nr_rounds * round_ns, thread_end);
	PUT(g, 1, 1000 + nr_rounds * round_ns, process_end, 0);
}

int main(int nr, char **argument)
{
	unsigned long skew_ns = nr == 5 ? strtoul(argument[4], NULL, 10) : 0,
		      nr_ranks = nr == 4 || nr == 5 ? strtoul(argument[2], NULL, 10) : 0,
		      nr_rounds = nr == 4 || nr == 5 ? strtoul(argument[3], NULL, 10) : 0;
	if (nr_ranks < 2 || nr_ranks > 100000 || !nr_rounds || nr_rounds > 1000000) {
		fprintf(stderr, "usage: lpt-gen-ranks DIR RANKS ROUNDS [SKEW_NS]\n");
		return 2;
	}
	for (uint32_t rank = 0; rank < nr_ranks; rank++) {
		char path[4096], host[32];
		const uint32_t host_number = rank % HOSTS;
		struct rank_file g = {.fast_ppm = skew_ns ? 10 * host_number : 0};
		snprintf(path, sizeof path, "%s/app.%u.lpt", argument[1], rank);
		snprintf(host, sizeof host, "host%u", host_number);
		struct trace_info info = {.size = sizeof info,
			.host = host,
			.command = "app",
			.tool = "lpt-gen-ranks",
			.origin_unix_ns = UINT64_C(1700000000000000000) + host_number * skew_ns,
			.origin_mono_ns = UINT64_C(1000000000000) + host_number * skew_ns,
			.nr_processors = 64};
		if (trace_writer_open(path, &info, &g.writer, &g.err) != BASE_OK) {
			fprintf(stderr, "lpt-gen-ranks: %s\n", g.err.cause[0]);
			return 4;
		}
		define(&g, rank);
		run(&g, rank, (uint32_t)nr_ranks, (uint32_t)nr_rounds);
		if (trace_writer_close(g.writer, &g.err) != BASE_OK)
			return 4;
	}
	return 0;
}
