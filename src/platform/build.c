/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - from a configuration to machines and queues; the run; results, and whether bytes were
 * conserved. */
#include "platform/host.h"

#include <string.h>

enum { MEMORY_LIMIT_BYTES = 1 << 30 };

struct platform {
	struct platform_sim sim;
	struct platform_system *system; /* two */
	struct platform_app *app;
	size_t nr_apps, nr_running_apps;
	const struct platform_config *config;
};

static struct platform_system *find_system(struct platform *p, const char *name)
{
	return &p->system[!strcmp(p->system[0].name, name) ? 0 : 1];
}

static void build_systems(struct platform *p)
{
	const struct platform_config *c = p->config;
	struct platform_sim *s = &p->sim;
	for (size_t i = 0; i < 2; i++) {
		struct platform_system *y = &p->system[i];
		y->config = &c->system[i];
		y->name = c->system[i].name;
		y->link = &c->link[0];
		y->peer = &p->system[1 - i];
		platform_nic_init(s, y);
		platform_net_init(s, y);
		platform_engine_init(s, y);
		platform_disk_init(s, y);
		platform_link_init(s, y, (uint64_t)c->link[0].p.packets_in_flight);
	}
}

static void build_apps(struct platform *p)
{
	uint64_t connection = 1;
	for (size_t i = 0; i < p->nr_apps && p->sim.status == BASE_OK; i++) {
		struct platform_app *a = &p->app[i];
		a->config = &p->config->app[i];
		a->from = find_system(p, a->config->from);
		a->to = find_system(p, a->config->to);
		a->nr_running_apps = &p->nr_running_apps;
		p->nr_running_apps++;
		platform_app_init(&p->sim, a, connection);
		connection += a->nr_connections;
	}
}

static void define_states(struct platform_sim *s)
{
	static const char *const text[] = {
#define STATE(name, text) text,
#include "platform/states.def"
	};
	for (size_t i = 0; i < BASE_COUNT(text); i++)
		s->state_id[i] = longpole_writer_new_state(s->note.writer, text[i]);
}

