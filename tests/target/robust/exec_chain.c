/* SPDX-License-Identifier: Apache-2.0 */
/* Executes itself four times, each time another way, without passing an environment. expect: images
 * 5 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char *const nothing[] = {NULL};
	char *step = argc > 1 ? argv[1] : "0";
	(void)argc;
	printf("step %s\n", step);
	fflush(stdout);
	switch (step[0]) {
	case '0':
		execve("/proc/self/exe", (char *const[]){argv[0], "1", NULL}, nothing);
		break;
	case '1':
		execle("/proc/self/exe", argv[0], "2", (char *)NULL, nothing);
		break;
	case '2':
		execvpe(argv[0], (char *const[]){argv[0], "3", NULL}, nothing);
		break;
	case '3':
		execl("/nonexistent", argv[0], "5", (char *)NULL);
		perror("execl");
		execl("/proc/self/exe", argv[0], "4", (char *)NULL);
		break;
	default:
		return 4;
	}
	perror("exec");
	return 1;
}
