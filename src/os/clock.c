/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - TSC ticks and CLOCK_MONOTONIC_RAW on one time line. */
#include "os/clock.h"
#include "os/processor.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000, CALIBRATE_TRIES = 64, STAMP_TRIES = 1000, COARSE_NS = 5 };

static uint64_t time_of_libc(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* (syscall() may be somebody else's, too) */
static uint64_t time_of_kernel(clockid_t id)
{
	struct timespec ts = {0};
	(void)processor_syscall(SYS_clock_gettime, (long)id, (long)&ts, 0, 0, 0, 0);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* What tells the library apart that has this address; NULL: there is none. (The first way is as fast as a clock is read; glibc has it
 * from 2.35 on.) */
static const void *clock_object_of(const void *address)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	struct dl_find_object found;
	return _dl_find_object((void *)(uintptr_t)address, &found) ? NULL : found.dlfo_link_map;
#else
	Dl_info found;
	return dladdr(address, &found) ? found.dli_fbase : NULL;
#endif
}

/* libc's is ten times as fast. It is libc's if it lies where a function does that nobody has a
 * reason to replace. */
os_time_fn *os_time_source(void)
{
	const void *clock = clock_object_of((const void *)(uintptr_t)&clock_gettime);
	bool is_libc =
		clock && clock == clock_object_of((const void *)(uintptr_t)&gnu_get_libc_version);
	return is_libc ? time_of_libc : time_of_kernel;
}

uint64_t os_time_ns(clockid_t id)
{
	return os_time_source()(id);
}

static bool clocksource_is_ours(void)
{
	char name[32] = "";
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
	if (!f)
		return false;
	bool is = fgets(name, sizeof name, f) && !strcmp(name, OS_CLOCKSOURCE "\n");
	fclose(f);
	return is;
}

bool os_clock_usable(const char **ret_why)
{
	if (os_processor_is_steady()) {
		*ret_why = OS_COUNTER_SURE;
		return true;
	}
	/* Hypervisors may hide the bit; a kernel that keeps its own time by the TSC has tested it.
	 */
	if (clocksource_is_ours()) {
		*ret_why = "the kernel's clock source is the " OS_COUNTER;
		return true;
	}
	*ret_why = "the " OS_COUNTER
		   " is not invariant: its rate may change, or differ between processors";
	return false;
}

/* "cpu  user nice system idle iowait irq softirq steal ..." */
uint64_t os_clock_parse_stolen(const char *text)
{
	unsigned long long ticks;
	return sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) == 1 ? ticks : 0;
}

uint64_t os_clock_stolen_ns(void)
{
	char line[256] = "";
	FILE *f = fopen("/proc/stat", "re");
	if (!f)
		return 0;
	bool has_line = fgets(line, sizeof line, f) != NULL;
	fclose(f);
	return has_line ? os_clock_parse_stolen(line) * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK))
			: 0;
}

bool os_clock_much_stolen(uint64_t stolen_ns, uint64_t elapsed_ns)
{
	return stolen_ns > elapsed_ns / 100 * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
}

uint64_t os_clock_coarse_tick_ns(const struct os_clock *c)
{
	const uint64_t tick_ns = c->tick_hz ? NS_PER_S / c->tick_hz : 0;
	return tick_ns >= COARSE_NS ? tick_ns : 0;
}

uint32_t os_clock_stamp_ticks(void)
{
	uint64_t least = UINT32_MAX;
	for (unsigned i = 0; i < STAMP_TRIES; i++) {
		uint64_t before = os_tsc(), ticks = os_tsc() - before;
		least = ticks < least ? ticks : least;
	}
	return (uint32_t)least;
}

uint64_t os_clock_read_pair(unsigned tries, struct os_clock_pair *ret)
{
	uint64_t best = UINT64_MAX;
	os_time_fn *read_ns = os_time_source();
	for (unsigned i = 0; i < tries; i++) {
		uint64_t before = os_tsc();
		uint64_t raw_ns = read_ns(CLOCK_MONOTONIC_RAW);
		uint64_t width = os_tsc() - before;
		if (width < best) {
			best = width;
			*ret = (struct os_clock_pair){.tsc = before + width / 2, .raw_ns = raw_ns};
		}
	}
	return best;
}

