/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - can, and may, something be brought into a process? Asked of /proc only. */
#include "inject/private.h"
#include "os/proc.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_BYTES = 8192, LINK_BYTES = 256, PHDRS_MAX = 64 };
enum { FLAG_OF_KERNEL_THREAD = 0x00200000 };

static enum base_status check_exists(pid_t pid, const char *status, struct base_err *err)
{
	uint64_t process = 0;
	if (!*status || !os_parse_field(status, "Tgid", 10, &process))
		return base_fail(err, BASE_ERR_USAGE, "there is no process %d", (int)pid);
	if ((pid_t)process != pid)
		return base_fail(err, BASE_ERR_USAGE,
			"%d is a thread of process %llu: give that number", (int)pid,
			(unsigned long long)process);
	if (pid == getpid())
		return base_fail(err, BASE_ERR_USAGE, "process %d is longpole itself", (int)pid);
	return BASE_OK;
}

static enum base_status check_state(pid_t pid, const char *status, struct base_err *err)
{
	struct os_task_stat stat = {0};
	char text[1024], name[32];
	uint64_t tracer = 0;
	if (os_proc_read(pid, "stat", text, sizeof text) <= 0 || !os_parse_stat(text, &stat))
		return base_fail(err, BASE_ERR_USAGE, "there is no process %d", (int)pid);
	if (stat.flags & FLAG_OF_KERNEL_THREAD)
		return base_fail(err, BASE_ERR_ENV, "%d is a thread of the kernel's", (int)pid);
	if (stat.state == 'Z' || stat.state == 'X')
		return base_fail(err, BASE_ERR_ENV, "process %d has ended", (int)pid);
	if (os_parse_field(status, "TracerPid", 10, &tracer) && tracer) {
		(void)os_proc_read((pid_t)tracer, "comm", name, sizeof name);
		name[strcspn(name, "\n")] = '\0';
		return base_fail(err, BASE_ERR_ENV,
			"process %d is traced by process %llu (%s): only one can do that", (int)pid,
			(unsigned long long)tracer, name);
	}
	if (stat.state == 'T' || stat.state == 't')
		return base_fail(err, BASE_ERR_ENV,
			"process %d is stopped: let it go on first (kill -CONT %d)", (int)pid,
			(int)pid);
	return BASE_OK;
}

static bool check_is_same_namespace(pid_t pid, const char *which)
{
	char path[64], ours[LINK_BYTES], its[LINK_BYTES];
	snprintf(path, sizeof path, "/proc/self/ns/%s", which);
	ssize_t n = readlink(path, ours, sizeof ours);
	snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, which);
	ssize_t m = readlink(path, its, sizeof its);
	return n > 0 && n == m && !memcmp(ours, its, (size_t)n);
}

/* All of its user's numbers are to be ours: who has changed them may do what we may not. */
static enum base_status check_owner(pid_t pid, const char *status, struct base_err *err)
{
	const char *line = strstr(status, "\nUid:");
	uint64_t id;
	if (!line)
		return base_fail(
			err, BASE_ERR_ENV, "process %d does not say whose it is", (int)pid);
	line += sizeof "\nUid:" - 1;
	for (unsigned i = 0; i < 4; i++)
		if (!os_take_number(&line, 10, &id) || id != geteuid())
			return base_fail(err, BASE_ERR_ENV,
				"process %d belongs to another user (%llu, and this is %u): "
				"only that user can attach to it",
				(int)pid, (unsigned long long)id, (unsigned)geteuid());
	if (!check_is_same_namespace(pid, "pid"))
		return base_fail(err, BASE_ERR_ENV,
			"process %d is in another pid namespace, or hides itself: run longpole in "
			"there, too",
			(int)pid);
	if (!check_is_same_namespace(pid, "user"))
		return base_fail(err, BASE_ERR_ENV,
			"process %d is in another user namespace: run longpole in there, too",
			(int)pid);
	return BASE_OK;
}

static enum base_status check_filter(pid_t pid, const char *status, struct base_err *err)
{
	uint64_t mode = 0;
	if (os_parse_field(status, "Seccomp", 10, &mode) && mode)
		return base_fail(err, BASE_ERR_ENV,
			"process %d is under a filter of system calls (seccomp): a call that it "
			"does not make itself might end it",
			(int)pid);
	return BASE_OK;
}

