/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c - what the statements are: sections, functions, labels that matter, opaque places. */
#include "rewrite/private.h"

#include <string.h>

enum { SECTION_STACK = 32, CALL_SITE_FIELDS = 4, CALL_SITE_PAD = 2 };

struct scan {
	struct rewrite *w;
	uint32_t section, previous, stack[SECTION_STACK];
	unsigned depth;
	uint32_t function;
	bool in_call_sites;
	unsigned call_site_field;
	enum base_status status;
	uint32_t scan_statement;
};

/* ---- labels ---------------------------------------------------------------------------------- */

static struct att_text unquoted(struct att_text t)
{
	if (t.length >= 2 && t.at[0] == '"' && t.at[t.length - 1] == '"')
		return (struct att_text){t.at + 1, t.length - 2};
	return t;
}

static uint32_t label_id(struct scan *s, struct att_text name)
{
	struct rewrite *w = s->w;
	uint32_t id = 0;
	name = unquoted(name);
	enum base_status status = base_strtab_intern(w->labels, name.at, name.length, &id);
	if (status == BASE_OK)
		status = base_grow(&w->label_flags, &w->flags_capacity, (size_t)id + 1, 1);
	if (status == BASE_OK)
		status = base_grow(&w->label_function, &w->functions_of_capacity, (size_t)id + 1,
			sizeof *w->label_function);
	if (status != BASE_OK) {
		s->status = status;
		return 0;
	}
	return id;
}

bool rewrite_find_label(const struct rewrite *w, struct att_text name, uint32_t *ret)
{
	uint32_t nr = base_strtab_count(w->labels);
	name = unquoted(name);
	if (base_strtab_intern(w->labels, name.at, name.length, ret) != BASE_OK)
		return false;
	return *ret && *ret < nr;
}

static void flag_label(struct scan *s, struct att_text name, unsigned flag)
{
	uint32_t id = label_id(s, name);
	if (id)
		s->w->label_flags[id] = (uint8_t)(s->w->label_flags[id] | flag);
}

static void visit_reference(void *ctx, struct att_text symbol)
{
	flag_label(ctx, symbol, LABEL_REFERENCED);
}

static void visit_pad(void *ctx, struct att_text symbol)
{
	struct scan *s = ctx;
	if (s->call_site_field == CALL_SITE_PAD)
		flag_label(s, symbol, LABEL_PAD | LABEL_REFERENCED);
	s->call_site_field = CALL_SITE_FIELDS; /* the first symbol only */
}

/* ---- sections -------------------------------------------------------------------------------- */

static bool is_debug(struct att_text name)
{
	return rewrite_att_begins(name, ".debug") || rewrite_att_begins(name, ".gnu.debug") ||
	       rewrite_att_begins(name, ".stab") || rewrite_att_begins(name, ".eh_frame") ||
	       rewrite_att_begins(name, ".note");
}

/* `.section name,"flags",@type,[entsize,]group,comdat` */
static uint32_t add_section(struct scan *s, struct att_text description)
{
	struct rewrite *w = s->w;
	struct att_text part[8];
	size_t nr = rewrite_att_parts(description, part, BASE_COUNT(part));
	struct rewrite_section section = {0};
	if (!nr)
		return s->section;
	nr = nr > BASE_COUNT(part) ? BASE_COUNT(part) : nr;
	section.name = unquoted(part[0]);
	section.text = rewrite_att_begins(section.name, ".text") ||
		       rewrite_att_begins(section.name, ".init") ||
		       rewrite_att_begins(section.name, ".fini");
	if (rewrite_att_begins(section.name, ".init_array") ||
		rewrite_att_begins(section.name, ".fini_array"))
		section.text = false;
	if (nr > 1)
		section.text = rewrite_att_contains(part[1], "x");
	for (size_t i = 2; i + 1 < nr; i++)
		if (rewrite_att_is(part[i + 1], "comdat"))
			section.group = part[i];
	section.debug = is_debug(section.name);
	section.table = rewrite_att_begins(section.name, ".gcc_except_table");
	for (size_t i = 0; i < w->nr_sections; i++) {
		const struct rewrite_section *o = &w->section[i];
		if (o->name.length == section.name.length &&
			!memcmp(o->name.at, section.name.at, section.name.length) &&
			(nr == 1 || (o->group.length == section.group.length &&
					    !memcmp(o->group.at ? o->group.at : "",
						    section.group.at ? section.group.at : "",
						    section.group.length))))
			return (uint32_t)i;
	}
	if (base_grow(&w->section, &w->sections_capacity, w->nr_sections + 1, sizeof *w->section) !=
		BASE_OK) {
		s->status = BASE_ERR_NOMEM;
		return s->section;
	}
	w->section[w->nr_sections] = section;
	return (uint32_t)w->nr_sections++;
}

