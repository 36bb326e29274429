/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_graph_replay.c - replay against an independent simulator: random networks in which the order
 * of service cannot change (single consumers, bounded queues, barriers, links, latencies). And
 * known answers where it can: locks, pools, processors.
 */
#include "graph/replay.h"

#include "replay_fixture.h"

/* ---- random networks, and a simulator that shares nothing with replay ------------------------ */

enum {
	NET_ACTORS = 16,
	NET_QUEUES = 24,
	NET_OPS = 260,
	NET_RUN = NET_ACTORS, /* states: what actor i does; then latencies; then these */
	STATE_WAIT = NET_ACTORS + NET_QUEUES, /* + actor */
	STATE_GLUE = STATE_WAIT + NET_ACTORS,
	NET_STATES,
};

/* OP_CRAM: puts without asking whether there is room; where there was, it is an OP_PUT. */
enum op_kind { OP_RUN, OP_PUT, OP_CRAM, OP_TAKE, OP_LINK, OP_MEET };

struct op {
	enum op_kind kind;
	int queue; /* OP_LINK: actor; OP_MEET: arrivals, tokens are the next one */
	uint64_t n, ns;
};

struct net_queue {
	uint64_t capacity, latency_ns;
	int64_t units;               /* below 0: taken before they came */
	int wants_data, wants_space; /* actor blocked; -1 */
	int parties, collector;      /* of a barrier's arrivals */
	bool dropped, unbounded;
	bool seen;                   /* somebody waited, so that its latency is known */
	bool waited[2], needless[2]; /* for units, for space: somebody did; nobody does */
};

struct net_actor {
	struct op op[NET_OPS];
	int nr_ops, pc;
	uint64_t t;
	enum { NOT_YET, READY, BLOCKED } status;
	bool resumes, elides; /* elides: what it waited for in the run, it goes on without */
};

struct net {
	struct net_actor actor[NET_ACTORS];
	struct net_queue queue[NET_QUEUES];
	int nr_actors, nr_queues;
	bool has_barrier;
	bool at_once; /* no latencies */
	double scale[NET_STATES];
	uint32_t seed;
	const struct graph_sink *out;
	uint64_t now;
};

static uint32_t dice(struct net *w, uint32_t n)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 17;
	w->seed ^= w->seed << 5;
	return w->seed % n;
}

static void add_op(struct net *w, int actor, enum op_kind kind, int queue, uint64_t n, uint64_t ns)
{
	struct net_actor *a = &w->actor[actor];

	assert_true(a->nr_ops < NET_OPS);
	a->op[a->nr_ops++] = (struct op){.kind = kind, .queue = queue, .n = n, .ns = ns};
}

static int add_net_queue(struct net *w, uint64_t capacity)
{
	assert_true(w->nr_queues < NET_QUEUES);
	w->queue[w->nr_queues] = (struct net_queue){.capacity = capacity,
		.latency_ns = 1 + dice(w, 500),
		.wants_data = -1,
		.wants_space = -1};
	return w->nr_queues++;
}

static uint64_t some_ns(struct net *w)
{
	return 4000 + dice(w, 60000);
}

/* Stages behind each other; returns the queue that their ends are told through. */
static void add_pipeline(struct net *w, int nr_stages, int nr_items)
{
	int first = w->nr_actors, last_queue = -1;

	for (int i = 0; i < nr_stages; i++) {
		uint64_t batch = 1 + dice(w, 3);
		int queue = i + 1 < nr_stages
				    ? add_net_queue(w, dice(w, 4) ? batch + dice(w, 4) : 0)
				    : -1;
		int k = w->nr_actors++;

		(void)first;
		for (int item = 0; item < nr_items; item++) {
			if (last_queue >= 0)
				add_op(w, k, OP_TAKE, last_queue, 1, 0);
			add_op(w, k, OP_RUN, 0, 0, some_ns(w));
			if (queue >= 0)
				add_op(w, k, dice(w, 10) ? OP_PUT : OP_CRAM, queue, 1, 0);
		}
		last_queue = queue;
	}
}

static void add_meeters(struct net *w, int nr_parties, int nr_phases)
{
	int arrivals = add_net_queue(w, 0), tokens = add_net_queue(w, 0);

	w->has_barrier = true;
	w->queue[arrivals].parties = nr_parties;
	for (int i = 0; i < nr_parties; i++) {
		int k = w->nr_actors++;

		for (int phase = 0; phase < nr_phases; phase++) {
			add_op(w, k, OP_RUN, 0, 0, some_ns(w));
			add_op(w, k, OP_MEET, arrivals, 1, 0);
		}
	}
	w->queue[arrivals].collector = w->nr_actors++;
	assert_int_equal(tokens, arrivals + 1);
}

