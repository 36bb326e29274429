/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.c - a Go program's file: its version, its functions and lines. They are in every such program, stripped or not.
 *
 * Source: src/debug/gosym/pclntab.go, src/runtime/symtab.go and src/debug/buildinfo of Go 1.18 to 1.26.
 */
#include "golive/private.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

enum {
	POINTER_BYTES = 8,
	HEADER_WORDS = 8,
	HEADER_BYTES = 8 + HEADER_WORDS * POINTER_BYTES,
	FUNCTION_ENTRY = 0,
	FUNCTION_NAME = 4,
	FUNCTION_STACK = 16,
	FUNCTION_FILES = 20,
	FUNCTION_LINES = 24,
	FUNCTION_VALUES = 28,
	FUNCTION_UNIT = 32,
	NUMBER_BITS_MAX = 35,
	STEPS_MAX = 1 << 20,
	REASONS_MAX = 64
};

/* ---- the file -------------------------------------------------------------------------------- */

static bool image_has(const struct golive_image *im, uint64_t at, uint64_t nr)
{
	return at <= im->nr_bytes && nr <= im->nr_bytes - at;
}

static bool image_section(
	const struct golive_image *im, const Elf64_Ehdr *head, const char *name, Elf64_Shdr *ret)
{
	Elf64_Shdr names;
	uint64_t table = head->e_shoff;
	size_t length = strlen(name) + 1;
	if (head->e_shentsize != sizeof names || head->e_shstrndx >= head->e_shnum ||
		!image_has(im, table, (uint64_t)head->e_shnum * sizeof names))
		return false;
	memcpy(&names, im->bytes + table + head->e_shstrndx * sizeof names, sizeof names);
	for (unsigned i = 0; i < head->e_shnum; i++) {
		memcpy(ret, im->bytes + table + i * sizeof *ret, sizeof *ret);
		if (ret->sh_name <= names.sh_size &&
			image_has(im, names.sh_offset, names.sh_size) &&
			length <= names.sh_size - ret->sh_name &&
			!memcmp(im->bytes + names.sh_offset + ret->sh_name, name, length) &&
			(ret->sh_type == SHT_NOBITS || image_has(im, ret->sh_offset, ret->sh_size)))
			return true;
	}
	return false;
}

const uint8_t *golive_image_at(const struct golive_image *im, uint64_t address, size_t nr_bytes)
{
	Elf64_Ehdr head;
	Elf64_Phdr p;
	memcpy(&head, im->bytes, sizeof head);
	for (unsigned i = 0; head.e_phentsize == sizeof p && i < head.e_phnum; i++) {
		if (!image_has(im, head.e_phoff + i * sizeof p, sizeof p))
			return NULL;
		memcpy(&p, im->bytes + head.e_phoff + i * sizeof p, sizeof p);
		if (p.p_type == PT_LOAD && address >= p.p_vaddr &&
			address - p.p_vaddr < p.p_filesz &&
			nr_bytes <= p.p_filesz - (address - p.p_vaddr) &&
			image_has(im, p.p_offset, p.p_filesz))
			return im->bytes + p.p_offset + (address - p.p_vaddr);
	}
	return NULL;
}

static bool image_asks_for_a_loader(const struct golive_image *im, const Elf64_Ehdr *head)
{
	Elf64_Phdr p;
	for (unsigned i = 0; head->e_phentsize == sizeof p && i < head->e_phnum; i++) {
		if (!image_has(im, head->e_phoff + i * sizeof p, sizeof p))
			return true;
		memcpy(&p, im->bytes + head->e_phoff + i * sizeof p, sizeof p);
		if (p.p_type == PT_INTERP)
			return true;
	}
	return false;
}

/* What is in the file of the program's data, word by word. */
struct image_scan {
	unsigned segment;
	uint64_t offset;  /* of the next word in it */
	uint64_t address; /* set: of the last one */
};

