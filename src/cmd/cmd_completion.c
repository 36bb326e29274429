/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_completion.c - completion scripts from the tables, for bash, zsh and fish. */
#include "cmd/cmd.h"

#include "format/format.h"

#include <string.h>

const struct cmd_details cmd_details_completion = {
	.usage = "bash|zsh|fish",
	.about = "Prints a completion script. Load it in the shell's start file, or write it where "
		 "the shell "
		 "looks for completions.",
	.example = {"source <(longpole completion bash)",
		"longpole completion zsh > ~/.zfunc/_longpole",
		"longpole completion fish > ~/.config/fish/completions/longpole.fish"},
};

/* An optional value is none that a shell should wait for. */
static bool cmd_completion_takes_value(const struct cmd_option *o)
{
	return o->value && !cmd_value_is_optional(o);
}

/* In single quotes, for all three shells: a quote in a text becomes an apostrophe that needs no
 * quoting. */
static void cmd_completion_add_text(struct base_str *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			base_str_add(out, "\xe2\x80\x99");
		else
			base_str_add_bytes(out, text, 1);
	}
}

static bool is_file_option(const struct cmd_option *o)
{
	return o->choices && *o->choices == '@';
}

static bool has_choices(const struct cmd_option *o)
{
	return o->choices && *o->choices != '@';
}

static void add_import_formats(struct base_str *out)
{
	size_t nr;
	const struct format_import_desc *table = format_import_table(&nr);
	for (size_t i = 0; i < nr; i++)
		base_str_addf(out, "%s%s", i ? " " : "", table[i].name);
}

static bool has_verbs(const struct cmd_spec *command)
{
	size_t nr;
	const struct cmd_spec *verb = cmd_verbs(&nr);
	for (size_t i = 0; i < nr; i++)
		if (cmd_is_verb_of(&verb[i], command))
			return true;
	return false;
}

static void add_verbs(struct base_str *out, const struct cmd_spec *command)
{
	size_t nr;
	const struct cmd_spec *verb = cmd_verbs(&nr);
	const char *space = "";
	for (size_t i = 0; i < nr; i++)
		if (cmd_is_verb_of(&verb[i], command)) {
			base_str_addf(out, "%s%s", space, verb[i].name + strlen(command->name) + 1);
			space = " ";
		}
}

static void cmd_completion_add_sections(struct base_str *out)
{
	size_t nr;
	const struct cmd_spec *table = cmd_table(&nr);
	const char *space = "";
	for (size_t i = 0; i < nr; i++)
		if (table[i].section) {
			base_str_addf(out, "%s%s", space, table[i].name);
			space = " ";
		}
}

