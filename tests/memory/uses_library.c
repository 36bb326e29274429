/* SPDX-License-Identifier: Apache-2.0 */
/* uses_library.c - calls a recorded library, and is called back by one that is not. */
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
	printf("%d %d\n", lib_sum(500), q[25]);
	return 0;
}
