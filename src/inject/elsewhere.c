/* SPDX-License-Identifier: Apache-2.0 */
/* elsewhere.c - in the place of this room, for processors whose frames and registers it does not
 * know: nothing can be brought into a process that runs already. */
#include "inject/inject.h"

enum base_status inject_check(pid_t pid, struct base_err *err)
{
	return base_fail(err, BASE_ERR_ENV,
		"process %d: a program that runs already can be joined on x86-64 only; start it "
		"with longpole",
		(int)pid);
}

enum base_status inject_library(
	pid_t pid, const struct inject_what *what, struct inject_result *ret, struct base_err *err)
{
	(void)what;
	*ret = (struct inject_result){0};
	return inject_check(pid, err);
}

bool inject_has_file(pid_t pid, const char *part)
{
	(void)pid;
	(void)part;
	return false;
}
