/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_task.c - OpenMP's tasks, as gcc calls libgomp and clang libomp: any thread of the
 * region may do one, at any time between two moments that are recorded. It begins after it was
 * made, and after all that it depends on; its waiters go on after its end. (What a barrier
 * waits for is before the barrier in each thread's stream.)
 *
 * A task's data are copied by OpenMP's library, and so is what we must know of it, behind them. How
 * far behind is known to the function that is called for it: there is one for each size.
 */
#include "target/target.h"

#include <string.h>

#define AT   TARGET_STUB
#define WEAK __attribute__((weak))

enum { STEP_BYTES = 32, SIZES = 64, DEPENDS = 16, GROUPS = 8, HOMES = 1024 };

/* What its tasks tell, and are told: of each task that makes others. They are many, but few at the
 * same time: tasks that share one wait a little longer than they must. */
static struct home {
	char made, done, group;
} homes[HOMES];
static uint64_t nr_homes; /* atomic */

static struct home *new_home(void)
{
	return &homes[__atomic_fetch_add(&nr_homes, 1, __ATOMIC_RELAXED) % HOMES];
}

/* What a thread is doing: a task, or its share of the region. */
struct doing {
	struct home *home; /* NULL: it has made no task yet */
	const char *group[GROUPS];
	unsigned nr_groups;
};
static __thread struct doing share __attribute__((tls_model("initial-exec")));
static __thread struct doing *current __attribute__((tls_model("initial-exec")));

static struct doing *doing(void)
{
	struct doing *d = current ? current : &share;
	d->home = d->home ? d->home : new_home();
	return d;
}

static const char *call_task_group_of(const struct doing *d)
{
	return d->nr_groups && d->nr_groups <= GROUPS ? d->group[d->nr_groups - 1] : NULL;
}

/* Behind a task's data. */
struct task {
	void (*function)(void *);
	int (*routine)(int, void *); /* or this: libomp's */
	const char *made, *done, *group;
	uint64_t number;                    /* so often had `made` been told with this task */
	unsigned nr_written, nr_read, room; /* of depends[] */
	uintptr_t depends[];                /* those that it writes; those that it reads */
};
/* With that many. */
static size_t task_bytes(unsigned room)
{
	return sizeof(struct task) + room * sizeof(uintptr_t);
}
/* One on our stack, with as many as there may be. */
union full_task {
	struct task task;
	char bytes[sizeof(struct task) + DEPENDS * sizeof(uintptr_t)];
};

/* Places that tasks depend on: the task that had written; those that had read. (Names, where nobody
 * has memory.) */
static const void *written(uintptr_t place)
{
	return (const void *)(place | UINT64_C(1) << 59); // NOLINT(performance-no-int-to-ptr)
}
static const void *call_task_has_read(uintptr_t place)
{
	return (const void *)(place | UINT64_C(3) << 59); // NOLINT(performance-no-int-to-ptr)
}

static void told_of(const struct task *t)
{
	for (unsigned i = 0; i < t->nr_written + t->nr_read; i++) {
		longpole_target_told(written(t->depends[i]));
		if (i < t->nr_written)
			longpole_target_told(call_task_has_read(t->depends[i]));
	}
}

static void depend(struct task *t, uintptr_t place, bool writes)
{
	if (t->nr_written + t->nr_read == t->room)
		return;
	t->depends[t->nr_written + t->nr_read] = place;
	t->nr_written += writes;
	t->nr_read += !writes;
}

/* The task is about to be made; or by itself what is left of it, for whatever thread: clang's that
 * are not tied. */
static void tell_made(struct task *t)
{
	const struct doing *d = doing();
	if (!t->done) {
		t->done = &d->home->done;
		t->group = call_task_group_of(d);
	}
	t->made = &d->home->made;
	t->number = longpole_target_tells(t->made);
}

static struct doing *call_task_begin(const struct task *t, struct doing *own)
{
	struct doing *outer = current;
	longpole_target_task_begins();
	longpole_target_told_times(t->made, t->number);
	told_of(t);
	own->group[0] = t->group;
	own->nr_groups = t->group != NULL;
	current = own;
	return outer;
}

static void call_task_end(const struct task *t, struct doing *outer)
{
	for (unsigned i = 0; i < t->nr_written + t->nr_read; i++)
		(void)longpole_target_tells(i < t->nr_written ? written(t->depends[i])
							      : call_task_has_read(t->depends[i]));
	(void)longpole_target_tells(t->done);
	if (t->group)
		(void)longpole_target_tells(t->group);
	current = outer;
}

/* ---- where a task is ------------------------------------------------------------------------- */

static TARGET_BETWEEN void run_function(void *data, size_t bytes)
{
	const struct task *t = (const void *)((const char *)data + bytes);
	struct doing own = {0}, *outer = call_task_begin(t, &own);
	t->function(data);
	call_task_end(t, outer);
}

static TARGET_BETWEEN int run_routine(int thread, void *data, size_t bytes)
{
	union full_task f; /* what is left of a task may be somebody else's by then */
	memcpy(&f, (const char *)data + bytes, task_bytes(DEPENDS));
	struct doing own = {0}, *outer = call_task_begin(&f.task, &own);
	int result = f.task.routine(thread, data);
	call_task_end(&f.task, outer);
	return result;
}

#define EIGHT(X, a) X(a, 0) X(a, 1) X(a, 2) X(a, 3) X(a, 4) X(a, 5) X(a, 6) X(a, 7)
#define ALL(X)                                                                                     \
	EIGHT(X, 0)                                                                                \
	EIGHT(X, 1)                                                                                \
	EIGHT(X, 2) EIGHT(X, 3) EIGHT(X, 4) EIGHT(X, 5) EIGHT(X, 6) EIGHT(X, 7)
#define SIZE(a, b) ((size_t)((a)*8 + (b)) * STEP_BYTES)
#define FUNCTION(a, b)                                                                             \
	static TARGET_BETWEEN void function_##a##b(void *data)                                     \
	{                                                                                          \
		run_function(data, SIZE(a, b));                                                    \
	}
#define ROUTINE(a, b)                                                                              \
	static TARGET_BETWEEN int routine_##a##b(int thread, void *data)                           \
	{                                                                                          \
		return run_routine(thread, data, SIZE(a, b));                                      \
	}
#define FUNCTION_NAME(a, b) function_##a##b,
#define ROUTINE_NAME(a, b)  routine_##a##b,
ALL(FUNCTION)
ALL(ROUTINE)
static void (*const functions[SIZES])(void *) = {ALL(FUNCTION_NAME)};
static int (*const routines[SIZES])(int, void *) = {ALL(ROUTINE_NAME)};

/* SIZES or more: there is none. */
static size_t call_task_size_class(size_t bytes)
{
	return (bytes + STEP_BYTES - 1) / STEP_BYTES;
}

/* ---- gcc's ----------------------------------------------------------------------------------- */

typedef void task_function(void *data);
typedef void task_copy(void *to, void *from);

enum { DATA_ALIGN = 64, GOMP_DEPENDS = 1 << 3, GOMP_NO_GROUP = 1 << 11, GOMP_DETACHES = 1 << 13 };

/* What is given to libgomp in place of the data: the same with the task behind it; or, where the
 * program copies, what our own copying needs. In little room on the caller's stack: tasks that are
 * done at once may be nested deeply. */
struct given {
	uint64_t head[3];  /* the data's: of a loop libgomp looks for reductions there */
	struct task *task; /* in the room */
	size_t bytes;      /* before it */
	task_copy *copy;
	void *from;
};

static size_t room_bytes(long size, unsigned nr_depends)
{
	return call_task_size_class((size_t)size) * STEP_BYTES + task_bytes(nr_depends) +
	       DATA_ALIGN;
}
/* NULL: it goes without us. */
#define ROOM(size, align, nr_depends)                                                              \
	(call_task_size_class((size_t)(size)) < SIZES && (align) <= DATA_ALIGN                     \
			? __builtin_alloca(room_bytes(size, nr_depends))                           \
			: NULL)

static TARGET_BETWEEN void copy_both(void *to, void *from)
{
	const struct given *g = from;
	g->copy(to, g->from);
	memcpy((char *)to + g->bytes, g->task, task_bytes(g->task->room));
}

/* The task's place in the room. */
static void call_task_find_room(struct given *g, char *room, long size, unsigned nr_depends)
{
	g->bytes = call_task_size_class((size_t)size) * STEP_BYTES;
	g->from = room + -(uintptr_t)room % DATA_ALIGN;
	g->task = (struct task *)(void *)((char *)g->from + g->bytes);
	*g->task = (struct task){.room = nr_depends};
}

static void call_task_give(
	struct given *g, task_function **f, void **data, task_copy **copy, long *size)
{
	void *room = g->from;
	g->task->function = *f;
	*f = functions[g->bytes / STEP_BYTES];
	g->copy = *copy;
	g->from = *data;
	if (*copy)
		*copy = copy_both;
	if (*size)
		memcpy(g->copy ? g->head : room, *data,
			g->copy && *size > (long)sizeof g->head ? sizeof g->head : (size_t)*size);
	*data = g->copy ? (void *)g : room;
	*size = (long)(g->bytes + task_bytes(g->task->room));
}

/* libgomp's list: how many, how many that are written, these, then those that are read; or 0, how
 * many, written, in turn, read, and the same (without objects that say more). */
static void depends_of(struct task *t, void *const *list)
{
	const bool is_long = !list[0];
	const uintptr_t nr = (uintptr_t)list[is_long];
	const uintptr_t nr_written =
		is_long ? (uintptr_t)list[2] + (uintptr_t)list[3] : (uintptr_t)list[1];
	const uintptr_t nr_plain = is_long ? nr_written + (uintptr_t)list[4] : nr;
	void *const *place = list + (is_long ? 5 : 2);
	for (uintptr_t i = 0; i < nr && i < nr_plain; i++)
		depend(t, (uintptr_t)place[i], i < nr_written);
}

static unsigned nr_depends_of(void *const *list)
{
	const uintptr_t nr = (uintptr_t)list[!list[0]];
	return nr < DEPENDS ? (unsigned)nr : DEPENDS;
}

#define TASK_PARAMETERS                                                                            \
	(task_function * f, void *data, task_copy *copy, long size, long align, bool condition,    \
		unsigned flags, void **list, int priority, void *detach)
void GOMP_task TASK_PARAMETERS WEAK;

static TARGET_BETWEEN void make_task TASK_PARAMETERS
{
	unsigned nr = flags & GOMP_DEPENDS ? nr_depends_of(list) : 0;
	/* (libgomp writes an event to the beginning of the data, before it has them copied.) */
	char *room = flags & GOMP_DETACHES && copy ? NULL : ROOM(size, align, nr);
	struct given g;
	if (room) {
		call_task_find_room(&g, room, size, nr);
		if (nr)
			depends_of(g.task, list);
		tell_made(g.task);
		call_task_give(&g, &f, &data, &copy, &size);
	}
	GOMP_task(f, data, copy, size, align, condition, flags, list, priority, detach);
}

void longpole_at_GOMP_task TASK_PARAMETERS;
AT void longpole_at_GOMP_task TASK_PARAMETERS
{
	if (longpole_target_attached())
		make_task(f, data, copy, size, align, condition, flags, list, priority, detach);
	else
		GOMP_task(f, data, copy, size, align, condition, flags, list, priority, detach);
}

static void told_done(void)
{
	longpole_target_told(&doing()->home->done);
}

#define TASKLOOP(name, number)                                                                     \
	void name(task_function *f, void *data, task_copy *copy, long size, long align,            \
		unsigned flags, unsigned long nr, int priority, number from, number to, number by) \
		WEAK;                                                                              \
	void longpole_at_##name(task_function *f, void *data, task_copy *copy, long size,          \
		long align, unsigned flags, unsigned long nr, int priority, number from,           \
		number to, number by);                                                             \
	AT void longpole_at_##name(task_function *f, void *data, task_copy *copy, long size,       \
		long align, unsigned flags, unsigned long nr, int priority, number from,           \
		number to, number by)                                                              \
	{                                                                                          \
		char *room = longpole_target_attached() ? ROOM(size, align, 0) : NULL;             \
		struct given g;                                                                    \
		if (room) {                                                                        \
			call_task_find_room(&g, room, size, 0);                                    \
			tell_made(g.task);                                                         \
			call_task_give(&g, &f, &data, &copy, &size);                               \
		}                                                                                  \
		name(f, data, copy, size, align, flags, nr, priority, from, to, by);               \
		if (!(flags & GOMP_NO_GROUP))                                                      \
			told_done();                                                               \
	}
