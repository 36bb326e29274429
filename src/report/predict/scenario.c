/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scenario.c - the edit grammar of `longpole whatif`.
 *
 *	#2=AMOUNT               as scale '#2'=AMOUNT: what a report numbers so
 *	scale STATE=AMOUNT      AMOUNT: -50% (shorter), +20% (longer), x0.5 (times)
 *	remove STATE            as scale STATE=-100%
 *	balance STATE           all ranks (threads, without MPI) take the mean of what they spend in it
 *	elide STATE             remove, and what is waited for in it holds nobody
 *	ignore-queue QUEUE      nobody waits on it
 *	unbound-queue QUEUE     it is never full
 *	resize-queue QUEUE=+N   N units more: of its capacity, or tokens
 *	add-processors +N       (replay only)
 *	link-rate LINK=AMOUNT   of the rate: x10 (ten times as fast), +50%
 *	link-latency LINK=AMOUNT (LINK: MPI, or an annotated link; of MPI faster ones only)
 *
 * STATE and QUEUE are patterns: a substring, or a glob when there is one of * ? [ in it.
 */
#include "report/predict/predictor.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *word;
	enum report_edit_verb verb;
	enum { NO_AMOUNT, A_FACTOR, A_RATE, A_NUMBER, ONLY_A_NUMBER } amount;
} verb_table[] = {
	{"scale", REPORT_EDIT_scale, A_FACTOR},
	{"remove", REPORT_EDIT_scale, NO_AMOUNT},
	{"balance", REPORT_EDIT_balance, NO_AMOUNT},
	{"elide", REPORT_EDIT_elide, NO_AMOUNT},
	{"ignore-queue", REPORT_EDIT_ignore_queue, NO_AMOUNT},
	{"unbound-queue", REPORT_EDIT_unbound_queue, NO_AMOUNT},
	{"resize-queue", REPORT_EDIT_resize_queue, A_NUMBER},
	{"add-processors", REPORT_EDIT_add_processors, ONLY_A_NUMBER},
	{"link-rate", REPORT_EDIT_link_rate, A_RATE},
	{"link-latency", REPORT_EDIT_link_latency, A_FACTOR},
};
#define VERBS_TEXT                                                                                 \
	"scale, remove, balance, elide, ignore-queue, unbound-queue, resize-queue, "               \
	"add-processors, "                                                                         \
	"link-rate, "                                                                              \
	"link-latency"
/* By enum amount: how an edit is written. */
static const char *const amount_text[] = {
	"'NAME'", "'NAME'=-50% (or +20%, x0.5)", "'LINK'=x10 (or +20%, -50%)", "'QUEUE'=+1", "+1"};

static int find_verb(const char *word)
{
	for (size_t i = 0; i < BASE_COUNT(verb_table); i++)
		if (!strcmp(word, verb_table[i].word))
			return (int)i;
	return -1;
}

/* "#2=-50%": an edit that needs no verb. */
static bool scenario_is_numbered(const char *word)
{
	size_t nr = *word == '#' ? strspn(word + 1, "0123456789") : 0;
	return nr && word[1 + nr] == '=';
}

bool report_begins_edit(const char *word)
{
	return find_verb(word) >= 0 || scenario_is_numbered(word);
}

bool report_pattern_matches(const char *pattern, const char *text)
{
	if (strpbrk(pattern, "*?["))
		return fnmatch(pattern, text, 0) == 0;
	return strstr(text, pattern) != NULL;
}

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

bool report_pattern_matches_word(const char *pattern, const char *text)
{
	size_t length = strlen(pattern);
	if (strpbrk(pattern, "*?["))
		return report_pattern_matches(pattern, text);
	for (const char *at = strstr(text, pattern); length && at; at = strstr(at + 1, pattern)) {
		bool begins = at == text || !is_of_word(at[-1]) || !is_of_word(*at);
		bool ends = !is_of_word(at[length]) || !is_of_word(at[length - 1]);
		if (begins && ends)
			return true;
	}
	return false;
}

