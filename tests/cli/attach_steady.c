/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach_steady.c ladder|tokens|cond|pipe|work [N] - a program in a steady loop until SIGTERM, or for N tenths of a second,
 * whose longest waits are known; it counts its own work, says on standard output whether all of it was done right, and ends with 9.
 *
 * ladder: three threads take turns at mutex `shared`, which each holds for 2 ms. tokens: the same at a
 * semaphore, while they sleep for 4 ms. cond: two threads wait for what one,
 * which needs 2 ms a piece, announces. pipe: one sends a piece every 2 ms, one reads. work: all at once, with threads
 * that come and go, and a call of each kind that must not fail because of us.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t shared = PTHREAD_MUTEX_INITIALIZER, of_items = PTHREAD_MUTEX_INITIALIZER;
static sem_t tokens;
static pthread_cond_t has_items = PTHREAD_COND_INITIALIZER;
static volatile sig_atomic_t stop;
static int made_all;
static long turns[3], turns_made, made, taken, sent, received;
static int ends[2];

static void wrong(const char *what)
{
	printf("wrong: %s: %s\n", what, strerror(errno));
	exit(3);
}

static long long now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

__attribute__((noinline)) static void compute(long us)
{
	for (long long end = now_us() + us; now_us() < end;)
		continue;
}

static void *take_turns(void *number)
{
	while (!stop) {
		pthread_mutex_lock(&shared);
		compute(2000);
		turns[(long)number]++;
		turns_made++;
		pthread_mutex_unlock(&shared);
		compute(100);
	}
	return number;
}

static void *take_tokens(void *number)
{
	while (!stop) {
		sem_wait(&tokens);
		usleep(4000);
		turns[(long)number]++;
		turns_made++;
		sem_post(&tokens);
		compute(100);
	}
	return number;
}

static void *make(void *x)
{
	while (!stop) {
		compute(2000);
		pthread_mutex_lock(&of_items);
		made++;
		pthread_cond_broadcast(&has_items);
		pthread_mutex_unlock(&of_items);
	}
	pthread_mutex_lock(&of_items);
	made_all = 1;
	pthread_cond_broadcast(&has_items);
	pthread_mutex_unlock(&of_items);
	return x;
}

static void *take(void *x)
{
	pthread_mutex_lock(&of_items);
	for (;;) {
		while (made == taken && !made_all)
			if (pthread_cond_wait(&has_items, &of_items))
				wrong("pthread_cond_wait");
		if (made == taken)
			break;
		taken++;
	}
	pthread_mutex_unlock(&of_items);
	return x;
}

static void *send_pieces(void *x)
{
	for (long piece = 1; !stop; piece++) {
		compute(2000);
		if (write(ends[1], &piece, sizeof piece) != sizeof piece)
			wrong("write");
		sent = piece;
	}
	close(ends[1]);
	return x;
}

static void *receive_pieces(void *x)
{
	long piece;
	for (ssize_t n; (n = read(ends[0], &piece, sizeof piece)) != 0; received = piece)
		if (n != sizeof piece || piece != received + 1)
			wrong("read");
	return x;
}

static void *nothing(void *x)
{
	return x;
}

static void *come_and_go(void *x)
{
	while (!stop) {
		pthread_t thread;
		void *memory = malloc(100), *result;
		if (pthread_create(&thread, NULL, nothing, memory))
			wrong("pthread_create");
		pthread_join(thread, &result);
		if (result != memory)
			wrong("pthread_join");
		free(memory);
		usleep(500);
	}
	return x;
}

static void on_term(int signal)
{
	(void)signal;
	stop = 1;
}

enum { THREADS = 8 };
static const struct {
	const char *name;
	void *(*run[THREADS])(void *);
} kinds[] = {
	{"ladder", {take_turns, take_turns, take_turns}},
	{"tokens", {take_tokens, take_tokens, take_tokens}},
	{"cond", {make, take, take}},
	{"pipe", {send_pieces, receive_pieces}},
	{"work", {take_turns, take_turns, make, take, send_pieces, receive_pieces, come_and_go}},
};

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];
	int nr = 0;
	signal(SIGTERM, on_term);
	if (pipe(ends) || sem_init(&tokens, 0, 1))
		return 1;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		for (; argc > 1 && !strcmp(argv[1], kinds[i].name) && kinds[i].run[nr]; nr++)
			pthread_create(&thread[nr], NULL, kinds[i].run[nr], (void *)(long)(nr % 3));
	for (int left = argc > 2 ? atoi(argv[2]) : -1; !stop && left; left--)
		if (nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL) && !stop)
			wrong("nanosleep");
	stop = 1;
	for (int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	puts(turns[0] + turns[1] + turns[2] == turns_made && made == taken && sent == received
			? "right"
			: "wrong");
	return 9;
}
