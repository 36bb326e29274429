/* SPDX-License-Identifier: Apache-2.0 */
/* refused.c NUMBER,... PROGRAM ARGUMENT... - runs it where these system calls are refused, as
 * containers' filters do it. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { CALLS_MAX = 16 };

int main(int argc, char **argv)
{
	struct sock_filter step[2 * CALLS_MAX + 2];
	unsigned short nr = 0;
	if (argc < 3)
		return 2;
	step[nr++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (char *number = argv[1]; *number && nr < 2 * CALLS_MAX; number += *number == ',') {
		const unsigned call = (unsigned)strtoul(number, &number, 10);
		step[nr++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
		step[nr++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	step[nr++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog program = {nr, step};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("refused: prctl");
		return 2;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 2;
}
