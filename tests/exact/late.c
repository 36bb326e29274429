/* SPDX-License-Identifier: Apache-2.0 */
/* late.c - a library that count.c loads while it runs. */
#include "count.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((visibility("default"))) void lock_often(int n)
{
	for (int i = 0; i < n; i++) {
		LOCK(&lock);
		UNLOCK(&lock);
	}
}
