/* SPDX-License-Identifier: Apache-2.0 */
/* tbb MICROSECONDS ITEMS - TBB's pipeline: in order, side by side, in order; the last stage waits so long for something outside. */
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <thread>

enum { NR_THREADS = 2, NR_ITEMS_MAX = 8, LOOPS = 60000 };

static void filter_stage()
{
	volatile uint64_t sink = 0;
	for (uint64_t i = 0; i < LOOPS; i++)
		sink = sink + i;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	const std::chrono::microseconds wait(atol(argv[1]));
	long nr_items = atol(argv[2]), item = 0;
	tbb::global_control threads(tbb::global_control::max_allowed_parallelism, NR_THREADS);
	auto read = tbb::make_filter<void, long>(tbb::filter_mode::serial_in_order, [&](tbb::flow_control &control) {
		if (item == nr_items)
			control.stop();
		return item++;
	});
	auto filter = tbb::make_filter<long, long>(tbb::filter_mode::parallel, [](long i) {
		filter_stage();
		return i;
	});
	auto write = tbb::make_filter<long, void>(tbb::filter_mode::serial_in_order, [=](long) { std::this_thread::sleep_for(wait); });
	tbb::parallel_pipeline(NR_ITEMS_MAX, read & filter & write);
	return 0;
}
