/* SPDX-License-Identifier: Apache-2.0 */
/* test_deadlock_core.c - a core file made by hand: its threads, what they were in, its memory. */
#include "deadlock/facts/core.h"
#include "deadlock/private.h"
#include "test.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <unistd.h>

enum { PID = 4000, THREADS = 3, MEMORY_BYTES = 64 };

struct note {
	Elf64_Nhdr header;
	char name[8];
};

/* (what follows a note's name is not aligned to eight) */
struct thread_note {
	struct note note;
	struct elf_prstatus status;
} __attribute__((packed));

/* As the kernel writes it: notes, then memory; parts of memory in any order. */
struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segment[4];
	struct {
		struct note note;
		struct elf_prpsinfo info;
	} __attribute__((packed)) process;
	struct thread_note thread[THREADS], other;
	uint8_t memory[2][MEMORY_BYTES];
};

static struct note note_of(uint32_t type, size_t bytes, const char *name)
{
	struct note n = {.header = {.n_namesz = 5, .n_descsz = (uint32_t)bytes, .n_type = type}};
	memcpy(n.name, name, 5);
	return n;
}

/* rax: what the call says; below 0 -512: it is to be started again. */
static struct thread_note thread_of(pid_t tid, int64_t call, int64_t rax)
{
	struct thread_note t = {
		.note = note_of(NT_PRSTATUS, sizeof t.status, "CORE"), .status = {.pr_pid = tid}};
	const struct user_regs_struct r = {.orig_rax = (unsigned long long)call,
		.rax = (unsigned long long)rax,
		.rip = 0x401000,
		.rsp = 0x7000,
		.rdi = 1,
		.rsi = 2,
		.rdx = 3,
		.r10 = 4,
		.r8 = 5,
		.r9 = 6};
	memcpy(t.status.pr_reg, &r, sizeof r);
	return t;
}

static void make(struct image *m)
{
	*m = (struct image){.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					       ELFDATA2LSB, EV_CURRENT},
				    .e_type = ET_CORE,
				    .e_machine = EM_X86_64,
				    .e_version = EV_CURRENT,
				    .e_phoff = offsetof(struct image, segment),
				    .e_ehsize = sizeof(Elf64_Ehdr),
				    .e_phentsize = sizeof(Elf64_Phdr),
				    .e_phnum = 4},
		.segment = {{.p_type = PT_NOTE,
				    .p_offset = offsetof(struct image, process),
				    .p_filesz = offsetof(struct image, memory) -
						offsetof(struct image, process),
				    .p_align = 4},
			{.p_type = PT_LOAD,
				.p_offset = offsetof(struct image, memory[0]),
				.p_vaddr = 0x20000,
				.p_filesz = MEMORY_BYTES,
				.p_memsz = MEMORY_BYTES},
			{.p_type = PT_LOAD,
				.p_offset = offsetof(struct image, memory[1]),
				.p_vaddr = 0x10000,
				.p_filesz = MEMORY_BYTES,
				.p_memsz = 4096},
			{.p_type = PT_LOAD, .p_vaddr = 0x30000, .p_memsz = 4096}}};
	m->process.note = note_of(NT_PRPSINFO, sizeof m->process.info, "CORE");
	m->process.info.pr_pid = PID;
	strcpy(m->process.info.pr_fname, "diner");
	m->thread[0] = thread_of(PID + 2, 202, -512);
	m->thread[1] = thread_of(PID, 7, -516);
	m->thread[2] = thread_of(PID + 1, -1, 17);
	m->other = thread_of(PID + 9, 0, 0);
	memcpy(m->other.note.name, "LINUX", 5);
	for (unsigned i = 0; i < MEMORY_BYTES; i++) {
		m->memory[0][i] = (uint8_t)i;
		m->memory[1][i] = (uint8_t)(100 + i);
	}
}

static enum base_status open_image(const struct image *m, size_t bytes, struct deadlock_core **ret)
{
	char path[40];
	struct base_err err = {0};
	const int fd = memfd_create("core", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, m, bytes), bytes);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	const enum base_status s = deadlock_core_open(path, ret, &err);
	assert_true(s == BASE_OK || (err.nr_causes && !*ret));
	close(fd);
	return s;
}

