/* SPDX-License-Identifier: Apache-2.0 */
/* attach.h - a recording of a process that runs already: in, and out again. */
#ifndef LONGPOLE_SESSION_ATTACH_H
#define LONGPOLE_SESSION_ATTACH_H

#include "base/base.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct session;

struct session_attach {
	pid_t pid;      /* 0: the program is ours */
	int process_fd; /* readable when it has ended */
	int library_fd; /* -1: it finds it by its path */
	bool in;        /* the library is at work */
	bool is_timed;
	uint64_t begin_cpu_ns; /* is_timed: its processor time when its recording began */
};

/* Can it be attached to? Opens what is needed for that. */
enum base_status session_attach_prepare(
	struct session_attach *a, pid_t pid, struct base_err *err) BASE_MUST_CHECK;
/* Brings the library in; it records from now on. */
enum base_status session_attach_go(struct session *s) BASE_MUST_CHECK;
bool session_attach_has_ended(const struct session_attach *a); /* the process */
/* Sets the result's target_cpu_ns to its processor time since the first such call; of a process that
 * is gone it stays what it was. */
void session_attach_time(struct session *s);
/* Asks the library to leave, and waits until it has. */
void session_attach_leave(struct session *s);
void session_attach_close(struct session_attach *a);

#endif
