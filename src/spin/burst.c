/* SPDX-License-Identifier: Apache-2.0 */
/* burst.c - stopping one thread, some dozens of single steps, letting it go. */
#include "spin/burst.h"
#include "os/proc.h"
#include "os/clock.h"

#include "spin/decode.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	RUB_ENTRIES = 512,
	XSTATE_BYTES = 16384, /* AMX included */
	CHUNK_BYTES = SPIN_VALUE_WORDS * 8,
	DECODED_MAX = 256, /* instructions of a burst that are kept */
	CHANGES_MAX = 3,   /* of memory: what works changes some soon */
	OWN_STACK_BYTES = 65536,
	RED_ZONE_BYTES = 128,
	POLLED_MAX = 16,
	/* registers' numbers: 0 to 15 are the general ones */
	REG_FLAGS = 16,
	REG_FS,
	REG_GS,
	REG_XSTATE = 32, /* and on: 64 bytes each */
	FLAG_TRAP = 0x100,
	FLAG_RESUME = 0x10000,
	NS_PER_S = 1000000000,
};

struct spin_stepper {
	struct spin_detector detector;
	struct spin_phase phase;
	void *tables;
	struct {
		uint64_t pc;
		struct spin_instruction i;
		bool known;
	} decoded[DECODED_MAX];
	/* registers at the last BCT */
	struct user_regs_struct regs;
	uint8_t xstate[2][XSTATE_BYTES];
	size_t xstate_bytes;
	unsigned now; /* which of the two is newer */
	bool known;
	uint64_t changes; /* of memory, in this burst */
	struct spin_word polled[POLLED_MAX];
	uint32_t nr_polled;
	bool polled_more, yielded;
};

struct spin_stepper *spin_stepper_new(void)
{
	struct spin_stepper *s = base_alloc(sizeof *s);
	void *tables = base_alloc(spin_detector_size_bytes(SPIN_SDT_DEFAULT, RUB_ENTRIES));
	if (!s || !tables) {
		base_free(s);
		base_free(tables);
		return NULL;
	}
	s->tables = tables;
	return s;
}

void spin_stepper_free(struct spin_stepper *s)
{
	if (s)
		base_free(s->tables);
	base_free(s);
}

/* ---- what /proc says ------------------------------------------------------------------------- */

bool spin_is_running(pid_t pid, pid_t tid)
{
	char text[512];
	struct os_task_stat stat;
	return os_proc_read_task(pid, tid, "stat", text, sizeof text) > 0 &&
	       os_parse_stat(text, &stat) && stat.state == 'R';
}

static uint64_t mask_in(const char *status, const char *key)
{
	uint64_t mask = 0;
	(void)os_parse_field(status, key, 16, &mask);
	return mask;
}

/* NULL: it can be stepped. */
static const char *why_not(pid_t pid, pid_t tid)
{
	char text[4096];
	uint64_t tracer;
	const uint64_t trap = UINT64_C(1) << (SIGTRAP - 1);
	if (os_proc_read_task(pid, tid, "status", text, sizeof text) <= 0)
		return "it has ended";
	if (os_parse_field(text, "TracerPid", 10, &tracer) && tracer)
		return "another process traces it";
	if (mask_in(text, "SigIgn") & trap)
		return "it ignores SIGTRAP, and a single step would end that";
	if ((mask_in(text, "SigPnd") | mask_in(text, "ShdPnd")) & trap)
		return "a SIGTRAP is pending";
	return NULL;
}

/* ---- stopping and letting go ----------------------------------------------------------------- */

static bool burst_give_up(struct spin_burst *ret, enum spin_burst_verdict v, const char *why)
{
	ret->verdict = v;
	ret->why = why;
	return false;
}

static bool wait_stop(pid_t tid, int *ret_status, struct spin_burst *ret)
{
	pid_t got;
	do
		got = waitpid(tid, ret_status, __WALL);
	while (got < 0 && errno == EINTR);
	if (got == tid && WIFSTOPPED(*ret_status))
		return true;
	ret->ended = got == tid;
	ret->end_status = *ret_status;
	return false;
}

