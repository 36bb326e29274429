/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_bench.c - graph-bench: what a verb costs the graph engine. Four actors take eight locks in
 * turn: wait, dequeue, hold, enqueue; every fourth acquisition has waited. Prints ns a verb (best
 * of several runs), records a second and the resident memory, for one lane and for seventeen.
 */
#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { ACTORS = 4, QUEUES = 8, STATES = 2 + 2 * QUEUES, SCENARIOS_MAX = 16, BATCH = 4096 };

enum verb { STATE, WAIT, DEQUEUE, ENQUEUE };

struct event {
	enum verb verb;
	struct graph_verb v;
};

struct sequence { /* a period of the stream; times are relative and repeat every `span_ns` */
	struct event event[BATCH];
	size_t nr;
	uint64_t span_ns;
};

static uint32_t next_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

static void push(struct sequence *s, enum verb verb, uint64_t t, uint32_t actor, uint32_t state,
	uint32_t queue)
{
	s->event[s->nr++] = (struct event){
		verb, {.time_ns = t, .actor = actor, .state = state, .queue = queue, .n = 1}};
}

static int by_time(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;

	return a->v.time_ns < b->v.time_ns ? -1 : a->v.time_ns > b->v.time_ns;
}

/* A simulation of four threads and eight locks, so that the times fit each other. */
static void simulate(struct sequence *s)
{
	uint64_t t[ACTORS] = {0}, free_at[QUEUES] = {0};
	uint32_t x = 12345;

	while (s->nr + 4 * ACTORS < BATCH) {
		uint32_t a = 0, q = next_random(&x) % QUEUES;

		for (uint32_t i = 1; i < ACTORS; i++)
			a = t[i] < t[a] ? i : a;
		t[a] += 20 + next_random(&x) % 300;
		if (free_at[q] > t[a]) {
			push(s, WAIT, t[a], a, 2 + q, q);
			t[a] = free_at[q] + 30;
		}
		push(s, DEQUEUE, t[a], a, 1, q);
		t[a] += 10 + next_random(&x) % 200;
		push(s, ENQUEUE, t[a], a, 0, q);
		free_at[q] = t[a];
	}
	qsort(s->event, s->nr, sizeof *s->event, by_time);
	s->span_ns = s->event[s->nr - 1].v.time_ns + 1;
}

static void must(enum base_status s)
{
	if (s) {
		fprintf(stderr, "graph-bench: %s\n", base_status_name(s));
		exit(4);
	}
}

static struct graph *make_graph(unsigned nr_scenarios)
{
	struct graph_edit edit[SCENARIOS_MAX];
	struct graph_scenario sc[SCENARIOS_MAX];
	struct graph *g;
	uint32_t id;

	for (unsigned i = 0; i < nr_scenarios; i++) {
		/* Half of them scale a state (the critical section first), half drop a queue. */
		edit[i] = (struct graph_edit){
			i & 1 ? GRAPH_EDIT_IGNORE_QUEUE : GRAPH_EDIT_SCALE_STATE, i / 2,
			0.9 - 0.05 * i};
		sc[i] = (struct graph_scenario){&edit[i], 1};
	}
	must(graph_new(&(struct graph_options){.size = sizeof(struct graph_options),
			       .scenario = sc,
			       .nr_scenarios = nr_scenarios},
		&g, NULL));
	for (unsigned i = 0; i < ACTORS; i++)
		must(graph_add_actor(g, &id, NULL));
	for (unsigned i = 0; i < STATES; i++)
		must(graph_add_state(g, &id, NULL));
	for (unsigned i = 0; i < QUEUES; i++)
		must(graph_add_queue(g,
			&(struct graph_queue_options){
				.initial = 1, .latency_state = 2 + QUEUES + i},
			&id, NULL));
	must(graph_state(g, &(struct graph_verb){.flags = GRAPH_START}, NULL));
	for (uint32_t i = 1; i < ACTORS; i++)
		must(graph_link(g, &(struct graph_verb){.actor = i}, 0, NULL));
	return g;
}

