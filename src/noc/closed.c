/* SPDX-License-Identifier: Apache-2.0 */
/* closed.c - events and messages of the closed loop. */
#include "noc/closed_private.h"

#include "base/heap.h"

#include <stdio.h>
#include <string.h>

void noc_closed_options_init(struct noc_closed_options *o)
{
	*o = (struct noc_closed_options){.short_flits = 1,
		.long_flits = 5,
		.directory_cycles = 6,
		.memory_cycles = 50,
		.cache_cycles = 4};
}

void noc_closed_result_fini(struct noc_closed_result *r)
{
	noc_pdg_free(r->trace);
	*r = (struct noc_closed_result){0};
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool closed_before(const struct closed_event *a, const struct closed_event *b)
{
	return a->cycle != b->cycle ? a->cycle < b->cycle : a->sequence < b->sequence;
}

static enum base_status closed_push(
	struct noc_closed *c, struct closed_event e, struct base_err *err)
{
	enum base_status s =
		base_grow(&c->heap, &c->events_capacity, c->nr_events + 1, sizeof *c->heap);
	if (s != BASE_OK)
		return base_fail(err, s, "no memory for events");
	e.sequence = c->sequence++;
	BASE_HEAP_PUT(c->heap, c->nr_events, e, closed_before);
	return BASE_OK;
}

static struct closed_event closed_pop(struct noc_closed *c)
{
	struct closed_event top = c->heap[0];
	BASE_HEAP_DROP(c->heap, c->nr_events, closed_before);
	return top;
}

enum base_status noc_closed_wake(
	struct noc_closed *c, uint32_t thread, uint64_t cycle, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	t->cycle = cycle > t->cycle ? cycle : t->cycle;
	return closed_push(c, (struct closed_event){.cycle = t->cycle, .thread = thread}, err);
}

/* ---- messages of one access ------------------------------------------------------------------ */

static enum base_status new_access(
	struct noc_closed *c, uint32_t thread, uint32_t *ret, struct base_err *err)
{
	if (c->free_access == UINT32_MAX) {
		enum base_status s = base_grow(
			&c->access, &c->accesses_capacity, c->nr_accesses + 1, sizeof *c->access);
		struct closed_access *a = s == BASE_OK ? base_alloc(sizeof *a) : NULL;
		if (!a)
			return base_fail(err, BASE_ERR_NOMEM, "no memory for messages");
		a->next_free = UINT32_MAX;
		c->free_access = (uint32_t)c->nr_accesses;
		c->access[c->nr_accesses++] = a;
	}
	*ret = c->free_access;
	struct closed_access *a = c->access[*ret];
	c->free_access = a->next_free;
	a->nr = a->nr_left = a->nr_resuming = a->resumed.nr = 0;
	a->thread = thread;
	a->resume_cycle = 0;
	a->line = UINT64_MAX;
	a->home_left = 0;
	a->home_last = NOC_PDG_NONE;
	a->follower = UINT32_MAX;
	a->generation++;
	return BASE_OK;
}

static void free_access(struct noc_closed *c, uint32_t access)
{
	c->access[access]->next_free = c->free_access;
	c->free_access = access;
}

static bool carries_data(unsigned code)
{
	switch (code) {
	case MEMORY_CDAT_data_shar:
	case MEMORY_CDAT_data_priv:
	case MEMORY_CDAT_write_back:
	case MEMORY_CDAT_update_data:
	case MEMORY_CDAT_c2c_data_shar:
	case MEMORY_CDAT_c2c_data_priv:
	case MEMORY_CDAT_c2c_data_priv_own:
	case MEMORY_CDAT_recall_c2c_data:
	case MEMORY_CDAT_recall_data:
		return true;
	default:
		return false;
	}
}

/* cdat tells one transaction of the access that is open. */
static void closed_hear(void *ctx, const struct memory_cdat_transaction *t)
{
	struct noc_closed *c = ctx;
	struct closed_access *a = c->open;
	enum memory_cdat_class class = memory_cdat_code_class(t->code);
	uint32_t home = t->home, from = (uint32_t)t->from, to = (uint32_t)t->to;
	if (a->nr == CLOSED_MESSAGES_MAX) {
		c->too_many = true;
		return;
	}
	struct closed_message *m = &a->message[a->nr++];
	*m = (struct closed_message){.line = t->line,
		.code = (uint8_t)t->code,
		.flits = carries_data(t->code) ? c->options->long_flits : c->options->short_flits,
		.packet = NOC_PDG_NONE};
	bool to_home = class == MEMORY_CDAT_REQUEST || class == MEMORY_CDAT_RETURN ||
		       class == MEMORY_CDAT_RECALL_RESPONSE;
	bool from_home = class == MEMORY_CDAT_RESPONSE || class == MEMORY_CDAT_RECALL;
	m->source = from_home ? home : from;
	m->destination = to_home ? home : to;
	m->resumes = class == MEMORY_CDAT_RESPONSE || class == MEMORY_CDAT_CACHE;
}

/* Does message k have to wait for j, which was told before it? */
static bool waits_for(const struct closed_message *k, const struct closed_message *j)
{
	enum memory_cdat_class first = memory_cdat_code_class(j->code);
	if (k->line != j->line)
		return false;
	switch (memory_cdat_code_class(k->code)) {
	case MEMORY_CDAT_RECALL:
		return first == MEMORY_CDAT_REQUEST;
	case MEMORY_CDAT_RESPONSE:
		return first == MEMORY_CDAT_REQUEST || first == MEMORY_CDAT_RECALL_RESPONSE;
	case MEMORY_CDAT_CACHE:
	case MEMORY_CDAT_RECALL_RESPONSE:
		return first == MEMORY_CDAT_RECALL && j->destination == k->source;
	default:
		return false;
	}
}

/* How long its sender needs once all has come that it waits for. */
static uint32_t closed_delay_of(
	const struct noc_closed *c, const struct closed_access *a, const struct closed_message *m)
{
	bool answers_recalls = false;
	switch (memory_cdat_code_class(m->code)) {
	case MEMORY_CDAT_RECALL:
		return c->options->directory_cycles;
	case MEMORY_CDAT_RESPONSE:
		for (const struct closed_message *j = a->message; j < m; j++)
			answers_recalls |= waits_for(m, j) && memory_cdat_code_class(j->code) ==
								      MEMORY_CDAT_RECALL_RESPONSE;
		return carries_data(m->code) && !answers_recalls ? c->options->memory_cycles
								 : c->options->directory_cycles;
	case MEMORY_CDAT_CACHE:
	case MEMORY_CDAT_RECALL_RESPONSE:
		return c->options->cache_cycles;
	default:
		return 1;
	}
}

void noc_closed_add_cause(struct closed_causes *to, uint32_t packet)
{
	if (packet == NOC_PDG_NONE)
		return;
	for (uint32_t i = 0; i < to->nr; i++)
		if (to->packet[i] == packet)
			return;
	if (to->nr < CLOSED_CAUSES_MAX)
		to->packet[to->nr++] = packet;
}

/* What a message's arrival means to what waits for it: the message itself, or, if it stayed in its
 * node, what that message waited for. */
static void closed_pass_on(struct closed_causes *to, const struct closed_message *m)
{
	noc_closed_add_cause(to, m->packet);
	for (uint32_t i = 0; m->packet == NOC_PDG_NONE && i < m->causes.nr; i++)
		noc_closed_add_cause(to, m->causes.packet[i]);
}

/* One input of a message has come. */
static enum base_status closed_input(
	struct noc_closed *c, uint32_t access, uint32_t k, uint64_t cycle, struct base_err *err)
{
	struct closed_message *m = &c->access[access]->message[k];
	m->latest_cycle = cycle > m->latest_cycle ? cycle : m->latest_cycle;
	if (--m->waits)
		return BASE_OK;
	return closed_push(c,
		(struct closed_event){.cycle = m->latest_cycle + m->delay_cycles,
			.thread = UINT32_MAX,
			.message = access * CLOSED_MESSAGES_MAX + k},
		err);
}

/* ---- one access to a line after the other ---------------------------------------------------- */

static bool is_home_side(const struct closed_access *a, const struct closed_message *m)
{
	enum memory_cdat_class class = memory_cdat_code_class(m->code);
	return m->line == a->line && (class == MEMORY_CDAT_RECALL || class == MEMORY_CDAT_RESPONSE);
}

static bool is_to_home(const struct closed_access *a, const struct closed_message *m)
{
	enum memory_cdat_class class = memory_cdat_code_class(m->code);
	return m->line == a->line &&
	       (class == MEMORY_CDAT_REQUEST || class == MEMORY_CDAT_RECALL_RESPONSE);
}

/* A cache that was asked for a line which is still on its way there. */
static bool is_of_late_owner(const struct closed_access *a, const struct closed_message *m,
	const struct closed_access *closed_before)
{
	enum memory_cdat_class class = memory_cdat_code_class(m->code);
	return m->line == a->line && m->source == closed_before->thread &&
	       (class == MEMORY_CDAT_CACHE || class == MEMORY_CDAT_RECALL_RESPONSE);
}

/* Puts an access behind the one before to its line. */
static enum base_status closed_follow(struct noc_closed *c, uint32_t access, struct base_err *err)
{
	struct closed_access *a = c->access[access];
	uint64_t closed_before;
	for (uint32_t k = 0; k < a->nr; k++)
		if (memory_cdat_code_class(a->message[k].code) == MEMORY_CDAT_REQUEST)
			a->line = a->message[k].line;
	for (uint32_t k = 0; k < a->nr; k++)
		a->home_left += is_to_home(a, &a->message[k]);
	if (a->line == UINT64_MAX)
		return BASE_OK;
	if (base_map_get(&c->lines, 0, a->line, &closed_before)) {
		struct closed_access *b = c->access[closed_before & UINT32_MAX];
		bool late = b->nr_resuming != 0;
		if (b->generation == closed_before >> 32 && b->nr_left && (b->home_left || late)) {
			b->follower = access;
			for (uint32_t k = 0; k < a->nr; k++)
				a->message[k].waits =
					(uint8_t)(a->message[k].waits +
						  (b->home_left &&
							  is_home_side(a, &a->message[k])) +
						  (late && is_of_late_owner(a, &a->message[k], b)));
		}
	}
	enum base_status s =
		base_map_put(&c->lines, 0, a->line, (uint64_t)a->generation << 32 | access);
	return s == BASE_OK ? s : base_fail(err, s, "no memory for lines under way");
}

/* The home has got all of the access (home), or its requester has its data: what of the next access
 * had to wait for that goes on. */
static enum base_status let_follow(struct noc_closed *c, const struct closed_access *b, bool home,
	uint64_t cycle, struct base_err *err)
{
	enum base_status s = BASE_OK;
	if (b->follower == UINT32_MAX)
		return s;
	struct closed_access *a = c->access[b->follower];
	for (uint32_t k = 0; k < a->nr && s == BASE_OK; k++) {
		struct closed_message *m = &a->message[k];
		if (home ? !is_home_side(a, m) : !is_of_late_owner(a, m, b))
			continue;
		for (uint32_t i = 0; !home && i < b->resumed.nr; i++)
			noc_closed_add_cause(&m->causes, b->resumed.packet[i]);
		if (home)
			noc_closed_add_cause(&m->causes, b->home_last);
		s = closed_input(c, b->follower, k, cycle, err);
	}
	return s;
}

static enum base_status closed_arrived(
	struct noc_closed *c, uint32_t message, uint64_t cycle, struct base_err *err)
{
	uint32_t access = message / CLOSED_MESSAGES_MAX, j = message % CLOSED_MESSAGES_MAX;
	BASE_ASSUME(c->access);
	struct closed_access *a = c->access[access];
	const struct closed_message *m = &a->message[j];
	enum base_status s = BASE_OK;
	if (m->packet != NOC_PDG_NONE)
		c->result->trace->receive_cycle[m->packet] = cycle;
	for (uint32_t k = j + 1; k < a->nr && s == BASE_OK; k++)
		if (waits_for(&a->message[k], m)) {
			closed_pass_on(&a->message[k].causes, m);
			s = closed_input(c, access, k, cycle, err);
		}
	if (is_to_home(a, m)) {
		a->home_last = m->packet != NOC_PDG_NONE ? m->packet : a->home_last;
		if (!--a->home_left && s == BASE_OK)
			s = let_follow(c, a, true, cycle, err);
	}
	if (memory_cdat_code_class(m->code) == MEMORY_CDAT_RECALL && s == BASE_OK)
		s = noc_closed_recalled(c, m->destination, m->line, m->packet, cycle, err);
	if (m->resumes && s == BASE_OK) {
		a->resume_cycle = cycle > a->resume_cycle ? cycle : a->resume_cycle;
		closed_pass_on(&a->resumed, m);
		if (!--a->nr_resuming) {
			c->thread[a->thread].causes = a->resumed;
			s = let_follow(c, a, false, cycle, err);
		}
		if (!a->nr_resuming && s == BASE_OK)
			s = noc_closed_done(c, a->thread, a->resume_cycle + 1, err);
	}
	if (!--a->nr_left)
		free_access(c, access);
	return s;
}

static enum base_status closed_send(struct noc_closed *c, uint32_t message, struct base_err *err)
{
	struct closed_message *m =
		&c->access[message / CLOSED_MESSAGES_MAX]->message[message % CLOSED_MESSAGES_MAX];
	uint64_t now = noc_network_now_cycle(c->network);
	if (m->source == m->destination)
		return closed_arrived(c, message, now, err);
	struct noc_pdg *trace = c->result->trace;
	uint64_t latest = 0;
	for (uint32_t i = 0; i < m->causes.nr; i++)
		if (trace->receive_cycle[m->causes.packet[i]] > latest)
			latest = trace->receive_cycle[m->causes.packet[i]];
	m->packet = trace->nr_packets;
	enum base_status s = noc_pdg_add(trace,
		&(struct noc_pdg_packet){.source = m->source,
			.destination = m->destination,
			.size_flits = m->flits,
			.type = m->code,
			.address = m->line,
			.transmit_cycle = now,
			.receive_cycle = now,
			.delay_cycles = now - latest},
		err);
	for (uint32_t i = 0; i < m->causes.nr && s == BASE_OK; i++)
		s = noc_pdg_add_dependency(trace, m->causes.packet[i], NOC_GIVEN, err);
	if (s != BASE_OK)
		return s;
	return noc_network_send(c->network,
		&(struct noc_packet){.id = message,
			.source = m->source,
			.destination = m->destination,
			.size_flits = m->flits},
		err);
}

/* ---- accesses -------------------------------------------------------------------------------- */

/* The messages of the access that was just told get their inputs; the first ones go out. */
static enum base_status issue(
	struct noc_closed *c, uint32_t access, uint64_t cycle, struct base_err *err)
{
	struct closed_access *a = c->access[access];
	enum base_status s = BASE_OK;
	for (uint32_t k = 0; k < a->nr; k++) {
		struct closed_message *m = &a->message[k];
		m->waits = 1;
		m->delay_cycles = closed_delay_of(c, a, m);
		for (uint32_t j = 0; j < k; j++)
			m->waits = (uint8_t)(m->waits + waits_for(m, &a->message[j]));
		a->nr_resuming += m->resumes;
	}
	a->nr_left = a->nr;
	s = closed_follow(c, access, err);
	bool resumes = a->nr_resuming != 0; /* else only copies were given back */
	for (uint32_t k = 0; k < a->nr && s == BASE_OK; k++) {
		enum memory_cdat_class class = memory_cdat_code_class(a->message[k].code);
		if (class == MEMORY_CDAT_REQUEST || class == MEMORY_CDAT_RETURN)
			a->message[k].causes = c->thread[a->thread].causes;
		s = closed_input(c, access, k, cycle, err);
	}
	return s == BASE_OK && !resumes ? noc_closed_done(c, a->thread, cycle, err) : s;
}

static enum base_status do_access(struct noc_closed *c, uint32_t thread, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	struct memory_cdat_outcome outcome;
	uint32_t access = 0;
	enum base_status s = new_access(c, thread, &access, err);
	if (s != BASE_OK)
		return s;
	c->open = c->access[access];
	s = memory_cdat_access(c->machine, thread, t->address, t->kind, t->cycle, &outcome, err);
	if (s != BASE_OK)
		return s;
	if (c->too_many)
		return base_fail(err, BASE_ERR_LIMIT, "one access caused more than %d messages",
			CLOSED_MESSAGES_MAX);
	c->result->accesses++;
	c->result->stopped =
		c->options->accesses_max && c->result->accesses >= c->options->accesses_max;
	if (!c->open->nr) {
		free_access(c, access);
		return noc_closed_done(c, thread, t->cycle, err);
	}
	c->result->misses++;
	return issue(c, access, t->cycle, err);
}

static enum base_status run_thread(
	struct noc_closed *c, uint32_t thread, uint64_t cycle, struct base_err *err)
{
	struct noc_closed_thread *t = &c->thread[thread];
	enum noc_closed_step step;
	enum base_status s = noc_closed_advance(c, thread, &step, err);
	if (s != BASE_OK || step == CLOSED_BLOCKED)
		return s;
	if (t->cycle > cycle) /* instructions first; others may come in between */
		return noc_closed_wake(c, thread, t->cycle, err);
	return do_access(c, thread, err);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static enum base_status obey_events(struct noc_closed *c, struct base_err *err)
{
	enum base_status s = BASE_OK;
	uint64_t now = noc_network_now_cycle(c->network);
	while (c->nr_events && c->heap[0].cycle <= now && s == BASE_OK) {
		struct closed_event e = closed_pop(c);
		s = e.thread == UINT32_MAX ? closed_send(c, e.message, err)
					   : run_thread(c, e.thread, now, err);
	}
	return s;
}

static enum base_status closed_loop(struct noc_closed *c, struct base_err *err)
{
	for (;;) {
		const struct noc_arrival *a;
		size_t nr;
		enum base_status s = obey_events(c, err);
		if (s != BASE_OK)
			return s;
		if (!c->nr_events && !noc_network_pending(c->network))
			break;
		s = noc_network_run(
			c->network, c->nr_events ? c->heap[0].cycle : UINT64_MAX, &a, &nr, err);
		for (size_t i = 0; i < nr && s == BASE_OK; i++)
			s = closed_arrived(c, (uint32_t)a[i].id, a[i].arrival_cycle, err);
		if (s != BASE_OK)
			return s;
	}
	if (c->nr_ended < c->nr_threads && !c->result->stopped)
		return base_fail(err, BASE_ERR_USAGE,
			"%u of the program's %u {thread|threads} wait for each other for ever: its "
			"recording "
			"has no barriers, locks or joins that this could obey",
			c->nr_threads - c->nr_ended, c->nr_threads);
	return BASE_OK;
}

static enum base_status closed_slow_down(struct noc_closed *c, struct base_err *err)
{
	const struct noc_closed_options *o = c->options;
	enum base_status s = BASE_OK;
	for (uint32_t n = 0; o->set && n < c->nr_threads && s == BASE_OK; n++)
		if (o->set[n] == o->slow_set)
			s = noc_network_set_latency(c->network, n, UINT32_MAX,
				(uint32_t)o->network->ideal_cycles + o->slow_cycles, err);
	return s;
}

static enum base_status closed_start(struct noc_closed *c, struct base_err *err)
{
	struct memory_cdat_options options = {.detailed = closed_hear, .trace_ctx = c};
	bool threads = (c->program->info.flags & MEMORY_SOURCE_THREADS) != 0;
	c->thread = base_alloc(c->nr_threads * sizeof *c->thread);
	c->result->trace = noc_pdg_new(c->nr_threads);
	if (!c->thread || !c->result->trace)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the program's threads");
	memset(c->result->trace->ordered, 0, c->nr_threads);
	c->result->trace->has_addresses = true;
	c->result->trace->has_graph = true;
	enum base_status s =
		memory_cdat_new(c->options->machine, c->nr_threads, &options, &c->machine, err);
	if (s == BASE_OK)
		s = memory_cdat_begin(c->machine, err);
	if (s == BASE_OK)
		s = noc_network_open(&c->network, c->options->network, err);
	if (s == BASE_OK)
		s = closed_slow_down(c, err);
	for (uint32_t i = 0; i < c->nr_threads && s == BASE_OK; i++) {
		c->thread[i].started = !(threads && i);
		if (!c->thread[i].started)
			noc_closed_await_start(c, i);
		s = noc_closed_wake(c, i, 0, err);
	}
	return s;
}

enum base_status noc_closed_run(struct memory_source *program, const struct noc_closed_options *o,
	struct noc_closed_result *ret, struct base_err *err)
{
	struct noc_closed c = {.program = program,
		.options = o,
		.nr_threads = program->info.nr_threads,
		.free_access = UINT32_MAX,
		.result = ret};
	*ret = (struct noc_closed_result){0};
	if (!c.nr_threads || c.nr_threads > o->machine->nodes || o->machine->processors != 1)
		return base_fail(err, BASE_ERR_USAGE,
			"a program of %u {thread|threads} needs a machine of as many nodes (at "
			"most %d), "
			"with a "
			"processor each",
			c.nr_threads, NOC_CLOSED_NODES_MAX);
	if (memory_cdat_config_has_parts(o->machine))
		return base_fail(err, BASE_ERR_USAGE,
			"in a closed loop all caches have lines of line_bytes");
	if (program->info.flags & MEMORY_SOURCE_TOTAL_ORDER)
		return base_fail(err, BASE_ERR_USAGE,
			"threads of this format cannot be read one by one, as the closed loop "
			"must");
	enum base_status s = closed_start(&c, err);
	if (s == BASE_OK)
		s = closed_loop(&c, err);
	noc_network_close(c.network);
	memory_cdat_free(c.machine);
	for (size_t i = 0; i < c.nr_accesses; i++)
		base_free(c.access[i]);
	base_free(c.access);
	base_free(c.heap);
	base_free(c.thread);
	base_map_fini(&c.locks);
	base_map_fini(&c.lines);
	if (s != BASE_OK)
		noc_closed_result_fini(ret);
	return s;
}
