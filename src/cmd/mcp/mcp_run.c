/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_run.c - the program behind a call of `longpole mcp`: this one, with a command line. What it says comes back through pipes, so that
 * nothing of it, nor of a program that it records, gets between the protocol's messages. */
#include "cmd/mcp/mcp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MAX_BYTES = 32 << 20, SAID_MAX_BYTES = 64 << 10 };

/* ---- what comes in --------------------------------------------------------------------------- */

/* What is there becomes a line, with a 0 at its end, which is at `end`. */
static bool take_line(struct mcp_input *in, char *begin, char *end, struct mcp_line *ret)
{
	size_t length = (size_t)(end - begin);
	*end = 0;
	*ret = (struct mcp_line){in->skips || length > MCP_LINE_MAX_BYTES ? NULL : begin, length};
	in->skips = false;
	return true;
}

bool mcp_next_line(struct mcp_input *in, struct mcp_line *ret)
{
	if (!in->bytes.buf)
		return false;
	char *begin = in->bytes.buf + in->begin;
	size_t nr = in->bytes.length - in->begin;
	char *end = memchr(begin, '\n', nr);
	if (end) {
		in->begin = (size_t)(end + 1 - in->bytes.buf);
		return take_line(in, begin, end, ret);
	}
	/* What was taken makes room. */
	memmove(in->bytes.buf, begin, nr);
	in->bytes.length = nr;
	in->bytes.buf[nr] = 0;
	in->begin = 0;
	if (in->ended && (nr || in->skips)) {
		in->bytes.length = 0;
		return take_line(in, in->bytes.buf, in->bytes.buf + nr, ret);
	}
	if (nr > MCP_LINE_MAX_BYTES) {
		in->skips = true;
		in->bytes.length = 0;
	}
	return false;
}

void mcp_read(struct mcp_input *in)
{
	char part[1 << 16];
	struct pollfd wait[] = {{.fd = in->ended ? -1 : STDIN_FILENO, .events = POLLIN},
		{.fd = in->signals, .events = POLLIN}};
	if (poll(wait, BASE_COUNT(wait), -1) <= 0)
		return;
	if (wait[1].revents)
		in->told_to_go = in->ended = true;
	if (!wait[0].revents)
		return;
	ssize_t n = read(STDIN_FILENO, part, sizeof part);
	if (n > 0)
		base_str_add_bytes(&in->bytes, part, (size_t)n);
	else if (n == 0 || errno != EINTR)
		in->ended = true;
	in->ended |= in->bytes.failed;
}

/* ---- the program ----------------------------------------------------------------------------- */

struct mcp_program {
	pid_t pid;
	int out, err; /* what can be read; -1: closed */
	struct base_str answer, said;
	bool cut; /* the answer was too long */
};

/* A pipe's ends, of which programs get none but by name. */
static bool mcp_pipe(int *ret_read, int *ret_write)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return false;
	*ret_read = ends[0];
	*ret_write = ends[1];
	return true;
}

/* What we hold back and ignore is nothing that it should. */
static int mcp_usual_signals(posix_spawnattr_t *attributes)
{
	sigset_t none, pipe;
	sigemptyset(&none);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	int e = posix_spawnattr_setsigmask(attributes, &none);
	return e ? e : posix_spawnattr_setsigdefault(attributes, &pipe);
}

