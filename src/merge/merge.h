/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.h - recordings of several machines (or several of one machine) as one trace on one clock.
 *
 * Two recordings with the same boot id have one kernel's clock. Others are aligned by what passed
 * between them (align.h): packets that both saw, by flow and sequence numbers, and bytes of TCP
 * connections that the recorded programs wrote and read, for recordings made without privileges, and
 * messages of MPI between ranks that were recorded each for itself.
 * Sockets of one connection become a pair by their addresses; addresses that a NAT changed do not.
 *
 * The first input's clock is the merged trace's, and its program is the one whose end the critical
 * path leads to. Reads each input four times, in batches; memory grows with definitions, not with
 * records (packets on their way: MERGE_PACKETS_MAX).
 */
#ifndef LONGPOLE_MERGE_MERGE_H
#define LONGPOLE_MERGE_MERGE_H

#include "merge/align.h"
#include "trace/trace.h"

enum {
	MERGE_INPUTS_MAX = 1 << 14,
	MERGE_PACKETS_MAX = 1 << 20, /* seen at one end and not yet at the other */
};

/* How an input's clock became the first one's. */
enum merge_how {
	MERGE_HOW_first,  /* it is the first one's */
	MERGE_HOW_kernel, /* the same kernel's as another input's */
	MERGE_HOW_pairs,  /* by pairs with another input */
};

struct merge_input_result {
	const char *path, *host, *command;
	uint32_t host_number; /* from 1; inputs of one machine share it */
	enum merge_how how;
	uint32_t through;  /* index of the input that its clock was aligned with */
	int64_t offset_ns; /* its clock's, against the first one's, at the merged beginning */
	int64_t drift_ppb;
	uint64_t error_ns; /* no time of it is off by more, against the first one's */
	bool bends;
	uint64_t nr_packets, nr_bytes, nr_messages; /* pairs with that input, both ways */
	uint64_t nr_records;
	uint32_t rank, nr_ranks; /* in MPI's world; nr_ranks 0: it is no rank */
	uint32_t job;            /* from 1: inputs of one world share it; 0: it is no rank */
};

struct merge_result {
	struct merge_input_result input[MERGE_INPUTS_MAX];
	size_t nr_inputs;
	uint32_t nr_hosts;
	uint64_t error_ns; /* between any two inputs */
	/* packets of flows of which both ends were seen */
	uint64_t nr_sent, nr_received, nr_matched;
	uint64_t nr_connections;   /* whose two ends are in different inputs */
	uint64_t nr_unusable;      /* of them, whose bytes do not add up: no pairs were taken */
	uint64_t nr_communicators; /* of MPI, of which several inputs have ranks */
	uint32_t nr_jobs;          /* of MPI: worlds */
	uint64_t nr_ways_unusable; /* between ranks, on which more was received than was sent */
	uint64_t nr_records;
	bool clock_contradicted; /* one boot id, but pairs say two clocks: they were aligned */
};

struct merge_options {
	const char *tool; /* the writer: for the header */
	bool one_job;     /* inputs of several MPI jobs are a mistake: ERR_USAGE */
	/* May be NULL. */
	void (*progress)(void *ctx, const char *what, uint64_t done_records, uint64_t all_records);
	void *progress_ctx;
};

/* merge_run() - the inputs, in the order of their importance, into `output` (overwritten, also
 * after a failure). ERR_USAGE: too few or too many inputs, or one that is merged already.
 * ERR_CLOCK: clocks that cannot be aligned; err says whose, why and what to do. Names in
 * *ret are borrowed from `ret_names`, which the caller frees with base_arena_free(). */
enum base_status merge_run(const char *const *path, size_t nr_paths, const char *output,
	const struct merge_options *opts, struct merge_result *ret, struct base_arena **ret_names,
	struct base_err *err) BASE_MUST_CHECK;

#endif
