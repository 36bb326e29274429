/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short.c - what one calls a function whose whole name is long. C++'s and Rust's names are folded
 * from the inside: arguments of templates, parameters, what the languages add. Functions that only
 * call what they are given (plumbing.def) are called after that, where their name has it.
 *
 * Names come from files: loops are bounded, nothing recurs.
 */
#include "symbol/symbol.h"

#include <ctype.h>
#include <string.h>

enum { UNWRAPS_MAX = 8, SELVES_MAX = 8, ARGUMENTS_MAX = 16, NONE = -1 };
enum { TEXT_BYTES_MAX = 16384 }; /* longer ones stay: brackets are looked for again and again */

struct text { /* a piece of a name */
	const char *at, *end;
};
struct plumbing {
	const char *head, *method;
	int callable;
};
static const struct plumbing plumbing_row[] = {
#define PLUMBING(head, method, callable) {head, method, callable},
#include "symbol/plumbing.def"
};

static size_t nr_bytes(struct text t)
{
	return (size_t)(t.end - t.at);
}

static bool text_begins(struct text t, const char *with)
{
	size_t n = strlen(with);
	return nr_bytes(t) >= n && !memcmp(t.at, with, n);
}

static bool text_is(struct text t, const char *what)
{
	return nr_bytes(t) == strlen(what) && text_begins(t, what);
}

static void cut_back(struct base_str *out, size_t length)
{
	if (out->length <= length)
		return;
	out->length = length;
	out->buf[length] = '\0';
}

static bool short_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* ---- brackets -------------------------------------------------------------------------------- */

/* Bytes of "operator<<", "operator()", "operator->" and their kin at `p`; 0: none is there. */
static size_t operator_length(struct text t, const char *p)
{
	static const char word[] = "operator";
	/* what begins as another does comes before it; "operator< <int>" is a template's */
	static const char *const sign[] = {
		"()", "[]", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">"};
	struct text rest = {p, t.end};
	size_t n = sizeof word - 1;
	if (!text_begins(rest, word) || (p > t.at && short_is_word(p[-1])))
		return 0;
	rest.at += n;
	for (size_t i = 0; i < BASE_COUNT(sign); i++)
		if (text_begins(rest, sign[i]))
			return n + strlen(sign[i]);
	return 0; /* of others no sign is a bracket */
}

/* Behind the bracket that closes the one at `p`; NULL: none does. */
static const char *behind_brackets(struct text t, const char *p)
{
	size_t depth = 0;
	while (p < t.end) {
		size_t skip = operator_length(t, p);
		if (skip) {
			p += skip;
			continue;
		}
		bool arrow = *p == '>' && p > t.at && p[-1] == '-';
		if (strchr("<({[", *p))
			depth++;
		else if (strchr(">)}]", *p) && !arrow && depth && !--depth)
			return p + 1;
		p++;
	}
	return NULL;
}

/* Does each have its end? Where not, looking for it again and again would take long. */
static bool is_balanced(struct text t)
{
	for (const char *p = t.at; p < t.end;) {
		size_t skip = operator_length(t, p);
		const char *behind = NULL;
		if (!skip && strchr("<({[", *p) && !(behind = behind_brackets(t, p)))
			return false;
		p = behind ? behind : p + (skip ? skip : 1);
	}
	return true;
}

/* One step over what is at `p`: brackets with all that is in them, operators, a character. */
static const char *bracket_step(struct text t, const char *p)
{
	size_t skip = operator_length(t, p);
	if (skip)
		return p + skip;
	const char *behind = strchr("<({[", *p) ? behind_brackets(t, p) : NULL;
	return behind ? behind : p + 1;
}

/* The first `what` outside of brackets; NULL: there is none. */
static const char *find_outside(struct text t, const char *what)
{
	for (const char *p = t.at; p < t.end; p = bracket_step(t, p))
		if (text_begins((struct text){p, t.end}, what))
			return p;
	return NULL;
}

static struct text trimmed(struct text t)
{
	while (t.at < t.end && *t.at == ' ')
		t.at++;
	while (t.at < t.end && t.end[-1] == ' ')
		t.end--;
	return t;
}

