/* SPDX-License-Identifier: Apache-2.0 */
/* built.h - what a program's file says of how it was built: for memory streams, with our wrappers.
 */
#ifndef LONGPOLE_OS_BUILT_H
#define LONGPOLE_OS_BUILT_H

#include <stdbool.h>

/* Of an ELF file: the lowest level that an object of it was built for by `longpole cc`; 0: none
 * was. */
unsigned os_built_level(const char *path);
/* The streams' version that an object of it has and that we cannot read; 0: none is so new. */
unsigned os_built_newer(const char *path);
/* A static program that was linked with liblongpole-wrap.a. */
bool os_is_wrapped(const char *path);

#endif
