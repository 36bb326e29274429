/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_ring FILE calls|memory HOW PROGRAM [ARGUMENT]... - makes a ring in FILE as the recorder
 * does, runs the program with it, and once it has attached writes what no recorder would. Prints
 * how many images attached; exits as the program did (128 + signal). HOW: quiet; counts: the head's
 * numbers become wild; all: all of the head but the words that say that it records.
 */
#include "ring/memory_ring.h"
#include "ring/ring.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 64 };

static void *map_file(const char *path, size_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		return NULL;
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

static void be_wild(void *numbers, size_t bytes, unsigned turn)
{
	memset(numbers, turn % 3 ? 0xff : 0x41, bytes);
}

int main(int argc, char **argv)
{
	if (argc < 5)
		return 99;
	const int memory = !strcmp(argv[2], "memory");
	struct ring_head *ring = NULL;
	struct memory_ring_head *memory_ring = NULL;
	if (memory) {
		memory_ring = map_file(argv[1], memory_ring_bytes(BLOCKS));
		if (!memory_ring)
			return 99;
		memory_ring->magic = MEMORY_RING_MAGIC;
		memory_ring->version = MEMORY_RING_VERSION;
		memory_ring->nr_blocks = BLOCKS;
		memory_ring->recording = 1;
		memory_ring->reader_pid = (uint32_t)getpid();
	} else {
		ring = map_file(argv[1], ring_blocks_offset(BLOCKS) + BLOCKS * RING_BLOCK_BYTES);
		if (!ring)
			return 99;
		ring->magic = RING_MAGIC;
		ring->version = RING_VERSION;
		ring->block_bytes = RING_BLOCK_BYTES;
		ring->nr_blocks = BLOCKS;
		ring->recording = RING_on;
		ring->stack_depth_max = RING_STACK_MAX;
		ring->free_map[0] = ~0ull;
	}
	pid_t pid = fork();
	if (!pid) {
		setenv(memory ? "LONGPOLE_MEMORY" : "LONGPOLE_RING", argv[1], 1);
		execvp(argv[4], argv + 4);
		_exit(127);
	}
	int status = 0;
	unsigned long attached = 0;
	for (unsigned turn = 0; !waitpid(pid, &status, WNOHANG); turn++) {
		unsigned long now = memory ? memory_ring->attached : ring->images_attached;
		if (!attached)
			attached = now;
		if (attached && !strcmp(argv[3], "counts")) {
			if (memory) {
				memory_ring->nr_blocks = 0x7fffffff;
			} else {
				ring->nr_blocks = 0x40000000;
				ring->free_map[0] = ~0ull;
				be_wild(&ring->tables_offset, 8, turn);
				be_wild(&ring->nr_tables, 8, turn);
			}
		} else if (attached && !strcmp(argv[3], "all")) {
			if (memory) {
				memory_ring->nr_blocks = 0x7fffffff;
				be_wild(&memory_ring->next_image, 4, turn);
				memset(memory_ring->state, turn % 2 ? 0 : 0xff,
					sizeof memory_ring->state);
				memory_ring->raw = turn % 2 ? UINT32_MAX : 0;
			} else {
				be_wild(&ring->version, 12, turn);
				be_wild(&ring->tsc_origin, 24, turn);
				be_wild(&ring->tables_offset,
					sizeof *ring - offsetof(struct ring_head, tables_offset) +
						8,
					turn);
			}
		}
		usleep(200);
	}
	printf("attached %lu\n", attached);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
