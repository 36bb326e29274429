/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_mpi.c - MPI: messages, requests and collective operations as items in queues.
 *
 * A message is an item in the queue of its (communicator, source, destination), with its tag and its
 * number among those of this tag as key: messages of one tag do not overtake each other, so the
 * n-th that is sent is the n-th that was asked for. A receive that was posted is an item for the
 * sender, by the same key. A collective operation is one meeting of its communicator, the n-th of
 * each rank's: who comes last of those that are waited for leaves an item for each who waits.
 *
 * MPI's libraries spin: a call waits when what it is for is not there as it begins, whatever the
 * processor does meanwhile.
 */
#include "runtime/mpi/rules_mpi.h"

#include <string.h>

/* ---- tables ---------------------------------------------------------------------------------- */

static struct model_mpi *mpi_of(struct model *m)
{
	if (!m->known.mpi)
		m->known.mpi = base_alloc(sizeof *m->known.mpi);
	if (!m->known.mpi && m->status == BASE_OK)
		m->status = base_fail(m->err, BASE_ERR_NOMEM, "out of memory for MPI");
	return m->known.mpi;
}

void model_free_mpi(struct model *m)
{
	struct model_mpi *x = m->known.mpi;
	if (!x)
		return;
	for (size_t i = 0; i < x->nr_threads; i++) {
		base_free(x->thread[i].awaited);
		base_free(x->thread[i].needed);
	}
	struct base_map *maps[] = {&x->ranks, &x->members, &x->pairs, &x->channels, &x->requests,
		&x->meetings, &x->sent, &x->asked, &x->gone, &x->eager, &x->queues, &x->present,
		&x->endings};
	for (size_t i = 0; i < BASE_COUNT(maps); i++)
		base_map_fini(maps[i]);
	void *owned[] = {x->member, x->pair, x->channel, x->request, x->meeting, x->thread,
		x->ending, x->world, x};
	for (size_t i = 0; i < BASE_COUNT(owned); i++)
		base_free(owned[i]);
	m->known.mpi = NULL;
}

/* Of a thread that calls MPI; NULL: no memory. */
static struct mpi_thread *mpi_thread_of(struct model *m, const struct thread *t)
{
	struct model_mpi *x = mpi_of(m);
	size_t need = (size_t)t->stream + 1;
	if (!x || !model_grow(m, &x->thread, &x->thread_capacity, need, sizeof *x->thread))
		return NULL;
	if (x->nr_threads < need)
		x->nr_threads = need;
	return &x->thread[t->stream];
}

static struct mpi_member *mpi_member_of(struct model *m, const struct thread *t, uint32_t object)
{
	struct model_mpi *x = mpi_of(m);
	uint64_t i;
	if (x && base_map_get(&x->members, t->process, object, &i))
		return &x->member[i];
	model_count(m, TRACE_DIAG_ids_unknown);
	return NULL;
}

static uint32_t mpi_pair_of(struct model *m, uint32_t object, uint32_t source, uint32_t destination)
{
	struct model_mpi *x = m->known.mpi;
	uint64_t lo = (uint64_t)source << 32 | destination, i;
	if (base_map_get(&x->pairs, object, lo, &i))
		return (uint32_t)i;
	if (!model_grow(m, &x->pair, &x->pair_capacity, x->nr_pairs + 1, sizeof *x->pair))
		return NONE;
	i = x->nr_pairs++;
	x->pair[i] = (struct mpi_pair){.messages = NONE,
		.receivers = NONE,
		.object = object,
		.source = source,
		.destination = destination};
	model_put(m, &x->pairs, object, lo, i);
	return (uint32_t)i;
}

static uint32_t mpi_channel_of(
	struct model *m, uint32_t object, uint32_t source, uint32_t destination, uint32_t tag)
{
	struct model_mpi *x = m->known.mpi;
	uint64_t hi = (uint64_t)object << 32 | source, lo = (uint64_t)destination << 32 | tag, i;
	if (base_map_get(&x->channels, hi, lo, &i))
		return (uint32_t)i;
	uint32_t pair = mpi_pair_of(m, object, source, destination);
	if (pair == NONE || !model_grow(m, &x->channel, &x->channel_capacity, x->nr_channels + 1,
				    sizeof *x->channel))
		return NONE;
	i = x->nr_channels++;
	x->channel[i] = (struct mpi_channel){.pair = pair,
		.tag = tag,
		.object = object,
		.source = source,
		.destination = destination};
	model_put(m, &x->channels, hi, lo, i);
	return (uint32_t)i;
}

