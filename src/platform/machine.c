/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - stopping and going on; waits on queues; processors and interrupts. */
#include "platform/machine.h"

#include <math.h>

#define LONGPOLE_DISABLE /* for the flags only */
#include "longpole/annotate.h"

/* ---- the run --------------------------------------------------------------------------------- */

void platform_sim_fail(struct platform_sim *s, enum base_status status)
{
	if (s->status == BASE_OK)
		s->status = status;
	s->ended = true;
}

/*
 * While a platform is built nobody wants to look after memory: when there is none, the caller gets
 * what there is one of for all (it will not run), and the run fails.
 */
void *platform_sim_alloc(struct platform_sim *s, size_t size_bytes)
{
	void *p = base_arena_alloc(s->arena, size_bytes);
	if (!p)
		platform_sim_fail(
			s, base_fail(s->err, BASE_ERR_NOMEM, "out of memory for the platform"));
	return p;
}

static uint64_t random_below(struct platform_sim *s, uint64_t limit)
{
	/* splitmix64 (Steele, Lea, Flood 2014); the bias of the modulo does not matter here */
	uint64_t x = s->random += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return limit ? (x ^ (x >> 31)) % limit : 0;
}

static void schedule(struct platform_sim *s, struct platform_machine *m, uint64_t time_ns)
{
	enum base_status status = platform_events_push(&s->events,
		(struct platform_event){.time_ns = time_ns, .machine = m, .turn = ++m->turn});
	if (status != BASE_OK)
		platform_sim_fail(s, base_fail(s->err, status, "out of memory for events"));
}

void platform_sim_run(struct platform_sim *s, uint64_t end_ns)
{
	struct platform_event e;
	while (!s->ended && platform_events_pop(&s->events, &e)) {
		if (e.machine->turn != e.turn)
			continue;
		if (end_ns && e.time_ns > end_ns) {
			s->now_ns = end_ns;
			break;
		}
		s->now_ns = e.time_ns;
		s->nr_events++;
		e.machine->is_working = false;
		e.machine->step(s, e.machine);
		if (s->note.status != BASE_OK)
			platform_sim_fail(s, s->note.status);
	}
}

/* ---- packets --------------------------------------------------------------------------------- */

struct platform_packet *platform_packet_new(struct platform_sim *s)
{
	struct platform_packet *p = s->free_packets;
	if (p)
		s->free_packets = p->next;
	else
		p = platform_sim_alloc(s, sizeof *p);
	if (p)
		*p = (struct platform_packet){0};
	return p;
}

void platform_packet_free(struct platform_sim *s, struct platform_packet *p)
{
	p->next = s->free_packets;
	s->free_packets = p;
}

uint32_t platform_packet_frame_bytes(const struct platform_packet *p)
{
	enum { HEADER = 14, LEAST = 60 }; /* IEEE 802.3, without the checksum */
	uint32_t bytes = p->ip_bytes + HEADER;
	return bytes < LEAST ? LEAST : bytes;
}

/* ---- machines and time ----------------------------------------------------------------------- */

static void machine_enter(
	struct platform_sim *s, struct platform_machine *m, enum platform_state state)
{
	platform_note_enter(&s->note, s->now_ns, m->actor, s->state_id[state]);
}

static void verb(struct platform_sim *s, struct platform_machine *m, enum longpole_queue_verb kind,
	const struct platform_queue *q, uint64_t n)
{
	if (!q->is_silent)
		platform_note_queue(&s->note, s->now_ns, m->actor, kind, q->object, n, q->flags);
}

void platform_machine_start(struct platform_sim *s, struct platform_machine *m, const char *system,
	const char *name, uint64_t instance,
	bool (*step)(struct platform_sim *s, struct platform_machine *m))
{
	m->actor = platform_note_new_actor(&s->note, system, name, instance);
	m->step = step;
	m->state = PLATFORM_STATE_idle;
	machine_enter(s, m, m->state);
	schedule(s, m, 0);
}

/* The interrupt has its processor now, and gives it back to nobody else. */
static void freeze(struct platform_sim *s, struct platform_processor *p, struct platform_machine *m)
{
	m->is_frozen = true;
	machine_enter(s, m, PLATFORM_STATE_interrupted);
	verb(s, m, LONGPOLE_ENQUEUE, p->pool, 1);
	verb(s, p->by, LONGPOLE_DEQUEUE, p->pool, 1);
}

static void thaw(struct platform_sim *s, struct platform_processor *p, struct platform_machine *m)
{
	m->is_frozen = false;
	verb(s, p->by, LONGPOLE_ENQUEUE, p->pool, 1);
	verb(s, m, LONGPOLE_DEQUEUE, p->pool, 1);
}

