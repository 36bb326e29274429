/* SPDX-License-Identifier: Apache-2.0 */
/* output.c - files that are written: nobody's link is followed, nobody's file is truncated. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* /dev/stdout and its kin: the descriptor itself, wherever it leads; -1: it is none of them. */
static int descriptor_of(const char *path)
{
	static const struct {
		const char *name;
		int fd; /* -1: digits follow */
	} known[] = {{"/dev/stdout", STDOUT_FILENO}, {"/dev/stderr", STDERR_FILENO},
		{"/dev/fd/", -1}, {"/proc/self/fd/", -1}};
	for (size_t i = 0; i < BASE_COUNT(known); i++) {
		size_t n = strlen(known[i].name);
		if (strncmp(path, known[i].name, n) != 0)
			continue;
		char *end;
		if (known[i].fd >= 0 && !path[n])
			return known[i].fd;
		long fd = known[i].fd < 0 && path[n] ? strtol(path + n, &end, 10) : -1;
		if (fd >= 0 && fd <= INT_MAX && !*end)
			return (int)fd;
	}
	return -1;
}

/* Others can make links in a directory that all may write to, one of root's or ours is meant. (A
 * second name of root's link was made by anybody.) */
static bool is_meant(const struct stat *link)
{
	return (link->st_uid == geteuid() || link->st_uid == 0) && link->st_nlink == 1;
}

/* What a link leads to that is not there yet. */
static bool output_add_target(const char *path, struct base_str *ret)
{
	char target[PATH_MAX];
	const char *slash = strrchr(path, '/');
	ssize_t n = readlink(path, target, sizeof target - 1);
	if (n <= 0)
		return false;
	target[n] = 0;
	if (*target != '/' && slash)
		base_str_addf(ret, "%.*s", (int)(slash - path + 1), path);
	base_str_add(ret, target);
	return true;
}

enum base_status base_output_name(const char *path, struct base_str *ret, struct base_err *err)
{
	struct stat st;
	if (descriptor_of(path) < 0 && !lstat(path, &st) && S_ISLNK(st.st_mode)) {
		if (!is_meant(&st))
			return base_fail(err, BASE_ERR_ENV,
				"%s is a symbolic link that another user has made: it is not "
				"written through; remove it, or choose another name",
				path);
		char *real = realpath(path, NULL);
		if (real)
			base_str_add(ret, real);
		else if (errno != ENOENT || !output_add_target(path, ret))
			return base_fail_errno(err, errno, "%s: following the link", path);
		free(real); /* allowed: libc's */
	} else {
		base_str_add(ret, path);
	}
	return ret->failed ? base_fail(err, BASE_ERR_NOMEM, "no memory for a name") : BASE_OK;
}

/* A file of ours where we may make none: emptied in place. */
static int empty_own(const char *path, mode_t mode)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1 &&
		!ftruncate(fd, 0) && !fchmod(fd, mode))
		return fd;
	close(fd);
	errno = EACCES;
	return -1;
}

/* Two recordings to one name: the first would lose its file when the second takes the name. */
static bool output_is_busy(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	bool is_busy = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	if (fd >= 0)
		close(fd);
	return is_busy;
}

/* A new file, which takes the name at once: what had it before is neither changed nor followed. As
 * long as it is open, nobody else of us takes its name. */
static int make_new(const char *path, mode_t mode)
{
	const char *slash = strrchr(path, '/');
	struct base_str temporary = {0};
	int fd = -1;
	base_str_add_bytes(&temporary, path, slash ? (size_t)(slash + 1 - path) : 0);
	base_str_add(&temporary, ".longpole-XXXXXX");
	errno = ENOMEM;
	if (!temporary.failed)
		fd = mkostemp(temporary.buf, O_CLOEXEC);
	if (fd >= 0)
		(void)flock(fd, LOCK_EX | LOCK_NB); /* (file systems without locks: as before) */
	const bool is_busy = fd >= 0 && output_is_busy(path);
	if (is_busy || (fd >= 0 && (fchmod(fd, mode) || rename(temporary.buf, path)))) {
		int why = is_busy ? EBUSY : errno;
		unlink(temporary.buf);
		close(fd);
		fd = -1;
		errno = why;
	} else if (fd < 0 && (errno == EACCES || errno == EPERM || errno == EROFS)) {
		int why = errno;
		fd = empty_own(path, mode);
		errno = why;
	}
	base_str_fini(&temporary);
	return fd;
}

static mode_t output_mode_of(enum base_output_mode mode)
{
	if (mode == BASE_OUTPUT_PRIVATE)
		return 0600;
	mode_t mask = umask(0);
	umask(mask);
	return 0666 & ~mask;
}

/* A pipe, a device: as it is. */
static int open_other(const char *path)
{
	struct stat st;
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || (!fstat(fd, &st) && !S_ISREG(st.st_mode) &&
			      (!S_ISFIFO(st.st_mode) || st.st_uid == geteuid() || !st.st_uid)))
		return fd;
	close(fd);
	errno = EACCES;
	return -1;
}

int base_output_open(const char *path, enum base_output_mode mode, struct base_err *err)
{
	struct base_str name = {0};
	struct stat st;
	int descriptor = descriptor_of(path), fd;
	if (descriptor >= 0) {
		fd = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
	} else if (base_output_name(path, &name, err) != BASE_OK || !name.buf) {
		base_str_fini(&name);
		return -1;
	} else if (!lstat(name.buf, &st) && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) &&
		   !S_ISDIR(st.st_mode)) {
		fd = open_other(name.buf);
	} else {
		fd = make_new(name.buf, output_mode_of(mode));
	}
	if (fd < 0 && errno == EBUSY)
		(void)base_fail_errno(err, errno, "%s is being written by another process", path);
	else if (fd < 0)
		(void)base_fail_errno(err, errno, "%s: cannot create", path);
	base_str_fini(&name);
	return fd;
}

FILE *base_output_stream(const char *path, enum base_output_mode mode, struct base_err *err)
{
	int fd = base_output_open(path, mode, err);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!f && fd >= 0) {
		(void)base_fail_errno(err, errno, "%s: cannot write", path);
		close(fd);
	}
	return f;
}

int base_output_continue(const char *path, struct base_err *err)
{
	struct base_str name = {0};
	struct stat st;
	int fd = -1;
	if (base_output_name(path, &name, err) == BASE_OK && name.buf) {
		fd = open(name.buf,
			O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
				O_CLOEXEC,
			0600);
		if (fd < 0) {
			(void)base_fail_errno(err, errno, "%s: cannot write", path);
		} else if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
			   st.st_nlink != 1) {
			(void)base_fail(err, BASE_ERR_ENV,
				"%s is no file of yours: it is not written to", path);
			close(fd);
			fd = -1;
		}
	}
	base_str_fini(&name);
	return fd;
}
