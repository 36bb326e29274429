/* SPDX-License-Identifier: Apache-2.0 */
/* read_trace.c - lpt-read: how long it takes to decode and merge a trace, and no more than that. */
#include "trace/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void die(const struct base_err *err)
{
	for (unsigned i = 0; i < err->nr_causes; i++)
		fprintf(stderr, "lpt-read: %s\n", err->cause[i]);
	exit(3);
}

int main(int argc, char **argv)
{
	int nr_runs = argc > 2 ? atoi(argv[2]) : 3;
	struct base_err err = {0};
	struct trace_reader *r;

	if (argc < 2) {
		fputs("usage: lpt-read FILE.lpt [RUNS]\n", stderr);
		return 2;
	}
	if (trace_reader_open(argv[1], NULL, &r, &err) != BASE_OK)
		die(&err);
	for (int run = 0; run < nr_runs; run++) {
		uint64_t begin_ns = cpu_ns(), nr = 0, sum = 0, last_ns = 0;
		struct trace_batch batch;
		enum base_status status;

		if (trace_reader_rewind(r, &err) != BASE_OK)
			die(&err);
		while ((status = trace_reader_next(r, &batch, &err)) == BASE_OK) {
			nr += batch.nr;
			/* Touch one record of each batch; a consumer's cost is not ours. */
			sum += batch.record[0].kind;
			if (batch.record[0].time_ns < last_ns)
				return 1;
			last_ns = batch.record[batch.nr - 1].time_ns;
		}
		if (status != BASE_END)
			die(&err);
		uint64_t spent_ns = cpu_ns() - begin_ns;
		printf("%" PRIu64
		       " records, %.2f ns a record (%.1f million a second), check %" PRIu64 "\n",
			nr, (double)spent_ns / (double)nr, (double)nr * 1e3 / (double)spent_ns,
			sum);
	}
	trace_reader_close(r);
	return 0;
}
