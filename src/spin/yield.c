/* SPDX-License-Identifier: Apache-2.0 */
/* yield.c - threads that spin give way while there are too few processors. */
#include "spin/yield.h"
#include "os/clock.h"
#include "os/proc.h"

#include "os/links.h"
#include "os/launch.h"
#include "spin/arm.h"
#include "spin/loop.h"
#include "spin/tasks.h"
#include "ring/yield.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	NS_PER_S = 1000000000,
	NS_PER_MS = 1000000,
	STEPS_A_ROUND = 16, /* of a usual spin loop, at most */
	KNOWN_MAX = 4096,   /* threads whose patience is kept */
	NEAR_BYTES = 512,   /* a loop that waits is short */
	LOOK_NS = 1 * NS_PER_MS,
	/* Looks get rarer the longer there was nothing new: a part of that time, at most so long.
	 */
	QUIET_SHARE = 16,
	QUIET_MAX_NS = 50 * NS_PER_MS,
	CROWDED_NS = 200 * NS_PER_MS, /* it stays so: those that wait asleep make room */
	STOP_NS = 10 * NS_PER_MS,     /* of one burst */
	STOPPED_SHARE = 200, /* threads are stopped for no more than such a part of the time */
	REST_FIRST_NS = 2 * NS_PER_MS,
	REST_MAX_NS = 256 * NS_PER_MS, /* between two looks at a thread that works */
	TRIED_MAX = 1024,              /* places whose loops were looked at */
	PAGE_BYTES = 4096,
	SCAN_NS = 20 * NS_PER_MS, /* between two looks for new threads */
	JUDGED_SAMPLES = 8,
	RAREST = 128, /* times the interval, between two signals by the clock */
	FIRST = 4,    /* before any loop is known */
	/* What they cost, on a virtual machine: a signal, coming by a place. */
	SIGNAL_NS = 30000,
	PLACE_NS = 10000,
	WORTH = 4, /* times its cost */
	/* A place is not judged before it cost so much, and such a part of the time. */
	COST_LEAST_NS = 20 * NS_PER_MS,
	COST_SHARE = 50,
	/* A program that has its own handler of the signal sees none of them. */
	UNSEEN_MAX = 100,
	NICE = -10, /* we run rarely and briefly, and must not wait behind those that spin */
};

struct known {
	pid_t tid;
	bool seen; /* a glance at it, shortly ago: */
	uint64_t pc, sum;
	uint64_t next_ns, rest_ns;
	bool may_wait; /* met in a loop that its code alone says nothing of */
};
struct session {
	const struct spin_yield_options *o;
	struct spin_yield *r;
	struct spin_stepper *stepper;
	struct spin_arms arms;
	struct os_links links;
	struct yield_shared *shared;
	char path[64]; /* of the file that is shared */
	int fd;
	uint32_t nr_loops, images; /* as the file says; but that is the program's, too */
	uint64_t judged_samples, judged_away_ns;
	uint32_t judged_without;
	struct placed { /* of a loop that has a place; and what was when it was judged */
		uint32_t loop;
		uint64_t since_ns, times, away_ns;
	} placed[SPIN_PLACES_MAX];
	uint32_t nr_without; /* loops that have none: the clock must tell */
	struct loop_code {   /* as told: what is shared is the program's, too */
		uint64_t begins, branch, hash;
	} code[YIELD_LOOPS_MAX];
	uint32_t nr_unseen; /* scans without a signal that was seen */
	uint64_t scanned_ns;
	uint64_t nr_recent; /* of the file's, that were looked at */
	struct {
		uint64_t pc;
		bool unknown;
	} tried[TRIED_MAX];
	struct known *known;
	pid_t *task;
	unsigned processors;
	uint64_t random, start_ns, news_ns, crowded_ns;
	bool ended, may_wait; /* there is one to be stepped, maybe */
};