static void make_net(struct net *w, uint32_t seed)
{
	int exit_queue[NET_ACTORS];

	memset(w, 0, sizeof *w);
	w->seed = seed * 2654435761u + 1;
	for (int i = 0; i < NET_STATES; i++)
		w->scale[i] = 1;
	w->nr_actors = 1;
	/* (arguments are evaluated in any order: not two dice in one call) */
	int nr = 5 + (int)dice(w, 40);
	add_pipeline(w, 2 + (int)dice(w, 4), nr);
	if (dice(w, 2)) {
		nr = 5 + (int)dice(w, 40);
		add_pipeline(w, 2 + (int)dice(w, 2), nr);
	}
	if (dice(w, 2)) {
		nr = 2 + (int)dice(w, 10);
		add_meeters(w, 2 + (int)dice(w, 3), nr);
	}
	for (int k = 1; k < w->nr_actors; k++) {
		if (!w->actor[k].nr_ops) /* a barrier's own: nobody starts it, it never ends */
			continue;
		exit_queue[k] = add_net_queue(w, 0);
		add_op(w, k, OP_PUT, exit_queue[k], 1, 0);
		add_op(w, 0, OP_RUN, 0, 0, some_ns(w));
		add_op(w, 0, OP_LINK, k, 0, 0);
	}
	add_op(w, 0, OP_RUN, 0, 0, some_ns(w));
	for (int k = 1; k < w->nr_actors; k++) {
		if (w->actor[k].nr_ops)
			add_op(w, 0, OP_TAKE, exit_queue[k], 1, 0);
	}
	add_op(w, 0, OP_RUN, 0, 0, some_ns(w));
}

static void make_at_once(struct net *w)
{
	w->at_once = true;
	for (int i = 0; i < w->nr_queues; i++)
		w->queue[i].latency_ns = 0;
}

static uint64_t scaled(const struct net *w, int state, uint64_t ns)
{
	return (uint64_t)((double)ns * w->scale[state] + 0.5);
}

static void tell(struct net *w, enum graph_verb_kind kind, int actor, int queue, int64_t n,
	int state, uint32_t flags, int from)
{
	struct graph_verb v = {.time_ns = w->now,
		.actor = (uint32_t)actor,
		.state = (uint32_t)state,
		.queue = (uint32_t)queue,
		.flags = flags,
		.n = n};

	assert_int_equal(w->out->verb(w->out->ctx, kind, &v, (uint32_t)from, NULL), BASE_OK);
}

static void wake(struct net *w, int *who, uint64_t latency_ns)
{
	struct net_actor *a = &w->actor[*who];

	a->status = READY;
	a->resumes = true;
	a->t = w->now + latency_ns;
	*who = -1;
}

static uint64_t latency_of(struct net *w, int queue)
{
	w->queue[queue].seen = true;
	return scaled(w, NET_ACTORS + queue, w->queue[queue].latency_ns);
}

static bool has_room(const struct net_queue *q, uint64_t n)
{
	return !q->capacity || q->unbounded || q->dropped ||
	       q->units + (int64_t)n <= (int64_t)q->capacity;
}

static bool passes(const struct net *w, int actor, int queue, bool space)
{
	return w->actor[actor].elides && w->queue[queue].needless[space];
}

static void net_take(struct net *w, int actor, int queue, uint64_t n)
{
	struct net_queue *q = &w->queue[queue];

	if (!passes(w, actor, queue, false) && q->units < (int64_t)n)
		n = (uint64_t)q->units;
	q->units -= (int64_t)n;
	tell(w, GRAPH_VERB_dequeue, actor, queue, (int64_t)n, STATE_GLUE, 0, 0);
	if (q->wants_space >= 0) {
		const struct net_actor *a = &w->actor[q->wants_space];

		if (has_room(q, a->op[a->pc].n))
			wake(w, &q->wants_space, latency_of(w, queue));
	}
}

static void net_put(struct net *w, int actor, int queue, uint64_t n, int state)
{
	struct net_queue *q = &w->queue[queue];

	q->units += (int64_t)n;
	tell(w, GRAPH_VERB_enqueue, actor, queue, (int64_t)n, state, 0, 0);
	if (q->wants_data >= 0) {
		const struct net_actor *a = &w->actor[q->wants_data];

		if (q->units >= (int64_t)a->op[a->pc].n)
			wake(w, &q->wants_data, latency_of(w, queue));
	}
}

