/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_states.c - what a state is without reading its name: its cause, its arguments, its
 * identity. Laws of the table of causes, and known answers.
 */
#include "model/model.h"
#include "model_fixture.h"

static const struct {
	const char *lead, *phrase, *sentence;
	enum model_state_kind kind;
} row[MODEL_CAUSE_NR] = {
#define STATE(cause, kind, lead, phrase, sentence) {lead, phrase, sentence, MODEL_STATE_##kind},
#include "model/states.def"
#undef STATE
};

static bool is_argument(const char *word, size_t length)
{
	static const char *const known[] = {
#define X(name) #name,
		MODEL_ARGUMENTS(X)
#undef X
	};
	for (size_t i = 0; i < BASE_COUNT(known); i++)
		if (strlen(known[i]) == length && !memcmp(known[i], word, length))
			return true;
	return false;
}

/* What the filling of phrases relies on: no more arguments than there is room for, each known, and
 * one in each [part]. */
static void phrases_are_well_formed(void **state)
{
	(void)state;
	for (size_t i = 0; i < MODEL_CAUSE_NR; i++) {
		unsigned nr = 0, nr_in_part = 0;
		bool in_part = false;
		for (const char *c = row[i].phrase; *c; c++) {
			if (*c == '{') {
				assert_true(is_argument(c + 1, strcspn(c + 1, "}")));
				nr_in_part++;
				nr++;
			} else if (*c == '[') {
				assert_false(in_part);
				in_part = true;
				nr_in_part = 0;
			} else if (*c == ']') {
				assert_true(in_part && nr_in_part == 1);
				in_part = false;
			}
		}
		assert_false(in_part);
		assert_true(nr <= MODEL_ARGUMENTS_MAX);
		assert_true(*row[i].sentence);
	}
}

/* Causes are told apart by their names, too: else what is one in an answer would be two. */
static void causes_of_a_kind_read_differently(void **state)
{
	(void)state;
	for (size_t i = 0; i < MODEL_CAUSE_NR; i++)
		for (size_t k = 0; k < i; k++) {
			char a[200], b[200];
			snprintf(a, sizeof a, "%s%s", row[i].lead, row[i].phrase);
			snprintf(b, sizeof b, "%s%s", row[k].lead, row[k].phrase);
			assert_true(row[i].kind != row[k].kind || strcmp(a, b) != 0);
		}
}

/* Each type of object stands once in its table; what is kept in it is of one sort. */
static void types_of_objects(void **state)
{
	(void)state;
	unsigned nr[TRACE_OBJECT_NR] = {0};
#define OBJECT(type, discipline, traits) nr[TRACE_OBJECT_##type]++;
#define NAMELESS(type, traits, handover, queue)
#include "model/object_types.def"
	for (int i = TRACE_OBJECT_none + 1; i < TRACE_OBJECT_NR; i++) {
		enum trace_object_type type = (enum trace_object_type)i;
		assert_int_equal(nr[i], 1);
		if (model_object_is(type, MODEL_TRAIT_lock))
			assert_true(model_object_is(type, MODEL_TRAIT_tokens) &&
				    model_object_is(type, MODEL_TRAIT_exchangeable));
		if (model_object_is(type, MODEL_TRAIT_messages))
			assert_false(model_object_is(type, MODEL_TRAIT_stores) ||
				     model_object_is(type, MODEL_TRAIT_bytes));
		if (model_object_is(type, MODEL_TRAIT_tokens))
			assert_false(model_object_is(type, MODEL_TRAIT_tagged));
	}
	assert_true(model_object_is(MODEL_TYPE_PROCESSOR, MODEL_TRAIT_exchangeable));
	assert_false(model_object_is(MODEL_TYPE_PROCESSOR, MODEL_TRAIT_lock));
	assert_false(model_object_is((enum trace_object_type)10000, MODEL_TRAIT_lock));
	assert_false(model_object_is((enum trace_object_type) - 1, MODEL_TRAIT_lock));
}

/* The only state of that cause, or the one that is about that object. */
static const struct model_state *state_of(
	const struct bench *b, enum model_cause cause, const char *object, uint32_t site)
{
	const struct model_state *found = NULL;
	for (uint32_t i = 0; i < graph_nr_states(model_graph(b->model)); i++) {
		const struct model_state *st = model_state(b->model, i);
		uint32_t text = model_state_argument(st, MODEL_ARGUMENT_object);
		if (st->cause != cause || (site && st->site != site) ||
			(object && strcmp(model_text(b->model, text), object) != 0))
			continue;
		assert_null(found);
		found = st;
	}
	assert_non_null(found);
	return found;
}