static void play(struct graph *g, const struct sequence *s, uint64_t offset_ns)
{
	for (size_t i = 0; i < s->nr; i++) {
		struct graph_verb v = s->event[i].v;

		v.time_ns += offset_ns;
		switch (s->event[i].verb) {
		case STATE:
			must(graph_state(g, &v, NULL));
			break;
		case WAIT:
			must(graph_wait_empty(g, &v, NULL));
			break;
		case DEQUEUE:
			must(graph_dequeue(g, &v, NULL));
			break;
		case ENQUEUE:
			must(graph_enqueue(g, &v, NULL));
			break;
		}
	}
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static double run(
	const struct sequence *s, unsigned nr_scenarios, uint64_t nr_verbs, size_t *ret_memory)
{
	struct graph *g = make_graph(nr_scenarios);
	uint64_t nr = 0, offset_ns = 0;
	double begin = now_s(), taken;

	for (; nr < nr_verbs; nr += s->nr, offset_ns += s->span_ns)
		play(g, s, offset_ns);
	taken = now_s() - begin;
	*ret_memory = graph_memory_bytes(g);
	must(graph_finish(g, GRAPH_ANY_ACTOR, NULL));
	for (unsigned l = 0; l <= nr_scenarios; l++) {
		struct graph_lane_result r;

		must(graph_lane(g, l, &r, NULL));
		if (l == 0 && r.length_ns != (double)r.end_ns - (double)r.start_ns) {
			fprintf(stderr, "graph-bench: the path is %.0f ns long, not %.0f\n",
				r.length_ns, (double)(r.end_ns - r.start_ns));
			exit(1);
		}
	}
	graph_free(g);
	return taken / (double)nr * 1e9;
}

static void report(const struct sequence *s, unsigned nr_scenarios, uint64_t nr_verbs,
	double goal_ns, bool json, bool last)
{
	double best_ns = 1e9;
	size_t memory = 0;
	struct rusage ru;
	enum { RUNS = 25 };

	for (int i = 0; i < RUNS; i++) {
		double ns = run(s, nr_scenarios, nr_verbs, &memory);

		best_ns = ns < best_ns ? ns : best_ns;
	}
	getrusage(RUSAGE_SELF, &ru);
	if (json)
		printf("{\"name\": \"verb, %u scenario%s\", \"value\": %.2f, \"unit\": \"ns\", "
		       "\"goal\": %.0f, \"goal_is\": \"max\", \"met\": %s, \"peer\": null, "
		       "\"peer_version\": null, \"runs\": %d, \"why\": null}%s",
			1 + nr_scenarios, nr_scenarios ? "s" : "", best_ns, goal_ns,
			best_ns <= goal_ns ? "true" : "false", RUNS, last ? "" : ", ");
	else
		printf("%2u lane%s: %6.2f ns a verb (goal %.0f), %5.1f M verbs/s, graph %zu KiB, "
		       "resident %ld KiB\n",
			1 + nr_scenarios, nr_scenarios ? "s" : " ", best_ns, goal_ns, 1e3 / best_ns,
			memory >> 10, ru.ru_maxrss);
}

int main(int argc, char **argv)
{
	static struct sequence s;
	bool json = false;
	uint64_t nr_verbs = 1000000;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json")) {
			json = true;
		} else if (!strcmp(argv[i], "--quick")) {
			nr_verbs = 200000;
		} else if (argv[i][0] >= '1' && argv[i][0] <= '9') {
			nr_verbs = strtoull(argv[i], NULL, 10);
		} else {
			fprintf(stderr, "usage: graph-bench [--quick] [--json] [VERBS]\n");
			return 2;
		}
	}
	simulate(&s);
	if (json)
		printf("{\"bench\": \"graph\", \"rows\": [");
	report(&s, 0, nr_verbs, 20, json, false);
	report(&s, SCENARIOS_MAX, nr_verbs, 120, json, true);
	if (json)
		printf("]}\n");
	return 0;
}