static void set_origin(struct os_clock *c, struct os_clock_pair pair)
{
	c->tsc_origin = pair.tsc;
	c->raw_origin_ns = pair.raw_ns;
	c->unix_origin_ns =
		os_time_ns(CLOCK_REALTIME) - (os_time_ns(CLOCK_MONOTONIC_RAW) - pair.raw_ns);
}

void os_clock_start(struct os_clock *c)
{
	struct os_clock_pair pair = {0};
	*c = (struct os_clock){0};
	os_clock_read_pair(CALIBRATE_TRIES, &pair);
	c->tsc_origin = pair.tsc;
	c->raw_origin_ns = pair.raw_ns;
	c->unix_origin_ns =
		os_time_ns(CLOCK_REALTIME) - (os_time_ns(CLOCK_MONOTONIC_RAW) - pair.raw_ns);
	os_clock_add_pair(c, pair);
}

bool os_clock_fix(struct os_clock *c, struct os_clock_pair first, struct os_clock_pair last)
{
	uint64_t ticks = last.tsc - first.tsc, ns = last.raw_ns - first.raw_ns;
	if (last.tsc <= first.tsc || last.raw_ns <= first.raw_ns)
		return false;
	/* 10 MHz to 100 GHz, so that the factor has at least 30 good bits and fits */
	if (ticks / ns > 100 || ns / ticks > 100)
		return false;
	c->factor = (uint64_t)(((unsigned __int128)ns << OS_CLOCK_FACTOR_SHIFT) / ticks);
	c->tick_hz = (uint64_t)((unsigned __int128)ticks * NS_PER_S / ns);
	return true;
}

enum base_status os_clock_finish(struct os_clock *c, uint64_t span_ns, struct base_err *err)
{
	struct os_clock_pair first = c->pair[0], last = first;
	uint64_t passed_ns = os_time_ns(CLOCK_MONOTONIC_RAW) - first.raw_ns;
	if (passed_ns < span_ns) {
		uint64_t left_ns = span_ns - passed_ns;
		struct timespec ts = {.tv_sec = (time_t)(left_ns / NS_PER_S),
			.tv_nsec = (long)(left_ns % NS_PER_S)};
		while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
			continue;
	}
	os_clock_read_pair(CALIBRATE_TRIES, &last);
	if (!os_clock_fix(c, first, last))
		return base_fail(err, BASE_ERR_ENV, "the " OS_COUNTER " does not advance steadily");
	os_clock_add_pair(c, last);
	set_origin(c, last);
	return BASE_OK;
}

void os_clock_add_pair(struct os_clock *c, struct os_clock_pair pair)
{
	if (c->nr_pairs) {
		struct os_clock_pair newest = c->pair[c->nr_pairs - 1];
		if (pair.tsc <= newest.tsc || pair.raw_ns <= newest.raw_ns)
			return;
	}
	if (c->nr_pairs == OS_CLOCK_PAIRS_MAX) {
		memmove(c->pair, c->pair + 1, sizeof c->pair - sizeof *c->pair);
		c->nr_pairs--;
	}
	c->pair[c->nr_pairs++] = pair;
}

uint64_t os_clock_from_raw(const struct os_clock *c, uint64_t raw_ns)
{
	if (c->nr_pairs < 2)
		return raw_ns > c->raw_origin_ns ? raw_ns - c->raw_origin_ns : 0;
	/* The segment that holds raw_ns, or the nearest one: most times are new, so from the end.
	 */
	unsigned i = c->nr_pairs - 1;
	while (i > 1 && c->pair[i - 1].raw_ns > raw_ns)
		i--;
	struct os_clock_pair a = c->pair[i - 1], b = c->pair[i];
	__int128 ticks = (__int128)((int64_t)(raw_ns - a.raw_ns)) * (int64_t)(b.tsc - a.tsc) /
			 (int64_t)(b.raw_ns - a.raw_ns);
	__int128 since = ticks + (__int128)a.tsc - (__int128)c->tsc_origin;
	return since > 0 ? os_clock_ns(c, (uint64_t)since) : 0;
}