static void scan_enter(struct scan *s, uint32_t section)
{
	s->previous = s->section;
	s->section = section;
}

static bool section_directive(struct scan *s, struct att_text word, struct att_text rest)
{
	static const char *const own[] = {".text", ".data", ".bss"};
	for (size_t i = 0; i < BASE_COUNT(own); i++)
		if (rewrite_att_is(word, own[i])) {
			scan_enter(s, add_section(s, word));
			return true;
		}
	if (rewrite_att_is(word, ".section")) {
		scan_enter(s, add_section(s, rest));
	} else if (rewrite_att_is(word, ".pushsection")) {
		if (s->depth < SECTION_STACK)
			s->stack[s->depth++] = s->section;
		scan_enter(s, add_section(s, rest));
	} else if (rewrite_att_is(word, ".popsection")) {
		if (s->depth)
			scan_enter(s, s->stack[--s->depth]);
	} else if (rewrite_att_is(word, ".previous")) {
		scan_enter(s, s->previous);
	} else {
		return false;
	}
	return true;
}

/* ---- functions ------------------------------------------------------------------------------- */

static uint32_t scan_add_function(struct scan *s, uint32_t scan_label)
{
	struct rewrite *w = s->w;
	if (base_grow(&w->function, &w->functions_capacity, w->nr_functions + 1,
		    sizeof *w->function) != BASE_OK) {
		s->status = BASE_ERR_NOMEM;
		return 0;
	}
	w->function[w->nr_functions] = (struct rewrite_function){.name = scan_label};
	return (uint32_t)w->nr_functions++;
}

/* "f.cold", "f.cold.1": code of f that lives elsewhere, and is entered by jumps only. */
static uint32_t cold_of(struct scan *s, struct att_text name)
{
	const char *cold = name.length ? memmem(name.at, name.length, ".cold", 5) : NULL;
	uint32_t id;
	if (!cold || !rewrite_find_label(
			     s->w, (struct att_text){name.at, (size_t)(cold - name.at)}, &id))
		return 0;
	return id < s->w->flags_capacity ? s->w->label_function[id] : 0;
}

static void function_label(struct scan *s, uint32_t id, struct att_text name)
{
	uint32_t whole = cold_of(s, name);
	if (whole) {
		s->function = whole;
		s->w->label_flags[id] =
			(uint8_t)((s->w->label_flags[id] | LABEL_REFERENCED) & ~LABEL_FUNCTION);
	} else {
		s->function = scan_add_function(s, id);
	}
	s->w->label_function[id] = s->function;
}

static void type_directive(struct scan *s, struct att_text rest)
{
	struct att_text part[2];
	if (rewrite_att_parts(rest, part, 2) != 2)
		return;
	if (rewrite_att_ends(part[1], "function"))
		flag_label(s, part[0],
			rewrite_att_contains(part[1], "gnu_indirect") ? LABEL_RESOLVER
								      : LABEL_FUNCTION);
	if (rewrite_att_ends(part[1], "gnu_indirect_function"))
		flag_label(s, part[0], LABEL_RESOLVER);
}

