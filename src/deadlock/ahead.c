/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.c - lets a copy of a waiting thread go on, and sees what it would do (seed: speculative
 * execution, 4.2.3 and 4.3.3). One ghost, used again and again; one copy at a time.
 */
#include "deadlock/emulate.h"
#include "deadlock/snapshot.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
	EVENTS_DEFAULT = 10, /* the source's */
	TIME_DEFAULT_NS = 1000000000,
	QUIET_DEFAULT_NS = 60000000,
	WHY_BYTES = 96,
	GHOSTS_MAX = 4096, /* that die, before we stop making new ones */
};

struct deadlock_ahead {
	struct deadlock_world *world;
	struct deadlock_ghost *ghost; /* NULL: none now */
	unsigned nr_ghosts;
	struct deadlock_registers registers;
	struct deadlock_copy copy;
};

static uint64_t now_ns(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static enum base_status have_ghost(struct deadlock_ahead *a, struct base_err *err)
{
	if (a->ghost && deadlock_ghost_is_alive(a->ghost))
		return BASE_OK;
	a->ghost = deadlock_ghost_free(a->ghost);
	if (a->nr_ghosts++ >= GHOSTS_MAX)
		return base_fail(err, BASE_ERR_LIMIT, "over %d copies died", GHOSTS_MAX);
	return deadlock_ghost_new(&a->ghost, err);
}

enum base_status deadlock_ahead_open(
	struct deadlock_world *w, struct deadlock_ahead **ret, struct base_err *err)
{
	struct deadlock_ahead *a = base_alloc(sizeof *a);
	*ret = NULL;
	if (!a)
		return base_fail(err, BASE_ERR_NOMEM, "running ahead");
	a->world = w;
	enum base_status status = have_ghost(a, err);
	if (status != BASE_OK) {
		base_free(a);
		return base_cause(err, status, "making copies of threads");
	}
	*ret = a;
	return BASE_OK;
}

struct deadlock_ahead *deadlock_ahead_close(struct deadlock_ahead *a)
{
	if (!a)
		return NULL;
	a->ghost = deadlock_ghost_free(a->ghost);
	base_free(a);
	return NULL;
}

/* ---- where a copy starts
 * ------------------------------------------------------------------------- */

static void cannot(struct deadlock_run *run, enum deadlock_end end, const char *why)
{
	run->end = end;
	(void)snprintf(run->why, sizeof run->why, "%s", why);
}

/* The thread's registers, from BPF when they came with the wait. */
static bool take_registers(struct deadlock_ahead *a, const struct deadlock_wait *wait,
	enum deadlock_snapshot wanted, struct deadlock_run *run)
{
	struct deadlock_registers *r = &a->registers;
	char why[WHY_BYTES] = "";
	r->stopped_ns = r->xstate_bytes = 0;
	if (wait->registers_source == DEADLOCK_REGISTERS_BPF &&
		(wanted == DEADLOCK_SNAPSHOT_AUTO || wanted == DEADLOCK_SNAPSHOT_BPF)) {
		run->snapshot = DEADLOCK_SNAPSHOT_BPF;
		r->general = wait->registers;
		r->runs = wait->thread.runs;
		return true;
	}
	if (wanted != DEADLOCK_SNAPSHOT_AUTO && wanted != DEADLOCK_SNAPSHOT_PTRACE) {
		cannot(run, DEADLOCK_END_REFUSED, "its registers were not read by BPF");
		return false;
	}
	run->snapshot = DEADLOCK_SNAPSHOT_PTRACE;
	const enum deadlock_snapshot_result result = deadlock_snapshot_ptrace(wait, r, why);
	run->stopped_ns = r->stopped_ns;
	if (result != DEADLOCK_SNAPSHOT_DONE)
		cannot(run,
			result == DEADLOCK_SNAPSHOT_MOVED ? DEADLOCK_END_MOVED
							  : DEADLOCK_END_REFUSED,
			why);
	return result == DEADLOCK_SNAPSHOT_DONE;
}

static bool is_where_it_was(const struct deadlock_ahead *a, const struct deadlock_wait *wait)
{
	uint64_t runs = 0;
	return deadlock_runs_of(wait->thread.pid, wait->thread.tid, &runs) &&
	       runs == a->registers.runs;
}

/* The copy behind the system call instruction, with the call's result. */
static void start(struct deadlock_ahead *a, const struct deadlock_wait *wait)
{
	struct user_regs_struct *r = deadlock_ghost_registers(a->ghost);
	*r = a->registers.general;
	r->rip = wait->pc;
	r->rsp = wait->sp;
	r->orig_rax = (unsigned long long)-1;
	r->eflags &= ~0x100u; /* trap flag */
	r->cs = 0x33;
	r->ss = 0x2b;
	r->ds = r->es = r->fs = r->gs = 0;
	r->gs_base = 0;
	if (a->registers.xstate_bytes)
		(void)deadlock_ghost_set_xstate(
			a->ghost, a->registers.xstate, a->registers.xstate_bytes);
	const int64_t result = deadlock_satisfy(&a->copy);
	deadlock_ghost_registers(a->ghost)->rax = (unsigned long long)result;
}

/* ---- running
 * --------------------------------------------------------------------------------------- */

/* int 0x80 stops, too, but counts its calls otherwise. */
static bool is_syscall_instruction(struct deadlock_copy *c, uint64_t behind)
{
	uint8_t code[2];
	return deadlock_copy_peek(c, behind - 2, code, sizeof code) && code[0] == 0x0f &&
	       code[1] == 0x05;
}

static void at_call(struct deadlock_copy *c)
{
	struct user_regs_struct *r = deadlock_ghost_registers(c->ghost);
	const uint64_t arg[6] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};
	c->run->nr_calls++;
	if (!is_syscall_instruction(c, r->rip)) {
		deadlock_copy_end(c, DEADLOCK_END_CALL, "a system call of 32-bit code");
		return;
	}
	const int64_t result = deadlock_emulate(c, r->orig_rax, arg);
	r = deadlock_ghost_registers(c->ghost);
	r->rax = (unsigned long long)result;
	r->orig_rax = (unsigned long long)-1;
	r->rcx = r->rip; /* as the instruction does */
	r->r11 = r->eflags;
}

