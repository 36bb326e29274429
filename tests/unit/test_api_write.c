/* SPDX-License-Identifier: Apache-2.0 */
/* test_api_write.c - traces that other programs write by the public library: read back, and with
 * mistakes. */
#include "api/api.h"
#include "api_walk.h"
#include "trace/trace.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

static struct longpole_writer *open_writer(char path[TEMPORARY_PATH])
{
	SIZED(longpole_error, e);
	struct longpole_writer *w;
	temporary_file(path, "", 0);
	assert_false(longpole_writer_open(path, NULL, &w, &e));
	return w;
}

/* An actor that passes one item to another one, by key, and control to a third. */
static void what_is_written_is_read(void **state)
{
	(void)state;
	char path[TEMPORARY_PATH];
	SIZED(longpole_error, e);
	SIZED(longpole_trace_info, info);
	struct longpole_writer *w = open_writer(path);
	struct longpole_trace *t;
	uint32_t a = longpole_writer_new_actor(w, "host", "a", 0);
	uint32_t b = longpole_writer_new_actor(w, "", "b", 3);
	uint32_t c = longpole_writer_new_actor(w, NULL, "c", 0);
	uint32_t q = longpole_writer_new_queue(w, "q", 1, 4);
	uint32_t s = longpole_writer_new_state(w, "s");
	assert_true(a == 1 && b == 2 && c == 3 && q == 1 && s == 1);
	assert_false(longpole_writer_enter(w, 0, a, s));
	assert_false(longpole_writer_identify(w, 5, a, 77));
	assert_false(longpole_writer_item(
		w, 10, a, LONGPOLE_PUT_ITEM, q, 5, 1, LONGPOLE_QUEUE_SMALLEST));
	assert_false(longpole_writer_item(w, 10, b, LONGPOLE_TAKE_ITEM, q, 5, 1, 0));
	assert_false(longpole_writer_link(w, 20, b, c));
	assert_false(longpole_writer_enter(w, 25, c, s));
	assert_false(longpole_writer_end(w, 30, c));
	assert_false(longpole_writer_enter(w, 30, c, s)); /* once more */
	assert_false(longpole_writer_queue(w, 30, a, LONGPOLE_ENQUEUE, q, 1,
		LONGPOLE_QUEUE_NEWEST | LONGPOLE_QUEUE_EMPTIED | LONGPOLE_QUEUE_TOKENS |
			LONGPOLE_QUEUE_SMALLEST | LONGPOLE_QUEUE_ANONYMOUS));
	assert_false(longpole_writer_close(w, 40, &e));
	assert_false(longpole_trace_open(path, NULL, &t, &e));
	assert_false(longpole_trace_get_info(t, &info));
	assert_true(info.is_synthetic && !info.is_partial && info.last_ns == 40);
	static const struct {
		const char *kind, *first;
		uint64_t time_ns;
	} expected[] = {{"process_begin", "", 0}, {"thread_begin", "", 0},
		{"note_act", "host/a", 0}, {"note_state", "s", 0}, {"note_identify", "", 5},
		{"note_put_item", "queue q", 10}, {"note_act", "b#3", 10},
		{"note_take_item", "queue q", 10}, {"note_link", "c", 20}, {"note_act", "c", 25},
		{"note_state", "s", 25}, {"note_end", "c", 30}, {"note_act", "c", 30},
		{"note_state", "s", 30}, {"note_act", "host/a", 30},
		{"note_enqueue", "queue q", 30}, {"thread_end", "", 40}, {"process_end", "", 40}};
	SIZED(longpole_record, r);
	SIZED(longpole_value, v);
	for (size_t i = 0; i < BASE_COUNT(expected); i++) {
		assert_false(longpole_trace_next(t, &r, &e));
		assert_string_equal(r.kind_name, expected[i].kind);
		assert_int_equal(r.time_ns, expected[i].time_ns);
		if (r.nr_fields && *expected[i].first) {
			assert_false(longpole_trace_field(t, 0, &v));
			assert_string_equal(v.text, expected[i].first);
		}
	}
	assert_int_equal(longpole_trace_next(t, &r, &e), LONGPOLE_STATUS_END);
	longpole_trace_close(t);
	unlink(path);
}

enum { MISTAKES = 11 };

/* After a verb at 100 ns, with one actor, queue and state; what the text has to say of it. */
static const char *make_mistake(struct longpole_writer *w, int which)
{
	switch (which) {
	case 0:
		longpole_writer_enter(w, 100, 2, 1);
		return "no actor has that number";
	case 1:
		longpole_writer_enter(w, 100, 0, 1);
		return "no actor has that number";
	case 2:
		longpole_writer_enter(w, 100, 1, 2);
		return "no state has that number";
	case 3:
		longpole_writer_queue(w, 100, 1, LONGPOLE_ENQUEUE, 2, 1, 0);
		return "no queue has that number";
	case 4:
		longpole_writer_link(w, 100, 1, 2);
		return "no actor has that number";
	case 5:
		longpole_writer_enter(w, 99, 1, 1);
		return "before that of the last call";
	case 6:
		longpole_writer_queue(w, 100, 1, LONGPOLE_PUT_ITEM, 1, 1, 0);
		return "no such verb";
	case 7:
		longpole_writer_item(w, 100, 1, LONGPOLE_ENQUEUE, 1, 1, 1, 0);
		return "no such verb";
	case 8:
		longpole_writer_queue(w, 100, 1, LONGPOLE_ENQUEUE, 1, 1, 4);
		return "no such flag";
	case 9:
		longpole_writer_identify(w, 100, 7, 1);
		return "no actor has that number";
	default:
		longpole_writer_end(w, 100, 7);
		return "no actor has that number";
	}
}

