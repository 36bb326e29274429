/* SPDX-License-Identifier: Apache-2.0 */
/* tally.c - the tables that a program's threads count in: taking, filling and leaving them. */
#include "tally/count.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

static uint32_t *tally_states(struct ring_head *head)
{
	return (uint32_t *)(void *)((char *)head + preload_ring.tables_offset);
}

static struct tally_table *table_at(struct ring_head *head, uint32_t i)
{
	return (struct tally_table *)(void *)((char *)head + preload_ring.tables_offset +
					      tally_table_offset(preload_ring.nr_tables, i));
}

static uintptr_t tags_at(struct ring_head *head, uint32_t i)
{
	return (uintptr_t)head + preload_ring.tables_offset +
	       tally_tags_offset(preload_ring.nr_tables, i);
}

static uintptr_t entries_at(struct ring_head *head, uint32_t i)
{
	return (uintptr_t)head + preload_ring.tables_offset +
	       tally_entries_offset(preload_ring.nr_tables, i);
}

static uintptr_t events_at(struct ring_head *head, uint32_t i)
{
	return (uintptr_t)head + preload_ring.tables_offset +
	       tally_events_offset(preload_ring.nr_tables, i);
}

static bool tally_take(uint32_t *state)
{
	uint32_t is_free = TALLY_FREE;
	return __atomic_load_n(state, __ATOMIC_RELAXED) == TALLY_FREE &&
	       __atomic_compare_exchange_n(
		       state, &is_free, TALLY_ACTIVE, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* `nr` in a row, always the lowest: few pages. 1 + the first one's number; 0: there are none. */
static uint32_t tally_take_tables(struct ring_head *head, uint32_t nr)
{
	uint32_t *state = tally_states(head), i = 0, j;
	while (i + nr <= preload_ring.nr_tables) {
		for (j = 0; j < nr && tally_take(&state[i + j]);)
			j++;
		if (j == nr)
			return i + 1;
		for (uint32_t k = i; k < i + j; k++)
			__atomic_store_n(&state[k], TALLY_FREE, __ATOMIC_RELEASE);
		i += j + 1;
	}
	return 0;
}

/* Tables in a row that a thread has: at first, when those are full, and then. */
static const uint32_t in_a_row[] = {1, 16, 128};

static uint32_t row_after(const struct tally_table *t)
{
	for (size_t i = 0; t && i < PRELOAD_COUNT(in_a_row) - 1; i++)
		if (t->nr == in_a_row[i])
			return in_a_row[i + 1];
	return t ? 0 : in_a_row[0];
}

/* More room to count in; false: there is none. No signal handler may count in between. */
static bool tally_grow(struct ring_head *head)
{
	struct preload_thread *self = preload_self;
	struct tally_table *before = self->tally;
	uint32_t nr = row_after(before), number = nr ? tally_take_tables(head, nr) : 0;
	for (uint32_t i = 0; number && i < nr; i++) {
		struct tally_table *t = table_at(head, number - 1 + i);
		t->pid = self->pid;
		t->tid = self->tid;
		t->ids = self->ids;
		t->parent_image = self->block ? self->block->parent_image : 0;
		t->thread = self->number;
		t->has_kernel = before ? before->has_kernel : 0;
		t->nr = i ? 0 : nr;
		t->before = !i && before ? 1 + (uint32_t)(before - table_at(head, 0)) : 0;
		t->image = self->image; /* last: the reader leaves out tables of image 0 */
	}
	if (!number)
		return false;
	self->tally = table_at(head, number - 1);
	self->tally_tag = (struct tally_tag *)tags_at(head, number - 1);
	self->tally_mask = preload_ring.tally_mask;
	unsigned step = self->tally_mask == TALLY_ALL ? 2 : 1;
	self->tally_span = ((size_t)nr * TALLY_ENTRIES - step) * sizeof(struct tally_tag);
	self->tally_entries = entries_at(head, 0) - 8 * tags_at(head, 0);
	self->tally_events = preload_ring.nr_events
				     ? events_at(head, 0) - entries_at(head, 0) /
								    sizeof(struct tally_entry) *
								    sizeof(struct tally_events)
				     : 0;
	return true;
}

static bool grow_undisturbed(struct ring_head *head, const struct tally_tag *full)
{
	sigset_t all, old;
	sigfillset(&all);
	if (preload_syscall(SYS_rt_sigprocmask, SIG_BLOCK, (long)&all, (long)&old, _NSIG / 8, 0, 0))
		return false;
	bool grown =
		preload_self->tally_tag != full || tally_grow(head); /* by a handler, just now? */
	preload_syscall(SYS_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, _NSIG / 8, 0, 0);
	return grown;
}

/* The place of that, old or new; NULL: all that it may have are taken. A signal handler may be at
 * the same: each finds or makes one, and the reader adds. */
static struct tally_tag *find_or_add(uint64_t key, uint64_t site)
{
	uint64_t tag = tally_tag_of(key & ~RING_OBJECT_SHARED, site);
	for (unsigned i = 0; i < TALLY_PROBES; i++) {
		struct tally_tag *t = tally_place(key & ~RING_OBJECT_SHARED, tag, i);
		uint64_t is_free = 0;
		if (t->tag == tag)
			return t;
		if (t->tag || !__atomic_compare_exchange_n(&t->tag, &is_free, 1, false,
				      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			continue;
		struct tally_entry *e = tally_entry_of(t);
		e->site = site;
		e->key = key;
		t->left = t->end = 1;
		__atomic_store_n(&t->tag, tag, __ATOMIC_RELEASE);
		preload_modules_check(); /* a new place may be in a new library */
		tally_entered(key, site);
		return t;
	}
	return NULL;
}

static PRELOAD_COLD struct tally_tag *find_slow(uint64_t key, uint64_t site)
{
	int saved_errno = errno;
	struct preload_thread *self = preload_own();
	struct tally_tag *t = NULL;
	if (preload_on() && self->ended && !preload_is_vfork_child()) {
		/* (a signal's handler, or the destructor of another's key, behind the thread's end) */
		__atomic_fetch_add(&preload_fresh.head->lost_records, 1, __ATOMIC_RELAXED);
	} else if (preload_on() && !preload_is_vfork_child()) {
		struct ring_head *head = preload_fresh.head;
		struct tally_tag *full = self->tally_tag;
		if (!full)
			preload_thread_begin();
		while (self->number) {
			if ((full = self->tally_tag) && (t = find_or_add(key, site)))
				break;
			if (!grow_undisturbed(head, full))
				break;
		}
		if (!t && self->tally)
			TALLY_INC(self->tally->full);
		else if (!t)
			__atomic_fetch_add(&head->lost_records, 1, __ATOMIC_RELAXED);
	}
	errno = saved_errno;
	return t;
}

/* Beside the place where it should be: in a well filled table that is not rare. */
struct tally_tag *tally_probe(uint64_t key, uint64_t site)
{
	uint64_t tag = tally_tag_of(key & ~RING_OBJECT_SHARED, site);
	bool has = preload_self->tally_tag && preload_fresh.head;
	if (preload_is_runtime(site))
		return NULL;
	for (unsigned i = 1; has && i < TALLY_PROBES; i++) {
		struct tally_tag *t = tally_place(key & ~RING_OBJECT_SHARED, tag, i);
		if (t->tag == tag)
			return t;
		if (!t->tag)
			break;
	}
	return find_slow(key, site);
}

/* Descriptors are no concern of those who only count: what the core says of them ends here. */
void preload_fd_forget(int fd)
{
	(void)fd;
}
void preload_fd_close(int fd, uint64_t site)
{
	(void)fd, (void)site;
}
void preload_fd_close_on_exec(uint64_t site)
{
	(void)site;
}

/* The thread, or the process by exit(), ends. The reader clears the table and frees it. */
void preload_tally_end(void)
{
	struct preload_thread *self = preload_self;
	struct ring_head *head = preload_fresh.head;
	struct tally_table *t = self->tally;
	if (t)
		tally_left();
	self->tally_tag = NULL;
	self->tally = NULL;
	self->tally_mask = 0;
	self->nr_timed = 0;
	memset(self->timed_in, 0, sizeof self->timed_in);
	for (unsigned row = 0; t && head && row < PRELOAD_COUNT(in_a_row); row++) {
		uint32_t first = (uint32_t)(t - table_at(head, 0)),
			 before = __atomic_load_n(&t->before, __ATOMIC_RELAXED);
		uint32_t nr = __atomic_load_n(&t->nr, __ATOMIC_RELAXED);
		uint32_t end = nr <= preload_ring.nr_tables - first ? first + nr : first;
		for (uint32_t i = first; i < end; i++) {
			table_at(head, i)->end_tsc = preload_now();
			__atomic_store_n(&tally_states(head)[i], TALLY_DONE, __ATOMIC_RELEASE);
		}
		t = before && before <= preload_ring.nr_tables ? table_at(head, before - 1) : NULL;
	}
}
