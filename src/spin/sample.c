/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - a live process, looked at again and again: one burst a sample. */
#include "spin/cycles.h"
#include "os/proc.h"
#include "os/clock.h"
#include "spin/names.h"
#include "spin/reach.h"
#include "spin/tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	NS_PER_S = 1000000000,
	LOOK_EVERY_NS = 200 * 1000 * 1000, /* for livelock */
	NICE = -10,                        /* samples must not wait behind those that spin */
	ALL_SPIN = 2, /* samples that spin and none between that does not, before all are stopped */
};

struct session {
	const struct spin_sample_options *o;
	struct spin_answer *a;
	struct spin_stepper *stepper;
	struct spin_names *names;
	pid_t pid;
	bool child, ended;
	uint64_t start_ns, looked_ns, random;
	uint32_t spin_streak;
	uint64_t signature; /* of the last look for livelock */
	bool signed_once;
};

/* ---- threads and loops ----------------------------------------------------------------------- */

static void sample_read_name(struct spin_thread *t, pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)pid, (int)t->id);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, t->name, sizeof t->name - 1) : 0;
	if (fd >= 0)
		close(fd);
	t->name[n > 0 ? n : 0] = 0;
	t->name[strcspn(t->name, "\n")] = 0;
}

static struct spin_thread *thread_get(struct session *s, pid_t tid)
{
	struct spin_answer *a = s->a;
	struct spin_thread *t = spin_thread_of(a, (uint64_t)tid);
	if (t)
		return t;
	if (a->nr_threads == SPIN_THREADS_MAX || base_grow(&a->thread, &a->threads_capacity,
							 a->nr_threads + 1, sizeof *t) != BASE_OK)
		return NULL;
	t = &a->thread[a->nr_threads++];
	*t = (struct spin_thread){.id = (uint64_t)tid};
	sample_read_name(t, s->pid);
	return t;
}

static struct spin_loop *loop_get(struct session *s, pid_t tid, const struct spin_burst *b)
{
	struct spin_answer *a = s->a;
	struct spin_loop *l;
	for (size_t i = 0; i < a->nr_loops; i++)
		if (a->loop[i].thread == (uint64_t)tid && a->loop[i].branch.address == b->branch)
			return &a->loop[i];
	if (a->nr_loops == SPIN_LOOPS_MAX ||
		base_grow(&a->loop, &a->loops_capacity, a->nr_loops + 1, sizeof *l) != BASE_OK) {
		a->lost_loops++;
		return NULL;
	}
	l = &a->loop[a->nr_loops++];
	*l = (struct spin_loop){.thread = (uint64_t)tid};
	spin_names_code(s->names, b->branch, &l->branch);
	spin_names_code(s->names, b->begins, &l->begins);
	return l;
}

static void sample_add_word(struct session *s, struct spin_loop *l, const struct spin_word *w)
{
	for (size_t i = 0; i < l->nr_polled; i++)
		if (l->polled[i].address == w->address) {
			l->polled[i].value = w->value;
			return;
		}
	if (l->nr_polled == SPIN_WORDS) {
		l->more_polled = true;
		return;
	}
	struct spin_polled *p = &l->polled[l->nr_polled++];
	*p = (struct spin_polled){
		.address = w->address, .value = w->value, .own_stack = w->own_stack};
	spin_names_data(s->names, p);
}

static void sample_count(struct session *s, pid_t tid, const struct spin_burst *b)
{
	struct spin_answer *a = s->a;
	struct spin_thread *t = thread_get(s, tid);
	a->stopped_ns += b->stopped_ns;
	a->nr_steps += b->steps;
	if (b->stopped_ns > a->longest_stop_ns)
		a->longest_stop_ns = b->stopped_ns;
	if (b->verdict == SPIN_REFUSED)
		a->refused = b->why;
	if (!t || b->verdict == SPIN_GONE)
		return;
	a->nr_samples++;
	t->samples[b->verdict]++;
	/* One that was cut short says nothing, neither way: others had the processor. For who is
	 * after livelock these may be those that spin, and only stopped together do they make room.
	 */
	if (b->verdict == SPIN_SPINS)
		s->spin_streak++;
	else if (b->verdict != SPIN_CUT)
		s->spin_streak = 0;
	else if (s->o->until_livelock)
		s->spin_streak++;
	if (b->verdict != SPIN_SPINS && b->verdict != SPIN_COUNTS)
		return;
	struct spin_loop *l = loop_get(s, tid, b);
	if (!l)
		return;
	l->samples_spin += b->verdict == SPIN_SPINS;
	l->samples_count += b->verdict == SPIN_COUNTS;
	l->yields |= b->yields;
	if (b->loop_instructions)
		l->loop_instructions = b->loop_instructions;
	l->more_polled |= b->more_words;
	for (uint32_t i = 0; i < b->nr_words; i++)
		sample_add_word(s, l, &b->word[i]);
}