/* What brackets hold, by commas. Returns how many; beyond the last that fits they count as it. */
static size_t arguments_of(struct text inside, struct text ret[static ARGUMENTS_MAX])
{
	size_t nr = 0;
	const char *from = inside.at, *p = inside.at;
	while (p < inside.end) {
		if (*p == ',' && nr + 1 < ARGUMENTS_MAX) {
			ret[nr++] = trimmed((struct text){from, p});
			from = p + 1;
		}
		p = bracket_step(inside, p);
	}
	ret[nr] = trimmed((struct text){from, inside.end});
	return nr + 1;
}

/* ---- what is at a name's end ----------------------------------------------------------------- */

static bool cut_ending(struct text *t, const char *ending)
{
	size_t n = strlen(ending);
	if (nr_bytes(*t) <= n || memcmp(t->end - n, ending, n) != 0)
		return false;
	t->end -= n;
	return true;
}

/* "f(int) const [clone .isra.0]": what compilers and qualifiers add, and the parameters. */
static struct text without_end(struct text t)
{
	static const char *const mark[] = {
		" [clone", ".cold", ".part.", ".isra.", ".constprop.", ".llvm.", ".lto_priv."};
	static const char *const ending[] = {" const", " volatile", "&", " "};
	for (size_t i = 0; i < BASE_COUNT(mark); i++) {
		const char *p = find_outside(t, mark[i]);
		if (p && p > t.at)
			t.end = p;
	}
	for (size_t i = 0; i < BASE_COUNT(ending);)
		i = cut_ending(&t, ending[i]) ? 0 : i + 1;
	return t;
}

/* Functions that templates make are said with what they return. */
static struct text without_result(struct text t)
{
	if (t.at == t.end || t.end[-1] != ')' || !memchr(t.at, '<', nr_bytes(t)))
		return t;
	struct text name = t;
	for (const char *p = t.at; p < t.end; p = bracket_step(t, p)) {
		if (text_begins((struct text){p, t.end}, "operator") &&
			(p == t.at || !short_is_word(p[-1])))
			break;
		if (*p == ' ' && p + 1 < t.end && p[1] != '(')
			name.at = p + 1;
	}
	return name;
}

/* ---- plumbing -------------------------------------------------------------------------------- */

/* Does what follows the head's brackets say the row's method? */
static bool calls_by(const struct plumbing *row, struct text rest)
{
	if (!strcmp(row->method, "*"))
		return true;
	if (!*row->method)
		return rest.at == rest.end || *rest.at == '(' || *rest.at == ' ' || *rest.at == '@';
	if (!text_begins(rest, "::"))
		return false;
	rest.at += 2;
	if (!text_begins(rest, row->method))
		return false;
	rest.at += strlen(row->method);
	return rest.at == rest.end || !short_is_word(*rest.at);
}

/* Is it of the row? of_type: the name is a type's, whatever it is called by. */
static bool is_of_row(const struct plumbing *row, struct text name, bool of_type)
{
	if (!text_begins(name, row->head))
		return false;
	size_t n = strlen(row->head);
	bool opens = row->head[n - 1] == '<';
	if (of_type)
		return opens && row->callable != NONE;
	struct text rest = {name.at + n, name.end};
	if (*row->head == '<')
		rest.at = behind_brackets(name, name.at);
	else if (opens)
		rest.at = behind_brackets(name, name.at + n - 1);
	return rest.at && calls_by(row, rest);
}

static const struct plumbing *plumbing_of(struct text name, bool of_type)
{
	for (size_t i = 0; i < BASE_COUNT(plumbing_row); i++)
		if (is_of_row(&plumbing_row[i], name, of_type))
			return &plumbing_row[i];
	return NULL;
}

/* A type that is called, as a name: "F (int)" is F; a pointer to functions names none. */
static bool callable_name(struct text *t)
{
	const char *space = find_outside(*t, " (");
	if (space && behind_brackets(*t, space + 1) == t->end)
		t->end = space;
	*t = without_end(*t);
	while (cut_ending(t, "*"))
		*t = without_end(*t);
	return t->at < t->end && !find_outside(*t, " ") && (short_is_word(*t->at) || *t->at == '<');
}

