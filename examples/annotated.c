/* SPDX-License-Identifier: Apache-2.0 */
/*
 * annotated - a parser and a printer with a hand-made ring between them that spins: no system call,
 * no lock, nothing that a recorder could see by itself. The annotations say what it is.
 *
 *     cc -O2 -pthread -Iinclude examples/annotated.c -o annotated
 *     longpole record ./annotated && longpole report
 *
 * annotated [REQUESTS [ROUNDS]]: how many, and how much work each is. Says how fast it was.
 */
#include <longpole/annotate.h>

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SLOTS = 64 };

static struct {
	_Atomic uint64_t put, taken;
	uint64_t request[SLOTS];
} ring;

static uint64_t nr_requests = 20000, nr_rounds = 500, sum;

static uint64_t work(uint64_t seed, uint64_t rounds)
{
	while (rounds--)
		seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed;
}

static void *parse_all(void *unused)
{
	longpole_begin("parser", 0, 0);
	for (uint64_t i = 0; i < nr_requests; i++) {
		longpole_get_id(); /* each request is a connection: the queue hands it on */
		longpole_state("parse", 0);
		uint64_t parsed = work(i, nr_rounds * 3 / 5);
		if (ring.put - ring.taken == SLOTS) {
			longpole_wait_full("requests", &ring, 1, 0);
			while (ring.put - ring.taken == SLOTS)
				sched_yield();
		}
		ring.request[ring.put % SLOTS] = parsed;
		longpole_enqueue("requests", &ring, 1, 0); /* before others can see it */
		ring.put++;
	}
	longpole_end("parser");
	return unused;
}

static void *print_all(void *unused)
{
	longpole_begin("printer", 0, 0);
	for (uint64_t i = 0; i < nr_requests; i++) {
		if (ring.put == ring.taken) {
			longpole_wait_empty("requests", &ring, 1, 0);
			while (ring.put == ring.taken)
				sched_yield();
		}
		longpole_dequeue_state("requests", &ring, 1, 0, "print"); /* after getting it */
		uint64_t parsed = ring.request[i % SLOTS];
		ring.taken++; /* said and done: who waits for the place waits no longer */
		sum += work(parsed, nr_rounds);
	}
	longpole_end("printer");
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t parser, printer;
	struct timespec begin, end;
	if (argc > 1)
		nr_requests = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		nr_rounds = strtoull(argv[2], NULL, 10);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	longpole_resize("requests", &ring, 0, LONGPOLE_RESET);
	if (pthread_create(&parser, NULL, parse_all, NULL) ||
		pthread_create(&printer, NULL, print_all, NULL))
		return 1;
	pthread_join(parser, NULL);
	pthread_join(printer, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%llx\n", (unsigned long long)sum);
	fprintf(stderr, "%.0f requests a second\n",
		(double)nr_requests / ((double)(end.tv_sec - begin.tv_sec) +
					      1e-9 * (double)(end.tv_nsec - begin.tv_nsec)));
	return 0;
}