/* Calls that end with EINTR when somebody stops them, and need not. */
static bool ends_early(unsigned long long number)
{
	static const unsigned short call[] = {SYS_epoll_wait, SYS_epoll_pwait, SYS_semop,
		SYS_semtimedop, SYS_rt_sigtimedwait, SYS_io_getevents, SYS_recvfrom, SYS_recvmsg,
		SYS_sendto, SYS_sendmsg, SYS_accept, SYS_accept4, SYS_connect};
	for (size_t i = 0; i < BASE_COUNT(call); i++)
		if (call[i] == number)
			return true;
	return false;
}

/* In the kernel: a call that we cut short is begun again. */
static bool was_in_kernel(pid_t tid, struct user_regs_struct *regs)
{
	enum { RESTARTNOHAND = -514, RESTART_LAST = -516, RESTART_FIRST = -512 };
	long long result = (long long)regs->rax;
	if ((long long)regs->orig_rax < 0)
		return false;
	if (result == -EINTR && ends_early(regs->orig_rax)) {
		regs->rax = (unsigned long long)RESTARTNOHAND;
		ptrace(PTRACE_SETREGS, tid, NULL, regs);
		return true;
	}
	return result == -EINTR || (result >= RESTART_LAST && result <= RESTART_FIRST);
}

static bool unblock_trap(struct spin_stop *stop)
{
	const uint64_t trap = UINT64_C(1) << (SIGTRAP - 1);
	if (ptrace(PTRACE_GETSIGMASK, stop->tid, (void *)sizeof stop->mask, &stop->mask))
		return false;
	if (!(stop->mask & trap))
		return true;
	uint64_t mask = stop->mask & ~trap;
	stop->mask_changed = !ptrace(PTRACE_SETSIGMASK, stop->tid, (void *)sizeof mask, &mask);
	return stop->mask_changed;
}

bool spin_ask(pid_t pid, pid_t tid, struct spin_stop *stop, struct spin_burst *ret)
{
	*ret = (struct spin_burst){0};
	*stop = (struct spin_stop){
		.pid = pid, .tid = tid, .stopped_at_ns = os_time_ns(CLOCK_MONOTONIC)};
	const char *why = why_not(pid, tid);
	if (why)
		return burst_give_up(ret, SPIN_REFUSED, why);
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return errno == ESRCH ? burst_give_up(ret, SPIN_GONE, "it has ended")
				      : burst_give_up(ret, SPIN_REFUSED, "ptrace is refused");
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL); /* (if it fails, the thread ends) */
	return true;
}

bool spin_await(struct spin_stop *stop, struct spin_burst *ret)
{
	int status;
	*ret = (struct spin_burst){0};
	if (!wait_stop(stop->tid, &status, ret)) {
		spin_let_go(stop);
		return burst_give_up(ret, SPIN_GONE, "it has ended");
	}
	if (status >> 16 != PTRACE_EVENT_STOP) { /* a signal was first: it gets it */
		stop->signal = WSTOPSIG(status);
		spin_let_go(stop);
		return burst_give_up(ret, SPIN_KERNEL, "a signal came");
	}
	if (WSTOPSIG(status) != SIGTRAP) { /* stopped by job control */
		spin_let_go(stop);
		return burst_give_up(ret, SPIN_KERNEL, "it is stopped");
	}
	return true;
}

bool spin_stop(pid_t pid, pid_t tid, struct spin_stop *stop, struct spin_burst *ret)
{
	return spin_ask(pid, tid, stop, ret) && spin_await(stop, ret);
}

/* As it was before the burst: its mask; and no trap flag, which would stay if we died while it is
 * held. It comes to a stop again before it runs an instruction. */