/* What must fit, or nothing would ever move. */
static enum base_status check_sizes(const struct platform_config *c, struct base_err *err)
{
	for (size_t i = 0; i < c->nr_apps; i++) {
		const struct platform_app_config *a = &c->app[i];
		for (size_t k = 0; k < c->nr_systems; k++) {
			const struct platform_system_config *y = &c->system[k];
			double most = a->kind == PLATFORM_APP_udp_stream ? a->p.datagram_bytes
				      : a->kind == PLATFORM_APP_web
					      ? 3 * y->p.mtu_bytes + a->p.request_bytes
					      : y->p.mtu_bytes;
			if (y->p.sndbuf_bytes < most || y->p.rcvbuf_bytes < 2 * most)
				return base_fail(err, BASE_ERR_USAGE,
					"[system %s]: sndbuf_bytes must be %g and rcvbuf_bytes %g "
					"at least for [app %s]",
					y->name, most, 2 * most, a->name);
			if (y->p.tx_fifo_bytes < y->p.mtu_bytes + 14 ||
				y->p.rx_fifo_bytes < y->p.mtu_bytes + 14)
				return base_fail(err, BASE_ERR_USAGE,
					"[system %s]: tx_fifo_bytes and rx_fifo_bytes must hold "
					"a whole packet of mtu_bytes",
					y->name);
			if (a->kind == PLATFORM_APP_web && a->p.request_bytes > y->p.mtu_bytes - 40)
				return base_fail(err, BASE_ERR_USAGE,
					"[app %s]: request_bytes must fit into one segment",
					a->name);
		}
	}
	return BASE_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Of the direction in which e sends. */
static uint64_t inside(const struct platform_end *e)
{
	/* (TCP: what was sent and has not come in order, on its way or lost) */
	uint64_t sent = e->is_udp ? e->packet_bytes : e->tcp.next - e->peer->tcp.received;
	return e->in_hand_bytes + e->unsent.held + sent + e->peer->rcvbuf.held;
}

/* e sends, its peer receives; nothing may come from nowhere or be forgotten. */
static void check_conservation(const struct platform_end *e)
{
	BASE_ASSERT(e->written_bytes == e->peer->read_bytes + e->dropped_bytes + inside(e));
}

static void build_add_connections(struct platform_result *r, struct platform_app *a)
{
	bool web = a->config->kind == PLATFORM_APP_web;
	for (size_t i = 0; i < a->nr_connections; i++) {
		const struct platform_end *sender = web ? &a->server[i] : &a->client[i];
		check_conservation(&a->client[i]);
		check_conservation(&a->server[i]);
		r->connection[r->nr_connections++] = (struct platform_connection_result){
			.connection = sender->connection,
			.app = a->config->name,
			.sent_bytes = sender->written_bytes,
			.received_bytes = sender->peer->read_bytes,
			.dropped_bytes = sender->dropped_bytes,
			.inside_bytes = sender->written_bytes - sender->peer->read_bytes -
					sender->dropped_bytes,
			.nr_responses = a->nr_responses[i],
			.end_ns = a->end_ns[i],
		};
	}
}

static enum base_status make_result(
	struct platform *p, struct platform_result **ret, struct base_err *err)
{
	size_t nr = 0;
	double bytes = 0;
	struct platform_result *r = base_alloc(sizeof *r);
	for (size_t i = 0; i < p->nr_apps; i++)
		nr += p->app[i].nr_connections;
	if (r) {
		r->connection = base_alloc(nr * sizeof *r->connection);
		r->link = base_alloc(sizeof *r->link);
	}
	if (!r || !r->connection || !r->link) {
		platform_result_free(r);
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for results");
	}
	for (size_t i = 0; i < p->nr_apps; i++)
		build_add_connections(r, &p->app[i]);
	for (size_t i = 0; i < r->nr_connections; i++)
		bytes += (double)r->connection[i].received_bytes;
	const struct platform_system *a = find_system(p, p->config->link[0].a), *b = a->peer;
	r->nr_links = 1;
	r->link[0] = (struct platform_link_result){.name = p->config->link[0].name,
		.payload_bytes = {a->sent_payload_bytes, b->sent_payload_bytes},
		.frames = {a->sent_frames, b->sent_frames}};
	r->simulated_ns = p->sim.now_ns;
	r->nr_events = p->sim.nr_events;
	r->nr_verbs = p->sim.note.nr_verbs;
	r->nr_actors = p->sim.note.nr_actors;
	r->nr_queues = p->sim.note.nr_queues;
	r->dropped_packets = a->dropped_packets + b->dropped_packets;
	r->resent_packets = a->resent_packets + b->resent_packets;
	r->goodput_mbps = r->simulated_ns ? bytes * 8e3 / (double)r->simulated_ns : 0;
	*ret = r;
	return BASE_OK;
}

struct platform_result *platform_result_free(struct platform_result *r)
{
	if (r) {
		base_free(r->connection);
		base_free(r->link);
		base_free(r);
	}
	return NULL;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void fini_end(struct platform_end *e)
{
	struct platform_queue *q[] = {
		&e->sndbuf, &e->unsent, &e->window, &e->rcvbuf, &e->ack_later, &e->resend_later};
	for (size_t i = 0; i < BASE_COUNT(q); i++)
		platform_queue_fini(q[i]);
}

/* Everything is in the arena but the queues' items. */
static void build_fini(struct platform *p)
{
	for (size_t i = 0; i < 2 && p->system; i++) {
		struct platform_system *y = &p->system[i];
		struct platform_queue *q[] = {&y->qdisc, &y->tx.fifo, &y->rx.fifo, &y->rx.ring};
		platform_link_fini(y);
		for (size_t k = 0; k < BASE_COUNT(q); k++)
			platform_queue_fini(q[k]);
	}
	for (size_t i = 0; i < p->nr_apps && p->app; i++) {
		struct platform_app *a = &p->app[i];
		for (size_t k = 0; k < a->nr_connections && a->client && a->server; k++) {
			fini_end(&a->client[k]);
			fini_end(&a->server[k]);
		}
		for (size_t k = 0; k < a->nr_ready; k++)
			platform_queue_fini(&a->ready[k]);
	}
	platform_events_fini(&p->sim.events);
	base_arena_free(p->sim.arena);
}

static enum base_status build_build(struct platform *p)
{
	struct platform_sim *s = &p->sim;
	p->system = platform_sim_alloc(s, 2 * sizeof *p->system);
	p->app = platform_sim_alloc(s, p->nr_apps * sizeof *p->app);
	if (s->status != BASE_OK)
		return s->status;
	define_states(s);
	build_systems(p);
	build_apps(p);
	return s->status != BASE_OK ? s->status : s->note.status;
}

/* Nothing moves any more: what is lacking will not come. */
static void give_up_fragments(struct platform *p)
{
	for (size_t i = 0; i < p->nr_apps; i++)
		for (size_t k = 0; k < p->app[i].nr_connections; k++)
			if (p->app[i].server[k].assembled_bytes)
				platform_net_discard(&p->sim, &p->app[i].server[k]);
}

static enum base_status halted(const struct platform *p, struct base_err *err)
{
	return base_fail(err, BASE_ERR_USAGE,
		"the platform came to a halt after %llu ns, before its applications had ended: "
		"buffers or windows are too small for each other",
		(unsigned long long)p->sim.now_ns);
}

enum base_status platform_run(const struct platform_config *c, const char *trace_path,
	struct platform_result **ret, struct base_err *err)
{
	struct platform p = {.config = c, .nr_apps = c->nr_apps};
	struct platform_sim *s = &p.sim;
	uint64_t trace_bytes = 0;
	enum base_status status = platform_config_check(c, err);
	*ret = NULL;
	if (status == BASE_OK)
		status = check_sizes(c, err);
	if (status != BASE_OK)
		return status;
	s->err = err;
	s->random = (uint64_t)c->simulation.seed;
	s->jitter = c->simulation.jitter_percent / 100;
	s->arena = base_arena_new(MEMORY_LIMIT_BYTES);
	if (!s->arena)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for the platform");
	status = platform_note_open(&s->note, trace_path, "platform", err);
	if (status == BASE_OK)
		status = build_build(&p);
	if (status == BASE_OK) {
		platform_sim_run(s, (uint64_t)(c->simulation.duration_ms * 1e6));
		status = s->status;
	}
	if (status == BASE_OK && !s->ended && !s->events.nr)
		give_up_fragments(&p);
	if (status == BASE_OK && !s->ended && c->simulation.duration_ms <= 0)
		status = halted(&p, err);
	if (status == BASE_OK)
		status = make_result(&p, ret, err);
	bool is_first =
		status == BASE_OK || s->note.status != BASE_OK; /* what failed is the trace */
	enum base_status closed =
		platform_note_close(&s->note, s->now_ns, &trace_bytes, is_first ? err : NULL);
	if (status == BASE_OK && closed != BASE_OK) {
		*ret = platform_result_free(*ret);
		status = closed;
	}
	if (*ret)
		(*ret)->trace_bytes = trace_bytes;
	build_fini(&p);
	return status;
}
