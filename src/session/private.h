/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - one recording's state, and what it reads; nothing outside of this directory includes
 * it. */
#ifndef LONGPOLE_SESSION_PRIVATE_H
#define LONGPOLE_SESSION_PRIVATE_H

#include "os/clock.h"
#include "os/launch.h"
#include "os/links.h"
#include "os/peer.h"
#include "os/valgrind.h"
#include "record/names.h"
#include "session/attach.h"
#include "session/keep.h"
#include "session/memory.h"
#include "session/python.h"
#include "session/qemu.h"
#include "session/ring.h"
#include "session/session.h"
#include "session/tally.h"
#include "system/convert.h"
#include "system/perf.h"
#include "system/slots.h"

enum { SESSION_PERF_MARGIN_NS = 1000000 }; /* the kernel's events are in their buffers that soon */

struct session {
	const struct session_options *opts;
	struct session_result *result;
	struct os_clock clock;
	struct session_ring ring;
	struct session_memory memory;
	struct os_valgrind valgrind;
	struct session_qemu qemu;
	struct os_links links;
	struct base_str preload; /* what LD_PRELOAD says */
	bool memory_busy;
	unsigned memory_level; /* what the program was built for */
	bool cut;          /* somebody has shortened the ring's file: there is nothing to read */
	uint64_t flush_ns; /* CLOCK_MONOTONIC_RAW of the next flush_system() */
	struct record_converter converter;
	struct os_peer peer;
	struct trace_writer *writer;
	struct session_keep keep; /* for whoever finds us killed */
	struct system_perf *perf;
	struct session_python *python; /* NULL: nobody looks into Python programs */
	struct system_slots *slots;    /* NULL: time inside of system calls is not counted */
	struct system_kernel kernel;
	struct os_child child;
	struct session_attach attach; /* in place of a child of ours */
	struct record_namer namer;    /* with a listener */
	uint64_t named_ns;
	int signal_fd, sched_policy, nice;
	struct os_signals before;
	struct session_lock_floor floor;
	uint64_t stolen_ns; /* by the machine's host: since boot, then of this recording */
	struct {
		int fd;             /* /proc/loadavg; -1: not to be had */
		uint64_t busy_ns;   /* when all processors were busy last; 0: never */
		uint8_t busy_looks; /* bit i: they were, i looks ago */
	} load;
	unsigned long nr_processors;
	bool has_program, converting, ended, stopped, full;
	bool waits; /* the last look left the ring as it was */
	bool cold;  /* ... and had no time to get all memory that the program will need */
	struct {
		unsigned nr_interrupts;
		int signal;  /* the last that came for the program; 0: none */
		uint64_t ns; /* CLOCK_MONOTONIC_RAW */
	} asked;
	uint64_t pair_ns, progress_ns, begin_ns,
		end_ns; /* CLOCK_MONOTONIC_RAW, but end_ns: of the trace */
	uint64_t records_before;
	uint64_t cpu_ns, started_cpu_ns; /* of this process: before, and as the program starts */
	enum base_status status; /* first failure while the target runs: it is not disturbed */
	struct base_err *err;
};

/* What starts as the recorded program. */
struct session_launch {
	const char *path;
	char *const *argv;
	struct os_child_environment environment;
};

/* One look at what there is to read. Times but raw_ns are ticks since the trace's beginning. */
struct session_look {
	uint64_t raw_ns;  /* CLOCK_MONOTONIC_RAW */
	uint64_t now;     /* ... as ticks */
	uint64_t horizon; /* what is later is left for the next look */
	uint64_t limit;   /* ... and a stamp later than this is damage */
	bool is_final;
};

/*
 * What a session reads, and what it has made ready for that: a row of session_sources[]. The
 * session goes through them at each step; a step that is NULL needs nothing. Each looks itself
 * whether it takes part in this recording.
 */
struct session_source {
	/* Makes what the program inherits. */
	enum base_status (*prepare)(struct session *s);
	/* Changes what is started; the one for which it returns true is the last that is asked. */
	bool (*launch)(struct session *s, struct session_launch *l, enum base_status *ret);
	/* The program's process is there, and waits. */
	enum base_status (*open)(struct session *s);
	/* The recording begins. */
	void (*begin)(struct session *s);
	/* Reads what there is up to the horizon. */
	void (*read)(struct session *s, const struct session_look *l);
	bool is_hasty; /* it is read in each round, also when others may wait */
	/* How full its buffers are. */
	unsigned (*fill_percent)(const struct session *s);
	/* What it has can be read later, too: a round may be put off. */
	bool (*may_wait)(struct session *s);
	/* Nothing more can be written: whoever feeds it stops. */
	void (*stop)(struct session *s);
	/* The last records; then the last definitions. */
	void (*finish)(struct session *s);
	void (*define)(struct session *s);
	/* What was lost, into the result and the trace. */
	void (*count)(struct session *s);
	void (*close)(struct session *s); /* also of what was never opened */
};
enum { SESSION_NR_SOURCES = 9 };
extern const struct session_source session_sources[SESSION_NR_SOURCES];

void session_count(struct session *s, enum trace_diag diag, uint64_t n);
/* Do programs write into the ring? 0: no; ring.h. */
void session_set_recording(struct session *s, uint32_t on);
/* One processor has time for us, most of the time: other programs wake up for a moment, and nobody
 * misses what we take between. */
bool session_has_spare(const struct session *s);

#endif
