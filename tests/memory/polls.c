/* SPDX-License-Identifier: Apache-2.0 */
/* polls.c [index | pair] - a thread that waits for another one by reading a variable; index: two
 * threads that count in the same variable, of main's frame, as in a parallel loop whose index is
 * shared; pair: in two variables of one line, each in several places. */
#include <pthread.h>
#include <unistd.h>

enum { TURNS = 3, POLLS = 300000, ROUNDS = 5000 };
static volatile int turn __attribute__((aligned(64)));
static volatile long polls __attribute__((aligned(64)));

static volatile long left __attribute__((aligned(64), section("pair"), no_reorder));
static volatile long right __attribute__((section("pair"), no_reorder));

static void *wait_for_turns(void *arg)
{
	for (int i = 1; i <= TURNS; i++)
		while (turn < i)
			polls++;
	return arg;
}

static void *count(void *index)
{
	for (*(volatile int *)index = 0; *(volatile int *)index < ROUNDS;)
		++*(volatile int *)index; /* counts */
	return NULL;
}

#define COUNT_IN(variable)                                                                         \
	for (int i = 0; i < 900; i++)                                                              \
		variable++;                                                                        \
	for (int i = 0; i < 600; i++)                                                              \
		variable++;                                                                        \
	for (int i = 0; i < 300; i++)                                                              \
		variable++;

static void *count_left(void *arg)
{
	COUNT_IN(left)
	return arg;
}

static void *count_right(void *arg)
{
	COUNT_IN(right)
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread[2];
	int index = 0;
	if (argc > 1) {
		for (int i = 0; i < 2; i++)
			pthread_create(&thread[i], NULL,
				*argv[1] == 'i' ? count
				: i             ? count_right
						: count_left,
				&index);
		for (int i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
		return 0;
	}
	pthread_create(&thread[0], NULL, wait_for_turns, NULL);
	for (long i = 1; i <= TURNS; i++) {
		while (polls < i * POLLS)
			usleep(1000);
		turn++;
	}
	pthread_join(thread[0], NULL);
	return 0;
}
