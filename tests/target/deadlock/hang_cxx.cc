// SPDX-License-Identifier: Apache-2.0
// hang_cxx.cc - C++: std::mutex in the classic transfer, and C++20's semaphore and atomic wait.
#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <semaphore>
#include <thread>
#include <unistd.h>

namespace
{
void ready()
{
	std::printf("READY %d\n", static_cast<int>(getpid()));
	std::fflush(stdout);
}

struct Account {
	std::mutex lock;
	long balance = 100;
};

void transfer(Account &from, Account &to, long amount, std::barrier<> &together)
{
	std::lock_guard<std::mutex> one(from.lock);
	together.arrive_and_wait();
	std::lock_guard<std::mutex> other(to.lock);
	from.balance -= amount;
	to.balance += amount;
}

void mutexes()
{
	Account a, b;
	std::barrier together(2);
	std::thread t([&] { transfer(a, b, 1, together); }),
		u([&] { transfer(b, a, 2, together); });
	ready();
	t.join();
	u.join();
}

void semaphores()
{
	std::binary_semaphore one(0), other(0);
	std::atomic<int> word = 0;
	std::thread t([&] {
		one.acquire();
		word.store(1);
		word.notify_all();
	});
	ready();
	word.wait(0); // the other waits for what comes after this
	one.release();
	t.join();
	other.release();
}
} // namespace

int main(int argc, char **argv)
{
	if (argc > 1 && !std::strcmp(argv[1], "mutexes"))
		mutexes();
	else if (argc > 1 && !std::strcmp(argv[1], "semaphores"))
		semaphores();
	else
		std::puts("mutexes\nsemaphores");
}
