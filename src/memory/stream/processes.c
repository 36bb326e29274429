/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processes.c - the streams of several processes of a recording as one source.
 *
 * An address is of one process. Here each process's memory gets addresses of its own, but what they
 * map together (MAP_SHARED) gets the same: the file and the offset count (MEMORY_CALL_shared), also
 * for children of a fork, which have what their parents mapped. Code has the addresses of the
 * first process with the same tables. New addresses are given by areas of 16 GiB, in which they
 * stay as far apart as they were: so a loop stays one.
 */
#include "memory/stream/decode.h"

#include <string.h>

enum { AREA_SHIFT = 34, AREAS_MAX = 1 << (47 - AREA_SHIFT) };
#define AREA_MASK ((UINT64_C(1) << AREA_SHIFT) - 1)

/* The owner of an area. Processes and tables have numbers below 2^32. */
enum area_kind { AREA_PRIVATE, AREA_CODE, AREA_SHARED };
struct area {
	uint32_t part; /* the first that has it: its names are */
	uint64_t original;
};
struct mapping {
	uint64_t address, bytes, identity, offset;
};
struct part {
	struct memory_source *source;
	uint32_t number, tables, pid, first_thread;
	struct memory_call begins;
	bool has_exec; /* the next program of the same pid was told to begin */
	struct mapping *mapping;
	size_t nr_mappings, capacity;
	uint64_t last_key, last_area; /* found last; last_key 0: none */
};
struct buffer { /* a thread's batch, translated */
	struct memory_item *item;
	struct memory_call *call;
	size_t nr_calls;
};

struct merged {
	struct memory_source source;
	struct part *part;
	size_t nr_parts;
	struct buffer *buffer; /* by thread */
	struct memory_process *process;
	struct area area[AREAS_MAX];
	uint32_t nr_areas;
	struct base_map mapped; /* new addresses of shared mappings that were told of */
	struct base_map areas;  /* (kind and owner, address or identity and offset) -> area */
	struct base_str unseen;
	bool is_full;
};

/* ---- addresses ------------------------------------------------------------------------------- */

/* The area's new number; false: there are too many, or there is no memory. */
static bool area_of(struct merged *m, enum area_kind kind, uint64_t owner, uint64_t high,
	struct area was, uint64_t *ret)
{
	uint64_t key = base_hash_u64(owner) << 2 | (uint64_t)kind;
	if (base_map_get(&m->areas, key, high, ret))
		return true;
	if (m->nr_areas == AREAS_MAX ||
		base_map_put(&m->areas, key, high, m->nr_areas) != BASE_OK) {
		m->is_full = true;
		return false;
	}
	m->area[m->nr_areas] = was;
	*ret = m->nr_areas++;
	return true;
}

static const struct mapping *mapping_at(const struct part *p, uint64_t address)
{
	for (size_t i = p->nr_mappings; i-- > 0;) /* the last one counts */
		if (address - p->mapping[i].address < p->mapping[i].bytes)
			return &p->mapping[i];
	return NULL;
}

static uint64_t new_data(struct merged *m, struct part *p, uint64_t address)
{
	const struct mapping *k = p->nr_mappings ? mapping_at(p, address) : NULL;
	uint64_t at = k ? k->offset + (address - k->address) : address, area = 0;
	struct area was = {(uint32_t)(p - m->part), address - (at & AREA_MASK)};
	if (k) {
		if (!area_of(m, AREA_SHARED, k->identity, at >> AREA_SHIFT, was, &area))
			return 0;
	} else if (p->last_key == (at >> AREA_SHIFT) + 1) {
		area = p->last_area;
	} else {
		if (!area_of(m, AREA_PRIVATE, p->number, at >> AREA_SHIFT, was, &area))
			return 0;
		p->last_key = (at >> AREA_SHIFT) + 1;
		p->last_area = area;
	}
	return area << AREA_SHIFT | (at & AREA_MASK);
}

