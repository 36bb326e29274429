/* SPDX-License-Identifier: Apache-2.0 */
/* args.c - parsing by table; values with units; nearest match. */
#include "cmd/cmd.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- options that many commands have --------------------------------------------------------- */

static const struct {
	unsigned flag; /* 0: every command */
	struct cmd_option option;
} common[] = {
	{CMD_JSON, {"json", 0, NULL, NULL, "one JSON document instead of text"}},
	{CMD_MEMORY, {"max-memory", 0, "SIZE", NULL,
			     "give up beyond that much memory for the graph (default 2G)"}},
	{CMD_ENDS,
		{"start", 0, "ACTOR@STATE", NULL,
			"the path starts when ACTOR first enters STATE (patterns; ACTOR or @STATE "
			"alone will do)"}},
	{CMD_ENDS, {"end", 0, "ACTOR@STATE", NULL, "the path ends when ACTOR last enters STATE"}},
	{CMD_ENDS, {"process", 0, "NAME", NULL,
			   "the path ends at the last moment of this program, or of the process of "
			   "this "
			   "number"}},
	{CMD_ENDS, {"connection", 0, "ID", NULL,
			   "only the path of this connection ('longpole connections' lists them)"}},
	{CMD_WINDOW,
		{"from", 0, "TIME", NULL,
			"analyse only what happens from TIME on (as 1.5s, 20ms, 300us; or 20%)"}},
	{CMD_WINDOW, {"to", 0, "TIME", NULL, "analyse only what happens up to TIME"}},
	{CMD_PROGRESS, {"progress", 0, "WHEN", "auto always never",
			       "progress bar on standard error (auto: on a terminal, after half a "
			       "second)"}},
	{CMD_PROGRESS, {"quiet", 'q', NULL, NULL, "no notes on standard error, only errors"}},
	{0, {"color", 0, "WHEN", "auto always never",
		    "colours (auto: on a terminal, unless NO_COLOR)"}},
	{0, {"no-pager", 0, NULL, NULL,
		    "a long answer without a pager (LONGPOLE_PAGER, PAGER or less)"}},
	{0, {"help", 'h', NULL, NULL, "this text"}},
};

/* Options of all commands with these flags; NULL ends the enumeration. */
static const struct cmd_option *common_option(unsigned flags, size_t i)
{
	for (size_t k = 0; k < BASE_COUNT(common); k++)
		if ((!common[k].flag || flags & common[k].flag) && !i--)
			return &common[k].option;
	return NULL;
}

const struct cmd_option *cmd_option_at(const struct cmd_spec *spec, size_t i)
{
	const struct cmd_details *d = spec->details;
	if (i < d->nr_options)
		return &d->option[i];
	i -= d->nr_options;
	if (!(spec->flags & CMD_RAW))
		return common_option(spec->flags, i);
	/* All others are the program's. */
	const struct cmd_option *o = NULL;
	for (size_t k = 0; !i && (o = common_option(spec->flags, k)); k++)
		if (!strcmp(o->name, "help"))
			break;
	return o;
}

/* ---- nearest match --------------------------------------------------------------------------- */

static const char *next_option(const void *ctx, size_t i)
{
	const struct cmd_option *o = cmd_option_at(ctx, i);
	return o ? o->name : NULL; /* hidden ones, too: who knows them may mistype them */
}

/* ---- parsing --------------------------------------------------------------------------------- */

static const struct cmd_option *find_option(
	const struct cmd_spec *spec, const char *name, size_t length, char letter)
{
	const struct cmd_option *o;
	for (size_t i = 0; (o = cmd_option_at(spec, i)); i++)
		if (letter ? o->letter == letter
			   : strlen(o->name) == length && !strncmp(o->name, name, length))
			return o;
	return NULL;
}

static bool is_choice(const char *choices, const char *value)
{
	size_t length = strlen(value);
	for (const char *p = choices; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");
		if (n == length && !strncmp(p, value, n))
			return true;
		p += n;
	}
	return false;
}

