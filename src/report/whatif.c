/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif.c - what scenarios would do to the path's length.
 *
 * A first pass finds what the patterns mean; a second one carries every scenario as a lane. A
 * pattern that names a function (known from samples) scales each state by the function's share of
 * it: the share is an estimate, so that scenario gets two more lanes for the ends of its interval.
 */
#include "report/private.h"

#include "graph/tokens.h"
#include "model/link.h"

#include <string.h>

enum {
	ENDS = REPORT_LANES_MAX /* estimate, low, high share */
};

struct resolver {
	struct model *m;
	struct base_arena *arena;
	const struct report_scenarios *scenarios;
	struct model_match *functions; /* of the pattern at hand */
	uint32_t nr_states, nr_queues;
	double *path_ns; /* lane 0, by state */
	double elapsed_ns;
	struct report_own own;
	double timed_ns;      /* of it: waits that a time limit or a signal ended */
	double *waited_ns;    /* likewise, on the path or not */
	double *factor[ENDS]; /* by state, of the scenario at hand */
	bool *elided;
	struct graph_scenario *lane;
	size_t nr_lanes;
	bool *no_path;               /* by lane: an edit that only replay can make */
	struct graph_replay *log;    /* NULL: path alone */
	struct graph_tokens *tokens; /* NULL: a part of the run, or replay alone */
	struct report_ray ray;
	struct report_parts parts; /* where an edit is of one */
	struct report_parts locks; /* all, when one is named */
	unsigned methods;
};

/* ---- patterns -> states ---------------------------------------------------------------------- */

/* How much of a state an edit is about. */
struct part {
	double share[ENDS];
	bool estimated;
};

static struct part whatif_whole(void)
{
	return (struct part){.share = {1, 1, 1}};
}

/* What of a state a pattern is looked for in; the first of these that finds any decides. */
enum match_by { BY_NAME, BY_WORD, BY_PART, BY_PLACE, MATCH_BY_NR };

static bool matches(enum match_by by, const char *pattern, const char *text)
{
	return by == BY_WORD ? report_pattern_matches_word(pattern, text)
			     : report_pattern_matches(pattern, text);
}

struct wanted { /* functions that a pattern means */
	enum match_by by;
	const char *pattern;
};

static bool is_wanted(void *ctx, const char *function)
{
	const struct wanted *want = ctx;
	return matches(want->by, want->pattern, function);
}

/* By function, with all that it calls (but `self`): only states that were sampled; their own name is
 * not looked at when it is just one of those functions. */
static bool match_functions(const struct resolver *w, uint32_t state, struct part *ret)
{
	struct model_function_share f;
	*ret = (struct part){.estimated = true};
	if (!model_share_in(w->m, state, w->functions, &f))
		return false;
	ret->share[0] = f.share;
	ret->share[1] = f.share_low;
	ret->share[2] = f.share_high;
	return true;
}

/* A sleep, or a call that takes time itself, is of the function that it is in, as what that runs. */
static bool is_spent_in(const struct resolver *w, const struct model_state *st, enum match_by by,
	const char *pattern)
{
	const char *function = model_function_at(w->m, st->site);
	return !w->scenarios->self && *function &&
	       (st->kind == MODEL_STATE_sleep || st->kind == MODEL_STATE_io) &&
	       matches(by, pattern, function);
}

/* By its name, or by that of the file that it is about. */
static bool match_name(const struct model_state *st, enum match_by by, const char *pattern)
{
	return matches(by, pattern, st->name) ||
	       (st->of_file && matches(by, pattern, st->of_file)) ||
	       (st->on_file && matches(by, pattern, st->on_file));
}

static bool match_state(const struct resolver *w, uint32_t state, const char *pattern,
	enum match_by by, struct part *ret)
{
	const struct model_state *st = model_state(w->m, state);
	if (by == BY_PLACE || by == BY_NAME) {
		*ret = whatif_whole();
		return by == BY_NAME ? !strcmp(pattern, st->name)
				     : report_pattern_matches(pattern, st->where);
	}
	if (match_functions(w, state, ret))
		return true;
	*ret = whatif_whole();
	return match_name(st, by, pattern) || is_spent_in(w, st, by, pattern);
}

/*
 * A link: whatever transmits on "NAME line", and arrives late through the queue "NAME cable"; so
 * `longpole platform` names them (platform/link.c), and so may annotated programs.
 */
static bool match_link(const struct resolver *w, uint32_t state, const struct report_edit *e)
{
	static const struct {
		enum model_cause cause;
		enum model_argument_type of;
		const char *end;
	} part[] = {{MODEL_CAUSE_annotated_machine, MODEL_ARGUMENT_machine, " line"},
		{MODEL_CAUSE_handover, MODEL_ARGUMENT_object, " cable"}};
	bool rate = e->verb == REPORT_EDIT_link_rate;
	const struct model_state *st = model_state(w->m, state);
	const char *name = model_text(w->m, model_state_argument(st, part[!rate].of)),
		   *does = model_text(w->m, model_state_argument(st, MODEL_ARGUMENT_state));
	size_t length = strlen(name), nr = strlen(part[!rate].end);
	return st->cause == part[!rate].cause && (!rate || !strcmp(does, "transmit")) &&
	       length > nr && !strcmp(name + length - nr, part[!rate].end) &&
	       report_pattern_matches(e->pattern, st->name);
}

