/* SPDX-License-Identifier: Apache-2.0 */
/* spin_yield.c - holding threads that spin while there are too few processors. */
#include "record/spin_yield.h"

#include "record/spin_tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	NS_PER_S = 1000000000,
	NS_PER_US = 1000,
	STEPS_A_ROUND = 16, /* of a usual spin loop, at most */
	HELD_MAX = 256,
	KNOWN_MAX = 4096, /* threads whose patience is kept */
	NEAR_BYTES = 512, /* a loop that waits is short */
	REST_FIRST_NS = 2 * 1000 * 1000,
	REST_MAX_NS = 64 * 1000 * 1000,  /* between two looks at a thread that works */
	QUIET_MAX_NS = 20 * 1000 * 1000, /* between two looks at a machine with room for all */
	PEEK_FIRST_NS = 100 * NS_PER_US, /* between two looks at the words of those that are held */
	PEEK_LAST_NS = 500 * NS_PER_US,
	/* A wait that ended so soon after we met it is not worth the time until its end is seen. */
	SHORT_NS = 1000 * NS_PER_US,
	NICE = -10, /* we run rarely and briefly, and must not wait behind those that spin */
};

struct held {
	struct record_spin_stop stop;
	struct record_spin_burst burst;
	uint64_t since_ns;
};
struct known {
	pid_t tid;
	bool seen; /* a glance at it, shortly ago: */
	uint64_t pc, sum;
	uint64_t next_ns, rest_ns;
};
struct session {
	const struct record_spin_yield_options *o;
	struct record_spin_yield *r;
	struct record_spin_stepper *stepper;
	struct held *held;
	size_t nr_held;
	struct known *known;
	pid_t *task;
	unsigned processors;
	uint64_t random, quiet_ns;
	bool ended;
};

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* "0.52 0.58 0.59 3/467 1234": three are running or could. */
static unsigned runnable(void)
{
	char text[128];
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	const char *slash = strchr(text, '/');
	while (slash && slash > text && slash[-1] >= '0' && slash[-1] <= '9')
		slash--;
	unsigned long all = slash ? strtoul(slash, NULL, 10) : 0;
	return all ? (unsigned)all - 1 : 0; /* without us */
}

/* ---- patience ---------------------------------------------------------------------------------
 */

static struct known *known_of(struct session *s, pid_t tid)
{
	struct known *k = &s->known[(size_t)tid % KNOWN_MAX];
	if (k->tid != tid)
		*k = (struct known){
			.tid = tid, .rest_ns = REST_FIRST_NS, .next_ns = now_ns() + REST_FIRST_NS};
	return k;
}

/* A thread that was seen to work, or to wait for a moment only, is left alone, twice as long each
 * time. */
static void learn(struct session *s, pid_t tid, bool spins)
{
	struct known *k = known_of(s, tid);
	uint64_t longer = 2 * k->rest_ns;
	k->rest_ns = spins ? REST_FIRST_NS : longer < REST_MAX_NS ? longer : REST_MAX_NS;
	k->next_ns = now_ns() + (spins ? s->o->interval_ns : k->rest_ns);
	k->seen = false;
}

/* One was held, and it was worth it: the others of the program are looked at again, soon. */
static void hurry(struct session *s)
{
	for (size_t i = 0; i < KNOWN_MAX; i++) {
		s->known[i].rest_ns = REST_FIRST_NS;
		s->known[i].next_ns = 0;
	}
}

/* ---- holding ----------------------------------------------------------------------------------
 */

static void note_end(struct session *s, pid_t tid, const struct record_spin_burst *b)
{
	if (!b->ended || tid != s->r->pid)
		return;
	s->r->exit_code = WIFSIGNALED(b->end_status) ? 128 + WTERMSIG(b->end_status)
						     : WEXITSTATUS(b->end_status);
	s->ended = true;
}

