/* SPDX-License-Identifier: Apache-2.0 */
/* memory_kernels.c KERNEL - programs whose memory streams bench/memory_record records. Prints the
 * seconds of the work itself. */
#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	N = 256,
	THREADS = 4,
	REPEATS = 4,
	NODES = 200000,
	ROUNDS = 40000,
	PHASES = 10,
	LOOKS = 200,
	POINTS = 1 << 16,
	KEYS = 1 << 20,
	LU = 256
};

static double a[N][N], b[N][N], c[N][N];
static struct node {
	struct node *left, *right, *next;
	unsigned key;
} * pool;
static struct {
	pthread_mutex_t lock;
	long sum;
	char pad[64];
} bucket[64];
static long result[THREADS];

static unsigned next_random(unsigned *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 17;
	return *s ^= *s << 5;
}

static void *matrix(void *arg)
{
	long id = (long)arg;
	for (int r = 0; r < REPEATS; r++)
		for (long i = id * N / THREADS; i < (id + 1) * N / THREADS; i++)
			for (int j = 0; j < N; j++) {
				double sum = 0;
				for (int k = 0; k < N; k++)
					sum += a[i][k] * b[k][j];
				c[i][j] = sum;
			}
	return NULL;
}

static void *pointers(void *arg)
{
	long id = (long)arg, sum = 0;
	unsigned seed = 77 + (unsigned)id;
	struct node *root = &pool[0];
	for (int i = 0; i < ROUNDS; i++) {
		unsigned key = next_random(&seed);
		for (struct node *n = root; n; n = key < n->key ? n->left : n->right)
			sum += n->key & 1;
	}
	for (struct node *n = root; n; n = n->next)
		sum += n->key & 3;
	result[id] = sum;
	return NULL;
}

static void *mutexes(void *arg)
{
	unsigned seed = 5 + (unsigned)(long)arg;
	for (int i = 0; i < ROUNDS; i++) {
		unsigned n = next_random(&seed) % 64;
		pthread_mutex_lock(&bucket[n].lock);
		for (int k = 0; k < 20; k++)
			bucket[n].sum += k ^ (long)n;
		pthread_mutex_unlock(&bucket[n].lock);
	}
	return NULL;
}

/* Looks a while, then lets others run. */
static void pause_after(int *looks)
{
	if (++*looks < LOOKS)
		return;
	*looks = 0;
	sched_yield();
}

static struct {
	_Alignas(64) atomic_int taken; /* a test-and-test-and-set lock */
	long entries, histogram[256];
	_Alignas(64) atomic_long total;
	_Alignas(64) volatile int turn; /* whose ordered section comes next */
	_Alignas(64) atomic_int arrived, sense;
} shared;

static void spin_lock(void)
{
	int looks = 0;
	do
		while (atomic_load_explicit(&shared.taken, memory_order_relaxed))
			pause_after(&looks);
	while (atomic_exchange_explicit(&shared.taken, 1, memory_order_acquire));
}

static void sense_barrier(int *sense)
{
	int looks = 0;
	*sense = !*sense;
	if (atomic_fetch_add(&shared.arrived, 1) == THREADS - 1) {
		atomic_store(&shared.arrived, 0);
		atomic_store(&shared.sense, *sense);
	}
	while (atomic_load_explicit(&shared.sense, memory_order_acquire) != *sense)
		pause_after(&looks);
}

/* All kinds of locks that issue 6 names: mutexes, a spin lock, atomics, a flag, a barrier. */
static void *locks(void *arg)
{
	int id = (int)(long)arg, sense = atomic_load(&shared.sense), looks = 0;
	unsigned seed = 5 + (unsigned)id;
	for (int phase = 0; phase < PHASES; phase++) {
		for (int i = 0; i < ROUNDS / PHASES; i++) {
			unsigned random = next_random(&seed), n = random % 64;
			pthread_mutex_lock(&bucket[n].lock);
			bucket[n].sum += n;
			pthread_mutex_unlock(&bucket[n].lock);
			if (i % 4 == 0) {
				spin_lock();
				shared.entries++;
				shared.histogram[random >> 8 & 255]++;
				atomic_store_explicit(&shared.taken, 0, memory_order_release);
			}
			if (i % 8 == 0)
				atomic_fetch_add_explicit(&shared.total, n, memory_order_relaxed);
		}
		while (shared.turn != id)
			pause_after(&looks);
		atomic_thread_fence(memory_order_seq_cst);
		shared.turn = (id + 1) % THREADS;
		sense_barrier(&sense);
	}
	return NULL;
}

static void fft(double complex *x, size_t n)
{
	for (size_t i = 1, j = 0; i < n; i++) {
		size_t bit = n >> 1;
		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		if (i < j) {
			double complex t = x[i];
			x[i] = x[j];
			x[j] = t;
		}
	}
	for (size_t length = 2; length <= n; length *= 2) {
		double complex step = cexp(-2 * M_PI * I / (double)length);
		for (size_t i = 0; i < n; i += length) {
			double complex w = 1;
			for (size_t k = 0; k < length / 2; k++, w *= step) {
				double complex u = x[i + k], v = x[i + k + length / 2] * w;
				x[i + k] = u + v;
				x[i + k + length / 2] = u - v;
			}
		}
	}
}

