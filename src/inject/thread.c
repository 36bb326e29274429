/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.c - one thread of a process: found asleep where it may be led away, stopped, led to
 * a function, and let go.
 *
 * The order of steps is such that the thread goes on by itself from each of them, as the kernel
 * lets it when its tracer dies: first the frame on its stack, then all registers at once; at the
 * end it stands before a return through that frame until it has its old registers again.
 */
#include "inject/private.h"
#include "os/proc.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	TASKS_MAX = 4096,
	STATUS_BYTES = 8192,
	ROOM_BYTES = 64 * 1024, /* of the stack below it */
	LOOK_BYTES = 32 * 1024, /* ... above it, for frames of signals */
	NAP_NS = 1000000,
	ANSWER_NS = 1000000000,   /* it must have come to the next stop */
	SEARCH_NS = 2000000000,   /* for a thread at a safe point */
	COMPUTING_NS = 100000000, /* of it for one that sleeps alone */
	SEARCH_NAP_NS = 3000000,
	FRAME_BYTES_MAX = 32 * 1024,
	SYSCALL_STOP = SIGTRAP | 0x80,
	MANY_SYSCALLS = 1000,
};

static uint64_t thread_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void thread_nap(uint64_t ns)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

/* ---- one that sleeps -------------------------------------------------------------------------- */

struct thread_sleep { /* /proc/PID/task/TID/syscall */
	uint64_t number, argument[6], sp, pc;
};

static bool thread_sleeps(pid_t pid, pid_t tid, struct thread_sleep *ret)
{
	char text[256];
	const char *p = text;
	if (os_proc_read_task(pid, tid, "syscall", text, sizeof text) <= 0 ||
		!os_take_number(&p, 10, &ret->number) || ret->number > 1000)
		return false; /* "running", or -1: in no system call */
	for (unsigned i = 0; i < 6; i++)
		if (!os_take_number(&p, 16, &ret->argument[i]))
			return false;
	return os_take_number(&p, 16, &ret->sp) && os_take_number(&p, 16, &ret->pc);
}

/* Is there room below, and did each signal whose handler runs on it interrupt nothing that is half done? A server may live in a
 * handler for ever: PostgreSQL's supervisor begins its processes in one, which interrupts a select() alone. */
static bool thread_has_stack(const struct inject_memory *m, uint64_t sp)
{
	uint64_t start = 0, end = 0, word[LOOK_BYTES / 8];
	struct inject_interrupted interrupted;
	if (sp % 8 || !inject_region(m, sp, &start, &end) || sp - start < ROOM_BYTES)
		return false;
	size_t bytes = end - sp < sizeof word ? (size_t)(end - sp) : sizeof word;
	if (!inject_read(m, sp, word, bytes))
		return false;
	for (size_t i = 0; i < bytes / 8; i++)
		if (inject_is_frame(word + i, bytes - i * 8, m->restorer, &interrupted) &&
			!inject_was_safe(m, &interrupted))
			return false;
	return true;
}

static bool thread_is_safe(const struct inject_memory *m, const struct thread_sleep *s)
{
	if (s->pc < m->code || s->pc >= m->code_end || !thread_has_stack(m, s->sp))
		return false;
	uint64_t number = s->number == SYS_restart_syscall ? inject_number_at(m, s->pc) : s->number;
	return inject_is_safe_call(number, s->argument);
}

/* ---- stops ------------------------------------------------------------------------------------ */

/* Its next stop; false: it has ended, or does not come to one. */
static bool thread_wait(pid_t tid, int *ret_status)
{
	uint64_t begin_ns = thread_now_ns();
	sigset_t child;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		pid_t got = waitpid(tid, ret_status, __WALL | WNOHANG);
		if (got == tid)
			return WIFSTOPPED(*ret_status);
		if (got < 0 && errno != EINTR)
			return false;
		if (thread_now_ns() - begin_ns > ANSWER_NS)
			return false;
		/* (its next state is a signal for us, which is blocked meanwhile) */
		(void)sigtimedwait(&child, NULL, &(struct timespec){.tv_nsec = NAP_NS});
	}
}

static bool thread_is_trap(int status)
{
	return status >> 16 == PTRACE_EVENT_STOP && WSTOPSIG(status) == SIGTRAP;
}

/* What it is to get when it goes on: a signal that came, or nothing. */
static long thread_signal_of(int status)
{
	return status >> 16 || WSTOPSIG(status) == SYSCALL_STOP ? 0 : WSTOPSIG(status);
}

/* Asks it to stop, and waits until it does for that; signals on the way are passed on. `stands`: it
 * stands still for something else, and goes on first. */
