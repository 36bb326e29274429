/* SPDX-License-Identifier: Apache-2.0 */
/* say.c - threads, objects and events in words. */
#include "deadlock/say/say.h"

#include "deadlock/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *name_of_pid(const struct deadlock_answer *a, pid_t pid)
{
	size_t i = deadlock_answer_find(a, pid);
	return i == SIZE_MAX ? "" : a->wait[i].thread.name;
}

void deadlock_say_process(struct base_str *out, const struct deadlock_answer *a, pid_t pid)
{
	const char *name = name_of_pid(a, pid);
	base_str_addf(out, "%s (pid %d)", *name ? name : "a process", (int)pid);
}

void deadlock_say_tid(char *buf, size_t size, const struct deadlock_answer *a, size_t wait)
{
	const struct deadlock_thread *t = &a->wait[wait].thread;
	bool is_alone = t->pid == t->tid;
	/* (numbers of other processes' threads may lie between) */
	for (size_t i = 0; i < a->nr_waits && is_alone; i++)
		is_alone = i == wait || a->wait[i].thread.pid != t->pid;
	snprintf(buf, size, is_alone ? "process %d" : "thread %d", (int)t->tid);
}

void deadlock_say_with(struct base_str *out, const char *format, const char *what)
{
	const char *at = strstr(format, "%s");
	if (!at) {
		base_str_add(out, format);
		return;
	}
	base_str_add_bytes(out, format, (size_t)(at - format));
	base_str_add(out, what);
	base_str_add(out, at + 2);
}

void deadlock_say_frame(struct base_str *out, const struct deadlock_frame *f)
{
	if (*f->function)
		base_str_addf(out, "%s()", f->function);
	else
		base_str_addf(out, "0x%" PRIx64, f->pc);
	if (*f->file) {
		const char *slash = strrchr(f->file, '/');
		base_str_addf(out, " %s:%" PRIu32, slash ? slash + 1 : f->file, f->line);
	} else if (*f->module) {
		base_str_addf(out, " in %s", f->module);
	}
}

/* The path of the file whose descriptor is the call's first argument. */
static void say_add_path(struct base_str *out, const struct deadlock_wait *w)
{
	char link[64], path[512];
	snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)w->thread.tid, (int)w->arg[0]);
	ssize_t n = readlink(link, path, sizeof path - 1);
	path[n > 0 ? n : 0] = 0;
	base_str_add(out, n > 0 ? path : "a file");
}

/* The same word in this process's memory: shared memory is mapped anywhere. 0: not mapped. */
static uint64_t say_address_in(
	const struct deadlock_answer *a, struct deadlock_process *p, const struct deadlock_key *k)
{
	if (k->kind == DEADLOCK_KEY_FUTEX || k->kind == DEADLOCK_KEY_SPIN)
		return k->at;
	deadlock_process_regions(a->world, p);
	for (size_t i = 0; i < p->nr_regions; i++) {
		const struct os_region *r = &p->region[i];
		if (r->shared && r->device == k->space && r->inode == k->id && k->at >= r->offset &&
			k->at - r->offset < r->end - r->start)
			return r->start + (k->at - r->offset);
	}
	return 0;
}

/* Its waiter tells what it is: an event alone does not. */
static const struct deadlock_wait *waiter_of(
	const struct deadlock_answer *a, const struct deadlock_key *k)
{
	for (size_t i = 0; i < a->nr_waits; i++) {
		const struct deadlock_wait *w = &a->wait[i];
		if (deadlock_wait_is_blocked(w) && w->nr_keys &&
			deadlock_key_matches(&w->key[0], k))
			return w;
	}
	return NULL;
}

static void say_word(struct base_str *out, const struct deadlock_answer *a,
	struct deadlock_process *p, const struct deadlock_key *k)
{
	const struct deadlock_wait *waiter = waiter_of(a, k);
	uint64_t address = p ? say_address_in(a, p, waiter ? &waiter->key[0] : k) : 0;
	base_str_addf(out, "%s ", waiter ? deadlock_kind_noun(waiter->kind) : "the word");
	if (address)
		deadlock_name_of_data(a->world, p, address, out);
	else
		base_str_addf(out, "at 0x%" PRIx64 " of shared memory", k->at);
}

