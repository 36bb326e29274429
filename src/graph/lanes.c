/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.c - the arithmetic that is done for every lane of a verb. The AVX2
 * versions compute the same operations in the same order (multiply, add,
 * compare), so results do not depend on the processor.
 */
#include "graph/priv.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* length += w * scale */
static void lanes_add_plain(double *length, const double *scale, double w, unsigned n)
{
	for (unsigned l = 0; l < n; l++)
		length[l] += w * scale[l];
}

/* length = max(length + w * scale, dep + dep_w * dep_scale); returns where the
 * dependence won. */
static uint32_t merge_plain(double *length, const double *scale, double w, const double *dep,
	const double *dep_scale, double dep_w, unsigned n, bool dep_wins_ties)
{
	uint32_t took = 0;

	for (unsigned l = 0; l < n; l++) {
		double own = length[l] + w * scale[l], other = dep[l] + dep_w * dep_scale[l];
		bool dep_wins = other > own || (dep_wins_ties && other == own);

		took |= (uint32_t)dep_wins << l;
		length[l] = dep_wins ? other : own;
	}
	return took;
}

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))

AVX2 static void add_avx2(double *length, const double *scale, double w, unsigned n)
{
	__m256d ww = _mm256_set1_pd(w);

	for (unsigned l = 0; l < n; l += LANE_STEP)
		_mm256_storeu_pd(
			length + l, _mm256_add_pd(_mm256_loadu_pd(length + l),
					    _mm256_mul_pd(ww, _mm256_loadu_pd(scale + l))));
}

AVX2 static uint32_t merge_avx2(double *length, const double *scale, double w, const double *dep,
	const double *dep_scale, double dep_w, unsigned n, bool dep_wins_ties)
{
	__m256d ww = _mm256_set1_pd(w), dw = _mm256_set1_pd(dep_w);
	uint32_t took = 0;

	for (unsigned l = 0; l < n; l += LANE_STEP) {
		__m256d own = _mm256_add_pd(
			_mm256_loadu_pd(length + l), _mm256_mul_pd(ww, _mm256_loadu_pd(scale + l)));
		__m256d other = _mm256_add_pd(_mm256_loadu_pd(dep + l),
			_mm256_mul_pd(dw, _mm256_loadu_pd(dep_scale + l)));
		__m256d dep_wins = dep_wins_ties ? _mm256_cmp_pd(other, own, _CMP_GE_OQ)
						 : _mm256_cmp_pd(other, own, _CMP_GT_OQ);

		took |= (uint32_t)_mm256_movemask_pd(dep_wins) << l;
		_mm256_storeu_pd(length + l, _mm256_blendv_pd(own, other, dep_wins));
	}
	return took;
}
#endif

void graph_lanes_choose(struct graph *g, bool vectors)
{
	g->lanes.lane_add = lanes_add_plain;
	g->lanes.lane_merge = merge_plain;
	(void)vectors;
#if defined(__x86_64__)
	if (vectors && g->lanes.stride >= LANE_STEP && __builtin_cpu_supports("avx2")) {
		g->lanes.lane_add = add_avx2;
		g->lanes.lane_merge = merge_avx2;
	}
#endif
}
