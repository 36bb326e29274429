/* SPDX-License-Identifier: Apache-2.0 */
/* streams_live.c - a program is run, and its memory streams analysed meanwhile: one thread records
 * into memory, another one analyses. */
#include "cmd/record/record.h"
#include "cmd/memory/streams.h"
#include "session/memory.h"

#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct run {
	struct cmd_streams *streams;
	cmd_streams_add *add;
	void *ctx;
	enum base_status status;
	bool killed; /* the program, by a signal */
	struct base_err err;
	int failed;   /* atomic: the analysis has ended early */
	bool goes_on; /* the program, after that */
	bool clocked; /* (of the recorder) */
};

/* ---- who records ----------------------------------------------------------------------------- */

static bool has_failed(const struct run *r)
{
	return __atomic_load_n(&r->failed, __ATOMIC_ACQUIRE);
}

static bool streams_live_has_room(void *ctx)
{
	const struct run *r = ctx;
	return has_failed(r) || memory_live_has_room(r->streams->live);
}

static void streams_live_put(
	void *ctx, const struct os_clock *clock, const uint8_t *chunk, size_t size_bytes)
{
	struct run *r = ctx;
	if (!r->clocked)
		memory_live_clock(
			r->streams->live, (struct memory_clock){clock->tsc_origin, clock->factor});
	r->clocked = true;
	if (has_failed(r) || memory_live_put(r->streams->live, chunk, size_bytes) == BASE_OK)
		return;
	r->streams->lost_chunks++;
}

static void streams_live_commit(void *ctx)
{
	memory_live_commit(((struct run *)ctx)->streams->live);
}

static void ignore_record(void *ctx, const struct trace_record *streams_live_record)
{
	(void)ctx;
	(void)streams_live_record;
}

static void ignore_time(void *ctx, uint64_t time_ns, uint64_t nr_lost)
{
	(void)ctx;
	(void)time_ns;
	(void)nr_lost;
}

static bool streams_live_stop(void *ctx)
{
	return has_failed(ctx);
}

/* ---- who analyses ---------------------------------------------------------------------------- */

static void *streams_live_analyse(void *ctx)
{
	struct run *r = ctx;
	enum base_status s = BASE_OK;
	while (s == BASE_OK) {
		struct memory_steps steps;
		s = memory_order_next(r->streams->order, &steps, &r->err);
		if (s == BASE_OK && (steps.nr || steps.nr_pieces))
			s = r->add(r->ctx, &steps, &r->err);
		else if (s == BASE_OK)
			memory_live_wait(r->streams->live);
		r->streams->nr_steps += steps.nr;
	}
	r->status = s == BASE_END ? BASE_OK : s;
	__atomic_store_n(&r->failed, s != BASE_END, __ATOMIC_RELEASE);
	return NULL;
}

