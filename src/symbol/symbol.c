/* SPDX-License-Identifier: Apache-2.0 */
/* symbol.c - names and lines from ELF and DWARF, by libdwfl; function starts from .eh_frame_hdr
 * when there are no names. */
#include "symbol/symbol.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	DW_EH_PE_udata4 = 0x03,
	DW_EH_PE_datarel_sdata4 = 0x3b,
	EH_FRAME_HDR_BYTES = 12, /* version, three encodings, eh_frame_ptr, fde_count */
};

typedef char *demangle_fn(const char *mangled, char *buf, size_t *length, int *status);

struct symbol_file {
	Dwfl *dwfl;
	Dwfl_Module *module;
	GElf_Addr bias; /* of dwfl's addresses over those as linked */
	const char *base_name;
	char *text; /* last result, from malloc: by the demangler */
	void *demangler;
	demangle_fn *demangle;
	/* .eh_frame_hdr's table: (function start, description), sorted, relative to the header's
	 * address */
	const uint8_t *table;
	size_t nr_functions;
	uint64_t table_base;
	char path[];
};

/* ---- finding files
 * ----------------------------------------------------------------------------------- */

static void hex_of(const void *bytes, size_t nr, char *text, size_t text_size)
{
	const uint8_t *p = bytes;
	text[0] = 0;
	for (size_t i = 0; i < nr && 2 * i + 2 < text_size; i++)
		snprintf(text + 2 * i, 3, "%02x", p[i]);
}

static bool build_id_of(Elf *elf, char text[SYMBOL_BUILD_ID_TEXT])
{
	const void *id;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &id);
	hex_of(id, n > 0 ? (size_t)n : 0, text, SYMBOL_BUILD_ID_TEXT);
	return n > 0;
}

static bool has_build_id(int fd, const char *wanted)
{
	char found[SYMBOL_BUILD_ID_TEXT] = "";
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bool is_elf = elf && elf_kind(elf) == ELF_K_ELF;
	if (is_elf)
		build_id_of(elf, found);
	elf_end(elf);
	return is_elf && (!*wanted || !strcmp(found, wanted));
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

/* Debug files that are installed here. Nothing is fetched: recording is no time for downloads. */
static int find_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
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

/* ---- function starts
 * ------------------------------------------------------------------------------------ */

static void find_table(struct symbol_file *s, Elf *elf)
{
	size_t nr = 0, file_bytes = 0;
	const uint8_t *image = (const uint8_t *)elf_rawfile(elf, &file_bytes);
	if (!image || elf_getphdrnum(elf, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr ph;
		uint32_t count;
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_GNU_EH_FRAME)
			continue;
		if (ph.p_offset > file_bytes || ph.p_filesz > file_bytes - ph.p_offset ||
			ph.p_filesz < EH_FRAME_HDR_BYTES)
			return;
		const uint8_t *header = image + ph.p_offset;
		if (header[0] != 1 || header[2] != DW_EH_PE_udata4 ||
			header[3] != DW_EH_PE_datarel_sdata4)
			return;
		memcpy(&count, header + 8, sizeof count);
		if (count > (ph.p_filesz - EH_FRAME_HDR_BYTES) / 8)
			return;
		s->table = header + EH_FRAME_HDR_BYTES;
		s->nr_functions = count;
		s->table_base = ph.p_vaddr;
		return;
	}
}

static uint64_t table_start(const struct symbol_file *s, size_t i)
{
	int32_t relative;
	memcpy(&relative, s->table + i * 8, sizeof relative);
	return s->table_base + (uint64_t)(int64_t)relative;
}

/* The last function start that is not after `offset`. */
static bool function_start(const struct symbol_file *s, uint64_t offset, uint64_t *ret)
{
	size_t low = 0, high = s->nr_functions;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (table_start(s, middle) <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	*ret = table_start(s, low - 1);
	return true;
}

/* ---- open
 * -------------------------------------------------------------------------------------------------
 */

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

struct symbol_file *symbol_open(const char *path, const char *build_id)
{
	size_t length = strlen(path);
	struct symbol_file *s = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!has_build_id(fd, build_id))
		goto fail;
	s = base_alloc(sizeof *s + length + 1);
	if (!s)
		goto fail;
	memcpy(s->path, path, length + 1);
	const char *slash = strrchr(s->path, '/');
	s->base_name = slash ? slash + 1 : s->path;
	s->dwfl = dwfl_begin(&callbacks);
	if (!s->dwfl)
		goto fail;
	s->module = dwfl_report_offline(s->dwfl, s->base_name, s->path, fd);
	if (!s->module)
		goto fail;
	fd = -1; /* dwfl's now */
	dwfl_report_end(s->dwfl, NULL, NULL);
	Elf *elf = dwfl_module_getelf(s->module, &s->bias);
	if (!elf)
		goto fail;
	find_table(s, elf);
	/* C++ names: whoever has C++ programs has this library. */
	s->demangler = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	if (s->demangler) {
		void *symbol = dlsym(s->demangler, "__cxa_demangle");
		memcpy(&s->demangle, &symbol, sizeof symbol);
	}
	return s;
fail:
	if (fd >= 0)
		close(fd);
	return symbol_close(s);
}

struct symbol_file *symbol_close(struct symbol_file *s)
{
	if (!s)
		return NULL;
	if (s->dwfl)
		dwfl_end(s->dwfl);
	if (s->demangler)
		dlclose(s->demangler);
	free(s->text); /* allowed: the demangler's realloc gave it */
	base_free(s);
	return NULL;
}

/* ---- look up
 * --------------------------------------------------------------------------------------------------
 */

/* What std::thread wraps round what it calls: "...tuple<main::{lambda()#1}, int> > >::_M_run()"
 * becomes "main::{lambda()#1}". In place. */
static void unwrap_thread(char *name)
{
	static const char before[] = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<",
			  after[] = "> > >::_M_run()";
	size_t length = strlen(name), nr_before = sizeof before - 1, nr_after = sizeof after - 1;
	if (length <= nr_before + nr_after || strncmp(name, before, nr_before) != 0 ||
		strcmp(name + length - nr_after, after) != 0)
		return;
	size_t nr = 0, nr_all = length - nr_before - nr_after;
	const char *called = name + nr_before;
	for (int depth = 0; nr < nr_all && (called[nr] != ',' || depth); nr++)
		depth +=
			(strchr("<({[", called[nr]) != NULL) - (strchr(">)}]", called[nr]) != NULL);
	while (nr && called[nr - 1] == ' ')
		nr--;
	memmove(name, called, nr);
	name[nr] = '\0';
}

static const char *readable(struct symbol_file *s, const char *name)
{
	int status = 0;
	free(s->text); /* allowed: the demangler's realloc gave it */
	s->text = NULL;
	if (s->demangle && name[0] == '_' && name[1] == 'Z')
		s->text = s->demangle(name, NULL, NULL, &status);
	if (s->text)
		unwrap_thread(s->text);
	if (!s->text) {
		size_t length = strcspn(name, "@"); /* "read@@GLIBC_2.2.5" */
		if (!length)
			length = strlen(name);
		s->text = strndup(name, length); /* allowed: freed as the demangler's */
	}
	return s->text;
}

/* A symbol that covers the address, or one without a size at `start`. */
static const char *symbol_at(
	struct symbol_file *s, uint64_t offset, uint64_t start, uint64_t *ret_value, int *ret_type)
{
	GElf_Off in_symbol = 0;
	GElf_Sym sym;
	const char *name = dwfl_module_addrinfo(
		s->module, offset + s->bias, &in_symbol, &sym, NULL, NULL, NULL);
	if (!name || !*name)
		return NULL;
	*ret_value = offset - in_symbol;
	*ret_type = GELF_ST_TYPE(sym.st_info);
	return in_symbol < sym.st_size || (!sym.st_size && *ret_value == start) ? name : NULL;
}

bool symbol_code(struct symbol_file *s, uint64_t offset, struct symbol_found *ret)
{
	*ret = (struct symbol_found){0};
	uint64_t start = UINT64_MAX, value;
	bool has_start = function_start(s, offset, &start);
	int type;
	const char *name = symbol_at(s, offset, start, &value, &type);
	if (name) {
		(void)readable(s, name);
		ret->function_offset = value;
		ret->exact = true;
	} else if (has_start) {
		char text[NAME_MAX + 32];
		snprintf(text, sizeof text, "%s+0x%" PRIx64, s->base_name, start);
		(void)readable(s, text);
		ret->function_offset = start;
	} else {
		return false;
	}
	ret->function = s->text;
	Dwfl_Line *line = dwfl_module_getsrc(s->module, offset + s->bias);
	int number = 0;
	if (line)
		ret->file = dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);
	ret->line = ret->file && number > 0 ? (uint64_t)number : 0;
	return ret->function != NULL;
}

