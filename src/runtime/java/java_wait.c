/* SPDX-License-Identifier: Apache-2.0 */
/*
 * java_wait.c - monitors, locks, queues and sleep of Java, in the place of what the VM does for them.
 *
 * A thread that waits in Java sleeps on a condition variable of its own, in the VM. Shortly before,
 * an event or one of our native methods has said for which object that will be. So the wait is
 * recorded where the VM calls pthread_cond_wait(), if it comes to that, and a thread that signals
 * that condition variable has given the object up, or has made happen what it waits for. A lock
 * that is free is taken by an instruction that nobody sees: it costs nothing more than without us.
 */
#include "runtime/java/java.h"

#include <string.h>

#ifndef PRELOAD_STATIC

enum {
	KNOWN_BITS = 12,
	SLEEPERS_BITS = 12,
	SLEEPERS_PROBED = 16,
	STACKS_ALWAYS = 64, /* per thread; then one in */
	STACKS_ONE_IN = 16,
};

/* ---- objects --------------------------------------------------------------------------------- */

/* Objects move: they are known by the number that the VM gives each for ever (identityHashCode),
 * which is seldom that of another one. */
static uint64_t java_known[1 << KNOWN_BITS]; /* number << 24 | image << 8 | enum java_wait */

static uint64_t java_word(uint32_t number, unsigned type)
{
	return (uint64_t)number << 4 | (uint64_t)type << RING_OBJECT_TYPE_SHIFT;
}

void java_name_object(uint64_t object, const char *what, const char *at)
{
	char text[2 * JAVA_TEXT_BYTES];
	size_t nr = java_add(text, 0, sizeof text, what, strlen(what));
	if (nr && *at)
		nr = java_add(text, nr, sizeof text, " of ", 4);
	nr = java_add(text, nr, sizeof text, at, strlen(at));
	preload_record_text(
		RING_name, (const uint64_t[]){object, RING_NAME_object, 0, nr}, 4, text, nr);
}

static bool java_ends(const char *text, const char *with)
{
	size_t nr = strlen(text), n = strlen(with);
	return nr >= n && strcmp(text + nr - n, with) == 0;
}

static uint32_t java_number_of(void *object)
{
	int32_t number = 0;
	JAVA_CALL(java_found.tool, int, JVMTI_GetObjectHashCode, (java_env, void *, int32_t *),
		object, &number);
	return (uint32_t)number;
}

static uint64_t *java_known_slot(uint32_t number)
{
	return &java_known[number * 0x9e3779b1u >> (32 - KNOWN_BITS)];
}

static uint64_t java_known_as(uint32_t number, enum java_wait kind)
{
	return (uint64_t)number << 24 | (uint64_t)(uint16_t)preload_fresh.image << 8 | kind;
}

static uint64_t java_monitor(java_env jni, void *object, const struct java_stack *stack)
{
	char class_[JAVA_TEXT_BYTES];
	struct java_words words;
	const uint32_t number = java_number_of(object);
	const uint64_t word = java_word(number, TRACE_OBJECT_monitor);
	uint64_t *slot = java_known_slot(number ^ 1), entry = java_known_as(number, JAVA_NOTHING);
	if (__atomic_load_n(slot, __ATOMIC_RELAXED) == entry)
		return word;
	java_class_of(jni, object, class_);
	java_words_of(stack, &words);
	java_name_object(word, class_, words.at);
	__atomic_store_n(slot, entry, __ATOMIC_RELAXED);
	return word;
}

/* What a thread parks for. A thread that gives up waiting after a time may go on without the lock:
 * that is no wait for a lock then, which would end with having it. */
