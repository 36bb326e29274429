/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ahead.c - lets a copy of a waiting thread go on, and sees what it would do (seed: speculative
 * execution, 4.2.3 and 4.3.3). One ghost, used again and again; one copy at a time.
 */
#include "deadlock/ahead/emulate.h"
#include "deadlock/ahead/pin.h"
#include "deadlock/ahead/snapshot.h"
#include "deadlock/ahead/spin.h"

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
	SPINNERS_MAX = 64,
};

/* A thread that was proven to spin, as it was then. */
struct spinner {
	pid_t tid;
	struct deadlock_registers registers;
};

struct deadlock_ahead {
	struct deadlock_world *world;
	struct deadlock_ghost *ghost; /* NULL: none now */
	struct deadlock_pin pin;      /* ghosts that we make inherit it */
	unsigned nr_ghosts;
	struct deadlock_registers registers;
	struct deadlock_copy copy;
	struct spinner *spinner[SPINNERS_MAX];
	size_t nr_spinners;
	const struct deadlock_key *watched; /* words of others */
	size_t nr_watched;
	bool can_watch;      /* where debug registers do what they say */
	uint64_t stopped_ns; /* the longest, of a spinner */
};

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
	deadlock_pin_set(&a->pin);
	enum base_status status = have_ghost(a, err);
	if (status != BASE_OK) {
		deadlock_pin_end(&a->pin);
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
	deadlock_pin_end(&a->pin);
	for (size_t i = 0; i < a->nr_spinners; i++)
		base_free(a->spinner[i]);
	base_free(a);
	return NULL;
}

/* ---- where a copy starts --------------------------------------------------------------------- */

static void cannot(struct deadlock_run *run, enum deadlock_end end, const char *why)
{
	run->end = end;
	(void)snprintf(run->why, sizeof run->why, "%s", why);
}

static bool is_where_it_was(const struct deadlock_ahead *a, const struct deadlock_wait *wait)
{
	uint64_t runs = 0;
	return deadlock_runs_of(wait->thread.pid, wait->thread.tid, &runs) &&
	       runs == a->registers.runs;
}

/* The thread's registers, from BPF when they came with the wait. */
static bool ahead_take_registers(struct deadlock_ahead *a, const struct deadlock_wait *wait,
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
		if (is_where_it_was(a, wait))
			return true;
		cannot(run, DEADLOCK_END_MOVED, "it ran since it was looked at");
		return false;
	}
	if (wanted != DEADLOCK_SNAPSHOT_AUTO && wanted != DEADLOCK_SNAPSHOT_PTRACE) {
		cannot(run, DEADLOCK_END_REFUSED, "its registers were not read by BPF");
		return false;
	}
	run->snapshot = DEADLOCK_SNAPSHOT_PTRACE;
	const enum deadlock_snapshot_result result = deadlock_snapshot_ptrace(wait, r, why);
	run->stopped_ns = r->stopped_ns;
	run->runs = result == DEADLOCK_SNAPSHOT_DONE ? r->runs : 0;
	if (result != DEADLOCK_SNAPSHOT_DONE)
		cannot(run,
			result == DEADLOCK_SNAPSHOT_MOVED ? DEADLOCK_END_MOVED
							  : DEADLOCK_END_REFUSED,
			why);
	return result == DEADLOCK_SNAPSHOT_DONE;
}

/* The ghost gets the registers that were taken. */
static void stand(struct deadlock_ghost *g, const struct deadlock_registers *from)
{
	struct user_regs_struct *r = deadlock_ghost_registers(g);
	*r = from->general;
	r->orig_rax = (unsigned long long)-1;
	r->eflags &= ~0x100u; /* trap flag */
	r->cs = 0x33;
	r->ss = 0x2b;
	r->ds = r->es = r->fs = r->gs = 0;
	r->gs_base = 0;
	if (from->xstate_bytes)
		(void)deadlock_ghost_set_xstate(g, from->xstate, from->xstate_bytes);
}

/* The copy behind the system call instruction, with the call's result. */
static void ahead_start(struct deadlock_ahead *a, const struct deadlock_wait *wait)
{
	stand(a->ghost, &a->registers);
	deadlock_ghost_registers(a->ghost)->rip = wait->pc;
	deadlock_ghost_registers(a->ghost)->rsp = wait->sp;
	const int64_t result = deadlock_satisfy(&a->copy);
	deadlock_ghost_registers(a->ghost)->rax = (unsigned long long)result;
}

