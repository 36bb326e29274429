/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - one recording, from start to end.
 *
 * The session polls: waking it would cost the target a system call. It sleeps as long as the
 * buffers allow, in SCHED_BATCH, so that it does not preempt the threads that it watches. Signals
 * arrive through a signalfd: no handlers but bus.h's, no globals.
 */
#include "record/session.h"
#include "record/clock.h"
#include "counter/slots.h"
#include "record/bus.h"
#include "record/links.h"
#include "record/peer.h"
#include "record/perf.h"
#include "record/session_cost.h"
#include "record/session_jit.h"
#include "record/session_keep.h"
#include "record/session_launch.h"
#include "record/session_memory.h"
#include "record/qemu.h"
#include "record/valgrind.h"
#include "record/session_names.h"
#include "record/session_recover.h"
#include "record/room.h"
#include "record/sanitizer.h"
#include "record/session_ring.h"
#include "record/session_tally.h"
#include "record/tally.h"
#include "record/slots.h"
#include "record/system_convert.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	CALIBRATE_NS = 20000000,
	WARM_NS = 2000000, /* of a look, to get memory that the program will need */
	PAIR_EVERY_NS = 5000000,
	PROGRESS_EVERY_NS = 200000000,
	PERF_MARGIN_NS = 1000000, /* the kernel's events are in their buffers that soon */
	SAMPLE_HZ_LEAST = 199,
	SAMPLES_NS_MAX = 15000000, /* what samples may take of a second of a processor */
	FUTURE_NS = 1000000000,    /* a stamp that much ahead is damage */
	BUSY_LATELY_NS = 250000000,
	INTERVAL_BUSY_NS = 1000000, /* between two looks at the buffers */
	INTERVAL_NS = 5000000,
	INTERVAL_SYSTEM_NS = 10000000, /* its buffers are large; names of who ends soon are not */
	INTERVAL_IDLE_NS = 20000000,
	BIRTH_NS = 50000000,
	USED_BUSY = 32, /* blocks in use that make us look more often: what is read soon is still
			   cached */
	PERCENT_LOW = 50,
	NAME_EVERY_NS = 1000000000,
	FLUSH_EVERY_NS = 2000000000,
	LATE_NS = 200000000, /* of the kernel's events: by far */
	SYSTEM_NICE = -15,
	EVENTS_WAITING_MAX = 1 << 18, /* of the kernel, of 100 bytes or so */
};

/* What the converter holds back until it knows whose it is: 2 s. */
#define LATE_PROGRAM_NS UINT64_C(2200000000)

struct session {
	const struct record_options *opts;
	struct record_result *result;
	struct record_clock clock;
	struct record_ring ring;
	struct record_memory memory;
	struct record_valgrind valgrind;
	struct record_qemu qemu;
	struct record_links links;
	struct base_str preload; /* what LD_PRELOAD says */
	bool memory_busy;
	bool cut;          /* somebody has shortened the ring's file: there is nothing to read */
	uint64_t flush_ns; /* CLOCK_MONOTONIC_RAW of the next flush_system() */
	struct record_converter converter;
	struct record_peer peer;
	struct trace_writer *writer;
	struct record_keep keep; /* for whoever finds us killed */
	struct record_perf *perf;
	struct record_slots *slots; /* NULL: time inside of system calls is not counted */
	struct record_kernel kernel;
	struct record_child child;
	struct record_namer namer; /* with a listener */
	uint64_t named_ns;
	int signal_fd, sched_policy, nice;
	struct record_signals before;
	struct record_lock_floor floor;
	uint64_t stolen_ns; /* by the machine's host: since boot, then of this recording */
	int load_fd;        /* /proc/loadavg; -1: not to be had */
	uint64_t busy_ns;   /* when all processors were busy last; 0: never */
	uint8_t busy_looks; /* bit i: they were, i looks ago */
	unsigned long nr_processors;
	bool has_program, converting, ended, stopped, full;
	bool waits; /* the last look left the ring as it was */
	bool cold;  /* ... and had no time to get all memory that the program will need */
	unsigned interrupts;
	uint64_t pair_ns, progress_ns, begin_ns,
		end_ns; /* CLOCK_MONOTONIC_RAW, but end_ns: of the trace */
	uint64_t records_before;
	uint64_t cpu_ns, started_cpu_ns; /* of this process: before, and as the program starts */
	enum base_status status; /* first failure while the target runs: it is not disturbed */
	struct base_err *err;
};

struct record_options record_options_default(void)
{
	return (struct record_options){.size = sizeof(struct record_options),
		.sample_hz = RECORD_SAMPLE_HZ,
		.stack_depth = RECORD_STACK_DEPTH,
		.switches = true};
}

static uint64_t ticks_of(const struct session *s, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * s->clock.tick_hz / 1000000000u);
}

/* ---- set up
 * --------------------------------------------------------------------------------------------- */

static enum base_status take_signals(struct session *s)
{
	sigset_t set;
	sigemptyset(&set);
	static const int taken[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD};
	for (size_t i = 0; i < BASE_COUNT(taken); i++)
		sigaddset(&set, taken[i]);
	sigprocmask(SIG_BLOCK, &set, &s->before.blocked);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return base_fail_errno(s->err, errno, "cannot wait for signals");
	return BASE_OK;
}

void record_add_command(struct base_str *out, char *const *argv)
{
	for (char *const *arg = argv; *arg; arg++) {
		base_str_add(out, arg == argv ? "" : " ");
		record_add_quoted(out, *arg, strlen(*arg));
	}
}

