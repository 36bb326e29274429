/* SPDX-License-Identifier: Apache-2.0 */
/* poll.c - waiting for readiness, and for time to pass. */
#include "preload/preload.h"
#include "preload/real.h"

#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	LASTED_TICKS = 50000,
	READABLE = POLLIN | POLLPRI | POLLRDNORM | POLLRDBAND | POLLHUP | POLLERR | POLLRDHUP,
};

struct readiness {
	uint64_t begin_tsc, site;
	bool open;
};

static void ready_begin(struct readiness *r, uint64_t nr_fds, uint64_t site)
{
	bool open = preload_active();
	if (open && preload_has_python())
		preload_python_polls();
	*r = (struct readiness){preload_now_if(open), site, open};
	if (open && PRELOAD_RARE(preload_self->loop.object != 0))
		preload_loop_idles(r->begin_tsc);
	if (open)
		PRELOAD_RECORD_AT(r->begin_tsc, poll_begin, nr_fds, site);
}

/* `fd` is the first that is ready, or -1. */
static void ready_end(struct readiness *r, int64_t result, int fd, bool only_writable)
{
	struct preload_stack stack; /* not all of it set to 0 for every call */
	if (!r->open)
		return;
	uint64_t tsc = preload_now();
	stack.nr_frames = 0;
	r->open = false;
	int saved_errno = errno;
	if (result < 0)
		result = -saved_errno;
	if (tsc - r->begin_tsc > LASTED_TICKS)
		preload_stack_take(&stack, r->site);
	preload_record_stack_at(tsc, PRELOAD_poll_end,
		PRELOAD_WORDS(result > 0 && fd >= 0 ? preload_fd_object(fd) : 0, only_writable,
			(uint64_t)result, 0),
		4, &stack);
	if (PRELOAD_RARE(preload_self->loop.object != 0))
		preload_loop_goes_on(tsc);
	errno = saved_errno;
}

/* ---- poll ------------------------------------------------------------------------------------ */

static void poll_end(struct readiness *r, const struct pollfd *fds, nfds_t n, int result)
{
	for (nfds_t i = 0; r->open && result > 0 && i < n; i++)
		if (fds[i].revents) {
			ready_end(r, result, fds[i].fd, !(fds[i].revents & READABLE));
			return;
		}
	ready_end(r, result, -1, false);
}

#define POLL(name, parameters, arguments)                                                          \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		struct readiness r;                                                                \
		ready_begin(&r, n, PRELOAD_SITE);                                                  \
		int result = PRELOAD_REAL(name) arguments;                                         \
		poll_end(&r, fds, n, result);                                                      \
		return result;                                                                     \
	}
int __poll_chk(struct pollfd *fds, nfds_t n, int limit_ms, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask,
	size_t room);
POLL(poll, (struct pollfd * fds, nfds_t n, int limit_ms), (fds, n, limit_ms))
POLL(ppoll, (struct pollfd * fds, nfds_t n, const struct timespec *limit, const sigset_t *mask),
	(fds, n, limit, mask))
POLL(__poll_chk, (struct pollfd * fds, nfds_t n, int limit_ms, size_t room),
	(fds, n, limit_ms, room))
POLL(__ppoll_chk,
	(struct pollfd * fds, nfds_t n, const struct timespec *limit, const sigset_t *mask,
		size_t room),
	(fds, n, limit, mask, room))
PRELOAD_ALIAS(__poll, poll)

/* ---- select ---------------------------------------------------------------------------------- */

/* The program's set may be larger than an fd_set: looked at word by word. */
static int first_in(const fd_set *set, int n)
{
	enum { BITS = 8 * sizeof(long) };
	const unsigned long *words = (const unsigned long *)(const void *)set;
	for (int i = 0; set && i < n; i += BITS)
		if (words[i / BITS]) {
			int fd = i + __builtin_ctzl(words[i / BITS]);
			return fd < n ? fd : -1;
		}
	return -1;
}