/* ---- running --------------------------------------------------------------------------------- */

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

/* Another thread's word was written. */
static void at_trap(struct deadlock_copy *c)
{
	const unsigned written = deadlock_ghost_written(c->ghost);
	for (unsigned i = 0; i < DEADLOCK_GHOST_WATCHES; i++)
		if (written >> i & 1 && c->watched[i])
			deadlock_copy_event(c, c->watched[i]);
	if (!written)
		deadlock_copy_end(c, DEADLOCK_END_CRASHED, "at a breakpoint");
}

void deadlock_copy_at_stop(struct deadlock_copy *c, enum deadlock_stop stop)
{
	const struct user_regs_struct *r = deadlock_ghost_registers(c->ghost);
	deadlock_satisfy_look(c);
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
		at_trap(c);
		break;
	case DEADLOCK_STOP_TICK:
		break;
	}
}

static void run_to_end(struct deadlock_copy *c, uint64_t time_ns, uint64_t quiet_ns)
{
	const uint64_t begin_ns = os_time_ns(CLOCK_MONOTONIC);
	uint64_t quiet = 0;
	while (!c->is_done) {
		const enum deadlock_stop stop = deadlock_ghost_go(c->ghost, false);
		quiet = stop == DEADLOCK_STOP_TICK ? quiet + DEADLOCK_GHOST_TICK_NS : 0;
		deadlock_copy_at_stop(c, stop);
		if (quiet >= quiet_ns)
			deadlock_copy_end(c, DEADLOCK_END_BUDGET,
				"it computed for %llu ms without a system call",
				(unsigned long long)(quiet / 1000000));
		if (os_time_ns(CLOCK_MONOTONIC) - begin_ns > time_ns)
			deadlock_copy_end(c, DEADLOCK_END_BUDGET, "after %llu ms",
				(unsigned long long)(time_ns / 1000000));
	}
}

/* Words that others poll and this thread does not. */
static void set_watches(struct deadlock_ahead *a, struct deadlock_copy *c)
{
	unsigned nr = 0;
	for (size_t i = 0; a->can_watch && i < a->nr_watched && nr < DEADLOCK_GHOST_WATCHES; i++) {
		const struct deadlock_key *key = &a->watched[i];
		bool is_own = key->space != (uint64_t)c->process->pid;
		for (size_t n = 0; n < c->wait->nr_keys; n++)
			is_own = is_own || deadlock_key_matches(&c->wait->key[n], key);
		uint8_t byte;
		if (is_own || !deadlock_copy_peek(c, key->at, &byte, 1) ||
			!deadlock_ghost_watch(c->ghost, nr, key->at, key->bytes))
			continue;
		c->watched[nr++] = key;
	}
}