/* All are there: the collector hands out tokens. The last one does not wait. */
static void open_barrier(struct net *w, int queue)
{
	struct net_queue *q = &w->queue[queue];
	int tokens = queue + 1;

	q->units = 0;
	tell(w, GRAPH_VERB_dequeue, q->collector, queue, GRAPH_ALL, STATE_GLUE, 0, 0);
	tell(w, GRAPH_VERB_enqueue, q->collector, tokens, q->parties, STATE_GLUE, 0, 0);
	tell(w, GRAPH_VERB_wait_empty, q->collector, queue, 1, STATE_WAIT + q->collector, 0, 0);
	for (int k = 0; k < w->nr_actors; k++) {
		struct net_actor *a = &w->actor[k];
		int who = k;

		if (a->status == BLOCKED && a->op[a->pc].kind == OP_MEET &&
			a->op[a->pc].queue == queue)
			wake(w, &who, latency_of(w, tokens));
	}
}

static void net_meet(struct net *w, int actor, int queue)
{
	struct net_actor *a = &w->actor[actor];
	struct net_queue *q = &w->queue[queue];

	if (a->resumes) {
		tell(w, GRAPH_VERB_dequeue, actor, queue + 1, 1, STATE_GLUE, 0, 0);
		a->resumes = false;
		a->pc++;
		return;
	}
	q->units++;
	tell(w, GRAPH_VERB_enqueue, actor, queue, 1, STATE_GLUE, 0, 0);
	if (q->units == q->parties) {
		open_barrier(w, queue);
		tell(w, GRAPH_VERB_dequeue, actor, queue + 1, 1, STATE_GLUE, 0, 0);
		a->pc++;
		return;
	}
	tell(w, GRAPH_VERB_wait_empty, actor, queue + 1, 1, STATE_WAIT + actor, 0, 0);
	a->status = BLOCKED;
}

static void net_step(struct net *w, int actor)
{
	struct net_actor *a = &w->actor[actor];
	struct op *op = &a->op[a->pc];
	struct net_queue *q = &w->queue[op->queue];

	switch (op->kind) {
	case OP_RUN:
		tell(w, GRAPH_VERB_state, actor, 0, 0, actor, 0, 0);
		a->t += scaled(w, actor, op->ns);
		a->pc++;
		return;
	case OP_TAKE:
		if (!a->resumes && !passes(w, actor, op->queue, false) &&
			q->units < (int64_t)op->n && !q->dropped) {
			q->waited[false] = true;
			tell(w, GRAPH_VERB_wait_empty, actor, op->queue, (int64_t)op->n,
				STATE_WAIT + actor, 0, 0);
			q->wants_data = actor;
			a->status = BLOCKED;
			return;
		}
		net_take(w, actor, op->queue, op->n);
		break;
	case OP_PUT:
		if (!a->resumes && !passes(w, actor, op->queue, true) && !has_room(q, op->n)) {
			q->waited[true] = true;
			tell(w, GRAPH_VERB_wait_full, actor, op->queue, (int64_t)op->n,
				STATE_WAIT + actor, 0, 0);
			q->wants_space = actor;
			a->status = BLOCKED;
			return;
		}
		net_put(w, actor, op->queue, op->n, STATE_GLUE);
		break;
	case OP_CRAM:
		op->kind = has_room(q, op->n) ? OP_PUT : OP_CRAM;
		net_put(w, actor, op->queue, op->n, STATE_GLUE);
		break;
	case OP_LINK:
		tell(w, GRAPH_VERB_state, actor, 0, 0, STATE_GLUE, 0, 0);
		tell(w, GRAPH_VERB_link, op->queue, 0, 0, STATE_GLUE, 0, actor);
		w->actor[op->queue].status = READY;
		w->actor[op->queue].t = w->now;
		break;
	case OP_MEET:
		net_meet(w, actor, op->queue);
		return;
	}
	a->resumes = false;
	a->pc++;
}

/* The actor whose time comes first, until there is none; returns the end of actor 0. */
static uint64_t run_net(struct net *w, const struct graph_sink *out)
{
	uint64_t end = 0;

	w->out = out;
	w->now = 1000;
	for (int i = 0; i < NET_STATES; i++)
		assert_int_equal(out->state(out->ctx, (uint32_t)i, true, NULL), BASE_OK);
	for (int i = 0; i < w->nr_queues; i++) {
		struct graph_queue_options o = {.capacity = w->queue[i].capacity,
			.latency_state = (uint32_t)(NET_ACTORS + i)};

		assert_int_equal(out->queue(out->ctx, (uint32_t)i, &o, NULL), BASE_OK);
	}
	tell(w, GRAPH_VERB_state, 0, 0, 0, STATE_GLUE, GRAPH_START, 0);
	for (int i = 0; i < w->nr_queues; i++) {
		if (w->queue[i].parties)
			tell(w, GRAPH_VERB_wait_empty, w->queue[i].collector, i, 1,
				STATE_WAIT + w->queue[i].collector, 0, 0);
	}
	w->actor[0].status = READY;
	w->actor[0].t = w->now;
	for (;;) {
		int first = -1;

		for (int k = 0; k < w->nr_actors; k++) {
			const struct net_actor *a = &w->actor[k];

			if (a->status == READY && a->pc < a->nr_ops &&
				(first < 0 || a->t < w->actor[first].t))
				first = k;
		}
		if (first < 0)
			break;
		w->now = w->actor[first].t;
		net_step(w, first);
	}
	/* (its last piece of work is closed here) */
	w->now = end = w->actor[0].t;
	tell(w, GRAPH_VERB_state, 0, 0, 0, STATE_GLUE, 0, 0);
	return end;
}

