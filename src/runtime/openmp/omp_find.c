/* SPDX-License-Identifier: Apache-2.0 */
/* omp_find.c - which libgomp, or libomp, a call is for. */
#include "runtime/openmp/omp.h"
#include "preload/real.h"

#include <dlfcn.h>
#include <link.h>

#ifndef PRELOAD_STATIC /* a static program's libgomp has no other names to be called by */

enum { LIBRARIES = 16, CALLERS = 256 };

static const struct {
	char name[PRELOAD_NAME_BYTES + 24];
	size_t offset;
} functions[] = {
#define OMP(result, name, parameters) {#name, offsetof(struct preload_omp, name)},
#include "runtime/openmp/omp.def"
};

/* Which of the libraries have a function, and which of them callers mean. Entries stay. */
struct scope {
	char key[PRELOAD_NAME_BYTES]; /* what the library must have */
	size_t offset;
	struct preload_omp library[LIBRARIES]; /* [0] is that of the global scope, where all look
						  first */
	uint32_t nr_libraries;                 /* claimed, but for [0] */
	struct {
		uintptr_t address; /* 0: free */
		const struct preload_omp *library;
	} callers[CALLERS];
};
static struct scope gomp = {
	.key = "GOMP_parallel", .offset = offsetof(struct preload_omp, GOMP_parallel)};
static struct scope kmp = {
	.key = "__kmpc_fork_call", .offset = offsetof(struct preload_omp, __kmpc_fork_call)};

struct preload_omp_place preload_omp_places[PRELOAD_OMP_PLACES];

static void **omp_find_slot_of(struct preload_omp *library, size_t offset)
{
	return (void **)(void *)((char *)library + offset);
}

static const void *omp_find_key_of(const struct scope *scope, const struct preload_omp *library)
{
	return __atomic_load_n((void *const *)(const void *)((const char *)library + scope->offset),
		__ATOMIC_ACQUIRE);
}

static bool is_one_module(const void *a, const void *b)
{
	Dl_info of_a, of_b;
	return a && b && dladdr(a, &of_a) && dladdr(b, &of_b) && of_a.dli_fbase == of_b.dli_fbase;
}

/* Two threads that do it at once write the same. The function that is looked at to know whether it
 * is complete comes last. */
static void omp_find_fill(const struct scope *scope, struct preload_omp *library, void *handle)
{
	struct preload_omp found = {0};
	for (size_t i = 0; i < PRELOAD_COUNT(functions); i++)
		*omp_find_slot_of(&found, functions[i].offset) = dlsym(handle, functions[i].name);
	found.is_kmp = is_one_module(
		(const void *)found.GOMP_parallel, (const void *)found.__kmpc_fork_call);
	found.tells = found.is_kmp && preload_omp_tells(&found);
	for (size_t i = 0; i < PRELOAD_COUNT(functions); i++)
		if (functions[i].offset != scope->offset)
			__atomic_store_n(omp_find_slot_of(library, functions[i].offset),
				*omp_find_slot_of(&found, functions[i].offset), __ATOMIC_RELAXED);
	library->is_kmp = found.is_kmp;
	library->tells = found.tells;
	__atomic_store_n(omp_find_slot_of(library, scope->offset),
		*omp_find_slot_of(&found, scope->offset), __ATOMIC_RELEASE);
}

static const struct preload_omp *omp_find_add(struct scope *scope, void *handle, const void *key)
{
	uint32_t nr = __atomic_load_n(&scope->nr_libraries, __ATOMIC_RELAXED);
	for (uint32_t i = 1; i <= nr && i < LIBRARIES; i++)
		if (omp_find_key_of(scope, &scope->library[i]) == key)
			return &scope->library[i];
	nr = __atomic_add_fetch(&scope->nr_libraries, 1, __ATOMIC_RELAXED);
	if (nr >= LIBRARIES)
		return NULL;
	omp_find_fill(scope, &scope->library[nr], handle);
	return &scope->library[nr];
}

/* The library that the loaded file `path` finds in what it was linked with; its own handle is given
 * back, the library that was found is kept. */
static const struct preload_omp *omp_find_seen_by(struct scope *scope, const char *path)
{
	void *handle = PRELOAD_REAL(dlopen)(path, RTLD_LAZY | RTLD_NOLOAD);
	void *key = handle ? dlsym(handle, scope->key) : NULL;
	const struct preload_omp *found = NULL;
	Dl_info info;
	if (key && dladdr(key, &info) && info.dli_fname) {
		void *library = PRELOAD_REAL(dlopen)(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
		if (library)
			found = omp_find_add(scope, library, key);
	}
	if (handle)
		PRELOAD_REAL(dlclose)(handle);
	return found;
}

struct search {
	struct scope *scope;
	const struct preload_omp *found;
};

static int seen_by_any(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct search *search = argument;
	(void)size;
	if (info->dlpi_name && *info->dlpi_name)
		search->found = omp_find_seen_by(search->scope, info->dlpi_name);
	return search->found != NULL;
}

static PRELOAD_COLD const struct preload_omp *omp_find_find(struct scope *scope, uintptr_t caller)
{
	struct search search = {.scope = scope};
	Dl_info info;
	if (dlsym(RTLD_NEXT, scope->key)) {
		omp_find_fill(scope, &scope->library[0], RTLD_NEXT);
		return &scope->library[0];
	}
	if (dladdr((const void *)caller, &info) && info.dli_fname)
		search.found = omp_find_seen_by(scope, info.dli_fname);
	if (!search.found) /* a module that leaves it to its loader to bring one */
		dl_iterate_phdr(seen_by_any, &search);
	return search.found ? search.found : &scope->library[1];
}

PRELOAD_INLINE const struct preload_omp *library_of(struct scope *scope, uintptr_t caller)
{
	if (PRELOAD_LIKELY(omp_find_key_of(scope, &scope->library[0]) != NULL))
		return &scope->library[0];
	size_t slot = caller * 0x9e3779b97f4a7c15u >> (64 - 8), tries = 0;
	for (; tries < CALLERS; tries++, slot = (slot + 1) % CALLERS) {
		uintptr_t known = __atomic_load_n(&scope->callers[slot].address, __ATOMIC_RELAXED);
		if (known != caller && known)
			continue;
		const struct preload_omp *library =
			known ? __atomic_load_n(&scope->callers[slot].library, __ATOMIC_ACQUIRE)
			      : NULL;
		if (library)
			return library;
		library = omp_find_find(scope, caller);
		if (library != &scope->library[0] &&
			(known || __atomic_compare_exchange_n(&scope->callers[slot].address, &known,
					  caller, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)))
			__atomic_store_n(&scope->callers[slot].library, library, __ATOMIC_RELEASE);
		return library;
	}
	return omp_find_find(scope, caller);
}

const struct preload_omp *preload_omp_of(uintptr_t caller)
{
	return library_of(&gomp, caller);
}

const struct preload_omp *preload_kmp_of(uintptr_t caller)
{
	return library_of(&kmp, caller);
}

#endif
