// SPDX-License-Identifier: Apache-2.0
/*
 * tasks.cc - tasks of OpenMP in all their kinds: what they do must not change when their data and
 * functions go through the recorder's hands. Says what they have come to.
 */
#include <cstdint>
#include <cstdio>
#include <omp.h>
#include <string>

namespace
{

struct alignas(128) Aligned {
	char text[128];
};
struct Large {
	int number[2000];
};

long at_once(int depth) // nested on one stack
{
	long result = 0;
	if (!depth)
		return 1;
#pragma omp task shared(result) firstprivate(depth) if (0)
	result = at_once(depth - 1) + 1;
#pragma omp taskwait
	return result;
}

long fibonacci(int n)
{
	long a, b;
	if (n < 2)
		return n;
#pragma omp task shared(a) untied
	a = fibonacci(n - 1);
#pragma omp task shared(b)
	b = fibonacci(n - 2);
#pragma omp taskwait
	return a + b;
}

template <typename T> void add(T &sum, long n)
{
#pragma omp atomic
	sum += n;
}

long copies() // by copying, by a copy constructor, aligned, too large for us
{
	long sum = 0;
	std::string text = "longer than what a string keeps in itself";
	Aligned aligned = {};
	Large large = {};
	aligned.text[127] = 3;
	large.number[1999] = 5;
	for (int i = 0; i < 20; i++) {
#pragma omp task firstprivate(text, i) shared(sum)
		add(sum, (long)text.size() + i);
#pragma omp task firstprivate(aligned) shared(sum)
		add(sum, aligned.text[127] + (long)((uintptr_t)&aligned % 128));
#pragma omp task firstprivate(large) shared(sum)
		add(sum, large.number[1999]);
	}
#pragma omp taskwait
	return sum;
}

long events() // a task ends when it is told to
{
	long sum = 0;
	std::string text = "longer than what a string keeps in itself";
	omp_event_handle_t event;
	for (int i = 0; i < 20; i++) {
#pragma omp task firstprivate(text, i) detach(event) shared(sum)
		{
			add(sum, (long)text.size() + i);
			omp_fulfill_event(event);
		}
#pragma omp task firstprivate(i) detach(event) shared(sum)
		{
			add(sum, i);
			omp_fulfill_event(event);
		}
	}
#pragma omp taskwait
	return sum;
}

long loops()
{
	long sum = 0, last = 0;
	std::string text = "longer than what a string keeps in itself";
#pragma omp taskloop reduction(+ : sum) firstprivate(text) lastprivate(last) grainsize(3)
	for (int i = 0; i < 100; i++) {
		sum += i + (long)text.size();
		last = i;
	}
#pragma omp taskloop shared(sum) num_tasks(7) nogroup
	for (unsigned long long i = 0; i < 100; i++)
		add(sum, (long)i);
#pragma omp taskwait
	return sum * 1000 + last;
}

long groups()
{
	long sum = 0;
#pragma omp taskgroup task_reduction(+ : sum)
	{
		for (int i = 0; i < 50; i++)
#pragma omp task in_reduction(+ : sum) firstprivate(i)
			sum += i;
	}
	return sum;
}

long chains() // more dependencies than we keep, too
{
	long v[24] = {};
	for (int i = 1; i < 24; i++)
#pragma omp task shared(v) firstprivate(i) depend(in : v[i - 1]) depend(out : v[i])
		v[i] = v[i - 1] + i;
#pragma omp task shared(v) depend(inout                                                            \
				  : v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10],   \
				  v[11], v[12], v[13], v[14], v[15], v[16], v[17], v[18], v[23])
	v[0] = v[23] + v[18];
#pragma omp taskwait depend(in : v[1])
#pragma omp taskwait
	return v[0];
}

} // namespace

int main()
{
	long (*const all[])() = {copies, events, loops, groups, chains};
#pragma omp parallel num_threads(3)
#pragma omp single
	{
		std::printf("%ld %ld", at_once(1000), fibonacci(15));
		for (long (*each)() : all)
			std::printf(" %ld", each());
		std::printf("\n");
	}
	return 0;
}
