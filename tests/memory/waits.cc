// SPDX-License-Identifier: Apache-2.0
/*
 * waits.cc WAY - as waits.c, by what C++ has: two threads read TIMES words each, which one of them
 * has made (once, guard): nothing that somebody has read is written later. Or one reads SLEEPS lines
 * that the other has written, and has to wait for each, since that one sleeps before (future,
 * latch): each has moved.
 */
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <future>
#include <latch>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <vector>

namespace {

enum { TIMES = 1000, SLEEPS = 100 };

int word[TIMES];
struct alignas(64) {
	int value;
} line[SLEEPS];
pthread_barrier_t barrier;
std::once_flag flag[TIMES];
__cxxabiv1::__guard guard[TIMES];

void __attribute__((noinline)) work(int n)
{
	volatile int x = 0;
	for (int i = 0; i < n; i++)
		x = x + i;
}

void by_once(int i)
{
	std::call_once(flag[i], [i] { word[i] = i; });
}

void by_guard(int i)
{
	if (__cxxabiv1::__cxa_guard_acquire(&guard[i])) {
		word[i] = i;
		__cxxabiv1::__cxa_guard_release(&guard[i]);
	}
}

// Both do the same, not equally fast.
void both(void (*make)(int))
{
	auto run = [make](int slow) {
		for (int i = 0; i < TIMES; i++) {
			make(i);
			if (word[i] != i)
				std::abort();
			work(i * slow % 90);
		}
	};
	std::thread other(run, 7);
	std::thread third(run, 13);
	other.join();
	third.join();
}

// One writes after a nap, then tells; the other waits to be told, then reads.
void after_a_nap(void (*tell)(int), void (*wait)(int))
{
	std::thread writer([tell] {
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < SLEEPS; i++) {
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
			line[i].value = i;
			tell(i);
		}
	});
	std::thread reader([wait] {
		for (int i = 0; i < SLEEPS; i++)
			if (line[i].value)
				std::abort();
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < SLEEPS; i++) {
			wait(i);
			if (line[i].value != i)
				std::abort();
		}
	});
	writer.join();
	reader.join();
}

std::vector<std::promise<void>> promised(SLEEPS);
std::vector<std::future<void>> promises;
std::latch *latches[SLEEPS];

} // namespace

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	pthread_barrier_init(&barrier, nullptr, 2);
	for (int i = 0; i < TIMES; i++)
		word[i] = -1;
	for (int i = 0; i < SLEEPS; i++) {
		promises.push_back(promised[i].get_future());
		latches[i] = new std::latch(1);
	}
	if (!std::strcmp(way, "once"))
		both(by_once);
	else if (!std::strcmp(way, "guard"))
		both(by_guard);
	else if (!std::strcmp(way, "future"))
		after_a_nap([](int i) { promised[i].set_value(); }, [](int i) { promises[i].get(); });
	else if (!std::strcmp(way, "latch"))
		after_a_nap([](int i) { latches[i]->count_down(); }, [](int i) { latches[i]->wait(); });
	else
		return 2;
	return 0;
}
