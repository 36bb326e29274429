/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - per-processor queues, sorted and merged. */
#include "system/order.h"

#include <string.h>

_Static_assert(sizeof(struct kernel_slot) == KERNEL_SLOT_BYTES, "see system.bpf.c");
_Static_assert(sizeof(struct kernel_control) == 128, "two lines");
_Static_assert(sizeof(struct kernel_address) == 2 * KERNEL_SLOT_BYTES, "two slots");
_Static_assert(sizeof(struct kernel_request) == KERNEL_SLOT_BYTES, "one slot");
_Static_assert(sizeof(struct kernel_tcp) == 2 * KERNEL_SLOT_BYTES, "two slots");

enum { SLOTS_MAX = 1 << 24 }; /* waiting in one queue: 512 MiB */

enum base_status system_order_init(struct system_order *o, unsigned nr_queues, struct base_err *err)
{
	*o = (struct system_order){.nr_queues = nr_queues};
	o->queue = base_alloc(nr_queues * sizeof *o->queue);
	if (!o->queue)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %u {queue|queues}", nr_queues);
	return BASE_OK;
}

void system_order_fini(struct system_order *o)
{
	for (unsigned i = 0; o->queue && i < o->nr_queues; i++) {
		base_free(o->queue[i].slot);
		base_free(o->queue[i].entry);
	}
	base_free(o->queue);
	*o = (struct system_order){0};
}

/* ---- in -------------------------------------------------------------------------------------- */

/* What was given out makes room at the front. */
void system_order_compact(struct system_order *o, unsigned cpu)
{
	struct system_order_queue *q = &o->queue[cpu];
	if (q->first == q->nr) {
		q->first = q->nr = q->nr_slots = 0;
		return;
	}
	if (q->first < 4096 || q->first * 2 < q->nr)
		return;
	/* Entries are in time order, slots in order of arrival: the lowest slot that waits. */
	uint32_t lowest = UINT32_MAX;
	for (size_t i = q->first; i < q->nr; i++)
		if (q->entry[i].at < lowest)
			lowest = q->entry[i].at;
	q->nr -= q->first;
	memmove(q->entry, q->entry + q->first, q->nr * sizeof *q->entry);
	q->first = 0;
	q->nr_slots -= lowest;
	memmove(q->slot, q->slot + lowest, q->nr_slots * sizeof *q->slot);
	for (size_t i = 0; i < q->nr; i++)
		q->entry[i].at -= lowest;
}

/* Room for `nr` slots after those of the queue. */
static enum base_status order_make_room(struct system_order_queue *q, unsigned nr)
{
	if (q->nr_slots + nr > SLOTS_MAX)
		return BASE_ERR_NOMEM;
	if (BASE_LIKELY(q->nr_slots + nr + KERNEL_SLOTS_OF_EVENT_MAX <= q->slot_capacity &&
			q->nr < q->entry_capacity))
		return BASE_OK;
	enum base_status status = base_grow(&q->slot, &q->slot_capacity,
		q->nr_slots + nr + KERNEL_SLOTS_OF_EVENT_MAX, sizeof *q->slot);
	return status != BASE_OK
		       ? status
		       : base_grow(&q->entry, &q->entry_capacity, q->nr + 1, sizeof *q->entry);
}

/* The event whose `nr` slots have been put there. */
static void order_add(struct system_order *o, struct system_order_queue *q, unsigned nr)
{
	struct system_order_entry e = {
		.time_ns = q->slot[q->nr_slots].time_ns, .at = (uint32_t)q->nr_slots};
	q->nr_slots += nr;
	size_t at = q->nr++;
	if (BASE_UNLIKELY(at > q->first && q->entry[at - 1].time_ns > e.time_ns)) {
		o->nr_reordered++;
		for (; at > q->first && q->entry[at - 1].time_ns > e.time_ns; at--)
			q->entry[at] = q->entry[at - 1];
	}
	q->entry[at] = e;
	q->newest_ns = e.time_ns;
	o->until_ns = 0; /* the next one has to be found anew */
}

enum base_status system_order_push(
	struct system_order *o, unsigned cpu, const struct kernel_slot *slot, unsigned nr)
{
	struct system_order_queue *q = &o->queue[cpu];
	enum base_status status = order_make_room(q, nr);
	if (status != BASE_OK)
		return status;
	memcpy(q->slot + q->nr_slots, slot, nr * sizeof *slot);
	order_add(o, q, nr);
	return BASE_OK;
}

/* ---- out ------------------------------------------------------------------------------------- */

static uint64_t first_ns(const struct system_order_queue *q)
{
	return q->first < q->nr ? q->entry[q->first].time_ns : UINT64_MAX;
}

