/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.c - what a process forbids itself: a filter of system calls (seccomp), reading
 * the time stamp counter (PR_SET_TSC).
 *
 * Either ends a program that does what is forbidden, and the program does not know what we do. So
 * from just before a filter is installed, with the whole ring mapped, we make no system call any
 * more: what a thread is called is read from libc's own memory, descriptors are not looked at.
 * Children and the next program of an exec are not recorded. Without the counter nothing is. A
 * program that begins under a filter which the recorder is not under is not recorded either, nor
 * what it starts.
 */
#include "preload/preload.h"
#include "preload/env.h"
#include "preload/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct preload_sandbox preload_sandbox PRELOAD_EARLY;

static uint32_t sandbox_tid(uint32_t offset)
{
	uint32_t tid;
	memcpy(&tid, (const char *)pthread_self() + offset, sizeof tid);
	return tid;
}

/* Where libc keeps a thread's id: it says so to debuggers (struct: bits, number, offset). Believed
 * when it holds for this thread. */
static uint32_t sandbox_find_tid(void)
{
#ifdef PRELOAD_STATIC
	return 0;
#else
	const uint32_t *description = dlsym(RTLD_DEFAULT, "_thread_db_pthread_tid");
	if (!description || description[0] != 32 || description[2] > PRELOAD_PAGE)
		return 0;
	uint32_t tid = (uint32_t)preload_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	return sandbox_tid(description[2]) == tid ? description[2] : 0;
#endif
}

void preload_sandbox_ids(uint32_t *ret_pid, uint32_t *ret_tid)
{
	if (preload_sandbox.no_calls) {
		*ret_pid = preload_sandbox.pid;
		*ret_tid = sandbox_tid(preload_sandbox.tid_offset);
		return;
	}
	*ret_pid = (uint32_t)preload_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	*ret_tid = (uint32_t)preload_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

enum sandbox_filter { SANDBOX_NONE, SANDBOX_SOME, SANDBOX_STRICT };

static enum sandbox_filter sandbox_filter_of(int option, unsigned long how)
{
	if (option != PR_SET_SECCOMP)
		return SANDBOX_NONE;
	return how == SECCOMP_MODE_STRICT   ? SANDBOX_STRICT
	       : how == SECCOMP_MODE_FILTER ? SANDBOX_SOME
					    : SANDBOX_NONE;
}

/* A filter is about to be installed. Returns whether that is news. (With the strict one the kernel
 * forbids the clock, too.) */
static bool sandbox_begin(enum sandbox_filter filter)
{
	if (filter == SANDBOX_NONE || preload_sandbox.no_calls)
		return false;
	if (filter == SANDBOX_STRICT)
		preload_stop();
	preload_thread_begin();
	preload_window_open_all();
	preload_sandbox.pid = (uint32_t)preload_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	preload_sandbox.tid_offset = sandbox_find_tid();
	__atomic_store_n(&preload_sandbox.no_calls, true, __ATOMIC_RELEASE);
	return true;
}

/* It was, or was not. */
static void sandbox_end(bool is_new, bool installed)
{
	if (!is_new)
		return;
	if (!installed) {
		preload_sandbox.no_calls = false;
		return;
	}
	preload_env_forget();
	if (!preload_sandbox.tid_offset) /* new threads would have no name */
		preload_stop();
}

/* What loaded us has opened, read and closed files: so that is allowed. */
static size_t sandbox_read(const char *path, void *to, size_t nr_bytes)
{
	long fd = preload_syscall_of_program(SYS_openat, AT_FDCWD, (long)path,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0, 0, 0);
	if (fd < 0)
		return 0;
	long n = preload_syscall_of_program(SYS_read, fd, (long)to, (long)nr_bytes, 0, 0, 0);
	preload_syscall_of_program(SYS_close, fd, 0, 0, 0, 0, 0);
	return n > 0 ? (size_t)n : 0;
}

/* (The ring's word is not to be trusted yet; a wrong one has us go on to the check.) */
bool preload_sandbox_inherited(const char *ring_path)
{
	char text[PRELOAD_PAGE];
	struct ring_head head;
	text[sandbox_read("/proc/self/status", text, sizeof text - 1)] = '\0';
	uint32_t filters = ring_filters_in(text);
	preload_sandbox.no_calls =
		filters && (sandbox_read(ring_path, &head, sizeof head) != sizeof head ||
				   filters > head.filters);
	return preload_sandbox.no_calls;
}

/* (the kernel takes the counter from a strict thread, too) */
static bool sandbox_clock(int option, unsigned long how)
{
	bool is_strict = option == PR_SET_SECCOMP && how == SECCOMP_MODE_STRICT;
	if (!is_strict && (option != PR_SET_TSC || how != PR_TSC_SIGSEGV))
		return false;
	preload_sandbox.no_clock = true;
	preload_stop();
	return true;
}

/* (the other four are read as libc reads them: given or not) */
PRELOAD_EXPORT int prctl(int option, ...)
{
	va_list args;
	va_start(args, option);
	unsigned long a = va_arg(args, unsigned long), b = va_arg(args, unsigned long),
		      c = va_arg(args, unsigned long), d = va_arg(args, unsigned long);
	va_end(args);
	bool is_new = sandbox_begin(sandbox_filter_of(option, a));
	if (sandbox_clock(option, a))
		preload_env_forget();
	int result = PRELOAD_REAL(prctl)(option, a, b, c, d);
	int saved_errno = errno;
	sandbox_end(is_new, result == 0);
	errno = saved_errno;
	return result;
}

/* Called in the place of syscall(SYS_seccomp, ...) and syscall(SYS_prctl, ...). */
long preload_limits_itself(long number, long a, long b, long c, long d, long e, long f)
{
	enum sandbox_filter filter = SANDBOX_NONE;
	if (number == SYS_prctl)
		filter = sandbox_filter_of((int)a, (unsigned long)b);
	else if (a == SECCOMP_SET_MODE_STRICT || a == SECCOMP_SET_MODE_FILTER)
		filter = a == SECCOMP_SET_MODE_STRICT ? SANDBOX_STRICT : SANDBOX_SOME;
	bool is_new = sandbox_begin(filter);
	bool takes_clock = number == SYS_prctl
				   ? sandbox_clock((int)a, (unsigned long)b)
				   : filter == SANDBOX_STRICT &&
					     sandbox_clock(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	if (takes_clock)
		preload_env_forget();
	long result = preload_syscall_of_program(number, a, b, c, d, e, f);
	sandbox_end(is_new, result == 0);
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}
