/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_histogram.c - the watch: known answers by hand, and laws on random runs. */
#include "graph/histogram.h"
#include "test.h"

enum { ACTORS = 4, QUEUES = 3, END = 1000000 };

struct watched {
	struct graph *g;
	struct graph_watch *w;
};

/* Actors and states 0..3; queues 0 and 1 have rows 0 and 1, queue 2 has none. */
static void open_watched(struct watched *x, uint64_t end_ns, enum graph_discipline discipline)
{
	static const uint32_t row[QUEUES] = {0, 1, GRAPH_WATCH_NONE};
	struct graph_watch_options wo = {.size = sizeof wo,
		.row_of_queue = row,
		.nr_queues = QUEUES,
		.nr_rows = 2,
		.end_ns = end_ns};
	struct graph_options o = {.size = sizeof o};
	uint32_t id;

	assert_int_equal(graph_watch_new(&wo, &x->w, NULL), BASE_OK);
	o.watch = x->w;
	assert_int_equal(graph_new(&o, &x->g, NULL), BASE_OK);
	for (unsigned i = 0; i < ACTORS; i++) {
		assert_int_equal(graph_add_actor(x->g, &id, NULL), BASE_OK);
		assert_int_equal(graph_add_state(x->g, &id, NULL), BASE_OK);
	}
	for (unsigned i = 0; i < QUEUES; i++) {
		struct graph_queue_options qo = {.discipline = discipline};

		assert_int_equal(graph_add_queue(x->g, &qo, &id, NULL), BASE_OK);
	}
}

static void close_watched(struct watched *x)
{
	graph_free(x->g);
	graph_watch_free(x->w);
}

static void does(struct watched *x, enum graph_verb_kind kind, uint64_t t, uint32_t actor,
	uint32_t queue, int64_t n)
{
	struct graph_verb v = {
		.time_ns = t, .actor = actor, .queue = queue, .n = n, .flags = t ? 0 : GRAPH_START};

	assert_int_equal(graph_apply(x->g, kind, &v, 0, NULL), BASE_OK);
}

static const struct base_histogram *histogram(
	const struct watched *x, uint32_t row, enum graph_measure m)
{
	return graph_watch_histogram(x->w, row, m);
}

static uint64_t sum_of(const uint64_t *slot)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < GRAPH_WATCH_SLOTS; i++)
		sum += slot[i];
	return sum;
}

static void known_answers(void **state)
{
	struct watched x;
	const struct base_histogram *h;
	uint64_t low, high;

	(void)state;
	open_watched(&x, 1200, GRAPH_FIFO);
	does(&x, GRAPH_VERB_state, 0, 0, 0, 0);
	does(&x, GRAPH_VERB_state, 0, 1, 0, 0);
	does(&x, GRAPH_VERB_wait_empty, 100, 1, 0, 1); /* waits 100..450 */
	does(&x, GRAPH_VERB_enqueue, 400, 0, 0, 1);
	does(&x, GRAPH_VERB_enqueue, 420, 0, 0, 1);
	does(&x, GRAPH_VERB_dequeue, 450, 1, 0, 1);    /* latency 50, residence 50 */
	does(&x, GRAPH_VERB_enqueue, 600, 1, 1, 1);    /* passes on: service 150 */
	does(&x, GRAPH_VERB_dequeue, 700, 1, 0, 1);    /* residence 280, no wait */
	does(&x, GRAPH_VERB_wait_empty, 760, 1, 0, 1); /* back here: service 60 */
	assert_int_equal(graph_finish(x.g, 1, NULL), BASE_OK);
	assert_int_equal(graph_watch_finish(x.w, x.g, NULL), BASE_OK);

	h = histogram(&x, 0, GRAPH_MEASURE_wait_data);
	assert_true(h->count == 1 && h->greatest == 350);
	h = histogram(&x, 0, GRAPH_MEASURE_latency);
	assert_true(h->count == 1 && h->greatest == 50);
	h = histogram(&x, 0, GRAPH_MEASURE_residence);
	assert_true(h->count == 2 && h->least == 50 && h->greatest == 280);
	h = histogram(&x, 0, GRAPH_MEASURE_service);
	assert_true(h->count == 2 && h->least == 60 && h->greatest == 150);
	h = histogram(&x, 0, GRAPH_MEASURE_occupancy); /* 400..420: 1, ..450: 2, ..700: 1 */
	assert_int_equal(h->count, 1200);
	assert_int_equal(base_histogram_bucket(h, 0, &low, &high), 400 + 500);
	assert_int_equal(base_histogram_bucket(h, 1, &low, &high), 20 + 250);
	assert_int_equal(base_histogram_bucket(h, 2, &low, &high), 30);
	assert_int_equal(histogram(&x, 0, GRAPH_MEASURE_wait_space)->count, 0);
	assert_int_equal(graph_watch_arrived(x.w, 0)[40], 1); /* a slot is 10 ns */
	assert_int_equal(graph_watch_arrived(x.w, 0)[42], 1);
	assert_int_equal(graph_watch_departed(x.w, 0)[45], 1);
	assert_int_equal(graph_watch_departed(x.w, 0)[70], 1);
	assert_int_equal(graph_watch_arrived(x.w, 1)[60], 1);
	close_watched(&x);
}

