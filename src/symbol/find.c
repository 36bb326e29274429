/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - a file's debug information: installed here, or of a debuginfod server; build ids. */
#include "symbol/private.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void hex_of(const void *bytes, size_t nr, char *text, size_t text_size)
{
	const uint8_t *p = bytes;
	text[0] = 0;
	for (size_t i = 0; i < nr && 2 * i + 2 < text_size; i++)
		snprintf(text + 2 * i, 3, "%02x", p[i]);
}

bool symbol_build_id_of(Elf *elf, char text[SYMBOL_BUILD_ID_TEXT])
{
	const void *id;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &id);
	hex_of(id, n > 0 ? (size_t)n : 0, text, SYMBOL_BUILD_ID_TEXT);
	return n > 0;
}

static int try_open(char **ret_name, const char *fmt, ...) BASE_PRINTF(2, 3);
static int try_open(char **ret_name, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(path, sizeof path, fmt, args);
	va_end(args);
	int fd = n > 0 && n < PATH_MAX ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0)
		*ret_name = strdup(path); /* allowed: dwfl frees it */
	return fd;
}

/* Debug files that are installed here. */
static int find_installed(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
	const char *file, const char *link, GElf_Word crc, char **ret_name)
{
	const unsigned char *id;
	GElf_Addr id_address;
	char hex[SYMBOL_BUILD_ID_TEXT] = "";
	int nr = dwfl_module_build_id(module, &id, &id_address), fd = -1;
	(void)user, (void)name, (void)base, (void)crc;
	hex_of(id, nr > 0 ? (size_t)nr : 0, hex, sizeof hex);
	if (nr > 1)
		fd = try_open(ret_name, "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
	const char *slash = file ? strrchr(file, '/') : NULL;
	if (fd < 0 && link && slash) {
		int length = (int)(slash - file);
		fd = try_open(ret_name, "%.*s/.debug/%s", length, file, link);
		if (fd < 0)
			fd = try_open(ret_name, "/usr/lib/debug%.*s/%s", length, file, link);
		if (fd < 0 && strcmp(link, slash + 1) != 0)
			fd = try_open(ret_name, "%.*s/%s", length, file, link);
	}
	return fd;
}

/* What is not installed may be fetched: libdw asks debuginfod when $DEBUGINFOD_URLS is set. */
static int find_or_fetch(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
	const char *file, const char *link, GElf_Word crc, char **ret_name)
{
	int fd = find_installed(module, user, name, base, file, link, crc, ret_name);
	return fd >= 0 ? fd
		       : dwfl_standard_find_debuginfo(
				 module, user, name, base, file, link, crc, ret_name);
}

const Dwfl_Callbacks symbol_callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_installed,
	.section_address = dwfl_offline_section_address,
};
const Dwfl_Callbacks symbol_callbacks_fetch = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_or_fetch,
	.section_address = dwfl_offline_section_address,
};

bool symbol_elf_extent(
	const char *path, uint64_t map_start, uint64_t file_offset, struct symbol_extent *ret)
{
	const uint64_t page = ~(uint64_t)4095;
	bool found = false;
	size_t nr = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	*ret = (struct symbol_extent){.start = UINT64_MAX};
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF || elf_getphdrnum(elf, &nr))
		nr = 0;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr ph;
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		ret->start = ph.p_vaddr < ret->start ? ph.p_vaddr : ret->start;
		ret->end = ph.p_vaddr + ph.p_memsz;
		if (found || file_offset < (ph.p_offset & page) ||
			file_offset >= ph.p_offset + ph.p_filesz)
			continue;
		found = true;
		ret->bias = map_start - file_offset - (ph.p_vaddr - ph.p_offset);
		ret->copy = file_offset != (ph.p_offset & page);
	}
	if (found)
		symbol_build_id_of(elf, ret->build_id);
	ret->start += ret->bias;
	ret->end += ret->bias;
	elf_end(elf);
	close(fd);
	return found;
}
