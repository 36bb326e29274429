/* SPDX-License-Identifier: Apache-2.0 */
/* test_api.c - the public library against the builders behind it, bad input, and memory that fails. */
#include "api/api.h"
#include "api_walk.h"
#include "longpole/analysis.h"
#include "report/report.h"
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#define SCREEN "tests/golden/screens/sh.lpt"
#define LOSSES "tests/golden/lock.lpt" /* its recorder lost records */

static const char *api_test_path(char buf[512], const char *name)
{
	const char *source = getenv("LONGPOLE_SOURCE");
	snprintf(buf, 512, "%s/%s", source ? source : ".", name);
	return buf;
}

struct bytes {
	char *p;
	size_t nr;
};

static struct bytes read_whole(const char *name)
{
	char path[512];
	struct bytes b = {0};
	FILE *f = fopen(api_test_path(path, name), "rb");
	assert_non_null(f);
	assert_false(fseek(f, 0, SEEK_END));
	b.nr = (size_t)ftell(f);
	rewind(f);
	b.p = malloc(b.nr + 1);
	assert_non_null(b.p);
	assert_int_equal(fread(b.p, 1, b.nr, f), b.nr);
	fclose(f);
	return b;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* A struct as an older, this and a newer header have it. */
struct older {
	size_t size;
	uint64_t a;
};
struct ours {
	size_t size;
	uint64_t a, b;
};
struct newer {
	size_t size;
	uint64_t a, b, c;
};

static void sizes_of_options(void **state)
{
	(void)state;
	struct ours o;
	struct {
		struct older old;
		uint64_t behind;
	} in = {{sizeof in.old, 1}, 7};
	struct newer new = {sizeof new, 1, 2, 0};
	assert_true(api_take(&o, sizeof o, NULL) && !o.a && !o.b);
	assert_true(api_take(&o, sizeof o, &in.old) && o.a == 1 && !o.b);
	assert_true(api_take(&o, sizeof o, &new) && o.a == 1 && o.b == 2);
	new.c = 1; /* wants what we do not know */
	assert_false(api_take(&o, sizeof o, &new));
	in.old.size = 0;
	assert_false(api_take(&o, sizeof o, &in.old));
}

static void sizes_of_answers(void **state)
{
	(void)state;
	const struct ours o = {.a = 1, .b = 2};
	struct {
		struct older old;
		uint64_t behind;
	} in = {{sizeof in.old, 9}, 7};
	struct newer new = {sizeof new, 9, 9, 9};
	assert_true(api_give(&in.old, &o, sizeof o));
	assert_true(in.old.size == sizeof in.old && in.old.a == 1 && in.behind == 7);
	assert_true(api_give(&new, &o, sizeof o));
	assert_true(new.size == sizeof new &&new.a == 1 && new.b == 2 && !new.c);
	in.old.size = 0;
	assert_false(api_give(&in.old, &o, sizeof o));
	assert_false(api_give(NULL, &o, sizeof o));
}

static void errors(void **state)
{
	(void)state;
	SIZED(longpole_error, e);
	struct base_err err;
	enum base_status s = base_fail(&err, BASE_ERR_NOTFOUND, "no such thing");
	s = base_cause(&err, s, "while looking");
	assert_int_equal(api_finish(&e, s, &err), LONGPOLE_STATUS_NOTFOUND);
	assert_string_equal(e.text, "no such thing\nwhile looking");
	assert_int_equal(e.status, LONGPOLE_STATUS_NOTFOUND);
	assert_int_equal(api_finish(&e, BASE_ERR_NOMEM, NULL), LONGPOLE_STATUS_NOMEM);
	assert_string_equal(e.text, "out of memory");
	assert_int_equal(api_finish(&e, BASE_OK, &err), LONGPOLE_STATUS_OK);
	assert_string_equal(e.text, "");
	e.size = offsetof(struct longpole_error, text) + 8; /* an older, smaller one */
	memset(e.text, 'x', sizeof e.text);
	api_finish(&e, s, &err);
	assert_memory_equal(e.text, "no such\0xx", 10);
	e.size = 0;
	e.status = 5;
	assert_int_equal(api_finish(&e, s, &err), LONGPOLE_STATUS_NOTFOUND);
	assert_int_equal(e.status, 5);
	assert_int_equal(api_finish(NULL, s, &err), LONGPOLE_STATUS_NOTFOUND);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void kinds(void **state)
{
	(void)state;
	SIZED(longpole_kind, k);
	SIZED(longpole_kind, again);
	SIZED(longpole_field, f);
	uint32_t nr = 0, nr_fields = 0;
	unsigned nr_table;
	const struct trace_kind_desc *table = trace_kind_table(&nr_table);
	for (; !longpole_kind_at(nr, &k); nr++) {
		assert_int_equal(k.kind, table[nr].kind);
		assert_int_equal(longpole_kind_find(k.name, &again), LONGPOLE_STATUS_OK);
		assert_int_equal(again.kind, k.kind);
		uint32_t i = 0;
		for (; !longpole_kind_field(k.kind, i, &f); i++, nr_fields++) {
			assert_string_equal(f.name, table[nr].field[i].name);
			assert_string_equal(f.unit, table[nr].field[i].unit);
			assert_int_equal(longpole_kind_field_find(k.kind, f.name), i);
		}
		assert_int_equal(i, k.nr_fields);
	}
	assert_true(nr == nr_table && nr_fields > nr);
	assert_int_equal(longpole_kind_find("no_such_kind", &k), LONGPOLE_STATUS_NOTFOUND);
	assert_int_equal(longpole_kind_field(9999, 0, &f), LONGPOLE_STATUS_NOTFOUND);
	assert_int_equal(longpole_kind_field_find(TRACE_lock_wait, "no_such_field"), -1);
}

/* As the printer of `longpole dump --json` has it, which resolves names by itself. */
static void records_are_those_of_dump(void **state)
{
	(void)state;
	char path[512];
	SIZED(longpole_error, e);
	SIZED(longpole_record, r);
	SIZED(longpole_value, v);
	SIZED(longpole_field, f);
	struct longpole_trace_options opts = {.size = sizeof opts, .with_definitions = 1};
	struct trace_reader_options inner = {.size = sizeof inner, .with_definitions = true};
	struct longpole_trace *t;
	struct trace_reader *reader;
	struct trace_batch b;
	uint64_t nr = 0;
	assert_false(longpole_trace_open(api_test_path(path, SCREEN), &opts, &t, &e));
	assert_int_equal(trace_reader_open(path, &inner, &reader, NULL), BASE_OK);
	while (trace_reader_next(reader, &b, NULL) == BASE_OK)
		for (size_t i = 0; i < b.nr; i++, nr++) {
			struct base_str line = {0};
			trace_print_json(&line, trace_reader_defs(reader), &b.record[i]);
			json_t *json = json_loads(base_str_text(&line), 0, NULL);
			assert_non_null(json);
			assert_int_equal(longpole_trace_next(t, &r, &e), LONGPOLE_STATUS_OK);
			assert_string_equal(
				r.kind_name, json_string_value(json_object_get(json, "kind")));
			assert_int_equal(r.time_ns, b.record[i].time_ns);
			for (uint32_t k = 0; k < r.nr_fields; k++) {
				char key[64];
				assert_false(longpole_trace_field(t, k, &v));
				assert_false(longpole_kind_field(r.kind, k, &f));
				assert_int_equal(v.type, f.type);
				const json_t *number = json_object_get(json, f.name);
				snprintf(key, sizeof key, "%s_text", f.name);
				const json_t *name = json_object_get(json, key);
				if (f.type == LONGPOLE_FIELD_TEXT)
					name = number;
				else if (json_is_integer(number))
					assert_int_equal(v.s64, json_integer_value(number));
				assert_string_equal(v.text, name ? json_string_value(name) : "");
			}
			json_decref(json);
			base_str_fini(&line);
		}
	assert_int_equal(longpole_trace_next(t, &r, &e), LONGPOLE_STATUS_END);
	assert_int_equal(longpole_trace_field(t, 0, &v), LONGPOLE_STATUS_USAGE);
	assert_true(nr > 1000);
	uint64_t again;
	assert_false(longpole_trace_rewind(t, &e));
	assert_int_equal(longpole_trace_field(t, 0, &v), LONGPOLE_STATUS_USAGE);
	assert_int_equal(walk(t, &again, &e), LONGPOLE_STATUS_END);
	assert_int_equal(again, nr);
	trace_reader_close(reader);
	longpole_trace_close(t);
}

static void what_a_trace_is(void **state)
{
	(void)state;
	char path[512];
	SIZED(longpole_error, e);
	SIZED(longpole_trace_info, info);
	SIZED(longpole_loss, loss);
	struct longpole_trace *t;
	assert_false(longpole_trace_open(api_test_path(path, SCREEN), NULL, &t, &e));
	assert_false(longpole_trace_verify(t, &e));
	assert_false(longpole_trace_get_info(t, &info));
	assert_true(info.file_bytes == info.readable_bytes && !info.is_partial);
	assert_true(info.nr_records && info.last_ns && info.nr_streams > 1 && *info.command);
	assert_true(*longpole_trace_stream_name(t, 1));
	assert_string_equal(longpole_trace_stream_name(t, info.nr_streams + 5), "");
	longpole_trace_close(t);
	assert_false(longpole_trace_open(api_test_path(path, LOSSES), NULL, &t, &e));
	assert_false(longpole_trace_get_info(t, &info));
	assert_true(info.is_partial);
	assert_false(longpole_trace_loss(t, 0, &loss));
	assert_string_equal(loss.name, "records_lost");
	assert_true(loss.count == 12 && loss.is_partial);
	assert_non_null(strstr(loss.text, "12 records were lost"));
	assert_int_equal(longpole_trace_loss(t, TRACE_DIAG_NR, &loss), LONGPOLE_STATUS_END);
	longpole_trace_close(t);
}

static void a_part_of_the_time(void **state)
{
	(void)state;
	char path[512];
	SIZED(longpole_error, e);
	SIZED(longpole_trace_info, info);
	SIZED(longpole_record, r);
	struct longpole_trace_options opts = {.size = sizeof opts};
	struct longpole_trace *t;
	uint64_t nr = 0;
	assert_false(longpole_trace_open(api_test_path(path, SCREEN), NULL, &t, &e));
	assert_false(longpole_trace_get_info(t, &info));
	longpole_trace_close(t);
	opts.from_ns = info.last_ns / 4;
	opts.to_ns = info.last_ns / 2;
	assert_false(longpole_trace_open(path, &opts, &t, &e));
	for (; !longpole_trace_next(t, &r, &e); nr++)
		assert_true(r.time_ns >= opts.from_ns && r.time_ns < opts.to_ns);
	assert_true(nr && nr < info.nr_records);
	longpole_trace_close(t);
}

/* ---- bad input ------------------------------------------------------------------------------- */

/* Whatever the bytes are: a status with a text, or an answer; and one that says if it is partial. */
static int try_bytes(const char *bytes, size_t nr)
{
	SIZED(longpole_error, e);
	SIZED(longpole_answer, answer);
	SIZED(longpole_trace_info, info);
	struct longpole_trace *t;
	struct longpole_analysis *a;
	uint64_t nr_records;
	int s = longpole_trace_open_memory(bytes, nr, NULL, &t, &e);
	if (s) {
		assert_true(s < 0 && !t && *e.text);
		return s;
	}
	assert_int_equal(walk(t, &nr_records, &e), LONGPOLE_STATUS_END);
	assert_false(longpole_trace_get_info(t, &info));
	s = longpole_analysis_new(t, NULL, &a, &e);
	if (s)
		assert_true(s < 0 && !a && *e.text);
	else if (!longpole_analysis_answer(a, &answer))
		assert_int_equal(answer.is_partial, info.is_partial);
	longpole_analysis_close(a);
	longpole_trace_close(t);
	return info.is_partial ? LONGPOLE_STATUS_END : s;
}

static void cut_anywhere(void **state)
{
	(void)state;
	struct bytes b = read_whole(SCREEN);
	unsigned nr_partial = 0, nr_refused = 0;
	assert_int_equal(try_bytes(b.p, b.nr), LONGPOLE_STATUS_OK);
	for (size_t nr = 0; nr < b.nr; nr += nr < 1700 ? 331 : 1201) {
		int s = try_bytes(b.p, nr);
		nr_partial += s == LONGPOLE_STATUS_END;
		nr_refused += s < 0;
	}

	assert_true(nr_partial > 8 && nr_refused > 3);
	free(b.p);
}

static void damaged_anywhere(void **state)
{
	(void)state;
	struct bytes b = read_whole(LOSSES);
	for (size_t i = 0; i < b.nr; i += 61) {
		b.p[i] = (char)~b.p[i];
		int s = try_bytes(b.p, b.nr);
		assert_true(s < 0 || s == LONGPOLE_STATUS_END); /* (it had losses before) */
		b.p[i] = (char)~b.p[i];
	}
	free(b.p);
}

/* NULL in each place. */
static void wrong_arguments(void **state)
{
	(void)state;
	SIZED(longpole_error, e);
	SIZED(longpole_record, record);
	struct longpole_trace *t = NULL;
	struct longpole_analysis *a = NULL;
	struct longpole_path *path = NULL;
	struct longpole_queues *queues = NULL;
	struct longpole_predictions *predictions = NULL;
	struct longpole_writer *w = NULL;
	char file[512];
	api_test_path(file, SCREEN);
	struct longpole_analysis_options many = {.size = sizeof many, .nr_parts = 99};
	struct longpole_analysis_options none = {.size = sizeof none, .from_ns = 5, .to_ns = 5};
	struct longpole_trace_options unset = {.from_ns = 1};
	struct longpole_trace_options newer = {.size = sizeof newer, .reserved = 1};
	struct longpole_writer_options newest = {.size = sizeof newest, .reserved = 1};
	struct longpole_analysis_options newly = {.size = sizeof newly, .reserved = 1};
	const int status[] = {longpole_trace_open(NULL, NULL, &t, &e),
		longpole_trace_open(file, NULL, NULL, &e),
		longpole_trace_open(file, &unset, &t, &e),
		longpole_trace_open_memory(NULL, 5, NULL, &t, &e),
		longpole_trace_open_memory("x", 1, NULL, NULL, &e),
		longpole_trace_next(NULL, &record, &e), longpole_trace_rewind(NULL, &e),
		longpole_trace_verify(NULL, &e), longpole_trace_get_info(NULL, NULL),
		longpole_trace_loss(NULL, 0, NULL), longpole_trace_field(NULL, 0, NULL),
		longpole_analysis_open(NULL, NULL, &a, &e),
		longpole_analysis_open(file, NULL, NULL, &e),
		longpole_analysis_open(file, &many, &a, &e),
		longpole_analysis_open(file, &none, &a, &e),
		longpole_analysis_new(NULL, NULL, &a, &e), longpole_analysis_answer(NULL, NULL),
		longpole_analysis_part(NULL, 0, NULL), longpole_analysis_state(NULL, 0, NULL),
		longpole_analysis_loss(NULL, 0, NULL), longpole_path_new(NULL, &path, &e),
		longpole_path_step(NULL, 0, NULL), longpole_queues_new(NULL, NULL, &queues, &e),
		longpole_queues_queue(NULL, 0, NULL),
		longpole_predictions_new(NULL, "#1=-50%", NULL, &predictions, &e),
		longpole_predictions_prediction(NULL, 0, NULL),
		longpole_writer_open(NULL, NULL, &w, &e),
		longpole_writer_open(file, NULL, NULL, &e),
		longpole_writer_open(file, &newest, &w, &e),
		longpole_trace_open(file, &newer, &t, &e),
		longpole_analysis_open(file, &newly, &a, &e), longpole_writer_enter(NULL, 0, 1, 1),
		longpole_writer_queue(NULL, 0, 1, LONGPOLE_ENQUEUE, 1, 1, 0),
		longpole_writer_item(NULL, 0, 1, LONGPOLE_PUT_ITEM, 1, 1, 1, 0),
		longpole_writer_link(NULL, 0, 1, 1), longpole_writer_identify(NULL, 0, 1, 1),
		longpole_writer_end(NULL, 0, 1), longpole_kind_find(NULL, NULL),
		longpole_kind_at(0, NULL)};
	for (size_t i = 0; i < BASE_COUNT(status); i++)
		if (status[i] != LONGPOLE_STATUS_USAGE)
			fail_msg("call %zu: status %d", i, status[i]);
	assert_true(!t && !a && !w);
}

static void without_a_handle(void **state)
{
	(void)state;
	assert_true(!longpole_path_nr_steps(NULL) && !longpole_queues_nr(NULL) &&
		    !longpole_predictions_nr(NULL) && !longpole_writer_new_state(NULL, "s") &&
		    !longpole_writer_new_actor(NULL, "", "a", 0) &&
		    !longpole_writer_new_queue(NULL, "q", 0, 0));
	longpole_trace_close(NULL);
	longpole_analysis_close(NULL);
	longpole_path_free(NULL);
	longpole_queues_free(NULL);
	longpole_predictions_free(NULL);
	assert_int_equal(longpole_writer_close(NULL, 0, NULL), LONGPOLE_STATUS_OK);
	assert_string_equal(longpole_status_text(LONGPOLE_STATUS_USAGE), "an argument is wrong");
	assert_string_equal(longpole_status_text(77), "unknown status");
}

/* ---- answers --------------------------------------------------------------------------------- */

struct both { /* the same trace, by way of here and by the builders */
	struct longpole_analysis *a;
	struct report_run run;
	char path[512];
};

static void both_open(struct both *b, const char *name)
{
	SIZED(longpole_error, e);
	*b = (struct both){0};
	b->run.trace_path = api_test_path(b->path, name);
	assert_int_equal(trace_reader_open(b->path, NULL, &b->run.reader, NULL), BASE_OK);
	assert_false(longpole_analysis_open(b->path, NULL, &b->a, &e));
}

static void both_close(struct both *b)
{
	longpole_analysis_close(b->a);
	trace_reader_close(b->run.reader);
}

static void the_answer(void **state)
{
	(void)state;
	struct both b;
	SIZED(longpole_answer, answer);
	SIZED(longpole_part, part);
	SIZED(longpole_state, row);
	SIZED(longpole_loss, loss);
	struct report_options opts = {.nr_parts_max = 2, .all_intervals = true};
	struct report *r = NULL;
	both_open(&b, SCREEN);
	assert_int_equal(report_build(&b.run, &opts, &r, NULL), BASE_OK);
	assert_false(longpole_analysis_answer(b.a, &answer));
	assert_string_equal(answer.pole, r->pole);
	assert_string_equal(answer.finding, r->finding);
	assert_int_equal(answer.elapsed_ns, (uint64_t)(r->elapsed_ns + 0.5));
	assert_true(answer.explained_share == r->explained_share && answer.nr_threads > 2);
	assert_true(answer.nr_parts == r->parts.nr && answer.nr_states == r->nr_rows);
	for (uint32_t i = 0; i < 2; i++) {
		const struct report_best *g = r->parts.part[i].gain;
		assert_false(longpole_analysis_part(b.a, i, &part));
		assert_true(part.is_predicted);
		assert_true(part.halved.speedup == g[REPORT_PART_HALVED].speedup);
		assert_true(part.halved.low == g[REPORT_PART_HALVED].low);
		assert_true(part.gone.high == g[REPORT_PART_GONE].high);
		assert_string_equal(part.then, r->parts.part[i].then);
	}
	double share = 0;
	for (uint32_t i = 0; !longpole_analysis_state(b.a, i, &row); i++) {
		assert_string_equal(row.state, r->row[i].state);
		assert_string_equal(row.actor, r->row[i].actor);
		assert_int_equal(row.visits, r->row[i].visits);
		share += row.share;
	}
	assert_true(share > 0.999 && share < 1.001);
	assert_int_equal(longpole_analysis_part(b.a, answer.nr_parts, &part), LONGPOLE_STATUS_END);
	assert_int_equal(longpole_analysis_state(b.a, answer.nr_states, &row), LONGPOLE_STATUS_END);
	size_t nr_losses = 0;
	while (!longpole_analysis_loss(b.a, (uint32_t)nr_losses, &loss))
		assert_string_equal(loss.text, r->trace.diag[nr_losses++].text);
	assert_int_equal(nr_losses, r->trace.nr_diags);
	report_free(r);
	both_close(&b);
}

static void the_path_and_the_queues(void **state)
{
	(void)state;
	struct both b;
	SIZED(longpole_error, e);
	SIZED(longpole_answer, answer);
	SIZED(longpole_step, step);
	SIZED(longpole_queue, queue);
	struct longpole_path *path;
	struct longpole_queues *queues;
	struct report_queues *inner;
	uint64_t sum_ns = 0, last_ns = 0, nr = 0;
	both_open(&b, SCREEN);
	assert_false(longpole_analysis_answer(b.a, &answer));
	assert_false(longpole_path_new(b.a, &path, &e));
	for (; !longpole_path_step(path, nr, &step); nr++) {
		assert_true(step.end_ns >= step.begin_ns && step.begin_ns >= last_ns);
		assert_true(*step.actor && *step.state);
		sum_ns += step.increment_ns;
		last_ns = step.begin_ns;
	}
	/* (each step is rounded by itself) */
	assert_true(sum_ns + nr > answer.elapsed_ns && sum_ns < answer.elapsed_ns + nr);
	assert_true(nr > 10 && nr == longpole_path_nr_steps(path));
	longpole_path_free(path);
	assert_int_equal(report_queues_build(&b.run, NULL, &inner, NULL), BASE_OK);
	assert_false(longpole_queues_new(b.a, NULL, &queues, &e));
	for (nr = 0; !longpole_queues_queue(queues, nr, &queue); nr++) {
		assert_string_equal(queue.name, inner->queue[nr].name);
		assert_int_equal(queue.wait_for_units_ns, inner->queue[nr].s.wait_data_ns);
		assert_int_equal(queue.enqueued_units, inner->queue[nr].s.enqueued);
	}
	assert_true(nr > 1 && nr == inner->nr_queues && nr == longpole_queues_nr(queues));
	report_queues_free(inner);
	longpole_queues_free(queues);
	assert_int_equal(
		longpole_queues_new(b.a, "no such", &queues, &e), LONGPOLE_STATUS_NOTFOUND);
	assert_true(!queues && strstr(e.text, "no such"));
	both_close(&b);
}

static void predictions(void **state)
{
	(void)state;
	struct both b;
	SIZED(longpole_error, e);
	SIZED(longpole_prediction, p);
	SIZED(longpole_answer, answer);
	SIZED(longpole_part, part);
	struct longpole_predictions *all;
	struct longpole_prediction_options by_path = {
		.size = sizeof by_path, .methods = REPORT_METHOD_path};
	struct longpole_prediction_options unknown = {.size = sizeof unknown, .methods = 4};
	both_open(&b, SCREEN);
	assert_false(longpole_analysis_answer(b.a, &answer));
	assert_false(longpole_analysis_part(b.a, 0, &part));
	assert_false(longpole_predictions_new(
		b.a, "# half of it\n#1=-50%\n\n#1=x0.5\n#2=-10%\n", NULL, &all, &e));
	assert_int_equal(longpole_predictions_nr(all), 2);
	assert_false(longpole_predictions_prediction(all, 0, &p));
	assert_true(p.gain.speedup == part.halved.speedup && p.gain.high == part.halved.high);
	assert_int_equal(
		p.elapsed_ns, (uint64_t)((double)answer.elapsed_ns / p.gain.speedup + 0.5));
	assert_true(p.nr_edits == 1 && *p.next && p.path_speedup > 1 && p.replay_speedup > 1);
	assert_false(longpole_predictions_prediction(all, 1, &p));
	assert_true(p.nr_edits == 2 && p.gain.speedup >= part.halved.speedup);
	assert_int_equal(longpole_predictions_prediction(all, 2, &p), LONGPOLE_STATUS_END);
	longpole_predictions_free(all);
	assert_false(longpole_predictions_new(b.a, "#1=-50%", &by_path, &all, &e));
	assert_false(longpole_predictions_prediction(all, 0, &p));
	assert_string_equal(p.gain.method, "path");
	assert_true(p.replay_speedup == 0 && p.path_speedup == p.gain.speedup && *p.next);
	longpole_predictions_free(all);
	by_path.methods = REPORT_METHOD_replay;
	assert_false(longpole_predictions_new(b.a, "#1=-50%", &by_path, &all, &e));
	assert_false(longpole_predictions_prediction(all, 0, &p));
	assert_string_equal(p.gain.method, "replay");
	assert_true(p.path_speedup == 0 && p.replay_speedup > 1 && *p.next);
	longpole_predictions_free(all);
	static const struct {
		const char *text, *words;
		int status;
	} bad[] = {{"scale nothing=-5", "scenarios:1", LONGPOLE_STATUS_USAGE},
		{"", "no edit", LONGPOLE_STATUS_USAGE},
		{"remove 'no such state'", "no such state", LONGPOLE_STATUS_NOTFOUND},
		{"#99=-50%", "#99", LONGPOLE_STATUS_NOTFOUND}};
	for (size_t i = 0; i < BASE_COUNT(bad); i++) {
		assert_int_equal(
			longpole_predictions_new(b.a, bad[i].text, NULL, &all, &e), bad[i].status);
		assert_true(!all && strstr(e.text, bad[i].words));
	}
	assert_int_equal(longpole_predictions_new(b.a, "#1=-50%", &unknown, &all, &e),
		LONGPOLE_STATUS_USAGE);
	both_close(&b);
}

/* The window, the ends of the path, and a trace of the caller's. */
static void options_of_an_analysis(void **state)
{
	(void)state;
	char path[512];
	SIZED(longpole_error, e);
	SIZED(longpole_answer, whole);
	SIZED(longpole_answer, part);
	struct longpole_trace *t;
	struct longpole_analysis *a;
	struct longpole_analysis_options o = {.size = sizeof o, .nr_parts = 1};
	uint64_t nr;
	SIZED(longpole_record, r);
	SIZED(longpole_value, v);
	assert_false(longpole_trace_open(api_test_path(path, SCREEN), NULL, &t, &e));
	assert_false(longpole_trace_next(t, &r, &e));
	assert_false(longpole_analysis_new(t, &o, &a, &e));
	assert_int_equal(longpole_trace_field(t, 0, &v), LONGPOLE_STATUS_USAGE);
	assert_false(longpole_analysis_answer(a, &whole));
	longpole_analysis_close(a);
	o.from_ns = whole.end_ns / 2;
	assert_false(longpole_analysis_new(t, &o, &a, &e));
	assert_false(longpole_analysis_answer(a, &part));
	assert_true(part.start_ns >= o.from_ns && part.elapsed_ns < whole.elapsed_ns);
	longpole_analysis_close(a);
	o.from_ns = 0;
	o.to_ns = whole.end_ns / 2;
	assert_false(longpole_analysis_new(t, &o, &a, &e));
	assert_false(longpole_analysis_answer(a, &part));
	assert_true(part.end_ns <= o.to_ns && part.elapsed_ns < whole.elapsed_ns);
	longpole_analysis_close(a);
	o.to_ns = 0;
	o.from_ns = whole.end_ns * 2;
	assert_int_equal(longpole_analysis_new(t, &o, &a, &e), LONGPOLE_STATUS_USAGE);
	o.from_ns = 0;
	o.to_ns = whole.end_ns * 2; /* all of it, as without */
	assert_false(longpole_analysis_new(t, &o, &a, &e));
	assert_false(longpole_analysis_answer(a, &part));
	assert_int_equal(part.elapsed_ns, whole.elapsed_ns);
	longpole_analysis_close(a);
	o = (struct longpole_analysis_options){.size = sizeof o, .end = "nobody's name"};
	assert_int_equal(longpole_analysis_new(t, &o, &a, &e), LONGPOLE_STATUS_NOTFOUND);
	assert_true(!a && strstr(e.text, "nobody's name"));
	o = (struct longpole_analysis_options){.size = sizeof o, .max_memory_bytes = 1};
	assert_int_equal(longpole_analysis_new(t, &o, &a, &e), LONGPOLE_STATUS_LIMIT);
	assert_false(longpole_trace_rewind(t, &e));
	assert_int_equal(walk(t, &nr, &e), LONGPOLE_STATUS_END);
	assert_true(nr > 1000);
	longpole_trace_close(t);
	assert_true(longpole_analysis_open("/nonexistent.lpt", NULL, &a, &e) < 0);
	assert_true(!a && strstr(e.text, "/nonexistent.lpt") && e.sys_errno);
}

/* One that gives definitions, too, is as good; one that gives a part only is refused. */
static void traces_of_an_analysis(void **state)
{
	(void)state;
	struct both b;
	SIZED(longpole_error, e);
	SIZED(longpole_answer, whole);
	SIZED(longpole_answer, same);
	struct longpole_trace_options opts = {.size = sizeof opts, .with_definitions = 1};
	struct longpole_trace *t;
	struct longpole_analysis *a;
	both_open(&b, SCREEN);
	assert_false(longpole_analysis_answer(b.a, &whole));
	assert_false(longpole_trace_open(b.path, &opts, &t, &e));
	assert_false(longpole_analysis_new(t, NULL, &a, &e));
	assert_false(longpole_analysis_answer(a, &same));
	assert_string_equal(same.pole, whole.pole);
	longpole_analysis_close(a);
	longpole_trace_close(t);
	opts.from_ns = 1;
	assert_false(longpole_trace_open(b.path, &opts, &t, &e));
	assert_int_equal(longpole_analysis_new(t, NULL, &a, &e), LONGPOLE_STATUS_USAGE);
	assert_true(!a && strstr(e.text, "a part of its time"));
	longpole_trace_close(t);
	both_close(&b);
}

/* The ends of the path, by the names that its steps have. */
static void the_ends_of_the_path(void **state)
{
	(void)state;
	char path[512], start[300], end[300];
	SIZED(longpole_error, e);
	SIZED(longpole_answer, whole);
	SIZED(longpole_answer, part);
	SIZED(longpole_step, first);
	SIZED(longpole_step, last);
	struct longpole_analysis *a;
	struct longpole_path *steps;
	struct longpole_analysis_options o = {.size = sizeof o, .nr_parts = 1};
	assert_false(longpole_analysis_open(api_test_path(path, SCREEN), &o, &a, &e));
	assert_false(longpole_analysis_answer(a, &whole));
	assert_false(longpole_path_new(a, &steps, &e));
	uint64_t nr = longpole_path_nr_steps(steps);
	assert_false(longpole_path_step(steps, nr / 4, &first));
	assert_false(longpole_path_step(steps, nr / 2, &last));
	snprintf(start, sizeof start, "%s", first.actor);
	snprintf(end, sizeof end, "%s", last.actor);
	longpole_path_free(steps);
	o.start = start;
	struct longpole_analysis *b;
	assert_false(longpole_analysis_open(path, &o, &b, &e));
	memset(start, 'x', sizeof start - 1); /* it has its own */
	assert_false(longpole_analysis_answer(b, &part));
	assert_true(part.start_ns > whole.start_ns && part.end_ns == whole.end_ns);
	longpole_analysis_close(b);
	o.start = NULL;
	o.end = end;
	assert_false(longpole_analysis_open(path, &o, &b, &e));
	assert_false(longpole_analysis_answer(b, &part));
	assert_true(part.start_ns == whole.start_ns && part.end_ns < whole.end_ns);
	longpole_analysis_close(b);
	longpole_analysis_close(a);
}

/* ---- memory, threads ------------------------------------------------------------------------- */

#define STATUS(...) ((enum base_status)(__VA_ARGS__))

static int read_all(const char *path)
{
	SIZED(longpole_error, e);
	SIZED(longpole_loss, loss);
	struct longpole_trace *t;
	uint64_t nr;
	int s = longpole_trace_open(path, NULL, &t, &e);
	if (s)
		return s;
	s = longpole_trace_loss(t, 0, &loss);
	s = s ? s : walk(t, &nr, &e);
	longpole_trace_close(t);
	return s == LONGPOLE_STATUS_END ? LONGPOLE_STATUS_OK : s;
}

static int ask_all(struct longpole_trace *t)
{
	SIZED(longpole_error, e);
	struct longpole_analysis_options o = {.size = sizeof o, .nr_parts = 1};
	struct longpole_analysis *a;
	struct longpole_path *path = NULL;
	struct longpole_queues *queues = NULL;
	struct longpole_predictions *predictions = NULL;
	int s = longpole_analysis_new(t, &o, &a, &e);
	if (s)
		return s;
	s = longpole_path_new(a, &path, &e);
	s = s ? s : longpole_queues_new(a, NULL, &queues, &e);
	s = s ? s : longpole_predictions_new(a, "#1=-50%", NULL, &predictions, &e);
	longpole_predictions_free(predictions);
	longpole_queues_free(queues);
	longpole_path_free(path);
	longpole_analysis_close(a);
	return s;
}

static int write_all(const char *path)
{
	struct longpole_writer *w;
	int s = longpole_writer_open(path, NULL, &w, NULL);
	if (s)
		return s;
	uint32_t actor = longpole_writer_new_actor(w, "x", "y", 0);
	longpole_writer_enter(w, 1, actor, longpole_writer_new_state(w, "z"));
	return longpole_writer_close(w, 2, NULL);
}

static void without_memory(void **state)
{
	(void)state;
	char path[512], written[TEMPORARY_PATH];
	struct longpole_trace *t;
	api_test_path(path, LOSSES);
	SWEEP_ALLOCATIONS(10, STATUS(read_all(path)));
	assert_false(longpole_trace_open(path, NULL, &t, NULL));
	SWEEP_ALL_ALLOCATIONS(100, STATUS(ask_all(t)));
	longpole_trace_close(t);
	temporary_file(written, "", 0);
	SWEEP_ALLOCATIONS(5, STATUS(write_all(written)));
	unlink(written);
}

struct asker {
	const char *path;
	double speedup;
	int status;
};

static void *ask_beside_others(void *argument)
{
	struct asker *ask = argument;
	SIZED(longpole_error, e);
	SIZED(longpole_part, part);
	struct longpole_analysis *a;
	ask->status = longpole_analysis_open(ask->path, NULL, &a, &e);
	if (!ask->status)
		ask->status = longpole_analysis_part(a, 0, &part);
	ask->speedup = part.halved.speedup;
	longpole_analysis_close(a);
	return NULL;
}

/* Handles have nothing in common, and small stacks are enough. */
static void several_at_once(void **state)
{
	(void)state;
	enum { NR = 4, STACK_BYTES = 256 << 10 };
	char path[512];
	pthread_t thread[NR];
	struct asker ask[NR];
	pthread_attr_t small;
	api_test_path(path, SCREEN);
	assert_false(pthread_attr_init(&small));
	assert_false(pthread_attr_setstacksize(&small, STACK_BYTES));
	for (int i = 0; i < NR; i++) {
		ask[i] = (struct asker){.path = path};
		assert_false(pthread_create(&thread[i], &small, ask_beside_others, &ask[i]));
	}
	pthread_attr_destroy(&small);
	for (int i = 0; i < NR; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(ask[i].status, LONGPOLE_STATUS_OK);
		assert_true(ask[i].speedup > 1 && ask[i].speedup == ask[0].speedup);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_of_options),
		cmocka_unit_test(sizes_of_answers),
		cmocka_unit_test(errors),
		cmocka_unit_test(kinds),
		cmocka_unit_test(records_are_those_of_dump),
		cmocka_unit_test(what_a_trace_is),
		cmocka_unit_test(a_part_of_the_time),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(damaged_anywhere),
		cmocka_unit_test(wrong_arguments),
		cmocka_unit_test(without_a_handle),
		cmocka_unit_test(the_answer),
		cmocka_unit_test(the_path_and_the_queues),
		cmocka_unit_test(predictions),
		cmocka_unit_test(options_of_an_analysis),
		cmocka_unit_test(traces_of_an_analysis),
		cmocka_unit_test(the_ends_of_the_path),
		cmocka_unit_test(without_memory),
		cmocka_unit_test(several_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
