/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spins.c - threads that may have waited without a call: samples in loops whose code shows that a
 * round changes nothing (trace kind wait_loop). That it waited is sure as far as its time was spent
 * there; for what, no record says: to the graph it worked. So whatever makes the other thread
 * quicker may gain more than is predicted. So it may where the path has waits that no recorded
 * event ended.
 */
#include "report/predict/predictor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TELLS_FROM REPORT_POLLS_FROM
#define POLLS_FOR  0.1 /* of the time that it naps others do something, at least */

static int by_spun(const void *a, const void *b)
{
	const struct report_spin *x = a, *y = b;
	if (x->spun_ns != y->spun_ns)
		return x->spun_ns < y->spun_ns ? 1 : -1;
	int c = strcmp(x->function, y->function);
	return c ? c : strcmp(x->word, y->word);
}

struct spins {
	struct report_spin *spin;
	size_t nr, capacity;
};

static enum base_status find_spin(struct spins *all, const struct model *m,
	const struct model_spin *of, struct report_spin **ret, struct base_err *err)
{
	const char *function = model_function_at(m, of->site), *word = of->word;
	for (size_t i = 0; i < all->nr; i++) {
		*ret = &all->spin[i];
		if (!strcmp((*ret)->function, function) && !strcmp((*ret)->word, word))
			return BASE_OK;
	}
	if (base_grow(&all->spin, &all->capacity, all->nr + 1, sizeof *all->spin) != BASE_OK)
		return report_no_memory(err);
	*ret = &all->spin[all->nr++];
	**ret = (struct report_spin){.function = function, .word = word};
	return BASE_OK;
}

static enum base_status add_all(struct spins *all, struct model *m, struct base_err *err)
{
	const struct graph_state_totals *total;
	struct report_spin *spin;
	size_t nr;
	enum base_status s = graph_totals(model_graph(m), &total, &nr, err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		struct model_spin spins = model_state_spin(m, total[i].state);
		if (spins.share <= 0)
			continue;
		s = find_spin(all, m, &spins, &spin, err);
		if (s == BASE_OK)
			spin->spun_ns +=
				spins.share * (double)(total[i].total_ns - total[i].waiting_ns);
	}
	return s;
}

static enum base_status spins_add_path(
	struct spins *all, struct model *m, double *ret_elapsed_ns, struct base_err *err)
{
	struct graph_lane_result lane = {0};
	struct report_spin *spin;
	enum base_status s = graph_lane(model_graph(m), 0, &lane, err);
	for (size_t i = 0; s == BASE_OK && i < lane.nr_states; i++) {
		const struct graph_path_state *p = &lane.state[i];
		struct model_spin spins = model_state_spin(m, p->state);
		if (spins.share <= 0)
			continue;
		s = find_spin(all, m, &spins, &spin, err);
		if (s == BASE_OK)
			spin->path_ns +=
				spins.share * (p->path_ns - p->unexplained_ns - p->latency_ns);
	}
	*ret_elapsed_ns = lane.length_ns;
	return s;
}

enum base_status report_fill_spins(
	struct report_spins *ret, struct base_arena *arena, struct model *m, struct base_err *err)
{
	struct spins all = {0};
	double elapsed_ns = 0;
	enum base_status s = add_all(&all, m, err);
	if (s == BASE_OK)
		s = spins_add_path(&all, m, &elapsed_ns, err);
	if (s == BASE_OK && all.nr)
		qsort(all.spin, all.nr, sizeof *all.spin, by_spun);
	for (size_t i = 0; s == BASE_OK && i < all.nr && ret->nr < REPORT_SPINS_MAX; i++) {
		struct report_spin *spin = &ret->spin[ret->nr];
		*spin = all.spin[i];
		if (spin->spun_ns < TELLS_FROM * elapsed_ns)
			break;
		spin->function = report_clean(arena, *spin->function ? spin->function : "?");
		spin->word = report_clean(arena, spin->word);
		spin->share = spin->spun_ns / elapsed_ns;
		spin->path_share = spin->path_ns / elapsed_ns;
		ret->nr++;
		if (!spin->function || !spin->word)
			s = report_no_memory(err);
	}
	base_free(all.spin);
	return s;
}

static int by_state_spun(const void *a, const void *b)
{
	const struct report_spin_state *x = a, *y = b;
	if (x->spun_ns != y->spun_ns)
		return x->spun_ns < y->spun_ns ? 1 : -1;
	return x->state < y->state ? -1 : x->state > y->state;
}

