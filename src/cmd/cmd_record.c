/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_record.c - `longpole record`, and `longpole PROG ARGS`. */
#include "cmd/cmd.h"

#include "config.h"
#include "record/session.h"

#include <string.h>

enum { TRACE_PATH_MAX = 4096 };

#define RECORD_OPTIONS                                                                             \
	{"output", 'o', "FILE", "@file", "the trace to write (default: longpole-PROG.lpt)"},       \
		{"sample-hz", 0, "HZ", NULL,                                                       \
			"samples a second of each running thread; 0: none (default 999)"},         \
		{"no-switches", 0, NULL, NULL,                                                     \
			"do not record when threads get and lose processors"},                     \
		{"stack-depth", 0, "N", NULL, "callers kept of each wait; 0: none (default 16)"},  \
		{"buffer", 0, "SIZE", NULL,                                                        \
			"memory between the program and the trace (default 256M, used as "         \
			"needed)"},                                                                \
	{"level", 0, "N", "1 2 3",                                                                 \
		"1: calls; 2: also the memory accesses, 3: also the instructions of programs that "        \
		"`longpole cc` built (default 1)"},                                                \
	{                                                                                          \
		"wait-all", 0, NULL, NULL,                                                         \
			"go on until all recorded processes have ended, not only the first"        \
	}

static const struct cmd_option record_option[] = {
	RECORD_OPTIONS,
	{"system", 0, NULL, NULL,
		"record all threads of the machine: who ran where, who woke whom (needs root)"},
	{"sched", 0, NULL, NULL, "with --system: switches and wakes only (default)"},
	{"full", 0, NULL, NULL,
		"with --system: system calls, interrupts, sockets, packets, disks, timers, too"},
	{"for", 0, "SECONDS", NULL,
		"with --system and without PROG: how long (default: to Ctrl-C)"},
	{"source", 0, "NAME", "bpf perf",
		"with --system: where the kernel's events come from (default: the best that "
		"works)"},
};
static const struct cmd_option default_option[] = {
	RECORD_OPTIONS,
	{"full", 0, NULL, NULL, "every state and fix of 1 % of the path and more"},
};

const struct cmd_details cmd_details_record = {
	.usage = "[OPTIONS] PROG [ARG...]\n--system [OPTIONS] [PROG [ARG...]]",
	.about = "Runs PROG, unchanged, and records who waits for whom. With --system, records all "
		 "threads of "
		 "the machine beside it, or without it. Its exit status is passed "
		 "on; 125: "
		 "longpole failed, 126: PROG cannot be executed, 127: PROG was not found. The "
		 "first Ctrl-C "
		 "is for the program, the second ends the recording; the trace is complete in both "
		 "cases.",
	.option = record_option,
	.nr_options = BASE_COUNT(record_option),
	.example = {"longpole record ./server --threads 8", "longpole record -o build.lpt make -j8",
		"longpole record --sample-hz=0 sh -c 'sort big | uniq -c'"},
};

static const struct cmd_details default_details = {
	.usage = "[OPTIONS] PROG [ARG...]",
	.about = "Records PROG, then says, on standard error, what its critical path is made of.",
	.option = default_option,
	.nr_options = BASE_COUNT(default_option),
	.example = {"longpole ./server --threads 8"},
};

static int run_default(struct cmd *c);
const struct cmd_spec cmd_default_spec = {
	.name = "",
	.summary = "record a program and say what its time went into",
	.group = CMD_GROUP_RECORD,
	.flags = CMD_PROGRAM | CMD_PROGRESS | CMD_JSON | CMD_MEMORY,
	.details = &default_details,
	.run = run_default,
};

static void progress(void *ctx, const struct record_progress *p)
{
	struct base_str s = {0};
	base_str_add(&s, "recording ");
	base_str_add_ns(&s, p->elapsed_ns);
	base_str_add(&s, ", ");
	base_str_add_count(&s, p->records);
	base_str_add(&s, " records, ");
	base_str_add_size(&s, p->trace_bytes);
	base_str_addf(&s, ", buffer %u %% full", p->buffer_percent);
	cmd_progress_text(ctx, base_str_text(&s));
	base_str_fini(&s);
}

