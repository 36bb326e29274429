/* SPDX-License-Identifier: Apache-2.0 */
/* places.c - where a path starts and ends: "ACTOR", "ACTOR@STATE", "@STATE" become sets of ids. */
#include "report/predict/predictor.h"

#include <string.h>

static enum base_status near_text(
	struct model *m, bool of_actors, struct base_str *near, struct base_err *err)
{
	struct graph_lane_result lane;
	enum base_status s = graph_lane(model_graph(m), 0, &lane, err);
	for (size_t i = 0, nr = 0; s == BASE_OK && i < lane.nr_states && nr < 3; i++) {
		const char *name = of_actors ? model_actor(m, lane.state[i].actor)->name
					     : model_state(m, lane.state[i].state)->name;
		if (!near->length || !strstr(base_str_text(near), name))
			base_str_addf(near, "%s'%s'", nr++ ? ", " : "", name);
	}
	return s;
}

static enum base_status nothing_matches(struct model *m, const char *option, const char *pattern,
	bool of_actors, struct base_err *err)
{
	struct base_str near = {0};
	enum base_status s = near_text(m, of_actors, &near, err);
	if (s == BASE_OK)
		s = base_fail(err, BASE_ERR_NOTFOUND, "%s: no %s matches '%s'; on the path are %s",
			option, of_actors ? "actor" : "state", pattern, base_str_text(&near));
	base_str_fini(&near);
	return s;
}

static enum base_status match_actors(struct report_places *p, struct model *m, const char *option,
	const char *pattern, struct model_place *ret, struct base_err *err)
{
	uint32_t nr = graph_nr_actors(model_graph(m)), found = 0;
	bool *set = report_array(p->arena, nr, sizeof *set);
	if (!set)
		return report_no_memory(err);
	for (uint32_t i = 0; i < nr; i++) {
		set[i] = report_pattern_matches(pattern, model_actor(m, i)->name);
		found += set[i];
	}
	ret->actor = set;
	ret->nr_actors = nr;
	return found ? BASE_OK : nothing_matches(m, option, pattern, true, err);
}

static enum base_status match_states(struct report_places *p, struct model *m, const char *option,
	const char *pattern, struct model_place *ret, struct base_err *err)
{
	uint32_t nr = graph_nr_states(model_graph(m)), found = 0;
	bool *set = report_array(p->arena, nr, sizeof *set);
	if (!set)
		return report_no_memory(err);
	for (uint32_t i = 0; i < nr; i++) {
		const struct model_state *st = model_state(m, i);
		set[i] = report_pattern_matches(pattern, st->name) ||
			 report_pattern_matches(pattern, st->where) ||
			 (st->of_file && report_pattern_matches(pattern, st->of_file)) ||
			 (st->on_file && report_pattern_matches(pattern, st->on_file));
		found += set[i];
	}
	ret->state = set;
	ret->nr_states = nr;
	return found ? BASE_OK : nothing_matches(m, option, pattern, false, err);
}

static enum base_status places_resolve(struct report_places *p, struct model *m, const char *option,
	const char *text, struct model_place *ret, struct base_err *err)
{
	const char *at = strchr(text, '@');
	size_t length = at ? (size_t)(at - text) : strlen(text);
	char *actor = base_arena_strndup(p->arena, text, length);
	enum base_status s = actor ? BASE_OK : report_no_memory(err);
	if (s == BASE_OK && !length && !(at && at[1]))
		s = base_fail(err, BASE_ERR_USAGE,
			"%s: '%s' names nothing; write ACTOR, ACTOR@STATE or @STATE", option, text);
	if (s == BASE_OK && length)
		s = match_actors(p, m, option, actor, ret, err);
	if (s == BASE_OK && at && at[1])
		s = match_states(p, m, option, at + 1, ret, err);
	return s;
}

enum base_status report_places_find(struct report_places *p, const struct report_run *run,
	const char *start, const char *end, struct base_err *err)
{
	struct report_pass_options opts = {0};
	struct report_run whole = *run;
	struct model *m = NULL;
	*p = (struct report_places){.arena = base_arena_new(0)};
	if (!p->arena)
		return report_no_memory(err);
	whole.start = whole.end = NULL;
	whole.connection = 0;
	enum base_status s = report_pass(&whole, "looking for the path's ends", &opts, &m, err);
	if (s == BASE_OK && start)
		s = places_resolve(p, m, "--start", start, &p->start, err);
	if (s == BASE_OK && end)
		s = places_resolve(p, m, "--end", end, &p->end, err);
	model_free(m);
	return s;
}

void report_places_fini(struct report_places *p)
{
	base_arena_free(p->arena);
	*p = (struct report_places){0};
}
