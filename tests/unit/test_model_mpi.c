/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_mpi.c - MPI: messages, requests and collective operations whose answer is known. */
#include "model/link.h"
#include "model/model.h"
#include "model_fixture.h"

enum { RANKS = 3 };

struct job {
	struct bench b;
	uint32_t stream[RANKS], world, fast, slow;
};

/* mpirun (stream 1) forks the ranks at 10, 20, 30; each knows its rank 5 later. */
static void begin_job(struct job *j, unsigned nr_ranks)
{
	struct bench *b = &j->b;
	start(b);
	j->fast = site(b, "fast");
	j->slow = site(b, "slow");
	uint32_t launcher = process_of(b, "mpirun", 0, 100);
	stream(b, launcher);
	j->world = object(b, TRACE_OBJECT_communicator, "MPI_COMM_WORLD", 0);
	PUT(b, 0, 1, process_begin, .token = 0);
	PUT(b, 0, 1, thread_begin, .token = 0, .handle = 1000);
	for (unsigned i = 0; i < nr_ranks; i++)
		j->stream[i] = stream(b, process_of(b, "app", launcher, 200 + i));
	for (unsigned i = 0; i < nr_ranks; i++) {
		PUT(b, 10 * (i + 1), 1, process_fork, .token = i + 1, .site = j->fast);
		PUT(b, 10 * (i + 1) + 2, j->stream[i], process_begin, .token = i + 1);
		PUT(b, 10 * (i + 1) + 2, j->stream[i], thread_begin, .token = 0);
		PUT(b, 10 * (i + 1) + 5, j->stream[i], mpi_comm, .object = j->world, .rank = i,
			.size = nr_ranks, .world = 1);
	}
	PUT(b, 40, 1, poll_begin, .n = 3, .site = j->fast);
}

/* The ranks end one after the other, then mpirun does. */
static void end_job(struct job *j, unsigned nr_ranks, uint64_t at, uint64_t path_ns)
{
	struct bench *b = &j->b;
	for (unsigned i = 0; i < nr_ranks; i++) {
		PUT(b, at + i, j->stream[i], thread_end);
		PUT(b, at + i, j->stream[i], process_end, .status = 0);
	}
	PUT(b, at + 500, 1, poll_end, .result = 1);
	PUT(b, at + 600, 1, thread_end);
	PUT(b, at + 600, 1, process_end, .status = 0);
	analyse(b);
	conserved(b, (double)path_ns);
	repeats(b);
}

static void receive(struct job *j, uint64_t from, uint64_t to, unsigned rank, int64_t peer,
	int64_t tag, int64_t sender, int64_t its_tag)
{
	struct bench *b = &j->b;
	PUT(b, from, j->stream[rank], mpi_receive, .object = j->world, .site = j->fast,
		.peer = peer, .tag = tag, .n = 4, .op = TRACE_MPI_Recv);
	PUT(b, to, j->stream[rank], mpi_done, .peer = sender, .tag = its_tag, .n = 4);
	PUT(b, to, j->stream[rank], mpi_return, .op = TRACE_MPI_Recv, .site = j->fast);
}

static void send(struct job *j, uint64_t from, uint64_t to, unsigned rank, int64_t peer,
	int64_t tag, uint64_t n)
{
	struct bench *b = &j->b;
	PUT(b, from, j->stream[rank], mpi_send, .object = j->world, .site = j->slow, .peer = peer,
		.tag = tag, .n = n, .op = TRACE_MPI_Send);
	PUT(b, to, j->stream[rank], mpi_done, .peer = -1, .tag = -1);
	PUT(b, to, j->stream[rank], mpi_return, .op = TRACE_MPI_Send, .site = j->slow);
}

static void collective(
	struct job *j, uint64_t from, uint64_t to, unsigned rank, enum trace_mpi op, int64_t root)
{
	struct bench *b = &j->b;
	uint32_t at = rank == 1 ? j->slow : j->fast;
	PUT(b, from, j->stream[rank], mpi_collective, .object = j->world, .site = at, .op = op,
		.root = root);
	PUT(b, to, j->stream[rank], mpi_return, .op = op, .site = at);
}

