/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nic.c - a network card like Intel's e1000: descriptor rings in memory, fetched and written back
 * over the I/O bus; FIFOs; interrupts that can be moderated. Each engine of the card is a machine;
 * they share the bus. See seed 000 figure 6.1 for the one that sends.
 */
#include "platform/host.h"

#define LONGPOLE_DISABLE /* for the flags only */
#include "longpole/annotate.h"

static struct platform_system *system_of(struct platform_machine *m)
{
	return ((struct platform_part *)m)->system;
}

static const struct platform_system_parameters *nic_parameters(const struct platform_system *y)
{
	return &y->config->p;
}

uint64_t platform_bus_ns(const struct platform_system *y, uint64_t bytes)
{
	const struct platform_system_parameters *p = nic_parameters(y);
	return (uint64_t)p->bus_arbitration_ns + platform_bytes_ns(bytes, p->bus_gbps);
}

static uint64_t descriptors_ns(const struct platform_system *y, uint64_t n)
{
	return platform_bus_ns(y, n * (uint64_t)nic_parameters(y)->descriptor_bytes);
}

static uint64_t batch(const struct platform_system *y)
{
	return (uint64_t)nic_parameters(y)->descriptor_batch;
}

/* No more are fetched than there is ever space for. */
static uint64_t fetch_batch(const struct platform_system *y)
{
	uint64_t cache = (uint64_t)nic_parameters(y)->descriptor_cache;
	return batch(y) < cache ? batch(y) : cache;
}

/* Tells the processor, unless it knows that there is something. */
static void raise_interrupt(
	struct platform_sim *s, struct platform_machine *m, struct platform_system *y)
{
	if (y->rx.irq_raised || y->rx.polling)
		return;
	y->rx.irq_raised = true;
	platform_give(s, m, &y->rx.irq, 1);
}

/* TCP's descriptors wait for the next interrupt: each segment is acknowledged, and that is one. But
 * somebody may wait for a datagram's buffer, and packets for descriptors. */
static bool needs_cleaning(const struct platform_system *y)
{
	return y->tx.nr_charged || (y->driver_busy && !y->tx.free.units);
}

void platform_nic_delay_interrupt(
	struct platform_sim *s, struct platform_machine *m, struct platform_system *y)
{
	if (y->tx.pending.waiting && needs_cleaning(y)) /* and the timer stands still */
		platform_give(s, m, &y->tx.pending, 1);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Descriptors over the bus, into the card. */
static bool nic_fetch(struct platform_sim *s, struct platform_machine *m,
	struct platform_queue *ring, struct platform_queue *cache)
{
	struct platform_system *y = system_of(m);
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE_SOME(s, m, ring, 1, fetch_batch(y), NULL);
		m->count = m->taken;
		TAKE(s, m, &y->bus, 1);
		WORK(s, m, fetch_descriptors, descriptors_ns(y, m->count));
		platform_give(s, m, &y->bus, 1);
		PUT(s, m, cache, m->count, NULL);
	}
	PLATFORM_END(m);
}

static bool tx_fetch(struct platform_sim *s, struct platform_machine *m)
{
	return nic_fetch(s, m, &system_of(m)->tx.ring, &system_of(m)->tx.cache);
}

static bool tx_dma(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_system *y = system_of(m);
	struct platform_packet *p = m->sending;
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE(s, m, &y->tx.cache, 1);
		p = m->sending = platform_packets_remove(&y->tx.ring_packets);
		platform_serve(s, m, p->connection);
		RESERVE(s, m, &y->tx.fifo, platform_packet_frame_bytes(p));
		TAKE(s, m, &y->bus, 1);
		WORK(s, m, dma_packet, platform_bus_ns(y, platform_packet_frame_bytes(p)));
		platform_give(s, m, &y->bus, 1);
		struct platform_packet *receipt = platform_packet_new(s);
		if (!receipt)
			return true;
		*receipt = *p;
		y->tx.nr_charged += p->charged_bytes != 0;
		platform_packets_add(&y->tx.done_packets, receipt);
		platform_put_reserved(s, m, &y->tx.fifo, platform_packet_frame_bytes(p), p);
		y->tx.nr_to_write_back++;
		/* Written back together, but not later than when there is nothing more to do. */
		if (y->tx.nr_to_write_back < batch(y) && (y->tx.cache.units || y->tx.ring.units))
			continue;
		platform_give(s, m, &y->tx.done, y->tx.nr_to_write_back);
		y->tx.nr_to_write_back = 0;
	}
	PLATFORM_END(m);
}

static bool tx_line(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_system *y = system_of(m);
	struct platform_packet *p;
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE_ITEM(s, m, &y->tx.fifo);
		p = m->sending = m->packet;
		platform_serve(s, m, p->connection);
		y->sent_payload_bytes += p->payload_bytes;
		y->sent_frames++;
		WORK(s, m, transmit,
			platform_bytes_ns(platform_packet_frame_bytes(p) +
						  (uint64_t)y->link->p.overhead_bytes,
				y->link->p.rate_gbps));
		platform_link_send(s, m, y, m->sending);
	}
	PLATFORM_END(m);
}

static bool tx_write_back(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_system *y = system_of(m);
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE_SOME(s, m, &y->tx.done, 1, batch(y), NULL);
		m->count = m->taken;
		TAKE(s, m, &y->bus, 1);
		WORK(s, m, write_back, descriptors_ns(y, m->count));
		platform_give(s, m, &y->bus, 1);
		platform_give(s, m, &y->tx.clean, m->count);
		platform_nic_delay_interrupt(s, m, y);
	}
	PLATFORM_END(m);
}

