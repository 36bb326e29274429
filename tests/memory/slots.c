/* SPDX-License-Identifier: Apache-2.0 */
/* slots.c ROUNDS [list] - accesses to places that several instructions compute, in the same way and
 * in ways that look like it. `list` prints those of each round: kind, address, bytes, as
 * memory-accesses does. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { TABLE_BYTES = 1 << 16 };

static uint64_t next(uint64_t *s)
{
	*s = *s * 6364136223846793005u + 1442695040888963407u;
	return *s >> 33;
}

static void touch(char *base, uint64_t at, uint64_t other)
{
	__asm__ volatile("movq (%[b],%[i],8), %%rax\n\t"
			 "movq %%rax, (%[b],%[i],8)\n\t" /* the same (each value is used: VEX leaves
							    out loads that are in vain) */
			 "addl 16(%[b],%[i],8), %%eax\n\t"
			 "movw %%ax, (%[b],%[i],4)\n\t" /* another scale */
			 "leaq 24(%[b],%[i],8), %%rcx\n\t"
			 "addb -24(%%rcx), %%al\n\t" /* the same by another way */
			 "movq %[i], %%rdx\n\t"
			 "addq $3, %%rdx\n\t"
			 "addb (%[b],%%rdx,8), %%al\n\t" /* not what i was */
			 "movslq %%edx, %%rdx\n\t"
			 "addb (%%rdx,%[b]), %%al\n\t"
			 "addb 1(%[b],%%rdx), %%al\n\t" /* the sum the other way round */
			 "subq %%rdx, %%rcx\n\t"
			 "addb (%%rcx), %%al\n\t"
			 "movq %[o], %%rdx\n\t"
			 "addb (%[b],%%rdx), %%al\n\t" /* the register's other value */
			 "movb %%al, (%[b],%%rdx)\n\t"
			 :
			 : [b] "r"(base), [i] "r"(at), [o] "r"(other)
			 : "rax", "rcx", "rdx", "memory");
}

static void list(const char *base, uint64_t at, uint64_t other)
{
	uint64_t b = (uintptr_t)base, i = at * 8, j = at + 3;
	const struct {
		char kind;
		uint64_t address;
		int size_bytes;
	} access[] = {{'L', b + i, 8}, {'S', b + i, 8}, {'L', b + i + 16, 4}, {'S', b + at * 4, 2},
		{'L', b + i, 1}, {'L', b + j * 8, 1}, {'L', b + j, 1}, {'L', b + j + 1, 1},
		{'L', b + i + 24 - j, 1}, {'L', b + other, 1}, {'S', b + other, 1}};
	for (size_t k = 0; k < sizeof access / sizeof *access; k++)
		printf("%c %lx %d\n", access[k].kind, (unsigned long)access[k].address,
			access[k].size_bytes);
}

int main(int argc, char **argv)
{
	uint64_t seed = 1;
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	char *table = mmap((void *)0x100000000, TABLE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (table == MAP_FAILED)
		return 1;
	for (long k = 0; k < rounds; k++) {
		uint64_t at = next(&seed) % 8000, other = next(&seed) % TABLE_BYTES;
		if (argc > 2)
			list(table, at, other);
		else
			touch(table, at, other);
	}
	return 0;
}
