/* SPDX-License-Identifier: Apache-2.0 */
/* links.c - links to files whose paths have blanks or colons. */
#include "os/links.h"
#include "os/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEFT_S = 24 * 60 * 60 };

/* What the loader takes a list of libraries apart at. */
static bool links_is_plain(const char *path)
{
	return !path[strcspn(path, " \t\n:")];
}

static void links_empty(int dir_fd)
{
	int own = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = own >= 0 ? fdopendir(own) : NULL;
	if (!d && own >= 0)
		close(own);
	for (const struct dirent *e; d && (e = readdir(d));)
		unlinkat(dir_fd, e->d_name, 0); /* (not ".", "..") */
	if (d)
		closedir(d);
}

/* Ours, of nobody who lives, and old: what a killed session started may still load from it. */
static bool links_is_left(int fd)
{
	struct stat st;
	time_t now_s = (time_t)(os_time_ns(CLOCK_REALTIME) / 1000000000u);
	return !fstat(fd, &st) && st.st_uid == geteuid() && now_s - st.st_mtime > LEFT_S &&
	       !flock(fd, LOCK_EX | LOCK_NB);
}

static void links_remove_left(const char *place, const char *prefix)
{
	DIR *d = opendir(place);
	for (const struct dirent *e; d && (e = readdir(d));) {
		if (strncmp(e->d_name, prefix, strlen(prefix)) != 0)
			continue;
		int fd = openat(
			dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && links_is_left(fd)) {
			links_empty(fd);
			unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
		}
		if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
}

static bool is_made(struct os_links *links, const char *place, const char *prefix)
{
	char *path = links->directory;
	int n = snprintf(path, sizeof links->directory, "%s/%s-XXXXXX", place, prefix);
	if (n < 0 || n >= PATH_MAX || !mkdtemp(path)) {
		*path = 0;
		return false;
	}
	links->lock_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (links->lock_fd >= 0)
		flock(links->lock_fd, LOCK_EX | LOCK_NB);
	return true;
}

enum base_status os_links_begin(struct os_links *links, const char *prefix, struct base_err *err)
{
	const char *const place[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
	int why = ENOENT;
	for (size_t i = 0; i < BASE_COUNT(place); i++) {
		if (!place[i] || place[i][0] != '/' || !links_is_plain(place[i]))
			continue;
		links_remove_left(place[i], prefix);
		if (is_made(links, place[i], prefix))
			return BASE_OK;
		why = errno;
	}
	return base_fail_errno(
		err, why, "cannot make a directory, %s-XXXXXX, in $TMPDIR or /tmp", prefix);
}

/* Processes of other users, too, that the program starts are to find it. */
static enum base_status links_make(struct os_links *links, struct base_err *err)
{
	if (*links->directory)
		return BASE_OK;
	enum base_status status = os_links_begin(links, "longpole-lib", err);
	if (status == BASE_OK && chmod(links->directory, 0755))
		status = base_fail_errno(err, errno, "%s", links->directory);
	return status;
}

enum base_status os_links_way(
	struct os_links *links, const char *path, char ret[PATH_MAX], struct base_err *err)
{
	const char *slash = strrchr(path, '/');
	enum base_status status = BASE_OK;
	bool plain = links_is_plain(path);
	if (!plain)
		status = links_make(links, err);
	if (status != BASE_OK)
		return status;
	int n = plain ? snprintf(ret, PATH_MAX, "%s", path)
		      : snprintf(
				ret, PATH_MAX, "%s/%s", links->directory, slash ? slash + 1 : path);
	if (n < 0 || n >= PATH_MAX)
		return base_fail_errno(err, ENAMETOOLONG, "%s", path);
	if (!plain && symlink(path, ret))
		return base_fail_errno(err, errno, "cannot make a link, %s", ret);
	return BASE_OK;
}

void os_links_remove(struct os_links *links)
{
	if (*links->directory) {
		if (links->lock_fd >= 0) {
			links_empty(links->lock_fd);
			close(links->lock_fd);
		}
		rmdir(links->directory);
	}
	*links = (struct os_links){0};
}
