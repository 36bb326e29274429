/* SPDX-License-Identifier: Apache-2.0 */
/* call_new.c - C++'s operators new and delete, by their mangled names. Apart from the rest,
 * lest a C program need libstdc++. They may throw: nothing here has to be undone then. */
#include "target/heap.h"

#define NEW(name, parameters, arguments)                                                           \
	void *name parameters;                                                                     \
	void *longpole_at_##name parameters;                                                       \
	AT void *longpole_at_##name parameters                                                     \
	{                                                                                          \
		TARGET_UNLESS_ATTACHED(name arguments);                                            \
		uint64_t before = target_call_ticks();                                             \
		void *p = name arguments;                                                          \
		target_allocated(p, n, TARGET_SITE, ALLOCATION_HEAP, before);                      \
		return p;                                                                          \
	}
#define DELETE(name, parameters, arguments)                                                        \
	void name parameters;                                                                      \
	void longpole_at_##name parameters;                                                        \
	AT void longpole_at_##name parameters                                                      \
	{                                                                                          \
		target_released(p, 0);                                                             \
		name arguments;                                                                    \
	}
/* plain; size; alignment; both */
NEW(_Znwm, (size_t n), (n))
NEW(_Znam, (size_t n), (n))
NEW(_ZnwmSt11align_val_t, (size_t n, size_t alignment), (n, alignment))
NEW(_ZnamSt11align_val_t, (size_t n, size_t alignment), (n, alignment))
NEW(_ZnwmRKSt9nothrow_t, (size_t n, const void *nothrow), (n, nothrow))
NEW(_ZnamRKSt9nothrow_t, (size_t n, const void *nothrow), (n, nothrow))
DELETE(_ZdlPv, (void *p), (p))
DELETE(_ZdaPv, (void *p), (p))
DELETE(_ZdlPvm, (void *p, size_t n), (p, n))
DELETE(_ZdaPvm, (void *p, size_t n), (p, n))
DELETE(_ZdlPvSt11align_val_t, (void *p, size_t alignment), (p, alignment))
DELETE(_ZdaPvSt11align_val_t, (void *p, size_t alignment), (p, alignment))
DELETE(_ZdlPvmSt11align_val_t, (void *p, size_t n, size_t alignment), (p, n, alignment))
DELETE(_ZdaPvmSt11align_val_t, (void *p, size_t n, size_t alignment), (p, n, alignment))
