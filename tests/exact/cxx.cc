// SPDX-License-Identifier: Apache-2.0
// cxx.cc - C++'s locks, counted by the program itself.
#include "count.h"

#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

static std::mutex plain;
static std::recursive_mutex recursive;
static std::shared_mutex shared;
static std::timed_mutex timed;
static std::condition_variable ready;
static int turn;

static struct early { // a static constructor
	early()
	{
		for (int i = 0; i < 12; i++) {
			std::lock_guard<std::mutex> l(plain);
			counted();
		}
	}
} early_one;

static void work(int me)
{
	for (int i = 0; i < 400; i++) {
		{
			std::unique_lock<std::mutex> l(plain);
			counted();
			ready.wait(l, [me] { return turn == me; });
			turn = 1 - me;
			ready.notify_all();
		}
		{
			std::lock_guard<std::recursive_mutex> a(recursive), b(recursive);
			counted(), counted();
		}
		{
			std::shared_lock<std::shared_mutex> l(shared);
			counted();
		}
		{
			std::unique_lock<std::shared_mutex> l(shared);
			counted();
		}
		if (timed.try_lock_for(std::chrono::seconds(5))) {
			counted();
			timed.unlock();
		}
	}
}

int main()
{
	std::vector<std::thread> threads;
	for (int i = 0; i < 2; i++)
		threads.emplace_back(work, i);
	for (auto &t : threads)
		t.join();
	return report();
}
