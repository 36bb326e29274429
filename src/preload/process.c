/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - fork, exec, waiting for children, exit. */
#include "ring/calls.h"
#include "preload/preload.h"
#include "preload/env.h"
#include "preload/processor.h"
#include "preload/real.h"

#include <alloca.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- fork ------------------------------------------------------------------------------------ */

/* The child finds preload_fresh zero, and the token in the copy of our thread's state: it attaches
 * as a new image. */
PRELOAD_INLINE pid_t fork_with(pid_t (*real)(void), uintptr_t site)
{
	if (!preload_active())
		return real();
	struct preload_thread *self = preload_own();
	uint64_t token = preload_token(), own_token = self->token;
	PRELOAD_RECORD(process_fork, token, site);
	self->token = token;
	pid_t pid = real();
	int saved_errno = errno;
	if (pid == 0)
		preload_on();
	else
		self->token = own_token;
	errno = saved_errno;
	return pid;
}

PRELOAD_EXPORT pid_t fork(void)
{
	return fork_with(PRELOAD_REAL(fork), PRELOAD_SITE);
}

PRELOAD_EXPORT pid_t _Fork(void)
{
	return fork_with(PRELOAD_REAL(_Fork), PRELOAD_SITE);
}

/*
 * vfork() returns twice on the same stack, so nothing of ours may lie there: record, then jump to
 * the real one, which returns to the caller. Until the parent is seen again
 * (preload_is_vfork_child), nothing of ours changes, and nothing but the child's exec is recorded.
 */
void *preload_vfork_before(uintptr_t site);
__attribute__((used)) void *preload_vfork_before(uintptr_t site)
{
	if (preload_active()) {
		struct preload_thread *self = preload_own();
		PRELOAD_RECORD(process_vfork, site);
		self->vfork_site = site;
		self->kept_end = self->end;
		PRELOAD_BARRIER();
		self->in_vfork = 1;
		PRELOAD_BARRIER();
		self->end = NULL;
	}
	return (void *)PRELOAD_REAL(vfork);
}
TRAMPOLINE_OF_SITE("vfork", "preload_vfork_before");

/* ---- exec ------------------------------------------------------------------------------------ */

/* Our variables on the caller's stack, for a vfork's child must leave nothing behind; what exec
 * gets when there is nothing to add is what the program said. */
#define WITH_OURS(environment, directory, file, is_searched)                                       \
	({                                                                                         \
		size_t bytes = preload_env_bytes(environment);                                     \
		void *memory = bytes ? alloca(bytes) /* allowed: see above */ : NULL;              \
		!bytes ? (char **)(environment)                                                    \
		: preload_exec_suits(directory, file, is_searched)                                 \
			? preload_env_build(memory, environment)                                   \
			: preload_env_without(memory, environment);                                \
	})

static void exec_begin(uintptr_t site)
{
	if (!preload_active()) {
		preload_vfork_executes();
		return;
	}
	preload_fd_close_on_exec(site);
	PRELOAD_RECORD(process_exec, site);
}

/* Exec has returned. */
static int exec_failed(int result)
{
	preload_vfork_goes_on(); /* leaves errno alone */
	return result;
}

PRELOAD_EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
	exec_begin(PRELOAD_SITE);
	return exec_failed(PRELOAD_REAL(execve)(
		path, arguments, WITH_OURS(environment, AT_FDCWD, path, false)));
}

PRELOAD_EXPORT int execv(const char *path, char *const arguments[])
{
	exec_begin(PRELOAD_SITE);
	return exec_failed(
		PRELOAD_REAL(execve)(path, arguments, WITH_OURS(environ, AT_FDCWD, path, false)));
}

PRELOAD_EXPORT int execvp(const char *file, char *const arguments[])
{
	exec_begin(PRELOAD_SITE);
	return exec_failed(
		PRELOAD_REAL(execvpe)(file, arguments, WITH_OURS(environ, AT_FDCWD, file, true)));
}

PRELOAD_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
	exec_begin(PRELOAD_SITE);
	return exec_failed(PRELOAD_REAL(execvpe)(
		file, arguments, WITH_OURS(environment, AT_FDCWD, file, true)));
}

PRELOAD_EXPORT int fexecve(int fd, char *const arguments[], char *const environment[])
{
	exec_begin(PRELOAD_SITE);
	return exec_failed(
		PRELOAD_REAL(fexecve)(fd, arguments, WITH_OURS(environment, fd, NULL, false)));
}

PRELOAD_EXPORT int execveat(
	int dir, const char *path, char *const arguments[], char *const environment[], int flags)
{
	exec_begin(PRELOAD_SITE);
	return exec_failed(PRELOAD_REAL(execveat)(
		dir, path, arguments, WITH_OURS(environment, dir, path, false), flags));
}

/* execl and its kin: the variable arguments become a vector on the stack. */
static size_t count_arguments(va_list list)
{
	size_t n = 1;
	while (va_arg(list, char *))
		n++;
	return n;
}

#define EXECL(path_or_file, first, real, is_searched, environment_of)                              \
	do {                                                                                       \
		va_list list;                                                                      \
		va_start(list, first);                                                             \
		size_t n = count_arguments(list);                                                  \
		va_end(list);                                                                      \
		char **arguments = alloca((n + 1) * sizeof(char *)); /* allowed: as libc does */   \
		va_start(list, first);                                                             \
		arguments[0] = (char *)(uintptr_t)(first);                                         \
		for (size_t i = 1; i <= n; i++)                                                    \
			arguments[i] = va_arg(list, char *);                                       \
		char *const *environment = environment_of;                                         \
		va_end(list);                                                                      \
		exec_begin(PRELOAD_SITE);                                                          \
		return exec_failed(PRELOAD_REAL(real)(path_or_file, arguments,                     \
			WITH_OURS(environment, AT_FDCWD, path_or_file, is_searched)));             \
	} while (0)

