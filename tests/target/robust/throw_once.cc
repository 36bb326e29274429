// SPDX-License-Identifier: Apache-2.0
// Exceptions through wrapped functions; the standard library's locks.
#include <cstdio>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <thread>

static std::once_flag once;
static std::mutex lock;
static std::shared_mutex shared;
static std::recursive_timed_mutex timed;
static std::condition_variable ready;
static int state;

int main()
{
	for (int i = 0; i < 3; i++) {
		try {
			std::call_once(once, [i] {
				if (i < 2)
					throw std::runtime_error("not yet");
				std::printf("once %d\n", i);
			});
		} catch (const std::exception &e) {
			std::printf("%s\n", e.what());
		}
	}
	std::thread t([] {
		std::unique_lock<std::mutex> hold(lock);
		state = 1;
		ready.notify_all();
		ready.wait(hold, [] { return state == 2; });
		std::shared_lock<std::shared_mutex> read(shared);
	});
	{
		std::unique_lock<std::mutex> hold(lock);
		ready.wait(hold, [] { return state == 1; });
		state = 2;
		ready.notify_all();
	}
	t.join();
	std::scoped_lock all(shared, timed);
	std::printf("%d %d\n", state, (int)timed.try_lock_for(std::chrono::milliseconds(1)));
	timed.unlock();
	return 0;
}
