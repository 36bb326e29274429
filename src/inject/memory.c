/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - a process's memory: what its mappings say, and libc's table of symbols as it lies
 * there. Nothing of it is trusted: all reads are by the kernel, and bounded. */
#include "inject/private.h"
#include "os/proc.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MAPS_BYTES_MAX = 64 << 20,
	SEGMENTS_MAX = 64,
	DYNAMIC_MAX = 256,
	CODE_BYTES_MAX = 64 << 20,
	CHAIN_MAX = 100000,
	NAME_BYTES = 64
};

char *inject_maps(pid_t pid)
{
	char path[64], *text = NULL;
	size_t capacity = 0, length = 0;
	ssize_t n = 1;
	snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && n > 0 && length < MAPS_BYTES_MAX) {
		if (base_grow(&text, &capacity, length + 65536, 1) != BASE_OK)
			break;
		n = read(fd, text + length, capacity - length - 1);
		length += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	if (text)
		text[length] = '\0';
	return text;
}

bool inject_has_path(const char *maps, const char *part)
{
	struct os_region r;
	while (os_parse_region(&maps, &r)) {
		if (r.path_length && memmem(r.path, r.path_length, part, strlen(part)))
			return true;
	}
	return false;
}

bool inject_has_file(pid_t pid, const char *part)
{
	char *maps = inject_maps(pid);
	bool has = maps && inject_has_path(maps, part);
	base_free(maps);
	return has;
}

bool inject_region(
	const struct inject_memory *m, uint64_t at, uint64_t *ret_start, uint64_t *ret_end)
{
	const char *text = m->maps;
	struct os_region r;
	while (os_parse_region(&text, &r))
		if (at >= r.start && at < r.end) {
			*ret_start = r.start;
			*ret_end = r.end;
			return r.writable;
		}
	return false;
}

bool inject_read(const struct inject_memory *m, uint64_t at, void *to, size_t bytes)
{
	return pread(m->fd, to, bytes, (off_t)at) == (ssize_t)bytes;
}

bool inject_write(const struct inject_memory *m, uint64_t at, const void *from, size_t bytes)
{
	return pwrite(m->fd, from, bytes, (off_t)at) == (ssize_t)bytes;
}

/* ---- libc ------------------------------------------------------------------------------------ */

static bool memory_is_libc(const struct os_region *r)
{
	static const char name[] = "/libc.so.6", gone[] = " (deleted)";
	size_t length = r->path_length;
	if (length > sizeof gone &&
		!memcmp(r->path + length - (sizeof gone - 1), gone, sizeof gone - 1))
		length -= sizeof gone - 1;
	return length >= sizeof name &&
	       !memcmp(r->path + length - (sizeof name - 1), name, sizeof name - 1);
}

void inject_find_libc(struct inject_memory *m)
{
	const char *text = m->maps;
	struct os_region r;
	while (os_parse_region(&text, &r)) {
		if (!memory_is_libc(&r))
			continue;
		if (!r.offset && !m->libc)
			m->libc = r.start;
		if (r.executable && m->libc && !m->code) {
			m->code = r.start;
			m->code_end = r.end;
		}
	}
}

