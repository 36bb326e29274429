/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.c - the kernel's network stack. It works in three places: in the system calls of
 * applications, in the interrupt machine (which polls like Linux's NAPI), and, for what a window
 * held back, in an output machine of each connection.
 */
#include "platform/host.h"

#define LONGPOLE_DISABLE /* for the flags only */
#include "longpole/annotate.h"

static const struct platform_system_parameters *net_parameters(const struct platform_system *y)
{
	return &y->config->p;
}

uint32_t platform_net_mss(const struct platform_end *e)
{
	return (uint32_t)net_parameters(e->system)->mtu_bytes - PLATFORM_IP_HEADER -
	       PLATFORM_TCP_HEADER;
}

/* ---- working in interrupts ------------------------------------------------------------------- */

static void begin_interrupt(
	struct platform_sim *s, struct platform_machine *m, struct platform_system *y)
{
	platform_interrupt(s, y->irq_processor, m);
}

static void end_interrupt(
	struct platform_sim *s, struct platform_machine *m, struct platform_system *y)
{
	platform_give(s, m, &y->softirq, 1);
	platform_interrupt_end(s, y->irq_processor);
}

/* ---- sending, from any context: m->sending is the packet ------------------------------------- */

/* From a connection's first loss on. */
static void arm_timer(struct platform_sim *s, struct platform_machine *m, struct platform_end *e)
{
	if (!e->has_lost || e->resend_timer_runs)
		return;
	e->resend_timer_runs = true;
	platform_give(s, m, &e->resend_later, 1);
}

/* The sender of the data hears of a lost segment or acknowledgement when its timer is over, at the
 * latest. */
static void lose_segment(
	struct platform_sim *s, struct platform_machine *m, struct platform_packet *p)
{
	struct platform_end *sender = p->payload_bytes ? p->from : p->to;
	p->from->has_lost = p->to->has_lost = true;
	platform_put_item(s, m, &sender->lost, ++sender->nr_lost);
	arm_timer(s, m, sender);
}

void platform_net_lose(struct platform_sim *s, struct platform_machine *m,
	struct platform_system *at, struct platform_packet *p)
{
	struct platform_end *e = p->from;
	at->dropped_packets++;
	if (p->charged_bytes && at == e->system)
		platform_try_take(s, m, &e->sndbuf, p->charged_bytes);
	if (e->is_udp) {
		e->packet_bytes -= p->payload_bytes;
		e->dropped_bytes += p->payload_bytes;
		platform_app_lost(s, e);
	} else {
		lose_segment(s, m, p);
	}
	platform_packet_free(s, p);
}

/* Level 5: a descriptor, which it owns already, is written and the card told. */
static bool net_hand_over(
	struct platform_sim *s, struct platform_machine *m, struct platform_system *y)
{
	PLATFORM_BEGIN(m, 5);
	WORK(s, m, driver_send, platform_cost(s, net_parameters(y)->driver_send_ns));
	platform_packets_add(&y->tx.ring_packets, m->sending);
	platform_give(s, m, &y->tx.ring, 1);
	PLATFORM_END(m);
}

/* Level 4: to the card, or, when it has no descriptor or others are waiting for one, behind them.
 * Only the driver takes from the device queue: any other taker of what others had put would have to
 * find the same again whenever the run is replayed. */
static bool transmit(struct platform_sim *s, struct platform_machine *m, struct platform_system *y)
{
	PLATFORM_BEGIN(m, 4);
	WORK(s, m, ip_send, platform_cost(s, net_parameters(y)->ip_send_ns));
	if (!y->qdisc.held && !y->driver_busy && platform_try_take(s, m, &y->tx.free, 1)) {
		CALL(m, net_hand_over(s, m, y));
	} else if (platform_has_space(&y->qdisc, 1)) {
		platform_give_item(s, m, &y->qdisc, 1, m->sending);
	} else {
		y->qdisc.nr_dropped++;
		platform_net_lose(s, m, y, m->sending);
	}
	PLATFORM_END(m);
}

/* What found no descriptor, as soon as one is free: in an interrupt, like the cleaning. */
static bool driver(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_system *y = ((struct platform_part *)m)->system;
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE_ITEM(s, m, &y->qdisc);
		m->sending = m->packet;
		y->driver_busy = true;
		if (y->tx.clean.units)
			platform_nic_delay_interrupt(s, m, y);
		TAKE_SOME(s, m, &y->tx.free, 1, 1, &y->softirq);
		begin_interrupt(s, m, y);
		for (;;) {
			platform_serve(s, m, m->sending->connection);
			CALL(m, net_hand_over(s, m, y));
			if (!y->tx.free.units || !platform_try_take_item(s, m, &y->qdisc))
				break;
			m->sending = m->packet;
			platform_try_take(s, m, &y->tx.free, 1);
		}
		y->driver_busy = false;
		end_interrupt(s, m, y);
	}
	PLATFORM_END(m);
}

