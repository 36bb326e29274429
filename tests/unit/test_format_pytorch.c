/* SPDX-License-Identifier: Apache-2.0 */
/* test_format_pytorch.c - Kineto's files made by hand, one for each dependence: path, its length, and what changes would
 * do, by hand. */
#include "gpu_fixture.h"

#include "format/format.h"

#define assert_length(b, lane, us) assert_true(fabs(gpu_bench_length(b, lane) - (us)) < 0.001)
static void scaled_at(struct gpu_bench *b, const char *name, double factor, double us, int line)
{
	double is = gpu_bench_scaled(b, name, factor);
	if (!(fabs(is - us) < 0.001))
		print_message("line %d: %g instead of %g\n", line, is, us);
	_assert_true(fabs(is - us) < 0.001, "scaled", __FILE__, line);
}
#define assert_scaled(b, name, factor, us) scaled_at(b, name, factor, us, __LINE__)

/* The second kernel waits for the first one: it was launched long before. */
static void two_kernels_of_one_stream(void **state)
{
	struct gpu_bench b = {0};
	(void)state;
	op(&b, MAIN, "aten::mm", 0, 12);
	launch(&b, "k1", 7, 0, 5, 8, 108);
	launch(&b, "k2", 7, 6, 10, 110, 160);
	gpu_bench_run(&b, NULL, 0);
	assert_string_equal(gpu_bench_path(&b),
		"cudaLaunchKernel, in aten::mm 5 | hand-off of queue launches for stream 7 of "
		"device 0 3 "
		"| k1, in aten::mm 100 | between two pieces of work 2 | k2, in aten::mm 50");
	assert_length(&b, 0, 160);
	assert_scaled(&b, "k1", 0.5, 110);
	/* k1 gone: k2 is launched at 10 and begins then; its gap stays */
	assert_scaled(&b, "k1", 0, 60);
	assert_scaled(&b, "cudaLaunchKernel", 0, 155);
	gpu_bench_fini(&b);
}

/* A device synchronisation waits for the stream, and returns 4 us after it has ended. */
static void device_synchronisation(void **state)
{
	struct gpu_bench b = {0};
	(void)state;
	launch(&b, "k1", 7, 0, 5, 8, 108);
	call_of(&b, MAIN, "cudaDeviceSynchronize", 99, 10, 112);
	op(&b, MAIN, "aten::add", 120, 150);
	gpu_bench_run(&b, NULL, 0);
	assert_string_equal(gpu_bench_path(&b), "cudaLaunchKernel 5 | hand-off of queue launches "
						"for stream 7 of device 0 3 | k1 100 | "
						"hand-off of queue work of stream 7 of device 0 4 "
						"| between operators 8 | aten::add 30");
	assert_length(&b, 0, 150);
	assert_scaled(&b, "k1", 0.5, 100);
	/* no kernel: the call still takes what it took until it began to wait: the thread is at 10, and returns at 12 */
	assert_scaled(&b, "k1", 0, 50);
	gpu_bench_fini(&b);
}

/* A synchronisation that found all done is the call's own time. */
static void synchronisation_with_nothing_to_wait_for(void **state)
{
	struct gpu_bench b = {0};
	(void)state;
	launch(&b, "k1", 7, 0, 5, 8, 18);
	op(&b, MAIN, "aten::item", 5, 40);
	call_of(&b, MAIN, "cudaStreamSynchronize", 99, 40, 50);
	gpu_bench_run(&b, NULL, 0);
	assert_string_equal(gpu_bench_path(&b),
		"cudaLaunchKernel 5 | aten::item 35 | cudaStreamSynchronize 10");
	/* with a slower kernel the call waits first, and then takes its 10 us */
	assert_scaled(&b, "k1", 10, 118);
	gpu_bench_fini(&b);
}

