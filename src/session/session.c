/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - one recording, from start to end.
 *
 * The session polls: waking it would cost the target a system call. It sleeps as long as the
 * buffers allow, in SCHED_BATCH, so that it does not preempt the threads that it watches. Signals
 * arrive through a signalfd: no handlers but bus.h's, no globals.
 */
#include "session/session.h"
#include "os/bus.h"
#include "os/built.h"
#include "os/sanitizer.h"
#include "record/jit.h"
#include "session/cost.h"
#include "session/private.h"
#include "session/recover.h"
#include "session/room.h"

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
	PAGE_BYTES = 4096, /* what the ring is laid out for (ring_blocks_offset()) */
	CALIBRATE_NS = 20000000,
	WARM_NS = 2000000, /* of a look, to get memory that the program will need */
	PAIR_EVERY_NS = 5000000,
	PROGRESS_EVERY_NS = 200000000,
	SAMPLE_HZ_LEAST = 199,
	SAMPLES_NS_MAX = 15000000, /* what samples may take of a second of a processor */
	FUTURE_NS = 1000000000,    /* a stamp that much ahead is damage */
	BUSY_LATELY_NS = 250000000,
	INTERVAL_BUSY_NS = 1000000, /* between two looks at the buffers */
	INTERVAL_NS = 5000000,
	UNNAMED_FEW = 10,              /* one place of so many without a name is worth a sentence */
	INTERVAL_SYSTEM_NS = 10000000, /* its buffers are large; names of threads that end soon are
					  not */
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
#define ASKED_WITHIN                                                                               \
	0.05 /* of the run: a program that ends that soon after a signal ends
				because of it */

#define EACH_SOURCE(x)                                                                             \
	for (const struct session_source *(x) = session_sources;                                   \
		(x) < session_sources + SESSION_NR_SOURCES; (x)++)

struct session_options session_options_default(void)
{
	return (struct session_options){.size = sizeof(struct session_options),
		.sample_hz = SESSION_SAMPLE_HZ,
		.stack_depth = SESSION_STACK_DEPTH,
		.switches = true};
}

static uint64_t ticks_of(const struct session *s, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * s->clock.tick_hz / 1000000000u);
}

/* ---- set up ---------------------------------------------------------------------------------- */

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

static enum base_status open_trace(struct session *s)
{
	char host[256] = "";
	if (s->opts->listener)
		return BASE_OK;
	struct base_str command = {0};
	gethostname(host, sizeof host - 1);
	if (s->opts->argv)
		base_str_add_command(&command, s->opts->argv);
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
			     (s->kernel.level == SYSTEM_LEVEL_full ? TRACE_INFO_KERNEL : 0);
	if (s->opts->wait_all)
		info.flags |= TRACE_INFO_WAIT_ALL;
	enum base_status status =
		trace_writer_open(s->opts->output_path, &info, &s->writer, s->err);
	if (status == BASE_OK && s->opts->plain)
		trace_writer_set_plain(s->writer);
	base_str_fini(&command);
	return status;
}

static const char *session_library_of(const struct session_options *o)
{
	return o->calls            ? OS_LIBRARY_CALLS
	       : session_counts(o) ? OS_LIBRARY_TALLY
				   : OS_LIBRARY_PRELOAD;
}

/* What LD_PRELOAD is to say: one library, or two. */
static enum base_status find_libraries(struct session *s, struct base_str *ret)
{
	const struct session_options *o = s->opts;
	char path[PATH_MAX], way[PATH_MAX];
	enum base_status status = os_find_preload(session_library_of(o), path, s->err);
	if (status == BASE_OK)
		status = os_check_preload(path, s->err);
	if (status == BASE_OK)
		status = os_links_way(&s->links, path, way, s->err);
	if (status != BASE_OK)
		return status;
	base_str_add(ret, way);
	if (!o->heap || o->calls)
		return BASE_OK;
	status = os_find_preload(OS_LIBRARY_HEAP, path, s->err);
	if (status == BASE_OK)
		status = os_links_way(&s->links, path, way, s->err);
	if (status == BASE_OK)
		base_str_addf(ret, ":%s", way);
	return status;
}

