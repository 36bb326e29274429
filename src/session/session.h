/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - record one run of a program into a trace: the parent process of `longpole record`.
 *
 * The program runs with the preload library in it and writes into a ring file in memory; the
 * session reads that, adds what the kernel saw (perf_event), and writes the trace. The program has
 * our stdin, stdout, stderr and process group. Linux, x86-64.
 */
#ifndef LONGPOLE_SESSION_SESSION_H
#define LONGPOLE_SESSION_SESSION_H

#include "base/base.h"
#include "system/hardware.h"
#include "system/system.h"
#include "trace/trace.h"

enum {
	SESSION_EXIT_OURS = 125, /* longpole could not do it */
	SESSION_EXIT_NOT_EXECUTABLE = 126,
	SESSION_EXIT_NOT_FOUND = 127,
	SESSION_SAMPLE_HZ = 999,
	SESSION_SYSTEM_SAMPLE_HZ = 499, /* of a system without a program */
	SESSION_STACK_DEPTH = 16,
	SESSION_REASON_BYTES = 160,
};

/* How locks are recorded. holds, sampled, count: exact numbers in tables, no record an operation;
 * the critical path is not known then. full: seed 001's four stamps. */
#define SESSION_LOCK_MODES(X)                                                                      \
	X(stamps, "each taking and giving up with its time: the critical path")                    \
	X(full, "also the call of each lock function and the return of each unlock function")      \
	X(holds, "exact numbers, every hold timed")                                                \
	X(sampled, "exact numbers, one hold in eight or fewer timed")                              \
	X(count, "exact numbers, no holds timed")
enum session_locks {
#define X(name, text) SESSION_LOCKS_##name,
	SESSION_LOCK_MODES(X)
#undef X
};

struct session_progress {
	uint64_t elapsed_ns, records, trace_bytes;
	unsigned buffer_percent; /* of the ring in use */
};

/*
 * Whoever takes the records in place of a trace. Definitions come in stream 0, before what mentions
 * them; names of code and static objects come about a second after it is first mentioned.
 */
struct session_listener {
	void *ctx;
	/* Not a status: what is wrong ends the recording only when stop() says so. */
	void (*put)(void *ctx, const struct trace_record *r);
	/* All records before time_ns have been put, but for those that come up to
	 * session_late_ns() late, and nr_lost since the beginning. */
	void (*reached)(void *ctx, uint64_t time_ns, uint64_t nr_lost);
	bool (*stop)(void *ctx); /* enough: the recording ends, a program goes on */
};

struct session_memory_taker; /* session/memory.h */

/* What runs a program that does not record its memory accesses itself. */
enum session_emulator {
	SESSION_EMULATOR_NONE,     /* `longpole cc` built it */
	SESSION_EMULATOR_VALGRIND, /* any program, one thread at a time */
	SESSION_EMULATOR_QEMU,     /* a program for another processor: session_qemu_knows() */
};

struct session_attached {
	int pid;
	uint64_t stopped_ns; /* set: for how long one of its threads was stopped */
	const char
		*unseen; /* set: what only programs that start recorded show of it; NULL: nothing */
};

struct session_options {
	size_t size; /* sizeof(struct session_options) of the caller */
	const char *output_path;
	char *const *argv; /* NULL-terminated; argv[0] is searched in $PATH. NULL: no program,
				  only the system, until a signal or for_ns */
	struct session_attached *attach; /* NULL, or a process that runs already, whose command
					    line argv is */
	const char *tool;                /* for the trace's header: "longpole 0.1.0" */
	uint64_t sample_hz;              /* 0: no samples */
	bool samples_exact;    /* that many; else fewer, where they would take over 1.5 % */
	uint64_t buffer_bytes; /* 0: as room.h has it; pages that are never needed cost nothing */
	unsigned stack_depth;  /* frames kept of a wait; 0: none */
	bool switches;         /* record when threads get and lose processors */
	enum session_locks locks;
	bool heap;        /* locks in allocated memory are named by its allocator */
	bool calls;       /* count library calls, nothing else (calls.def) */
	bool kernel_time; /* with calls: time inside of system calls, where BPF may count it */
	struct system_hardware hardware; /* with calls: events that are counted in them */
	bool measure_floor;              /* of locks: into the trace */
	unsigned level; /* 1 or 0: calls; 2: memory accesses, too; 3: instructions, too */
	enum session_emulator emulator; /* level 2, 3: what runs the program */
	bool plain;                     /* the trace is not compressed */
	bool wait_all;            /* until all recorded processes have ended, not only the first */
	enum system_level system; /* what is recorded of all other threads and of the kernel */
	const char *system_backend;   /* "bpf", "perf"; NULL: the best one that works */
	uint64_t system_buffer_bytes; /* of the kernel's events; 0: SYSTEM_BUFFER_BYTES */
	uint64_t for_ns; /* without a program, or of one that ran already: how long; 0: until a
			    signal */
	void (*progress)(void *ctx,
		const struct session_progress *p); /* may be NULL; about 5 times a second */
	void *progress_ctx;
	const struct session_memory_taker *memory_taker; /* of level 2, 3; with a listener */
	const struct session_listener *listener; /* then there is no trace, and no output_path */
};
uint64_t session_late_ns(const struct session_options *o);
/* In tables (tally.h): of what happens no record says when. */
bool session_counts(const struct session_options *o);

