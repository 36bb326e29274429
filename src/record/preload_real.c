/* SPDX-License-Identifier: Apache-2.0 */
/* preload_real.c - finds the functions that we wrap. */
#include "record/preload_real.h"

#include <dlfcn.h>

#ifdef PRELOAD_STATIC

/* In a static program the linker binds them (--wrap; tools/wrap-archive). */
#define REAL(result, name, parameters) result static_##name parameters __asm__("__real_" #name);
#include "record/preload_real.def"
struct preload_real preload_real = {
#define REAL(result, name, parameters) .name = static_##name,
#include "record/preload_real.def"
};

/* By this `longpole record` knows a program that records itself. */
__attribute__((section(PRELOAD_WRAP_SECTION), used)) static const char mark[] = "1";

void preload_real_find(void)
{
}

void preload_real_find_at(size_t offset)
{
	(void)offset;
}

#else

struct preload_real preload_real;

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
#define REAL(result, name, parameters) {#name, offsetof(struct preload_real, name)},
#include "record/preload_real.def"
};

/* Two implementations under one name: condition variables before and since glibc 2.3.2. */
static const struct {
	const char *name, *symbol;
} old_functions[] = {
	{"old_cond_init", "pthread_cond_init"},
	{"old_cond_wait", "pthread_cond_wait"},
	{"old_cond_timedwait", "pthread_cond_timedwait"},
	{"old_cond_signal", "pthread_cond_signal"},
	{"old_cond_broadcast", "pthread_cond_broadcast"},
};

static bool equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static void *find(const char *name)
{
	for (size_t i = 0; i < PRELOAD_COUNT(old_functions); i++)
		if (equal(name, old_functions[i].name))
			return dlvsym(RTLD_NEXT, old_functions[i].symbol, "GLIBC_2.2.5");
	/* of the names with two versions these are the ones with two implementations */
	for (size_t i = 0; i < PRELOAD_COUNT(old_functions); i++)
		if (equal(name, old_functions[i].symbol))
			return dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
	return dlsym(RTLD_NEXT, name);
}

static void find_one(size_t i)
{
	void **slot = (void **)((char *)&preload_real + functions[i].offset);
	if (!__atomic_load_n(slot, __ATOMIC_RELAXED))
		__atomic_store_n(slot, find(functions[i].name), __ATOMIC_RELAXED);
}

/* A function that this libc lacks stays NULL: no program calls it either. */
void preload_real_find(void)
{
	for (size_t i = 0; i < PRELOAD_COUNT(functions); i++)
		find_one(i);
}

void preload_real_find_at(size_t offset)
{
	for (size_t i = 0; i < PRELOAD_COUNT(functions); i++)
		if (functions[i].offset == offset)
			find_one(i);
}

#endif