static void select_end(struct readiness *r, int n, const fd_set *in, const fd_set *out,
	const fd_set *except, int result)
{
	int fd = -1;
	bool only_writable = false;
	if (r->open && result > 0) {
		fd = first_in(in, n);
		if (fd < 0)
			fd = first_in(except, n);
		if (fd < 0) {
			fd = first_in(out, n);
			only_writable = true;
		}
	}
	ready_end(r, result, fd, only_writable);
}

#define SELECT(name, parameters, arguments)                                                        \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		struct readiness r;                                                                \
		ready_begin(&r, n > 0 ? (uint64_t)n : 0, PRELOAD_SITE);                            \
		int result = PRELOAD_REAL(name) arguments;                                         \
		select_end(&r, n, in, out, except, result);                                        \
		return result;                                                                     \
	}
SELECT(select, (int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *limit),
	(n, in, out, except, limit))
SELECT(pselect,
	(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *limit,
		const sigset_t *mask),
	(n, in, out, except, limit, mask))
PRELOAD_ALIAS(__select, select)

/* ---- epoll ----------------------------------------------------------------------------------- */

/*
 * epoll_wait() says the program's datum, not the descriptor: epoll_ctl() notes which are whose. What
 * was registered otherwise (by io_uring, as libuv does; before us) the kernel is asked for.
 * Where a program says the same of several, the kernel is asked which of them is ready. Lossy on
 * purpose: a place that too many fall into forgets one, and what is not found is reported as not
 * known.
 */
enum { NOTES = 4096, WAYS = 4 };
static struct {
	uint64_t datum;
	uint64_t fds; /* epoll descriptor + 1 << 32 | watched descriptor */
} notes[NOTES][WAYS];
static uint32_t next_way;
static uint32_t last_hash[PRELOAD_FDS]; /* of a descriptor's newest datum */

static unsigned note_row(int epoll, uint64_t datum)
{
	uint64_t hash = (datum ^ (uint64_t)(uint32_t)epoll << 40) * 0x9e3779b97f4a7c15u;
	return (unsigned)(hash >> 52) % NOTES;
}

static uint32_t datum_hash(uint64_t datum)
{
	return (uint32_t)(datum * 0x9e3779b97f4a7c15u >> 32);
}

static uint64_t note_fds(int epoll, int fd)
{
	return ((uint64_t)(uint32_t)epoll + 1) << 32 | (uint32_t)fd;
}

static void note_watched(int epoll, int fd, uint64_t datum)
{
	unsigned row = note_row(epoll, datum), way = WAYS;
	uint64_t mine = note_fds(epoll, fd);
	if (fd >= 0 && fd < PRELOAD_FDS)
		__atomic_store_n(&last_hash[fd], datum_hash(datum), __ATOMIC_RELAXED);
	for (unsigned i = 0; i < WAYS; i++) {
		uint64_t fds = __atomic_load_n(&notes[row][i].fds, __ATOMIC_RELAXED);
		if (fds == mine || (!fds && way == WAYS))
			way = i;
	}
	if (way == WAYS)
		way = __atomic_fetch_add(&next_way, 1, __ATOMIC_RELAXED) % WAYS;
	__atomic_store_n(&notes[row][way].fds, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&notes[row][way].datum, datum, __ATOMIC_RELEASE);
	__atomic_store_n(&notes[row][way].fds, mine, __ATOMIC_RELEASE);
}

/* It was closed, and is another one now. */
static bool is_other_now(int fd, uint64_t datum)
{
	return fd >= 0 && fd < PRELOAD_FDS &&
	       __atomic_load_n(&last_hash[fd], __ATOMIC_RELAXED) != datum_hash(datum);
}

/* The notes with that datum; when there are several, without those of descriptors that have
 * another datum since. */
static unsigned find_notes(int epoll, uint64_t datum, unsigned ret[WAYS])
{
	unsigned row = note_row(epoll, datum), nr = 0, nr_kept = 0;
	for (unsigned i = 0; i < WAYS; i++) {
		uint64_t fds = __atomic_load_n(&notes[row][i].fds, __ATOMIC_ACQUIRE);
		if (fds && fds == note_fds(epoll, (int)(uint32_t)fds) &&
			__atomic_load_n(&notes[row][i].datum, __ATOMIC_ACQUIRE) == datum)
			ret[nr++] = i;
	}
	for (unsigned i = 0; nr > 1 && i < nr; i++)
		if (!is_other_now((int)(uint32_t)notes[row][ret[i]].fds, datum))
			ret[nr_kept++] = ret[i];
	return nr > 1 ? nr_kept : nr;
}

