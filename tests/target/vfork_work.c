/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vfork_work - a vfork's child computes, in its parent's memory, and then ends without a program
 * (--then=exit), executes one (exec), or finds none (fail). Known answer: the path is in the child
 * before it starts its program.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"

TARGET_FUNCTION uint64_t child_work(uint64_t sum, uint64_t units)
{
	TARGET_WORK(sum, units); /* section */
	return sum;
}

int main(int argc, char **argv)
{
	target_check(argc, argv, "--section-percent --then --units");
	uint64_t percent = target_percent(argc, argv);
	uint64_t units = target_number(argc, argv, "--units", 60000);
	const char *then = target_text(argc, argv, "--then", "exit");
	const char *program = !strcmp(then, "exec") ? "/bin/true" : "/nonexistent";
	volatile uint64_t sum = 1;
	for (int i = 0; i < 5; i++) {
		pid_t child = vfork();
		target_must(child >= 0, "vfork");
		if (!child) {
			sum = child_work(sum, units * percent / 100);
			if (strcmp(then, "exit"))
				execl(program, program, (char *)NULL);
			_exit(0);
		}
		target_must(waitpid(child, NULL, 0) == child, "waitpid");
	}
	target_print(sum);
	return 0;
}
