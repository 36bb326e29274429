/* SPDX-License-Identifier: Apache-2.0 */
/*
 * links.h - another way to a file whose path cannot be said where it must be: the loader takes
 * LD_PRELOAD apart at blanks and colons, and knows no quotes.
 */
#ifndef LONGPOLE_OS_LINKS_H
#define LONGPOLE_OS_LINKS_H

#include "base/base.h"

#include <limits.h>

/* A directory of one session with links to files; zero: none was needed. */
struct os_links {
	char directory[PATH_MAX];
	int lock_fd; /* of the directory: its lock says that we live; -1: it could not be opened */
};

/*
 * os_links_begin - a new directory whose path has neither a blank nor a colon: in $TMPDIR if
 * that is such a path, else where every system has one. Ours to remove; only we may write there.
 * Those of the same prefix that killed sessions left a day ago are removed.
 */
enum base_status os_links_begin(
	struct os_links *links, const char *prefix, struct base_err *err) BASE_MUST_CHECK;

/* os_links_way - `path` itself, or that of a link to it which LD_PRELOAD can say. */
enum base_status os_links_way(struct os_links *links, const char *path, char ret[PATH_MAX],
	struct base_err *err) BASE_MUST_CHECK;

/* Removes what was made. Not while processes live that would load through it at their next exec. */
void os_links_remove(struct os_links *links);

#endif
