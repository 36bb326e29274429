/* SPDX-License-Identifier: Apache-2.0 */
/* late.c LIBRARY... - loads them, writes to what they have in each thread's storage, and locks;
 * says how many it could load. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, LOCKS = 100, ROOM = 480 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int nr_locks;
static void *loaded[16];

static void *work(void *unused)
{
	for (int i = 0; i < 16 && loaded[i]; i++) {
		char *(*room)(void) = (char *(*)(void))dlsym(loaded[i], "room_of_thread");
		if (room)
			memset(room(), 1, ROOM);
	}
	for (int i = 0; i < LOCKS; i++) {
		pthread_mutex_lock(&lock);
		nr_locks++;
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

int main(int argc, char **argv)
{
	int nr = 0;
	pthread_t thread[THREADS];
	for (int i = 1; i < argc && nr < 16; i++)
		if (!(loaded[nr] = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL)))
			puts(dlerror());
		else
			nr++;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	printf("%d loaded, %d locks\n", nr, nr_locks);
	return 0;
}