static bool thread_interrupt(pid_t tid, bool stands)
{
	int status;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) || (stands && ptrace(PTRACE_CONT, tid, 0, 0)))
		return false;
	while (thread_wait(tid, &status)) {
		if (thread_is_trap(status))
			return true;
		if (status >> 16 == PTRACE_EVENT_STOP)
			return false; /* all of it has been stopped by a signal */
		if (ptrace(PTRACE_CONT, tid, 0, thread_signal_of(status)))
			return false;
	}
	return false;
}

/* ---- its state -------------------------------------------------------------------------------- */

static bool thread_get_state(pid_t tid, struct inject_state *s)
{
	struct iovec vector = {s->vector, sizeof s->vector};
	if (ptrace(PTRACE_GETREGS, tid, 0, &s->regs) ||
		ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &vector) ||
		ptrace(PTRACE_GETSIGMASK, tid, sizeof s->blocked, &s->blocked))
		return false;
	s->vector_bytes = vector.iov_len;
	return vector.iov_len < sizeof s->vector;
}

/* A signal that is not blocked waits for it: then an interrupted call is to say so. */
static bool thread_has_signal(const struct inject_thread *t)
{
	char text[STATUS_BYTES];
	uint64_t own = 0, shared = 0;
	if (os_proc_read_task(t->memory->pid, t->tid, "status", text, sizeof text) <= 0)
		return true;
	(void)os_parse_field(text, "SigPnd", 16, &own);
	(void)os_parse_field(text, "ShdPnd", 16, &shared);
	return ((own | shared) & ~t->state.blocked) != 0;
}

/* The kernel makes a call again that only we have interrupted, but for some that it ends with
 * EINTR even then. */
static void thread_make_again(struct inject_thread *t)
{
	struct user_regs_struct *r = &t->state.regs;
	if ((int64_t)r->rax != -EINTR || (int64_t)r->orig_rax < 0 || thread_has_signal(t))
		return;
	r->rax = r->orig_rax;
	r->rip -= 2;
	r->orig_rax = UINT64_MAX;
}

/* Is it still in the call that it was seen in? */
static bool thread_is_interrupted(const struct inject_thread *t, const struct thread_sleep *s)
{
	enum { FIRST = -516, LAST = -512 };
	const struct user_regs_struct *r = &t->state.regs;
	int64_t result = (int64_t)r->rax;
	return r->orig_rax == s->number && r->rip == s->pc && r->rsp == s->sp && r->cs == 0x33 &&
	       (result == -EINTR || (result >= FIRST && result <= LAST));
}

static bool thread_put_frame(struct inject_thread *t)
{
	uint8_t frame[FRAME_BYTES_MAX];
	size_t bytes = inject_frame(&t->state, t->memory->restorer, frame, sizeof frame, &t->frame);
	return bytes && inject_write(t->memory, t->frame, frame, bytes);
}

/* As it was when we came. It was interrupted, and has to be told to make its call again. */
static void thread_detach(pid_t tid)
{
	(void)ptrace(PTRACE_DETACH, tid, 0, 0);
}

/* Stopped in its sleep? If not it goes on as it was. */
static bool thread_try(struct inject_thread *t, const struct thread_sleep *s, int *ret_errno)
{
	if (ptrace(PTRACE_SEIZE, t->tid, 0, PTRACE_O_TRACESYSGOOD)) {
		*ret_errno = errno;
		return false;
	}
	t->begin_ns = thread_now_ns();
	bool stopped = thread_interrupt(t->tid, false);
	bool good = stopped && thread_get_state(t->tid, &t->state);
	if (good && thread_is_interrupted(t, s)) {
		t->state.number = s->number == SYS_restart_syscall
					  ? inject_number_at(t->memory, s->pc)
					  : s->number;
		thread_make_again(t);
		if (thread_put_frame(t))
			return true;
	}
	if (good && (int64_t)t->state.regs.rax == -EINTR) {
		thread_make_again(t);
		(void)ptrace(PTRACE_SETREGS, t->tid, 0, &t->state.regs);
	}
	thread_detach(t->tid);
	return false;
}

static void thread_let_go(struct inject_thread *t)
{
	/* (one that runs is to be stopped before it can be left) */
	if (ptrace(PTRACE_DETACH, t->tid, 0, 0) && errno == ESRCH &&
		thread_interrupt(t->tid, false))
		(void)ptrace(PTRACE_DETACH, t->tid, 0, 0);
	t->stopped_ns += thread_now_ns() - t->begin_ns;
	t->gone = true;
}