static enum base_status start_program(struct session *s, const char *program, const char *preload)
{
	enum base_status status = BASE_OK;
	struct session_launch l = {.path = program,
		.argv = s->opts->argv,
		.environment = {.preload = preload,
			.ring = s->ring.path,
			.memory = s->memory.path,
			.prepare = s->memory.head ? session_memory_make_pages : NULL,
			.prepare_ctx = &s->memory}};
	EACH_SOURCE (x)
		if (x->launch && x->launch(s, &l, &status))
			break;
	return status != BASE_OK ? status
				 : os_child_start(&s->child, l.path, l.argv, &l.environment,
					   &s->before, s->err);
}

static enum base_status session_prepare(struct session *s)
{
	enum base_status status = BASE_OK;
	session_left_make_way(s->opts->listener ? NULL : s->opts->output_path);
	EACH_SOURCE (x)
		if (x->prepare && status == BASE_OK)
			status = x->prepare(s);
	return status == BASE_OK ? take_signals(s) : status;
}

/* A process that runs already: nothing is done to it yet. */
static enum base_status set_up_attach(struct session *s)
{
	enum base_status status = session_attach_prepare(&s->attach, s->opts->attach->pid, s->err);
	if (status == BASE_OK)
		status = session_prepare(s);
	if (status == BASE_OK)
		s->child.pid = s->attach.pid;
	return status;
}

static enum base_status set_up_program(
	struct session *s, char program[PATH_MAX], struct base_str *preload)
{
	const struct session_options *o = s->opts;
	enum base_status status;
	if (o->attach)
		return set_up_attach(s);
	s->memory_level = o->level;
	if (!o->emulator && o->level >= 2)
		status = os_find_rewritten(
			o->argv[0], &s->memory_level, program, &s->result->exit_code, s->err);
	else
		status = os_find_program(o->argv[0], program, &s->result->exit_code, s->err);
	if (status == BASE_OK && session_counts(s->opts) && os_is_wrapped(program))
		status = base_fail(s->err, BASE_ERR_ENV,
			"%s is a static program that records itself, which cannot count: record "
			"it (longpole record, longpole locks --mode=stamps)",
			program);
	const struct os_sanitizer *by =
		status == BASE_OK && !o->emulator ? os_sanitizer_of(program) : NULL;
	if (by && o->calls)
		status = base_fail(s->err, BASE_ERR_ENV,
			"%s was built with %s, which replaces the functions that are to be "
			"counted: count a build without it (longpole record takes both)",
			program, by->name);
	if (status == BASE_OK)
		status = find_libraries(s, preload);
	if (status != BASE_OK)
		return status;
	status = session_prepare(s);
	return status == BASE_OK ? start_program(s, program, base_str_text(preload)) : status;
}

/* A sample is an interrupt: 2 us of bare metal, 20 and more where a hypervisor has to help. */
static void choose_sample_hz(struct session *s)
{
	uint64_t hz = s->opts->sample_hz;
	while (!s->opts->samples_exact && hz / 2 >= SAMPLE_HZ_LEAST &&
		hz * s->result->sample_ns > SAMPLES_NS_MAX)
		hz /= 2;
	if (hz != s->opts->sample_hz &&
		!(system_perf_set_sample_hz(s->perf, hz) && system_samples_set_hz(&s->kernel, hz)))
		hz = s->opts->sample_hz;
	s->result->sample_hz = hz;
}

/* What turns records of the sources into the trace's, and what it says of this machine first. */
static enum base_status set_up_converter(struct session *s)
{
	const struct session_options *o = s->opts;
	char host[256] = "";
	s->converting = true;
	enum base_status status =
		record_converter_init(&s->converter, &s->clock, s->writer, s->err);
	os_peer_init(&s->peer);
	s->converter.world.peer_of = os_peer_of;
	s->converter.world.peer_of_ctx = &s->peer;
	s->converter.starter = (uint32_t)getpid();
	if (status == BASE_OK && o->listener) {
		s->converter.sink.listen = o->listener->put;
		s->converter.sink.listen_ctx = o->listener->ctx;
	}
	gethostname(host, sizeof host - 1);
	struct session_quota quota = session_room_quota("");
	if (status == BASE_OK)
		record_sink_host(&s->converter.sink, host);
	if (status == BASE_OK)
		record_sink_quota(&s->converter.sink, quota.quota_ns, quota.period_ns);
	return status;
}

