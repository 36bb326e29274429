/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oracle.c OUT PROG ARG... - runs a program built by `longpole cc` one instruction at a time, and
 * writes what each instruction of it (not of the recording code) accesses: computed from the
 * registers at that moment. What was recorded of the same run must be the same.
 *
 * Lines: L, S or A (load, store, both indivisibly), address, size; R or W for strings; J for a jump
 * that was taken (not a call, not a return), from, to, in the file; to is the next instruction of
 * the program's own, so recording code before it does not count. At the end I: how many
 * instructions. Which are the program's own is read from the tables in its file.
 */
#include "own.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

struct range {
	uint64_t start, end;
};
static struct {
	struct own own;
	uint64_t bias;
	struct range *function;
	size_t nr_functions;
	pid_t pid;
	FILE *out;
	unsigned long steps, own_steps;
} o;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "oracle: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void read_file(const char *path)
{
	if (!own_read(&o.own, path))
		die(path);
	const Elf64_Shdr *symbols = own_section(&o.own, ".symtab");
	if (!symbols)
		die("no symbols");
	const Elf64_Sym *s = (const void *)(o.own.file + symbols->sh_offset);
	size_t nr = symbols->sh_size / sizeof *s;
	o.function = calloc(nr, sizeof *o.function);
	for (size_t i = 0; i < nr; i++) {
		if (ELF64_ST_TYPE(s[i].st_info) != STT_FUNC || !s[i].st_size)
			continue;
		for (uint64_t a = s[i].st_value; a < s[i].st_value + s[i].st_size; a++)
			if (own_has(&o.own, a)) {
				o.function[o.nr_functions++] =
					(struct range){s[i].st_value, s[i].st_value + s[i].st_size};
				break;
			}
	}
}

static bool in_function(uint64_t linked)
{
	for (size_t i = 0; i < o.nr_functions; i++)
		if (linked >= o.function[i].start && linked < o.function[i].end)
			return true;
	return false;
}

/* ---- the tracee ------------------------------------------------------------------------------ */

static uint64_t peek(uint64_t at)
{
	errno = 0;
	return (uint64_t)ptrace(PTRACE_PEEKDATA, o.pid, at, 0);
}

static uint64_t reg(const struct user_regs_struct *r, ZydisRegister name, uint64_t next)
{
	if (name == ZYDIS_REGISTER_RIP)
		return next;
	switch (ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name)) {
	case ZYDIS_REGISTER_RAX:
		return r->rax;
	case ZYDIS_REGISTER_RBX:
		return r->rbx;
	case ZYDIS_REGISTER_RCX:
		return r->rcx;
	case ZYDIS_REGISTER_RDX:
		return r->rdx;
	case ZYDIS_REGISTER_RSI:
		return r->rsi;
	case ZYDIS_REGISTER_RDI:
		return r->rdi;
	case ZYDIS_REGISTER_RBP:
		return r->rbp;
	case ZYDIS_REGISTER_RSP:
		return r->rsp;
	case ZYDIS_REGISTER_R8:
		return r->r8;
	case ZYDIS_REGISTER_R9:
		return r->r9;
	case ZYDIS_REGISTER_R10:
		return r->r10;
	case ZYDIS_REGISTER_R11:
		return r->r11;
	case ZYDIS_REGISTER_R12:
		return r->r12;
	case ZYDIS_REGISTER_R13:
		return r->r13;
	case ZYDIS_REGISTER_R14:
		return r->r14;
	case ZYDIS_REGISTER_R15:
		return r->r15;
	default:
		return 0;
	}
}

static void line(char kind, uint64_t address, uint64_t size)
{
	fprintf(o.out, "%c %llx %llu\n", kind, (unsigned long long)address,
		(unsigned long long)size);
}

static bool is_string(const ZydisDecodedInstruction *i)
{
	return i->meta.category == ZYDIS_CATEGORY_STRINGOP;
}

struct string { /* under way: a step is one element */
	bool active;
	uint64_t at, si, di, count;
	bool loads, stores, loads_di;
	unsigned size;
};
static struct string string;

