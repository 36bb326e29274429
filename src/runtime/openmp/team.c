/* SPDX-License-Identifier: Apache-2.0 */
/* team.c - what is told of OpenMP's regions, barriers and tasks, whoever their runtime is.
 */
#include "runtime/openmp/team.h"

#include <string.h>

/* ---- objects and tokens ---------------------------------------------------------------------- */

static void name(uint64_t object, const char *text)
{
	size_t nr_bytes = strlen(text);
	preload_record_text(RING_name, (const uint64_t[]){object, RING_NAME_object, 0, nr_bytes}, 4,
		text, nr_bytes);
}

bool team_name_tokens(struct tokens *tokens, const char *text)
{
	preload_thread_begin();
	if (PRELOAD_LIKELY(tokens->image == preload_self->image + 1))
		return false;
	*tokens = (struct tokens){.image = preload_self->image + 1};
	name(team_object(tokens), text);
	return true;
}

void team_name(struct team *team)
{
	if (!team_name_tokens(&team->begin, "region begin"))
		return;
	team_name_tokens(&team->end, "region end");
	team_name_tokens(&team->tasks, "tasks");
	team_name_tokens(&team->copy, "copyprivate");
	if (team_name_tokens(&team->ordered, "ordered section"))
		PRELOAD_RECORD(token_set, team_object(&team->ordered), 1);
	name(team_barrier(team), "of OpenMP");
	PRELOAD_RECORD(token_set, team_barrier(team), 0);
	team->parties = 0;
}

void team_give(struct tokens *tokens, uint64_t n, uint64_t site)
{
	PRELOAD_RECORD(token_give, team_object(tokens), n, site);
	__atomic_fetch_add(&tokens->given, (uint32_t)n, __ATOMIC_RELEASE);
}

static void take_given(struct tokens *tokens, uint64_t site)
{
	uint32_t n = __atomic_load_n(&tokens->given, __ATOMIC_ACQUIRE) - tokens->taken;
	tokens->taken += n;
	PRELOAD_RECORD(token_take, team_object(tokens), n, site);
}

/* ---- waits that tasks interrupt -------------------------------------------------------------- */

void team_wait_begin(enum team_waiting what, uint64_t object, uint64_t site)
{
	team_self()->wait = (struct team_wait){what, object, site};
	if (what == TEAM_FOR_BARRIER)
		PRELOAD_RECORD_WAIT(barrier_arrive, site, object);
	else if (what != TEAM_NOT)
		PRELOAD_RECORD_WAIT(token_wait, site, object, 1);
}

void team_wait_for(struct tokens *tokens, uint64_t site)
{
	team_wait_begin(TEAM_FOR_TOKENS, team_object(tokens), site);
}

void team_wait_end(struct tokens *tokens, uint64_t site)
{
	team_self()->wait.what = TEAM_NOT;
	take_given(tokens, site);
}

struct tokens *team_await(struct tokens *tokens, uint64_t site)
{
	if (!team_self()->team || !preload_active() ||
		__atomic_load_n(&tokens->due, __ATOMIC_RELAXED) == tokens->taken)
		return NULL;
	team_wait_for(tokens, site);
	return tokens;
}

void team_barrier_begin(uint64_t site)
{
	if (team_self()->team && preload_active())
		team_wait_begin(TEAM_FOR_BARRIER, team_barrier(team_self()->team), site);
}

void team_barrier_end(uint64_t site)
{
	if (team_self()->wait.what != TEAM_FOR_BARRIER)
		return;
	team_self()->wait.what = TEAM_NOT;
	PRELOAD_RECORD(barrier_leave, team_barrier(team_self()->team), site);
}

/* ---- regions --------------------------------------------------------------------------------- */

/* Which other threads were in the last region is not known before they come: a number of parties
 * that may be another one now would open the barrier too early. */
void team_set_parties(struct team *team, uint32_t n)
{
	if (team->parties != n)
		PRELOAD_RECORD(token_set, team_barrier(team), n);
	team->parties = n;
}

void team_gets_task(struct team *team)
{
	if (__atomic_load_n(&team->has_tasks, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&team->has_tasks, 1, __ATOMIC_RELAXED);
	team_set_parties(team, 0);
}

struct team *team_region_begin(uint32_t nr, uint64_t site)
{
	uint32_t level = team_self()->nr_levels++;
	if (nr < 2 || level >= TEAM_LEVELS)
		return NULL;
	struct team *team = &team_self()->own[level];
	team_name(team);
	team->nr_workers = 0;
	team->site = site;
	if (nr != team->parties)
		team_set_parties(team, 0);
	PRELOAD_RECORD(token_give, team_object(&team->begin), nr - 1, site);
	team->begin.due = nr - 1;
	preload_own()->region = team_object(&team->begin);
	return team;
}

struct team *team_master_begin(struct team *team, uint32_t nr)
{
	preload_own()->region = 0;
	if (nr == 1)
		return NULL; /* it is one thread after all */
	if (!__atomic_load_n(&team->has_tasks, __ATOMIC_RELAXED))
		team_set_parties(team, nr);
	/* (a worker may have made the first one meanwhile) */
	if (__atomic_load_n(&team->has_tasks, __ATOMIC_RELAXED))
		team_set_parties(team, 0);
	return team;
}

/* ---- task groups ----------------------------------------------------------------------------- */

/* The outer group comes back with the end: groups of one thread lie in one another. */
void team_group_begin(uint64_t site)
{
	struct team_thread *self = team_self();
	uint32_t nr = self->nr_groups;
	if (nr < TEAM_GROUPS) {
		self->outer_group[nr] = self->group;
		self->group_site[nr] = site;
	}
	self->nr_groups = nr + 1;
	self->group = team_innermost(self->groups);
	if (self->team && preload_active())
		team_name_tokens(self->group, "task group");
}

void team_group_end(void)
{
	struct team_thread *self = team_self();
	uint32_t nr = --self->nr_groups;
	self->group = nr < TEAM_GROUPS ? self->outer_group[nr] : NULL;
}
