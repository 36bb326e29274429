// SPDX-License-Identifier: Apache-2.0
// hang_cxx.cc - C++: std::mutex in the classic transfer, and C++20's semaphore and atomic wait.
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
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

[[gnu::noinline]] void transfer(Account &from, Account &to, long amount, std::barrier<> &together)
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

// Objects that functions construct when they are first called. Each has the other's.
std::barrier both(2);
struct One {
	One();
};
struct Other {
	Other();
};
One &one()
{
	static One it;
	return it;
}
Other &other()
{
	static Other it;
	return it;
}
One::One()
{
	both.arrive_and_wait();
	other();
}
Other::Other()
{
	both.arrive_and_wait();
	one();
}

void statics()
{
	std::thread t([] { other(); });
	ready();
	one();
	t.join();
}

std::mutex settings_lock;
struct Settings {
	Settings()
	{
		both.arrive_and_wait();
		std::lock_guard<std::mutex> held(settings_lock);
	}
};
Settings &settings()
{
	static Settings it;
	return it;
}

void static_and_lock()
{
	std::lock_guard<std::mutex> held(settings_lock);
	std::thread t([] { settings(); });
	both.arrive_and_wait();
	ready();
	settings();
	t.join();
}

std::once_flag flag;
struct Cache {
	Cache()
	{
		both.arrive_and_wait();
		std::call_once(flag, [] {});
	}
};
Cache &cache()
{
	static Cache it;
	return it;
}

void static_and_once()
{
	std::thread t([] { cache(); });
	ready();
	std::call_once(flag, [] {
		both.arrive_and_wait();
		cache();
	});
	t.join();
}

// libc++'s guards, whatever library this program is linked with.
struct Guards {
	int (*acquire)(std::uint64_t *);
	void (*release)(std::uint64_t *);
} guards;
std::uint64_t guard_one, guard_other;

void construct(std::uint64_t *guard, void (*constructor)())
{
	if (!guards.acquire(guard))
		return;
	constructor();
	guards.release(guard);
}

void construct_other()
{
	construct(&guard_other, [] {
		both.arrive_and_wait();
		construct(&guard_one, [] {});
	});
}

bool find_guards()
{
	void *library = dlopen("libc++abi.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return false;
	guards.acquire =
		reinterpret_cast<int (*)(std::uint64_t *)>(dlsym(library, "__cxa_guard_acquire"));
	guards.release =
		reinterpret_cast<void (*)(std::uint64_t *)>(dlsym(library, "__cxa_guard_release"));
	return guards.acquire && guards.release;
}

void statics_of_libcxx()
{
	if (!find_guards()) {
		std::puts("READY 0"); // not here
		return;
	}
	std::thread t(construct_other);
	ready();
	construct(&guard_one, [] {
		both.arrive_and_wait();
		construct_other();
	});
	t.join();
}

void static_of_libcxx_and_lock()
{
	if (!find_guards()) {
		std::puts("READY 0");
		return;
	}
	std::lock_guard<std::mutex> held(settings_lock);
	std::thread t([] {
		construct(&guard_one, [] {
			both.arrive_and_wait();
			std::lock_guard<std::mutex> wanted(settings_lock);
		});
	});
	both.arrive_and_wait();
	ready();
	construct(&guard_one, [] {});
	t.join();
}

const struct {
	const char *name;
	void (*run)();
} cases[] = {
	{"mutexes", mutexes},
	{"semaphores", semaphores},
	{"statics", statics},
	{"static-and-lock", static_and_lock},
	{"static-and-once", static_and_once},
	{"statics-of-libcxx", statics_of_libcxx},
	{"static-of-libcxx-and-lock", static_of_libcxx_and_lock},
};
} // namespace

int main(int argc, char **argv)
{
	for (const auto &each : cases) {
		if (argc < 2)
			std::puts(each.name);
		else if (!std::strcmp(argv[1], each.name))
			each.run();
	}
}
