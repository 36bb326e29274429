/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_code.c - code that V8 makes: which function of JavaScript each piece of it stands for
 * (RING_code). V8 calls it "JS:*name path:line:column", where the mark says who made it: ~ it is
 * bytecode, which the interpreter runs (the address is the bytecode's), ^ + * a compiler.
 */
#include "preload/place.h"
#include "runtime/node/node.h"

#include <string.h>

#ifndef PRELOAD_STATIC

enum {
	SLOT_BITS = 14,
	FUNCTION_BYTES = 200,
	FILE_BYTES = 400,
};

static uint64_t node_places[1 << SLOT_BITS];

struct node_text {
	const char *at;
	size_t nr_bytes;
};
struct node_words {
	struct node_text function, file;
	uint64_t line;
	bool is_top; /* a file's code outside of all functions */
};

static bool node_begins(struct node_text t, const char *with)
{
	const size_t nr = strlen(with);
	return t.nr_bytes >= nr && memcmp(t.at, with, nr) == 0;
}

static struct node_text node_rest(struct node_text t, size_t from)
{
	from = from < t.nr_bytes ? from : t.nr_bytes;
	return (struct node_text){t.at + from, t.nr_bytes - from};
}

/* Takes ":number" from its end; false: there is none. */
static bool node_take_number(struct node_text *t, uint64_t *ret)
{
	size_t at = t->nr_bytes;
	uint64_t number = 0;
	while (at > 0 && t->at[at - 1] >= '0' && t->at[at - 1] <= '9')
		at--;
	if (at == 0 || at == t->nr_bytes || t->at[at - 1] != ':')
		return false;
	for (size_t i = at; i < t->nr_bytes; i++)
		number = number * 10 + (uint64_t)(t->at[i] - '0');
	t->nr_bytes = at - 1;
	*ret = number;
	return true;
}

/* Where the function's name ends: names of accessors have a blank in them, and so may paths. */
static size_t node_name_bytes(struct node_text t)
{
	static const char *const path[] = {" /", " node:", " file:", " evalmachine.", " [eval"};
	for (size_t i = 0; i < t.nr_bytes; i++)
		for (size_t k = 0; t.at[i] == ' ' && k < PRELOAD_COUNT(path); k++)
			if (node_begins(node_rest(t, i), path[k]))
				return i;
	const char *blank = memchr(t.at, ' ', t.nr_bytes);
	return blank ? (size_t)(blank - t.at) : t.nr_bytes;
}

/* False: it is no function of JavaScript. */
static bool node_take_words(struct node_text t, struct node_words *ret)
{
	static const char *const kind[] = {"JS:", "LazyCompile:", "Function:", "Script:", "Eval:"};
	static const char file_url[] = "file://";
	size_t of = 0;
	*ret = (struct node_words){0};
	while (of < PRELOAD_COUNT(kind) && !node_begins(t, kind[of]))
		of++;
	if (of == PRELOAD_COUNT(kind))
		return false;
	t = node_rest(t, strlen(kind[of]));
	if (t.nr_bytes && strchr("~^+*'", t.at[0]))
		t = node_rest(t, 1);
	/* (before V8 11 there is no column) */
	uint64_t column = 0, number;
	if (node_take_number(&t, &ret->line) && node_take_number(&t, &number)) {
		column = ret->line;
		ret->line = number;
	}
	ret->function = (struct node_text){t.at, node_name_bytes(t)};
	ret->file = node_rest(t, ret->function.nr_bytes + 1);
	if (node_begins(ret->file, file_url))
		ret->file = node_rest(ret->file, sizeof file_url - 1);
	ret->is_top = !ret->function.nr_bytes && ret->line == 1 && column <= 1;
	return true;
}

static size_t node_add(char *to, size_t at, const char *text, size_t nr_bytes)
{
	const size_t room = FUNCTION_BYTES - at;
	nr_bytes = nr_bytes < room ? nr_bytes : room;
	memcpy(to + at, text, nr_bytes);
	return at + nr_bytes;
}

static size_t node_add_number(char *to, size_t at, uint64_t number)
{
	char digit[20];
	size_t nr = 0;
	do
		digit[sizeof digit - ++nr] = (char)('0' + number % 10);
	while (number /= 10);
	return node_add(to, at, digit + sizeof digit - nr, nr);
}

/* Of one without a name the file's and the line: there are many. */
static size_t node_put_function(const struct node_words *w, char *to)
{
	const char *slash = memrchr(w->file.at, '/', w->file.nr_bytes);
	const struct node_text file =
		slash ? node_rest(w->file, (size_t)(slash + 1 - w->file.at)) : w->file;
	if (w->function.nr_bytes)
		return node_add(to, 0, w->function.at, w->function.nr_bytes);
	const char *what = w->is_top ? "(top level of " : "(anonymous ";
	size_t at = node_add(to, 0, what, strlen(what));
	at = node_add(to, at, file.at, file.nr_bytes);
	if (!w->is_top) {
		at = node_add(to, at, ":", 1);
		at = node_add_number(to, at, w->line);
	}
	return node_add(to, at, ")", 1);
}

static PRELOAD_COLD uint64_t node_name_place(struct node_text name)
{
	char text[FUNCTION_BYTES + FILE_BYTES];
	struct node_words w;
	if (!node_take_words(name, &w)) /* a regular expression, a stub, WebAssembly */
		w = (struct node_words){.function = name, .file = {name.at, 0}};
	const size_t function_bytes = node_put_function(&w, text);
	if (w.file.nr_bytes > FILE_BYTES) /* of a long path the end says more */
		w.file = node_rest(w.file, w.file.nr_bytes - FILE_BYTES);
	memcpy(text + function_bytes, w.file.at, w.file.nr_bytes);
	return PLACE_KNOWN | preload_place_name(text, function_bytes, w.file.nr_bytes, w.line);
}

/* 0: it has no name. */
static uint64_t node_place(struct node_text name)
{
	uint64_t words[3] = {0};
	for (size_t i = 0; i < name.nr_bytes; i++)
		words[i % 2] = (words[i % 2] ^ (unsigned char)name.at[i]) * 0x100000001b3u;
	words[2] = name.nr_bytes;
	const uint64_t hash = preload_place_hash(words[0], words[1], words[2]);
	uint64_t known = preload_place_known(node_places, SLOT_BITS, hash);
	if (!known) {
		known = node_name_place(name);
		preload_place_keep(node_places, SLOT_BITS, hash, known);
	}
	return known & PLACE_NUMBER ? ring_place(known & PLACE_NUMBER) : 0;
}

/* (What is in node's own file has names there.) */
static uint64_t node_stands_for(const struct v8_code_event *e)
{
	if (e->event == V8_CODE_MOVED)
		return e->start;
	const struct node_text name = {e->name.text, e->name.nr_bytes};
	if (node_begins(name, "BytecodeHandler:"))
		return RING_CODE_INTERPRETS;
	return preload_is_node(e->start) ? 0 : node_place(name);
}

void node_code_event(const struct v8_code_event *e)
{
	const bool is_moved = e->event == V8_CODE_MOVED;
	if (!preload_active() || !e->nr_bytes ||
		!(is_moved || (e->event == V8_CODE_ADDED && e->name.text)))
		return;
	const uint64_t start = is_moved ? e->new_start : e->start;
	const uint64_t stands_for = node_stands_for(e);
	if (stands_for)
		preload_record_at(
			preload_now(), RING_code, PRELOAD_WORDS(start, e->nr_bytes, stands_for));
}

#endif
