/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_mpi.c - MPI: messages, requests and collective operations as items in queues.
 *
 * A message is an item in the queue of its (communicator, source, destination), with its tag and its
 * number among those of this tag as key: messages of one tag do not overtake each other, so the
 * n-th that is sent is the n-th that was asked for. A receive that was posted is an item for the
 * sender, by the same key. A collective operation is one meeting of its communicator, the n-th of
 * each rank's: the last one of those that are waited for leaves an item for each that waits.
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
	for (size_t i = 0; i < x->nr_meetings; i++)
		base_free(x->meeting[i].come);
	struct base_map *maps[] = {&x->message.bytes, &x->message.probed, &x->ranks, &x->members,
		&x->pairs, &x->channels, &x->requests, &x->meetings, &x->message.sent,
		&x->message.asked, &x->message.gone, &x->eager, &x->queues, &x->present,
		&x->endings, &x->links.moved_of};
	for (size_t i = 0; i < BASE_COUNT(maps); i++)
		base_map_fini(maps[i]);
	void *owned[] = {x->member, x->pair, x->channel, x->request, x->meeting, x->thread,
		x->ending, x->world, x->passive.call, x->links.moved, x};
	for (size_t i = 0; i < BASE_COUNT(owned); i++)
		base_free(owned[i]);
	m->known.mpi = NULL;
}

/* Of a thread that calls MPI; NULL: no memory. */
struct mpi_thread *model_mpi_thread_of(struct model *m, const struct thread *t)
{
	struct model_mpi *x = mpi_of(m);
	size_t need = (size_t)t->stream + 1;
	if (!x || !model_grow(m, &x->thread, &x->thread_capacity, need, sizeof *x->thread))
		return NULL;
	if (x->nr_threads < need)
		x->nr_threads = need;
	return &x->thread[t->stream];
}

struct mpi_member *model_mpi_member_of(struct model *m, const struct thread *t, uint32_t object)
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

uint32_t model_mpi_make_queue(struct model *m, uint32_t object)
{
	return model_make_queue(
		m, 0, object, TRACE_OBJECT_communicator, model_class_of(m, object, 0), GRAPH_FIFO);
}

static uint32_t mpi_messages(struct model *m, const struct mpi_channel *c)
{
	struct mpi_pair *p = &m->known.mpi->pair[c->pair];
	if (p->messages == NONE)
		p->messages = model_mpi_make_queue(m, c->object);
	return p->messages;
}