static struct platform_packet *new_segment(
	struct platform_sim *s, struct platform_end *e, uint32_t n)
{
	struct platform_packet *p = platform_packet_new(s);
	if (!p)
		return NULL;
	p->from = e;
	p->to = e->peer;
	p->connection = e->connection;
	p->payload_bytes = n;
	p->ip_bytes = n + PLATFORM_IP_HEADER + PLATFORM_TCP_HEADER;
	return p;
}

/* Level 3. Its sequence number is that of when it was decided on. */
static bool send_segment(
	struct platform_sim *s, struct platform_machine *m, struct platform_end *e, uint32_t n)
{
	PLATFORM_BEGIN(m, 3);
	m->sending = new_segment(s, e, n);
	if (!m->sending)
		return false;
	m->sending->seq = platform_tcp_send(&e->tcp, n, s->now_ns);
	e->in_hand_bytes -= n;
	arm_timer(s, m, e);
	WORK(s, m, tcp_send, platform_cost(s, net_parameters(e->system)->tcp_send_ns));
	platform_tcp_on_sent_ack(&e->tcp, &m->sending->ack, &m->sending->edge);
	CALL(m, transmit(s, m, e->system));
	PLATFORM_END(m);
}

bool platform_net_send_ack(
	struct platform_sim *s, struct platform_machine *m, struct platform_end *e)
{
	PLATFORM_BEGIN(m, 3);
	m->sending = new_segment(s, e, 0);
	if (!m->sending)
		return false;
	platform_tcp_on_sent_ack(&e->tcp, &m->sending->ack, &m->sending->edge);
	if (e->owes_ack)
		platform_take_item(s, m, &e->ack_owed, e->nr_owed);
	e->owes_ack = false;
	WORK(s, m, tcp_send_ack, platform_cost(s, net_parameters(e->system)->tcp_send_ack_ns));
	CALL(m, transmit(s, m, e->system));
	PLATFORM_END(m);
}

bool platform_net_push(
	struct platform_sim *s, struct platform_machine *m, struct platform_end *e, uint32_t n)
{
	PLATFORM_BEGIN(m, 2);
	e->written_bytes += n;
	if (e->unsent.held || e->output_busy || e->window.units < n) {
		platform_give(s, m, &e->unsent, n);
		return true;
	}
	platform_try_take(s, m, &e->window, n);
	e->in_hand_bytes += n;
	CALL(m, send_segment(s, m, e, n));
	PLATFORM_END(m);
}

/* What the window held back, as soon as it opens: in an interrupt, like the acknowledgement. */
static bool output(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_end *e =
		(struct platform_end *)((char *)m - offsetof(struct platform_end, output));
	uint32_t mss = platform_net_mss(e);
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE_SOME(s, m, &e->unsent, 1, mss, NULL);
		m->count = m->taken;
		e->in_hand_bytes += m->count;
		e->output_busy = true;
		TAKE_SOME(s, m, &e->window, m->count, m->count, &e->system->softirq);
		platform_serve(s, m, e->connection);
		begin_interrupt(s, m, e->system);
		for (;;) {
			CALL(m, send_segment(s, m, e, (uint32_t)m->count));
			m->count = e->unsent.units < mss ? e->unsent.units : mss;
			if (!m->count || e->window.units < m->count)
				break;
			platform_try_take(s, m, &e->unsent, m->count);
			e->in_hand_bytes += m->count;
			platform_try_take(s, m, &e->window, m->count);
		}
		e->output_busy = false;
		end_interrupt(s, m, e->system);
	}
	PLATFORM_END(m);
}

