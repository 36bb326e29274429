/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - one clock for everything in a trace: nanoseconds since the ring's tsc_origin.
 *
 * Ring records carry TSC ticks; they become ns by ONE factor, fixed before the target starts. The
 * kernel stamps its events with CLOCK_MONOTONIC_RAW; those go back to ticks through pairs (tsc,
 * raw) that are sampled while recording, by piecewise linear interpolation, and then take the same
 * factor. So both agree to the width of a pair's bracket (tens of ns), however wrong the factor is.
 */
#ifndef LONGPOLE_OS_CLOCK_H
#define LONGPOLE_OS_CLOCK_H

#include "base/base.h"
#include "ring/processor.h"

#include <time.h>

enum { OS_CLOCK_PAIRS_MAX = 64, OS_CLOCK_FACTOR_SHIFT = 40 };

struct os_clock_pair {
	uint64_t tsc, raw_ns;
};

struct os_clock {
	uint64_t tsc_origin; /* time_ns 0 */
	uint64_t raw_origin_ns, unix_origin_ns;
	uint64_t tick_hz;
	uint64_t factor; /* ns = ticks * factor >> OS_CLOCK_FACTOR_SHIFT */
	struct os_clock_pair pair[OS_CLOCK_PAIRS_MAX]; /* the newest, oldest first */
	unsigned nr_pairs;
};

static inline uint64_t os_tsc(void)
{
	return processor_ticks();
}

/*
 * The kernel's clocks in ns, as it has them: what was preloaded into us, too, may stand in for
 * clock_gettime() and say another time (faketime). os_time_source() is the reading itself, for
 * those who measure it.
 */
typedef uint64_t os_time_fn(clockid_t id);
os_time_fn *os_time_source(void);
uint64_t os_time_ns(clockid_t id);

/* Is the TSC the same and steady on every processor? *ret_why: static text, both ways. */
bool os_clock_usable(const char **ret_why);

/* Of a clock that is coarser than the stamps are apart (64-bit ARM's, mostly), its tick; 0: it is
 * fine enough that nobody needs to know. */
uint64_t os_clock_coarse_tick_ns(const struct os_clock *c);

/* What a duration between two stamps has of the stamps themselves: the least, in ticks, of many
 * that have nothing in between. */
uint32_t os_clock_stamp_ticks(void);

/* What a virtual machine's host took from its processors while they had work, since boot, of all
 * processors together; 0 where the kernel does not say. Of the text of /proc/stat, in clock ticks.
 */
uint64_t os_clock_stolen_ns(void);
uint64_t os_clock_parse_stolen(const char *text);
/* At least a hundredth of what the processors could have done in that time: worth saying. */
bool os_clock_much_stolen(uint64_t stolen_ns, uint64_t elapsed_ns);

/* os_clock_read_pair() - the tightest of `tries` readings; returns its bracket's width in
 * ticks. */
uint64_t os_clock_read_pair(unsigned tries, struct os_clock_pair *ret);

/* Start: remembers the origin. Finish: waits until `span_ns` have passed since, then fixes the
 * factor. */
void os_clock_start(struct os_clock *c);
enum base_status os_clock_finish(
	struct os_clock *c, uint64_t span_ns, struct base_err *err) BASE_MUST_CHECK;
/* Fix the factor from two pairs (os_clock_finish does, tests do). False: no sane rate. */
bool os_clock_fix(struct os_clock *c, struct os_clock_pair first, struct os_clock_pair last);

/* Remember one more pair (times must grow; a pair that does not is ignored). The oldest is
 * forgotten. */
void os_clock_add_pair(struct os_clock *c, struct os_clock_pair pair);

/* ticks since tsc_origin -> time_ns */
static inline uint64_t os_clock_ns(const struct os_clock *c, uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ticks * c->factor) >> OS_CLOCK_FACTOR_SHIFT);
}

/* CLOCK_MONOTONIC_RAW -> time_ns; 0 for times before the origin. */
uint64_t os_clock_from_raw(const struct os_clock *c, uint64_t raw_ns);

#endif