/* Rank 0 asks at 100, rank 1 sends at 400 and is back at 402; the message is there at 410. */
static void late_sender(void **state)
{
	(void)state;
	struct job j;
	begin_job(&j, 2);
	receive(&j, 100, 410, 0, 1, 7, 1, 7);
	send(&j, 400, 402, 1, 0, 7, 4);
	end_job(&j, 2, 500, 501);
	/* rank 1's end is last, and it waited for nobody: its path is its own */
	assert_float_equal(on_path(&j.b, "waiting for a message"), 0, 1e-6);
	assert_float_equal(unexplained(&j.b), 0, 1e-6);
	finish(&j.b);
}

/* The same, and rank 0 answers: rank 1 waits for it. */
static void ping_pong(void **state)
{
	(void)state;
	struct job j;
	begin_job(&j, 2);
	receive(&j, 100, 410, 0, 1, 7, 1, 7);
	send(&j, 400, 402, 1, 0, 7, 4);
	receive(&j, 405, 720, 1, 0, 8, 0, 8);
	send(&j, 700, 701, 0, 1, 8, 4);
	end_job(&j, 2, 800, 801);
	/* rank 1 to 400, 10 on the way, rank 0 from 410 to 700, 20 on the way, rank 1 */
	assert_float_equal(on_path(&j.b, "communication in MPI_COMM_WORLD"), 30, 1e-6);
	assert_float_equal(on_path(&j.b, "waiting for a message"), 0, 1e-6);
	assert_float_equal(unexplained(&j.b), 0, 1e-6);
	finish(&j.b);
}

/* Two of one tag are taken in the order of sending; one of another tag overtakes them. */
static void tags_overtake(void **state)
{
	(void)state;
	struct job j;
	begin_job(&j, 2);
	send(&j, 100, 101, 1, 0, 7, 4);
	send(&j, 200, 201, 1, 0, 7, 4);
	send(&j, 300, 301, 1, 0, 9, 4);
	receive(&j, 150, 310, 0, 1, 9, 1, 9);
	receive(&j, 320, 321, 0, 1, 7, 1, 7);
	receive(&j, 330, 331, 0, 1, 7, 1, 7);
	PUT(&j.b, 400, j.stream[1], process_end, .status = 0);
	PUT(&j.b, 500, j.stream[0], process_end, .status = 0);
	analyse(&j.b);
	conserved(&j.b, 500);
	assert_float_equal(on_path(&j.b, "communication in MPI_COMM_WORLD"), 10, 1e-6);
	assert_float_equal(on_path(&j.b, "in MPI_Recv"), 2, 1e-6);
	finish(&j.b);
}

/* From anybody: who it was is known when it is there. */
static void wildcard(void **state)
{
	(void)state;
	struct job j;
	begin_job(&j, 3);
	receive(&j, 100, 410, 0, -1, -1, 2, 7);
	receive(&j, 420, 610, 0, -1, -1, 1, 7);
	send(&j, 400, 402, 2, 0, 7, 4);
	send(&j, 600, 602, 1, 0, 7, 4);
	PUT(&j.b, 650, j.stream[1], process_end, .status = 0);
	PUT(&j.b, 660, j.stream[2], process_end, .status = 0);
	PUT(&j.b, 700, j.stream[0], process_end, .status = 0);
	analyse(&j.b);
	conserved(&j.b, 700);
	assert_float_equal(on_path(&j.b, "communication in MPI_COMM_WORLD"), 10, 1e-6);
	assert_float_equal(unexplained(&j.b), 0, 1e-6);
	finish(&j.b);
}

/* A send that lasts until its receiver asks waits for it; as many bytes once sent to nobody do not. */
static void late_receiver(void **state)
{
	(void)state;
	struct job j;
	begin_job(&j, 2);
	send(&j, 100, 430, 0, 1, 7, 1000000);
	receive(&j, 400, 420, 1, 0, 7, 0, 7);
	send(&j, 500, 501, 0, 1, 7, 4); /* complete before it is asked for */
	send(&j, 510, 590, 0, 1, 7, 4); /* so this one only lasted */
	receive(&j, 550, 552, 1, 0, 7, 0, 7);
	receive(&j, 560, 562, 1, 0, 7, 0, 7);
	PUT(&j.b, 600, j.stream[1], process_end, .status = 0);
	PUT(&j.b, 700, j.stream[0], process_end, .status = 0);
	analyse(&j.b);
	conserved(&j.b, 700);
	/* 30 of the first message; 1 and 80 at work */
	assert_float_equal(on_path(&j.b, "communication in MPI_COMM_WORLD"), 30, 1e-6);
	assert_float_equal(on_path(&j.b, "in MPI_Send"), 81, 1e-6);
	assert_float_equal(on_path(&j.b, "waiting for rank"), 0, 1e-6);
	finish(&j.b);
}

