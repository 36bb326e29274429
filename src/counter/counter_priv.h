/* SPDX-License-Identifier: Apache-2.0 */
/* counter_priv.h - between the files of the counter library. */
#ifndef LONGPOLE_COUNTER_PRIV_H
#define LONGPOLE_COUNTER_PRIV_H

#define LONGPOLE_DISABLE /* we count; we have no phases */
#include "longpole/counter.h"

#include <stdbool.h>

#define COUNTER_BARRIER() __asm__ volatile("" ::: "memory")

/* ---- tables ---------------------------------------------------------------------------------- */

enum counter_how {
	COUNTER_CLOCK,     /* the thread's processor time */
	COUNTER_AT_SWITCH, /* moves at switches only: kept with the clock; config: its slot */
	COUNTER_USAGE,     /* getrusage */
	COUNTER_SLOT,      /* BPF's slots; config: which value */
	COUNTER_PMU,
};
/* Slots of longpole_counter_thread.kept; counter.h knows that the first is the clock. */
enum counter_kept {
	COUNTER_KEPT_TICKS,
	COUNTER_KEPT_SWITCHES,
	COUNTER_KEPT_FORCED,
	COUNTER_KEPT_RUNQUEUE,
	COUNTER_KEPT_MIGRATIONS,
	COUNTER_KEPT_NR,
};
_Static_assert((int)COUNTER_KEPT_NR <= (int)LONGPOLE_KEPT_NR, "slots");

struct counter_event {
	enum longpole_event id;
	const char *name, *unit;
	enum counter_how how;
	uint32_t type;
	uint64_t config;
};
const struct counter_event *counter_event_of(enum longpole_event id); /* NULL: unknown */

enum counter_reason {
#define REASON(name, text) COUNTER_REASON_##name,
#include "counter/reasons.def"
	COUNTER_REASON_NR
};

struct counter_refusal {
	enum counter_reason reason;
	int sys_errno;
};

/* ---- the clock ------------------------------------------------------------------------------- */

/* The TSC's rate, measured once in a process. False: not steady. */
bool counter_clock_init(void);
uint64_t counter_clock_ticks(uint64_t ns);
/* The rate, as another process on this machine has measured it; 0: it found no steady TSC. */
void counter_clock_adopt(uint64_t tick_hz);

/* ---- the thread ------------------------------------------------------------------------------ */

/* Fixed for all threads of a process: which marks work here. */
bool counter_mark_works(enum longpole_backend mark, struct counter_refusal *ret);

/* This thread's part for a mark (SYSCALL, PMU: the one that only knows its thread), made when
 * needed. NULL: no memory. In a fork's child a new one. */
struct longpole_counter_thread *counter_thread_get(enum longpole_backend mark);
/* May the calling thread read what was opened with this part? OK, FORKED or THREAD. */
int counter_thread_check(const struct longpole_counter_thread *t);
/* One more event, or one less, of this thread needs the slot. Without a mark: by system calls. */
bool counter_thread_use(
	enum longpole_backend mark, enum counter_kept slot, struct counter_refusal *ret);
void counter_thread_drop(enum longpole_backend mark, enum counter_kept slot);
/* Takes this thread's part for a read or a renewal. False: we interrupt one, and only
 * counter_thread_ask() will do. */
bool counter_thread_take(struct longpole_counter_thread *t);
void counter_thread_give(struct longpole_counter_thread *t);
/* Has the thread had the processor ever since the last renewal? */
bool counter_thread_stands(const struct longpole_counter_thread *t);
/* Values anew, and the mark; of a part that was taken. False: only counter_thread_ask() will do for
 * now. */
bool counter_thread_renew(struct longpole_counter_thread *t);
/* What the kernel says: one slot's value by system calls. */
int counter_thread_ask(struct longpole_counter_thread *t, enum counter_kept slot, uint64_t *value);

/* Where BPF keeps this thread's time in the kernel, or its number of system calls; NULL: why not.
 */
const uint64_t *counter_slot_value(bool calls, struct counter_refusal *ret);

/* ---- perf events ----------------------------------------------------------------------------- */

/* Opens a PMU event for the calling thread and maps it where rdpmc can be used. */
bool counter_pmu_open(struct longpole_counted *e, const struct counter_event *event,
	uint32_t backends, uint32_t flags);
void counter_pmu_close(struct longpole_counted *e, bool forked);
int counter_pmu_ask(struct longpole_counted *e, uint32_t flags, uint64_t *value);

long counter_perf_event_open(const struct perf_event_attr *attr, int32_t pid);
const volatile struct perf_event_mmap_page *counter_page_map(int fd);
void counter_page_unmap(const volatile struct perf_event_mmap_page *page);

#endif
