/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk - the waiter writes 40 blocks of 64 KiB, past the page cache, to --file, and works 0.2 ms
 * between them. The file is on a device that somebody made slow.
 * Known answer: the path is waiting for the disk. --nowhere=1: the writes cost nothing, the rest is
 * as before.
 */
#include <fcntl.h>

#include "roles.h"

enum { BLOCK_BYTES = 64 * 1024 };

int main(int argc, char **argv)
{
	target_check(argc, argv, "--rounds --file --nowhere");
	uint64_t rounds = target_number(argc, argv, "--rounds", 40);
	const char *path = target_text(argc, argv, "--file", "disk.out");
	void *block = NULL;

	role_is("waiter");
	target_must(!posix_memalign(&block, 4096, BLOCK_BYTES), "posix_memalign");
	memset(block, 1, BLOCK_BYTES);
	int fd = target_number(argc, argv, "--nowhere", 0)
			 ? open("/dev/null", O_WRONLY)
			 : open(path, O_WRONLY | O_CREAT | O_DIRECT | O_DSYNC, 0600);
	if (fd < 0) {
		perror(path);
		return ROLE_SKIP;
	}
	for (uint64_t i = 0; i < rounds; i++) {
		target_must(syscall(SYS_pwrite64, fd, block, BLOCK_BYTES, i * BLOCK_BYTES) ==
				    BLOCK_BYTES,
			"pwrite");
		role_work(200);
	}
	free(block);
	return close(fd) ? 3 : 0;
}