bool symbol_data(struct symbol_file *s, uint64_t offset, struct base_str *ret)
{
	uint64_t value;
	int type;
	const char *name = symbol_at(s, offset, UINT64_MAX, &value, &type);
	if (!name || type != STT_OBJECT || !readable(s, name))
		return false;
	base_str_add(ret, s->text);
	if (offset != value)
		base_str_addf(ret, "+0x%" PRIx64, offset - value);
	return true;
}

uint64_t symbol_find(struct symbol_file *s, const char *name)
{
	int nr = dwfl_module_getsymtab(s->module);
	for (int i = 0; i < nr; i++) {
		GElf_Sym sym;
		GElf_Addr address;
		const char *found =
			dwfl_module_getsym_info(s->module, i, &sym, &address, NULL, NULL, NULL);
		if (found && !strcmp(found, name) && sym.st_shndx != SHN_UNDEF)
			return address - s->bias;
	}
	return 0;
}

bool symbol_demangler_found(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	if (library)
		dlclose(library);
	return library != NULL;
}

bool symbol_elf_bias(const char *path, uint64_t start, uint64_t file_offset, uint64_t *ret_bias,
	char ret_build_id[SYMBOL_BUILD_ID_TEXT])
{
	bool found = false;
	size_t nr = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF && !elf_getphdrnum(elf, &nr)) {
		build_id_of(elf, ret_build_id);
		for (size_t i = 0; i < nr && !found; i++) {
			GElf_Phdr ph;
			if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
				continue;
			uint64_t page = ~(uint64_t)4095;
			found = file_offset >= (ph.p_offset & page) &&
				file_offset < ph.p_offset + ph.p_filesz;
			*ret_bias = start - file_offset - (ph.p_vaddr - ph.p_offset);
		}
	}
	elf_end(elf);
	close(fd);
	return found;
}