/* Sums of all the run. */
struct state_sums {
	double *total_ns,
		*running_ns; /* by state, of all actors; running: they did not wait in it */
	double *others_ns;   /* by state: what others did than those in it, the most of any of
			      these */
	uint32_t nr_states;
	double ready_ns, on_ns; /* of all: ready without a processor; running */
	double *doing_ns; /* by actor: it waited for nobody who is known, nor for a processor */
};

static bool state_sums_init(struct state_sums *w, const struct graph *g)
{
	size_t nr = w->nr_states = graph_nr_states(g);
	w->total_ns = base_alloc((3 * nr + 1) * sizeof *w->total_ns);
	w->doing_ns = base_alloc(((size_t)graph_nr_actors(g) + 1) * sizeof *w->doing_ns);
	if (!w->total_ns || !w->doing_ns)
		return false;
	w->running_ns = w->total_ns + nr;
	w->others_ns = w->running_ns + nr;
	return true;
}

static void state_sums_fini(struct state_sums *w)
{
	base_free(w->total_ns);
	base_free(w->doing_ns);
}

static bool is_doing(enum model_state_kind kind)
{
	static const bool no[MODEL_STATE_NR] = {[MODEL_STATE_wait] = true,
		[MODEL_STATE_latency] = true,
		[MODEL_STATE_runnable] = true,
		[MODEL_STATE_idle] = true,
		[MODEL_STATE_elsewhere] = true};
	return !no[kind];
}

static enum base_status sum_totals(struct state_sums *w, struct model *m, struct base_err *err)
{
	const struct graph_state_totals *total;
	double all_ns = 0;
	size_t nr;
	enum base_status s = graph_totals(model_graph(m), &total, &nr, err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++) {
		const struct graph_state_totals *x = &total[i];
		if (x->state >= w->nr_states)
			continue;
		/* (a clock is nobody who polls) */
		if (model_actor(m, x->actor)->kind != MODEL_ACTOR_meeting)
			w->total_ns[x->state] += (double)x->total_ns;
		w->running_ns[x->state] += (double)(x->total_ns - x->waiting_ns);
		enum model_state_kind kind = model_state(m, x->state)->kind;
		w->ready_ns += kind == MODEL_STATE_runnable ? (double)x->total_ns : 0;
		w->on_ns +=
			model_state_kind_waits(kind) ? 0 : (double)(x->total_ns - x->waiting_ns);
		if (!is_doing(kind) || model_state(m, x->state)->cause == MODEL_CAUSE_sleep_limit)
			continue; /* (who waits until a time limit does nothing, either) */
		w->doing_ns[x->actor] += (double)x->total_ns;
		all_ns += (double)x->total_ns;
	}
	for (size_t i = 0; s == BASE_OK && i < nr; i++)
		if (total[i].state < w->nr_states)
			w->others_ns[total[i].state] = fmax(
				w->others_ns[total[i].state], all_ns - w->doing_ns[total[i].actor]);
	return s;
}

/*
 * Of the time that all were in the state: naps again and again (model/naps.c), which may look for
 * what others do. When these hardly do anything, they do not.
 */
static double polled_share(const struct state_sums *w, const struct model *m, uint32_t state)
{
	double polled_ns = (double)model_state(m, state)->polled_ns;
	if (polled_ns <= 0 || w->others_ns[state] < POLLS_FOR * polled_ns)
		return 0;
	return fmin(1, polled_ns / fmax(w->total_ns[state], 1));
}

/* Of so much of a state on the path nobody knows what it waited for. The trace of a language's runtime
 * says of a wait for the network or a pipe only that; the other end may be in the same program. */
static double unexplained_ns(const struct model *m, const struct graph_path_state *p)
{
	return model_state(m, p->state)->cause == MODEL_CAUSE_task_outside ? p->path_ns
									   : p->unexplained_ns;
}

/* Where the path has waits in it that nothing explains, how long these are, and where it naps.
 * (Off the path the former hold nobody up.) */
static enum base_status sum_path(struct report_replay_run *ret, struct report_spin_state *spin,
	const struct state_sums *w, struct model *m, struct base_err *err)
{
	struct graph_lane_result lane = {0};
	enum base_status s = graph_lane(model_graph(m), 0, &lane, err);
	for (size_t i = 0; s == BASE_OK && i < lane.nr_states; i++) {
		const struct graph_path_state *p = &lane.state[i];
		if (p->state >= w->nr_states || model_state_spin(m, p->state).share > 0)
			continue;
		double unknown_ns = unexplained_ns(m, p);
		if (unknown_ns > 0) {
			spin[p->state].share = fmax(spin[p->state].share, unknown_ns / p->path_ns);
			spin[p->state].spun_ns += unknown_ns;
			ret->unexplained_ns += unknown_ns;
		}
		ret->polled_ns += polled_share(w, m, p->state) * (p->path_ns - unknown_ns);
	}
	return s;
}

