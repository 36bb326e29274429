/* SPDX-License-Identifier: Apache-2.0 */
/* symbol.c - names and lines from ELF and DWARF, by libdwfl; function starts from .eh_frame_hdr
 * when there are no names. */
#include "symbol/private.h"

#include <dwarf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	DATAREL_SDATA4 = DW_EH_PE_datarel | DW_EH_PE_sdata4,
	EH_FRAME_HDR_BYTES = 12, /* version, three encodings, eh_frame_ptr, fde_count */
};

struct symbol_file {
	Dwfl *dwfl;
	Dwfl_Module *module;
	GElf_Addr bias; /* of dwfl's addresses over those as linked */
	const char *base_name;
	/* .eh_frame_hdr's table: (function start, description), sorted, relative to the header's
	 * address */
	const uint8_t *table;
	size_t nr_functions;
	uint64_t table_base;
	bool sorted;
	struct symbol_tables tables;
	struct symbol_units units;
	struct symbol_statics statics;
	struct base_arena *texts;
	struct base_map readable; /* a name's address, or a scope's DIE -> its text */
	enum symbol_why why;
	char path[];
};
enum { KEY_NAME, KEY_SCOPE };

static const struct {
	const char *line, *advice;
} reasons[] = {
#define WHY(name, line, advice) {line, advice},
#include "symbol/reasons.def"
};

const char *symbol_why_line(enum symbol_why w)
{
	return w < SYMBOL_WHY_NR ? reasons[w].line : "";
}

const char *symbol_why_advice(enum symbol_why w)
{
	return w < SYMBOL_WHY_NR ? reasons[w].advice : "";
}

/* ---- function starts ------------------------------------------------------------------------- */

static void find_table(struct symbol_file *f, Elf *elf)
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
		if (header[0] != 1 || header[2] != DW_EH_PE_udata4 || header[3] != DATAREL_SDATA4)
			return;
		memcpy(&count, header + 8, sizeof count);
		if (count > (ph.p_filesz - EH_FRAME_HDR_BYTES) / 8)
			return;
		f->table = header + EH_FRAME_HDR_BYTES;
		f->nr_functions = count;
		f->table_base = ph.p_vaddr;
		return;
	}
}

static uint64_t table_start(const struct symbol_file *f, size_t i)
{
	int32_t relative;
	memcpy(&relative, f->table + i * 8, sizeof relative);
	return f->table_base + (uint64_t)(int64_t)relative;
}

/* The last function start that is not after `offset`. */
static bool function_start(const struct symbol_file *f, uint64_t offset, uint64_t *ret)
{
	size_t low = BASE_PARTITION(i, f->nr_functions, table_start(f, i) <= offset);
	if (!low)
		return false;
	*ret = table_start(f, low - 1);
	return true;
}

/* ---- open ------------------------------------------------------------------------------------ */

static bool symbol_is_sum(const char *build_id)
{
	return !strncmp(build_id, SYMBOL_SUM_PREFIX, strlen(SYMBOL_SUM_PREFIX));
}

static enum symbol_why check_file(int fd, const char *wanted)
{
	char found[SYMBOL_BUILD_ID_TEXT] = "";
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bool is_elf = elf && elf_kind(elf) == ELF_K_ELF;
	if (is_elf && !symbol_build_id_of(elf, found) && symbol_is_sum(wanted))
		symbol_sum_of(fd, found);
	elf_end(elf);
	if (!is_elf)
		return SYMBOL_WHY_not_elf;
	return *wanted && strcmp(found, wanted) != 0 ? SYMBOL_WHY_other_build : SYMBOL_WHY_none;
}

/* The file itself; else, when it is gone or another one, the debug file that is installed for its
 * build id, which has all names and lines. */
