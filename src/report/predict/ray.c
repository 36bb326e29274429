/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ray.c - the same states, shortened more and more: a ray of edits. With shorter work threads come
 * to locks in another order of turns, and by chance that order is better or worse: simulated by
 * itself, a larger reduction may seem to gain less than a smaller one. That is no property of the
 * program that anybody could use. So the points of a grid on the ray are simulated, and where they
 * fall they are replaced by the mean of their neighbours (the isotonic regression, by pooling
 * adjacent violators). Points that rise stay what they are. Between two points the time is a line:
 * what was simulated there alone might rise above the next or fall below the last. A wide gap of a
 * coarse grid gets points of its own first, for the true curve bends.
 */
#include "report/predict/predictor.h"

#include <math.h>
#include <string.h>

/* Coarse: what the report's table asks for anyway. */
static const double ray_fine[] = {0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1};
static const double ray_coarse[] = {0.1, 0.25, 0.5, 1};
#define RAY_WIDE 0.126 /* a gap of a coarse grid that gets points of its own */
enum { RAY_INNER = 3 };
_Static_assert(BASE_COUNT(ray_coarse) + 3 * RAY_INNER <= REPORT_RAY_MAX, "room for wide gaps");
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
	bool fine = ray->is_fine = graph_replay_nr_verbs(log) <= RAY_FINE_VERBS;
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

/* Whoever waits for ever at a point has no answer there: the point is left out. Returns how many
 * are left. */
static unsigned ray_leave_out_stuck(double *reduction, double *speedup, unsigned nr)
{
	unsigned left = 0;
	for (unsigned i = 0; i < nr; i++) {
		if (speedup[i] <= 0)
			continue;
		reduction[left] = reduction[i];
		speedup[left++] = speedup[i];
	}
	return left;
}

