/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spins MODE - a thread computes and another one waits for it without a call, or nobody does:
 *	flag pause yield cas tas ttas seqlock ring barrier backoff   it waits so
 *	hash sum matrix clear delay chase                            nobody waits: loops as tight
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, SLOTS = 64, WORDS = 1 << 14, SIDE = 160 };

static atomic_int ready, lock, sequence, arrived, generation;
static volatile unsigned long sink;
static unsigned long data[4], table[WORDS];
static struct {
	_Alignas(64) atomic_ulong head;
	_Alignas(64) atomic_ulong tail;
	unsigned long slot[SLOTS];
} ring;

static __attribute__((noinline)) void produce(long n)
{
	unsigned long x = (unsigned long)n;
	for (long i = 0; i < n; i++)
		x = x * 6364136223846793005UL + 1;
	sink = x;
}

enum { WORK = 6000000 };

static __attribute__((noinline)) void await_flag(int value)
{
	while (atomic_load(&ready) < value)
		;
}

static __attribute__((noinline)) void await_pause(int value)
{
	while (atomic_load_explicit(&ready, memory_order_acquire) < value)
		__builtin_ia32_pause();
}

static __attribute__((noinline)) void await_yield(int value)
{
	while (atomic_load(&ready) < value)
		sched_yield();
}

/* (Of who yields most of the time passes in the kernel, where it has no samples.) */
static int nr_rounds = ROUNDS;

static void *flag_maker(void *unused)
{
	for (int i = 1; i <= nr_rounds; i++) {
		produce(WORK);
		atomic_store(&ready, i);
	}
	return unused;
}

#define AWAITS(how)                                                                                \
	static void *flag_taker_##how(void *unused)                                                \
	{                                                                                          \
		for (int i = 1; i <= nr_rounds; i++)                                               \
			await_##how(i);                                                            \
		return unused;                                                                     \
	}
AWAITS(flag)
AWAITS(pause)
AWAITS(yield)

/* ---- locks: both work under it --------------------------------------------------------------- */

static __attribute__((noinline)) void take_tas(void)
{
	while (atomic_exchange(&lock, 1))
		;
}

static __attribute__((noinline)) void take_ttas(void)
{
	for (;;) {
		while (atomic_load_explicit(&lock, memory_order_relaxed))
			__builtin_ia32_pause();
		if (!atomic_exchange(&lock, 1))
			return;
	}
}

static __attribute__((noinline)) void take_cas(void)
{
	int expected;
	do
		expected = 0;
	while (!atomic_compare_exchange_weak(&lock, &expected, 1));
}

static __attribute__((noinline)) void take_backoff(void)
{
	for (int pauses = 1; atomic_exchange(&lock, 1);
		pauses = pauses < 1024 ? 2 * pauses : pauses)
		for (int i = 0; i < pauses; i++)
			__builtin_ia32_pause();
}

#define LOCKS(how)                                                                                 \
	static void *locker_##how(void *unused)                                                    \
	{                                                                                          \
		for (int i = 0; i < 2 * ROUNDS; i++) {                                             \
			take_##how();                                                              \
			produce(WORK / 4);                                                         \
			atomic_store(&lock, 0);                                                    \
			for (int k = 0; k < 50; k++)                                               \
				__asm__ volatile("" ::: "memory");                                 \
		}                                                                                  \
		return unused;                                                                     \
	}
LOCKS(tas)
LOCKS(ttas)
LOCKS(cas)
LOCKS(backoff)

/* ---- a writer that takes long, and a reader -------------------------------------------------- */

static void *seqlock_maker(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		atomic_fetch_add(&sequence, 1);
		produce(WORK);
		for (int k = 0; k < 4; k++)
			data[k] += 1;
		atomic_fetch_add(&sequence, 1);
	}
	return unused;
}

static __attribute__((noinline)) unsigned long seqlock_read(void)
{
	unsigned long a, b;
	int before, after;
	do {
		before = atomic_load_explicit(&sequence, memory_order_acquire);
		a = *(volatile unsigned long *)&data[0];
		b = *(volatile unsigned long *)&data[1];
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&sequence, memory_order_relaxed);
	} while (before & 1 || before != after);
	return a + b;
}

static void *seqlock_taker(void *unused)
{
	while (seqlock_read() < 2 * ROUNDS)
		;
	return unused;
}

/* ---- a ring ---------------------------------------------------------------------------------- */

static void *ring_maker(void *unused)
{
	for (unsigned long i = 0; i < ROUNDS * 10; i++) {
		produce(WORK / 10);
		while (atomic_load(&ring.head) - atomic_load(&ring.tail) == SLOTS)
			;
		ring.slot[i % SLOTS] = i + 1;
		atomic_store(&ring.head, i + 1);
	}
	return unused;
}