/* The waits in each, and how long: rank 1 comes at 400, the others at 100. */
static void collectives(void **state)
{
	static const struct {
		enum trace_mpi op;
		int64_t root;
		uint64_t leave[RANKS]; /* after it came; of those that come early: at */
		double on_way;         /* of the path to rank 0's end */
	} is[] = {
		{TRACE_MPI_Barrier, -1, {410, 402, 412}, 10},
		{TRACE_MPI_Allreduce, -1, {410, 402, 412}, 10},
		{TRACE_MPI_Bcast, 1, {410, 402, 412}, 10},
		{TRACE_MPI_Bcast, 0, {110, 402, 112}, 0},
		{TRACE_MPI_Reduce, 0, {410, 402, 112}, 10},
		{TRACE_MPI_Reduce, 2, {110, 402, 410}, 0},
		{TRACE_MPI_Scan, -1, {110, 402, 412}, 0},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(is); i++) {
		struct job j;
		begin_job(&j, RANKS);
		for (unsigned round = 0; round < 2; round++) /* the second begins 1000 later */
			for (unsigned rank = 0; rank < RANKS; rank++)
				collective(&j, 1000 * round + (rank == 1 ? 400 : 100),
					1000 * round + is[i].leave[rank], rank, is[i].op,
					is[i].root);
		PUT(&j.b, 1600, j.stream[1], process_end, .status = 0);
		PUT(&j.b, 1610, j.stream[2], process_end, .status = 0);
		PUT(&j.b, 2000, j.stream[0], process_end, .status = 0);
		analyse(&j.b);
		conserved(&j.b, 2000);
		/* (rank 1 waited for nobody in the first round) */
		assert_float_equal(
			on_path(&j.b, "communication in MPI_COMM_WORLD"), is[i].on_way, 1e-6);
		assert_float_equal(on_path(&j.b, "waiting at"), 0, 1e-6);
		assert_float_equal(unexplained(&j.b), 0, 1e-6);
		finish(&j.b);
	}
}

/* There is one of that name, and it has that cause. */
static bool has_state(struct bench *b, const char *name, enum model_cause cause)
{
	for (uint32_t i = 0; i < graph_nr_states(model_graph(b->model)); i++)
		if (!strcmp(model_state(b->model, i)->name, name))
			return model_state(b->model, i)->cause == cause;
	return false;
}

/* What each wait is about: the rank and the function, and what is not known is left out. */
static void states_say_for_whom(void **state)
{
	(void)state;
	struct job j;
	begin_job(&j, RANKS);
	PUT(&j.b, 100, j.stream[0], mpi_send, .object = j.world, .site = j.fast, .peer = 2,
		.tag = 7, .n = 4, .op = TRACE_MPI_Ssend);
	receive(&j, 150, 300, 1, -1, 7, 2, 7);
	send(&j, 200, 202, 2, 1, 7, 4);
	receive(&j, 400, 410, 2, 0, 7, 0, 7);
	PUT(&j.b, 410, j.stream[0], mpi_done, .peer = -1, .tag = -1);
	PUT(&j.b, 410, j.stream[0], mpi_return, .op = TRACE_MPI_Ssend, .site = j.fast);
	collective(&j, 500, 710, 0, TRACE_MPI_Barrier, -1);
	collective(&j, 700, 710, 1, TRACE_MPI_Barrier, -1);
	collective(&j, 600, 710, 2, TRACE_MPI_Barrier, -1);
	for (unsigned i = 0; i < RANKS; i++)
		PUT(&j.b, 800 + i, j.stream[i], process_end, .status = 0);
	analyse(&j.b);
	assert_true(has_state(
		&j.b, "waiting for rank 2 to receive (MPI_Ssend)", MODEL_CAUSE_mpi_receiver));
	assert_true(has_state(&j.b, "waiting for messages (MPI_Recv)", MODEL_CAUSE_mpi_messages));
	assert_true(has_state(&j.b, "waiting at MPI_Barrier of MPI_COMM_WORLD for rank 1",
		MODEL_CAUSE_mpi_meeting));
	assert_true(has_state(&j.b, "in MPI_Recv", MODEL_CAUSE_mpi_call));
	assert_true(has_state(&j.b, "communication in MPI_COMM_WORLD", MODEL_CAUSE_communication));
	finish(&j.b);
}

