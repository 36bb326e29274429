/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - names of addresses in a live process. */
#include "spin/names.h"

#include "symbol/symbol.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAPPINGS_MAX = 16384, FILES_MAX = 1024, LINE_MAX_BYTES = 8192 };

struct mapping {
	uint64_t start, end, offset;
	bool shared;
	uint32_t path; /* of paths; 0: none */
};
struct file {
	uint32_t path;
	uint64_t start; /* of the mapping that bias is of */
	uint64_t bias;
	struct symbol_file *symbols;
};
struct spin_names {
	pid_t pid;
	struct base_arena *arena;
	struct base_strtab *paths;
	struct mapping *mapping;
	size_t nr_mappings, mappings_capacity;
	struct file *file;
	size_t nr_files, files_capacity;
};

struct spin_names *spin_names_new(pid_t pid, struct base_arena *arena)
{
	struct spin_names *n = base_alloc(sizeof *n);
	if (!n)
		return NULL;
	*n = (struct spin_names){.pid = pid, .arena = arena, .paths = base_strtab_new()};
	if (n->paths)
		return n;
	base_free(n);
	return NULL;
}

void spin_names_free(struct spin_names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->nr_files; i++)
		symbol_close(n->file[i].symbols);
	base_strtab_free(n->paths);
	base_free(n->mapping);
	base_free(n->file);
	base_free(n);
}

/* "7f..-7f.. r-xp 00001000 fd:00 123   /path with blanks" */
static void names_add_mapping(struct spin_names *n, char *line)
{
	struct mapping m = {0};
	char *at = line;
	m.start = strtoull(at, &at, 16);
	if (*at != '-')
		return;
	m.end = strtoull(at + 1, &at, 16);
	if (strlen(at) < 6)
		return;
	m.shared = at[4] == 's';
	m.offset = strtoull(at + 5, &at, 16);
	const char *path = strchr(at, '/');
	line[strcspn(line, "\n")] = 0;
	if (path && base_strtab_intern(n->paths, path, strlen(path), &m.path) != BASE_OK)
		return;
	if (n->nr_mappings < MAPPINGS_MAX &&
		base_grow(&n->mapping, &n->mappings_capacity, n->nr_mappings + 1,
			sizeof *n->mapping) == BASE_OK)
		n->mapping[n->nr_mappings++] = m;
}

static void names_read_maps(struct spin_names *n)
{
	char path[32], line[LINE_MAX_BYTES];
	snprintf(path, sizeof path, "/proc/%d/maps", (int)n->pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return;
	n->nr_mappings = 0;
	while (fgets(line, sizeof line, f))
		names_add_mapping(n, line);
	fclose(f);
}

static const struct mapping *names_find(const struct spin_names *n, uint64_t address)
{
	for (size_t i = 0; i < n->nr_mappings; i++)
		if (address >= n->mapping[i].start && address < n->mapping[i].end)
			return &n->mapping[i];
	return NULL;
}

static const struct mapping *mapping_of(struct spin_names *n, uint64_t address)
{
	const struct mapping *m = names_find(n, address);
	if (m)
		return m;
	names_read_maps(n);
	return names_find(n, address);
}

static const struct file *names_file_of(struct spin_names *n, const struct mapping *m)
{
	struct symbol_extent at;
	struct file f = {.path = m->path, .start = m->start};
	if (!m->path)
		return NULL;
	for (size_t i = 0; i < n->nr_files; i++)
		if (n->file[i].path == m->path && n->file[i].start == m->start)
			return &n->file[i];
	const char *path = base_strtab_get(n->paths, m->path);
	if (n->nr_files == FILES_MAX || base_grow(&n->file, &n->files_capacity, n->nr_files + 1,
						sizeof *n->file) != BASE_OK)
		return NULL;
	if (symbol_elf_extent(path, m->start, m->offset, &at)) {
		f.bias = at.bias;
		f.symbols = symbol_open(path, at.build_id);
	}
	n->file[n->nr_files] = f;
	return &n->file[n->nr_files++];
}

static const char *names_keep(struct spin_names *n, const char *text)
{
	return text ? base_arena_strndup(n->arena, text, strlen(text)) : NULL;
}

void spin_names_code(struct spin_names *n, uint64_t address, struct spin_place *ret)
{
	struct symbol_found s = {0};
	*ret = (struct spin_place){.address = address};
	const struct mapping *m = mapping_of(n, address);
	if (!m)
		return;
	if (m->path)
		ret->object = names_keep(n, base_strtab_get(n->paths, m->path));
	const struct file *f = names_file_of(n, m);
	if (!f || !f->symbols || !symbol_code(f->symbols, address - f->bias, &s))
		return;
	ret->function = names_keep(n, s.function);
	ret->file = names_keep(n, s.file);
	ret->line = s.line;
}

void spin_names_data(struct spin_names *n, struct spin_polled *ret)
{
	struct base_str name = {0};
	const struct mapping *m = mapping_of(n, ret->address);
	if (!m)
		return;
	ret->shared = m->shared;
	const struct file *f = names_file_of(n, m);
	/* (zeroed data lies in the mapping after the file's: its name is found through the one
	 * before) */
	for (const struct mapping *before = m; !f && before > n->mapping && before > m - 2;) {
		before--;
		if (before->path && before->end == m->start && !m->path)
			f = names_file_of(n, before);
	}
	if (f && f->symbols && symbol_data(f->symbols, ret->address - f->bias, &name) &&
		!name.failed)
		ret->name = names_keep(n, base_str_text(&name));
	base_str_fini(&name);
}
