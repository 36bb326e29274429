/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counter.h - count what the calling thread does, exactly, and read the counts without a system
 * call. C11 or C++17, gcc or clang, Linux on x86-64 and 64-bit ARM. Link with -llongpole-counter (pkg-config
 * longpole-counter); the phases at the end need no library.
 *
 *     struct longpole_counter c;
 *     const enum longpole_event event[] = {LONGPOLE_TICKS, LONGPOLE_SWITCHES};
 *     uint64_t before[2], after[2];
 *     if (longpole_counter_open(&c, event, 2, NULL))          once in each thread
 *             complain(longpole_counter_explain(&c, text, sizeof text));
 *     longpole_counter_read(&c, before);                      a few nanoseconds more than rdtsc
 *     work();
 *     longpole_counter_read(&c, after);
 *     longpole_counter_close(&c);
 *
 * Counts belong to one thread: others' work, and time without a processor, are not in them. After
 * J. Demme and S. Sethumadhavan, "Rapid Identification of Architectural Bottlenecks via Precise
 * Event Counting" (LiMiT), ISCA 2011, on stock kernels. A source is chosen for each event when a
 * set is opened, the first one that works, and the set can be asked for the reasons:
 *
 *     pmu        the processor's event counter, read by rdpmc through perf's mapped page
 *     sentinel   ticks of the TSC less the time without a processor. The kernel clears a mark (the
 *                thread's rseq_cs) whenever it takes the processor away: while the mark stands, one
 *                rdtsc is enough; when it is gone, the kernel's own accounts are read anew
 *     page       the same; the mark is the sequence lock of a perf event's mapped page
 *     bpf        what a BPF program writes at each system call into memory that the thread can
 *                read; needs a longpole with root's rights (`longpole stat --kernel-time`)
 *     syscall    each read is a system call (200 to 700 ns)
 *
 * What a tick is: one of the time stamp counter, whose rate is fixed (longpole_counter_tick_hz()).
 * Not a cycle of the core, which may be faster or slower. A thread that is open in a virtual
 * machine may see its processor taken away by the host (steal time): the kernel's accounts leave
 * that out, so it is in a value only until the next switch, as far as values that never go
 * backwards allow. Interrupts that hit the thread are in its time, as in the kernel's.
 *
 * Rules. A set is opened, read and closed by one thread; another thread that reads it gets
 * LONGPOLE_COUNTER_THREAD. After fork() the child's sets answer LONGPOLE_COUNTER_FORKED: close them
 * and open new ones. Signal handlers may read a set of their thread at any time, also while a read
 * is interrupted, but not open or close one. A handler that leaves by longjmp() out of an
 * interrupted read makes later reads of that thread system calls; they stay right. Not after
 * vfork(). Sets that are still open when their thread ends are closed by it. Errno is left alone by
 * reads.
 */
#ifndef LONGPOLE_COUNTER_H
#define LONGPOLE_COUNTER_H

#include "annotate.h" /* how phases find the recorder */

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- events ---------------------------------------------------------------------------------- */

/* The numbers are for ever; names as text: longpole_event_name(). All are of the calling thread. */
enum longpole_event {
	LONGPOLE_TICKS = 1,           /* time with a processor, in ticks of the TSC */
	LONGPOLE_SWITCHES = 2,        /* times that it gave up or lost the processor */
	LONGPOLE_SWITCHES_FORCED = 3, /* of these: lost, while it could have gone on */
	LONGPOLE_RUNQUEUE_NS = 4,     /* time it was ready and no processor was free for it */
	LONGPOLE_MIGRATIONS = 5,      /* times it came to another processor */
	LONGPOLE_FAULTS = 6,          /* page faults */
	LONGPOLE_FAULTS_MAJOR = 7,    /* of these: that had to wait for a file or for swap */
	LONGPOLE_KERNEL_NS = 8,       /* time with a processor inside of system calls */
	LONGPOLE_SYSTEM_CALLS = 9,    /* that have ended */

	LONGPOLE_CYCLES = 16, /* of the core */
	LONGPOLE_INSTRUCTIONS = 17,
	LONGPOLE_BRANCHES = 18,
	LONGPOLE_BRANCH_MISSES = 19,
	LONGPOLE_CACHE_REFERENCES = 20, /* to the last level */
	LONGPOLE_CACHE_MISSES = 21,
	LONGPOLE_STALLED_FRONTEND = 22, /* cycles */
	LONGPOLE_STALLED_BACKEND = 23,
	LONGPOLE_REFERENCE_CYCLES = 24, /* at a fixed rate while not halted */
	LONGPOLE_L1D_MISSES = 25,       /* loads */
	LONGPOLE_DTLB_MISSES = 26,
	LONGPOLE_ITLB_MISSES = 27,
	LONGPOLE_L1I_MISSES = 28, /* of fetched instructions */

	LONGPOLE_CYCLES_OR_TICKS = 64, /* cycles where a PMU counts them, else ticks: see .event */
};
const char *longpole_event_name(enum longpole_event event); /* "branch-misses"; NULL: unknown */
const char *longpole_event_unit(enum longpole_event event); /* "ticks", "ns", "" (a count) */
/* 0: no such name. */
enum longpole_event longpole_event_find(const char *name);
/* The i-th event there is; 0: no more. */
enum longpole_event longpole_event_at(unsigned i);

/* ---- who counts ------------------------------------------------------------------------------ */

enum longpole_backend {
	LONGPOLE_BACKEND_NONE = 0,
	LONGPOLE_BACKEND_PMU = 1,
	LONGPOLE_BACKEND_SENTINEL = 2,
	LONGPOLE_BACKEND_PAGE = 3,
	LONGPOLE_BACKEND_BPF = 4,
	LONGPOLE_BACKEND_SYSCALL = 5,
};
enum { LONGPOLE_BACKEND_NR = 6 };
const char *longpole_backend_name(enum longpole_backend backend); /* "sentinel" */

enum longpole_counter_error {
	LONGPOLE_COUNTER_OK = 0,
	LONGPOLE_COUNTER_ARGUMENT = -1,    /* no such event, too many of them */
	LONGPOLE_COUNTER_NOT_COUNTED = -2, /* nobody here counts one of the events: see explain */
	LONGPOLE_COUNTER_CLOSED = -3,
	LONGPOLE_COUNTER_THREAD = -4,      /* read by another thread than opened it */
	LONGPOLE_COUNTER_FORKED = -5,      /* opened by the parent process */
	LONGPOLE_COUNTER_MULTIPLEXED = -6, /* an event did not have a counter all the time */
	LONGPOLE_COUNTER_SYSTEM = -7,      /* the kernel refused what it gave before */
};
const char *longpole_counter_error_text(int error); /* one line */

/* ---- a set ----------------------------------------------------------------------------------- */

enum { LONGPOLE_COUNTER_EVENTS_MAX = 8 };

/* Flags of struct longpole_counter_options. */
#define LONGPOLE_COUNTER_USER   1u /* PMU events: in user space only */
#define LONGPOLE_COUNTER_KERNEL 2u /* PMU events: in the kernel only */
/* PMU events may share counters: values are then estimates, scaled by the share of time that the
 * event had one (.scaled), and reads are system calls. Without it that is an error. */
#define LONGPOLE_COUNTER_SCALE 4u

struct longpole_counter_options {
	size_t size;       /* sizeof(struct longpole_counter_options) */
	uint32_t backends; /* 0: all; else 1u << LONGPOLE_BACKEND_... of those allowed. Also the
			      environment: LONGPOLE_COUNTER_BACKEND=page,syscall */
	uint32_t flags;
};

/* One event of a set, and how it is counted. Read these; change none. */
struct longpole_counted {
	uint16_t event; /* what is counted; another than asked for only for ..._OR_... */
	uint16_t asked;
	uint8_t backend;                      /* enum longpole_backend */
	uint8_t user_only;                    /* the kernel's part is not in it: not allowed here */
	uint8_t scaled;                       /* an estimate; grows to 1 at a read */
	uint8_t slot;                         /* of the thread's kept values */
	uint8_t refused[LONGPOLE_BACKEND_NR]; /* why not by that one: explain() says it */
	int16_t refused_errno[LONGPOLE_BACKEND_NR];
	int32_t fd[2]; /* perf events: of the only PMU, or of each kind of core */
	const volatile struct perf_event_mmap_page *page;
	const uint64_t *where; /* the kept value, or BPF's */
	uint64_t mask;         /* ~0: the TSC is part of the value */
	uint64_t base;         /* what there was when the set was opened */
	uint64_t taken;        /* by longpole_counter_take() */
};

/* What the library keeps for each thread. */
enum { LONGPOLE_KEPT_NR = 8 };
struct longpole_counter_thread {
	uintptr_t owner; /* thread pointer; 0: a read or a renewal is under way. The kernel zeroes
			    all of this in a fork's child. */
	const volatile uint64_t *epoch;  /* as long as this is as expected, no switch happened */
	uint64_t expected, generation;   /* one more with each renewal */
	uint64_t last_tsc;               /* at the last read; plus kept[0]: the ticks it gave */
	uint64_t last_ticks;             /* the highest value that was given otherwise */
	uint64_t kept[LONGPOLE_KEPT_NR]; /* ticks: to be added to the TSC */
};

enum longpole_counter_plan {
	LONGPOLE_PLAN_CLOSED = 0,
	LONGPOLE_PLAN_KEPT = 1, /* all values are kept, by one mark */
	LONGPOLE_PLAN_PMU = 2,  /* all are read by rdpmc */
	LONGPOLE_PLAN_CALL = 3, /* by the library */
};

struct longpole_counter {
	struct longpole_counter_thread *thread;
	uint32_t plan, nr;
	uint32_t nr_kept;    /* nr, if the inline path reads them: all kept, the ticks first */
	uint64_t generation; /* of the thread, when these were made: kept less base */
	uint64_t kept[LONGPOLE_COUNTER_EVENTS_MAX];
	struct longpole_counted event[LONGPOLE_COUNTER_EVENTS_MAX];
	uint64_t reserved[8];
};

/*
 * Open for the calling thread. All events are counted, or none is and the error says why
 * (LONGPOLE_COUNTER_NOT_COUNTED; longpole_counter_explain() works then, too). options: NULL for the
 * defaults. Costs about 10 ms once in a process (the TSC's rate is measured, the marks are tried),
 * then some microseconds. Memory: one page a thread, up to three descriptors.
 */
int longpole_counter_open(struct longpole_counter *c, const enum longpole_event *event, unsigned nr,
	const struct longpole_counter_options *options);
/* Also after a failed open, twice, or in a fork's child. */
void longpole_counter_close(struct longpole_counter *c);

/* What each event is counted by, and for each better way why not: lines of text. Returns buf. */
char *longpole_counter_explain(const struct longpole_counter *c, char *buf, size_t size);

/* Ticks a second, measured to some parts in a million; 0: the machine has no steady TSC. */
uint64_t longpole_counter_tick_hz(void);
uint64_t longpole_counter_ticks_to_ns(uint64_t ticks);

/*
 * Destructive read (section 7 of the paper): what was counted since the last take, or since open;
 * the set starts again from zero. Interrupted by a handler that takes as well, each count is in
 * exactly one of the two answers. longpole_counter_read() goes on counting from open.
 */
int longpole_counter_take(struct longpole_counter *c, uint64_t *value);

/* ---- the read -------------------------------------------------------------------------------- */

/* What the fast path cannot do; also a plain function for other languages. */
int longpole_counter_read_call(struct longpole_counter *c, uint64_t *value);

#if defined(__linux__) && defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__))
#define LONGPOLE_COUNTER_HERE 1

#if defined(__x86_64__) || defined(LONGPOLE_RDPMC)
#define LONGPOLE_HAS_RDPMC 1
#else /* user space gets them only where an administrator allows it: the kernel reads them */
#define LONGPOLE_HAS_RDPMC 0
#endif
#ifndef LONGPOLE_RDPMC /* tests put another source in its place */
#define LONGPOLE_RDPMC(index) longpole_rdpmc(index)
#endif

/* What differs by processor: a counter of the processor's, the clock, where a thread's own data
 * are. `longpole_rdtsc()` is the name of the clock everywhere. */
#if defined(__x86_64__)
static inline uint64_t longpole_rdpmc(uint32_t index)
{
	uint32_t low, high;
	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index) : "memory");
	return (uint64_t)high << 32 | low;
}

