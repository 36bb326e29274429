/* SPDX-License-Identifier: Apache-2.0 */
/*
 * omp.h - an OpenMP runtime, as the caller of a function of it would have found it.
 *
 * Nothing of it is ours to link, and a process may have several: wheels of Python bring one each,
 * which only their own modules see. A call goes on to the one that it would have reached without
 * us.
 */
#ifndef LONGPOLE_RUNTIME_OPENMP_OMP_H
#define LONGPOLE_RUNTIME_OPENMP_OMP_H

#include "preload/preload.h"

struct preload_omp {
#define OMP(result, name, parameters) result(*name) parameters;
#include "runtime/openmp/omp.def"
	bool is_kmp; /* its gcc's functions are LLVM's runtime's */
	bool tells;  /* ... and it tells us itself of regions, barriers and tasks */
};

/* The library for a call that returns to `caller`, of gcc's functions (and OpenMP's own) or of
 * LLVM's. Never NULL: our caller found the name there. */
const struct preload_omp *preload_omp_of(uintptr_t caller);
const struct preload_omp *preload_kmp_of(uintptr_t caller);

/* Does that runtime of LLVM's tell of itself? It is initialised by this question. */
bool preload_omp_tells(const struct preload_omp *omp);
/* Of the tool interface: the tool that a runtime is to have of us; NULL: none. */
struct ompt_tool *preload_omp_tool(void);

/* How many are in critical sections of LLVM's, or before them, by the lock's address: what the lock
 * itself says is the runtime's secret. Two locks may share a place: then a wait is told of that was
 * none, and lasted no time. */
enum { PRELOAD_OMP_PLACES = 256 };
extern struct preload_omp_place {
	_Alignas(64) uint32_t nr;
} preload_omp_places[PRELOAD_OMP_PLACES];

PRELOAD_INLINE uint32_t *preload_omp_place(const void *lock)
{
	uint64_t hash = (uintptr_t)lock / 8 * 0x9e3779b97f4a7c15u;
	return &preload_omp_places[hash >> 56].nr;
}

/* Somebody is there. */
PRELOAD_INLINE bool preload_omp_enter(const void *lock)
{
	return __atomic_fetch_add(preload_omp_place(lock), 1, __ATOMIC_RELAXED) != 0;
}

PRELOAD_INLINE void preload_omp_leave(const void *lock)
{
	__atomic_fetch_sub(preload_omp_place(lock), 1, __ATOMIC_RELAXED);
}

/* gcc's named ones: the word is libgomp's lock itself (critical.c there), not 0 when it is taken.
 */
PRELOAD_INLINE bool preload_omp_enter_named(const struct preload_omp *omp, const void *lock)
{
	if (PRELOAD_RARE(omp->is_kmp))
		return preload_omp_enter(lock);
	return __atomic_load_n((const uint32_t *)lock, __ATOMIC_RELAXED) != 0;
}

PRELOAD_INLINE void preload_omp_leave_named(const struct preload_omp *omp, const void *lock)
{
	if (PRELOAD_RARE(omp->is_kmp))
		preload_omp_leave(lock);
}

#endif
