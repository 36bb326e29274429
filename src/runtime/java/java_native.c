/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java_native.c - our functions before native methods of the Java library: Unsafe.park and unpark,
 * Thread.sleep and the start of a thread.
 *
 * The VM's function of a method that is in no table of symbols is learned from the class itself: it
 * registers its native methods once more, by a table of JNI's functions that is ours meanwhile. The
 * VM warns when code from outside puts another native method into the Java library: not when the
 * library itself is at work, and so we wait for the next class that a class loader defines.
 */
#include "runtime/java/java.h"

#include <string.h>

#ifndef PRELOAD_STATIC

enum { JNI_TABLE_SLOTS = 240, NATIVES_MAX = 256 };

static void *java_unsafe_class, *java_thread_class; /* global references */

typedef int java_register(java_env, void *, const struct java_native *, int32_t);
static java_register *java_register_others;

static int java_learn(java_env jni, void *class_, const struct java_native *native, int32_t nr)
{
	bool is_unsafe = false;
	for (int32_t i = 0; i < nr && nr <= NATIVES_MAX; i++)
		if (strcmp(native[i].name, "park") == 0) {
			*(void **)&java_found.park = native[i].function;
			is_unsafe = true;
		} else if (strcmp(native[i].name, "unpark") == 0) {
			*(void **)&java_found.unpark = native[i].function;
		}
	return is_unsafe ? 0 : java_register_others(jni, class_, native, nr);
}

static void java_unexpected(java_env jni)
{
	if (JAVA_CALL(jni, uint8_t, JNI_ExceptionCheck, (java_env)))
		JAVA_CALL(jni, void, JNI_ExceptionClear, (java_env));
}

static void *java_find_class(java_env jni, const char *name)
{
	void *class_ = JAVA_CALL(jni, void *, JNI_FindClass, (java_env, const char *), name);
	java_unexpected(jni);
	return class_ ? JAVA_CALL(jni, void *, JNI_NewGlobalRef, (java_env, void *), class_) : NULL;
}

static void java_ask_unsafe(java_env jni)
{
	java_env tool = java_found.tool;
	void **table = NULL;
	void *method = JAVA_CALL(jni, void *, JNI_GetStaticMethodID,
		(java_env, void *, const char *, const char *), java_unsafe_class,
		"registerNatives", "()V");
	java_unexpected(jni);
	if (!method ||
		JAVA_CALL(tool, int, JVMTI_GetJNIFunctionTable, (java_env, void ***), &table) != 0)
		return;
	*(void **)&java_register_others = table[JNI_RegisterNatives];
	table[JNI_RegisterNatives] = (void *)java_learn;
	JAVA_CALL(tool, int, JVMTI_SetJNIFunctionTable, (java_env, void **), table);
	JAVA_CALL(jni, void, JNI_CallStaticVoidMethod, (java_env, void *, void *, ...),
		java_unsafe_class, method);
	java_unexpected(jni);
	table[JNI_RegisterNatives] = (void *)java_register_others;
	JAVA_CALL(tool, int, JVMTI_SetJNIFunctionTable, (java_env, void **), table);
	JAVA_CALL(tool, int, JVMTI_Deallocate, (java_env, void *), table);
}

void java_natives_find(java_env jni)
{
	java_found.has_virtual =
		JAVA_CALL(jni, int, JNI_GetVersion, (java_env)) >= JNI_VERSION_OF_VIRTUAL;
	java_unsafe_class = java_find_class(jni, "jdk/internal/misc/Unsafe");
	java_thread_class = java_find_class(jni, "java/lang/Thread");
	if (java_thread_class)
		java_found.blocker_field = JAVA_CALL(jni, void *, JNI_GetFieldID,
			(java_env, void *, const char *, const char *), java_thread_class,
			"parkBlocker", "Ljava/lang/Object;");
	java_unexpected(jni);
	if (java_unsafe_class)
		java_ask_unsafe(jni);
}

/* ---- the start of a thread ------------------------------------------------------------------- */

/* "pool-1-thread" of "pool-1-thread-7": threads of one kind are one role. */
static void java_kind(char *name)
{
	size_t nr = strlen(name);
	while (nr && name[nr - 1] >= '0' && name[nr - 1] <= '9')
		nr--;
	while (nr && strchr("-_ #.", name[nr - 1]))
		nr--;
	if (nr)
		name[nr] = '\0';
}

static uint64_t java_role_of(void *thread)
{
	java_env tool = java_found.tool;
	struct java_thread_info info = {0};
	uint64_t place = 0;
	if (JAVA_CALL(tool, int, JVMTI_GetThreadInfo, (java_env, void *, struct java_thread_info *),
		    thread, &info) != 0 ||
		!info.name)
		return 0;
	java_kind(info.name);
	place = java_place_named(info.name);
	JAVA_CALL(tool, int, JVMTI_Deallocate, (java_env, void *), info.name);
	return place;
}

static void java_start(java_env jni, void *thread)
{
	struct java_thread *self = preload_active() ? java_self() : NULL;
	if (self)
		self->started = java_role_of(thread);
	java_found.start(jni, thread);
	if (self)
		self->started = 0;
}

uintptr_t preload_java_start(uintptr_t caller)
{
	return preload_java_is_own(caller) && java_found.tool ? java_self()->started : 0;
}

/* ---- registering ----------------------------------------------------------------------------- */

static void java_put(
	java_env jni, void *class_, const char *name, const char *signature, void *function)
{
	const struct java_native native = {name, signature, function};
	JAVA_CALL(jni, int, JNI_RegisterNatives,
		(java_env, void *, const struct java_native *, int32_t), class_, &native, 1);
	java_unexpected(jni);
}

static void java_put_all(java_env jni)
{
	if (java_found.park && java_found.unpark && java_found.blocker_field) {
		java_put(jni, java_unsafe_class, "park", "(ZJ)V", (void *)java_park);
		java_put(jni, java_unsafe_class, "unpark", "(Ljava/lang/Object;)V",
			(void *)java_unpark);
	}
	if (java_found.sleep)
		java_put(jni, java_thread_class,
			java_found.is_sleep_in_ns ? "sleepNanos0" : "sleep", "(J)V",
			(void *)java_sleep);
	if (java_found.start)
		java_put(jni, java_thread_class, "start0", "()V", (void *)java_start);
}

/* Is the caller of the native method that is at work of the Java library's innermost part? */
static bool java_library_works(void)
{
	java_env tool = java_found.tool;
	struct java_stack stack;
	void *class_ = NULL, *loader = NULL;
	java_walk(&stack);
	return stack.nr > 1 &&
	       JAVA_CALL(tool, int, JVMTI_GetMethodDeclaringClass, (java_env, void *, void **),
		       stack.frame[1].method, &class_) == 0 &&
	       JAVA_CALL(tool, int, JVMTI_GetClassLoader, (java_env, void *, void **), class_,
		       &loader) == 0 &&
	       !loader;
}

void java_class_prepared(java_env tool, java_env jni, void *thread, void *class_)
{
	static uint32_t is_done;
	(void)thread, (void)class_;
	if (!java_thread_class || !java_library_works() ||
		__atomic_exchange_n(&is_done, 1, __ATOMIC_ACQ_REL))
		return;
	java_put_all(jni);
	JAVA_CALL(tool, int, JVMTI_SetEventNotificationMode, (java_env, int, int, void *, ...), 0,
		JVMTI_EVENT_CLASS_PREPARE, NULL);
}

#endif
