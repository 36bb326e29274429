/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ray.c - the same states, shortened more and more: a ray of edits. With shorter work threads come
 * to locks in another order of turns, and by chance that order is better or worse: simulated by
 * itself, a larger reduction may seem to gain less than a smaller one. That is no property of the
 * program that anybody could use. So the points of a grid on the ray are simulated, and where they
 * fall they are replaced by the mean of their neighbours (the isotonic regression, by pooling
 * adjacent violators); what lies between two points of the grid is at least the one and at most the
 * other. Points that rise stay what they are.
 */
#include "report/private.h"

#include <math.h>

/* Coarse: what the report's table asks for anyway. */
static const double ray_fine[] = {0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1};
static const double ray_coarse[] = {0.1, 0.25, 0.5, 1};
_Static_assert(BASE_COUNT(ray_fine) <= REPORT_RAY_MAX, "room for the grid");
#define RAY_ROUNDED 1e-9                              /* of a direction */
enum { RAY_FINE_VERBS = 50000, RAY_VERBS = 5000000 }; /* of a log, at most */

/* How far along its ray a scenario is: of its edits the largest reduction. */
static double ray_reduction(const struct graph_scenario *lane)
{
	double most = 0;
	for (size_t i = 0; i < lane->nr_edits; i++)
		most = fmax(most, 1 - lane->edit[i].factor);
	return most;
}

static double ray_rounded(double along)
{
	return round(along / RAY_ROUNDED) * RAY_ROUNDED;
}

static bool ray_is_the_same(const struct report_ray *ray, const struct graph_scenario *lane)
{
	double reduction = ray_reduction(lane);
	if (!ray->nr || ray->nr_edits != lane->nr_edits)
		return false;
	for (size_t i = 0; i < lane->nr_edits; i++)
		if (ray->edit[i].id != lane->edit[i].id ||
			fabs((1 - lane->edit[i].factor) / reduction - (1 - ray->edit[i].factor)) >
				RAY_ROUNDED)
			return false;
	return true;
}

static enum base_status ray_begin(struct report_ray *ray, const struct graph_replay *log,
	const struct graph_scenario *lane, struct base_err *err)
{
	bool fine = graph_replay_nr_verbs(log) <= RAY_FINE_VERBS;
	double reduction = ray_reduction(lane);
	ray->nr = 0;
	enum base_status s =
		base_grow(&ray->edit, &ray->capacity, lane->nr_edits, sizeof *ray->edit);
	if (s != BASE_OK)
		return report_no_memory(err);
	for (size_t i = 0; i < lane->nr_edits; i++) {
		/* (whatever the point it is made from: a billionth more or less of a state may
		 * change the order of turns, and another ray would not rise with this one) */
		ray->edit[i] = lane->edit[i];
		ray->edit[i].factor = 1 - ray_rounded((1 - lane->edit[i].factor) / reduction);
	}
	ray->nr_edits = lane->nr_edits;
	const double *grid = fine ? ray_fine : ray_coarse;
	ray->nr = fine ? BASE_COUNT(ray_fine) : BASE_COUNT(ray_coarse);
	for (unsigned i = 0; i < ray->nr; i++)
		ray->reduction[i] = grid[i];
	return BASE_OK;
}

/* Whoever waits for ever at a point has no answer there: the point is left out. */
static void ray_leave_out_stuck(struct report_ray *ray)
{
	unsigned nr = 0;
	for (unsigned i = 0; i < ray->nr; i++) {
		if (ray->speedup[i] <= 0)
			continue;
		ray->reduction[nr] = ray->reduction[i];
		ray->speedup[nr++] = ray->speedup[i];
	}
	ray->nr = nr;
}

/* Pools: each has a mean, of so many points. */
static void ray_make_rise(struct report_ray *ray)
{
	double mean[REPORT_RAY_MAX];
	unsigned points[REPORT_RAY_MAX], nr = 0, at = 0;
	for (unsigned i = 0; i < ray->nr; i++) {
		mean[nr] = log(ray->speedup[i]);
		points[nr++] = 1;
		for (; nr > 1 && mean[nr - 2] > mean[nr - 1]; nr--) {
			unsigned both = points[nr - 2] + points[nr - 1];
			mean[nr - 2] =
				(mean[nr - 2] * points[nr - 2] + mean[nr - 1] * points[nr - 1]) /
				both;
			points[nr - 2] = both;
		}
	}
	for (unsigned i = 0; i < nr; i++)
		for (unsigned k = 0; k < points[i]; k++, at++)
			if (points[i] > 1)
				ray->speedup[at] = exp(mean[i]);
}

static enum base_status ray_simulate(struct report_ray *ray, const struct report_replay_run *base,
	const struct graph_replay *log, struct base_err *err)
{
	struct graph_scenario lane[REPORT_RAY_MAX];
	size_t nr = ray->nr_edits;
	struct graph_edit *edit = base_alloc((nr * ray->nr + 1) * sizeof *edit);
	if (!edit)
		return report_no_memory(err);
	for (unsigned k = 0; k < ray->nr; k++) {
		for (size_t i = 0; i < nr; i++) {
			edit[k * nr + i] = ray->edit[i];
			edit[k * nr + i].factor = 1 - ray->reduction[k] * (1 - ray->edit[i].factor);
		}
		lane[k] = (struct graph_scenario){.edit = edit + k * nr, .nr_edits = nr};
	}
	enum base_status s =
		report_replay_speedups(ray->speedup, base, log, lane, ray->nr, &ray->known, err);
	base_free(edit);
	return s;
}

enum base_status report_ray_mend(struct report_ray *ray, double *speedup,
	const struct report_replay_run *base, const struct graph_replay *log,
	const struct graph_scenario *lane, struct base_err *err)
{
	double reduction = ray_reduction(lane), least = 0, most = INFINITY;
	if (!report_is_less_work(lane) || reduction <= 0 || graph_replay_nr_verbs(log) > RAY_VERBS)
		return BASE_OK;
	if (!ray_is_the_same(ray, lane)) {
		enum base_status s = ray_begin(ray, log, lane, err);
		if (s == BASE_OK)
			s = ray_simulate(ray, base, log, err);
		if (s != BASE_OK) {
			ray->nr = 0;
			return s;
		}
		ray_leave_out_stuck(ray);
		ray_make_rise(ray);
	}
	for (unsigned i = 0; i < ray->nr; i++) {
		if (ray->reduction[i] <= reduction + 1e-9)
			least = ray->speedup[i];
		if (ray->reduction[i] >= reduction - 1e-9)
			most = fmin(most, ray->speedup[i]);
	}
	*speedup = fmax(least, fmin(most, *speedup));
	return BASE_OK;
}

void report_ray_fini(struct report_ray *ray)
{
	report_simulated_fini(&ray->known);
	base_free(ray->edit);
	*ray = (struct report_ray){0};
}
