/* SPDX-License-Identifier: Apache-2.0 */
/* Ghosts, what stops them, and what they may never do; the table of emulated system calls;
 * decoding. */
#include "deadlock/ahead/decode.h"
#include "deadlock/ahead/emulate.h"
#include "deadlock/ahead/ghost.h"
#include "deadlock/ahead/ghost_image.h"
#include "deadlock/ahead/pin.h"
#include "deadlock/ahead/snapshot.h"
#include "deadlock/ahead/spin.h"
#include "test.h"

#include <stdio.h>

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_own_mappings(void **state);

/* A ghost that is a copy of this very process. */
struct fixture {
	struct deadlock_world *world;
	struct deadlock_process *process;
	struct deadlock_ghost *ghost;
};

static int32_t watched_by_all[1024]; /* in memory of ours that a ghost copies */

static bool set_up(struct fixture *f)
{
	struct base_err err = {0};
	const char *why = "";
	*f = (struct fixture){0};
	assert_int_equal(deadlock_world_open(&f->world, &err), BASE_OK);
	f->process = deadlock_world_process(f->world, getpid());
	assert_non_null(f->process);
	deadlock_process_regions(f->world, f->process);
	if (deadlock_ghost_new(&f->ghost, &err) != BASE_OK) {
		print_message("skip: %s\n", err.cause[0]);
		deadlock_world_close(f->world);
		return false;
	}
	assert_true(deadlock_ghost_begin(f->ghost, f->process, &why));
	return true;
}

static void tear_down(struct fixture *f)
{
	deadlock_ghost_free(f->ghost);
	deadlock_world_close(f->world);
}

static void test_image(void **state)
{
	struct deadlock_image image;
	Elf64_Ehdr header;
	(void)state;
	deadlock_image_make(&image);
	memcpy(&header, image.bytes, sizeof header);
	assert_memory_equal(header.e_ident, ELFMAG, SELFMAG);
	assert_int_equal(header.e_type, ET_EXEC);
	/* a `syscall` instruction, then a trap, behind the trap that says ready */
	const uint8_t expected[] = {0x0f, 0x05, 0xcc};
	assert_memory_equal(
		image.bytes + (image.call - DEADLOCK_IMAGE_ADDRESS), expected, sizeof expected);
	assert_int_equal(image.called - image.call, sizeof expected);
	assert_int_equal(image.bytes[image.ready - 1 - DEADLOCK_IMAGE_ADDRESS], 0xcc);
}

static void test_memory_is_a_copy(void **state)
{
	struct fixture f;
	int32_t seen = 0;
	const int32_t other = 99;
	(void)state;
	if (!set_up(&f))
		return;
	const uint64_t address = (uint64_t)(uintptr_t)&watched_by_all[0];
	watched_by_all[0] = 17;
	assert_true(deadlock_ghost_read(f.ghost, address, &seen, sizeof seen));
	assert_int_equal(seen, 17);
	assert_true(deadlock_ghost_write(f.ghost, address, &other, sizeof other));
	assert_int_equal(watched_by_all[0], 17);
	watched_by_all[0] = 18; /* and the other way round */
	assert_true(deadlock_ghost_read(f.ghost, address, &seen, sizeof seen));
	assert_int_equal(seen, 99);
	assert_true(deadlock_ghost_chunks(f.ghost) >= 1);
	assert_false(deadlock_ghost_read(f.ghost, 64, &seen, sizeof seen));
	/* a new beginning has nothing of the old one */
	const char *why;
	assert_true(deadlock_ghost_begin(f.ghost, f.process, &why));
	assert_true(deadlock_ghost_read(f.ghost, address, &seen, sizeof seen));
	assert_int_equal(seen, 18);
	tear_down(&f);
}