/* The copy's call returns when the copy is over. */
static void blocking_copy(void **state)
{
	struct gpu_bench b = {0};
	(void)state;
	launch(&b, "elsewhere", 9, 0, 3, 4, 5); /* launches take 3 us: so does the copy's */
	call_of(&b, MAIN, "cudaMemcpy", 50, 4, 64);
	device_of(&b, "gpu_memcpy", "Memcpy DtoH", 50, 7, 10, 60);
	op(&b, MAIN, "aten::add", 64, 84);
	gpu_bench_run(&b, NULL, 0);
	assert_string_equal(gpu_bench_path(&b),
		"cudaLaunchKernel 3 | between operators 1 | cudaMemcpy 3 | "
		"hand-off of queue launches for stream 7 of device 0 3 | Memcpy DtoH 50 | "
		"hand-off of queue work of stream 7 of device 0 4 | aten::add 20");
	assert_scaled(&b, "Memcpy DtoH", 0.5, 59);
	gpu_bench_fini(&b);
}

/* A copy behind a long kernel: the call had waited since long before the copy began. */
static void blocking_copy_behind_a_kernel(void **state)
{
	struct gpu_bench b = {0};
	(void)state;
	launch(&b, "k1", 7, 0, 5, 8, 208);
	call_of(&b, MAIN, "cudaMemcpyAsync", 50, 10, 264);
	device_of(&b, "gpu_memcpy", "Memcpy DtoH", 50, 7, 210, 260);
	op(&b, MAIN, "aten::add", 264, 284);
	gpu_bench_run(&b, NULL, 0);
	assert_string_equal(gpu_bench_path(&b),
		"cudaLaunchKernel 5 | hand-off of queue launches for stream 7 of device 0 3 | k1 "
		"200 | "
		"between two pieces of work 2 | Memcpy DtoH 50 | "
		"hand-off of queue work of stream 7 of device 0 4 | aten::add 20");
	assert_scaled(&b, "k1", 0.5, 184);
	gpu_bench_fini(&b);
}

/* A queue of 600 launches is full: the next one waits for the first kernel's end. Kernels decide, not launches. */
static void full_queue(void **state)
{
	enum { LAUNCHES = 1200, ROOM = 600 };
	struct gpu_bench b = {0};
	(void)state;
	double free_us = 0;
	for (int i = 0; i < LAUNCHES; i++) { /* kernels of 100 us, one after the other from 8 on */
		double begin = free_us, end = begin + 5, room = 8 + 100 * (i - ROOM + 1);
		if (i >= ROOM && end < room)
			end = room;
		free_us = end;
		launch(&b, "k", 7, begin, end, 8 + 100 * i, 108 + 100 * i);
	}
	gpu_bench_run(&b, NULL, 0);
	assert_non_null(strstr(base_str_text(&b.notes), "launches waited for room"));
	assert_length(&b, 0, 8 + 100 * LAUNCHES);
	/* 8 us to the first kernel, then kernels of half the length: launches would take 6,000 us */
	assert_scaled(&b, "k", 0.5, 8 + 50 * LAUNCHES);
	gpu_bench_fini(&b);
}

static void event_across_streams_with(bool is_said)
{
	struct gpu_bench b = {0};
	launch(&b, "k1", 7, 0, 5, 8, 108);
	call_of(&b, MAIN, "cudaEventRecord", 90, 6, 7);
	call_of(&b, MAIN, "cudaStreamWaitEvent", 91, 7, 8);
	if (is_said)
		said(&b, "Stream Wait Event", 91, 20, 7, 90);
	/* (something before, or nothing says that this stream was idle) */
	int c = ++b.correlation;
	call_of(&b, MAIN, "cudaLaunchKernel", c, 9, 14);
	device_of(&b, "kernel", "k2", c, 20, 112, 152);
	if (!is_said) {
		c = ++b.correlation;
		call_of(&b, HELPER, "cudaLaunchKernel", c, 0, 2);
		device_of(&b, "kernel", "k0", c, 20, 3, 4);
	}
	gpu_bench_run(&b, NULL, 0);
	assert_string_equal(gpu_bench_path(&b), "cudaLaunchKernel 5 | hand-off of queue launches "
						"for stream 7 of device 0 3 | k1 100 | "
						"hand-off of queue event of stream 7 of device 0 "
						"for stream 20 of device 0 4 | k2 40");
	assert_int_equal(
		strstr(base_str_text(&b.notes), "is taken from their times") != NULL, !is_said);
	assert_scaled(&b, "k1", 0.5, 102);
	gpu_bench_fini(&b);
}

