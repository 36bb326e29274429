/* SPDX-License-Identifier: Apache-2.0 */
/* execs.c - a thousand stores, then another program. */
#include <unistd.h>

enum { STORES = 1000 };
volatile int table[STORES];

int main(void)
{
	for (int i = 0; i < STORES; i++)
		table[i] = i;
	execl("/bin/true", "true", (char *)0);
	return 1;
}