static void burst_settle(struct spin_stop *stop, struct spin_burst *ret)
{
	int status;
	if (stop->mask_changed)
		ptrace(PTRACE_SETSIGMASK, stop->tid, (void *)sizeof stop->mask, &stop->mask);
	stop->mask_changed = false;
	if (!ret->steps || ret->verdict == SPIN_GONE)
		return;
	ptrace(PTRACE_INTERRUPT, stop->tid, NULL, NULL);
	if (ptrace(PTRACE_CONT, stop->tid, NULL, (void *)(uintptr_t)stop->signal))
		return;
	stop->signal = 0;
	if (!wait_stop(stop->tid, &status, ret))
		burst_give_up(ret, SPIN_GONE, "it has ended");
	else if (!(status >> 16)) {
		stop->signal = WSTOPSIG(status);
		burst_give_up(ret, SPIN_KERNEL, "a signal came");
	}
}

/* A thread that was killed while it was stopped is ours to reap: its process does not end before.
 */
static void burst_reap(struct spin_stop *stop)
{
	enum { TRIES = 200 };
	const struct timespec ms = {.tv_nsec = 1000000};
	for (int i = 0; i < TRIES; i++) {
		int status;
		pid_t got = waitpid(stop->tid, &status, __WALL | WNOHANG);
		if (got == stop->tid && !WIFSTOPPED(status)) {
			stop->ended = true;
			stop->end_status = status;
		}
		if (stop->ended || (got < 0 && errno == ECHILD))
			return;
		nanosleep(&ms, NULL);
	}
}

void spin_let_go(struct spin_stop *stop)
{
	if (ptrace(PTRACE_DETACH, stop->tid, NULL, (void *)(uintptr_t)stop->signal))
		burst_reap(stop);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool burst_read_memory(pid_t pid, uint64_t address, void *to, size_t size)
{
	return os_read_memory(pid, address, to, size) == (ssize_t)size;
}

/* Reads a word of at most 8 bytes of the process. False: it is not there. */
static bool peek(pid_t pid, const struct spin_word *w, uint64_t *ret_value)
{
	*ret_value = 0;
	return burst_read_memory(pid, w->address, ret_value, w->size_bytes < 8 ? w->size_bytes : 8);
}

static const struct spin_instruction *burst_decode_at(
	struct spin_stepper *s, pid_t pid, uint64_t pc)
{
	uint8_t code[SPIN_CODE_MAX];
	size_t at = (pc ^ pc >> 8) % DECODED_MAX;
	if (s->decoded[at].known && s->decoded[at].pc == pc)
		return &s->decoded[at].i;
	/* (an instruction may end where the mapping does) */
	size_t size = sizeof code;
	while (size && !burst_read_memory(pid, pc, code, size))
		size--;
	s->decoded[at].known = size && spin_decode(code, size, &s->decoded[at].i);
	s->decoded[at].pc = pc;
	return s->decoded[at].known ? &s->decoded[at].i : NULL;
}

static bool burst_is_own_stack(uint64_t address, uint64_t rsp)
{
	return address - (rsp - RED_ZONE_BYTES) < OWN_STACK_BYTES;
}

static void burst_note_load(struct spin_stepper *s, uint64_t address, uint32_t size, uint64_t rsp)
{
	bool own = burst_is_own_stack(address, rsp);
	if (!own)
		spin_phase_load(&s->phase, address);
	for (uint32_t i = 0; i < s->nr_polled; i++)
		if (s->polled[i].address == address)
			return;
	if (s->nr_polled == POLLED_MAX) {
		s->polled_more = true;
		return;
	}
	s->polled[s->nr_polled++] =
		(struct spin_word){.address = address, .size_bytes = size, .own_stack = own};
}

struct stores { /* of one instruction, before it runs */
	unsigned nr;
	struct {
		uint64_t address;
		uint16_t size;
		uint8_t old[SPIN_ACCESS_MAX];
		bool read;
	} store[SPIN_ACCESSES];
};

static void burst_note_accesses(struct spin_stepper *s, pid_t pid, const struct spin_instruction *i,
	const struct user_regs_struct *regs, struct stores *stores)
{
	stores->nr = 0;
	for (unsigned k = 0; k < i->nr_accesses; k++) {
		const struct spin_access *a = &i->access[k];
		uint64_t address = spin_address(i, a, regs);
		if (a->reads)
			burst_note_load(s, address, a->size_bytes, regs->rsp);
		if (!a->writes)
			continue;
		stores->store[stores->nr].address = address;
		stores->store[stores->nr].size = a->size_bytes;
		stores->store[stores->nr].read = burst_read_memory(
			pid, address, stores->store[stores->nr].old, a->size_bytes);
		stores->nr++;
	}
}

static void note_changes(struct spin_stepper *s, pid_t pid, const struct spin_instruction *i,
	const struct stores *stores, uint64_t rsp)
{
	bool changed = i->opaque, shared = i->opaque;
	for (unsigned k = 0; k < stores->nr; k++) {
		uint8_t now[SPIN_ACCESS_MAX];
		uint16_t size = stores->store[k].size;
		if (stores->store[k].read &&
			burst_read_memory(pid, stores->store[k].address, now, size) &&
			!memcmp(now, stores->store[k].old, size))
			continue;
		changed = true;
		shared |= !burst_is_own_stack(stores->store[k].address, rsp);
	}
	if (changed)
		spin_changed(&s->detector);
	if (shared) {
		spin_phase_other(&s->phase);
		s->changes++;
	}
}

/* ---- registers ------------------------------------------------------------------------------- */

static void burst_tell(struct spin_stepper *s, unsigned reg, uint64_t before, uint64_t after)
{
	spin_register(&s->detector, reg, 1, &before, &after);
	if (reg < REG_FLAGS)
		spin_phase_register(&s->phase, reg, before, after);
}

static size_t read_xstate(struct spin_stepper *s, pid_t tid)
{
	struct iovec v = {s->xstate[s->now], XSTATE_BYTES};
	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &v))
		return 0;
	return v.iov_len / CHUNK_BYTES * CHUNK_BYTES;
}

