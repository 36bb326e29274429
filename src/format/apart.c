/* SPDX-License-Identifier: Apache-2.0 */
/* apart.c - a reader in a child process: messages through a pipe, what it prints in a file in
 * memory. */
#include "format/apart.h"
#include "base/names.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum message_kind { MESSAGE_name, MESSAGE_events, MESSAGE_end, MESSAGE_NR };
struct message {
	uint32_t kind, nr_bytes; /* nr_bytes: of what follows */
};
struct last_words {
	uint64_t count[FORMAT_APART_COUNTS];
	struct base_err err;
};
enum {
	MESSAGE_BYTES_MAX = FORMAT_SCHED_GIVEN * sizeof(struct format_sched_event),
	PIECE_BYTES = 1 << 16,
};

/* ---- the child ------------------------------------------------------------------------------- */

struct format_apart_giver {
	int fd;
	uint32_t nr_names;
};

static bool apart_write_all(int fd, const void *bytes, size_t nr)
{
	const uint8_t *p = bytes;
	while (nr) {
		ssize_t n = write(fd, p, nr);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		nr -= (size_t)n;
	}
	return true;
}

static bool apart_send(int fd, enum message_kind kind, const void *bytes, size_t nr)
{
	struct message m = {kind, (uint32_t)nr};
	return apart_write_all(fd, &m, sizeof m) && apart_write_all(fd, bytes, nr);
}

bool format_apart_give_text(struct format_apart_giver *g, const char *text)
{
	size_t length = strlen(text);
	return apart_send(
		g->fd, MESSAGE_name, text, length < MESSAGE_BYTES_MAX ? length : MESSAGE_BYTES_MAX);
}

bool format_apart_give_items(struct format_apart_giver *g, const void *items, size_t nr_bytes)
{
	return apart_send(g->fd, MESSAGE_events, items, nr_bytes);
}

static enum base_status apart_give(void *ctx, const struct format_sched_event *e, size_t nr,
	const struct base_strtab *names, struct base_err *err)
{
	struct format_apart_giver *g = ctx;
	bool good = true;
	for (; good && g->nr_names + 1 < base_strtab_count(names); g->nr_names++)
		good = format_apart_give_text(g, base_strtab_get(names, g->nr_names + 1));
	if (!good || !apart_send(g->fd, MESSAGE_events, e, nr * sizeof *e))
		return base_fail(err, BASE_ERR_IO, "nobody takes the events");
	return BASE_OK;
}

/* Never returns. What the library prints is for messages, not for the user's terminal. */
static __attribute__((noreturn)) void apart_run_child(
	const struct format_apart *a, struct format_sched *own, int fd, int printed_fd)
{
	struct last_words last = {.count = {0}};
	struct format_apart_giver g = {.fd = fd};
	static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
	for (size_t i = 0; i < BASE_COUNT(deadly); i++)
		signal(deadly[i], SIG_DFL); /* it is no crash of ours that anybody must hear of */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	if (printed_fd >= 0) {
		(void)dup2(printed_fd, STDOUT_FILENO);
		(void)dup2(printed_fd, STDERR_FILENO);
	}
	enum base_status s;
	if (a->items) {
		s = a->read_items(&g, a->path, last.count, &last.err);
	} else {
		format_sched_give_to(own, apart_give, &g);
		s = a->read(own, a->path, last.count, &last.err);
		if (s == BASE_OK)
			s = format_sched_give(own, &last.err);
	}
	last.err.status = s;
	bool good = apart_send(fd, MESSAGE_end, &last, sizeof last);
	_exit(good ? 0 : 1); /* allowed: it is a child that must not run our handlers */
}

/* ---- the parent ------------------------------------------------------------------------------ */

static enum base_status no_sense(struct base_err *err)
{
	return base_fail(err, BASE_ERR_FOREIGN, "what it hands over makes no sense any more");
}

static enum base_status take_name(
	struct format_apart_taker *t, const uint8_t *p, size_t nr, struct base_err *err)
{
	if (t->items)
		return t->items->text(t->items->ctx, (const char *)p, nr, err);
	if (t->nr_names >= BASE_STRTAB_LIMIT_TEXTS)
		return no_sense(err);
	if (base_grow(&t->name, &t->name_capacity, t->nr_names + 1, sizeof *t->name) != BASE_OK)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for names");
	t->name[t->nr_names++] = format_sched_name(t->to, (const char *)p, nr);
	return BASE_OK;
}

static uint32_t apart_own_name(const struct format_apart_taker *t, uint32_t id)
{
	return id && id <= t->nr_names ? t->name[id - 1] : 0;
}

static enum base_status take_events(
	struct format_apart_taker *t, const uint8_t *p, size_t nr, struct base_err *err)
{
	enum base_status s = BASE_OK;
	struct format_sched_event e;
	if (t->items)
		return t->items->items(t->items->ctx, p, nr, err);
	if (nr % sizeof e)
		return no_sense(err);
	for (const uint8_t *end = p + nr; s == BASE_OK && p < end; p += sizeof e) {
		if (p[offsetof(struct format_sched_event, runnable)] > 1) /* no bool */
			return no_sense(err);
		memcpy(&e, p, sizeof e);
		if (e.kind > FORMAT_SCHED_lost || e.context >= TRACE_CONTEXT_NR)
			return no_sense(err);
		e.name = apart_own_name(t, e.name);
		e.actor_name = apart_own_name(t, e.actor_name);
		s = format_sched_add(t->to, &e, err);
	}
	return s;
}