static uint64_t counter(const uint64_t *c)
{
	return __atomic_load_n(c, __ATOMIC_RELAXED);
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

static size_t read_code(pid_t pid, uint64_t from, uint8_t *code, size_t size)
{
	ssize_t n = os_read_memory(pid, from, code, size);
	return n > 0 ? (size_t)n : 0;
}

/* ---- the file that is shared ----------------------------------------------------------------- */

static enum base_status share(struct session *s, struct base_err *err)
{
	s->fd = memfd_create("longpole-yield", MFD_CLOEXEC);
	if (s->fd < 0 || ftruncate(s->fd, sizeof *s->shared))
		return base_fail_errno(err, errno, "cannot make a file in memory");
	void *at = mmap(NULL, sizeof *s->shared, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (at == MAP_FAILED)
		return base_fail_errno(err, errno, "cannot map a file in memory");
	s->shared = at;
	s->shared->magic = YIELD_MAGIC;
	s->shared->size_bytes = sizeof *s->shared;
	s->shared->sleep_ns = s->o->sleep_ns;
	snprintf(s->path, sizeof s->path, "/proc/%d/fd/%d", (int)getpid(), s->fd);
	return BASE_OK;
}

static bool yield_is_known(const struct session *s, uint64_t pc)
{
	for (uint32_t i = 0; i < s->nr_loops; i++)
		if (pc >= s->shared->loop[i].begins && pc <= s->shared->loop[i].branch)
			return true;
	return false;
}

/* Of an instruction that each round runs; best one that a thread which does not wait never runs. */
static void yield_place(struct session *s, uint64_t address)
{
	int at = spin_arms_add_place(&s->arms, address);
	if (at < 0) {
		s->nr_without++;
		spin_arms_set_period(&s->arms, s->o->interval_ns);
		return;
	}
	s->placed[at] =
		(struct placed){.loop = s->nr_loops - 1, .since_ns = os_time_ns(CLOCK_MONOTONIC)};
	s->r->nr_placed++;
}

/* That was given to others, by threads in a loop. */
static uint64_t away_ns(const struct session *s, uint32_t loop)
{
	const struct yield_loop *l = &s->shared->loop[loop];
	return counter(&l->yielded_ns) + counter(&l->slept_ns);
}

/* Where threads that wait briefly come by often, each time costs more than the processor time that
 * they give away is worth; then the clock must tell. */
static void judge_places(struct session *s)
{
	uint64_t now = os_time_ns(CLOCK_MONOTONIC);
	for (unsigned k = 0; k < SPIN_PLACES_MAX; k++) {
		struct placed *p = &s->placed[k];
		if (!s->arms.place[k].address)
			continue;
		uint64_t times = spin_arms_times(&s->arms, k);
		uint64_t away = away_ns(s, p->loop);
		uint64_t cost_ns = (times - p->times) * PLACE_NS;
		if (cost_ns < COST_LEAST_NS || cost_ns * COST_SHARE < now - p->since_ns)
			continue;
		if (away - p->away_ns < cost_ns) {
			spin_arms_drop_place(&s->arms, k);
			s->nr_without++;
			s->r->nr_dropped++;
			continue;
		}
		p->times = times;
		p->away_ns = away;
		p->since_ns = now;
	}
}

/* But for its last instruction's end. */
static uint64_t yield_hash_of(const struct session *s, const struct loop_code *c)
{
	uint8_t code[NEAR_BYTES];
	size_t n = read_code(s->r->pid, c->begins, code, c->branch - c->begins + 1);
	uint64_t h = n;
	for (size_t i = 0; i < n; i++)
		h = base_hash_u64(h ^ code[i]);
	return h;
}

/* A program that makes its code itself may put something else there. */
static void forget_changed(struct session *s)
{
	for (uint32_t i = 0; i < s->nr_loops; i++) {
		struct loop_code *c = &s->code[i];
		if (!c->branch || yield_hash_of(s, c) == c->hash)
			continue;
		c->branch = 0;
		/* nobody is in it */
		__atomic_store_n(&s->shared->loop[i].branch, 0, __ATOMIC_RELAXED);
		for (unsigned k = 0; k < SPIN_PLACES_MAX; k++)
			if (s->arms.place[k].address && s->placed[k].loop == i)
				spin_arms_drop_place(&s->arms, k);
		memset(s->tried, 0, sizeof s->tried);
	}
}

static void tell_loop(struct session *s, const struct yield_loop *loop, uint64_t address)
{
	if (s->nr_loops == YIELD_LOOPS_MAX || yield_is_known(s, loop->branch) ||
		loop->branch - loop->begins >= NEAR_BYTES)
		return;
	struct loop_code *c = &s->code[s->nr_loops];
	*c = (struct loop_code){.begins = loop->begins, .branch = loop->branch};
	c->hash = yield_hash_of(s, c);
	s->shared->loop[s->nr_loops] = *loop;
	__atomic_store_n(&s->shared->nr_loops, ++s->nr_loops, __ATOMIC_RELEASE);
	yield_place(s, address);
	if (!s->r->nr_loops++)
		s->r->first_ns = os_time_ns(CLOCK_MONOTONIC) - s->start_ns;
}

/* ---- signals --------------------------------------------------------------------------------- */

/* NULL: the program's threads can give way. */
static const char *why_unable(const struct session *s)
{
	BASE_ASSUME(s->shared);
	if (!__atomic_load_n(&s->shared->images, __ATOMIC_ACQUIRE))
		return "the library was not loaded (a static program?), or the program came with a "
		       "handler of SIGURG";
	if (s->shared->pid != (uint32_t)s->r->pid)
		return "the library was loaded by another process first";
	if (s->nr_unseen >= UNSEEN_MAX)
		return "signals are not seen: has the program a handler of SIGURG?";
	if (!s->arms.nr && s->arms.nr_refused)
		return "perf_event_open is refused";
	return NULL;
}

/* What the program was before an exec is gone. */
static void follow_exec(struct session *s)
{
	uint32_t images = __atomic_load_n(&s->shared->images, __ATOMIC_ACQUIRE);
	if (images == s->images)
		return;
	s->images = images;
	s->nr_loops = s->judged_without = s->nr_without = 0;
	s->judged_away_ns = 0;
	memset(s->tried, 0, sizeof s->tried);
	s->news_ns = os_time_ns(CLOCK_MONOTONIC);
	spin_arms_set_period(&s->arms, s->o->interval_ns * FIRST);
	__atomic_store_n(&s->shared->nr_loops, 0, __ATOMIC_RELEASE);
	spin_arms_close(&s->arms);
}

static uint64_t all_away_ns(const struct session *s)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < s->nr_loops; i++)
		sum += away_ns(s, i);
	return sum;
}