TASKLOOP(GOMP_taskloop, long)
TASKLOOP(GOMP_taskloop_ull, unsigned long long)

static void begin_group(void)
{
	struct doing *d = doing();
	if (d->nr_groups < GROUPS)
		d->group[d->nr_groups] = &new_home()->group;
	d->nr_groups++;
}

static void end_group(void)
{
	struct doing *d = doing();
	const char *group = call_task_group_of(d);
	d->nr_groups -= d->nr_groups != 0;
	if (group)
		longpole_target_told(group);
}

TARGET_AROUND(GOMP_taskwait, (void), (), longpole_target_let_see(true), told_done())
TARGET_AROUND(GOMP_taskgroup_start, (void), (), begin_group(), (void)0)
TARGET_AROUND(GOMP_taskgroup_end, (void), (), longpole_target_let_see(true), end_group())

static void told_of_list(void *const *list)
{
	union full_task f = {.task = {.room = DEPENDS}};
	depends_of(&f.task, list);
	told_of(&f.task);
}
TARGET_AROUND(GOMP_taskwait_depend, (void **list), (list), longpole_target_let_see(true),
	told_of_list(list))

/* ---- clang's --------------------------------------------------------------------------------- */

/* libomp's struct begins so. */
struct kmp_task {
	void *shared;
	int (*routine)(int thread, void *task);
};
struct kmp_depend {
	uintptr_t place;
	size_t bytes;
	uint8_t flags;
};
enum { KMP_WRITES = 2 | 4 | 8 }; /* out, mutexinoutset, inoutset */

