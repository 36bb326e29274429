/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - the cable. A packet under way is a machine of its own, so that the delay of each counts
 * from when it was sent, however many are under way. Some are lost by chance; what finds the
 * receiver's FIFO full is lost, too.
 */
#include "platform/host.h"

/*
 * Slots go round. The one that was free last would come again soon: a trace with few of them in use
 * leaves no room for more packets on the cable when it is simulated again with a faster sender.
 */
static void link_free_slot(struct platform_system *y, struct platform_slot *slot)
{
	slot->next_free = NULL;
	if (y->free_slot)
		y->last_free_slot->next_free = slot;
	else
		y->free_slot = slot;
	y->last_free_slot = slot;
}

static bool propagate(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_slot *slot = (struct platform_slot *)m;
	struct platform_system *y = slot->from;
	struct platform_packet *p = NULL;
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE_LATE(s, m, &slot->queue, PLATFORM_ITEM,
			s->now_ns + (uint64_t)(y->link->p.delay_us * 1000));
		p = m->packet;
		platform_serve(s, m, p->connection);
		if (platform_chance(s, y->link->p.loss_percent)) {
			platform_net_lose(s, m, y->peer, p);
		} else if (y->link->p.flow_control > 0 ||
			   platform_has_space(&y->peer->rx.fifo, platform_packet_frame_bytes(p))) {
			PUT(s, m, &y->peer->rx.fifo, platform_packet_frame_bytes(p), p);
		} else {
			y->peer->rx.fifo.nr_dropped++;
			platform_net_lose(s, m, y->peer, p);
		}
		link_free_slot(y, slot);
	}
	PLATFORM_END(m);
}

void platform_link_send(struct platform_sim *s, struct platform_machine *m,
	struct platform_system *y, struct platform_packet *p)
{
	struct platform_slot *slot = y->free_slot;
	if (!slot) {
		platform_sim_fail(
			s, base_fail(s->err, BASE_ERR_USAGE,
				   "[link %s]: more than %llu packets are under way; make "
				   "packets_in_flight larger",
				   y->link->name, (unsigned long long)y->nr_slots));
		return;
	}
	y->free_slot = slot->next_free;
	platform_give_item(s, m, &slot->queue, 1, p);
}

void platform_link_init(struct platform_sim *s, struct platform_system *y, uint64_t nr_slots)
{
	struct base_str text = {0};
	y->slot = platform_sim_alloc(s, nr_slots * sizeof *y->slot);
	if (!y->slot)
		return;
	y->nr_slots = nr_slots;
	base_str_addf(&text, "%s cable", y->name);
	for (uint64_t i = 0; i < nr_slots; i++) {
		struct platform_slot *slot = &y->slot[i];
		slot->from = y;
		link_free_slot(y, slot);
		platform_queue_init(s, &slot->queue, y->name, "cable", i, 0, 0);
		slot->queue.has_items = true;
		platform_machine_start(
			s, &slot->machine, y->name, base_str_text(&text), i, propagate);
	}
	base_str_fini(&text);
}

void platform_link_fini(struct platform_system *y)
{
	for (uint64_t i = 0; i < y->nr_slots; i++)
		platform_queue_fini(&y->slot[i].queue);
}