static void test_shared_memory_is_private_to_it(void **state)
{
	struct fixture f;
	int32_t value = 5;
	(void)state;
	int32_t *shared =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*shared = 4;
	if (set_up(&f)) {
		const uint64_t address = (uint64_t)(uintptr_t)shared;
		assert_true(deadlock_ghost_write(f.ghost, address, &value, sizeof value));
		assert_int_equal(*shared, 4);
		assert_true(deadlock_ghost_read(f.ghost, address, &value, sizeof value));
		assert_int_equal(value, 5);
		tear_down(&f);
	}
	munmap(shared, 4096);
}

static void test_untouched_memory_stays_untouched(void **state)
{
	struct fixture f;
	unsigned char resident[16], byte = 1;
	const size_t size = sizeof resident * 4096;
	(void)state;
	unsigned char *fresh =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (set_up(&f)) {
		assert_true(
			deadlock_ghost_read(f.ghost, (uint64_t)(uintptr_t)fresh + 5000, &byte, 1));
		assert_int_equal(byte, 0);
		assert_int_equal(mincore(fresh, size, resident), 0);
		for (size_t i = 0; i < sizeof resident; i++)
			assert_int_equal(resident[i] & 1, 0);
		tear_down(&f);
	}
	munmap(fresh, size);
}

/* A ghost keeps code from one copy to the next, unless a copy has changed it. */
static void test_code_is_as_in_the_process(void **state)
{
	struct fixture f;
	uint8_t seen[16];
	const char *why;
	(void)state;
	if (!set_up(&f))
		return;
	const uint64_t code = (uint64_t)(uintptr_t)&test_own_mappings,
		       page = code & ~(uint64_t)4095;
	const uint8_t other[16] = {0};
	for (int change = 0; change < 4; change++) {
		assert_true(deadlock_ghost_read(f.ghost, code, seen, sizeof seen));
		assert_memory_equal(seen, (const void *)(uintptr_t)code, sizeof seen);
		if (change == 1)
			assert_int_equal(deadlock_ghost_unmap(f.ghost, page, 4096), 0);
		if (change == 2)
			assert_true(deadlock_ghost_map(f.ghost, page, 4096, PROT_READ) > 0);
		if (change == 3) {
			assert_int_equal(
				deadlock_ghost_protect(f.ghost, page, 4096, PROT_READ | PROT_WRITE),
				0);
			assert_true(deadlock_ghost_write(f.ghost, code, other, sizeof other));
		}
		assert_true(deadlock_ghost_begin(f.ghost, f.process, &why));
		if (change == 0) /* and it was kept */
			assert_int_equal(deadlock_ghost_chunks(f.ghost), 0);
	}
	assert_true(deadlock_ghost_read(f.ghost, code, seen, sizeof seen));
	assert_memory_equal(seen, (const void *)(uintptr_t)code, sizeof seen);
	tear_down(&f);
}

/* A child whose pages of a mapped file are its own from 4096 on. Its pid; it ends with us. */
static pid_t child_with_other_page(uint8_t *mapped)
{
	const pid_t parent = getpid(), pid = fork();
	if (pid != 0)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
		mprotect(mapped + 4096, 4096, PROT_READ | PROT_WRITE) == 0) {
		mapped[4096] = 77;
		if (mprotect(mapped + 4096, 4096, PROT_READ) == 0)
			(void)raise(SIGSTOP);
	}
	_exit(1);
}

/* From one process to another, a ghost keeps what both have of a file, and nothing that one of them
 * changed; there and back. */
