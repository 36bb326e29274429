/* SPDX-License-Identifier: Apache-2.0 */
/* noc.h - shared by the verbs of `longpole noc` and by `longpole sweep`. */
#ifndef LONGPOLE_CMD_NOC_H
#define LONGPOLE_CMD_NOC_H

#include "cmd/cmd.h"
#include "noc/network/config.h"

#define VERB(name, flags, summary)                                                                 \
	extern const struct cmd_details cmd_details_noc_##name;                                    \
	int cmd_noc_##name(struct cmd *c);
#include "cmd/noc/noc_verbs.def"

/* Options that several verbs have. */
#define NOC_OPTION_OUTPUT(value, doc)                                                              \
	{                                                                                          \
		"output", 'o', value, "@file", doc                                                 \
	}
#define NOC_OPTION_LIST                                                                            \
	{                                                                                          \
		"list-parameters", 'l', NULL, NULL,                                                \
			"every parameter with its default, limits and meaning"                     \
	}
int cmd_noc_list_parameters(struct cmd *c);

/* Defaults, then --config, then the operands from `first` on, which all are KEY=VALUE. CMD_OK, or
 * an exit status after a message. */
int cmd_noc_config(struct cmd *c, size_t first, struct noc_config *ret);
/* A number in so many columns at least, "-" where there is none (NAN). */
void cmd_noc_add_number(struct base_str *out, double x, int width, int decimals);
/* A relative error, so: 0.01 is "+1.00 %". */
void cmd_noc_add_error(struct base_str *out, double x, int width, int decimals);
/* "8x8 mesh", "3-level fat tree of 64 nodes". */
void cmd_noc_describe(struct base_str *out, const struct noc_config *k);
/* {"key": value, ...} of all parameters. */
json_t *cmd_noc_config_json(const struct noc_config *config);

#endif
