/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web.c - a web server that serves many connections from few processes with non-blocking system
 * calls (as lighttpd, seed 000 section 6.3), its clients, and its disk.
 */
#include "platform/host.h"

#define LONGPOLE_DISABLE /* for the flags only */
#include "longpole/annotate.h"

/* ---- readiness ------------------------------------------------------------------------------- */

/* Linux says "writable" when a third of the buffer is free (sk_stream_wspace). */
static bool web_is_writable(const struct platform_end *e)
{
	return e->sndbuf.held * 3 <= e->sndbuf.capacity * 2;
}

void platform_web_ready(struct platform_sim *s, struct platform_machine *m, struct platform_end *e)
{
	bool readable = !e->web.response_left && e->web.request_bytes &&
			e->rcvbuf.units >= e->web.request_bytes;
	if (!e->web.ready || e->web.is_ready ||
		!(readable || (e->web.waits_for_space && web_is_writable(e))))
		return;
	struct platform_packet *p = platform_packet_new(s);
	if (!p)
		return;
	p->to = e;
	e->web.is_ready = true;
	e->web.waits_for_space = false;
	platform_give_item(s, m, e->web.ready, 1, p);
}

/* ---- disk ------------------------------------------------------------------------------------ */

static bool disk(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_system *y = ((struct platform_part *)m)->system;
	const struct platform_system_parameters *p = &y->config->p;
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		TAKE(s, m, &y->disk_queue, 1);
		WORK(s, m, disk_access, (uint64_t)(p->disk_access_us * 1000));
		platform_give(s, m, &y->disk_done, 1);
	}
	PLATFORM_END(m);
}

void platform_disk_init(struct platform_sim *s, struct platform_system *y)
{
	if (y->config->p.disk_access_us <= 0)
		return;
	platform_queue_init(s, &y->disk_queue, y->name, "disk queue", 0, 0, 0);
	platform_queue_init(s, &y->disk_done, y->name, "disk done", 0, 0, 0);
	platform_part_start(s, y, &y->disk, "disk", disk);
}

/* ---- server ---------------------------------------------------------------------------------- */

/* Level 1: the file's next bytes, until the socket takes no more. */
static bool send_file(struct platform_sim *s, struct platform_machine *m, struct platform_thread *t)
{
	struct platform_end *e = t->end;
	PLATFORM_BEGIN(m, 1);
	while (e->web.response_left) {
		t->n = platform_smaller(e->web.response_left, platform_net_mss(e));
		if (!platform_has_space(&e->sndbuf, t->n)) {
			e->web.waits_for_space = true;
			break;
		}
		platform_give(s, m, &e->sndbuf, t->n);
		e->web.response_left -= t->n;
		COPY(s, m, e, send_file, t->n);
		CALL(m, platform_net_push(s, m, e, (uint32_t)t->n));
	}
	PLATFORM_END(m);
}

static bool server(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_thread *t = platform_thread_of(m);
	struct platform_system *y = t->app->to;
	struct platform_queue *processors = &y->processors;
	const struct platform_app_parameters *p = &t->app->config->p;
	struct platform_end *e = t->end;
	PLATFORM_BEGIN(m, 0);
	for (;;) {
		if (!m->processor || !platform_try_take_item(s, m, t->ready)) {
			if (m->processor)
				platform_give(s, m, processors, 1);
			TAKE_SOME(s, m, t->ready, 1, PLATFORM_ITEM, processors);
		}
		e = t->end = m->packet->to;
		platform_packet_free(s, m->packet);
		platform_serve(s, m, e->connection);
		WORK(s, m, epoll, platform_cost(s, p->epoll_ns));
		e->web.is_ready = false;
		if (!e->web.response_left) {
			platform_try_take(s, m, &e->rcvbuf, e->web.request_bytes);
			e->read_bytes += m->taken;
			platform_tcp_on_read(&e->tcp, m->taken);
			e->web.response_left = e->web.file_bytes;
			WORK(s, m, parse_request, platform_cost(s, p->parse_ns));
			if (y->config->p.disk_access_us > 0) {
				platform_give(s, m, &y->disk_queue, 1);
				platform_give(s, m, processors, 1);
				TAKE_SOME(s, m, &y->disk_done, 1, 1, processors);
			}
		}
		SYSTEM_CALL(s, m, e);
		CALL(m, send_file(s, m, t));
	}
	PLATFORM_END(m);
}

