/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c - Zydis does it. */
#include "deadlock/ahead/decode.h"

#include <Zydis/Zydis.h>

static void decode_fill(ZydisRegisterContext *context, const struct user_regs_struct *r)
{
	ZyanU64 *v = context->values;
	*context = (ZydisRegisterContext){0};
	v[ZYDIS_REGISTER_RAX] = r->rax;
	v[ZYDIS_REGISTER_RCX] = r->rcx;
	v[ZYDIS_REGISTER_RDX] = r->rdx;
	v[ZYDIS_REGISTER_RBX] = r->rbx;
	v[ZYDIS_REGISTER_RSP] = r->rsp;
	v[ZYDIS_REGISTER_RBP] = r->rbp;
	v[ZYDIS_REGISTER_RSI] = r->rsi;
	v[ZYDIS_REGISTER_RDI] = r->rdi;
	v[ZYDIS_REGISTER_R8] = r->r8;
	v[ZYDIS_REGISTER_R9] = r->r9;
	v[ZYDIS_REGISTER_R10] = r->r10;
	v[ZYDIS_REGISTER_R11] = r->r11;
	v[ZYDIS_REGISTER_R12] = r->r12;
	v[ZYDIS_REGISTER_R13] = r->r13;
	v[ZYDIS_REGISTER_R14] = r->r14;
	v[ZYDIS_REGISTER_R15] = r->r15;
	v[ZYDIS_REGISTER_RIP] = r->rip;
	v[ZYDIS_REGISTER_EAX] = (uint32_t)r->rax; /* addresses of 32 bits are rare, and these do */
	v[ZYDIS_REGISTER_EDI] = (uint32_t)r->rdi;
	v[ZYDIS_REGISTER_ESI] = (uint32_t)r->rsi;
}

/* What is pushed goes below the stack pointer; Zydis gives the pointer as it is before. */
static bool is_push(const ZydisDecodedOperand *o)
{
	return o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
	       o->mem.base == ZYDIS_REGISTER_RSP && o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
}

static void decode_add_operand(struct deadlock_instruction *ret, const ZydisDecodedInstruction *i,
	const ZydisDecodedOperand *o, const ZydisRegisterContext *context,
	const struct user_regs_struct *r)
{
	ZyanU64 address = 0;
	if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.type == ZYDIS_MEMOP_TYPE_AGEN ||
		!o->actions)
		return;
	if (o->mem.type != ZYDIS_MEMOP_TYPE_MEM || ret->nr_operands == DEADLOCK_OPERANDS_MAX ||
		i->mnemonic == ZYDIS_MNEMONIC_ENTER ||
		!ZYAN_SUCCESS(ZydisCalcAbsoluteAddressEx(i, o, r->rip, context, &address))) {
		ret->is_opaque = true;
		return;
	}
	if (o->mem.segment == ZYDIS_REGISTER_FS)
		address += r->fs_base;
	else if (o->mem.segment == ZYDIS_REGISTER_GS)
		address += r->gs_base;
	const unsigned bytes = o->size / 8;
	if (is_push(o))
		address = r->rsp - bytes;
	ret->operand[ret->nr_operands++] = (struct deadlock_operand){
		.address = address,
		.size_bytes = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 ? bytes : 0,
		.is_read = (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0,
		.is_written = (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0,
	};
}

bool deadlock_decode(const uint8_t *code, size_t size, const struct user_regs_struct *r,
	struct deadlock_instruction *ret)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction i;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	ZydisRegisterContext context;
	*ret = (struct deadlock_instruction){0};
	if (!ZYAN_SUCCESS(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
		!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code, size, &i, operand)))
		return false;
	ret->length = i.length;
	decode_fill(&context, r);
	ZyanU64 target = 0;
	ret->is_jump = i.meta.category == ZYDIS_CATEGORY_COND_BR ||
		       i.meta.category == ZYDIS_CATEGORY_UNCOND_BR;
	if (i.meta.category == ZYDIS_CATEGORY_COND_BR && i.operand_count_visible >= 1 &&
		ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&i, &operand[0], r->rip, &target))) {
		ret->is_conditional_jump = true;
		ret->target = target;
	}
	for (unsigned n = 0; n < i.operand_count; n++)
		decode_add_operand(ret, &i, &operand[n], &context, r);
	return true;
}

bool deadlock_decode_next(struct deadlock_ghost *g, struct deadlock_instruction *ret)
{
	uint8_t code[DEADLOCK_INSTRUCTION_MAX_BYTES];
	const struct user_regs_struct *r = deadlock_ghost_registers(g);
	size_t size = sizeof code;
	while (size && !deadlock_ghost_read(g, r->rip, code, size)) /* at the end of its region */
		size--;
	return size && deadlock_decode(code, size, r, ret);
}
