/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.c - registers by ptrace. PTRACE_SEIZE and PTRACE_INTERRUPT, never PTRACE_ATTACH (which
 * sends a signal), never EXITKILL: when we die the thread goes on.
 *
 * The kernel restarts an interrupted call by itself where rax says so (-ERESTARTSYS and its
 * sisters). Calls that return EINTR after any stop (epoll_wait, semop, sigtimedwait, reads with a
 * timeout) get -ERESTARTNOHAND instead: restarted, unless a handler ran.
 */
#include "deadlock/ahead/snapshot.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	WHY_BYTES = 96,
	ERESTARTSYS = 512,
	ERESTARTNOHAND = 514,
	ERESTART_RESTARTBLOCK = 516,
	SETTLE_TRIES = 200, /* of 100 us: until it waits again */
};

/* Calls with a timeout that begins anew when they are restarted; the argument that is the timeout.
 */
static const struct {
	int64_t call;
	unsigned argument;
	bool in_place; /* the argument itself (milliseconds), negative: none; else an address */
} begins_anew[] = {
	{SYS_epoll_wait, 3, true},
	{SYS_epoll_pwait, 3, true},
	{__NR_epoll_pwait2, 3, false},
	{SYS_semtimedop, 3, false},
	{SYS_rt_sigtimedwait, 2, false},
	{SYS_io_getevents, 4, false},
	{SYS_recvmmsg, 4, false},
};

/* Calls that may have done a part, which a stop would make them return. */
static bool may_be_partial(const struct deadlock_wait *w)
{
	switch (w->call) {
	case SYS_write:
	case SYS_sendto:
		return w->arg[2] > PIPE_BUF || w->call == SYS_sendto;
	case SYS_recvfrom:
		return w->arg[3] & MSG_WAITALL;
	case SYS_recvmsg:
		return w->arg[2] & MSG_WAITALL;
	case SYS_pwrite64:
	case SYS_writev:
	case SYS_pwritev:
	case SYS_pwritev2:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
	case SYS_splice:
	case SYS_tee:
	case SYS_vmsplice:
	case SYS_copy_file_range:
	case SYS_io_uring_enter:
		return true;
	default:
		return false;
	}
}

const char *deadlock_snapshot_harm(const struct deadlock_wait *wait)
{
	if (may_be_partial(wait))
		return "a stop could cut its transfer short; BPF (root) needs no stop";
	for (size_t i = 0; i < BASE_COUNT(begins_anew); i++)
		if (begins_anew[i].call == wait->call) {
			const uint64_t timeout = wait->arg[begins_anew[i].argument];
			if (begins_anew[i].in_place ? (int)timeout > 0 : timeout != 0)
				return "a stop would begin its timeout anew; BPF (root) needs no "
				       "stop";
		}
	return "";
}

static bool registers_of(pid_t tid, struct user_regs_struct *ret)
{
	struct iovec io = {ret, sizeof *ret};
	return ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io) == 0;
}

/* Calls, of those that wait, that return EINTR after any stop. */
static bool returns_eintr(int64_t call)
{
	for (size_t i = 0; i < BASE_COUNT(begins_anew); i++)
		if (begins_anew[i].call == call)
			return true;
	return call == SYS_semop || call == SYS_recvfrom || call == SYS_recvmsg ||
	       call == SYS_accept || call == SYS_accept4;
}

/* Is the stopped thread where the wait says, in a call that will be restarted? EINTR is cured; also
 * that of one that went elsewhere in the moment before it was stopped. */
static bool is_in_call(const struct deadlock_wait *w, struct user_regs_struct *r)
{
	const int64_t result = (int64_t)r->rax, call = (int64_t)r->orig_rax;
	const bool is_there = r->rsp == w->sp && r->rip == w->pc &&
			      (call == w->call || call == SYS_restart_syscall);
	if (result == -EINTR && (is_there || returns_eintr(call))) {
		struct user_regs_struct cured = *r;
		cured.rax = (unsigned long long)-ERESTARTNOHAND;
		struct iovec io = {&cured, sizeof cured};
		return ptrace(PTRACE_SETREGSET, w->thread.tid, NT_PRSTATUS, &io) == 0 && is_there;
	}
	return is_there && result <= -ERESTARTSYS && result >= -ERESTART_RESTARTBLOCK;
}

/* Still, or again, in the call that the wait was read of. */
static bool is_back(const struct deadlock_wait *w)
{
	char text[256];
	struct deadlock_syscall now;
	return os_proc_read_task(w->thread.pid, w->thread.tid, "syscall", text, sizeof text) > 0 &&
	       deadlock_parse_syscall(text, &now) && !now.is_running && !now.is_none &&
	       now.sp == w->sp && now.pc == w->pc &&
	       (now.call == SYS_restart_syscall ||
		       (now.call == w->call && !memcmp(now.arg, w->arg, sizeof now.arg)));
}

/* Back in its call, and its count of runs stays as it is. */
static bool snapshot_settle(const struct deadlock_wait *w, uint64_t *ret_runs)
{
	for (unsigned i = 0; i < SETTLE_TRIES; i++) {
		if (is_back(w))
			return deadlock_runs_of(w->thread.pid, w->thread.tid, ret_runs);
		const struct timespec pause = {.tv_nsec = 100000};
		(void)nanosleep(&pause, NULL);
	}
	return false;
}

