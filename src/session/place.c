/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - directories for shared memory: made, found again, removed. */
#include "session/place.h"
#include "os/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BEING_MADE_S = 60 /* a directory without `session`: somebody may be at it */ };

void session_place_dirs(const char *ret[static SESSION_PLACE_DIRS])
{
	const char *tmpdir = getenv("TMPDIR");
	ret[0] = "/dev/shm";
	ret[1] = tmpdir && *tmpdir == '/' ? tmpdir : "/tmp";
	ret[2] = "/tmp";
}

static bool is_private_directory(int fd)
{
	struct stat st;
	return !fstat(fd, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 07777) == 0700;
}

/* It has its name when it is locked: without a lock it is a dead recorder's. */
static int make_session(int dir_fd)
{
	static const char made[] = "making";
	int fd = openat(dir_fd, made, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	if (!fchmod(fd, 0600) && !flock(fd, LOCK_EX | LOCK_NB) &&
		!renameat(dir_fd, made, dir_fd, SESSION_PLACE_SESSION))
		return fd;
	int why = errno;
	close(fd);
	errno = why;
	return -1;
}

bool session_place_open(struct session_place *p, const char *dir)
{
	*p = (struct session_place){.fd = -1, .session_fd = -1};
	int n = snprintf(p->path, sizeof p->path, "%s/" SESSION_PLACE_PREFIX "%d-XXXXXX", dir,
		(int)getpid());
	if (n < 0 || (size_t)n >= sizeof p->path - 64) {
		p->path[0] = 0;
		errno = ENAMETOOLONG;
		return false;
	}
	if (!mkdtemp(p->path)) {
		p->path[0] = 0;
		return false;
	}
	p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->fd < 0 || fchmod(p->fd, 0700) || !is_private_directory(p->fd) ||
		(p->session_fd = make_session(p->fd)) < 0) {
		int why = errno;
		session_place_close(p);
		errno = why ? why : EACCES;
		return false;
	}
	return true;
}

int session_place_file(
	const struct session_place *p, const char *what, char ret_path[static SESSION_PLACE_PATH])
{
	uint64_t random[2];
	ret_path[0] = 0;
	if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
		return -1;
	int n = snprintf(ret_path, SESSION_PLACE_PATH, "%s/%s-%016" PRIx64 "%016" PRIx64, p->path,
		what, random[0], random[1]);
	int fd = -1;
	errno = ENAMETOOLONG;
	if (n > 0 && n < SESSION_PLACE_PATH)
		fd = openat(p->fd, ret_path + strlen(p->path) + 1,
			O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fchmod(fd, 0600)) {
		int why = errno;
		ret_path[0] = 0;
		if (fd >= 0)
			close(fd);
		errno = why;
		return -1;
	}
	return fd;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* Of what is in it; a directory in it is not ours. */
static void each_entry(
	int dir_fd, bool (*visit)(void *ctx, int dir_fd, const char *name), void *ctx)
{
	int own = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = own >= 0 ? fdopendir(own) : NULL;
	if (!d && own >= 0)
		close(own);
	for (struct dirent *e; d && (e = readdir(d));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
			!visit(ctx, dir_fd, e->d_name))
			break;
	if (d)
		closedir(d);
}

static bool remove_entry(void *ctx, int dir_fd, const char *name)
{
	(void)ctx;
	(void)unlinkat(dir_fd, name, 0);
	return true;
}

void session_place_leave(struct session_place *p)
{
	int why = errno; /* of what did not work before */
	if (p->session_fd >= 0)
		close(p->session_fd);
	if (p->fd >= 0)
		close(p->fd);
	*p = (struct session_place){.fd = -1, .session_fd = -1};
	errno = why;
}

/* (Without its lock's file it is one that is being made, for others. And where no more files can be
 * opened, reading it takes that one's place.) */
void session_place_close(struct session_place *p)
{
	int why = errno;
	if (!p->path[0])
		return;
	if (p->fd >= 0)
		(void)unlinkat(p->fd, SESSION_PLACE_SESSION, 0);
	if (p->session_fd >= 0)
		close(p->session_fd);
	p->session_fd = -1;
	if (p->fd >= 0)
		each_entry(p->fd, remove_entry, NULL);
	(void)rmdir(p->path);
	session_place_leave(p);
	errno = why;
}

/* ---- what killed recorders left -------------------------------------------------------------- */

/* A recorder that lives has its lock for long, another one that looks at what is left for a moment. */
static bool place_lock(int fd, bool patient)
{
	enum { TRIES = 6, PAUSE_NS = 4000000 };
	for (unsigned i = 0; flock(fd, LOCK_EX | LOCK_NB); i++) {
		if (errno != EWOULDBLOCK || !patient || i == TRIES)
			return false;
		(void)nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	}
	return true;
}

/* Ours, and nobody's any more: locked for us. */
static bool open_left(
	int base_fd, const char *dir, const char *name, bool patient, struct session_left *ret)
{
	struct stat st;
	struct session_place *p = &ret->place;
	*ret = (struct session_left){.place = {.fd = -1, .session_fd = -1}};
	int n = snprintf(p->path, sizeof p->path, "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof p->path)
		return false;
	p->fd = openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (p->fd < 0 || !is_private_directory(p->fd))
		goto no;
	p->session_fd =
		openat(p->fd, SESSION_PLACE_SESSION, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int held = p->session_fd >= 0 ? p->session_fd : p->fd;
	if (fstat(held, &st) || !place_lock(held, patient))
		goto no;
	time_t now_s = (time_t)(os_time_ns(CLOCK_REALTIME) / 1000000000u);
	if (p->session_fd < 0 && now_s - st.st_mtime < BEING_MADE_S)
		goto no;
	return true;
no:
	session_place_leave(p);
	return false;
}

void session_place_each_left(
	bool patient, bool (*visit)(void *ctx, struct session_left *left), void *ctx)
{
	const char *dirs[SESSION_PLACE_DIRS];
	session_place_dirs(dirs);
	bool goes_on = true;
	for (size_t i = 0; goes_on && i < SESSION_PLACE_DIRS; i++) {
		bool again = false;
		for (size_t k = 0; k < i; k++)
			again |= !strcmp(dirs[k], dirs[i]);
		DIR *d = again ? NULL : opendir(dirs[i]);
		struct session_left left;
		for (struct dirent *e; d && goes_on && (e = readdir(d));)
			if (!strncmp(e->d_name, SESSION_PLACE_PREFIX,
				    sizeof SESSION_PLACE_PREFIX - 1) &&
				open_left(dirfd(d), dirs[i], e->d_name, patient, &left))
				goes_on = visit(ctx, &left);
		if (d)
			closedir(d);
	}
}