/* False: vector registers cannot be read, so nothing can be proved. */
static bool burst_tell_registers(
	struct spin_stepper *s, pid_t tid, const struct user_regs_struct *regs)
{
	const unsigned long long flags = ~(unsigned long long)(FLAG_TRAP | FLAG_RESUME);
	s->now = !s->now;
	size_t size = read_xstate(s, tid);
	if (!size || (s->known && size != s->xstate_bytes))
		return false;
	s->xstate_bytes = size;
	if (s->known) {
		for (unsigned i = 0; i < 16; i++)
			burst_tell(s, i, spin_decoded_register(&s->regs, i),
				spin_decoded_register(regs, i));
		burst_tell(s, REG_FLAGS, s->regs.eflags & flags, regs->eflags & flags);
		burst_tell(s, REG_FS, s->regs.fs_base, regs->fs_base);
		burst_tell(s, REG_GS, s->regs.gs_base, regs->gs_base);
		for (size_t at = 0; at < size; at += CHUNK_BYTES) {
			uint64_t before[SPIN_VALUE_WORDS], after[SPIN_VALUE_WORDS];
			memcpy(before, s->xstate[!s->now] + at, CHUNK_BYTES);
			memcpy(after, s->xstate[s->now] + at, CHUNK_BYTES);
			if (!memcmp(before, after, CHUNK_BYTES))
				continue;
			spin_register(&s->detector, REG_XSTATE + (uint32_t)(at / CHUNK_BYTES),
				SPIN_VALUE_WORDS, before, after);
			spin_phase_other(&s->phase);
		}
	}
	s->regs = *regs;
	s->known = true;
	return true;
}

/* ---- the burst ------------------------------------------------------------------------------- */

