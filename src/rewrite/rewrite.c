/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite.c - one assembly file from text to labelled text to known instructions. */
#include "rewrite/private.h"

#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_BYTES = 4096 };
static const char label_prefix[] = ".Llpi";

static struct att_text rewrite_next_line(const char **p, const char *end)
{
	const char *eol = memchr(*p, '\n', (size_t)(end - *p));
	struct att_text line = {*p, (size_t)((eol ? eol : end) - *p)};
	*p = eol ? eol + 1 : end;
	return rewrite_att_trim(line);
}

/* gcc begins with .file; clang with .text, then .file. The preprocessor, which hand-written
 * assembly went through, begins with its own line marks. */
bool rewrite_is_compiled(const char *text, size_t size_bytes)
{
	const char *p = text, *end = text + (size_bytes < LOOK_BYTES ? size_bytes : LOOK_BYTES);
	while (p < end) {
		struct att_text line = rewrite_next_line(&p, end);
		if (rewrite_att_begins(line, "# "))
			return false;
		if (!line.length || *line.at == '#' || rewrite_att_is(line, ".text") ||
			rewrite_att_begins(line, ".intel") || rewrite_att_begins(line, ".att"))
			continue;
		return rewrite_att_begins(line, ".file\t") || rewrite_att_begins(line, ".file ");
	}
	return false;
}

enum base_status rewrite_new(const char *text, size_t size_bytes,
	const struct rewrite_options *options, struct rewrite **ret, struct base_err *err)
{
	struct rewrite *w = base_alloc(sizeof *w);
	*ret = NULL;
	if (!w)
		return base_fail(err, BASE_ERR_NOMEM, "no memory to rewrite assembly");
	w->options = *options;
	w->labels = base_strtab_new();
	enum base_status status =
		w->labels ? rewrite_att_split(text, size_bytes, &w->file, err)
			  : base_fail(err, BASE_ERR_NOMEM, "no memory to rewrite assembly");
	if (status == BASE_OK)
		status = rewrite_scan(w, err);
	if (status != BASE_OK) {
		rewrite_free(w);
		return status;
	}
	*ret = w;
	return BASE_OK;
}

void rewrite_labelled(const struct rewrite *w, struct base_str *ret)
{
	for (size_t i = 0; i < w->file.nr; i++) {
		const struct att_statement *st = &w->file.statement[i];
		if (w->place[i].instruction)
			base_str_addf(ret, "%s%u:", label_prefix, w->place[i].instruction);
		if (st->kind != ATT_LABEL)
			base_str_add(ret, "\t");
		base_str_add_bytes(ret, st->text.at, st->text.length);
		base_str_add(ret, st->kind == ATT_LABEL ? ":\n" : "\n");
	}
}

/* ---- the object ------------------------------------------------------------------------------ */

static bool rewrite_decode_at(struct rewrite *w, Elf *elf, const GElf_Sym *symbol, uint32_t number)
{
	Elf_Scn *section = elf_getscn(elf, symbol->st_shndx);
	Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
	if (!data || !data->d_buf || symbol->st_value >= data->d_size)
		return false;
	return rewrite_decode((const uint8_t *)data->d_buf + symbol->st_value,
		data->d_size - symbol->st_value, &w->instruction[number]);
}

static void read_symbols(struct rewrite *w, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t nr = data && header->sh_entsize ? data->d_size / header->sh_entsize : 0;
	for (size_t i = 0; i < nr && i < INT32_MAX; i++) {
		GElf_Sym symbol;
		if (!gelf_getsym(data, (int)i, &symbol))
			continue;
		const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (!name || strncmp(name, label_prefix, sizeof label_prefix - 1) != 0)
			continue;
		unsigned long number = strtoul(name + sizeof label_prefix - 1, NULL, 10);
		if (number && number <= w->nr_instructions)
			(void)rewrite_decode_at(w, elf, &symbol, (uint32_t)number);
	}
}

/* A function with an instruction that nobody understands is left as it is. */
static void judge_functions(struct rewrite *w)
{
	for (size_t i = 0; i < w->file.nr; i++) {
		const struct rewrite_place *place = &w->place[i];
		struct rewrite_function *f = &w->function[place->function];
		if (!place->instruction || !place->function)
			continue;
		const struct machine_instruction *m = &w->instruction[place->instruction];
		if (!m->length)
			f->skipped = true;
		if (m->mentioned & (1u << MACHINE_R10 | 1u << MACHINE_R11))
			f->borrows = true;
		/* mov %rsp, %rbp */
		if (m->length == 3 && (!memcmp(m->bytes, "\x48\x89\xe5", 3) ||
					      !memcmp(m->bytes, "\x48\x8b\xec", 3)))
			f->has_frame = true;
	}
}

enum base_status rewrite_object(
	struct rewrite *w, const void *bytes, size_t size_bytes, struct base_err *err)
{
	if (elf_version(EV_CURRENT) == EV_NONE)
		return base_fail(err, BASE_ERR_ENV, "libelf is too old");
	base_free(w->instruction);
	w->instruction = base_alloc(((size_t)w->nr_instructions + 1) * sizeof *w->instruction);
	if (!w->instruction)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for %u {instruction|instructions}",
			w->nr_instructions);
	char *copy = base_alloc(size_bytes ? size_bytes : 1);
	if (!copy)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the assembler's output");
	memcpy(copy, bytes, size_bytes);
	Elf *elf = elf_memory(copy, size_bytes);
	enum base_status status = BASE_OK;
	GElf_Ehdr head;
	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &head) ||
		head.e_machine != EM_X86_64)
		status = base_fail(
			err, BASE_ERR_FORMAT, "the assembler's output is not an x86-64 object");
	for (Elf_Scn *s = NULL; status == BASE_OK && (s = elf_nextscn(elf, s));) {
		GElf_Shdr header;
		if (gelf_getshdr(s, &header) && header.sh_type == SHT_SYMTAB)
			read_symbols(w, elf, s, &header);
	}
	if (elf)
		elf_end(elf);
	base_free(copy);
	if (status == BASE_OK)
		judge_functions(w);
	return status;
}

const struct rewrite_counts *rewrite_counts(const struct rewrite *w)
{
	return &w->counts;
}

void rewrite_free(struct rewrite *w)
{
	if (!w)
		return;
	rewrite_att_file_fini(&w->file);
	base_strtab_free(w->labels);
	base_free(w->place);
	base_free(w->label_flags);
	base_free(w->label_function);
	base_free(w->section);
	base_free(w->function);
	base_free(w->instruction);
	base_free(w);
}