static void event_across_streams(void **state)
{
	(void)state;
	event_across_streams_with(true);
	event_across_streams_with(false);
}

/* Ten kernels of 2 us, each launched when the one before is long over: the launches are the path. */
static void launch_bound(void **state)
{
	struct gpu_bench b = {0};
	(void)state;
	for (int i = 0; i < 10; i++)
		launch(&b, "tiny", 7, 10 * i, 10 * i + 8, 10 * i + 9, 10 * i + 11);
	gpu_bench_run(&b, NULL, 0);
	assert_length(&b, 0, 101);
	/* kernels of no length: the last one's 2 us go, no more; launches of none: one each 2 us, and
	 * kernels one after the other from 1 on */
	assert_scaled(&b, "tiny", 0, 99);
	assert_scaled(&b, "cudaLaunchKernel", 0, 1 + 10 * 2);
	gpu_bench_fini(&b);
}

/* Main hands over to another thread, and waits for it; the flow says that this one runs the backward pass. */
static void backward_thread(void **state)
{
	struct gpu_bench b = {0};
	(void)state;
	op(&b, MAIN, "aten::linear", 0, 20);
	op(&b, HELPER, "autograd::engine::evaluate_function: MmBackward0", 30, 70);
	op(&b, HELPER, "autograd::engine::evaluate_function: AddBackward0", 75, 95);
	op(&b, MAIN, "aten::add_", 100, 110);
	gpu_bench_run(&b, NULL, 0);
	assert_string_equal(gpu_bench_path(&b),
		"aten::linear 20 | between operators 10 | MmBackward0 40 | between operators 5 | "
		"AddBackward0 20 | between operators 5 | aten::add_ 10");
	assert_scaled(&b, "MmBackward0", 0.5, 90);
	gpu_bench_fini(&b);
}

/* The device is idle while the thread waits for data. */
static void data_loader(void **state)
{
	struct gpu_bench b = {0};
	(void)state;
	note(&b, MAIN, "ProfilerStep#3", 0, 160);
	note(&b, MAIN, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 100);
	op(&b, MAIN, "aten::stack", 20, 60);
	launch(&b, "k1", 7, 100, 105, 107, 127);
	call_of(&b, MAIN, "cudaDeviceSynchronize", 99, 106, 130);
	gpu_bench_run(&b, NULL, 0);
	assert_string_equal(gpu_bench_path(&b),
		"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ 20 | aten::stack 40 | "
		"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ 40 | cudaLaunchKernel "
		"5 | "
		"hand-off of queue launches for stream 7 of device 0 2 | k1 20 | "
		"hand-off of queue work of stream 7 of device 0 3 | between operators 30");
	assert_scaled(&b, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 100);
	gpu_bench_fini(&b);
}