/* ---- directives ------------------------------------------------------------------------------ */

static bool is_data(struct att_text word)
{
	static const char *const data[] = {".long", ".quad", ".int", ".value", ".short", ".byte",
		".2byte", ".4byte", ".8byte", ".word", ".uleb128", ".sleb128", ".set", ".equ",
		".dc.a", ".dc.l"};
	for (size_t i = 0; i < BASE_COUNT(data); i++)
		if (rewrite_att_is(word, data[i]))
			return true;
	return false;
}

static void call_site_item(struct scan *s, struct att_text rest)
{
	unsigned field = s->call_site_field;
	rewrite_att_symbols(rest, visit_pad, s);
	s->call_site_field = (field + 1) % CALL_SITE_FIELDS;
}

static void directive(struct scan *s, const struct att_statement *st)
{
	struct att_text word = rewrite_att_word(st), rest = rewrite_att_rest(st);
	if (section_directive(s, word, rest))
		return;
	const struct rewrite_section *section = &s->w->section[s->section];
	if (rewrite_att_is(word, ".type")) {
		type_directive(s, rest);
	} else if (rewrite_att_is(word, ".size") && section->text) {
		s->function = 0;
	} else if (is_data(word) && section->table) {
		if (s->in_call_sites)
			call_site_item(s, rest);
	} else if (!section->debug && (is_data(word) || *word.at != '.')) {
		rewrite_att_symbols(rest, visit_reference, s);
	}
}

static void scan_label(struct scan *s, const struct att_statement *st, struct rewrite_place *place)
{
	uint32_t id = label_id(s, st->text);
	const struct rewrite_section *section = &s->w->section[s->section];
	if (!id)
		return;
	place->label = id;
	s->w->label_flags[id] = (uint8_t)(s->w->label_flags[id] | LABEL_DEFINED);
	if (section->table) {
		s->in_call_sites = rewrite_att_begins(st->text, ".LLSDACSB") ||
				   rewrite_att_begins(st->text, ".Lcst_begin");
		s->call_site_field = 0;
	}
	if (section->text && s->w->label_flags[id] & LABEL_FUNCTION)
		function_label(s, id, unquoted(st->text));
	else
		s->w->label_function[id] = s->function;
}

/* ---- opaque places --------------------------------------------------------------------------- */

static void make_opaque(struct rewrite *w, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		w->place[i].flags |= STATEMENT_OPAQUE;
}

/* Inline assembly that has more in it than instructions. */
static size_t scan_app(struct rewrite *w, size_t from)
{
	size_t to = from;
	bool plain = true;
	for (; to < w->file.nr && w->file.statement[to].flags & ATT_IN_APP; to++)
		plain &= w->file.statement[to].kind == ATT_INSTRUCTION;
	if (!plain)
		make_opaque(w, from, to);
	return to;
}

/* A thread-local address by a call: the linker rewrites the sequence as a whole. */
static size_t scan_tls(struct rewrite *w, size_t from)
{
	size_t to = from + 1;
	while (to < w->file.nr && to < from + 8 && w->file.statement[to].kind != ATT_LABEL) {
		bool calls = w->file.statement[to].kind == ATT_INSTRUCTION &&
			     rewrite_att_begins(rewrite_att_word(&w->file.statement[to]), "call");
		to++;
		if (calls)
			break;
	}
	make_opaque(w, from, to);
	return to;
}

static bool is_tls_sequence(struct att_text t)
{
	return rewrite_att_contains(t, "@tlsgd") || rewrite_att_contains(t, "@TLSGD") ||
	       rewrite_att_contains(t, "@tlsld") || rewrite_att_contains(t, "@TLSLD") ||
	       rewrite_att_contains(t, "@tlsdesc") || rewrite_att_contains(t, "@TLSDESC");
}

