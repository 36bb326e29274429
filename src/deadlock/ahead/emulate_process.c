/* SPDX-License-Identifier: Apache-2.0 */
/* emulate_process.c - the ends of threads and processes, signals, identities, clocks. */
#include "deadlock/ahead/emulate.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* ---- ends ------------------------------------------------------------------------------------ */

static unsigned threads_of(const struct deadlock_copy *c)
{
	char text[PROC_TEXT_MAX];
	static const char name[] = "\nThreads:";
	if (os_proc_read(c->process->pid, "status", text, sizeof text) <= 0)
		return 0;
	const char *at = strstr(text, name);
	return at ? (unsigned)strtoul(at + sizeof name - 1, NULL, 10) : 0;
}

/* What the kernel gives back for a process that ends: what it was the last to take (SEM_UNDO). */
static void give_back_semaphores(struct deadlock_copy *c)
{
	size_t nr_sets;
	const int *set = deadlock_world_undo_sets(c->world, &nr_sets);
	for (size_t i = 0; i < nr_sets; i++) {
		struct semid_ds about = {0};
		union {
			struct semid_ds *about;
		} to = {.about = &about};
		if (semctl(set[i], 0, IPC_STAT, to) != 0)
			continue;
		for (int n = 0; n < (int)about.sem_nsems && !c->is_done; n++) {
			const struct deadlock_key key = {.kind = DEADLOCK_KEY_SYSV_SEM,
				.id = (uint64_t)set[i],
				.at = (uint64_t)n};
			if (semctl(set[i], n, GETNCNT) > 0 &&
				semctl(set[i], n, GETPID) == (int)c->process->pid)
				deadlock_copy_event(c, &key);
		}
	}
}

/* The thread (the whole process) would end: its events, and the end of the run. */
static int64_t copy_exit(struct deadlock_copy *c, bool whole)
{
	const struct deadlock_thread *t = &c->wait->thread;
	struct deadlock_key key = {.kind = DEADLOCK_KEY_THREAD_EXIT,
		.space = (uint64_t)t->pid,
		.id = (uint64_t)t->tid};
	if (!whole)
		deadlock_copy_event(c, &key);
	if (whole || threads_of(c) == 1) {
		key = (struct deadlock_key){
			.kind = DEADLOCK_KEY_PROCESS_EXIT, .id = (uint64_t)t->pid};
		deadlock_copy_event(c, &key);
		c->is_exiting = true;
		c->events_max = DEADLOCK_EVENTS_MAX; /* one thing happens, with many parts */
		give_back_semaphores(c);
		deadlock_process_files(c->world, c->process);
		for (size_t i = 0; i < c->process->nr_files && !c->is_done; i++)
			deadlock_copy_closing(c, c->process->file[i].fd);
	}
	deadlock_copy_end(c, DEADLOCK_END_EXITED, "%s", whole ? "its process" : "its thread");
	return 0;
}

int64_t deadlock_emulate_exit(struct deadlock_copy *c, const uint64_t *arg)
{
	(void)arg;
	return copy_exit(c, false);
}

int64_t deadlock_emulate_exit_group(struct deadlock_copy *c, const uint64_t *arg)
{
	(void)arg;
	return copy_exit(c, true);
}

/* The parent goes on with a child that does nothing; what a real one would do nobody knows. */
int64_t deadlock_emulate_fork(struct deadlock_copy *c, const uint64_t *arg)
{
	(void)arg;
	deadlock_copy_taint(c, "it made a process or thread, whose doings are unknown");
	return DEADLOCK_COPY_FAKE_PID + (int64_t)c->fakes++;
}

/* ---- signals --------------------------------------------------------------------------------- */

static int64_t send_signal(struct deadlock_copy *c, int64_t pid, int signal)
{
	const struct deadlock_key key = {
		.kind = DEADLOCK_KEY_SIGNAL, .space = (uint64_t)(pid < 0 ? -pid : pid)};
	if (!signal)
		return 0;
	if (pid == c->process->pid && (signal == SIGKILL || signal == SIGABRT))
		return copy_exit(c, true);
	deadlock_copy_event(c, &key);
	return 0;
}

