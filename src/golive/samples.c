/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c - where a Go program's threads were found, with their callers: Go's code keeps frame pointers. */
#include "golive/private.h"
#include "system/perf.h"

#include <stdio.h>
#include <string.h>

enum { SAMPLES_SETTLED_NS = 1000000 }; /* what a processor is about to write is later than that */

void golive_samples_begin(struct golive_samples *s, pid_t pid, uint64_t hz,
	const struct os_clock *clock, char *why_not, size_t size)
{
	char why[SYSTEM_PERF_WHY] = "";
	*s = (struct golive_samples){.clock = clock};
	s->perf = hz ? system_perf_open_framed((uint32_t)pid, hz, why) : NULL;
	snprintf(why_not, size, "%s", why);
}

static uint64_t samples_top(const struct record_user_state *user)
{
	uint64_t top = 0;
	if (user->stack_bytes >= sizeof top)
		memcpy(&top, user->stack, sizeof top);
	return top;
}

static void samples_take(void *ctx, struct system_perf_record *r)
{
	struct golive_samples *s = ctx;
	size_t nr = (size_t)r->event.nr_frames + 1;
	if (r->event.kind != RECORD_EVENT_sample || s->failed)
		return;
	if (base_grow(&s->sample, &s->capacity, s->nr + 1, sizeof *s->sample) != BASE_OK ||
		base_grow(&s->pc, &s->pcs_capacity, s->nr_pcs + nr, sizeof *s->pc) != BASE_OK) {
		s->failed = true;
		return;
	}
	s->sample[s->nr++] =
		(struct golive_sample){.time_ns = os_clock_from_raw(s->clock, r->event.time_ns),
			.tid = r->event.tid,
			.top = samples_top(&r->user),
			.nr = (uint32_t)nr,
			.first = s->nr_pcs};
	s->pc[s->nr_pcs] = r->event.ip;
	memcpy(s->pc + s->nr_pcs + 1, r->frames, (nr - 1) * sizeof *s->pc);
	s->nr_pcs += nr;
}

void golive_samples_read(struct golive_samples *s, bool at_end)
{
	uint64_t now_ns = os_time_ns(CLOCK_MONOTONIC_RAW);
	if (s->perf)
		system_perf_each(s->perf, at_end ? UINT64_MAX : now_ns - SAMPLES_SETTLED_NS,
			samples_take, s);
}

void golive_samples_fini(struct golive_samples *s)
{
	s->perf = system_perf_close(s->perf);
	base_free(s->sample);
	base_free(s->pc);
	s->sample = NULL;
	s->pc = NULL;
}
