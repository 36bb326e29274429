/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tsan.c [threads] - accesses of every kind to objects in memory of its own, which is at a fixed
 * address: what a recorder saw there can be told by the address from everything else.
 *
 * With threads: two take turns by an atomic, then each has its part of an array; main reads it
 * after the join.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { N = 40, ROUNDS = 50, PART = 1000 };
#define OBJECTS ((void *)(UINT64_C(0x1000) << 20))

typedef float vector __attribute__((vector_size(16)));
struct wide {
	uint8_t a;
	uint16_t b;
	uint32_t c;
	uint64_t d;
	double f;
	vector v;
	char text[60];
};
struct __attribute__((packed)) odd {
	uint8_t a;
	uint16_t b;
	uint32_t c;
	uint64_t d;
};
struct objects {
	struct wide wide[N], copy;
	struct odd odd[N];
	double matrix[3][N][N];
	volatile int seen;
	_Atomic uint8_t a8;
	_Atomic uint16_t a16;
	_Atomic uint32_t a32;
	_Atomic uint64_t a64;
	unsigned __int128 a128;
	_Atomic uint32_t turn;
	uint32_t message;
	uint64_t part[2][PART];
};
static struct objects *o;

static void plain(void)
{
	for (unsigned i = 0; i < N; i++) {
		struct wide *w = &o->wide[i];
		w->a = (uint8_t)i;
		w->b = (uint16_t)(w->a * 3u);
		w->c += w->b + 1u;
		w->d ^= w->c;
		w->f = (double)w->d * 0.5;
		w->v += (float)w->b;
#ifdef __clang__ /* gcc makes no calls for members of packed structures */
		o->odd[i].b = w->b;
		o->odd[i].c += w->c;
		o->odd[i].d = o->odd[i].c;
#endif
		o->seen = (int)i;
		o->seen++;
	}
}

static __attribute__((noinline)) void multiply(double (*a)[N], double (*b)[N], double (*c)[N])
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			double sum = 0;
			for (int k = 0; k < N; k++)
				sum += a[i][k] * b[k][j];
			c[i][j] = sum;
		}
}

/* Those that the processor does at once. (Not a load: clang leaves an idle one behind the call.) */
static unsigned atomics(void)
{
	unsigned wrong = 0;
	uint32_t expected = 7;
	wrong += atomic_fetch_add(&o->a8, 250) != 0;
	wrong += atomic_fetch_add(&o->a8, 10) != 250; /* 4 */
	wrong += atomic_fetch_sub(&o->a16, 1) != 0;   /* 65535 */
	wrong += atomic_exchange(&o->a32, 5) != 0;
	wrong += atomic_compare_exchange_strong(&o->a32, &expected, 9) || expected != 5;
	wrong += !atomic_compare_exchange_strong(&o->a32, &expected, 9);
	return wrong;
}

static unsigned more_atomics(void)
{
	unsigned wrong = 0;
	unsigned __int128 seen = 0, big = (unsigned __int128)1 << 100;
	o->a16 = 65535;
	wrong += atomic_load_explicit(&o->a16, memory_order_acquire) != 65535;
	wrong += atomic_fetch_and(&o->a16, 0xf0f) != 65535;
	wrong += atomic_fetch_or(&o->a16, 0x10) != 0xf0f;
	wrong += atomic_fetch_xor(&o->a16, 0xf) != 0xf1f;
	wrong += __atomic_fetch_nand((uint64_t *)&o->a64, 12, __ATOMIC_RELAXED) != 0;
	wrong += atomic_load(&o->a64) != UINT64_MAX || o->a16 != 0xf10;
	wrong += !__sync_bool_compare_and_swap(&o->a128, seen, big);
	wrong += __sync_fetch_and_add(&o->a128, 1) != big;
	wrong += __sync_fetch_and_sub(&o->a128, big) != big + 1 || o->a128 != 1;
	return wrong;
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *work(void *argument)
{
	uintptr_t me = (uintptr_t)argument;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		while (atomic_load_explicit(&o->turn, memory_order_acquire) != 2 * i + me)
			sched_yield();
		o->message++; /* reads what the other one has written */
		atomic_store_explicit(&o->turn, (uint32_t)(2 * i + me + 1), memory_order_release);
	}
	for (unsigned i = 0; i < PART; i++)
		o->part[me][i] = i;
	return NULL;
}

static int threads(void)
{
	pthread_t t[2];
	uint64_t sum = 0;
	for (uintptr_t i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, work, (void *)i))
			return 2;
	for (unsigned i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	for (unsigned i = 0; i < PART; i++)
		sum += o->part[0][i] + o->part[1][i];
	o->wide[3].b = 9;
	o->copy = o->wide[3];
	memmove(&o->copy.text, &o->wide[1].text, sizeof o->copy.text);
	unsigned wrong = more_atomics();
	printf("%u %llu %u %u\n", o->message, (unsigned long long)sum, wrong, o->copy.b);
	return o->message != 2 * ROUNDS || sum != PART * (PART - 1ul) || wrong || o->copy.b != 9;
}

int main(int argc, char **argv)
{
	(void)argv;
	o = mmap(OBJECTS, sizeof *o, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (o != OBJECTS)
		return 3;
	if (argc > 1)
		return threads();
	plain();
	multiply(o->matrix[0], o->matrix[1], o->matrix[2]);
	unsigned wrong = atomics();
	printf("%u %u\n", wrong, o->wide[3].b);
	return wrong != 0 || o->wide[3].b != 9;
}
