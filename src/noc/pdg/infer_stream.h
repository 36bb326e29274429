/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infer_stream.h - inference from traces of any length in memory that does not depend on it: window
 * by window of packets, in the order of their numbers. Each window is inferred by itself (noise,
 * what nodes and types have in common), together with the packets before it that its transmits may
 * depend on: the context. A dependency on a packet before that is not found.
 *
 * All runs must be of the same packets: nothing is matched. They are read side by side; in a slowed
 * run a packet may come earlier or later than its number says, by a window at most.
 *
 * Memory: about 140 bytes, and 16 for each run, times two windows and a context; and what
 * noc_infer() needs for a window and a context.
 */
#ifndef LONGPOLE_NOC_INFER_STREAM_H
#define LONGPOLE_NOC_INFER_STREAM_H

#include "noc/pdg/infer.h"

struct noc_stream_options {
	struct noc_infer_options infer;
	uint32_t window_packets, context_packets; /* 2 million and a quarter of that */
	void (*progress)(void *ctx, uint64_t done, uint64_t all); /* NULL: none */
	void *progress_ctx;
};
enum { NOC_STREAM_WINDOW_MIN = 1000, NOC_STREAM_WINDOW_MAX = 1 << 28 };
void noc_stream_options_init(struct noc_stream_options *o);

/* path[0]: the base run. output NULL: the graph is not written. ret: sums; the largest tolerance.
 */
enum base_status noc_infer_files(const char *const *path, uint32_t nr_runs,
	const struct noc_stream_options *o, const char *output, struct noc_infer_result *ret,
	struct base_err *err) BASE_MUST_CHECK;

#endif