/* "-50%" -> 0.5, "+20%" -> 1.2, "x2" -> 2. */
static bool parse_amount(const char *text, double *ret_factor)
{
	char *end;
	errno = 0;
	double n = strtod(*text == 'x' ? text + 1 : text, &end);
	bool percent = *text != 'x' && (*text == '-' || *text == '+') && *end == '%' && !end[1];
	bool times = *text == 'x' && text[1] && !*end;
	if (errno || (!percent && !times) || !isfinite(n))
		return false;
	double factor = percent ? 1 + n / 100 : n;
	if (factor < 0 || factor > 1e6)
		return false;
	*ret_factor = factor;
	return true;
}

/* "+3" -> 3 */
static bool parse_number(const char *text, uint64_t *ret)
{
	char *end;
	if (text[0] != '+' || text[1] < '0' || text[1] > '9')
		return false;
	errno = 0;
	*ret = strtoull(text + 1, &end, 10);
	return !errno && !*end && *ret;
}

static bool scenario_parse(size_t verb, const char *text, struct report_edit *e)
{
	bool rate = verb_table[verb].amount == A_RATE;
	if (!rate && verb_table[verb].amount != A_FACTOR)
		return parse_number(text, &e->units);
	if (!parse_amount(text, &e->factor) || (rate && e->factor <= 0))
		return false;
	if (rate) /* what it transmits takes so much less time */
		e->factor = 1 / e->factor;
	return true;
}

static enum base_status start_scenario(struct report_scenarios *s, struct base_err *err)
{
	if (!s->arena && !(s->arena = base_arena_new(0)))
		return report_no_memory(err);
	if (s->nr == REPORT_SCENARIOS_MAX)
		return base_fail(err, BASE_ERR_USAGE,
			"more than %d scenarios: split them over two runs", REPORT_SCENARIOS_MAX);
	if (base_grow(&s->scenario, &s->capacity, s->nr + 1, sizeof *s->scenario) != BASE_OK)
		return report_no_memory(err);
	s->scenario[s->nr++] = (struct report_scenario){
		.edit = report_array(s->arena, REPORT_EDITS_MAX, sizeof(struct report_edit))};
	return s->scenario[s->nr - 1].edit ? BASE_OK : report_no_memory(err);
}

/* verb: index into verb_table; argument: the word after it. */
static enum base_status add_edit(struct report_scenarios *s, size_t verb, const char *argument,
	const char *place, struct base_err *err)
{
	struct report_scenario *sc = &s->scenario[s->nr - 1];
	struct report_edit e = {.verb = verb_table[verb].verb};
	bool alone = verb_table[verb].amount == ONLY_A_NUMBER;
	const char *equals = verb_table[verb].amount && !alone ? strrchr(argument, '=') : NULL;
	const char *amount = alone ? argument : equals ? equals + 1 : "";
	if (verb_table[verb].amount && !scenario_parse(verb, amount, &e))
		return base_fail(err, BASE_ERR_USAGE,
			"%s'%s %s': the amount is missing or wrong; write %s %s", place,
			verb_table[verb].word, argument, verb_table[verb].word,
			amount_text[verb_table[verb].amount]);
	size_t length = equals ? (size_t)(equals - argument) : strlen(argument);
	if (!length)
		return base_fail(err, BASE_ERR_USAGE, "%s'%s': the pattern is empty", place,
			verb_table[verb].word);
	if (sc->nr_edits == REPORT_EDITS_MAX)
		return base_fail(err, BASE_ERR_USAGE, "%sa scenario has at most %d edits", place,
			REPORT_EDITS_MAX);
	struct base_str text = {0};
	base_str_addf(&text, "%s '%.*s'%s", verb_table[verb].word, (int)length, argument,
		equals ? equals : "");
	e.pattern = base_arena_strndup(s->arena, argument, length);
	e.text = report_keep(s->arena, &text);
	if (!e.pattern || !e.text)
		return report_no_memory(err);
	sc->edit[sc->nr_edits++] = e;
	return BASE_OK;
}

