/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - the cable. A packet under way is a machine of its own, so that the delay of each counts
 * from when it was sent, however many are under way. What finds the receiver's FIFO full is lost.
 */
#include "platform/host.h"

static void lose(struct platform_sim *s, struct platform_system *to, struct platform_packet *p)
{
	to->rx_fifo.nr_dropped++;
	to->dropped_packets++;
	if (!p->from->is_udp) {
		platform_sim_fail(
			s, base_fail(s->err, BASE_ERR_USAGE,
				   "%s: the card's FIFO is full and a TCP segment would be lost, "
				   "which is "
				   "not simulated; set flow_control = 1 for the link, or make "
				   "rx_fifo_bytes or bus_gbps larger",
				   to->name));
		return;
	}
	p->from->packet_bytes -= p->payload_bytes;
	p->from->dropped_bytes += p->payload_bytes;
	platform_app_lost(s, p->from);
	platform_packet_free(s, p);
}

static bool propagate(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_system *y = ((struct platform_slot *)m)->from;
	struct platform_packet *p = NULL;
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE_LATE(s, m, &y->wire, PLATFORM_ITEM,
			s->now_ns + (uint64_t)(y->link->p.delay_us * 1000));
		p = m->packet;
		platform_serve(s, m, p->connection);
		if (y->link->p.flow_control > 0 ||
			platform_has_space(&y->peer->rx_fifo, platform_packet_frame_bytes(p)))
			PUT(s, m, &y->peer->rx_fifo, platform_packet_frame_bytes(p), p);
		else
			lose(s, y->peer, p);
	}
	PLATFORM_END(m);
}

void platform_link_init(struct platform_sim *s, struct platform_system *y, uint64_t nr_slots)
{
	struct base_str text = {0};
	y->slot = platform_sim_alloc(s, nr_slots * sizeof *y->slot);
	if (!y->slot)
		return;
	base_str_addf(&text, "%s cable", y->name);
	platform_queue_init(s, &y->wire, y->name, "cable", 0, 0, 0);
	y->wire.has_items = y->wire.newest_waiter_first = true;
	for (uint64_t i = 0; i < nr_slots; i++) {
		y->slot[i].from = y;
		platform_machine_start(
			s, &y->slot[i].machine, y->name, base_str_text(&text), i, propagate);
	}
	base_str_fini(&text);
}
