/* SPDX-License-Identifier: Apache-2.0 */
/* test_format_xla.c - an XSpace made by hand; answers by hand. */
#include "gpu_fixture.h"

#include "format/format.h"
#include "format/wire.h"

enum { LAUNCH = 1, GEMM = 2, FUNCTION = 3, TRAIN = 4, REDUCE = 5, CORRELATION = 1, STEP = 2 };

static void add_names(struct base_str *plane, unsigned field, const char *const *name, size_t nr)
{
	for (size_t i = 1; i <= nr; i++) {
		struct base_str named = {0}, entry = {0};
		format_wire_number(&named, 1, i);
		format_wire_text(&named, 2, name[i - 1]);
		format_wire_number(&entry, 1, i);
		format_wire_message(&entry, 2, &named);
		format_wire_message(plane, field, &entry);
		base_str_fini(&named);
		base_str_fini(&entry);
	}
}

static void add_event(struct base_str *line, uint64_t name, double from_us, double to_us,
	unsigned stat, uint64_t value)
{
	struct base_str event = {0}, s = {0};
	format_wire_number(&event, 1, name);
	format_wire_number(&event, 2, (uint64_t)(from_us * 1e6));
	format_wire_number(&event, 3, (uint64_t)((to_us - from_us) * 1e6));
	if (stat) {
		format_wire_number(&s, 1, stat);
		format_wire_number(&s, 4, value);
		format_wire_message(&event, 4, &s);
	}
	format_wire_message(line, 4, &event);
	base_str_fini(&event);
	base_str_fini(&s);
}

/* Names behind the lines, as they may stand. */
static void add_plane(
	struct base_str *space, const char *name, const char *line_name, struct base_str *events)
{
	static const char *const event[] = {"cuLaunchKernel", "gemm", "PjitFunction(f)", "train",
		"all-reduce.1"},
				 *const stat[] = {"correlation_id", "step_num"};
	struct base_str plane = {0}, line = {0};
	format_wire_number(&line, 1, 14);
	format_wire_text(&line, 2, line_name);
	format_wire_number(&line, 3, 1000000);
	base_str_add_bytes(&line, base_str_text(events), events->length);
	format_wire_text(&plane, 2, name);
	format_wire_message(&plane, 3, &line);
	add_names(&plane, 4, event, BASE_COUNT(event));
	add_names(&plane, 5, stat, BASE_COUNT(stat));
	format_wire_message(space, 1, &plane);
	base_str_fini(&plane);
	base_str_fini(&line);
	base_str_fini(events);
}

static void make(struct base_str *space)
{
	struct base_str device = {0}, again = {0}, host = {0};
	add_event(&device, GEMM, 24, 84, CORRELATION, 5);
	add_event(&device, REDUCE, 84, 94, CORRELATION, 6);
	add_plane(space, "/device:GPU:0", "Stream #14(Compute)", &device);
	add_event(&again, GEMM, 24, 84, 0, 0);
	add_plane(space, "/device:GPU:0 again", "XLA Modules", &again);
	add_event(&host, TRAIN, 0, 60, STEP, 7);
	add_event(&host, FUNCTION, 0, 50, 0, 0);
	add_event(&host, LAUNCH, 10, 20, CORRELATION, 5);
	add_event(&host, LAUNCH, 30, 40, CORRELATION, 6);
	add_plane(space, "/host:CPU", "python3", &host);
}

static enum base_status import(struct gpu_bench *b, const char *bytes, size_t nr, const char *path)
{
	struct memory memory = {(const uint8_t *)bytes, nr};
	struct format_source from = memory_source(&memory, "input");
	base_str_reset(&b->notes);
	return gpu_bench_import_from(b, "xla", &from, path);
}

static void space_of_a_host_and_a_device(void **state)
{
	struct gpu_bench b = {0};
	struct base_str space = {0};
	char path[] = "/tmp/longpole-gpu-XXXXXX";
	struct trace_batch batch;
	unsigned nr_steps = 0;
	(void)state;
	close(mkstemp(path));
	make(&space);
	assert_int_equal(import(&b, base_str_text(&space), space.length, path), BASE_OK);
	gpu_bench_model(&b, path, NULL, 0);
	assert_string_equal(gpu_bench_path(&b),
		"PjitFunction(f) 10 | cuLaunchKernel, in PjitFunction(f) 10 | "
		"hand-off of queue launches for stream 14 of device 0 4 | gemm, in PjitFunction(f) "
		"60 | "
		"all-reduce.1, in PjitFunction(f) 10");
	assert_int_equal(trace_reader_rewind(b.reader, NULL), BASE_OK);
	while (trace_reader_next(b.reader, &batch, NULL) == BASE_OK)
		for (size_t i = 0; i < batch.nr; i++)
			if (batch.record[i].kind == TRACE_step_begin) {
				nr_steps++;
				assert_string_equal(trace_text_of(trace_reader_defs(b.reader),
							    batch.record[i].u.step_begin.name),
					"train#7");
			}
	assert_int_equal(nr_steps, 1);
	/* cut anywhere: refused, or imported as far as it goes, and said */
	for (size_t n = 0; n < space.length; n++) {
		enum base_status s = import(&b, base_str_text(&space), n, path);
		assert_true(s == BASE_OK || s == BASE_ERR_FOREIGN);
	}
	unlink(path);
	base_str_fini(&space);
	gpu_bench_fini(&b);
}

static void what_is_no_space(void **state)
{
	struct gpu_bench b = {0};
	char path[] = "/tmp/longpole-gpu-XXXXXX";
	(void)state;
	close(mkstemp(path));
	assert_int_equal(import(&b, "", 0, path), BASE_ERR_FOREIGN);
	assert_int_equal(import(&b, "{\"traceEvents\": []}", 19, path), BASE_ERR_FOREIGN);
	unlink(path);
	gpu_bench_fini(&b);
}

static void without_memory(void **state)
{
	struct base_str space = {0};
	(void)state;
	make(&space);
	struct memory memory = {(const uint8_t *)base_str_text(&space), space.length};
	struct format_source from = memory_source(&memory, "input");
	gpu_bench_without_memory("xla", &from);
	base_str_fini(&space);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(space_of_a_host_and_a_device),
		cmocka_unit_test(what_is_no_space),
		cmocka_unit_test(without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
