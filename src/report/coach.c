/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coach.c - what to annotate next, and what is wrong with the annotations there are (seed 000,
 * section 4.4): findings of the model, waits that nothing explains, actors that should wait and do
 * not. Most valuable first.
 */
#include "model/findings.h"
#include "report/private.h"

#include <stdlib.h>
#include <string.h>

#define LIGHT_SHARE        0.5  /* of the path: waiting for the outside or for time */
#define BUSY_SHARE         0.5  /* of its life: active, and out of touch with any queue */
#define BUSY_LIGHT_SHARE   0.2  /* ... when all should be idle */
#define BUSY_ELAPSED_SHARE 0.05 /* shorter-lived ones are not worth a word */
#define WORTH_PATH_SHARE   0.01 /* unexplained: from here on before warnings */
#define WORTH_TOTAL_SHARE  0.05 /* ... or at least to be told */
enum { QUIET_NS = 1000 * 1000 };

/* ---- who is active for long without touching a queue ----------------------------------------- */

struct activity {
	uint64_t last_ns, active_ns, quiet_ns, begin_ns, nr_touches;
	uint64_t run_ns;              /* active since the last touch */
	uint64_t away_ns, longest_ns; /* while its machines acted; in longest_state */
	uint32_t state, longest_state;
	bool seen, waits;
};
struct activities {
	struct activity *actor;
	size_t nr, capacity;
	bool *executes;  /* by state */
	bool *processor; /* by queue */
	size_t nr_states, state_capacity, nr_queues, queue_capacity;
};

static enum base_status hear_state(void *ctx, uint32_t state, bool executes, struct base_err *err)
{
	struct activities *a = ctx;
	enum base_status s =
		base_grow(&a->executes, &a->state_capacity, (size_t)state + 1, sizeof *a->executes);
	if (s != BASE_OK)
		return report_no_memory(err);
	for (; a->nr_states <= state; a->nr_states++)
		a->executes[a->nr_states] = false;
	a->executes[state] = executes;
	return BASE_OK;
}

static enum base_status coach_hear_queue(
	void *ctx, uint32_t queue, const struct graph_queue_options *o, struct base_err *err)
{
	struct activities *a = ctx;
	enum base_status s = base_grow(
		&a->processor, &a->queue_capacity, (size_t)queue + 1, sizeof *a->processor);
	if (s != BASE_OK)
		return report_no_memory(err);
	for (; a->nr_queues <= queue; a->nr_queues++)
		a->processor[a->nr_queues] = false;
	a->processor[queue] = o->processor;
	return BASE_OK;
}

/* Preempted and back again: it goes on as it was, and wants to all the time. */
static bool is_about_processor(
	const struct activities *all, enum graph_verb_kind kind, const struct graph_verb *v)
{
	bool has_queue = kind != GRAPH_VERB_state && kind != GRAPH_VERB_wait &&
			 kind != GRAPH_VERB_link && kind != GRAPH_VERB_rename &&
			 kind != GRAPH_VERB_forget;
	return has_queue && v->queue < all->nr_queues && all->processor[v->queue];
}

static void coach_touch(struct activity *a)
{
	if (a->run_ns >= QUIET_NS)
		a->quiet_ns += a->run_ns;
	a->run_ns = 0;
	a->nr_touches++;
}

static enum base_status coach_hear_verb(void *ctx, enum graph_verb_kind kind,
	const struct graph_verb *v, uint32_t from_actor, struct base_err *err)
{
	struct activities *all = ctx;
	enum base_status s =
		base_grow(&all->actor, &all->capacity, (size_t)v->actor + 1, sizeof *all->actor);
	(void)from_actor;
	if (s != BASE_OK)
		return report_no_memory(err);
	for (; all->nr <= v->actor; all->nr++)
		all->actor[all->nr] = (struct activity){0};
	struct activity *a = &all->actor[v->actor];
	if (kind == GRAPH_VERB_rename) {
		a->state = v->state;
		return BASE_OK;
	}
	if (v->flags & GRAPH_ASIDE || (a->seen && is_about_processor(all, kind, v)))
		return BASE_OK;
	if (a->seen && !a->waits && a->state < all->nr_states && all->executes[a->state] &&
		v->time_ns > a->last_ns) {
		a->active_ns += v->time_ns - a->last_ns;
		a->run_ns += v->time_ns - a->last_ns;
	}
	if (!a->seen)
		a->begin_ns = v->time_ns;
	if (kind != GRAPH_VERB_state)
		coach_touch(a);
	a->seen = true;
	a->last_ns = v->time_ns;
	a->state = v->state;
	a->waits = kind == GRAPH_VERB_wait || kind == GRAPH_VERB_wait_empty ||
		   kind == GRAPH_VERB_wait_full;
	return BASE_OK;
}

