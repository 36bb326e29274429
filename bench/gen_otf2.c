/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen_otf2.c - lpt-gen-otf2 DIR RANKS ROUNDS [requests]: DIR/traces.otf2 of an MPI program as Score-P writes it, one
 * location a rank, 64 ranks a node. In each round a rank computes in step() (rank 1 twice as long), exchanges a
 * message with its neighbours in a ring, and meets all others in MPI_Allreduce; with `requests` by
 * MPI_Irecv, MPI_Isend, MPI_Waitall. The run lasts what rank 1 computes and a message and a meeting a
 * round need. It uses the library alone, and nothing of ours: for tests and benchmarks of the import.
 */
#include <inttypes.h>
#include <otf2/otf2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORK_NS = 100000, CALL_NS = 2000, RANKS_A_NODE = 64, TICKS_A_SECOND = 2000000000 };
enum { FIRST_TICK = 1234567, EVENTS_CHUNK = 1 << 18, DEFINITIONS_CHUNK = 1 << 20 };

enum text { /* strings' references: these, then a name for each rank and node */
#define TEXTS(X)                                                                                   \
	X(none, "")                                                                                \
	X(machine, "machine")                                                                      \
	X(node, "node")                                                                            \
	X(cluster, "cluster")                                                                      \
	X(main_thread, "Master thread")                                                            \
	X(world, "MPI_COMM_WORLD")                                                                 \
	X(mpi, "MPI")                                                                              \
	X(source, "app.c")                                                                         \
	X(main, "main")                                                                            \
	X(step, "step")                                                                            \
	X(MPI_Init, "MPI_Init")                                                                    \
	X(MPI_Send, "MPI_Send")                                                                    \
	X(MPI_Recv, "MPI_Recv")                                                                    \
	X(MPI_Isend, "MPI_Isend")                                                                  \
	X(MPI_Irecv, "MPI_Irecv")                                                                  \
	X(MPI_Waitall, "MPI_Waitall")                                                              \
	X(MPI_Allreduce, "MPI_Allreduce")                                                          \
	X(MPI_Finalize, "MPI_Finalize")
#define X(name, text) TEXT_##name,
	TEXTS(X)
#undef X
		TEXT_NR
};

static void check(OTF2_ErrorCode code, const char *what)
{
	if (code == OTF2_SUCCESS)
		return;
	fprintf(stderr, "lpt-gen-otf2: %s: %s\n", what, OTF2_Error_GetDescription(code));
	exit(4);
}
#define CHECK(call) check(call, #call)

static OTF2_FlushType before_flush(
	void *ctx, OTF2_FileType type, OTF2_LocationRef location, void *caller, bool final)
{
	(void)ctx, (void)type, (void)location, (void)caller, (void) final;
	return OTF2_FLUSH;
}

/* ---- definitions ----------------------------------------------------------------------------- */

static void define_texts(OTF2_GlobalDefWriter *d, uint32_t nr_ranks, uint32_t nr_nodes)
{
	static const char *const text[TEXT_NR] = {
#define X(name, text) text,
		TEXTS(X)
#undef X
	};
	char name[32];
	for (uint32_t i = 0; i < TEXT_NR; i++)
		CHECK(OTF2_GlobalDefWriter_WriteString(d, i, text[i]));
	for (uint32_t i = 0; i < nr_ranks; i++) {
		snprintf(name, sizeof name, "MPI Rank %" PRIu32, i);
		CHECK(OTF2_GlobalDefWriter_WriteString(d, TEXT_NR + i, name));
	}
	for (uint32_t i = 0; i < nr_nodes; i++) {
		snprintf(name, sizeof name, "node%03" PRIu32, i);
		CHECK(OTF2_GlobalDefWriter_WriteString(d, TEXT_NR + nr_ranks + i, name));
	}
}

static void define_regions(OTF2_GlobalDefWriter *d)
{
	for (uint32_t i = TEXT_main; i < TEXT_NR; i++) {
		bool is_mpi = i > TEXT_step;
		CHECK(OTF2_GlobalDefWriter_WriteRegion(d, i, i, i, TEXT_none,
			OTF2_REGION_ROLE_FUNCTION,
			is_mpi ? OTF2_PARADIGM_MPI : OTF2_PARADIGM_COMPILER, OTF2_REGION_FLAG_NONE,
			is_mpi ? OTF2_UNDEFINED_STRING : (OTF2_StringRef)TEXT_source, 10 * i,
			10 * i + 9));
	}
}

