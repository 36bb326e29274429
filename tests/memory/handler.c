/* SPDX-License-Identifier: Apache-2.0 */
/* handler.c - a handler of failing instructions sees the registers as they were there, in code that
 * ran before there was a handler, too. Prints what it saw; its exit status says if that is right.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { PAGE = 4096 };
static long long seen;
static char *page;

static void handler(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	seen = ((const ucontext_t *)context)->uc_mcontext.gregs[REG_R12];
	mprotect(page, PAGE, PROT_READ);
}

/* r12 is 7 at the load, and another value before and after it. */
__attribute__((noinline)) static int load(const char *at)
{
	int value;
	__asm__ volatile("movq $5, %%r12\n\tmovq $7, %%r12\n\tmovzbl (%1), %0\n\tmovq $9, %%r12"
			 : "=&r"(value)
			 : "r"(at)
			 : "r12", "memory");
	return value;
}

int main(void)
{
	struct sigaction a = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	int sum = 0;
	page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 100; i++)
		sum += load(page);
	mprotect(page, PAGE, PROT_NONE);
	sigaction(SIGSEGV, &a, NULL);
	sum += load(page);
	printf("r12 %lld sum %d\n", seen, sum);
	return seen != 7 || sum != 0;
}