static uint32_t mpi_receivers(struct model *m, const struct mpi_channel *c)
{
	struct mpi_pair *p = &m->known.mpi->pair[c->pair];
	if (p->receivers == NONE)
		p->receivers = model_mpi_make_queue(m, c->object);
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

static bool mpi_is_of_messages(uint32_t op)
{
	return (op >= TRACE_MPI_Send && op <= TRACE_MPI_Testsome) ||
	       (op >= TRACE_MPI_Probe && op <= TRACE_MPI_Cancel) ||
	       (op >= TRACE_MPI_Neighbor_allgather && op <= TRACE_MPI_Ineighbor_alltoallw);
}

/* It only looks; it was told because it found nothing, and was called again and again. */
static bool mpi_polls(uint64_t op)
{
	return (op >= TRACE_MPI_Test && op <= TRACE_MPI_Testsome) || op == TRACE_MPI_Iprobe ||
	       op == TRACE_MPI_Improbe || op == TRACE_MPI_Request_get_status ||
	       op == TRACE_MPI_Win_test;
}

/* It looks at a message, which stays; or it has it kept for one receive. */
static bool mpi_probes(uint64_t op)
{
	return op >= TRACE_MPI_Probe && op <= TRACE_MPI_Improbe;
}

static bool mpi_keeps(uint64_t op)
{
	return op == TRACE_MPI_Mprobe || op == TRACE_MPI_Improbe;
}

static enum model_cause mpi_wait_cause(uint32_t op, uint32_t peer, bool sends)
{
	if (op <= TRACE_MPI_Init_thread)
		return MODEL_CAUSE_mpi_start;
	if (op == TRACE_MPI_Abort || (op == TRACE_MPI_Finalize && !peer))
		return MODEL_CAUSE_mpi_end;
	if (!mpi_is_of_messages(op))
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
		if (model_mpi_has_met(m, q))
			return true;
		*ret = (struct mpi_needed){.queue = x->meeting[q->meeting].queue};
		return false;
	}
	if (q->is_wild)
		return false;
	const struct mpi_channel *c = &x->channel[q->channel];
	if (q->kind == MPI_REQUEST_receive) {
		if (base_map_get(&x->message.sent, q->channel, q->number, &unused) ||
			base_map_get(&x->message.probed, q->channel, q->number, &unused))
			return true;
		*ret = (struct mpi_needed){.queue = mpi_messages(m, c), .peer = c->source + 1};
		return false;
	}
	if (mpi_is_eager(m, t, q) ||
		base_map_get(&x->message.asked, q->channel, q->number, &unused))
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

void model_mpi_need(struct model *m, struct mpi_thread *k, struct mpi_needed what)
{
	/* (a request that is used again completes for nobody) */
	if (k &&
		model_grow(m, &k->needed, &k->needed_capacity, k->nr_needed + 1, sizeof *k->needed))
		k->needed[k->nr_needed++] = what;
}

/* ---- a call ---------------------------------------------------------------------------------- */

void model_mpi_begin(struct model *m, struct thread *t, struct mpi_thread *k, uint64_t time_ns,
	uint32_t object, uint32_t site, uint64_t op)
{
	model_mpi_target_enters(m, t, time_ns);
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
void model_mpi_call_begins(struct model *m, struct thread *t, struct mpi_thread *k,
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

void model_mpi_own_call_begins(
	struct model *m, struct thread *t, struct mpi_thread *k, uint64_t time_ns)
{
	struct mpi_needed what;
	bool ready = mpi_is_ready(m, t, &k->own, &what);
	model_mpi_call_begins(m, t, k, time_ns, !ready, &what);
}

static void mpi_count_wait(struct model_mpi *x, const struct mpi_needed *last, uint64_t waited_ns)
{
	struct model_mpi_traffic *traffic = last->pair ? &x->pair[last->pair - 1].traffic : NULL;
	if (!traffic)
		return;
	++*(last->sends ? &traffic->nr_late_receivers : &traffic->nr_late_senders);
	*(last->sends ? &traffic->late_receivers_ns : &traffic->late_senders_ns) += waited_ns;
}

/* (Where one call of another rank both sends and asks, it is the message that matters.) */
static bool mpi_is_later(const struct mpi_needed *a, const struct mpi_needed *b)
{
	return a->available_ns != b->available_ns ? a->available_ns > b->available_ns
						  : b->sends && !a->sends;
}

/* What it has got; the last to come is what it waited for. */
static void mpi_leave(struct model *m, struct thread *t, struct mpi_thread *k, uint64_t time_ns)
{
	const struct mpi_needed *last = NULL;
	for (size_t i = 0; i < k->nr_needed; i++)
		if (!last || mpi_is_later(&k->needed[i], last))
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
	if (waited && last->pair && !last->sends && k->nr_needed == 1)
		model_mpi_note_delay(m, last->nr_bytes, time_ns - last->available_ns);
	/* (whoever comes last to a meeting has the network's part of it to itself) */
	if (!waited && !k->waits && k->own.kind == MPI_REQUEST_meeting)
		model_mpi_note_moved(m, k->state, k->own.n, 0, time_ns - k->begin_ns);
	else if (waited && !last->sends)
		model_mpi_note_moved(m, m->made.queue[last->queue].latency_state, last->nr_bytes, 0,
			(time_ns - last->available_ns) / (last->nr_alike ? last->nr_alike : 1));
	else if (last && last->pair && !last->sends && !k->waits)
		model_mpi_note_moved(m, k->state, last->nr_bytes,
			k->begin_ns - last->available_ns + 1, time_ns - k->begin_ns);
	if (!k->waits && k->op >= TRACE_MPI_Send && k->op <= TRACE_MPI_Bsend)
		model_mpi_note_send(m, time_ns - k->begin_ns);
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

void model_mpi_put(struct model *m, struct thread *t, uint64_t time_ns, uint32_t queue,
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
	x->pair[c->pair].traffic.nr_messages += mpi_is_of_messages(q->op);
	x->pair[c->pair].traffic.nr_bytes += q->n;
	model_mpi_put(m, t, time_ns, mpi_messages(m, c), mpi_key(c, q->number), 1);
	model_put(m, &x->message.sent, q->channel, q->number, time_ns);
	model_put(m, &x->message.bytes, q->channel, q->number, q->n);
}

/* The next that is received. (What was kept for one receive is no other's.) */
static void mpi_number(struct mpi_channel *c, struct mpi_request *q)
{
	q->number = ++c->nr_asked;
	c->nr_kept -= c->nr_kept && (q->op == TRACE_MPI_Mrecv || q->op == TRACE_MPI_Imrecv);
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
	if (mpi_probes(q->op)) {
		q->number = c->nr_asked + c->nr_kept + 1;
		return;
	}
	mpi_number(c, q);
	if (base_map_remove(&x->message.gone, q->channel, q->number))
		return;
	model_mpi_put(m, t, time_ns, mpi_receivers(m, c), mpi_key(c, q->number), 1);
	model_put(m, &x->message.asked, q->channel, q->number, time_ns);
}

static bool mpi_is_template(uint64_t op)
{
	return op == TRACE_MPI_Send_init || op == TRACE_MPI_Ssend_init ||
	       op == TRACE_MPI_Rsend_init || op == TRACE_MPI_Bsend_init ||
	       op == TRACE_MPI_Recv_init || op == TRACE_MPI_Win_complete;
}

static void mpi_complete(struct model *m, struct thread *t, struct mpi_thread *k,
	struct mpi_request *q, const struct trace_mpi_done *d);

static struct mpi_request *mpi_request_of(struct model *m, const struct thread *t, uint64_t name)
{
	uint64_t i;
	return m->known.mpi && base_map_get(&m->known.mpi->requests, t->process, name, &i)
		       ? &m->known.mpi->request[i]
		       : NULL;
}

/* The request of that name (part 0), or one of its parts; NULL: there is no such. */
static struct mpi_request *mpi_part_of(
	struct model *m, const struct thread *t, uint64_t name, uint32_t part)
{
	return mpi_request_of(m, t, TRACE_REQUEST_PART(name, part));
}

static uint32_t mpi_nr_parts(struct model *m, const struct thread *t, uint64_t name)
{
	const struct mpi_request *q = mpi_request_of(m, t, name);
	return q ? q->nr_parts : 0;
}

/* Its place, a new one if there is none (*ret_is_new); NULL: no memory. */
static struct mpi_request *mpi_request_at(
	struct model *m, const struct thread *t, uint64_t name, bool *ret_is_new)
{
	struct model_mpi *x = m->known.mpi;
	uint64_t i;
	*ret_is_new = !base_map_get(&x->requests, t->process, name, &i);
	if (*ret_is_new) {
		if (!model_grow(m, &x->request, &x->request_capacity, x->nr_requests + 1,
			    sizeof *x->request))
			return NULL;
		i = x->nr_requests++;
		model_put(m, &x->requests, t->process, name, i);
	}
	return &x->request[i];
}

/* What it is a part of knows how many it has. False: no memory. */
static bool mpi_note_part(struct model *m, struct thread *t, uint64_t name)
{
	const uint64_t part = name >> TRACE_REQUEST_PART_SHIFT;
	if (!part)
		return true;
	name -= TRACE_REQUEST_PART(0, part);
	bool is_new;
	struct mpi_request *q = mpi_request_at(m, t, name, &is_new);
	if (q)
		*q = (struct mpi_request){.nr_parts = (uint32_t)part};
	return q != NULL;
}

/* Under that name in its process. Of one that has that name still nobody waited: it was complete
 * when its call returned. */
struct mpi_request *model_mpi_request_new(
	struct model *m, struct thread *t, uint64_t name, const struct mpi_request *q)
{
	static const struct trace_mpi_done early = {.peer = -1, .tag = -1};
	bool is_new;
	if (!mpi_note_part(m, t, name))
		return NULL;
	struct mpi_request *at = mpi_request_at(m, t, name, &is_new);
	if (!at)
		return NULL;
	if (!is_new && at->is_active && at->kind == MPI_REQUEST_send)
		mpi_complete(m, t, NULL, at, &early);
	*at = *q;
	return at;
}

static void mpi_message(struct model *m, struct thread *t, uint64_t time_ns,
	const struct trace_mpi_send *s, enum mpi_request_kind kind)
{
	const struct mpi_member *member = model_mpi_member_of(m, t, s->object);
	struct mpi_thread *k = model_mpi_thread_of(m, t);
	bool sends = kind == MPI_REQUEST_send;
	/* (a look that finds something, after some that did not) */
	bool goes_on = k && k->is_in_call && mpi_polls(k->op) && mpi_polls(s->op);
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
		q = model_mpi_request_new(m, t, s->request, &asked);
	else if (!goes_on)
		model_mpi_begin(m, t, k, time_ns, s->object, s->site, s->op);
	if (!q)
		return;
	*q = asked;
	if (mpi_is_template(s->op))
		return;
	if (sends)
		mpi_send(m, t, q, time_ns);
	else
		mpi_ask(m, t, q, time_ns);
	if (!s->request && !goes_on)
		model_mpi_own_call_begins(m, t, k, time_ns);
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
	const uint64_t name = r->u.mpi_start.request;
	const uint32_t nr_parts = mpi_nr_parts(m, t, name);
	for (uint32_t i = 0; i <= nr_parts; i++) {
		struct mpi_request *q = mpi_part_of(m, t, name, i);
		if (!q || q->is_active)
			continue;
		if (q->kind == MPI_REQUEST_send)
			mpi_send(m, t, q, r->time_ns);
		else if (q->kind == MPI_REQUEST_receive)
			mpi_ask(m, t, q, r->time_ns);
	}
}

/* ---- completion ------------------------------------------------------------------------------ */

/* Nothing is received: what was asked for later gets what it would have got. */
static void mpi_cancelled(struct model *m, const struct mpi_request *q)
{
	struct model_mpi *x = m->known.mpi;
	uint64_t asked_ns;
	if (q->is_wild || mpi_probes(q->op) || !x->channel[q->channel].nr_asked)
		return;
	struct mpi_channel *c = &x->channel[q->channel];
	for (size_t i = 0; i < x->nr_requests; i++) {
		struct mpi_request *later = &x->request[i];
		if (later->is_active && later->kind == MPI_REQUEST_receive && !later->is_wild &&
			later->channel == q->channel && later->number > q->number)
			later->number--;
	}
	for (uint32_t n = q->number; n < c->nr_asked; n++)
		if (base_map_get(&x->message.asked, q->channel, n + 1, &asked_ns))
			model_put(m, &x->message.asked, q->channel, n, asked_ns);
	base_map_remove(&x->message.asked, q->channel, c->nr_asked);
	c->nr_asked--;
}

/* Which message a receive, or a look, from anybody has met. */
static bool mpi_find_channel(struct model *m, struct mpi_request *q, const struct trace_mpi_done *d)
{
	struct model_mpi *x = m->known.mpi;
	if (d->peer < 0 || d->tag < 0)
		return false;
	q->channel = mpi_channel_of(m, q->object, (uint32_t)d->peer, q->rank, (uint32_t)d->tag);
	if (q->channel == NONE)
		return false;
	struct mpi_channel *c = &x->channel[q->channel];
	if (mpi_probes(q->op)) {
		q->number = c->nr_asked + c->nr_kept + 1;
		return true;
	}
	mpi_number(c, q);
	base_map_remove(&x->message.gone, q->channel, q->number);
	return true;
}

/* A message that was looked at is taken then: its receiver does not wait for it later. */
static void mpi_received(struct model *m, struct mpi_thread *k, struct mpi_request *q,
	const struct trace_mpi_done *d)
{
	struct model_mpi *x = m->known.mpi;
	uint64_t sent_ns, nr_bytes = 0;
	if (d->peer == TRACE_MPI_CANCELLED) {
		mpi_cancelled(m, q);
		return;
	}
	if (q->is_wild && !mpi_find_channel(m, q, d))
		return;
	struct mpi_channel *c = &x->channel[q->channel];
	bool looks = mpi_probes(q->op);
	if (k)
		k->lacks |= !mpi_was_recorded(m, c->object, c->source);
	c->nr_kept += mpi_keeps(q->op);
	if (looks ? base_map_get(&x->message.probed, q->channel, q->number, &sent_ns)
		  : base_map_remove(&x->message.probed, q->channel, q->number))
		return;
	if (!base_map_get(&x->message.sent, q->channel, q->number, &sent_ns)) {
		/* of a sender that was not recorded; or cancelled, which nobody said */
		c->nr_asked -= c->nr_asked == q->number && c->tag < TRACE_MPI_TAG_OWN;
		return;
	}
	if (looks)
		model_put(m, &x->message.probed, q->channel, q->number, sent_ns);
	base_map_remove(&x->message.sent, q->channel, q->number);
	if (base_map_get(&x->message.bytes, q->channel, q->number, &nr_bytes))
		base_map_remove(&x->message.bytes, q->channel, q->number);
	model_mpi_need(m, k,
		(struct mpi_needed){.queue = mpi_messages(m, c),
			.key = mpi_key(c, q->number),
			.available_ns = sent_ns,
			.peer = c->source + 1,
			.pair = c->pair + 1,
			.nr_bytes = nr_bytes});
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
	if (base_map_get(&x->message.asked, q->channel, q->number, &asked_ns)) {
		base_map_remove(&x->message.asked, q->channel, q->number);
		if (k)
			model_mpi_need(m, k,
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
	model_put(m, &x->message.gone, q->channel, q->number, 1);
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
		model_mpi_leave_meeting(m, k, q);
	}
}

void model_rule_mpi_done(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_mpi_done *d = &r->u.mpi_done;
	struct mpi_thread *k = model_mpi_thread_of(m, t);
	if (!k)
		return;
	struct mpi_request *q = d->request ? mpi_request_of(m, t, d->request) : &k->own;
	if (!k->is_in_call) { /* a test that found it complete */
		const struct mpi_request *shown =
			q && q->nr_parts ? mpi_part_of(m, t, d->request, 1) : q;
		if (!q || !shown)
			return;
		model_mpi_begin(m, t, k, r->time_ns, shown->object, shown->site, shown->op);
		k->state = t->graph_state;
	}
	const uint32_t nr_parts = q ? q->nr_parts : 0;
	for (uint32_t i = 0; i <= nr_parts; i++) {
		if (i)
			q = mpi_part_of(m, t, d->request, i);
		if (q)
			mpi_complete(m, t, k, q, d);
	}
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

/* *ret: what is not there, of the first part that lacks something. */
static bool mpi_all_ready(
	struct model *m, const struct thread *t, uint64_t name, struct mpi_needed *ret)
{
	const uint32_t nr_parts = mpi_nr_parts(m, t, name);
	for (uint32_t i = 0; i <= nr_parts; i++) {
		const struct mpi_request *q = mpi_part_of(m, t, name, i);
		if (q && !mpi_is_ready(m, t, q, ret))
			return false;
	}
	return true;
}

/* Does it wait for what it has been told to? What it lacks: *ret_first. */
static bool mpi_lacks_awaited(struct model *m, const struct thread *t, const struct mpi_thread *k,
	struct mpi_needed *ret_first)
{
	struct mpi_needed what;
	bool any = k->op == TRACE_MPI_Waitany || k->op == TRACE_MPI_Waitsome, waits = false;
	for (size_t i = 0; i < k->nr_awaited; i++) {
		bool ready = mpi_all_ready(m, t, k->awaited[i], &what);
		if (!ready && !waits)
			*ret_first = what;
		if (any && ready)
			return false;
		waits |= !ready;
	}
	return waits || mpi_polls(k->op);
}

void model_rule_mpi_wait(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_mpi_wait *w = &r->u.mpi_wait;
	struct mpi_thread *k = model_mpi_thread_of(m, t);
	struct mpi_needed first = {.queue = NONE};
	if (!k)
		return;
	const struct mpi_request *q = w->request ? mpi_request_of(m, t, w->request) : NULL;
	if (q && q->nr_parts)
		q = mpi_part_of(m, t, w->request, 1);
	mpi_note_ending(m, t, w);
	/* (all of one call have one time) */
	if (!k->is_in_call || k->begin_ns != r->time_ns)
		model_mpi_begin(m, t, k, r->time_ns, q ? q->object : 0, w->site, w->op);
	if (w->request && model_grow(m, &k->awaited, &k->awaited_capacity, k->nr_awaited + 1,
				  sizeof *k->awaited))
		k->awaited[k->nr_awaited++] = w->request;
	if (!w->more) {
		bool waits = mpi_lacks_awaited(m, t, k, &first);
		model_mpi_call_begins(m, t, k, r->time_ns, waits, &first);
	}
}

/* MPI_Win_start need not have waited for all that it was for. */
static void mpi_complete_started(struct model *m, struct thread *t, struct mpi_thread *k)
{
	static const struct trace_mpi_done done = {.peer = -1, .tag = -1};
	struct mpi_needed what;
	const uint64_t name = k->nr_awaited ? k->awaited[0] : 0;
	const uint32_t nr_parts = mpi_nr_parts(m, t, name);
	for (uint32_t i = 1; i <= nr_parts; i++) {
		struct mpi_request *q = mpi_part_of(m, t, name, i);
		if (q && q->is_active && mpi_is_ready(m, t, q, &what))
			mpi_complete(m, t, k, q, &done);
	}
}

void model_rule_mpi_return(struct model *m, struct thread *t, const struct trace_record *r)
{
	const struct trace_mpi_return *v = &r->u.mpi_return;
	struct mpi_thread *k = model_mpi_thread_of(m, t);
	static const struct trace_mpi_done itself = {.peer = -1, .tag = -1};
	if (!k || !k->is_in_call)
		return;
	if (k->own.is_active)
		mpi_complete(m, t, k, &k->own, &itself);
	if (k->op == TRACE_MPI_Win_start)
		mpi_complete_started(m, t, k);
	if (model_mpi_is_passive(k->op))
		model_mpi_passive_ends(m, t, k, r->time_ns);
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
	struct mpi_thread *k = begins ? model_mpi_thread_of(m, t) : NULL;
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
