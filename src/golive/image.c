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
	FUNCTION_FILES = 20,
	FUNCTION_LINES = 24,
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

/* "\xff Go buildinf:", the pointers' size, flags; from byte 32 on the length and text of "go1.19.8". */
static unsigned image_version(const struct golive_image *im, const Elf64_Shdr *s)
{
	enum { FLAG_INLINE = 2, FLAGS_AT = 15, TEXT_AT = 33, PREFIX = 4 };
	static const char magic[] = "\xff Go buildinf:";
	const uint8_t *p = im->bytes + s->sh_offset;
	unsigned version = 0;
	if (s->sh_type == SHT_NOBITS || s->sh_size < TEXT_AT + PREFIX + 3 ||
		memcmp(p, magic, sizeof magic - 1) != 0 || !(p[FLAGS_AT] & FLAG_INLINE) ||
		memcmp(p + TEXT_AT, "go1.", PREFIX) != 0)
		return 0;
	for (unsigned i = 0;
		i < 2 && p[TEXT_AT + PREFIX + i] >= '0' && p[TEXT_AT + PREFIX + i] <= '9'; i++)
		version = version * 10 + (unsigned)(p[TEXT_AT + PREFIX + i] - '0');
	return version;
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
	im->is_static = !image_asks_for_a_loader(im, &head);
	im->version =
		image_section(im, &head, ".go.buildinfo", &info) ? image_version(im, &info) : 0;
	return image_take_table(im, text.sh_addr) ? BASE_OK
						  : base_fail(err, BASE_ERR_FOREIGN,
							    "was built by a Go before 1.18, or its "
							    "table of functions is damaged");
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

bool golive_image_place(const struct golive_image *im, uint64_t pc, struct golive_place *ret)
{
	uint64_t low = 0, high = im->nr_functions, entry, at;
	uint32_t lines;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;
		if (!image_function(im, middle, &entry, &at))
			return false;
		if (entry <= pc)
			low = middle;
		else
			high = middle;
	}
	uint64_t end, unused;
	if (!image_function(im, low, &entry, &at) || pc < entry ||
		!image_function(im, low + 1, &end, &unused) || pc >= end)
		return false;
	int32_t line = image_word(im, at + FUNCTION_LINES, &lines)
			       ? image_value(im, lines, entry, pc)
			       : -1;
	*ret = (struct golive_place){.function = image_name(im, at),
		.file = image_file(im, at, entry, pc),
		.entry = entry,
		.line = line > 0 ? (uint32_t)line : 0};
	return true;
}

/* ---- why goroutines wait ---------------------------------------------------------------------- */

struct image_string { /* Go's */
	uint64_t at, length;
};

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
	Elf64_Ehdr head;
	Elf64_Phdr p;
	struct image_string s;
	memcpy(&head, im->bytes, sizeof head);
	for (unsigned i = 0; head.e_phentsize == sizeof p && i < head.e_phnum; i++) {
		if (!image_has(im, head.e_phoff + i * sizeof p, sizeof p))
			break;
		memcpy(&p, im->bytes + head.e_phoff + i * sizeof p, sizeof p);
		if (p.p_type != PT_LOAD || (p.p_flags & PF_X) ||
			!image_has(im, p.p_offset, p.p_filesz))
			continue;
		for (uint64_t at = sizeof s; at + sizeof s <= p.p_filesz; at += 8) {
			memcpy(&s, im->bytes + p.p_offset + at, sizeof s);
			if (image_string_is(im, &s, "GC assist marking"))
				return p.p_vaddr + at - sizeof s;
		}
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
