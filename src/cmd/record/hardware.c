/* SPDX-License-Identifier: Apache-2.0 */
/* hardware.c - --events of calls and locks. */
#include "cmd/record/record.h"

#include <string.h>

int cmd_hardware_list(struct cmd *c)
{
	struct base_str text = {0};
	const struct system_hardware_event *event;
	for (unsigned i = 0; (event = system_hardware_at(i)) != NULL; i++)
		base_str_addf(&text, "%s\n", event->name);
	return cmd_write(c, &text);
}

bool cmd_hardware_parse(struct cmd *c, const char *list, struct system_hardware *ret)
{
	char bad[64];
	if (!list || system_hardware_parse(
			     !strcmp(list, "misses") ? SYSTEM_HARDWARE_STUDY : list, ret, bad))
		return true;
	if (*bad)
		cmd_usage(c,
			"--events: '%s' is no event that is counted here; '-e list' shows them",
			bad);
	else
		cmd_usage(c, "--events: from 1 to %d events", (int)RING_EVENTS);
	return false;
}
