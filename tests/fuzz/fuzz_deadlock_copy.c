/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_deadlock_copy.c - a copy of a waiting thread that makes any system calls with any arguments:
 * what they do instead stays inside of the copy, and its run says how it ended. The first byte
 * chooses what it waits for, the second how many calls it makes; each call is a number's byte and
 * six arguments (`take_argument`); the rest is the copy's memory at MEMORY.
 */
/* (files are those of the table below, not of a process) */
#define deadlock_file_of file_of_a_process
#include "deadlock/process.c" // NOLINT(bugprone-suspicious-include)
#undef deadlock_file_of

#include "deadlock/emulate.h"

#include <sys/mman.h>
#include <sys/syscall.h>

enum {
	MEMORY = 0x10000, /* in front of it are the words that have the same bytes */
	MEMORY_BYTES = 4096,
	PID = 1 << 29, /* no such process */
	NUMBERS = 470, /* of system calls */
	KINDS = DEADLOCK_KIND_NR,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

void deadlock_file_of(
	struct deadlock_world *w, struct deadlock_process *p, int fd, struct deadlock_file *ret);

/* ---- the ghost is some bytes -------------------------------------------------------------------
 */

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

/* ---- the process: a descriptor of each kind, twice, and one hole
 * ---------------------------------- */

static const struct deadlock_file files[] = {
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
static struct deadlock_open_file opened[2 * BASE_COUNT(files)];

void deadlock_file_of(
	struct deadlock_world *w, struct deadlock_process *p, int fd, struct deadlock_file *ret)
{
	(void)w, (void)p;
	*ret = (struct deadlock_file){0};
	if (fd >= 0 && (size_t)fd < BASE_COUNT(opened))
		*ret = files[(size_t)fd % BASE_COUNT(files)];
}

static struct deadlock_region regions[] = {
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
		.path = "/memfd:x",
		.path_length = 8},
};

/* ---- one input --------------------------------------------------------------------------------
 */

struct bytes {
	const uint8_t *at, *end;
};

static uint8_t take(struct bytes *b)
{
	return b->at < b->end ? *b->at++ : 0;
}

/* Small, a place in memory, or eight bytes of anything. */
static uint64_t take_argument(struct bytes *b)
{
	const uint8_t code = take(b);
	uint64_t all = 0;
	if (code < 0x60)
		return code;
	if (code < 0xf0)
		return MEMORY + (uint64_t)(code - 0x60) * 24;
	if (code < 0xf4)
		return DEADLOCK_COPY_FAKE_FD + code - 0xf0;
	if (code < 0xf8)
		return (uint64_t)-1 - (code - 0xf4);
	for (int i = 0; i < 8; i++)
		all = all << 8 | take(b);
	return all;
}

static void make_wait(struct deadlock_wait *w, uint8_t dice, struct bytes *b)
{
	*w = (struct deadlock_wait){.thread = {.pid = PID, .tid = PID + 1, .state = 'S'},
		.kind = (enum deadlock_kind)(dice % KINDS),
		.call = dice & 0x80 ? (int)(take_argument(b) % NUMBERS) : SYS_futex,
		.object = MEMORY + 64,
		.object_bytes = 48,
		.word = MEMORY + 64 + 4u * (dice / KINDS),
		.owner = PID + 2,
		.owner_word = 2,
		.nr_keys = 1,
		.key = {{.kind = DEADLOCK_KEY_FUTEX,
			.space = PID,
			.at = MEMORY + 64,
			.bytes = 48}}};
	for (size_t i = 0; i < BASE_COUNT(w->arg); i++)
		w->arg[i] = dice & 0x80 ? take_argument(b) : 0;
}

static void check_run(const struct deadlock_copy *c)
{
	const struct deadlock_run *run = c->run;
	BASE_ASSERT(run->nr_events <= c->events_max && c->events_max <= DEADLOCK_EVENTS_MAX);
	BASE_ASSERT(c->nr_files <= DEADLOCK_COPY_FILES_MAX);
	BASE_ASSERT(c->mapped_bytes <= DEADLOCK_COPY_MAPPED_MAX);
	BASE_ASSERT(c->is_done == (run->end != DEADLOCK_END_NONE));
	/* what proves something was not guessed */
	BASE_ASSERT(!c->tainted || !deadlock_end_is_proper(run->end));
	BASE_ASSERT(strnlen(run->why, sizeof run->why) < sizeof run->why);
	BASE_ASSERT(strnlen(run->would_write, sizeof run->would_write) < sizeof run->would_write);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	static struct deadlock_world world = {
		.has_peers = true, .locks = "1: POSIX ADVISORY WRITE 5 00:01:9 0 EOF\n"};
	static struct deadlock_process process = {.pid = PID,
		.parent = 1,
		.region = regions,
		.nr_regions = BASE_COUNT(regions),
		.has_regions = true,
		.has_files = true,
		.file = opened,
		.nr_files = BASE_COUNT(opened)};
	static struct deadlock_ghost ghost;
	static struct deadlock_copy copy; /* its buffer is not reset */
	static struct deadlock_wait wait;
	static struct deadlock_run run;
	struct bytes b = {data, data + size_bytes};
	const uint8_t kind = take(&b), nr_calls = take(&b);
	for (size_t i = 0; i < BASE_COUNT(opened); i++)
		opened[i] = (struct deadlock_open_file){
			.fd = (int)i, .file = files[i % BASE_COUNT(files)]};
	make_wait(&wait, kind, &b);
	world.nr_undo_sets = 0;
	run = (struct deadlock_run){0};
	ghost.registers = (struct user_regs_struct){0};
	memset(&copy, 0, offsetof(struct deadlock_copy, io));
	copy.world = &world;
	copy.process = &process;
	copy.wait = &wait;
	copy.ghost = &ghost;
	copy.run = &run;
	copy.events_max = 10;
	const struct bytes calls = b;
	for (unsigned i = 0; i < nr_calls; i++) { /* over them, to what is behind */
		(void)take(&b), (void)take(&b);
		for (int a = 0; a < 6; a++)
			(void)take_argument(&b);
	}
	const size_t left = (size_t)(b.end - b.at);
	memset(ghost.memory, 0, sizeof ghost.memory);
	memcpy(ghost.memory, b.at, left < MEMORY_BYTES ? left : MEMORY_BYTES);
	b = calls;
	(void)deadlock_satisfy(&copy);
	check_run(&copy);
	for (unsigned i = 0; i < nr_calls && !copy.is_done; i++) {
		uint64_t arg[6];
		const uint64_t number = take(&b) | (uint64_t)take(&b) << 8;
		for (int a = 0; a < 6; a++)
			arg[a] = take_argument(&b);
		ghost.registers.rip = number;
		deadlock_satisfy_look(&copy);
		(void)deadlock_emulate(&copy, number % NUMBERS, arg);
		check_run(&copy);
	}
	return 0;
}
