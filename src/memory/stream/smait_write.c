/* SPDX-License-Identifier: Apache-2.0 */
/* smait_write.c - memory streams as SMAIT's binary traces. */
#include "memory/stream/smait.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { PAGE_SHIFT = 12, INSTRUCTION_BYTES = 4, PART_MAX_BYTES = 8 };
#define DATA_LIMIT (UINT64_C(1) << 32)
#define CODE_LIMIT (UINT64_C(1) << 28)

struct memory_smait_writer {
	FILE **file;
	uint32_t nr_threads;
	bool swapped;
	struct base_map moved;         /* page -> page + 1 in the trace */
	uint64_t next_data, next_code; /* pages to move to, downwards */
	struct memory_smait_loss loss;
	/* Threads that are created and joined one by one become the seed's parallel regions: a
	 * spawn when thread 0 creates the first, a join when it has joined the last. */
	struct region {
		uint32_t number, nr_created, nr_joined; /* number: from 1 on; 0: none yet */
		long nr_created_at;                     /* in thread 0's file; < 0: not known */
		bool open;
	} region;
	uint32_t *region_of; /* by thread: in which it was created; 0: in none */
	bool *begun;         /* by thread: something of it was written */
};

enum base_status memory_smait_writer_open(const char *stem, uint32_t nr_threads, bool big_endian,
	struct memory_smait_writer **ret, struct base_err *err)
{
	static const uint16_t probe = 1;
	bool we_are_big = !*(const uint8_t *)&probe;
	*ret = NULL;
	struct memory_smait_writer *w = base_alloc(sizeof *w);
	if (w) {
		w->file = base_alloc(nr_threads * sizeof(FILE *));
		w->region_of = base_alloc(nr_threads * sizeof *w->region_of);
		w->begun = base_alloc(nr_threads * sizeof *w->begun);
	}
	if (!w || !w->file || !w->region_of || !w->begun) {
		if (w) {
			base_free(w->file);
			base_free(w->region_of);
			base_free(w->begun);
		}
		base_free(w);
		return base_fail(err, BASE_ERR_NOMEM, "no memory to write %s", stem);
	}
	w->swapped = big_endian != we_are_big;
	w->nr_threads = nr_threads;
	w->next_data = (DATA_LIMIT >> PAGE_SHIFT) - 1;
	w->next_code = (CODE_LIMIT >> PAGE_SHIFT) - 1;
	for (uint32_t i = 0; i < nr_threads; i++) {
		struct base_str name = {0};
		base_str_addf(&name, "%s.%u", stem, i);
		struct base_err refused = {.status = BASE_ERR_NOMEM};
		if (!name.failed)
			w->file[i] = base_output_stream(
				base_str_text(&name), BASE_OUTPUT_PRIVATE, &refused);
		base_str_fini(&name);
		if (!w->file[i]) {
			(void)!memory_smait_writer_close(w, NULL, NULL);
			if (err)
				*err = refused;
			return refused.status;
		}
	}
	*ret = w;
	return BASE_OK;
}

enum base_status memory_smait_writer_close(
	struct memory_smait_writer *w, struct memory_smait_loss *ret_loss, struct base_err *err)
{
	int why = 0;
	for (uint32_t i = 0; i < w->nr_threads; i++)
		if (w->file[i] && (ferror(w->file[i]) | fclose(w->file[i])))
			why = errno ? errno : EIO;
	if (ret_loss)
		*ret_loss = w->loss;
	base_map_fini(&w->moved);
	base_free(w->file);
	base_free(w->region_of);
	base_free(w->begun);
	base_free(w);
	return why ? base_fail_errno(err, why, "writing a SMAIT trace") : BASE_OK;
}

static void put_record(struct memory_smait_writer *w, uint32_t thread, uint32_t a, uint64_t b)
{
	uint32_t pair[2] = {a, (uint32_t)b};
	if (w->swapped) {
		pair[0] = __builtin_bswap32(pair[0]);
		pair[1] = __builtin_bswap32(pair[1]);
	}
	(void)!fwrite(pair, sizeof pair, 1, w->file[thread]); /* close() looks at ferror() */
}

