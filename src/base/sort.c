/* SPDX-License-Identifier: Apache-2.0 */
/* sort.c - sorted sequences are merged, neighbour with neighbour, until there is one. */
#include "base/sort.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

enum { RUN_LENGTH_MIN = 32 }; /* on average: below, qsort() is as good */

struct sort_order {
	size_t size_bytes;
	int (*compare)(const void *a, const void *b);
};

/* Where sequences begin; the end comes last. NULL: too many, or no memory. */
static size_t *sort_find_runs(
	const struct sort_order *o, const char *data, size_t nr, size_t *ret_nr_runs)
{
	size_t *begin = NULL, capacity = 0, nr_runs = 0;
	for (size_t i = 0; i <= nr; i++) {
		const char *p = data + i * o->size_bytes;
		if (i && i < nr && o->compare(p - o->size_bytes, p) <= 0)
			continue;
		if (nr_runs > nr / RUN_LENGTH_MIN ||
			base_grow(&begin, &capacity, nr_runs + 1, sizeof *begin) != BASE_OK) {
			base_free(begin);
			return NULL;
		}
		begin[nr_runs++] = i;
	}
	*ret_nr_runs = nr_runs - 1;
	return begin;
}

/* [first, middle) and [middle, end) of `from` become one in `to`. */
static void sort_merge(const struct sort_order *o, const char *from, char *to, size_t first,
	size_t middle, size_t end)
{
	size_t size = o->size_bytes;
	const char *a = from + first * size, *b = from + middle * size;
	const char *a_end = b, *b_end = from + end * size;
	for (to += first * size; a < a_end && b < b_end; to += size) {
		const char **which = o->compare(a, b) <= 0 ? &a : &b;
		memcpy(to, *which, size);
		*which += size;
	}
	if (a < a_end)
		memcpy(to, a, (size_t)(a_end - a));
	else if (b < b_end)
		memcpy(to, b, (size_t)(b_end - b));
}

void base_sort_runs(
	void *data, size_t nr, size_t size_bytes, int (*compare)(const void *a, const void *b))
{
	struct sort_order o = {size_bytes, compare};
	size_t nr_runs = 0;
	size_t *begin = nr > 1 ? sort_find_runs(&o, data, nr, &nr_runs) : NULL;
	char *copy = begin && nr_runs > 1 ? base_alloc(nr * size_bytes) : NULL;
	char *from = data, *to = copy;
	if (nr > 1 && (!begin || (nr_runs > 1 && !copy)))
		qsort(data, nr, size_bytes, compare);
	while (copy && nr_runs > 1) {
		size_t left = 0;
		for (size_t i = 0; i < nr_runs; i += 2) {
			size_t end = i + 2 <= nr_runs ? begin[i + 2] : begin[i + 1];
			sort_merge(&o, from, to, begin[i], begin[i + 1], end);
			begin[left++] = begin[i];
		}
		begin[left] = nr;
		nr_runs = left;
		char *other = from;
		from = to;
		to = other;
	}
	if (copy && from == copy)
		memcpy(data, copy, nr * size_bytes);
	base_free(copy);
	base_free(begin);
}
