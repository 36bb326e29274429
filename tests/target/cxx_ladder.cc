// SPDX-License-Identifier: Apache-2.0
// cxx_ladder - lock_ladder with std::mutex and std::thread. Known answer: holding account_mutex is
// the path.
#include <mutex>
#include <thread>
#include <vector>

#include "target.h"

static std::mutex account_mutex;
static uint64_t balance;

TARGET_FUNCTION void critical_section(uint64_t units)
{
	TARGET_WORK(balance, units); /* section */
}

TARGET_FUNCTION uint64_t parallel_work(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

int main(int argc, char **argv)
{
	target_check(argc, argv,
		"--section-percent --threads --rounds --section-units --parallel-units");
	const uint64_t nr_threads = target_number(argc, argv, "--threads", 2);
	const uint64_t rounds =
		target_number(argc, argv, "--rounds", 3200) / (nr_threads ? nr_threads : 1);
	const uint64_t section_units = target_number(argc, argv, "--section-units", 200);
	const uint64_t parallel_units = target_number(argc, argv, "--parallel-units", 130);
	const uint64_t percent = target_percent(argc, argv);
	std::vector<std::thread> threads;
	std::vector<uint64_t> sums(nr_threads);
	for (uint64_t number = 0; number < nr_threads; number++) {
		threads.emplace_back([=, &sums] {
			uint64_t sum = number;
			for (uint64_t i = 0; i < rounds; i++) {
				{
					std::lock_guard<std::mutex> guard(account_mutex);
					critical_section(target_vary(number, i, section_units) *
							 percent / 100);
				}
				sum = parallel_work(
					sum, target_vary(number + 64, i, parallel_units));
				TARGET_PROGRESS("rung");
			}
			sums[number] = sum;
		});
	}
	uint64_t total = 0;
	for (uint64_t number = 0; number < nr_threads; number++) {
		threads[number].join();
		total += sums[number];
	}
	target_print(total + balance);
	return 0;
}