static bool options(struct cmd *c, struct record_options *o)
{
	uint64_t depth = o->stack_depth;
	if (!cmd_value_count(c, "sample-hz", &o->sample_hz) ||
		!cmd_value_count(c, "stack-depth", &depth) ||
		!cmd_value_size(c, "buffer", &o->buffer_bytes))
		return false;
	if (depth > RECORD_STACK_DEPTH) {
		cmd_usage(c, "--stack-depth: at most %d", RECORD_STACK_DEPTH);
		return false;
	}
	o->stack_depth = (unsigned)depth;
	uint64_t level = 1;
	if (!cmd_value_count(c, "level", &level))
		return false;
	o->level = (unsigned)level;
	o->switches = !cmd_given(c, "no-switches");
	o->wait_all = cmd_given(c, "wait-all");
	return true;
}

static bool system_options(struct cmd *c, struct record_options *o)
{
	enum { NS_PER_S = 1000000000, SECONDS_MAX = 1000000 };
	uint64_t seconds = 0;
	bool system = cmd_given(c, "system");
	if (!system && (cmd_given(c, "sched") || cmd_given(c, "full") || cmd_given(c, "for") ||
			       cmd_given(c, "source"))) {
		cmd_usage(c, "--sched, --full, --for and --source need --system");
		return false;
	}
	if (!cmd_value_count(c, "for", &seconds))
		return false;
	if (seconds > SECONDS_MAX || (cmd_given(c, "for") && (c->nr_operands || !seconds))) {
		cmd_usage(c, c->nr_operands ? "--for: the program says when it ends"
					    : "--for: 1 to 1000000 seconds");
		return false;
	}
	if (cmd_given(c, "sched") && cmd_given(c, "full")) {
		cmd_usage(c, "--sched or --full, not both");
		return false;
	}
	o->for_ns = seconds * NS_PER_S;
	o->system_backend = cmd_value(c, "source");
	if (system)
		o->system = cmd_given(c, "full") ? RECORD_LEVEL_full : RECORD_LEVEL_sched;
	return true;
}

/* longpole-PROG.lpt in the working directory: every run of PROG replaces the last one's. */
static const char *output_path(struct cmd *c, char buf[TRACE_PATH_MAX])
{
	const char *given = cmd_value(c, "output");
	const char *slash = c->nr_operands ? strrchr(c->operand[0], '/') : NULL;
	const char *name = slash && slash[1] ? slash + 1
			   : c->nr_operands  ? c->operand[0]
					     : "system";
	if (given)
		return given;
	int n = snprintf(buf, TRACE_PATH_MAX, "longpole-%s.lpt", name);
	if (n > 0 && n < 255 && !strchr(name, '/'))
		return buf;
	cmd_usage(c, "no file name can be made of '%s'; give one with -o", c->operand[0]);
	return NULL;
}

static void memory_summary(struct cmd *c, const struct record_result *r)
{
	struct base_str s = {0};
	if (!r->memory_images) {
		cmd_note(c, "no memory streams: none of the programs that ran was built by "
			    "`longpole cc`");
		return;
	}
	base_str_addf(&s, "memory streams of level %u: ", r->memory_level);
	base_str_add_count(&s, r->memory_threads);
	base_str_add(&s, " threads, ");
	base_str_add_count(&s, r->memory_words);
	base_str_add(&s, " words in ");
	base_str_add_size(&s, r->memory_chunk_bytes);
	base_str_add(&s, " before compression; the threads spent ");
	base_str_add_ns(&s, r->memory_encode_ns);
	base_str_add(&s, " encoding and ");
	base_str_add_ns(&s, r->memory_wait_ns);
	base_str_add(&s, " of it waiting for the recorder");
	cmd_note(c, "%s", base_str_text(&s));
	base_str_fini(&s);
}

/* Which back-end it was, and why not a better one. */
static void system_summary(struct cmd *c, const struct record_result *r)
{
	for (unsigned i = 0; i < r->nr_attempts; i++) {
		const struct record_attempt *a = &r->attempt[i];
		if (a->refusal != RECORD_REFUSAL_none)
			cmd_note(c, "kernel events: %s not used: %s (%s)", a->backend->name,
				record_refusal_text(a->refusal), a->why);
		else
			cmd_note(c, "kernel events: %llu through %s, %llu switches",
				(unsigned long long)r->kernel_events, a->backend->name,
				(unsigned long long)r->kernel_switches);
	}
}