static inline uint64_t longpole_rdtsc(void)
{
	uint64_t low, high; /* it clears their upper halves */
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return high << 32 | low;
}

static inline uintptr_t longpole_thread_pointer(void)
{
	uintptr_t pointer;
	__asm__ volatile("movq %%fs:0, %0" : "=r"(pointer));
	return pointer;
}
#else
static inline uint64_t longpole_rdpmc(uint32_t index)
{
	(void)index;
	return 0;
}

/* cntvct_el0 is a coarse clock: 20 to 100 ns on most machines. isb: not before what comes before.
 */
static inline uint64_t longpole_rdtsc(void)
{
	uint64_t ticks;
	__asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
	return ticks;
}

static inline uintptr_t longpole_thread_pointer(void)
{
	uintptr_t pointer;
	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(pointer));
	return pointer;
}
#endif

/*
 * One event through its mapped page: 1, or 0 when the page has no counter to read now (then *value
 * is what the kernel had at the last update). The counter is narrower than 64 bits and is extended
 * by its sign; what it lost by overflowing is in the page's offset. The pair is right when the
 * page's sequence lock stood still; a preemption between the two reads changes it.
 */
static inline int longpole_pmu_read(
	const volatile struct perf_event_mmap_page *page, uint64_t *value)
{
	for (;;) {
		uint32_t seq = page->lock;
		__asm__ volatile("" ::: "memory");
		uint32_t index = page->index;
		int64_t count = page->offset;
		int there = LONGPOLE_HAS_RDPMC && page->cap_user_rdpmc && index != 0;
		if (there) {
			unsigned unused = 64u - (page->pmc_width & 63u);
			uint64_t raw = LONGPOLE_RDPMC(index - 1);
			count += unused < 64 ? (int64_t)(raw << unused) >> unused : (int64_t)raw;
		}
		__asm__ volatile("" ::: "memory");
		if (__builtin_expect(page->lock == seq && !(seq & 1), 1)) {
			*value = (uint64_t)count;
			return there;
		}
	}
}