/* What the plumbing calls in the end; the name itself when that is not known, or it is none. */
static struct text called_by(struct text name, bool of_type)
{
	struct text now = name, known = name;
	for (unsigned i = 0; i < UNWRAPS_MAX; i++) {
		const struct plumbing *row = plumbing_of(now, i > 0 || of_type);
		if (!row)
			return now;
		if (row->callable == NONE)
			return known;
		const char *opens = now.at + strlen(row->head) - 1;
		const char *behind = behind_brackets(now, opens);
		struct text argument[ARGUMENTS_MAX];
		if (!behind || (size_t)row->callable >=
				       arguments_of((struct text){opens + 1, behind - 1}, argument))
			return known;
		now = argument[row->callable];
		if (!callable_name(&now))
			return known;
	}
	return known;
}

/* ---- arguments of templates ------------------------------------------------------------------ */

/* What nobody writes: it is so unless something else is said. */
static bool is_default(struct text argument)
{
	static const char *const type[] = {"std::allocator<", "std::char_traits<", "std::less<",
		"std::hash<", "std::equal_to<", "std::default_delete<", "std::__1::allocator<",
		"std::__1::char_traits<", "std::__1::less<", "std::__1::default_delete<",
		"alloc::alloc::Global", "std::hash::random::RandomState"};
	for (size_t i = 0; i < BASE_COUNT(type); i++)
		if (text_begins(argument, type[i]))
			return true;
	return false;
}

/* "int, long" as it is when it is short; else `more`. */
static void short_add_arguments(struct base_str *out, struct text inside, const char *more)
{
	enum { PLAIN_BYTES = 16 };
	struct text argument[ARGUMENTS_MAX];
	size_t nr = arguments_of(inside, argument), bytes = 0, nr_kept = 0;
	bool plain = true;
	for (size_t i = 0; i < nr; i++) {
		if (i && is_default(argument[i]))
			continue;
		for (const char *p = argument[i].at; p < argument[i].end; p++)
			plain &= !strchr("<({[", *p);
		bytes += nr_bytes(argument[i]) + 2;
		argument[nr_kept++] = argument[i];
	}
	plain &= bytes <= PLAIN_BYTES + 2;
	base_str_add(out, "<");
	for (size_t i = 0; plain && i < nr_kept; i++) {
		base_str_add(out, i ? ", " : "");
		base_str_add_bytes(out, argument[i].at, nr_bytes(argument[i]));
	}
	base_str_add(out, plain ? ">" : more);
	base_str_add(out, plain ? "" : ">");
}

/* ---- parts between "::" ---------------------------------------------------------------------- */

struct shortener {
	struct base_str *out;
	const char *more, *lambda;
	size_t begin;      /* of the name in `out` */
	bool after_lambda; /* the part before was one */
};

/* "{lambda(int)#2}", "{closure#1}" (from 0), "{{closure}}", clang's "$_1": which of its function's,
 * from 1; 0: it is no lambda. */
static unsigned long lambda_number(struct text part)
{
	unsigned long number = 0;
	bool from_0 = true;
	if (text_begins(part, "{lambda("))
		from_0 = false;
	else if (!text_begins(part, "{closure") && !text_begins(part, "{{closure") &&
		 !text_begins(part, "$_"))
		return 0;
	const char *p = part.end;
	while (p > part.at && !isdigit((unsigned char)p[-1]))
		p--;
	while (p > part.at && isdigit((unsigned char)p[-1]))
		p--;
	for (; p < part.end && isdigit((unsigned char)*p) && number < 1000000; p++)
		number = number * 10 + (unsigned long)(*p - '0');
	number += from_0;
	return number ? number : 1;
}

/* Is it nothing that one would say? */
static bool is_silent(const struct shortener *s, struct text part)
{
	static const char *const silent[] = {"(anonymous namespace)", "__cxx11", "__1", "_V2",
		"__ndk1", "{{vtable.shim}}", "{{impl}}", "_GLOBAL__N_1"};
	for (size_t i = 0; i < BASE_COUNT(silent); i++)
		if (text_is(part, silent[i]))
			return true;
	return text_begins(part, "{shim:") || text_begins(part, "{impl#") ||
	       (s->after_lambda && text_begins(part, "operator()"));
}

static void short_add_separator(const struct shortener *s)
{
	if (s->out->length > s->begin)
		base_str_add(s->out, "::");
}

