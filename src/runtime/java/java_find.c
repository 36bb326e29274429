/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java_find.c - a Java VM in this process, and our way into it.
 *
 * A program that makes a VM finds JNI_CreateJavaVM in libjvm by dlsym(). When libjvm has been
 * loaded, the value of that symbol is set to a function of ours, in the library's table in memory. After the VM is up
 * we ask it for an environment of a tool (JVMTI), as any native code may: no option is added that
 * the program or its user could see, and the VM prints nothing.
 */
#include "runtime/java/java.h"
#include "preload/table.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

struct preload_java preload_java PRELOAD_EARLY;

#ifndef PRELOAD_STATIC

struct java_found java_found PRELOAD_EARLY;

bool preload_java_is_own(uintptr_t code)
{
	return code - java_found.begin < java_found.nr_bytes;
}

/* ---- the tool's environment ------------------------------------------------------------------ */

typedef void java_function(void);
static java_function *const java_callbacks[JVMTI_EVENTS_NR] = {
#define CALLBACK(event, function)                                                                  \
	[JVMTI_EVENT_##event - JVMTI_EVENT_FIRST] = (java_function *)(function)
	CALLBACK(CLASS_PREPARE, java_class_prepared),
	CALLBACK(COMPILED_METHOD_LOAD, java_code_loaded),
	CALLBACK(DYNAMIC_CODE_GENERATED, java_code_made),
	CALLBACK(MONITOR_WAIT, java_monitor_wait),
	CALLBACK(MONITOR_WAITED, java_monitor_waited),
	CALLBACK(MONITOR_CONTENDED_ENTER, java_monitor_enter),
	CALLBACK(MONITOR_CONTENDED_ENTERED, java_monitor_entered),
	CALLBACK(GARBAGE_COLLECTION_START, java_gc_begins),
	CALLBACK(GARBAGE_COLLECTION_FINISH, java_gc_ends),
};

/* jvmtiCapabilities: 128 bits. */
static const uint32_t java_wanted[4] = {1u << JVMTI_can_get_source_file_name |
					1u << JVMTI_can_get_line_numbers |
					1u << JVMTI_can_generate_compiled_method_load_events |
					1u << JVMTI_can_generate_monitor_events |
					1u << JVMTI_can_generate_garbage_collection_events};

static void java_listen(java_env tool)
{
	for (int i = 0; i < JVMTI_EVENTS_NR; i++)
		if (java_callbacks[i])
			JAVA_CALL(tool, int, JVMTI_SetEventNotificationMode,
				(java_env, int, int, void *, ...), 1, i + JVMTI_EVENT_FIRST, NULL);
	/* What was compiled before. */
	JAVA_CALL(tool, int, JVMTI_GenerateEvents, (java_env, int),
		JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	JAVA_CALL(
		tool, int, JVMTI_GenerateEvents, (java_env, int), JVMTI_EVENT_COMPILED_METHOD_LOAD);
}

static PRELOAD_COLD void java_attach(java_env vm, java_env jni)
{
	java_env tool = NULL;
	if (!preload_active() || java_found.tool ||
		JAVA_CALL(vm, int, JNI_VM_GetEnv, (java_env, java_env *, int), &tool,
			JVMTI_VERSION_ASKED) != 0 ||
		JAVA_CALL(tool, int, JVMTI_AddCapabilities, (java_env, const uint32_t *),
			java_wanted) != 0 ||
		JAVA_CALL(tool, int, JVMTI_SetEventCallbacks,
			(java_env, java_function *const *, int), java_callbacks,
			sizeof java_callbacks) != 0)
		return;
	__atomic_store_n(&java_found.tool, tool, __ATOMIC_RELEASE);
	java_natives_find(jni);
	java_listen(tool);
}

static int java_create(java_env *vm, java_env *jni, void *arguments)
{
	int result = java_found.create(vm, jni, arguments);
	if (result == 0)
		java_attach(*vm, *jni);
	return result;
}

/* ---- libjvm ---------------------------------------------------------------------------------- */

static void java_note_range(const struct dl_phdr_info *info)
{
	uintptr_t begin, end;
	preload_module_range(info, &begin, &end);
	java_found.nr_bytes = end - begin;
	__atomic_store_n(&java_found.begin, begin, __ATOMIC_RELEASE);
}

/* The table of symbols is read only, and in a page of the file that is ours alone once written. */
static bool java_set_symbol(ElfW(Sym) * symbol, uintptr_t bias, uintptr_t function)
{
	uintptr_t page = (uintptr_t)&symbol->st_value & ~(uintptr_t)(PRELOAD_PAGE - 1);
	if (preload_syscall(
		    SYS_mprotect, (long)page, PRELOAD_PAGE, PROT_READ | PROT_WRITE, 0, 0, 0))
		return false;
	__atomic_store_n(&symbol->st_value, function - bias, __ATOMIC_RELEASE);
	preload_syscall(SYS_mprotect, (long)page, PRELOAD_PAGE, PROT_READ, 0, 0, 0);
	return true;
}

static void java_find_natives(const struct preload_table *table)
{
	*(void **)&java_found.start = preload_definition(table, "JVM_StartThread");
	*(void **)&java_found.sleep = preload_definition(table, "JVM_SleepNanos");
	java_found.is_sleep_in_ns = java_found.sleep != NULL;
	if (!java_found.sleep)
		*(void **)&java_found.sleep = preload_definition(table, "JVM_Sleep");
}

/* (one at a time: preload_modules_scan()) */
void preload_java_meets(const struct dl_phdr_info *info)
{
	struct preload_table table;
	if (preload_has_java() || !info->dlpi_name || !strstr(info->dlpi_name, "libjvm") ||
		!preload_table_of(info, &table))
		return;
	const void *create = preload_definition(&table, "JNI_CreateJavaVM");
	const ElfW(Sym) *symbol = preload_symbol(&table, "JNI_CreateJavaVM");
	if (!create || !symbol)
		return;
	*(const void **)&java_found.create = create;
	java_find_natives(&table);
	java_note_range(info);
	if (!java_set_symbol((ElfW(Sym) *)(uintptr_t)symbol, info->dlpi_addr,
		    (uintptr_t)(void *)java_create))
		return;
	__atomic_store_n(&preload_java.any, true, __ATOMIC_RELEASE);
	preload_be_indirect(); /* the VM's own mutexes are to be told apart */
}

#endif