/* The words of a list, each ended by a zero in its copy. */
struct args_words {
	char buf[512];
	const char *word[32];
	size_t nr;
};

static void args_split(struct args_words *w, const char *list)
{
	char *p = w->buf;
	snprintf(w->buf, sizeof w->buf, "%s", list);
	for (w->nr = 0; *p && w->nr < BASE_COUNT(w->word);) {
		p += strspn(p, " ");
		if (*p)
			w->word[w->nr++] = p;
		p += strcspn(p, " ");
		if (*p)
			*p++ = '\0';
	}
}

static const char *args_next_word(const void *ctx, size_t i)
{
	const struct args_words *w = ctx;
	return i < w->nr ? w->word[i] : NULL;
}

int cmd_usage_choice(struct cmd *c, const char *what, const char *value, const char *choices)
{
	struct args_words w;
	args_split(&w, choices);
	const char *near = base_nearest(value, args_next_word, &w);
	struct base_str list = {0};
	for (size_t i = 0; i < w.nr; i++)
		base_str_addf(&list, "%s%s", i ? " " : "", w.word[i]);
	if (near)
		base_str_addf(&list, "; did you mean '%s'?", near);
	cmd_usage(c, "%s: '%s' is none of: %s", what, value, base_str_text(&list));
	base_str_fini(&list);
	return CMD_USAGE;
}

static bool keep_option(struct cmd *c, const struct cmd_option *o, const char *value)
{
	if (value && o->choices && *o->choices != '@' && !is_choice(o->choices, value)) {
		struct base_str name = {0};
		base_str_addf(&name, "--%s", o->name);
		cmd_usage_choice(c, base_str_text(&name), value, o->choices);
		base_str_fini(&name);
		return false;
	}
	if (c->nr_given == CMD_GIVEN_MAX) {
		cmd_usage(c, "more than %d options", CMD_GIVEN_MAX);
		return false;
	}
	c->given[c->nr_given].option = o;
	c->given[c->nr_given++].value = value ? value : "";
	return true;
}

/* -p, --pid: a process that runs, in the commands that look at one; --process: one inside a trace. */
static bool args_wants_process(struct cmd *c, const char *word)
{
	if (strcmp(word, "-p") != 0 && strncmp(word, "--pid", strlen("--pid")) != 0)
		return false;
	if (c->spec->flags & CMD_ENDS)
		cmd_usage(c, "unknown option '%s'; a process inside a trace is --process", word);
	else if (c->spec->flags & CMD_PROGRAM)
		cmd_usage(c,
			"unknown option '%s'; at a process that runs already look 'longpole top', "
			"'spin' and 'deadlock'",
			word);
	return c->spec->flags & (CMD_ENDS | CMD_PROGRAM);
}

static bool unknown_option(struct cmd *c, const char *word, const char *name, size_t length)
{
	if (args_wants_process(c, word))
		return false;
	struct base_str s = {0};
	base_str_add_bytes(&s, name, length);
	const char *near =
		length > 1 ? base_nearest(base_str_text(&s), next_option, c->spec) : NULL;
	const char *of = c->sections && c->sections->nr > 1 ? " of these sections" : "";
	if (near)
		cmd_usage(c, "unknown option '%s'%s; did you mean --%s?", word, of, near);
	else
		cmd_usage(c, "unknown option '%s'%s", word, of);
	base_str_fini(&s);
	return false;
}

/* The option that another tool's spelling means; NULL: the word is none. An option whose value may
 * be left out has none there. */
static const struct cmd_option *find_spelling(const struct cmd_spec *spec, const char *word)
{
	const struct cmd_spelling *s = spec->details->spelling;
	for (; s && s->word; s++)
		if (!strcmp(s->word, word))
			return find_option(spec, s->option, strlen(s->option), 0);
	return NULL;
}