static void at_stop(struct deadlock_copy *c, enum deadlock_stop stop)
{
	const struct user_regs_struct *r = deadlock_ghost_registers(c->ghost);
	switch (stop) {
	case DEADLOCK_STOP_CALL:
		at_call(c);
		break;
	case DEADLOCK_STOP_FAULT:
		deadlock_copy_end(c, DEADLOCK_END_CRASHED, "at 0x%llx it touched 0x%llx",
			(unsigned long long)r->rip,
			(unsigned long long)deadlock_ghost_fault_address(c->ghost));
		break;
	case DEADLOCK_STOP_SIGNAL:
		deadlock_copy_end(c, DEADLOCK_END_CRASHED, "at 0x%llx by signal %d",
			(unsigned long long)r->rip, deadlock_ghost_signal(c->ghost));
		break;
	case DEADLOCK_STOP_GONE:
		deadlock_copy_end(c, DEADLOCK_END_CRASHED, "it was killed");
		break;
	case DEADLOCK_STOP_TRAP:
	case DEADLOCK_STOP_TICK:
		break;
	}
}

static void run_to_end(struct deadlock_copy *c, uint64_t time_ns, uint64_t quiet_ns)
{
	const uint64_t begin_ns = now_ns();
	uint64_t quiet = 0;
	while (!c->is_done) {
		const enum deadlock_stop stop = deadlock_ghost_go(c->ghost, false);
		quiet = stop == DEADLOCK_STOP_TICK ? quiet + DEADLOCK_GHOST_TICK_NS : 0;
		if (stop == DEADLOCK_STOP_TRAP)
			deadlock_copy_end(c, DEADLOCK_END_CRASHED, "at a breakpoint");
		at_stop(c, stop);
		if (quiet >= quiet_ns)
			deadlock_copy_end(c, DEADLOCK_END_BUDGET,
				"it computed for %llu ms without a system call",
				(unsigned long long)(quiet / 1000000));
		if (now_ns() - begin_ns > time_ns)
			deadlock_copy_end(c, DEADLOCK_END_BUDGET, "after %llu ms",
				(unsigned long long)(time_ns / 1000000));
	}
}

static void run_copy(struct deadlock_ahead *a, const struct deadlock_wait *wait,
	const struct deadlock_ahead_options *options, struct deadlock_run *run)
{
	struct deadlock_copy *c = &a->copy;
	const char *why = "";
	struct deadlock_process *p = deadlock_world_process(a->world, wait->thread.pid);
	if (!p || p->is_gone) {
		cannot(run, DEADLOCK_END_MOVED, "its process is gone");
		return;
	}
	deadlock_process_regions(a->world, p);
	if (!deadlock_ghost_begin(a->ghost, p, &why)) {
		cannot(run, DEADLOCK_END_FAILED, why);
		return;
	}
	*c = (struct deadlock_copy){
		.world = a->world,
		.process = p,
		.wait = wait,
		.ghost = a->ghost,
		.run = run,
		.events_max = options->events_max ? options->events_max : EVENTS_DEFAULT,
	};
	if (c->events_max > DEADLOCK_EVENTS_MAX)
		c->events_max = DEADLOCK_EVENTS_MAX;
	start(a, wait);
	run_to_end(c, options->time_ns ? options->time_ns : TIME_DEFAULT_NS,
		options->quiet_ns ? options->quiet_ns : QUIET_DEFAULT_NS);
}

enum base_status deadlock_ahead_run(struct deadlock_ahead *a, const struct deadlock_wait *wait,
	const struct deadlock_ahead_options *options, struct deadlock_run *ret,
	struct base_err *err)
{
	const struct deadlock_ahead_options none = {0};
	const uint64_t begin_ns = now_ns();
	*ret = (struct deadlock_run){0};
	options = options ? options : &none;
	enum base_status status = have_ghost(a, err);
	if (status == BASE_ERR_NOMEM)
		return status;
	if (status != BASE_OK) {
		cannot(ret, DEADLOCK_END_REFUSED, "no copy can be made on this machine");
		return BASE_OK;
	}
	if (take_registers(a, wait, options->snapshot, ret)) {
		run_copy(a, wait, options, ret);
		if (!is_where_it_was(a, wait)) {
			const enum deadlock_snapshot snapshot = ret->snapshot;
			*ret = (struct deadlock_run){
				.snapshot = snapshot, .stopped_ns = a->registers.stopped_ns};
			cannot(ret, DEADLOCK_END_MOVED, "it ran while its copy did");
		}
	}
	ret->elapsed_ns = now_ns() - begin_ns;
	return BASE_OK;
}
