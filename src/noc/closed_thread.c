/* SPDX-License-Identifier: Apache-2.0 */
/* closed_thread.c - what the threads of a program do next, and how they wait for each other. */
#include "noc/closed_private.h"

/* Lines of our own, a page each: a thread's mailbox, which says that it may start, and its notice
 * that it has ended; and objects whose addresses are not known. */
#define OWN_ADDRESS UINT64_C(0x700000000000)
enum { PAGE_BYTES = 4096, LINE_APART_BYTES = 1024 };

static uint64_t mailbox(uint32_t thread)
{
	return OWN_ADDRESS + (uint64_t)PAGE_BYTES * (2 * (uint64_t)thread + 1);
}

static uint64_t notice(uint32_t thread)
{
	return OWN_ADDRESS + (uint64_t)PAGE_BYTES * (2 * (uint64_t)thread + 2);
}

static uint64_t object_address(uint64_t object)
{
	return object && object < MEMORY_ADDRESS_LIMIT - PAGE_BYTES ? object : OWN_ADDRESS;
}

/* What waiters of a barrier spin on: beside its count. */
static uint64_t flag_of(uint64_t object)
{
	return object_address(object) + LINE_APART_BYTES;
}

static void access_next(struct noc_closed_thread *t, enum memory_item_kind kind, uint64_t address,
	uint64_t bytes, enum noc_closed_then then)
{
	t->has_access = true;
	t->kind = kind;
	t->address = address;
	t->left_bytes = bytes;
	t->then = then;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Loads the line, again and again, until `released`; then does what `after` says. A copy in its own
 * cache is looked at without any message, so only the first look and the one after the line was
 * taken away are made. */
static void closed_thread_watch(
	struct noc_closed_thread *t, uint64_t address, enum noc_closed_then after)
{
	t->watched = address;
	t->after = after;
	access_next(t, MEMORY_LOAD, address, 0, CLOSED_LOOK);
}

static enum base_status look_again(
	struct noc_closed *c, uint32_t thread, uint64_t cycle, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	t->state = CLOSED_RUNS;
	access_next(t, MEMORY_LOAD, t->watched, 0, CLOSED_LOOK);
	return noc_closed_wake(c, thread, cycle, err);
}

enum base_status noc_closed_recalled(struct noc_closed *c, uint32_t thread, uint64_t line,
	uint32_t packet, uint64_t cycle, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	uint64_t bytes = c->options->machine->line_bytes;
	if (t->state != CLOSED_WATCHES || !t->released || t->watched / bytes != line / bytes)
		return BASE_OK;
	t->causes.nr = 0;
	noc_closed_add_cause(&t->causes, packet);
	return look_again(c, thread, cycle + 1, err);
}

/* What was stored has reached all caches: threads without a copy look now. */
static enum base_status all_have_seen(
	struct noc_closed *c, uint64_t address, uint64_t cycle, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < c->nr_threads && s == BASE_OK; i++)
		if (c->thread[i].state == CLOSED_WATCHES && c->thread[i].released &&
			c->thread[i].watched == address)
			s = look_again(c, i, cycle, err);
	return s;
}

