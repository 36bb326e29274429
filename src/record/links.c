/* SPDX-License-Identifier: Apache-2.0 */
/* links.c - links to files whose paths have blanks or colons. */
#include "record/links.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the loader takes a list of libraries apart at. */
static bool is_plain(const char *path)
{
	return !path[strcspn(path, " \t\n:")];
}

enum base_status record_links_directory(
	const char *prefix, char ret[PATH_MAX], struct base_err *err)
{
	const char *const place[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
	int why = ENOENT;
	for (size_t i = 0; i < BASE_COUNT(place); i++) {
		if (!place[i] || place[i][0] != '/' || !is_plain(place[i]))
			continue;
		int n = snprintf(ret, PATH_MAX, "%s/%s-XXXXXX", place[i], prefix);
		if (n > 0 && n < PATH_MAX && mkdtemp(ret))
			return BASE_OK;
		why = errno;
	}
	*ret = 0;
	return base_fail_errno(
		err, why, "cannot make a directory, %s-XXXXXX, in $TMPDIR or /tmp", prefix);
}

/* Processes of other users, too, that the program starts are to find it. */
static enum base_status links_make(struct record_links *links, struct base_err *err)
{
	if (*links->directory)
		return BASE_OK;
	enum base_status status = record_links_directory("longpole-lib", links->directory, err);
	if (status == BASE_OK && chmod(links->directory, 0755))
		status = base_fail_errno(err, errno, "%s", links->directory);
	return status;
}

enum base_status record_links_way(
	struct record_links *links, const char *path, char ret[PATH_MAX], struct base_err *err)
{
	const char *slash = strrchr(path, '/');
	enum base_status status = BASE_OK;
	bool plain = is_plain(path);
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

void record_links_remove(struct record_links *links)
{
	DIR *d = *links->directory ? opendir(links->directory) : NULL;
	for (const struct dirent *e; d && (e = readdir(d));)
		unlinkat(dirfd(d), e->d_name, 0); /* (not ".", "..") */
	if (d)
		closedir(d);
	if (*links->directory)
		rmdir(links->directory);
	*links = (struct record_links){0};
}
