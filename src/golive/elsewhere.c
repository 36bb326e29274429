/* SPDX-License-Identifier: Apache-2.0 */
/* elsewhere.c - on processors that code.c and inject/ do not know: no program is one that can be led. */
#include "golive/golive.h"

bool golive_knows(const char *path)
{
	(void)path;
	return false;
}

enum base_status golive_record(struct golive_run *run, struct gotrace **ret, struct base_err *err)
{
	(void)run;
	*ret = NULL;
	return base_fail(err, BASE_ERR_ENV, "goroutines are seen on x86-64 alone");
}
