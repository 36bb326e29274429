/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - from an instruction's bytes to what it does, by Zydis. */
#include "rewrite/machine.h"

#include <Zydis/Zydis.h>
#include <string.h>

enum { REG_UNKNOWN, REG_INTEGER, REG_FLOAT, REG_VECTOR }; /* as enum memory_register */
enum { STACK_WORD = 8, ACCESS_MAX_BYTES = 64 };

const char *const rewrite_register_name[MACHINE_GPRS] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
	"rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"};

struct decoded {
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	struct machine_instruction *ret;
};

static uint8_t machine_gpr(ZydisRegister r)
{
	ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	if (ZydisRegisterGetClass(wide) != ZYDIS_REGCLASS_GPR64)
		return MACHINE_NONE;
	return (uint8_t)ZydisRegisterGetId(wide);
}

static void mention(struct decoded *d, ZydisRegister r, bool written)
{
	uint8_t n = machine_gpr(r);
	if (n == MACHINE_NONE)
		return;
	d->ret->mentioned = (uint16_t)(d->ret->mentioned | 1u << n);
	if (written)
		d->ret->written = (uint16_t)(d->ret->written | 1u << n);
}

static void note_registers(struct decoded *d)
{
	for (unsigned k = 0; k < d->i.operand_count; k++) {
		const ZydisDecodedOperand *o = &d->op[k];
		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER) {
			mention(d, o->reg.value, o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE);
		} else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			mention(d, o->mem.base, false);
			mention(d, o->mem.index, false);
		}
	}
	if (d->ret->flags & MACHINE_STAMP) /* the time stamp counter comes there */
		d->ret->mentioned |= 1u << MACHINE_RAX | 1u << MACHINE_RDX;
}

/* ---- control --------------------------------------------------------------------------------- */