static void finish_activities(struct activities *all)
{
	for (size_t i = 0; i < all->nr; i++)
		coach_touch(&all->actor[i]);
}

/* ---- a list of things to do ------------------------------------------------------------------ */

struct coach_build {
	struct report_coach *out;
	struct model *m;
	struct graph_lane_result lane;
	size_t capacity;
	struct base_map gaps; /* (group, site) -> gap */
	struct gap {          /* unexplained waiting of one group of actors at one place */
		uint32_t group, site, actor, state;
		enum model_state_kind kind;
		double path_ns, total_ns;
		uint64_t visits, most_ns;
	} * gap;
	size_t nr_gaps, gap_capacity;
};

static struct report_advice *add_advice(struct coach_build *b)
{
	struct report_coach *out = b->out;
	if (base_grow(&out->advice, &b->capacity, out->nr + 1, sizeof *out->advice) != BASE_OK)
		return NULL;
	out->advice[out->nr] = (struct report_advice){.queue = "", .actor = "", .where = ""};
	return &out->advice[out->nr++];
}

static bool coach_is_complete(const struct report_advice *a)
{
	return a->what && a->todo && a->where && a->actor && a->queue;
}

static enum base_status coach_add_finding(struct coach_build *b, const struct model_finding *f)
{
	enum { RARE = 100 };
	struct base_arena *arena = b->out->arena;
	struct report_advice *a = add_advice(b);
	struct base_str what = {0}, todo = {0};
	if (!a)
		return BASE_ERR_NOMEM;
	report_clean_add(&what, f->sentence);
	report_clean_add(&todo, f->advice);
	bool rare = f->severity == MODEL_SEVERITY_warning && f->of >= RARE * f->count;
	if (rare)
		base_str_add(&todo, " (so rare: perhaps another thread came in between, which is "
				    "harmless)");
	*a = (struct report_advice){
		.check = model_check_name(f->check),
		.severity = rare ? "info" : model_severity_name(f->severity),
		.rank = f->severity == MODEL_SEVERITY_error              ? 0
			: f->severity == MODEL_SEVERITY_warning && !rare ? 2
									 : 4,
		.what = report_keep(arena, &what),
		.todo = report_keep(arena, &todo),
		.where = report_clean(arena, f->where),
		.near_by = f->near_by,
		.actor = report_clean(arena, f->actor),
		.queue = report_clean(arena, f->queue),
		.count = f->count,
		.of = f->of,
		.first_ns = f->first_ns,
	};
	b->out->nr_findings++;
	return coach_is_complete(a) ? BASE_OK : BASE_ERR_NOMEM;
}

/* ---- waits that nothing explains ------------------------------------------------------------- */

static enum base_status gap_of(
	struct coach_build *b, uint32_t actor, uint32_t state, struct gap **ret)
{
	const struct model_state *st = model_state(b->m, state);
	uint32_t group = model_actor(b->m, actor)->group_ix;
	uint64_t ix, hi = (uint64_t)st->kind << 32 | group;
	if (!base_map_get(&b->gaps, hi, st->site, &ix)) {
		enum base_status s =
			base_grow(&b->gap, &b->gap_capacity, b->nr_gaps + 1, sizeof *b->gap);
		if (s == BASE_OK)
			s = base_map_put(&b->gaps, hi, st->site, b->nr_gaps);
		if (s != BASE_OK)
			return s;
		ix = b->nr_gaps++;
		b->gap[ix] = (struct gap){.group = group,
			.site = st->site,
			.kind = st->kind,
			.actor = actor,
			.state = state};
	}
	*ret = &b->gap[ix];
	return BASE_OK;
}