/* Of several requests it was the last to come that was waited for. */
static void waits_for_the_last_request(void **state)
{
	enum { FROM_2 = 11, FROM_1 = 12 };
	(void)state;
	struct job j;
	begin_job(&j, RANKS);
	for (unsigned from = 2; from >= 1; from--)
		PUT(&j.b, 90, j.stream[0], mpi_receive, .object = j.world, .site = j.fast,
			.peer = from, .tag = 7, .n = 4, .request = from == 2 ? FROM_2 : FROM_1,
			.op = TRACE_MPI_Irecv);
	PUT(&j.b, 100, j.stream[0], mpi_wait, .op = TRACE_MPI_Waitall, .request = FROM_2, .more = 1,
		.site = j.fast);
	PUT(&j.b, 100, j.stream[0], mpi_wait, .op = TRACE_MPI_Waitall, .request = FROM_1,
		.site = j.fast);
	send(&j, 200, 202, 2, 0, 7, 4);
	send(&j, 400, 402, 1, 0, 7, 4);
	PUT(&j.b, 410, j.stream[0], mpi_done, .request = FROM_2, .peer = 2, .tag = 7);
	PUT(&j.b, 410, j.stream[0], mpi_done, .request = FROM_1, .peer = 1, .tag = 7);
	PUT(&j.b, 410, j.stream[0], mpi_return, .op = TRACE_MPI_Waitall, .site = j.fast);
	PUT(&j.b, 500, j.stream[1], process_end, .status = 0);
	PUT(&j.b, 510, j.stream[2], process_end, .status = 0);
	PUT(&j.b, 600, j.stream[0], process_end, .status = 0);
	analyse(&j.b);
	conserved(&j.b, 600);
	assert_true(has_state(
		&j.b, "waiting for a message from rank 1 (MPI_Waitall)", MODEL_CAUSE_mpi_message));
	assert_float_equal(on_path(&j.b, "communication in MPI_COMM_WORLD"), 10, 1e-6);
	assert_float_equal(unexplained(&j.b), 0, 1e-6);
	finish(&j.b);
}

/* All end; rank 0 is last, at `at`. */
static void end_at(struct job *j, uint64_t at)
{
	for (unsigned i = RANKS; i-- > 1;)
		PUT(&j->b, at - 10 * i, j->stream[i], process_end, .status = 0);
	PUT(&j->b, at, j->stream[0], process_end, .status = 0);
	analyse(&j->b);
	conserved(&j->b, (double)at);
	repeats(&j->b);
	assert_float_equal(unexplained(&j->b), 0, 1e-6);
}

/* Rank 0 looks from 100 on, in two ways in turn, and finds what rank 1 sends at 400. */
static void looks_that_find_nothing_are_a_wait(void **state)
{
	(void)state;
	struct job j;
	begin_job(&j, RANKS);
	PUT(&j.b, 100, j.stream[0], mpi_wait, .op = TRACE_MPI_Iprobe, .site = j.fast);
	send(&j, 400, 402, 1, 0, 7, 4);
	PUT(&j.b, 409, j.stream[0], mpi_receive, .object = j.world, .site = j.fast, .peer = -1,
		.tag = -1, .op = TRACE_MPI_Iprobe);
	PUT(&j.b, 410, j.stream[0], mpi_done, .peer = 1, .tag = 7);
	PUT(&j.b, 410, j.stream[0], mpi_return, .op = TRACE_MPI_Iprobe, .site = j.fast);
	receive(&j, 420, 425, 0, 1, 7, 1, 7);
	end_at(&j, 600);
	assert_true(has_state(
		&j.b, "waiting for a message from rank 1 (MPI_Iprobe)", MODEL_CAUSE_mpi_message));
	assert_float_equal(on_path(&j.b, "communication in MPI_COMM_WORLD"), 10, 1e-6);
	assert_float_equal(on_path(&j.b, "in MPI_Recv"), 5, 1e-6);
	finish(&j.b);
}

