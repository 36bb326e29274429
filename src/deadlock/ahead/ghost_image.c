/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ghost_image.c - the ghost's program, put together at run time: an ELF header, a few instructions
 * and a seccomp filter. It sets the filter and traps; behind that is the one system call
 * instruction through which it makes the calls that its tracer wants.
 */
#include "deadlock/ahead/ghost_image.h"

#include <elf.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* Position independent: it is copied. The filter's address is patched in. (Global names, because
 * link-time optimisation may put this into another unit than the functions below.) */
__asm__(".pushsection .rodata\n"
	"	.globl deadlock_image_code, deadlock_image_code_program\n"
	"	.globl deadlock_image_code_ready, deadlock_image_code_end\n"
	"	.hidden deadlock_image_code, deadlock_image_code_program\n"
	"	.hidden deadlock_image_code_ready, deadlock_image_code_end\n"
	"deadlock_image_code:\n"
	"	mov $157, %eax\n" /* prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) */
	"	mov $38, %edi\n"
	"	mov $1, %esi\n"
	"	xor %edx, %edx\n"
	"	xor %r10d, %r10d\n"
	"	xor %r8d, %r8d\n"
	"	syscall\n"
	"	mov $317, %eax\n" /* seccomp(SECCOMP_SET_MODE_FILTER, 0, program) */
	"	mov $1, %edi\n"
	"	xor %esi, %esi\n"
	"	mov $0, %edx\n"
	"deadlock_image_code_program:\n"
	"	syscall\n"
	"	int3\n"
	"deadlock_image_code_ready:\n"
	"	syscall\n"
	"	int3\n"
	"deadlock_image_code_end:\n"
	"	.popsection\n");
extern const uint8_t deadlock_image_code[], deadlock_image_code_program[],
	deadlock_image_code_ready[], deadlock_image_code_end[];

enum { CODE_AT = 256, PROGRAM_AT = 1024, FILTER_AT = 1040 };

#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define LOAD(field)                                                                                \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))

/* The whole of what a ghost can ask of the kernel. */
static const struct sock_filter filter[] = {
	LOAD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
	KILL,
	LOAD(nr),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 7, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 6, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 5, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
	KILL,
	LOAD(args[3]), /* the low half of mmap's flags */
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, MAP_SHARED | MAP_PRIVATE | MAP_ANONYMOUS),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MAP_PRIVATE | MAP_ANONYMOUS, 0, 1),
	ALLOW,
	KILL,
};

void deadlock_image_make(struct deadlock_image *ret)
{
	const uint32_t base = DEADLOCK_IMAGE_ADDRESS, program_address = base + PROGRAM_AT;
	const Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_entry = base + CODE_AT,
		.e_phoff = sizeof header,
		.e_ehsize = sizeof header,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	const Elf64_Phdr segment = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_vaddr = base,
		.p_paddr = base,
		.p_filesz = DEADLOCK_IMAGE_BYTES,
		.p_memsz = DEADLOCK_IMAGE_BYTES,
		.p_align = DEADLOCK_IMAGE_BYTES,
	};
	const struct {
		uint16_t length, pad[3];
		uint64_t filter;
	} program = {.length = sizeof filter / sizeof *filter, .filter = base + FILTER_AT};
	*ret = (struct deadlock_image){0};
	uint8_t *code = ret->bytes + CODE_AT;
	memcpy(ret->bytes, &header, sizeof header);
	memcpy(ret->bytes + sizeof header, &segment, sizeof segment);
	memcpy(code, deadlock_image_code, (size_t)(deadlock_image_code_end - deadlock_image_code));
	memcpy(code + (deadlock_image_code_program - deadlock_image_code) - sizeof program_address,
		&program_address, sizeof program_address);
	memcpy(ret->bytes + PROGRAM_AT, &program, sizeof program);
	memcpy(ret->bytes + FILTER_AT, filter, sizeof filter);
	ret->ready = base + CODE_AT + (uint64_t)(deadlock_image_code_ready - deadlock_image_code);
	ret->call = ret->ready;
	ret->called = base + CODE_AT + (uint64_t)(deadlock_image_code_end - deadlock_image_code);
}