/* Of a group the one that waited longest stands for all. */
static enum base_status find_gaps(
	struct coach_build *b, const struct graph_state_totals *totals, size_t nr_totals)
{
	struct gap *gap = NULL;
	enum base_status s = BASE_OK;
	for (size_t i = 0; s == BASE_OK && i < b->lane.nr_states; i++) {
		const struct graph_path_state *p = &b->lane.state[i];
		if (p->unexplained_ns <= 0)
			continue;
		s = gap_of(b, p->actor, p->state, &gap);
		if (s == BASE_OK && gap)
			gap->path_ns += p->unexplained_ns;
	}
	for (size_t i = 0; s == BASE_OK && i < nr_totals; i++) {
		const struct graph_state_totals *t = &totals[i];
		if (model_state(b->m, t->state)->kind != MODEL_STATE_blocked || !t->waiting_ns)
			continue;
		s = gap_of(b, t->actor, t->state, &gap);
		if (s != BASE_OK || !gap)
			break;
		gap->total_ns += (double)t->waiting_ns;
		gap->visits += t->visits;
		if (t->waiting_ns > gap->most_ns) {
			gap->most_ns = t->waiting_ns;
			gap->actor = t->actor;
			gap->state = t->state;
		}
	}
	return s;
}

static void say_gap(
	struct coach_build *b, const struct gap *g, struct base_str *what, struct base_str *todo)
{
	const struct model_state *st = model_state(b->m, g->state);
	double elapsed_ns = b->out->elapsed_ns;
	uint64_t nr, all;
	bool blocked = g->kind == MODEL_STATE_blocked;
	uint32_t before = model_ran_before(b->m, g->actor, g->state, &nr, &all);
	if (blocked)
		base_str_add(what, "blocked outside every recorded call");
	else
		base_str_addf(what, "'%s' ended, and no recorded event ended it", st->name);
	double most_ns = g->total_ns > g->path_ns ? g->total_ns : g->path_ns;
	base_str_add(what, ": ");
	report_ns(what, most_ns);
	if (g->visits) {
		base_str_add(what, " in ");
		base_str_add_counted(what, "%s {wait|waits}", g->visits);
	}
	base_str_add(what, ", of it ");
	report_ns(what, g->path_ns);
	base_str_add(what, " on the critical path (");
	report_percent(what, elapsed_ns > 0 ? g->path_ns / elapsed_ns : 0);
	base_str_add(what, ")");
	const char *waker = before != MODEL_OTHERS ? model_actor(b->m, before)->name : NULL;
	if (waker)
		base_str_addf(what, "; just before it went on, %s ran (%llu of %llu {time|times})",
			waker, (unsigned long long)nr, (unsigned long long)all);
	if (!blocked) {
		base_str_add(todo, "call longpole_enqueue(\"NAME\", instance, 1, 0) where the "
				   "other side makes this wait end, and longpole_dequeue(\"NAME\", "
				   "instance, 1, 0) here; or record the other side, too");
		return;
	}
	base_str_add(todo,
		"call longpole_wait_empty(\"NAME\", instance, 1, 0) before the place where "
		"it blocks, and longpole_dequeue(\"NAME\", instance, 1, 0) after it; ");
	if (waker)
		base_str_addf(todo,
			"longpole_enqueue(\"NAME\", instance, 1, 0) in %s, before it "
			"wakes this one",
			waker);
	else
		base_str_add(todo, "longpole_enqueue(\"NAME\", instance, 1, 0) where it is woken. "
				   "If it blocks "
				   "in a lock of malloc's or in the kernel, no annotation helps: "
				   "allocate less often in several threads, or record --system");
}

static enum base_status add_gap(struct coach_build *b, const struct gap *g)
{
	double elapsed_ns = b->out->elapsed_ns > 0 ? b->out->elapsed_ns : 1;
	bool worth = g->path_ns >= WORTH_PATH_SHARE * elapsed_ns;
	struct base_str what = {0}, todo = {0}, clean_what = {0}, clean_todo = {0};
	if (!worth && g->total_ns < WORTH_TOTAL_SHARE * elapsed_ns)
		return BASE_OK;
	struct report_advice *a = add_advice(b);
	if (!a)
		return BASE_ERR_NOMEM;
	say_gap(b, g, &what, &todo);
	report_clean_add(&clean_what, base_str_text(&what));
	report_clean_add(&clean_todo, base_str_text(&todo));
	bool failed = what.failed || todo.failed;
	base_str_fini(&what);
	base_str_fini(&todo);
	struct base_arena *arena = b->out->arena;
	*a = (struct report_advice){
		.check = "unexplained_wait",
		.severity = worth ? "warning" : "info",
		.rank = worth ? 1 : 3,
		.what = report_keep(arena, &clean_what),
		.todo = report_keep(arena, &clean_todo),
		.where = report_clean(arena, model_site_text(b->m, g->site)),
		.after = g->kind == MODEL_STATE_blocked,
		.actor = report_clean(arena, model_actor(b->m, g->actor)->name),
		.queue = "",
		.count = g->visits,
		.path_ns = g->path_ns,
		.total_ns = g->total_ns > g->path_ns ? g->total_ns : g->path_ns,
	};
	return coach_is_complete(a) && !failed ? BASE_OK : BASE_ERR_NOMEM;
}

