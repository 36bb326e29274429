// SPDX-License-Identifier: Apache-2.0
// begun.cc - two threads add to the same word, begun and joined in each WAY that libraries have.
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <threads.h>

static volatile long word;
static std::mutex mutex;
static std::condition_variable changed;
static int nr_ready;

static void add()
{
	{
		std::unique_lock<std::mutex> lock(mutex);
		nr_ready++;
		changed.notify_all();
		changed.wait(lock, [] { return nr_ready == 2; });
	}
	for (int i = 0; i < 20000; i++)
		word = word + 1;
}

static void *posix(void *argument)
{
	add();
	return argument;
}

static int c11(void *)
{
	add();
	return 0;
}

int main()
{
#if WAY == 0
	pthread_t t;
	pthread_create(&t, nullptr, posix, nullptr);
	add();
	pthread_join(t, nullptr);
#elif WAY == 1
	std::thread t(add);
	add();
	t.join();
#elif WAY == 2
	std::future<void> f = std::async(std::launch::async, add);
	add();
	f.get();
#elif WAY == 3
	thrd_t t;
	thrd_create(&t, c11, nullptr);
	add();
	thrd_join(t, nullptr);
#else // as a library that was not rewritten: who calls is not seen
	int (*volatile create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = pthread_create;
	int (*volatile join)(pthread_t, void **) = pthread_join;
	pthread_t t;
	create(&t, nullptr, posix, nullptr);
	add();
	join(t, nullptr);
#endif
	(void)posix;
	(void)c11;
	std::printf("%d\n", word > 0);
	return 0;
}