static enum base_status session_set_up(struct session *s, char program[PATH_MAX])
{
	const struct session_options *o = s->opts;
	const char *why;
	enum base_status status;
	if (!os_clock_usable(&why))
		return base_fail(s->err, BASE_ERR_ENV, "%s", why);
	if (sysconf(_SC_PAGESIZE) != PAGE_BYTES) /* (64-bit ARM has others, too) */
		return base_fail(s->err, BASE_ERR_ENV,
			"this kernel's pages are of %ld bytes: only pages of %d can be recorded "
			"with",
			sysconf(_SC_PAGESIZE), PAGE_BYTES);
	os_clock_start(&s->clock);
	status = s->has_program ? set_up_program(s, program, &s->preload) : take_signals(s);
	if (status != BASE_OK)
		return status;
	EACH_SOURCE (x)
		if (x->open && status == BASE_OK)
			status = x->open(s);
	/* The kernel shows what no library can be loaded into, too. */
	if (status == BASE_OK && s->has_program && !o->attach && !o->emulator && o->level < 2 &&
		!s->kernel.open)
		status = os_check_program(program, false, s->err);
	if (status != BASE_OK)
		return status;
	if (s->has_program)
		session_ring_warm_up(&s->ring, CALIBRATE_NS); /* the clock needs that time anyway */
	status = os_clock_finish(&s->clock, CALIBRATE_NS, s->err);
	if (status != BASE_OK)
		return status;
	if (s->has_program) {
		s->ring.head->tsc_origin = s->clock.tsc_origin;
		s->ring.head->ns_per_tick_32 =
			(uint64_t)(((unsigned __int128)1000000000 << 32) / s->clock.tick_hz);
		s->ring.head->stamp_ticks = os_clock_stamp_ticks();
	}
	session_cost_measure(&s->clock, s->result);
	if (s->has_program)
		session_cost_measure_wakes(&s->clock,
			&(struct session_cost_events){.perf = s->perf,
				.sample_hz = o->sample_hz,
				.switches = o->switches},
			s->result);
	choose_sample_hz(s);
	if (o->measure_floor)
		s->floor = session_lock_floor_measure();
	status = open_trace(s);
	if (status != BASE_OK)
		return status;
	return set_up_converter(s);
}

/* ---- one round ------------------------------------------------------------------------------- */

/* The trace cannot grow any more. A full disk is no failure of the recording: what is there can be
 * read. */
static void session_give_up(struct session *s, const struct base_err *e)
{
	if (s->full)
		return;
	s->full = true;
	EACH_SOURCE (x)
		if (x->stop)
			x->stop(s); /* the target goes on */
	snprintf(s->result->disk_full_why, sizeof s->result->disk_full_why, "%.*s",
		SESSION_REASON_BYTES - 1, e->nr_causes ? e->cause[0] : base_status_line(e->status));
	if (e->sys_errno == ENOSPC || e->sys_errno == EFBIG || e->sys_errno == EDQUOT) {
		s->result->count[TRACE_DIAG_disk_full]++; /* the writer counts it for the trace */
		return;
	}
	s->status = e->status;
	if (s->err)
		*s->err = *e;
}

uint64_t session_late_ns(const struct session_options *o)
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
		os_clock_from_raw(&s->clock, os_time_ns(CLOCK_MONOTONIC_RAW)),
		os_time_ns(CLOCK_MONOTONIC));
}