/* What nobody has cleaned when the delay is over gets an interrupt of its own. */
static bool tx_timer(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_system *y = system_of(m);
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE_LATE(s, m, &y->tx.pending, 1,
			s->now_ns + (uint64_t)(nic_parameters(y)->tx_irq_delay_us * 1000));
		if (y->tx.clean.units && needs_cleaning(y))
			raise_interrupt(s, m, y);
	}
	PLATFORM_END(m);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static bool rx_fetch(struct platform_sim *s, struct platform_machine *m)
{
	return nic_fetch(s, m, &system_of(m)->rx.free, &system_of(m)->rx.cache);
}

static bool rx_dma(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_system *y = system_of(m);
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE_ITEM(s, m, &y->rx.fifo);
		m->sending = m->packet;
		platform_serve(s, m, m->sending->connection);
		TAKE(s, m, &y->rx.cache, 1);
		TAKE(s, m, &y->bus, 1);
		WORK(s, m, dma_packet, platform_bus_ns(y, platform_packet_frame_bytes(m->sending)));
		platform_give(s, m, &y->bus, 1);
		platform_packets_add(&y->rx.landed_packets, m->sending);
		platform_give(s, m, &y->rx.done, 1);
	}
	PLATFORM_END(m);
}

static bool rx_write_back(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_system *y = system_of(m);
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE_SOME(s, m, &y->rx.done, 1, batch(y), NULL);
		m->count = m->taken;
		TAKE(s, m, &y->bus, 1);
		WORK(s, m, write_back, descriptors_ns(y, m->count));
		platform_give(s, m, &y->bus, 1);
		for (; m->count; m->count--)
			platform_give_item(s, m, &y->rx.ring, 1,
				platform_packets_remove(&y->rx.landed_packets));
		raise_interrupt(s, m, y);
	}
	PLATFORM_END(m);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void platform_part_start(struct platform_sim *s, struct platform_system *y,
	struct platform_part *part, const char *name,
	bool (*step)(struct platform_sim *s, struct platform_machine *m))
{
	struct base_str text = {0};
	base_str_addf(&text, "%s %s", y->name, name);
	part->system = y;
	platform_machine_start(s, &part->machine, y->name, base_str_text(&text), 0, step);
	base_str_fini(&text);
}

static void nic_add_queue(struct platform_sim *s, struct platform_system *y,
	struct platform_queue *q, const char *name, double capacity, uint64_t flags)
{
	platform_queue_init(s, q, y->name, name, 0, (uint64_t)capacity, flags);
}

void platform_nic_init(struct platform_sim *s, struct platform_system *y)
{
	const struct platform_system_parameters *p = nic_parameters(y);
	nic_add_queue(s, y, &y->bus, "bus", 1, LONGPOLE_POOL);
	nic_add_queue(s, y, &y->tx.free, "send descriptors", p->tx_descriptors, LONGPOLE_POOL);
	nic_add_queue(s, y, &y->tx.ring, "send ring", p->tx_descriptors, 0);
	nic_add_queue(s, y, &y->tx.cache, "send descriptor cache", p->descriptor_cache, 0);
	nic_add_queue(s, y, &y->tx.fifo, "send fifo", p->tx_fifo_bytes, 0);
	nic_add_queue(s, y, &y->tx.done, "sent", 0, 0);
	nic_add_queue(s, y, &y->tx.clean, "written back", 0, 0);
	nic_add_queue(s, y, &y->tx.pending, "delayed interrupt", 0, 0);
	nic_add_queue(s, y, &y->rx.fifo, "receive fifo", p->rx_fifo_bytes, 0);
	nic_add_queue(s, y, &y->rx.free, "receive descriptors", p->rx_descriptors, LONGPOLE_POOL);
	nic_add_queue(s, y, &y->rx.cache, "receive descriptor cache", p->descriptor_cache, 0);
	nic_add_queue(s, y, &y->rx.done, "landed", 0, 0);
	nic_add_queue(s, y, &y->rx.ring, "receive ring", p->rx_descriptors, 0);
	nic_add_queue(s, y, &y->rx.irq, "interrupt", 0, 0);
	y->tx.fifo.has_items = y->rx.fifo.has_items = y->rx.ring.has_items = true;

	platform_part_start(s, y, &y->tx.fetch, "send fetch", tx_fetch);
	platform_part_start(s, y, &y->tx.dma, "send dma", tx_dma);
	platform_part_start(s, y, &y->tx.line, "line", tx_line);
	platform_part_start(s, y, &y->tx.write_back, "send write back", tx_write_back);
	platform_part_start(s, y, &y->tx.timer, "interrupt timer", tx_timer);
	platform_part_start(s, y, &y->rx.fetch, "receive fetch", rx_fetch);
	platform_part_start(s, y, &y->rx.dma, "receive dma", rx_dma);
	platform_part_start(s, y, &y->rx.write_back, "receive write back", rx_write_back);

	platform_queue_fill(s, &y->bus, &y->tx.fetch.machine, 1);
	platform_queue_fill(s, &y->tx.free, &y->tx.write_back.machine, (uint64_t)p->tx_descriptors);
	platform_queue_fill(s, &y->rx.free, &y->rx.write_back.machine, (uint64_t)p->rx_descriptors);
}
