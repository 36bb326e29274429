/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - the processor that is first in time executes its next item. */
#include "slack/machine_private.h"

#include "base/heap.h"

#include <string.h>

enum { TABLE_BYTES_PER_LINE = 64 };
#define LIMIT_DEFAULT (UINT64_C(4) << 30)

const char *slack_kind_name(enum slack_kind k)
{
	static const char *const name[SLACK_KINDS] = {[SLACK_PLAIN] = "plain",
		[SLACK_LOAD] = "load",
		[SLACK_STORE] = "store",
		[SLACK_ATOMIC] = "atomic",
		[SLACK_UNSEEN] = "unseen",
		[SLACK_LOCK] = "lock",
		[SLACK_UNLOCK] = "unlock",
		[SLACK_BARRIER] = "barrier",
		[SLACK_LEAVE] = "leave",
		[SLACK_SIGNAL] = "signal",
		[SLACK_WAIT] = "wait",
		[SLACK_CREATE] = "create",
		[SLACK_BEGIN] = "begin",
		[SLACK_END] = "end",
		[SLACK_JOIN] = "join",
		[SLACK_MARK] = "mark"};
	return k < SLACK_KINDS ? name[k] : "?";
}

void slack_machine_start(struct slack_machine *m, struct lane *l, uint64_t at)
{
	l->state = LANE_RUNS;
	base_keys_put(m->heap, &m->nr_heap, slack_key(at, (uint32_t)(l - m->lane)));
}

/* ---- a lane's items -------------------------------------------------------------------------- */

/* BASE_END: there is none. */
static inline enum base_status machine_lane_peek(struct slack_machine *m, struct lane *l,
	const struct memory_item **ret, struct base_err *err)
{
	return memory_cursor_peek(&l->cursor, m->source, (int)(l - m->lane), ret, err);
}

/* When what the item does beside counting happens. */
static inline uint64_t machine_item_due(const struct lane *l, const struct memory_item *t)
{
	if (t->kind <= MEMORY_ATOMIC)
		return l->issue + (t->instructions ? t->instructions - 1 : 0);
	return l->issue + l->tail;
}

/* ---- executing ------------------------------------------------------------------------------- */

static inline void machine_count_instructions(struct slack_machine *m, struct lane *l, uint64_t nr)
{
	struct slack_processor_result *r = &m->result.processor[l - m->lane];
	if (BASE_UNLIKELY(l->respins)) {
		r->spinning += nr;
		r->respun += nr;
		l->ahead -= nr;
	} else if (BASE_UNLIKELY(m->options.spinning != NULL)) {
		r->spinning += m->options.spinning(m->options.spinning_ctx, (uint32_t)(l - m->lane),
			l->executed + l->ahead, nr);
	}
	l->executed += nr;
}

static inline void note_start(struct slack_machine *m, struct lane *l)
{
	if (BASE_LIKELY(l->started))
		return;
	l->started = true;
	m->result.processor[l - m->lane].begin = l->issue;
}

static inline enum base_status machine_run_plain(struct slack_machine *m, struct lane *l,
	uint64_t count, uint64_t code, struct base_err *err)
{
	enum base_status s = BASE_OK;
	if (!count)
		return s;
	bool first = !l->started;
	note_start(m, l);
	machine_count_instructions(m, l, count);
	if (m->sink.run)
		s = m->sink.run(m->sink.ctx,
			&(struct slack_run){.ready = l->time,
				.issue = l->issue,
				.count = count,
				.code = code,
				.processor = (uint32_t)(l - m->lane),
				.first = first},
			err);
	l->time = l->issue = l->issue + count;
	return s;
}

static inline uint32_t add_producer(
	struct slack_producer *list, uint32_t nr, const struct slack_producer *p)
{
	for (uint32_t i = nr; i-- > 0;)
		if (list[i].order == p->order) {
			if (p->complete > list[i].complete)
				list[i].complete = p->complete;
			return nr;
		}
	list[nr] = *p;
	return nr + 1;
}

/* Beyond the caches, or for the right to store: after the line's last owner has got it. */
static uint64_t request(struct slack_machine *m, uint32_t processor, uint64_t address, uint64_t at,
	const struct memory_cdat_outcome *o, struct place_page *page, uint64_t *contention)
{
	bool beyond = o->supplier >= MEMORY_CDAT_FROM_LOCAL_MEMORY || o->upgrade;
	uint64_t *ready = &page->line_ready[(address & ((1u << PAGE_SHIFT) - 1)) >> m->line_shift];
	if (beyond && *ready > at) {
		*contention += *ready - at;
		at = *ready;
	}
	return slack_network_request(&m->network, &m->config, processor, at, o, contention);
}

