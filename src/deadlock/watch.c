/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - nap, monitor, detection: the source's three modes (4.2.1). A process is looked at when
 * a thread of it has newly slept over the threshold; when nothing was found the next look at it is
 * put off, twice as long each time. All looks after the first together keep to a share of one
 * processor; what passes cost is set by how often they are made.
 */
#include "deadlock/private.h"

#include <string.h>
#include <sys/resource.h>

enum { PIDS_A_LOOK = 4096, TOLD_MAX = 4096, PRUNE_PASSES = 600 };
#define LONGEST_DELAY_NS UINT64_C(300000000000) /* the source's five minutes */

struct patience { /* one process */
	pid_t pid;
	uint64_t looked_ns, next_ns, delay_ns;
	bool is_asked_for; /* by itself, or as a descendant */
	bool seen;         /* in this pass */
};

struct deadlock_watch {
	struct deadlock_watch_options o;
	struct deadlock_monitor *monitor;
	struct base_map index; /* pid -> patience */
	struct patience *patience;
	size_t capacity, nr;
	struct base_map told; /* findings that were returned */
	pid_t *pid;
	size_t nr_pids;
	uint64_t nr_passes, cpu_began_ns;
	uint64_t first_look_ns;                  /* when it was made */
	uint64_t looks_cpu_ns, last_look_cpu_ns; /* cost of those after it, and of the last one */
	struct deadlock_watch_stats stats;
};