static uint32_t mpi_make_queue(struct model *m, uint32_t object)
{
	return model_make_queue(
		m, 0, object, TRACE_OBJECT_communicator, model_class_of(m, object, 0), GRAPH_FIFO);
}

static uint32_t mpi_messages(struct model *m, const struct mpi_channel *c)
{
	struct mpi_pair *p = &m->known.mpi->pair[c->pair];
	if (p->messages == NONE)
		p->messages = mpi_make_queue(m, c->object);
	return p->messages;
}

static uint32_t mpi_receivers(struct model *m, const struct mpi_channel *c)
{
	struct mpi_pair *p = &m->known.mpi->pair[c->pair];
	if (p->receivers == NONE)
		p->receivers = mpi_make_queue(m, c->object);
	return p->receivers;
}

static uint64_t mpi_key(const struct mpi_channel *c, uint32_t number)
{
	return (uint64_t)c->tag << 32 | number;
}

/* ---- states ---------------------------------------------------------------------------------- */

/* Starting and ending MPI is work of other programs', too, and sleeps. */
static bool mpi_is_environment(const struct mpi_thread *k)
{
	return k->op <= TRACE_MPI_Finalize || k->op == TRACE_MPI_Abort;
}

static uint32_t mpi_state(
	struct model *m, const struct mpi_thread *k, enum model_cause cause, uint32_t peer)
{
	return model_make_state(m, cause, NONE, k->object ? model_class_of(m, k->object, 0) : NONE,
		k->site, (peer <= MPI_DETAIL_RANK_MAX ? peer : 0) << MPI_DETAIL_OP_BITS | k->op);
}

static enum model_cause mpi_wait_cause(uint32_t op, uint32_t peer, bool sends)
{
	if (op <= TRACE_MPI_Init_thread)
		return MODEL_CAUSE_mpi_start;
	if (op == TRACE_MPI_Abort || (op == TRACE_MPI_Finalize && !peer))
		return MODEL_CAUSE_mpi_end;
	if (op < TRACE_MPI_Send || op > TRACE_MPI_Testsome)
		return MODEL_CAUSE_mpi_meeting;
	if (!peer)
		return MODEL_CAUSE_mpi_messages;
	return sends ? MODEL_CAUSE_mpi_receiver : MODEL_CAUSE_mpi_message;
}

static uint32_t mpi_wait_state(
	struct model *m, const struct mpi_thread *k, uint32_t peer, bool sends)
{
	return mpi_state(m, k, mpi_wait_cause(k->op, peer, sends), peer);
}

static uint32_t mpi_busy_state(struct model *m, const struct mpi_thread *k)
{
	return mpi_is_environment(k) ? mpi_wait_state(m, k, 0, false)
				     : mpi_state(m, k, MODEL_CAUSE_mpi_call, 0);
}

/* ---- what a request needs -------------------------------------------------------------------- */

static bool mpi_is_eager(struct model *m, const struct thread *t, const struct mpi_request *q)
{
	uint64_t most;
	return q->op != TRACE_MPI_Ssend && q->op != TRACE_MPI_Issend &&
	       q->op != TRACE_MPI_Ssend_init &&
	       (q->op == TRACE_MPI_Bsend || q->op == TRACE_MPI_Ibsend ||
		       (base_map_get(&m->known.mpi->eager, t->process, 0, &most) && q->n <= most));
}

/* Does it have all that it needs? Else what it waits for: *ret. */
static bool mpi_is_ready(struct model *m, const struct thread *t, const struct mpi_request *q,
	struct mpi_needed *ret)
{
	struct model_mpi *x = m->known.mpi;
	uint64_t unused;
	*ret = (struct mpi_needed){.queue = NONE};
	if (!q->is_active)
		return true;
	if (q->kind == MPI_REQUEST_meeting) {
		const struct mpi_meeting *g = &x->meeting[q->meeting];
		if (q->is_last || g->complete)
			return true;
		*ret = (struct mpi_needed){.queue = g->queue};
		return false;
	}
	if (q->is_wild)
		return false;
	const struct mpi_channel *c = &x->channel[q->channel];
	if (q->kind == MPI_REQUEST_receive) {
		if (base_map_get(&x->sent, q->channel, q->number, &unused))
			return true;
		*ret = (struct mpi_needed){.queue = mpi_messages(m, c), .peer = c->source + 1};
		return false;
	}
	if (mpi_is_eager(m, t, q) || base_map_get(&x->asked, q->channel, q->number, &unused))
		return true;
	*ret = (struct mpi_needed){
		.queue = mpi_receivers(m, c), .peer = c->destination + 1, .sends = true};
	return false;
}

