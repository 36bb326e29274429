/* SPDX-License-Identifier: Apache-2.0 */
/* spin.c - is a running thread in a loop that only another thread can end, and of what words? The
 * detector is spin/detect.h; its source of events is a copy that is stepped. */
#include "deadlock/ahead/spin.h"

#include "spin/detect.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum {
	STEPS_MAX = 400, /* a loop that spins is short */
	ITERATIONS = 2,  /* that spun, one after the other: a proof */
	WORDS_MAX = 8,   /* that it reads */
	READS_MAX = STEPS_MAX,
	STACK_BELOW = 256, /* bytes around rsp that are its own frame */
	STACK_ABOVE = 4096,
	RUB_ENTRIES = 256,
	CHUNK_BYTES = SPIN_VALUE_WORDS * 8,
	/* numbers of registers, as spin/detect.h has them; words of the own stack come behind */
	REGISTER_XSTATE = 64,
};

#define REGISTER_STACK UINT32_C(0x80000000)

/* ---- registers of a running thread ----------------------------------------------------------- */

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

/* ---- one step -------------------------------------------------------------------------------- */

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

/* ---- the proof ------------------------------------------------------------------------------- */

/*
 * The copy's single steps, told to spin/detect.h. Words of its own stack, which nobody else looks
 * at, are told as registers are: a call that writes a return address and another one over it is
 * back where it was when the loop comes round.
 */
struct proof {
	struct spin_detector detector;
	void *tables;
	const struct deadlock_process *process;
	struct user_regs_struct regs; /* at the last branch */
	uint8_t *xstate[2];           /* the same; and now */
	size_t xstate_bytes;
	struct { /* words that others may write */
		struct deadlock_operand operand;
		unsigned step;
	} read[READS_MAX];
	unsigned nr_reads, step;
	bool has_ended; /* it crashed, or was killed */
};

static void close_proof(struct proof *p)
{
	if (!p)
		return;
	base_free(p->tables);
	base_free(p->xstate[0]);
	base_free(p);
}

/* NULL: no memory, or the vector registers cannot be read. */
static struct proof *open_proof(
	struct deadlock_ghost *g, const struct deadlock_process *process, bool *ret_no_memory)
{
	struct proof *p = base_alloc(sizeof *p);
	if (p) {
		p->tables = base_alloc(spin_detector_size_bytes(SPIN_SDT_DEFAULT, RUB_ENTRIES));
		p->xstate[0] = base_alloc((size_t)2 * DEADLOCK_XSTATE_MAX_BYTES);
		p->xstate[1] = p->xstate[0] ? p->xstate[0] + DEADLOCK_XSTATE_MAX_BYTES : NULL;
		p->process = process;
		p->regs = *deadlock_ghost_registers(g);
	}
	*ret_no_memory = !p || !p->tables || !p->xstate[0];
	if (!*ret_no_memory &&
		spin_detector_init(&p->detector, p->tables, SPIN_SDT_DEFAULT, RUB_ENTRIES))
		p->xstate_bytes =
			deadlock_ghost_get_xstate(g, p->xstate[0], DEADLOCK_XSTATE_MAX_BYTES);
	if (p && p->xstate_bytes)
		return p;
	close_proof(p);
	return NULL;
}

static void tell(struct proof *p, uint32_t number, uint64_t before, uint64_t after)
{
	spin_register(&p->detector, number, 1, &before, &after);
}

/* All registers, since the last branch. False: they cannot be read. */
static bool tell_registers(struct deadlock_ghost *g, struct proof *p)
{
	enum {
		FLAGS = 0xcd5,
		ORIG_AX = 15,
		EFLAGS = 18
	}; /* carry ... overflow: not the trap flag */
	const struct user_regs_struct now = *deadlock_ghost_registers(g);
	uint64_t before[sizeof now / 8], after[sizeof now / 8];
	memcpy(before, &p->regs, sizeof before);
	memcpy(after, &now, sizeof after);
	for (uint32_t i = 0; i < BASE_COUNT(before); i++) {
		const uint64_t mask = i == ORIG_AX ? 0 : i == EFLAGS ? FLAGS : UINT64_MAX;
		if (&before[i] != &before[offsetof(struct user_regs_struct, rip) / 8])
			tell(p, i, before[i] & mask, after[i] & mask);
	}
	p->regs = now;
	if (deadlock_ghost_get_xstate(g, p->xstate[1], DEADLOCK_XSTATE_MAX_BYTES) !=
		p->xstate_bytes)
		return false;
	for (size_t at = 0; at < p->xstate_bytes; at += CHUNK_BYTES) {
		uint64_t old[SPIN_VALUE_WORDS] = {0}, new[SPIN_VALUE_WORDS] = {0};
		const size_t rest = p->xstate_bytes - at;
		const size_t bytes = rest < CHUNK_BYTES ? rest : CHUNK_BYTES;
		memcpy(old, p->xstate[0] + at, bytes);
		memcpy(new, p->xstate[1] + at, bytes);
		spin_register(&p->detector, REGISTER_XSTATE + (uint32_t)(at / CHUNK_BYTES),
			SPIN_VALUE_WORDS, old, new);
	}
	memcpy(p->xstate[0], p->xstate[1], p->xstate_bytes);
	return true;
}

static uint64_t spin_value_of(struct deadlock_ghost *g, const struct deadlock_operand *o)
{
	uint64_t value = 0;
	(void)deadlock_ghost_read(g, o->address, &value, o->size_bytes);
	return value;
}

static bool spin_is_own_stack(const struct user_regs_struct *r, uint64_t address)
{
	return address + STACK_BELOW >= r->rsp && address < r->rsp + STACK_ABOVE;
}

