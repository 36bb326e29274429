/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - a thread's perf events: opened, read, added, closed. */
#include "tally/events.h"

#define LONGPOLE_DISABLE
#include "longpole/counter.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum events_state { EVENTS_NONE, EVENTS_OPENING, EVENTS_OPEN, EVENTS_REFUSED };
/* Descriptors that stay open are out of the program's way. */
enum { EVENTS_FD_LEAST = 768 };

/* A page keeps its event open. */
typedef const volatile struct perf_event_mmap_page events_page;
struct events_set {
	events_page *page[TALLY_MODES][RING_EVENTS];
	uint64_t id[TALLY_MODES];
	int32_t leader[TALLY_MODES]; /* the group is read through this; -1: by rdpmc */
	uint64_t thread;             /* whose they are, and in which image: ... */
	uint32_t image, state;       /* ... a fork's child has its parent's */
	uint32_t modes, number;
};

/* Behind what each library keeps there itself. */
enum { EVENTS_SET_WORD = PRELOAD_MORE_WORDS - 32 };
_Static_assert(sizeof(struct events_set) <= 32 * sizeof(uint64_t), "has room");

static struct events_set *set_of_thread(void)
{
	return (struct events_set *)(void *)(preload_self->more + EVENTS_SET_WORD);
}

static uint64_t floor_of[TALLY_MODES][RING_EVENTS];

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_refused(long result)
{
	return (unsigned long)result > -4096ul;
}

static long events_open_event(unsigned mode, unsigned i, long leader)
{
	const struct ring_event *e = &preload_ring.event[i];
	struct perf_event_attr attr = {.type = e->type,
		.size = sizeof attr,
		.config = e->config,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
		.exclude_kernel = mode == TALLY_USER,
		.exclude_user = mode == TALLY_KERNEL,
		.exclude_hv = 1};
	if (e->type != PERF_TYPE_HARDWARE && e->type != PERF_TYPE_SOFTWARE &&
		e->type != PERF_TYPE_HW_CACHE)
		return -EINVAL;
	return preload_syscall(
		SYS_perf_event_open, (long)&attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC, 0);
}

static events_page *map_page(long fd)
{
	long page = preload_syscall(SYS_mmap, 0, PRELOAD_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	return is_refused(page) ? NULL : (events_page *)(uintptr_t)page;
}

static void unmap_group(struct events_set *s, unsigned mode)
{
	for (unsigned i = 0; i < RING_EVENTS; i++) {
		if (s->page[mode][i])
			preload_syscall(
				SYS_munmap, (long)s->page[mode][i], PRELOAD_PAGE, 0, 0, 0, 0);
		s->page[mode][i] = NULL;
	}
}

/* The program may have closed what it does not know, and have a file of its own by that number. */
static bool events_is_ours(const struct events_set *s, unsigned mode)
{
	uint64_t id = 0;
	return s->leader[mode] >= 0 &&
	       !preload_syscall(
		       SYS_ioctl, s->leader[mode], (long)PERF_EVENT_IOC_ID, (long)&id, 0, 0, 0) &&
	       id == s->id[mode];
}

/* The leader's descriptor, where it is needed: high up. */
static bool keep_leader(struct events_set *s, unsigned mode, long fd)
{
	long kept = preload_syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, EVENTS_FD_LEAST, 0, 0, 0);
	uint64_t id = 0;
	if (is_refused(kept))
		return false;
	s->leader[mode] = (int32_t)kept;
	if (preload_syscall(SYS_ioctl, kept, (long)PERF_EVENT_IOC_ID, (long)&id, 0, 0, 0))
		return false;
	s->id[mode] = id;
	return true;
}

static void open_group(struct events_set *s, unsigned mode)
{
	long leader = -1;
	bool by_page = !preload_ring.events_by_call, good = true;
	for (unsigned i = 0; good && i < preload_ring.nr_events; i++) {
		long fd = events_open_event(mode, i, leader);
		good = !is_refused(fd);
		if (!good)
			break;
		s->page[mode][i] = map_page(fd);
		good = s->page[mode][i] != NULL;
		by_page = LONGPOLE_HAS_RDPMC && by_page && good && s->page[mode][i]->cap_user_rdpmc;
		if (leader < 0)
			leader = fd;
		else
			preload_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	}
	s->leader[mode] = -1;
	if (good && !by_page)
		good = keep_leader(s, mode, leader);
	if (leader >= 0)
		preload_syscall(SYS_close, leader, 0, 0, 0, 0, 0);
	if (good)
		s->modes |= 1u << mode;
	else
		unmap_group(s, mode);
}

static void close_set(struct events_set *s, bool has_pages)
{
	for (unsigned mode = 0; mode < TALLY_MODES; mode++) {
		if (!(s->modes & 1u << mode))
			continue;
		if (events_is_ours(s, mode))
			preload_syscall(SYS_close, s->leader[mode], 0, 0, 0, 0, 0);
		if (has_pages)
			unmap_group(s, mode);
	}
	s->modes = 0;
}

static bool belongs_to_thread(const struct events_set *s)
{
	return s->image == preload_self->image && s->thread == preload_self->number;
}