/* Accesses the lines of [address, + bytes) one after another from *at on. */
static enum base_status machine_access_lines(struct slack_machine *m, uint32_t processor,
	uint64_t address, uint64_t bytes, enum memory_item_kind kind, uint64_t *at,
	struct base_err *err)
{
	struct slack_processor_result *r = &m->result.processor[processor];
	uint64_t line = address >> m->line_shift, last = (address + bytes - 1) >> m->line_shift;
	for (; line <= last; line++) {
		uint64_t from = line << m->line_shift, waited = 0, begin = *at;
		struct memory_cdat_outcome o;
		enum base_status s =
			memory_cdat_access(m->cdat, processor, from, kind, begin, &o, err);
		if (s != BASE_OK)
			return s;
		r->accesses += kind != MEMORY_BLOCK;
		if (BASE_LIKELY(o.supplier == MEMORY_CDAT_FROM_CACHE && !o.upgrade))
			continue;
		struct place_page *page = slack_places_page(&m->places, from);
		if (!page)
			return base_fail(err, BASE_ERR_LIMIT,
				"the last writers need more memory than is allowed");
		*at = request(m, processor, from, begin, &o, page, &waited);
		if (kind == MEMORY_STORE)
			page->line_ready[(from & ((1u << PAGE_SHIFT) - 1)) >> m->line_shift] =
				*at + 1;
		if (kind != MEMORY_BLOCK) {
			r->misses += o.supplier >= MEMORY_CDAT_FROM_LOCAL_MEMORY;
			r->miss_cycles += *at - begin;
		} else {
			r->fetch_cycles += *at - begin;
		}
		r->contention_cycles += waited;
	}
	return BASE_OK;
}

/* The writer of what is read. */
static enum base_status find_producers(struct slack_machine *m, uint64_t address, uint64_t bytes,
	struct slack_producer *list, uint32_t *nr, struct base_err *err)
{
	uint64_t last = (address + bytes - 1) >> PLACE_SHIFT;
	for (uint64_t n = address >> PLACE_SHIFT; n <= last; n++) {
		struct place_page *page = slack_places_page(&m->places, n << PLACE_SHIFT);
		if (!page)
			return base_fail(err, BASE_ERR_LIMIT,
				"the last writers need more memory than is allowed");
		const struct place *p = &page->place[n & (PAGE_PLACES - 1)];
		if (!p->writer)
			continue;
		struct slack_producer q = {.order = p->writer & ((UINT64_C(1) << ORDER_BITS) - 1),
			.processor = (uint32_t)(p->writer >> ORDER_BITS),
			.complete = p->complete};
		*nr = add_producer(list, *nr, &q);
	}
	return BASE_OK;
}

static enum base_status note_writer(struct slack_machine *m, uint64_t address, uint64_t bytes,
	const struct slack_producer *writer, struct base_err *err)
{
	uint64_t last = (address + bytes - 1) >> PLACE_SHIFT;
	struct place p = {.writer = (uint64_t)writer->processor << ORDER_BITS | writer->order,
		.complete = writer->complete};
	for (uint64_t n = address >> PLACE_SHIFT; n <= last; n++) {
		struct place_page *page = slack_places_page(&m->places, n << PLACE_SHIFT);
		if (!page)
			return base_fail(err, BASE_ERR_LIMIT,
				"the last writers need more memory than is allowed");
		page->place[n & (PAGE_PLACES - 1)] = p;
	}
	if (BASE_UNLIKELY(m->nr_spinning))
		slack_spin_stored(m, address, bytes, writer);
	return BASE_OK;
}

static const uint8_t cycles_of[SLACK_KINDS] = {[SLACK_UNSEEN] = 1,
	[SLACK_LOCK] = 1,
	[SLACK_UNLOCK] = 1,
	[SLACK_BARRIER] = 1,
	[SLACK_LEAVE] = 1,
	[SLACK_SIGNAL] = 1,
	[SLACK_WAIT] = 1,
	[SLACK_CREATE] = 1,
	[SLACK_JOIN] = 1};