enum base_status report_scenarios_words(
	struct report_scenarios *s, char *const *word, size_t nr, struct base_err *err)
{
	bool open = false;
	for (size_t i = 0; i < nr; i++) {
		if (!strcmp(word[i], "--")) {
			open = false;
			continue;
		}
		bool numbered = scenario_is_numbered(word[i]);
		int verb = find_verb(numbered ? "scale" : word[i]);
		if (verb < 0)
			return base_fail(err, BASE_ERR_USAGE,
				"'%s' is no edit; edits are " VERBS_TEXT, word[i]);
		i += !numbered;
		if (i == nr || !strcmp(word[i], "--"))
			return base_fail(
				err, BASE_ERR_USAGE, "'%s' needs what it applies to", word[i - 1]);
		enum base_status st = open ? BASE_OK : start_scenario(s, err);
		if (st == BASE_OK)
			st = add_edit(s, (size_t)verb, word[i], "", err);
		if (st != BASE_OK)
			return st;
		open = true;
	}
	return BASE_OK;
}

/* The next word of a line, quotes taken off; NULL: none, or a quote is open (then *ret_open). */
static const char *scenario_next_word(const char **at, struct base_str *word, bool *ret_open)
{
	const char *p = *at + strspn(*at, " \t\r");
	char quote = 0;
	base_str_reset(word);
	if (!*p || (*p == '#' && !scenario_is_numbered(p)))
		return NULL;
	for (; *p && (quote || !strchr(" \t\r", *p)); p++) {
		if (quote ? *p == quote : *p == '\'' || *p == '"')
			quote = quote ? 0 : *p;
		else
			base_str_add_bytes(word, p, 1);
	}
	*at = p;
	*ret_open = quote != 0;
	return quote ? NULL : base_str_text(word);
}

static enum base_status scenario_add_line(struct report_scenarios *s, const char *line, bool *open,
	const char *place, struct base_err *err)
{
	struct base_str first = {0}, second = {0}, more = {0};
	bool unclosed = false;
	enum base_status st = BASE_OK;
	const char *at = line, *verb_word = scenario_next_word(&at, &first, &unclosed),
		   *argument = NULL;
	bool numbered = verb_word && scenario_is_numbered(verb_word);
	int verb = verb_word ? find_verb(numbered ? "scale" : verb_word) : -1;
	if (numbered)
		argument = verb_word;
	else if (verb_word)
		argument = scenario_next_word(&at, &second, &unclosed);
	bool extra = argument && scenario_next_word(&at, &more, &unclosed);
	if (first.failed || second.failed || more.failed)
		st = base_fail(err, BASE_ERR_NOMEM, "%sno memory for its words", place);
	else if (unclosed)
		st = base_fail(err, BASE_ERR_USAGE, "%sa quote is not closed", place);
	else if (!verb_word)
		*open = *open &&
			strspn(line, " \t\r") != strlen(line); /* a comment does not separate */
	else if (verb < 0)
		st = base_fail(err, BASE_ERR_USAGE, "%s'%s' is no edit; edits are " VERBS_TEXT,
			place, verb_word);
	else if (!argument || extra)
		st = base_fail(err, BASE_ERR_USAGE,
			"%s'%s' needs one pattern (put quotes around it when it has blanks)", place,
			verb_word);
	else {
		st = *open ? BASE_OK : start_scenario(s, err);
		if (st == BASE_OK)
			st = add_edit(s, (size_t)verb, argument, place, err);
		*open = true;
	}
	base_str_fini(&first);
	base_str_fini(&second);
	base_str_fini(&more);
	return st;
}

enum base_status report_scenarios_text(
	struct report_scenarios *s, const char *text, const char *path, struct base_err *err)
{
	bool open = false;
	unsigned number = 0;
	enum base_status st = BASE_OK;
	struct base_str line = {0}, place = {0};
	while (st == BASE_OK && *text) {
		size_t length = strcspn(text, "\n");
		base_str_reset(&line);
		base_str_reset(&place);
		base_str_add_bytes(&line, text, length);
		base_str_addf(&place, "%s:%u: ", path, ++number);
		st = line.failed || place.failed ? report_no_memory(err)
						 : scenario_add_line(s, base_str_text(&line), &open,
							   base_str_text(&place), err);
		text += length + (text[length] == '\n');
	}
	base_str_fini(&line);
	base_str_fini(&place);
	return st;
}

void report_scenarios_fini(struct report_scenarios *s)
{
	base_free(s->scenario);
	base_arena_free(s->arena);
	*s = (struct report_scenarios){0};
}
