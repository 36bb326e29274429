/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.c - probes. One more: a function and a row in the table at the end. */
#include "session/doctor.h"
#include "counter/counter_priv.h"
#include "os/clock.h"
#include "os/processor.h"
#include "system/perf.h"
#include "session/qemu.h"
#include "os/launch.h"
#include "symbol/symbol.h"
#include "system/system.h"
#include "os/valgrind.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void doctor_say(struct session_probe *p, const char *fmt, ...) BASE_PRINTF(2, 3);
static void doctor_say(struct session_probe *p, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(p->value, sizeof p->value, fmt, args);
	va_end(args);
}

/* The first line of a small file; false: cannot be read. */
static bool first_line(const char *path, char *text, int size)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool ok = fgets(text, size, f) != NULL;
	fclose(f);
	if (ok)
		text[strcspn(text, "\n")] = 0;
	return ok;
}

/* ---- clock ----------------------------------------------------------------------------------- */

static void probe_clock(struct session_probe *p)
{
	const char *why;
	p->ok = os_clock_usable(&why);
	doctor_say(p, "%s", why);
}

enum { COST_TIMES = 2000, COST_ROUNDS = 5, RATE_SPAN_NS = 20000000 };

static uint64_t best_ticks(bool clock_too)
{
	uint64_t best = UINT64_MAX;
	for (int round = 0; round < COST_ROUNDS; round++) {
		struct timespec ts;
		uint64_t before = os_tsc();
		for (int i = 0; i < COST_TIMES; i++) {
			if (clock_too)
				clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
			else
				(void)*(volatile uint64_t *)&(uint64_t){os_tsc()};
		}
		uint64_t ticks = os_tsc() - before;
		if (ticks < best)
			best = ticks;
	}
	return best;
}

static void probe_clock_cost(struct session_probe *p)
{
	struct os_clock c;
	os_clock_start(&c);
	p->ok = os_clock_finish(&c, RATE_SPAN_NS, NULL) == BASE_OK;
	if (!p->ok) {
		doctor_say(p, "the " OS_COUNTER " does not advance steadily");
		return;
	}
	const uint64_t tick_ns = os_clock_coarse_tick_ns(&c);
	char tick[96] = "";
	if (tick_ns)
		snprintf(tick, sizeof tick,
			" (a tick is %llu ns: shorter holds are not told apart)",
			(unsigned long long)tick_ns);
	doctor_say(p, "%.3f MHz%s; a stamp costs %.1f ns, CLOCK_MONOTONIC_RAW %.1f ns",
		(double)c.tick_hz / 1e6, tick,
		(double)os_clock_ns(&c, best_ticks(false)) / COST_TIMES,
		(double)os_clock_ns(&c, best_ticks(true)) / COST_TIMES);
}

/* ---- perf_event ------------------------------------------------------------------------------ */

static int open_counter(uint32_t type, uint64_t config)
{
	struct perf_event_attr attr = {.type = type,
		.size = sizeof attr,
		.config = config,
		.exclude_kernel = 1,
		.exclude_hv = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	int why = fd < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	return why;
}

/* As a recording opens it: for a child, on all processors. */
static bool try_perf(
	uint64_t hz, char why_samples[SYSTEM_PERF_WHY], char why_switches[SYSTEM_PERF_WHY])
{
	int hold[2];
	if (pipe(hold))
		return false;
	pid_t pid = fork();
	if (!pid) {
		char byte;
		close(hold[1]);
		(void)!read(hold[0], &byte, 1);
		_exit(0); /* allowed: a probe's child */
	}
	struct system_perf *perf =
		pid > 0 ? system_perf_open((uint32_t)pid, hz, true, why_samples, why_switches)
			: NULL;
	bool opened = perf != NULL;
	system_perf_close(perf);
	close(hold[0]);
	close(hold[1]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return opened;
}

static void probe_samples(struct session_probe *p)
{
	char why[SYSTEM_PERF_WHY] = "", unused[SYSTEM_PERF_WHY] = "";
	p->ok = try_perf(999, why, unused) && !*why;
	doctor_say(p, "%s", p->ok ? "perf_event cpu-clock, 999 Hz, user space" : why);
}

static void probe_switches(struct session_probe *p)
{
	char unused[SYSTEM_PERF_WHY] = "", why[SYSTEM_PERF_WHY] = "";
	p->ok = try_perf(0, unused, why) && !*why;
	doctor_say(p, "%s", p->ok ? "perf_event context_switch" : why);
}

static void probe_counters(struct session_probe *p)
{
	int why = open_counter(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	p->ok = !why;
	doctor_say(p, "cycles: %s%s", why ? strerror(why) : "yes",
		why == ENOENT || why == EOPNOTSUPP ? " (no counters: most virtual machines)" : "");
}

static void probe_paranoid(struct session_probe *p)
{
	char text[16] = "";
	bool known = first_line("/proc/sys/kernel/perf_event_paranoid", text, sizeof text);
	p->ok = known && (strtol(text, NULL, 10) <= 2 || !geteuid());
	doctor_say(p, "%s%s", known ? text : "no such file",
		known && !geteuid() ? " (we are root)" : "");
}

/* ---- BPF, ptrace ----------------------------------------------------------------------------- */

static bool has_capability(unsigned number)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}, {0}};
	if (syscall(SYS_capget, &header, data))
		return false;
	return (data[number / 32].effective >> number % 32 & 1) != 0;
}

