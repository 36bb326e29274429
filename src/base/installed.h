/* SPDX-License-Identifier: Apache-2.0 */
/* installed.h - where the files lie that come with longpole: libraries, tools, its assembler. */
#ifndef BASE_INSTALLED_H
#define BASE_INSTALLED_H

#include <limits.h>
#include <stdbool.h>

/*
 * base_installed_file - finds a regular, readable file that comes with longpole.
 *
 * @in_build: its directory in a build tree, from the root: "src/preload"
 * @installed: its path below the installed lib/longpole: "liblongpole-preload.so", "as/as"; the
 * last word is its name in both
 * @ret: its absolute path; also where it was looked for last, when it was not found
 *
 * Looked for, in this order: in ../lib/longpole from the running program, so that an installed tree
 * may be moved; in the build tree that the running program is part of; where it was configured to
 * be installed. A directory of that name is no such file.
 */
bool base_installed_file(const char *in_build, const char *installed, char ret[PATH_MAX]);

#endif