/* They were given up at 150: what is after that is the program's own. */
static void looks_that_were_given_up(void **state)
{
	(void)state;
	struct job j;
	begin_job(&j, RANKS);
	PUT(&j.b, 100, j.stream[0], mpi_receive, .object = j.world, .site = j.fast, .peer = 1,
		.tag = 7, .request = 99, .op = TRACE_MPI_Irecv);
	PUT(&j.b, 110, j.stream[0], mpi_wait, .op = TRACE_MPI_Test, .request = 99, .site = j.fast);
	PUT(&j.b, 150, j.stream[0], mpi_return, .op = TRACE_MPI_Test, .site = j.fast);
	send(&j, 300, 302, 1, 0, 7, 4);
	PUT(&j.b, 400, j.stream[0], mpi_done, .request = 99, .peer = 1, .tag = 7);
	PUT(&j.b, 400, j.stream[0], mpi_return, .op = TRACE_MPI_Test, .site = j.fast);
	end_at(&j, 600);
	assert_float_equal(on_path(&j.b, "in MPI_Test"), 40, 1e-6);
	assert_float_equal(on_path(&j.b, "communication in MPI_COMM_WORLD"), 0, 1e-6);
	finish(&j.b);
}

/* Two messages of one tag: the first is looked at twice and kept, the second is the other receive's. */
static void messages_that_were_looked_at(void **state)
{
	(void)state;
	struct job j;
	begin_job(&j, RANKS);
	for (unsigned i = 0; i < 2; i++) {
		PUT(&j.b, 100 + i, j.stream[0], mpi_receive, .object = j.world, .site = j.fast,
			.peer = -1, .tag = 7, .op = i ? TRACE_MPI_Mprobe : TRACE_MPI_Probe);
		if (!i)
			send(&j, 300, 302, 1, 0, 7, 4);
		PUT(&j.b, 310 + i, j.stream[0], mpi_done, .peer = 1, .tag = 7);
		PUT(&j.b, 310 + i, j.stream[0], mpi_return, .site = j.fast,
			.op = i ? TRACE_MPI_Mprobe : TRACE_MPI_Probe);
	}
	send(&j, 400, 402, 1, 0, 7, 4);
	PUT(&j.b, 420, j.stream[0], mpi_receive, .object = j.world, .site = j.fast, .peer = 1,
		.tag = 7, .n = 4, .op = TRACE_MPI_Mrecv);
	PUT(&j.b, 421, j.stream[0], mpi_return, .op = TRACE_MPI_Mrecv, .site = j.fast);
	receive(&j, 430, 432, 0, 1, 7, 1, 7);
	end_at(&j, 600);
	assert_float_equal(on_path(&j.b, "communication in MPI_COMM_WORLD"), 10, 1e-6);
	/* what was looked at is there */
	assert_float_equal(on_path(&j.b, "in MPI_Mrecv"), 1, 1e-6);
	finish(&j.b);
}

/* The message that was asked for by a receive that was cancelled is the next one's. */
static void cancelled(void **state)
{
	(void)state;
	struct job j;
	begin_job(&j, RANKS);
	for (unsigned i = 0; i < 3; i++)
		PUT(&j.b, 100 + i, j.stream[0], mpi_receive, .object = j.world, .site = j.fast,
			.peer = 1, .tag = 7, .request = 90 + i, .op = TRACE_MPI_Irecv);
	PUT(&j.b, 110, j.stream[0], mpi_wait, .op = TRACE_MPI_Wait, .request = 91, .site = j.fast);
	PUT(&j.b, 111, j.stream[0], mpi_done, .request = 91, .peer = TRACE_MPI_CANCELLED,
		.tag = -1);
	PUT(&j.b, 111, j.stream[0], mpi_return, .op = TRACE_MPI_Wait, .site = j.fast);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t at = 120 + 200 * i;
		PUT(&j.b, at, j.stream[0], mpi_wait, .op = TRACE_MPI_Wait, .request = 90 + 2 * i,
			.site = j.fast);
		send(&j, at + 100, at + 102, 1, 0, 7, 4);
		PUT(&j.b, at + 110, j.stream[0], mpi_done, .request = 90 + 2 * i, .peer = 1,
			.tag = 7);
		PUT(&j.b, at + 110, j.stream[0], mpi_return, .op = TRACE_MPI_Wait, .site = j.fast);
	}
	end_at(&j, 600);
	/* rank 1 to 420, where the second is sent, and 10 on its way */
	assert_float_equal(on_path(&j.b, "communication in MPI_COMM_WORLD"), 10, 1e-6);
	finish(&j.b);
}

