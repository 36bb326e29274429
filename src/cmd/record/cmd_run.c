/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - `longpole run`: a program, with something done about its waiting. */
#include "cmd/cmd.h"
#include "base/json.h"

#include "spin/yield.h"

#include <inttypes.h>
#include <string.h>

enum {
	NS_PER_US = 1000,
	INTERVAL_DEFAULT_US = 200,
	SLEEP_DEFAULT_US = 10000,
	INTERVAL_LEAST_NS = 20000,
	ITERATIONS_MAX = 100000
};

static const struct cmd_option option[] = {
	{"spin-yield", 'y', "N", NULL,
		"so many rounds of a loop with nothing changed are the proof that it spins "
		"(default "
		"2)"},
	{"interval", 'i', "TIME", NULL,
		"where a loop can have no breakpoint, a thread in it gives way after so much of "
		"its processor time (default 200us)"},
	{"sleep", 0, "TIME", NULL,
		"who yielded and spins on sleeps until a word that it polls has changed, at most "
		"so long (default 10ms; 0: it yields again)"},
	{"always", 0, NULL, NULL, "also when there are processors enough for all"},
	{"quiet", 'q', NULL, NULL, "say nothing at the end"},
	{"output", 'o', "FILE", "@file", "write what was done to FILE, not to standard error"},
};

const struct cmd_details cmd_details_run = {
	.usage = "[OPTIONS] PROG [ARG...]",
	.about = "Runs PROG, unchanged, with spin-then-yield. While more threads want to run than "
		 "there are processors, longpole learns loops that are proved to spin. A thread "
		 "that is met in one gives its processor to others. The exit status is PROG's, or "
		 "125, 126, 127.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole run --spin-yield 2 ./solver --threads 8",
		"longpole run --sleep 0 --json -o gave-way.json ./server"},
};

static void cmd_run_add_finding(struct base_str *out, const struct spin_yield *y)
{
	if (y->unable) {
		base_str_addf(out, "no thread could be made to give way: %s\n", y->unable);
		return;
	}
	if (!y->nr_loops) {
		base_str_add(out, y->nr_crowded ? "no loop was proved to spin: nothing was done\n"
						: "there were processors for all: nothing was "
						  "done\n");
		return;
	}
	base_str_add_counted(
		out, "threads that spun gave way %s {time|times} in ", y->nr_yields + y->nr_sleeps);
	base_str_add_ns(out, y->elapsed_ns);
	base_str_add_counted(
		out, " (%s {loop was|loops were} proved to spin, the first after ", y->nr_loops);
	base_str_add_ns(out, y->first_ns);
	base_str_add(out, ")\n");
}

static void cmd_run_text(struct base_str *out, const struct spin_yield *y)
{
	cmd_run_add_finding(out, y);
	base_str_addf(out,
		"how: %" PRIu64 " {look|looks}; at %" PRIu64
		" of them more threads wanted to run than there are processors.\n  Loops that spin "
		"by their code: %" PRIu64 ". Threads looked at: %" PRIu64 ", stepped: %" PRIu64
		", so proved to spin: %" PRIu64 "\n",
		y->nr_looks, y->nr_crowded, y->nr_by_code, y->nr_glances, y->nr_bursts,
		y->nr_spins);
	if (y->nr_samples)
		base_str_addf(out,
			"signals: %" PRIu64 " to at most %" PRIu64 " {thread|threads}, %" PRIu64
			" of them met one in a loop that spins; loops with a breakpoint: %" PRIu64,
			y->nr_samples, y->nr_armed, y->nr_spinning, y->nr_placed);
	if (y->nr_samples && y->nr_dropped)
		base_str_addf(out, " (given up, as they cost more than they brought: %" PRIu64 ")",
			y->nr_dropped);
	if (y->nr_samples)
		base_str_add(out, "\n");
	if (y->nr_sleeps) {
		base_str_add_counted(out, "slept %s {time|times}, for ", y->nr_sleeps);
		base_str_add_ns(out, y->slept_ns);
		base_str_add_counted(
			out, "; %s {time|times} a polled word changed meanwhile\n", y->nr_changed);
	}
	base_str_add(out, "cost: threads stopped to be looked at for ");
	base_str_add_ns(out, y->stopped_ns);
	base_str_add(out, "\n");
	if (y->nr_blocked)
		base_str_addf(out, "threads left out, as they block SIGURG: %" PRIu64 "\n",
			y->nr_blocked);
	if (y->nr_refused) {
		base_str_add_counted(out, "not looked at, %s {time|times}: ", y->nr_refused);
		base_str_addf(out, "%s\n", y->refused);
	}
	base_str_add(out, "next: longpole spin PROG: which loops these are\n");
}

#include "cmd/record/run.def"

static int cmd_run_answer(struct cmd *c, const struct spin_yield *y)
{
	struct base_str out = {0};
	if (cmd_given(c, "json")) {
		cmd_add_json_line(&out, cmd_result_json(cmd_run_document.name,
						base_table_json(&cmd_run_document, y, NULL, 0)));
	} else {
		cmd_run_text(&out, y);
		cmd_fold(c, &out);
	}
	return cmd_write_output(c, &out);
}

static bool take_sleep(struct cmd *c, uint64_t *ns)
{
	const char *cmd_run_text = cmd_value(c, "sleep");
	if (!cmd_run_text || strcmp(cmd_run_text, "0") != 0)
		return cmd_value_time(c, "sleep", ns);
	*ns = 0;
	return true;
}

int cmd_run_run(struct cmd *c)
{
	uint64_t iterations = SPIN_ITERATIONS_DEFAULT;
	struct spin_yield_options o = {.argv = c->operand,
		.interval_ns = INTERVAL_DEFAULT_US * NS_PER_US,
		.sleep_ns = SLEEP_DEFAULT_US * NS_PER_US,
		.always = cmd_given(c, "always")};
	struct spin_yield y;
	if (!c->nr_operands) {
		cmd_usage(c, "no program given");
		return SPIN_EXIT_OURS;
	}
	if (!cmd_value_count(c, "spin-yield", &iterations) ||
		!cmd_value_time(c, "interval", &o.interval_ns) || !take_sleep(c, &o.sleep_ns))
		return SPIN_EXIT_OURS;
	if (!iterations || iterations > ITERATIONS_MAX || o.interval_ns < INTERVAL_LEAST_NS) {
		cmd_usage(c, "--spin-yield 1 to %d, --interval %d ns or more", ITERATIONS_MAX,
			INTERVAL_LEAST_NS);
		return SPIN_EXIT_OURS;
	}
	o.iterations = (uint32_t)iterations;
	enum base_status s = spin_yield(&o, &y, &c->err);
	if (s != BASE_OK) {
		cmd_fail(c, s);
		return y.exit_code ? y.exit_code : SPIN_EXIT_OURS;
	}
	c->answer_on_stderr = true; /* standard output is the program's */
	bool wanted = !cmd_given(c, "quiet") || cmd_given(c, "output");
	if (wanted && cmd_run_answer(c, &y) != CMD_OK && !y.exit_code)
		return SPIN_EXIT_OURS;
	return y.exit_code;
}
