/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_host.h - the least that a host of the preload library does: make a ring, give finished
 * blocks back, walk records. For tests and benches of the library alone; `longpole record` has its
 * own.
 */
#ifndef LONGPOLE_TESTS_RING_HOST_H
#define LONGPOLE_TESTS_RING_HOST_H

#include "ring/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <x86intrin.h>

enum ring_host_kind {
#define REC_FROM(id)                  HOST_BEFORE_##id = (id)-1,
#define REC(kind, since, FIELDS, doc) HOST_##kind,
#include "trace/records.def"
};

struct ring_host {
	char directory[64], path[80];
	struct ring_head *head;
	size_t size_bytes;
};

static inline bool ring_host_open(struct ring_host *host, uint32_t nr_blocks)
{
	host->size_bytes = ring_blocks_offset(nr_blocks) + (size_t)nr_blocks * RING_BLOCK_BYTES;
	snprintf(host->directory, sizeof host->directory, "/dev/shm/longpole-test-%d-XXXXXX",
		(int)getpid());
	if (!mkdtemp(host->directory)) /* mode 0700: else the library does not take it */
		return false;
	snprintf(host->path, sizeof host->path, "%s/ring", host->directory);
	int fd = open(host->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	void *map = MAP_FAILED;
	if (fchmod(fd, 0600) == 0 && ftruncate(fd, (off_t)host->size_bytes) == 0)
		map = mmap(NULL, host->size_bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_POPULATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED) {
		unlink(host->path);
		rmdir(host->directory);
		return false;
	}
	host->head = map;
	host->head->magic = RING_MAGIC;
	host->head->version = RING_VERSION;
	host->head->block_bytes = RING_BLOCK_BYTES;
	host->head->nr_blocks = nr_blocks;
	host->head->tsc_origin = __rdtsc();
	host->head->stack_depth_max = RING_STACK_MAX;
	for (uint32_t i = 0; i < nr_blocks; i++)
		host->head->free_map[i / 64] |= 1ull << i % 64;
	host->head->recording = 1;
	return true;
}

static inline void ring_host_close(struct ring_host *host)
{
	munmap(host->head, host->size_bytes);
	unlink(host->path);
	rmdir(host->directory);
}

static inline void ring_host_setenv(const struct ring_host *host, const char *library)
{
	setenv("LD_PRELOAD", library, 1);
	setenv("LONGPOLE_RING", host->path, 1);
	setenv("LONGPOLE_IMAGE", "0000000000", 1);
}

static inline struct ring_block *ring_host_block(const struct ring_host *host, uint32_t index)
{
	return (void *)((char *)host->head + ring_blocks_offset(host->head->nr_blocks) +
			(size_t)index * RING_BLOCK_BYTES);
}

static inline void ring_host_free(struct ring_host *host, uint32_t index)
{
	struct ring_block *block = ring_host_block(host, index);
	memset(block->word, 0, block->nr_words * sizeof block->word[0]);
	memset(block, 0, sizeof *block);
	__atomic_fetch_or(&host->head->free_map[index / 64], 1ull << index % 64, __ATOMIC_RELEASE);
}

/* Words of the record at w, of which at most `room` are there; 0: it is no record. */
static inline size_t ring_host_words(const uint64_t *w, size_t room)
{
	size_t n = 0;
	switch (w[0] & 0xff) {
#define RING_RECORD(kind, nr_words)                                                                \
	case HOST_##kind:                                                                          \
		n = 1 + (nr_words);                                                                \
		break;
#include "ring/records.def"
	case RING_stack:
		n = room > 1 && w[1] <= RING_STACK_MAX ? 2 + w[1] : 0;
		break;
	case RING_module:
		n = room > 4 ? 8 + ((w[4] & UINT32_MAX) + 7) / 8 : 0;
		break;
	case RING_unload:
	case RING_lost:
	case RING_exit:
		n = 2;
		break;
	case RING_made:
		n = 6;
		break;
	case RING_verb:
	case RING_code:
		n = 4;
		break;
	case RING_state:
		n = 2;
		break;
	case RING_descriptor:
		n = room > 8 ? 9 + (w[8] + 7) / 8 : 0;
		break;
	case RING_name:
		n = room > 4 ? 5 + (w[4] + 7) / 8 : 0;
		break;
	case RING_thread_name:
		n = room > 1 ? 2 + (w[1] + 7) / 8 : 0;
		break;
	case RING_image:
		n = room > 2 ? 3 + (w[2] + 7) / 8 : 0;
		break;
	case RING_place:
		n = room > 3 ? 4 + ((w[3] >> 32) + (w[3] & UINT32_MAX) + 7) / 8 : 0;
		break;
	case RING_affinity:
		n = room > 3 ? 4 + (w[3] + 7) / 8 : 0;
		break;
	}
	return n <= room ? n : 0;
}

static inline const char *ring_host_kind_name(unsigned kind)
{
	switch (kind) {
#define RING_RECORD(kind, nr_words)                                                                \
	case HOST_##kind:                                                                          \
		return #kind;
#include "ring/records.def"
	case RING_stack:
		return "STACK";
	case RING_module:
		return "MODULE";
	case RING_unload:
		return "UNLOAD";
	case RING_descriptor:
		return "DESCRIPTOR";
	case RING_name:
		return "NAME";
	case RING_thread_name:
		return "THREAD_NAME";
	case RING_image:
		return "IMAGE";
	case RING_affinity:
		return "AFFINITY";
	case RING_place:
		return "PLACE";
	case RING_code:
		return "CODE";
	case RING_lost:
		return "LOST";
	case RING_exit:
		return "EXIT";
	case RING_made:
		return "MADE";
	case RING_verb:
		return "VERB";
	case RING_state:
		return "STATE";
	}
	return "?";
}

#endif
