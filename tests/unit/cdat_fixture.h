/* SPDX-License-Identifier: Apache-2.0 */
/* cdat_fixture.h - a machine from assignments, watched by the monitor, and single accesses. */
#ifndef LONGPOLE_TESTS_CDAT_FIXTURE_H
#define LONGPOLE_TESTS_CDAT_FIXTURE_H

#include "memory/cdat/cdat.h"
#include "memory_fixture.h"
#include "test.h"

static inline struct memory_cdat_config *machine(const char *const *set, size_t nr)
{
	struct memory_cdat_config *k = memory_cdat_config_new();
	struct base_err err = {0};
	for (size_t i = 0; i < nr; i++)
		if (memory_cdat_config_set(k, set[i], &err) != BASE_OK)
			fail_msg("%s", err.cause[0]);
	return k;
}
#define MACHINE(...)                                                                               \
	machine((const char *const[]){__VA_ARGS__},                                                \
		BASE_COUNT(((const char *const[]){__VA_ARGS__})))

struct codes { /* transactions in their order */
	unsigned code[256];
	size_t nr;
};

static inline void keep_code(void *ctx, const struct memory_cdat_transaction *t)
{
	struct codes *k = ctx;
	if (k->nr < BASE_COUNT(k->code))
		k->code[k->nr++] = t->code;
}

static inline struct memory_cdat *start(
	struct memory_cdat_config *k, uint32_t nr_threads, struct codes *codes)
{
	struct memory_cdat_options o = {
		.check = true, .detailed = codes ? keep_code : NULL, .trace_ctx = codes};
	struct memory_cdat *c;
	struct base_err err = {0};
	if (memory_cdat_new(k, nr_threads, &o, &c, &err) != BASE_OK)
		fail_msg("%s", err.cause[0]);
	assert_int_equal(memory_cdat_begin(c, &err), BASE_OK);
	memory_cdat_config_free(k);
	return c;
}

static inline struct memory_cdat_outcome step(
	struct memory_cdat *c, uint32_t processor, uint64_t address, unsigned kind)
{
	struct memory_cdat_outcome o;
	struct base_err err = {0};
	if (memory_cdat_access(c, processor, address, (enum memory_item_kind)kind, 0, &o, &err) !=
		BASE_OK)
		fail_msg("%s", err.cause[0]);
	return o;
}

#endif