/* Names at the end; why places stay without one goes into the result. */
static void session_name_all(struct session *s)
{
	struct record_sink *sink = &s->converter.sink;
	struct record_unnamed unnamed;
	s->result->nr_named_sites =
		record_sink_name_all(sink, &unnamed) + record_jit_name_all(&s->converter.world);
	if (session_counts(s->opts))
		record_sink_name_placeless(sink);
	/* (a few change no answer: those that have much of the path are seen there) */
	if (record_jit_say_unnamed(&s->converter.world, unnamed.nr, s->result->unnamed_why,
		    sizeof s->result->unnamed_why) ||
		unnamed.nr * UNNAMED_FEW < sink->nr_sites || !unnamed.nr)
		return;
	const char *path = base_strtab_get(sink->strings, sink->module[unnamed.module].path);
	const char *slash = strrchr(path, '/'), *advice = symbol_why_advice(unnamed.why);
	(void)base_format(s->result->unnamed_why, sizeof s->result->unnamed_why,
		"%llu of %u {place|places} in the code have no function's name, %llu of them in "
		"%.64s: "
		"%s%s%s",
		(unsigned long long)unnamed.nr, sink->nr_sites, (unsigned long long)unnamed.nr_most,
		slash ? slash + 1 : path, symbol_why_line(unnamed.why), *advice ? "; " : "",
		advice);
}

static void session_tell(struct session *s, uint64_t raw_ns, uint64_t reached_ns, bool final)
{
	const struct session_listener *to = s->opts->listener;
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
	if (s->load.fd >= 0 && pread(s->load.fd, text, sizeof text - 1, 0) > 0) {
		const char *at = text; /* "0.20 0.18 0.12 2/80 11206": three averages before it */
		for (unsigned i = 0; at && i < 3; i++)
			at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL;
		nr_running = at ? strtoul(at, NULL, 10) : 0;
	}
	const bool busy = nr_running > s->nr_processors;
	s->load.busy_looks = (uint8_t)(s->load.busy_looks << 1 | busy);
	s->load.busy_ns = busy ? now_ns : s->load.busy_ns;
}

/* All have, now or lately: what we took, the program would miss. A server under load sleeps between
 * two requests. */
static bool all_busy(const struct session *s, uint64_t now_ns)
{
	return s->load.busy_ns && now_ns - s->load.busy_ns < BUSY_LATELY_NS;
}

bool session_has_spare(const struct session *s)
{
	return (s->load.busy_looks & 3) != 3 && __builtin_popcount(s->load.busy_looks) < 4;
}

/* One process, as far as the kernel's events say. */
static bool session_is_alone(const struct session *s)
{
	return s->converter.nr_live < 2;
}

/*
 * The buffer is also there so that we need not work beside a program that uses all processors: then
 * its records are read when there are many, or when the program has ended. What must be looked
 * up while the program lives, or is awaited by somebody, does not wait.
 */
static bool session_can_wait(struct session *s, uint64_t now_ns)
{
	bool may = s->has_program && !s->opts->listener && session_is_alone(s) &&
		   all_busy(s, now_ns) && s->converter.nr_waiting < EVENTS_WAITING_MAX;
	EACH_SOURCE (x)
		may = may && (!x->may_wait || x->may_wait(s));
	return may;
}

