/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held_long - a lock that is held while many others are taken, nine times each, among them some
 * that lie as it does in any small table; then the same in a fork's child, which gives up the lock
 * that its parent took. Known answers: how often each is taken, and that the one's hold is longer
 * than those inside of it together.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INNER = 100, TIMES = 9 };

static struct {
	_Alignas(64) pthread_mutex_t lock;
} inner[INNER];
static _Alignas(64) pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;

static void take_inner(void)
{
	for (int i = 0; i < INNER * TIMES; i++) {
		pthread_mutex_lock(&inner[i % INNER].lock);
		pthread_mutex_unlock(&inner[i % INNER].lock);
	}
}

int main(void)
{
	int status = 1;
	pthread_mutex_lock(&outer);
	take_inner();
	pid_t child = fork();
	if (child < 0)
		return 1;
	if (!child)
		take_inner();
	pthread_mutex_unlock(&outer);
	take_inner();
	if (child && (waitpid(child, &status, 0) != child || status))
		return 1;
	return 0;
}