/* One word that begins with '-'. *i moves on when the value is the next word. */
static bool parse_option(struct cmd *c, int argc, char **argv, int *i)
{
	const char *word = argv[*i];
	bool is_long = word[1] == '-';
	const char *name = word + 1 + is_long, *value = NULL;
	size_t length = is_long ? strcspn(name, "=") : 1;
	const struct cmd_option *o = find_spelling(c->spec, word);
	if (o)
		length = strlen(name);
	else
		o = find_option(c->spec, name, length, is_long ? 0 : *name);
	if (!o)
		return unknown_option(c, word, name, is_long ? length : strlen(name));
	if (name[length])
		value = name + length + is_long;
	if (!o->value && value) {
		if (is_long)
			cmd_usage(c, "--%s takes no value", o->name);
		else
			cmd_usage(c, "'%s': give each option a word of its own", word);
		return false;
	}
	if (o->value && !value && !cmd_value_is_optional(o)) {
		if (*i + 1 >= argc) {
			cmd_usage(c, "--%s needs a value (%s)", o->name, o->value);
			return false;
		}
		value = argv[++*i];
	}
	return keep_option(c, o, value);
}

int cmd_leading_words(int argc, char **argv)
{
	static const struct cmd_details none = {.usage = ""};
	static const struct cmd_spec every = {.name = "", .details = &none};
	int n = 0;
	while (n < argc && !strncmp(argv[n], "--", 2)) {
		size_t length = strcspn(argv[n] + 2, "=");
		const struct cmd_option *o = find_option(&every, argv[n] + 2, length, 0);
		if (!o || !strcmp(o->name, "help"))
			break;
		n += o->value && !argv[n][2 + length] ? 2 : 1;
	}
	return n < argc ? n : 0;
}

/* Does this operand begin a program, whose options are not ours? */
static bool ends_options(unsigned flags, bool dashes)
{
	return flags & CMD_PROGRAM && (dashes || !(flags & CMD_DASHES));
}

bool cmd_parse(struct cmd *c, int argc, char **argv)
{
	int i = 0;
	bool options = true;
	c->operand = argv;
	c->nr_operands = 0;
	while (i < argc) {
		char *word = argv[i];
		bool dashes = !strcmp(word, "--");
		bool kept = c->spec->flags & (CMD_DASHES | CMD_OR_PROGRAM);
		if (options && dashes && !kept) {
			options = false;
			i++;
			continue;
		}
		options = options && !(dashes && c->spec->flags & CMD_OR_PROGRAM);
		bool is_option = options && word[0] == '-' && word[1] && !dashes;
		if (!is_option) {
			c->operand[c->nr_operands++] = word; /* at or before argv[i] */
			options = options && !ends_options(c->spec->flags, dashes);
		} else if (!parse_option(c, argc, argv, &i)) {
			return false;
		}
		i++;
	}
	c->operand[c->nr_operands] = NULL; /* a program's argv ends so; argv[argc] is ours too */
	const char *color = cmd_value(c, "color");
	cmd_terminal_init(&c->term, !color            ? CMD_AUTO
				    : *color == 'n'   ? CMD_NEVER
				    : color[1] == 'l' ? CMD_ALWAYS
						      : CMD_AUTO);
	if (c->spec->flags & CMD_PROGRESS) {
		const char *when = cmd_value(c, "progress");
		c->progress.when = !when            ? CMD_AUTO
				   : *when == 'n'   ? CMD_NEVER
				   : when[1] == 'l' ? CMD_ALWAYS
						    : CMD_AUTO;
	}
	return true;
}

/* ---- what was given -------------------------------------------------------------------------- */

static const struct cmd_option *promised(const struct cmd *c, const char *option)
{
	const struct cmd_option *o = find_option(c->spec, option, strlen(option), 0);
	BASE_ASSERT(o != NULL);
	return o;
}