static const uint8_t waits_of[SLACK_KINDS] = {
	[SLACK_LOCK] = 1, [SLACK_LEAVE] = 1, [SLACK_WAIT] = 1, [SLACK_JOIN] = 1};

enum base_status slack_machine_node(struct slack_machine *m, struct lane *l,
	const struct slack_access *a, struct slack_producer *ret, struct base_err *err)
{
	uint32_t processor = (uint32_t)(l - m->lane), nr = 0;
	struct slack_processor_result *r = &m->result.processor[processor];
	enum base_status s = BASE_OK;
	for (uint32_t i = 0; i < a->nr_extra; i++)
		nr = add_producer(m->producer, nr, &a->extra[i]);
	if (a->loads && a->bytes)
		s = find_producers(m, a->address, a->bytes, m->producer, &nr, err);
	struct slack_node n = {.order = ++m->order,
		.ready = l->time,
		.issue = l->issue,
		.start = l->issue,
		.code = a->code,
		.address = a->address,
		.processor = processor,
		.instructions = a->instructions,
		.kind = a->kind,
		.first = !l->started,
		.producer = m->producer,
		.nr_producers = nr};
	note_start(m, l);
	for (uint32_t i = 0; i < nr; i++)
		n.start = m->producer[i].complete > n.start ? m->producer[i].complete : n.start;
	n.complete = n.start;
	if (a->bytes && s == BASE_OK)
		s = machine_access_lines(m, processor, a->address, a->bytes,
			a->stores ? MEMORY_STORE : MEMORY_LOAD, &n.complete, err);
	n.complete += a->instructions || cycles_of[a->kind];
	struct slack_producer self = {
		.order = n.order, .processor = processor, .complete = n.complete};
	if (a->stores && a->bytes && s == BASE_OK)
		s = note_writer(m, a->address, a->bytes, &self, err);
	if (waits_of[a->kind]) {
		r->waited_cycles += n.start - n.issue;
		r->waits += n.start > n.issue;
	}
	if (a->instructions)
		machine_count_instructions(m, l, 1);
	r->nodes++;
	l->time = l->issue = n.complete;
	if (ret)
		*ret = self;
	if (s == BASE_OK && m->sink.node)
		s = m->sink.node(m->sink.ctx, &n, err);
	return s;
}

static enum base_status run_access(struct slack_machine *m, struct lane *l,
	const struct memory_item *t, uint64_t address, struct base_err *err)
{
	enum base_status s = BASE_OK;
	if (BASE_UNLIKELY(m->nr_spinning) && t->kind != MEMORY_STORE)
		slack_spin_loaded(m, l, address);
	if (t->instructions > 1)
		s = machine_run_plain(m, l, t->instructions - 1, t->code, err);
	if (s != BASE_OK)
		return s;
	static const uint8_t kind[] = {[MEMORY_LOAD] = SLACK_LOAD,
		[MEMORY_STORE] = SLACK_STORE,
		[MEMORY_ATOMIC] = SLACK_ATOMIC};
	struct slack_access a = {.address = address,
		.code = t->code,
		.bytes = t->size_bytes,
		.kind = kind[t->kind],
		.instructions = t->instructions != 0,
		.loads = t->kind != MEMORY_STORE,
		.stores = t->kind != MEMORY_LOAD};
	return slack_machine_node(m, l, &a, NULL, err);
}

static enum base_status run_range(
	struct slack_machine *m, struct lane *l, const struct memory_item *t, struct base_err *err)
{
	enum base_status s = machine_run_plain(m, l, t->instructions, t->code, err);
	uint64_t at = t->address, end = t->address + t->count;
	while (at < end && s == BASE_OK) {
		uint64_t next = ((at >> m->line_shift) + 1) << m->line_shift;
		next = next - at > MEMORY_ACCESS_MAX_BYTES ? at + MEMORY_ACCESS_MAX_BYTES : next;
		next = next < end ? next : end;
		struct slack_access a = {.address = at,
			.bytes = next - at,
			.code = t->code ? t->code : l->call_code,
			.kind = SLACK_UNSEEN,
			.loads = t->kind == MEMORY_RANGE_LOAD,
			.stores = t->kind == MEMORY_RANGE_STORE};
		s = slack_machine_node(m, l, &a, NULL, err);
		at = next;
	}
	return s;
}

