/* SPDX-License-Identifier: Apache-2.0 */
/* tool.c - running a program under Valgrind's tool, and reading what the tool wrote. */
#include "spin/native.h"
#include "os/valgrind.h"

#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_PATH = PATH_MAX + 300 }; /* a directory and a name in it */
static const char tool_schema[] = "longpole-valgrind/spin/1";

enum { ARGUMENTS_MAX = 4096, ANSWER_MAX_BYTES = 64 << 20 };

bool spin_has_tool(const char **ret_why)
{
	*ret_why = os_valgrind_why_not();
	return !*ret_why;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
	struct spin_answer *a;
	struct base_err *err;
	uint64_t first_thread; /* ids of the process begin after it */
	bool failed, no_memory;
};

static void tool_fail(struct reading *r, const char *what)
{
	if (!r->failed)
		base_fail(r->err, BASE_ERR_CORRUPT, "the tool's answer: %s", what);
	r->failed = true;
}

static uint64_t tool_number(struct reading *r, const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);
	if (!json_is_integer(v) || json_integer_value(v) < 0) {
		tool_fail(r, key);
		return 0;
	}
	return (uint64_t)json_integer_value(v);
}

static uint64_t number_or_0(struct reading *r, const json_t *object, const char *key)
{
	return json_object_get(object, key) ? tool_number(r, object, key) : 0;
}

static uint64_t tool_address(struct reading *r, const json_t *object)
{
	const char *text = json_string_value(json_object_get(object, "address"));
	char *end = NULL;
	uint64_t v = text ? strtoull(text, &end, 16) : 0;
	if (!text || *end || end == text)
		tool_fail(r, "address");
	return v;
}

static const char *tool_text_or_null(struct reading *r, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	const char *copy = text ? base_arena_strndup(r->a->arena, text, strlen(text)) : NULL;
	r->no_memory |= text && !copy;
	return copy;
}

static void read_place(struct reading *r, const json_t *object, struct spin_place *ret)
{
	if (!json_is_object(object)) {
		tool_fail(r, "a place in the code is missing");
		return;
	}
	*ret = (struct spin_place){.address = tool_address(r, object),
		.function = tool_text_or_null(r, object, "function"),
		.file = tool_text_or_null(r, object, "file"),
		.object = tool_text_or_null(r, object, "object"),
		.line = number_or_0(r, object, "line")};
}

static uint64_t thread_id(const struct reading *r, uint64_t serial)
{
	return serial ? r->first_thread + serial : 0;
}

static void tool_read_word(struct reading *r, const json_t *object, struct spin_polled *ret)
{
	const char *name = json_string_value(json_object_get(object, "name"));
	const json_t *writers = json_object_get(object, "writers"), *writer;
	size_t i;
	*ret = (struct spin_polled){.address = tool_address(r, object),
		.changes = number_or_0(r, object, "changes"),
		.last_writer = thread_id(r, number_or_0(r, object, "last_writer"))};
	if (json_object_get(object, "own_stack"))
		ret->own_stack = json_is_true(json_object_get(object, "own_stack"));
	if (name) {
		uint64_t offset = number_or_0(r, object, "offset_bytes");
		struct base_str s = {0};
		base_str_add(&s, name);
		if (offset)
			base_str_addf(&s, "+0x%" PRIx64, offset);
		ret->name = s.failed ? NULL : base_arena_strndup(r->a->arena, s.buf, s.length);
		r->no_memory |= !ret->name;
		base_str_fini(&s);
	}
	json_array_foreach(writers, i, writer)
	{
		if (ret->nr_writers < SPIN_WRITERS && json_is_integer(writer))
			ret->writer[ret->nr_writers++] =
				thread_id(r, (uint64_t)json_integer_value(writer));
	}
	if (ret->last_writer)
		read_place(r, json_object_get(object, "last_writer_at"), &ret->last_writer_at);
}

