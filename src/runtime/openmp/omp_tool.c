/* SPDX-License-Identifier: Apache-2.0 */
/*
 * omp_tool.c - where LLVM's and Intel's OpenMP runtimes ask for a tool (OMPT, OpenMP 5.0,
 * chapter 4): which runtimes there are, and whose tool each of them gets.
 *
 * A runtime takes one tool. One that the program's user has asked for goes first, and is then all
 * that hears of the regions: that is counted, and said in the reports.
 */
#include "runtime/openmp/omp.h"
#include "preload/real.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#ifndef PRELOAD_STATIC

PRELOAD_EXPORT struct ompt_tool *ompt_start_tool(unsigned omp_version, const char *runtime_version);

/* A library that only counts wants to hear of nothing. */
__attribute__((weak)) struct ompt_tool *preload_omp_tool(void)
{
	return NULL;
}

__attribute__((weak)) bool preload_omp_tells(const struct preload_omp *omp)
{
	(void)omp;
	return false;
}

/* ---- what runtimes do themselves ------------------------------------------------------------- */

struct module {
	uintptr_t address; /* in it */
	uintptr_t begin, end;
};

static int omp_tool_find_module(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct module *module = argument;
	uintptr_t begin = UINTPTR_MAX, end = 0;
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + segment->p_vaddr;
		if (segment->p_type != PT_LOAD)
			continue;
		begin = at < begin ? at : begin;
		end = at + segment->p_memsz > end ? at + segment->p_memsz : end;
	}
	if (module->address < begin || module->address >= end)
		return 0;
	/* a runtime that was linked into the program has no code of its own */
	if (info->dlpi_name && *info->dlpi_name)
		*module = (struct module){module->address, begin, end};
	return 1;
}

static void note_runtime(uintptr_t address)
{
	struct module module = {.address = address};
	if (preload_is_runtime(address))
		return;
	dl_iterate_phdr(omp_tool_find_module, &module);
	if (!module.end)
		return;
	uint32_t i = __atomic_fetch_add(&preload_runtimes.nr_claimed, 1, __ATOMIC_RELAXED);
	if (i >= PRELOAD_RUNTIMES)
		return;
	preload_runtimes.at[i].begin = module.begin;
	__atomic_store_n(
		&preload_runtimes.at[i].nr_bytes, module.end - module.begin, __ATOMIC_RELEASE);
	/* mutexes are to ask who takes them */
	__atomic_store_n(&preload_runtimes.any, true, __ATOMIC_RELEASE);
	preload_be_indirect();
}

/* ---- whose tool ------------------------------------------------------------------------------ */

static bool omp_tool_is_set(const char *variable)
{
	const char *value = getenv(variable);
	return value && *value;
}

struct ompt_tool *ompt_start_tool(unsigned omp_version, const char *runtime_version)
{
	union {
		void *address;
		struct ompt_tool *(*start)(unsigned, const char *);
	} next = {.address = dlsym(RTLD_NEXT, "ompt_start_tool")};
	note_runtime(PRELOAD_CALLER);
	struct ompt_tool *others = next.address ? next.start(omp_version, runtime_version) : NULL;
	struct ompt_tool *ours = preload_on() ? preload_omp_tool() : NULL;
	if (!others && !omp_tool_is_set("OMP_TOOL_LIBRARIES"))
		return ours;
	if (ours)
		__atomic_fetch_add(&preload_fresh.head->omp_other_tool, 1, __ATOMIC_RELAXED);
	return others;
}

/* A runtime is loaded: will it ask us? The program's own function comes before ours. */
void preload_omp_loaded(void)
{
	const char *tool = getenv("OMP_TOOL");
	Dl_info of_first, of_ours;
	if (!preload_on() || !preload_omp_tool())
		return;
	if (tool && strcasecmp(tool, "disabled") == 0)
		__atomic_fetch_add(&preload_fresh.head->omp_disabled, 1, __ATOMIC_RELAXED);
	else if (dladdr(dlsym(RTLD_DEFAULT, "ompt_start_tool"), &of_first) &&
		 dladdr((const void *)&preload_runtimes, &of_ours) &&
		 of_first.dli_fbase != of_ours.dli_fbase)
		__atomic_fetch_add(&preload_fresh.head->omp_other_tool, 1, __ATOMIC_RELAXED);
}

#endif
