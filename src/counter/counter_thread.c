/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counter_thread.c - what is kept for each thread, and the marks that say whether it still holds.
 *
 * The values are in a page of their own, which the kernel zeroes in a fork's child: a set there
 * finds no owner. Descriptors and the page's address are in thread-local memory, which the child
 * inherits.
 */
#include "counter/counter_priv.h"
#include "counter/processor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rseq.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE_BYTES = 4096,
	NS_PER_S = 1000000000,
	RENEW_TRIES = 64,
	TEST_SWITCHES = 3,
	TEST_TRIES = 20,
	DESTRUCTOR_ROUNDS =
		3, /* of the four that libc makes: others' destructors may still count */
};

#define NO_MARK UINT64_MAX /* expected: no mark is so */

/* Which of a thread's parts; sets that keep nothing use the last, to know their thread. */
enum part { PART_SENTINEL, PART_PAGE, PART_PLAIN, PART_NR };
static enum part counter_thread_part_of(enum longpole_backend mark)
{
	return mark == LONGPOLE_BACKEND_SENTINEL ? PART_SENTINEL
	       : mark == LONGPOLE_BACKEND_PAGE   ? PART_PAGE
						 : PART_PLAIN;
}

struct counter_page {
	struct longpole_counter_thread part[PART_NR];
};
_Static_assert(sizeof(struct counter_page) <= PAGE_BYTES, "one page");

static _Thread_local struct counter_self {
	struct counter_page *page;
	const volatile struct perf_event_mmap_page *mark_page;
	int mark_fd, schedstat_fd, migrations_fd; /* -1: not open */
	uint32_t users[PART_NR], slot_users[PART_NR][COUNTER_KEPT_NR];
	int rounds;
} counter_self;

static pthread_once_t counter_key_once = PTHREAD_ONCE_INIT;
static pthread_key_t counter_key;
static int counter_key_failed;

/* ---- system calls ---------------------------------------------------------------------------- */

static uint64_t processor_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* "510053 53480 1": time with a processor, time on the run queue, how often it got one. A kernel
 * without scheduler statistics says zero for the last one, too. */
static bool read_schedstat(int fd, uint64_t *ret)
{
	char text[80];
	uint64_t number[3] = {0};
	/* not libc's: a read of counts is no cancellation point */
	long n = syscall(SYS_pread64, fd, text, sizeof text, 0), at = 0;
	for (int i = 0; i < 3; i++, at++)
		for (; at < n && text[at] >= '0' && text[at] <= '9'; at++)
			number[i] = number[i] * 10 + (uint64_t)(text[at] - '0');
	*ret = number[1];
	return n > 0 && number[2];
}

static bool read_fd(int fd, uint64_t *ret)
{
	return syscall(SYS_read, fd, ret, sizeof *ret) == (long)sizeof *ret;
}

