/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_connections.c - `longpole connections`: one critical path per connection. */
#include "cmd/cmd.h"

enum { LIMIT_DEFAULT = 20 };

static const struct cmd_option option[] = {
	{"limit", 'n', "N", NULL, "show N connections, and as many actors (default 20)"},
	{"all", 'a', NULL, NULL, "show every one"},
};

const struct cmd_details cmd_details_connections = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Programs that say whom they serve (longpole_identify) have one critical path per "
		 "connection: no path passes through work that was done for another. Identity "
		 "flows on through annotated queues, pipes and sockets. Shows each connection's "
		 "path, and which actors are shared and which belong to one.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole connections server.lpt",
		"longpole connections --json server.lpt | jq '.result.actors[] | select(.shared)'",
		"longpole report --connection=3 server.lpt"},
};

int cmd_section_connections(struct cmd *c, struct report_run *run, struct cmd_answer *a)
{
	struct report_connections *r = NULL;
	size_t limit = LIMIT_DEFAULT;
	if (!cmd_value_limit(c, &limit))
		return CMD_USAGE;
	if (!run)
		return CMD_OK;
	cmd_answer_set(c, a, report_connections_build(run, &r, &c->err));
	if (a->as == CMD_AS_JSON)
		a->json = report_connections_json(r);
	else if (a->as == CMD_AS_TEXT)
		report_connections_text(&a->text, r, limit, &a->style);
	report_connections_free(r);
	return CMD_OK;
}