/* A caller's array has as many places as its set has events, which compilers do not know. */
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif
/*
 * The `nr` kept values of a set whose first event is the ticks: 1, or 0 when the library must read
 * them.
 *
 * It needs no restart: if at the end the mark stands and the values are of the last renewal, the
 * thread had the processor without a break from that renewal on, so all that was read belongs
 * together. Interrupts are precise: what is before the check in the program is before it.
 *
 * A reader takes the owner's word away, by plain stores, as nobody but this thread's signal
 * handlers can come between. A handler that interrupts a read finds no owner and asks the kernel:
 * so nothing is renewed between a read's rdtsc and its check, and no later stamp is overwritten
 * by an earlier one. last_tsc is written after the check only, hence by a thread that had the
 * processor: the next renewal goes on from there, also where the kernel's clock says less.
 */
static inline int longpole_kept_read(struct longpole_counter *c, uint32_t nr, uint64_t *value)
{
	struct longpole_counter_thread *t = c->thread;
	uintptr_t self = longpole_thread_pointer();
	if (__builtin_expect(t->owner != self, 0))
		return 0;
	*(volatile uintptr_t *)&t->owner = 0;
	__asm__ volatile("" ::: "memory");
	int good = 0;
	if (__builtin_expect(c->generation == t->generation, 1)) {
		uint64_t now = longpole_rdtsc();
		value[0] = c->kept[0] + now;
		if (nr == 3) { /* what studies read; the loop costs a cycle a value more */
			value[1] = c->kept[1];
			value[2] = c->kept[2];
		} else {
			for (uint32_t i = 1; i < nr; i++)
				value[i] = c->kept[i];
		}
		__asm__ volatile("" ::: "memory");
		good = *t->epoch == t->expected;
		if (__builtin_expect(good, 1))
			*(volatile uint64_t *)&t->last_tsc = now;
	}
	__asm__ volatile("" ::: "memory");
	*(volatile uintptr_t *)&t->owner = self;
	return good;
}
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/*
 * Everything since open, in the order of the events: 0, or an error, and then no value may be used.
 * Values never go backwards. Sets of kept events with the ticks first (or all read by rdpmc) are
 * read right here; other sets of kept events by the library, together, too; of others it asks the
 * kernel, and then a switch may lie between two values.
 */
