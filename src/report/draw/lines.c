/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - what texts are made of: clean names, columns, bars, percentages. */
#include "report/draw/draw.h"

#include <math.h>
#include <string.h>

enum { PLACE_MIN = 6 }; /* of a function's name, beside its file and line */

/* ---- texts of others ------------------------------------------------------------------------- */

void report_clean_add(struct base_str *out, const char *text)
{
	base_str_add_shown(out, text, strlen(text), BASE_SHOWN_NAME);
}

const char *report_clean(struct base_arena *a, const char *text)
{
	struct base_str s = {0};
	report_clean_add(&s, text);
	return report_keep(a, &s);
}

const char *report_keep(struct base_arena *a, struct base_str *s)
{
	char *copy = s->failed ? NULL : base_arena_strndup(a, base_str_text(s), s->length);
	base_str_fini(s);
	return copy;
}

void *report_array(struct base_arena *a, size_t nr, size_t elem_size_bytes)
{
	if (nr > SIZE_MAX / elem_size_bytes)
		return NULL;
	return base_arena_alloc(a, (nr ? nr : 1) * elem_size_bytes);
}

void *report_answer_new(size_t size_bytes)
{
	struct base_arena **answer = base_alloc(size_bytes);
	if (!answer)
		return NULL;
	*answer = base_arena_new(0);
	return *answer ? answer : report_answer_free(answer);
}

void *report_answer_free(void *answer)
{
	if (answer)
		base_arena_free(*(struct base_arena **)answer);
	base_free(answer);
	return NULL;
}

/* ---- columns --------------------------------------------------------------------------------- */

void report_color_begin(struct base_str *out, const struct report_style *st, enum report_color c)
{
	static const char *const code[] = {
		"", "\033[1m", "\033[2m", "\033[31m", "\033[33m", "\033[32m"};
	if (st->color)
		base_str_add(out, code[c]);
}

void report_color_end(struct base_str *out, const struct report_style *st)
{
	if (st->color)
		base_str_add(out, "\033[0m");
}

void report_heading(struct base_str *out, const struct report_style *st, const char *text)
{
	report_color_begin(out, st, REPORT_BOLD);
	base_str_add(out, text);
	report_color_end(out, st);
}

/* Bytes of the first `width` code points. */
static size_t lines_bytes_of(const char *text, size_t width)
{
	size_t i = 0;
	while (text[i]) {
		if (((unsigned char)text[i] & 0xc0) != 0x80 && !width--)
			break;
		i++;
	}
	return i;
}

void report_cut(struct base_str *out, const struct report_style *st, const char *text, size_t width)
{
	size_t more = report_width(report_more(st));
	if (report_width(text) <= width) {
		base_str_add(out, text);
		return;
	}
	base_str_add_bytes(out, text, lines_bytes_of(text, width > more ? width - more : 0));
	base_str_add(out, report_more(st));
}

void report_cell(struct base_str *out, const struct report_style *st, const char *text,
	size_t width, bool pad)
{
	struct base_str shorter = {0};
	const char *more = report_more(st);
	report_add_elided(&shorter, text, width, more);
	text = base_str_text(&shorter);
	size_t have = report_width(text);
	if (have <= width) {
		base_str_add(out, text);
		if (pad)
			base_str_add_blanks(out, width - have);
	} else {
		size_t more_width = st->utf8 ? 1 : 2;
		base_str_add_bytes(out, text,
			lines_bytes_of(text, width > more_width ? width - more_width : 0));
		base_str_add(out, more);
	}
	base_str_fini(&shorter);
}

/* `tail` is the end of `text`: what is cut off comes before it. */
static void cell_with_tail(struct base_str *out, const struct report_style *st, const char *text,
	const char *tail, size_t width)
{
	size_t tail_width = report_width(tail);
	if (report_width(text) <= width || tail_width + PLACE_MIN > width) {
		report_cell(out, st, text, width, true);
		return;
	}
	struct base_str head = {0};
	base_str_add_bytes(&head, text, (size_t)(tail - text));
	report_cell(out, st, base_str_text(&head), width - tail_width, true);
	base_str_add(out, tail);
	base_str_fini(&head);
}

void report_place_cell(
	struct base_str *out, const struct report_style *st, const char *text, size_t width)
{
	const char *line = text + strlen(text);
	for (const char *p = strstr(text, " ("); p; p = strstr(p + 1, " ("))
		line = p;
	cell_with_tail(out, st, text, line, width);
}

void report_members_cell(struct base_str *out, const struct report_style *st, const char *name,
	uint64_t nr, size_t width)
{
	struct base_str text = {0};
	base_str_add(&text, name);
	if (nr > 1)
		base_str_addf(&text, " %s%llu", report_times(st), (unsigned long long)nr);
	const char *whole = base_str_text(&text);
	cell_with_tail(out, st, whole, whole + (nr > 1 ? strlen(name) : strlen(whole)), width);
	base_str_fini(&text);
}

