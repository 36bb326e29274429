/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counter_clock.c - the TSC's rate. No CPUID leaf gives it in most virtual machines, so it is
 * measured against CLOCK_MONOTONIC_RAW: 10 ms between two readings that are each the tightest of
 * many, good to a few parts in a million.
 */
#include "counter/counter_priv.h"
#include "counter/processor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000, SPAN_NS = 10000000, TRIES = 64, SHIFT = 32 };

/* ticks = ns * factor >> SHIFT. 0: not measured; 1: there is no steady TSC. */
static uint64_t counter_clock_factor;

struct pair {
	uint64_t ticks, ns;
};

static struct pair read_pair(void)
{
	struct pair best = {0, 0};
	uint64_t narrowest = UINT64_MAX;
	for (int i = 0; i < TRIES; i++) {
		struct timespec ts;
		uint64_t before = longpole_rdtsc();
		clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
		uint64_t width = longpole_rdtsc() - before;
		if (width < narrowest) {
			narrowest = width;
			best.ticks = before + width / 2;
			best.ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
		}
	}
	return best;
}

/* Hypervisors may hide the bit; a kernel that keeps its own time by the TSC has tested it. */
static bool counter_clock_is_steady(void)
{
	static const char ours[] = COUNTER_CLOCKSOURCE "\n";
	char name[sizeof ours] = "";
	if (counter_is_steady())
		return true;
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, name, sizeof name - 1);
	close(fd);
	return n >= (ssize_t)sizeof ours - 1 && memcmp(name, ours, sizeof ours - 1) == 0;
}

static uint64_t counter_clock_measure(void)
{
	struct timespec left = {0, SPAN_NS};
	if (!counter_clock_is_steady())
		return 1;
	struct pair first = read_pair();
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		continue;
	struct pair last = read_pair();
	uint64_t ticks = last.ticks - first.ticks, ns = last.ns - first.ns;
	/* 10 MHz to 100 GHz */
	if (last.ticks <= first.ticks || last.ns <= first.ns || ticks / ns > 100 ||
		ns / ticks > 100)
		return 1;
	return (uint64_t)(((unsigned __int128)ticks << SHIFT) / ns);
}

/* Threads that come at the same time measure twice; the first one's result counts. */
bool counter_clock_init(void)
{
	uint64_t factor = __atomic_load_n(&counter_clock_factor, __ATOMIC_ACQUIRE);
	if (!factor) {
		uint64_t measured = counter_clock_measure();
		if (__atomic_compare_exchange_n(&counter_clock_factor, &factor, measured, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			factor = measured;
	}
	return factor != 1;
}

void counter_clock_adopt(uint64_t tick_hz)
{
	uint64_t factor = (uint64_t)(((unsigned __int128)tick_hz << SHIFT) / NS_PER_S), none = 0;
	if (factor > 1)
		__atomic_compare_exchange_n(&counter_clock_factor, &none, factor, false,
			__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

uint64_t counter_clock_ticks(uint64_t ns)
{
	uint64_t factor = __atomic_load_n(&counter_clock_factor, __ATOMIC_RELAXED);
	return (uint64_t)(((unsigned __int128)ns * factor) >> SHIFT);
}

uint64_t longpole_counter_tick_hz(void)
{
	return counter_clock_init() ? counter_clock_ticks(NS_PER_S) : 0;
}

uint64_t longpole_counter_ticks_to_ns(uint64_t ticks)
{
	uint64_t factor;
	if (!counter_clock_init())
		return 0;
	factor = __atomic_load_n(&counter_clock_factor, __ATOMIC_RELAXED);
	return (uint64_t)(((unsigned __int128)ticks << SHIFT) / factor);
}
