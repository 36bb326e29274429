/* SPDX-License-Identifier: Apache-2.0 */
/* sources.c - what a session reads, a row each: the program's ring, tables and memory streams; the
 * kernel's events by perf and of the whole system; and what runs programs of a kind. */
#include "counter/slots.h"
#include "ring/tally.h"
#include "session/private.h"
#include "session/room.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the ring: records of calls -------------------------------------------------------------- */

static enum base_status ring_prepare(struct session *s)
{
	const struct session_options *o = s->opts;
	if (!s->has_program)
		return BASE_OK;
	uint64_t buffer_bytes = o->buffer_bytes ? o->buffer_bytes
						: session_room_buffer_bytes(session_room_bytes(""));
	enum base_status status = session_ring_create(
		&s->ring, (size_t)buffer_bytes, o->stack_depth, s->clock.tsc_origin, s->err);
	s->result->buffer_bytes = (uint64_t)s->ring.nr_blocks * RING_BLOCK_BYTES;
	return status;
}

void session_set_recording(struct session *s, uint32_t on)
{
	if (s->has_program)
		__atomic_store_n(&s->ring.head->recording, on, __ATOMIC_RELEASE);
}

static void ring_begin(struct session *s)
{
	session_set_recording(s, s->opts->locks == SESSION_LOCKS_full ? RING_full : RING_on);
}

static void ring_read(struct session *s, const struct session_look *l)
{
	if (s->has_program && !s->cut)
		session_ring_drain(&s->ring, &s->converter, l->horizon, l->limit, l->is_final);
}

static unsigned ring_fill_percent(const struct session *s)
{
	return s->has_program && !s->cut ? s->ring.nr_used * 100 / s->ring.nr_blocks : 0;
}

static bool ring_may_wait(struct session *s)
{
	return s->has_program && session_ring_can_wait(&s->ring, &s->converter);
}

static void ring_stop(struct session *s)
{
	session_set_recording(s, RING_off);
}

static void ring_count(struct session *s)
{
	const struct ring_head *head = s->ring.head;
	if (!s->has_program)
		return;
	session_count(
		s, TRACE_DIAG_records_lost, __atomic_load_n(&head->lost_records, __ATOMIC_RELAXED));
	session_count(s, TRACE_DIAG_nested_dropped,
		__atomic_load_n(&head->nested_dropped, __ATOMIC_RELAXED) +
			s->converter.nested_lost);
	session_count(s, TRACE_DIAG_deepbound, __atomic_load_n(&head->deepbound, __ATOMIC_RELAXED));
	session_count(s, TRACE_DIAG_unsuited, __atomic_load_n(&head->unsuited, __ATOMIC_RELAXED));
	session_count(
		s, TRACE_DIAG_omp_disabled, __atomic_load_n(&head->omp_disabled, __ATOMIC_RELAXED));
	session_count(s, TRACE_DIAG_omp_other_tool,
		__atomic_load_n(&head->omp_other_tool, __ATOMIC_RELAXED));
}

static void ring_close(struct session *s)
{
	if (s->has_program)
		session_ring_destroy(&s->ring);
}

/* ---- tables: locks and calls that are counted ------------------------------------------------ */

static const struct {
	bool is_counted;
	uint32_t tally_mask;
} tally_modes[] = {
	[SESSION_LOCKS_holds] = {true, TALLY_ALL},
	[SESSION_LOCKS_sampled] = {true, TALLY_EIGHTH},
	[SESSION_LOCKS_count] = {true, TALLY_NEVER},
	[SESSION_LOCKS_full] = {0},
};

bool session_counts(const struct session_options *o)
{
	return o->calls || tally_modes[o->locks].is_counted;
}

