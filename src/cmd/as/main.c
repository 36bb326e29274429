/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - `as`, as `longpole cc` lets the compiler see it: rewrites what a compiler made, then
 * calls the real assembler. Anything that it cannot rewrite is assembled as it is, and said.
 *
 * LONGPOLE_CC_LEVEL says how much is recorded, LONGPOLE_CC_RECORDER=tsan that the compiler says
 * what is accessed (then only calls are rewritten); LONGPOLE_CC_VERBOSE=1 prints counts;
 * LONGPOLE_CC_KEEP names a directory for the rewritten text; LONGPOLE_AS is the real assembler.
 */
#include "rewrite/rewrite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OURS = 1, READ_STEP = 1 << 20, READ_LIMIT = 1 << 30, NOT_RUN = -1 };

struct job {
	char **argv; /* of the real assembler; [input] and [output + 1] are replaced */
	int argc, input, output;
	bool reads_stdin, pic, tsan;
	unsigned level;
	const char *assembler, *name; /* of the input, for messages */
	char directory[PATH_MAX];
	struct base_err err;
};

static void main_say(const struct job *j, const char *what)
{
	fprintf(stderr, "longpole: %s: %s%s%s\n", j->name, what, j->err.nr_causes ? ": " : "",
		j->err.nr_causes ? j->err.cause[0] : "");
}

/* ---- the real assembler ---------------------------------------------------------------------- */

/* The first `as` on the path that is not ourselves. */
static const char *find_assembler(char buf[PATH_MAX])
{
	const char *given = getenv("LONGPOLE_AS"), *dirs = getenv("PATH");
	struct stat own, st;
	if (given && *given)
		return given;
	if (stat("/proc/self/exe", &own))
		return "/usr/bin/as";
	for (const char *dir = dirs ? dirs : "/usr/bin:/bin"; *dir;) {
		const char *end = strchrnul(dir, ':');
		int n = snprintf(buf, PATH_MAX, "%.*s/as", (int)(end - dir), dir);
		if (n > 0 && n < PATH_MAX && !access(buf, X_OK) && !stat(buf, &st) &&
			(st.st_dev != own.st_dev || st.st_ino != own.st_ino))
			return buf;
		dir = *end ? end + 1 : end;
	}
	return "/usr/bin/as";
}

