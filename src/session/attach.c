/* SPDX-License-Identifier: Apache-2.0 */
/* attach.c - the recorder's half of preload/late.c. */
#include "session/attach.h"
#include "inject/inject.h"
#include "os/launch.h"
#include "os/links.h"
#include "os/proc.h"
#include "ring/attach.h"
#include "session/private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ATTACH_NAP_NS = 1000000, ATTACH_IN_NAPS = 10000, ATTACH_OUT_NAPS = 3000 };

static void attach_nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = ATTACH_NAP_NS}, NULL);
}

enum base_status session_attach_prepare(struct session_attach *a, pid_t pid, struct base_err *err)
{
	*a = (struct session_attach){.pid = pid, .process_fd = -1, .library_fd = -1};
	enum base_status status = inject_check(pid, err);
	if (status != BASE_OK)
		return status;
	a->process_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (a->process_fd < 0)
		return base_fail_errno(err, errno, "process %d", (int)pid);
	return BASE_OK;
}

/* Are its files ours, by the same names? */
static bool attach_sees_our_files(pid_t pid)
{
	char path[64];
	struct stat ours, its;
	snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
	if (stat("/", &ours) || stat(path, &its) || ours.st_ino != its.st_ino ||
		ours.st_dev != its.st_dev)
		return false;
	snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
	return !stat("/proc/self/ns/mnt", &ours) && !stat(path, &its) &&
	       ours.st_ino == its.st_ino && ours.st_dev == its.st_dev;
}

/* By its path, or another way that LD_PRELOAD can say; in a container by a descriptor of ours. */
static enum base_status attach_library(struct session *s, char ret_name[PATH_MAX])
{
	struct session_attach *a = &s->attach;
	char path[PATH_MAX];
	enum base_status status = os_find_preload(OS_LIBRARY_PRELOAD, path, s->err);
	if (status == BASE_OK)
		status = os_check_preload(path, s->err);
	if (status == BASE_OK && attach_sees_our_files(a->pid)) {
		status = os_links_way(&s->links, path, ret_name, s->err);
		if (status != BASE_OK || strlen(ret_name) < RING_ATTACH_PATH_BYTES)
			return status;
	}
	if (status != BASE_OK)
		return status;
	a->library_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (a->library_fd < 0)
		return base_fail_errno(s->err, errno, "%s", path);
	snprintf(ret_name, PATH_MAX, "/proc/%d/fd/%d", (int)getpid(), a->library_fd);
	return BASE_OK;
}

/* The library leads libc's callers to itself. What stands before other libraries does so from a program's start alone. */
static const char *attach_unseen(pid_t pid)
{
	static const struct {
		const char *file, *what;
	} known[] = {
		{"/libmpi.so", "MPI"},
		{"/libmpich.so", "MPI"},
		{"/libgomp.so", "OpenMP"},
		{"/libomp.so", "OpenMP"},
		{"/libomp5.so", "OpenMP"},
		{"/libiomp5.so", "OpenMP"},
	};
	for (size_t i = 0; i < BASE_COUNT(known); i++)
		if (inject_has_file(pid, known[i].file))
			return known[i].what;
	return NULL;
}

static enum base_status attach_refused(
	const struct session_attach *a, int why, struct base_err *err)
{
	static const char *const text[] = {
		[RING_ATTACH_version] = "another version of longpole's library is in it",
		[RING_ATTACH_busy] = "it is recorded already, or began under longpole",
		[RING_ATTACH_ring] = "it cannot map the recorder's buffer, or began under longpole",
		[RING_ATTACH_forbidden] = "it has forbidden itself to read the clock",
	};
	bool known = why > 0 && (size_t)why < BASE_COUNT(text);
	return base_fail(err, BASE_ERR_ENV, "process %d: %s", (int)a->pid,
		known ? text[why] : "longpole's library refused");
}

