/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made.c - names of locks that have no symbol: after their makers.
 *
 * The caller of pthread_mutex_init() is often a function that makes all locks of a program or of
 * its libraries (apr_thread_mutex_create, g_rec_mutex_impl_new): then a name after it tells
 * nothing. So the call path is followed outwards past such functions: those of the C and C++
 * runtimes; and, of those that are called on several ways, those that are named after locks, and
 * the nameless of libraries. If who is found is in a library, the first one outside of it is said,
 * too.
 */
#include "record/made.h"

#include <ctype.h>
#include <string.h>

/* Prefixes of file names, and of qualified names. */
static const char *const RUNTIMES[] = {"libc.so", "libc-", "libpthread", "libstdc++", "libc++",
	"libgcc_s", "ld-linux", "ld-musl", "ld-2", "[vdso]", "liblongpole-"};
static const char *const NAMESPACES[] = {"std::", "__gnu_cxx::", "__gthread_", "boost::"};

struct makers {
	struct record_sink *s;
	struct base_map
		callers; /* (0, site) -> hash of the one path that it is called by; SEVERAL */
};
#define SEVERAL UINT64_MAX
enum { NAME_MAX_BYTES = 256 };

static const char *made_text_of(const struct record_sink *s, uint32_t id)
{
	return base_strtab_get(s->strings, id);
}

