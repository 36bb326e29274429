/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cxx.c - what a std::thread runs. All of them start in one function of libstdc++, whose
 * argument is an object with a virtual function: that one says who it is, by its address and by its
 * class's name. Of a plain function only the type is in that name; its address is in the object.
 */
#include "preload/preload.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

enum {
	RUN_SLOT = 2,   /* of the virtual table, behind two destructors */
	TYPE_SLOT = -1, /* its std::type_info: a pointer, then the class's name */
	STATE_WORDS_MAX = 16,
};

/* The function of libstdc++, once it was seen; 0: not yet. */
static uintptr_t native_routine;

static bool is_native_routine(uintptr_t routine)
{
	Dl_info info;
	if (__atomic_load_n(&native_routine, __ATOMIC_RELAXED) == routine)
		return true;
	if (!dladdr((void *)routine, &info) || !info.dli_fname ||
		!strstr(info.dli_fname, "/libstdc++.so"))
		return false;
	__atomic_store_n(&native_routine, routine, __ATOMIC_RELAXED);
	return true;
}

struct code_search {
	uintptr_t address;
	bool found;
};

static int look_for_code(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct code_search *search = argument;
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum && !search->found; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t offset = search->address - info->dlpi_addr - p->p_vaddr;
		search->found = p->p_type == PT_LOAD && (p->p_flags & PF_X) && offset < p->p_memsz;
	}
	return search->found;
}

static bool cxx_is_code(uintptr_t address)
{
	struct code_search search = {.address = address};
	dl_iterate_phdr(look_for_code, &search);
	return search.found;
}

/*
 * std::thread::_State_impl<std::thread::_Invoker<std::tuple<CALLED, arguments ...>>>: libstdc++
 * keeps the function behind its arguments. The first address of code is it, or an argument that is
 * a function, too; so nothing beyond the object is read.
 */
static uintptr_t called_function(const uintptr_t *state, const char *type)
{
	static const char prefix[] = "NSt6thread11_State_implINS_8_InvokerISt5tupleIJ";
	if (strncmp(type, prefix, sizeof prefix - 1) != 0)
		return 0;
	const char *called = type + sizeof prefix - 1; /* PF, PDoF: a function, noexcept */
	if (strncmp(called, "PF", 2) != 0 && strncmp(called, "PDoF", 4) != 0)
		return 0;
	for (unsigned i = 1; i < STATE_WORDS_MAX; i++)
		if (preload_is_address((void *)state[i]) && cxx_is_code(state[i]))
			return state[i];
	return 0;
}

uintptr_t preload_cxx_routine(uintptr_t routine, const void *argument)
{
	uintptr_t run, called = 0;
	const uintptr_t *type;
	if (!preload_is_address(argument) || !is_native_routine(routine))
		return routine;
	const uintptr_t *const table = *(const uintptr_t *const *)argument;
	if (!preload_is_address(table) || !cxx_is_code(table[RUN_SLOT]))
		return routine;
	run = table[RUN_SLOT];
	type = (const uintptr_t *)table[TYPE_SLOT];
	if (preload_is_address(type) && preload_is_address((const char *)type[1]))
		called = called_function(argument, (const char *)type[1]);
	return called ? called : run;
}