/* A lock that is free is taken whole, from the back: the hold counts all the same. A put undone in
 * part takes nothing. */
static void holds_of_a_free_lock(void **state)
{
	struct watched x;
	struct graph_verb v = {.n = GRAPH_ALL, .flags = GRAPH_BACK, .time_ns = 100};

	(void)state;
	open_watched(&x, 1000, GRAPH_FIFO);
	does(&x, GRAPH_VERB_state, 0, 0, 0, 0);
	does(&x, GRAPH_VERB_enqueue, 50, 0, 0, 1);
	assert_int_equal(graph_apply(x.g, GRAPH_VERB_dequeue, &v, 0, NULL), BASE_OK);
	does(&x, GRAPH_VERB_enqueue, 170, 0, 0, 1);
	does(&x, GRAPH_VERB_enqueue, 200, 0, 1, 5);
	v = (struct graph_verb){.n = 2, .queue = 1, .flags = GRAPH_BACK, .time_ns = 210};
	assert_int_equal(graph_apply(x.g, GRAPH_VERB_dequeue, &v, 0, NULL), BASE_OK);
	does(&x, GRAPH_VERB_enqueue, 300, 0, 1, 5);
	assert_int_equal(graph_finish(x.g, 0, NULL), BASE_OK);
	assert_int_equal(graph_watch_finish(x.w, x.g, NULL), BASE_OK);
	assert_int_equal(histogram(&x, 0, GRAPH_MEASURE_service)->count, 1);
	assert_int_equal(histogram(&x, 0, GRAPH_MEASURE_service)->greatest, 70);
	assert_int_equal(histogram(&x, 1, GRAPH_MEASURE_service)->count, 0);
	close_watched(&x);
}

static uint32_t next_random(uint32_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 17;
	*s ^= *s << 5;
	return *s;
}

/* What the histograms sum up to is what the queue's own statistics say; and on a queue that is
 * empty again, occupancy x time is residence x units (Little's law). */
static void laws(void **state)
{
	static const enum graph_discipline all[] = {
		GRAPH_FIFO, GRAPH_LIFO, GRAPH_PRIORITY, GRAPH_POOL};

	(void)state;
	for (uint32_t seed = 1; seed <= 40; seed++) {
		struct watched x;
		uint32_t r = seed * 2654435761u;
		uint64_t t = 0;

		open_watched(&x, END, all[seed % 4]);
		for (uint32_t a = 0; a < ACTORS; a++)
			does(&x, GRAPH_VERB_state, 0, a, 0, 0);
		for (unsigned i = 0; i < 2000; i++) {
			uint32_t a = next_random(&r) % ACTORS, q = next_random(&r) % QUEUES;
			uint32_t what = next_random(&r) % 4;
			int64_t n = 1 + next_random(&r) % 5;

			t += next_random(&r) % 400;
			does(&x,
				what == 0   ? GRAPH_VERB_wait_empty
				: what == 1 ? GRAPH_VERB_dequeue
				: what == 2 ? GRAPH_VERB_wait_full
					    : GRAPH_VERB_enqueue,
				t, a, q, n);
		}
		for (uint32_t q = 0; q < QUEUES; q++)
			does(&x, GRAPH_VERB_dequeue, t + 1, q, q, GRAPH_ALL);
		for (uint32_t a = 0; a < ACTORS; a++) /* ends the waits that are left */
			does(&x, GRAPH_VERB_state, t + 2, a, 0, 0);
		assert_true(t + 2 < END);
		assert_int_equal(graph_finish(x.g, 0, NULL), BASE_OK);
		assert_int_equal(graph_watch_finish(x.w, x.g, NULL), BASE_OK);
		for (uint32_t q = 0; q < 2; q++) {
			const struct graph_queue_stats *s = graph_queue_stats(x.g, q);
			const struct base_histogram *residence =
				histogram(&x, q, GRAPH_MEASURE_residence);
			const struct base_histogram *occupancy =
				histogram(&x, q, GRAPH_MEASURE_occupancy);

			assert_int_equal(sum_of(graph_watch_arrived(x.w, q)), s->enqueued);
			assert_int_equal(sum_of(graph_watch_departed(x.w, q)), s->dequeued);
			assert_int_equal(residence->count, s->dequeued);
			assert_true(residence->sum == (double)s->residence_ns);
			assert_int_equal(occupancy->count, END);
			assert_true(occupancy->sum == (double)s->units_time);
			assert_true(occupancy->sum == residence->sum);
			assert_int_equal(occupancy->greatest, s->max_units);
			assert_int_equal(
				histogram(&x, q, GRAPH_MEASURE_latency)->count, s->nr_latencies);
			assert_true(histogram(&x, q, GRAPH_MEASURE_latency)->sum ==
				    (double)s->latency_ns);
			assert_int_equal(
				histogram(&x, q, GRAPH_MEASURE_wait_data)->count, s->nr_waits_data);
			assert_true(histogram(&x, q, GRAPH_MEASURE_wait_data)->sum ==
				    (double)s->wait_data_ns);
			assert_int_equal(histogram(&x, q, GRAPH_MEASURE_wait_space)->count,
				s->nr_waits_space);
			assert_true(histogram(&x, q, GRAPH_MEASURE_wait_space)->sum ==
				    (double)s->wait_space_ns);
			assert_true(
				histogram(&x, q, GRAPH_MEASURE_service)->count <= s->nr_dequeues);
		}
		close_watched(&x);
	}
}

