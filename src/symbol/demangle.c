/* SPDX-License-Identifier: Apache-2.0 */
/* demangle.c - C++ and Rust names as one reads them, by GNU's demangler. */
#include "symbol/symbol.h"

#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

/* What std::thread wraps round what it calls: "...tuple<main::{lambda()#1}, int> > >::_M_run()"
 * becomes "main::{lambda()#1}". In place. */
static void unwrap_thread(char *name)
{
	static const char before[] = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<",
			  after[] = "> > >::_M_run()";
	size_t length = strlen(name), nr_before = sizeof before - 1, nr_after = sizeof after - 1;
	if (length <= nr_before + nr_after || strncmp(name, before, nr_before) != 0 ||
		strcmp(name + length - nr_after, after) != 0)
		return;
	size_t nr = 0, nr_all = length - nr_before - nr_after;
	const char *called = name + nr_before;
	for (int depth = 0; nr < nr_all && (called[nr] != ',' || depth); nr++)
		depth +=
			(strchr("<({[", called[nr]) != NULL) - (strchr(">)}]", called[nr]) != NULL);
	while (nr && called[nr - 1] == ' ')
		nr--;
	memmove(name, called, nr);
	name[nr] = '\0';
}

/* How long a name is without what compilers add to the pieces and copies that they make of a function: "work.constprop.0.cold"
 * is work, of which one thinks and which stands in the source. */
static size_t demangle_written_length(const char *name, size_t length)
{
	static const char *const added[] = {
		".constprop", ".isra", ".part", ".cold", ".lto_priv", ".llvm"};
	for (size_t i = 0; i < BASE_COUNT(added);) {
		size_t n = strlen(added[i]), end = length;
		while (end && strchr("0123456789", name[end - 1]))
			end--;
		end = end && end < length && name[end - 1] == '.' ? end - 1 : length;
		bool is_there = end > n && !memcmp(name + end - n, added[i], n);
		length = is_there ? end - n : length;
		i = is_there ? 0 : i + 1;
	}
	return length;
}

/* Rust first: its old names look like C++'s, with a hash at the end. */
char *symbol_readable(const char *name)
{
	size_t length = strcspn(name, "@"); /* "read@@GLIBC_2.2.5" */
	length = demangle_written_length(name, length ? length : strlen(name));
	char *written = strndup(name, length); /* allowed: as the demangler's */
	if (!written || written[0] != '_' || (written[1] != 'Z' && written[1] != 'R'))
		return written;
	char *text = rust_demangle(written, DMGL_NO_OPTS);
	if (!text)
		text = cplus_demangle_v3(written, DMGL_PARAMS | DMGL_TYPES);
	if (!text)
		return written;
	free(written); /* allowed: as the demangler's */
	unwrap_thread(text);
	return text;
}
