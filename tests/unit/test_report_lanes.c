/* SPDX-License-Identifier: Apache-2.0 */
/* test_report_lanes.c - scenarios that are followed from what a shared pass told the graph are those
 * that the trace gives, and none is followed twice. */
#include "report_fixture.h"

#include "report/predict/predictor.h"

enum { SCENARIOS = 70 };

struct asked {
	struct base_arena *arena;
	struct graph_scenario lane[SCENARIOS];
	struct report_lane answer[SCENARIOS];
	unsigned nr_passes; /* that were begun */
};

static void count_passes(void *ctx, const char *what, uint64_t done_records, uint64_t all_records)
{
	(void)what;
	(void)all_records;
	((struct asked *)ctx)->nr_passes += !done_records;
}

/* Each of the first states scaled, one after the other, by each of some factors. */
static void ask_many(struct asked *a, struct report_run *run)
{
	static const double factor[] = {0, 0.25, 0.5, 0.9, 1, 2, 7.5};
	a->arena = base_arena_new(0);
	a->nr_passes = 0;
	run->progress = count_passes;
	run->progress_ctx = a;
	for (size_t i = 0; i < SCENARIOS; i++) {
		struct graph_edit *e = base_arena_alloc(a->arena, sizeof *e);
		*e = (struct graph_edit){.kind = GRAPH_EDIT_SCALE_STATE,
			.id = (uint32_t)(i / BASE_COUNT(factor)),
			.factor = factor[i % BASE_COUNT(factor)]};
		a->lane[i] = (struct graph_scenario){.edit = e, .nr_edits = 1};
	}
	assert_int_equal(report_lanes(run, "asking", a->lane, SCENARIOS, a->answer, a->arena, NULL),
		BASE_OK);
}

static void assert_same_answers(const struct asked *a, const struct asked *b)
{
	for (size_t i = 0; i < SCENARIOS; i++) {
		const struct report_lane *x = &a->answer[i], *y = &b->answer[i];
		assert_true(x->length_ns == y->length_ns);
		assert_int_equal(x->nr_states, y->nr_states);
		for (size_t k = 0; k < x->nr_states; k++) {
			assert_int_equal(x->state[k].state, y->state[k].state);
			assert_true(x->state[k].path_ns == y->state[k].path_ns);
			assert_true(x->state[k].observed_ns == y->state[k].observed_ns);
		}
	}
}

static struct model *first_pass(struct report_run *run)
{
	struct report_pass_options plain = {0};
	struct model *m = NULL;
	assert_int_equal(report_pass(run, "first", &plain, &m, NULL), BASE_OK);
	return m;
}

static void compare(struct bench *b, uint64_t from_ns, uint64_t to_ns, bool taped)
{
	static struct asked alone, together, again;
	struct report_shared_pass shared = {0};
	struct report_run run = {
		.reader = b->reader, .trace_path = "a.lpt", .from_ns = from_ns, .to_ns = to_ns};
	ask_many(&alone, &run);
	assert_int_equal(alone.nr_passes, 3); /* 31 of 70 a pass */
	struct report_run with = report_sharing(&run, &shared);
	assert_ptr_equal(with.shared, &shared);
	struct model *m = first_pass(&with);
	assert_int_equal(shared.tape != NULL, taped);
	ask_many(&together, &with);
	assert_int_equal(together.nr_passes, 2); /* a factor of 1 is the run itself */
	assert_same_answers(&alone, &together);
	ask_many(&again, &with);
	assert_int_equal(again.nr_passes, 0);
	assert_same_answers(&alone, &again);
	model_free(m);
	report_shared_pass_fini(&shared);
	base_arena_free(alone.arena);
	base_arena_free(together.arena);
	base_arena_free(again.arena);
}

static void (*const traces[])(struct bench *b) = {slow_and_fast, taking_turns};

static void shared_or_not(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(traces); i++) {
		struct bench b;
		traces[i](&b);
		compare(&b, 0, 0, true);
		finish(&b);
	}
}

/* A window is not on the tape: the trace is read. */
static void in_a_window(void **state)
{
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(traces); i++) {
		struct bench b;
		traces[i](&b);
		compare(&b, 100000, 500000, false);
		finish(&b);
	}
}

/* slow takes 985 us; with f of that the run takes max(16 + 985 f, 600), as the fixture says. */
static void known_answers(void **state)
{
	(void)state;
	struct bench b;
	slow_and_fast(&b);
	struct report_shared_pass shared = {0};
	struct report_run run = {.reader = b.reader, .trace_path = "a.lpt"}, with;
	with = report_sharing(&run, &shared);
	struct model *m = first_pass(&with);
	static struct asked a;
	ask_many(&a, &with);
	unsigned nr_slow = 0;
	for (size_t i = 0; i < SCENARIOS; i++) {
		const struct graph_edit *e = a.lane[i].edit;
		if (e->id >= graph_nr_states(model_graph(m)) || e->factor > 1 ||
			!strstr(model_state(m, e->id)->name, "slow"))
			continue;
		assert_near(a.answer[i].length_ns, fmax(16 + 985 * e->factor, 600) * 1000, 3000);
		nr_slow++;
	}
	assert_int_equal(nr_slow, 5);
	model_free(m);
	report_shared_pass_fini(&shared);
	base_arena_free(a.arena);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared_or_not),
		cmocka_unit_test(in_a_window),
		cmocka_unit_test(known_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
