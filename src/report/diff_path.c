/* SPDX-License-Identifier: Apache-2.0 */
/* diff_path.c - what a run's critical path is made of, as quantities of the comparison. */
#include "report/diff.h"
#include "report/private.h"

#include <string.h>

#define LEAST_SHARE 0.002 /* of the path; what has less is noise in a table of what moved */

static enum base_status diff_path_add_state(
	struct report_diff *d, const char *state, double path_ns, struct base_err *err)
{
	struct base_str key = {0}, name = {0};
	base_str_add(&key, REPORT_DIFF_STATE_KEY);
	report_clean_add(&key, state);
	base_str_add(&name, "on the critical path: ");
	report_clean_add(&name, state);
	enum base_status s = key.failed || name.failed
				     ? report_no_memory(err)
				     : report_diff_add(d, base_str_text(&key), base_str_text(&name),
					       REPORT_UNIT_ns, true, path_ns, err);
	base_str_fini(&key);
	base_str_fini(&name);
	return s;
}

static enum base_status add_topics(
	struct report_diff *d, struct model *m, const struct report_index *ix, struct base_err *err)
{
	double length_ns = 0,
	       *topic_ns = base_alloc(((size_t)ix->nr_topics + 1) * sizeof *topic_ns);
	double *state_ns = base_alloc(((size_t)ix->nr_topics + 1) * sizeof *state_ns);
	struct base_strtab *names = base_strtab_new();
	bool made = topic_ns && state_ns && names;
	enum base_status s =
		made ? report_lane_topics(model_graph(m), ix, 0, topic_ns, NULL, &length_ns, err)
		     : report_no_memory(err);
	for (uint32_t i = 0; s == BASE_OK && i < ix->nr_topics; i++) {
		uint32_t id = report_diff_intern(names, model_state(m, ix->first_state[i])->name);
		state_ns[id] += topic_ns[i];
		if (!id)
			s = report_no_memory(err);
	}
	for (uint32_t id = 1; s == BASE_OK && id < base_strtab_count(names); id++)
		if (state_ns[id] >= LEAST_SHARE * length_ns && state_ns[id] > 0)
			s = diff_path_add_state(d, base_strtab_get(names, id), state_ns[id], err);
	base_strtab_free(names);
	base_free(state_ns);
	base_free(topic_ns);
	return s;
}

enum base_status report_diff_path(
	struct report_diff *d, const struct report_run *run, struct base_err *err)
{
	struct report_pass_options plain = {0};
	struct graph_lane_result lane = {0};
	struct report_index ix = {0};
	struct model *m = NULL;
	enum base_status s = report_pass(run, "finding the critical path", &plain, &m, err);
	if (s == BASE_OK)
		s = graph_lane(model_graph(m), 0, &lane, err);
	if (s == BASE_OK && lane.found)
		s = report_index_init(&ix, m, err);
	if (s == BASE_OK && lane.found)
		s = add_topics(d, m, &ix, err);
	report_index_fini(&ix);
	model_free(m);
	if (s == BASE_ERR_NOTFOUND) { /* a recording that only counts has no path */
		*err = (struct base_err){0};
		return BASE_OK;
	}
	return s;
}
