/* SPDX-License-Identifier: Apache-2.0 */
/* spin.c - is a running thread in a loop that only another thread can end, and of what words? */
#include "deadlock/spin.h"

#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum {
	STEPS_MAX = 400,   /* a loop that spins is short */
	WORDS_MAX = 8,     /* that it reads */
	STACK_BELOW = 256, /* bytes around rsp that are its own frame */
	STACK_ABOVE = 4096,
	WRITES_MAX = 64,
};

/* ---- registers of a running thread
 * --------------------------------------------------------------- */

/* Not in a call that waits: such a thread does not spin, and the kernel restarts its call. */
static bool computes(const struct user_regs_struct *r)
{
	const int64_t result = (int64_t)r->rax;
	return (int64_t)r->orig_rax < 0 || result > -512 || result < -516;
}

bool deadlock_spin_registers(pid_t tid, struct deadlock_registers *ret, const char **why)
{
	struct deadlock_halt halt;
	memset(ret, 0, sizeof *ret);
	const enum deadlock_halted halted = deadlock_halt_begin(&halt, tid);
	*why = halted == DEADLOCK_HALTED_REFUSED ? "it may not be traced" : "it ended";
	if (halted == DEADLOCK_HALTED_REFUSED || halted == DEADLOCK_HALTED_GONE)
		return false;
	struct iovec general = {&ret->general, sizeof ret->general},
		     xstate = {ret->xstate, sizeof ret->xstate};
	const bool good = halted == DEADLOCK_HALTED &&
			  ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &general) == 0 &&
			  ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &xstate) == 0 &&
			  computes(&ret->general);
	ret->xstate_bytes = xstate.iov_len;
	ret->stopped_ns = deadlock_halt_end(&halt);
	*why = "it is in a system call";
	return good;
}

/* ---- one step
 * ------------------------------------------------------------------------------------- */

enum step { STEP_DONE, STEP_CALL, STEP_END };

/* Calls that change nothing and only pass time. */
static bool passes_time(uint64_t number)
{
	return number == SYS_sched_yield || number == SYS_nanosleep ||
	       number == SYS_clock_nanosleep || number == SYS_gettid || number == SYS_getpid;
}

static enum step step(struct deadlock_ghost *g)
{
	for (;;) {
		struct user_regs_struct *r;
		switch (deadlock_ghost_go(g, true)) {
		case DEADLOCK_STOP_TRAP:
			return STEP_DONE;
		case DEADLOCK_STOP_TICK:
			continue;
		case DEADLOCK_STOP_CALL:
			r = deadlock_ghost_registers(g);
			if (!passes_time(r->orig_rax))
				return STEP_CALL;
			r->rax = 0;
			r->rcx = r->rip; /* as the instruction does */
			r->r11 = r->eflags;
			r->orig_rax = (unsigned long long)-1;
			return STEP_DONE;
		default:
			return STEP_END;
		}
	}
}

static bool same(const struct user_regs_struct *a, const struct user_regs_struct *b)
{
	struct user_regs_struct x = *a, y = *b;
	x.orig_rax = y.orig_rax = 0;
	x.eflags &= 0xcd5; /* carry ... overflow: not the trap flag */
	y.eflags &= 0xcd5;
	return memcmp(&x, &y, sizeof x) == 0;
}

/* ---- the proof
 * ------------------------------------------------------------------------------------ */

struct proof {
	struct user_regs_struct state[STEPS_MAX];
	struct deadlock_operand write[WRITES_MAX];
	uint64_t before[WRITES_MAX];
	unsigned nr_writes;
	bool too_many;
};

/* The step after which the registers were as at `from` before; 0: they never came back. */
static unsigned find_loop(struct deadlock_ghost *g, struct proof *p, unsigned *ret_from)
{
	for (unsigned k = 0; k < STEPS_MAX; k++) {
		p->state[k] = *deadlock_ghost_registers(g);
		for (unsigned i = k; i-- > 0;)
			if (same(&p->state[i], &p->state[k])) {
				*ret_from = i;
				return k;
			}
		if (step(g) != STEP_DONE)
			return 0;
	}
	return 0;
}

static uint64_t value_of(struct deadlock_ghost *g, const struct deadlock_operand *o)
{
	uint64_t value = 0;
	(void)deadlock_ghost_read(g, o->address, &value, o->size_bytes ? o->size_bytes : 8);
	return value;
}

static bool is_own_stack(const struct user_regs_struct *r, uint64_t address)
{
	return address + STACK_BELOW >= r->rsp && address < r->rsp + STACK_ABOVE;
}