static void test_another_process_with_the_same_files(void **state)
{
	struct fixture f;
	uint8_t page[4096] = {0}, seen = 0;
	char path[] = "/tmp/longpole-ghost-XXXXXX";
	const char *why;
	int status;
	(void)state;
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(write(fd, page, sizeof page), sizeof page);
	uint8_t *mapped = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(mapped, MAP_FAILED);
	const pid_t pid = child_with_other_page(mapped);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	if (set_up(&f)) {
		const uint64_t code = (uint64_t)(uintptr_t)&test_own_mappings,
			       data = (uint64_t)(uintptr_t)mapped;
		struct deadlock_process *child = deadlock_world_process(f.world, pid);
		assert_non_null(child);
		deadlock_process_regions(f.world, child);
		for (int i = 0; i < 4; i++) {
			const bool is_child = i & 1;
			assert_true(
				deadlock_ghost_begin(f.ghost, is_child ? child : f.process, &why));
			assert_true(deadlock_ghost_read(f.ghost, code, &seen, 1));
			assert_int_equal(deadlock_ghost_chunks(f.ghost), i == 0);
			assert_true(deadlock_ghost_read(f.ghost, data + 4096, &seen, 1));
			assert_int_equal(seen, is_child ? 77 : 0);
		}
		tear_down(&f);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	munmap(mapped, 8192);
	(void)close(fd);
	(void)unlink(path);
}

/* A thread that is to be on one processor leaves it to others that wait for one. */
static void test_pin(void **state)
{
	struct deadlock_pin pin = {0};
	cpu_set_t before, now;
	(void)state;
	assert_true(deadlock_pin_has_room("0.10 0.20 0.30 2/99 1234\n", 2));
	assert_false(deadlock_pin_has_room("0.10 0.20 0.30 3/99 1234\n", 2));
	assert_false(deadlock_pin_has_room("0.10", 2));
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	deadlock_pin_set(&pin);
	assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
	assert_int_equal(CPU_COUNT(&now), pin.is_set ? 1 : CPU_COUNT(&before));
	deadlock_pin_end(&pin);
	assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
	assert_true(CPU_EQUAL(&now, &before));
}

static void test_own_mappings(void **state)
{
	struct fixture f;
	uint64_t value = 3;
	(void)state;
	if (!set_up(&f))
		return;
	const int64_t a = deadlock_ghost_map(f.ghost, 0, 10000, PROT_READ | PROT_WRITE);
	const int64_t b = deadlock_ghost_map(f.ghost, 0, 4096, PROT_READ | PROT_WRITE);
	assert_true(a > 0 && b > 0 && (b >= a + 12288 || a >= b + 4096));
	assert_null(deadlock_process_region(f.world, f.process, (uint64_t)a));
	assert_true(deadlock_ghost_write(f.ghost, (uint64_t)a + 8, &value, sizeof value));
	assert_int_equal(deadlock_ghost_unmap(f.ghost, (uint64_t)a, 4096), 0);
	assert_false(deadlock_ghost_read(f.ghost, (uint64_t)a + 8, &value, sizeof value));
	/* what it gave up does not come back from the process */
	const uint64_t ours = (uint64_t)(uintptr_t)watched_by_all & ~(uint64_t)4095;
	assert_int_equal(deadlock_ghost_unmap(f.ghost, ours, 4096), 0);
	assert_false(deadlock_ghost_read(f.ghost, ours, &value, sizeof value));
	/* nor does the page that it works with go */
	assert_int_equal(deadlock_ghost_unmap(f.ghost, DEADLOCK_IMAGE_ADDRESS, 4096), -EINVAL);
	assert_true(deadlock_ghost_map(f.ghost, 0, (uint64_t)1 << 40, PROT_READ) == -ENOMEM);
	tear_down(&f);
}

/* Code at an address of the ghost's own. */
static uint64_t put_code(struct fixture *f, const void *code, size_t size)
{
	const int64_t at =
		deadlock_ghost_map(f->ghost, 0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
	assert_true(at > 0);
	assert_true(deadlock_ghost_write(f->ghost, (uint64_t)at, code, size));
	struct user_regs_struct *r = deadlock_ghost_registers(f->ghost);
	*r = (struct user_regs_struct){.rip = (uint64_t)at,
		.rsp = (uint64_t)at + 4000,
		.cs = 0x33,
		.ss = 0x2b,
		.orig_rax = (uint64_t)-1};
	return (uint64_t)at;
}

static void test_stops(void **state)
{
	struct fixture f;
	(void)state;
	if (!set_up(&f))
		return;
	/* mov $57,%eax (fork); syscall */
	uint64_t at = put_code(&f, "\xb8\x39\0\0\0\x0f\x05", 7);
	assert_int_equal(deadlock_ghost_go(f.ghost, false), DEADLOCK_STOP_CALL);
	assert_int_equal(deadlock_ghost_registers(f.ghost)->orig_rax, SYS_fork);
	assert_int_equal(deadlock_ghost_registers(f.ghost)->rip, at + 7);
	/* mov 0x40,%eax */
	put_code(&f, "\x8b\x04\x25\x40\0\0\0", 7);
	assert_int_equal(deadlock_ghost_go(f.ghost, false), DEADLOCK_STOP_FAULT);
	assert_int_equal(deadlock_ghost_fault_address(f.ghost), 0x40);
	/* jmp . */
	put_code(&f, "\xeb\xfe", 2);
	assert_int_equal(deadlock_ghost_go(f.ghost, false), DEADLOCK_STOP_TICK);
	/* int3; ud2 */
	put_code(&f, "\xcc\x0f\x0b", 3);
	assert_int_equal(deadlock_ghost_go(f.ghost, false), DEADLOCK_STOP_TRAP);
	assert_int_equal(deadlock_ghost_go(f.ghost, false), DEADLOCK_STOP_SIGNAL);
	assert_int_equal(deadlock_ghost_signal(f.ghost), SIGILL);
	/* nop; nop: one step */
	at = put_code(&f, "\x90\x90", 2);
	assert_int_equal(deadlock_ghost_go(f.ghost, true), DEADLOCK_STOP_TRAP);
	assert_int_equal(deadlock_ghost_registers(f.ghost)->rip, at + 1);
	/* a call of ours in between leaves its registers as they were */
	deadlock_ghost_registers(f.ghost)->r12 = 4711;
	assert_true(deadlock_ghost_map(f.ghost, 0, 4096, PROT_READ) > 0);
	assert_int_equal(deadlock_ghost_go(f.ghost, true), DEADLOCK_STOP_TRAP);
	assert_int_equal(deadlock_ghost_registers(f.ghost)->rip, at + 2);
	assert_int_equal(deadlock_ghost_registers(f.ghost)->r12, 4711);
	tear_down(&f);
}

static void test_watch(void **state)
{
	struct fixture f;
	(void)state;
	if (!set_up(&f))
		return;
	/* mov %rax,(%rdi); mov %eax,8(%rdi); jmp . */
	const uint64_t at = put_code(&f, "\x48\x89\x07\x89\x47\x08\xeb\xfe", 8);
	deadlock_ghost_registers(f.ghost)->rdi = at + 64;
	if (!deadlock_ghost_can_watch() || !deadlock_ghost_watch(f.ghost, 1, at + 72, 4)) {
		print_message("skip: no debug registers\n");
	} else {
		assert_int_equal(deadlock_ghost_go(f.ghost, false), DEADLOCK_STOP_TRAP);
		assert_int_equal(deadlock_ghost_registers(f.ghost)->rip, at + 6);
		assert_int_equal(deadlock_ghost_written(f.ghost), 1u << 1);
		assert_int_equal(deadlock_ghost_written(f.ghost), 0);
	}
	tear_down(&f);
}

/* Even if we let it make a system call by mistake, the kernel would not. */
static void test_filter(void **state)
{
	struct fixture f;
	int status = 0;
	(void)state;
	if (!set_up(&f))
		return;
	const pid_t pid = deadlock_ghost_pid(f.ghost);
	put_code(&f, "\xb8\x27\0\0\0\x0f\x05\xcc", 8); /* mov $39,%eax (getpid); syscall; int3 */
	struct iovec io = {deadlock_ghost_registers(f.ghost), sizeof(struct user_regs_struct)};
	assert_int_equal(ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &io), 0);
	do {
		assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, __WALL), pid);
	} while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGPROF);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSYS);
	/* and its death is noticed */
	assert_int_equal(deadlock_ghost_go(f.ghost, false), DEADLOCK_STOP_GONE);
	assert_false(deadlock_ghost_is_alive(f.ghost));
	assert_int_equal(deadlock_ghost_map(f.ghost, 0, 4096, PROT_READ), -ENOMEM);
	tear_down(&f);
}