/* Each rank of a scan needs those below it: rank 2 the later of ranks 0 and 1, rank 0 nobody. */
static void scan_needs_those_below(void **state)
{
	static const struct {
		uint64_t come[RANKS], leave[RANKS];
		const char *waits;
	} is[] = {
		{{100, 400, 200}, {101, 402, 410},
			"waiting at MPI_Scan of MPI_COMM_WORLD for rank 1"},
		{{400, 100, 200}, {401, 410, 410},
			"waiting at MPI_Scan of MPI_COMM_WORLD for rank 0"},
	};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(is); i++) {
		struct job j;
		begin_job(&j, RANKS);
		for (unsigned round = 0; round < 3; round++)
			for (unsigned rank = 0; rank < RANKS; rank++)
				collective(&j, 500 * round + is[i].come[rank],
					500 * round + is[i].leave[rank], rank, TRACE_MPI_Scan, -1);
		PUT(&j.b, 1600, j.stream[0], process_end, .status = 0);
		PUT(&j.b, 1610, j.stream[1], process_end, .status = 0);
		PUT(&j.b, 2000, j.stream[2], process_end, .status = 0);
		analyse(&j.b);
		conserved(&j.b, 2000);
		assert_true(has_state(&j.b, is[i].waits, MODEL_CAUSE_mpi_meeting));
		/* (rank 1, or 0, waited for nobody in the rounds before) */
		assert_float_equal(on_path(&j.b, "communication in MPI_COMM_WORLD"), 10, 1e-6);
		assert_float_equal(on_path(&j.b, "waiting at"), 0, 1e-6);
		assert_float_equal(unexplained(&j.b), 0, 1e-6);
		finish(&j.b);
	}
}

static void part(struct job *j, uint64_t at, unsigned rank, bool sends, unsigned number,
	int64_t peer, int64_t tag, enum trace_mpi op)
{
	const uint64_t name = TRACE_REQUEST_PART(UINT64_C(70), number);
	if (sends)
		PUT(&j->b, at, j->stream[rank], mpi_send, .object = j->world, .site = j->fast,
			.peer = peer, .tag = tag, .request = name, .op = op);
	else
		PUT(&j->b, at, j->stream[rank], mpi_receive, .object = j->world, .site = j->fast,
			.peer = peer, .tag = tag, .request = name, .op = op);
}

/* Rank 0 has rank 2 as neighbour, and rank 1 is nobody's: it comes to nothing. */
static void neighbours_wait_for_neighbours(void **state)
{
	static const unsigned pair[] = {0, 2};
	(void)state;
	struct job j;
	begin_job(&j, RANKS);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t at = i ? 400 : 100;
		int64_t peer = pair[!i];
		part(&j, at, pair[i], true, 1, peer, TRACE_MPI_TAG_OWN,
			TRACE_MPI_Neighbor_alltoall);
		part(&j, at, pair[i], false, 2, peer, TRACE_MPI_TAG_OWN,
			TRACE_MPI_Neighbor_alltoall);
		PUT(&j.b, at, j.stream[pair[i]], mpi_wait, .op = TRACE_MPI_Neighbor_alltoall,
			.request = 70, .site = j.fast);
	}
	for (unsigned i = 0; i < 2; i++) {
		PUT(&j.b, 410, j.stream[pair[i]], mpi_done, .request = 70, .peer = -1, .tag = -1);
		PUT(&j.b, 410, j.stream[pair[i]], mpi_return, .op = TRACE_MPI_Neighbor_alltoall,
			.site = j.fast);
	}
	end_at(&j, 600);
	assert_true(has_state(&j.b, "waiting for a message from rank 2 (MPI_Neighbor_alltoall)",
		MODEL_CAUSE_mpi_message));
	assert_float_equal(on_path(&j.b, "communication in MPI_COMM_WORLD"), 10, 1e-6);
	finish(&j.b);
}

