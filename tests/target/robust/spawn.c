/* SPDX-License-Identifier: Apache-2.0 */
/* posix_spawn, system and popen, with and without an environment. */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

static int spawn(const char *path, char *const environment[])
{
	pid_t pid;
	int status = 0;
	char *const arguments[] = {"sh", "-c", "echo spawned; exit 3", NULL};
	int result = posix_spawn(&pid, path, NULL, NULL, arguments, environment);
	if (result)
		return result;
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

int main(void)
{
	char *const nothing[] = {NULL};
	char text[64] = "";
	setvbuf(stdout, NULL, _IOLBF, 4096);
	printf("%d\n", spawn("/bin/sh", nothing));
	printf("%d\n", spawn("/bin/sh", (char *const[]){"LD_PRELOAD=", NULL}));
	printf("%d\n", spawn("/nonexistent", nothing) == ENOENT);
	printf("%d\n", WEXITSTATUS(system("echo from system; exit 4")));
	FILE *in = popen("echo from popen", "r");
	fgets(text, sizeof text, in);
	printf("%s%d\n", text, pclose(in));
	FILE *out = popen("cat", "w");
	fprintf(out, "to popen\n");
	printf("%d\n", pclose(out));
	clearenv();
	printf("%d\n", WEXITSTATUS(system("exit 5")));
	return 0;
}