/* Stopped where it computes, in no system call? */
static bool thread_stop_computing(struct inject_thread *t, struct inject_code *c)
{
	if (ptrace(PTRACE_SEIZE, t->tid, 0, PTRACE_O_TRACESYSGOOD))
		return false;
	t->begin_ns = thread_now_ns();
	if (thread_interrupt(t->tid, false) && thread_get_state(t->tid, &t->state) &&
		(int64_t)t->state.regs.orig_rax < 0 && t->state.regs.cs == 0x33 &&
		thread_has_stack(t->memory, t->state.regs.rsp) &&
		inject_code_take(c, &t->state.regs))
		return true;
	thread_let_go(t);
	return false;
}

/* It is looked at twice: first, while it goes on, files are read that tell how its stack is unwound. */
static bool thread_try_computing(struct inject_thread *t, struct inject_code *c)
{
	if (!thread_stop_computing(t, c))
		return false;
	thread_let_go(t);
	if (!inject_code_is_own(c) || !thread_stop_computing(t, c))
		return false;
	t->gone = false;
	t->state.number = UINT64_MAX;
	if (inject_code_is_own(c) && thread_put_frame(t))
		return true;
	thread_let_go(t);
	return false;
}

static enum base_status thread_refused(pid_t pid, int why, struct base_err *err)
{
	char text[16] = "";
	(void)os_read_file("/proc/sys/kernel/yama/ptrace_scope", text, sizeof text);
	if (why != EPERM)
		return base_fail_errno(err, why, "cannot stop a thread of process %d", (int)pid);
	if (*text >= '1' && *text <= '9')
		return base_fail(err, BASE_ERR_ENV,
			"this system lets nobody attach to process %d "
			"(/proc/sys/kernel/yama/ptrace_scope is %c%s)",
			(int)pid, *text,
			*text == '1' ? ": only to what one has started; as root: sysctl "
				       "kernel.yama.ptrace_scope=0"
				     : "");
	return base_fail_errno(err, why, "may not attach to process %d", (int)pid);
}

/* How those are looked for that may be led away, the best first. */
enum thread_search { SEARCH_ASLEEP, SEARCH_DELICATE, SEARCH_COMPUTING };

static bool thread_try_any(
	struct inject_thread *t, enum thread_search how, struct inject_code *c, int *ret_errno)
{
	struct thread_sleep s;
	if (thread_sleeps(t->memory->pid, t->tid, &s))
		return thread_is_safe(t->memory, &s) &&
		       (how >= SEARCH_DELICATE || !inject_is_delicate_call(s.number)) &&
		       thread_try(t, &s, ret_errno);
	return how >= SEARCH_COMPUTING && thread_try_computing(t, c);
}

static enum base_status thread_search(struct inject_thread *t, const struct inject_memory *m,
	struct inject_code *c, struct base_err *err)
{
	uint64_t begin_ns = thread_now_ns();
	pid_t tid[TASKS_MAX];
	int why = 0;
	enum thread_search how = SEARCH_ASLEEP;
	do {
		size_t nr = os_list_tasks(m->pid, tid, TASKS_MAX);
		if (!nr)
			return base_fail(err, BASE_ERR_ENV, "process %d has ended", (int)m->pid);
		for (size_t i = 0; i < nr; i++) {
			uint64_t stopped_ns = t->stopped_ns;
			*t = (struct inject_thread){
				.memory = m, .tid = tid[i], .stopped_ns = stopped_ns};
			if (thread_try_any(t, how, c, &why))
				return BASE_OK;
			if (why && why != ESRCH)
				return thread_refused(m->pid, why, err);
		}
		how = thread_now_ns() - begin_ns < COMPUTING_NS ? SEARCH_DELICATE
								: SEARCH_COMPUTING;
		thread_nap(SEARCH_NAP_NS);
	} while (thread_now_ns() - begin_ns < SEARCH_NS);
	return base_fail(err, BASE_ERR_ENV,
		"within 2 s no thread of process %d was where another one can be begun: asleep in "
		"a "
		"read, poll, sleep or wait, or in code of its own. Try again, or start the program "
		"with longpole record",
		(int)m->pid);
}

enum base_status inject_thread_stop(
	struct inject_thread *t, const struct inject_memory *m, struct base_err *err)
{
	struct inject_code c;
	enum base_status status =
		inject_code_init(&c, m)
			? thread_search(t, m, &c, err)
			: base_fail(err, BASE_ERR_NOMEM, "no memory to look into a process");
	inject_code_fini(&c);
	return status;
}

/* ---- led somewhere else ----------------------------------------------------------------------- */