/* Rank 1 holds the lock of rank 2's memory from 100 to 400; rank 0 gets it at 410. */
static void locks_of_windows(void **state)
{
	(void)state;
	struct job j;
	begin_job(&j, RANKS);
	uint32_t window = object(&j.b, TRACE_OBJECT_communicator, "window 1 of world rank 0", 0);
	for (unsigned i = 0; i < RANKS; i++)
		PUT(&j.b, 50, j.stream[i], mpi_comm, .object = window, .rank = i, .size = RANKS);
	static const struct {
		unsigned rank;
		uint64_t from, to;
		enum trace_mpi op;
	} is[] = {{1, 100, 101, TRACE_MPI_Win_lock}, {0, 110, 410, TRACE_MPI_Win_lock},
		{1, 400, 405, TRACE_MPI_Win_unlock}, {0, 450, 460, TRACE_MPI_Win_unlock}};
	for (size_t i = 0; i < BASE_COUNT(is); i++) {
		PUT(&j.b, is[i].from, j.stream[is[i].rank], mpi_collective, .object = window,
			.site = j.fast, .op = is[i].op, .root = 2);
		PUT(&j.b, is[i].to, j.stream[is[i].rank], mpi_return, .op = is[i].op,
			.site = j.fast);
	}
	end_at(&j, 600);
	assert_true(
		has_state(&j.b, "waiting at MPI_Win_lock of window 1 of world rank 0 for rank 1",
			MODEL_CAUSE_mpi_meeting));
	assert_float_equal(on_path(&j.b, "communication in window 1"), 10, 1e-6);
	assert_float_equal(on_path(&j.b, "in MPI_Win_unlock"), 10, 1e-6);
	finish(&j.b);
}

/* Rank 0 flushes what it put into rank 2's memory, which goes on when rank 2 comes to MPI at 400. A
 * rank that comes early in a long transfer has not held it up. */
static void targets_that_come_late(void **state)
{
	(void)state;
	for (unsigned early = 0; early < 2; early++) {
		struct job j;
		begin_job(&j, RANKS);
		PUT(&j.b, 100, j.stream[0], mpi_collective, .object = j.world, .site = j.fast,
			.op = TRACE_MPI_Win_flush, .root = 2);
		send(&j, early ? 150 : 400, early ? 151 : 401, 2, 1, 7, 4);
		PUT(&j.b, 410, j.stream[0], mpi_return, .op = TRACE_MPI_Win_flush, .site = j.fast);
		end_at(&j, 600);
		assert_float_equal(
			on_path(&j.b, "communication in MPI_COMM_WORLD"), (early ? 0 : 10), 1e-6);
		assert_float_equal(on_path(&j.b, "in MPI_Win_flush"), (early ? 310 : 0), 1e-6);
		finish(&j.b);
	}
}

/* The target, rank 1, posts at 400; the origin, rank 0, has started at 100 without waiting and is held
 * up where it completes. */
static void windows_posted_late(void **state)
{
	enum { POST = TRACE_MPI_TAG_OWN + 1 };
	(void)state;
	struct job j;
	begin_job(&j, RANKS);
	for (unsigned round = 0; round < 2; round++) {
		uint64_t at = 1000 * round;
		part(&j, at + 100, 0, false, 1, 1, POST, TRACE_MPI_Win_start);
		PUT(&j.b, at + 100, j.stream[0], mpi_wait, .op = TRACE_MPI_Win_start, .request = 70,
			.site = j.fast);
		PUT(&j.b, at + 101, j.stream[0], mpi_return, .op = TRACE_MPI_Win_start,
			.site = j.fast);
		PUT(&j.b, at + 150, j.stream[0], mpi_wait, .op = TRACE_MPI_Win_complete,
			.request = 70, .site = j.fast);
		part(&j, at + 400, 1, true, 1, 0, POST, TRACE_MPI_Win_post);
		PUT(&j.b, at + 410, j.stream[0], mpi_done, .request = 70, .peer = -1, .tag = -1);
		PUT(&j.b, at + 410, j.stream[0], mpi_return, .op = TRACE_MPI_Win_complete,
			.site = j.fast);
	}
	end_at(&j, 1600);
	/* (rank 1 waited for nobody before) */
	assert_float_equal(on_path(&j.b, "communication in MPI_COMM_WORLD"), 10, 1e-6);
	finish(&j.b);
}

/* Messages of `nr_sizes` sizes that take 300 ns and a quarter of one for each byte, three of each size,
 * of which one was held up. */
static struct model_link link_of(unsigned nr_sizes)
{
	struct job j;
	struct model_link link;
	uint64_t at = 1000;
	begin_job(&j, 2);
	for (unsigned i = 0; i < 3 * nr_sizes; i++, at += 100000) {
		uint64_t n = 4000 * (i % nr_sizes + 1);
		receive(&j, at, at + 500 + 300 + n / 4 + (i < nr_sizes ? 5000 : 0), 0, 1, 7, 1, 7);
		send(&j, at + 500, at + 510, 1, 0, 7, n);
	}
	PUT(&j.b, at, j.stream[1], process_end, .status = 0);
	PUT(&j.b, at + 10, j.stream[0], process_end, .status = 0);
	analyse(&j.b);
	assert_true(model_link_fit(j.b.model, &link));
	assert_int_equal(link.nr_messages, 3 * nr_sizes);
	assert_int_equal(link.nr_sizes, nr_sizes);
	finish(&j.b);
	return link;
}

