/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c - `longpole export`: the trace in another tool's format. */
#include "cmd/cmd.h"

#include "config.h"
#include "format/format.h"

#include <errno.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cmd_option option[] = {
	{"format", 'f', "FORMAT",
		"perfetto speedscope collapsed firefox pprof chrome otlp csv sqlite sarif ctf otf2 "
		"gem5",
		"which (default perfetto)"},
	{"output", 'o', "FILE", "@file",
		"where to (default: the trace's name with another ending); -: standard output"},
	{"weight", 0, "WEIGHT", "path wait cpu",
		"collapsed, pprof: stacks weighted by the critical path, by waiting, or by "
		"processor time (default path)"},
	{"from", 0, "TIME", NULL, "only what happens at TIME (as 1.5s, 20ms, 300us) and later"},
	{"to", 0, "TIME", NULL, "only what happens before TIME"},
	{"min-duration", 0, "TIME", NULL, "leave shorter slices of threads out"},
	{"thread", 0, "NAME", NULL, "only threads with NAME in their name"},
	{"max-events", 0, "N", NULL, "write more than the format's viewers take well"},
};

const struct cmd_details cmd_details_export = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Writes what the trace has for other tools. The threads' waits and the critical "
		 "path: perfetto (ui.perfetto.dev), speedscope, firefox (profiler.firefox.com), "
		 "pprof, collapsed (flame graphs), otlp (OpenTelemetry), chrome, csv and sqlite. "
		 "What is found: sarif. All records: ctf (CTF 1.8). What MPI's ranks did: otf2. "
		 "The annotations alone: gem5 "
		 "(annotate.bin).",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole export --format=perfetto -o server.pftrace server.lpt",
		"longpole export -f collapsed --weight=wait -o - server.lpt",
		"longpole export -f speedscope --from=1s --to=2s server.lpt"},
};

enum { REMOVE_DESCRIPTORS = 16 };

struct file {
	FILE *f;
	const char *path;      /* for messages */
	const char *directory; /* of several files; else NULL */
	struct base_str names; /* of them, each with its NUL */
};

static enum base_status cmd_export_write_file(
	void *ctx, const void *bytes, size_t length, struct base_err *err)
{
	const struct file *o = ctx;
	if (fwrite(bytes, 1, length, o->f) == length)
		return BASE_OK;
	return base_fail_errno(err, errno, "%s: writing", o->path);
}

/* The next file of several. */
static enum base_status begin_file(void *ctx, const char *name, struct base_err *err)
{
	struct file *o = ctx;
	struct base_str path = {0};
	if (o->f && fclose(o->f)) {
		o->f = NULL;
		return base_fail_errno(err, errno, "%s: writing", o->path);
	}
	base_str_addf(&path, "%s/%s", o->directory, name);
	base_str_add_bytes(&o->names, base_str_text(&path), path.length + 1);
	if (path.failed || o->names.failed)
		o->f = NULL;
	else
		o->f = base_output_stream(base_str_text(&path), BASE_OUTPUT_PRIVATE, err);
	base_str_fini(&path);
	return o->f ? BASE_OK : err ? err->status : BASE_ERR_IO;
}

