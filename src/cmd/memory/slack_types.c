/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slack_types.c - what type allocated memory has: that of the variable which the call's result is
 * given to. The result is in rax; the instructions that follow move it on, and wherever it is then,
 * the debug information may know a variable that is there.
 */
#include "cmd/memory/slack.h"

#include <Zydis/Zydis.h>

enum { INSTRUCTIONS_MAX = 48, GPRS = 16, RAX = 0, RBP = 5, CALLER_SAVED = 0x0fc7, CFA_OF_RBP = 16 };

struct follow {
	struct symbol_file *symbols;
	uint32_t holds; /* general registers that have the result */
	uint64_t next;  /* instruction, as linked */
	struct symbol_type *ret;
};

/* A bit of `holds`; 0: no general register of 64 bits. */
static uint32_t slack_types_bit_of(ZydisRegister r)
{
	return ZydisRegisterGetClass(r) == ZYDIS_REGCLASS_GPR64
		       ? UINT32_C(1) << (ZydisRegisterGetId(r) & (GPRS - 1))
		       : 0;
}

static uint32_t slack_types_gpr(const ZydisDecodedOperand *o)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER ? slack_types_bit_of(o->reg.value) : 0;
}

static bool in_registers(const struct follow *f)
{
	/* as DWARF numbers rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi */
	static const uint8_t dwarf[GPRS] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
	for (unsigned i = 0; i < GPRS; i++)
		if (f->holds >> i & 1 &&
			symbol_pointee(f->symbols, f->next,
				&(struct symbol_holder){SYMBOL_IN_REGISTER, dwarf[i]}, f->ret))
			return true;
	return false;
}

/* The result is stored. */
static bool in_memory(const struct follow *f, const ZydisDecodedOperand *to)
{
	struct symbol_holder h = {SYMBOL_AT_ADDRESS, 0};
	uint64_t disp = (uint64_t)to->mem.disp.value;
	if (to->mem.index != ZYDIS_REGISTER_NONE || to->mem.segment == ZYDIS_REGISTER_FS)
		return false;
	if (to->mem.base == ZYDIS_REGISTER_RIP)
		h.value = f->next + disp;
	else if (to->mem.base == ZYDIS_REGISTER_RBP)
		h = (struct symbol_holder){SYMBOL_IN_FRAME, disp - CFA_OF_RBP};
	else
		return false;
	return symbol_pointee(f->symbols, f->next, &h, f->ret);
}

/* True: found. */
static bool slack_types_step(
	struct follow *f, const ZydisDecodedInstruction *i, const ZydisDecodedOperand *o)
{
	bool moves = i->mnemonic == ZYDIS_MNEMONIC_MOV && f->holds & slack_types_gpr(&o[1]);
	if (moves && o[0].type == ZYDIS_OPERAND_TYPE_MEMORY && in_memory(f, &o[0]))
		return true;
	for (unsigned k = 0; k < i->operand_count; k++) {
		if (o[k].type != ZYDIS_OPERAND_TYPE_REGISTER ||
			!(o[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		f->holds &= ~slack_types_bit_of(ZydisRegisterGetLargestEnclosing(
			ZYDIS_MACHINE_MODE_LONG_64, o[k].reg.value));
	}
	if (moves)
		f->holds |= slack_types_gpr(&o[0]);
	if (i->meta.category == ZYDIS_CATEGORY_CALL)
		f->holds &= ~(uint32_t)CALLER_SAVED;
	return in_registers(f);
}

static bool find_type(struct cmd_slack_names *n, uint64_t site, struct cmd_slack_type *ret)
{
	struct memory_linked at;
	ZydisDecoder decoder;
	ZydisDecodedInstruction i;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	size_t size = 0;
	struct symbol_file *symbols = cmd_slack_symbols(n, site, &at);
	n->decoder.source = n->source;
	const uint8_t *bytes = symbols ? cmd_slack_bytes(&n->decoder, &at, &size) : NULL;
	if (!bytes || ZYAN_FAILED(ZydisDecoderInit(
			      &decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)))
		return false;
	struct follow f = {.symbols = symbols, .next = at.address, .ret = &ret->type};
	for (unsigned nr = 0; nr < INSTRUCTIONS_MAX; nr++) {
		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, bytes, size, &i, operand)))
			return false;
		bytes += i.length;
		size -= i.length;
		f.next += i.length;
		if (!nr && i.meta.category == ZYDIS_CATEGORY_CALL) {
			f.holds = UINT32_C(1) << RAX;
			if (in_registers(&f))
				break;
			continue;
		}
		if (!nr) /* what is asked for is the call, or where it returns to */
			f.holds = UINT32_C(1) << RAX;
		if (i.meta.category == ZYDIS_CATEGORY_RET ||
			i.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
			return false;
		if (slack_types_step(&f, &i, operand))
			break;
		if (!f.holds)
			return false;
	}
	ret->symbols = ret->type.die ? symbols : NULL;
	return ret->symbols != NULL;
}

static const struct cmd_slack_type *type_at(struct cmd_slack_names *n, uint64_t site)
{
	uint64_t index;
	if (base_map_get(&n->type_of, 0, site, &index))
		return &n->type[index];
	struct cmd_slack_type made = {0};
	(void)find_type(n, site, &made);
	if (base_grow(&n->type, &n->types_capacity, n->nr_types + 1, sizeof *n->type) != BASE_OK ||
		base_map_put(&n->type_of, 0, site, n->nr_types) != BASE_OK)
		return NULL;
	n->type[n->nr_types] = made;
	return &n->type[n->nr_types++];
}

bool cmd_slack_heap_member(struct cmd_slack_names *n, uint64_t site, uint64_t block_bytes,
	uint64_t offset, struct base_str *out)
{
	const struct cmd_slack_type *t = site ? type_at(n, site) : NULL;
	if (!t || !t->symbols || t->type.size_bytes > block_bytes)
		return false;
	uint64_t size = t->type.size_bytes;
	/* (What is behind a structure in a block that is no array of it has no type.) */
	bool array = block_bytes % size == 0 && block_bytes > size;
	if (!array && offset >= size)
		return false;
	base_str_add(out, t->type.name);
	if (array)
		base_str_addf(out, "[%llu]", (unsigned long long)(offset / size));
	symbol_type_member(t->symbols, &t->type, offset % size, out);
	return true;
}

void cmd_slack_types_fini(struct cmd_slack_names *n)
{
	cmd_slack_decoder_fini(&n->decoder);
	base_map_fini(&n->type_of);
	base_free(n->type);
}