/* Reads the slots in `wanted`, all but the clock. */
static bool read_slots(uint32_t wanted, uint64_t *kept)
{
	struct counter_self *self = &counter_self;
	if (wanted & (1u << COUNTER_KEPT_SWITCHES | 1u << COUNTER_KEPT_FORCED)) {
		struct rusage usage;
		if (getrusage(RUSAGE_THREAD, &usage))
			return false;
		kept[COUNTER_KEPT_SWITCHES] = (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
		kept[COUNTER_KEPT_FORCED] = (uint64_t)usage.ru_nivcsw;
	}
	if ((wanted & 1u << COUNTER_KEPT_RUNQUEUE) &&
		!read_schedstat(self->schedstat_fd, &kept[COUNTER_KEPT_RUNQUEUE]))
		return false;
	return !(wanted & 1u << COUNTER_KEPT_MIGRATIONS) ||
	       read_fd(self->migrations_fd, &kept[COUNTER_KEPT_MIGRATIONS]);
}

/* *last = the greater of the two. A handler that moves it between is later than we: its value
 * stays. (No lock: only this thread writes it, and an interrupt does not split an instruction.) */
static void counter_thread_advance(uint64_t *last, uint64_t seen)
{
	uint64_t before = *(volatile uint64_t *)last;
	if ((int64_t)before < (int64_t)seen)
		counter_replace(last, &before, seen);
}

/* No read gave more ticks than this. An older stamp with a newer renewal's value makes a sum that
 * is too small, even below zero; last_ticks has what it was before that renewal. */
static uint64_t last_given(struct longpole_counter_thread *t)
{
	uint64_t tsc = *(volatile uint64_t *)&t->last_tsc; /* first */
	counter_thread_advance(
		&t->last_ticks, tsc + *(volatile uint64_t *)&t->kept[COUNTER_KEPT_TICKS]);
	return *(volatile uint64_t *)&t->last_ticks;
}

/* Kept values go no further: the next read renews them, from what was given now on. */
int counter_thread_ask(struct longpole_counter_thread *t, enum counter_kept slot, uint64_t *value)
{
	uint64_t kept[COUNTER_KEPT_NR] = {0};
	if (slot != COUNTER_KEPT_TICKS) {
		if (!read_slots(1u << slot, kept))
			return LONGPOLE_COUNTER_SYSTEM;
		*value = kept[slot];
		return LONGPOLE_COUNTER_OK;
	}
	*(volatile uint64_t *)&t->expected = NO_MARK;
	counter_thread_advance(&t->last_ticks, counter_clock_ticks(processor_ns()));
	*value = last_given(t);
	return LONGPOLE_COUNTER_OK;
}

/* ---- the marks ------------------------------------------------------------------------------- */

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/*
 * The sentinel: a restartable sequence that is never executed. The kernel reads it when it takes
 * the processor away, finds that the thread is not inside, and clears the pointer to it. One for
 * all threads; its abort address must be preceded by libc's signature.
 */
extern const char longpole_counter_sentinel[] __attribute__((visibility("hidden")));
__asm__(".pushsection .data.rel.ro, \"aw\"\n"
	"	.balign 32\n"
	"	.globl longpole_counter_sentinel\n"
	"	.hidden longpole_counter_sentinel\n"
	"	.type longpole_counter_sentinel, @object\n"
	"	.size longpole_counter_sentinel, 32\n"
	"longpole_counter_sentinel:\n"
	"	.long 0, 0\n"
	"	.quad 1f, 2f - 1f, 3f\n"
	"	.popsection\n"
	"	.pushsection .text\n"
	"1:	" COUNTER_TRAP "\n"
	"2:	" COUNTER_SIGNATURE "\n"
	"3:	" COUNTER_TRAP "\n"
	"	.popsection\n");

static volatile uint64_t *rseq_mark(void)
{
	if (!&__rseq_size || !&__rseq_offset || !__rseq_size)
		return NULL;
	return (volatile uint64_t *)(longpole_thread_pointer() + (uintptr_t)__rseq_offset +
				     offsetof(struct rseq, rseq_cs));
}

/* The lock and the index after it: one word, which stands only if both do. */
static const volatile uint64_t *page_mark(const volatile struct perf_event_mmap_page *page)
{
	return (const volatile uint64_t *)(uintptr_t)&page->lock;
}
_Static_assert(offsetof(struct perf_event_mmap_page, lock) == 8, "aligned");

static void plain_event(struct perf_event_attr *attr, uint64_t config)
{
	*attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE, .size = sizeof *attr, .config = config};
}

static bool open_mark_page(struct counter_self *self, struct counter_refusal *ret)
{
	struct perf_event_attr attr;
	if (self->mark_page)
		return true;
	plain_event(&attr, PERF_COUNT_SW_DUMMY);
	attr.exclude_kernel = 1;
	self->mark_fd = (int)counter_perf_event_open(&attr, 0);
	if (self->mark_fd < 0) {
		*ret = (struct counter_refusal){COUNTER_REASON_perf, errno};
		return false;
	}
	self->mark_page = counter_page_map(self->mark_fd);
	if (!self->mark_page) {
		*ret = (struct counter_refusal){COUNTER_REASON_page_map, errno};
		close(self->mark_fd);
		self->mark_fd = -1;
		return false;
	}
	return true;
}

