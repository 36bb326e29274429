/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ompt.c - OpenMP, as LLVM's runtime (and Intel's, which is the same) tells of it: regions,
 * barriers and tasks, by the standard's tool interface. Its locks are runtime/openmp/omp.c's.
 *
 * A worker's end of a region has no event of its own: it is the barrier at which all meet there.
 * What it does from then on until the next region, tasks, is still of the old one.
 */
#include "runtime/openmp/omp.h"
#include "runtime/openmp/ompt.h"
#include "runtime/openmp/team.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef PRELOAD_STATIC

/* ---- where ----------------------------------------------------------------------------------- */

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/* gcc's programs call the runtime by us. */
static uint64_t ompt_site_of(const void *code)
{
	uintptr_t ours = (uintptr_t)code - (uintptr_t)__ehdr_start;
	bool is_ours = ours < (uintptr_t)_end - (uintptr_t)__ehdr_start;
	return PRELOAD_RARE(is_ours) ? team_self()->site : preload_site((uintptr_t)code);
}

/* ---- what is known of a task ----------------------------------------------------------------- */

enum { SLOTS_MAX = 1 << 20, SLOTS_IN_HAND = 64 };

/*
 * A task that was made and is not over; or that one waits for another. The runtime has one word for
 * us with a task: the slot's number and, above it, its generation, which ends with the task: a late
 * user of the word finds nothing.
 */
struct slot {
	uint32_t next;    /* of the free ones, or of those who wait for the same task */
	uint32_t waits;   /* of one who waits: the number of his slot */
	uint64_t waiters; /* generation << 32 | first of them */
	uint32_t held_by; /* that many tasks: it cannot run until they are over */
	uint32_t is_begun;
	struct team *team;
	struct tokens *parent, *group; /* who waits for it; group NULL: nobody */
	uint64_t site;
};

static struct slot *slots;  /* SLOTS_MAX, of which no page is there before it is used; NULL: none
			       yet */
static uint64_t free_slots; /* of all threads: tag << 32 | first of a hand full */
static uint32_t nr_slots;   /* used at least once; 0 is none */

/* Free ones, and what is running: from the implicit task outwards in, those that wait below. */
enum { RUNNING_MAX = 32 };
struct ompt_thread {
	uint32_t first_free, nr_free;
	bool is_worker; /* has been one */
	uint32_t nr_running;
	struct running {
		uint64_t task; /* its word; 0: an implicit one */
		struct team *team;
		struct tokens *group;
		struct team_wait wait;
		uint32_t depth;
	} running[RUNNING_MAX];
};
_Static_assert(
	sizeof(struct ompt_thread) <= (PRELOAD_MORE_WORDS - PRELOAD_TEAM_WORDS) * sizeof(uint64_t),
	"has room");

static struct ompt_thread *ompt_mine(void)
{
	return (struct ompt_thread *)(void *)(preload_own()->more + PRELOAD_TEAM_WORDS);
}

