/* SPDX-License-Identifier: Apache-2.0 */
/* family.h - a program, and all processes that it starts, whoever their parents are by now. */
#ifndef LONGPOLE_OS_FAMILY_H
#define LONGPOLE_OS_FAMILY_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The program is a child of the keeper, a child of ours to which orphans of the program come: what
 * descends from the keeper was started by the program, and nothing else was. */
struct os_family {
	pid_t keeper;
	pid_t program;
	bool has_ended; /* and the keeper is reaped */
};

/* Starts argv[0], looked for in $PATH, with our stdio, environment, group and signals. If we die,
 * it lives on. ERR_ENV: it cannot be run. */
enum base_status os_family_start(
	struct os_family *ret, char *const *argv, struct base_err *err) BASE_MUST_CHECK;

/* Has the program ended? What it started and left lives on, and is not its family any more. */
bool os_family_has_ended(struct os_family *f);

/* The program and its orphans, as far as they live and there is room. Returns how many. */
size_t os_family_children(const struct os_family *f, pid_t *ret, size_t max);

/* Kills the program and all that it started, for at most `patience_ns`. Returns how many of its
 * children and orphans may not be killed, or had not died then; at least that many live. */
size_t os_family_kill(struct os_family *f, uint64_t patience_ns);

#endif