PRELOAD_EXPORT int execl(const char *path, const char *first, ...)
{
	EXECL(path, first, execve, false, environ);
}

PRELOAD_EXPORT int execlp(const char *file, const char *first, ...)
{
	EXECL(file, first, execvpe, true, environ);
}

PRELOAD_EXPORT int execle(const char *path, const char *first, ...)
{
	EXECL(path, first, execve, false, va_arg(list, char *const *));
}

#define SPAWN(name, is_searched)                                                                   \
	PRELOAD_EXPORT int name(pid_t *pid, const char *path,                                      \
		const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,    \
		char *const arguments[], char *const environment[])                                \
	{                                                                                          \
		struct preload_counted counted;                                                    \
		if (preload_active())                                                              \
			PRELOAD_RECORD(process_fork, 0, PRELOAD_SITE);                             \
		preload_count_begin(&counted, CALLS_##name, PRELOAD_SITE);                         \
		int result = PRELOAD_REAL(name)(pid, path, actions, attributes, arguments,         \
			WITH_OURS(environment, AT_FDCWD, path, is_searched));                      \
		preload_count_end(&counted, result);                                               \
		return result;                                                                     \
	}
SPAWN(posix_spawn, false)
SPAWN(posix_spawnp, true)

/* ---- waiting for children -------------------------------------------------------------------- */

struct child_wait {
	struct preload_counted counted;
	bool open;
};

static void child_wait_begin(struct child_wait *wait, unsigned function, uintptr_t site)
{
	wait->open = preload_active();
	if (wait->open)
		preload_record_wait(PRELOAD_child_wait, site, (const uint64_t[]){site, 0}, 2);
	preload_count_begin(&wait->counted, function, site);
}

static void child_wait_end(struct child_wait *wait, pid_t pid)
{
	preload_count_end(&wait->counted, pid < 0 ? errno : 0);
	if (wait->open)
		PRELOAD_RECORD(child_waited, pid > 0 ? (uint64_t)pid : 0);
	wait->open = false;
}

#define CHILD_WAIT(name, parameters, arguments)                                                    \
	PRELOAD_EXPORT pid_t name parameters                                                       \
	{                                                                                          \
		struct child_wait wait;                                                            \
		child_wait_begin(&wait, CALLS_##name, PRELOAD_SITE);                               \
		pid_t pid = PRELOAD_REAL(name) arguments;                                          \
		child_wait_end(&wait, pid);                                                        \
		return pid;                                                                        \
	}
CHILD_WAIT(wait, (int *status), (status))
CHILD_WAIT(waitpid, (pid_t child, int *status, int options), (child, status, options))
CHILD_WAIT(wait3, (int *status, int options, struct rusage *usage), (status, options, usage))
CHILD_WAIT(wait4, (pid_t child, int *status, int options, struct rusage *usage),
	(child, status, options, usage))

PRELOAD_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	struct child_wait wait;
	child_wait_begin(&wait, CALLS_waitid, PRELOAD_SITE);
	siginfo_t own = {0};
	int result = PRELOAD_REAL(waitid)(type, id, info ? info : &own, options);
	child_wait_end(&wait, result == 0 ? (info ? info : &own)->si_pid : -1);
	return result;
}

/* libc keeps the child of system() to itself: that it was waited for is all we can say. */
PRELOAD_EXPORT int system(const char *command)
{
	if (!command)
		return PRELOAD_REAL(system)(command);
	struct child_wait wait;
	if (preload_active())
		PRELOAD_RECORD(process_fork, 0, PRELOAD_SITE);
	child_wait_begin(&wait, CALLS_system, PRELOAD_SITE);
	int result = PRELOAD_REAL(system)(command);
	child_wait_end(&wait, result == -1 ? -1 : 0);
	return result;
}

PRELOAD_EXPORT FILE *popen(const char *command, const char *mode)
{
	if (preload_active())
		PRELOAD_RECORD(process_fork, 0, PRELOAD_SITE);
	struct preload_counted counted;
	preload_count_begin(&counted, CALLS_popen, PRELOAD_SITE);
	FILE *stream = PRELOAD_REAL(popen)(command, mode);
	preload_count_end(&counted, stream ? 0 : errno);
	if (stream)
		preload_fd_forget(fileno(stream));
	return stream;
}

/* glibc keeps the child's number behind the stream: FILE, vtable, pid. */
static pid_t process_child_of(const FILE *stream)
{
	pid_t pid;
	memcpy(&pid, (const char *)stream + sizeof *stream + sizeof(void *), sizeof pid);
	return pid;
}

PRELOAD_EXPORT int pclose(FILE *stream)
{
	struct child_wait wait;
	pid_t pid = process_child_of(stream);
	fflush(stream); /* allowed: our wrapper; the child may wait for the rest */
	preload_fd_close(fileno(stream), PRELOAD_SITE);
	child_wait_begin(&wait, CALLS_pclose, PRELOAD_SITE);
	int result = PRELOAD_REAL(pclose)(stream);
	child_wait_end(&wait, result == -1 ? -1 : pid);
	return result;
}

/* ---- exit ------------------------------------------------------------------------------------ */

PRELOAD_EXPORT __attribute__((noreturn)) void _exit(int status)
{
	preload_record_exit(status);
	preload_thread_end();
	PRELOAD_REAL(_exit)(status);
	__builtin_unreachable();
}

PRELOAD_EXPORT __attribute__((noreturn)) void _Exit(int status)
{
	preload_record_exit(status);
	preload_thread_end();
	PRELOAD_REAL(_exit)(status);
	__builtin_unreachable();
}