enum base_status slack_machine_plain(struct slack_machine *m, struct lane *l, uint64_t count,
	uint64_t code, struct base_err *err)
{
	return machine_run_plain(m, l, count, code, err);
}

static enum base_status machine_end_block(
	struct slack_machine *m, struct lane *l, struct base_err *err)
{
	uint64_t tail = l->tail;
	l->tail = 0;
	return machine_run_plain(m, l, tail, l->tail_code, err);
}

/* Code that shares its line with the code before is there. */
static enum base_status machine_begin_block(
	struct slack_machine *m, struct lane *l, const struct memory_item *t, struct base_err *err)
{
	enum base_status s = machine_end_block(m, l, err);
	l->tail = t->instructions;
	l->tail_code = t->address;
	l->call_code = t->address + (t->size_bytes ? t->size_bytes - 1u : 0);
	if (m->sink.block && s == BASE_OK)
		s = m->sink.block(m->sink.ctx, (uint32_t)(l - m->lane), t->address, t->size_bytes,
			t->count, err);
	if (!t->size_bytes || !m->config.cdat->code_bytes || s != BASE_OK)
		return s;
	uint64_t first = t->address >> m->line_shift;
	uint64_t last = (t->address + t->size_bytes - 1) >> m->line_shift;
	first += first == l->line;
	l->line = last;
	if (first > last)
		return s;
	return machine_access_lines(m, (uint32_t)(l - m->lane), first << m->line_shift,
		(last - first + 1) << m->line_shift, MEMORY_BLOCK, &l->issue, err);
}

static enum base_status run_item(
	struct slack_machine *m, struct lane *l, const struct memory_item *t, struct base_err *err)
{
	switch ((enum memory_item_kind)t->kind) {
	case MEMORY_LOAD:
	case MEMORY_STORE:
	case MEMORY_ATOMIC:
		return run_access(m, l, t, memory_cursor_address(&l->cursor, t), err);
	case MEMORY_BLOCK:
		return machine_begin_block(m, l, t, err);
	case MEMORY_RANGE_LOAD:
	case MEMORY_RANGE_STORE:
		return run_range(m, l, t, err);
	case MEMORY_BRANCH:
		if (BASE_UNLIKELY(m->spinner != NULL))
			slack_spin_branched(m, l);
		break;
	default:
		break;
	}
	return machine_run_plain(m, l, t->instructions, t->code, err);
}

static enum base_status lane_ended(struct slack_machine *m, struct lane *l, struct base_err *err)
{
	enum base_status s = machine_end_block(m, l, err);
	struct slack_access a = {.kind = SLACK_END};
	if (m->spinner)
		slack_spin_ended(m, l);
	if (s == BASE_OK)
		s = slack_machine_node(m, l, &a, &l->last, err);
	l->state = LANE_ENDED;
	struct slack_processor_result *r = &m->result.processor[l - m->lane];
	r->end = l->time;
	r->instructions = l->executed;
	return s == BASE_OK ? slack_sync_ended(m, l, err) : s;
}

/* An item of a lane whose loops wait anew. */
static enum base_status run_waiting(struct slack_machine *m, struct lane *l,
	const struct memory_item *t, bool *ret_parked, struct base_err *err)
{
	enum slack_wait_turn turn;
	enum base_status s = slack_wait_before(m, l, t, &turn, err);
	*ret_parked = turn == SLACK_WAIT_PARKED;
	if (turn == SLACK_WAIT_RUN && s == BASE_OK) {
		s = run_item(m, l, t, err);
		slack_wait_after(m, l);
	}
	if (turn == SLACK_WAIT_RUN || turn == SLACK_WAIT_PASS)
		memory_cursor_advance(&l->cursor);
	return s;
}

