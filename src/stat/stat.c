/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stat.c - `longpole stat`'s session: start the program, stop its threads at birth and end.
 *
 * ptrace by PTRACE_SEIZE: no signals of ours in the program, group stops stay what they are.
 * Signals of the program pass through us. If we die, it runs on.
 */
#include "stat/stat.h"
#include "os/proc.h"

#include "base/installed.h"
#include "counter/counter_priv.h"
#include "counter/phase.h"
#include "counter/slots.h"
#include "os/clock.h"
#include "os/links.h"
#include "os/sanitizer.h"
#include "session/session.h"
#include "os/launch.h"
#include "system/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	NS_PER_S = 1000000000,
	OPTIONS_OF_PTRACE = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			    PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT
};

/* What we know of a live thread besides its row. */
struct live {
	struct stat_counts base; /* what it had done before the program began */
	int fd[STAT_EVENTS_MAX];
	bool born; /* was stopped once */
};

struct session {
	const struct stat_options *options;
	struct stat_result *s;
	struct live *live; /* beside s->thread */
	size_t live_capacity;
	struct base_map rows; /* tid -> row of the thread that has it now */
	pid_t main;
	uint64_t start_ns;
	bool started, leaving; /* leaving: the program has ended; let the others go */
	sigset_t waited, before;
	struct stat_counts launched; /* of the program's first thread, up to its exec */
	uint64_t own_rss_kb;         /* the most that we had when we forked it */
	struct system_slots *slots;  /* NULL: system calls are not counted */
};

/* ---- threads --------------------------------------------------------------------------------- */

/* "Tgid:\t123" of /proc/TID/status; the tid itself when it is gone. */
static pid_t stat_process_of(pid_t tid)
{
	char text[512];
	uint64_t pid = 0;
	if (os_proc_read(tid, "status", text, sizeof text) > 0)
		(void)os_parse_field(text, "Tgid", 10, &pid);
	return pid > 0 && pid <= INT32_MAX ? (pid_t)pid : tid;
}

static bool stat_row_of(const struct session *session, pid_t tid, size_t *ret)
{
	uint64_t row;
	if (!base_map_get(&session->rows, 0, (uint64_t)tid, &row))
		return false;
	*ret = (size_t)row;
	return true;
}

/* The thread's row, made at its birth or first stop; false: no more room. */
static bool row_get(struct session *session, pid_t tid, size_t *ret)
{
	struct stat_result *s = session->s;
	size_t row = s->nr_threads;
	if (stat_row_of(session, tid, ret))
		return true;
	if (row >= STAT_THREADS_MAX ||
		base_grow(&s->thread, &s->threads_capacity, row + 1, sizeof *s->thread) !=
			BASE_OK ||
		base_grow(&session->live, &session->live_capacity, row + 1,
			sizeof *session->live) != BASE_OK ||
		base_map_put(&session->rows, 0, (uint64_t)tid, row) != BASE_OK) {
		s->missed_threads++;
		return false;
	}
	s->nr_threads++;
	s->thread[row] = (struct stat_thread){.tid = tid,
		.pid = stat_process_of(tid),
		.begin_ns = os_time_ns(CLOCK_MONOTONIC) - session->start_ns};
	session->live[row] = (struct live){0};
	for (size_t i = 0; i < STAT_EVENTS_MAX; i++)
		session->live[row].fd[i] = -1;
	s->nr_processes += s->thread[row].pid == tid;
	*ret = row;
	return true;
}

static void subtract(struct stat_counts *c, const struct stat_counts *base)
{
	c->task_ns -= base->task_ns;
	c->runqueue_ns -= base->runqueue_ns;
	c->user_ticks -= base->user_ticks;
	c->kernel_ticks -= base->kernel_ticks;
	c->voluntary -= base->voluntary;
	c->forced -= base->forced;
	c->migrations -= base->migrations;
	c->minor_faults -= base->minor_faults;
	c->major_faults -= base->major_faults;
}

/* Its accounts now; its tid may be another's afterwards. */
static void stat_take(struct session *session, size_t row, bool ended)
{
	struct stat_thread *t = &session->s->thread[row];
	struct live *live = &session->live[row];
	struct stat_counts counts = {0};
	t->missed = !stat_read(t, &counts);
	stat_events_end(t, &counts, live->fd);
	if (session->slots) {
		uint32_t lost;
		t->has_calls = system_slots_take(
			session->slots, t->tid, &counts.call_ns, &counts.calls, &lost);
		t->lost_calls = lost;
		session->s->lost_calls += lost;
	}
	if (!t->missed) {
		if (counts.peak_kb > session->s->peak_kb)
			session->s->peak_kb = counts.peak_kb;
		subtract(&counts, &live->base);
		counts.voluntary -= t->stops < counts.voluntary ? t->stops : counts.voluntary;
		t->counts = counts;
	}
	t->end_ns = os_time_ns(CLOCK_MONOTONIC) - session->start_ns;
	t->ended = ended;
	base_map_remove(&session->rows, 0, (uint64_t)t->tid);
}

