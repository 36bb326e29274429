/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_mpi.c - MPI: messages, requests and collective operations whose answer is known. */
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

/* Who waits for whom in each, and how long: rank 1 comes at 400, the others at 100. */
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
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