static void close_mark_page(struct counter_self *self)
{
	if (!self->mark_page)
		return;
	counter_page_unmap(self->mark_page);
	close(self->mark_fd);
	self->mark_page = NULL;
	self->mark_fd = -1;
}

/* Sets the mark: what it must be from now on. */
static bool set_mark(struct counter_self *self, enum part part, uint64_t *ret_expected)
{
	if (part == PART_SENTINEL) {
		*ret_expected = (uint64_t)(uintptr_t)longpole_counter_sentinel;
		*rseq_mark() = *ret_expected;
		return true;
	}
	*ret_expected = *page_mark(self->mark_page);
	return !(*ret_expected & 1);
}

static const volatile uint64_t *where_mark(struct counter_self *self, enum part part)
{
	return part == PART_SENTINEL ? rseq_mark() : page_mark(self->mark_page);
}

/*
 * Does a switch that the thread asks for wipe the mark? Kernels from 6.19 on may leave rseq_cs
 * alone where user mode was not interrupted. (A switch that is forced on it interrupts it: that is
 * what restartable sequences are for.)
 */
static bool try_mark(struct counter_self *self, enum part part)
{
	int wiped = 0, seen = 0;
	for (int i = 0; i < TEST_TRIES && seen < TEST_SWITCHES; i++) {
		struct timespec nap = {0, 20000};
		struct rusage before, after;
		uint64_t expected;
		getrusage(RUSAGE_THREAD, &before);
		if (!set_mark(self, part, &expected))
			continue;
		nanosleep(&nap, NULL);
		bool stands = *where_mark(self, part) == expected;
		getrusage(RUSAGE_THREAD, &after);
		if (after.ru_nvcsw == before.ru_nvcsw)
			continue;
		seen++;
		wiped += !stands;
	}
	if (part == PART_SENTINEL)
		*rseq_mark() = 0;
	return seen == TEST_SWITCHES && wiped == seen;
}

bool counter_mark_works(enum longpole_backend mark, struct counter_refusal *ret)
{
	enum { UNKNOWN, WORKS, WORKS_NOT };
	static uint32_t counter_mark_tried[PART_NR]; /* the same answer in every thread */
	static const enum counter_reason reason[PART_NR] = {
		[PART_SENTINEL] = COUNTER_REASON_not_cleared,
		[PART_PAGE] = COUNTER_REASON_page_stands};
	struct counter_self *self = &counter_self;
	enum part part = counter_thread_part_of(mark);
	*ret = (struct counter_refusal){COUNTER_REASON_none, 0};
	if (part == PART_SENTINEL && !rseq_mark()) {
		ret->reason = COUNTER_REASON_no_rseq;
		return false;
	}
	uint32_t known = __atomic_load_n(&counter_mark_tried[part], __ATOMIC_RELAXED);
	if (part == PART_PAGE && !open_mark_page(self, ret))
		return false;
	if (known == UNKNOWN) {
		known = try_mark(self, part) ? WORKS : WORKS_NOT;
		__atomic_store_n(&counter_mark_tried[part], known, __ATOMIC_RELAXED);
	}
	if (known == WORKS_NOT)
		ret->reason = reason[part];
	if (part == PART_PAGE && (known == WORKS_NOT) && !self->users[PART_PAGE])
		close_mark_page(self);
	return known == WORKS;
}

/* ---- renewal --------------------------------------------------------------------------------- */

static uint32_t wanted_slots(const struct counter_self *self, enum part part)
{
	uint32_t wanted = 0;
	for (uint32_t slot = 1; slot < COUNTER_KEPT_NR; slot++)
		wanted |= (uint32_t) !!self->slot_users[part][slot] << slot;
	return wanted;
}

