/* SPDX-License-Identifier: Apache-2.0 */
/* tally.c - the tables that a program's threads count in: taking, filling and leaving them. */
#include "record/tally_count.h"

#include <string.h>

static uint32_t *states(struct ring_head *head)
{
	return (uint32_t *)(void *)((char *)head + head->tables_offset);
}

static struct tally_table *table_at(struct ring_head *head, uint32_t i)
{
	return (struct tally_table *)(void *)((char *)head + head->tables_offset +
					      tally_table_offset(head->nr_tables, i));
}

/* Always the lowest: few pages. 1 + its number; 0: none is free. */
static uint32_t take_table(struct ring_head *head)
{
	uint32_t *state = states(head);
	for (uint32_t i = 0; i < head->nr_tables; i++) {
		uint32_t is_free = TALLY_FREE;
		if (__atomic_load_n(&state[i], __ATOMIC_RELAXED) == TALLY_FREE &&
			__atomic_compare_exchange_n(&state[i], &is_free, TALLY_ACTIVE, false,
				__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return i + 1;
	}
	return 0;
}

static uint32_t new_table(struct ring_head *head)
{
	struct preload_thread *self = &preload_self;
	uint32_t number = take_table(head);
	if (!number)
		return 0;
	struct tally_table *t = table_at(head, number - 1);
	t->pid = self->pid;
	t->tid = self->tid;
	t->parent_image = self->block ? self->block->parent_image : 0;
	t->thread = self->number;
	t->has_kernel = self->tally ? self->tally->has_kernel : 0;
	t->image = self->image; /* last: the reader leaves out tables of image 0 */
	return number;
}

static void free_table(struct ring_head *head, uint32_t number)
{
	table_at(head, number - 1)->image = 0;
	__atomic_store_n(&states(head)[number - 1], TALLY_FREE, __ATOMIC_RELEASE);
}

/* The first one of this thread. A signal handler may be at the same. */
static struct tally_table *start(struct ring_head *head)
{
	struct preload_thread *self = &preload_self;
	struct tally_table *none = NULL;
	preload_thread_begin();
	if (!self->number)
		return NULL;
	uint32_t number = new_table(head);
	if (!number)
		return NULL;
	self->tally_mask = head->tally_mask;
	if (!__atomic_compare_exchange_n(&self->tally, &none, table_at(head, number - 1), false,
		    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		free_table(head, number);
	return self->tally;
}

static struct tally_table *next_of(struct ring_head *head, struct tally_table *t)
{
	uint64_t none = 0;
	if (!t->next) {
		uint32_t number = new_table(head);
		if (!number)
			return NULL;
		if (!__atomic_compare_exchange_n(
			    &t->next, &none, number, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			free_table(head, number);
	}
	uint64_t next = t->next;
	return next <= head->nr_tables ? table_at(head, (uint32_t)next - 1) : NULL;
}

static struct tally_entry *find_in(struct tally_table *t, uint64_t key, uint64_t site)
{
	for (unsigned i = 0; i < TALLY_PROBES; i++) {
		struct tally_entry *e = tally_place(t, key, site, i);
		if (e->key == key && e->site == site)
			return e;
		uint64_t is_free = 0;
		if (!e->key && __atomic_compare_exchange_n(&e->key, &is_free, key, false,
				       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			e->site = site;
			preload_modules_check(); /* a new place may be in a new library */
			tally_entered(key, site);
			return e;
		}
	}
	return NULL;
}

/* Beside the place where it should be: in a well filled table that is not rare. */
struct tally_entry *tally_probe(struct tally_table *t, uint64_t key, uint64_t site)
{
	for (unsigned i = 1; i < TALLY_PROBES; i++) {
		struct tally_entry *e = tally_place(t, key, site, i);
		if (e->key == key && e->site == site)
			return e;
		if (!e->key)
			break;
	}
	return tally_find_slow(key, site);
}

PRELOAD_COLD struct tally_entry *tally_find_slow(uint64_t key, uint64_t site)
{
	struct preload_thread *self = &preload_self;
	int saved_errno = errno;
	struct tally_entry *e = NULL;
	if (preload_on() && !self->ended && !preload_is_vfork_child()) {
		struct ring_head *head = preload_fresh.head;
		struct tally_table *first = self->tally ? self->tally : start(head), *t = first;
		for (unsigned i = 0; t && !e && i < TALLY_THREAD_TABLES; i++) {
			e = find_in(t, key, site);
			if (!e && i + 1 < TALLY_THREAD_TABLES)
				t = next_of(head, t);
		}
		if (!e && first)
			TALLY_INC(first->full);
		else if (!e)
			__atomic_fetch_add(&head->lost_records, 1, __ATOMIC_RELAXED);
	}
	errno = saved_errno;
	return e;
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
	struct preload_thread *self = &preload_self;
	struct ring_head *head = preload_fresh.head;
	struct tally_table *t = self->tally;
	if (t)
		tally_left();
	self->tally = NULL;
	self->nr_timed = 0;
	memset(self->timed_in, 0, sizeof self->timed_in);
	for (unsigned i = 0; t && head && i < TALLY_THREAD_TABLES; i++) {
		uint64_t next = t->next;
		uint64_t offset = (uint64_t)((char *)t - (char *)head) - head->tables_offset -
				  tally_table_offset(head->nr_tables, 0);
		t->end_tsc = preload_now();
		__atomic_store_n(
			&states(head)[offset / TALLY_TABLE_STRIDE], TALLY_DONE, __ATOMIC_RELEASE);
		t = next && next <= head->nr_tables ? table_at(head, (uint32_t)next - 1) : NULL;
	}
}