/* Each text stands once in the file, however many things are called so. */
static void texts_are_written_once(void **state)
{
	(void)state;
	char path[TEMPORARY_PATH];
	SIZED(longpole_error, e);
	SIZED(longpole_record, r);
	SIZED(longpole_value, v);
	struct longpole_trace_options opts = {.size = sizeof opts, .with_definitions = 1};
	struct longpole_writer *w = open_writer(path);
	struct longpole_trace *t;
	unsigned nr_x = 0, nr_y = 0;
	longpole_writer_new_actor(w, "x", "x", 0);
	longpole_writer_new_state(w, "x");
	longpole_writer_new_state(w, "y");
	longpole_writer_new_queue(w, "x", 0, 0);
	assert_false(longpole_writer_close(w, 1, &e));
	assert_false(longpole_trace_open(path, &opts, &t, &e));
	while (!longpole_trace_next(t, &r, &e))
		if (r.kind == TRACE_string) {
			assert_false(longpole_trace_field(t, 1, &v));
			nr_x += !strcmp(v.text, "x");
			nr_y += !strcmp(v.text, "y");
		}
	assert_true(nr_x == 1 && nr_y == 1);
	longpole_trace_close(t);
	unlink(path);
}

/* The first mistake is kept, and what was written before it can be read. */
static void mistakes_of_a_writer(void **state)
{
	(void)state;
	for (int i = 0; i < MISTAKES; i++) {
		char path[TEMPORARY_PATH];
		SIZED(longpole_error, e);
		struct longpole_trace *t;
		uint64_t nr;
		struct longpole_writer *w = open_writer(path);
		longpole_writer_new_actor(w, "", "a", 0);
		longpole_writer_new_queue(w, "q", 0, 0);
		longpole_writer_new_state(w, "s");
		assert_false(longpole_writer_enter(w, 100, 1, 1));
		const char *words = make_mistake(w, i);
		assert_int_equal(longpole_writer_enter(w, 200, 1, 1), LONGPOLE_STATUS_USAGE);
		assert_int_equal(longpole_writer_new_state(w, "late"), 0);
		assert_int_equal(longpole_writer_close(w, 300, &e), LONGPOLE_STATUS_USAGE);
		assert_non_null(strstr(e.text, words));
		assert_false(longpole_trace_open(path, NULL, &t, &e));
		assert_int_equal(walk(t, &nr, &e), LONGPOLE_STATUS_END);
		assert_int_equal(nr, 4); /* two that begin, note_act, note_state */
		longpole_trace_close(t);
		unlink(path);
	}
}

static void a_writer_without_room(void **state)
{
	(void)state;
	SIZED(longpole_error, e);
	struct longpole_writer *w;
	char path[TEMPORARY_PATH];
	assert_true(longpole_writer_open("/nonexistent/x.lpt", NULL, &w, &e) < 0);
	assert_true(!w && strstr(e.text, "/nonexistent/x.lpt") && e.sys_errno);
	assert_true(longpole_writer_open("/dev/full", NULL, &w, &e) < 0);
	assert_true(!w && strstr(e.text, "/dev/full") && e.sys_errno);
	/* no room in the midst of it: said at the end, and what is there can be read */
	struct rlimit was, small;
	SIZED(longpole_trace_info, info);
	struct longpole_trace *t;
	uint64_t nr, i = 0;
	w = open_writer(path);
	longpole_writer_new_actor(w, "", "a", 0);
	longpole_writer_new_state(w, "s");
	assert_false(getrlimit(RLIMIT_FSIZE, &was));
	small = (struct rlimit){.rlim_cur = 300000, .rlim_max = was.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_false(setrlimit(RLIMIT_FSIZE, &small));
	while (i < 1 << 20 && !longpole_writer_enter(w, i * i, 1, 1))
		i++;
	assert_true(i < 1 << 20 && longpole_writer_bytes(w) > 1000);
	assert_true(longpole_writer_close(w, i * i, &e) < 0);
	assert_false(setrlimit(RLIMIT_FSIZE, &was));
	signal(SIGXFSZ, SIG_DFL);
	assert_true(strstr(e.text, path) && e.sys_errno == EFBIG);
	assert_false(longpole_trace_open(path, NULL, &t, &e));
	assert_int_equal(walk(t, &nr, &e), LONGPOLE_STATUS_END);
	assert_false(longpole_trace_get_info(t, &info));
	longpole_trace_close(t);
	unlink(path);
	w = open_writer(path);
	longpole_writer_new_actor(w, "", "a", 0);
	longpole_writer_new_state(w, "s");
	longpole_writer_enter(w, 100, 1, 1);
	assert_int_equal(longpole_writer_close(w, 99, &e), LONGPOLE_STATUS_USAGE);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(texts_are_written_once),
		cmocka_unit_test(mistakes_of_a_writer),
		cmocka_unit_test(a_writer_without_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