/* ---- datagrams ------------------------------------------------------------------------------- */

static struct platform_packet *fragment(
	struct platform_sim *s, struct platform_end *e, uint32_t datagram_bytes, uint32_t i)
{
	uint32_t data = datagram_bytes + PLATFORM_UDP_HEADER;
	uint32_t mtu = (uint32_t)net_parameters(e->system)->mtu_bytes;
	struct platform_packet *p = platform_packet_new(s);
	if (!p)
		return NULL;
	p->from = e;
	p->to = e->peer;
	p->connection = e->connection;
	p->payload_bytes = platform_ip_fragment_data(data, mtu, i);
	p->ip_bytes = p->payload_bytes + PLATFORM_IP_HEADER;
	if (!i)
		p->payload_bytes -= PLATFORM_UDP_HEADER;
	p->charged_bytes = p->payload_bytes;
	p->seq = e->written_bytes; /* which datagram; the next one's is larger */
	p->ack = datagram_bytes;
	p->is_last_fragment = i + 1 == platform_ip_nr_fragments(data, mtu);
	e->in_hand_bytes -= p->payload_bytes;
	e->packet_bytes += p->payload_bytes;
	return p;
}

static uint32_t fragments_of(const struct platform_end *e, uint32_t n)
{
	return platform_ip_nr_fragments(
		n + PLATFORM_UDP_HEADER, (uint32_t)net_parameters(e->system)->mtu_bytes);
}

bool platform_net_send_datagram(
	struct platform_sim *s, struct platform_machine *m, struct platform_end *e, uint32_t n)
{
	const struct platform_system_parameters *p = net_parameters(e->system);
	uint32_t nr = fragments_of(e, n);
	PLATFORM_BEGIN(m, 2);
	e->written_bytes += n;
	e->in_hand_bytes += n;
	WORK(s, m, udp_send, platform_cost(s, p->udp_send_ns));
	if (p->netfilter_defrag < 1 && p->netfilter_ns > 0)
		WORK(s, m, netfilter, platform_cost(s, p->netfilter_ns));
	for (m->count = 0; nr > 1 && m->count < nr; m->count++)
		WORK(s, m, ip_fragment, platform_cost(s, p->ip_fragment_ns));
	/* The error of Linux before 2.6.16: the filter wants whole packets and comes after
	 * fragmentation (seed 000 section 6.2.1). */
	if (p->netfilter_defrag > 0 && nr > 1) {
		for (m->count = 0; m->count < nr; m->count++)
			WORK(s, m, ip_defragment, platform_cost(s, p->ip_defragment_ns));
		WORK(s, m, netfilter, platform_cost(s, p->netfilter_ns));
		for (m->count = 0; m->count < nr; m->count++)
			WORK(s, m, ip_fragment, platform_cost(s, p->ip_fragment_ns));
	}
	for (m->count = 0; m->count < nr; m->count++) {
		m->sending = fragment(s, e, n, (uint32_t)m->count);
		if (!m->sending)
			return false;
		CALL(m, transmit(s, m, e->system));
	}
	PLATFORM_END(m);
}

/* What has come of a datagram that will never be whole. */
void platform_net_discard(struct platform_sim *s, struct platform_end *e)
{
	struct platform_end *from = e->peer;
	from->packet_bytes -= e->assembled_bytes;
	from->dropped_bytes += e->assembled_bytes;
	e->assembled_bytes = 0;
	e->system->dropped_packets++;
	platform_app_lost(s, from);
}