static uint64_t new_code(struct merged *m, struct part *p, uint64_t address)
{
	uint64_t area = 0;
	struct area was = {(uint32_t)(p - m->part), address & ~AREA_MASK};
	if (!address || !area_of(m, AREA_CODE, p->tables, address >> AREA_SHIFT, was, &area))
		return 0;
	return area << AREA_SHIFT | (address & AREA_MASK);
}

/* Where a new address was, and in which process; false: nowhere. */
static bool processes_original_of(
	const struct merged *m, uint64_t address, uint64_t *ret, const struct part **of)
{
	uint64_t area = address >> AREA_SHIFT;
	if (area >= m->nr_areas)
		return false;
	*ret = m->area[area].original + (address & AREA_MASK);
	*of = &m->part[m->area[area].part];
	return true;
}

/* ---- items ----------------------------------------------------------------------------------- */

/* A loop that leaves its area, or begins in one mapping and ends in another, is cut off there. */
static void move_access(
	struct merged *m, struct part *p, struct memory_item *t, uint64_t iterations, bool *ret_cut)
{
	uint64_t first = new_data(m, p, t->address);
	uint64_t span = (iterations - 1) * (uint64_t)t->stride_bytes;
	*ret_cut |= iterations > 1 && new_data(m, p, t->address + span) != first + span;
	t->address = first;
}

static void move_item(
	struct merged *m, struct part *p, struct memory_item *t, uint64_t iterations, bool *ret_cut)
{
	switch (t->kind) {
	case MEMORY_LOAD:
	case MEMORY_STORE:
	case MEMORY_ATOMIC:
		move_access(m, p, t, iterations, ret_cut);
		t->code = new_code(m, p, t->code);
		break;
	case MEMORY_RANGE_LOAD:
	case MEMORY_RANGE_STORE:
		t->address = new_data(m, p, t->address);
		t->code = new_code(m, p, t->code);
		break;
	case MEMORY_BLOCK:
	case MEMORY_BRANCH:
	case MEMORY_PROC_CALL:
	case MEMORY_PROC_START:
	case MEMORY_PROC_RETURN:
		t->address = new_code(m, p, t->address);
		t->code = new_code(m, p, t->code);
		break;
	default:
		break;
	}
}

/* What several map begins when the first one maps it, and does not end with one of them. */
static void move_block(struct merged *m, struct part *p, struct memory_call *k)
{
	bool is_shared = k->argument[0] && mapping_at(p, k->argument[0]);
	uint64_t seen = 0;
	k->argument[0] = k->argument[0] ? new_data(m, p, k->argument[0]) : 0;
	if (k->kind == MEMORY_CALL_allocate)
		k->argument[2] = new_code(m, p, k->argument[2]);
	if (!is_shared)
		return;
	bool is_first = k->kind == MEMORY_CALL_allocate &&
			!base_map_get(&m->mapped, 0, k->argument[0], &seen);
	if (!is_first)
		k->kind = MEMORY_CALL_system;
	else if (base_map_put(&m->mapped, 0, k->argument[0], 1) != BASE_OK)
		m->is_full = true;
}

/* The first image of that pid after `p`, or the last of all: an exec keeps the pid. NULL: none. */
static struct part *processes_image_of(
	struct merged *m, const struct part *after, uint64_t pid, bool last)
{
	struct part *found = NULL;
	for (size_t i = after ? (size_t)(after - m->part) + 1 : 0; i < m->nr_parts; i++)
		if (m->part[i].pid == pid && (last || !found))
			found = &m->part[i];
	return found;
}

/* A process is its first thread, as far as order goes. */
static void move_process(struct merged *m, struct part *p, struct memory_call *k)
{
	bool waits = k->kind == MEMORY_CALL_process_wait;
	const struct part *of = processes_image_of(m, p, k->argument[0], waits);
	k->kind = !of     ? MEMORY_CALL_system
		  : waits ? MEMORY_CALL_thread_join
			  : MEMORY_CALL_thread_create;
	if (of)
		k->argument[0] = of->first_thread;
}