static uint64_t java_blocker(java_env jni, void *object, const struct java_stack *stack,
	bool is_timed, enum java_wait *ret_kind)
{
	char class_[JAVA_TEXT_BYTES];
	struct java_words words;
	const uint32_t number = java_number_of(object);
	uint64_t *slot = java_known_slot(is_timed ? ~number : number);
	const uint64_t entry = __atomic_load_n(slot, __ATOMIC_RELAXED);
	bool is_lock = entry == java_known_as(number, JAVA_LOCK);
	bool is_known = is_lock || entry == java_known_as(number, JAVA_EVENT);
	if (!is_known) {
		java_class_of(jni, object, class_);
		is_lock = !is_timed && (java_ends(class_, "ReentrantLock") ||
					       java_ends(class_, "ReentrantReadWriteLock") ||
					       java_ends(class_, "StampedLock"));
	}
	*ret_kind = is_lock ? JAVA_LOCK : JAVA_EVENT;
	const uint64_t word =
		java_word(number, is_lock ? TRACE_OBJECT_java_lock : TRACE_OBJECT_blocker);
	if (is_known)
		return word;
	java_words_of(stack, &words);
	java_name_object(word, is_lock || !*words.called ? class_ : words.called, words.at);
	__atomic_store_n(slot, java_known_as(number, *ret_kind), __ATOMIC_RELAXED);
	return word;
}

/* Whoever waits in Object.wait() waits for a call of notify(), or for a thread's end. */
static uint64_t java_notified(void *object, const struct java_stack *stack)
{
	struct java_words words;
	const uint32_t number = java_number_of(object);
	const uint64_t word = java_word(number, TRACE_OBJECT_blocker);
	uint64_t *slot = java_known_slot(number), entry = java_known_as(number, JAVA_EVENT);
	if (__atomic_load_n(slot, __ATOMIC_RELAXED) == entry)
		return word;
	java_words_of(stack, &words);
	java_name_object(word, *words.called ? words.called : "Object.wait", words.at);
	__atomic_store_n(slot, entry, __ATOMIC_RELAXED);
	return word;
}

/* ---- what a thread holds --------------------------------------------------------------------- */

static struct java_hold *java_hold_of(struct java_thread *self, uint64_t object)
{
	for (unsigned i = 0; i < JAVA_HOLDS; i++)
		if (self->hold[i].object == object)
			return &self->hold[i];
	return NULL;
}

/* It had it, and nobody waited for it when it gave it up, so that nobody saw that: it is told to
 * have given it up at once. */
static void java_gave_up(struct java_thread *self, uint64_t object)
{
	struct java_hold *hold = java_hold_of(self, object);
	if (!hold)
		return;
	PRELOAD_RECORD_AT(hold->since_tsc + 1, lock_release, object, hold->site);
	hold->object = 0;
}

static void java_acquires(struct java_thread *self, uint64_t object, uint64_t site)
{
	const uint64_t now = preload_now();
	java_gave_up(self, object);
	struct java_hold *hold = java_hold_of(self, 0);
	PRELOAD_RECORD_AT(now, lock_acquire, object, site);
	if (hold)
		*hold = (struct java_hold){object, site, now, self->level};
	else /* too many at once */
		PRELOAD_RECORD_AT(now, lock_release, object, site);
}

/* What it has taken at a level that it has left, or before the place that took it, it has no more. */
static void java_look_at_holds(struct java_thread *self, const struct java_stack *stack)
{
	for (unsigned i = 0; i < JAVA_HOLDS; i++)
		if (self->hold[i].object && !java_is_within(stack, &self->hold[i].level))
			java_gave_up(self, self->hold[i].object);
}

/* It gives the lock up, for which somebody has waited since then. Nobody has seen it take a lock that
 * was free: it had it when that wait began, and is told to have taken it then. (If it has had a
 * record since then, the recorder takes the time of that.) */
static void java_releases(
	struct java_thread *self, uint64_t object, uint64_t site, uint64_t waited_since_tsc)
{
	const uint64_t now = preload_now();
	struct java_hold *hold = java_hold_of(self, object);
	if (!hold)
		PRELOAD_RECORD_AT(waited_since_tsc - 1, lock_acquire, object, site);
	PRELOAD_RECORD_AT(now, lock_release, object, hold ? hold->site : site);
	if (hold)
		hold->object = 0;
}

/* ---- who sleeps on which condition variable -------------------------------------------------- */

/* A thread's condition variables are its own for its life. Set by the sleeper, who has the mutex. */
static struct java_sleeper {
	uintptr_t cond; /* 0: free */
	uint64_t object, site, since_tsc;
	uint32_t kind; /* enum java_wait */
} java_sleepers[1 << SLEEPERS_BITS];