static void note_read(struct deadlock_wait *w, const struct deadlock_operand *o)
{
	const struct deadlock_key key = {
		.kind = DEADLOCK_KEY_SPIN,
		.bytes = o->size_bytes ? o->size_bytes : 8,
		.space = (uint64_t)w->thread.pid,
		.at = o->address,
	};
	for (size_t i = 0; i < w->nr_keys; i++)
		if (w->key[i].at == key.at)
			return;
	if (w->nr_keys < WORDS_MAX)
		w->key[w->nr_keys++] = key;
	else
		w->keys_cut = true;
}

/* What one round reads and writes; what it writes is remembered as it is before the round. */
static void note_operands(struct deadlock_ghost *g, struct proof *p, struct deadlock_wait *w,
	const struct deadlock_process *process)
{
	struct deadlock_instruction i;
	const struct user_regs_struct *r = deadlock_ghost_registers(g);
	if (!deadlock_decode_next(g, &i))
		return;
	for (unsigned n = 0; n < i.nr_operands; n++) {
		const struct deadlock_operand *o = &i.operand[n];
		if (o->is_written) {
			if (p->nr_writes < WRITES_MAX) {
				p->before[p->nr_writes] = value_of(g, o);
				p->write[p->nr_writes++] = *o;
			} else {
				p->too_many = true;
			}
		}
		if (o->is_read && !is_own_stack(r, o->address) &&
			deadlock_spin_is_writable(process, o->address))
			note_read(w, o);
	}
}

bool deadlock_spin_is_writable(const struct deadlock_process *p, uint64_t address)
{
	for (size_t i = 0; i < p->nr_regions; i++)
		if (address >= p->region[i].start && address < p->region[i].end)
			return p->region[i].writable || p->region[i].shared;
	return false;
}

/* One more round: the registers and all that it writes must be as they were before it. */
static bool goes_round(struct deadlock_ghost *g, struct proof *p, unsigned period,
	struct deadlock_wait *w, const struct deadlock_process *process)
{
	const struct user_regs_struct before = *deadlock_ghost_registers(g);
	uint8_t *vectors = base_alloc((size_t)2 * DEADLOCK_XSTATE_MAX_BYTES);
	if (!vectors)
		return false;
	const size_t size = deadlock_ghost_get_xstate(g, vectors, DEADLOCK_XSTATE_MAX_BYTES);
	bool good = size > 0;
	for (unsigned k = 0; good && k < period; k++) {
		note_operands(g, p, w, process);
		good = step(g) == STEP_DONE;
	}
	good = good && !p->too_many && same(&before, deadlock_ghost_registers(g)) &&
	       deadlock_ghost_get_xstate(
		       g, vectors + DEADLOCK_XSTATE_MAX_BYTES, DEADLOCK_XSTATE_MAX_BYTES) == size &&
	       memcmp(vectors, vectors + DEADLOCK_XSTATE_MAX_BYTES, size) == 0;
	/* a word written twice has its first value first */
	for (unsigned i = 0; good && i < p->nr_writes; i++) {
		bool is_first = true;
		for (unsigned n = 0; n < i; n++)
			is_first = is_first && p->write[n].address != p->write[i].address;
		good = !is_first || p->before[i] == value_of(g, &p->write[i]);
	}
	base_free(vectors);
	return good;
}

enum deadlock_spin_result deadlock_spin_prove(
	struct deadlock_ghost *g, const struct deadlock_process *process, struct deadlock_wait *w)
{
	struct proof *p = base_alloc(sizeof *p);
	unsigned from = 0;
	if (!p)
		return DEADLOCK_SPIN_NO_MEMORY;
	enum deadlock_spin_result result = DEADLOCK_SPIN_NO_LOOP;
	const unsigned to = find_loop(g, p, &from);
	if (to)
		result = goes_round(g, p, to - from, w, process) ? DEADLOCK_SPIN_PROVEN
								 : DEADLOCK_SPIN_CHANGES;
	if (result == DEADLOCK_SPIN_PROVEN && !w->nr_keys)
		result = DEADLOCK_SPIN_NO_WORD;
	base_free(p);
	return result;
}

/* ---- the way out
 * ----------------------------------------------------------------------------------- */

bool deadlock_spin_escapes(struct deadlock_ghost *g)
{
	struct proof *p = base_alloc(sizeof *p);
	unsigned from = 0;
	if (!p)
		return false;
	const unsigned again = find_loop(g, p, &from);
	base_free(p);
	return !again && deadlock_ghost_is_alive(g);
}

uint64_t deadlock_spin_value(uint64_t now, unsigned way, bool *ret_is_last)
{
	const uint64_t value[] = {0, 1, now + 1, now - 1, ~UINT64_C(0)};
	*ret_is_last = way + 1 >= BASE_COUNT(value);
	return value[way < BASE_COUNT(value) ? way : BASE_COUNT(value) - 1];
}