/* The defaults; set output_path and argv. */
struct session_options session_options_default(void);

struct session_result {
	int wait_status; /* of the program, as waitpid; -1: it still runs (stopped by a second
			    Ctrl-C) or never ran */
	int exit_code; /* what the caller should exit with: its own, 128 + signal, or 125, 126, 127
			*/
	uint64_t elapsed_ns; /* of the program */
	uint64_t records, trace_bytes, ring_records;
	uint64_t count[TRACE_DIAG_NR]; /* as in the trace's footer */
	uint64_t target_cpu_ns;        /* of the program and its children that were waited for */
	uint64_t recorder_cpu_ns;      /* of this process while recording */
	uint64_t before_cpu_ns;        /* of this process before the program started */
	uint64_t beside_cpu_ns;        /* ... of that while the program ran */
	uint64_t after_cpu_ns;         /* ... after it had ended, up to the trace's last records */
	uint64_t tsc_read_ns_x100, session_write_ns_x100; /* measured at the start: 1/100 ns */
	/* Measured at the start, medians of so many; 0: it could not be. */
	uint64_t wake_ns, nr_wakes; /* what waking a sleeper took */
	uint64_t wake_busy_ns,
		nr_wakes_busy; /* ... one that has to wait for the waker's processor */
	uint64_t switch_ns;    /* by how much perf's events delay who is woken */
	uint64_t sample_ns;    /* what a sample takes */
	uint64_t sample_hz;    /* what was chosen because of that */
	uint64_t added_ns;     /* what recording added to target_cpu_ns: an estimate */
	double overhead_share; /* added_ns of target_cpu_ns: an estimate, 0 when
				  unknown */
	uint64_t buffer_bytes; /* what the ring got */
	uint64_t symbols_ns;   /* spent on names at the end */
	uint64_t nr_sites, nr_named_sites;
	char unnamed_why[320];  /* "": every place has a function's name */
	unsigned memory_level;  /* what the program was built for; 0: no memory streams wanted */
	uint32_t memory_images; /* program images that wrote memory streams */
	uint32_t memory_threads;
	uint64_t memory_words, memory_chunk_bytes;
	uint64_t memory_words_left;                /* of these: we encoded them */
	uint64_t memory_encode_ns, memory_wait_ns; /* of the program's threads: estimates */
	char no_samples_why[SESSION_REASON_BYTES],
		no_switches_why[SESSION_REASON_BYTES], /* "": there are */
		no_kernel_time_why[SESSION_REASON_BYTES],
		no_kernel_events_why[SESSION_REASON_BYTES];
	char disk_full_why[SESSION_REASON_BYTES];
	struct system_attempt attempt[SYSTEM_ATTEMPTS_MAX]; /* ways to see the system, best first */
	unsigned nr_attempts;
	uint64_t kernel_events, kernel_switches;
	char no_system_samples_why[SYSTEM_WHY];
};

/*
 * session_run() - start opts->argv, record it, return when it has ended and the trace is complete.
 * With opts->system the kernel's events of all threads are in the trace, too; when the kernel
 * refuses that and there is a program, the program alone is recorded and own_threads_only is
 * counted; without one it is an error. SIGINT (first), SIGTERM, SIGHUP and SIGQUIT are passed on to
 * the program if it did not get them itself; the second SIGINT ends the recording only. A full disk
 * does not disturb the program: the trace ends early, BASE_OK is returned and disk_full counted. On
 * an error ret->exit_code is 125, 126 or 127 and the program did not run, or its trace is damaged
 * (then wait_status is set). With attach the program is joined, and left at the end, by the first
 * SIGINT, SIGTERM or SIGHUP or after for_ns: it goes on. BASE_ERR_ENV: statically linked or setuid program, no TSC, no preload
 * library, no memory for the ring. Not for threads of one process at the same time: changes
 * SIGCHLD's and others' blocking while it runs.
 */
enum base_status session_run(const struct session_options *opts, struct session_result *ret,
	struct base_err *err) BASE_MUST_CHECK;

#endif
