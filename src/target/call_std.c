/* SPDX-License-Identifier: Apache-2.0 */
/* call_std.c - C++'s threads and condition variables, of which libstdc++, which is not
 * rewritten, calls pthreads. By their mangled names; apart from the rest, lest a C program need
 * libstdc++. They may throw: nothing here has to be undone then. */
#include "target/target.h"

#include <pthread.h>

#define AT      TARGET_STUB
#define WORD(p) ((uint64_t)(uintptr_t)(p))
/* The mangled name, and ours of it. */
#define REAL(name) __asm__(name)
#define OURS(name) __asm__("longpole_at_" name)
#define START                                                                                      \
	"_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE"
#define JOIN   "_ZNSt6thread4joinEv"
#define WAIT   "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"
#define NOTIFY "_ZNSt18condition_variable10notify_oneEv"
#define ALL    "_ZNSt18condition_variable10notify_allEv"

struct std_thread {
	uint64_t handle;
};
struct std_lock { /* std::unique_lock<std::mutex> */
	pthread_mutex_t *mutex;
};

void std_start(struct std_thread *thread, void *state, void (*depend)(void)) REAL(START);
void longpole_at_std_start(struct std_thread *thread, void *state, void (*depend)(void))
	OURS(START);
AT void longpole_at_std_start(struct std_thread *thread, void *state, void (*depend)(void))
{
	uint64_t before = target_call_ticks();
	longpole_memory.nr_told++;
	std_start(thread, state, depend);
	longpole_memory.nr_told--;
	longpole_target_call(CALL_thread_create, before, before, 0, thread->handle, 0, 0);
	longpole_target_let_see(false);
}

void std_join(struct std_thread *thread) REAL(JOIN);
void longpole_at_std_join(struct std_thread *thread) OURS(JOIN);
AT void longpole_at_std_join(struct std_thread *thread)
{
	uint64_t handle = thread->handle; /* none after it */
	longpole_target_let_see(true);
	uint64_t before = target_call_ticks();
	longpole_memory.nr_told++;
	std_join(thread);
	longpole_memory.nr_told--;
	longpole_target_call(CALL_thread_join, before, target_call_ticks(), handle, 0, 0, 0);
}

void std_wait(void *cond, struct std_lock *lock) REAL(WAIT);
void longpole_at_std_wait(void *cond, struct std_lock *lock) OURS(WAIT);
AT void longpole_at_std_wait(void *cond, struct std_lock *lock)
{
	uint64_t before = target_call_ticks();
	longpole_target_awaits(cond, lock->mutex);
	longpole_target_call(CALL_unlock, before, before, WORD(lock->mutex), 0, 0, 0);
	longpole_target_let_see(true);
	std_wait(cond, lock);
	longpole_target_call(CALL_wait, before, target_call_ticks(), WORD(cond), 0, 0, 0);
	uint64_t after = target_call_ticks();
	longpole_target_took(lock->mutex, after);
	longpole_target_call(CALL_lock, before, after, WORD(lock->mutex), 0, 0, 0);
}

/* What gives: recorded before the call, lest the taker be recorded earlier. */
#define GIVE(name, of)                                                                             \
	void name(void *cond) REAL(of);                                                            \
	void longpole_at_##name(void *cond) OURS(of);                                              \
	AT void longpole_at_##name(void *cond)                                                     \
	{                                                                                          \
		uint64_t now = target_call_ticks();                                                \
		longpole_target_signals(cond);                                                     \
		longpole_target_call(CALL_signal, now, now, WORD(cond), 0, 0, 0);                  \
		name(cond);                                                                        \
	}
GIVE(std_notify_one, NOTIFY)
GIVE(std_notify_all, ALL)

/* ---- futures: only a thread that has to wait makes a call -------------------------------- */

#define FUTEX "_ZNSt28__atomic_futex_unsigned_base"
#define UNTIL "EPjjbNSt6chrono8durationIlSt5ratioILl1ELl1EEEENS2_IlS3_ILl1ELl1000000000EEEE"

/* (Not of every libstdc++.) */
#define FUTURE_WAIT(name, of)                                                                      \
	bool name(void *self, uint32_t *word, unsigned value, bool has_end, long s, long ns)       \
		REAL(of) __attribute__((weak));                                                    \
	bool longpole_at_##name(void *self, uint32_t *word, unsigned value, bool has_end, long s,  \
		long ns) OURS(of);                                                                 \
	AT bool longpole_at_##name(                                                                \
		void *self, uint32_t *word, unsigned value, bool has_end, long s, long ns)         \
	{                                                                                          \
		longpole_target_let_see(true);                                                     \
		uint64_t before = target_call_ticks();                                             \
		bool result = name(self, word, value, has_end, s, ns);                             \
		longpole_target_call(CALL_wait, before, target_call_ticks(), WORD(word), 0, 0, 0); \
		longpole_target_told(word);                                                        \
		return result;                                                                     \
	}
FUTURE_WAIT(std_future_wait, FUTEX "19_M_futex_wait_until" UNTIL)
FUTURE_WAIT(std_future_wait_steady, FUTEX "26_M_futex_wait_until_steady" UNTIL)

void std_future_notify(uint32_t *word) REAL(FUTEX "19_M_futex_notify_allEPj") __attribute__((weak));
void longpole_at_std_future_notify(uint32_t *word) OURS(FUTEX "19_M_futex_notify_allEPj");
AT void longpole_at_std_future_notify(uint32_t *word)
{
	(void)longpole_target_tells(word);
	std_future_notify(word);
}