static uint64_t watch_cpu_ns(void)
{
	uint64_t ns = 0;
	static const int who[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
	for (size_t i = 0; i < BASE_COUNT(who); i++) {
		struct rusage u;
		if (getrusage(who[i], &u) == 0)
			ns += (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) *
				      UINT64_C(1000000000) +
			      (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
	}
	return ns;
}

enum base_status deadlock_watch_open(
	const struct deadlock_watch_options *o, struct deadlock_watch **ret, struct base_err *err)
{
	struct deadlock_watch *w = base_alloc(sizeof *w);
	*ret = NULL;
	if (w)
		w->pid = base_alloc(PIDS_A_LOOK * sizeof *w->pid);
	if (!w || !w->pid) {
		base_free(w);
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for a watch");
	}
	w->o = *o;
	enum base_status s = deadlock_monitor_open(o->use_bpf, &w->monitor, err);
	w->cpu_began_ns = watch_cpu_ns(); /* loading BPF programs is not part of it */
	if (s == BASE_OK)
		*ret = w;
	else
		deadlock_watch_close(w);
	return s;
}

struct deadlock_watch *deadlock_watch_close(struct deadlock_watch *w)
{
	if (!w)
		return NULL;
	deadlock_monitor_close(w->monitor);
	base_map_fini(&w->index);
	base_map_fini(&w->told);
	base_free(w->patience);
	base_free(w->pid);
	base_free(w);
	return NULL;
}

const struct deadlock_watch_stats *deadlock_watch_stats(const struct deadlock_watch *w)
{
	return &w->stats;
}

/* ---- whom to look at ------------------------------------------------------------------------- */

static pid_t parent_of(pid_t pid)
{
	char text[1024];
	struct os_task_stat stat;
	return os_proc_read(pid, "stat", text, sizeof text) > 0 && os_parse_stat(text, &stat)
		       ? stat.parent
		       : 0;
}

static bool is_asked_for(const struct deadlock_watch *w, pid_t pid)
{
	enum { GENERATIONS = 64 };
	if (!w->o.look.nr_pids)
		return true;
	for (int i = 0; i < GENERATIONS && pid > 0; i++, pid = parent_of(pid)) {
		for (size_t k = 0; k < w->o.look.nr_pids; k++) {
			if (w->o.look.pid[k] == pid)
				return true;
		}
	}
	return false;
}

static struct patience *patience_of(struct deadlock_watch *w, pid_t pid)
{
	uint64_t i;
	if (base_map_get(&w->index, 0, (uint64_t)pid, &i))
		return &w->patience[i];
	if (base_grow(&w->patience, &w->capacity, w->nr + 1, sizeof *w->patience) != BASE_OK ||
		base_map_put(&w->index, 0, (uint64_t)pid, w->nr) != BASE_OK)
		return NULL;
	struct patience *p = &w->patience[w->nr++];
	*p = (struct patience){.pid = pid, .is_asked_for = is_asked_for(w, pid)};
	return p;
}

/* Processes with a thread that has crossed the threshold since they were looked at. */
static enum base_status watch_choose(
	struct deadlock_watch *w, uint64_t now_ns, struct base_err *err)
{
	size_t nr;
	const struct deadlock_sleeper *s = deadlock_monitor_threads(w->monitor, &nr);
	struct patience *p = NULL;
	w->nr_pids = 0;
	for (size_t i = 0; i < nr; i++) {
		uint64_t crossed_ns = s[i].since_ns + w->o.look.threshold_ns;
		if (!s[i].nr_looks || crossed_ns > now_ns)
			continue;
		if (!p || p->pid != s[i].thread.pid) /* threads of one process stand together */
			p = patience_of(w, s[i].thread.pid);
		if (!p)
			return base_fail(err, BASE_ERR_NOMEM, "out of memory for a watch");
		if (!p->is_asked_for || crossed_ns <= p->looked_ns || now_ns < p->next_ns ||
			w->nr_pids == PIDS_A_LOOK)
			continue;
		p->looked_ns = now_ns;
		p->delay_ns = p->delay_ns ? p->delay_ns * 2 : w->o.look.threshold_ns;
		if (p->delay_ns > LONGEST_DELAY_NS)
			p->delay_ns = LONGEST_DELAY_NS;
		p->next_ns = now_ns + p->delay_ns;
		w->pid[w->nr_pids++] = p->pid;
	}
	return BASE_OK;
}

/* Processes that ended are forgotten now and then. */
static void prune(struct deadlock_watch *w)
{
	size_t nr, kept = 0;
	const struct deadlock_sleeper *s = deadlock_monitor_threads(w->monitor, &nr);
	if (++w->nr_passes % PRUNE_PASSES)
		return;
	for (size_t i = 0; i < nr; i++) {
		uint64_t at;
		if (base_map_get(&w->index, 0, (uint64_t)s[i].thread.pid, &at))
			w->patience[at].seen = true;
	}
	base_map_fini(&w->index);
	for (size_t i = 0; i < w->nr; i++) {
		if (!w->patience[i].seen)
			continue;
		w->patience[kept] = w->patience[i];
		w->patience[kept].seen = false;
		if (base_map_put(&w->index, 0, (uint64_t)w->patience[kept].pid, kept) == BASE_OK)
			kept++;
	}
	w->nr = kept;
}

/* ---- what is new ----------------------------------------------------------------------------- */

/* Leaves the findings that were not returned before. */
static void keep_new(struct deadlock_watch *w, struct deadlock_answer *a)
{
	size_t kept = 0;
	if (w->told.nr_used > TOLD_MAX)
		base_map_fini(&w->told);
	for (size_t i = 0; i < a->nr_findings; i++) {
		uint64_t print = deadlock_finding_print(a, &a->finding[i]), unused;
		if (base_map_get(&w->told, 0, print, &unused))
			continue;
		(void)!base_map_put(&w->told, 0, print, 1); /* else it is told twice */
		a->finding[kept++] = a->finding[i];
	}
	a->nr_findings = kept;
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* May a look begin, or would looks cost more than they may, if this one costs what the last one
 * did? The first one, at all that sleeps already, may. */
static bool is_affordable(const struct deadlock_watch *w, uint64_t now_ns)
{
	const double allowed_ns = (double)(now_ns - w->first_look_ns) * w->o.share;
	return w->o.share <= 0 || !w->first_look_ns ||
	       (double)(w->looks_cpu_ns + w->last_look_cpu_ns) <= allowed_ns;
}

/* A look at those that were chosen. */
static enum base_status watch_look(struct deadlock_watch *w, uint64_t now_ns,
	struct deadlock_answer **ret, struct base_err *err)
{
	struct deadlock_look_options o = w->o.look;
	const uint64_t before_ns = watch_cpu_ns();
	o.pid = w->pid;
	o.nr_pids = w->nr_pids;
	o.is_alone = true;
	o.now_ns = now_ns;
	w->stats.nr_looks++;
	const enum base_status s = deadlock_look(w->monitor, &o, ret, err);
	if (w->first_look_ns) {
		w->last_look_cpu_ns = watch_cpu_ns() - before_ns;
		w->looks_cpu_ns += w->last_look_cpu_ns;
	} else {
		w->first_look_ns = now_ns;
	}
	return s;
}

enum base_status deadlock_watch_step(struct deadlock_watch *w, uint64_t now_ns,
	struct deadlock_answer **ret, struct base_err *err)
{
	*ret = NULL;
	enum base_status s = deadlock_monitor_pass(w->monitor, now_ns, err);
	w->stats.nr_passes++;
	if (s != BASE_OK)
		return s;
	prune(w);
	w->stats.cpu_ns = watch_cpu_ns() - w->cpu_began_ns;
	if (!is_affordable(w, now_ns)) {
		w->stats.nr_put_off++;
		return BASE_OK;
	}
	s = watch_choose(w, now_ns, err);
	if (s != BASE_OK || !w->nr_pids)
		return s;
	s = watch_look(w, now_ns, ret, err);
	w->stats.cpu_ns = watch_cpu_ns() - w->cpu_began_ns;
	if (s != BASE_OK)
		return s;
	keep_new(w, *ret);
	w->stats.nr_findings += (*ret)->nr_findings;
	if (!(*ret)->nr_findings)
		*ret = deadlock_answer_free(*ret);
	return BASE_OK;
}