static void string_ends(const struct user_regs_struct *r)
{
	uint64_t n = string.count - r->rcx;
	if (string.loads)
		line('R', string.si, n * string.size);
	if (string.loads_di)
		line('R', string.di, n * string.size);
	if (string.stores)
		line('W', string.di, n * string.size);
	string.active = false;
}

/* true: a repeated string instruction begins or goes on. */
/* The last jump. */
static struct {
	uint64_t from, next; /* linked; from 0: none */
	bool always, taken;
} jump;

/* Before each instruction, whoever's it is. */
static void jump_goes_on(uint64_t linked)
{
	if (jump.from && !jump.taken) {
		jump.taken = jump.always || linked != jump.next;
		jump.from = jump.taken ? jump.from : 0;
	}
	if (!jump.from || !own_has(&o.own, linked))
		return;
	fprintf(o.out, "J %llx %llx\n", (unsigned long long)jump.from, (unsigned long long)linked);
	jump.from = 0;
}

static void jump_begins(const ZydisDecodedInstruction *i, uint64_t linked)
{
	jump.always = i->meta.category == ZYDIS_CATEGORY_UNCOND_BR;
	jump.taken = false;
	if (jump.always || i->meta.category == ZYDIS_CATEGORY_COND_BR) {
		jump.from = linked;
		jump.next = linked + i->length;
	}
}

static void accesses(const struct user_regs_struct *r)
{
	uint8_t bytes[24];
	ZydisDecoder decoder;
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	for (unsigned k = 0; k < sizeof bytes; k += 8) {
		uint64_t word = peek(r->rip + k);
		memcpy(bytes + k, &word, 8);
	}
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, sizeof bytes, &i, op)))
		die("an instruction that does not decode");
	jump_begins(&i, r->rip - o.bias);
	bool repeated = i.attributes &
			(ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
	if (i.meta.category == ZYDIS_CATEGORY_NOP || i.meta.category == ZYDIS_CATEGORY_WIDENOP ||
		i.meta.category == ZYDIS_CATEGORY_PREFETCH)
		return;
	if (is_string(&i) && repeated) {
		string = (struct string){
			.active = true, .at = r->rip, .si = r->rsi, .di = r->rdi, .count = r->rcx};
		for (unsigned k = 0; k < i.operand_count; k++)
			if (op[k].type == ZYDIS_OPERAND_TYPE_MEMORY) {
				bool di =
					ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						op[k].mem.base) == ZYDIS_REGISTER_RDI;
				bool writes = op[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
				string.size = op[k].size / 8u;
				string.loads |= !di;
				string.loads_di |= di && !writes;
				string.stores |= di && writes;
			}
		return;
	}
	bool locked = i.attributes & ZYDIS_ATTRIB_HAS_LOCK || i.mnemonic == ZYDIS_MNEMONIC_XCHG;
	for (int pass = 0; pass < 2; pass++) /* loads, then stores */
		for (unsigned k = 0; k < i.operand_count; k++) {
			const ZydisDecodedOperand *m = &op[k];
			if (m->type != ZYDIS_OPERAND_TYPE_MEMORY ||
				m->mem.type == ZYDIS_MEMOP_TYPE_AGEN ||
				m->mem.type == ZYDIS_MEMOP_TYPE_MIB)
				continue;
			if (m->mem.type == ZYDIS_MEMOP_TYPE_VSIB ||
				i.avx.mask.reg > ZYDIS_REGISTER_K0)
				continue; /* the registers are not at hand */
			bool reads = m->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
			bool writes = m->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
			uint64_t a = reg(r, m->mem.base, r->rip + i.length) +
				     reg(r, m->mem.index, 0) * m->mem.scale +
				     (uint64_t)m->mem.disp.value;
			unsigned size = m->size / 8u;
			if (m->mem.segment == ZYDIS_REGISTER_FS)
				a += r->fs_base;
			bool stack = m->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
			if (stack && writes && i.mnemonic != ZYDIS_MNEMONIC_LEAVE && !is_string(&i))
				a = r->rsp - size;
			if (!stack && i.mnemonic == ZYDIS_MNEMONIC_POP &&
				m->mem.base == ZYDIS_REGISTER_RSP)
				a += size;
			if (locked && reads && writes) {
				if (!pass)
					line('A', a, size);
				continue;
			}
			if (pass ? writes : reads)
				line(pass ? 'S' : 'L', a, size);
		}
}

