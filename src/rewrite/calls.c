/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - the table of functions that are called through the runtime library. */
#include "rewrite/calls.h"

bool rewrite_call_is_replaced(struct att_text name)
{
	static const char *const table[] = {
#define CALL(name) #name,
#include "rewrite/calls.def"
		NULL};
	for (size_t i = 0; table[i]; i++)
		if (rewrite_att_is(name, table[i]))
			return true;
	return false;
}
