/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_record.c - `longpole record`, and `longpole PROG ARGS`. */
#include "cmd/record/record.h"
#include "cmd/record/rank.h"
#include "cmd/memory/streams.h"
#include "os/proc.h"
#include "session/qemu.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIXED_WORDS = 8 };

struct record_words { /* a command line */
	char text[4096];
	char *argv[256];
};

#define X(name, text) #name " "
#define RECORD_MODES  SESSION_LOCK_MODES(X)
#define RECORD_OPTIONS                                                                             \
	{"output", 'o', "FILE", "@file",                                                           \
		"the trace to write (default: longpole-PROG.lpt); %r in it is the MPI rank"},      \
		{"sample-hz", 0, "HZ", NULL,                                                       \
			"samples a second of each running thread; 0: none (default 999, fewer "    \
			"where they would take over 1.5 % of a processor; without a program "      \
			"499)"},                                                                   \
		{"locks", 0, "MODE", RECORD_MODES,                                                 \
			"how locks are recorded. stamps (default): each operation with its "       \
			"time; full: also inside lock and unlock functions; sampled: exact "       \
			"counts, a sample of the holds timed; count: exact counts"},               \
		{"no-compress", 0, NULL, NULL,                                                     \
			"store the trace as it is: less to do beside the program, a larger file"}, \
		{"no-switches", 0, NULL, NULL,                                                     \
			"do not record when threads get and lose processors"},                     \
		{"heap", 0, NULL, NULL,                                                            \
			"note allocations, and name locks in allocated memory after them"},        \
		{"stack-depth", 0, "N", NULL, "callers kept of each wait; 0: none (default 16)"},  \
		{"buffer", 0, "SIZE", NULL,                                                        \
			"memory between the program and the trace (default: a 16th of the "        \
			"memory, 1G at most, used as needed)"},                                    \
		{"level", 0, "N", "1 2 3",                                                         \
			"1: calls; 2: also the memory accesses, 3: also the instructions of "      \
			"programs that "                                                           \
			"`longpole cc` built, or of others with --recorder (default 1)"},          \
		{"recorder", 0, "NAME", CMD_RECORDERS,                                             \
			"of level 2 and 3. rewritten (default): what `longpole cc` built; "        \
			"valgrind: any program with its libraries, one thread at a time; qemu: "   \
			"64-bit ARM and RISC-V programs (default of these)"},                      \
		{"pid", 'p', "PID", NULL,                                                          \
			"in place of PROG: a process that runs already, which goes on "            \
			"afterwards"},                                                             \
	{                                                                                          \
		"wait-all", 0, NULL, NULL,                                                         \
			"go on until all recorded processes have ended, not only the first"        \
	}

static const struct cmd_option record_option[] = {
	RECORD_OPTIONS,
	{"into", 0, "ANALYSIS", "ciat cdat",
		"no trace: analyse meanwhile, as longpole ciat -- PROG does"},
	{"system", 0, NULL, NULL,
		"record all threads of the machine: who ran where, who woke whom (needs root)"},
	{"sched", 0, NULL, NULL, "with --system: switches and wakes only (default)"},
	{"full", 0, NULL, NULL,
		"with --system: system calls, interrupts, sockets, packets, disks, timers, too"},
	{"for", 0, "TIME", NULL,
		"with --pid, or --system without PROG: how long; a mere number is of seconds "
		"(default: to Ctrl-C)"},
	{"source", 0, "NAME", "bpf perf",
		"with --system: where the kernel's events come from (default: the best that "
		"works)"},
};
static const struct cmd_option default_option[] = {
	RECORD_OPTIONS,
	{"full", 0, NULL, NULL, "every state and fix of 1 % of the path and more"},
	{"for", 0, "TIME", NULL, "with --pid: how long, as of longpole record"},
};
#undef X