bool platform_work(
	struct platform_sim *s, struct platform_machine *m, enum platform_state state, uint64_t ns)
{
	m->state = state;
	if (m->processor && m->processor->interrupted) {
		m->left_ns = ns;
		freeze(s, m->processor, m);
		return true;
	}
	machine_enter(s, m, state);
	if (!ns)
		return false;
	m->is_working = true;
	m->work_end_ns = s->now_ns + ns;
	schedule(s, m, m->work_end_ns);
	return true;
}

uint64_t platform_cost(struct platform_sim *s, double ns)
{
	enum { STEPS = 1 << 20 };
	if (s->jitter > 0) {
		double u = (double)random_below(s, STEPS) / (STEPS / 2.0) - 1;
		ns *= 1 + s->jitter * u;
	}
	return (uint64_t)(ns + 0.5);
}

bool platform_chance(struct platform_sim *s, double percent)
{
	enum { STEPS = 1 << 30 };
	return percent > 0 && (double)random_below(s, STEPS) < percent / 100 * STEPS;
}

uint64_t platform_bytes_ns(uint64_t bytes, double gbps)
{
	return (uint64_t)ceil((double)bytes * 8 / gbps);
}

/* ---- processors ------------------------------------------------------------------------------ */

static void enter_processor(
	const struct platform_sim *s, struct platform_queue *pool, struct platform_machine *m)
{
	for (unsigned i = 0; i < pool->nr_processors; i++) {
		if (pool->processor[i].running || pool->processor[i].taken)
			continue;
		pool->processor[i].running = m;
		m->processor = &pool->processor[i];
		m->on_processor_since_ns = s->now_ns;
		return;
	}
}

static void leave_processor(struct platform_queue *pool, struct platform_machine *m)
{
	if (!pool->nr_processors || !m->processor)
		return;
	m->processor->running = NULL;
	m->processor = NULL;
}

bool platform_slice_is_over(const struct platform_sim *s, const struct platform_machine *m,
	const struct platform_queue *processors, uint64_t slice_ns)
{
	return m->processor && processors->waiting &&
	       s->now_ns - m->on_processor_since_ns >= slice_ns;
}

void platform_interrupt(
	struct platform_sim *s, struct platform_processor *p, struct platform_machine *by)
{
	struct platform_machine *m = p->running;
	p->interrupted = true;
	p->by = by;
	if (!p->pool) /* nobody else's */
		return;
	if (!m) {
		p->taken = true;
		platform_try_take(s, by, p->pool, 1);
		return;
	}
	if (!m->is_working || m->work_end_ns <= s->now_ns)
		return;
	m->left_ns = m->work_end_ns - s->now_ns;
	m->turn++;
	m->is_working = false;
	freeze(s, p, m);
}

void platform_interrupt_end(struct platform_sim *s, struct platform_processor *p)
{
	struct platform_machine *m = p->running;
	p->interrupted = false;
	if (p->taken) {
		p->taken = false;
		platform_give_item(s, p->by, p->pool, 1, NULL);
		return;
	}
	if (!m || !m->is_frozen)
		return;
	thaw(s, p, m);
	m->is_working = true;
	m->work_end_ns = s->now_ns + m->left_ns;
	machine_enter(s, m, m->state);
	schedule(s, m, m->work_end_ns);
}

/* ---- queues ---------------------------------------------------------------------------------- */

void platform_queue_init(struct platform_sim *s, struct platform_queue *q, const char *system,
	const char *name, uint64_t instance, uint64_t capacity, uint64_t flags)
{
	struct base_str text = {0};
	base_str_addf(&text, "%s %s", system, name);
	*q = (struct platform_queue){.capacity = capacity, .flags = flags};
	q->object = platform_note_new_queue(&s->note, base_str_text(&text), instance, capacity);
	base_str_fini(&text);
}

void platform_wait_for_item(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q)
{
	verb(s, m, LONGPOLE_WAIT_EMPTY, q, 1);
}

void platform_put_item(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t key)
{
	platform_note_item(&s->note, s->now_ns, m->actor, LONGPOLE_PUT_ITEM, q->object, key);
}

void platform_take_item(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t key)
{
	platform_note_item(&s->note, s->now_ns, m->actor, LONGPOLE_TAKE_ITEM, q->object, key);
}

void platform_queue_fini(struct platform_queue *q)
{
	base_free(q->item);
	q->item = NULL;
}