/* Level 2: a fragment has come; the link keeps the order. */
static bool receive_datagram(
	struct platform_sim *s, struct platform_machine *m, struct platform_packet *p)
{
	struct platform_end *e = p->to;
	PLATFORM_BEGIN(m, 2);
	if (!p->is_last_fragment || p->ip_bytes < p->ack)
		WORK(s, m, ip_defragment,
			platform_cost(s, net_parameters(e->system)->ip_defragment_ns));
	if (e->assembled_bytes && e->assembling != p->seq)
		platform_net_discard(s, e);
	e->assembling = p->seq;
	e->assembled_bytes += p->payload_bytes;
	if (p->is_last_fragment && e->assembled_bytes != p->ack)
		platform_net_discard(s, e);
	if (!p->is_last_fragment || !e->assembled_bytes)
		return m->at[2] = 0, true;
	WORK(s, m, udp_receive, platform_cost(s, net_parameters(e->system)->udp_receive_ns));
	p->from->packet_bytes -= e->assembled_bytes;
	if (platform_has_space(&e->rcvbuf, e->assembled_bytes)) {
		platform_give_item(s, m, &e->rcvbuf, e->assembled_bytes, NULL);
	} else {
		e->rcvbuf.nr_dropped++;
		e->system->dropped_packets++;
		p->from->dropped_bytes += e->assembled_bytes;
		platform_app_lost(s, p->from);
	}
	e->assembled_bytes = 0;
	PLATFORM_END(m);
}

/* ---- receiving TCP --------------------------------------------------------------------------- */

/* The window that the peer and the network allow now. */
static void update_window(
	struct platform_sim *s, struct platform_machine *m, struct platform_end *e)
{
	uint64_t back = platform_tcp_take_back_credit(&e->tcp, e->window.units), credit;
	if (back)
		platform_queue_shrink(s, m, &e->window, back);
	credit = platform_tcp_new_credit(&e->tcp);
	if (credit)
		platform_give(s, m, &e->window, credit);
}

static void on_ack(struct platform_sim *s, struct platform_machine *m, struct platform_end *e,
	const struct platform_packet *p)
{
	uint64_t acked =
		platform_tcp_on_ack(&e->tcp, p->ack, p->edge, p->payload_bytes != 0, s->now_ns);
	if (acked)
		platform_try_take(s, m, &e->sndbuf, acked);
	update_window(s, m, e);
	arm_timer(s, m, e);
	if (acked && e->web.waits_for_space)
		platform_web_ready(s, m, e);
}

/* ---- sending again --------------------------------------------------------------------------- */

/* Level 3. */
static bool send_again(
	struct platform_sim *s, struct platform_machine *m, struct platform_end *e, uint32_t n)
{
	PLATFORM_BEGIN(m, 3);
	m->sending = new_segment(s, e, n);
	if (!m->sending)
		return false;
	m->sending->seq = e->resend_seq;
	e->system->resent_packets++;
	WORK(s, m, tcp_send_again, platform_cost(s, net_parameters(e->system)->tcp_send_ns));
	platform_tcp_on_sent_ack(&e->tcp, &m->sending->ack, &m->sending->edge);
	CALL(m, transmit(s, m, e->system));
	PLATFORM_END(m);
}

/* Level 2: what recovery says, as far as the window reaches. */
static bool send_lost(struct platform_sim *s, struct platform_machine *m, struct platform_end *e)
{
	PLATFORM_BEGIN(m, 2);
	while (platform_tcp_resends(&e->tcp)) {
		m->count = platform_tcp_resend(&e->tcp, &e->resend_seq);
		CALL(m, send_again(s, m, e, (uint32_t)m->count));
	}
	PLATFORM_END(m);
}

/* Level 3: may more be sent now? (The answer to the last question was lost.) */
static bool send_probe(struct platform_sim *s, struct platform_machine *m, struct platform_end *e)
{
	PLATFORM_BEGIN(m, 3);
	m->sending = new_segment(s, e, 0);
	if (!m->sending)
		return false;
	m->sending->is_probe = true;
	WORK(s, m, tcp_send_again, platform_cost(s, net_parameters(e->system)->tcp_send_ack_ns));
	platform_tcp_on_sent_ack(&e->tcp, &m->sending->ack, &m->sending->edge);
	CALL(m, transmit(s, m, e->system));
	PLATFORM_END(m);
}

static bool is_under_way(const struct platform_end *e)
{
	return e->tcp.una < e->tcp.next;
}

static bool is_shut_out(const struct platform_end *e)
{
	return !is_under_way(e) && (e->unsent.held || e->output_busy);
}