static __attribute__((noinline)) unsigned long ring_take(void)
{
	unsigned long tail = atomic_load_explicit(&ring.tail, memory_order_relaxed), value;
	while (atomic_load_explicit(&ring.head, memory_order_acquire) == tail)
		;
	value = ring.slot[tail % SLOTS];
	atomic_store(&ring.tail, tail + 1);
	return value;
}

static void *ring_taker(void *unused)
{
	for (unsigned long i = 0; i < ROUNDS * 10; i++)
		sink = ring_take();
	return unused;
}

/* ---- a barrier ------------------------------------------------------------------------------- */

static __attribute__((noinline)) void meet(void)
{
	int now = atomic_load(&generation);
	if (atomic_fetch_add(&arrived, 1) == 1) {
		atomic_store(&arrived, 0);
		atomic_store(&generation, now + 1);
		return;
	}
	while (atomic_load(&generation) == now)
		;
}

static void *barrier_maker(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		produce(WORK);
		meet();
	}
	return unused;
}

static void *barrier_taker(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		produce(WORK / 20);
		meet();
	}
	return unused;
}

/* ---- nobody waits ---------------------------------------------------------------------------- */

static void *hash_worker(void *unused)
{
	unsigned long seed = 1, found = 0;
	for (long i = 0; i < 3000000; i++) {
		seed = seed * 6364136223846793005UL + 1;
		unsigned long at = seed >> 50;
		for (int k = 0; k < 8 && table[at % WORDS] != seed; k++)
			at++;
		table[at % WORDS] = seed;
		found += at;
	}
	sink = found;
	return unused;
}

static void *sum_worker(void *unused)
{
	unsigned long sum = 0;
	for (int k = 0; k < 4000; k++)
		for (int i = 0; i < WORDS; i++)
			sum += table[i];
	sink = sum;
	return unused;
}

static void *matrix_worker(void *unused)
{
	static double a[SIDE][SIDE], b[SIDE][SIDE];
	double(*c)[SIDE] = calloc(SIDE, sizeof *c);
	for (int k = 0; k < 8 && c; k++)
		for (int i = 0; i < SIDE; i++)
			for (int j = 0; j < SIDE; j++)
				for (int l = 0; l < SIDE; l++)
					c[i][j] += a[i][l] * b[l][j];
	sink = c ? (unsigned long)c[1][1] : 0;
	free(c);
	return unused;
}

static void *clear_worker(void *unused)
{
	char *mine = malloc(1 << 20);
	for (int k = 0; k < 3000 && mine; k++) {
		memset(mine, k, 1 << 20);
		sink = (unsigned long)mine[k];
	}
	free(mine);
	return unused;
}

static void *delay_worker(void *unused)
{
	for (volatile int i = 0; i < 40000000; i++)
		;
	return unused;
}

static void *chase_worker(void *unused)
{
	void **list = malloc(4096 * sizeof *list), **at;
	for (int i = 0; i < 4096; i++)
		list[i] = &list[(i * 1021 + 1) % 4096];
	at = list;
	for (long i = 0; i < 40000000; i++)
		at = *at;
	sink = (unsigned long)at;
	return unused;
}

int main(int argc, char **argv)
{
	static const struct mode {
		const char *name;
		void *(*one)(void *), *(*other)(void *);
	} mode[] = {{"flag", flag_maker, flag_taker_flag}, {"pause", flag_maker, flag_taker_pause},
		{"yield", flag_maker, flag_taker_yield}, {"cas", locker_cas, locker_cas},
		{"tas", locker_tas, locker_tas}, {"ttas", locker_ttas, locker_ttas},
		{"backoff", locker_backoff, locker_backoff},
		{"seqlock", seqlock_maker, seqlock_taker}, {"ring", ring_maker, ring_taker},
		{"barrier", barrier_maker, barrier_taker}, {"hash", hash_worker, sum_worker},
		{"sum", sum_worker, sum_worker}, {"matrix", matrix_worker, matrix_worker},
		{"clear", clear_worker, sum_worker}, {"delay", delay_worker, delay_worker},
		{"chase", chase_worker, sum_worker}};
	for (size_t i = 0; i < sizeof mode / sizeof *mode; i++) {
		pthread_t thread;
		if (argc < 2 || strcmp(argv[1], mode[i].name) != 0)
			continue;
		if (mode[i].other == flag_taker_yield)
			nr_rounds = 4 * ROUNDS;
		pthread_create(&thread, NULL, mode[i].other, NULL);
		mode[i].one(NULL);
		pthread_join(thread, NULL);
		puts("ok");
		return 0;
	}
	return 2;
}
