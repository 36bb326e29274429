/* SPDX-License-Identifier: Apache-2.0 */
/* diff_path.c - what a run's critical path is made of, as quantities of the comparison. */
#include "report/diff.h"
#include "report/private.h"

#include <string.h>

#define LEAST_SHARE 0.002 /* of the path; what has less is noise in a table of what moved */

static enum base_status add_topic(
	struct report_diff *d, const struct model_state *st, double path_ns, struct base_err *err)
{
	struct base_str key = {0}, name = {0};
	base_str_add(&key, REPORT_DIFF_STATE_KEY);
	report_clean_add(&key, st->name);
	base_str_add(&name, "on the critical path: ");
	report_clean_add(&name, st->name);
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
	double length_ns, *topic_ns = base_alloc(((size_t)ix->nr_topics + 1) * sizeof *topic_ns);
	enum base_status s = topic_ns ? report_lane_topics(model_graph(m), ix, 0, topic_ns, NULL,
						&length_ns, err)
				      : report_no_memory(err);
	for (uint32_t i = 0; s == BASE_OK && i < ix->nr_topics; i++)
		if (topic_ns[i] >= LEAST_SHARE * length_ns && topic_ns[i] > 0)
			s = add_topic(d, model_state(m, ix->first_state[i]), topic_ns[i], err);
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