static void test_table(void **state)
{
	unsigned known = 0;
	/* nothing that could reach outside may get a row by mistake */
	const uint64_t never[] = {SYS_execve, SYS_execveat, SYS_ptrace, SYS_mount, SYS_reboot,
		SYS_io_uring_setup, SYS_io_uring_enter, SYS_bpf, SYS_process_vm_writev,
		SYS_pidfd_send_signal, SYS_setns, SYS_unshare, SYS_truncate};
	(void)state;
	for (uint64_t number = 0; number < 1024; number++)
		known += deadlock_emulate_knows(number);
	assert_true(known > 80 && known < 250);
	for (size_t i = 0; i < BASE_COUNT(never); i++)
		assert_false(deadlock_emulate_knows(never[i]));
	assert_string_equal(deadlock_emulate_name(SYS_futex), "futex");
	assert_string_equal(deadlock_emulate_name(SYS_execve), "");
}

static void test_decode(void **state)
{
	struct deadlock_instruction i;
	const struct user_regs_struct r = {
		.rip = 0x1000, .rdi = 0x5000, .rsi = 3, .fs_base = 0x7000};
	(void)state;
	assert_true(deadlock_decode((const uint8_t *)"\x75\xfe", 2, &r, &i)); /* jne . */
	assert_true(i.is_conditional_jump);
	assert_int_equal(i.length, 2);
	assert_int_equal(i.target, 0x1000);
	assert_true(
		deadlock_decode((const uint8_t *)"\x0f\x84\x10\0\0\0", 6, &r, &i)); /* je .+22 */
	assert_int_equal(i.target, 0x1016);
	assert_true(deadlock_decode((const uint8_t *)"\xeb\xfe", 2, &r, &i)); /* jmp: no choice */
	assert_false(i.is_conditional_jump);
	/* lock cmpxchg %ecx,0x10(%rdi,%rsi,4) */
	assert_true(deadlock_decode((const uint8_t *)"\xf0\x0f\xb1\x4c\xb7\x10", 6, &r, &i));
	assert_int_equal(i.nr_operands, 1);
	assert_int_equal(i.operand[0].address, 0x501c);
	assert_int_equal(i.operand[0].size_bytes, 4);
	assert_true(i.operand[0].is_read && i.operand[0].is_written);
	/* push %rsi; call .+5; jmp . is a jump, call is none */
	struct user_regs_struct with_stack = r;
	with_stack.rsp = 0x9000;
	assert_true(deadlock_decode((const uint8_t *)"\x56", 1, &with_stack, &i));
	assert_int_equal(i.operand[0].address, 0x8ff8);
	assert_true(deadlock_decode((const uint8_t *)"\xe8\0\0\0\0", 5, &with_stack, &i));
	assert_int_equal(i.operand[0].address, 0x8ff8);
	assert_false(i.is_jump);
	assert_true(deadlock_decode((const uint8_t *)"\xeb\xfe", 2, &r, &i) && i.is_jump);
	/* vpscatterdd %zmm0,(%rdi,%zmm1,4){%k1} */
	assert_true(deadlock_decode((const uint8_t *)"\x62\xf2\x7d\x49\xa0\x04\x8f", 7, &r, &i));
	assert_true(i.is_opaque);
	/* mov %fs:0x28,%rax; mov 0x2(%rip),%eax; lea (%rdi),%rax touches nothing */
	assert_true(deadlock_decode((const uint8_t *)"\x64\x48\x8b\x04\x25\x28\0\0\0", 9, &r, &i));
	assert_int_equal(i.operand[0].address, 0x7028);
	assert_false(i.operand[0].is_written);
	assert_true(deadlock_decode((const uint8_t *)"\x8b\x05\x02\0\0\0", 6, &r, &i));
	assert_int_equal(i.operand[0].address, 0x1008);
	assert_true(deadlock_decode((const uint8_t *)"\x48\x8d\x07", 3, &r, &i));
	assert_int_equal(i.nr_operands, 0);
	assert_false(deadlock_decode((const uint8_t *)"\x0f", 1, &r, &i));
}