/* Signals by the clock get rarer where they bring nothing: there is no loop that has no place, or
 * less time is given away than they cost. */
static void judge_interval(struct session *s)
{
	uint64_t samples = counter(&s->shared->nr_samples) - s->judged_samples;
	uint64_t gain_ns = all_away_ns(s) - s->judged_away_ns, cost_ns = samples * SIGNAL_NS;
	uint64_t period_ns = s->arms.period_ns, usual_ns = s->o->interval_ns;
	s->nr_unseen = samples ? 0 : s->nr_unseen + (s->arms.nr > 0);
	bool news = s->nr_without > s->judged_without;
	if (samples < JUDGED_SAMPLES && !news)
		return;
	s->judged_samples += samples;
	s->judged_away_ns += gain_ns;
	s->judged_without = s->nr_without;
	if (news || (s->nr_without && gain_ns > WORTH * cost_ns))
		period_ns = usual_ns;
	else if ((!s->nr_without || gain_ns < cost_ns) && period_ns < usual_ns * RAREST)
		period_ns *= 2;
	spin_arms_set_period(&s->arms, period_ns);
}

static void signals(struct session *s, bool crowded)
{
	uint64_t now = os_time_ns(CLOCK_MONOTONIC);
	follow_exec(s);
	s->r->unable = why_unable(s);
	if (!crowded || s->r->unable) {
		spin_arms_turn(&s->arms, false);
		return;
	}
	if (s->arms.on && now - s->scanned_ns < SCAN_NS)
		return;
	s->scanned_ns = now;
	spin_arms_turn(&s->arms, true);
	spin_arms_scan(&s->arms, s->task);
	judge_places(s);
	judge_interval(s);
}

/* ---- patience -------------------------------------------------------------------------------- */

static struct known *known_of(struct session *s, pid_t tid)
{
	struct known *k = &s->known[(size_t)tid % KNOWN_MAX];
	if (k->tid != tid)
		*k = (struct known){.tid = tid,
			.rest_ns = REST_FIRST_NS,
			.next_ns = os_time_ns(CLOCK_MONOTONIC) + REST_FIRST_NS};
	return k;
}

