/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java_frame.c - the Java frames of the thread that asks, as places of the ring (RING_place).
 *
 * The VM walks its stack. A place is named once, when it is met first; from then on it is one word
 * of a table, found by the method and the bytecode. A method's number is never another's.
 */
#include "preload/place.h"
#include "runtime/java/java.h"

#include <string.h>

#ifndef PRELOAD_STATIC

enum {
	SLOT_BITS = 14,
	FUNCTION_BYTES = 200,
	FILE_BYTES = 300,
};

#define PLACE_LOCKS PLACE_SPECIAL /* what every lock and queue waits in, and reflection */
static uint64_t java_places[1 << SLOT_BITS];

/* What the VM says of a method; texts are the VM's, to be given back. */
struct java_method {
	char *name, *class_, *file;
	uint32_t line;
};

static bool java_begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool java_is_library(const char *class_)
{
	static const char of[][16] = {"Ljava/", "Ljdk/", "Lsun/", "Ljavax/", "Lcom/sun/"};
	for (size_t i = 0; i < PRELOAD_COUNT(of); i++)
		if (java_begins(class_, of[i]))
			return true;
	return false;
}

static bool java_is_of_locks(const char *class_)
{
	static const char of[][56] = {"Ljava/util/concurrent/locks/", "Ljdk/internal/",
		"Ljava/lang/Object;", "Ljava/lang/invoke/", "Ljava/lang/reflect/",
		"Ljava/util/concurrent/ForkJoinPool;",
		"Ljava/util/concurrent/CompletableFuture$Signaller;"};
	for (size_t i = 0; i < PRELOAD_COUNT(of); i++)
		if (java_begins(class_, of[i]))
			return true;
	return false;
}

static void java_give_back(java_env tool, void *memory)
{
	if (memory)
		JAVA_CALL(tool, int, JVMTI_Deallocate, (java_env, void *), memory);
}

static uint32_t java_line_of(java_env tool, void *method, int64_t location)
{
	int32_t nr = 0;
	struct java_line *table = NULL;
	uint32_t line = 0;
	int64_t best = -1;
	if (JAVA_CALL(tool, int, JVMTI_GetLineNumberTable,
		    (java_env, void *, int32_t *, struct java_line **), method, &nr, &table) != 0)
		return 0;
	for (int32_t i = 0; i < nr; i++)
		if (table[i].start <= location && table[i].start > best) {
			best = table[i].start;
			line = (uint32_t)table[i].line;
		}
	java_give_back(tool, table);
	return line;
}

static bool java_look_up(java_env tool, void *method, int64_t location, struct java_method *ret)
{
	void *class_ = NULL;
	*ret = (struct java_method){0};
	if (JAVA_CALL(tool, int, JVMTI_GetMethodName, (java_env, void *, char **, char **, char **),
		    method, &ret->name, NULL, NULL) != 0 ||
		JAVA_CALL(tool, int, JVMTI_GetMethodDeclaringClass, (java_env, void *, void **),
			method, &class_) != 0 ||
		JAVA_CALL(tool, int, JVMTI_GetClassSignature, (java_env, void *, char **, char **),
			class_, &ret->class_, NULL) != 0)
		return false;
	if (JAVA_CALL(tool, int, JVMTI_GetSourceFileName, (java_env, void *, char **), class_,
		    &ret->file) != 0)
		ret->file = NULL;
	ret->line = java_line_of(tool, method, location);
	return true;
}

static void java_forget(java_env tool, const struct java_method *m)
{
	java_give_back(tool, m->name);
	java_give_back(tool, m->class_);
	java_give_back(tool, m->file);
}

/* ---- texts ----------------------------------------------------------------------------------- */

size_t java_add(char *to, size_t at, size_t room, const char *text, size_t nr_bytes)
{
	size_t n = at < room ? (nr_bytes < room - at ? nr_bytes : room - at) : 0;
	memcpy(to + at, text, n);
	return at + n;
}

/* "Outer$Inner" of "Lcom/of/Outer$Inner;". */
static const char *java_simple(const char *signature, size_t *ret_bytes)
{
	const char *slash = strrchr(signature, '/');
	const char *name = slash ? slash + 1 : *signature == 'L' ? signature + 1 : signature;
	*ret_bytes = strcspn(name, ";");
	return name;
}