static void messages_on_their_way(void **state)
{
	(void)state;
	struct model_link link = link_of(5);
	assert_float_equal(link.latency_ns, 300, 1e-6);
	assert_float_equal(link.ns_per_byte, 0.25, 1e-9);
	/* a third of them were held up */
	assert_float_equal(link.error, 0, 1e-9);
	link = link_of(1);
	assert_float_equal(link.latency_ns, 300 + 1000, 1e-6);
	assert_float_equal(link.ns_per_byte, 0, 1e-9);
}

/* A receiver that comes after the message was sent says nothing of how long it took. */
static void nobody_waited_for_a_message(void **state)
{
	(void)state;
	struct job j;
	struct model_link link;
	begin_job(&j, 2);
	send(&j, 100, 101, 1, 0, 7, 4);
	receive(&j, 200, 210, 0, 1, 7, 1, 7);
	PUT(&j.b, 300, j.stream[1], process_end, .status = 0);
	PUT(&j.b, 310, j.stream[0], process_end, .status = 0);
	analyse(&j.b);
	assert_false(model_link_fit(j.b.model, &link));
	assert_int_equal(link.nr_messages, 0);
	finish(&j.b);
}

/* Ranks that do not agree how many they are, or what they do together; looks that are cancelled. */
static void nonsense_is_survived(void **state)
{
	static const enum trace_mpi op[] = {TRACE_MPI_Scan, TRACE_MPI_Barrier, TRACE_MPI_Exscan};
	(void)state;
	for (unsigned first = 0; first < RANKS; first++) {
		struct job j;
		begin_job(&j, RANKS);
		uint32_t odd = object(&j.b, TRACE_OBJECT_communicator, "odd", 0);
		for (unsigned i = 0; i < RANKS; i++)
			PUT(&j.b, 50, j.stream[i], mpi_comm, .object = odd, .rank = i,
				.size = i + 1);
		for (unsigned i = 0; i < 2 * RANKS; i++) {
			unsigned rank = (i + first) % RANKS;
			PUT(&j.b, 100 + i, j.stream[rank], mpi_collective, .object = odd,
				.site = j.fast, .op = op[i % BASE_COUNT(op)], .root = -1);
			PUT(&j.b, 200 + i, j.stream[rank], mpi_return, .site = j.fast,
				.op = op[i % BASE_COUNT(op)]);
		}
		for (unsigned i = 0; i < 2; i++) {
			PUT(&j.b, 300 + 10 * i, j.stream[0], mpi_receive, .object = j.world,
				.site = j.fast, .peer = 1, .tag = 7, .op = TRACE_MPI_Probe);
			PUT(&j.b, 305 + 10 * i, j.stream[0], mpi_done, .peer = TRACE_MPI_CANCELLED,
				.tag = -1);
		}
		receive(&j, 400, 450, 0, 1, 7, 1, 7);
		send(&j, 440, 441, 1, 0, 7, 4);
		PUT(&j.b, 600, j.stream[0], process_end, .status = 0);
		analyse(&j.b);
		conserved(&j.b, 600);
		finish(&j.b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_sender),
		cmocka_unit_test(ping_pong),
		cmocka_unit_test(tags_overtake),
		cmocka_unit_test(wildcard),
		cmocka_unit_test(late_receiver),
		cmocka_unit_test(collectives),
		cmocka_unit_test(states_say_for_whom),
		cmocka_unit_test(waits_for_the_last_request),
		cmocka_unit_test(looks_that_find_nothing_are_a_wait),
		cmocka_unit_test(looks_that_were_given_up),
		cmocka_unit_test(messages_that_were_looked_at),
		cmocka_unit_test(cancelled),
		cmocka_unit_test(scan_needs_those_below),
		cmocka_unit_test(neighbours_wait_for_neighbours),
		cmocka_unit_test(locks_of_windows),
		cmocka_unit_test(targets_that_come_late),
		cmocka_unit_test(windows_posted_late),
		cmocka_unit_test(messages_on_their_way),
		cmocka_unit_test(nobody_waited_for_a_message),
		cmocka_unit_test(nonsense_is_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