/* ---- livelock -------------------------------------------------------------------------------- */

/* Does it sleep where only a thread of its process can wake it: in a futex wait without a timeout?
 */
static bool sleeps_for_ever(pid_t pid, pid_t tid)
{
	enum { FUTEX = 202, WAIT = 0, WAIT_BITSET = 9, CMD = 127, PRIVATE = 128 };
	char text[256];
	unsigned long long value[5] = {0};
	if (os_proc_read_task(pid, tid, "syscall", text, sizeof text) <= 0)
		return false;
	char *at = text;
	for (size_t i = 0; i < BASE_COUNT(value); i++)
		value[i] = strtoull(at, &at, 0);
	/* (one that waits for the end of a thread does so on a word that is not private) */
	unsigned long long op = value[2] & CMD;
	return value[0] == FUTEX && (op == WAIT || op == WAIT_BITSET) && !value[4];
}

static bool sample_has_handlers(pid_t pid)
{
	char text[4096];
	/* glibc's own two, for cancellation and set*id(), are none */
	const uint64_t own = UINT64_C(3) << 31;
	if (os_proc_read_task(pid, pid, "status", text, sizeof text) <= 0)
		return true;
	const char *line = strstr(text, "\nSigCgt:");
	return !line || (strtoull(line + 8, NULL, 16) & ~own);
}

static uint64_t mix(uint64_t sum, uint64_t x)
{
	return base_hash_u64(sum ^ x) + 1;
}

struct all { /* threads that are stopped */
	pid_t *tid;
	struct spin_stop *stop;
	size_t nr;
};

static void sample_stop_all(
	pid_t pid, const pid_t *task, size_t nr, struct all *all, struct spin_standstill *ret)
{
	struct spin_burst b;
	size_t asked = 0;
	for (; asked < nr; asked++)
		if (!spin_ask(pid, task[asked], &all->stop[asked], &b)) {
			ret->nr_other++;
			break;
		}
	for (size_t i = 0; i < asked; i++) {
		const struct spin_stop stop = all->stop[i];
		all->stop[all->nr] = stop;
		if (!spin_await(&all->stop[all->nr], &b)) {
			ret->nr_other++;
			continue;
		}
		all->tid[all->nr++] = stop.tid;
	}
}

/* What another process could write, that one may end. */
static void look_at_words(
	pid_t pid, pid_t tid, const struct spin_burst *b, struct spin_standstill *ret)
{
	if (b->more_words)
		ret->open = "a thread polls more words than were looked at";
	for (uint32_t i = 0; i < b->nr_words && !ret->open; i++)
		ret->open = spin_reach_of_others(pid, tid, b->word[i].address);
}

static void step_all(struct spin_stepper *s, pid_t pid, struct all *all,
	const struct spin_limits *limits, struct spin_standstill *ret, uint64_t *ret_signature)
{
	struct spin_burst b;
	for (size_t i = 0; i < all->nr; i++) {
		spin_step(s, &all->stop[i], limits, &b);
		if (b.verdict != SPIN_SPINS) {
			ret->nr_other++;
			return; /* one that works is enough */
		}
		ret->nr_spinning++;
		look_at_words(pid, all->tid[i], &b, ret);
		*ret_signature = mix(mix(*ret_signature, (uint64_t)all->tid[i]), b.branch);
		for (uint32_t k = 0; k < b.nr_words; k++)
			*ret_signature =
				mix(mix(*ret_signature, b.word[k].address), b.word[k].value);
	}
}

/* Those that are not stopped by us: all asleep for good? */
static void look_at_sleepers(pid_t pid, const struct all *all, const pid_t *task, size_t nr_tasks,
	struct spin_standstill *ret)
{
	for (size_t i = 0; i < nr_tasks; i++) {
		bool stopped = false;
		for (size_t k = 0; k < all->nr; k++)
			stopped |= all->tid[k] == task[i];
		if (stopped)
			continue;
		if (spin_is_running(pid, task[i]))
			ret->nr_other++;
		ret->nr_asleep++;
		if (!sleeps_for_ever(pid, task[i]))
			ret->open = "a thread sleeps that something else may wake";
	}
}