static void let_go(struct session *s, size_t i, bool changed)
{
	struct record_spin_yield *r = s->r;
	uint64_t ns = now_ns() - s->held[i].since_ns;
	record_spin_let_go(&s->held[i].stop);
	r->held_ns += ns;
	r->longest_hold_ns = ns > r->longest_hold_ns ? ns : r->longest_hold_ns;
	r->nr_changed += changed;
	r->nr_short += changed && ns < SHORT_NS;
	if (ns >= SHORT_NS)
		hurry(s);
	learn(s, s->held[i].stop.tid, ns >= SHORT_NS);
	s->held[i] = s->held[--s->nr_held];
}

static bool has_changed(const struct session *s, const struct record_spin_burst *b)
{
	uint64_t value;
	for (uint32_t i = 0; i < b->nr_words; i++)
		if (!record_spin_peek(s->r->pid, &b->word[i], &value) || value != b->word[i].value)
			return true;
	return false;
}

static void look_at_held(struct session *s)
{
	uint64_t now = now_ns();
	for (size_t i = s->nr_held; i--;) {
		const struct held *h = &s->held[i];
		/* of a loop with more words than we keep we cannot see all changes */
		uint64_t most_ns = h->burst.more_words || !h->burst.nr_words ? s->o->hold_ns / 4
									     : s->o->hold_ns;
		if (has_changed(s, &h->burst))
			let_go(s, i, true);
		else if (now - h->since_ns >= most_ns)
			let_go(s, i, false);
	}
}

static bool is_held(const struct session *s, pid_t tid)
{
	for (size_t i = 0; i < s->nr_held; i++)
		if (s->held[i].stop.tid == tid)
			return true;
	return false;
}

/* Two glances, an interval apart, must find it at about the same place with the same registers,
 * before it is stepped: that costs a thread that works next to nothing. */
static bool may_spin(struct session *s, struct record_spin_stop *stop)
{
	struct known *k = known_of(s, stop->tid);
	uint64_t pc, sum;
	if (!record_spin_glance(stop, &pc, &sum)) {
		learn(s, stop->tid, false);
		return false;
	}
	uint64_t apart = pc > k->pc ? pc - k->pc : k->pc - pc;
	if (k->seen && (sum != k->sum || apart > NEAR_BYTES)) {
		learn(s, stop->tid, false);
		return false;
	}
	bool twice = k->seen;
	k->seen = true;
	k->pc = pc;
	k->sum = sum;
	k->next_ns = now_ns() + s->o->interval_ns;
	return twice;
}

static bool step(struct session *s, struct held *h)
{
	const struct record_spin_limits limits = {
		.steps = RECORD_SPIN_STEPS_DEFAULT + STEPS_A_ROUND * s->o->iterations,
		.iterations = s->o->iterations};
	struct record_spin_yield *r = s->r;
	record_spin_step(s->stepper, &h->stop, &limits, &h->burst);
	bool spins = h->burst.verdict == RECORD_SPIN_SPINS;
	r->nr_bursts++;
	r->nr_steps += h->burst.steps;
	r->nr_spins += spins;
	note_end(s, h->stop.tid, &h->burst);
	if (!spins)
		learn(s, h->stop.tid, false);
	return spins;
}

/* One look; the thread may be held afterwards. */
static void try_one(struct session *s, pid_t tid)
{
	struct record_spin_yield *r = s->r;
	struct held *h = &s->held[s->nr_held];
	*h = (struct held){0};
	r->nr_glances++;
	if (!record_spin_stop(r->pid, tid, &h->stop, &h->burst)) {
		r->nr_refused += h->burst.verdict == RECORD_SPIN_REFUSED;
		if (h->burst.verdict == RECORD_SPIN_REFUSED)
			r->refused = h->burst.why;
		note_end(s, tid, &h->burst);
		learn(s, tid, false);
		return;
	}
	bool spins = may_spin(s, &h->stop) && step(s, h);
	r->stopped_ns += now_ns() - h->stop.stopped_at_ns;
	if (!spins) {
		record_spin_let_go(&h->stop);
		return;
	}
	h->since_ns = now_ns();
	s->nr_held++;
	r->nr_held++;
}

