/* SPDX-License-Identifier: Apache-2.0 */
/* demangle.c - C++ names as one reads them, by the demangler of libstdc++: whoever has C++ programs
 * has this library. */
#include "symbol/private.h"

#include <dlfcn.h>
#include <string.h>

void *symbol_demangler_open(symbol_demangle_fn **ret)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	void *symbol = library ? dlsym(library, "__cxa_demangle") : NULL;
	memcpy(ret, &symbol, sizeof symbol);
	return library;
}

bool symbol_demangler_found(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	if (library)
		dlclose(library);
	return library != NULL;
}

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

char *symbol_readable(symbol_demangle_fn *demangle, const char *name)
{
	int status = 0;
	char *text = NULL;
	if (demangle && name[0] == '_' && name[1] == 'Z')
		text = demangle(name, NULL, NULL, &status);
	if (text) {
		unwrap_thread(text);
		return text;
	}
	size_t length = strcspn(name, "@");                   /* "read@@GLIBC_2.2.5" */
	return strndup(name, length ? length : strlen(name)); /* allowed: as the demangler's */
}
