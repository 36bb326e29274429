/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c - instructions that are about to be stepped. */
#include "spin/decode.h"

#include <Zydis/Zydis.h>

static uint8_t decode_number_of(ZydisRegister r)
{
	ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	if (ZydisRegisterGetClass(wide) != ZYDIS_REGCLASS_GPR64)
		return SPIN_NONE;
	return (uint8_t)ZydisRegisterGetId(wide);
}

static bool is_unfit(const ZydisDecodedInstruction *i)
{
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFD:
	case ZYDIS_MNEMONIC_PUSHFQ:
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFD:
	case ZYDIS_MNEMONIC_POPFQ:
	case ZYDIS_MNEMONIC_INT:
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_XBEGIN:
		return true;
	default:
		break;
	}
	/* what loads a segment register holds traps back; iret takes flags from memory */
	return i->meta.category == ZYDIS_CATEGORY_SEGOP || i->mnemonic == ZYDIS_MNEMONIC_IRET ||
	       i->mnemonic == ZYDIS_MNEMONIC_IRETD || i->mnemonic == ZYDIS_MNEMONIC_IRETQ;
}

static bool is_gather_or_scatter(const ZydisDecodedOperand *o)
{
	return o->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
}

static void decode_add_access(struct spin_instruction *ret, const ZydisDecodedInstruction *i,
	const ZydisDecodedOperand *o)
{
	bool writes = o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
	bool reads = o->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
	uint64_t size = o->size / 8;
	if (o->mem.type == ZYDIS_MEMOP_TYPE_AGEN || (!writes && !reads))
		return;
	if (is_gather_or_scatter(o) || !size || size > SPIN_ACCESS_MAX ||
		ret->nr_accesses == SPIN_ACCESSES || i->mnemonic == ZYDIS_MNEMONIC_ENTER) {
		ret->opaque |= writes;
		return;
	}
	struct spin_access *a = &ret->access[ret->nr_accesses++];
	*a = (struct spin_access){.reads = reads,
		.writes = writes,
		.base = decode_number_of(o->mem.base),
		.index = decode_number_of(o->mem.index),
		.scale = o->mem.scale,
		.segment = o->mem.segment == ZYDIS_REGISTER_FS   ? 4
			   : o->mem.segment == ZYDIS_REGISTER_GS ? 5
								 : 0,
		.relative = o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP,
		.narrow = i->address_width == 32,
		.size_bytes = (uint16_t)size,
		.displacement = o->mem.disp.has_displacement ? o->mem.disp.value : 0};
	a->push = writes && o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
		  o->mem.base == ZYDIS_REGISTER_RSP;
}

bool spin_decode(const uint8_t *code, size_t size_bytes, struct spin_instruction *ret)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	*ret = (struct spin_instruction){0};
	if (ZYAN_FAILED(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
		ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code, size_bytes, &i, op)))
		return false;
	ret->length = i.length;
	ret->jump = i.meta.category == ZYDIS_CATEGORY_COND_BR ||
		    i.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
	ret->calls_kernel = i.mnemonic == ZYDIS_MNEMONIC_SYSCALL;
	ret->unfit = is_unfit(&i);
	for (unsigned k = 0; k < i.operand_count; k++) {
		if (op[k].type == ZYDIS_OPERAND_TYPE_MEMORY)
			decode_add_access(ret, &i, &op[k]);
		/* mov ss, pop ss and kin hold the trap back */
		if (op[k].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			(op[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
			ZydisRegisterGetClass(op[k].reg.value) == ZYDIS_REGCLASS_SEGMENT &&
			!ret->calls_kernel)
			ret->unfit = true;
	}
	return true;
}

uint64_t spin_decoded_register(const struct user_regs_struct *r, unsigned number)
{
	const unsigned long long value[16] = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp,
		r->rsi, r->rdi, r->r8, r->r9, r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};
	return number < 16 ? value[number] : 0;
}

uint64_t spin_address(const struct spin_instruction *i, const struct spin_access *a,
	const struct user_regs_struct *regs)
{
	if (a->push)
		return regs->rsp - a->size_bytes;
	uint64_t address = (uint64_t)a->displacement;
	if (a->relative)
		address += regs->rip + i->length;
	if (a->base != SPIN_NONE)
		address += spin_decoded_register(regs, a->base);
	if (a->index != SPIN_NONE)
		address += spin_decoded_register(regs, a->index) * a->scale;
	if (a->narrow)
		address &= UINT32_MAX;
	return address + (a->segment == 4 ? regs->fs_base : a->segment == 5 ? regs->gs_base : 0);
}