/* Text that strict parsers refuse, times of which floating point would lose digits, numbers as text. */
static void odd_json(void **state)
{
	static const char text[] = "{\"baseTimeNanoseconds\": 1700000000000000000, "
				   "\"deviceProperties\": [{\"a\": \"}]\\\"\"},],\n"
				   "\"traceEvents\": [ {\"ph\": \"X\", \"cat\": \"cpu_op\", "
				   "\"name\": \"a\\u0062\\\"c\", \"pid\": \"7\", "
				   "\"tid\": \"main \\\\\", \"ts\": 4458676522690.655, \"dur\": "
				   "0.123, \"args\": {\"x\": NaN, },},\n"
				   "17, {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"late\", "
				   "\"pid\": 7, \"tid\": \"main \\\\\", "
				   "\"ts\": 4458676522690.779, \"dur\": 1.0},\n"
				   "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"n\", \"pid\": "
				   "7, \"tid\": 1, \"ts\": 5, \"dur\": -1},\n"
				   "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"n\", \"pid\": "
				   "7, \"tid\": 1, \"ts\": \"x\", \"dur\": 1},\n"
				   "], \"traceName\": \"x\"}";
	struct gpu_bench b = {0};
	char path[] = "/tmp/longpole-gpu-XXXXXX";
	(void)state;
	close(mkstemp(path));
	assert_int_equal(gpu_bench_import_text(&b, text, sizeof text - 1, path), BASE_OK);
	assert_non_null(strstr(base_str_text(&b.notes), "1 item of the list is no event"));
	assert_non_null(strstr(base_str_text(&b.notes), "1 event has a negative duration"));
	assert_non_null(strstr(base_str_text(&b.notes), "1 event has no sensible time"));
	struct model_options mo = {.size = sizeof mo, .keep_path = true};
	assert_int_equal(trace_reader_open(path, NULL, &b.reader, NULL), BASE_OK);
	assert_int_equal(model_run(b.reader, &mo, &b.model, NULL), BASE_OK);
	assert_string_equal(gpu_bench_path(&b), "ab\"c 0.123 | between operators 0.001 | late 1");
	/* cut anywhere: refused, or imported as far as it goes */
	for (size_t n = 0; n < sizeof text - 1; n++) {
		base_str_reset(&b.notes);
		enum base_status s = gpu_bench_import_text(&b, text, n, path);
		assert_true(s == BASE_OK || s == BASE_ERR_FOREIGN);
		const char *list_end = strstr(text, "], \"traceName\"");
		if (s == BASE_OK && text + n <= list_end)
			assert_non_null(strstr(base_str_text(&b.notes), "is cut short"));
	}
	unlink(path);
	gpu_bench_fini(&b);
}

static void what_is_no_such_file(void **state)
{
	static const char *const text[] = {"", "x", "[]", "{}", "{\"traceEvents\": 3}",
		"{\"traceEvents\": []}",
		("[{\"ph\":\"X\",\"cat\":\"x\",\"name\":\"n\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":"
		 "1}]"),
		"{\"schema\": [1, {\"traceEvents\": []}]}"};
	struct gpu_bench b = {0};
	char path[] = "/tmp/longpole-gpu-XXXXXX";
	(void)state;
	close(mkstemp(path));
	for (size_t i = 0; i < BASE_COUNT(text); i++)
		assert_int_equal(gpu_bench_import_text(&b, text[i], strlen(text[i]), path),
			BASE_ERR_FOREIGN);
	unlink(path);
	gpu_bench_fini(&b);
}

/* Kernels without a launch, two calls of one correlation, clocks that differ: said, and no answer is made of them. */
static void what_does_not_fit(void **state)
{
	struct gpu_bench b = {0};
	(void)state;
	device_of(&b, "kernel", "before the profiler", 77, 7, 0, 50);
	call_of(&b, MAIN, "cudaLaunchKernel", 1, 10, 20);
	call_of(&b, HELPER, "cudaLaunchKernel", 1, 12, 22);
	device_of(&b, "kernel", "early", 1, 7, 5, 60);
	gpu_bench_run(&b, NULL, 0);
	const char *notes = base_str_text(&b.notes);
	assert_non_null(strstr(notes, "1 kernel or copy was launched by no call"));
	assert_non_null(strstr(notes, "1 correlation id is of several calls"));
	assert_non_null(strstr(notes, "1 piece of work overlaps"));
	assert_length(&b, 0, 60);
	gpu_bench_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_kernels_of_one_stream),
		cmocka_unit_test(device_synchronisation),
		cmocka_unit_test(synchronisation_with_nothing_to_wait_for),
		cmocka_unit_test(blocking_copy),
		cmocka_unit_test(blocking_copy_behind_a_kernel),
		cmocka_unit_test(full_queue),
		cmocka_unit_test(event_across_streams),
		cmocka_unit_test(launch_bound),
		cmocka_unit_test(backward_thread),
		cmocka_unit_test(data_loader),
		cmocka_unit_test(odd_json),
		cmocka_unit_test(what_is_no_such_file),
		cmocka_unit_test(what_does_not_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