static void read_loop(struct reading *r, const json_t *object)
{
	struct spin_answer *a = r->a;
	const json_t *words = json_object_get(object, "words"), *word;
	struct spin_loop l = {.thread = thread_id(r, tool_number(r, object, "thread")),
		.spin_iterations = tool_number(r, object, "spin_iterations"),
		.spin_instructions = tool_number(r, object, "spin_instructions"),
		.waits = tool_number(r, object, "waits"),
		.longest_iterations = tool_number(r, object, "longest_iterations"),
		.counting_iterations = tool_number(r, object, "counting_iterations"),
		.counting_instructions = tool_number(r, object, "counting_instructions"),
		.more_polled = json_is_true(json_object_get(object, "more_words"))};
	size_t i;
	read_place(r, json_object_get(object, "branch"), &l.branch);
	read_place(r, json_object_get(object, "begins"), &l.begins);
	json_array_foreach(words, i, word)
	{
		if (l.nr_polled < SPIN_WORDS)
			tool_read_word(r, word, &l.polled[l.nr_polled++]);
	}
	if (r->failed)
		return;
	if (a->nr_loops == SPIN_LOOPS_MAX) {
		a->lost_loops++;
		return;
	}
	if (base_grow(&a->loop, &a->loops_capacity, a->nr_loops + 1, sizeof l) != BASE_OK) {
		r->no_memory = true;
		return;
	}
	a->loop[a->nr_loops++] = l;
}

static void tool_read_thread(struct reading *r, const json_t *object)
{
	struct spin_answer *a = r->a;
	uint64_t id = tool_number(r, object, "thread");
	struct spin_thread t = {.id = thread_id(r, id),
		.parent = thread_id(r, tool_number(r, object, "parent")),
		.instructions = tool_number(r, object, "instructions"),
		.marked_instructions = tool_number(r, object, "marked_instructions"),
		.spin_instructions = tool_number(r, object, "spin_instructions"),
		.counting_instructions = tool_number(r, object, "counting_instructions"),
		.evictions = tool_number(r, object, "evictions"),
		.overflows = tool_number(r, object, "overflows")};
	if (!id || id > SPIN_THREADS_MAX)
		tool_fail(r, "thread");
	if (t.spin_instructions > t.instructions ||
		t.counting_instructions > t.instructions - t.spin_instructions)
		tool_fail(r, "spin_instructions are more than there were");
	if (r->failed || a->nr_threads == SPIN_THREADS_MAX)
		return;
	if (base_grow(&a->thread, &a->threads_capacity, a->nr_threads + 1, sizeof t) == BASE_OK)
		a->thread[a->nr_threads++] = t;
	else
		r->no_memory = true;
}