static bool match_edit(const struct resolver *w, uint32_t state, const struct report_edit *e,
	enum match_by by, struct part *ret)
{
	if (e->verb == REPORT_EDIT_scale || e->verb == REPORT_EDIT_balance)
		return match_state(w, state, e->pattern, by, ret);
	*ret = whatif_whole();
	if (e->verb == REPORT_EDIT_elide) {
		const struct model_state *st = model_state(w->m, state);
		/* (a system call's name is a word of each wait in it: all of these go) */
		return by == BY_NAME    ? false
		       : by == BY_PLACE ? matches(by, e->pattern, st->where)
					: match_name(st, by, e->pattern);
	}
	return by == BY_PART && match_link(w, state, e);
}

/* The longest of them, for a user who has to choose another name; `ns` is spoilt. */
static void add_longest(const struct resolver *w, double *ns, struct base_str *out)
{
	for (unsigned nr = 0; nr < 3; nr++) {
		uint32_t best = 0;
		for (uint32_t s = 1; s < w->nr_states; s++)
			if (ns[s] > ns[best])
				best = s;
		if (best >= w->nr_states || ns[best] <= 0)
			return;
		base_str_addf(out, "%s'%s'", nr ? ", " : "", model_state(w->m, best)->name);
		ns[best] = 0;
	}
}

static enum base_status no_such_state(
	struct resolver *w, const struct report_edit *e, struct base_err *err)
{
	bool elides = e->verb == REPORT_EDIT_elide;
	struct base_str near = {0};
	if (!elides && report_is_part_number(e->pattern))
		return base_fail(err, BASE_ERR_NOTFOUND,
			"%s: this trace's path has %zu {part|parts}; 'longpole report --full' "
			"numbers "
			"them",
			e->text, w->parts.nr);
	add_longest(w, elides ? w->waited_ns : w->path_ns, &near);
	enum base_status s = base_fail(err, BASE_ERR_NOTFOUND,
		elides ? "%s: no state or place matches; the longest waits are %s"
		       : "%s: no state, place or sampled function matches; the path's longest "
			 "states are %s",
		e->text, base_str_text(&near));
	base_str_fini(&near);
	return s;
}

/* Of many files the one that was meant. */
static const char *example_of(const struct model_state *st, const char *pattern)
{
	return st->of_file && !report_pattern_matches(pattern, st->name) ? st->of_file : st->name;
}

/* What a report has under that number, or a lock, which need not be a part of the path. */
static const struct report_part *whatif_part(const struct resolver *w, const char *name)
{
	const struct report_part *part = report_find_part(&w->parts, name);
	return part || report_is_part_number(name) ? part : report_find_part(&w->locks, name);
}

/* A wait or a hand-off goes only when all of its part does. An actor that takes longer loses its
 * processor as much oftener, which goes with what it does: the waits for a processor of everybody
 * else, which have the same state, are as long as they were. */
static bool whatif_leaves(
	const struct resolver *w, const struct report_state_share *x, double factor)
{
	if (x->state >= w->nr_states || (x->follows && factor > 0))
		return true;
	return factor > 1 && model_state(w->m, x->state)->kind == MODEL_STATE_runnable;
}

/* Where an edit is mostly of what is not the program's doing, the share is of the whole path. */
static void whatif_count(
	const struct resolver *w, struct report_match *match, uint32_t state, double share)
{
	double path_ns = w->path_ns[state] * share;
	if (report_why_apart(w->m, state) == REPORT_APART_NR)
		match->path_ns += path_ns;
	else
		match->apart_ns += path_ns;
	match->path_share = match->apart_ns > match->path_ns
				    ? (match->path_ns + match->apart_ns) / w->elapsed_ns
				    : report_own_share(&w->own, match->path_ns);
}

/* Of all that a report calls "#2", or of a lock: what its holders do, wherever they do it. */
static enum base_status apply_to_part(struct resolver *w, const struct report_edit *e,
	const struct report_part *part, struct report_prediction *p, struct report_match *match,
	struct base_err *err)
{
	for (size_t i = 0; i < part->nr_states; i++) {
		const struct report_state_share *x = &part->state[i];
		if (whatif_leaves(w, x, e->factor))
			continue;
		match->nr_states++;
		match->waited_ns += w->waited_ns[x->state] * x->share;
		for (unsigned k = 0; k < ENDS; k++)
			w->factor[k][x->state] *= 1 - (1 - e->factor) * x->share;
	}
	match->path_ns = part->path_ns;
	match->path_share = report_own_share(&w->own, part->path_ns);
	match->example = report_clean(w->arena, part->name);
	if (part->is_lock && e->factor < 1)
		p->most_speedup = report_most_speedup(w->elapsed_ns, part->held_ns, 1 - e->factor);
	return match->example ? BASE_OK : report_no_memory(err);
}

/* Without a lock that every running thread has (an interpreter's), nobody waits for it: taking the
 * waits away is taking it away. */