static inline int longpole_counter_read(struct longpole_counter *c, uint64_t *value)
{
	uint32_t nr_kept = c->nr_kept;
	if (__builtin_expect(nr_kept != 0, 1)) {
		if (__builtin_expect(longpole_kept_read(c, nr_kept, value), 1))
			return LONGPOLE_COUNTER_OK;
	} else if (c->plan == LONGPOLE_PLAN_PMU && c->thread->owner == longpole_thread_pointer()) {
		uint32_t i = 0;
		while (i < c->nr && longpole_pmu_read(c->event[i].page, &value[i]))
			i++;
		if (__builtin_expect(i == c->nr, 1))
			return LONGPOLE_COUNTER_OK;
	}
	return longpole_counter_read_call(c, value);
}

/* The first event alone, for sets of one: its count, or LONGPOLE_NO_COUNT after an error. */
#define LONGPOLE_NO_COUNT UINT64_MAX
static inline uint64_t longpole_counter_read1(struct longpole_counter *c)
{
	uint64_t value[LONGPOLE_COUNTER_EVENTS_MAX];
	if (__builtin_expect(c->nr_kept != 0, 1) && longpole_kept_read(c, 1, value))
		return value[0];
	return longpole_counter_read(c, value) ? LONGPOLE_NO_COUNT : value[0];
}

/* ---- scopes ---------------------------------------------------------------------------------- */

