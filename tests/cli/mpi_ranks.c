/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_ranks.c - MPI programs whose answer is known by construction: rank 1 (of 2 and more) works
 * longer than the others in each round, by the clock.
 *
 * usage: mpi_ranks MODE [ROUNDS [SLOW_US [sleep [FAST_US]]]]
 */
#include <mpi.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLOW = 1, LARGE = 1 << 20 };

static int rank, nr_ranks, nr_rounds = 40, slow_us = 10000, fast_us = 2000, sleeps;
static int received[8], large[LARGE];
static volatile unsigned long sink;

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e6 * (double)t.tv_sec + (double)t.tv_nsec / 1e3;
}

/* Asleep: then it does not matter who else wants the processors. */
static inline __attribute__((always_inline)) void pass_us(int us)
{
	struct timespec time = {.tv_nsec = us * 1000L};
	if (sleeps) {
		nanosleep(&time, NULL);
		return;
	}
	for (double end = now_us() + us; now_us() < end;)
		for (int i = 0; i < 1000; i++)
			sink = sink + 1;
}

static __attribute__((noinline)) void fast_work(void)
{
	pass_us(fast_us);
	sink = sink + 1;
}

static __attribute__((noinline)) void slow_work(void)
{
	pass_us(slow_us);
	sink = sink + 1;
}

static void work(void)
{
	if (rank == SLOW)
		slow_work();
	else
		fast_work();
}