/* A loop that polls a word is proven; one that counts in a register, in memory or in a vector
 * register is not. */
static void test_spin_proof(void **state)
{
	static const struct {
		const char *code;
		size_t size;
		enum deadlock_spin_result result;
	} loop[] = {
		{"\xf3\x90\x8b\x07\x85\xc0\x74\xf8", 8,
			DEADLOCK_SPIN_PROVEN}, /* 1: pause; mov (%rdi),%eax; test; jz 1b */
		{"\xff\xc1\x8b\x07\x85\xc0\x74\xf8", 8, DEADLOCK_SPIN_NO_LOOP}, /* inc %ecx */
		{"\xff\x46\x08\x8b\x07\x85\xc0\x74\xf7", 9,
			DEADLOCK_SPIN_CHANGES}, /* incl 8(%rsi) */
		{"\x0f\xfe\xd1\x8b\x07\x85\xc0\x74\xf7", 9,
			DEADLOCK_SPIN_NO_LOOP}, /* paddd %mm1,%mm2 (mm1 = 1) */
		/* push %rax; pop %rax; push %rdi; pop %rdi: its stack is as it was */
		{"\x50\x58\x57\x5f\x8b\x07\x85\xc0\x74\xf6", 10, DEADLOCK_SPIN_PROVEN},
		/* mov $2,%ecx; 2: dec %ecx; jnz 2b: a loop within */
		{"\xb9\x02\0\0\0\xff\xc9\x75\xfc\x8b\x07\x85\xc0\x74\xf1", 15,
			DEADLOCK_SPIN_PROVEN},
		/* movdqu %xmm0,8(%rsi), which is more than can be compared */
		{"\xf3\x0f\x7f\x46\x08\x8b\x07\x85\xc0\x74\xf5", 11, DEADLOCK_SPIN_CHANGES},
		{"\xeb\xfe", 2, DEADLOCK_SPIN_NO_WORD}, /* jmp . */
	};
	struct fixture f;
	(void)state;
	if (!set_up(&f))
		return;
	for (size_t i = 0; i < BASE_COUNT(loop); i++) {
		struct deadlock_wait w = {.thread = {.pid = getpid()}};
		/* mov $1,%eax; movd %eax,%mm1 before it; flags settled by the first round */
		uint8_t code[64] = {0xb8, 1, 0, 0, 0, 0x0f, 0x6e, 0xc8};
		memcpy(code + 8, loop[i].code, loop[i].size);
		const uint64_t at = put_code(&f, code, 8 + loop[i].size);
		watched_by_all[100] = 0;
		deadlock_ghost_registers(f.ghost)->rdi = (uint64_t)(uintptr_t)&watched_by_all[100];
		deadlock_ghost_registers(f.ghost)->rsi = at + 256;
		assert_int_equal(deadlock_spin_prove(f.ghost, f.process, &w), loop[i].result);
		if (loop[i].result == DEADLOCK_SPIN_PROVEN) {
			assert_int_equal(w.nr_keys, 1);
			assert_int_equal(w.key[0].at, (uint64_t)(uintptr_t)&watched_by_all[100]);
			assert_int_equal(w.key[0].bytes, 4);
		}
	}
	tear_down(&f);
}