static void time_out(struct platform_sim *s, struct platform_machine *m, struct platform_end *e)
{
	enum { TIMEOUTS_MAX = 15 }; /* Linux's tcp_retries2 */
	if (e->tcp.nr_timeouts >= TIMEOUTS_MAX)
		platform_sim_fail(s,
			base_fail(s->err, BASE_ERR_USAGE,
				"connection %llu gives up: %d timeouts in a row; make loss_percent "
				"smaller, or rx_fifo_bytes and qdisc_packets larger",
				(unsigned long long)e->connection, TIMEOUTS_MAX));
	/* (the last one first: it is what the timer ran from) */
	for (uint64_t key = e->nr_lost; key > e->nr_lost_heard_of; key--)
		platform_take_item(s, m, &e->lost, key);
	e->nr_lost_heard_of = e->nr_lost;
	if (is_under_way(e))
		platform_tcp_on_timeout(&e->tcp, s->now_ns);
	else
		platform_tcp_on_probe(&e->tcp, s->now_ns);
}

/* Like the timer of acknowledgements: that it runs on is the simulator's own matter. */
static bool resend_timer(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_end *e =
		(struct platform_end *)((char *)m - offsetof(struct platform_end, resend_timer));
	PLATFORM_BEGIN(m, 0);
	platform_wait_for_item(s, m, &e->lost);
	for (;;) {
		TAKE_LATE(s, m, &e->resend_later, 1, e->tcp.deadline_ns);
		e->resend_timer_runs = false;
		if (!is_under_way(e) && !is_shut_out(e))
			continue;
		if (e->tcp.deadline_ns > s->now_ns) {
			arm_timer(s, m, e);
			continue;
		}
		platform_serve(s, m, e->connection);
		time_out(s, m, e);
		TAKE(s, m, &e->system->softirq, 1);
		begin_interrupt(s, m, e->system);
		update_window(s, m, e);
		if (is_under_way(e))
			CALL(m, send_lost(s, m, e));
		else
			CALL(m, send_probe(s, m, e));
		end_interrupt(s, m, e->system);
		arm_timer(s, m, e);
		platform_wait_for_item(s, m, &e->lost);
	}
	PLATFORM_END(m);
}

/* ---- acknowledging --------------------------------------------------------------------------- */

static uint64_t latest_ack_ns(const struct platform_end *e)
{
	return e->unacked_since_ns + (uint64_t)(net_parameters(e->system)->delayed_ack_ms * 1e6);
}

static void rearm(struct platform_sim *s, struct platform_machine *m, struct platform_end *e)
{
	e->timer_runs = true;
	platform_give(s, m, &e->ack_later, 1);
}

/* Level 1 of the interrupt machine. */
static bool receive_segment(
	struct platform_sim *s, struct platform_machine *m, struct platform_packet *p)
{
	struct platform_end *e = p->to;
	enum platform_tcp_ack ack;
	uint64_t fresh;
	PLATFORM_BEGIN(m, 1);
	if (!p->payload_bytes) {
		WORK(s, m, tcp_ack, platform_cost(s, net_parameters(e->system)->tcp_ack_ns));
		on_ack(s, m, e, p);
		CALL(m, send_lost(s, m, e));
		if (p->is_probe)
			CALL(m, platform_net_send_ack(s, m, e));
		return m->at[1] = 0, true;
	}
	WORK(s, m, tcp_receive, platform_cost(s, net_parameters(e->system)->tcp_receive_ns));
	on_ack(s, m, e, p);
	CALL(m, send_lost(s, m, e));
	ack = platform_tcp_on_data(&e->tcp, p->seq, p->payload_bytes, &fresh);
	if (fresh)
		platform_give(s, m, &e->rcvbuf, fresh);
	if (fresh && e->web.ready)
		platform_web_ready(s, m, e);
	if (ack == PLATFORM_TCP_ACK_NOW) {
		CALL(m, platform_net_send_ack(s, m, e));
	} else if (ack == PLATFORM_TCP_ACK_LATER) {
		if (e->tcp.unacked_segments == 1) {
			e->unacked_since_ns = s->now_ns;
			e->owes_ack = true;
			platform_put_item(s, m, &e->ack_owed, ++e->nr_owed);
		}
		if (!e->timer_runs)
			rearm(s, m, e);
	}
	PLATFORM_END(m);
}

