/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif_best.c - which answer counts: the path's, replay's, or what lies between.
 */
#include "report/predict/predictor.h"

#include <math.h>

#define REPLAY_MORE_MAX 0.01 /* of the path: what replay may simulate beside it */

bool report_replays_more(const struct report_whatif *w)
{
	return w->base.recorded_ns > w->elapsed_ns * (1 + REPLAY_MORE_MAX);
}

bool report_lacks_too_much(const struct report_whatif *w, const struct report_prediction *p)
{
	return p->replay.made && w->base.nr_given && p->speedup > 1 && p->replay.high < 1;
}

/* 0 at `from` and before, 1 at `to` and beyond. */
static double share_between(double x, double from, double to)
{
	double share = (x - from) / (to - from);
	return share < 0 ? 0 : share > 1 ? 1 : share;
}

double report_replay_share(double own_error)
{
	return 1 -
	       share_between(fabs(own_error), REPORT_OWN_ERROR_DOUBTED, REPORT_OWN_ERROR_REFUTED);
}

double report_between(double path_speedup, double replay_speedup, double replay_share)
{
	if (path_speedup <= 0 || replay_speedup <= 0 || replay_share >= 1)
		return replay_share > 0 ? replay_speedup : path_speedup;
	return exp(log(path_speedup) * (1 - replay_share) + log(replay_speedup) * replay_share);
}

const char *report_method_of(double replay_share)
{
	return replay_share >= 1 ? "replay" : replay_share <= 0 ? "path" : "both";
}

/*
 * Less work hangs no program by itself, and a smaller reduction did not: at least that. What the
 * rest of it brings only the path says, which counts the more the less of it was simulated.
 */
static struct report_best stuck_by_chance(
	const struct report_whatif *w, const struct report_prediction *p)
{
	double share = report_replay_share(w->base.own_error), by = exp(REPORT_RUNS_DIFFER);
	double least = report_between(p->speedup, p->replay.ray_speedup, share);
	share *= p->replay.ray_reach;
	double speedup = fmax(least, report_between(p->speedup, p->replay.ray_speedup, share));
	return (struct report_best){.replay_share = share,
		.speedup = speedup,
		.low = fmin(least, p->speedup_low) / by,
		.high = fmax(speedup, p->speedup_high) * by};
}

static struct report_best believed(const struct report_whatif *w, const struct report_prediction *p)
{
	const struct report_replay_prediction *r = &p->replay;
	if (!p->by_path)
		return (struct report_best){.replay_share = 1,
			.none = r->nr_stuck != 0,
			.speedup = r->speedup,
			.low = r->low,
			.high = r->high};
	bool lacks = report_lacks_too_much(w, p);
	if (r->nr_stuck && r->ray_speedup > 0 && !report_replays_more(w))
		return stuck_by_chance(w, p);
	if (!r->made || r->nr_stuck || report_replays_more(w) || lacks) {
		/* without replay nothing says how far the order of service matters: at least so
		 * much */
		double by = r->nr_stuck || lacks ? exp(REPORT_RUNS_DIFFER) : 1;
		return (struct report_best){.speedup = p->speedup,
			.low = p->speedup_low / by,
			.high = p->speedup_high * by};
	}
	double share = report_replay_share(w->base.own_error);
	if (share <= 0) { /* nor do its ends say anything, and the order may matter so much */
		double by = exp(REPORT_OWN_ERROR_DOUBTED);
		return (struct report_best){.speedup = p->speedup,
			.low = p->speedup_low / by,
			.high = p->speedup_high * by};
	}
	double kept = 1 - share_between(fabs(w->base.own_error), REPORT_OWN_ERROR_WARNS,
				  2 * REPORT_OWN_ERROR_WARNS);
	return (struct report_best){.replay_share = share,
		.speedup = report_between(
			p->speedup, r->ray_speedup > 0 ? r->ray_speedup : r->speedup, share),
		.low = fmin(r->low, report_between(p->speedup_low, r->low, kept)),
		.high = fmax(r->high, report_between(p->speedup_high, r->high, kept))};
}

struct report_best report_best_of(const struct report_whatif *w, const struct report_prediction *p)
{
	struct report_best b = believed(w, p);
	/* What replay makes longer with less work is chance, another order of turns: the interval
	 * shows it, the answer does not. */
	if (p->less_work && b.speedup < 1) {
		b.speedup = 1;
		b.high = fmax(b.high, 1);
	}
	if (p->most_speedup > 0 && b.speedup > p->most_speedup) {
		b.speedup = p->most_speedup;
		b.low = fmin(b.low, b.speedup);
	}
	if (p->replay.made && b.replay_share > 0 && !w->base.nr_variants) {
		b.no_interval = true; /* what little is between is no interval */
		b.low = b.high = b.speedup;
	}
	if (p->known_factor > 0) {
		b.no_interval = false;
		b.low = fmin(b.low, b.speedup / p->known_factor);
		b.high = fmax(b.high, b.speedup * p->known_factor);
	}
	report_best_in_box(&b, &w->box, w->elapsed_ns, p);
	return b;
}
