/* SPDX-License-Identifier: Apache-2.0 */
/* unwind.c - from a frame to its caller's, by .eh_frame. */
#include "symbol/unwind.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS_MAX = 1 << 18, OPERATIONS_MAX = 24, DEPTH_MAX = 8 };

struct operation {
	uint8_t atom;
	int64_t number, number2;
};
struct rule { /* of one register; `nr` operations say its place, or its value */
	uint32_t first;
	uint8_t nr, number;
	bool is_value, is_undefined;
};
struct row {
	struct rule cfa;
	uint32_t first_rule;
	uint8_t nr_rules;
	bool signal; /* what is interrupted here did not call */
};
struct symbol_unwinder {
	int fd;
	Elf *elf;
	Dwarf_CFI *cfi;
	struct base_map rows; /* address -> index + 1; 0: none is known */
	struct row *row;
	size_t nr_rows, row_capacity;
	struct rule *rule;
	size_t nr_rules, rule_capacity;
	struct operation *operation;
	size_t nr_operations, operation_capacity;
};

struct symbol_unwinder *symbol_unwinder_close(struct symbol_unwinder *u)
{
	if (!u)
		return NULL;
	dwarf_cfi_end(u->cfi); /* dwarf_getcfi_elf()'s is ours */
	elf_end(u->elf);
	if (u->fd >= 0)
		close(u->fd);
	base_map_fini(&u->rows);
	base_free(u->row);
	base_free(u->rule);
	base_free(u->operation);
	base_free(u);
	return NULL;
}

struct symbol_unwinder *symbol_unwinder_open(const char *path)
{
	struct symbol_unwinder *u = base_alloc(sizeof *u);
	struct stat st;
	if (!u)
		return NULL;
	elf_version(EV_CURRENT);
	u->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	/* Read, not mapped: somebody may cut the file off while its program runs. */
	if (u->fd >= 0 && !fstat(u->fd, &st) && S_ISREG(st.st_mode))
		u->elf = elf_begin(u->fd, ELF_C_READ, NULL);
	GElf_Ehdr head;
	if (u->elf && gelf_getehdr(u->elf, &head) && head.e_machine == EM_X86_64)
		u->cfi = dwarf_getcfi_elf(u->elf);
	return u->cfi ? u : symbol_unwinder_close(u);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static bool unwind_keep_rule(
	struct symbol_unwinder *u, struct rule *ret, const Dwarf_Op *op, size_t nr)
{
	ret->is_value = nr && op[nr - 1].atom == DW_OP_stack_value;
	nr -= ret->is_value;
	if (nr > OPERATIONS_MAX || base_grow(&u->operation, &u->operation_capacity,
					   u->nr_operations + nr, sizeof *u->operation) != BASE_OK)
		return false;
	ret->first = (uint32_t)u->nr_operations;
	ret->nr = (uint8_t)nr;
	for (size_t i = 0; i < nr; i++)
		u->operation[u->nr_operations++] = (struct operation){.atom = op[i].atom,
			.number = (int64_t)op[i].number,
			.number2 = (int64_t)op[i].number2};
	return true;
}

/* What a caller's registers are; those that a function leaves alone need no rule. */
static bool keep_rules(struct symbol_unwinder *u, Dwarf_Frame *frame, struct row *row)
{
	row->first_rule = (uint32_t)u->nr_rules;
	for (int number = 0; number < SYMBOL_REGISTERS_NR; number++) {
		Dwarf_Op memory[3], *op;
		size_t nr;
		struct rule rule = {.number = (uint8_t)number};
		if (dwarf_frame_register(frame, number, memory, &op, &nr))
			return false;
		if (!nr && !op)
			continue;
		rule.is_undefined = !nr;
		if (!unwind_keep_rule(u, &rule, op, nr) ||
			base_grow(&u->rule, &u->rule_capacity, u->nr_rules + 1, sizeof rule) !=
				BASE_OK)
			return false;
		u->rule[u->nr_rules++] = rule;
		row->nr_rules++;
	}
	return true;
}

static bool read_row(struct symbol_unwinder *u, uint64_t address, struct row *ret)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Op *op;
	size_t nr;
	*ret = (struct row){0};
	if (dwarf_cfi_addrframe(u->cfi, address, &frame))
		return false;
	(void)dwarf_frame_info(frame, NULL, NULL, &ret->signal);
	bool kept = !dwarf_frame_cfa(frame, &op, &nr) && nr &&
		    unwind_keep_rule(u, &ret->cfa, op, nr) && keep_rules(u, frame, ret);
	free(frame); /* allowed: libdw's */
	return kept;
}

