/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_place.h - where a recording's shared memory lies: a directory of its own,
 * longpole-session-PID-XXXXXX in /dev/shm, else $TMPDIR, else /tmp.
 *
 * Nobody else can go into it (mode 0700), so its files can be neither listed, replaced nor taken
 * over, and their names have 128 random bits. It is a file with a name, no memfd: a program that
 * closes all descriptors, or executes another one after that, finds it again, and it outlives a
 * recorder that is killed. As long as its recorder lives, that has a lock (flock) on the file
 * `session`, which the kernel gives up with it: neither pids nor times have to be compared.
 */
#ifndef LONGPOLE_RECORD_SESSION_PLACE_H
#define LONGPOLE_RECORD_SESSION_PLACE_H

#include "base/base.h"

enum { RECORD_PLACE_PATH = 160, RECORD_PLACE_DIRS = 3 };
#define RECORD_PLACE_PREFIX  "longpole-session-"
#define RECORD_PLACE_SESSION "session"

struct record_place {
	char path[RECORD_PLACE_PATH]; /* of the directory; "": there is none */
	int fd, session_fd;           /* the directory; its file `session` */
};

/* The directories to try, best first; entries may be the same. */
void record_place_dirs(const char *ret[static RECORD_PLACE_DIRS]);
/* Makes one in `dir`. False, errno set: it cannot be made there. */
bool record_place_open(struct record_place *p, const char *dir) BASE_MUST_CHECK;
/* Makes a file named `what` and random digits, with mode 0600. Its descriptor; -1, errno set.
 * ret_path has the whole path. */
int record_place_file(
	const struct record_place *p, const char *what, char ret_path[static RECORD_PLACE_PATH]);
/* Removes it with all that is in it, unless it is not open. */
void record_place_close(struct record_place *p);

/* Closes it, and its lock; it stays as it is. */
void record_place_leave(struct record_place *p);

/* A directory of this user whose recorder is gone. */
struct record_left {
	struct record_place place; /* open, and locked for us */
};
/* Visits all of them; `visit` owns what it gets: record_place_close() removes it. False ends. */
void record_place_each_left(bool (*visit)(void *ctx, struct record_left *left), void *ctx);

#endif