static uint32_t attach_state(const struct session *s)
{
	return __atomic_load_n(&s->ring.head->attach_state, __ATOMIC_ACQUIRE);
}

enum base_status session_attach_go(struct session *s)
{
	struct session_attach *a = &s->attach;
	char library[PATH_MAX];
	struct ring_attach given = {.version = RING_VERSION};
	struct inject_result result;
	enum base_status status = attach_library(s, library);
	if (status != BASE_OK)
		return status;
	if (a->library_fd < 0 && strlen(s->ring.path) < sizeof given.named) {
		memcpy(given.named, s->ring.path, strlen(s->ring.path) + 1);
		memcpy(given.library, library, strlen(library) + 1);
	}
	snprintf(given.ring, sizeof given.ring, "/proc/%d/fd/%d", (int)getpid(), s->ring.fd);
	const struct inject_what what = {.library = library,
		.entry = RING_ATTACH_ENTRY,
		.argument = &given,
		.argument_bytes = sizeof given,
		.scaffold = &given.scaffold,
		.scaffold_bytes = &given.scaffold_bytes};
	status = inject_library(a->pid, &what, &result, s->err);
	s->opts->attach->stopped_ns = result.stopped_ns;
	s->opts->attach->unseen = attach_unseen(a->pid);
	if (status == BASE_OK && result.refused)
		status = attach_refused(a, result.refused, s->err);
	if (status != BASE_OK)
		return status;
	for (unsigned i = 0; i < ATTACH_IN_NAPS && attach_state(s) == RING_ATTACH_none &&
			     !session_attach_has_ended(a);
		i++)
		attach_nap();
	a->in = attach_state(s) == RING_ATTACH_in;
	session_attach_time(s);
	s->converter.recorder_tid = s->ring.head->attach_thread;
	if (a->in || attach_state(s) == RING_ATTACH_out || session_attach_has_ended(a))
		return BASE_OK;
	session_attach_leave(s);
	return base_fail(s->err, BASE_ERR_ENV,
		"process %d does not answer: it goes on, and is not recorded", (int)a->pid);
}

bool session_attach_has_ended(const struct session_attach *a)
{
	struct pollfd fd = {.fd = a->process_fd, .events = POLLIN};
	return poll(&fd, 1, 0) > 0;
}

void session_attach_time(struct session *s)
{
	struct session_attach *a = &s->attach;
	struct timespec t;
	clockid_t clock;
	if (clock_getcpuclockid(a->pid, &clock) || clock_gettime(clock, &t))
		return;
	uint64_t now_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	if (!a->is_timed)
		a->begin_cpu_ns = now_ns;
	a->is_timed = true;
	s->result->target_cpu_ns = now_ns - a->begin_cpu_ns;
}

/* The library's own thread is gone: the process has executed another program, or ended. */
static bool attach_is_gone(const struct session *s)
{
	char text[64];
	pid_t tid = (pid_t)__atomic_load_n(&s->ring.head->attach_thread, __ATOMIC_ACQUIRE);
	return session_attach_has_ended(&s->attach) ||
	       (tid && os_proc_read_task(s->attach.pid, tid, "comm", text, sizeof text) <= 0);
}

void session_attach_leave(struct session *s)
{
	struct session_attach *a = &s->attach;
	if (!s->ring.head)
		return;
	__atomic_store_n(&s->ring.head->attach_end, 1, __ATOMIC_RELEASE);
	(void)syscall(SYS_futex, &s->ring.head->attach_end, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
	for (unsigned i = 0;
		i < ATTACH_OUT_NAPS && attach_state(s) == RING_ATTACH_in && !attach_is_gone(s); i++)
		attach_nap();
	a->in = false;
}

void session_attach_close(struct session_attach *a)
{
	if (!a->pid)
		return;
	if (a->process_fd >= 0)
		close(a->process_fd);
	if (a->library_fd >= 0)
		close(a->library_fd);
}