static bool is_elided(const struct resolver *w, const struct report_edit *e, uint32_t state)
{
	return e->verb == REPORT_EDIT_elide ||
	       (e->verb == REPORT_EDIT_scale && e->factor <= 0 &&
		       model_state(w->m, state)->kind == MODEL_STATE_wait &&
		       model_state_about(w->m, state, MODEL_TRAIT_had_to_run));
}

enum { LINK_SIZES_MIN = 2 };
#define LINK_ERROR_MAX 0.5

static bool is_of_mpi(const struct resolver *w, uint32_t state, const struct report_edit *e)
{
	const struct model_state *st = model_state(w->m, state);
	return (st->cause == MODEL_CAUSE_communication || st->cause == MODEL_CAUSE_mpi_call) &&
	       (!strcmp(e->pattern, "MPI") || report_pattern_matches(e->pattern, st->name));
}

/* What the fit must say before anything is said of another network. */
static enum base_status whatif_fit(const struct resolver *w, const struct report_edit *e,
	struct model_link *ret, struct base_err *err)
{
	bool fits = model_link_fit(w->m, ret), rate = e->verb == REPORT_EDIT_link_rate;
	if (e->factor > 1)
		return base_fail(err, BASE_ERR_USAGE,
			"%s: that is a slower network, under which messages that were in time may "
			"be late: by how much this trace does not tell",
			e->text);
	if (!fits)
		return base_fail(err, BASE_ERR_NOTFOUND,
			"%s: no receiver waited for a message alone, so how long messages take is "
			"not known",
			e->text);
	if (ret->nr_sizes < LINK_SIZES_MIN)
		return base_fail(err, BASE_ERR_NOTFOUND,
			"%s: all messages that were waited for have one size, which does not tell "
			"latency from rate; 'scale \"communication*\"' changes both",
			e->text);
	if (ret->error > LINK_ERROR_MAX)
		return base_fail(err, BASE_ERR_NOTFOUND,
			"%s: half of the messages are more than %.0f %% off any line of latency "
			"and bytes: it says nothing of another network",
			e->text, 100 * LINK_ERROR_MAX);
	if (rate ? ret->ns_per_byte <= 0 : ret->latency_ns <= 0)
		return base_fail(err, BASE_ERR_NOTFOUND, "%s: %s made no difference to messages",
			e->text, rate ? "their size" : "anything but their size");
	return BASE_OK;
}

/* Another network under MPI: the part of what was on its way that the fit says is latency, or bytes.
 * (Of two such edits of one state each takes its own part.) */
static enum base_status apply_to_mpi(struct resolver *w, const struct report_edit *e,
	struct report_match *match, struct base_err *err)
{
	bool rate = e->verb == REPORT_EDIT_link_rate;
	struct model_link l = {0};
	double most_ns = 0;
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; s == BASE_OK && i < w->nr_states; i++) {
		struct model_link_share x;
		if (!is_of_mpi(w, i, e))
			continue;
		if (!l.nr_messages)
			s = whatif_fit(w, e, &l, err);
		if (s != BASE_OK || !model_link_share(w->m, i, &l, &x))
			continue;
		if (!match->nr_states++ || w->path_ns[i] > most_ns) {
			match->example = model_state(w->m, i)->name;
			most_ns = w->path_ns[i];
		}
		match->estimated = true;
		const double share[ENDS] = {rate ? x.bytes : x.latency,
			rate ? x.bytes_low : x.latency_low, rate ? x.bytes_high : x.latency_high};
		match->path_share += w->path_ns[i] * share[0] / w->elapsed_ns;
		match->waited_ns += w->waited_ns[i];
		for (unsigned k = 0; k < ENDS; k++) {
			double left = w->factor[k][i] - (1 - e->factor) * share[k];
			w->factor[k][i] = left > 0 ? left : 0;
		}
	}
	return s;
}

/* States that are called just that; else names and functions that have it as a word, then as a
 * part; the places where states began only when these have nothing of the kind. */
static enum base_status apply_to_states(struct resolver *w, const struct report_edit *e,
	struct report_match *match, struct base_err *err)
{
	double most_ns = -1;
	if (e->verb == REPORT_EDIT_link_rate || e->verb == REPORT_EDIT_link_latency) {
		enum base_status s = apply_to_mpi(w, e, match, err);
		if (s != BASE_OK)
			return s;
	}
	for (enum match_by by = BY_NAME; by < MATCH_BY_NR && !match->nr_states; by++) {
		struct wanted want = {.by = by, .pattern = e->pattern};
		struct model_match functions = {
			.is_it = is_wanted, .ctx = &want, .self = w->scenarios->self};
		w->functions = &functions;
		for (uint32_t s = 0; s < w->nr_states; s++) {
			struct part p;
			if (!match_edit(w, s, e, by, &p))
				continue;
			match->nr_states++;
			match->estimated |= p.estimated;
			whatif_count(w, match, s, p.share[0]);
			match->waited_ns += w->waited_ns[s];
			match->elided |= is_elided(w, e, s);
			w->elided[s] |= is_elided(w, e, s);
			for (unsigned k = 0; k < ENDS; k++)
				w->factor[k][s] *= 1 - (1 - e->factor) * p.share[k];
			double ns = w->elided[s] ? w->waited_ns[s] : w->path_ns[s];
			if (ns > most_ns) {
				most_ns = ns;
				match->example = example_of(model_state(w->m, s), e->pattern);
			}
		}
		model_match_fini(&functions);
	}
	w->functions = NULL;
	if (match->nr_states) {
		match->example = report_clean(w->arena, match->example);
		return match->example ? BASE_OK : report_no_memory(err);
	}
	if (e->verb != REPORT_EDIT_scale && e->verb != REPORT_EDIT_elide)
		return base_fail(err, BASE_ERR_NOTFOUND,
			"%s: no link of this trace matches; a link is MPI, a communicator, or an "
			"actor 'NAME line' in the state transmit with a queue 'NAME cable'",
			e->text);
	return no_such_state(w, e, err);
}

