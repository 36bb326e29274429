/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_view.c - `longpole view`: the page of a trace, beside it, and in a browser when there is one.
 */
#include "cmd/cmd.h"

#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct cmd_option option[] = {
	{"output", 'o', "FILE", "@file", "the page (default: the trace's name with .html)"},
	{"no-open", 0, NULL, NULL, "only write it"},
	{"with", 0, "FILE", "@file",
		"show FILE in it, too: what ciat or deadlock said with --json"},
};

const struct cmd_details cmd_details_view = {
	.usage = "[OPTIONS] [TRACE]",
	.about = "Makes one page of a trace, a file that needs no network, and says where it is. "
		 "It has the answer, a timeline to zoom into, what-if, locks, queues, graph and "
		 "flame graphs. Where there is a display, the browser is asked to show it "
		 "(xdg-open).",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole view", "longpole view -o page.html server.lpt",
		"longpole view --no-open --from=20% --to=30% server.lpt"},
};

/* xdg-open returns at once; what it prints belongs to no answer of ours. */
static bool open_browser(const char *path)
{
	char *argv[] = {(char[]){"xdg-open"}, strdup(path), NULL}; /* allowed: argv wants it so */
	posix_spawn_file_actions_t quiet;
	pid_t pid;
	int status = 1;
	if (!argv[1])
		return false;
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", 1 /* O_WRONLY */, 0);
	posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", 1, 0);
	if (!posix_spawnp(&pid, argv[0], &quiet, NULL, argv, environ))
		waitpid(pid, &status, 0);
	posix_spawn_file_actions_destroy(&quiet);
	free(argv[1]); /* allowed: strdup's */
	return !status;
}

static bool has_display(void)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
	return (x && *x) || (wayland && *wayland);
}

int cmd_run_view(struct cmd *c)
{
	struct base_str text = {0};
	char buf[CMD_PATH_MAX];
	const char *trace = cmd_trace_path(c);
	const char *path = trace ? cmd_output_path(c, trace, ".html", buf) : NULL;
	if (!path)
		return CMD_USAGE;
	int exit_status = cmd_html_trace(c, trace, path);
	if (exit_status != CMD_OK)
		return exit_status;
	char *full = realpath(path, NULL);
	base_str_addf(&text, "%s\n", full ? full : path);
	free(full); /* allowed: realpath's */
	exit_status = cmd_write(c, &text);
	if (!cmd_given(c, "no-open") && has_display() && !open_browser(path))
		cmd_note(c, "no browser came up (xdg-open); open the file in one");
	return exit_status;
}
