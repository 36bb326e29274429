/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_spin.c - `longpole spin`: which instructions only wait. */
#include "cmd/spin.h"

enum { LIMIT_DEFAULT = 10, NS_PER_MS = 1000000, DURATION_DEFAULT_MS = 5000 };

static const struct cmd_option option[] = {
	{"pid", 'p', "PID", NULL, "look at a process that runs already, by samples"},
	{"sample", 's', NULL, NULL, "run PROG at its own speed, and sample it"},
	{"duration", 'd', "TIME", NULL,
		"sample for so long (default 5s of a process, or up to the end of PROG)"},
	{"interval", 'i', "TIME", NULL, "a sample every so often (default 10ms)"},
	{"max-stop", 0, "PERCENT", NULL,
		"hold threads for at most that much of the time, by fewer samples (default 5)"},
	{"steps", 0, "N", NULL, "single steps of a sample, at most (default 400)"},
	{"longest-stop", 0, "TIME", NULL,
		"let a thread go when a sample has held it for so long (default 50ms)"},
	{"until-livelock", 0, NULL, NULL, "stop sampling when a livelock was found"},
	{"sdt", 0, "N", NULL, "Valgrind: loops of a thread that are followed (default 16)"},
	{"rub", 0, "N", NULL, "Valgrind: changed registers that are remembered (default 64)"},
	{"yield-after", 0, "N", NULL,
		"Valgrind: a loop that spun N times round gives way; 0: never (default 8)"},
	{"marked", 0, "LO-HI", NULL,
		"Valgrind: count the instructions at these addresses (hexadecimal) apart"},
	{"limit", 'n', "N", NULL, "show the N loops and threads that wait most (default 10)"},
	{"all", 'a', NULL, NULL, "show every loop and thread"},
	{"output", 'o', "FILE", "@file", "write the answer to FILE, not to standard error"},
};

const struct cmd_details cmd_details_spin = {
	.usage = "[OPTIONS] PROG [ARG...] | -p PID",
	.about = "Says which threads execute loops that only wait, where, and on which word. "
		 "PROG runs, unchanged, under Valgrind, which counts every instruction: total, "
		 "spinning and useful. With --sample, without Valgrind, and for a process that "
		 "runs already, it steps threads through some dozens of instructions now and "
		 "then; the shares are of such samples. It also says when all threads of a "
		 "process spin and none can end it (livelock). The answer goes to standard "
		 "error. The exit status is PROG's, or 125, 126, 127; of a process 0, or 1 for a "
		 "livelock.",
	.gate = "with --pid: a livelock was found",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole spin ./solver --threads 4", "longpole spin --sample --json ./server",
		"longpole spin -p $(pidof server) --duration 2s"},
};

struct wanted {
	struct spin_sample_options sample;
	struct spin_tool_options tool;
	uint64_t limit, pid;
};

static bool cmd_spin_parse(struct cmd *c, struct wanted *w)
{
	uint64_t percent = 5, steps = SPIN_STEPS_DEFAULT, yield_after = 0;
	w->limit = LIMIT_DEFAULT;
	uint64_t stop_ns = SPIN_STOP_NS_DEFAULT;
	w->sample = (struct spin_sample_options){.interval_ns = 10 * NS_PER_MS,
		.watch_livelock = true,
		.until_livelock = cmd_given(c, "until-livelock")};
	if (!cmd_value_count(c, "pid", &w->pid) || !cmd_value_count(c, "limit", &w->limit) ||
		!cmd_value_count(c, "steps", &steps) || !cmd_value_count(c, "max-stop", &percent) ||
		!cmd_value_count(c, "sdt", &w->tool.nr_sdt) ||
		!cmd_value_count(c, "rub", &w->tool.nr_rub) ||
		!cmd_value_count(c, "yield-after", &yield_after) ||
		!cmd_value_time(c, "interval", &w->sample.interval_ns) ||
		!cmd_value_time(c, "longest-stop", &stop_ns))
		return false;
	if (w->pid)
		w->sample.duration_ns = (uint64_t)DURATION_DEFAULT_MS * NS_PER_MS;
	if (!cmd_value_time(c, "duration", &w->sample.duration_ns))
		return false;
	if (!percent || percent > 100 || !steps || steps > 1000000 ||
		w->tool.nr_sdt > SPIN_SDT_MAX || w->tool.nr_rub > SPIN_RUB_MAX ||
		yield_after > INT32_MAX / 4 || w->pid > INT32_MAX) {
		cmd_usage(c, "a value is out of range: --max-stop 1 to 100, --steps 1 to 1000000, "
			     "--sdt 1 to 1024, --rub 1 to 16384");
		return false;
	}
	if (cmd_given(c, "pid") ? c->nr_operands > 0 || !w->pid : !c->nr_operands) {
		cmd_usage(c, "give a program, or -p PID");
		return false;
	}
	if (cmd_given(c, "all"))
		w->limit = 0;
	w->sample.stopped_share = (double)percent / 100;
	w->sample.limits = (struct spin_limits){
		.steps = (uint32_t)steps,
		.iterations = SPIN_ITERATIONS_DEFAULT,
		.stop_ns = stop_ns,
	};
	w->tool.marked = cmd_value(c, "marked");
	w->tool.yield_after =
		yield_after || !cmd_given(c, "yield-after") ? yield_after : UINT64_MAX;
	w->sample.pid = (pid_t)w->pid;
	w->sample.argv = w->tool.argv = c->operand;
	return true;
}

static int cmd_spin_answer(struct cmd *c, const struct cmd_spin *spin)
{
	struct base_str text = {0};
	if (cmd_given(c, "json")) {
		cmd_add_json_line(&text, cmd_spin_json(spin));
	} else {
		cmd_spin_text(&text, spin);
		cmd_fold(c, &text);
	}
	return cmd_write_output(c, &text);
}

int cmd_run_spin(struct cmd *c)
{
	struct wanted w = {0};
	struct spin_answer a = {0};
	const char *no_tool = NULL;
	if (!cmd_spin_parse(c, &w))
		return cmd_given(c, "pid") ? CMD_USAGE : SPIN_EXIT_OURS;
	bool sample = w.pid || cmd_given(c, "sample") || cmd_given(c, "until-livelock") ||
		      !spin_has_tool(&no_tool);
	enum base_status s =
		sample ? spin_sample(&w.sample, &a, &c->err) : spin_run_tool(&w.tool, &a, &c->err);
	int exit_code = w.pid ? CMD_OK : a.exit_code;
	if (s != BASE_OK) {
		int failed = cmd_fail(c, s);
		exit_code = w.pid ? failed : exit_code ? exit_code : SPIN_EXIT_OURS;
	} else {
		const struct cmd_spin spin = {.a = &a,
			.program = w.pid ? NULL : c->operand[0],
			.no_tool = no_tool,
			.limit = (size_t)w.limit};
		c->answer_on_stderr = !w.pid; /* standard output is the program's */
		int written = cmd_spin_answer(c, &spin);
		if (w.pid)
			exit_code = written;
		else if (written != CMD_OK && !exit_code)
			exit_code = SPIN_EXIT_OURS;
		if (w.pid && exit_code == CMD_OK && a.standstill.verdict == SPIN_LIVELOCK_FOUND)
			exit_code = CMD_GATE;
	}
	spin_answer_fini(&a);
	return exit_code;
}
