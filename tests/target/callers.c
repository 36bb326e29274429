/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callers.c - work of which its callers differ: leaf() runs nearly all the time, for heavy() 60 %,
 * for light() 20 %, and at the bottom of descend() 20 %. No function keeps a frame pointer.
 */
#include <pthread.h>
#include <stdint.h>

#ifdef __clang__
#define ALONE __attribute__((noinline)) /* it makes no clones */
#else
#define ALONE __attribute__((noinline, noclone))
#endif
enum { ROUNDS = 400, DEPTH = 12, STEPS = 100000 };

static volatile uint32_t result;

static ALONE uint32_t leaf(uint32_t x, int steps)
{
	for (int i = 0; i < steps; i++)
		x = x * 1103515245 + 12345;
	return x;
}

static ALONE uint32_t heavy(uint32_t x)
{
	return leaf(x, STEPS) + leaf(x + 1, STEPS) + leaf(x + 2, STEPS);
}

static ALONE uint32_t light(uint32_t x)
{
	return leaf(x, STEPS) + 1;
}

static ALONE uint32_t descend(uint32_t x, int depth)
{
	volatile uint8_t room[64]; /* a frame that is no multiple of others' */
	room[depth] = (uint8_t)x;
	return (depth ? descend(x + 1, depth - 1) : leaf(x, STEPS)) + room[depth];
}

static void *work(void *argument)
{
	uint32_t x = 1;
	for (int i = 0; i < ROUNDS; i++)
		x = heavy(x) + light(x) + descend(x, DEPTH);
	result = x;
	return argument;
}

int main(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, work, NULL))
		return 1;
	return pthread_join(thread, NULL);
}
