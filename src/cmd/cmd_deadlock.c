/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_deadlock.c - `longpole deadlock`: who of the running programs waits for whom, for ever. */
#include "cmd/record/record.h"

#include "config.h"
#include "deadlock/deadlock.h"
#include "os/family.h"
#include "report/locks/order.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PIDS_MAX = 64, IDLE_MAX = 64 };
#define MS_NS UINT64_C(1000000)

static const struct cmd_option option[] = {
	{"pid", 'p', "PID", NULL, "look at this process and its descendants; may be repeated"},
	{"all", 'a', NULL, NULL, "look at all processes that may be looked at"},
	{"core", 'c', "FILE", "@file", "look at a core file: owners of locks only"},
	{"watch", 'w', NULL, NULL, "go on looking, and tell each deadlock once, until interrupted"},
	{"interval", 'i', "TIME", NULL, "with --watch: how long to nap between looks (default 1s)"},
	{"threshold", 't', "TIME", NULL,
		"with --watch: who has slept for that long is suspicious (default 5s)"},
	{"share", 0, "PERCENT", NULL,
		"with --watch: the most that looks may cost, of one processor (default 0.1)"},
	{"count", 'n', "N", NULL, "with --watch: stop after N deadlocks"},
	{"potential", 0, NULL, NULL,
		"deadlocks that did not happen but could: locks taken in opposite order, of a "
		"recording or of PROG"},
	{"output", 'o', "FILE", "@file",
		"with --potential -- PROG: the trace to write (default: longpole-PROG.lpt)"},
	{"settle", 0, "TIME", NULL, "who has not run for that long is suspicious (default 100ms)"},
	{"idle", 0, "NAME", NULL,
		"processes of this name (a pattern) are idle by profession; may be repeated"},
	{"spinners", 0, NULL, NULL,
		"threads that run, too: those that spin for what never comes (stops each for "
		"microseconds)"},
	{"suspicious", 0, NULL, NULL,
		"also tell circles that somebody alive may still break, who was not seen to"},
	{"static", 0, NULL, NULL, "do not run copies ahead: only who has what, and who could"},
	{"no-bpf", 0, NULL, NULL, "read /proc only"},
	{"dot", 0, NULL, NULL, "the resource graph in graphviz's DOT language"},
	{"svg", 0, NULL, NULL, "the resource graph as a picture (needs graphviz)"},
	{"sarif", 0, NULL, NULL, "the findings as SARIF 2.1.0"},
};

const struct cmd_details cmd_details_deadlock = {
	.usage = "[OPTIONS] --pid PID | --all | --core FILE | -- PROG... | --potential TRACE",
	.about =
		"Looks at programs that run, without stopping them: which threads sleep, what each "
		"waits for, who has it, and who could still give it. It knows locks, conditions, "
		"semaphores, pipes, sockets, children, threads and file locks. Where nobody can "
		"give it, that is a deadlock, and the circle is told with source lines. With PROG: "
		"runs it, and looks whenever its threads sleep. Exit status 1: found.",
	.gate = "a deadlock was found",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole deadlock --pid $(pidof server)",
		"longpole deadlock --all --watch --threshold=60s",
		"longpole deadlock --json -- ./server --threads 8 | jq -r .result.finding",
		"longpole deadlock --potential -- make test"},
};

struct run {
	struct cmd *c;
	struct deadlock_monitor *monitor;
	struct deadlock_look_options o;
	pid_t pid[PIDS_MAX];
	const char *idle[IDLE_MAX];
	uint64_t settle_ns;
};

