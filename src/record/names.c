/* SPDX-License-Identifier: Apache-2.0 */
/* names.c - the last definitions of a trace: functions and lines of all sites, names of
 * static objects. */
#include "record/names.h"
#include "os/clock.h"
#include "record/made.h"
#include "ring/processor.h"
#include "spin/loop.h"
#include "symbol/symbol.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *names_text_of(const struct record_sink *s, uint32_t id)
{
	return base_strtab_get(s->strings, id);
}

static uint32_t names_text_id(struct record_sink *s, const char *text)
{
	return text ? record_sink_text(s, text, strlen(text)) : 0;
}

enum { INLINED_MAX = 32 };

/* What is inlined there, innermost first; and the line of the function itself, for makers. */
static void name_inlined(
	struct record_sink *s, struct symbol_file *symbols, uint32_t site, uint64_t offset)
{
	struct symbol_frame frame[INLINED_MAX + 1];
	size_t nr = symbol_frames(symbols, offset, frame, BASE_COUNT(frame));
	for (size_t i = 0; i + 1 < nr && !record_sink_failed(s); i++) {
		struct trace_record r = {.kind = TRACE_inlined,
			.u.inlined = {.inlined = ++s->nr_inlined,
				.site = site,
				.function = names_text_id(s, frame[i].function),
				.file = names_text_id(s, frame[i + 1].file),
				.line = frame[i + 1].line}};
		record_sink_put(s, &r);
	}
	if (nr > 1 && s->site[site].wanted && !record_sink_failed(s)) {
		s->site[site].file = names_text_id(s, frame[nr - 1].file);
		s->site[site].line = (uint32_t)frame[nr - 1].line;
	}
}

/* Nobody calls these but to wait without sleeping. */
static bool is_yield(const char *function)
{
	static const char *const names[] = {
		"sched_yield", "__sched_yield", "pthread_yield", "thrd_yield"};
	for (size_t i = 0; function && i < BASE_COUNT(names); i++)
		if (!strcmp(function, names[i]))
			return true;
	return false;
}

static bool yields(void *symbols, uint64_t target)
{
	struct symbol_found found;
	return is_yield(symbol_linked(symbols, target)) ||
	       (symbol_code(symbols, target, &found) && found.function_offset == target &&
		       is_yield(found.function));
}

/* The variable that the loop reads, if that is one, at a fixed address. */
static uint32_t names_word_of(
	struct record_sink *s, struct symbol_file *symbols, const struct spin_loop_code *loop)
{
	struct base_str name = {0};
	const struct spin_loop_word *w = &loop->word[0];
	uint32_t id = 0;
	if (loop->nr_words == 1 && w->base == SPIN_LOOP_NONE && w->index == SPIN_LOOP_NONE &&
		symbol_data(symbols, w->displacement, &name))
		id = names_text_id(s, base_str_text(&name));
	base_str_fini(&name);
	return id;
}

/* Of an instruction that was sampled: is it in a loop that only waits? */
static void tell_wait_loop(struct record_sink *s, struct symbol_file *symbols, uint32_t site,
	uint64_t offset, const char *function)
{
	const struct spin_loop_calls calls = {yields, symbols};
	uint8_t code[2 * (SPIN_LOOP_BYTES + 16)];
	uint64_t from;
	struct trace_record r = {.kind = TRACE_wait_loop, .u.wait_loop = {.site = site}};
	if (!is_yield(function)) {
		if (!PROCESSOR_IS_X86_64) /* what spin/loop.h can read */
			return;
		size_t nr = symbol_bytes_around(symbols, offset, sizeof code / 2, code, &from);
		struct spin_loop_code loop = spin_loop_guess(code, nr, from, offset, &calls);
		if (loop.kind != SPIN_LOOP_WAITS)
			return;
		r.u.wait_loop.begin = loop.begins;
		r.u.wait_loop.word = names_word_of(s, symbols, &loop);
	}
	record_sink_put(s, &r);
}

static bool names_name_site(struct record_sink *s, struct symbol_file *symbols, uint32_t site)
{
	struct symbol_found found;
	/* A return address may be the next function's first byte: the call is before it. */
	const struct record_site *at = &s->site[site];
	uint64_t offset = at->exact ? at->offset : at->offset - 1;
	if (!symbol_code(symbols, offset, &found))
		return false;
	if (at->exact)
		tell_wait_loop(s, symbols, site, offset, found.function);
	uint32_t function = names_text_id(s, found.function);
	if (at->wanted && !record_sink_failed(s)) {
		s->site[site].function = function;
		s->site[site].file = names_text_id(s, found.file);
		s->site[site].line = (uint32_t)found.line;
	}
	struct trace_record r = {.kind = TRACE_symbol,
		.u.symbol = {.site = site,
			.function = function,
			.file = names_text_id(s, found.file),
			.line = found.line,
			.function_offset = found.function_offset}};
	record_sink_put(s, &r);
	if (found.file)
		name_inlined(s, symbols, site, offset);
	return true;
}

static void names_name_object(
	struct record_sink *s, struct symbol_file *symbols, const struct record_named *named)
{
	struct base_str name = {0};
	if (!s->object[named->object].name && symbol_data(symbols, named->offset, &name)) {
		s->object[named->object].name = names_text_id(s, base_str_text(&name));
		record_sink_object_again(s, named->object);
	}
	base_str_fini(&name);
}