static enum base_status open_trace(struct session *s)
{
	char host[256] = "";
	if (s->opts->listener)
		return BASE_OK;
	struct base_str command = {0};
	gethostname(host, sizeof host - 1);
	if (s->opts->argv)
		record_add_command(&command, s->opts->argv);
	struct trace_info info = {.size = sizeof info,
		.host = host,
		.command = base_str_text(&command),
		.tool = s->opts->tool ? s->opts->tool : "longpole",
		.origin_mono_ns = s->clock.raw_origin_ns,
		.origin_unix_ns = s->clock.unix_origin_ns,
		.tick_hz = s->clock.tick_hz,
		.nr_processors = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN)};
	if (s->kernel.open)
		info.flags = TRACE_INFO_SYSTEM |
			     (s->kernel.level == RECORD_LEVEL_full ? TRACE_INFO_KERNEL : 0);
	if (s->opts->wait_all)
		info.flags |= TRACE_INFO_WAIT_ALL;
	enum base_status status =
		trace_writer_open(s->opts->output_path, &info, &s->writer, s->err);
	if (status == BASE_OK && s->opts->plain)
		trace_writer_set_plain(s->writer);
	base_str_fini(&command);
	return status;
}

static void open_perf(struct session *s)
{
	struct record_result *res = s->result;
	s->perf = record_perf_open((uint32_t)s->child.pid, s->opts->sample_hz,
		s->opts->switches && !s->kernel.open, res->no_samples_why, res->no_switches_why);
	if (s->kernel.open)
		res->no_switches_why[0] = 0; /* it sees them */
}

