/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline - three processes joined by two pipes, as in a shell pipeline; the parent only waits for
 * them. Known answer: the middle stage is the path; the others wait for data or for space.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

enum { BLOCK_BYTES = 4096 };
struct block {
	uint64_t number, sum;
	char rest[BLOCK_BYTES - 16];
};

TARGET_FUNCTION uint64_t stage1_work(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

TARGET_FUNCTION uint64_t stage2_work(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

TARGET_FUNCTION uint64_t stage3_work(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units);
	return sum;
}

static bool read_block(int fd, struct block *b)
{
	size_t have = 0;
	while (have < sizeof(*b)) {
		ssize_t n = read(fd, (char *)b + have, sizeof(*b) - have);
		target_must(n >= 0, "read");
		if (!n)
			return false;
		have += (size_t)n;
	}
	return true;
}

static void write_block(int fd, const struct block *b)
{
	size_t done = 0;
	while (done < sizeof(*b)) {
		ssize_t n = write(fd, (const char *)b + done, sizeof(*b) - done);
		target_must(n > 0, "write");
		done += (size_t)n;
	}
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --blocks --units1 --units2 --units3");
	uint64_t blocks = target_number(argc, argv, "--blocks", 2500);
	uint64_t units1 = target_number(argc, argv, "--units1", 30);
	uint64_t units2 = target_number(argc, argv, "--units2", 220);
	uint64_t units3 = target_number(argc, argv, "--units3", 50);
	uint64_t percent = target_percent(argc, argv);
	int first[2], second[2];
	target_must(!pipe(first) && !pipe(second), "pipe");

	pid_t child[3];
	for (int stage = 0; stage < 3; stage++) {
		child[stage] = fork();
		target_must(child[stage] >= 0, "fork");
		if (child[stage])
			continue;
		int in = stage == 1 ? first[0] : second[0], out = stage ? second[1] : first[1];
		for (int i = 0; i < 2; i++) {
			if (first[i] != in && first[i] != out)
				close(first[i]);
			if (second[i] != in && second[i] != out)
				close(second[i]);
		}
		if (stage == 0) {
			close(in);
			for (uint64_t i = 0; i < blocks; i++) {
				struct block b = {.number = i,
					.sum = stage1_work(i, target_vary(1, i, units1))};
				write_block(out, &b);
			}
		} else if (stage == 1) {
			for (struct block b; read_block(in, &b);) {
				b.sum = stage2_work(
					b.sum, target_vary(2, b.number, units2) * percent / 100);
				write_block(out, &b);
			}
		} else {
			close(out);
			uint64_t sum = 0;
			for (struct block b; read_block(in, &b);) {
				sum += stage3_work(b.sum, target_vary(3, b.number, units3));
				TARGET_PROGRESS("block");
			}
			target_print(sum);
		}
		return 0;
	}
	for (int i = 0; i < 2; i++) {
		close(first[i]);
		close(second[i]);
	}
	int failed = 0;
	for (int stage = 0; stage < 3; stage++) {
		int status = 0;
		target_must(waitpid(child[stage], &status, 0) == child[stage], "waitpid");
		failed |= status;
	}
	return failed != 0;
}
