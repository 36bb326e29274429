/* SPDX-License-Identifier: Apache-2.0 */
/* real.c - finds the functions that we wrap. */
#include "preload/real.h"
#include "preload/object.h"
#include "preload/next.h"
#include "preload/processor.h"

#include <dlfcn.h>

#ifdef PRELOAD_STATIC

/* In a static program the linker binds them (--wrap; tools/wrap-archive). */
#define REAL(result, name, parameters) result static_##name parameters __asm__("__real_" #name);
#include "preload/real.def"
struct preload_real preload_real = {
#define REAL(result, name, parameters) .name = static_##name,
#include "preload/real.def"
};

/* By this `longpole record` knows a program that records itself. */
__attribute__((section(PRELOAD_WRAP_SECTION), used)) static const char mark[] = "1";

void preload_real_find(void)
{
}

void preload_real_find_all(void)
{
}

void preload_real_find_at(size_t offset)
{
	(void)offset;
}

#else

struct preload_real preload_real PRELOAD_EARLY;

/* ---- mutexes --------------------------------------------------------------------------------- */

static int first_lock(pthread_mutex_t *mutex);
static int first_trylock(pthread_mutex_t *mutex);
static int first_unlock(pthread_mutex_t *mutex);
PRELOAD_EARLY struct preload_mutex_functions preload_mutex_functions = {
	.lock = first_lock, .trylock = first_trylock, .unlock = first_unlock};

static const struct link_map *real_module_of(const void *code)
{
	struct dl_find_object found;
	return preload_find_object((void *)(uintptr_t)code, &found) ? NULL : found.dlfo_link_map;
}

/* Nobody puts a function in the place of this one. */
static const struct link_map *libc_module(void)
{
	return real_module_of(preload_next_function("__errno_location"));
}

static void find_mutex_functions(void)
{
	struct preload_mutex_functions *f = &preload_mutex_functions;
	void *lock = preload_next_function("pthread_mutex_lock");
	void *trylock = preload_next_function("pthread_mutex_trylock");
	void *unlock = preload_next_function("pthread_mutex_unlock");
	const struct link_map *libc = libc_module();
	f->wrapped = real_module_of(lock) != libc || real_module_of(trylock) != libc ||
		     real_module_of(unlock) != libc;
	__atomic_store_n((void **)&f->lock, lock, __ATOMIC_RELAXED);
	__atomic_store_n((void **)&f->trylock, trylock, __ATOMIC_RELAXED);
	__atomic_store_n((void **)&f->unlock, unlock, __ATOMIC_RELAXED);
}

static int first_lock(pthread_mutex_t *mutex)
{
	find_mutex_functions();
	return preload_real_mutex_lock(mutex);
}

static int first_trylock(pthread_mutex_t *mutex)
{
	find_mutex_functions();
	return preload_real_mutex_trylock(mutex);
}

static int first_unlock(pthread_mutex_t *mutex)
{
	find_mutex_functions();
	return preload_real_mutex_unlock(mutex);
}

/* ---- all others ------------------------------------------------------------------------------ */

static const struct {
	char name[PRELOAD_NAME_BYTES];
	size_t offset;
} functions[] = {
#define REAL(result, name, parameters) {#name, offsetof(struct preload_real, name)},
#include "preload/real.def"
};

/* Two implementations under one name: condition variables before and since glibc 2.3.2. */
static const struct {
	char name[PRELOAD_NAME_BYTES], symbol[PRELOAD_NAME_BYTES];
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

/* Of names with two implementations libc's is to be that of the version. Somebody else's has no
 * version, and dlvsym() would pass it by; a program that was linked with it asks without one, too,
 * and gets our old one: that is the first. */
void *preload_real_find_version(const char *symbol, const char *version)
{
	void *next = preload_next_function(symbol);
	if (real_module_of(next) != libc_module())
		return next;
	if (!preload_next_is_late())
		return dlvsym(RTLD_NEXT, symbol, version);
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD); /* nothing comes behind us */
	void *found = libc ? dlvsym(libc, symbol, version) : NULL;
	if (libc)
		dlclose(libc);
	return found ? found : next;
}

static void *real_find(const char *name)
{
	for (size_t i = 0; i < PRELOAD_COUNT(old_functions); i++) {
		const char *symbol = old_functions[i].symbol;
		if (equal(name, old_functions[i].name))
			return preload_real_find_version(symbol, PRELOAD_VERSION_OLD);
		if (equal(name, symbol))
			return preload_real_find_version(symbol, PRELOAD_VERSION_NOW);
	}
	return preload_next_function(name);
}

static void find_one(size_t i)
{
	void **slot = (void **)((char *)&preload_real + functions[i].offset);
	if (!__atomic_load_n(slot, __ATOMIC_RELAXED))
		__atomic_store_n(slot, real_find(functions[i].name), __ATOMIC_RELAXED);
}

static void find_named(const char *name)
{
	for (size_t i = 0; i < PRELOAD_COUNT(functions); i++)
		if (equal(name, functions[i].name))
			find_one(i);
}

/* Those with two implementations now, since the loader's lock is taken for them; all others when
 * they are called first. A function that this libc lacks stays NULL: no program calls it either. */
void preload_real_find(void)
{
	find_mutex_functions();
	for (size_t i = 0; i < PRELOAD_COUNT(old_functions); i++) {
		find_named(old_functions[i].name);
		find_named(old_functions[i].symbol);
	}
}

void preload_real_find_all(void)
{
	find_mutex_functions();
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
