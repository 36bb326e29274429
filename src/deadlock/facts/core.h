/* SPDX-License-Identifier: Apache-2.0 */
/* core.h - a process that was dumped: its threads with their registers, its memory. */
#ifndef LONGPOLE_DEADLOCK_CORE_H
#define LONGPOLE_DEADLOCK_CORE_H

#include "deadlock/facts/types.h"

struct deadlock_core;
enum base_status deadlock_core_open(
	const char *path, struct deadlock_core **ret, struct base_err *err) BASE_MUST_CHECK;
struct deadlock_core *deadlock_core_close(struct deadlock_core *c);
/* Threads as waits that are not decoded yet: in a system call, or running. */
const struct deadlock_wait *deadlock_core_waits(const struct deadlock_core *c, size_t *ret_nr);
bool deadlock_core_read(const struct deadlock_core *c, uint64_t address, void *buf, size_t size);
bool deadlock_core_has_thread(const struct deadlock_core *c, pid_t tid);
void *deadlock_core_elf(const struct deadlock_core *c); /* libelf's */

/* A note of type NT_PRSTATUS. False: too short. For tests, too. */
bool deadlock_core_parse_thread(const void *note, size_t bytes, struct deadlock_wait *ret);

#endif