/* The first lane runs until another one is due. */
static enum base_status run_top(struct slack_machine *m, struct base_err *err)
{
	struct lane *l = &m->lane[m->heap[0] & ((1u << KEY_BITS) - 1)];
	uint64_t limit = base_keys_second(m->heap, m->nr_heap), key;
	const struct memory_item *t;
	enum base_status s = BASE_OK;
	if (l->pending) {
		base_keys_drop(m->heap, &m->nr_heap);
		return slack_sync_resume(m, l, err);
	}
	s = machine_lane_peek(m, l, &t, err);
	while (s == BASE_OK) {
		key = slack_key(machine_item_due(l, t), (uint32_t)(l - m->lane));
		if (key > limit) {
			base_keys_replace(m->heap, m->nr_heap, key);
			return BASE_OK;
		}
		if (BASE_UNLIKELY(t->kind == MEMORY_CALL)) {
			const struct memory_call *call = &l->cursor.batch.call[t->address];
			base_keys_drop(m->heap, &m->nr_heap);
			s = machine_end_block(m, l, err);
			memory_cursor_advance(&l->cursor);
			return s == BASE_OK ? slack_sync_call(m, l, call, err) : s;
		}
		if (BASE_UNLIKELY(m->waiter != NULL)) {
			bool parked;
			s = run_waiting(m, l, t, &parked, err);
			if (parked && s == BASE_OK) {
				base_keys_drop(m->heap, &m->nr_heap);
				return BASE_OK;
			}
			limit = base_keys_second(
				m->heap, m->nr_heap); /* it may have woken others */
		} else {
			s = run_item(m, l, t, err);
			memory_cursor_advance(&l->cursor);
		}
		if (s == BASE_OK)
			s = machine_lane_peek(m, l, &t, err);
	}
	if (s != BASE_END)
		return base_cause(err, s, "while simulating thread %u", (unsigned)(l - m->lane));
	base_keys_drop(m->heap, &m->nr_heap);
	return lane_ended(m, l, err);
}

static void machine_stop_all(struct slack_machine *m)
{
	for (uint32_t i = 0; i < m->nr_lanes; i++) {
		struct lane *l = &m->lane[i];
		if (l->state == LANE_ENDED || !l->started)
			continue;
		m->result.processor[i].end = l->time;
		m->result.processor[i].instructions = l->executed;
	}
	m->nr_heap = 0;
	m->stopped = true;
}

enum base_status slack_machine_run(struct slack_machine *m, uint64_t nr_nodes, struct base_err *err)
{
	uint64_t until = m->order + nr_nodes;
	enum base_status s = BASE_OK;
	while (s == BASE_OK && m->order < until) {
		if (m->stopped)
			return BASE_END;
		if (m->nr_heap && m->options.until && m->heap[0] >> KEY_BITS >= m->options.until) {
			machine_stop_all(m);
		} else if (m->nr_heap) {
			s = run_top(m, err);
		} else {
			bool freed = slack_wait_force(m);
			if (freed)
				continue;
			s = slack_sync_stuck(m, &freed, err);
			if (s == BASE_OK && !freed)
				m->stopped = true;
		}
	}
	return s;
}

/* ---- life ------------------------------------------------------------------------------------ */

const struct slack_machine_result *slack_machine_result(struct slack_machine *m)
{
	struct slack_machine_result *r = &m->result;
	r->cycles = r->instructions = r->spinning = r->nodes = 0;
	r->respun = r->rewaits = 0;
	for (uint32_t i = 0; i < m->nr_lanes; i++) {
		const struct slack_processor_result *p = &r->processor[i];
		r->cycles = p->end > r->cycles ? p->end : r->cycles;
		r->instructions += p->instructions;
		r->spinning += p->spinning;
		r->respun += p->respun;
		r->rewaits += p->rewaits;
		r->nodes += p->nodes;
	}
	r->memory_bytes = m->places.nr_pages * m->places.page_bytes;
	r->messages = m->network.messages;
	r->broadcasts = m->network.broadcasts;
	return r;
}

static enum base_status check(const struct slack_machine *m, struct base_err *err)
{
	const struct memory_cdat_config *k = m->config.cdat;
	uint32_t nr = m->source->info.nr_threads;
	if (!(m->source->info.flags & MEMORY_SOURCE_INSTRUCTIONS))
		return base_fail(err, BASE_ERR_USAGE,
			"these streams do not have all instructions: record with --level 3");
	if (m->source->info.flags & (MEMORY_SOURCE_TOTAL_ORDER | MEMORY_SOURCE_LIVE))
		return base_fail(err, BASE_ERR_USAGE,
			"a trace of format %s has one order for all threads; the machine needs a "
			"stream for each",
			m->source->info.format);
	unsigned long long processors = k->nodes * k->processors;
	if (nr > processors || nr > MEMORY_CDAT_PROCESSORS_MAX)
		return base_fail(err, BASE_ERR_USAGE,
			"the trace has %u {thread|threads}, the machine %llu "
			"{processor|processors}: a thread has one "
			"of its own; "
			"set nodes or processors",
			nr, processors);
	if (k->line_bytes > 1u << PAGE_SHIFT)
		return base_fail(
			err, BASE_ERR_USAGE, "line_bytes is at most %d here", 1 << PAGE_SHIFT);
	if (memory_cdat_config_has_parts(k))
		return base_fail(err, BASE_ERR_USAGE,
			"here all caches have lines of line_bytes: data_line_bytes, "
			"code_line_bytes, "
			"second_line_bytes and third_line_bytes are for longpole cdat");
	return memory_cdat_config_check(k, err);
}