static int mcp_spawn(pid_t *ret, char *const *words, const char *directory, int out, int err)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int e = posix_spawn_file_actions_init(&actions);
	if (e)
		return e;
	e = posix_spawnattr_init(&attributes);
	if (!e) {
		/* (a group of its own, so that a call that is cancelled ends with all that it began) */
		e = posix_spawnattr_setflags(&attributes,
			POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
		e = e ? e : mcp_usual_signals(&attributes);
		e = e ? e
		      : posix_spawn_file_actions_addopen(
				&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
		e = e ? e : posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
		e = e ? e : posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
		if (directory)
			e = e ? e : posix_spawn_file_actions_addchdir_np(&actions, directory);
		e = e ? e
		      : posix_spawn(ret, "/proc/self/exe", &actions, &attributes, words, environ);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return e;
}

/* 0, or errno. */
static int mcp_begin(struct mcp_program *p, char *const *words, const char *directory)
{
	int out = -1, err = -1, e = 0;
	*p = (struct mcp_program){.out = -1, .err = -1};
	if (!mcp_pipe(&p->out, &out) || !mcp_pipe(&p->err, &err))
		e = errno;
	else
		e = mcp_spawn(&p->pid, words, directory, out, err);
	close(out);
	close(err);
	return e;
}

/* Reads what there is; the end closes it. */
static void mcp_take(struct mcp_program *p, int *fd, struct base_str *into, size_t most)
{
	char part[1 << 16];
	ssize_t n = read(*fd, part, sizeof part);
	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		close(*fd);
		*fd = -1;
		return;
	}
	size_t room = most > into->length ? most - into->length : 0;
	base_str_add_bytes(into, part, (size_t)n < room ? (size_t)n : room);
	p->cut |= into == &p->answer && (size_t)n > room;
}

/* Shows the call each whole line from *looked on. Is one of them its end? */
static bool mcp_look(const struct mcp_call *call, size_t *looked)
{
	struct mcp_input *in = call->in;
	bool is = in->told_to_go;
	while (!is && *looked < in->bytes.length) {
		char *line = in->bytes.buf + *looked,
		     *end = memchr(line, '\n', in->bytes.length - *looked);
		if (!end)
			break;
		*end = 0;
		const struct mcp_line one = {line, (size_t)(end - line)};
		const enum mcp_meanwhile what = call->meanwhile(call, &one);
		*end = '\n';
		if (what == MCP_ANSWERED)
			memset(line, ' ', one.length); /* (a line of blanks is no message) */
		is = what == MCP_CANCELS;
		*looked = (size_t)(end + 1 - in->bytes.buf);
	}
	return is;
}

static int64_t mcp_now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Until both pipes are closed. True: it was cancelled. */
static bool mcp_follow(const struct mcp_call *call, struct mcp_program *p)
{
	size_t looked = call->in->begin;
	int64_t told_ms = 0;
	while (p->out >= 0 || p->err >= 0) {
		if (!told_ms && mcp_look(call, &looked)) {
			told_ms = mcp_now_ms();
			kill(-p->pid, SIGTERM);
		}
		const int64_t left_ms = told_ms + MCP_GRACE_MS - mcp_now_ms();
		if (told_ms && left_ms <= 0)
			kill(-p->pid, SIGKILL);
		if (told_ms && left_ms <= -MCP_GRACE_MS)
			break; /* (what has left the group holds the pipes) */
		struct pollfd wait[] = {{.fd = p->out, .events = POLLIN},
			{.fd = p->err, .events = POLLIN},
			{.fd = call->in->ended || told_ms ? -1 : STDIN_FILENO, .events = POLLIN},
			{.fd = told_ms ? -1 : call->in->signals, .events = POLLIN}};
		const int until_ms = !told_ms ? -1 : left_ms > 0 ? (int)left_ms : MCP_GRACE_MS;
		if (poll(wait, BASE_COUNT(wait), until_ms) < 0) {
			if (errno != EINTR)
				break;
			continue;
		}
		if (wait[0].revents)
			mcp_take(p, &p->out, &p->answer, ANSWER_MAX_BYTES);
		if (wait[1].revents)
			mcp_take(p, &p->err, &p->said, SAID_MAX_BYTES);
		if (wait[2].revents || wait[3].revents)
			mcp_read(call->in);
	}
	return told_ms != 0;
}

static int mcp_end(struct mcp_program *p)
{
	int status = 0;
	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : CMD_ENVIRONMENT;
}

/* ---- the result ------------------------------------------------------------------------------ */

static void mcp_add_text(json_t *content, struct base_str *text)
{
	base_str_make_shown(text, BASE_SHOWN_LINES);
	if (text->length && !text->failed)
		json_array_append_new(content,
			json_pack("{s:s, s:s}", "type", "text", "text", base_str_text(text)));
}

static json_t *mcp_result(const struct mcp_call *call, struct mcp_program *p, int status)
{
	json_t *content = json_array(),
	       *document = call->is_json && !p->cut ? json_loadb(p->answer.buf ? p->answer.buf : "",
							      p->answer.length, 0, NULL)
						    : NULL;
	if (p->cut)
		base_str_addf(&p->said,
			"the answer is longer than %d MiB: ask for less (limit, from, to)\n",
			ANSWER_MAX_BYTES >> 20);
	mcp_add_text(content, &p->answer);
	mcp_add_text(content, &p->said);
	/* (1 says what a gate asked: it is an answer) */
	json_t *j =
		json_pack("{s:o, s:b}", "content", content, "isError", status > CMD_GATE || p->cut);
	if (document)
		json_object_set_new(j, "structuredContent", document);
	return j;
}

json_t *mcp_run(const struct mcp_call *call, char *const *words)
{
	struct mcp_program p;
	int status = CMD_ENVIRONMENT, e = mcp_begin(&p, words, call->directory);
	bool cancelled = false;
	if (e) {
		base_str_addf(&p.said, "cannot start it%s%s: %s\n", call->directory ? " in " : "",
			call->directory ? call->directory : "", strerror(e));
		close(p.out);
		close(p.err);
	} else {
		cancelled = mcp_follow(call, &p);
		status = mcp_end(&p);
	}
	json_t *j = cancelled ? NULL : mcp_result(call, &p, status);
	base_str_fini(&p.answer);
	base_str_fini(&p.said);
	return j;
}