static bool spin_is_writable(const struct deadlock_process *p, uint64_t address)
{
	for (size_t i = 0; i < p->nr_regions; i++)
		if (address >= p->region[i].start && address < p->region[i].end)
			return p->region[i].writable || p->region[i].shared;
	return false;
}

static void note_reads(
	struct proof *p, const struct deadlock_instruction *i, const struct user_regs_struct *r)
{
	for (unsigned n = 0; n < i->nr_operands && p->nr_reads < READS_MAX; n++) {
		const struct deadlock_operand *o = &i->operand[n];
		if (!o->is_read || spin_is_own_stack(r, o->address) ||
			!spin_is_writable(p->process, o->address))
			continue;
		p->read[p->nr_reads].operand = *o;
		p->read[p->nr_reads++].step = p->step;
	}
}

static void tell_store(struct proof *p, const struct deadlock_operand *o, uint64_t before,
	uint64_t after, bool is_own)
{
	if (before == after && o->size_bytes)
		return;
	if (is_own && o->size_bytes == 8 && o->address % 8 == 0)
		tell(p, REGISTER_STACK | (uint32_t)(o->address / 8), before, after);
	else
		spin_changed(&p->detector);
}

/* One instruction, and what it did to memory. */
static enum step step_and_tell(
	struct deadlock_ghost *g, struct proof *p, const struct deadlock_instruction *i)
{
	const struct user_regs_struct r = *deadlock_ghost_registers(g);
	uint64_t before[DEADLOCK_OPERANDS_MAX] = {0};
	note_reads(p, i, &r);
	for (unsigned n = 0; n < i->nr_operands; n++)
		before[n] = i->operand[n].is_written ? spin_value_of(g, &i->operand[n]) : 0;
	const enum step result = step(g);
	if (result != STEP_DONE)
		return result;
	spin_commit(&p->detector, 1);
	if (i->is_opaque)
		spin_changed(&p->detector);
	for (unsigned n = 0; n < i->nr_operands; n++)
		if (i->operand[n].is_written)
			tell_store(p, &i->operand[n], before[n], spin_value_of(g, &i->operand[n]),
				spin_is_own_stack(&r, i->operand[n].address));
	return STEP_DONE;
}

/* *ret_since: the step with which the first iteration that spun began. */
static enum deadlock_spin_result watch_steps(
	struct deadlock_ghost *g, struct proof *p, unsigned *ret_since)
{
	for (p->step = 1; p->step <= STEPS_MAX; p->step++) {
		const uint64_t pc = deadlock_ghost_registers(g)->rip;
		struct deadlock_instruction i;
		const enum step last =
			deadlock_decode_next(g, &i) ? step_and_tell(g, p, &i) : STEP_END;
		p->has_ended = last == STEP_END;
		if (last != STEP_DONE)
			return DEADLOCK_SPIN_NO_LOOP;
		if (!i.is_jump || deadlock_ghost_registers(g)->rip > pc)
			continue;
		if (!tell_registers(g, p))
			return DEADLOCK_SPIN_NO_LOOP;
		const struct spin_verdict v = spin_branch(&p->detector, pc, p->step);
		if (v.spinning && v.iterations >= ITERATIONS) {
			*ret_since = (unsigned)v.since;
			return DEADLOCK_SPIN_PROVEN;
		}
	}
	return p->detector.counts.changing_stores ? DEADLOCK_SPIN_CHANGES : DEADLOCK_SPIN_NO_LOOP;
}

static void spin_add_word(struct deadlock_wait *w, const struct deadlock_operand *o)
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
	if (w->nr_keys < WORDS_MAX && o->size_bytes)
		w->key[w->nr_keys++] = key;
	else
		w->keys_cut = true;
}

enum deadlock_spin_result deadlock_spin_prove(
	struct deadlock_ghost *g, const struct deadlock_process *process, struct deadlock_wait *w)
{
	bool no_memory = false;
	unsigned since = 0;
	struct proof *p = open_proof(g, process, &no_memory);
	if (!p)
		return no_memory ? DEADLOCK_SPIN_NO_MEMORY : DEADLOCK_SPIN_NO_LOOP;
	enum deadlock_spin_result result = watch_steps(g, p, &since);
	for (unsigned i = 0; result == DEADLOCK_SPIN_PROVEN && i < p->nr_reads; i++)
		if (p->read[i].step >= since)
			spin_add_word(w, &p->read[i].operand);
	if (result == DEADLOCK_SPIN_PROVEN && !w->nr_keys && !w->keys_cut)
		result = DEADLOCK_SPIN_NO_WORD;
	close_proof(p);
	return result;
}

/* ---- the way out ----------------------------------------------------------------------------- */

bool deadlock_spin_escapes(struct deadlock_ghost *g, const struct deadlock_process *process)
{
	bool no_memory = false;
	unsigned since = 0;
	struct proof *p = open_proof(g, process, &no_memory);
	if (!p)
		return false;
	const enum deadlock_spin_result result = watch_steps(g, p, &since);
	const bool escapes = result != DEADLOCK_SPIN_PROVEN && !p->has_ended;
	close_proof(p);
	return escapes;
}

uint64_t deadlock_spin_value(uint64_t now, unsigned way, bool *ret_is_last)
{
	const uint64_t value[] = {0, 1, now + 1, now - 1, ~UINT64_C(0)};
	*ret_is_last = way + 1 >= BASE_COUNT(value);
	return value[way < BASE_COUNT(value) ? way : BASE_COUNT(value) - 1];
}
