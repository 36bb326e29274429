/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.h - the registers of a thread that waits in a system call: what a copy starts from.
 *
 * BPF reads them without the thread's knowledge (tasks.c). Without BPF the thread is stopped by
 * ptrace, for tens of microseconds, and let go so that its system call goes on as if nothing had
 * been. Where that cannot be (a write that was interrupted half-way would return short; a relative
 * timeout would begin anew) it is not stopped, and there is no copy.
 */
#ifndef LONGPOLE_DEADLOCK_SNAPSHOT_H
#define LONGPOLE_DEADLOCK_SNAPSHOT_H

#include "deadlock/ahead/ahead.h"

enum { DEADLOCK_XSTATE_MAX_BYTES = 16384 };

struct deadlock_registers {
	struct user_regs_struct general;
	uint8_t xstate[DEADLOCK_XSTATE_MAX_BYTES]; /* vectors and floating point */
	size_t xstate_bytes; /* 0: not known, and not needed in a C library's calls */
	uint64_t runs; /* times it was on a processor: unchanged when the copy is done, or it was
			  for nothing */
	uint64_t stopped_ns;
};

enum deadlock_snapshot_result {
	DEADLOCK_SNAPSHOT_DONE,
	DEADLOCK_SNAPSHOT_MOVED,   /* it is not in that call any more */
	DEADLOCK_SNAPSHOT_REFUSED, /* stopping it would change what its call returns, or is
				      forbidden */
};

/* `why` (96 bytes) says why not. */
enum deadlock_snapshot_result deadlock_snapshot_ptrace(
	const struct deadlock_wait *wait, struct deadlock_registers *ret, char *why);

/*
 * A stop by hand: between the two nothing but ptrace requests. We have real-time priority
 * meanwhile, where that is allowed, so that nobody gets between us and its going on. After HALTED
 * and OTHERWISE it must be ended; how long the thread was stopped is returned: from when it stopped
 * (when we saw it, and how long we had to wait for a processor before) to when it was let go, at
 * most.
 */
enum deadlock_halted {
	DEADLOCK_HALTED,
	DEADLOCK_HALTED_OTHERWISE, /* by a signal, or it was stopped before */
	DEADLOCK_HALTED_GONE,
	DEADLOCK_HALTED_REFUSED, /* ->error */
};
struct deadlock_halt {
	pid_t tid;
	int error, signal, schedstat;
	bool hurried;
	uint64_t seen_ns, waited_ns;
};
enum deadlock_halted deadlock_halt_begin(struct deadlock_halt *s, pid_t tid);
uint64_t deadlock_halt_end(struct deadlock_halt *s);

/* Would a stop change what this call returns? "" or why. */
const char *deadlock_snapshot_harm(const struct deadlock_wait *wait);

#endif