/* Sums of what happened inside of scopes: one for each thread. {0} is empty. */
struct longpole_counter_sums {
	uint64_t count[LONGPOLE_COUNTER_EVENTS_MAX]; /* in the order of the set's events */
	uint64_t entered, failed; /* scopes; of them: without a count, because a read failed */
};
struct longpole_counter_scope {
	struct longpole_counter *counter;
	struct longpole_counter_sums *sums;
	uint64_t before[LONGPOLE_COUNTER_EVENTS_MAX];
	int error;
};

static inline struct longpole_counter_scope longpole_counter_scope_begin(
	struct longpole_counter *counter, struct longpole_counter_sums *sums)
{
	struct longpole_counter_scope scope;
	scope.counter = counter;
	scope.sums = sums;
	scope.error = longpole_counter_read(counter, scope.before);
	return scope;
}

static inline void longpole_counter_scope_end(struct longpole_counter_scope *scope)
{
	uint64_t after[LONGPOLE_COUNTER_EVENTS_MAX];
	int error = longpole_counter_read(scope->counter, after);
	scope->sums->entered++;
	if (scope->error || error) {
		scope->sums->failed++;
		return;
	}
	for (uint32_t i = 0; i < scope->counter->nr; i++)
		scope->sums->count[i] += after[i] - scope->before[i];
}

/* C: from here to the end of the block. */
#define LONGPOLE_SCOPE_NAME(line)  LONGPOLE_SCOPE_NAME_(line)
#define LONGPOLE_SCOPE_NAME_(line) longpole_scope_##line
#define LONGPOLE_COUNTED(counter, sums)                                                            \
	__attribute__((cleanup(longpole_counter_scope_end), unused)) struct longpole_counter_scope \
	LONGPOLE_SCOPE_NAME(__LINE__) = longpole_counter_scope_begin((counter), (sums))
#endif

/* ---- phases, for `longpole stat` ---------------------------------------------------------------
 *
 * longpole_phase("parse") says what the calling thread does from now on; longpole_phase_end() that
 * it is in no phase. `longpole stat` shows each phase's time, waits and counts by thread. Where
 * nobody counts, one load and one test; no library is needed. Names are string literals.
 */
#define longpole_phase(name)                                                                       \
	do {                                                                                       \
		static struct longpole_place longpole_place_ = LONGPOLE_PLACE_OF(name);            \
		longpole_phase_enter(&longpole_place_);                                            \
	} while (0)
#define longpole_phase_end() ((void)longpole_phase_enter((struct longpole_place *)0))

/* Returns the phase that the thread was in; NULL: none. */
static inline struct longpole_place *longpole_phase_enter(struct longpole_place *place)
{
	const struct longpole_hooks *hooks = longpole_hooks_now();
	if (__builtin_expect(hooks != 0, 0) &&
		longpole_hooks_reach(hooks, __builtin_offsetof(struct longpole_hooks, phase)) &&
		hooks->phase)
		return hooks->phase(place);
	return (struct longpole_place *)0;
}

static inline void longpole_phase_leave(struct longpole_place **before)
{
	(void)longpole_phase_enter(*before);
}

/* C: a phase to the end of the block; then the one before. */
#define LONGPOLE_PHASE(name)                                                                       \
	static struct longpole_place LONGPOLE_PHASE_NAME(__LINE__) = LONGPOLE_PLACE_OF(name);      \
	__attribute__((cleanup(longpole_phase_leave), unused)) struct longpole_place *             \
	LONGPOLE_SCOPE_NAME(__LINE__) = longpole_phase_enter(&LONGPOLE_PHASE_NAME(__LINE__))
#define LONGPOLE_PHASE_NAME(line)  LONGPOLE_PHASE_NAME_(line)
#define LONGPOLE_PHASE_NAME_(line) longpole_phase_place_##line

#ifdef __cplusplus
} /* extern "C" */

namespace longpole
{
#ifdef LONGPOLE_COUNTER_HERE
/* longpole::scope counted(set, sums); */
class scope
{
	struct longpole_counter_scope inner;

      public:
	scope(struct longpole_counter &counter, struct longpole_counter_sums &sums)
	    : inner(longpole_counter_scope_begin(&counter, &sums))
	{
	}
	~scope()
	{
		longpole_counter_scope_end(&inner);
	}
	scope(const scope &) = delete;
	scope &operator=(const scope &) = delete;
};
#endif

/* longpole::phase parsing(LONGPOLE_NAME("parse")); */
class phase
{
	struct longpole_place *before;

      public:
	explicit phase(struct longpole_place &place) : before(longpole_phase_enter(&place))
	{
	}
	~phase()
	{
		(void)longpole_phase_enter(before);
	}
	phase(const phase &) = delete;
	phase &operator=(const phase &) = delete;
};
} // namespace longpole
#endif

#endif
