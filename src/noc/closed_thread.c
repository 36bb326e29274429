/* SPDX-License-Identifier: Apache-2.0 */
/* closed_thread.c - what the threads of a program do next, and how they wait for each other. */
#include "noc/closed_private.h"

/* Where synchronisation objects are whose addresses are not known. */
#define SYNTHETIC_ADDRESS UINT64_C(0x700000000000)

static uint64_t object_address(uint64_t object)
{
	return object && object < MEMORY_ADDRESS_LIMIT ? object : SYNTHETIC_ADDRESS;
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

/* ---- calls ------------------------------------------------------------------------------------ */

static enum base_status start_thread(
	struct noc_closed *c, uint32_t thread, uint64_t cycle, struct base_err *err)
{
	if (c->thread[thread].state != CLOSED_WAITS)
		return BASE_OK;
	c->thread[thread].state = CLOSED_RUNS;
	return noc_closed_wake(c, thread, cycle, err);
}

static enum base_status obey_call(
	struct noc_closed *c, uint32_t thread, const struct memory_call *call, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	enum base_status s = BASE_OK;
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
		access_next(t, MEMORY_STORE, t->object, 0, CLOSED_RELEASE);
		break;
	case MEMORY_CALL_spawn:
		for (uint32_t i = 0; i < c->nr_threads && s == BASE_OK; i++)
			s = start_thread(c, i, t->cycle, err);
		break;
	case MEMORY_CALL_thread_create:
		if (call->argument[0] < c->nr_threads)
			s = start_thread(c, (uint32_t)call->argument[0], t->cycle, err);
		break;
	case MEMORY_CALL_join:
		if (!thread && c->nr_ended + 1 < c->nr_threads)
			t->state = CLOSED_JOINS_ALL;
		break;
	case MEMORY_CALL_thread_join:
		if (call->argument[0] < c->nr_threads && call->argument[0] != thread &&
			c->thread[call->argument[0]].state != CLOSED_ENDED) {
			t->awaits = (uint32_t)call->argument[0];
			t->state = CLOSED_JOINS;
		}
		break;
	default:
		break;
	}
	return s;
}

/* ---- items ------------------------------------------------------------------------------------ */

static enum base_status ended(struct noc_closed *c, uint32_t thread, struct base_err *err)
{
	uint64_t cycle = c->thread[thread].cycle;
	enum base_status s = BASE_OK;
	c->thread[thread].state = CLOSED_ENDED;
	c->nr_ended++;
	if (cycle > c->result->execution_cycles)
		c->result->execution_cycles = cycle;
	for (uint32_t i = 0; i < c->nr_threads && s == BASE_OK; i++) {
		struct noc_closed_thread *t = &c->thread[i];
		bool joined = (t->state == CLOSED_JOINS && t->awaits == thread) ||
			(t->state == CLOSED_JOINS_ALL && c->nr_ended + 1 == c->nr_threads);
		if (!joined)
			continue;
		t->state = CLOSED_RUNS;
		s = noc_closed_wake(c, i, cycle, err);
	}
	return s;
}

/* The next item that is no REPEAT; NULL: the thread has no more. */
static enum base_status next_item(struct noc_closed *c, uint32_t thread,
	const struct memory_item **ret, struct base_err *err)
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
			return obey_call(c, thread, &t->batch.call[address], err);
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
		enum base_status s = next_item(c, thread, &i, err);
		if (s != BASE_OK)
			return s;
		s = i && !c->result->stopped ? obey_item(c, thread, i, err) : ended(c, thread, err);
		if (s != BASE_OK)
			return s;
	}
	if (t->state == CLOSED_RUNS && t->has_access)
		*ret = CLOSED_ACCESS;
	return BASE_OK;
}

/* ---- synchronisation -------------------------------------------------------------------------- */

/* All that have come go on: each looks at the barrier again, which the last one has written. */
static enum base_status arrive(
	struct noc_closed *c, uint32_t thread, uint64_t cycle, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	uint64_t nr = 1, running = 0;
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < c->nr_threads; i++) {
		nr += c->thread[i].state == CLOSED_AT_BARRIER && c->thread[i].object == t->object;
		running += c->thread[i].state != CLOSED_ENDED && c->thread[i].state != CLOSED_WAITS;
	}
	if (nr < (t->parties ? t->parties : running)) {
		t->state = CLOSED_AT_BARRIER;
		return BASE_OK;
	}
	for (uint32_t i = 0; i < c->nr_threads && s == BASE_OK; i++) {
		struct noc_closed_thread *other = &c->thread[i];
		if (other->state != CLOSED_AT_BARRIER || other->object != t->object)
			continue;
		other->state = CLOSED_RUNS;
		access_next(other, MEMORY_LOAD, t->object, 0, CLOSED_GO_ON);
		s = noc_closed_wake(c, i, cycle, err);
	}
	return s == BASE_OK ? noc_closed_wake(c, thread, cycle, err) : s;
}

/* Locks by address, each with its holder; few are held at one time. */
static enum base_status acquire(
	struct noc_closed *c, uint32_t thread, uint64_t cycle, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	uint64_t holder;
	if (base_map_get(&c->locks, 0, t->object, &holder)) {
		t->state = CLOSED_AT_LOCK;
		return BASE_OK;
	}
	enum base_status s = base_map_put(&c->locks, 0, t->object, thread);
	if (s != BASE_OK)
		return base_fail(err, s, "no memory for a lock");
	return noc_closed_wake(c, thread, cycle, err);
}

static enum base_status release(
	struct noc_closed *c, uint32_t thread, uint64_t cycle, struct base_err *err)
{
	uint64_t object = c->thread[thread].object;
	enum base_status s = BASE_OK;
	(void)base_map_remove(&c->locks, 0, object);
	for (uint32_t k = 1; k <= c->nr_threads; k++) {
		uint32_t i = (thread + k) % c->nr_threads;
		struct noc_closed_thread *other = &c->thread[i];
		if (other->state != CLOSED_AT_LOCK || other->object != object)
			continue;
		other->state = CLOSED_RUNS;
		access_next(other, MEMORY_STORE, object, 0, CLOSED_ACQUIRE);
		s = noc_closed_wake(c, i, cycle, err);
		break;
	}
	return s == BASE_OK ? noc_closed_wake(c, thread, cycle, err) : s;
}

enum base_status noc_closed_done(
	struct noc_closed *c, uint32_t thread, uint64_t cycle, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	uint64_t line = c->options->machine->line_bytes;
	t->cycle = cycle > t->cycle ? cycle : t->cycle;
	uint64_t in_line = line - t->address % line;
	if (t->left_bytes >= in_line) {
		t->left_bytes -= in_line;
		t->address += in_line;
		return noc_closed_wake(c, thread, t->cycle, err);
	}
	t->has_access = false;
	switch (t->then) {
	case CLOSED_ARRIVE:
		return arrive(c, thread, t->cycle, err);
	case CLOSED_ACQUIRE:
		return acquire(c, thread, t->cycle, err);
	case CLOSED_RELEASE:
		return release(c, thread, t->cycle, err);
	default:
		return noc_closed_wake(c, thread, t->cycle, err);
	}
}