const struct cmd_details cmd_details_record = {
	.usage = "[OPTIONS] PROG [ARG...]\n-p PID [OPTIONS]\n--system [OPTIONS] [PROG [ARG...]]",
	.about =
		"Runs PROG, unchanged, and records who waits for whom. With --system, records all "
		"threads of the machine, with or without PROG. The exit status is PROG's; 125: "
		"longpole failed, 126: PROG cannot be executed, 127: PROG was not found. The first "
		"Ctrl-C goes to the program, the second ends the recording; the trace is complete "
		"in both cases.",
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
	.summary =
		"find what decides how long a parallel program takes, and predict what a fix would "
		"buy",
	.group = CMD_GROUP_RECORD,
	.flags = CMD_PROGRAM | CMD_PROGRESS | CMD_JSON | CMD_MEMORY,
	.details = &default_details,
	.run = run_default,
};

static void cmd_record_progress(void *ctx, const struct session_progress *p)
{
	struct base_str s = {0};
	base_str_add(&s, "recording ");
	base_str_add_ns(&s, p->elapsed_ns);
	base_str_add(&s, ", ");
	base_str_add_counted(&s, "%s {record|records}, ", p->records);
	base_str_add_size(&s, p->trace_bytes);
	base_str_addf(&s, ", buffer %u %% full", p->buffer_percent);
	cmd_progress_text(ctx, base_str_text(&s));
	base_str_fini(&s);
}

enum session_locks cmd_record_locks(const char *mode)
{
	static const char *const name[] = {
#define X(name, text) #name,
		SESSION_LOCK_MODES(X)
#undef X
	};
	for (size_t i = 0; mode && i < BASE_COUNT(name); i++)
		if (!strcmp(mode, name[i]))
			return (enum session_locks)i;
	return SESSION_LOCKS_stamps;
}

enum session_emulator cmd_record_emulator(const char *recorder, const char *program)
{
	static const char *const name[] = {[SESSION_EMULATOR_NONE] = "rewritten",
		[SESSION_EMULATOR_VALGRIND] = "valgrind",
		[SESSION_EMULATOR_QEMU] = "qemu"};
	for (size_t i = 0; recorder && i < BASE_COUNT(name); i++)
		if (!strcmp(recorder, name[i]))
			return (enum session_emulator)i;
	return session_qemu_knows(program) ? SESSION_EMULATOR_QEMU : SESSION_EMULATOR_NONE;
}

/* Counting is for those who want to pay little: the kernel's events would be most of its cost. */
void cmd_record_mode(struct session_options *o, enum session_locks locks)
{
	o->locks = locks;
	o->measure_floor = true;
	o->sample_hz = session_counts(o) ? 0 : o->sample_hz;
	o->switches = !session_counts(o);
}

static bool cmd_record_options(struct cmd *c, struct session_options *o)
{
	enum { BUFFER_LEAST_BYTES = 1 << 20 };
	uint64_t depth = o->stack_depth;
	if (cmd_given(c, "locks"))
		cmd_record_mode(o, cmd_record_locks(cmd_value(c, "locks")));
	if (!cmd_value_count(c, "sample-hz", &o->sample_hz) ||
		!cmd_value_count(c, "stack-depth", &depth) ||
		!cmd_value_size(c, "buffer", &o->buffer_bytes))
		return false;
	if (cmd_given(c, "buffer") && o->buffer_bytes < BUFFER_LEAST_BYTES) {
		cmd_usage(c, "--buffer: at least 1M");
		return false;
	}
	if (depth > SESSION_STACK_DEPTH) {
		cmd_usage(c, "--stack-depth: at most %d", SESSION_STACK_DEPTH);
		return false;
	}
	o->samples_exact = cmd_given(c, "sample-hz");
	o->stack_depth = (unsigned)depth;
	o->heap = cmd_given(c, "heap");
	uint64_t level = 1;
	if (!cmd_value_count(c, "level", &level))
		return false;
	o->level = (unsigned)level;
	const char *recorder = cmd_value(c, "recorder");
	if (recorder && strcmp(recorder, "rewritten") != 0 && level < 2) {
		cmd_usage(c, "--recorder=%s goes with --level 2 or 3", recorder);
		return false;
	}
	if (level >= 2)
		o->emulator = cmd_record_emulator(recorder, c->nr_operands ? c->operand[0] : "");
	if (o->emulator) { /* these would be of the emulator, not of the program */
		o->sample_hz = 0;
		o->switches = false;
	}
	o->switches &= !cmd_given(c, "no-switches");
	o->plain = cmd_given(c, "no-compress");
	o->wait_all = cmd_given(c, "wait-all");
	return true;
}

