/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.c - who could produce an event: processes that map the memory, hold the other end of the
 * pipe, are the child. Too many rather than too few: a deadlock is certain only if none of them
 * can.
 */
#include "deadlock/private.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pair {
	uint32_t key; /* index of accesses->access */
	pid_t pid;
};
struct search {
	struct deadlock_world *world;
	struct deadlock_accesses *to;
	struct pair *pair;
	size_t capacity, nr;
	bool wants_memory, wants_files;
};

static int by_key(const void *a, const void *b)
{
	const struct deadlock_access *x = a, *y = b;
	const uint64_t m[4] = {x->key.kind, x->key.space, x->key.id, x->key.at};
	const uint64_t n[4] = {y->key.kind, y->key.space, y->key.id, y->key.at};
	for (int i = 0; i < 4; i++) {
		if (m[i] != n[i])
			return m[i] < n[i] ? -1 : 1;
	}
	return 0;
}

static int by_pair(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

const struct deadlock_access *deadlock_accesses_get(
	const struct deadlock_accesses *a, const struct deadlock_key *key)
{
	const struct deadlock_access wanted = {.key = *key};
	return a->nr ? bsearch(&wanted, a->access, a->nr, sizeof *a->access, by_key) : NULL;
}

static enum base_status add(struct search *s, size_t key, pid_t pid)
{
	enum base_status status = base_grow(&s->pair, &s->capacity, s->nr + 1, sizeof *s->pair);
	if (status == BASE_OK)
		s->pair[s->nr++] = (struct pair){.key = (uint32_t)key, .pid = pid};
	return status;
}

/* ---- keys whose process is in the key -------------------------------------------------------- */

static enum base_status add_obvious(struct search *s)
{
	enum base_status status = BASE_OK;
	for (size_t i = 0; status == BASE_OK && i < s->to->nr; i++) {
		const struct deadlock_key *k = &s->to->access[i].key;
		switch (k->kind) {
		case DEADLOCK_KEY_FUTEX:
		case DEADLOCK_KEY_THREAD_EXIT:
		case DEADLOCK_KEY_SPIN:
			status = add(s, i, (pid_t)k->space);
			break;
		case DEADLOCK_KEY_PROCESS_EXIT:
			status = add(s, i, (pid_t)k->id);
			break;
		case DEADLOCK_KEY_FUTEX_SHARED:
			s->wants_memory = true;
			break;
		default:
			s->wants_files = true;
			break;
		}
	}
	return status;
}

/* ---- shared memory --------------------------------------------------------------------------- */

static enum base_status add_memory(struct search *s, pid_t pid)
{
	struct deadlock_process *p = deadlock_world_process(s->world, pid);
	enum base_status status = BASE_OK;
	if (!p)
		return BASE_ERR_NOMEM;
	deadlock_process_regions(s->world, p);
	if (!p->nr_regions && !p->is_gone)
		s->to->nr_blind++;
	for (size_t i = 0; i < p->nr_regions; i++) {
		const struct deadlock_region *r = &p->region[i];
		if (!r->shared || !r->inode)
			continue;
		for (size_t k = 0; status == BASE_OK && k < s->to->nr; k++) {
			const struct deadlock_key *key = &s->to->access[k].key;
			if (key->kind == DEADLOCK_KEY_FUTEX_SHARED && key->space == r->device &&
				key->id == r->inode)
				status = add(s, k, pid);
		}
	}
	return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Could this open file produce the key? */
static bool serves(const struct deadlock_file *f, const struct deadlock_key *k)
{
	switch (k->kind) {
	case DEADLOCK_KEY_PIPE_DATA:
		return f->kind == DEADLOCK_FILE_PIPE && f->inode == k->id && f->can_write;
	case DEADLOCK_KEY_PIPE_ROOM:
		return f->kind == DEADLOCK_FILE_PIPE && f->inode == k->id && f->can_read;
	case DEADLOCK_KEY_SOCKET_DATA:
	case DEADLOCK_KEY_SOCKET_ROOM:
		return f->kind == DEADLOCK_FILE_SOCKET && f->peer == k->id;
	case DEADLOCK_KEY_EVENTFD_DATA:
	case DEADLOCK_KEY_EVENTFD_ROOM:
		return f->kind == DEADLOCK_FILE_EVENTFD && f->inode == k->id;
	case DEADLOCK_KEY_FILE_LOCK: /* a lock belongs to whoever inherited the open file, too */
		return f->kind == DEADLOCK_FILE_REGULAR && f->inode == k->id &&
		       f->device == k->space;
	default:
		return false;
	}
}

static enum base_status add_files(struct search *s, pid_t pid)
{
	struct deadlock_process *p = deadlock_world_process(s->world, pid);
	enum base_status status = BASE_OK;
	if (!p)
		return BASE_ERR_NOMEM;
	deadlock_process_files(s->world, p);
	if (p->files_refused && !p->is_gone)
		s->to->nr_blind++;
	for (size_t i = 0; i < p->nr_files; i++) {
		for (size_t k = 0; status == BASE_OK && k < s->to->nr; k++) {
			if (serves(&p->file[i].file, &s->to->access[k].key))
				status = add(s, k, pid);
		}
	}
	return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static enum base_status collect_keys(
	struct search *s, const struct deadlock_wait *wait, size_t nr_waits)
{
	size_t nr = 0, kept = 0;
	for (size_t i = 0; i < nr_waits; i++)
		nr += wait[i].nr_keys;
	struct deadlock_access *a =
		base_arena_alloc(deadlock_world_arena(s->world), (nr + 1) * sizeof *a);
	if (!a)
		return BASE_ERR_NOMEM;
	nr = 0;
	for (size_t i = 0; i < nr_waits; i++) {
		for (size_t k = 0; k < wait[i].nr_keys; k++)
			a[nr++].key = wait[i].key[k];
	}
	if (nr)
		qsort(a, nr, sizeof *a, by_key);
	for (size_t i = 0; i < nr; i++) {
		if (!kept || by_key(&a[kept - 1], &a[i]) != 0)
			a[kept++] = a[i];
	}
	s->to->access = a;
	s->to->nr = kept;
	return BASE_OK;
}

static enum base_status distribute(struct search *s)
{
	size_t kept = 0;
	if (!s->nr)
		return BASE_OK;
	qsort(s->pair, s->nr, sizeof *s->pair, by_pair);
	pid_t *pid = base_arena_alloc(deadlock_world_arena(s->world), s->nr * sizeof *pid);
	if (!pid)
		return BASE_ERR_NOMEM;
	for (size_t i = 0; i < s->nr; i++) {
		struct deadlock_access *a = &s->to->access[s->pair[i].key];
		if (a->nr_pids && a->pid[a->nr_pids - 1] == s->pair[i].pid)
			continue;
		pid[kept] = s->pair[i].pid;
		if (!a->nr_pids)
			a->pid = &pid[kept];
		a->nr_pids++;
		kept++;
	}
	return BASE_OK;
}

enum base_status deadlock_accesses_find(struct deadlock_world *w, const struct deadlock_wait *wait,
	size_t nr_waits, struct deadlock_accesses *ret, struct base_err *err)
{
	struct search s = {.world = w, .to = ret};
	*ret = (struct deadlock_accesses){0};
	enum base_status status = collect_keys(&s, wait, nr_waits);
	if (status == BASE_OK)
		status = add_obvious(&s);
	size_t nr = 0;
	const struct deadlock_listed *list =
		s.wants_memory || s.wants_files ? deadlock_world_list(w, &nr) : NULL;
	for (size_t i = 0; status == BASE_OK && i < nr; i++) {
		if (s.wants_memory)
			status = add_memory(&s, list[i].pid);
		if (status == BASE_OK && s.wants_files)
			status = add_files(&s, list[i].pid);
	}
	if (status == BASE_OK)
		status = distribute(&s);
	base_free(s.pair);
	if (status != BASE_OK)
		return base_fail(err, status, "out of memory for who may wake whom");
	return BASE_OK;
}