/* The program begins: what its process did before, as our child, is not its. */
static void begin_program(struct session *session, size_t row)
{
	struct stat_thread *t = &session->s->thread[row];
	struct stat_counts base = {0};
	if (stat_read(t, &base))
		session->live[row].base = session->launched = base;
	t->stops = 0;
	if (session->slots)
		(void)system_slots_register(session->slots, t->tid);
	stat_events_open(session->options, session->s, t->tid, session->live[row].fd);
	session->start_ns = os_time_ns(CLOCK_MONOTONIC);
	t->begin_ns = 0;
	session->started = true;
}

/* ---- stops ----------------------------------------------------------------------------------- */

static void stat_go_on(const struct session *session, pid_t tid, int signal_number)
{
	ptrace(session->leaving ? PTRACE_DETACH : PTRACE_CONT, tid, NULL,
		(void *)(intptr_t)signal_number);
}

static bool is_group_stop(int signal_number)
{
	return signal_number == SIGSTOP || signal_number == SIGTSTP || signal_number == SIGTTIN ||
	       signal_number == SIGTTOU;
}

/* Exec of a thread that is not the first one: it takes the first one's number; the first one's own
 * end came before. */
static void exec_renames(struct session *session, pid_t tid)
{
	unsigned long former = 0;
	size_t row;
	session->s->nr_images++;
	ptrace(PTRACE_GETEVENTMSG, tid, NULL, &former);
	if (!former || (pid_t)former == tid || !stat_row_of(session, (pid_t)former, &row))
		return;
	base_map_remove(&session->rows, 0, former);
	session->s->thread[row].tid = tid;
	if (base_map_put(&session->rows, 0, (uint64_t)tid, row) != BASE_OK)
		session->s->missed_threads++;
}

static void event_stop(struct session *session, pid_t tid, size_t row, int event, int number)
{
	struct live *live = &session->live[row];
	unsigned long child = 0;
	size_t child_row;
	switch (event) {
	case PTRACE_EVENT_EXEC:
		if (!session->started)
			begin_program(session, row);
		break;
	case PTRACE_EVENT_EXIT:
		if (session->started)
			stat_take(session, row, true);
		break;
	case PTRACE_EVENT_STOP:
		if (session->started && !live->born) {
			stat_events_open(session->options, session->s, tid, live->fd);
			if (session->slots)
				(void)system_slots_register(session->slots, tid);
		}
		live->born = true;
		if (is_group_stop(number) && !session->leaving) {
			ptrace(PTRACE_LISTEN, tid, NULL, NULL);
			return;
		}
		break;
	default: /* births: what the program leaves behind before its first stop is known, too */
		if (!ptrace(PTRACE_GETEVENTMSG, tid, NULL, &child) && child)
			(void)row_get(session, (pid_t)child, &child_row);
		break;
	}
	if (session->leaving && event != PTRACE_EVENT_EXIT && stat_row_of(session, tid, &row))
		stat_take(session, row, false);
	stat_go_on(session, tid, 0);
}

static void stopped(struct session *session, pid_t tid, int status)
{
	int event = status >> 16, number = WSTOPSIG(status);
	size_t row;
	if (event == PTRACE_EVENT_EXEC)
		exec_renames(session, tid);
	if (!row_get(session, tid, &row)) {
		stat_go_on(session, tid, event ? 0 : number);
		return;
	}
	session->s->thread[row].stops++;
	if (event) {
		event_stop(session, tid, row, event, number);
		return;
	}
	session->s->signals++;
	if (session->leaving)
		stat_take(session, row, false);
	stat_go_on(session, tid, number);
}

/* A thread is gone. One that we did not see go was killed by another's exec or by SIGKILL. */
static void gone(struct session *session, pid_t tid)
{
	struct stat_result *s = session->s;
	size_t row;
	if (!stat_row_of(session, tid, &row))
		return;
	for (size_t i = 0; i < STAT_EVENTS_MAX; i++)
		if (session->live[row].fd[i] >= 0)
			close(session->live[row].fd[i]);
	s->thread[row].missed = s->thread[row].ended = true;
	s->thread[row].end_ns = os_time_ns(CLOCK_MONOTONIC) - session->start_ns;
	base_map_remove(&session->rows, 0, (uint64_t)tid);
}

static bool interrupt_one(void *ctx, uint64_t hi, uint64_t tid, uint64_t row)
{
	(void)ctx, (void)hi, (void)row;
	ptrace(PTRACE_INTERRUPT, (pid_t)tid, NULL, NULL);
	return true;
}