enum base_status spin_read_tool(
	const char *text, size_t size_bytes, struct spin_answer *ret, struct base_err *err)
{
	struct reading r = {.a = ret, .err = err};
	json_error_t why;
	size_t i;
	const json_t *item;
	for (i = 0; i < ret->nr_threads; i++)
		r.first_thread =
			ret->thread[i].id > r.first_thread ? ret->thread[i].id : r.first_thread;
	json_t *all = json_loadb(text, size_bytes, 0, &why);
	const char *schema = json_string_value(json_object_get(all, "schema"));
	if (!schema || strcmp(schema, tool_schema) != 0) {
		json_decref(all);
		return base_fail(err, BASE_ERR_CORRUPT, "this is not what the tool writes (%s)",
			schema ? "another version" : why.text);
	}
	ret->nr_sdt = tool_number(&r, all, "sdt");
	ret->nr_rub = tool_number(&r, all, "rub");
	ret->yield_after = tool_number(&r, all, "yield_after");
	ret->lost_loops += tool_number(&r, all, "loops_lost");
	ret->lost_words += tool_number(&r, all, "words_lost");
	ret->nr_processes++;
	const json_t *threads = json_object_get(all, "threads"),
		     *loops = json_object_get(all, "loops");
	json_array_foreach(threads, i, item)
	{
		if (!r.failed)
			tool_read_thread(&r, item);
	}
	json_array_foreach(loops, i, item)
	{
		if (!r.failed)
			read_loop(&r, item);
	}
	json_decref(all);
	if (r.failed)
		return BASE_ERR_CORRUPT;
	return r.no_memory ? base_fail(err, BASE_ERR_NOMEM, "no memory for the tool's answer")
			   : BASE_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

static enum base_status read_answer(const char *path, struct spin_answer *a, struct base_err *err)
{
	enum base_status s;
	FILE *f = fopen(path, "re");
	struct stat st;
	if (!f || fstat(fileno(f), &st)) {
		s = base_fail_errno(err, errno, "the tool's answer, %s", path);
		if (f)
			fclose(f);
		return s;
	}
	size_t size = (size_t)st.st_size;
	char *text = size && size <= ANSWER_MAX_BYTES ? base_alloc(size) : NULL;
	if (!text)
		s = base_fail(
			err, BASE_ERR_CORRUPT, "the tool's answer has %zu {byte|bytes}", size);
	else if (fread(text, 1, size, f) != size)
		s = base_fail(err, BASE_ERR_IO, "cannot read the tool's answer");
	else
		s = spin_read_tool(text, size, a, err);
	base_free(text);
	fclose(f);
	return s;
}

/* Reads and removes all answers, one a process; the program's own first. */
static enum base_status tool_read_answers(
	const char *dir, pid_t pid, struct spin_answer *a, struct base_err *err)
{
	char path[LONG_PATH];
	snprintf(path, sizeof path, "%s/%d.json", dir, (int)pid);
	enum base_status s = read_answer(path, a, err);
	if (s == BASE_ERR_ENV || s == BASE_ERR_IO)
		s = base_cause(err, s,
			"the program was killed, or ran another one by exec (is it a script that "
			"finds the real one?): those write none; name that one, or use --sample");
	unlink(path);
	DIR *d = opendir(dir);
	for (const struct dirent *e; d && (e = readdir(d));) {
		const char *dot = strrchr(e->d_name, '.');
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (dot && !strcmp(dot, ".json") && s == BASE_OK)
			s = read_answer(path, a, err);
		unlink(path);
	}
	if (d)
		closedir(d);
	return s;
}

struct command {
	char *argv[ARGUMENTS_MAX];
	size_t nr;
	struct base_arena *arena;
	bool failed;
};

static void tool_add(struct command *c, const char *text)
{
	char *copy = base_arena_strndup(c->arena, text, strlen(text));
	if (!copy || c->nr == ARGUMENTS_MAX - 1)
		c->failed = true;
	else
		c->argv[c->nr++] = copy;
}

static void tool_add_option(struct command *c, const char *name, uint64_t value)
{
	char text[64];
	snprintf(text, sizeof text, "%s=%" PRIu64, name, value);
	tool_add(c, text);
}

static void make_command(struct command *c, const struct spin_tool_options *o, const char *dir)
{
	char text[PATH_MAX + 32];
	tool_add(c, "valgrind");
	tool_add(c, "-q");
	tool_add(c, "--tool=longpole");
	tool_add(c, "--vgdb=no");
	tool_add(c, "--fair-sched=try");
	/* backward branches as the program has them */
	tool_add(c, "--vex-iropt-unroll-thresh=0");
	tool_add(c, "--vex-guest-chase=no");
	snprintf(text, sizeof text, "--out=%s/%%p.json", dir);
	tool_add(c, text);
	if (o->nr_sdt)
		tool_add_option(c, "--sdt", o->nr_sdt);
	if (o->nr_rub)
		tool_add_option(c, "--rub", o->nr_rub);
	if (o->yield_after)
		tool_add_option(
			c, "--yield-after", o->yield_after == UINT64_MAX ? 0 : o->yield_after);
	if (o->marked) {
		snprintf(text, sizeof text, "--marked=%s", o->marked);
		tool_add(c, text);
	}
	tool_add(c, "--");
	for (char *const *a = o->argv; *a; a++)
		tool_add(c, *a);
}

/* Signals to us are for the program. */
static int tool_wait_for(pid_t pid, const sigset_t *signals)
{
	int status = 0;
	siginfo_t info;
	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);
		if (got == pid || (got < 0 && errno != EINTR))
			break;
		int tool_number = sigwaitinfo(signals, &info);
		if (tool_number > 0 && tool_number != SIGCHLD && info.si_code <= 0)
			kill(pid, tool_number);
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

enum base_status spin_run_tool(
	const struct spin_tool_options *o, struct spin_answer *ret, struct base_err *err)
{
	struct command *c = base_alloc(sizeof *c);
	struct os_links dir = {0};
	sigset_t signals, before;
	*ret = (struct spin_answer){.arena = base_arena_new(0), .exit_code = SPIN_EXIT_OURS};
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	enum base_status s = c && ret->arena
				     ? os_valgrind_directory(&dir, err)
				     : base_fail(err, BASE_ERR_NOMEM, "no memory for a command");
	if (s == BASE_OK) {
		BASE_ASSUME(c);
		c->arena = ret->arena;
		const char *const environment[] = {"VALGRIND_LIB", dir.directory, NULL};
		make_command(c, o, dir.directory);
		s = c->failed ? base_fail(err, BASE_ERR_LIMIT, "too many arguments")
			      : spin_start(c->argv, environment, &before, &ret->pid,
					&ret->exit_code, err);
	}
	if (s == BASE_OK) {
		ret->exit_code = tool_wait_for(ret->pid, &signals);
		s = tool_read_answers(dir.directory, ret->pid, ret, err);
	}
	if (s == BASE_OK)
		spin_sort(ret);
	os_links_remove(&dir);
	sigprocmask(SIG_SETMASK, &before, NULL);
	base_free(c);
	return s;
}
