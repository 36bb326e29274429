/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - dispatch. */
#include "cmd/cmd.h"

#include "cmd/noc/noc.h"
#include "cmd/commit.h"
#include "config.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct cmd_spec commands[] = {
#define CMD(name, group, flags, summary)                                                           \
	{#name, summary, group, flags, &cmd_details_##name, cmd_run_##name, NULL},
#if !LONGPOLE_X86_64
#define CMD_X86(name, group, flags, summary)                                                       \
	{#name, summary, group, CMD_RAW, &cmd_details_elsewhere, cmd_run_elsewhere, NULL},
#endif
#define SECTION(name, run, flags, summary)                                                         \
	{#name, summary, CMD_GROUP_ANALYSE, flags, &cmd_details_##name, run, cmd_section_##name},
#include "cmd/commands.def"
};

static const struct cmd_spec verbs[] = {
#define VERB(name, flags, summary)                                                                 \
	{"noc " #name, summary, CMD_GROUP_NETWORK, flags, &cmd_details_noc_##name, cmd_noc_##name, \
		NULL},
#include "cmd/noc/noc_verbs.def"
};

const struct cmd_group_text cmd_groups[CMD_GROUP_NR] = {
	[CMD_GROUP_RECORD] = {"Record", false},
	[CMD_GROUP_ANALYSE] = {"Ask", false},
	[CMD_GROUP_MEMORY] = {"Memory", true},
	[CMD_GROUP_NETWORK] = {"Networks", true},
	[CMD_GROUP_LOOK] = {"Traces", true},
	[CMD_GROUP_HELP] = {"Help", true},
};

const struct cmd_spec *cmd_table(size_t *ret_nr)
{
	*ret_nr = BASE_COUNT(commands);
	return commands;
}

const struct cmd_spec *cmd_find(const char *name)
{
	if (!strcmp(name, "c++")) /* which cannot be part of a C name */
		name = "cxx";
	for (size_t i = 0; i < BASE_COUNT(commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

const struct cmd_spec *cmd_verbs(size_t *ret_nr)
{
	*ret_nr = BASE_COUNT(verbs);
	return verbs;
}

bool cmd_is_verb_of(const struct cmd_spec *verb, const struct cmd_spec *command)
{
	size_t length = strlen(command->name);
	return !strncmp(verb->name, command->name, length) && verb->name[length] == ' ';
}

const struct cmd_spec *cmd_find_verb(const struct cmd_spec *command, const char *word)
{
	for (size_t i = 0; i < BASE_COUNT(verbs); i++)
		if (cmd_is_verb_of(&verbs[i], command) &&
			!strcmp(verbs[i].name + strlen(command->name) + 1, word))
			return &verbs[i];
	return NULL;
}

static const char *next_command(const void *ctx, size_t i)
{
	(void)ctx;
	return i < BASE_COUNT(commands) ? commands[i].name : NULL;
}

bool cmd_is_in_path(const char *name)
{
	const char *path = getenv("PATH");
	struct base_str s = {0};
	bool found = false;
	for (const char *p = path ? path : "/usr/bin:/bin"; !found; p++) {
		size_t length = strcspn(p, ":");
		base_str_reset(&s);
		base_str_add_bytes(&s, p, length);
		base_str_addf(&s, "%s%s", length ? "/" : "./", name);
		found = !s.failed && !access(base_str_text(&s), X_OK);
		p += length;
		if (!*p)
			break;
	}
	base_str_fini(&s);
	return found;
}

static bool main_is_program(const char *name)
{
	return strchr(name, '/') ||
	       cmd_is_in_path(name); /* whether a path exists, record says better */
}

static int help(struct cmd *c)
{
	struct report_style st = cmd_style(c);
	struct base_str s = {0};
	cmd_help_text(&s, c->spec, &st);
	return cmd_write(c, &s);
}

static int main_end(struct cmd *c, int exit_status)
{
	cmd_progress_clear(c);
	cmd_pager_end(c);
	cmd_seen_fini(c);
	return exit_status;
}

static int run_command(const struct cmd_spec *spec, int argc, char **argv)
{
	struct cmd c = {.spec = spec};
	struct cmd_sections sections;
	if (spec->run == cmd_run_report && cmd_sections_choose(&sections, &argc, argv)) {
		c.sections = &sections;
		c.spec = spec = &sections.spec;
	}
	if (spec->flags & CMD_RAW) {
		cmd_terminal_init(&c.term, CMD_AUTO);
		if (argc == 1 && (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h")))
			return help(&c);
		c.operand = argv;
		c.nr_operands = (size_t)argc;
		return spec->run(&c);
	}
	if (!cmd_parse(&c, argc, argv))
		return CMD_USAGE;
	if (cmd_given(&c, "help"))
		return main_end(&c, help(&c));
	struct base_str joined = {0};
	int exit_status = cmd_join_directory(&c, &joined);
	if (exit_status == CMD_OK) {
		cmd_check_operands(&c);
		exit_status = spec->run(&c);
	}
	exit_status = main_end(&c, exit_status);
	base_str_fini(&joined);
	return exit_status;
}

const char *cmd_nearest(const char *name)
{
	return base_nearest(name, next_command, NULL);
}

static int unknown_command(const char *word)
{
	const char *near = cmd_nearest(word);
	struct base_str s = {0};
	report_clean_add(&s, word);
	fprintf(stderr, "longpole: error: '%s' is neither a command nor a program in $PATH\n",
		base_str_text(&s));
	if (near)
		fprintf(stderr, "    did you mean: longpole %s\n", near);
	fprintf(stderr, "    try: longpole help\n");
	base_str_fini(&s);
	return CMD_USAGE;
}

static int overview(FILE *to, int exit_status)
{
	struct cmd_terminal t;
	struct base_str s = {0};
	cmd_terminal_init(&t, CMD_AUTO);
	struct report_style st = {.utf8 = t.utf8,
		.color = to == stdout ? t.color_out : t.color_err,
		.columns = t.columns};
	cmd_help_overview(&s, &st, false);
	fputs(base_str_text(&s), to);
	base_str_fini(&s);
	return exit_status;
}

/* `longpole --color=never report` is `longpole report --color=never`: what every command has may stand before its name,
 * and moves behind it. (A compiler's wrapper has no such option.) */
static int main_move_command(int argc, char **argv)
{
	int n = argc > 1 ? cmd_leading_words(argc - 1, argv + 1) : 0, nr_words = 1;
	const struct cmd_spec *spec = n ? cmd_find(argv[1 + n]) : NULL;
	if (!spec)
		return argc;
	if (n + 2 < argc && cmd_find_verb(spec, argv[n + 2]))
		nr_words = 2;
	char *word[2] = {argv[n + 1], argv[n + nr_words]};
	if (spec->flags & CMD_RAW) {
		memmove(argv + 1, argv + 1 + n, (size_t)(argc - n) * sizeof *argv);
		return argc - n;
	}
	memmove(argv + 1 + nr_words, argv + 1, (size_t)n * sizeof *argv);
	memcpy(argv + 1, word, (size_t)nr_words * sizeof *argv);
	return argc;
}

static int main_dispatch(int argc, char **argv)
{
	/* Only how texts are encoded: numbers are written the same everywhere. */
	setlocale(LC_CTYPE, "");
	json_set_alloc_funcs(base_alloc, base_free);
	argc = main_move_command(argc, argv);
	if (argc < 2)
		return overview(stderr, CMD_USAGE);
	const char *word = argv[1];
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		puts(*LONGPOLE_COMMIT ? "longpole " LONGPOLE_VERSION " (commit " LONGPOLE_COMMIT ")"
				      : "longpole " LONGPOLE_VERSION);
		return CMD_OK;
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		return overview(stdout, CMD_OK);
	const struct cmd_spec *spec = cmd_find(word);
	const struct cmd_spec *verb = spec && argc > 2 ? cmd_find_verb(spec, argv[2]) : NULL;
	if (spec)
		return run_command(verb ? verb : spec, argc - 2, argv + 2);
	if (*word != '-' && !main_is_program(word))
		return unknown_command(word);
	return run_command(&cmd_default_spec, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	return cmd_on_enough_stack(main_dispatch, argc, argv);
}
