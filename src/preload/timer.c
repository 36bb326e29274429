/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timer.c - timers that send their process a signal: what ends a run that lasts for a time. Interval
 * timers of processor time are not looked at: they end no run at a time.
 */
#include "preload/preload.h"
#include "preload/real.h"

enum { SECOND_NS = 1000000000, MICROSECOND_NS = 1000 };

static uint64_t timer_us_ns(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * SECOND_NS + (uint64_t)t->tv_usec * MICROSECOND_NS;
}

static uint64_t timer_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * SECOND_NS + (uint64_t)t->tv_nsec;
}

PRELOAD_EXPORT unsigned alarm(unsigned seconds)
{
	unsigned left = PRELOAD_REAL(alarm)(seconds);
	if (preload_active())
		PRELOAD_RECORD(signal_timer, 0, (uint64_t)seconds * SECOND_NS, 0, seconds != 0,
			PRELOAD_SITE);
	return left;
}

PRELOAD_EXPORT useconds_t ualarm(useconds_t first, useconds_t period)
{
	useconds_t left = PRELOAD_REAL(ualarm)(first, period);
	if (preload_active())
		PRELOAD_RECORD(signal_timer, 0, (uint64_t)first * MICROSECOND_NS,
			(uint64_t)period * MICROSECOND_NS, first != 0, PRELOAD_SITE);
	return left;
}

/* (`before` may be the same memory.) */
PRELOAD_EXPORT int setitimer(
	__itimer_which_t which, const struct itimerval *set, struct itimerval *before)
{
	bool known = which == ITIMER_REAL && preload_is_address(set) && preload_active();
	struct itimerval to = known ? *set : (struct itimerval){0};
	int result = PRELOAD_REAL(setitimer)((int)which, set, before);
	if (result == 0 && known && preload_active())
		PRELOAD_RECORD(signal_timer, 0, timer_us_ns(&to.it_value),
			timer_us_ns(&to.it_interval),
			to.it_value.tv_sec != 0 || to.it_value.tv_usec != 0, PRELOAD_SITE);
	return result;
}

/* (Of which clock a time is the kernel knows, and is not asked.) */
PRELOAD_EXPORT int timer_settime(
	timer_t timer, int flags, const struct itimerspec *set, struct itimerspec *before)
{
	bool known = !(flags & TIMER_ABSTIME) && preload_is_address(set) && preload_active();
	struct itimerspec to = known ? *set : (struct itimerspec){0};
	int result = PRELOAD_REAL(timer_settime)(timer, flags, set, before);
	if (result == 0 && known && preload_active())
		PRELOAD_RECORD(signal_timer, (uint64_t)(uintptr_t)timer + 1, timer_ns(&to.it_value),
			timer_ns(&to.it_interval),
			to.it_value.tv_sec != 0 || to.it_value.tv_nsec != 0, PRELOAD_SITE);
	return result;
}