/* ---- laws ------------------------------------------------------------------------------------ */

enum { NR_NETS = 200 };

static void feed(struct graph_replay *r, const struct ear *e, const struct net *w)
{
	const struct graph_sink *s = graph_replay_sink(r);

	for (int i = 0; i < NET_STATES; i++)
		assert_int_equal(s->state(s->ctx, (uint32_t)i, true, NULL), BASE_OK);
	for (int i = 0; i < w->nr_queues; i++) {
		struct graph_queue_options o = {.capacity = w->queue[i].capacity,
			.latency_state = (uint32_t)(NET_ACTORS + i)};

		assert_int_equal(s->queue(s->ctx, (uint32_t)i, &o, NULL), BASE_OK);
	}
	for (size_t i = 0; i < e->nr; i++)
		assert_int_equal(
			s->verb(s->ctx, e->heard[i].kind, &e->heard[i].v, e->heard[i].from, NULL),
			BASE_OK);
}

static void same_verb(const struct heard *a, const struct heard *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->v.actor, b->v.actor);
	assert_int_equal(a->v.time_ns, b->v.time_ns);
	assert_int_equal(a->v.state, b->v.state);
	assert_int_equal(a->v.flags, b->v.flags);
	assert_int_equal(a->v.queue, b->v.queue);
	assert_int_equal(a->v.n, b->v.n);
	assert_int_equal(a->from, b->from);
}

static void test_unedited_replay_is_the_run(void **state)
{
	static struct net w;

	(void)state;
	for (uint32_t seed = 1; seed <= NR_NETS; seed++) {
		struct graph_replay *r = new_replay();
		struct graph_replay_result res;
		struct ear run, again;
		uint64_t end;

		ear_init(&run, NULL);
		ear_init(&again, NULL);
		make_net(&w, seed);
		end = run_net(&w, &run.sink);
		feed(r, &run, &w);
		graph_replay_set_end(r, 0);
		assert_int_equal(graph_replay_run(r, NULL, &again.sink, &res, NULL), BASE_OK);
		assert_int_equal(res.end_ns, end);
		assert_int_equal(res.recorded_end_ns, end);
		assert_int_equal(res.nr_stuck, 0);
		assert_int_equal(res.nr_unexplained, 0);
		assert_int_equal(res.nr_rootless, 0);
		assert_int_equal(res.nr_waits_new, 0);
		assert_int_equal(again.nr, run.nr);
		for (size_t i = 0; i < run.nr; i++)
			same_verb(&again.heard[i], &run.heard[i]);
		graph_replay_free(r);
		ear_fini(&run);
		ear_fini(&again);
	}
}

static bool is_wait(const struct heard *h)
{
	return h->kind == GRAPH_VERB_wait_empty || h->kind == GRAPH_VERB_wait_full ||
	       h->kind == GRAPH_VERB_wait;
}

/* Waits apart (replay keeps those of the run), both did the same at the same times. */
static void same_deeds(const struct ear *a, const struct ear *b)
{
	for (uint32_t actor = 0; actor < NET_ACTORS; actor++) {
		size_t i = 0, k = 0;

		for (;;) {
			while (i < a->nr && (a->heard[i].v.actor != actor || is_wait(&a->heard[i])))
				i++;
			while (k < b->nr && (b->heard[k].v.actor != actor || is_wait(&b->heard[k])))
				k++;
			if (i == a->nr || k == b->nr)
				break;
			same_verb(&a->heard[i++], &b->heard[k++]);
		}
		assert_true(i == a->nr && k == b->nr);
	}
}

/* Changes the network, and says the same as an edit. */
static struct graph_edit change(struct net *w, uint32_t kind)
{
	static const double factor[] = {0.25, 0.5, 0.75, 1.5, 3};
	double f = factor[dice(w, BASE_COUNT(factor))];
	uint32_t queue = dice(w, (uint32_t)w->nr_queues), actor = dice(w, (uint32_t)w->nr_actors);