/*
 * The latest moment for an acknowledgement. That the timer runs on and finds nothing owed is the
 * simulator's own matter: written down, it would be a chain of delays as long as the run.
 */
static bool ack_timer(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_end *e =
		(struct platform_end *)((char *)m - offsetof(struct platform_end, ack_timer));
	PLATFORM_BEGIN(m, 0);
	platform_wait_for_item(s, m, &e->ack_owed);
	for (;;) {
		TAKE_LATE(s, m, &e->ack_later, 1, latest_ack_ns(e));
		e->timer_runs = false;
		if (!e->tcp.unacked_segments)
			continue;
		if (latest_ack_ns(e) > s->now_ns) {
			rearm(s, m, e);
			continue;
		}
		platform_serve(s, m, e->connection);
		platform_take_item(s, m, &e->ack_owed, e->nr_owed);
		e->owes_ack = false;
		TAKE(s, m, &e->system->softirq, 1);
		begin_interrupt(s, m, e->system);
		CALL(m, platform_net_send_ack(s, m, e));
		end_interrupt(s, m, e->system);
		platform_wait_for_item(s, m, &e->ack_owed);
	}
	PLATFORM_END(m);
}

/* ---- the interrupt --------------------------------------------------------------------------- */

/* Level 1: descriptors that the card has written back. */
static bool net_clean(struct platform_sim *s, struct platform_machine *m, struct platform_system *y)
{
	PLATFORM_BEGIN(m, 1);
	if (y->tx.clean.units) {
		m->count = platform_try_take(s, m, &y->tx.clean, y->tx.clean.units);
		WORK(s, m, driver_clean,
			platform_cost(s, net_parameters(y)->driver_clean_ns * (double)m->count));
		platform_give(s, m, &y->tx.free, m->count);
		for (; m->count; m->count--) {
			struct platform_packet *p = platform_packets_remove(&y->tx.done_packets);
			y->tx.nr_charged -= p->charged_bytes != 0;
			if (p->charged_bytes)
				platform_try_take(s, m, &p->from->sndbuf, p->charged_bytes);
			platform_packet_free(s, p);
		}
	}
	PLATFORM_END(m);
}

static bool interrupt(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_system *y = ((struct platform_part *)m)->system;
	const struct platform_system_parameters *p = net_parameters(y);
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE_LATE(s, m, &y->rx.irq, 1, y->rx.next_irq_ns);
		TAKE(s, m, &y->softirq, 1);
		y->rx.next_irq_ns = s->now_ns + (uint64_t)(p->irq_moderation_us * 1000);
		y->rx.polling = true;
		y->rx.irq_raised = false;
		begin_interrupt(s, m, y);
		WORK(s, m, irq_handler, platform_cost(s, p->irq_handler_ns));
		do {
			CALL(m, net_clean(s, m, y));
			for (y->rx.nr_polled = 0; y->rx.nr_polled < (uint64_t)p->poll_packets;
				y->rx.nr_polled++) {
				if (!platform_try_take_item(s, m, &y->rx.ring))
					break;
				y->rx.received = m->packet;
				platform_serve(s, m, y->rx.received->connection);
				WORK(s, m, driver_receive, platform_cost(s, p->driver_receive_ns));
				platform_give(s, m, &y->rx.free, 1);
				WORK(s, m, ip_receive, platform_cost(s, p->ip_receive_ns));
				if (y->rx.received->to->is_udp)
					CALL(m, receive_datagram(s, m, y->rx.received));
				else
					CALL(m, receive_segment(s, m, y->rx.received));
				platform_packet_free(s, y->rx.received);
			}
		} while (y->tx.clean.units || y->rx.ring.units);
		y->rx.polling = false;
		end_interrupt(s, m, y);
	}
	PLATFORM_END(m);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void platform_net_init(struct platform_sim *s, struct platform_system *y)
{
	const struct platform_system_parameters *p = net_parameters(y);
	unsigned nr = (unsigned)p->processors, irq = (unsigned)p->irq_processor;
	struct platform_processor *processor = platform_sim_alloc(s, (nr + 1) * sizeof *processor);
	if (!processor)
		return;
	platform_queue_init(s, &y->processors, y->name, "processor", 0, nr, LONGPOLE_POOL);
	y->processors.processor = processor;
	y->processors.nr_processors = nr;
	for (unsigned i = 0; i < nr; i++)
		processor[i].pool = &y->processors;
	y->irq_processor = &processor[irq < nr ? irq : nr];
	platform_queue_init(s, &y->softirq, y->name, "softirq", 0, 1, LONGPOLE_POOL);
	platform_queue_init(
		s, &y->qdisc, y->name, "device queue", 0, (uint64_t)p->qdisc_packets, 0);
	y->qdisc.has_items = true;
	platform_part_start(s, y, &y->interrupt, "interrupt", interrupt);
	platform_part_start(s, y, &y->driver, "driver", driver);
	platform_queue_fill(s, &y->processors, &y->interrupt.machine, nr);
	platform_queue_fill(s, &y->softirq, &y->interrupt.machine, 1);
}