/* (A rank is known before it sends or receives anything.) */
static bool mpi_was_recorded(const struct model *m, uint32_t object, uint32_t rank)
{
	uint64_t process;
	return base_map_get(&m->known.mpi->present, object, rank, &process);
}

static void mpi_need(struct model *m, struct mpi_thread *k, struct mpi_needed what)
{
	/* (a request that is used again completes for nobody) */
	if (k &&
		model_grow(m, &k->needed, &k->needed_capacity, k->nr_needed + 1, sizeof *k->needed))
		k->needed[k->nr_needed++] = what;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static void mpi_begin(
	struct mpi_thread *k, uint64_t time_ns, uint32_t object, uint32_t site, uint64_t op)
{
	k->is_in_call = true;
	k->waits = k->lacks = false;
	k->begin_ns = time_ns;
	k->object = object;
	k->site = site;
	k->op = op < TRACE_MPI_NR ? (uint32_t)op : 0;
	k->nr_awaited = k->nr_needed = 0;
	k->own = (struct mpi_request){0};
}

/* From now it waits for that, or is at work in MPI. */
static void mpi_call_begins(struct model *m, struct thread *t, struct mpi_thread *k,
	uint64_t time_ns, bool waits, const struct mpi_needed *what)
{
	k->waits = waits;
	k->state = waits ? mpi_wait_state(m, k, what->peer, what->sends) : mpi_busy_state(m, k);
	if (!waits && !mpi_is_environment(k))
		model_verb(m, t, GRAPH_VERB_state, time_ns, 0, 0, k->state, 0);
	else if (!waits || what->queue == NONE)
		model_verb(m, t, GRAPH_VERB_wait, time_ns, 0, 0, k->state, 0);
	else
		model_verb(m, t, GRAPH_VERB_wait_empty, time_ns, what->queue, 1, k->state, 0);
}

static void mpi_own_call_begins(
	struct model *m, struct thread *t, struct mpi_thread *k, uint64_t time_ns)
{
	struct mpi_needed what;
	bool ready = mpi_is_ready(m, t, &k->own, &what);
	mpi_call_begins(m, t, k, time_ns, !ready, &what);
}

static void mpi_count_wait(struct model_mpi *x, const struct mpi_needed *last, uint64_t waited_ns)
{
	struct model_mpi_traffic *traffic = last->pair ? &x->pair[last->pair - 1].traffic : NULL;
	if (!traffic)
		return;
	++*(last->sends ? &traffic->nr_late_receivers : &traffic->nr_late_senders);
	*(last->sends ? &traffic->late_receivers_ns : &traffic->late_senders_ns) += waited_ns;
}

/* What it has got; the last to come is what it waited for. */
static void mpi_leave(struct model *m, struct thread *t, struct mpi_thread *k, uint64_t time_ns)
{
	const struct mpi_needed *last = NULL;
	for (size_t i = 0; i < k->nr_needed; i++)
		if (!last || k->needed[i].available_ns > last->available_ns)
			last = &k->needed[i];
	bool waited = k->waits && last && last->available_ns > k->begin_ns;
	bool unseen = k->waits && !last && k->lacks;
	uint32_t named = waited                ? mpi_wait_state(m, k, last->peer, last->sends)
			 : k->waits && !unseen ? mpi_busy_state(m, k)
					       : k->state;
	if (named != k->state)
		model_rename(m, t, time_ns, named);
	if (waited)
		mpi_count_wait(m->known.mpi, last, last->available_ns - k->begin_ns);
	if (mpi_is_environment(k)) /* who had the processor before was not what it slept for */
		t->cpu.processor_queue = NONE;
	t->run_state = t->nr_held ? t->run_state : model_run_state(m, t, k->site);
	uint32_t state = model_current_state(t);
	for (size_t i = 0; i < k->nr_needed && m->status == BASE_OK; i++) {
		bool more = i + 1 < k->nr_needed;
		m->item_key = k->needed[i].key;
		if (more)
			model_verb_of(m, model_acting(t), GRAPH_VERB_dequeue, time_ns,
				k->needed[i].queue, 1, state, GRAPH_KEYED | GRAPH_MORE);
		else
			model_verb(m, t, GRAPH_VERB_dequeue, time_ns, k->needed[i].queue, 1, state,
				GRAPH_KEYED | (waited ? 0 : GRAPH_EXPLAINED));
		m->item_key = 0;
	}
	if (!k->nr_needed)
		model_verb(
			m, t, GRAPH_VERB_state, time_ns, 0, 0, state, unseen ? 0 : GRAPH_EXPLAINED);
	k->is_in_call = k->waits = false;
}

/* ---- communicators --------------------------------------------------------------------------- */

/* Is it a program that only starts ranks? Then the run is over when they are. */
static bool mpi_is_launcher(const struct model *m, uint32_t process)
{
	static const char *const names[] = {"mpirun", "mpiexec", "orterun", "prterun", "prun",
		"mpirun.openmpi", "mpiexec.openmpi", "mpirun.mpich", "mpiexec.mpich",
		"mpiexec.hydra", "srun"};
	const char *name = trace_text_of(m->defs, trace_def_process(m->defs, process)->name);
	for (size_t i = 0; i < BASE_COUNT(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

void model_rule_mpi_comm(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_mpi_comm *c = &r->u.mpi_comm;
	struct model_mpi *x = mpi_of(m);
	uint64_t unused;
	if (!x || !model_object(m, c->object) || c->rank >= c->size || c->size > UINT32_MAX)
		return;
	x->is_launched |= c->world && mpi_is_launcher(m, m->run.root_process);
	if (c->world)
		model_put(m, &x->ranks, t->process, 0, c->rank + 1);
	if (base_map_get(&x->members, t->process, c->object, &unused) ||
		!model_grow(
			m, &x->member, &x->member_capacity, x->nr_members + 1, sizeof *x->member))
		return;
	x->member[x->nr_members] =
		(struct mpi_member){.rank = (uint32_t)c->rank, .size = (uint32_t)c->size};
	model_put(m, &x->members, t->process, c->object, x->nr_members++);
	model_put(m, &x->present, c->object, c->rank, t->process);
	if (c->world)
		model_mpi_in_world(m, c);
}

/* ---- sends and receives ---------------------------------------------------------------------- */

static void mpi_put(struct model *m, struct thread *t, uint64_t time_ns, uint32_t queue,
	uint64_t key, int64_t n)
{
	m->item_key = key;
	model_verb(m, t, GRAPH_VERB_enqueue, time_ns, queue, n, t->graph_state, 0);
	m->item_key = 0;
}

static void mpi_send(struct model *m, struct thread *t, struct mpi_request *q, uint64_t time_ns)
{
	struct model_mpi *x = m->known.mpi;
	q->channel = mpi_channel_of(m, q->object, q->rank, (uint32_t)q->peer, (uint32_t)q->tag);
	if (q->channel == NONE)
		return;
	struct mpi_channel *c = &x->channel[q->channel];
	q->number = ++c->nr_sent;
	q->is_active = true;
	x->pair[c->pair].traffic.nr_messages++;
	x->pair[c->pair].traffic.nr_bytes += q->n;
	mpi_put(m, t, time_ns, mpi_messages(m, c), mpi_key(c, q->number), 1);
	model_put(m, &x->sent, q->channel, q->number, time_ns);
}

static void mpi_ask(struct model *m, struct thread *t, struct mpi_request *q, uint64_t time_ns)
{
	struct model_mpi *x = m->known.mpi;
	q->is_active = true;
	q->is_wild = q->peer < 0 || q->tag < 0;
	if (q->is_wild)
		return;
	q->channel = mpi_channel_of(m, q->object, (uint32_t)q->peer, q->rank, (uint32_t)q->tag);
	if (q->channel == NONE) {
		q->is_active = false;
		return;
	}
	struct mpi_channel *c = &x->channel[q->channel];
	q->number = ++c->nr_asked;
	if (base_map_remove(&x->gone, q->channel, q->number))
		return;
	mpi_put(m, t, time_ns, mpi_receivers(m, c), mpi_key(c, q->number), 1);
	model_put(m, &x->asked, q->channel, q->number, time_ns);
}

static bool mpi_is_template(uint64_t op)
{
	return op == TRACE_MPI_Send_init || op == TRACE_MPI_Ssend_init ||
	       op == TRACE_MPI_Rsend_init || op == TRACE_MPI_Bsend_init ||
	       op == TRACE_MPI_Recv_init;
}

static void mpi_complete(struct model *m, struct thread *t, struct mpi_thread *k,
	struct mpi_request *q, const struct trace_mpi_done *d);

/* Under that name in its process. Of one that has that name still nobody waited: it was complete
 * when its call returned. */
static struct mpi_request *mpi_request_new(
	struct model *m, struct thread *t, uint64_t name, const struct mpi_request *q)
{
	static const struct trace_mpi_done early = {.peer = -1, .tag = -1};
	struct model_mpi *x = m->known.mpi;
	uint64_t i;
	if (base_map_get(&x->requests, t->process, name, &i)) {
		if (x->request[i].is_active && x->request[i].kind == MPI_REQUEST_send)
			mpi_complete(m, t, NULL, &x->request[i], &early);
	} else {
		if (!model_grow(m, &x->request, &x->request_capacity, x->nr_requests + 1,
			    sizeof *x->request))
			return NULL;
		i = x->nr_requests++;
		model_put(m, &x->requests, t->process, name, i);
	}
	x->request[i] = *q;
	return &x->request[i];
}

static struct mpi_request *mpi_request_of(struct model *m, const struct thread *t, uint64_t name)
{
	uint64_t i;
	return m->known.mpi && base_map_get(&m->known.mpi->requests, t->process, name, &i)
		       ? &m->known.mpi->request[i]
		       : NULL;
}

static void mpi_message(struct model *m, struct thread *t, uint64_t time_ns,
	const struct trace_mpi_send *s, enum mpi_request_kind kind)
{
	const struct mpi_member *member = mpi_member_of(m, t, s->object);
	struct mpi_thread *k = mpi_thread_of(m, t);
	bool sends = kind == MPI_REQUEST_send;
	if (!member || !k || (sends && s->peer < 0))
		return;
	struct mpi_request asked = {.kind = kind,
		.object = s->object,
		.site = s->site,
		.op = (uint32_t)s->op,
		.rank = member->rank,
		.peer = s->peer,
		.tag = s->tag,
		.n = s->n};
	struct mpi_request *q = &k->own;
	if (s->request)
		q = mpi_request_new(m, t, s->request, &asked);
	else
		mpi_begin(k, time_ns, s->object, s->site, s->op);
	if (!q)
		return;
	*q = asked;
	if (mpi_is_template(s->op))
		return;
	if (sends)
		mpi_send(m, t, q, time_ns);
	else
		mpi_ask(m, t, q, time_ns);
	if (!s->request)
		mpi_own_call_begins(m, t, k, time_ns);
}

void model_rule_mpi_send(struct model *m, struct thread *t, const struct trace_record *r)
{
	mpi_message(m, t, r->time_ns, &r->u.mpi_send, MPI_REQUEST_send);
}

void model_rule_mpi_receive(struct model *m, struct thread *t, const struct trace_record *r)
{
	struct trace_mpi_send s; /* of one shape */
	_Static_assert(sizeof s == sizeof r->u.mpi_receive, "of one shape");
	memcpy(&s, &r->u.mpi_receive, sizeof s);
	mpi_message(m, t, r->time_ns, &s, MPI_REQUEST_receive);
}

void model_rule_mpi_start(struct model *m, struct thread *t, const struct trace_record *r)
{
	struct mpi_request *q = mpi_request_of(m, t, r->u.mpi_start.request);
	if (!q || q->is_active)
		return;
	if (q->kind == MPI_REQUEST_send)
		mpi_send(m, t, q, r->time_ns);
	else if (q->kind == MPI_REQUEST_receive)
		mpi_ask(m, t, q, r->time_ns);
}

/* ---- collective operations ------------------------------------------------------------------- */

static enum mpi_needs mpi_needs_of(uint64_t op)
{
	static const uint8_t needs[TRACE_MPI_NR] = {
		[TRACE_MPI_Bcast] = MPI_NEEDS_rest,
		[TRACE_MPI_Ibcast] = MPI_NEEDS_rest,
		[TRACE_MPI_Scatter] = MPI_NEEDS_rest,
		[TRACE_MPI_Scatterv] = MPI_NEEDS_rest,
		[TRACE_MPI_Iscatter] = MPI_NEEDS_rest,
		[TRACE_MPI_Reduce] = MPI_NEEDS_root,
		[TRACE_MPI_Ireduce] = MPI_NEEDS_root,
		[TRACE_MPI_Gather] = MPI_NEEDS_root,
		[TRACE_MPI_Gatherv] = MPI_NEEDS_root,
		[TRACE_MPI_Igather] = MPI_NEEDS_root,
		[TRACE_MPI_Scan] = MPI_NEEDS_lower,
		[TRACE_MPI_Exscan] = MPI_NEEDS_lower,
	};
	return op < TRACE_MPI_NR ? (enum mpi_needs)needs[op] : MPI_NEEDS_all;
}

static uint32_t mpi_meeting_of(struct model *m, uint32_t object, uint64_t number, uint32_t size)
{
	struct model_mpi *x = m->known.mpi;
	uint64_t i, queue;
	if (base_map_get(&x->meetings, object, number, &i))
		return (uint32_t)i;
	if (!base_map_get(&x->queues, object, 0, &queue)) {
		queue = mpi_make_queue(m, object);
		model_put(m, &x->queues, object, 0, queue);
	}
	if (x->free_meeting) {
		i = x->free_meeting - 1;
		x->free_meeting = x->meeting[i].size;
	} else if (model_grow(m, &x->meeting, &x->meeting_capacity, x->nr_meetings + 1,
			   sizeof *x->meeting)) {
		i = x->nr_meetings++;
	} else {
		return NONE;
	}
	x->meeting[i] =
		(struct mpi_meeting){.number = number, .size = size, .queue = (uint32_t)queue};
	model_put(m, &x->meetings, object, number, i);
	return (uint32_t)i;
}

/* One of those that the others, or the root, wait for. */
static bool mpi_is_awaited(enum mpi_needs needs, bool is_root)
{
	return needs == MPI_NEEDS_all || (needs == MPI_NEEDS_rest && is_root) ||
	       (needs == MPI_NEEDS_root && !is_root);
}

static bool mpi_awaits(enum mpi_needs needs, bool is_root)
{
	return needs == MPI_NEEDS_all || (needs == MPI_NEEDS_rest && !is_root) ||
	       (needs == MPI_NEEDS_root && is_root);
}

static void mpi_meet(struct model *m, struct thread *t, uint64_t time_ns, struct mpi_request *q)
{
	struct mpi_meeting *g = &m->known.mpi->meeting[q->meeting];
	enum mpi_needs needs = mpi_needs_of(q->op);
	bool is_root = q->peer == (int64_t)q->rank;
	uint32_t nr_awaited = needs == MPI_NEEDS_all    ? g->size
			      : needs == MPI_NEEDS_root ? g->size - 1
							: 1;
	uint32_t nr_takers = needs == MPI_NEEDS_root ? 1 : g->size - 1;
	q->is_active = true;
	q->is_last = !mpi_awaits(needs, is_root);
	if (!mpi_is_awaited(needs, is_root) || ++g->arrived < nr_awaited)
		return;
	g->complete = true;
	g->complete_ns = time_ns;
	g->last = q->rank;
	q->is_last = true;
	if (nr_takers)
		mpi_put(m, t, time_ns, g->queue, g->number, nr_takers);
}

/* Everybody has left: its place may be another's. */
static void mpi_leave_meeting(struct model *m, const struct mpi_request *q)
{
	struct model_mpi *x = m->known.mpi;
	struct mpi_meeting *g = &x->meeting[q->meeting];
	if (++g->left < g->size)
		return;
	base_map_remove(&x->meetings, q->object, g->number);
	g->size = x->free_meeting;
	x->free_meeting = q->meeting + 1;
}

void model_rule_mpi_collective(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_mpi_collective *c = &r->u.mpi_collective;
	struct mpi_member *member = mpi_member_of(m, t, c->object);
	struct mpi_thread *k = mpi_thread_of(m, t);
	if (!member || !k)
		return;
	struct mpi_request asked = {.kind = MPI_REQUEST_meeting,
		.object = c->object,
		.site = c->site,
		.op = (uint32_t)c->op,
		.rank = member->rank,
		.peer = c->root,
		.n = c->n};
	asked.meeting = mpi_meeting_of(m, c->object, ++member->nr_meetings, member->size);
	struct mpi_request *q = &k->own;
	if (asked.meeting == NONE)
		return;
	if (c->request)
		q = mpi_request_new(m, t, c->request, &asked);
	else
		mpi_begin(k, r->time_ns, c->object, c->site, c->op);
	if (!q)
		return;
	*q = asked;
	mpi_meet(m, t, r->time_ns, q);
	if (!c->request)
		mpi_own_call_begins(m, t, k, r->time_ns);
}

/* ---- completion ------------------------------------------------------------------------------ */

static void mpi_received(struct model *m, struct mpi_thread *k, struct mpi_request *q,
	const struct trace_mpi_done *d)
{
	struct model_mpi *x = m->known.mpi;
	uint64_t sent_ns;
	if (q->is_wild) {
		if (d->peer < 0 || d->tag < 0)
			return;
		q->channel =
			mpi_channel_of(m, q->object, (uint32_t)d->peer, q->rank, (uint32_t)d->tag);
		if (q->channel == NONE)
			return;
		q->number = ++x->channel[q->channel].nr_asked;
		base_map_remove(&x->gone, q->channel, q->number);
	}
	struct mpi_channel *c = &x->channel[q->channel];
	if (k)
		k->lacks |= !mpi_was_recorded(m, c->object, c->source);
	if (!base_map_get(&x->sent, q->channel, q->number, &sent_ns)) {
		/* cancelled: the next message is for the next receive */
		c->nr_asked -= c->nr_asked == q->number;
		return;
	}
	base_map_remove(&x->sent, q->channel, q->number);
	mpi_need(m, k,
		(struct mpi_needed){.queue = mpi_messages(m, c),
			.key = mpi_key(c, q->number),
			.available_ns = sent_ns,
			.peer = c->source + 1,
			.pair = c->pair + 1});
}

/* Is complete: its receiver was there, or it needed none. */
static void mpi_was_sent(
	struct model *m, struct thread *t, struct mpi_thread *k, const struct mpi_request *q)
{
	struct model_mpi *x = m->known.mpi;
	const struct mpi_channel *c = &x->channel[q->channel];
	uint64_t asked_ns, most = 0;
	if (k)
		k->lacks |= !mpi_was_recorded(m, c->object, c->destination);
	if (base_map_get(&x->asked, q->channel, q->number, &asked_ns)) {
		base_map_remove(&x->asked, q->channel, q->number);
		if (k)
			mpi_need(m, k,
				(struct mpi_needed){.queue = mpi_receivers(m, c),
					.key = mpi_key(c, q->number),
					.available_ns = asked_ns,
					.peer = c->destination + 1,
					.pair = c->pair + 1,
					.sends = true});
		return;
	}
	if (q->number <= c->nr_asked) /* (a receive from anybody) */
		return;
	model_put(m, &x->gone, q->channel, q->number, 1);
	base_map_get(&x->eager, t->process, 0, &most);
	if (q->n > most || !most)
		model_put(m, &x->eager, t->process, 0, q->n);
}

static void mpi_complete(struct model *m, struct thread *t, struct mpi_thread *k,
	struct mpi_request *q, const struct trace_mpi_done *d)
{
	if (!q->is_active)
		return;
	q->is_active = false;
	if (q->kind == MPI_REQUEST_send) {
		mpi_was_sent(m, t, k, q);
	} else if (q->kind == MPI_REQUEST_receive) {
		mpi_received(m, k, q, d);
	} else if (q->kind == MPI_REQUEST_meeting) {
		const struct mpi_meeting *g = &m->known.mpi->meeting[q->meeting];
		if (k)
			k->lacks |= !g->complete;
		if (g->complete && !q->is_last)
			mpi_need(m, k,
				(struct mpi_needed){.queue = g->queue,
					.key = g->number,
					.available_ns = g->complete_ns,
					.peer = g->last + 1});
		mpi_leave_meeting(m, q);
	}
}

void model_rule_mpi_done(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_mpi_done *d = &r->u.mpi_done;
	struct mpi_thread *k = mpi_thread_of(m, t);
	if (!k)
		return;
	struct mpi_request *q = d->request ? mpi_request_of(m, t, d->request) : &k->own;
	if (!k->is_in_call) { /* a test that found it complete */
		if (!q)
			return;
		mpi_begin(k, r->time_ns, q->object, q->site, q->op);
		k->state = t->graph_state;
	}
	if (q)
		mpi_complete(m, t, k, q, d);
}

/* It begins to end MPI, well or not. */
static void mpi_note_ending(struct model *m, const struct thread *t, const struct trace_mpi_wait *w)
{
	bool aborts = w->op == TRACE_MPI_Abort;
	struct mpi_ending *e =
		aborts || w->op == TRACE_MPI_Finalize ? model_mpi_ending_of(m, t->process) : NULL;
	if (!e)
		return;
	e->finalized |= !aborts;
	e->abort_site = aborts ? w->site : e->abort_site;
}

void model_rule_mpi_wait(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_mpi_wait *w = &r->u.mpi_wait;
	struct mpi_thread *k = mpi_thread_of(m, t);
	struct mpi_needed what, first = {.queue = NONE};
	bool any = w->op == TRACE_MPI_Waitany || w->op == TRACE_MPI_Waitsome, waits = false;
	if (!k)
		return;
	const struct mpi_request *q = w->request ? mpi_request_of(m, t, w->request) : NULL;
	mpi_note_ending(m, t, w);
	/* (all of one call have one time) */
	if (!k->is_in_call || k->begin_ns != r->time_ns)
		mpi_begin(k, r->time_ns, q ? q->object : 0, w->site, w->op);
	if (w->request && model_grow(m, &k->awaited, &k->awaited_capacity, k->nr_awaited + 1,
				  sizeof *k->awaited))
		k->awaited[k->nr_awaited++] = w->request;
	if (w->more)
		return;
	for (size_t i = 0; i < k->nr_awaited; i++) {
		q = mpi_request_of(m, t, k->awaited[i]);
		bool ready = !q || mpi_is_ready(m, t, q, &what);
		if (!ready && !waits)
			first = what;
		waits = (waits && !(any && ready)) || !ready;
		if (any && ready) {
			waits = false;
			break;
		}
	}
	mpi_call_begins(m, t, k, r->time_ns, waits, &first);
}

void model_rule_mpi_return(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_mpi_return *v = &r->u.mpi_return;
	struct mpi_thread *k = mpi_thread_of(m, t);
	static const struct trace_mpi_done itself = {.peer = -1, .tag = -1};
	if (!k || !k->is_in_call)
		return;
	if (k->own.is_active)
		mpi_complete(m, t, k, &k->own, &itself);
	k->site = v->site;
	mpi_leave(m, t, k, r->time_ns);
}

/* ---- whose path it is ------------------------------------------------------------------------ */

/* (Of ranks that were recorded each for itself none is more important than the others.) */
bool model_is_mpi_launched(const struct model *m)
{
	return m->known.mpi &&
	       (m->known.mpi->is_launched ||
		       (m->run.is_merged && model_mpi_rank(m, m->run.root_process) >= 0));
}

int64_t model_mpi_rank(const struct model *m, uint32_t process)
{
	uint64_t rank;
	return m->known.mpi && base_map_get(&m->known.mpi->ranks, process, 0, &rank)
		       ? (int64_t)rank - 1
		       : -1;
}

void model_mpi_thread_begins(struct model *m, const struct thread *t, uint32_t leader)
{
	const struct model_mpi *x = m->known.mpi;
	bool begins = x && leader < x->nr_threads && x->thread[leader].is_in_call &&
		      x->thread[leader].op <= TRACE_MPI_Init_thread;
	struct mpi_thread *k = begins ? mpi_thread_of(m, t) : NULL;
	if (k)
		k->is_library = true;
}

bool model_is_beside_mpi(const struct model *m, const struct thread *t)
{
	const struct model_mpi *x = m->known.mpi;
	if (!x)
		return false;
	return (t->stream < x->nr_threads && x->thread[t->stream].is_library) ||
	       (x->is_launched && model_mpi_rank(m, t->process) < 0);
}