static void cmd_deadlock_nap(uint64_t ns)
{
	struct timespec t = {
		.tv_sec = (time_t)(ns / (1000 * MS_NS)), .tv_nsec = (long)(ns % (1000 * MS_NS))};
	while (nanosleep(&t, &t) != 0 && errno == EINTR)
		;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int write_picture(struct cmd *c, const struct deadlock_answer *a, bool svg)
{
	struct base_str dot = {0}, picture = {0};
	deadlock_dot(&dot, a);
	if (!svg)
		return cmd_write(c, &dot);
	enum base_status s = cmd_layout(&dot, "svg", &picture, &c->err);
	base_str_fini(&dot);
	if (s == BASE_OK)
		return cmd_write(c, &picture);
	base_str_fini(&picture);
	return cmd_fail(c, s);
}

static int write_answer(struct cmd *c, const struct deadlock_answer *a)
{
	struct base_str text = {0};
	if (cmd_given(c, "sarif"))
		return cmd_write_json(c, deadlock_sarif(a, LONGPOLE_VERSION));
	if (cmd_given(c, "json"))
		return cmd_write_json(c, deadlock_json(a, "longpole " LONGPOLE_VERSION));
	if (cmd_given(c, "dot") || cmd_given(c, "svg"))
		return write_picture(c, a, cmd_given(c, "svg"));
	deadlock_text(&text, a);
	if (a->nr_findings)
		base_str_add(
			&text, "NEXT\n  longpole deadlock --svg draws it; --json has all stacks\n");
	return cmd_write(c, &text);
}

/* ---- looking --------------------------------------------------------------------------------- */

static enum base_status cmd_deadlock_look(struct run *r, struct deadlock_answer **ret)
{
	struct cmd *c = r->c;
	enum base_status s = deadlock_monitor_pass(r->monitor, cmd_now_ns(), &c->err);
	r->o.now_ns = cmd_now_ns();
	*ret = NULL;
	return s == BASE_OK ? deadlock_look(r->monitor, &r->o, ret, &c->err) : s;
}

static int look_once(struct run *r)
{
	struct deadlock_answer *a;
	enum base_status s = deadlock_monitor_pass(r->monitor, cmd_now_ns(), &r->c->err);
	cmd_deadlock_nap(r->settle_ns);
	if (s == BASE_OK)
		s = cmd_deadlock_look(r, &a);
	if (s != BASE_OK)
		return cmd_fail(r->c, s);
	int exit_status = write_answer(r->c, a);
	/* the most certain comes first */
	if (exit_status == CMD_OK && a->nr_findings &&
		a->finding[0].sure != DEADLOCK_UNKNOWN_OUTCOME)
		exit_status = CMD_GATE;
	deadlock_answer_free(a);
	return exit_status;
}

static int cmd_deadlock_look_at_core(struct cmd *c, const char *path)
{
	struct deadlock_answer *a;
	enum base_status s = deadlock_look_core(path, &a, &c->err);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	int exit_status = write_answer(c, a);
	if (exit_status == CMD_OK && a->nr_findings)
		exit_status = CMD_GATE;
	deadlock_answer_free(a);
	return exit_status;
}

/* ---- a program of our own -------------------------------------------------------------------- */

/* The program first, and orphans of it: descendants of others are looked at with them. */
static void find_family(struct run *r, const struct os_family *f)
{
	size_t nr = 0, nr_children = os_family_children(f, r->pid + 1, PIDS_MAX - 1);
	r->pid[nr++] = f->program;
	for (size_t i = 1; i <= nr_children; i++)
		if (r->pid[i] != f->program)
			r->pid[nr++] = r->pid[i];
	r->o.nr_pids = nr;
}

/* It hangs for ever, and so would those that hold our standard output. */
static void end_family(struct run *r, struct os_family *f)
{
	const size_t nr_left = os_family_kill(f, 5000 * MS_NS);
	if (nr_left)
		cmd_note(r->c, "%zu or more processes that the program started could not be killed",
			nr_left);
}

/* What is not certain, and when it was first seen. */
struct open_finding {
	uint64_t print;
	uint64_t since_ns;
};

/* Nothing was found, or somebody alive, a signal, or time may end it: that may be soon, and the
 * program would be killed for it. */
static bool cmd_deadlock_is_early(const struct deadlock_answer *a, struct open_finding *open)
{
	enum { PATIENCE_MS = 2000 };
	const struct deadlock_finding *f = a->finding;
	if (!a->nr_findings)
		return true;
	if (f->sure == DEADLOCK_CERTAIN)
		return false;
	const uint64_t print = deadlock_finding_print(a, f);
	if (print != open->print)
		*open = (struct open_finding){.print = print, .since_ns = a->now_ns};
	return a->now_ns - open->since_ns < PATIENCE_MS * MS_NS;
}

/* Looks until the program ends, or hangs. */
static int watch_program(struct run *r)
{
	struct deadlock_answer *a = NULL;
	struct os_family family;
	struct open_finding open = {0};
	int exit_status = CMD_OK;
	enum base_status s =
		os_family_start(&family, r->c->operand + 1, &r->c->err); /* behind -- */
	if (s != BASE_OK)
		return cmd_fail(r->c, s);
	while (s == BASE_OK && !family.has_ended && (!a || cmd_deadlock_is_early(a, &open))) {
		deadlock_answer_free(a);
		a = NULL;
		cmd_deadlock_nap(r->settle_ns);
		find_family(r, &family);
		if (!os_family_has_ended(&family))
			s = cmd_deadlock_look(r, &a);
	}
	if (s != BASE_OK)
		return cmd_fail(r->c, s);
	if (a && a->nr_findings) {
		/* a reader that has read enough must not end us before we have ended the family */
		void (*before)(int) = signal(SIGPIPE, SIG_IGN);
		exit_status = write_answer(r->c, a);
		if (exit_status == CMD_OK)
			exit_status = CMD_GATE;
		end_family(r, &family);
		(void)signal(SIGPIPE, before);
	} else {
		cmd_note(r->c, "the program ended by itself: no deadlock");
	}
	deadlock_answer_free(a);
	return exit_status;
}

/* ---- a watch --------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void cmd_deadlock_on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static void catch_signals(void)
{
	struct sigaction sa = {.sa_handler = cmd_deadlock_on_signal}; /* naps end at once */
	(void)sigaction(SIGINT, &sa, NULL);
	(void)sigaction(SIGTERM, &sa, NULL);
}