/* How much of each state is meant: of a part, or by name as for scale. */
static void whatif_share(struct resolver *w, const struct report_edit *e,
	const struct report_part *part, struct report_match *match, struct part *meant)
{
	for (size_t i = 0; part && i < part->nr_states; i++) {
		const struct report_state_share *x = &part->state[i];
		if (whatif_leaves(w, x, 2))
			continue;
		for (unsigned k = 0; k < ENDS; k++)
			meant[x->state].share[k] = x->share;
		match->nr_states++;
	}
	for (enum match_by by = BY_NAME; !part && by < MATCH_BY_NR && !match->nr_states; by++) {
		struct wanted want = {.by = by, .pattern = e->pattern};
		struct model_match functions = {
			.is_it = is_wanted, .ctx = &want, .self = w->scenarios->self};
		w->functions = &functions;
		for (uint32_t s = 0; s < w->nr_states; s++) {
			struct part p;
			if (!match_state(w, s, e->pattern, by, &p))
				continue;
			meant[s] = p;
			match->nr_states++;
		}
		model_match_fini(&functions);
	}
	w->functions = NULL;
}

/* All ranks take the mean. */
static enum base_status apply_balance(struct resolver *w, const struct report_edit *e,
	const struct report_part *part, struct report_match *match, struct base_err *err)
{
	struct part *meant = report_array(w->arena, w->nr_states, sizeof *meant);
	double *share = report_array(w->arena, w->nr_states, sizeof *share);
	double *factor = report_array(w->arena, w->nr_states, sizeof *factor);
	if (!meant || !share || !factor)
		return report_no_memory(err);
	whatif_share(w, e, part, match, meant);
	if (!match->nr_states)
		return no_such_state(w, e, err);
	double most_ns = -1;
	for (uint32_t s = 0; s < w->nr_states; s++) {
		share[s] = meant[s].share[0];
		match->estimated |= meant[s].estimated;
		whatif_count(w, match, s, share[s]);
		if (share[s] > 0 && w->path_ns[s] > most_ns) {
			most_ns = w->path_ns[s];
			match->example = example_of(model_state(w->m, s), e->pattern);
		}
	}
	enum base_status status =
		report_balance(w->m, share, w->nr_states, factor, &match->balance, err);
	if (status != BASE_OK)
		return base_cause(err, status, "%s", e->text);
	for (uint32_t s = 0; s < w->nr_states; s++)
		for (unsigned k = 0; k < ENDS; k++)
			w->factor[k][s] *= 1 - (1 - factor[s]) * meant[s].share[k];
	match->example = report_clean(w->arena, part ? part->name : match->example);
	match->most =
		match->balance.nr
			? report_clean(w->arena, model_actor(w->m, match->balance.most_actor)->name)
			: "";
	return match->example && match->most ? BASE_OK : report_no_memory(err);
}

static enum graph_edit_kind queue_edit_kind(enum report_edit_verb verb)
{
	return verb == REPORT_EDIT_ignore_queue   ? GRAPH_EDIT_IGNORE_QUEUE
	       : verb == REPORT_EDIT_resize_queue ? GRAPH_EDIT_RESIZE_QUEUE
						  : GRAPH_EDIT_UNBOUND_QUEUE;
}

static enum base_status only_replay(const struct resolver *w, const struct report_edit *e,
	const char *what, struct base_err *err)
{
	return base_fail(err, BASE_ERR_USAGE, "%s: only the method replay can %s%s", e->text, what,
		w->methods & REPORT_METHOD_replay ? ", and this trace is too long for it" : "");
}

/* It takes what is put into it: more room is a question that has an answer. */
static bool whatif_has_room(const struct model_queue *q)
{
	return model_object_is(q->type, MODEL_TRAIT_stores);
}

