/* SPDX-License-Identifier: Apache-2.0 */
/*
 * awaited.c - conditions that a thread need not wait for. A thread that has taken a mutex and finds
 * what it came for (a queue is not empty) has no record of the thread that put it there. So, each
 * time that a mutex is taken with which a condition is waited for or signalled, it is recorded how
 * often that condition had been signalled until then: not by threads that only signal it, which
 * find nothing.
 *
 * What has no mutex (something is made once; a futex) is simpler: a thread that goes on because of
 * it records how often it had been told.
 */
#include "target/target.h"

enum { CONDITIONS = 8192, PROBES = 16, ROLES = 4 };

static struct condition {
	uintptr_t address; /* atomic; 0: free */
	uint64_t signals;  /* atomic */
} conditions[CONDITIONS];

static struct pair {
	uintptr_t mutex;             /* atomic; 0: free */
	struct condition *condition; /* atomic; NULL for a moment */
} pairs[CONDITIONS];
static bool has_pairs; /* atomic */

/* What the thread does with conditions, the last of them. */
static __thread struct {
	const struct condition *condition;
	bool waits;
} role[ROLES] __attribute__((tls_model("initial-exec")));
static __thread unsigned nr_roles __attribute__((tls_model("initial-exec")));
static __thread const void *last_taken __attribute__((tls_model("initial-exec")));

static unsigned awaited_slot_of(uintptr_t address)
{
	return (unsigned)((uint64_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 32) % CONDITIONS;
}

/* NULL: there are too many. */
static struct condition *awaited_find(uintptr_t address)
{
	for (unsigned i = 0; i < PROBES; i++) {
		struct condition *c = &conditions[(awaited_slot_of(address) + i) % CONDITIONS];
		uintptr_t found = __atomic_load_n(&c->address, __ATOMIC_ACQUIRE);
		if (!found && __atomic_compare_exchange_n(&c->address, &found, address, false,
				      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return c;
		if (found == address)
			return c;
	}
	return NULL;
}

/* The i-th that may be the mutex's; those after one that is free are not. */
static struct pair *pair_at(uintptr_t mutex, unsigned i)
{
	return &pairs[(awaited_slot_of(mutex) + i) % CONDITIONS];
}

static void awaited_pair_up(struct condition *c, uintptr_t mutex)
{
	for (unsigned i = 0; mutex && i < PROBES; i++) {
		struct pair *p = pair_at(mutex, i);
		uintptr_t found = __atomic_load_n(&p->mutex, __ATOMIC_ACQUIRE);
		if (!found && __atomic_compare_exchange_n(&p->mutex, &found, mutex, false,
				      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			__atomic_store_n(&p->condition, c, __ATOMIC_RELEASE);
			__atomic_store_n(&has_pairs, true, __ATOMIC_RELEASE);
			return;
		}
		if (found == mutex && __atomic_load_n(&p->condition, __ATOMIC_ACQUIRE) == c)
			return;
	}
}

static bool only_signals(const struct condition *c)
{
	for (unsigned i = 0; i < ROLES; i++)
		if (role[i].condition == c)
			return !role[i].waits;
	return false;
}

static void plays(struct condition *c, const void *mutex, bool waits)
{
	unsigned i = 0;
	while (i < ROLES && role[i].condition != c)
		i++;
	waits = waits || (i < ROLES && role[i].waits);
	i = i < ROLES ? i : nr_roles++ % ROLES;
	role[i].condition = c;
	role[i].waits = waits;
	awaited_pair_up(c, (uintptr_t)mutex);
}

void longpole_target_signals(const void *condition)
{
	struct condition *c =
		longpole_target_attached() ? awaited_find((uintptr_t)condition) : NULL;
	if (!c)
		return;
	plays(c, last_taken, false);
	__atomic_fetch_add(&c->signals, 1, __ATOMIC_ACQ_REL);
}

void longpole_target_awaits(const void *condition, const void *mutex)
{
	struct condition *c = awaited_find((uintptr_t)condition);
	if (c)
		plays(c, mutex, true);
}

void longpole_target_took(const void *mutex, uint64_t ticks)
{
	last_taken = mutex;
	if (!__atomic_load_n(&has_pairs, __ATOMIC_ACQUIRE))
		return;
	for (unsigned i = 0; i < PROBES; i++) {
		const struct pair *p = pair_at((uintptr_t)mutex, i);
		uintptr_t found = __atomic_load_n(&p->mutex, __ATOMIC_ACQUIRE);
		if (!found)
			return;
		struct condition *c = __atomic_load_n(&p->condition, __ATOMIC_ACQUIRE);
		if (found == (uintptr_t)mutex && c && !only_signals(c))
			longpole_target_call(CALL_signalled, ticks, ticks, c->address,
				__atomic_load_n(&c->signals, __ATOMIC_ACQUIRE), 0, 0);
	}
}

static uint64_t nr_told(const struct condition *c)
{
	return c ? __atomic_load_n(&c->signals, __ATOMIC_ACQUIRE) : 0;
}

uint64_t longpole_target_tells(const volatile void *object)
{
	struct condition *c = longpole_target_attached() ? awaited_find((uintptr_t)object) : NULL;
	uint64_t now = target_call_ticks();
	if (!c)
		return 0;
	uint64_t nr = __atomic_add_fetch(&c->signals, 1, __ATOMIC_ACQ_REL);
	longpole_target_call(CALL_signal, now, now, c->address, 0, 0, 0);
	return nr;
}

void longpole_target_told_times(const volatile void *object, uint64_t nr)
{
	uint64_t now = target_call_ticks();
	if (nr && longpole_target_attached())
		longpole_target_call(CALL_signalled, now, now, (uintptr_t)object, nr, 0, 0);
}

void longpole_target_told(const volatile void *object)
{
	if (longpole_target_attached())
		longpole_target_told_times(object, nr_told(awaited_find((uintptr_t)object)));
}

uint64_t longpole_target_ordered(bool ends)
{
	static uint64_t nr; /* atomic */
	return __atomic_add_fetch(&nr, ends && longpole_target_attached(), __ATOMIC_ACQ_REL);
}