static void short_add_lambda(struct shortener *s, unsigned long number)
{
	short_add_separator(s);
	base_str_add(s->out, s->lambda);
	if (number > 1)
		base_str_addf(s->out, "#%lu", number);
}

/* A part with its brackets folded: "submit<F>(F&&)" is "submit<..>". */
static void short_add_word(struct shortener *s, struct text part)
{
	static const char string[] = "basic_string<char, ";
	if (text_begins(part, string)) {
		short_add_separator(s);
		base_str_add(s->out, "string");
		return;
	}
	if (*part.at != '<')
		short_add_separator(s);
	for (const char *p = part.at; p < part.end;) {
		const char *next = bracket_step(part, p);
		bool brackets = next > p + 1 && !operator_length(part, p);
		if (brackets && *p == '<')
			short_add_arguments(s->out, (struct text){p + 1, next - 1}, s->more);
		else if (text_begins((struct text){p, part.end}, "[abi:"))
			;
		else if (!brackets || *p != '(' || p == part.at || p[-1] == '.' || p[-1] == ' ')
			base_str_add_bytes(s->out, p, (size_t)(next - p));
		p = next;
	}
}

/* "<T as Trait>", "<T>", "<impl Trait for T>": T. calls_it: the trait is that of what is called. */
static struct text self_of(struct text part, bool *ret_calls_it)
{
	struct text self = {part.at + 1, part.end - 1};
	const char *as = find_outside(self, " as "), *of = find_outside(self, " for ");
	if (as) {
		*ret_calls_it =
			text_begins((struct text){as + 4, self.end}, "core::ops::function::Fn");
		self.end = as;
	} else if (of && text_begins(self, "impl ")) {
		self.at = of + 5;
	}
	return self;
}

/* References, slices, tuples: types without a name. */
static void short_add_nameless(struct shortener *s, struct text self)
{
	enum { PLAIN_BYTES = 16 };
	short_add_separator(s);
	base_str_add(s->out, "<");
	if (nr_bytes(self) > PLAIN_BYTES)
		base_str_add(s->out, s->more);
	else
		base_str_add_bytes(s->out, self.at, nr_bytes(self));
	base_str_add(s->out, ">");
}

static bool is_self(const struct shortener *s, struct text part)
{
	return nr_bytes(part) > 2 && *part.at == '<' && part.end[-1] == '>' &&
	       (s->out->length == s->begin || text_begins(part, "<impl "));
}

/* The next part of a name, which is taken off. */
static struct text part_of(struct text *rest)
{
	struct text part = *rest;
	const char *colons = find_outside(*rest, "::");
	if (colons)
		part.end = colons;
	rest->at = colons ? colons + 2 : rest->end;
	return part;
}

static void short_add_parts(struct shortener *s, struct text name)
{
	struct text waiting[SELVES_MAX]; /* what follows a self */
	size_t nr = 0;
	for (;;) {
		while (name.at < name.end) {
			bool calls_it = false;
			struct text part = part_of(&name);
			unsigned long number = lambda_number(part);
			if (part.at == part.end || is_silent(s, part))
				continue;
			if (name.at < name.end && is_self(s, part) && nr < SELVES_MAX) {
				struct text self = self_of(part, &calls_it);
				if (text_begins(part, "<impl "))
					cut_back(s->out, s->begin);
				waiting[nr++] = calls_it ? (struct text){name.end, name.end} : name;
				name = self;
				if (!short_is_word(*self.at) && *self.at != '<' &&
					*self.at != '{') {
					short_add_nameless(s, self);
					name.at = name.end;
				}
			} else if (number) {
				short_add_lambda(s, number);
			} else {
				short_add_word(s, part);
			}
			s->after_lambda = number != 0;
		}
		if (!nr)
			return;
		name = waiting[--nr];
	}
}

/* "void (Job::*)(int)", as a thread's function: Job::*; a library's own class is what it calls. */
static struct text method_of(struct text t)
{
	const char *opens = find_outside(t, " ("), *behind;
	if (!opens || !(behind = behind_brackets(t, opens + 1)))
		return t;
	struct text member = {opens + 2, behind - 1}, of = member;
	if (!cut_ending(&of, "::*"))
		return t;
	struct text called = called_by(of, true);
	return called.at == of.at ? member : called;
}