/* Of several descriptors the one that is ready for what is reported; -1: none, or more than one. */
static int ask_which(unsigned row, const unsigned note[WAYS], unsigned nr, uint32_t reported)
{
	struct pollfd watched[WAYS];
	int ready = -1, nr_ready = 0;
	for (unsigned i = 0; i < nr; i++)
		watched[i] = (struct pollfd){.fd = (int)(uint32_t)notes[row][note[i]].fds,
			.events = (short)(reported & (READABLE | POLLOUT))};
	if (preload_syscall(
		    SYS_ppoll, (long)watched, (long)nr, (long)&(struct timespec){0}, 0, 0, 0) <= 0)
		return -1;
	for (unsigned i = 0; i < nr; i++) {
		if (watched[i].revents == POLLNVAL) { /* closed: not asked again */
			__atomic_store_n(&notes[row][note[i]].fds, 0, __ATOMIC_RELEASE);
		} else if (watched[i].revents) {
			ready = watched[i].fd;
			nr_ready++;
		}
	}
	return nr_ready == 1 ? ready : -1;
}

/* The number behind a label in a line; *ret stays where it has none. */
static void info_number(const char *line, const char *label, unsigned base, uint64_t *ret)
{
	const char *at = strstr(line, label);
	uint64_t number = 0;
	if (!at)
		return;
	for (at += strlen(label); *at == ' ' || *at == '\t';)
		at++;
	for (;; at++) {
		const unsigned letter = (unsigned)(*at | 0x20) - 'a', digit = (unsigned)*at - '0';
		const unsigned value = digit < 10 ? digit : letter < 6 ? letter + 10 : base;
		if (value >= base)
			break;
		number = number * base + value;
	}
	*ret = number;
}

/* "tfd:        5 events:       19 data:                5  pos:0 ..." */
static void info_line(int epoll, const char *line)
{
	uint64_t fd = UINT64_MAX, datum = 0;
	info_number(line, "tfd:", 10, &fd);
	info_number(line, "data:", 16, &datum);
	if (fd <= INT_MAX)
		note_watched(epoll, (int)fd, datum);
}

/* Notes all that the kernel says is watched, of which there may be much. */
static void ask_kernel(int epoll)
{
	enum { ROOM = 2048, BYTES_MAX = 1 << 16 };
	char text[ROOM + 1];
	size_t kept = 0, nr_read = 0;
	const int file = preload_fd_info(epoll);
	if (file < 0)
		return;
	while (nr_read < BYTES_MAX) {
		const long n = preload_syscall(
			SYS_read, file, (long)(text + kept), (long)(ROOM - kept), 0, 0, 0);
		if (n <= 0)
			break;
		nr_read += (size_t)n;
		text[kept + (size_t)n] = '\0';
		char *line = text, *end;
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			info_line(epoll, line);
		}
		kept = strlen(line);
		if (kept == ROOM)
			break;
		memmove(text, line, kept);
	}
	preload_syscall(SYS_close, file, 0, 0, 0, 0, 0);
}

/* (When the kernel was asked in vain again and again, it is not asked any more.) */
static unsigned find_or_ask(int epoll, uint64_t datum, unsigned ret[WAYS])
{
	enum { IN_VAIN_MAX = 200 };
	static uint32_t nr_in_vain;
	unsigned nr = find_notes(epoll, datum, ret);
	if (nr || __atomic_load_n(&nr_in_vain, __ATOMIC_RELAXED) >= IN_VAIN_MAX)
		return nr;
	ask_kernel(epoll);
	nr = find_notes(epoll, datum, ret);
	if (!nr)
		__atomic_fetch_add(&nr_in_vain, 1, __ATOMIC_RELAXED);
	return nr;
}