static void keep_words(struct spin_stepper *s, const struct spin_stop *stop, struct spin_burst *ret)
{
	bool others = false;
	for (uint32_t i = 0; i < s->nr_polled; i++)
		others |= !s->polled[i].own_stack;
	for (uint32_t i = 0; i < s->nr_polled; i++) {
		if (others && s->polled[i].own_stack)
			continue;
		if (ret->nr_words == SPIN_WORDS) {
			ret->more_words = true;
			break;
		}
		struct spin_word *w = &ret->word[ret->nr_words];
		*w = s->polled[i];
		ret->nr_words += peek(stop->pid, w, &w->value);
	}
	ret->more_words |= s->polled_more;
}

/* One instruction. False: the burst has ended, ret->verdict says how. */
static bool step_once(struct spin_stop *stop, struct user_regs_struct *regs, struct spin_burst *ret)
{
	int status;
	if (ptrace(PTRACE_SINGLESTEP, stop->tid, NULL, NULL) || !wait_stop(stop->tid, &status, ret))
		return burst_give_up(ret, SPIN_GONE, "it has ended");
	if (status >> 16 || WSTOPSIG(status) != SIGTRAP) {
		stop->signal = status >> 16 ? 0 : WSTOPSIG(status);
		return burst_give_up(ret, SPIN_KERNEL, "a signal came");
	}
	ret->steps++;
	if (ptrace(PTRACE_GETREGS, stop->tid, NULL, regs))
		return burst_give_up(ret, SPIN_GONE, "it has ended");
	return true;
}

/* Over sched_yield(): the trap flag went into r11. */
static bool step_yield(struct spin_stepper *s, struct spin_stop *stop,
	struct user_regs_struct *regs, struct spin_burst *ret)
{
	if (regs->rax != SYS_sched_yield)
		return burst_give_up(ret, SPIN_KERNEL, "it calls the kernel");
	s->yielded = true;
	if (!step_once(stop, regs, ret))
		return false;
	if (regs->r11 & FLAG_TRAP) {
		regs->r11 &= ~(unsigned long long)FLAG_TRAP;
		ptrace(PTRACE_SETREGS, stop->tid, NULL, regs);
	}
	return true;
}

/* A backward branch was taken. False: the verdict is known. */
static bool branched(struct spin_stepper *s, struct spin_stop *stop, uint64_t pc,
	const struct user_regs_struct *regs, const struct spin_limits *limits,
	struct spin_burst *ret)
{
	if (!burst_tell_registers(s, stop->tid, regs))
		return burst_give_up(ret, SPIN_REFUSED, "its vector registers cannot be read");
	struct spin_verdict v = spin_branch(&s->detector, pc, 0);
	bool counts = spin_phase_branch(&s->phase, pc);
	bool spins = v.spinning && v.iterations >= limits->iterations;
	if (spins || (counts && !v.spinning)) {
		ret->verdict = spins ? SPIN_SPINS : SPIN_COUNTS;
		ret->branch = pc;
		ret->begins = regs->rip;
		ret->iterations = v.iterations;
		ret->loop_instructions = v.instructions;
		ret->yields = s->yielded;
		keep_words(s, stop, ret);
		return false;
	}
	s->nr_polled = 0;
	s->polled_more = s->yielded = false;
	return true;
}

static void reset(struct spin_stepper *s)
{
	s->phase = (struct spin_phase){0};
	memset(s->tables, 0, spin_detector_size_bytes(SPIN_SDT_DEFAULT, RUB_ENTRIES));
	spin_detector_init(&s->detector, s->tables, SPIN_SDT_DEFAULT, RUB_ENTRIES);
	memset(s->decoded, 0, sizeof s->decoded);
	s->known = s->polled_more = s->yielded = false;
	s->nr_polled = 0;
	s->changes = 0;
}

