/* SPDX-License-Identifier: Apache-2.0 */
/* elsewhere.c - in the place of the commands that are x86-64's own (CMD_X86 in commands.def), for
 * other processors. */
#include "cmd/cmd.h"
#include "os/processor.h"

const struct cmd_details cmd_details_elsewhere = {
	.usage = "...",
	.about = "Not on this processor: it reads or writes x86-64's instructions and registers.",
};

int cmd_run_elsewhere(struct cmd *c)
{
	return cmd_fail(
		c, base_fail(&c->err, BASE_ERR_ENV,
			   "longpole %s: not on this processor (" OS_PROCESSOR "), only on x86-64",
			   c->spec->name));
}
