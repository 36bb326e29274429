// SPDX-License-Identifier: Apache-2.0
// heap.cc - allocates in every way that is recorded, and frees it again. What must be recorded stands behind each call.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <sys/mman.h>
struct alignas(64) Wide {
	char c[128];
};
int main()
{
	volatile size_t n = 1000, all = ~size_t{0} >> 2;
	void *e = nullptr;
	bool thrown = false;
	void *a = malloc(n);							//= 1000
	void *b = calloc(n, 3);							//= 3000
	a = realloc(a, n * 100);						//= 100000
	b = reallocarray(b, n, 7);						//= 7000
	void *c = aligned_alloc(64, 64 * n);					//= 64000
	void *d = memalign(64, n + 1);						//= 1001
	if (posix_memalign(&e, 64, n + 2))					//= 1002
		return 1;
	int *f = new int[n];							//= 4000
	Wide *g = new Wide;							//= 128
	double *h = new double;							//= 8
	char *i = strdup("seven!!");						//= 8
	void *j = mmap(nullptr, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); //= 1000 mapping
	try {
		thrown = !new char[all];
	} catch (std::bad_alloc &) {
		thrown = true;
	}
	munmap(j, n);
	free(i);
	delete h;
	delete g;
	delete[] f;
	free(e);
	free(d);
	free(c);
	free(b);
	free(a);
	printf("%d\n", thrown);
	return 0;
}