static void read_sources(struct session *s, const struct session_look *l, bool hasty)
{
	EACH_SOURCE (x)
		if (x->read && x->is_hasty == hasty)
			x->read(s, l);
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

static void session_look(struct session *s, bool final)
{
	struct os_clock_pair pair;
	os_clock_read_pair(3, &pair);
	if (final || pair.raw_ns >= s->pair_ns + PAIR_EVERY_NS) {
		os_clock_add_pair(&s->clock, pair);
		s->pair_ns = pair.raw_ns;
		read_both_clocks(s);
	}
	struct session_look l = {
		.raw_ns = pair.raw_ns, .now = pair.tsc - s->clock.tsc_origin, .is_final = final};
	uint64_t margin = s->perf || s->kernel.open ? ticks_of(s, SESSION_PERF_MARGIN_NS) : 0;
	l.limit = l.now + ticks_of(s, FUTURE_NS);
	l.horizon = final ? l.limit : l.now > margin ? l.now - margin : 0;
	read_sources(s, &l, true);
	if (s->has_program)
		look_at_load(s, pair.raw_ns);
	s->cut = s->cut || (s->has_program && session_ring_was_cut(&s->ring));
	s->waits = !final && !s->cut && session_can_wait(s, pair.raw_ns);
	s->cold =
		s->has_program && !final && !s->cut && !session_ring_warm_ahead(&s->ring, WARM_NS);
	if (s->waits)
		return;
	read_sources(s, &l, false);
	record_converter_release(&s->converter, os_clock_ns(&s->clock, l.horizon));
	if (s->opts->listener)
		session_tell(
			s, pair.raw_ns, os_clock_ns(&s->clock, final ? l.now : l.horizon), final);
	session_keep_look(&s->keep, pair.raw_ns, os_clock_ns(&s->clock, final ? l.now : l.horizon));
	flush_system(s, pair.raw_ns);
	if (record_sink_failed(&s->converter.sink))
		session_give_up(s, &s->converter.sink.err);
}

/* The fullest of the buffers; hasty: of those that are read in each round. */
static unsigned fill_percent(const struct session *s, bool hasty)
{
	unsigned most = 0;
	EACH_SOURCE (x) {
		unsigned percent =
			x->fill_percent && (x->is_hasty || !hasty) ? x->fill_percent(s) : 0;
		most = percent > most ? percent : most;
	}
	return most;
}

static uint64_t interval_ns(struct session *s)
{
	unsigned used = fill_percent(s, false), hasty = fill_percent(s, true);
	uint64_t records = s->converter.sink.nr_records;
	bool idle = records == s->records_before;
	s->records_before = records;
	if (s->full)
		return INTERVAL_IDLE_NS;
	if (s->cold)
		return 0;
	if (s->waits && hasty <= PERCENT_LOW)
		return hasty <= PERCENT_LOW / 2 && !s->memory.head ? INTERVAL_IDLE_NS : INTERVAL_NS;
	if (used > PERCENT_LOW)
		return 0;
	if (s->memory.head || s->ring.nr_used > USED_BUSY || used > PERCENT_LOW / 2)
		return INTERVAL_BUSY_NS;
	if (idle)
		return INTERVAL_IDLE_NS;
	return s->has_program ? INTERVAL_NS : INTERVAL_SYSTEM_NS;
}

static void report_progress(struct session *s)
{
	uint64_t now_ns = os_time_ns(CLOCK_MONOTONIC_RAW);
	if (!s->opts->progress || now_ns < s->progress_ns + PROGRESS_EVERY_NS)
		return;
	s->progress_ns = now_ns;
	struct session_progress p = {.elapsed_ns = now_ns - s->begin_ns,
		.records = s->converter.sink.nr_records,
		.trace_bytes = s->writer ? trace_writer_bytes(s->writer) : 0,
		.buffer_percent = fill_percent(s, false)};
	s->opts->progress(s->opts->progress_ctx, &p);
}

/* ---- signals --------------------------------------------------------------------------------- */

static uint64_t session_ns_of(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

static void session_reap(struct session *s)
{
	struct rusage usage;
	int status;
	pid_t pid;
	if (s->attach.pid)
		return;
	do
		pid = wait4(s->child.pid, &status, WNOHANG, &usage);
	while (pid < 0 && errno == EINTR);
	if (pid != s->child.pid)
		return;
	s->ended = true;
	uint64_t raw_ns = os_time_ns(CLOCK_MONOTONIC_RAW);
	s->end_ns = os_clock_from_raw(&s->clock, raw_ns);
	s->result->elapsed_ns = raw_ns - s->begin_ns;
	s->result->wait_status = status;
	s->result->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	s->result->target_cpu_ns = session_ns_of(usage.ru_utime) + session_ns_of(usage.ru_stime);
}

static void handle_signals(struct session *s)
{
	struct signalfd_siginfo info;
	while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
		int signal = (int)info.ssi_signo;
		if (signal == SIGCHLD)
			continue; /* looked after below, whoever it was */
		if (signal == SIGINT && ++s->asked.nr_interrupts > 1)
			s->stopped = true;
		if (!s->has_program || s->attach.pid) { /* it is not for the program */
			s->stopped = true;
			continue;
		}
		if (!s->ended) {
			s->asked.signal = signal;
			s->asked.ns = os_time_ns(CLOCK_MONOTONIC_RAW);
		}
		/* From the terminal: the target is in the same group and has got it, too. */
		if (info.ssi_code != SI_KERNEL && !s->ended)
			kill(s->child.pid, signal);
		if (signal != SIGINT && s->ended)
			s->stopped = true; /* while waiting for daemons */
	}
	if (!s->ended && s->has_program)
		session_reap(s);
}

/* ---- run ------------------------------------------------------------------------------------- */

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

/* A thread that was just born may not be known yet. */
static bool session_any_alive(const struct session *s)
{
	return os_time_ns(CLOCK_MONOTONIC_RAW) < s->begin_ns + s->result->elapsed_ns + BIRTH_NS ||
	       any_known_alive(s);
}

static bool session_goes_on(const struct session *s)
{
	if (s->stopped)
		return false;
	if (!s->has_program || s->attach.pid)
		return !s->ended && (!s->opts->for_ns || os_time_ns(CLOCK_MONOTONIC_RAW) <
								 s->begin_ns + s->opts->for_ns);
	return !s->ended || (s->opts->wait_all && session_any_alive(s));
}

/* Has a process that is not our child ended? How, only its parent knows. */
static void session_watch(struct session *s)
{
	if (!s->attach.pid || s->ended)
		return;
	session_attach_time(s);
	if (!session_attach_has_ended(&s->attach))
		return;
	uint64_t raw_ns = os_time_ns(CLOCK_MONOTONIC_RAW);
	s->ended = true;
	s->end_ns = os_clock_from_raw(&s->clock, raw_ns);
	s->result->elapsed_ns = raw_ns - s->begin_ns;
}

static void session_session_run(struct session *s)
{
	struct pollfd fd = {.fd = s->signal_fd, .events = POLLIN};
	while (session_goes_on(s)) {
		uint64_t sleep_ns = interval_ns(s);
		struct timespec ts = {.tv_nsec = (long)sleep_ns};
		if (ppoll(&fd, 1, &ts, NULL) > 0)
			handle_signals(s);
		else if (!sleep_ns)
			sched_yield();
		if (!s->full)
			session_look(s, false);
		session_watch(s);
		report_progress(s);
	}
	session_set_recording(s, RING_off);
	if (s->attach.pid)
		session_attach_leave(s);
	s->stolen_ns = os_clock_stolen_ns() - s->stolen_ns;
	s->result->beside_cpu_ns = os_time_ns(CLOCK_PROCESS_CPUTIME_ID) - s->started_cpu_ns;
	if (!s->full)
		session_look(s, true);
	if (!s->has_program || (s->attach.pid && !s->ended))
		s->result->elapsed_ns = os_time_ns(CLOCK_MONOTONIC_RAW) - s->begin_ns;
}

static void session_keep(struct session *s)
{
	struct base_str command = {0};
	if (!s->has_program || !s->writer)
		return;
	base_str_add_command(&command, s->opts->argv);
	session_keep_open(&s->keep, &s->ring, s->writer, &s->clock,
		&(struct session_keep_what){.trace_path = s->opts->output_path,
			.command = base_str_text(&command),
			.pid = (uint32_t)s->child.pid,
			.is_plain = s->opts->plain});
	s->converter.sink.journal = s->keep.head ? &s->keep.journal : NULL;
	base_str_fini(&command);
}

static enum base_status session_start(struct session *s)
{
	struct record_converter *c = &s->converter;
	int why = s->has_program && !s->attach.pid ? os_child_ready(&s->child) : 0;
	if (why)
		return session_memory_no_room(&s->memory, why, s->err);
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
	/* (a thread that we stop is to go on soon) */
	if (s->sched_policy == SCHED_OTHER && !s->kernel.open && !s->attach.pid)
		sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
	session_keep(s);
	s->started_cpu_ns = s->result->before_cpu_ns = os_time_ns(CLOCK_PROCESS_CPUTIME_ID);
	s->stolen_ns = os_clock_stolen_ns();
	s->begin_ns = s->progress_ns = os_time_ns(CLOCK_MONOTONIC_RAW);
	read_both_clocks(s);
	EACH_SOURCE (x)
		if (x->begin)
			x->begin(s);
	if (s->attach.pid)
		return session_attach_go(s);
	why = s->has_program ? os_child_go(&s->child) : 0;
	if (!why)
		return BASE_OK;
	waitpid(s->child.pid, NULL, 0);
	s->child.pid = -1;
	s->result->exit_code = why == ENOENT || why == ENOTDIR ? SESSION_EXIT_NOT_FOUND
							       : SESSION_EXIT_NOT_EXECUTABLE;
	return base_fail_errno(s->err, why, "cannot run '%s'", s->opts->argv[0]);
}

/* ---- the end --------------------------------------------------------------------------------- */

void session_count(struct session *s, enum trace_diag diag, uint64_t n)
{
	if (!n)
		return;
	s->result->count[diag] += n;
	if (s->writer)
		trace_writer_count(s->writer, diag, n);
}

/* Did somebody ask the program to end through us, and it did? (A signal that it does not handle its
 * wait status tells.) */
static bool session_ends_as_asked(const struct session *s)
{
	const struct session_result *res = s->result;
	uint64_t end_ns = s->begin_ns + res->elapsed_ns;
	return s->ended && s->asked.signal && WIFEXITED(res->wait_status) &&
	       s->asked.ns <= end_ns &&
	       (double)(end_ns - s->asked.ns) <= ASKED_WITHIN * (double)res->elapsed_ns;
}

static void session_count_all(struct session *s)
{
	const struct record_converter *c = &s->converter;
	struct session_result *res = s->result;
	session_count(s, TRACE_DIAG_clock_tick_ns, os_clock_coarse_tick_ns(&s->clock));
	/* (which are told by themselves) */
	uint64_t unsuited =
		s->has_program ? __atomic_load_n(&s->ring.head->unsuited, __ATOMIC_RELAXED) : 0;
	EACH_SOURCE (x)
		if (x->count)
			x->count(s);
	session_count(s, TRACE_DIAG_ring_damaged, c->nr_damaged_blocks + s->cut);
	if (os_clock_much_stolen(s->stolen_ns, res->elapsed_ns))
		session_count(s, TRACE_DIAG_stolen_ms, s->stolen_ns / 1000000);
	if (!s->opts->emulator)
		session_count(s,
			s->kernel.open ? TRACE_DIAG_images_from_outside
				       : TRACE_DIAG_unattached_images,
			c->nr_unattached > unsuited ? c->nr_unattached - unsuited : 0);
	session_count(s, TRACE_DIAG_killed, s->ended && WIFSIGNALED(res->wait_status));
	session_count(s, TRACE_DIAG_asked_to_end,
		session_ends_as_asked(s) ? (uint64_t)s->asked.signal : 0);
	session_count(s, TRACE_DIAG_ended_before, !s->ended);
	res->count[TRACE_DIAG_time_raised] = c->nr_late; /* the writer counts them itself */
}

static const char *mode_name(enum session_locks mode)
{
	static const char *const name[] = {
#define X(name, text) #name,
		SESSION_LOCK_MODES(X)
#undef X
	};
	return name[mode];
}

/* (others may still live, and their records are counted, not kept) */
static void write_cost(struct session *s)
{
	const struct session_options *o = s->opts;
	struct os_child_environment environment = {
		.preload = base_str_text(&s->preload), .ring = s->ring.path, .memory = ""};
	bool can_run = s->has_program && s->ended && !s->attach.pid && !o->emulator &&
		       o->level < 2 && !s->full;
	if (can_run)
		session_set_recording(s, o->locks == SESSION_LOCKS_full ? RING_full : RING_on);
	session_cost_write(&s->converter, s->result, s->has_program ? s->ring.head : NULL,
		can_run ? &environment : NULL);
	session_set_recording(s, RING_off);
}

static enum base_status session_finish(struct session *s)
{
	struct session_result *res = s->result;
	EACH_SOURCE (x)
		if (x->finish)
			x->finish(s);
	record_converter_finish(
		&s->converter, s->ended ? res->wait_status : -1, s->end_ns, record_process_lives);
	uint64_t before_ns = os_time_ns(CLOCK_MONOTONIC_RAW);
	EACH_SOURCE (x)
		if (x->define)
			x->define(s);
	if (s->opts->listener)
		res->nr_named_sites += record_namer_look(&s->namer, &s->converter.sink) +
				       record_jit_name_all(&s->converter.world);
	else
		session_name_all(s);
	res->symbols_ns = os_time_ns(CLOCK_MONOTONIC_RAW) - before_ns;
	uint64_t cpu_ns = os_time_ns(CLOCK_PROCESS_CPUTIME_ID);
	res->recorder_cpu_ns = cpu_ns - s->cpu_ns;
	res->after_cpu_ns = cpu_ns - s->started_cpu_ns - res->beside_cpu_ns;
	write_cost(s);
	if (s->opts->measure_floor)
		session_lock_floor_write(&s->converter, &s->floor, mode_name(s->opts->locks));
	if (record_sink_failed(&s->converter.sink))
		session_give_up(s, &s->converter.sink.err);
	session_count_all(s);
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
		session_give_up(s, &close_err);
	return s->status;
}

static void tear_down(struct session *s)
{
	if (s->child.pid > 0 && !s->begin_ns && !s->attach.pid)
		os_child_cancel(&s->child);
	if (s->begin_ns && s->sched_policy == SCHED_OTHER)
		sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
	if (s->begin_ns && s->kernel.open)
		setpriority(PRIO_PROCESS, 0, s->nice);
	record_namer_fini(&s->namer);
	/* (whoever lives on loads our library by it again, at the next exec) */
	if (!s->converting || !any_known_alive(s))
		os_links_remove(&s->links);
	if (s->converting) {
		record_converter_fini(&s->converter);
		os_peer_fini(&s->peer);
	}
	session_keep_close(&s->keep);
	if (s->writer && trace_writer_close(s->writer, NULL) == BASE_OK)
		unlink(s->opts->output_path); /* the program did not run */
	EACH_SOURCE (x)
		if (x->close)
			x->close(s);
	session_attach_close(&s->attach);
	base_str_fini(&s->preload);
	if (s->load.fd >= 0)
		close(s->load.fd);
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

enum base_status session_run(
	const struct session_options *opts, struct session_result *ret, struct base_err *err)
{
	char program[PATH_MAX];
	bool has_program = opts->argv && opts->argv[0];
	if (opts->size != sizeof *opts || (!opts->output_path && !opts->listener) ||
		(!has_program && opts->system == SYSTEM_LEVEL_none))
		return base_fail(err, BASE_ERR_USAGE, "session_run: incomplete options");
	struct session *s = base_alloc(sizeof *s);
	if (!s)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for a recording");
	memset(ret, 0, sizeof *ret);
	ret->wait_status = -1;
	ret->exit_code = SESSION_EXIT_OURS;
	*s = (struct session){.opts = opts,
		.result = ret,
		.err = err,
		.has_program = has_program,
		.signal_fd = -1,
		.load.fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC),
		.nr_processors = processors_of_ours(),
		.keep = {.journal_fd = -1},
		.child = {.pid = -1}};
	s->cpu_ns = os_time_ns(CLOCK_PROCESS_CPUTIME_ID);
	/* a file that grows too large is an error, no end */
	sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = SIG_IGN}, &s->before.file_too_large);
	os_bus_guard(&s->before.bus);
	enum base_status status = session_set_up(s, program);
	if (status == BASE_OK)
		status = session_start(s);
	if (status == BASE_OK) {
		session_session_run(s);
		if (!s->has_program || s->attach.pid)
			ret->exit_code = 0;
		else if (!s->ended) /* the program lives on without us */
			ret->exit_code = 128 + SIGINT;
		status = session_finish(s);
	}
	tear_down(s);
	ret->recorder_cpu_ns = os_time_ns(CLOCK_PROCESS_CPUTIME_ID) - s->cpu_ns;
	base_free(s);
	return status;
}
