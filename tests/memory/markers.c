/* SPDX-License-Identifier: Apache-2.0 */
/* markers.c - only 200 of 100000 stores are recorded. */
#include <longpole/memory.h>

static volatile int data[1000];

int main(void)
{
	for (int i = 0; i < 100; i++)
		data[i] = i;
	longpole_memory_mark(LONGPOLE_MEMORY_ALL_OFF, 7);
	for (int n = 0; n < 100; n++)
		for (int i = 0; i < 1000; i++)
			data[i] = i;
	longpole_memory_mark(LONGPOLE_MEMORY_ALL_ON, 8);
	for (int i = 0; i < 100; i++)
		data[i] = i;
	return 0;
}
