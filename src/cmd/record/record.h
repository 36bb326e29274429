/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - recording a program, for the subcommands that begin with that. */
#ifndef LONGPOLE_CMD_RECORD_H
#define LONGPOLE_CMD_RECORD_H

#include "cmd/cmd.h"
#include "session/session.h"

/* The mode of that name; NULL: the usual one. */
enum session_locks cmd_record_locks(const char *mode);
/* That mode, and the kernel's events only where it needs them. */
void cmd_record_mode(struct session_options *o, enum session_locks locks);

/* --events: the list of all; what an option's value (or NULL) says. False: a message was printed. */
int cmd_hardware_list(struct cmd *c);
bool cmd_hardware_parse(struct cmd *c, const char *list, struct system_hardware *ret);

/* What records memory accesses. */
#define CMD_RECORDERS "rewritten valgrind qemu"
/* The one of that name; NULL: what `program` needs. */
enum session_emulator cmd_record_emulator(const char *recorder, const char *program);

/* Is the program one of Go's that no library can be loaded into? Then what is recorded of it, and how it ended. */
bool cmd_record_is_go(const struct session_options *o);
enum base_status cmd_record_go(struct cmd *c, const struct session_options *o, const char *path,
	int *ret_exit_code) BASE_MUST_CHECK;

/* A note on each recording that was cut off. */
void cmd_recover_hint(struct cmd *c);

/* The operand is a trace to open, or "--" and a program to record first (CMD_OR_PROGRAM). */
struct cmd_recorded {
	bool has_trace; /* *ret is open: cmd_close() it */
	bool is_program;
	int program_exit;
	char path[CMD_PATH_MAX];
};
/* Returns an exit status, which counts when there is no trace. */
int cmd_open_or_record(struct cmd *c, struct session_options *o, struct cmd_recorded *ret,
	struct report_run *ret_run);
/* The program's exit status, where there was one; else the analysis's. */
int cmd_recorded_exit(const struct cmd_recorded *r, int analysed);

#endif
