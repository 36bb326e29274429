/* SPDX-License-Identifier: Apache-2.0 */
/* calls.h - numbers of the functions in calls.def: from 1, as a table's keys carry them. */
#ifndef LONGPOLE_RECORD_CALLS_H
#define LONGPOLE_RECORD_CALLS_H

#include <stdint.h>

enum calls_function {
	CALLS_none,
#define CALL(category, timing, result, name, parameters, arguments, bytes) CALLS_##name,
#define CALL_VOID(category, timing, name, parameters, arguments)           CALLS_##name,
#define CALL_OWN(category, timing, name)                                   CALLS_##name,
#include "record/calls.def"
	CALLS_NR
};

/* A table entry's key; caller: the counted function inside which it was called, or CALLS_none. */
#define CALLS_KEY           (1ull << 63)
#define CALLS_FUNCTION(key) ((unsigned)((key) >> 8 & 0xffff))
#define CALLS_CALLER(key)   ((unsigned)((key) >> 32 & 0xffff))
static inline uint64_t calls_key(unsigned function, unsigned caller)
{
	return CALLS_KEY | (uint64_t)caller << 32 | (uint64_t)function << 8;
}

#endif