/* Really opens it: so many things can refuse. */
static void probe_source(struct session_probe *p, const char *backend)
{
	enum { BUFFER_BYTES = 1 << 20 };
	struct system_options o = {
		.level = SYSTEM_LEVEL_sched, .buffer_bytes = BUFFER_BYTES, .only_backend = backend};
	struct system_attempt attempt[SYSTEM_ATTEMPTS_MAX];
	struct system_source src;
	unsigned nr;
	struct base_err ignored = {0};
	p->ok = system_source_open(&src, &o, attempt, &nr, &ignored) == BASE_OK;
	if (p->ok) {
		system_source_close(&src);
		doctor_say(p, "works");
	} else if (nr) {
		doctor_say(p, "%.40s: %.110s", system_refusal_text(attempt[0].refusal),
			attempt[0].why);
	} else {
		doctor_say(p, "no memory");
	}
}

static void probe_bpf(struct session_probe *p)
{
	probe_source(p, "bpf");
}

static void probe_tracepoints(struct session_probe *p)
{
	probe_source(p, "perf");
}

static void probe_ptrace(struct session_probe *p)
{
	char text[16] = "";
	bool restricted = first_line("/proc/sys/kernel/yama/ptrace_scope", text, sizeof text);
	long scope = restricted ? strtol(text, NULL, 10) : 0;
	p->ok = scope < 2 || (scope == 2 && has_capability(19));
	doctor_say(p, restricted ? "ptrace_scope %ld" : "not restricted", scope);
}

/* The thread's own time, as longpole/counter.h would read it in this process. */
static void probe_reads(struct session_probe *p)
{
	const enum longpole_event event = LONGPOLE_TICKS;
	struct longpole_counter c;
	int error = longpole_counter_open(&c, &event, 1, NULL);
	enum longpole_backend backend = (enum longpole_backend)c.event[0].backend;
	p->ok = !error && backend != LONGPOLE_BACKEND_SYSCALL;
	doctor_say(p, error ? "no: %s" : "by the %s",
		error ? longpole_counter_error_text(error) : longpole_backend_name(backend));
	longpole_counter_close(&c);
}

/* ---- the recorder's own needs ---------------------------------------------------------------- */

static void probe_buffer(struct session_probe *p)
{
	struct statvfs st;
	uint64_t free_bytes = 0;
	if (!statvfs("/dev/shm", &st) && !access("/dev/shm", W_OK))
		free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
	p->ok = free_bytes >= 2 * (uint64_t)(256 << 20);
	doctor_say(p, "/dev/shm: %" PRIu64 " MiB free", free_bytes >> 20);
}

static void probe_preload(struct session_probe *p)
{
	char path[PATH_MAX];
	struct base_err err = {0};
	p->ok = os_find_preload(OS_LIBRARY_PRELOAD, path, &err) == BASE_OK &&
		os_check_preload(path, &err) == BASE_OK;
	doctor_say(p, "%.*s", SESSION_PROBE_VALUE - 1, p->ok ? path : err.cause[0]);
}

static void probe_valgrind(struct session_probe *p)
{
	const char *why = os_valgrind_why_not();
	p->ok = !why;
	doctor_say(p, "%s", why ? why : "Valgrind");
}

static void probe_qemu(struct session_probe *p)
{
	struct base_str found = {0};
	session_qemu_installed(&found);
	p->ok = found.length;
	doctor_say(p, "%s", found.length ? base_str_text(&found) : "QEMU is not installed here");
	base_str_fini(&found);
}

static void probe_kernel(struct session_probe *p)
{
	struct utsname u;
	unsigned major = 0, minor = 0;
	if (!uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2)
		doctor_say(p, "%.*s %.*s", 60, u.sysname, 100, u.release);
	p->ok = major > 4 ||
		(major == 4 && minor >= 17); /* preempted switches are marked since 4.17 */
}

