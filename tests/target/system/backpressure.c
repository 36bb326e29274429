/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backpressure - the waiter writes 400 blocks of 4 KiB into a pipe that holds one; `consumer` works
 * 0.5 ms on each.
 * Known answer: the path is the consumer's work: each write waits for the room that a read makes.
 */
#include <fcntl.h>

#include "roles.h"

enum { BLOCK_BYTES = 4096 };
static int ends[2];

static void run_consumer(void)
{
	char block[BLOCK_BYTES];
	close(ends[1]);
	while (syscall(SYS_read, ends[0], block, sizeof(block)) > 0)
		role_work(500);
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--rounds");
	uint64_t rounds = target_number(argc, argv, "--rounds", 400);
	char block[BLOCK_BYTES] = {0};

	role_is("waiter");
	target_must(!pipe(ends), "pipe");
	target_must(fcntl(ends[1], F_SETPIPE_SZ, BLOCK_BYTES) >= 0, "F_SETPIPE_SZ");
	pid_t consumer = role_process("consumer", run_consumer);
	close(ends[0]);
	for (uint64_t i = 0; i < rounds; i++)
		target_must(syscall(SYS_write, ends[1], block, sizeof(block)) == sizeof(block),
			"write");
	close(ends[1]);
	role_reap(consumer);
	return 0;
}
