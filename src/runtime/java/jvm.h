/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jvm.h - the two tables of functions that every Java VM has, JNI's and the tool interface's
 * (JVMTI), as far as we call them. Where a function is in its table is part of both specifications,
 * so no header of a JDK is needed; tests/cli/java.sh compares with one where there is one.
 */
#ifndef LONGPOLE_RUNTIME_JAVA_JVM_H
#define LONGPOLE_RUNTIME_JAVA_JVM_H

#include <stdint.h>

/* A VM, a thread's JNI environment, a tool's environment: each points to its table. */
typedef void *const *const *java_env;

/* The slots, from 0: the specification of JVMTI numbers its functions from 1. */
#define JVMTI_SLOTS(X)                                                                             \
	X(SetEventNotificationMode, 1)                                                             \
	X(GetCurrentThread, 17)                                                                    \
	X(GetThreadInfo, 8)                                                                        \
	X(Deallocate, 46)                                                                          \
	X(GetClassSignature, 47)                                                                   \
	X(GetSourceFileName, 49)                                                                   \
	X(GetClassLoader, 56)                                                                      \
	X(GetObjectHashCode, 57)                                                                   \
	X(GetMethodName, 63)                                                                       \
	X(GetMethodDeclaringClass, 64)                                                             \
	X(GetLineNumberTable, 69)                                                                  \
	X(GetStackTrace, 103)                                                                      \
	X(SetJNIFunctionTable, 119)                                                                \
	X(GetJNIFunctionTable, 120)                                                                \
	X(SetEventCallbacks, 121)                                                                  \
	X(GenerateEvents, 122)                                                                     \
	X(AddCapabilities, 141)
#define JNI_SLOTS(X)                                                                               \
	X(GetVersion, 4)                                                                           \
	X(FindClass, 6)                                                                            \
	X(ExceptionClear, 17)                                                                      \
	X(NewGlobalRef, 21)                                                                        \
	X(DeleteLocalRef, 23)                                                                      \
	X(GetObjectClass, 31)                                                                      \
	X(GetFieldID, 94)                                                                          \
	X(GetObjectField, 95)                                                                      \
	X(GetStaticMethodID, 113)                                                                  \
	X(CallStaticVoidMethod, 141)                                                               \
	X(RegisterNatives, 215)                                                                    \
	X(ExceptionCheck, 228)
enum jvmti_slot {
#define X(name, slot) JVMTI_##name = (slot),
	JVMTI_SLOTS(X)
#undef X
};
enum jni_slot {
#define X(name, slot) JNI_##name = (slot),
	JNI_SLOTS(X)
#undef X
		JNI_VM_GetEnv = 6, /* of the table of a VM */
	JNI_IsVirtualThread = 234, /* only from this version on */
	JNI_VERSION_OF_VIRTUAL = 0x00150000,
};

/* The events; the table of callbacks begins with the one of number 50. */
#define JVMTI_EVENTS(X)                                                                            \
	X(CLASS_PREPARE, 56)                                                                       \
	X(COMPILED_METHOD_LOAD, 68)                                                                \
	X(DYNAMIC_CODE_GENERATED, 70)                                                              \
	X(MONITOR_WAIT, 73)                                                                        \
	X(MONITOR_WAITED, 74)                                                                      \
	X(MONITOR_CONTENDED_ENTER, 75)                                                             \
	X(MONITOR_CONTENDED_ENTERED, 76)                                                           \
	X(GARBAGE_COLLECTION_START, 81)                                                            \
	X(GARBAGE_COLLECTION_FINISH, 82)
enum jvmti_event {
#define X(name, number) JVMTI_EVENT_##name = (number),
	JVMTI_EVENTS(X)
#undef X
		JVMTI_EVENT_FIRST = 50,
	JVMTI_EVENTS_NR = 38,
};

enum {
	JVMTI_VERSION_ASKED = 0x30010200, /* 1.2: all that is used here is in it */
	/* Capabilities, by bit. They are available also after the VM has started. */
	JVMTI_can_get_source_file_name = 11,
	JVMTI_can_get_line_numbers = 12,
	JVMTI_can_generate_compiled_method_load_events = 27,
	JVMTI_can_generate_monitor_events = 28,
	JVMTI_can_generate_garbage_collection_events = 31,
	JVMTI_CMLR_INLINE_INFO = 2,
};

struct java_frame_info { /* jvmtiFrameInfo */
	void *method;
	int64_t location; /* of the bytecode; -1: a native method */
};
struct java_line { /* jvmtiLineNumberEntry */
	int64_t start;
	int32_t line;
};
struct java_thread_info { /* jvmtiThreadInfo */
	char *name;
	int32_t priority;
	uint8_t is_daemon;
	void *group, *loader;
};
struct java_native { /* JNINativeMethod */
	const char *name, *signature;
	void *function;
};
/* What HotSpot says of inlining (jvmticmlr.h). */
struct java_pc {
	const void *pc;
	int32_t nr_frames;
	void **methods;
	int32_t *locations;
};
struct java_inlining {
	int32_t kind, major, minor;
	const struct java_inlining *next;
	int32_t nr;
	const struct java_pc *pc;
};

/* JAVA_CALL(env, result type, JVMTI_GetMethodName, (parameter types after the environment), ...) */
#define JAVA_CALL(env, type, slot, parameters, ...)                                                \
	(((type(*) parameters)(*(env))[slot])((env), ##__VA_ARGS__))

#endif
