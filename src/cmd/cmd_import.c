/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_import.c - `longpole import`: another tool's file as a trace. */
#include "cmd/cmd.h"

#include "config.h"
#include "format/format.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TICK_PS_MAX = 1000000000 };

static const struct cmd_option option[] = {
	{"output", 'o', "FILE", "@file",
		"where to (default: the file's name with the ending .lpt, beside it)"},
	{"step", 0, "NAME", NULL,
		"GPUs: annotations that are steps, with * ? [ (default 'ProfilerStep#*')"},
	{"tick-ps", 0, "N", NULL, "gem5: picoseconds a tick (default 1, as gem5's)"},
};

const struct cmd_details cmd_details_import = {
	.usage = "[OPTIONS] FORMAT FILE...",
	.about = "Makes a trace of FILE, which another tool wrote, for 'longpole report' and all "
		 "other commands. Kernel traces with sched events: perf (perf.data), ctf "
		 "(LTTng), tracecmd (trace.dat), perfetto. GPUs: pytorch (PyTorch's profiler, "
		 "Kineto), nsys (SQLite export of Nsight Systems), xla (XSpace of JAX and "
		 "TensorFlow). Programs: chrome (Trace Event JSON), otlp (OpenTelemetry or Jaeger "
		 "JSON), go (Go's execution trace). MPI: otf2 (Score-P's traces.otf2). "
		 "Simulators: gem5 (annotate.bin, the critical-path annotations of gem5 and M5 "
		 "until 2020). Of pytorch give the files of all ranks, or their directory.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole import perf perf.data && longpole report perf.lpt",
		"longpole import gem5 -o server.lpt m5out/annotate.bin && longpole report "
		"server.lpt"},
};

struct input {
	int fd;
	const char *path;
};