static void nap_unless_interrupted(uint64_t ns)
{
	struct timespec t = {
		.tv_sec = (time_t)(ns / (1000 * MS_NS)), .tv_nsec = (long)(ns % (1000 * MS_NS))};
	if (!interrupted)
		(void)nanosleep(&t, NULL);
}

static int cmd_deadlock_tell(struct run *r, const struct deadlock_answer *a)
{
	struct cmd *c = r->c;
	struct base_str line = {0};
	if (!cmd_given(c, "json"))
		return write_answer(c, a);
	cmd_add_json_line(&line, deadlock_json(a, "longpole " LONGPOLE_VERSION));
	return cmd_write(c, &line);
}

static int cmd_deadlock_watch(struct run *r)
{
	struct cmd *c = r->c;
	struct deadlock_watch_options o = {.look = r->o, .use_bpf = !cmd_given(c, "no-bpf")};
	struct deadlock_watch *w;
	uint64_t interval_ns = 1000 * MS_NS, count = 0;
	const char *share = cmd_value(c, "share");
	char *end = NULL;
	int exit_status = CMD_OK;
	o.look.threshold_ns = 5000 * MS_NS;
	o.share = (share ? strtod(share, &end) : 0.1) / 100;
	if (share && (end == share || *end || !(o.share >= 0)))
		return cmd_usage(c, "--share: '%s' is no percentage", share);
	if (!cmd_value_time(c, "interval", &interval_ns) ||
		!cmd_value_time(c, "threshold", &o.look.threshold_ns) ||
		!cmd_value_count(c, "count", &count))
		return CMD_USAGE;
	catch_signals();
	enum base_status s = deadlock_watch_open(&o, &w, &c->err);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	const struct deadlock_watch_stats *stats = deadlock_watch_stats(w);
	while (s == BASE_OK && exit_status == CMD_OK && !interrupted &&
		(!count || stats->nr_findings < count)) {
		struct deadlock_answer *a;
		s = deadlock_watch_step(w, cmd_now_ns(), &a, &c->err);
		if (s == BASE_OK && a)
			exit_status = cmd_deadlock_tell(r, a);
		deadlock_answer_free(s == BASE_OK ? a : NULL);
		if (!count || stats->nr_findings < count)
			nap_unless_interrupted(interval_ns);
	}
	if (s == BASE_OK)
		cmd_note(c,
			"%llu {pass|passes}, %llu {look|looks}, %llu {deadlock|deadlocks}; it cost "
			"%.1f ms of processor "
			"time",
			(unsigned long long)stats->nr_passes, (unsigned long long)stats->nr_looks,
			(unsigned long long)stats->nr_findings, (double)stats->cpu_ns / 1e6);
	else
		exit_status = cmd_fail(c, s);
	if (exit_status == CMD_OK && stats->nr_findings)
		exit_status = CMD_GATE;
	deadlock_watch_close(w);
	return exit_status;
}

/* ---- what could happen ----------------------------------------------------------------------- */