static void *transforms(void *arg)
{
	static double complex x[THREADS][POINTS];
	long id = (long)arg;
	for (int i = 0; i < POINTS; i++)
		x[id][i] = i % 17;
	fft(x[id], POINTS);
	result[id] = (long)creal(x[id][3]);
	return NULL;
}

static void *radix(void *arg)
{
	long id = (long)arg;
	unsigned *from = malloc(KEYS / THREADS * sizeof *from),
		 *to = malloc(KEYS / THREADS * sizeof *to);
	unsigned seed = 9 + (unsigned)id;
	for (int i = 0; i < KEYS / THREADS; i++)
		from[i] = next_random(&seed);
	for (int shift = 0; shift < 32; shift += 8) {
		int count[257] = {0};
		for (int i = 0; i < KEYS / THREADS; i++)
			count[(from[i] >> shift & 255) + 1]++;
		for (int i = 0; i < 256; i++)
			count[i + 1] += count[i];
		for (int i = 0; i < KEYS / THREADS; i++)
			to[count[from[i] >> shift & 255]++] = from[i];
		unsigned *t = from;
		from = to;
		to = t;
	}
	result[id] = from[1];
	free(from);
	free(to);
	return NULL;
}

static void *lu(void *arg)
{
	static double m[THREADS][LU][LU];
	long id = (long)arg;
	for (int i = 0; i < LU; i++)
		for (int j = 0; j < LU; j++)
			m[id][i][j] = i == j ? LU : (i * 7 + j * 3) % 5;
	for (int k = 0; k < LU; k++)
		for (int i = k + 1; i < LU; i++) {
			double f = m[id][i][k] /= m[id][k][k];
			for (int j = k + 1; j < LU; j++)
				m[id][i][j] -= f * m[id][k][j];
		}
	result[id] = (long)m[id][LU - 1][LU - 1];
	return NULL;
}

static void prepare_matrix(void)
{
	for (int i = 0; i < N * N; i++)
		a[i / N][i % N] = i % 13, b[i / N][i % N] = i % 11;
}

static void prepare_pointers(void)
{
	unsigned seed = 1;
	pool = calloc(NODES, sizeof *pool);
	for (int i = 0; i < NODES; i++) {
		struct node *n = &pool[i], **at = &pool;
		n->key = next_random(&seed);
		n->next = i + 1 < NODES ? &pool[i + 1] : NULL;
		for (at = i ? (n->key < pool->key ? &pool->left : &pool->right) : NULL; at && *at;)
			at = n->key < (*at)->key ? &(*at)->left : &(*at)->right;
		if (at)
			*at = n;
	}
}

static void prepare_locks(void)
{
	for (int i = 0; i < 64; i++)
		pthread_mutex_init(&bucket[i].lock, NULL);
}

struct work {
	void *(*run)(void *);
	long id, times;
};

static void *go_round(void *arg)
{
	const struct work *w = arg;
	for (long i = 0; i < w->times; i++)
		w->run((void *)w->id);
	return NULL;
}

/* THREADS in all, however often they go round: cdat's machine has a processor for each. */
static void run_all(void *(*run)(void *), long times)
{
	pthread_t thread[THREADS];
	struct work work[THREADS];
	for (long i = 0; i < THREADS; i++) {
		work[i] = (struct work){run, i, times};
		pthread_create(&thread[i], NULL, go_round, &work[i]);
	}
	for (long i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* KERNEL [TIMES] */
int main(int argc, char **argv)
{
	long times = argc > 2 ? strtol(argv[2], NULL, 10) : 1;
	static const struct {
		const char *name;
		void *(*run)(void *);
		void (*prepare)(void);
	} kernel[] = {{"matrix", matrix, prepare_matrix}, {"pointers", pointers, prepare_pointers},
		{"locks", locks, prepare_locks}, {"mutexes", mutexes, prepare_locks},
		{"fft", transforms, NULL}, {"radix", radix, NULL}, {"lu", lu, NULL}};
	for (size_t k = 0; k < sizeof kernel / sizeof *kernel; k++) {
		struct timespec begin, end;
		if (argc < 2 || strcmp(argv[1], kernel[k].name) != 0)
			continue;
		if (kernel[k].prepare)
			kernel[k].prepare();
		clock_gettime(CLOCK_MONOTONIC, &begin);
		run_all(kernel[k].run, times);
		clock_gettime(CLOCK_MONOTONIC, &end);
		double check = 0; /* so that nothing is computed in vain */
		for (int i = 0; i < N; i++)
			check += c[i][N - 1 - i] + (double)result[i % THREADS];
		fprintf(stderr, "%g\n", check);
		printf("%.6f\n", (double)(end.tv_sec - begin.tv_sec) +
					 (double)(end.tv_nsec - begin.tv_nsec) * 1e-9);
		return 0;
	}
	return 2;
}