static void less(uint64_t *value, uint64_t by)
{
	*value -= by < *value ? by : *value;
}

/* What the kernel says of the process has what it was as our child: our memory, a part of which may
 * be more than all of the program's, and the time of the exec, which is in the kernel. */
static void without_ours(const struct session *session, struct stat_result *s)
{
	const struct stat_counts *before = &session->launched;
	uint64_t us = before->task_ns / 1000, kernel_us = us < s->kernel_us ? us : s->kernel_us;
	less(&s->kernel_us, kernel_us);
	less(&s->user_us, us - kernel_us);
	less(&s->voluntary, before->voluntary);
	less(&s->forced, before->forced);
	less(&s->minor_faults, before->minor_faults);
	less(&s->major_faults, before->major_faults);
	if (s->peak_kb && s->max_rss_kb <= session->own_rss_kb)
		s->max_rss_kb = s->peak_kb;
}

static void program_ended(struct session *session, int status, const struct rusage *usage)
{
	struct stat_result *s = session->s;
	s->wait_status = status;
	s->elapsed_ns = os_time_ns(CLOCK_MONOTONIC) - session->start_ns;
	s->user_us =
		(uint64_t)usage->ru_utime.tv_sec * 1000000u + (uint64_t)usage->ru_utime.tv_usec;
	s->kernel_us =
		(uint64_t)usage->ru_stime.tv_sec * 1000000u + (uint64_t)usage->ru_stime.tv_usec;
	s->voluntary = (uint64_t)usage->ru_nvcsw;
	s->forced = (uint64_t)usage->ru_nivcsw;
	s->minor_faults = (uint64_t)usage->ru_minflt;
	s->major_faults = (uint64_t)usage->ru_majflt;
	s->max_rss_kb = (uint64_t)usage->ru_maxrss;
	without_ours(session, s);
	s->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	session->leaving = true;
	base_map_each(&session->rows, interrupt_one, NULL);
}

/* Everything that has happened. False: nobody is left. */
static bool stat_drain(struct session *session)
{
	for (;;) {
		struct rusage usage;
		int status;
		pid_t tid = wait4(-1, &status, __WALL | WNOHANG, &usage);
		if (tid < 0 && errno == EINTR)
			continue;
		if (tid < 0)
			return false;
		if (!tid)
			return !session->leaving || session->rows.nr_used > 0;
		if (WIFSTOPPED(status)) {
			stopped(session, tid, status);
			continue;
		}
		gone(session, tid);
		if (tid == session->main)
			program_ended(session, status, &usage);
	}
}

/* Signals to us are for the program, unless the terminal sent them to both. */
static void stat_watch(struct session *session)
{
	while (stat_drain(session)) {
		siginfo_t info;
		int number = sigwaitinfo(&session->waited, &info);
		if (number > 0 && number != SIGCHLD && info.si_code <= 0 && !session->leaving)
			kill(session->main, number);
	}
}

/* ---- the program ----------------------------------------------------------------------------- */

struct launch {
	int go[2], fail[2];
};

static void put_library_first(const char *library, const char *file_path)
{
	const char *before = getenv("LD_PRELOAD");
	struct base_str both = {0};
	base_str_addf(&both, "%s%s%s", library, before && *before ? ":" : "", before ? before : "");
	if (!both.failed && !setenv("LD_PRELOAD", base_str_text(&both), 1))
		setenv(PHASE_ENVIRONMENT, file_path, 1);
	base_str_fini(&both);
}

