// SPDX-License-Identifier: Apache-2.0
// cxx_prodcons - std::condition_variable and std::unique_lock around a bounded std::deque. Known
// answer: the consumer is the path.
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "target.h"

namespace
{
constexpr size_t queue_max = 8;

class bounded_queue
{
      public:
	void put(uint64_t item)
	{
		std::unique_lock<std::mutex> guard(mutex_);
		not_full_.wait(guard, [this] { return items_.size() < queue_max; });
		items_.push_back(item);
		not_empty_.notify_one();
	}
	uint64_t take()
	{
		std::unique_lock<std::mutex> guard(mutex_);
		not_empty_.wait(guard, [this] { return !items_.empty(); });
		uint64_t item = items_.front();
		items_.pop_front();
		not_full_.notify_one();
		return item;
	}

      private:
	std::mutex mutex_;
	std::condition_variable not_empty_, not_full_;
	std::deque<uint64_t> items_;
};

bounded_queue queue;
} // namespace

TARGET_FUNCTION uint64_t produce(uint64_t seed, uint64_t units)
{
	TARGET_WORK(seed, units);
	return seed;
}

TARGET_FUNCTION uint64_t consume(uint64_t item, uint64_t units)
{
	TARGET_WORK(item, units); /* section */
	return item;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --items --slow-units --fast-units");
	const uint64_t items = target_number(argc, argv, "--items", 2500);
	const uint64_t slow_units = target_number(argc, argv, "--slow-units", 220);
	const uint64_t fast_units = target_number(argc, argv, "--fast-units", 90);
	const uint64_t percent = target_percent(argc, argv);
	std::thread producer([=] {
		for (uint64_t i = 0; i < items; i++)
			queue.put(produce(i, target_vary(1, i, fast_units)));
	});
	uint64_t sum = 0;
	for (uint64_t i = 0; i < items; i++) {
		sum += consume(queue.take(), target_vary(2, i, slow_units) * percent / 100);
		TARGET_PROGRESS("item");
	}
	producer.join();
	target_print(sum);
	return 0;
}