static void scan_opaque(struct rewrite *w)
{
	for (size_t i = 0; i < w->file.nr;) {
		const struct att_statement *st = &w->file.statement[i];
		if (st->flags & ATT_IN_APP)
			i = scan_app(w, i);
		else if (st->kind == ATT_INSTRUCTION && is_tls_sequence(st->text))
			i = scan_tls(w, i);
		else if (st->kind == ATT_DIRECTIVE && w->place[i].flags & STATEMENT_CODE &&
			 is_data(rewrite_att_word(st)) &&
			 !rewrite_att_begins(rewrite_att_word(st), ".set"))
			make_opaque(w, i, i + 1), i++; /* data among code */
		else
			i++;
	}
}

/* ---- all ------------------------------------------------------------------------------------- */

static void scan_statement(struct scan *s, size_t i)
{
	struct rewrite *w = s->w;
	const struct att_statement *st = &w->file.statement[i];
	struct rewrite_place *place = &w->place[i];
	if (st->kind == ATT_LABEL)
		scan_label(s, st, place);
	else if (st->kind == ATT_DIRECTIVE)
		directive(s, st);
	else
		rewrite_att_symbols(rewrite_att_rest(st), visit_reference, s);
	place->section = s->section;
	place->function = w->section[s->section].text ? s->function : 0;
	if (place->function)
		place->flags |= STATEMENT_CODE;
}

/* `.set name, resolver` after `.type name, @gnu_indirect_function`. */
static void skip_resolvers(struct scan *s)
{
	struct rewrite *w = s->w;
	for (size_t i = 0; i < w->file.nr; i++) {
		const struct att_statement *st = &w->file.statement[i];
		struct att_text part[2];
		uint32_t name, target;
		if (st->kind == ATT_DIRECTIVE && rewrite_att_is(rewrite_att_word(st), ".set") &&
			rewrite_att_parts(rewrite_att_rest(st), part, 2) == 2 &&
			rewrite_find_label(w, part[0], &name) &&
			w->label_flags[name] & LABEL_RESOLVER &&
			rewrite_find_label(w, part[1], &target))
			w->label_flags[target] |= LABEL_RESOLVER;
	}
	for (size_t i = 1; i < w->nr_functions; i++)
		if (w->label_flags[w->function[i].name] & LABEL_RESOLVER)
			w->function[i].skipped = true;
}

static void number_instructions(struct rewrite *w)
{
	bool behind_prefix = false;
	for (size_t i = 0; i < w->file.nr; i++) {
		const struct att_statement *st = &w->file.statement[i];
		struct rewrite_place *place = &w->place[i];
		if (st->kind != ATT_INSTRUCTION || !(place->flags & STATEMENT_CODE) ||
			place->flags & STATEMENT_OPAQUE) {
			behind_prefix = false;
			continue;
		}
		if (!behind_prefix)
			place->instruction = ++w->nr_instructions;
		behind_prefix = st->flags & ATT_PREFIX_ONLY;
	}
}

enum base_status rewrite_scan(struct rewrite *w, struct base_err *err)
{
	static const char text_name[] = ".text";
	struct scan s = {.w = w, .status = BASE_OK};
	w->place = base_alloc((w->file.nr + 1) * sizeof *w->place);
	if (!w->place)
		return base_fail(err, BASE_ERR_NOMEM, "no memory for the assembly's statements");
	(void)scan_add_function(&s, 0);
	s.section = add_section(&s, (struct att_text){text_name, sizeof text_name - 1});
	for (size_t i = 0; i < w->file.nr && s.status == BASE_OK; i++)
		scan_statement(&s, i);
	if (s.status != BASE_OK)
		return base_fail(err, s.status, "no memory for the assembly's labels");
	scan_opaque(w);
	skip_resolvers(&s);
	number_instructions(w);
	return BASE_OK;
}