bool counter_thread_take(struct longpole_counter_thread *t)
{
	volatile uintptr_t *owner = &t->owner;
	if (!*owner)
		return false;
	*owner = 0;
	COUNTER_BARRIER();
	return true;
}

void counter_thread_give(struct longpole_counter_thread *t)
{
	COUNTER_BARRIER();
	*(volatile uintptr_t *)&t->owner = longpole_thread_pointer();
}

bool counter_thread_stands(const struct longpole_counter_thread *t)
{
	COUNTER_BARRIER();
	return t->epoch && *t->epoch == t->expected;
}

/*
 * One writer: a signal handler that interrupts a renewal finds no owner and asks the kernel itself,
 * so that nobody but we sets the mark here. The TSC is read before the kernel's clock, so a kept
 * value is ahead of the kernel's by the length of half a system call, never behind: a handler's
 * answer is not undercut.
 */
static bool renew_once(struct counter_self *self, enum part part, uint32_t wanted)
{
	struct longpole_counter_thread *t = &self->page->part[part];
	uint64_t expected, now, ticks, kept[COUNTER_KEPT_NR] = {0};
	t->generation++;
	t->expected = NO_MARK;
	COUNTER_BARRIER();
	if (!set_mark(self, part, &expected))
		return false;
	COUNTER_BARRIER();
	if (!read_slots(wanted, kept))
		return false;
	now = longpole_rdtsc();
	ticks = counter_clock_ticks(processor_ns());
	COUNTER_BARRIER();
	t->epoch = where_mark(self, part);
	if (*t->epoch != expected)
		return false;
	uint64_t last = last_given(t);
	kept[COUNTER_KEPT_TICKS] = (ticks > last ? ticks : last) - now;
	for (uint32_t slot = 0; slot < COUNTER_KEPT_NR; slot++)
		t->kept[slot] = kept[slot];
	COUNTER_BARRIER();
	t->last_tsc = now;
	t->expected = expected;
	return true;
}

bool counter_thread_renew(struct longpole_counter_thread *t)
{
	struct counter_self *self = &counter_self;
	enum part part = (enum part)(t - self->page->part);
	uint32_t wanted = wanted_slots(self, part);
	bool done = false;
	for (int i = 0; i < RENEW_TRIES && !done; i++)
		done = renew_once(self, part, wanted);
	return done;
}

/* ---- a thread's life ------------------------------------------------------------------------- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void counter_thread_forget(struct counter_self *self)
{
	*self = (struct counter_self){.mark_fd = -1, .schedstat_fd = -1, .migrations_fd = -1};
}

static void counter_thread_end_thread(void *argument)
{
	struct counter_self *self = &counter_self;
	if (!self->page || !self->page->part[PART_PLAIN].owner)
		return;
	if (self->rounds++ < DESTRUCTOR_ROUNDS) {
		pthread_setspecific(counter_key, argument);
		return;
	}
	volatile uint64_t *mark = rseq_mark();
	if (mark && *mark == (uint64_t)(uintptr_t)longpole_counter_sentinel)
		*mark = 0;
	close_mark_page(self);
	close_fd(&self->schedstat_fd);
	close_fd(&self->migrations_fd);
	munmap(self->page, PAGE_BYTES);
	counter_thread_forget(self);
}

static void counter_thread_make_key(void)
{
	counter_key_failed = pthread_key_create(&counter_key, counter_thread_end_thread);
}

/* A fork's child: descriptors are the parent's, perf's page is not there, ours stays for the sets
 * of the parent that are found to be so by it. */
static void begin_again(struct counter_self *self)
{
	close_fd(&self->mark_fd);
	close_fd(&self->schedstat_fd);
	close_fd(&self->migrations_fd);
	counter_thread_forget(self);
}

