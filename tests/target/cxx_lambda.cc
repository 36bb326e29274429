// SPDX-License-Identifier: Apache-2.0
// cxx_lambda.cc - threads whose code is a lambda in a constructor, as thread pools have it: gcc describes it within the type of the
// lambda, inside the constructor. The lock's place is the line of this file that takes it, whatever of the library is inlined there.
#include <mutex>
#include <thread>
#include <vector>

class Pool
{
	std::mutex mutex;
	unsigned long taken = 0;
	std::vector<std::thread> threads;

      public:
	explicit Pool(unsigned n)
	{
		for (unsigned i = 0; i < n; i++)
			threads.emplace_back([this] {
				for (unsigned k = 0; k < 200; k++) {
					std::unique_lock<std::mutex> held(mutex); // the line
					taken++;
				}
			});
	}
	~Pool()
	{
		for (auto &t : threads)
			t.join();
	}
};

int main()
{
	Pool pool(2);
}
