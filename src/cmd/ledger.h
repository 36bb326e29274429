/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.h - outcomes of predictions, kept in a file of the user's. */
#ifndef LONGPOLE_CMD_LEDGER_H
#define LONGPOLE_CMD_LEDGER_H

#include "cmd/cmd.h"
#include "report/ledger.h"

/* Adds how far off predictions of these kinds were before; nothing when there is no ledger. */
void cmd_ledger_history(struct cmd *c, const struct report_whatif *w, struct base_str *text,
	const struct report_style *st);
/* --record-outcome=TIME|TRACE: appends prediction and outcome. CMD_OK, or a message was printed. */
int cmd_ledger_record(struct cmd *c, const struct report_whatif *w);

#endif
