/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort.h - sorting of what is in order mostly: several sorted sequences behind one another. Takes time in proportion to the
 * logarithm of their number, not to that of the elements'.
 */
#ifndef LONGPOLE_BASE_SORT_H
#define LONGPOLE_BASE_SORT_H

#include <stddef.h>

/* As qsort(), of elements none of which compare equal. Takes memory for a copy; without, and when the sequences are short,
 * it is qsort(). */
void base_sort_runs(
	void *data, size_t nr, size_t size_bytes, int (*compare)(const void *a, const void *b));

#endif