void noc_closed_await_start(struct noc_closed *c, uint32_t thread)
{
	closed_thread_watch(&c->thread[thread], mailbox(thread), CLOSED_GO_ON);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The thread that a call names; when the recording does not say: each in turn. */
static uint32_t which(const struct noc_closed *c, uint64_t named, uint32_t *nr)
{
	*nr += *nr + 1 < c->nr_threads;
	return named && named < c->nr_threads ? (uint32_t)named : *nr;
}

static void closed_thread_start_thread(
	struct noc_closed *c, struct noc_closed_thread *by, uint32_t thread)
{
	struct noc_closed_thread *t = &c->thread[thread];
	if (t->started)
		return;
	t->started = t->released = true;
	access_next(by, MEMORY_STORE, mailbox(thread), 0, CLOSED_RELEASED);
}

static void join_thread(struct noc_closed *c, struct noc_closed_thread *by, uint32_t thread)
{
	struct noc_closed_thread *t = &c->thread[thread];
	if (t == by || t->state == CLOSED_ENDED)
		return;
	by->released = t->is_over;
	closed_thread_watch(by, notice(thread), CLOSED_GO_ON);
}

/* Gives the lock to the next one in turn, or to nobody. */
static enum base_status closed_thread_hand_over(
	struct noc_closed *c, uint32_t thread, struct base_err *err)
{
	uint64_t object = c->thread[thread].object;
	for (uint32_t k = 1; k <= c->nr_threads; k++) {
		uint32_t i = (thread + k) % c->nr_threads;
		struct noc_closed_thread *t = &c->thread[i];
		if (!t->at_lock || t->object != object)
			continue;
		t->at_lock = false;
		t->released = true;
		enum base_status s = base_map_put(&c->locks, 0, object, i);
		return s == BASE_OK ? s : base_fail(err, s, "no memory for a lock");
	}
	(void)base_map_remove(&c->locks, 0, object);
	return BASE_OK;
}

static enum base_status closed_thread_obey_call(
	struct noc_closed *c, uint32_t thread, const struct memory_call *call, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	t->object = object_address(call->argument[0]);
	switch (call->kind) {
	case MEMORY_CALL_barrier:
		t->parties = call->argument[1];
		access_next(t, MEMORY_STORE, t->object, 0, CLOSED_ARRIVE);
		break;
	case MEMORY_CALL_lock:
		access_next(t, MEMORY_STORE, t->object, 0, CLOSED_ACQUIRE);
		break;
	case MEMORY_CALL_unlock:
		access_next(t, MEMORY_STORE, t->object, 0, CLOSED_RELEASED);
		return closed_thread_hand_over(c, thread, err);
	case MEMORY_CALL_spawn:
		t->children = c->nr_threads;
		break;
	case MEMORY_CALL_thread_create:
		closed_thread_start_thread(c, t, which(c, call->argument[0], &c->nr_created));
		break;
	case MEMORY_CALL_join:
		t->joining = thread ? 0 : 1;
		break;
	case MEMORY_CALL_thread_join:
		join_thread(c, t, which(c, call->argument[0], &c->nr_joined));
		break;
	default:
		break;
	}
	return BASE_OK;
}

/* Spawn and join of all threads, one after the other. */
static void next_of_all(struct noc_closed *c, uint32_t thread)
{
	struct noc_closed_thread *t = &c->thread[thread];
	while (t->children && !t->has_access)
		closed_thread_start_thread(c, t, --t->children);
	while (t->joining && !t->has_access) {
		join_thread(c, t, t->joining);
		t->joining = t->joining + 1 < c->nr_threads ? t->joining + 1 : 0;
	}
}

/* ---- items ----------------------------------------------------------------------------------- */

/* Says so to the thread that joins it. */
static void closed_thread_end(struct noc_closed *c, uint32_t thread)
{
	struct noc_closed_thread *t = &c->thread[thread];
	t->is_over = true;
	for (uint32_t i = 0; i < c->nr_threads; i++)
		if (c->thread[i].watched == notice(thread) && i != thread)
			c->thread[i].released = true;
	access_next(t, MEMORY_STORE, notice(thread), 0, CLOSED_END);
}

/* The next item that is no REPEAT; NULL: the thread has no more. */
static enum base_status closed_thread_next_item(
	struct noc_closed *c, uint32_t thread, const struct memory_item **ret, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	*ret = NULL;
	if (t->nr_body && t->body_at == t->nr_body) {
		t->body_at = 0;
		if (++t->iteration == t->batch.item[t->at].count) {
			t->at += 1 + (size_t)t->nr_body;
			t->nr_body = 0;
		}
	}
	if (!t->nr_body && t->at >= t->batch.nr) {
		enum base_status s = memory_source_next(c->program, (int)thread, &t->batch, err);
		t->at = 0;
		if (s != BASE_OK || !t->batch.nr) {
			t->batch.nr = 0;
			return s == BASE_END ? BASE_OK : s;
		}
	}
	if (!t->nr_body && t->batch.item[t->at].kind == MEMORY_REPEAT) {
		t->nr_body = t->batch.item[t->at].address;
		t->body_at = 0;
		t->iteration = 0;
	}
	*ret = t->nr_body ? &t->batch.item[t->at + 1 + t->body_at++] : &t->batch.item[t->at++];
	return BASE_OK;
}

static enum base_status obey_item(
	struct noc_closed *c, uint32_t thread, const struct memory_item *i, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	uint64_t address = i->address;
	t->cycle += i->instructions;
	switch (i->kind) {
	case MEMORY_LOAD:
	case MEMORY_STORE:
	case MEMORY_ATOMIC:
		if (t->nr_body)
			address += t->iteration * (uint64_t)i->stride_bytes;
		if (i->size_bytes && address < MEMORY_ADDRESS_LIMIT)
			access_next(t, i->kind == MEMORY_LOAD ? MEMORY_LOAD : MEMORY_STORE, address,
				i->size_bytes - 1u, CLOSED_GO_ON);
		break;
	case MEMORY_RANGE_LOAD:
	case MEMORY_RANGE_STORE:
		if (i->count && address < MEMORY_ADDRESS_LIMIT &&
			i->count < MEMORY_ADDRESS_LIMIT - address)
			access_next(t, i->kind == MEMORY_RANGE_LOAD ? MEMORY_LOAD : MEMORY_STORE,
				address, i->count - 1, CLOSED_GO_ON);
		break;
	case MEMORY_CALL:
		if (address < t->batch.nr_calls)
			return closed_thread_obey_call(c, thread, &t->batch.call[address], err);
		break;
	default:
		break;
	}
	return BASE_OK;
}

enum base_status noc_closed_advance(
	struct noc_closed *c, uint32_t thread, enum noc_closed_step *ret, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	*ret = CLOSED_BLOCKED;
	while (t->state == CLOSED_RUNS && !t->has_access) {
		const struct memory_item *i;
		next_of_all(c, thread);
		if (t->has_access)
			break;
		enum base_status s = closed_thread_next_item(c, thread, &i, err);
		if (s == BASE_OK && i && !c->result->stopped)
			s = obey_item(c, thread, i, err);
		else if (s == BASE_OK)
			closed_thread_end(c, thread);
		if (s != BASE_OK)
			return s;
	}
	if (t->state == CLOSED_RUNS && t->has_access)
		*ret = CLOSED_ACCESS;
	return BASE_OK;
}

/* ---- synchronisation ------------------------------------------------------------------------- */

/* The last one at the barrier stores to what the others spin on. */
static void closed_thread_arrive(struct noc_closed *c, uint32_t thread)
{
	struct noc_closed_thread *t = &c->thread[thread];
	uint64_t nr = 1, running = 0;
	for (uint32_t i = 0; i < c->nr_threads; i++) {
		const struct noc_closed_thread *other = &c->thread[i];
		nr += other->at_barrier && other->object == t->object;
		running += other->started && other->state != CLOSED_ENDED;
	}
	if (nr < (t->parties ? t->parties : running)) {
		t->at_barrier = true;
		closed_thread_watch(t, flag_of(t->object), CLOSED_GO_ON);
		return;
	}
	for (uint32_t i = 0; i < c->nr_threads; i++) {
		struct noc_closed_thread *other = &c->thread[i];
		if (!other->at_barrier || other->object != t->object)
			continue;
		other->at_barrier = false;
		other->released = true;
	}
	access_next(t, MEMORY_STORE, flag_of(t->object), 0, CLOSED_RELEASED);
}

static enum base_status closed_thread_acquire(
	struct noc_closed *c, uint32_t thread, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	uint64_t holder;
	if (base_map_get(&c->locks, 0, t->object, &holder)) {
		t->at_lock = true;
		closed_thread_watch(t, t->object, CLOSED_TAKE);
		return BASE_OK;
	}
	enum base_status s = base_map_put(&c->locks, 0, t->object, thread);
	return s == BASE_OK ? s : base_fail(err, s, "no memory for a lock");
}

/* The watched line is there: is it what was waited for? */
static void closed_thread_look(struct noc_closed_thread *t)
{
	if (!t->released) {
		t->state = CLOSED_WATCHES;
		return;
	}
	t->released = false;
	t->watched = 0;
	if (t->after == CLOSED_TAKE)
		access_next(t, MEMORY_STORE, t->object, 0, CLOSED_GO_ON);
}

static void over(struct noc_closed *c, struct noc_closed_thread *t)
{
	t->state = CLOSED_ENDED;
	c->nr_ended++;
	if (t->cycle > c->result->execution_cycles)
		c->result->execution_cycles = t->cycle;
}

enum base_status noc_closed_done(
	struct noc_closed *c, uint32_t thread, uint64_t cycle, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	uint64_t line = c->options->machine->line_bytes;
	enum base_status s = BASE_OK;
	t->cycle = cycle > t->cycle ? cycle : t->cycle;
	uint64_t in_line = line - t->address % line;
	if (t->left_bytes >= in_line) {
		t->left_bytes -= in_line;
		t->address += in_line;
		return noc_closed_wake(c, thread, t->cycle, err);
	}
	t->has_access = false;
	if (t->then == CLOSED_ARRIVE)
		closed_thread_arrive(c, thread);
	else if (t->then == CLOSED_ACQUIRE)
		s = closed_thread_acquire(c, thread, err);
	else if (t->then == CLOSED_LOOK)
		closed_thread_look(t);
	else if (t->then == CLOSED_RELEASED || t->then == CLOSED_END)
		s = all_have_seen(c, t->address, t->cycle, err);
	if (t->then == CLOSED_END && !t->has_access)
		over(c, t);
	return s == BASE_OK && t->state == CLOSED_RUNS ? noc_closed_wake(c, thread, t->cycle, err)
						       : s;
}
