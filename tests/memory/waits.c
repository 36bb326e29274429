/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits.c WAY - threads that wait for each other in a known order, or take turns. By most ways one
 * writes a word 1000 times and another one reads it each time: 1000 words are read that another
 * thread had written, 999 written over. By the rest four threads take a lock 1000 times each, and
 * add to eight words of a line: nothing is written that only others have read, and the line moves
 * at most once each time. They do not run equally fast.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { TIMES = 1000, THREADS = 4, WORDS = 8 };

static _Alignas(64) volatile int slot;
static _Alignas(64) volatile int is_full;
static _Alignas(64) volatile long words[WORDS];

static sem_t empty, full, *named;
static int system_v;                /* empty is its number 0, full 1 */
static int empty_fd[2], full_fd[2]; /* read, write */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t emptied = PTHREAD_COND_INITIALIZER, filled = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static mtx_t mtx;
static cnd_t cnd_emptied, cnd_filled;

static void __attribute__((noinline)) work(int n)
{
	volatile int x = 0;
	for (int i = 0; i < n; i++)
		x += i;
}

static struct timespec in_a_minute(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	t.tv_sec += 60;
	return t;
}

/* ---- semaphores and descriptors ------------------------------------------------------------- */

enum semaphores { PLAIN, TIMED, CLOCKED, TRIED, SYSTEM_V };
enum descriptors { BYTES, COUNT };
static int how; /* of both */

static void operate(const sem_t *s, short by)
{
	struct sembuf op = {.sem_num = s == &full, .sem_op = by};
	if (semop(system_v, &op, 1))
		abort();
}

static void take_semaphore(sem_t *s)
{
	struct timespec t;
	switch (how) {
	case SYSTEM_V:
		operate(s, -1);
		break;
	case TIMED:
		t = in_a_minute(CLOCK_REALTIME);
		sem_timedwait(s, &t);
		break;
	case CLOCKED:
		t = in_a_minute(CLOCK_MONOTONIC);
		sem_clockwait(s, CLOCK_MONOTONIC, &t);
		break;
	case TRIED:
		while (sem_trywait(s))
			sched_yield();
		break;
	default:
		sem_wait(s);
	}
}

static void give_semaphore(sem_t *s)
{
	if (how == SYSTEM_V)
		operate(s, 1);
	else
		sem_post(s);
}

static void take_descriptor(const int *fd)
{
	uint64_t units;
	size_t bytes = how == COUNT ? sizeof units : 1;
	if (read(fd[0], &units, bytes) != (ssize_t)bytes)
		abort();
}

static void give_descriptor(const int *fd)
{
	uint64_t units = 1;
	size_t bytes = how == COUNT ? sizeof units : 1;
	if (write(fd[1], &units, bytes) != (ssize_t)bytes)
		abort();
}

static void put_semaphore(int i)
{
	take_semaphore(&empty);
	slot = i;
	give_semaphore(&full);
}

static int get_semaphore(void)
{
	take_semaphore(&full);
	int i = slot;
	give_semaphore(&empty);
	return i;
}

static void put_descriptor(int i)
{
	take_descriptor(empty_fd);
	slot = i;
	give_descriptor(full_fd);
}

static int get_descriptor(void)
{
	take_descriptor(full_fd);
	int i = slot;
	give_descriptor(empty_fd);
	return i;
}

/* ---- conditions ------------------------------------------------------------------------------ */

#define CONDITION(name, lock, unlock, wait, signal, mutex, emptied, filled)                        \
	static void put_##name(int i)                                                              \
	{                                                                                          \
		lock(mutex);                                                                       \
		while (is_full)                                                                    \
			wait(emptied, mutex);                                                      \
		slot = i;                                                                          \
		is_full = 1;                                                                       \
		signal(filled);                                                                    \
		unlock(mutex);                                                                     \
	}                                                                                          \
	static int get_##name(void)                                                                \
	{                                                                                          \
		lock(mutex);                                                                       \
		while (!is_full)                                                                   \
			wait(filled, mutex);                                                       \
		int i = slot;                                                                      \
		is_full = 0;                                                                       \
		signal(emptied);                                                                   \
		unlock(mutex);                                                                     \
		return i;                                                                          \
	}
CONDITION(cond, pthread_mutex_lock, pthread_mutex_unlock, pthread_cond_wait, pthread_cond_signal,
	&mutex, &emptied, &filled)
CONDITION(cnd, mtx_lock, mtx_unlock, cnd_wait, cnd_signal, &mtx, &cnd_emptied, &cnd_filled)

/* Who never waits on a condition, because all that it takes is there when it comes. */
static int queue[TIMES], nr_put, nr_got;

static void put_late(int i)
{
	pthread_mutex_lock(&mutex);
	queue[nr_put++] = i;
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&mutex);
}

static int get_late(void)
{
	pthread_mutex_lock(&mutex);
	while (nr_put < (nr_got ? nr_got + 1 : TIMES))
		pthread_cond_wait(&filled, &mutex);
	int i = queue[nr_got++];
	pthread_mutex_unlock(&mutex);
	return i;
}

/* ---- locks -------------------------------------------------------------------------------------
 */