static enum base_status sum_states(struct report_replay_run *ret, struct report_spin_state *spin,
	struct state_sums *w, struct model *m, struct base_err *err)
{
	enum base_status s = sum_totals(w, m, err);
	ret->ready_share = w->on_ns > 0 ? w->ready_ns / w->on_ns : 0;
	ret->ready_ns = w->ready_ns;
	/* (whose waits were only counted: any of what runs may have waited) */
	const double counted =
		w->on_ns > 0 ? fmin(1, (double)model_counted_wait_ns(m) / w->on_ns) : 0;
	for (uint32_t i = 0; i < w->nr_states; i++) {
		double share = fmax(model_state_spin(m, i).share, counted);
		spin[i] = (struct report_spin_state){
			.state = i, .share = share, .spun_ns = share * w->running_ns[i]};
	}
	if (s == BASE_OK)
		s = sum_path(ret, spin, w, m, err);
	for (uint32_t i = 0; i < w->nr_states; i++) {
		double share = polled_share(w, m, i);
		if (share <= spin[i].share)
			continue;
		spin[i] = (struct report_spin_state){.state = i,
			.share = share,
			.spun_ns = share * w->total_ns[i],
			.polls = true};
	}
	return s;
}

/* *ret_spin[ret_nr]: of each state; the caller frees it. */
static enum base_status all_spins(struct report_replay_run *ret,
	struct report_spin_state **ret_spin, uint32_t *ret_nr, struct model *m,
	struct base_err *err)
{
	struct state_sums sums = {0};
	uint32_t nr = *ret_nr = graph_nr_states(model_graph(m));
	struct report_spin_state *spin = *ret_spin = base_alloc((nr + 1) * sizeof *spin);
	enum base_status s = state_sums_init(&sums, model_graph(m)) && spin
				     ? sum_states(ret, spin, &sums, m, err)
				     : report_no_memory(err);
	state_sums_fini(&sums);
	return s;
}

enum base_status report_polled_path_ns(double *ret_ns, struct model *m, struct base_err *err)
{
	struct report_replay_run sums = {0};
	struct report_spin_state *spin;
	uint32_t nr;
	enum base_status s = all_spins(&sums, &spin, &nr, m, err);
	*ret_ns = sums.polled_ns;
	base_free(spin);
	return s;
}

enum base_status report_replay_spins(
	struct report_replay_run *ret, struct model *m, struct base_err *err)
{
	struct report_spin_state *spin;
	uint32_t nr_states, nr_spinning = 0;
	enum base_status s = all_spins(ret, &spin, &nr_states, m, err);
	for (uint32_t i = 0; s == BASE_OK && i < nr_states; i++)
		if (spin[i].share > 0 && spin[i].spun_ns >= TELLS_FROM * ret->recorded_ns)
			spin[nr_spinning++] = spin[i];
	for (uint32_t i = 0; i < nr_spinning; i++)
		ret->spins |= model_state_spin(m, spin[i].state).share > 0;
	if (nr_spinning)
		qsort(spin, nr_spinning, sizeof *spin, by_state_spun);
	ret->nr_spins = nr_spinning < REPORT_SPIN_STATES ? nr_spinning : REPORT_SPIN_STATES;
	if (ret->nr_spins)
		memcpy(ret->spin, spin, ret->nr_spins * sizeof *spin);
	base_free(spin);
	return s;
}

/* ---- said ------------------------------------------------------------------------------------ */

void report_polled_words(struct base_str *s, double share)
{
	report_percent(s, share);
	base_str_add(s,
		" of the path may be polling: repeated short sleeps at one place. No record "
		"tells what they wait for");
}

bool report_spins_text(struct base_str *out, const struct report_spins *s,
	const struct report_style *st, const char *label, const char *then)
{
	struct base_str text = {0};
	for (size_t i = 0; i < s->nr; i++) {
		const struct report_spin *spin = &s->spin[i];
		base_str_addf(&text, "%s%s", i ? ", " : "", spin->function);
		if (*spin->word)
			base_str_addf(&text, " on %s", spin->word);
		base_str_add(&text, " (");
		report_ns(&text, spin->spun_ns);
		base_str_add(&text, ", ");
		report_percent(&text, spin->path_share);
		base_str_add(&text, " of the path)");
	}
	if (s->nr) {
		base_str_addf(&text,
			" may be spinning: samples are in a loop that changes nothing until "
			"another thread does. That time counts as running, since the trace does "
			"not say for whom it waits. %s",
			then);
		size_t indent = *label == '!' ? strlen(label) : 11;
		report_wrap(out, st, label, indent, base_str_text(&text));
	}
	base_str_fini(&text);
	return s->nr;
}