/* Pools: each has a mean, of so many points. */
static void ray_make_rise(double *speedup, unsigned nr_speedups)
{
	double mean[REPORT_RAY_MAX];
	unsigned points[REPORT_RAY_MAX], nr = 0, at = 0;
	for (unsigned i = 0; i < nr_speedups; i++) {
		mean[nr] = log(speedup[i]);
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
				speedup[at] = exp(mean[i]);
}

static enum base_status ray_simulate(struct report_ray *ray, const double *reduction,
	double *speedup, unsigned nr_points, const struct report_replay_run *base,
	const struct graph_replay *log, struct base_err *err)
{
	struct graph_scenario lane[REPORT_RAY_MAX];
	size_t nr = ray->nr_edits;
	struct graph_edit *edit = base_alloc((nr * nr_points + 1) * sizeof *edit);
	if (!edit)
		return report_no_memory(err);
	for (unsigned k = 0; k < nr_points; k++) {
		for (size_t i = 0; i < nr; i++) {
			edit[k * nr + i] = ray->edit[i];
			edit[k * nr + i].factor = 1 - reduction[k] * (1 - ray->edit[i].factor);
		}
		lane[k] = (struct graph_scenario){.edit = edit + k * nr, .nr_edits = nr};
	}
	enum base_status s =
		report_replay_speedups(speedup, base, log, lane, nr_points, &ray->known, err);
	base_free(edit);
	return s;
}

/* The number of points at less than this reduction. */
static unsigned ray_nr_below(const struct report_ray *ray, double reduction)
{
	unsigned i = 0;
	while (i < ray->nr && ray->reduction[i] < reduction - RAY_ROUNDED)
		i++;
	return i;
}

static bool ray_has_point(const struct report_ray *ray, unsigned i, double reduction)
{
	return i < ray->nr && ray->reduction[i] <= reduction + RAY_ROUNDED;
}

/* The point before point i; before the first is the run as it was. */
static void ray_point_before(
	const struct report_ray *ray, unsigned i, double *ret_reduction, double *ret_speedup)
{
	*ret_reduction = i ? ray->reduction[i - 1] : 0;
	*ret_speedup = i ? ray->speedup[i - 1] : fmin(1, ray->speedup[0]);
}

/* Gives the gap before point i points of its own, between those at its ends. */
static enum base_status ray_fill_gap(struct report_ray *ray, unsigned i,
	const struct report_replay_run *base, const struct graph_replay *log, struct base_err *err)
{
	double from, least, reduction[RAY_INNER], speedup[RAY_INNER];
	ray_point_before(ray, i, &from, &least);
	for (unsigned k = 0; k < RAY_INNER; k++)
		reduction[k] = from + (ray->reduction[i] - from) * (k + 1) / (RAY_INNER + 1);
	enum base_status s = ray_simulate(ray, reduction, speedup, RAY_INNER, base, log, err);
	if (s != BASE_OK)
		return s;
	unsigned nr = ray_leave_out_stuck(reduction, speedup, RAY_INNER);
	for (unsigned k = 0; k < nr; k++)
		speedup[k] = fmax(least, fmin(ray->speedup[i], speedup[k]));
	ray_make_rise(speedup, nr);
	memmove(ray->reduction + i + nr, ray->reduction + i,
		(ray->nr - i) * sizeof *ray->reduction);
	memmove(ray->speedup + i + nr, ray->speedup + i, (ray->nr - i) * sizeof *ray->speedup);
	memcpy(ray->reduction + i, reduction, nr * sizeof *reduction);
	memcpy(ray->speedup + i, speedup, nr * sizeof *speedup);
	ray->nr += nr;
	return BASE_OK;
}

static bool ray_is_wide_before(const struct report_ray *ray, unsigned i)
{
	return !ray->is_fine && i < ray->nr && ray->nr + RAY_INNER <= REPORT_RAY_MAX &&
	       ray->reduction[i] - (i ? ray->reduction[i - 1] : 0) > RAY_WIDE;
}

static double ray_speedup_at(const struct report_ray *ray, double reduction)
{
	double from, before, after;
	unsigned i = ray_nr_below(ray, reduction);
	if (i == ray->nr)
		return ray->speedup[i - 1]; /* more of it gains at least that */
	if (ray_has_point(ray, i, reduction))
		return ray->speedup[i];
	ray_point_before(ray, i, &from, &before);
	after = 1 / ray->speedup[i];
	return 1 / (1 / before +
			   (after - 1 / before) * (reduction - from) / (ray->reduction[i] - from));
}

/* The ray of this scenario, with points around it. */
static enum base_status ray_ready(struct report_ray *ray, const struct report_replay_run *base,
	const struct graph_replay *log, const struct graph_scenario *lane, struct base_err *err)
{
	double reduction = ray_reduction(lane);
	enum base_status s = BASE_OK;
	if (!ray_is_the_same(ray, lane)) {
		s = ray_begin(ray, log, lane, err);
		if (s == BASE_OK)
			s = ray_simulate(
				ray, ray->reduction, ray->speedup, ray->nr, base, log, err);
		if (s != BASE_OK)
			return s;
		ray->nr = ray_leave_out_stuck(ray->reduction, ray->speedup, ray->nr);
		ray_make_rise(ray->speedup, ray->nr);
	}
	unsigned i = ray_nr_below(ray, reduction);
	if (!ray_has_point(ray, i, reduction) && ray_is_wide_before(ray, i))
		s = ray_fill_gap(ray, i, base, log, err);
	return s;
}

/* The last point that has an answer, if that is less than the reduction, as its part. */
static double ray_reach(const struct report_ray *ray, double reduction)
{
	return fmin(1, ray->reduction[ray->nr - 1] / reduction);
}

enum base_status report_ray_mend(struct report_ray *ray, double *speedup, double *reach,
	const struct report_replay_run *base, const struct graph_replay *log,
	const struct graph_scenario *lane, struct base_err *err)
{
	double reduction = ray_reduction(lane);
	if (!report_is_less_work(lane) || reduction <= 0 || graph_replay_nr_verbs(log) > RAY_VERBS)
		return BASE_OK;
	enum base_status s = ray_ready(ray, base, log, lane, err);
	if (s != BASE_OK)
		ray->nr = 0;
	if (s != BASE_OK || !ray->nr)
		return s;
	*speedup = ray_speedup_at(ray, reduction);
	*reach = ray_reach(ray, reduction);
	return BASE_OK;
}

void report_ray_fini(struct report_ray *ray)
{
	report_simulated_fini(&ray->known);
	base_free(ray->edit);
	*ray = (struct report_ray){0};
}