static void say_file_lock(
	struct base_str *out, const struct deadlock_answer *a, const struct deadlock_key *k)
{
	const struct deadlock_wait *waiter = waiter_of(a, k);
	base_str_add(out, "the lock on ");
	if (waiter && waiter->kind == DEADLOCK_FILE_LOCK)
		say_add_path(out, waiter);
	else
		base_str_addf(out, "inode %" PRIu64, k->id);
}

void deadlock_say_key(struct base_str *out, const struct deadlock_answer *a, size_t wait,
	const struct deadlock_key *k)
{
	const struct deadlock_wait *w = &a->wait[wait];
	struct deadlock_process *p = deadlock_world_process(a->world, w->thread.pid);
	switch (k->kind) {
	case DEADLOCK_KEY_FUTEX:
	case DEADLOCK_KEY_FUTEX_SHARED:
	case DEADLOCK_KEY_SPIN:
		say_word(out, a, p, k);
		break;
	case DEADLOCK_KEY_PIPE_DATA:
	case DEADLOCK_KEY_PIPE_ROOM:
	case DEADLOCK_KEY_FIFO_READER:
	case DEADLOCK_KEY_FIFO_WRITER:
	case DEADLOCK_KEY_MQUEUE_DATA:
	case DEADLOCK_KEY_MQUEUE_ROOM:
	case DEADLOCK_KEY_EVENTFD_DATA:
	case DEADLOCK_KEY_EVENTFD_ROOM:
		base_str_addf(out, "%s (%" PRIu64 ")", deadlock_key_kind_text(k->kind), k->id);
		break;
	case DEADLOCK_KEY_SOCKET_DATA:
	case DEADLOCK_KEY_SOCKET_ROOM:
	case DEADLOCK_KEY_SOCKET_PEER:
	case DEADLOCK_KEY_SOCKET_BACKLOG:
		base_str_addf(
			out, "%s (socket %" PRIu64 ")", deadlock_key_kind_text(k->kind), k->id);
		break;
	case DEADLOCK_KEY_PROCESS_EXIT:
		base_str_add(out, "the end of ");
		deadlock_say_process(out, a, (pid_t)k->id);
		break;
	case DEADLOCK_KEY_THREAD_EXIT:
		base_str_addf(out, "the end of thread %" PRIu64, k->id);
		break;
	case DEADLOCK_KEY_FILE_LOCK:
		say_file_lock(out, a, k);
		break;
	case DEADLOCK_KEY_SYSV_SEM:
		base_str_addf(out, "System V semaphore %" PRIu64 " of set %" PRIu64, k->at, k->id);
		break;
	default:
		base_str_add(out, deadlock_key_kind_text(k->kind));
		break;
	}
}

void deadlock_say_object(
	struct base_str *out, const struct deadlock_answer *a, size_t wait, size_t key)
{
	const struct deadlock_wait *w = &a->wait[wait];
	struct deadlock_process *p = deadlock_world_process(a->world, w->thread.pid);
	bool is_memory = key < w->nr_keys && (w->key[key].kind == DEADLOCK_KEY_FUTEX ||
						     w->key[key].kind == DEADLOCK_KEY_FUTEX_SHARED);
	if (is_memory && w->object && p) {
		base_str_addf(out, "%s ", deadlock_kind_noun(w->kind));
		deadlock_name_of_data(a->world, p, w->object, out);
	} else if (key < w->nr_keys) {
		deadlock_say_key(out, a, wait, &w->key[key]);
	} else {
		base_str_add(out, "something unknown");
	}
}

const char *deadlock_finding_name(enum deadlock_finding_kind kind)
{
	static const char *const name[] = {"cycle", "self", "orphaned", "inherited", "stuck"};
	return (unsigned)kind < BASE_COUNT(name) ? name[kind] : "";
}

const char *deadlock_sure_name(enum deadlock_sure sure)
{
	static const char *const name[] = {"certain", "probable", "unknown"};
	return (unsigned)sure < BASE_COUNT(name) ? name[sure] : "";
}

const char *deadlock_edge_name(enum deadlock_edge_why why)
{
	static const char *const name[] = {"owns", "exits", "would", "may"};
	return (unsigned)why < BASE_COUNT(name) ? name[why] : "";
}