static enum base_status tally_prepare(struct session *s)
{
	const struct session_options *o = s->opts;
	struct session_result *res = s->result;
	struct system_hardware hardware = o->hardware;
	enum base_status status = BASE_OK;
	if (!s->has_program || !session_counts(o))
		return BASE_OK;
	if (hardware.nr)
		status = system_hardware_try(&hardware, res->no_kernel_events_why,
			sizeof res->no_kernel_events_why, s->err);
	return status != BASE_OK
		       ? status
		       : session_tally_create(&s->ring,
				 o->calls ? TALLY_NEVER : tally_modes[o->locks].tally_mask,
				 &hardware, s->err);
}

static void tally_read(struct session *s, const struct session_look *l)
{
	if (s->has_program && !s->cut)
		session_tally_drain(
			&s->ring, &s->converter, l->is_final ? l->now : l->horizon, l->is_final);
}

static bool tally_may_wait(struct session *s)
{
	return !session_counts(s->opts);
}

/* ---- memory streams -------------------------------------------------------------------------- */

static enum base_status memory_prepare(struct session *s)
{
	const struct session_options *o = s->opts;
	if (!s->has_program || o->level < 2)
		return BASE_OK;
	s->result->memory_level = s->memory_level;
	return session_memory_create(&s->memory, s->memory_level,
		o->emulator != SESSION_EMULATOR_NONE, s->nr_processors, o->memory_taker, s->err);
}

static void memory_read(struct session *s, const struct session_look *l)
{
	s->memory_busy = session_memory_drain(
				 &s->memory, &s->converter, session_has_spare(s), l->is_final) > 0;
}

static unsigned memory_fill_percent(const struct session *s)
{
	return s->memory_busy ? 100 : 0;
}

static bool memory_may_wait(struct session *s)
{
	const bool encodes =
		s->memory.head && session_has_spare(s); /* what the program is spared */
	return !encodes && session_memory_can_wait(&s->memory);
}

static void memory_stop(struct session *s)
{
	if (s->memory.head)
		__atomic_store_n(&s->memory.head->recording, 0, __ATOMIC_RELEASE);
}

static void memory_finish(struct session *s)
{
	struct session_memory *m = &s->memory;
	struct session_result *res = s->result;
	if (!m->head)
		return;
	session_memory_finish(m, &s->converter);
	res->memory_images = __atomic_load_n(&m->head->attached, __ATOMIC_RELAXED);
	res->memory_words = __atomic_load_n(&m->head->words, __ATOMIC_RELAXED);
	res->memory_words_left = m->nr_encoded_words;
	res->memory_chunk_bytes = m->nr_bytes;
	res->memory_encode_ns =
		os_clock_ns(&s->clock, __atomic_load_n(&m->head->encode_ticks, __ATOMIC_RELAXED));
	res->memory_wait_ns =
		os_clock_ns(&s->clock, __atomic_load_n(&m->head->wait_ticks, __ATOMIC_RELAXED));
	for (size_t i = 0; i < m->nr_streams; i++)
		res->memory_threads += m->stream[i].thread != 0;
	session_count(s, TRACE_DIAG_memory_lost, m->lost_words);
	session_count(s, TRACE_DIAG_ring_damaged, m->nr_damaged);
	session_memory_remove(m);
}

static void memory_close(struct session *s)
{
	session_memory_destroy(&s->memory);
}

/* ---- exact time in system calls, beside calls that are counted ------------------------------- */

/* The program inherits where the slots are; we do not keep it. */
static enum base_status slots_prepare(struct session *s)
{
	char why[SYSTEM_SLOTS_WHY] = "", place[SYSTEM_SLOTS_ENV_BYTES];
	if (!s->has_program || !s->opts->kernel_time)
		return BASE_OK;
	s->slots = system_slots_open(why);
	snprintf(s->result->no_kernel_time_why, sizeof s->result->no_kernel_time_why, "%s", why);
	if (!s->slots)
		return BASE_OK;
	system_slots_environment(s->slots, place);
	setenv(COUNTER_SLOTS_ENVIRONMENT, place, 1);
	return BASE_OK;
}

static enum base_status slots_open(struct session *s)
{
	if (s->slots)
		unsetenv(COUNTER_SLOTS_ENVIRONMENT);
	return BASE_OK;
}

