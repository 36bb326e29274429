// SPDX-License-Identifier: Apache-2.0
// cxx_inlined.cc - all work is done in functions that are inlined: two threads mix numbers, and add under a lock.
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

namespace known
{
std::mutex gate;
uint64_t total;

__attribute__((always_inline)) static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x7fb5d329728ea185u;
	return (x ^ x >> 27) / 3;
}

struct worker {
	std::vector<uint64_t> data;
	uint64_t seed;

	__attribute__((always_inline)) inline void fold()
	{
		for (uint64_t x : data)
			seed = mix(seed + x) % 1000000007u;
	}
	__attribute__((always_inline)) inline void publish()
	{
		std::lock_guard<std::mutex> hold(gate);
		total += seed;
	}
};

__attribute__((noinline)) void run(unsigned n)
{
	worker w{std::vector<uint64_t>(20000, n + 1), n};
	for (unsigned i = 0; i < 400; i++) {
		w.fold();
		w.publish();
	}
}
} // namespace known

int main()
{
	std::thread a(known::run, 1), b(known::run, 2);
	a.join();
	b.join();
	printf("%llu\n", (unsigned long long)known::total);
	return 0;
}