static int symbol_open_file(const char *path, const char *build_id, char debug[static PATH_MAX],
	enum symbol_why *ret_why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	*ret_why = fd < 0 ? SYMBOL_WHY_no_file : check_file(fd, build_id);
	*debug = '\0';
	if (*ret_why == SYMBOL_WHY_none)
		return fd;
	if (fd >= 0)
		close(fd);
	if (strlen(build_id) < 3 || strchr(build_id, '/') || symbol_is_sum(build_id))
		return -1;
	int n = snprintf(
		debug, PATH_MAX, "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2);
	fd = n > 0 && n < PATH_MAX ? open(debug, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0 && check_file(fd, build_id) == SYMBOL_WHY_none)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* (libdw would load libdebuginfod, which has curl and TLS behind it, to learn that there is nobody
 * to be asked.) */
static bool fetches(const struct symbol_options *opts)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	return opts && opts->fetch && urls && *urls;
}

struct symbol_file *symbol_open_with(const char *path, const char *build_id,
	const struct symbol_options *opts, enum symbol_why *ret_why)
{
	char debug[PATH_MAX];
	size_t length = strlen(path);
	enum symbol_why why;
	int fd = symbol_open_file(path, build_id, debug, &why);
	struct symbol_file *f = NULL;
	if (fd < 0)
		goto fail;
	why = SYMBOL_WHY_no_memory;
	f = base_alloc(sizeof *f + length + 1);
	if (!f)
		goto fail;
	memcpy(f->path, path, length + 1);
	const char *slash = strrchr(f->path, '/');
	f->base_name = slash ? slash + 1 : f->path;
	f->texts = base_arena_new(SYMBOL_TEXT_LIMIT_BYTES);
	f->dwfl = dwfl_begin(fetches(opts) ? &symbol_callbacks_fetch : &symbol_callbacks);
	if (!f->texts || !f->dwfl)
		goto fail;
	f->module = dwfl_report_offline(f->dwfl, f->base_name, *debug ? debug : f->path, fd);
	if (!f->module) {
		why = SYMBOL_WHY_not_elf;
		goto fail;
	}
	fd = -1; /* dwfl's now */
	dwfl_report_end(f->dwfl, NULL, NULL);
	Elf *elf = dwfl_module_getelf(f->module, &f->bias);
	if (!elf) {
		why = SYMBOL_WHY_not_elf;
		goto fail;
	}
	find_table(f, elf);
	if (ret_why)
		*ret_why = SYMBOL_WHY_none;
	return f;
fail:
	if (ret_why)
		*ret_why = why;
	if (fd >= 0)
		close(fd);
	return symbol_close(f);
}

struct symbol_file *symbol_open(const char *path, const char *build_id)
{
	return symbol_open_with(path, build_id, NULL, NULL);
}

struct symbol_file *symbol_close(struct symbol_file *f)
{
	if (!f)
		return NULL;
	symbol_tables_fini(&f->tables);
	symbol_units_fini(&f->units);
	symbol_statics_fini(&f->statics);
	if (f->dwfl)
		dwfl_end(f->dwfl);
	base_map_fini(&f->readable);
	base_arena_free(f->texts);
	base_free(f);
	return NULL;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* A name as one reads it, made once for each key. NULL: no memory. */
static const char *readable(struct symbol_file *f, unsigned kind, uint64_t key, const char *name)
{
	uint64_t known;
	if (base_map_get(&f->readable, kind, key, &known))
		return (const char *)(uintptr_t)known;
	char *text = symbol_readable(name);
	const char *kept = text ? base_arena_strndup(f->texts, text, strlen(text)) : NULL;
	free(text); /* allowed: of the demangler */
	if (!kept || base_map_put(&f->readable, kind, key, (uintptr_t)kept) != BASE_OK)
		f->why = SYMBOL_WHY_no_memory;
	return kept;
}

static const char *name_of_entry(struct symbol_file *f, const struct symbol_entry *e)
{
	return readable(f, KEY_NAME, (uintptr_t)e->name, e->name);
}

/* Of a function without a name: by where it starts. */
static const char *made_up(struct symbol_file *f, uint64_t start)
{
	char text[NAME_MAX + 32];
	snprintf(text, sizeof text, "%s+0x%" PRIx64, f->base_name, start);
	return readable(f, KEY_NAME, start | 1ull << 63, text);
}

/* ---- look up --------------------------------------------------------------------------------- */

static const struct symbol_tables *tables(struct symbol_file *f)
{
	if (!f->sorted)
		symbol_tables_init(&f->tables, f->module, f->bias);
	f->sorted = true;
	return &f->tables;
}

static bool symbol_name_code(struct symbol_file *f, uint64_t offset, struct symbol_found *ret)
{
	uint64_t start = UINT64_MAX;
	*ret = (struct symbol_found){0};
	f->why = SYMBOL_WHY_none;
	bool has_start = function_start(f, offset, &start);
	const struct symbol_entry *e = symbol_table_at(&tables(f)->code, offset, start);
	if (e) {
		ret->function = name_of_entry(f, e);
		ret->function_offset = e->value;
		ret->exact = true;
		return ret->function != NULL;
	}
	f->why = f->tables.failed                  ? SYMBOL_WHY_no_memory
		 : has_start || !f->tables.code.nr ? SYMBOL_WHY_stripped
						   : SYMBOL_WHY_outside;
	if (!has_start)
		return false;
	ret->function = made_up(f, start);
	ret->function_offset = start;
	return ret->function != NULL;
}

/* Of libc, what is around main() and a thread's function: whoever reads a call path has no use for
 * their lines, for which all that libc's debug file says of types would have to be decompressed. */
static bool is_around_all(const struct symbol_file *f, const char *function)
{
	static const char *const file[] = {"libc.so", "libc-2.", "libpthread", "ld-linux", "ld-2."};
	static const char *const name[] = {"__libc_start_main", "__libc_start_main_impl",
		"__libc_start_call_main", "start_thread", "clone", "__clone", "__GI___clone",
		"clone3", "__clone3", "__GI___clone3", "exit", "__run_exit_handlers", "_dl_fini",
		"_dl_call_fini"};
	bool is_libc = false;
	for (size_t i = 0; i < BASE_COUNT(file) && !is_libc; i++)
		is_libc = !strncmp(f->base_name, file[i], strlen(file[i]));
	for (size_t i = 0; i < BASE_COUNT(name) && is_libc; i++)
		if (!strcmp(function, name[i]))
			return true;
	return false;
}

static void symbol_add_line(struct symbol_file *f, Dwarf_Die *unit, uint64_t address,
	const char **ret_file, uint64_t *ret_line)
{
	int number = 0;
	Dwarf_Line *line = dwarf_getsrc_die(unit, address);
	*ret_file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
	*ret_line = *ret_file && !dwarf_lineno(line, &number) && number > 0 ? (uint64_t)number : 0;
	if (!*ret_file && f->why == SYMBOL_WHY_none)
		f->why = SYMBOL_WHY_no_lines;
}

bool symbol_code(struct symbol_file *f, uint64_t offset, struct symbol_found *ret)
{
	Dwarf_Die unit;
	Dwarf_Addr bias;
	bool found = symbol_name_code(f, offset, ret);
	if (found && is_around_all(f, ret->function))
		return true;
	if (symbol_units_die(&f->units, f->module, offset + f->bias, &unit, &bias))
		symbol_add_line(f, &unit, offset + f->bias - bias, &ret->file, &ret->line);
	else if (f->why == SYMBOL_WHY_none)
		f->why = SYMBOL_WHY_no_lines;
	return found;
}

static const char *name_of_scope(struct symbol_file *f, Dwarf_Die *unit, Dwarf_Off offset)
{
	Dwarf_Die die;
	Dwarf_Attribute a;
	uint64_t known;
	if (base_map_get(&f->readable, KEY_SCOPE, offset, &known))
		return (const char *)(uintptr_t)known;
	if (!dwarf_offdie(dwarf_cu_getdwarf(unit->cu), offset, &die))
		return NULL;
	const char *name = dwarf_formstring(dwarf_attr_integrate(&die, DW_AT_linkage_name, &a));
	if (!name)
		name = dwarf_formstring(dwarf_attr_integrate(&die, DW_AT_MIPS_linkage_name, &a));
	if (!name)
		name = dwarf_diename(&die);
	return name ? readable(f, KEY_SCOPE, offset, name) : NULL;
}

/* The frames that are inlined, then the function that they are in. */
static size_t symbol_add_inlined(struct symbol_file *f, Dwarf_Die *unit, uint64_t address,
	const struct symbol_found *whole, struct symbol_frame *ret, size_t max)
{
	const struct symbol_unit *u = symbol_units_scopes(&f->units, unit);
	uint32_t at = u ? symbol_unit_at(u, address) : SYMBOL_NO_SCOPE;
	Dwarf_Files *files = NULL;
	Dwarf_Half version = 0;
	size_t nr = 0;
	const char *file = whole->file;
	uint64_t line = whole->line;
	dwarf_cu_info(unit->cu, &version, NULL, NULL, NULL, NULL, NULL, NULL);
	for (; at != SYMBOL_NO_SCOPE && u->scope[at].inlined && nr + 1 < max;
		at = u->scope[at].parent) {
		const struct symbol_scope *s = &u->scope[at];
		const char *name = name_of_scope(f, unit, s->die);
		ret[nr++] = (struct symbol_frame){
			.function = name, .file = file, .line = line, .inlined = true};
		if (!files && dwarf_getsrcfiles(unit, &files, NULL))
			files = NULL;
		/* File 0 is none before DWARF 5, and then the unit's own. */
		file = files && (s->call_file || version >= 5)
			       ? dwarf_filesrc(files, s->call_file, NULL, NULL)
			       : NULL;
		line = file ? s->call_line : 0;
		if (s->parent == at)
			break;
	}
	ret[nr++] = (struct symbol_frame){.function = whole->function, .file = file, .line = line};
	return nr;
}

size_t symbol_frames(struct symbol_file *f, uint64_t offset, struct symbol_frame *ret, size_t max)
{
	struct symbol_found whole;
	Dwarf_Die unit;
	Dwarf_Addr bias;
	if (!max || !symbol_name_code(f, offset, &whole))
		return 0;
	ret[0] = (struct symbol_frame){.function = whole.function};
	if (is_around_all(f, whole.function))
		return 1;
	if (symbol_units_die(&f->units, f->module, offset + f->bias, &unit, &bias)) {
		uint64_t address = offset + f->bias - bias;
		symbol_add_line(f, &unit, address, &whole.file, &whole.line);
		return symbol_add_inlined(f, &unit, address, &whole, ret, max);
	}
	if (f->why == SYMBOL_WHY_none)
		f->why = SYMBOL_WHY_no_lines;
	return 1;
}

enum symbol_why symbol_why(const struct symbol_file *f)
{
	return f->why;
}

bool symbol_data(struct symbol_file *f, uint64_t offset, struct base_str *ret)
{
	const struct symbol_entry *e = symbol_table_at(&tables(f)->data, offset, UINT64_MAX);
	const char *name = e ? name_of_entry(f, e) : NULL;
	if (!name)
		return false;
	base_str_add(ret, name);
	if (!symbol_field_add(ret, &f->statics, f->module, f->bias, e, offset - e->value) &&
		offset != e->value)
		base_str_addf(ret, "+0x%" PRIx64, offset - e->value);
	return true;
}

bool symbol_pointee(struct symbol_file *f, uint64_t code, const struct symbol_holder *h,
	struct symbol_type *ret)
{
	Dwarf_Die unit;
	Dwarf_Addr bias;
	*ret = (struct symbol_type){0};
	return symbol_units_die(&f->units, f->module, code + f->bias, &unit, &bias) &&
	       symbol_field_pointee(
		       &f->statics, f->module, f->bias, &unit, code + f->bias - bias, h, ret);
}

void symbol_type_member(
	struct symbol_file *f, const struct symbol_type *t, uint64_t offset, struct base_str *out)
{
	symbol_field_member(out, f->module, t->die, offset);
}

/* The first that reaches behind an address ends there itself. */
static const struct symbol_entry *symbol_first_behind(const struct symbol_table *t, uint64_t offset)
{
	size_t low = BASE_PARTITION(i, t->nr, t->entry[i].reach <= offset);
	return low < t->nr ? &t->entry[low] : NULL;
}

bool symbol_variable(struct symbol_file *f, uint64_t offset, struct symbol_variable *ret)
{
	const struct symbol_entry *e = symbol_first_behind(&tables(f)->data, offset);
	const char *name = e ? name_of_entry(f, e) : NULL;
	if (!name)
		return false;
	*ret = (struct symbol_variable){name, e->value, e->size};
	return true;
}

bool symbol_section(struct symbol_file *f, uint64_t offset, struct symbol_variable *ret)
{
	const struct symbol_entry *e = symbol_first_behind(&tables(f)->sections, offset);
	if (!e)
		return false;
	*ret = (struct symbol_variable){e->name, e->value, e->size};
	return true;
}

Elf *symbol_elf(struct symbol_file *f)
{
	return dwfl_module_getelf(f->module, &f->bias);
}
