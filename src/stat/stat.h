/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stat.h - run a program and count what each of its threads did: `longpole stat`.
 *
 * The kernel keeps these accounts for every thread anyway; they cost the program nothing while it
 * runs. We stop each thread (ptrace) at its birth and just before its end, and read them then:
 * /proc, and perf events of its own for what the processor counts. Works for any program, also a
 * static one; not for one that is traced already, or that traces its children itself. A program
 * that says its phases (longpole/counter.h) has liblongpole-stat.so in it, which counts them by
 * thread.
 */
#ifndef LONGPOLE_STAT_STAT_H
#define LONGPOLE_STAT_STAT_H

#include "base/base.h"

#include <sys/types.h>

enum {
	STAT_EVENTS_MAX = 5,
	STAT_THREADS_MAX = 1 << 18, /* those beyond are only in the totals of `missed` */
	STAT_COMM = 16,
	STAT_WHY = 200,
	STAT_NAME = 256,
	STAT_PHASE_COUNTS = 8,
	STAT_EXIT_OURS = 125,
};

struct stat_counts {
	uint64_t task_ns, runqueue_ns;     /* had a processor; was ready and had none */
	uint64_t user_ticks, kernel_ticks; /* the kernel's estimate, in units of tick_ns */
	uint64_t voluntary, forced;        /* switches; without those of our own stops */
	uint64_t migrations;
	uint64_t minor_faults, major_faults;
	uint64_t event[STAT_EVENTS_MAX];
	uint64_t call_ns, calls; /* inside of system calls, with a processor */
	uint64_t peak_kb;        /* of its process's memory, since its exec; 0: not known */
};

struct stat_thread {
	pid_t pid, tid;
	char comm[STAT_COMM];      /* its last name */
	uint64_t begin_ns, end_ns; /* since the program's start */
	struct stat_counts counts;
	uint32_t stops;      /* by us: each is a switch that `voluntary` does not have */
	uint32_t counted;    /* bits: these events were counted, all the time */
	bool has_migrations; /* the kernel says them */
	bool has_calls;      /* call_ns and calls were counted */
	uint32_t lost_calls; /* of calls: without their time */
	bool ended;          /* false: it went on after us */
	bool missed;         /* it vanished before we could read its accounts: counts are zero */
};

struct stat_phase {
	pid_t pid, tid;
	char name[STAT_NAME];
	uint64_t entered, wall_ns, task_ns;
	uint64_t count[STAT_PHASE_COUNTS]; /* ticks, switches, run-queue ns, then the events
					    */
	uint32_t counted;                  /* bits */
	bool open, failed;                 /* its last stay has no end; some stays have no counts */
	bool rest; /* no phase, but what of its thread's life was in none of the others */
};

struct stat_options {
	char *const *argv;     /* NULL-terminated; argv[0] is searched in $PATH */
	const uint16_t *event; /* enum longpole_event of the PMU's */
	size_t nr_events;
	bool kernel_time; /* count system calls and the time in them, by BPF */
	bool by_thread;   /* false: no ptrace; the process's totals only */
};

struct stat_result {
	struct stat_thread *thread; /* in order of birth */
	size_t nr_threads, threads_capacity;
	struct stat_phase *phase;
	size_t nr_phases, phases_capacity;
	uint64_t elapsed_ns, tick_ns;
	/* as wait4 says them: the program and the children that it waited for; by thread without
	 * what its process did before its exec, as our child */
	uint64_t user_us, kernel_us, voluntary, forced, minor_faults, major_faults, max_rss_kb;
	uint64_t stolen_ns;               /* of all processors, by the machine's host */
	uint64_t peak_kb;                 /* most that one process had at its end */
	uint64_t signals;                 /* that passed through us */
	uint64_t nr_processes, nr_images; /* images: the first and every exec */
	uint64_t missed_threads, marks, dropped_marks;
	int wait_status, exit_code;
	char no_threads_why[STAT_WHY]; /* "": by thread */
	char no_phases_why[STAT_WHY];
	char no_calls_why[STAT_WHY];
	uint64_t lost_calls; /* system calls that could not be timed */
	char no_event_why[STAT_EVENTS_MAX][STAT_WHY];
	bool event_user_only[STAT_EVENTS_MAX];
};

/*
 * stat_run() - start, count, return when the program has ended. Its children that live on
 * are let go, with what they did so far. ret->exit_code is the program's, 128 + signal, or 125,
 * 126, 127. stat_fini() after success and failure.
 */
enum base_status stat_run(const struct stat_options *options, struct stat_result *ret,
	struct base_err *err) BASE_MUST_CHECK;
void stat_fini(struct stat_result *s);

/* ---- between the files of stat --------------------------------------------------------------- */

/* Texts of /proc/PID/task/TID/: what the kernel writes, but a thread's name may hold anything.
 * False: not understood. */
bool stat_parse_stat(const char *text, struct stat_counts *ret, char *comm);
bool stat_parse_schedstat(const char *text, struct stat_counts *ret);
bool stat_parse_status(const char *text, struct stat_counts *ret);
bool stat_parse_sched(const char *text, uint64_t *ret_migrations);
/* All of a thread; false: it is gone. */
bool stat_read(struct stat_thread *t, struct stat_counts *ret);

/* Events of the processor for another thread: descriptors, -1 where refused (and why). */
void stat_events_open(const struct stat_options *options, struct stat_result *s, pid_t tid,
	int fd[STAT_EVENTS_MAX]);
/* Reads and closes. */
void stat_events_end(struct stat_thread *t, struct stat_counts *ret, int fd[STAT_EVENTS_MAX]);
/* One counter: value if it had one all the time. */
bool stat_event_read(int fd, uint64_t *ret);
int stat_event_open(uint32_t type, uint64_t config, pid_t tid, bool *ret_user_only);

/* The file that phases are written to. */
struct phase_file;
struct phase_file *stat_phases_make(const struct stat_options *options, int *ret_fd);
void stat_phases_free(struct phase_file *file, int fd);
/* What threads wrote: checked, not trusted. */
enum base_status stat_phases_read(
	const struct phase_file *file, struct stat_result *s, struct base_err *err) BASE_MUST_CHECK;

#endif
