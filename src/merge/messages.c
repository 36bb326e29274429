/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages.c - communicators of MPI that several recordings have, and pairs from what went between
 * their ranks.
 *
 * A message was sent before it was received. Which send a receive belongs to is not asked: of all
 * that one rank sends another in a communicator the n-th was begun before the n-th receiving was
 * complete, in whatever order tags and wildcards match them (flow.c). A collective operation counts
 * as messages where its semantics leave no choice: a rank that leaves MPI_Barrier has heard of all;
 * data from a root, or for one, was sent. Of operations of all ranks with each other those with
 * rank 0 are taken: they say enough of the clocks.
 *
 * The records are read twice. The first time counts: where more was received than was sent, a send
 * was not recorded, and the n-th is another one; such a way is not used.
 */
#include "merge/private.h"

#include "trace/communicator.h"

#include <stdio.h>
#include <string.h>

struct member { /* a process in a communicator */
	uint32_t object, rank, size;
};
struct way { /* from a rank of an input's communicator to another: this input is one of the two */
	uint32_t input, object, from, to;
	bool is_collective;
	uint64_t nr_sent, nr_received;
	uint32_t flow; /* index + 1; 0: not used */
};
enum request_kind { REQUEST_none, REQUEST_send, REQUEST_receive, REQUEST_collective };
struct request {
	enum request_kind kind;
	uint32_t member; /* index + 1; 0: none */
	int64_t peer;    /* rank; of a collective its root; -1: any, none */
	uint64_t op, n;
};
struct merge_messages {
	struct merge *m;
	bool counts; /* the first time */
	struct member *member;
	struct way *way;
	struct merge_flow *flow;
	struct request *request;
	size_t nr_members, member_capacity, nr_ways, way_capacity, nr_flows, flow_capacity;
	size_t nr_requests, request_capacity;
	struct base_map members;  /* (input and process, object) -> member */
	struct base_map ways;     /* (input and object, ranks and whether collective) -> way */
	struct base_map requests; /* (input and process, request) -> request */
	struct request *own[MERGE_INPUTS_MAX]; /* by stream: of a call that waits itself */
};

#define MESSAGES_COLLECTIVE UINT64_C(0x8000000080000000) /* a key's own bits */

