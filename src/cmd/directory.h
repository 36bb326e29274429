/* SPDX-License-Identifier: Apache-2.0 */
/* directory.h - traces of MPI ranks that lie in one directory, as one trace. */
#ifndef LONGPOLE_CMD_DIRECTORY_H
#define LONGPOLE_CMD_DIRECTORY_H

#include "cmd/cmd.h"
#include "merge/merge.h"

/* Files of a directory that are traces of ranks, in the order of their names' numbers. */
struct cmd_ranks {
	char **path;
	size_t nr, capacity;
};
/* CMD_OK, or an exit status after a message: there are none. Says which traces it leaves out. */
int cmd_ranks_find(struct cmd *c, const char *directory, struct cmd_ranks *ret);
void cmd_ranks_fini(struct cmd_ranks *r);

/* What is joined, and where to. */
struct cmd_join {
	const char *const *input;
	size_t nr;
	const char *output;
	bool one_job; /* of MPI, or it is a mistake */
	struct merge_result *result;
	struct base_arena **names; /* of the result: the caller frees it */
};
/* CMD_OK, or an exit status after a message. */
int cmd_merge_into(struct cmd *c, const struct cmd_join *j);
void cmd_merge_add_missing(struct base_str *out, const struct merge_result *m);

#endif