/* ---- the low-rate test ----------------------------------------------------------------------- */

/* Part of the path in which all wait for something that is not recorded: a client, a timer. */
static double light_share(const struct coach_build *b)
{
	double light_ns = 0;
	for (size_t i = 0; i < b->lane.nr_states; i++) {
		enum model_state_kind kind = model_state(b->m, b->lane.state[i].state)->kind;
		if (kind == MODEL_STATE_sleep || kind == MODEL_STATE_external)
			light_ns += b->lane.state[i].path_ns;
	}
	return b->out->elapsed_ns > 0 ? light_ns / b->out->elapsed_ns : 0;
}

/* What the totals say of each actor: which active state is its longest, and for how long its
 * machines acted in its place. */
static void coach_add_totals(struct model *m, struct activities *all,
	const struct graph_state_totals *totals, size_t nr_totals)
{
	for (size_t i = 0; i < nr_totals; i++) {
		const struct graph_state_totals *t = &totals[i];
		uint64_t active_ns = t->total_ns - t->waiting_ns;
		if (t->actor >= all->nr)
			continue;
		struct activity *a = &all->actor[t->actor];
		a->away_ns += model_away_ns(m, t->actor, t->state);
		if (active_ns <= a->longest_ns ||
			model_state_kind_waits(model_state(m, t->state)->kind))
			continue;
		a->longest_ns = active_ns;
		a->longest_state = t->state;
	}
	for (size_t i = 0; i < all->nr; i++) {
		struct activity *a = &all->actor[i];
		a->quiet_ns -= a->away_ns < a->quiet_ns ? a->away_ns : a->quiet_ns;
	}
}

/* The function that most samples of its longest active state are in; "" not known. */
static const char *busiest_function(struct model *m, const struct activity *a)
{
	size_t nr = 0;
	const struct model_function_share *f =
		a->longest_ns ? model_functions(m, a->longest_state, &nr) : NULL;
	if (!nr || f[0].share < 0.3)
		return "";
	return *f[0].function ? f[0].function : f[0].where;
}

static bool spins(const char *function)
{
	static const char *const spinner[] = {"sched_yield", "__sched_yield", "thrd_yield",
		"pthread_yield", "do_sched_yield", "__x64_sys_sched_yield"};
	for (size_t i = 0; i < BASE_COUNT(spinner); i++)
		if (!strcmp(function, spinner[i]))
			return true;
	return false;
}

static enum base_status add_suspect(
	struct coach_build *b, uint32_t actor, const struct activity *act, const char *function)
{
	struct report_advice *a = add_advice(b);
	struct base_str what = {0}, clean = {0};
	uint64_t life_ns = act->last_ns - act->begin_ns;
	if (!a)
		return BASE_ERR_NOMEM;
	base_str_add(&what, "active or ready for ");
	report_percent(&what, life_ns ? (double)act->quiet_ns / (double)life_ns : 0);
	base_str_add(&what, " of its life (");
	base_str_add_ns(&what, act->quiet_ns);
	base_str_add(&what, ") without putting into, taking from or waiting for any queue");
	if (*function)
		base_str_addf(&what, ", mostly in %s", function);
	if (b->out->light)
		base_str_add(&what, ", while the critical path waits for the outside");
	report_clean_add(&clean, base_str_text(&what));
	bool failed = what.failed;
	base_str_fini(&what);
	struct base_arena *arena = b->out->arena;
	*a = (struct report_advice){
		.check = "missing_wait",
		.severity = b->out->light || spins(function) ? "warning" : "info",
		.rank = b->out->light || spins(function) ? 1 : 5,
		.what = report_keep(arena, &clean),
		.todo = "if it polls or spins, call longpole_wait_empty(\"NAME\", instance, 1, 0) "
			"when it finds nothing to do, and longpole_dequeue(\"NAME\", instance, 1, "
			"0) when it does. Where its work is made, call longpole_enqueue(\"NAME\", "
			"instance, 1, 0)",
		.where = "",
		.actor = report_clean(arena, model_actor(b->m, actor)->name),
		.queue = "",
		.count = act->nr_touches,
		.total_ns = (double)act->quiet_ns,
	};
	return coach_is_complete(a) && !failed ? BASE_OK : BASE_ERR_NOMEM;
}

