/* SPDX-License-Identifier: Apache-2.0 */
/* java.h - what the files of this room share. Runs inside other people's processes: README.md. */
#ifndef LONGPOLE_RUNTIME_JAVA_JAVA_H
#define LONGPOLE_RUNTIME_JAVA_JAVA_H

#include "preload/preload.h"
#include "runtime/java/jvm.h"

enum {
	JAVA_HOLDS = 6,
	JAVA_DEPTH_MAX = 48, /* frames that are looked at for one of the program's own */
};

/* What a thread is about to wait for, or waits for, in Java's terms. */
enum java_wait {
	JAVA_NOTHING,
	JAVA_LOCK,  /* a monitor, or a lock of java.util.concurrent: giving it up wakes one */
	JAVA_EVENT, /* anything else that another thread wakes it for */
	JAVA_SLEEP, /* told already */
};
/* A frame of a thread's, by its place from the outermost one. */
struct java_level {
	uint64_t from_outermost; /* 0: not known */
	void *method;
	int64_t location;
};
struct java_hold {
	uint64_t object, site, since_tsc;
	struct java_level level; /* that took it */
};
struct java_thread {
	uint64_t object, site;
	uint64_t monitor;   /* of an object whose wait() it is in; or 0 */
	uint64_t since_tsc; /* when it fell asleep first, for that */
	uint64_t woken_by;  /* site of the call of Unsafe.unpark() that this thread is in; or 0 */
	uint64_t started;   /* place that the thread that is being started is named by; or 0 */
	uint32_t wait;      /* enum java_wait */
	uint32_t is_told;
	struct java_level level; /* that waits */
	uint64_t nr_frames;
	uint64_t frame[RING_STACK_MAX];
	struct java_hold hold[JAVA_HOLDS];
};

/* The VM of this process: `tool` is set last, when the VM is up. */
struct java_found {
	uintptr_t begin, nr_bytes; /* libjvm */
	java_env tool;
	/* what we stand before */
	int (*create)(java_env *vm, java_env *jni, void *arguments);
	void (*park)(java_env jni, void *unsafe, uint8_t is_absolute, int64_t time);
	void (*unpark)(java_env jni, void *unsafe, void *thread);
	void (*sleep)(java_env jni, void *class_, int64_t time);
	void (*start)(java_env jni, void *thread);
	bool is_sleep_in_ns, has_virtual; /* has_virtual: the VM knows virtual threads (JDK 21) */
	void *blocker_field;              /* of Thread */
};
_Static_assert(sizeof(struct java_thread) <= PRELOAD_JAVA_WORDS * sizeof(uint64_t), "has room");
extern struct java_found java_found __attribute__((visibility("hidden")));

/* java_frame.c - the frames of the thread that asks. For a moment when it may call the VM. */
struct java_stack {
	uint32_t nr;
	struct java_frame_info frame[JAVA_DEPTH_MAX];
};
void java_walk(struct java_stack *stack);
/* A RING_place: the innermost frame of the program's own, else of the Java library's that is no
 * lock's; 0: there is none that has a name. */
uint64_t java_site(const struct java_stack *stack);
struct java_level java_level_of(const struct java_stack *stack); /* of java_site() */
/* May a thread whose frames are these be in what was begun at that level? */
bool java_is_within(const struct java_stack *stack, const struct java_level *level);
size_t java_frames(const struct java_stack *stack, uint64_t *to, size_t max);
/* The place of a method's bytecode; 0: it has no name. */
uint64_t java_place(void *method, int64_t location);
/* A place of that name, in no file. */
uint64_t java_place_named(const char *name);
/* Text of java_site(): "Main.run (Main.java:12)", and before that what of the Java library was
 * called there ("LinkedBlockingQueue.take"), empty if nothing. */
enum { JAVA_TEXT_BYTES = 256 };
struct java_words {
	char called[JAVA_TEXT_BYTES], at[JAVA_TEXT_BYTES];
};
void java_words_of(const struct java_stack *stack, struct java_words *ret);
/* Puts nr_bytes of a text at `at` of what has room for so many; returns where it ends. */
size_t java_add(char *to, size_t at, size_t room, const char *text, size_t nr_bytes);
/* "Outer$Inner" of an object's class; of a class itself, its own and ".class". */
void java_class_of(java_env jni, void *object, char text[JAVA_TEXT_BYTES]);

/* java_wait.c - events of monitors, parking, sleeping. */
void java_monitor_enter(java_env tool, java_env jni, void *thread, void *object);
void java_monitor_entered(java_env tool, java_env jni, void *thread, void *object);
void java_monitor_wait(java_env tool, java_env jni, void *thread, void *object, int64_t ms);
void java_monitor_waited(
	java_env tool, java_env jni, void *thread, void *object, uint8_t is_timed_out);
/* "what of at", or one of them that is not empty, is the object's name. */
void java_name_object(uint64_t object, const char *what, const char *at);
void java_park(java_env jni, void *unsafe, uint8_t is_absolute, int64_t time);
void java_unpark(java_env jni, void *unsafe, void *thread);
void java_sleep(java_env jni, void *class_, int64_t time);

/* java_own.c - what the VM does itself. */
void java_gc_begins(java_env tool);
void java_gc_ends(java_env tool);

/* java_native.c - puts these, and what names threads, before the VM's own native methods. */
void java_natives_find(java_env jni);
void java_class_prepared(java_env tool, java_env jni, void *thread, void *class_);

/* java_code.c - compiled code. */
void java_code_loaded(java_env tool, void *method, int32_t size, const void *code, int32_t nr_lines,
	const void *lines, const void *inlining);
void java_code_made(java_env tool, const char *name, const void *code, int32_t size);

PRELOAD_INLINE struct java_thread *java_self(void)
{
	return (struct java_thread *)(void *)preload_own()->java;
}

#endif
