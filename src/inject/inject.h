/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject.h - a library into a process that runs already, and one call of a function of it by a
 * thread that is begun for that. Knows nothing of what it brings.
 *
 * One thread of the process is stopped, for well under a millisecond, where it sleeps in a system
 * call; all others run on. Whatever is done to it undoes itself: it has a signal's frame on its
 * stack, as if a handler had been called, and returns through it also when we are killed meanwhile.
 * Linux, x86-64, glibc 2.34 or later.
 */
#ifndef LONGPOLE_INJECT_INJECT_H
#define LONGPOLE_INJECT_INJECT_H

#include "base/base.h"

#include <stdint.h>
#include <sys/types.h>

enum { INJECT_TEXT_BYTES = 240 };

/*
 * May, and can, a library be brought into it? ERR_ENV says why not: it is another user's, traced,
 * stopped, a thread of the kernel, of another namespace, under a filter of system calls, of another
 * class or machine, static, not glibc's. ERR_USAGE: there is no such process, or it is us. Nothing
 * is done to it.
 */
enum base_status inject_check(pid_t pid, struct base_err *err) BASE_MUST_CHECK;

/* Is a file mapped in it whose path has that part? */
bool inject_has_file(pid_t pid, const char *part);

struct inject_what {
	const char *library; /* as the process finds it */
	const char *entry;   /* int entry(const void *argument): 0 does not return to its caller */
	void *argument;      /* copied into the process */
	size_t argument_bytes;
	/* Parts of the argument: memory that was mapped in the process, which the entry unmaps
	 * before it becomes 0. */
	uint64_t *scaffold, *scaffold_bytes;
};

struct inject_result {
	pid_t through;       /* the thread that was stopped */
	uint64_t stopped_ns; /* ... for how long, in all */
	int refused;         /* what the entry returned; 0: it goes on */
};

/*
 * Returns when the entry has begun its work (its memory is unmapped) or has refused. ERR_ENV: no
 * thread was in a place where that can be done, the process's loader refused the library, or
 * something was not as expected; then the process is as it was, but for what its own loader did.
 */
enum base_status inject_library(pid_t pid, const struct inject_what *what,
	struct inject_result *ret, struct base_err *err) BASE_MUST_CHECK;

/* ---- a program that we start (start.c) --------------------------------------------------------- */

struct inject_started {   /* stands before its first instruction */
	const char *path; /* borrowed */
	pid_t pid;
	int memory; /* /proc/PID/mem */
	uint64_t entry;
};
/* Our child. It ends when we do, as long as it stands. Descriptors that are not closed on exec are its, too. */
enum base_status inject_start(struct inject_started *s, const char *path, char *const *argv,
	struct base_err *err) BASE_MUST_CHECK;
/* A call of the kernel that it makes; *ret is its result, or minus an errno. */
enum base_status inject_start_syscall(struct inject_started *s, long number,
	const uint64_t argument[6], int64_t *ret, struct base_err *err) BASE_MUST_CHECK;
/* A page for code near its own. */
enum base_status inject_start_page(
	struct inject_started *s, uint64_t *ret_at, struct base_err *err) BASE_MUST_CHECK;
struct inject_lead {
	uint64_t function;   /* of the program */
	uint64_t page;       /* where the code is put */
	const uint8_t *code; /* goes on at its end with what it was led away from */
	size_t nr_bytes, entry;
};
/* From now on that function begins with that code. ERR_ENV: its first instructions cannot be moved. */
enum base_status inject_start_lead(struct inject_started *s, const struct inject_lead *lead,
	struct base_err *err) BASE_MUST_CHECK;
/* It begins, and nobody traces it any more. After an error it is gone. */
enum base_status inject_start_go(struct inject_started *s, struct base_err *err) BASE_MUST_CHECK;
void inject_start_give_up(struct inject_started *s); /* it has never been */

#endif
