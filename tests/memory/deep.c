/* SPDX-License-Identifier: Apache-2.0 */
/* deep.c - buffers of recorded words are full where the stack has never been so deep. */
#include <stdio.h>

static long down(int n)
{
	volatile char bytes[100];
	bytes[0] = (char)n;
	return n ? down(n - 1) + bytes[0] : 0;
}

int main(void)
{
	long sum = 0;
	for (int n = 0; n < 3000; n += 10)
		sum += down(n);
	printf("%ld\n", sum);
	return 0;
}