	if (kind == 0) {
		/* An actor that takes no time at all comes when others do: of the two at one
		 * instant either may be first, and only where nothing is late does it not matter
		 * which. */
		if (w->at_once && !w->has_barrier && dice(w, 2))
			f = 0;
		w->scale[actor] = f;
		return (struct graph_edit){GRAPH_EDIT_SCALE_STATE, actor, f, 0};
	}
	if (kind == 1) {
		w->scale[NET_ACTORS + queue] = f;
		return (struct graph_edit){GRAPH_EDIT_SCALE_STATE, NET_ACTORS + queue, f, 0};
	}
	if (kind == 4) { /* one that does not meet others: when these go on then depends on it */
		while (!w->actor[actor].nr_ops || w->actor[actor].op[1].kind == OP_MEET)
			actor = (actor + 1) % (uint32_t)w->nr_actors;
		w->actor[actor].elides = true;
		w->scale[STATE_WAIT + actor] = 0;
		return (struct graph_edit){GRAPH_EDIT_ELIDE_STATE, STATE_WAIT + actor, 0, 0};
	}
	while (!w->queue[queue].capacity)
		queue = (queue + 1) % (uint32_t)w->nr_queues;
	if (kind == 2) {
		uint64_t more = 1 + dice(w, 3);

		w->queue[queue].capacity += more;
		return (struct graph_edit){GRAPH_EDIT_RESIZE_QUEUE, queue, 1, more};
	}
	w->queue[queue].unbounded = true;
	return (struct graph_edit){GRAPH_EDIT_UNBOUND_QUEUE, queue, 1, 0};
}

static bool has_bounded(const struct net *w)
{
	for (int i = 0; i < w->nr_queues; i++) {
		if (w->queue[i].capacity)
			return true;
	}
	return false;
}

static void test_edited_replay_is_the_changed_network(void **state)
{
	static struct net w, changed;
	uint64_t nr_compared = 0;

	(void)state;
	for (uint32_t seed = 1; seed <= NR_NETS; seed++) {
		for (uint32_t kind = 0; kind < 5; kind++) {
			struct graph_replay *r = new_replay();
			struct graph_replay_result res;
			struct ear run, truth, replayed;
			struct graph_edit edit[2];
			struct graph_scenario sc = {.edit = edit, .nr_edits = 2};
			uint64_t end;

			make_net(&w, seed);
			if (seed % 3 == 0)
				make_at_once(&w);
			if ((kind == 2 || kind == 3) && !has_bounded(&w)) {
				graph_replay_free(r);
				continue;
			}
			changed = w;
			edit[0] = change(&changed, kind);
			edit[1] = change(&changed, 0);
			if (edit[0].kind == GRAPH_EDIT_SCALE_STATE && edit[0].id == edit[1].id)
				sc.nr_edits = 1, changed.scale[edit[0].id] = edit[0].factor;
			ear_init(&run, NULL);
			ear_init(&truth, NULL);
			ear_init(&replayed, NULL);
			run_net(&w, &run.sink);
			for (int i = 0; i < w.nr_actors; i++)
				memcpy(changed.actor[i].op, w.actor[i].op, sizeof w.actor[i].op);
			/* What nobody saw, replay takes to be nothing. */
			for (int i = 0; i < w.nr_queues; i++) {
				if (!w.queue[i].seen)
					changed.queue[i].latency_ns = 0;
				memcpy(changed.queue[i].needless, w.queue[i].waited,
					sizeof w.queue[i].waited);
			}
			end = run_net(&changed, &truth.sink);
			feed(r, &run, &w);
			graph_replay_set_end(r, 0);
			assert_int_equal(
				graph_replay_run(r, &sc, &replayed.sink, &res, NULL), BASE_OK);
			assert_int_equal(res.nr_stuck, 0);
			assert_int_equal(res.end_ns, end);
			same_deeds(&replayed, &truth);
			nr_compared++;
			graph_replay_free(r);
			ear_fini(&run);
			ear_fini(&truth);
			ear_fini(&replayed);
		}
	}
	assert_true(nr_compared > 3 * NR_NETS);
}

/*
 * The path method drops constraints, and never adds one: what it promises, replay does not beat.
 * Not so with latencies: the path keeps one even where the unit has come before its taker.
 */
