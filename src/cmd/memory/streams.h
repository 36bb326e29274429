/* SPDX-License-Identifier: Apache-2.0 */
/* streams.h - memory streams for the commands: options of their order, opening, running through. */
#ifndef LONGPOLE_CMD_STREAMS_H
#define LONGPOLE_CMD_STREAMS_H

#include "cmd/record/record.h"
#include "memory/stream/live.h"
#include "memory/order/order.h"

/* Says when a recording that was to have memory streams has none, or empty ones. BASE_OK: it has
 * some. */
enum base_status cmd_streams_recorded(const struct session_result *r, struct base_err *err);

/* The options that ciat and cdat share (seed 004, appendix B, with their letters). */
#define CMD_STREAM_OPTIONS                                                                         \
	{"format", 'f', "NAME", NULL, "the traces' format (default: found)"},                      \
		{"calls", 0, "TRACE", NULL,                                                        \
			"call records of a less disturbed run, whose times replace those here"},   \
		{"trace-list", 't', "FILE", "@file", "a file that lists the traces, one a line"},  \
		{"call-list", 'c', "FILE", "@file",                                                \
			"a file that lists the traces of --calls, one a line"},                    \
		{"process", 0, "N", NULL,                                                          \
			"of a recording of several processes: this one, by number or pid, or all " \
			"(default: the one that did most)"},                                       \
		{"order", 0, "HOW", "pseudo time",                                                 \
			"interleave threads by pseudo clocks (default) or by recorded times"},     \
		{"parallel", 'p', NULL, NULL,                                                      \
			"spawn and join are not in the trace: begin with a parallel phase"},       \
		{"processors", 'i', "P", NULL,                                                     \
			"the traces are processes: interleave them on P processors"},              \
		{"affinity", 'a', NULL, NULL, "with -i: a process stays on its processor"},        \
		{"rr-interleaving", 0, NULL, NULL,                                                 \
			"with -i: simple turns instead of scheduling slices"},                     \
		{"keep-slices", 'k', NULL, NULL,                                                   \
			"with -i: long slices are not taken off their processor"},                 \
		{"slice", 's', "N", NULL,                                                          \
			"with -i: a long slice leaves after N instructions (default 20000)"},      \
		{"handle-io", 0, NULL, NULL, "simulate what disk reads and writes move"},          \
		{"buffered-io", 0, NULL, NULL, "disk I/O goes through a buffer of the system"},    \
		{"asynch-io", 0, NULL, NULL, "a process does not wait for its disk I/O"},          \
		{"dma-bw", 0, "MB/S", NULL, "bandwidth of disk DMA (default 20)"},                 \
		{"disk-latency", 0, "MS", NULL, "average disk latency (default 10)"},              \
		{"ipc", 0, "N", NULL, "instructions per cycle, for times (default 2)"},            \
		{"mhz", 0, "N", NULL, "processor clock, for times (default 120)"},                 \
		{"level", 0, "N", "2 3", "with -- PROG: as longpole record (default 3)"},          \
		{"recorder", 0, "NAME", CMD_RECORDERS,                                             \
			"with -- PROG: as longpole record (default rewritten)"},                   \
		{"threads", 0, "N", NULL,                                                          \
			"with -- PROG: how many threads it may have (default 64; of cdat: as "     \
			"many as the machine has processors)"},                                    \
	{                                                                                          \
		"hpux", 0, NULL, NULL, "addresses 0x40000000 to 0x7fffffff are private"            \
	}

/* The seed's own words for them. */
#define CMD_STREAM_SPELLINGS                                                                       \
	{"-HPUX", "hpux"}, {"-rr_interleaving", "rr-interleaving"}, {"-handle_io", "handle-io"},   \
		{"-buffered_io", "buffered-io"}, {"-asynch_io", "asynch-io"},                      \
		{"-dma_bw", "dma-bw"}, {"-disk_latency", "disk-latency"},                          \
	{                                                                                          \
		"-ipc", "ipc"                                                                      \
	}

struct cmd_streams {
	struct memory_source *source, *calls;
	struct memory_order *order;
	const char *name; /* what the answer calls it */
	uint64_t nr_steps;
	/* "-- PROG": recorded and analysed at the same time (streams_live.c) */
	bool is_program;
	const char *recorder; /* as given; NULL: not */
	enum session_emulator emulator;
	char *const *word; /* of the command line: the program and its arguments, or the traces */
	size_t nr_words;
	struct memory_live *live; /* is the source, too */
	unsigned level;
	int program_exit;
	uint64_t lost_chunks, elapsed_ns, wait_ns;
};
/* The end of a command line that analyses the same traces, or program. */
void cmd_streams_again(struct base_str *out, const struct cmd_streams *s);
/* What an analysis does with steps. */
typedef enum base_status cmd_streams_add(
	void *ctx, const struct memory_steps *steps, struct base_err *err);
/* Opens what operands and options say. last_operands: that many at the end are not traces.
 * max_threads: of a program that will be run. CMD_OK or an exit status after a message. */
int cmd_streams_open(
	struct cmd *c, size_t last_operands, uint32_t max_threads, struct cmd_streams *ret);
/* "-- PROG": there is no trace. */
bool cmd_streams_are_live(const struct cmd *c);
int cmd_streams_open_live(struct cmd *c, uint32_t max_threads, struct cmd_streams *ret);
int cmd_streams_run_live(struct cmd *c, struct cmd_streams *s, cmd_streams_add *add, void *ctx);
/* The program's exit status, where there was one; else the analysis's. */
int cmd_streams_exit(const struct cmd_streams *s, int analysed);
/* Threads that there were; known at the end. */
uint32_t cmd_streams_threads(const struct cmd_streams *s);
/* Only the traces, for a caller that reads them in another way. */
int cmd_streams_open_source(struct cmd *c, size_t last_operands, struct memory_source **ret);
void cmd_streams_close(struct cmd_streams *s);
/* Hands all steps to `add`; a program runs meanwhile. */
int cmd_streams_run(struct cmd *c, struct cmd_streams *s, cmd_streams_add *add, void *ctx);
/* A number with a fraction. False: a message was printed. */
bool cmd_value_real(struct cmd *c, const char *option, double least, double *ret);
/* Caveats: order, what was unseen, problems of the source. */
void cmd_streams_caveats(const struct cmd_streams *s, struct base_str *out);
/* The last two of them only. */
void cmd_streams_source_caveats(const struct cmd_streams *s, struct base_str *out);
json_t *cmd_streams_json(const struct cmd_streams *s);

/* A file that a command writes beside its answer. */
struct cmd_out {
	FILE *file;
	const char *path;
	struct base_str pending; /* written when it has grown */
	bool failed;
};
bool cmd_out_open(
	struct cmd *c, const char *option, struct cmd_out *ret); /* not given: file NULL */
bool cmd_out_open_path(struct cmd *c, const char *path, struct cmd_out *ret);
void cmd_out_add(struct cmd_out *o); /* pending, if long */
int cmd_out_close(struct cmd *c, struct cmd_out *o);

#endif
