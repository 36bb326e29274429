/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_annotate.c - `longpole annotate`: a function's source lines, or instructions, by samples. */
#include "cmd/cmd.h"

#include "report/annotate.h"
#include "symbol/symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FUNCTIONS_DEFAULT = 3, FUNCTIONS_MAX = 1000, AFTER_BYTES = 48, CODE_BYTES_MAX = 1 << 20 };
#define LISTING_BYTES_MAX ((size_t)64 << 20)

static const struct cmd_option option[] = {
	{"asm", 0, NULL, NULL, "instructions instead of lines, by objdump"},
	{"limit", 'n', "N", NULL,
		"of several functions that match, the N with most samples (default 3)"},
};

const struct cmd_details cmd_details_annotate = {
	.usage = "[OPTIONS] FUNCTION [TRACE]",
	.about = "Prints the source lines of a function, each with the share of the processor's "
		 "samples that were at it (own), and at it or in what it calls (all). FUNCTION "
		 "is a name, a name without its parameters, or a part of one.",
	.option = option,
	.nr_options = BASE_COUNT(option),
	.example = {"longpole annotate compress_block server.lpt",
		"longpole annotate --asm hash_lookup",
		"longpole annotate --json main server.lpt | jq "
		"'.result.functions[].files[].lines'"},
};

/* ---- instructions ---------------------------------------------------------------------------- */