static enum base_status cmd_import_read_at(
	void *ctx, uint64_t offset, void *to, size_t length, struct base_err *err)
{
	const struct input *in = ctx;
	uint8_t *p = to;
	while (length) {
		ssize_t n = pread(in->fd, p, length, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return base_fail_errno(err, errno, "%s: reading", in->path);
		if (!n)
			return base_fail(err, BASE_ERR_TRUNCATED,
				"%s: became shorter while it was read", in->path);
		p += n;
		offset += (uint64_t)n;
		length -= (size_t)n;
	}
	return BASE_OK;
}

/* m5out/annotate.bin -> m5out/annotate.lpt; traces/ -> traces.lpt */
static const char *output_path(struct cmd *c, const char *path, char buf[CMD_PATH_MAX])
{
	const char *given = cmd_value(c, "output"), *end = path + strlen(path);
	while (end - path > 1 && end[-1] == '/')
		end--;
	const char *slash = memrchr(path, '/', (size_t)(end - path));
	const char *name = slash ? slash + 1 : path;
	const char *dot = memrchr(name, '.', (size_t)(end - name));
	size_t length = dot && dot != name ? (size_t)(dot - path) : (size_t)(end - path);
	if (given)
		return given;
	int n = snprintf(buf, CMD_PATH_MAX, "%.*s.lpt",
		(int)(length < CMD_PATH_MAX ? length : CMD_PATH_MAX), path);
	if (n > 0 && n < CMD_PATH_MAX && strcmp(buf, path) != 0)
		return buf;
	cmd_usage(c, "of the file's name no other can be made; use -o");
	return NULL;
}

static void cmd_import_progress(void *ctx, uint64_t done_bytes, uint64_t all_bytes)
{
	cmd_progress_show(ctx, "importing", done_bytes, all_bytes, "bytes");
}

static enum base_status import_to(struct cmd *c, const struct format_import_desc *f,
	const struct format_source *from, uint64_t tick_ps, const char *path,
	struct base_str *notes)
{
	struct format_started started;
	BASE_ASSERT(from); /* there is one at least */
	enum base_status s = format_import_started(f, from, &started, &c->err), closed;
	struct trace_info info = {.size = sizeof info,
		.host = "",
		.command = started.pid ? base_str_text(&started.command) : from->name,
		.tool = "longpole " LONGPOLE_VERSION " import",
		.nr_processors = started.nr_processors,
		.flags = started.is_program                ? 0u
			 : f->flags & FORMAT_IMPORT_SYSTEM ? TRACE_INFO_SYSTEM
			 : f->flags & FORMAT_IMPORT_RANKS ? TRACE_INFO_SYNTHETIC | TRACE_INFO_MERGED
							  : TRACE_INFO_SYNTHETIC};
	struct format_import_options o = {.started = &started,
		.tick_ps = tick_ps,
		.step = cmd_value(c, "step"),
		.progress = cmd_import_progress,
		.progress_ctx = c};
	struct trace_writer *w = NULL;
	struct base_err late = {0};
	if (s == BASE_OK)
		s = trace_writer_open(path, &info, &w, &c->err);
	closed = s;
	if (s == BASE_OK) {
		s = format_import(f, from, w, &o, notes, &c->err);
		closed = trace_writer_close(w, s == BASE_OK ? &c->err : &late);
	}
	base_str_fini(&started.command);
	return s == BASE_OK ? closed : s;
}

/* The trace appears whole or not at all: a name of its own first. */
static int import_file(struct cmd *c, const struct format_import_desc *f,
	const struct format_source *from, uint64_t tick_ps, const char *path)
{
	struct base_str temporary = {0}, notes = {0};
	if (!cmd_may_replace(path))
		return cmd_usage(c, "%s is no file", path);
	struct base_str real = {0};
	enum base_status s = base_output_name(path, &real, &c->err);
	base_str_addf(&temporary, "%s.part", base_str_text(&real));
	if (s == BASE_OK && !temporary.failed) /* of a run that was killed, or a link */
		unlink(base_str_text(&temporary));
	if (s == BASE_OK)
		s = temporary.failed
			    ? base_fail(&c->err, BASE_ERR_NOMEM, "out of memory for a name")
			    : import_to(c, f, from, tick_ps, base_str_text(&temporary), &notes);
	if (s == BASE_OK && rename(base_str_text(&temporary), real.buf))
		s = base_fail_errno(&c->err, errno, "%s: renaming", path);
	if (s != BASE_OK && real.length)
		unlink(base_str_text(&temporary));
	base_str_fini(&real);
	int exit_status = CMD_OK;
	if (s != BASE_OK) {
		exit_status = cmd_fail(c, s);
	} else {
		cmd_note(c, "wrote %s", path);
		cmd_note_lines(c, &notes);
	}
	base_str_fini(&temporary);
	base_str_fini(&notes);
	return exit_status;
}

static const char *next_format(const void *ctx, size_t i)
{
	size_t nr;
	const struct format_import_desc *table = format_import_table(&nr);
	(void)ctx;
	return i < nr ? table[i].name : NULL;
}

static void unknown_format(struct cmd *c)
{
	struct base_str names = {0};
	const char *name;
	for (size_t i = 0; (name = next_format(NULL, i)); i++)
		base_str_addf(&names, "%s%s", i ? ", " : "", name);
	cmd_usage(c, "no import format '%s'; there are: %s", c->operand[0], base_str_text(&names));
	base_str_fini(&names);
}

static const struct format_import_desc *which_format(struct cmd *c)
{
	const struct format_import_desc *f =
		c->nr_operands ? format_import_find(c->operand[0]) : NULL;
	if (f && (c->nr_operands == 2 || (c->nr_operands > 2 && f->flags & FORMAT_IMPORT_MANY)))
		return f;
	const char *near =
		c->nr_operands && !f ? base_nearest(c->operand[0], next_format, NULL) : NULL;
	if (near)
		cmd_usage(c, "no import format '%s'; did you mean '%s'?", c->operand[0], near);
	else if (c->nr_operands && !f)
		unknown_format(c);
	else
		cmd_usage(c, "give a format and one file of it");
	return NULL;
}

/* ---- the files ------------------------------------------------------------------------------- */

struct inputs {
	struct input *in;
	struct format_source *source;
	size_t nr, in_capacity, source_capacity;
	struct base_arena *names;
};

static int import_no_file(
	struct cmd *c, const struct format_import_desc *f, const char *path, const struct stat *st)
{
	if (!S_ISDIR(st->st_mode))
		return cmd_usage(
			c, "%s is no file: names stand at its end, so a pipe will not do", path);
	return cmd_usage(c, "%s is a directory%s", path,
		strcmp(f->name, "perf") != 0 ? ": give one file"
					     : ", as perf record --threads writes it: "
					       "record without --threads");
}

/* Opens one more; it must not be the file that the trace is written to. */
static int import_open(struct cmd *c, struct inputs *all, const struct format_import_desc *f,
	const char *path, const char *to, bool is_found)
{
	struct stat st, there;
	struct input in = {.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
	if (in.fd < 0 || fstat(in.fd, &st)) {
		enum base_status s = base_fail_errno(&c->err, errno, "%s", path);
		if (in.fd >= 0)
			close(in.fd);
		return cmd_fail(c, s);
	}
	int exit_status = CMD_OK;
	bool is_path = f->flags & FORMAT_IMPORT_PATH;
	if (!stat(to, &there) && there.st_dev == st.st_dev && there.st_ino == st.st_ino)
		exit_status = cmd_usage(c, "%s would overwrite what is imported; use -o", to);
	else if (!S_ISREG(st.st_mode) && !(is_path && S_ISDIR(st.st_mode)))
		exit_status = import_no_file(c, f, path, &st);
	else if (base_grow(&all->in, &all->in_capacity, all->nr + 1, sizeof *all->in) != BASE_OK ||
		 base_grow(&all->source, &all->source_capacity, all->nr + 1, sizeof *all->source) !=
			 BASE_OK)
		exit_status =
			cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "out of memory for files"));
	if (exit_status != CMD_OK) {
		close(in.fd);
		return exit_status;
	}
	BASE_ASSERT(all->source && all->in);
	all->source[all->nr] = (struct format_source){.read = cmd_import_read_at,
		.size_bytes = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0,
		.name = path,
		.path = is_path ? path : NULL,
		.is_found = is_found};
	all->in[all->nr++] = in;
	return CMD_OK;
}