static struct slot *slots_begin(void)
{
	struct slot *all = __atomic_load_n(&slots, __ATOMIC_ACQUIRE), *none = NULL;
	if (PRELOAD_LIKELY(all))
		return all;
	const size_t nr_bytes = SLOTS_MAX * sizeof *all;
	long address = preload_syscall(SYS_mmap, 0, (long)nr_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (address < 0 && address >= -PRELOAD_PAGE)
		return NULL;
	all = (struct slot *)address;
	if (__atomic_compare_exchange_n(
		    &slots, &none, all, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
		return all;
	preload_syscall(SYS_munmap, address, (long)nr_bytes, 0, 0, 0, 0);
	return none;
}

/* A hand full of free ones: the first says how many in `held_by`, and in `waits` the next hand. */
static bool take_hand(void)
{
	uint64_t head = __atomic_load_n(&free_slots, __ATOMIC_ACQUIRE);
	while ((uint32_t)head) {
		const struct slot *first = &slots[(uint32_t)head];
		uint64_t next =
			((head >> 32) + 1) << 32 | __atomic_load_n(&first->waits, __ATOMIC_RELAXED);
		if (__atomic_compare_exchange_n(
			    &free_slots, &head, next, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
			ompt_mine()->first_free = (uint32_t)head;
			ompt_mine()->nr_free = first->held_by;
			return true;
		}
	}
	return false;
}

static void give_hand(void)
{
	uint32_t index = ompt_mine()->first_free;
	uint64_t head = __atomic_load_n(&free_slots, __ATOMIC_RELAXED), next;
	slots[index].held_by = ompt_mine()->nr_free;
	do {
		__atomic_store_n(&slots[index].waits, (uint32_t)head, __ATOMIC_RELAXED);
		next = ((head >> 32) + 1) << 32 | index;
	} while (!__atomic_compare_exchange_n(
		&free_slots, &head, next, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	ompt_mine()->first_free = ompt_mine()->nr_free = 0;
}

/* Number of one that is ours now; 0: there is none. */
static uint32_t slot_take(void)
{
	if (!slots_begin())
		return 0;
	if (ompt_mine()->nr_free || take_hand()) {
		uint32_t index = ompt_mine()->first_free;
		ompt_mine()->first_free = slots[index].next;
		ompt_mine()->nr_free--;
		return index;
	}
	if (__atomic_load_n(&nr_slots, __ATOMIC_RELAXED) >= SLOTS_MAX - 1)
		return 0;
	uint32_t index = __atomic_add_fetch(&nr_slots, 1, __ATOMIC_RELAXED);
	return index < SLOTS_MAX ? index : 0;
}

static void slot_give(uint32_t index)
{
	if (ompt_mine()->nr_free >= SLOTS_IN_HAND)
		give_hand();
	slots[index].next = ompt_mine()->first_free;
	ompt_mine()->first_free = index;
	ompt_mine()->nr_free++;
}

PRELOAD_INLINE uint64_t word_of(uint32_t index)
{
	uint64_t waiters = __atomic_load_n(&slots[index].waiters, __ATOMIC_RELAXED);
	return waiters >> 32 << 32 | index;
}

/* NULL: none of ours, or over. */
PRELOAD_INLINE struct slot *slot_of(uint64_t word)
{
	uint32_t index = (uint32_t)word;
	return index && word_of(index) == word ? &slots[index] : NULL;
}

/* ---- regions --------------------------------------------------------------------------------- */

PRELOAD_INLINE bool is_mine(const struct team *team)
{
	return (uintptr_t)team - (uintptr_t)team_self()->own < sizeof team_self()->own;
}

static void region_begins(union ompt_word *outer_task, const void *frame, union ompt_word *region,
	unsigned nr_wanted, int flags, const void *code)
{
	(void)outer_task, (void)frame, (void)flags;
	region->address = NULL;
	if (!preload_active()) {
		team_self()->nr_levels++;
		return;
	}
	struct team *team = team_region_begin(nr_wanted, ompt_site_of(code));
	if (team)
		team->code = (uintptr_t)code;
	region->address = team;
}

static void region_ends(
	union ompt_word *region, union ompt_word *outer_task, int flags, const void *code)
{
	(void)region, (void)outer_task, (void)flags, (void)code;
	team_self()->nr_levels--;
}

/* What ran in this thread waits below. */
static void ompt_push(uint64_t task)
{
	struct team_thread *self = team_self();
	struct ompt_thread *own = ompt_mine();
	uint32_t nr = own->nr_running;
	if (nr < RUNNING_MAX)
		own->running[nr] =
			(struct running){task, self->team, self->group, self->wait, self->depth};
	own->nr_running = nr + 1;
	self->wait.what = TEAM_NOT;
	self->depth++;
}

/* Goes on with what waits below `task`, and says what that waits for. A task that is not tied to
 * its thread may have left it, and nobody told. */
static struct team_wait ompt_pop(uint64_t task)
{
	struct team_thread *self = team_self();
	struct ompt_thread *own = ompt_mine();
	uint32_t depth = own->nr_running, nr = depth < RUNNING_MAX ? depth : RUNNING_MAX;
	while (nr && own->running[nr - 1].task != task)
		nr--;
	if (depth > RUNNING_MAX) { /* too deep to know: what it waits for is not told */
		own->nr_running = depth - 1;
		self->depth--;
		return (struct team_wait){0};
	}
	if (!nr)
		return (struct team_wait){0};
	const struct running *below = &own->running[nr - 1];
	own->nr_running = nr - 1;
	self->team = below->team;
	self->group = below->group;
	self->depth = below->depth;
	return below->wait;
}

/* With the program's own task all workers go home, and it waits for them. */
static struct tokens all_over;
static uint32_t nr_workers; /* that live */

static void program_ends(void)
{
	uint32_t nr = __atomic_load_n(&nr_workers, __ATOMIC_RELAXED);
	if (!nr)
		return;
	team_name_tokens(&all_over, "end of the runtime");
	team_give(&all_over, nr, 0);
}

static void ompt_thread_ends(union ompt_word *thread)
{
	(void)thread;
	if (ompt_mine()->is_worker)
		__atomic_fetch_sub(&nr_workers, 1, __ATOMIC_RELAXED);
	ompt_mine()->is_worker = false;
	if (team_self()->wait.what != TEAM_FOR_BEGIN || !preload_active())
		return;
	team_self()->wait.what = TEAM_NOT;
	if (__atomic_load_n(&all_over.given, __ATOMIC_ACQUIRE))
		PRELOAD_RECORD(token_take, team_object(&all_over), 1, 0);
}

static void implicit_begins(struct team *team, unsigned nr_threads)
{
	struct team_thread *self = team_self();
	bool is_master = !team || is_mine(team);
	if (!team && self->wait.what != TEAM_NOT) /* a region that is not told of */
		PRELOAD_RECORD(token_take, self->wait.object, 0, self->wait.site);
	ompt_push(0);
	if (team && is_master) {
		uint64_t surplus = team->begin.due + 1 - nr_threads;
		if (nr_threads && team->begin.due + 1 > nr_threads) /* fewer come */
			PRELOAD_RECORD(token_take, team_object(&team->begin), surplus, team->site);
		team = team_master_begin(team, nr_threads);
	}
	preload_own()->region = 0;
	self->team = team;
	self->group = NULL;
	if (!is_master && !ompt_mine()->is_worker)
		__atomic_fetch_add(&nr_workers, 1, __ATOMIC_RELAXED);
	ompt_mine()->is_worker |= !is_master;
	if (!is_master)
		PRELOAD_RECORD(token_take, team_object(&team->begin), 1, team->site);
}

static void implicit_task(int scope, union ompt_word *region, union ompt_word *task,
	unsigned nr_threads, unsigned number, int flags)
{
	(void)number;
	if (!preload_active())
		return;
	if (scope == OMPT_BEGIN) {
		task->value = 0;
		implicit_begins(region ? region->address : NULL, nr_threads);
		return;
	}
	if (flags & OMPT_TASK_INITIAL && ompt_mine()->nr_running == 1 &&
		preload_self->tid == preload_self->pid)
		program_ends();
	struct team_wait at_end = team_self()->wait;
	struct team *team = team_self()->team;
	struct team_wait before = ompt_pop(0);
	if (team && !is_mine(team)) { /* a worker's thread: still of this region, and waiting */
		team_self()->wait = at_end;
		team_self()->team = team;
	} else {
		team_wait_begin(before.what, before.object, before.site);
	}
}

/* ---- barriers, taskwait, taskgroup ----------------------------------------------------------- */

/* That at which a region ends. Until OpenMP 5.1 it is an implicit one as others; but workers have
 * no place in the program for it, and the master that of the region. */
static bool is_end(int kind, const struct team *team, const void *code)
{
	if (kind == OMPT_BARRIER_IMPLICIT)
		return !code || (is_mine(team) && (uintptr_t)code == team->code);
	return kind == OMPT_BARRIER_PARALLEL || kind == OMPT_BARRIER_TEAMS;
}

static void end_begins(struct team *team)
{
	if (is_mine(team)) {
		team_wait_for(&team->end, team->site);
		return;
	}
	team_give(&team->end, 1, team->site);
	team_wait_begin(TEAM_FOR_BEGIN, team_object(&team->begin), team->site);
}

static void ompt_barrier(int kind, int scope, const void *code)
{
	struct team *team = team_self()->team;
	uint64_t site = ompt_site_of(code);
	if (scope == OMPT_BEGIN && is_end(kind, team, code))
		end_begins(team);
	else if (scope == OMPT_BEGIN)
		team_barrier_begin(site);
	else if (team_self()->wait.what == TEAM_FOR_BARRIER)
		team_barrier_end(site);
	else if (team_self()->wait.what == TEAM_FOR_TOKENS && is_mine(team))
		team_wait_end(&team->end, team->site);
}

static void tasks_wait(struct tokens *of, int scope, uint64_t site)
{
	if (!of)
		return;
	if (scope == OMPT_BEGIN)
		team_await(of, site);
	else if (team_self()->wait.what == TEAM_FOR_TOKENS)
		team_wait_end(of, site);
}

static void sync_region(
	int kind, int scope, union ompt_word *region, union ompt_word *task, const void *code)
{
	(void)region, (void)task;
	if (kind == OMPT_TASKGROUP && scope == OMPT_BEGIN)
		team_group_begin(ompt_site_of(code));
	else if (kind == OMPT_TASKGROUP)
		team_group_end();
	else if (!team_self()->team || !preload_active())
		return;
	else if (kind == OMPT_TASKWAIT)
		tasks_wait(team_innermost(team_self()->children), scope, ompt_site_of(code));
	else if (kind != OMPT_REDUCTION)
		ompt_barrier(kind, scope, code);
}

/* Of all that is told twice only groups: they begin long before anybody waits for them. */
static void sync_region_wait(
	int kind, int scope, union ompt_word *region, union ompt_word *task, const void *code)
{
	(void)region, (void)task;
	if (kind == OMPT_TASKGROUP && team_self()->team && preload_active())
		tasks_wait(team_self()->group, scope, ompt_site_of(code));
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* It can run. */
static void ready(const struct slot *k)
{
	PRELOAD_RECORD(token_give, team_object(&k->team->tasks), 1, k->site);
}

/* A loop of tasks makes them from within the runtime. */
static uint64_t site_of_task(const void *code)
{
	bool is_loop = preload_is_runtime((uintptr_t)code) && team_self()->nr_groups;
	uint32_t n = team_self()->nr_groups <= TEAM_GROUPS ? team_self()->nr_groups : TEAM_GROUPS;
	return is_loop && n ? team_self()->group_site[n - 1] : ompt_site_of(code);
}

static void task_made(union ompt_word *maker, const void *frame, union ompt_word *task, int flags,
	int depends, const void *code)
{
	(void)maker, (void)frame, (void)depends;
	struct team_thread *self = team_self();
	task->value = 0;
	if (!self->team || !preload_active())
		return;
	uint64_t site = site_of_task(code);
	if (flags & OMPT_TASK_TASKWAIT) { /* no task: a wait for some */
		team_await(team_innermost(self->children), site);
		return;
	}
	uint32_t index = slot_take();
	if (!index) {
		__atomic_fetch_add(&preload_fresh.head->lost_records, 1, __ATOMIC_RELAXED);
		return;
	}
	struct slot *k = &slots[index];
	k->team = self->team;
	k->parent = team_innermost(self->children);
	k->group = self->group;
	k->site = site;
	k->held_by = k->is_begun = 0;
	task->value = word_of(index);
	team_name_tokens(k->parent, "child tasks");
	team_gets_task(k->team);
	__atomic_fetch_add(&k->parent->due, 1, __ATOMIC_RELAXED);
	if (k->group)
		__atomic_fetch_add(&k->group->due, 1, __ATOMIC_RELAXED);
	ready(k);
}

/* `late` is not to run before `early` is over; told by the thread that has just made it. It was
 * said to be ready: that is taken back. */
static void task_depends(union ompt_word *early, union ompt_word *late)
{
	struct slot *from = slots ? slot_of(early->value) : NULL;
	struct slot *to = slots ? slot_of(late->value) : NULL;
	uint32_t edge = from && to && preload_active() ? slot_take() : 0;
	if (!edge)
		return;
	slots[edge].waits = (uint32_t)late->value;
	if (__atomic_fetch_add(&to->held_by, 1, __ATOMIC_RELAXED) == 0)
		PRELOAD_RECORD(token_take, team_object(&to->team->tasks), 1, to->site);
	uint64_t generation = early->value >> 32;
	uint64_t waiters = __atomic_load_n(&from->waiters, __ATOMIC_RELAXED);
	while (waiters >> 32 == generation) {
		slots[edge].next = (uint32_t)waiters;
		if (__atomic_compare_exchange_n(&from->waiters, &waiters, generation << 32 | edge,
			    false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return;
	}
	slot_give(edge); /* it is over meanwhile */
	if (__atomic_sub_fetch(&to->held_by, 1, __ATOMIC_ACQ_REL) == 0)
		ready(to);
}

static void ompt_task_over(uint64_t word)
{
	struct slot *k = slot_of(word);
	const struct slot own = *k;
	uint64_t next_generation = ((word >> 32) + 1) << 32;
	uint64_t waiters = __atomic_exchange_n(&k->waiters, next_generation, __ATOMIC_ACQ_REL);
	for (uint32_t edge = (uint32_t)waiters, next; edge; edge = next) {
		struct slot *late = &slots[slots[edge].waits];
		next = slots[edge].next;
		if (__atomic_sub_fetch(&late->held_by, 1, __ATOMIC_ACQ_REL) == 0)
			ready(late);
		slot_give(edge);
	}
	slot_give((uint32_t)word);
	team_give(own.parent, 1, own.site);
	if (own.group)
		team_give(own.group, 1, own.site);
}

static void task_begins(uint64_t word)
{
	struct slot *k = slot_of(word);
	struct team_wait waited = team_self()->wait;
	ompt_push(word);
	team_self()->team = k->team;
	team_self()->group = k->group;
	if (!k->is_begun)
		PRELOAD_RECORD(token_take, team_object(&k->team->tasks), 1, k->site);
	else if (waited.what != TEAM_NOT) /* it goes on, not tied to the thread that it was in */
		PRELOAD_RECORD(token_take, waited.object, 0, waited.site);
	k->is_begun = 1;
}

/* The thread goes on with what it did before. */
static void task_left(uint64_t word, bool is_over)
{
	if (!slot_of(word)->is_begun) /* cancelled: its text is left out */
		task_begins(word);
	const struct slot own = *slot_of(word);
	struct team_wait waited = ompt_pop(word);
	if (is_over)
		ompt_task_over(word);
	if (waited.what == TEAM_FOR_BEGIN) /* it had left the region already */
		team_give(&own.team->end, 1, own.site);
	team_wait_begin(waited.what, waited.object, waited.site);
}

static void task_switch(union ompt_word *from, int status, union ompt_word *to)
{
	uint64_t left = from ? from->value : 0, entered = to ? to->value : 0;
	if (!preload_active())
		return;
	if (status == OMPT_TASKWAIT_COMPLETE && team_self()->team) {
		tasks_wait(team_innermost(team_self()->children), OMPT_END, team_self()->wait.site);
		return;
	}
	if (!slots || status == OMPT_TASK_EARLY_FULFILL)
		return;
	bool is_over = status == OMPT_TASK_COMPLETE || status == OMPT_TASK_CANCEL;
	if (status == OMPT_TASK_LATE_FULFILL && slot_of(left))
		ompt_task_over(left);
	else if ((is_over || status == OMPT_TASK_DETACH) && slot_of(left))
		task_left(left, is_over);
	else if (!is_over && status != OMPT_TASK_LATE_FULFILL && slot_of(entered))
		task_begins(entered);
}

/* ---- the tool -------------------------------------------------------------------------------- */

static const struct {
	enum ompt_event event;
	ompt_function *function;
} callbacks[] = {
	{OMPT_thread_end, (ompt_function *)ompt_thread_ends},
	{OMPT_parallel_begin, (ompt_function *)region_begins},
	{OMPT_parallel_end, (ompt_function *)region_ends},
	{OMPT_implicit_task, (ompt_function *)implicit_task},
	{OMPT_sync_region, (ompt_function *)sync_region},
	{OMPT_sync_region_wait, (ompt_function *)sync_region_wait},
	{OMPT_task_create, (ompt_function *)task_made},
	{OMPT_task_schedule, (ompt_function *)task_switch},
	{OMPT_task_dependence, (ompt_function *)task_depends},
};

static bool is_told; /* by some runtime */

static int initialize(ompt_lookup *lookup, int device, union ompt_word *word)
{
	(void)device, (void)word;
	int (*set)(int, ompt_function *) =
		(int (*)(int, ompt_function *))lookup("ompt_set_callback");
	if (!set)
		return 0;
	for (size_t i = 0; i < PRELOAD_COUNT(callbacks); i++)
		set((int)callbacks[i].event, callbacks[i].function);
	__atomic_store_n(&is_told, true, __ATOMIC_RELEASE);
	return 1;
}

/* The process ends, or paused the runtime (omp_pause_hard), which tells nothing from then on. */
static void finalize(union ompt_word *word)
{
	(void)word;
	if (__atomic_load_n(&preload_runtimes.nr_claimed, __ATOMIC_RELAXED) == 1)
		__atomic_store_n(&preload_runtimes.any, false, __ATOMIC_RELEASE);
}

struct ompt_tool *preload_omp_tool(void)
{
	static struct ompt_tool tool = {.initialize = initialize, .finalize = finalize};
	return &tool;
}

bool preload_omp_tells(const struct preload_omp *omp)
{
	if (omp->omp_get_max_threads)
		omp->omp_get_max_threads();
	return __atomic_load_n(&is_told, __ATOMIC_ACQUIRE);
}

#endif