static void watching_changes_no_path(void **state)
{
	double length[2];

	(void)state;
	for (unsigned watched = 0; watched < 2; watched++) {
		struct watched x;
		struct graph_lane_result lane;
		uint32_t r = 77;
		uint64_t t = 0;

		open_watched(&x, END, GRAPH_FIFO);
		if (!watched) {
			uint32_t id;
			struct graph_options o = {.size = sizeof o};
			struct graph_queue_options qo = {.discipline = GRAPH_FIFO};

			graph_free(x.g);
			assert_int_equal(graph_new(&o, &x.g, NULL), BASE_OK);
			for (unsigned i = 0; i < ACTORS; i++) {
				assert_int_equal(graph_add_actor(x.g, &id, NULL), BASE_OK);
				assert_int_equal(graph_add_state(x.g, &id, NULL), BASE_OK);
			}
			for (unsigned i = 0; i < QUEUES; i++)
				assert_int_equal(graph_add_queue(x.g, &qo, &id, NULL), BASE_OK);
		}
		for (unsigned i = 0; i < 500; i++) {
			uint32_t a = next_random(&r) % ACTORS, q = next_random(&r) % QUEUES;

			does(&x, next_random(&r) % 2 ? GRAPH_VERB_dequeue : GRAPH_VERB_enqueue, t,
				a, q, 1);
			t += next_random(&r) % 100;
		}
		assert_int_equal(graph_finish(x.g, 0, NULL), BASE_OK);
		assert_int_equal(graph_lane(x.g, 0, &lane, NULL), BASE_OK);
		length[watched] = lane.length_ns;
		close_watched(&x);
	}
	assert_true(length[0] == length[1] && length[0] > 0);
}

static void out_of_memory(void **state)
{
	struct watched x;

	(void)state;
	open_watched(&x, 1000, GRAPH_FIFO);
	does(&x, GRAPH_VERB_state, 0, 0, 0, 0);
	does(&x, GRAPH_VERB_state, 0, 1, 0, 0);
	does(&x, GRAPH_VERB_enqueue, 1, 0, 0, 1);
	does(&x, GRAPH_VERB_dequeue, 2, 0, 0, 1);
	does(&x, GRAPH_VERB_enqueue, 3, 0, 0, 1);
	base_alloc_fail_nth(1); /* the first residence of that size needs its octave */
	does(&x, GRAPH_VERB_dequeue, 800, 0, 0, 1);
	base_alloc_fail_nth(0);
	assert_int_equal(graph_finish(x.g, 0, NULL), BASE_OK);
	assert_int_equal(graph_watch_finish(x.w, x.g, NULL), BASE_ERR_NOMEM);
	close_watched(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(holds_of_a_free_lock),
		cmocka_unit_test(laws),
		cmocka_unit_test(watching_changes_no_path),
		cmocka_unit_test(out_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
