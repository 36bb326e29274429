/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - library functions counted where they are called (seed 001, section 5). A wrapper
 * for each row of calls.def.
 *
 * What a counted function calls is its own: a small stack of the counted functions that this thread
 * is in says inside which one a call was made. Frames that longjmp or a cancellation left are
 * noticed by their place on the machine's stack.
 */
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1 /* headers shall not define what we define */
#endif
#include "tally/count.h"
#include "tally/events.h"
#include "counter/slots.h"
#include "ring/calls.h"
#include "preload/processor.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <grp.h>
#include <iconv.h>
#include <inttypes.h>
#include <libintl.h>
#include <locale.h>
#include <malloc.h>
#include <math.h>
#include <netdb.h>
#include <pwd.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
#include <wchar.h>

#undef fread_unlocked
#undef fwrite_unlocked

/* glibc's fortified and older names have no declarations; the others are declared once more. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls"
#define CALL(category, timing, result, name, parameters, arguments, bytes) result name parameters;
#define CALL_VOID(category, timing, name, parameters, arguments)           void name parameters;
#include "ring/calls.def"
#pragma GCC diagnostic pop

/* ---- the real ones --------------------------------------------------------------------------- */

static void *real[CALLS_NR];
static const char *const names[CALLS_NR] = {
#define CALL(category, timing, result, name, parameters, arguments, bytes) [CALLS_##name] = #name,
#define CALL_VOID(category, timing, name, parameters, arguments)           [CALLS_##name] = #name,
#define CALL_OWN(category, timing, name)                                   [CALLS_##name] = #name,
#include "ring/calls.def"
};

/* What malloc and its kin are while dlsym looks for them. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t nr, size_t n);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

static __thread struct context {
	uint32_t nr;
	uint32_t busy; /* our own code runs: what it calls is not counted */
} context;             /* (it is needed before there is a place) */
struct frame {
	uintptr_t stack;
	unsigned function;
};
enum { FRAMES = 16 };
_Static_assert(FRAMES * sizeof(struct frame) <= PRELOAD_MORE_WORDS * sizeof(uint64_t), "has room");

PRELOAD_INLINE struct frame *frame_at(uint32_t i)
{
	return (struct frame *)(void *)preload_self->more + i;
}

static PRELOAD_COLD void *find_real(unsigned function)
{
	context.busy++;
	void *found = function == CALLS_pthread_cond_wait ||
				      function == CALLS_pthread_cond_timedwait ||
				      function == CALLS_pthread_cond_signal ||
				      function == CALLS_pthread_cond_broadcast
			      ? preload_real_find_version(names[function], PRELOAD_VERSION_NOW)
			      : dlsym(RTLD_NEXT, names[function]);
	__atomic_store_n(&real[function], found, __ATOMIC_RELAXED);
	context.busy--;
	return found;
}

/* Now, so that no later search disturbs what the program asks dlerror() about. */
__attribute__((constructor)) static void find_all(void)
{
	for (unsigned i = 1; i < CALLS_NR; i++)
		if (!real[i])
			find_real(i);
}