static void probe_processors(struct session_probe *p)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	p->ok = online > 1;
	doctor_say(p, "%ld", online);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
	struct session_probe about;
	void (*probe)(struct session_probe *p);
} probes[] = {
	{{.name = "clock",
		 .title = OS_COUNTER_TITLE,
		 .needed = true,
		 .lost = "nothing can be recorded: stamps of different processors would not "
			 "compare",
		 .instead = OS_COUNTER_ADVICE},
		probe_clock},
	{{.name = "clock_cost",
		 .title = "cost of a time stamp",
		 .needed = true,
		 .lost = "nothing can be recorded without a steady clock",
		 .instead = "use another machine"},
		probe_clock_cost},
	{{.name = "preload",
		 .title = "recorder's library",
		 .needed = true,
		 .lost = "nothing can be recorded: it writes the records, inside the program",
		 .instead = "install longpole, or set LONGPOLE_PRELOAD to liblongpole-preload.so"},
		probe_preload},
	{{.name = "buffer",
		 .title = "memory for the buffer",
		 .lost = "records when the program makes them faster than they can be read",
		 .instead = "half of what is free in /dev/shm, else in $TMPDIR; a container's "
			    "limit is raised by "
			    "--shm-size"},
		probe_buffer},
	{{.name = "switches",
		 .title = "processor switches",
		 .lost = "runnable time is counted as running: waiting for a processor is not seen",
		 .instead =
			 "locks, queues and descriptors are still exact; see perf_event_paranoid"},
		probe_switches},
	{{.name = "samples",
		 .title = "processor samples",
		 .lost = "running time is not split into functions",
		 .instead =
			 "the places of waits and locks are still exact; see perf_event_paranoid"},
		probe_samples},
	{{.name = "paranoid",
		 .title = "perf_event_paranoid",
		 .lost = "samples and switches for users who are not root",
		 .instead = "sysctl kernel.perf_event_paranoid=2"},
		probe_paranoid},
	{{.name = "counters",
		 .title = "hardware counters",
		 .lost = "cycles, instructions, cache misses: none is needed for a critical path",
		 .instead = "the time stamp counter; samples by a timer"},
		probe_counters},
	{{.name = "bpf",
		 .title = "whole system: BPF",
		 .lost = "record --system costs about three times as much, and sees no packets, "
			 "sockets "
			 "and disks",
		 .instead =
			 "tracepoints through perf rings; root, or CAP_BPF with CAP_PERFMON, may"},
		probe_bpf},
	{{.name = "reads",
		 .title = "counts read in user space",
		 .lost = "reads of a thread's own time for the price of rdtsc (longpole/counter.h)",
		 .instead = "system calls: some 300 ns each"},
		probe_reads},
	{{.name = "tracepoints",
		 .title = "whole system: perf rings",
		 .lost = "without BPF, too: record --system sees the recorded program's threads "
			 "only",
		 .instead = "root, or CAP_PERFMON and tracefs (mount -t tracefs nodev "
			    "/sys/kernel/tracing)"},
		probe_tracepoints},
	{{.name = "ptrace",
		 .title = "attaching to processes",
		 .lost = "counts by thread (longpole stat), where not even children may be traced",
		 .instead = "longpole stat --whole; programs are recorded from their start"},
		probe_ptrace},
	{{.name = "valgrind",
		 .title = "programs as they are",
		 .lost = "instructions and memory accesses of programs that longpole cc did not "
			 "build; spins are sampled",
		 .instead = "longpole cc; or install valgrind"},
		probe_valgrind},
	{{.name = "qemu",
		 .title = "other processors",
		 .lost = "memory accesses of 64-bit ARM and RISC-V programs",
		 .instead = "nothing; install qemu-user"},
		probe_qemu},
	{{.name = "kernel",
		 .title = "kernel",
		 .lost = "before 4.17: which switches were preemptions",
		 .instead = "a newer kernel"},
		probe_kernel},
	{{.name = "processors",
		 .title = "processors",
		 .lost = "with one processor, parallel programs only wait for it, and the recorder "
			 "competes with them",
		 .instead = "a machine with more"},
		probe_processors},
};

size_t session_doctor(struct session_probe probe[SESSION_PROBES_MAX])
{
	_Static_assert(BASE_COUNT(probes) <= SESSION_PROBES_MAX, "too many probes");
	for (size_t i = 0; i < BASE_COUNT(probes); i++) {
		probe[i] = probes[i].about;
		probes[i].probe(&probe[i]);
	}
	return BASE_COUNT(probes);
}