static bool cmd_export_options(struct cmd *c, const struct format_desc *f, struct format_options *o)
{
	const char *weight = cmd_value(c, "weight");
	if (weight && !(f->flags & FORMAT_WEIGHTS)) {
		cmd_usage(c, "--weight is for --format=collapsed and --format=pprof");
		return false;
	}
	o->weight = !weight || !strcmp(weight, "path") ? FORMAT_WEIGHT_path
		    : !strcmp(weight, "wait")          ? FORMAT_WEIGHT_wait
						       : FORMAT_WEIGHT_cpu;
	o->thread = cmd_value(c, "thread");
	bool window = cmd_given(c, "from") || cmd_given(c, "to") || cmd_given(c, "min-duration") ||
		      o->thread;
	if (f->flags & (FORMAT_RECORDS | FORMAT_WHOLE) && (window || cmd_given(c, "max-events"))) {
		cmd_usage(c,
			"--format=%s writes all of the run: --from, --to, --min-duration, "
			"--thread and --max-events do not apply",
			f->name);
		return false;
	}
	if (window && f->flags & FORMAT_WEIGHTS && o->weight == FORMAT_WEIGHT_path) {
		cmd_usage(c, "--from, --to, --min-duration and --thread do not apply to the path's "
			     "weights; "
			     "use --weight=wait");
		return false;
	}
	if (o->weight == FORMAT_WEIGHT_cpu && (o->thread || cmd_given(c, "min-duration"))) {
		cmd_usage(c, "--thread and --min-duration do not apply to --weight=cpu");
		return false;
	}
	return cmd_value_time(c, "from", &o->from_ns) && cmd_value_time(c, "to", &o->to_ns) &&
	       cmd_value_time(c, "min-duration", &o->min_duration_ns) &&
	       cmd_value_count(c, "max-events", &o->max_events);
}

static void cmd_export_model_progress(void *ctx, uint64_t done_records, uint64_t all_records)
{
	cmd_progress_show(ctx, "finding the critical path", done_records, all_records, "records");
}

static enum base_status export_to(struct cmd *c, const struct format_desc *f,
	const struct report_run *run, const struct format_options *o,
	const struct format_sink *sink)
{
	struct model_options mo = {
		.size = sizeof mo,
		.keep_path = true,
		.progress = cmd_export_model_progress,
		.progress_ctx = c,
	};
	struct base_str notes = {0};
	struct format_input in = {.reader = run->reader,
		.name = run->trace_path,
		.tool = "longpole " LONGPOLE_VERSION,
		.notes = &notes};
	struct format_events events;
	enum base_status s = BASE_OK;
	format_events_init(&events);
	if (f->flags & FORMAT_EVENTS) {
		mo.listener = &events.listener;
		mo.sink = &events.sink;
		in.events = &events;
	}
	if (!(f->flags & FORMAT_RECORDS))
		s = model_run(run->reader, &mo, &in.model, &c->err);
	if (s == BASE_OK)
		s = format_export(f, &in, o, sink, &c->err);
	model_free(in.model);
	format_events_fini(&events);
	if (s == BASE_OK)
		cmd_note_lines(c, &notes);
	base_str_fini(&notes);
	return s;
}

/* Opens what is written to; `temporary` is its name until it is whole. */
static enum base_status cmd_export_open_output(struct cmd *c, const struct format_desc *f,
	struct file *out, const struct base_str *temporary, bool to_stdout)
{
	const char *path = base_str_text(temporary);
	if (temporary->failed)
		return base_fail(&c->err, BASE_ERR_NOMEM, "out of memory for a name");
	if (f->flags & (FORMAT_FILES | FORMAT_DIRECTORY)) {
		out->directory = path;
		return mkdir(path, 0700) ? base_fail_errno(&c->err, errno, "%s: making", path)
					 : BASE_OK;
	}
	if (!to_stdout)
		unlink(path); /* of a run that was killed, or a link: it is not followed */
	if (f->flags & FORMAT_FILE) {
		int fd = base_output_open(
			path, BASE_OUTPUT_PRIVATE, &c->err); /* empty, for sqlite */
		if (fd < 0)
			return c->err.status;
		close(fd);
		return BASE_OK;
	}
	out->f = to_stdout ? stdout : base_output_stream(path, BASE_OUTPUT_PRIVATE, &c->err);
	return out->f ? BASE_OK : c->err.status;
}

static int remove_found(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)at;
	return type == FTW_DP ? rmdir(path) : unlink(path);
}

