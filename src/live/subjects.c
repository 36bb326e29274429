/* SPDX-License-Identifier: Apache-2.0 */
/* subjects.c - which paths a window is about. The newest window that is known says where each of
 * them went on; from there one comes back to it. */
#include "live/private.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

struct finder {
	const struct live_options *o;
	const struct generation *g;
	size_t k, last; /* the window asked about; the newest one */
	uint64_t root_pid;
	struct subjects *ret;
	struct base_err *err;
};

/* The path that ends with the actor's last verb (or, if that is past the window, goes on to it),
 * where it leaves part k; NONE: it has none in there. */
static uint32_t anchor_of(const struct finder *f, uint32_t actor)
{
	size_t i = f->last;
	uint64_t time_ns;
	uint32_t anchor = graph_part_last(f->g->part[i].part, actor, &time_ns);
	while (i > f->k && anchor != NONE && time_ns < graph_part_from_ns(f->g->part[i].part))
		anchor = graph_part_last(f->g->part[--i].part, actor, &time_ns);
	if (anchor == NONE || time_ns < graph_part_from_ns(f->g->part[i].part))
		return NONE;
	for (; i > f->k && anchor != NONE; i--)
		anchor = graph_part_before(f->g->part[i].part, anchor);
	return anchor;
}

static enum base_status subjects_add(struct finder *f, uint32_t anchor, uint64_t since_ns)
{
	if (anchor == NONE)
		return BASE_OK;
	enum base_status s = base_grow(
		&f->ret->subject, &f->ret->capacity, f->ret->nr + 1, sizeof *f->ret->subject);
	if (s != BASE_OK)
		return base_fail(f->err, s, "out of memory for a window's paths");
	f->ret->subject[f->ret->nr++] = (struct subject){anchor, since_ns};
	return BASE_OK;
}

static uint64_t last_ns(const struct finder *f, uint32_t actor)
{
	uint64_t time_ns;
	uint32_t anchor = graph_part_last(f->g->part[f->last].part, actor, &time_ns);
	return anchor == NONE ? 0 : time_ns;
}

/* ---- the program that was started ------------------------------------------------------------ */

static uint32_t subjects_latest_actor(const struct finder *f)
{
	uint32_t best = NONE, nr = graph_part_nr_actors(f->g->part[f->last].part);
	uint64_t time_ns, best_ns = 0;
	for (uint32_t i = 0; i < nr; i++) {
		if (graph_part_last(f->g->part[f->last].part, i, &time_ns) == NONE)
			continue;
		if (best == NONE || time_ns > best_ns) {
			best = i;
			best_ns = time_ns;
		}
	}
	return best;
}

/* The program's main thread, to a model that has not seen its beginning. */
static uint32_t main_actor(const struct finder *f)
{
	const struct trace_defs *d = f->g->names;
	uint32_t nr = graph_part_nr_actors(f->g->part[f->last].part);
	for (uint32_t i = 0; i < nr; i++) {
		uint32_t stream = model_actor_stream(f->g->model, i);
		const struct trace_stream *def = trace_def_stream(d, stream);
		if (stream && def->tid == f->root_pid &&
			trace_def_process(d, def->process)->pid == f->root_pid)
			return i;
	}
	return GRAPH_ANY_ACTOR;
}

/* As in a report: the program's main thread; when that has ended before, whoever came last. */
static enum base_status of_program(struct finder *f)
{
	uint32_t end = f->g->first ? main_actor(f) : model_end_actor_now(f->g->model);
	uint32_t anchor = end == GRAPH_ANY_ACTOR ? NONE : anchor_of(f, end);
	if (anchor == NONE) {
		end = subjects_latest_actor(f);
		anchor = end == NONE ? NONE : anchor_of(f, end);
	}
	return subjects_add(f, anchor, 0);
}

/* ---- processes ------------------------------------------------------------------------------- */

static bool is_below(const char *path, const char *group)
{
	size_t n = strlen(group);
	while (n && group[n - 1] == '/')
		n--;
	return !strncmp(path, group, n) && (!path[n] || path[n] == '/');
}

static bool subjects_is_wanted(const struct finder *f, uint32_t process)
{
	const struct trace_defs *d = f->g->names;
	const struct trace_process *p = trace_def_process(d, process);
	if (f->o->process) {
		char pid[24];
		snprintf(pid, sizeof pid, "%llu", (unsigned long long)p->pid);
		if (strcmp(pid, f->o->process) != 0 &&
			fnmatch(f->o->process, trace_text_of(d, p->name), 0) != 0)
			return false;
	}
	if (f->o->cgroup) {
		const struct trace_group *group = trace_def_group(d, process);
		return is_below(trace_text_of(d, group->cgroup), f->o->cgroup);
	}
	return true;
}

/* The process of an actor that is a thread, and not the recorder's; 0: it is none. */
static uint32_t subjects_process_of(const struct finder *f, uint32_t actor)
{
	const struct trace_defs *d = f->g->names;
	uint32_t stream = model_actor_stream(f->g->model, actor);
	bool thread = stream && trace_def_context(d, stream)->type == TRACE_CONTEXT_none;
	return thread ? trace_def_stream(d, stream)->process : 0;
}

struct life { /* of a process */
	uint64_t born_ns, last_ns;
	uint32_t actor; /* the thread that did something last */
};

static void find_lives(const struct finder *f, struct life *life, uint32_t nr_processes)
{
	for (uint32_t i = 0; i < graph_part_nr_actors(f->g->part[f->last].part); i++) {
		uint32_t p = subjects_process_of(f, i);
		if (!p || p >= nr_processes)
			continue;
		uint64_t born = model_actor_born_ns(f->g->model, i), last = last_ns(f, i);
		if (born < life[p].born_ns)
			life[p].born_ns = born;
		if (last > life[p].last_ns) {
			life[p].last_ns = last;
			life[p].actor = i;
		}
	}
}

/* Each one's path, for as long as it lived: it begins with the parent's, and a thousand short
 * children would count that a thousand times. */
static enum base_status of_processes(struct finder *f)
{
	uint32_t nr_processes = f->g->names->nr_processes;
	struct life *life = base_alloc(((size_t)nr_processes + 1) * sizeof *life);
	enum base_status s = BASE_OK;
	if (!life)
		return base_fail(f->err, BASE_ERR_NOMEM, "out of memory for a window's processes");
	for (uint32_t p = 0; p < nr_processes; p++)
		life[p].born_ns = UINT64_MAX;
	find_lives(f, life, nr_processes);
	uint64_t to_ns = graph_part_to_ns(f->g->part[f->k].part);
	for (uint32_t p = 1; p < nr_processes && s == BASE_OK; p++)
		if (life[p].last_ns && life[p].born_ns < to_ns && subjects_is_wanted(f, p))
			s = subjects_add(f, anchor_of(f, life[p].actor), life[p].born_ns);
	base_free(life);
	return s;
}

enum base_status live_subjects(const struct live *l, const struct generation *g, size_t k,
	struct subjects *ret, struct base_err *err)
{
	const struct live_options *o = &l->opts;
	struct finder f = {.o = o,
		.g = g,
		.k = k,
		.last = g->nr_parts - 1,
		.root_pid = l->root_pid,
		.ret = ret,
		.err = err};
	ret->nr = 0;
	bool chosen = o->process || o->cgroup;
	return o->whom == LIVE_WHOM_program && !chosen ? of_program(&f) : of_processes(&f);
}