static void summary(struct cmd *c, const struct record_result *r, const char *path)
{
	struct base_str s = {0};
	base_str_addf(&s, "recorded %s: ", path);
	base_str_add_ns(&s, r->elapsed_ns);
	base_str_add(&s, ", ");
	base_str_add_count(&s, r->records);
	base_str_add(&s, " records, ");
	base_str_add_size(&s, r->trace_bytes);
	if (r->overhead_share >= 0.001)
		base_str_addf(&s,
			"; writing records was at least %.1f %% of the program's processor time",
			r->overhead_share * 100);
	else if (r->overhead_share > 0)
		base_str_add(&s, "; writing records was about 0.1 % of the program's processor "
				 "time or less");
	cmd_note(c, "%s", base_str_text(&s));
	if (r->memory_level)
		memory_summary(c, r);
	if (r->nr_attempts)
		system_summary(c, r);
	if (*r->no_system_samples_why)
		cmd_note(c, "no samples of other programs: %s", r->no_system_samples_why);
	if (*r->no_samples_why)
		cmd_note(c, "no samples: %s", r->no_samples_why);
	if (*r->no_switches_why)
		cmd_note(c, "no processor switches: %s", r->no_switches_why);
	if (*r->disk_full_why)
		cmd_note(c, "the trace ends early: %s", r->disk_full_why);
	for (unsigned d = 0; d < TRACE_DIAG_NR; d++) {
		const struct trace_diag_desc *desc = trace_diag_describe((enum trace_diag)d);
		if (r->count[d] && desc->severity != TRACE_SEVERITY_info)
			cmd_note(c, "caveat: %llu %s (the report says more)",
				(unsigned long long)r->count[d], desc->name);
	}
	base_str_fini(&s);
}

/* The program's exit status, or ours after a message. *ret_path NULL: there is no trace. */
static int record(struct cmd *c, bool can_system, char buf[TRACE_PATH_MAX], const char **ret_path)
{
	struct record_options o = record_options_default();
	struct record_result r = {.wait_status = -1, .exit_code = RECORD_EXIT_OURS};
	*ret_path = NULL;
	if (!options(c, &o) || (can_system && !system_options(c, &o)))
		return RECORD_EXIT_OURS;
	if (!c->nr_operands && o.system == RECORD_LEVEL_none) {
		cmd_usage(c, "no program given");
		return RECORD_EXIT_OURS;
	}
	const char *path = output_path(c, buf);
	if (!path)
		return RECORD_EXIT_OURS;
	o.output_path = path;
	o.argv = c->nr_operands ? c->operand : NULL; /* NULL-terminated: it ends with argv */
	o.tool = "longpole " LONGPOLE_VERSION;
	o.progress = progress;
	o.progress_ctx = c;
	cmd_progress_reset(c);
	enum base_status s = record_run(&o, &r, &c->err);
	cmd_progress_clear(c);
	if (s != BASE_OK) {
		cmd_fail(c, s);
		return r.exit_code ? r.exit_code : RECORD_EXIT_OURS;
	}
	summary(c, &r, path);
	*ret_path = path;
	return r.exit_code;
}

int cmd_run_record(struct cmd *c)
{
	char buf[TRACE_PATH_MAX];
	const char *path;
	return record(c, true, buf, &path);
}

/* Its exit status is the program's: this is a recording, and scripts go on as if longpole were not
 * there. */
static int run_default(struct cmd *c)
{
	char buf[TRACE_PATH_MAX];
	const char *path;
	int exit_status = record(c, false, buf, &path);
	if (!path)
		return exit_status;
	c->answer_on_stderr =
		true; /* `longpole gzip -c f >f.gz` must write what gzip alone writes */
	int analysed = cmd_report_trace(c, path, cmd_given(c, "full"), cmd_given(c, "json"));
	return exit_status ? exit_status : analysed == CMD_OK ? 0 : RECORD_EXIT_OURS;
}