/* All sites of a module. Those that get no function's name are counted, with the last one's why. */
static uint64_t names_name_module(struct record_sink *s, struct symbol_file *symbols,
	uint32_t module, struct record_unnamed *unnamed)
{
	uint64_t nr = 0, nr_unnamed = 0;
	enum symbol_why last = unnamed->opened;
	for (uint32_t site = 1; site <= s->nr_sites && !record_sink_failed(s); site++) {
		if (s->site[site].module != module)
			continue;
		nr += symbols && names_name_site(s, symbols, site);
		enum symbol_why why = symbols ? symbol_why(symbols) : unnamed->opened;
		bool named = why == SYMBOL_WHY_none || why == SYMBOL_WHY_no_lines;
		last = named ? last : why;
		nr_unnamed += !named;
	}
	unnamed->nr += nr_unnamed;
	if (nr_unnamed > unnamed->nr_most) {
		unnamed->nr_most = nr_unnamed;
		unnamed->module = module;
		unnamed->why = last;
	}
	return nr;
}

#define FETCH_PATIENCE_NS                                                                          \
	8000000000u /* of a file that takes longer, the others are not asked for */

uint64_t record_sink_name_all(struct record_sink *s, struct record_unnamed *ret)
{
	/* Nothing is recorded any more: the time for downloads, where they are configured. A server
	 * that does not answer would hold up each file for 90 s: it gets less, and is not asked
	 * again. */
	struct symbol_options fetch = {.size = sizeof fetch, .fetch = true};
	setenv("DEBUGINFOD_TIMEOUT", "10", 0);
	uint64_t nr = 0;
	*ret = (struct record_unnamed){0};
	for (uint32_t module = 1; module <= s->nr_modules && !record_sink_failed(s); module++) {
		uint64_t begin_ns = os_time_ns(CLOCK_MONOTONIC);
		struct symbol_file *symbols =
			symbol_open_with(names_text_of(s, s->module[module].path),
				names_text_of(s, s->module[module].build_id), &fetch, &ret->opened);
		nr += names_name_module(s, symbols, module, ret);
		for (size_t i = 0; symbols && i < s->nr_named; i++)
			if (s->named[i].module == module && !record_sink_failed(s))
				names_name_object(s, symbols, &s->named[i]);
		symbol_close(symbols);
		fetch.fetch =
			fetch.fetch && os_time_ns(CLOCK_MONOTONIC) - begin_ns < FETCH_PATIENCE_NS;
	}
	record_sink_name_made(s, 0);
	return nr;
}

void record_sink_name_placeless(struct record_sink *s)
{
	for (size_t i = 0; i < s->nr_named && !record_sink_failed(s); i++) {
		const struct record_named *named = &s->named[i];
		struct trace_object *o = &s->object[named->object];
		if (o->name || (o->type != TRACE_OBJECT_cond && o->type != TRACE_OBJECT_semaphore))
			continue;
		const char *path = names_text_of(s, s->module[named->module].path);
		const char *slash = strrchr(path, '/');
		struct base_str name = {0};
		base_str_addf(&name, "%s+0x%llx", slash ? slash + 1 : path,
			(unsigned long long)named->offset);
		o->name = names_text_id(s, base_str_text(&name));
		record_sink_object_again(s, named->object);
		base_str_fini(&name);
	}
}

/* ---- while it goes on ------------------------------------------------------------------------ */

static struct symbol_file *names_symbols_of(
	struct record_namer *n, const struct record_sink *s, uint32_t module)
{
	if (!module || module > s->nr_modules ||
		base_grow(&n->module, &n->module_capacity, (size_t)module + 1, sizeof *n->module) !=
			BASE_OK ||
		base_grow(&n->looked_at, &n->looked_capacity, (size_t)module + 1,
			sizeof *n->looked_at) != BASE_OK)
		return NULL;
	if (!n->looked_at[module])
		n->module[module] = symbol_open(names_text_of(s, s->module[module].path),
			names_text_of(s, s->module[module].build_id));
	n->looked_at[module] = true;
	return n->module[module];
}

uint64_t record_namer_look(struct record_namer *n, struct record_sink *s)
{
	uint64_t nr = 0;
	for (; n->nr_sites < s->nr_sites && !record_sink_failed(s); n->nr_sites++) {
		uint32_t site = n->nr_sites + 1;
		struct symbol_file *symbols = names_symbols_of(n, s, s->site[site].module);
		nr += symbols && names_name_site(s, symbols, site);
	}
	for (; n->nr_named < s->nr_named && !record_sink_failed(s); n->nr_named++) {
		const struct record_named *named = &s->named[n->nr_named];
		struct symbol_file *symbols = names_symbols_of(n, s, named->module);
		if (symbols)
			names_name_object(s, symbols, named);
	}
	record_sink_name_made(s, n->nr_made);
	n->nr_made = s->nr_made;
	return nr;
}

void record_namer_fini(struct record_namer *n)
{
	for (size_t i = 0; i < n->module_capacity && i < n->looked_capacity; i++)
		symbol_close(n->module[i]);
	base_free(n->module);
	base_free(n->looked_at);
	*n = (struct record_namer){0};
}