static void test_harm(void **state)
{
	const struct deadlock_wait futex = {.call = SYS_futex, .arg = {1, 0, 0, 1}},
				   poll = {.call = SYS_poll, .arg = {1, 1, 50}},
				   small = {.call = SYS_write, .arg = {1, 1, 100}},
				   big = {.call = SYS_write, .arg = {1, 1, 5000}},
				   epoll = {.call = SYS_epoll_wait, .arg = {1, 1, 1, (uint64_t)-1}},
				   timed = {.call = SYS_epoll_wait, .arg = {1, 1, 1, 50}},
				   all = {.call = SYS_recvfrom, .arg = {1, 1, 100, MSG_WAITALL}};
	(void)state;
	assert_string_equal(deadlock_snapshot_harm(&futex), "");
	assert_string_equal(deadlock_snapshot_harm(&poll), "");
	assert_string_equal(deadlock_snapshot_harm(&small), "");
	assert_string_equal(deadlock_snapshot_harm(&epoll), "");
	assert_true(*deadlock_snapshot_harm(&big) && *deadlock_snapshot_harm(&timed) &&
		    *deadlock_snapshot_harm(&all));
}

/* Reads a byte, then waits for events of nothing. */
static pid_t start_reader(int *ret_fd)
{
	int end[2];
	assert_int_equal(pipe(end), 0);
	const pid_t pid = fork();
	if (pid == 0) {
		char byte;
		struct epoll_event event;
		const int events = epoll_create1(0);
		if (read(end[0], &byte, 1) == 1)
			(void)epoll_wait(events, &event, 1, -1);
		_exit(1); /* nobody may wake it */
	}
	(void)close(end[0]);
	*ret_fd = end[1];
	return pid;
}

