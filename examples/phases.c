/* SPDX-License-Identifier: Apache-2.0 */
/* phases.c - a program that says what it does: `longpole stat ./phases`. Nothing to link but
 * threads. */
#include <longpole/counter.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 20, WORK = 200000 };

static void compute(void)
{
	LONGPOLE_PHASE("compute"); /* to the end of the block */
	for (volatile int i = 0; i < WORK; i++)
		continue;
}

static void *worker(void *argument)
{
	(void)argument;
	longpole_phase("worker"); /* until the next */
	for (int i = 0; i < ROUNDS; i++) {
		compute();
		usleep(1000);
	}
	longpole_phase_end();
	return NULL;
}

int main(void)
{
	pthread_t thread[2];
	LONGPOLE_PHASE("main");
	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, worker, NULL))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
