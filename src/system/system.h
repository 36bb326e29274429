/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.h - where the events of the whole system come from: one of several back-ends.
 *
 * A back-end fills the queues of a `system_order` with slots (system/abi.h), whatever the kernel
 * gave it. The first one in the table that the kernel does not refuse is used; why the ones before
 * it were refused is kept, for the user to read. All of them need privilege: for what is left
 * without it, see perf.h.
 */
#ifndef LONGPOLE_SYSTEM_SYSTEM_H
#define LONGPOLE_SYSTEM_SYSTEM_H

#include "system/order.h"

enum system_level {
	SYSTEM_LEVEL_none,
	SYSTEM_LEVEL_sched, /* switches, wakes, births and deaths */
	SYSTEM_LEVEL_full,  /* system calls, interrupts, sockets, packets, disks, timers, too */
};

/* Why a back-end was refused. */
enum system_refusal {
	SYSTEM_REFUSAL_none,
	SYSTEM_REFUSAL_not_built,  /* longpole was built without it */
	SYSTEM_REFUSAL_privilege,  /* root, or capabilities, are missing */
	SYSTEM_REFUSAL_no_feature, /* the kernel cannot do it, or is locked down */
	SYSTEM_REFUSAL_resources,  /* memory, descriptors */
};

struct system_backend;
struct system_options {
	enum system_level level;
	uint64_t buffer_bytes;                /* of all processors; 0: SYSTEM_BUFFER_BYTES */
	uint64_t sample_hz;                   /* of all threads, in SYSTEM_LEVEL_full; 0: none */
	const char *only_backend;             /* "bpf", "perf", or NULL: the best */
	const struct system_backend *backend; /* for tests: this one, and no other ... */
	unsigned nr_processors;               /* ... of so many; 0: of this machine */
	bool alone; /* for tests: nothing of this machine is looked up in /proc */
};
enum {
	SYSTEM_BUFFER_BYTES = 64 << 20,
	SYSTEM_WHY = 200,
};

struct system_source { /* an open back-end */
	const struct system_backend *backend;
	void *state;
	struct system_order order;
	unsigned nr_processors;
	unsigned used_percent; /* of the fullest buffer, at the last read */
	uint64_t nr_dropped;   /* by the kernel, since the start */
	uint64_t kernel_ns;    /* processor time that the back-end's programs took; 0: not known */
};

struct system_backend {
	const char *name;
	/* Sets up src->state for src->nr_processors; on failure *ret_refusal and why say why. */
	bool (*open)(struct system_source *src, const struct system_options *o,
		enum system_refusal *ret_refusal, char why[SYSTEM_WHY]);
	/* Until then, nothing is kept: it may take long from open to the first read. */
	void (*start)(struct system_source *src);
	/* Everything that is there, into src->order. */
	enum base_status (*read)(struct system_source *src, uint64_t now_ns);
	void (*close)(struct system_source *src);
};
extern const struct system_backend system_backend_bpf, system_backend_perf;
const char *system_refusal_text(enum system_refusal r);

struct system_attempt { /* one back-end that was asked */
	const struct system_backend *backend;
	enum system_refusal refusal; /* none: this is the one */
	char why[SYSTEM_WHY];
};
enum { SYSTEM_ATTEMPTS_MAX = 4 };

/* The best back-end there is. ERR_ENV: all were refused. ret_attempt says what was tried. */
enum base_status system_source_open(struct system_source *src, const struct system_options *o,
	struct system_attempt ret_attempt[SYSTEM_ATTEMPTS_MAX], unsigned *ret_nr_attempts,
	struct base_err *err) BASE_MUST_CHECK;
void system_source_start(struct system_source *src);
enum base_status system_source_read(
	struct system_source *src, uint64_t now_ns) BASE_MUST_CHECK; /* now: CLOCK_MONOTONIC */
void system_source_close(struct system_source *src);

#endif
