/* SPDX-License-Identifier: Apache-2.0 */
/* target_meet.c - what we and the preload library tell each other (meet.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "record/target.h"

#include <dlfcn.h>
#include <string.h>

enum { /* memory/calls.def */
	CALL_THREAD_CREATE = 0x24,
	CALL_THREAD_JOIN = 0x25,
};

/* (Weak: there are none in static programs, but there the library itself may be.) */
extern __typeof__(dlsym) dlsym __attribute__((weak));
extern __typeof__(dladdr) dladdr __attribute__((weak));
record_meet_fn longpole_meet __attribute__((weak));

/* The stubs; absent in a program that needs none. */
extern const char __start_longpole_at[] __attribute__((weak, visibility("hidden")));
extern const char __stop_longpole_at[] __attribute__((weak, visibility("hidden")));

/* Its workers wait for a parallel region, which is recorded as a spawn. */
static bool is_openmp(uint64_t site)
{
	static const char *const name[] = {"/libgomp.", "/libomp.", "/libomp5.", "/libiomp5."};
	Dl_info info = {0};
	if (!dladdr || !dladdr((void *)(uintptr_t)site, &info) || !info.dli_fname)
		return false;
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		if (strstr(info.dli_fname, name[i]))
			return true;
	return false;
}

static void created(uint64_t handle, uint64_t before_ticks, uint64_t site)
{
	if (longpole_memory.nr_told || is_openmp(site))
		return;
	longpole_target_call(CALL_THREAD_CREATE, before_ticks, before_ticks, 0, handle, 0, 0);
	longpole_target_let_see(false);
}

static void joined(uint64_t handle, uint64_t before_ticks, uint64_t after_ticks)
{
	if (!longpole_memory.nr_told)
		longpole_target_call(CALL_THREAD_JOIN, before_ticks, after_ticks, handle, 0, 0, 0);
}

const struct record_preload_side *longpole_target_meet(void)
{
	static struct record_target_side own = {.created = created, .joined = joined};
	uintptr_t thread_pointer;
	union {
		void *symbol;
		record_meet_fn *function;
	} found = {.function = longpole_meet};
	if (!found.function && dlsym)
		found.symbol = dlsym(RTLD_DEFAULT, RECORD_MEET);
	if (!found.function)
		return NULL;
	__asm__("movq %%fs:0, %0" : "=r"(thread_pointer));
	own.caller_offset = (ptrdiff_t)((uintptr_t)&longpole_memory.caller - thread_pointer);
	own.stubs = (uintptr_t)__start_longpole_at;
	own.stubs_bytes = (uintptr_t)__stop_longpole_at - own.stubs;
	return found.function(&own);
}
