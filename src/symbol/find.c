/* SPDX-License-Identifier: Apache-2.0 */
/* find.c - a file's debug information: installed here, or of a debuginfod server; build ids. */
#include "symbol/private.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

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

/* What a debug file must be: of this build. */
struct wanted {
	char build_id[SYMBOL_BUILD_ID_TEXT]; /* "": the file has none */
	GElf_Word crc;                       /* of a .gnu_debuglink; 0: there is none */
};
enum {
	DEBUG_BYTES_MAX_LOG2 = 34,
	CRC_PIECE_BYTES = 1 << 16,
	SUM_END_BYTES = 1 << 25, /* of a larger file than two of them, both ends are summed */
};

/* The sum so far and that of a file's bytes from `at` to `end`. */
static uLong find_add_sum(int fd, uLong sum, off_t at, off_t end)
{
	uint8_t piece[CRC_PIECE_BYTES];
	for (ssize_t n = 1; n > 0 && at < end; at += n) {
		size_t wanted = end - at < (off_t)sizeof piece ? (size_t)(end - at) : sizeof piece;
		n = pread(fd, piece, wanted, at);
		if (n > 0)
			sum = crc32(sum, piece, (uInt)n);
	}
	return sum;
}

bool symbol_sum_of(int fd, char text[SYMBOL_BUILD_ID_TEXT])
{
	struct stat st;
	text[0] = 0;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	const off_t part = SUM_END_BYTES, begin = st.st_size < part ? st.st_size : part;
	uLong sum = find_add_sum(fd, crc32(0, NULL, 0), 0, begin);
	sum = find_add_sum(
		fd, sum, st.st_size - begin > part ? st.st_size - part : begin, st.st_size);
	snprintf(text, SYMBOL_BUILD_ID_TEXT, SYMBOL_SUM_PREFIX "%08lx:%llx", sum,
		(unsigned long long)st.st_size);
	return true;
}

bool symbol_build_of_file(const char *path, char ret[SYMBOL_BUILD_ID_TEXT])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ret[0] = 0;
	if (fd < 0)
		return false;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bool known = elf && elf_kind(elf) == ELF_K_ELF &&
		     (symbol_build_id_of(elf, ret) || symbol_sum_of(fd, ret));
	elf_end(elf);
	close(fd);
	return known;
}

/* By both files' build ids when they have them, else by the sum that the link gives. */
static bool find_is_wanted(int fd, const struct wanted *w)
{
	char build_id[SYMBOL_BUILD_ID_TEXT] = "";
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bool is_elf = elf && elf_kind(elf) == ELF_K_ELF;
	bool has_id = is_elf && symbol_build_id_of(elf, build_id);
	elf_end(elf);
	if (has_id && *w->build_id)
		return !strcmp(build_id, w->build_id);
	return is_elf && w->crc &&
	       find_add_sum(fd, crc32(0, NULL, 0), 0, (off_t)1 << DEBUG_BYTES_MAX_LOG2) == w->crc;
}

static int try_open(char **ret_name, const struct wanted *w, const char *fmt, ...)
	BASE_PRINTF(3, 4);
static int try_open(char **ret_name, const struct wanted *w, const char *fmt, ...)
{
	char path[PATH_MAX];
	struct stat st;
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(path, sizeof path, fmt, args);
	va_end(args);
	/* neither a FIFO nor a device may hold us up */
	int fd = n > 0 && n < PATH_MAX ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
				       : -1;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size >> DEBUG_BYTES_MAX_LOG2 ||
		!find_is_wanted(fd, w)) {
		close(fd);
		return -1;
	}
	*ret_name = strdup(path); /* allowed: dwfl frees it */
	return fd;
}

/* The file that dwz moved common parts of a debug file into: by its build id, where the link says
 * or where all are installed. libdw asks for it when the debug file is open, without a sum. */
static int find_common(
	Dwfl_Module *module, void **user, const char *file, const char *link, char **ret_name)
{
	struct wanted w = {.crc = 0};
	Dwarf_Addr bias;
	const char *said;
	const void *id;
	Dwarf *dwarf = dwfl_module_getdwarf(module, &bias);
	ssize_t nr = dwarf ? dwelf_dwarf_gnu_debugaltlink(dwarf, &said, &id) : 0;
	const char *slash = file ? strrchr(file, '/') : NULL;
	if (nr <= 1)
		return -1;
	hex_of(id, (size_t)nr, w.build_id, sizeof w.build_id);
	int fd = try_open(
		ret_name, &w, "/usr/lib/debug/.build-id/%.2s/%s.debug", w.build_id, w.build_id + 2);
	if (fd < 0 && *link == '/')
		fd = try_open(ret_name, &w, "%s", link);
	else if (fd < 0 && slash)
		fd = try_open(ret_name, &w, "%.*s/%s", (int)(slash - file), file, link);
	if (fd < 0)
		*user = module; /* see symbol_dwarf() */
	return fd;
}