static enum base_status apply_to_queues(struct resolver *w, const struct report_edit *e,
	struct report_match *match, struct graph_edit *edit, size_t *nr_edits, struct base_err *err)
{
	const char *endless = NULL; /* one whose size is not known */
	for (uint32_t q = 0; q < w->nr_queues; q++) {
		const struct model_queue *mq = model_queue(w->m, q);
		if (!report_pattern_matches(e->pattern, mq->name))
			continue;
		bool resizes = e->verb == REPORT_EDIT_resize_queue, inferred;
		uint64_t size = model_queue_size(w->m, q, &inferred);
		if (resizes && !size && !mq->tokens) {
			endless = mq->name;
			match->nr_never_full += whatif_has_room(mq);
			continue;
		}
		if (resizes && !mq->tokens && !mq->capacity && !w->log)
			return only_replay(w, e,
				"give a queue more room whose size the program "
				"did not declare",
				err);
		if (resizes && !mq->tokens && size > match->size) {
			match->size = size;
			match->size_inferred = inferred;
		}
		if (!match->nr_queues++)
			match->example = report_clean(w->arena, mq->name);
		edit[(*nr_edits)++] = (struct graph_edit){
			.kind = queue_edit_kind(e->verb),
			.id = q,
			.factor = 1,
			.units = e->units,
		};
	}
	if (!match->nr_queues && match->nr_never_full) { /* so more of it changes nothing */
		match->nr_queues = match->nr_never_full;
		match->example = report_clean(w->arena, endless);
		return match->example ? BASE_OK : report_no_memory(err);
	}
	match->nr_never_full = 0;
	if (!match->nr_queues && endless)
		return base_fail(err, BASE_ERR_NOTFOUND,
			"%s: %s holds no units that need room; scale and ignore-queue change its "
			"waits",
			e->text, endless);
	if (!match->nr_queues)
		return base_fail(err, BASE_ERR_NOTFOUND,
			"%s: no queue of this trace matches; 'longpole queues' lists them",
			e->text);
	return match->example ? BASE_OK : report_no_memory(err);
}

static enum base_status add_processors(struct resolver *w, const struct report_edit *e,
	struct report_match *match, struct graph_edit *edit, size_t *nr_edits, struct base_err *err)
{
	if (!w->log)
		return only_replay(w, e, "add processors", err);
	edit[(*nr_edits)++] =
		(struct graph_edit){.kind = GRAPH_EDIT_PROCESSORS, .factor = 1, .units = e->units};
	match->example = "processors";
	return BASE_OK;
}

/* ---- scenarios -> lanes ---------------------------------------------------------------------- */

static enum base_status add_lane(struct resolver *w, unsigned end,
	const struct graph_edit *queue_edit, size_t nr_queue_edits, struct base_err *err)
{
	size_t nr = nr_queue_edits;
	for (uint32_t s = 0; s < w->nr_states; s++)
		nr += w->elided[s] || w->factor[end][s] != 1;
	struct graph_edit *edit = report_array(w->arena, nr, sizeof *edit);
	if (!edit)
		return report_no_memory(err);
	size_t at = 0;
	for (uint32_t s = 0; s < w->nr_states; s++)
		if (w->elided[s] || w->factor[end][s] != 1)
			edit[at++] =
				(struct graph_edit){.kind = w->elided[s] ? GRAPH_EDIT_ELIDE_STATE
									 : GRAPH_EDIT_SCALE_STATE,
					.id = s,
					.factor = w->factor[end][s]};
	if (nr_queue_edits)
		memcpy(edit + at, queue_edit, nr_queue_edits * sizeof *edit);
	for (size_t i = 0; i < nr_queue_edits; i++)
		w->no_path[w->nr_lanes] |= !report_path_can(w->m, &queue_edit[i]);
	w->lane[w->nr_lanes++] = (struct graph_scenario){.edit = edit, .nr_edits = nr};
	return BASE_OK;
}

static enum base_status whatif_resolve(struct resolver *w, const struct report_scenario *sc,
	struct report_prediction *p, struct base_err *err)
{
	struct graph_edit *queue_edit = report_array(
		w->arena, ((size_t)w->nr_queues + 1) * sc->nr_edits, sizeof *queue_edit);
	p->match = report_array(w->arena, sc->nr_edits, sizeof *p->match);
	if (!queue_edit || !p->match)
		return report_no_memory(err);
	for (unsigned k = 0; k < ENDS; k++)
		for (uint32_t s = 0; s < w->nr_states; s++)
			w->factor[k][s] = 1;
	memset(w->elided, 0, w->nr_states * sizeof *w->elided);
	size_t nr_queue_edits = 0;
	for (size_t i = 0; i < sc->nr_edits; i++) {
		const struct report_edit *e = &sc->edit[i];
		struct report_match *match = &p->match[p->nr_matches++];
		match->edit = report_clean(w->arena, e->text);
		if (!match->edit)
			return report_no_memory(err);
		enum base_status s;
		bool balances = e->verb == REPORT_EDIT_balance;
		const struct report_part *part = e->verb == REPORT_EDIT_scale || balances
							 ? whatif_part(w, e->pattern)
							 : NULL;
		if (balances)
			s = apply_balance(w, e, part, match, err);
		else if (part)
			s = apply_to_part(w, e, part, p, match, err);
		else if (e->verb == REPORT_EDIT_scale || e->verb == REPORT_EDIT_elide ||
			 e->verb == REPORT_EDIT_link_rate || e->verb == REPORT_EDIT_link_latency)
			s = apply_to_states(w, e, match, err);
		else if (e->verb == REPORT_EDIT_add_processors)
			s = add_processors(w, e, match, queue_edit, &nr_queue_edits, err);
		else
			s = apply_to_queues(w, e, match, queue_edit, &nr_queue_edits, err);
		if (s != BASE_OK)
			return s;
		p->estimated |= match->estimated;
	}
	if (sc->nr_edits > 1)
		p->most_speedup = 0; /* (that of one edit alone) */
	enum base_status s = BASE_OK;
	for (unsigned k = 0; s == BASE_OK && k < (p->estimated ? ENDS : 1); k++)
		s = add_lane(w, k, queue_edit, nr_queue_edits, err);
	return s;
}