static void wait_until_in(pid_t pid, int64_t call, struct deadlock_wait *w)
{
	for (int i = 0; i < 60000 && w->call != call; i++) {
		*w = (struct deadlock_wait){
			.thread = {.pid = pid, .tid = pid, .state = 'S'}, .call = -1};
		deadlock_wait_read(w);
		(void)usleep(1000);
	}
	assert_int_equal(w->call, call);
}

/* A thread that has gone on since its wait was read is not stopped: a stop might end the call that
 * it is in now. Where it was read of, it is, and goes on waiting. */
static void test_gone_on(void **state)
{
	struct deadlock_wait in_read = {.call = -1}, in_epoll = {.call = -1};
	struct deadlock_registers *r = malloc(sizeof *r);
	char why[96];
	int fd, status;
	(void)state;
	assert_non_null(r);
	const pid_t pid = start_reader(&fd);
	wait_until_in(pid, SYS_read, &in_read);
	assert_int_equal(write(fd, "", 1), 1);
	wait_until_in(pid, SYS_epoll_wait, &in_epoll);
	assert_int_equal(deadlock_snapshot_ptrace(&in_read, r, why), DEADLOCK_SNAPSHOT_MOVED);
	assert_int_equal(r->stopped_ns, 0);
	const enum deadlock_snapshot_result result = deadlock_snapshot_ptrace(&in_epoll, r, why);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0); /* no EINTR */
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	(void)close(fd);
	free(r);
	if (result == DEADLOCK_SNAPSHOT_REFUSED) {
		print_message("skip: %s\n", why);
		skip();
	}
}

static void test_without_memory(void **state)
{
	struct base_err err = {0};
	struct deadlock_world *world = NULL;
	struct deadlock_ahead *ahead = NULL;
	enum base_status status = BASE_ERR_NOMEM;
	(void)state;
	assert_int_equal(deadlock_world_open(&world, &err), BASE_OK);
	for (uint64_t n = 1; status == BASE_ERR_NOMEM && n < 100; n++) {
		base_alloc_fail_nth(n);
		status = deadlock_ahead_open(world, &ahead, &err);
		base_alloc_fail_nth(0);
		assert_true((status == BASE_OK) == (ahead != NULL));
	}
	assert_true(status == BASE_OK || status == BASE_ERR_ENV);
	deadlock_ahead_close(ahead);
	deadlock_world_close(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_image),
		cmocka_unit_test(test_memory_is_a_copy),
		cmocka_unit_test(test_shared_memory_is_private_to_it),
		cmocka_unit_test(test_untouched_memory_stays_untouched),
		cmocka_unit_test(test_own_mappings),
		cmocka_unit_test(test_code_is_as_in_the_process),
		cmocka_unit_test(test_another_process_with_the_same_files),
		cmocka_unit_test(test_pin),
		cmocka_unit_test(test_stops),
		cmocka_unit_test(test_watch),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_spin_proof),
		cmocka_unit_test(test_harm),
		cmocka_unit_test(test_gone_on),
		cmocka_unit_test(test_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