_Noreturn static void stat_run_child(const struct session *session, const struct launch *launch,
	const char *library, const char *file_path)
{
	char byte;
	ssize_t n;
	close(launch->go[1]);
	do
		n = read(launch->go[0], &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(SESSION_EXIT_OURS); /* allowed: the child that becomes the program */
	if (*library)
		put_library_first(library, file_path);
	if (session->slots) {
		char place[SYSTEM_SLOTS_ENV_BYTES];
		system_slots_environment(session->slots, place);
		setenv(COUNTER_SLOTS_ENVIRONMENT, place, 1);
	}
	sigprocmask(SIG_SETMASK, &session->before, NULL);
	execvp(session->options->argv[0], session->options->argv);
	int why = errno;
	(void)!write(launch->fail[1], &why, sizeof why);
	_exit(SESSION_EXIT_NOT_FOUND); /* allowed: the same child */
}

/* "": phases are not seen. */
static void find_library(char path[PATH_MAX], struct os_links *links, struct stat_result *s)
{
	char found[PATH_MAX];
	struct base_err err = {0};
	bool good = base_installed_file("src/counter", "liblongpole-stat.so", found);
	if (good && os_links_way(links, found, path, &err) == BASE_OK)
		return;
	*path = 0;
	if (good)
		snprintf(s->no_phases_why, sizeof s->no_phases_why, "%.150s", err.cause[0]);
	else
		snprintf(s->no_phases_why, sizeof s->no_phases_why, "there is no %.150s", found);
}

/* The reason why the program cannot be stopped; it then runs without. */
static void seize(struct session *session)
{
	struct stat_result *s = session->s;
	if (!session->options->by_thread) {
		snprintf(s->no_threads_why, sizeof s->no_threads_why, "not asked for");
		return;
	}
	char program[PATH_MAX];
	int exit_code;
	const struct os_sanitizer *by = NULL;
	if (os_find_program(session->options->argv[0], program, &exit_code, NULL) == BASE_OK)
		by = os_sanitizer_of(program);
	if (by && by->no_ptrace) {
		snprintf(s->no_threads_why, sizeof s->no_threads_why,
			"the program was built with %s, which does not work under ptrace",
			by->name);
		return;
	}
	if (!ptrace(PTRACE_SEIZE, session->main, NULL, (void *)(uintptr_t)OPTIONS_OF_PTRACE))
		return;
	snprintf(s->no_threads_why, sizeof s->no_threads_why,
		"ptrace is refused (%s): is longpole itself traced, or forbidden it?",
		strerror(errno));
}

static enum base_status stat_start(struct session *session, const char *library,
	const char *file_path, struct launch *launch, struct base_err *err)
{
	struct stat_result *s = session->s;
	int why = 0;
	ssize_t n;
	if (pipe2(launch->go, O_CLOEXEC) || pipe2(launch->fail, O_CLOEXEC))
		return base_fail_errno(err, errno, "cannot make a pipe");
	session->main = fork();
	if (session->main < 0)
		return base_fail_errno(err, errno, "cannot fork");
	if (!session->main)
		stat_run_child(session, launch, library, file_path);
	struct rusage own;
	getrusage(RUSAGE_SELF, &own);
	session->own_rss_kb = (uint64_t)own.ru_maxrss;
	session->start_ns = os_time_ns(CLOCK_MONOTONIC);
	s->stolen_ns = os_clock_stolen_ns();
	seize(session);
	(void)!write(launch->go[1], "", 1);
	close(launch->fail[1]);
	launch->fail[1] = -1;
	stat_watch(session);
	s->stolen_ns = os_clock_stolen_ns() - s->stolen_ns;
	n = read(launch->fail[0], &why, sizeof why);
	if (n != (ssize_t)sizeof why)
		return BASE_OK;
	s->exit_code = why == ENOENT || why == ENOTDIR ? SESSION_EXIT_NOT_FOUND
						       : SESSION_EXIT_NOT_EXECUTABLE;
	return base_fail_errno(err, why, "cannot run '%s'", session->options->argv[0]);
}

static void block_signals(struct session *session)
{
	static const int number[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP};
	sigemptyset(&session->waited);
	for (size_t i = 0; i < BASE_COUNT(number); i++)
		sigaddset(&session->waited, number[i]);
	sigprocmask(SIG_BLOCK, &session->waited, &session->before);
}

static bool stat_any_alive(const struct stat_result *s)
{
	for (size_t i = 0; i < s->nr_threads; i++)
		if (!s->thread[i].ended)
			return true;
	return false;
}

enum base_status stat_run(
	const struct stat_options *options, struct stat_result *ret, struct base_err *err)
{
	struct session session = {.options = options, .s = ret};
	struct launch launch = {{-1, -1}, {-1, -1}};
	char library[PATH_MAX], file_path[64];
	struct os_links links = {0};
	int fd = -1;
	*ret = (struct stat_result){.exit_code = SESSION_EXIT_OURS,
		.wait_status = -1,
		.tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK)};
	struct phase_file *file = stat_phases_make(options, &fd);
	snprintf(file_path, sizeof file_path, "/proc/%d/fd/%d", (int)getpid(), fd);
	find_library(library, &links, ret);
	if (!file)
		*library = 0;
	if (options->kernel_time)
		session.slots = system_slots_open(ret->no_calls_why);
	block_signals(&session);
	enum base_status status = stat_start(&session, library, file_path, &launch, err);
	sigprocmask(SIG_SETMASK, &session.before, NULL);
	if (status == BASE_OK && file)
		status = stat_phases_read(file, ret, err);
	for (int i = 0; i < 2; i++) {
		if (launch.go[i] >= 0)
			close(launch.go[i]);
		if (launch.fail[i] >= 0)
			close(launch.fail[i]);
	}
	stat_phases_free(file, fd);
	system_slots_close(session.slots);
	base_map_fini(&session.rows);
	base_free(session.live);
	if (!stat_any_alive(ret))
		os_links_remove(&links);
	return status;
}

void stat_fini(struct stat_result *s)
{
	base_free(s->thread);
	base_free(s->phase);
	*s = (struct stat_result){0};
}
