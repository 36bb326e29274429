/* SPDX-License-Identifier: Apache-2.0 */
/* ledger.h - outcomes of predictions, kept in a file of the user's. */
#ifndef LONGPOLE_CMD_LEDGER_H
#define LONGPOLE_CMD_LEDGER_H

#include "cmd/cmd.h"
#include "report/ledger.h"

/* What became of predictions so far; empty when there is no ledger. To be closed by
 * report_ledger_fini(). */
void cmd_ledger_open(struct cmd *c, struct report_ledger *ret);
/* --record-outcome=TIME|TRACE: appends prediction and outcome. CMD_OK, or a message was printed. */
int cmd_ledger_record(struct cmd *c, const struct report_whatif *w);

#endif