static bool how_long(struct cmd *c, uint64_t *ret_ns)
{
	enum { NS_PER_S = 1000000000, SECONDS_MAX = 1000000 };
	const char *text = cmd_value(c, "for");
	uint64_t seconds = 0;
	if (!text)
		return true;
	if (text[strspn(text, "0123456789")]) {
		if (!cmd_value_time(c, "for", ret_ns))
			return false;
	} else if (!cmd_value_count(c, "for", &seconds)) {
		return false;
	} else {
		*ret_ns = (seconds <= SECONDS_MAX ? seconds : SECONDS_MAX + 1) * (uint64_t)NS_PER_S;
	}
	if (!c->nr_operands && !cmd_given(c, "pid") && !cmd_given(c, "system")) {
		cmd_usage(c, "--for goes with --pid or --system");
		return false;
	}
	if (!c->nr_operands && *ret_ns && *ret_ns <= (uint64_t)SECONDS_MAX * NS_PER_S)
		return true;
	cmd_usage(c, c->nr_operands ? "--for: the program says when it ends"
				    : "--for: up to 1000000 seconds, and not 0");
	return false;
}

static bool system_options(struct cmd *c, struct session_options *o)
{
	bool system = cmd_given(c, "system");
	if (!system && (cmd_given(c, "sched") || cmd_given(c, "full") || cmd_given(c, "source"))) {
		cmd_usage(c, "--sched, --full and --source need --system");
		return false;
	}
	if (cmd_given(c, "sched") && cmd_given(c, "full")) {
		cmd_usage(c, "--sched or --full, not both");
		return false;
	}
	if (cmd_given(c, "buffer"))
		o->system_buffer_bytes = o->buffer_bytes;
	o->system_backend = cmd_value(c, "source");
	/* A sample takes 5 to 10 us, on each processor; of a machine there are more than of a
	 * program. */
	if (system && !c->nr_operands && !cmd_given(c, "sample-hz"))
		o->sample_hz = SESSION_SYSTEM_SAMPLE_HZ;
	if (system)
		o->system = cmd_given(c, "full") ? SYSTEM_LEVEL_full : SYSTEM_LEVEL_sched;
	return true;
}

/* The nr-th name that a trace of this program may have; false: the program's name makes none. */
static bool record_make_name(const char *program, unsigned nr, char buf[CMD_PATH_MAX])
{
	const char *slash = strrchr(program, '/');
	const char *name = slash && slash[1] ? slash + 1 : program;
	struct base_str s = {0};
	uint32_t rank;
	base_str_addf(&s, "longpole-%s", name);
	if (cmd_job_rank(&rank))
		base_str_addf(&s, ".rank-%u", rank);
	if (nr > 1)
		base_str_addf(&s, ".%u", nr);
	base_str_add(&s, ".lpt");
	const bool fits = !s.failed && s.length < 255 && !strchr(name, '/');
	if (fits)
		memcpy(buf, base_str_text(&s), s.length + 1);
	base_str_fini(&s);
	return fits;
}

/* --output, with the rank in it where that says %r. NULL: a message was printed. */
static const char *record_given_path(struct cmd *c, const char *given, char buf[CMD_PATH_MAX])
{
	const char *mark = strstr(given, "%r");
	uint32_t rank;
	if (!mark)
		return given;
	if (!cmd_job_rank(&rank)) {
		cmd_usage(c,
			"-o %s: %%r is the rank in an MPI job, and this is none of several ranks "
			"(as mpirun -n 4 longpole record -o %s PROG makes them)",
			given, given);
		return NULL;
	}
	int n = snprintf(buf, CMD_PATH_MAX, "%.*s%u%s", (int)(mark - given), given, rank, mark + 2);
	if (n > 0 && n < CMD_PATH_MAX)
		return buf;
	cmd_usage(c, "-o: the name is too long");
	return NULL;
}