/* Where an address is in the trace. BASE_END: nowhere. */
static enum base_status smait_write_place(
	struct memory_smait_writer *w, uint64_t address, bool code, uint64_t *ret)
{
	uint64_t limit = code ? CODE_LIMIT : DATA_LIMIT, page = address >> PAGE_SHIFT, to;
	*ret = address;
	if (address < limit)
		return BASE_OK;
	if (!base_map_get(&w->moved, code, page, &to)) {
		uint64_t *next = code ? &w->next_code : &w->next_data;
		if (!*next)
			return BASE_END;
		to = (*next)--;
		enum base_status s = base_map_put(&w->moved, code, page, to);
		if (s != BASE_OK)
			return s;
		w->loss.moved_pages++;
	}
	*ret = to << PAGE_SHIFT | (address & ((1u << PAGE_SHIFT) - 1));
	return BASE_OK;
}

static enum base_status put_access(struct memory_smait_writer *w, uint32_t thread,
	const struct memory_item *t, uint64_t address, bool store)
{
	uint32_t reg = t->reg == MEMORY_REG_FLOAT || t->reg == MEMORY_REG_VECTOR;
	uint64_t done = 0;
	do {
		uint64_t left = t->size_bytes - done, to;
		uint64_t part = left < PART_MAX_BYTES ? left : PART_MAX_BYTES;
		enum base_status s = smait_write_place(w, address + done, false, &to);
		if (s == BASE_END)
			w->loss.left_out++;
		else if (s != BASE_OK)
			return s;
		else
			put_record(w, thread, reg << 8 | (uint32_t)part << 4 | store, to);
		done += part;
	} while (done < t->size_bytes);
	return BASE_OK;
}

static enum base_status put_branch(
	struct memory_smait_writer *w, uint32_t thread, const struct memory_item *t, uint32_t kind)
{
	uint64_t from = 0, to;
	enum base_status s = smait_write_place(w, t->address, true, &to);
	if (s == BASE_OK && kind != 4)
		s = smait_write_place(w, t->code, true, &from);
	if (s == BASE_OK)
		put_record(w, thread,
			kind << 28 |
				(kind == 4 ? 0 : (uint32_t)(from + INSTRUCTION_BYTES) & 0x0fffffff),
			to);
	else if (s == BASE_END)
		w->loss.left_out++;
	return s == BASE_END ? BASE_OK : s;
}

static void put_fields(struct memory_smait_writer *w, uint32_t thread, unsigned kind,
	const struct memory_call *call, const uint64_t argument[4])
{
	uint32_t head = 0x1000 | kind << 4;
	put_record(w, thread, head, call->start_ns / 1000);
	put_record(w, thread, head | 1, call->end_ns / 1000);
	for (uint32_t i = 0; i < 4; i++)
		put_record(w, thread, head | (2 + i), argument[i]);
}

/* How many threads a region has is known at its end: its spawn record is written again. */
static void put_nr_created(struct memory_smait_writer *w)
{
	FILE *f = w->file[0];
	long end = ftell(f);
	if (w->region.nr_created_at < 0 || end < 0 || fseek(f, w->region.nr_created_at, SEEK_SET))
		return; /* a pipe: 1 stays */
	put_record(w, 0, 0x1000 | MEMORY_CALL_spawn << 4 | 3, w->region.nr_created);
	(void)!fseek(f, end, SEEK_SET);
}

/* A thread was created. Only thread 0 opens regions; a thread that another one creates is in that
 * one's region. */
static void put_create(
	struct memory_smait_writer *w, uint32_t thread, const struct memory_call *call)
{
	struct region *r = &w->region;
	uint64_t child = call->argument[0];
	if (thread) {
		if (child < w->nr_threads && !w->begun[child])
			w->region_of[child] = w->region_of[thread];
		w->loss.nested_calls++;
		return;
	}
	if (!r->open) {
		*r = (struct region){.number = r->number + 1, .open = true};
		long at = ftell(w->file[0]);
		r->nr_created_at = at < 0 ? -1 : at + 3 * MEMORY_SMAIT_RECORD_BYTES;
		put_fields(w, 0, MEMORY_CALL_spawn, call, (uint64_t[4]){r->number, 1});
	}
	r->nr_created++;
	if (child < w->nr_threads && !w->begun[child])
		w->region_of[child] = r->number;
	put_nr_created(w);
}

static void put_join(struct memory_smait_writer *w, uint32_t thread, const struct memory_call *call)
{
	struct region *r = &w->region;
	if (thread || !r->open) {
		w->loss.nested_calls++;
		return;
	}
	if (++r->nr_joined < r->nr_created)
		return;
	put_fields(w, 0, MEMORY_CALL_join, call, (uint64_t[4]){r->number});
	r->open = false;
}

