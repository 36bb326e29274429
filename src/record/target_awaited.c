/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_awaited.c - conditions that a thread need not wait for. Who has taken a mutex and finds
 * what it came for (a queue is not empty) has no record of who put it there. So, of a mutex with
 * which the thread has ever waited on a condition, each time that it is taken is recorded with how
 * often that condition had been signalled until then.
 */
#include "record/target.h"

enum { CALL_SIGNALLED = 0x2c }; /* memory/calls.def */
enum { CONDITIONS = 1024, PROBES = 16, PAIRS = 4 };

static struct condition {
	uintptr_t address; /* atomic; 0: free */
	uint64_t signals;  /* atomic */
} conditions[CONDITIONS];

static __thread struct {
	const void *mutex;
	struct condition *condition;
} pair[PAIRS] __attribute__((tls_model("initial-exec")));
static __thread unsigned nr_pairs __attribute__((tls_model("initial-exec"))); /* that ever were */

/* NULL: there are too many. */
static struct condition *find(uintptr_t address)
{
	uint64_t hash = (uint64_t)address * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	for (unsigned i = 0; i < PROBES; i++) {
		struct condition *c = &conditions[(hash + i) % CONDITIONS];
		uintptr_t found = __atomic_load_n(&c->address, __ATOMIC_ACQUIRE);
		if (!found && __atomic_compare_exchange_n(&c->address, &found, address, false,
				      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return c;
		if (found == address)
			return c;
	}
	return NULL;
}

void longpole_target_signals(const void *condition)
{
	struct condition *c = longpole_target_attached() ? find((uintptr_t)condition) : NULL;
	if (c)
		__atomic_fetch_add(&c->signals, 1, __ATOMIC_ACQ_REL);
}

void longpole_target_awaits(const void *condition, const void *mutex)
{
	struct condition *c = find((uintptr_t)condition);
	for (unsigned i = 0; i < PAIRS; i++)
		if (pair[i].mutex == mutex && pair[i].condition == c)
			return;
	if (!c)
		return;
	pair[nr_pairs % PAIRS].condition = c;
	pair[nr_pairs++ % PAIRS].mutex = mutex;
}

void longpole_target_took(const void *mutex, uint64_t ticks)
{
	for (unsigned i = 0; i < nr_pairs && i < PAIRS; i++) {
		struct condition *c = pair[i].condition;
		if (pair[i].mutex == mutex)
			longpole_target_call(CALL_SIGNALLED, ticks, ticks, c->address,
				__atomic_load_n(&c->signals, __ATOMIC_ACQUIRE), 0, 0);
	}
}

uint64_t longpole_target_ordered(bool ends)
{
	static uint64_t nr; /* atomic */
	return __atomic_add_fetch(&nr, ends && longpole_target_attached(), __ATOMIC_ACQ_REL);
}
