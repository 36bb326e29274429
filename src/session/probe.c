/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - what the recorder's library adds to a program's start, a thread, a fork, a
 * lock. */
#include "session/probe.h"

#include "base/installed.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PS_PER_US = 1000000 };

static const struct {
	const char *word;
	unsigned nr;       /* that it does */
	unsigned nr_units; /* of which the cost is asked for: two records a lock and unlock */
	unsigned pairs;
	/* What programs that do something between have of it, whose caches and pages are not ready
	 * for it: measured with loops of shells, trees of make, 8 threads with 64 locks, and
	 * threads that end at once (bench/session_cost.py). */
	unsigned cold_percent;
	unsigned nr_records; /* that come with them, and are counted by themselves */
} probes[] = {
	[SESSION_PROBE_start] = {"starts", 6, 7, 3, 150, 0}, /* and its own */
	[SESSION_PROBE_fork] = {"forks", 12, 12, 3, 150, 0},
	[SESSION_PROBE_thread] = {"threads", 64, 64, 3, 100, 0},
	[SESSION_PROBE_lock] = {"locks", 100000, 200000, 3, 125, 0},
	[SESSION_PROBE_call] = {"calls", 40000, 80000, 3, 100, 0},
	[SESSION_PROBE_record] = {"tokens", 50000, 100000, 3, 125, 0},
	[SESSION_PROBE_stack] = {"waits", 32000, 32000 / 16, 3, 100, 64000}, /* of one in 16 */
	[SESSION_PROBE_look] = {"looks", 5000, 5000, 3, 100, 10000},
	[SESSION_PROBE_end] = {"ends", 40000, 40000, 3, 100, 0},
};

/* Its processor time; 0: it did not run. */
static uint64_t probe_run_us(const char *path, const char *word, unsigned nr, char **environment)
{
	char times[16], *argv[] = {(char *)(uintptr_t)path, (char *)(uintptr_t)word, times, NULL};
	struct rusage used;
	posix_spawnattr_t attributes;
	sigset_t none;
	pid_t child;
	int status;
	snprintf(times, sizeof times, "%u", nr);
	sigemptyset(&none);
	if (posix_spawnattr_init(&attributes))
		return 0;
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	int why = posix_spawn(&child, path, NULL, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	if (why || wait4(child, &status, 0, &used) != child || status)
		return 0;
	return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000u +
	       (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* In turn, so that both meet the same machine. */
static bool probe_difference(
	enum session_probe what, const char *path, char **recorded, uint64_t *ret_us)
{
	uint64_t without_us = 0, with_us = 0;
	for (unsigned i = 0; i < probes[what].pairs; i++) {
		uint64_t bare_us = probe_run_us(path, probes[what].word, probes[what].nr, environ);
		uint64_t recorded_us =
			probe_run_us(path, probes[what].word, probes[what].nr, recorded);
		if (!bare_us || !recorded_us)
			return false;
		without_us += bare_us;
		with_us += recorded_us;
	}
	*ret_us = with_us > without_us ? (with_us - without_us) / probes[what].pairs : 0;
	return *ret_us > 0;
}

bool session_probe_measure(enum session_probe what, uint64_t record_ps,
	const struct os_child_environment *environment, uint64_t *ret_ps)
{
	char path[PATH_MAX];
	struct base_str text[OS_ENVIRONMENT_TEXTS] = {{0}};
	uint64_t all_us = 0;
	if (!base_installed_file("src/session", "longpole-probe", path))
		return false;
	char **recorded = os_make_environment(environment, text);
	bool known = recorded && probe_difference(what, path, recorded, &all_us);
	base_free(recorded);
	for (size_t i = 0; i < BASE_COUNT(text); i++)
		base_str_fini(&text[i]);
	if (!known)
		return false;
	uint64_t all_ps = all_us * PS_PER_US, records_ps = probes[what].nr_records * record_ps;
	if (all_ps <= records_ps)
		return false;
	*ret_ps = (all_ps - records_ps) / probes[what].nr_units * probes[what].cold_percent / 100;
	return true;
}
