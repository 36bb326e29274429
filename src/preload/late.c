/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late.c - in a process that ran already. The recorder begins a thread in it, which loads us and
 * comes here, and stays as long as the recording lasts: it maps the ring, introduces the threads
 * that there are, leads libc's callers to us, and at the end leads them back. It ends the same way
 * when the recorder is gone, however that happened, so nobody outside is needed to tidy up.
 *
 * It is no thread of the program's: all signals are blocked in it, and it records nothing of itself.
 */
#include "preload/env.h"
#include "preload/object.h"
#include "preload/got.h"
#include "preload/preload.h"
#include "ring/attach.h"
#include "trace/enums.h"

#ifndef PRELOAD_STATIC

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

enum {
	LATE_LOOK_NS = 100000000,
	LATE_TASKS_BYTES = 4096,
	LATE_NAME_BYTES = 16,
	LATE_SYSCALL_WORDS = 8,
	LATE_STACK_WORDS = 128,
	LATE_ALONE = 2, /* links of /proc/self/task that are no thread's */
};

struct late {
	struct ring_head *head;
	struct stat ring;
	const char *path, *named, *library;
	uint32_t pid, tid;
};

static uint32_t late_count; /* recordings that are in this process: 0 or 1 */

/* ---- the threads that there are -------------------------------------------------------------- */

static uint32_t late_number(const char *text)
{
	uint32_t n = 0;
	while (*text >= '0' && *text <= '9')
		n = n * 10 + (uint32_t)(*text++ - '0');
	return n;
}

