/* SPDX-License-Identifier: Apache-2.0 */
/* demangle.c - C++ and Rust names as one reads them, by GNU's demangler. */
#include "symbol/symbol.h"

#include <libiberty/demangle.h>
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

/* Rust first: its old names look like C++'s, with a hash at the end. */
char *symbol_readable(const char *name)
{
	bool mangled = name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
	char *text = mangled ? rust_demangle(name, DMGL_NO_OPTS) : NULL;
	if (mangled && !text)
		text = cplus_demangle_v3(name, DMGL_PARAMS | DMGL_TYPES);
	if (text) {
		unwrap_thread(text);
		return text;
	}
	size_t length = strcspn(name, "@");                   /* "read@@GLIBC_2.2.5" */
	return strndup(name, length ? length : strlen(name)); /* allowed: as the demangler's */
}