static void define(OTF2_Archive *a, uint32_t nr_ranks, uint64_t nr_ticks, uint64_t nr_events)
{
	OTF2_GlobalDefWriter *d = OTF2_Archive_GetGlobalDefWriter(a);
	uint32_t nr_nodes = (nr_ranks + RANKS_A_NODE - 1) / RANKS_A_NODE;
	uint64_t *member = calloc(nr_ranks, sizeof *member);
	if (!d || !member)
		exit(4);
	CHECK(OTF2_GlobalDefWriter_WriteClockProperties(
		d, TICKS_A_SECOND, FIRST_TICK, nr_ticks, UINT64_C(1700000000000000000)));
	define_texts(d, nr_ranks, nr_nodes);
	CHECK(OTF2_GlobalDefWriter_WriteParadigm(
		d, OTF2_PARADIGM_MPI, TEXT_mpi, OTF2_PARADIGM_CLASS_PROCESS));
	CHECK(OTF2_GlobalDefWriter_WriteSystemTreeNode(
		d, 0, TEXT_cluster, TEXT_machine, OTF2_UNDEFINED_SYSTEM_TREE_NODE));
	for (uint32_t i = 0; i < nr_nodes; i++)
		CHECK(OTF2_GlobalDefWriter_WriteSystemTreeNode(
			d, 1 + i, TEXT_NR + nr_ranks + i, TEXT_node, 0));
	for (uint32_t i = 0; i < nr_ranks; i++) {
		CHECK(OTF2_GlobalDefWriter_WriteLocationGroup(d, i, TEXT_NR + i,
			OTF2_LOCATION_GROUP_TYPE_PROCESS, 1 + i / RANKS_A_NODE,
			OTF2_UNDEFINED_LOCATION_GROUP));
		CHECK(OTF2_GlobalDefWriter_WriteLocation(
			d, i, TEXT_main_thread, OTF2_LOCATION_TYPE_CPU_THREAD, nr_events, i));
		member[i] = i;
	}
	define_regions(d);
	CHECK(OTF2_GlobalDefWriter_WriteGroup(d, 0, TEXT_none, OTF2_GROUP_TYPE_COMM_LOCATIONS,
		OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, nr_ranks, member));
	CHECK(OTF2_GlobalDefWriter_WriteGroup(d, 1, TEXT_none, OTF2_GROUP_TYPE_COMM_GROUP,
		OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, nr_ranks, member));
	CHECK(OTF2_GlobalDefWriter_WriteComm(
		d, 0, TEXT_world, 1, OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE));
	CHECK(OTF2_Archive_CloseGlobalDefWriter(a, d));
	free(member);
}

/* A location's own definitions: its clock is the archive's. */
static void define_clocks(OTF2_Archive *a, uint32_t nr_ranks)
{
	CHECK(OTF2_Archive_OpenDefFiles(a));
	for (uint32_t rank = 0; rank < nr_ranks; rank++) {
		OTF2_DefWriter *d = OTF2_Archive_GetDefWriter(a, rank);
		if (!d)
			exit(4);
		CHECK(OTF2_DefWriter_WriteClockOffset(d, FIRST_TICK, 0, 0));
		CHECK(OTF2_Archive_CloseDefWriter(a, d));
	}
	CHECK(OTF2_Archive_CloseDefFiles(a));
}

/* ---- events ---------------------------------------------------------------------------------- */

static uint64_t ticks(uint64_t ns)
{
	return FIRST_TICK + ns * (TICKS_A_SECOND / 1000000000);
}

