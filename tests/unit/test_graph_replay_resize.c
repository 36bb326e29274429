/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_graph_replay_resize.c - k units more, simulated: against the same pipeline run with k more.
 *
 * A producer and a consumer with random times and one queue between them. What says how much it
 * holds differs: it is declared; nobody says it but somebody waited for room; a bound is known,
 * though nobody had to wait; or there are credits, put there at once or told at the start.
 */
#include "graph/replay.h"

#include "replay_fixture.h"

enum { ITEMS = 60, PRODUCER = 0, CONSUMER = 1, MORE_MAX = 4 };

enum kind { DECLARED, INFERRED, LIMIT, CREDITS, CREDITS_TOLD, POOL, KINDS };

struct world {
	uint64_t produce_ns[ITEMS], consume_ns[ITEMS];
	unsigned units;
};

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 16;
}

static struct world make_world(uint32_t seed)
{
	uint32_t random = seed * 2654435761u + 1;
	struct world w = {.units = 1 + seed % 4};

	for (int i = 0; i < ITEMS; i++) {
		w.produce_ns[i] = 1 + next_random(&random) % 50;
		w.consume_ns[i] = 1 + next_random(&random) % 50;
	}
	return w;
}

struct times {
	uint64_t ready[ITEMS], put[ITEMS], idle[ITEMS], taken[ITEMS], end;
	unsigned most; /* in the queue at once */
	bool waited;   /* the producer did */
};

static struct times simulate(const struct world *w, unsigned units)
{
	uint64_t producer = 0, consumer = 0;
	struct times t = {0};

	for (unsigned i = 0; i < ITEMS; i++) {
		t.ready[i] = t.put[i] = producer + w->produce_ns[i];
		if (i >= units && t.taken[i - units] > t.put[i]) {
			t.put[i] = t.taken[i - units];
			t.waited = true;
		}
		producer = t.put[i];
		t.idle[i] = consumer;
		t.taken[i] = t.put[i] > consumer ? t.put[i] : consumer;
		consumer = t.taken[i] + w->consume_ns[i];
		unsigned there = 1;

		for (unsigned k = 0; k < i; k++)
			there += t.taken[k] > t.put[i];
		t.most = there > t.most ? there : t.most;
	}
	t.end = consumer;
	return t;
}

/* Verbs in time order: the smaller of what the two do next; who frees comes first. */
static void tell(
	const struct graph_sink *s, const struct world *w, const struct times *t, enum kind kind)
{
	bool credits = kind >= CREDITS;
	unsigned put = 0, taken = 0, producer_waits = 0, consumer_waits = 0;

	for (unsigned done = 0; done < 2 * ITEMS;) {
		uint64_t consumer_next = taken == ITEMS ? UINT64_MAX
					 : consumer_waits || t->taken[taken] == t->idle[taken]
						 ? t->taken[taken]
						 : t->idle[taken];
		uint64_t producer_next = put == ITEMS ? UINT64_MAX
					 : producer_waits || t->put[put] == t->ready[put]
						 ? t->put[put]
						 : t->ready[put];
		bool can_take = taken < put;

		if (consumer_next <= producer_next &&
			(can_take || (!consumer_waits && consumer_next != t->taken[taken]))) {
			if (!consumer_waits && t->idle[taken] < t->taken[taken]) {
				say(s, GRAPH_VERB_wait_empty, consumer_next, CONSUMER, 0, 1, WAIT,
					0);
				consumer_waits = 1;
				continue;
			}
			say(s, GRAPH_VERB_dequeue, consumer_next, CONSUMER, 0, 1, RUN, 0);
			if (credits) /* who takes an item gives the credit back */
				say(s, GRAPH_VERB_enqueue, consumer_next, CONSUMER, 1, 1, RUN, 0);
			consumer_waits = 0;
			taken++;
			done++;
			continue;
		}
		if (!producer_waits && t->ready[put] < t->put[put]) {
			say(s, credits ? GRAPH_VERB_wait_empty : GRAPH_VERB_wait_full,
				producer_next, PRODUCER, credits, 1, WAIT, 0);
			producer_waits = 1;
			continue;
		}
		if (credits)
			say(s, GRAPH_VERB_dequeue, producer_next, PRODUCER, 1, 1, OTHER, 0);
		say(s, GRAPH_VERB_enqueue, producer_next, PRODUCER, 0, 1, OTHER, 0);
		producer_waits = 0;
		put++;
		done++;
	}
	say(s, GRAPH_VERB_state, t->end, CONSUMER, 0, 0, IDLE, 0);
	(void)w;
}

static struct graph_replay *log_of(const struct world *w, const struct times *t, enum kind kind)
{
	struct graph_replay *r = new_replay();
	const struct graph_sink *s = graph_replay_sink(r);
	struct graph_queue_options data = {0}, credits = {0};

	if (kind == DECLARED)
		data.capacity = w->units;
	else if (kind == LIMIT)
		data.limit = w->units;
	else if (kind == CREDITS || kind == POOL)
		credits.initial = w->units;
	if (kind == POOL)
		credits.discipline = GRAPH_POOL;
	declare(s);
	declare_queue(s, 0, data);
	declare_queue(s, 1, credits);
	say(s, GRAPH_VERB_state, 0, PRODUCER, 0, 0, OTHER, GRAPH_START);
	say_link(s, 0, CONSUMER, RUN);
	if (kind == CREDITS_TOLD)
		say(s, GRAPH_VERB_resize, 0, PRODUCER, 1, w->units, OTHER, 0);
	tell(s, w, t, kind);
	return r;
}

static void test_k_more_is_the_run_with_k_more(void **state)
{
	unsigned tried[KINDS] = {0};

	(void)state;
	for (uint32_t seed = 0; seed < 200; seed++) {
		struct world w = make_world(seed);
		struct times t = simulate(&w, w.units);

		for (enum kind kind = 0; kind < KINDS; kind++) {
			struct graph_replay_result res;

			if (kind == INFERRED && !t.waited)
				continue; /* nothing says that there is an end of it */
			struct graph_replay *r = log_of(&w, &t, kind);

			assert_int_equal(replay_end(r, nothing, &res), t.end);
			for (uint64_t k = 1; k <= MORE_MAX; k++) {
				struct graph_edit more = {
					GRAPH_EDIT_RESIZE_QUEUE, kind >= CREDITS, 1, k};
				uint64_t truth = simulate(&w, w.units + (unsigned)k).end;

				assert_int_equal(replay_end(r, more, &res), truth);
				assert_int_equal(res.nr_stuck, 0);
				tried[kind] += truth != t.end;
			}
			graph_replay_free(r);
		}
	}
	for (enum kind kind = 0; kind < KINDS; kind++) /* more room did something */
		assert_true(tried[kind] > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_k_more_is_the_run_with_k_more)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
