/* SPDX-License-Identifier: Apache-2.0 */
/* preload_omp_find.c - which libgomp a call is for. */
#include "record/preload_omp.h"
#include "record/preload_real.h"

#include <dlfcn.h>
#include <link.h>

#ifndef PRELOAD_STATIC /* a static program's libgomp has no other names to be called by */

enum { LIBRARIES = 16, CALLERS = 256 };

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
#define OMP(result, name, parameters) {#name, offsetof(struct preload_omp, name)},
#include "record/preload_omp.def"
};

/* Those found so far; [0] is that of the global scope, where all look first. */
static struct preload_omp libraries[LIBRARIES];
static uint32_t nr_libraries = 1; /* claimed */

/* Whose it is, by the caller's address; 0: free. Entries stay. */
static struct {
	uintptr_t address;
	const struct preload_omp *library;
} callers[CALLERS];

/* Two threads that do it at once write the same. The function that is looked at to know whether it
 * is complete comes last. */
static void fill(struct preload_omp *library, void *handle)
{
	for (size_t i = PRELOAD_COUNT(functions); i--;) {
		void **slot = (void **)((char *)library + functions[i].offset);
		__atomic_store_n(slot, dlsym(handle, functions[i].name), __ATOMIC_RELEASE);
	}
}

static bool is_filled(const struct preload_omp *library)
{
	return __atomic_load_n(&library->GOMP_parallel, __ATOMIC_ACQUIRE) != NULL;
}

static const struct preload_omp *add(void *handle, const void *parallel)
{
	uint32_t nr = __atomic_load_n(&nr_libraries, __ATOMIC_RELAXED);
	for (uint32_t i = 1; i < nr && i < LIBRARIES; i++)
		if ((const void *)__atomic_load_n(&libraries[i].GOMP_parallel, __ATOMIC_ACQUIRE) ==
			parallel)
			return &libraries[i];
	nr = __atomic_fetch_add(&nr_libraries, 1, __ATOMIC_RELAXED);
	if (nr >= LIBRARIES)
		return NULL;
	fill(&libraries[nr], handle);
	return &libraries[nr];
}

/* The library that the loaded file `path` finds in what it was linked with; its own handle is given
 * back, the library that was found is kept. */
static const struct preload_omp *seen_by(const char *path)
{
	void *handle = PRELOAD_REAL(dlopen)(path, RTLD_LAZY | RTLD_NOLOAD);
	void *parallel = handle ? dlsym(handle, "GOMP_parallel") : NULL;
	const struct preload_omp *found = NULL;
	Dl_info info;
	if (parallel && dladdr(parallel, &info) && info.dli_fname) {
		void *library = PRELOAD_REAL(dlopen)(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
		if (library)
			found = add(library, parallel);
	}
	if (handle)
		PRELOAD_REAL(dlclose)(handle);
	return found;
}

static int seen_by_any(struct dl_phdr_info *info, size_t size, void *ret)
{
	const struct preload_omp **found = ret;
	(void)size;
	*found = info->dlpi_name && *info->dlpi_name ? seen_by(info->dlpi_name) : NULL;
	return *found != NULL;
}

static PRELOAD_COLD const struct preload_omp *find(uintptr_t caller)
{
	const struct preload_omp *found = NULL;
	Dl_info info;
	if (dlsym(RTLD_NEXT, "GOMP_parallel")) {
		fill(&libraries[0], RTLD_NEXT);
		return &libraries[0];
	}
	if (dladdr((const void *)caller, &info) && info.dli_fname)
		found = seen_by(info.dli_fname);
	if (!found) /* a module that leaves it to who loads it to bring one */
		dl_iterate_phdr(seen_by_any, &found);
	return found ? found : &libraries[1];
}

const struct preload_omp *preload_omp_of(uintptr_t caller)
{
	if (PRELOAD_LIKELY(is_filled(&libraries[0])))
		return &libraries[0];
	size_t slot = caller * 0x9e3779b97f4a7c15u >> (64 - 8), tries = 0;
	for (; tries < CALLERS; tries++, slot = (slot + 1) % CALLERS) {
		uintptr_t known = __atomic_load_n(&callers[slot].address, __ATOMIC_RELAXED);
		if (known != caller && known)
			continue;
		const struct preload_omp *library =
			known ? __atomic_load_n(&callers[slot].library, __ATOMIC_ACQUIRE) : NULL;
		if (library)
			return library;
		library = find(caller);
		if (library != &libraries[0] &&
			(known || __atomic_compare_exchange_n(&callers[slot].address, &known,
					  caller, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)))
			__atomic_store_n(&callers[slot].library, library, __ATOMIC_RELEASE);
		return library;
	}
	return find(caller);
}

#endif