static uint64_t messages_pair_key(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

/* ---- whose communicators are one ------------------------------------------------------------- */

static const struct trace_object *messages_object(const struct merge_input *in, uint32_t object)
{
	return &in->defs->objects[object];
}

/* Numbers from 1; communicators with one address have one. */
static enum base_status messages_number_all(struct merge *m, struct base_map *by_address)
{
	enum base_status status = BASE_OK;
	for (uint32_t i = 0; i < m->nr_inputs; i++)
		for (uint32_t n = 1; n < m->input[i].defs->nr_objects && status == BASE_OK; n++) {
			const struct trace_object *o = messages_object(&m->input[i], n);
			uint64_t number;
			if (o->type != TRACE_OBJECT_communicator || o->process)
				continue;
			if (!base_map_get(by_address, 0, o->address, &number)) {
				number = ++m->nr_communicators;
				status = base_map_put(by_address, 0, o->address, number);
			}
			m->input[i].object[n].communicator = (uint32_t)number;
		}
	return status;
}

/* *ret: the number of the world, as the first input has it that has one, if all have one world: the recorder calls it after the job, which not
 * every launcher names to its ranks on several machines (Hydra, of MPICH). Then it is the world of as
 * many ranks, none of which two inputs have. 0: not one. */
static enum base_status messages_world_of(const struct merge_messages *x, uint32_t *ret)
{
	const struct merge *m = x->m;
	uint32_t first = 0, size = 0;
	struct base_map ranks = {0};
	enum base_status status = BASE_OK;
	bool differs = false;
	for (uint32_t i = 0; i < m->nr_inputs && !differs && status == BASE_OK; i++) {
		const uint32_t world = m->input[i].world;
		const struct member *member = world ? &x->member[world - 1] : NULL;
		uint64_t other;
		if (!member)
			continue;
		first = first ? first : m->input[i].object[member->object].communicator;
		size = size ? size : member->size;
		differs = size != member->size || base_map_get(&ranks, 0, member->rank, &other);
		if (!differs)
			status = base_map_put(&ranks, 0, member->rank, 1);
	}
	base_map_fini(&ranks);
	*ret = differs ? 0 : first;
	return status;
}

/* A communicator's address comes from its parent's, which may be another one in each input: then the
 * child of one world is that of the other. *ret: its parent's number in this input, and what is
 * hashed; false: none of this input. */
static bool messages_parent_of(const struct merge_input *in, uint32_t object, uint32_t *ret_parent,
	uint32_t *ret_nr, uint32_t *ret_first)
{
	const struct trace_object *o = messages_object(in, object);
	const char *name = trace_text_of(in->defs, o->name);
	if (sscanf(name, TRACE_COMMUNICATOR_NAME, ret_nr, ret_first) != 2)
		return false;
	for (uint32_t n = 1; n < in->defs->nr_objects; n++)
		if (in->object[n].communicator &&
			trace_communicator_address(messages_object(in, n)->address, *ret_nr,
				*ret_first) == o->address) {
			*ret_parent = n;
			return true;
		}
	return false;
}

static enum base_status messages_rename_children(struct merge_input *in, struct base_map *children)
{
	/* (a parent was made before its children, and has a lower number in its input) */
	for (uint32_t n = 1; n < in->defs->nr_objects; n++) {
		uint32_t parent, nr, first;
		uint64_t number;
		if (!in->object[n].communicator || !messages_parent_of(in, n, &parent, &nr, &first))
			continue;
		uint64_t hi = in->object[parent].communicator, lo = messages_pair_key(nr, first);
		if (base_map_get(children, hi, lo, &number)) {
			in->object[n].communicator = (uint32_t)number;
			continue;
		}
		enum base_status status =
			base_map_put(children, hi, lo, in->object[n].communicator);
		if (status != BASE_OK)
			return status;
	}
	return BASE_OK;
}

static enum base_status messages_unify(struct merge_messages *x)
{
	struct merge *m = x->m;
	struct base_map children = {0};
	uint32_t number;
	enum base_status status = messages_world_of(x, &number);
	for (uint32_t i = 0; number && i < m->nr_inputs && status == BASE_OK; i++) {
		struct merge_input *in = &m->input[i];
		if (!in->world)
			continue;
		in->object[x->member[in->world - 1].object].communicator = number;
		status = messages_rename_children(in, &children);
	}
	base_map_fini(&children);
	return status;
}

/* ---- what went between two ranks -------------------------------------------------------------- */

static struct way *messages_way(struct merge_messages *x, uint32_t input, uint32_t object,
	uint32_t from, uint32_t to, bool is_collective)
{
	uint64_t hi = messages_pair_key(input, object),
		 lo = messages_pair_key(from, to) ^ (is_collective ? MESSAGES_COLLECTIVE : 0), i;
	if (base_map_get(&x->ways, hi, lo, &i))
		return &x->way[i];
	if (!x->counts ||
		base_grow(&x->way, &x->way_capacity, x->nr_ways + 1, sizeof *x->way) != BASE_OK ||
		base_map_put(&x->ways, hi, lo, x->nr_ways) != BASE_OK)
		return NULL;
	x->way[x->nr_ways] = (struct way){.input = input,
		.object = object,
		.from = from,
		.to = to,
		.is_collective = is_collective};
	return &x->way[x->nr_ways++];
}

static enum base_status messages_went(struct merge_messages *x, uint32_t input,
	const struct member *who, int64_t peer, bool is_sent, bool is_collective, uint64_t at_ns)
{
	if (peer < 0 || peer > UINT32_MAX >> 1 || peer == (int64_t)who->rank)
		return BASE_OK;
	struct way *w = messages_way(x, input, who->object, is_sent ? who->rank : (uint32_t)peer,
		is_sent ? (uint32_t)peer : who->rank, is_collective);
	if (!w)
		return x->counts ? BASE_ERR_NOMEM : BASE_OK;
	if (x->counts) {
		++*(is_sent ? &w->nr_sent : &w->nr_received);
		return BASE_OK;
	}
	if (!w->flow)
		return BASE_OK;
	struct merge_flow *f = &x->flow[w->flow - 1];
	return is_sent ? merge_flow_sent(x->m, f, 1, at_ns)
		       : merge_flow_received(x->m, f, 1, at_ns);
}

/* ---- collective operations ------------------------------------------------------------------- */

enum messages_certain { MESSAGES_nothing, MESSAGES_all, MESSAGES_from_root, MESSAGES_to_root };

static enum messages_certain messages_certain_of(uint64_t op, uint64_t nr_bytes)
{
	static const uint8_t certain[TRACE_MPI_NR] = {
		[TRACE_MPI_Allreduce] = MESSAGES_all,
		[TRACE_MPI_Alltoall] = MESSAGES_all,
		[TRACE_MPI_Allgather] = MESSAGES_all,
		[TRACE_MPI_Reduce_scatter_block] = MESSAGES_all,
		[TRACE_MPI_Iallreduce] = MESSAGES_all,
		[TRACE_MPI_Ialltoall] = MESSAGES_all,
		[TRACE_MPI_Iallgather] = MESSAGES_all,
		[TRACE_MPI_Bcast] = MESSAGES_from_root,
		[TRACE_MPI_Ibcast] = MESSAGES_from_root,
		[TRACE_MPI_Scatter] = MESSAGES_from_root,
		[TRACE_MPI_Iscatter] = MESSAGES_from_root,
		[TRACE_MPI_Reduce] = MESSAGES_to_root,
		[TRACE_MPI_Ireduce] = MESSAGES_to_root,
		[TRACE_MPI_Gather] = MESSAGES_to_root,
		[TRACE_MPI_Igather] = MESSAGES_to_root,
	};
	if (op == TRACE_MPI_Barrier || op == TRACE_MPI_Ibarrier)
		return MESSAGES_all;
	return op < TRACE_MPI_NR && nr_bytes ? (enum messages_certain)certain[op]
					     : MESSAGES_nothing;
}

/* `enters`: the rank comes to it; else it leaves. */
static enum base_status messages_meet(struct merge_messages *x, uint32_t input,
	const struct request *q, bool enters, uint64_t at_ns)
{
	const struct member who = x->member[q->member - 1];
	const enum messages_certain certain = messages_certain_of(q->op, q->n);
	const int64_t center = certain == MESSAGES_all ? 0 : q->peer;
	if (certain == MESSAGES_nothing || center < 0)
		return BASE_OK;
	const bool is_center = center == (int64_t)who.rank;
	const bool from_center = enters == is_center;
	if (certain == (from_center ? MESSAGES_to_root : MESSAGES_from_root))
		return BASE_OK;
	enum base_status status = BASE_OK;
	if (!is_center)
		return messages_went(x, input, &who, center, enters, true, at_ns);
	for (uint32_t i = 0; i < who.size && status == BASE_OK; i++)
		status = messages_went(x, input, &who, i, enters, true, at_ns);
	return status;
}

/* ---- records --------------------------------------------------------------------------------- */

static uint32_t messages_process(const struct merge_messages *x, uint32_t input, uint32_t stream)
{
	return x->m->input[input].defs->streams[stream].process;
}

/* Index + 1; 0: not known. */
static uint32_t messages_member_of(
	const struct merge_messages *x, uint32_t input, uint32_t stream, uint32_t object)
{
	uint64_t i;
	return base_map_get(&x->members,
		       messages_pair_key(input, messages_process(x, input, stream)), object, &i)
		       ? (uint32_t)i + 1
		       : 0;
}

static enum base_status messages_comm(
	struct merge_messages *x, uint32_t input, const struct trace_record *r)
{
	const struct trace_mpi_comm *c = &r->u.mpi_comm;
	struct merge_input *in = &x->m->input[input];
	if (!x->counts || c->object >= in->defs->nr_objects || c->rank >= c->size ||
		c->size > UINT32_MAX >> 1 || messages_member_of(x, input, r->stream, c->object))
		return BASE_OK;
	enum base_status status =
		base_grow(&x->member, &x->member_capacity, x->nr_members + 1, sizeof *x->member);
	if (status == BASE_OK)
		status = base_map_put(&x->members,
			messages_pair_key(input, messages_process(x, input, r->stream)), c->object,
			x->nr_members);
	if (status != BASE_OK)
		return status;
	x->member[x->nr_members++] = (struct member){
		.object = c->object, .rank = (uint32_t)c->rank, .size = (uint32_t)c->size};
	if (c->world && !in->world)
		in->world = (uint32_t)x->nr_members;
	return BASE_OK;
}

/* Of that name, a new one if there is none; NULL: no memory. */
static struct request *messages_request(
	struct merge_messages *x, uint32_t input, uint32_t stream, uint64_t name, bool makes)
{
	uint64_t hi = messages_pair_key(input, messages_process(x, input, stream)), i;
	if (!name)
		return &x->own[input][stream];
	if (base_map_get(&x->requests, hi, name, &i))
		return &x->request[i];
	if (!makes ||
		base_grow(&x->request, &x->request_capacity, x->nr_requests + 1,
			sizeof *x->request) != BASE_OK ||
		base_map_put(&x->requests, hi, name, x->nr_requests) != BASE_OK)
		return NULL;
	x->request[x->nr_requests] = (struct request){0};
	return &x->request[x->nr_requests++];
}

static bool messages_is_template(uint64_t op)
{
	return (op >= TRACE_MPI_Send_init && op <= TRACE_MPI_Recv_init) ||
	       op == TRACE_MPI_Win_complete;
}

/* It receives nothing: the message stays. */
static bool messages_looks(uint64_t op)
{
	return op >= TRACE_MPI_Probe && op <= TRACE_MPI_Improbe;
}

/* The request begins: what it sends is sent. */
static enum base_status messages_begin(
	struct merge_messages *x, uint32_t input, const struct request *q, uint64_t at_ns)
{
	if (!q->member)
		return BASE_OK;
	if (q->kind == REQUEST_collective)
		return messages_meet(x, input, q, true, at_ns);
	return q->kind == REQUEST_send ? messages_went(x, input, &x->member[q->member - 1], q->peer,
						 true, false, at_ns)
				       : BASE_OK;
}

static enum base_status messages_ask(struct merge_messages *x, uint32_t input,
	const struct trace_record *r, uint32_t object, uint64_t name, struct request asked)
{
	asked.member = messages_member_of(x, input, r->stream, object);
	struct request *q = messages_request(x, input, r->stream, name, true);
	if (!q)
		return BASE_ERR_NOMEM;
	*q = asked;
	return messages_is_template(asked.op) ? BASE_OK : messages_begin(x, input, q, r->time_ns);
}

/* It is complete: what it receives was sent. */
static enum base_status messages_done(struct merge_messages *x, uint32_t input,
	const struct trace_record *r, struct request *q, int64_t peer)
{
	enum base_status status = BASE_OK;
	if (!q || !q->member)
		return BASE_OK;
	if (q->kind == REQUEST_collective)
		status = messages_meet(x, input, q, false, r->time_ns);
	else if (q->kind == REQUEST_receive && peer != TRACE_MPI_CANCELLED &&
		 !messages_looks(q->op))
		status = messages_went(x, input, &x->member[q->member - 1],
			q->peer >= 0 ? q->peer : peer, false, false, r->time_ns);
	if (!messages_is_template(q->op))
		*q = (struct request){0};
	return status;
}

enum base_status merge_messages_record(
	struct merge_messages *x, uint32_t input, const struct trace_record *r)
{
	const struct merge_input *in = &x->m->input[input];
	if (r->stream >= in->defs->nr_streams)
		return BASE_OK;
	const struct trace_mpi_send *s = &r->u.mpi_send;
	const struct trace_mpi_receive *v = &r->u.mpi_receive;
	const struct trace_mpi_collective *c = &r->u.mpi_collective;
	switch (r->kind) {
	case TRACE_mpi_comm:
		return messages_comm(x, input, r);
	case TRACE_mpi_send:
		return messages_ask(x, input, r, s->object, s->request,
			(struct request){.kind = REQUEST_send, .peer = s->peer, .op = s->op});
	case TRACE_mpi_receive:
		return messages_ask(x, input, r, v->object, v->request,
			(struct request){.kind = REQUEST_receive, .peer = v->peer, .op = v->op});
	case TRACE_mpi_collective:
		return messages_ask(x, input, r, c->object, c->request,
			(struct request){.kind = REQUEST_collective,
				.peer = c->root,
				.op = c->op,
				.n = c->n});
	case TRACE_mpi_start: {
		struct request *q =
			messages_request(x, input, r->stream, r->u.mpi_start.request, false);
		return q ? messages_begin(x, input, q, r->time_ns) : BASE_OK;
	}
	case TRACE_mpi_done:
		return messages_done(x, input, r,
			messages_request(x, input, r->stream, r->u.mpi_done.request, false),
			r->u.mpi_done.peer);
	case TRACE_mpi_return:
		return messages_done(x, input, r, &x->own[input][r->stream], -1);
	default:
		return BASE_OK;
	}
}

/* ---- between the two times ------------------------------------------------------------------- */

/* The flow of that way, as all inputs that have its communicator call it; index. */
static enum base_status messages_flow_of(
	struct merge_messages *x, struct base_map *flows, const struct way *w, uint64_t *ret)
{
	const uint32_t number = x->m->input[w->input].object[w->object].communicator;
	const uint64_t lo = messages_pair_key(w->from, w->to);
	if (base_map_get(flows, number, lo, ret))
		return BASE_OK;
	enum base_status status =
		base_grow(&x->flow, &x->flow_capacity, x->nr_flows + 1, sizeof *x->flow);
	if (status == BASE_OK)
		status = base_map_put(flows, number, lo, x->nr_flows);
	if (status != BASE_OK)
		return status;
	*ret = x->nr_flows;
	x->flow[x->nr_flows++] = (struct merge_flow){
		.from.input = UINT32_MAX, .to.input = UINT32_MAX, .source = MERGE_SOURCE_messages};
	return BASE_OK;
}

static bool messages_is_usable(const struct merge *m, const struct merge_flow *f)
{
	return f->from.input != UINT32_MAX && f->to.input != UINT32_MAX &&
	       f->from.input != f->to.input && f->nr_received <= f->nr_sent &&
	       !m->input[f->from.input].lost;
}

/* Which input is which rank of which job. */
static enum base_status messages_name_ranks(struct merge_messages *x)
{
	struct merge *m = x->m;
	struct base_map jobs = {0};
	enum base_status status = BASE_OK;
	for (uint32_t i = 0; i < m->nr_inputs && status == BASE_OK; i++) {
		const uint32_t world = m->input[i].world;
		uint64_t job;
		if (!world)
			continue;
		const struct member *member = &x->member[world - 1];
		const uint32_t number = m->input[i].object[member->object].communicator;
		if (!base_map_get(&jobs, 0, number, &job)) {
			job = ++m->result->nr_jobs;
			status = base_map_put(&jobs, 0, number, job);
		}
		m->result->input[i].rank = member->rank;
		m->result->input[i].nr_ranks = member->size;
		m->result->input[i].job = (uint32_t)job;
	}
	base_map_fini(&jobs);
	return status;
}

/* What is said of it: communicators that several inputs have, ways that cannot be used. */
static enum base_status messages_result(struct merge_messages *x)
{
	struct merge *m = x->m;
	uint32_t *first = base_alloc(((size_t)m->nr_communicators + 1) * sizeof *first);
	if (!first)
		return BASE_ERR_NOMEM;
	for (uint32_t i = 0; i < m->nr_inputs; i++)
		for (uint32_t n = 1; n < m->input[i].defs->nr_objects; n++) {
			uint32_t number = m->input[i].object[n].communicator;
			if (!number || first[number] == i + 1 || first[number] == UINT32_MAX)
				continue;
			m->result->nr_communicators += first[number] > 0;
			first[number] = first[number] ? UINT32_MAX : i + 1;
		}
	base_free(first);
	for (size_t i = 0; i < x->nr_flows; i++)
		m->result->nr_ways_unusable += x->flow[i].from.input != UINT32_MAX &&
					       x->flow[i].nr_received > x->flow[i].nr_sent;
	return BASE_OK;
}

enum base_status merge_messages_counted(struct merge_messages *x)
{
	struct base_map flows[2] = {{0}, {0}}; /* of messages; of collective operations */
	enum base_status status = messages_unify(x);
	for (size_t i = 0; i < x->nr_ways && status == BASE_OK; i++) {
		struct way *w = &x->way[i];
		uint64_t flow = 0;
		status = messages_flow_of(x, &flows[w->is_collective], w, &flow);
		if (status != BASE_OK)
			break;
		struct merge_flow *f = &x->flow[flow];
		if (w->nr_sent)
			f->from.input = w->input;
		if (w->nr_received)
			f->to.input = w->input;
		f->nr_sent += w->nr_sent;
		f->nr_received += w->nr_received;
		w->flow = (uint32_t)flow + 1;
	}
	if (status == BASE_OK)
		status = messages_result(x);
	if (status == BASE_OK)
		status = messages_name_ranks(x);
	for (size_t i = 0; i < x->nr_ways && status == BASE_OK; i++)
		if (!messages_is_usable(x->m, &x->flow[x->way[i].flow - 1]))
			x->way[i].flow = 0;
	for (size_t i = 0; i < x->nr_flows; i++)
		x->flow[i].nr_sent = x->flow[i].nr_received = 0;
	for (size_t i = 0; i < BASE_COUNT(flows); i++)
		base_map_fini(&flows[i]);
	base_map_fini(&x->requests);
	x->requests = (struct base_map){0};
	x->nr_requests = 0;
	for (uint32_t i = 0; i < x->m->nr_inputs; i++)
		memset(x->own[i], 0,
			((size_t)x->m->input[i].defs->nr_streams + 1) * sizeof *x->own[i]);
	x->counts = false;
	return status;
}

struct merge_messages *merge_messages_new(struct merge *m)
{
	struct merge_messages *x = base_alloc(sizeof *x);
	struct base_map by_address = {0};
	if (!x)
		return NULL;
	x->m = m;
	x->counts = true;
	bool failed = messages_number_all(m, &by_address) != BASE_OK;
	base_map_fini(&by_address);
	for (uint32_t i = 0; i < m->nr_inputs && !failed; i++) {
		x->own[i] =
			base_alloc(((size_t)m->input[i].defs->nr_streams + 1) * sizeof *x->own[i]);
		failed = !x->own[i];
	}
	return failed ? merge_messages_free(x) : x;
}

struct merge_messages *merge_messages_free(struct merge_messages *x)
{
	for (uint32_t i = 0; x && i < MERGE_INPUTS_MAX; i++)
		base_free(x->own[i]);
	for (size_t i = 0; x && i < x->nr_flows; i++)
		merge_flow_fini(&x->flow[i]);
	if (x) {
		struct base_map *maps[] = {&x->members, &x->ways, &x->requests};
		for (size_t i = 0; i < BASE_COUNT(maps); i++)
			base_map_fini(maps[i]);
		base_free(x->member);
		base_free(x->way);
		base_free(x->flow);
		base_free(x->request);
	}
	base_free(x);
	return NULL;
}