/* perf's pages are not in a fork's child. */
static PRELOAD_COLD void events_open_set(struct events_set *s)
{
	int saved_errno = errno;
	s->state = EVENTS_OPENING; /* signal handlers keep out */
	PRELOAD_BARRIER();
	close_set(s, s->image == preload_self->image);
	s->image = preload_self->image;
	s->thread = preload_self->number;
	s->number++;
	for (unsigned mode = 0; mode < TALLY_MODES; mode++)
		if (preload_ring.event_modes & 1u << mode)
			open_group(s, mode);
	PRELOAD_BARRIER();
	s->state = s->modes ? EVENTS_OPEN : EVENTS_REFUSED;
	errno = saved_errno;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_by_page(const struct events_set *s, unsigned mode, struct tally_event_reading *ret)
{
	events_page *page = s->page[mode][0];
	uint64_t enabled, running;
	uint32_t lock;
	bool counted = true;
	for (unsigned i = 0; i < preload_ring.nr_events; i++)
		counted &= longpole_pmu_read(s->page[mode][i], &ret->count[mode][i]) != 0;
	do {
		lock = page->lock;
		PRELOAD_BARRIER();
		enabled = page->time_enabled;
		running = page->time_running;
		PRELOAD_BARRIER();
	} while (page->lock != lock || lock & 1);
	ret->enabled_ns[mode] = enabled;
	ret->lag_ns[mode] = enabled - running;
	return counted;
}

static bool read_by_call(const struct events_set *s, unsigned mode, struct tally_event_reading *ret)
{
	struct {
		uint64_t nr, enabled, running, value[RING_EVENTS];
	} got;
	uint64_t nr = preload_ring.nr_events;
	long size = (long)(sizeof(uint64_t) * (3 + nr));
	if (!events_is_ours(s, mode) ||
		preload_syscall(SYS_read, s->leader[mode], (long)&got, size, 0, 0, 0) != size ||
		got.nr != nr)
		return false;
	for (unsigned i = 0; i < nr; i++)
		ret->count[mode][i] = got.value[i];
	ret->enabled_ns[mode] = got.enabled;
	ret->lag_ns[mode] = got.enabled - got.running;
	return true;
}

bool tally_events_read(struct tally_event_reading *ret)
{
	struct events_set *s = set_of_thread();
	ret->modes = 0;
	if (!preload_fresh.head || !preload_self->place || preload_self->ended ||
		s->state == EVENTS_OPENING)
		return false;
	if (PRELOAD_RARE(preload_self->in_vfork) && preload_is_vfork_child())
		return false;
	if (PRELOAD_RARE(s->state == EVENTS_NONE || !belongs_to_thread(s)))
		events_open_set(s);
	if (s->state != EVENTS_OPEN)
		return false;
	ret->set = s->number;
	for (unsigned mode = 0; mode < TALLY_MODES; mode++) {
		if (!(s->modes & 1u << mode))
			continue;
		bool counted = s->leader[mode] < 0 ? read_by_page(s, mode, ret)
						   : read_by_call(s, mode, ret);
		ret->modes |= (uint32_t)counted << mode;
	}
	return ret->modes != 0;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static void events_add_total(const struct tally_event_reading *now)
{
	struct tally_table *t = preload_self->tally;
	for (unsigned mode = 0; t && mode < TALLY_MODES; mode++) {
		if (!(now->modes & 1u << mode))
			continue;
		for (unsigned i = 0; i < preload_ring.nr_events; i++)
			t->event_count[mode][i] = now->count[mode][i];
		t->enabled_ns[mode] = now->enabled_ns[mode];
		t->running_ns[mode] = now->enabled_ns[mode] - now->lag_ns[mode];
	}
}

void tally_events_add(const struct tally_event_reading *since,
	const struct tally_event_reading *now, uint64_t weight, struct tally_event_sums *to)
{
	if (since->set != now->set)
		return;
	for (unsigned mode = 0; mode < TALLY_MODES; mode++) {
		if (!(since->modes & now->modes & 1u << mode) ||
			since->lag_ns[mode] != now->lag_ns[mode])
			continue;
		TALLY_ADD(to->nr[mode], weight);
		for (unsigned i = 0; i < preload_ring.nr_events; i++) {
			uint64_t passed = now->count[mode][i] - since->count[mode][i];
			TALLY_ADD(to->count[mode][i], weight * (passed - floor_of[mode][i]));
		}
	}
	events_add_total(now);
}

void tally_events_leave(void)
{
	struct events_set *s = set_of_thread();
	struct tally_event_reading now;
	if (!preload_fresh.head || s->state != EVENTS_OPEN || !belongs_to_thread(s))
		return;
	if (tally_events_read(&now))
		events_add_total(&now);
	s->state = EVENTS_REFUSED;
	PRELOAD_BARRIER();
	close_set(s, true);
}

/* ---- what a reading counts itself ------------------------------------------------------------ */

static void sort_counts(uint64_t *value, unsigned nr)
{
	for (unsigned i = 1, k; i < nr; i++) {
		uint64_t moved = value[i];
		for (k = i; k && value[k - 1] > moved; k--)
			value[k] = value[k - 1];
		value[k] = moved;
	}
}

void tally_events_measure(void (*between)(void))
{
	enum { ROUNDS = 17, COLD = 4 };
	struct tally_event_reading since, now;
	uint64_t seen[TALLY_MODES][RING_EVENTS][ROUNDS];
	unsigned nr[TALLY_MODES] = {0};
	(void)preload_own();
	for (unsigned round = 0; round < ROUNDS + COLD; round++) {
		if (!tally_events_read(&since))
			return;
		between();
		if (!tally_events_read(&now) || round < COLD)
			continue;
		for (unsigned mode = 0; mode < TALLY_MODES; mode++) {
			if (!(since.modes & now.modes & 1u << mode))
				continue;
			for (unsigned i = 0; i < preload_ring.nr_events; i++)
				seen[mode][i][nr[mode]] = now.count[mode][i] - since.count[mode][i];
			nr[mode]++;
		}
	}
	for (unsigned mode = 0; mode < TALLY_MODES; mode++)
		for (unsigned i = 0; nr[mode] && i < preload_ring.nr_events; i++) {
			sort_counts(seen[mode][i], nr[mode]);
			floor_of[mode][i] = seen[mode][i][nr[mode] / 2];
		}
}
