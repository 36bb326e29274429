/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls_child.c - is a program that is about to be executed one whose functions cannot be
 * counted? A sanitizer replaces them, and dies of others that come before its own. Its file's
 * dynamic strings say so.
 *
 * In a vfork's child: nothing but system calls and the stack.
 */
#include "preload/preload.h"
#include "preload/env.h"

#include <elf.h>
#include <sys/syscall.h>

enum { CHUNK = 4096, WORD_MAX = 32, ENTRIES = 32 };
/* A file may say anything: nobody waits for more than that to be read. */
enum { DYNAMIC_MAX_BYTES = 1 << 16, STRINGS_MAX_BYTES = 1 << 26 };

static const char *const words[] = {
#define SANITIZER(word, name, no_ptrace) word,
#include "ring/sanitizer.def"
};

/* (libc's functions for it are counted.) */
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

bool preload_exec_is_sanitized(int fd, const Elf64_Phdr *segment, size_t nr)
{
	Elf64_Dyn entry[ENTRIES];
	uint64_t strings = 0, bytes = 0, dynamic = 0, dynamic_bytes = 0;
	for (size_t i = 0; i < nr; i++)
		if (segment[i].p_type == PT_DYNAMIC)
			dynamic = segment[i].p_offset, dynamic_bytes = segment[i].p_filesz;
	for (uint64_t at = 0; at < dynamic_bytes && at < DYNAMIC_MAX_BYTES; at += sizeof entry) {
		const uint64_t left = dynamic_bytes - at;
		const long n = calls_child_read_at(
			fd, entry, left < sizeof entry ? (size_t)left : sizeof entry, dynamic + at);
		for (long i = 0; i < n / (long)sizeof *entry; i++) {
			/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): read */
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