void platform_queue_fill(
	struct platform_sim *s, struct platform_queue *q, struct platform_machine *m, uint64_t n)
{
	q->units = q->held = n;
	verb(s, m, LONGPOLE_RESIZE, q, n);
}

void platform_queue_shrink(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t n)
{
	BASE_ASSERT(q->units >= n && !q->has_items);
	q->units -= n;
	q->held -= n;
	verb(s, m, LONGPOLE_RESIZE, q, q->units);
}

static void push_item(
	struct platform_sim *s, struct platform_queue *q, struct platform_packet *p, uint64_t n)
{
	if (q->nr_items == q->item_capacity) {
		size_t old = q->item_capacity;
		enum base_status status =
			base_grow(&q->item, &q->item_capacity, old + 1, sizeof *q->item);
		if (status != BASE_OK) {
			platform_sim_fail(s, base_fail(s->err, status, "out of memory for queues"));
			return;
		}
		/* What had wrapped round goes behind the old end; the new part is at least as
		 * long. */
		for (size_t i = 0; i < q->first; i++)
			q->item[old + i] = q->item[i];
	}
	size_t at = q->first + q->nr_items++;
	q->item[at < q->item_capacity ? at : at - q->item_capacity] =
		(struct platform_item){.packet = p, .units = n};
}

static struct platform_item pop_item(struct platform_queue *q)
{
	BASE_ASSERT(q->nr_items);
	struct platform_item item = q->item[q->first];
	q->first = q->first + 1 < q->item_capacity ? q->first + 1 : 0;
	q->nr_items--;
	return item;
}

static void wait_in(
	struct platform_machine **first, struct platform_machine **last, struct platform_machine *m)
{
	m->next = NULL;
	if (!*first) {
		*first = *last = m;
	} else {
		(*last)->next = m;
		*last = m;
	}
}

static struct platform_machine *machine_leave(
	struct platform_machine **first, struct platform_machine **last)
{
	struct platform_machine *m = *first;
	*first = m->next;
	if (!*first)
		*last = NULL;
	return m;
}

static void grant_units(struct platform_queue *q, struct platform_machine *m, uint64_t most)
{
	uint64_t n = most < q->units ? most : q->units;
	m->packet = NULL;
	if (q->has_items) {
		struct platform_item item = pop_item(q);
		n = item.units;
		m->packet = item.packet;
	}
	BASE_ASSERT(q->units >= n);
	q->units -= n;
	m->taken = n;
}

static bool grab_token(
	struct platform_sim *s, struct platform_queue *pool, struct platform_machine *m)
{
	if (!pool->units || pool->waiting)
		return false;
	pool->units--;
	enter_processor(s, pool, m);
	return true;
}

/* m has what it wants of its first queue: now the token, else it waits for that. */
static void machine_go_on(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_queue *then = m->want.then;
	if (!then || grab_token(s, then, m))
		schedule(s, m, s->now_ns);
	else
		wait_in(&then->waiting, &then->waiting_last, m);
}

/* Units have come: which machine waits for them? */
static void wake_takers(struct platform_sim *s, struct platform_queue *q)
{
	while (q->waiting) {
		struct platform_machine *m = q->waiting;
		if (m->want.then == q) { /* its second wait, for a token */
			if (!q->units)
				return;
			machine_leave(&q->waiting, &q->waiting_last);
			q->units--;
			enter_processor(s, q, m);
			schedule(s, m, s->now_ns);
			continue;
		}
		if (q->units < m->want.need)
			return;
		machine_leave(&q->waiting, &q->waiting_last);
		grant_units(q, m, m->want.most);
		if (q->nr_processors)
			enter_processor(s, q, m);
		machine_go_on(s, m);
	}
}

bool platform_has_space(const struct platform_queue *q, uint64_t n)
{
	return !q->capacity || q->held + n <= q->capacity;
}

static void wake_putters(struct platform_sim *s, struct platform_queue *q)
{
	while (q->wants_space && platform_has_space(q, q->wants_space->want.need)) {
		struct platform_machine *m = machine_leave(&q->wants_space, &q->wants_space_last);
		q->held += m->want.need;
		machine_go_on(s, m);
	}
}

static void write_taken(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t n)
{
	verb(s, m, LONGPOLE_DEQUEUE, q, n);
	BASE_ASSERT(q->held >= n);
	q->held -= n;
	wake_putters(s, q);
}

