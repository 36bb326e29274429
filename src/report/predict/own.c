/* SPDX-License-Identifier: Apache-2.0 */
/* own.c - what of a path is the program's own doing: shares are of that, whichever command says them. */
#include "report/predict/predictor.h"

#define TELLS_FROM 0.05 /* of the path: what is set apart is said */

enum report_apart report_why_apart(const struct model *m, uint32_t state)
{
	static const enum report_apart why[] = {
		[MODEL_STATE_runnable] = 1 + REPORT_APART_PROCESSOR,
		[MODEL_STATE_external] = 1 + REPORT_APART_OUTSIDE,
		[MODEL_STATE_idle] = 1 + REPORT_APART_IDLE,
	};
	const struct model_state *st = model_state(m, state);
	if (st->is_recorders)
		return REPORT_APART_RECORDER;
	if (st->cause == MODEL_CAUSE_processor_idle)
		return REPORT_APART_SCHEDULER;
	return (size_t)st->kind < BASE_COUNT(why) && why[st->kind] ? why[st->kind] - 1
								   : REPORT_APART_NR;
}

void report_own_begin(struct report_own *own, double elapsed_ns)
{
	*own = (struct report_own){.elapsed_ns = elapsed_ns, .own_ns = elapsed_ns};
}

bool report_own_add(struct report_own *own, const struct model *m, uint32_t state, double path_ns)
{
	enum report_apart why = report_why_apart(m, state);
	if (why == REPORT_APART_NR)
		return true;
	own->apart_ns[why] += path_ns;
	own->own_ns -= path_ns;
	return false;
}

enum base_status report_own_path(struct report_own *own, struct model *m, struct base_err *err)
{
	struct graph_lane_result lane;
	enum base_status s = graph_lane(model_graph(m), 0, &lane, err);
	if (s != BASE_OK)
		return s;
	report_own_begin(own, lane.length_ns);
	for (size_t i = 0; i < lane.nr_states; i++)
		(void)report_own_add(own, m, lane.state[i].state, lane.state[i].path_ns);
	return BASE_OK;
}

double report_own_share(const struct report_own *own, double path_ns)
{
	return own->own_ns > 0 ? path_ns / own->own_ns : 0;
}

bool report_own_tells(const struct report_own *own)
{
	return own->elapsed_ns - own->own_ns > TELLS_FROM * own->elapsed_ns;
}

void report_own_words(struct base_str *s, const struct report_own *own)
{
	if (!report_own_tells(own))
		return;
	base_str_add(s, "shares are of the path without the ");
	report_percent(s, (own->elapsed_ns - own->own_ns) / own->elapsed_ns);
	base_str_add(s, " that is not the program's doing");
}
