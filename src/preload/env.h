/* SPDX-License-Identifier: Apache-2.0 */
/* env.h - an environment for exec that keeps us loaded in the next program. */
#ifndef LONGPOLE_PRELOAD_ENV_H
#define LONGPOLE_PRELOAD_ENV_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>

enum { PRELOAD_ENV_OURS_MAX = 16 };

/*
 * The program's own environment, with our library in LD_PRELOAD and our variables, in memory that
 * the caller provides (on its stack: a vfork's child must not leave anything behind).
 * preload_env_bytes() says how much; 0: nothing to add.
 */
size_t preload_env_bytes(char *const *environment);
char **preload_env_build(void *memory, char *const *environment);
/* The same without our library and our variables, for a program that does not suit us. */
char **preload_env_without(void *memory, char *const *environment);
/* Can the program that is to be executed be loaded with our library? Counted where it is not one for
 * it. directory and file as of execveat(); is_searched: as of execvp(). */
bool preload_exec_suits(int directory, const char *file, bool is_searched);
/* Of that file, by its segments: would it die of functions that are counted? */
bool preload_exec_is_sanitized(int fd, const Elf64_Phdr *segment, size_t nr_segments);
/* Our path, as in LD_PRELOAD; NULL: not known. */
const char *preload_env_library(void);
/* From now on the next program gets our library without a ring: it asks the kernel nothing. */
void preload_env_forget(void);
/* A process that was joined: programs that it executes get this from now, until it is left. */
void preload_env_join(const char *library, const char *ring);
void preload_env_leave(void);

#endif
