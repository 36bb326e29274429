/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - a program that we start, stopped before its first instruction: calls of the kernel in it, memory, and a function of it that is led
 * through other code. Nothing of it runs yet, so nothing can see a half of that. If we are killed meanwhile it ends.
 */
#include "inject/inject.h"
#include "os/proc.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_JUMP_BYTES = 5, START_MOVED_MAX = 32, START_FAR = 0x10000, START_PAGE = 4096 };

static enum base_status start_lost(const struct inject_started *s, struct base_err *err)
{
	return base_fail_errno(
		err, errno, "program %s cannot be changed before it begins", s->path);
}

/* In the child. */
static void start_become(const char *path, char *const *argv, int tell)
{
	if (!ptrace(PTRACE_TRACEME, 0, 0, 0))
		execv(path, argv);
	int why = errno;
	(void)!write(tell, &why, sizeof why);
	_exit(127); /* allowed: the child that becomes the program */
}

enum base_status inject_start(
	struct inject_started *s, const char *path, char *const *argv, struct base_err *err)
{
	int tell[2], why = 0, status;
	*s = (struct inject_started){.path = path, .memory = -1};
	if (pipe2(tell, O_CLOEXEC))
		return base_fail_errno(err, errno, "a pipe");
	s->pid = fork();
	if (!s->pid)
		start_become(path, argv, tell[1]);
	close(tell[1]);
	if (s->pid < 0)
		why = errno;
	else if (read(tell[0], &why, sizeof why) != sizeof why)
		why = 0;
	close(tell[0]);
	if (why || waitpid(s->pid, &status, __WALL) != s->pid || !WIFSTOPPED(status)) {
		if (why && s->pid > 0)
			(void)waitpid(s->pid, &status, __WALL);
		return base_fail_errno(err, why ? why : ECHILD, "cannot start %s", path);
	}
	char name[64];
	struct user_regs_struct r;
	snprintf(name, sizeof name, "/proc/%d/mem", (int)s->pid);
	s->memory = open(name, O_RDWR | O_CLOEXEC);
	if (s->memory < 0 || ptrace(PTRACE_SETOPTIONS, s->pid, 0, PTRACE_O_EXITKILL) ||
		ptrace(PTRACE_GETREGS, s->pid, 0, &r)) {
		enum base_status failed = start_lost(s, err);
		inject_start_give_up(s);
		return failed;
	}
	s->entry = r.rip;
	return BASE_OK;
}

void inject_start_give_up(struct inject_started *s)
{
	int status;
	if (s->pid > 0) {
		kill(s->pid, SIGKILL);
		(void)waitpid(s->pid, &status, __WALL);
	}
	if (s->memory >= 0)
		close(s->memory);
	s->pid = 0;
	s->memory = -1;
}

enum base_status inject_start_go(struct inject_started *s, struct base_err *err)
{
	close(s->memory);
	s->memory = -1;
	if (!ptrace(PTRACE_DETACH, s->pid, 0, 0))
		return BASE_OK;
	enum base_status failed = start_lost(s, err);
	inject_start_give_up(s);
	return failed;
}

/* Where its first instruction is, which is written back. */
enum base_status inject_start_syscall(struct inject_started *s, long number,
	const uint64_t argument[6], int64_t *ret, struct base_err *err)
{
	static const uint8_t call[] = {0x0f, 0x05};
	uint8_t kept[sizeof call];
	struct user_regs_struct before, r;
	int status;
	if (ptrace(PTRACE_GETREGS, s->pid, 0, &before) ||
		pread(s->memory, kept, sizeof kept, (off_t)s->entry) != sizeof kept ||
		pwrite(s->memory, call, sizeof call, (off_t)s->entry) != sizeof call)
		return start_lost(s, err);
	r = before;
	r.rip = s->entry;
	r.rax = (uint64_t)number;
	r.rdi = argument[0];
	r.rsi = argument[1];
	r.rdx = argument[2];
	r.r10 = argument[3];
	r.r8 = argument[4];
	r.r9 = argument[5];
	r.orig_rax = UINT64_MAX;
	bool good = !ptrace(PTRACE_SETREGS, s->pid, 0, &r) &&
		    !ptrace(PTRACE_SINGLESTEP, s->pid, 0, 0) &&
		    waitpid(s->pid, &status, __WALL) == s->pid && WIFSTOPPED(status) &&
		    !ptrace(PTRACE_GETREGS, s->pid, 0, &r) && r.rip == s->entry + sizeof call &&
		    pwrite(s->memory, kept, sizeof kept, (off_t)s->entry) == sizeof kept &&
		    !ptrace(PTRACE_SETREGS, s->pid, 0, &before);
	*ret = (int64_t)r.rax;
	return good ? BASE_OK : start_lost(s, err);
}

