/* SPDX-License-Identifier: Apache-2.0 */
/* uncounted.c - for the libraries that do not count library calls (tally/calls.c does). */
#include "preload/preload.h"

void preload_count_begin(struct preload_counted *counted, unsigned function, uintptr_t site)
{
	(void)counted, (void)function, (void)site;
}

void preload_count_end(struct preload_counted *counted, int error)
{
	(void)counted, (void)error;
}