/* ---- lanes -> predictions -------------------------------------------------------------------- */

struct lane_answer {
	double length_ns, largest_share;
	uint32_t largest;
	struct graph_tokens_bound bound;
	bool is_bound; /* length_ns is that one's */
};

static enum base_status whatif_ask(const struct report_run *run, const struct resolver *w,
	const struct report_index *ix, struct lane_answer *answer, struct base_err *err)
{
	double *topic_ns = report_array(w->arena, ix->nr_topics, sizeof *topic_ns);
	struct graph_scenario *lane = report_array(w->arena, w->nr_lanes, sizeof *lane);
	struct report_lane *path = report_array(w->arena, w->nr_lanes, sizeof *path);
	enum base_status s = topic_ns && lane && path ? BASE_OK : report_no_memory(err);
	static const struct graph_scenario nothing = {0};
	for (size_t i = 0; s == BASE_OK && i < w->nr_lanes; i++)
		lane[i] = w->no_path[i] ? nothing : w->lane[i];
	if (s == BASE_OK)
		s = report_lanes(
			run, "predicting the scenarios", lane, w->nr_lanes, path, w->arena, err);
	for (size_t i = 0; s == BASE_OK && i < w->nr_lanes; i++) {
		struct lane_answer *a = &answer[i];
		report_lane_sums(&path[i], ix, topic_ns, NULL);
		a->length_ns = path[i].length_ns;
		a->largest = report_largest_topic(topic_ns, ix, REPORT_NONE);
		a->largest_share = a->largest == REPORT_NONE ? 0
							     : report_topic_share(topic_ns, ix,
								       a->largest, a->length_ns);
	}
	return s;
}

static double whatif_ratio(double a, double b)
{
	return a / (b > 1 ? b : 1); /* all of it may go */
}

static enum base_status whatif_predict(struct report_prediction *p, const struct lane_answer *a,
	double elapsed_ns, struct model *m, const struct report_index *ix, struct base_arena *arena,
	struct base_err *err)
{
	p->length_ns = p->low_ns = p->high_ns = a[0].length_ns;
	for (unsigned k = 1; p->estimated && k < ENDS; k++) {
		p->low_ns = a[k].length_ns < p->low_ns ? a[k].length_ns : p->low_ns;
		p->high_ns = a[k].length_ns > p->high_ns ? a[k].length_ns : p->high_ns;
	}
	p->speedup = whatif_ratio(elapsed_ns, p->length_ns);
	p->speedup_low = whatif_ratio(elapsed_ns, p->high_ns);
	p->speedup_high = whatif_ratio(elapsed_ns, p->low_ns);
	uint32_t next = a[0].is_bound                 ? a[0].bound.state
			: a[0].largest == REPORT_NONE ? REPORT_NONE
						      : ix->first_state[a[0].largest];
	p->next = next == REPORT_NONE ? "" : report_clean(arena, model_state(m, next)->name);
	p->next_share = a[0].largest_share;
	if (!a[0].is_bound)
		return p->next ? BASE_OK : report_no_memory(err);
	p->next_share = whatif_ratio(a[0].bound.state_ns, p->length_ns);
	p->pool = report_clean(arena, model_queue(m, a[0].bound.queue)->name);
	return p->next && p->pool ? BASE_OK : report_no_memory(err);
}

/*
 * The path knows what was waited for in the run. A pool (a processor, a bus) that nobody waited for
 * then is all taken where a change makes its holders come sooner: the run is not shorter than that.
 */
static void bound_by_tokens(const struct resolver *w, struct lane_answer *answer)
{
	for (size_t i = 0; i < w->nr_lanes; i++) {
		double floor_ns =
			report_path_floor(w->path_ns, w->nr_states, w->elapsed_ns, &w->lane[i]);
		if (answer[i].length_ns < floor_ns)
			answer[i].length_ns = floor_ns;
	}
	if (!w->tokens || graph_tokens_bound(w->tokens, NULL).length_ns > w->elapsed_ns)
		return; /* of a part; or the trace is longer than the path */
	for (size_t i = 0; i < w->nr_lanes; i++) {
		answer[i].bound = graph_tokens_bound(w->tokens, &w->lane[i]);
		answer[i].is_bound = answer[i].bound.length_ns > answer[i].length_ns;
		if (answer[i].is_bound)
			answer[i].length_ns = answer[i].bound.length_ns;
	}
}

/* Only who names a part, or a lock, is interested in parts. */
static bool whatif_names_lock(const struct resolver *w, const char *pattern)
{
	for (uint32_t q = 0; q < w->nr_queues; q++)
		if (!strcmp(model_queue(w->m, q)->name, pattern))
			return true;
	return false;
}