static void test_path_is_never_longer(void **state)
{
	static struct net w;

	(void)state;
	for (uint32_t seed = 1; seed <= NR_NETS; seed++) {
		struct graph_replay *r = new_replay();
		struct graph_replay_result res;
		struct graph_lane_result lane;
		struct ear run;
		struct graph *g;
		struct graph_edit edit;
		struct graph_scenario sc = {.edit = &edit, .nr_edits = 1};
		struct graph_options o = {.size = sizeof o, .scenario = &sc, .nr_scenarios = 1};

		make_net(&w, seed);
		make_at_once(&w);
		edit = (struct graph_edit){GRAPH_EDIT_SCALE_STATE, dice(&w, (uint32_t)w.nr_actors),
			0.25 * dice(&w, 4), 0};
		assert_int_equal(graph_new(&o, &g, NULL), BASE_OK);
		ear_init(&run, g);
		run_net(&w, &run.sink);
		feed(r, &run, &w);
		assert_int_equal(graph_finish(g, 0, NULL), BASE_OK);
		assert_int_equal(graph_lane(g, 1, &lane, NULL), BASE_OK);
		graph_replay_set_end(r, 0);
		assert_int_equal(graph_replay_run(r, &sc, NULL, &res, NULL), BASE_OK);
		assert_true(lane.found);
		/* (each piece is rounded to a whole ns) */
		assert_true(lane.length_ns <= (double)(res.end_ns - res.start_ns) + (double)run.nr);
		graph_free(g);
		graph_replay_free(r);
		ear_fini(&run);
	}
}

/* What replay tells a fresh graph has a path as long as the replay. */
static void test_new_critical_path(void **state)
{
	static struct net w;

	(void)state;
	for (uint32_t seed = 1; seed <= 40; seed++) {
		struct graph_replay *r = new_replay();
		struct graph_replay_result res;
		struct graph_lane_result lane;
		struct ear run, again;
		struct graph *g;
		struct graph_edit edit;
		struct graph_scenario sc = {.edit = &edit, .nr_edits = 1};

		make_net(&w, seed);
		edit = (struct graph_edit){
			GRAPH_EDIT_SCALE_STATE, 1 + dice(&w, (uint32_t)w.nr_actors - 1), 0.5, 0};
		assert_int_equal(graph_new(NULL, &g, NULL), BASE_OK);
		ear_init(&run, NULL);
		ear_init(&again, g);
		run_net(&w, &run.sink);
		feed(r, &run, &w);
		graph_replay_set_end(r, 0);
		assert_int_equal(graph_replay_run(r, &sc, &again.sink, &res, NULL), BASE_OK);
		assert_int_equal(graph_finish(g, 0, NULL), BASE_OK);
		assert_int_equal(graph_lane(g, 0, &lane, NULL), BASE_OK);
		assert_true(lane.found);
		assert_true(lane.length_ns == (double)(res.end_ns - res.start_ns));
		graph_free(g);
		graph_replay_free(r);
		ear_fini(&run);
		ear_fini(&again);
	}
}

/* ---- what cannot go on ----------------------------------------------------------------------- */

/* Cut out of the middle: units from before the window are not waited for; nothing hangs. */
static void test_window(void **state)
{
	static struct net w;
	struct ear run;

	(void)state;
	for (uint32_t seed = 1; seed <= 60; seed++) {
		ear_init(&run, NULL);
		make_net(&w, seed);
		run_net(&w, &run.sink);
		for (int part = 1; part < 4; part++) {
			struct graph_replay *r = new_replay();
			struct graph_replay_result res;
			struct ear cut = run;

			cut.heard += run.nr * (size_t)part / 4;
			cut.nr = run.nr / 4;
			feed(r, &cut, &w);
			assert_int_equal(graph_replay_run(r, NULL, NULL, &res, NULL), BASE_OK);
			assert_true(res.nr_rootless > 0);
			assert_true(res.nr_verbs <= cut.nr);
			assert_true(res.nr_stuck > 0 || res.nr_verbs == cut.nr);
			graph_replay_free(r);
		}
		ear_fini(&run);
	}
}

