/* SPDX-License-Identifier: Apache-2.0 */
/* silent.c - stores of known values: which change memory is known, by size. */
#include <emmintrin.h>
#include <stdatomic.h>
#include <stdio.h>

static volatile unsigned short half[64]; /* 2 rounds: 32 of 128 change */
static volatile unsigned short many[24]; /* 4 rounds: 8 of 96 change */
static volatile char byte;               /* 9 of 100 */
__m128i vector[2];                       /* 8 of 20 */
static _Atomic int atomic;               /* 5 + 7 + 1 of 5 + 5 + 7 + 1 + 4 */

/* More stores in a row than a word of the stream has bits for. */
static void store_many(int round)
{
	const unsigned short one = round == 2 || round == 3;
#define THREE(i) many[i] = one, many[(i) + 1] = 0, many[(i) + 2] = 0
	THREE(0), THREE(3), THREE(6), THREE(9), THREE(12), THREE(15), THREE(18), THREE(21);
#undef THREE
}

int main(void)
{
	for (int round = 0; round < 4; round++)
		store_many(round);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 64; i++)
			half[i] = i & 1;
	for (int i = 0; i < 100; i++)
		byte = (char)(i / 10);
	for (int i = 0; i < 20; i++) {
		_mm_store_si128(&vector[i & 1], _mm_set1_epi32(i / 4));
		__asm__ volatile("" ::: "memory");
	}
	for (int i = 0; i < 5; i++) {
		__asm__ volatile("lock addl $0, %0" : "+m"(atomic));
		__asm__ volatile("lock addl $1, %0" : "+m"(atomic));
	}
	for (int i = 0; i < 7; i++)
		atomic_exchange(&atomic, i + 1);
	int seven = 7, eight = 8;
	atomic_compare_exchange_strong(&atomic, &seven, 8); /* 7 is there */
	for (int i = 0; i < 4; i++) {
		eight = 100;
		atomic_compare_exchange_strong(&atomic, &eight, 9); /* 100 is not */
	}
	printf("%d %d\n", half[3], (int)atomic);
	return 0;
}