bool platform_take(struct platform_sim *s, struct platform_machine *m, struct platform_queue *q,
	uint64_t need, uint64_t most, struct platform_queue *then)
{
	m->want = (struct platform_want){.queue = q, .then = then, .need = need, .most = most};
	if (q->waiting || q->units < need) {
		m->want.has_waited = true;
		verb(s, m, LONGPOLE_WAIT_EMPTY, q, need);
		wait_in(&q->waiting, &q->waiting_last, m);
		return false;
	}
	grant_units(q, m, most);
	if (q->nr_processors)
		enter_processor(s, q, m);
	if (then && !grab_token(s, then, m)) {
		verb(s, m, LONGPOLE_WAIT_EMPTY, then, 1);
		wait_in(&then->waiting, &then->waiting_last, m);
		return false;
	}
	platform_taken(s, m);
	return true;
}

void platform_wait(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t most)
{
	m->want = (struct platform_want){.queue = q, .need = 1, .most = most, .has_waited = true};
	verb(s, m, LONGPOLE_WAIT_EMPTY, q, 1);
	if (q->waiting || !q->units) {
		wait_in(&q->waiting, &q->waiting_last, m);
		return;
	}
	grant_units(q, m, most);
	schedule(s, m, s->now_ns);
}

void platform_sleep(struct platform_sim *s, struct platform_machine *m, uint64_t until_ns)
{
	schedule(s, m, until_ns > s->now_ns ? until_ns : s->now_ns);
}

/* A machine that waited for the first and then for the token waited for the first all that time. */
void platform_taken(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_want w = m->want;
	m->want = (struct platform_want){0};
	if (w.then && !w.has_waited)
		write_taken(s, m, w.then, 1);
	write_taken(s, m, w.queue, m->taken);
	if (w.then && w.has_waited)
		write_taken(s, m, w.then, 1);
}

uint64_t platform_try_take(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t n)
{
	m->taken = 0;
	if (q->waiting || !q->units || !n)
		return 0;
	grant_units(q, m, n);
	write_taken(s, m, q, m->taken);
	return m->taken;
}

bool platform_try_take_item(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q)
{
	return platform_try_take(s, m, q, PLATFORM_ITEM) != 0;
}

/* The space is accounted for. */
static void write_put(struct platform_sim *s, struct platform_machine *m, struct platform_queue *q,
	uint64_t n, struct platform_packet *p)
{
	verb(s, m, LONGPOLE_ENQUEUE, q, n);
	q->units += n;
	if (q->units > q->max_units)
		q->max_units = q->units;
	if (q->has_items)
		push_item(s, q, p, n);
	wake_takers(s, q);
}

static bool wants_space(
	struct platform_sim *s, struct platform_machine *m, const struct platform_want *w)
{
	struct platform_queue *q = w->queue;
	if (!q->wants_space && platform_has_space(q, w->need)) {
		q->held += w->need;
		return true;
	}
	if (w->then)
		platform_give(s, m, w->then, 1);
	m->want = *w;
	m->want.space = m->want.has_waited = true;
	verb(s, m, LONGPOLE_WAIT_FULL, q, w->need);
	wait_in(&q->wants_space, &q->wants_space_last, m);
	return false;
}

bool platform_put(struct platform_sim *s, struct platform_machine *m, struct platform_queue *q,
	uint64_t n, struct platform_packet *p, struct platform_queue *then)
{
	struct platform_want w = {.queue = q, .then = then, .need = n, .packet = p};
	if (!wants_space(s, m, &w))
		return false;
	write_put(s, m, q, n, p);
	return true;
}

bool platform_reserve(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t n)
{
	struct platform_want w = {.queue = q, .need = n, .reserve = true};
	if (!wants_space(s, m, &w))
		return false;
	verb(s, m, LONGPOLE_RESERVE, q, n);
	return true;
}

void platform_was_put(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_want w = m->want;
	m->want = (struct platform_want){0};
	if (w.reserve)
		verb(s, m, LONGPOLE_RESERVE, w.queue, w.need);
	else
		write_put(s, m, w.queue, w.need, w.packet);
	if (w.then)
		write_taken(s, m, w.then, 1);
}

void platform_put_reserved(struct platform_sim *s, struct platform_machine *m,
	struct platform_queue *q, uint64_t n, struct platform_packet *p)
{
	write_put(s, m, q, n, p);
}

void platform_give_item(struct platform_sim *s, struct platform_machine *m,
	struct platform_queue *q, uint64_t n, struct platform_packet *p)
{
	BASE_ASSERT(platform_has_space(q, n));
	q->held += n;
	write_put(s, m, q, n, p);
}

void platform_give(
	struct platform_sim *s, struct platform_machine *m, struct platform_queue *q, uint64_t n)
{
	leave_processor(q, m);
	platform_give_item(s, m, q, n, NULL);
}
