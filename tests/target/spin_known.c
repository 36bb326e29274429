/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spin_known KIND [THREADS [ROUNDS [WORK]]] - waits of known kinds, and programs that do not wait.
 *
 * What waits is in the section spin_marked (symbols __start_spin_marked, __stop_spin_marked), so
 * that the instructions in there can be counted by other means. Each thread goes ROUNDS times
 * through a critical section of about 2 x WORK instructions. KIND with "hold-" before it: the first
 * thread never lets go; "circle-": each thread has a lock of its own, and waits for its
 * neighbour's.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __clang__
#define MARKED __attribute__((noinline, section("spin_marked")))
#else
#define MARKED __attribute__((noinline, noclone, section("spin_marked")))
#endif
enum { THREADS_MAX = 64, QUEUES = 100 };

static unsigned nr_threads = 2, rounds = 20, work = 20000;
static bool hold, circle;
static volatile unsigned long sink[THREADS_MAX][64];
static unsigned long long counter; /* what the locks protect */
static atomic_uint ready;

static __attribute__((noinline)) void compute(unsigned me)
{
	for (unsigned i = 0; i < work; i++)
		sink[me][i % 8] += i;
}

/* ---- waits ----------------------------------------------------------------------------------- */

struct node {
	_Atomic(struct node *) next;
	atomic_bool locked;
	char pad[112];
};
struct lock {
	atomic_uint word, serving;
	char pad[56];
	_Atomic(struct node *) tail;
};
static struct lock lock[THREADS_MAX];
static struct node node[THREADS_MAX * 2], *mine[THREADS_MAX], *before[THREADS_MAX];