/* ---- client ---------------------------------------------------------------------------------- */

/* The same files in the same order whatever else happens. */
static uint64_t next_file_bytes(const struct platform_thread *t, uint64_t seed)
{
	const struct platform_app_parameters *p = &t->app->config->p;
	uint64_t x = base_hash_u64(base_hash_u64(seed * 64 + t->end->connection) + t->nr_requests);
	uint64_t range = (uint64_t)(p->file_most_bytes - p->file_least_bytes) + 1;
	return (uint64_t)p->file_least_bytes + x % range;
}

static bool client(struct platform_sim *s, struct platform_machine *m)
{
	struct platform_thread *t = platform_thread_of(m);
	struct platform_end *e = t->end;
	struct platform_queue *processors = &e->system->processors;
	const struct platform_app_parameters *p = &t->app->config->p;
	PLATFORM_BEGIN(m, 0);
	platform_serve(s, m, e->connection);
	while (t->left) {
		if (p->think_us > 0)
			WORK(s, m, think, (uint64_t)(p->think_us * 1000));
		t->call_left = platform_smaller(t->left, next_file_bytes(t, t->chunk));
		t->nr_requests++;
		e->peer->web.file_bytes = t->call_left;
		e->peer->web.request_bytes = (uint64_t)p->request_bytes;
		TAKE(s, m, processors, 1);
		SYSTEM_CALL(s, m, e);
		PUT_THEN(s, m, &e->sndbuf, (uint64_t)p->request_bytes, NULL, processors);
		CALL(m, platform_net_push(s, m, e, (uint32_t)p->request_bytes));
		platform_give(s, m, processors, 1);
		while (t->call_left) {
			TAKE_SOME(s, m, &e->rcvbuf, 1,
				platform_smaller(t->call_left, (uint64_t)p->read_bytes),
				processors);
			t->n = e->just_read = m->taken;
			t->call_left -= t->n;
			t->left -= t->n;
			e->read_bytes += t->n;
			SYSTEM_CALL(s, m, e);
			CALL(m, platform_copy_out(s, m, t));
			if (platform_tcp_on_read(&e->tcp, e->just_read))
				CALL(m, platform_net_send_ack(s, m, e));
			platform_give(s, m, processors, 1);
		}
		t->app->nr_responses[e - t->app->client]++;
	}
	platform_work(s, m, PLATFORM_STATE_idle, 0);
	platform_app_connection_ended(s, t->app, (size_t)(e - t->app->client));
	PLATFORM_END(m);
}

void platform_web_init(struct platform_sim *s, struct platform_app *a)
{
	size_t nr_processes = (size_t)a->config->p.server_processes;
	BASE_ASSERT(nr_processes > 0); /* parameters.def */
	a->ready = platform_sim_alloc(s, nr_processes * sizeof *a->ready);
	if (s->status != BASE_OK)
		return;
	a->nr_ready = nr_processes;
	for (size_t i = 0; i < nr_processes; i++) {
		struct platform_thread *t = &a->thread[i];
		platform_queue_init(s, &a->ready[i], a->to->name, "ready", i, 0, 0);
		a->ready[i].has_items = true;
		t->app = a;
		t->ready = &a->ready[i];
		platform_thread_start(s, t, a->to, "web server", i, server);
	}
	for (size_t i = 0; i < a->nr_connections; i++) {
		struct platform_thread *t = &a->thread[nr_processes + i];
		t->app = a;
		t->end = &a->client[i];
		t->left = (uint64_t)a->config->p.transfer_bytes;
		t->chunk = s->random; /* of the seed, before anybody has drawn */
		a->server[i].web.ready = &a->ready[i % nr_processes];
		platform_thread_start(s, t, a->from, "web client", t->end->connection, client);
	}
}