static int watched_fd(int epoll, const struct epoll_event *event)
{
	uint64_t datum = event->data.u64;
	unsigned note[WAYS], row = note_row(epoll, datum), nr = find_or_ask(epoll, datum, note);
	if (nr == 1)
		return (int)(uint32_t)notes[row][note[0]].fds;
	return nr ? ask_which(row, note, nr, event->events) : -1;
}

PRELOAD_EXPORT int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	int result = PRELOAD_REAL(epoll_ctl)(epoll, operation, fd, event);
	if (result == 0 && event && operation != EPOLL_CTL_DEL && preload_active())
		note_watched(epoll, fd, event->data.u64);
	return result;
}

static void epoll_end(struct readiness *r, int epoll, const struct epoll_event *events, int result)
{
	if (r->open && result > 0)
		ready_end(r, result, watched_fd(epoll, &events[0]), !(events[0].events & READABLE));
	else
		ready_end(r, result, -1, false);
}

#define EPOLL(name, parameters, arguments)                                                         \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		struct readiness r;                                                                \
		preload_machine_calls(PRELOAD_CALLER);                                             \
		ready_begin(&r, n > 0 ? (uint64_t)n : 0, PRELOAD_SITE);                            \
		int result = PRELOAD_REAL(name) arguments;                                         \
		epoll_end(&r, epoll, events, result);                                              \
		return result;                                                                     \
	}
EPOLL(epoll_wait, (int epoll, struct epoll_event *events, int n, int limit_ms),
	(epoll, events, n, limit_ms))
EPOLL(epoll_pwait,
	(int epoll, struct epoll_event *events, int n, int limit_ms, const sigset_t *mask),
	(epoll, events, n, limit_ms, mask))
EPOLL(epoll_pwait2,
	(int epoll, struct epoll_event *events, int n, const struct timespec *limit,
		const sigset_t *mask),
	(epoll, events, n, limit, mask))

/* ---- signals: as polling no descriptor, and being interrupted
 * --------------------------------- */

static void signal_end(struct readiness *r, bool came)
{
	int saved_errno = errno;
	errno = EINTR;
	ready_end(r, came ? -1 : 0, -1, false);
	errno = saved_errno;
}

#define SIGNAL(name, parameters, arguments, came)                                                  \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		struct readiness r;                                                                \
		ready_begin(&r, 0, PRELOAD_SITE);                                                  \
		int result = PRELOAD_REAL(name) arguments;                                         \
		signal_end(&r, came);                                                              \
		return result;                                                                     \
	}
SIGNAL(pause, (void), (), result < 0)
SIGNAL(sigsuspend, (const sigset_t *mask), (mask), result < 0)
SIGNAL(sigwait, (const sigset_t *set, int *number), (set, number), result == 0)
SIGNAL(sigwaitinfo, (const sigset_t *set, siginfo_t *info), (set, info), result > 0)
SIGNAL(sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *limit),
	(set, info, limit), result > 0)

/* To whom: one process, one thread, or (neither) a group. Number 0 only asks whether there is such
 * a one. */
#define SENDS(name, pid, handle, parameters, arguments)                                            \
	PRELOAD_EXPORT int name parameters                                                         \
	{                                                                                          \
		if (number && preload_active())                                                    \
			PRELOAD_RECORD(signal_send, pid, handle, (uint64_t)number, PRELOAD_SITE);  \
		return PRELOAD_REAL(name) arguments;                                               \
	}
SENDS(kill, to > 0 ? (uint64_t)to : 0, 0, (pid_t to, int number), (to, number))
SENDS(sigqueue, to > 0 ? (uint64_t)to : 0, 0, (pid_t to, int number, union sigval value),
	(to, number, value))
SENDS(killpg, 0, 0, (pid_t to, int number), (to, number))
SENDS(tgkill, to > 0 ? (uint64_t)to : 0, 0, (pid_t to, pid_t thread, int number),
	(to, thread, number))