/* NULL: the code is not described. Valid until the next call. */
static const struct row *row_at(struct symbol_unwinder *u, uint64_t address)
{
	uint64_t known;
	if (base_map_get(&u->rows, 0, address, &known))
		return known ? &u->row[known - 1] : NULL;
	struct row row;
	if (u->nr_rows >= ROWS_MAX ||
		base_grow(&u->row, &u->row_capacity, u->nr_rows + 1, sizeof row) != BASE_OK)
		return NULL;
	known = read_row(u, address, &row) ? u->nr_rows + 1 : 0;
	if (base_map_put(&u->rows, 0, address, known) != BASE_OK || !known)
		return NULL;
	u->row[u->nr_rows] = row;
	return &u->row[u->nr_rows++];
}

/* ---- expressions ----------------------------------------------------------------------------- */

static bool load(const struct symbol_frame_state *s, uint64_t address, uint64_t *ret)
{
	uint64_t at = address - s->stack_begin;
	if (address < s->stack_begin || s->stack_bytes < sizeof *ret ||
		at > s->stack_bytes - sizeof *ret)
		return false;
	memcpy(ret, s->stack + at, sizeof *ret);
	return true;
}

static bool unwind_register(const struct symbol_frame_state *s, uint64_t number, uint64_t *ret)
{
	if (number >= SYMBOL_REGISTERS_NR || !(s->known >> number & 1))
		return false;
	*ret = s->value[number];
	return true;
}

/* What puts a value on the machine's stack. False: it is not known. */
static bool unwind_value(
	const struct symbol_frame_state *s, const struct operation *o, uint64_t cfa, uint64_t *ret)
{
	uint64_t base = 0;
	if (o->atom >= DW_OP_lit0 && o->atom <= DW_OP_lit31) {
		*ret = (uint64_t)(o->atom - DW_OP_lit0);
		return true;
	}
	if (o->atom >= DW_OP_const1u && o->atom <= DW_OP_consts) {
		*ret = (uint64_t)o->number;
		return true;
	}
	if (o->atom == DW_OP_call_frame_cfa) {
		*ret = cfa;
		return true;
	}
	bool x = o->atom == DW_OP_bregx;
	if (!x && (o->atom < DW_OP_breg0 || o->atom > DW_OP_breg31))
		return false;
	if (!unwind_register(s, x ? (uint64_t)o->number : (uint64_t)(o->atom - DW_OP_breg0), &base))
		return false;
	*ret = base + (uint64_t)(x ? o->number2 : o->number);
	return true;
}

/* Of two values; what entries of the procedure linkage table need. */
static bool combine(uint8_t atom, uint64_t a, uint64_t b, uint64_t *ret)
{
	switch (atom) {
	case DW_OP_plus:
		*ret = a + b;
		return true;
	case DW_OP_minus:
		*ret = a - b;
		return true;
	case DW_OP_and:
		*ret = a & b;
		return true;
	case DW_OP_shl:
		*ret = b < 64 ? a << b : 0;
		return true;
	case DW_OP_ge:
		*ret = (int64_t)a >= (int64_t)b;
		return true;
	default:
		return false;
	}
}