/* What objdump prints of [from, to); BASE_ERR_ENV: it is not here, or cannot. */
static enum base_status annotate_read_listing(int fd, struct base_str *ret, struct base_err *err)
{
	char buf[16384];
	ssize_t n;
	while ((n = read(fd, buf, sizeof buf)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return base_fail_errno(err, errno, "reading what objdump says");
		if (ret->length < LISTING_BYTES_MAX)
			base_str_add_bytes(ret, buf, (size_t)n);
	}
	return ret->failed ? base_fail(err, BASE_ERR_NOMEM, "out of memory for instructions")
			   : BASE_OK;
}

static enum base_status annotate_spawn(char *const *argv, int out, pid_t *ret, struct base_err *err)
{
	posix_spawn_file_actions_t actions;
	int e = posix_spawn_file_actions_init(&actions);
	if (e)
		return base_fail_errno(err, e, "starting objdump");
	e = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!e)
		e = posix_spawn_file_actions_addopen(
			&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (!e)
		e = posix_spawnp(ret, "objdump", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (e == ENOENT)
		return base_fail(err, BASE_ERR_ENV,
			"objdump, which prints instructions, is not installed (Debian package "
			"binutils); without --asm lines are shown");
	return e ? base_fail_errno(err, e, "starting objdump") : BASE_OK;
}

static enum base_status annotate_disassemble(
	const char *module, uint64_t from, uint64_t to, struct base_str *ret, struct base_err *err)
{
	char start[48], stop[48];
	int fd[2] = {-1, -1}, status = 0;
	pid_t pid = -1;
	snprintf(start, sizeof start, "--start-address=0x%" PRIx64, from);
	snprintf(stop, sizeof stop, "--stop-address=0x%" PRIx64, to);
	char *file = strdup(module); /* allowed: argv wants it so */
	char *argv[] = {(char[]){"objdump"}, (char[]){"-d"}, (char[]){"-C"},
		(char[]){"--no-show-raw-insn"}, start, stop, (char[]){"--"}, file, NULL};
	if (!file)
		return base_fail(err, BASE_ERR_NOMEM, "out of memory for instructions");
	enum base_status s =
		pipe2(fd, O_CLOEXEC) ? base_fail_errno(err, errno, "a pipe to objdump") : BASE_OK;
	if (s == BASE_OK) {
		s = annotate_spawn(argv, fd[1], &pid, err);
		close(fd[1]);
		if (s == BASE_OK) {
			s = annotate_read_listing(fd[0], ret, err);
			while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
				;
		}
		close(fd[0]);
	}
	free(file); /* allowed: strdup's */
	if (s == BASE_OK && status)
		s = base_fail(err, BASE_ERR_ENV, "objdump cannot read %s", module);
	return s;
}

/* "    1234:\tmov ..." with its samples in front; what else objdump says is left out. */
static void annotate_add_instruction(struct base_str *out, const struct report_annotation *a,
	const struct report_annotated_place *place, size_t nr, const char *line, size_t length)
{
	char *end, share[16] = "";
	uint64_t at = strtoull(line, &end, 16), own = 0;
	if (end == line || *end != ':' || (size_t)(end - line) >= length)
		return;
	for (size_t i = 0; i < nr; i++)
		own += place[i].offset == at ? place[i].nr_own : 0;
	if (own)
		snprintf(share, sizeof share, "%.1f %%",
			100.0 * (double)own / (double)a->nr_samples);
	base_str_addf(out, "%9s  ", share);
	base_str_add_bytes(out, line, length);
	base_str_add(out, "\n");
}

/* The code that was recorded, not what was built since. */
static enum base_status annotate_check_module(
	const struct report_annotated_place *place, struct base_err *err)
{
	enum { REACH_BYTES = 1 };
	enum symbol_why why = 0;
	uint64_t from;
	uint8_t code[2 * REACH_BYTES];
	struct symbol_file *f = symbol_open_with(place->module, place->build_id, NULL, &why);
	bool has_file = f,
	     has_code = f && symbol_bytes_around(f, place->offset, REACH_BYTES, code, &from);
	symbol_close(f);
	if (has_code)
		return BASE_OK;
	return base_fail(err, BASE_ERR_ENV, "%s: its instructions are not here (%s)", place->module,
		has_file ? "only its debug file is" : symbol_why_line(why));
}

/* Instructions of one function in one module. */
static enum base_status annotate_add_code(struct base_str *out, const struct report_annotation *a,
	const struct report_annotated_place *place, size_t nr, struct base_err *err)
{
	struct base_str listing = {0};
	uint64_t from = place[0].function_offset, last = place[nr - 1].offset;
	if (from > place[0].offset || last - from > CODE_BYTES_MAX)
		from = place[0].offset;
	enum base_status s = annotate_check_module(place, err);
	if (s == BASE_OK)
		s = annotate_disassemble(place->module, from, last + AFTER_BYTES, &listing, err);
	base_str_addf(out, "\n%s\n%9s  instruction\n", place->module, "own");
	for (const char *p = base_str_text(&listing); s == BASE_OK && *p;) {
		size_t length = strcspn(p, "\n");
		annotate_add_instruction(out, a, place, nr, p, length);
		p += length + (p[length] == '\n');
	}
	base_str_fini(&listing);
	return s;
}

static enum base_status annotate_add_instructions(
	struct base_str *out, const struct report_annotation *a, struct base_err *err)
{
	enum base_status s = BASE_OK;
	for (size_t i = 0; i < a->nr_functions; i++) {
		const struct report_annotated *f = &a->function[i];
		base_str_addf(out,
			"%s%s: %" PRIu64 " of %" PRIu64
			" {sample is|samples are} in its own code (observed).\n",
			i ? "\n" : "", f->function, f->nr_own, a->nr_samples);
		if (!f->nr_places)
			base_str_add(out, "  (it is inlined everywhere: ask for its caller)\n");
		for (size_t k = 0, end; s == BASE_OK && k < f->nr_places; k = end) {
			for (end = k + 1;
				end < f->nr_places &&
				!strcmp(f->place[end].module, f->place[k].module) &&
				f->place[end].function_offset == f->place[k].function_offset;)
				end++;
			s = annotate_add_code(out, a, &f->place[k], end - k, err);
		}
	}
	return s;
}

/* ---- the command ----------------------------------------------------------------------------- */

int cmd_run_annotate(struct cmd *c)
{
	struct report_run run;
	struct report_annotation *a = NULL;
	uint64_t limit = FUNCTIONS_DEFAULT;
	if (!cmd_value_count(c, "limit", &limit))
		return CMD_USAGE;
	if (!c->nr_operands || !*c->operand[0])
		return cmd_usage(c, "which function? (longpole annotate FUNCTION [TRACE])");
	if (cmd_given(c, "asm") && cmd_given(c, "json"))
		return cmd_usage(c, "--asm is text: leave out --json");
	struct report_annotate_options opts = {.function = c->operand[0],
		.nr_functions = limit < FUNCTIONS_MAX ? (size_t)limit : FUNCTIONS_MAX};
	c->operand++;
	c->nr_operands--;
	int exit_status = cmd_open_operand(c, &run);
	if (exit_status != CMD_OK)
		return exit_status;
	enum base_status s = report_annotate_build(&run, &opts, &a, &c->err);
	struct base_str code = {0};
	if (s == BASE_OK && cmd_given(c, "asm"))
		s = annotate_add_instructions(&code, a, &c->err);
	struct cmd_answer answer = cmd_answer_begin(c, s);
	if (answer.as == CMD_AS_JSON)
		answer.json = report_annotate_json(a);
	else if (answer.as == CMD_AS_TEXT && cmd_given(c, "asm"))
		base_str_add_bytes(&answer.text, base_str_text(&code), code.length);
	else if (answer.as == CMD_AS_TEXT)
		report_annotate_text(&answer.text, a, &answer.style);
	base_str_fini(&code);
	report_annotation_free(a);
	return cmd_answer_end(c, &answer, &run);
}