static bool import_is_json(const char *name)
{
	static const char *const ending[] = {".json", ".json.gz", ".json.zst"};
	size_t length = strlen(name);
	for (size_t i = 0; i < BASE_COUNT(ending); i++) {
		size_t n = strlen(ending[i]);
		if (length > n && !strcmp(name + length - n, ending[i]))
			return true;
	}
	return false;
}

struct import_names { /* paths, in the inputs' arena */
	char **name;
	size_t nr, capacity;
};

static int import_by_name(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;
	return strverscmp(*x, *y);
}

static enum base_status import_list(
	struct cmd *c, struct inputs *all, const char *path, struct import_names *ret)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;
	enum base_status s = BASE_OK;
	if (!directory)
		return base_fail_errno(&c->err, errno, "%s", path);
	while (s == BASE_OK && (entry = readdir(directory))) {
		size_t size_bytes = strlen(path) + strlen(entry->d_name) + 2;
		if (!import_is_json(entry->d_name))
			continue;
		char *name = base_arena_alloc(all->names, size_bytes);
		s = name ? base_grow(&ret->name, &ret->capacity, ret->nr + 1, sizeof *ret->name)
			 : BASE_ERR_NOMEM;
		if (s != BASE_OK) {
			s = base_fail(&c->err, s, "out of memory for names");
			break;
		}
		base_format(name, size_bytes, "%s/%s", path, entry->d_name);
		ret->name[ret->nr++] = name;
	}
	closedir(directory);
	return s;
}

/* The files of a directory that may be of the format, by name: those of one job. */
static int import_open_directory(struct cmd *c, struct inputs *all,
	const struct format_import_desc *f, const char *path, const char *to)
{
	struct import_names names = {0};
	enum base_status s = import_list(c, all, path, &names);
	int exit_status = s == BASE_OK ? CMD_OK : cmd_fail(c, s);
	if (s == BASE_OK && !names.nr)
		exit_status = cmd_usage(c, "%s has no .json, .json.gz or .json.zst in it", path);
	if (names.nr)
		qsort(names.name, names.nr, sizeof *names.name, import_by_name);
	for (size_t i = 0; i < names.nr && exit_status == CMD_OK; i++)
		exit_status = import_open(c, all, f, names.name[i], to, true);
	base_free(names.name);
	return exit_status;
}

static int import_open_all(
	struct cmd *c, struct inputs *all, const struct format_import_desc *f, const char *to)
{
	int exit_status = CMD_OK;
	for (size_t i = 1; i < c->nr_operands && exit_status == CMD_OK; i++) {
		const char *path = c->operand[i];
		struct stat st;
		bool is_directory =
			f->flags & FORMAT_IMPORT_MANY && !stat(path, &st) && S_ISDIR(st.st_mode);
		exit_status = is_directory ? import_open_directory(c, all, f, path, to)
					   : import_open(c, all, f, path, to, false);
	}
	for (size_t i = 0; i < all->nr; i++) { /* they stay where they are now */
		all->source[i].ctx = &all->in[i];
		all->source[i].next = i + 1 < all->nr ? &all->source[i + 1] : NULL;
	}
	return exit_status;
}

int cmd_run_import(struct cmd *c)
{
	char buf[CMD_PATH_MAX];
	uint64_t tick_ps = 1; /* gem5's own */
	const struct format_import_desc *f = which_format(c);
	if (!f || !cmd_value_count(c, "tick-ps", &tick_ps))
		return CMD_USAGE;
	if (!tick_ps || tick_ps > TICK_PS_MAX)
		return cmd_usage(c, "--tick-ps: from 1 to %d", TICK_PS_MAX);
	const char *path = output_path(c, c->operand[1], buf);
	if (!path)
		return CMD_USAGE;
	struct inputs all = {.names = base_arena_new(0)};
	int exit_status =
		all.names ? import_open_all(c, &all, f, path)
			  : cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "out of memory"));
	if (exit_status == CMD_OK) {
		cmd_progress_reset(c);
		exit_status = import_file(c, f, all.source, tick_ps, path);
	}
	for (size_t i = 0; i < all.nr; i++)
		close(all.in[i].fd);
	base_free(all.in);
	base_free(all.source);
	base_arena_free(all.names);
	return exit_status;
}
