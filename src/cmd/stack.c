/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack.c - a stack of our own where the shell's limit leaves us little.
 *
 * The limit stays as it is: the program that is recorded has it, too. Libraries of others (libdw)
 * take what they need without asking.
 */
#include "cmd/cmd.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

enum { STACK_BYTES = 8 << 20, ENOUGH_BYTES = 2 << 20, GUARD_BYTES = 64 << 10 };

struct own_stack {
	int (*run)(int argc, char **argv);
	int argc;
	char **argv;
	int exit_status;
	ucontext_t before, here;
};

/* (makecontext() hands on what fits in an int) */
static void stack_begin(unsigned high, unsigned low)
{
	struct own_stack *s = (struct own_stack *)((uintptr_t)high << 32 | low);
	s->exit_status = s->run(s->argc, s->argv);
}

/* Threads take the limit as their size. */
static void stack_of_threads(void)
{
	pthread_attr_t attributes;
	if (pthread_attr_init(&attributes))
		return;
	if (!pthread_attr_setstacksize(&attributes, ENOUGH_BYTES))
		(void)pthread_setattr_default_np(&attributes);
	pthread_attr_destroy(&attributes);
}

int cmd_on_enough_stack(int (*run)(int argc, char **argv), int argc, char **argv)
{
	struct rlimit limit;
	struct own_stack s = {.run = run, .argc = argc, .argv = argv};
	if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= ENOUGH_BYTES)
		return run(argc, argv);
	stack_of_threads();
	char *memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return run(argc, argv);
	(void)mprotect(memory, GUARD_BYTES, PROT_NONE);
	if (!getcontext(&s.here)) {
		s.here.uc_stack = (stack_t){.ss_sp = memory, .ss_size = STACK_BYTES};
		s.here.uc_link = &s.before;
		makecontext(&s.here, (void (*)(void))(uintptr_t)stack_begin, 2,
			(unsigned)((uintptr_t)&s >> 32), (unsigned)(uintptr_t)&s);
		if (!swapcontext(&s.before, &s.here)) {
			munmap(memory, STACK_BYTES);
			return s.exit_status;
		}
	}
	munmap(memory, STACK_BYTES);
	return run(argc, argv);
}
