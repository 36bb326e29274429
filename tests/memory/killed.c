/* SPDX-License-Identifier: Apache-2.0 */
/* killed.c - ROUNDS stores, one place after the other; halfway it has a child with stores of its
 * own (which is not recorded), and at the end it kills itself. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLACES = 4096, ROUNDS = 200000 };
static volatile long place[PLACES] __attribute__((aligned(1 << 16)));
static volatile long other[PLACES] __attribute__((aligned(1 << 16)));

static void store(volatile long *to, int from, int end)
{
	for (int i = from; i < end; i++)
		to[i % PLACES] = i;
}

int main(void)
{
	store(place, 0, ROUNDS / 2);
	pid_t child = fork();
	if (!child) {
		store(other, 0, ROUNDS);
		_exit(0);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		return 1;
	store(place, ROUNDS / 2, ROUNDS);
	kill(getpid(), SIGKILL);
	return 1;
}