static bool thread_next_syscall_stop(pid_t tid)
{
	int status;
	long signal = 0;
	do {
		if (ptrace(PTRACE_SYSCALL, tid, 0, signal) || !thread_wait(tid, &status))
			return false;
		signal = thread_signal_of(status);
	} while (WSTOPSIG(status) != SYSCALL_STOP);
	return true;
}

/* Until it is about to return through the frame. */
static bool thread_run(struct inject_thread *t)
{
	struct user_regs_struct r;
	bool is_end = false;
	for (unsigned i = 0; i < MANY_SYSCALLS; i++, is_end = !is_end) {
		if (!thread_next_syscall_stop(t->tid) || ptrace(PTRACE_GETREGS, t->tid, 0, &r))
			return false;
		if (!is_end && r.orig_rax == SYS_rt_sigreturn && r.rsp == t->frame + 8)
			return true;
	}
	return false;
}

/* Only the kernel knows how much is left of such a sleep: its call must not be made anew, as the
 * frame would have it, but go on. (The time that a futex is waited for is an absolute one.) */
static bool thread_sleeps_on(const struct inject_thread *t)
{
	enum { RESTART_BLOCK = -516 };
	return (int64_t)t->state.regs.rax == RESTART_BLOCK && t->state.regs.orig_rax != SYS_futex;
}

/* It returns by itself, through the frame, or stops before that. */
enum base_status inject_thread_call(struct inject_thread *t, uint64_t function,
	const uint64_t argument[6], struct base_err *err)
{
	struct user_regs_struct r = inject_registers(&t->state, t->frame, function, argument);
	uint64_t all = UINT64_MAX;
	bool good = !ptrace(PTRACE_SETREGS, t->tid, 0, &r) &&
		    !ptrace(PTRACE_SETSIGMASK, t->tid, sizeof all, &all);
	t->led = true;
	if (good && !thread_sleeps_on(t)) {
		thread_let_go(t);
		return BASE_OK;
	}
	t->at_return = good && thread_run(t);
	if (t->at_return)
		return BASE_OK;
	thread_let_go(t);
	return base_fail(err, BASE_ERR_ENV,
		"thread %d of process %d did not come back from what it was led to", (int)t->tid,
		(int)t->memory->pid);
}

/* (By its stops at system calls: a single step that is under way when we are killed ends the
 * program.) */
enum base_status inject_thread_syscall(
	struct inject_thread *t, long number, const uint64_t argument[6], struct base_err *err)
{
	struct user_regs_struct r =
		inject_registers(&t->state, t->frame, t->memory->syscaller, argument);
	uint64_t all = UINT64_MAX;
	r.rax = (uint64_t)number;
	t->led = true;
	if (!ptrace(PTRACE_SETREGS, t->tid, 0, &r) &&
		!ptrace(PTRACE_SETSIGMASK, t->tid, sizeof all, &all) &&
		thread_next_syscall_stop(t->tid) && thread_next_syscall_stop(t->tid) &&
		!ptrace(PTRACE_GETREGS, t->tid, 0, &r) && r.orig_rax == (uint64_t)number) {
		t->result = (int64_t)r.rax;
		return BASE_OK;
	}
	thread_let_go(t);
	return base_fail(err, BASE_ERR_ENV,
		"thread %d of process %d did not make a call of the kernel that it was led to",
		(int)t->tid, (int)t->memory->pid);
}

/* Instead of the return through the frame: the kernel itself is to make an interrupted call again,
 * which knows how much of a sleep is left. */
static bool thread_restore(struct inject_thread *t)
{
	struct user_regs_struct r;
	struct iovec vector = {t->state.vector, t->state.vector_bytes};
	if (t->led) {
		if (ptrace(PTRACE_GETREGS, t->tid, 0, &r))
			return false;
		r.orig_rax = UINT64_MAX; /* that of rt_sigreturn(), which is not made then */
		r.rip = t->memory->restorer;
		r.rsp = t->frame + 8;
		if (ptrace(PTRACE_SETREGS, t->tid, 0, &r) || !thread_interrupt(t->tid, true))
			return false;
		if (ptrace(PTRACE_GETREGS, t->tid, 0, &r) || r.rip != t->memory->restorer)
			return false;
	}
	return !ptrace(PTRACE_SETREGSET, t->tid, (void *)NT_X86_XSTATE, &vector) &&
	       !ptrace(PTRACE_SETSIGMASK, t->tid, sizeof t->state.blocked, &t->state.blocked) &&
	       !ptrace(PTRACE_SETREGS, t->tid, 0, &t->state.regs);
}

void inject_thread_go(struct inject_thread *t)
{
	if (t->gone)
		return;
	(void)thread_restore(t);
	thread_let_go(t);
}
