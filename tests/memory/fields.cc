// SPDX-License-Identifier: Apache-2.0
// fields.cc - two threads count in two members of C++ objects: of a base class, in a namespace, static
// in a class, local to a function.
#include <thread>

namespace shop
{
struct base {
	volatile long opened = 0, closed = 0;
};
struct till : base {
	volatile long sales = 0;
	static till first;
};
alignas(64) till till::first;
} // namespace shop

static shop::till *local(bool last)
{
	alignas(64) static shop::till each[2];
	return &each[last];
}

int main()
{
	std::thread a([] {
		for (int i = 0; i < 2000; i++) {
			shop::till::first.closed = shop::till::first.closed + 1;
			local(false)->sales = local(false)->sales + 1;
		}
	});
	std::thread b([] {
		for (int i = 0; i < 2000; i++) {
			shop::till::first.sales = shop::till::first.sales + 1;
			local(true)->opened = local(true)->opened + 1;
		}
	});
	a.join();
	b.join();
}