static enum base_status machine_init(struct slack_machine *m, struct base_err *err)
{
	struct memory_cdat_options o = {.memory_limit_bytes = m->options.memory_limit_bytes};
	uint64_t limit = o.memory_limit_bytes ? o.memory_limit_bytes : LIMIT_DEFAULT;
	enum base_status s = check(m, err);
	if (s != BASE_OK)
		return s;
	m->nr_lanes = m->source->info.nr_threads;
	m->line_shift = (unsigned)__builtin_ctzll(m->config.cdat->line_bytes);
	s = memory_cdat_new(m->config.cdat, m->nr_lanes, &o, &m->cdat, err);
	if (s == BASE_OK)
		s = memory_cdat_begin(m->cdat, err);
	if (s != BASE_OK)
		return s;
	m->lane = base_alloc((m->nr_lanes + 1) * sizeof *m->lane);
	m->heap = base_alloc((m->nr_lanes + 1) * sizeof *m->heap);
	m->producer = base_alloc((m->nr_lanes + ACCESS_PLACES_MAX + 1) * sizeof *m->producer);
	m->result.processor = base_alloc((m->nr_lanes + 1) * sizeof *m->result.processor);
	m->result.nr_processors = m->nr_lanes;
	if (!m->lane || !m->heap || !m->producer || !m->result.processor ||
		slack_places_init(&m->places, m->config.cdat->line_bytes, limit) != BASE_OK ||
		slack_network_init(&m->network, &m->config) != BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the simulated machine");
	for (uint32_t i = 0; i < m->nr_lanes; i++) {
		m->lane[i].line = UINT64_MAX;
		m->lane[i].call_code = 0;
	}
	if (m->nr_lanes)
		slack_machine_start(m, &m->lane[0], 0);
	return slack_spin_init(m) == BASE_OK && slack_wait_init(m) == BASE_OK
		       ? BASE_OK
		       : base_fail(err, BASE_ERR_NOMEM, "no memory for loops that wait");
}

enum base_status slack_machine_new(const struct slack_machine_config *config,
	struct memory_source *source, const struct slack_machine_options *options,
	const struct slack_sink *sink, struct slack_machine **ret, struct base_err *err)
{
	*ret = NULL;
	struct slack_machine *m = base_alloc(sizeof *m);
	if (!m)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the simulated machine");
	m->config = *config;
	m->source = source;
	m->options = *options;
	if (sink)
		m->sink = *sink;
	enum base_status s = machine_init(m, err);
	if (s != BASE_OK) {
		slack_machine_free(m);
		return s;
	}
	*ret = m;
	return BASE_OK;
}

enum base_status slack_machine_again(
	struct slack_machine **m, const struct slack_sink *sink, struct base_err *err)
{
	struct slack_machine_config config = (*m)->config;
	struct slack_machine_options options = (*m)->options;
	struct memory_source *source = (*m)->source;
	*m = slack_machine_free(*m);
	if (!source->ops->rewind)
		return base_fail(err, BASE_ERR_USAGE,
			"the trace is read twice, and this one cannot be: put it into a file");
	enum base_status s = source->ops->rewind(source, err);
	return s == BASE_OK ? slack_machine_new(&config, source, &options, sink, m, err) : s;
}

struct slack_machine *slack_machine_free(struct slack_machine *m)
{
	if (!m)
		return NULL;
	slack_sync_fini(m);
	slack_places_fini(&m->places);
	slack_network_fini(&m->network);
	memory_cdat_free(m->cdat);
	base_free(m->lane);
	base_free(m->heap);
	base_free(m->producer);
	base_free(m->spinner);
	slack_wait_fini(m);
	base_free(m->result.processor);
	base_free(m);
	return NULL;
}
