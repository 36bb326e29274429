/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pager.c - long answers on a terminal go through $LONGPOLE_PAGER, $PAGER or less, as git's do. From the first line of
 * the answer to the end of the command standard output leads to the pager; notes go on to the terminal.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGER_NOT_FOUND = 127 };

/* A shell's command; NULL: none. "" and "cat" say that none is wanted. */
static const char *pager_command(void)
{
	static const char *const variable[] = {"LONGPOLE_PAGER", "PAGER"};
	for (size_t i = 0; i < BASE_COUNT(variable); i++) {
		const char *command = getenv(variable[i]);
		if (command)
			return *command && strcmp(command, "cat") != 0 ? command : NULL;
	}
	return cmd_is_in_path("less") ? "less" : NULL;
}

/* Never one that others chose for us: a setuid program's environment is its caller's. */
static bool pager_is_wanted(const struct cmd *c)
{
	return !c->pager.pid && !(c->spec->flags & CMD_RAW) && !c->answer_on_stderr &&
	       !c->term.dumb && isatty(STDOUT_FILENO) && !getauxval(AT_SECURE) &&
	       !cmd_given(c, "no-pager");
}

static int pager_spawn(pid_t *ret_pid, const char *command, int in)
{
	char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)command, NULL};
	posix_spawn_file_actions_t actions;
	int e = posix_spawn_file_actions_init(&actions);
	if (e)
		return e;
	e = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (!e)
		e = posix_spawn(ret_pid, "/bin/sh", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return e;
}

void cmd_pager_begin(struct cmd *c)
{
	const char *command = pager_is_wanted(c) ? pager_command() : NULL;
	int ends[2];
	if (!command || pipe2(ends, O_CLOEXEC))
		return;
	/* Nothing to turn on one screen, colours as they are, the screen left as it was. */
	setenv("LESS", "FRX", false);
	setenv("LV", "-c", false);
	c->pager.terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (c->pager.terminal >= 0 && !pager_spawn(&c->pager.pid, command, ends[0])) {
		fflush(stdout);
		dup2(ends[1], STDOUT_FILENO);
		signal(SIGINT, SIG_IGN); /* the pager's: it stops searching by it */
		signal(SIGQUIT, SIG_IGN);
	}
	close(ends[0]);
	close(ends[1]);
}

void cmd_pager_end(struct cmd *c)
{
	int status = 0;
	if (!c->pager.pid)
		return;
	fflush(stdout);
	dup2(c->pager.terminal, STDOUT_FILENO); /* the pager sees the end */
	close(c->pager.terminal);
	while (waitpid(c->pager.pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == PAGER_NOT_FOUND)
		cmd_warn(c, "the pager '%s' was not found; use --no-pager, or set LONGPOLE_PAGER",
			pager_command());
	c->pager.pid = 0;
}