/* ---- stopping a thread ----------------------------------------------------------------------- */

static bool snapshot_hurry(void)
{
	const struct sched_param lowest = {.sched_priority = 1};
	return sched_getscheduler(0) == SCHED_OTHER &&
	       sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) == 0;
}

static void snapshot_relax(bool hurried)
{
	const struct sched_param none = {0};
	if (hurried)
		(void)sched_setscheduler(0, SCHED_OTHER, &none);
}

/* How long this thread of ours has been ready to run, and did not. */
static uint64_t waited_for_processor_ns(int schedstat)
{
	char text[64] = "";
	const ssize_t n = schedstat < 0 ? -1 : pread(schedstat, text, sizeof text - 1, 0);
	const char *space = n > 0 ? strchr(text, ' ') : NULL;
	return space ? strtoull(space, NULL, 10) : 0;
}

/* What `begin` prepared. */
static void snapshot_give_up(const struct deadlock_halt *s)
{
	snapshot_relax(s->hurried);
	if (s->schedstat >= 0)
		(void)close(s->schedstat);
}

enum deadlock_halted deadlock_halt_begin(struct deadlock_halt *s, pid_t tid)
{
	int status = 0;
	pid_t got;
	*s = (struct deadlock_halt){
		.tid = tid, .schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)};
	s->hurried = snapshot_hurry();
	s->waited_ns = waited_for_processor_ns(s->schedstat);
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
		s->error = errno;
		snapshot_give_up(s);
		return s->error == ESRCH ? DEADLOCK_HALTED_GONE : DEADLOCK_HALTED_REFUSED;
	}
	const bool asked = ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0;
	do
		got = asked ? waitpid(tid, &status, __WALL) : -1;
	while (asked && got < 0 && errno == EINTR);
	s->seen_ns = os_time_ns(CLOCK_MONOTONIC);
	if (got != tid || !WIFSTOPPED(status)) {
		snapshot_give_up(s);
		return DEADLOCK_HALTED_GONE;
	}
	const bool by_us = status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP;
	/* a signal that came at the same time goes to the thread */
	s->signal = by_us || status >> 16 ? 0 : WSTOPSIG(status);
	return by_us ? DEADLOCK_HALTED : DEADLOCK_HALTED_OTHERWISE;
}

uint64_t deadlock_halt_end(struct deadlock_halt *s)
{
	(void)ptrace(PTRACE_DETACH, s->tid, NULL, (void *)(uintptr_t)s->signal);
	const uint64_t end_ns = os_time_ns(CLOCK_MONOTONIC);
	const uint64_t late_ns = waited_for_processor_ns(s->schedstat) - s->waited_ns;
	snapshot_give_up(s);
	return end_ns - s->seen_ns + late_ns;
}

/* ---- a thread that waits --------------------------------------------------------------------- */

enum deadlock_snapshot_result deadlock_snapshot_ptrace(
	const struct deadlock_wait *wait, struct deadlock_registers *ret, char *why)
{
	struct deadlock_halt halt;
	const char *harm = deadlock_snapshot_harm(wait);
	memset(ret, 0,
		sizeof *ret); /* no page of it is touched first while the thread is stopped */
	if (*harm) {
		(void)snprintf(why, WHY_BYTES, "%s", harm);
		return DEADLOCK_SNAPSHOT_REFUSED;
	}
	/* a thread that has gone on may be in the middle of what a stop would harm, and the wait
	 * knows nothing of that */
	if (!is_back(wait)) {
		(void)snprintf(why, WHY_BYTES, "it was not in that call any more");
		return DEADLOCK_SNAPSHOT_MOVED;
	}
	const enum deadlock_halted halted = deadlock_halt_begin(&halt, wait->thread.tid);
	if (halted == DEADLOCK_HALTED_REFUSED) {
		(void)snprintf(why, WHY_BYTES, "ptrace: %s", strerror(halt.error));
		return DEADLOCK_SNAPSHOT_REFUSED;
	}
	if (halted == DEADLOCK_HALTED_GONE) {
		(void)snprintf(why, WHY_BYTES, "it ended");
		return DEADLOCK_SNAPSHOT_MOVED;
	}
	bool good = halted == DEADLOCK_HALTED && registers_of(halt.tid, &ret->general) &&
		    is_in_call(wait, &ret->general);
	if (good) {
		struct iovec io = {ret->xstate, sizeof ret->xstate};
		if (ptrace(PTRACE_GETREGSET, halt.tid, NT_X86_XSTATE, &io) == 0)
			ret->xstate_bytes = io.iov_len;
	}
	ret->stopped_ns = deadlock_halt_end(&halt);
	good = good && snapshot_settle(wait, &ret->runs);
	if (!good)
		(void)snprintf(why, WHY_BYTES, "it was not in that call any more");
	return good ? DEADLOCK_SNAPSHOT_DONE : DEADLOCK_SNAPSHOT_MOVED;
}
