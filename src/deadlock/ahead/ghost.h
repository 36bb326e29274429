/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ghost.h - a process of ours that becomes, page by page, a copy of another one.
 *
 * A ghost is a tiny static program of its own (not a fork of us), traced by us, without a file
 * descriptor, under a seccomp filter that kills it for any system call but mmap (private and
 * anonymous), munmap, mprotect and mremap. Its memory starts empty; what it touches is read from
 * the other process, which is neither stopped nor attached and never written to. All of it,
 * shared memory too, is therefore private to the ghost. When we die, it dies (PTRACE_O_EXITKILL,
 * and PR_SET_PDEATHSIG before that is set).
 *
 * Only the thread that made a ghost may use it: ptrace knows its tracer by thread.
 */
#ifndef LONGPOLE_DEADLOCK_GHOST_H
#define LONGPOLE_DEADLOCK_GHOST_H

#include "deadlock/ahead/ahead.h"

enum {
	DEADLOCK_GHOST_PAGE_BYTES = 4096,
	DEADLOCK_GHOST_CHUNK_BYTES = 1 << 16,      /* copied at once around a touched address */
	DEADLOCK_GHOST_COPIED_MAX_BYTES = 1 << 28, /* more of another process is not copied */
	DEADLOCK_GHOST_TICK_NS = 10000000,         /* of processor time between two ticks */
	DEADLOCK_GHOST_LIMIT_BYTES = 1 << 30,      /* its address space (RLIMIT_AS) */
	DEADLOCK_GHOST_RANGES_MAX = 16384,
	DEADLOCK_GHOST_WATCHES = 4, /* debug registers */
};

enum deadlock_stop {
	DEADLOCK_STOP_CALL,   /* at a system call, which was not made */
	DEADLOCK_STOP_TRAP,   /* one step done, or a watched word was written */
	DEADLOCK_STOP_FAULT,  /* touched memory that is not there, or not so */
	DEADLOCK_STOP_TICK,   /* used DEADLOCK_GHOST_TICK_NS of processor time */
	DEADLOCK_STOP_SIGNAL, /* another signal of its own making (SIGILL, SIGFPE, SIGBUS ...) */
	DEADLOCK_STOP_GONE,   /* it is dead: free it */
};

struct deadlock_ghost;

/* BASE_ERR_ENV: the machine does not allow it (no memfd, no seccomp, no ptrace). */
enum base_status deadlock_ghost_new(
	struct deadlock_ghost **ret, struct base_err *err) BASE_MUST_CHECK;
struct deadlock_ghost *deadlock_ghost_free(struct deadlock_ghost *g);
/* Forgets all memory and becomes a copy of `p` (its regions have been read), which must stay as it
 * is while the ghost is used. False: it cannot, and why; a dead ghost says so. */
bool deadlock_ghost_begin(
	struct deadlock_ghost *g, const struct deadlock_process *p, const char **why);
bool deadlock_ghost_is_alive(const struct deadlock_ghost *g);
pid_t deadlock_ghost_pid(const struct deadlock_ghost *g); /* -1: it is dead */

/* Its registers at this stop; what is changed here holds when it goes on. */
struct user_regs_struct *deadlock_ghost_registers(struct deadlock_ghost *g);
/* Vector and floating point registers, as PTRACE_GETREGSET of NT_X86_XSTATE gave them. */
bool deadlock_ghost_set_xstate(struct deadlock_ghost *g, const void *xstate, size_t size);
/* The same, read; its size, 0: refused. */
size_t deadlock_ghost_get_xstate(struct deadlock_ghost *g, void *xstate, size_t size);
/* On to the next stop; `step`: after one instruction. Missing pages are copied on the way. */
enum deadlock_stop deadlock_ghost_go(struct deadlock_ghost *g, bool step);
uint64_t deadlock_ghost_fault_address(const struct deadlock_ghost *g); /* after STOP_FAULT */
int deadlock_ghost_signal(const struct deadlock_ghost *g);             /* after STOP_SIGNAL */

/* Its memory, copied first where it is missing. All or nothing is reported as true. */
bool deadlock_ghost_read(struct deadlock_ghost *g, uint64_t address, void *buf, size_t size);
bool deadlock_ghost_write(struct deadlock_ghost *g, uint64_t address, const void *buf, size_t size);

/* System calls that the ghost makes itself: 0 or the address, or -errno. Addresses and sizes in
 * whole pages. Map gives zeroed private memory; address 0: where the copied process has nothing. */
int64_t deadlock_ghost_map(struct deadlock_ghost *g, uint64_t address, uint64_t size, int prot);
int64_t deadlock_ghost_unmap(struct deadlock_ghost *g, uint64_t address, uint64_t size);
int64_t deadlock_ghost_protect(struct deadlock_ghost *g, uint64_t address, uint64_t size, int prot);

/* Do debug registers stop a process here? Some virtual machines take their values and never do:
 * tried on a child, once a call. */
bool deadlock_ghost_can_watch(void);
/* Stop (TRAP) after a write to these `size` (1, 2, 4, 8) bytes; at most DEADLOCK_GHOST_WATCHES. */
bool deadlock_ghost_watch(struct deadlock_ghost *g, unsigned nr, uint64_t address, unsigned size);
/* Which were written since the last question, as bits; then none. */
unsigned deadlock_ghost_written(struct deadlock_ghost *g);
/* Chunks copied since _begin(). */
uint32_t deadlock_ghost_chunks(const struct deadlock_ghost *g);

#endif
