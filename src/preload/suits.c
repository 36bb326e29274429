/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suits.c - can a program that is about to be executed be loaded with our library? One of another C
 * library (musl) would die of it, a 32-bit one say on standard error that it cannot, and so would
 * all where our file is out of reach (in a chroot, as another user). Of a script its interpreter
 * counts.
 *
 * In a vfork's child: nothing but system calls and the stack.
 */
#include "preload/preload.h"
#include "preload/env.h"
#include "preload/processor.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>

enum { SUITS_HEAD_BYTES = 256, SUITS_HEADERS_MAX = 32, SUITS_SCRIPTS_MAX = 4 };

/* (libc's functions for it are counted.) */
static size_t suits_length_of(const char *text)
{
	size_t n = 0;
	while (text[n])
		n++;
	return n;
}

static bool suits_begins_with(const char *text, const char *word)
{
	while (*word && *text == *word)
		text++, word++;
	return !*word;
}

static long suits_read_at(int fd, void *buf, size_t size, uint64_t offset)
{
	return preload_syscall(SYS_pread64, fd, (long)buf, (long)size, (long)offset, 0, 0);
}

/* Is its loader glibc's? A static program has none, and loads nothing. */
static bool suits_loader(int fd, const Elf64_Phdr *segment)
{
	char path[PATH_MAX];
	size_t bytes = segment->p_filesz < sizeof path ? segment->p_filesz : sizeof path - 1;
	long n = suits_read_at(fd, path, bytes, segment->p_offset);
	const char *name = path;
	if (n <= 0)
		return true;
	path[n] = 0;
	for (const char *at = path; *at; at++)
		if (*at == '/')
			name = at + 1;
	return suits_begins_with(name, "ld-linux");
}

static bool suits_elf(int fd, const Elf64_Ehdr *head)
{
	Elf64_Phdr segment[SUITS_HEADERS_MAX];
	const size_t nr = head->e_phnum < SUITS_HEADERS_MAX ? head->e_phnum : SUITS_HEADERS_MAX;
	if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != PRELOAD_MACHINE)
		return false;
	if (head->e_phentsize != sizeof *segment ||
		suits_read_at(fd, segment, nr * sizeof *segment, head->e_phoff) !=
			(long)(nr * sizeof *segment))
		return true;
	for (size_t i = 0; i < nr; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): read */
		if (segment[i].p_type == PT_INTERP && !suits_loader(fd, &segment[i]))
			return false;
	return !preload_exec_is_sanitized(fd, segment, nr);
}

/* What counts calls has another. */
__attribute__((weak)) bool preload_exec_is_sanitized(
	int fd, const Elf64_Phdr *segment, size_t nr_segments)
{
	(void)fd, (void)segment, (void)nr_segments;
	return false;
}

/* "#! /bin/sh -e" -> "/bin/sh", in its place. NULL: it is no script. */
static char *suits_interpreter_in(char *text)
{
	if (text[0] != '#' || text[1] != '!')
		return NULL;
	char *word = text + 2, *end;
	while (*word == ' ' || *word == '\t')
		word++;
	for (end = word; *end && *end != ' ' && *end != '\t' && *end != '\n';)
		end++;
	*end = 0;
	return word;
}

/* path NULL: the directory's descriptor is the file. What cannot be read, or is of no known kind,
 * exec may know. */
static bool suits_file(int directory, const char *path)
{
	union {
		Elf64_Ehdr elf;
		char text[SUITS_HEAD_BYTES + 1];
	} head;
	for (int scripts = 0; scripts < SUITS_SCRIPTS_MAX; scripts++) {
		const int fd = path ? (int)preload_syscall(SYS_openat, directory, (long)path,
					      O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0)
				    : directory;
		const long n = fd >= 0 ? suits_read_at(fd, &head, SUITS_HEAD_BYTES, 0) : 0;
		bool suits = true;
		char *interpreter = NULL;
		head.text[n > 0 ? n : 0] = 0;
		if (n >= (long)sizeof head.elf && suits_begins_with(head.text, ELFMAG))
			suits = suits_elf(fd, &head.elf);
		else if (n > 2)
			interpreter = suits_interpreter_in(head.text);
		if (path && fd >= 0)
			(void)preload_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
		if (!suits || !interpreter)
			return suits;
		path = interpreter;
		directory = AT_FDCWD;
	}
	return true;
}

/* As execvp() searches. False: nowhere. */
static bool suits_find_in_path(const char *file, char path[PATH_MAX])
{
	const char *list = getenv("PATH");
	const size_t length = suits_length_of(file);
	for (const char *from = list ? list : "/bin:/usr/bin"; *file; from++) {
		size_t n = 0;
		while (from[n] && from[n] != ':')
			n++;
		if (n + length + 2 < PATH_MAX) {
			for (size_t i = 0; i < n; i++)
				path[i] = from[i];
			path[n] = '/';
			for (size_t i = 0; i <= length; i++)
				path[(n ? n + 1 : 0) + i] = file[i];
			if (preload_syscall(SYS_faccessat, AT_FDCWD, (long)path, 1 /* X_OK */, 0, 0,
				    0) == 0)
				return true;
		}
		from += n;
		if (!*from)
			break;
	}
	return false;
}

bool preload_exec_suits(int directory, const char *file, bool is_searched)
{
	char path[PATH_MAX];
	bool has_slash = false;
	if (preload_sandbox.no_calls)
		return true;
	if (preload_syscall(
		    SYS_faccessat, AT_FDCWD, (long)preload_env_library(), 4 /* R_OK */, 0, 0, 0))
		return false;
	for (const char *at = file; at && *at; at++)
		has_slash |= *at == '/';
	if (is_searched && !has_slash) {
		if (!file || !suits_find_in_path(file, path))
			return true;
		file = path;
	}
	if (suits_file(directory, file && *file ? file : NULL))
		return true;
	if (preload_fresh.head)
		__atomic_fetch_add(&preload_fresh.head->unsuited, 1, __ATOMIC_RELAXED);
	return false;
}