/* Stops all threads of the process that can run, steps each, lets them go. */
static void look_for_livelock(struct spin_stepper *s, pid_t pid, const struct spin_limits *limits,
	struct spin_standstill *ret, uint64_t *ret_signature)
{
	pid_t *task = base_alloc(2 * SPIN_TASKS_MAX * sizeof *task);
	struct all all = {.tid = task ? task + SPIN_TASKS_MAX : NULL,
		.stop = base_alloc(SPIN_TASKS_MAX * sizeof *all.stop)};
	uint64_t began_ns = os_time_ns(CLOCK_MONOTONIC);
	size_t nr_all;
	*ret = (struct spin_standstill){.has_handlers = true};
	*ret_signature = 0;
	if (!task || !all.stop)
		goto out;
	size_t nr = spin_running_tasks(pid, task, &nr_all);
	sample_stop_all(pid, task, nr, &all, ret);
	/* each waits for those before it */
	struct spin_limits each = *limits;
	each.stop_ns *= all.nr;
	if (!ret->nr_other)
		step_all(s, pid, &all, &each, ret, ret_signature);
	/* Nobody has begun to run meanwhile, and sleepers still sleep. */
	if (!ret->nr_other)
		look_at_sleepers(pid, &all, task, spin_list_tasks(pid, task), ret);
	ret->has_handlers = sample_has_handlers(pid);
	if (!ret->nr_other && ret->nr_spinning)
		ret->verdict = ret->open ? SPIN_LIVELOCK_OPEN : SPIN_LIVELOCK_FOUND;
	while (all.nr--) {
		spin_let_go(&all.stop[all.nr]);
		if (all.stop[all.nr].ended && all.stop[all.nr].tid == pid) {
			ret->ended = true;
			ret->end_status = all.stop[all.nr].end_status;
		}
	}
	ret->stopped_ns = os_time_ns(CLOCK_MONOTONIC) - began_ns;
out:
	base_free(task);
	base_free(all.stop);
}

static void sample_take_exit(struct session *s, int status)
{
	s->a->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	s->ended = true;
}

/* Two looks must say the same, of the same words with the same values. True: found. */
static bool watch_livelock(struct session *s)
{
	struct spin_standstill now;
	struct spin_answer *a = s->a;
	uint64_t signature;
	if (!s->o->watch_livelock || s->spin_streak < ALL_SPIN ||
		os_time_ns(CLOCK_MONOTONIC) - s->looked_ns < LOOK_EVERY_NS)
		return false;
	look_for_livelock(s->stepper, s->pid, &s->o->limits, &now, &signature);
	s->looked_ns = os_time_ns(CLOCK_MONOTONIC);
	if (now.ended && s->child)
		sample_take_exit(s, now.end_status);
	bool again =
		s->signed_once && signature == s->signature && now.verdict != SPIN_LIVELOCK_NONE;
	s->signature = signature;
	s->signed_once = now.verdict != SPIN_LIVELOCK_NONE;
	if (now.stopped_ns > a->standstill.stopped_ns)
		a->standstill.stopped_ns = now.stopped_ns;
	if (!again || a->standstill.verdict == SPIN_LIVELOCK_FOUND)
		return false;
	now.stopped_ns = a->standstill.stopped_ns;
	now.found_ns = s->looked_ns - s->start_ns;
	a->standstill = now;
	return now.verdict == SPIN_LIVELOCK_FOUND;
}

/* ---- the session ----------------------------------------------------------------------------- */

static void look_whether_ended(struct session *s)
{
	int status;
	if (!s->child)
		s->ended = kill(s->pid, 0) && errno == ESRCH;
	else if (waitpid(s->pid, &status, WNOHANG) == s->pid)
		sample_take_exit(s, status);
}

/* One sample: of the threads that run or could, any. */
static void spin_sample_sample(struct session *s, pid_t *task, uint64_t *ret_stopped_ns)
{
	struct spin_burst b;
	size_t all, nr = spin_running_tasks(s->pid, task, &all);
	*ret_stopped_ns = 0;
	if (!nr) {
		s->a->nr_idle_looks++;
		s->spin_streak = 0;
		return;
	}
	s->random = base_hash_u64(s->random + 0x9e3779b97f4a7c15u);
	pid_t tid = task[s->random % nr];
	spin_burst(s->stepper, s->pid, tid, &s->o->limits, &b);
	if (b.ended && s->child && tid == s->pid)
		sample_take_exit(s, b.end_status);
	/* (one that spins loses nothing by being held) */
	bool waits = b.verdict == SPIN_SPINS || b.verdict == SPIN_COUNTS;
	*ret_stopped_ns = waits ? 0 : b.stopped_ns;
	sample_count(s, tid, &b);
}