/* --output, else longpole-PROG.lpt in the working directory, of a rank longpole-PROG.rank-3.lpt;
 * what is there stays, and the next one is longpole-PROG.2.lpt. NULL: a message was printed. */
static const char *trace_path(struct cmd *c, const char *program, char buf[CMD_PATH_MAX])
{
	enum { NAMES_MAX = 100000 };
	const char *given = cmd_value(c, "output");
	if (given)
		return record_given_path(c, given, buf);
	for (unsigned nr = 1; nr <= NAMES_MAX; nr++) {
		if (!record_make_name(program, nr, buf)) {
			cmd_usage(c, "no file name can be made of '%s'; give one with -o", program);
			return NULL;
		}
		/* taken at once: another recording may look for a name, too */
		int fd = open(buf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
		if (fd >= 0 || errno != EEXIST)
			return buf; /* if not because it is free, its opening says why */
	}
	cmd_usage(c, "%s and all before it exist; give a name with -o", buf);
	return NULL;
}

/* The name that was taken for a recording that did not begin. */
static void record_give_name_back(struct cmd *c, const char *path)
{
	struct stat st;
	if (!cmd_value(c, "output") && !lstat(path, &st) && S_ISREG(st.st_mode) && !st.st_size)
		unlink(path);
}

static void memory_summary(struct cmd *c, const struct session_result *r)
{
	struct base_str s = {0};
	base_str_add(&s, "memory streams");
	if (r->memory_level)
		base_str_addf(&s, " of level %u", r->memory_level);
	base_str_add(&s, ": ");
	base_str_add_counted(&s, "%s {thread|threads}, ", r->memory_threads);
	base_str_add_counted(&s, "%s {word|words} in ", r->memory_words);
	base_str_add_size(&s, r->memory_chunk_bytes);
	base_str_add(&s, " before compression; ");
	if (r->memory_words_left) {
		base_str_add(&s, "the recorder encoded ");
		base_str_add_count(&s, r->memory_words_left);
		base_str_add(&s, " of them, ");
	}
	base_str_add(&s, "the threads spent ");
	base_str_add_ns(&s, r->memory_encode_ns);
	base_str_add(&s, " of the clock encoding, and ");
	base_str_add_ns(&s, r->memory_wait_ns);
	base_str_add(&s, " of it waiting for the recorder");
	cmd_note(c, "%s", base_str_text(&s));
	base_str_fini(&s);
}

/* Which back-end it was, and why not a better one. */
static void system_summary(struct cmd *c, const struct session_result *r)
{
	for (unsigned i = 0; i < r->nr_attempts; i++) {
		const struct system_attempt *a = &r->attempt[i];
		if (a->refusal != SYSTEM_REFUSAL_none)
			cmd_note(c, "kernel events: %s not used: %s (%s)", a->backend->name,
				system_refusal_text(a->refusal), a->why);
		else
			cmd_note(c, "kernel events: %llu through %s, %llu {switch|switches}",
				(unsigned long long)r->kernel_events, a->backend->name,
				(unsigned long long)r->kernel_switches);
	}
}

static void attach_summary(struct cmd *c, const struct session_attached *a)
{
	struct base_str s = {0};
	base_str_addf(&s, "process %d goes on; attaching stopped one of its threads for ", a->pid);
	base_str_add_ns(&s, a->stopped_ns);
	base_str_add(&s, "; the library stays in it, unused");
	cmd_note(c, "%s", base_str_text(&s));
	if (a->unseen)
		cmd_note(c,
			"its waits in %s are not seen as such: only libc's calls are, of a process "
			"that ran already; for more start it with longpole record",
			a->unseen);
	base_str_fini(&s);
}

static void summary(struct cmd *c, const struct session_options *o, const struct session_result *r,
	const char *path)
{
	struct base_str s = {0};
	base_str_addf(&s, "recorded %s: ", path);
	base_str_add_ns(&s, r->elapsed_ns);
	base_str_add(&s, ", ");
	base_str_add_counted(&s, "%s {record|records}, ", r->records);
	base_str_add_size(&s, r->trace_bytes);
	if (session_counts(o)) /* the few records say nothing of it */
		base_str_add(&s, "; counting took some nanoseconds each time");
	else if (r->overhead_share > 0)
		base_str_addf(&s, "; recording was %s%.1f %% of the program's processor time",
			r->overhead_share < 0.001 ? "less than " : "about ",
			r->overhead_share < 0.001 ? 0.1 : fmin(r->overhead_share, 1) * 100);
	cmd_note(c, "%s", base_str_text(&s));
	if (o->attach)
		attach_summary(c, o->attach);
	if (r->memory_images)
		memory_summary(c, r);
	if (r->nr_attempts)
		system_summary(c, r);
	if (*r->no_system_samples_why)
		cmd_note(c, "no samples of other programs: %s", r->no_system_samples_why);
	if (*r->no_samples_why && !session_counts(o))
		cmd_note(c, "no samples: %s", r->no_samples_why);
	if (*r->no_kernel_time_why)
		cmd_note(c, "no time inside of system calls: %s", r->no_kernel_time_why);
	if (*r->no_kernel_events_why)
		cmd_note(c, "events are counted in user space only: %s", r->no_kernel_events_why);
	if (*r->no_switches_why && !session_counts(o))
		cmd_note(c, "no processor switches: %s", r->no_switches_why);
	if (*r->unnamed_why)
		cmd_note(c, "%s", r->unnamed_why);
	if (*r->disk_full_why)
		cmd_note(c, "the trace ends early: %s", r->disk_full_why);
	for (unsigned d = 0; d < TRACE_DIAG_NR; d++) {
		const struct trace_diag_desc *desc = trace_diag_describe((enum trace_diag)d);
		if (!r->count[d] || desc->severity == TRACE_SEVERITY_info)
			continue;
		base_str_reset(&s);
		base_str_add_counted(&s, desc->sentence, r->count[d]);
		cmd_note(c, "caveat: %s (%s)", base_str_text(&s), desc->name);
	}
	base_str_fini(&s);
}

/* Of a trace that cannot be made: its place was nobody's wish. */
static void say_where_else(struct cmd *c, const char *path)
{
	bool is_record = !*c->spec->name || !strcmp(c->spec->name, "record");
	uint32_t rank;
	if (c->err.sys_errno == EBUSY && cmd_job_rank(&rank))
		(void)base_cause(&c->err, c->err.status,
			"each rank of a job needs a file of its own: put %%r, the rank, into the "
			"name, as in -o 'app.%%r.lpt'");
	if (!c->err.sys_errno || cmd_value(c, "output") ||
		strncmp(c->err.cause[0], path, strlen(path)) != 0)
		return;
	(void)base_cause(&c->err, c->err.status,
		is_record ? "the trace goes to the working directory, or where -o says: -o /tmp/%s"
			  : "the trace goes to the working directory: go to another one, or "
			    "record with 'longpole record -o /tmp/%s', and read that",
		path);
}

/* Runs o->argv into path, with progress and a summary. The program's exit status, or ours after a
 * message: then *ret is not BASE_OK. */
static int record_program(
	struct cmd *c, struct session_options *o, const char *path, enum base_status *ret)
{
	struct session_result r = {.wait_status = -1, .exit_code = SESSION_EXIT_OURS};
	o->output_path = path;
	o->tool = "longpole " LONGPOLE_VERSION;
	o->progress = cmd_record_progress;
	o->progress_ctx = c;
	bool is_go = cmd_record_is_go(o);
	cmd_progress_reset(c);
	*ret = is_go ? cmd_record_go(c, o, path, &r.exit_code) : session_run(o, &r, &c->err);
	cmd_progress_clear(c);
	if (*ret != BASE_OK) {
		record_give_name_back(c, path);
		say_where_else(c, path);
		cmd_fail(c, *ret);
		return r.exit_code ? r.exit_code : SESSION_EXIT_OURS;
	}
	if (!is_go)
		summary(c, o, &r, path);
	cmd_recover_hint(c);
	enum base_status streams = o->level >= 2 ? cmd_streams_recorded(&r, &c->err) : BASE_OK;
	if (streams != BASE_OK) {
		cmd_fail(c, streams);
		return SESSION_EXIT_OURS;
	}
	return r.exit_code;
}

int cmd_open_or_record(struct cmd *c, struct session_options *o, struct cmd_recorded *ret,
	struct report_run *ret_run)
{
	*ret = (struct cmd_recorded){.program_exit = SESSION_EXIT_OURS};
	int exit_status;
	enum base_status s;
	if (!c->nr_operands || strcmp(c->operand[0], "--") != 0) {
		exit_status = cmd_open_operand(c, ret_run);
		ret->has_trace = exit_status == CMD_OK;
		return exit_status;
	}
	ret->is_program = true;
	if (c->nr_operands < 2) {
		cmd_usage(c, "no program after --");
		return SESSION_EXIT_OURS;
	}
	const char *path = trace_path(c, c->operand[1], ret->path);
	if (!path)
		return SESSION_EXIT_OURS;
	o->argv = c->operand + 1;
	ret->program_exit = record_program(c, o, path, &s);
	if (s != BASE_OK)
		return ret->program_exit;
	c->answer_on_stderr = true; /* standard output is the program's */
	cmd_check_trace(c, path);
	exit_status = cmd_open(c, path, ret_run);
	ret->has_trace = exit_status == CMD_OK;
	return cmd_recorded_exit(ret, exit_status);
}

int cmd_recorded_exit(const struct cmd_recorded *r, int analysed)
{
	if (!r->is_program)
		return analysed;
	return r->program_exit ? r->program_exit : analysed == CMD_OK ? 0 : SESSION_EXIT_OURS;
}

/* What a process was started with; *words: its memory, an array's and the texts'. */
static char *const *record_command_of(pid_t pid, struct record_words *w)
{
	ssize_t n = os_proc_read(pid, "cmdline", w->text, sizeof w->text);
	size_t nr = 0;
	if (n <= 0) { /* it has overwritten it, or is not there: inject_check() says so */
		n = os_proc_read(pid, "comm", w->text, sizeof w->text);
		w->text[strcspn(w->text, "\n")] = '\0';
	}
	for (ssize_t i = 0; i < n && nr + 1 < BASE_COUNT(w->argv);
		i += (ssize_t)strlen(w->text + i) + 1)
		if (w->text[i]) /* (a title of the program's own leaves empty ones) */
			w->argv[nr++] = w->text + i;
	if (!nr || !*w->argv[0])
		w->argv[0] = (char *)(uintptr_t) "process";
	w->argv[nr ? nr : 1] = NULL;
	return w->argv;
}

static bool record_takes_pid(struct cmd *c, const struct session_options *o, uint64_t *ret_pid)
{
	const char *why = c->nr_operands                   ? "-p: a process, or a program, not both"
			  : o->level >= 2                  ? "-p: --level 1 only"
			  : session_counts(o)              ? "-p: --locks=stamps or full only"
			  : o->heap                        ? "-p: --heap needs the program's start"
			  : o->system != SYSTEM_LEVEL_none ? "-p goes without --system"
			  : o->wait_all                    ? "-p goes without --wait-all"
							   : NULL;
	if (why)
		cmd_usage(c, "%s", why);
	return !why && cmd_value_count(c, "pid", ret_pid);
}

/* Ours after a message, or 0: the process goes on. */
static int record_running(struct cmd *c, const struct session_options *given,
	char buf[CMD_PATH_MAX], const char **ret_path)
{
	struct session_options o = *given;
	uint64_t pid = 0;
	struct record_words words;
	enum base_status status;
	if (!record_takes_pid(c, &o, &pid))
		return SESSION_EXIT_OURS;
	if (!pid || pid > INT32_MAX) {
		cmd_usage(c, "-p: '%s' is no process", cmd_value(c, "pid"));
		return SESSION_EXIT_OURS;
	}
	struct session_attached attached = {.pid = (int)pid};
	o.attach = &attached;
	o.argv = record_command_of((pid_t)pid, &words);
	const char *path = trace_path(c, o.argv[0], buf);
	if (!path)
		return SESSION_EXIT_OURS;
	int exit_code = record_program(c, &o, path, &status);
	if (status == BASE_OK)
		*ret_path = path;
	return exit_code;
}

/* The program's exit status, or ours after a message. *ret_path NULL: there is no trace. */
static int cmd_record_record(
	struct cmd *c, bool can_system, char buf[CMD_PATH_MAX], const char **ret_path)
{
	struct session_options o = session_options_default();
	*ret_path = NULL;
	if (!cmd_record_options(c, &o) || (can_system && !system_options(c, &o)) ||
		!how_long(c, &o.for_ns))
		return SESSION_EXIT_OURS;
	if (cmd_given(c, "pid"))
		return record_running(c, &o, buf, ret_path);
	if (!c->nr_operands && o.system == SYSTEM_LEVEL_none) {
		cmd_usage(c, "no program given");
		return SESSION_EXIT_OURS;
	}
	const char *path = trace_path(c, c->nr_operands ? c->operand[0] : "system", buf);
	if (!path)
		return SESSION_EXIT_OURS;
	o.argv = c->nr_operands ? c->operand : NULL; /* NULL-terminated: it ends with argv */
	enum base_status s;
	int exit_code = record_program(c, &o, path, &s);
	if (s == BASE_OK)
		*ret_path = path;
	return exit_code;
}

/* Becomes `longpole ciat -- PROG`. */
static int analyse_meanwhile(struct cmd *c)
{
	char level[32], recorder[64];
	const char *of_recorder = cmd_value(c, "recorder"), *of_level = cmd_value(c, "level");
	size_t nr = 0;
	if (!c->nr_operands)
		return cmd_usage(c, "no program given");
	char **argv = base_alloc((c->nr_operands + FIXED_WORDS) * sizeof *argv);
	if (!argv)
		return cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "no memory for a command"));
	argv[nr++] = (char *)(uintptr_t) "longpole";
	argv[nr++] = (char *)(uintptr_t)cmd_value(c, "into");
	snprintf(level, sizeof level, "--level=%s", of_level ? of_level : "3");
	argv[nr++] = level;
	snprintf(recorder, sizeof recorder, "--recorder=%s",
		of_recorder ? of_recorder : "rewritten");
	argv[nr++] = recorder;
	argv[nr++] = (char *)(uintptr_t) "--";
	for (size_t i = 0; i < c->nr_operands; i++)
		argv[nr++] = c->operand[i];
	execv("/proc/self/exe", argv);
	base_free(argv);
	return cmd_fail(
		c, base_fail_errno(&c->err, errno, "cannot run longpole %s", cmd_value(c, "into")));
}

int cmd_run_record(struct cmd *c)
{
	if (cmd_given(c, "into"))
		return analyse_meanwhile(c);
	char buf[CMD_PATH_MAX];
	const char *path;
	return cmd_record_record(c, true, buf, &path);
}

/* Its exit status is the program's: this is a recording, and scripts go on as if longpole were not
 * there. */
static int run_default(struct cmd *c)
{
	char buf[CMD_PATH_MAX];
	const char *path;
	int exit_status = cmd_record_record(c, false, buf, &path);
	if (!path)
		return exit_status;
	c->answer_on_stderr =
		true; /* `longpole gzip -c f >f.gz` must write what gzip alone writes */
	int analysed = cmd_report_trace(c, path);
	return exit_status ? exit_status : analysed == CMD_OK ? 0 : SESSION_EXIT_OURS;
}
