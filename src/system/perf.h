/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf.h - what the kernel tells about the target through perf_event: samples, processor switches,
 * births and deaths.
 *
 * One software event a processor, user space only. With privilege (CAP_PERFMON, or
 * perf_event_paranoid below 1) it sees everybody, and what is not the target's is left out
 * (system/perf_own.h): the target's switches cost next to nothing. Samples, which bring pieces of
 * stacks, then have an event and a buffer of their own: switches are not lost for them. Else it is inherited by all
 * children of the target, which needs no privilege up to perf_event_paranoid 2, and each switch of
 * a thread takes it off and on. Times are CLOCK_MONOTONIC_RAW until they are handed on.
 */
#ifndef LONGPOLE_SYSTEM_PERF_H
#define LONGPOLE_SYSTEM_PERF_H

#include "record/convert.h"

enum { SYSTEM_PERF_WHY = 160, SYSTEM_PERF_TEXT = 4096 };
#define SYSTEM_PERF_SYSTEM UINT32_MAX /* as a pid: everybody */

/* One record of a perf buffer, its time still raw. */
struct system_perf_record {
	struct record_event
		event; /* event.time_ns: CLOCK_MONOTONIC_RAW; event.frame: into `frames` */
	struct record_map_event map; /* path: into the bytes that were parsed */
	char comm[16];
	uint64_t frames[RECORD_FRAMES_MAX];
	struct record_user_state user; /* of a sample; its stack: into the bytes that were parsed */
};

/*
 * system_perf_parse() - the record at bytes[0, size). Returns its length, 0 when the bytes are no
 * whole record. ret->event.kind is RECORD_EVENT_none for records that are of no use. The bytes are
 * checked, not trusted.
 */
size_t system_perf_parse(const uint8_t *bytes, size_t size, struct system_perf_record *ret);

struct system_perf;
/* Open for the child `pid`, from its next exec on. NULL, and why, when the kernel refuses all. */
struct system_perf *system_perf_open(uint32_t pid, uint64_t sample_hz, bool switches,
	char why_no_samples[SYSTEM_PERF_WHY], char why_no_switches[SYSTEM_PERF_WHY]);
/* Open for a process that runs already, and all its threads, from now on. */
struct system_perf *system_perf_open_running(uint32_t pid, uint64_t sample_hz, bool switches,
	char why_no_samples[SYSTEM_PERF_WHY], char why_no_switches[SYSTEM_PERF_WHY]);
/* Samples alone of a child of one thread, and of what it starts, from now on. Its code keeps frame pointers: these lead to the callers,
 * and of the stack only the top word is copied, where a function without a frame has its return address. */
struct system_perf *system_perf_open_framed(
	uint32_t pid, uint64_t sample_hz, char why_not[SYSTEM_PERF_WHY]);
/* The same events of one thread of ours, to learn what they cost: none until they are enabled.
 * period_ns: a sample whenever it ran so long, instead of sample_hz. NULL: refused. */
struct system_perf *system_perf_open_probe(
	uint32_t tid, uint64_t sample_hz, uint64_t period_ns, bool switches);
void system_perf_enable(const struct system_perf *p, bool on);
/* Of the samples from now on. False: not of all. p may be NULL. */
bool system_perf_set_sample_hz(const struct system_perf *p, uint64_t sample_hz);
bool system_perf_is_wide(
	const struct system_perf *p); /* events of everybody: enabled from the start */
struct system_perf *system_perf_close(struct system_perf *p);
/* Samples of all threads of the machine, user space and kernel; times are CLOCK_MONOTONIC. NULL,
 * and why: refused. */
struct system_perf *system_perf_open_system(uint64_t sample_hz, char why_not[SYSTEM_PERF_WHY]);
/* What is there up to until_ns, in time order over all processors; times as the kernel gave them.
 * What a processor is about to write must be later: 1 ms ago. */
void system_perf_each(struct system_perf *p, uint64_t until_ns,
	void (*take)(void *ctx, struct system_perf_record *r), void *ctx);
/* The same, to the converter. */
void system_perf_read(struct system_perf *p, struct record_converter *c, uint64_t until_ns);
/* Share of the fullest buffer that was in use at the last read, in percent. */
unsigned system_perf_fill_percent(const struct system_perf *p);

#endif
