/* SPDX-License-Identifier: GPL-2.0-or-later */
/* object.c - files, by what QEMU has mapped. */
#include "object.h"

#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REACH = 1 << 30, LINE_MAX_BYTES = PATH_MAX + 200 };

struct mapping {
	uint64_t start, end, offset;
	char path[LINE_MAX_BYTES];
};

/* What is mapped at `host`; its path is "" when that is no file. */
static bool find_mapping(uint64_t host, struct mapping *ret)
{
	static char line[LINE_MAX_BYTES];
	FILE *f = fopen("/proc/self/maps", "re");
	bool found = false;
	while (f && !found && fgets(line, sizeof line, f)) {
		int at = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &ret->start,
			    &ret->end, &ret->offset, &at) < 3 ||
			!at || host < ret->start || host >= ret->end)
			continue;
		line[strcspn(line, "\n")] = 0;
		snprintf(ret->path, sizeof ret->path, "%s", line[at] == '/' ? line + at : "");
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

/* Where the file's byte at `offset` was linked. */
static bool linked_at(Elf *elf, uint64_t offset, uint64_t *ret)
{
	size_t nr;
	GElf_Phdr p;
	if (elf_getphdrnum(elf, &nr))
		return false;
	for (size_t i = 0; i < nr; i++)
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD &&
			offset - p.p_offset < p.p_filesz) {
			*ret = p.p_vaddr + (offset - p.p_offset);
			return true;
		}
	return false;
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void add_entries(struct object *o, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t nr = data && header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	uint64_t *entry = realloc(o->entry, (o->nr_entries + nr + 1) * sizeof *entry);
	GElf_Sym s;
	if (!entry)
		return;
	o->entry = entry;
	for (size_t i = 0; i < nr; i++)
		if (gelf_getsym(data, (int)i, &s) && GELF_ST_TYPE(s.st_info) == STT_FUNC &&
			s.st_shndx != SHN_UNDEF)
			o->entry[o->nr_entries++] = s.st_value;
}

static void read_entries(struct object *o, Elf *elf)
{
	GElf_Shdr header;
	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));)
		if (gelf_getshdr(s, &header) &&
			(header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM))
			add_entries(o, s, &header);
	if (o->nr_entries)
		qsort(o->entry, o->nr_entries, sizeof *o->entry, by_address);
}

static struct object *new_object(
	struct objects *all, const char *path, uint64_t bias, uint64_t near)
{
	struct object **list = realloc(all->object, (all->nr + 1) * sizeof(struct object *));
	struct object *o = calloc(1, sizeof *o);
	all->object = list ? list : all->object;
	if (!list || !o || !(o->path = strdup(path))) {
		free(o);
		return NULL;
	}
	o->bias = bias;
	o->near = near;
	list[all->nr++] = o;
	return o;
}

static bool reaches(const struct object *o, uint64_t address)
{
	return address - o->near + REACH < 2ul * REACH;
}

static struct object *look_up(
	struct objects *all, const struct mapping *m, uint64_t address, uint64_t host)
{
	uint64_t linked, bias = 0;
	Elf *elf = NULL;
	struct object *o = NULL;
	int fd = m->path[0] ? open(m->path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0 && elf_version(EV_CURRENT) != EV_NONE)
		elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	/* (As far as it is a file of code: others are of none.) */
	bool has = elf && linked_at(elf, host - m->start + m->offset, &linked);
	if (has)
		bias = address - linked;
	for (size_t i = 0; i < all->nr && !o; i++)
		if (all->object[i]->bias == bias && reaches(all->object[i], address) &&
			!strcmp(all->object[i]->path, has ? m->path : ""))
			o = all->object[i];
	if (!o && (o = new_object(all, has ? m->path : "", bias, address)) && has)
		read_entries(o, elf);
	if (elf)
		elf_end(elf);
	if (fd >= 0)
		close(fd);
	return o;
}

struct object *object_of(struct objects *all, uint64_t address, const void *code)
{
	static struct mapping m;
	uint64_t host = (uintptr_t)code;
	for (unsigned i = 0; i < all->nr_places; i++)
		if (host >= all->place[i].start && host < all->place[i].end &&
			reaches(all->place[i].object, address))
			return all->place[i].object;
	if (!find_mapping(host, &m))
		m = (struct mapping){.start = host, .end = host};
	struct object *o = look_up(all, &m, address, host);
	if (o && all->nr_places < OBJECT_PLACES) {
		all->place[all->nr_places].start = m.start;
		all->place[all->nr_places].end = m.end;
		all->place[all->nr_places++].object = o;
	}
	return o;
}

void object_forget_places(struct objects *all)
{
	all->nr_places = 0;
}

bool object_is_entry(const struct object *o, uint64_t address)
{
	uint64_t linked = address - o->bias;
	return o->nr_entries &&
	       bsearch(&linked, o->entry, o->nr_entries, sizeof linked, by_address) != NULL;
}
