/* SPDX-License-Identifier: Apache-2.0 */
/* What is mapped counts as the program's. It limits its address space, fills it, and executes itself
 * under the limit; then all that it has mapped is kept in memory. More threads write at once than the
 * part of the ring that is mapped first has blocks.
 * expect: process_begin 2
 * expect: lock_release 200
 * counted: not */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { THREADS = 100, STACK_BYTES = 64 << 10, MB = 1 << 20 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all;

static void *works(void *none)
{
	pthread_barrier_wait(&all);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	pthread_barrier_wait(&all);
	return none;
}

static unsigned long locked_kb(void)
{
	char line[256];
	unsigned long kb = 0;
	FILE *status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof line, status))
		sscanf(line, "VmLck: %lu", &kb);
	if (status)
		fclose(status);
	return kb;
}

int main(int argc, char **argv)
{
	struct rlimit limit = {60 * MB, 60 * MB};
	pthread_t thread[THREADS];
	pthread_attr_t attributes;
	if (argc == 1)
		setrlimit(RLIMIT_AS, &limit);
	void *most = malloc(30 * MB);
	printf("%d\n", most != NULL);
	free(most);
	pthread_barrier_init(&all, NULL, THREADS);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], &attributes, works, NULL))
			return 2;
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	if (argc == 1) {
		fflush(stdout);
		execl("/proc/self/exe", argv[0], "again", NULL);
		return 3;
	}
	/* (who is not root may not keep as much as a library has) */
	int kept = geteuid() ? 0 : mlockall(MCL_CURRENT | MCL_FUTURE);
	printf("%d %d\n", kept, locked_kb() < 40 << 10);
	return 0;
}
