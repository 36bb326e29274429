/* SPDX-License-Identifier: Apache-2.0 */
/* meet.c - what we and the preload library tell each other (meet.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "target/target.h"

#include <dlfcn.h>
#include <string.h>

/* (Weak: there are none in static programs, but there the library itself may be.) */
extern __typeof__(dlsym) dlsym __attribute__((weak));
extern __typeof__(dladdr) dladdr __attribute__((weak));
record_meet_fn longpole_meet __attribute__((weak));

/* The program's stubs; absent if it needs none. */
extern const char __start_longpole_at[] __attribute__((weak, visibility("hidden")));
extern const char __stop_longpole_at[] __attribute__((weak, visibility("hidden")));

/* A module has copies of those stubs that it needs and the program has not. */
static struct {
	struct {
		uintptr_t from, to;
	} part[TARGET_MODULES_MAX];
	uint32_t nr;
} stubs;

static bool is_stub(uintptr_t code)
{
	uint32_t nr = __atomic_load_n(&stubs.nr, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < nr; i++)
		if (code - stubs.part[i].from < stubs.part[i].to - stubs.part[i].from)
			return true;
	return false;
}

static uintptr_t caller(void)
{
	return longpole_memory.caller;
}

void longpole_target_stubs(const char *from, const char *to)
{
	uint32_t nr = stubs.nr;
	if (is_stub((uintptr_t)from) || nr == TARGET_MODULES_MAX)
		return;
	stubs.part[nr].from = (uintptr_t)from;
	stubs.part[nr].to = (uintptr_t)to;
	__atomic_store_n(&stubs.nr, nr + 1, __ATOMIC_RELEASE);
}

/* Its workers wait for a parallel region, which is recorded as a spawn. */
static bool meet_is_openmp(uint64_t site)
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

static void meet_created(uint64_t handle, uint64_t before_ticks, uint64_t site)
{
	if (longpole_memory.nr_told || meet_is_openmp(site))
		return;
	longpole_target_call(CALL_thread_create, before_ticks, before_ticks, 0, handle, 0, 0);
	longpole_target_let_see(false);
}

static void meet_joined(uint64_t handle, uint64_t before_ticks, uint64_t after_ticks)
{
	if (!longpole_memory.nr_told)
		longpole_target_call(CALL_thread_join, before_ticks, after_ticks, handle, 0, 0, 0);
}

const struct record_preload_side *longpole_target_meet(void)
{
	static const struct record_target_side own = {is_stub, caller, meet_created, meet_joined};
	union {
		void *symbol;
		record_meet_fn *function;
	} found = {.function = longpole_meet};
	if (!found.function && dlsym)
		found.symbol = dlsym(RTLD_DEFAULT, RECORD_MEET);
	if (!found.function)
		return NULL;
	if (__start_longpole_at)
		longpole_target_stubs(__start_longpole_at, __stop_longpole_at);
	return found.function(&own);
}
