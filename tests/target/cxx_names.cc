// SPDX-License-Identifier: Apache-2.0
// cxx_names - std::thread's ways to say what a thread runs. Known answer: each is a group of its
// own name (run.sh).
#include <functional>
#include <future>
#include <thread>

#include "target.h"

static volatile uint64_t sums[8];

TARGET_FUNCTION void plain_function()
{
	TARGET_WORK(sums[0], 30000);
}

TARGET_FUNCTION void with_arguments(int number, double weight, const char *text)
{
	TARGET_WORK(sums[1], 30000 + number * (uint64_t)weight + (text[0] == 'x'));
}

TARGET_FUNCTION void never_throws() noexcept
{
	TARGET_WORK(sums[2], 30000);
}

struct server {
	uint64_t sum;
	__attribute__((noinline)) void serve(int n)
	{
		TARGET_WORK(sum, 30000 + (uint64_t)n);
		sums[3] = sum;
	}
};

struct functor {
	void operator()()
	{
		TARGET_WORK(sums[4], 30000);
	}
};

int main(int, char **)
{
	server here = {1};
	std::thread threads[] = {
		std::thread(plain_function),
		std::thread(with_arguments, 1, 2.0, "x"),
		std::thread(never_throws),
		std::thread(&server::serve, &here, 5),
		std::thread(functor{}),
		std::thread([] { TARGET_WORK(sums[5], 30000); }),
		std::thread([](int n) { TARGET_WORK(sums[6], 30000 + (uint64_t)n); }, 7),
	};
	for (std::thread &thread : threads)
		thread.join();
	target_print(sums[0]);
	return 0;
}