static int potential(struct cmd *c)
{
	struct session_options o = session_options_default();
	struct cmd_recorded recorded;
	struct report_run run;
	struct report_order *order = NULL;
	o.heap = true; /* what lies in memory that was freed and used again is another lock */
	int exit_status = cmd_open_or_record(c, &o, &recorded, &run);
	if (!recorded.has_trace)
		return exit_status;
	struct cmd_answer a = cmd_answer_begin(c, report_order_build(&run, &order, &c->err));
	size_t nr_cycles = order ? order->nr_cycles : 0;
	if (a.as == CMD_AS_JSON)
		a.json = report_order_json(order);
	else if (a.as == CMD_AS_TEXT)
		report_order_text(&a.text, order);
	report_order_free(order);
	exit_status = cmd_answer_end(c, &a, &run);
	/* A circle that was found stands, whatever else is missing; that there is none does not. */
	if (exit_status == CMD_OK && !nr_cycles && !recorded.is_program)
		exit_status = cmd_gate_partial(c, "--potential");
	if (exit_status == CMD_OK && nr_cycles && (!recorded.is_program || !recorded.program_exit))
		return CMD_GATE;
	return cmd_recorded_exit(&recorded, exit_status);
}

/* ---- options --------------------------------------------------------------------------------- */

static bool read_pids(struct run *r)
{
	const char *text[PIDS_MAX];
	size_t nr = cmd_values(r->c, "pid", text, PIDS_MAX);
	for (size_t i = 0; i < nr; i++) {
		char *end;
		long pid = strtol(text[i], &end, 10);
		if (*end || pid <= 0 || pid > INT32_MAX) {
			cmd_usage(r->c, "--pid: '%s' is no process", text[i]);
			return false;
		}
		if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) {
			cmd_usage(r->c, "--pid: there is no process %ld", pid);
			return false;
		}
		r->pid[i] = (pid_t)pid;
	}
	r->o.pid = r->pid;
	r->o.nr_pids = nr;
	return true;
}

/* What only a look at running programs knows is not left unsaid. */
static bool is_only_potential(struct cmd *c)
{
	static const char *const others[] = {"pid", "all", "core", "watch", "interval", "threshold",
		"share", "count", "settle", "idle", "spinners", "suspicious", "static", "no-bpf",
		"dot", "svg", "sarif"};
	for (size_t i = 0; i < BASE_COUNT(others); i++)
		if (cmd_given(c, others[i])) {
			cmd_usage(c, "--potential is about a recording: --%s does not apply",
				others[i]);
			return false;
		}
	return true;
}

int cmd_run_deadlock(struct cmd *c)
{
	struct run r = {.c = c, .settle_ns = 100 * MS_NS};
	if (!read_pids(&r) || !cmd_value_time(c, "settle", &r.settle_ns))
		return CMD_USAGE;
	if (cmd_given(c, "potential"))
		return is_only_potential(c) ? potential(c) : CMD_USAGE;
	if (c->nr_operands && (strcmp(c->operand[0], "--") != 0 || c->nr_operands < 2))
		return cmd_usage(c, "a program comes after --");
	int nr_targets = (r.o.nr_pids > 0) + cmd_given(c, "all") + cmd_given(c, "core") +
			 (c->nr_operands > 0);
	if (nr_targets != 1)
		return cmd_usage(
			c, nr_targets ? "give one of --pid, --all, --core and a program"
				      : "give --pid PID, --all, --core FILE, or -- and a program");
	if (cmd_given(c, "core"))
		return cmd_deadlock_look_at_core(c, cmd_value(c, "core"));
	r.o.nr_idle = cmd_values(c, "idle", r.idle, IDLE_MAX);
	r.o.idle = r.idle;
	r.o.is_suspicious = cmd_given(c, "suspicious");
	r.o.is_static = cmd_given(c, "static");
	r.o.finds_spinners = cmd_given(c, "spinners");
	r.o.threshold_ns = r.settle_ns;
	if (cmd_given(c, "watch"))
		return c->nr_operands ? cmd_usage(c, "--watch: with --pid or --all")
				      : cmd_deadlock_watch(&r);
	enum base_status s = deadlock_monitor_open(!cmd_given(c, "no-bpf"), &r.monitor, &c->err);
	int exit_status = s != BASE_OK     ? cmd_fail(c, s)
			  : c->nr_operands ? watch_program(&r)
					   : look_once(&r);
	deadlock_monitor_close(r.monitor);
	return exit_status;
}