static void open_end(struct platform_sim *s, struct platform_end *e)
{
	struct platform_system *y = e->system;
	const struct platform_system_parameters *p = net_parameters(y);
	uint64_t c = e->connection;
	platform_queue_init(s, &e->sndbuf, y->name, "sndbuf", c, (uint64_t)p->sndbuf_bytes, 0);
	platform_queue_init(s, &e->rcvbuf, y->name, "rcvbuf", c, (uint64_t)p->rcvbuf_bytes, 0);
	if (e->is_udp) {
		e->rcvbuf.has_items = true;
		return;
	}
	platform_queue_init(s, &e->unsent, y->name, "unsent", c, 0, 0);
	platform_queue_init(s, &e->window, y->name, "tcp window", c, 0, LONGPOLE_ANONYMOUS);
	platform_queue_init(s, &e->ack_owed, y->name, "delayed ack", c, 0, 0);
	platform_queue_init(s, &e->lost, y->name, "lost segments", c, 0, 0);
	e->ack_later = e->resend_later = (struct platform_queue){.is_silent = true};
	struct base_str text = {0};
	base_str_addf(&text, "%s tcp output", y->name);
	platform_machine_start(s, &e->output, y->name, base_str_text(&text), c, output);
	base_str_reset(&text);
	base_str_addf(&text, "%s tcp timer", y->name);
	platform_machine_start(s, &e->ack_timer, y->name, base_str_text(&text), c, ack_timer);
	base_str_reset(&text);
	base_str_addf(&text, "%s tcp resend timer", y->name);
	platform_machine_start(s, &e->resend_timer, y->name, base_str_text(&text), c, resend_timer);
	base_str_fini(&text);
	platform_tcp_init(
		&e->tcp, &(struct platform_tcp_options){
				 .mss_bytes = platform_net_mss(e),
				 .initial_window_segments = (uint32_t)p->initial_window_segments,
				 .abc_limit_segments = (uint32_t)p->abc_limit_segments,
				 .ack_every_segments = (uint32_t)p->ack_every_segments,
				 .validates_window = p->cwnd_validation > 0,
				 .ssthresh_bytes = (uint64_t)p->ssthresh_bytes,
				 .receive_buffer_bytes = (uint64_t)p->rcvbuf_bytes,
				 .peer_window_bytes =
					 (uint64_t)net_parameters(e->peer->system)->rcvbuf_bytes,
				 .least_timeout_ns = (uint64_t)(p->least_timeout_ms * 1e6),
			 });
	platform_queue_fill(s, &e->window, &e->output, platform_tcp_new_credit(&e->tcp));
}

void platform_net_connect(struct platform_sim *s, struct platform_end *a, struct platform_end *b,
	uint64_t connection, bool is_udp)
{
	a->peer = b;
	b->peer = a;
	a->connection = b->connection = connection;
	a->is_udp = b->is_udp = is_udp;
	open_end(s, a);
	open_end(s, b);
}
