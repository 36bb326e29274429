/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadlock_copy.h - a copy of a waiting thread without a ghost: its memory is some bytes, its
 * process a table of files and regions. For what copies do instead of system calls (unit and fuzz
 * tests).
 */
#ifndef LONGPOLE_TESTS_DEADLOCK_COPY_H
#define LONGPOLE_TESTS_DEADLOCK_COPY_H

/* (files are those of the table below, not of a process) */
#define deadlock_file_of file_of_a_process
#include "deadlock/facts/process.c" // NOLINT(bugprone-suspicious-include)
#undef deadlock_file_of

#include "deadlock/ahead/emulate.h"

#include <sys/mman.h>
#include <sys/syscall.h>

enum { MEMORY = 0x10000, MEMORY_BYTES = 4096 };

void deadlock_file_of(
	struct deadlock_world *w, struct deadlock_process *p, int fd, struct deadlock_file *ret);

/* ---- the ghost is some bytes ----------------------------------------------------------------- */

struct deadlock_ghost {
	struct user_regs_struct registers;
	uint8_t memory[MEMORY_BYTES];
	uint64_t mapped_bytes;
};

struct user_regs_struct *deadlock_ghost_registers(struct deadlock_ghost *g)
{
	return &g->registers;
}

static bool is_there(uint64_t address, uint64_t size)
{
	return address >= MEMORY && address <= MEMORY + MEMORY_BYTES &&
	       size <= MEMORY + MEMORY_BYTES - address;
}

bool deadlock_ghost_read(struct deadlock_ghost *g, uint64_t address, void *buf, size_t size)
{
	if (size && !is_there(address, size))
		return false;
	if (size)
		memcpy(buf, g->memory + (address - MEMORY), size);
	return true;
}

bool deadlock_ghost_write(struct deadlock_ghost *g, uint64_t address, const void *buf, size_t size)
{
	if (size && !is_there(address, size))
		return false;
	if (size)
		memcpy(g->memory + (address - MEMORY), buf, size);
	return true;
}

int64_t deadlock_ghost_map(struct deadlock_ghost *g, uint64_t address, uint64_t size, int prot)
{
	BASE_ASSERT(!(prot & ~(PROT_READ | PROT_WRITE | PROT_EXEC)));
	if (!size || size > DEADLOCK_GHOST_LIMIT_BYTES)
		return -1;
	g->mapped_bytes += size;
	return address ? (int64_t)address : MEMORY;
}

int64_t deadlock_ghost_unmap(struct deadlock_ghost *g, uint64_t address, uint64_t size)
{
	(void)g;
	return address + size < address ? -1 : 0;
}

int64_t deadlock_ghost_protect(struct deadlock_ghost *g, uint64_t address, uint64_t size, int prot)
{
	(void)g, (void)prot;
	return address + size < address ? -1 : 0;
}

/* ---- the process ----------------------------------------------------------------------------- */

/* Descriptors of all kinds, from FIRST_FD on, and then the same again: twins. */
enum {
	FD_OTHER = 40,
	FD_READ,
	FD_WRITE,
	FD_SOCKET,
	FD_EVENT,
	FD_EPOLL,
	FD_QUEUE,
	FD_LOCKED,
	FD_OWN,
	FD_CLOSED,
	FD_TWINS
};
static const struct deadlock_file copy_files[] = {
	{.kind = DEADLOCK_FILE_OTHER, .can_read = true, .can_write = true},
	{.kind = DEADLOCK_FILE_PIPE, .can_read = true, .inode = 1},
	{.kind = DEADLOCK_FILE_PIPE, .can_write = true, .inode = 1},
	{.kind = DEADLOCK_FILE_SOCKET, .can_read = true, .can_write = true, .inode = 2, .peer = 3},
	{.kind = DEADLOCK_FILE_EVENTFD, .can_read = true, .can_write = true, .inode = 4},
	{.kind = DEADLOCK_FILE_EPOLL},
	{.kind = DEADLOCK_FILE_MQUEUE, .can_read = true, .can_write = true, .inode = 5},
	{.kind = DEADLOCK_FILE_REGULAR,
		.can_read = true,
		.inode = 9,
		.device = 1,
		.has_lock = true},
	{.kind = DEADLOCK_FILE_REGULAR, .can_read = true, .inode = 6, .has_process_lock = true},
	{.kind = DEADLOCK_FILE_NONE},
};
static struct deadlock_open_file copy_open[2 * BASE_COUNT(copy_files)];
static size_t copy_nr_open; /* without the twins, or with them */

void deadlock_file_of(
	struct deadlock_world *w, struct deadlock_process *p, int fd, struct deadlock_file *ret)
{
	(void)w, (void)p;
	*ret = (struct deadlock_file){0};
	if (fd >= FD_OTHER && (size_t)(fd - FD_OTHER) < copy_nr_open)
		*ret = copy_open[fd - FD_OTHER].file;
}

static struct os_region copy_regions[] = {
	{.start = MEMORY,
		.end = MEMORY + 2048,
		.readable = true,
		.writable = true,
		.path = "[heap]",
		.path_length = 6},
	{.start = MEMORY + 2048,
		.end = MEMORY + MEMORY_BYTES,
		.readable = true,
		.shared = true,
		.device = 7,
		.inode = 8,
		.path = "/memfd:x (deleted)",
		.path_length = 18},
};

struct copy_fixture {
	struct deadlock_world world;
	struct deadlock_process process;
	struct deadlock_ghost ghost;
	struct deadlock_wait wait;
	struct deadlock_run run;
	struct deadlock_copy copy; /* last: its buffer is not reset */
};

/* A thread that waits for a mutex at `f->wait.object`, whose memory is all 0. */
static inline void copy_begin(struct copy_fixture *f, pid_t pid, bool has_twins)
{
	memset(f, 0, offsetof(struct copy_fixture, copy) + offsetof(struct deadlock_copy, io));
	copy_nr_open = BASE_COUNT(copy_open) / (has_twins ? 1 : 2);
	for (size_t i = 0; i < copy_nr_open; i++)
		copy_open[i] = (struct deadlock_open_file){
			.fd = FD_OTHER + (int)i, .file = copy_files[i % BASE_COUNT(copy_files)]};
	f->world.has_peers = true;
	f->world.has_list = f->world.has_memories = true; /* nobody else is looked at */
	f->world.locks = "1: POSIX ADVISORY WRITE 5 00:01:9 0 EOF\n";
	f->process = (struct deadlock_process){.pid = pid,
		.parent = 1,
		.region = copy_regions,
		.nr_regions = BASE_COUNT(copy_regions),
		.has_regions = true,
		.has_files = true,
		.file = copy_open,
		.nr_files = copy_nr_open};
	f->wait = (struct deadlock_wait){.thread = {.pid = pid, .tid = pid + 1, .state = 'S'},
		.kind = DEADLOCK_MUTEX,
		.call = SYS_futex,
		.object = MEMORY + 64,
		.object_bytes = 48,
		.word = MEMORY + 64,
		.owner = pid + 2,
		.owner_word = 2,
		.nr_keys = 1,
		.key = {{.kind = DEADLOCK_KEY_FUTEX,
			.space = (uint64_t)pid,
			.at = MEMORY + 64,
			.bytes = 48}}};
	f->copy.world = &f->world;
	f->copy.process = &f->process;
	f->copy.wait = &f->wait;
	f->copy.ghost = &f->ghost;
	f->copy.run = &f->run;
	f->copy.events_max = 10;
}

#endif