/*
 * Whoever computes is active, too: only when everything else is idle, when samples find it
 * yielding, or when it is a machine that says nothing of queues, is that suspicious.
 */
static enum base_status find_suspects(struct coach_build *b, const struct activities *all)
{
	enum base_status s = BASE_OK;
	double elapsed_ns = b->out->elapsed_ns;
	for (uint32_t i = 0; s == BASE_OK && i < all->nr; i++) {
		const struct activity *a = &all->actor[i];
		const struct model_actor *actor = model_actor(b->m, i);
		double life_ns = (double)(a->last_ns - a->begin_ns), quiet_ns = (double)a->quiet_ns;
		bool busy = quiet_ns >= (b->out->light ? BUSY_LIGHT_SHARE : BUSY_SHARE) * life_ns;
		if (!a->seen || !busy || quiet_ns < BUSY_ELAPSED_SHARE * elapsed_ns ||
			actor->kind == MODEL_ACTOR_meeting)
			continue;
		const char *function = busiest_function(b->m, a);
		if (b->out->light || spins(function))
			s = add_suspect(b, i, a, function);
	}
	return s;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int most_valuable_first(const void *pa, const void *pb)
{
	const struct report_advice *a = pa, *b = pb;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->path_ns != b->path_ns)
		return a->path_ns > b->path_ns ? -1 : 1;
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	int c = strcmp(a->where, b->where);
	c = c ? c : strcmp(a->what, b->what);
	return c ? c : strcmp(a->actor, b->actor);
}

static enum base_status coach_fill(
	struct coach_build *b, struct activities *activities, struct base_err *err)
{
	const struct graph_state_totals *totals;
	size_t nr_totals, nr;
	enum base_status s = graph_lane(model_graph(b->m), 0, &b->lane, err);
	if (s == BASE_OK)
		s = graph_totals(model_graph(b->m), &totals, &nr_totals, err);
	if (s != BASE_OK)
		return s;
	b->out->elapsed_ns = b->lane.length_ns;
	b->out->light_share = light_share(b);
	b->out->light = b->out->light_share >= LIGHT_SHARE;
	const struct model_finding *f = model_findings(b->m, &nr, &b->out->nr_more_findings);
	for (size_t i = 0; s == BASE_OK && i < nr; i++)
		s = coach_add_finding(b, &f[i]);
	if (s == BASE_OK)
		s = find_gaps(b, totals, nr_totals);
	for (size_t i = 0; s == BASE_OK && i < b->nr_gaps; i++) {
		b->out->unexplained_path_ns += b->gap[i].path_ns;
		s = add_gap(b, &b->gap[i]);
	}
	if (s == BASE_OK) {
		coach_add_totals(b->m, activities, totals, nr_totals);
		s = find_suspects(b, activities);
	}
	if (s != BASE_OK)
		return report_no_memory(err);
	if (b->out->nr)
		qsort(b->out->advice, b->out->nr, sizeof *b->out->advice, most_valuable_first);
	return s;
}

enum base_status report_coach_build(
	const struct report_run *run, struct report_coach **ret, struct base_err *err)
{
	struct activities activities = {0};
	const struct graph_sink sink = {.ctx = &activities,
		.state = hear_state,
		.queue = coach_hear_queue,
		.verb = coach_hear_verb};
	struct report_pass_options opts = {.sink = &sink};
	struct coach_build b = {.out = report_answer_new(sizeof *b.out)};
	if (!b.out)
		return report_no_memory(err);
	enum base_status s =
		report_pass(run, "looking for what lacks an annotation", &opts, &b.m, err);
	if (s == BASE_OK)
		s = report_fill_trace(&b.out->trace, b.out->arena, run, b.m, err);
	finish_activities(&activities);
	if (s == BASE_OK)
		s = coach_fill(&b, &activities, err);
	base_free(b.gap);
	base_map_fini(&b.gaps);
	base_free(activities.actor);
	base_free(activities.executes);
	base_free(activities.processor);
	model_free(b.m);
	if (s != BASE_OK)
		report_coach_free(b.out);
	else
		*ret = b.out;
	return s;
}