/* ---- running --------------------------------------------------------------------------------- */

static int wait_stop(void)
{
	int status;
	if (waitpid(o.pid, &status, 0) < 0)
		die("waitpid");
	return status;
}

/* Runs to an address, by a breakpoint, after giving the program a signal (0: none). */
static bool run_to(uint64_t at, int signal)
{
	uint64_t word = peek(at);
	int status;
	ptrace(PTRACE_POKEDATA, o.pid, at, (word & ~UINT64_C(255)) | 0xcc);
	for (;;) {
		struct user_regs_struct r;
		ptrace(PTRACE_CONT, o.pid, 0, signal);
		status = wait_stop();
		if (!WIFSTOPPED(status))
			return false;
		ptrace(PTRACE_GETREGS, o.pid, 0, &r);
		signal = WSTOPSIG(status);
		if (signal == SIGTRAP && r.rip == at + 1) {
			r.rip = at;
			ptrace(PTRACE_SETREGS, o.pid, 0, &r);
			break;
		}
		signal = signal == SIGTRAP ? 0 : signal;
	}
	ptrace(PTRACE_POKEDATA, o.pid, at, word);
	return true;
}

static uint64_t auxv_entry(void)
{
	char path[64];
	uint64_t pair[2], entry = 0;
	snprintf(path, sizeof path, "/proc/%d/auxv", (int)o.pid);
	FILE *f = fopen(path, "r");
	while (f && fread(pair, sizeof pair, 1, f) == 1 && pair[0])
		entry = pair[0] == 9 ? pair[1] : entry;
	if (f)
		fclose(f);
	return entry;
}

static uint64_t symbol(const char *name)
{
	const Elf64_Shdr *symbols = own_section(&o.own, ".symtab"),
			 *strings = own_section(&o.own, ".strtab");
	const Elf64_Sym *s = (const void *)(o.own.file + symbols->sh_offset);
	for (size_t i = 0; i < symbols->sh_size / sizeof *s; i++)
		if (!strcmp((const char *)o.own.file + strings->sh_offset + s[i].st_name, name))
			return s[i].st_value;
	return 0;
}

static void step_through(void)
{
	struct user_regs_struct r;
	bool was_own = true;
	int signal = 0;
	for (;;) {
		ptrace(PTRACE_GETREGS, o.pid, 0, &r);
		uint64_t linked = r.rip - o.bias;
		if (string.active && r.rip != string.at && in_function(linked))
			string_ends(&r);
		if (!signal)
			jump_goes_on(linked);
		if (own_has(&o.own, linked) && !string.active && !signal) {
			o.own_steps++;
			accesses(&r);
		}
		/* A call (or a signal, whose handler's return address is there as well) led out of
		 * the program's own code: come back when it returns. */
		if (!in_function(linked) && was_own && !signal && !getenv("ORACLE_STEP")) {
			was_own = false;
			if (!run_to(peek(r.rsp), 0))
				return;
			continue;
		}
		was_own = in_function(linked);
		if (ptrace(PTRACE_SINGLESTEP, o.pid, 0, signal))
			die("single step");
		o.steps++;
		int status = wait_stop();
		if (!WIFSTOPPED(status))
			return;
		signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	o.out = fopen(argv[1], "w");
	if (!o.out)
		die(argv[1]);
	read_file(argv[2]);
	o.pid = fork();
	if (!o.pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	wait_stop();
	o.bias = auxv_entry() - ((const Elf64_Ehdr *)(const void *)o.own.file)->e_entry;
	if (run_to(symbol("main") + o.bias, 0))
		step_through();
	fprintf(o.out, "I %lu\n", o.own_steps);
	fclose(o.out);
	fprintf(stderr, "oracle: %lu steps\n", o.steps);
	return 0;
}