static struct java_sleeper *java_sleeper_of(uintptr_t cond, bool add)
{
	size_t first = (size_t)((cond >> 4) * 0x9e3779b97f4a7c15u >> (64 - SLEEPERS_BITS));
	for (size_t i = 0; i < SLEEPERS_PROBED; i++) {
		struct java_sleeper *s = &java_sleepers[(first + i) % PRELOAD_COUNT(java_sleepers)];
		uintptr_t is = __atomic_load_n(&s->cond, __ATOMIC_ACQUIRE);
		if (is == cond)
			return s;
		if (is)
			continue;
		if (!add)
			return NULL;
		if (__atomic_compare_exchange_n(
			    &s->cond, &is, cond, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return s;
	}
	return NULL;
}

static void java_record_wait(
	struct java_thread *self, unsigned kind, const uint64_t *words, size_t nr)
{
	struct preload_stack stack = {.nr_frames = self->nr_frames};
	if (self->nr_frames)
		memcpy(stack.frame, self->frame, self->nr_frames * sizeof *stack.frame);
	preload_record_stack_at(preload_now(), kind, words, nr, nr, &stack);
}

static void java_wait_begins(struct java_thread *self)
{
	if (!self->is_told)
		self->since_tsc = preload_now();
	if (self->wait == JAVA_LOCK && !self->is_told) {
		java_gave_up(self, self->object);
		java_record_wait(
			self, PRELOAD_lock_wait, PRELOAD_WORDS(self->object, self->site, 0));
	} else if (self->wait == JAVA_EVENT) {
		if (self->monitor && java_hold_of(self, self->monitor))
			java_releases(self, self->monitor, self->site, preload_now());
		java_record_wait(
			self, PRELOAD_cond_wait, PRELOAD_WORDS(self->object, 0, self->site, 0));
	}
	self->is_told = 1;
}

bool preload_java_waits(const volatile void *cond, uintptr_t caller)
{
	if (!preload_java_is_own(caller) || !preload_on())
		return false;
	struct java_thread *self = java_self();
	if (self->wait == JAVA_NOTHING)
		return false;
	if (self->wait == JAVA_SLEEP)
		return true;
	struct java_sleeper *s = java_sleeper_of((uintptr_t)cond, true);
	if (!s)
		return false;
	java_wait_begins(self);
	s->object = self->object;
	s->site = self->site;
	s->since_tsc = self->since_tsc;
	__atomic_store_n(&s->kind, self->wait, __ATOMIC_RELEASE);
	return true;
}

void preload_java_waited(const volatile void *cond, int result)
{
	struct java_thread *self = java_self();
	struct java_sleeper *s = java_sleeper_of((uintptr_t)cond, false);
	if (s)
		__atomic_store_n(&s->kind, JAVA_NOTHING, __ATOMIC_RELEASE);
	if (self->wait == JAVA_EVENT)
		PRELOAD_RECORD(cond_wake, self->object, 0, self->site, (uint64_t)result);
}

bool preload_java_signals(const volatile void *cond, uintptr_t caller)
{
	if (!preload_java_is_own(caller))
		return false;
	const struct java_sleeper *s = java_sleeper_of((uintptr_t)cond, false);
	const uint32_t kind = s ? __atomic_load_n(&s->kind, __ATOMIC_ACQUIRE) : JAVA_NOTHING;
	if (kind == JAVA_NOTHING)
		return s != NULL; /* it is there already: a signal in vain */
	struct java_thread *self = java_self();
	const uint64_t site = self->woken_by ? self->woken_by : s->site;
	if (kind == JAVA_LOCK)
		java_releases(self, s->object, site, s->since_tsc);
	else
		PRELOAD_RECORD(cond_signal, s->object, site);
	return true;
}

/* ---- what it is about to wait for ------------------------------------------------------------ */

static void java_expect(struct java_thread *self, enum java_wait wait, uint64_t object,
	const struct java_stack *stack)
{
	const struct ring_head *head = preload_fresh.head;
	const uint32_t turn = preload_own()->nr_stacks++;
	java_look_at_holds(self, stack);
	self->wait = wait;
	self->object = object;
	self->site = java_site(stack);
	self->level = java_level_of(stack);
	self->is_told = 0;
	self->monitor = 0;
	self->nr_frames = 0;
	if (!head || (turn >= STACKS_ALWAYS && turn % STACKS_ONE_IN != 0))
		return;
	size_t max =
		head->stack_depth_max < RING_STACK_MAX ? head->stack_depth_max : RING_STACK_MAX;
	self->nr_frames = java_frames(stack, self->frame, max);
}

static void java_expect_nothing(struct java_thread *self)
{
	self->wait = JAVA_NOTHING;
}

/* A virtual thread may wait on one thread and go on on another. */
static bool java_is_virtual(java_env jni, void *thread)
{
	return java_found.has_virtual &&
	       JAVA_CALL(jni, uint8_t, JNI_IsVirtualThread, (java_env, void *), thread);
}

void java_monitor_enter(java_env tool, java_env jni, void *thread, void *object)
{
	struct java_stack stack;
	(void)tool;
	if (!preload_active() || java_is_virtual(jni, thread))
		return;
	java_walk(&stack);
	java_expect(java_self(), JAVA_LOCK, java_monitor(jni, object, &stack), &stack);
}

void java_monitor_entered(java_env tool, java_env jni, void *thread, void *object)
{
	(void)tool, (void)jni, (void)thread, (void)object;
	struct java_thread *self = java_self();
	if (self->wait == JAVA_LOCK && preload_active())
		java_acquires(self, self->object, self->site);
	java_expect_nothing(self);
}

void java_monitor_wait(java_env tool, java_env jni, void *thread, void *object, int64_t ms)
{
	struct java_stack stack;
	(void)tool, (void)ms;
	if (!preload_active() || java_is_virtual(jni, thread))
		return;
	java_walk(&stack);
	uint64_t monitor = java_monitor(jni, object, &stack);
	java_expect(java_self(), JAVA_EVENT, java_notified(object, &stack), &stack);
	java_self()->monitor = monitor;
}

/* It has been woken, and wants the monitor again: it may have to wait for that, on the same
 * condition variable, and no event says that it has it. */
void java_monitor_waited(
	java_env tool, java_env jni, void *thread, void *object, uint8_t is_timed_out)
{
	(void)tool, (void)jni, (void)thread, (void)object, (void)is_timed_out;
	struct java_thread *self = java_self();
	java_expect_nothing(self);
}

/* ---- native methods -------------------------------------------------------------------------- */

static bool java_is_parking(java_env jni, bool is_timed)
{
	struct java_stack stack;
	enum java_wait kind = JAVA_EVENT;
	void *thread = NULL, *object = NULL;
	if (!preload_active() || JAVA_CALL(java_found.tool, int, JVMTI_GetCurrentThread,
					 (java_env, void **), &thread) != 0)
		return false;
	object = JAVA_CALL(jni, void *, JNI_GetObjectField, (java_env, void *, void *), thread,
		java_found.blocker_field);
	java_walk(&stack);
	uint64_t word = java_blocker(jni, object ? object : thread, &stack, is_timed, &kind);
	java_expect(java_self(), kind, word, &stack);
	return true;
}

void java_park(java_env jni, void *unsafe, uint8_t is_absolute, int64_t time)
{
	const bool on = java_is_parking(jni, is_absolute || time > 0);
	java_found.park(jni, unsafe, is_absolute, time);
	if (!on)
		return;
	struct java_thread *self = java_self();
	/* It has the lock now, or parks again: then it had it for no time. */
	if (self->wait == JAVA_LOCK && self->is_told)
		java_acquires(self, self->object, self->site);
	java_expect_nothing(self);
}

void java_unpark(java_env jni, void *unsafe, void *thread)
{
	struct java_stack stack;
	struct java_thread *self = NULL;
	if (preload_active()) {
		java_walk(&stack);
		self = java_self();
		self->woken_by = java_site(&stack);
	}
	java_found.unpark(jni, unsafe, thread);
	if (self)
		self->woken_by = 0;
}

void java_sleep(java_env jni, void *class_, int64_t time)
{
	struct java_stack stack;
	const bool on = time > 0 && preload_active();
	struct java_thread *self = on ? java_self() : NULL;
	if (on) {
		java_walk(&stack);
		java_expect(self, JAVA_SLEEP, 0, &stack);
		PRELOAD_RECORD(sleep_begin,
			(uint64_t)time * (java_found.is_sleep_in_ns ? 1 : 1000000), self->site);
	}
	java_found.sleep(jni, class_, time);
	if (!on)
		return;
	java_expect_nothing(self);
	PRELOAD_RECORD(sleep_end);
}

#endif