/* A thread that was looked at is left alone, twice as long each time. */
static void leave_alone(struct session *s, pid_t tid)
{
	struct known *k = known_of(s, tid);
	k->rest_ns = 2 * k->rest_ns < REST_MAX_NS ? 2 * k->rest_ns : REST_MAX_NS;
	k->next_ns = os_time_ns(CLOCK_MONOTONIC) + k->rest_ns;
	k->seen = k->may_wait = false;
}

/* ---- proofs by code -------------------------------------------------------------------------- */

static struct spin_loop_code loop_around(pid_t pid, uint64_t pc)
{
	uint8_t code[2 * SPIN_LOOP_BYTES + 16];
	uint64_t from = pc - SPIN_LOOP_BYTES;
	size_t n = read_code(pid, from, code, sizeof code);
	if (!n) { /* the page before is none */
		from = pc & ~(uint64_t)(PAGE_BYTES - 1);
		n = read_code(pid, from, code, sizeof code);
	}
	return spin_loop_around(code, n, from, pc);
}

static void tell_code(struct session *s, const struct spin_loop_code *code)
{
	struct yield_loop loop = {
		.begins = code->begins, .branch = code->branch, .nr_words = code->nr_words};
	_Static_assert((int)YIELD_WORDS_MAX == (int)SPIN_LOOP_WORDS &&
			       (int)YIELD_NO_REGISTER == (int)SPIN_LOOP_NONE,
		"they are copied");
	for (uint32_t i = 0; i < code->nr_words; i++)
		loop.word[i] = (struct yield_word){.displacement = code->word[i].displacement,
			.base = code->word[i].base,
			.index = code->word[i].index,
			.scale = code->word[i].scale,
			.size_bytes = code->word[i].size_bytes};
	tell_loop(s, &loop, code->again);
	s->r->nr_by_code++;
}

/* Where threads were met: each place is looked at once. */
static void yield_look_at_code(struct session *s, uint64_t pc, pid_t tid)
{
	size_t at = base_hash_u64(pc) % TRIED_MAX;
	if (s->tried[at].pc != pc) {
		struct spin_loop_code code = loop_around(s->r->pid, pc);
		s->tried[at].pc = pc;
		s->tried[at].unknown = code.kind == SPIN_LOOP_UNKNOWN;
		s->r->nr_places++;
		if (code.kind == SPIN_LOOP_WAITS)
			tell_code(s, &code);
	}
	if (s->tried[at].unknown)
		s->may_wait = known_of(s, tid)->may_wait = true;
}

static void look_at_samples(struct session *s)
{
	uint64_t nr = __atomic_load_n(&s->shared->nr_recent, __ATOMIC_ACQUIRE);
	if (nr - s->nr_recent > YIELD_RECENT)
		s->nr_recent = nr - YIELD_RECENT;
	for (; s->nr_recent != nr; s->nr_recent++) {
		const struct yield_recent *r = &s->shared->recent[s->nr_recent % YIELD_RECENT];
		uint64_t pc = counter(&r->pc), tid = counter(&r->tid);
		if (pc && tid <= INT_MAX && !yield_is_known(s, pc))
			yield_look_at_code(s, pc, (pid_t)tid);
	}
}

/* ---- proofs by steps ------------------------------------------------------------------------- */

static void yield_note_end(struct session *s, pid_t tid, bool ended, int status)
{
	if (!ended || tid != s->r->pid)
		return;
	s->r->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	s->ended = true;
}

/* Two glances, a look apart, must find it at about the same place with the same registers, before
 * it is stepped: that costs a thread that works next to nothing. */
static bool may_spin(struct session *s, struct spin_stop *stop)
{
	struct known *k = known_of(s, stop->tid);
	uint64_t pc, sum;
	if (!spin_glance(stop, &pc, &sum) || yield_is_known(s, pc)) {
		leave_alone(s, stop->tid);
		return false;
	}
	uint64_t apart = pc > k->pc ? pc - k->pc : k->pc - pc;
	if (k->seen && (sum != k->sum || apart > NEAR_BYTES)) {
		leave_alone(s, stop->tid);
		return false;
	}
	bool twice = k->seen;
	k->seen = true;
	k->pc = pc;
	k->sum = sum;
	k->next_ns = os_time_ns(CLOCK_MONOTONIC) + LOOK_NS;
	return twice;
}

