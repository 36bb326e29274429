/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ticker DIRECTORY on|off ROUNDS - two threads write lines under a mutex and make them durable (or
 * not); a third looks after something every 50 ms, as the background thread of a server does, until
 * an event ends it.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 50, NR_WORKERS = 2, LINE_BYTES = 200, CLIENT_NS = 400000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int event_fd, log_fd, durable;
static long rounds;
static volatile uint64_t sink;

static void *tick(void *unused)
{
	struct pollfd poll_fd = {.fd = event_fd, .events = POLLIN};
	while (poll(&poll_fd, 1, TICK_MS) == 0) {
		for (uint64_t i = 0; i < 20000; i++)
			sink += i;
	}
	return unused;
}

static void *work(void *unused)
{
	const struct timespec client = {.tv_nsec = CLIENT_NS};
	char line[LINE_BYTES];
	memset(line, 'x', sizeof(line));
	for (long round = 0; round < rounds; round++) {
		nanosleep(&client, NULL);
		pthread_mutex_lock(&mutex);
		if (write(log_fd, line, sizeof(line)) < 0 || (durable && fdatasync(log_fd)))
			abort();
		pthread_mutex_unlock(&mutex);
	}
	return unused;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	char path[4096];
	snprintf(path, sizeof(path), "%s/ticker.log", argv[1]);
	log_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	event_fd = eventfd(0, 0);
	durable = strcmp(argv[2], "on") == 0;
	rounds = atol(argv[3]);
	pthread_t ticker, workers[NR_WORKERS];
	if (log_fd < 0 || event_fd < 0 || pthread_create(&ticker, NULL, tick, NULL))
		return 1;
	for (int i = 0; i < NR_WORKERS; i++)
		pthread_create(&workers[i], NULL, work, NULL);
	for (int i = 0; i < NR_WORKERS; i++)
		pthread_join(workers[i], NULL);
	uint64_t one = 1;
	if (write(event_fd, &one, sizeof(one)) < 0)
		return 1;
	pthread_join(ticker, NULL);
	return 0;
}
