/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app.c - applications that stream data with blocking system calls, and the ways of copying what
 * was received to the user: by the processor, or by a copy engine (seed 000 section 6.4).
 */
#include "platform/host.h"

#define LONGPOLE_DISABLE /* for the flags only */
#include "longpole/annotate.h"

/* The scheduler's turn. */
#define YIELD(s, m, e)                                                                             \
	do {                                                                                       \
		if (platform_slice_is_over((s), (m), &(e)->system->processors,                     \
			    (uint64_t)(platform_parameters_at(e)->timeslice_us * 1000))) {         \
			platform_give((s), (m), &(e)->system->processors, 1);                      \
			TAKE((s), (m), &(e)->system->processors, 1);                               \
		}                                                                                  \
	} while (0)

/* ---- the end --------------------------------------------------------------------------------- */

void platform_app_connection_ended(
	struct platform_sim *s, struct platform_app *a, size_t connection)
{
	if (a->end_ns[connection])
		return;
	a->end_ns[connection] = s->now_ns;
	if (++a->nr_ended == a->nr_connections && !--*a->nr_running_apps)
		s->ended = true;
}

/* Has the receiver all that it can still get? */
static void check_datagrams(struct platform_sim *s, struct platform_end *sender)
{
	struct platform_app *a = sender->app;
	uint64_t all = (uint64_t)a->config->p.transfer_bytes;
	if (sender->peer->read_bytes + sender->dropped_bytes >= all)
		platform_app_connection_ended(s, a, (size_t)(sender - a->client));
}