static void yield_step(struct session *s, struct spin_stop *stop)
{
	const struct spin_limits limits = {
		.steps = SPIN_STEPS_DEFAULT + STEPS_A_ROUND * s->o->iterations,
		.iterations = s->o->iterations,
		.stop_ns = STOP_NS,
	};
	struct spin_yield *r = s->r;
	struct spin_burst burst;
	spin_step(s->stepper, stop, &limits, &burst);
	bool spins = burst.verdict == SPIN_SPINS;
	r->nr_bursts++;
	r->nr_steps += burst.steps;
	r->nr_spins += spins;
	yield_note_end(s, stop->tid, burst.ended, burst.end_status);
	/* (what gives way by itself is let be; and a large loop may do more than wait) */
	if (spins && !burst.yields && burst.branch >= burst.begins &&
		burst.branch - burst.begins <= NEAR_BYTES)
		tell_loop(s, &(struct yield_loop){.begins = burst.begins, .branch = burst.branch},
			burst.begins);
	leave_alone(s, stop->tid);
}

static void try_one(struct session *s, pid_t tid)
{
	struct spin_yield *r = s->r;
	struct spin_stop stop;
	struct spin_burst burst;
	r->nr_glances++;
	if (!spin_stop(r->pid, tid, &stop, &burst)) {
		r->nr_refused += burst.verdict == SPIN_REFUSED;
		if (burst.verdict == SPIN_REFUSED)
			r->refused = burst.why;
		yield_note_end(s, tid, burst.ended, burst.end_status);
		leave_alone(s, tid);
		return;
	}
	if (may_spin(s, &stop))
		yield_step(s, &stop);
	spin_let_go(&stop);
	r->stopped_ns += os_time_ns(CLOCK_MONOTONIC) - stop.stopped_at_ns;
	yield_note_end(s, tid, stop.ended, stop.end_status);
}

/* Is there one that could be looked at? Any of them. */
static pid_t yield_choose(struct session *s)
{
	size_t all, nr, due = 0;
	uint64_t now = os_time_ns(CLOCK_MONOTONIC);
	if (!s->may_wait || s->r->stopped_ns * STOPPED_SHARE > now - s->start_ns)
		return 0;
	s->may_wait = false;
	nr = spin_running_tasks(s->r->pid, s->task, &all);
	for (size_t i = 0; i < nr; i++) {
		const struct known *k = known_of(s, s->task[i]);
		s->may_wait |= k->may_wait;
		if (k->may_wait && k->next_ns <= now)
			s->task[due++] = s->task[i];
	}
	s->random = base_hash_u64(s->random + 0x9e3779b97f4a7c15u);
	return due ? s->task[s->random % due] : 0;
}

/* ---- the session ----------------------------------------------------------------------------- */

static bool is_crowded(struct session *s)
{
	uint64_t now = os_time_ns(CLOCK_MONOTONIC);
	if (s->o->always || runnable() > s->processors) {
		s->r->nr_crowded++;
		s->news_ns = s->crowded_ns ? s->news_ns : now;
		s->crowded_ns = now;
	} else if (now - s->crowded_ns >= CROWDED_NS) {
		s->crowded_ns = 0;
	}
	return s->crowded_ns;
}

static void yield_look(struct session *s)
{
	uint32_t loops = s->nr_loops;
	bool crowded = is_crowded(s);
	pid_t tid;
	s->r->nr_looks++;
	signals(s, crowded);
	forget_changed(s);
	look_at_samples(s);
	if (crowded && !s->r->unable && s->nr_loops < YIELD_LOOPS_MAX && (tid = yield_choose(s)))
		try_one(s, tid);
	if (s->nr_loops > loops)
		s->news_ns = os_time_ns(CLOCK_MONOTONIC);
}

/* Each look costs the program a part of a processor. */
static uint64_t until_next_look_ns(const struct session *s)
{
	uint64_t ns = (os_time_ns(CLOCK_MONOTONIC) - s->news_ns) / QUIET_SHARE;
	return ns < LOOK_NS ? LOOK_NS : ns > QUIET_MAX_NS ? QUIET_MAX_NS : ns;
}

static void take_exit(struct session *s)
{
	int status;
	if (s->ended || waitpid(s->r->pid, &status, WNOHANG) != s->r->pid)
		return;
	s->r->exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	s->ended = true;
}

