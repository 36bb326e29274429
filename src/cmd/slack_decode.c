/* SPDX-License-Identifier: Apache-2.0 */
/* slack_decode.c - which registers an instruction of a stream reads and writes, by Zydis, from the
 * program's file. */
#include "cmd/slack.h"

#include <Zydis/Zydis.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <unistd.h>

enum { FLAGS_BIT = 48, MASK_BIT = 49, VECTOR_BIT = 16, OTHER_BIT = 57 };

struct cmd_slack_code {
	char *path;
	int fd;
	Elf *elf;
	const uint8_t *bytes;
	size_t size_bytes;
};

static void open_code(struct cmd_slack_code *c)
{
	c->fd = open(c->path, O_RDONLY | O_CLOEXEC);
	if (c->fd < 0 || elf_version(EV_CURRENT) == EV_NONE)
		return;
	c->elf = elf_begin(c->fd, ELF_C_READ_MMAP, NULL);
	if (c->elf && elf_kind(c->elf) == ELF_K_ELF)
		c->bytes = (const uint8_t *)elf_rawfile(c->elf, &c->size_bytes);
}

static struct cmd_slack_code *code_of(struct cmd_slack_decoder *d, const char *path)
{
	for (size_t i = 0; i < d->nr_files; i++)
		if (!strcmp(d->file[i].path, path))
			return &d->file[i];
	struct base_str copy = {0};
	base_str_add(&copy, path);
	if (copy.failed || base_grow(&d->file, &d->files_capacity, d->nr_files + 1,
				   sizeof *d->file) != BASE_OK) {
		base_str_fini(&copy);
		return NULL;
	}
	struct cmd_slack_code *c = &d->file[d->nr_files++];
	*c = (struct cmd_slack_code){.path = copy.buf, .fd = -1};
	if (*path)
		open_code(c);
	return c;
}

void cmd_slack_decoder_fini(struct cmd_slack_decoder *d)
{
	for (size_t i = 0; i < d->nr_files; i++) {
		base_free(d->file[i].path);
		if (d->file[i].elf)
			elf_end(d->file[i].elf);
		if (d->file[i].fd >= 0)
			close(d->file[i].fd);
	}
	base_free(d->file);
	*d = (struct cmd_slack_decoder){0};
}

/* The bytes at an address as linked; *ret_size 0: there are none. */
static const uint8_t *bytes_at(const struct cmd_slack_code *c, uint64_t address, size_t *ret_size)
{
	size_t nr = 0;
	*ret_size = 0;
	if (!c->bytes || elf_getphdrnum(c->elf, &nr))
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr p;
		if (!gelf_getphdr(c->elf, (int)i, &p) || p.p_type != PT_LOAD ||
			address < p.p_vaddr || address - p.p_vaddr >= p.p_filesz ||
			p.p_offset > c->size_bytes ||
			address - p.p_vaddr >= c->size_bytes - p.p_offset)
			continue;
		uint64_t at = p.p_offset + (address - p.p_vaddr);
		*ret_size = c->size_bytes - at;
		return c->bytes + at;
	}
	return NULL;
}

static uint64_t bit_of(ZydisRegister r)
{
	if (r == ZYDIS_REGISTER_NONE || r == ZYDIS_REGISTER_RIP || r == ZYDIS_REGISTER_EIP)
		return 0;
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	whole = whole == ZYDIS_REGISTER_NONE ? r : whole;
	ZydisRegisterClass class = ZydisRegisterGetClass(whole);
	ZyanI8 id = ZydisRegisterGetId(whole);
	unsigned n = id > 0 ? (unsigned)id : 0;
	switch (class) {
	case ZYDIS_REGCLASS_GPR64:
		return UINT64_C(1) << (n & 15);
	case ZYDIS_REGCLASS_ZMM:
	case ZYDIS_REGCLASS_YMM:
	case ZYDIS_REGCLASS_XMM:
		return UINT64_C(1) << (VECTOR_BIT + (n & 31));
	case ZYDIS_REGCLASS_MASK:
		return UINT64_C(1) << (MASK_BIT + (n & 7));
	case ZYDIS_REGCLASS_FLAGS:
		return UINT64_C(1) << FLAGS_BIT;
	case ZYDIS_REGCLASS_SEGMENT:
		return 0;
	default:
		return UINT64_C(1) << OTHER_BIT; /* x87, MMX, control: as one */
	}
}

static void add_operand(const ZydisDecodedOperand *o, struct slack_registers *ret)
{
	if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		ret->reads |= bit_of(o->mem.base) | bit_of(o->mem.index);
		return;
	}
	if (o->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return;
	uint64_t bit = bit_of(o->reg.value);
	if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
		ret->reads |= bit;
	if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
		ret->writes |= bit;
		/* The rest of the register stays: bytes and words. */
		ret->reads |= o->size < 32 && bit < UINT64_C(1) << VECTOR_BIT ? bit : 0;
	}
}

/* xor r, r and the like make zero of whatever there was. */
static bool makes_zero(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *o)
{
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_PXOR:
	case ZYDIS_MNEMONIC_XORPS:
	case ZYDIS_MNEMONIC_XORPD:
	case ZYDIS_MNEMONIC_VPXOR:
	case ZYDIS_MNEMONIC_VXORPS:
	case ZYDIS_MNEMONIC_VXORPD:
		break;
	default:
		return false;
	}
	unsigned last = i->operand_count_visible;
	return last >= 2 && o[last - 1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       o[last - 2].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       o[last - 1].reg.value == o[last - 2].reg.value;
}

static uint8_t branch_of(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *o)
{
	bool indirect = i->operand_count_visible && o[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE;
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return SLACK_BRANCH_CONDITIONAL;
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_CALL:
		return indirect ? SLACK_BRANCH_INDIRECT : SLACK_BRANCH_DIRECT;
	case ZYDIS_CATEGORY_RET:
		return SLACK_BRANCH_DIRECT;
	default:
		return SLACK_BRANCH_NONE;
	}
}

bool cmd_slack_decode(void *ctx, uint64_t code, struct slack_registers *ret)
{
	struct cmd_slack_decoder *d = ctx;
	struct memory_linked at;
	ZydisDecoder decoder;
	ZydisDecodedInstruction i;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	size_t size = 0;
	*ret = (struct slack_registers){0};
	if (!d->source->ops->linked || !d->source->ops->linked(d->source, code, true, 0, &at))
		return false;
	struct cmd_slack_code *c = code_of(d, at.path);
	const uint8_t *bytes = c ? bytes_at(c, at.address, &size) : NULL;
	if (!bytes ||
		ZYAN_FAILED(ZydisDecoderInit(
			&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
		ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, bytes, size, &i, operand)))
		return false;
	for (unsigned k = 0; k < i.operand_count; k++)
		add_operand(&operand[k], ret);
	if (makes_zero(&i, operand))
		ret->reads = 0;
	/* The stack engine: pushes and pops do not wait for one another. */
	if (i.meta.category == ZYDIS_CATEGORY_PUSH || i.meta.category == ZYDIS_CATEGORY_POP ||
		i.meta.category == ZYDIS_CATEGORY_CALL || i.meta.category == ZYDIS_CATEGORY_RET)
		ret->writes &= ~(UINT64_C(1) << 4);
	ret->length = i.length;
	ret->branch = branch_of(&i, operand);
	return true;
}