static size_t java_put_function(const struct java_method *m, char *to, size_t room)
{
	size_t nr;
	const char *name = java_simple(m->class_, &nr);
	size_t at = java_add(to, 0, room, name, nr);
	at = java_add(to, at, room, ".", 1);
	return java_add(to, at, room, m->name, strlen(m->name));
}

/* With the directories that the class's package is in: "com/of/Outer.java". */
static size_t java_put_file(const struct java_method *m, char *to, size_t room)
{
	const char *slash = strrchr(m->class_, '/');
	size_t at = 0;
	if (!m->file)
		return 0;
	if (slash && *m->class_ == 'L')
		at = java_add(to, 0, room, m->class_ + 1, (size_t)(slash - m->class_));
	return java_add(to, at, room, m->file, strlen(m->file));
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Writes RING_place. Returns what is known; PLACE_KNOWN alone: it has no name. */
static PRELOAD_COLD uint64_t java_name_place(void *method, int64_t location)
{
	java_env tool = java_found.tool;
	char text[FUNCTION_BYTES + FILE_BYTES];
	struct java_method m;
	uint64_t known = PLACE_KNOWN;
	if (java_look_up(tool, method, location, &m)) {
		size_t function_bytes = java_put_function(&m, text, FUNCTION_BYTES);
		size_t file_bytes = java_put_file(&m, text + function_bytes, FILE_BYTES);
		known |= preload_place_name(text, function_bytes, file_bytes, m.line);
		if (java_is_library(m.class_))
			known |= PLACE_LIBRARY | (java_is_of_locks(m.class_) ? PLACE_LOCKS : 0);
	}
	java_forget(tool, &m);
	return known;
}

/* What is known of the place. */
static uint64_t java_known(void *method, int64_t location)
{
	const uint64_t hash = preload_place_hash((uintptr_t)method, (uint64_t)location, 0);
	uint64_t known = preload_place_known(java_places, SLOT_BITS, hash);
	if (!known) {
		known = java_name_place(method, location);
		preload_place_keep(java_places, SLOT_BITS, hash, known);
	}
	return known;
}

uint64_t java_place(void *method, int64_t location)
{
	uint64_t number = java_known(method, location) & PLACE_NUMBER;
	return number ? ring_place(number) : 0;
}

uint64_t java_place_named(const char *name)
{
	char text[FUNCTION_BYTES];
	size_t nr_bytes = java_add(text, 0, sizeof text, name, strlen(name));
	uint32_t number = nr_bytes ? preload_place_name(text, nr_bytes, 0, 0) : 0;
	return number ? ring_place(number) : 0;
}

/* ---- frames ---------------------------------------------------------------------------------- */

void java_walk(struct java_stack *stack)
{
	int32_t nr = 0;
	if (JAVA_CALL(java_found.tool, int, JVMTI_GetStackTrace,
		    (java_env, void *, int32_t, int32_t, struct java_frame_info *, int32_t *), NULL,
		    0, JAVA_DEPTH_MAX, stack->frame, &nr) != 0)
		nr = 0;
	stack->nr = (uint32_t)nr;
}

/* The innermost of the program's own; else of the library's that is no lock's; nr: none. */
static uint32_t java_site_in(const struct java_stack *stack)
{
	uint32_t library = stack->nr;
	for (uint32_t i = 0; i < stack->nr; i++) {
		uint64_t known = java_known(stack->frame[i].method, stack->frame[i].location);
		if (!(known & PLACE_NUMBER))
			continue;
		if (!(known & PLACE_LIBRARY))
			return i;
		if (library == stack->nr && !(known & PLACE_LOCKS))
			library = i;
	}
	return library;
}

uint64_t java_site(const struct java_stack *stack)
{
	uint32_t i = java_site_in(stack);
	return i < stack->nr ? java_place(stack->frame[i].method, stack->frame[i].location) : 0;
}

struct java_level java_level_of(const struct java_stack *stack)
{
	uint32_t i = java_site_in(stack);
	if (i == stack->nr || stack->nr == JAVA_DEPTH_MAX)
		return (struct java_level){0};
	return (struct java_level){stack->nr - i, stack->frame[i].method, stack->frame[i].location};
}

bool java_is_within(const struct java_stack *stack, const struct java_level *level)
{
	if (!level->from_outermost || stack->nr == JAVA_DEPTH_MAX)
		return true; /* who knows */
	if (stack->nr < level->from_outermost)
		return false;
	const struct java_frame_info *f = &stack->frame[stack->nr - level->from_outermost];
	return f->method == level->method && f->location >= level->location;
}

size_t java_frames(const struct java_stack *stack, uint64_t *to, size_t max)
{
	size_t nr = 0;
	for (uint32_t i = 0; i < stack->nr && nr < max; i++) {
		uint64_t place = java_place(stack->frame[i].method, stack->frame[i].location);
		if (place)
			to[nr++] = place;
	}
	return nr;
}

/* ---- words ----------------------------------------------------------------------------------- */

static size_t java_put_number(char *to, uint32_t number)
{
	char digit[10];
	size_t nr = 0;
	do
		digit[nr++] = (char)('0' + number % 10);
	while (number /= 10);
	for (size_t i = 0; i < nr; i++)
		to[i] = digit[nr - 1 - i];
	return nr;
}

static void java_put_words(const struct java_frame_info *f, char text[JAVA_TEXT_BYTES], bool line)
{
	java_env tool = java_found.tool;
	enum { KEPT = 16 }; /* for the line */
	struct java_method m;
	size_t at = 0;
	if (java_look_up(tool, f->method, f->location, &m)) {
		at = java_put_function(&m, text, JAVA_TEXT_BYTES - KEPT);
		if (line && m.file) {
			at = java_add(text, at, JAVA_TEXT_BYTES - KEPT, " (", 2);
			at = java_add(text, at, JAVA_TEXT_BYTES - KEPT, m.file, strlen(m.file));
			text[at++] = ':';
			at += java_put_number(text + at, m.line);
			text[at++] = ')';
		}
	}
	text[at] = '\0';
	java_forget(tool, &m);
}

void java_words_of(const struct java_stack *stack, struct java_words *ret)
{
	uint32_t i = java_site_in(stack);
	ret->called[0] = ret->at[0] = '\0';
	if (i == stack->nr)
		return;
	java_put_words(&stack->frame[i], ret->at, true);
	if (i > 0)
		java_put_words(&stack->frame[i - 1], ret->called, false);
}

/* What a lock of java.util.concurrent waits for is the synchronizer in it. */
static size_t java_without_inner(const char *name, size_t nr)
{
	static const char inner[][16] = {"$NonfairSync", "$FairSync", "$Sync"};
	for (size_t i = 0; i < PRELOAD_COUNT(inner); i++) {
		size_t n = strlen(inner[i]);
		if (nr > n && memcmp(name + nr - n, inner[i], n) == 0)
			return nr - n;
	}
	return nr;
}

static size_t java_put_class(
	java_env tool, void *class_, char *text, size_t room, bool *ret_is_class)
{
	char *signature = NULL;
	size_t nr, at = 0;
	if (JAVA_CALL(tool, int, JVMTI_GetClassSignature, (java_env, void *, char **, char **),
		    class_, &signature, NULL) != 0)
		return 0;
	*ret_is_class = strcmp(signature, "Ljava/lang/Class;") == 0;
	const char *name = java_simple(signature, &nr);
	at = java_add(text, 0, room, name, java_without_inner(name, nr));
	java_give_back(tool, signature);
	return at;
}

void java_class_of(java_env jni, void *object, char text[JAVA_TEXT_BYTES])
{
	enum { KEPT = 8 };
	java_env tool = java_found.tool;
	bool is_class = false, unused;
	void *class_ = JAVA_CALL(jni, void *, JNI_GetObjectClass, (java_env, void *), object);
	size_t at = java_put_class(tool, class_, text, JAVA_TEXT_BYTES - KEPT, &is_class);
	if (is_class) {
		at = java_put_class(tool, object, text, JAVA_TEXT_BYTES - KEPT, &unused);
		at = java_add(text, at, JAVA_TEXT_BYTES - 1, ".class", 6);
	}
	text[at] = '\0';
	JAVA_CALL(jni, void, JNI_DeleteLocalRef, (java_env, void *), class_);
}

#endif