/* The queue whose first event is the earliest, and how long it stays so. */
static void find_leader(struct system_order *o)
{
	uint64_t best = UINT64_MAX, next = UINT64_MAX;
	for (unsigned i = 0; i < o->nr_queues; i++) {
		uint64_t ns = first_ns(&o->queue[i]);
		if (ns < best) {
			next = best;
			best = ns;
			o->leader = i;
		} else if (ns < next) {
			next = ns;
		}
	}
	o->until_ns = next;
}

uint64_t system_order_horizon(const struct system_order *o, uint64_t now_ns)
{
	uint64_t horizon_ns = now_ns > SYSTEM_ORDER_WINDOW_NS ? now_ns - SYSTEM_ORDER_WINDOW_NS : 0;
	for (unsigned i = 0; i < o->nr_queues; i++)
		if (o->queue[i].stuck && o->queue[i].newest_ns < horizon_ns)
			horizon_ns = o->queue[i].newest_ns;
	return horizon_ns;
}

const struct kernel_slot *system_order_next(
	struct system_order *o, uint64_t horizon_ns, unsigned *ret_cpu)
{
	if (first_ns(&o->queue[o->leader]) >= o->until_ns)
		find_leader(o);
	struct system_order_queue *q = &o->queue[o->leader];
	if (first_ns(q) >= horizon_ns)
		return NULL;
	const struct system_order_entry *e = &q->entry[q->first++];
	if (e->time_ns < o->given_ns)
		o->nr_late++;
	else
		o->given_ns = e->time_ns;
	*ret_cpu = o->leader;
	return &q->slot[e->at];
}

/* ---- the slots that the kernel writes -------------------------------------------------------- */

static unsigned slots_of(const struct kernel_slot *s)
{
	unsigned nr = s->shape >> 4;
	return nr ? nr : 1;
}

/* A slot that the kernel may write again. */
static void order_give_back(struct kernel_slot *s)
{
	*s = (struct kernel_slot){0};
}

/* An event of `nr` slots, out of the kernel's. */
static enum base_status order_take(struct system_order *o, struct system_order_queue *q,
	struct kernel_slot *slots, uint32_t mask, uint64_t at, unsigned nr)
{
	enum base_status status = order_make_room(q, nr);
	if (status != BASE_OK)
		return status;
	for (unsigned i = 0; i < nr; i++) {
		struct kernel_slot *s = &slots[(at + i) & mask];
		q->slot[q->nr_slots + i] = *s;
		order_give_back(s);
	}
	order_add(o, q, nr);
	return BASE_OK;
}

/* Those of several processors that lie in the same time are one; they come in the order of their
 * ends. */
void system_order_gap(struct system_order *o, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns < o->gap_until_ns)
		from_ns = o->gap_until_ns;
	if (from_ns >= to_ns)
		return;
	o->gap_ns += to_ns - from_ns;
	o->gap_until_ns = to_ns;
}

enum base_status system_slots_read(struct system_order *o, unsigned cpu,
	struct kernel_control *control, struct kernel_slot *slots, uint32_t mask, uint64_t now_ns,
	uint64_t *ret_used)
{
	struct system_order_queue *q = &o->queue[cpu];
	uint64_t head = __atomic_load_n(&control->head, __ATOMIC_ACQUIRE), at = control->tail;
	uint64_t nr_dropped = __atomic_load_n(&control->dropped, __ATOMIC_RELAXED);
	enum base_status status = BASE_OK;
	*ret_used = head - at;
	system_order_compact(o, cpu);
	while (at < head && status == BASE_OK) {
		struct kernel_slot *s = &slots[at & mask];
		if (BASE_UNLIKELY(!__atomic_load_n(&s->time_ns, __ATOMIC_ACQUIRE))) {
			if (!q->stuck) {
				q->stuck = true;
				q->stuck_since_ns = now_ns;
			}
			if (now_ns - q->stuck_since_ns < SYSTEM_SLOT_PATIENCE_NS)
				break;
			q->stuck = false; /* its program died between reservation and stamp */
			order_give_back(s);
			at++;
			o->nr_damaged++;
			continue;
		}
		unsigned nr = slots_of(s);
		q->stuck = false;
		if (nr > KERNEL_SLOTS_OF_EVENT_MAX || nr > head - at) {
			order_give_back(s);
			at++;
			o->nr_damaged++;
			continue;
		}
		status = order_take(o, q, slots, mask, at, nr);
		at += status == BASE_OK ? nr : 0;
	}
	__atomic_store_n(&control->tail, at, __ATOMIC_RELEASE);
	if (nr_dropped != q->nr_dropped) /* after the last that fitted, until there was room */
		system_order_gap(o, q->newest_ns ? q->newest_ns : now_ns, now_ns);
	q->nr_dropped = nr_dropped;
	return status;
}
