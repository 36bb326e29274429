/* SPDX-License-Identifier: Apache-2.0 */
/* livelock.c - intervals that intersect. */
#include "spin/livelock.h"

void spin_livelock_init(struct spin_livelock *l, struct spin_interval *thread, uint32_t nr_threads)
{
	*l = (struct spin_livelock){.thread = thread, .nr_threads = nr_threads};
	for (uint32_t i = 0; i < nr_threads; i++)
		thread[i] = (struct spin_interval){0};
}

void spin_livelock_spun(struct spin_livelock *l, uint32_t thread, uint64_t since, uint64_t until)
{
	l->thread[thread] = (struct spin_interval){.since = since, .until = until, .known = true};
}

bool spin_livelock_found(const struct spin_livelock *l, uint64_t *ret_time)
{
	uint64_t since = 0, until = UINT64_MAX;
	for (uint32_t i = 0; i < l->nr_threads; i++) {
		const struct spin_interval *t = &l->thread[i];
		if (!t->known)
			return false;
		since = t->since > since ? t->since : since;
		until = t->until < until ? t->until : until;
	}
	if (!l->nr_threads || since > until)
		return false;
	*ret_time = since;
	return true;
}

uint32_t spin_livelock_spinning_at(const struct spin_livelock *l, uint64_t time)
{
	uint32_t nr = 0;
	for (uint32_t i = 0; i < l->nr_threads; i++) {
		const struct spin_interval *t = &l->thread[i];
		nr += t->known && t->since <= time && time <= t->until;
	}
	return nr;
}