/* Where two pieces of code lie that libc has for its own purposes. */
static bool memory_find_code(struct inject_memory *m)
{
	static const uint8_t restorer[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t syscaller[] = {0x0f, 0x05, 0xc3};
	size_t bytes = (size_t)(m->code_end - m->code);
	uint8_t *code = bytes && bytes <= CODE_BYTES_MAX ? base_alloc(bytes) : NULL;
	if (code && inject_read(m, m->code, code, bytes)) {
		const uint8_t *r = memmem(code, bytes, restorer, sizeof restorer);
		const uint8_t *s = memmem(code, bytes, syscaller, sizeof syscaller);
		m->restorer = r ? m->code + (uint64_t)(r - code) : 0;
		m->syscaller = s ? m->code + (uint64_t)(s - code) : 0;
	}
	base_free(code);
	return m->restorer && m->syscaller;
}

enum base_status inject_memory_open(struct inject_memory *m, pid_t pid, struct base_err *err)
{
	char path[64];
	*m = (struct inject_memory){.pid = pid, .maps = inject_maps(pid)};
	snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
	m->fd = open(path, O_RDWR | O_CLOEXEC);
	if (m->fd < 0 || !m->maps) {
		int why = errno;
		inject_memory_close(m);
		return base_fail_errno(err, why, "cannot look into process %d", (int)pid);
	}
	inject_find_libc(m);
	if (m->libc && m->code && memory_find_code(m))
		return BASE_OK;
	bool none = !m->libc;
	inject_memory_close(m);
	return base_fail(err, BASE_ERR_ENV,
		none ? "process %d has no glibc (libc.so.6) in it"
		     : "process %d has a libc that is not as expected",
		(int)pid);
}

void inject_memory_close(struct inject_memory *m)
{
	base_free(m->maps);
	if (m->fd >= 0)
		close(m->fd);
	m->maps = NULL;
	m->fd = -1;
}

/* ---- its functions --------------------------------------------------------------------------- */

struct memory_symbols {
	uint64_t symbol, text, hash;
};

static bool memory_find_symbols(const struct inject_memory *m, struct memory_symbols *ret)
{
	Elf64_Ehdr head;
	Elf64_Phdr segment[SEGMENTS_MAX];
	Elf64_Dyn dynamic;
	uint64_t at = 0;
	*ret = (struct memory_symbols){0};
	if (!inject_read(m, m->libc, &head, sizeof head) || head.e_phnum > SEGMENTS_MAX ||
		!inject_read(m, m->libc + head.e_phoff, segment, head.e_phnum * sizeof *segment))
		return false;
	for (unsigned i = 0; i < head.e_phnum; i++)
		if (segment[i].p_type == PT_DYNAMIC)
			at = m->libc + segment[i].p_vaddr;
	for (unsigned i = 0; at && i < DYNAMIC_MAX; i++, at += sizeof dynamic) {
		if (!inject_read(m, at, &dynamic, sizeof dynamic) || dynamic.d_tag == DT_NULL)
			break;
		uint64_t value = dynamic.d_un.d_ptr;
		value += value < m->libc ? m->libc : 0;
		if (dynamic.d_tag == DT_SYMTAB)
			ret->symbol = value;
		else if (dynamic.d_tag == DT_STRTAB)
			ret->text = value;
		else if (dynamic.d_tag == DT_GNU_HASH)
			ret->hash = value;
	}
	return ret->symbol && ret->text && ret->hash;
}

static bool memory_is_named(const struct inject_memory *m, const struct memory_symbols *s,
	uint32_t index, const char *name, uint64_t *ret)
{
	Elf64_Sym symbol;
	char text[NAME_BYTES];
	size_t length = strlen(name) + 1;
	if (!inject_read(m, s->symbol + (uint64_t)index * sizeof symbol, &symbol, sizeof symbol) ||
		length > sizeof text || !inject_read(m, s->text + symbol.st_name, text, length) ||
		memcmp(text, name, length) != 0 || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
		symbol.st_shndx == SHN_UNDEF)
		return false;
	*ret = m->libc + symbol.st_value;
	return *ret >= m->code && *ret < m->code_end;
}

/* (Of two versions any: those that are asked for have had one implementation since they are in
 * libc.) */
uint64_t inject_function(const struct inject_memory *m, const char *name)
{
	struct memory_symbols s;
	uint32_t head[4], hash = 5381, index = 0, link;
	uint64_t found = 0;
	if (!memory_find_symbols(m, &s) || !inject_read(m, s.hash, head, sizeof head) || !head[0])
		return 0;
	for (const char *p = name; *p; p++)
		hash = hash * 33 + (unsigned char)*p;
	uint64_t buckets = s.hash + sizeof head + 8 * (uint64_t)head[2];
	uint64_t chains = buckets + 4 * (uint64_t)head[0];
	if (!inject_read(m, buckets + 4 * (uint64_t)(hash % head[0]), &index, sizeof index))
		return 0;
	for (unsigned i = 0; index >= head[1] && i < CHAIN_MAX; i++, index++) {
		if (!inject_read(m, chains + 4 * (uint64_t)(index - head[1]), &link, sizeof link))
			return 0;
		if ((link | 1) == (hash | 1) && memory_is_named(m, &s, index, name, &found))
			return found;
		if (link & 1)
			return 0;
	}
	return 0;
}
