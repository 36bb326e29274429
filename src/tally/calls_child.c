/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls_child.c - is a program that is about to be executed one whose functions cannot be
 * counted? A sanitizer replaces them, and dies of others that come before its own. Its file's
 * dynamic strings say so; of a script its interpreter's do.
 *
 * In a vfork's child: nothing but system calls and the stack.
 */
#include "preload/preload.h"
#include "preload/env.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/syscall.h>

enum { CHUNK = 4096, WORD_MAX = 32, HEADERS_MAX = 32, SCRIPTS_MAX = 4, ENTRIES = 32 };
/* A file may say anything: nobody waits for more than that to be read. */
enum { DYNAMIC_MAX_BYTES = 1 << 16, STRINGS_MAX_BYTES = 1 << 26 };

static const char *const words[] = {
#define SANITIZER(word, name, no_ptrace) word,
#include "ring/sanitizer.def"
};

/* (libc's functions for it are counted.) */
static size_t calls_child_length_of(const char *text)
{
	size_t n = 0;
	while (text[n])
		n++;
	return n;
}

static bool calls_child_begins_with(const char *text, const char *word)
{
	while (*word && *text == *word)
		text++, word++;
	return !*word;
}

static long calls_child_read_at(int fd, void *buf, size_t size, uint64_t offset)
{
	return preload_syscall(SYS_pread64, fd, (long)buf, (long)size, (long)offset, 0, 0);
}

static bool has_word(int fd, uint64_t offset, uint64_t size_bytes)
{
	char chunk[WORD_MAX + CHUNK + 1];
	for (uint64_t at = 0; at < size_bytes && at < STRINGS_MAX_BYTES;
		at += CHUNK) { /* each with the beginning of the next */
		const uint64_t left = size_bytes - at;
		const long n = calls_child_read_at(fd, chunk,
			left < CHUNK + WORD_MAX ? (size_t)left : CHUNK + WORD_MAX, offset + at);
		if (n <= 0)
			return false;
		chunk[n] = 0;
		for (long i = 0; i < n && i < CHUNK; i++)
			for (size_t w = 0; w < sizeof words / sizeof *words; w++)
				if (chunk[i] == words[w][0] &&
					calls_child_begins_with(chunk + i, words[w]))
					return true;
	}
	return false;
}

/* Where in the file an address lies; 0: nowhere. */
static uint64_t offset_of(const Elf64_Phdr *segment, size_t nr, uint64_t address)
{
	for (size_t i = 0; i < nr; i++)
		if (segment[i].p_type == PT_LOAD && address >= segment[i].p_vaddr &&
			address - segment[i].p_vaddr < segment[i].p_filesz)
			return address - segment[i].p_vaddr + segment[i].p_offset;
	return 0;
}

static bool is_sanitized(int fd, const Elf64_Ehdr *head)
{
	Elf64_Phdr segment[HEADERS_MAX];
	Elf64_Dyn entry[ENTRIES];
	const size_t nr = head->e_phnum < HEADERS_MAX ? head->e_phnum : HEADERS_MAX;
	uint64_t strings = 0, bytes = 0, dynamic = 0, dynamic_bytes = 0;
	if (head->e_phentsize != sizeof *segment ||
		calls_child_read_at(fd, segment, nr * sizeof *segment, head->e_phoff) !=
			(long)(nr * sizeof *segment))
		return false;
	for (size_t i = 0; i < nr; i++)
		if (segment[i].p_type == PT_DYNAMIC)
			dynamic = segment[i].p_offset, dynamic_bytes = segment[i].p_filesz;
	for (uint64_t at = 0; at < dynamic_bytes && at < DYNAMIC_MAX_BYTES; at += sizeof entry) {
		const uint64_t left = dynamic_bytes - at;
		const long n = calls_child_read_at(
			fd, entry, left < sizeof entry ? (size_t)left : sizeof entry, dynamic + at);
		for (long i = 0; i < n / (long)sizeof *entry; i++) {
			if (entry[i].d_tag == DT_STRTAB)
				strings = entry[i].d_un.d_ptr;
			else if (entry[i].d_tag == DT_STRSZ)
				bytes = entry[i].d_un.d_val;
		}
		if (n <= 0)
			break;
	}
	strings = offset_of(segment, nr, strings);
	return strings && has_word(fd, strings, bytes);
}

/* "#! /bin/sh -e" -> "/bin/sh", in its place. NULL: it is no script. */
static char *interpreter_in(char *text)
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

/* path NULL: the directory's descriptor is the file. */
static bool is_sanitized_at(int directory, const char *path)
{
	union {
		Elf64_Ehdr elf;
		char text[CHUNK / 16 + 1];
	} head;
	for (int scripts = 0; scripts < SCRIPTS_MAX; scripts++) {
		const int fd = path ? (int)preload_syscall(SYS_openat, directory, (long)path,
					      O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0)
				    : directory;
		const long n = fd >= 0 ? calls_child_read_at(fd, &head, sizeof head - 1, 0) : 0;
		bool found = false;
		char *interpreter = NULL;
		head.text[n > 0 ? n : 0] = 0;
		if (n >= (long)sizeof head.elf && calls_child_begins_with(head.text, ELFMAG))
			found = head.elf.e_ident[EI_CLASS] == ELFCLASS64 &&
				is_sanitized(fd, &head.elf);
		else if (n > 2)
			interpreter = interpreter_in(head.text);
		if (path && fd >= 0)
			(void)preload_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
		if (found || !interpreter)
			return found;
		path = interpreter;
		directory = AT_FDCWD;
	}
	return false;
}

/* As execvp() searches. False: nowhere. */
static bool find_in_path(const char *file, char path[PATH_MAX])
{
	const char *list = getenv("PATH");
	const size_t length = calls_child_length_of(file);
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
			if (preload_syscall(SYS_access, (long)path, 1 /* X_OK */, 0, 0, 0, 0) == 0)
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
	for (const char *at = file; at && *at; at++)
		has_slash |= *at == '/';
	if (is_searched && !has_slash) {
		if (!file || !find_in_path(file, path))
			return true;
		file = path;
	}
	if (!is_sanitized_at(directory, file && *file ? file : NULL))
		return true;
	if (preload_fresh.head)
		__atomic_fetch_add(&preload_fresh.head->unsuited, 1, __ATOMIC_RELAXED);
	return false;
}
