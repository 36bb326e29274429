/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team.h - OpenMP's regions, barriers and tasks in words that exist: what the wrappers of
 * gcc's functions (runtime/openmp/omp.c) and the callbacks of LLVM's runtime
 * (runtime/openmp/ompt.c) share.
 *
 * A region's begin gives a token to each worker, its end takes one of each; barriers are barriers;
 * a task is a token from its maker to its runner, its end one for its waiter.
 *
 * Threads that wait run tasks meanwhile: then the wait ends with the task's token and begins anew
 * after it. What waits for all tasks (a barrier, a region's end) hears once more of a thread that
 * ran one after it had arrived.
 */
#ifndef LONGPOLE_RUNTIME_OPENMP_TEAM_H
#define LONGPOLE_RUNTIME_OPENMP_TEAM_H

#include "preload/preload.h"

enum { TEAM_LEVELS = 4, TEAM_DEPTHS = 8, TEAM_GROUPS = 16 };

/* Tokens of an object, which its address is. */
struct tokens {
	uint32_t due;   /* to be given: by tasks that were made */
	uint32_t given; /* after the record of it */
	uint32_t taken; /* by the thread whose it is */
	uint32_t image; /* that it was named in, and 1 */
};

/* What the threads of a region share; of the thread that begins it, so it outlives the region. */
struct team {
	struct tokens begin, end, tasks, copy, ordered;
	char barrier;
	uint32_t parties;    /* of the barrier, as recorded; 0: the first to leave opens it */
	uint32_t nr_workers; /* that came, in this region */
	uint32_t has_tasks;
	uint64_t site;
	uintptr_t code; /* as the runtime has it */
};

enum team_waiting { TEAM_NOT, TEAM_FOR_TOKENS, TEAM_FOR_BEGIN, TEAM_FOR_BARRIER };
struct team_wait {
	enum team_waiting what;
	uint64_t object, site;
};

/* One per thread, zero at the start. */
struct team_thread {
	struct team own[TEAM_LEVELS]; /* of the regions that this thread begins in one another */
	uint32_t nr_levels, depth;
	struct team *team;     /* that it works in; NULL: none that is recorded */
	struct tokens *group;  /* innermost taskgroup */
	uint64_t site;         /* of the call that goes on to a runtime which tells of itself */
	struct team_wait wait; /* what it waits for in the runtime */
	struct tokens children[TEAM_DEPTHS], groups[TEAM_DEPTHS];
	struct tokens *outer_group[TEAM_GROUPS];
	uint64_t group_site[TEAM_GROUPS]; /* where they begin, if that is known */
	uint32_t nr_groups;
};
_Static_assert(sizeof(struct team_thread) <= PRELOAD_TEAM_WORDS * sizeof(uint64_t), "has room");

/* (threads that have ended share one: an index is read once) */
PRELOAD_INLINE struct team_thread *team_self(void)
{
	return (struct team_thread *)(void *)preload_own()->more;
}

PRELOAD_INLINE uint64_t team_object(const struct tokens *tokens)
{
	return preload_object(tokens, TRACE_OBJECT_team, false);
}

PRELOAD_INLINE uint64_t team_barrier(const struct team *team)
{
	return preload_object(&team->barrier, TRACE_OBJECT_barrier, false);
}

/* Of this thread's children or groups: those of the task that it runs. */
PRELOAD_INLINE struct tokens *team_innermost(struct tokens *of)
{
	uint32_t depth = team_self()->depth;
	return &of[depth < TEAM_DEPTHS ? depth : TEAM_DEPTHS - 1];
}

/* Before their first use in this image. True: they were without. */
bool team_name_tokens(struct tokens *tokens, const char *text);
void team_name(struct team *team);
void team_give(struct tokens *tokens, uint64_t n, uint64_t site);

void team_wait_begin(enum team_waiting what, uint64_t object, uint64_t site);
void team_wait_for(struct tokens *tokens, uint64_t site);
/* Takes all that were given. */
void team_wait_end(struct tokens *tokens, uint64_t site);
/* Of tasks that are all over nobody waits: then it is NULL that comes back. */
struct tokens *team_await(struct tokens *tokens, uint64_t site);
void team_barrier_begin(uint64_t site);
void team_barrier_end(uint64_t site);

/* A region of (up to) nr threads begins in this thread. NULL: not told, too deep or of one. */
struct team *team_region_begin(uint32_t nr, uint64_t site);
/* The same, in the region: `nr` threads (0: not known) are in it, this one that began it, too. */
struct team *team_master_begin(struct team *team, uint32_t nr);
void team_set_parties(struct team *team, uint32_t n);
/* A thread that has come to a barrier may have to come again: its parties are not to be counted. */
void team_gets_task(struct team *team);

void team_group_begin(uint64_t site);
void team_group_end(void);

#endif