/* Rank 0 waits for what rank 1 sends late. */
static void late_sender(int round)
{
	work();
	if (rank == SLOW)
		MPI_Send(&round, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
	else if (rank == 0)
		MPI_Recv(received, 1, MPI_INT, SLOW, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* The same from whoever sends. */
static void wildcard(int round)
{
	work();
	if (rank == SLOW)
		MPI_Send(&round, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
	else if (rank == 0)
		MPI_Recv(received, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE);
}

/* Rank 0's message is too long to be kept for rank 1, which comes late for it. */
static void late_receiver(int round)
{
	(void)round;
	work();
	if (rank == 0)
		MPI_Send(large, LARGE, MPI_INT, SLOW, 6, MPI_COMM_WORLD);
	else if (rank == SLOW)
		MPI_Recv(large, LARGE, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void slow_allreduce(int round)
{
	work();
	MPI_Allreduce(&round, received, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void barrier(int round)
{
	(void)round;
	work();
	MPI_Barrier(MPI_COMM_WORLD);
}

static void alltoall(int round)
{
	int send[8] = {round};
	work();
	MPI_Alltoall(send, 1, MPI_INT, received, 1, MPI_INT, MPI_COMM_WORLD);
}

/* Each gives to the next what it got from the one before. */
static void ring(int round)
{
	int next = (rank + 1) % nr_ranks, last = (rank + nr_ranks - 1) % nr_ranks;
	work();
	MPI_Sendrecv(&round, 1, MPI_INT, next, 1, received, 1, MPI_INT, last, 1, MPI_COMM_WORLD,
		MPI_STATUS_IGNORE);
}

static void halo(int round)
{
	int next = (rank + 1) % nr_ranks, last = (rank + nr_ranks - 1) % nr_ranks;
	MPI_Request request[4];
	work();
	MPI_Irecv(&received[0], 1, MPI_INT, last, 1, MPI_COMM_WORLD, &request[0]);
	MPI_Irecv(&received[1], 1, MPI_INT, next, 2, MPI_COMM_WORLD, &request[1]);
	MPI_Isend(&round, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &request[2]);
	MPI_Isend(&round, 1, MPI_INT, last, 2, MPI_COMM_WORLD, &request[3]);
	MPI_Waitall(4, request, MPI_STATUSES_IGNORE);
}

static void persistent(int round)
{
	static MPI_Request request[2];
	static int sent;
	int next = (rank + 1) % nr_ranks, last = (rank + nr_ranks - 1) % nr_ranks;
	if (!round) {
		MPI_Recv_init(received, 1, MPI_INT, last, 1, MPI_COMM_WORLD, &request[0]);
		MPI_Send_init(&sent, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &request[1]);
	}
	work();
	MPI_Startall(2, request);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
}

/* The root, rank 0, waits for all; nobody waits for it but in the barrier now and then. */
static void reduce(int round)
{
	work();
	MPI_Reduce(&round, received, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
}

static void bcast(int round)
{
	work();
	MPI_Bcast(&round, 1, MPI_INT, SLOW, MPI_COMM_WORLD);
}

/* Rank 1 is in one half with rank 3, or with the odd ones there are; only that half waits. */
static void split(int round)
{
	static MPI_Comm half = MPI_COMM_NULL;
	if (half == MPI_COMM_NULL)
		MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &half);
	work();
	MPI_Allreduce(&round, received, 1, MPI_INT, MPI_SUM, half);
}

static void overlap(int round)
{
	MPI_Request request;
	MPI_Iallreduce(&round, received, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	work();
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A ping-pong of 8 bytes: what a call costs. */
static void pingpong(int round)
{
	double data = round;
	if (rank == 0) {
		MPI_Send(&data, 1, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
		MPI_Recv(&data, 1, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == 1) {
		MPI_Recv(&data, 1, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(&data, 1, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD);
	}
}

static void aborts(int round)
{
	work();
	if (rank == SLOW && round == 3)
		MPI_Abort(MPI_COMM_WORLD, 7);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 1 ends in other ways than it should, for which the others wait. */
static void crashes(int round)
{
	work();
	if (rank == SLOW && round == 3)
		raise(SIGSEGV);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void killed(int round)
{
	work();
	if (rank == SLOW && round == 3)
		raise(SIGKILL);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void leaves(int round)
{
	work();
	if (rank == SLOW && round == 3)
		_exit(4);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 puts into the others' memory; rank 1 comes late to the fence that ends it. */
static void window(int round)
{
	static MPI_Win shared;
	if (!round)
		MPI_Win_create(received, sizeof received, sizeof *received, MPI_INFO_NULL,
			MPI_COMM_WORLD, &shared);
	MPI_Win_fence(0, shared);
	if (rank == 0)
		MPI_Put(&round, 1, MPI_INT, SLOW, 0, 1, MPI_INT, shared);
	work();
	MPI_Win_fence(0, shared);
	if (round == nr_rounds - 1)
		MPI_Win_free(&shared);
}

/* Each begins when the one before is through. */
static void wavefront(int round)
{
	if (rank)
		MPI_Recv(received, 1, MPI_INT, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	work();
	if (rank < nr_ranks - 1)
		MPI_Send(&round, 1, MPI_INT, rank + 1, 1, MPI_COMM_WORLD);
}

/* Rank 0 gives a new task to whoever is through with one. */
static void master(int round)
{
	MPI_Status status;
	if (rank) {
		work();
		MPI_Send(&round, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
		MPI_Recv(received, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	for (int i = 1; i < nr_ranks; i++) {
		MPI_Recv(received, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
		MPI_Send(&round, 1, MPI_INT, status.MPI_SOURCE, 2, MPI_COMM_WORLD);
	}
}

/* Of rank 1's two threads (with OpenMP) the second works longer. */
static void hybrid(int round)
{
#pragma omp parallel num_threads(2)
	{
#ifdef _OPENMP
		if (rank == SLOW && omp_get_thread_num() == 0)
			fast_work();
		else
#endif
			work();
	}
	MPI_Allreduce(&round, received, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* ---- looking whether something is there ------------------------------------------------------- */

/* Rank 1 sends to rank 0 when it has worked. */
static void send_late(int round, int tag)
{
	work();
	if (rank == SLOW)
		MPI_Send(&round, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
}

static void polls(int round)
{
	MPI_Request request;
	int flag = rank != 0;
	if (rank == 0)
		MPI_Irecv(received, 1, MPI_INT, SLOW, 5, MPI_COMM_WORLD, &request);
	send_late(round, 5);
	while (!flag)
		MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}

/* Two kinds of looks in turn; the first never finds anything. */
static void polls_in_turn(int round)
{
	MPI_Status status;
	int flag = 0, other = 0;
	send_late(round, 5);
	while (rank == 0 && !flag) {
		MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &other, MPI_STATUS_IGNORE);
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
	}
	if (rank == 0)
		MPI_Recv(received, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
			MPI_STATUS_IGNORE);
}

static void polls_status(int round)
{
	MPI_Request request;
	int flag = rank != 0;
	if (rank == 0)
		MPI_Irecv(received, 1, MPI_INT, SLOW, 5, MPI_COMM_WORLD, &request);
	send_late(round, 5);
	while (!flag)
		MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
	if (rank == 0)
		MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* A program that works between two looks does not wait: here rank 0 does it all, in slow_work. */
static void works_between(int round)
{
	MPI_Request request;
	int flag = 0;
	if (rank == SLOW) {
		MPI_Recv(received, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(&round, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
		return;
	}
	if (rank)
		return;
	MPI_Irecv(received, 1, MPI_INT, SLOW, 6, MPI_COMM_WORLD, &request);
	for (int i = 0; i < 10; i++) {
		MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
		pass_us(slow_us / 10);
	}
	MPI_Send(&round, 1, MPI_INT, SLOW, 5, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void probe(int round)
{
	MPI_Status status;
	send_late(round, 5);
	if (rank)
		return;
	MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
	MPI_Recv(received, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
		MPI_STATUS_IGNORE);
}

static void matched_probe(int round)
{
	MPI_Message message;
	MPI_Request request;
	int flag = 0;
	send_late(round, 5);
	if (rank)
		return;
	if (round % 2) {
		MPI_Mprobe(SLOW, 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
		MPI_Mrecv(received, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
		return;
	}
	while (!flag)
		MPI_Improbe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
	MPI_Imrecv(received, 1, MPI_INT, &message, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Of two receives the first is cancelled: the message is the second's. */
static void cancel(int round)
{
	MPI_Request request[2];
	if (rank == 0)
		for (int i = 0; i < 2; i++)
			MPI_Irecv(&received[i], 1, MPI_INT, SLOW, 5, MPI_COMM_WORLD, &request[i]);
	if (rank == 0) {
		MPI_Cancel(&request[0]);
		MPI_Wait(&request[0], MPI_STATUS_IGNORE);
		MPI_Send(&round, 1, MPI_INT, SLOW, 6, MPI_COMM_WORLD);
	} else if (rank == SLOW) {
		MPI_Recv(received, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	send_late(round, 5);
	if (rank == 0)
		MPI_Wait(&request[1], MPI_STATUS_IGNORE);
}

/* ---- some of the ranks ------------------------------------------------------------------------ */

/* Ranks above 1 wait for it, rank 0 for nobody. */
static void scan(int round)
{
	work();
	if (round % 2)
		MPI_Scan(&round, received, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	else
		MPI_Exscan(&round, received, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void neighbors(int round)
{
	static MPI_Comm line = MPI_COMM_NULL;
	MPI_Request request;
	int periodic = 1, send[2] = {round, round};
	if (line == MPI_COMM_NULL)
		MPI_Cart_create(MPI_COMM_WORLD, 1, &nr_ranks, &periodic, 0, &line);
	work();
	if (round % 2) {
		MPI_Neighbor_alltoall(send, 1, MPI_INT, received, 1, MPI_INT, line);
		return;
	}
	MPI_Ineighbor_allgather(&round, 1, MPI_INT, received, 1, MPI_INT, line, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* ---- windows, files --------------------------------------------------------------------------- */

static MPI_Win memory;

static void memory_begin(int round)
{
	if (!round)
		MPI_Win_create(received, sizeof received, sizeof *received, MPI_INFO_NULL,
			MPI_COMM_WORLD, &memory);
}

static void memory_end(int round)
{
	if (round == nr_rounds - 1)
		MPI_Win_free(&memory);
}

/* Rank `origin` puts into rank `target`; the others have nothing to do with it. */
static void put_in_epoch(int round, int origin, int target)
{
	MPI_Group all, one;
	int other = rank == origin ? target : origin;
	memory_begin(round);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 1, &other, &one);
	if (rank == origin) {
		if (origin != SLOW)
			fast_work();
		MPI_Win_start(one, 0, memory);
		MPI_Put(&round, 1, MPI_INT, target, 0, 1, MPI_INT, memory);
		if (origin == SLOW)
			slow_work();
		MPI_Win_complete(memory);
	} else if (rank == target) {
		work();
		MPI_Win_post(one, 0, memory);
		MPI_Win_wait(memory);
	}
	MPI_Group_free(&one);
	MPI_Group_free(&all);
	memory_end(round);
}

static void late_post(int round)
{
	put_in_epoch(round, 0, SLOW);
}

static void late_complete(int round)
{
	put_in_epoch(round, SLOW, 0);
}

/* Rank 1 holds the lock of its own memory while it works, and rank 0 wants it. */
static void lock(int round)
{
	memory_begin(round);
	if (rank == SLOW) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, SLOW, 0, memory);
		MPI_Send(&round, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
		slow_work();
		MPI_Win_unlock(SLOW, memory);
		MPI_Recv(received, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == 0) {
		MPI_Recv(received, 1, MPI_INT, SLOW, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, SLOW, 0, memory);
		MPI_Put(&round, 1, MPI_INT, SLOW, 0, 1, MPI_INT, memory);
		MPI_Win_unlock(SLOW, memory);
		MPI_Send(&round, 1, MPI_INT, SLOW, 6, MPI_COMM_WORLD);
	}
	memory_end(round);
}

/* All write together what rank 1 has late. */
static void file(int round)
{
	static MPI_File out;
	if (!round)
		MPI_File_open(MPI_COMM_WORLD, "mpi_ranks.data", MPI_MODE_CREATE | MPI_MODE_WRONLY,
			MPI_INFO_NULL, &out);
	work();
	MPI_File_write_at_all(out, (MPI_Offset)rank * (MPI_Offset)sizeof round, &round, 1, MPI_INT,
		MPI_STATUS_IGNORE);
	if (round == nr_rounds - 1)
		MPI_File_close(&out);
}

/* Ranks that this job starts are a world of their own. */
static void spawns(int round)
{
	MPI_Comm others = MPI_COMM_NULL;
	char *argument[] = {"barrier", "3", "1000", NULL};
	if (round)
		return;
	MPI_Comm_spawn("./mpi_ranks", argument, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others,
		MPI_ERRCODES_IGNORE);
	MPI_Comm_disconnect(&others);
}

static const struct {
	const char *name;
	void (*round)(int round);
} modes[] = {{"late_sender", late_sender}, {"wildcard", wildcard}, {"late_receiver", late_receiver},
	{"allreduce", slow_allreduce}, {"barrier", barrier}, {"alltoall", alltoall}, {"ring", ring},
	{"halo", halo}, {"persistent", persistent}, {"reduce", reduce}, {"bcast", bcast},
	{"split", split}, {"window", window}, {"overlap", overlap}, {"pingpong", pingpong},
	{"wavefront", wavefront}, {"master", master}, {"hybrid", hybrid}, {"polls", polls},
	{"polls_in_turn", polls_in_turn}, {"polls_status", polls_status},
	{"works_between", works_between}, {"probe", probe}, {"matched_probe", matched_probe},
	{"cancel", cancel}, {"scan", scan}, {"neighbors", neighbors}, {"late_post", late_post},
	{"late_complete", late_complete}, {"lock", lock}, {"file", file}, {"spawns", spawns},
	{"aborts", aborts}, {"crashes", crashes}, {"killed", killed}, {"leaves", leaves}};

int main(int nr, char **argument)
{
	MPI_Comm parent;
	void (*round)(int) = NULL;
	MPI_Init(&nr, &argument);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nr_ranks);
	for (size_t i = 0; nr > 1 && i < sizeof modes / sizeof *modes; i++)
		if (!strcmp(argument[1], modes[i].name))
			round = modes[i].round;
	if (!round || nr_ranks < 2 || nr_ranks > 8)
		MPI_Abort(MPI_COMM_WORLD, 2);
	if (nr > 2)
		nr_rounds = atoi(argument[2]);
	if (nr > 3)
		slow_us = atoi(argument[3]);
	sleeps = nr > 4;
	if (nr > 5)
		fast_us = atoi(argument[5]);
	MPI_Barrier(MPI_COMM_WORLD);
	double begin = now_us();
	for (int i = 0; i < nr_rounds; i++)
		round(i);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("%s %.1f us a round\n", argument[1], (now_us() - begin) / nr_rounds);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL)
		MPI_Comm_disconnect(&parent);
	MPI_Finalize();
	return 0;
}