static enum base_status take_end(
	struct format_apart_taker *t, const uint8_t *p, size_t nr, struct base_err *err)
{
	struct last_words last;
	if (nr != sizeof last)
		return no_sense(err);
	memcpy(&last, p, sizeof last);
	memcpy(t->count, last.count, sizeof last.count);
	t->done = true;
	t->said = last.err.status;
	if (last.err.status == BASE_OK)
		return BASE_OK;
	enum base_status s = BASE_OK;
	for (unsigned i = 0; i < last.err.nr_causes && i < BASE_ERR_CAUSES_MAX; i++) {
		struct base_str clean = {0};
		last.err.cause[i][BASE_ERR_TEXT_MAX - 1] = 0;
		format_clean_add(&clean, last.err.cause[i]);
		s = i ? base_cause(err, s, "%s", base_str_text(&clean))
		      : base_fail(err, BASE_ERR_FOREIGN, "%s", base_str_text(&clean));
		base_str_fini(&clean);
	}
	return s == BASE_OK ? no_sense(err) : s;
}

static enum base_status take_message(struct format_apart_taker *t, const struct message *m,
	const uint8_t *p, struct base_err *err)
{
	static enum base_status (*const take[MESSAGE_NR])(struct format_apart_taker * t,
		const uint8_t *p, size_t nr, struct base_err *err) = {
		[MESSAGE_name] = take_name,
		[MESSAGE_events] = take_events,
		[MESSAGE_end] = take_end,
	};
	return take[m->kind](t, p, m->nr_bytes, err);
}

enum base_status format_apart_take(
	struct format_apart_taker *t, const void *bytes, size_t nr, struct base_err *err)
{
	enum base_status s = BASE_OK;
	size_t used = 0;
	base_str_add_bytes(&t->waiting, bytes, nr);
	if (t->waiting.failed)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for events");
	while (s == BASE_OK && t->waiting.length - used >= sizeof(struct message)) {
		struct message m;
		const uint8_t *p = (const uint8_t *)t->waiting.buf + used;
		memcpy(&m, p, sizeof m);
		if (m.kind >= MESSAGE_NR || m.nr_bytes > MESSAGE_BYTES_MAX || t->done)
			return no_sense(err);
		if (m.nr_bytes > t->waiting.length - used - sizeof m)
			break;
		s = take_message(t, &m, p + sizeof m, err);
		used += sizeof m + m.nr_bytes;
	}
	memmove(t->waiting.buf, t->waiting.buf + used, t->waiting.length - used);
	t->waiting.length -= used;
	return s;
}

void format_apart_fini(struct format_apart_taker *t)
{
	base_str_fini(&t->waiting);
	base_free(t->name);
	*t = (struct format_apart_taker){0};
}

static enum base_status apart_take_all(struct format_apart_taker *t, int fd, struct base_err *err)
{
	enum base_status s = BASE_OK;
	uint8_t *piece = base_alloc(PIECE_BYTES);
	ssize_t n = 1;
	if (!piece)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for events");
	while (s == BASE_OK && n) {
		n = read(fd, piece, PIECE_BYTES);
		if (n < 0 && errno != EINTR)
			s = base_fail_errno(err, errno, "reading events");
		else if (n > 0)
			s = format_apart_take(t, piece, (size_t)n, err);
	}
	base_free(piece);
	return s;
}

/* Its first words, on one line. */
static void add_printed(struct base_str *out, int fd)
{
	char text[FORMAT_APART_WHY_BYTES] = "";
	ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : 0;
	text[n > 0 ? n : 0] = 0;
	for (char *at = text; (at = strpbrk(at, "\r\n\t"));)
		*at = ' ';
	const char *words = text + strspn(text, " ");
	if (*words) {
		base_str_add(out, ": ");
		format_clean_add(out, words);
	}
}

static enum base_status died(
	const struct format_apart *a, int status, int printed_fd, struct base_err *err)
{
	struct base_str why = {0};
	add_printed(&why, printed_fd);
	const char *signal = WIFSIGNALED(status) ? base_signal_name(WTERMSIG(status)) : NULL;
	enum base_status s = base_fail(err, BASE_ERR_FOREIGN, "%s gave up on it (%s%s)%s",
		a->library, signal ? "SIG" : "it ended", signal ? signal : "", base_str_text(&why));
	base_str_fini(&why);
	return s;
}

enum base_status format_read_apart(const struct format_apart *a, struct format_sched *to,
	uint64_t count[static FORMAT_APART_COUNTS], struct base_err *err)
{
	struct format_sched *own = a->items ? NULL : format_sched_new();
	struct format_apart_taker t = {.to = to, .items = a->items, .count = count};
	int fds[2] = {-1, -1}, printed_fd = memfd_create("longpole-import", MFD_CLOEXEC),
	    status = 0;
	enum base_status s = BASE_OK;
	pid_t pid = -1;
	if (!own && !a->items)
		s = base_fail(err, BASE_ERR_NOMEM, "out of memory for events");
	else if (pipe2(fds, O_CLOEXEC) || (pid = fork()) < 0)
		s = base_fail_errno(err, errno, "cannot start a process that reads it");
	if (!pid)
		apart_run_child(a, own, fds[1], printed_fd);
	if (fds[1] >= 0)
		close(fds[1]);
	if (s == BASE_OK)
		s = apart_take_all(&t, fds[0], err);
	if (pid > 0 && !t.done && s != BASE_OK)
		kill(pid, SIGKILL);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (s == BASE_OK && !t.done)
		s = died(a, status, printed_fd, err);
	if (fds[0] >= 0)
		close(fds[0]);
	if (printed_fd >= 0)
		close(printed_fd);
	format_apart_fini(&t);
	format_sched_free(own);
	return s;
}