bool inject_read_program(int fd, Elf64_Ehdr *head, char loader[INJECT_LOADER_BYTES])
{
	Elf64_Phdr segment[PHDRS_MAX];
	loader[0] = '\0';
	if (pread(fd, head, sizeof *head, 0) != (ssize_t)sizeof *head ||
		memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	if (head->e_ident[EI_CLASS] != ELFCLASS64)
		return true;
	size_t bytes = head->e_phnum * sizeof *segment;
	if (head->e_phnum > PHDRS_MAX ||
		pread(fd, segment, bytes, (off_t)head->e_phoff) != (ssize_t)bytes)
		return false;
	for (unsigned i = 0; i < head->e_phnum; i++) {
		if (segment[i].p_type != PT_INTERP)
			continue;
		size_t length = segment[i].p_filesz < INJECT_LOADER_BYTES - 1
					? segment[i].p_filesz
					: INJECT_LOADER_BYTES - 1;
		ssize_t n = pread(fd, loader, length, (off_t)segment[i].p_offset);
		loader[n > 0 ? n : 0] = '\0';
	}
	return true;
}

static enum base_status check_program(pid_t pid, struct base_err *err)
{
	char path[64], loader[INJECT_LOADER_BYTES];
	Elf64_Ehdr head = {0};
	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return base_fail_errno(
			err, errno, "cannot read the program of process %d", (int)pid);
	bool good = inject_read_program(fd, &head, loader);
	close(fd);
	if (!good)
		return base_fail(
			err, BASE_ERR_ENV, "process %d runs no program that is known", (int)pid);
	if (head.e_ident[EI_CLASS] != ELFCLASS64)
		return base_fail(err, BASE_ERR_ENV, "process %d runs a 32-bit program", (int)pid);
	if (head.e_machine != EM_X86_64)
		return base_fail(err, BASE_ERR_ENV,
			"process %d runs a program for another processor", (int)pid);
	if (!*loader)
		return base_fail(err, BASE_ERR_ENV,
			"process %d runs a static program: no library can be loaded into it",
			(int)pid);
	if (strstr(loader, "ld-musl"))
		return base_fail(err, BASE_ERR_ENV,
			"process %d runs a program for musl, and the library is for glibc",
			(int)pid);
	return BASE_OK;
}

static enum base_status check_maps(pid_t pid, struct base_err *err)
{
	char *maps = inject_maps(pid);
	if (!maps || !*maps) {
		int why = errno;
		base_free(maps);
		return base_fail_errno(
			err, why ? why : EACCES, "may not look into process %d", (int)pid);
	}
	bool recorded = inject_has_path(maps, "/longpole-session-");
	bool has_libc = inject_has_path(maps, "/libc.so.6");
	const char *sanitizer = inject_has_path(maps, "/libasan.so")   ? "AddressSanitizer"
				: inject_has_path(maps, "/libtsan.so") ? "ThreadSanitizer"
								       : NULL;
	base_free(maps);
	if (recorded)
		return base_fail(err, BASE_ERR_ENV, "process %d is recorded already", (int)pid);
	if (!has_libc)
		return base_fail(
			err, BASE_ERR_ENV, "process %d has no glibc (libc.so.6) in it", (int)pid);
	if (sanitizer)
		return base_fail(err, BASE_ERR_ENV,
			"process %d was built with %s, which stands before libc: start it with "
			"longpole record",
			(int)pid, sanitizer);
	return BASE_OK;
}

enum base_status inject_check(pid_t pid, struct base_err *err)
{
	char text[STATUS_BYTES];
	(void)os_proc_read(pid, "status", text, sizeof text);
	enum base_status status = check_exists(pid, text, err);
	if (status == BASE_OK)
		status = check_state(pid, text, err);
	if (status == BASE_OK)
		status = check_owner(pid, text, err);
	if (status == BASE_OK)
		status = check_filter(pid, text, err);
	if (status == BASE_OK)
		status = check_program(pid, err);
	return status == BASE_OK ? check_maps(pid, err) : status;
}
