/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - `longpole run`: a program, with something done about its waiting. */
#include "cmd/cmd.h"

#include "config.h"

#include "record/spin_yield.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

enum { NS_PER_MS = 1000000, HOLD_DEFAULT_MS = 10, ITERATIONS_MAX = 100000 };

static const struct cmd_option option[] = {
	{"spin-yield", 'y', "N", NULL,
		"hold a thread that was seen to spin N times round, until what it waits for has "
		"changed (default 2)"},
	{"interval", 'i', "TIME", NULL,
		"look for such threads so often, while there are too few processors (default 1ms)"},
	{"hold", 0, "TIME", NULL, "hold a thread for at most so long (default 10ms)"},
	{"always", 0, NULL, NULL, "also when there are processors enough for all"},
	{"quiet", 'q', NULL, NULL, "say nothing at the end"},
	{"output", 'o', "FILE", "@file", "write what was done to FILE, not to standard error"},
};

const struct cmd_details cmd_details_run = {
	.usage = "[OPTIONS] PROG [ARG...]",
	.about = "Runs PROG, unchanged, with spin-then-yield from outside: while more threads want "
		 "to "
		 "run than there are processors, one that is proved to spin is held, "
		 "until a word that it polls has changed, and its processor is free for others. "
		 "The exit status is PROG's, or 125, 126, 127.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole run --spin-yield 2 ./solver --threads 8",
		"longpole run --hold 3ms --json -o held.json ./server"},
};

static void text(struct base_str *out, const struct record_spin_yield *y)
{
	base_str_addf(out, "threads that spun were held %" PRIu64 " times, for ", y->nr_held);
	base_str_add_ns(out, y->held_ns);
	base_str_add(out, " in all, of ");
	base_str_add_ns(out, y->elapsed_ns);
	base_str_addf(out,
		"; %" PRIu64 " holds ended because a polled word changed, %" PRIu64
		" of them too soon to be worth it\n",
		y->nr_changed, y->nr_short);
	base_str_addf(out,
		"how: %" PRIu64 " looks, at %" PRIu64
		" of them more threads wanted to run than there are processors; %" PRIu64
		" times one of the program's was looked at, %" PRIu64 " times stepped, %" PRIu64
		" times it spun\n",
		y->nr_looks, y->nr_crowded, y->nr_glances, y->nr_bursts, y->nr_spins);
	base_str_add(out, "cost: threads stopped to be looked at for ");
	base_str_add_ns(out, y->stopped_ns);
	base_str_add(out, "; the longest hold ");
	base_str_add_ns(out, y->longest_hold_ns);
	base_str_add(out, "\n");
	if (y->nr_refused)
		base_str_addf(
			out, "not looked at, %" PRIu64 " times: %s\n", y->nr_refused, y->refused);
	base_str_add(out, "next: longpole spin PROG: which loops these are\n");
}

static json_t *integer(uint64_t n)
{
	return json_integer((json_int_t)n);
}

static json_t *json_of(const struct record_spin_yield *y)
{
	return json_pack("{s:s, s:s, s:{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			 "s:o, s:o, s:o}}",
		"schema", "longpole/run/1", "tool", "longpole " LONGPOLE_VERSION, "result",
		"exit_status", y->exit_code, "elapsed_ns", integer(y->elapsed_ns), "looks",
		integer(y->nr_looks), "looks_crowded", integer(y->nr_crowded), "glances",
		integer(y->nr_glances), "bursts", integer(y->nr_bursts), "bursts_spinning",
		integer(y->nr_spins), "bursts_refused", integer(y->nr_refused), "stopped_ns",
		integer(y->stopped_ns), "holds", integer(y->nr_held), "holds_ended_by_change",
		integer(y->nr_changed), "holds_too_short", integer(y->nr_short), "held_ns",
		integer(y->held_ns), "longest_hold_ns", integer(y->longest_hold_ns));
}

static bool answer(struct cmd *c, const struct record_spin_yield *y)
{
	const char *path = cmd_value(c, "output");
	struct base_str out = {0};
	if (cmd_given(c, "json"))
		cmd_add_json_line(&out, json_of(y));
	else
		text(&out, y);
	if (!path)
		return cmd_write(c, &out) == CMD_OK;
	int fd = out.failed ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	bool whole = fd >= 0 && write(fd, out.buf, out.length) == (ssize_t)out.length;
	int why = out.failed ? ENOMEM : errno;
	if (fd >= 0)
		whole &= !close(fd);
	base_str_fini(&out);
	if (!whole)
		cmd_fail(c, base_fail_errno(&c->err, why, "writing %s", path));
	return whole;
}

int cmd_run_run(struct cmd *c)
{
	uint64_t iterations = RECORD_SPIN_ITERATIONS_DEFAULT;
	struct record_spin_yield_options o = {.argv = c->operand,
		.interval_ns = NS_PER_MS,
		.hold_ns = (uint64_t)HOLD_DEFAULT_MS * NS_PER_MS,
		.always = cmd_given(c, "always")};
	struct record_spin_yield y;
	if (!c->nr_operands) {
		cmd_usage(c, "no program given");
		return RECORD_SPIN_EXIT_OURS;
	}
	if (!cmd_value_count(c, "spin-yield", &iterations) ||
		!cmd_value_time(c, "interval", &o.interval_ns) ||
		!cmd_value_time(c, "hold", &o.hold_ns))
		return RECORD_SPIN_EXIT_OURS;
	if (!iterations || iterations > ITERATIONS_MAX || !o.interval_ns || !o.hold_ns) {
		cmd_usage(c, "--spin-yield 1 to %d, --interval and --hold more than 0",
			ITERATIONS_MAX);
		return RECORD_SPIN_EXIT_OURS;
	}
	o.iterations = (uint32_t)iterations;
	enum base_status s = record_spin_yield(&o, &y, &c->err);
	if (s != BASE_OK) {
		cmd_fail(c, s);
		return y.exit_code ? y.exit_code : RECORD_SPIN_EXIT_OURS;
	}
	c->answer_on_stderr = true; /* standard output is the program's */
	if ((!cmd_given(c, "quiet") || cmd_given(c, "output")) && !answer(c, &y) && !y.exit_code)
		return RECORD_SPIN_EXIT_OURS;
	return y.exit_code;
}