#define EVENT(kind, ns, ...)                                                                       \
	do {                                                                                       \
		CHECK(OTF2_EvtWriter_##kind(w, NULL, ticks(ns), __VA_ARGS__));                     \
		nr++;                                                                              \
	} while (0)

/* When a rank, in a round, has done its work. */
static uint64_t worked_ns(uint64_t begin_ns, uint32_t rank)
{
	return begin_ns + (rank == 1 ? 2 * WORK_NS : WORK_NS + rank % 7 * 100);
}

/* A message is there CALL_NS after it was sent; all leave a meeting CALL_NS after the last came,
 * which is the rank that rank 1 sends to. Returns how many events there are. */
static uint64_t write_rank(
	OTF2_EvtWriter *w, uint32_t rank, uint32_t nr_ranks, uint32_t nr_rounds, bool requests)
{
	const uint64_t round_ns = 2 * WORK_NS + 5 * CALL_NS;
	uint32_t next = (rank + 1) % nr_ranks, last = (rank + nr_ranks - 1) % nr_ranks;
	uint64_t nr = 0, end_ns = 1000 + nr_rounds * round_ns, request = 0;
	EVENT(Enter, 0, TEXT_main);
	EVENT(Enter, 100, TEXT_MPI_Init);
	EVENT(Leave, 900, TEXT_MPI_Init);
	for (uint32_t i = 0; i < nr_rounds; i++) {
		uint64_t begin_ns = 1000 + i * round_ns, now_ns = worked_ns(begin_ns, rank),
			 there_ns = worked_ns(begin_ns, last) + CALL_NS,
			 met_ns = worked_ns(begin_ns, 1) + 2 * CALL_NS + 400;
		EVENT(Enter, begin_ns, TEXT_step);
		EVENT(Leave, now_ns, TEXT_step);
		if (requests) {
			EVENT(Enter, now_ns, TEXT_MPI_Irecv);
			EVENT(MpiIrecvRequest, now_ns + 10, request);
			EVENT(Leave, now_ns + 20, TEXT_MPI_Irecv);
			EVENT(Enter, now_ns + 20, TEXT_MPI_Isend);
			EVENT(MpiIsend, now_ns + 30, next, 0, 1, 1024, request + 1);
			EVENT(Leave, now_ns + 100, TEXT_MPI_Isend);
		} else {
			EVENT(Enter, now_ns, TEXT_MPI_Send);
			EVENT(MpiSend, now_ns, next, 0, 1, 1024);
			EVENT(Leave, now_ns + CALL_NS / 2, TEXT_MPI_Send);
		}
		now_ns += CALL_NS / 2 + 100;
		there_ns = there_ns > now_ns + 100 ? there_ns : now_ns + 100;
		EVENT(Enter, now_ns, requests ? TEXT_MPI_Waitall : TEXT_MPI_Recv);
		if (requests) {
			EVENT(MpiIrecv, there_ns, last, 0, 1, 1024, request);
			EVENT(MpiIsendComplete, there_ns, request + 1);
			request += 2;
		} else {
			EVENT(MpiRecv, there_ns, last, 0, 1, 1024);
		}
		EVENT(Leave, there_ns, requests ? TEXT_MPI_Waitall : TEXT_MPI_Recv);
		now_ns = there_ns + 200;
		EVENT(Enter, now_ns, TEXT_MPI_Allreduce);
		CHECK(OTF2_EvtWriter_MpiCollectiveBegin(w, NULL, ticks(now_ns)));
		nr++;
		EVENT(MpiCollectiveEnd, met_ns + CALL_NS, OTF2_COLLECTIVE_OP_ALLREDUCE, 0,
			OTF2_COLLECTIVE_ROOT_NONE, 8, 8);
		EVENT(Leave, met_ns + CALL_NS, TEXT_MPI_Allreduce);
	}
	EVENT(Enter, end_ns - 100, TEXT_MPI_Finalize);
	EVENT(Leave, end_ns - 50, TEXT_MPI_Finalize);
	EVENT(Leave, end_ns, TEXT_main);
	return nr;
}

int main(int nr, char **argument)
{
	unsigned long nr_ranks = nr == 4 || nr == 5 ? strtoul(argument[2], NULL, 10) : 0,
		      nr_rounds = nr == 4 || nr == 5 ? strtoul(argument[3], NULL, 10) : 0;
	if (nr_ranks < 2 || nr_ranks > 100000 || !nr_rounds || nr_rounds > 1000000 ||
		(nr == 5 && strcmp(argument[4], "requests") != 0)) {
		fprintf(stderr, "usage: lpt-gen-otf2 DIR RANKS ROUNDS [requests]\n");
		return 2;
	}
	static const OTF2_FlushCallbacks flush = {.otf2_pre_flush = before_flush};
	OTF2_Archive *a = OTF2_Archive_Open(argument[1], "traces", OTF2_FILEMODE_WRITE,
		EVENTS_CHUNK, DEFINITIONS_CHUNK, OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
	if (!a)
		return 4;
	CHECK(OTF2_Archive_SetFlushCallbacks(a, &flush, NULL));
	CHECK(OTF2_Archive_SetSerialCollectiveCallbacks(a));
	CHECK(OTF2_Archive_OpenEvtFiles(a));
	uint64_t nr_events = 0;
	for (uint32_t rank = 0; rank < nr_ranks; rank++) {
		OTF2_EvtWriter *w = OTF2_Archive_GetEvtWriter(a, rank);
		if (!w)
			return 4;
		nr_events = write_rank(w, rank, (uint32_t)nr_ranks, (uint32_t)nr_rounds, nr == 5);
		CHECK(OTF2_Archive_CloseEvtWriter(a, w));
	}
	CHECK(OTF2_Archive_CloseEvtFiles(a));
	define_clocks(a, (uint32_t)nr_ranks);
	define(a, (uint32_t)nr_ranks,
		ticks(1000 + nr_rounds * (2 * WORK_NS + 5 * CALL_NS)) - FIRST_TICK, nr_events);
	CHECK(OTF2_Archive_Close(a));
	return 0;
}