const char *cmd_value(const struct cmd *c, const char *option)
{
	const struct cmd_option *o = promised(c, option);
	for (size_t i = c->nr_given; i-- > 0;)
		if (c->given[i].option == o)
			return c->given[i].value;
	return NULL;
}

bool cmd_given(const struct cmd *c, const char *option)
{
	return cmd_value(c, option) != NULL;
}

size_t cmd_values(const struct cmd *c, const char *option, const char **value, size_t max)
{
	const struct cmd_option *o = promised(c, option);
	size_t nr = 0;
	for (size_t i = 0; i < c->nr_given && nr < max; i++)
		if (c->given[i].option == o)
			value[nr++] = c->given[i].value;
	return nr;
}

struct unit {
	const char *name;
	double factor;
};

/* A number that is not negative, and one of these units; the table's first is for none. */
static bool parse_with_unit(
	const char *text, const struct unit *unit, size_t nr_units, uint64_t *ret)
{
	char *end;
	errno = 0;
	double n = strtod(text, &end);
	if (end == text || errno || !(n >= 0) || !isfinite(n))
		return false;
	for (size_t i = 0; i < nr_units; i++) {
		if (strcmp(end, unit[i].name) != 0)
			continue;
		n *= unit[i].factor;
		if (n >= 1.8e19)
			return false;
		*ret = (uint64_t)llround(n > 9.2e18 ? 9.2e18 : n);
		return true;
	}
	return false;
}

static bool args_parse_count(const char *text, uint64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !errno && !*end && *text >= '0' && *text <= '9';
}

bool cmd_value_is_count(const char *text)
{
	uint64_t n;
	return args_parse_count(text, &n);
}

bool cmd_value_count(struct cmd *c, const char *option, uint64_t *ret)
{
	const char *text = cmd_value(c, option);
	uint64_t n;
	if (!text)
		return true;
	if (!args_parse_count(text, &n)) {
		cmd_usage(c, "--%s: '%s' is no count", option, text);
		return false;
	}
	*ret = n;
	return true;
}

bool cmd_value_limit(struct cmd *c, size_t *ret)
{
	uint64_t limit = *ret;
	if (!cmd_value_count(c, "limit", &limit))
		return false;
	*ret = cmd_given(c, "all") ? 0 : (size_t)limit;
	return true;
}

bool cmd_value_time(struct cmd *c, const char *option, uint64_t *ret_ns)
{
	static const struct unit unit[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	const char *text = cmd_value(c, option);
	if (!text || parse_with_unit(text, unit, BASE_COUNT(unit), ret_ns))
		return true;
	cmd_usage(c, "--%s: '%s' is no time; write it like 1.5s, 20ms, 300us or 7ns", option, text);
	return false;
}

bool cmd_value_moment(struct cmd *c, const char *option, uint64_t length_ns, uint64_t *ret_ns)
{
	const char *text = cmd_value(c, option);
	size_t length = text ? strlen(text) : 0;
	if (!length || text[length - 1] != '%')
		return cmd_value_time(c, option, ret_ns);
	char *end;
	double share = strtod(text, &end) / 100;
	if (end == text || end != text + length - 1 || !(share >= 0 && share <= 1)) {
		cmd_usage(c, "--%s: '%s' is no share; write it from 0%% to 100%%", option, text);
		return false;
	}
	*ret_ns = (uint64_t)llround(share * (double)length_ns);
	return true;
}

bool cmd_value_size(struct cmd *c, const char *option, uint64_t *ret_bytes)
{
	static const struct unit unit[] = {
		{"", 1}, {"K", 1024}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 0x1p40}};
	const char *text = cmd_value(c, option);
	if (!text || parse_with_unit(text, unit, BASE_COUNT(unit), ret_bytes))
		return true;
	cmd_usage(c, "--%s: '%s' is no size; write it like 512M or 4G", option, text);
	return false;
}
