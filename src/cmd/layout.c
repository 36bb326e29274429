/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - pictures of graphs, by graphviz's dot as a child. (Its library would lay out in our
 * process, where nothing bounds its time and memory, and where it prints and ends as it likes.)
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COMPLAINT_MAX = 160 };

struct files { /* in memory: no pipe can fill up */
	int in, out, complaints;
};

static enum base_status open_files(struct files *f, struct base_err *err)
{
	f->in = memfd_create("dot", MFD_CLOEXEC);
	f->out = memfd_create("picture", MFD_CLOEXEC);
	f->complaints = memfd_create("complaints", MFD_CLOEXEC);
	if (f->in >= 0 && f->out >= 0 && f->complaints >= 0)
		return BASE_OK;
	return base_fail_errno(err, errno, "making files in memory for dot");
}

static void close_files(const struct files *f)
{
	const int fd[] = {f->in, f->out, f->complaints};
	for (size_t i = 0; i < BASE_COUNT(fd); i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

static enum base_status layout_write_all(
	int fd, const char *bytes, size_t length, struct base_err *err)
{
	while (length) {
		ssize_t n = write(fd, bytes, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return base_fail_errno(err, errno, "handing the graph to dot");
		bytes += n;
		length -= (size_t)n;
	}
	if (lseek(fd, 0, SEEK_SET) < 0)
		return base_fail_errno(err, errno, "handing the graph to dot");
	return BASE_OK;
}

static enum base_status layout_read_all(
	int fd, size_t limit, struct base_str *ret, struct base_err *err)
{
	char buf[1 << 14];
	if (lseek(fd, 0, SEEK_SET) < 0)
		return base_fail_errno(err, errno, "reading what dot wrote");
	while (ret->length < limit) {
		ssize_t n = read(fd, buf, sizeof buf);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return base_fail_errno(err, errno, "reading what dot wrote");
		if (!n)
			break;
		base_str_add_bytes(ret, buf, (size_t)n);
	}
	if (ret->failed)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for the picture");
	return BASE_OK;
}

/* Starts dot and waits; *ret is its wait status. */
static enum base_status run_dot(
	const struct files *f, const char *format, int *ret, struct base_err *err)
{
	char option[32];
	char *argv[] = {(char[]){"dot"}, option, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	snprintf(option, sizeof option, "-T%s", format);
	int e = posix_spawn_file_actions_init(&actions);
	if (e)
		return base_fail_errno(err, e, "starting dot");
	e = posix_spawn_file_actions_adddup2(&actions, f->in, STDIN_FILENO);
	if (!e)
		e = posix_spawn_file_actions_adddup2(&actions, f->out, STDOUT_FILENO);
	if (!e)
		e = posix_spawn_file_actions_adddup2(&actions, f->complaints, STDERR_FILENO);
	if (!e)
		e = posix_spawnp(&pid, "dot", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (e == ENOENT ||
		e == EACCES) /* (of a directory of the PATH that one may not look into) */
		return base_fail(err, BASE_ERR_ENV,
			"graphviz's dot, which draws %s, is not installed (Debian package "
			"graphviz); --format=dot needs nothing, and dot on any machine draws it",
			format);
	if (e)
		return base_fail_errno(err, e, "starting dot");
	while (waitpid(pid, ret, 0) < 0)
		if (errno != EINTR)
			return base_fail_errno(err, errno, "waiting for dot");
	return BASE_OK;
}

/* What it said, in one clean line. */
static enum base_status layout_complain(const struct files *f, int status, struct base_err *err)
{
	struct base_str said = {0}, clean = {0};
	enum base_status s = layout_read_all(f->complaints, COMPLAINT_MAX, &said, err);
	if (s == BASE_OK) {
		if (said.length > COMPLAINT_MAX)
			said.buf[COMPLAINT_MAX] = '\0';
		report_clean_add(&clean, base_str_text(&said));
		s = base_fail(err, BASE_ERR_ENV, "dot could not draw the graph (%s %d)%s%s",
			WIFSIGNALED(status) ? "ended by signal" : "exit status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
			clean.length ? ": " : "", base_str_text(&clean));
	}
	base_str_fini(&said);
	base_str_fini(&clean);
	return s;
}

enum base_status cmd_layout(
	const struct base_str *dot, const char *format, struct base_str *ret, struct base_err *err)
{
	struct files f;
	int status = 0;
	enum base_status s = open_files(&f, err);
	if (s == BASE_OK)
		s = layout_write_all(f.in, base_str_text(dot), dot->length, err);
	if (s == BASE_OK)
		s = run_dot(&f, format, &status, err);
	if (s == BASE_OK && status)
		s = layout_complain(&f, status, err);
	if (s == BASE_OK)
		s = layout_read_all(f.out, BASE_STR_LIMIT_BYTES, ret, err);
	if (s == BASE_OK && !ret->length)
		s = base_fail(err, BASE_ERR_ENV, "dot drew nothing");
	close_files(&f);
	return s;
}