static void rest(struct session *s, const sigset_t *expected)
{
	struct timespec ts = {.tv_nsec = (long)until_next_look_ns(s)};
	siginfo_t info;
	int number = sigtimedwait(expected, &info, &ts);
	if (number > 0 && number != SIGCHLD && info.si_code <= 0)
		kill(s->r->pid, number);
	take_exit(s);
}

static void watch(struct session *s, const sigset_t *expected)
{
	while (!s->ended) {
		yield_look(s);
		rest(s, expected);
	}
	spin_arms_close(&s->arms);
}

static unsigned processors(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set))
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

/* The program starts with the library; where that cannot be loaded, the loader says so and goes on.
 */
static enum base_status start(struct session *s, const sigset_t *before, struct base_err *err)
{
	char found[PATH_MAX], library[PATH_MAX];
	const char *preload = getenv("LD_PRELOAD");
	struct base_str list = {0};
	enum base_status status = share(s, err);
	if (status == BASE_OK)
		status = os_find_preload(YIELD_LIBRARY, found, err);
	if (status == BASE_OK)
		status = os_links_way(&s->links, found, library, err);
	if (status != BASE_OK)
		return status;
	base_str_addf(
		&list, "%s%s%s", library, preload && *preload ? ":" : "", preload ? preload : "");
	const char *const environment[] = {
		"LD_PRELOAD", base_str_text(&list), YIELD_ENVIRONMENT, s->path, NULL};
	status = list.failed ? base_fail(err, BASE_ERR_NOMEM, "no memory for LD_PRELOAD")
			     : spin_start(s->o->argv, environment, before, &s->r->pid,
				       &s->r->exit_code, err);
	base_str_fini(&list);
	return status;
}

static void take_counts(const struct session *s)
{
	struct spin_yield *r = s->r;
	r->nr_samples = counter(&s->shared->nr_samples);
	r->nr_spinning = counter(&s->shared->nr_spinning);
	r->nr_yields = counter(&s->shared->nr_yields);
	r->nr_sleeps = counter(&s->shared->nr_sleeps);
	r->nr_changed = counter(&s->shared->nr_changed);
	r->slept_ns = counter(&s->shared->slept_ns);
	r->yielded_ns = counter(&s->shared->yielded_ns);
	r->nr_armed = s->arms.nr_most;
	r->nr_blocked = s->arms.nr_blocked;
}

static void yield_fini(struct session *s)
{
	if (s->shared)
		munmap(s->shared, sizeof *s->shared);
	if (s->fd >= 0)
		close(s->fd);
	os_links_remove(&s->links);
	spin_stepper_free(s->stepper);
	base_free(s->known);
	base_free(s->task);
}

enum base_status spin_yield(
	const struct spin_yield_options *o, struct spin_yield *ret, struct base_err *err)
{
	struct session s = {.o = o,
		.r = ret,
		.processors = processors(),
		.fd = -1,
		.arms = {.period_ns = o->interval_ns * FIRST}};
	enum base_status status;
	sigset_t expected, before;
	*ret = (struct spin_yield){.exit_code = SPIN_EXIT_OURS};
	s.stepper = spin_stepper_new();
	s.known = base_alloc(KNOWN_MAX * sizeof *s.known);
	s.task = base_alloc(SPIN_TASKS_MAX * sizeof *s.task);
	sigemptyset(&expected);
	sigaddset(&expected, SIGINT);
	sigaddset(&expected, SIGTERM);
	sigaddset(&expected, SIGHUP);
	sigaddset(&expected, SIGCHLD);
	sigprocmask(SIG_BLOCK, &expected, &before);
	if (!s.stepper || !s.known || !s.task)
		status = base_fail(err, BASE_ERR_NOMEM, "no memory for threads that are looked at");
	else
		status = start(&s, &before, err);
	if (status == BASE_OK) {
		BASE_ASSUME(s.stepper && s.known && s.task && s.shared);
		s.arms.pid = ret->pid;
		s.start_ns = s.news_ns = os_time_ns(CLOCK_MONOTONIC);
		setpriority(PRIO_PROCESS, 0, NICE); /* (if we may) */
		watch(&s, &expected);
		ret->elapsed_ns = os_time_ns(CLOCK_MONOTONIC) - s.start_ns;
		take_counts(&s);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	yield_fini(&s);
	return status;
}