static void short_add_text(struct base_str *out, struct text whole, bool utf8)
{
	struct shortener s = {.out = out,
		.more = utf8 ? "\xe2\x80\xa6" : "..",
		.lambda = utf8 ? "\xce\xbb" : "lambda",
		.begin = out->length};
	struct text t = called_by(without_result(without_end(method_of(whole))), false);
	const char *operator_ = find_outside(t, "operator"), *space = find_outside(t, " ");
	if (!space || (operator_ && operator_ < space))
		short_add_parts(&s, t);
	if (out->length == s.begin)
		base_str_add_bytes(out, whole.at, nr_bytes(whole));
}

static bool may_be_name(struct text t)
{
	return nr_bytes(t) <= TEXT_BYTES_MAX && is_balanced(t);
}

void symbol_short_add(struct base_str *out, const char *name, bool utf8)
{
	struct text whole = {name, name + strlen(name)};
	if (may_be_name(whole))
		short_add_text(out, whole, utf8);
	else
		base_str_add(out, name);
}

bool symbol_is_plumbing(const char *name)
{
	struct text whole = {name, name + strlen(name)};
	return may_be_name(whole) && plumbing_of(without_result(without_end(whole)), false);
}

const char *symbol_start_words(const char *name, const char *file)
{
	static const struct {
		const char *head, *file, *words;
	} row[] = {
#define START(head, file, words) {head, file, words},
#include "symbol/starts.def"
	};
	const size_t nr_file = strlen(file);
	for (size_t i = 0; i < BASE_COUNT(row); i++) {
		const size_t nr_head = strlen(row[i].head), nr_end = strlen(row[i].file);
		if (!strncmp(name, row[i].head, nr_head) &&
			(!name[nr_head] || name[nr_head] == '(') && nr_file >= nr_end &&
			!strcmp(file + nr_file - nr_end, row[i].file))
			return row[i].words;
	}
	return NULL;
}

/* ---- names in the midst of text -------------------------------------------------------------- */

/* A word of a text: up to a space that is in no brackets, where those have ends; without what ends
 * a phrase. */
static struct text word_at(struct text t, const char *p, bool balanced)
{
	struct text word = {p, t.end};
	const char *space = balanced ? find_outside(word, " ") : memchr(p, ' ', nr_bytes(word));
	word.end = space ? space : t.end;
	while (word.end > word.at && strchr(",;:.", word.end[-1]))
		word.end--;
	return word;
}

/* Not a path, a place ("(work.cc:12)"), "< 5 and >". */
static bool is_long_name(struct text word)
{
	bool brackets = false;
	if (text_begins(word, "< "))
		return false;
	for (const char *p = word.at; p < word.end; p = bracket_step(word, p)) {
		if (*p == '/')
			return false;
		brackets |= bracket_step(word, p) > p + 1;
	}
	return brackets && !(*word.at == '(' && behind_brackets(word, word.at) == word.end);
}

void symbol_short_add_text(struct base_str *out, const char *text, bool utf8)
{
	struct text all = {text, text + strlen(text)};
	bool after_name = false, balanced = is_balanced(all);
	for (const char *p = all.at; p < all.end;) {
		struct text word = word_at(all, p, balanced);
		bool name = may_be_name(word) && is_long_name(word);
		if (after_name && text_is(word, "const")) { /* of a method */
			cut_back(out, out->length - 1);     /* the space before it */
		} else if (name) {
			short_add_text(out, word, utf8);
		} else {
			base_str_add_bytes(out, word.at, nr_bytes(word));
		}
		after_name = name;
		for (p = word.end; p < all.end && (p == word.end || strchr(",;:. ", p[-1])) &&
				   strchr(",;:. ", *p);
			p++)
			base_str_add_bytes(out, p, 1);
	}
}

size_t symbol_made_up(const char *function)
{
	const char *plus = strrchr(function, '+');
	bool is_address = plus && plus > function && plus[1] == '0' && plus[2] == 'x' && plus[3] &&
			  !plus[3 + strspn(plus + 3, "0123456789abcdef")];
	bool is_file = strcspn(function, " (<") >= (size_t)(plus ? plus - function : 0);
	return is_address && is_file ? (size_t)(plus - function) : 0;
}
