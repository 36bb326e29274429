/* SPDX-License-Identifier: Apache-2.0 */
/* valgrind.c - where the tool and Valgrind's own files are. */
#include "os/valgrind.h"

#include "base/installed.h"
#include "os/links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONG_PATH = PATH_MAX + 300 }; /* a directory and a name in it */
#define TOOL_FILE "longpole-amd64-linux"

static bool valgrind_is_file(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, R_OK | X_OK);
}

static bool find_tool(char path[PATH_MAX])
{
	return base_installed_file("valgrind", "valgrind/" TOOL_FILE, path);
}

/* Valgrind's own files, which the tool needs beside it. */
static const char *find_core(void)
{
	static const char *const place[] = {"/usr/libexec/valgrind", "/usr/local/libexec/valgrind",
		"/usr/lib/x86_64-linux-gnu/valgrind", "/usr/lib64/valgrind", "/usr/lib/valgrind"};
	for (size_t i = 0; i < BASE_COUNT(place); i++) {
		char path[PATH_MAX];
		snprintf(path, sizeof path, "%s/none-amd64-linux", place[i]);
		if (valgrind_is_file(path))
			return place[i];
	}
	return NULL;
}

static bool is_in_path(const char *name, char path[PATH_MAX])
{
	const char *at = getenv("PATH");
	for (; at && *at; at += *at == ':') {
		size_t length = strcspn(at, ":");
		snprintf(path, PATH_MAX, "%.*s/%s", (int)length, at, name);
		if (valgrind_is_file(path))
			return true;
		at += length;
	}
	return false;
}

const char *os_valgrind_why_not(void)
{
	char tool[PATH_MAX], path[PATH_MAX];
	return !find_tool(tool) ? "its tool for Valgrind was not built"
	       : !find_core() || !is_in_path("valgrind", path) ? "Valgrind is not installed here"
							       : NULL;
}

enum base_status os_valgrind_directory(struct os_links *dir, struct base_err *err)
{
	static const char *const own[] = {"vgpreload_core-amd64-linux.so", "default.supp"};
	const char *core = find_core();
	char tool[PATH_MAX], from[PATH_MAX + 64], to[PATH_MAX + 64];
	/* (Valgrind loads its own library from there by LD_PRELOAD) */
	enum base_status status = os_links_begin(dir, "longpole-tool", err);
	if (status != BASE_OK)
		return status;
	snprintf(to, sizeof to, "%s/" TOOL_FILE, dir->directory);
	if (!find_tool(tool) || symlink(tool, to))
		return base_fail_errno(err, errno, "cannot make a link, %s", to);
	for (size_t i = 0; i < BASE_COUNT(own); i++) {
		snprintf(from, sizeof from, "%s/%s", core ? core : "", own[i]);
		snprintf(to, sizeof to, "%s/%s", dir->directory, own[i]);
		if (symlink(from, to))
			return base_fail_errno(err, errno, "cannot make a link, %s", to);
	}
	return BASE_OK;
}

enum base_status os_valgrind_ready(
	struct os_valgrind *v, const char *ring_path, char *const *argv, struct base_err *err)
{
	static const char *const fixed[] = {"valgrind", "-q", "--tool=longpole", "--mode=memory",
		"--vgdb=no", "--fair-sched=try",
		/* calls are known where a block begins */
		"--vex-guest-chase=no",
		/* a handler sees what the program's registers were: of code in files, once there is
		 * one (memory_called_kernel()) */
		"--px-default=allregs-at-mem-access", "--px-file-backed=unwindregs-at-mem-access"};
	const char *why = os_valgrind_why_not();
	size_t nr = 0, to = BASE_COUNT(fixed);
	if (why || !is_in_path("valgrind", v->program))
		return base_fail(err, BASE_ERR_ENV, "--recorder=valgrind: %s", why ? why : "?");
	snprintf(v->ring_option, sizeof v->ring_option, "--ring=%s", ring_path);
	while (argv[nr])
		nr++;
	char **line = base_alloc((to + nr + 3) * sizeof *line);
	if (!line)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for a command");
	for (size_t i = 0; i < to; i++)
		line[i] = (char *)(uintptr_t)fixed[i];
	line[to++] = v->ring_option;
	line[to++] = (char *)(uintptr_t) "--";
	memcpy(line + to, argv, (nr + 1) * sizeof *line);
	v->argv = line;
	return os_valgrind_directory(&v->dir, err);
}

void os_valgrind_done(struct os_valgrind *v)
{
	os_links_remove(&v->dir);
	base_free(v->argv);
	*v = (struct os_valgrind){0};
}