int64_t deadlock_emulate_kill(struct deadlock_copy *c, const uint64_t *arg)
{
	const int64_t pid = (int)arg[0];
	return send_signal(c, pid ? pid : c->process->pid, (int)arg[1]);
}

int64_t deadlock_emulate_tgkill(struct deadlock_copy *c, const uint64_t *arg)
{
	return send_signal(c, (int)arg[0], (int)arg[2]);
}

/* No signal reaches a copy, so no handler ever runs: what was set before is not looked up. */
int64_t deadlock_emulate_sigaction(struct deadlock_copy *c, const uint64_t *arg)
{
	const uint64_t before[4] = {0};
	return arg[2] && !deadlock_copy_poke(c, arg[2], before, sizeof before) ? -EFAULT : 0;
}

int64_t deadlock_emulate_sigprocmask(struct deadlock_copy *c, const uint64_t *arg)
{
	uint64_t set = 0;
	if (arg[1] && !deadlock_copy_peek(c, arg[1], &set, sizeof set))
		return -EFAULT;
	if (arg[2] && !deadlock_copy_poke(c, arg[2], &c->signal_mask, sizeof c->signal_mask))
		return -EFAULT;
	if (!arg[1])
		return 0;
	if (arg[0] == SIG_BLOCK)
		c->signal_mask |= set;
	else if (arg[0] == SIG_UNBLOCK)
		c->signal_mask &= ~set;
	else
		c->signal_mask = set;
	return 0;
}

/* ---- who it is: as the process itself would be told ------------------------------------------ */

static int64_t own_id(const struct deadlock_copy *c, const char *name, int64_t outside)
{
	/* NSpid's last number is the id in the process's own namespace */
	char text[PROC_TEXT_MAX];
	if (os_proc_read_task(c->wait->thread.pid, (pid_t)outside, "status", text, sizeof text) <=
		0)
		return outside;
	const char *at = strstr(text, name);
	const char *end = at ? strchr(at + 1, '\n') : NULL;
	if (!end)
		return outside;
	while (end > at && end[-1] != '\t')
		end--;
	return strtoll(end, NULL, 10);
}

int64_t deadlock_emulate_getpid(struct deadlock_copy *c, const uint64_t *arg)
{
	(void)arg;
	return own_id(c, "\nNStgid:", c->wait->thread.pid);
}

int64_t deadlock_emulate_gettid(struct deadlock_copy *c, const uint64_t *arg)
{
	(void)arg;
	return own_id(c, "\nNSpid:", c->wait->thread.tid);
}

int64_t deadlock_emulate_getppid(struct deadlock_copy *c, const uint64_t *arg)
{
	(void)arg;
	return c->process->parent;
}

static bool owner_of(const struct deadlock_copy *c, struct stat *ret)
{
	char path[32];
	(void)snprintf(path, sizeof path, "/proc/%d", (int)c->process->pid);
	return stat(path, ret) == 0;
}

int64_t deadlock_emulate_getuid(struct deadlock_copy *c, const uint64_t *arg)
{
	(void)arg;
	return (int64_t)c->process->status.uid;
}

int64_t deadlock_emulate_getgid(struct deadlock_copy *c, const uint64_t *arg)
{
	struct stat s;
	(void)arg;
	return owner_of(c, &s) ? (int64_t)s.st_gid : 0;
}

int64_t deadlock_emulate_sched_getaffinity(struct deadlock_copy *c, const uint64_t *arg)
{
	cpu_set_t set;
	const size_t size = arg[1] < sizeof set ? (size_t)arg[1] : sizeof set;
	if (sched_getaffinity(c->wait->thread.tid, sizeof set, &set))
		return -errno;
	return deadlock_copy_poke(c, arg[2], &set, size) ? (int64_t)size : -EFAULT;
}