/* Any verbs in any order, also nonsense: an end, and each verb at most once. */
static void test_any_verbs(void **state)
{
	enum { ACTORS = 6, QUEUES = 7, VERBS = 400 };
	static struct net w; /* its dice */
	const char *trials = getenv("REPLAY_TRIALS");
	uint32_t nr_trials = trials ? (uint32_t)atoi(trials) : 3000;

	(void)state;
	for (uint32_t seed = 1; seed <= nr_trials; seed++) {
		struct graph_replay *r = new_replay();
		const struct graph_sink *s = graph_replay_sink(r);
		struct graph_replay_result res;
		struct ear again;
		struct graph_edit edit[3];
		struct graph_scenario sc = {.edit = edit, .nr_edits = 3};
		uint64_t t = 0;

		w.seed = seed * 2654435761u + 7;
		declare(s);
		for (uint32_t q = 0; q < QUEUES; q++)
			declare_queue(s, q,
				(struct graph_queue_options){.capacity = dice(&w, 2) * dice(&w, 5),
					.initial = dice(&w, 8) ? dice(&w, 3) : GRAPH_UNLIMITED,
					.discipline = dice(&w, 4),
					.processor = q >= 5});
		for (uint32_t i = 0; i < VERBS; i++) {
			static const uint32_t flag[] = {0, 0, 0, GRAPH_MORE, GRAPH_OPTIONAL,
				GRAPH_LAST, GRAPH_BACK, GRAPH_EXPLAINED, GRAPH_ASIDE, GRAPH_KEYED,
				GRAPH_START, GRAPH_MORE | GRAPH_LAST, GRAPH_BACK | GRAPH_ASIDE};
			enum graph_verb_kind kind = dice(&w, GRAPH_VERB_NR);
			struct graph_verb v = {.time_ns = t += dice(&w, 3) * dice(&w, 5000000),
				.actor = dice(&w, ACTORS),
				.state = dice(&w, NR_STATES),
				.queue = dice(&w, QUEUES),
				.flags = flag[dice(&w, BASE_COUNT(flag))],
				.n = (int64_t)dice(&w, 5) - 1,
				.key = dice(&w, 3),
				.tag = dice(&w, 2)};

			if (v.flags & GRAPH_ASIDE && kind != GRAPH_VERB_enqueue)
				kind = GRAPH_VERB_dequeue, v.flags |= GRAPH_BACK;
			assert_int_equal(
				s->verb(s->ctx, kind, &v, dice(&w, ACTORS), NULL), BASE_OK);
		}
		for (int i = 0; i < 3; i++)
			edit[i] = (struct graph_edit){(enum graph_edit_kind)dice(&w, 5),
				dice(&w, 8), 0.5 * dice(&w, 4), dice(&w, 3)};
		ear_init(&again, NULL);
		assert_int_equal(graph_replay_run(r, &sc, &again.sink, &res, NULL), BASE_OK);
		assert_true(res.nr_verbs <= graph_replay_nr_verbs(r));
		for (size_t i = 1; i < again.nr; i++)
			assert_true(again.heard[i].v.time_ns >= again.heard[i - 1].v.time_ns);
		ear_fini(&again);
		assert_int_equal(graph_replay_mend(r, NULL), BASE_OK);
		assert_int_equal(graph_replay_run(r, NULL, NULL, &res, NULL), BASE_OK);
		assert_int_equal(res.nr_stuck, 0);
		assert_int_equal(graph_replay_run(r, &sc, NULL, &res, NULL), BASE_OK);
		assert_true(!res.nr_stuck || !graph_replay_nr_given(r));
		graph_replay_free(r);
	}
}

/* ---- logs in which verbs are missing --------------------------------------------------------- */

enum { KEPT_OF = 100 };
#define MENDED_ERROR_MAX  0.5 /* of a run of which more than half is missing */
#define MENDED_ERROR_MEAN 0.02

/* Without a share of its verbs, from each half of the run alike. */
static void feed_some(struct graph_replay *r, const struct ear *e, struct net *w, uint32_t lost)
{
	struct ear some = {.heard = malloc((e->nr + 1) * sizeof *e->heard)};

	assert_non_null(some.heard);
	for (size_t i = 0; i < e->nr; i++)
		if (!i || dice(w, KEPT_OF) >= lost)
			some.heard[some.nr++] = e->heard[i];
	feed(r, &some, w);
	ear_fini(&some);
}

/*
 * Whatever is missing, a simulation ends, without an edit about when the run did, and with each
 * edit it has an end, too. What lacks nothing is not touched.
 */