/* NULL: it goes without us. */
static struct task *call_task_task_of(struct kmp_task *k)
{
	size_t class = 0;
	while (class < SIZES && routines[class] != k->routine)
		class ++;
	return class < SIZES ? (struct task *)(void *)((char *)k + class * STEP_BYTES) : NULL;
}

static void depends_of_kmp(struct task *t, const struct kmp_depend *list, int nr)
{
	for (int writes = 1; writes >= 0; writes--)
		for (int i = 0; i < nr; i++)
			if (!(list[i].flags & KMP_WRITES) == !writes)
				depend(t, list[i].place, writes);
}

#define ALLOC_PARAMETERS                                                                           \
	(void *place, int thread, int flags, size_t bytes, size_t shared_bytes,                    \
		int (*routine)(int, void *))
struct kmp_task *__kmpc_omp_task_alloc ALLOC_PARAMETERS WEAK;
struct kmp_task *longpole_at___kmpc_omp_task_alloc ALLOC_PARAMETERS;
AT struct kmp_task *longpole_at___kmpc_omp_task_alloc ALLOC_PARAMETERS
{
	size_t class = call_task_size_class(bytes);
	if (class >= SIZES || !longpole_target_attached())
		return __kmpc_omp_task_alloc(place, thread, flags, bytes, shared_bytes, routine);
	struct kmp_task *k = __kmpc_omp_task_alloc(place, thread, flags,
		class * STEP_BYTES + task_bytes(DEPENDS), shared_bytes, routines[class]);
	*call_task_task_of(k) = (struct task){.routine = routine, .room = DEPENDS};
	return k;
}