int64_t deadlock_emulate_uname(struct deadlock_copy *c, const uint64_t *arg)
{
	struct utsname name;
	(void)uname(&name);
	return deadlock_copy_poke(c, arg[0], &name, sizeof name) ? 0 : -EFAULT;
}

int64_t deadlock_emulate_getpgid(struct deadlock_copy *c, const uint64_t *arg)
{
	(void)arg;
	return getpgid(c->process->pid);
}

int64_t deadlock_emulate_getsid(struct deadlock_copy *c, const uint64_t *arg)
{
	(void)arg;
	return getsid(c->process->pid);
}

static int64_t emulate_process_limit_of(
	struct deadlock_copy *c, uint64_t resource, uint64_t address)
{
	struct rlimit limit;
	if (prlimit(c->process->pid, (__rlimit_resource_t)resource, NULL, &limit))
		return -errno;
	return !address || deadlock_copy_poke(c, address, &limit, sizeof limit) ? 0 : -EFAULT;
}

int64_t deadlock_emulate_getrlimit(struct deadlock_copy *c, const uint64_t *arg)
{
	return emulate_process_limit_of(c, arg[0], arg[1]);
}

/* A new limit is not set. */
int64_t deadlock_emulate_prlimit(struct deadlock_copy *c, const uint64_t *arg)
{
	return emulate_process_limit_of(c, arg[1], arg[3]);
}

int64_t deadlock_emulate_getrusage(struct deadlock_copy *c, const uint64_t *arg)
{
	const struct rusage nothing = {0};
	return deadlock_copy_poke(c, arg[1], &nothing, sizeof nothing) ? 0 : -EFAULT;
}

int64_t deadlock_emulate_sysinfo(struct deadlock_copy *c, const uint64_t *arg)
{
	struct sysinfo info;
	(void)sysinfo(&info);
	return deadlock_copy_poke(c, arg[0], &info, sizeof info) ? 0 : -EFAULT;
}

/* ---- clocks and chance ----------------------------------------------------------------------- */

int64_t deadlock_emulate_clock_gettime(struct deadlock_copy *c, const uint64_t *arg)
{
	struct timespec now;
	/* a processor-time clock would be ours: monotonic time is as good */
	const int64_t clock = (int)arg[0];
	const bool is_cpu =
		clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
	if (clock_gettime(is_cpu ? CLOCK_MONOTONIC : (clockid_t)clock, &now))
		return -errno;
	return deadlock_copy_poke(c, arg[1], &now, sizeof now) ? 0 : -EFAULT;
}

int64_t deadlock_emulate_clock_getres(struct deadlock_copy *c, const uint64_t *arg)
{
	const struct timespec one = {.tv_nsec = 1};
	return !arg[1] || deadlock_copy_poke(c, arg[1], &one, sizeof one) ? 0 : -EFAULT;
}

int64_t deadlock_emulate_gettimeofday(struct deadlock_copy *c, const uint64_t *arg)
{
	struct timeval now;
	(void)gettimeofday(&now, NULL);
	return !arg[0] || deadlock_copy_poke(c, arg[0], &now, sizeof now) ? 0 : -EFAULT;
}

int64_t deadlock_emulate_time(struct deadlock_copy *c, const uint64_t *arg)
{
	const int64_t now = (int64_t)time(NULL);
	return arg[0] && !deadlock_copy_poke(c, arg[0], &now, sizeof now) ? -EFAULT : now;
}

/* The same bytes each time, so that a second look sees the same. */
int64_t deadlock_emulate_getrandom(struct deadlock_copy *c, const uint64_t *arg)
{
	const size_t size = arg[1] < DEADLOCK_COPY_IO_MAX ? (size_t)arg[1] : DEADLOCK_COPY_IO_MAX;
	for (size_t i = 0; i < size; i++)
		c->io[i] = (uint8_t)base_hash_u64(i + 1);
	return deadlock_copy_poke(c, arg[0], c->io, size) ? (int64_t)size : -EFAULT;
}