static uint8_t terminator(const struct decoded *d)
{
	bool direct = d->op[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	switch (d->i.meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return MEMORY_TERM_BRANCH;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return direct ? MEMORY_TERM_JUMP : MEMORY_TERM_INDIRECT;
	case ZYDIS_CATEGORY_CALL:
		return direct ? MEMORY_TERM_CALL : MEMORY_TERM_CALL_INDIRECT;
	case ZYDIS_CATEGORY_RET:
		return MEMORY_TERM_RETURN;
	default:
		break;
	}
	switch (d->i.mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		return MEMORY_TERM_STOP;
	default:
		return MEMORY_TERM_NONE;
	}
}

static void note_adjustment(struct decoded *d)
{
	struct machine_instruction *r = d->ret;
	const ZydisDecodedOperand *to = &d->op[0], *by = &d->op[1];
	int64_t n = 0;
	if (to->type != ZYDIS_OPERAND_TYPE_REGISTER ||
		ZydisRegisterGetClass(to->reg.value) != ZYDIS_REGCLASS_GPR64)
		return;
	switch (d->i.mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (by->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return;
		n = by->imm.is_signed ? by->imm.value.s : (int64_t)by->imm.value.u;
		n = d->i.mnemonic == ZYDIS_MNEMONIC_SUB ? -n : n;
		break;
	case ZYDIS_MNEMONIC_INC:
		n = 1;
		break;
	case ZYDIS_MNEMONIC_DEC:
		n = -1;
		break;
	case ZYDIS_MNEMONIC_LEA:
		if (by->mem.base != to->reg.value || by->mem.index != ZYDIS_REGISTER_NONE ||
			d->i.address_width != 64)
			return;
		n = by->mem.disp.value;
		break;
	default:
		return;
	}
	if (n < INT32_MIN / 2 || n > INT32_MAX / 2)
		return;
	r->flags |= MACHINE_ADJUSTS;
	r->adjusted = machine_gpr(to->reg.value);
	r->adjustment = (int32_t)n;
}

/* ---- accesses -------------------------------------------------------------------------------- */

static struct machine_access *machine_add(struct decoded *d, struct machine_access a)
{
	struct machine_instruction *r = d->ret;
	if (r->nr_accesses == MACHINE_ACCESSES_MAX) {
		r->flags |= MACHINE_UNKNOWN;
		return NULL;
	}
	r->access[r->nr_accesses] = a;
	return &r->access[r->nr_accesses++];
}

static void machine_add_stack(struct decoded *d, uint8_t direction, int32_t disp, uint8_t base)
{
	machine_add(d, (struct machine_access){.direction = direction,
			       .reg = REG_INTEGER,
			       .base = base,
			       .index = MACHINE_NONE,
			       .disp = disp,
			       .size = d->i.operand_width == 16 ? 2 : STACK_WORD});
}

static void adjust_stack(struct decoded *d, int32_t by)
{
	d->ret->flags |= MACHINE_ADJUSTS;
	d->ret->adjusted = MACHINE_RSP;
	d->ret->adjustment = by;
}

static uint8_t register_class(const struct decoded *d, const ZydisDecodedOperand *memory)
{
	if (d->i.meta.isa_ext == ZYDIS_ISA_EXT_X87)
		return REG_FLOAT;
	for (unsigned k = 0; k < d->i.operand_count_visible; k++) {
		const ZydisDecodedOperand *o = &d->op[k];
		if (o->type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		switch (ZydisRegisterGetClass(o->reg.value)) {
		case ZYDIS_REGCLASS_XMM:
			if (memory->size <= 64 && memory->element_count <= 1 &&
				!d->i.avx.broadcast.mode)
				return REG_FLOAT;
			return REG_VECTOR;
		case ZYDIS_REGCLASS_YMM:
		case ZYDIS_REGCLASS_ZMM:
		case ZYDIS_REGCLASS_MMX:
			return REG_VECTOR;
		case ZYDIS_REGCLASS_X87:
			return REG_FLOAT;
		default:
			break;
		}
	}
	return REG_INTEGER;
}

static bool writes(const ZydisDecodedOperand *o)
{
	return o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
}

static bool reads(const ZydisDecodedOperand *o)
{
	return o->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
}

static bool is_indivisible(const struct decoded *d)
{
	return d->i.attributes & ZYDIS_ATTRIB_HAS_LOCK || d->i.mnemonic == ZYDIS_MNEMONIC_XCHG;
}

static bool is_packed(const struct decoded *d)
{
	switch (d->i.mnemonic) {
	case ZYDIS_MNEMONIC_VCOMPRESSPD:
	case ZYDIS_MNEMONIC_VCOMPRESSPS:
	case ZYDIS_MNEMONIC_VPCOMPRESSB:
	case ZYDIS_MNEMONIC_VPCOMPRESSW:
	case ZYDIS_MNEMONIC_VPCOMPRESSD:
	case ZYDIS_MNEMONIC_VPCOMPRESSQ:
	case ZYDIS_MNEMONIC_VEXPANDPD:
	case ZYDIS_MNEMONIC_VEXPANDPS:
	case ZYDIS_MNEMONIC_VPEXPANDB:
	case ZYDIS_MNEMONIC_VPEXPANDW:
	case ZYDIS_MNEMONIC_VPEXPANDD:
	case ZYDIS_MNEMONIC_VPEXPANDQ:
		return true;
	default:
		return false;
	}
}

/* The vector register that is a mask: of AVX2 gathers and of vmaskmov. */
static bool vector_mask(const struct decoded *d, bool gather, struct machine_access *a)
{
	const ZydisDecodedOperand *m = NULL;
	switch (d->i.mnemonic) {
	case ZYDIS_MNEMONIC_VMASKMOVPS:
	case ZYDIS_MNEMONIC_VMASKMOVPD:
	case ZYDIS_MNEMONIC_VPMASKMOVD:
	case ZYDIS_MNEMONIC_VPMASKMOVQ:
		m = &d->op[1];
		break;
	default:
		if (!gather)
			return false;
		m = &d->op[2];
		break;
	}
	if (m->type != ZYDIS_OPERAND_TYPE_REGISTER)
		return false;
	ZydisRegisterClass class = ZydisRegisterGetClass(m->reg.value);
	if (class != ZYDIS_REGCLASS_XMM && class != ZYDIS_REGCLASS_YMM)
		return false;
	bool wide = class == ZYDIS_REGCLASS_YMM;
	a->mask = (uint8_t)ZydisRegisterGetId(m->reg.value);
	a->mask_kind = (uint8_t)(a->size == 8 ? (wide ? MACHINE_MASK_PD_Y : MACHINE_MASK_PD)
					      : (wide ? MACHINE_MASK_PS_Y : MACHINE_MASK_PS));
	return true;
}

static const struct gather_shape {
	ZydisMnemonic mnemonic;
	uint8_t element_bytes, index_bytes;
} gather_shape[] = {
	{ZYDIS_MNEMONIC_VGATHERQPS, 4, 8},
	{ZYDIS_MNEMONIC_VPGATHERQD, 4, 8},
	{ZYDIS_MNEMONIC_VSCATTERQPS, 4, 8},
	{ZYDIS_MNEMONIC_VPSCATTERQD, 4, 8},
	{ZYDIS_MNEMONIC_VGATHERQPD, 8, 8},
	{ZYDIS_MNEMONIC_VPGATHERQQ, 8, 8},
	{ZYDIS_MNEMONIC_VSCATTERQPD, 8, 8},
	{ZYDIS_MNEMONIC_VPSCATTERQQ, 8, 8},
	{ZYDIS_MNEMONIC_VGATHERDPD, 8, 4},
	{ZYDIS_MNEMONIC_VPGATHERDQ, 8, 4},
	{ZYDIS_MNEMONIC_VSCATTERDPD, 8, 4},
	{ZYDIS_MNEMONIC_VPSCATTERDQ, 8, 4},
	{ZYDIS_MNEMONIC_VGATHERDPS, 4, 4},
	{ZYDIS_MNEMONIC_VPGATHERDD, 4, 4},
	{ZYDIS_MNEMONIC_VSCATTERDPS, 4, 4},
	{ZYDIS_MNEMONIC_VPSCATTERDD, 4, 4},
};

static uint32_t vector_bytes_of(ZydisRegister r)
{
	return r >= ZYDIS_REGISTER_ZMM0 ? 64 : r >= ZYDIS_REGISTER_YMM0 ? 32 : 16;
}

/* Gathers and scatters: how many elements there are follows from the vector of data and that of
 * indices. False: a prefetch, of which there is no shape. */
static bool note_gather(struct decoded *d, const ZydisDecodedOperand *o, struct machine_access *a)
{
	uint32_t index_bytes = vector_bytes_of(o->mem.index);
	const struct gather_shape *shape = NULL;
	ZydisRegister data = ZYDIS_REGISTER_NONE;
	a->index = (uint8_t)ZydisRegisterGetId(o->mem.index);
	a->vector_bytes = (uint8_t)index_bytes;
	for (size_t n = 0; n < BASE_COUNT(gather_shape); n++)
		if (gather_shape[n].mnemonic == d->i.mnemonic)
			shape = &gather_shape[n];
	if (!shape) {
		d->ret->flags |= MACHINE_UNKNOWN;
		return false;
	}
	for (unsigned n = 0; n < d->i.operand_count_visible && !data; n++)
		if (d->op[n].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			ZydisRegisterGetClass(d->op[n].reg.value) >= ZYDIS_REGCLASS_XMM &&
			ZydisRegisterGetClass(d->op[n].reg.value) <= ZYDIS_REGCLASS_ZMM)
			data = d->op[n].reg.value;
	uint32_t count = vector_bytes_of(data) / shape->element_bytes;
	if (count > index_bytes / shape->index_bytes)
		count = index_bytes / shape->index_bytes;
	a->index_bytes = shape->index_bytes;
	a->size = shape->element_bytes;
	a->elements = (uint8_t)count;
	a->form = MEMORY_FORM_VECTOR;
	return true;
}

static void note_mask(struct decoded *d, const ZydisDecodedOperand *o, struct machine_access *a)
{
	bool gather = o->mem.type == ZYDIS_MEMOP_TYPE_VSIB;
	bool k = d->i.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX && d->i.avx.mask.reg &&
		 d->i.avx.mask.reg != ZYDIS_REGISTER_K0;
	uint32_t element = o->element_size / 8u;
	uint32_t count = element ? o->element_count : 0;
	if (gather) {
		if (!note_gather(d, o, a))
			return;
		element = a->size;
		count = a->elements;
	}
	if (k) {
		a->mask = (uint8_t)ZydisRegisterGetId(d->i.avx.mask.reg);
		a->mask_kind = MACHINE_MASK_K;
	} else {
		a->size = element ? element : a->size;
		if (!vector_mask(d, gather, a)) {
			if (!gather)
				a->size = o->size / 8u;
			else
				d->ret->flags |= MACHINE_UNKNOWN;
			return;
		}
	}
	if (gather || d->i.avx.broadcast.mode || !element || (count <= 1 && !is_packed(d)))
		return;
	a->size = element;
	a->elements = (uint8_t)count;
	a->form = is_packed(d) ? MEMORY_FORM_PACKED : MEMORY_FORM_MASKED;
}

static void machine_add_operand(struct decoded *d, const ZydisDecodedOperand *o)
{
	struct machine_access a = {
		.reg = register_class(d, o),
		.base = machine_gpr(o->mem.base),
		.index = machine_gpr(o->mem.index),
		.scale = o->mem.scale ? o->mem.scale : 1,
		.fs = o->mem.segment == ZYDIS_REGISTER_FS,
		.rip = o->mem.base == ZYDIS_REGISTER_RIP,
		.from_text = true,
		.disp = (int32_t)o->mem.disp.value,
		.size = o->size / 8u,
	};
	if (o->mem.segment == ZYDIS_REGISTER_GS || o->mem.base == ZYDIS_REGISTER_EIP ||
		d->i.address_width != 64) {
		d->ret->flags |= MACHINE_UNKNOWN;
		return;
	}
	if (a.rip)
		d->ret->disp_at = d->i.raw.disp.offset;
	note_mask(d, o, &a);
	if (!a.size) {
		d->ret->flags |= MACHINE_UNKNOWN;
		return;
	}
	if (a.form == MEMORY_FORM_SLOT && a.size > ACCESS_MAX_BYTES)
		a.form = MEMORY_FORM_RANGE;
	if (is_indivisible(d)) {
		a.direction = MEMORY_ACCESS_BOTH;
		d->ret->flags |= MACHINE_STAMP;
		machine_add(d, a);
		return;
	}
	a.direction = MEMORY_ACCESS_LOAD;
	if (reads(o))
		machine_add(d, a);
	a.direction = MEMORY_ACCESS_STORE;
	if (writes(o))
		machine_add(d, a);
}

/* movs, stos, lods, scas, cmps, ins, outs: the registers say all. */
static void machine_add_string(struct decoded *d)
{
	bool repeated = d->i.attributes &
			(ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
	bool may_stop =
		d->i.mnemonic >= ZYDIS_MNEMONIC_CMPSB && d->i.mnemonic <= ZYDIS_MNEMONIC_CMPSW;
	may_stop |= d->i.mnemonic >= ZYDIS_MNEMONIC_SCASB && d->i.mnemonic <= ZYDIS_MNEMONIC_SCASW;
	for (unsigned k = 0; k < d->i.operand_count; k++) {
		const ZydisDecodedOperand *o = &d->op[k];
		if (o->type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		struct machine_access a = {.reg = REG_INTEGER,
			.base = machine_gpr(o->mem.base),
			.index = MACHINE_NONE,
			.scale = 1,
			.form = (uint8_t)(!repeated  ? MEMORY_FORM_SLOT
					  : may_stop ? MEMORY_FORM_STRING_LEFT
						     : MEMORY_FORM_STRING),
			.direction = writes(o) ? MEMORY_ACCESS_STORE : MEMORY_ACCESS_LOAD,
			.size = o->size / 8u};
		machine_add(d, a);
	}
	/* Zydis writes the destination first; a load comes before the store that it feeds. */
	struct machine_access *a = d->ret->access;
	if (d->ret->nr_accesses == 2 && a[0].direction > a[1].direction) {
		struct machine_access t = a[0];
		a[0] = a[1];
		a[1] = t;
	}
}

static void add_operands(struct decoded *d)
{
	for (unsigned k = 0; k < d->i.operand_count_visible; k++) {
		const ZydisDecodedOperand *o = &d->op[k];
		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
			(o->mem.type == ZYDIS_MEMOP_TYPE_MEM ||
				o->mem.type == ZYDIS_MEMOP_TYPE_VSIB))
			machine_add_operand(d, o);
	}
}

static void machine_note_accesses(struct decoded *d)
{
	switch (d->i.meta.category) {
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
	case ZYDIS_CATEGORY_PREFETCH:
		return;
	case ZYDIS_CATEGORY_STRINGOP:
	case ZYDIS_CATEGORY_IOSTRINGOP:
		machine_add_string(d);
		return;
	default:
		break;
	}
	int32_t word = d->i.operand_width == 16 ? 2 : STACK_WORD;
	switch (d->i.mnemonic) {
	case ZYDIS_MNEMONIC_CLFLUSH:
	case ZYDIS_MNEMONIC_CLFLUSHOPT:
	case ZYDIS_MNEMONIC_CLWB:
	case ZYDIS_MNEMONIC_CLDEMOTE:
	case ZYDIS_MNEMONIC_PREFETCHW:
	case ZYDIS_MNEMONIC_PREFETCHWT1:
		return;
	case ZYDIS_MNEMONIC_XSAVE:
	case ZYDIS_MNEMONIC_XSAVEC:
	case ZYDIS_MNEMONIC_XSAVEOPT:
	case ZYDIS_MNEMONIC_XSAVES:
	case ZYDIS_MNEMONIC_XRSTOR:
	case ZYDIS_MNEMONIC_XRSTORS:
	case ZYDIS_MNEMONIC_MOVDIR64B:
	case ZYDIS_MNEMONIC_ENQCMD:
	case ZYDIS_MNEMONIC_ENQCMDS:
	case ZYDIS_MNEMONIC_ENTER:
	case ZYDIS_MNEMONIC_MASKMOVQ:
	case ZYDIS_MNEMONIC_MASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVDQU:
	case ZYDIS_MNEMONIC_XLAT:
		d->ret->flags |= MACHINE_UNKNOWN;
		return;
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHFQ:
	case ZYDIS_MNEMONIC_PUSHF:
		add_operands(d);
		machine_add_stack(d, MEMORY_ACCESS_STORE, -word, MACHINE_RSP);
		adjust_stack(d, -word);
		return;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPFQ:
	case ZYDIS_MNEMONIC_POPF:
		machine_add_stack(d, MEMORY_ACCESS_LOAD, 0, MACHINE_RSP);
		add_operands(d);
		if (d->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
			d->ret->flags |= MACHINE_POP_MEMORY;
		if (d->op[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
			machine_gpr(d->op[0].reg.value) != MACHINE_RSP)
			adjust_stack(d, word);
		return;
	case ZYDIS_MNEMONIC_CALL:
		add_operands(d);
		machine_add_stack(d, MEMORY_ACCESS_STORE, -STACK_WORD, MACHINE_RSP);
		return;
	case ZYDIS_MNEMONIC_RET:
		machine_add_stack(d, MEMORY_ACCESS_LOAD, 0, MACHINE_RSP);
		return;
	case ZYDIS_MNEMONIC_LEAVE:
		machine_add_stack(d, MEMORY_ACCESS_LOAD, 0, MACHINE_RBP);
		return;
	default:
		add_operands(d);
	}
}

bool rewrite_decode(const uint8_t *p, size_t size_bytes, struct machine_instruction *ret)
{
	ZydisDecoder decoder;
	struct decoded d = {.ret = ret};
	memset(ret, 0, sizeof *ret);
	ret->adjusted = MACHINE_NONE;
	if (!ZYAN_SUCCESS(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
		!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, p, size_bytes, &d.i, d.op)))
		return false;
	ret->length = d.i.length;
	memcpy(ret->bytes, p, d.i.length);
	ret->terminator = terminator(&d);
	if (d.i.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
		ret->flags |= MACHINE_ENDBR;
	machine_note_accesses(&d);
	note_registers(&d);
	note_adjustment(&d);
	return true;
}