SENDS(raise, 0, pthread_self(), (int number), (number))
SENDS(pthread_kill, 0, to, (pthread_t to, int number), (to, number))
/* (libc does it by a signal that the program has no name for) */
PRELOAD_EXPORT int pthread_cancel(pthread_t to)
{
	enum { CANCELS = 32 };
	if (preload_active())
		PRELOAD_RECORD(signal_send, 0, to, CANCELS, PRELOAD_SITE);
	return PRELOAD_REAL(pthread_cancel)(to);
}
SENDS(pthread_sigqueue, 0, to, (pthread_t to, int number, union sigval value), (to, number, value))

/* ---- sleep ----------------------------------------------------------------------------------- */

enum { SECOND_NS = 1000000000 };

static uint64_t span_ns(const struct timespec *t)
{
	return preload_is_address(t) ? (uint64_t)t->tv_sec * SECOND_NS + (uint64_t)t->tv_nsec : 0;
}

/* Until then; below 0: since then. */
static int64_t remaining_ns(clockid_t clock, const struct timespec *until)
{
	struct timespec now;
	if (preload_syscall(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0) != 0)
		return 0;
	return (int64_t)(span_ns(until) - span_ns(&now));
}

/* Clocks that go on while nobody runs. */
static bool is_of_time(clockid_t clock)
{
	return clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME || clock == CLOCK_BOOTTIME ||
	       clock == CLOCK_TAI;
}

/* (A Java VM polls its threads, a moment at a time, as it stops them.) */
#define SLEEP(name, result_type, duration_ns, parameters, arguments)                               \
	PRELOAD_EXPORT result_type name parameters                                                 \
	{                                                                                          \
		if (!preload_active() || preload_is_java(PRELOAD_CALLER))                          \
			return PRELOAD_REAL(name) arguments;                                       \
		PRELOAD_RECORD(sleep_begin, duration_ns, PRELOAD_SITE);                            \
		result_type result = PRELOAD_REAL(name) arguments;                                 \
		preload_record_at(preload_now(), PRELOAD_sleep_end, NULL, 0);                      \
		return result;                                                                     \
	}
SLEEP(nanosleep, int, span_ns(duration), (const struct timespec *duration, struct timespec *left),
	(duration, left))
SLEEP(usleep, int, (uint64_t)us * 1000, (useconds_t us), (us))
SLEEP(sleep, unsigned, (uint64_t)seconds *SECOND_NS, (unsigned seconds), (seconds))
SLEEP(thrd_sleep, int, span_ns(duration), (const struct timespec *duration, struct timespec *left),
	(duration, left))
PRELOAD_ALIAS(__nanosleep, nanosleep)

PRELOAD_EXPORT int clock_nanosleep(
	clockid_t clock, int flags, const struct timespec *until, struct timespec *left)
{
	if (!preload_active())
		return PRELOAD_REAL(clock_nanosleep)(clock, flags, until, left);
	if (flags & TIMER_ABSTIME && is_of_time(clock))
		PRELOAD_RECORD(sleep_until, (uint64_t)remaining_ns(clock, until), span_ns(until),
			PRELOAD_SITE);
	else
		PRELOAD_RECORD(
			sleep_begin, flags & TIMER_ABSTIME ? 0 : span_ns(until), PRELOAD_SITE);
	int result = PRELOAD_REAL(clock_nanosleep)(clock, flags, until, left);
	preload_record_at(preload_now(), PRELOAD_sleep_end, NULL, 0);
	return result;
}

PRELOAD_EXPORT int timerfd_settime(
	int fd, int flags, const struct itimerspec *set, struct itimerspec *before)
{
	int result = PRELOAD_REAL(timerfd_settime)(fd, flags, set, before);
	struct itimerspec now = {0};
	if (result == 0 && preload_active() &&
		preload_syscall(SYS_timerfd_gettime, fd, (long)&now, 0, 0, 0, 0) == 0)
		PRELOAD_RECORD(timer_set, preload_fd_object(fd), span_ns(&now.it_value),
			span_ns(&now.it_interval),
			set->it_value.tv_sec != 0 || set->it_value.tv_nsec != 0, PRELOAD_SITE);
	return result;
}