enum base_status cmd_streams_recorded(const struct session_result *r, struct base_err *err)
{
	if (!r->memory_images)
		return base_fail(err, BASE_ERR_ENV,
			"no memory streams: none of the programs that ran was built for them: "
			"build "
			"with CC='longpole cc', CXX='longpole c++' or FC='longpole fortran' "
			"instead "
			"of the compiler, or give --recorder=valgrind");
	if (!r->memory_words)
		return base_fail(err, BASE_ERR_ENV,
			"no memory access was recorded: what ran was linked by `longpole cc`, but "
			"none of its code was compiled by it. Compile its source files with it, "
			"too, or give --recorder=valgrind");
	return BASE_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int streams_live_record(struct cmd *c, struct run *r)
{
	struct cmd_streams *s = r->streams;
	struct session_options o = session_options_default();
	struct session_result result = {.wait_status = -1, .exit_code = SESSION_EXIT_OURS};
	struct session_memory_taker taker = {
		r, streams_live_has_room, streams_live_put, streams_live_commit};
	struct session_listener listener = {r, ignore_record, ignore_time, streams_live_stop};
	o.argv = c->operand + 1;
	o.tool = "longpole " LONGPOLE_VERSION;
	o.level = s->level;
	o.emulator = s->emulator;
	o.sample_hz = 0;
	o.switches = false;
	o.memory_taker = &taker;
	o.listener = &listener;
	enum base_status status = session_run(&o, &result, &c->err);
	memory_live_end(s->live);
	r->goes_on = status == BASE_OK && result.wait_status == -1;
	r->killed = status == BASE_OK && !r->goes_on && WIFSIGNALED(result.wait_status);
	s->program_exit = result.exit_code;
	s->elapsed_ns = result.elapsed_ns;
	s->wait_ns = result.memory_wait_ns;
	if (status != BASE_OK) {
		s->program_exit = result.exit_code ? result.exit_code : SESSION_EXIT_OURS;
		return cmd_fail(c, status);
	}
	status = cmd_streams_recorded(&result, &c->err);
	return status == BASE_OK ? CMD_OK : cmd_fail(c, status);
}

int cmd_streams_run_live(struct cmd *c, struct cmd_streams *s, cmd_streams_add *add, void *ctx)
{
	struct run *r = base_alloc(sizeof *r);
	pthread_t analysis;
	if (!r)
		return cmd_fail(c, base_fail(&c->err, BASE_ERR_NOMEM, "no memory to analyse"));
	*r = (struct run){.streams = s, .add = add, .ctx = ctx};
	sigset_t all, before; /* signals are for the recorder */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int why = pthread_create(&analysis, NULL, streams_live_analyse, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (why) {
		base_free(r);
		return cmd_fail(c, base_fail_errno(&c->err, why, "cannot make a thread"));
	}
	int status = streams_live_record(c, r);
	pthread_join(analysis, NULL);
	if (r->killed)
		memory_diag_add(&s->source->diags, MEMORY_DIAG_killed, 0, 0);
	if (status == CMD_OK && r->status != BASE_OK) {
		s->program_exit = SESSION_EXIT_OURS;
		c->err = r->err;
		status = cmd_fail(c, base_cause(&c->err, r->status, "while analysing %s%s", s->name,
					     r->goes_on ? ", which goes on" : ""));
	}
	base_free(r);
	return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

bool cmd_streams_are_live(const struct cmd *c)
{
	return c->nr_operands && !strcmp(c->operand[0], "--");
}

int cmd_streams_open_live(struct cmd *c, uint32_t max_threads, struct cmd_streams *ret)
{
	uint64_t level = 3, threads = max_threads;
	if (c->nr_operands < 2)
		return cmd_usage(c, "no program after --");
	if (!cmd_value_count(c, "level", &level) || !cmd_value_count(c, "threads", &threads))
		return CMD_USAGE;
	if (!threads || threads > MEMORY_THREADS_MAX)
		return cmd_usage(c, "--threads: 1 to %d", (int)MEMORY_THREADS_MAX);
	ret->level = (unsigned)level;
	ret->recorder = cmd_value(c, "recorder");
	ret->emulator = cmd_record_emulator(ret->recorder, c->operand[1]);
	ret->name = c->operand[1];
	ret->word = c->operand + 1;
	ret->nr_words = c->nr_operands - 1;
	ret->program_exit = SESSION_EXIT_OURS;
	c->answer_on_stderr = true; /* standard output is the program's */
	enum base_status s = memory_live_new((uint32_t)threads, ret->level,
		ret->emulator == SESSION_EMULATOR_VALGRIND, &ret->live, &c->err);
	if (s != BASE_OK)
		return cmd_fail(c, s);
	ret->source = memory_live_source(ret->live);
	return CMD_OK;
}

int cmd_streams_exit(const struct cmd_streams *s, int analysed)
{
	if (!s->is_program)
		return analysed;
	return s->program_exit ? s->program_exit : analysed == CMD_OK ? 0 : SESSION_EXIT_OURS;
}