/* The next place with so many bytes behind it; NULL: there is none any more. */
static const uint8_t *image_next(
	const struct golive_image *im, struct image_scan *scan, size_t nr_bytes)
{
	Elf64_Ehdr head;
	Elf64_Phdr p;
	memcpy(&head, im->bytes, sizeof head);
	for (; head.e_phentsize == sizeof p && scan->segment < head.e_phnum;
		scan->segment++, scan->offset = 0) {
		if (!image_has(im, head.e_phoff + scan->segment * sizeof p, sizeof p))
			return NULL;
		memcpy(&p, im->bytes + head.e_phoff + scan->segment * sizeof p, sizeof p);
		if (p.p_type != PT_LOAD || (p.p_flags & PF_X) ||
			!image_has(im, p.p_offset, p.p_filesz) || p.p_filesz < nr_bytes ||
			scan->offset > p.p_filesz - nr_bytes)
			continue;
		scan->address = p.p_vaddr + scan->offset;
		scan->offset += sizeof(uint64_t);
		return im->bytes + p.p_offset + (scan->address - p.p_vaddr);
	}
	return NULL;
}

struct image_string { /* Go's */
	uint64_t at, length;
};

/* The number behind "go1."; 0: it is no such text. */
static unsigned image_version_in(const uint8_t *text, size_t nr)
{
	static const char begin[] = "go1.";
	unsigned version = 0;
	if (nr <= sizeof begin - 1 || memcmp(text, begin, sizeof begin - 1) != 0)
		return 0;
	for (size_t i = sizeof begin - 1;
		i < nr && i < sizeof begin + 1 && text[i] >= '0' && text[i] <= '9'; i++)
		version = version * 10 + (unsigned)(text[i] - '0');
	return version;
}

/* Where the linker was not to say it, the runtime's own variable does. 0: there are two that differ. */
static unsigned image_version_of_data(const struct golive_image *im)
{
	enum { TEXT_MAX = 32 };
	struct image_scan scan = {0};
	struct image_string s;
	unsigned found = 0;
	for (const uint8_t *p; (p = image_next(im, &scan, sizeof s));) {
		memcpy(&s, p, sizeof s);
		const uint8_t *text = s.length && s.length <= TEXT_MAX
					      ? golive_image_at(im, s.at, s.length)
					      : NULL;
		unsigned version = text ? image_version_in(text, s.length) : 0;
		if (version && found && version != found)
			return 0;
		found = version ? version : found;
	}
	return found;
}