/* A page that a jump from the program's code reaches: below the program, where nothing is. */
enum base_status inject_start_page(struct inject_started *s, uint64_t *ret_at, struct base_err *err)
{
	char maps[START_PAGE] = "";
	const char *text = maps;
	struct os_region first;
	int64_t at = 0;
	if (os_proc_read(s->pid, "maps", maps, sizeof maps) <= 0 ||
		!os_parse_region(&text, &first) || first.start < (uint64_t)2 * START_FAR)
		return base_fail(err, BASE_ERR_ENV,
			"program %s has no room below it that a jump reaches", s->path);
	const uint64_t map[6] = {first.start - START_FAR, START_PAGE, PROT_READ | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, UINT64_MAX, 0};
	enum base_status status = inject_start_syscall(s, SYS_mmap, map, &at, err);
	if (status == BASE_OK && (uint64_t)at != map[0])
		status = base_fail_errno(err, at < 0 ? (int)-at : EEXIST,
			"no page of code below program %s", s->path);
	*ret_at = map[0];
	return status;
}

/* How many bytes of whole instructions a jump takes the place of, if they do the same elsewhere; 0: they do not. */
static size_t start_movable(const uint8_t *code, size_t nr)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction i;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	size_t at = 0;
	if (!ZYAN_SUCCESS(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return 0;
	while (at < START_JUMP_BYTES) {
		if (!ZYAN_SUCCESS(
			    ZydisDecoderDecodeFull(&decoder, code + at, nr - at, &i, operand)) ||
			(i.attributes & ZYDIS_ATTRIB_IS_RELATIVE) ||
			i.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE ||
			i.meta.category == ZYDIS_CATEGORY_RET ||
			i.meta.category == ZYDIS_CATEGORY_INTERRUPT)
			return 0;
		at += i.length;
	}
	return at;
}

static void start_jump(uint8_t to[START_JUMP_BYTES], uint64_t from, uint64_t at)
{
	uint32_t distance = (uint32_t)(at - (from + START_JUMP_BYTES));
	to[0] = 0xe9;
	memcpy(to + 1, &distance, sizeof distance);
}

static bool start_reaches(uint64_t from, uint64_t at)
{
	int64_t distance = (int64_t)(at - from);
	return distance < INT32_MAX - START_PAGE && distance > INT32_MIN + START_PAGE;
}

enum base_status inject_start_lead(
	struct inject_started *s, const struct inject_lead *lead, struct base_err *err)
{
	uint8_t code[START_PAGE], moved[START_MOVED_MAX], jump[START_MOVED_MAX];
	size_t bytes = pread(s->memory, moved, sizeof moved, (off_t)lead->function) == sizeof moved
			       ? start_movable(moved, sizeof moved)
			       : 0;
	if (!bytes || lead->nr_bytes + bytes + START_JUMP_BYTES > sizeof code ||
		!start_reaches(lead->function, lead->page))
		return base_fail(err, BASE_ERR_ENV,
			"program %s: its function at 0x%llx cannot be led through other code: %s",
			s->path, (unsigned long long)lead->function,
			bytes ? "that is too far away" : "its first instructions cannot be moved");
	memcpy(code, lead->code, lead->nr_bytes);
	memcpy(code + lead->nr_bytes, moved, bytes);
	start_jump(code + lead->nr_bytes + bytes, lead->page + lead->nr_bytes + bytes,
		lead->function + bytes);
	memset(jump, 0x90, sizeof jump);
	start_jump(jump, lead->function, lead->page + lead->entry);
	const size_t whole = lead->nr_bytes + bytes + START_JUMP_BYTES;
	if (pwrite(s->memory, code, whole, (off_t)lead->page) != (ssize_t)whole ||
		pwrite(s->memory, jump, bytes, (off_t)lead->function) != (ssize_t)bytes)
		return start_lost(s, err);
	return BASE_OK;
}
