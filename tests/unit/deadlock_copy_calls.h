/* SPDX-License-Identifier: Apache-2.0 */
/* deadlock_copy_calls.h - a copy that is told its system calls one by one, for unit tests. */
#ifndef LONGPOLE_TESTS_DEADLOCK_COPY_CALLS_H
#define LONGPOLE_TESTS_DEADLOCK_COPY_CALLS_H

#include "deadlock_copy.h"
#include "test.h"

enum { AT = MEMORY + 512, ELSEWHERE = MEMORY + 3000, NOWHERE = 16 };

static struct copy_fixture f;

static inline void begin(bool has_twins)
{
	copy_begin(&f, getpid(), has_twins);
}

/* Each call from a place of its own. */
#define DOES(name, ...) does(SYS_##name, (const uint64_t[6]){__VA_ARGS__})

static inline int64_t does(uint64_t number, const uint64_t arg[6])
{
	f.ghost.registers.rip++;
	return deadlock_emulate(&f.copy, number, arg);
}

static inline void *memory(uint64_t address)
{
	return &f.ghost.memory[address - MEMORY];
}

static inline uint32_t word(uint64_t address)
{
	uint32_t value;
	memcpy(&value, memory(address), sizeof value);
	return value;
}

static inline void set_word(uint64_t address, uint32_t value)
{
	memcpy(memory(address), &value, sizeof value);
}

static inline void assert_ends(enum deadlock_end end, const char *why)
{
	assert_true(f.copy.is_done);
	assert_int_equal(f.run.end, end);
	if (!strstr(f.run.why, why))
		fail_msg("%s, not %s", f.run.why, why);
}

#endif
