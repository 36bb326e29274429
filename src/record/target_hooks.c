/* SPDX-License-Identifier: Apache-2.0 */
/* target_hooks.c - threads that others begin and join, as the preload library tells. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "record/target.h"
#include "record/thread_hooks.h"

#include <dlfcn.h>
#include <string.h>

enum { /* memory/calls.def */
	CALL_THREAD_CREATE = 0x24,
	CALL_THREAD_JOIN = 0x25,
};

/* (Weak: there is none in static programs.) */
extern __typeof__(dlsym) dlsym __attribute__((weak));
extern __typeof__(dladdr) dladdr __attribute__((weak));

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

void longpole_target_hook_threads(void)
{
	static const struct record_thread_hooks hooks = {created, joined};
	union {
		void *symbol;
		record_thread_hooks_fn *function;
	} found = {dlsym ? dlsym(RTLD_DEFAULT, RECORD_THREAD_HOOKS) : NULL};
	if (found.function)
		found.function(&hooks);
}