MARKED static void wait_tas(struct lock *l)
{
	while (atomic_exchange(&l->word, 1))
		;
}
MARKED static void wait_ttas(struct lock *l)
{
	do
		while (atomic_load_explicit(&l->word, memory_order_relaxed))
			__builtin_ia32_pause();
	while (atomic_exchange(&l->word, 1));
}
MARKED static void wait_cas(struct lock *l)
{
	unsigned zero = 0;
	while (!atomic_compare_exchange_strong(&l->word, &zero, 1))
		zero = 0;
}
MARKED static void wait_ticket(struct lock *l, unsigned ticket)
{
	while (atomic_load_explicit(&l->serving, memory_order_acquire) != ticket)
		;
}
MARKED static void wait_node(struct node *n)
{
	while (atomic_load_explicit(&n->locked, memory_order_acquire))
		;
}
MARKED static void wait_flag(atomic_uint *word, unsigned value)
{
	while (atomic_load_explicit(word, memory_order_acquire) != value)
		;
}
/* So many looks, and then the kernel. */
MARKED static bool look_often(struct lock *l, unsigned nr)
{
	for (unsigned i = 0; i < nr; i++) {
		if (!atomic_load_explicit(&l->word, memory_order_relaxed))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}
/* An idle loop: hundreds of instructions a round, on 100 words. */
static struct {
	atomic_uint full;
	char pad[60];
} queue[QUEUES];
MARKED static unsigned wait_queues(void)
{
	for (;;)
		for (unsigned i = 0; i < QUEUES; i++)
			if (atomic_load_explicit(&queue[i].full, memory_order_acquire))
				return i;
}
MARKED static void wait_yield(struct lock *l)
{
	while (atomic_exchange(&l->word, 1))
		sched_yield();
}

/* ---- kinds ----------------------------------------------------------------------------------- */

static void tas(struct lock *l, unsigned me)
{
	(void)me;
	wait_tas(l);
}
static void ttas(struct lock *l, unsigned me)
{
	(void)me;
	wait_ttas(l);
}
static void cas(struct lock *l, unsigned me)
{
	(void)me;
	wait_cas(l);
}
static void yielding(struct lock *l, unsigned me)
{
	(void)me;
	wait_yield(l);
}
static void release(struct lock *l, unsigned me)
{
	(void)me;
	atomic_store(&l->word, 0);
}

static void ticket(struct lock *l, unsigned me)
{
	(void)me;
	wait_ticket(l, atomic_fetch_add(&l->word, 1));
}
static void ticket_release(struct lock *l, unsigned me)
{
	(void)me;
	atomic_fetch_add(&l->serving, 1);
}

static void mcs(struct lock *l, unsigned me)
{
	struct node *n = &node[me];
	atomic_store(&n->next, NULL);
	atomic_store(&n->locked, true);
	struct node *last = atomic_exchange(&l->tail, n);
	if (!last)
		return;
	atomic_store(&last->next, n);
	wait_node(n);
}
static void mcs_release(struct lock *l, unsigned me)
{
	struct node *n = &node[me], *self = n, *next;
	if (!atomic_load(&n->next) && atomic_compare_exchange_strong(&l->tail, &self, NULL))
		return;
	while (!(next = atomic_load(&n->next)))
		;
	atomic_store(&next->locked, false);
}

static void clh(struct lock *l, unsigned me)
{
	if (!mine[me])
		mine[me] = &node[me];
	atomic_store(&mine[me]->locked, true);
	before[me] = atomic_exchange(&l->tail, mine[me]);
	if (before[me])
		wait_node(before[me]);
}
static void clh_release(struct lock *l, unsigned me)
{
	(void)l;
	struct node *n = mine[me];
	/* the predecessor's node is free now */
	mine[me] = before[me] ? before[me] : &node[THREADS_MAX + me];
	atomic_store(&n->locked, false);
}

static void futex(struct lock *l, unsigned me)
{
	unsigned zero = 0;
	(void)me;
	if (look_often(l, 5000) && atomic_compare_exchange_strong(&l->word, &zero, 1))
		return;
	while (atomic_exchange(&l->word, 2))
		syscall(SYS_futex, &l->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}
static void futex_release(struct lock *l, unsigned me)
{
	(void)me;
	if (atomic_exchange(&l->word, 0) == 2)
		syscall(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* One after the other. */
static void flag(struct lock *l, unsigned me)
{
	wait_flag(&l->word, me);
}
static void flag_release(struct lock *l, unsigned me)
{
	atomic_store(&l->word, (me + 1) % nr_threads);
}

/* A barrier after each critical section, which threads enter in turn. */
static atomic_uint arrived, sense;
static void barrier(struct lock *l, unsigned me)
{
	(void)l;
	(void)me;
}
static bool is_last(unsigned me)
{
	for (unsigned i = 0; i < me; i++) /* not all at once */
		compute(me);
	if (atomic_fetch_add(&arrived, 1) + 1 < nr_threads)
		return false;
	atomic_store(&arrived, 0);
	return true;
}
static void barrier_release(struct lock *l, unsigned me)
{
	unsigned old = atomic_load(&sense);
	(void)l;
	if (is_last(me))
		atomic_store(&sense, !old);
	else
		wait_flag(&sense, !old);
}
/* The same, asleep: what giving way could bring at most. */
static void asleep_release(struct lock *l, unsigned me)
{
	unsigned old = atomic_load(&sense);
	(void)l;
	if (is_last(me)) {
		atomic_store(&sense, !old);
		syscall(SYS_futex, &sense, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
		return;
	}
	while (atomic_load(&sense) == old)
		syscall(SYS_futex, &sense, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
}

/* The first thread gives work to the others, one after the other. */
static void idle(struct lock *l, unsigned me)
{
	(void)l;
	while (me && (unsigned)(wait_queues() % (nr_threads - 1)) != me - 1)
		;
}
static void idle_release(struct lock *l, unsigned me)
{
	static atomic_uint done;
	(void)l;
	if (me) {
		atomic_store(&queue[me - 1].full, 0);
		atomic_fetch_add(&done, 1);
		return;
	}
	for (unsigned i = 0; i + 1 < nr_threads; i++) {
		atomic_store(&queue[i].full, 1);
		wait_flag(&queue[i].full, 0);
	}
}

/* Controls: nobody waits. */
static void none(struct lock *l, unsigned me)
{
	(void)l;
	(void)me;
}
static char text[8192];
static void scan(struct lock *l, unsigned me)
{
	(void)l;
	for (unsigned i = 0; i < 20; i++)
		for (const volatile char *p = text; *p; p++)
			sink[me][9]++;
	for (unsigned i = 0; i < 20; i++) { /* nothing in memory changes */
		const volatile char *p = text;
		while (*p)
			p++;
		sink[me][10] += (unsigned long)(p - text) + strlen(text + i);
	}
}
static volatile unsigned never;
static void poll_counted(struct lock *l, unsigned me)
{
	(void)l;
	for (unsigned i = 0; i < work && !never; i++)
		;
	sink[me][11]++;
}

static const struct kind {
	const char *name;
	void (*acquire)(struct lock *l, unsigned me), (*release)(struct lock *l, unsigned me);
	bool excludes;
} kinds[] = {
	{"tas", tas, release, true},
	{"ttas", ttas, release, true},
	{"cas", cas, release, true},
	{"yield", yielding, release, true},
	{"ticket", ticket, ticket_release, true},
	{"mcs", mcs, mcs_release, true},
	{"clh", clh, clh_release, true},
	{"futex", futex, futex_release, true},
	{"flag", flag, flag_release, true},
	{"barrier", barrier, barrier_release, false},
	{"asleep", barrier, asleep_release, false},
	{"idle", idle, idle_release, false},
	{"compute", none, none, false},
	{"scan", scan, none, false},
	{"poll", poll_counted, none, false},
};
static const struct kind *kind;

static void *run(void *argument)
{
	unsigned me = (unsigned)(unsigned long)argument;
	if (circle) {
		kind->acquire(&lock[me], me);
		atomic_fetch_add(&ready, 1);
		while (atomic_load(&ready) < nr_threads)
			sched_yield();
		kind->acquire(&lock[(me + 1) % nr_threads], me);
		return NULL;
	}
	for (unsigned i = 0; i < rounds; i++) {
		kind->acquire(&lock[0], me);
		if (hold && !me) {
			atomic_store(&ready, 1);
			for (;;)
				sleep(1000);
		}
		compute(me);
		counter += kind->excludes;
		kind->release(&lock[0], me);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS_MAX];
	const char *name = argc > 1 ? argv[1] : "";
	hold = !strncmp(name, "hold-", 5);
	circle = !strncmp(name, "circle-", 7);
	name += hold ? 5 : circle ? 7 : 0;
	if (argc > 2)
		nr_threads = (unsigned)strtoul(argv[2], NULL, 10);
	if (argc > 3)
		rounds = (unsigned)strtoul(argv[3], NULL, 10);
	if (argc > 4)
		work = (unsigned)strtoul(argv[4], NULL, 10);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kinds[i].name, name))
			kind = &kinds[i];
	if (!kind || nr_threads < (hold || circle || kind->acquire == idle ? 2 : 1) ||
		nr_threads > THREADS_MAX) {
		fprintf(stderr, "usage: spin_known KIND [THREADS [ROUNDS [WORK]]]\n");
		return 2;
	}
	memset(text, 'x', sizeof text - 1);
	for (unsigned long i = 0; i < nr_threads; i++) {
		if (pthread_create(&thread[i], NULL, run, (void *)i))
			return 1;
		while (hold && !atomic_load(&ready))
			sched_yield();
	}
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	for (unsigned i = 0; i < nr_threads; i++)
		pthread_join(thread[i], NULL);
	printf("%s: %llu of %llu\n", name, counter,
		kind->excludes ? (unsigned long long)nr_threads * rounds : 0);
	return kind->excludes && counter != (unsigned long long)nr_threads * rounds;
}
