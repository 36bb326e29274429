/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.h - where the events of the whole system come from: one of several back-ends.
 *
 * A back-end fills the queues of a `record_order` with slots (system_abi.h), whatever the kernel
 * gave it. The first one in the table that the kernel does not refuse is used; why the ones before
 * it were refused is kept, for the user to read. All of them need privilege: for what is left
 * without it, see perf.h.
 */
#ifndef LONGPOLE_RECORD_SYSTEM_H
#define LONGPOLE_RECORD_SYSTEM_H

#include "record/system_order.h"

enum record_level {
	RECORD_LEVEL_none,
	RECORD_LEVEL_sched, /* switches, wakes, births and deaths */
	RECORD_LEVEL_full,  /* system calls, interrupts, sockets, packets, disks, timers, too */
};

/* Why a back-end was refused. */
enum record_refusal {
	RECORD_REFUSAL_none,
	RECORD_REFUSAL_not_built,  /* longpole was built without it */
	RECORD_REFUSAL_privilege,  /* root, or capabilities, are missing */
	RECORD_REFUSAL_no_feature, /* the kernel cannot do it, or is locked down */
	RECORD_REFUSAL_resources,  /* memory, descriptors */
};

struct record_backend;
struct record_system_options {
	enum record_level level;
	uint64_t buffer_bytes;                /* of all processors; 0: RECORD_SYSTEM_BUFFER_BYTES */
	uint64_t sample_hz;                   /* of all threads, in RECORD_LEVEL_full; 0: none */
	const char *only_backend;             /* "bpf", "perf", or NULL: the best */
	const struct record_backend *backend; /* for tests: this one, and no other ... */
	unsigned nr_processors;               /* ... of so many; 0: of this machine */
	bool alone; /* for tests: nothing of this machine is looked up in /proc */
};
enum {
	RECORD_SYSTEM_BUFFER_BYTES = 64 << 20,
	RECORD_SYSTEM_WHY = 200,
};

struct record_source { /* an open back-end */
	const struct record_backend *backend;
	void *state;
	struct record_order order;
	unsigned nr_processors;
	unsigned used_percent; /* of the fullest buffer, at the last read */
	uint64_t nr_dropped;   /* by the kernel, since the start */
	uint64_t kernel_ns;    /* processor time that the back-end's programs took; 0: not known */
};

struct record_backend {
	const char *name;
	/* Sets up src->state for src->nr_processors; on failure *ret_refusal and why say why. */
	bool (*open)(struct record_source *src, const struct record_system_options *o,
		enum record_refusal *ret_refusal, char why[RECORD_SYSTEM_WHY]);
	/* Until then, nothing is kept: it may take long from open to the first read. */
	void (*start)(struct record_source *src);
	/* Everything that is there, into src->order. */
	enum base_status (*read)(struct record_source *src, uint64_t now_ns);
	void (*close)(struct record_source *src);
};
extern const struct record_backend record_backend_bpf, record_backend_perf;
const char *record_refusal_text(enum record_refusal r);

struct record_attempt { /* one back-end that was asked */
	const struct record_backend *backend;
	enum record_refusal refusal; /* none: this is the one */
	char why[RECORD_SYSTEM_WHY];
};
enum { RECORD_ATTEMPTS_MAX = 4 };

/* The best back-end there is. ERR_ENV: all were refused. ret_attempt says what was tried. */
enum base_status record_source_open(struct record_source *src,
	const struct record_system_options *o,
	struct record_attempt ret_attempt[RECORD_ATTEMPTS_MAX], unsigned *ret_nr_attempts,
	struct base_err *err) BASE_MUST_CHECK;
void record_source_start(struct record_source *src);
enum base_status record_source_read(
	struct record_source *src, uint64_t now_ns) BASE_MUST_CHECK; /* now: CLOCK_MONOTONIC */
void record_source_close(struct record_source *src);

#endif