/* Two locks of one name, taken at two places, and another one; one is waited for. */
static void states_of_one_name_are_one_identity(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t here = site(&b, "here"), there = site(&b, "there");
	spawn(&b, 1, here);
	uint32_t m1 = object(&b, TRACE_OBJECT_mutex, "m", 0),
		 m2 = object(&b, TRACE_OBJECT_mutex, "m", 0),
		 n = object(&b, TRACE_OBJECT_mutex, "n", 0);
	PUT(&b, 100, 1, lock_acquire, .object = m1, .site = here);
	PUT(&b, 110, 2, lock_acquire, .object = n, .site = here);
	PUT(&b, 120, 2, lock_release, .object = n, .site = here);
	PUT(&b, 130, 2, lock_wait, .object = m1, .site = here);
	PUT(&b, 200, 1, lock_release, .object = m1, .site = here);
	PUT(&b, 210, 2, lock_acquire, .object = m1, .site = here);
	PUT(&b, 220, 2, lock_release, .object = m1, .site = here);
	PUT(&b, 230, 1, lock_acquire, .object = m2, .site = there);
	PUT(&b, 240, 1, lock_release, .object = m2, .site = there);
	PUT(&b, 250, 2, thread_end);
	end(&b, 300);
	const struct model_state *m_here = state_of(&b, MODEL_CAUSE_hold, "mutex m", here),
				 *m_there = state_of(&b, MODEL_CAUSE_hold, "mutex m", there),
				 *n_here = state_of(&b, MODEL_CAUSE_hold, "mutex n", here),
				 *wait = state_of(&b, MODEL_CAUSE_wait_object, NULL, 0);
	assert_int_equal(m_here->identity, m_there->identity);
	assert_ptr_equal(m_here->name, m_there->name);
	assert_int_not_equal(m_here->where_text, m_there->where_text);
	assert_int_not_equal(m_here->identity, n_here->identity);
	assert_int_not_equal(m_here->identity, wait->identity);
	assert_int_equal(model_state_argument(m_here, MODEL_ARGUMENT_object),
		model_state_argument(wait, MODEL_ARGUMENT_object));
	assert_int_equal(model_state_argument(m_here, MODEL_ARGUMENT_program), 0);
	assert_string_equal(m_here->name, "holding mutex m");
	assert_string_equal(m_here->what, "mutex m");
	assert_string_equal(wait->what, "mutex m");
	for (uint32_t i = 0; i < graph_nr_queues(model_graph(b.model)); i++) {
		const struct model_queue *q = model_queue(b.model, i);
		if (q->object)
			assert_int_equal(
				q->name_text == model_state_argument(m_here, MODEL_ARGUMENT_object),
				q->object != n);
	}
	finish(&b);
}

/* The main thread writes to two pipes, from one of which another thread reads, and joins that. */
static void causes_of_waits(void **state)
{
	(void)state;
	struct bench b;
	start(&b);
	uint32_t here = site(&b, "here");
	spawn(&b, 1, here);
	uint32_t pipe = object(&b, TRACE_OBJECT_pipe, "p", 100);
	PUT(&b, 100, 2, io_begin, .object = pipe, .op = TRACE_IO_read, .n = 1, .site = here);
	PUT(&b, 150, 1, io_begin, .object = pipe, .op = TRACE_IO_write, .n = 1, .site = here);
	PUT(&b, 160, 1, io_end, .object = pipe, .op = TRACE_IO_write, .result = 1);
	PUT(&b, 170, 2, io_end, .object = pipe, .op = TRACE_IO_read, .result = 1);
	uint32_t other = object(&b, TRACE_OBJECT_pipe, "q", 100);
	PUT(&b, 172, 1, io_begin, .object = other, .op = TRACE_IO_write, .n = 1, .site = here);
	PUT(&b, 174, 1, io_end, .object = other, .op = TRACE_IO_write, .result = 1);
	PUT(&b, 180, 1, join_wait, .handle = 2000, .site = here);
	PUT(&b, 200, 2, thread_end);
	PUT(&b, 210, 1, join_done, .handle = 2000);
	end(&b, 300);
	assert_string_equal(
		state_of(&b, MODEL_CAUSE_wait_data, NULL, 0)->name, "waiting for data in pipe p");
	assert_string_equal(state_of(&b, MODEL_CAUSE_wait_thread, NULL, 0)->what, "a thread's end");
	const struct model_state *write = state_of(&b, MODEL_CAUSE_io, "pipe p", 0);
	assert_string_equal(
		model_text(b.model, model_state_argument(write, MODEL_ARGUMENT_io)), "write");
	assert_int_not_equal(write->identity, state_of(&b, MODEL_CAUSE_io, "pipe q", 0)->identity);
	finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phrases_are_well_formed),
		cmocka_unit_test(causes_of_a_kind_read_differently),
		cmocka_unit_test(types_of_objects),
		cmocka_unit_test(states_of_one_name_are_one_identity),
		cmocka_unit_test(causes_of_waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
