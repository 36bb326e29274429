/* SPDX-License-Identifier: Apache-2.0 */
/*
 * python_find.c - which Python a process has, which code is its interpreter's, and where it keeps a
 * thread's state.
 *
 * Each thread's state is in its list of threads, and in a value of pthread_getspecific(), which is
 * set to NULL before the state is freed. Which key that is no symbol says: the one whose value is
 * the state that the list has for this thread.
 */
#include "runtime/python/python.h"
#include "preload/table.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>

struct preload_python preload_python PRELOAD_EARLY;

#ifndef PRELOAD_STATIC

enum {
	INTERPRETERS_MAX = 16,
	THREADS_MAX = 4096,
	KEYS_MAX = 128, /* looked at: those that glibc has without more memory are 32 */
	TRIES_MAX = 1000,
	MODULES_MAX = 96,
};

struct python_found python_found PRELOAD_EARLY;

/* Of the interpreter: its own file, and the extensions that come with it. */
static struct {
	uintptr_t begin, nr_bytes;
} python_modules[MODULES_MAX];
static uint32_t python_nr_modules PRELOAD_EARLY;

bool python_read(uintptr_t address, void *ret, size_t size_bytes)
{
	struct iovec to = {ret, size_bytes}, from = {(void *)address, size_bytes};
	return address && preload_syscall(SYS_process_vm_readv, preload_self->pid, (long)&to, 1,
				  (long)&from, 1, 0) == (long)size_bytes;
}

static uintptr_t python_find_word(uintptr_t address, uint32_t offset)
{
	uintptr_t value = 0;
	return address && python_read(address + offset, &value, sizeof value) ? value : 0;
}

/* ---- modules --------------------------------------------------------------------------------- */

static void python_add_module(const struct dl_phdr_info *info)
{
	uintptr_t begin, end;
	preload_module_range(info, &begin, &end);
	uint32_t nr = python_nr_modules;
	if (begin >= end || nr == MODULES_MAX)
		return;
	python_modules[nr].begin = begin;
	python_modules[nr].nr_bytes = end - begin;
	__atomic_store_n(&python_nr_modules, nr + 1, __ATOMIC_RELEASE);
}

bool preload_python_is_own(uintptr_t code)
{
	uint32_t nr = __atomic_load_n(&python_nr_modules, __ATOMIC_ACQUIRE);
	for (uint32_t i = 0; i < nr; i++)
		if (code - python_modules[i].begin < python_modules[i].nr_bytes)
			return true;
	return false;
}

static bool python_find_layout(const struct preload_table *table, struct python_layout *ret)
{
	const uint64_t *version = preload_definition(table, "Py_Version");
	const uint8_t *runtime = preload_definition(table, "_PyRuntime");
	if (!version || !runtime)
		return false;
	const uint32_t number = (uint32_t)(*version >> 16);
	/* (the table's offsets are x86-64's: locks have other sizes elsewhere) */
	return (PROCESSOR_IS_X86_64 && python_layout_of(number, ret)) ||
	       (number == PYTHON_SAYS_ITSELF && python_layout_published(runtime, ret));
}

static void python_find_asyncio(const struct preload_table *table)
{
	struct python_asyncio *a = &python_found.asyncio;
	a->send = (uintptr_t)preload_definition(table, "PyIter_Send");
	a->call = (uintptr_t)preload_definition(table, "PyObject_VectorcallMethod");
	a->call_bound = (uintptr_t)preload_definition(table, "PyObject_Vectorcall");
	a->method = (uintptr_t)preload_definition(table, "PyMethod_Type");
	a->function = (uintptr_t)preload_definition(table, "PyFunction_Type");
	a->coroutine = (uintptr_t)preload_definition(table, "PyCoro_Type");
	a->generator = (uintptr_t)preload_definition(table, "PyGen_Type");
	a->built_in = (uintptr_t)preload_definition(table, "PyCFunction_Type");
	a->number = (uintptr_t)preload_definition(table, "PyFloat_Type");
}

/* (one at a time: preload_modules_scan()) */
void preload_python_meets(const struct dl_phdr_info *info)
{
	struct preload_table table;
	if (preload_has_python()) {
		if (info->dlpi_name && strstr(info->dlpi_name, "/lib-dynload/")) {
			python_add_module(info);
			python_turn_meets(info);
		}
		return;
	}
	if (!preload_table_of(info, &table) || !python_find_layout(&table, &python_found.layout))
		return;
	python_found.runtime = (uintptr_t)preload_definition(&table, "_PyRuntime");
	python_find_asyncio(&table);
	python_add_module(info);
	__atomic_store_n(&preload_python.any, true, __ATOMIC_RELEASE);
	preload_be_indirect(); /* the global lock's mutexes are to be told apart */
}

/* ---- threads --------------------------------------------------------------------------------- */

static uintptr_t python_find_in(uintptr_t interpreter, uintptr_t self)
{
	const struct python_layout *l = &python_found.layout;
	uintptr_t thread = python_find_word(interpreter, l->threads);
	for (int i = 0; thread && i < THREADS_MAX; i++) {
		if (python_find_word(thread, l->pthread) == self)
			return thread;
		thread = python_find_word(thread, l->next_thread);
	}
	return 0;
}

static uintptr_t python_find_self(void)
{
	const struct python_layout *l = &python_found.layout;
	uintptr_t interpreter = python_find_word(python_found.runtime, l->interpreters), thread = 0;
	for (int i = 0; interpreter && !thread && i < INTERPRETERS_MAX; i++) {
		thread = python_find_in(interpreter, (uintptr_t)pthread_self());
		interpreter = python_find_word(interpreter, l->next_interpreter);
	}
	return thread;
}

/* The number of tries is bounded: a thread that is none of Python's finds nothing. */
static PRELOAD_COLD uint32_t python_find_key(void)
{
	if (__atomic_add_fetch(&python_found.nr_tries, 1, __ATOMIC_RELAXED) > TRIES_MAX)
		return 0;
	const uintptr_t thread = python_find_self();
	for (uint32_t key = 0; thread && key < KEYS_MAX; key++)
		if ((uintptr_t)pthread_getspecific(key) == thread) {
			__atomic_store_n(&python_found.key, key + 1, __ATOMIC_RELEASE);
			return key + 1;
		}
	return 0;
}

uintptr_t python_thread(void)
{
	uint32_t key = __atomic_load_n(&python_found.key, __ATOMIC_ACQUIRE);
	if (PRELOAD_RARE(!key) && !(key = python_find_key()))
		return 0;
	return (uintptr_t)pthread_getspecific(key - 1);
}

#endif