/* A thread of a later region takes no part in those before: it is at their ends already. */
static void put_regions_before(struct memory_smait_writer *w, uint32_t thread)
{
	w->begun[thread] = true;
	for (uint32_t i = 1; i < w->region_of[thread]; i++)
		put_fields(w, thread, MEMORY_CALL_join, &(struct memory_call){0}, (uint64_t[4]){i});
}

/* A lock is a critical section, whose arguments the format leaves free: the first says which lock
 * it is. Of several readers at a time it has nothing. */
static enum base_status smait_write_put_lock(struct memory_smait_writer *w, uint32_t thread,
	unsigned kind, const struct memory_call *call)
{
	uint64_t lock;
	if (kind == MEMORY_CALL_begin_critical && call->argument[1])
		w->loss.shared_locks++;
	enum base_status s = smait_write_place(w, call->argument[0], false, &lock);
	if (s == BASE_OK)
		put_fields(w, thread, kind, call, (uint64_t[4]){lock});
	else if (s == BASE_END)
		w->loss.left_out++;
	return s == BASE_END ? BASE_OK : s;
}

static enum base_status smait_write_put_call(
	struct memory_smait_writer *w, uint32_t thread, const struct memory_call *call)
{
	if (!w->begun[thread])
		put_regions_before(w, thread);
	switch (call->kind) {
	case MEMORY_CALL_thread_create:
		put_create(w, thread, call);
		return BASE_OK;
	case MEMORY_CALL_thread_join:
		put_join(w, thread, call);
		return BASE_OK;
	case MEMORY_CALL_lock:
		return smait_write_put_lock(w, thread, MEMORY_CALL_begin_critical, call);
	case MEMORY_CALL_unlock:
		return smait_write_put_lock(w, thread, MEMORY_CALL_end_critical, call);
	default:
		if (call->kind >= 0x20)
			w->loss.other_calls++;
		else
			put_fields(w, thread, call->kind, call, call->argument);
		return BASE_OK;
	}
}

static enum base_status put_item(struct memory_smait_writer *w, const struct memory_batch *b,
	const struct memory_item *t, uint64_t iteration)
{
	uint64_t address = t->address;
	enum base_status s = BASE_OK;
	if (!w->begun[b->thread])
		put_regions_before(w, b->thread);
	switch (t->kind) {
	case MEMORY_LOAD:
	case MEMORY_STORE:
	case MEMORY_ATOMIC:
		address += iteration * (uint64_t)(iteration ? t->stride_bytes : 0);
		if (t->kind != MEMORY_STORE)
			s = put_access(w, b->thread, t, address, false);
		if (t->kind != MEMORY_LOAD && s == BASE_OK)
			s = put_access(w, b->thread, t, address, true);
		return s;
	case MEMORY_BRANCH:
	case MEMORY_PROC_RETURN:
		return put_branch(w, b->thread, t, 8);
	case MEMORY_PROC_CALL:
		return put_branch(w, b->thread, t, 12);
	case MEMORY_PROC_START:
		return put_branch(w, b->thread, t, 4);
	case MEMORY_RANGE_LOAD:
	case MEMORY_RANGE_STORE:
		w->loss.ranges++;
		return BASE_OK;
	case MEMORY_CALL:
		return smait_write_put_call(w, b->thread, &b->call[t->address]);
	default:
		return BASE_OK;
	}
}

enum base_status memory_smait_writer_put(
	struct memory_smait_writer *w, const struct memory_batch *b, struct base_err *err)
{
	enum base_status s = BASE_OK;
	if (b->thread >= w->nr_threads)
		return base_fail(err, BASE_ERR_USAGE, "thread %u of %u", b->thread, w->nr_threads);
	for (size_t i = 0; i < b->nr && s == BASE_OK; i++) {
		const struct memory_item *t = &b->item[i];
		if (t->kind != MEMORY_REPEAT) {
			s = put_item(w, b, t, 0);
			continue;
		}
		for (uint64_t n = 0; n < t->count && s == BASE_OK; n++)
			for (uint64_t k = 1; k <= t->address && s == BASE_OK; k++)
				s = put_item(w, b, t + k, n);
		i += t->address;
	}
	return s == BASE_OK ? s : base_fail(err, s, "no memory to move pages");
}