/* False: there is nothing to step. */
static bool may_step(struct spin_stop *stop, struct user_regs_struct *regs, struct spin_burst *ret)
{
	enum { CODE_64_BIT = 0x33 };
	if (ptrace(PTRACE_GETREGS, stop->tid, NULL, regs))
		return burst_give_up(ret, SPIN_GONE, "it has ended");
	ret->pc = regs->rip;
	if (was_in_kernel(stop->tid, regs))
		return burst_give_up(ret, SPIN_KERNEL, "it was in the kernel");
	if (regs->cs != CODE_64_BIT)
		return burst_give_up(ret, SPIN_REFUSED, "it runs 32-bit code");
	if (!unblock_trap(stop))
		return burst_give_up(ret, SPIN_REFUSED, "its signal mask cannot be read or set");
	return true;
}

bool spin_glance(struct spin_stop *stop, uint64_t *ret_pc, uint64_t *ret_sum)
{
	struct user_regs_struct r;
	if (ptrace(PTRACE_GETREGS, stop->tid, NULL, &r) || was_in_kernel(stop->tid, &r))
		return false;
	const uint64_t kept[] = {r.rsp, r.rbx, r.rbp, r.r12, r.r13, r.r14, r.r15};
	*ret_pc = r.rip;
	*ret_sum = 0;
	for (size_t i = 0; i < BASE_COUNT(kept); i++)
		*ret_sum = base_hash_u64(*ret_sum + kept[i]) + i;
	return true;
}

static bool has_time(const struct spin_stop *stop, const struct spin_limits *limits)
{
	if (!limits->stop_ns)
		return true;
	const uint64_t now = limits->clock_ns ? limits->clock_ns(limits->clock_ctx)
					      : os_time_ns(CLOCK_MONOTONIC);
	return now - stop->stopped_at_ns < limits->stop_ns;
}

static void run_steps(struct spin_stepper *s, struct spin_stop *stop, struct user_regs_struct *regs,
	const struct spin_limits *limits, struct spin_burst *ret)
{
	struct stores stores;
	while (ret->steps < limits->steps && s->changes < CHANGES_MAX) {
		const uint64_t pc = regs->rip;
		if (!has_time(stop, limits)) {
			ret->verdict = SPIN_CUT;
			break;
		}
		const struct spin_instruction *i = burst_decode_at(s, stop->pid, pc);
		if (!i || i->unfit)
			break;
		if (i->calls_kernel) {
			if (!step_yield(s, stop, regs, ret))
				break;
			spin_commit(&s->detector, 1);
			continue;
		}
		burst_note_accesses(s, stop->pid, i, regs, &stores);
		if (!step_once(stop, regs, ret))
			break;
		/* a string instruction traps after each turn, and is one instruction */
		spin_commit(&s->detector, i->jump || regs->rip != pc);
		note_changes(s, stop->pid, i, &stores, regs->rsp);
		if (i->jump && regs->rip <= pc && !branched(s, stop, pc, regs, limits, ret))
			break;
	}
}

void spin_step(struct spin_stepper *s, struct spin_stop *stop, const struct spin_limits *limits,
	struct spin_burst *ret)
{
	struct user_regs_struct regs;
	sigset_t all, before;
	*ret = (struct spin_burst){.verdict = SPIN_WORKS};
	reset(s);
	/* Were we to die within the burst, the thread would, too. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	if (may_step(stop, &regs, ret))
		run_steps(s, stop, &regs, limits, ret);
	burst_settle(stop, ret);
	sigprocmask(SIG_SETMASK, &before, NULL);
	ret->stopped_ns = os_time_ns(CLOCK_MONOTONIC) - stop->stopped_at_ns;
}

void spin_burst(struct spin_stepper *s, pid_t pid, pid_t tid, const struct spin_limits *limits,
	struct spin_burst *ret)
{
	struct spin_stop stop;
	if (!spin_stop(pid, tid, &stop, ret))
		return;
	spin_step(s, &stop, limits, ret);
	spin_let_go(&stop);
	if (stop.ended) {
		ret->ended = true;
		ret->end_status = stop.end_status;
	}
	ret->stopped_ns = os_time_ns(CLOCK_MONOTONIC) - stop.stopped_at_ns;
}
