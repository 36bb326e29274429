/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_messages.c - `longpole messages`: the communication matrix of MPI ranks. */
#include "cmd/cmd.h"

enum { LIMIT_DEFAULT = 20 };

static const struct cmd_option option[] = {
	{"limit", 'n', "N", NULL, "show N ways (default 20)"},
	{"all", 'a', NULL, NULL, "show every one"},
};

const struct cmd_details cmd_details_messages = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Says how many messages and bytes each rank of an MPI program sends each other "
		 "rank, and how long calls waited for them. A receiver waits until the message is "
		 "sent (late sender), a sender until it is asked for (late receiver). Point to "
		 "point, of all communicators together; ranks are those of MPI_COMM_WORLD.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole messages run", "longpole report messages queues ring.lpt",
		"longpole messages --json run | jq -r '.result.ways[] | [.from, .to, .bytes] | "
		"@tsv'"},
};

int cmd_section_messages(struct cmd *c, struct report_run *run, struct cmd_answer *a)
{
	struct report_messages *r = NULL;
	size_t limit = LIMIT_DEFAULT;
	if (!cmd_value_limit(c, &limit))
		return CMD_USAGE;
	if (!run)
		return CMD_OK;
	cmd_answer_set(c, a, report_messages_build(run, &r, &c->err));
	if (a->as == CMD_AS_JSON)
		a->json = report_messages_json(r);
	else if (a->as == CMD_AS_TEXT)
		report_messages_text(&a->text, r, limit, &a->style);
	report_messages_free(r);
	return CMD_OK;
}