/* What one process gives by a number of its own, no other one takes. */
static void move_call(struct merged *m, struct part *p, struct memory_call *k)
{
	switch (k->kind) {
	case MEMORY_CALL_thread_create:
	case MEMORY_CALL_thread_join:
		if (k->argument[0] != UINT64_MAX)
			k->argument[0] += p->first_thread;
		break;
	case MEMORY_CALL_process_create:
	case MEMORY_CALL_process_wait:
		move_process(m, p, k);
		break;
	case MEMORY_CALL_allocate:
	case MEMORY_CALL_release:
		move_block(m, p, k);
		break;
	case MEMORY_CALL_sent:
	case MEMORY_CALL_received: /* pipes between processes are not told from others */
	case MEMORY_CALL_shared:
		k->kind = MEMORY_CALL_system;
		break;
	case MEMORY_CALL_spawn:
	case MEMORY_CALL_join:
	case MEMORY_CALL_marker:
	case MEMORY_CALL_phase:
	case MEMORY_CALL_semop:
	case MEMORY_CALL_semctl:
	case MEMORY_CALL_system:
	case MEMORY_CALL_begin_order:
	case MEMORY_CALL_end_order:
	case MEMORY_CALL_thread_begin:
	case MEMORY_CALL_thread_end:
		break;
	default:
		k->argument[0] = k->argument[0] ? new_data(m, p, k->argument[0]) : 0;
	}
}

