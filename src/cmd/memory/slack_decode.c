/* SPDX-License-Identifier: Apache-2.0 */
/* slack_decode.c - which registers an instruction of a stream reads and writes, by Zydis, from the
 * program's file. */
#include "cmd/memory/slack.h"

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

static struct cmd_slack_code *slack_decode_code_of(struct cmd_slack_decoder *d, const char *path)
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

static uint64_t slack_decode_bit_of(ZydisRegister r)
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

static void slack_decode_add_operand(const ZydisDecodedOperand *o, struct slack_registers *ret)
{
	if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		ret->reads |= slack_decode_bit_of(o->mem.base) | slack_decode_bit_of(o->mem.index);
		return;
	}
	if (o->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return;
	uint64_t bit = slack_decode_bit_of(o->reg.value);
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

/* What depends on more than registers and memory, or does more than change them. */
static bool is_outside(const ZydisDecodedInstruction *i)
{
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_RDTSC:
	case ZYDIS_MNEMONIC_RDTSCP:
	case ZYDIS_MNEMONIC_RDPMC:
	case ZYDIS_MNEMONIC_RDPID:
	case ZYDIS_MNEMONIC_RDRAND:
	case ZYDIS_MNEMONIC_RDSEED:
	case ZYDIS_MNEMONIC_CPUID:
	case ZYDIS_MNEMONIC_XGETBV:
	case ZYDIS_MNEMONIC_XBEGIN:
		return true;
	default:
		break;
	}
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
	case ZYDIS_CATEGORY_STRINGOP:
		return true;
	default:
		return false;
	}
}

/* For loops that wait (slack/spins.h). */
static void slack_decode_add_memory(
	const ZydisDecodedInstruction *i, const ZydisDecodedOperand *o, struct slack_registers *ret)
{
	ret->outside = is_outside(i);
	ret->exchanges =
		i->mnemonic == ZYDIS_MNEMONIC_XCHG || i->mnemonic == ZYDIS_MNEMONIC_CMPXCHG;
	for (unsigned k = 0; k < i->operand_count; k++, o++) {
		bool reads = o->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
		bool writes = o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
			i->mnemonic != ZYDIS_MNEMONIC_NOP) {
			ret->loads |= reads;
			ret->stores |= writes;
		}
		if (o->type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		uint64_t bit = slack_decode_bit_of(o->reg.value);
		bool part = (o->size < 32 && bit < UINT64_C(1) << VECTOR_BIT) ||
			    (o->actions & ZYDIS_OPERAND_ACTION_CONDWRITE);
		ret->keeps |= writes && part ? bit : 0;
		/* (what cmpxchg compares with is not stored) */
		if (reads &&
			(o->visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT || !ret->exchanges))
			ret->stored |= bit;
	}
	ret->exchanges = ret->exchanges && ret->stores;
	/* some instructions leave some flags */
	const ZydisAccessedFlags *f = i->cpu_flags;
	const uint32_t all = ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF |
			     ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF;
	uint32_t written = f ? f->modified | f->set_0 | f->set_1 | f->undefined : 0;
	bool may_not = i->meta.category == ZYDIS_CATEGORY_SHIFT ||
		       i->meta.category == ZYDIS_CATEGORY_ROTATE;
	if (written && ((written & all) != all || may_not))
		ret->keeps |= UINT64_C(1) << FLAGS_BIT;
}

/* add $1, %eax and the like, and lea 1(%rax), %rax. */
static uint64_t stepped(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *o)
{
	if (i->operand_count_visible < 1 || o[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		o[0].size < 32)
		return 0;
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
		return slack_decode_bit_of(o[0].reg.value);
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		return o[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE
			       ? slack_decode_bit_of(o[0].reg.value)
			       : 0;
	case ZYDIS_MNEMONIC_LEA:
		return slack_decode_bit_of(o[0].reg.value) == slack_decode_bit_of(o[1].mem.base) &&
				       o[1].mem.index == ZYDIS_REGISTER_NONE
			       ? slack_decode_bit_of(o[0].reg.value)
			       : 0;
	default:
		return 0;
	}
}

static bool compares(const ZydisDecodedInstruction *i, const struct slack_registers *r)
{
	return (i->mnemonic == ZYDIS_MNEMONIC_CMP || i->mnemonic == ZYDIS_MNEMONIC_TEST) &&
	       !r->loads;
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

const uint8_t *cmd_slack_bytes(
	struct cmd_slack_decoder *d, const struct memory_linked *at, size_t *ret_size)
{
	struct cmd_slack_code *c = slack_decode_code_of(d, at->path);
	*ret_size = 0;
	return c ? bytes_at(c, at->address, ret_size) : NULL;
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
	const uint8_t *bytes = cmd_slack_bytes(d, &at, &size);
	if (!bytes ||
		ZYAN_FAILED(ZydisDecoderInit(
			&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
		ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, bytes, size, &i, operand)))
		return false;
	for (unsigned k = 0; k < i.operand_count; k++)
		slack_decode_add_operand(&operand[k], ret);
	slack_decode_add_memory(&i, operand, ret);
	if (makes_zero(&i, operand))
		ret->reads = 0;
	/* The stack engine: pushes and pops do not wait for one another. */
	if (i.meta.category == ZYDIS_CATEGORY_PUSH || i.meta.category == ZYDIS_CATEGORY_POP ||
		i.meta.category == ZYDIS_CATEGORY_CALL || i.meta.category == ZYDIS_CATEGORY_RET)
		ret->writes &= ~(UINT64_C(1) << 4);
	ret->steps = stepped(&i, operand);
	ret->compares = compares(&i, ret);
	ret->length = i.length;
	ret->branch = branch_of(&i, operand);
	return true;
}
