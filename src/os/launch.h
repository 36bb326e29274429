/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - what is to be run, whether it can be recorded, and its start. */
#ifndef LONGPOLE_OS_LAUNCH_H
#define LONGPOLE_OS_LAUNCH_H

#include "base/base.h"

#include <limits.h>
#include <signal.h>
#include <sys/types.h>

/* Where a library to load into the program is: beside the executable or in its build tree, the
 * installed place; $LONGPOLE_PRELOAD stands for the first one. */
#define OS_LIBRARY_PRELOAD "liblongpole-preload.so"
#define OS_LIBRARY_TALLY   "liblongpole-tally.so"
#define OS_LIBRARY_HEAP    "liblongpole-heap.so"
#define OS_LIBRARY_CALLS   "liblongpole-calls.so"
#define OS_LIBRARY_QEMU    "liblongpole-qemu.so"
enum base_status os_find_preload(
	const char *name, char ret_path[PATH_MAX], struct base_err *err) BASE_MUST_CHECK;

/* Does what writes into the recorder's buffer from inside the program know this buffer? ERR_ENV:
 * the library is of another version; it would write nothing. */
enum base_status os_check_preload(const char *path, struct base_err *err) BASE_MUST_CHECK;

/* Can argv[0] be run? ret_path: what will be executed. *ret_exit_code: 126, 127, 125 when not. */
enum base_status os_find_program(const char *name, char ret_path[PATH_MAX], int *ret_exit_code,
	struct base_err *err) BASE_MUST_CHECK;
/* The program that runs a script, by its first n bytes, with room for one more: "#! /bin/sh -e" ->
 * "/bin/sh". False: it is none. */
bool os_interpreter_of(char *head, ssize_t n, char ret_path[PATH_MAX]);
/* Can it be recorded from inside? ERR_ENV: it is static, setuid, of another machine or C library. `rewritten`:
 * it records itself, so it may be static. */
enum base_status os_check_program(
	const char *path, bool rewritten, struct base_err *err) BASE_MUST_CHECK;
/* Both, for memory streams: what was built for them may be static. *level: wanted; then what it was
 * built for, or 0: it may run programs that were (a script, env, make). */
enum base_status os_find_rewritten(const char *name, unsigned *level, char ret_path[PATH_MAX],
	int *ret_exit_code, struct base_err *err) BASE_MUST_CHECK;

/* A child that waits, stopped just before its exec. */
struct os_child {
	pid_t pid;
	int go_fd;   /* read: it is ready; write a byte: go; close: end */
	int fail_fd; /* read: errno of a refused exec; end of file: it runs */
};
/* What its environment says beside ours. */
struct os_child_environment {
	const char
		*preload; /* LD_PRELOAD, before what was there; NULL: ours, as it is, but for ... */
	const char *ring, *memory;       /* paths; memory "": none */
	const char *valgrind_lib;        /* ... this; NULL: it is not for Valgrind */
	int (*prepare)(const void *ctx); /* what it does while it waits: 0 or an errno; or NULL */
	const void *prepare_ctx;
};
/* environ and that; texts[] are parts of it. Freed by the caller, and they by base_str_fini();
 * NULL: no memory. */
enum { OS_ENVIRONMENT_TEXTS = 4 };
char **os_make_environment(
	const struct os_child_environment *e, struct base_str texts[OS_ENVIRONMENT_TEXTS]);
/* What we change of our own signals, as it was: the program gets it so. */
struct os_signals {
	sigset_t blocked;
	struct sigaction file_too_large, bus;
};
enum base_status os_child_start(struct os_child *child, const char *path, char *const *argv,
	const struct os_child_environment *environment, const struct os_signals *before,
	struct base_err *err) BASE_MUST_CHECK;
/* Waits until it waits. Returns 0 or the errno of prepare(). */
int os_child_ready(const struct os_child *child);
/* Let it go; 0 or the errno of exec. Closes both descriptors. */
int os_child_go(struct os_child *child);
/* Never let it go: it is reaped. */
void os_child_cancel(struct os_child *child);

#endif
