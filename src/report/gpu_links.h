/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_links.h - what a collective operation costs, from how much it moves among how many: latency of its steps, and
 * bytes over bandwidth. Of S bytes among n, on a ring: all-reduce takes 2(n - 1) steps and moves 2(n - 1)/n S through
 * each link; all-gather, reduce-scatter and all-to-all take n - 1 and move (n - 1)/n S; a broadcast or reduction moves
 * S. On trees the steps are twice, or once, the logarithm of n, and the bytes the same.
 * (R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA 19(1), 2005;
 * P. Sanders, J. Speck, J. Traeff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, Parallel
 * Computing 35(12), 2009.)
 */
#ifndef LONGPOLE_REPORT_GPU_LINKS_H
#define LONGPOLE_REPORT_GPU_LINKS_H

#include "base/base.h"

struct report_transfer {
	const char *
		operation; /* "allreduce", "_allgather_base", "ncclDevKernel_AllReduce...": as recorded */
	double bytes, ranks;   /* ranks 0: not known, taken as many */
	double mean_ns, times; /* measured, without waiting for others */
};
struct report_links { /* both at least 0 */
	double step_ns, byte_ns;
	bool is_fitted; /* from operations of several sizes; else all is taken as bytes */
};
/* Least squares over operations, by how often they were done. */
struct report_links report_links_fit(const struct report_transfer *t, size_t nr);
/* The part of the operation's time that is proportional to its bytes. */
double report_links_share(const struct report_links *l, const struct report_transfer *t);
/* By what its time is multiplied with so many ranks instead; on a ring, or on trees. */
double report_links_ranks(
	const struct report_links *l, const struct report_transfer *t, double ranks, bool is_tree);

#endif