static void remove_output(
	const struct format_desc *f, const struct file *out, const char *temporary)
{
	const char *name = base_str_text(&out->names);
	for (const char *end = name + out->names.length; name < end; name += strlen(name) + 1)
		unlink(name);
	if (f->flags & FORMAT_DIRECTORY)
		nftw(temporary, remove_found, REMOVE_DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
	else if (f->flags & FORMAT_FILES)
		rmdir(temporary);
	else
		unlink(temporary);
}

/* The file appears whole or not at all: a name of its own first. */
static int export_file(struct cmd *c, const struct format_desc *f, const struct report_run *run,
	const struct format_options *o, const char *path)
{
	struct base_str temporary = {0};
	struct file out = {.path = path};
	bool to_stdout = !strcmp(path, "-");
	if (!to_stdout && !cmd_may_replace(path))
		return cmd_usage(c, "%s is no file; '-o -' is standard output", path);
	if (f->flags & (FORMAT_FILES | FORMAT_DIRECTORY) && !access(path, F_OK))
		return cmd_usage(
			c, "%s is there already: remove it, or give another name with -o", path);
	struct base_str real = {0};
	enum base_status s = base_output_name(path, &real, &c->err);
	if (s != BASE_OK) {
		base_str_fini(&real);
		return cmd_fail(c, s);
	}
	base_str_addf(&temporary, "%s.part", real.buf);
	const char *name = base_str_text(&temporary);
	s = cmd_export_open_output(c, f, &out, &temporary, to_stdout);
	bool made = s == BASE_OK && !to_stdout;
	struct format_sink sink = {.write = cmd_export_write_file,
		.begin = begin_file,
		.ctx = &out,
		.path = f->flags & (FORMAT_FILE | FORMAT_DIRECTORY) ? name : NULL};
	if (s == BASE_OK)
		s = export_to(c, f, run, o, &sink);
	if (out.f && (to_stdout ? fflush(out.f) : fclose(out.f)) && s == BASE_OK)
		s = base_fail_errno(&c->err, errno, "%s: writing", path);
	if (made && s == BASE_OK && rename(name, real.buf))
		s = base_fail_errno(&c->err, errno, "%s: renaming", path);
	if (made && s != BASE_OK)
		remove_output(f, &out, name);
	base_str_fini(&temporary);
	base_str_fini(&real);
	base_str_fini(&out.names);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	if (!to_stdout)
		cmd_note(c, "wrote %s (%s)", path, f->doc);
	return CMD_OK;
}

int cmd_run_export(struct cmd *c)
{
	char buf[CMD_PATH_MAX];
	struct report_run run;
	const char *format = cmd_value(c, "format");
	const struct format_desc *f = format_find(format ? format : "perfetto");
	struct format_options o = {0};
	/* The option's choices are the table's names: tests/cli/exports.sh tries each. */
	BASE_ASSERT(f != NULL);
	if (!cmd_export_options(c, f, &o))
		return CMD_USAGE;
	const char *trace = cmd_trace_path(c);
	const char *path = trace ? cmd_output_path(c, trace, f->suffix, buf) : NULL;
	if (!path)
		return CMD_USAGE;
	if (!strcmp(path, "-") && f->flags & (FORMAT_FILE | FORMAT_FILES | FORMAT_DIRECTORY))
		return cmd_usage(c, "%s is no stream of bytes: give a name with -o", f->name);
	if (!strcmp(path, "-") && f->flags & FORMAT_BINARY && isatty(STDOUT_FILENO))
		return cmd_usage(c, "%s is binary: give a file with -o, or redirect", f->name);
	int exit_status = cmd_open(c, trace, &run);
	if (exit_status != CMD_OK)
		return exit_status;
	const uint64_t last_ns = trace_reader_last_ns(run.reader);
	if (o.from_ns > last_ns || (o.to_ns && o.from_ns >= o.to_ns)) {
		struct base_str last = {0};
		base_str_add_ns(&last, last_ns);
		exit_status = cmd_usage(c,
			"--from and --to: nothing lies between them (the trace's last record is at "
			"%s)",
			base_str_text(&last));
		base_str_fini(&last);
	} else {
		exit_status = export_file(c, f, &run, &o, path);
	}
	cmd_close(c, &run);
	return exit_status;
}