/* An empty ghost becomes the thread's process. False: the run says why not. */
static bool prepare(struct deadlock_ahead *a, const struct deadlock_wait *wait,
	const struct deadlock_ahead_options *options, struct deadlock_run *run)
{
	struct deadlock_copy *c = &a->copy;
	const char *why = "";
	struct deadlock_process *p = deadlock_world_process(a->world, wait->thread.pid);
	if (!p || p->is_gone) {
		cannot(run, DEADLOCK_END_MOVED, "its process is gone");
		return false;
	}
	if (a->nr_watched && !a->can_watch) { /* what it writes for spinners would not be seen */
		cannot(run, DEADLOCK_END_FAILED, "debug registers do not stop a process here");
		return false;
	}
	deadlock_process_regions(a->world, p);
	if (!deadlock_ghost_begin(a->ghost, p, &why)) {
		cannot(run, DEADLOCK_END_FAILED, why);
		return false;
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
	set_watches(a, c);
	return true;
}

static void run_on(struct deadlock_copy *c, const struct deadlock_ahead_options *options)
{
	run_to_end(c, options->time_ns ? options->time_ns : TIME_DEFAULT_NS,
		options->quiet_ns ? options->quiet_ns : QUIET_DEFAULT_NS);
}

static void ahead_run_copy(struct deadlock_ahead *a, const struct deadlock_wait *wait,
	const struct deadlock_ahead_options *options, struct deadlock_run *run)
{
	if (!prepare(a, wait, options, run))
		return;
	ahead_start(a, wait);
	if (options->force_branch)
		deadlock_copy_force(&a->copy, options->force_branch);
	run_on(&a->copy, options);
}

/* ---- spinners -------------------------------------------------------------------------------- */

static const struct deadlock_registers *spinner_registers(const struct deadlock_ahead *a, pid_t tid)
{
	for (size_t i = 0; i < a->nr_spinners; i++)
		if (a->spinner[i]->tid == tid)
			return &a->spinner[i]->registers;
	return NULL;
}

/* Where the thread was, with the polled word changed in the nth way. */
static bool stand_changed(struct deadlock_ahead *a, const struct deadlock_wait *wait,
	const struct deadlock_ahead_options *options, const struct deadlock_key *key, unsigned way,
	struct deadlock_run *run)
{
	uint64_t now = 0;
	bool is_last;
	const size_t size = key->bytes ? key->bytes : sizeof now;
	if (have_ghost(a, NULL) != BASE_OK || !prepare(a, wait, options, run))
		return false;
	stand(a->ghost, spinner_registers(a, wait->thread.tid));
	if (!deadlock_copy_peek(&a->copy, key->at, &now, size))
		return false;
	const uint64_t value = deadlock_spin_value(now, way, &is_last);
	return deadlock_copy_poke(&a->copy, key->at, &value, size);
}

static void run_spinner(struct deadlock_ahead *a, const struct deadlock_wait *wait,
	const struct deadlock_ahead_options *options, struct deadlock_run *run)
{
	bool is_last = false;
	run->snapshot = DEADLOCK_SNAPSHOT_PTRACE;
	if (!spinner_registers(a, wait->thread.tid)) {
		cannot(run, DEADLOCK_END_FAILED, "it was not proven to spin");
		return;
	}
	for (size_t i = 0; i < wait->nr_keys; i++) {
		for (unsigned way = 0, last = 0; !last; way++) {
			(void)deadlock_spin_value(0, way, &is_last);
			last = is_last;
			if (!stand_changed(a, wait, options, &wait->key[i], way, run) ||
				!deadlock_spin_escapes(a->ghost, a->copy.process) ||
				!stand_changed(a, wait, options, &wait->key[i], way, run))
				continue;
			run_on(&a->copy, options);
			return;
		}
	}
	cannot(run, DEADLOCK_END_FAILED, "no value of what it polls lets its copy out");
}

/* Where this thread's state is kept; NULL: no memory, or (*ret_full) there are too many. */
static struct spinner *spinner_of(struct deadlock_ahead *a, pid_t tid, bool *ret_full)
{
	*ret_full = false;
	for (size_t i = 0; i < a->nr_spinners; i++)
		if (a->spinner[i]->tid == tid)
			return a->spinner[i];
	*ret_full = a->nr_spinners == SPINNERS_MAX;
	struct spinner *s = *ret_full ? NULL : base_alloc(sizeof *s);
	if (s) {
		s->tid = tid;
		a->spinner[a->nr_spinners++] = s;
	}
	return s;
}

/* Words in shared memory: somebody may write them whom we do not know. */
static bool polls_shared_memory(const struct deadlock_ahead *a, const struct deadlock_wait *w)
{
	for (size_t i = 0; i < w->nr_keys; i++) {
		const struct os_region *r =
			deadlock_process_region(a->world, a->copy.process, w->key[i].at);
		if (!r || r->shared)
			return true;
	}
	return false;
}

static enum deadlock_spin_result prove_spin(
	struct deadlock_ahead *a, struct spinner *s, struct deadlock_wait *ret)
{
	stand(a->ghost, &s->registers);
	const enum deadlock_spin_result result =
		deadlock_spin_prove(a->ghost, a->copy.process, ret);
	if (result != DEADLOCK_SPIN_PROVEN)
		return result;
	ret->kind = DEADLOCK_SPIN;
	ret->registers = s->registers.general;
	ret->registers_source = DEADLOCK_REGISTERS_PTRACE;
	ret->sp = ret->registers.rsp;
	ret->pc = ret->registers.rip;
	ret->is_external = polls_shared_memory(a, ret);
	return result;
}

enum base_status deadlock_ahead_spin(struct deadlock_ahead *a, const struct deadlock_thread *thread,
	struct deadlock_wait *ret, char why[DEADLOCK_SPIN_WHY_MAX], struct base_err *err)
{
	static const char *const reason[] = {
		[DEADLOCK_SPIN_PROVEN] = "",
		[DEADLOCK_SPIN_NO_LOOP] = "its registers did not come back within 400 steps",
		[DEADLOCK_SPIN_CHANGES] = "within 400 steps it changes memory each time round",
		[DEADLOCK_SPIN_NO_WORD] = "it loops for ever, and reads nothing that could change",
		[DEADLOCK_SPIN_NO_MEMORY] = "out of memory",
	};
	const struct deadlock_ahead_options options = {0};
	const char *text = "";
	bool is_full;
	*ret = (struct deadlock_wait){.thread = *thread, .kind = DEADLOCK_RUNNING, .call = -1};
	struct deadlock_run run = {0};
	struct spinner *s = spinner_of(a, thread->tid, &is_full);
	enum base_status status = have_ghost(a, err);
	enum deadlock_spin_result result = DEADLOCK_SPIN_NO_LOOP;
	if ((!s && !is_full) || status == BASE_ERR_NOMEM)
		return base_fail(err, BASE_ERR_NOMEM, "a thread that spins");
	if (!s) {
		text = "too many spinners";
	} else if (status != BASE_OK) {
		text = "no copy can be made on this machine";
	} else if (deadlock_spin_registers(thread->tid, &s->registers, &text)) {
		if (s->registers.stopped_ns > a->stopped_ns)
			a->stopped_ns = s->registers.stopped_ns;
		text = run.why;
		if (prepare(a, ret, &options, &run)) {
			result = prove_spin(a, s, ret);
			text = reason[result];
		}
	}
	if (ret->kind != DEADLOCK_SPIN)
		ret->nr_keys = 0;
	(void)snprintf(why, DEADLOCK_SPIN_WHY_MAX, "%s", text);
	return result == DEADLOCK_SPIN_NO_MEMORY
		       ? base_fail(err, BASE_ERR_NOMEM, "a proof that a thread spins")
		       : BASE_OK;
}

uint64_t deadlock_ahead_stopped_ns(const struct deadlock_ahead *a)
{
	return a->stopped_ns;
}

void deadlock_ahead_watch(struct deadlock_ahead *a, const struct deadlock_key *key, size_t nr_keys)
{
	a->watched = key;
	a->nr_watched = nr_keys;
	a->can_watch = nr_keys && deadlock_ghost_can_watch();
}

/* ---- the interface --------------------------------------------------------------------------- */

enum base_status deadlock_ahead_run(struct deadlock_ahead *a, const struct deadlock_wait *wait,
	const struct deadlock_ahead_options *options, struct deadlock_run *ret,
	struct base_err *err)
{
	const struct deadlock_ahead_options none = {0};
	const uint64_t begin_ns = os_time_ns(CLOCK_MONOTONIC);
	*ret = (struct deadlock_run){0};
	options = options ? options : &none;
	enum base_status status = have_ghost(a, err);
	if (status == BASE_ERR_NOMEM)
		return status;
	if (status != BASE_OK) {
		cannot(ret, DEADLOCK_END_REFUSED, "no copy can be made on this machine");
		return BASE_OK;
	}
	if (wait->kind == DEADLOCK_SPIN) {
		run_spinner(a, wait, options, ret);
	} else if (ahead_take_registers(a, wait, options->snapshot, ret)) {
		ahead_run_copy(a, wait, options, ret);
		if (!is_where_it_was(a, wait)) {
			const enum deadlock_snapshot snapshot = ret->snapshot;
			*ret = (struct deadlock_run){
				.snapshot = snapshot, .stopped_ns = a->registers.stopped_ns};
			cannot(ret, DEADLOCK_END_MOVED, "it ran while its copy did");
		}
	}
	ret->elapsed_ns = os_time_ns(CLOCK_MONOTONIC) - begin_ns;
	return BASE_OK;
}
