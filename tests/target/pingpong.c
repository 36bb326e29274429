/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pingpong - two sides that strictly take turns, over --channel=
 *   sysv        two System V semaphores, two processes
 *   socketpair  a stream socket pair, two processes
 *   eventfd     two eventfds, two threads
 * Known answer: all of both sides' work is on the path, and pong_work() has the larger share.
 */
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

enum channel { CHANNEL_SYSV, CHANNEL_SOCKETPAIR, CHANNEL_EVENTFD };
enum { PING, PONG };

static enum channel channel;
static int semaphores = -1, side_fd[2]; /* socket ends; or the eventfds that wake each side */
static uint64_t rounds, ping_units, pong_units, percent, ping_sum, pong_sum;

TARGET_FUNCTION uint64_t ping_work(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

TARGET_FUNCTION uint64_t pong_work(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

static void semaphore_add(int side, short n)
{
	struct sembuf op = {.sem_num = (unsigned short)side, .sem_op = n};
	target_must(!semop(semaphores, &op, 1), "semop");
}

static void give_turn(int self)
{
	uint64_t one = 1;
	if (channel == CHANNEL_SYSV)
		semaphore_add(!self, 1);
	else
		target_must(write(side_fd[channel == CHANNEL_EVENTFD ? !self : self], &one,
				    sizeof(one)) == sizeof(one),
			"write");
}

static void await_turn(int self)
{
	uint64_t got = 0;
	if (channel == CHANNEL_SYSV)
		semaphore_add(self, -1);
	else
		target_must(read(side_fd[self], &got, sizeof(got)) == sizeof(got), "read");
}

static void *run_pong(void *arg)
{
	for (uint64_t i = 0; i < rounds; i++) {
		await_turn(PONG);
		pong_sum = pong_work(pong_sum, target_vary(PONG, i, pong_units) * percent / 100);
		give_turn(PONG);
	}
	return arg;
}

static void run_ping(void)
{
	for (uint64_t i = 0; i < rounds; i++) {
		ping_sum = ping_work(ping_sum, target_vary(PING, i, ping_units));
		give_turn(PING);
		await_turn(PING);
		TARGET_PROGRESS("turn");
	}
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --channel --rounds --ping-units --pong-units");
	const char *name = target_text(argc, argv, "--channel", "sysv");
	channel = !strcmp(name, "socketpair") ? CHANNEL_SOCKETPAIR
		  : !strcmp(name, "eventfd")  ? CHANNEL_EVENTFD
					      : CHANNEL_SYSV;
	rounds = target_number(argc, argv, "--rounds", 1500);
	ping_units = target_number(argc, argv, "--ping-units", 120);
	pong_units = target_number(argc, argv, "--pong-units", 240);
	percent = target_percent(argc, argv);

	if (channel == CHANNEL_EVENTFD) {
		side_fd[PING] = eventfd(0, 0);
		side_fd[PONG] = eventfd(0, 0);
		pthread_t thread;
		target_must(!pthread_create(&thread, NULL, run_pong, NULL), "pthread_create");
		run_ping();
		pthread_join(thread, NULL);
		target_print(ping_sum + pong_sum);
		return 0;
	}
	if (channel == CHANNEL_SYSV) {
		semaphores = semget(IPC_PRIVATE, 2, 0600);
		target_must(semaphores >= 0, "semget");
	} else {
		target_must(!socketpair(AF_UNIX, SOCK_STREAM, 0, side_fd), "socketpair");
	}
	pid_t child = fork();
	target_must(child >= 0, "fork");
	if (!child) {
		run_pong(NULL);
		return 0;
	}
	run_ping();
	int status = 0;
	target_must(waitpid(child, &status, 0) == child, "waitpid");
	if (channel == CHANNEL_SYSV)
		semctl(semaphores, 0, IPC_RMID);
	target_print(ping_sum);
	return status != 0;
}
