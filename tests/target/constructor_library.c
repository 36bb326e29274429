/* SPDX-License-Identifier: Apache-2.0 */
/* constructor_library - what tests/target/constructor.c loads: computes as soon as it is loaded. */
#include <pthread.h>

#include "target.h"

static pthread_mutex_t tables_mutex = PTHREAD_MUTEX_INITIALIZER;
uint64_t constructor_sum = 1;

TARGET_FUNCTION uint64_t make_tables(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

__attribute__((constructor)) static void load(void)
{
	const char *units = getenv("CONSTRUCTOR_UNITS");
	pthread_mutex_lock(&tables_mutex);
	constructor_sum = make_tables(constructor_sum, units ? strtoull(units, NULL, 10) : 0);
	pthread_mutex_unlock(&tables_mutex);
}