/* libdw looks for a common file itself when it needs a text of it and has none, and opens whatever
 * has the name, a FIFO too. So where none was found nothing is read. */
Dwarf *symbol_dwarf(Dwfl_Module *module, Dwarf_Addr *ret_bias)
{
	void **user = NULL;
	Dwarf *dwarf = dwfl_module_getdwarf(module, ret_bias);
	if (dwarf)
		dwfl_module_info(module, &user, NULL, NULL, NULL, NULL, NULL, NULL);
	return user && *user ? NULL : dwarf;
}

/* Debug files that are installed here. */
static int find_installed(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
	const char *file, const char *link, GElf_Word crc, char **ret_name)
{
	const unsigned char *id;
	GElf_Addr id_address;
	if (link && !crc)
		return find_common(module, user, file, link, ret_name);
	struct wanted w = {.crc = crc};
	int nr = dwfl_module_build_id(module, &id, &id_address), fd = -1;
	(void)name, (void)base;
	hex_of(id, nr > 0 ? (size_t)nr : 0, w.build_id, sizeof w.build_id);
	if (nr > 1)
		fd = try_open(ret_name, &w, "/usr/lib/debug/.build-id/%.2s/%s.debug", w.build_id,
			w.build_id + 2);
	const char *slash = file ? strrchr(file, '/') : NULL;
	/* a link is a name without a directory */
	if (fd < 0 && link && slash && !strchr(link, '/') && strcmp(link, "..") != 0) {
		int length = (int)(slash - file);
		fd = try_open(ret_name, &w, "%.*s/.debug/%s", length, file, link);
		if (fd < 0)
			fd = try_open(ret_name, &w, "/usr/lib/debug%.*s/%s", length, file, link);
		if (fd < 0 && strcmp(link, slash + 1) != 0)
			fd = try_open(ret_name, &w, "%.*s/%s", length, file, link);
	}
	return fd;
}

/* Is one of the names at which libdw's own search looks none of a regular file? It would open it,
 * and wait for whoever writes to a FIFO. */
static bool find_would_wait(const char *file, const char *link)
{
	static const struct {
		const char *before, *after; /* the directory of the file */
		bool in_directory;
	} place[] = {{"", "/", true}, {"", "/.debug/", true}, {"/usr/lib/debug", "/", true},
		{"", "", false}};
	const char *slash = file ? strrchr(file, '/') : NULL;
	const char *name = link ? link : slash ? slash + 1 : file;
	for (size_t i = 0; name && i < sizeof place / sizeof *place; i++) {
		char path[PATH_MAX];
		struct stat st;
		int n = snprintf(path, sizeof path, "%s%.*s%s%s%s", place[i].before,
			slash && place[i].in_directory ? (int)(slash - file) : 0, file ? file : "",
			place[i].after, name, link ? "" : ".debug");
		if (n > 0 && n < PATH_MAX && !stat(path, &st) && !S_ISREG(st.st_mode))
			return true;
	}
	return false;
}

/* What is not installed may be fetched: libdw asks debuginfod when $DEBUGINFOD_URLS is set. */
static int find_or_fetch(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
	const char *file, const char *link, GElf_Word crc, char **ret_name)
{
	int fd = find_installed(module, user, name, base, file, link, crc, ret_name);
	if (fd >= 0 || find_would_wait(file, link))
		return fd;
	*user = NULL;
	fd = dwfl_standard_find_debuginfo(module, user, name, base, file, link, crc, ret_name);
	if (fd < 0 && link && !crc)
		*user = module;
	return fd;
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

static void find_dynamic_in(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
	const char *const *name, uint64_t *ret, size_t nr)
{
	Elf_Data *data = elf_getdata(section, NULL);
	const uint64_t nr_symbols =
		data && header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	GElf_Sym symbol;
	for (uint64_t i = 0; i < nr_symbols && i < INT32_MAX; i++) {
		const char *text =
			gelf_getsym(data, (int)i, &symbol) && symbol.st_shndx != SHN_UNDEF
				? elf_strptr(elf, header->sh_link, symbol.st_name)
				: NULL;
		for (size_t k = 0; text && k < nr; k++)
			if (strcmp(text, name[k]) == 0)
				ret[k] = symbol.st_value;
	}
}

bool symbol_elf_dynamic(const char *path, const char *const *name, uint64_t *ret, size_t nr)
{
	memset(ret, 0, nr * sizeof *ret);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bool is_elf = elf && elf_kind(elf) == ELF_K_ELF;
	for (Elf_Scn *section = NULL; is_elf && (section = elf_nextscn(elf, section));) {
		GElf_Shdr header;
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
			find_dynamic_in(elf, section, &header, name, ret, nr);
	}
	elf_end(elf);
	close(fd);
	return is_elf;
}