static enum base_status move_batch(struct merged *m, struct part *p, uint32_t thread,
	const struct memory_batch *b, struct memory_batch *ret, struct base_err *err)
{
	struct buffer *to = &m->buffer[thread];
	bool cut = false;
	if (!to->item)
		to->item = base_alloc(MEMORY_BATCH_MAX * sizeof *to->item);
	if (!to->item ||
		base_grow(&to->call, &to->nr_calls, b->nr_calls, sizeof *to->call) != BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for a thread's stream");
	if (b->nr)
		memcpy(to->item, b->item, b->nr * sizeof *to->item);
	if (b->nr_calls)
		memcpy(to->call, b->call, b->nr_calls * sizeof *to->call);
	for (size_t i = 0; i < b->nr; i++) {
		struct memory_item *t = &to->item[i];
		if (t->kind != MEMORY_REPEAT) {
			move_item(m, p, t, 1, &cut);
			continue;
		}
		uint64_t nr = t->address, iterations = t->count;
		cut = false;
		for (uint64_t k = 0; k < nr && i + 1 < b->nr; k++)
			move_item(m, p, &to->item[++i], iterations, &cut);
		if (cut) { /* (once is true, wherever it goes) */
			t->count = 1;
			memory_diag_add(&p->source->diags, MEMORY_DIAG_bad_address,
				thread - p->first_thread, 0);
		}
	}
	for (size_t i = 0; i < b->nr_calls; i++)
		move_call(m, p, &to->call[i]);
	if (m->is_full)
		return base_fail(err, BASE_ERR_LIMIT,
			"%zu {process|processes} have more than %d areas of 16 GiB together, or "
			"there is no "
			"memory: choose fewer (--process=N)",
			m->nr_parts, (int)AREAS_MAX);
	*ret = *b;
	ret->item = to->item;
	ret->call = to->call;
	ret->thread = thread;
	return BASE_OK;
}

/* ---- a source -------------------------------------------------------------------------------- */

static struct part *processes_part_of(const struct merged *m, uint32_t thread)
{
	size_t i = m->nr_parts - 1;
	while (i && m->part[i].first_thread > thread)
		i--;
	return &m->part[i];
}

static void add_diags(struct merged *m)
{
	m->source.diags = (struct memory_diags){0};
	for (unsigned d = 0; d < MEMORY_DIAG_NR; d++)
		for (size_t i = 0; i < m->nr_parts; i++) {
			const struct memory_diags *of = &m->part[i].source->diags;
			bool whole = d == MEMORY_DIAG_killed || d == MEMORY_DIAG_no_end;
			if (!of->count[d] || (whole && i)) /* of the trace, not of a process */
				continue;
			if (!m->source.diags.count[d]) {
				m->source.diags.first_record[d] = of->first_record[d];
				m->source.diags.first_thread[d] =
					m->part[i].first_thread + of->first_thread[d];
			}
			m->source.diags.count[d] += of->count[d];
		}
}

/* Where the first thread of an image ends, what it executed begins. */
static enum base_status go_on_after_exec(struct merged *m, struct part *p, struct memory_batch *ret)
{
	static const struct memory_item item = {.kind = MEMORY_CALL};
	struct part *next = p->has_exec ? NULL : processes_image_of(m, p, p->pid, false);
	p->has_exec = true;
	if (!next)
		return BASE_END;
	p->begins = (struct memory_call){
		.kind = MEMORY_CALL_thread_create, .argument = {next->first_thread}};
	*ret = (struct memory_batch){.item = &item,
		.nr = 1,
		.call = &p->begins,
		.nr_calls = 1,
		.thread = p->first_thread};
	return BASE_OK;
}

static enum base_status merged_next(
	struct memory_source *s, int thread, struct memory_batch *ret, struct base_err *err)
{
	struct merged *m = (struct merged *)s;
	struct memory_batch b;
	*ret = (struct memory_batch){0};
	if (thread < 0 || (uint32_t)thread >= s->info.nr_threads)
		return base_fail(
			err, BASE_ERR_USAGE, "there is no thread %d, or no total order", thread);
	struct part *p = processes_part_of(m, (uint32_t)thread);
	enum base_status status =
		memory_source_next(p->source, thread - (int)p->first_thread, &b, err);
	if (status == BASE_END && (uint32_t)thread == p->first_thread)
		status = go_on_after_exec(m, p, ret);
	else if (status == BASE_OK)
		status = move_batch(m, p, (uint32_t)thread, &b, ret, err);
	add_diags(m);
	return status;
}

static enum base_status merged_rewind(struct memory_source *s, struct base_err *err)
{
	struct merged *m = (struct merged *)s;
	enum base_status status = BASE_OK;
	base_map_fini(&m->mapped);
	m->mapped = (struct base_map){0};
	for (size_t i = 0; i < m->nr_parts && status == BASE_OK; i++) {
		m->part[i].has_exec = false;
		status = m->part[i].source->ops->rewind(m->part[i].source, err);
	}
	return status;
}

static bool merged_linked(const struct memory_source *s, uint64_t address, bool code,
	size_t candidate, struct memory_linked *ret)
{
	const struct part *p;
	return processes_original_of((const struct merged *)s, address, &address, &p) &&
	       p->source->ops->linked &&
	       p->source->ops->linked(p->source, address, code, candidate, ret);
}

static void merged_silent(const struct memory_source *s, uint32_t thread, struct memory_silent *ret)
{
	const struct part *p = processes_part_of((const struct merged *)s, thread);
	*ret = (struct memory_silent){0};
	if (p->source->ops->silent)
		p->source->ops->silent(p->source, thread - p->first_thread, ret);
}

static bool merged_life(const struct memory_source *s, uint32_t thread, struct memory_life *ret)
{
	const struct merged *m = (const struct merged *)s;
	const struct part *p = processes_part_of(m, thread);
	if (!p->source->ops->life ||
		!p->source->ops->life(p->source, thread - p->first_thread, ret))
		return false;
	if (ret->stack) /* of a fork's child it would be its parent's */
		ret->stack ^= (uint64_t)p->number << 48;
	return true;
}

static bool merged_on_stack(
	const struct memory_source *s, uint32_t thread, uint64_t address, uint64_t bytes)
{
	const struct merged *m = (const struct merged *)s;
	const struct part *p = processes_part_of(m, thread), *of;
	return processes_original_of(m, address, &address, &of) && of == p &&
	       p->source->ops->on_stack &&
	       p->source->ops->on_stack(p->source, thread - p->first_thread, address, bytes);
}

static void merged_close(struct memory_source *s)
{
	struct merged *m = (struct merged *)s;
	for (uint32_t i = 0; m->buffer && i < s->info.nr_threads; i++) {
		base_free(m->buffer[i].item);
		base_free(m->buffer[i].call);
	}
	for (size_t i = 0; m->part && i < m->nr_parts; i++) {
		memory_source_close(m->part[i].source);
		base_free(m->part[i].mapping);
	}
	base_free(m->part);
	base_free(m->buffer);
	base_free(m->process);
	base_map_fini(&m->areas);
	base_map_fini(&m->mapped);
	base_str_fini(&m->unseen);
	base_free(m);
}

/* ---- opening --------------------------------------------------------------------------------- */

static enum base_status processes_add_mapping(
	struct part *p, const struct mapping *k, struct base_err *err)
{
	if (base_grow(&p->mapping, &p->capacity, p->nr_mappings + 1, sizeof *k) != BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the mappings");
	p->mapping[p->nr_mappings++] = *k;
	return BASE_OK;
}

/* All that the process maps with others: what it does comes before the reading. */
static enum base_status find_mappings(struct part *p, struct base_err *err)
{
	enum base_status status = BASE_OK;
	for (uint32_t t = 0; t < p->source->info.nr_threads && status == BASE_OK; t++) {
		struct memory_batch b;
		while ((status = memory_source_next(p->source, (int)t, &b, err)) == BASE_OK)
			for (size_t i = 0; i < b.nr_calls && status == BASE_OK; i++)
				if (b.call[i].kind == MEMORY_CALL_shared)
					status = processes_add_mapping(p,
						&(struct mapping){b.call[i].argument[0],
							b.call[i].argument[1],
							b.call[i].argument[2],
							b.call[i].argument[3]},
						err);
		status = status == BASE_END ? BASE_OK : status;
	}
	p->source->diags = (struct memory_diags){0};
	return status == BASE_OK ? p->source->ops->rewind(p->source, err) : status;
}

/* A fork's child has what its parent had; its own come last, and count first. */
static enum base_status inherit(struct merged *m, struct base_err *err)
{
	enum base_status status = BASE_OK;
	for (size_t i = m->nr_parts; i-- > 0 && status == BASE_OK;) {
		struct part *p = &m->part[i], own = *p;
		p->mapping = NULL;
		p->nr_mappings = p->capacity = 0;
		for (size_t k = 0; k < i && status == BASE_OK; k++)
			for (size_t n = 0; m->part[k].tables == p->tables &&
					   n < m->part[k].nr_mappings && status == BASE_OK;
				n++)
				status = processes_add_mapping(p, &m->part[k].mapping[n], err);
		for (size_t n = 0; n < own.nr_mappings && status == BASE_OK; n++)
			status = processes_add_mapping(p, &own.mapping[n], err);
		base_free(own.mapping);
	}
	return status;
}

static enum base_status begin_parts(struct merged *m, struct base_err *err)
{
	enum base_status status = BASE_OK;
	uint32_t nr_threads = 0, flags = UINT32_MAX;
	for (size_t i = 0; i < m->nr_parts && status == BASE_OK; i++) {
		struct part *p = &m->part[i];
		p->number = m->process[i].number;
		p->tables = m->process[i].tables;
		p->pid = m->process[i].pid;
		p->first_thread = nr_threads;
		m->process[i].shown = true;
		nr_threads += p->source->info.nr_threads;
		flags &= p->source->info.flags;
		status = find_mappings(p, err);
	}
	if (status == BASE_OK && nr_threads > MEMORY_THREADS_MAX)
		status = base_fail(err, BASE_ERR_LIMIT,
			"the processes have %u {thread|threads}, more than %d together", nr_threads,
			(int)MEMORY_THREADS_MAX);
	if (status == BASE_OK)
		status = inherit(m, err);
	if (status != BASE_OK)
		return status;
	m->source.info = m->part[0].source->info;
	m->source.info.flags = flags & ~(uint32_t)MEMORY_SOURCE_SERIAL;
	m->source.info.process = m->process;
	m->source.info.nr_processes = m->nr_parts;
	base_str_addf(&m->unseen,
		"%s; of %zu {process|processes}, memory that they share in other ways than by "
		"mmap(MAP_SHARED) counts as each one's own; what passes through pipes between them "
		"orders nothing",
		memory_stream_unseen(0), m->nr_parts);
	m->source.info.unseen = base_str_text(&m->unseen);
	m->buffer = base_alloc(nr_threads * sizeof *m->buffer);
	m->source.info.nr_threads = m->buffer ? nr_threads : 0;
	return m->buffer && !m->unseen.failed
		       ? BASE_OK
		       : base_fail(err, BASE_ERR_NOMEM, "no memory for %u {thread|threads}",
				 nr_threads);
}

enum base_status memory_source_merge_processes(const struct memory_process *process,
	struct memory_source *const *source, size_t nr, struct memory_source **ret,
	struct base_err *err)
{
	static const struct memory_source_ops ops = {.next = merged_next,
		.rewind = merged_rewind,
		.linked = merged_linked,
		.silent = merged_silent,
		.life = merged_life,
		.on_stack = merged_on_stack,
		.close = merged_close};
	enum base_status status = BASE_ERR_NOMEM;
	*ret = NULL;
	struct merged *m = base_alloc(sizeof *m);
	struct part *part = m ? base_alloc(nr * sizeof *part) : NULL;
	struct memory_process *kept = part ? base_alloc(nr * sizeof *kept) : NULL;
	if (!kept) {
		base_free(part);
		base_free(m);
		for (size_t i = 0; i < nr && source; i++)
			memory_source_close(source[i]);
		return base_fail(err, status, "no memory for %zu {process|processes}", nr);
	}
	m->source.ops = &ops;
	m->part = part;
	m->nr_parts = nr;
	m->process = memcpy(kept, process, nr * sizeof *kept);
	for (size_t i = 0; i < nr && source; i++)
		part[i].source = source[i];
	status = begin_parts(m, err);
	if (status == BASE_OK)
		*ret = &m->source;
	else
		merged_close(&m->source);
	return status;
}

static enum base_status open_each(const char *const *paths, size_t nr_paths,
	const struct memory_process *process, size_t nr, struct memory_source **source,
	struct base_err *err)
{
	for (size_t i = 0; i < nr; i++) {
		enum base_status status = memory_source_lpt_open_process(
			paths, nr_paths, process[i].number, &source[i], err);
		if (status != BASE_OK) {
			while (i > 0)
				memory_source_close(source[--i]);
			return status;
		}
	}
	return BASE_OK;
}

enum base_status memory_source_lpt_open_all(
	const char *const *paths, size_t nr_paths, struct memory_source **ret, struct base_err *err)
{
	struct memory_source *first;
	*ret = NULL;
	enum base_status status = memory_source_lpt_open_process(paths, nr_paths, 0, &first, err);
	if (status != BASE_OK)
		return status;
	size_t nr = first->info.nr_processes;
	if (nr < 2) {
		*ret = first;
		return BASE_OK;
	}
	struct memory_source **source = base_alloc(nr * sizeof *source);
	status = source ? open_each(paths, nr_paths, first->info.process, nr, source, err)
			: base_fail(
				  err, BASE_ERR_NOMEM, "no memory for %zu {process|processes}", nr);
	if (status == BASE_OK)
		status = memory_source_merge_processes(first->info.process, source, nr, ret, err);
	base_free(source);
	memory_source_close(first);
	return status;
}
