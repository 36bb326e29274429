/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burst_pipe - a child rests, then writes a burst of CHUNKS chunks of 64 KiB into a pipe; its
 * parent takes 2 ms for each of them. --chunks: so many fit into the pipe (1). Known answer: more
 * room lets the next rest begin sooner. A burst and a rest are 16 + 2 (CHUNKS - 1 - chunks) ms, but
 * no less than what the parent takes for the burst.
 */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

enum { BURSTS = 8, CHUNKS = 8, CHUNK_BYTES = 65536, REST_US = 16000, EACH_US = 2000 };

static char chunk[CHUNK_BYTES];

static void write_bursts(int to)
{
	for (int i = 0; i < BURSTS; i++) {
		usleep(REST_US);
		for (int k = 0; k < CHUNKS; k++)
			target_must(write(to, chunk, sizeof chunk) == sizeof chunk, "write");
	}
}

int main(int argc, char **argv)
{
	int end[2], status;
	ssize_t n, has = 0;
	target_check(argc, argv, "--chunks");
	int chunks = (int)target_number(argc, argv, "--chunks", 1);
	target_must(!pipe(end), "pipe");
	target_must(fcntl(end[1], F_SETPIPE_SZ, chunks * CHUNK_BYTES) >= 0, "F_SETPIPE_SZ");
	pid_t child = fork();
	target_must(child >= 0, "fork");
	if (!child) {
		close(end[0]);
		write_bursts(end[1]);
		_exit(0);
	}
	close(end[1]);
	while ((n = read(end[0], chunk, sizeof chunk)) > 0)
		for (has += n; has >= CHUNK_BYTES; has -= CHUNK_BYTES)
			usleep(EACH_US);
	target_must(wait(&status) == child && !status, "wait");
	return 0;
}
