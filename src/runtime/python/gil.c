/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gil.c - CPython's global lock, as the lock that it is.
 *
 * It is made of a flag, two condition variables and their mutexes. A thread that takes it signals TAKEN
 * when it has the lock, one that gives it up signals FREE, and both are told in terms of one lock; what its
 * mutexes do is nobody's matter. A thread that wants it waits for FREE, 5 ms at a time: that is one
 * wait. One that was made to give it up waits for TAKEN: that stays a wait for a condition
 * variable, and the signal is recorded when somebody waits.
 */
#include "runtime/python/python.h"

#ifndef PRELOAD_STATIC

static uint32_t gil_nr_waiting_for_taken; /* changed under its mutex */
static uint32_t gil_named_in;             /* image whose lock has its name */

static PRELOAD_COLD uintptr_t gil_find(void)
{
	const struct python_layout *l = &python_found.layout;
	uintptr_t gil = python_found.runtime + l->gil;
	if (l->is_gil_of_interpreter) {
		uintptr_t interpreter = python_word(python_found.runtime + l->main_interpreter);
		gil = interpreter ? python_word(interpreter + l->gil) : 0;
	}
	__atomic_store_n(&preload_python.gil, gil, __ATOMIC_RELAXED);
	return gil;
}

/* Which part of the lock is at that address: PYTHON_GIL_FREE and its kin; 0: none. */
static uintptr_t gil_part(const volatile void *address)
{
	uintptr_t gil = __atomic_load_n(&preload_python.gil, __ATOMIC_RELAXED);
	if (PRELOAD_RARE(!gil) && !(gil = gil_find()))
		return 0;
	uintptr_t part = (uintptr_t)address - gil;
	return part < PYTHON_GIL_BYTES ? part : 0;
}

static void gil_name(uint64_t object, const char *name)
{
	const size_t nr_bytes = strlen(name);
	preload_record_text(RING_name, (const uint64_t[]){object, RING_NAME_object, 0, nr_bytes}, 4,
		name, nr_bytes);
}

static uint64_t gil_object(void)
{
	const char *gil = (const char *)preload_python.gil;
	const uint64_t object = preload_object(gil, TRACE_OBJECT_interpreter_lock, false);
	if (PRELOAD_RARE(__atomic_load_n(&gil_named_in, __ATOMIC_RELAXED) != preload_fresh.image)) {
		__atomic_store_n(&gil_named_in, preload_fresh.image, __ATOMIC_RELAXED);
		gil_name(object, "GIL");
		gil_name(preload_object(gil + PYTHON_GIL_TAKEN, TRACE_OBJECT_cond, false),
			"GIL taken by another");
	}
	return object;
}

bool preload_gil_is_mutex(const volatile void *mutex)
{
	return gil_part(mutex) != 0;
}

bool preload_gil_waits(const volatile void *cond, uintptr_t caller)
{
	const uintptr_t part = gil_part(cond);
	struct preload_thread *self = preload_own();
	if (part == PYTHON_GIL_TAKEN)
		gil_nr_waiting_for_taken++;
	if (part != PYTHON_GIL_FREE)
		return false;
	if (!self->waits_for_gil) {
		const uint64_t object = gil_object(), site = preload_site(caller);
		self->waits_for_gil = 1;
		PRELOAD_RECORD_WAIT(lock_wait, site, object);
	}
	return true;
}

void preload_gil_waited(const volatile void *cond)
{
	if (gil_part(cond) == PYTHON_GIL_TAKEN)
		gil_nr_waiting_for_taken--;
}

bool preload_gil_signals(const volatile void *cond, uintptr_t caller)
{
	const uintptr_t part = gil_part(cond);
	struct preload_thread *self = preload_own();
	if (part == PYTHON_GIL_TAKEN) {
		PRELOAD_RECORD(lock_acquire, gil_object(), preload_site(caller));
		self->python_site = 0;
		self->waits_for_gil = 0;
		return gil_nr_waiting_for_taken == 0;
	}
	if (part == PYTHON_GIL_FREE) {
		self->python_site = 0;
		const uint64_t site = preload_site(caller);
		/* (a thread that CPython has done with may come back with another state) */
		self->python_site = RING_IS_PLACE(site) ? site : 0;
		PRELOAD_RECORD(lock_release, gil_object(), site);
	}
	return part == PYTHON_GIL_FREE;
}

/* ---- locks of the program -------------------------------------------------------------------- */

/* A sem_t is of 32 bytes, of which glibc has 16. */
enum { LIFE_AT = 24, LIFE_MASK = 15 };
static uint64_t life_mark(const volatile void *semaphore)
{
	return ((uintptr_t)semaphore * 0x9e3779b97f4a7c15u ^ 0x6c6f6e67706f6c65u) &
	       ~(uint64_t)LIFE_MASK;
}

void preload_python_made(volatile void *semaphore, uintptr_t caller)
{
	if ((uintptr_t)semaphore & LIFE_MASK || !preload_python_is_own(caller))
		return;
	/* By who made it: it is the same as another at its address whenever it has the same maker. */
	uint64_t life = preload_site(caller) * 0x9e3779b97f4a7c15u >> 60;
	*(volatile uint64_t *)((volatile char *)semaphore + LIFE_AT) = life_mark(semaphore) | life;
}

uint64_t preload_python_life(const volatile void *semaphore)
{
	if ((uintptr_t)semaphore & LIFE_MASK)
		return 0;
	uint64_t mark = *(const volatile uint64_t *)((const volatile char *)semaphore + LIFE_AT);
	return (mark & ~(uint64_t)LIFE_MASK) == life_mark(semaphore) ? mark & LIFE_MASK : 0;
}

#endif