static void slots_close(struct session *s)
{
	system_slots_close(s->slots);
}

/* ---- what runs a program: nothing is loaded into it ------------------------------------------ */

static void emulator_launch(
	struct session *s, struct session_launch *l, const char *path, char *const *argv)
{
	l->path = path;
	l->argv = argv;
	l->environment = (struct os_child_environment){
		.prepare = session_memory_make_pages, .prepare_ctx = &s->memory};
}

static bool valgrind_launch(struct session *s, struct session_launch *l, enum base_status *ret)
{
	if (s->opts->emulator != SESSION_EMULATOR_VALGRIND)
		return false;
	*ret = os_valgrind_ready(&s->valgrind, s->memory.path, s->opts->argv, s->err);
	emulator_launch(s, l, s->valgrind.program, s->valgrind.argv);
	l->environment.valgrind_lib = s->valgrind.dir.directory;
	return true;
}

static void valgrind_close(struct session *s)
{
	os_valgrind_done(&s->valgrind);
}

static bool qemu_launch(struct session *s, struct session_launch *l, enum base_status *ret)
{
	if (s->opts->emulator != SESSION_EMULATOR_QEMU)
		return false;
	*ret = session_qemu_ready(&s->qemu, s->memory.path, l->path, s->opts->argv, s->err);
	emulator_launch(s, l, s->qemu.emulator, s->qemu.argv);
	return true;
}

