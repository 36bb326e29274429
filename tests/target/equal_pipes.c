/* SPDX-License-Identifier: Apache-2.0 */
/*
 * equal_pipes - eight pipes made at one place, one after the other filled by a thread and emptied
 * by another; of every other one the reader comes first. Known answer: nearly all of the path is
 * in calls on "8 pipes from equal_pipes/feed to equal_pipes/drain", and no pipe is a row by itself.
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "target.h"

enum { PIPES = 8, BLOCK_BYTES = 1 << 17, BLOCKS = 150 };
static int end[PIPES][2];

static void *feed(void *arg)
{
	static char block[BLOCK_BYTES];
	const int *fd = arg;
	for (int k = 0; k < BLOCKS; k++)
		if (write(fd[1], block, sizeof block) != sizeof block)
			_exit(1);
	return NULL;
}

static void *drain(void *arg)
{
	static char block[BLOCK_BYTES];
	const int *fd = arg;
	for (ssize_t left = (ssize_t)BLOCK_BYTES * BLOCKS, n; left > 0; left -= n)
		if ((n = read(fd[0], block, sizeof block)) <= 0)
			_exit(1);
	return NULL;
}

static void make_pipes(void)
{
	for (int i = 0; i < PIPES; i++)
		if (pipe(end[i]))
			_exit(1);
}

static void use(int i)
{
	const struct timespec a_moment = {.tv_nsec = 500000};
	void *(*const work[])(void *) = {feed, drain};
	pthread_t thread[2];
	for (int k = 0; k < 2; k++) {
		pthread_create(&thread[k], NULL, work[(i + k) % 2], end[i]);
		nanosleep(&a_moment, NULL);
	}
	for (int k = 0; k < 2; k++)
		pthread_join(thread[k], NULL);
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "");
	make_pipes();
	for (int i = 0; i < PIPES; i++)
		use(i);
	return 0;
}
