/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and unloads libraries, by path and by name. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int main(void)
{
	double sum = 0;
	for (int i = 0; i < 20; i++) {
		void *handle = dlopen(i % 2 ? "libm.so.6" : "libutil.so.1", RTLD_NOW);
		double (*function)(double) =
			handle ? (double (*)(double))dlsym(handle, "cos") : NULL;
		pthread_mutex_lock(&lock);
		sum += function ? function(0.0) : 0.0;
		pthread_mutex_unlock(&lock);
		if (handle)
			dlclose(handle);
	}
	printf("%.0f %s\n", sum, dlopen("libno-such-library.so", RTLD_NOW) ? "found" : "not found");
	printf("%s\n", dlopen("./no/such/library.so", RTLD_NOW) ? "found" : "not found");
	return dlerror() ? 0 : 1;
}