/* Everything else on this machine. With a program, its own threads are better than nothing. */
static enum base_status open_kernel(struct session *s)
{
	const struct record_options *o = s->opts;
	struct record_system_options system = {.level = o->system,
		.buffer_bytes = o->system_buffer_bytes,
		.sample_hz = o->sample_hz,
		.only_backend = o->system_backend};
	struct base_err refused = {0};
	if (o->system == RECORD_LEVEL_none)
		return BASE_OK;
	enum base_status status = record_kernel_open(&s->kernel, &system, &refused);
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

static const struct {
	bool is_counted;
	uint32_t tally_mask;
} lock_modes[] = {
	[RECORD_LOCKS_holds] = {true, TALLY_ALL},
	[RECORD_LOCKS_sampled] = {true, TALLY_EIGHTH},
	[RECORD_LOCKS_count] = {true, TALLY_NEVER},
	[RECORD_LOCKS_full] = {0},
};

bool record_counts(const struct record_options *o)
{
	return o->calls || lock_modes[o->locks].is_counted;
}

static const char *library_of(const struct record_options *o)
{
	return o->calls           ? RECORD_LIBRARY_CALLS
	       : record_counts(o) ? RECORD_LIBRARY_TALLY
				  : RECORD_LIBRARY_PRELOAD;
}

/* The program inherits where the slots are; we do not keep it. */
static void open_slots(struct session *s)
{
	char why[RECORD_SLOTS_WHY] = "", place[RECORD_SLOTS_ENV_BYTES];
	if (!s->opts->kernel_time)
		return;
	s->slots = record_slots_open(why);
	snprintf(s->result->no_kernel_time_why, sizeof s->result->no_kernel_time_why, "%s", why);
	if (!s->slots)
		return;
	record_slots_environment(s->slots, place);
	setenv(COUNTER_SLOTS_ENVIRONMENT, place, 1);
}

/* What LD_PRELOAD is to say: one library, or two. */
static enum base_status find_libraries(struct session *s, struct base_str *ret)
{
	const struct record_options *o = s->opts;
	char path[PATH_MAX], way[PATH_MAX];
	enum base_status status = record_find_preload(library_of(o), path, s->err);
	if (status == BASE_OK)
		status = record_check_preload(path, s->err);
	if (status == BASE_OK)
		status = record_links_way(&s->links, path, way, s->err);
	if (status != BASE_OK)
		return status;
	base_str_add(ret, way);
	if (!o->heap || o->calls)
		return BASE_OK;
	status = record_find_preload(RECORD_LIBRARY_HEAP, path, s->err);
	if (status == BASE_OK)
		status = record_links_way(&s->links, path, way, s->err);
	if (status == BASE_OK)
		base_str_addf(ret, ":%s", way);
	return status;
}

/* (Nothing is loaded into it.) */
static enum base_status start_emulator(struct session *s, const char *path, char *const *argv)
{
	const char *lib = s->valgrind.argv ? s->valgrind.dir.directory : NULL;
	return record_child_start(&s->child, path, argv,
		&(struct record_child_environment){.valgrind_lib = lib, .memory_pages = &s->memory},
		&s->before, s->err);
}

static enum base_status start_program(struct session *s, const char *program, const char *preload)
{
	const struct record_options *o = s->opts;
	enum base_status status;
	switch (o->emulator) {
	case RECORD_EMULATOR_NONE:
		break;
	case RECORD_EMULATOR_VALGRIND:
		status = record_valgrind_ready(&s->valgrind, s->memory.path, o->argv, s->err);
		return status != BASE_OK ? status
					 : start_emulator(s, s->valgrind.program, s->valgrind.argv);
	case RECORD_EMULATOR_QEMU:
		status = record_qemu_ready(&s->qemu, s->memory.path, program, o->argv, s->err);
		return status != BASE_OK ? status
					 : start_emulator(s, s->qemu.emulator, s->qemu.argv);
	}
	return record_child_start(&s->child, program, o->argv,
		&(struct record_child_environment){.preload = preload,
			.ring = s->ring.path,
			.memory = s->memory.path,
			.memory_pages = s->memory.head ? &s->memory : NULL},
		&s->before, s->err);
}

static enum base_status set_up_program(
	struct session *s, char program[PATH_MAX], struct base_str *preload)
{
	const struct record_options *o = s->opts;
	enum base_status status;
	unsigned level = o->level;
	if (!o->emulator && level >= 2)
		status = record_find_rewritten(
			o->argv[0], &level, program, &s->result->exit_code, s->err);
	else
		status = record_find_program(o->argv[0], program, &s->result->exit_code, s->err);
	if (status == BASE_OK && record_counts(s->opts) && record_is_wrapped(program))
		status = base_fail(s->err, BASE_ERR_ENV,
			"%s is a static program that records itself, which cannot count: record "
			"it (longpole record, longpole locks --mode=stamps)",
			program);
	const struct record_sanitizer *by =
		status == BASE_OK && !o->emulator ? record_sanitizer_of(program) : NULL;
	if (by && o->calls)
		status = base_fail(s->err, BASE_ERR_ENV,
			"%s was built with %s, which replaces the functions that are to be "
			"counted: count a build without it (longpole record takes both)",
			program, by->name);
	if (status == BASE_OK && o->level >= 2)
		status =
			record_memory_create(&s->memory, level, o->emulator != RECORD_EMULATOR_NONE,
				s->nr_processors, o->memory_taker, s->err);
	if (status != BASE_OK)
		return status;
	s->result->memory_level = o->level >= 2 ? level : 0;
	status = find_libraries(s, preload);
	if (status != BASE_OK)
		return status;
	record_left_make_way(o->listener ? NULL : o->output_path);
	uint64_t buffer_bytes =
		o->buffer_bytes ? o->buffer_bytes : record_room_buffer_bytes(record_room_bytes(""));
	status = record_ring_create(
		&s->ring, (size_t)buffer_bytes, o->stack_depth, s->clock.tsc_origin, s->err);
	if (status != BASE_OK)
		return status;
	if (record_counts(o))
		status = record_tally_create(
			&s->ring, o->calls ? TALLY_NEVER : lock_modes[o->locks].tally_mask, s->err);
	if (status != BASE_OK)
		return status;
	s->result->buffer_bytes = (uint64_t)s->ring.nr_blocks * RING_BLOCK_BYTES;
	status = take_signals(s);
	if (status != BASE_OK)
		return status;
	open_slots(s);
	status = start_program(s, program, base_str_text(preload));
	if (s->slots)
		unsetenv(COUNTER_SLOTS_ENVIRONMENT);
	return status;
}

/* A sample is an interrupt: 2 us of bare metal, 20 and more where a hypervisor has to help. */
static void choose_sample_hz(struct session *s)
{
	uint64_t hz = s->opts->sample_hz;
	while (!s->opts->samples_exact && hz / 2 >= SAMPLE_HZ_LEAST &&
		hz * s->result->sample_ns > SAMPLES_NS_MAX)
		hz /= 2;
	if (hz != s->opts->sample_hz &&
		!(record_perf_set_sample_hz(s->perf, hz) && record_samples_set_hz(&s->kernel, hz)))
		hz = s->opts->sample_hz;
	s->result->sample_hz = hz;
}

static enum base_status set_up(struct session *s, char program[PATH_MAX])
{
	const struct record_options *o = s->opts;
	const char *why;
	enum base_status status;
	if (!record_clock_usable(&why))
		return base_fail(s->err, BASE_ERR_ENV, "%s", why);
	record_clock_start(&s->clock);
	status = s->has_program ? set_up_program(s, program, &s->preload) : take_signals(s);
	if (status != BASE_OK)
		return status;
	status = open_kernel(s);
	/* The kernel shows what no library can be loaded into, too. */
	if (status == BASE_OK && s->has_program && !o->emulator && o->level < 2 && !s->kernel.open)
		status = record_check_program(program, false, s->err);
	if (status != BASE_OK)
		return status;
	if (s->has_program) {
		open_perf(s);
		record_ring_warm_up(&s->ring, CALIBRATE_NS); /* the clock needs that time anyway */
	}
	status = record_clock_finish(&s->clock, CALIBRATE_NS, s->err);
	if (status != BASE_OK)
		return status;
	if (s->has_program) {
		s->ring.head->tsc_origin = s->clock.tsc_origin;
		s->ring.head->ns_per_tick_32 =
			(uint64_t)(((unsigned __int128)1000000000 << 32) / s->clock.tick_hz);
		s->ring.head->stamp_ticks = record_clock_stamp_ticks();
	}
	record_cost_measure(&s->clock, s->result);
	if (s->has_program)
		record_cost_measure_wakes(&s->clock,
			&(struct record_cost_events){.perf = s->perf,
				.sample_hz = o->sample_hz,
				.switches = o->switches},
			s->result);
	choose_sample_hz(s);
	if (o->measure_floor)
		s->floor = record_lock_floor_measure();
	status = open_trace(s);
	if (status != BASE_OK)
		return status;
	s->converting = true;
	char host[256] = "";
	status = record_converter_init(&s->converter, &s->clock, s->writer, s->err);
	record_peer_init(&s->peer);
	s->converter.world.peer_of = record_peer_of;
	s->converter.world.peer_of_ctx = &s->peer;
	s->converter.starter = (uint32_t)getpid();
	if (status == BASE_OK && o->listener) {
		s->converter.sink.listen = o->listener->put;
		s->converter.sink.listen_ctx = o->listener->ctx;
	}
	gethostname(host, sizeof host - 1);
	struct record_quota quota = record_room_quota("");
	if (status == BASE_OK)
		record_sink_host(&s->converter.sink, host);
	if (status == BASE_OK)
		record_sink_quota(&s->converter.sink, quota.quota_ns, quota.period_ns);
	return status;
}

/* ---- one round
 * ---------------------------------------------------------------------------------------------- */

static void set_recording(struct session *s, uint32_t on)
{
	if (s->has_program)
		__atomic_store_n(&s->ring.head->recording, on, __ATOMIC_RELEASE);
}

/* The trace cannot grow any more. A full disk is no failure of the recording: what is there can be
 * read. */
static void give_up(struct session *s, const struct base_err *e)
{
	if (s->full)
		return;
	s->full = true;
	set_recording(s, 0); /* the target goes on */
	if (s->memory.head)
		__atomic_store_n(&s->memory.head->recording, 0, __ATOMIC_RELEASE);
	snprintf(s->result->disk_full_why, sizeof s->result->disk_full_why, "%.*s",
		RECORD_REASON_BYTES - 1, e->nr_causes ? e->cause[0] : base_status_line(e->status));
	if (e->sys_errno == ENOSPC || e->sys_errno == EFBIG || e->sys_errno == EDQUOT) {
		s->result->count[TRACE_DIAG_disk_full]++; /* the writer counts it for the trace */
		return;
	}
	s->status = e->status;
	if (s->err)
		*s->err = *e;
}

uint64_t record_late_ns(const struct record_options *o)
{
	return o->argv && o->argv[0] ? LATE_PROGRAM_NS : LATE_NS;
}

static uint64_t nr_lost(const struct session *s)
{
	uint64_t nr = s->converter.perf_lost + s->converter.nested_lost;
	if (s->has_program)
		nr += __atomic_load_n(&s->ring.head->lost_records, __ATOMIC_RELAXED);
	if (s->kernel.open)
		nr += s->kernel.source.nr_dropped + s->kernel.source.order.nr_damaged;
	return nr;
}

/* (jitdumps have CLOCK_MONOTONIC) */
static void read_both_clocks(struct session *s)
{
	record_jit_clock(&s->converter.world,
		record_clock_from_raw(&s->clock, record_time_ns(CLOCK_MONOTONIC_RAW)),
		record_time_ns(CLOCK_MONOTONIC));
}

/* Names at the end; why places stay without one goes into the result. */
static void name_all(struct session *s)
{
	struct record_sink *sink = &s->converter.sink;
	struct record_unnamed unnamed;
	s->result->nr_named_sites =
		record_sink_name_all(sink, &unnamed) + record_jit_name_all(&s->converter.world);
	if (record_counts(s->opts))
		record_sink_name_placeless(sink);
	if (record_jit_say_unnamed(&s->converter.world, unnamed.nr, s->result->unnamed_why,
		    sizeof s->result->unnamed_why) ||
		!unnamed.nr)
		return;
	const char *path = base_strtab_get(sink->strings, sink->module[unnamed.module].path);
	const char *slash = strrchr(path, '/'), *advice = symbol_why_advice(unnamed.why);
	snprintf(s->result->unnamed_why, sizeof s->result->unnamed_why,
		"%llu of %u places in the code have no function's name, %llu of them in %.64s: "
		"%s%s%s",
		(unsigned long long)unnamed.nr, sink->nr_sites, (unsigned long long)unnamed.nr_most,
		slash ? slash + 1 : path, symbol_why_line(unnamed.why), *advice ? "; " : "",
		advice);
}

static void tell(struct session *s, uint64_t raw_ns, uint64_t reached_ns, bool final)
{
	const struct record_listener *to = s->opts->listener;
	if (final || raw_ns >= s->named_ns + NAME_EVERY_NS) {
		s->result->nr_named_sites += record_namer_look(&s->namer, &s->converter.sink) +
					     record_jit_name_new(&s->converter.world);
		s->named_ns = raw_ns;
	}
	to->reached(to->ctx, reached_ns, nr_lost(s));
	if (to->stop(to->ctx))
		s->stopped = true;
}

/* Where we and the program may run. */
static unsigned long processors_of_ours(void)
{
	cpu_set_t set;
	/* (It does not fit where there are more than 1024.) */
	return sched_getaffinity(0, sizeof set, &set) ? (unsigned long)sysconf(_SC_NPROCESSORS_ONLN)
						      : (unsigned long)CPU_COUNT(&set);
}

/* Has every processor something to do besides us? */
static void look_at_load(struct session *s, uint64_t now_ns)
{
	char text[64] = "";
	unsigned long nr_running = 0;
	if (s->load_fd >= 0 && pread(s->load_fd, text, sizeof text - 1, 0) > 0) {
		const char *at = text; /* "0.20 0.18 0.12 2/80 11206": three averages before it */
		for (unsigned i = 0; at && i < 3; i++)
			at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL;
		nr_running = at ? strtoul(at, NULL, 10) : 0;
	}
	const bool busy = nr_running > s->nr_processors;
	s->busy_looks = (uint8_t)(s->busy_looks << 1 | busy);
	s->busy_ns = busy ? now_ns : s->busy_ns;
}

/* All have, now or lately: what we took, the program would miss. A server under load sleeps between
 * two requests. */
static bool all_busy(const struct session *s, uint64_t now_ns)
{
	return s->busy_ns && now_ns - s->busy_ns < BUSY_LATELY_NS;
}

/* One has not, most of the time: other programs wake up for a moment, and nobody misses what we
 * take between. */
static bool has_spare(const struct session *s)
{
	return (s->busy_looks & 3) != 3 && __builtin_popcount(s->busy_looks) < 4;
}

/* One process, as far as the kernel's events say. */
static bool is_alone(const struct session *s)
{
	return s->converter.nr_live < 2;
}

/*
 * The buffer is also there so that we need not work beside a program that uses all processors: then
 * its records are read when there are many, or when the program has ended. What must be looked
 * up while the program lives, or is awaited by somebody, does not wait.
 */
static bool can_wait(struct session *s, uint64_t now_ns)
{
	const bool encodes = s->memory.head && has_spare(s); /* what the program is spared */
	return s->has_program && !s->opts->listener && !s->kernel.open && !record_counts(s->opts) &&
	       s->converter.nr_waiting < EVENTS_WAITING_MAX && is_alone(s) && !encodes &&
	       record_memory_can_wait(&s->memory) &&
	       record_ring_can_wait(&s->ring, &s->converter) && all_busy(s, now_ns);
}

/* Without a program nothing outlives us but the trace's file. */
static void flush_system(struct session *s, uint64_t raw_ns)
{
	struct base_err ignored = {0};
	if (s->has_program || !s->writer || raw_ns < s->flush_ns)
		return;
	s->flush_ns = raw_ns + FLUSH_EVERY_NS;
	(void)!trace_writer_flush(s->writer, &ignored); /* its next record meets the error again */
}

static void look(struct session *s, bool final)
{
	struct record_clock_pair pair;
	record_clock_read_pair(3, &pair);
	if (final || pair.raw_ns >= s->pair_ns + PAIR_EVERY_NS) {
		record_clock_add_pair(&s->clock, pair);
		s->pair_ns = pair.raw_ns;
		read_both_clocks(s);
	}
	uint64_t now = pair.tsc - s->clock.tsc_origin, limit = now + ticks_of(s, FUTURE_NS);
	uint64_t margin = s->perf || s->kernel.open ? ticks_of(s, PERF_MARGIN_NS) : 0;
	uint64_t horizon = final ? limit : now > margin ? now - margin : 0;
	if (s->perf)
		record_perf_read(
			s->perf, &s->converter, final ? UINT64_MAX : pair.raw_ns - PERF_MARGIN_NS);
	if (s->has_program)
		look_at_load(s, pair.raw_ns);
	s->cut = s->cut || (s->has_program && record_ring_was_cut(&s->ring));
	s->waits = !final && !s->cut && can_wait(s, pair.raw_ns);
	s->cold = s->has_program && !final && !s->cut && !record_ring_warm_ahead(&s->ring, WARM_NS);
	if (s->waits)
		return;
	record_kernel_read(&s->kernel, final);
	if (s->has_program && !s->cut) {
		record_ring_drain(&s->ring, &s->converter, horizon, limit, final);
		record_tally_drain(&s->ring, &s->converter, final ? now : horizon, final);
	}
	s->memory_busy = record_memory_drain(&s->memory, &s->converter, has_spare(s), final) > 0;
	record_converter_release(&s->converter, record_clock_ns(&s->clock, horizon));
	if (s->opts->listener)
		tell(s, pair.raw_ns, record_clock_ns(&s->clock, final ? now : horizon), final);
	record_keep_look(&s->keep, pair.raw_ns, record_clock_ns(&s->clock, final ? now : horizon));
	flush_system(s, pair.raw_ns);
	if (record_sink_failed(&s->converter.sink))
		give_up(s, &s->converter.sink.err);
}

static unsigned ring_percent(const struct session *s)
{
	return s->has_program && !s->cut ? s->ring.nr_used * 100 / s->ring.nr_blocks : 0;
}

static uint64_t interval_ns(struct session *s)
{
	unsigned used = ring_percent(s);
	unsigned perf = record_perf_fill_percent(s->perf);
	if (s->kernel.open && s->kernel.source.used_percent > perf)
		perf = s->kernel.source.used_percent;
	uint64_t records = s->converter.sink.nr_records;
	bool idle = records == s->records_before;
	s->records_before = records;
	if (s->full)
		return INTERVAL_IDLE_NS;
	if (s->cold)
		return 0;
	if (s->waits && perf <= PERCENT_LOW)
		return perf <= PERCENT_LOW / 2 && !s->memory.head ? INTERVAL_IDLE_NS : INTERVAL_NS;
	if (used > PERCENT_LOW || perf > PERCENT_LOW || s->memory_busy)
		return 0;
	if (s->memory.head || s->ring.nr_used > USED_BUSY || perf > PERCENT_LOW / 2)
		return INTERVAL_BUSY_NS;
	if (idle)
		return INTERVAL_IDLE_NS;
	return s->has_program ? INTERVAL_NS : INTERVAL_SYSTEM_NS;
}

static void report_progress(struct session *s)
{
	uint64_t now_ns = record_time_ns(CLOCK_MONOTONIC_RAW);
	if (!s->opts->progress || now_ns < s->progress_ns + PROGRESS_EVERY_NS)
		return;
	s->progress_ns = now_ns;
	struct record_progress p = {.elapsed_ns = now_ns - s->begin_ns,
		.records = s->converter.sink.nr_records,
		.trace_bytes = s->writer ? trace_writer_bytes(s->writer) : 0,
		.buffer_percent = ring_percent(s)};
	s->opts->progress(s->opts->progress_ctx, &p);
}

/* ---- signals
 * ---------------------------------------------------------------------------------------------- */

static uint64_t ns_of(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

static void reap(struct session *s)
{
	struct rusage usage;
	int status;
	pid_t pid;
	do
		pid = wait4(s->child.pid, &status, WNOHANG, &usage);
	while (pid < 0 && errno == EINTR);
	if (pid != s->child.pid)
		return;
	s->ended = true;
	uint64_t raw_ns = record_time_ns(CLOCK_MONOTONIC_RAW);
	s->end_ns = record_clock_from_raw(&s->clock, raw_ns);
	s->result->elapsed_ns = raw_ns - s->begin_ns;
	s->result->wait_status = status;
	s->result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	s->result->target_cpu_ns = ns_of(usage.ru_utime) + ns_of(usage.ru_stime);
}

static void handle_signals(struct session *s)
{
	struct signalfd_siginfo info;
	while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
		int signal = (int)info.ssi_signo;
		if (signal == SIGCHLD)
			continue; /* looked after below, whoever it was */
		if (signal == SIGINT && ++s->interrupts > 1)
			s->stopped = true;
		if (!s->has_program) {
			s->stopped = true;
			continue;
		}
		/* From the terminal: the target is in the same group and has got it, too. */
		if (info.ssi_code != SI_KERNEL && !s->ended)
			kill(s->child.pid, signal);
		if (signal != SIGINT && s->ended)
			s->stopped = true; /* while waiting for daemons */
	}
	if (!s->ended && s->has_program)
		reap(s);
}

/* ---- run
 * ------------------------------------------------------------------------------------------------------
 */

/* Of those who are in the ring or were seen by the kernel's events. */
static bool any_known_alive(const struct session *s)
{
	const struct record_world *w = &s->converter.world;
	const struct record_converter *c = &s->converter;
	for (size_t i = 0; i < c->nr_tasks; i++)
		if (c->task[i]->tid == c->task[i]->pid && c->task[i]->live &&
			c->task[i]->pid != c->main_pid && record_process_lives(c->task[i]->pid))
			return true;
	for (size_t i = 0; i < w->nr_images; i++)
		if (w->image[i] && !w->image[i]->ended && record_process_lives(w->image[i]->pid))
			return true;
	return false;
}

/* Who was just born may not be known yet. */
static bool any_alive(const struct session *s)
{
	return record_time_ns(CLOCK_MONOTONIC_RAW) <
		       s->begin_ns + s->result->elapsed_ns + BIRTH_NS ||
	       any_known_alive(s);
}

static bool goes_on(const struct session *s)
{
	if (s->stopped)
		return false;
	if (!s->has_program)
		return !s->opts->for_ns ||
		       record_time_ns(CLOCK_MONOTONIC_RAW) < s->begin_ns + s->opts->for_ns;
	return !s->ended || (s->opts->wait_all && any_alive(s));
}

static void run(struct session *s)
{
	struct pollfd fd = {.fd = s->signal_fd, .events = POLLIN};
	while (goes_on(s)) {
		uint64_t sleep_ns = interval_ns(s);
		struct timespec ts = {.tv_nsec = (long)sleep_ns};
		if (ppoll(&fd, 1, &ts, NULL) > 0)
			handle_signals(s);
		else if (!sleep_ns)
			sched_yield();
		if (!s->full)
			look(s, false);
		report_progress(s);
	}
	set_recording(s, 0);
	s->stolen_ns = record_clock_stolen_ns() - s->stolen_ns;
	s->result->beside_cpu_ns = record_time_ns(CLOCK_PROCESS_CPUTIME_ID) - s->started_cpu_ns;
	if (!s->full)
		look(s, true);
	if (!s->has_program)
		s->result->elapsed_ns = record_time_ns(CLOCK_MONOTONIC_RAW) - s->begin_ns;
}

static void keep(struct session *s)
{
	struct base_str command = {0};
	if (!s->has_program || !s->writer)
		return;
	record_add_command(&command, s->opts->argv);
	record_keep_open(&s->keep, &s->ring, s->writer, &s->clock,
		&(struct record_keep_what){.trace_path = s->opts->output_path,
			.command = base_str_text(&command),
			.pid = (uint32_t)s->child.pid,
			.is_plain = s->opts->plain});
	s->converter.sink.journal = s->keep.head ? &s->keep.journal : NULL;
	base_str_fini(&command);
}

static enum base_status start(struct session *s)
{
	struct record_converter *c = &s->converter;
	int why = s->has_program ? record_child_ready(&s->child) : 0;
	if (why)
		return record_memory_no_room(&s->memory, why, s->err);
	if (s->has_program) {
		c->main_pid = (uint32_t)s->child.pid;
		c->main_argv = s->opts->argv;
		struct record_task *task = record_converter_task(c, c->main_pid, c->main_pid);
		if (task)
			record_task_set_live(c, task, 1);
	}
	/* The whole system's events are many, and come when all processors are busy: we must get
	 * one in time, for a little. */
	errno = 0;
	s->nice = getpriority(PRIO_PROCESS, 0);
	if (s->kernel.open && !errno && s->nice > SYSTEM_NICE)
		setpriority(PRIO_PROCESS, 0, SYSTEM_NICE);
	s->sched_policy = sched_getscheduler(0);
	if (s->sched_policy == SCHED_OTHER && !s->kernel.open)
		sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
	keep(s);
	set_recording(s, s->opts->locks == RECORD_LOCKS_full ? RING_full : RING_on);
	s->started_cpu_ns = s->result->before_cpu_ns = record_time_ns(CLOCK_PROCESS_CPUTIME_ID);
	s->stolen_ns = record_clock_stolen_ns();
	s->begin_ns = s->progress_ns = record_time_ns(CLOCK_MONOTONIC_RAW);
	read_both_clocks(s);
	if (s->kernel.open)
		record_kernel_start(&s->kernel, c);
	why = s->has_program ? record_child_go(&s->child) : 0;
	if (!why)
		return BASE_OK;
	waitpid(s->child.pid, NULL, 0);
	s->child.pid = -1;
	s->result->exit_code = why == ENOENT || why == ENOTDIR ? RECORD_EXIT_NOT_FOUND
							       : RECORD_EXIT_NOT_EXECUTABLE;
	return base_fail_errno(s->err, why, "cannot run '%s'", s->opts->argv[0]);
}

/* ---- the end
 * ----------------------------------------------------------------------------------------------------
 */

static void count(struct session *s, enum trace_diag diag, uint64_t n)
{
	if (!n)
		return;
	s->result->count[diag] += n;
	if (s->writer)
		trace_writer_count(s->writer, diag, n);
}

static void count_kernel(struct session *s)
{
	const struct record_kernel *k = &s->kernel;
	if (!k->open) {
		count(s, TRACE_DIAG_own_threads_only, s->opts->system != RECORD_LEVEL_none);
		return;
	}
	count(s, TRACE_DIAG_kernel_dropped, k->source.nr_dropped + k->source.order.nr_damaged);
	count(s, TRACE_DIAG_kernel_gap_ms, (k->source.order.gap_ns + 999999) / 1000000);
	count(s, TRACE_DIAG_switches_lost, k->nr_switches_lost);
	count(s, TRACE_DIAG_wakes_early, k->nr_wakes_early);
	count(s, TRACE_DIAG_kernel_reordered, k->source.order.nr_reordered);
	count(s, TRACE_DIAG_kernel_late, k->source.order.nr_late);
	count(s, TRACE_DIAG_no_bpf,
		k->source.backend != &record_backend_bpf && !s->opts->system_backend);
}

static void count_all(struct session *s)
{
	const struct record_converter *c = &s->converter;
	const struct ring_head *head = s->ring.head;
	struct record_result *res = s->result;
	if (s->has_program) {
		count(s, TRACE_DIAG_records_lost,
			__atomic_load_n(&head->lost_records, __ATOMIC_RELAXED));
		count(s, TRACE_DIAG_nested_dropped,
			__atomic_load_n(&head->nested_dropped, __ATOMIC_RELAXED) + c->nested_lost);
		count(s, TRACE_DIAG_deepbound, __atomic_load_n(&head->deepbound, __ATOMIC_RELAXED));
		count(s, TRACE_DIAG_omp_disabled,
			__atomic_load_n(&head->omp_disabled, __ATOMIC_RELAXED));
		count(s, TRACE_DIAG_omp_other_tool,
			__atomic_load_n(&head->omp_other_tool, __ATOMIC_RELAXED));
	}
	count(s, TRACE_DIAG_ring_damaged, c->nr_damaged_blocks + s->cut);
	if (record_clock_much_stolen(s->stolen_ns, res->elapsed_ns))
		count(s, TRACE_DIAG_stolen_ms, s->stolen_ns / 1000000);
	count_kernel(s);
	if (!s->opts->emulator)
		count(s,
			s->kernel.open ? TRACE_DIAG_images_from_outside
				       : TRACE_DIAG_unattached_images,
			c->nr_unattached);
	count(s,
		s->perf && record_perf_is_wide(s->perf) ? TRACE_DIAG_perf_lost_of_all
							: TRACE_DIAG_perf_lost,
		c->perf_lost);
	count(s, TRACE_DIAG_no_samples, res->no_samples_why[0] != 0);
	count(s, TRACE_DIAG_no_switches, res->no_switches_why[0] != 0);
	count(s, TRACE_DIAG_killed, s->ended && WIFSIGNALED(res->wait_status));
	res->count[TRACE_DIAG_time_raised] = c->nr_late; /* the writer counts them itself */
}

static const char *mode_name(enum record_locks mode)
{
	static const char *const name[] = {
#define X(name, text) #name,
		RECORD_LOCK_MODES(X)
#undef X
	};
	return name[mode];
}

static void count_memory(struct session *s)
{
	struct record_memory *m = &s->memory;
	struct record_result *res = s->result;
	if (!m->head)
		return;
	record_memory_finish(m, &s->converter);
	res->memory_images = __atomic_load_n(&m->head->attached, __ATOMIC_RELAXED);
	res->memory_words = __atomic_load_n(&m->head->words, __ATOMIC_RELAXED);
	res->memory_words_left = m->nr_encoded_words;
	res->memory_chunk_bytes = m->nr_bytes;
	res->memory_encode_ns = record_clock_ns(
		&s->clock, __atomic_load_n(&m->head->encode_ticks, __ATOMIC_RELAXED));
	res->memory_wait_ns =
		record_clock_ns(&s->clock, __atomic_load_n(&m->head->wait_ticks, __ATOMIC_RELAXED));
	for (size_t i = 0; i < m->nr_streams; i++)
		res->memory_threads += m->stream[i].thread != 0;
	count(s, TRACE_DIAG_memory_lost, m->lost_words);
	count(s, TRACE_DIAG_ring_damaged, m->nr_damaged);
	record_memory_remove(m);
}

/* (others may still live, and their records are counted, not kept) */
static void write_cost(struct session *s)
{
	const struct record_options *o = s->opts;
	struct record_child_environment environment = {
		.preload = base_str_text(&s->preload), .ring = s->ring.path, .memory = ""};
	bool can_run = s->has_program && s->ended && !o->emulator && o->level < 2 && !s->full;
	uint64_t nr_images =
		s->has_program ? __atomic_load_n(&s->ring.head->images_attached, __ATOMIC_RELAXED)
			       : 0;
	if (can_run)
		set_recording(s, o->locks == RECORD_LOCKS_full ? RING_full : RING_on);
	record_cost_write(&s->converter, s->result, nr_images, can_run ? &environment : NULL);
	set_recording(s, RING_off);
}

static enum base_status finish(struct session *s)
{
	struct record_result *res = s->result;
	count_memory(s);
	record_converter_finish(
		&s->converter, s->ended ? res->wait_status : -1, s->end_ns, record_process_lives);
	uint64_t before_ns = record_time_ns(CLOCK_MONOTONIC_RAW);
	record_kernel_finish(&s->kernel);
	if (s->opts->listener)
		res->nr_named_sites += record_namer_look(&s->namer, &s->converter.sink) +
				       record_jit_name_all(&s->converter.world);
	else
		name_all(s);
	res->symbols_ns = record_time_ns(CLOCK_MONOTONIC_RAW) - before_ns;
	uint64_t cpu_ns = record_time_ns(CLOCK_PROCESS_CPUTIME_ID);
	res->recorder_cpu_ns = cpu_ns - s->cpu_ns;
	res->after_cpu_ns = cpu_ns - s->started_cpu_ns - res->beside_cpu_ns;
	res->kernel_events = s->kernel.nr_events;
	res->kernel_switches = s->kernel.nr_switches;
	write_cost(s);
	if (s->opts->measure_floor)
		record_lock_floor_write(&s->converter, &s->floor, mode_name(s->opts->locks));
	if (record_sink_failed(&s->converter.sink))
		give_up(s, &s->converter.sink.err);
	count_all(s);
	res->nr_sites = s->converter.sink.nr_sites;
	res->records = s->converter.sink.nr_records;
	if (!s->writer)
		return s->status;
	res->records = trace_writer_records(s->writer);
	struct stat st;
	struct base_err close_err = {0};
	enum base_status status = trace_writer_close(s->writer, &close_err);
	s->writer = NULL;
	res->trace_bytes = !stat(s->opts->output_path, &st) ? (uint64_t)st.st_size : 0;
	if (status != BASE_OK)
		give_up(s, &close_err);
	return s->status;
}

static void tear_down(struct session *s)
{
	if (s->child.pid > 0 && !s->begin_ns)
		record_child_cancel(&s->child);
	if (s->begin_ns && s->sched_policy == SCHED_OTHER)
		sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
	if (s->begin_ns && s->kernel.open)
		setpriority(PRIO_PROCESS, 0, s->nice);
	record_perf_close(s->perf);
	record_slots_close(s->slots);
	record_kernel_close(&s->kernel);
	record_namer_fini(&s->namer);
	/* (whoever lives on loads our library by it again, at the next exec) */
	if (!s->converting || !any_known_alive(s))
		record_links_remove(&s->links);
	if (s->converting) {
		record_converter_fini(&s->converter);
		record_peer_fini(&s->peer);
	}
	record_keep_close(&s->keep);
	if (s->writer && trace_writer_close(s->writer, NULL) == BASE_OK)
		unlink(s->opts->output_path); /* the program did not run */
	if (s->has_program)
		record_ring_destroy(&s->ring);
	base_str_fini(&s->preload);
	record_memory_destroy(&s->memory);
	record_valgrind_done(&s->valgrind);
	record_qemu_done(&s->qemu);
	if (s->load_fd >= 0)
		close(s->load_fd);
	if (s->signal_fd >= 0) {
		struct signalfd_siginfo info; /* those that came for us are answered */
		while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
			continue;
		close(s->signal_fd);
		sigprocmask(SIG_SETMASK, &s->before.blocked, NULL);
	}
	sigaction(SIGXFSZ, &s->before.file_too_large, NULL);
	sigaction(SIGBUS, &s->before.bus, NULL);
}

enum base_status record_run(
	const struct record_options *opts, struct record_result *ret, struct base_err *err)
{
	char program[PATH_MAX];
	bool has_program = opts->argv && opts->argv[0];
	if (opts->size != sizeof *opts || (!opts->output_path && !opts->listener) ||
		(!has_program && opts->system == RECORD_LEVEL_none))
		return base_fail(err, BASE_ERR_USAGE, "record_run: incomplete options");
	struct session *s = base_alloc(sizeof *s);
	if (!s)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for a recording");
	memset(ret, 0, sizeof *ret);
	ret->wait_status = -1;
	ret->exit_code = RECORD_EXIT_OURS;
	*s = (struct session){.opts = opts,
		.result = ret,
		.err = err,
		.has_program = has_program,
		.signal_fd = -1,
		.load_fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC),
		.nr_processors = processors_of_ours(),
		.keep = {.journal_fd = -1},
		.child = {.pid = -1}};
	s->cpu_ns = record_time_ns(CLOCK_PROCESS_CPUTIME_ID);
	/* a file that grows too large is an error, no end */
	sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, &s->before.file_too_large);
	record_bus_guard(&s->before.bus);
	enum base_status status = set_up(s, program);
	if (status == BASE_OK)
		status = start(s);
	if (status == BASE_OK) {
		run(s);
		if (!s->has_program)
			ret->exit_code = 0;
		else if (!s->ended) /* the program lives on without us */
			ret->exit_code = 128 + SIGINT;
		status = finish(s);
	}
	tear_down(s);
	ret->recorder_cpu_ns = record_time_ns(CLOCK_PROCESS_CPUTIME_ID) - s->cpu_ns;
	base_free(s);
	return status;
}