/* "/proc/self/task/TID/NAME", ended by zero */
static size_t late_read(const char *tid, const char *name, char *to, size_t size)
{
	char path[64];
	char *end = stpncpy(path, "/proc/self/task/", sizeof path - 1);
	end = stpncpy(end, tid, LATE_NAME_BYTES);
	end = stpncpy(end, name, LATE_NAME_BYTES);
	*end = '\0';
	long fd = preload_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	long n = fd < 0 ? 0 : preload_syscall(SYS_read, fd, (long)to, (long)size - 1, 0, 0, 0);
	if (fd >= 0)
		preload_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
	to[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

static uint64_t late_hex(const char **text)
{
	uint64_t n = 0;
	while (**text == ' ')
		++*text;
	*text += **text == '0' && (*text)[1] == 'x' ? 2 : 0;
	for (; (**text >= '0' && **text <= '9') || (**text >= 'a' && **text <= 'f'); ++*text)
		n = n << 4 | (uint64_t)(**text <= '9' ? **text - '0' : **text - 'a' + 10);
	return n;
}

/* Has a wrapper of ours, since an earlier recording, called what the thread with that stack sleeps in?
 * Then our code's address is on it, not far above. */
static bool late_is_ours(const struct late *l, uint64_t stack)
{
	struct dl_find_object ours;
	uintptr_t word[LATE_STACK_WORDS] = {0};
	struct iovec to = {word, sizeof word}, from = {(void *)(uintptr_t)stack, sizeof word};
	if (preload_find_object((void *)(uintptr_t)late_is_ours, &ours))
		return true;
	long n = preload_syscall(SYS_process_vm_readv, l->pid, (long)&to, 1, (long)&from, 1, 0);
	for (long i = 0; i < n / (long)sizeof *word; i++)
		if (word[i] - (uintptr_t)ours.dlfo_map_start <
			(uintptr_t)ours.dlfo_map_end - (uintptr_t)ours.dlfo_map_start)
			return true;
	return n <= 0; /* it cannot be known */
}

/* The system call that a thread sleeps in: number, six arguments, stack, place. */
static struct preload_before late_look(const struct late *l, const char *task)
{
	struct preload_before before = {.fd = -1};
	char text[256];
	const char *at = text;
	uint64_t word[LATE_SYSCALL_WORDS];
	late_read(task, "/syscall", text, sizeof text);
	if (*text < '0' || *text > '9')
		return before; /* it runs, or sleeps in no call of the program's */
	uint32_t number = late_number(text);
	while (*at && *at != ' ')
		at++;
	for (unsigned i = 0; i < LATE_SYSCALL_WORDS; i++)
		word[i] = late_hex(&at);
	before.site = word[LATE_SYSCALL_WORDS - 1];
	before.is_ours = late_is_ours(l, word[LATE_SYSCALL_WORDS - 2]);
	before.sleeps = number == SYS_nanosleep || number == SYS_clock_nanosleep;
	uint64_t wait = word[1] & (FUTEX_PRIVATE_FLAG - 1); /* without flags */
	if (number == SYS_futex && (wait == FUTEX_WAIT || wait == FUTEX_WAIT_BITSET))
		before.futex = word[0];
	bool reads = number == SYS_read || number == SYS_recvfrom;
	if (reads || number == SYS_accept || number == SYS_accept4) {
		before.fd = (int)word[0];
		before.op = reads ? TRACE_IO_read : TRACE_IO_accept;
		before.nr_bytes = reads ? word[2] : 0;
	}
	return before;
}

static void late_introduce(const struct late *l, const char *task)
{
	char name[LATE_NAME_BYTES + 1];
	struct preload_before before = late_look(l, task);
	size_t bytes = late_read(task, "/comm", name, sizeof name);
	preload_introduce(l->head, late_number(task), name, bytes ? bytes - 1 : 0, &before);
}

struct late_entry { /* of getdents64() */
	uint64_t inode, offset;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

/* The first thread first: a recording knows it by that. */
static void late_introduce_all(const struct late *l)
{
	_Alignas(8) char buffer[LATE_TASKS_BYTES];
	char digits[12];
	size_t at = sizeof digits - 1;
	digits[at] = '\0';
	for (uint32_t n = l->pid; n; n /= 10)
		digits[--at] = (char)('0' + n % 10);
	late_introduce(l, digits + at);
	long fd = preload_syscall(SYS_openat, AT_FDCWD, (long)"/proc/self/task",
		O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, 0, 0);
	long n;
	while (fd >= 0 &&
		(n = preload_syscall(SYS_getdents64, fd, (long)buffer, sizeof buffer, 0, 0, 0)) > 0)
		for (long i = 0; i < n;) {
			const struct late_entry *e = (const void *)(buffer + i);
			uint32_t tid = late_number(e->name);
			if (tid && tid != l->pid && tid != l->tid)
				late_introduce(l, e->name);
			i += e->bytes;
		}
	if (fd >= 0)
		preload_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* ---- while it lasts -------------------------------------------------------------------------- */

/* Its descriptor has gone with it; that number may be another's by now. */
static bool late_recorder_lives(const struct late *l)
{
	struct stat st;
	return !preload_syscall(SYS_newfstatat, AT_FDCWD, (long)l->path, (long)&st, 0, 0, 0) &&
	       st.st_dev == l->ring.st_dev && st.st_ino == l->ring.st_ino;
}

/* Have all others ended, the first one by pthread_exit()? Then the process ends when we do. */
static bool late_is_last(void)
{
	struct stat st;
	char link[8];
	return !preload_syscall(
		       SYS_newfstatat, AT_FDCWD, (long)"/proc/self/task", (long)&st, 0, 0, 0) &&
	       st.st_nlink <= LATE_ALONE + 2 &&
	       preload_syscall(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)link,
		       sizeof link, 0, 0) < 0;
}

static void late_say(struct ring_head *head, uint32_t state)
{
	__atomic_store_n(&head->attach_state, state, __ATOMIC_RELEASE);
	preload_syscall(SYS_futex, (long)&head->attach_state, FUTEX_WAKE, INT32_MAX, 0, 0, 0);
}

static void late_stay(const struct late *l)
{
	const struct timespec look = {.tv_nsec = LATE_LOOK_NS};
	uint32_t *end = &l->head->attach_end;
	while (!__atomic_load_n(end, __ATOMIC_ACQUIRE)) {
		preload_syscall(SYS_futex, (long)end, FUTEX_WAIT, 0, (long)&look, 0, 0);
		if (!late_recorder_lives(l)) {
			/* also for children, who have the ring, too */
			__atomic_store_n(&l->head->recording, RING_off, __ATOMIC_RELEASE);
			return;
		}
		if (late_is_last())
			return;
		if (preload_got_is_old())
			preload_got_lead_in(&l->head->attach_entries);
	}
}

static int late_begin(struct late *l)
{
	uint32_t none = 0;
	int clock = PR_TSC_ENABLE;
	preload_syscall(SYS_prctl, PR_GET_TSC, (long)&clock, 0, 0, 0, 0);
	if (clock != PR_TSC_ENABLE)
		return RING_ATTACH_forbidden;
	if (preload_syscall(SYS_newfstatat, AT_FDCWD, (long)l->path, (long)&l->ring, 0, 0, 0))
		return RING_ATTACH_ring;
	if (!__atomic_compare_exchange_n(
		    &late_count, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return RING_ATTACH_busy;
	preload_self = &preload_ended; /* we are nobody whom it records */
	l->head = preload_join(l->path);
	if (l->head)
		return 0;
	__atomic_store_n(&late_count, 0, __ATOMIC_RELEASE);
	return RING_ATTACH_ring;
}

static void late_record(struct late *l)
{
	preload_syscall(SYS_prctl, PR_SET_NAME, (long)"longpole", 0, 0, 0, 0);
	__atomic_store_n(&l->head->attach_thread, l->tid, __ATOMIC_RELEASE);
	preload_env_join(l->library, l->named);
	late_introduce_all(l);
	preload_joined(l->head);
	preload_got_lead_in(&l->head->attach_entries);
	late_say(l->head, RING_ATTACH_in);
	late_stay(l);
	preload_got_lead_out();
	preload_env_leave();
	late_say(l->head, RING_ATTACH_out);
	preload_leave();
	__atomic_store_n(&late_count, 0, __ATOMIC_RELEASE);
}

/* 0: it was recorded, and what called us is not there any more. Else nothing was changed. */
int preload_late_run(const struct ring_attach *given);
__attribute__((used, visibility("hidden"))) int preload_late_run(const struct ring_attach *given)
{
	struct ring_attach how = *given;
	struct late l = {.path = how.ring, .named = how.named, .library = how.library};
	if (how.version != RING_VERSION)
		return RING_ATTACH_version;
	how.ring[sizeof how.ring - 1] = how.named[sizeof how.named - 1] = '\0';
	how.library[sizeof how.library - 1] = '\0';
	l.pid = (uint32_t)preload_syscall(SYS_getpid, 0, 0, 0, 0, 0, 0);
	l.tid = (uint32_t)preload_syscall(SYS_gettid, 0, 0, 0, 0, 0, 0);
	int refused = late_begin(&l);
	if (refused)
		return refused;
	preload_syscall(SYS_munmap, (long)how.scaffold, (long)how.scaffold_bytes, 0, 0, 0, 0);
	late_record(&l);
	return 0;
}

/*
 * Called by code that is unmapped meanwhile (inject/scaffold.c): it had pushed rbx, below it lies
 * where its own caller, libc's beginning of a thread, goes on. So the return is to there.
 */
__asm__(".globl longpole_preload_attach\n"
	".type longpole_preload_attach, @function\n"
	"longpole_preload_attach:\n"
	"	.cfi_startproc\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call preload_late_run\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	testl %eax, %eax\n"
	"	jnz 1f\n"
	"	addq $8, %rsp\n"
	"	popq %rbx\n"
	"1:	ret\n"
	"	.cfi_endproc\n"
	".size longpole_preload_attach, . - longpole_preload_attach\n");

#endif
