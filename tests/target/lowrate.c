/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lowrate - a client that sends a request now and then, and a server that spins for it: a lightly
 * loaded system (seed 000, section 4.4). As it is, the server lacks a wait, and `longpole coach`
 * has to say so; with --waits=annotated it has one, and the coach has nothing to say. Known answer:
 * the machine `server`.
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "longpole/annotate.h"
#include "target.h"

static _Atomic uint64_t nr_sent, nr_served;
static uint64_t nr_requests;
static bool annotated;

static void *serve(void *arg)
{
	longpole_begin("server", 0, 0);
	for (uint64_t i = 0; i < nr_requests; i++) {
		if (annotated && nr_sent == nr_served)
			longpole_wait_empty("requests", 0, 1, 0);
		while (nr_sent == nr_served)
			sched_yield();
		longpole_dequeue("requests", 0, 1, 0);
		longpole_state("serve", 0);
		nr_served++;
	}
	longpole_end("server");
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t server;
	target_check(argc, argv, "--waits --requests");
	nr_requests = target_number(argc, argv, "--requests", 10);
	annotated = !strcmp(target_text(argc, argv, "--waits", "missing"), "annotated");
	target_must(!pthread_create(&server, NULL, serve, NULL), "pthread_create");
	for (uint64_t i = 0; i < nr_requests; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 30 * 1000 * 1000}, NULL);
		longpole_enqueue("requests", 0, 1, 0);
		nr_sent++;
	}
	/* The server has long ended when it is joined: the path is the client's. */
	nanosleep(&(struct timespec){.tv_nsec = 30 * 1000 * 1000}, NULL);
	pthread_join(server, NULL);
	target_print(nr_served);
	return 0;
}