#define REAL_OF(name)                                                                              \
	((__typeof__(&name))(real[CALLS_##name] ? real[CALLS_##name] : find_real(CALLS_##name)))

/* Functions are no objects. */
void tally_entered(uint64_t key, uint64_t site)
{
	(void)key, (void)site;
}

/* ---- one call -------------------------------------------------------------------------------- */

enum { OFTEN = 32, OFTEN_CPU = 8, BULK_BYTES = 64 * 1024 };
/* A leaf that took longer was interrupted: one in 32 calls must not speak for that. */
enum { INTERRUPTED_NS = 100000 };
/* A user of a stream that was not expected to reach the kernel, and took longer, slept there. */
enum { SLEPT_NS = 20000 };

struct call {
	struct tally_entry *entry; /* NULL: not counted */
	uint64_t since_cpu_ns, since_kernel_ns, ticks;
	bool timed, cpu_timed, has_events, pushed, special, is_leaf;
	uint8_t timing;
	struct tally_event_reading since_events; /* if has_events */
};

/* Nothing of before or after comes between two of these, else a short function hides behind the
 * stamps and takes no time. */
PRELOAD_INLINE uint64_t begin_tsc(void)
{
	return processor_begin_ticks();
}

PRELOAD_INLINE uint64_t end_tsc(void)
{
	return processor_end_ticks();
}

/* The real function, between two stamps if this call is timed. Two copies of it: were the second
 * stamp behind a branch, what a wrong guess costs would be part of the time. */
#define CALL_REAL(call, ...)                                                                       \
	do {                                                                                       \
		if (PRELOAD_RARE((call).timed)) {                                                  \
			uint64_t since_tsc_ = begin_tsc();                                         \
			__VA_ARGS__;                                                               \
			(call).ticks = end_tsc() - since_tsc_;                                     \
		} else {                                                                           \
			__VA_ARGS__;                                                               \
		}                                                                                  \
	} while (0)

/* Is that call (from 0) one of the sample? The first is, then one in so many: multiples of the
 * golden ratio, whose gaps (21, 34 and 55 of 32; 5, 8 and 13 of 8) no program has in its loops, as
 * it has pairs of a read of data and one of the end. */
PRELOAD_INLINE bool is_in_sample(uint64_t nr, uint32_t one_in)
{
	return (uint32_t)nr * 0x9e3779b1u < UINT32_MAX / one_in + 1;
}

static uint64_t calls_cpu_ns(void)
{
	struct timespec now;
	return preload_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&now, 0, 0, 0, 0)
		       ? 0
		       : (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What two stamps take, and two readings of the processor time. */
static uint64_t stamps_ticks, readings_ns;

static void calls_sort(uint64_t *value, unsigned nr)
{
	for (unsigned i = 1, k; i < nr; i++) {
		uint64_t moved = value[i];
		for (k = i; k && value[k - 1] > moved; k--)
			value[k] = value[k - 1];
		value[k] = moved;
	}
}

static void stamps_alone(void)
{
	struct call call = {.timed = true};
	CALL_REAL(call, PRELOAD_BARRIER());
}

/* One stamp in so many, as of functions. On some machines a stamp moves in steps that are longer
 * than a short function, so the mean counts, and the sums of what is left may have terms below
 * zero; but not those that an interrupt lengthened. */
__attribute__((constructor)) static void measure_stamps(void)
{
	enum { SAMPLES = 64, SKIPPED = SAMPLES / 4, TRIES = 8 };
	uint64_t ticks[SAMPLES], sum = 0, least = UINT64_MAX;
	unsigned nr = 0;
	if (!preload_on())
		return;
	for (uint64_t i = 0; nr < SAMPLES; i++) {
		struct call call = {.timed = is_in_sample(i, OFTEN)};
		CALL_REAL(call, PRELOAD_BARRIER());
		if (call.timed)
			ticks[nr++] = call.ticks;
	}
	calls_sort(ticks, SAMPLES);
	for (unsigned i = SKIPPED; i < SAMPLES - SKIPPED; i++)
		sum += ticks[i];
	if (preload_ring.nr_events)
		tally_events_measure(stamps_alone);
	for (unsigned i = 0; i < TRIES; i++) {
		struct tally_event_reading events;
		uint64_t before = calls_cpu_ns();
		for (unsigned k = 0; k < 2 && preload_ring.nr_events; k++)
			tally_events_read(&events);
		uint64_t ns = calls_cpu_ns() - before;
		least = ns < least ? ns : least;
	}
	stamps_ticks = sum / (SAMPLES - 2 * SKIPPED);
	readings_ns = least;
}

/* Negative, if the stamps took less than usual. */
static int64_t net_ns(uint64_t ticks)
{
	const struct ring_head *head = preload_fresh.head;
	__int128 net = (__int128)ticks - (__int128)stamps_ticks;
	return head ? (int64_t)((net * head->ns_per_tick_32 + INT32_MAX) >> 32) : 0;
}

/* ---- time inside of system calls: BPF counts it in a slot of the thread (counter/slots.h) ---- */

static struct counter_slot *slots; /* NULL: longpole did not load that, or we may not see it */
static __thread struct {
	const struct counter_slot *slot; /* NULL: another thread has ours */
	uint32_t tid;                    /* whose it is: a fork's child has the parent's */
} kernel;

/* "PID:FD"; none of the functions that we count. */
static long calls_number_at(const char **text)
{
	long n = 0;
	for (; **text >= '0' && **text <= '9' && n < INT32_MAX; (*text)++)
		n = n * 10 + (**text - '0');
	return n;
}

/* Memory of BPF keeps its size. The loader's number may be another program's by now, whose file of
 * that number is anything. */
static bool calls_is_bpf_map(long fd)
{
	static const char wanted[] = "anon_inode:bpf-map", directory[] = "/proc/self/fd/";
	char path[40], text[sizeof wanted] = "";
	size_t n = sizeof directory - 1, digits = 1;
	memcpy(path, directory, n);
	for (long rest = fd / 10; rest; rest /= 10)
		digits++;
	path[n + digits] = '\0';
	for (size_t i = digits; i-- > 0; fd /= 10)
		path[n + i] = (char)('0' + fd % 10);
	return preload_syscall(SYS_readlinkat, AT_FDCWD, (long)path, (long)text, sizeof text, 0,
		       0) == (long)sizeof wanted - 1 &&
	       !memcmp(text, wanted, sizeof wanted - 1);
}

__attribute__((constructor)) static void find_slots(void)
{
	const char *place = secure_getenv(COUNTER_SLOTS_ENVIRONMENT);
	if (!place)
		return;
	long pid = calls_number_at(&place),
	     at = *place == ':' ? (place++, calls_number_at(&place)) : -1;
	long loader = pid > 0 && at >= 0 ? preload_syscall(SYS_pidfd_open, pid, 0, 0, 0, 0, 0) : -1;
	long map = loader >= 0 ? preload_syscall(__NR_pidfd_getfd, loader, at, 0, 0, 0, 0) : -1;
	if (map >= 0) {
		long memory = !calls_is_bpf_map(map)
				      ? -EBADF
				      : preload_syscall(SYS_mmap, 0,
						(long)COUNTER_SLOTS_NR * COUNTER_SLOT_BYTES,
						PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
		slots = (unsigned long)memory > -4096ul ? NULL : (void *)memory;
		preload_syscall(SYS_close, map, 0, 0, 0, 0, 0);
	}
	if (loader >= 0)
		preload_syscall(SYS_close, loader, 0, 0, 0, 0, 0);
}

static PRELOAD_COLD void calls_take_slot(void)
{
	uint32_t tid = preload_self->tid, none = 0;
	struct counter_slot *slot = &slots[tid & (COUNTER_SLOTS_NR - 1)];
	kernel.tid = tid;
	bool ours = __atomic_compare_exchange_n(
			    &slot->tid, &none, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
		    none == tid; /* left by one of our number that was killed */
	kernel.slot = ours ? slot : NULL;
	if (preload_self->tally)
		preload_self->tally->has_kernel = ours;
}

/* A plain load: while the thread is in user mode nothing of its slot changes. */
PRELOAD_INLINE uint64_t kernel_ns(void)
{
	if (PRELOAD_LIKELY(!slots))
		return 0;
	if (PRELOAD_RARE(kernel.tid != preload_self->tid))
		calls_take_slot();
	return kernel.slot ? __atomic_load_n(&kernel.slot->kernel_ns, __ATOMIC_RELAXED) : 0;
}

/* The thread counts no more. */
void tally_left(void)
{
	struct counter_slot *slot = slots && kernel.tid == preload_self->tid && kernel.slot
					    ? &slots[kernel.tid & (COUNTER_SLOTS_NR - 1)]
					    : NULL;
	kernel.tid = 0;
	tally_events_leave();
	if (slot)
		__atomic_store_n(&slot->tid, 0, __ATOMIC_RELEASE);
}

/* This library, from the first byte to the last. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static PRELOAD_COLD struct tally_entry *find_entry(uint64_t key, uint64_t site)
{
	if (site >= (uintptr_t)__ehdr_start && site < (uintptr_t)_end)
		return NULL; /* our own calls */
	context.busy++;
	struct tally_tag *t = tally_probe(key, site);
	context.busy--;
	return t ? tally_entry_of(t) : NULL;
}

/* special: all such calls are timed, and are not part of the sample, as a place's first call is
 * not. */
PRELOAD_INLINE void call_begin(
	struct call *c, unsigned function, enum calls_timing timing, bool special, uintptr_t site)
{
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0);
	c->entry = NULL;
	c->ticks = 0;
	c->timed = c->cpu_timed = c->has_events = c->pushed = false;
	if (PRELOAD_RARE(context.busy))
		return;
	while (context.nr && frame_at(context.nr - 1)->stack <= stack)
		context.nr--;
	unsigned caller = context.nr ? frame_at(context.nr - 1)->function : CALLS_none;
	uint64_t key = calls_key(function, caller);
	struct tally_tag *t = tally_here(key & ~RING_OBJECT_SHARED, site);
	struct tally_entry *e = PRELOAD_LIKELY(t) ? tally_entry_of(t) : find_entry(key, site);
	if (PRELOAD_RARE(!e))
		return;
	TALLY_INC(e->n[TALLY_calls]);
	c->entry = e;
	c->timing = (uint8_t)timing;
	c->is_leaf = timing & CALLS_LEAF && !special;
	c->special = special || (c->is_leaf && e->n[TALLY_calls] == 1);
	/* a place's first call is cold, and the only one: not of the sample */
	c->timed = c->special || !c->is_leaf || is_in_sample(e->n[TALLY_calls] - 2, OFTEN);
	c->cpu_timed =
		timing & CALLS_STREAM
			? special
			: timing & CALLS_CPU && is_in_sample(e->n[TALLY_calls] - 1, OFTEN_CPU);
	c->pushed = !(timing & CALLS_LEAF) && context.nr < FRAMES;
	if (c->pushed) {
		*frame_at(context.nr) = (struct frame){stack, function};
		PRELOAD_BARRIER();
		context.nr++;
	}
	c->since_cpu_ns = c->cpu_timed ? calls_cpu_ns() : 0;
	c->since_kernel_ns = c->timed ? kernel_ns() : 0;
	if (PRELOAD_RARE(preload_self->tally_events) && c->timed &&
		(c->is_leaf || c->special || is_in_sample(e->n[TALLY_calls] - 1, OFTEN_CPU)))
		c->has_events = tally_events_read(&c->since_events);
}

static bool has_slept(const struct call *c, uint64_t ns)
{
	return c->timing & CALLS_STREAM && !c->special && ns >= SLEPT_NS;
}

static __attribute__((noinline)) void calls_add_time(const struct call *c, struct tally_entry *e)
{
	int64_t net = net_ns(c->ticks);
	uint64_t ns = net > 0 ? (uint64_t)net : 0;
	uint64_t in_kernel_ns = kernel_ns() - c->since_kernel_ns;
	bool may_sleep = c->timing & (CALLS_LOCK | CALLS_STREAM);
	bool slept = has_slept(c, ns);
	tally_max(&e->n[TALLY_call_max_ns], ns);
	if (c->is_leaf && ns >= INTERRUPTED_NS && !slept)
		return;
	if (c->special || slept) {
		TALLY_INC(e->n[TALLY_special_nr]);
		TALLY_ADD(e->n[TALLY_special_ns], ns);
		TALLY_ADD(e->n[TALLY_special_kernel_ns], in_kernel_ns);
	} else {
		TALLY_INC(e->n[TALLY_timed]);
		TALLY_ADD(e->n[TALLY_timed_ns], c->is_leaf ? (uint64_t)net : ns);
		TALLY_ADD(e->n[TALLY_kernel_ns], in_kernel_ns);
	}
	/* a place's first call: it has not waited */
	if (may_sleep && c->special && c->is_leaf) {
		TALLY_INC(e->n[TALLY_cpu_nr]);
		TALLY_ADD(e->n[TALLY_cpu_ns], ns);
	}
}

/* First of all that comes after the real function. Of the sort that calls_add_time() counts it as. */
static __attribute__((noinline)) void tally_calls_add_events(
	const struct call *c, struct tally_entry *e)
{
	struct tally_event_reading now;
	bool counted = tally_events_read(&now);
	struct tally_events *to = tally_events_of(e);
	int64_t ns = net_ns(c->ticks);
	if (counted && to)
		tally_events_add(&c->since_events, &now, 1,
			c->special || has_slept(c, ns > 0 ? (uint64_t)ns : 0) ? &to->special
									      : &to->sampled);
}

/* By a constant, so nothing of this is left in a wrapper but one comparison. */
PRELOAD_INLINE enum calls_fails fails_how(
	unsigned function, enum calls_kind kind, enum calls_timing timing)
{
	switch (function) {
#define FAILS(name, how)                                                                           \
	case CALLS_##name:                                                                         \
		return CALLS_FAILS_##how;
#include "ring/calls_failed.def"
	default:
		break;
	}
	if (kind == CALLS_KIND_pthreads)
		return CALLS_FAILS_number;
	bool is_plain = kind == CALLS_KIND_string || kind == CALLS_KIND_math ||
			timing & (CALLS_LEAF | CALLS_STREAM);
	return is_plain ? CALLS_FAILS_never : CALLS_FAILS_result;
}

enum { FAILED_UNKNOWN = -1 };

/* The error's number, FAILED_UNKNOWN, or 0: it did not fail. */
PRELOAD_INLINE int error_of(enum calls_fails how, long result, bool is_pointer)
{
	if (how == CALLS_FAILS_number)
		return (int)result >= 0 ? (int)result : FAILED_UNKNOWN;
	if (how == CALLS_FAILS_result && PRELOAD_RARE(result == -1 || (is_pointer && !result)))
		return errno > 0 ? errno : FAILED_UNKNOWN;
	return 0;
}

static PRELOAD_COLD void tally_calls_add_failed(struct tally_entry *e, int error)
{
	TALLY_INC(e->failed);
	e->last_error = error > 0 ? (uint64_t)error : 0;
}

PRELOAD_INLINE void call_end(struct call *c, uint64_t bytes, int error)
{
	struct tally_entry *e = c->entry;
	if (PRELOAD_RARE(!e))
		return;
	if (PRELOAD_RARE(c->has_events))
		tally_calls_add_events(c, e);
	if (PRELOAD_RARE(error))
		tally_calls_add_failed(e, error);
	if (c->timed)
		calls_add_time(c, e);
	if (c->cpu_timed) {
		uint64_t ns = calls_cpu_ns() - c->since_cpu_ns;
		TALLY_INC(e->n[TALLY_cpu_nr]);
		TALLY_ADD(e->n[TALLY_cpu_ns], ns > readings_ns ? ns - readings_ns : 0);
	}
	TALLY_ADD(e->n[TALLY_bytes], bytes);
	if (c->pushed)
		context.nr--;
}

/* ---- streams: is it likely that the kernel is asked, or that another thread has the stream?
 * Nothing is wrong if it is not so, or if glibc's locks change: less is known --------------------
 */

enum { STREAM_UNBUFFERED = 2, STREAM_BY_LINE = 0x200, STREAM_ERROR = 0x20, STREAM_PUTTING = 0x800 };
enum { TEXT_BYTES = 256 }; /* of a text whose length nobody knows */
struct stream_lock {
	int lock, count;
	const void *owner;
};

PRELOAD_INLINE bool stream_taken(const FILE *f)
{
	const struct stream_lock *l = (const void *)f->_lock;
	return l && __atomic_load_n(&l->lock, __ATOMIC_RELAXED) &&
	       l->owner != (const void *)pthread_self();
}

PRELOAD_INLINE bool stream_reads(const FILE *f, size_t bytes)
{
	return f && ((size_t)(f->_IO_read_end - f->_IO_read_ptr) < bytes || stream_taken(f));
}

PRELOAD_INLINE bool stream_writes(const FILE *f, size_t bytes)
{
	return f && (!(f->_flags & STREAM_PUTTING) || f->_flags & STREAM_UNBUFFERED ||
			    (bytes > 1 && f->_flags & STREAM_BY_LINE) ||
			    (size_t)(f->_IO_buf_end - f->_IO_write_ptr) < bytes || stream_taken(f));
}

/* ---- wrappers from the table ----------------------------------------------------------------- */

#define SPECIAL_often       false
#define SPECIAL_bulk        (n >= BULK_BYTES)
#define SPECIAL_brief       false
#define SPECIAL_waits       false
#define SPECIAL_char_in     stream_reads(f, 1)
#define SPECIAL_char_stdin  stream_reads(stdin, 1) /* allowed: the program's */
#define SPECIAL_text_in     stream_reads(f, 1)
#define SPECIAL_bytes_in    stream_reads(f, size *n)
#define SPECIAL_char_out    stream_writes(f, 1)
#define SPECIAL_char_stdout stream_writes(stdout, 1) /* allowed: the program's */
#define SPECIAL_text_out    stream_writes(f, TEXT_BYTES)
#define SPECIAL_text_stdout stream_writes(stdout, TEXT_BYTES) /* allowed: the program's */
#define SPECIAL_bytes_out   stream_writes(f, size *n)
/* A reader waits for the writer; a writer for all. */
#define SPECIAL_read_lock  ((__atomic_load_n(&l->__data.__readers, __ATOMIC_RELAXED) & 2) != 0)
#define SPECIAL_write_lock ((__atomic_load_n(&l->__data.__readers, __ATOMIC_RELAXED) & ~5u) != 0)
#define SPECIAL_spin_lock  (__atomic_load_n(l, __ATOMIC_RELAXED) != 1)
/* The error's number, of a result `r`. Streams: what they read is bad and there was an error (not
 * the end), or what they wrote is. */
#define FAILED_ERRNO        (errno > 0 ? errno : FAILED_UNKNOWN)
#define READ_FAILED(f, bad) (PRELOAD_RARE(bad) && (f)->_flags & STREAM_ERROR ? FAILED_ERRNO : 0)
#define WRITE_FAILED(bad)   (PRELOAD_RARE(bad) ? FAILED_ERRNO : 0)
#define IS_POINTER(r)       (__builtin_classify_type(r) == 5)
#define ERROR_plain(category, timing, name, r)                                                     \
	error_of(fails_how(CALLS_##name, CALLS_KIND_##category, TIMING_##timing), (long)(r),       \
		IS_POINTER(r))
#define ERROR_often(c, t, name, r)      ERROR_plain(c, often, name, r)
#define ERROR_bulk(c, t, name, r)       0
#define ERROR_brief(c, t, name, r)      ERROR_plain(c, brief, name, r)
#define ERROR_waits(c, t, name, r)      ERROR_plain(c, waits, name, r)
#define ERROR_read_lock(c, t, name, r)  ERROR_plain(c, lock, name, r)
#define ERROR_write_lock(c, t, name, r) ERROR_plain(c, lock, name, r)
#define ERROR_spin_lock(c, t, name, r)  ERROR_plain(c, lock, name, r)
/* EOF, or no line */
#define ERROR_text_in(c, t, name, r) READ_FAILED(f, IS_POINTER(r) ? !(r) : (long)(r) == EOF)
#define ERROR_char_in(c, t, name, r) READ_FAILED(f, (r) == EOF)
#define ERROR_char_stdin(c, t, name, r)                                                            \
	READ_FAILED(                                                                               \
		stdin, (r) == EOF) /* allowed: the program's                                   \
					*/
#define ERROR_bytes_in(c, t, name, r)    READ_FAILED(f, (size_t)(r) < n)
#define ERROR_bytes_out(c, t, name, r)   WRITE_FAILED((size_t)(r) < n)
#define ERROR_text_out(c, t, name, r)    WRITE_FAILED((r) < 0)
#define ERROR_text_stdout(c, t, name, r) WRITE_FAILED((r) < 0)
#define ERROR_char_out(c, t, name, r)    WRITE_FAILED((r) == EOF)
#define ERROR_char_stdout(c, t, name, r) WRITE_FAILED((r) == EOF)
#define CALL(category, timing, result, name, parameters, arguments, bytes)                         \
	PRELOAD_EXPORT result name parameters                                                      \
	{                                                                                          \
		struct call call;                                                                  \
		call_begin(                                                                        \
			&call, CALLS_##name, TIMING_##timing, SPECIAL_##timing, PRELOAD_CALLER);   \
		result r;                                                                          \
		CALL_REAL(call, r = REAL_OF(name) arguments);                                      \
		int saved_errno = call.cpu_timed ? errno : 0;                                      \
		call_end(&call, (uint64_t)(bytes), ERROR_##timing(category, timing, name, r));     \
		if (call.cpu_timed)                                                                \
			errno = saved_errno;                                                       \
		return r;                                                                          \
	}
#define CALL_VOID(category, timing, name, parameters, arguments)                                   \
	PRELOAD_EXPORT void name parameters                                                        \
	{                                                                                          \
		struct call call;                                                                  \
		call_begin(                                                                        \
			&call, CALLS_##name, TIMING_##timing, SPECIAL_##timing, PRELOAD_CALLER);   \
		CALL_REAL(call, REAL_OF(name) arguments);                                          \
		call_end(&call, 0, 0);                                                             \
	}
#include "ring/calls.def"

/* ---- memory: dlsym itself may ask for some --------------------------------------------------- */

#define MEMORY(result, name, parameters, arguments, bytes)                                         \
	PRELOAD_EXPORT result name parameters                                                      \
	{                                                                                          \
		struct call call;                                                                  \
		if (PRELOAD_RARE(!real[CALLS_##name])) {                                           \
			if (context.busy || !find_real(CALLS_##name))                              \
				return __libc_##name arguments;                                    \
		}                                                                                  \
		call_begin(&call, CALLS_##name, TIMING_often, false, PRELOAD_CALLER);              \
		result r;                                                                          \
		CALL_REAL(call, r = REAL_OF(name) arguments);                                      \
		call_end(&call, bytes, r || (bytes) == 0 ? 0 : FAILED_ERRNO);                      \
		return r;                                                                          \
	}
MEMORY(void *, malloc, (size_t n), (n), n)
MEMORY(void *, calloc, (size_t nr, size_t n), (nr, n), nr *n)
MEMORY(void *, realloc, (void *p, size_t n), (p, n), n)

PRELOAD_EXPORT void free(void *p)
{
	struct call call;
	if (PRELOAD_RARE(!real[CALLS_free])) {
		if (context.busy || !find_real(CALLS_free)) {
			__libc_free(p);
			return;
		}
	}
	call_begin(&call, CALLS_free, TIMING_often, false, PRELOAD_CALLER);
	CALL_REAL(call, REAL_OF(free)(p));
	call_end(&call, 0, 0);
}

/* ---- any number of arguments ----------------------------------------------------------------- */

int __printf_chk(int flag, const char *format, ...);
int __fprintf_chk(FILE *f, int flag, const char *format, ...);
int __snprintf_chk(char *to, size_t n, int flag, size_t room, const char *format, ...);
int __sprintf_chk(char *to, int flag, size_t room, const char *format, ...);
int __asprintf_chk(char **to, int flag, const char *format, ...);
int __isoc99_sscanf(const char *from, const char *format, ...);
int __isoc99_fscanf(FILE *f, const char *format, ...);
int __isoc99_vsscanf(const char *from, const char *format, va_list list);
int __isoc99_vfscanf(FILE *f, const char *format, va_list list);

#define FORMATTED(name, timing, parameters, last, call_real)                                       \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		struct call call;                                                                  \
		va_list list;                                                                      \
		int r;                                                                             \
		call_begin(                                                                        \
			&call, CALLS_##name, TIMING_##timing, SPECIAL_##timing, PRELOAD_CALLER);   \
		va_start(list, last);                                                              \
		CALL_REAL(call, r = call_real);                                                    \
		va_end(list);                                                                      \
		call_end(&call, r > 0 ? (uint64_t)r : 0, WRITE_FAILED(r < 0));                     \
		return r;                                                                          \
	}
/* clang-format off: a line says what it may */
FORMATTED(printf, text_stdout, (const char *format, ...), format,
	REAL_OF(vfprintf)(stdout, format, list)) /* allowed: the program prints */
FORMATTED(fprintf, text_out, (FILE * f, const char *format, ...), format,
	REAL_OF(vfprintf)(f, format, list))
FORMATTED(__printf_chk, text_stdout, (int flag, const char *format, ...), format,
	REAL_OF(__vfprintf_chk)(stdout, flag, format, list)) /* allowed: the program prints */
FORMATTED(__fprintf_chk, text_out, (FILE * f, int flag, const char *format, ...), format,
	REAL_OF(__vfprintf_chk)(f, flag, format, list))
FORMATTED(snprintf, often, (char *to, size_t n, const char *format, ...), format,
	REAL_OF(vsnprintf)(to, n, format, list))
FORMATTED(sprintf, often, (char *to, const char *format, ...), format,
	REAL_OF(vsprintf)(to, format, list))
FORMATTED(__snprintf_chk, often,
	(char *to, size_t n, int flag, size_t room, const char *format, ...), format,
	REAL_OF(__vsnprintf_chk)(to, n, flag, room, format, list))
FORMATTED(__sprintf_chk, often, (char *to, int flag, size_t room, const char *format, ...), format,
	REAL_OF(__vsprintf_chk)(to, flag, room, format, list))
FORMATTED(asprintf, often, (char **to, const char *format, ...), format,
	REAL_OF(vasprintf)(to, format, list))
FORMATTED(__asprintf_chk, often, (char **to, int flag, const char *format, ...), format,
	REAL_OF(__vasprintf_chk)(to, flag, format, list))
#define SCANNED(name, timing, parameters, call_real)                                               \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		struct call call;                                                                  \
		va_list list;                                                                      \
		int r;                                                                             \
		call_begin(                                                                        \
			&call, CALLS_##name, TIMING_##timing, SPECIAL_##timing, PRELOAD_CALLER);   \
		va_start(list, format);                                                            \
		CALL_REAL(call, r = call_real);                                                    \
		va_end(list);                                                                      \
		call_end(&call, 0, 0);                                                             \
		return r;                                                                          \
	}
SCANNED(__isoc99_sscanf, often, (const char *from, const char *format, ...),
	__isoc99_vsscanf(from, format, list))
SCANNED(__isoc99_fscanf, text_in, (FILE * f, const char *format, ...),
	__isoc99_vfscanf(f, format, list))

/* One more argument, or none: then what is in its register goes on to a function that does not look
 * at it. */
#define ONE_MORE(result, name, parameters, last, type, arguments)                                  \
	PRELOAD_EXPORT result name parameters                                                      \
	{                                                                                          \
		struct call call;                                                                  \
		va_list list;                                                                      \
		va_start(list, last);                                                              \
		type more = va_arg(list, type);                                                    \
		va_end(list);                                                                      \
		call_begin(&call, CALLS_##name, TIMING_waits, false, PRELOAD_CALLER);              \
		result r;                                                                          \
		CALL_REAL(call, r = REAL_OF(name) arguments);                                      \
		int saved_errno = call.cpu_timed ? errno : 0;                                      \
		call_end(&call, 0, ERROR_plain(io, waits, name, r));                               \
		if (call.cpu_timed)                                                                \
			errno = saved_errno;                                                       \
		return r;                                                                          \
	}
ONE_MORE(int, open, (const char *path, int flags, ...), flags, unsigned, (path, flags, more))
ONE_MORE(int, open64, (const char *path, int flags, ...), flags, unsigned, (path, flags, more))
ONE_MORE(int, openat, (int at, const char *path, int flags, ...), flags, unsigned,
	(at, path, flags, more))
ONE_MORE(int, openat64, (int at, const char *path, int flags, ...), flags, unsigned,
	(at, path, flags, more))
ONE_MORE(int, fcntl, (int fd, int what, ...), what, void *, (fd, what, more))
ONE_MORE(int, fcntl64, (int fd, int what, ...), what, void *, (fd, what, more))
ONE_MORE(int, ioctl, (int fd, unsigned long what, ...), what, void *, (fd, what, more))
ONE_MORE(void *, mremap, (void *p, size_t before, size_t n, int flags, ...), flags, void *,
	(p, before, n, flags, more))
/* clang-format on */

/* ---- any system call ------------------------------------------------------------------------- */

long calls_syscall(long number, long a, long b, long c, long d, long e, long f)
	__attribute__((used, visibility("hidden")));

long calls_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	struct call call;
	call_begin(&call, CALLS_syscall, TIMING_waits, false, PRELOAD_CALLER);
	long r;
	bool limits = number == SYS_seccomp || number == SYS_prctl;
	CALL_REAL(call, r = limits ? preload_limits_itself(number, a, b, c, d, e, f)
				   : REAL_OF(syscall)(number, a, b, c, d, e, f));
	int saved_errno = call.cpu_timed ? errno : 0;
	call_end(&call, 0, ERROR_plain(other, waits, syscall, r));
	if (call.cpu_timed)
		errno = saved_errno;
	return r;
}

long calls_syscall_failed(long result) __attribute__((used, visibility("hidden")));

long calls_syscall_failed(long result)
{
	errno = (int)-result;
	return -1;
}

/*
 * syscall(number, a, b, c, d, e, f): counted, but for those that return twice or never (clone,
 * fork, vfork, exit, clone3), for which nothing of ours may lie on the stack.
 */
#ifdef SYS_fork /* (64-bit ARM has clone only) */
#define CALLS_NOT_FORK TRAMPOLINE_SYSCALL_NOT(SYS_fork) TRAMPOLINE_SYSCALL_NOT(SYS_vfork)
#else
#define CALLS_NOT_FORK ""
#endif
__asm__(TRAMPOLINE_BEGIN("syscall") TRAMPOLINE_SYSCALL_NOT(SYS_clone)
		CALLS_NOT_FORK TRAMPOLINE_SYSCALL_NOT(SYS_execve) TRAMPOLINE_SYSCALL_NOT(SYS_exit)
			TRAMPOLINE_SYSCALL_NOT(SYS_clone3) TRAMPOLINE_GO(
				"calls_syscall") "9:\n" TRAMPOLINE_SYSCALL("calls_syscall_failed")
				TRAMPOLINE_END("syscall"));

/* ---- what the core of the recorder wraps itself ---------------------------------------------- */

_Static_assert(sizeof(struct call) <= sizeof(struct preload_counted), "room for a call");

void preload_count_begin(struct preload_counted *counted, unsigned function, uintptr_t site)
{
	struct call *call = (struct call *)(void *)counted;
	call_begin(call, function, TIMING_waits, false, site);
	call->ticks = call->entry ? begin_tsc() : 0;
}

void preload_count_end(struct preload_counted *counted, int error)
{
	struct call *call = (struct call *)(void *)counted;
	int saved_errno = errno;
	call->ticks = call->entry ? end_tsc() - call->ticks : 0;
	call_end(call, 0, error);
	errno = saved_errno;
}

/* ---- locks and condition variables ----------------------------------------------------------- */

#define LOCK(name, timing, real_one, special)                                                      \
	PRELOAD_EXPORT int name(pthread_mutex_t *mutex)                                            \
	{                                                                                          \
		struct call call;                                                                  \
		int r;                                                                             \
		call_begin(&call, CALLS_##name, timing, special, PRELOAD_CALLER);                  \
		CALL_REAL(call, r = real_one(mutex));                                              \
		call_end(&call, 0, r);                                                             \
		return r;                                                                          \
	}
#define IS_TAKEN (__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) != 0)
LOCK(pthread_mutex_lock, TIMING_lock, preload_real_mutex_lock, IS_TAKEN)
LOCK(pthread_mutex_trylock, TIMING_often, preload_real_mutex_trylock, false)
LOCK(pthread_mutex_unlock, TIMING_often, preload_real_mutex_unlock, false)

/* Only today's: a program of before glibc 2.3.2 gets libc's own by its version. */
#define COND(name, parameters, arguments, timing)                                                  \
	PRELOAD_EXPORT int calls_new_##name parameters;                                            \
	int calls_new_##name parameters                                                            \
	{                                                                                          \
		struct call call;                                                                  \
		call_begin(&call, CALLS_pthread_##name, timing, false, PRELOAD_CALLER);            \
		int r;                                                                             \
		CALL_REAL(call, r = REAL_OF(pthread_##name) arguments);                            \
		call_end(&call, 0, r);                                                             \
		return r;                                                                          \
	}                                                                                          \
	PRELOAD_VERSION_IS_NOW(pthread_##name, calls_new_##name)
COND(cond_wait, (pthread_cond_t * c, pthread_mutex_t *m), (c, m), TIMING_waits)
COND(cond_timedwait, (pthread_cond_t * c, pthread_mutex_t *m, const struct timespec *until),
	(c, m, until), TIMING_waits)
COND(cond_signal, (pthread_cond_t * c), (c), TIMING_waits)
COND(cond_broadcast, (pthread_cond_t * c), (c), TIMING_waits)
