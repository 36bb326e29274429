/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_find.c - a V8 in this process, and our way to its isolates.
 *
 * node exports V8's interface to its add-ons, and an isolate may be asked by what it has called:
 * so it is met when node calls libc from inside of one. No option is set, so that what depends on
 * V8's options (its code caches) stays as it is.
 */
#include "runtime/node/node.h"
#include "preload/table.h"

#include <string.h>

struct preload_node preload_node PRELOAD_EARLY;

#ifndef PRELOAD_STATIC

struct node_found node_found PRELOAD_EARLY;

static void *node_isolate(void)
{
	if (!preload_active() || (node_found.key && !*node_found.key))
		return NULL;
	return node_found.current();
}

/* (the thread's word is set first: what is told of existing code may come back here) */
void preload_node_calls(void)
{
	void *isolate = node_isolate();
	if (!isolate || preload_own()->isolate == (uintptr_t)isolate ||
		!node_found.is_in_context(isolate))
		return;
	preload_own()->isolate = (uintptr_t)isolate;
	if (!preload_own()->loop.object) /* each isolate of node's has one, on its thread */
		preload_loop_begin(isolate, "of Node.js");
	node_found.set_code_handler(isolate, V8_CODE_ENUMERATES, node_code_event);
	if (!node_found.add_gc_prologue || !node_found.add_gc_epilogue)
		return;
	node_found.add_gc_prologue(isolate, node_gc_begins, NULL, V8_GC_ALL);
	node_found.add_gc_epilogue(isolate, node_gc_ends, NULL, V8_GC_ALL);
}

/* The program itself, or a library that has node or V8 in it. */
static bool node_may_be(const char *path)
{
	return !path || !*path || strstr(path, "libnode") || strstr(path, "libv8");
}

/* (one at a time: preload_modules_scan()) */
void preload_node_meets(const struct dl_phdr_info *info)
{
	struct preload_table table;
	struct node_found found = {0};
	uintptr_t begin, end;
	if (preload_has_node() || !node_may_be(info->dlpi_name) || !preload_table_of(info, &table))
		return;
	*(void **)&found.set_code_handler = preload_definition(&table, V8_SET_CODE_HANDLER);
	if (!found.set_code_handler)
		return;
	*(void **)&found.current = preload_definition(&table, V8_TRY_GET_CURRENT);
	if (!found.current) /* (then it may be asked by any thread) */
		*(void **)&found.current = preload_definition(&table, V8_GET_CURRENT);
	*(void **)&found.key = preload_definition(&table, V8_ISOLATE_KEY);
	*(void **)&found.is_in_context = preload_definition(&table, V8_IN_CONTEXT);
	*(void **)&found.add_gc_prologue = preload_definition(&table, V8_ADD_GC_PROLOGUE);
	*(void **)&found.add_gc_epilogue = preload_definition(&table, V8_ADD_GC_EPILOGUE);
	if (!found.current || !found.is_in_context)
		return;
	preload_module_range(info, &begin, &end);
	node_found = found;
	preload_node.begin = begin;
	__atomic_store_n(&preload_node.nr_bytes, end - begin, __ATOMIC_RELEASE);
	preload_be_indirect(); /* V8's own mutexes are to be told apart */
}

#endif
