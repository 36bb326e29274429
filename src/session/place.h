/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - where a recording's shared memory lies: a directory of its own,
 * longpole-session-PID-XXXXXX in /dev/shm, else $TMPDIR, else /tmp.
 *
 * Nobody else can go into it (mode 0700), so its files can be neither listed, replaced nor taken
 * over, and their names have 128 random bits. It is a file with a name, no memfd: a program that
 * closes all descriptors, or executes another one after that, finds it again, and it outlives a
 * recorder that is killed. As long as its recorder lives, that has a lock (flock) on the file
 * `session`, which the kernel gives up with it: neither pids nor times have to be compared.
 */
#ifndef LONGPOLE_SESSION_PLACE_H
#define LONGPOLE_SESSION_PLACE_H

#include "base/base.h"

enum { SESSION_PLACE_PATH = 160, SESSION_PLACE_DIRS = 3 };
#define SESSION_PLACE_PREFIX  "longpole-session-"
#define SESSION_PLACE_SESSION "session"

struct session_place {
	char path[SESSION_PLACE_PATH]; /* of the directory; "": there is none */
	int fd, session_fd;            /* the directory; its file `session` */
};

/* The directories to try, best first; entries may be the same. */
void session_place_dirs(const char *ret[static SESSION_PLACE_DIRS]);
/* Makes one in `dir`. False, errno set: it cannot be made there. */
bool session_place_open(struct session_place *p, const char *dir) BASE_MUST_CHECK;
/* Makes a file named `what` and random digits, with mode 0600. Its descriptor; -1, errno set.
 * ret_path has the whole path. */
int session_place_file(
	const struct session_place *p, const char *what, char ret_path[static SESSION_PLACE_PATH]);
/* Removes it with all that is in it, unless it is not open. */
void session_place_close(struct session_place *p);

/* Closes it, and its lock; it stays as it is. */
void session_place_leave(struct session_place *p);

/* A directory of this user whose recorder is gone. */
struct session_left {
	struct session_place place; /* open, and locked for us */
};
/* Visits all of them; `visit` owns what it gets: session_place_close() removes it. False ends. Patient: for
 * one that another process just looks at it waits some milliseconds. */
void session_place_each_left(
	bool patient, bool (*visit)(void *ctx, struct session_left *left), void *ctx);

#endif