static const char *made_file_of(const struct record_sink *s, uint32_t site)
{
	uint32_t module = s->site[site].module;
	const char *path = module ? made_text_of(s, s->module[module].path) : "";
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool made_begins(const char *text, const char *const *with, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (!strncmp(text, with[i], strlen(with[i])))
			return true;
	return false;
}

static bool made_is_runtime(const struct record_sink *s, uint32_t site)
{
	return made_begins(made_file_of(s, site), RUNTIMES, BASE_COUNT(RUNTIMES));
}

static bool is_library(const struct record_sink *s, uint32_t site)
{
	return strstr(made_file_of(s, site), ".so") != NULL;
}

/* No symbol: what the symbol layer made up is "pigz+0x4a20". */
static bool made_is_nameless(const char *function)
{
	return !*function || strstr(function, "+0x");
}

/* ---- what a function's name says ------------------------------------------------------------- */

/* "a::b<c>::d" of "void a::b<c>::d<e>(f)", without what is in brackets. */
static void qualified_name(const char *function, char name[NAME_MAX_BYTES])
{
	size_t nr = 0, depth = 0;
	for (const char *p = function; *p && nr < NAME_MAX_BYTES - 1; p++) {
		if (*p == '<')
			depth++;
		else if (*p == '>' && depth)
			depth--;
		else if (!depth && *p == '(' && p != function && p[-1] != ':' && p[-1] != ' ')
			break;
		else if (!depth && *p == ' ')
			nr = 0;
		else if (!depth)
			name[nr++] = *p;
	}
	name[nr] = '\0';
}

/* The last two parts: class and function. */
static const char *made_own_name(const char *name)
{
	const char *last = name, *before = name;
	for (const char *p = strstr(name, "::"); p; p = strstr(p + 2, "::")) {
		before = last;
		last = p + 2;
	}
	return before;
}

/* "lock" as a word or the end of rwlock, unlock ...: not in "block", "clock", and not "locks". */
static bool is_lock_at(const char *name, const char *p)
{
	static const char *const BEFORE[] = {"rw", "rd", "wr", "un", "spin", "try"};
	if (tolower((unsigned char)p[4]) == 's')
		return false;
	if (p == name || !isalpha((unsigned char)p[-1]) || (*p == 'L' && p[1] == 'o'))
		return true;
	for (size_t i = 0; i < BASE_COUNT(BEFORE); i++) {
		size_t n = strlen(BEFORE[i]);
		if ((size_t)(p - name) >= n && !strncasecmp(p - n, BEFORE[i], n))
			return true;
	}
	return false;
}

static bool is_about_locks(const char *name)
{
	for (const char *p = name; *p; p++) {
		if (!strncasecmp(p, "mutex", 5) || !strncasecmp(p, "mtx", 3))
			return true;
		if (!strncasecmp(p, "lock", 4) && is_lock_at(name, p))
			return true;
		bool begins_word = p == name || !isalpha((unsigned char)p[-1]);
		if (begins_word && !strncasecmp(p, "cond", 4) && !isalpha((unsigned char)p[4]))
			return true;
	}
	return false;
}

static bool is_of_runtime(const struct makers *m, uint32_t site)
{
	char name[NAME_MAX_BYTES];
	qualified_name(made_text_of(m->s, m->s->site[site].function), name);
	return made_is_runtime(m->s, site) || made_begins(name, NAMESPACES, BASE_COUNT(NAMESPACES));
}

/* Does it take or make locks for others? */
static bool is_wrapper(const struct makers *m, uint32_t site)
{
	char name[NAME_MAX_BYTES];
	uint64_t caller;
	if (is_of_runtime(m, site))
		return true;
	qualified_name(made_text_of(m->s, m->s->site[site].function), name);
	bool serves = base_map_get(&m->callers, 0, site, &caller) && caller == SEVERAL;
	return serves && (is_about_locks(made_own_name(name)) ||
				 (made_is_nameless(name) && is_library(m->s, site)));
}

/* Does it allocate for others, seen from the function at `from`? */
static bool is_allocator(const struct makers *m, uint32_t site, uint32_t from)
{
	return is_of_runtime(m, site) ||
	       strcasestr(made_text_of(m->s, m->s->site[site].function), "alloc") ||
	       (is_library(m->s, site) && m->s->site[site].module != m->s->site[from].module);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Of a function without a name, the place of the call: it may make locks of several kinds. */
static void made_add_site(struct base_str *out, const struct record_sink *s, uint32_t site)
{
	const struct record_site *at = &s->site[site];
	if (made_is_nameless(made_text_of(s, at->function))) {
		base_str_addf(
			out, "%s+0x%llx", made_file_of(s, site), (unsigned long long)at->offset);
		return;
	}
	base_str_add(out, made_text_of(s, at->function));
	if (at->file) {
		const char *file = made_text_of(s, at->file), *slash = strrchr(file, '/');
		base_str_addf(out, " (%s:%u)", slash ? slash + 1 : file, at->line);
	}
}

/* Of the path: the first place that is nobody's servant. */
static uint32_t first_of_own(const struct makers *m, const struct record_made *made)
{
	uint32_t i = 0;
	while (i < made->nr_path && is_wrapper(m, made->path[i]))
		i++;
	return i < made->nr_path ? i : 0;
}

/* For whom a library does something; 0: not known. */
static uint32_t outside(const struct makers *m, const struct record_made *made, uint32_t i)
{
	const struct record_sink *s = m->s;
	if (!is_library(s, made->path[i]))
		return 0;
	for (uint32_t k = i + 1; k < made->nr_path; k++)
		if (s->site[made->path[k]].module != s->site[made->path[i]].module &&
			!made_is_runtime(s, made->path[k]))
			return made->path[k];
	return 0;
}

/* Is it in one of the functions that were passed over? Then it is the maker's, too. */
static bool is_passed(const struct record_sink *s, const struct record_made *made,
	uint32_t nr_passed, uint32_t site)
{
	for (uint32_t k = 0; k < nr_passed; k++)
		if (s->site[made->path[k]].function == s->site[site].function)
			return true;
	return false;
}

static void add_initialised(
	struct base_str *name, const struct makers *m, const struct record_made *made)
{
	const struct record_sink *s = m->s;
	uint32_t i = first_of_own(m, made);
	uint32_t maker = made->nr_path ? made->path[i] : made->init_site;
	uint32_t for_whom = made->nr_path ? outside(m, made, i) : 0, heap = made->heap_site;
	base_str_add(name, "made by ");
	made_add_site(name, s, maker);
	if (for_whom) {
		base_str_add(name, " for ");
		made_add_site(name, s, for_whom);
	}
	if (heap && s->site[heap].function && s->site[heap].function != s->site[maker].function &&
		!is_passed(s, made, i, heap) && !is_allocator(m, heap, maker)) {
		base_str_add(name, " in memory of ");
		made_add_site(name, s, heap);
	}
}

static void add_found(struct base_str *name, const struct makers *m, const struct record_made *made)
{
	uint32_t taker = made->nr_path ? made->path[first_of_own(m, made)] : 0;
	base_str_add(name, "in memory of ");
	made_add_site(name, m->s, made->heap_site);
	if (!taker || !is_allocator(m, made->heap_site, taker))
		return;
	if (is_of_runtime(m, made->heap_site))
		base_str_reset(name);
	else
		base_str_add(name, ", ");
	base_str_add(name, "first taken by ");
	made_add_site(name, m->s, taker);
}

/* "made by conn_new (conn.c:88)"; where another function allocated the memory, "made by lock_new
 * (lock.c:10) in memory of conn_new (conn.c:80)". */
static void name_made(const struct makers *m, const struct record_made *made)
{
	struct record_sink *s = m->s;
	struct base_str name = {0};
	if (s->object[made->object].name || record_sink_failed(s))
		return;
	if (made->init_site)
		add_initialised(&name, m, made);
	else
		add_found(&name, m, made);
	if (made->several)
		base_str_add(&name, " and others");
	if (!name.failed) {
		const char *text = base_str_text(&name);
		s->object[made->object].name = record_sink_text(s, text, strlen(text));
		record_sink_object_again(s, made->object);
	}
	base_str_fini(&name);
}

static void note_callers(struct makers *m, const struct record_made *made)
{
	uint64_t callers = 0; /* of path[i] */
	for (uint32_t i = made->nr_path; i-- > 0;) {
		uint64_t known, now = callers;
		if (base_map_get(&m->callers, 0, made->path[i], &known) && known != callers)
			now = SEVERAL;
		enum base_status status = base_map_put(&m->callers, 0, made->path[i], now);
		callers = (callers ^ made->path[i]) * 0x9e3779b97f4a7c15u;
		if (status != BASE_OK)
			record_sink_fail(m->s, status, "no memory for makers of locks");
	}
}

void record_sink_name_made(struct record_sink *s, size_t from)
{
	struct makers m = {.s = s};
	for (size_t i = 0; from < s->nr_made && i < s->nr_made; i++)
		note_callers(&m, &s->made[i]);
	for (size_t i = from; i < s->nr_made; i++)
		name_made(&m, &s->made[i]);
	base_map_fini(&m.callers);
}
