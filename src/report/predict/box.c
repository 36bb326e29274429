/* SPDX-License-Identifier: Apache-2.0 */
/*
 * box.c - runs that last for a time: where a timer's signal decided when the work was over, or
 * somebody outside who ended the program or the recording, less work is more of it and not a shorter
 * run (model/box.c says when signals were sent). The signal decided the end when that followed it at
 * once; of others it is not known what they decided.
 */
#include "report/predict/predictor.h"
#include "base/names.h"

#include <math.h>
#include <string.h>

#define FOLLOWS_WITHIN 0.05 /* of the time that the timer had been set: the last round, the end */

/* A signal that came straight to the program may have ended it: how it took that no record says. */
static void box_may_be_ended(
	struct report_box *ret, const struct model *m, const struct graph_lane_result *lane)
{
	uint64_t at_ns = model_first_broken_off(m);
	double after_ns = at_ns < lane->end_ns ? (double)(lane->end_ns - at_ns) : 0;
	if (at_ns && at_ns <= lane->end_ns && after_ns <= FOLLOWS_WITHIN * lane->length_ns)
		*ret = (struct report_box){.fixed_ns = lane->length_ns,
			.after_ns = after_ns,
			.nr = 1,
			.where = "",
			.from_outside = MODEL_MAY_BE_ENDED};
}

void report_find_box(struct report_box *ret, struct model *m, const struct graph_lane_result *lane)
{
	struct model_box box;
	int signal = model_ended_from_outside(m);
	*ret = (struct report_box){.where = ""};
	if (signal && lane->length_ns > 0)
		*ret = (struct report_box){.fixed_ns = lane->length_ns,
			.ends_run = true,
			.nr = 1,
			.where = "",
			.from_outside = signal};
	if (!signal && lane->length_ns > 0)
		box_may_be_ended(ret, m, lane);
	if (signal || lane->length_ns <= 0 || !model_box(m, lane->end_ns, &box) ||
		(double)box.set_ns < REPORT_POLLS_FROM * lane->length_ns)
		return;
	*ret = (struct report_box){.fixed_ns = fmin((double)box.set_ns, lane->length_ns),
		.after_ns = (double)box.after_ns,
		.ends_run = (double)box.after_ns <= FOLLOWS_WITHIN * (double)box.set_ns,
		.nr = box.nr,
		.site = box.site,
		.where = ""};
}

enum base_status report_fill_box(
	struct report_box *ret, struct base_arena *arena, struct model *m, struct base_err *err)
{
	struct graph_lane_result lane = {0};
	enum base_status s = graph_lane(model_graph(m), 0, &lane, err);
	if (s != BASE_OK)
		return s;
	report_find_box(ret, m, &lane);
	if (ret->fixed_ns > 0 && !ret->from_outside)
		ret->where = report_clean(arena, model_site_text(m, ret->site));
	return ret->fixed_ns > 0 && !ret->where ? report_no_memory(err) : BASE_OK;
}

/* So long at most when the fixed time has none of what a quicker change saves, or a slower one
 * adds, and so long at least. */
static double box_longest(const struct report_box *box, double elapsed_ns, double speedup,
	const struct report_prediction *p)
{
	if (speedup >= 1)
		return fmin(elapsed_ns, elapsed_ns / speedup + box->fixed_ns);
	return box->fixed_ns +
	       (elapsed_ns - box->fixed_ns) * (p->most_factor > 1 ? p->most_factor : 1 / speedup);
}

static double box_shortest(const struct report_box *box, double elapsed_ns, double speedup)
{
	return speedup > 1 ? fmax(box->fixed_ns, elapsed_ns / speedup) : elapsed_ns;
}

void report_best_in_box(struct report_best *b, const struct report_box *box, double elapsed_ns,
	const struct report_prediction *p)
{
	if (box->fixed_ns <= 0 || b->none || b->low <= 0)
		return;
	double by = exp(REPORT_RUNS_DIFFER);
	double usual_ns = box->fixed_ns + (elapsed_ns - box->fixed_ns) / b->speedup;
	double low = elapsed_ns / box_longest(box, elapsed_ns, b->low, p) / by;
	double high = elapsed_ns / box_shortest(box, elapsed_ns, b->high) * by;
	if (!box->ends_run) { /* the signal may have ended some of the work, or none */
		b->low = fmin(b->low, low);
		b->high = b->speedup < 1 ? fmax(b->high, high) : b->high;
		return;
	}
	b->throughput = b->speedup;
	b->throughput_low = b->low;
	b->throughput_high = b->high;
	b->speedup = elapsed_ns / usual_ns;
	b->low = fmin(low, b->speedup);
	b->high = fmax(high, b->speedup);
	b->no_interval = false;
}

double report_best_gain(const struct report_best *b)
{
	return b->throughput > 0 ? b->throughput : b->speedup;
}

bool report_box_words(struct base_str *s, const struct report_box *box)
{
	if (box->fixed_ns <= 0)
		return false;
	if (box->from_outside == MODEL_RECORDING_ENDED) {
		base_str_add(s, "the recording ended while the program ran on: faster code gets "
				"further until then and does not shorten it");
		return true;
	}
	if (box->from_outside == MODEL_MAY_BE_ENDED) {
		base_str_add(s,
			"a signal that no recorded program sent came just before the end: if it "
			"ended the run, faster code gets further until then and does not "
			"shorten it");
		return true;
	}
	if (box->from_outside) {
		const char *name = base_signal_name(box->from_outside);
		base_str_addf(s,
			"the run was ended from outside (SIG%s): faster code gets further "
			"until then and does not shorten it",
			name ? name : "?");
		return true;
	}
	if (box->ends_run)
		base_str_add(s, "a timer's signal ends the run (set at ");
	else
		base_str_add_counted(s,
			"%s {signal of a timer|signals of timers} came, the last long before the "
			"end (set at ",
			box->nr);
	base_str_addf(s, "%s, ", *box->where ? box->where : "?");
	report_ns(s, box->fixed_ns);
	base_str_add(s, box->ends_run ? " in all): faster code does more in that time and does not "
					"shorten it"
				      : " in all): if it ended the work, faster code does more and "
					"does not shorten it");
	return true;
}