static void tell_made_kmp(struct kmp_task *k, const struct kmp_depend *list, int nr)
{
	struct task *t = call_task_task_of(k);
	if (!t)
		return;
	depends_of_kmp(t, list, nr);
	tell_made(t);
}

#define TASK(name, parameters, arguments, list, nr)                                                \
	TARGET_AROUND_RESULT(                                                                      \
		int, name, parameters, arguments, tell_made_kmp(task, list, nr), (void)0)
TASK(__kmpc_omp_task, (void *place, int thread, struct kmp_task *task), (place, thread, task), NULL,
	0)
TASK(__kmpc_omp_task_with_deps,
	(void *place, int thread, struct kmp_task *task, int nr, const struct kmp_depend *list,
		int nr_other, const struct kmp_depend *other),
	(place, thread, task, nr, list, nr_other, other), list, nr)

#define KMP_TASKLOOP(name, parameters, arguments)                                                  \
	TARGET_AROUND(name, parameters, arguments, tell_made_kmp(task, NULL, 0),                   \
		if (!no_group) told_done())
KMP_TASKLOOP(__kmpc_taskloop,
	(void *place, int thread, struct kmp_task *task, int condition, uint64_t *from,
		uint64_t *to, int64_t by, int no_group, int schedule, uint64_t grain, void *copy),
	(place, thread, task, condition, from, to, by, no_group, schedule, grain, copy))
KMP_TASKLOOP(__kmpc_taskloop_5,
	(void *place, int thread, struct kmp_task *task, int condition, uint64_t *from,
		uint64_t *to, int64_t by, int no_group, int schedule, uint64_t grain, int modifier,
		void *copy),
	(place, thread, task, condition, from, to, by, no_group, schedule, grain, modifier, copy))

TARGET_AROUND_RESULT(int, __kmpc_omp_taskwait, (void *place, int thread), (place, thread),
	longpole_target_let_see(true), told_done())
TARGET_AROUND(__kmpc_taskgroup, (void *place, int thread), (place, thread), begin_group(), (void)0)
TARGET_AROUND(__kmpc_end_taskgroup, (void *place, int thread), (place, thread),
	longpole_target_let_see(true), end_group())

static void told_of_kmp(const struct kmp_depend *list, int nr)
{
	union full_task f = {.task = {.room = DEPENDS}};
	depends_of_kmp(&f.task, list, nr);
	told_of(&f.task);
}
TARGET_AROUND(__kmpc_omp_wait_deps,
	(void *place, int thread, int nr, const struct kmp_depend *list, int nr_other,
		const struct kmp_depend *other),
	(place, thread, nr, list, nr_other, other), longpole_target_let_see(true),
	told_of_kmp(list, nr))