static void qemu_close(struct session *s)
{
	session_qemu_done(&s->qemu);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Everything else on this machine. With a program, its own threads are better than nothing. */
static enum base_status kernel_open(struct session *s)
{
	const struct session_options *o = s->opts;
	struct system_options system = {.level = o->system,
		.buffer_bytes = o->system_buffer_bytes,
		.sample_hz = o->sample_hz,
		.only_backend = o->system_backend};
	struct base_err refused = {0};
	if (o->system == SYSTEM_LEVEL_none)
		return BASE_OK;
	enum base_status status = system_kernel_open(&s->kernel, &system, &refused);
	memcpy(s->result->attempt, s->kernel.attempt, sizeof s->kernel.attempt);
	s->result->nr_attempts = s->kernel.nr_attempts;
	memcpy(s->result->no_system_samples_why, s->kernel.no_samples_why,
		sizeof s->kernel.no_samples_why);
	if (status == BASE_OK || (s->has_program && status == BASE_ERR_ENV))
		return BASE_OK;
	if (s->err)
		*s->err = refused;
	return status;
}

static void kernel_begin(struct session *s)
{
	if (s->kernel.open)
		system_kernel_start(&s->kernel, &s->converter);
}

static void kernel_read(struct session *s, const struct session_look *l)
{
	system_kernel_read(&s->kernel, l->is_final);
}

static unsigned kernel_fill_percent(const struct session *s)
{
	return s->kernel.open ? s->kernel.source.used_percent : 0;
}

static bool kernel_may_wait(struct session *s)
{
	return !s->kernel.open;
}

static void kernel_define(struct session *s)
{
	system_kernel_finish(&s->kernel);
	s->result->kernel_events = s->kernel.nr_events;
	s->result->kernel_switches = s->kernel.nr_switches;
}

static void kernel_count(struct session *s)
{
	const struct system_kernel *k = &s->kernel;
	if (!k->open) {
		session_count(s, TRACE_DIAG_own_threads_only, s->opts->system != SYSTEM_LEVEL_none);
		return;
	}
	session_count(
		s, TRACE_DIAG_kernel_dropped, k->source.nr_dropped + k->source.order.nr_damaged);
	session_count(s, TRACE_DIAG_kernel_gap_ms, (k->source.order.gap_ns + 999999) / 1000000);
	session_count(s, TRACE_DIAG_switches_lost, k->nr_switches_lost);
	session_count(s, TRACE_DIAG_wakes_early, k->nr_wakes_early);
	session_count(s, TRACE_DIAG_kernel_reordered, k->source.order.nr_reordered);
	session_count(s, TRACE_DIAG_kernel_late, k->source.order.nr_late);
	session_count(s, TRACE_DIAG_no_bpf,
		k->source.backend != &system_backend_bpf && !s->opts->system_backend);
}

static void kernel_close(struct session *s)
{
	system_kernel_close(&s->kernel);
}

/* (It sees what perf would be asked about switches.) */
static enum base_status sources_perf_open(struct session *s)
{
	struct session_result *res = s->result;
	if (!s->has_program)
		return BASE_OK;
	if (s->attach.pid) {
		s->perf = system_perf_open_running((uint32_t)s->attach.pid, s->opts->sample_hz,
			s->opts->switches && !s->kernel.open, res->no_samples_why,
			res->no_switches_why);
		return BASE_OK;
	}
	s->perf = system_perf_open((uint32_t)s->child.pid, s->opts->sample_hz,
		s->opts->switches && !s->kernel.open, res->no_samples_why, res->no_switches_why);
	if (s->kernel.open)
		res->no_switches_why[0] = 0;
	return BASE_OK;
}

static void sources_perf_read(struct session *s, const struct session_look *l)
{
	if (s->perf)
		system_perf_read(s->perf, &s->converter,
			l->is_final ? UINT64_MAX : l->raw_ns - SESSION_PERF_MARGIN_NS);
}

static unsigned perf_fill_percent(const struct session *s)
{
	return system_perf_fill_percent(s->perf);
}

static void perf_count(struct session *s)
{
	const struct session_result *res = s->result;
	session_count(s,
		s->perf && system_perf_is_wide(s->perf) ? TRACE_DIAG_perf_lost_of_all
							: TRACE_DIAG_perf_lost,
		s->converter.perf_lost);
	session_count(s, TRACE_DIAG_no_samples, res->no_samples_why[0] != 0);
	session_count(s, TRACE_DIAG_no_switches, res->no_switches_why[0] != 0);
}

static void sources_perf_close(struct session *s)
{
	system_perf_close(s->perf);
}

/* ---- Python's frames, beside samples --------------------------------------------------------- */

static void python_begin(struct session *s)
{
	if (s->has_program && s->perf && s->opts->sample_hz)
		s->python = session_python_new(&s->converter, &s->clock, s->opts->sample_hz);
	if (s->python && s->attach.pid)
		session_python_join(s->python, s->attach.pid);
}

static void python_finish(struct session *s)
{
	session_python_stop(s->python);
}

static void python_close(struct session *s)
{
	s->python = session_python_free(s->python);
}

/* In the order in which they are asked: perf after the kernel, which sees switches better. */
const struct session_source session_sources[SESSION_NR_SOURCES] = {
	{
		.open = kernel_open,
		.begin = kernel_begin,
		.read = kernel_read,
		.fill_percent = kernel_fill_percent,
		.may_wait = kernel_may_wait,
		.define = kernel_define,
		.count = kernel_count,
		.close = kernel_close,
	},
	{
		.open = sources_perf_open,
		.read = sources_perf_read,
		.is_hasty = true,
		.fill_percent = perf_fill_percent,
		.count = perf_count,
		.close = sources_perf_close,
	},
	{
		.prepare = ring_prepare,
		.begin = ring_begin,
		.read = ring_read,
		.fill_percent = ring_fill_percent,
		.may_wait = ring_may_wait,
		.stop = ring_stop,
		.count = ring_count,
		.close = ring_close,
	},
	{.begin = python_begin, .finish = python_finish, .close = python_close},
	{.prepare = tally_prepare, .read = tally_read, .may_wait = tally_may_wait},
	{
		.prepare = memory_prepare,
		.read = memory_read,
		.fill_percent = memory_fill_percent,
		.may_wait = memory_may_wait,
		.stop = memory_stop,
		.finish = memory_finish,
		.close = memory_close,
	},
	{.prepare = slots_prepare, .open = slots_open, .close = slots_close},
	{.launch = valgrind_launch, .close = valgrind_close},
	{.launch = qemu_launch, .close = qemu_close},
};