static void test_verbs_are_missing(void **state)
{
	static const uint32_t lost[] = {0, 1, 5, 20, 60};
	static struct net w;
	double errors = 0;
	uint64_t nr_given = 0;

	(void)state;
	for (uint32_t seed = 1; seed <= NR_NETS * BASE_COUNT(lost); seed++) {
		uint32_t share = lost[seed % BASE_COUNT(lost)];
		struct graph_replay *r = new_replay();
		struct graph_replay_result res;
		struct graph_edit edit[3];
		struct graph_scenario sc = {.edit = edit};
		struct ear run;

		ear_init(&run, NULL);
		make_net(&w, seed);
		run_net(&w, &run.sink);
		feed_some(r, &run, &w, share);
		assert_int_equal(graph_replay_mend(r, NULL), BASE_OK);
		assert_int_equal(graph_replay_run(r, NULL, NULL, &res, NULL), BASE_OK);
		assert_int_equal(res.nr_stuck, 0);
		double error = (double)(res.end_ns - res.start_ns) /
				       (double)(res.recorded_end_ns - res.start_ns) -
			       1;
		error = error < 0 ? -error : error;
		assert_true(error < MENDED_ERROR_MAX);
		errors += error;
		nr_given += graph_replay_nr_given(r);
		if (!share)
			assert_int_equal(graph_replay_nr_given(r), 0);
		sc.nr_edits = has_bounded(&w) ? 3 : 2;
		for (uint32_t i = 0; i < sc.nr_edits; i++)
			edit[i] = change(&w, i);
		assert_int_equal(graph_replay_run(r, &sc, NULL, &res, NULL), BASE_OK);
		assert_true(!res.nr_stuck || !graph_replay_nr_given(r));
		graph_replay_free(r);
		ear_fini(&run);
	}
	const size_t nr_trials = NR_NETS * BASE_COUNT(lost);
	assert_true(errors < MENDED_ERROR_MEAN * (double)nr_trials);
	assert_true(nr_given > NR_NETS / 10);
}

static void test_limits(void **state)
{
	struct graph_replay_options o = {.size = sizeof o, .max_memory_bytes = 100000};
	struct graph_edit wrong = {GRAPH_EDIT_SCALE_STATE, RUN, -1, 0};
	struct graph_edit nowhere = {GRAPH_EDIT_SCALE_STATE, 4000000000u, 0.5, 0};
	struct graph_scenario sc = {.edit = &wrong, .nr_edits = 1};
	struct graph_replay_result res;
	struct graph_replay *r;
	struct base_err err;

	(void)state;
	assert_int_equal(graph_replay_new(&o, &r, NULL), BASE_OK);
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_verb v = {.flags = GRAPH_START};

	declare(s);
	assert_int_equal(s->verb(s->ctx, GRAPH_VERB_state, &v, 0, &err), BASE_ERR_LIMIT);
	assert_non_null(strstr(err.cause[0], "window"));
	/* It stays failed. */
	assert_int_equal(s->verb(s->ctx, GRAPH_VERB_state, &v, 0, &err), BASE_ERR_LIMIT);
	assert_int_equal(graph_replay_run(r, NULL, NULL, &res, &err), BASE_ERR_LIMIT);
	graph_replay_free(r);

	r = new_replay();
	s = graph_replay_sink(r);
	declare(s);
	say(s, GRAPH_VERB_state, 5, 0, 0, 0, RUN, GRAPH_START);
	assert_int_equal(graph_replay_run(r, &sc, NULL, &res, &err), BASE_ERR_USAGE);
	assert_int_equal(replay_end(r, nowhere, &res), 5);
	graph_replay_free(r);
}

/* Each allocation fails once: a status, no leak, no crash. */
static void test_no_memory(void **state)
{
	static struct net w;
	struct ear run;
	uint64_t nr_failures = 0;

	(void)state;
	ear_init(&run, NULL);
	make_net(&w, 3);
	run_net(&w, &run.sink);
	for (uint64_t n = 1;; n++) {
		struct graph_replay *r = NULL;
		struct graph_replay_result res;
		enum base_status status;

		base_alloc_fail_nth(n);
		status = graph_replay_new(NULL, &r, NULL);
		for (int i = 0; !status && i < w.nr_queues; i++) {
			const struct graph_sink *s = graph_replay_sink(r);
			struct graph_queue_options o = {.capacity = w.queue[i].capacity,
				.latency_state = (uint32_t)(NET_ACTORS + i)};

			status = s->queue(s->ctx, (uint32_t)i, &o, NULL);
		}
		for (size_t i = 0; !status && i < run.nr; i++) {
			const struct graph_sink *s = graph_replay_sink(r);

			if (i % 7 != 3) /* some are missing */
				status = s->verb(s->ctx, run.heard[i].kind, &run.heard[i].v,
					run.heard[i].from, NULL);
		}
		if (!status)
			status = graph_replay_mend(r, NULL);
		if (!status)
			status = graph_replay_run(r, NULL, NULL, &res, NULL);
		base_alloc_fail_nth(0);
		graph_replay_free(r);
		if (!status)
			break;
		assert_int_equal(status, BASE_ERR_NOMEM);
		nr_failures++;
	}
	assert_true(nr_failures > 10);
	ear_fini(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unedited_replay_is_the_run),
		cmocka_unit_test(test_edited_replay_is_the_changed_network),
		cmocka_unit_test(test_path_is_never_longer),
		cmocka_unit_test(test_new_critical_path),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_any_verbs),
		cmocka_unit_test(test_verbs_are_missing),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