static void try_mutex(void)
{
	while (pthread_mutex_trylock(&mutex))
		sched_yield();
}

#define LOCK(name, take, give)                                                                     \
	static void lock_##name(void)                                                              \
	{                                                                                          \
		take;                                                                              \
		for (int k = 0; k < WORDS; k++)                                                    \
			words[k] = words[k] + 1;                                                   \
		give;                                                                              \
	}
LOCK(mutex, pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex))
LOCK(trylock, try_mutex(), pthread_mutex_unlock(&mutex))
LOCK(rwlock, pthread_rwlock_wrlock(&rwlock), pthread_rwlock_unlock(&rwlock))
LOCK(spin, pthread_spin_lock(&spin), pthread_spin_unlock(&spin))
LOCK(mtx, mtx_lock(&mtx), mtx_unlock(&mtx))
LOCK(semaphore, sem_wait(&empty), sem_post(&empty))
LOCK(named, sem_wait(named), sem_post(named))

/* ---- ways ------------------------------------------------------------------------------------ */

static const struct way {
	const char *name;
	int how;
	void (*put)(int);
	int (*get)(void);
	void (*lock)(void);
} ways[] = {
	{"semaphore", PLAIN, put_semaphore, get_semaphore, NULL},
	{"timedwait", TIMED, put_semaphore, get_semaphore, NULL},
	{"clockwait", CLOCKED, put_semaphore, get_semaphore, NULL},
	{"trywait", TRIED, put_semaphore, get_semaphore, NULL},
	{"systemv", SYSTEM_V, put_semaphore, get_semaphore, NULL},
	{"pipe", BYTES, put_descriptor, get_descriptor, NULL},
	{"sockets", BYTES, put_descriptor, get_descriptor, NULL},
	{"eventfd", COUNT, put_descriptor, get_descriptor, NULL},
	{"cond", 0, put_cond, get_cond, NULL},
	{"cnd", 0, put_cnd, get_cnd, NULL},
	{"late", 0, put_late, get_late, NULL},
	{"mutex", 0, NULL, NULL, lock_mutex},
	{"trylock", 0, NULL, NULL, lock_trylock},
	{"rwlock", 0, NULL, NULL, lock_rwlock},
	{"spin", 0, NULL, NULL, lock_spin},
	{"mtx", 0, NULL, NULL, lock_mtx},
	{"semlock", 0, NULL, NULL, lock_semaphore},
	{"named", 0, NULL, NULL, lock_named},
};

static void *produce(void *way)
{
	const struct way w = *(const struct way *)way;
	for (int i = 0; i < TIMES; i++) {
		work(i * 7 % 50);
		w.put(i);
	}
	return NULL;
}

static void *consume(void *way)
{
	const struct way w = *(const struct way *)way;
	if (w.get == get_late)
		usleep(100000);
	for (int i = 0; i < TIMES; i++) {
		if (w.get() != i)
			abort();
		work(i * 13 % 90);
	}
	return NULL;
}

static void *take_turns(void *way)
{
	const struct way w = *(const struct way *)way;
	for (int i = 0; i < TIMES; i++) {
		work(i * 7 % 60);
		w.lock();
	}
	return NULL;
}

static void prepare(const struct way *w)
{
	char name[64];
	how = w->how;
	sem_init(&empty, 0, 1);
	sem_init(&full, 0, 0);
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	mtx_init(&mtx, mtx_plain);
	cnd_init(&cnd_emptied);
	cnd_init(&cnd_filled);
	snprintf(name, sizeof name, "/longpole-waits-%d", (int)getpid());
	if (w->lock == lock_named) {
		named = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
		sem_unlink(name);
		named = named == SEM_FAILED ? &empty : named;
	}
	if (how == SYSTEM_V && w->put == put_semaphore) {
		system_v = semget(IPC_PRIVATE, 2, 0600);
		semctl(system_v, 0, SETVAL, 1);
		semctl(system_v, 1, SETVAL, 0);
	}
	if (w->put != put_descriptor)
		return;
	if (how == COUNT) {
		empty_fd[0] = empty_fd[1] = eventfd(1, 0);
		full_fd[0] = full_fd[1] = eventfd(0, 0);
		return;
	}
	if (!strcmp(w->name, "pipe") ? pipe(empty_fd) || pipe(full_fd)
				     : socketpair(AF_UNIX, SOCK_STREAM, 0, empty_fd) ||
					       socketpair(AF_UNIX, SOCK_STREAM, 0, full_fd))
		abort();
	give_descriptor(empty_fd);
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	size_t n = 0;
	while (n < sizeof ways / sizeof *ways && strcmp(ways[n].name, argc > 1 ? argv[1] : ""))
		n++;
	if (n == sizeof ways / sizeof *ways)
		return 2;
	struct way w = ways[n];
	prepare(&w);
	int nr = w.lock ? THREADS : 2;
	for (int i = 0; i < nr; i++)
		if (pthread_create(&t[i], NULL, w.lock ? take_turns : i ? consume : produce, &w))
			return 1;
	for (int i = 0; i < nr; i++)
		pthread_join(t[i], NULL);
	if (how == SYSTEM_V && w.put == put_semaphore)
		semctl(system_v, 0, IPC_RMID);
	return 0;
}