/* False: a signal says that it is enough. Stops of threads are signals, too (SIGCHLD). */
static bool sample_wait_for(struct session *s, const sigset_t *signals, uint64_t ns)
{
	uint64_t until_ns = os_time_ns(CLOCK_MONOTONIC) + ns;
	for (uint64_t now = os_time_ns(CLOCK_MONOTONIC); now < until_ns && !s->ended;
		now = os_time_ns(CLOCK_MONOTONIC)) {
		uint64_t rest = until_ns - now;
		struct timespec ts = {(time_t)(rest / NS_PER_S), (long)(rest % NS_PER_S)};
		siginfo_t info;
		int number = sigtimedwait(signals, &info, &ts);
		if (number == SIGINT || number == SIGTERM || number == SIGHUP) {
			if (s->child && info.si_code <= 0)
				kill(s->pid, number);
			if (!s->child)
				return false;
		}
		look_whether_ended(s);
	}
	return true;
}

static void sample_all(struct session *s, const sigset_t *signals, pid_t *task)
{
	const struct spin_sample_options *o = s->o;
	while (!s->ended) {
		uint64_t stopped_ns;
		spin_sample_sample(s, task, &stopped_ns);
		if (watch_livelock(s) && o->until_livelock)
			break;
		if (o->duration_ns && os_time_ns(CLOCK_MONOTONIC) - s->start_ns >= o->duration_ns)
			break;
		uint64_t wait_ns = o->interval_ns;
		if (o->stopped_share > 0 && (double)stopped_ns / o->stopped_share > (double)wait_ns)
			wait_ns = (uint64_t)((double)stopped_ns / o->stopped_share);
		/* a quarter more or less, so as not to keep step with the program */
		wait_ns += s->random % (wait_ns / 2 + 1);
		if (!sample_wait_for(s, signals, wait_ns - wait_ns / 4))
			break;
	}
}

static void wait_for_child(struct session *s)
{
	int status;
	while (s->child && !s->ended) {
		pid_t got = waitpid(s->pid, &status, 0);
		if (got == s->pid)
			sample_take_exit(s, status);
		else if (got < 0 && errno != EINTR)
			break;
	}
}

static bool exists(pid_t pid)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	return !access(path, F_OK);
}

enum base_status spin_sample(
	const struct spin_sample_options *o, struct spin_answer *ret, struct base_err *err)
{
	struct session s = {.o = o, .a = ret, .pid = o->pid, .child = !o->pid};
	pid_t *task = base_alloc(SPIN_TASKS_MAX * sizeof *task);
	struct spin_cycles *cycles = base_alloc(sizeof *cycles);
	uint64_t counted[SPIN_EVENTS];
	enum base_status status = BASE_OK;
	sigset_t signals, before;
	*ret = (struct spin_answer){.sampled = true, .arena = base_arena_new(0)};
	s.stepper = spin_stepper_new();
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	if (!ret->arena || !s.stepper || !task || !cycles) {
		status = base_fail(err, BASE_ERR_NOMEM, "no memory for samples");
		goto out;
	}
	if (s.child)
		status = spin_start(o->argv, NULL, &before, &s.pid, &ret->exit_code, err);
	else if (!exists(o->pid))
		status = base_fail(err, BASE_ERR_ENV, "there is no process %d", (int)o->pid);
	if (status != BASE_OK)
		goto out;
	ret->pid = s.pid;
	s.names = spin_names_new(s.pid, ret->arena);
	if (!s.names) {
		status = base_fail(err, BASE_ERR_NOMEM, "no memory for names");
		goto out;
	}
	s.start_ns = os_time_ns(CLOCK_MONOTONIC);
	spin_cycles_open(cycles, s.pid, spin_ipc_events);
	setpriority(PRIO_PROCESS, 0, NICE); /* (if we may) */
	sample_all(&s, &signals, task);
	ret->elapsed_ns = os_time_ns(CLOCK_MONOTONIC) - s.start_ns;
	ret->has_cycles = spin_cycles_read(cycles, counted) && counted[0];
	ret->cycles = counted[0];
	ret->instructions = counted[1];
	ret->running = !s.ended;
	if (!o->until_livelock)
		wait_for_child(&s);
	spin_sort(ret);
out:
	sigprocmask(SIG_SETMASK, &before, NULL);
	spin_names_free(s.names);
	spin_stepper_free(s.stepper);
	if (cycles)
		spin_cycles_close(cycles);
	base_free(cycles);
	base_free(task);
	return status;
}