static bool evaluate(const struct symbol_unwinder *u, const struct rule *r,
	const struct symbol_frame_state *s, uint64_t cfa, uint64_t *ret)
{
	uint64_t stack[DEPTH_MAX] = {0};
	size_t depth = 0;
	for (size_t i = 0; i < r->nr; i++) {
		const struct operation *o = &u->operation[r->first + i];
		uint64_t value;
		if (o->atom == DW_OP_deref && depth) {
			if (!load(s, stack[depth - 1], &stack[depth - 1]))
				return false;
		} else if (o->atom == DW_OP_plus_uconst && depth) {
			stack[depth - 1] += (uint64_t)o->number;
		} else if (depth >= 2 &&
			   combine(o->atom, stack[depth - 2], stack[depth - 1], &value)) {
			stack[--depth - 1] = value;
		} else if (depth < DEPTH_MAX && unwind_value(s, o, cfa, &value)) {
			stack[depth++] = value;
		} else {
			return false;
		}
	}
	*ret = depth ? stack[depth - 1] : 0;
	return depth > 0;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The value that the caller's register has. */
static bool restored(const struct symbol_unwinder *u, const struct rule *r,
	const struct symbol_frame_state *s, uint64_t cfa, uint64_t *ret)
{
	const struct operation *o = &u->operation[r->first];
	if (r->nr == 1 &&
		(o->atom == DW_OP_regx || (o->atom >= DW_OP_reg0 && o->atom <= DW_OP_reg31)))
		return unwind_register(s,
			o->atom == DW_OP_regx ? (uint64_t)o->number
					      : (uint64_t)(o->atom - DW_OP_reg0),
			ret);
	return evaluate(u, r, s, cfa, ret) && (r->is_value || load(s, *ret, ret));
}

static void set_register(struct symbol_frame_state *s, unsigned number, uint64_t value, bool known)
{
	s->value[number] = known ? value : 0;
	s->known = known ? s->known | 1u << number : s->known & ~(1u << number);
}

enum symbol_unwound symbol_unwinder_step(
	struct symbol_unwinder *u, uint64_t bias, struct symbol_frame_state *s)
{
	struct symbol_frame_state caller = *s;
	uint64_t pc, cfa;
	if (!unwind_register(s, SYMBOL_REGISTER_RIP, &pc))
		return SYMBOL_UNWOUND_nothing;
	const struct row *row = row_at(u, pc - bias - s->is_return);
	if (!row || !evaluate(u, &row->cfa, s, 0, &cfa))
		return SYMBOL_UNWOUND_nothing;
	set_register(&caller, SYMBOL_REGISTER_RSP, cfa, true);
	set_register(&caller, SYMBOL_REGISTER_RIP, 0, false);
	for (size_t i = 0; i < row->nr_rules; i++) {
		const struct rule *r = &u->rule[row->first_rule + i];
		uint64_t value = 0;
		if (r->is_undefined && r->number == SYMBOL_REGISTER_RIP)
			return SYMBOL_UNWOUND_outermost;
		bool known = !r->is_undefined && restored(u, r, s, cfa, &value);
		set_register(&caller, r->number, value, known);
	}
	caller.is_return = !row->signal;
	if (!(caller.known >> SYMBOL_REGISTER_RIP & 1) ||
		!(caller.known >> SYMBOL_REGISTER_RSP & 1))
		return SYMBOL_UNWOUND_nothing;
	if (!caller.value[SYMBOL_REGISTER_RIP])
		return SYMBOL_UNWOUND_outermost;
	/* A caller's frame is above its callee's, a signal's handler may have a stack of its own. */
	if (!row->signal && s->known >> SYMBOL_REGISTER_RSP & 1 &&
		caller.value[SYMBOL_REGISTER_RSP] <= s->value[SYMBOL_REGISTER_RSP])
		return SYMBOL_UNWOUND_nothing;
	*s = caller;
	return SYMBOL_UNWOUND_caller;
}

enum symbol_unwound symbol_unwind_by_pointer(struct symbol_frame_state *s)
{
	uint64_t frame, stack, next, back;
	if (!unwind_register(s, SYMBOL_REGISTER_RBP, &frame) ||
		!unwind_register(s, SYMBOL_REGISTER_RSP, &stack) || frame < stack || frame % 8 ||
		!load(s, frame, &next) || !load(s, frame + 8, &back))
		return SYMBOL_UNWOUND_nothing;
	if (!back)
		return SYMBOL_UNWOUND_outermost;
	struct symbol_frame_state caller = *s;
	caller.known = 0; /* what other registers were nobody says */
	set_register(&caller, SYMBOL_REGISTER_RBP, next, true);
	set_register(&caller, SYMBOL_REGISTER_RSP, frame + 16, true);
	set_register(&caller, SYMBOL_REGISTER_RIP, back, true);
	caller.is_return = true;
	*s = caller;
	return SYMBOL_UNWOUND_caller;
}
