/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_tool.c - session_run() without the command line of longpole: for benches and for tests of
 * the recorder alone.
 *
 *   record-tool [-o FILE] [-f HZ] [-b BUFFER_BYTES] [-s STACK_DEPTH] [-S] [-w] PROGRAM [ARG]...
 *                          -S: no switches; -w: wait for all
 *   record-tool -d FILE    prints a trace
 */
#include "session/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int complain(const struct base_err *err)
{
	for (unsigned i = err->nr_causes; i-- > 0;)
		fprintf(stderr, "record-tool: %s\n", err->cause[i]);
	return 125;
}

static int dump(const char *path)
{
	struct base_err err = {0};
	struct trace_reader *r;
	struct trace_reader_options opts = {.size = sizeof opts, .with_definitions = true};
	struct trace_batch batch;
	struct base_str line = {0};
	enum base_status status = trace_reader_open(path, &opts, &r, &err);
	if (status != BASE_OK)
		return complain(&err);
	while ((status = trace_reader_next(r, &batch, &err)) == BASE_OK)
		for (size_t i = 0; i < batch.nr; i++) {
			base_str_reset(&line);
			trace_print_text(&line, trace_reader_defs(r), &batch.record[i]);
			puts(base_str_text(&line));
		}
	base_str_fini(&line);
	trace_reader_close(r);
	return status == BASE_END ? 0 : complain(&err);
}

static void print(const struct session_result *r)
{
	fprintf(stderr,
		"elapsed %.3f s, %" PRIu64 " records (%" PRIu64 " from the program), %" PRIu64
		" bytes\n"
		"cpu: program %.3f s, recorder %.3f s; estimated overhead %.1f %% (%.2f ns a "
		"record, tsc %.2f ns)\n"
		"sites %" PRIu64 ", named %" PRIu64 " in %.1f ms; buffer %" PRIu64 " bytes\n",
		(double)r->elapsed_ns / 1e9, r->records, r->ring_records, r->trace_bytes,
		(double)r->target_cpu_ns / 1e9, (double)r->recorder_cpu_ns / 1e9,
		r->overhead_share * 100, (double)r->session_write_ns_x100 / 100,
		(double)r->tsc_read_ns_x100 / 100, r->nr_sites, r->nr_named_sites,
		(double)r->symbols_ns / 1e6, r->buffer_bytes);
	for (unsigned i = 0; i < TRACE_DIAG_NR; i++)
		if (r->count[i])
			fprintf(stderr, "%s %" PRIu64 "\n",
				trace_diag_describe((enum trace_diag)i)->name, r->count[i]);
	if (*r->no_samples_why)
		fprintf(stderr, "no samples: %s\n", r->no_samples_why);
	if (*r->no_switches_why)
		fprintf(stderr, "no switches: %s\n", r->no_switches_why);
	if (*r->disk_full_why)
		fprintf(stderr, "disk full: %s\n", r->disk_full_why);
}

int main(int argc, char **argv)
{
	struct session_options opts = session_options_default();
	struct session_result result;
	struct base_err err = {0};
	int option;
	opts.output_path = "record-tool.lpt";
	while ((option = getopt(argc, argv, "+o:f:b:s:Swd:")) > 0) {
		switch (option) {
		case 'o':
			opts.output_path = optarg;
			break;
		case 'f':
			opts.sample_hz = strtoull(optarg, NULL, 0);
			break;
		case 'b':
			opts.buffer_bytes = strtoull(optarg, NULL, 0);
			break;
		case 's':
			opts.stack_depth = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'S':
			opts.switches = false;
			break;
		case 'w':
			opts.wait_all = true;
			break;
		case 'd':
			return dump(optarg);
		default:
			return 125;
		}
	}
	if (optind == argc)
		return 125;
	opts.argv = argv + optind;
	if (session_run(&opts, &result, &err) != BASE_OK)
		complain(&err);
	else
		print(&result);
	return result.exit_code;
}
