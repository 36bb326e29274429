/* SPDX-License-Identifier: Apache-2.0 */
/* prog.c - threads that take turns: no race, no leak, nothing that a sanitizer has to complain
 * about; says 2000. With RACE there is one race, which ThreadSanitizer has to see also when others
 * are loaded. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int sum, ready, raced;

static void initialise(void)
{
	sum = 0;
}

static void *add(void *pipe_end)
{
	char *text = malloc(100), byte = 0;
	pthread_once(&once, initialise);
	memset(text, 'x', 100);
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&lock);
		sum += text[i % 100] == 'x';
		pthread_mutex_unlock(&lock);
	}
#ifdef RACE
	raced++;
#endif
	pthread_mutex_lock(&lock);
	ready++;
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	(void)!write(*(int *)pipe_end, &byte, 1);
	free(text);
	return NULL;
}

int main(void)
{
	pthread_t thread[2];
	int ends[2];
	char bytes[2];
	if (pipe(ends))
		return 1;
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, add, &ends[1]);
	pthread_mutex_lock(&lock);
	while (ready < 2)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 2; i++) {
		(void)!read(ends[0], bytes, 1);
		pthread_join(thread[i], NULL);
	}
	printf("%d\n", sum + 0 * raced);
	return 0;
}