void report_bar(struct base_str *out, const struct report_style *st, double share, unsigned width)
{
	static const char *const eighth[] = {"", "\xe2\x96\x8f", "\xe2\x96\x8e", "\xe2\x96\x8d",
		"\xe2\x96\x8c", "\xe2\x96\x8b", "\xe2\x96\x8a", "\xe2\x96\x89"};
	double clipped = share < 0 ? 0 : share > 1 ? 1 : share;
	unsigned steps = (unsigned)lround(clipped * width * (st->utf8 ? 8 : 1));
	unsigned whole = st->utf8 ? steps / 8 : steps, rest = st->utf8 ? steps % 8 : 0;
	for (unsigned i = 0; i < whole; i++)
		base_str_add(out, st->utf8 ? "\xe2\x96\x88" : "#");
	base_str_add(out, eighth[rest]);
	base_str_add_blanks(out, width - whole - (rest ? 1 : 0));
}

void report_ns(struct base_str *out, double ns)
{
	base_str_add_ns(out, ns > 0 ? (uint64_t)llround(ns) : 0);
}

const char *report_times(const struct report_style *st)
{
	return st->utf8 ? "\xc3\x97" : "x";
}

void report_speedup(struct base_str *out, const struct report_style *st, double speedup)
{
	if (speedup < 1000)
		base_str_addf(out, "%.2f%s", speedup, report_times(st));
	else
		base_str_addf(out, ">999%s", report_times(st));
}

const char *report_more(const struct report_style *st)
{
	return st->utf8 ? "\xe2\x80\xa6" : "..";
}

const char *report_arrow(const struct report_style *st)
{
	return st->utf8 ? "\xe2\x86\x92" : "->";
}

const char *report_dot(const struct report_style *st)
{
	return st->utf8 ? " \xc2\xb7 " : " | ";
}

/* Of the first word of `text`; a number and its unit are one. */
static size_t word_length(const char *text)
{
	static const char *const UNITS[] = {
		"%", "ns", "us", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB"};
	size_t length = strcspn(text, " ");
	if (!length || text[length] != ' ' || text[length - 1] < '0' || text[length - 1] > '9')
		return length;
	const char *next = text + length + 1;
	size_t room = strcspn(next, " "), nr = strcspn(next, " ,.;:)");
	for (size_t i = 0; i < BASE_COUNT(UNITS); i++)
		if (nr == strlen(UNITS[i]) && !strncmp(next, UNITS[i], nr))
			return length + 1 + room;
	return length;
}

void report_wrap(struct base_str *out, const struct report_style *st, const char *label,
	size_t indent, const char *text)
{
	size_t at = report_width(label);
	report_color_begin(out, st, REPORT_BOLD);
	base_str_add(out, label);
	report_color_end(out, st);
	base_str_add_blanks(out, at < indent ? indent - at : 0);
	at = at < indent ? indent : at;
	bool first = true;
	while (*text) {
		size_t length = word_length(text);
		struct base_str word = {0};
		base_str_add_bytes(&word, text, length);
		size_t width = report_width(base_str_text(&word));
		if (!first && at + 1 + width > st->columns) {
			base_str_add(out, "\n");
			base_str_add_blanks(out, indent);
			at = indent;
		} else if (!first) {
			base_str_add(out, " ");
			at++;
		}
		base_str_add(out, base_str_text(&word));
		at += width;
		first = false;
		base_str_fini(&word);
		text += length;
		while (*text == ' ')
			text++;
	}
	base_str_add(out, "\n");
}

/* ---- sentences in lines of their own ---------------------------------------------------------- */

/* Columns have two blanks between them, a sentence has not; what has colours was laid out already.
 * A command stays whole: it is copied. */
static bool lines_is_prose(const char *line)
{
	return !strstr(line, "  ") && !strchr(line, '\033') &&
	       strncmp(line, "longpole ", strlen("longpole ")) != 0;
}

/* "  " of "  a sentence", "CAVEAT  " of "CAVEAT  a sentence" */
static size_t lines_label_length(const char *line)
{
	size_t length = strspn(line, " "), word = strcspn(line + length, " ");
	size_t blanks = strspn(line + length + word, " ");
	return blanks > 1 ? length + word + blanks : length;
}

void report_fold(struct base_str *text, const struct report_style *st)
{
	struct base_str out = {0}, line = {0};
	for (const char *at = base_str_text(text); *at;) {
		size_t length = strcspn(at, "\n"), label = 0;
		base_str_reset(&line);
		base_str_add_bytes(&line, at, length);
		label = lines_label_length(base_str_text(&line));
		const char *sentence = base_str_text(&line) + label;
		at += length + (at[length] == '\n');
		if (report_width(base_str_text(&line)) <= st->columns ||
			!lines_is_prose(sentence)) {
			base_str_addf(
				&out, "%s%s", base_str_text(&line), at[-1] == '\n' ? "\n" : "");
			continue;
		}
		struct base_str head = {0};
		base_str_add_bytes(&head, base_str_text(&line), label);
		report_wrap(&out, &(struct report_style){.columns = st->columns},
			base_str_text(&head), label, sentence);
		base_str_fini(&head);
	}
	out.failed |= text->failed || line.failed;
	base_str_fini(&line);
	base_str_fini(text);
	*text = out;
}
