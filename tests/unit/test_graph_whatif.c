/* SPDX-License-Identifier: Apache-2.0 */
/* test_graph_whatif.c - the gain curve of random graphs against all of their paths, one by one. */
#include "graph/whatif.h"
#include "graph/graph.h"

#include <math.h>
#include "test.h"

#include <string.h>

enum { NODES = 9, LINES_MAX = 1 << NODES };

struct dag { /* edges run from lower to higher nodes; -1: none */
	double weight[NODES][NODES];
	bool in_state[NODES][NODES];
	/* every path's line: length - reduction * state */
	double length[LINES_MAX], state[LINES_MAX];
	int nr_lines;
};

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

static uint32_t next_random(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x >> 4;
}

/* A path is a set of inner nodes. */
static void list_paths(struct dag *d)
{
	d->nr_lines = 0;
	for (int set = 0; set < 1 << (NODES - 2); set++) {
		double length = 0, state = 0;
		int at = 0;
		bool is_path = true;

		for (int to = 1; to < NODES && is_path; to++) {
			if (to < NODES - 1 && !(set >> (to - 1) & 1))
				continue;
			is_path = d->weight[at][to] >= 0;
			length += d->weight[at][to];
			state += d->in_state[at][to] ? d->weight[at][to] : 0;
			at = to;
		}
		if (is_path) {
			d->length[d->nr_lines] = length;
			d->state[d->nr_lines++] = state;
		}
	}
}

static void make_dag(struct dag *d, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + 99;

	for (int i = 0; i < NODES; i++) {
		for (int k = i + 1; k < NODES; k++) {
			d->weight[i][k] =
				next_random(&x) % 3 ? (double)(next_random(&x) % 1000) : -1;
			d->in_state[i][k] = next_random(&x) % 2;
		}
	}
	d->weight[0][NODES - 1] = (double)(next_random(&x) % 500);
	list_paths(d);
}

/* What a lane of the engine would say. */
static struct graph_curve_point evaluate(const struct dag *d, double reduction)
{
	struct graph_curve_point p = {.reduction = reduction, .length_ns = -1};

	for (int i = 0; i < d->nr_lines; i++) {
		double length = d->length[i] - reduction * d->state[i];

		if (length > p.length_ns) {
			p.length_ns = length;
			p.state_ns = d->state[i];
		}
	}
	return p;
}

/* The first breakpoint, from all lines: where the flattest start is overtaken. */
static double first_break(const struct dag *d)
{
	double longest = evaluate(d, 0).length_ns, slope = INFINITY, first = 1;

	for (int i = 0; i < d->nr_lines; i++) {
		if (d->length[i] == longest)
			slope = smaller(slope, d->state[i]);
	}
	for (int i = 0; i < d->nr_lines; i++) {
		if (d->state[i] < slope)
			first = smaller(first, (longest - d->length[i]) / (slope - d->state[i]));
	}
	return first;
}

static unsigned nr_breaks(const struct dag *d)
{
	double at = 0;
	unsigned nr = 0;

	while (at < 1 - 1e-9) {
		double slope = INFINITY, next = 1, now = evaluate(d, at).length_ns;

		for (int i = 0; i < d->nr_lines; i++) {
			if (fabs(d->length[i] - at * d->state[i] - now) < 1e-7)
				slope = smaller(slope, d->state[i]);
		}
		for (int i = 0; i < d->nr_lines; i++) {
			double there = now - (d->length[i] - at * d->state[i]);

			if (d->state[i] < slope)
				next = smaller(next, at + there / (slope - d->state[i]));
		}
		nr += next < 1 - 1e-9;
		at = next;
	}
	return nr;
}

/* The curve meets the ends of each piece; between, it is the piece where that is exact, and below
 * it elsewhere. */
static unsigned check_pieces(const struct graph_curve *c, const struct dag *d, double *ret_first)
{
	struct graph_curve_piece piece[GRAPH_CURVE_POINTS_MAX];
	unsigned nr = graph_curve_pieces(c, piece);

	for (unsigned i = 0; i < nr; i++) {
		const struct graph_curve_piece *p = &piece[i];

		assert_true(p->begin == (i ? p[-1].end : 0));
		for (int k = 0; k <= 4; k++) {
			double at = k / 4.0;
			double truth = evaluate(d, p->begin + at * (p->end - p->begin)).length_ns;
			double chord = p->begin_ns + at * (p->end_ns - p->begin_ns);

			assert_true(truth <= chord + 1e-5);
			if (p->exact || k == 0 || k == 4)
				assert_true(truth >= chord - 1e-5);
		}
	}
	assert_true(nr && piece[nr - 1].end == 1);
	*ret_first = piece[0].end;
	return nr;
}

static void check_dag(const struct dag *d, unsigned lanes)
{
	struct graph_curve c = {0};
	double ask[GRAPH_LANES_MAX], first;
	unsigned nr, passes = 0;

	while ((nr = graph_curve_next(&c, ask, lanes)) > 0) {
		assert_true(nr <= lanes);
		assert_true(++passes < 40);
		for (unsigned i = 0; i < nr; i++) {
			struct graph_curve_point p = evaluate(d, ask[i]);

			assert_int_equal(graph_curve_add(&c, &p, NULL), BASE_OK);
		}
		check_pieces(&c, d, &first);
	}
	assert_int_equal(check_pieces(&c, d, &first), nr_breaks(d) + 1);
	assert_true(fabs(first - first_break(d)) < 1e-6);
}

static void random_graphs(void **unused)
{
	static struct dag d;

	(void)unused;
	for (uint32_t seed = 0; seed < 4000; seed++) {
		make_dag(&d, seed);
		check_dag(&d, 2 + seed % 15);
	}
}

/* "Up to 38 % less helps": 62 + 38 of which the state is 100, beside a path of 62. */
static void one_breakpoint(void **unused)
{
	struct graph_curve c = {0};
	struct graph_curve_piece piece[GRAPH_CURVE_POINTS_MAX];
	double ask[2];
	int passes = 0;

	(void)unused;
	for (unsigned nr; (nr = graph_curve_next(&c, ask, 2)) > 0;) {
		for (unsigned i = 0; i < nr; i++) {
			struct graph_curve_point p = {ask[i],
				100 - 100 * ask[i] > 62 ? 100 - 100 * ask[i] : 62,
				ask[i] <= 0.38 ? 100 : 0};

			assert_int_equal(graph_curve_add(&c, &p, NULL), BASE_OK);
		}
		assert_true(++passes < 4);
	}
	assert_int_equal(graph_curve_pieces(&c, piece), 2);
	assert_true(piece[0].exact && fabs(piece[0].end - 0.38) < 1e-12);
	assert_int_equal(passes, 2);
}

static void full_table(void **unused)
{
	struct graph_curve c = {0};

	(void)unused;
	for (int i = 0; i < GRAPH_CURVE_POINTS_MAX; i++) {
		struct graph_curve_point p = {i / 200.0, 1000 - i, 200};

		assert_int_equal(graph_curve_add(&c, &p, NULL), BASE_OK);
		assert_int_equal(graph_curve_add(&c, &p, NULL), BASE_OK); /* replaced */
	}
	assert_int_equal(
		graph_curve_add(&c, &(struct graph_curve_point){1, 0, 0}, NULL), BASE_ERR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_graphs),
		cmocka_unit_test(one_breakpoint),
		cmocka_unit_test(full_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
