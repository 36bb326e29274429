/* SPDX-License-Identifier: Apache-2.0 */
/* own.c - which instructions of a file that `longpole cc` built are the program's own. */
#include "own.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const Elf64_Shdr *own_section(const struct own *o, const char *name)
{
	const Elf64_Ehdr *e = (const void *)o->file;
	const Elf64_Shdr *s = (const void *)(o->file + e->e_shoff);
	const char *names = (const char *)o->file + s[e->e_shstrndx].sh_offset;
	for (int i = 0; i < e->e_shnum; i++)
		if (!strcmp(names + s[i].sh_name, name))
			return &s[i];
	return NULL;
}

/* Calls visit with the linked address and length of each own instruction. */
static bool each_own(struct own *o, void (*visit)(struct own *o, uint64_t address, unsigned length))
{
	const Elf64_Shdr *blocks = own_section(o, MEMORY_SECTION_BLOCKS),
			 *info = own_section(o, MEMORY_SECTION_INFO);
	if (!blocks || !info)
		return false;
	for (uint64_t at = 0; at < blocks->sh_size; at += sizeof(struct memory_block_head)) {
		struct memory_block_head h;
		memcpy(&h, o->file + blocks->sh_offset + at, sizeof h);
		uint64_t code = blocks->sh_addr + at + (uint64_t)(int64_t)h.code;
		const uint8_t *p =
			o->file + info->sh_offset +
			(blocks->sh_addr + at + 4 + (uint64_t)(int64_t)h.info - info->sh_addr);
		for (unsigned n = p[0], i = 0; i < n; i++) {
			visit(o, code, p[2 + 2 * i]);
			code += p[2 + 2 * i] + p[3 + 2 * i];
		}
	}
	return true;
}

static void visit_bounds(struct own *o, uint64_t address, unsigned length)
{
	o->low = address < o->low ? address : o->low;
	o->high = address + length > o->high ? address + length : o->high;
}

static void visit_mark(struct own *o, uint64_t address, unsigned length)
{
	(void)length;
	o->bytes[address - o->low] = 1;
}

bool own_has(const struct own *o, uint64_t linked)
{
	return linked >= o->low && linked < o->high && o->bytes[linked - o->low];
}

bool own_read(struct own *o, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *slash = strrchr(path, '/');
	*o = (struct own){.low = UINT64_MAX, .name = slash ? slash + 1 : path};
	if (fd < 0 || fstat(fd, &st))
		return false;
	o->file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (o->file == MAP_FAILED || !each_own(o, visit_bounds))
		return false;
	o->bytes = calloc(1, o->high - o->low + 1);
	return o->bytes && each_own(o, visit_mark);
}