static int main_run(const struct job *j, char **argv, bool quiet)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status;
	posix_spawn_file_actions_init(&actions);
	if (quiet)
		posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	int why = posix_spawn(&pid, j->assembler, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (why) {
		fprintf(stderr, "longpole: cannot run %s: %s\n", j->assembler, strerror(why));
		return NOT_RUN;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return NOT_RUN;
	return WIFEXITED(status) ? WEXITSTATUS(status) : NOT_RUN;
}

/* The same arguments with other files. `extra`: one more argument, or NULL. */
static int main_assemble(
	const struct job *j, const char *input, const char *output, const char *extra, bool quiet)
{
	char **argv = base_alloc(((size_t)j->argc + 5) * sizeof *argv);
	int n = 0;
	if (!argv)
		return NOT_RUN;
	for (int i = 0; i < j->argc; i++) {
		if (i == j->input || (j->output && (i == j->output || i == j->output + 1)))
			continue;
		argv[n++] = j->argv[i];
	}
	if (extra)
		argv[n++] = (char *)extra;
	argv[n++] = (char *)"-o";
	argv[n++] = (char *)output;
	argv[n++] = (char *)input;
	int status = main_run(j, argv, quiet);
	base_free(argv);
	return status;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool main_read_all(const char *path, struct base_str *ret)
{
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	char *step = base_alloc(READ_STEP);
	bool good = fd >= 0 && step;
	while (good) {
		ssize_t n = read(fd, step, READ_STEP);
		if (n < 0 && errno == EINTR)
			continue;
		good = n >= 0 && ret->length + (size_t)n <= READ_LIMIT;
		if (n <= 0)
			break;
		base_str_add_bytes(ret, step, (size_t)n);
	}
	base_free(step);
	if (path && fd >= 0)
		close(fd);
	return good && !ret->failed;
}

static bool main_write_all(const char *path, const struct base_str *text)
{
	FILE *f = fopen(path, "we");
	if (!f)
		return false;
	bool good = fwrite(base_str_text(text), 1, text->length, f) == text->length;
	return !fclose(f) && good;
}

/* ---- rewriting ------------------------------------------------------------------------------- */

static bool main_path_of(const struct job *j, const char *name, char ret[PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s/%s", j->directory, name);
	return n > 0 && n < PATH_MAX;
}

static void main_keep(const struct job *j, const struct base_str *text)
{
	const char *directory = getenv("LONGPOLE_CC_KEEP");
	const char *slash = strrchr(j->name, '/');
	char path[PATH_MAX];
	if (directory && *directory &&
		snprintf(path, sizeof path, "%s/%s.rewritten.s", directory,
			slash ? slash + 1 : j->name) < PATH_MAX)
		(void)main_write_all(path, text);
}

static void print_counts(const struct job *j, const struct rewrite_counts *c)
{
	const char *verbose = getenv("LONGPOLE_CC_VERBOSE");
	if (!verbose || *verbose != '1')
		return;
	struct base_str s = {0};
	base_str_addf(&s,
		"longpole: %s: %llu {function|functions} (%llu borrowing {register|registers}), "
		"%llu {block|blocks}, %llu "
		"{instruction|instructions}, %llu {access|accesses}, %llu {slot|slots}, %llu "
		"{call|calls} replaced; not seen: %llu "
		"{place|places} of "
		"inline assembly, %llu {instruction|instructions}\n",
		j->name, (unsigned long long)c->functions, (unsigned long long)c->borrowing,
		(unsigned long long)c->blocks, (unsigned long long)c->instructions,
		(unsigned long long)c->accesses, (unsigned long long)c->slots,
		(unsigned long long)c->calls, (unsigned long long)c->opaque,
		(unsigned long long)c->unknown);
	fputs(base_str_text(&s), stderr);
	base_str_fini(&s);
}

/* The labelled text, assembled, tells what each instruction is. */
static enum base_status main_learn(struct job *j, struct rewrite *w)
{
	char text_path[PATH_MAX], object_path[PATH_MAX];
	struct base_str text = {0}, object = {0};
	enum base_status status = BASE_OK;
	rewrite_labelled(w, &text);
	if (!main_path_of(j, "labelled.s", text_path) ||
		!main_path_of(j, "labelled.o", object_path) || text.failed ||
		!main_write_all(text_path, &text))
		status = base_fail(&j->err, BASE_ERR_IO, "cannot write to %s", j->directory);
	else if (main_assemble(j, text_path, object_path, "--keep-locals", true) != 0)
		status = base_fail(&j->err, BASE_ERR_FORMAT, "the assembler refuses it");
	else if (!main_read_all(object_path, &object))
		status = base_fail(&j->err, BASE_ERR_IO, "cannot read %s", object_path);
	else
		status = rewrite_object(w, base_str_text(&object), object.length, &j->err);
	base_str_fini(&text);
	base_str_fini(&object);
	return status;
}

/* The exit status, or NOT_RUN: assemble it as it is. */
static int rewrite(struct job *j, const struct base_str *text)
{
	struct rewrite_options options = {.size = sizeof options,
		.level = j->level,
		.accesses_are_calls = j->tsan,
		.pic = j->pic};
	struct rewrite *w = NULL;
	struct base_str out = {0};
	char path[PATH_MAX];
	int exit_status = NOT_RUN;
	enum base_status status = rewrite_new(text->buf, text->length, &options, &w, &j->err);
	if (status == BASE_OK)
		status = main_learn(j, w);
	if (status == BASE_OK)
		status = rewrite_emit(w, &out, &j->err);
	if (status == BASE_OK &&
		(!main_path_of(j, "rewritten.s", path) || !main_write_all(path, &out)))
		status = base_fail(&j->err, BASE_ERR_IO, "cannot write to %s", j->directory);
	if (status == BASE_OK) {
		main_keep(j, &out);
		const char *output = j->output ? j->argv[j->output + 1] : "a.out";
		const char *verbose = getenv("LONGPOLE_CC_VERBOSE");
		exit_status = main_assemble(j, path, output, NULL, !verbose || *verbose != '1');
		if (exit_status) {
			base_fail(&j->err, BASE_ERR_FORMAT,
				"the assembler refuses the rewritten text");
			exit_status = NOT_RUN;
		} else {
			print_counts(j, rewrite_counts(w));
		}
	}
	if (exit_status == NOT_RUN)
		main_say(j, "is not recorded");
	base_str_fini(&out);
	rewrite_free(w);
	return exit_status;
}

static void clean_up(const struct job *j)
{
	static const char *const name[] = {"input.s", "labelled.s", "labelled.o", "rewritten.s"};
	char path[PATH_MAX];
	for (size_t i = 0; i < BASE_COUNT(name); i++)
		if (main_path_of(j, name[i], path))
			unlink(path);
	rmdir(j->directory);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Options of the assembler whose value is an argument of its own. */
static bool main_takes_value(const char *arg)
{
	static const char *const option[] = {"-o", "-I", "--defsym", "-defsym",
		"--debug-prefix-map", "--MD", "--listing-lhs-width", "--hash-size"};
	for (size_t i = 0; i < BASE_COUNT(option); i++)
		if (!strcmp(arg, option[i]))
			return true;
	return false;
}

/* false: nothing to rewrite. */
static bool main_parse(struct job *j)
{
	int nr_inputs = 0;
	for (int i = 1; i < j->argc; i++) {
		if (!strcmp(j->argv[i], "-o") && i + 1 < j->argc)
			j->output = i;
		if (!strcmp(j->argv[i], "--version") || !strcmp(j->argv[i], "--help"))
			return false;
		if (main_takes_value(j->argv[i]))
			i++;
		else if (j->argv[i][0] != '-' || !j->argv[i][1])
			j->input = i, nr_inputs++;
	}
	j->reads_stdin = !nr_inputs || !strcmp(j->argv[j->input], "-");
	return nr_inputs <= 1;
}

int main(int argc, char **argv)
{
	char assembler[PATH_MAX];
	struct job j = {.argv = argv, .argc = argc, .name = "standard input"};
	struct base_str text = {0};
	const char *level = getenv("LONGPOLE_CC_LEVEL"), *pic = getenv("LONGPOLE_CC_PIC");
	const char *tmp = getenv("TMPDIR"), *recorder = getenv("LONGPOLE_CC_RECORDER");
	j.assembler = find_assembler(assembler);
	j.level = level && *level >= '1' && *level <= '3' ? (unsigned)(*level - '0') : 3;
	j.pic = pic && *pic == '1';
	j.tsan = recorder && !strcmp(recorder, "tsan");
	j.level = j.tsan && j.level > 2 ? 2 : j.level;
	argv[0] = (char *)j.assembler;
	if (!main_parse(&j)) {
		execv(j.assembler, argv);
		return OURS;
	}
	if (!j.reads_stdin)
		j.name = argv[j.input];
	if (!main_read_all(j.reads_stdin ? NULL : argv[j.input], &text)) {
		fprintf(stderr, "longpole: cannot read %s\n", j.name);
		return OURS;
	}
	int n = snprintf(j.directory, sizeof j.directory, "%s/longpole-as.XXXXXX",
		tmp && *tmp ? tmp : "/tmp");
	if (n < 0 || (size_t)n >= sizeof j.directory || !mkdtemp(j.directory)) {
		fprintf(stderr, "longpole: cannot make a directory in %s\n", tmp ? tmp : "/tmp");
		return OURS;
	}
	int status = NOT_RUN;
	if (text.length && rewrite_is_compiled(text.buf, text.length))
		status = rewrite(&j, &text);
	if (status == NOT_RUN) {
		char path[PATH_MAX];
		const char *input = j.reads_stdin ? path : argv[j.input];
		const char *output = j.output ? argv[j.output + 1] : "a.out";
		status = OURS;
		if (!j.reads_stdin ||
			(main_path_of(&j, "input.s", path) && main_write_all(path, &text)))
			status = main_assemble(&j, input, output, NULL, false);
	}
	clean_up(&j);
	base_str_fini(&text);
	return status == NOT_RUN ? OURS : status;
}