/* A pattern of the shells' `case`: all commands of two words. */
static void add_two_words(struct base_str *out)
{
	size_t nr;
	const struct cmd_spec *verb = cmd_verbs(&nr);
	for (size_t i = 0; i < nr; i++)
		base_str_addf(out, "%s'%s'", i ? " | " : "", verb[i].name);
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* Options of one command by what follows them. */
static void bash_case(struct base_str *out, const struct cmd_spec *spec)
{
	const struct cmd_option *o;
	base_str_addf(out, "\t'%s')\n\t\toptions='", spec->name);
	for (size_t i = 0; (o = cmd_option_at(spec, i)); i++)
		if (o->doc)
			base_str_addf(out, "%s--%s%s", i ? " " : "", o->name,
				cmd_completion_takes_value(o) ? "=" : "");
	base_str_add(out, "'\n\t\tcase $previous in\n");
	for (size_t i = 0; (o = cmd_option_at(spec, i)); i++) {
		if (!cmd_completion_takes_value(o))
			continue;
		base_str_addf(out, "\t\t--%s", o->name);
		if (o->letter)
			base_str_addf(out, " | -%c", o->letter);
		if (has_choices(o))
			base_str_addf(out, ") choices='%s' ;;\n", o->choices);
		else
			base_str_addf(out, ") files=%s ;;\n", is_file_option(o) ? "any" : "none");
	}
	base_str_add(out, "\t\tesac\n");
	if (spec->flags & CMD_PROGRAM)
		base_str_add(out, "\t\tprogram=1\n");
	else if (spec->flags & CMD_READS_TRACE)
		base_str_add(out, "\t\toperand=trace\n");
	if (spec->run == cmd_run_report) {
		base_str_add(out, "\t\twords='");
		cmd_completion_add_sections(out);
		base_str_add(out, "'\n");
	}
	if (spec->flags & CMD_IMPORTS) {
		base_str_add(out, "\t\toperand=file\n\t\t((COMP_CWORD == 2)) && words='");
		add_import_formats(out);
		base_str_add(out, "'\n");
	}
	if (has_verbs(spec)) {
		base_str_add(out, "\t\toperand=file\n\t\t((COMP_CWORD == 2)) && words='");
		add_verbs(out, spec);
		base_str_add(out, "'\n");
	} else if (strchr(spec->name, ' ')) {
		base_str_add(out, "\t\toperand=file\n");
	}
	base_str_add(out, "\t\t;;\n");
}

static void bash(struct base_str *out, const struct cmd_spec *table, size_t nr)
{
	base_str_add(out,
		"# bash completion for longpole; made by 'longpole completion bash'\n"
		"_longpole() {\n"
		"\tlocal word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
		"\tlocal command='' commands options='' choices='' files='' operand='' program='' "
		"words=''\n"
		"\t[[ $previous == '=' ]] && previous=${COMP_WORDS[COMP_CWORD-2]}\n"
		"\t[[ $word == '=' ]] && { previous=${COMP_WORDS[COMP_CWORD-1]}; word=''; }\n"
		"\tcommands='");
	for (size_t i = 0; i < nr; i++)
		base_str_addf(out, "%s%s", i ? " " : "", table[i].name);
	base_str_add(out, "'\n\tCOMPREPLY=()\n"
			  "\tif ((COMP_CWORD > 1)); then\n\t\tcommand=${COMP_WORDS[1]}\n\tfi\n");
	base_str_add(out, "\t((COMP_CWORD > 2)) && case \"$command ${COMP_WORDS[2]}\" in\n\t");
	add_two_words(out);
	base_str_add(out, ") command=\"$command ${COMP_WORDS[2]}\" ;;\n\tesac\n"
			  "\tcase $command in\n");
	for (size_t i = 0; i < nr; i++)
		bash_case(out, &table[i]);
	size_t nr_verbs;
	const struct cmd_spec *verb = cmd_verbs(&nr_verbs);
	for (size_t i = 0; i < nr_verbs; i++)
		bash_case(out, &verb[i]);
	bash_case(out, &cmd_default_spec);
	base_str_add(out,
		"\t*) program=1 ;;\n\tesac\n"
		"\tif [[ $choices ]]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$word\")\n"
		"\telif [[ $files == any ]]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
		"\telif [[ $files == none ]]; then\n\t\treturn\n"
		"\telif [[ $word == -* ]]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
		"\t\t[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
		"\telif [[ $command == help && $COMP_CWORD -eq 2 ]]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$word\")\n"
		"\telif [[ $command == completion ]]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W 'bash zsh fish' -- \"$word\")\n"
		"\telif ((COMP_CWORD == 1)); then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W \"$commands\" -- \"$word\"; compgen -c -- "
		"\"$word\")\n"
		"\telif [[ $operand == trace ]]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\"; compgen -f -X "
		"'!*.lpt' -- \"$word\"; compgen -d -- \"$word\")\n"
		"\telif [[ $words ]]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\")\n"
		"\telif [[ $operand == file ]]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n"
		"\telif [[ $program ]]; then\n"
		"\t\tmapfile -t COMPREPLY < <(compgen -c -- \"$word\"; compgen -f -- \"$word\")\n"
		"\tfi\n}\ncomplete -o filenames -F _longpole longpole\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* ':' and '[' ']' mean something in a specification. */
static void zsh_text(struct base_str *out, const char *text)
{
	for (; *text; text++) {
		char c[2] = {*text, 0};
		if (strchr(":[]\\", *text))
			base_str_add(out, "\\");
		cmd_completion_add_text(out, c);
	}
}

static void zsh_option(struct base_str *out, const struct cmd_option *o)
{
	const char *end = cmd_completion_takes_value(o) ? "=" : "";
	base_str_add(out, " \\\n\t\t\t");
	if (o->letter)
		base_str_addf(out, "{-%c%s,--%s%s}'[", o->letter,
			cmd_completion_takes_value(o) ? "+" : "", o->name, end);
	else
		base_str_addf(out, "'--%s%s[", o->name, end);
	zsh_text(out, o->doc);
	base_str_add(out, "]");
	if (cmd_completion_takes_value(o))
		base_str_addf(out, ":%s:", o->value);
	if (o->value && has_choices(o))
		base_str_addf(out, "(%s)", o->choices);
	else if (o->value && is_file_option(o))
		base_str_add(out, "_files");
	base_str_add(out, "'");
}

static void zsh_arguments(struct base_str *out, const struct cmd_spec *spec)
{
	const struct cmd_option *o;
	base_str_addf(out, "\t'%s')\n\t\t_arguments -s", spec->name);
	for (size_t k = 0; (o = cmd_option_at(spec, k)); k++)
		if (o->doc)
			zsh_option(out, o);
}

static void zsh(struct base_str *out, const struct cmd_spec *table, size_t nr)
{
	base_str_add(out, "#compdef longpole\n# made by 'longpole completion zsh'\n_longpole() {\n"
			  "\tlocal -a commands\n\tcommands=(\n");
	for (size_t i = 0; i < nr; i++) {
		base_str_addf(out, "\t\t'%s:", table[i].name);
		zsh_text(out, table[i].summary);
		base_str_add(out, "'\n");
	}
	base_str_add(out, "\t)\n\tif ((CURRENT == 2)); then\n"
			  "\t\t_describe -t commands command commands\n\t\t_command_names -e\n"
			  "\t\treturn\n\tfi\n"
			  "\tlocal command=${words[2]}\n\tshift words\n\t((CURRENT--))\n"
			  "\t((CURRENT > 2)) && case \"$command ${words[2]}\" in\n\t");
	add_two_words(out);
	base_str_add(out, ") command=\"$command ${words[2]}\"; shift words; ((CURRENT--)) ;;\n"
			  "\tesac\n\tcase $command in\n");
	size_t nr_verbs;
	const struct cmd_spec *verb = cmd_verbs(&nr_verbs);
	for (size_t i = 0; i < nr_verbs; i++) {
		zsh_arguments(out, &verb[i]);
		base_str_add(out, " \\\n\t\t\t'*:file:_files'\n\t\t;;\n");
	}
	for (size_t i = 0; i < nr; i++) {
		zsh_arguments(out, &table[i]);
		if (has_verbs(&table[i])) {
			base_str_add(out, " \\\n\t\t\t'1:verb:(");
			add_verbs(out, &table[i]);
			base_str_add(out, ")'");
		} else if (table[i].flags & CMD_PROGRAM)
			base_str_add(out, " \\\n\t\t\t'(-):program:_command_names -e' "
					  "'*::arguments:_normal'");
		else if (table[i].run == cmd_run_report) {
			base_str_add(out, " \\\n\t\t\t'*: :{_alternative \"sections:section:(");
			cmd_completion_add_sections(out);
			base_str_add(out, ")\" \"traces:trace:_files -g \\\"*.lpt\\\"\"}'");
		} else if (table[i].flags & CMD_READS_TRACE)
			base_str_add(out, " \\\n\t\t\t'*:trace:_files -g \"*.lpt\"'");
		else if (table[i].flags & CMD_IMPORTS) {
			base_str_add(out, " \\\n\t\t\t'1:format:(");
			add_import_formats(out);
			base_str_add(out, ")' '2:file:_files'");
		} else if (!strcmp(table[i].name, "completion"))
			base_str_add(out, " \\\n\t\t\t'1:shell:(bash zsh fish)'");
		else if (!strcmp(table[i].name, "help"))
			base_str_add(out, " \\\n\t\t\t'1:command:{_describe command commands}'");
		base_str_add(out, "\n\t\t;;\n");
	}
	base_str_add(out, "\t*) _normal ;;\n\tesac\n}\n_longpole \"$@\"\n");
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void fish_option(struct base_str *out, const char *command, const struct cmd_option *o)
{
	if (!o->doc)
		return;
	base_str_addf(out, "complete -c longpole -n '__fish_seen_subcommand_from %s' -l %s",
		command, o->name);
	if (o->letter)
		base_str_addf(out, " -s %c", o->letter);
	if (has_choices(o))
		base_str_addf(out, " -x -a '%s'", o->choices);
	else if (cmd_completion_takes_value(o))
		base_str_add(out, is_file_option(o) ? " -r -F" : " -x");
	base_str_add(out, " -d '");
	cmd_completion_add_text(out, o->doc);
	base_str_add(out, "'\n");
}

static void fish(struct base_str *out, const struct cmd_spec *table, size_t nr)
{
	base_str_add(out, "# fish completion for longpole; made by 'longpole completion fish'\n");
	for (size_t i = 0; i < nr; i++) {
		const struct cmd_option *o;
		base_str_addf(out, "complete -c longpole -n __fish_use_subcommand -a %s -d '",
			table[i].name);
		cmd_completion_add_text(out, table[i].summary);
		base_str_add(out, "'\n");
		for (size_t k = 0; (o = cmd_option_at(&table[i], k)); k++)
			fish_option(out, table[i].name, o);
		if (has_verbs(&table[i])) {
			base_str_addf(out,
				"complete -c longpole -n '__fish_seen_subcommand_from %s' -a '",
				table[i].name);
			add_verbs(out, &table[i]);
			base_str_add(out, "'\n");
		}
		if (table[i].run == cmd_run_report) {
			base_str_add(out, "complete -c longpole -n '__fish_seen_subcommand_from "
					  "report' -a '");
			cmd_completion_add_sections(out);
			base_str_add(out, "'\n");
		}
		if (!(table[i].flags & CMD_IMPORTS))
			continue;
		base_str_addf(out, "complete -c longpole -n '__fish_seen_subcommand_from %s' -a '",
			table[i].name);
		add_import_formats(out);
		base_str_add(out, "'\n");
	}
	size_t nr_verbs;
	const struct cmd_spec *verb = cmd_verbs(&nr_verbs);
	for (size_t i = 0; i < nr_verbs; i++) {
		const struct cmd_option *o;
		struct base_str both = {0};
		size_t length = strcspn(verb[i].name, " ");
		base_str_add_bytes(&both, verb[i].name, length);
		base_str_addf(
			&both, "; and __fish_seen_subcommand_from %s", verb[i].name + length + 1);
		for (size_t k = 0; (o = cmd_option_at(&verb[i], k)); k++)
			fish_option(out, base_str_text(&both), o);
		base_str_fini(&both);
	}
	base_str_add(out, "complete -c longpole -n '__fish_seen_subcommand_from completion' -f -a "
			  "'bash zsh fish'\n");
}

int cmd_run_completion(struct cmd *c)
{
	static const struct {
		const char *name;
		void (*write)(struct base_str *out, const struct cmd_spec *table, size_t nr);
	} shell[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
	size_t nr;
	const struct cmd_spec *table = cmd_table(&nr);
	for (size_t i = 0; c->nr_operands == 1 && i < BASE_COUNT(shell); i++) {
		if (strcmp(shell[i].name, c->operand[0]) != 0)
			continue;
		struct base_str out = {0};
		shell[i].write(&out, table, nr);
		return cmd_write(c, &out);
	}
	if (c->nr_operands == 1)
		return cmd_usage_choice(c, "shell", c->operand[0], "bash zsh fish");
	return cmd_usage(c, "give one shell: bash, zsh or fish");
}