void platform_app_lost(struct platform_sim *s, struct platform_end *sender)
{
	if (sender->is_udp)
		check_datagrams(s, sender);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* A write copies one segment after the other into the socket's buffer and waits there for space. */
static bool tcp_sender(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_thread *t = platform_thread_of(m);
	struct platform_end *e = t->end;
	struct platform_queue *processors = &e->system->processors;
	PLATFORM_BEGIN(m, 0);
	platform_serve(s, m, e->connection);
	TAKE(s, m, processors, 1);
	while (t->left) {
		t->call_left = platform_smaller(t->left, (uint64_t)t->app->config->p.write_bytes);
		SYSTEM_CALL(s, m, e);
		while (t->call_left) {
			t->n = platform_smaller(t->call_left, platform_net_mss(e));
			PUT_THEN(s, m, &e->sndbuf, t->n, NULL, processors);
			t->left -= t->n;
			t->call_left -= t->n;
			COPY(s, m, e, copy_from_user, t->n);
			CALL(m, platform_net_push(s, m, e, (uint32_t)t->n));
			YIELD(s, m, e);
		}
	}
	platform_give(s, m, processors, 1);
	platform_work(s, m, PLATFORM_STATE_idle, 0);
	PLATFORM_END(m);
}

static bool udp_sender(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_thread *t = platform_thread_of(m);
	struct platform_end *e = t->end;
	struct platform_queue *processors = &e->system->processors;
	PLATFORM_BEGIN(m, 0);
	platform_serve(s, m, e->connection);
	TAKE(s, m, processors, 1);
	while (t->left) {
		t->n = platform_smaller(t->left, (uint64_t)t->app->config->p.datagram_bytes);
		SYSTEM_CALL(s, m, e);
		PUT_THEN(s, m, &e->sndbuf, t->n, NULL, processors);
		t->left -= t->n;
		COPY(s, m, e, copy_from_user, t->n);
		CALL(m, platform_net_send_datagram(s, m, e, (uint32_t)t->n));
		YIELD(s, m, e);
	}
	platform_give(s, m, processors, 1);
	platform_work(s, m, PLATFORM_STATE_idle, 0);
	PLATFORM_END(m);
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* Copies of t->n bytes, one for each segment that they came in, are handed to the engine. */
static bool issue_copies(
	struct platform_sim *s, struct platform_machine *m, struct platform_thread *t)
{
	struct platform_end *e = t->end;
	struct platform_system *y = e->system;
	PLATFORM_BEGIN(m, 2);
	while (t->n) {
		t->chunk = platform_smaller(t->n, platform_net_mss(e));
		WORK(s, m, issue_copy,
			platform_cost(s, platform_parameters_at(e)->engine_issue_ns));
		RESERVE(s, m, &y->copy.ring, 1);
		y->copy.bytes[(y->copy.first + y->copy.nr++) %
			      (size_t)platform_parameters_at(e)->engine_descriptors] = t->chunk;
		platform_put_reserved(s, m, &y->copy.ring, 1, NULL);
		t->n -= t->chunk;
		t->copies++;
	}
	PLATFORM_END(m);
}

/* Level 1: t->n received bytes go to the user, or are on their way there. */
bool platform_copy_out(
	struct platform_sim *s, struct platform_machine *m, struct platform_thread *t)
{
	struct platform_end *e = t->end;
	PLATFORM_BEGIN(m, 1);
	if (platform_parameters_at(e)->copy_engine > 0) {
		CALL(m, issue_copies(s, m, t));
	} else {
		COPY(s, m, e, copy_to_user, t->n);
	}
	PLATFORM_END(m);
}

/* Level 1: the processor waits, without giving itself up, for the engine's copies. */
static bool finish_copies(
	struct platform_sim *s, struct platform_machine *m, struct platform_thread *t)
{
	struct platform_end *e = t->end;
	PLATFORM_BEGIN(m, 1);
	if (t->copies) {
		TAKE(s, m, &e->system->copy.done, t->copies);
		t->copies = 0;
		WORK(s, m, finish_copy,
			platform_cost(s, platform_parameters_at(e)->engine_finish_ns));
	}
	PLATFORM_END(m);
}

static bool engine(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_system *y = ((struct platform_part *)m)->system;
	const struct platform_system_parameters *p = &y->config->p;
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE(s, m, &y->copy.ring, 1);
		m->count = y->copy.bytes[y->copy.first];
		y->copy.first = (y->copy.first + 1) % (size_t)p->engine_descriptors;
		y->copy.nr--;
		if (p->copy_engine < 2) { /* both over the I/O bus: read, then write */
			TAKE(s, m, &y->bus, 1);
			WORK(s, m, engine_copy, platform_bus_ns(y, m->count));
			platform_give(s, m, &y->bus, 1);
			TAKE(s, m, &y->bus, 1);
			WORK(s, m, engine_copy, platform_bus_ns(y, m->count));
			platform_give(s, m, &y->bus, 1);
		} else {
			WORK(s, m, engine_copy, 2 * platform_bytes_ns(m->count, p->engine_gbps));
		}
		platform_give(s, m, &y->copy.done, 1);
	}
	PLATFORM_END(m);
}

void platform_engine_init(struct platform_sim *s, struct platform_system *y)
{
	const struct platform_system_parameters *p = &y->config->p;
	size_t nr = (size_t)p->engine_descriptors;
	if (p->copy_engine < 1)
		return;
	y->copy.bytes = platform_sim_alloc(s, nr * sizeof *y->copy.bytes);
	if (!y->copy.bytes)
		return;
	platform_queue_init(s, &y->copy.ring, y->name, "copy ring", 0, nr, 0);
	platform_queue_init(s, &y->copy.done, y->name, "copies done", 0, 0, 0);
	platform_part_start(s, y, &y->copy.engine, "copy engine", engine);
}

/* A read takes what there is, up to its size; with read_all it takes until it has that. */
static bool receiver(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_thread *t = platform_thread_of(m);
	struct platform_end *e = t->end;
	struct platform_queue *processors = &e->system->processors;
	const struct platform_app_parameters *p = &t->app->config->p;
	PLATFORM_BEGIN(m, 0);
	platform_serve(s, m, e->connection);
	while (t->left) {
		t->call_left = platform_smaller(t->left, (uint64_t)p->read_bytes);
		t->got = 0;
		do {
			t->n = e->is_udp ? PLATFORM_ITEM : t->call_left - t->got;
			if (!m->processor || !platform_try_take(s, m, &e->rcvbuf, t->n)) {
				if (m->processor)
					platform_give(s, m, processors, 1);
				TAKE_SOME(s, m, &e->rcvbuf, 1, t->n, processors);
			}
			t->n = m->taken;
			if (!t->got)
				SYSTEM_CALL(s, m, e);
			t->got += t->n;
			t->left -= platform_smaller(t->left, t->n);
			e->read_bytes += t->n;
			t->chunk = t->n;
			e->just_read = t->n;
			CALL(m, platform_copy_out(s, m, t));
			if (!e->is_udp && platform_tcp_on_read(&e->tcp, e->just_read))
				CALL(m, platform_net_send_ack(s, m, e));
			YIELD(s, m, e);
		} while (p->read_all > 0 && t->got < t->call_left);
		CALL(m, finish_copies(s, m, t));
		if (e->is_udp)
			check_datagrams(s, e->peer);
	}
	if (m->processor)
		platform_give(s, m, processors, 1);
	platform_work(s, m, PLATFORM_STATE_idle, 0);
	if (!e->is_udp)
		platform_app_connection_ended(s, t->app, (size_t)(e - t->app->server));
	PLATFORM_END(m);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void platform_thread_start(struct platform_sim *s, struct platform_thread *t,
	const struct platform_system *y, const char *what, uint64_t instance,
	bool (*step)(struct platform_sim *s, struct platform_machine *m))
{
	struct base_str text = {0};
	base_str_addf(&text, "%s %s", y->name, what);
	platform_machine_start(s, &t->machine, y->name, base_str_text(&text), instance, step);
	base_str_fini(&text);
}

static void app_start(struct platform_sim *s, struct platform_thread *t, struct platform_app *a,
	struct platform_end *e, const char *what,
	bool (*step)(struct platform_sim *s, struct platform_machine *m))
{
	t->app = a;
	t->end = e;
	t->left = (uint64_t)a->config->p.transfer_bytes;
	platform_thread_start(s, t, e->system, what, e->connection, step);
}

void platform_app_init(struct platform_sim *s, struct platform_app *a, uint64_t first_connection)
{
	size_t nr = (size_t)a->config->p.connections;
	bool is_udp = a->config->kind == PLATFORM_APP_udp_stream;
	bool is_web = a->config->kind == PLATFORM_APP_web;
	a->nr_connections = nr;
	a->nr_threads = nr + (is_web ? (size_t)a->config->p.server_processes : nr);
	a->client = platform_sim_alloc(s, nr * sizeof *a->client);
	a->server = platform_sim_alloc(s, nr * sizeof *a->server);
	a->nr_responses = platform_sim_alloc(s, nr * sizeof *a->nr_responses);
	a->end_ns = platform_sim_alloc(s, nr * sizeof *a->end_ns);
	a->thread = platform_sim_alloc(s, a->nr_threads * sizeof *a->thread);
	if (s->status != BASE_OK)
		return;
	for (size_t i = 0; i < nr; i++) {
		a->client[i].system = a->from;
		a->server[i].system = a->to;
		a->client[i].app = a->server[i].app = a;
		platform_net_connect(s, &a->client[i], &a->server[i], first_connection + i, is_udp);
	}
	if (is_web) {
		platform_web_init(s, a);
		return;
	}
	for (size_t i = 0; i < nr; i++) {
		app_start(s, &a->thread[2 * i], a, &a->client[i], "sender",
			is_udp ? udp_sender : tcp_sender);
		app_start(s, &a->thread[2 * i + 1], a, &a->server[i], "receiver", receiver);
	}
}