/* "\xff Go buildinf:", the pointers' size, flags; from byte 32 on the length and text of "go1.19.8". */
static unsigned image_version(const struct golive_image *im, const Elf64_Shdr *s)
{
	enum { FLAG_INLINE = 2, FLAGS_AT = 15, LENGTH_AT = 32 };
	static const char magic[] = "\xff Go buildinf:";
	const uint8_t *p = im->bytes + s->sh_offset;
	if (s->sh_type == SHT_NOBITS || s->sh_size <= LENGTH_AT ||
		memcmp(p, magic, sizeof magic - 1) != 0 || !(p[FLAGS_AT] & FLAG_INLINE) ||
		p[LENGTH_AT] >= s->sh_size - LENGTH_AT)
		return 0;
	return image_version_in(p + LENGTH_AT + 1, p[LENGTH_AT]);
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool image_word(const struct golive_image *im, uint64_t at, uint32_t *ret)
{
	if (at > im->table_bytes || im->table_bytes - at < sizeof *ret)
		return false;
	memcpy(ret, im->table + at, sizeof *ret);
	return true;
}

static const char *image_text(const struct golive_image *im, uint64_t at)
{
	return at < im->table_bytes && memchr(im->table + at, '\0', im->table_bytes - at)
		       ? (const char *)im->table + at
		       : "";
}

static bool image_take_table(struct golive_image *im, uint64_t text)
{
	static const uint32_t magic[] = {0xfffffff0 /* 1.18 */, 0xfffffff1 /* 1.20 */};
	uint64_t word[HEADER_WORDS];
	uint32_t first;
	if (im->table_bytes < HEADER_BYTES || !image_word(im, 0, &first) ||
		(first != magic[0] && first != magic[1]) || im->table[7] != POINTER_BYTES ||
		!im->table[6])
		return false;
	memcpy(word, im->table + 8, sizeof word);
	im->is_new = first == magic[1];
	im->code_unit = im->table[6];
	im->nr_functions = word[0];
	im->text = word[2] ? word[2] : text; /* (since 1.26 it is not said there) */
	im->names = word[3];
	im->units = word[4];
	im->files = word[5];
	im->codes = word[6];
	im->functions = word[7];
	for (unsigned i = 3; i < HEADER_WORDS; i++)
		if (word[i] >= im->table_bytes)
			return false;
	return im->nr_functions && im->nr_functions < (im->table_bytes - im->functions) / 8;
}

/* Place of function i's description in the table. */
static bool image_function(
	const struct golive_image *im, uint64_t i, uint64_t *ret_entry, uint64_t *ret_at)
{
	uint32_t entry, at;
	if (!image_word(im, im->functions + 8 * i, &entry) ||
		!image_word(im, im->functions + 8 * i + 4, &at))
		return false;
	*ret_entry = im->text + entry;
	*ret_at = im->functions + at;
	return true;
}

static const char *image_name(const struct golive_image *im, uint64_t at)
{
	uint32_t name;
	return image_word(im, at + FUNCTION_NAME, &name) ? image_text(im, im->names + name) : "";
}

uint64_t golive_image_function(const struct golive_image *im, const char *name)
{
	uint64_t entry, at;
	for (uint64_t i = 0; i < im->nr_functions && image_function(im, i, &entry, &at); i++)
		if (!strcmp(image_name(im, at), name))
			return entry;
	return 0;
}

/* Seven bits a byte, the lowest first. */
static bool image_number(const struct golive_image *im, uint64_t *at, uint32_t *ret)
{
	*ret = 0;
	for (unsigned shift = 0; shift < NUMBER_BITS_MAX && *at < im->table_bytes; shift += 7) {
		uint8_t byte = im->table[(*at)++];
		*ret |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* What a list of (change of the value, length of code) has for a place of the code; -1: nothing. */
static int32_t image_value(
	const struct golive_image *im, uint32_t list, uint64_t entry, uint64_t pc)
{
	uint64_t at = im->codes + list;
	uint32_t value = UINT32_MAX, change, length;
	for (unsigned i = 0; list && i < STEPS_MAX; i++) {
		if (!image_number(im, &at, &change) || (!change && i) ||
			!image_number(im, &at, &length))
			break;
		value += change & 1 ? ~(change >> 1) : change >> 1;
		entry += (uint64_t)length * im->code_unit;
		if (pc < entry)
			return (int32_t)value;
	}
	return -1;
}

static const char *image_file(
	const struct golive_image *im, uint64_t at, uint64_t entry, uint64_t pc)
{
	uint32_t list, unit, file;
	if (!image_word(im, at + FUNCTION_FILES, &list) ||
		!image_word(im, at + FUNCTION_UNIT, &unit))
		return "";
	int32_t number = image_value(im, list, entry, pc);
	if (number < 0 ||
		!image_word(im, im->units + 4 * ((uint64_t)unit + (uint32_t)number), &file))
		return "";
	return image_text(im, im->files + file);
}

/* The number of the last function that begins at or before `pc`; false: it is in none. */
static bool image_find(const struct golive_image *im, uint64_t pc, uint64_t *ret_entry,
	uint64_t *ret_end, uint64_t *ret_at)
{
	uint64_t low = 0, high = im->nr_functions, at;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2, entry;
		if (!image_function(im, middle, &entry, &at))
			return false;
		if (entry <= pc)
			low = middle;
		else
			high = middle;
	}
	return image_function(im, low + 1, ret_end, &at) &&
	       image_function(im, low, ret_entry, ret_at) && pc >= *ret_entry && pc < *ret_end;
}

static uint8_t image_kind(const struct golive_image *im, uint64_t at)
{
	uint64_t kind = at + FUNCTION_UNIT + 4 + (im->is_new ? 4 : 0);
	return kind < im->table_bytes ? im->table[kind] : 0;
}

/* Wrappers' kind has another number in each version: it is what those have that no file has the source of. */
static uint8_t image_wrapper_kind(const struct golive_image *im)
{
	uint64_t entry, at;
	for (uint64_t i = 0; i < im->nr_functions && image_function(im, i, &entry, &at); i++)
		if (image_kind(im, at) &&
			!strcmp(image_file(im, at, entry, entry), "<autogenerated>"))
			return image_kind(im, at);
	return 0;
}

/* ---- inlined calls ---------------------------------------------------------------------------- */

/* The runtime's description of the program (moduledata) begins with pointers to the table and to its names. */
static uint64_t image_inlined(const struct golive_image *im)
{
	enum { GOFUNC_1_18 = 304, GOFUNC_1_20 = 320 };
	const uint64_t sought[2] = {im->table_address, im->table_address + im->names};
	struct image_scan scan = {0};
	uint64_t inlined;
	for (const uint8_t *p; (p = image_next(im, &scan, GOFUNC_1_20 + sizeof inlined));) {
		if (memcmp(p, sought, sizeof sought) != 0)
			continue;
		memcpy(&inlined, p + (im->is_new ? GOFUNC_1_20 : GOFUNC_1_18), sizeof inlined);
		return inlined;
	}
	return 0;
}

/* One of the function's lists: behind its fixed part, first those of values, then those of data. */
static bool image_list(
	const struct golive_image *im, uint64_t at, bool is_data, uint32_t number, uint32_t *ret)
{
	uint64_t end = at + FUNCTION_UNIT + 4 + (im->is_new ? 4 : 0) + 4;
	uint32_t nr_values;
	if (end > im->table_bytes || !image_word(im, at + FUNCTION_VALUES, &nr_values) ||
		number >= (is_data ? im->table[end - 1] : nr_values))
		return false;
	return image_word(im, end + 4 * ((is_data ? (uint64_t)nr_values : 0) + number), ret) &&
	       *ret != UINT32_MAX;
}

/* The call that the code at `pc` was inlined for: whose code it is, and where in the function that was called. False: it is the function's own. */
static bool image_inlined_call(const struct golive_image *im, uint64_t at, uint64_t entry,
	uint64_t pc, const char **ret_name, uint64_t *ret_pc)
{
	enum {
		LIST_OF_CALLS = 2,
		DATA_OF_CALLS = 3,
		OLD_BYTES = 20,
		NEW_BYTES = 16,
		OLD_NAME = 12,
		NEW_NAME = 4
	};
	uint32_t list, data, name, caller;
	if (!im->inlined || !image_list(im, at, false, LIST_OF_CALLS, &list) ||
		!image_list(im, at, true, DATA_OF_CALLS, &data))
		return false;
	int32_t number = image_value(im, list, entry, pc);
	size_t bytes = im->is_new ? NEW_BYTES : OLD_BYTES,
	       name_at = im->is_new ? NEW_NAME : OLD_NAME;
	const uint8_t *call =
		number < 0
			? NULL
			: golive_image_at(im, im->inlined + data + (uint64_t)number * bytes, bytes);
	if (!call)
		return false;
	memcpy(&name, call + name_at, sizeof name);
	memcpy(&caller, call + name_at + 4, sizeof caller);
	*ret_name = image_text(im, im->names + name);
	*ret_pc = entry + caller;
	return **ret_name != '\0';
}

uint64_t golive_image_wrapped(const struct golive_image *im, uint64_t entry)
{
	enum { DATA_OF_WRAPPED = 7 };
	uint64_t begin, end, at;
	uint32_t data, to;
	if (!im->inlined || !image_find(im, entry, &begin, &end, &at) ||
		!image_list(im, at, true, DATA_OF_WRAPPED, &data))
		return entry;
	const uint8_t *place = golive_image_at(im, im->inlined + data, sizeof to);
	if (!place)
		return entry;
	memcpy(&to, place, sizeof to);
	return im->text + to;
}

bool golive_image_is_frameless(const struct golive_image *im, uint64_t pc)
{
	uint64_t entry, end, at;
	uint32_t list;
	return image_find(im, pc, &entry, &end, &at) &&
	       image_word(im, at + FUNCTION_STACK, &list) && !image_value(im, list, entry, pc);
}

size_t golive_image_places(
	const struct golive_image *im, uint64_t pc, struct golive_place *ret, size_t max)
{
	uint64_t entry, end, at;
	size_t nr = 0;
	bool is_inlined = true;
	if (!image_find(im, pc, &entry, &end, &at))
		return 0;
	while (is_inlined && nr < max && pc >= entry && pc < end) {
		uint32_t lines;
		uint64_t caller = 0;
		int32_t line = image_word(im, at + FUNCTION_LINES, &lines)
				       ? image_value(im, lines, entry, pc)
				       : -1;
		ret[nr] = (struct golive_place){.function = image_name(im, at),
			.file = image_file(im, at, entry, pc),
			.entry = entry,
			.line = line > 0 ? (uint32_t)line : 0};
		is_inlined = image_inlined_call(im, at, entry, pc, &ret[nr].function, &caller);
		ret[nr].is_wrapper =
			!is_inlined && im->wrapper_kind && image_kind(im, at) == im->wrapper_kind;
		nr++;
		pc = caller;
	}
	return nr;
}

enum base_status golive_image_read(
	struct golive_image *im, const uint8_t *bytes, size_t nr_bytes, struct base_err *err)
{
	Elf64_Ehdr head;
	Elf64_Shdr text, table, info;
	*im = (struct golive_image){.bytes = bytes, .nr_bytes = nr_bytes};
	if (nr_bytes < sizeof head)
		return base_fail(err, BASE_ERR_FOREIGN, "is no program");
	memcpy(&head, bytes, sizeof head);
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
		head.e_machine != EM_X86_64 || !image_section(im, &head, ".text", &text) ||
		(!image_section(im, &head, ".gopclntab", &table) &&
			!image_section(im, &head, ".data.rel.ro.gopclntab", &table)) ||
		table.sh_type == SHT_NOBITS)
		return base_fail(
			err, BASE_ERR_FOREIGN, "is no program that Go built for this processor");
	im->table = bytes + table.sh_offset;
	im->table_bytes = table.sh_size;
	im->table_address = table.sh_addr;
	im->is_static = !image_asks_for_a_loader(im, &head);
	im->version =
		image_section(im, &head, ".go.buildinfo", &info) ? image_version(im, &info) : 0;
	if (!im->version)
		im->version = image_version_of_data(im);
	if (!image_take_table(im, text.sh_addr))
		return base_fail(err, BASE_ERR_FOREIGN,
			"was built by a Go before 1.18, or its table of functions is damaged");
	im->wrapper_kind = image_wrapper_kind(im);
	im->inlined = image_inlined(im);
	return BASE_OK;
}

/* ---- why goroutines wait ---------------------------------------------------------------------- */

static bool image_string_is(
	const struct golive_image *im, const struct image_string *s, const char *text)
{
	size_t length = strlen(text);
	const uint8_t *p = s->length == length ? golive_image_at(im, s->at, length) : NULL;
	return p && !memcmp(p, text, length);
}

/* In the data, behind the empty text of reason 0: the text of reason 1 is the same in all versions. */
uint64_t golive_image_reasons(const struct golive_image *im)
{
	struct image_scan scan = {0};
	struct image_string s;
	for (const uint8_t *p; (p = image_next(im, &scan, sizeof s));) {
		memcpy(&s, p, sizeof s);
		if (image_string_is(im, &s, "GC assist marking"))
			return scan.address - sizeof s;
	}
	return 0;
}

bool golive_image_reason(
	const struct golive_image *im, uint64_t table, uint32_t number, char *to, size_t size)
{
	struct image_string s;
	const uint8_t *entry = table && number < REASONS_MAX
				       ? golive_image_at(im, table + number * sizeof s, sizeof s)
				       : NULL;
	if (!entry)
		return false;
	memcpy(&s, entry, sizeof s);
	const uint8_t *text = s.length < size ? golive_image_at(im, s.at, s.length) : NULL;
	if (!text)
		return false;
	memcpy(to, text, s.length);
	to[s.length] = '\0';
	return true;
}

uint64_t golive_image_reason_number(const struct golive_image *im, const char *text)
{
	uint64_t table = golive_image_reasons(im);
	char found[REASONS_MAX];
	for (uint32_t i = 0; i < REASONS_MAX; i++)
		if (golive_image_reason(im, table, i, found, sizeof found) && !strcmp(found, text))
			return i;
	return UINT64_MAX;
}
