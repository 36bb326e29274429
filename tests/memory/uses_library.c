/* SPDX-License-Identifier: Apache-2.0 */
/* uses_library.c - calls a recorded library, and is called back by one that is not. LOADED: it is
 * loaded while the program runs. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int lib_sum(int);
int callback(int n)
{
	return n * 2;
}
static int cmp(const void *a, const void *b)
{
	return *(int *)a - *(int *)b;
}
int main()
{
	int q[50];
	for (int i = 0; i < 50; i++)
		q[i] = (i * 31) % 17;
	qsort(q, 50, 4, cmp);
#ifdef LOADED
	void *library = dlopen("./libtold.so", RTLD_NOW);
	if (!library)
		return puts(dlerror()) < 0;
	int (*sum)(int) = (int (*)(int))dlsym(library, "lib_sum");
#else
	int (*sum)(int) = lib_sum;
#endif
	printf("%d %d\n", sum(500), q[25]);
	return 0;
}
