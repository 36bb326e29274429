/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - a library that makes a program's time another one, as libfaketime does: the clocks
 * begin in 2001 and run ten times as fast. */
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { TIMES = 10, NS_PER_S = 1000000000, BEGIN_S = 1000000000 };
static long long since_ns[16];

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	long result = syscall(SYS_clock_gettime, clock, ts);
	if (result || clock < 0 || clock >= 16)
		return (int)result;
	long long ns = ts->tv_sec * (long long)NS_PER_S + ts->tv_nsec;
	if (!since_ns[clock])
		since_ns[clock] = ns;
	ns = BEGIN_S * (long long)NS_PER_S + TIMES * (ns - since_ns[clock]);
	ts->tv_sec = ns / NS_PER_S;
	ts->tv_nsec = ns % NS_PER_S;
	return 0;
}

int gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec ts;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	*tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
	return 0;
}

time_t time(time_t *ret)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	if (ret)
		*ret = ts.tv_sec;
	return ts.tv_sec;
}