struct report_coach *report_coach_free(struct report_coach *c)
{
	if (!c)
		return NULL;
	base_free(c->advice);
	return report_answer_free(c);
}

/* ---- text ------------------------------------------------------------------------------------ */

enum { INDENT = 14 };

static void coach_add_where(struct base_str *s, const struct report_advice *a)
{
	if (*a->where)
		base_str_addf(s, "%s%s",
			a->near_by ? "soon after "
			: a->after ? "somewhere after "
				   : "",
			a->where);
	if (*a->actor)
		base_str_addf(s, "%s%s", s->length ? ", by " : "by ", a->actor);
	if (a->first_ns) {
		base_str_add(s, ", first at ");
		base_str_add_ns(s, a->first_ns);
	}
}

static void advice_text(struct base_str *out, const struct report_style *st, size_t number,
	const struct report_advice *a)
{
	struct base_str s = {0}, label = {0};
	base_str_addf(&label, "%3zu  %s", number, a->severity);
	base_str_add(&s, a->todo);
	report_wrap(out, st, base_str_text(&label), INDENT, base_str_text(&s));
	base_str_reset(&s);
	base_str_add(&s, a->what);
	if (a->count && a->path_ns <= 0 && a->total_ns <= 0 && (a->of || a->count > 1)) {
		base_str_add(&s, ": ");
		base_str_add_count(&s, a->count);
		if (a->of >= a->count && a->of) {
			base_str_add(&s, " of ");
			base_str_add_count(&s, a->of);
		}
		base_str_add(&s, (a->of ? a->of : a->count) == 1 ? " time" : " times");
	}
	report_wrap(out, st, "     because", INDENT, base_str_text(&s));
	base_str_reset(&s);
	coach_add_where(&s, a);
	if (s.length)
		report_wrap(out, st, "     where", INDENT, base_str_text(&s));
	base_str_fini(&label);
	base_str_fini(&s);
}

void report_coach_text(struct base_str *out, const struct report_coach *c, size_t limit,
	const struct report_style *style)
{
	struct base_str s = {0};
	size_t nr = limit && limit < c->nr ? limit : c->nr;
	if (!c->nr)
		base_str_add(&s, "Nothing to annotate: no misuse was found, and hardly any wait is "
				 "unexplained");
	else
		base_str_addf(&s, "%zu {thing|things} to look at, most valuable first", c->nr);
	base_str_add(&s, " (");
	report_percent(&s, c->elapsed_ns > 0 ? 1 - c->unexplained_path_ns / c->elapsed_ns : 1);
	base_str_add(&s, " of the path is explained).");
	report_color_begin(out, style, REPORT_BOLD);
	base_str_addf(out, "%s\n", base_str_text(&s));
	report_color_end(out, style);
	for (size_t i = 0; i < nr; i++)
		advice_text(out, style, i + 1, &c->advice[i]);
	if (nr < c->nr)
		base_str_addf(out, "... %zu more (--all shows them)\n", c->nr - nr);
	if (c->nr_more_findings)
		base_str_add_counted(out,
			"%s more {finding was|findings were} not kept: correct these first\n",
			c->nr_more_findings);
	if (!c->light) {
		base_str_reset(&s);
		base_str_add(&s, "to find missing waits, record a run with little to do (a lightly "
				 "loaded run: a client that sends little). What is still active "
				 "then lacks a wait. In this run ");
		report_percent(&s, c->light_share);
		base_str_add(&s, " of the path waits for the outside");
		report_wrap(out, style, "NOTE", INDENT, base_str_text(&s));
	}
	base_str_fini(&s);
	report_trace_text_caveats(out, &c->trace, style);
}

#include "report/coach.def"

json_t *report_coach_json(const struct report_coach *c)
{
	return report_envelope(report_coach_document.name, &c->trace,
		base_table_json(&report_coach_document, c, c, 0));
}
