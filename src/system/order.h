/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h - the kernel's events of all processors, in the order of their times.
 *
 * Each processor has a queue. Within a queue times are almost in order: an interrupt between a
 * reservation and its stamp makes a later slot with an earlier time, within microseconds. Queues
 * are merged up to a horizon; what comes in behind the horizon is given out all the same, at once,
 * and counted.
 */
#ifndef LONGPOLE_SYSTEM_ORDER_H
#define LONGPOLE_SYSTEM_ORDER_H

#include "base/base.h"
#include "system/abi.h"

enum { SYSTEM_ORDER_WINDOW_NS = 100000 };

struct system_order_entry {
	uint64_t time_ns;
	uint32_t at; /* in `slot` */
};

struct system_order_queue { /* of one processor */
	struct kernel_slot *slot;
	size_t nr_slots, slot_capacity;
	struct system_order_entry *entry; /* [first, nr) wait, in time order */
	size_t first, nr, entry_capacity;
	bool stuck; /* its next slot is still being written: see system_slots_read() */
	uint64_t stuck_since_ns, newest_ns;
	uint64_t nr_dropped; /* by the kernel's side, when it was read last */
};

struct system_order {
	struct system_order_queue *queue;
	unsigned nr_queues;
	uint64_t given_ns; /* time of the last one given out */
	unsigned leader;   /* queue that the last one came from ... */
	uint64_t until_ns; /* ... and the others' first time then */
	uint64_t nr_reordered, nr_late, nr_damaged;
	uint64_t gap_ns,
		gap_until_ns; /* time in which any processor's events were dropped; so far */
};

enum base_status system_order_init(
	struct system_order *o, unsigned nr_queues, struct base_err *err) BASE_MUST_CHECK;
void system_order_fini(struct system_order *o);

/* An event of that processor: `nr` slots. KERNEL_SLOTS_OF_EVENT_MAX of each event can be read,
 * whatever it says of its length. BASE_ERR_NOMEM. */
enum base_status system_order_push(struct system_order *o, unsigned cpu,
	const struct kernel_slot *slot, unsigned nr) BASE_MUST_CHECK;

/* Forget what was given out: slots from system_order_next() are gone then. */
void system_order_compact(struct system_order *o, unsigned cpu);

/* All events before it are in the queues, as far as one can know at now_ns. */
uint64_t system_order_horizon(const struct system_order *o, uint64_t now_ns);

/* The earliest event before horizon_ns, with its further slots behind it; NULL: none. *ret_cpu: its
 * processor. Valid until the next push. */
const struct kernel_slot *system_order_next(
	struct system_order *o, uint64_t horizon_ns, unsigned *ret_cpu);

/* Of one processor events were dropped then. */
void system_order_gap(struct system_order *o, uint64_t from_ns, uint64_t to_ns);

/*
 * system_slots_read() - take what is in a processor's slots (`mask` + 1 of them, shared with the
 * kernel) into its queue, and make room. A slot without a time after the last one taken is being
 * written; one that stays so for SYSTEM_SLOT_PATIENCE_NS is skipped and counted in nr_damaged.
 * Events that were dropped since the last time were so between the last taken and now. Returns
 * slots that were in use in *ret_used.
 */
enum { SYSTEM_SLOT_PATIENCE_NS = 20000000 };
enum base_status system_slots_read(struct system_order *o, unsigned cpu,
	struct kernel_control *control, struct kernel_slot *slots, uint32_t mask, uint64_t now_ns,
	uint64_t *ret_used) BASE_MUST_CHECK;

#endif
