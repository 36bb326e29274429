/* SPDX-License-Identifier: Apache-2.0 */
/* corners.c - regions in each other, deeper than is told; leagues of teams; regions of one thread;
 * of threads that the program makes; of a child made by fork. Says how many threads there were. */
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int nr;

static void nest(int levels)
{
#pragma omp parallel num_threads(2)
	{
#pragma omp atomic
		nr++;
#pragma omp barrier
		if (levels > 1)
			nest(levels - 1);
	}
}

static void region(int nr_threads)
{
#pragma omp parallel num_threads(nr_threads)
	{
#pragma omp atomic
		nr++;
#pragma omp barrier
	}
}

static void *of_thread(void *unused)
{
	region(3);
	region(1);
	region(2);
	return unused;
}

int main(void)
{
	pthread_t thread;
	int status = 1;
	omp_set_max_active_levels(6);
	nest(6);
	region(1);
	region(3);
#pragma omp teams num_teams(2) thread_limit(2)
	region(2);
	for (int i = 0; i < 3; i++)
		if (pthread_create(&thread, NULL, of_thread, NULL) == 0)
			pthread_join(thread, NULL);
	pid_t child = fork();
	if (child == 0) {
		region(2);
		region(3);
		_exit(0);
	}
	waitpid(child, &status, 0);
	region(2);
	printf("%d\n", nr);
	return status;
}