static enum base_status find_parts(struct resolver *w, const struct report_run *run,
	const struct report_index *ix, struct base_err *err)
{
	bool parts = false, locks = false;
	for (size_t i = 0; i < w->scenarios->nr; i++)
		for (size_t k = 0; k < w->scenarios->scenario[i].nr_edits; k++) {
			const char *pattern = w->scenarios->scenario[i].edit[k].pattern;
			locks |= whatif_names_lock(w, pattern);
			parts |= locks || report_is_part_number(pattern);
		}
	enum base_status s =
		parts ? report_fill_parts(&w->parts, w->arena, run, w->m, ix, err) : BASE_OK;
	return s == BASE_OK && locks ? report_fill_lock_parts(&w->locks, w->arena, run, err) : s;
}

static enum base_status init_resolver(struct resolver *w, struct base_err *err)
{
	struct graph *g = model_graph(w->m);
	struct graph_lane_result lane;
	enum base_status s = graph_lane(g, 0, &lane, err);
	if (s != BASE_OK)
		return s;
	if (!lane.found || lane.length_ns <= 0)
		return report_no_path(err);
	w->elapsed_ns = lane.length_ns;
	s = report_own_path(&w->own, w->m, err);
	if (s != BASE_OK)
		return s;
	for (size_t i = 0; i < lane.nr_states; i++)
		w->timed_ns +=
			lane.state[i].path_ns * model_state_timed_share(w->m, lane.state[i].state);
	w->nr_states = graph_nr_states(g);
	w->nr_queues = graph_nr_queues(g);
	w->path_ns = report_array(w->arena, w->nr_states, sizeof *w->path_ns);
	w->waited_ns = report_array(w->arena, w->nr_states, sizeof *w->waited_ns);
	w->elided = report_array(w->arena, w->nr_states, sizeof *w->elided);
	w->lane = report_array(w->arena, w->scenarios->nr * ENDS, sizeof *w->lane);
	w->no_path = report_array(w->arena, w->scenarios->nr * ENDS, sizeof *w->no_path);
	for (unsigned k = 0; k < ENDS; k++)
		w->factor[k] = report_array(w->arena, w->nr_states, sizeof *w->factor[k]);
	if (!w->path_ns || !w->waited_ns || !w->elided || !w->lane || !w->no_path ||
		!w->factor[0] || !w->factor[1] || !w->factor[2])
		return report_no_memory(err);
	for (size_t i = 0; i < lane.nr_states; i++)
		if (lane.state[i].state < w->nr_states)
			w->path_ns[lane.state[i].state] += lane.state[i].path_ns;
	const struct graph_state_totals *total;
	size_t nr;
	s = graph_totals(g, &total, &nr, err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++)
		if (total[i].state < w->nr_states)
			w->waited_ns[total[i].state] += (double)total[i].waiting_ns;
	return s;
}

static enum base_status start_replay(struct report_whatif *out, const struct report_run *run,
	struct resolver *w, struct base_err *err)
{
	graph_replay_set_end(w->log, model_end_actor(w->m));
	out->replayed = true;
	enum base_status s = report_replay_base(&out->base, run, w->log, err);
	if (s == BASE_OK)
		s = report_replay_vary(&out->base, w->log, w->scenarios->nr, err);
	return s == BASE_OK ? report_replay_spins(&out->base, w->m, err) : s;
}

/* The actors that wait for ever, and for what: where to look for what the recording does not
 * say. */
static enum base_status name_stuck(struct report_replay_prediction *r, struct model *m,
	struct base_arena *arena, struct base_err *err)
{
	const struct graph *g = model_graph(m);
	struct base_str text = {0}, clean = {0};
	if (!r->nr_stuck || r->stuck_actor >= graph_nr_actors(g))
		return BASE_OK;
	base_str_add(&text, model_actor(m, r->stuck_actor)->name);
	if (r->stuck_queue < graph_nr_queues(g))
		base_str_addf(&text, " for %s", model_queue(m, r->stuck_queue)->name);
	report_clean_add(&clean, base_str_text(&text));
	base_str_add(&clean, ", from ");
	report_ns(&clean, (double)r->stuck_ns);
	base_str_add(&clean, r->stuck_anew ? " on: in the run it did not wait" : " on");
	clean.failed |= text.failed;
	base_str_fini(&text);
	r->stuck = report_keep(arena, &clean);
	return r->stuck ? BASE_OK : report_no_memory(err);
}

static enum base_status whatif_simulate(struct report_prediction *p, struct report_whatif *out,
	struct resolver *w, const struct report_index *ix, size_t lane, struct base_err *err)
{
	struct graph *path = NULL;
	enum base_status s = report_replay_predict(&p->replay, &out->base, w->log, &w->lane[lane],
		p->estimated ? ENDS : 1, &w->ray, &path, err);
	if (s == BASE_OK && p->replay.nr_stuck)
		s = name_stuck(&p->replay, w->m, out->arena, err);
	else if (s == BASE_OK && path)
		s = report_replay_next(&p->replay, path, w->log, w->m, ix, out->arena, err);
	graph_free(path);
	return s;
}

