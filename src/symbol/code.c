/* SPDX-License-Identifier: Apache-2.0 */
/* code.c - the bytes of a file's code, and where its linkage table leads. */
#include "symbol/private.h"

#include <string.h>

/* The section with code that has the address, as linked; NULL. (A debug file has none: its sections
 * of code are empty.) */
static Elf_Data *code_section(struct symbol_file *f, uint64_t offset, uint64_t *ret_begin)
{
	Elf *elf = symbol_elf(f);
	GElf_Shdr header;
	for (Elf_Scn *scn = NULL; elf && (scn = elf_nextscn(elf, scn));) {
		if (!gelf_getshdr(scn, &header) || header.sh_type != SHT_PROGBITS ||
			!(header.sh_flags & SHF_EXECINSTR) || offset < header.sh_addr ||
			offset - header.sh_addr >= header.sh_size)
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		*ret_begin = header.sh_addr;
		return data && data->d_buf && offset - header.sh_addr < data->d_size ? data : NULL;
	}
	return NULL;
}

size_t symbol_bytes_around(struct symbol_file *f, uint64_t offset, size_t reach_bytes, uint8_t *ret,
	uint64_t *ret_from)
{
	uint64_t begin;
	Elf_Data *data = code_section(f, offset, &begin);
	if (!data)
		return 0;
	size_t at = (size_t)(offset - begin), before = at < reach_bytes ? at : reach_bytes;
	size_t after = data->d_size - at < reach_bytes ? data->d_size - at : reach_bytes;
	memcpy(ret, (const uint8_t *)data->d_buf + at - before, before + after);
	*ret_from = offset - before;
	return before + after;
}

/* The slot that "jmp *disp(%rip)" there jumps by; 0: something else is there. */
static uint64_t code_slot_of(struct symbol_file *f, uint64_t offset)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	enum { REACH = 16, JUMP_BYTES = 6 };
	uint8_t code[2 * REACH];
	uint64_t from;
	size_t nr = symbol_bytes_around(f, offset, REACH, code, &from), at = 0;
	if (!nr)
		return 0;
	at = (size_t)(offset - from);
	if (nr - at >= sizeof endbr64 && !memcmp(code + at, endbr64, sizeof endbr64))
		at += sizeof endbr64;
	if (at < nr && code[at] == 0xf2) /* bnd */
		at++;
	if (nr - at < JUMP_BYTES || code[at] != 0xff || code[at + 1] != 0x25)
		return 0;
	int32_t disp;
	memcpy(&disp, code + at + 2, sizeof disp);
	return from + at + JUMP_BYTES + (uint64_t)(int64_t)disp;
}

static const char *code_name_of(Elf *elf, size_t symbols, size_t index)
{
	Elf_Scn *scn = elf_getscn(elf, symbols);
	GElf_Shdr header;
	GElf_Sym symbol;
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	if (!data || !gelf_getshdr(scn, &header) || index > INT32_MAX ||
		!gelf_getsym(data, (int)index, &symbol))
		return NULL;
	return elf_strptr(elf, header.sh_link, symbol.st_name);
}

const char *symbol_linked(struct symbol_file *f, uint64_t offset)
{
	uint64_t slot = code_slot_of(f, offset);
	Elf *elf = slot ? symbol_elf(f) : NULL;
	GElf_Shdr header;
	for (Elf_Scn *scn = NULL; elf && (scn = elf_nextscn(elf, scn));) {
		if (!gelf_getshdr(scn, &header) || header.sh_type != SHT_RELA || !header.sh_entsize)
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		GElf_Rela rela;
		for (int i = 0; data && gelf_getrela(data, i, &rela); i++)
			if (rela.r_offset == slot)
				return code_name_of(elf, header.sh_link, GELF_R_SYM(rela.r_info));
	}
	return NULL;
}