/* Is there one that could be looked at? Any of them. */
static pid_t choose(struct session *s)
{
	size_t all, nr = record_spin_running_tasks(s->r->pid, s->task, &all), due = 0;
	uint64_t now = now_ns();
	uint64_t rest_ns = QUIET_MAX_NS;
	for (size_t i = 0; i < nr; i++) {
		uint64_t next_ns = known_of(s, s->task[i])->next_ns;
		if (is_held(s, s->task[i]))
			continue;
		if (next_ns <= now)
			s->task[due++] = s->task[i];
		else if (next_ns - now < rest_ns)
			rest_ns = next_ns - now;
	}
	if (!due && nr && rest_ns > s->quiet_ns) /* nobody is to be looked at before */
		s->quiet_ns = rest_ns;
	s->random = base_hash_u64(s->random + 0x9e3779b97f4a7c15u);
	return due ? s->task[s->random % due] : 0;
}

/* ---- the session ------------------------------------------------------------------------------
 */

static void look(struct session *s)
{
	pid_t tid;
	look_at_held(s);
	s->r->nr_looks++;
	if (!s->o->always && runnable() <= s->processors) {
		s->quiet_ns = 2 * s->quiet_ns < QUIET_MAX_NS ? 2 * s->quiet_ns : QUIET_MAX_NS;
		return;
	}
	s->r->nr_crowded++;
	s->quiet_ns = s->o->interval_ns;
	if (s->nr_held < HELD_MAX && !s->ended && (tid = choose(s)))
		try_one(s, tid);
}

static void take_exit(struct session *s)
{
	int status;
	if (s->ended || waitpid(s->r->pid, &status, WNOHANG) != s->r->pid)
		return;
	s->r->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	s->ended = true;
}

/* Sleeps; the words of those that are held are looked at meanwhile. */
static void rest(struct session *s, const sigset_t *signals, uint64_t until_ns)
{
	uint64_t peek_ns = PEEK_FIRST_NS;
	for (uint64_t now = now_ns(); now < until_ns && !s->ended; now = now_ns()) {
		uint64_t ns = until_ns - now;
		if (s->nr_held && peek_ns < ns)
			ns = peek_ns;
		peek_ns = peek_ns * 3 / 2 < PEEK_LAST_NS ? peek_ns * 3 / 2 : PEEK_LAST_NS;
		struct timespec ts = {(time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S)};
		siginfo_t info;
		int number = sigtimedwait(signals, &info, &ts);
		if (number > 0 && number != SIGCHLD && info.si_code <= 0)
			kill(s->r->pid, number);
		look_at_held(s);
		take_exit(s);
	}
}

static void watch(struct session *s, const sigset_t *signals)
{
	while (!s->ended) {
		look(s);
		rest(s, signals, now_ns() + s->quiet_ns);
	}
	while (s->nr_held)
		let_go(s, s->nr_held - 1, false);
}

static unsigned processors(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set))
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

enum base_status record_spin_yield(const struct record_spin_yield_options *o,
	struct record_spin_yield *ret, struct base_err *err)
{
	struct session s = {
		.o = o, .r = ret, .processors = processors(), .quiet_ns = o->interval_ns};
	enum base_status status = BASE_OK;
	sigset_t signals, before;
	*ret = (struct record_spin_yield){.exit_code = RECORD_SPIN_EXIT_OURS};
	s.stepper = record_spin_stepper_new();
	s.held = base_alloc((HELD_MAX + 1) * sizeof *s.held);
	s.known = base_alloc(KNOWN_MAX * sizeof *s.known);
	s.task = base_alloc(RECORD_SPIN_TASKS_MAX * sizeof *s.task);
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	if (!s.stepper || !s.held || !s.known || !s.task)
		status = base_fail(err, BASE_ERR_NOMEM, "no memory for threads that are held");
	else
		status = record_spin_start(
			o->argv, NULL, NULL, &before, &ret->pid, &ret->exit_code, err);
	if (status == BASE_OK) {
		uint64_t start_ns = now_ns();
		setpriority(PRIO_PROCESS, 0, NICE); /* (if we may) */
		watch(&s, &signals);
		ret->elapsed_ns = now_ns() - start_ns;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	record_spin_stepper_free(s.stepper);
	base_free(s.held);
	base_free(s.known);
	base_free(s.task);
	return status;
}