static enum base_status whatif_fill(struct report_whatif *out, const struct report_run *run,
	struct resolver *w, const struct report_index *ix, struct base_err *err)
{
	enum base_status s = BASE_OK;
	size_t nr = w->scenarios->nr;
	out->prediction = report_array(out->arena, nr, sizeof *out->prediction);
	if (!out->prediction)
		return report_no_memory(err);
	for (size_t i = 0; s == BASE_OK && i < nr; i++)
		s = whatif_resolve(w, &w->scenarios->scenario[i], &out->prediction[i], err);
	if (s != BASE_OK)
		return s;
	struct lane_answer *answer = report_array(w->arena, w->nr_lanes, sizeof *answer);
	if (!answer)
		return report_no_memory(err);
	if (w->methods & REPORT_METHOD_path)
		s = whatif_ask(run, w, ix, answer, err);
	if (s == BASE_OK)
		bound_by_tokens(w, answer);
	if (s == BASE_OK && w->log)
		s = start_replay(out, run, w, err);
	for (size_t i = 0, lane = 0; s == BASE_OK && i < nr; i++) {
		struct report_prediction *p = &out->prediction[i];
		unsigned nr_ends = p->estimated ? ENDS : 1;
		p->by_path = w->methods & REPORT_METHOD_path && !w->no_path[lane];
		p->less_work = report_is_less_work(&w->lane[lane]);
		p->most_factor = report_most_factor(&w->lane[lane]);
		if (p->by_path)
			s = whatif_predict(
				p, answer + lane, w->elapsed_ns, w->m, ix, out->arena, err);
		if (s == BASE_OK && w->log)
			s = whatif_simulate(p, out, w, ix, lane, err);
		lane += nr_ends;
	}
	out->nr_predictions = nr;
	return s;
}

/* Replay predicts whole runs, and keeps a log of them in memory. */
static enum base_status choose_methods(struct resolver *w, struct report_whatif *out,
	const struct report_run *run, unsigned methods, struct base_err *err)
{
	bool part = run->start || run->end || run->connection;
	if (part && methods == REPORT_METHOD_replay)
		return base_fail(err, BASE_ERR_USAGE,
			"the method replay predicts whole runs: leave --start, --end and "
			"--connection out, or use --method=path");
	w->methods = methods ? methods : REPORT_METHOD_path | REPORT_METHOD_replay;
	out->too_long = !methods && !part && !report_replay_fits(run);
	if (part || out->too_long)
		w->methods = REPORT_METHOD_path;
	enum base_status s = BASE_OK;
	if (w->methods & REPORT_METHOD_replay)
		s = report_replay_new(run, &w->log, err);
	if (s == BASE_OK && w->methods & REPORT_METHOD_path && !part)
		s = graph_tokens_new(w->log ? graph_replay_sink(w->log) : NULL, &w->tokens, err);
	return s;
}

enum base_status report_whatif_build(const struct report_run *run, const struct report_scenarios *s,
	unsigned methods, struct report_whatif **ret, struct base_err *err)
{
	struct report_pass_options plain = {0};
	struct report_index ix = {0};
	struct resolver w = {.scenarios = s};
	struct report_shared_pass shared = {0};
	struct report_run with = report_sharing(run, &shared);
	struct report_whatif *out = report_answer_new(sizeof *out);
	double polled_ns = 0;
	enum base_status st = BASE_OK;
	if (!out)
		return report_no_memory(err);
	run = &with;
	if (st == BASE_OK)
		st = choose_methods(&w, out, run, methods, err);
	plain.sink = w.tokens ? graph_tokens_sink(w.tokens)
		     : w.log  ? graph_replay_sink(w.log)
			      : NULL;
	if (st == BASE_OK)
		st = report_pass(run, "finding the critical path", &plain, &w.m, err);
	if (st == BASE_OK) {
		w.arena = out->arena;
		st = init_resolver(&w, err);
	}
	if (st == BASE_OK)
		st = report_index_init(&ix, w.m, err);
	if (st == BASE_OK)
		st = report_fill_trace(&out->trace, out->arena, run, w.m, err);
	if (st == BASE_OK)
		st = report_fill_spins(&out->spins, out->arena, w.m, err);
	if (st == BASE_OK)
		st = report_polled_path_ns(&polled_ns, w.m, err);
	if (st == BASE_OK)
		st = report_fill_box(&out->box, out->arena, w.m, err);
	if (st == BASE_OK)
		st = find_parts(&w, run, &ix, err);
	if (st == BASE_OK)
		st = whatif_fill(out, run, &w, &ix, err);
	if (st == BASE_OK) {
		out->elapsed_ns = w.elapsed_ns;
		out->own = w.own;
		out->timed_share = w.timed_ns / w.elapsed_ns;
		out->polled_share = polled_ns / w.elapsed_ns;
		out->late_timer_reads = model_nr_late_timer_reads(w.m);
	}
	report_index_fini(&ix);
	report_ray_fini(&w.ray);
	graph_tokens_free(w.tokens);
	graph_replay_free(w.log);
	model_free(w.m);
	report_shared_pass_fini(&shared);
	if (st != BASE_OK)
		report_whatif_free(out);
	else
		*ret = out;
	return st;
}

struct report_whatif *report_whatif_free(struct report_whatif *w)
{
	return report_answer_free(w);
}
