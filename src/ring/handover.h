/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover.h - inside the program: the recorder's shared memory is opened, if it is the recorder's.
 *
 * Its path comes from the environment, which outlives the recording in whatever the program left
 * behind, and may have been set by anybody. So the file is taken only if nobody but the user that
 * the process runs as can have made or changed it: a regular file with mode 0600, one name and that
 * owner, in a directory with mode 0700 and that owner, neither of them a symbolic link; looked at
 * through descriptors, not by name. The file's name has 128 random bits: where owners cannot be
 * told apart (a user namespace without a mapping), nobody else knows it. A process with rights that
 * its starter has not (AT_SECURE) takes nothing. What is left are other processes of the same user,
 * which may do anything to it anyhow.
 */
#ifndef LONGPOLE_RING_HANDOVER_H
#define LONGPOLE_RING_HANDOVER_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { HANDOVER_PATH_BYTES = 256 };

/* A system call that leaves errno alone: its result, or minus an errno. */
typedef long handover_call(long number, long a, long b, long c, long d, long e, long f);

/* May the environment be believed at all? */
static inline bool handover_allowed(void)
{
	return !getauxval(AT_SECURE);
}

static inline bool handover_is_private(
	const struct stat *st, mode_t type, mode_t mode, long user_id)
{
	return (st->st_mode & (S_IFMT | 07777)) == (type | mode) && (long)st->st_uid == user_id;
}

/* A descriptor of the directory that the path is in; ret_name points into the path. */
static inline long handover_open_directory(
	handover_call *call, const char *path, const char **ret_name)
{
	char directory[HANDOVER_PATH_BYTES];
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;
	if (*path != '/' || !length || length >= sizeof directory || !slash[1])
		return -EINVAL;
	for (size_t i = 0; i < length; i++)
		directory[i] = path[i];
	directory[length] = 0;
	*ret_name = slash + 1;
	return call(SYS_openat, AT_FDCWD, (long)directory,
		O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0, 0, 0);
}

/* That descriptor, and its size, if the file can only be the user's own; else it is closed. */
static inline long handover_believe(
	handover_call *call, long file, long user_id, uint64_t *ret_bytes)
{
	struct stat st;
	memset(&st, 0, sizeof st);
	if (!call(SYS_fstat, file, (long)&st, 0, 0, 0, 0) &&
		handover_is_private(&st, S_IFREG, 0600, user_id) && st.st_nlink == 1 &&
		st.st_size > 0) {
		*ret_bytes = (uint64_t)st.st_size;
		return file;
	}
	(void)call(SYS_close, file, 0, 0, 0, 0, 0);
	return -EPERM;
}

/* A descriptor of the file, to be closed by the caller, and its size; minus an errno: it is not to
 * be trusted, or not there. */
static inline long handover_open(handover_call *call, const char *path, uint64_t *ret_bytes)
{
	const char *name;
	struct stat st;
	if (!handover_allowed())
		return -EPERM;
	long user_id = call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
	long directory = handover_open_directory(call, path, &name), file = -EPERM;
	if (directory < 0)
		return directory;
	memset(&st, 0, sizeof st);
	if (!call(SYS_fstat, directory, (long)&st, 0, 0, 0, 0) &&
		handover_is_private(&st, S_IFDIR, 0700, user_id))
		file = call(SYS_openat, directory, (long)name,
			O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0, 0, 0);
	(void)call(SYS_close, directory, 0, 0, 0, 0, 0);
	return file < 0 ? file : handover_believe(call, file, user_id, ret_bytes);
}

/* The same of a name that our tracer gave (attach.h): one of its descriptors, which lies in
 * no directory. */
static inline long handover_open_given(handover_call *call, const char *path, uint64_t *ret_bytes)
{
	if (!handover_allowed())
		return -EPERM;
	long file = call(SYS_openat, AT_FDCWD, (long)path,
		O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0, 0, 0);
	long user_id = call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
	return file < 0 ? file : handover_believe(call, file, user_id, ret_bytes);
}

#endif
