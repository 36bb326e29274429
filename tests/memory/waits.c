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
#include <linux/futex.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

enum { TIMES = 1000, THREADS = 4, WORDS = 8 };

static _Alignas(64) volatile int slot;
static _Alignas(64) volatile int is_full;
static _Alignas(64) volatile long words[WORDS];

static sem_t empty, full, *named;
static int system_v;                /* empty is its number 0, full 1; messages of types 1, 2 */
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

/* ---- semaphores and descriptors -------------------------------------------------------------- */

enum semaphores { PLAIN, TIMED, CLOCKED, TRIED, SYSTEM_V };
enum descriptors { BYTES, COUNT, VECTORS, SOCKETS, MESSAGES, TYPED, POSIX_MESSAGES };
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

struct message {
	long type;
	char text[8];
};

/* One unit of it. Returns 8 or 1, the bytes; or what failed. */
static ssize_t take_unit(const int *fd)
{
	uint64_t units;
	struct message m;
	struct iovec piece[2] = {{&m, 0}, {&units, 1}};
	struct msghdr head = {.msg_iov = piece, .msg_iovlen = 2};
	switch (how) {
	case COUNT:
		return read(fd[0], &units, sizeof units);
	case VECTORS:
		return readv(fd[0], piece, 2);
	case SOCKETS:
		if (recv(fd[0], &units, 1, MSG_PEEK) != 1) /* takes nothing */
			return -1;
		return recv(fd[0], &units, 1, 0);
	case MESSAGES:
		return recvmsg(fd[0], &head, 0);
	case TYPED:
		return msgrcv(system_v, &m, 1, fd == full_fd ? 2 : 1, 0);
	case POSIX_MESSAGES:
		return mq_receive(fd[0], m.text, sizeof m.text, NULL);
	default:
		return read(fd[0], &units, 1);
	}
}

static ssize_t give_unit(const int *fd)
{
	uint64_t units = 1;
	struct message m = {.type = fd == full_fd ? 2 : 1};
	struct iovec piece[2] = {{&m, 0}, {&units, 1}};
	struct msghdr head = {.msg_iov = piece, .msg_iovlen = 2};
	switch (how) {
	case COUNT:
		return write(fd[1], &units, sizeof units);
	case VECTORS:
		return writev(fd[1], piece, 2);
	case SOCKETS:
		return send(fd[1], &units, 1, 0);
	case MESSAGES:
		return sendmsg(fd[1], &head, 0);
	case TYPED:
		return msgsnd(system_v, &m, 1, 0) ? -1 : 1;
	case POSIX_MESSAGES:
		return mq_send(fd[1], m.text, 1, 0) ? -1 : 1;
	default:
		return write(fd[1], &units, 1);
	}
}

static void take_descriptor(const int *fd)
{
	if (take_unit(fd) != (how == COUNT ? 8 : 1))
		abort();
}

static void give_descriptor(const int *fd)
{
	if (give_unit(fd) != (how == COUNT ? 8 : 1))
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

/* A thread that never waits on a condition, because all that it takes is there when it comes. */
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

/* ---- futexes, and what is done once ---------------------------------------------------------- */

static uint32_t is_empty = 1, has_one;

/* (It looks only where the kernel has said that it may.) */
static void take_word(uint32_t *word)
{
	do
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	while (!__atomic_exchange_n(word, 0, __ATOMIC_ACQ_REL));
}

static void give_word(uint32_t *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void put_futex(int i)
{
	take_word(&is_empty);
	slot = i;
	give_word(&has_one);
}

static int get_futex(void)
{
	take_word(&has_one);
	int i = slot;
	give_word(&is_empty);
	return i;
}

static pthread_once_t once[TIMES];
static once_flag flags[TIMES];
static __thread int next_once;

static void make(void)
{
	queue[next_once] = next_once;
}

static int get_once(void)
{
	pthread_once(&once[next_once], make);
	return queue[next_once++];
}

static int get_call_once(void)
{
	call_once(&flags[next_once], make);
	return queue[next_once++];
}

static void put_once(int i)
{
	if (get_once() != i)
		abort();
}

static void put_call_once(int i)
{
	if (get_call_once() != i)
		abort();
}

/* ---- locks ----------------------------------------------------------------------------------- */

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
	{"readv", VECTORS, put_descriptor, get_descriptor, NULL},
	{"recv", SOCKETS, put_descriptor, get_descriptor, NULL},
	{"recvmsg", MESSAGES, put_descriptor, get_descriptor, NULL},
	{"msgrcv", TYPED, put_descriptor, get_descriptor, NULL},
	{"mq", POSIX_MESSAGES, put_descriptor, get_descriptor, NULL},
	{"futex", 0, put_futex, get_futex, NULL},
	{"once", 0, put_once, get_once, NULL},
	{"call_once", 0, put_call_once, get_call_once, NULL},
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

/* A queue that is opened twice: to receive, and to send. Exit status 77: there are none here. */
static void open_queue(int fd[2], int number)
{
	char name[64];
	struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 8};
	snprintf(name, sizeof name, "/longpole-waits-%d-%d", (int)getpid(), number);
	fd[0] = mq_open(name, O_CREAT | O_EXCL | O_RDONLY, 0600, &attributes);
	fd[1] = mq_open(name, O_WRONLY);
	if (fd[0] < 0 || fd[1] < 0)
		exit(77);
	mq_unlink(name);
}

static void open_descriptors(const struct way *w)
{
	bool failed = false;
	switch (how) {
	case COUNT:
		empty_fd[0] = empty_fd[1] = eventfd(1, 0);
		full_fd[0] = full_fd[1] = eventfd(0, 0);
		return;
	case TYPED:
		system_v = msgget(IPC_PRIVATE, 0600);
		break;
	case POSIX_MESSAGES:
		open_queue(empty_fd, 0);
		open_queue(full_fd, 1);
		break;
	default:
		failed = !strcmp(w->name, "pipe")
				 ? pipe(empty_fd) || pipe(full_fd)
				 : socketpair(AF_UNIX, SOCK_STREAM, 0, empty_fd) ||
					   socketpair(AF_UNIX, SOCK_STREAM, 0, full_fd);
	}
	if (failed)
		abort();
	give_descriptor(empty_fd);
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
	if (w->put == put_descriptor)
		open_descriptors(w);
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
	if (how == TYPED && w.put == put_descriptor)
		msgctl(system_v, IPC_RMID, NULL);
	return 0;
}