static struct counter_self *self_get(void)
{
	struct counter_self *self = &counter_self;
	if (self->page && !self->page->part[PART_PLAIN].owner)
		begin_again(self);
	if (self->page)
		return self;
	counter_thread_forget(self);
	pthread_once(&counter_key_once, counter_thread_make_key);
	if (counter_key_failed)
		return NULL;
	void *page =
		mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, PAGE_BYTES, MADV_WIPEONFORK) || pthread_setspecific(counter_key, page)) {
		munmap(page, PAGE_BYTES);
		return NULL;
	}
	self->page = page;
	self->page->part[PART_PLAIN].owner = longpole_thread_pointer();
	return self;
}

struct longpole_counter_thread *counter_thread_get(enum longpole_backend mark)
{
	struct counter_self *self = self_get();
	return self ? &self->page->part[counter_thread_part_of(mark)] : NULL;
}

int counter_thread_check(const struct longpole_counter_thread *t)
{
	const struct counter_self *self = &counter_self;
	const struct counter_page *page =
		(const void *)((uintptr_t)t & ~(uintptr_t)(PAGE_BYTES - 1));
	if (!page->part[PART_PLAIN].owner)
		return LONGPOLE_COUNTER_FORKED;
	return page == self->page ? LONGPOLE_COUNTER_OK : LONGPOLE_COUNTER_THREAD;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static bool open_schedstat(struct counter_self *self, struct counter_refusal *ret)
{
	uint64_t value;
	if (self->schedstat_fd < 0)
		self->schedstat_fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	if (self->schedstat_fd >= 0 && read_schedstat(self->schedstat_fd, &value))
		return true;
	*ret = (struct counter_refusal){COUNTER_REASON_schedstat, errno};
	close_fd(&self->schedstat_fd);
	return false;
}

static bool open_migrations(struct counter_self *self, struct counter_refusal *ret)
{
	struct perf_event_attr attr;
	if (self->migrations_fd >= 0)
		return true;
	plain_event(&attr, PERF_COUNT_SW_CPU_MIGRATIONS);
	self->migrations_fd = (int)counter_perf_event_open(&attr, 0);
	if (self->migrations_fd >= 0)
		return true;
	bool hidden = errno == EACCES || errno == EPERM;
	*ret = (struct counter_refusal){
		hidden ? COUNTER_REASON_kernel_events : COUNTER_REASON_perf, errno};
	return false;
}

bool counter_thread_use(
	enum longpole_backend mark, enum counter_kept slot, struct counter_refusal *ret)
{
	struct counter_self *self = self_get();
	enum part part = counter_thread_part_of(mark);
	if (slot == COUNTER_KEPT_RUNQUEUE && !open_schedstat(self, ret))
		return false;
	if (slot == COUNTER_KEPT_MIGRATIONS && !open_migrations(self, ret))
		return false;
	self->users[part]++;
	self->slot_users[part][slot]++;
	self->page->part[part].generation++; /* one slot more is to be renewed */
	self->page->part[part].expected = NO_MARK;
	self->page->part[part].owner = longpole_thread_pointer();
	return true;
}

static bool is_slot_used(const struct counter_self *self, enum counter_kept slot)
{
	for (int part = 0; part < PART_NR; part++)
		if (self->slot_users[part][slot])
			return true;
	return false;
}

void counter_thread_drop(enum longpole_backend mark, enum counter_kept slot)
{
	struct counter_self *self = &counter_self;
	enum part part = counter_thread_part_of(mark);
	volatile uint64_t *sentinel = rseq_mark();
	if (!self->page || !self->users[part])
		return;
	self->slot_users[part][slot]--;
	if (--self->users[part] == 0 && part != PART_PLAIN) {
		self->page->part[part].owner = 0;
		self->page->part[part].epoch = NULL;
		if (part == PART_PAGE)
			close_mark_page(self);
		else if (sentinel && *sentinel == (uint64_t)(uintptr_t)longpole_counter_sentinel)
			*sentinel = 0;
	}
	if (!is_slot_used(self, COUNTER_KEPT_RUNQUEUE))
		close_fd(&self->schedstat_fd);
	if (!is_slot_used(self, COUNTER_KEPT_MIGRATIONS))
		close_fd(&self->migrations_fd);
}