static void test_threads_and_memory(void **state)
{
	static struct image m;
	struct deadlock_core *c;
	uint8_t byte[4];
	size_t nr;
	(void)state;
	make(&m);
	assert_int_equal(open_image(&m, sizeof m, &c), BASE_OK);
	const struct deadlock_wait *w = deadlock_core_waits(c, &nr);
	assert_int_equal(nr, THREADS); /* that of another sort of note is none */
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(w[i].thread.tid, PID + i);
		assert_int_equal(w[i].thread.pid, PID);
		assert_string_equal(w[i].thread.name, "diner");
		assert_true(deadlock_core_has_thread(c, PID + i));
		assert_int_equal(w[i].registers_source, DEADLOCK_REGISTERS_CORE);
		assert_true(w[i].pc == 0x401000 && w[i].sp == 0x7000);
	}
	assert_false(deadlock_core_has_thread(c, PID + 9));
	assert_true(w[0].call == 7 && w[0].kind == DEADLOCK_UNKNOWN && w[0].thread.state == 'S');
	assert_true(w[1].call == -1 && w[1].kind == DEADLOCK_RUNNING && w[1].thread.state == 'R');
	assert_int_equal(w[2].call, 202);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(w[2].arg[i], i + 1);
	assert_true(deadlock_core_read(c, 0x10000, byte, 4) && byte[0] == 100 && byte[3] == 103);
	assert_true(deadlock_core_read(c, 0x20000 + 60, byte, 4) && byte[3] == 63);
	assert_false(deadlock_core_read(c, 0x20000 + 61, byte, 4)); /* beyond what is there */
	assert_false(deadlock_core_read(c, 0x20000 - 1, byte, 1));
	assert_false(deadlock_core_read(c, 0x10000 + 64, byte, 1)); /* not in the file */
	assert_false(deadlock_core_read(c, 0x30000, byte, 1));
	assert_false(deadlock_core_read(c, 5, byte, 1));
	deadlock_core_close(c);
}

/* What each result of a call says: asleep, only when the kernel was to begin it anew. */
static void test_who_was_asleep(void **state)
{
	static const struct {
		int64_t call, rax;
		bool sleeps;
	} row[] = {{202, -512, true}, {202, -513, true}, {202, -514, true}, {202, -516, true},
		{202, -4, true}, {0, -512, true}, {202, -515, false}, {202, 0, false},
		{202, -11, false}, {-1, -512, false}};
	(void)state;
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		const struct elf_prstatus t = thread_of(9, row[i].call, row[i].rax).status;
		struct deadlock_wait w;
		assert_true(deadlock_core_parse_thread(&t, sizeof t, &w));
		assert_int_equal(w.thread.state, row[i].sleeps ? 'S' : 'R');
		assert_int_equal(w.call, row[i].sleeps ? row[i].call : -1);
		assert_false(deadlock_core_parse_thread(&t, sizeof t - 1, &w));
	}
}

static void test_what_is_refused(void **state)
{
	static struct image m;
	struct deadlock_core *c;
	struct base_err err;
	size_t nr;
	(void)state;
	make(&m);
	m.header.e_type = ET_DYN;
	assert_int_equal(open_image(&m, sizeof m, &c), BASE_ERR_FOREIGN);
	make(&m);
	m.header.e_machine = EM_AARCH64;
	assert_int_equal(open_image(&m, sizeof m, &c), BASE_ERR_FOREIGN);
	assert_int_equal(open_image(&m, 3, &c), BASE_ERR_FOREIGN);
	make(&m);
	m.segment[0].p_type = PT_NULL; /* nobody was in it */
	assert_int_equal(open_image(&m, sizeof m, &c), BASE_ERR_CORRUPT);
	assert_int_not_equal(deadlock_core_open("/nowhere/core", &c, &err), BASE_OK);
	/* of nobody's name the first thread's number is the process's */
	make(&m);
	m.process.note.header.n_type = 99;
	assert_int_equal(open_image(&m, sizeof m, &c), BASE_OK);
	assert_int_equal(deadlock_core_waits(c, &nr)[2].thread.pid, PID);
	deadlock_core_close(c);
	for (size_t bytes = 0; bytes < sizeof m; bytes += 8) { /* cut anywhere */
		if (open_image(&m, bytes, &c) == BASE_OK)
			deadlock_core_close(c);
	}
}

static void test_no_memory(void **state)
{
	static struct image m;
	struct deadlock_core *c;
	(void)state;
	make(&m);
	SWEEP_ALLOCATIONS(1, open_image(&m, sizeof m, &c));
	deadlock_core_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_and_memory),
		cmocka_unit_test(test_who_was_asleep),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
